"""Experiments in optimal control: Park, Fussell, Pandy and Browne (1992)."""

from __future__ import annotations

from borelli.experiments.experiment import Experiment

PAPER = "Park, Fussell, Pandy and Browne"
FILMED = (".csv", ".json", ".png", "-stills.png", ".gif")
PLOTTED = (".csv", ".json", ".png")


def _experiment(about: str, figures: str, module: str, endings: tuple[str, ...]) -> Experiment:
    return Experiment(about, figures, f"{__name__}.{module}", PAPER, endings=endings)


EXPERIMENTS = {
    "car": _experiment("a car driven 1 m in 2 s with the least squared force", "1 and 2", "car", PLOTTED),
    "jump-muscle": _experiment("a jump for height by eight muscles", "3 to 9", "jump_muscle", FILMED),
}

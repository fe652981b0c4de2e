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
    "old-person": _experiment("jumps by muscles with slower activation", "5", "old_person", FILMED),
    "inchworm-race": _experiment("inchworms by plans and by spacetime", "section 7", "inchworm_race", FILMED),
    "jump-torque": _experiment("a jump for height by joint torques", "9", "jump_torque", FILMED),
    "jump-phases": _experiment("a jump and its landing in phases of 3 to 6 DOF", "9", "jump_phases", FILMED),
    "jump-muscle": _experiment("a jump for height by eight muscles", "3 to 9", "jump_muscle", FILMED),
}

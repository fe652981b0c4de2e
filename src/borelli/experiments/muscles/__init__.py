"""Experiments with muscles: Weinstein, Guendelman and Fedkiw (2008), section 6."""

from __future__ import annotations

from borelli.experiments.experiment import Experiment

PAPER = "Weinstein, Guendelman and Fedkiw"
FILMED = (".csv", ".json", ".png", "-stills.png", ".gif")
PLOTTED = (".csv", ".json", ".png")


def _experiment(about: str, figures: str, module: str, endings: tuple[str, ...]) -> Experiment:
    return Experiment(about, figures, f"{__name__}.{module}", PAPER, endings=endings)


EXPERIMENTS = {
    "pushups": _experiment("three push-ups of the full skeleton by its muscles", "11", "pushups", FILMED),
    "arm-curl": _experiment("a forearm curled by muscles, with weights in the hand", "section 6", "arm_curl", FILMED),
    "activations": _experiment("activations of muscles in a push-up", "section 6", "activations", PLOTTED),
    "moment-arms": _experiment("moment arms of muscles over the range of joints", "none", "moment_arms", PLOTTED),
}

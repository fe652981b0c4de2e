"""Experiments of Liu, Cooper and Ballard on human movement: noise, few markers, ground reaction forces, cost."""

from __future__ import annotations

from borelli.experiments.experiment import Experiment

PAPER = "Liu, Cooper and Ballard"


def _experiment(about: str, figures: str, module: str, takes_recording: bool = True) -> Experiment:
    return Experiment(about, figures, f"{__name__}.{module}", PAPER, takes_recording)


EXPERIMENTS = {
    "noise": _experiment("propagation of marker noise to angles and torques", "3, 4", "marker_noise"),
    "reduced-markers": _experiment("poses from markers on head, hands and feet only", "8, 9", "reduced_markers"),
    "ground": _experiment("ground reaction forces predicted from the motion alone, and measured", "5", "ground_forces"),
    "jump": _experiment("a jump reproduced from ground contact and a limited residual torque", "2", "jump"),
    "reach": _experiment("cost of reaching for targets near and far, low and high", "6", "reach", False),
    "armswing": _experiment("cost of walking with clamped arms", "7", "armswing"),
    "inertia-swap": _experiment("a motion with the inertia of another body", "none (text only)", "inertia_swap"),
}

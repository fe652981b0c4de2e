"""Experiments of Weinstein, Guendelman and Fedkiw (2008): impulse-based PD control of articulated bodies."""

from __future__ import annotations

from borelli.experiments.experiment import Experiment

PAPER = "Weinstein, Guendelman and Fedkiw"


ENDINGS = (".csv", ".json", ".png", "-stills.png", ".gif")


def _experiment(about: str, figures: str, module: str, endings: tuple[str, ...] = ENDINGS) -> Experiment:
    return Experiment(about, figures, f"{__name__}.{module}", PAPER, endings=endings)


EXPERIMENTS = {
    "pd-convergence": _experiment("convergence of impulse-based PD to the specified response", "3", "pd_convergence"),
    "pd-large-step": _experiment("steps too long for traditional PD", "2, 4", "pd_large_step"),
    "plank-gravity": _experiment("a plank rotated to level, with and without gravity", "5, 6", "plank_gravity"),
    "chain": _experiment(
        "chains of planks that stretch out level or curl", "7", "chain", (*ENDINGS, "-curl-stills.png", "-curl.gif")
    ),
    "curl-obstacle": _experiment("planks that curl against an immovable block", "8, top", "curl_obstacle"),
    "ball-hit": _experiment("a chain hit by a falling ball, and its recovery", "8, bottom", "ball_hit"),
    "carry-block": _experiment("a block carried by a chain, known and unknown to the controller", "1", "carry_block"),
    "mace": _experiment("a skeleton that swings a mace of free joints", "9", "mace"),
    "net": _experiment("a net of 960 joints that falls on a skeleton", "10", "net"),
    "loop": _experiment(
        "a closed loop driven by one hinge, and by four in conflict", "none (text only)", "closed_loop"
    ),
}

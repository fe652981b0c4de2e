"""The experiments by name. Each is a function `(out, *, recording, quick, say) -> Outcome` in a module of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from borelli.errors import SettingsError, unknown_name
from borelli.experiments.outcome import Outcome


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run.

    Attributes:
        about: What it shows, in one sentence.
        figures: Those of the paper that it redraws.
        module: Where its function `run` is, in this package.
        takes_recording: Whether it can be made from a recording instead of synthetic data.
        needs_recording: Whether it cannot be made without one.
        paper: Its authors.
    """

    about: str
    figures: str
    module: str
    takes_recording: bool = False
    needs_recording: bool = False
    paper: str = "Liu, Cooper and Ballard"


def _control(about: str, figures: str, module: str) -> Experiment:
    return Experiment(about, figures, module, paper="Weinstein, Guendelman and Fedkiw")


EXPERIMENTS = {
    "noise": Experiment("how marker noise spreads to angles and torques", "3, 4", "marker_noise", takes_recording=True),
    "reduced-markers": Experiment(
        "poses from the markers of head, hands and feet alone", "8, 9", "reduced_markers", takes_recording=True
    ),
    "ground": Experiment(
        "ground forces from the motion alone beside measured ones", "5", "ground_forces", takes_recording=True
    ),
    "jump": Experiment("a jump reproduced from the ground and a limited torque", "2", "jump", takes_recording=True),
    "reach": Experiment("what it costs to reach for targets near and far, low and high", "6", "reach"),
    "armswing": Experiment("what walking costs with the arms clamped", "7", "armswing", takes_recording=True),
    "foreign-body": Experiment(
        "a motion with another body's inertia", "none: told in the text", "inertia_swap", takes_recording=True
    ),
    "pd-convergence": _control("that impulse-based PD tends to the response asked for", "3", "pd_convergence"),
    "pd-large-step": _control("steps too long for traditional PD", "2, 4", "pd_large_step"),
    "plank-gravity": _control("a plank turned level, with gravity and without", "5, 6", "plank_gravity"),
    "chain": _control("chains of planks that stretch out level or curl", "7", "chain"),
    "curl-obstacle": _control("planks that curl against an immovable block", "8, top", "curl_obstacle"),
    "ball-hit": _control("a chain that a ball falls on, and its way back", "8, bottom", "ball_hit"),
    "carry-block": _control("a block carried with effort, or with none", "1", "carry_block"),
    "mace": _control("a skeleton that swings a mace of free joints", "9", "mace"),
    "net": _control("a net of 960 joints that falls on a skeleton", "10", "net"),
    "loop": _control(
        "a closed loop driven by one hinge, and by four in conflict", "none: told in the text", "closed_loop"
    ),
}
"""Add yours here: a line, and a module with a function `run`."""


def run_experiment(
    name: str,
    out: Path,
    *,
    recording: Path | None = None,
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run an experiment; its table, figures and pictures are written into a folder.

    Args:
        name: One of `EXPERIMENTS`.
        out: The folder, made if need be.
        recording: A recording to make it from, where the experiment can; else it uses synthetic data.
        quick: Few trials: to see that it runs, not for figures.
        say: Told what is being done.

    Raises:
        SettingsError: there is no such experiment, or it needs, or cannot take, a recording.
    """
    if name not in EXPERIMENTS:
        raise SettingsError(unknown_name("experiment", name, EXPERIMENTS))
    experiment = EXPERIMENTS[name]
    if recording is not None and not experiment.takes_recording:
        raise SettingsError(f"experiment {name!r} uses synthetic data only: leave --recording out")
    if recording is None and experiment.needs_recording:
        raise SettingsError(f"experiment {name!r} needs a recording: give --recording FILE")
    outcome: Outcome = import_module(f"borelli.experiments.{experiment.module}").run(
        out, recording=recording, quick=quick, say=say
    )
    return outcome

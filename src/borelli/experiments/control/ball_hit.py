"""A level chain that a ball falls on: it is pushed far from its target, and comes back to it without overshoot.

After Weinstein, Guendelman and Fedkiw, Fig. 8, bottom. How far the ball pushes the chain is a matter of stiffness; that
it comes back, gravity or not, is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import radians
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import METHODS, OURS, TRADITIONAL, held_at, planks
from borelli.experiments.movement.stepped_common import BLUE, RED, tidy
from borelli.model.mechanisms import with_ball
from borelli.model.model import Frame, Model, Shape

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(25.0)
COUNT, LENGTH, SECONDS = 5, 0.5, 6.0
STEPS = {"impulse": 1 / 240, "traditional": 1 / 2400}
"""[s]: torques of the step's start chatter in longer ones."""
RADIUS, MASS = 0.15, 2.0
"""Of the ball [m, kg]."""
FROM, SPEED = (2.3, 0.0, 0.6), (0.8, 0.0, -3.0)
"""Where it starts [m], and how fast [m/s]: down on the last plank, and outwards."""
FRICTION = 0.1
"""Of the planks."""
FLOOR = -2.0
"""Height of the ground that it falls to [m]."""


def ball_model() -> Model:
    """Level planks and a ball above them."""
    floor = Shape("plane", frame=Frame((0.0, 0.0, FLOOR)))
    return replace(with_ball(planks(COUNT, LENGTH, friction=FRICTION), FROM, mass=MASS, radius=RADIUS), ground=(floor,))


def ball_run(method: str, seconds: float) -> Dataset:
    """The chain held level while the ball comes down on it."""
    model = ball_model()
    return track_targets(
        model,
        held_at(model, {c.name: 0.0 for c in model.coordinates}, GAINS),
        duration=seconds,
        step=STEPS[method],
        method=method,
        every=round(STEPS["impulse"] / STEPS[method]),
        start={},
        twists={"ball": (*SPEED, 0.0, 0.0, 0.0)},
    )


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    seconds = 1.0 if quick else SECONDS
    runs = {}
    for name in (OURS,) if quick else (OURS, TRADITIONAL):
        say(name)
        runs[name] = ball_run(METHODS[name], seconds)
    rows = [{"method": name, **_figures(data)} for name, data in runs.items()]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "ball-hit.png"
    _draw(runs, plot)
    say("drawing")
    shown = {name: data.sel(time=slice(0.0, 2.0)) for name, data in runs.items()}
    files = draw_runs(shown, out, "ball-hit", (0.0, 0.2, 0.4, 0.6, 0.9, 1.4, 2.0), quick=quick, speed=0.5)
    about = (
        f"{COUNT} planks of {LENGTH:g} m and 1 kg held level, a ball of {MASS:g} kg at {-SPEED[2]:g} m/s; stiffness "
        f"{GAINS.stiffness:g} 1/s^2, critical damping, {seconds:g} s in steps of 1/240 s"
    )
    return write_outcome(Outcome("ball-hit", about, rows, _claims(rows, quick), (plot, *files)), out)


def touching(data: Dataset) -> NDArray[np.bool_]:
    """Whether the ball touches a plank, at every instant: nothing else does."""
    return np.asarray(np.abs(data["ground_reaction_force"].values[:, :COUNT]).max(axis=(1, 2)) > 0.0)


def _figures(data: Dataset) -> dict[str, float]:
    time, error = data["time"].values, data["coordinate_value"].values
    hits = np.flatnonzero(touching(data))
    first, last = (int(hits[0]), int(hits[-1])) if len(hits) else (0, 0)
    after = error[last:]
    far = float(np.abs(error).max())
    return {
        "first_touch_s": float(time[first]) if len(hits) else float("nan"),
        "last_touch_s": float(time[last]) if len(hits) else float("nan"),
        "moved_before_rad": float(np.abs(error[:first]).max(initial=0.0)),
        "pushed_deg": float(np.degrees(far)),
        "overshoot_of_push": max(_overshoot(angle) for angle in after.T) / max(far, 1e-12),
        "left_at_end_rad": float(np.abs(error[-1]).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _overshoot(angle: Array) -> float:
    """How far a hinge passes its target on its way back from where it is farthest away [rad]."""
    farthest = int(np.abs(angle).argmax())
    return float(np.maximum(-np.sign(angle[farthest]) * angle[farthest:], 0.0).max())


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    ours = rows[0]
    claims = [
        Claim("moved before the ball comes [rad]", ours["moved_before_rad"], "0", ours["moved_before_rad"] < 1e-12),
        Claim("pushed from the target [deg]", ours["pushed_deg"], "far", ours["pushed_deg"] > 20.0),
        Claim("widest gap of a joint [m]", ours["joint_gap_m"], "joints hold", ours["joint_gap_m"] < 1e-9),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        Claim("overshoot on the way back, of the push", ours["overshoot_of_push"], "none",
              ours["overshoot_of_push"] < 1e-3),
        Claim("from the target at the end [rad]", ours["left_at_end_rad"], "1e-6", ours["left_at_end_rad"] < 1e-6),
        Claim("traditional PD: from the target at the end [deg]", float(np.degrees(rows[1]["left_at_end_rad"])), "sags",
              rows[1]["left_at_end_rad"] > radians(5.0)),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    angles, errors = figure.subplots(1, 2)
    for name, data in runs.items():
        color = {OURS: BLUE, TRADITIONAL: RED}[name]
        time = data["time"].values
        for k, angle in enumerate(np.degrees(data["coordinate_value"].values.T)):
            angles.plot(time, angle, color=color, lw=0.9, label=name if k == 0 else None)
        errors.semilogy(time, np.maximum(np.abs(data["coordinate_value"].values).max(axis=1), 1e-12), color=color, label=name)
    angles.set(xlabel="time [s]", ylabel="angles of the hinges [deg]")
    errors.set(xlabel="time [s]", ylabel="largest error of a hinge [rad]")
    for ax in (angles, errors):
        ax.legend(frameon=False, fontsize=8)
    tidy([angles, errors])
    figure.savefig(path, dpi=130)

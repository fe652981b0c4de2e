"""Level chain hit by a falling ball: displaced far from its target, it recovers without overshoot.

After Weinstein, Guendelman and Fedkiw, Fig. 8, bottom. The displacement depends on stiffness; the recovery, with or
without gravity, does not.
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
from borelli.experiments.control.planks import IMPULSE, METHODS, TRADITIONAL, constant_controls, planks
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.mechanisms import with_ball
from borelli.model.model import Frame, Model, Shape
from borelli.view.plot_style import BLUE, RED, style_axes

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(25.0)
COUNT, LENGTH, SECONDS = 5, 0.5, 6.0
STEPS = {"impulse": 1 / 240, "traditional": 1 / 2400}
"""[s]. Explicit torques chatter with longer steps."""
RADIUS, MASS = 0.15, 2.0
"""Radius [m] and mass [kg] of the ball."""
BALL_POSITION, BALL_VELOCITY = (2.3, 0.0, 0.6), (0.8, 0.0, -3.0)
"""Initial position [m] and velocity [m/s]: down on the last plank, and outward."""
FRICTION = 0.1
"""Friction coefficient of the planks."""
FLOOR = -2.0
"""Height of the ground [m]."""


def ball_model() -> Model:
    """Return level planks and a ball above them."""
    floor = Shape("plane", frame=Frame((0.0, 0.0, FLOOR)))
    return replace(
        with_ball(planks(COUNT, LENGTH, friction=FRICTION), BALL_POSITION, mass=MASS, radius=RADIUS), ground=(floor,)
    )


def ball_run(method: str, seconds: float) -> Dataset:
    """Simulate the chain, controlled to stay level, while the ball falls on it."""
    model = ball_model()
    return track_targets(
        model,
        constant_controls(model, {c.name: 0.0 for c in model.coordinates}, GAINS),
        duration=seconds,
        step=STEPS[method],
        method=method,
        record_every=round(STEPS["impulse"] / STEPS[method]),
        initial_coordinates={},
        initial_twists={"ball": (*BALL_VELOCITY, 0.0, 0.0, 0.0)},
    )


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 1.0 if quick else SECONDS
    runs = {}
    for name in (IMPULSE,) if quick else (IMPULSE, TRADITIONAL):
        log(name)
        runs[name] = ball_run(METHODS[name], seconds)
    rows = [{"method": name, **_metrics(data)} for name, data in runs.items()]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "ball-hit.png"
    _draw(runs, plot)
    log("drawing")
    shown = {name: data.sel(time=slice(0.0, 2.0)) for name, data in runs.items()}
    files = draw_runs(shown, out, "ball-hit", (0.0, 0.2, 0.4, 0.6, 0.9, 1.4, 2.0), quick=quick, speed=0.5)
    about = (
        f"{COUNT} planks of {LENGTH:g} m and 1 kg controlled to stay level, a ball of {MASS:g} kg at "
        f"{-BALL_VELOCITY[2]:g} m/s; stiffness {GAINS.stiffness:g} 1/s^2, critical damping, {seconds:g} s in "
        "steps of 1/240 s"
    )
    return write_outcome(Outcome("ball-hit", about, rows, _claims(rows, quick), (plot, *files)), out)


def in_contact(data: Dataset) -> NDArray[np.bool_]:
    """Return for every instant whether the ball is in contact with a plank, the only contact there is."""
    return np.asarray(np.abs(data["ground_reaction_force"].values[:, :COUNT]).max(axis=(1, 2)) > 0.0)


def _metrics(data: Dataset) -> dict[str, float]:
    time, error = data["time"].values, data["coordinate_value"].values
    hits = np.flatnonzero(in_contact(data))
    first, last = (int(hits[0]), int(hits[-1])) if len(hits) else (0, 0)
    after = error[last:]
    largest = float(np.abs(error).max())
    return {
        "first_contact_s": float(time[first]) if len(hits) else float("nan"),
        "last_contact_s": float(time[last]) if len(hits) else float("nan"),
        "error_before_contact_rad": float(np.abs(error[:first]).max(initial=0.0)),
        "largest_error_deg": float(np.degrees(largest)),
        "overshoot_fraction": max(_overshoot(angle) for angle in after.T) / max(largest, 1e-12),
        "error_at_end_rad": float(np.abs(error[-1]).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _overshoot(angle: Array) -> float:
    """Return how far a hinge passes its target while it recovers from its largest error [rad]."""
    farthest = int(np.abs(angle).argmax())
    return float(np.maximum(-np.sign(angle[farthest]) * angle[farthest:], 0.0).max())


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    impulse = rows[0]
    claims = [
        Claim("error before the ball arrives [rad]", impulse["error_before_contact_rad"], "0",
              impulse["error_before_contact_rad"] < 1e-12),
        Claim("largest error after the hit [deg]", impulse["largest_error_deg"], "large",
              impulse["largest_error_deg"] > 20.0),
        Claim("largest joint gap [m]", impulse["joint_gap_m"], "joints closed", impulse["joint_gap_m"] < 1e-9),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        Claim("overshoot, fraction of the largest error", impulse["overshoot_fraction"], "none",
              impulse["overshoot_fraction"] < 1e-3),
        Claim("error at the end [rad]", impulse["error_at_end_rad"], "1e-6", impulse["error_at_end_rad"] < 1e-6),
        Claim("traditional PD: error at the end [deg]", float(np.degrees(rows[1]["error_at_end_rad"])), "sags",
              rows[1]["error_at_end_rad"] > radians(5.0)),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    angles, errors = figure.subplots(1, 2)
    for name, data in runs.items():
        color = {IMPULSE: BLUE, TRADITIONAL: RED}[name]
        time = data["time"].values
        for k, angle in enumerate(np.degrees(data["coordinate_value"].values.T)):
            angles.plot(time, angle, color=color, lw=0.9, label=name if k == 0 else None)
        errors.semilogy(
            time, np.maximum(np.abs(data["coordinate_value"].values).max(axis=1), 1e-12), color=color, label=name
        )
    angles.set(xlabel="time [s]", ylabel="hinge angles [deg]")
    errors.set(xlabel="time [s]", ylabel="largest hinge error [rad]")
    for ax in (angles, errors):
        ax.legend(frameon=False, fontsize=8)
    style_axes([angles, errors])
    figure.savefig(path, dpi=130)

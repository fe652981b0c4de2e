"""Level chain hit by a falling ball: displaced far from its target, it recovers without overshoot.

After Weinstein, Guendelman and Fedkiw, Fig. 8, bottom. The displacement depends on stiffness; the recovery, with or
without gravity, does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import radians
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset

from borelli.control.response import PD
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import COLORS, IMPULSE, METHODS, TRADITIONAL, Array, planks, track_angles
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below
from borelli.model.mechanisms import with_ball
from borelli.model.model import Frame, Model, Shape

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
    return track_angles(
        ball_model(),
        0.0,
        GAINS,
        duration=seconds,
        step=STEPS[method],
        method=method,
        record_every=round(STEPS["impulse"] / STEPS[method]),
        initial_twists={"ball": (*BALL_VELOCITY, 0.0, 0.0, 0.0)},
    )


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 1.0 if request.quick else SECONDS
    runs = {}
    for name in (IMPULSE,) if request.quick else (IMPULSE, TRADITIONAL):
        request.log(name)
        runs[name] = ball_run(METHODS[name], seconds)
    rows = [{"method": name, **_metrics(data)} for name, data in runs.items()]
    _draw(runs, request.plot)
    shown = {name: data.sel(time=slice(0.0, 2.0)) for name, data in runs.items()}
    files = draw_runs(request, shown, (0.0, 0.2, 0.4, 0.6, 0.9, 1.4, 2.0), speed=0.5)
    about = (
        f"{COUNT} planks of {LENGTH:g} m and 1 kg controlled to stay level, a ball of {MASS:g} kg at "
        f"{-BALL_VELOCITY[2]:g} m/s; stiffness {GAINS.stiffness:g} 1/s^2, critical damping, {seconds:g} s in "
        "steps of 1/240 s"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def in_contact(data: Dataset) -> NDArray[np.bool_]:
    """Return for every instant whether the ball is in contact with a plank, the only contact there is."""
    return np.asarray(np.abs(data["contact_force"].values[:, :COUNT]).max(axis=(1, 2)) > 0.0)


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


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    impulse = rows[0]
    claims = [
        below("error before the ball arrives [rad]", impulse["error_before_contact_rad"], NOT_GIVEN, 1e-12, "0"),
        above("largest error after the hit [deg]", impulse["largest_error_deg"], "large", 20.0),
        below("largest joint gap [m]", impulse["joint_gap_m"], NOT_GIVEN, 1e-9),
    ]
    if quick:
        return claims
    sag = rows[1]["error_at_end_rad"]
    return [
        *claims,
        below("overshoot, fraction of the largest error", impulse["overshoot_fraction"], "none", 1e-3),
        below("error at the end [rad]", impulse["error_at_end_rad"], "recovers", 1e-6),
        Claim("traditional PD: error at the end [deg]", float(np.degrees(sag)), "sags", "above 5", sag > radians(5.0)),
    ]


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    with figure(path, "hinge angles [deg]", "largest hinge error [rad]") as (angles, errors):
        for name, data in runs.items():
            time, value = data["time"].values, data["coordinate_value"].values
            for k, angle in enumerate(np.degrees(value.T)):
                angles.plot(time, angle, color=COLORS[name], lw=0.9, label=name if k == 0 else None)
            errors.semilogy(time, np.maximum(np.abs(value).max(axis=1), 1e-12), color=COLORS[name], label=name)

"""Planks that curl against an immovable block: they press on it, and curl up when it is removed.

After Weinstein, Guendelman and Fedkiw, Fig. 8, top. Eight planks, 40 degrees at every hinge, as in the experiment
`chain`; the block is removed three seconds after the start. While planks press on it at rest, each hinge commands the
acceleration -k E (k of `stiffness_at_rest`), and the contact force must balance it: its moment about the first hinge is
that of k M E, with M the mass matrix. Traditional PD would need steps of 1/10000 s; stable PD is run for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import radians
from pathlib import Path

import numpy as np
from xarray import Dataset

from borelli.control.response import PD
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import (
    COLORS,
    IMPULSE,
    METHODS,
    STABLE,
    Array,
    mass_matrix,
    planks,
    stiffness_at_rest,
    track_angles,
)
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below, within_fraction
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Frame, Model, Shape, Surface
from borelli.physics.state import State

GAINS = PD(25.0)
COUNT, LENGTH, STEP = 8, 0.5, 1 / 240
CURL = radians(40.0)
REMOVAL_TIME, SECONDS = 3.0, 8.0
"""Time at which the block is removed, and duration [s]."""
REMOVAL_SPEED, REMOVAL_DURATION = 3.0, 0.4
"""Speed at which the block is removed [m/s], and for how long [s]."""
BLOCK, HALF = (0.7, 0.0, 1.0), (0.25, 0.25, 0.25)
"""Center and half sides of the block [m]."""
FRICTION = 0.3
PRESSING_WINDOW = 0.3
"""Time before the removal over which the contact force is evaluated [s]."""


def obstacle_model() -> Model:
    """Return level planks below an immovable block."""
    chain = planks(COUNT, LENGTH, friction=FRICTION)
    shape = Shape("box", HALF, surface=Surface(friction=FRICTION))
    block = replace(body_from_shapes("block", (shape,), kinematic=True), frame=Frame(BLOCK))
    return replace(chain, name="planks and an obstacle", bodies=(*chain.bodies, block), self_collision=True)


def obstacle_run(method: str, seconds: float, removal: float) -> Dataset:
    """Simulate the curling planks; the block is removed at a given time [s]."""

    def steer(state: State, time: float) -> None:
        state.twist[COUNT, 1] = REMOVAL_SPEED if removal <= time < removal + REMOVAL_DURATION else 0.0

    return track_angles(obstacle_model(), CURL, GAINS, duration=seconds, step=STEP, method=method, steer=steer)


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    removal, seconds = (1.5, 2.0) if request.quick else (REMOVAL_TIME, SECONDS)
    runs = {}
    for name in (IMPULSE,) if request.quick else (IMPULSE, STABLE):
        request.log(name)
        runs[name] = obstacle_run(METHODS[name], seconds, removal)
    rows = [{"method": name, **_metrics(data, removal)} for name, data in runs.items()]
    _draw(runs, removal, request.plot)
    files = draw_runs(request, runs, (0.0, 0.4, 1.0, 2.9, 3.4, 4.0, SECONDS))
    about = (
        f"{COUNT} planks of {LENGTH:g} m curl by 40 degrees a hinge against an immovable block, which is removed "
        f"after {removal:g} s; stiffness {GAINS.stiffness:g} 1/s^2, critical damping, steps of 1/240 s"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def contact_force(data: Dataset) -> Array:
    """Return the force of all planks on the block [N] at every instant; forces between planks cancel."""
    return np.asarray(np.linalg.norm(data["contact_force"].values[:, :COUNT].sum(axis=1), axis=1))


def _moments(data: Dataset) -> Array:
    """Return the moment of contact forces on the planks about the first hinge [N m], at every instant."""
    return np.asarray(-data["contact_moment"].values[:, :COUNT, 1].sum(axis=1))


def _metrics(data: Dataset, removal: float) -> dict[str, float]:
    time, error = data["time"].values, data["coordinate_value"].values - CURL
    window = (time > removal - PRESSING_WINDOW) & (time <= removal)
    force = contact_force(data)[window]
    before = np.abs(error[time <= removal][-1])
    commanded = mass_matrix(data["coordinate_value"].values[window][-1], LENGTH) @ error[window][-1]
    return {
        "contact_force_n": float(force.mean()),
        "contact_force_min_n": float(force.min()),
        "largest_force_n": float(contact_force(data).max()),
        "moment_nm": float(_moments(data)[window][-1]),
        "moment_commanded_nm": float(commanded[0]) * stiffness_at_rest(GAINS, STEP),
        "velocity_in_contact_rad_s": float(np.abs(data["coordinate_velocity"].values[window]).max()),
        "block_moved_m": float(np.abs(data["body_position"].sel(body="block").values[time <= removal] - BLOCK).max()),
        "error_in_contact_deg": float(np.degrees(before.max())),
        "error_at_end_rad": float(np.abs(error[-1]).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    impulse = rows[0]
    claims = [
        Claim(
            "displacement of the block [m]", impulse["block_moved_m"], "immovable", "0", impulse["block_moved_m"] == 0.0
        ),
        above("minimum force on the block [N]", impulse["contact_force_min_n"], "presses", 1.0),
        above("error while obstructed [deg]", impulse["error_in_contact_deg"], "obstructed", 10.0),
        below("largest joint gap [m]", impulse["joint_gap_m"], NOT_GIVEN, 1e-9),
    ]
    if quick:
        return claims
    commanded, sag = impulse["moment_commanded_nm"], rows[1]["error_at_end_rad"]
    return [
        *claims,
        within_fraction("moment of contact forces about the first hinge [N m]", impulse["moment_nm"],
                        NOT_GIVEN, commanded, 1e-3, f"{commanded:.4f}, as commanded"),
        below("error after the removal [rad]", impulse["error_at_end_rad"], "recovers", 1e-6),
        Claim("stable PD: error at the end [deg]", float(np.degrees(sag)), "sags", "above 5", sag > radians(5.0)),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], removal: float, path: Path) -> None:
    with figure(path, "largest hinge error [deg]", "force of planks on the block [N]") as (errors, forces):
        for name, data in runs.items():
            time = data["time"].values
            error = np.degrees(np.abs(data["coordinate_value"].values - CURL).max(axis=1))
            errors.semilogy(time, np.maximum(error, 1e-9), color=COLORS[name], label=name)
            forces.plot(time[1:], contact_force(data)[1:], color=COLORS[name], lw=0.8, label=name)
        for ax in (errors, forces):
            ax.axvline(removal, color="#9aa0a8", lw=0.8, ls=":", label="block removed")
        rest = max(_metrics(data, removal)["contact_force_n"] for data in runs.values())
        forces.set(ylim=(0.0, 3.0 * rest))

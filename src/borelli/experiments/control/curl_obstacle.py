"""Planks that curl against an immovable block: they press on it, and curl up when it is removed.

After Weinstein, Guendelman and Fedkiw, Fig. 8, top. Eight planks, 40 degrees at every hinge, as in the experiment
`chain`; the block is removed three seconds after the start. While planks press on it at rest, each hinge commands the
acceleration -k E (k of `stiffness_at_rest`), and the contact force must balance it: its moment about the first hinge is
that of k M E, with M the mass matrix. Traditional PD would need steps of 1/10000 s; stable PD is run for comparison.
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
from borelli.experiments.control.planks import (
    IMPULSE,
    METHODS,
    STABLE,
    constant_controls,
    mass_matrix,
    planks,
    stiffness_at_rest,
)
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Frame, Model, Shape, Surface
from borelli.physics.state import State
from borelli.view.plot_style import BLUE, GREEN, style_axes

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

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
    model = obstacle_model()

    def steer(state: State, time: float) -> None:
        state.twist[COUNT, 1] = REMOVAL_SPEED if removal <= time < removal + REMOVAL_DURATION else 0.0

    return track_targets(
        model,
        constant_controls(model, {c.name: CURL for c in model.coordinates}, GAINS),
        duration=seconds,
        step=STEP,
        method=method,
        initial_coordinates={},
        steer=steer,
    )


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    removal, seconds = (1.5, 2.0) if quick else (REMOVAL_TIME, SECONDS)
    runs = {}
    for name in (IMPULSE,) if quick else (IMPULSE, STABLE):
        log(name)
        runs[name] = obstacle_run(METHODS[name], seconds, removal)
    rows = [{"method": name, **_metrics(data, removal)} for name, data in runs.items()]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "curl-obstacle.png"
    _draw(runs, removal, plot)
    log("drawing")
    files = draw_runs(runs, out, "curl-obstacle", (0.0, 0.4, 1.0, 2.9, 3.4, 4.0, SECONDS), quick=quick)
    about = (
        f"{COUNT} planks of {LENGTH:g} m curl by 40 degrees a hinge against an immovable block, which is removed "
        f"after {removal:g} s; stiffness {GAINS.stiffness:g} 1/s^2, critical damping, steps of 1/240 s"
    )
    return write_outcome(Outcome("curl-obstacle", about, rows, _claims(rows, quick), (plot, *files)), out)


def contact_force(data: Dataset) -> Array:
    """Return the force of all planks on the block [N] at every instant; forces between planks cancel."""
    return np.asarray(np.linalg.norm(data["ground_reaction_force"].values.sum(axis=1), axis=1))


def _moments(data: Dataset) -> Array:
    """Return the moment of contact forces on the planks about the first hinge [N m], at every instant."""
    points = np.nan_to_num(data["center_of_pressure"].values[:, :COUNT])
    return np.asarray(-np.cross(points, data["ground_reaction_force"].values[:, :COUNT])[..., 1].sum(axis=1))


def _metrics(data: Dataset, removal: float) -> dict[str, float]:
    time, error = data["time"].values, data["coordinate_value"].values - CURL
    window = (time > removal - PRESSING_WINDOW) & (time <= removal)
    force = contact_force(data)[window]
    before = np.abs(error[time <= removal][-1])
    return {
        "contact_force_n": float(force.mean()),
        "contact_force_min_n": float(force.min()),
        "largest_force_n": float(contact_force(data).max()),
        "moment_nm": float(_moments(data)[window][-1]),
        "moment_commanded_nm": float(
            (mass_matrix(data["coordinate_value"].values[window][-1], LENGTH) @ error[window][-1])[0]
        )
        * stiffness_at_rest(GAINS, STEP),
        "velocity_in_contact_rad_s": float(np.abs(data["coordinate_velocity"].values[window]).max()),
        "block_moved_m": float(np.abs(data["body_position"].sel(body="block").values[time <= removal] - BLOCK).max()),
        "error_in_contact_deg": float(np.degrees(before.max())),
        "error_at_end_rad": float(np.abs(error[-1]).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    impulse = rows[0]
    claims = [
        Claim("displacement of the block [m]", impulse["block_moved_m"], "immovable", impulse["block_moved_m"] == 0.0),
        Claim("minimum force on the block [N]", impulse["contact_force_min_n"], "presses",
              impulse["contact_force_min_n"] > 1.0),
        Claim("error while obstructed [deg]", impulse["error_in_contact_deg"], "obstructed",
              impulse["error_in_contact_deg"] > 10.0),
        Claim("largest joint gap [m]", impulse["joint_gap_m"], "joints closed", impulse["joint_gap_m"] < 1e-9),
    ]  # fmt: skip
    if quick:
        return claims
    moment, commanded = impulse["moment_nm"], impulse["moment_commanded_nm"]
    return [
        *claims,
        Claim("moment of contact forces about the first hinge [N m]", moment, f"{commanded:.4f}, as commanded",
              abs(moment / commanded - 1.0) < 1e-3),
        Claim("error after the removal [rad]", impulse["error_at_end_rad"], "1e-6: recovers",
              impulse["error_at_end_rad"] < 1e-6),
        Claim("stable PD: error at the end [deg]", float(np.degrees(rows[1]["error_at_end_rad"])),
              "sags", rows[1]["error_at_end_rad"] > radians(5.0)),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], removal: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    errors, forces = figure.subplots(1, 2)
    for name, data in runs.items():
        color = {IMPULSE: BLUE, STABLE: GREEN}[name]
        time = data["time"].values
        error = np.degrees(np.abs(data["coordinate_value"].values - CURL).max(axis=1))
        errors.semilogy(time, np.maximum(error, 1e-9), color=color, label=name)
        forces.plot(time[1:], contact_force(data)[1:], color=color, lw=0.8, label=name)
    for ax in (errors, forces):
        ax.axvline(removal, color="#9aa0a8", lw=0.8, ls=":", label="block removed")
        ax.legend(frameon=False, fontsize=8)
    rest = max(_metrics(data, removal)["contact_force_n"] for data in runs.values())
    forces.set(xlabel="time [s]", ylabel="force of planks on the block [N]", ylim=(0.0, 3.0 * rest))
    errors.set(xlabel="time [s]", ylabel="largest hinge error [deg]")
    style_axes([errors, forces])
    figure.savefig(path, dpi=130)

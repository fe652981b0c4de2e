"""A body follows targets, and everything that happened is one labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.control.control_arrays import Plan
from borelli.control.controls import Control, check_controls
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.impulse_step.arrays import compile_impulse
from borelli.physics.impulse_step.position_correction import POSITION_ERROR_LEFT
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.inputs import AppliedForce
from borelli.physics.solver_settings import SolverSettings, check_step
from borelli.physics.run_soft_steps import Record, make_record
from borelli.physics.simulate import count_steps, initial_state, to_dataset
from borelli.physics.state import State, make_inputs

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

METHODS = {
    "impulse": "impulse-based PD: joints end each step where their response says",
    "traditional": "springs and dampers, their torques taken from the step's start",
    "stable": "springs and dampers, their torques taken from the step's end",
}
CHUNK_SECONDS = 0.2
"""Simulated time between two reports of progress [s]."""


def track_targets(
    model: Model,
    controls: Sequence[Control],
    *,
    duration: float,
    step: float = 1 / 240,
    method: str = "impulse",
    start: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
    outside: Sequence[str] = (),
    forces: Sequence[AppliedForce] = (),
    settings: SolverSettings | None = None,
    steer: Callable[[State, float], None] | None = None,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """What the model does in `duration` [s] while controls make it follow targets; a dataset as of `simulate`.

    It has besides `target(time, coordinate)` [rad or m], not a number where nothing is controlled, and
    `control_force(time, coordinate)` [N m or N]. A ball joint that is controlled about all three axes is turned as one:
    its force is the torque on the child along the child's joint axes.

    Args:
        model: Bodies, joints and ground.
        controls: What follows which target, and how; all else moves freely.
        duration: [s]
        step: [s]
        method: One of `METHODS`.
        start: Where coordinates start [rad or m], others at their defaults, at rest. None: what is controlled starts at
            its target, moving with it.
        speeds: How fast coordinates start.
        twists: Velocity [m/s] and spin [rad/s] that bodies start with, world axes; these win over `speeds`.
        outside: Bodies that the controller does not know of: it does not hold their weight up.
        forces: What pushes bodies.
        settings: Of the solver.
        steer: Called before each step with the state and the time [s]; it may move kinematic bodies.
        every: Steps between two records.
        progress: Called now and then with the share done, 0 to 1.

    Raises:
        SettingsError: controls, targets or settings that cannot be followed.
        DivergedError: a step has no solution.
    """
    if method not in METHODS:
        raise SettingsError(f"following targets: {unknown_name('method', method, METHODS)}")
    check_step(step)
    check_controls(model, controls)
    steps = count_steps(duration, step)
    if every < 1:
        raise SettingsError(f"every is {every}; it must be 1 or larger")
    plan = Plan(model, controls, step, steps)
    if method == "impulse":
        compiled, record = _follow_by_impulses(
            plan, start, speeds, twists, outside, forces, settings, steer, every, progress
        )  # fmt: skip
        time = step * every * np.arange(len(record.pose), dtype=np.float64)
        data = _telling_gaps(to_dataset(compiled, record, time))
    else:
        from borelli.control.pd_tracking import track_with_springs

        plan.only_springs(method, outside=outside)
        data = track_with_springs(
            model, plan.gains(), plan.value[1:], step=step, implicit=method == "stable",
            start=plan.start()[0] if start is None else start, speeds=speeds, twists=twists, limits=plan.limits(),
            forces=forces, settings=settings, steer=steer, every=every, progress=progress,
        )  # fmt: skip
    return _with_controls(data, plan.value[1 : steps + 2 : every], plan.acting)


def _follow_by_impulses(
    plan: Plan,
    start: Mapping[str, float] | None,
    speeds: Mapping[str, float] | None,
    twists: Mapping[str, Sequence[float]] | None,
    outside: Sequence[str],
    forces: Sequence[AppliedForce],
    settings: SolverSettings | None,
    steer: Callable[[State, float], None] | None,
    every: int,
    progress: Callable[[float], None] | None,
) -> tuple[CompiledModel, Record]:
    step, steps = plan.step, plan.steps
    compiled, tables = compile_impulse(
        plan.model, step=step, controlled=plan.responses(), outside=outside, settings=settings
    )
    on_course = start is None
    start, moving = plan.start() if start is None else (start, {})
    state = initial_state(compiled, coordinates=start, velocities=moving | dict(speeds or {}), twists=twists)
    inputs = make_inputs(compiled, forces=forces)
    simulation = ImpulseSimulation(compiled, state, inputs, tables, plan.course(compiled, tables))
    if on_course:
        simulation.start_on_targets()
    record = make_record(compiled, steps // every + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    respond = plan.respond(compiled) if tables.callback_response.any() else None
    chunk = 1 if steer is not None else max(1, int(CHUNK_SECONDS / step))
    while simulation.index < steps:
        if steer is not None:
            steer(state, step * simulation.index)
        more = min(chunk, steps - simulation.index)
        simulation.advance_impulses(more, record, record_every=every, frame=1 + simulation.index // every, respond=respond)
        if progress is not None:
            progress(simulation.index / steps)
    return compiled, record


def _telling_gaps(data: xarray.Dataset) -> xarray.Dataset:
    """The dataset with a note if joints were left open."""
    left = int((data["solver_status"] >= POSITION_ERROR_LEFT).sum())
    if left:
        widest = 1e3 * float(data["joint_gap"].max())
        said = f"joints were left open, by {widest:.2g} mm at most, in {left} of the recorded steps: shorten the step"
        data.attrs["notes"] = "; ".join(filter(None, (data.attrs["notes"], said)))
    return data


def _with_controls(data: xarray.Dataset, target: Array, acting: Mapping[str, Control]) -> xarray.Dataset:
    """The dataset with targets and what controls pushed with."""
    controlled = np.array([name in acting for name in data["coordinate"].values], bool)
    force = data["torque"]
    dims = ("time", "coordinate")
    return data.assign(
        target=(dims, target, data["coordinate_value"].attrs | {"frame": "joint; NaN where nothing is controlled"}),
        control_force=(dims, np.where(controlled, force.values, 0.0), force.attrs),
    )

"""Simulate a model and get everything that happened as one labelled dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.formats.native import model_to_text
from borelli.model.model import Model
from borelli.physics import diagnostics as measure
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.inputs import AppliedForce, Drive, SolverSettings, check_step
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.run_soft_steps import Record, Simulation, make_record
from borelli.physics.state import State, make_inputs, make_state

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

CHUNK_SECONDS = 0.2
"""Simulated time between two reports of progress [s]."""
MAX_STEPS = 2_000_000_000


def initial_state(
    compiled: CompiledModel,
    *,
    coordinates: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
) -> State:
    """The state with the given coordinates [rad or m] and speeds, others at default; `twists` [m/s, rad/s] last."""
    state = make_state(compiled)
    joints = compiled.tables.joints
    if compiled.model.joints:
        value, speed = state.coordinate.copy(), np.zeros(len(joints.default))
        for given, array in ((coordinates or {}, value), (speeds or {}, speed)):
            for name, number in given.items():
                if name not in compiled.coordinate_index:
                    raise ModelError(unknown_name("coordinate", name, compiled.coordinate_index))
                array[compiled.coordinate_index[name]] = number
        poses_from_coordinates(joints, value, speed, state.position, state.quaternion, state.twist)
        state.coordinate[:] = value
    elif coordinates or speeds:
        name = next(iter(coordinates or speeds or {}))
        raise ModelError(unknown_name("coordinate", name, ()))
    for name, twist in (twists or {}).items():
        if name not in compiled.body_index:
            raise ModelError(unknown_name("body", name, compiled.body_index))
        state.twist[compiled.body_index[name]] = twist
    return state


def simulate(
    model: Model,
    *,
    duration: float,
    step: float = 1 / 240,
    coordinates: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
    drives: Sequence[Drive] = (),
    forces: Sequence[AppliedForce] = (),
    settings: SolverSettings | None = None,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
    before_step: Callable[[Simulation], None] | None = None,
) -> xarray.Dataset:
    """What the model does in `duration` [s], recorded every `every` steps, as a labelled dataset.

    Args:
        model: bodies, joints and ground.
        duration: [s].
        step: [s].
        coordinates: where coordinates start [rad or m]; others at their defaults.
        speeds: how fast they start.
        twists: velocity [m/s] and spin [rad/s] a body starts with, world axes; these win over `speeds`.
        drives: what pulls coordinates.
        forces: what pushes bodies.
        settings: of the solver.
        every: steps between two records.
        progress: called now and then with the share done, 0 to 1.
        before_step: called before every step, to change state or inputs.
    """
    check_step(step)
    steps = count_steps(duration, step)
    if every < 1:
        raise SettingsError(f"every is {every}; it must be 1 or larger")
    compiled = compile_model(model, step=step, settings=settings, drives=drives)
    state = initial_state(compiled, coordinates=coordinates, velocities=speeds, twists=twists)
    simulation = Simulation(compiled, state, make_inputs(compiled, drives=drives, forces=forces))
    frames = steps // every
    record = make_record(compiled, frames + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    chunk = max(1, int(CHUNK_SECONDS / step))
    while simulation.index < steps:
        more = min(chunk, steps - simulation.index)
        if before_step is not None:
            before_step(simulation)
            more = 1
        simulation.advance(more, record, record_every=every, frame=1 + simulation.index // every)
        if progress is not None and (simulation.index % chunk == 0 or simulation.index == steps):
            progress(simulation.index / steps)
    return to_dataset(compiled, record, step * every * np.arange(frames + 1, dtype=np.float64))


def count_steps(duration: float, step: float) -> int:
    """Steps [s] in a duration [s]."""
    if not 0.0 < duration < np.inf:
        raise SettingsError(f"duration is {duration} s; it must be larger than 0 and finite")
    steps = round(duration / step)
    if not 1 <= steps <= MAX_STEPS:
        raise SettingsError(
            f"duration {duration} s at a step of {step} s makes {steps} steps; allowed: 1 to {MAX_STEPS}"
        )
    return steps


def to_dataset(compiled: CompiledModel, record: Record, time: Floats) -> xarray.Dataset:
    """The record as a dataset with names, units and frames."""
    import xarray

    model, h = compiled.model, compiled.step
    pose, twist = record.pose, record.twist
    rotation = measure.rotation_matrices(pose[..., 3:])
    origin = pose[..., :3] - np.einsum("fbij,bj->fbi", rotation, compiled.center_of_mass)
    values, speeds = measure.coordinates_and_velocities(compiled, pose, twist)
    linear, angular = measure.momentum(compiled, pose, twist)
    force = record.ground[..., :3] / h
    with np.errstate(invalid="ignore", divide="ignore"):
        pressure = np.where(record.ground[..., 6:] > 0.0, record.ground[..., 3:6] / record.ground[..., 6:], np.nan)
    driven = compiled.tables.joints.drive_row
    drive = np.zeros_like(values)
    drive[:, driven >= 0] = record.impulse[:, driven[driven >= 0]] / h
    units = ["rad" if coordinate.rotational else "m" for coordinate in model.coordinates]
    angle, effort = _mixed(units, "rad", "m"), _mixed(units, "N m", "N")
    variables = {
        "body_position": (("time", "body", "axis"), origin, "m", "world; origin of the body frame"),
        "body_orientation": (("time", "body", "component"), pose[..., 3:], "1", "body frame to world"),
        "body_com_velocity": (("time", "body", "axis"), twist[..., :3], "m/s", "world; of the centre of mass"),
        "body_angular_velocity": (("time", "body", "axis"), twist[..., 3:], "rad/s", "world"),
        "coordinate_value": (("time", "coordinate"), values, angle, "joint"),
        "coordinate_velocity": (("time", "coordinate"), speeds, _mixed(units, "rad/s", "m/s"), "joint"),
        "torque": (("time", "coordinate"), drive, effort, "joint; on the child"),
        "ground_reaction_force": (("time", "body", "axis"), force, "N", "world; all contacts of the body"),
        "center_of_pressure": (("time", "body", "axis"), pressure, "m", "world; NaN when unloaded"),
        "kinetic_energy": (("time",), measure.kinetic_energy(compiled, pose, twist), "J", "world"),
        "potential_energy": (("time",), measure.potential_energy(compiled, pose), "J", "world; 0 at the origin"),
        "center_of_mass": (("time", "axis"), measure.center_of_mass(compiled, pose), "m", "world"),
        "linear_momentum": (("time", "axis"), linear, "kg m/s", "world"),
        "angular_momentum": (("time", "axis"), angular, "kg m^2/s", "world; about the origin"),
        "joint_gap": (("time",), measure.joint_gap(compiled, pose), "m", "widest gap of a joint"),
        "solver_iterations": (("time",), record.solver_stats[:, 0], "1", "Newton iterations of the step"),
        "friction_solves": (("time",), record.solver_stats[:, 1], "1", "solves for the friction bounds"),
        "solver_status": (
            ("time",),
            record.solver_stats[:, 3],
            "1",
            "0: solved; 8: friction bounds unsettled; 16: joints left open",
        ),
    }
    return xarray.Dataset(
        {name: (dims, data, {"units": unit, "frame": frame}) for name, (dims, data, unit, frame) in variables.items()},
        coords={
            "time": ("time", time, {"units": "s"}),
            "body": [body.name for body in model.bodies],
            "axis": ["x", "y", "z"],
            "component": ["w", "x", "y", "z"],
            "coordinate": [coordinate.name for coordinate in model.coordinates],
            "coordinate_unit": ("coordinate", units),
        },
        attrs={
            "model": model_to_text(model),
            "step_s": h,
            "version": _version(),
            "settings": json.dumps(asdict(compiled.settings)),
            "notes": "; ".join((*model.notes, *compiled.notes)),
        },
    )


def _mixed(units: Sequence[str], turning: str, sliding: str) -> str:
    kinds = {turning if unit == "rad" else sliding for unit in units}
    return kinds.pop() if len(kinds) == 1 else f"{turning} or {sliding}"


def _version() -> str:
    try:
        return version("borelli")
    except PackageNotFoundError:
        return "0"

"""Forward simulation of a model, returned as one labeled dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.kernels.array_checks import as_floats, as_number, check_integer
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.formats.native import model_to_text
from borelli.model.model import Model
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics import diagnostics
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.arrays.indices import (
    FRICTION_SOLVES,
    GROUND_MOMENT,
    GROUND_POINT,
    GROUND_WEIGHT,
    NEWTON_ITERATIONS,
    STATUS,
)
from borelli.physics.force_elements.elements import DriveSchedule, ForceElement
from borelli.physics.force_elements.evaluate import ElementInputs, Elements, placeholder_forces
from borelli.physics.force_elements.sensors import Sensor, add_sensors, check_sensors
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.joint_closing import JOINTS_LEFT_OPEN
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.run_soft_steps import Record, Simulation, make_record
from borelli.physics.soft_step import ENERGY_NOT_KEPT
from borelli.physics.solver_settings import SolverSettings, check_step
from borelli.physics.state import Inputs, State, make_inputs, make_state

if TYPE_CHECKING:
    import xarray

    from borelli.physics.muscle_step.excitation_table import ExcitationInput
    from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation

Floats = NDArray[np.float64]

CHUNK_SECONDS = 0.2
"""Simulated time between two reports of progress [s]."""
MAX_STEPS = 2_000_000_000
"""Maximum number of steps of a run."""
STATUS_MEANING = "0: solved, or a sum of 8: friction bounds not converged; 16: joints left open; 32: energy not kept"
JOINT_GAP_LIMIT = 1e-4
"""Gap of a hard joint [m] above which the result has a warning."""


def initial_state(
    compiled: CompiledModel,
    *,
    coordinates: Mapping[str, float] | None = None,
    velocities: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
) -> State:
    """Return a state with given coordinates [rad or m] and velocities; `twists` [m/s, rad/s] take precedence.

    Raises:
        ModelError: A coordinate or body is unknown.
        SettingsError: A value is not finite, or a twist does not have six numbers.
    """
    state = make_state(compiled)
    joints = compiled.tables.joints
    if compiled.model.joints:
        value, speed = state.coordinate.copy(), np.zeros(len(joints.default))
        for given, array in ((coordinates or {}, value), (velocities or {}, speed)):
            for name, number in given.items():
                if name not in compiled.coordinate_index:
                    raise ModelError(unknown_name("coordinate", name, compiled.coordinate_index))
                array[compiled.coordinate_index[name]] = as_number(f"initial value of {name!r}", number)
        poses_from_coordinates(joints, value, speed, state.position, state.quaternion, state.twist)
        state.coordinate[:] = value
    elif coordinates or velocities:
        name = next(iter(coordinates or velocities or {}))
        raise ModelError(unknown_name("coordinate", name, ()))
    for name, twist in (twists or {}).items():
        if name not in compiled.body_index:
            raise ModelError(unknown_name("body", name, compiled.body_index))
        state.twist[compiled.body_index[name]] = as_floats(f"initial twist of {name!r}", twist, (6,))
    return state


def simulate(
    model: Model,
    *,
    duration: float,
    step: float = 1 / 240,
    initial_coordinates: Mapping[str, float] | None = None,
    initial_velocities: Mapping[str, float] | None = None,
    initial_twists: Mapping[str, Sequence[float]] | None = None,
    drives: Sequence[Drive] = (),
    forces: Sequence[AppliedForce] = (),
    elements: Sequence[ForceElement] = (),
    schedules: Sequence[DriveSchedule] = (),
    sensors: Sequence[Sensor] = (),
    excitations: ExcitationInput | None = None,
    settings: SolverSettings | None = None,
    record_every: int = 1,
    progress: Callable[[float], None] | None = None,
    before_step: Callable[[Simulation], None] | None = None,
) -> xarray.Dataset:
    """Simulate the model for `duration` seconds and return a labeled dataset.

    Args:
        model: Model to simulate.
        duration: Simulated time [s].
        step: Time step [s].
        initial_coordinates: Initial values of coordinates [rad or m]. Default: the defaults of the model.
        initial_velocities: Initial velocities of coordinates [rad/s or m/s]. Default: 0.
        initial_twists: Initial velocity [m/s] and angular velocity [rad/s] of bodies, world axes; they replace those
            from `initial_velocities`.
        drives: Joint drives.
        forces: Applied forces.
        elements: Springs, bushings, force tables and force functions, evaluated at the start of each step.
        schedules: Targets, gains and offsets of drives over time.
        sensors: Virtual sensors, whose readings are added to the dataset.
        excitations: Excitations of muscles, 0 to 1: a table (`Excitations`), one number for all muscles, or by name a
            number, a function of times [s] or an array of values at the ends of all steps; muscles without one are not
            excited and stay at their minimum activation. Muscles start at their default activations. Default: muscles
            and ligaments exert no force.
        settings: Settings of the solver.
        record_every: Number of steps between two recorded frames.
        progress: Called at intervals with the fraction done, 0 to 1.
        before_step: Called before every step; may change state or inputs.

    Returns:
        Dataset with poses, velocities, coordinates, forces and energies over time; each variable has its unit. With
        excitations, `muscle_force`, `muscle_activation`, `fiber_length` and others per muscle.

    Raises:
        ModelError: The model is invalid, has no muscles or ligaments to excite, or a coordinate or body is unknown.
        SettingsError: Duration, step, an excitation or another setting is out of range, or a muscle is unknown.
        DivergedError: The rows of a step have no solution, or a muscle has no equilibrium.

    Examples:
        >>> result = bo.simulate(bo.gallery_scene("pendulum").model, duration=1.0, initial_coordinates={"pivot": 0.6})
        >>> energy = result["kinetic_energy"] + result["potential_energy"]
        >>> abs(float(energy[-1] - energy[0])) < 0.01  # J
        True
    """
    check_step(step)
    steps = count_steps(duration, step)
    check_integer("record_every", record_every, 1)
    ensure_compiled()
    compiled = compile_model(model, step=step, settings=settings, drives=drives)
    state = initial_state(
        compiled, coordinates=initial_coordinates, velocities=initial_velocities, twists=initial_twists
    )
    check_sensors(model, sensors)
    acting = Elements(model, elements)
    inputs = make_inputs(compiled, drives=drives, forces=(*forces, *placeholder_forces(model, elements)))
    written = ElementInputs(acting, inputs, step, drives, schedules) if elements or schedules else None
    frames = steps // record_every
    muscles = _with_muscles(compiled, state, inputs, excitations, steps, frames) if excitations is not None else None
    simulation = muscles or Simulation(compiled, state, inputs)
    record = make_record(compiled, frames + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    chunk = max(1, int(CHUNK_SECONDS / step))
    while simulation.index < steps:
        more = min(chunk, steps - simulation.index)
        if before_step is not None:
            before_step(simulation)
            more = 1
        if written is not None:
            written.write(state)
            more = 1
        simulation.advance(more, record, record_every=record_every, frame=1 + simulation.index // record_every)
        if progress is not None and (simulation.index % chunk == 0 or simulation.index == steps):
            progress(simulation.index / steps)
    data = to_dataset(compiled, record, step * record_every * np.arange(frames + 1, dtype=np.float64))
    data = data if muscles is None else muscles.add_to(data)
    return add_sensors(acting.add_to(with_forces(data, model, forces), record.pose, record.twist), model, sensors)


def with_forces(data: xarray.Dataset, model: Model, forces: Sequence[AppliedForce]) -> xarray.Dataset:
    """Return the dataset with its applied forces as an attribute, for drawings; those that never end are left out."""
    centers = {body.name: body.center_of_mass for body in model.bodies}
    listed = [
        {"body": one.body, "force": list(one.force), "point": list(one.point or centers[one.body]),
         "start": one.start, "end": one.end}
        for one in forces
        if one.end < np.inf
    ]  # fmt: skip
    return data.assign_attrs(applied_forces=json.dumps(listed)) if listed else data


def _with_muscles(
    compiled: CompiledModel, state: State, inputs: Inputs, excitations: ExcitationInput, steps: int, frames: int
) -> MuscleSimulation:
    """Return a simulation with muscles and their record after the first frame."""
    from borelli.physics.muscle_step.arrays import make_muscle_tables
    from borelli.physics.muscle_step.excitation_table import make_excitation_table
    from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation

    table = make_excitation_table(compiled.model, excitations, step=compiled.step, steps=steps)
    simulation = MuscleSimulation(compiled, state, inputs, make_muscle_tables(compiled, table))
    simulation.start_record(frames + 1)
    return simulation


def count_steps(duration: float, step: float) -> int:
    """Return the number of steps [s] in a duration [s]."""
    if not 0.0 < duration < np.inf:
        raise SettingsError(f"duration: {duration} s. It must be larger than 0 and finite.")
    steps = round(duration / step)
    if not 1 <= steps <= MAX_STEPS:
        raise SettingsError(
            f"duration: {duration} s at a step of {step} s are {steps} steps (allowed: 1 to {MAX_STEPS}). Change the "
            "duration or the step."
        )
    return steps


def to_dataset(compiled: CompiledModel, record: Record, time: Floats) -> xarray.Dataset:
    """Return the record as a dataset with names, units and frames."""
    import xarray

    model, h = compiled.model, compiled.step
    pose, twist = record.pose, record.twist
    rotation = rotation_matrix(pose[..., 3:])
    origin = pose[..., :3] - np.einsum("fbij,bj->fbi", rotation, compiled.center_of_mass)
    values, speeds = diagnostics.coordinates_and_velocities(compiled, pose, twist)
    linear, angular = diagnostics.momentum(compiled, pose, twist)
    drive = diagnostics.generalized_drive_forces(compiled, record.impulse, values - h * speeds)
    units = ["rad" if coordinate.rotational else "m" for coordinate in model.coordinates]
    angle, force_unit = _mixed(units, "rad", "m"), _mixed(units, "N m", "N")
    variables = {
        "body_position": (("time", "body", "axis"), origin, "m", "world; origin of the body frame"),
        "body_orientation": (("time", "body", "quaternion"), pose[..., 3:], "1", "body frame to world"),
        "body_com_velocity": (("time", "body", "axis"), twist[..., :3], "m/s", "world; of the center of mass"),
        "body_angular_velocity": (("time", "body", "axis"), twist[..., 3:], "rad/s", "world"),
        "coordinate_value": (("time", "coordinate"), values, angle, "joint"),
        "coordinate_velocity": (("time", "coordinate"), speeds, _mixed(units, "rad/s", "m/s"), "joint"),
        "torque": (("time", "coordinate"), drive, force_unit, "joint; on the child"),
        **_contact_variables(record.ground, len(model.bodies), h),
        "kinetic_energy": (("time",), diagnostics.kinetic_energy(compiled, pose, twist), "J", "world"),
        "potential_energy": (("time",), diagnostics.potential_energy(compiled, pose), "J", "world; 0 at the origin"),
        "center_of_mass": (("time", "axis"), diagnostics.center_of_mass(compiled, pose), "m", "world"),
        "linear_momentum": (("time", "axis"), linear, "kg m/s", "world"),
        "angular_momentum": (("time", "axis"), angular, "kg m^2/s", "world; about the origin"),
        "joint_gap": (("time",), diagnostics.joint_gap(compiled, pose), "m", "largest gap of a joint"),
        "solver_iterations": (("time",), record.solver_stats[:, NEWTON_ITERATIONS], "1", "Newton iterations"),
        "friction_solves": (("time",), record.solver_stats[:, FRICTION_SOLVES], "1", "solves for the friction bounds"),
        "solver_status": (("time",), record.solver_stats[:, STATUS], "1", STATUS_MEANING),
    }
    return xarray.Dataset(
        {name: (dims, data, {"units": unit, "frame": frame}) for name, (dims, data, unit, frame) in variables.items()},
        coords={
            "time": ("time", time, {"units": "s"}),
            "body": [body.name for body in model.bodies],
            "axis": ["x", "y", "z"],
            "quaternion": ["w", "x", "y", "z"],
            "coordinate": [coordinate.name for coordinate in model.coordinates],
            "coordinate_units": ("coordinate", units),
        },
        attrs={
            "model": model_to_text(model),
            "step_s": h,
            "version": _version(),
            "settings": json.dumps(asdict(compiled.settings)),
            "notes": "; ".join((*model.notes, *compiled.notes, *_warnings(compiled, record))),
        },
    )


def _contact_variables(record: Floats, bodies: int, h: float) -> dict[str, Any]:
    """Return the forces of contacts with the ground, and of those with other bodies, from `Record.ground`."""
    dims, result = ("time", "body", "axis"), {}
    for force, center, moment, part, other in (
        ("ground_reaction_force", "center_of_pressure", "ground_reaction_moment", slice(0, bodies), "the ground"),
        ("contact_force", "contact_center", "contact_moment", slice(bodies, None), "other bodies"),
    ):
        one = record[:, part]
        weight = one[..., GROUND_WEIGHT : GROUND_WEIGHT + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            point = np.where(weight > 0.0, one[..., GROUND_POINT:GROUND_WEIGHT] / weight, np.nan)
        result[force] = dims, one[..., :3] / h, "N", f"world; of {other} on the body"
        result[center] = dims, point, "m", "world; NaN when unloaded"
        moment_frame = f"world; of {other} on the body, about the origin"
        result[moment] = dims, one[..., GROUND_MOMENT:] / h, "N m", moment_frame
    return result


def _warnings(compiled: CompiledModel, record: Record) -> list[str]:
    """Return warnings about joints that opened and energy that was not kept, in sentences."""
    status, warnings = record.solver_stats[:, STATUS], []
    gap = diagnostics.joint_gap(compiled, record.pose, only_hard=True)
    largest, left_open = float(gap.max(initial=0.0)), int((status & JOINTS_LEFT_OPEN > 0).sum())
    if left_open:
        warnings.append(
            f"Joints were left open, by up to {1e3 * largest:.2g} mm, in {left_open} of the recorded steps. Shorten "
            "the step."
        )
    elif largest > JOINT_GAP_LIMIT:
        opened = int((gap > JOINT_GAP_LIMIT).sum())
        warnings.append(
            f"Joints opened by up to {1e3 * largest:.2g} mm, more than {1e3 * JOINT_GAP_LIMIT:g} mm in {opened} of the "
            "recorded steps. Shorten the step."
        )
    lost = int((status & ENERGY_NOT_KEPT > 0).sum())
    if lost:
        warnings.append(
            f"Energy was only prevented from rising, not kept, in {lost} of the recorded steps. Shorten the step."
        )
    return warnings


def _mixed(units: Sequence[str], rotational: str, translational: str) -> str:
    kinds = {rotational if unit == "rad" else translational for unit in units}
    return kinds.pop() if len(kinds) == 1 else f"{rotational} or {translational}"


def _version() -> str:
    try:
        return version("borelli")
    except PackageNotFoundError:
        return "0"

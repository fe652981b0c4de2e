"""Tracking of targets by controlled joints; the result is one labeled dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.control_arrays import ControlArrays
from borelli.control.controls import Control, check_controls
from borelli.control.muscle_actuation.actuator import MuscleActuator
from borelli.control.muscle_actuation.muscle_record import MuscleRecord
from borelli.control.muscle_actuation.settings import MuscleActuation
from borelli.control.pd_tracking import track_with_springs
from borelli.control.self_collision import without_pairs
from borelli.errors import SettingsError, unknown_name
from borelli.kernels.array_checks import as_number, check_integer
from borelli.model.model import Model
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.force_elements.elements import ForceElement
from borelli.physics.force_elements.evaluate import ElementInputs, Elements, placeholder_forces
from borelli.physics.force_elements.sensors import Sensor, add_sensors, check_sensors
from borelli.physics.impulse_step.arrays import Controls, compile_impulse
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.inputs import AppliedForce
from borelli.physics.muscle_step.arrays import make_muscle_tables
from borelli.physics.muscle_step.excitation_table import ExcitationInput, make_excitation_table
from borelli.physics.muscle_step.run_muscle_steps import MuscleImpulseSimulation
from borelli.physics.run_soft_steps import Record, make_record
from borelli.physics.simulate import count_steps, initial_state, to_dataset, with_forces
from borelli.physics.solver_settings import SolverSettings, check_step
from borelli.physics.state import State, make_inputs

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

METHODS = {
    "impulse": "impulse-based PD: joints end each step where their response prescribes",
    "traditional": "springs and dampers with torques of the step's start",
    "stable": "springs and dampers with torques of the step's end",
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
    initial_coordinates: Mapping[str, float] | None = None,
    initial_velocities: Mapping[str, float] | None = None,
    initial_twists: Mapping[str, Sequence[float]] | None = None,
    outside: Sequence[str] = (),
    no_contact: Sequence[tuple[str, str]] = (),
    actuation: MuscleActuation | None = None,
    contact_compliance: float | Mapping[str, float] | None = None,
    forces: Sequence[AppliedForce] = (),
    elements: Sequence[ForceElement] = (),
    sensors: Sequence[Sensor] = (),
    excitations: ExcitationInput | None = None,
    settings: SolverSettings | None = None,
    steer: Callable[[State, float], None] | None = None,
    record_every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """Simulate a model for `duration` seconds while controls track targets.

    A ball joint that is controlled about all three axes is rotated as one: its force limits act along the child's joint
    axes. The reported torque is the generalized force on its angles.

    Args:
        model: Bodies, joints and ground.
        controls: Controls; coordinates without one move freely.
        duration: Simulated time [s].
        step: Step length [s].
        method: One of `METHODS`.
        initial_coordinates: Initial values by coordinate [rad or m], others at their defaults, at rest. None:
            controlled coordinates start at their targets and move with them.
        initial_velocities: Initial velocities by coordinate [rad/s or m/s].
        initial_twists: Initial velocity [m/s] and angular velocity [rad/s] by body, world axes; these override
            `initial_velocities`.
        outside: Bodies that are unknown to the controller: it does not support their weight.
        no_contact: Pairs of bodies that do not collide with each other, with method "impulse".
        actuation: Muscles that act in place of the torques of controls. Default: torques.
        contact_compliance: Contacts are known to the controller, which supports the weight on them, and controls yield
            by this much [rad/s per N m s, or m/s per N s], one number or by coordinate: where contacts close loops, it
            selects the least of all torques with the same motion. 0.01 suits a standing human; at 0.001 a body that is
            pushed rocks on its feet. Default: contacts are unknown, and controls yield to them.
        forces: Forces applied to bodies.
        elements: Springs, bushings, force tables and force functions, with method "impulse", evaluated at the start of
            each step.
        sensors: Virtual sensors, whose readings are added to the dataset.
        excitations: Excitations of muscles as of `simulate`, with method "impulse"; the controller knows their forces,
            as it knows gravity. Default: muscles and ligaments exert no force.
        settings: Solver settings.
        steer: Called before each step with the state and the time [s]; it may move kinematic bodies.
        record_every: Steps between two records.
        progress: Called with the fraction done, 0 to 1.

    Returns:
        A dataset as of `simulate`, with `coordinate_target` and `coordinate_error` (time, coordinate) [rad or m], NaN
        where nothing is controlled; `torque` is that of the controls [N m or N]. With muscles also
        `muscle_activation`, `muscle_force` [N] (time, muscle); `required_torque` (of the controls), `reserve_torque`
        and `unattained_torque`, which was not applied (time, coordinate); `torque` is then that of muscles and
        reserves.

    Raises:
        SettingsError: Controls, targets or settings are not valid.
        DivergedError: A step has no solution.

    Examples:
        >>> from borelli.control import keyframes, make_controls
        >>> model = bo.gallery_scene("pendulum").model
        >>> targets = keyframes(model, [0.0, 1.0], {"pivot": [1.0, 1.0]})
        >>> controls = make_controls(targets, bo.PD.from_settling_time(0.2))
        >>> result = bo.track_targets(model, controls, duration=1.0, initial_coordinates={"pivot": 0.0})
        >>> abs(float(result["coordinate_error"][-1, 0])) < 0.01  # rad
        True
    """
    if method not in METHODS:
        raise SettingsError(f"track_targets: {unknown_name('method', method, METHODS)}")
    check_step(step)
    check_controls(model, controls)
    check_sensors(model, sensors)
    steps = count_steps(duration, step)
    check_integer("record_every", record_every, 1)
    arrays = ControlArrays(model, controls, step, steps)
    options: dict[str, Any] = {
        "initial_velocities": initial_velocities, "initial_twists": initial_twists, "forces": forces,
        "settings": settings, "steer": steer, "record_every": record_every, "progress": progress,
    }  # fmt: skip
    if method == "impulse":
        own: dict[str, Any] = {
            "outside": outside, "no_contact": no_contact, "actuation": actuation,
            "contact_compliance": contact_compliance, "excitations": excitations, "elements": elements,
        }  # fmt: skip
        simulation, record, muscles = _track_with_impulses(arrays, initial_coordinates, **own, **options)
        time = step * record_every * np.arange(len(record.pose), dtype=np.float64)
        data = to_dataset(simulation.compiled, record, time)
        data = Elements(model, elements).add_to(data, record.pose, record.twist)
        data = simulation.add_to(data) if isinstance(simulation, MuscleImpulseSimulation) else data
        data = data if muscles is None else muscles.add_to(data)
    else:
        for name, value in (
            ("outside", outside), ("no_contact", no_contact), ("actuation", actuation),
            ("contact_compliance", contact_compliance), ("excitations", excitations), ("elements", elements),
        ):  # fmt: skip
            if value is not None and value not in ((), []):
                raise SettingsError(f"{name}: Method {method!r} does not support it. Use method='impulse'.")
        initial = arrays.initial_state()[0] if initial_coordinates is None else initial_coordinates
        data = track_with_springs(
            model, arrays.gains(), arrays.value[1:], step=step, implicit=method == "stable",
            initial_coordinates=initial, max_forces=arrays.max_forces(), **options,
        )  # fmt: skip
    return _with_controls(
        add_sensors(with_forces(data, model, forces), model, sensors),
        arrays.value[1 : steps + 2 : record_every],
        arrays.acting,
    )


def _track_with_impulses(
    arrays: ControlArrays,
    initial_coordinates: Mapping[str, float] | None,
    *,
    outside: Sequence[str],
    no_contact: Sequence[tuple[str, str]],
    actuation: MuscleActuation | None,
    contact_compliance: float | Mapping[str, float] | None,
    excitations: ExcitationInput | None,
    elements: Sequence[ForceElement],
    initial_velocities: Mapping[str, float] | None,
    initial_twists: Mapping[str, Sequence[float]] | None,
    forces: Sequence[AppliedForce],
    settings: SolverSettings | None,
    steer: Callable[[State, float], None] | None,
    record_every: int,
    progress: Callable[[float], None] | None,
) -> tuple[ImpulseSimulation, Record, MuscleRecord | None]:
    if actuation is not None and excitations is not None:
        raise SettingsError("excitations: Muscles that act in place of torques have none. Pass only one of both.")
    step, steps = arrays.step, arrays.steps
    compiled, tables = compile_impulse(
        arrays.model, step=step, controlled=arrays.responses(limited=actuation is not None), outside=outside,
        settings=settings,
    )  # fmt: skip
    compiled = without_pairs(compiled, no_contact)
    if contact_compliance is not None:
        _set_compliance(compiled, tables, contact_compliance, outside)
    values, velocities = arrays.initial_state() if initial_coordinates is None else (initial_coordinates, {})
    velocities = velocities | dict(initial_velocities or {})
    state = initial_state(compiled, coordinates=values, velocities=velocities, twists=initial_twists)
    inputs = make_inputs(compiled, forces=(*forces, *placeholder_forces(arrays.model, elements)))
    written = ElementInputs(Elements(arrays.model, elements), inputs, step) if elements else None
    targets = arrays.target_trajectory(compiled, tables)
    if excitations is None:
        simulation = ImpulseSimulation(compiled, state, inputs, tables, targets)
    else:
        table = make_excitation_table(arrays.model, excitations, step=step, steps=steps)
        muscle_tables = make_muscle_tables(compiled, table)
        simulation = MuscleImpulseSimulation(compiled, state, inputs, tables, targets, muscle_tables)
        simulation.start_record(steps // record_every + 1)
    if initial_coordinates is None:
        simulation.start_on_targets()
    record = make_record(compiled, steps // record_every + 1)
    muscles: MuscleRecord | None = None
    if actuation is not None:
        muscles = MuscleRecord(MuscleActuator(simulation, actuation), len(record.pose), record_every)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    respond = arrays.response_callback(compiled) if tables.callback_response.any() else None
    every_step = steer is not None or muscles is not None or written is not None
    chunk = 1 if every_step else max(1, int(CHUNK_SECONDS / step))
    while simulation.index < steps:
        if steer is not None:
            steer(state, step * simulation.index)
        if written is not None:
            written.write(state)
        count = min(chunk, steps - simulation.index)
        frame = 1 + simulation.index // record_every
        simulation.advance_impulses(
            count, record, record_every=record_every, frame=frame, respond=respond,
            actuators=muscles,
        )  # fmt: skip
        if muscles is not None:
            muscles.actuator.after_step()
        if progress is not None:
            progress(simulation.index / steps)
    return simulation, record, muscles


def _set_compliance(
    compiled: CompiledModel, tables: Controls, given: float | Mapping[str, float], outside: Sequence[str]
) -> None:
    """Let the controls know contacts, with compliances of their own."""
    if outside:
        raise SettingsError("outside: Bodies cannot be unknown to a controller that knows contacts. Pass only one.")
    every = [compiled.model.coordinates[i].name for i in tables.every]
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(every, given)
    for name in every:
        if name not in by_name:
            raise SettingsError(f"contact_compliance: Controlled coordinate {name!r} has none. Pass a value for it.")
        value = as_number(f"contact_compliance of {name!r}", by_name[name])
        if not value > 0.0:
            raise SettingsError(f"contact_compliance: That of {name!r} is {value:g}. Pass a positive number.")
        tables.compliance[compiled.coordinate_index[name]] = value
    tables.knows_contacts[0] = 1


def _with_controls(data: xarray.Dataset, target: Array, acting: Mapping[str, Control]) -> xarray.Dataset:
    """Add targets and the forces of controls to the dataset."""
    controlled = np.array([name in acting for name in data["coordinate"].values], bool)
    value, torque, dims = data["coordinate_value"], data["torque"], ("time", "coordinate")
    frame = {"frame": "joint; NaN where nothing is controlled"}
    return data.assign(
        coordinate_target=(dims, target, value.attrs | frame),
        coordinate_error=(dims, value.values - target, value.attrs | frame),
        torque=(dims, np.where(controlled, torque.values, 0.0), torque.attrs),
    )

"""State of a simulation (all that is needed to continue a run with the same bits) and its inputs as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_floats, as_indices, as_number, check_arrays, check_integer, optional_rows
from borelli.model.model import Model
from borelli.model.transforms import orientation_matrix
from borelli.physics.arrays.compile_model import MIN_SLOPE, CompiledModel
from borelli.physics.inputs import AppliedForce, Drive, check_drive
from borelli.physics.rows.coordinate_rows import Drives, make_drives

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class State(NamedTuple):
    """State of a simulation: bodies by index, contact slots as in `ShapeTables`."""

    position: Floats
    """(n, 3) centers of mass, world [m]."""
    quaternion: Floats
    """(n, 4) body frame to world."""
    twist: Floats
    """(n, 6) velocity of the center of mass [m/s] and angular velocity [rad/s], world."""
    coordinate: Floats
    """(q,) last values: they count full revolutions."""
    active_piece: Integers
    """(rows,) active piece of the law of each persistent row: the warm start."""
    slot_step: Integers
    """(slots,) last step in which the contact existed."""
    slot_active_piece: Integers
    """(slots, 6) active pieces of the laws of its rows."""
    slot_normal_impulse: Floats
    """(slots,) normal impulse [N s]."""
    slot_tangent: Floats
    """(slots, 3) direction of its first tangent, world."""
    clock: Integers
    """(1,) number of steps made."""
    muscle: Floats
    """(muscles, 3) activation, fiber length [m] and path length [m] at the start of the last step; a fiber length of 0
    means that the fiber starts in equilibrium."""
    wrap_start: Floats
    """(wraps, 8) geodesics of muscle paths at the start of the last step: first guesses of the next."""

    def __repr__(self) -> str:
        return fields_repr(self)

    def copy(self) -> State:
        """Return a snapshot that `restore` takes."""
        return State._make(array.copy() for array in self)

    def restore(self, saved: State) -> None:
        """Write a snapshot to this state.

        Raises:
            SettingsError: The snapshot is of another model.
        """
        check_arrays("saved state", saved, self)
        for array, saved_array in zip(self, saved, strict=True):
            array[...] = saved_array


class AppliedForces(NamedTuple):
    """Applied forces, one entry each."""

    body: Integers
    force: Floats
    torque: Floats
    arm: Floats
    """(f, 3) from the center of mass to the point of application, body axes [m]."""
    span: Floats
    """(f, 2) start and end [s]."""


class Inputs(NamedTuple):
    """Inputs of a run; arrays with a time axis may be empty."""

    drives: Drives
    drive_target: Floats
    """(steps or 0, q) target of each coordinate at each step, instead of the drives' targets."""
    marker: Floats
    """(frames or 0, m, 3) measured positions of markers; NaN where missing."""
    pose: Floats
    """(frames or 0, n, 7) centers of mass and quaternions that drives, residuals and kinematic bodies track."""
    substeps: Integers
    """(1,) steps per frame of `marker` and `pose`."""
    applied_forces: AppliedForces
    body_wrench: Floats
    """(n, 6) force [N] and torque [N m] on every body at its center of mass, world axes; muscles write it."""


def make_state(compiled: CompiledModel) -> State:
    """Return the state of the model in its reference configuration, at rest."""
    model, tables = compiled.model, compiled.tables
    count, slots = len(model.bodies), int(tables.shapes.pair_first[-1])
    quaternion = np.array([body.frame.orientation for body in model.bodies], float).reshape(-1, 4)
    origin = np.array([body.frame.position for body in model.bodies], float).reshape(-1, 3)
    offset = [orientation_matrix(tuple(q)) @ c for q, c in zip(quaternion, compiled.center_of_mass, strict=True)]
    rows = len(compiled.rows.entries)
    return State(
        position=origin + np.array(offset).reshape(-1, 3),
        quaternion=quaternion.copy(),
        twist=np.zeros((count, 6)),
        coordinate=tables.joints.default.copy(),
        active_piece=np.ones(rows, np.int64),
        slot_step=np.full(slots, -2, np.int64),
        slot_active_piece=np.zeros((slots, 6), np.int64),
        slot_normal_impulse=np.zeros(slots),
        slot_tangent=np.zeros((slots, 3)),
        clock=np.zeros(1, np.int64),
        muscle=_resting_muscles(model),
        wrap_start=np.zeros((_count_wraps(model), 8)),
    )


def _count_wraps(model: Model) -> int:
    """Return the number of wraps of all muscles and ligaments."""
    return sum(len(muscle.wraps) for muscle in model.muscles) + sum(len(one.wraps) for one in model.ligaments)


def _resting_muscles(model: Model) -> Floats:
    """Return muscles at their default activations; fibers are in equilibrium."""
    muscle = np.zeros((len(model.muscles), 3))
    muscle[:, 0] = [one.default_activation for one in model.muscles]
    return muscle


def make_inputs(
    compiled: CompiledModel,
    *,
    drives: Sequence[Drive] = (),
    forces: Sequence[AppliedForce] = (),
    drive_target: Floats | None = None,
    marker: Floats | None = None,
    pose: Floats | None = None,
    substeps: int = 1,
) -> Inputs:
    """Return inputs as arrays; `drives` are those the model was compiled with.

    Raises:
        ModelError: A body or coordinate is unknown.
        SettingsError: An array has the wrong shape or type, or a value is not finite.
    """
    count, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    return Inputs(
        drives=drive_arrays(compiled, drives),
        drive_target=optional_rows("drive_target", drive_target, (coordinates,)),
        marker=optional_rows("marker", marker, (len(compiled.model.markers), 3), finite=False),
        pose=optional_rows("pose", pose, (count, 7)),
        substeps=np.array([check_integer("substeps", substeps, 1)], np.int64),
        applied_forces=_force_arrays(compiled, forces),
        body_wrench=np.zeros((count, 6)),
    )


def check_state(compiled: CompiledModel, state: State) -> None:
    """Raise SettingsError if a state is not one of this model, or not finite."""
    check_arrays("state", state, make_state(compiled))
    for name, array in zip(State._fields, state, strict=True):
        as_floats(f"state.{name}", array, array.shape)
    for name in ("active_piece", "slot_active_piece"):
        check_integer(f"state.{name}: smallest index", getattr(state, name).min(initial=0), 0)


def check_inputs(compiled: CompiledModel, inputs: Inputs) -> None:
    """Raise SettingsError if inputs are not those of this model."""
    empty = make_inputs(compiled)
    check_arrays("inputs", inputs, empty, ("drive_target", "marker", "pose", *AppliedForces._fields))
    lengths = {len(array) for array in inputs.applied_forces}
    if len(lengths) > 1:
        raise SettingsError(f"inputs.applied_forces: The arrays have lengths {sorted(lengths)}. Pass equal lengths.")


def check_input_frames(inputs: Inputs, bodies: int, steps: int) -> None:
    """Raise SettingsError if inputs are too short for steps 0 to `steps`, or an index is out of range."""
    check_integer("inputs.substeps", inputs.substeps[0], 1)
    needed = (steps - 1) // int(inputs.substeps[0]) + 2
    for name, rows in (("drive_target", steps), ("marker", needed), ("pose", needed)):
        length = len(getattr(inputs, name))
        if 0 < length < rows:
            raise SettingsError(f"inputs.{name}: It has {length} rows, but {steps} steps need {rows}. Pass more rows.")
    if len(inputs.applied_forces.body):
        as_indices("inputs.applied_forces.body", inputs.applied_forces.body, (None,), bodies)


def drive_arrays(compiled: CompiledModel, drives: Sequence[Drive]) -> Drives:
    """Return drives as arrays by coordinate."""
    arrays = make_drives(len(compiled.model.coordinates))
    h = compiled.step
    inertias = compiled.tables.bodies.inertia
    lightest = min(float(np.linalg.eigvalsh(inertia)[0]) for inertia in inertias) if drives else 1.0
    for drive in drives:
        if drive.coordinate not in compiled.coordinate_index:
            raise ModelError(f"drive: {unknown_name('coordinate', drive.coordinate, compiled.coordinate_index)}")
        drive = check_drive(drive)
        i = compiled.coordinate_index[drive.coordinate]
        spring = h * drive.stiffness + drive.damping
        arrays.target[i], arrays.velocity[i], arrays.dead_zone[i] = drive.target, drive.velocity, drive.dead_zone
        arrays.rest[i] = drive.offset * h
        arrays.lo[i], arrays.hi[i] = -drive.max_force * h, drive.max_force * h
        if drive.stiffness == inf:
            arrays.alpha[i], arrays.beta[i] = 1.0, 0.0
        elif spring > 0.0:
            arrays.alpha[i], arrays.beta[i] = h * drive.stiffness / spring, 1.0 / (h * spring)
        if drive.max_force < inf or drive.dead_zone > 0.0:
            arrays.beta[i] = max(arrays.beta[i], MIN_SLOPE / lightest)
    return arrays


def _force_arrays(compiled: CompiledModel, forces: Sequence[AppliedForce]) -> AppliedForces:
    arrays = AppliedForces(
        body=np.zeros(len(forces), np.int64),
        force=np.zeros((len(forces), 3)),
        torque=np.zeros((len(forces), 3)),
        arm=np.zeros((len(forces), 3)),
        span=np.zeros((len(forces), 2)),
    )
    for i, force in enumerate(forces):
        if force.body not in compiled.body_index:
            raise ModelError(f"applied force: {unknown_name('body', force.body, compiled.body_index)}")
        where, b = f"applied force on {force.body!r}", compiled.body_index[force.body]
        arrays.body[i] = b
        arrays.force[i] = as_floats(f"{where}: force", force.force, (3,))
        arrays.torque[i] = as_floats(f"{where}: torque", force.torque, (3,))
        if force.point is not None:
            arrays.arm[i] = as_floats(f"{where}: point", force.point, (3,)) - compiled.center_of_mass[b]
        for n, name in enumerate(("start", "end")):
            arrays.span[i, n] = as_number(f"{where}: {name}", getattr(force, name), finite=False)
    return arrays

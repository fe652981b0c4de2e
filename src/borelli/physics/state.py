"""State of a simulation (all that is needed to continue a run with the same bits) and its inputs as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, unknown_name
from borelli.model.transforms import orientation_matrix
from borelli.physics.arrays.compile_model import MIN_SLOPE, CompiledModel
from borelli.physics.inputs import AppliedForce, Drive
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

    def copy(self) -> State:
        """Return a snapshot that `restore` takes."""
        return State._make(array.copy() for array in self)

    def restore(self, saved: State) -> None:
        """Write a snapshot to this state."""
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
    )


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
    """Return inputs as arrays; `drives` are those the model was compiled with."""
    count, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    return Inputs(
        drives=drive_arrays(compiled, drives),
        drive_target=_array(drive_target, (0, coordinates)),
        marker=_array(marker, (0, len(compiled.model.markers), 3)),
        pose=_array(pose, (0, count, 7)),
        substeps=np.array([substeps], np.int64),
        applied_forces=_force_arrays(compiled, forces),
    )


def _array(given: Floats | None, empty: tuple[int, ...]) -> Floats:
    return np.zeros(empty) if given is None else np.ascontiguousarray(given, float)


def drive_arrays(compiled: CompiledModel, drives: Sequence[Drive]) -> Drives:
    """Return drives as arrays by coordinate."""
    arrays = make_drives(len(compiled.model.coordinates))
    h = compiled.step
    inertias = compiled.tables.bodies.inertia
    lightest = min(float(np.linalg.eigvalsh(inertia)[0]) for inertia in inertias) if drives else 1.0
    for drive in drives:
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
    for force in forces:
        if force.body not in compiled.body_index:
            raise ModelError(f"applied force: {unknown_name('body', force.body, compiled.body_index)}")
    body = np.array([compiled.body_index[force.body] for force in forces], np.int64)
    com = compiled.center_of_mass
    arms = [np.zeros(3) if f.point is None else np.array(f.point) - com[b] for f, b in zip(forces, body, strict=True)]
    return AppliedForces(
        body=body,
        force=np.array([force.force for force in forces], float).reshape(-1, 3),
        torque=np.array([force.torque for force in forces], float).reshape(-1, 3),
        arm=np.array(arms).reshape(-1, 3),
        span=np.array([(force.start, force.end) for force in forces], float).reshape(-1, 2),
    )

"""State: what must be saved to continue a run with the same bits. Inputs: what acts on it from outside."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, unknown_name
from borelli.model.transforms import orientation_matrix
from borelli.physics.arrays.compile_model import FLOOR, CompiledModel
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.rows.coordinate_rows import Drives, make_drives

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class State(NamedTuple):
    """Bodies by index; contact slots as in `ShapeTables`."""

    position: Floats
    """(n, 3) centres of mass, world [m]."""
    quaternion: Floats
    """(n, 4) body frame to world."""
    twist: Floats
    """(n, 6) velocity of the centre of mass [m/s] and spin [rad/s], world."""
    coordinate: Floats
    """(q,) last values: they tell full turns apart."""
    segment: Integers
    """(rows,) where each standing row's law was: the warm start."""
    slot_step: Integers
    """(slots,) last step in which the contact was there."""
    slot_active_piece: Integers
    """(slots, 6) where its rows' laws were."""
    slot_normal_impulse: Floats
    """(slots,) its normal impulse [N s]."""
    slot_tangent: Floats
    """(slots, 3) the direction of its first tangent, world."""
    clock: Integers
    """(1,) steps made."""

    def copy(self) -> State:
        """A snapshot to rewind to."""
        return State._make(array.copy() for array in self)

    def restore(self, saved: State) -> None:
        """Go back to a snapshot."""
        for mine, kept in zip(self, saved, strict=True):
            mine[...] = kept


class AppliedForces(NamedTuple):
    """Forces that act for a while, one entry each."""

    body: Integers
    force: Floats
    torque: Floats
    arm: Floats
    """(f, 3) from the centre of mass to where the force acts, body axes."""
    span: Floats
    """(f, 2) from, until [s]."""


class Inputs(NamedTuple):
    """What drives a run from outside; arrays with a time axis may be empty (nothing of that kind)."""

    drives: Drives
    drive_target: Floats
    """(steps or 0, q) target of each coordinate at each step, in place of the drives' own."""
    marker: Floats
    """(frames or 0, m, 3) where markers were; NaN when not seen."""
    pose: Floats
    """(frames or 0, n, 7) centres of mass and quaternions that drives, residuals and kinematic bodies aim at."""
    substeps: Integers
    """(1,) steps per frame of `marker` and `pose`."""
    pushes: AppliedForces


def make_state(compiled: CompiledModel) -> State:
    """The model in its reference configuration, at rest."""
    model, tables = compiled.model, compiled.tables
    count, slots = len(model.bodies), int(tables.shapes.pair_first[-1])
    quaternion = np.array([body.frame.orientation for body in model.bodies], float).reshape(-1, 4)
    origin = np.array([body.frame.position for body in model.bodies], float).reshape(-1, 3)
    turned = [orientation_matrix(tuple(q)) @ c for q, c in zip(quaternion, compiled.center_of_mass, strict=True)]
    rows = len(compiled.rows.entries)
    return State(
        position=origin + np.array(turned).reshape(-1, 3),
        quaternion=quaternion.copy(),
        twist=np.zeros((count, 6)),
        coordinate=tables.joints.default.copy(),
        segment=np.ones(rows, np.int64),
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
    """Inputs as arrays; `drives` are those the model was compiled with."""
    count, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    return Inputs(
        drives=drive_arrays(compiled, drives),
        drive_target=_array(drive_target, (0, coordinates)),
        marker=_array(marker, (0, len(compiled.model.markers), 3)),
        pose=_array(pose, (0, count, 7)),
        substeps=np.array([substeps], np.int64),
        pushes=_push_arrays(compiled, forces),
    )


def _array(given: Floats | None, empty: tuple[int, ...]) -> Floats:
    """The array as kernels take it: contiguous doubles."""
    return np.zeros(empty) if given is None else np.ascontiguousarray(given, float)


def drive_arrays(compiled: CompiledModel, drives: Sequence[Drive]) -> Drives:
    """Drives as kernels take them."""
    arrays = make_drives(len(compiled.model.coordinates))
    h = compiled.step
    inertias = compiled.tables.bodies.inertia
    lightest = min(float(np.linalg.eigvalsh(inertia)[0]) for inertia in inertias) if drives else 1.0
    for drive in drives:
        i = compiled.coordinate_index[drive.coordinate]
        spring = h * drive.stiffness + drive.damping
        arrays.target[i], arrays.velocity[i], arrays.dead_zone[i] = drive.target, drive.velocity, drive.dead_zone
        arrays.rest[i] = drive.offset * h
        arrays.lo[i], arrays.hi[i] = -drive.limit * h, drive.limit * h
        if drive.stiffness == inf:
            arrays.alpha[i], arrays.beta[i] = 1.0, 0.0
        elif spring > 0.0:
            arrays.alpha[i], arrays.beta[i] = h * drive.stiffness / spring, 1.0 / (h * spring)
        if drive.limit < inf or drive.dead_zone > 0.0:
            arrays.beta[i] = max(arrays.beta[i], FLOOR / lightest)
    return arrays


def _push_arrays(compiled: CompiledModel, forces: Sequence[AppliedForce]) -> AppliedForces:
    for force in forces:
        if force.body not in compiled.body_index:
            raise ModelError(unknown_name("body", force.body, compiled.body_index) + " (asked for by a force)")
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

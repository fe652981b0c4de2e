"""Rollout: physics steps along a recording, each with its own torques, loads and softness; the work of rows is kept.

A step changes velocities v to v+ by impulses p along rows J of the pose it starts from: M (v+ - v) = h f + J^T p.
Either side times the mean of both velocities is the change of kinetic energy, so a row's work is p J (v + v+)/2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError, SettingsError
from borelli.files.memory import check_memory
from borelli.kernels.array_checks import check_arrays, check_integer, optional_rows
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import SharedTuple, load_shared
from borelli.numerics.rotation_kernels import quaternion_product, rotate
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.indices import STEP_SIZE
from borelli.physics.function_pointers import pointers
from borelli.physics.rigid_bodies import copy_bodies
from borelli.physics.rows.contact_rows import BODY_A, CONTACTS_NOW
from borelli.physics.run_soft_steps import FAILURES, WorkOwner, record_bodies, record_poses
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED, step_by_pointer
from borelli.physics.solver.factor_arrays import IMPULSE
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED
from borelli.physics.state import Inputs, State, check_input_frames

Floats = NDArray[np.float64]

AS_GIVEN, EACH_BODY, WITH_ROOT = 0, 1, 2
"""Target poses of a step: as given; or displaced by the present tracking error of each body, or of the root."""

RECORD_NUMBERS = 60
"""Numbers for each body and step of a record and of the dataset made of it."""

ROTATION_TOLERANCE = 0.1
"""A step is repeated if a body's angular velocity differs from its target by more than this [rad/s]."""

MAX_GROWTH = 8
"""Number of times the solver's buffers are doubled before a step has failed."""


class StepInputs(NamedTuple):
    """Inputs of steps, row i for step i; an array without rows has no effect."""

    drive_force: Floats
    """(steps or 0, coordinates) force [N m or N] that drives add to that of their springs."""
    applied_force: Floats
    """(steps or 0, loads, 9) force [N], torque [N m], world axes; point relative to the center of mass, body axes."""
    marker_beta: Floats
    """(steps or 0, markers) slope beta of each marker spring [s/kg]."""
    pose: Floats
    """(steps or 0, bodies, 7) target centers of mass and quaternions at the end of each step."""
    nominal_pose: Floats
    """(steps or 0, bodies, 7) poses at the start of each step without tracking error."""


class StepRecord(NamedTuple):
    """Record of steps, row i for step i."""

    pose: Floats
    """(steps + 1, bodies, 7) before the first step and after each."""
    twist: Floats
    """(steps + 1, bodies, 6)"""
    impulse: Floats
    """(steps, persistent rows)"""
    work: Floats
    """(steps, persistent rows) [J]"""
    contact: Floats
    """(steps, bodies, 10) impulse of contacts, its moment about the center of mass; sum of normal impulses times
    points, and of normal impulses."""
    solver_stats: NDArray[np.int64]
    """(steps, 4) Newton iterations, friction solves, contacts, status."""


def make_step_inputs(
    compiled: CompiledModel,
    *,
    drive_force: Floats | None = None,
    applied_force: Floats | None = None,
    marker_beta: Floats | None = None,
    pose: Floats | None = None,
    nominal_pose: Floats | None = None,
) -> StepInputs:
    """Return the inputs as arrays; None: no such input.

    Raises:
        SettingsError: An array has the wrong shape or type, or a value is not finite.
    """
    bodies, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    loads = np.shape(applied_force)[1] if np.ndim(applied_force) == 3 else 0  # type: ignore[arg-type]
    return StepInputs(
        drive_force=optional_rows("drive_force", drive_force, (coordinates,)),
        applied_force=optional_rows("applied_force", applied_force, (loads, 9)),
        marker_beta=optional_rows("marker_beta", marker_beta, (len(compiled.model.markers),)),
        pose=optional_rows("pose", pose, (bodies, 7)),
        nominal_pose=optional_rows("nominal_pose", nominal_pose, (bodies, 7)),
    )


def make_step_record(compiled: CompiledModel, steps: int) -> StepRecord:
    """Return an empty record of that many steps."""
    bodies, rows = len(compiled.tables.bodies.mass), len(compiled.rows.entries)
    check_memory(
        8.0 * steps * (RECORD_NUMBERS * bodies + 4 * rows), f"duration: A record of {steps} steps of {bodies} bodies",
        'Analyze a part of the motion, use fewer steps per frame, or method="newton_euler".',
    )  # fmt: skip
    return StepRecord(
        np.zeros((steps + 1, bodies, 7)), np.zeros((steps + 1, bodies, 6)), np.zeros((steps, rows)),
        np.zeros((steps, rows)), np.zeros((steps, bodies, 10)), np.zeros((steps, 4), np.int64),
    )


@inline
def _rewind(state, saved):
    """Restore the state from a copy, warm starts included."""
    copy_bodies(saved, state)
    for i in range(len(state.coordinate)):
        state.coordinate[i] = saved.coordinate[i]
    for k in range(len(state.active_piece)):
        state.active_piece[k] = saved.active_piece[k]
    for i in range(len(state.slot_step)):
        if state.slot_step[i] != saved.slot_step[i]:
            state.slot_step[i] = saved.slot_step[i]
            state.slot_normal_impulse[i] = saved.slot_normal_impulse[i]
            for n in range(6):
                state.slot_active_piece[i, n] = saved.slot_active_piece[i, n]
            for n in range(3):
                state.slot_tangent[i, n] = saved.slot_tangent[i, n]
    state.clock[0] = saved.clock[0]


@inline
def _set_inputs(tables, inputs, step_inputs, index, h):
    if len(step_inputs.drive_force) > 0:
        for i in range(step_inputs.drive_force.shape[1]):
            inputs.drives.rest[i] = h * step_inputs.drive_force[index, i]
    if len(step_inputs.applied_force) > 0:
        for i in range(step_inputs.applied_force.shape[1]):
            for n in range(3):
                inputs.applied_forces.force[i, n] = step_inputs.applied_force[index, i, n]
                inputs.applied_forces.torque[i, n] = step_inputs.applied_force[index, i, 3 + n]
                inputs.applied_forces.arm[i, n] = step_inputs.applied_force[index, i, 6 + n]
    if len(step_inputs.marker_beta) > 0:
        for i in range(step_inputs.marker_beta.shape[1]):
            tables.marker_springs.beta[i] = step_inputs.marker_beta[index, i]


@inline
def _set_target_pose(state, inputs, step_inputs, index, target_frame, root):
    """Write the target pose of this step: as given, or displaced by the present tracking error."""
    pose, nominal = step_inputs.pose, step_inputs.nominal_pose
    for b in range(pose.shape[1]):
        for n in range(7):
            inputs.pose[index + 1, b, n] = pose[index, b, n]
        if target_frame == AS_GIVEN:
            continue
        r = b if target_frame == EACH_BODY else root
        now, start, end = state.quaternion[r], nominal[index, r], pose[index, b]
        x, y, z = end[0] - start[0], end[1] - start[1], end[2] - start[2]
        if target_frame == WITH_ROOT:
            # the rotation D by which the present orientation leads the nominal one
            w, i, j, k = quaternion_product(now[0], now[1], now[2], now[3], start[3], -start[4], -start[5], -start[6])
            x, y, z = rotate(w, i, j, k, x, y, z)
            w, i, j, k = quaternion_product(w, i, j, k, end[3], end[4], end[5], end[6])
        else:
            # each body continues its nominal rotation from its present orientation
            w, i, j, k = quaternion_product(end[3], end[4], end[5], end[6], start[3], -start[4], -start[5], -start[6])
            w, i, j, k = quaternion_product(w, i, j, k, now[0], now[1], now[2], now[3])
        target = inputs.pose[index + 1, b]
        target[0], target[1], target[2] = state.position[r, 0] + x, state.position[r, 1] + y, state.position[r, 2] + z
        target[3], target[4], target[5], target[6] = w, i, j, k


@inline
def _misses_target(twist, aim):
    """Return True if a body rotates differently from its target."""
    for b in range(len(twist)):
        for n in range(3, 6):
            if abs(twist[b, n] - aim[b, n]) > ROTATION_TOLERANCE:
                return True
    return False


@inline
def _record_rows(tables, work, record, index):
    rows, value, who = work.rows, work.factor.value, work.contact_arrays.contact_body
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    for k in range(first):
        record.impulse[index, k] = 0.0
        record.work[index, k] = 0.0
        if rows.pieces[k] == 0:
            continue
        p, u = value[k, IMPULSE], 2.0 * rows.offset[k]
        for e in range(rows.first[k], rows.first[k + 1]):
            b = rows.body[e]
            for n in range(6):
                u += rows.jacobian[e, n] * (record.twist[index, b, n] + record.twist[index + 1, b, n])
        record.impulse[index, k] = p
        record.work[index, k] = 0.5 * p * u
    contact = record.contact
    contact[index, :, :] = 0.0
    for i in range(work.contact_arrays.count[CONTACTS_NOW]):
        k = first + each * i
        normal = value[k, IMPULSE]
        for side in range(2):
            b = who[i, BODY_A + side]
            if b < 0:
                continue
            for row in range(k, k + each):
                for n in range(6):
                    contact[index, b, n] += rows.jacobian[rows.first[row] + side, n] * value[row, IMPULSE]
            for n in range(3):
                contact[index, b, 6 + n] += normal * work.contacts.point[i, n]
            contact[index, b, 9] += normal
    for n in range(4):
        record.solver_stats[index, n] = work.scratch.solver_stats[n]


@kernel
def run_steps(
    pointers, tables_at, state_at, saved, inputs_at, work_at, step_inputs, record, first, steps, passes,
    target_frame, root,
):
    """Run steps `first` to `steps`; return their number and the last status.

    A step that misses its target is repeated up to `passes` times: rewound, with its result as the target, so that
    gyroscopic terms are evaluated midway.
    """
    tables, state, inputs, work = load_shared(tables_at, state_at, inputs_at, work_at)
    saved, step_inputs, record = load_shared(saved, step_inputs, record)
    h = tables.parameters[STEP_SIZE]
    for index in range(first, steps):
        record_bodies(state, record, index)
        _set_inputs(tables, inputs, step_inputs, index, h)
        if len(step_inputs.pose) > 0:
            _set_target_pose(state, inputs, step_inputs, index, target_frame, root)
        _rewind(saved, state)
        status = SOLVED
        for again in range(passes):
            if again > 0:
                record_poses(state, inputs.pose, index + 1)
                _rewind(state, saved)
            status = step_by_pointer(pointers, tables_at, state_at, inputs_at, work_at, index)
            failed = status != SOLVED and status != FRICTION_NOT_CONVERGED
            if failed or not _misses_target(state.twist, work.scratch.aim):
                break
        if status != SOLVED and status != FRICTION_NOT_CONVERGED:
            _rewind(state, saved)
            return index, status
        record_bodies(state, record, index + 1)
        _record_rows(tables, work, record, index)
    return steps, SOLVED


class Rollout(WorkOwner):
    """A compiled model with the solver's buffers, for repeated runs."""

    def __init__(self, compiled: CompiledModel) -> None:
        super().__init__(compiled)
        # steps write to the slopes of marker springs
        springs = self.tables.marker_springs
        self.tables = self.tables._replace(marker_springs=springs._replace(beta=springs.beta.copy()))

    def _share(self, state: State, inputs: Inputs, step_inputs: StepInputs, record: StepRecord) -> tuple[Any, ...]:
        """Return tables, state, inputs, work, inputs of steps and record for kernels; check those that are new."""
        shared = self._shared
        return (
            shared("tables", self.tables), shared("state", state, self._check_state),
            shared("inputs", inputs, self._check_inputs), shared("work", self.work),
            shared("step_inputs", step_inputs, self._check_step_inputs), shared("record", record, self._check_record),
        )

    def _check_step_inputs(self, step_inputs: StepInputs) -> None:
        template = make_step_inputs(self.compiled)
        if isinstance(step_inputs, StepInputs) and np.ndim(step_inputs.applied_force) == 3:
            template = template._replace(applied_force=np.zeros((0, np.shape(step_inputs.applied_force)[1], 9)))
        check_arrays("step_inputs", step_inputs, template, StepInputs._fields)

    def _check_record(self, record: StepRecord) -> None:
        check_arrays("record", record, make_step_record(self.compiled, 0), StepRecord._fields)

    def _check_rows(self, inputs: Inputs, step_inputs: StepInputs, record: StepRecord, steps: int) -> None:
        """Raise SettingsError unless the arrays of steps fit the inputs and the number of steps."""
        check_input_frames(inputs, len(self.compiled.model.bodies), steps)
        for name, array in zip(StepInputs._fields, step_inputs, strict=True):
            if 0 < len(array) < steps:
                raise SettingsError(f"step_inputs.{name}: It has {len(array)} rows. Pass {steps}, one for each step.")
        loads, given = len(inputs.applied_forces.body), step_inputs.applied_force
        if len(given) and given.shape[1] != loads:
            raise SettingsError(f"step_inputs.applied_force: It has {given.shape[1]} loads. Pass {loads}.")
        if len(step_inputs.marker_beta) and len(self.tables.marker_springs.beta) != step_inputs.marker_beta.shape[1]:
            raise SettingsError("step_inputs.marker_beta: The model has no marker springs. Compile it with them.")
        length = min(len(record.pose) - 1, len(record.twist) - 1, *map(len, record[2:]))
        if length < steps:
            raise SettingsError(f"record: It has room for {length} steps, not {steps}. Pass one of `make_step_record`.")

    def run(
        self,
        state: State,
        inputs: Inputs,
        step_inputs: StepInputs,
        steps: int,
        *,
        passes: int = 1,
        target_frame: int = AS_GIVEN,
        root: int = 0,
        record: StepRecord | None = None,
    ) -> StepRecord:
        """Run steps from a state, which is left at the end of the last.

        Args:
            state: Initial state; changed.
            inputs: As for `Simulation`; `inputs.pose` is overwritten if there are target poses, one more than steps.
            step_inputs: Inputs of each step.
            steps: Number of steps.
            passes: Largest number of solves of a step that misses its target; gyroscopic terms are then midway.
            target_frame: AS_GIVEN, EACH_BODY or WITH_ROOT.
            root: Root body of WITH_ROOT.
            record: Record to write to, of `make_step_record`.

        Raises:
            SettingsError: State, inputs or record are too short or not those of the model.
            DivergedError: A step has no solution.
        """
        check_integer("steps", steps, 0)
        check_integer("passes", passes, 1)
        check_integer("target_frame", target_frame, AS_GIVEN, WITH_ROOT)
        check_integer("root", root, 0, max(len(self.compiled.model.bodies) - 1, 0))
        record = make_step_record(self.compiled, steps) if record is None else record
        self._share(state, inputs, step_inputs, record)
        self._check_rows(inputs, step_inputs, record, steps)
        if (len(step_inputs.pose) or passes > 1) and len(inputs.pose) <= steps:
            raise SettingsError(f"inputs.pose: It has {len(inputs.pose)} rows. Pass {steps + 1}, for the target poses.")
        if len(step_inputs.pose) and target_frame != AS_GIVEN and not len(step_inputs.nominal_pose):
            raise SettingsError("step_inputs.nominal_pose: It is empty. Pass the poses without tracking error.")
        saved, done = SharedTuple(state.copy()), 0
        for _ in range(MAX_GROWTH):
            tables, state_at, inputs_at, work, step_inputs_at, record_at = self._share(
                state, inputs, step_inputs, record
            )
            done, status = run_steps(
                pointers(), tables, state_at, saved, inputs_at, work, step_inputs_at, record_at, done, steps, passes,
                target_frame, root,
            )
            if status == SOLVED:
                return record
            if status != CAPACITY_EXCEEDED:
                break
            self._grow()
        speeds = np.abs(state.twist).max(axis=1)
        fastest = self.compiled.model.bodies[int(np.argmax(speeds))].name
        raise DivergedError(
            f"Step {done} of {steps}, at {done * self.compiled.step:.4f} s, failed: "
            f"{FAILURES.get(status, 'too many contacts')}. Fastest body: {fastest!r} at {speeds.max():.3g} m/s or "
            "rad/s. Check the motion there, or allow larger forces."
        )

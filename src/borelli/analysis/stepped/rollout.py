"""Marching: physics steps along a recording, each given its own torques, pushes and softness, every row's work kept.

A step turns velocities v into v+ by impulses p along rows J of the pose it starts from: M (v+ - v) = h f + J^T p.
Either side times the mean of both velocities is the change of kinetic energy, so a row's work is p J (v + v+)/2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import SharedTuple, SharedTuples, load_shared
from borelli.numerics.rotation_kernels import quaternion_product, rotate
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.function_pointers import pointers
from borelli.physics.rows.contact_rows import BODY_A
from borelli.physics.run_soft_steps import FAILURES
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED, step_by_pointer
from borelli.physics.solver.factor_arrays import IMPULSE, Capacity
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED
from borelli.physics.solver.workspace import initial_capacity
from borelli.physics.state import Inputs, State
from borelli.physics.work_arrays import make_work

Floats = NDArray[np.float64]

AS_GIVEN, EACH_BODY, WITH_ROOT = 0, 1, 2
"""Where the poses that a step aims at lie: where they are; beyond each body's own, or the root's, present deviation."""

MISSED = 0.1
"""[rad/s] A step that turned some body differently from how it aimed by more than this is made again."""

MOST_GROWTH = 8
"""Times the solver's room is doubled before a step counts as failed."""


class Course(NamedTuple):
    """What steps are given, row i for step i; an array without rows gives nothing."""

    rest: Floats
    """(steps or 0, coordinates) force [N m or N] that drives add to that of their springs."""
    push: Floats
    """(steps or 0, pushes, 9) force [N], torque [N m], world axes; where it acts from the centre of mass, body axes."""
    soft: Floats
    """(steps or 0, markers) slope beta of each marker's anchor [s/kg]."""
    pose: Floats
    """(steps or 0, bodies, 7) centres of mass and quaternions that each step aims at."""
    base: Floats
    """(steps or 0, bodies, 7) where bodies are at the start of each step if all goes as it should."""


class Trace(NamedTuple):
    """What steps left, row i for step i."""

    pose: Floats
    """(steps + 1, bodies, 7) before the first step and after each."""
    twist: Floats
    """(steps + 1, bodies, 6)"""
    impulse: Floats
    """(steps, standing rows)"""
    work: Floats
    """(steps, standing rows) [J]"""
    contact: Floats
    """(steps, bodies, 10) contacts' impulse, its moment about the centre of mass; sum of normal parts times points, and
    of normal parts."""
    solver_stats: NDArray[np.int64]
    """(steps, 4) Newton iterations, friction solves, contacts, status."""


def make_step_inputs(
    compiled: CompiledModel,
    *,
    rest: Floats | None = None,
    push: Floats | None = None,
    soft: Floats | None = None,
    pose: Floats | None = None,
    base: Floats | None = None,
) -> Course:
    """Arrays as the kernel takes them; None: nothing of that kind."""
    bodies, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    empty = ((0, coordinates), (0, 0, 9), (0, len(compiled.model.markers)), (0, bodies, 7), (0, bodies, 7))
    given = (rest, push, soft, pose, base)
    return Course(
        *(
            np.zeros(shape) if array is None else np.ascontiguousarray(array, float)
            for array, shape in zip(given, empty, strict=True)
        )
    )


def make_step_record(compiled: CompiledModel, steps: int) -> Trace:
    """Room for so many steps."""
    bodies, rows = len(compiled.tables.bodies.mass), len(compiled.rows.entries)
    return Trace(
        np.zeros((steps + 1, bodies, 7)), np.zeros((steps + 1, bodies, 6)), np.zeros((steps, rows)),
        np.zeros((steps, rows)), np.zeros((steps, bodies, 10)), np.zeros((steps, 4), np.int64),
    )  # fmt: skip


@inline
def _keep_bodies(state, trace, row):
    for b in range(len(state.position)):
        for n in range(3):
            trace.pose[row, b, n] = state.position[b, n]
        for n in range(4):
            trace.pose[row, b, 3 + n] = state.quaternion[b, n]
        for n in range(6):
            trace.twist[row, b, n] = state.twist[b, n]


@inline
def _rewind(state, saved):
    """Take the state back to what was saved, warm starts included."""
    for b in range(len(state.position)):
        for n in range(3):
            state.position[b, n] = saved.position[b, n]
        for n in range(4):
            state.quaternion[b, n] = saved.quaternion[b, n]
        for n in range(6):
            state.twist[b, n] = saved.twist[b, n]
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
def _give(tables, inputs, course, index, h):
    if len(course.rest) > 0:
        for i in range(course.rest.shape[1]):
            inputs.drives.rest[i] = h * course.rest[index, i]
    if len(course.push) > 0:
        for i in range(course.push.shape[1]):
            for n in range(3):
                inputs.applied_forces.force[i, n] = course.push[index, i, n]
                inputs.applied_forces.torque[i, n] = course.push[index, i, 3 + n]
                inputs.applied_forces.arm[i, n] = course.push[index, i, 6 + n]
    if len(course.soft) > 0:
        for i in range(course.soft.shape[1]):
            tables.marker_springs.beta[i] = course.soft[index, i]


@inline
def _aim(state, inputs, course, index, lead, root):
    """Write the pose this step aims at: as given, or carried on by how far bodies are from where they should be."""
    pose, base = course.pose, course.base
    for b in range(pose.shape[1]):
        for n in range(7):
            inputs.pose[index + 1, b, n] = pose[index, b, n]
        if lead == AS_GIVEN:
            continue
        r = b if lead == EACH_BODY else root
        x = pose[index, b, 0] - base[index, r, 0]
        y = pose[index, b, 1] - base[index, r, 1]
        z = pose[index, b, 2] - base[index, r, 2]
        if lead == WITH_ROOT:
            # the turn D that the present orientation is ahead of what it should be
            dw, dx, dy, dz = quaternion_product(
                state.quaternion[r, 0], state.quaternion[r, 1], state.quaternion[r, 2], state.quaternion[r, 3],
                base[index, r, 3], -base[index, r, 4], -base[index, r, 5], -base[index, r, 6],
            )  # fmt: skip
            x, y, z = rotate(dw, dx, dy, dz, x, y, z)
            w, i, j, k = quaternion_product(
                dw, dx, dy, dz, pose[index, b, 3], pose[index, b, 4], pose[index, b, 5], pose[index, b, 6]
            )
        else:
            # each body goes on turning as it should, from where it is
            w, i, j, k = quaternion_product(
                pose[index, b, 3], pose[index, b, 4], pose[index, b, 5], pose[index, b, 6],
                base[index, b, 3], -base[index, b, 4], -base[index, b, 5], -base[index, b, 6],
            )  # fmt: skip
            w, i, j, k = quaternion_product(
                w, i, j, k, state.quaternion[b, 0], state.quaternion[b, 1], state.quaternion[b, 2],
                state.quaternion[b, 3],
            )  # fmt: skip
        inputs.pose[index + 1, b, 0] = state.position[r, 0] + x
        inputs.pose[index + 1, b, 1] = state.position[r, 1] + y
        inputs.pose[index + 1, b, 2] = state.position[r, 2] + z
        inputs.pose[index + 1, b, 3] = w
        inputs.pose[index + 1, b, 4] = i
        inputs.pose[index + 1, b, 5] = j
        inputs.pose[index + 1, b, 6] = k


@inline
def _missed(twist, aim):
    """Whether some body turns differently from how it was to turn."""
    for b in range(len(twist)):
        for n in range(3, 6):
            if abs(twist[b, n] - aim[b, n]) > MISSED:
                return True
    return False


@inline
def _keep_rows(tables, work, trace, index):
    rows, value, who = work.rows, work.factor.value, work.contact_arrays.contact_body
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    for k in range(first):
        trace.impulse[index, k] = 0.0
        trace.work[index, k] = 0.0
        if rows.pieces[k] == 0:
            continue
        p, u = value[k, IMPULSE], 2.0 * rows.offset[k]
        for e in range(rows.first[k], rows.first[k + 1]):
            b = rows.body[e]
            for n in range(6):
                u += rows.jacobian[e, n] * (trace.twist[index, b, n] + trace.twist[index + 1, b, n])
        trace.impulse[index, k] = p
        trace.work[index, k] = 0.5 * p * u
    contact = trace.contact
    for b in range(contact.shape[1]):
        for n in range(10):
            contact[index, b, n] = 0.0
    for i in range(work.contact_arrays.count[0]):
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
        trace.solver_stats[index, n] = work.scratch.solver_stats[n]


@kernel
def march_on(pointers, tables_at, state_at, saved, inputs_at, work_at, course, trace, first, steps, passes, lead, root):
    """Make steps `first` to `steps`; how many are made and the last status.

    One that does not lead where it aimed is made up to `passes` times: rewound, it aims at where it led, so that
    gyroscopic terms are taken midway.
    """
    tables, state, inputs, work = load_shared(tables_at, state_at, inputs_at, work_at)
    saved, course, trace = load_shared(saved, course, trace)
    h = tables.parameters[5]
    for index in range(first, steps):
        _keep_bodies(state, trace, index)
        _give(tables, inputs, course, index, h)
        if len(course.pose) > 0:
            _aim(state, inputs, course, index, lead, root)
        _rewind(saved, state)
        status = SOLVED
        for again in range(passes):
            if again > 0:
                for b in range(len(state.position)):
                    for n in range(3):
                        inputs.pose[index + 1, b, n] = state.position[b, n]
                    for n in range(4):
                        inputs.pose[index + 1, b, 3 + n] = state.quaternion[b, n]
                _rewind(state, saved)
            status = step_by_pointer(pointers, tables_at, state_at, inputs_at, work_at, index)
            if (status != SOLVED and status != FRICTION_NOT_CONVERGED) or not _missed(state.twist, work.scratch.aim):
                break
        if status != SOLVED and status != FRICTION_NOT_CONVERGED:
            _rewind(state, saved)
            return index, status
        _keep_bodies(state, trace, index + 1)
        _keep_rows(tables, work, trace, index)
    return steps, SOLVED


class Rollout:
    """A compiled model with the solver's room, for marching again and again."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self._contacts = 64
        self._capacity: Capacity | None = None
        self._work = make_work(compiled, self._contacts)
        self._shared = SharedTuples()

    def march(
        self,
        state: State,
        inputs: Inputs,
        course: Course,
        steps: int,
        *,
        passes: int = 1,
        lead: int = AS_GIVEN,
        root: int = 0,
        trace: Trace | None = None,
    ) -> Trace:
        """Make so many steps from a state, which is left at the end of the last.

        Args:
            state: Where it starts; changed.
            inputs: As for `Simulation`; `inputs.pose` is written where the course has poses, one more than steps.
            course: What each step is given.
            steps: Their number.
            passes: How often a step that does not lead where it aimed is made; gyroscopic terms are then midway.
            lead: AS_GIVEN, EACH_BODY or WITH_ROOT.
            root: The body of WITH_ROOT.
            trace: Room to write to, of `make_step_record`.

        Raises:
            DivergedError: the rows of a step have no solution.
        """
        trace = make_step_record(self.compiled, steps) if trace is None else trace
        shared, saved, done = self._shared, SharedTuple(state.copy()), 0
        for _ in range(MOST_GROWTH):
            done, status = march_on(
                pointers(), shared("tables", self.compiled.tables), shared("state", state), saved,
                shared("inputs", inputs), shared("work", self._work), shared("course", course), shared("trace", trace),
                done, steps, passes, lead, root,
            )  # fmt: skip
            if status == SOLVED:
                return trace
            if status != CAPACITY_EXCEEDED:
                break
            old = self._capacity or initial_capacity(len(self.compiled.model.bodies), len(self._work.rows.pieces))
            self._contacts, self._capacity = 2 * self._contacts, old.doubled()
            self._work = make_work(self.compiled, self._contacts, self._capacity)
        speeds = np.abs(state.twist).max(axis=1)
        fastest = self.compiled.model.bodies[int(np.argmax(speeds))].name
        raise DivergedError(
            f"step {done} of {steps}, at {done * self.compiled.step:.4f} s, failed: "
            f"{FAILURES.get(status, 'too many contacts')}; fastest body {fastest!r} at {speeds.max():.3g} m/s or rad/s"
            ". Check the motion there, or allow larger forces"
        )

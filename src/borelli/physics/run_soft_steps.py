"""Soft steps in a loop: a trajectory in one kernel call, and its record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError, SettingsError
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.files.memory import check_memory
from borelli.kernels.array_checks import check_arrays, check_integer, optional_rows
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import ArrayOwner, SharedTuples, load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.indices import (
    GROUND_COLUMNS,
    GROUND_IMPULSE,
    GROUND_MOMENT,
    GROUND_POINT,
    GROUND_WEIGHT,
)
from borelli.physics.arrays.joints import with_own_scratch
from borelli.physics.function_pointers import pointers
from borelli.physics.rows.contact_rows import BODY_A, CONTACTS_NOW, TOUCHING_A, TOUCHING_B
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED, step_by_pointer
from borelli.physics.solver.factor_arrays import IMPULSE, Capacity
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, NO_PIVOT, NOT_CONVERGED, NOT_FINITE, SOLVED
from borelli.physics.state import Inputs, State, check_input_frames, check_inputs, check_state
from borelli.physics.work_arrays import make_work

Floats = NDArray[np.float64]

FAILURES = {
    NO_PIVOT: "hard constraint rows are contradictory or redundant",
    NOT_CONVERGED: "the solver did not converge",
    NOT_FINITE: "velocities are not finite",
}
DATASET_NUMBERS = 80
"""Numbers for each body and frame of a record and, at the same time, of the dataset made of it."""
INITIAL_CONTACTS = 64
"""Number of contacts that work arrays have capacity for at first."""


class Record(NamedTuple):
    """Record of a run, one entry per recorded step."""

    pose: Floats
    """(frames, n, 7) centers of mass and quaternions after the step."""
    twist: Floats
    """(frames, n, 6)"""
    impulse: Floats
    """(frames, persistent rows) impulses of the step."""
    ground: Floats
    """(frames, 2 n, GROUND_COLUMNS) sums over the contacts of each body with the ground, then with other bodies."""
    solver_stats: NDArray[np.int64]
    """(frames, 4) Newton iterations, friction solves, contacts, status."""


def make_record(compiled: CompiledModel, frames: int) -> Record:
    """Return an empty record of `frames` steps.

    Raises:
        SettingsError: The number is negative, or the record, and the dataset made of it, need more memory than is
            available.
    """
    check_integer("frames", frames, 0)
    bodies = len(compiled.tables.bodies.mass)
    numbers = DATASET_NUMBERS * bodies + len(compiled.rows.entries) + 6 * len(compiled.model.coordinates)
    check_memory(
        8.0 * frames * numbers, f"duration: A record of {frames} frames with {numbers} numbers each",
        "Record fewer frames (record_every), simulate for a shorter duration or use a longer step.",
    )  # fmt: skip
    return Record(
        pose=np.zeros((frames, bodies, 7)),
        twist=np.zeros((frames, bodies, 6)),
        impulse=np.zeros((frames, len(compiled.rows.entries))),
        ground=np.zeros((frames, 2 * bodies, GROUND_COLUMNS)),
        solver_stats=np.zeros((frames, 4), np.int64),
    )


@inline
def record_poses(state, pose, frame):
    """Write the poses of all bodies to a frame of `pose`."""
    for b in range(len(state.position)):
        for n in range(3):
            pose[frame, b, n] = state.position[b, n]
        for n in range(4):
            pose[frame, b, 3 + n] = state.quaternion[b, n]


@inline
def record_bodies(state, record, frame):
    """Write poses and twists to the record."""
    record_poses(state, record.pose, frame)
    for b in range(len(state.twist)):
        for n in range(6):
            record.twist[frame, b, n] = state.twist[b, n]


@inline
def add_contact_impulses(value, rows, contact_body, point, first_row, each, contacts, ground_inout):
    """Add the contact impulses of the last solve to an array as `Record.ground`."""
    for i in range(contacts):
        k = first_row + each * i
        normal = value[k, IMPULSE]
        on_ground = contact_body[i, TOUCHING_A] < 0 or contact_body[i, TOUCHING_B] < 0
        first = 0 if on_ground else len(ground_inout) // 2
        solved = 0 if contact_body[i, BODY_A] >= 0 else 1
        x, y, z, sign = 0.0, 0.0, 0.0, 1.0 if solved == 0 else -1.0
        for row in range(k, k + 3):
            e = rows.first[row] + solved
            x += sign * rows.jacobian[e, 0] * value[row, IMPULSE]
            y += sign * rows.jacobian[e, 1] * value[row, IMPULSE]
            z += sign * rows.jacobian[e, 2] * value[row, IMPULSE]
        mx, my, mz = cross(point[i, 0], point[i, 1], point[i, 2], x, y, z)
        for row in range(k + 3, k + each):  # moments of rolling friction
            e = rows.first[row] + solved
            mx += sign * rows.jacobian[e, 3] * value[row, IMPULSE]
            my += sign * rows.jacobian[e, 4] * value[row, IMPULSE]
            mz += sign * rows.jacobian[e, 5] * value[row, IMPULSE]
        for side in range(2):
            b = contact_body[i, TOUCHING_A + side]
            if b < 0:
                continue
            out, s = ground_inout[first + b], 1.0 if side == 0 else -1.0
            out[GROUND_IMPULSE] += s * x
            out[GROUND_IMPULSE + 1] += s * y
            out[GROUND_IMPULSE + 2] += s * z
            out[GROUND_MOMENT] += s * mx
            out[GROUND_MOMENT + 1] += s * my
            out[GROUND_MOMENT + 2] += s * mz
            for n in range(3):
                out[GROUND_POINT + n] += normal * point[i, n]
            out[GROUND_WEIGHT] += normal


@inline
def record_step(state, work, first_row, each, record, frame):
    """Write the step just made to a frame of the record."""
    record_bodies(state, record, frame)
    value, ground = work.factor.value, record.ground[frame]
    ground[:, :] = 0.0
    for k in range(first_row):
        record.impulse[frame, k] = value[k, IMPULSE]
    arrays = work.contact_arrays
    add_contact_impulses(
        value, work.rows, arrays.contact_body, work.contacts.point, first_row, each, arrays.count[CONTACTS_NOW], ground
    )
    for n in range(4):
        record.solver_stats[frame, n] = work.scratch.solver_stats[n]


@inline
def set_bodies(state, poses, twists, index):
    """Set poses and twists to those of row `index`."""
    for b in range(len(state.position)):
        for n in range(3):
            state.position[b, n] = poses[index, b, n]
        for n in range(4):
            state.quaternion[b, n] = poses[index, b, 3 + n]
        for n in range(6):
            state.twist[b, n] = twists[index, b, n]


@kernel
def run(pointers, tables_at, state_at, inputs_at, work_at, record_at, first, steps, every, frame, poses, twists):
    """Make `steps` steps and return the number made and the last status; record every `every`-th from `frame` on.

    Where `poses` (steps, n, 7) and `twists` (steps, n, 6) are not empty, each step starts from those.
    """
    tables, state, work, record = load_shared(tables_at, state_at, work_at, record_at)
    first_row, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    for index in range(first, first + steps):
        if len(poses) > 0:
            set_bodies(state, poses, twists, index)
        status = step_by_pointer(pointers, tables_at, state_at, inputs_at, work_at, index)
        if status != SOLVED and status != FRICTION_NOT_CONVERGED:
            return index - first, status
        if (index + 1) % every == 0:
            record_step(state, work, first_row, each, record, frame)
            frame += 1
    return steps, SOLVED


class WorkOwner(ArrayOwner):
    """A compiled model with the work arrays of its steps, which can grow."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        # threads that simulate one compiled model must not share its scratch arrays
        self.tables = compiled.tables._replace(joints=with_own_scratch(compiled.tables.joints))
        self._contacts = INITIAL_CONTACTS
        self._capacity: Capacity | None = None
        self.work = make_work(compiled, self._contacts)
        self._shared = SharedTuples()

    def _check_state(self, state: State) -> None:
        check_state(self.compiled, state)

    def _check_inputs(self, inputs: Inputs) -> None:
        check_inputs(self.compiled, inputs)

    def _grow(self) -> None:
        old = self._capacity or Capacity.initial(len(self.compiled.model.bodies), len(self.work.rows.pieces))
        self._contacts, self._capacity = 2 * self._contacts, old.doubled()
        self.work = make_work(self.compiled, self._contacts, self._capacity)


class Simulation(WorkOwner):
    """A compiled model with its state, which can be stepped, saved, restored, copied and pickled.

    Copies and pickles are independent: each has its own state, inputs and work arrays.
    """

    def __init__(self, compiled: CompiledModel, state: State, inputs: Inputs) -> None:
        """Start from a state.

        Raises:
            SettingsError: State or inputs are not those of the model.
        """
        check_state(compiled, state)
        check_inputs(compiled, inputs)
        super().__init__(compiled)
        self.state, self.inputs = state, inputs
        self.index = 0
        """Number of steps made: the index into the inputs."""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        compiled, model = self.compiled, self.compiled.model
        rows = [
            ("model", repr(model)), ("time", f"{compiled.step * float(self.state.clock[0]):.6g} s"),
            ("step", f"{compiled.step:.6g} s"), ("steps made", self.index),
        ]  # fmt: skip
        return Summary(type(self).__name__, rows)

    def advance(
        self,
        steps: int,
        record: Record,
        *,
        record_every: int = 1,
        frame: int = 0,
        poses: Floats | None = None,
        twists: Floats | None = None,
    ) -> None:
        """Make steps and record them.

        Args:
            steps: Number of steps.
            record: Record to write to.
            record_every: Number of steps between two recorded ones.
            frame: First frame of the record to write.
            poses: (steps, n, 7) poses from which each step starts, by number of the step.
            twists: (steps, n, 6) likewise.

        Raises:
            SettingsError: Record, poses or inputs are too short or not those of the model.
            DivergedError: The rows of a step have no solution; the state is that before the step.
        """
        self._share(record)
        self._check_steps(steps, record, record_every, frame)
        begun, end = self.index, self.index + steps
        start_poses, start_twists = self._initial_bodies(poses, twists, end)
        while self.index < end:
            recorded = frame + self.index // record_every - begun // record_every
            made, status = self._run_soft(
                record, self.index, end - self.index, record_every, recorded, start_poses, start_twists
            )
            self.index += made
            if status == CAPACITY_EXCEEDED:
                self._grow()
            elif status != SOLVED:
                raise DivergedError(self._failure(status))

    def _run_soft(self, record: Record, *counts_and_bodies: Any) -> tuple[int, int]:
        """Make steps in a kernel and return the number made and the last status."""
        made, status = run(pointers(), *self._share(record), *counts_and_bodies)
        return made, status

    def _share(self, record: Record) -> tuple[Any, Any, Any, Any, Any]:
        """Return tables, state, inputs, work and record for kernels; check those that are new."""
        shared = self._shared
        return (
            shared("tables", self.tables), shared("state", self.state, self._check_state),
            shared("inputs", self.inputs, self._check_inputs), shared("work", self.work),
            shared("record", record, self._check_record),
        )

    def _check_steps(self, steps: int, record: Record, record_every: int, frame: int) -> None:
        """Raise SettingsError if the steps, the inputs or the record are too short."""
        first = check_integer("index", self.index, 0)
        end = first + check_integer("steps", steps, 0)
        every = check_integer("record_every", record_every, 1)
        last = check_integer("frame", frame, 0) + end // every - first // every
        lengths = [len(array) for array in record]
        if last > min(lengths):
            raise SettingsError(
                f"record: It has {min(lengths)} frames, but {steps} steps are recorded up to frame {last}. Pass a "
                "longer record (`make_record`)."
            )
        check_input_frames(self.inputs, len(self.compiled.model.bodies), end)

    def _initial_bodies(self, poses: Floats | None, twists: Floats | None, end: int) -> tuple[Floats, Floats]:
        """Return the poses and twists from which steps start; no rows if they start from the state."""
        if (poses is None) != (twists is None):
            raise SettingsError("poses and twists: One of them is missing. Pass both or neither.")
        bodies = len(self.compiled.model.bodies)
        arrays = optional_rows("poses", poses, (bodies, 7)), optional_rows("twists", twists, (bodies, 6))
        if poses is not None and min(map(len, arrays)) < end:
            raise SettingsError(
                f"poses and twists: They have {len(arrays[0])} and {len(arrays[1])} rows, but steps up to {end} start "
                "from them. Pass a row for each step."
            )
        return arrays

    def _check_record(self, record: Record) -> None:
        check_arrays("record", record, make_record(self.compiled, 0), Record._fields)

    def _failure(self, status: int) -> str:
        names = [body.name for body in self.compiled.model.bodies]
        speeds = np.abs(self.state.twist).max(axis=1)
        fastest = int(np.argmax(np.where(np.isfinite(speeds), speeds, np.inf)))
        time = float(self.state.clock[0]) * self.compiled.step
        return (
            f"step at {time:.4f} s: The step failed because {FAILURES[status]} (fastest body: {names[fastest]!r}, "
            f"{speeds[fastest]:.3g} m/s or rad/s). Shorten the step ({self.compiled.step:g} s) or soften the joints."
        )

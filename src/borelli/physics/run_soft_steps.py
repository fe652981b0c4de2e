"""Running steps: the loop over a whole trajectory in one kernel call, and what is recorded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import SharedTuples, load_shared
from borelli.physics.arrays.compile_model import Compiled
from borelli.physics.function_pointers import pointers
from borelli.physics.rows.contact_rows import BODY_A
from borelli.physics.soft_step import UNSETTLED, step_by_pointer
from borelli.physics.solver.factor_arrays import IMPULSE, Capacity
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, NO_PIVOT, NOT_CONVERGED, NOT_FINITE, SOLVED
from borelli.physics.solver.workspace import initial_capacity
from borelli.physics.state import Inputs, State
from borelli.physics.work_arrays import make_work

Floats = NDArray[np.float64]

FAILURES = {
    NO_PIVOT: "hard rows contradict or repeat each other",
    NOT_CONVERGED: "the solver found no end",
    NOT_FINITE: "velocities are no longer finite numbers",
}


class Record(NamedTuple):
    """What is kept of a run, one entry per recorded step."""

    pose: Floats
    """(frames, n, 7) centres of mass and quaternions after the step."""
    twist: Floats
    """(frames, n, 6)"""
    impulse: Floats
    """(frames, standing rows) impulses of the step."""
    ground: Floats
    """(frames, n, 7) sum of contact impulses on each body, of points weighted by the normal part, of normal parts."""
    told: NDArray[np.int64]
    """(frames, 4) Newton iterations, friction solves, contacts, status."""


def make_record(compiled: Compiled, frames: int) -> Record:
    """Room for so many recorded steps."""
    bodies = len(compiled.tables.bodies.mass)
    return Record(
        pose=np.zeros((frames, bodies, 7)),
        twist=np.zeros((frames, bodies, 6)),
        impulse=np.zeros((frames, len(compiled.rows.entries))),
        ground=np.zeros((frames, bodies, 7)),
        told=np.zeros((frames, 4), np.int64),
    )


@inline
def record_bodies(state, record, frame):
    """Keep poses and twists."""
    for b in range(len(state.position)):
        for n in range(3):
            record.pose[frame, b, n] = state.position[b, n]
        for n in range(4):
            record.pose[frame, b, 3 + n] = state.quaternion[b, n]
        for n in range(6):
            record.twist[frame, b, n] = state.twist[b, n]


@inline
def add_contact_impulses(value, rows, who, point, first_row, each, contacts, ground_inout):
    """Add what each body got from contacts in the last solve, as `Record.ground` has it."""
    for i in range(contacts):
        k = first_row + each * i
        normal = value[k, IMPULSE]
        for side in range(2):
            b = who[i, BODY_A + side]
            if b < 0:
                continue
            for row in range(k, k + 3):
                for n in range(3):
                    ground_inout[b, n] += rows.jacobian[rows.first[row] + side, n] * value[row, IMPULSE]
            for n in range(3):
                ground_inout[b, 3 + n] += normal * point[i, n]
            ground_inout[b, 6] += normal


@inline
def _record_step(state, work, first_row, each, record, frame):
    record_bodies(state, record, frame)
    value, ground = work.factor.value, record.ground[frame]
    for b in range(len(ground)):
        for n in range(7):
            ground[b, n] = 0.0
    for k in range(first_row):
        record.impulse[frame, k] = value[k, IMPULSE]
    add_contact_impulses(
        value, work.rows, work.touch.contact_body, work.contacts.point, first_row, each, work.touch.count[0], ground
    )  # fmt: skip
    for n in range(4):
        record.told[frame, n] = work.scratch.told[n]


@inline
def _put_bodies(state, poses, twists, index):
    for b in range(len(state.position)):
        for n in range(3):
            state.position[b, n] = poses[index, b, n]
        for n in range(4):
            state.quaternion[b, n] = poses[index, b, 3 + n]
        for n in range(6):
            state.twist[b, n] = twists[index, b, n]


@kernel
def run(pointers, tables_at, state_at, inputs_at, work_at, record_at, first, steps, every, frame, poses, twists):
    """Make `steps` steps, recording every `every`-th from `frame` on; how many were made and the last status.

    Where `poses` (steps, n, 7) and `twists` (steps, n, 6) are not empty, each step starts from those.
    """
    tables, state, work, record = load_shared(tables_at, state_at, work_at, record_at)
    first_row, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    for index in range(first, first + steps):
        if len(poses) > 0:
            _put_bodies(state, poses, twists, index)
        status = step_by_pointer(pointers, tables_at, state_at, inputs_at, work_at, index)
        if status != SOLVED and status != UNSETTLED:
            return index - first, status
        if (index + 1) % every == 0:
            _record_step(state, work, first_row, each, record, frame)
            frame += 1
    return steps, SOLVED


class Simulation:
    """A compiled model with its state, ready to be stepped, saved and rewound."""

    def __init__(self, compiled: Compiled, state: State, inputs: Inputs) -> None:
        """Start from a state."""
        self.compiled, self.state, self.inputs = compiled, state, inputs
        self.index = 0
        """Steps made: the place in the inputs."""
        self._contacts = 64
        self._capacity: Capacity | None = None
        self.work = make_work(compiled, self._contacts)
        self._shared = SharedTuples()

    def advance(
        self,
        steps: int,
        record: Record,
        *,
        every: int = 1,
        frame: int = 0,
        poses: Floats | None = None,
        twists: Floats | None = None,
    ) -> None:
        """Make so many steps, recording every `every`-th from `frame` on.

        With `poses` (steps, n, 7) and `twists` (steps, n, 6), by number of the step, each step starts from those.

        Raises:
            DivergedError: the rows of a step have no solution; the state is that before the step.
        """
        bodies = len(self.state.position)
        starts = np.zeros((0, bodies, 7)) if poses is None else np.ascontiguousarray(poses, float)
        speeds = np.zeros((0, bodies, 6)) if twists is None else np.ascontiguousarray(twists, float)
        begun, end = self.index, self.index + steps
        while self.index < end:
            recorded = frame + self.index // every - begun // every
            shared = self._shared
            made, status = run(
                pointers(), shared("tables", self.compiled.tables), shared("state", self.state),
                shared("inputs", self.inputs), shared("work", self.work), shared("record", record),
                self.index, end - self.index, every, recorded, starts, speeds,
            )  # fmt: skip
            self.index += made
            if status == CAPACITY_EXCEEDED:
                self._grow()
            elif status != SOLVED:
                raise DivergedError(self._why(status))

    def _grow(self) -> None:
        room = len(self.work.contacts.depth)
        self._contacts *= 2
        rows = len(self.work.rows.pieces)
        bodies = len(self.compiled.tables.bodies.mass)
        old = self._capacity or initial_capacity(bodies, rows)
        self._capacity = old.doubled()
        if room == int(self.compiled.tables.shapes.pair_first[-1]):
            self._contacts = max(room, 1)
        self.work = make_work(self.compiled, self._contacts, self._capacity)

    def _why(self, status: int) -> str:
        names = [body.name for body in self.compiled.model.bodies]
        speeds = np.abs(self.state.twist).max(axis=1)
        fastest = int(np.argmax(np.where(np.isfinite(speeds), speeds, np.inf)))
        time = float(self.state.clock[0]) * self.compiled.step
        return (
            f"step at {time:.4f} s failed: {FAILURES[status]}; fastest body {names[fastest]!r} at "
            f"{speeds[fastest]:.3g} m/s or rad/s. Shorten the step (now {self.compiled.step:g} s) or soften the rows"
        )

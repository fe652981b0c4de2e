"""Running impulse steps: the loop over a whole trajectory in one kernel call, and what is recorded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from borelli.errors import DivergedError
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.compile_model import Compiled
from borelli.physics.impulse_step.arrays import Controls, Course, Memory, Stages, make_memory, make_stages
from borelli.physics.impulse_step.function_pointers import pointers
from borelli.physics.impulse_step.step import begin_by_pointer, finish_by_pointer, rewind
from borelli.physics.run_soft_steps import Record, Simulation, record_bodies
from borelli.physics.soft_step import UNSETTLED
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED
from borelli.physics.state import Inputs, State

WHOLE, BEGIN, FINISH = 0, 1, 2
"""What `run` makes of each step."""


@inline
def _record_step(state, stages, record, frame):
    record_bodies(state, record, frame)
    for b in range(len(stages.ground)):
        for n in range(7):
            record.ground[frame, b, n] = stages.ground[b, n]
    for k in range(record.impulse.shape[1]):
        record.impulse[frame, k] = stages.total[k]
    for n in range(4):
        record.told[frame, n] = stages.told[n]


@kernel
def run(
    pointers, tables, state_at, inputs, work, controls, course, memory, stages, record_at, first, steps, every, frame,
    share,
):  # fmt: skip
    """Make `steps` steps, or the share of each that is asked for; how many were made and the last status.

    Every `every`-th is recorded from `frame` on. After a step that failed, bodies are as before it.
    """
    state, kept, record = load_shared(state_at, stages, record_at)
    for index in range(first, first + steps):
        status = SOLVED
        if share != FINISH:
            status = begin_by_pointer(pointers, tables, state_at, inputs, work, controls, course, memory, stages, index)
        if share != BEGIN and (status == SOLVED or status == UNSETTLED):
            status = finish_by_pointer(pointers, tables, state_at, inputs, work, controls, course, memory, stages, index)
        if status != SOLVED and status != UNSETTLED:
            if status != CAPACITY_EXCEEDED:
                rewind(state, kept)
            return index - first, status
        if share != BEGIN and (index + 1) % every == 0:
            _record_step(state, kept, record, frame)
            frame += 1
    return steps, SOLVED


class ImpulseSimulation(Simulation):
    """A compiled model with its state and controls, ready to be stepped, saved and rewound."""

    def __init__(
        self, compiled: Compiled, state: State, inputs: Inputs, controls: Controls, course: Course
    ) -> None:
        """Start from a state; the course has the targets of all steps to come."""
        super().__init__(compiled, state, inputs)
        self.controls, self.course = controls, course
        self.memory: Memory = make_memory(compiled, controls)
        self.stages: Stages = make_stages(compiled, controls, len(self.work.rows.pieces))

    def start_on_course(self) -> None:
        """Let controlled joints come from where their targets were a step before the first."""
        self.memory.value[:] = self.course.value[0]
        side = np.where(self.controls.side[:, None] > 0.0, 1.0, [1.0, -1.0, -1.0, -1.0])
        self.memory.turn[:] = side * self.course.turn[0]
        self.memory.known[0] = 1

    def advance_impulses(
        self,
        steps: int,
        record: Record,
        *,
        every: int = 1,
        frame: int = 0,
        respond: Callable[[int, Stages], None] | None = None,
    ) -> None:
        """Make so many steps, recording every `every`-th from `frame` on.

        `respond`, if given, is told the step's number and writes `Stages.after` where controls are told theirs.

        Raises:
            DivergedError: the rows of a step have no solution; the state is that before the step.
        """
        begun, end = self.index, self.index + steps
        while self.index < end:
            recorded = frame + self.index // every - begun // every
            if respond is None:
                self.index += self._run(end - self.index, record, every, recorded, WHOLE)
            elif self._run(1, record, every, recorded, BEGIN):
                respond(self.index, self.stages)
                self.index += self._run(1, record, every, recorded, FINISH)

    def _run(self, steps: int, record: Record, every: int, frame: int, share: int) -> int:
        """Steps made; when room was short, fewer than asked for, and there is more now."""
        shared = self._shared
        made, status = run(
            pointers(), shared("tables", self.compiled.tables), shared("state", self.state),
            shared("inputs", self.inputs), shared("work", self.work), shared("controls", self.controls),
            shared("course", self.course), shared("memory", self.memory), shared("stages", self.stages),
            shared("record", record), self.index, steps, every, frame, share,
        )  # fmt: skip
        if status == CAPACITY_EXCEEDED:
            self._grow()
            self.stages = make_stages(self.compiled, self.controls, len(self.work.rows.pieces))
        elif status != SOLVED:
            raise DivergedError(self._why(status))
        return int(made)

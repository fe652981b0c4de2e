"""Impulse steps in a loop: a trajectory in one kernel call, and its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from borelli.errors import DivergedError, SettingsError
from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.indices import GROUND_COLUMNS
from borelli.physics.impulse_step.arrays import (
    ControlHistory,
    Controls,
    StageArrays,
    TargetTrajectory,
    check_controls,
    check_targets,
    make_history,
    make_stage_arrays,
)
from borelli.physics.impulse_step.contact_curvature import ContactCurvature
from borelli.physics.impulse_step.function_pointers import pointers
from borelli.physics.impulse_step.modes import BEGIN, CONTROL, FINISH, POSITION, REPLACE, WHOLE_STEP
from borelli.physics.impulse_step.step import begin_step_by_pointer, finish_step_by_pointer
from borelli.physics.rigid_bodies import copy_bodies
from borelli.physics.run_soft_steps import Record, Simulation, record_bodies
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED
from borelli.physics.state import Inputs, State

MAX_CONTROL_SOLVES = 6
"""Maximum number of solves in which controls are limited to what replaces them."""


@inline
def record_step(state, stages, record, frame):
    """Write the step just made to a frame of the record."""
    record_bodies(state, record, frame)
    for b in range(len(stages.ground)):
        for n in range(GROUND_COLUMNS):
            record.ground[frame, b, n] = stages.ground[b, n]
    for k in range(record.impulse.shape[1]):
        record.impulse[frame, k] = stages.impulse[k]
    for n in range(4):
        record.solver_stats[frame, n] = stages.solver_stats[n]


@kernel
def run(
    pointers, tables, state_at, inputs, work, controls, targets, history, stages, record_at, first, steps, every, frame,
    part,
):
    """Make `steps` steps, or a part of each, and return the number made and the last status.

    Every `every`-th is recorded from `frame` on. After a step that failed, bodies are as before it.
    """
    state, start, record = load_shared(state_at, stages, record_at)
    for index in range(first, first + steps):
        status = SOLVED
        if part == WHOLE_STEP or part == BEGIN:
            status = begin_step_by_pointer(
                pointers, tables, state_at, inputs, work, controls, targets, history, stages, index
            )
        if part != BEGIN and (status == SOLVED or status == FRICTION_NOT_CONVERGED):
            status = finish_step_by_pointer(
                pointers, tables, state_at, inputs, work, controls, targets, history, stages, index, part
            )
        if status != SOLVED and status != FRICTION_NOT_CONVERGED:
            if status != CAPACITY_EXCEEDED:
                copy_bodies(start, state)
            return index - first, status
        if part in (WHOLE_STEP, FINISH, POSITION) and (index + 1) % every == 0:
            record_step(state, start, record, frame)
            frame += 1
    return steps, SOLVED


class Actuators(Protocol):
    """Forces that act in place of the impulses of controls."""

    def prepare(self) -> None:
        """Limit the impulses of controls at the start of a step."""

    def share(self) -> bool:
        """Write forces in place of the impulses of controls, now known, to the wrenches of the work arrays.

        Returns False if controls require more than these forces attain and have been limited further: to be solved
        for again.
        """


class ImpulseSimulation(Simulation):
    """A compiled model with its state and controls, which can be stepped, saved, restored, copied and pickled."""

    def __init__(
        self, compiled: CompiledModel, state: State, inputs: Inputs, controls: Controls, targets: TargetTrajectory
    ) -> None:
        """Start from a state; `targets` are those of all steps to come.

        Raises:
            SettingsError: State, inputs, controls or targets are not those of the model.
        """
        check_controls(compiled, controls)
        check_targets(compiled, controls, targets)
        super().__init__(compiled, state, inputs)
        self.controls, self.targets = controls, targets
        self.history: ControlHistory = make_history(compiled, controls)
        self.stages: StageArrays = make_stage_arrays(compiled, controls, len(self.work.rows.pieces))
        self.contact_curvature = ContactCurvature(len(compiled.model.bodies))

    def _share_all(self, record: Record) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
        """Return what `_share` returns, with controls, targets, history and stages before the record."""
        tables, state, inputs, work, recorded = self._share(record)
        shared = self._shared
        return (
            tables, state, inputs, work, shared("controls", self.controls, self._check_controls),
            shared("targets", self.targets, self._check_targets), shared("history", self.history),
            shared("stages", self.stages), recorded,
        )

    def _check_controls(self, controls: Controls) -> None:
        check_controls(self.compiled, controls)

    def _check_targets(self, targets: TargetTrajectory) -> None:
        check_targets(self.compiled, self.controls, targets)

    def start_on_targets(self) -> None:
        """Set the history of controlled joints to their targets a step before the first."""
        self.history.value[:] = self.targets.value[0]
        side = np.where(self.controls.side[:, None] > 0.0, 1.0, [1.0, -1.0, -1.0, -1.0])
        self.history.rotation[:] = side * self.targets.rotation[0]
        self.history.has_previous[0] = 1

    def advance_impulses(
        self,
        steps: int,
        record: Record,
        *,
        record_every: int = 1,
        frame: int = 0,
        respond: Callable[[int, StageArrays], None] | None = None,
        actuators: Actuators | None = None,
    ) -> None:
        """Make steps and record them, as `Simulation.advance`.

        `respond` is called in each step with its number; it writes `StageArrays.response` of controls with a callback.
        `actuators` replace the impulses of controls.
        """
        self._share_all(record)
        self._check_steps(steps, record, record_every, frame)
        begun, end = self.index, self.index + steps
        if min(len(self.targets.value), len(self.targets.rotation)) < end + 2:
            raise SettingsError(
                f"targets: They have {len(self.targets.value)} values and {len(self.targets.rotation)} rotations, but "
                f"steps up to {end} need {end + 2}. Pass longer targets."
            )
        while self.index < end:
            recorded = frame + self.index // record_every - begun // record_every
            arguments = (record, record_every, recorded)
            in_parts = actuators is not None or self.controls.knows_contacts[0]
            if respond is None and not in_parts:
                self.index += self._run(end - self.index, *arguments, WHOLE_STEP)
            elif self._run(1, *arguments, BEGIN):
                if respond is not None:
                    respond(self.index, self.stages)
                if in_parts:
                    self._finish_in_parts(arguments, actuators)
                else:
                    self._run(1, *arguments, FINISH)
                self.index += 1

    def _finish_in_parts(self, arguments: tuple[Record, int, int], actuators: Actuators | None) -> None:
        """Finish a step: controls, what replaces them, positions."""
        state, stages = self.state, self.stages
        self.contact_curvature.predict(self)
        if actuators is not None:
            actuators.prepare()
        before = state.twist.copy(), stages.impulse.copy(), stages.ground.copy()
        self._run(1, *arguments, CONTROL)
        if actuators is not None:
            for _ in range(MAX_CONTROL_SOLVES):
                attained = actuators.share()
                state.twist[:], stages.impulse[:], stages.ground[:] = before
                if attained:
                    break
                self._run(1, *arguments, CONTROL)
            self._run(1, *arguments, REPLACE)
        solved = state.twist.copy()
        self._run(1, *arguments, POSITION)
        self.contact_curvature.store(self, solved)

    def _run(self, steps: int, record: Record, every: int, frame: int, part: int) -> int:
        """Return the number of steps made; fewer than `steps` if the capacity was short, which is larger now."""
        made, status = self._run_impulse(record, self.index, steps, every, frame, part)
        if status == CAPACITY_EXCEEDED:
            self._grow()
            self.stages = make_stage_arrays(self.compiled, self.controls, len(self.work.rows.pieces))
        elif status != SOLVED:
            raise DivergedError(self._failure(status))
        return int(made)

    def _run_impulse(self, record: Record, *counts: int) -> tuple[int, int]:
        """Make steps, or a part of each, in a kernel and return the number made and the last status."""
        made, status = run(pointers(), *self._share_all(record), *counts)
        return made, status

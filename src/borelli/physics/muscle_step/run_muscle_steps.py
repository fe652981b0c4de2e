"""Steps of models with muscles in a loop, soft and impulse: a trajectory in one kernel call, and its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from borelli.errors import DivergedError, SettingsError
from borelli.kernels.array_checks import check_arrays
from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.muscles.hill import STATUS
from borelli.muscles.hill_kernels.status import INVALID_INPUT, NOT_CONVERGED
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.impulse_step.arrays import Controls, TargetTrajectory
from borelli.physics.impulse_step.modes import BEGIN, FINISH, POSITION, WHOLE_STEP
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.impulse_step.run_impulse_steps import record_step as record_impulse_step
from borelli.physics.impulse_step.step import begin_step_by_pointer, finish_step_by_pointer
from borelli.physics.muscle_step.arrays import (
    MuscleRecord,
    MuscleTables,
    make_muscle_record,
    make_muscle_tables,
    make_muscle_work,
)
from borelli.physics.muscle_step.dataset import add_muscles
from borelli.physics.muscle_step.evaluate import (
    MUSCLE_FAILED,
    apply_muscles,
    evaluate_muscles_by_pointer,
    record_muscles,
    store_muscles,
)
from borelli.physics.muscle_step.function_pointers import pointers
from borelli.physics.rigid_bodies import copy_bodies
from borelli.physics.run_soft_steps import Record, Simulation, make_record, record_step, set_bodies
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED, step_by_pointer
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED
from borelli.physics.state import Inputs, State

if TYPE_CHECKING:
    import xarray


@kernel
def run_soft(
    pointers, tables_at, state_at, inputs_at, work_at, record_at, muscles_at, muscle_work_at, muscle_record_at, first,
    steps, every, frame, poses, twists,
):
    """Make `steps` soft steps as `run_soft_steps.run`, with muscles; an empty record of muscles is not written to."""
    tables, state, work, record = load_shared(tables_at, state_at, work_at, record_at)
    inputs, muscle_work, muscle_record = load_shared(inputs_at, muscle_work_at, muscle_record_at)
    first_row, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    for index in range(first, first + steps):
        if len(poses) > 0:
            set_bodies(state, poses, twists, index)
        status = evaluate_muscles_by_pointer(pointers, tables_at, state_at, muscles_at, muscle_work_at)
        if status != SOLVED:
            return index - first, status
        apply_muscles(muscle_work, inputs.body_wrench)
        status = step_by_pointer(pointers, tables_at, state_at, inputs_at, work_at, index)
        if status != SOLVED and status != FRICTION_NOT_CONVERGED:
            return index - first, status
        store_muscles(muscle_work, state)
        if (index + 1) % every == 0:
            record_step(state, work, first_row, each, record, frame)
            if frame < len(muscle_record.tension):
                status = evaluate_muscles_by_pointer(pointers, tables_at, state_at, muscles_at, muscle_work_at)
                record_muscles(muscle_work, muscle_record, frame)
                if status != SOLVED:
                    return index + 1 - first, status
            frame += 1
    return steps, SOLVED


@kernel
def run_impulse(
    pointers, tables, state_at, inputs, work, controls, targets, history, stages, record_at, muscles, muscle_work_at,
    muscle_record_at, first, steps, every, frame, part,
):
    """Make `steps` impulse steps as `run_impulse_steps.run`, with muscles."""
    state, start, record = load_shared(state_at, stages, record_at)
    muscle_work, muscle_record = load_shared(muscle_work_at, muscle_record_at)
    for index in range(first, first + steps):
        status = SOLVED
        if part == WHOLE_STEP or part == BEGIN:
            status = evaluate_muscles_by_pointer(pointers, tables, state_at, muscles, muscle_work_at)
            if status != SOLVED:
                return index - first, status
            apply_muscles(muscle_work, inputs.body_wrench)
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
        if part in (WHOLE_STEP, FINISH, POSITION):
            store_muscles(muscle_work, state)
            if (index + 1) % every == 0:
                record_impulse_step(state, start, record, frame)
                if frame < len(muscle_record.tension):
                    status = evaluate_muscles_by_pointer(pointers, tables, state_at, muscles, muscle_work_at)
                    record_muscles(muscle_work, muscle_record, frame)
                    if status != SOLVED:
                        return index + 1 - first, status
                frame += 1
    return steps, SOLVED


@kernel
def record_start(pointers, tables, state, muscles, work_at, record_at):
    """Write the muscles of a state to the first frame of their record; return a status."""
    status = evaluate_muscles_by_pointer(pointers, tables, state, muscles, work_at)
    work, record = load_shared(work_at, record_at)
    record_muscles(work, record, 0)
    return status


class MuscleOwner(Simulation):
    """Part of a simulation that has muscles."""

    muscles: MuscleTables
    """Muscles, ligaments and excitations; may be replaced between steps."""
    muscle_record: MuscleRecord
    """Record of muscles, with the frames of the record that steps are given, or empty."""

    def _set_muscles(self, muscles: MuscleTables) -> None:
        self._check_muscles(muscles)
        self.muscles = muscles
        self.muscle_work = make_muscle_work(self.compiled, muscles)
        self.muscle_record = make_muscle_record(self.compiled.model, 0)


    def start_record(self, frames: int) -> None:
        """Make a record of muscles with `frames` frames and write the present ones to the first.

        Raises:
            DivergedError: Fiber and tendon of a muscle have no equilibrium.
        """
        self.muscle_record = make_muscle_record(self.compiled.model, max(1, frames))
        tables, state, *_ = self._share(make_record(self.compiled, 0))
        status = record_start(pointers(isinstance(self, ImpulseSimulation)), tables, state, *self._share_muscles())
        if status != SOLVED:
            raise DivergedError(self._failure(status))

    def add_to(self, data: xarray.Dataset) -> xarray.Dataset:
        """Return the dataset of a run with the record of muscles."""
        return add_muscles(data, self.compiled.model, self.muscle_record)

    def _share_muscles(self) -> tuple[Any, Any, Any]:
        """Return tables, work and record of muscles for kernels; check those that are new."""
        shared = self._shared
        return (
            shared("muscles", self.muscles, self._check_muscles), shared("muscle work", self.muscle_work),
            shared("muscle record", self.muscle_record, self._check_muscle_record),
        )

    def _check_muscles(self, muscles: MuscleTables) -> None:
        template = make_muscle_tables(self.compiled, muscles.excitation[:1])
        check_arrays("muscles", muscles, template, ("excitation",))

    def _check_muscle_record(self, record: MuscleRecord) -> None:
        check_arrays("muscle_record", record, make_muscle_record(self.compiled.model, 0), MuscleRecord._fields)

    def _check_steps(self, steps: int, record: Record, record_every: int, frame: int) -> None:
        super()._check_steps(steps, record, record_every, frame)
        rows, end = len(self.muscles.excitation), int(self.state.clock[0]) + steps
        if 1 < rows < end:
            raise SettingsError(f"excitation: It has {rows} rows, but {end} steps need {end}. Pass more rows, or one.")

    def _failure(self, status: int) -> str:
        if status != MUSCLE_FAILED:
            return super()._failure(status)
        bad = [i for i, code in enumerate(self.muscle_work.status) if code in (NOT_CONVERGED, INVALID_INPUT)]
        name, code = self.compiled.model.muscles[bad[0]].name, int(self.muscle_work.status[bad[0]])
        time = float(self.state.clock[0]) * self.compiled.step
        return (
            f"step at {time:.4f} s: Muscle {name!r} has no equilibrium ({STATUS[code]}; path length "
            f"{self.muscle_work.length[bad[0]]:.4g} m). Shorten the step ({self.compiled.step:g} s), or check the "
            "fiber and tendon lengths of the muscle."
        )


class MuscleSimulation(MuscleOwner):
    """A simulation by soft steps of a model that its muscles move."""

    def __init__(self, compiled: CompiledModel, state: State, inputs: Inputs, muscles: MuscleTables) -> None:
        """Start from a state.

        Raises:
            SettingsError: State, inputs or muscles are not those of the model.
        """
        super().__init__(compiled, state, inputs)
        self._set_muscles(muscles)

    def _run_soft(self, record: Record, *counts_and_bodies: Any) -> tuple[int, int]:
        made, status = run_soft(
            pointers(False), *self._share(record), *self._share_muscles(), *counts_and_bodies
        )
        return made, status


class MuscleImpulseSimulation(ImpulseSimulation, MuscleOwner):
    """A simulation by impulse steps of a model that its muscles, and controls, move."""

    def __init__(
        self,
        compiled: CompiledModel,
        state: State,
        inputs: Inputs,
        controls: Controls,
        targets: TargetTrajectory,
        muscles: MuscleTables,
    ) -> None:
        """Start from a state; `targets` are those of all steps to come.

        Raises:
            SettingsError: State, inputs, controls, targets or muscles are not those of the model.
        """
        super().__init__(compiled, state, inputs, controls, targets)
        self._set_muscles(muscles)

    def _run_impulse(self, record: Record, *counts: int) -> tuple[int, int]:
        made, status = run_impulse(pointers(True), *self._share_all(record), *self._share_muscles(), *counts)
        return made, status

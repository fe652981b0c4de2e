"""Compilation of the kernels of steps with muscles."""

from __future__ import annotations

import numpy as np

from borelli.kernels.compile_cache import CompileTask
from borelli.physics.impulse_step.arrays import compile_impulse, make_target_trajectory
from borelli.physics.muscle_step.arrays import make_muscle_tables
from borelli.physics.muscle_step.function_pointers import make_muscle_sample, sample_model
from borelli.physics.muscle_step.run_muscle_steps import MuscleImpulseSimulation, MuscleSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.state import make_inputs, make_state
from borelli.physics.warmup import POINTER_TASKS


def compile_muscle_steps() -> None:
    """Make a soft step; the tasks of the soft step must have ended."""
    compiled, muscles = make_muscle_sample()
    simulation = MuscleSimulation(compiled, make_state(compiled), make_inputs(compiled), muscles)
    simulation.start_record(2)
    simulation.advance(1, make_record(compiled, 2), frame=1)


def compile_muscle_impulse_steps() -> None:
    """Make an impulse step; the tasks of the impulse step must have ended."""
    compiled, controls = compile_impulse(sample_model(), step=0.001, controlled={})
    targets = make_target_trajectory(compiled, np.zeros((3, 1)), np.zeros((3, 0, 4)))
    muscles = make_muscle_tables(compiled, np.zeros((1, 1, 2)))
    state, inputs = make_state(compiled), make_inputs(compiled)
    simulation = MuscleImpulseSimulation(compiled, state, inputs, controls, targets, muscles)
    simulation.advance_impulses(1, make_record(compiled, 1))


TASKS = (CompileTask("muscle steps", compile_muscle_steps, 0, group="muscles"),)

"""Compilation of the kernels of an impulse step."""

from __future__ import annotations

import numpy as np

from borelli.kernels.compile_cache import CompileTask
from borelli.physics.function_pointers import make_sample
from borelli.physics.impulse_step.arrays import ResponseCoefficients, compile_impulse, make_target_trajectory
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.state import make_inputs, make_state
from borelli.physics.warmup import POINTER_TASKS


def compile_impulse_step() -> None:
    """Make a step; the tasks of the soft step must have ended."""
    model = make_sample().compiled.model
    compiled, controls = compile_impulse(model, step=0.001, controlled={"angle": ResponseCoefficients()})
    targets = make_target_trajectory(compiled, np.zeros((3, 1)), np.zeros((3, 0, 4)))
    simulation = ImpulseSimulation(compiled, make_state(compiled), make_inputs(compiled), controls, targets)
    simulation.advance_impulses(1, make_record(compiled, 1))


TASKS = (
    CompileTask("impulse", compile_impulse_step, 4, needs=tuple(task.name for task in POINTER_TASKS), group="control"),
)

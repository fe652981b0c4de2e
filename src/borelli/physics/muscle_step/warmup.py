"""Compilation of the kernels of steps with muscles."""

from __future__ import annotations

from borelli.kernels.compile_cache import CompileTask
from borelli.physics.muscle_step.function_pointers import make_muscle_sample
from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.state import make_inputs, make_state
from borelli.physics.warmup import POINTER_TASKS


def compile_muscle_steps() -> None:
    """Make a soft step; the tasks of the soft step must have ended."""
    compiled, muscles = make_muscle_sample()
    simulation = MuscleSimulation(compiled, make_state(compiled), make_inputs(compiled), muscles)
    simulation.start_record(2)
    simulation.advance(1, make_record(compiled, 2), frame=1)


TASKS = (
    CompileTask(
        "muscle steps", compile_muscle_steps, 6, needs=tuple(task.name for task in POINTER_TASKS), group="muscles"
    ),
)
"""Impulse steps with muscles are compiled at their first use, from the kernels of impulse steps and these."""

"""Compilation of both step loops in one process: each would load all parts of a step."""

from __future__ import annotations

from borelli.analysis.stepped.rollout import Rollout, make_step_inputs
from borelli.kernels.compile_cache import CompileTask
from borelli.physics.function_pointers import make_sample
from borelli.physics.warmup import POINTER_TASKS, compile_step


def compile_loops() -> None:
    """Run one step of each loop."""
    compile_step()
    sample = make_sample()
    Rollout(sample.compiled).run(sample.state, sample.inputs, make_step_inputs(sample.compiled), 1)


TASKS = (CompileTask("step", compile_loops, 8, needs=tuple(part.name for part in POINTER_TASKS)),)

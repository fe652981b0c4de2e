"""The kernel function of muscles that both kinds of steps call by pointer, besides their own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.compile_cache import ensure_compiled
from borelli.kernels.jit import pointer_table, register_pointers
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Body, Coordinate, Joint, Model, Muscle, PathPoint
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.function_pointers import make_sample, soft_step_functions
from borelli.physics.impulse_step.function_pointers import impulse_step_functions
from borelli.physics.muscle_step.arrays import MuscleTables, make_muscle_tables, make_muscle_work
from borelli.physics.muscle_step.evaluate import evaluate_muscles
from borelli.physics.soft_step import step
from borelli.physics.state import make_state

INERTIA = ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01))
"""[kg m^2] of the sample."""


def sample_model() -> Model:
    """Return a pendulum with one muscle."""
    path = (PathPoint("ground", (0.1, 0.0, 0.0)), PathPoint("bob", (0.0, 0.0, -0.3)))
    muscle = Muscle("muscle", path, 100.0, 0.1, 0.2, kind="Thelen2003Muscle")
    hinge = Joint("hinge", "hinge", "ground", "bob", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("angle"),))
    return Model("pendulum", (Body("bob", 1.0, inertia=INERTIA),), (hinge,), muscles=(muscle,))


def make_muscle_sample() -> tuple[CompiledModel, MuscleTables]:
    """Return the sample, compiled for soft steps, with its muscle at rest."""
    compiled = compile_model(sample_model(), step=0.001)
    return compiled, make_muscle_tables(compiled, np.zeros((1, 1, 2)))


def muscle_functions() -> dict[Any, tuple[Any, ...]]:
    """Return the kernel functions of muscles, each with sample arguments."""
    compiled, muscles = make_muscle_sample()
    values = (compiled.tables, make_state(compiled), muscles, make_muscle_work(compiled, muscles))
    return {evaluate_muscles: tuple(map(SharedTuple, values))}


@cache
def pointers(impulse: bool) -> NDArray[np.int64]:
    """Return the table of function pointers that a run of soft or impulse steps with muscles needs."""
    ensure_compiled("main", "muscles", *(("control",) if impulse else ()))
    sample = make_sample()
    soft, own, muscle = soft_step_functions(sample), impulse_step_functions(sample), muscle_functions()
    register_pointers(soft)
    register_pointers(own, len(soft))
    register_pointers(muscle, len(soft) + len(own))
    used = [function for function in (*soft, *own) if function is not step] if impulse else list(soft)
    return pointer_table([*used, *muscle])

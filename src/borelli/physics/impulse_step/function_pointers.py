"""Kernel functions of an impulse step that are called by pointer, besides those of the soft step that it calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.compile_cache import ensure_compiled
from borelli.kernels.jit import pointer_table, register_pointers
from borelli.kernels.shared_tuples import SharedTuple
from borelli.physics.function_pointers import Sample, make_sample, soft_step_functions
from borelli.physics.impulse_step.arrays import (
    ResponseCoefficients,
    compile_impulse,
    make_history,
    make_stage_arrays,
    make_target_trajectory,
)
from borelli.physics.impulse_step.controlled_joints import compute_ball_rotations
from borelli.physics.impulse_step.energy_momentum import advance_mean_motion
from borelli.physics.impulse_step.mean_motion import solve_mean_motion
from borelli.physics.impulse_step.position_correction import correct_positions
from borelli.physics.impulse_step.stage_laws import fill_contact_laws
from borelli.physics.impulse_step.stage_solve import add_impulses, load_momenta, solve_stage
from borelli.physics.impulse_step.step import begin_step, finish_step
from borelli.physics.soft_step import step


def impulse_step_functions(sample: Sample) -> dict[Any, tuple[Any, ...]]:
    """Return the kernel functions of an impulse step, each with sample arguments."""
    model = sample.compiled.model
    compiled, controls = compile_impulse(model, step=0.001, controlled={"angle": ResponseCoefficients()})
    targets = make_target_trajectory(compiled, np.zeros((3, 1)), np.zeros((3, 0, 4)))
    tables, state, inputs, work = (SharedTuple(value) for value in (compiled.tables, *sample[1:]))
    stages = SharedTuple(make_stage_arrays(compiled, controls, 1))
    controlled = (SharedTuple(controls), SharedTuple(targets), SharedTuple(make_history(compiled, controls)), stages)
    table = np.zeros(1, np.int64)
    return {
        compute_ball_rotations: (SharedTuple(compiled.tables.joints), controlled[0], np.zeros((0, 4))),
        fill_contact_laws: (tables, state, work, True),
        load_momenta: (tables, state, work, 0.0, 1),
        solve_stage: (table, tables, state, work, stages),
        add_impulses: (tables, work, stages),
        solve_mean_motion: (table, tables, state, inputs, work, controlled[0], stages, 0, 0.0, 0.0),
        advance_mean_motion: (table, tables, state, inputs, work, controlled[0], *controlled[2:], 0),
        begin_step: (table, tables, state, inputs, work, *controlled, 0),
        correct_positions: (table, tables, state, inputs, work, controlled[0], controlled[2], stages, 0, 0),
        finish_step: (table, tables, state, inputs, work, *controlled, 0, 0),
    }


@cache
def pointers() -> NDArray[np.int64]:
    """Return the table of function pointers that a run of impulse steps needs: all but the soft step itself."""
    ensure_compiled("main", "control")
    sample = make_sample()
    soft, own = soft_step_functions(sample), impulse_step_functions(sample)
    register_pointers(soft)
    register_pointers(own, len(soft))
    return pointer_table([function for function in (*soft, *own) if function is not step])

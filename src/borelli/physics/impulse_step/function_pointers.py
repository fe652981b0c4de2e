"""The parts of an impulse step that are called by address, beside those of the soft step that it calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import pointer_table, register_pointers
from borelli.kernels.shared_tuples import SharedTuple
from borelli.physics.function_pointers import Sample, list_parts, make_sample
from borelli.physics.impulse_step.arrays import Response, compile_impulse, make_course, make_memory, make_stages
from borelli.physics.impulse_step.controlled_joints import find_turns
from borelli.physics.impulse_step.position_correction import correct_positions
from borelli.physics.impulse_step.stage_laws import fill_contact_laws
from borelli.physics.impulse_step.stage_solve import add_impulses, load, solve
from borelli.physics.impulse_step.step import begin, finish
from borelli.physics.soft_step import step


def list_own_parts(sample: Sample) -> dict[Any, tuple[Any, ...]]:
    """Each part with samples of its arguments."""
    model = sample.compiled.model
    compiled, controls = compile_impulse(model, step=0.001, controlled={"angle": Response()})
    course = make_course(compiled, np.zeros((3, 1)), np.zeros((3, 0, 4)))
    tables, state, inputs, work = (SharedTuple(value) for value in (compiled.tables, *sample[1:]))
    stages = SharedTuple(make_stages(compiled, controls, 1))
    controlled = (SharedTuple(controls), SharedTuple(course), SharedTuple(make_memory(compiled, controls)), stages)
    table = np.zeros(1, np.int64)
    balls = np.zeros((0, 4))
    touching = tuple(SharedTuple(value) for value in (compiled.tables.shapes, compiled.tables.contacts))
    inside = tuple(SharedTuple(value) for value in (sample.work.contacts, sample.work.touch, sample.work.rows))
    return {
        find_turns: (SharedTuple(compiled.tables.joints), controlled[0], balls),
        fill_contact_laws: (*touching, *inside, np.zeros((1, 6)), np.zeros(3), np.zeros(6), True),
        load: (tables, state, work, 0.0, 1),
        solve: (table, tables, state, work, stages),
        add_impulses: (tables, work, stages),
        begin: (table, tables, state, inputs, work, *controlled, 0),
        correct_positions: (table, tables, state, inputs, work, controlled[0], controlled[2], stages, 0, True),
        finish: (table, tables, state, inputs, work, *controlled, 0),
    }


@cache
def pointers() -> NDArray[np.int64]:
    """The table of addresses that a run needs: all but the soft step itself."""
    sample = make_sample()
    soft, own = list_parts(sample), list_own_parts(sample)
    register_pointers(soft)
    register_pointers(own, len(soft))
    return pointer_table([part for part in (*soft, *own) if part is not step])

"""Kernel functions of a step that are called by pointer, and the types of their arguments.

numba optimizes all functions that a kernel calls once more with the kernel. Called by pointer, each is optimized once.
They are compiled for the tables of a small sample; those of every model have the same types.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.compile_cache import ensure_compiled
from borelli.kernels.jit import pointer_table, register_pointers
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Coordinate, Joint, Marker, Model, Shape, Softness
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.collision.detect import find_contacts
from borelli.physics.joint_closing import close_joints, close_positions, solve_changes
from borelli.physics.rows.contact_rows import fill_contact_rows
from borelli.physics.rows.persistent_rows import fill_persistent_rows
from borelli.physics.soft_step import prepare_solve, step
from borelli.physics.solver.contact_response import compute_contact_response
from borelli.physics.solver.coulomb_newton import solve_contacts, solve_coulomb_law
from borelli.physics.solver.elimination import factor_bodies, solve_factored
from borelli.physics.solver.friction import friction_defect, update_friction
from borelli.physics.solver.gauss_seidel import make_joint_blocks, sweep_joints, sweep_rows
from borelli.physics.solver.interior_point import run_interior_point
from borelli.physics.solver.iterative_refinement import refine
from borelli.physics.solver.newton import newton, solve_active_pieces
from borelli.physics.solver.redundant_rows import make_ridge, solve_redundant
from borelli.physics.state import Inputs, State, make_inputs, make_state
from borelli.physics.work_arrays import Work, make_work


class Sample(NamedTuple):
    """Arguments of a step."""

    compiled: CompiledModel
    state: State
    inputs: Inputs
    work: Work


def make_sample() -> Sample:
    """Return a box on a hinge above the ground: small, with every kind of table."""
    body = body_from_shapes("box", (Shape("box", (0.1, 0.1, 0.1)),))
    joint = Joint("hinge", "hinge", "ground", "box", coordinates=(Coordinate("angle"),))
    model = Model("sample", (body,), (joint,), (Marker("m", "box", (0.0, 0.0, 0.0)),), ground=(Shape("plane"),))
    compiled = compile_model(model, step=0.001, marker_springs=Softness(100.0, 1.0))
    return Sample(compiled, make_state(compiled), make_inputs(compiled), make_work(compiled, 64))


def soft_step_groups(sample: Sample) -> dict[str, dict[Any, tuple[Any, ...]]]:
    """Return the kernel functions of a soft step, each with sample arguments, by the task that compiles them."""
    tables, state, inputs, work = (SharedTuple(value) for value in (sample.compiled.tables, *sample[1:]))
    shapes, bodies = SharedTuple(sample.compiled.tables.shapes), SharedTuple(sample.compiled.tables.bodies)
    rows, scratch, contacts = (SharedTuple(getattr(sample.work, name)) for name in ("rows", "scratch", "contacts"))
    ridge, blocks = SharedTuple(make_ridge(1)), SharedTuple(make_joint_blocks([], 1, 1))
    table = np.zeros(1, np.int64)
    return {
        "solver": {
            factor_bodies: (work,),
            solve_factored: (work,),
            refine: (table, work),
            run_interior_point: (table, work, 0),
            solve_active_pieces: (table, work, 0),
            newton: (table, work, 0, 0, 0),
            solve_redundant: (table, work, ridge, 0, 0.0),
        },
        "friction": {
            friction_defect: (work, 0, 0),
            update_friction: (work, 0, 0, 0.0),
            compute_contact_response: (work, 0),
            solve_coulomb_law: (work, 0, 0, 0, 0.0),
            fill_contact_rows: (tables, state, work, 0),
            prepare_solve: (bodies, work, 0, 0),
            sweep_rows: (work, 0),
            sweep_joints: (work, blocks, 0, 0.0),
        },
        "contacts": {find_contacts: (shapes, sample.state.position, sample.work.scratch.rotation, 0.0, contacts)},
        "rows": {fill_persistent_rows: (tables, state, inputs, rows, scratch, 0, True)},
        "step": {
            close_positions: (table, tables, state, inputs, work, 0, 0.0),
            solve_changes: (table, tables, state, work, False, 0),
            close_joints: (table, tables, state, inputs, work, 0),
            solve_contacts: (table, work, 0, 0, 0, 0, 0, 0.0),
            step: (table, tables, state, inputs, work, 0),
        },
    }


def soft_step_functions(sample: Sample) -> dict[Any, tuple[Any, ...]]:
    """Return the kernel functions of a soft step, each with sample arguments."""
    groups = soft_step_groups(sample).values()
    return {function: arguments for group in groups for function, arguments in group.items()}


@cache
def pointers() -> NDArray[np.int64]:
    """Return the table of function pointers that a run of soft steps needs."""
    ensure_compiled()
    functions = soft_step_functions(make_sample())
    register_pointers(functions)
    return pointer_table(functions)

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
from borelli.physics.rows.contact_rows import fill_contact_arrays, fill_contact_rows
from borelli.physics.soft_step import fill_persistent_rows, prepare_solve, step
from borelli.physics.solver.contact_response import compute_contact_response
from borelli.physics.solver.coulomb_newton import solve_contacts, solve_coulomb_law
from borelli.physics.solver.elimination import factor_bodies, solve_factored
from borelli.physics.solver.friction import friction_defect, update_friction
from borelli.physics.solver.gauss_seidel import sweep_rows
from borelli.physics.solver.interior_point import run_interior_point
from borelli.physics.solver.iterative_refinement import refine
from borelli.physics.solver.joint_gauss_seidel import make_joint_blocks, sweep_joints
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


def soft_step_functions(sample: Sample) -> dict[Any, tuple[Any, ...]]:
    """Return the kernel functions of a soft step, each with sample arguments."""
    tables, state, inputs, work = sample.compiled.tables, sample.state, sample.inputs, sample.work
    rows, graph, factor, fill, contact_arrays = work.rows, work.graph, work.factor, work.fill, work.contact_arrays
    search, interior, kinematic, rotation = work.search, work.interior, tables.bodies.kinematic, work.scratch.rotation
    persistent = (tables.joints, tables.marker_springs, tables.residuals, tables.parameters)
    contact = (tables.shapes, tables.contacts)
    table = np.zeros(1, np.int64)
    functions: dict[Any, tuple[Any, ...]] = {
        factor_bodies: (rows, graph, factor, fill),
        solve_factored: (rows, graph, factor, fill),
        refine: (table, rows, graph, factor, fill),
        run_interior_point: (table, rows, graph, factor, fill, interior, search.counts, 0),
        solve_active_pieces: (table, rows, graph, factor, fill, search.counts, 0),
        newton: (table, rows, graph, factor, fill, search, interior, 0, 0, 0),
        fill_persistent_rows: (*persistent, state, inputs, rows, work.scratch, 0, True),
        find_contacts: (tables.shapes, state.position, rotation, 0.0, work.contacts),
        fill_contact_arrays: (*contact, work.contacts, 0, state, rotation, kinematic, contact_arrays),
        fill_contact_rows: (*contact, tables.parameters, work.contacts, state, kinematic, contact_arrays, rows),
        prepare_solve: (tables.bodies, work, 0, 0),
        sweep_rows: (rows, graph, factor, 0),
        solve_redundant: (table, rows, graph, factor, fill, make_ridge(1), 0, 0.0),
        sweep_joints: (rows, graph, factor, make_joint_blocks([], 1, 1), 0, 0.0),
        friction_defect: (rows, graph, factor, contact_arrays, 0, 0),
        update_friction: (rows, graph, factor, contact_arrays, 0, 0, 0.0),
        compute_contact_response: (rows, graph, factor, fill, contact_arrays, 0),
        solve_coulomb_law: (rows, contact_arrays, 0, 0, 0, 0.0),
        solve_contacts: (table, rows, graph, factor, fill, search, interior, contact_arrays, 0, 0, 0, 0, 0, 0.0),
        step: (table, tables, state, inputs, work, 0),
    }
    return {
        function: tuple(SharedTuple(value) if isinstance(value, tuple) else value for value in arguments)
        for function, arguments in functions.items()
    }


@cache
def pointers() -> NDArray[np.int64]:
    """Return the table of function pointers that a run of soft steps needs."""
    ensure_compiled()
    functions = soft_step_functions(make_sample())
    register_pointers(functions)
    return pointer_table(functions)

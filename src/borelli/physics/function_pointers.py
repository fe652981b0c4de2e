"""The parts of a step that are called by address, and for what arguments.

numba optimises all a kernel calls anew, with the kernel: joining a step's parts took as long as compiling them. By
address each is optimised once. The parts are compiled for the tables of a small sample; those of every model are of
the same types.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import pointer_table, register_pointers
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Coordinate, Joint, Marker, Model, Shape, Softness
from borelli.physics.arrays.compile_model import Compiled, compile_model
from borelli.physics.collision.detect import find_contacts
from borelli.physics.rows.contact_rows import fill_contact_arrays, fill_contact_rows
from borelli.physics.soft_step import fill_standing_rows, prepare_solve, step
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
    """All a step reads and writes."""

    compiled: Compiled
    state: State
    inputs: Inputs
    work: Work


def make_sample() -> Sample:
    """A swinging box above the ground: small, and with every kind of table."""
    body = body_from_shapes("box", (Shape("box", (0.1, 0.1, 0.1)),))
    joint = Joint("hinge", "hinge", "ground", "box", coordinates=(Coordinate("angle"),))
    model = Model("sample", (body,), (joint,), (Marker("m", "box", (0.0, 0.0, 0.0)),), ground=(Shape("plane"),))
    compiled = compile_model(model, step=0.001, anchors=Softness(100.0, 1.0))
    return Sample(compiled, make_state(compiled), make_inputs(compiled), make_work(compiled, 64))


def list_parts(sample: Sample) -> dict[Any, tuple[Any, ...]]:
    """Each part with samples of its arguments."""
    tables, state, inputs, work = sample.compiled.tables, sample.state, sample.inputs, sample.work
    rows, graph, factor, fill, touch = work.rows, work.graph, work.factor, work.fill, work.touch
    search, interior, kinematic, rotation = work.search, work.interior, tables.bodies.kinematic, work.scratch.rotation
    standing = (tables.joints, tables.anchors, tables.residuals, tables.numbers)
    touching = (tables.shapes, tables.contacts)
    table = np.zeros(1, np.int64)
    parts: dict[Any, tuple[Any, ...]] = {
        factor_bodies: (rows, graph, factor, fill),
        solve_factored: (rows, graph, factor, fill),
        refine: (table, rows, graph, factor, fill),
        run_interior_point: (table, rows, graph, factor, fill, interior, search.counts, 0),
        solve_active_pieces: (table, rows, graph, factor, fill, search.counts, 0),
        newton: (table, rows, graph, factor, fill, search, interior, 0, 0, 0),
        fill_standing_rows: (*standing, state, inputs, rows, work.scratch, 0, True),
        find_contacts: (tables.shapes, state.position, rotation, 0.0, work.contacts),
        fill_contact_arrays: (*touching, work.contacts, 0, state, rotation, kinematic, touch),
        fill_contact_rows: (*touching, tables.numbers, work.contacts, state, kinematic, touch, rows),
        prepare_solve: (tables.bodies, work, 0, 0),
        sweep_rows: (rows, graph, factor, 0),
        solve_redundant: (table, rows, graph, factor, fill, make_ridge(1), 0, 0.0),
        sweep_joints: (rows, graph, factor, make_joint_blocks([], 1, 1), 0, 0.0),
        friction_defect: (rows, graph, factor, touch, 0, 0),
        update_friction: (rows, graph, factor, touch, 0, 0, 0.0),
        compute_contact_response: (rows, graph, factor, fill, touch, 0),
        solve_coulomb_law: (rows, touch, 0, 0, 0, 0.0),
        solve_contacts: (table, rows, graph, factor, fill, search, interior, touch, 0, 0, 0, 0, 0, 0.0),
        step: (table, tables, state, inputs, work, 0),
    }
    return {
        part: tuple(SharedTuple(value) if isinstance(value, tuple) else value for value in arguments)
        for part, arguments in parts.items()
    }


@cache
def pointers() -> NDArray[np.int64]:
    """The table of addresses that a run needs."""
    parts = list_parts(make_sample())
    register_pointers(parts)
    return pointer_table(parts)

"""Compilation of the kernels of a step, in tasks that may run in processes of their own."""

from __future__ import annotations

from typing import Any

from borelli.kernels.compile_cache import CompileTask
from borelli.kernels.jit import compile_pointer, register_pointers
from borelli.physics.collision.detect import find_contacts
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.function_pointers import make_sample, soft_step_functions
from borelli.physics.post_stabilization import post_stabilize
from borelli.physics.rows.contact_rows import fill_contact_arrays, fill_contact_rows
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.soft_step import fill_persistent_rows, prepare_solve
from borelli.physics.solver.contact_response import compute_contact_response
from borelli.physics.solver.coulomb_newton import solve_coulomb_law
from borelli.physics.solver.elimination import factor_bodies, solve_factored
from borelli.physics.solver.friction import friction_defect, update_friction
from borelli.physics.solver.gauss_seidel import sweep_rows
from borelli.physics.solver.interior_point import run_interior_point
from borelli.physics.solver.iterative_refinement import refine
from borelli.physics.solver.joint_gauss_seidel import sweep_joints
from borelli.physics.solver.newton import newton, solve_active_pieces
from borelli.physics.solver.redundant_rows import solve_redundant


def compile_solver() -> None:
    """Compile Newton's method and the elimination under it."""
    _compile(
        factor_bodies, solve_factored, refine, run_interior_point, solve_active_pieces, newton, solve_redundant
    )


def compile_friction() -> None:
    """Compile friction and the rows of contacts."""
    _compile(
        friction_defect, update_friction, compute_contact_response, solve_coulomb_law, fill_contact_arrays,
        fill_contact_rows, prepare_solve, sweep_rows, sweep_joints,
    )  # fmt: skip


def compile_collision() -> None:
    """Compile the search for contacts."""
    _compile(find_contacts)


def compile_rows() -> None:
    """Compile all rows but those of contacts."""
    _compile(fill_persistent_rows)


def compile_step() -> None:
    """Compile the soft step, which loads all kernels of the other tasks."""
    sample = make_sample()
    record = make_record(sample.compiled, 2)
    Simulation(sample.compiled, sample.state, sample.inputs).advance(2, record)
    post_stabilize(sample.compiled, sample.state)


def compile_coordinates() -> None:
    """Compile coordinates from poses and back."""
    sample = make_sample()
    record = make_record(sample.compiled, 2)
    initial_state(sample.compiled)
    coordinates_and_velocities(sample.compiled, record.pose, record.twist)


def _compile(*functions: Any) -> None:
    register_pointers(soft_step_functions(make_sample()))
    for function in functions:
        compile_pointer(function)


POINTER_TASKS = (
    # nets have long loops
    CompileTask("solver", compile_solver, 0, compiler={"NUMBA_LOOP_VECTORIZE": "1"}),
    CompileTask("friction", compile_friction, 1),
    CompileTask("contacts", compile_collision, 2),
    CompileTask("rows", compile_rows, 3),
)
"""Tasks with the kernel functions that a step calls by pointer."""
TASKS = POINTER_TASKS

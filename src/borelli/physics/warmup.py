"""Compilation of the kernels of a step, in tasks that may run in processes of their own."""

from __future__ import annotations

import numpy as np

from borelli.kernels.compile_cache import CompileTask
from borelli.kernels.jit import compile_pointer, register_pointers
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.function_pointers import make_sample, soft_step_functions, soft_step_groups
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.post_stabilization import post_stabilize
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.state import make_state


def compile_solver() -> None:
    """Compile Newton's method and the elimination under it."""
    _compile_group("solver")


def compile_friction() -> None:
    """Compile friction and the rows of contacts."""
    _compile_group("friction")


def compile_collision() -> None:
    """Compile the search for contacts."""
    _compile_group("contacts")


def compile_rows() -> None:
    """Compile all rows but those of contacts."""
    _compile_group("rows")


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
    state, joints = make_state(sample.compiled), sample.compiled.tables.joints
    still = np.zeros_like(state.coordinate)
    poses_from_coordinates(joints, state.coordinate, still, state.position, state.quaternion, state.twist)
    coordinates_and_velocities(sample.compiled, record.pose, record.twist)


def _compile_group(name: str) -> None:
    sample = make_sample()
    register_pointers(soft_step_functions(sample))
    for function in soft_step_groups(sample)[name]:
        compile_pointer(function)


POINTER_TASKS = (
    # nets have long loops
    CompileTask("solver", compile_solver, 0, vectorize_loops=True),
    CompileTask("friction", compile_friction, 1),
    CompileTask("contacts", compile_collision, 3),
    CompileTask("rows", compile_rows, 2),
)
"""Tasks with the kernel functions that a step calls by pointer."""
TASKS = POINTER_TASKS

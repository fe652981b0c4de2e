"""Compile the kernels of a step, part by part: each part may be compiled by a process of its own, into the cache."""

from __future__ import annotations

from borelli.jit import compile_far, register_far
from borelli.physics.calls import list_parts, make_sample
from borelli.physics.measure import coordinates_of
from borelli.physics.simulate import start_state
from borelli.physics.simulation import Simulation, make_record
from borelli.physics.stabilise import post_stabilise

PARTS = {
    "solver": (
        "factor_bodies", "solve_factored", "refine", "find_segments_by_interior_point", "solve_piece", "newton",
        "solve_redundant",
    ),
    "contacts": ("find_contacts",),
    "rows": ("fill_standing_rows",),
    "friction": (
        "check_friction", "update_friction", "find_answers", "settle",
        "read_contacts", "fill_contact_rows", "prepare_solve", "sweep_rows", "sweep_joints",
    ),
}
"""What a step calls by address."""


def compile_part(name: str) -> None:
    """Compile one of `PARTS`, or "step" (which loads them all), or "coordinates"."""
    sample = make_sample()
    if name in PARTS:
        parts = list_parts(sample)
        register_far(parts)
        for function in parts:
            if function.__name__ in PARTS[name]:
                compile_far(function)
        return
    record = make_record(sample.compiled, 2)
    if name == "step":
        Simulation(sample.compiled, sample.state, sample.inputs).advance(2, record)
        post_stabilise(sample.compiled, sample.state)
    else:
        start_state(sample.compiled)
        coordinates_of(sample.compiled, record.pose, record.twist)

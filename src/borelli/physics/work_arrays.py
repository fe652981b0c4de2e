"""Work arrays of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.files.memory import check_memory
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.collision.detect import Contacts, make_contacts
from borelli.physics.group_momentum import TALLY_COLUMNS
from borelli.physics.joint_closing import KEPT_COLUMNS
from borelli.physics.rows.contact_rows import MAX_CONTACT_BODIES, ContactArrays, make_contact_arrays
from borelli.physics.rows.joint_rows import init_joint_rows
from borelli.physics.rows.rows import Rows, make_rows
from borelli.physics.solver.elimination_order import Graph, GraphWork, make_graph, make_graph_work
from borelli.physics.solver.factor_arrays import MIN_FOLD_SLOPE, Capacity, Factor, Fill, make_factor, make_fill
from borelli.physics.solver.interior_point import Interior, make_interior
from borelli.physics.solver.newton import Search, make_search

Floats = NDArray[np.float64]

ROW_NUMBERS = 240
"""Numbers for each row in all work arrays together."""
FOLD_SOFTNESS = 1e-8
"""A one-body row softer than this fraction of J M^-1 J^T is folded into its body's block."""


class Scratch(NamedTuple):
    """Values of one step outside the solver."""

    rotation: Floats
    """(n, 3, 3)"""
    wrench: Floats
    """(n, 6) applied forces and torques at the center of mass."""
    aim: Floats
    """(n, 6) twists that lead to the poses of the next frame."""
    begin_position: Floats
    begin_quaternion: Floats
    begin_twist: Floats
    """(n, 3), (n, 4) and (n, 6) poses and velocities before the step."""
    speed: Floats
    """(q,) velocities of coordinates."""
    impulse: Floats
    block: Floats
    """(rows,) impulses and (n, KEPT_COLUMNS + 6) blocks of the step, while joints are closed after it."""
    tally_before: Floats
    tally: Floats
    """(groups, TALLY_COLUMNS) momenta before and after that."""
    solver_stats: NDArray[np.int64]
    """(4,) as in `Record.solver_stats`."""


class Work(NamedTuple):
    """Arrays that a step writes to besides the state; without them the next step computes the same bits."""

    rows: Rows
    kept_rows: Rows
    """Directions and laws of the step, while joints are closed after it; before, errors of joints after the step."""
    graph: Graph
    graph_work: GraphWork
    factor: Factor
    fill: Fill
    search: Search
    interior: Interior
    contacts: Contacts
    contact_arrays: ContactArrays
    scratch: Scratch
    links: NDArray[np.int64]
    """(capacity, 2) pairs of bodies with a common row in this step."""
    link_count: NDArray[np.int64]


def make_work(compiled: CompiledModel, contacts: int, capacity: Capacity | None = None) -> Work:
    """Return work arrays with capacity for `contacts` contacts at a time."""
    tables = compiled.tables
    bodies, each = len(tables.bodies.mass), int(tables.contacts.rows_each[0])
    slots = min(contacts, int(tables.shapes.pair_first[-1]))
    entries = np.array(compiled.rows.entries + [2] * (each * slots), np.int64)
    rows = make_rows(entries)
    rows.pieces[:] = 0
    init_joint_rows(tables.joints, rows)
    for i, row in enumerate(tables.marker_springs.row):
        for axis in range(3):
            rows.body[rows.first[row + axis]] = tables.marker_springs.body[i]
            rows.jacobian[rows.first[row + axis], axis] = 1.0
    for row, body, axis in zip(tables.residuals.row, tables.residuals.body, tables.residuals.axis, strict=True):
        rows.body[rows.first[row]] = body
        rows.jacobian[rows.first[row], axis] = 1.0
    capacity = capacity or Capacity.initial(bodies, len(entries))
    joined = 12 * min(bodies, 2 * slots, MAX_CONTACT_BODIES)
    numbers = sum(capacity) + 50 * capacity.neighbors + ROW_NUMBERS * len(entries) + joined**2
    check_memory(
        bodies**2 + 8.0 * numbers, f"{compiled.model.name!r}: A step with {bodies} bodies and up to {slots} contacts",
        "Use fewer bodies, or fewer shapes that touch each other.",
    )  # fmt: skip
    factor = make_factor(bodies, len(entries), len(rows.body), capacity)
    free = tables.bodies.mass[tables.bodies.kinematic == 0]
    factor.value[:, MIN_FOLD_SLOPE] = FOLD_SOFTNESS / free.min() if len(free) else 0.0
    persistent = len(tables.bodies.links)
    links = np.full((persistent + slots, 2), -1, np.int64)
    links[:persistent] = tables.bodies.links
    return Work(
        rows=rows,
        kept_rows=make_rows(entries),
        graph=make_graph(bodies, capacity.neighbors),
        graph_work=make_graph_work(bodies),
        factor=factor,
        fill=make_fill(capacity),
        search=make_search(len(entries)),
        interior=make_interior(len(entries)),
        contacts=make_contacts(tables.shapes, slots),
        contact_arrays=make_contact_arrays(bodies, slots),
        scratch=Scratch(
            rotation=np.zeros((bodies, 3, 3)),
            wrench=np.zeros((bodies, 6)),
            aim=np.zeros((bodies, 6)),
            begin_position=np.zeros((bodies, 3)),
            begin_quaternion=np.zeros((bodies, 4)),
            begin_twist=np.zeros((bodies, 6)),
            speed=np.zeros(len(tables.joints.joint)),
            impulse=np.zeros(len(entries)),
            block=np.zeros((bodies, KEPT_COLUMNS + 6)),
            tally_before=np.zeros((len(tables.bodies.group_kind), TALLY_COLUMNS)),
            tally=np.zeros((len(tables.bodies.group_kind), TALLY_COLUMNS)),
            solver_stats=np.zeros(4, np.int64),
        ),
        links=links,
        link_count=np.zeros(1, np.int64),
    )

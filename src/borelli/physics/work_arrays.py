"""The work arrays of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.physics.arrays.compile_model import Compiled
from borelli.physics.collision.detect import Contacts, make_contacts
from borelli.physics.rows.contact_rows import ContactArrays, make_contact_arrays
from borelli.physics.rows.joint_rows import init_joint_rows
from borelli.physics.rows.rows import Rows, make_rows
from borelli.physics.solver.elimination_order import Graph, GraphWork, make_graph, make_graph_work
from borelli.physics.solver.factor_arrays import MIN_FOLD_SLOPE, Capacity, Factor, Fill, make_factor, make_fill
from borelli.physics.solver.interior_point import Interior, make_interior
from borelli.physics.solver.newton import Search, make_search
from borelli.physics.solver.workspace import FOLD_SOFTNESS, initial_capacity

Floats = NDArray[np.float64]


class Scratch(NamedTuple):
    """Numbers of one step that are not the solver's."""

    rotation: Floats
    """(n, 3, 3)"""
    wrench: Floats
    """(n, 6) pushes from outside."""
    aim: Floats
    """(n, 6) twists that lead to the next known poses."""
    speed: Floats
    """(q,)"""
    told: NDArray[np.int64]
    """(4,) Newton iterations, friction solves, contacts, status."""


class Work(NamedTuple):
    """All that a step writes to besides the state; thrown away, the next step gives the same bits."""

    rows: Rows
    graph: Graph
    graph_work: GraphWork
    factor: Factor
    fill: Fill
    search: Search
    interior: Interior
    contacts: Contacts
    touch: ContactArrays
    scratch: Scratch
    links: NDArray[np.int64]
    """(capacity, 2) bodies that share rows in this step."""
    link_count: NDArray[np.int64]


def make_work(compiled: Compiled, contacts: int, capacity: Capacity | None = None) -> Work:
    """Work arrays with room for so many contacts at a time."""
    tables = compiled.tables
    bodies, each = len(tables.bodies.mass), int(tables.contacts.rows_each[0])
    room = min(contacts, int(tables.shapes.pair_first[-1]))
    entries = np.array(compiled.rows.entries + [2] * (each * room), np.int64)
    rows = make_rows(entries)
    rows.pieces[:] = 0
    init_joint_rows(tables.joints, rows)
    for i, row in enumerate(tables.anchors.row):
        for axis in range(3):
            rows.body[rows.first[row + axis]] = tables.anchors.body[i]
            rows.jacobian[rows.first[row + axis], axis] = 1.0
    for row, body, axis in zip(tables.residuals.row, tables.residuals.body, tables.residuals.axis, strict=True):
        rows.body[rows.first[row]] = body
        rows.jacobian[rows.first[row], axis] = 1.0
    capacity = capacity or initial_capacity(bodies, len(entries))
    factor = make_factor(bodies, len(entries), len(rows.body), capacity)
    free = tables.bodies.mass[tables.bodies.kinematic == 0]
    factor.value[:, MIN_FOLD_SLOPE] = FOLD_SOFTNESS / free.min() if len(free) else 0.0
    standing = len(tables.bodies.links)
    links = np.full((standing + room, 2), -1, np.int64)
    links[:standing] = tables.bodies.links
    return Work(
        rows=rows,
        graph=make_graph(bodies, capacity.neighbors),
        graph_work=make_graph_work(bodies),
        factor=factor,
        fill=make_fill(capacity),
        search=make_search(len(entries)),
        interior=make_interior(len(entries)),
        contacts=make_contacts(tables.shapes, room),
        touch=make_contact_arrays(bodies, room),
        scratch=Scratch(
            rotation=np.zeros((bodies, 3, 3)),
            wrench=np.zeros((bodies, 6)),
            aim=np.zeros((bodies, 6)),
            speed=np.zeros(len(tables.joints.joint)),
            told=np.zeros(4, np.int64),
        ),
        links=links,
        link_count=np.zeros(1, np.int64),
    )

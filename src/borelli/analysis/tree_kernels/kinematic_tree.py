"""A model's tree as arrays for kernels: every joint as up to three shifts and three turns in sequence.

A *part* is one shift along, or turn about, an axis by a function of one coordinate; the parts on the way from the
ground to a body move it. Shifts come before turns, because turns leave a joint's shifts alone. A *variable* is a
coordinate that is free: not locked, not coupled; a coupled coordinate moves with the variable its couplings lead to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError
from borelli.model.functions import Function
from borelli.model.kinematics import coupling_order, tree_links
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.model.transforms import orientation_matrix

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tree(NamedTuple):
    """Arrays by link (joint of the tree, parents first), by part, by coordinate, by function."""

    child: Integers
    parent: Integers
    """-1: the ground."""
    parent_position: Floats
    """(links, 3) of the joint's frame in the parent [m]."""
    parent_rotation: Floats
    """(links, 3, 3)"""
    child_position: Floats
    child_rotation: Floats
    first: Integers
    """(links + 1,) where the parts of each link begin."""
    rotations: Integers
    """How many of a link's parts, the last ones, are turns."""
    axis: Floats
    """(parts, 3) in the parent's joint frame, unturned."""
    coordinate: Integers
    """Of each part; -1: its function is constant."""
    function: Integers
    """Of each part; -1: the coordinate itself."""
    before: Integers
    """The part before it on the way to the ground; -1: none."""
    body_part: Integers
    """(bodies,) the last part that moves a body; -1: none."""
    body_place: Floats
    """(bodies, 3) where a body that hangs on no joint is."""
    body_turn: Floats
    """(bodies, 3, 3)"""
    held: Integers
    """Coupled coordinates, each after those it depends on."""
    held_on: Integers
    held_function: Integers
    variable: Integers
    """(coordinates,) the variable each moves with; -1: none."""
    free: Integers
    """(variables,) the coordinate each variable is."""
    row_first: Integers
    """(variables + 1,) where the row of each variable begins in `row_column`."""
    row_column: Integers
    """Earlier variables that share a path with the row's, ascending; with those that elimination from the last adds.

    Of any variable in a row, all before it are that variable's own row: column j has the same place, the length of row
    j, in every row it is in. Matrices are kept so: row by row without gaps, the diagonal last.
    """
    moves: Integers
    """(parts,) the variable each part moves with; -1: none."""
    carries: Integers
    """(parts,) the body that hangs on each part's joint."""
    first_piece: Integers
    """(functions + 1,)"""
    start: Floats
    """(pieces,) where each begins."""
    end: Floats
    """(pieces,) where each ends."""
    coefficient: Floats
    """(pieces, order) of powers of the distance from the start."""


def make_tree(model: Model, *, fixed: tuple[str, ...] = ()) -> Tree:
    """The arrays of a model; coordinates named in `fixed` are no variables, as if they were locked."""
    return _tree(model, fixed)


@cached_per_model
def _tree(model: Model, fixed: tuple[str, ...]) -> Tree:
    links = tree_links(model)
    functions: list[Function] = []
    axis, coordinate, function, before, turns = [], [], [], [], []
    first, last_of = [0], np.full(len(model.bodies) + 1, -1)
    for link in links:
        last = last_of[link.parent]
        for part in (*link.translations, *link.rotations):
            axis.append(part.axis)
            coordinate.append(part.column)
            function.append(-1 if part.function is None else len(functions))
            if part.function is not None:
                functions.append(part.function)
            before.append(last)
            last = len(axis) - 1
        last_of[link.child] = last
        first.append(len(axis))
        turns.append(len(link.rotations))
    couplings = coupling_order(model)
    held_function = []
    for _, _, curve in couplings:
        held_function.append(len(functions))
        functions.append(curve)
    variable, free = _variables(model, [(held, on) for held, on, _ in couplings], fixed)
    moves = [int(variable[c]) if c >= 0 else -1 for c in coordinate]
    row_first, row_column = _rows(moves, before, len(free))
    first_piece, start, end, coefficient = _pieces(functions)
    frames = [body.frame for body in model.bodies]
    return Tree(
        child=_integers([link.child for link in links]),
        parent=_integers([link.parent for link in links]),
        parent_position=_table([link.parent_position for link in links], 3),
        parent_rotation=_table([link.parent_rotation for link in links], 3, 3),
        child_position=_table([link.child_position for link in links], 3),
        child_rotation=_table([link.child_rotation for link in links], 3, 3),
        first=_integers(first),
        rotations=_integers(turns),
        axis=_table(axis, 3),
        coordinate=_integers(coordinate),
        function=_integers(function),
        before=_integers(before),
        body_part=_integers(last_of[:-1]),
        body_place=_table([frame.position for frame in frames], 3),
        body_turn=_table([orientation_matrix(frame.orientation) for frame in frames], 3, 3),
        held=_integers([held for held, _, _ in couplings]),
        held_on=_integers([on for _, on, _ in couplings]),
        held_function=_integers(held_function),
        variable=variable,
        free=free,
        row_first=row_first,
        row_column=row_column,
        moves=_integers(moves),
        carries=_integers([link.child for link in links for _ in (*link.translations, *link.rotations)]),
        first_piece=first_piece,
        start=start,
        end=end,
        coefficient=coefficient,
    )


def _variables(model: Model, held: list[tuple[int, int]], fixed: tuple[str, ...]) -> tuple[Integers, Integers]:
    coordinates = model.coordinates
    names = [c.name for c in coordinates]
    for name in fixed:
        if name not in names:
            raise ModelError(f"model {model.name!r} has no coordinate {name!r}; it has {', '.join(names)}")
    coupled = {column for column, _ in held}
    kept = {*fixed, *(c.name for joint in model.joints if joint.closes_loop for c in joint.coordinates)}
    free = [i for i, c in enumerate(coordinates) if not (c.locked or i in coupled or c.name in kept)]
    variable = np.full(len(coordinates), -1, np.int64)
    variable[free] = np.arange(len(free))
    for column, on in held:
        variable[column] = variable[on]
    return variable, _integers(free)


def _rows(variable: list[int], before: list[int], count: int) -> tuple[Integers, Integers]:
    """The pattern of a matrix whose entries are pairs of variables on one path, closed under elimination.

    Bit j of row i says that both share a path, j < i. Where couplings tie paths together, a row gets what the rows of
    its variables have besides, and those what it has: a few zeros more to keep, and every row begins with another.
    """
    rows, path = [0] * count, [0] * len(variable)
    for part, v in enumerate(variable):
        shared = path[before[part]] if before[part] >= 0 else 0
        path[part] = shared
        if v >= 0:
            rows[v] |= shared & ((1 << v) - 1)
            for i in _bits(shared >> (v + 1)):  # a coupled coordinate may move with a later variable
                rows[v + 1 + i] |= 1 << v
            path[part] |= 1 << v
    closed: list[int] = []
    while rows != closed:
        closed = rows.copy()
        # enough to tell the last variable of a row: it tells the others
        for k in range(count - 1, -1, -1):
            last = rows[k].bit_length() - 1
            if last >= 0:
                rows[last] |= rows[k] & ((1 << last) - 1)
        for k in range(count):
            last = rows[k].bit_length() - 1
            if last >= 0:
                rows[k] |= rows[last]
    columns = [_bits(row) for row in rows]
    return _integers(np.cumsum([0, *map(len, columns)])), _integers([i for row in columns for i in row])


def _bits(number: int) -> list[int]:
    """Which are set, ascending."""
    return [i for i, bit in enumerate(reversed(f"{number:b}")) if bit == "1"]


def _pieces(functions: list[Function]) -> tuple[Integers, Floats, Floats, Floats]:
    order = max((len(c) for f in functions for c in f.coefficients), default=1)
    first, start, end, rows = [0], [], [], []
    for function in functions:
        for i, coefficients in enumerate(function.coefficients):
            start.append(function.breaks[i])
            end.append(function.breaks[i + 1])
            rows.append([*coefficients, *[0.0] * (order - len(coefficients))])
        first.append(len(rows))
    return _integers(first), np.array(start, float), np.array(end, float), _table(rows, order)


def _integers(values: object) -> Integers:
    return np.array(values, dtype=np.int64).reshape(-1)


def _table(rows: object, *shape: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(-1, *shape)

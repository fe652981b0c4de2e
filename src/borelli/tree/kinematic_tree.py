"""Kinematic tree of a model as arrays for kernels: every joint as up to three translations and three rotations.

A *part* is one translation along, or rotation about, an axis by a function of one coordinate; the parts on the path
from the ground to a body move it. Translations come before rotations, which do not change a joint's translations. A
*variable* is a free coordinate: not locked, not coupled; a coupled coordinate moves with the variable that its
couplings lead to.
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
    """(links + 1,) index of the first part of each link."""
    rotations: Integers
    """(links,) number of rotations; they are a link's last parts."""
    axis: Floats
    """(parts, 3) in the parent's joint frame at zero rotation."""
    coordinate: Integers
    """(parts,) coordinate of a part; -1: its function is constant."""
    function: Integers
    """(parts,) function of a part; -1: the coordinate itself."""
    previous: Integers
    """(parts,) previous part on the path from the ground; -1: none."""
    body_part: Integers
    """(bodies,) the last part that moves a body; -1: none."""
    body_position: Floats
    """(bodies, 3) position of a body without joint."""
    body_rotation: Floats
    """(bodies, 3, 3)"""
    coupled: Integers
    """Coupled coordinates, each after those it depends on."""
    coupled_to: Integers
    coupled_function: Integers
    variable: Integers
    """(coordinates,) variable of a coordinate; -1: none."""
    free: Integers
    """(variables,) coordinate of a variable."""
    row_first: Integers
    """(variables + 1,) index of the first entry of each variable's row in `row_column`."""
    row_column: Integers
    """Earlier variables that share a path with the row's, ascending, and fill-in of elimination from the last one.

    The part of a row before variable j is the row of j: column j has the same index, the length of row j, in every row
    that contains it. Matrices are stored so: row by row without gaps, the diagonal last.
    """
    part_variable: Integers
    """(parts,) variable of a part; -1: none."""
    part_body: Integers
    """(parts,) child body of each part's joint."""
    first_piece: Integers
    """(functions + 1,)"""
    start: Floats
    """(pieces,) start of each piece."""
    end: Floats
    """(pieces,) end of each piece."""
    coefficient: Floats
    """(pieces, order) of powers of the distance from the start."""


@cached_per_model
def make_tree(model: Model, fixed: tuple[str, ...] = ()) -> Tree:
    """Return the arrays of a model; coordinates named in `fixed` are not variables, as if they were locked."""
    links = tree_links(model)
    functions: list[Function] = []
    axis, coordinate, function, previous, rotations = [], [], [], [], []
    first, last_of = [0], np.full(len(model.bodies) + 1, -1)
    for link in links:
        last = last_of[link.parent]
        for part in (*link.translations, *link.rotations):
            axis.append(part.axis)
            coordinate.append(part.column)
            function.append(-1 if part.function is None else len(functions))
            if part.function is not None:
                functions.append(part.function)
            previous.append(last)
            last = len(axis) - 1
        last_of[link.child] = last
        first.append(len(axis))
        rotations.append(len(link.rotations))
    couplings = coupling_order(model)
    coupled_function = []
    for _, _, curve in couplings:
        coupled_function.append(len(functions))
        functions.append(curve)
    variable, free = _variables(model, [(coupled, on) for coupled, on, _ in couplings], fixed)
    part_variable = [int(variable[c]) if c >= 0 else -1 for c in coordinate]
    row_first, row_column = _rows(part_variable, previous, len(free))
    first_piece, start, end, coefficient = function_pieces(functions)
    frames = [body.frame for body in model.bodies]
    return Tree(
        child=_integers([link.child for link in links]),
        parent=_integers([link.parent for link in links]),
        parent_position=_table([link.parent_position for link in links], 3),
        parent_rotation=_table([link.parent_rotation for link in links], 3, 3),
        child_position=_table([link.child_position for link in links], 3),
        child_rotation=_table([link.child_rotation for link in links], 3, 3),
        first=_integers(first),
        rotations=_integers(rotations),
        axis=_table(axis, 3),
        coordinate=_integers(coordinate),
        function=_integers(function),
        previous=_integers(previous),
        body_part=_integers(last_of[:-1]),
        body_position=_table([frame.position for frame in frames], 3),
        body_rotation=_table([orientation_matrix(frame.orientation) for frame in frames], 3, 3),
        coupled=_integers([coupled for coupled, _, _ in couplings]),
        coupled_to=_integers([on for _, on, _ in couplings]),
        coupled_function=_integers(coupled_function),
        variable=variable,
        free=free,
        row_first=row_first,
        row_column=row_column,
        part_variable=_integers(part_variable),
        part_body=_integers([link.child for link in links for _ in (*link.translations, *link.rotations)]),
        first_piece=first_piece,
        start=start,
        end=end,
        coefficient=coefficient,
    )


@cached_per_model
def make_coordinate_tree(model: Model) -> Tree:
    """Return the arrays of a model in which every coordinate, also a locked or coupled one, is a variable.

    Matrices are not stored in the rows of this tree.
    """
    tree, none = make_tree(model), np.zeros(0, np.int64)
    every = np.arange(len(model.coordinates))
    return tree._replace(
        coupled=none, coupled_to=none, coupled_function=none, variable=every, free=every,
        row_first=none, row_column=none, part_variable=tree.coordinate,
    )  # fmt: skip


def _variables(model: Model, coupled: list[tuple[int, int]], fixed: tuple[str, ...]) -> tuple[Integers, Integers]:
    coordinates = model.coordinates
    names = [c.name for c in coordinates]
    for name in fixed:
        if name not in names:
            raise ModelError(f"Model {model.name!r} has no coordinate {name!r}. Its coordinates: {', '.join(names)}.")
    coupled_columns = {column for column, _ in coupled}
    fixed_names = {*fixed, *(c.name for joint in model.joints if joint.closes_loop for c in joint.coordinates)}
    free = [i for i, c in enumerate(coordinates) if not (c.locked or i in coupled_columns or c.name in fixed_names)]
    variable = np.full(len(coordinates), -1, np.int64)
    variable[free] = np.arange(len(free))
    for column, on in coupled:
        variable[column] = variable[on]
    return variable, _integers(free)


def _rows(variable: list[int], previous: list[int], count: int) -> tuple[Integers, Integers]:
    """Return the pattern of a matrix whose entries are pairs of variables on one path, closed under elimination.

    Bit j of row i: both share a path, j < i. Where couplings connect paths, a row gets the entries of the rows of its
    variables, and those get its own: some zeros are stored, and every row begins with another one.
    """
    rows, path = [0] * count, [0] * len(variable)
    for part, v in enumerate(variable):
        shared = path[previous[part]] if previous[part] >= 0 else 0
        path[part] = shared
        if v >= 0:
            rows[v] |= shared & ((1 << v) - 1)
            for i in _bits(shared >> (v + 1)):  # a coupled coordinate may move with a later variable
                rows[v + 1 + i] |= 1 << v
            path[part] |= 1 << v
    closed: list[int] = []
    while rows != closed:
        closed = rows.copy()
        # passing entries to the last variable of a row is enough: it passes them to the others
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
    """Return the indices of the bits set, ascending."""
    return [i for i, bit in enumerate(reversed(f"{number:b}")) if bit == "1"]


def function_pieces(functions: list[Function]) -> tuple[Integers, Floats, Floats, Floats]:
    """Return the first piece of each function, and start, end and coefficients of the pieces."""
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

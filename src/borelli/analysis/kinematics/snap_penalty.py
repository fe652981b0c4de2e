"""How jerky a motion is, counted so that neither the lab's axes nor the way angles are counted matter.

The *snap* of a variable is its fourth difference in time. Where a joint turns about three axes (a ball joint, the
root) its three angles are no measure: they depend on where the axes lie and run wild near a gimbal lock. There, the
turns of the neighbouring frames are taken as the middle frame's child sees them,

    y = sum c_k s(R_m^T R_k)        s(M): half the axial vector of M - M^T, the sine of the angle along the axis

with c the coefficients of the difference, k the frames, m the middle one. A turn of the lab drops out. With E_k a
small turn of the child in its own axes, ds = (tr M - M^T) E_k / 2 - (tr M - M) E_m / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.kinematic_tree import Tree
from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model
from borelli.numerics.banded import BandedMatrix

Array = NDArray[np.float64]

COEFFICIENTS = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
"""Of the fourth difference."""
DIFFERENCE_ORDER = len(COEFFICIENTS) - 1
MIDDLE = DIFFERENCE_ORDER // 2


@dataclass(frozen=True)
class SphericalJoint:
    """A joint that turns about three axes."""

    link: Link
    columns: tuple[int, int, int]
    """Of its coordinates."""
    variables: tuple[int, int, int]


@dataclass(frozen=True)
class Grouping:
    """Which variables are looked at each by itself, and which as turns."""

    rotations: tuple[SphericalJoint, ...]
    plain: NDArray[np.int64]
    """Variables."""
    family: NDArray[np.int64]
    """Of each plain variable: those of one family (the shifts of one joint) share a weight."""


def group_variables(model: Model, tree: Tree) -> Grouping:
    """How the snap of a model's variables is counted."""
    turns, family = [], np.arange(len(tree.free))
    for link in tree_links(model):
        columns = tuple(part.column for part in link.rotations)
        variables = tuple(int(tree.variable[c]) if c >= 0 else -1 for c in columns)
        own = [c for c in columns if c >= 0 and c in tree.free]
        if len(own) == len(set(variables)) == 3:
            turns.append(SphericalJoint(link, (columns[0], columns[1], columns[2]), (variables[0], variables[1], variables[2])))
        shifts = [int(tree.variable[p.column]) for p in link.translations if p.column >= 0 and p.column in tree.free]
        family[[v for v in shifts if v >= 0]] = min(shifts, default=0)
    turned = {v for turn in turns for v in turn.variables}
    plain = np.array([v for v in range(len(tree.free)) if v not in turned], np.int64)
    return Grouping(tuple(turns), plain, family[plain])


def find_snap(grouping: Grouping, tree: Tree, q: Array) -> tuple[Array, list[Array]]:
    """The snap (frames - 4, variables) of a motion, and how that of each turn changes.

    Args:
        grouping: How it is counted.
        tree: The model's.
        q: (frames, coordinates).

    Returns:
        The snap; a turn's three entries are along the child's axes. For every turn (5, frames - 4, 3, 3): change of its
        snap with its variables in each of the five frames.
    """
    windows = len(q) - DIFFERENCE_ORDER
    snap = np.zeros((windows, len(tree.free)))
    values = q[:, tree.free[grouping.plain]]
    for k, c in enumerate(COEFFICIENTS):
        snap[:, grouping.plain] += c * values[k : k + windows]
    changes = []
    for turn in grouping.rotations:
        rotation, spin = joint_rotation(turn, q)
        middle = rotation[MIDDLE : MIDDLE + windows]
        change = np.zeros((DIFFERENCE_ORDER + 1, windows, 3, 3))
        total = np.zeros((windows, 3))
        for k, c in enumerate(COEFFICIENTS):
            if k == MIDDLE:
                continue
            M = middle.swapaxes(1, 2) @ rotation[k : k + windows]
            total += 0.5 * c * _axial(M - M.swapaxes(1, 2))
            trace = np.trace(M, axis1=1, axis2=2)[:, None, None] * np.eye(3)
            change[k] = 0.5 * c * (trace - M.swapaxes(1, 2)) @ spin[k : k + windows]
            change[MIDDLE] -= 0.5 * c * (trace - M) @ spin[MIDDLE : MIDDLE + windows]
        snap[:, turn.variables] = total
        changes.append(change)
    return snap, changes


def snap_gradient(grouping: Grouping, changes: list[Array], force: Array) -> Array:
    """Gradient (frames, variables) of sum weight snap^2 / 2, the force (frames - 4, variables) being weight snap."""
    windows = len(force)
    gradient = np.zeros((windows + DIFFERENCE_ORDER, force.shape[1]))
    for k, c in enumerate(COEFFICIENTS):
        gradient[k : k + windows, grouping.plain] += c * force[:, grouping.plain]
    for turn, change in zip(grouping.rotations, changes, strict=True):
        own = force[:, turn.variables][:, None]
        for k in range(DIFFERENCE_ORDER + 1):
            gradient[k : k + windows, turn.variables] += (own @ change[k])[:, 0]
    return gradient


def add_snap(grouping: Grouping, changes: list[Array], weight: Array, band: BandedMatrix) -> None:
    """Adds Gauss and Newton's second derivative of sum weight snap^2 / 2 to a band of reach 4."""
    frames, n = band.entry.shape[:2]
    windows = frames - DIFFERENCE_ORDER
    square = np.zeros((DIFFERENCE_ORDER + 1, frames))
    for early in range(DIFFERENCE_ORDER + 1):
        for late in range(early, DIFFERENCE_ORDER + 1):
            square[late - early, early : early + windows] += COEFFICIENTS[early] * COEFFICIENTS[late]
    for later in range(DIFFERENCE_ORDER + 1):
        band.entry[:, grouping.plain, later * n] += square[later][:, None] * weight[grouping.plain]
    for turn, change in zip(grouping.rotations, changes, strict=True):
        own = weight[list(turn.variables)]
        blocks = np.zeros((DIFFERENCE_ORDER + 1, frames, 3, 3))
        for early in range(DIFFERENCE_ORDER + 1):
            weighted = change[early] * own[:, None]
            for late in range(early, DIFFERENCE_ORDER + 1):
                blocks[late - early, early : early + windows] += change[late].swapaxes(1, 2) @ weighted
        for later in range(DIFFERENCE_ORDER + 1):
            for i, a in enumerate(turn.variables):
                for j, b in enumerate(turn.variables):
                    band.add_entries(later, a, b, blocks[later, :, i, j])


def joint_rotation(turn: SphericalJoint, q: Array) -> tuple[Array, Array]:
    """Rotation (frames, 3, 3) of a joint's child, and its spin in its own axes per speed of each variable (columns)."""
    rotation = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    spin = np.zeros((len(q), 3, 3))
    for i, part in enumerate(turn.link.rotations):
        value, slope, _ = part.values(q)
        step = _about(part.axis, value)
        spin = step.swapaxes(1, 2) @ spin
        spin[:, :, i] = slope[:, None] * part.axis
        rotation = rotation @ step
    return rotation, spin


def _about(axis: Array, angle: Array) -> Array:
    """Rotations (frames, 3, 3) by angles about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)


def _axial(M: Array) -> Array:
    """Of a skew matrix, the vector."""
    return np.stack([M[:, 2, 1], M[:, 0, 2], M[:, 1, 0]], axis=-1)

"""Joints that turn freely, filtered and differentiated as rotations and not as three angles.

Cardan angles depend on which way the lab's axes point, and leap where the second of them nears a right angle. The four
numbers of a quaternion p do neither: turning the lab mixes them linearly, so that a low-pass, a spline and a mirror all
commute with it. Between frames p need not be of unit length; with dots for time derivatives

    spin  w = 2 vec(p' p*) / p.p          its change  w' = 2 vec(p'' p*) / p.p - w (2 p.p' / p.p)

are those of p / |p|. Speeds u of the angles follow from w = E u, with E the axes as the turns before have left them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import evaluate, tree_links
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.vectors import cross

Array = NDArray[np.float64]

NEAR_LOCK = 0.35
"""Cosine of the second angle, about 70 deg, below which a joint is treated as a rotation."""
LOCKED = 1e-4
"""Least cosine of the second angle with which speeds of the others are computed: nearer they mean nothing."""


class ThreeAxisJoint(NamedTuple):
    """Three turns about axes at right angles, each by a coordinate."""

    columns: tuple[int, int, int]
    axes: Array
    """(3, 3) one axis a row, in the parent's joint frame."""


def find_rotation_joints(model: Model, coordinates: Array) -> tuple[ThreeAxisJoint, ...]:
    """The joints to be treated as rotations: free ones, and those whose angles come near to where they leap.

    Angles of other joints are low-passed as they are, as everywhere, and so are those of a pelvis whose joint is
    OpenSim's: low-passing rotations instead changes angles by less than 0.1 deg, but, in running, moments of hip
    and back by up to a tenth of their peak.

    Args:
        model: The model; joints count that turn about three axes at right angles by coordinates of their own.
        coordinates: (frames, coordinates) [rad or m] of the motion.
    """
    free = {c.name for joint in model.joints if joint.kind == "free" for c in joint.coordinates}
    return tuple(
        turn
        for turn in three_axis_joints(model)
        if model.coordinates[turn.columns[0]].name in free
        or np.abs(np.cos(coordinates[:, turn.columns[1]])).min() < NEAR_LOCK
    )


@cached_per_model
def three_axis_joints(model: Model) -> tuple[ThreeAxisJoint, ...]:
    """The joints of a model that turn about three axes by three coordinates of their own."""
    held = {coupling.coordinate for coupling in model.couplings}
    coordinates = model.coordinates
    angles = np.linspace(-3.0, 3.0, 13)
    found = []
    for link in tree_links(model):
        columns = tuple(part.column for part in link.rotations)
        if len(columns) != 3 or min(columns) < 0 or len(set(columns)) < 3:
            continue
        if any(coordinates[c].locked or coordinates[c].name in held for c in columns):
            continue
        plain = all(
            part.function is None or np.allclose(evaluate(part.function, angles)[0], angles) for part in link.rotations
        )
        axes = np.array([part.axis for part in link.rotations])
        if plain and np.abs(axes @ axes.T - np.eye(3)).max() < 1e-9:
            found.append(ThreeAxisJoint((columns[0], columns[1], columns[2]), axes))
    return tuple(found)


def joint_quaternions(turn: ThreeAxisJoint, coordinates: Array) -> Array:
    """(frames, 4) of a joint's rotation, each as near as may be to the one before it."""
    half = 0.5 * coordinates[:, turn.columns].T
    sine, cosine = np.sin(half), np.cos(half)
    first, second, third = (
        np.concatenate([cosine[i : i + 1], sine[i] * axis[:, None]]) for i, axis in enumerate(turn.axes)
    )
    result = np.ascontiguousarray(_product(_product(first, second), third).T)
    same = np.einsum("fi,fi->f", result[1:], result[:-1])
    result[1:] *= np.cumprod(np.where(same < 0.0, -1.0, 1.0))[:, None]
    return result


def angles_from_quaternions(turn: ThreeAxisJoint, p: Array, p1: Array, p2: Array, near: Array) -> tuple[Array, Array, Array]:
    """Angles, their speeds and accelerations (frames, 3) of quaternions and their derivatives.

    Args:
        turn: The joint.
        p: (frames, 4) quaternions, of any length.
        p1: Their first derivative in time.
        p2: Their second.
        near: (frames, 3) angles [rad] to which those found shall be nearest.
    """
    p, p1, p2 = (np.ascontiguousarray(values.T) for values in (p, p1, p2))
    size = _dot(p, p)
    conjugate = p * np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    spin = 2.0 * _product(p1, conjugate)[1:] / size
    growth = 2.0 * _dot(p, p1) / size
    change = 2.0 * _product(p2, conjugate)[1:] / size - spin * growth
    angle = _cardan(turn, p / np.sqrt(size), near.T)
    b1, axis2, axis3 = (np.repeat(axis[:, None], len(size), axis=1) for axis in turn.axes)
    b2 = _turned(b1, angle[0], axis2)
    b3 = _turned(b1, angle[0], _turned(axis2, angle[1], axis3))
    normal = cross(b2, b3)
    volume = _dot(b1, normal)
    volume = np.where(volume < 0.0, np.minimum(volume, -LOCKED), np.maximum(volume, LOCKED))
    reciprocal = [normal / volume, b2, cross(b1, b2) / volume]

    def solved(vector: Array) -> Array:
        return np.stack([_dot(row, vector) for row in reciprocal])

    u = solved(spin)
    step1, step2 = u[0] * b1, u[1] * b2
    bias = cross(step1, step2) + cross(step1 + step2, u[2] * b3)
    return angle.T, u.T, solved(change - bias).T


def _dot(a: Array, b: Array) -> Array:
    """Scalar products (frames,) of vectors (n, frames)."""
    return np.asarray((a * b).sum(axis=0))


def _product(a: Array, b: Array) -> Array:
    """Products of quaternions (4, frames)."""
    vector = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    return np.concatenate([(a[0] * b[0] - _dot(a[1:], b[1:]))[None], vector])


def _cardan(turn: ThreeAxisJoint, p: Array, near: Array) -> Array:
    """Angles (3, frames) of unit quaternions; of the two ways and all whole turns, those nearest to others."""
    hand = np.sign(np.linalg.det(turn.axes))
    basis = turn.axes * np.array([[1.0], [1.0], [hand]])
    columns = [basis @ _rotate(p, axis[:, None]) for axis in basis]
    # R = Rx Ry Rz in the basis of the axes; columns[j][i] is R_ij
    second = np.arctan2(columns[2][0], np.hypot(columns[0][0], columns[1][0]))
    first = np.arctan2(-columns[2][1], columns[2][2])
    third = np.arctan2(-columns[1][0], columns[0][0])
    one = np.stack([first, second, hand * third])
    other = np.stack([first + np.pi, np.pi - second, hand * third + np.pi])
    best = [way + 2.0 * np.pi * np.round((near - way) / (2.0 * np.pi)) for way in (one, other)]
    off = [np.abs(way - near).sum(axis=0) for way in best]
    return np.where(off[0] <= off[1], best[0], best[1])


def _rotate(p: Array, vector: Array) -> Array:
    """A vector (3, 1) turned by unit quaternions (4, frames)."""
    twice = 2.0 * cross(p[1:], vector)
    return np.asarray(vector + p[0] * twice + cross(p[1:], twice))


def _turned(axis: Array, angle: Array, vectors: Array) -> Array:
    """Vectors turned about unit axes (3, frames) by angles (Rodrigues)."""
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.asarray(cosine * vectors + sine * cross(axis, vectors) + (1.0 - cosine) * _dot(axis, vectors) * axis)

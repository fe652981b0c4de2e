"""Joints with three rotation axes, filtered and differentiated as rotations instead of three angles.

Cardan angles depend on the orientation of the lab axes, and jump where the second of them nears 90 degrees. The four
components of a quaternion p do neither: rotating the lab mixes them linearly, so that a low-pass filter, a spline and a
reflection all commute with it. Between frames p need not have unit length; with dots for time derivatives

    angular velocity  w = 2 vec(p' p*) / p.p          angular acceleration  w' = 2 vec(p'' p*) / p.p - w (2 p.p' / p.p)

are those of p / |p|. Speeds u of the angles follow from w = E u, with E the axes as rotated by those before them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.model.kinematics import evaluate, tree_links
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.quaternions import rotate
from borelli.numerics.vectors import Array, cross

GIMBAL_COSINE = 0.35
"""Cosine of the second angle, about 70 deg, below which a joint is treated as a rotation."""
MIN_COSINE = 1e-4
"""Least cosine of the second angle for which speeds of the others are computed: nearer to 90 deg they are undefined."""


class ThreeAxisJoint(NamedTuple):
    """Joint with rotations about three perpendicular axes, each by a coordinate."""

    columns: tuple[int, int, int]
    axes: Array
    """(3, 3) one axis per row, in the parent's joint frame."""


def find_rotation_joints(model: Model, coordinates: Array) -> tuple[ThreeAxisJoint, ...]:
    """Return the joints to treat as rotations: free joints, and those whose angles come near gimbal lock.

    Angles of other joints are filtered as they are, as is usual, and so are those of a pelvis whose joint is OpenSim's:
    filtering rotations instead changes angles by less than 0.1 deg but, in running, moments of hip and back by up to a
    tenth of their peak.
    """
    free = {c.name for joint in model.joints if joint.kind == "free" for c in joint.coordinates}
    return tuple(
        joint
        for joint in three_axis_joints(model)
        if model.coordinates[joint.columns[0]].name in free
        or np.abs(np.cos(coordinates[:, joint.columns[1]])).min() < GIMBAL_COSINE
    )


@cached_per_model
def three_axis_joints(model: Model) -> tuple[ThreeAxisJoint, ...]:
    """Return the joints of a model that rotate about three perpendicular axes by three coordinates of their own."""
    coupled = {coupling.coordinate for coupling in model.couplings}
    coordinates = model.coordinates
    angles = np.linspace(-3.0, 3.0, 13)
    result = []
    for link in tree_links(model):
        columns = tuple(part.column for part in link.rotations)
        if len(columns) != 3 or min(columns) < 0 or len(set(columns)) < 3:
            continue
        if any(coordinates[c].locked or coordinates[c].name in coupled for c in columns):
            continue
        plain = all(
            part.function is None or np.allclose(evaluate(part.function, angles)[0], angles) for part in link.rotations
        )
        axes = np.array([part.axis for part in link.rotations])
        if plain and np.abs(axes @ axes.T - np.eye(3)).max() < 1e-9:
            result.append(ThreeAxisJoint((columns[0], columns[1], columns[2]), axes))
    return tuple(result)


def joint_quaternions(joint: ThreeAxisJoint, coordinates: Array) -> Array:
    """Return the quaternions (frames, 4) of a joint's rotation, each near the one before it."""
    half = 0.5 * coordinates[:, joint.columns].T
    sine, cosine = np.sin(half), np.cos(half)
    first, second, third = (
        np.concatenate([cosine[i : i + 1], sine[i] * axis[:, None]]) for i, axis in enumerate(joint.axes)
    )
    result = np.ascontiguousarray(_product(_product(first, second), third).T)
    same = np.einsum("fi,fi->f", result[1:], result[:-1])
    result[1:] *= np.cumprod(np.where(same < 0.0, -1.0, 1.0))[:, None]
    return result


def angles_from_quaternions(
    joint: ThreeAxisJoint, p: Array, p1: Array, p2: Array, near: Array
) -> tuple[Array, Array, Array]:
    """Return angles [rad], their speeds and accelerations (frames, 3), the angles nearest to `near`.

    p (frames, 4) are quaternions of any length, p1 and p2 their first and second time derivatives.
    """
    p, p1, p2 = (np.ascontiguousarray(values.T) for values in (p, p1, p2))
    size = _dot(p, p)
    conjugate = p * np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    angular_velocity = 2.0 * _product(p1, conjugate)[1:] / size
    growth = 2.0 * _dot(p, p1) / size
    angular_acceleration = 2.0 * _product(p2, conjugate)[1:] / size - angular_velocity * growth
    angle = _cardan_angles(joint, p / np.sqrt(size), near.T)
    b1, axis2, axis3 = (np.repeat(axis[:, None], len(size), axis=1) for axis in joint.axes)
    b2 = _rotate_about(b1, angle[0], axis2)
    b3 = _rotate_about(b1, angle[0], _rotate_about(axis2, angle[1], axis3))
    normal = cross(b2, b3)
    volume = _dot(b1, normal)
    volume = np.where(volume < 0.0, np.minimum(volume, -MIN_COSINE), np.maximum(volume, MIN_COSINE))
    reciprocal = [normal / volume, b2, cross(b1, b2) / volume]

    def solve(vector: Array) -> Array:
        return np.stack([_dot(row, vector) for row in reciprocal])

    u = solve(angular_velocity)
    step1, step2 = u[0] * b1, u[1] * b2
    bias = cross(step1, step2) + cross(step1 + step2, u[2] * b3)
    return angle.T, u.T, solve(angular_acceleration - bias).T


def _dot(a: Array, b: Array) -> Array:
    """Return scalar products (frames,) of vectors (n, frames)."""
    return np.asarray((a * b).sum(axis=0))


def _product(a: Array, b: Array) -> Array:
    """Return products of quaternions (4, frames), which need not have unit length."""
    vector = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    return np.concatenate([(a[0] * b[0] - _dot(a[1:], b[1:]))[None], vector])


def _cardan_angles(joint: ThreeAxisJoint, p: Array, near: Array) -> Array:
    """Return angles (3, frames) of unit quaternions: of both solutions and all revolutions, those nearest to `near`."""
    hand = np.sign(np.linalg.det(joint.axes))
    basis = joint.axes * np.array([[1.0], [1.0], [hand]])
    columns = [basis @ np.ascontiguousarray(rotate(p.T, axis).T) for axis in basis]
    # R = Rx Ry Rz in the basis of the axes; columns[j][i] is R_ij
    second = np.arctan2(columns[2][0], np.hypot(columns[0][0], columns[1][0]))
    first = np.arctan2(-columns[2][1], columns[2][2])
    third = np.arctan2(-columns[1][0], columns[0][0])
    one = np.stack([first, second, hand * third])
    other = np.stack([first + np.pi, np.pi - second, hand * third + np.pi])
    nearest = [angles + 2.0 * np.pi * np.round((near - angles) / (2.0 * np.pi)) for angles in (one, other)]
    distance = [np.abs(angles - near).sum(axis=0) for angles in nearest]
    return np.where(distance[0] <= distance[1], nearest[0], nearest[1])


def _rotate_about(axis: Array, angle: Array, vectors: Array) -> Array:
    """Return vectors (3, frames) rotated about unit axes (3, frames) by angles (Rodrigues)."""
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.asarray(cosine * vectors + sine * cross(axis, vectors) + (1.0 - cosine) * _dot(axis, vectors) * axis)

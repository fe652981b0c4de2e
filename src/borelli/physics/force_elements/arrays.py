"""Springs and bushings as arrays, and the kernel that computes their forces."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.model.model import GROUND, Model, Vector
from borelli.model.transforms import orientation_matrix
from borelli.numerics.rotation_kernels import cross, rotation_logarithm
from borelli.physics.force_elements.elements import Bushing, ForceElement, Spring

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALL_ANGLE = 1e-4
"""Rotation [rad] below which the series of the rotation vector's rate is used; its error is below 1e-18."""


class SpringArrays(NamedTuple):
    """Springs, one entry each; points are from the centers of mass, body axes [m]."""

    body: Integers
    """(springs, 2); -1: the ground."""
    point: Floats
    """(springs, 2, 3)"""
    rest: Floats
    stiffness: Floats
    damping: Floats
    slack: Integers
    first: Integers
    """(springs + 1,) first pair of each table."""
    table: Floats
    """(pairs, 2) length, tension."""


class BushingArrays(NamedTuple):
    """Bushings, one entry each."""

    body: Integers
    """(bushings, 2); -1: the ground."""
    point: Floats
    """(bushings, 2, 3) origins of the frames, from the centers of mass, body axes [m]."""
    axes: Floats
    """(bushings, 2, 3, 3) rotations of the frames on the bodies."""
    stiffness: Floats
    """(bushings, 6) along, then about the axes."""
    damping: Floats


class ElementArrays(NamedTuple):
    """All springs and bushings of a simulation."""

    springs: SpringArrays
    bushings: BushingArrays


def make_element_arrays(model: Model, elements: Sequence[ForceElement]) -> ElementArrays:
    """Return the springs and bushings among the elements as arrays."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}

    def from_center(name: str, point: Vector) -> Floats:
        center = model.bodies[index[name]].center_of_mass if name != GROUND else (0.0, 0.0, 0.0)
        return np.array(point, float) - center

    springs = [element for element in elements if isinstance(element, Spring)]
    bushings = [element for element in elements if isinstance(element, Bushing)]
    tables = [np.array(s.force_length, float).reshape(-1, 2) for s in springs]
    return ElementArrays(
        SpringArrays(
            np.array([(index[s.body], index[s.to]) for s in springs], np.int64).reshape(-1, 2),
            np.array(
                [(from_center(s.body, s.point), from_center(s.to, s.to_point)) for s in springs]
            ).reshape(-1, 2, 3),
            np.array([s.rest_length for s in springs], float),
            np.array([s.stiffness for s in springs], float),
            np.array([s.damping for s in springs], float),
            np.array([s.slack for s in springs], np.int64),
            np.cumsum([0, *map(len, tables)]).astype(np.int64),
            np.concatenate([np.zeros((0, 2)), *tables]),
        ),
        BushingArrays(
            np.array([(index[b.body], index[b.to]) for b in bushings], np.int64).reshape(-1, 2),
            np.array(
                [(from_center(b.body, b.frame.position), from_center(b.to, b.to_frame.position)) for b in bushings]
            ).reshape(-1, 2, 3),
            np.array(
                [[orientation_matrix(frame.orientation) for frame in (b.frame, b.to_frame)] for b in bushings]
            ).reshape(-1, 2, 3, 3),
            np.array([(*b.stiffness, *b.rotational_stiffness) for b in bushings], float).reshape(-1, 6),
            np.array([(*b.damping, *b.rotational_damping) for b in bushings], float).reshape(-1, 6),
        ),
    )


@inline
def _end(body, point, k, side, position, rotation, twist):
    """Return a point of one end, its arm from the center of mass, and its velocity, world axes."""
    b, r = body[k, side], point[k, side]
    if b < 0:
        return r[0], r[1], r[2], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    R, x, v = rotation[b], position[b], twist[b]
    ax = R[0, 0] * r[0] + R[0, 1] * r[1] + R[0, 2] * r[2]
    ay = R[1, 0] * r[0] + R[1, 1] * r[1] + R[1, 2] * r[2]
    az = R[2, 0] * r[0] + R[2, 1] * r[1] + R[2, 2] * r[2]
    ux, uy, uz = cross(v[3], v[4], v[5], ax, ay, az)
    return x[0] + ax, x[1] + ay, x[2] + az, ax, ay, az, v[0] + ux, v[1] + uy, v[2] + uz


@inline
def _push(b, ax, ay, az, fx, fy, fz, wrench_inout):
    """Add a force at an arm from the center of mass to body b's wrench; nothing for the ground."""
    if b >= 0:
        mx, my, mz = cross(ax, ay, az, fx, fy, fz)
        wrench_inout[b, 0] += fx
        wrench_inout[b, 1] += fy
        wrench_inout[b, 2] += fz
        wrench_inout[b, 3] += mx
        wrench_inout[b, 4] += my
        wrench_inout[b, 5] += mz


@inline
def _elastic_tension(springs, k, length):
    """Return tension and elastic energy of spring k at a length; a table's energy is zero at its first length."""
    first, last = springs.first[k], springs.first[k + 1] - 1
    if last <= first:
        stretch = length - springs.rest[k]
        tension = springs.stiffness[k] * stretch
        if springs.slack[k] and stretch < 0.0:
            return 0.0, 0.0
        return tension, 0.5 * tension * stretch
    table, energy, i = springs.table, 0.0, first
    while i < last - 1 and length > table[i + 1, 0]:
        energy += 0.5 * (table[i, 1] + table[i + 1, 1]) * (table[i + 1, 0] - table[i, 0])
        i += 1
    slope = (table[i + 1, 1] - table[i, 1]) / (table[i + 1, 0] - table[i, 0])
    tension = table[i, 1] + slope * (length - table[i, 0])
    energy += 0.5 * (table[i, 1] + tension) * (length - table[i, 0])
    if springs.slack[k] and tension < 0.0:
        return 0.0, 0.0
    return tension, energy


@inline
def _add_spring(springs, k, position, rotation, twist, wrench_inout, spring_out):
    """Add the wrenches of spring k; write length, tension and elastic energy."""
    x, y, z, ax, ay, az, vx, vy, vz = _end(springs.body, springs.point, k, 0, position, rotation, twist)
    X, Y, Z, bx, by, bz, ux, uy, uz = _end(springs.body, springs.point, k, 1, position, rotation, twist)
    dx, dy, dz = X - x, Y - y, Z - z
    length = sqrt(dx * dx + dy * dy + dz * dz)
    tension, energy = _elastic_tension(springs, k, length)
    if length > 0.0:
        nx, ny, nz = dx / length, dy / length, dz / length
        rate = nx * (ux - vx) + ny * (uy - vy) + nz * (uz - vz)
        total = tension + springs.damping[k] * rate
        if springs.slack[k] and (total < 0.0 or tension <= 0.0):
            total = 0.0
        tension = total
        fx, fy, fz = tension * nx, tension * ny, tension * nz
        _push(springs.body[k, 0], ax, ay, az, fx, fy, fz, wrench_inout)
        _push(springs.body[k, 1], bx, by, bz, -fx, -fy, -fz, wrench_inout)
    spring_out[k, 0], spring_out[k, 1], spring_out[k, 2] = length, tension, energy


@inline
def _world_axes(b, f, rotation):
    """Return the rotation of a frame on body b, row by row."""
    if b < 0:
        return f[0, 0], f[0, 1], f[0, 2], f[1, 0], f[1, 1], f[1, 2], f[2, 0], f[2, 1], f[2, 2]
    R = rotation[b]
    return (
        R[0, 0] * f[0, 0] + R[0, 1] * f[1, 0] + R[0, 2] * f[2, 0],
        R[0, 0] * f[0, 1] + R[0, 1] * f[1, 1] + R[0, 2] * f[2, 1],
        R[0, 0] * f[0, 2] + R[0, 1] * f[1, 2] + R[0, 2] * f[2, 2],
        R[1, 0] * f[0, 0] + R[1, 1] * f[1, 0] + R[1, 2] * f[2, 0],
        R[1, 0] * f[0, 1] + R[1, 1] * f[1, 1] + R[1, 2] * f[2, 1],
        R[1, 0] * f[0, 2] + R[1, 1] * f[1, 2] + R[1, 2] * f[2, 2],
        R[2, 0] * f[0, 0] + R[2, 1] * f[1, 0] + R[2, 2] * f[2, 0],
        R[2, 0] * f[0, 1] + R[2, 1] * f[1, 1] + R[2, 2] * f[2, 1],
        R[2, 0] * f[0, 2] + R[2, 1] * f[1, 2] + R[2, 2] * f[2, 2],
    )


@inline
def _rotation_vector(m):
    """Return the rotation vector of a matrix given by rows, by its quaternion."""
    trace = m[0] + m[4] + m[8]
    if trace > 0.0:
        s = 0.5 / sqrt(1.0 + trace)
        w, x, y, z = 0.25 / s, (m[7] - m[5]) * s, (m[2] - m[6]) * s, (m[3] - m[1]) * s
    elif m[0] >= m[4] and m[0] >= m[8]:
        s = 0.5 / sqrt(1.0 + m[0] - m[4] - m[8])
        w, x, y, z = (m[7] - m[5]) * s, 0.25 / s, (m[1] + m[3]) * s, (m[2] + m[6]) * s
    elif m[4] >= m[8]:
        s = 0.5 / sqrt(1.0 + m[4] - m[0] - m[8])
        w, x, y, z = (m[2] - m[6]) * s, (m[1] + m[3]) * s, 0.25 / s, (m[5] + m[7]) * s
    else:
        s = 0.5 / sqrt(1.0 + m[8] - m[0] - m[4])
        w, x, y, z = (m[3] - m[1]) * s, (m[2] + m[6]) * s, (m[5] + m[7]) * s, 0.25 / s
    return rotation_logarithm(w, x, y, z)


@inline
def _add_bushing(bushings, k, position, rotation, twist, wrench_inout, bushing_out):
    """Add the wrenches of bushing k; write force and moment on the second body in the first frame, and energy.

    With d the translation and t the rotation vector of the second frame in the first, d' and w their velocities,
    f = -K d - C d' and the moment is -J^-T K t - C w, J^-1 w = dt/dt (left Jacobian of SO(3)).
    """
    x, y, z, ax, ay, az, vx, vy, vz = _end(bushings.body, bushings.point, k, 0, position, rotation, twist)
    X, Y, Z, bx, by, bz, ux, uy, uz = _end(bushings.body, bushings.point, k, 1, position, rotation, twist)
    a, b, local, other = bushings.body[k, 0], bushings.body[k, 1], bushings.axes[k, 0], bushings.axes[k, 1]
    wx, wy, wz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if a >= 0:
        sx, sy, sz = twist[a, 3], twist[a, 4], twist[a, 5]
    if b >= 0:
        wx, wy, wz = twist[b, 3], twist[b, 4], twist[b, 5]
    dx, dy, dz = X - x, Y - y, Z - z
    tx, ty, tz = cross(sx, sy, sz, dx, dy, dz)  # velocity of the first frame's point at the second's origin
    ux, uy, uz = ux - vx - tx, uy - vy - ty, uz - vz - tz
    wx, wy, wz = wx - sx, wy - sy, wz - sz
    A = _world_axes(a, local, rotation)
    B = _world_axes(b, other, rotation)
    rx, ry, rz = _rotation_vector(
        (
            A[0] * B[0] + A[3] * B[3] + A[6] * B[6], A[0] * B[1] + A[3] * B[4] + A[6] * B[7],
            A[0] * B[2] + A[3] * B[5] + A[6] * B[8], A[1] * B[0] + A[4] * B[3] + A[7] * B[6],
            A[1] * B[1] + A[4] * B[4] + A[7] * B[7], A[1] * B[2] + A[4] * B[5] + A[7] * B[8],
            A[2] * B[0] + A[5] * B[3] + A[8] * B[6], A[2] * B[1] + A[5] * B[4] + A[8] * B[7],
            A[2] * B[2] + A[5] * B[5] + A[8] * B[8],
        )
    )  # fmt: skip
    K, C, out = bushings.stiffness[k], bushings.damping[k], bushing_out[k]
    energy = 0.0
    for n in range(3):
        d = A[n] * dx + A[3 + n] * dy + A[6 + n] * dz
        v = A[n] * ux + A[3 + n] * uy + A[6 + n] * uz
        out[n] = -K[n] * d - C[n] * v
        energy += 0.5 * K[n] * d * d
    px, py, pz = K[3] * rx, K[4] * ry, K[5] * rz
    energy += 0.5 * (px * rx + py * ry + pz * rz)
    angle = sqrt(rx * rx + ry * ry + rz * rz)
    # J^-T p = p + r x p / 2 + g r x (r x p)
    g = 1.0 / 12.0
    if angle > SMALL_ANGLE:
        half = 0.5 * angle
        g = (1.0 - half * cos(half) / sin(half)) / (angle * angle)
    cx, cy, cz = cross(rx, ry, rz, px, py, pz)
    ex, ey, ez = cross(rx, ry, rz, cx, cy, cz)
    out[3] = -(px + 0.5 * cx + g * ex) - C[3] * (A[0] * wx + A[3] * wy + A[6] * wz)
    out[4] = -(py + 0.5 * cy + g * ey) - C[4] * (A[1] * wx + A[4] * wy + A[7] * wz)
    out[5] = -(pz + 0.5 * cz + g * ez) - C[5] * (A[2] * wx + A[5] * wy + A[8] * wz)
    out[6] = energy
    fx = A[0] * out[0] + A[1] * out[1] + A[2] * out[2]
    fy = A[3] * out[0] + A[4] * out[1] + A[5] * out[2]
    fz = A[6] * out[0] + A[7] * out[1] + A[8] * out[2]
    mx = A[0] * out[3] + A[1] * out[4] + A[2] * out[5]
    my = A[3] * out[3] + A[4] * out[4] + A[5] * out[5]
    mz = A[6] * out[3] + A[7] * out[4] + A[8] * out[5]
    _push(b, bx, by, bz, fx, fy, fz, wrench_inout)
    # the reaction acts on the first body at the same point of space
    _push(a, ax + dx, ay + dy, az + dz, -fx, -fy, -fz, wrench_inout)
    for side in range(2):
        c, s = (b, 1.0) if side == 0 else (a, -1.0)
        if c >= 0:
            wrench_inout[c, 3] += s * mx
            wrench_inout[c, 4] += s * my
            wrench_inout[c, 5] += s * mz


@kernel
def add_element_wrenches(elements_at, position, rotation, twist, wrench_inout, spring_out, bushing_out):
    """Add the wrenches of springs and bushings at the centers of mass, world axes, in many frames.

    Args:
        elements_at: `ElementArrays`.
        position: (frames, bodies, 3) centers of mass [m].
        rotation: (frames, bodies, 3, 3).
        twist: (frames, bodies, 6) velocity of the center of mass, angular velocity.
        wrench_inout: (frames, bodies, 6) force [N] and moment [N m].
        spring_out: (frames, springs, 3) length [m], tension [N], elastic energy [J].
        bushing_out: (frames, bushings, 7) force [N] and moment [N m] on the second body in the first frame, energy [J].
    """
    elements = load_shared(elements_at)
    springs, bushings = elements.springs, elements.bushings
    for f in range(len(position)):
        for k in range(len(springs.rest)):
            _add_spring(springs, k, position[f], rotation[f], twist[f], wrench_inout[f], spring_out[f])
        for k in range(len(bushings.body)):
            _add_bushing(bushings, k, position[f], rotation[f], twist[f], wrench_inout[f], bushing_out[f])

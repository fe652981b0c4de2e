"""Contact rows: for each contact a push along the normal, two tangents of friction and, where asked for, rolling.

With r_a, r_b from the centres of mass to the contact point, the velocity of A relative to B along a direction d is

    u = d . (v_a + w_a x r_a + s_a - v_b - w_b x r_b - s_b)        s: how a belt's surface moves in its body

The normal row keeps the gap phi = -depth from closing, u_n >= -phi/h before the touch and u_n >= (alpha/h) depth
after it; with restitution e it also asks for u_n >= -e u_n(before). The tangents' bounds are found by `friction`.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.physics.rows.laws import bounded_law, one_sided_law

MOST_BODIES = 32
"""Touching bodies up to which contacts are solved against each other; beyond, friction bounds are only repeated."""

BOUNCE_SOFTNESS = 1e-3
"""Compliance of a row while it bounces, relative to the contact's own."""

ROLLING_SOFTNESS = 1e4
"""Compliance of rolling friction [1/m^2] relative to that of the tangents: as at an arm of 1 cm."""

# columns of `touch`
ARM_A, ARM_B = 0, 3  # from the centres of mass to the contact point
NORMAL = 6
ALONG = 9  # direction of the first tangent
DRIFT = 12  # velocity of A relative to B that is not solved for
ROLLING = 15  # rolling friction [m]
FRICTION = 16  # Coulomb coefficient
NORMAL_NOW = 17  # normal impulse the bounds were made from
TANGENT_BETA = 18  # slope of the tangents while they stick
SLIP_BETA = 19  # slope of the second tangent: larger while the contact slides
BOUND = 20  # friction bound in force
RHO = 21  # the mass the contact feels along its tangents
SLIP = 22  # 2: impulse less the slip times that mass, along the two tangents
NORMAL_FOUND = 24  # normal impulse of the last solve
NORMAL_C = 25  # law of the normal row while it is set aside
NORMAL_BETA = 26
OWN_ANSWER = 27  # 9: J S J^T, how it answers to its own impulse
U = 36  # 3: its velocity along normal and tangents
NEXT_IMPULSE, NEXT_U = 39, 42  # 3 each: where Newton's method wants impulse and velocity
TOUCH_COLUMNS = 45

# columns of `who`
BODY_A, BODY_B, SLOT = 0, 1, 2
LOCAL_A, LOCAL_B = 3, 4  # the bodies' numbers among those that touch, -1 if not solved for
WHO_COLUMNS = 5

# columns of `speed`: velocities of touching bodies without contacts, now, and after a Newton step
FREE, NOW, NEXT = 0, 1, 2
SPEED_COLUMNS = 3


class Touch(NamedTuple):
    """The contacts of one step as rows see them."""

    touch: NDArray[np.float64]
    """(contacts, TOUCH_COLUMNS)"""
    who: NDArray[np.int64]
    """(contacts, WHO_COLUMNS); -1 for a body that is not solved for."""
    number: NDArray[np.int64]
    """(bodies,) by position: a body's number among those that touch, or below 0."""
    path: NDArray[np.int64]
    """(bodies,) positions through which pushes on those pass."""
    member: NDArray[np.int64]
    """(touching,) the positions of those that touch, up to MOST_BODIES."""
    answer: NDArray[np.float64]
    """(6 touching, 6 touching) S: their velocities for unit impulses."""
    stiff: NDArray[np.float64]
    """(6 touching, 6 touching) K: impulses the contacts answer with to velocities."""
    system: NDArray[np.float64]
    """(6 touching, 6 touching + 1) what Newton's method solves."""
    speed: NDArray[np.float64]
    """(6 touching, SPEED_COLUMNS)"""
    count: NDArray[np.int64]
    """(2,) contacts now, and contacts when the rows were last listed."""


def make_touch(bodies: int, contacts: int) -> Touch:
    """Room for so many bodies and contacts."""
    touching = min(bodies, 2 * contacts, MOST_BODIES)
    size = 6 * touching
    return Touch(
        touch=np.zeros((contacts, TOUCH_COLUMNS)),
        who=np.full((contacts, WHO_COLUMNS), -1, np.int64),
        number=np.zeros(bodies, np.int64),
        path=np.zeros(bodies, np.int64),
        member=np.zeros(touching, np.int64),
        answer=np.zeros((size, size)),
        stiff=np.zeros((size, size)),
        system=np.zeros((size, size + 1)),
        speed=np.zeros((size, SPEED_COLUMNS)),
        count=np.zeros(2, np.int64),
    )


@inline
def _load3(array, k, at):
    return array[k, at], array[k, at + 1], array[k, at + 2]


@inline
def _store3(array, k, at, x, y, z):
    array[k, at] = x
    array[k, at + 1] = y
    array[k, at + 2] = z


@inline
def _point_velocity(twist, b, rx, ry, rz):
    x, y, z = cross(twist[b, 3], twist[b, 4], twist[b, 5], rx, ry, rz)
    return twist[b, 0] + x, twist[b, 1] + y, twist[b, 2] + z


@inline
def _surface_velocity(velocity, rotation, s, b):
    x, y, z = velocity[s, 0], velocity[s, 1], velocity[s, 2]
    if b >= 0:
        R = rotation
        return (
            R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z,
            R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z,
            R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z,
        )
    return x, y, z


@inline
def second_tangent(touch, i):
    """normal x along."""
    nx, ny, nz = _load3(touch, i, NORMAL)
    ax, ay, az = _load3(touch, i, ALONG)
    return cross(nx, ny, nz, ax, ay, az)


@inline
def put_contact_row(rows, touch, who, i, k, x, y, z):
    """Row k measures the relative velocity of contact i along (x, y, z)."""
    e = rows.first[k]
    a, b = who[i, BODY_A], who[i, BODY_B]
    rows.body[e] = a
    rows.body[e + 1] = b
    rx, ry, rz = _load3(touch, i, ARM_A)
    tx, ty, tz = cross(rx, ry, rz, x, y, z)
    _store3(rows.jacobian, e, 0, x, y, z)
    _store3(rows.jacobian, e, 3, tx, ty, tz)
    rx, ry, rz = _load3(touch, i, ARM_B)
    tx, ty, tz = cross(rx, ry, rz, x, y, z)
    _store3(rows.jacobian, e + 1, 0, -x, -y, -z)
    _store3(rows.jacobian, e + 1, 3, -tx, -ty, -tz)
    rows.offset[k] = x * touch[i, DRIFT] + y * touch[i, DRIFT + 1] + z * touch[i, DRIFT + 2]


@inline
def _put_rolling_row(rows, who, twist, kinematic_a, kinematic_b, i, k, x, y, z):
    """Row k measures the relative spin of contact i about (x, y, z)."""
    e = rows.first[k]
    rows.body[e] = who[i, BODY_A]
    rows.body[e + 1] = who[i, BODY_B]
    _store3(rows.jacobian, e, 0, 0.0, 0.0, 0.0)
    _store3(rows.jacobian, e, 3, x, y, z)
    _store3(rows.jacobian, e + 1, 0, 0.0, 0.0, 0.0)
    _store3(rows.jacobian, e + 1, 3, -x, -y, -z)
    spin = 0.0
    if kinematic_a >= 0:
        spin += x * twist[kinematic_a, 3] + y * twist[kinematic_a, 4] + z * twist[kinematic_a, 5]
    if kinematic_b >= 0:
        spin -= x * twist[kinematic_b, 3] + y * twist[kinematic_b, 4] + z * twist[kinematic_b, 5]
    rows.offset[k] = spin


@inline
def _rolling_axis(touch, i, twist, a, b):
    """The axis about which A rolls on B, square to the normal; the first tangent where it does not roll."""
    x, y, z = 0.0, 0.0, 0.0
    if a >= 0:
        x, y, z = twist[a, 3], twist[a, 4], twist[a, 5]
    if b >= 0:
        x, y, z = x - twist[b, 3], y - twist[b, 4], z - twist[b, 5]
    nx, ny, nz = _load3(touch, i, NORMAL)
    s = nx * x + ny * y + nz * z
    x, y, z = x - s * nx, y - s * ny, z - s * nz
    square = x * x + y * y + z * z
    if square < 1e-12:
        return _load3(touch, i, ALONG)
    scale = 1.0 / sqrt(square)
    return scale * x, scale * y, scale * z


@inline
def put_tangents(rows, touch, who, i, k):
    """Rows k and k + 1: the two tangents of contact i, bounded by its friction."""
    ax, ay, az = _load3(touch, i, ALONG)
    put_contact_row(rows, touch, who, i, k, ax, ay, az)
    bx, by, bz = second_tangent(touch, i)
    put_contact_row(rows, touch, who, i, k + 1, bx, by, bz)
    bound = touch[i, BOUND]
    bounded_law(rows, k, 0.0, touch[i, TANGENT_BETA], -bound, bound)
    bounded_law(rows, k + 1, 0.0, touch[i, SLIP_BETA], -bound, bound)


@inline
def set_rolling(rows, touch, i, k, normal):
    """Rows k to k + 2: rolling friction of contact i, bounded by its normal impulse."""
    resist = touch[i, ROLLING] * normal
    for n in range(3):
        bounded_law(rows, k + n, 0.0, ROLLING_SOFTNESS * touch[i, TANGENT_BETA], -resist, resist)


@inline
def set_along(touch, i, x, y, z):
    """Turn the first tangent of contact i towards (x, y, z), if that lies off the normal."""
    nx, ny, nz = _load3(touch, i, NORMAL)
    s = nx * x + ny * y + nz * z
    x, y, z = x - s * nx, y - s * ny, z - s * nz
    square = x * x + y * y + z * z
    if square > 1e-24:
        scale = 1.0 / sqrt(square)
        _store3(touch, i, ALONG, scale * x, scale * y, scale * z)


@kernel_function
def read_contacts(shapes_at, tables_at, contacts_at, found, state_at, rotation, kinematic, touch_at):
    """Lay out the contacts found: bodies, arms, drift, warm start."""
    shapes, tables, contacts, state, touch_tuple = load_shared(shapes_at, tables_at, contacts_at, state_at, touch_at)
    touch, who = touch_tuple.touch, touch_tuple.who
    touch_tuple.count[0] = found
    fresh = state.clock[0] - 1
    for i in range(found):
        pair, slot = contacts.pair[i], contacts.slot[i]
        sa, sb = shapes.pair_a[pair], shapes.pair_b[pair]
        a, b = shapes.body[sa], shapes.body[sb]
        px, py, pz = _load3(contacts.point, i, 0)
        ux, uy, uz = _surface_velocity(shapes.velocity, rotation, sa, a)
        wx, wy, wz = _surface_velocity(shapes.velocity, rotation, sb, b)
        dx, dy, dz = ux - wx, uy - wy, uz - wz
        vx, vy, vz = dx, dy, dz
        _store3(touch, i, ARM_B, 0.0, 0.0, 0.0)
        for side in range(2):
            body, sign, arm = (a, 1.0, ARM_A) if side == 0 else (b, -1.0, ARM_B)
            if body < 0:
                continue
            rx, ry, rz = px - state.position[body, 0], py - state.position[body, 1], pz - state.position[body, 2]
            _store3(touch, i, arm, rx, ry, rz)
            x, y, z = _point_velocity(state.twist, body, rx, ry, rz)
            vx, vy, vz = vx + sign * x, vy + sign * y, vz + sign * z
            if kinematic[body]:
                dx, dy, dz = dx + sign * x, dy + sign * y, dz + sign * z
        _store3(touch, i, DRIFT, dx, dy, dz)
        _store3(touch, i, NORMAL, contacts.normal[i, 0], contacts.normal[i, 1], contacts.normal[i, 2])
        who[i, BODY_A] = a if a >= 0 and not kinematic[a] else -1
        who[i, BODY_B] = b if b >= 0 and not kinematic[b] else -1
        touch[i, FRICTION] = shapes.pair_friction[pair]
        touch[i, ROLLING] = shapes.pair_rolling[pair]
        touch[i, TANGENT_BETA] = tables.tangent_beta[pair]
        touch[i, SLIP_BETA] = touch[i, TANGENT_BETA]
        # any direction off the normal, then the way it slips, then the way it slipped or was held last
        if abs(touch[i, NORMAL]) < 0.9:
            set_along(touch, i, 1.0, 0.0, 0.0)
        else:
            set_along(touch, i, 0.0, 1.0, 0.0)
        set_along(touch, i, vx, vy, vz)
        touch[i, NORMAL_NOW] = 0.0
        if state.slot_step[slot] == fresh:
            touch[i, NORMAL_NOW] = state.slot_normal[slot]
            set_along(touch, i, state.slot_along[slot, 0], state.slot_along[slot, 1], state.slot_along[slot, 2])
        touch[i, BOUND] = touch[i, FRICTION] * touch[i, NORMAL_NOW]


read_contacts_by_pointer = by_pointer(read_contacts)


@kernel_function
def fill_contact_rows(shapes_at, tables_at, numbers, contacts_at, state_at, kinematic, touch_at, rows_at):
    """Write the rows of the contacts laid out by `read_contacts`."""
    shapes, tables, contacts = load_shared(shapes_at, tables_at, contacts_at)
    state, touch_tuple, rows = load_shared(state_at, touch_at, rows_at)
    touch, who = touch_tuple.touch, touch_tuple.who
    each, k = tables.rows_each[0], tables.first_row[0]
    bounce_speed, push_out, h = numbers[1], numbers[2], numbers[5]
    for i in range(touch_tuple.count[0]):
        pair = contacts.pair[i]
        nx, ny, nz = _load3(touch, i, NORMAL)
        put_contact_row(rows, touch, who, i, k, nx, ny, nz)
        depth = contacts.depth[i]
        c = depth / h if depth < 0.0 else min(tables.alpha[pair] * depth / h, push_out)
        beta = tables.beta[pair]
        bounce = shapes.pair_restitution[pair]
        if bounce > 0.0:
            u = rows.offset[k]
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    for n in range(6):
                        u += rows.jacobian[e, n] * state.twist[rows.body[e], n]
            # a contact still open bounces only if it would close within the step
            if u < -bounce_speed and depth - h * u > 0.0:
                c = max(c, -bounce * u)
                # a soft row would swallow part of the rebound
                beta *= BOUNCE_SOFTNESS
        one_sided_law(rows, k, c, beta)
        put_tangents(rows, touch, who, i, k + 1)
        if each == 6:
            a, b = shapes.body[shapes.pair_a[pair]], shapes.body[shapes.pair_b[pair]]
            ka = a if a >= 0 and kinematic[a] else -1
            kb = b if b >= 0 and kinematic[b] else -1
            _put_rolling_row(rows, who, state.twist, ka, kb, i, k + 3, nx, ny, nz)
            ax, ay, az = _rolling_axis(touch, i, state.twist, a, b)
            _put_rolling_row(rows, who, state.twist, ka, kb, i, k + 4, ax, ay, az)
            bx, by, bz = cross(nx, ny, nz, ax, ay, az)
            _put_rolling_row(rows, who, state.twist, ka, kb, i, k + 5, bx, by, bz)
            if touch[i, ROLLING] > 0.0:
                set_rolling(rows, touch, i, k + 3, touch[i, NORMAL_NOW])
            else:
                for n in range(3, 6):
                    rows.segments[k + n] = 0
        k += each
    rows.used[0] = k


fill_contact_rows_by_pointer = by_pointer(fill_contact_rows)

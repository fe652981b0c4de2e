"""Contact rows: for each contact one along the normal, two tangents of friction and, if any, rolling friction.

With r_a, r_b from the centers of mass to the contact point, the velocity of A relative to B along a direction d is

    u = d . (v_a + w_a x r_a + s_a - v_b - w_b x r_b - s_b)        s: velocity of a belt's surface in its body

The normal row keeps the gap phi = -depth from closing, u_n >= -phi/h before contact and u_n >= (alpha/h) depth
after it; with restitution e also u_n >= -e u_n(before). `friction` finds the bounds of the tangents.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.indices import BOUNCE_SPEED, PUSH_OUT_SPEED, STEP_SIZE
from borelli.physics.rows.laws import bounded_law, one_sided_law
from borelli.physics.vectors import load3, store3, to_world

MAX_CONTACT_BODIES = 32
"""Bodies in contact up to which all contacts are solved together; beyond, friction bounds are iterated."""

BOUNCE_SOFTNESS = 1e-3
"""Compliance of a row during a rebound, relative to the contact's own."""

ROLLING_SOFTNESS = 1e4
"""Compliance of rolling friction [1/m^2] relative to that of the tangents: as at an arm of 1 cm."""

# columns of `contact`
ARM_A, ARM_B = 0, 3  # from the centers of mass to the contact point
NORMAL = 6
TANGENT = 9  # direction of the first tangent
DRIFT = 12  # prescribed part of the velocity of A relative to B
ROLLING = 15  # rolling friction [m]
FRICTION = 16  # Coulomb coefficient
NORMAL_OF_BOUND = 17  # normal impulse from which the friction bounds were computed
TANGENT_BETA = 18  # slope of the tangents while sticking
SLIP_BETA = 19  # slope of the second tangent: larger while sliding
BOUND = 20  # active friction bound
RHO = 21  # effective mass along the tangents
TANGENT_IMPULSE = 22  # 2: impulse along the two tangents; in `friction` less the slip times RHO
NORMAL_IMPULSE = 24  # normal impulse of the last solve
NORMAL_C = 25  # law of the normal row while its impulse is fixed
NORMAL_BETA = 26
OWN_RESPONSE = 27  # 9: J S J^T, diagonal block of the Delassus operator
U = 36  # 3: velocity along normal and tangents
NEXT_IMPULSE, NEXT_U = 39, 42  # 3 each: impulse and velocity after a full Newton step
CONTACT_COLUMNS = 45

# columns of `contact_body`
BODY_A, BODY_B, SLOT = 0, 1, 2
LOCAL_A, LOCAL_B = 3, 4  # indices among the bodies in contact, -1 if not solved for
TOUCHING_A, TOUCHING_B = 5, 6  # bodies, also kinematic ones, -1: the ground
CONTACT_BODY_COLUMNS = 7

# columns of `body_velocity`: of the bodies in contact, without contacts, now, and after a Newton step
FREE, NOW, NEXT = 0, 1, 2
BODY_VELOCITY_COLUMNS = 3

# entries of `count`: contacts now, and contacts + 1 when rows were last listed (0: rows must be listed)
CONTACTS_NOW, CONTACTS_LISTED = 0, 1


class ContactArrays(NamedTuple):
    """Contacts of one step as the rows and the contact solver use them."""

    contact: NDArray[np.float64]
    """(contacts, CONTACT_COLUMNS)"""
    contact_body: NDArray[np.int64]
    """(contacts, CONTACT_BODY_COLUMNS); -1 for a body that is not solved for."""
    local_index: NDArray[np.int64]
    """(bodies,) by position: a body's index among those in contact, or below 0."""
    path: NDArray[np.int64]
    """(bodies,) positions affected by impulses on the bodies in contact."""
    member: NDArray[np.int64]
    """(touching,) positions of the bodies in contact, up to MAX_CONTACT_BODIES."""
    response: NDArray[np.float64]
    """(6 touching, 6 touching) S: velocities of the bodies in contact for unit impulses."""
    stiffness: NDArray[np.float64]
    """(6 touching, 6 touching) K: impulses of the contacts for unit velocities."""
    system: NDArray[np.float64]
    """(6 touching, 6 touching + 1) linear system of Newton's method."""
    body_velocity: NDArray[np.float64]
    """(6 touching, BODY_VELOCITY_COLUMNS)"""
    count: NDArray[np.int64]
    """(2,) CONTACTS_NOW, CONTACTS_LISTED."""


def make_contact_arrays(bodies: int, contacts: int) -> ContactArrays:
    """Return arrays with capacity for so many bodies and contacts."""
    touching = min(bodies, 2 * contacts, MAX_CONTACT_BODIES)
    size = 6 * touching
    return ContactArrays(
        contact=np.zeros((contacts, CONTACT_COLUMNS)),
        contact_body=np.full((contacts, CONTACT_BODY_COLUMNS), -1, np.int64),
        local_index=np.zeros(bodies, np.int64),
        path=np.zeros(bodies, np.int64),
        member=np.zeros(touching, np.int64),
        response=np.zeros((size, size)),
        stiffness=np.zeros((size, size)),
        system=np.zeros((size, size + 1)),
        body_velocity=np.zeros((size, BODY_VELOCITY_COLUMNS)),
        count=np.zeros(2, np.int64),
    )


@inline
def _point_velocity(twist, b, rx, ry, rz):
    x, y, z = cross(twist[b, 3], twist[b, 4], twist[b, 5], rx, ry, rz)
    return twist[b, 0] + x, twist[b, 1] + y, twist[b, 2] + z


@inline
def second_tangent(contact, i):
    """Return normal x first tangent of contact i."""
    nx, ny, nz = load3(contact, i, NORMAL)
    ax, ay, az = load3(contact, i, TANGENT)
    return cross(nx, ny, nz, ax, ay, az)


@inline
def put_contact_row(rows, contact, contact_body, i, k, x, y, z):
    """Make row k measure the relative velocity of contact i along (x, y, z)."""
    e = rows.first[k]
    a, b = contact_body[i, BODY_A], contact_body[i, BODY_B]
    rows.body[e] = a
    rows.body[e + 1] = b
    rx, ry, rz = load3(contact, i, ARM_A)
    tx, ty, tz = cross(rx, ry, rz, x, y, z)
    store3(rows.jacobian, e, 0, x, y, z)
    store3(rows.jacobian, e, 3, tx, ty, tz)
    rx, ry, rz = load3(contact, i, ARM_B)
    tx, ty, tz = cross(rx, ry, rz, x, y, z)
    store3(rows.jacobian, e + 1, 0, -x, -y, -z)
    store3(rows.jacobian, e + 1, 3, -tx, -ty, -tz)
    rows.offset[k] = x * contact[i, DRIFT] + y * contact[i, DRIFT + 1] + z * contact[i, DRIFT + 2]


@inline
def _put_rolling_row(rows, contact_body, twist, kinematic_a, kinematic_b, i, k, x, y, z):
    """Make row k measure the relative angular velocity of contact i about (x, y, z)."""
    e = rows.first[k]
    rows.body[e] = contact_body[i, BODY_A]
    rows.body[e + 1] = contact_body[i, BODY_B]
    store3(rows.jacobian, e, 0, 0.0, 0.0, 0.0)
    store3(rows.jacobian, e, 3, x, y, z)
    store3(rows.jacobian, e + 1, 0, 0.0, 0.0, 0.0)
    store3(rows.jacobian, e + 1, 3, -x, -y, -z)
    rate = 0.0
    if kinematic_a >= 0:
        rate += x * twist[kinematic_a, 3] + y * twist[kinematic_a, 4] + z * twist[kinematic_a, 5]
    if kinematic_b >= 0:
        rate -= x * twist[kinematic_b, 3] + y * twist[kinematic_b, 4] + z * twist[kinematic_b, 5]
    rows.offset[k] = rate


@inline
def _rolling_axis(contact, i, twist, a, b):
    """Return the axis about which A rolls on B, perpendicular to the normal; without rolling the first tangent."""
    x, y, z = 0.0, 0.0, 0.0
    if a >= 0:
        x, y, z = twist[a, 3], twist[a, 4], twist[a, 5]
    if b >= 0:
        x, y, z = x - twist[b, 3], y - twist[b, 4], z - twist[b, 5]
    nx, ny, nz = load3(contact, i, NORMAL)
    s = nx * x + ny * y + nz * z
    x, y, z = x - s * nx, y - s * ny, z - s * nz
    square = x * x + y * y + z * z
    if square < 1e-12:
        return load3(contact, i, TANGENT)
    scale = 1.0 / sqrt(square)
    return scale * x, scale * y, scale * z


@inline
def put_tangents(rows, contact, contact_body, i, k):
    """Write rows k and k + 1: the two tangents of contact i with their friction bound."""
    ax, ay, az = load3(contact, i, TANGENT)
    put_contact_row(rows, contact, contact_body, i, k, ax, ay, az)
    bx, by, bz = second_tangent(contact, i)
    put_contact_row(rows, contact, contact_body, i, k + 1, bx, by, bz)
    bound = contact[i, BOUND]
    bounded_law(rows, k, 0.0, contact[i, TANGENT_BETA], -bound, bound)
    bounded_law(rows, k + 1, 0.0, contact[i, SLIP_BETA], -bound, bound)


@inline
def set_rolling(rows, contact, i, k, normal):
    """Write the laws of rows k to k + 2: rolling friction of contact i, bounded by its normal impulse."""
    resist = contact[i, ROLLING] * normal
    for n in range(3):
        bounded_law(rows, k + n, 0.0, ROLLING_SOFTNESS * contact[i, TANGENT_BETA], -resist, resist)


@inline
def set_tangent(contact, i, x, y, z):
    """Rotate the first tangent of contact i toward (x, y, z), unless that lies along the normal."""
    nx, ny, nz = load3(contact, i, NORMAL)
    s = nx * x + ny * y + nz * z
    x, y, z = x - s * nx, y - s * ny, z - s * nz
    square = x * x + y * y + z * z
    if square > 1e-24:
        scale = 1.0 / sqrt(square)
        store3(contact, i, TANGENT, scale * x, scale * y, scale * z)


@inline
def _fill_contact_arrays(shapes, tables, contacts, count, state, rotation, kinematic, contact_arrays):
    """Write bodies, arms, prescribed velocity and warm start of the first `count` contacts."""
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    contact_arrays.count[CONTACTS_NOW] = count
    fresh = state.clock[0] - 1
    for i in range(count):
        pair, slot = contacts.pair[i], contacts.slot[i]
        sa, sb = shapes.pair_a[pair], shapes.pair_b[pair]
        a, b = shapes.body[sa], shapes.body[sb]
        px, py, pz = load3(contacts.point, i, 0)
        ux, uy, uz = load3(shapes.velocity, sa, 0)
        ux, uy, uz = to_world(rotation, a, ux, uy, uz)
        wx, wy, wz = load3(shapes.velocity, sb, 0)
        wx, wy, wz = to_world(rotation, b, wx, wy, wz)
        dx, dy, dz = ux - wx, uy - wy, uz - wz
        vx, vy, vz = dx, dy, dz
        store3(contact, i, ARM_B, 0.0, 0.0, 0.0)
        for side in range(2):
            body, sign, arm = (a, 1.0, ARM_A) if side == 0 else (b, -1.0, ARM_B)
            if body < 0:
                continue
            rx, ry, rz = px - state.position[body, 0], py - state.position[body, 1], pz - state.position[body, 2]
            store3(contact, i, arm, rx, ry, rz)
            x, y, z = _point_velocity(state.twist, body, rx, ry, rz)
            vx, vy, vz = vx + sign * x, vy + sign * y, vz + sign * z
            if kinematic[body]:
                dx, dy, dz = dx + sign * x, dy + sign * y, dz + sign * z
        store3(contact, i, DRIFT, dx, dy, dz)
        store3(contact, i, NORMAL, contacts.normal[i, 0], contacts.normal[i, 1], contacts.normal[i, 2])
        contact_body[i, BODY_A] = a if a >= 0 and not kinematic[a] else -1
        contact_body[i, BODY_B] = b if b >= 0 and not kinematic[b] else -1
        contact_body[i, TOUCHING_A], contact_body[i, TOUCHING_B] = shapes.pair_body[pair, 0], shapes.pair_body[pair, 1]
        contact[i, FRICTION] = shapes.pair_friction[pair]
        contact[i, ROLLING] = shapes.pair_rolling[pair]
        contact[i, TANGENT_BETA] = tables.tangent_beta[pair]
        contact[i, SLIP_BETA] = contact[i, TANGENT_BETA]
        # any direction off the normal, then that of slip, then that of the last step
        if abs(contact[i, NORMAL]) < 0.9:
            set_tangent(contact, i, 1.0, 0.0, 0.0)
        else:
            set_tangent(contact, i, 0.0, 1.0, 0.0)
        set_tangent(contact, i, vx, vy, vz)
        contact[i, NORMAL_OF_BOUND] = 0.0
        if state.slot_step[slot] == fresh:
            contact[i, NORMAL_OF_BOUND], t = state.slot_normal_impulse[slot], state.slot_tangent[slot]
            set_tangent(contact, i, t[0], t[1], t[2])
        contact[i, BOUND] = contact[i, FRICTION] * contact[i, NORMAL_OF_BOUND]


@kernel_function
def fill_contact_rows(tables_at, state_at, work, count):
    """Write contact arrays and rows of the first `count` contacts. All tuples are shared."""
    shapes, tables, contacts = load_shared(tables_at.shapes, tables_at.contacts, work.contacts)
    state, contact_arrays, rows = load_shared(state_at, work.contact_arrays, work.rows)
    parameters, kinematic = tables_at.parameters, tables_at.bodies.kinematic
    _fill_contact_arrays(shapes, tables, contacts, count, state, work.scratch.rotation, kinematic, contact_arrays)
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    stride, k = tables.rows_each[0], tables.first_row[0]
    bounce_speed, push_out, h = parameters[BOUNCE_SPEED], parameters[PUSH_OUT_SPEED], parameters[STEP_SIZE]
    for i in range(count):
        pair = contacts.pair[i]
        nx, ny, nz = load3(contact, i, NORMAL)
        put_contact_row(rows, contact, contact_body, i, k, nx, ny, nz)
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
                # a soft row would absorb part of the rebound
                beta *= BOUNCE_SOFTNESS
        one_sided_law(rows, k, c, beta)
        put_tangents(rows, contact, contact_body, i, k + 1)
        if stride == 6:
            a, b = shapes.body[shapes.pair_a[pair]], shapes.body[shapes.pair_b[pair]]
            ka = a if a >= 0 and kinematic[a] else -1
            kb = b if b >= 0 and kinematic[b] else -1
            _put_rolling_row(rows, contact_body, state.twist, ka, kb, i, k + 3, nx, ny, nz)
            ax, ay, az = _rolling_axis(contact, i, state.twist, a, b)
            _put_rolling_row(rows, contact_body, state.twist, ka, kb, i, k + 4, ax, ay, az)
            bx, by, bz = cross(nx, ny, nz, ax, ay, az)
            _put_rolling_row(rows, contact_body, state.twist, ka, kb, i, k + 5, bx, by, bz)
            if contact[i, ROLLING] > 0.0:
                set_rolling(rows, contact, i, k + 3, contact[i, NORMAL_OF_BOUND])
            else:
                for n in range(3, 6):
                    rows.pieces[k + n] = 0
        k += stride
    rows.used[0] = k


fill_contact_rows_by_pointer = by_pointer(fill_contact_rows)

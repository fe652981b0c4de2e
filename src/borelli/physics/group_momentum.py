"""Momentum, angular momentum and energy of groups of bodies that joints connect."""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.compile_model import FREE
from borelli.physics.rigid_bodies import multiply_inertia, world_inertia
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.vectors import invert_matrix, multiply_vector

# columns of a tally, by group
REQUIRED, KINETIC, GROUP_MASS, CENTER, LINEAR, ANGULAR, INERTIA = 0, 1, 2, 3, 6, 9, 12
IN_CONTACT = 21  # not zero for a group whose angular momentum contacts change
IS_FORCED = 22  # not zero for a group on which more than hard joints and gravity acts
TURN = 23  # angular velocity of a change of velocities
TALLY_COLUMNS = 26

MIN_RELATIVE_ENERGY = 1e-9
"""Fraction of the kinetic energy in the motion relative to Z below which it is not changed: bodies move as one."""
MAX_SCALE = 2.0
"""Maximum s: a step that lost more than this gives back does not keep its energy."""


@inline
def kinetic_energy(mass, M, twist, b):
    """Return the kinetic energy of body b, M its inertia in world axes."""
    v = twist[b]
    lx, ly, lz = multiply_inertia(M, v[3], v[4], v[5])
    linear = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    return 0.5 * (mass[b] * linear + v[3] * lx + v[4] * ly + v[5] * lz)


@inline
def tally_groups(bodies, graph, rotation, position, twist, tally):
    """Sum kinetic energy, and momenta and inertia about the center of mass, of each group."""
    tally[:, KINETIC:] = 0.0
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g, m = bodies.group[b], bodies.mass[b]
        tally[g, GROUP_MASS] += m
        for n in range(3):
            tally[g, CENTER + n] += m * position[b, n]
            tally[g, LINEAR + n] += m * twist[b, n]
    for g in range(len(tally)):
        for n in range(3):
            tally[g, CENTER + n] /= max(tally[g, GROUP_MASS], 1e-300)
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g, m = bodies.group[b], bodies.mass[b]
        M = world_inertia(bodies.inertia, rotation, b)
        tally[g, KINETIC] += kinetic_energy(bodies.mass, M, twist, b)
        x, y = position[b, 0] - tally[g, CENTER], position[b, 1] - tally[g, CENTER + 1]
        z = position[b, 2] - tally[g, CENTER + 2]
        lx, ly, lz = multiply_inertia(M, twist[b, 3], twist[b, 4], twist[b, 5])
        cx, cy, cz = cross(x, y, z, twist[b, 0], twist[b, 1], twist[b, 2])
        tally[g, ANGULAR] += lx + m * cx
        tally[g, ANGULAR + 1] += ly + m * cy
        tally[g, ANGULAR + 2] += lz + m * cz
        tally[g, INERTIA] += M[0] + m * (y * y + z * z)
        tally[g, INERTIA + 1] += M[1] - m * x * y
        tally[g, INERTIA + 2] += M[3] - m * x * z
        tally[g, INERTIA + 4] += M[2] + m * (x * x + z * z)
        tally[g, INERTIA + 5] += M[4] - m * y * z
        tally[g, INERTIA + 8] += M[5] + m * (x * x + y * y)
    for g in range(len(tally)):
        tally[g, INERTIA + 3], tally[g, INERTIA + 6] = tally[g, INERTIA + 1], tally[g, INERTIA + 2]
        tally[g, INERTIA + 7] = tally[g, INERTIA + 5]


@inline
def angular_velocity_of(tally, g, x, y, z):
    """Return the angular velocity of group g, moving as one, with an angular momentum about its center of mass."""
    t = tally[g, INERTIA:]
    return multiply_vector(invert_matrix((t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8])), x, y, z)


@inline
def restore_angular_momentum(bodies, graph, state, before, tally):
    """Rotate free groups, of the present `tally`, as one to the angular momentum of the tally `before`.

    Groups in contact, by that tally, are left alone. The present tally is updated.
    """
    for g in range(len(tally)):
        x, y, z = 0.0, 0.0, 0.0
        if bodies.group_kind[g] == FREE and before[g, IN_CONTACT] == 0.0:
            lx, ly, lz = tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2]
            px, py, pz = before[g, ANGULAR] - lx, before[g, ANGULAR + 1] - ly, before[g, ANGULAR + 2] - lz
            x, y, z = angular_velocity_of(tally, g, px, py, pz)
            tally[g, KINETIC] += x * (lx + 0.5 * px) + y * (ly + 0.5 * py) + z * (lz + 0.5 * pz)
            for n in range(3):
                tally[g, ANGULAR + n] = before[g, ANGULAR + n]
        tally[g, TURN], tally[g, TURN + 1], tally[g, TURN + 2] = x, y, z
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g = bodies.group[b]
        wx, wy, wz = tally[g, TURN], tally[g, TURN + 1], tally[g, TURN + 2]
        x, y = state.position[b, 0] - tally[g, CENTER], state.position[b, 1] - tally[g, CENTER + 1]
        cx, cy, cz = cross(wx, wy, wz, x, y, state.position[b, 2] - tally[g, CENTER + 2])
        v = state.twist[b]
        v[0] += cx
        v[1] += cy
        v[2] += cz
        v[3] += wx
        v[4] += wy
        v[5] += wz


@inline
def translational_energy(tally, g):
    """Return the kinetic energy of the center of mass of group g."""
    squared = tally[g, LINEAR] ** 2 + tally[g, LINEAR + 1] ** 2 + tally[g, LINEAR + 2] ** 2
    return 0.5 * squared / max(tally[g, GROUP_MASS], 1e-300)


@inline
def rigid_motion(tally, kind, g):
    """Write velocity and angular velocity of Z over the momenta of group g; return its kinetic energy.

    Z is the rigid motion with the group's own momentum and angular momentum; 0 if joints connect it to the ground.
    """
    if kind != FREE:
        for n in range(6):
            tally[g, LINEAR + n] = 0.0
        return 0.0
    wx, wy, wz = angular_velocity_of(tally, g, tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2])
    energy = wx * tally[g, ANGULAR] + wy * tally[g, ANGULAR + 1] + wz * tally[g, ANGULAR + 2]
    tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2] = wx, wy, wz
    for n in range(3):
        energy += tally[g, LINEAR + n] ** 2 / tally[g, GROUP_MASS]
        tally[g, LINEAR + n] /= tally[g, GROUP_MASS]
    return 0.5 * energy


@inline
def scale_to_energy(tally, kind, g):
    """Write Z of group g over its momenta and return s, with which Z + s (v - Z) has the energy REQUIRED."""
    kinetic = tally[g, KINETIC]
    rigid = rigid_motion(tally, kind, g)
    relative = kinetic - rigid
    if relative <= MIN_RELATIVE_ENERGY * kinetic:
        return 1.0
    return sqrt(max(tally[g, REQUIRED] - rigid, 0.0) / relative)


@inline
def scale_groups(bodies, graph, tally, state):
    """Change velocities to Z + s (v - Z), with Z in place of the momenta and s - 1 in place of the kinetic energy."""
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g = bodies.group[b]
        change = tally[g, KINETIC]
        if change != 0.0:
            vx, vy, vz = tally[g, LINEAR], tally[g, LINEAR + 1], tally[g, LINEAR + 2]
            wx, wy, wz = tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2]
            x, y, z = (
                state.position[b, 0] - tally[g, CENTER],
                state.position[b, 1] - tally[g, CENTER + 1],
                state.position[b, 2] - tally[g, CENTER + 2],
            )
            cx, cy, cz = cross(wx, wy, wz, x, y, z)
            v = state.twist[b]
            v[0] += change * (v[0] - vx - cx)
            v[1] += change * (v[1] - vy - cy)
            v[2] += change * (v[2] - vz - cz)
            v[3] += change * (v[3] - wx)
            v[4] += change * (v[4] - wy)
            v[5] += change * (v[5] - wz)

"""Momentum, angular momentum and energy of groups of bodies that joints connect."""

from __future__ import annotations

from borelli.kernels.jit import inline
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.compile_model import FREE
from borelli.physics.rigid_bodies import multiply_inertia, world_inertia
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.vectors import invert_matrix, multiply_vector

# columns of a tally, by group
REQUIRED, KINETIC, GROUP_MASS, CENTER, LINEAR, ANGULAR, INERTIA = 0, 1, 2, 3, 6, 9, 12
IN_CONTACT = 21  # not zero for a group whose angular momentum contacts change
TALLY_COLUMNS = 22


@inline
def kinetic_energy(mass, M, twist, b):
    """Return the kinetic energy of body b, M its inertia in world axes."""
    v = twist[b]
    lx, ly, lz = multiply_inertia(M, v[3], v[4], v[5])
    linear = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    return 0.5 * (mass[b] * linear + v[3] * lx + v[4] * ly + v[5] * lz)


@inline
def tally_groups(bodies, graph, rotation, state, tally):
    """Sum kinetic energy, and momenta and inertia about the center of mass, of each group."""
    twist, position = state.twist, state.position
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
def restore_angular_momentum(bodies, graph, rotation, state, before, tally):
    """Rotate free groups as one so that they have the angular momentum of the tally `before` bodies were moved.

    Groups in contact, by that tally, are left alone.
    """
    tally_groups(bodies, graph, rotation, state, tally)
    for g in range(len(tally)):
        x, y, z = 0.0, 0.0, 0.0
        if bodies.group_kind[g] == FREE and before[g, IN_CONTACT] == 0.0:
            x, y, z = angular_velocity_of(
                tally, g, before[g, ANGULAR] - tally[g, ANGULAR], before[g, ANGULAR + 1] - tally[g, ANGULAR + 1],
                before[g, ANGULAR + 2] - tally[g, ANGULAR + 2],
            )
        tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2] = x, y, z
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g = bodies.group[b]
        wx, wy, wz = tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2]
        x, y = state.position[b, 0] - tally[g, CENTER], state.position[b, 1] - tally[g, CENTER + 1]
        cx, cy, cz = cross(wx, wy, wz, x, y, state.position[b, 2] - tally[g, CENTER + 2])
        v = state.twist[b]
        v[0] += cx
        v[1] += cy
        v[2] += cz
        v[3] += wx
        v[4] += wy
        v[5] += wz

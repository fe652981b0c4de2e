"""Energy balance of an impulse step, for each group of bodies that joints connect.

The velocities after a step satisfy the joints by a projection, which removes energy. It is given back: with Z the
rigid motion that has the group's own momentum and angular momentum (0 if joints connect it to the ground), the
velocities become Z + s (v - Z). That is the nearest motion that keeps joints, momentum and angular momentum and has
the energy required: that before the step plus the work of gravity.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, inline_into_caller
from borelli.numerics.rotation_kernels import cross
from borelli.physics.impulse_step.mean_motion import invert_matrix, multiply_vector
from borelli.physics.rigid_bodies import multiply_inertia, world_inertia
from borelli.physics.solver.elimination_order import BODY

FREE, GROUNDED, DRIVEN = range(3)
"""Kind of a group: not connected to the ground; connected to it; with controls or kinematic bodies, whose work is not
limited."""

NOT_BALANCED, LIMITED_ENERGY, EXACT = range(3)
"""Balance of a group in a step: none (bodies in contact exchange energy); energy is only removed; it is kept."""

# columns of `MeanMotion.tally`, by group
REQUIRED, KINETIC, GROUP_MASS, CENTER, LINEAR, ANGULAR, INERTIA = 0, 1, 2, 3, 6, 9, 12
TALLY_COLUMNS = 21

MIN_RELATIVE_ENERGY = 1e-9
"""Fraction of the kinetic energy in the motion relative to Z below which it is not changed: bodies move as one."""
MAX_REMOVED = 0.005
"""Fraction 1 - s of a gain removed from position correction above which the step is reported: 1 % of the energy."""
MAX_SCALE = 2.0
"""Maximum s: a step that lost more than this gives back is reported."""


@inline
def _kinetic_energy(mass, M, twist, b):
    v = twist[b]
    lx, ly, lz = multiply_inertia(M, v[3], v[4], v[5])
    linear = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    return 0.5 * (mass[b] * linear + v[3] * lx + v[4] * ly + v[5] * lz)


@inline_into_caller
def require_energy(bodies, gravity, graph, mean, state):
    """Write the energy that each group has after a part of the step: that before it, and the work of gravity."""
    tally = mean.tally
    tally[:, REQUIRED] = 0.0
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        energy = _kinetic_energy(bodies.mass, world_inertia(bodies.inertia, mean.rotation, b), mean.twist, b)
        for n in range(3):
            energy += bodies.mass[b] * gravity[n] * (state.position[b, n] - mean.position[b, n])
        tally[mean.group[b], REQUIRED] += energy


@inline
def _tally_groups(bodies, graph, mean, rotation, state):
    """Sum kinetic energy, and momenta and inertia about the center of mass, of each group."""
    tally, twist, position = mean.tally, state.twist, state.position
    tally[:, KINETIC:] = 0.0
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g, m = mean.group[b], bodies.mass[b]
        tally[g, GROUP_MASS] += m
        for n in range(3):
            tally[g, CENTER + n] += m * position[b, n]
            tally[g, LINEAR + n] += m * twist[b, n]
    for g in range(len(tally)):
        for n in range(3):
            tally[g, CENTER + n] /= max(tally[g, GROUP_MASS], 1e-300)
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g, m = mean.group[b], bodies.mass[b]
        M = world_inertia(bodies.inertia, rotation, b)
        tally[g, KINETIC] += _kinetic_energy(bodies.mass, M, twist, b)
        x, y, z = position[b, 0] - tally[g, CENTER], position[b, 1] - tally[g, CENTER + 1], (
            position[b, 2] - tally[g, CENTER + 2]
        )
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
def _rigid_motion(mean, g):
    """Write velocity and angular velocity of Z over the momenta of group g; return its kinetic energy."""
    tally = mean.tally
    if mean.group_kind[g] != FREE:
        for n in range(6):
            tally[g, LINEAR + n] = 0.0
        return 0.0
    t = tally[g, INERTIA:]
    inverse = invert_matrix((t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]))
    wx, wy, wz = multiply_vector(inverse, tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2])
    energy = wx * tally[g, ANGULAR] + wy * tally[g, ANGULAR + 1] + wz * tally[g, ANGULAR + 2]
    tally[g, ANGULAR], tally[g, ANGULAR + 1], tally[g, ANGULAR + 2] = wx, wy, wz
    for n in range(3):
        energy += tally[g, LINEAR + n] ** 2 / tally[g, GROUP_MASS]
        tally[g, LINEAR + n] /= tally[g, GROUP_MASS]
    return 0.5 * energy


@inline_into_caller
def balance_energy(bodies, graph, mean, rotation, state, only_remove):
    """Scale the motion of each group to the energy it requires; return False if one could not be kept."""
    tally, kept = mean.tally, True
    _tally_groups(bodies, graph, mean, rotation, state)
    for g in range(len(tally)):
        # KINETIC becomes s - 1
        balance, kinetic = mean.balance[g], tally[g, KINETIC]
        tally[g, KINETIC] = 0.0
        if balance == NOT_BALANCED or mean.group_kind[g] == DRIVEN:
            continue
        rigid = _rigid_motion(mean, g)
        relative = kinetic - rigid
        if relative <= MIN_RELATIVE_ENERGY * kinetic:
            continue
        scale = sqrt(max(tally[g, REQUIRED] - rigid, 0.0) / relative)
        if only_remove and scale < 1.0 - MAX_REMOVED:
            kept = False
        if scale > 1.0 and (only_remove or balance == LIMITED_ENERGY):
            continue
        if scale > MAX_SCALE:
            scale, kept = MAX_SCALE, False
        tally[g, KINETIC] = scale - 1.0
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        g = mean.group[b]
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
    return kept

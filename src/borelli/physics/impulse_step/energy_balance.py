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
from borelli.physics.arrays.compile_model import DRIVEN, FREE
from borelli.physics.group_momentum import (
    ANGULAR,
    CENTER,
    GROUP_MASS,
    KINETIC,
    LINEAR,
    REQUIRED,
    angular_velocity_of,
    kinetic_energy,
    tally_groups,
)
from borelli.physics.rigid_bodies import world_inertia
from borelli.physics.solver.elimination_order import BODY

NOT_BALANCED, LIMITED_ENERGY, EXACT = range(3)
"""Balance of a group in a step: none (bodies in contact exchange energy); energy is only removed; it is kept."""

MIN_RELATIVE_ENERGY = 1e-9
"""Fraction of the kinetic energy in the motion relative to Z below which it is not changed: bodies move as one."""
MAX_REMOVED = 0.005
"""Fraction 1 - s of a gain removed from position correction above which the step is reported: 1 % of the energy."""
MAX_SCALE = 2.0
"""Maximum s: a step that lost more than this gives back is reported."""


@inline_into_caller
def require_energy(bodies, gravity, graph, mean, state):
    """Write the energy that each group has after a part of the step: that before it, and the work of gravity."""
    tally = mean.tally
    tally[:, REQUIRED] = 0.0
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        energy = kinetic_energy(bodies.mass, world_inertia(bodies.inertia, mean.rotation, b), mean.twist, b)
        for n in range(3):
            energy += bodies.mass[b] * gravity[n] * (state.position[b, n] - mean.position[b, n])
        tally[bodies.group[b], REQUIRED] += energy


@inline
def _rigid_motion(mean, g):
    """Write velocity and angular velocity of Z over the momenta of group g; return its kinetic energy."""
    tally = mean.tally
    if mean.group_kind[g] != FREE:
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


@inline_into_caller
def balance_energy(bodies, graph, mean, rotation, state, only_remove):
    """Scale the motion of each group to the energy it requires; return False if one could not be kept."""
    tally, kept = mean.tally, True
    tally_groups(bodies, graph, rotation, state, tally)
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
    return kept

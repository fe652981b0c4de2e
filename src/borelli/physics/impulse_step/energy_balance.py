"""Energy balance of an impulse step, for each group of bodies that joints connect.

The velocities after a step satisfy the joints by a projection, which removes energy. It is given back: with Z the
rigid motion that has the group's own momentum and angular momentum (0 if joints connect it to the ground), the
velocities become Z + s (v - Z). That is the nearest motion that keeps joints, momentum and angular momentum and has
the energy required: that before the step plus the work of gravity.
"""

from __future__ import annotations

from borelli.kernels.jit import inline_into_caller
from borelli.physics.arrays.compile_model import DRIVEN
from borelli.physics.group_momentum import (
    KINETIC,
    MAX_SCALE,
    REQUIRED,
    kinetic_energy,
    scale_groups,
    scale_to_energy,
    tally_groups,
)
from borelli.physics.rigid_bodies import world_inertia
from borelli.physics.solver.elimination_order import BODY

NOT_BALANCED, LIMITED_ENERGY, EXACT = range(3)
"""Balance of a group in a step: none (bodies in contact exchange energy); energy is only removed; it is kept."""

MAX_REMOVED = 0.005
"""Fraction 1 - s of a gain removed from position correction above which the step is reported: 1 % of the energy."""


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


@inline_into_caller
def balance_energy(bodies, graph, mean, rotation, state, only_remove):
    """Scale the motion of each group to the energy it requires; return False if one could not be kept."""
    tally, kept = mean.tally, True
    tally_groups(bodies, graph, rotation, state.position, state.twist, tally)
    for g in range(len(tally)):
        # KINETIC becomes s - 1
        balance = mean.balance[g]
        if balance == NOT_BALANCED or mean.group_kind[g] == DRIVEN:
            tally[g, KINETIC] = 0.0
            continue
        scale = scale_to_energy(tally, mean.group_kind[g], g)
        if only_remove and scale < 1.0 - MAX_REMOVED:
            kept = False
        if scale > 1.0 and (only_remove or balance == LIMITED_ENERGY):
            scale = 1.0
        if scale > MAX_SCALE:
            scale, kept = MAX_SCALE, False
        tally[g, KINETIC] = scale - 1.0
    scale_groups(bodies, graph, tally, state)
    return kept

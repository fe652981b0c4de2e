"""Coulomb friction: bounds that follow the normal impulses, shaped as a disc.

For given bounds R = mu N the step is convex. Around it are found, by repeated solves, R from the normal impulses of the
last solve and the directions in which the disc |p_t| <= R is approximated. A contact obeys Coulomb's law where

    p_t = projection on the disc of s,      s = p_t - rho (u_t + beta p_t)

for any rho > 0 (Alart and Curnier 1991; here rho is the mass the contact feels, beta the softness of sticking). Its
first tangent is laid along s. Inside the disc it sticks. Outside, it slides: the first tangent is at its bound, and the
derivative of the projection across it makes the second tangent a slope (|s| - R)/(R rho), which for a steady slide is
|u_t|/R. So the repetition is Newton's method on the disc's own law, with no preferred axis and no corners; and where
force and slip disagree on the direction, s lies between them, so that contacts do not swing between stick and slip.

The normal impulses are only a fixed point, N(x) = x with bounds R = mu x. Repeating x <- N(x) settles most steps in one
to three solves, and swings for ever where friction lifts what it holds (a toe on its hinge): `coulomb` then solves for
normals and tangents of all contacts at once.
A step that ends early is still a valid solution of the rows, with bounds from slightly different normal impulses.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import (
    ALONG,
    BODY_A,
    BOUND,
    FRICTION,
    NORMAL_FOUND,
    NORMAL_NOW,
    RHO,
    ROLLING,
    SLIP,
    SLIP_BETA,
    TANGENT_BETA,
    put_tangents,
    second_tangent,
    set_along,
    set_rolling,
)
from borelli.physics.solver.elimination_order import DIRTY, PLACE
from borelli.physics.solver.factor_arrays import ABSENT, IMPULSE, KIND, SEGMENT, SOLUTION, use_segment
from borelli.physics.solver.iterative_refinement import response, row_velocity

NEAR_BOUND = 0.9
"""Share of the bound beyond which a sticking contact is turned along its impulse."""


@kernel_function
def check_friction(rows_at, graph_at, factor_at, touch_at, first_row, each):
    """How far the last solve is from the contacts' laws: the largest impulse lacking relative to the largest bound.

    Of normals the largest lacking counts relative to the largest normal impulse, of rolling the largest change of it.
    Leaves for each contact s (in SLIP and SLIP + 1, along the two tangents) and rho for `update_friction`.
    """
    rows, graph, factor, touch_tuple = load_shared(rows_at, graph_at, factor_at, touch_at)
    touch = touch_tuple.touch
    node, block, value = graph.node, factor.block, factor.value
    largest, miss, most, lift = 1e-300, 0.0, 1e-300, 0.0
    for i in range(touch_tuple.count[0]):
        k = first_row + each * i
        mu, p = touch[i, FRICTION], value[k, IMPULSE]
        normal = max(p, 0.0)
        touch[i, NORMAL_FOUND] = normal
        largest = max(largest, mu * normal)
        most = max(most, normal)
        rho = 1.0 / response(rows, node, block, k)
        above = row_velocity(rows, node, block, SOLUTION, k) - rows.c[k, 0] + rows.beta[k, 0] * p
        lift = max(lift, abs(p - max(p - rho * above, 0.0)))
        if touch[i, ROLLING] > 0.0:
            lift = max(lift, abs(normal - touch[i, NORMAL_NOW]))
        if mu == 0.0:
            continue
        rho = 1.0 / response(rows, node, block, k + 1)
        p1, p2 = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        beta = touch[i, TANGENT_BETA]
        slip1 = rho * (row_velocity(rows, node, block, SOLUTION, k + 1) + beta * p1)
        slip2 = rho * (row_velocity(rows, node, block, SOLUTION, k + 2) + beta * p2)
        s1, s2 = p1 - slip1, p2 - slip2
        length = sqrt(s1 * s1 + s2 * s2)
        share = min(1.0, mu * normal / length) if length > 0.0 else 1.0
        d1, d2 = p1 - share * s1, p2 - share * s2
        # an impulse in a corner of the square is taken back to the disc before it says how far the contact slips
        force = sqrt(p1 * p1 + p2 * p2)
        share = min(1.0, touch[i, BOUND] / force) if force > 0.0 else 1.0
        touch[i, RHO], touch[i, SLIP], touch[i, SLIP + 1] = rho, share * p1 - slip1, share * p2 - slip2
        miss = max(miss, sqrt(d1 * d1 + d2 * d2))
    return max(miss / largest, lift / most)


check_friction_by_pointer = by_pointer(check_friction)


@inline
def turn_along(touch, i, s1, s2):
    """Turn the first tangent of contact i by its components along the two present ones."""
    ax, ay, az = touch[i, ALONG], touch[i, ALONG + 1], touch[i, ALONG + 2]
    bx, by, bz = second_tangent(touch, i)
    set_along(touch, i, s1 * ax + s2 * bx, s1 * ay + s2 * by, s1 * az + s2 * bz)


@inline
def mark_dirty(node, who, i):
    """Have the bodies of contact i factored again."""
    for side in range(2):
        body = who[i, BODY_A + side]
        if body >= 0:
            node[node[body, PLACE], DIRTY] = 1


@kernel_function
def update_friction(rows_at, graph_at, factor_at, touch_at, first_row, each, share):
    """Bring directions up to the last solve, and bounds `share` of the way."""
    rows, graph, factor, touch_tuple = load_shared(rows_at, graph_at, factor_at, touch_at)
    touch, who = touch_tuple.touch, touch_tuple.who
    node, mark, value = graph.node, factor.mark, factor.value
    for i in range(touch_tuple.count[0]):
        k = first_row + each * i
        if touch[i, FRICTION] == 0.0 and touch[i, ROLLING] == 0.0:
            continue
        touch[i, NORMAL_NOW] += share * (touch[i, NORMAL_FOUND] - touch[i, NORMAL_NOW])
        bound = touch[i, FRICTION] * touch[i, NORMAL_NOW]
        touch[i, BOUND] = bound
        touch[i, SLIP_BETA] = touch[i, TANGENT_BETA]
        s1, s2 = touch[i, SLIP], touch[i, SLIP + 1]
        length = sqrt(s1 * s1 + s2 * s2)
        if length > NEAR_BOUND * bound and length > 0.0:
            turn_along(touch, i, s1, s2)
            if length > bound > 0.0:
                touch[i, SLIP_BETA] = max(touch[i, TANGENT_BETA], (length - bound) / (bound * touch[i, RHO]))
        put_tangents(rows, touch, who, i, k + 1)
        if touch[i, ROLLING] > 0.0:
            set_rolling(rows, touch, i, k + 3, touch[i, NORMAL_NOW])
        for n in range(1, each):
            if mark[k + n, KIND] != ABSENT:
                use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
        mark_dirty(node, who, i)


update_friction_by_pointer = by_pointer(update_friction)

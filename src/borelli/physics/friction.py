"""Coulomb friction: bounds that follow the normal impulses, shaped as a disc.

For given bounds R = mu N the step is convex. Two things are found around it by repeated solves: R, from the normal impulses
of the last solve, and the directions in which the disc |p_t| <= R is approximated. Each contact's first tangent is turned

- while it slides, along its slip velocity u_t; there p_t = -R u_t/|u_t|, whose derivative across the slip is R/|u_t|: the
  second tangent becomes a slope |u_t|/R. This is Newton's method on the disc's own law.
- while it sticks near the bound, along its impulse, where a square touches the disc: an error only of second order.

So a contact neither prefers an axis nor has corners, and one that keeps its direction from step to step (most do) needs
no further solve. After a few plain repetitions the bounds are accelerated (Anderson, on the two last differences).
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import leaf, part
from borelli.physics.blocks import dot6, load6
from borelli.physics.contact import (
    ALONG,
    BODY_A,
    BODY_B,
    BOUND,
    FRICTION,
    NORMAL_NOW,
    ROLLING,
    SLIP_BETA,
    TANGENT_BETA,
    put_tangents,
    second_tangent,
    set_along,
)
from borelli.physics.factor import IMPULSE, MODE, FLAT_ROW, SOLUTION, C, BETA, KIND, SEGMENT, use_segment
from borelli.physics.graph import DIRTY, PLACE
from borelli.physics.manifold import bounded_law

NEAR_BOUND = 0.9
"""Share of the bound beyond which a sticking contact is turned along its impulse."""


@leaf
def _velocity(rows, node, block, k):
    s = rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            s += dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], PLACE], SOLUTION))
    return s


@part
def update_friction(rows, graph, factor, touch_tuple, first_row, each, gain, laws):
    """Bring bounds and directions up to the last solve; the largest change of friction relative to the largest bound.

    `gain` is the share of the change of a bound that is taken. With `laws` False only the change is measured.
    """
    touch, who = touch_tuple.touch, touch_tuple.who
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    largest, change = 1e-300, 0.0
    for i in range(touch_tuple.count[0]):
        largest = max(largest, touch[i, FRICTION] * value[first_row + each * i, IMPULSE])
    for i in range(touch_tuple.count[0]):
        k = first_row + each * i
        mu = touch[i, FRICTION]
        if mu == 0.0 and touch[i, ROLLING] == 0.0:
            continue
        normal = max(value[k, IMPULSE], 0.0)
        p1, p2 = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        u1, u2 = _velocity(rows, node, block, k + 1), _velocity(rows, node, block, k + 2)
        speed, force = sqrt(u1 * u1 + u2 * u2), sqrt(p1 * p1 + p2 * p2)
        wanted = mu * normal
        slides = (mark[k + 1, MODE] == FLAT_ROW or mark[k + 2, MODE] == FLAT_ROW) and speed > 0.0
        if slides:
            dx, dy = p1 + wanted * u1 / speed, p2 + wanted * u2 / speed
            change = max(change, sqrt(dx * dx + dy * dy))
        else:
            change = max(change, force - wanted)
            # a sticking contact whose bound still grows or shrinks past its force settles with the bound
            if force > NEAR_BOUND * wanted:
                change = max(change, min(abs(touch[i, BOUND] - wanted), force))
        if not laws:
            continue
        touch[i, NORMAL_NOW] += gain * (normal - touch[i, NORMAL_NOW])
        bound = mu * touch[i, NORMAL_NOW]
        touch[i, BOUND] = bound
        ax, ay, az = touch[i, ALONG], touch[i, ALONG + 1], touch[i, ALONG + 2]
        bx, by, bz = second_tangent(touch, i)
        touch[i, SLIP_BETA] = touch[i, TANGENT_BETA]
        if slides:
            set_along(touch, i, u1 * ax + u2 * bx, u1 * ay + u2 * by, u1 * az + u2 * bz)
            if bound > 0.0:
                touch[i, SLIP_BETA] = max(touch[i, TANGENT_BETA], speed / bound)
        elif force > NEAR_BOUND * wanted and force > 0.0:
            set_along(touch, i, p1 * ax + p2 * bx, p1 * ay + p2 * by, p1 * az + p2 * bz)
        put_tangents(rows, touch, who, i, k + 1)
        if touch[i, ROLLING] > 0.0:
            resist = touch[i, ROLLING] * touch[i, NORMAL_NOW]
            for n in range(3, 6):
                bounded_law(rows, k + n, 0.0, value[k + n, BETA], -resist, resist)
        for n in range(1, each):
            if mark[k + n, KIND] != 0:
                use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
        for side in range(2):
            body = who[i, BODY_A] if side == 0 else who[i, BODY_B]
            if body >= 0:
                node[node[body, PLACE], DIRTY] = 1
    return change / largest

"""Coulomb friction: bounds that follow the normal impulses, shaped as a disc.

For given bounds R = mu N the step is convex. Around it are found, by repeated solves, R from the normal impulses of the
last solve and the directions in which the disc |p_t| <= R is approximated. A contact obeys Coulomb's law where

    p_t = projection on the disc of s,      s = p_t - rho (u_t + beta p_t)

for any rho > 0 (Alart and Curnier 1991; here rho is the mass the contact feels, beta the softness of sticking). Its
first tangent is laid along s. Inside the disc it sticks. Outside, it slides: the first tangent is at its bound, and the
derivative of the projection across it makes the second tangent a slope (|s| - R)/(R rho), which for a steady slide is
|u_t|/R. So the repetition is Newton's method on the disc's own law, with no preferred axis and no corners; and where
force and slip disagree on the direction, s lies between them, so that contacts do not swing between stick and slip.

The normal impulses are a fixed point, N(x) = x with bounds R = mu x. Repeating x <- N(x) swings for ever where friction
lifts what it holds (a toe on its hinge). The last factors tell how each normal impulse answers to the bound
of each sliding contact, dN/dR, one back-substitution each; with them Newton's method solves N + dN/dR (mu x - R) = x.
A contact that was held by more than its own normal impulse allows counts as sliding from there on. Where contacts come
and go from solve to solve this may still swing; `coulomb` then finds them all at once.
A step that ends early is still a valid solution of the rows, with bounds from slightly different normal impulses.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import leaf, part
from borelli.physics.blocks import DIAGONAL, dot6, load6, store6
from borelli.physics.contact import (
    ALONG,
    BODY_A,
    BOUND,
    FRICTION,
    MOST_SOLVED,
    NORMAL_FOUND,
    NORMAL_NOW,
    RHO,
    ROLLING,
    SLIDING,
    SLIP,
    SLIP_BETA,
    TANGENT_BETA,
    put_tangents,
    second_tangent,
    set_along,
)
from borelli.physics.elimination import factor_bodies, solve_factored
from borelli.physics.factor import (
    ABSENT,
    FLAT_ROW,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    RIGHT,
    SEGMENT,
    SOLUTION,
    U_NOW,
    C,
    use_segment,
)
from borelli.physics.graph import DIRTY, PLACE
from borelli.physics.manifold import bounded_law
from borelli.physics.refinement import push

NEAR_BOUND = 0.9
"""Share of the bound beyond which a sticking contact is turned along its impulse."""
@leaf
def _velocity(rows, node, block, k):
    s = rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            s += dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], PLACE], SOLUTION))
    return s


@leaf
def _felt_mass(rows, node, block, k):
    """1 / (J M^-1 J^T) of row k with the diagonal of M."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], PLACE]
            for n in range(6):
                total += rows.jacobian[e, n] ** 2 / block[position, MASS + DIAGONAL[n]]
    return 1.0 / total


@part
def check_friction(rows, graph, factor, touch_tuple, first_row, each):
    """How far the last solve is from Coulomb's law: the largest miss relative to the largest bound.

    Leaves for each contact s (in SLIP and SLIP + 1, along the two tangents) and rho for `update_friction`.
    """
    touch = touch_tuple.touch
    node, block, value = graph.node, factor.block, factor.value
    largest, miss = 1e-300, 0.0
    for i in range(touch_tuple.count[0]):
        k = first_row + each * i
        mu, normal = touch[i, FRICTION], max(value[k, IMPULSE], 0.0)
        touch[i, NORMAL_FOUND] = normal
        largest = max(largest, mu * normal)
        if mu == 0.0:
            if touch[i, ROLLING] > 0.0:
                miss = max(miss, abs(normal - touch[i, NORMAL_NOW]))
            continue
        rho = _felt_mass(rows, node, block, k + 1)
        p1, p2 = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        beta = touch[i, TANGENT_BETA]
        slip1 = rho * (_velocity(rows, node, block, k + 1) + beta * p1)
        slip2 = rho * (_velocity(rows, node, block, k + 2) + beta * p2)
        s1, s2 = p1 - slip1, p2 - slip2
        length = sqrt(s1 * s1 + s2 * s2)
        share = min(1.0, mu * normal / length) if length > 0.0 else 1.0
        d1, d2 = p1 - share * s1, p2 - share * s2
        # an impulse in a corner of the square is taken back to the disc before it says how far the contact slips
        force = sqrt(p1 * p1 + p2 * p2)
        share = min(1.0, touch[i, BOUND] / force) if force > 0.0 else 1.0
        touch[i, RHO], touch[i, SLIP], touch[i, SLIP + 1] = rho, share * p1 - slip1, share * p2 - slip2
        miss = max(miss, sqrt(d1 * d1 + d2 * d2))
    return miss / largest


@leaf
def _free_held(rows, node, mark, value, touch, who, contacts, first_row, each):
    """Put sticking contacts whose force exceeds what their normal impulse allows at a bound equal to that force."""
    freed = 0
    for i in range(contacts):
        k = first_row + each * i
        if mark[k + 1, MODE] == FLAT_ROW or mark[k + 2, MODE] == FLAT_ROW or mark[k + 1, KIND] == ABSENT:
            continue
        p1, p2 = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        force = sqrt(p1 * p1 + p2 * p2)
        if force <= touch[i, FRICTION] * touch[i, NORMAL_FOUND]:
            continue
        turn_along(touch, i, p1, p2)
        touch[i, SLIP], touch[i, SLIP + 1] = force, 0.0
        touch[i, BOUND] = force
        touch[i, SLIP_BETA] = touch[i, TANGENT_BETA]
        put_tangents(rows, touch, who, i, k + 1)
        for n in range(1, 3):
            mark[k + n, SEGMENT] = n - 1
            use_segment(rows, mark, value, k + n, n - 1)
        mark_dirty(node, who, i)
        freed += 1
    return freed


@leaf
def turn_along(touch, i, s1, s2):
    """Turn the first tangent of contact i by its components along the two present ones."""
    ax, ay, az = touch[i, ALONG], touch[i, ALONG + 1], touch[i, ALONG + 2]
    bx, by, bz = second_tangent(touch, i)
    set_along(touch, i, s1 * ax + s2 * bx, s1 * ay + s2 * by, s1 * az + s2 * bz)


@leaf
def mark_dirty(node, who, i):
    """Have the bodies of contact i factored again."""
    for side in range(2):
        body = who[i, BODY_A + side]
        if body >= 0:
            node[node[body, PLACE], DIRTY] = 1


@leaf
def _list_sliding(mark, touch, who, contacts, first_row, each):
    """Write the numbers of the sliding contacts into a column of `who`; how many there are."""
    sliding = 0
    for i in range(contacts):
        k = first_row + each * i
        if touch[i, FRICTION] > 0.0 and (mark[k + 1, MODE] == FLAT_ROW or mark[k + 2, MODE] == FLAT_ROW):
            who[sliding, SLIDING] = i
            sliding += 1
    return sliding


@leaf
def _answers(rows, graph, factor, fill, touch, who, first_row, each, sliding, matrix):
    """Fill the matrix 1 - mu dN/dR of the sliding contacts and, behind it, the right side N - dN/dR R."""
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(rows.used[0]):
        value[k, U_NOW] = value[k, C]
        if mark[k, MODE] != FLAT_ROW:
            value[k, C] = 0.0
    for a in range(sliding):
        matrix[a, sliding] = touch[who[a, SLIDING], NORMAL_FOUND]
    for a in range(sliding):
        i = who[a, SLIDING]
        for k in range(graph.count[0]):
            store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        for k in range(first_row + each * i + 1, first_row + each * i + 3):
            if mark[k, MODE] == FLAT_ROW:
                push(rows, node, block, k, 1.0 if mark[k, SEGMENT] == 0 else -1.0)
        solve_factored(rows, graph, factor, fill)
        for b in range(sliding):
            k = first_row + each * who[b, SLIDING]
            answer = value[k, IMPULSE] if mark[k, MODE] != FLAT_ROW else 0.0
            matrix[b, a] = (1.0 if a == b else 0.0) - touch[i, FRICTION] * answer
            matrix[b, sliding] -= touch[i, BOUND] * answer
    for k in range(rows.used[0]):
        value[k, C] = value[k, U_NOW]


@leaf
def _solve_dense(matrix, size):
    """Gauss with row pivoting; the right side is column `size` and becomes the solution."""
    for a in range(size):
        best = a
        for b in range(a + 1, size):
            if abs(matrix[b, a]) > abs(matrix[best, a]):
                best = b
        for n in range(a, size + 1):
            matrix[a, n], matrix[best, n] = matrix[best, n], matrix[a, n]
        pivot = matrix[a, a]
        if pivot == 0.0:
            pivot = 1e-12
        for b in range(a + 1, size):
            share = matrix[b, a] / pivot
            for n in range(a, size + 1):
                matrix[b, n] -= share * matrix[a, n]
    for index in range(size):
        a = size - 1 - index
        s = matrix[a, size]
        for b in range(a + 1, size):
            s -= matrix[a, b] * matrix[b, size]
        matrix[a, size] = s / (matrix[a, a] if matrix[a, a] != 0.0 else 1e-12)


@part
def _move_normals(rows, graph, factor, fill, touch_tuple, first_row, each):
    """Newton's step of the normal impulses towards N(x) = x."""
    touch, who, matrix = touch_tuple.touch, touch_tuple.who, touch_tuple.answers
    contacts = touch_tuple.count[0]
    if _free_held(rows, graph.node, factor.mark, factor.value, touch, who, contacts, first_row, each) > 0:
        factor_bodies(rows, graph, factor, fill)
    sliding = _list_sliding(factor.mark, touch, who, contacts, first_row, each)
    if 0 < sliding <= MOST_SOLVED:
        _answers(rows, graph, factor, fill, touch, who, first_row, each, sliding, matrix)
        _solve_dense(matrix, sliding)
    place = 0
    for i in range(contacts):
        change = touch[i, NORMAL_FOUND] - touch[i, NORMAL_NOW]
        if place < sliding and who[place, SLIDING] == i:
            newton = matrix[place, sliding] - touch[i, NORMAL_NOW]
            # against N - x, Newton has run past a contact that will stick (friction that presses it down)
            if sliding <= MOST_SOLVED and newton * change > 0.0:
                change = newton
            elif sliding > MOST_SOLVED:
                change *= 0.5
            place += 1
        touch[i, NORMAL_NOW] = max(touch[i, NORMAL_NOW] + change, 0.0)


@part
def update_friction(rows, graph, factor, fill, touch_tuple, first_row, each):
    """Bring bounds and directions up to the last solve."""
    touch, who = touch_tuple.touch, touch_tuple.who
    node, mark, value = graph.node, factor.mark, factor.value
    contacts = touch_tuple.count[0]
    _move_normals(rows, graph, factor, fill, touch_tuple, first_row, each)
    for i in range(contacts):
        k = first_row + each * i
        if touch[i, FRICTION] == 0.0 and touch[i, ROLLING] == 0.0:
            continue
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
            resist = touch[i, ROLLING] * touch[i, NORMAL_NOW]
            for n in range(3, 6):
                bounded_law(rows, k + n, 0.0, rows.beta[k + n, 1], -resist, resist)
        for n in range(1, each):
            if mark[k + n, KIND] != ABSENT:
                use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
        mark_dirty(node, who, i)

"""All contacts of a step solved against each other, other rows staying on their segments.

The way out where `friction` swings. Without contact impulses the bodies would have the velocities u0 along the contact
rows; a unit impulse on row s changes that of row r by A[r, s], one back-substitution a row. On these few numbers block
Gauss-Seidel (Moreau and Jean's contact dynamics) goes round the contacts: each takes the normal impulse its law asks for,
p_n = max(0, (c - u_n + A_nn p_n)/(A_nn + beta)), then the projection of p_t - rho (u_t + beta p_t) on its disc. What it
ends with sets bounds, directions and segments, and the ordinary solve proves or corrects it.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import leaf, part
from borelli.physics.blocks import store6
from borelli.physics.contact import (
    BOUND,
    FRICTION,
    MOST_SOLVED,
    NORMAL_FOUND,
    NORMAL_NOW,
    SLIP,
    SLIP_BETA,
    TANGENT_BETA,
    put_tangents,
)
from borelli.physics.elimination import solve_factored
from borelli.physics.factor import (
    FLAT_ROW,
    IMPULSE,
    MODE,
    RIGHT,
    SEGMENT,
    SOLUTION,
    U_NOW,
    C,
    use_segment,
)
from borelli.physics.friction import mark_dirty, turn_along
from borelli.physics.solver import push, row_velocity, solve_piece

ROUNDS = 2000
SETTLED = 1e-6
"""Largest change of an impulse in a round, relative to the largest impulse, at which the rounds end."""


@part
def solve_contacts(rows, graph, factor, fill, counts, touch_tuple, first_row, each, switching):
    """Set bounds, directions and segments of all contacts from their common solution; False when they are too many."""
    touch, who, A = touch_tuple.touch, touch_tuple.who, touch_tuple.answers
    node, mark, value = graph.node, factor.mark, factor.value
    contacts = touch_tuple.count[0]
    if contacts > MOST_SOLVED:
        return False
    for i in range(contacts):
        k = first_row + each * i
        touch[i, SLIP], touch[i, SLIP + 1] = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        for n in range(3):
            mark[k + n, MODE] = FLAT_ROW
            value[k + n, C] = 0.0
        mark_dirty(node, who, i)
    if not solve_piece(rows, graph, factor, fill, counts, switching):
        return False
    last = 3 * contacts
    for r in range(last):
        A[r, 3 * MOST_SOLVED] = row_velocity(rows, node, factor.block, SOLUTION, first_row + each * (r // 3) + r % 3)
    _find_answers(rows, graph, factor, fill, A, first_row, each, last)
    _go_round(rows, touch, A, contacts, first_row, each)
    for i in range(contacts):
        _place_contact(rows, node, mark, value, touch, who, i, first_row + each * i)
    return True


@leaf
def _find_answers(rows, graph, factor, fill, A, first_row, each, last):
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(rows.used[0]):
        value[k, U_NOW] = value[k, C]
        if mark[k, MODE] != FLAT_ROW:
            value[k, C] = 0.0
    for s in range(last):
        for k in range(graph.count[0]):
            store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        push(rows, node, block, first_row + each * (s // 3) + s % 3, 1.0)
        solve_factored(rows, graph, factor, fill)
        for r in range(last):
            k = first_row + each * (r // 3) + r % 3
            A[r, s] = row_velocity(rows, node, block, SOLUTION, k) - rows.offset[k]
    for k in range(rows.used[0]):
        value[k, C] = value[k, U_NOW]


@leaf
def _velocity_of(A, touch, contacts, r):
    u = A[r, 3 * MOST_SOLVED]
    for j in range(contacts):
        u += (
            A[r, 3 * j] * touch[j, NORMAL_FOUND]
            + A[r, 3 * j + 1] * touch[j, SLIP]
            + A[r, 3 * j + 2] * touch[j, SLIP + 1]
        )
    return u


@leaf
def _go_round(rows, touch, A, contacts, first_row, each):
    """Impulses of all contacts, in NORMAL_FOUND and SLIP."""
    for _ in range(ROUNDS):
        largest, change = 1e-300, 0.0
        for i in range(contacts):
            k, r = first_row + each * i, 3 * i
            before, p1, p2 = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1]
            u = _velocity_of(A, touch, contacts, r) - A[r, r] * before
            normal = max(0.0, (rows.c[k, 0] - u) / (A[r, r] + rows.beta[k, 0]))
            touch[i, NORMAL_FOUND] = normal
            change = max(change, abs(normal - before))
            largest = max(largest, normal)
            beta = touch[i, TANGENT_BETA]
            rho = 1.0 / (A[r + 1, r + 1] + A[r + 2, r + 2] + beta)
            s1 = p1 - rho * (_velocity_of(A, touch, contacts, r + 1) + beta * p1)
            s2 = p2 - rho * (_velocity_of(A, touch, contacts, r + 2) + beta * p2)
            length = sqrt(s1 * s1 + s2 * s2)
            share = min(1.0, touch[i, FRICTION] * normal / length) if length > 0.0 else 1.0
            touch[i, SLIP], touch[i, SLIP + 1] = share * s1, share * s2
            change = max(change, abs(share * s1 - p1), abs(share * s2 - p2))
        if change <= SETTLED * largest:
            break
    for i in range(contacts):
        # how fast it slips decides the slope across
        u1, u2 = _velocity_of(A, touch, contacts, 3 * i + 1), _velocity_of(A, touch, contacts, 3 * i + 2)
        touch[i, SLIP_BETA] = sqrt(u1 * u1 + u2 * u2)


@leaf
def _place_contact(rows, node, mark, value, touch, who, i, k):
    """Bounds, directions and segments of contact i from its impulses and its slip speed."""
    normal, p1, p2, speed = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1], touch[i, SLIP_BETA]
    bound = touch[i, FRICTION] * normal
    force = sqrt(p1 * p1 + p2 * p2)
    slides = force >= 0.999999 * bound
    touch[i, NORMAL_NOW], touch[i, BOUND] = normal, bound
    touch[i, SLIP_BETA] = max(touch[i, TANGENT_BETA], speed / bound) if slides and bound > 0.0 else touch[i, TANGENT_BETA]
    if force > 0.0:
        turn_along(touch, i, p1, p2)
    put_tangents(rows, touch, who, i, k + 1)
    mark[k, SEGMENT] = 0 if normal > 0.0 else 1
    mark[k + 1, SEGMENT] = 0 if slides else 1
    mark[k + 2, SEGMENT] = 1
    for n in range(3):
        use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
    mark_dirty(node, who, i)

"""All contacts of a step solved against each other, other rows staying on their segments.

The way out where `friction` swings. Without contact impulses the bodies would have the velocities u0 along the contact
rows; a unit impulse on row s changes that of row r by A[r, s], one back-substitution a row. On these few numbers block
Gauss-Seidel (contact dynamics, after Moreau and Jean) goes round them: each takes the normal impulse its law asks for,
p_n = max(0, (c - u_n + A_nn p_n)/(A_nn + beta)), then the projection of p_t - rho (u_t + beta p_t) on its disc. If with
these impulses every other row is still on its segment, the step is solved; if not, the other rows are solved with the
contact impulses held, and the contacts once more. Failing that, bounds, directions and segments are set from which the
ordinary solve goes on.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import leaf, part
from borelli.physics.blocks import store6
from borelli.physics.contact import (
    BOUND,
    FRICTION,
    MOST_SOLVED,
    NORMAL_BETA,
    NORMAL_C,
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
from borelli.physics.manifold import one_sided_law
from borelli.physics.refinement import push, row_velocity
from borelli.physics.rows import FLAT
from borelli.physics.solver import find_crossings, newton, solve_piece

ROUNDS = 1000
LOCAL_ROUNDS = 8
SETTLED = 2e-5
"""Largest change of an impulse in a round, relative to the largest impulse, at which the rounds end: well below the
tolerance of friction bounds, and reached even where tangents nearly repeat each other (1e-6 often is not)."""
EXCHANGES = 8
"""Times contacts and other rows are solved in turn."""
TOO_MANY, PLACED, ACCEPTED = 0, 1, 2


@part
def solve_contacts(rows, graph, factor, fill, search, interior, touch_tuple, first_row, each, switching, patience, cap):
    """Solve all contacts against each other: ACCEPTED as the step's answer, PLACED to go on from, or TOO_MANY."""
    touch, who, A = touch_tuple.touch, touch_tuple.who, touch_tuple.answers
    node, mark, value, counts = graph.node, factor.mark, factor.value, search.counts
    contacts = touch_tuple.count[0]
    if contacts > MOST_SOLVED:
        return TOO_MANY
    for i in range(contacts):
        k = first_row + each * i
        touch[i, SLIP], touch[i, SLIP + 1] = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        touch[i, NORMAL_C], touch[i, NORMAL_BETA] = rows.c[k, 0], rows.beta[k, 0]
    result = PLACED
    for _ in range(EXCHANGES):
        for i in range(contacts):
            _hold_contact(rows, node, mark, value, who, i, first_row + each * i, 0.0, 0.0, 0.0)
        if not solve_piece(rows, graph, factor, fill, counts, switching):
            break
        for r in range(3 * contacts):
            k = first_row + each * (r // 3) + r % 3
            A[r, 3 * MOST_SOLVED] = row_velocity(rows, node, factor.block, SOLUTION, k)
        _find_answers(rows, graph, factor, fill, A, first_row, each, 3 * contacts)
        if not _go_round(touch, A, contacts):
            break
        for i in range(contacts):
            p1, p2 = touch[i, SLIP], touch[i, SLIP + 1]
            _hold_contact(rows, node, mark, value, who, i, first_row + each * i, touch[i, NORMAL_FOUND], p1, p2)
        if not solve_piece(rows, graph, factor, fill, counts, switching):
            break
        if find_crossings(rows, node, factor.block, mark, value, factor.roll, switching) == 0:
            result = ACCEPTED
            break
        if newton(rows, graph, factor, fill, search, interior, switching, patience, cap) != 0:
            break
    for i in range(contacts):
        k = first_row + each * i
        one_sided_law(rows, k, touch[i, NORMAL_C], touch[i, NORMAL_BETA])
        _place_contact(rows, node, mark, value, touch, who, i, k)
    return result


@leaf
def _hold_contact(rows, node, mark, value, who, i, k, p0, p1, p2):
    """Give the three rows of a contact fixed impulses, whatever their velocities."""
    for n in range(3):
        rows.segments[k + n] = 1
        rows.beta[k + n, 0] = FLAT
        rows.c[k + n, 0] = p0 if n == 0 else (p1 if n == 1 else p2)
        mark[k + n, SEGMENT] = 0
        use_segment(rows, mark, value, k + n, 0)
    mark_dirty(node, who, i)


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
def _go_round(touch, A, contacts):
    """Impulses of all contacts, in NORMAL_FOUND and SLIP; whether they settled."""
    settled = False
    for _ in range(ROUNDS):
        largest, change = 1e-300, 0.0
        for i in range(contacts):
            r = 3 * i
            normal, p1, p2 = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1]
            # velocities without the contact's own impulses
            u0 = _velocity_of(A, touch, contacts, r) - A[r, r] * normal - A[r, r + 1] * p1 - A[r, r + 2] * p2
            u1 = _velocity_of(A, touch, contacts, r + 1)
            u1 -= A[r + 1, r] * normal + A[r + 1, r + 1] * p1 + A[r + 1, r + 2] * p2
            u2 = _velocity_of(A, touch, contacts, r + 2)
            u2 -= A[r + 2, r] * normal + A[r + 2, r + 1] * p1 + A[r + 2, r + 2] * p2
            beta = touch[i, TANGENT_BETA]
            rho = 1.0 / (A[r + 1, r + 1] + A[r + 2, r + 2] + beta)
            for _ in range(LOCAL_ROUNDS):
                normal = touch[i, NORMAL_C] - u0 - A[r, r + 1] * p1 - A[r, r + 2] * p2
                normal /= A[r, r] + touch[i, NORMAL_BETA]
                normal = max(0.0, normal)
                s1 = p1 - rho * (u1 + A[r + 1, r] * normal + (A[r + 1, r + 1] + beta) * p1 + A[r + 1, r + 2] * p2)
                s2 = p2 - rho * (u2 + A[r + 2, r] * normal + A[r + 2, r + 1] * p1 + (A[r + 2, r + 2] + beta) * p2)
                length = sqrt(s1 * s1 + s2 * s2)
                share = min(1.0, touch[i, FRICTION] * normal / length) if length > 0.0 else 1.0
                p1, p2 = share * s1, share * s2
            change = max(change, abs(normal - touch[i, NORMAL_FOUND]))
            change = max(change, abs(p1 - touch[i, SLIP]), abs(p2 - touch[i, SLIP + 1]))
            largest = max(largest, normal)
            touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1] = normal, p1, p2
        if change <= SETTLED * largest:
            settled = True
            break
    for i in range(contacts):
        # how fast it slips decides the slope across
        u1, u2 = _velocity_of(A, touch, contacts, 3 * i + 1), _velocity_of(A, touch, contacts, 3 * i + 2)
        touch[i, SLIP_BETA] = sqrt(u1 * u1 + u2 * u2)
    return settled


@leaf
def _place_contact(rows, node, mark, value, touch, who, i, k):
    """Bounds, directions and segments of contact i from its impulses and its slip speed."""
    normal, p1, p2, speed = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1], touch[i, SLIP_BETA]
    bound = touch[i, FRICTION] * normal
    force = sqrt(p1 * p1 + p2 * p2)
    slides = force >= 0.999999 * bound
    touch[i, NORMAL_NOW], touch[i, BOUND] = normal, bound
    stuck = touch[i, TANGENT_BETA]
    touch[i, SLIP_BETA] = max(stuck, speed / bound) if slides and bound > 0.0 else stuck
    if force > 0.0:
        turn_along(touch, i, p1, p2)
    put_tangents(rows, touch, who, i, k + 1)
    mark[k, SEGMENT] = 0 if normal > 0.0 else 1
    mark[k + 1, SEGMENT] = 0 if slides else 1
    mark[k + 2, SEGMENT] = 1
    value[k, IMPULSE], value[k + 1, IMPULSE], value[k + 2, IMPULSE] = normal, force, 0.0
    for n in range(3):
        use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
    mark_dirty(node, who, i)

"""Coulomb's law of all contacts of a step, solved at once by Newton's method.

Bounds taken from the last solve (`friction`) swing for ever where friction lifts or presses down what it holds. Here
the law itself is solved. With u = J v + drift the velocity of a contact, v = v0 + S f that of the bodies (`compliance`)
and f = J^T p, each contact asks for

    p_n = max(0, z),   z = p_n - rho_n (u_n - c + beta_n p_n)        p_t = projection of s on the disc of radius mu p_n,
                                                                     s = p_t - rho_t (u_t + beta_t p_t)

(Alart and Curnier 1991), whatever rho > 0. Its derivative makes p a linear function of u, p = p0 - D u: with d = s/|s|,
e square to it, q = mu p_n/|s|,

    open (z <= 0)        p = 0
    closed               p_n = (c - u_n)/beta_n
      sticks             p_t = -u_t/beta_t
      slides (q < 1)     p_t = mu p_n d - kappa u_e e,     kappa = q rho_t/(1 - q (1 - rho_t beta_t))

so that one Newton step is (1 + K S) f = J^T (p0 - D drift) - K v0 with K = J^T D J: six unknowns a touching body, and
no symmetry.
The step is halved until the sum of squares of what the law lacks falls. Where it does not, some rounds from contact to
contact (Gauss-Seidel; Moreau and Jean) and another rho lead out: the law's solutions are the same for every rho, the
places where Newton is caught are not.

If with these impulses every other row is still on its segment, the step is solved; if not, the other rows are solved
with the contact impulses held, and the contacts once more.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import (
    BOUND,
    FREE,
    FRICTION,
    LOCAL_A,
    NEXT,
    NEXT_IMPULSE,
    NEXT_U,
    NORMAL_BETA,
    NORMAL_C,
    NORMAL_FOUND,
    NORMAL_NOW,
    NOW,
    OWN_ANSWER,
    ROLLING,
    SLIP,
    SLIP_BETA,
    TANGENT_BETA,
    U,
    put_tangents,
    set_rolling,
)
from borelli.physics.rows.laws import one_sided_law
from borelli.physics.rows.rows import FLAT
from borelli.physics.solver.blocks import dot6, load6
from borelli.physics.solver.contact_response import find_answers_by_pointer, list_touching
from borelli.physics.solver.factor_arrays import IMPULSE, SEGMENT, use_segment
from borelli.physics.solver.friction import check_friction_by_pointer, mark_dirty, turn_along
from borelli.physics.solver.newton import find_crossings, newton_by_pointer, solve_piece_by_pointer

SCALES = (3.0, 30.0, 300.0)
"""rho relative to the mass a contact feels, in turn. Of 6,000 contact problems of falling humans 1 alone fails on 5 %,
0.1 on 10 %, these on 0.1 %."""
STEPS = 40
"""Newton steps in all."""
STAY = 6
"""Newton steps with one rho."""
HALVINGS = 8
ENOUGH = 0.1
"""Share of the expected fall of the sum of squares that a step must reach."""
ROUNDS = 50
"""Gauss-Seidel rounds where Newton is caught."""
CLOSER = 0.05
"""Of the friction tolerance: how well contacts are solved against each other."""
EXCHANGES = 8
"""Times contacts and other rows are solved in turn."""
TOO_MANY, PLACED, ACCEPTED = 0, 1, 2


@kernel_function
def solve_contacts(
    pointers, rows_at, graph_at, factor_at, fill_at, search_at, interior_at, touch_at, first_row, each,
    switching, patience, cap, tolerance,
):  # fmt: skip
    """Solve all contacts against each other: ACCEPTED as the step's answer, PLACED to go on from, or TOO_MANY."""
    rows, graph, factor, search, touch_tuple = load_shared(rows_at, graph_at, factor_at, search_at, touch_at)
    touch, who = touch_tuple.touch, touch_tuple.who
    node, mark, value, counts = graph.node, factor.mark, factor.value, search.counts
    contacts = touch_tuple.count[0]
    bodies = list_touching(node, touch_tuple)
    if bodies < 0:
        return TOO_MANY
    for i in range(contacts):
        k = first_row + each * i
        touch[i, SLIP], touch[i, SLIP + 1] = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        touch[i, NORMAL_C], touch[i, NORMAL_BETA] = rows.c[k, 0], rows.beta[k, 0]
    result = PLACED
    for _ in range(EXCHANGES):
        for i in range(contacts):
            _hold_contact(rows, node, mark, value, who, i, first_row + each * i, 0.0, 0.0, 0.0)
        if not solve_piece_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at, counts, switching):
            break
        find_answers_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at, touch_at, bodies)
        settle_by_pointer(pointers, rows_at, touch_at, first_row, each, bodies, CLOSER * tolerance)
        for i in range(contacts):
            k = first_row + each * i
            normal = max(touch[i, NORMAL_FOUND], 0.0)
            _hold_contact(rows, node, mark, value, who, i, k, normal, touch[i, SLIP], touch[i, SLIP + 1])
            if touch[i, ROLLING] > 0.0:
                set_rolling(rows, touch, i, k + 3, normal)
                for n in range(3, 6):
                    use_segment(rows, mark, value, k + n, mark[k + n, SEGMENT])
        if not solve_piece_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at, counts, switching):
            break
        if find_crossings(rows, node, factor.block, mark, value, factor.roll, switching) == 0:
            _place_contacts(rows, node, mark, value, touch, who, contacts, first_row, each)
            if check_friction_by_pointer(pointers, rows_at, graph_at, factor_at, touch_at, first_row, each) <= tolerance:
                return ACCEPTED
            result = PLACED
            for i in range(contacts):
                touch[i, SLIP], touch[i, SLIP + 1] = value[first_row + each * i + 1, IMPULSE], 0.0
            continue
        if newton_by_pointer(
            pointers, rows_at, graph_at, factor_at, fill_at, search_at, interior_at, switching, patience, cap
        ) != 0:  # fmt: skip
            break
    _place_contacts(rows, node, mark, value, touch, who, contacts, first_row, each)
    return result


solve_contacts_by_pointer = by_pointer(solve_contacts)


@inline
def _hold_contact(rows, node, mark, value, who, i, k, p0, p1, p2):
    """Give the three rows of a contact fixed impulses, whatever their velocities."""
    for n in range(3):
        rows.segments[k + n] = 1
        rows.beta[k + n, 0] = FLAT
        rows.c[k + n, 0] = p0 if n == 0 else (p1 if n == 1 else p2)
        mark[k + n, SEGMENT] = 0
        use_segment(rows, mark, value, k + n, 0)
    mark_dirty(node, who, i)


@inline
def _load_speed(speed, a, column):
    return (
        speed[6 * a, column], speed[6 * a + 1, column], speed[6 * a + 2, column],
        speed[6 * a + 3, column], speed[6 * a + 4, column], speed[6 * a + 5, column],
    )  # fmt: skip


@inline
def _contact_velocity(rows, touch, who, speed, column, i, k, at):
    """Velocity u of contact i, whose rows begin at k, into the columns of `touch` from `at` on."""
    for n in range(3):
        u = rows.offset[k + n]
        for side in range(2):
            a = who[i, LOCAL_A + side]
            if a >= 0:
                u += dot6(load6(rows.jacobian, rows.first[k + n] + side, 0), _load_speed(speed, a, column))
        touch[i, at + n] = u


@inline
def _push_bodies(rows, who, answer, speed, column, bodies, i, k, p0, p1, p2):
    """Add S J^T p of contact i to a column of `speed`."""
    for side in range(2):
        a = who[i, LOCAL_A + side]
        if a < 0:
            continue
        e, f, g = rows.first[k] + side, rows.first[k + 1] + side, rows.first[k + 2] + side
        for n in range(6):
            push = p0 * rows.jacobian[e, n] + p1 * rows.jacobian[f, n] + p2 * rows.jacobian[g, n]
            if push != 0.0:
                for r in range(6 * bodies):
                    # S is symmetric: its row is read along memory
                    speed[r, column] += answer[6 * a + n, r] * push


@inline
def _own_answers(rows, touch, who, answer, i, k):
    """J S J^T of contact i, 3 x 3, into its columns of `touch`."""
    for m in range(3):
        for n in range(3):
            total = 0.0
            for side in range(2):
                a = who[i, LOCAL_A + side]
                for other in range(2):
                    b = who[i, LOCAL_A + other]
                    if a >= 0 and b >= 0:
                        e, f = rows.first[k + m] + side, rows.first[k + n] + other
                        for r in range(6):
                            for c in range(6):
                                total += rows.jacobian[e, r] * answer[6 * a + r, 6 * b + c] * rows.jacobian[f, c]
            touch[i, OWN_ANSWER + 3 * m + n] = total


@inline
def _masses(touch, i, scale):
    """rho of the normal and of the tangents."""
    across = 0.5 * (touch[i, OWN_ANSWER + 4] + touch[i, OWN_ANSWER + 8])
    return scale / (touch[i, OWN_ANSWER] + touch[i, NORMAL_BETA]), scale / (across + touch[i, TANGENT_BETA])


@inline
def _lacks(touch, contacts, impulse, velocity, share, scale):
    """What contacts lack of the law with impulses and velocities `share` of the way to the next ones.

    The largest impulse lacking relative to the largest normal impulse, and the sum of squares.
    """
    largest, worst, total = 1e-300, 0.0, 0.0
    for i in range(contacts):
        n0 = touch[i, NORMAL_FOUND] + share * (touch[i, impulse] - touch[i, NORMAL_FOUND])
        p1 = touch[i, SLIP] + share * (touch[i, impulse + 1] - touch[i, SLIP])
        p2 = touch[i, SLIP + 1] + share * (touch[i, impulse + 2] - touch[i, SLIP + 1])
        u0 = touch[i, U] + share * (touch[i, velocity] - touch[i, U])
        u1 = touch[i, U + 1] + share * (touch[i, velocity + 1] - touch[i, U + 1])
        u2 = touch[i, U + 2] + share * (touch[i, velocity + 2] - touch[i, U + 2])
        rho_n, rho_t = _masses(touch, i, scale)
        z = n0 - rho_n * (u0 - touch[i, NORMAL_C] + touch[i, NORMAL_BETA] * n0)
        s1 = p1 - rho_t * (u1 + touch[i, TANGENT_BETA] * p1)
        s2 = p2 - rho_t * (u2 + touch[i, TANGENT_BETA] * p2)
        length = sqrt(s1 * s1 + s2 * s2)
        part_of = min(1.0, touch[i, FRICTION] * max(n0, 0.0) / length) if length > 0.0 else 1.0
        f0, f1, f2 = n0 - max(z, 0.0), p1 - part_of * s1, p2 - part_of * s2
        largest = max(largest, n0)
        worst = max(worst, abs(f0), abs(f1), abs(f2))
        total += f0 * f0 + f1 * f1 + f2 * f2
    return worst / largest, total


@inline
def _go_round(rows, touch, who, answer, speed, bodies, contacts, first_row, each):
    """One round of Gauss-Seidel over the contacts."""
    for i in range(contacts):
        k = first_row + each * i
        _contact_velocity(rows, touch, who, speed, NOW, i, k, U)
        n0, p1, p2 = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1]
        A = OWN_ANSWER
        beta = touch[i, TANGENT_BETA]
        rho = 1.0 / (touch[i, A + 4] + touch[i, A + 8] + beta)
        normal = n0 + (touch[i, NORMAL_C] - touch[i, U] - touch[i, NORMAL_BETA] * n0) / (
            touch[i, A] + touch[i, NORMAL_BETA]
        )
        normal = max(0.0, normal)
        more = normal - n0
        s1 = p1 - rho * (touch[i, U + 1] + touch[i, A + 3] * more + beta * p1)
        s2 = p2 - rho * (touch[i, U + 2] + touch[i, A + 6] * more + beta * p2)
        length = sqrt(s1 * s1 + s2 * s2)
        share = min(1.0, touch[i, FRICTION] * normal / length) if length > 0.0 else 1.0
        s1, s2 = share * s1, share * s2
        _push_bodies(rows, who, answer, speed, NOW, bodies, i, k, more, s1 - p1, s2 - p2)
        touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1] = normal, s1, s2


@inline
def _linear_law(touch, i, scale):
    """D (its five numbers that may differ from 0) and p0 of contact i at its present impulse and velocity."""
    n0, p1, p2 = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1]
    rho_n, rho_t = _masses(touch, i, scale)
    c, beta_n, beta = touch[i, NORMAL_C], touch[i, NORMAL_BETA], touch[i, TANGENT_BETA]
    if n0 - rho_n * (touch[i, U] - c + beta_n * n0) <= 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s1 = p1 - rho_t * (touch[i, U + 1] + beta * p1)
    s2 = p2 - rho_t * (touch[i, U + 2] + beta * p2)
    length, mu = sqrt(s1 * s1 + s2 * s2), touch[i, FRICTION]
    radius = mu * max(n0, 0.0)
    if length <= radius and mu > 0.0:
        return 1.0 / beta_n, 0.0, 0.0, 1.0 / beta, 0.0, 1.0 / beta
    if length == 0.0:
        return 1.0 / beta_n, 0.0, 0.0, 0.0, 0.0, 0.0
    d1, d2, q = s1 / length, s2 / length, radius / length
    kappa = q * rho_t / (1.0 - q * (1.0 - rho_t * beta))
    return 1.0 / beta_n, mu * d1 / beta_n, mu * d2 / beta_n, kappa * d2 * d2, -kappa * d1 * d2, kappa * d1 * d1


@inline
def _newton_system(rows, touch, who, answer, system, stiff, speed, bodies, contacts, first_row, each, scale):
    """1 + K S and, behind it, J^T (p0 - D drift) - K v0, with K = J^T D J."""
    size = 6 * bodies
    for r in range(size):
        for c in range(size):
            stiff[r, c] = 0.0
            system[r, c] = 0.0
        system[r, r] = 1.0
        system[r, size] = 0.0
    for i in range(contacts):
        k = first_row + each * i
        d0, d1, d2, d11, d12, d22 = _linear_law(touch, i, scale)
        if d0 == 0.0:
            continue
        w1, w2 = rows.offset[k + 1], rows.offset[k + 2]
        toward = touch[i, NORMAL_C] - rows.offset[k]
        q0, q1, q2 = d0 * toward, d1 * toward - d11 * w1 - d12 * w2, d2 * toward - d12 * w1 - d22 * w2
        for side in range(2):
            a = who[i, LOCAL_A + side]
            if a < 0:
                continue
            e, f, g = rows.first[k] + side, rows.first[k + 1] + side, rows.first[k + 2] + side
            for n in range(6):
                j0, j1, j2 = rows.jacobian[e, n], rows.jacobian[f, n], rows.jacobian[g, n]
                along = d0 * j0 + d1 * j1 + d2 * j2
                first, second = d11 * j1 + d12 * j2, d12 * j1 + d22 * j2
                system[6 * a + n, size] += q0 * j0 + q1 * j1 + q2 * j2
                for other in range(2):
                    b = who[i, LOCAL_A + other]
                    if b < 0:
                        continue
                    x, y, z = rows.first[k] + other, rows.first[k + 1] + other, rows.first[k + 2] + other
                    for m in range(6):
                        stiff[6 * a + n, 6 * b + m] += (
                            along * rows.jacobian[x, m] + first * rows.jacobian[y, m] + second * rows.jacobian[z, m]
                        )
    for r in range(size):
        for c in range(size):
            weight = stiff[r, c]
            if weight != 0.0:
                system[r, size] -= weight * speed[c, FREE]
                for n in range(size):
                    system[r, n] += weight * answer[c, n]


@inline
def _solve_dense(matrix, size):
    """Gauss with row pivoting; the right side is column `size` and becomes the solution."""
    for a in range(size):
        best = a
        for b in range(a + 1, size):
            if abs(matrix[b, a]) > abs(matrix[best, a]):
                best = b
        if best != a:
            for n in range(a, size + 1):
                matrix[a, n], matrix[best, n] = matrix[best, n], matrix[a, n]
        pivot = matrix[a, a]
        if pivot == 0.0:
            pivot = 1e-12
        for b in range(a + 1, size):
            share = matrix[b, a] / pivot
            if share != 0.0:
                for n in range(a + 1, size + 1):
                    matrix[b, n] -= share * matrix[a, n]
    for index in range(size):
        a = size - 1 - index
        s = matrix[a, size]
        for b in range(a + 1, size):
            s -= matrix[a, b] * matrix[b, size]
        matrix[a, size] = s / (matrix[a, a] if matrix[a, a] != 0.0 else 1e-12)


@inline
def _next_impulses(rows, touch, who, speed, contacts, first_row, each, scale):
    """Impulses and velocities that go with the solution of a Newton step."""
    for i in range(contacts):
        _contact_velocity(rows, touch, who, speed, NEXT, i, first_row + each * i, NEXT_U)
        d0, d1, d2, d11, d12, d22 = _linear_law(touch, i, scale)
        toward = touch[i, NORMAL_C] - touch[i, NEXT_U]
        u1, u2 = touch[i, NEXT_U + 1], touch[i, NEXT_U + 2]
        touch[i, NEXT_IMPULSE] = d0 * toward
        touch[i, NEXT_IMPULSE + 1] = d1 * toward - d11 * u1 - d12 * u2
        touch[i, NEXT_IMPULSE + 2] = d2 * toward - d12 * u1 - d22 * u2


@kernel_function
def settle(rows_at, touch_at, first_row, each, bodies, tolerance):
    """Bring impulses (NORMAL_FOUND, SLIP) and slip velocities (U) of all contacts to the law; whether that was done."""
    rows, touch_tuple = load_shared(rows_at, touch_at)
    touch, who, contacts = touch_tuple.touch, touch_tuple.who, touch_tuple.count[0]
    answer, system, speed = touch_tuple.answer, touch_tuple.system, touch_tuple.speed
    size = 6 * bodies
    for i in range(contacts):
        _own_answers(rows, touch, who, answer, i, first_row + each * i)
    turn, since, caught = 0, 0, True
    for step in range(STEPS):
        scale = SCALES[turn % 3]
        if caught:
            # the bodies' velocities are made anew from the impulses
            for r in range(size):
                speed[r, NOW] = speed[r, FREE]
            for i in range(contacts):
                n0, p1, p2 = touch[i, NORMAL_FOUND], touch[i, SLIP], touch[i, SLIP + 1]
                _push_bodies(rows, who, answer, speed, NOW, bodies, i, first_row + each * i, n0, p1, p2)
            if step > 0:
                for _ in range(ROUNDS):
                    _go_round(rows, touch, who, answer, speed, bodies, contacts, first_row, each)
            for i in range(contacts):
                _contact_velocity(rows, touch, who, speed, NOW, i, first_row + each * i, U)
            caught, since = False, 0
        lacks, _ = _lacks(touch, contacts, NEXT_IMPULSE, NEXT_U, 0.0, 1.0)
        if lacks <= tolerance:
            return True
        _, total = _lacks(touch, contacts, NEXT_IMPULSE, NEXT_U, 0.0, scale)
        _newton_system(
            rows, touch, who, answer, system, touch_tuple.stiff, speed, bodies, contacts, first_row, each, scale
        )  # fmt: skip
        _solve_dense(system, size)
        for r in range(size):
            speed[r, NEXT] = speed[r, FREE]
            for c in range(size):
                speed[r, NEXT] += answer[r, c] * system[c, size]
        _next_impulses(rows, touch, who, speed, contacts, first_row, each, scale)
        share, less = 1.0, 0.0
        for _ in range(HALVINGS):
            _, less = _lacks(touch, contacts, NEXT_IMPULSE, NEXT_U, share, scale)
            if less < total * (1.0 - ENOUGH * share):
                break
            share *= 0.5
        if less < total * (1.0 - ENOUGH * share):
            for i in range(contacts):
                touch[i, NORMAL_FOUND] += share * (touch[i, NEXT_IMPULSE] - touch[i, NORMAL_FOUND])
                for n in range(2):
                    touch[i, SLIP + n] += share * (touch[i, NEXT_IMPULSE + 1 + n] - touch[i, SLIP + n])
                for n in range(3):
                    touch[i, U + n] += share * (touch[i, NEXT_U + n] - touch[i, U + n])
            since += 1
            caught = since == STAY
        else:
            caught = True
        if caught:
            turn += 1
    return False


settle_by_pointer = by_pointer(settle)


@inline
def _place_contacts(rows, node, mark, value, touch, who, contacts, first_row, each):
    """Give the contacts their laws back: bounds, directions and segments from their impulses and slip velocities."""
    for i in range(contacts):
        k = first_row + each * i
        one_sided_law(rows, k, touch[i, NORMAL_C], touch[i, NORMAL_BETA])
        normal, p1, p2 = max(touch[i, NORMAL_FOUND], 0.0), touch[i, SLIP], touch[i, SLIP + 1]
        bound = touch[i, FRICTION] * normal
        force = sqrt(p1 * p1 + p2 * p2)
        slides = force >= 0.999999 * bound
        touch[i, NORMAL_NOW], touch[i, BOUND] = normal, bound
        stuck = touch[i, TANGENT_BETA]
        speed = sqrt(touch[i, U + 1] ** 2 + touch[i, U + 2] ** 2)
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

"""Coulomb's law of all contacts of a step, solved together by Newton's method.

Bounds from the last solve (`friction`) oscillate forever where friction lifts or presses down the body it acts on. Here
the law itself is solved. With u = J v + drift the velocity of a contact, v = v0 + S f that of the bodies
(`contact_response`) and f = J^T p, each contact requires

    p_n = max(0, z),   z = p_n - rho_n (u_n - c + beta_n p_n)        p_t = projection of s on the disc of radius mu p_n,
                                                                     s = p_t - rho_t (u_t + beta_t p_t)

(Alart and Curnier 1991) for any rho > 0. Its derivative makes p a linear function of u, p = p0 - D u: with d = s/|s|,
e perpendicular to it, q = mu p_n/|s|,

    open (z <= 0)        p = 0
    closed               p_n = (c - u_n)/beta_n
      sticks             p_t = -u_t/beta_t
      slides (q < 1)     p_t = mu p_n d - kappa u_e e,     kappa = q rho_t/(1 - q (1 - rho_t beta_t))

so that one Newton step is (1 + K S) f = J^T (p0 - D drift) - K v0 with K = J^T D J: six unknowns per body in contact,
and no symmetry.
The step is halved until the sum of squared defects of the law falls. Where it does not, sweeps of Gauss-Seidel over the
contacts (Moreau and Jean) and another rho lead out: the law's solutions are the same for every rho, the points where
Newton stalls are not.

If with these impulses every other row is still on its piece, the step is solved; if not, the other rows are solved
with the contact impulses fixed, and then the contacts again.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import (
    BOUND,
    CONTACTS_NOW,
    FREE,
    FRICTION,
    LOCAL_A,
    NEXT,
    NEXT_IMPULSE,
    NEXT_U,
    NORMAL_BETA,
    NORMAL_C,
    NORMAL_IMPULSE,
    NORMAL_OF_BOUND,
    NOW,
    OWN_RESPONSE,
    ROLLING,
    SLIP_BETA,
    TANGENT_BETA,
    TANGENT_IMPULSE,
    U,
    put_tangents,
    set_rolling,
)
from borelli.physics.rows.laws import fixed_impulse, one_sided_law
from borelli.physics.solver.blocks import dot6, load6
from borelli.physics.solver.contact_response import compute_contact_response_by_pointer, index_contact_bodies
from borelli.physics.solver.factor_arrays import ACTIVE_PIECE, IMPULSE, use_piece
from borelli.physics.solver.friction import friction_defect_by_pointer, mark_dirty, rotate_tangent
from borelli.physics.solver.newton import find_crossings, newton_by_pointer, solve_active_pieces_by_pointer

RHO_SCALES = (3.0, 30.0, 300.0)
"""rho relative to the effective mass of a contact, used in turn. Of 6,000 contact problems of falling humans 1 alone
fails on 5 %, 0.1 on 10 %, these on 0.1 %.
"""
MAX_NEWTON_STEPS = 40
"""Newton steps in all."""
STEPS_PER_RHO = 6
"""Newton steps with one rho."""
MAX_HALVINGS = 8
SUFFICIENT_DECREASE = 0.1
"""Fraction of the predicted decrease of the sum of squares that a step must achieve."""
GAUSS_SEIDEL_SWEEPS = 50
"""Sweeps of Gauss-Seidel where Newton stalls."""
INNER_TOLERANCE = 0.05
"""Tolerance of the contacts against each other, as a fraction of the friction tolerance."""
MAX_ALTERNATIONS = 8
"""Alternations between contacts and other rows."""
TOO_MANY_BODIES, IMPROVED, ACCEPTED = 0, 1, 2


@kernel_function
def solve_contacts(pointers, work, first_row, stride, switching, patience, cap, tolerance):
    """Solve all contacts together. Return ACCEPTED (the step is solved), IMPROVED (continue) or TOO_MANY_BODIES."""
    rows, graph, factor, contact_arrays = load_shared(work.rows, work.graph, work.factor, work.contact_arrays)
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    node, mark, value = graph.node, factor.mark, factor.value
    contact_count = contact_arrays.count[CONTACTS_NOW]
    bodies = index_contact_bodies(node, contact_arrays)
    if bodies < 0:
        return TOO_MANY_BODIES
    for i in range(contact_count):
        k = first_row + stride * i
        contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1] = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        contact[i, NORMAL_C], contact[i, NORMAL_BETA] = rows.c[k, 0], rows.beta[k, 0]
    for _ in range(MAX_ALTERNATIONS):
        for i in range(contact_count):
            _fix_impulses(rows, node, mark, value, contact_body, i, first_row + stride * i, 0.0, 0.0, 0.0)
        if not solve_active_pieces_by_pointer(pointers, work, switching):
            break
        compute_contact_response_by_pointer(pointers, work, bodies)
        solve_coulomb_law_by_pointer(pointers, work, first_row, stride, bodies, INNER_TOLERANCE * tolerance)
        for i in range(contact_count):
            k = first_row + stride * i
            normal = max(contact[i, NORMAL_IMPULSE], 0.0)
            p1, p2 = contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
            _fix_impulses(rows, node, mark, value, contact_body, i, k, normal, p1, p2)
            if contact[i, ROLLING] > 0.0:
                set_rolling(rows, contact, i, k + 3, normal)
                for n in range(3, 6):
                    use_piece(rows, mark, value, k + n, mark[k + n, ACTIVE_PIECE])
        if not solve_active_pieces_by_pointer(pointers, work, switching):
            break
        if find_crossings(rows, node, factor.block, mark, value, factor.row_list, switching) == 0:
            _restore_laws(rows, node, mark, value, contact, contact_body, contact_count, first_row, stride)
            if friction_defect_by_pointer(pointers, work, first_row, stride) <= tolerance:
                return ACCEPTED
            for i in range(contact_count):
                contact[i, TANGENT_IMPULSE] = value[first_row + stride * i + 1, IMPULSE]
                contact[i, TANGENT_IMPULSE + 1] = 0.0
            continue
        if newton_by_pointer(pointers, work, switching, patience, cap) != 0:
            break
    _restore_laws(rows, node, mark, value, contact, contact_body, contact_count, first_row, stride)
    return IMPROVED


solve_contacts_by_pointer = by_pointer(solve_contacts)


@inline
def _fix_impulses(rows, node, mark, value, contact_body, i, k, p0, p1, p2):
    """Give the three rows of a contact fixed impulses, independent of their velocities."""
    for n in range(3):
        fixed_impulse(rows, k + n, p0 if n == 0 else (p1 if n == 1 else p2))
        mark[k + n, ACTIVE_PIECE] = 0
        use_piece(rows, mark, value, k + n, 0)
    mark_dirty(node, contact_body, i)


@inline
def _load_velocity(body_velocity, a, column):
    return (
        body_velocity[6 * a, column], body_velocity[6 * a + 1, column], body_velocity[6 * a + 2, column],
        body_velocity[6 * a + 3, column], body_velocity[6 * a + 4, column], body_velocity[6 * a + 5, column],
    )


@inline
def _contact_velocity(rows, contact, contact_body, body_velocity, column, i, k, at):
    """Write the velocity u of contact i, whose rows begin at k, into the columns of `contact` from `at` on."""
    for n in range(3):
        u = rows.offset[k + n]
        for side in range(2):
            a = contact_body[i, LOCAL_A + side]
            if a >= 0:
                u += dot6(load6(rows.jacobian, rows.first[k + n] + side, 0), _load_velocity(body_velocity, a, column))
        contact[i, at + n] = u


@inline
def _apply_impulse(rows, contact_body, response, body_velocity, column, bodies, i, k, p0, p1, p2):
    """Add S J^T p of contact i to a column of `body_velocity`."""
    for side in range(2):
        a = contact_body[i, LOCAL_A + side]
        if a < 0:
            continue
        e, f, g = rows.first[k] + side, rows.first[k + 1] + side, rows.first[k + 2] + side
        for n in range(6):
            impulse = p0 * rows.jacobian[e, n] + p1 * rows.jacobian[f, n] + p2 * rows.jacobian[g, n]
            if impulse != 0.0:
                for r in range(6 * bodies):
                    # S is symmetric: its row is read along memory
                    body_velocity[r, column] += response[6 * a + n, r] * impulse


@inline
def _own_response(rows, contact, contact_body, response, i, k):
    """Write J S J^T of contact i, 3 x 3, into its columns of `contact`."""
    for m in range(3):
        for n in range(3):
            total = 0.0
            for side in range(2):
                a = contact_body[i, LOCAL_A + side]
                for other in range(2):
                    b = contact_body[i, LOCAL_A + other]
                    if a >= 0 and b >= 0:
                        e, f = rows.first[k + m] + side, rows.first[k + n] + other
                        for r in range(6):
                            for c in range(6):
                                total += rows.jacobian[e, r] * response[6 * a + r, 6 * b + c] * rows.jacobian[f, c]
            contact[i, OWN_RESPONSE + 3 * m + n] = total


@inline
def _rho(contact, i, scale):
    """Return rho of the normal and of the tangents."""
    across = 0.5 * (contact[i, OWN_RESPONSE + 4] + contact[i, OWN_RESPONSE + 8])
    return scale / (contact[i, OWN_RESPONSE] + contact[i, NORMAL_BETA]), scale / (across + contact[i, TANGENT_BETA])


@inline
def _law_defect(contact, contact_count, impulse, velocity, fraction, scale):
    """Return the defect of the law with impulses and velocities at `fraction` of the Newton step.

    Returns the largest impulse defect relative to the largest normal impulse, and the sum of squares.
    """
    largest, worst, total = 1e-300, 0.0, 0.0
    for i in range(contact_count):
        n0 = contact[i, NORMAL_IMPULSE] + fraction * (contact[i, impulse] - contact[i, NORMAL_IMPULSE])
        p1 = contact[i, TANGENT_IMPULSE] + fraction * (contact[i, impulse + 1] - contact[i, TANGENT_IMPULSE])
        p2 = contact[i, TANGENT_IMPULSE + 1] + fraction * (contact[i, impulse + 2] - contact[i, TANGENT_IMPULSE + 1])
        u0 = contact[i, U] + fraction * (contact[i, velocity] - contact[i, U])
        u1 = contact[i, U + 1] + fraction * (contact[i, velocity + 1] - contact[i, U + 1])
        u2 = contact[i, U + 2] + fraction * (contact[i, velocity + 2] - contact[i, U + 2])
        rho_n, rho_t = _rho(contact, i, scale)
        z = n0 - rho_n * (u0 - contact[i, NORMAL_C] + contact[i, NORMAL_BETA] * n0)
        s1 = p1 - rho_t * (u1 + contact[i, TANGENT_BETA] * p1)
        s2 = p2 - rho_t * (u2 + contact[i, TANGENT_BETA] * p2)
        length = sqrt(s1 * s1 + s2 * s2)
        projection = min(1.0, contact[i, FRICTION] * max(n0, 0.0) / length) if length > 0.0 else 1.0
        f0, f1, f2 = n0 - max(z, 0.0), p1 - projection * s1, p2 - projection * s2
        largest = max(largest, n0)
        worst = max(worst, abs(f0), abs(f1), abs(f2))
        total += f0 * f0 + f1 * f1 + f2 * f2
    return worst / largest, total


@inline
def _gauss_seidel_sweep(rows, contact_arrays, bodies, first_row, stride):
    """Sweep once over the contacts by Gauss-Seidel."""
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    response, body_velocity = contact_arrays.response, contact_arrays.body_velocity
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        k = first_row + stride * i
        _contact_velocity(rows, contact, contact_body, body_velocity, NOW, i, k, U)
        n0, p1, p2 = contact[i, NORMAL_IMPULSE], contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
        A = OWN_RESPONSE
        beta = contact[i, TANGENT_BETA]
        rho = 1.0 / (contact[i, A + 4] + contact[i, A + 8] + beta)
        normal = n0 + (contact[i, NORMAL_C] - contact[i, U] - contact[i, NORMAL_BETA] * n0) / (
            contact[i, A] + contact[i, NORMAL_BETA]
        )
        normal = max(0.0, normal)
        increment = normal - n0
        s1 = p1 - rho * (contact[i, U + 1] + contact[i, A + 3] * increment + beta * p1)
        s2 = p2 - rho * (contact[i, U + 2] + contact[i, A + 6] * increment + beta * p2)
        length = sqrt(s1 * s1 + s2 * s2)
        fraction = min(1.0, contact[i, FRICTION] * normal / length) if length > 0.0 else 1.0
        s1, s2 = fraction * s1, fraction * s2
        _apply_impulse(rows, contact_body, response, body_velocity, NOW, bodies, i, k, increment, s1 - p1, s2 - p2)
        contact[i, NORMAL_IMPULSE], contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1] = normal, s1, s2


@inline
def _linear_law(contact, i, scale):
    """Return D (its five entries that may differ from 0) and p0 of contact i at its impulse and velocity."""
    n0, p1, p2 = contact[i, NORMAL_IMPULSE], contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
    rho_n, rho_t = _rho(contact, i, scale)
    c, beta_n, beta = contact[i, NORMAL_C], contact[i, NORMAL_BETA], contact[i, TANGENT_BETA]
    if n0 - rho_n * (contact[i, U] - c + beta_n * n0) <= 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s1 = p1 - rho_t * (contact[i, U + 1] + beta * p1)
    s2 = p2 - rho_t * (contact[i, U + 2] + beta * p2)
    length, mu = sqrt(s1 * s1 + s2 * s2), contact[i, FRICTION]
    radius = mu * max(n0, 0.0)
    if length <= radius and mu > 0.0:
        return 1.0 / beta_n, 0.0, 0.0, 1.0 / beta, 0.0, 1.0 / beta
    if length == 0.0:
        return 1.0 / beta_n, 0.0, 0.0, 0.0, 0.0, 0.0
    d1, d2, q = s1 / length, s2 / length, radius / length
    kappa = q * rho_t / (1.0 - q * (1.0 - rho_t * beta))
    return 1.0 / beta_n, mu * d1 / beta_n, mu * d2 / beta_n, kappa * d2 * d2, -kappa * d1 * d2, kappa * d1 * d1


@inline
def _newton_system(rows, contact_arrays, bodies, first_row, stride, scale):
    """Write 1 + K S and, as its last column, J^T (p0 - D drift) - K v0, with K = J^T D J."""
    contact, contact_body, response = contact_arrays.contact, contact_arrays.contact_body, contact_arrays.response
    system, stiffness, velocity = contact_arrays.system, contact_arrays.stiffness, contact_arrays.body_velocity
    size = 6 * bodies
    stiffness[:size, :size] = 0.0
    system[:size, : size + 1] = 0.0
    for r in range(size):
        system[r, r] = 1.0
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        k = first_row + stride * i
        d0, d1, d2, d11, d12, d22 = _linear_law(contact, i, scale)
        if d0 == 0.0:
            continue
        w1, w2 = rows.offset[k + 1], rows.offset[k + 2]
        toward = contact[i, NORMAL_C] - rows.offset[k]
        q0, q1, q2 = d0 * toward, d1 * toward - d11 * w1 - d12 * w2, d2 * toward - d12 * w1 - d22 * w2
        for side in range(2):
            a = contact_body[i, LOCAL_A + side]
            if a < 0:
                continue
            e, f, g = rows.first[k] + side, rows.first[k + 1] + side, rows.first[k + 2] + side
            for n in range(6):
                j0, j1, j2 = rows.jacobian[e, n], rows.jacobian[f, n], rows.jacobian[g, n]
                along = d0 * j0 + d1 * j1 + d2 * j2
                first, second = d11 * j1 + d12 * j2, d12 * j1 + d22 * j2
                system[6 * a + n, size] += q0 * j0 + q1 * j1 + q2 * j2
                for other in range(2):
                    b = contact_body[i, LOCAL_A + other]
                    if b < 0:
                        continue
                    x, y, z = rows.first[k] + other, rows.first[k + 1] + other, rows.first[k + 2] + other
                    for m in range(6):
                        stiffness[6 * a + n, 6 * b + m] += (
                            along * rows.jacobian[x, m] + first * rows.jacobian[y, m] + second * rows.jacobian[z, m]
                        )
    for r in range(size):
        for c in range(size):
            weight = stiffness[r, c]
            if weight != 0.0:
                system[r, size] -= weight * velocity[c, FREE]
                for n in range(size):
                    system[r, n] += weight * response[c, n]


@inline
def _solve_dense(matrix, size):
    """Solve by Gaussian elimination with row pivoting; the right side is column `size` and becomes the solution."""
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
            multiplier = matrix[b, a] / pivot
            if multiplier != 0.0:
                for n in range(a + 1, size + 1):
                    matrix[b, n] -= multiplier * matrix[a, n]
    for index in range(size):
        a = size - 1 - index
        s = matrix[a, size]
        for b in range(a + 1, size):
            s -= matrix[a, b] * matrix[b, size]
        matrix[a, size] = s / (matrix[a, a] if matrix[a, a] != 0.0 else 1e-12)


@inline
def _next_impulses(rows, contact, contact_body, body_velocity, contact_count, first_row, stride, scale):
    """Write impulses and velocities of the contacts after a full Newton step."""
    for i in range(contact_count):
        _contact_velocity(rows, contact, contact_body, body_velocity, NEXT, i, first_row + stride * i, NEXT_U)
        d0, d1, d2, d11, d12, d22 = _linear_law(contact, i, scale)
        toward = contact[i, NORMAL_C] - contact[i, NEXT_U]
        u1, u2 = contact[i, NEXT_U + 1], contact[i, NEXT_U + 2]
        contact[i, NEXT_IMPULSE] = d0 * toward
        contact[i, NEXT_IMPULSE + 1] = d1 * toward - d11 * u1 - d12 * u2
        contact[i, NEXT_IMPULSE + 2] = d2 * toward - d12 * u1 - d22 * u2


@kernel_function
def solve_coulomb_law(work, first_row, stride, bodies, tolerance):
    """Solve the law for impulses (NORMAL_IMPULSE, TANGENT_IMPULSE) and velocities (U); return True if converged."""
    rows, contact_arrays = load_shared(work.rows, work.contact_arrays)
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    contact_count = contact_arrays.count[CONTACTS_NOW]
    response, system, body_velocity = contact_arrays.response, contact_arrays.system, contact_arrays.body_velocity
    size = 6 * bodies
    for i in range(contact_count):
        _own_response(rows, contact, contact_body, response, i, first_row + stride * i)
    rho_index, steps_with_rho, stalled = 0, 0, True
    for step in range(MAX_NEWTON_STEPS):
        scale = RHO_SCALES[rho_index % 3]
        if stalled:
            # recompute the bodies' velocities from the impulses
            for r in range(size):
                body_velocity[r, NOW] = body_velocity[r, FREE]
            for i in range(contact_count):
                n0, p1, p2 = contact[i, NORMAL_IMPULSE], contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
                k = first_row + stride * i
                _apply_impulse(rows, contact_body, response, body_velocity, NOW, bodies, i, k, n0, p1, p2)
            if step > 0:
                for _ in range(GAUSS_SEIDEL_SWEEPS):
                    _gauss_seidel_sweep(rows, contact_arrays, bodies, first_row, stride)
            for i in range(contact_count):
                _contact_velocity(rows, contact, contact_body, body_velocity, NOW, i, first_row + stride * i, U)
            stalled, steps_with_rho = False, 0
        defect, _ = _law_defect(contact, contact_count, NEXT_IMPULSE, NEXT_U, 0.0, 1.0)
        if defect <= tolerance:
            return True
        _, total = _law_defect(contact, contact_count, NEXT_IMPULSE, NEXT_U, 0.0, scale)
        _newton_system(rows, contact_arrays, bodies, first_row, stride, scale)
        _solve_dense(system, size)
        for r in range(size):
            body_velocity[r, NEXT] = body_velocity[r, FREE]
            for c in range(size):
                body_velocity[r, NEXT] += response[r, c] * system[c, size]
        _next_impulses(rows, contact, contact_body, body_velocity, contact_count, first_row, stride, scale)
        fraction, trial_total = 1.0, 0.0
        for _ in range(MAX_HALVINGS):
            _, trial_total = _law_defect(contact, contact_count, NEXT_IMPULSE, NEXT_U, fraction, scale)
            if trial_total < total * (1.0 - SUFFICIENT_DECREASE * fraction):
                break
            fraction *= 0.5
        if trial_total < total * (1.0 - SUFFICIENT_DECREASE * fraction):
            for i in range(contact_count):
                contact[i, NORMAL_IMPULSE] += fraction * (contact[i, NEXT_IMPULSE] - contact[i, NORMAL_IMPULSE])
                for n in range(2):
                    change = contact[i, NEXT_IMPULSE + 1 + n] - contact[i, TANGENT_IMPULSE + n]
                    contact[i, TANGENT_IMPULSE + n] += fraction * change
                for n in range(3):
                    contact[i, U + n] += fraction * (contact[i, NEXT_U + n] - contact[i, U + n])
            steps_with_rho += 1
            stalled = steps_with_rho == STEPS_PER_RHO
        else:
            stalled = True
        if stalled:
            rho_index += 1
    return False


solve_coulomb_law_by_pointer = by_pointer(solve_coulomb_law)


@inline
def _restore_laws(rows, node, mark, value, contact, contact_body, contact_count, first_row, stride):
    """Restore the contacts' laws: bounds, directions and pieces from their impulses and slip velocities."""
    for i in range(contact_count):
        k = first_row + stride * i
        one_sided_law(rows, k, contact[i, NORMAL_C], contact[i, NORMAL_BETA])
        normal = max(contact[i, NORMAL_IMPULSE], 0.0)
        p1, p2 = contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
        bound = contact[i, FRICTION] * normal
        force = sqrt(p1 * p1 + p2 * p2)
        slides = force >= 0.999999 * bound
        contact[i, NORMAL_OF_BOUND], contact[i, BOUND] = normal, bound
        stuck = contact[i, TANGENT_BETA]
        slip = sqrt(contact[i, U + 1] ** 2 + contact[i, U + 2] ** 2)
        contact[i, SLIP_BETA] = max(stuck, slip / bound) if slides and bound > 0.0 else stuck
        if force > 0.0:
            rotate_tangent(contact, i, p1, p2)
        put_tangents(rows, contact, contact_body, i, k + 1)
        mark[k, ACTIVE_PIECE] = 0 if normal > 0.0 else 1
        mark[k + 1, ACTIVE_PIECE] = 0 if slides else 1
        mark[k + 2, ACTIVE_PIECE] = 1
        value[k, IMPULSE], value[k + 1, IMPULSE], value[k + 2, IMPULSE] = normal, force, 0.0
        for n in range(3):
            use_piece(rows, mark, value, k + n, mark[k + n, ACTIVE_PIECE])
        mark_dirty(node, contact_body, i)

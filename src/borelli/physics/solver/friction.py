"""Coulomb friction: bounds that follow the normal impulses, with a circular friction disc.

For given bounds R = mu N the step is convex. Repeated solves find R from the normal impulses of the last solve and the
directions in which the disc |p_t| <= R is approximated. A contact obeys Coulomb's law where

    p_t = projection on the disc of s,      s = p_t - rho (u_t + beta p_t)

for any rho > 0 (Alart and Curnier 1991; here rho is the effective mass of the contact, beta the softness of sticking).
Its first tangent is laid along s. Inside the disc it sticks. Outside, it slides: the first tangent is at its bound, and
the derivative of the projection across it gives the second tangent a slope (|s| - R)/(R rho), which for a steady slide
is |u_t|/R. So the iteration is Newton's method on the disc's own law, without preferred axis or corners; and where
force and slip differ in direction, s lies between them, so that contacts do not alternate between stick and slip.

The normal impulses are only a fixed point, N(x) = x with bounds R = mu x. Iterating x <- N(x) converges in one to three
solves in most steps, and oscillates forever where friction lifts the body it acts on (a toe on its hinge):
`coulomb_newton` then solves for normals and tangents of all contacts together.
A step that ends early is still a valid solution of the rows, with bounds from slightly different normal impulses.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import (
    BODY_A,
    BOUND,
    CONTACTS_NOW,
    FRICTION,
    NORMAL_IMPULSE,
    NORMAL_OF_BOUND,
    RHO,
    ROLLING,
    SLIP_BETA,
    TANGENT,
    TANGENT_BETA,
    TANGENT_IMPULSE,
    put_tangents,
    second_tangent,
    set_rolling,
    set_tangent,
)
from borelli.physics.solver.elimination_order import DIRTY, POSITION
from borelli.physics.solver.factor_arrays import ABSENT, ACTIVE_PIECE, IMPULSE, KIND, SOLUTION, use_piece
from borelli.physics.solver.iterative_refinement import row_response, row_velocity

ALIGN_FRACTION = 0.9
"""Fraction of the bound beyond which the tangent of a sticking contact is aligned with its impulse."""


@kernel_function
def friction_defect(work, first_row, stride):
    """Return the largest impulse defect of the contacts' laws after the last solve, relative to the largest bound.

    Defects of normals count relative to the largest normal impulse, as does the largest change of rolling friction.
    Stores for each contact s (TANGENT_IMPULSE, along the two tangents) and rho for `update_friction`.
    """
    rows, graph, factor, contact_arrays = load_shared(work.rows, work.graph, work.factor, work.contact_arrays)
    contact = contact_arrays.contact
    node, block, value = graph.node, factor.block, factor.value
    largest_bound, tangent_defect, largest_normal, normal_defect = 1e-300, 0.0, 1e-300, 0.0
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        k = first_row + stride * i
        mu, p = contact[i, FRICTION], value[k, IMPULSE]
        normal = max(p, 0.0)
        contact[i, NORMAL_IMPULSE] = normal
        largest_bound = max(largest_bound, mu * normal)
        largest_normal = max(largest_normal, normal)
        rho = 1.0 / row_response(rows, node, block, k)
        above = row_velocity(rows, node, block, SOLUTION, k) - rows.c[k, 0] + rows.beta[k, 0] * p
        normal_defect = max(normal_defect, abs(p - max(p - rho * above, 0.0)))
        if contact[i, ROLLING] > 0.0:
            normal_defect = max(normal_defect, abs(normal - contact[i, NORMAL_OF_BOUND]))
        if mu == 0.0:
            continue
        rho = 1.0 / row_response(rows, node, block, k + 1)
        p1, p2 = value[k + 1, IMPULSE], value[k + 2, IMPULSE]
        beta = contact[i, TANGENT_BETA]
        slip1 = rho * (row_velocity(rows, node, block, SOLUTION, k + 1) + beta * p1)
        slip2 = rho * (row_velocity(rows, node, block, SOLUTION, k + 2) + beta * p2)
        s1, s2 = p1 - slip1, p2 - slip2
        length = sqrt(s1 * s1 + s2 * s2)
        fraction = min(1.0, mu * normal / length) if length > 0.0 else 1.0
        d1, d2 = p1 - fraction * s1, p2 - fraction * s2
        # an impulse in a corner of the square is projected to the disc before the slip is computed
        force = sqrt(p1 * p1 + p2 * p2)
        fraction = min(1.0, contact[i, BOUND] / force) if force > 0.0 else 1.0
        contact[i, RHO] = rho
        contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1] = fraction * p1 - slip1, fraction * p2 - slip2
        tangent_defect = max(tangent_defect, sqrt(d1 * d1 + d2 * d2))
    return max(tangent_defect / largest_bound, normal_defect / largest_normal)


friction_defect_by_pointer = by_pointer(friction_defect)


@inline
def rotate_tangent(contact, i, s1, s2):
    """Align the first tangent of contact i with the components (s1, s2) along the two present ones."""
    ax, ay, az = contact[i, TANGENT], contact[i, TANGENT + 1], contact[i, TANGENT + 2]
    bx, by, bz = second_tangent(contact, i)
    set_tangent(contact, i, s1 * ax + s2 * bx, s1 * ay + s2 * by, s1 * az + s2 * bz)


@inline
def mark_dirty(node, contact_body, i):
    """Mark the bodies of contact i for factorization."""
    for side in range(2):
        body = contact_body[i, BODY_A + side]
        if body >= 0:
            node[node[body, POSITION], DIRTY] = 1


@kernel_function
def update_friction(work, first_row, stride, fraction):
    """Update directions from the last solve, and move bounds `fraction` of the way to its normal impulses."""
    rows, graph, factor, contact_arrays = load_shared(work.rows, work.graph, work.factor, work.contact_arrays)
    contact, contact_body = contact_arrays.contact, contact_arrays.contact_body
    node, mark, value = graph.node, factor.mark, factor.value
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        k = first_row + stride * i
        if contact[i, FRICTION] == 0.0 and contact[i, ROLLING] == 0.0:
            continue
        contact[i, NORMAL_OF_BOUND] += fraction * (contact[i, NORMAL_IMPULSE] - contact[i, NORMAL_OF_BOUND])
        bound = contact[i, FRICTION] * contact[i, NORMAL_OF_BOUND]
        contact[i, BOUND] = bound
        contact[i, SLIP_BETA] = contact[i, TANGENT_BETA]
        s1, s2 = contact[i, TANGENT_IMPULSE], contact[i, TANGENT_IMPULSE + 1]
        length = sqrt(s1 * s1 + s2 * s2)
        if length > ALIGN_FRACTION * bound and length > 0.0:
            rotate_tangent(contact, i, s1, s2)
            if length > bound > 0.0:
                contact[i, SLIP_BETA] = max(contact[i, TANGENT_BETA], (length - bound) / (bound * contact[i, RHO]))
        put_tangents(rows, contact, contact_body, i, k + 1)
        if contact[i, ROLLING] > 0.0:
            set_rolling(rows, contact, i, k + 3, contact[i, NORMAL_OF_BOUND])
        for n in range(1, stride):
            if mark[k + n, KIND] != ABSENT:
                use_piece(rows, mark, value, k + n, mark[k + n, ACTIVE_PIECE])
        mark_dirty(node, contact_body, i)


update_friction_by_pointer = by_pointer(update_friction)

"""Solution of contact forces at the soles that supply the required wrench of a motion.

Per frame, with forces f_p of the points, each within its friction cone, and c_p the confidence of contact,

    minimize |D (W - W(f))|^2 + |tau - tau(f)|^2 + sum (rho / c_p^2) |f_p|^2

The wrench must fit, joint torques should be small, and points with little confidence are costly. The last term makes
the solution unique, and as continuous in time as the motion and its contacts are.
"""

from __future__ import annotations

import numpy as np

from borelli.analysis.ground.required_wrench import RequiredWrench
from borelli.analysis.tree_kernels.friction_cone_forces import make_buffers, solve_cone_forces
from borelli.numerics.vectors import Array

FORCE_COST = 0.25
"""Rho: cost of 1 N at a point of full confidence, relative to 1 N m of joint torque, both squared."""
TANGENT_UNIT = 0.8
"""1 N along the ground costs as much as 1 N / TANGENT_UNIT upward."""
MIN_CONTACT = 1e-3
"""Confidence below which a point has no force."""


def solve_contact_forces(required: RequiredWrench, contact: Array, friction: float) -> tuple[Array, Array]:
    """Return the forces (frames, points, 3) [N] of the points, and the remaining requirement (frames, rows)."""
    frames, count = contact.shape
    units = np.array([TANGENT_UNIT, TANGENT_UNIT, 1.0])  # in these units all directions cost alike
    rows = required.rows.reshape(frames, -1, 3 * count) * np.tile(units, count)
    ridge = FORCE_COST / np.maximum(contact, 1e-9) ** 2
    force, steps = np.empty((frames, count, 3)), np.empty(frames, np.int64)
    max_ridge, buffers = FORCE_COST / MIN_CONTACT**2, make_buffers(rows.shape[1])
    solve_cone_forces(rows, required.need, ridge, max_ridge, friction / TANGENT_UNIT, buffers, force, steps)
    left = required.need - (rows @ force.reshape(frames, -1, 1))[..., 0]
    return force * units, left

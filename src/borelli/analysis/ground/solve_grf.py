"""Support: the pushes of the soles that give a motion the wrench it needs.

Per frame, with forces f_p of the points, each within its friction cone, and c_p how surely a point stands,

    minimize |D (W - W(f))|^2 + |tau - tau(f)|^2 + sum (rho / c_p^2) |f_p|^2

The wrench must fit, joint torques should be small, and points that hardly touch are dear. The last term makes the
answer the only one, and as continuous in time as the motion and its contacts are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.ground.required_wrench import Rows
from borelli.analysis.tree_kernels.friction_cone_forces import make_buffers, solve_cone_forces

Array = NDArray[np.float64]

RELUCTANCE = 0.25
"""Rho: what 1 N of a surely standing point costs, against 1 N m of joint torque, both squared."""
SLANT = 0.8
"""1 N along the ground costs as much as 1 N / SLANT upward."""
LEAST_CONTACT = 1e-3
"""Points that stand less surely bear nothing."""


def solve_support(rows: Rows, contact: Array, friction: float) -> tuple[Array, Array]:
    """Forces (frames, points, 3) [N] of the points, and how much (frames, rows) of what is needed is left."""
    frames, count = contact.shape
    cheap = np.array([SLANT, SLANT, 1.0])  # forces are counted in units in which all directions cost alike
    does = rows.rows.reshape(frames, -1, 3 * count) * np.tile(cheap, count)
    ridge = RELUCTANCE / np.maximum(contact, 1e-9) ** 2
    force, steps = np.empty((frames, count, 3)), np.empty(frames, np.int64)
    solve_cone_forces(
        does, rows.need, ridge, RELUCTANCE / LEAST_CONTACT**2, friction / SLANT, make_buffers(does.shape[1]), force,
        steps,
    )
    left = rows.need - (does @ force.reshape(frames, -1, 1))[..., 0]
    return force * cheap, left

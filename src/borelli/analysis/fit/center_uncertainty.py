"""Uncertainty of joint centers relative to the measured markers.

A joint center is a parameter on its parent body, but where that body lies in its markers is a matter of the fit too.
What a user compares with an image or a landmark is the center in the lab, c(q(p), p), with the poses q at their minimum
energy for the parameters p:

    dc/dp = (rotations of the parents of this joint and of those before it on its path) - dc/dq (H_qq^-1 H_qp)

Its covariance is that of p, transformed; it is averaged over frames in the axes of the parent body.
"""

from __future__ import annotations

import numpy as np

from borelli.analysis.fit.derivatives import FrameGroup
from borelli.analysis.fit.least_squares import FitSolution
from borelli.analysis.fit.parameters import FitParameters
from borelli.analysis.tree_kernels.marker_energy import Points
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.numerics.vectors import Array

MAX_FRAMES = 8
"""Frames over which the covariance is averaged."""
STEP = 1e-6
"""[rad or m] Step of central differences of centers by coordinates, whose error is then 1e-10 m."""


def center_sensitivity(parameters: FitParameters, solution: FitSolution) -> Array:
    """Return the derivatives (joints, 3, parameters) of joint centers in the lab, in the axes of their parent bodies.

    They are averaged over frames of the motion.
    """
    fitted = [group for group in solution.groups if group.fitted]
    group, response = fitted[0], solution.derivatives.pose_response[: len(fitted[0].q)]
    frames = np.unique(np.linspace(0, len(group.q) - 1, MAX_FRAMES).astype(int))
    by_coordinate, rotation = _coordinate_jacobian(parameters, group, frames)
    total = -np.einsum("fjiv,fvp->fjip", by_coordinate, response[frames])
    index = {joint.child: i for i, joint in enumerate(parameters.joints)}
    for j in range(len(parameters.joints)):
        i: int | None = j
        while i is not None:  # a joint center moves all that is distal to it
            total[:, j, :, 3 * i : 3 * i + 3] += rotation[:, i]
            i = index.get(parameters.joints[i].parent)
    return np.asarray(np.einsum("fjki,fjkp->jip", rotation, total) / len(frames))


def center_covariance(parameters: FitParameters, solution: FitSolution) -> Array:
    """Return the covariance (joints, 3, 3) [m^2] of joint centers in the axes of their parent bodies."""
    slope = center_sensitivity(parameters, solution)
    return np.asarray(slope @ solution.covariance @ slope.transpose(0, 2, 1))


def _coordinate_jacobian(parameters: FitParameters, group: FrameGroup, frames: Array) -> tuple[Array, Array]:
    """Return dc/dq (frames, joints, 3, variables) and rotations (frames, joints, 3, 3) of the parent bodies."""
    problem = group.problem
    model, free = problem.model, problem.tree.free
    index = {body.name: i for i, body in enumerate(model.bodies)}
    body = np.array([index[joint.parent] for joint in parameters.joints], dtype=np.int64)
    centers = {joint.name: joint.parent_frame.position for joint in model.joints}
    points = Points(body, np.array([centers[joint.name] for joint in parameters.joints], dtype=float))
    steps = np.zeros((2, len(free), len(model.coordinates)))
    steps[0, np.arange(len(free)), free] = STEP
    steps[1] = -steps[0]
    q = group.q[frames][:, None, None] + steps  # (frames, 2, variables, coordinates)
    _, _, moved = find_body_poses(problem.tree, points, q.reshape(-1, q.shape[-1]).copy())
    moved = moved.reshape(*q.shape[:3], len(body), 3)
    jacobian = (moved[:, 0] - moved[:, 1]) / (2.0 * STEP)
    _, rotation, _ = find_body_poses(problem.tree, points, group.q[frames].copy())
    return jacobian.transpose(0, 2, 3, 1), rotation[:, body]

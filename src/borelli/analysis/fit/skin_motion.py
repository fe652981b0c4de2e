"""Covariance of fit parameters in the presence of skin motion.

The fit weighs frames as if marker errors were independent. They are not: the skin of a segment moves as a whole, in
step with the motion, and the same in every stride (Barre et al. 2017), which no number of frames averages out. With the
Gauss-Newton Hessian H = P + D of prior and data, the estimate errs by

    dp = H^-1 (P e_prior + sum_f w_f k J_f^T e_f)

for errors e_prior of the prior and e_f of the markers in frame f, where J_f is the Jacobian of the markers by the
parameters, poses eliminated. Its covariance is

    H^-1 (P + white noise + sum of skin modes) H^-1      [sd of a marker = 1]

A skin mode is a rigid displacement of all markers of one segment (three translations, three rotations), times one of
the leading principal components of the poses in time: the patterns of the motion itself, so that a slide in step with
hip flexion is among them whatever the movement.
"""

from __future__ import annotations

import numpy as np

from borelli.analysis.fit.anatomical_ties import shared_errors
from borelli.analysis.fit.derivatives import NOISE_ENERGY, FitDerivatives, FrameGroup
from borelli.analysis.fit.parameters import MARKER_SD, FitParameters
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS
from borelli.analysis.motion import root_columns
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.analysis.tree_kernels.schur_complement import solve_positive
from borelli.numerics.vectors import Array

PATTERNS = 4
"""Principal components in time: of a walk, sine and cosine of one and of two cycles per stride."""
SKIN_MOTION = {"thigh": (0.008, 0.07), "upper_arm": (0.008, 0.07)}
OTHER_SKIN_MOTION = (0.004, 0.035)
"""[m], [rad] RMS displacement and rotation of skin by segment, and of other segments: 8 to 10 mm and 3 to 4 degrees on
thighs, half of it on shanks (Benoit et al. 2006, Barre et al. 2017).
"""
STEP = 1e-6
"""[rad or m] of central differences of markers by coordinates."""


def parameter_covariance(
    parameters: FitParameters, p: Array, derivatives: FitDerivatives, groups: list[FrameGroup]
) -> Array:
    """Return the covariance (parameters, parameters) [m^2] of a fit to groups of frames."""
    n = len(derivatives.matrix)
    inverse = np.eye(n)
    solve_positive(derivatives.matrix.copy(), inverse)
    data, modes, first = np.zeros((n, n)), [], 0
    for group in groups:
        response = derivatives.pose_response[first : first + len(group.q)]
        first += len(group.q)
        slope, rotation = _marker_jacobian(parameters, group, response)
        visible = group.problem.weight > 0.0
        slope *= visible[:, :, None, None]
        flat = slope.reshape(-1, n)
        squares = (group.weight * MARKER_STIFFNESS) * (flat.T @ flat)
        data += squares
        modes.append((group.weight * squares, group, slope, rotation))
    information = derivatives.matrix - data + MARKER_STIFFNESS * shared_errors(parameters.ties, p, MARKER_SD)
    for white, group, slope, rotation in modes:
        information += white
        skin = group.weight * MARKER_STIFFNESS * _skin_modes(parameters, group, slope, rotation)
        information += skin @ skin.T / (MARKER_STIFFNESS * MARKER_SD**2)
    return np.asarray(NOISE_ENERGY * inverse @ information @ inverse)


def _skin_modes(parameters: FitParameters, group: FrameGroup, slope: Array, rotation: Array) -> Array:
    """Return the sums over frames (parameters, modes) of J^T times the displacements [m] of each skin mode."""
    index = {body.name: i for i, body in enumerate(parameters.model.bodies)}
    markers = parameters.model.markers
    patterns = _patterns(group)
    result = []
    for body in dict.fromkeys(marker.body for marker in markers if marker.body in index):
        own = [m for m, marker in enumerate(markers) if marker.body == body]
        local = skin_displacements(body, np.array([markers[m].position for m in own])) / np.sqrt(len(patterns))
        world = np.einsum("fik,cmk->cfmi", rotation[:, index[body]], local)
        moved = patterns[:, None, :, None, None] * world
        size = world[0].size
        result.append((moved.reshape(-1, size) @ slope[:, own].reshape(size, -1)).T)
    return np.concatenate(result, axis=1)


def skin_displacements(body: str, position: Array) -> Array:
    """Return the displacements (6, markers, 3) [m] of a body's markers by each rigid motion of its skin, of RMS size.

    These are three translations, then three rotations about the middle of the markers, in the axes of the body.
    """
    slide, turn = SKIN_MOTION.get(body[:-2], OTHER_SKIN_MOTION)
    lever = np.cross(np.eye(3)[:, None], (position - position.mean(axis=0))[None])
    return np.concatenate([slide * np.broadcast_to(np.eye(3)[:, None], lever.shape), turn * lever])


def _patterns(group: FrameGroup) -> Array:
    """Return the leading principal components (patterns, frames) of the poses in time, each of RMS 1.

    One frame, such as a static trial, has the same displacement throughout.
    """
    count = len(group.q)
    if count <= PATTERNS:
        return np.ones((1, count))
    own = np.setdiff1d(np.arange(group.q.shape[1]), root_columns(group.problem.model)[:3])
    left, _, _ = np.linalg.svd(group.q[:, own] - group.q[:, own].mean(axis=0), full_matrices=False)
    return np.asarray(np.sqrt(count) * left[:, :PATTERNS].T)


def _marker_jacobian(parameters: FitParameters, group: FrameGroup, response: Array) -> tuple[Array, Array]:
    """Return the derivatives (frames, markers, 3, parameters) of markers, poses eliminated, and rotations of bodies."""
    problem = group.problem
    tree, points, free = problem.tree, problem.points, problem.tree.free
    steps = np.zeros((2, len(free), group.q.shape[1]))
    steps[0, np.arange(len(free)), free] = STEP
    steps[1] = -steps[0]
    q = group.q[:, None, None] + steps  # (frames, 2, variables, coordinates)
    _, _, moved = find_body_poses(tree, points, q.reshape(-1, q.shape[-1]).copy())
    moved = moved.reshape(*q.shape[:3], -1, 3)
    by_pose = ((moved[:, 0] - moved[:, 1]) / (2.0 * STEP)).transpose(0, 2, 3, 1)
    _, rotation, _ = find_body_poses(tree, points, group.q.copy())
    result = -np.einsum("fmiv,fvp->fmip", by_pose, response, optimize=True)
    body, moves = parameters.moved_markers
    for i, (b, which) in enumerate(zip(body, moves, strict=True)):
        turned = rotation[:, b] if b >= 0 else np.broadcast_to(np.eye(3), (len(group.q), 3, 3))
        result[:, which, :, 3 * i : 3 * i + 3] += turned[:, None]
    return result, rotation

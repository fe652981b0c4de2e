"""First and second derivatives of the fit, poses eliminated (see `tree_kernels.schur_complement`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from borelli.analysis.fit.parameters import MARKER_SD, FitParameters
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, IkProblem
from borelli.analysis.tree_kernels.schur_complement import (
    SharedPositions,
    eliminate_poses,
    make_buffers,
)
from borelli.kernels.shared_tuples import SharedTuple
from borelli.numerics.vectors import Array


@dataclass(frozen=True)
class FrameGroup:
    """Frames of one recording and their poses."""

    problem: IkProblem
    q: Array
    """(frames, coordinates)"""
    fitted: bool = True
    """False: held out."""
    energy: Array = field(default_factory=lambda: np.zeros(0))
    """(frames,) of each pose [J]."""
    weight: float = 1.0
    """Weight of each frame in the fit."""


@dataclass(frozen=True)
class FitDerivatives:
    """Derivatives of the energy by the parameters p and the poses q."""

    gradient: Array
    """(parameters,) [N]"""
    matrix: Array
    """(parameters, parameters) Schur complement H_pp - sum H_pq H_qq^-1 H_qp [N/m]."""
    pose_response: Array
    """(frames, variables, parameters) H_qq^-1 H_qp: the poses change by -pose_response dp."""
    pose_compliance: Array
    """(frames, variables) diagonal of H_qq^-1 [rad/(N m) or m/N]; empty if not requested."""


BOUND_STIFFNESS = 1e9
"""[N m/rad or N/m] of a coordinate at a joint limit, which does not respond to parameters."""
NOISE_ENERGY = MARKER_STIFFNESS * MARKER_SD**2
"""[J] Twice the energy of a marker spring stretched by its standard deviation: covariance is this times H^-1."""


def differentiate(
    parameters: FitParameters, p: Array, groups: Sequence[FrameGroup], *, exact: bool, uncertainty: bool = False
) -> FitDerivatives | None:
    """Return first and second derivatives by p; None if the exact Hessian is not positive definite.

    Poses of the groups are at their minimum energy. The Hessian is exact, or else that of Gauss-Newton, which is always
    positive definite. `uncertainty` adds `pose_compliance`, without joint limits, which are not evidence for a pose.
    """
    _, prior_gradient, prior_matrix = parameters.prior(p)
    gradient, matrix = MARKER_STIFFNESS * prior_gradient, MARKER_STIFFNESS * prior_matrix
    body, moved = parameters.moved_markers
    places = SharedPositions(body, moved.astype(np.uint8))
    responses, compliances = [], []
    for group in groups:
        if not group.fitted:
            continue
        problem, frames = group.problem, len(group.q)
        springs = problem.rest_springs
        stiffness = inf if uncertainty else BOUND_STIFFNESS
        springs = springs._replace(limit_stiffness=np.full(len(springs.limit_stiffness), stiffness))
        variables = len(problem.tree.free)
        response = np.empty((frames, variables, len(p)))
        compliance = np.empty((frames if uncertainty else 0, variables))
        room = SharedTuple(make_buffers(problem.tree, problem.points, springs, places))
        own_gradient, own_matrix = np.zeros_like(gradient), np.zeros_like(matrix)
        if not eliminate_poses(
            room, problem.rest, problem.target, problem.weight, _past_limits(problem, group.q), exact, own_gradient,
            own_matrix, response, compliance,
        ):  # fmt: skip
            return None
        gradient += group.weight * own_gradient
        matrix += group.weight * own_matrix
        responses.append(response)
        compliances.append(compliance)
    lower = np.tril(matrix)
    symmetric = lower + np.tril(lower, -1).T
    return FitDerivatives(gradient, symmetric, np.concatenate(responses), np.concatenate(compliances))


def _past_limits(problem: IkProblem, q: Array) -> Array:
    """Return poses with coordinates at a joint limit beyond it by rounding, where its stiffness acts."""
    free, springs = problem.tree.free, problem.rest_springs
    x, result = q[:, free], q.copy()
    x = np.where(x <= springs.lower, np.nextafter(springs.lower, -inf), x)
    result[:, free] = np.where(x >= springs.upper, np.nextafter(springs.upper, inf), x)
    return result

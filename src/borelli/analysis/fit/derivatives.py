"""First and second derivatives of the fit, poses eliminated (see `tree_kernels.schur_complement`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.parameters import MARKER_SD, Unknowns
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, IkProblem
from borelli.analysis.tree_kernels.schur_complement import (
    SharedPositions,
    eliminate_poses,
    make_buffers,
    solve_positive,
)
from borelli.kernels.shared_tuples import SharedTuple

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Frames of one recording: the problem that holds them, and their poses."""

    problem: IkProblem
    q: Array
    """(frames, coordinates)"""
    fitted: bool = True
    """False: held out."""
    energy: Array = field(default_factory=lambda: np.zeros(0))
    """(frames,) [J] of each pose."""


@dataclass(frozen=True)
class Derivatives:
    """Of the energy by p and by the poses."""

    gradient: Array
    """(unknowns,) [N]"""
    matrix: Array
    """(unknowns, unknowns) [N/m] H_pp - sum H_pq H_qq^-1 H_qp."""
    follow: Array
    """(frames, variables, unknowns) H_qq^-1 H_qp: a pose follows p by this with opposite sign."""
    spread: Array
    """(frames, variables) the diagonal of H_qq^-1 [rad/(N m) or m/N]; empty if it was not asked for."""

    @property
    def covariance(self) -> Array:
        """(unknowns, unknowns) of p given the recordings [m^2]."""
        result = np.eye(len(self.matrix))
        solve_positive(self.matrix.copy(), result)
        return VARIANCE * result


VARIANCE = MARKER_STIFFNESS * MARKER_SD**2
"""[J] The energy that stands for a probability of exp(-1): a marker's energy when it is off by its deviation, twice."""


def differentiate(
    unknowns: Unknowns, p: Array, groups: Sequence[Group], *, exact: bool, spread: bool = False
) -> Derivatives | None:
    """First and second derivative by p; None: Newton's second derivative is not positive.

    Args:
        unknowns: What p means.
        p: (unknowns,)
        groups: Their poses are at their least energy.
        exact: Newton's second derivative rather than Gauss and Newton's, which is always positive.
        spread: To judge what is known: poses' own spread is found, and stops that hold a pose are no knowledge of it.
    """
    _, known, matrix = unknowns.known(p)
    gradient, matrix = MARKER_STIFFNESS * known, MARKER_STIFFNESS * matrix
    body, moved = unknowns.moves
    places = SharedPositions(body, moved.astype(np.uint8))
    follow, own = [], []
    for group in groups:
        if not group.fitted:
            continue
        problem, frames = group.problem, len(group.q)
        holds = problem.rest_springs
        if spread:
            holds = holds._replace(limit_stiffness=np.full(len(holds.limit_stiffness), inf))
        variables = len(problem.tree.free)
        ahead, diagonal = np.empty((frames, variables, len(p))), np.empty((frames if spread else 0, variables))
        room = SharedTuple(make_buffers(problem.tree, problem.points, holds, places))
        if not eliminate_poses(
            room, problem.rest, problem.target, problem.weight, group.q.copy(), exact, gradient, matrix, ahead, diagonal
        ):
            return None
        follow.append(ahead)
        own.append(diagonal)
    lower = np.tril(matrix)
    both = lower + np.tril(lower, -1).T
    return Derivatives(gradient, both, np.concatenate(follow), np.concatenate(own))

"""The fit's least squares: poses of all frames, anchors and attachments at once, poses eliminated frame by frame.

    E(q_1 ... q_F, p) = sum_f [ 1/2 sum_m k |x_m(q_f, p) - y_fm|^2 + pose springs and stops ] + what is known of p

Every pose is kept at its least energy for the present p, so that the step of p is that of the Schur complement,

    (H_pp - sum_f H_pq H_qq^-1 H_qp) dp = -g_p

whose value does not depend on how poses are written down: the fit turns and shifts with the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit_derivatives import Derivatives, Group, differentiate
from borelli.analysis.fit_unknowns import Unknowns
from borelli.analysis.motion import points_of
from borelli.analysis.pose import MARKER_STIFFNESS
from borelli.analysis.pose import MOST_ITERATIONS as MOST_POSE_ITERATIONS
from borelli.reduced.eliminate import solve_positive
from borelli.reduced.pose import find_bodies, make_search, settle_frames
from borelli.reduced.tree import make_tree

Array = NDArray[np.float64]

MOST_ITERATIONS = 60
ENOUGH = 1e-7
"""A step [m] no longer than this ends the fit."""
EXACT_BELOW = 0.005
"""[m] Steps of Gauss and Newton give way to Newton's when they are no longer than this."""
MOST_DAMPING = 1e9
PATIENCE = 3
"""The fit ends when the held-out frames have been worse than they were for so many steps."""
WORSE = 0.05
"""Share by which held-out frames must be worse to count as such: the way to the answer is not quite even."""


@dataclass(frozen=True)
class Solution:
    """Where the fit came to."""

    p: Array
    groups: tuple[Group, ...]
    derivatives: Derivatives
    """Gauss and Newton's, without stops: what markers and earlier knowledge tell."""
    iterations: int
    stopped_early: bool


def solve(unknowns: Unknowns, groups: Sequence[Group]) -> Solution:
    """Anchors and attachments of least energy; the groups' poses must be near their own least."""
    p = unknowns.start.copy()
    groups, energy = _settle(unknowns, p, groups)
    best, judged = (p, groups), held_out_error(groups)
    worse, longest, iteration = 0, np.inf, 0
    while iteration < MOST_ITERATIONS and longest > ENOUGH and worse < PATIENCE:
        iteration += 1
        step, trial, tried = _step(unknowns, p, groups, energy, exact=longest < EXACT_BELOW)
        longest = float(np.abs(step).max())
        if tried > energy:
            break
        p, groups, energy = p + step, trial, tried
        error = held_out_error(groups)
        worse = worse + 1 if error > judged * (1.0 + WORSE) else 0
        if not error > judged:
            best, judged = (p, groups), error
    early = worse >= PATIENCE
    p, groups = best if early else (p, groups)
    derivatives = differentiate(unknowns, p, groups, exact=False, stops=False)
    assert derivatives is not None  # Gauss and Newton's is positive
    return Solution(p, tuple(groups), derivatives, iteration, early)


def _step(
    unknowns: Unknowns, p: Array, groups: Sequence[Group], energy: float, *, exact: bool
) -> tuple[Array, list[Group], float]:
    """A step that lowers the energy, the groups after it and their energy; as much damping as that takes."""
    d = differentiate(unknowns, p, groups, exact=exact)
    if d is None:
        return _step(unknowns, p, groups, energy, exact=False)
    damping = 0.0
    while True:
        step = -d.gradient[None]
        if not solve_positive(d.matrix + damping * np.diag(np.diag(d.matrix)), step):
            return (
                _step(unknowns, p, groups, energy, exact=False) if exact else (np.zeros_like(p), list(groups), energy)
            )
        step = step[0]
        trial, tried = _settle(unknowns, p + step, groups)
        if tried <= energy or np.abs(step).max() <= ENOUGH or damping > MOST_DAMPING:
            return step, trial, tried
        if exact:
            return _step(unknowns, p, groups, energy, exact=False)
        damping = max(10.0 * damping, 1e-3)


def _settle(unknowns: Unknowns, p: Array, groups: Sequence[Group]) -> tuple[list[Group], float]:
    """The groups with all poses at their least energy for p; the energy [J] of the fitted ones and of p itself."""
    model = unknowns.placed(p)
    tree, points = make_tree(model), points_of(model, model.markers)
    energy = MARKER_STIFFNESS * unknowns.known(p)[0]
    result = []
    for group in groups:
        problem = replace(group.problem, model=model, tree=tree, markers=model.markers, points=points)
        q = group.q.copy()
        each, count = np.zeros(len(q)), np.zeros(len(q), np.int64)
        settle_frames(
            tree, points, problem.holds, problem.rest, problem.target, problem.weight, q,
            make_search(tree, len(model.markers)), MOST_POSE_ITERATIONS, False, each, count,
        )  # fmt: skip
        energy += float(each.sum()) if group.fitted else 0.0
        result.append(replace(group, problem=problem, q=q))
    return result, energy


def marker_errors(group: Group) -> Array:
    """(frames, markers) distance [m] of each marker from where it was seen; not a number where it was not."""
    problem, q = group.problem, group.q.copy()
    frames, markers, bodies = len(q), len(problem.markers), len(problem.model.bodies)
    seen = np.empty((frames, markers, 3))
    position, turn = np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3))
    find_bodies(problem.tree, problem.points, q, make_search(problem.tree, markers), position, turn, seen)
    distance = np.linalg.norm(seen - problem.target, axis=-1)
    return np.where(group.problem.weight > 0.0, distance, np.nan)


def held_out_error(groups: Sequence[Group]) -> float:
    """Root mean square distance [m] of the markers in frames that are not fitted; not a number where there are none."""
    return rms([marker_errors(group) for group in groups if not group.fitted])


def rms(errors: Sequence[Array]) -> float:
    """Root mean square of all that are numbers."""
    every = np.concatenate([e.ravel() for e in errors]) if errors else np.zeros(0)
    every = every[np.isfinite(every)]
    return float(np.sqrt(np.mean(every**2))) if len(every) else float("nan")

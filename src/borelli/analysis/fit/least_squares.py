"""The fit's least squares: poses of all frames, joint places and attachments at once, poses eliminated frame by frame.

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

from borelli.analysis.fit.derivatives import Derivatives, Group, differentiate
from borelli.analysis.fit.parameters import Unknowns
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, IkProblem, root_coordinates
from borelli.analysis.kinematics.framewise_ik import MAX_ITERATIONS as MOST_POSE_ITERATIONS
from borelli.analysis.motion import marker_points
from borelli.analysis.tree_kernels.kinematic_tree import make_tree
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, solve_ik_frames
from borelli.analysis.tree_kernels.schur_complement import solve_positive

Array = NDArray[np.float64]

MOST_ITERATIONS = 60
ENOUGH = 1e-7
"""A step [m] no longer than this ends the fit."""
EXACT_BELOW = 0.005
"""[m] Steps of Gauss and Newton give way to Newton's when they are no longer than this."""
MOST_DAMPING = 1e9
MEND_AT = (3, 6)
"""Steps before which poses in wrong minima are sought: when the model has about the subject's size, and once more."""
CAUGHT = 8.0
"""A pose with so many times the usual energy may be in a wrong minimum."""
MOST_TRIED = 6
"""Other frames from which such a pose is tried."""
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
    """Joint places and attachments of least energy; the groups' poses must be near their own least."""
    p = unknowns.start.copy()
    groups, energy = _settle(unknowns, p, groups)
    best, judged = (p, groups), held_out_error(groups)
    worse, longest, iteration = 0, np.inf, 0
    while iteration < MOST_ITERATIONS and longest > ENOUGH and worse < PATIENCE:
        iteration += 1
        if iteration in MEND_AT:
            groups = [_mended(group) for group in groups]
            energy = _energy(unknowns, p, groups)
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
    derivatives = differentiate(unknowns, p, groups, exact=False, spread=True)
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
    tree, points = make_tree(model), marker_points(model, model.markers)
    result = []
    for group in groups:
        problem = replace(group.problem, model=model, tree=tree, markers=model.markers, points=points)
        q = group.q.copy()
        each = settle_group(problem, q)
        result.append(replace(group, problem=problem, q=q, energy=each))
    return result, _energy(unknowns, p, result)


def _energy(unknowns: Unknowns, p: Array, groups: Sequence[Group]) -> float:
    """Of all fitted poses and of p itself [J]."""
    poses = sum(float(group.energy.sum()) for group in groups if group.fitted)
    return poses + MARKER_STIFFNESS * unknowns.known(p)[0]


def _mended(group: Group) -> Group:
    """The group with poses that are caught in a wrong minimum, told by their energy, tried from those of others."""
    usual = float(np.median(group.energy))
    bad = group.energy > CAUGHT * usual
    if not bad.any() or bad.all():
        return group
    problem, good = group.problem, np.flatnonzero(~bad)
    root = {c: i for i, c in enumerate(c.name for c in problem.model.coordinates)}
    carried = [root[name] for name in root_coordinates(problem.model)]
    q, energy = group.q.copy(), group.energy.copy()
    for i in np.flatnonzero(bad):
        near = good[np.argsort(np.abs(good - i), kind="stable")][:MOST_TRIED]
        trial = np.concatenate([group.q[near], group.q[near]])
        trial[: len(near), carried] = group.q[i, carried]
        one = np.full(len(trial), i)
        each = settle_group(replace(problem, target=problem.target[one], weight=problem.weight[one]), trial)
        best = int(each.argmin())
        if each[best] < energy[i]:
            q[i], energy[i] = trial[best], each[best]
    return replace(group, q=q, energy=energy)


def settle_group(problem: IkProblem, q_inout: Array) -> Array:
    """Brings each frame's pose to its least energy in place; the energies [J]."""
    energy, count = np.zeros(len(q_inout)), np.zeros(len(q_inout), np.int64)
    solve_ik_frames(
        problem.search, problem.rest, problem.target, problem.weight, q_inout, MOST_POSE_ITERATIONS, False, energy,
        count,
    )  # fmt: skip
    return energy


def marker_errors(group: Group) -> Array:
    """(frames, markers) distance [m] of each marker from where it was seen; not a number where it was not."""
    problem, q = group.problem, group.q.copy()
    frames, markers, bodies = len(q), len(problem.markers), len(problem.model.bodies)
    seen = np.empty((frames, markers, 3))
    position, turn = np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3))
    compute_body_poses(problem.search, q, position, turn, seen)
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

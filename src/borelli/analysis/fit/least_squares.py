"""Least-squares fit of poses of all frames, joint centers and marker offsets at once, poses eliminated by frame.

    E(q_1 ... q_F, p) = sum_f [ 1/2 sum_m k |x_m(q_f, p) - y_fm|^2 + pose springs and joint limits ] + prior of p

Every pose is kept at its minimum energy for the present p, so that the step of p is that of the Schur complement,

    (H_pp - sum_f H_pq H_qq^-1 H_qp) dp = -g_p

whose value does not depend on the coordinates of the poses: the fit rotates and translates with the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from borelli.analysis.fit.derivatives import FitDerivatives, FrameGroup, differentiate
from borelli.analysis.fit.parameters import FitParameters
from borelli.analysis.fit.skin_motion import parameter_covariance
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, solve_poses
from borelli.analysis.motion import marker_points, root_columns
from borelli.analysis.tree_kernels.schur_complement import solve_positive
from borelli.errors import BorelliError
from borelli.numerics.vectors import Array
from borelli.tree.kinematic_tree import make_tree

MAX_ITERATIONS = 60
STEP_TOLERANCE = 1e-7
"""[m] A step no longer than this ends the fit."""
EXACT_BELOW = 0.005
"""[m] Steps no longer than this are followed by Newton steps with the exact Hessian."""
MAX_DAMPING = 1e9
REPAIR_STEPS = (3, 6)
"""Steps before which poses in local minima are repaired: when the model has about the subject's size, and once more."""
MAX_ENERGY_RATIO = 8.0
"""Energy, as a multiple of the median, above which a pose may be in a local minimum."""
MAX_TRIALS = 6
"""Other frames from which such a pose is tried."""
PATIENCE = 3
"""Steps with worse held-out frames after which the fit ends."""
MIN_WORSENING = 0.05
"""Fraction by which held-out frames must be worse to count as such: progress is not quite even."""


@dataclass(frozen=True)
class FitSolution:
    """Solution of the least-squares problem."""

    p: Array
    groups: tuple[FrameGroup, ...]
    derivatives: FitDerivatives
    """Of Gauss-Newton, without joint limits: the information of markers and prior."""
    covariance: Array
    """(parameters, parameters) [m^2] in the presence of skin motion."""
    iterations: int
    stopped_early: bool


def solve(parameters: FitParameters, groups: Sequence[FrameGroup]) -> FitSolution:
    """Return the parameters and poses of minimum energy; the groups' poses must be near their own minimum."""
    p = parameters.start.copy()
    groups, energy = _solve_poses(parameters, p, groups)
    best, best_error = (p, groups), held_out_error(groups)
    worse, longest, iteration = 0, np.inf, 0
    while iteration < MAX_ITERATIONS and longest > STEP_TOLERANCE and worse < PATIENCE:
        iteration += 1
        if iteration in REPAIR_STEPS:
            groups = [_leave_local_minima(group) for group in groups]
            energy = _energy(parameters, p, groups)
        step, trial, tried = _step(parameters, p, groups, energy, exact=longest < EXACT_BELOW)
        longest = float(np.abs(step).max())
        if tried > energy:
            break
        p, groups, energy = p + step, trial, tried
        error = held_out_error(groups)
        worse = worse + 1 if error > best_error * (1.0 + MIN_WORSENING) else 0
        if not error > best_error:
            best, best_error = (p, groups), error
    early = worse >= PATIENCE
    p, groups = best if early else (p, groups)
    derivatives = _gauss_newton(parameters, p, groups, uncertainty=True)
    covariance = parameter_covariance(parameters, p, derivatives, [group for group in groups if group.fitted])
    return FitSolution(p, tuple(groups), derivatives, covariance, iteration, early)


def _step(
    parameters: FitParameters, p: Array, groups: Sequence[FrameGroup], energy: float, *, exact: bool
) -> tuple[Array, list[FrameGroup], float]:
    """Return a step that lowers the energy, with as much damping as needed, the groups after it and their energy.

    Where the exact Hessian is not positive definite, or its step does not lower the energy, that of Gauss-Newton is
    used.
    """
    if exact and (newton := _newton_step(parameters, p, groups, energy)) is not None:
        return newton
    d = _gauss_newton(parameters, p, groups)
    damping = 0.0
    while True:
        step = -d.gradient[None]
        if not solve_positive(d.matrix + damping * np.diag(np.diag(d.matrix)), step):
            return np.zeros_like(p), list(groups), energy
        step = step[0]
        trial, tried = _solve_poses(parameters, p + step, groups)
        if tried <= energy or np.abs(step).max() <= STEP_TOLERANCE or damping > MAX_DAMPING:
            return step, trial, tried
        damping = max(10.0 * damping, 1e-3)


def _newton_step(
    parameters: FitParameters, p: Array, groups: Sequence[FrameGroup], energy: float
) -> tuple[Array, list[FrameGroup], float] | None:
    """Return the step of the exact Hessian as `_step` does; None if there is none or it does not lower the energy."""
    d = differentiate(parameters, p, groups, exact=True)
    if d is None:
        return None
    step = -d.gradient[None]
    if not solve_positive(d.matrix.copy(), step):
        return None
    trial, tried = _solve_poses(parameters, p + step[0], groups)
    lowers = tried <= energy or np.abs(step).max() <= STEP_TOLERANCE
    return (step[0], trial, tried) if lowers else None


def _gauss_newton(
    parameters: FitParameters, p: Array, groups: Sequence[FrameGroup], *, uncertainty: bool = False
) -> FitDerivatives:
    """Return the derivatives of Gauss-Newton, whose Hessian is positive definite unless numbers are not finite."""
    derivatives = differentiate(parameters, p, groups, exact=False, uncertainty=uncertainty)
    if derivatives is None:
        raise BorelliError(
            "The fit cannot continue: its derivatives are not finite, so that the markers determine no step. Check the "
            "markers with `borelli doctor`, or use the model without fitting (--no-fit)."
        )
    return derivatives


def _solve_poses(parameters: FitParameters, p: Array, groups: Sequence[FrameGroup]) -> tuple[list[FrameGroup], float]:
    """Return the groups with all poses at their minimum energy for p, and the energy [J] of fitted poses and prior."""
    model = parameters.model_at(p)
    tree, points = make_tree(model), marker_points(model, model.markers)
    result = []
    for group in groups:
        problem = replace(group.problem, model=model, tree=tree, markers=model.markers, points=points)
        q = group.q.copy()
        each, _ = solve_poses(problem, np.arange(len(q)), q, chained=False)
        result.append(replace(group, problem=problem, q=q, energy=each))
    return result, _energy(parameters, p, result)


def _energy(parameters: FitParameters, p: Array, groups: Sequence[FrameGroup]) -> float:
    poses = sum(group.weight * float(group.energy.sum()) for group in groups if group.fitted)
    return poses + MARKER_STIFFNESS * parameters.prior(p)[0]


def _leave_local_minima(group: FrameGroup) -> FrameGroup:
    """Return the group with poses of unusual energy solved again from those of other frames."""
    median = float(np.median(group.energy))
    bad = group.energy > MAX_ENERGY_RATIO * median
    if not bad.any() or bad.all():
        return group
    problem, good = group.problem, np.flatnonzero(~bad)
    root = root_columns(problem.model)
    q, energy = group.q.copy(), group.energy.copy()
    for i in np.flatnonzero(bad):
        near = good[np.argsort(np.abs(good - i), kind="stable")][:MAX_TRIALS]
        trial = np.concatenate([group.q[near], group.q[near]])
        trial[: len(near), root] = group.q[i, root]
        each, _ = solve_poses(problem, np.full(len(trial), i), trial, chained=False)
        best = int(each.argmin())
        if each[best] < energy[i]:
            q[i], energy[i] = trial[best], each[best]
    return replace(group, q=q, energy=energy)


def marker_errors(group: FrameGroup) -> Array:
    """Return the distances (frames, markers) [m] between model and measured markers; NaN where missing."""
    modeled = group.problem.model_markers(group.q)
    distance = np.linalg.norm(modeled - group.problem.target, axis=-1)
    return np.where(group.problem.weight > 0.0, distance, np.nan)


def held_out_error(groups: Sequence[FrameGroup]) -> float:
    """Return the RMS marker error [m] in held-out frames; NaN if there are none."""
    return rms([marker_errors(group) for group in groups if not group.fitted])


def rms(errors: Sequence[Array]) -> float:
    """Return the root mean square of all finite values; NaN if there are none."""
    every = np.concatenate([e.ravel() for e in errors]) if errors else np.zeros(0)
    every = every[np.isfinite(every)]
    return float(np.sqrt(np.mean(every**2))) if len(every) else float("nan")

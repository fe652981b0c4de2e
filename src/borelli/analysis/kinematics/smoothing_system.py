"""Smoothing system: energy of a motion under the snap penalty, and its derivatives, for any scale of the penalty."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from borelli.analysis.kinematics.framewise_ik import IkProblem
from borelli.analysis.kinematics.modal_preconditioner import (
    Modes,
    Preconditioner,
    find_modes,
    inner_product,
    solve_by_conjugate_gradients,
)
from borelli.analysis.kinematics.snap_penalty import (
    DIFFERENCE_ORDER,
    Grouping,
    add_snap,
    find_snap,
    mean_weight,
    snap_gradient,
    snap_hessian_product,
)
from borelli.analysis.tree_kernels.marker_energy import RestSprings
from borelli.analysis.tree_kernels.newton_ik import compute_frame_derivatives, make_ik_search
from borelli.kernels.shared_tuples import SharedTuple
from borelli.numerics.banded import BandedMatrix, NotPositiveDefiniteError
from borelli.numerics.vectors import Array

STIFFNESS_FACTOR = 1.1
"""Variation of the marker stiffness that gives the degrees of freedom used; these grow with its eighth root."""
MAX_ACTIVE_LIMITS = 1.0
"""Active joint limits per frame, above which a banded factor costs less than the modal preconditioner."""
MAX_MODEL_STEPS = 20
"""Of Newton's method for active joint limits; the next model finishes what these do not."""
ACTIVE_SET_REDUCTION = 0.03
"""Fraction of the energy gained that a step may miss while the active limits still change."""
FIT_ACCURACY = 0.01
"""Energy that the step of `fit` may miss, in units of one marker's noise; scores of scales differ by hundreds."""


@dataclass(frozen=True)
class SmoothingProblem:
    """Window of frames to smooth."""

    problem: IkProblem
    grouping: Grouping
    noise: float
    """Twice the energy [J] that noise leaves in a marker spring along one axis: stiffness times variance."""
    weight: Array
    """(variables,) of the snap."""


def differentiate(problem: IkProblem, q: Array) -> tuple[Array, Array, Array, Array]:
    """Return energy (frames,), gradient (frames, n), Gauss-Newton Hessian and the rest of it, of markers alone."""
    n = len(problem.tree.free)
    energy, gradient = np.empty(len(q)), np.empty((len(q), n))
    gauss_newton, rest = np.empty((len(q), n, n)), np.empty((len(q), n, n))
    search = SharedTuple(make_ik_search(problem.tree, problem.points))
    compute_frame_derivatives(
        search, np.zeros((1, n)), problem.target, problem.weight, q.copy(), energy, gradient, gauss_newton, rest
    )
    return energy, gradient, gauss_newton, rest


def rest_energy(problem: IkProblem, q: Array) -> tuple[float, Array, Array]:
    """Return energy [J], gradient and second derivatives (frames, n) of pose springs and joint limits."""
    x, springs = q[:, problem.tree.free], problem.rest_springs
    off, limit, beyond = x - problem.rest, springs.limit_stiffness, limit_violation(springs, x)
    energy = 0.5 * float((springs.stiffness * off**2).sum() + (limit * beyond**2).sum())
    return energy, springs.stiffness * off + limit * beyond, springs.stiffness + limit * (beyond != 0.0)


def limit_violation(springs: RestSprings, x: Array) -> Array:
    """Return by how much variables (frames, n) are beyond their joint limits."""
    return np.asarray(np.maximum(x - springs.upper, 0.0) + np.minimum(x - springs.lower, 0.0))


def _minimum_along(springs: RestSprings, x: Array, step: Array, gradient: Array, change: Array) -> float:
    """Return the fraction of a step from x at which the energy is least: at most 1.

    Without limits the energy has this gradient, which changes by `change` over the step. The slope along the step
    increases, and is linear between the fractions at which a variable comes to a limit or leaves it.
    """
    start, growth = inner_product(gradient, step), inner_product(change, step)
    frame, variable = np.nonzero(limit_violation(springs, x) != limit_violation(springs, x + step))
    own = type(springs)(*(np.asarray(values)[variable] for values in springs))
    at, moves = x[frame, variable], step[frame, variable]

    def slope(fraction: float) -> float:
        force = own.limit_stiffness * limit_violation(own, at + fraction * moves)
        return start + fraction * growth + float(moves @ force)

    crossings = np.concatenate([(own.lower - at) / moves, (own.upper - at) / moves])
    breaks = [0.0, *np.sort(crossings[(crossings > 0.0) & (crossings < 1.0)]), 1.0]
    if slope(1.0) <= 0.0:
        return 1.0
    last = bisect_left(breaks, True, lo=1, hi=len(breaks) - 1, key=lambda fraction: slope(fraction) > 0.0)
    low, high = breaks[last - 1], breaks[last]
    return float(low - slope(low) * (high - low) / (slope(high) - slope(low)))


class Step(NamedTuple):
    """Step of Newton's method."""

    change: Array
    """(frames, n)"""
    gain: float
    """Estimate of the energy [J] that the step gains; 0 at the minimum."""


class System:
    """Quadratic model of the energy about a motion, for any scale of the penalty."""

    def __init__(self, task: SmoothingProblem, q: Array, modes: Modes | None = None) -> None:
        """Differentiate the energy; `modes` of a motion nearby save finding those of this one."""
        problem = task.problem
        self.task, self.q = task, q
        energy, self.marker_gradient, self.stiffness, self._hessian_rest = differentiate(problem, q)
        self.marker_energy = float(energy.sum())
        self.rest_energy, self.rest_gradient, self.rest_stiffness = rest_energy(problem, q)
        snap, self._jacobian = find_snap(task.grouping, problem.tree, q)
        force = task.weight * snap
        self.snap_energy = 0.5 * inner_product(force, snap)
        self.snap_gradient = snap_gradient(task.grouping, self._jacobian, force)
        self._fitted = np.zeros_like(self.snap_gradient)
        if modes is not None:
            self.modes = modes

    @cached_property
    def modes(self) -> Modes:
        """Modes of the mean stiffness."""
        weight = mean_weight(self.task.grouping, self._jacobian, self.task.weight)
        return find_modes(self.stiffness.mean(axis=0), self.task.problem.rest_springs.stiffness, weight)

    @cached_property
    def exact_stiffness(self) -> Array:
        """Exact Hessian (frames, n, n) of the markers' energy; `stiffness` is its Gauss-Newton part."""
        self._hessian_rest += self.stiffness
        return self._hessian_rest

    def energy(self, scale: float) -> float:
        """Return the energy [J]."""
        return self.marker_energy + self.rest_energy + scale * self.snap_energy

    def gradient(self, scale: float) -> Array:
        """Return the gradient (frames, n) of the energy."""
        return self.marker_gradient + self.rest_gradient + scale * self.snap_gradient

    def product(self, scale: float, x: Array, exact: bool = False) -> Array:
        """Return the Hessian without joint limits, exact or of Gauss-Newton, times x (frames, n)."""
        result = snap_hessian_product(self.task.grouping, self._jacobian, scale * self.task.weight, x)
        result += ((self.exact_stiffness if exact else self.stiffness) @ x[..., None])[..., 0]
        result += self.task.problem.rest_springs.stiffness * x
        return result

    def hessian(self, scale: float, factor: float = 1.0) -> BandedMatrix:
        """Return the Hessian of Gauss-Newton as a banded matrix, with the markers' part times a factor."""
        hessian = BandedMatrix(len(self.q), self.marker_gradient.shape[1], DIFFERENCE_ORDER)
        add_snap(self.task.grouping, self._jacobian, scale * self.task.weight, hessian)
        hessian.add_blocks(self.stiffness, factor)
        hessian.entry[:, :, 0] += self.rest_stiffness
        return hessian

    def newton_step(self, scale: float, exact: bool, reduction: float, enough: float) -> Step:
        """Return the step of Newton, or of Gauss-Newton where the exact Hessian is not positive definite.

        Args:
            scale: Of the penalty.
            exact: Use the exact Hessian of the markers.
            reduction: Fraction of the energy gained that the step may miss.
            enough: Energy [J] that it may miss.
        """
        step = self._minimize_model(scale, True, reduction, enough) if exact else None
        step = step or self._minimize_model(scale, False, reduction, enough)
        if step is None:
            raise NotPositiveDefiniteError("The markers, springs and neighbor frames do not determine the motion.")
        return step

    def _minimize_model(self, scale: float, exact: bool, reduction: float, enough: float) -> Step | None:
        """Minimize the quadratic model of the energy plus the springs at joint limits, which are quadratic in pieces.

        Newton's method: each step solves with the limits that are active, and ends at the minimum along it. Returns
        None if the Hessian is not positive definite.
        """
        springs, x = self.task.problem.rest_springs, self.q[:, self.task.problem.tree.free]
        beyond = limit_violation(springs, x)
        right = springs.limit_stiffness * beyond - self.gradient(scale)
        total, moved, gain, same = np.zeros_like(x), np.zeros_like(x), 0.0, True
        for _ in range(MAX_MODEL_STEPS):
            force, active = right - moved - springs.limit_stiffness * beyond, springs.limit_stiffness * (beyond != 0.0)
            solution = solve_by_conjugate_gradients(
                partial(self._product_at_limits, scale, exact, active), self._precondition(scale, active), force,
                reduction if same else ACTIVE_SET_REDUCTION, enough,
            )  # fmt: skip
            if not solution.convex:
                return None
            gain = gain or solution.gain
            if solution.gain <= max(enough, reduction * gain):
                break
            solved = same
            change = force - solution.residual - active * solution.step
            after = limit_violation(springs, x + total + solution.step)
            same = bool(((after != 0.0) == (beyond != 0.0)).all())
            length = 1.0 if same else _minimum_along(springs, x + total, solution.step, moved - right, change)
            total += length * solution.step
            moved += length * change
            if same and solved:
                break
            beyond = limit_violation(springs, x + total)
        return Step(total, gain)

    def _product_at_limits(self, scale: float, exact: bool, active: Array, x: Array) -> Array:
        result = self.product(scale, x, exact)
        result += active * x
        return result

    def _precondition(self, scale: float, active: Array) -> Callable[[Array], Array]:
        if np.count_nonzero(active) > MAX_ACTIVE_LIMITS * len(active):
            hessian = self.hessian(scale)
            hessian.entry[:, :, 0] += active - (self.rest_stiffness - self.task.problem.rest_springs.stiffness)
            return hessian.factor().solve
        return Preconditioner(self.modes, scale, active).solve

    def fit(self, scale: float, correction: float) -> tuple[float, float, float]:
        """Return twice the marker energy after the next step, the degrees of freedom used, and the numbers measured.

        The degrees of freedom used are tr(H^-1 G), G the markers' part of the Hessian H. As a function of the scale
        they are in proportion to those of the mean stiffnesses, to within 0.3 % for scales from 0.01 to 100 (walks);
        `correction` is the ratio.
        """
        active = self.rest_stiffness - self.task.problem.rest_springs.stiffness
        product = partial(self._product_at_limits, scale, False, active)
        right, enough = -self.gradient(scale) - product(self._fitted), FIT_ACCURACY * self.task.noise
        solution = solve_by_conjugate_gradients(product, self._precondition(scale, active), right, 0.0, enough)
        step = self._fitted + solution.step
        if solution.converged:
            self._fitted = step  # near that of the next scale
        change = (self.stiffness @ step[..., None])[..., 0]
        left = self.marker_energy + float((self.marker_gradient * step).sum() + 0.5 * (step * change).sum())
        used = correction * self.modes.degrees_of_freedom(len(self.q), scale)
        if not solution.converged:  # so stiff that the markers are lost in rounding: a second or less of motion
            left = np.inf
        return 2.0 * left, used, 3.0 * np.count_nonzero(self.task.problem.weight)

    def correct_degrees_of_freedom(self) -> float:
        """Return the ratio of the degrees of freedom used at scale 1 to those of the mean stiffnesses.

        tr(H^-1 G) is the derivative of log det H by the logarithm of a factor on G.
        """
        plain, stiffer = (self.hessian(1.0, f).factor().log_determinant for f in (1.0, STIFFNESS_FACTOR))
        used = (stiffer - plain) / float(np.log(STIFFNESS_FACTOR))
        return used / self.modes.degrees_of_freedom(len(self.q), 1.0)

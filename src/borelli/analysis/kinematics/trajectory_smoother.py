"""Trajectory smoother: inverse kinematics of all frames at once, smooth in time.

The energy of marker springs, pose springs and joint limits, as in framewise inverse kinematics, plus a penalty on the
*snap* of every variable (`snap_penalty`) is minimized:

    sum k e^2 / 2 + pose springs, limits + scale sum_v w_v snap_v^2 / 2        w_v = noise / mean square of snap_v

The noise is the spring energy that framewise poses leave, per remaining degree of freedom; the mean squares come from
the pose of low-pass filtered markers. The one remaining parameter, `scale`, minimizes generalized cross-validation
(Craven and Wahba 1979): the error in predicting a marker that was held out. Nothing is set by hand. Frames with too few
visible markers get the pose that smoothness gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    POSE_STIFFNESS,
    IkProblem,
    solve_framewise,
    solve_poses,
)
from borelli.analysis.kinematics.snap_penalty import (
    DIFFERENCE_ORDER,
    Grouping,
    add_snap,
    find_snap,
    group_variables,
    snap_gradient,
)
from borelli.analysis.tree_kernels.newton_ik import compute_frame_derivatives, make_ik_search
from borelli.errors import DivergedError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Model
from borelli.numerics.banded import BandedMatrix, NotPositiveDefiniteError
from borelli.numerics.filters import lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note, Recording

CUTOFF = 6.0
"""[Hz] of the low-pass filter that gives the start and the relative weights."""
MAX_BRIDGE = 0.25
"""[s] A longer run of frames without a pose of their own is reported."""
MIN_FRAMES = 2 * DIFFERENCE_ORDER + 1
MIN_NOISE = 1e-7
"""[m] Markers that the model matches this closely have no noise to remove."""
STIFFNESS_FACTOR = 1.1
"""Variation of the marker stiffness that gives the degrees of freedom used; these grow with its eighth root."""
MAX_SCALE_FRAMES, SCALE_WINDOWS = 160, 2
"""Frames from which the scale is chosen, and windows they are taken from if there are more frames."""
WINDOW, OVERLAP = 1000, 200
"""Frames smoothed at once, and how many of them the next window has too."""
ROUNDING = 1e-11
"""Fraction by which sums over all frames may differ by rounding alone."""
STEP_TOLERANCE = 1e-7
"""[rad or m] A step no longer than this ends the minimization: its error is of second order."""
EXACT_BELOW = 0.05
"""[rad or m] Steps shorter than this are followed by Newton steps with the exact Hessian."""
ENERGY_TOLERANCE, COARSE_TOLERANCE = 1e-5, 1.0
"""Decrease of the energy, in units of one marker's noise, that ends the minimization too; while limits are soft."""
MAX_ITERATIONS = 20
SCALES = (-6.0, 8.0)
"""Range of the scale, as powers of ten."""
FIRST_STEP, SCALE_TOLERANCE = 2.0, 0.2
"""Steps that bracket the best scale, and the change that ends its refinement by parabolas, as powers of ten."""
MAX_REFINEMENTS = 6
LIMIT_STIFFNESSES = (1.0, 10.0, 100.0, 1000.0)
"""Of joint limits, one after the other, in units of the markers' stiffness."""
MIN_STIFFNESS_FRACTION = 0.01
"""Least fraction of the pose springs' stiffness: below, rounding would decide what they alone determine."""
MIN_SNAP_FRACTION = 1e-3
"""Variables with less snap than this fraction of the median are treated as if they had as much."""


@dataclass(frozen=True)
class SmoothingProblem:
    """Window of frames to smooth."""

    problem: IkProblem
    grouping: Grouping
    noise: float
    """Twice the energy [J] that noise leaves in a marker spring along one axis: stiffness times variance."""
    weight: Array
    """(variables,) of the snap."""


def smooth_poses(problem: IkProblem, q: Array, recording: Recording) -> tuple[Array, tuple[Note, ...]]:
    """Smooth framewise poses q (frames, coordinates), NaN where too few markers are visible.

    Returns coordinates, NaN before the first and after the last frame with a pose; and notes.
    """
    posed = _has_pose(q)
    first, last = int(np.argmax(posed)), len(posed) - int(np.argmax(posed[::-1]))
    span = slice(first, last)
    if last - first < MIN_FRAMES:
        text = f"Not smoothed: {last - first} frames are too few, {MIN_FRAMES} are needed."
        return q, (Note(text, "problem", code="not_smoothed"),)
    whole = problem.select(span)
    notes = _bridge_notes(posed[span], first, recording.rate)
    noise = _noise(whole, q[span])
    if noise <= _mean_stiffness(whole) * MIN_NOISE**2 and posed[span].all():
        return q, (*notes, Note("Not smoothed: the markers have no noise.", "inferred", code="not_smoothed"))
    start, more = _filtered_poses(whole, q[span], recording.rate)
    grouping = group_variables(problem.model, problem.tree)
    weight = noise / _mean_square_snap(grouping, whole, start)
    task = SmoothingProblem(_soften(whole, noise), grouping, noise, weight)
    windows = _scale_windows(len(start))
    scale = choose_scale([System(replace(task, problem=task.problem.select(s)), start[s]) for s in windows])
    result = np.full_like(q, np.nan)
    smooth = minimize_in_windows(task, scale, start, COARSE_TOLERANCE)
    if task.problem.is_outside(smooth).any():
        task, smooth = _stiffen_limits(task, scale, smooth)
    free, springs = problem.tree.free, problem.rest_springs
    result[span] = minimize_in_windows(task, scale, smooth)
    result[span, free] = np.clip(result[span, free], springs.lower, springs.upper)
    sd = 1e3 * (noise / _mean_stiffness(whole)) ** 0.5
    text = f"Smoothing: marker noise {sd:.2g} mm along each axis; penalty scale {scale:.3g} by cross-validation."
    return result, (*notes, *more, Note(text, "inferred", code="smoothing"))


def smooth_markers(problem: IkProblem, recording: Recording) -> tuple[Array, tuple[Note, ...]]:
    """Return smooth coordinates of a recording, as `smooth_poses`, and notes.

    Each frame is solved from the pose of low-pass filtered markers, so that noise that leaves single frames without a
    pose, or in a local minimum, does no harm.
    """
    target = np.where(problem.weight[..., None] > 0.0, problem.target, np.nan)
    if recording.rate > 2.0 * CUTOFF:
        target = lowpass(target, recording.rate, CUTOFF)
    filtered = replace(problem, target=np.ascontiguousarray(np.nan_to_num(target)))
    q, notes = solve_framewise(filtered)
    frames = np.flatnonzero(_has_pose(q))
    poses = np.ascontiguousarray(q[frames])
    solve_poses(problem, frames, poses, chained=False)
    q[frames] = poses
    result, more = smooth_poses(problem, q, recording)
    return result, notes + more


def _has_pose(q: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(q).all(axis=1))


def _mean_stiffness(problem: IkProblem) -> float:
    return float(problem.weight[problem.weight > 0.0].mean())


def _scale_windows(frames: int) -> list[slice]:
    """Return the windows from which the scale is chosen: all frames, or some spread evenly."""
    if frames <= MAX_SCALE_FRAMES:
        return [slice(0, frames)]
    length = MAX_SCALE_FRAMES // SCALE_WINDOWS
    return [slice(int(at), int(at) + length) for at in np.linspace(0, frames - length, SCALE_WINDOWS)]


def _bridge_notes(posed: NDArray[np.bool_], first: int, rate: float) -> tuple[Note, ...]:
    return tuple(
        Note(
            f"Frames {first + start} to {first + end - 1} ({(end - start) / rate:.2f} s): too few markers are visible; "
            "poses there are extrapolated.", "problem", "crop the recording", code="extrapolated_poses",
        )
        for start, end in find_runs(~posed)
        if end - start > MAX_BRIDGE * rate
    )  # fmt: skip


def _noise(problem: IkProblem, q: Array) -> float:
    """Return twice the mean energy [J] of a marker spring along one axis if the model were exact."""
    posed = _has_pose(q)
    part = problem.select(posed)
    energy, _, stiffness, _ = differentiate(part, q[posed])
    diagonal = part.rest_springs.stiffness
    least = 1e-9 * np.median(np.einsum("tii->i", stiffness) / len(stiffness))
    total = stiffness + np.diag(np.maximum(diagonal, least))
    used = np.trace(np.linalg.solve(total, stiffness), axis1=1, axis2=2).sum()
    return float(2.0 * energy.sum() / max(3.0 * np.count_nonzero(part.weight) - used, 1.0))


def _soften(problem: IkProblem, noise: float) -> IkProblem:
    """Return the problem with pose springs in proportion to the noise, at most as stiff as given."""
    usual = POSE_STIFFNESS / MARKER_STIFFNESS * _mean_stiffness(problem)
    springs, factor = problem.rest_springs, min(1.0, max(noise / usual, MIN_STIFFNESS_FRACTION))
    return replace(problem, rest_springs=springs._replace(stiffness=springs.stiffness * factor))


def _filtered_poses(problem: IkProblem, q: Array, rate: float) -> tuple[Array, tuple[Note, ...]]:
    """Return the poses of low-pass filtered markers; missing markers are taken from the model."""
    model = problem.model_markers(_interpolate(problem.model, q))
    visible = problem.weight > 0.0
    offset = np.where(visible[..., None], problem.target - model, np.nan)
    time = np.arange(len(q))
    for m in range(visible.shape[1]):
        rows = np.flatnonzero(visible[:, m])
        for axis in range(3):
            if 0 < len(rows) < len(time):
                offset[:, m, axis] = np.interp(time, rows, offset[rows, m, axis])
    used = np.asarray(visible.any(axis=0))
    target = np.where(used[:, None], model + np.where(used[:, None], offset, 0.0), 0.0)
    notes: tuple[Note, ...] = ()
    if rate > 2.0 * CUTOFF:
        target = lowpass(target, rate, CUTOFF)
    else:
        text = f"Smoothing starts from unfiltered markers, since the rate is only {rate:g} Hz."
        notes = (Note(text, "inferred", code="smoothing_start"),)
    weight = np.broadcast_to(problem.weight.max(axis=0), visible.shape)
    filled = replace(problem, target=np.ascontiguousarray(target), weight=np.ascontiguousarray(weight))
    return solve_framewise(filled)[0], notes


def _interpolate(model: Model, q: Array) -> Array:
    """Return coordinates in which frames without a pose are interpolated linearly."""
    posed = _has_pose(q)
    if posed.all():
        return q
    rows, result = np.flatnonzero(posed), q.copy()
    for i, coordinate in enumerate(model.coordinates):
        values = q[rows, i]
        if coordinate.rotational:
            values = np.unwrap(values)
        result[~posed, i] = np.interp(np.flatnonzero(~posed), rows, values)
    return result


def _mean_square_snap(grouping: Grouping, problem: IkProblem, q: Array) -> Array:
    """Return the mean square (variables,) of every variable's snap."""
    square = np.mean(find_snap(grouping, problem.tree, q)[0] ** 2, axis=0)
    for family in set(grouping.family):
        members = grouping.plain[grouping.family == family]
        square[members] = square[members].mean()
    rotational = np.array([problem.model.coordinates[c].rotational for c in problem.tree.free])
    for kind in (rotational, ~rotational):
        if kind.any():
            square[kind] = np.maximum(square[kind], MIN_SNAP_FRACTION**2 * np.median(square[kind]))
    return np.maximum(square, np.finfo(float).tiny ** 0.5)


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
    off = x - problem.rest
    limit = springs.limit_stiffness
    beyond = np.maximum(x - springs.upper, 0.0) + np.minimum(x - springs.lower, 0.0)
    energy = 0.5 * float((springs.stiffness * off**2).sum() + (limit * beyond**2).sum())
    return energy, springs.stiffness * off + limit * beyond, springs.stiffness + limit * (beyond != 0.0)


class System:
    """Quadratic model of the energy about a motion, for any scale of the penalty."""

    def __init__(self, task: SmoothingProblem, q: Array) -> None:
        problem = task.problem
        self.task, self.q = task, q
        energy, self.marker_gradient, self.stiffness, self._hessian_rest = differentiate(problem, q)
        self.marker_energy = float(energy.sum())
        self.rest_energy, self.rest_gradient, self.rest_stiffness = rest_energy(problem, q)
        self._snap, self._jacobians = find_snap(task.grouping, problem.tree, q)
        self.snap_energy = 0.5 * float((task.weight * self._snap**2).sum())
        self.snap_gradient = snap_gradient(task.grouping, self._jacobians, task.weight * self._snap)

    def energy(self, scale: float) -> float:
        """Return the energy [J]."""
        return self.marker_energy + self.rest_energy + scale * self.snap_energy

    def gradient(self, scale: float) -> Array:
        """Return the gradient (frames, n) of the energy."""
        return self.marker_gradient + self.rest_gradient + scale * self.snap_gradient

    @cached_property
    def _snap_hessian(self) -> BandedMatrix:
        hessian = BandedMatrix(len(self.q), self.marker_gradient.shape[1], DIFFERENCE_ORDER)
        add_snap(self.task.grouping, self._jacobians, self.task.weight, hessian)
        return hessian

    def hessian(self, scale: float, factor: float = 1.0, exact: bool = False) -> BandedMatrix:
        """Return the Hessian, exact or of Gauss-Newton, with the markers' part times a factor."""
        hessian = BandedMatrix(len(self.q), self.marker_gradient.shape[1], DIFFERENCE_ORDER)
        np.multiply(self._snap_hessian.entry, scale, out=hessian.entry)
        hessian.add_blocks(self.stiffness + self._hessian_rest if exact else self.stiffness, factor)
        hessian.entry[:, :, 0] += self.rest_stiffness
        return hessian

    def fit(self, scale: float) -> tuple[float, float, float]:
        """Return twice the marker energy after the next step, the degrees of freedom used, and the numbers measured.

        The degrees of freedom used are tr(H^-1 G), G the markers' part of the Hessian H: the derivative of log det H by
        the logarithm of a factor on that part.
        """
        cholesky = self.hessian(scale).factor()
        step = -cholesky.solve(self.gradient(scale))
        growth = self.hessian(scale, STIFFNESS_FACTOR).factor().log_determinant - cholesky.log_determinant
        change = (self.stiffness @ step[..., None])[..., 0]
        left = self.marker_energy + float((self.marker_gradient * step).sum() + 0.5 * (step * change).sum())
        used = growth / float(np.log(STIFFNESS_FACTOR))
        return 2.0 * left, used, 3.0 * np.count_nonzero(self.task.problem.weight)


def choose_scale(systems: Sequence[System]) -> float:
    """Return the scale of the penalty that minimizes generalized cross-validation."""
    known: dict[float, float] = {}

    def score(power: float) -> float:
        if power not in known:
            try:
                left, used, count = np.sum([system.fit(10.0**power) for system in systems], axis=0)
            except NotPositiveDefiniteError:
                if power <= 0.0:
                    raise
                known[power] = np.inf  # so stiff that the markers are lost in rounding: a second or less of motion
            else:
                known[power] = float(np.log(left / count) - 2.0 * np.log(1.0 - used / count))
        return known[power]

    low, best, high = -FIRST_STEP, 0.0, FIRST_STEP
    while score(high) < score(best) and high < SCALES[1]:
        low, best, high = best, high, high + FIRST_STEP
    while score(low) < score(best) and low > SCALES[0]:
        low, best, high = low - FIRST_STEP, low, best
    for end in (low, high):
        if score(end) < score(best):
            return float(10.0**end)
    for _ in range(MAX_REFINEMENTS):
        at = _vertex(low, best, high, score)
        if abs(at - best) < SCALE_TOLERANCE:
            return float(10.0**at)
        if score(at) < score(best):
            low, best, high = (best, at, high) if at > best else (low, at, best)
        else:
            low, high = (low, at) if at > best else (at, high)
    return float(10.0**best)


def _vertex(low: float, best: float, high: float, score: Callable[[float], float]) -> float:
    """Return the minimum of the parabola through three values, the second of which is the least."""
    below, above = score(low) - score(best), score(high) - score(best)
    if above == np.inf:
        return 0.5 * (best + high)
    if below + above == 0.0:
        return best
    left, right = best - low, high - best
    return best - 0.5 * (left**2 * above - right**2 * below) / (left * above + right * below)


def _stiffen_limits(task: SmoothingProblem, scale: float, start: Array) -> tuple[SmoothingProblem, Array]:
    """Return the problem with joint limits that yield a thousandth of what markers do, and a motion near its minimum.

    The stiffness grows by steps: variables that come to a limit or leave it make the energy's slope jump. Fixing them
    at their limits instead makes kinks, which the penalty on snap resists; steps then become tiny.
    """
    springs = task.problem.rest_springs
    markers = np.einsum("tii->i", differentiate(task.problem, start)[2]) / len(start)
    for factor in LIMIT_STIFFNESSES:
        stiff = springs._replace(limit_stiffness=factor * np.maximum(markers, springs.limit_stiffness))
        task = replace(task, problem=replace(task.problem, rest_springs=stiff))
        start = minimize_in_windows(task, scale, start, COARSE_TOLERANCE)
    return task, start


def minimize_in_windows(
    task: SmoothingProblem, scale: float, start: Array, tolerance: float = ENERGY_TOLERANCE
) -> Array:
    """Return the result of `minimize`, in overlapping windows if there are many frames, to bound memory."""
    frames = len(start)
    if frames <= WINDOW:
        return minimize(task, scale, start, tolerance)
    result, total = np.zeros_like(start), np.zeros(frames)
    count = int(np.ceil((frames - OVERLAP) / (WINDOW - OVERLAP)))
    for first in np.linspace(0, frames - WINDOW, count).astype(int):
        part = slice(int(first), int(first) + WINDOW)
        # each window counts fully in its middle, and fades out towards its ends
        inside = np.minimum(np.arange(WINDOW), np.arange(WINDOW)[::-1]) + 0.5
        fade = np.clip((inside - OVERLAP / 4.0) / (OVERLAP / 2.0), 1e-9, 1.0)
        fade = fade**3 * (10.0 - 15.0 * fade + 6.0 * fade**2)
        if first == 0:
            fade[: WINDOW // 2] = 1.0
        if part.stop == frames:
            fade[WINDOW // 2 :] = 1.0
        window = replace(task, problem=task.problem.select(part))
        result[part] += fade[:, None] * minimize(window, scale, start[part], tolerance)
        total[part] += fade
    return result / total[:, None]


def minimize(task: SmoothingProblem, scale: float, start: Array, tolerance: float = ENERGY_TOLERANCE) -> Array:
    """Return the motion (frames, coordinates) of minimum energy for a scale of the penalty, near a start.

    Gauss-Newton while steps are long, Newton when they are short: far from the minimum the exact Hessian misleads where
    it is nearly singular.
    """
    free = task.problem.tree.free
    system, exact = System(task, start), False
    for _ in range(MAX_ITERATIONS):
        step = _newton_step(system, scale, exact)
        length = 1.0
        while True:
            trial = system.q.copy()
            trial[:, free] += length * step
            moved = float(np.abs(trial - system.q).max())
            if not np.isfinite(moved):  # no fraction of such a step is shorter
                raise DivergedError(
                    "Smoothed inverse kinematics diverged: the markers do not determine the motion. Check them with "
                    '`borelli doctor`, or use method="framewise".'
                )
            after = System(task, trial)
            if after.energy(scale) <= system.energy(scale) * (1.0 + ROUNDING) or moved <= STEP_TOLERANCE:
                break
            length *= 0.5
        decrease, system = system.energy(scale) - after.energy(scale), after
        exact = length == 1.0 and moved < EXACT_BELOW
        if moved <= STEP_TOLERANCE or decrease < tolerance * task.noise:
            break
    return system.q


def _newton_step(system: System, scale: float, exact: bool) -> Array:
    gradient = system.gradient(scale)
    try:
        return -system.hessian(scale, exact=exact).factor().solve(gradient)
    except NotPositiveDefiniteError:
        if not exact:
            raise
        return -system.hessian(scale).factor().solve(gradient)

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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    POSE_STIFFNESS,
    IkProblem,
    solve_framewise,
    solve_poses,
)
from borelli.analysis.kinematics.smoothing_system import SmoothingProblem, System, differentiate
from borelli.analysis.kinematics.snap_penalty import DIFFERENCE_ORDER, Grouping, find_snap, group_variables
from borelli.analysis.tree_kernels.smoothing_kernels import trace_determined
from borelli.errors import DivergedError
from borelli.model.model import Model
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
SCALE_FRAMES, SCALE_WINDOWS = 80, 2
"""Frames of a window from which the scale is chosen, and number of windows if there are more frames."""
WINDOW, OVERLAP = 2000, 200
"""Frames smoothed at once, and how many of them the next window has too."""
ROUNDING = 1e-11
"""Fraction by which sums over all frames may differ by rounding alone."""
STEP_TOLERANCE = 1e-7
"""[rad or m] A step no longer than this ends the minimization: its error is of second order."""
EXACT_BELOW = 0.05
"""[rad or m] Steps shorter than this are followed by Newton steps with the exact Hessian."""
ENERGY_TOLERANCE, COARSE_TOLERANCE = 1e-10, 1.0
"""Energy left to gain, in units of one marker's noise, that ends the minimization; and before active limits are known.
The square root of twice this is the distance from the minimum in standard deviations, in any direction."""
STEP_REDUCTION = 1e-4
"""Fraction of the energy that a Newton step gains which it may miss: the next one gains it."""
MAX_ITERATIONS = 20
SCALES = (-6.0, 8.0)
"""Range of the scale, as powers of ten."""
FIRST_STEP, SCALE_TOLERANCE, SCALE_UNIT = 2.0, 0.2, 0.05
"""Steps that bracket the best scale, the change that ends its refinement by parabolas, and the unit it is rounded to,
as powers of ten: cross-validation determines it no better, and rounding errors must not decide."""
MAX_REFINEMENTS = 6
MIN_SCORE_GAIN = 1e-3
"""Decrease of the logarithmic score that justifies a larger scale. In less than a second of motion the score is the
same for all large scales, and the minimum is ever harder to find."""
LIMIT_STAGES = ((10.0, COARSE_TOLERANCE), (100.0, COARSE_TOLERANCE), (1e4, 1e-4))
"""Stiffness of joint limits, one after the other, in units of the markers'; and the energy left to gain that ends each
stage: clipping the last one's motion to the limits costs a thousand times as much."""
MIN_STIFFNESS_FRACTION = 0.01
"""Least fraction of the pose springs' stiffness: below, rounding would decide what they alone determine."""
MIN_SNAP_FRACTION = 1e-3
"""Variables with less snap than this fraction of the median are treated as if they had as much."""
STILL_FRACTION = 1e-9
"""Variables with less snap than this fraction of the median do not move: no marker acts on them, and they stay so with
the median's weight, too. With the weight of their snap, the springs to their rest pose would be lost in rounding."""


def smooth_poses(problem: IkProblem, q: Array, filtered: Array, recording: Recording) -> tuple[Array, tuple[Note, ...]]:
    """Smooth framewise poses q (frames, coordinates), NaN where too few markers are visible.

    `filtered` are the poses of low-pass filtered markers. Returns coordinates, NaN before the first and after the last
    frame with a pose; and notes.
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
    start, more = _filtered_poses(whole, q[span], filtered[span], recording.rate)
    grouping = group_variables(problem.model, problem.tree)
    weight = noise / _mean_square_snap(grouping, whole, start)
    task = SmoothingProblem(_soften(whole, noise), grouping, noise, weight)
    windows = _scale_windows(len(start))
    scale = choose_scale([System(replace(task, problem=task.problem.select(s)), start[s]) for s in windows])
    result = np.full_like(q, np.nan)
    smooth = minimize_in_windows(task, scale, start, COARSE_TOLERANCE)
    if task.problem.is_outside(smooth).any():
        smooth = _minimize_within_limits(task, scale, smooth)
    else:
        smooth = minimize_in_windows(task, scale, smooth)
    free, springs = problem.tree.free, problem.rest_springs
    result[span] = smooth
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
    near, notes = solve_framewise(replace(problem, target=np.ascontiguousarray(np.nan_to_num(target))))
    frames, q = np.flatnonzero(_has_pose(near)), near.copy()
    poses = np.ascontiguousarray(q[frames])
    solve_poses(problem, frames, poses, chained=False)
    q[frames] = poses
    result, more = smooth_poses(problem, q, near, recording)
    return result, notes + more


def _has_pose(q: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(q).all(axis=1))


def _mean_stiffness(problem: IkProblem) -> float:
    return float(problem.weight[problem.weight > 0.0].mean())


def _scale_windows(frames: int) -> list[slice]:
    """Return the windows from which the scale is chosen: all frames, or some spread evenly."""
    if frames <= SCALE_FRAMES:
        return [slice(0, frames)]
    return [slice(int(at), int(at) + SCALE_FRAMES) for at in np.linspace(0, frames - SCALE_FRAMES, SCALE_WINDOWS)]


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
    part, tree = problem.select(posed), problem.tree
    energy, _, stiffness, _ = differentiate(part, q[posed])
    least = 1e-9 * np.median(np.einsum("tii->i", stiffness) / len(stiffness))
    springs, n = np.maximum(part.rest_springs.stiffness, least), len(tree.free)
    used = np.empty(len(stiffness))
    trace_determined(tree.row_first, tree.row_column, stiffness, springs, np.zeros((n, n)), np.zeros((n, n)), used)
    return float(2.0 * energy.sum() / max(3.0 * np.count_nonzero(part.weight) - used.sum(), 1.0))


def _soften(problem: IkProblem, noise: float) -> IkProblem:
    """Return the problem with pose springs in proportion to the noise, at most as stiff as given."""
    usual = POSE_STIFFNESS / MARKER_STIFFNESS * _mean_stiffness(problem)
    springs, factor = problem.rest_springs, min(1.0, max(noise / usual, MIN_STIFFNESS_FRACTION))
    return replace(problem, rest_springs=springs._replace(stiffness=springs.stiffness * factor))


def _filtered_poses(problem: IkProblem, q: Array, near: Array, rate: float) -> tuple[Array, tuple[Note, ...]]:
    """Return the poses of low-pass filtered markers, found near others; missing markers are taken from the model."""
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
    poses = np.ascontiguousarray(_interpolate(problem.model, near))
    solve_poses(filled, np.arange(len(poses)), poses, chained=False)
    return poses, notes


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
            usual = np.median(square[kind])
            square[kind & (square < STILL_FRACTION**2 * usual)] = usual
            square[kind] = np.maximum(square[kind], MIN_SNAP_FRACTION**2 * usual)
    return np.maximum(square, np.finfo(float).tiny ** 0.5)


def choose_scale(systems: Sequence[System]) -> float:
    """Return the scale of the penalty that minimizes generalized cross-validation."""
    known: dict[float, float] = {}
    correction = systems[0].correct_degrees_of_freedom()  # windows differ by a thousandth

    def score(power: float) -> float:
        if power not in known:
            left, used, count = np.sum([system.fit(10.0**power, correction) for system in systems], axis=0)
            free = 1.0 - used / max(count, 1.0)  # none is left where the motion passes through all markers of many gaps
            known[power] = float(np.log(left / count) - 2.0 * np.log(free)) if free > 0.0 and left > 0.0 else np.inf
        return known[power]

    low, best, high = -FIRST_STEP, 0.0, FIRST_STEP
    while (score(high) < score(best) - MIN_SCORE_GAIN or score(best) == np.inf) and high < SCALES[1]:
        low, best, high = best, high, high + FIRST_STEP
    if score(best) == np.inf:
        return float(10.0**high)
    while score(low) < score(best) and low > SCALES[0]:
        low, best, high = low - FIRST_STEP, low, best
    for end, gain in ((low, 0.0), (high, MIN_SCORE_GAIN)):
        if score(end) < score(best) - gain:
            return float(10.0**end)
    for _ in range(MAX_REFINEMENTS):
        at = _vertex(low, best, high, score)
        if abs(at - best) < SCALE_TOLERANCE:
            best = at
            break
        if score(at) < score(best) - (MIN_SCORE_GAIN if at > best else 0.0):
            low, best, high = (best, at, high) if at > best else (low, at, best)
        else:
            low, high = (low, at) if at > best else (at, high)
    return float(10.0 ** (SCALE_UNIT * round(best / SCALE_UNIT)))


def _vertex(low: float, best: float, high: float, score: Callable[[float], float]) -> float:
    """Return the minimum of the parabola through three values, the second of which is the least."""
    below, above = score(low) - score(best), score(high) - score(best)
    if above == np.inf:
        return 0.5 * (best + high)
    if below == np.inf:
        return 0.5 * (low + best)
    if below + above == 0.0:
        return best
    left, right = best - low, high - best
    return best - 0.5 * (left**2 * above - right**2 * below) / (left * above + right * below)


def _minimize_within_limits(task: SmoothingProblem, scale: float, start: Array) -> Array:
    """Return the motion of minimum energy with joint limits that yield a ten-thousandth of what markers do.

    The stiffness grows by steps: variables that come to a limit or leave it make the energy's slope jump. Fixing them
    at their limits instead makes kinks, which the penalty on snap resists; steps then become tiny.
    """
    springs = task.problem.rest_springs
    markers = np.einsum("tii->i", differentiate(task.problem, start)[2]) / len(start)
    for factor, tolerance in LIMIT_STAGES:
        stiff = springs._replace(limit_stiffness=factor * np.maximum(markers, springs.limit_stiffness))
        stage = replace(task, problem=replace(task.problem, rest_springs=stiff))
        start = minimize_in_windows(stage, scale, start, tolerance)
    return start


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
    free, enough = task.problem.tree.free, tolerance * task.noise
    system, exact = System(task, start), False
    for _ in range(MAX_ITERATIONS):
        step, gain = system.newton_step(scale, exact, STEP_REDUCTION, 0.1 * enough)
        if gain < enough:
            break
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
            after = System(task, trial, system.modes)
            if after.energy(scale) <= system.energy(scale) * (1.0 + ROUNDING) or moved <= STEP_TOLERANCE:
                break
            length *= 0.5
        decrease, system = system.energy(scale) - after.energy(scale), after
        exact = length == 1.0 and moved < EXACT_BELOW
        if moved <= STEP_TOLERANCE or decrease < enough:
            break
    return system.q

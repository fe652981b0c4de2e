"""The motion that follows all frames' markers at once and is smooth in time.

What is made least is the energy of the marker springs, the pose springs and the stops, as in the converged pose, plus a
penalty on the *snap* of every variable (`snap.py`):

    sum k e^2 / 2 + pose, stops + scale sum_v w_v snap_v^2 / 2        w_v = noise / mean square of snap_v

Noise is the spring energy that converged poses leave, per degree of freedom left; the mean squares come from the pose
of low-passed markers. The one number left, `scale`, is that of least generalised cross-validation (Craven and Wahba
1979): how well the motion would predict a marker that it was not shown. Nothing is set by hand.
Frames with too few markers get the pose that smoothness gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, POSE_STIFFNESS, IkProblem, solve_framewise, solve_poses
from borelli.analysis.kinematics.snap_penalty import DIFFERENCE_ORDER, Grouping, add_snap, find_snap, group_variables, snap_gradient
from borelli.analysis.tree_kernels.frame_derivatives import compute_frame_derivatives
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, make_ik_search
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Model
from borelli.numerics.banded import BandedCholesky, BandedMatrix, NotPositiveDefiniteError
from borelli.numerics.filters import lowpass
from borelli.numerics.runs import find_runs
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]

CUTOFF = 6.0
"""[Hz] of the low-pass that gives the start and the relative weights (spec mocap, 3)."""
LONGEST_BRIDGE = 0.25
"""[s] A longer stretch without a pose of its own is told of."""
FEWEST_FRAMES = 2 * DIFFERENCE_ORDER + 1
NO_NOISE = 1e-7
"""[m] Markers that the model meets this closely have no noise to take out."""
SHARE = 1.1
"""By how much the springs are varied to find the degrees of freedom they use up: those grow with the eighth root."""
MOST_LOOKED_AT, SAMPLES = 160, 2
"""Frames from which the scale is chosen, and stretches they are taken from where there are more."""
STRETCH, OVERLAP = 1000, 200
"""Frames smoothed at once, and how many of them the next stretch has too."""
ROUNDING = 1e-11
"""Share by which sums over all frames may differ by rounding alone."""
LITTLE = 1e-7
"""[rad or m] A last step no longer than this ends the search: its own error is its square."""
SHORT = 0.05
"""[rad or m] Steps shorter than this are followed by exact ones."""
SURE = 1e-5
"""Energy won by a step, in that of one marker's noise, that ends the search too."""
MOST_ITERATIONS = 20
SCALES = (-6.0, 8.0)
"""Powers of ten between which the scale is sought."""
FIRST_STEP, LAST_STEP = 2.0, 0.5
"""Powers of ten between the scales looked at: first to find the least, then to find it closely."""
SOFTEST = 0.01
"""Least share of the pose springs' stiffness: softer, rounding would decide what they alone hold."""
FLAT = 1e-3
"""Variables whose snap is less than this share of the usual are taken to have as much."""


@dataclass(frozen=True)
class Task:
    """One stretch of frames to be smoothed."""

    problem: IkProblem
    grouping: Grouping
    noise: float
    """Twice the energy [J] that noise leaves in a marker's spring along one axis: stiffness times variance."""
    weight: Array
    """(variables,) of the snap."""


def smooth_poses(problem: IkProblem, q: Array, recording: Recording) -> tuple[Array, tuple[Note, ...]]:
    """Coordinates (frames, coordinates) that follow the markers smoothly, and what was decided.

    Not a number before the first frame with a pose and after the last: smoothness cannot tell what was before or after.

    Args:
        problem: What the springs are.
        q: The converged coordinates; not a number where too little is seen.
        recording: Where the markers come from: its rate counts.
    """
    posed = _posed(q)
    first, last = int(np.argmax(posed)), len(posed) - int(np.argmax(posed[::-1]))
    span = slice(first, last)
    if last - first < FEWEST_FRAMES:
        return q, (Note(f"not smoothed: {last - first} frames are too few, {FEWEST_FRAMES} are needed", "problem"),)
    whole = _cut(problem, span)
    notes = _bridges(posed[span], first, recording.rate)
    noise = _noise(whole, q[span])
    if noise <= _per_metre(whole) * NO_NOISE**2 and posed[span].all():
        return q, (*notes, Note("not smoothed: markers have no noise", "inferred"))
    start, more = _low_passed(whole, q[span], recording.rate)
    grouping = group_variables(problem.model, problem.tree)
    task = Task(_soften(whole, noise), grouping, noise, noise / _mean_squares(grouping, whole, start))
    scale = choose_scale([System(replace(task, problem=_cut(task.problem, s)), start[s]) for s in _samples(len(start))])
    result = np.full_like(q, np.nan)
    result[span] = minimise_in_turn(task, scale, start)
    said = f"smoothed: markers are taken to err by {1e3 * (noise / _per_metre(whole)) ** 0.5:.2g} mm along each axis; "
    return result, (*notes, *more, Note(f"{said}scale of the penalty {scale:.3g} by cross-validation", "inferred"))


def smooth_markers(problem: IkProblem, recording: Recording) -> tuple[Array, tuple[Note, ...]]:
    """As `smooth_poses`, without converged poses: each frame is settled from the pose of low-passed markers.

    So noise that leaves single frames without a pose, or leads them to a wrong one, does no harm.
    """
    target = np.where(problem.weight[..., None] > 0.0, problem.target, np.nan)
    if recording.rate > 2.0 * CUTOFF:
        target = lowpass(target, recording.rate, CUTOFF)
    calm = replace(problem, target=np.ascontiguousarray(np.nan_to_num(target)))
    q, notes = solve_framewise(calm)
    frames = np.flatnonzero(_posed(q))
    settled = np.ascontiguousarray(q[frames])
    solve_poses(problem, frames, settled, chained=False)
    q[frames] = settled
    result, more = smooth_poses(problem, q, recording)
    return result, notes + more


def _posed(q: Array) -> NDArray[np.bool_]:
    """Which frames have a pose."""
    return np.asarray(np.isfinite(q).all(axis=1))


def _per_metre(problem: IkProblem) -> float:
    """Mean stiffness [N/m] of the markers seen."""
    return float(problem.weight[problem.weight > 0.0].mean())


def _samples(frames: int) -> list[slice]:
    """Stretches from which the scale is chosen: all frames, or some spread evenly."""
    if frames <= MOST_LOOKED_AT:
        return [slice(0, frames)]
    length = MOST_LOOKED_AT // SAMPLES
    return [slice(int(at), int(at) + length) for at in np.linspace(0, frames - length, SAMPLES)]


def _cut(problem: IkProblem, span: slice) -> IkProblem:
    rest = problem.rest if len(problem.rest) == 1 else problem.rest[span]
    return replace(problem, target=np.ascontiguousarray(problem.target[span]),
                   weight=np.ascontiguousarray(problem.weight[span]), rest=np.ascontiguousarray(rest))  # fmt: skip


def _bridges(posed: NDArray[np.bool_], first: int, rate: float) -> tuple[Note, ...]:
    return tuple(
        Note(
            f"frames {first + start} to {first + stop - 1} ({(stop - start) / rate:.2f} s) show too few markers: their "
            "pose is what smoothness gives, not what was seen", "problem", "crop them away",
        )
        for start, stop in find_runs(~posed)
        if stop - start > LONGEST_BRIDGE * rate
    )  # fmt: skip


def _noise(problem: IkProblem, q: Array) -> float:
    """Mean energy [J] times two that a marker's spring would hold along each axis if the model were exact."""
    seen = _posed(q)
    part = replace(problem, target=problem.target[seen], weight=problem.weight[seen],
                   rest=problem.rest if len(problem.rest) == 1 else problem.rest[seen])  # fmt: skip
    energy, _, stiffness, _ = differentiate(part, q[seen])
    diagonal = part.rest_springs.stiffness
    held = stiffness + np.diag(np.maximum(diagonal, 1e-9 * np.median(np.einsum("tii->i", stiffness) / len(stiffness))))
    used = np.trace(np.linalg.solve(held, stiffness), axis1=1, axis2=2).sum()
    return float(2.0 * energy.sum() / max(3.0 * np.count_nonzero(part.weight) - used, 1.0))


def _soften(problem: IkProblem, noise: float) -> IkProblem:
    """Pose springs in proportion to the noise: as stiff as given for markers 5 mm off, softer for better ones."""
    usual = POSE_STIFFNESS / MARKER_STIFFNESS * _per_metre(problem)
    holds = problem.rest_springs._replace(stiffness=problem.rest_springs.stiffness * min(1.0, max(noise / usual, SOFTEST)))
    return replace(problem, rest_springs=holds)


def _low_passed(problem: IkProblem, q: Array, rate: float) -> tuple[Array, tuple[Note, ...]]:
    """The converged pose of low-passed markers; markers not seen are put where the model has them."""
    whole = _interpolated(problem.model, q)
    model = _marker_places(problem, whole)
    seen = problem.weight > 0.0
    offset = np.where(seen[..., None], problem.target - model, np.nan)
    time = np.arange(len(q))
    for m in range(seen.shape[1]):
        rows = np.flatnonzero(seen[:, m])
        for axis in range(3):
            if 0 < len(rows) < len(time):
                offset[:, m, axis] = np.interp(time, rows, offset[rows, m, axis])
    worn = np.asarray(seen.any(axis=0))
    target = np.where(worn[:, None], model + np.where(worn[:, None], offset, 0.0), 0.0)
    notes: tuple[Note, ...] = ()
    if rate > 2.0 * CUTOFF:
        target = lowpass(target, rate, CUTOFF)
    else:
        notes = (Note(f"at {rate:g} Hz the smoother starts from unfiltered markers", "inferred"),)
    weight = np.broadcast_to(problem.weight.max(axis=0), seen.shape)
    filled = replace(problem, target=np.ascontiguousarray(target), weight=np.ascontiguousarray(weight))
    return solve_framewise(filled)[0], notes


def _interpolated(model: Model, q: Array) -> Array:
    """Coordinates with frames that have none put between their neighbours."""
    posed = _posed(q)
    if posed.all():
        return q
    rows, result = np.flatnonzero(posed), q.copy()
    for i, coordinate in enumerate(model.coordinates):
        values = q[rows, i]
        if coordinate.rotational:
            values = np.unwrap(values)
        result[~posed, i] = np.interp(np.flatnonzero(~posed), rows, values)
    return result


def _marker_places(problem: IkProblem, q: Array) -> Array:
    frames, bodies, markers = len(q), len(problem.model.bodies), len(problem.markers)
    seen = np.empty((frames, markers, 3))
    compute_body_poses(problem.search, q.copy(), np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3)), seen)
    return seen


def _mean_squares(grouping: Grouping, problem: IkProblem, q: Array) -> Array:
    """Mean square of every variable's snap."""
    square = np.mean(find_snap(grouping, problem.tree, q)[0] ** 2, axis=0)
    for family in set(grouping.family):
        members = grouping.plain[grouping.family == family]
        square[members] = square[members].mean()
    turning = np.array([problem.model.coordinates[c].rotational for c in problem.tree.free])
    for kind in (turning, ~turning):
        if kind.any():
            square[kind] = np.maximum(square[kind], FLAT**2 * np.median(square[kind]))
    return np.maximum(square, np.finfo(float).tiny ** 0.5)


def differentiate(problem: IkProblem, q: Array) -> tuple[Array, Array, Array, Array]:
    """Of the marker springs alone: energy (frames,), gradient (frames, n), and the two parts of the second derivative.

    The first part (frames, n, n) is Gauss and Newton's, the second what is lacking.
    """
    n = len(problem.tree.free)
    energy, gradient = np.empty(len(q)), np.empty((len(q), n))
    gauss, lacking = np.empty((len(q), n, n)), np.empty((len(q), n, n))
    search = SharedTuple(make_ik_search(problem.tree, problem.points))
    compute_frame_derivatives(
        search, np.zeros((1, n)), problem.target, problem.weight, q.copy(), energy, gradient, gauss, lacking
    )
    return energy, gradient, gauss, lacking


def hold(problem: IkProblem, q: Array) -> tuple[float, Array, Array]:
    """Energy, gradient and second derivatives (frames, n) of pose springs and stops."""
    x, holds = q[:, problem.tree.free], problem.rest_springs
    off = x - problem.rest
    stop = np.where(np.isfinite(holds.limit_stiffness), holds.limit_stiffness, 0.0)
    beyond = np.maximum(x - holds.upper, 0.0) + np.minimum(x - holds.lower, 0.0)
    energy = 0.5 * float((holds.stiffness * off**2).sum() + (stop * beyond**2).sum())
    return energy, holds.stiffness * off + stop * beyond, holds.stiffness + stop * (beyond != 0.0)


class System:
    """The whole energy about a motion, to second order, for any scale of the penalty."""

    def __init__(self, task: Task, q: Array) -> None:
        problem = task.problem
        self.task, self.q = task, q
        energy, self.pull, self.stiffness, self._lacking = differentiate(problem, q)
        self.marker_energy = float(energy.sum())
        self.held_energy, self.held_pull, self.held_stiffness = hold(problem, q)
        self._snap, self._changes = find_snap(task.grouping, problem.tree, q)
        self.snap_energy = 0.5 * float((task.weight * self._snap**2).sum())
        self.snap_pull = snap_gradient(task.grouping, self._changes, task.weight * self._snap)

    def energy(self, scale: float) -> float:
        """In J."""
        return self.marker_energy + self.held_energy + scale * self.snap_energy

    def gradient(self, scale: float) -> Array:
        """Of that energy (frames, n)."""
        return self.pull + self.held_pull + scale * self.snap_pull

    @cached_property
    def _rough(self) -> BandedMatrix:
        band = BandedMatrix(len(self.q), self.pull.shape[1], DIFFERENCE_ORDER)
        add_snap(self.task.grouping, self._changes, self.task.weight, band)
        return band

    def band(self, scale: float, share: float = 1.0, exact: bool = False) -> BandedMatrix:
        """The second derivative, the markers' part times a share; exact, or after Gauss and Newton."""
        band = BandedMatrix(len(self.q), self.pull.shape[1], DIFFERENCE_ORDER)
        np.multiply(self._rough.entry, scale, out=band.entry)
        band.add_blocks(self.stiffness + self._lacking if exact else self.stiffness, share)
        band.entry[:, :, 0] += self.held_stiffness
        return band

    def stopped(self, scale: float) -> NDArray[np.bool_]:
        """(frames, n) which variables are pushed against a stop that they cannot pass."""
        x, holds, gradient = self.q[:, self.task.problem.tree.free], self.task.problem.rest_springs, self.gradient(scale)
        outward = ((x <= holds.lower) & (gradient > 0.0)) | ((x >= holds.upper) & (gradient < 0.0))
        return outward & ~np.isfinite(holds.limit_stiffness)

    def fit(self, scale: float) -> tuple[float, float, float]:
        """Twice the spring energy after the next step, the freedom it uses up, and the numbers measured.

        Freedom used up is tr(H^-1 G), G the markers' share of the second derivative H: that is how fast log det H
        grows with the logarithm of that share.
        """
        factor = self.band(scale).factor()
        step = -factor.solve(self.gradient(scale))
        grown = self.band(scale, SHARE).factor().log_determinant - factor.log_determinant
        bent = (self.stiffness @ step[..., None])[..., 0]
        left = self.marker_energy + float((self.pull * step).sum() + 0.5 * (step * bent).sum())
        return 2.0 * left, grown / float(np.log(SHARE)), 3.0 * np.count_nonzero(self.task.problem.weight)


def choose_scale(systems: Sequence[System]) -> float:
    """The scale of the penalty of least generalised cross-validation about motions."""
    known: dict[float, float] = {}

    def look(power: float) -> float:
        if power not in known:
            try:
                left, used, count = np.sum([system.fit(10.0**power) for system in systems], axis=0)
            except NotPositiveDefiniteError:
                if power <= 0.0:
                    raise
                known[power] = np.inf  # so stiff that the markers are lost in its rounding: a second or less of motion
            else:
                known[power] = float(np.log(left / count) - 2.0 * np.log(1.0 - used / count))
        return known[power]

    best, step = 0.0, FIRST_STEP
    way = step if look(step) < look(0.0) else -step
    while SCALES[0] <= best + way <= SCALES[1] and look(best + way) < look(best):
        best += way
    while step > LAST_STEP:
        step /= 2.0
        best = min((best - step, best, best + step), key=look)
    low, high = look(best - step), look(best + step)
    bend = low - 2.0 * look(best) + high
    if 0.0 < bend < np.inf:  # the vertex of the parabola through the three
        best += 0.5 * step * (low - high) / bend
    return float(10.0**best)


def minimise_in_turn(task: Task, scale: float, start: Array) -> Array:
    """As `minimise`, in stretches that overlap where there are many frames: memory grows with a stretch only."""
    frames = len(start)
    if frames <= STRETCH:
        return minimise(task, scale, start)
    result, share = np.zeros_like(start), np.zeros(frames)
    count = int(np.ceil((frames - OVERLAP) / (STRETCH - OVERLAP)))
    for first in np.linspace(0, frames - STRETCH, count).astype(int):
        part = slice(int(first), int(first) + STRETCH)
        # each is trusted in its middle, and fades out where its own ends are felt
        inside = np.minimum(np.arange(STRETCH), np.arange(STRETCH)[::-1]) + 0.5
        fade = np.clip((inside - OVERLAP / 4.0) / (OVERLAP / 2.0), 1e-9, 1.0)
        fade = fade**3 * (10.0 - 15.0 * fade + 6.0 * fade**2)
        if first == 0:
            fade[: STRETCH // 2] = 1.0
        if part.stop == frames:
            fade[STRETCH // 2 :] = 1.0
        result[part] += fade[:, None] * minimise(replace(task, problem=_cut(task.problem, part)), scale, start[part])
        share[part] += fade
    return result / share[:, None]


def minimise(task: Task, scale: float, start: Array) -> Array:
    """The motion of least energy for a scale of the penalty, near a start.

    Gauss and Newton's method while steps are long, Newton's when they are short: far from the end the exact second
    derivative leads astray where it is nearly singular. Stops bend the energy sharply, and coordinates that lean on
    them come and go; what is still to be won is then far less than noise can tell.
    """
    free, holds = task.problem.tree.free, task.problem.rest_springs
    hard = ~np.isfinite(holds.limit_stiffness)
    system, exact = System(task, start), False
    for _ in range(MOST_ITERATIONS):
        step = _newton_step(system, scale, exact)
        length = 1.0
        while True:
            trial = system.q.copy()
            trial[:, free] += length * step
            trial[:, free[hard]] = np.clip(trial[:, free[hard]], holds.lower[hard], holds.upper[hard])
            moved = float(np.abs(trial - system.q).max())
            after = System(task, trial)
            if after.energy(scale) <= system.energy(scale) * (1.0 + ROUNDING) or moved <= LITTLE:
                break
            length *= 0.5
        won, system = system.energy(scale) - after.energy(scale), after
        exact = length == 1.0 and moved < SHORT
        if moved <= LITTLE or won < SURE * task.noise:
            break
    return system.q


def _newton_step(system: System, scale: float, exact: bool) -> Array:
    stopped = system.stopped(scale)
    pull = np.where(stopped, 0.0, system.gradient(scale))

    def factor(exact: bool) -> BandedCholesky:
        band = system.band(scale, exact=exact)
        if stopped.any():
            band.fix_variables(stopped)
        return band.factor()

    try:
        return -factor(exact).solve(pull)
    except NotPositiveDefiniteError:
        if not exact:
            raise
        return -factor(exact=False).solve(pull)

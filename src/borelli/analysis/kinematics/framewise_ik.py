"""Framewise inverse kinematics: each frame's pose minimizes the energy of springs between measured and model markers.

Every marker is a spring [N/m] from the measured position to the marker on the body; joints are rigid, joint limits are
springs, and weak springs to a rest pose determine what the markers do not. There is no lag at any rate. The pose of the
first frame is found from many initial orientations of the whole body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import Motion, make_motion, marker_points, match_markers, rotate, to_model_axes
from borelli.analysis.tree_kernels.marker_energy import Points, RestSprings
from borelli.analysis.tree_kernels.newton_ik import find_body_poses, make_ik_search, solve_ik_frames
from borelli.errors import BorelliError, SettingsError, unknown_name
from borelli.kernels.array_checks import as_number, check_array
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import marker_jacobians, root_coordinates
from borelli.model.model import Marker, Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.people.partial import unmarked_spine
from borelli.recording.objects import OBJECT_VARIABLES
from borelli.recording.recording import Note, Recording
from borelli.tree.kinematic_tree import Tree, make_tree

MARKER_STIFFNESS = 1000.0
"""[N/m] of a marker spring."""
POSE_STIFFNESS = 0.025
"""[N m/rad or N/m] to the rest pose: 1 rad off counts as much as a marker that is 5 mm off."""
SPINE_SD = 0.3
"""[rad] Standard deviation of the rotations of two joints of the trunk with no marker between them: else they rotate
against each other, to their limits, where the spine is a little too long."""
LIMIT_STIFFNESS = 10.0
"""[N m/rad or N/m] beyond a joint limit, in the search for poses; those that end there are solved within the limits."""
AT_LIMIT = 1e-9
"""Distance [rad or m] from a joint limit at which a coordinate is at it."""
MAX_LISTED = 8
"""Coordinates in a note, and spans of frames of each."""
MAX_ITERATIONS = 100
FIRST_POSES = 7
"""Frames in which a pose is searched without a neighboring one, where the first ends at a joint limit."""
RIGID_FIT_TOLERANCE = 1e-3
"""Fraction by which the energy of the rigid body may exceed its minimum."""
MIN_VISIBLE_MARKERS = 3
"""Visible markers that a frame needs for a pose."""
MAX_ENERGY_RATIO = 10.0
"""Energy, as a multiple of the median, above which a frame may be in a local minimum."""


@dataclass(frozen=True)
class IkProblem:
    """Model, markers and springs of an inverse kinematics problem, in model axes."""

    model: Model
    tree: Tree
    markers: tuple[Marker, ...]
    """Those of the model that the recording has."""
    points: Points
    target: Array
    """(frames, markers, 3) measured positions [m]; 0 where missing."""
    weight: Array
    """(frames, markers) [N/m]; 0 where missing."""
    rest_springs: RestSprings
    rest: Array
    """(1 or frames, variables) rest pose."""
    start: Array
    """(coordinates,) rest pose of all coordinates, also of those that do not vary."""

    @cached_property
    def search(self) -> Any:
        """Springs and work arrays shared with kernels: for one thread at a time."""
        return SharedTuple(make_ik_search(self.tree, self.points, self.rest_springs))

    @cached_property
    def bounded(self) -> IkProblem:
        """The problem with joint limits that no pose can pass."""
        springs = self.rest_springs
        return replace(self, rest_springs=springs._replace(limit_stiffness=np.full(len(springs.lower), inf)))

    def is_outside(self, q: Array) -> NDArray[np.bool_]:
        """Return whether each pose of q (frames, coordinates) is beyond a joint limit."""
        x = q[:, self.tree.free]
        return np.asarray(((x < self.rest_springs.lower) | (x > self.rest_springs.upper)).any(axis=1))

    def select(self, frames: NDArray[Any] | slice) -> IkProblem:
        """Return the problem of some of its frames."""
        rest = self.rest if len(self.rest) == 1 else self.rest[frames]
        target, weight, rest = map(np.ascontiguousarray, (self.target[frames], self.weight[frames], rest))
        return replace(self, target=target, weight=weight, rest=rest)

    def model_markers(self, q: Array) -> Array:
        """Return the positions (frames, markers, 3) [m] of the model's markers in poses q (frames, coordinates)."""
        return find_body_poses(self.tree, self.points, q.copy(), self.search)[2]


def motion_from_coordinates(
    problem: IkProblem, q: Array, recording: Recording, method: str, notes: tuple[Note, ...]
) -> Motion:
    """Return the motion with coordinates q (frames, coordinates) and the problem's markers."""
    measured = problem.target.copy()
    measured[problem.weight <= 0.0] = np.nan
    measured = rotate(measured, to_model_axes(problem.model))
    motion = make_motion(
        problem.model, q, recording.data["time"].values, recording.rate,
        tree=problem.tree, markers=problem.markers, measured=measured, recording=recording,
        settings={"method": method}, notes=notes,
    )  # fmt: skip
    objects = {name: recording.data[name] for name in OBJECT_VARIABLES if name in recording.data}
    return replace(motion, data=motion.data.assign(objects)) if objects else motion


def make_ik_problem(
    model: Model,
    recording: Recording,
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    fixed: tuple[str, ...] = (),
) -> IkProblem:
    """Return the inverse kinematics problem of a model and a recording; arguments as in `inverse_kinematics`."""
    names = [marker.name for marker in model.markers]
    stiffness = dict(weights) if isinstance(weights, Mapping) else dict.fromkeys(names, as_number("weights", weights))
    for name, value in stiffness.items():
        if name not in names:
            raise SettingsError(f"weights: {unknown_name('marker', name, names)}")
        if not 0.0 <= as_number(f"weights: Marker {name!r}", value) < inf:
            raise SettingsError(f"weights: Marker {name!r} has {value} N/m. Use zero or a positive number.")
    column = match_markers(model.markers, recording.markers)
    used = [i for i, k in enumerate(column) if k >= 0 and stiffness.get(names[i], 0.0) > 0.0]
    if not used:
        raise SettingsError(
            f"No marker of model {model.name!r} ({', '.join(names[:8]) or 'none'}) is in the recording "
            f"({', '.join(recording.markers[:8]) or 'none'}). Add the recording's marker set to the model "
            "(add_marker_set)."
        )
    markers = tuple(model.markers[i] for i in used)
    measured = rotate(recording.data["marker_position"].values[:, [column[i] for i in used]], to_model_axes(model).T)
    x, y, z = np.moveaxis(measured, -1, 0)
    # many systems write the origin for a missing marker
    visible = np.isfinite(x + y + z) & ((x != 0.0) | (y != 0.0) | (z != 0.0))
    measured[~visible] = 0.0
    tree = make_tree(model, fixed)
    start, springs = _rest_springs(model, tree, pose_stiffness, rest or {})
    return IkProblem(
        model, tree, markers, marker_points(model, markers), np.ascontiguousarray(measured, dtype=float),
        visible * np.array([stiffness[marker.name] for marker in markers]), springs, start[tree.free][None], start,
    )  # fmt: skip


def _rest_springs(
    model: Model, tree: Tree, pose_stiffness: Mapping[str, float] | float, rest: Mapping[str, float]
) -> tuple[Array, RestSprings]:
    """Return the rest pose (coordinates,) and the springs to it and at the joint limits."""
    coordinates = model.coordinates
    names = [c.name for c in coordinates]
    for name in (*rest, *(pose_stiffness if isinstance(pose_stiffness, Mapping) else ())):
        if name not in names:
            raise SettingsError(unknown_name("coordinate", name, names))
    root = set(root_coordinates(model))
    start = np.array([as_number(f"rest: {c.name!r}", rest.get(c.name, c.default)) for c in coordinates])
    if not isinstance(pose_stiffness, Mapping):
        buckling = unmarked_spine(model)
        pose_stiffness = {
            name: pose_stiffness / (SPINE_SD**2 if name in buckling else 1.0) for name in names if name not in root
        }
    stiffness = np.array([as_number(f"pose_stiffness: {name!r}", pose_stiffness.get(name, 0.0)) for name in names])
    free = tree.free
    springs = RestSprings(
        stiffness[free], start[free].copy(), np.array([coordinates[i].lower for i in free]),
        np.array([coordinates[i].upper for i in free]), np.full(len(free), LIMIT_STIFFNESS),
    )  # fmt: skip
    return start, springs


def solve_framewise(problem: IkProblem, before: Array | None = None) -> tuple[Array, tuple[Note, ...]]:
    """Return coordinates (frames, coordinates) of minimum energy, NaN where too few markers are visible; and notes.

    `before` (coordinates,) is the pose before the first frame, from which a part of a longer trial continues.
    """
    count = (problem.weight > 0.0).sum(axis=1)
    enough = np.flatnonzero(count >= MIN_VISIBLE_MARKERS)
    if not len(enough) and before is None:
        raise SettingsError(
            f"Model {problem.model.name!r}: Fewer than {MIN_VISIBLE_MARKERS} of its {len(problem.markers)} markers are "
            "visible in every frame. Check the markers with `borelli doctor`."
        )
    if not len(enough):
        firsts = []
    elif before is None:
        firsts = _find_first_poses(problem, enough, np.flatnonzero(count[enough] == count[enough].max()))
    else:
        firsts = [(0, before)]
    q = np.tile(problem.start, (len(enough), 1))
    energy, unlimited = np.full(len(enough), inf), np.full(len(enough), inf)
    steps = np.zeros(len(enough), np.int64)
    for seed, pose in firsts:
        for direction in (slice(seed, None), slice(seed, None, -1)):
            run = np.arange(len(enough))[direction]
            part = np.tile(pose, (len(run), 1))
            e, n = _minimize(problem, enough[run], part, True)
            unlimited[run] = np.minimum(e, unlimited[run])
            _apply_limits(problem, enough[run], part, e, n)
            less = ~(e >= energy[run])  # also where it is not a number
            q[run[less]], energy[run[less]], steps[run[less]] = part[less], e[less], n[less]
    notes = _leave_local_minima(problem, enough, q, energy, unlimited, steps) if len(enough) else []
    result = np.full((len(count), q.shape[1]), np.nan)
    result[enough] = q
    if len(enough) < len(count):
        text = f"{len(count) - len(enough)} of {len(count)} frames have no pose: fewer than {MIN_VISIBLE_MARKERS} "
        notes.append(Note(text + "markers are visible.", "problem", "crop the recording", code="frames_without_pose"))
    return result, tuple(notes)


def _find_first_poses(
    problem: IkProblem, frames: NDArray[np.int64], best: NDArray[np.int64]
) -> list[tuple[int, Array]]:
    """Return one index or two among `best` of these frames, and poses (coordinates,) found without a neighbor.

    The first is the median frame. A search from the rest pose may miss raised arms and end at joint limits; then that
    of several frames whose pose has the least energy follows.
    """
    middle = int(best[len(best) // 2])
    pose = find_initial_pose(problem, int(frames[middle]))
    x, springs = pose[problem.tree.free], problem.rest_springs
    if ((x > springs.lower) & (x < springs.upper)).all():
        return [(middle, pose)]
    found = []
    for i in best[np.linspace(0, len(best) - 1, FIRST_POSES).astype(int)]:
        other = find_initial_pose(problem, int(frames[i]))
        energy, _ = solve_poses(problem, frames[i : i + 1], other[None].copy(), chained=False)
        found.append((float(energy[0]), int(i), other))
    return [(middle, pose), min(found, key=lambda one: one[0])[1:]]


def solve_poses(
    problem: IkProblem, frames: NDArray[np.int64], q: Array, *, chained: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Minimize the energy of the poses q (frames, coordinates) of these frames, within joint limits, in place.

    With `chained`, each starts from the one before. Returns energies (frames,) [J] and iterations (frames,), negative
    where not converged. Springs at the limits let the search pass them; only poses that end beyond a limit are solved
    again with all limits as bounds, so that the limits take no time, and change nothing, where no pose is at them.
    """
    energy, count = _minimize(problem, frames, q, chained)
    _apply_limits(problem, frames, q, energy, count)
    return energy, count


def _apply_limits(
    problem: IkProblem, frames: NDArray[np.int64], q: Array, energy: Array, count: NDArray[np.int64]
) -> None:
    """Solve poses that are beyond a joint limit again with all limits as bounds, in place."""
    outside = np.flatnonzero(problem.is_outside(q))
    if len(outside):
        part = np.ascontiguousarray(q[outside])
        energy[outside], bounded = _minimize(problem.bounded, frames[outside], part, False)
        q[outside] = part
        # a search that ends at several limits may lack the last digits, but its pose is within them and near
        count[outside] = np.where(bounded > 0, bounded, count[outside])


def _minimize(
    problem: IkProblem, frames: NDArray[np.int64], q: Array, chained: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Minimize the energy of poses in place, as `solve_poses` does, with the limits of the problem."""
    check_array("coordinates", q, (len(frames), len(problem.tree.variable)))
    energy, count = np.zeros(len(frames)), np.zeros(len(frames), np.int64)
    some = problem.select(frames)
    solve_ik_frames(problem.search, some.rest, some.target, some.weight, q, MAX_ITERATIONS, chained, energy, count)
    return energy, count


def limit_notes(problem: IkProblem, q: Array, times: Array, first: int = 0) -> tuple[Note, ...]:
    """Return a note on coordinates that markers push to a joint limit, with their frames and times [s].

    Coordinates that move no marker are at their limits by the rest pose alone. `first` numbers the first frame.
    """
    x, springs = q[:, problem.tree.free], problem.rest_springs
    moves = _moves_markers(problem, q)
    texts = []

    def span(start: int, end: int) -> str:
        if end - start == 1:
            return f"{first + start} at {times[start]:.2f} s"
        return f"{first + start} to {first + end - 1}, {times[start]:.2f} to {times[end - 1]:.2f} s"

    for v, i in enumerate(problem.tree.free):
        coordinate = problem.model.coordinates[i]
        if not moves[i]:
            continue
        for limit, at in (
            (springs.lower[v], x[:, v] <= springs.lower[v] + AT_LIMIT),
            (springs.upper[v], x[:, v] >= springs.upper[v] - AT_LIMIT),
        ):
            spans = [span(start, end) for start, end in find_runs(at)]
            if spans:
                value = f"{np.degrees(limit):.0f} degrees" if coordinate.rotational else f"{limit:.3g} m"
                texts.append(f"{coordinate.name} at {value} (frames {'; '.join(spans[:MAX_LISTED])}{_more(spans)})")
    if not texts:
        return ()
    listed = "; ".join(texts[:MAX_LISTED]) + _more(texts)
    text = f"The markers push coordinates against the limits of their range: {listed}."
    action = "check the labels and the fit there, or change the range in the model"
    return (Note(text, "problem", action, code="coordinate_limits"),)


def _more(texts: list[str]) -> str:
    return f"; and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""


def _moves_markers(problem: IkProblem, q: Array) -> NDArray[np.bool_]:
    """Return whether each coordinate moves a marker in the first frame with a pose."""
    posed = q[np.isfinite(q).all(axis=1)][:1]
    jacobian = marker_jacobians(replace(problem.model, markers=problem.markers), posed)
    return np.asarray((jacobian != 0.0).any(axis=(0, 1, 2)))


def _leave_local_minima(
    problem: IkProblem,
    frames: NDArray[np.int64],
    q: Array,
    energy: Array,
    unlimited: Array,
    steps: NDArray[np.int64],
) -> list[Note]:
    """Solve frames of unusual energy again from their neighbors, in place.

    Unusual is what exceeds the median without limits, `unlimited`: a search that passes a limit far may follow another
    set of Cardan angles of the same pose, from which no pose within the limits is near, for the rest of the trial. The
    way forward repairs what follows a good frame, the way back what precedes it.
    """
    most = MAX_ENERGY_RATIO * np.median(unlimited)
    repaired = set()
    for direction in (1, -1):
        for i in np.flatnonzero((energy > most) | (steps < 0))[::direction]:
            for other in (i - direction, i + direction):
                if 0 <= other < len(q):
                    trial = q[other : other + 1].copy()
                    e, n = solve_poses(problem, frames[i : i + 1], trial, chained=False)
                    if e[0] < energy[i] * (1.0 - 1e-9):
                        q[i], energy[i], steps[i] = trial[0], e[0], n[0]
                        repaired.add(int(i))
    failed = steps < 0
    if failed.all():
        raise BorelliError(
            f"Inverse kinematics did not converge in any of {len(q)} frames ({MAX_ITERATIONS} iterations each). Check "
            "the markers with `borelli doctor`, and that the model has the recording's marker set."
        )
    q[failed] = np.nan
    notes = []
    if repaired:
        text = f"{len(repaired)} frames in a local minimum were solved again from a neighboring frame."
        notes.append(Note(text, "changed", code="local_minima"))
    if failed.any():
        first = int(frames[np.flatnonzero(failed)[0]])
        text = f"{int(failed.sum())} of {len(q)} frames did not converge and have no pose; the first is frame {first}."
        action = 'check the markers there with `borelli doctor`, or use method="smoothed"'
        notes.append(Note(text, "problem", action, code="frames_not_converged"))
    return notes


def find_initial_pose(problem: IkProblem, frame: int) -> Array:
    """Return a pose (coordinates,) of one frame, found without a neighboring frame.

    The rigid body is fitted from many orientations, and the best fits are solved with all joints. If a fit is as good
    as the best rigid fit possible, only that one is solved.
    """
    names = [c.name for c in problem.model.coordinates]
    root = root_coordinates(problem.model)
    start = problem.start
    frames = np.array([frame])
    if not root:
        q = start[None].copy()
        solve_poses(problem, frames, q, chained=False)
        return q[0]
    tree = make_tree(problem.model, tuple(n for n in names if n not in root))
    free = len(tree.free)
    springs = RestSprings(
        np.full(free, 1e-6), np.zeros(free), np.full(free, -inf), np.full(free, inf), np.full(free, 1.0)
    )
    rigid = replace(problem, tree=tree, rest_springs=springs, rest=np.zeros((1, free)))
    visible = problem.weight[frame] > 0.0
    centroid = problem.target[frame, visible].mean(axis=0)
    angles = [i for i in tree.free if problem.model.coordinates[i].rotational]
    translations = [i for i in tree.free if not problem.model.coordinates[i].rotational]
    orientations = np.array(list(product(np.arange(4) * np.pi / 2.0, repeat=len(angles))))
    q = np.tile(start, (len(orientations), 1))
    q[:, angles] = (orientations + np.pi) % (2.0 * np.pi) - np.pi
    if len(translations) == 3:
        q[:, translations] = centroid
    minimum = _min_rigid_energy(problem, frame)
    tried: list[tuple[float, Array]] = []
    for k in range(len(q)):
        energy = float(solve_poses(rigid, frames, q[k : k + 1], chained=False)[0][0])
        if energy <= minimum:
            tried = [(energy, q[k])]
            break
        if all(abs(energy - e) > 1e-6 * (1.0 + e) for e, _ in tried):
            tried.append((energy, q[k]))
    tried.sort(key=lambda pair: pair[0])
    q = np.array([pose for _, pose in tried[:4]])
    energies, steps = solve_poses(problem, np.repeat(frames, len(q)), q, chained=False)
    energies[steps <= 0] = inf
    best = int(energies.argmin())
    pose = q[best] if energies[best] < inf else start
    return _smallest_angles(problem, frames, angles, float(energies[best]), pose)


def _min_rigid_energy(problem: IkProblem, frame: int) -> float:
    """Return the least marker energy [J], plus a tolerance, of the body moved rigidly in its rest pose.

    Of two point clouds about their centroids it is half the sum of their squares, less the singular values of the sum
    of outer products, the last of them with the sign of its determinant (Kabsch 1978).
    """
    markers = problem.model_markers(problem.start[None])[0]
    weight = problem.weight[frame][:, None]
    own, measured = (x - (weight * x).sum(axis=0) / weight.sum() for x in (markers, problem.target[frame]))
    products = (weight * measured).T @ own
    singular = np.linalg.svd(products, compute_uv=False)
    size = 0.5 * float((weight * (own**2 + measured**2)).sum())
    minimum = size - float(singular[0] + singular[1] + np.sign(np.linalg.det(products)) * singular[2])
    return (1.0 + RIGID_FIT_TOLERANCE) * minimum + RIGID_FIT_TOLERANCE**2 * size


def _smallest_angles(
    problem: IkProblem, frames: NDArray[np.int64], angles: list[int], energy: float, pose: Array
) -> Array:
    """Return the same pose with the smallest Cardan angles of the root.

    Three rotations about perpendicular axes give the same orientation at (a, b, c) and (a + pi, pi - b, c + pi).
    """
    poses = [pose, pose.copy()]
    if len(angles) == 3:
        poses[1][angles] = np.array([np.pi, np.pi, np.pi]) + np.array([1.0, -1.0, 1.0]) * pose[angles]
    for q in poses:
        q[angles] = (q[angles] + np.pi) % (2.0 * np.pi) - np.pi
    other = poses[1][None].copy()
    energies, steps = solve_poses(problem, frames, other, chained=False)
    if steps[0] > 0 and energies[0] <= energy * (1.0 + 1e-9) + 1e-12:
        poses[1] = other[0]
    else:
        poses.pop()
    return min(poses, key=lambda q: float(np.sum(q[angles] ** 2)))

"""Pose: the motion of a model that follows a recording's markers.

Every marker pulls its place on the body with a spring of so many N/m; joints are rigid, stops are springs, and weak
springs draw the body to a rest pose where markers say little. *Converged*, each frame is brought to the least energy of
these springs: there is no lag, whatever the rate. The first frame is found from many ways the body may face.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import Motion, make_motion, match_markers, marker_points, to_model_axes, rotate
from borelli.analysis.tree_kernels.kinematic_tree import Tree, make_tree
from borelli.analysis.tree_kernels.marker_energy import Points, RestSprings
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, make_ik_search, solve_ik_frames
from borelli.errors import BorelliError, SettingsError, unknown_name
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import tree_links
from borelli.model.model import Marker, Model
from borelli.model.model_cache import cached_per_model
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]

METHODS = ("framewise", "smoothed", "marker_driven")
MARKER_STIFFNESS = 1000.0
"""[N/m] of a marker's spring."""
POSE_STIFFNESS = 0.025
"""[N m/rad or N/m] to the rest pose: with the above, 1 rad off counts as much as a marker 5 mm off (spec mocap, 1)."""
LIMIT_STIFFNESS = 10.0
"""[N m/rad or N/m] beyond a joint's range."""
MAX_ITERATIONS = 100
RIGID_FIT_TOLERANCE = 1e-3
"""Share by which the energy of a stiff body may exceed the least there is."""
MIN_VISIBLE_MARKERS = 3
"""A frame with fewer markers in view has no pose."""


@dataclass(frozen=True)
class IkProblem:
    """What the springs are: the model, its markers that the recording has, and where those were seen, in model axes."""

    model: Model
    tree: Tree
    markers: tuple[Marker, ...]
    points: Points
    target: Array
    """(frames, markers, 3) [m]; 0 where not seen."""
    weight: Array
    """(frames, markers) [N/m]; 0 where not seen."""
    rest_springs: RestSprings
    rest: Array
    """(1 or frames, variables)"""
    start: Array
    """(coordinates,) the rest pose, with what is no variable."""

    @cached_property
    def search(self) -> Any:
        """The springs with room to work, as kernels find them: for one thread at a time."""
        return SharedTuple(make_ik_search(self.tree, self.points, self.rest_springs))


def inverse_kinematics(
    model: Model,
    recording: Recording,
    *,
    method: str = "framewise",
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    hard_limits: bool = False,
    fixed: tuple[str, ...] = (),
    **dynamic: Any,
) -> Motion:
    """The motion with which the model follows the markers.

    Args:
        model: A model with markers, fitted or scaled to the subject.
        recording: Where the markers were seen.
        method: "framewise": each frame at its least energy. "smoothed": all frames together, smooth in time.
            "marker_driven": the body dragged by its markers through physics steps.
        weights: Stiffness of the markers [N/m]: one for all, or by name; a marker left out has none.
        pose_stiffness: Of the springs to the rest pose [N m/rad or N/m]: one for all but the root, or by coordinate.
        rest: The rest pose by coordinate [rad or m]; the model's defaults where it says nothing.
        hard_limits: Whether coordinates cannot pass their range at all; else stops are springs.
        fixed: Coordinates kept at their rest.
        dynamic: Further settings of the dynamic method, those of `drag`: `substeps`, `ground`, `softness`,
            `rest_torque`.

    Raises:
        SettingsError: unknown method, setting, marker or coordinate, or no marker in common.
    """
    if method not in METHODS:
        raise SettingsError(unknown_name("method", method, METHODS))
    problem = make_ik_problem(model, recording, weights, pose_stiffness, rest, hard_limits, fixed)
    if method == "marker_driven":
        from borelli.analysis.stepped.marker_driven_ik import MARKER_DRIVEN_OPTIONS, marker_driven_ik

        for name in dynamic:
            if name not in MARKER_DRIVEN_OPTIONS:
                raise SettingsError(unknown_name("setting of the dynamic method", name, MARKER_DRIVEN_OPTIONS))
        return marker_driven_ik(problem, recording, **dynamic)
    if dynamic:
        raise SettingsError(f"the {method} method has no setting {next(iter(dynamic))!r}; the dynamic method may")
    if method == "smoothed":
        from borelli.analysis.kinematics.trajectory_smoother import smooth_markers

        q, notes = smooth_markers(problem, recording)
    else:
        q, notes = solve_framewise(problem)
    return motion_from_coordinates(problem, q, recording, method, notes)


def motion_from_coordinates(problem: IkProblem, q: Array, recording: Recording, method: str, notes: tuple[Note, ...]) -> Motion:
    """The motion of the coordinates found."""
    turn = to_model_axes(problem.model)
    measured = problem.target.copy()
    measured[problem.weight <= 0.0] = np.nan
    measured = rotate(measured, turn)
    return make_motion(
        problem.model, q, recording.data["time"].values, recording.rate,
        tree=problem.tree, markers=problem.markers, measured=measured, recording=recording,
        settings={"method": method}, notes=notes,
    )  # fmt: skip


def make_ik_problem(
    model: Model,
    recording: Recording,
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    hard_limits: bool = False,
    fixed: tuple[str, ...] = (),
) -> IkProblem:
    """The springs of a model and a recording; arguments as those of `inverse_kinematics`."""
    names = [marker.name for marker in model.markers]
    stiffness = dict.fromkeys(names, weights) if isinstance(weights, (int, float)) else dict(weights)
    for name, value in stiffness.items():
        if name not in names:
            raise SettingsError(f"weights: {unknown_name('marker', name, names)}")
        if not 0.0 <= value < inf:
            raise SettingsError(f"weights: marker {name!r} has {value} N/m, but must be zero or positive")
    found = match_markers(model.markers, recording.markers)
    used = [i for i, k in enumerate(found) if k >= 0 and stiffness.get(names[i], 0.0) > 0.0]
    if not used:
        raise SettingsError(
            f"no marker of model {model.name!r} is in the recording: it wears {', '.join(names[:8]) or 'none'}; "
            f"the recording has {', '.join(recording.markers[:8]) or 'none'}. Give the model the recording's marker set"
        )
    markers = tuple(model.markers[i] for i in used)
    seen = rotate(recording.data["marker_position"].values[:, [found[i] for i in used]], to_model_axes(model).T)
    x, y, z = np.moveaxis(seen, -1, 0)
    # what lies exactly at the origin was not seen: many systems write that for a marker they lost
    visible = np.isfinite(x + y + z) & ((x != 0.0) | (y != 0.0) | (z != 0.0))
    seen[~visible] = 0.0
    tree = make_tree(model, fixed=fixed)
    given = np.array([stiffness[marker.name] for marker in markers])
    start, holds = _holds(model, tree, pose_stiffness, rest or {}, hard_limits)
    return IkProblem(
        model, tree, markers, marker_points(model, markers), np.ascontiguousarray(seen, dtype=float),
        visible * given, holds, start[tree.free][None], start,
    )  # fmt: skip


def _holds(
    model: Model, tree: Tree, pose_stiffness: Mapping[str, float] | float, rest: Mapping[str, float], hard: bool
) -> tuple[Array, RestSprings]:
    coordinates = model.coordinates
    names = [c.name for c in coordinates]
    for name in (*rest, *(pose_stiffness if isinstance(pose_stiffness, Mapping) else ())):
        if name not in names:
            raise SettingsError(unknown_name("coordinate", name, names))
    root = set(root_coordinates(model))
    resting = np.array([rest.get(c.name, c.default) for c in coordinates])
    if isinstance(pose_stiffness, Mapping):
        stiff = np.array([pose_stiffness.get(name, 0.0) for name in names])
    else:
        stiff = np.array([0.0 if name in root else float(pose_stiffness) for name in names])
    free = tree.free
    stop = np.full(len(free), inf if hard else LIMIT_STIFFNESS)
    holds = RestSprings(
        stiff[free], resting[free].copy(), np.array([coordinates[i].lower for i in free]),
        np.array([coordinates[i].upper for i in free]), stop,
    )  # fmt: skip
    return resting, holds


@cached_per_model
def root_coordinates(model: Model) -> tuple[str, ...]:
    """Coordinates of the joint that carries the body through the world: that on the ground which moves most bodies."""
    links = tree_links(model)
    carried = [1] * len(model.bodies)
    for link in reversed(links):
        if link.parent >= 0:
            carried[link.parent] += carried[link.child]
    on_ground = [link for link in links if link.parent < 0]
    if not on_ground:
        return ()
    first = max(on_ground, key=lambda link: carried[link.child])
    child = model.bodies[first.child].name
    joint = next(j for j in model.joints if j.child == child and not j.closes_loop)
    return tuple(c.name for c in joint.coordinates) if len(joint.coordinates) >= 3 else ()


def solve_framewise(problem: IkProblem) -> tuple[Array, tuple[Note, ...]]:
    """Coordinates (frames, coordinates) of least energy in every frame; not a number where too little is seen."""
    count = (problem.weight > 0.0).sum(axis=1)
    enough = np.flatnonzero(count >= MIN_VISIBLE_MARKERS)
    if not len(enough):
        raise SettingsError(
            f"no frame shows {MIN_VISIBLE_MARKERS} of the {len(problem.markers)} markers of model {problem.model.name!r}"
        )
    most = enough[count[enough] == count[enough].max()]
    seed = int(np.argmin(np.abs(enough - most[len(most) // 2])))
    q = np.tile(problem.start, (len(enough), 1))
    q[seed] = find_initial_pose(problem, int(enough[seed]))
    energy = np.zeros(len(enough))
    steps = np.zeros(len(enough), np.int64)
    for way in (slice(seed, None), slice(seed, None, -1)):
        run = np.arange(len(enough))[way]
        part = np.ascontiguousarray(q[run])
        e, n = solve_poses(problem, enough[run], part, chained=True)
        q[run], energy[run], steps[run] = part, e, n
    notes = list(_repair(problem, enough, q, energy, steps))
    result = np.full((len(count), q.shape[1]), np.nan)
    result[enough] = q
    if len(enough) < len(count):
        notes.append(
            Note(f"{len(count) - len(enough)} of {len(count)} frames show fewer than {MIN_VISIBLE_MARKERS} markers: "
                 "they have no pose", "problem", "crop them away")
        )  # fmt: skip
    return result, tuple(notes)


def solve_poses(
    problem: IkProblem, frames: NDArray[np.int64], q: Array, *, chained: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Brings poses to their least energy in place; energies and iterations."""
    energy, count = np.zeros(len(frames)), np.zeros(len(frames), np.int64)
    rest = problem.rest if len(problem.rest) == 1 else problem.rest[frames]
    solve_ik_frames(
        problem.search, np.ascontiguousarray(rest), np.ascontiguousarray(problem.target[frames]),
        np.ascontiguousarray(problem.weight[frames]), q, MAX_ITERATIONS, chained, energy, count,
    )  # fmt: skip
    return energy, count


def _repair(
    problem: IkProblem, frames: NDArray[np.int64], q: Array, energy: Array, steps: NDArray[np.int64]
) -> list[Note]:
    """Frames caught in a wrong minimum, told by an energy far above their neighbours', are tried from those."""
    usual = np.median(energy)
    mended = 0
    for i in np.flatnonzero((energy > 10.0 * usual) | (steps < 0)):
        for other in (i - 1, i + 1):
            if 0 <= other < len(q):
                trial = q[other : other + 1].copy()
                e, n = solve_poses(problem, frames[i : i + 1], trial, chained=False)
                if e[0] < energy[i] * (1.0 - 1e-9):
                    q[i], energy[i], steps[i] = trial[0], e[0], n[0]
                    mended += 1
    stuck = steps < 0
    if stuck.all():
        raise BorelliError(
            f"none of {len(q)} frames found a pose of least energy in {MAX_ITERATIONS} iterations: check the markers "
            "with `borelli doctor`, and that the model wears the recording's marker set"
        )
    q[stuck] = np.nan
    notes = [Note(f"{mended} frames were posed anew from a neighbour", "changed")] if mended else []
    if stuck.any():
        first = int(frames[np.flatnonzero(stuck)[0]])
        notes.append(
            Note(f"{int(stuck.sum())} of {len(q)} frames found no pose of least energy and have none, the first is "
                 f"frame {first}", "problem", "check the markers there with `borelli doctor`, or use method=\"smoothed\"")
        )  # fmt: skip
    return notes


def find_initial_pose(problem: IkProblem, frame: int) -> Array:
    """A pose for one frame, found without a neighbour: the whole body turned every way, the best ways settled.

    A way that leads to where the stiff body fits as well as it can at all is the only one that is settled.
    """
    names = [c.name for c in problem.model.coordinates]
    root = root_coordinates(problem.model)
    start = problem.start
    frames = np.array([frame])
    if not root:
        q = start[None].copy()
        solve_poses(problem, frames, q, chained=False)
        return q[0]
    rigid = make_tree(problem.model, fixed=tuple(n for n in names if n not in root))
    free = len(rigid.free)
    only = IkProblem(
        problem.model, rigid, problem.markers, problem.points, problem.target, problem.weight,
        RestSprings(np.full(free, 1e-6), np.zeros(free), np.full(free, -inf), np.full(free, inf), np.full(free, 1.0)),
        np.zeros((1, free)), start,
    )  # fmt: skip
    seen = problem.weight[frame] > 0.0
    middle = problem.target[frame, seen].mean(axis=0)
    turns = [i for i in rigid.free if problem.model.coordinates[i].rotational]
    shifts = [i for i in rigid.free if not problem.model.coordinates[i].rotational]
    ways = np.array(list(product(np.arange(4) * np.pi / 2.0, repeat=len(turns))))
    q = np.tile(start, (len(ways), 1))
    q[:, turns] = (ways + np.pi) % (2.0 * np.pi) - np.pi
    if len(shifts) == 3:
        q[:, shifts] = middle
    least = _least_rigid(problem, frame)
    tried: list[tuple[float, Array]] = []
    for k in range(len(q)):
        energy = float(solve_poses(only, frames, q[k : k + 1], chained=False)[0][0])
        if energy <= least:
            tried = [(energy, q[k])]
            break
        if all(abs(energy - e) > 1e-6 * (1.0 + e) for e, _ in tried):
            tried.append((energy, q[k]))
    tried.sort(key=lambda pair: pair[0])
    q = np.array([pose for _, pose in tried[:4]])
    reached, steps = solve_poses(problem, np.repeat(frames, len(q)), q, chained=False)
    reached[steps <= 0] = inf
    best = int(reached.argmin())
    return _small_angles(problem, frames, turns, float(reached[best]), q[best] if reached[best] < inf else start)


def _least_rigid(problem: IkProblem, frame: int) -> float:
    """The energy [J] of the markers, and a little, that no place of the body, stiff as it rests, falls short of.

    Of two clouds about their middles that is half the sum of their squares, less the singular values of the sum of
    outer products, the last of them with the sign of its determinant (Kabsch 1978).
    """
    seen = np.empty((1, len(problem.markers), 3))
    bodies = len(problem.model.bodies)
    start = problem.start[None].copy()
    compute_body_poses(problem.search, start, np.empty((1, bodies, 3)), np.empty((1, bodies, 3, 3)), seen)
    weight = problem.weight[frame][:, None]
    own, there = (cloud - (weight * cloud).sum(axis=0) / weight.sum() for cloud in (seen[0], problem.target[frame]))
    products = (weight * there).T @ own
    fits = np.linalg.svd(products, compute_uv=False)
    size = 0.5 * float((weight * (own**2 + there**2)).sum())
    least = size - float(fits[0] + fits[1] + np.sign(np.linalg.det(products)) * fits[2])
    return (1.0 + RIGID_FIT_TOLERANCE) * least + RIGID_FIT_TOLERANCE**2 * size


def _small_angles(problem: IkProblem, frames: NDArray[np.int64], turns: list[int], energy: float, pose: Array) -> Array:
    """The same pose with the root's Cardan angles as near to zero as may be.

    Three turns about square axes reach a rotation twice, at (a, b, c) and (a + pi, pi - b, c + pi).
    """
    ways = [pose, pose.copy()]
    if len(turns) == 3:
        ways[1][turns] = np.array([np.pi, np.pi, np.pi]) + np.array([1.0, -1.0, 1.0]) * pose[turns]
    for way in ways:
        way[turns] = (way[turns] + np.pi) % (2.0 * np.pi) - np.pi
    other = ways[1][None].copy()
    reached, steps = solve_poses(problem, frames, other, chained=False)
    if steps[0] > 0 and reached[0] <= energy * (1.0 + 1e-9) + 1e-12:
        ways[1] = other[0]
    else:
        ways.pop()
    return min(ways, key=lambda way: float(np.sum(way[turns] ** 2)))

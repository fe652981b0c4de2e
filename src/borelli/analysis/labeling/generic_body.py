"""Generic human posed to points: candidate marker positions on it, prior pose, and the search for poses and size.

All lengths of `human` are proportional to stature, so one model of fixed size serves for all heights: measured points
are divided by the scale instead. Each frame's pose minimizes

    sum_m w_m |x_m(q) - y_m / s|^2 + sum_i ((q_i - rest_i) / sd_i)^2 + joint limits

with the kernels of inverse kinematics; the scale s, common to all frames, has a closed form for given poses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.marker_energy import Points, RestSprings
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, make_ik_search, solve_ik_frames
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.landmark_atlas import segment_of
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.people.human import human
from borelli.tree.kinematic_tree import Tree, make_tree

HEIGHT = 1.75
"""Height [m] of the generic model, at scale 1."""
MEAN_HEIGHT, HEIGHT_SD = 1.70, 0.15
"""Prior of a person's height [m]."""
POSE_SD = {
    "root": 0.3, "sacral": 0.2, "lumbar": 0.2, "neck": 0.3, "head": 0.3, "clavicle": 0.15, "shoulder": 0.7,
    "elbow": 0.7, "wrist": 0.4, "hip": 0.5, "knee": 0.5, "ankle": 0.35, "toe": 0.25,
}  # fmt: skip
"""Prior standard deviations [rad] of the angles by the first word of their names, about an upright pose."""
TWIST_SD = 0.25
"""[rad] of rotations about the long axes of thigh and shank, and of hip adduction, in an upright person."""
REST = {"shoulder_adduction": -0.15, "elbow_flexion": 0.4, "knee_flexion": 0.2, "hip_flexion": 0.1}
"""Angles [rad] of the prior pose; the others are zero."""
LIMIT_SD = 0.1
"""[rad] by which a joint may exceed its range of motion."""


class Places(NamedTuple):
    """Positions on the generic human where markers may be."""

    landmark: tuple[str, ...]
    side: tuple[str, ...]
    kind: tuple[str, ...]
    body: tuple[str, ...]
    position: Array
    """(places, 3) in the frames of the bodies [m]."""
    cost: Array
    """(places,) squared distance [m^2] added to that of a point: rare landmarks cost more."""

    @property
    def segment(self) -> tuple[str, ...]:
        """Segment of each place, without its side."""
        return tuple(map(segment_of, self.body))

    def select(self, indices: Sequence[int] | NDArray[np.int64]) -> Places:
        """Return some of the places."""
        names = ([column[i] for i in indices] for column in self[:4])
        rows = (column[list(indices)] for column in self[4:])
        return Places(*map(tuple, names), *rows)  # type: ignore[arg-type]


class Poses(NamedTuple):
    """Poses of several starts, each in the same frames."""

    q: Array
    """(starts, frames, coordinates)"""
    scale: Array
    """(starts,) height over `HEIGHT`."""

    def select(self, starts: Sequence[int] | NDArray[np.int64]) -> Poses:
        """Return some of the starts."""
        return Poses(self.q[list(starts)].copy(), self.scale[list(starts)].copy())


@cache
def generic_model() -> Model:
    """Return the generic human."""
    return human(height=HEIGHT)


@cache
def _coordinates() -> dict[str, int]:
    return {c.name: i for i, c in enumerate(generic_model().coordinates)}


_LIMB_JOINTS = {"arm": ("clavicle", "shoulder", "elbow", "wrist"), "leg": ("hip", "knee", "ankle", "toe")}


def limb_angles(limb: str, sides: str, changes: Mapping[str, float]) -> dict[int, float]:
    """Return coordinates and angles [rad] of limbs in the prior pose but for some changes.

    Args:
        limb: "arm" or "leg".
        sides: "r", "l" or "rl".
        changes: Angles [rad] by names without side.
    """
    chosen = {
        index: float(rest_pose()[index])
        for name, index in _coordinates().items()
        if name.split("_")[0] in _LIMB_JOINTS[limb] and name[-1] in sides
    }
    return chosen | {_coordinates()[f"{name}_{side}"]: value for name, value in changes.items() for side in sides}


@cache
def rest_pose() -> Array:
    """Return the coordinates (coordinates,) of the prior pose, upright at the origin facing x."""
    q = np.zeros(len(_coordinates()))
    for name, index in _coordinates().items():
        q[index] = REST.get(name.removesuffix("_r").removesuffix("_l"), 0.0)
    return q


def _prior_sd(name: str) -> float:
    if name in ("root_x", "root_y", "root_z", "root_yaw"):
        return np.inf
    twist = name.startswith(("hip_rotation", "knee_rotation", "hip_adduction"))
    return TWIST_SD if twist else POSE_SD[name.split("_")[0]]


@cache
def _rest_springs() -> RestSprings:
    coordinates, free = generic_model().coordinates, _tree().free
    sd = np.array([_prior_sd(coordinates[i].name) for i in free])
    lower, upper = (np.array([getattr(coordinates[i], side) for i in free]) for side in ("lower", "upper"))
    return RestSprings(1.0 / sd**2, rest_pose()[free].copy(), lower, upper, np.full(len(free), 1.0 / LIMIT_SD**2))


def prior_energies(q: Array) -> Array:
    """Return the squared deviations of poses (..., coordinates) from the prior pose and its ranges, in units of sd."""
    springs, angles = _rest_springs(), q[..., _tree().free]
    beyond = np.maximum(springs.lower - angles, 0.0) + np.maximum(angles - springs.upper, 0.0)
    energy = springs.stiffness * (angles - springs.rest) ** 2 + springs.limit_stiffness * beyond**2
    return np.asarray(energy.sum(axis=-1))


@cache
def _tree() -> Tree:
    return make_tree(generic_model())


class PoseSearch:
    """Search for poses and scale of the generic human at which places meet points."""

    def __init__(self, places: Places) -> None:
        index = {body.name: i for i, body in enumerate(generic_model().bodies)}
        bodies = np.array([index[name] for name in places.body], dtype=np.int64)
        self.points = Points(bodies, np.ascontiguousarray(places.position, dtype=float).copy())
        self._search = SharedTuple(make_ik_search(_tree(), self.points, _rest_springs()))

    def body_poses(self, q: Array) -> tuple[Array, Array, Array]:
        """Return positions, rotations and places (frames, ...) in poses q (frames, coordinates), at scale 1."""
        frames, bodies = len(q), len(generic_model().bodies)
        position, rotation = np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3))
        place = np.empty((frames, len(self.points.body), 3))
        compute_body_poses(self._search, q.copy(), position, rotation, place)
        return position, rotation, place

    def place_positions(self, poses: Poses) -> Array:
        """Return the positions [m] of all places (starts, frames, places, 3), at the scale of each start."""
        starts, frames, n = poses.q.shape
        place = self.body_poses(poses.q.reshape(-1, n))[2].reshape(starts, frames, -1, 3)
        return np.asarray(place * poses.scale[:, None, None, None])

    def solve(self, poses: Poses, target: Array, weight: Array, iterations: int) -> Poses:
        """Return the poses after Newton steps towards targets (starts, frames, places, 3) [m] with weights [1/m^2]."""
        starts, frames, n = poses.q.shape
        q = np.ascontiguousarray(poses.q.reshape(-1, n)).copy()
        scaled = np.ascontiguousarray((target / poses.scale[:, None, None, None]).reshape(starts * frames, -1, 3))
        energy, count = np.zeros(len(q)), np.zeros(len(q), np.int64)
        weights = np.ascontiguousarray(weight.reshape(starts * frames, -1))
        rest = rest_pose()[_tree().free][None].copy()
        solve_ik_frames(self._search, rest, scaled, weights, q, iterations, False, energy, count)
        return Poses(q.reshape(starts, frames, n), poses.scale)


def fit_scale(places: Array, target: Array, weight: Array, height: float, height_sd: float) -> Array:
    """Return the scale of each start at which its places best match the targets, given a prior of the height.

    Args:
        places: Places (starts, frames, places, 3) at scale 1 [m].
        target: Points they belong to, of the same shape [m].
        weight: (starts, frames, places) [1/m^2]; 0: no point.
        height: Expected height [m].
        height_sd: Its standard deviation [m].
    """
    w = weight[..., None]
    total = np.maximum(w.sum(axis=2, keepdims=True), 1e-12)
    own = places - (w * places).sum(axis=2, keepdims=True) / total
    measured = target - (w * target).sum(axis=2, keepdims=True) / total
    prior = (HEIGHT / height_sd) ** 2
    numerator = (w * own * measured).sum(axis=(1, 2, 3)) + prior * height / HEIGHT
    return np.asarray(numerator / ((w * own**2).sum(axis=(1, 2, 3)) + prior))


def start_poses(yaw: Array, root: Array, scale: float, changes: Sequence[dict[str, float]] = ({},)) -> Poses:
    """Return upright poses with these headings (starts, frames) [rad] and root positions (frames, 3) [m].

    Args:
        yaw: Heading of each start in each frame [rad].
        root: Position of the midpoint of the hips [m].
        scale: Height over `HEIGHT`.
        changes: Angles [rad] that differ from the prior pose; of both sides if the name has none. Every heading
            starts with each of them.
    """
    index = _coordinates()
    starts = []
    for angles in changes:
        q = np.tile(rest_pose(), (*yaw.shape, 1))
        for name, value in angles.items():
            for key in (name,) if name in index else (f"{name}_r", f"{name}_l"):
                q[..., index[key]] = value
        q[..., index["root_yaw"]] = yaw
        for i, axis in enumerate("xyz"):
            q[..., index[f"root_{axis}"]] = root[:, i] / scale
        starts.append(q)
    return Poses(np.concatenate(starts), np.full(len(changes) * len(yaw), scale))

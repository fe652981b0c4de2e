"""Soles: points of a model's feet that may be in contact with the ground.

Each foot has five: two under the heel, two under the ball, one under the toes. Length and breadth of the foot follow
from the shapes of its bodies, or from the bones of OpenSim's feet, whose heel is at the origin of `calcn` and whose
ball is at the toe joint. A fitted foot may be rotated or displaced relative to the real one by centimeters while its
markers fit. So its position follows from its markers, if there are some on heel and forefoot, and its up direction from
its orientation while it is slowest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import marker_points, to_model_axes
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.errors import ModelError
from borelli.model.model import Body, Model, Shape
from borelli.model.model_cache import cached_per_model
from borelli.model.transforms import orientation_matrix
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.landmarks import identify_landmarks
from borelli.tree.kinematic_tree import make_tree

FEET = ("right", "left")
POINTS = ("heel_medial", "heel_lateral", "ball_medial", "ball_lateral", "toe")
HEEL_INSET, TOE_INSET = 0.08, 0.08
"""Distance of the points of heel and toes from the foot's ends, as fractions of its length: flesh is round."""
PAIR_WIDTH = 0.6
"""Distance of the points of a pair as a fraction of the foot's breadth."""
BALL_FRACTION = 0.73
"""Position of the ball on a foot without a toe body, as a fraction of its length (Drillis and Contini 1966)."""
BONE_BALL, BONE_TOES, BONE_BREADTH = 0.1788, 0.07, 0.09
"""OpenSim's unscaled foot (Delp et al. 1990) [m]: heel to ball, ball to tip, and its breadth with flesh."""
FLESH_THICKNESS = 0.01
"""Flesh in front of and behind the bones, and distance of a marker's center behind the heel [m]."""
_SIDES = {"right": r"(?:^|[_. ])(?:r|rt|right)(?:$|[_. ])|^right", "left": r"(?:^|[_. ])(?:l|lt|left)(?:$|[_. ])|^left"}
_FOOT, _TOES = r"calcn|calcaneus|foot|heel", r"toe|tarsal"
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
_OUTER, _INNER = ("mt5", "mt5_base", "toe_small"), ("mt1", "mt1_base")
"""Landmarks at the outer and the inner edge of the forefoot."""


@dataclass(frozen=True)
class Soles:
    """Points under the feet, those of the right foot first."""

    bodies: tuple[str, ...]
    """The body of each point."""
    positions: Array
    """(points, 3) [m] in the frames of those bodies."""
    foot: NDArray[np.int64]
    """(points,) 0 for the right foot, 1 for the left."""
    names: tuple[str, ...]
    """Names of the points, such as "right heel_medial"."""


@dataclass(frozen=True)
class _Outline:
    """A foot in the model's default pose, in lab axes [m]; the back of the heel is its origin."""

    heel: Array
    """(2,) horizontal position of its back end."""
    bottom: float
    ahead: Array
    """(2,) horizontal unit vector to the toes."""
    length: float
    ball: float
    """Distance from the heel."""
    breadth: float


def find_soles(model: Model, up: Sequence[Array] | None = None) -> Soles:
    """Return the points under the feet of a model.

    `up` is the up direction in the frames of the bodies of the right and the left foot while they are flat on the
    ground. Default: that of the model's default pose.
    """
    bodies: list[str] = []
    positions: list[Array] = []
    for k, side in enumerate(FEET):
        foot, toes = foot_bodies(model, side)
        poses, outline = _default_foot(model, side)
        if up is not None:
            upright, height = _smallest_rotation(poses[foot.name][0] @ up[k]), poses[foot.name][1][2]
            poses = {name: (upright @ rotation, upright @ origin) for name, (rotation, origin) in poses.items()}
            # the ankle keeps its height above the sole: a sole rotated with its box would lower its ends
            drop = height - poses[foot.name][1][2]
            outline = replace(_outline(model, foot, toes, poses), bottom=outline.bottom - drop)
        outline = _fit_to_markers(model, tuple(poses), side, poses, outline)
        front = toes if toes is not None and toes.shapes else foot
        owners = [foot.name] * 4 + [front.name]
        for owner, point in zip(owners, _points(outline, side), strict=True):
            rotation, origin = poses[owner]
            positions.append(rotation.T @ (point - origin))
        bodies += owners
    names = tuple(f"{side} {point}" for side in FEET for point in POINTS)
    return Soles(tuple(bodies), np.array(positions), np.repeat(np.arange(len(FEET)), len(POINTS)), names)


@cached_per_model
def _default_foot(model: Model, side: str) -> tuple[dict[str, tuple[Array, Array]], _Outline]:
    """Return rotation and origin of the bodies of a foot in the default pose, lab axes; and its outline."""
    axes, (position, rotation) = to_model_axes(model), _default_poses(model)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    foot, toes = foot_bodies(model, side)
    poses = {
        body.name: (axes.T @ rotation[index[body.name]], axes.T @ position[index[body.name]])
        for body in (foot, toes)
        if body is not None
    }
    return poses, _outline(model, foot, toes, poses)


@cached_per_model
def _default_poses(model: Model) -> tuple[Array, Array]:
    """Return positions (bodies, 3) and rotations (bodies, 3, 3) of the default pose."""
    q = np.array([[c.default for c in model.coordinates]])
    position, rotation, _ = find_body_poses(make_tree(model), marker_points(model, ()), q)
    return position[0], rotation[0]


@cached_per_model
def default_soles(model: Model) -> Soles:
    """Return the points under the feet in the default pose."""
    return find_soles(model)


def foot_names(model: Model) -> tuple[str, ...]:
    """Return the bodies of the right foot and of the left."""
    return tuple(foot_bodies(model, side)[0].name for side in FEET)


def _smallest_rotation(vector: Array) -> Array:
    """Return the smallest rotation that turns a unit vector upward (Rodrigues)."""
    x, y, z = vector
    if z <= -1.0 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    cross = np.array([[0.0, 0.0, -x], [0.0, 0.0, -y], [x, y, 0.0]])
    return np.asarray(np.eye(3) + cross + cross @ cross / (1.0 + z))


def _points(outline: _Outline, side: str) -> Array:
    """Return the points (5, 3) in lab axes."""
    inward = _inward(outline.ahead, side) * 0.5 * PAIR_WIDTH * outline.breadth
    back, tip = HEEL_INSET * outline.length, (1.0 - TOE_INSET) * outline.length
    flat = [
        outline.heel + along * outline.ahead + across * inward
        for along, across in ((back, 1.0), (back, -1.0), (outline.ball, 1.0), (outline.ball, -1.0), (tip, 0.0))
    ]
    return np.array([[*point, outline.bottom] for point in flat])


def _inward(ahead: Array, side: str) -> Array:
    """Return the horizontal unit vector towards the midline of the body."""
    return np.array([-ahead[1], ahead[0]]) * (1.0 if side == "right" else -1.0)


@cached_per_model
def foot_bodies(model: Model, side: str) -> tuple[Body, Body | None]:
    """Return the body of a foot and that of its toes, if there is one."""
    of_side = [body for body in model.bodies if re.search(_SIDES[side], body.name.lower())]
    toes = next((body for body in of_side if re.search(_TOES, body.name.lower())), None)
    feet = [body for body in of_side if re.search(_FOOT, body.name.lower()) and body is not toes]
    if not feet:
        raise ModelError(
            f"Model {model.name!r} has no {side} foot. To predict ground reaction forces, name a body such as "
            f"foot_{side[0]} or calcn_{side[0]} (bodies: {', '.join(body.name for body in model.bodies[:12])})."
        )
    # a foot of several bodies: the parent of the toes
    parent = next((joint.parent for joint in model.joints if toes and joint.child == toes.name), "")
    return next((body for body in feet if body.name == parent), feet[-1]), toes


def _outline(model: Model, foot: Body, toes: Body | None, poses: dict[str, tuple[Array, Array]]) -> _Outline:
    return _from_shapes(foot, toes, poses) if foot.shapes else _from_bones(model, foot, toes, poses)


def _from_shapes(foot: Body, toes: Body | None, poses: dict[str, tuple[Array, Array]]) -> _Outline:
    def corners(body: Body) -> Array:
        rotation, origin = poses[body.name]
        return np.concatenate([shape_corners(shape) for shape in body.shapes]) @ rotation.T + origin

    clouds = [corners(body) for body in (foot, toes) if body is not None and body.shapes]
    flat = np.concatenate(clouds)[:, :2]
    ahead = _longest_direction(flat, poses[foot.name][1][:2])
    across = np.array([-ahead[1], ahead[0]])
    along, aside = flat @ ahead, flat @ across
    length = float(np.ptp(along))
    ball = float((clouds[0][:, :2] @ ahead).max() - along.min()) if len(clouds) == 2 else BALL_FRACTION * length
    heel = along.min() * ahead + 0.5 * (aside.min() + aside.max()) * across
    bottom = float(min(cloud[:, 2].min() for cloud in clouds))
    return _Outline(heel, bottom, ahead, length, ball, float(np.ptp(aside)))


def _from_bones(model: Model, foot: Body, toes: Body | None, poses: dict[str, tuple[Array, Array]]) -> _Outline:
    """Return the outline of OpenSim's foot, scaled by the distance from the heel to the toe joint."""
    joints = (joint for joint in model.joints if toes and joint.child == toes.name and joint.parent == foot.name)
    ball = next((np.array(joint.parent_frame.position) for joint in joints), np.zeros(3))
    rotation, origin = poses[foot.name]
    level = (rotation @ ball)[:2]
    if not np.linalg.norm(level) > 0.0:
        raise ModelError(
            f"Model {model.name!r}: Body {foot.name!r} has neither shapes nor toes in front of its origin, so its sole "
            "is not defined. Add a box to it."
        )
    size = float(np.linalg.norm(ball)) / BONE_BALL
    ahead = level / np.linalg.norm(level)
    flesh = FLESH_THICKNESS * size
    length = (BONE_BALL + BONE_TOES) * size + 2.0 * flesh
    bottom = float(min(origin[2], (origin + rotation @ ball)[2]))
    return _Outline(origin[:2] - flesh * ahead, bottom, ahead, length, BONE_BALL * size + flesh, BONE_BREADTH * size)


def _fit_to_markers(
    model: Model, bodies: Sequence[str], side: str, poses: dict[str, tuple[Array, Array]], outline: _Outline
) -> _Outline:
    """Return the outline with its heel at the heel markers, pointing to the center of the forefoot markers."""
    marked = {
        part: [(name, (poses[body][1] + poses[body][0] @ offset)[:2]) for name, body, offset in markers]
        for part, markers in _foot_markers(model, tuple(bodies)).items()
    }
    if not (marked["heel"] and marked["toe"]):
        return outline
    heel = np.mean([point for _, point in marked["heel"]], axis=0)
    outer = [point for landmark, point in marked["toe"] if landmark in _OUTER]
    inner = [point for landmark, point in marked["toe"] if landmark in _INNER]
    other = [point for landmark, point in marked["toe"] if landmark not in (*_OUTER, *_INNER)]
    # one edge of the forefoot alone does not determine its center
    edge = 0.5 * outline.breadth * _inward(outline.ahead, side)
    centers = [*other, 0.5 * (np.mean(outer, axis=0) + np.mean(inner, axis=0))] if outer and inner else other
    if not centers:
        centers = [point + edge for point in outer] + [point - edge for point in inner]
    direction = np.mean(centers, axis=0) - heel
    if not np.linalg.norm(direction) > 0.25 * outline.length:
        return outline
    ahead = direction / np.linalg.norm(direction)
    return replace(outline, heel=heel + FLESH_THICKNESS * ahead, ahead=ahead)


@cached_per_model
def _foot_markers(model: Model, bodies: tuple[str, ...]) -> dict[str, list[tuple[str, str, Array]]]:
    """Return the markers of heel and forefoot on these bodies: landmark, body and offset on it."""
    found: dict[str, list[tuple[str, str, Array]]] = {"heel": [], "toe": []}
    names = [marker.name for marker in model.markers]
    readings = interpret_labels(names).readings
    for marker, meaning, reading in zip(model.markers, identify_landmarks(names), readings, strict=True):
        if marker.body in bodies and meaning and meaning.part in found:
            found[meaning.part].append((reading.landmark, marker.body, np.array(marker.position)))
    return found


def shape_corners(shape: Shape) -> Array:
    """Return the corners of the box around a shape, in the frame of its body."""
    if shape.vertices:
        local = np.array(shape.vertices, dtype=float)
    else:
        half = {
            "sphere": lambda s: (s[0],) * 3,
            "capsule": lambda s: (s[0], s[0], s[0] + s[1]),
            "cylinder": lambda s: (s[0], s[0], s[1]),
        }.get(shape.kind, lambda s: s if len(s) == 3 else (0.0,) * 3)(shape.size)
        local = _SIGNS * np.array(half)
    return np.asarray(local @ orientation_matrix(shape.frame.orientation).T + shape.frame.position)


def _longest_direction(cloud: Array, ankle: Array) -> Array:
    """Return the horizontal direction in which a foot is longest, towards the end farther from the ankle."""
    centered = cloud - cloud.mean(axis=0)
    axis = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    return np.asarray(axis if (cloud - ankle).mean(axis=0) @ axis >= 0.0 else -axis)

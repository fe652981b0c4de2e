"""Soles: the points of a model's feet that may stand on the ground.

Five for each foot: two under the heel, two under the ball, one under the toes. How long and broad the foot is, is told
by the shapes of its bodies, or by the bones of OpenSim's feet, whose heel is at the origin of `calcn` and whose ball is
at the joint of the toes. A fitted foot may be turned or shifted against the real one by centimetres while its markers
are where they were seen. So where it lies is told by its markers, if there are some on heel and forefoot; and which way
is up for it, by how it stands when it is stillest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import marker_points, to_model_axes
from borelli.analysis.tree_kernels.kinematic_tree import make_tree
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, make_ik_search
from borelli.errors import ModelError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Body, Model, Shape
from borelli.model.model_cache import cached_per_model
from borelli.model.transforms import orientation_matrix
from borelli.recording.landmarks import identify_landmark

Array = NDArray[np.float64]

FEET = ("right", "left")
POINTS = ("heel_medial", "heel_lateral", "ball_medial", "ball_lateral", "toe")
HEEL_INSET, TOE_INSET = 0.08, 0.08
"""How far the points of heel and toes lie within the foot's ends, as parts of its length: flesh is round."""
WIDTH = 0.6
"""Distance of the points of a pair as a part of the foot's breadth."""
BALL = 0.73
"""Place of the ball on a foot without toes of their own, as a part of its length (Drillis and Contini 1966)."""
BONE_BALL, BONE_TOES, BONE_BREADTH = 0.1788, 0.07, 0.09
"""[m] Of OpenSim's unscaled foot (Delp et al. 1990): heel to ball, ball to tip, and its breadth with flesh."""
FLESH = 0.01
"""[m] Before and behind the bones; and of a marker's middle behind the heel."""
_SIDES = {"right": r"(?:^|[_. ])(?:r|rt|right)(?:$|[_. ])|^right", "left": r"(?:^|[_. ])(?:l|lt|left)(?:$|[_. ])|^left"}
_FOOT, _TOES = r"calcn|calcaneus|foot|heel", r"toe|tarsal"
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
_OUTER, _INNER = re.compile(r"5|lat"), re.compile(r"1|med|hal|big")


@dataclass(frozen=True)
class Soles:
    """Points under the feet, those of the right foot first.

    Attributes:
        bodies: The body of each point.
        places: (points, 3) [m] in the frames of those bodies.
        foot: (points,) 0 for the right foot, 1 for the left.
        names: Of the points, such as "right heel_medial".
    """

    bodies: tuple[str, ...]
    places: Array
    foot: NDArray[np.int64]
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Outline:
    """A foot as the model stands by default, in lab axes [m]; the back of the heel is its origin."""

    heel: Array
    """(2,) horizontal place of its back end."""
    bottom: float
    ahead: Array
    """(2,) horizontal unit vector to the toes."""
    length: float
    ball: float
    """From the heel."""
    breadth: float


def find_soles(model: Model, up: Sequence[Array] | None = None) -> Soles:
    """The points under the feet of a model.

    Args:
        model: With bodies that are feet.
        up: Which way is up in the frame of the right foot's body and of the left's when they stand flat; by default,
            as the model stands.

    Raises:
        ModelError: a foot is not found, or has nothing that tells where its sole is.
    """
    bodies: list[str] = []
    places: list[Array] = []
    for k, side in enumerate(FEET):
        foot, toes = _foot_bodies(model, side)
        stands, outline = _as_it_stands(model, side)
        if up is not None:
            upright, height = _least_turn(stands[foot.name][0] @ up[k]), stands[foot.name][1][2]
            stands = {name: (upright @ way, upright @ place) for name, (way, place) in stands.items()}
            # the ankle stays as high above the sole: a sole turned with its box would dip its ends
            drop = height - stands[foot.name][1][2]
            outline = replace(_outline(model, foot, toes, stands), bottom=outline.bottom - drop)
        outline = _moved_to_markers(model, tuple(stands), side, stands, outline)
        front = toes if toes is not None and toes.shapes else foot
        owners = [foot.name] * 4 + [front.name]
        for owner, place in zip(owners, _points(outline, side), strict=True):
            way, origin = stands[owner]
            places.append(way.T @ (place - origin))
        bodies += owners
    count = len(POINTS)
    names = tuple(f"{side} {point}" for side in FEET for point in POINTS)
    return Soles(tuple(bodies), np.array(places), np.repeat(np.arange(len(FEET)), count), names)


@cached_per_model
def _as_it_stands(model: Model, side: str) -> tuple[dict[str, tuple[Array, Array]], _Outline]:
    """Rotation and place of the bodies of a foot in lab axes, as the model stands by default; and its outline."""
    turn, (position, rotation) = to_model_axes(model), _standing(model)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    foot, toes = _foot_bodies(model, side)
    stands = {
        body.name: (turn.T @ rotation[index[body.name]], turn.T @ position[index[body.name]])
        for body in (foot, toes)
        if body is not None
    }
    return stands, _outline(model, foot, toes, stands)


@cached_per_model
def _standing(model: Model) -> tuple[Array, Array]:
    """Places (bodies, 3) and rotations (bodies, 3, 3) as the model stands by default."""
    q, count = np.array([[c.default for c in model.coordinates]]), len(model.bodies)
    tree, points = make_tree(model), marker_points(model, ())
    position, rotation = np.empty((1, count, 3)), np.empty((1, count, 3, 3))
    compute_body_poses(SharedTuple(make_ik_search(tree, points)), q, position, rotation, np.empty((1, 0, 3)))
    return position[0], rotation[0]


@cached_per_model
def standing_soles(model: Model) -> Soles:
    """The points under the feet as the model stands by default."""
    return find_soles(model)


def foot_names(model: Model) -> tuple[str, ...]:
    """The bodies of the right foot and of the left."""
    return tuple(_foot_bodies(model, side)[0].name for side in FEET)


def _least_turn(way: Array) -> Array:
    """The smallest rotation that turns a unit vector upward (Rodrigues)."""
    x, y, z = way
    if z <= -1.0 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    cross = np.array([[0.0, 0.0, -x], [0.0, 0.0, -y], [x, y, 0.0]])
    return np.asarray(np.eye(3) + cross + cross @ cross / (1.0 + z))


def _points(outline: _Outline, side: str) -> Array:
    """(5, 3) in lab axes."""
    inward = _inward(outline.ahead, side) * 0.5 * WIDTH * outline.breadth
    back, tip = HEEL_INSET * outline.length, (1.0 - TOE_INSET) * outline.length
    flat = [
        outline.heel + along * outline.ahead + across * inward
        for along, across in ((back, 1.0), (back, -1.0), (outline.ball, 1.0), (outline.ball, -1.0), (tip, 0.0))
    ]
    return np.array([[*place, outline.bottom] for place in flat])


def _inward(ahead: Array, side: str) -> Array:
    """The horizontal unit vector towards the midline of the body."""
    return np.array([-ahead[1], ahead[0]]) * (1.0 if side == "right" else -1.0)


@cached_per_model
def _foot_bodies(model: Model, side: str) -> tuple[Body, Body | None]:
    """The body of a foot and that of its toes, if they are a body of their own."""
    of_side = [body for body in model.bodies if re.search(_SIDES[side], body.name.lower())]
    toes = next((body for body in of_side if re.search(_TOES, body.name.lower())), None)
    feet = [body for body in of_side if re.search(_FOOT, body.name.lower()) and body is not toes]
    if not feet:
        raise ModelError(
            f"model {model.name!r}: no body is its {side} foot; forces of the ground without plates want bodies called "
            f"such as foot_{side[0]} or calcn_{side[0]}, got {', '.join(body.name for body in model.bodies[:12])}"
        )
    # a foot of several bodies: the one that carries the toes
    carrier = next((joint.parent for joint in model.joints if toes and joint.child == toes.name), "")
    return next((body for body in feet if body.name == carrier), feet[-1]), toes


def _outline(model: Model, foot: Body, toes: Body | None, stands: dict[str, tuple[Array, Array]]) -> _Outline:
    return _from_shapes(foot, toes, stands) if foot.shapes else _from_bones(model, foot, toes, stands)


def _from_shapes(foot: Body, toes: Body | None, stands: dict[str, tuple[Array, Array]]) -> _Outline:
    """The outline of the shapes of foot and toes."""

    def corners(body: Body) -> Array:
        way, origin = stands[body.name]
        return np.concatenate([_corners(shape) for shape in body.shapes]) @ way.T + origin

    clouds = [corners(body) for body in (foot, toes) if body is not None and body.shapes]
    flat = np.concatenate(clouds)[:, :2]
    ahead = _longest(flat, stands[foot.name][1][:2])
    across = np.array([-ahead[1], ahead[0]])
    along, aside = flat @ ahead, flat @ across
    length = float(np.ptp(along))
    ball = float((clouds[0][:, :2] @ ahead).max() - along.min()) if len(clouds) == 2 else BALL * length
    heel = along.min() * ahead + 0.5 * (aside.min() + aside.max()) * across
    bottom = float(min(cloud[:, 2].min() for cloud in clouds))
    return _Outline(heel, bottom, ahead, length, ball, float(np.ptp(aside)))


def _from_bones(model: Model, foot: Body, toes: Body | None, stands: dict[str, tuple[Array, Array]]) -> _Outline:
    """The outline of OpenSim's foot, sized by the way from the heel to the joint of the toes."""
    joints = (joint for joint in model.joints if toes and joint.child == toes.name and joint.parent == foot.name)
    ball = next((np.array(joint.parent_frame.position) for joint in joints), np.zeros(3))
    way, origin = stands[foot.name]
    level = (way @ ball)[:2]
    if not np.linalg.norm(level) > 0.0:
        raise ModelError(
            f"model {model.name!r}: body {foot.name!r} has neither shapes nor toes before its origin, so where its "
            "sole is, is unclear; give it a box"
        )
    size = float(np.linalg.norm(ball)) / BONE_BALL
    ahead = level / np.linalg.norm(level)
    flesh = FLESH * size
    length = (BONE_BALL + BONE_TOES) * size + 2.0 * flesh
    bottom = float(min(origin[2], (origin + way @ ball)[2]))
    return _Outline(origin[:2] - flesh * ahead, bottom, ahead, length, BONE_BALL * size + flesh, BONE_BREADTH * size)


def _moved_to_markers(
    model: Model, bodies: Sequence[str], side: str, stands: dict[str, tuple[Array, Array]], outline: _Outline
) -> _Outline:
    """The outline with its heel before the markers of the heel, pointing to the middle of those of the forefoot."""
    found = {
        part: [(name, (stands[body][1] + stands[body][0] @ place)[:2]) for name, body, place in marked]
        for part, marked in _foot_markers(model, tuple(bodies)).items()
    }
    if not (found["heel"] and found["toe"]):
        return outline
    heel = np.mean([place for _, place in found["heel"]], axis=0)
    outer = [place for name, place in found["toe"] if _OUTER.search(name)]
    inner = [place for name, place in found["toe"] if _INNER.search(name)]
    other = [place for name, place in found["toe"] if not (_OUTER.search(name) or _INNER.search(name))]
    # one edge of the forefoot alone says little of its middle
    edge = 0.5 * outline.breadth * _inward(outline.ahead, side)
    middles = [*other, 0.5 * (np.mean(outer, axis=0) + np.mean(inner, axis=0))] if outer and inner else other
    if not middles:
        middles = [place + edge for place in outer] + [place - edge for place in inner]
    way = np.mean(middles, axis=0) - heel
    if not np.linalg.norm(way) > 0.25 * outline.length:
        return outline
    ahead = way / np.linalg.norm(way)
    return replace(outline, heel=heel + FLESH * ahead, ahead=ahead)


@cached_per_model
def _foot_markers(model: Model, bodies: tuple[str, ...]) -> dict[str, list[tuple[str, str, Array]]]:
    """The markers of heel and forefoot on these bodies: name in lower case, body and place on it."""
    found: dict[str, list[tuple[str, str, Array]]] = {"heel": [], "toe": []}
    for marker in model.markers:
        meaning = identify_landmark(marker.name)
        if marker.body in bodies and meaning and meaning.part in found:
            found[meaning.part].append((marker.name.lower(), marker.body, np.array(marker.position)))
    return found


def _corners(shape: Shape) -> Array:
    """Corners of the box around a shape, in the frame of its body."""
    if shape.kind == "mesh":
        local = np.array(shape.vertices, dtype=float)
    else:
        half = {
            "sphere": lambda s: (s[0],) * 3,
            "capsule": lambda s: (s[0], s[0], s[0] + s[1]),
            "cylinder": lambda s: (s[0], s[0], s[1]),
        }.get(shape.kind, lambda s: s)(shape.size)
        local = _SIGNS * np.array(half)
    return np.asarray(local @ orientation_matrix(shape.frame.orientation).T + shape.frame.position)


def _longest(cloud: Array, ankle: Array) -> Array:
    """The horizontal direction in which a foot is longest, towards the end farther from the ankle."""
    centered = cloud - cloud.mean(axis=0)
    way = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    return np.asarray(way if (cloud - ankle).mean(axis=0) @ way >= 0.0 else -way)

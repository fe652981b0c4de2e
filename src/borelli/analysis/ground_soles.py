"""Soles: the points of a model's feet that may stand on the ground.

Five for each foot: two under the heel, two under the ball, one under the toes. Where the foot's bodies have shapes, the
points are on the underside of these; OpenSim's feet, which have bones only, have their heel at the origin of `calcn`
and their ball at the joint of the toes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import to_model_axes
from borelli.errors import ModelError
from borelli.model.frames import orientation_matrix
from borelli.model.kinematics import poses
from borelli.model.model import Body, Joint, Model, Shape

Array = NDArray[np.float64]

FEET = ("right", "left")
POINTS = ("heel_medial", "heel_lateral", "ball_medial", "ball_lateral", "toe")
HEEL_INSET = 0.06
"""How far the heel's points lie before its back end, as a part of the length of foot and toes: flesh is round."""
TOE_INSET = 0.10
"""How far the toes' point lies behind their tip, likewise."""
WIDTH = 0.6
"""Distance of the points of a pair as a part of the foot's breadth."""
OPENSIM_BALL, OPENSIM_TOES, OPENSIM_BREADTH = 0.1788, 0.07, 0.09
"""[m] Of OpenSim's unscaled foot: heel to ball, ball to tip (bones; Delp et al. 1990), and its breadth with flesh."""
_SIDES = {"right": r"(?:^|[_. ])(?:r|rt|right)(?:$|[_. ])|^right", "left": r"(?:^|[_. ])(?:l|lt|left)(?:$|[_. ])|^left"}
_FOOT, _TOES = r"calcn|calcaneus|foot|heel", r"toe|tarsal"


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


def find_soles(model: Model) -> Soles:
    """The points under the feet of a model.

    Raises:
        ModelError: a foot is not found, or has nothing that tells where its sole is.
    """
    bodies: list[str] = []
    places: list[Array] = []
    for side in FEET:
        foot, toes = _foot_bodies(model, side)
        own, points = (_from_shapes if foot.shapes else _from_bones)(model, foot, toes, side)
        bodies += own
        places.append(points)
    count = len(POINTS)
    return Soles(
        tuple(bodies),
        np.concatenate(places),
        np.repeat(np.arange(len(FEET)), count),
        tuple(f"{side} {point}" for side in FEET for point in POINTS),
    )


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


def _from_shapes(model: Model, foot: Body, toes: Body | None, side: str) -> tuple[list[str], Array]:
    """Points on the underside of the boxes around the shapes of foot and toes, as the model stands by default."""
    position, rotation = poses(model, [[c.default for c in model.coordinates]])
    index = {body.name: i for i, body in enumerate(model.bodies)}
    turn = to_model_axes(model)

    def stands(body: Body) -> tuple[Array, Array]:
        """Rotation and place of a body in lab axes."""
        i = index[body.name]
        return turn.T @ rotation[0, i], turn.T @ position[0, i]

    def corners(body: Body) -> Array:
        way, origin = stands(body)
        return np.concatenate([_corners(shape) for shape in body.shapes]) @ way.T + origin

    shaped = [body for body in (foot, toes) if body is not None and body.shapes]
    cloud = [corners(body)[:, :2] for body in shaped]
    everything = np.concatenate(cloud)
    ankle = stands(foot)[1][:2]
    ahead = _ahead(everything, ankle)
    across = np.array([-ahead[1], ahead[0]]) * (1.0 if side == "right" else -1.0)  # towards the midline
    along = everything @ ahead
    back, tip = along.min(), along.max()
    ball = (cloud[0] @ ahead).max() if len(shaped) == 2 else back + 0.73 * (tip - back)
    middle = 0.5 * ((everything @ across).min() + (everything @ across).max())
    half = 0.5 * WIDTH * np.ptp(everything @ across)
    length = tip - back
    heel_at, toe_at = back + HEEL_INSET * length, tip - TOE_INSET * length
    bottom = min(corners(body)[:, 2].min() for body in shaped)
    flat = [(heel_at, half), (heel_at, -half), (ball, half), (ball, -half), (toe_at, 0.0)]
    bodies = [foot] * 4 + [shaped[-1]]
    points = []
    for body, (forward, inward) in zip(bodies, flat, strict=True):
        way, origin = stands(body)
        ground = forward * ahead + (middle + inward) * across
        points.append(way.T @ (np.array([*ground, bottom]) - origin))
    return [body.name for body in bodies], np.array(points)


def _from_bones(model: Model, foot: Body, toes: Body | None, side: str) -> tuple[list[str], Array]:
    """Points under OpenSim's bones, sized by the way from the heel to the joint of the toes."""
    joint = _toe_joint(model, foot, toes)
    if joint is None:
        raise ModelError(
            f"model {model.name!r}: body {foot.name!r} has neither shapes nor toes, so where its sole is, is unclear; "
            "give it a box"
        )
    ball = np.array(joint.parent_frame.position)
    size = float(np.linalg.norm(ball)) / OPENSIM_BALL
    ahead = ball / np.linalg.norm(ball)
    up = _up_in(model, foot)
    across = np.cross(up, ahead) * (1.0 if side == "right" else -1.0)
    half = 0.5 * WIDTH * OPENSIM_BREADTH * size * across
    length = (OPENSIM_BALL + OPENSIM_TOES) * size
    tip = ball + (OPENSIM_TOES * size - TOE_INSET * length) * ahead
    heel = HEEL_INSET * length * ahead
    return [foot.name] * 5, np.array([heel + half, heel - half, ball + half, ball - half, tip])


def _toe_joint(model: Model, foot: Body, toes: Body | None) -> Joint | None:
    found = (joint for joint in model.joints if toes and joint.child == toes.name and joint.parent == foot.name)
    joint = next(found, None)
    return joint if joint and np.linalg.norm(joint.parent_frame.position) > 0.0 else None


def _up_in(model: Model, body: Body) -> Array:
    """Which way is up in the frame of a body as the model stands by default."""
    _, rotation = poses(model, [[c.default for c in model.coordinates]])
    i = [other.name for other in model.bodies].index(body.name)
    return np.asarray(rotation[0, i].T @ (-np.array(model.gravity) / np.linalg.norm(model.gravity)))


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
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
        local = signs * np.array(half)
    return np.asarray(local @ orientation_matrix(shape.frame.orientation).T + shape.frame.position)


def _ahead(cloud: Array, ankle: Array) -> Array:
    """The horizontal direction in which a foot is longest, towards the end farther from the ankle."""
    centered = cloud - cloud.mean(axis=0)
    way = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    return np.asarray(way if (cloud - ankle).mean(axis=0) @ way >= 0.0 else -way)

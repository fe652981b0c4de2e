"""The ground that a simulated body stands on, and soles that lie flat on it when the feet stand still.

How a foot's shape lies against its markers is seldom known: a walk does not tell the ankle's zero. What is known is
that a foot that stands still stands flat. So the soles are laid level, at the height of the ground, in the frames in
which the foot moves least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import FEET, foot_bodies
from borelli.analysis.motion import to_model_axes
from borelli.model.kinematics import poses
from borelli.model.model import Body, Frame, Model, Shape, Softness, Surface
from borelli.model.transforms import orientation_matrix
from borelli.numerics.quaternions import quaternion_from_matrix

Array = NDArray[np.float64]

STILL = 0.2
"""Share of the frames, those in which a foot moves least, in which it is taken to stand."""
ARM = 0.1
"""[m] at which a foot's spin counts as speed."""
THICK = 0.03
"""[m] of a sole."""
SOLE = Softness(1.2e4, 5e2)
"""[N/m, N s/m] Of a sole and of the ground under it: a corner gives 6e3 N/m, the eight of a foot with its toes 5e4 N/m,
half of a heel pad in a living leg (1e5 N/m: Aerts et al. 1995), so that it gives 15 mm under the body. It must give for
what is not known as well: on firm ground a sole laid wrong by 1 degree puts the centre of pressure at its edge."""
FRICTION = 0.8
BALL, TOES, BREADTH = 0.1788, 0.07, 0.09
"""[m] Heel to ball, ball to tip and breadth of a foot without shapes, an OpenSim foot's (Delp et al. 1990)."""


def stand_on_soles(
    model: Model,
    coordinates: Array,
    rate: float,
    height: float = 0.0,
    feet: Mapping[str, str] | None = None,
    softness: Softness = SOLE,
) -> Model:
    """The model on level ground, with soles as its only shapes that touch it.

    Args:
        model: The model.
        coordinates: (frames, coordinates) of a motion in which each foot stands somewhere [rad or m].
        rate: Of the frames [Hz].
        height: Of the ground above the lab's origin [m].
        feet: Bodies of the "right" and "left" foot, where their names do not tell.
        softness: Of the soles, and of the ground under them.
    """
    turn, surface = to_model_axes(model), Surface(friction=FRICTION, softness=softness)
    position, rotation = poses(model, coordinates)
    position, rotation = position @ turn, turn.T @ rotation
    index = {body.name: i for i, body in enumerate(model.bodies)}
    bodies = [replace(b, shapes=tuple(replace(s, collides=False) for s in b.shapes)) for b in model.bodies]
    named = foot_bodies(model, feet)
    for side in FEET:
        foot = named[side]
        toes = [name for name in carried_by(model, foot) if model.body(name).mass > 0.0]
        i = index[foot]
        speed = np.linalg.norm(np.gradient(position[:, i], 1.0 / rate, axis=0), axis=1)
        change = np.gradient(rotation[:, i], 1.0 / rate, axis=0)
        spin = np.linalg.norm(change, axis=(1, 2)) / np.sqrt(2.0)
        moving = speed + ARM * spin
        still = moving <= np.quantile(moving, STILL)
        for name in (foot, *toes):
            k = index[name]
            up = rotation[still, k, 2].mean(axis=0)
            up /= np.linalg.norm(up)
            above = float((position[still, k, 2] - height).mean())
            sole = _sole(model, model.body(name), name == foot, toes, up, above, surface)
            bodies[k] = replace(bodies[k], shapes=(*bodies[k].shapes, sole))
    return with_ground_at(replace(model, bodies=tuple(bodies)), height, surface)


def with_ground_at(model: Model, height: float, surface: Surface | None = None) -> Model:
    """The model on level ground at a height [m] above the lab's origin, of the surface it had unless told."""
    turn = to_model_axes(model)
    w, x, y, z = map(float, quaternion_from_matrix(turn))
    at = turn @ [0.0, 0.0, height]
    surface = model.ground[0].surface if surface is None and model.ground else surface or Surface()
    plane = Shape("plane", frame=Frame((float(at[0]), float(at[1]), float(at[2])), (w, x, y, z)), surface=surface)
    return replace(model, ground=(plane,))


def carried_by(model: Model, body: str) -> list[str]:
    """Names of the bodies that hang on a body."""
    found: list[str] = []
    for joint in model.joints:
        if not joint.closes_loop and joint.parent in (body, *found):
            found.append(joint.child)
    return found


def _sole(model: Model, body: Body, hind: bool, toes: list[str], up: Array, above: float, surface: Surface) -> Shape:
    """A flat box under a foot or its toes: `up` is the vertical in the body's frame, `above` how high its origin is."""
    corners = _outline(model, body, hind, toes)
    # forward is where the outline is longest, made level
    flat = corners - np.outer(corners @ up, up)
    axes = np.linalg.svd(flat - flat.mean(axis=0))[2]
    forward = axes[0] - up * (axes[0] @ up)
    forward /= np.linalg.norm(forward)
    across = np.cross(up, forward)
    half = [0.5 * float(np.ptp(flat @ way)) for way in (forward, across)]
    center = (0.5 * THICK - above) * up
    for way in (forward, across):
        center = center + 0.5 * ((flat @ way).max() + (flat @ way).min()) * way
    w, x, y, z = map(float, quaternion_from_matrix(np.stack([forward, across, up], axis=1)))
    frame = Frame((float(center[0]), float(center[1]), float(center[2])), (w, x, y, z))
    return Shape("box", (half[0], half[1], 0.5 * THICK), frame, surface=surface, name=f"{body.name} sole")


def _outline(model: Model, body: Body, hind: bool, toes: list[str]) -> Array:
    """Corners of the box around a body's shapes; where it has none, of an OpenSim foot's bones."""
    if body.shapes:
        return np.concatenate(
            [_corners(s) @ orientation_matrix(s.frame.orientation).T + s.frame.position for s in body.shapes]
        )
    up = to_model_axes(model) @ [0.0, 0.0, 1.0]
    ahead = np.array([1.0, 0.0, 0.0])
    across = np.cross(up, ahead)
    joint = next((j for j in model.joints if toes and j.child == toes[0]), None)
    ball = float(np.array(joint.parent_frame.position) @ ahead) if joint else BALL + TOES
    start, stop = (0.0, ball) if hind else (0.0, TOES * ball / BALL)
    return np.array([a * ahead + b * across for a, b in product((start, stop), (-0.5 * BREADTH, 0.5 * BREADTH))])


def _corners(shape: Shape) -> Array:
    """Corners of the box around a shape, in the shape's frame."""
    if shape.kind == "box":
        half = np.array(shape.size)
    elif shape.kind == "sphere":
        half = np.full(3, shape.size[0])
    elif shape.kind in ("capsule", "cylinder"):
        radius, length = shape.size[0], shape.size[1]
        half = np.array([radius, radius, length + (radius if shape.kind == "capsule" else 0.0)])
    elif shape.vertices:
        return np.array(shape.vertices)
    else:
        half = np.array(shape.size) if len(shape.size) == 3 else np.zeros(3)
    return np.array(list(product(*((-h, h) for h in half))))

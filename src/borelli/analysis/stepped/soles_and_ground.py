"""Ground and soles of a simulated body: soles lie flat on the ground while the feet are stationary.

The orientation of a foot's shape relative to its markers is seldom known: a walk does not determine the ankle's neutral
position. But a stationary foot is flat on the ground. So the soles are horizontal, at ground height, in the frames in
which the foot moves least.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from borelli.analysis.dynamics.external_loads import FEET, Feet, foot_bodies
from borelli.analysis.ground.soles import BONE_BALL, BONE_BREADTH, BONE_TOES, shape_corners
from borelli.analysis.motion import to_model_axes
from borelli.model.kinematics import poses
from borelli.model.model import Body, Frame, Model, Shape, Softness, Surface
from borelli.numerics.quaternions import quaternion_from_matrix
from borelli.numerics.vectors import Array

STATIONARY_FRACTION = 0.2
"""Fraction of the frames, those in which a foot moves least, in which it is stationary."""
ROTATION_ARM = 0.1
"""Arm at which a foot's angular velocity counts as speed [m]."""
SOLE_THICKNESS = 0.03
"""[m]"""
SOLE_SOFTNESS = Softness(1.2e4, 5e2)
"""Softness of a sole and of the ground under it [N/m, N s/m]: a corner has 6e3 N/m, the eight of a foot with toes 5e4
N/m, half of a heel pad in a living leg (1e5 N/m: Aerts et al. 1995), so that it yields by 15 mm under the body. It must
yield to errors as well: on stiff ground a sole with an error of 1 degree has its center of pressure at its edge."""
SOLE_FRICTION = 0.8


def add_soles(
    model: Model, coordinates: Array, rate: float, height: float, feet: Feet, softness: Softness = SOLE_SOFTNESS
) -> Model:
    """Put the model on level ground at a height [m], with soles as its only shapes that collide with it.

    In the motion, coordinates (frames, coordinates) at a rate [Hz], each foot must be stationary for a time.
    """
    axes, surface = to_model_axes(model), Surface(friction=SOLE_FRICTION, softness=softness)
    position, rotation = poses(model, coordinates)
    position, rotation = position @ axes, axes.T @ rotation
    index = {body.name: i for i, body in enumerate(model.bodies)}
    bodies = [replace(b, shapes=tuple(replace(s, collides=False) for s in b.shapes)) for b in model.bodies]
    named = foot_bodies(model, feet)
    for side in FEET:
        foot = named[side]
        toes = [name for name in descendants(model, foot) if model.body(name).mass > 0.0]
        i = index[foot]
        speed = np.linalg.norm(np.gradient(position[:, i], 1.0 / rate, axis=0), axis=1)
        change = np.gradient(rotation[:, i], 1.0 / rate, axis=0)
        angular_speed = np.linalg.norm(change, axis=(1, 2)) / np.sqrt(2.0)
        moving = speed + ROTATION_ARM * angular_speed
        still = moving <= np.quantile(moving, STATIONARY_FRACTION)
        for name in (foot, *toes):
            k = index[name]
            up = rotation[still, k, 2].mean(axis=0)
            up /= np.linalg.norm(up)
            above = float((position[still, k, 2] - height).mean())
            sole = _sole(model, model.body(name), name == foot, toes, up, above, surface)
            bodies[k] = replace(bodies[k], shapes=(*bodies[k].shapes, sole))
    return add_ground(replace(model, bodies=tuple(bodies)), height, surface)


def add_ground(model: Model, height: float, surface: Surface | None = None) -> Model:
    """Put the model on level ground at a height [m] above the lab's origin. Default surface: that of its old ground."""
    axes = to_model_axes(model)
    w, x, y, z = map(float, quaternion_from_matrix(axes))
    at = axes @ [0.0, 0.0, height]
    surface = model.ground[0].surface if surface is None and model.ground else surface or Surface()
    plane = Shape("plane", frame=Frame((float(at[0]), float(at[1]), float(at[2])), (w, x, y, z)), surface=surface)
    return replace(model, ground=(plane,))


def descendants(model: Model, body: str) -> list[str]:
    """Return the names of all bodies below a body in the tree."""
    names: list[str] = []
    for joint in model.joints:
        if not joint.closes_loop and joint.parent in (body, *names):
            names.append(joint.child)
    return names


def _sole(model: Model, body: Body, hind: bool, toes: list[str], up: Array, above: float, surface: Surface) -> Shape:
    """Return a flat box under a foot or its toes; `up`: vertical in the body's frame, `above`: height of its origin."""
    corners = _outline(model, body, hind, toes)
    # forward is the longest horizontal direction of the outline
    flat = corners - np.outer(corners @ up, up)
    axes = np.linalg.svd(flat - flat.mean(axis=0))[2]
    forward = axes[0] - up * (axes[0] @ up)
    forward /= np.linalg.norm(forward)
    across = np.cross(up, forward)
    half = [0.5 * float(np.ptp(flat @ axis)) for axis in (forward, across)]
    center = (0.5 * SOLE_THICKNESS - above) * up
    for axis in (forward, across):
        center = center + 0.5 * ((flat @ axis).max() + (flat @ axis).min()) * axis
    w, x, y, z = map(float, quaternion_from_matrix(np.stack([forward, across, up], axis=1)))
    frame = Frame((float(center[0]), float(center[1]), float(center[2])), (w, x, y, z))
    return Shape("box", (half[0], half[1], 0.5 * SOLE_THICKNESS), frame, surface=surface, name=f"{body.name} sole")


def _outline(model: Model, body: Body, hind: bool, toes: list[str]) -> Array:
    """Return the corners of the boxes around a body's shapes; without shapes, of an OpenSim foot's bones."""
    if body.shapes:
        return np.concatenate([shape_corners(shape) for shape in body.shapes])
    up = to_model_axes(model) @ [0.0, 0.0, 1.0]
    ahead = np.array([1.0, 0.0, 0.0])
    across = np.cross(up, ahead)
    joint = next((j for j in model.joints if toes and j.child == toes[0]), None)
    ball = float(np.array(joint.parent_frame.position) @ ahead) if joint else BONE_BALL + BONE_TOES
    length = ball if hind else BONE_TOES * ball / BONE_BALL
    sides = (-0.5 * BONE_BREADTH, 0.5 * BONE_BREADTH)
    return np.array([a * ahead + b * across for a, b in product((0.0, length), sides)])

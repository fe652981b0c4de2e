"""Changes of a model's total mass or of the size of one body, with everything attached to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, sqrt
from typing import TypeVar

import numpy as np

from borelli.errors import ModelError
from borelli.model.inertia import mass_of_body, scale_body
from borelli.model.model import Frame, Joint, Marker, Model, PathPoint, Shape, TransformAxis, Vector, WrapObject
from borelli.model.transforms import orientation_matrix, vector

Attached = TypeVar("Attached", Marker, PathPoint)


def scale_mass(model: Model, total: float) -> Model:
    """Return the model with masses and inertias of its moving bodies scaled to a total of `total` [kg].

    Args:
        model: Model with mass.
        total: Mass of all moving bodies together [kg].

    Raises:
        ModelError: if `total` is not positive, or the model has no mass.
    """
    if not (total > 0.0 and isfinite(total)):
        raise ModelError(f"Model {model.name!r}: The total mass is {total} kg. It must be positive.")
    if not model.mass > 0.0:
        problem = f"has no moving body with mass to scale to {total} kg. Give its bodies masses."
        raise ModelError(f"Model {model.name!r} {problem}")
    factor = total / model.mass
    return replace(model, bodies=tuple(body if body.kinematic else scale_body(body, factor) for body in model.bodies))


def resize_body(model: Model, name: str, factors: Sequence[float]) -> Model:
    """Return the model with one body stretched along the x, y, z of its frame, about the frame's origin.

    Shapes, center of mass, joint frames, markers, muscle points and wrap objects on the body keep their relative
    positions; mass and inertia follow at constant density. A round shape (sphere; capsule, cylinder and torus across)
    stays round: its radius grows by the geometric mean of the two or three factors. Fiber and tendon lengths are kept.

    Args:
        model: Model to change.
        name: Name of the body.
        factors: Factors along x, y and z.

    Raises:
        ModelError: if the body is unknown, or a factor is not positive.
    """
    if len(factors) != 3 or not all(f > 0.0 and isfinite(f) for f in factors):
        raise ModelError(
            f"Body {name!r}: Resize factors are {', '.join(map(str, factors))}. Give three positive numbers."
        )
    body = model.body(name)
    stretch = vector(factors)

    def scaled(point: Vector) -> Vector:
        return vector(f * p for f, p in zip(stretch, point, strict=True))

    def scaled_frame(frame: Frame) -> Frame:
        return replace(frame, position=scaled(frame.position))

    def scaled_point(point: Attached) -> Attached:
        if point.body != name:
            return point
        if isinstance(point, PathPoint):
            point = replace(point, motion=tuple(_stretch_axis(axis, stretch) for axis in point.motion))
        return replace(point, position=scaled(point.position))

    def scaled_joint(joint: Joint) -> Joint:
        if joint.parent == name:
            joint = replace(joint, parent_frame=scaled_frame(joint.parent_frame))
        if joint.child == name:
            joint = replace(joint, child_frame=scaled_frame(joint.child_frame))
        return joint

    mass, center, inertia = mass_of_body(body).stretched(stretch).fields()
    shapes = tuple(_stretch_shape(shape, stretch) for shape in body.shapes)
    new = replace(body, mass=mass, center_of_mass=center, inertia=inertia, shapes=shapes)
    return replace(
        model,
        bodies=tuple(new if other.name == name else other for other in model.bodies),
        joints=tuple(map(scaled_joint, model.joints)),
        markers=tuple(map(scaled_point, model.markers)),
        muscles=tuple(replace(muscle, path=tuple(map(scaled_point, muscle.path))) for muscle in model.muscles),
        wrap_objects=tuple(_stretch_wrap(wrap, stretch) if wrap.body == name else wrap for wrap in model.wrap_objects),
        ligaments=tuple(
            replace(ligament, path=tuple(map(scaled_point, ligament.path))) for ligament in model.ligaments
        ),
    )


def _stretch_axis(axis: TransformAxis, factors: Vector) -> TransformAxis:
    """Return a translation whose displacement is stretched."""
    stretched = np.array(factors) * np.array(axis.axis)
    length = float(np.linalg.norm(stretched))
    return replace(axis, axis=vector(stretched / length), function=axis.function.scaled(length))


def _stretch_wrap(wrap: WrapObject, factors: Vector) -> WrapObject:
    if wrap.kind == "torus":  # radii of the hole and of the whole, both across
        around = _stretch_shape(Shape("cylinder", (wrap.size[0], 1.0), wrap.frame), factors)
        ratio = around.size[0] / wrap.size[0]
        return replace(wrap, frame=around.frame, size=tuple(ratio * size for size in wrap.size))
    shape = _stretch_shape(Shape(wrap.kind, wrap.size, wrap.frame), factors)
    return replace(wrap, frame=shape.frame, size=shape.size)


def _stretch_shape(shape: Shape, factors: Vector) -> Shape:
    rotation, stretch = orientation_matrix(shape.frame.orientation), np.array(factors)
    frame = replace(shape.frame, position=vector(stretch * np.array(shape.frame.position)))
    along = np.linalg.norm(stretch[:, None] * rotation, axis=0)  # stretch of each of the shape's own axes
    match shape.kind:
        case "sphere":
            size: tuple[float, ...] = (shape.size[0] * float(along.prod()) ** (1.0 / 3.0),)
        case "capsule" | "cylinder":
            size = (shape.size[0] * sqrt(along[0] * along[1]), shape.size[1] * float(along[2]))
        case _:
            size = tuple(float(f) * s for f, s in zip(along, shape.size, strict=False))
    vertices = tuple(vector(rotation.T @ (stretch * (rotation @ np.array(vertex)))) for vertex in shape.vertices)
    return replace(shape, frame=frame, size=size, vertices=vertices)

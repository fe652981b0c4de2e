"""The ground that a simulated body stands on: a plane at the height of its soles."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.loads import foot_bodies
from borelli.analysis.motion import to_model_axes
from borelli.analysis.turning import of_axes_change
from borelli.errors import ModelError
from borelli.model.frames import orientation_matrix
from borelli.model.kinematics import point_positions
from borelli.model.model import Frame, Model, Shape

Array = NDArray[np.float64]

LOW = 25.0
"""Percentile of the lowest sole's height over the frames at which the ground is taken to be: most frames stand."""


def ground_height(model: Model, coordinates: Array) -> float:
    """Height [m] on which a motion (frames, coordinates) stands, lab axes."""
    names, points = _sole_points(model)
    height = (point_positions(model, coordinates, names, points) @ to_model_axes(model))[..., 2]
    return float(np.percentile(height.min(axis=1), LOW))


def with_ground_at(model: Model, height: float) -> Model:
    """The model on level ground at a height [m] above the lab's origin."""
    turn = to_model_axes(model)
    w, x, y, z = map(float, of_axes_change(turn))
    at = turn @ [0.0, 0.0, height]
    surface = model.ground[0].surface if model.ground else Shape("plane").surface
    plane = Shape("plane", frame=Frame((float(at[0]), float(at[1]), float(at[2])), (w, x, y, z)), surface=surface)
    return replace(model, ground=(plane,))


def _sole_points(model: Model) -> tuple[list[str], Array]:
    from borelli.analysis.dynamic_torques import carried_by

    names: list[str] = []
    points: list[Array] = []
    for foot in foot_bodies(model).values():
        for name in (foot, *carried_by(model, foot)):
            for shape in model.body(name).shapes:
                corners = _corners(shape)
                points.append(corners @ orientation_matrix(shape.frame.orientation).T + shape.frame.position)
                names += [name] * len(corners)
    if not names:
        raise ModelError(f"model {model.name!r}: its feet have no shapes to stand on; give them boxes, or use plates")
    return names, np.concatenate(points)


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

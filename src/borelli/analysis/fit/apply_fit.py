"""A fitted model: its joints and markers moved, and its bodies given the size that this makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.parameters import Unknowns, travel
from borelli.model.kinematics import with_default_frames
from borelli.model.marker_sets import extent
from borelli.model.model import GROUND, Model
from borelli.model.resize import resize_body, scale_mass
from borelli.model.transforms import orientation_matrix, vector
from borelli.model.validate import validate

Array = NDArray[np.float64]

SIZED = 0.02
"""[m] An axis along which joints lie no farther from a body's own says nothing of its size."""
LEAST, MOST = 0.5, 2.0
"""Factors outside are no size but a misplaced joint."""


def fitted_model(unknowns: Unknowns, p: Array) -> Model:
    """The model with joint places and attachments at p, bodies resized between their joints, total mass kept."""
    given = unknowns.model
    moved = unknowns.placed(p)
    model = given
    for body in given.bodies:
        factors = _factors(given, moved, body.name)
        if not np.allclose(factors, 1.0):
            model = resize_body(model, body.name, vector(factors))
    # resizing carried joints and markers along: they go where the fit has them, in frames that did not move
    joints = tuple(
        replace(joint, parent_frame=to.parent_frame, child_frame=to.child_frame)
        for joint, to in zip(model.joints, moved.joints, strict=True)
    )
    model = replace(model, joints=joints, markers=moved.markers)
    if given.mass > 0.0:
        model = scale_mass(model, given.mass)
    return validate(_standing(given, with_default_frames(model)), sound_masses=False)


def _factors(given: Model, moved: Model, body: str) -> Array:
    """How much longer a body is along its axes, by the least squares of its joints' places about its own joint."""
    own = next((j.child_frame.position for j in given.joints if j.child == body and not j.closes_loop), (0.0, 0.0, 0.0))
    pairs = [
        (before.parent_frame.position + travel(given, before), after.parent_frame.position + travel(given, before))
        for before, after in zip(given.joints, moved.joints, strict=True)
        if before.parent == body and not before.closes_loop
    ]
    if not pairs:
        return np.ones(3)
    old, new = (np.array(side) - np.array(own) for side in zip(*pairs, strict=True))
    size = (old**2).sum(axis=0)
    factors = np.where(size > SIZED**2, (old * new).sum(axis=0) / np.maximum(size, 1e-12), 1.0)
    return np.clip(factors, LEAST, MOST)


def _standing(given: Model, model: Model) -> Model:
    """The model as high above its ground as the given one was, if a free joint carries it."""
    root = next((j for j in model.joints if j.parent == GROUND and j.kind == "free" and not j.axes), None)
    up = int(np.abs(model.gravity).argmax())
    before, after = lowest(given), lowest(model)
    if root is None or before is None or after is None:
        return model
    rise = before - after
    coordinates = tuple(replace(c, default=c.default + rise) if i == up else c for i, c in enumerate(root.coordinates))
    joints = tuple(replace(j, coordinates=coordinates) if j is root else j for j in model.joints)
    return with_default_frames(replace(model, joints=joints))


def lowest(model: Model) -> float | None:
    """The height [m] of the lowest corner of the model's bodies in its default pose; None: it has no shapes."""
    up = int(np.abs(model.gravity).argmax())
    sign = -np.sign(model.gravity[up])
    heights = []
    for body in model.bodies:
        if body.shapes:
            middle, half = extent(body)
            turn = orientation_matrix(body.frame.orientation)[up]
            heights.append(sign * (body.frame.position[up] + turn @ middle) - np.abs(turn) @ half)
    return float(sign * min(heights)) if heights else None

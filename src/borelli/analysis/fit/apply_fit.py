"""Fitted model: joints and markers moved, and bodies resized accordingly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.analysis.fit.parameters import FitParameters, default_displacement
from borelli.model.kinematics import with_default_frames
from borelli.model.marker_sets import extent
from borelli.model.model import GROUND, Model
from borelli.model.resize import resize_body, scale_mass
from borelli.model.transforms import orientation_matrix, vector
from borelli.model.validate import validate
from borelli.muscles.fiber_tuning import tune_fibers
from borelli.numerics.vectors import Array

MIN_JOINT_DISTANCE = 0.02
"""[m] Joints nearer to a body's own along an axis do not determine its size along it."""
MIN_SCALE, MAX_SCALE = 0.5, 2.0
"""Factors outside are misplaced joints, not sizes."""


def fitted_model(parameters: FitParameters, p: Array) -> Model:
    """Return the model with joint centers and marker offsets at p, bodies resized accordingly, and its total mass."""
    given = parameters.model
    moved = parameters.model_at(p)
    model = given
    for body in given.bodies:
        factors = _scale_factors(given, moved, body.name)
        if not np.allclose(factors, 1.0):
            model = resize_body(model, body.name, vector(factors))
    # resizing moved joints and markers too: they go to their fitted positions, in frames that did not move
    joints = tuple(
        replace(joint, parent_frame=to.parent_frame, child_frame=to.child_frame)
        for joint, to in zip(model.joints, moved.joints, strict=True)
    )
    model = replace(model, joints=joints, markers=moved.markers)
    if given.mass > 0.0:
        model = scale_mass(model, given.mass)
    return tune_fibers(validate(_keep_height(given, with_default_frames(model)), sound_masses=False), given)


def _scale_factors(given: Model, moved: Model, body: str) -> Array:
    """Return a body's scale factors (3,), by least squares over the joint centers on it about its own joint."""
    own = next((j.child_frame.position for j in given.joints if j.child == body and not j.closes_loop), (0.0, 0.0, 0.0))
    pairs = []
    for before, after in zip(given.joints, moved.joints, strict=True):
        if before.parent == body and not before.closes_loop:
            displacement = default_displacement(given, before)
            pairs.append((before.parent_frame.position + displacement, after.parent_frame.position + displacement))
    if not pairs:
        return np.ones(3)
    old, new = (np.array(side) - np.array(own) for side in zip(*pairs, strict=True))
    size = (old**2).sum(axis=0)
    factors = np.where(size > MIN_JOINT_DISTANCE**2, (old * new).sum(axis=0) / np.maximum(size, 1e-12), 1.0)
    return np.clip(factors, MIN_SCALE, MAX_SCALE)


def _keep_height(given: Model, model: Model) -> Model:
    """Return the model with its lowest point as high above the ground as the given one's, if its root is free."""
    root = next((j for j in model.joints if j.parent == GROUND and j.kind == "free" and not j.axes), None)
    up = int(np.abs(model.gravity).argmax())
    before, after = lowest_point(given), lowest_point(model)
    if root is None or before is None or after is None:
        return model
    rise = before - after
    coordinates = tuple(replace(c, default=c.default + rise) if i == up else c for i, c in enumerate(root.coordinates))
    joints = tuple(replace(j, coordinates=coordinates) if j is root else j for j in model.joints)
    return with_default_frames(replace(model, joints=joints))


def lowest_point(model: Model) -> float | None:
    """Return the height [m] of the lowest corner of the bodies in the default pose; None without shapes."""
    up = int(np.abs(model.gravity).argmax())
    sign = -np.sign(model.gravity[up])
    heights = []
    for body in model.bodies:
        if body.shapes:
            center, half = extent(body)
            row = orientation_matrix(body.frame.orientation)[up]
            heights.append(sign * (body.frame.position[up] + row @ center) - np.abs(row) @ half)
    return float(sign * min(heights)) if heights else None

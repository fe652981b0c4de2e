"""Errors of segment masses, centers of mass and inertias, which regressions give for an average body.

Errors are alike on both sides of the body. The inertia of a segment follows from its second moment of mass, stretched
along each axis, so that it stays that of a solid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.analysis.error_sources.error_sizes import ErrorSizes
from borelli.model.inertia import MassProperties, mass_of_body
from borelli.model.model import Body, Model
from borelli.model.resize import scale_mass
from borelli.model.transforms import vector

SIDES = ("_r", "_l")
ROD_LENGTH = np.sqrt(12.0)
"""Length of a rod over its radius of gyration about its middle."""
MIN_FACTOR = 0.2
"""Least factor of a mass or length that is drawn."""


def draw_inertia(model: Model, sizes: ErrorSizes, random: np.random.Generator) -> Model:
    """Draw a model with other masses, centers of mass and inertias; other segments change so that the total is kept.

    The total itself then changes by the error of body mass.
    """
    stems = dict.fromkeys(_stem(body.name) for body in model.bodies)
    errors = {stem: random.standard_normal(7) for stem in stems}
    total = max(1.0 + sizes.body_mass * random.standard_normal(), MIN_FACTOR)
    if not model.mass > 0.0:
        return model
    bodies = tuple(body if body.kinematic else _change(body, errors[_stem(body.name)], sizes) for body in model.bodies)
    if bodies == model.bodies and total == 1.0:
        return model
    return scale_mass(replace(model, bodies=bodies), total * model.mass)


def _stem(name: str) -> str:
    return name[:-2] if name.endswith(SIDES) else name


def _change(body: Body, error: np.ndarray, sizes: ErrorSizes) -> Body:
    """Return a body with changed mass properties: of mass, along three axes, of three radii of gyration."""
    if not body.mass > 0.0 or not (sizes.segment_mass or sizes.center_of_mass or sizes.gyration_radius):
        return body
    now = mass_of_body(body)
    second_moment = 0.5 * np.trace(now.inertia) * np.eye(3) - now.inertia
    length = ROD_LENGTH * np.sqrt(np.maximum(np.diag(second_moment), 0.0) / now.mass)
    offset = sizes.center_of_mass * length * error[1:4]
    if body.name.endswith(SIDES[1]):
        offset = offset * (1.0, -1.0, 1.0)
    factors = np.maximum(1.0 + sizes.gyration_radius * error[4:7], MIN_FACTOR)
    mass = now.mass * max(1.0 + sizes.segment_mass * error[0], MIN_FACTOR)
    stretched = now.stretched(vector(factors))
    inertia = stretched.inertia * (mass / stretched.mass)
    mass, center, inertia = MassProperties(mass, now.center + offset, inertia).fields()
    return replace(body, mass=mass, center_of_mass=center, inertia=inertia)

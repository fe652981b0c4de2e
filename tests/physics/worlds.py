"""Small worlds for tests of laws: one body and its loads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from math import cos, radians, sin

import numpy as np
from numpy.typing import NDArray

from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape, Surface, Vector
from borelli.model.transforms import compose
from borelli.physics.run_soft_steps import Record, Simulation, make_record
from borelli.physics.state import State

Floats = NDArray[np.float64]

GRAVITY = 9.81
"""[m/s^2] of the models."""
WEIGHTLESS = (0.0, 0.0, 0.0)
HALF = 0.1
"""[m] half the side of the box, and the radius of the ball."""


def crate(surface: Surface = Surface(), position: Vector = (0.0, 0.0, HALF), name: str = "box") -> Body:
    """Return a cube of 8 kg on z = 0."""
    return body_from_shapes(name, (Shape("box", (HALF, HALF, HALF), surface=surface),), frame=Frame(position))


def ball(surface: Surface = Surface(), position: Vector = (0.0, 0.0, HALF)) -> Body:
    """Return a ball on z = 0."""
    return body_from_shapes("ball", (Shape("sphere", (HALF,), surface=surface),), frame=Frame(position))


def on_floor(body: Body, surface: Surface = Surface()) -> Model:
    """Return one body above the plane z = 0."""
    return Model(body.name, (body,), ground=(Shape("plane", surface=surface),))


def on_slope(slope: float, friction: float, azimuth: float = 0.0) -> Model:
    """Return a cube on a plane with `slope` [rad] towards `azimuth` [deg]; the cube is rotated back by as much."""
    surface = Surface(friction=friction)
    turn = radians(azimuth) / 2
    plane = compose(
        Frame(orientation=(cos(turn), 0.0, 0.0, sin(turn))),
        Frame(orientation=(cos(slope / 2), 0.0, sin(slope / 2), 0.0)),
    )
    resting = compose(plane, Frame((0.0, 0.0, HALF), (cos(turn), 0.0, 0.0, -sin(turn))))
    box = replace(crate(surface), frame=resting)
    return Model("slope", (box,), ground=(Shape("plane", frame=plane, surface=surface),))


def carriage(axis: Vector = (1.0, 0.0, 0.0), mass: float = 2.0, gravity: Vector = WEIGHTLESS) -> Model:
    """Return a mass on a slider with coordinate `x`."""
    joint = Joint("rail", "slider", GROUND, "mass", axes=(axis,), coordinates=(Coordinate("x", rotational=False),))
    return Model("carriage", (Body("mass", mass),), (joint,), gravity=gravity)


def heading(degrees: float) -> Floats:
    """Return the horizontal unit vector at an angle to x."""
    return np.array([cos(radians(degrees)), sin(radians(degrees)), 0.0])


def advance(simulation: Simulation, steps: int) -> Record:
    """Make steps and return their record."""
    record = make_record(simulation.compiled, steps)
    simulation.advance(steps, record)
    return record


def fingerprint(arrays: State | Record | Sequence[Floats]) -> str:
    """Return a hash of all bits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

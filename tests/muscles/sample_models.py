"""Small models with one muscle, and random poses of stored ones."""

from functools import cache

import numpy as np

from borelli.model.functions import linear
from borelli.model.io import read_model
from borelli.model.model import (
    Body,
    Coordinate,
    CoordinateRange,
    Frame,
    Joint,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    TransformAxis,
    WrapObject,
)

from ..shared_data import SHARED_DATA

OSIM_MODELS = (
    "opensim/arm26/arm26.osim",
    "opensim/gait10dof18musc/gait10dof18musc.osim",
    "opensim/gait2354/gait2354_simbody.osim",
    "opensim/gait2392/gait2392_thelen2003muscle.osim",
    "opensim/rajagopal2016/Rajagopal2016.osim",
    "opensim/hamner2010_running/FullBodyModel_Hamner2010_v2_0.osim",
    "opensim/jumper/DynamicJumperModel.osim",
    "muscle_models/osim/FBLS_Raabe_fullbody_324.osim",
    "muscle_models/osim/das4_v4.osim",
)
"""Models of the accuracy requirement; ThoracoscapularShoulderModel.osim is refused by the reader."""


@cache
def stored(name: str) -> Model:
    return read_model(SHARED_DATA / name)


def random_rows(model: Model, count: int, seed: int = 0) -> np.ndarray:
    """Poses within the ranges of the coordinates, cut at half a turn and two meters; locked ones at their defaults."""
    low, high = [], []
    for c in model.coordinates:
        a, b = c.usual_range or (c.lower, c.upper)
        most = np.pi if c.rotational else 2.0
        low.append(c.default if c.locked else max(a, -most))
        high.append(c.default if c.locked else min(b, most))
    return np.random.default_rng(seed).uniform(low, high, (count, len(low)))


def free_body_model(points, wraps=(), objects=(), pulleys=()) -> Model:
    """A muscle from the ground to a body with six degrees of freedom; points on it have bodies "b"."""
    names = ("tx", "ty", "tz", "rx", "ry", "rz")
    coordinates = tuple(Coordinate(n, rotational=n[0] == "r") for n in names)
    joint = Joint("free", "free", "ground", "b", coordinates=coordinates)
    muscle = Muscle("m", tuple(points), 100.0, 0.1, 0.1, wraps=tuple(wraps), pulleys=tuple(pulleys))
    return Model("one muscle", (Body("b", 1.0),), (joint,), muscles=(muscle,), wrap_objects=tuple(objects))


def at(x, y, z, body="ground", **rest) -> PathPoint:
    return PathPoint(body, (float(x), float(y), float(z)), **rest)


def surface(kind, *size, side="all", active=True, frame=Frame(), name="s") -> WrapObject:
    return WrapObject(name, kind, "ground", size, frame, side, active)


def over(*wraps: WrapObject, **rest) -> tuple[PathWrap, ...]:
    return tuple(PathWrap(wrap.name, **rest) for wrap in wraps)


def moving_and_conditional_model() -> Model:
    """A hinge with a moving point driven by it, and a point that is active in a part of its range."""
    hinge = Joint("hinge", "hinge", "ground", "b", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate("q"),))
    motion = (
        TransformAxis((1.0, 0.0, 0.0), linear(0.02, 0.1), "q"),
        TransformAxis((0.0, 1.0, 0.0), linear(-0.01, 0.05), "q"),
    )
    path = (
        at(0.3, 0.1, 0.0),
        at(0.25, 0.2, 0.0, only_within=CoordinateRange("q", 0.0, 1.0)),
        at(0.1, 0.05, 0.0, "b", motion=motion),
    )
    muscle = Muscle("m", path, 100.0, 0.1, 0.1)
    return Model("hinge", (Body("b", 1.0),), (hinge,), muscles=(muscle,))

"""Small models with muscles for controlled runs."""

from dataclasses import replace

import numpy as np

from borelli.model.functions import linear
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Coordinate, Frame, Joint, Model, Muscle, PathPoint, Shape, Surface, TransformAxis

FORCE = 900.0
"""Maximum isometric force of a muscle [N]."""


def rod(name: str, length: float, mass: float, *pads: Shape):
    """A rod along its z axis, its center at the origin of the body."""
    bar = replace(Shape("capsule", (0.03, 0.5 * length - 0.03)), collides=False)
    return replace(body_from_shapes(name, (bar,), mass=mass), shapes=(bar, *pads))


def muscle(
    name: str, *points: tuple[str, float, float, float], force: float = FORCE, length: float = 0.25, moving=()
) -> Muscle:
    path = [PathPoint(body, (x, y, z)) for body, x, y, z in points]
    if moving:
        path[-1] = replace(path[-1], motion=moving)
    return Muscle(name, tuple(path), force, length, 0.02)


def floating_arm() -> Model:
    """A free trunk, an upper arm on a ball joint, a forearm on a hinge, 10 muscles, one with a moving point."""
    free = Joint(
        "root", "free", "ground", "trunk",
        coordinates=tuple(Coordinate(n, rotational=n[0] == "r") for n in ("tx", "ty", "tz", "rx", "ry", "rz")),
    )  # fmt: skip
    shoulder = Joint(
        "shoulder", "ball", "trunk", "upper", Frame((0.0, 0.0, -0.25)), Frame((0.0, 0.0, 0.15)),
        coordinates=(Coordinate("a"), Coordinate("b"), Coordinate("c")),
    )  # fmt: skip
    elbow = Joint(
        "elbow", "hinge", "upper", "fore", Frame((0.0, 0.0, -0.15)), Frame((0.0, 0.0, 0.12)), ((0.0, 1.0, 0.0),),
        (Coordinate("e"),),
    )  # fmt: skip
    muscles = []
    for k in range(8):
        angle, twist = 0.25 * np.pi * k, (0.8 if k % 2 else -0.8)
        x, y = 0.12 * np.cos(angle), 0.12 * np.sin(angle)
        u, v = 0.06 * np.cos(angle + twist), 0.06 * np.sin(angle + twist)
        muscles.append(muscle(f"shoulder_{k}", ("trunk", x, y, -0.12), ("upper", u, v, 0.02)))
    patella = (
        TransformAxis((1.0, 0.0, 0.0), linear(0.006, -0.06), "e"),
        TransformAxis((0.0, 0.0, 1.0), linear(0.0, 0.06), "e"),
    )  # fmt: skip
    muscles.append(muscle("extensor", ("upper", -0.05, 0.0, 0.1), ("fore", -0.06, 0.0, 0.06), moving=patella))
    muscles.append(muscle("flexor", ("trunk", 0.05, 0.0, -0.2), ("upper", 0.05, 0.0, 0.0), ("fore", 0.05, 0.0, 0.04)))
    bodies = (rod("trunk", 0.5, 10.0), rod("upper", 0.3, 2.0), rod("fore", 0.24, 1.2))
    return Model("floating arm", bodies, (free, shoulder, elbow), gravity=(0.0, 0.0, 0.0), muscles=tuple(muscles))


def trestle(load: float = 0.0) -> Model:
    """Two rods on the ground, joined at the top by a hinge whose muscles open and close them; four contacts."""
    surface = Surface(friction=0.8)
    pads = tuple(Shape("sphere", (0.02,), Frame((0.0, y, -0.3)), surface=surface) for y in (-0.2, 0.2))
    free = Joint(
        "root", "free", "ground", "left",
        coordinates=tuple(Coordinate(n, rotational=n[0] == "r") for n in ("tx", "ty", "tz", "rx", "ry", "rz")),
    )  # fmt: skip
    apex = Joint(
        "apex", "hinge", "left", "right", Frame((0.0, 0.0, 0.3)), Frame((0.0, 0.0, 0.3)), ((0.0, 1.0, 0.0),),
        (Coordinate("open"),),
    )  # fmt: skip
    muscles = (
        muscle("closer", ("left", 0.0, 0.0, 0.05), ("right", 0.0, 0.0, 0.05), length=0.35),
        muscle("opener", ("left", -0.05, 0.0, 0.2), ("left", 0.0, 0.0, 0.37), ("right", 0.05, 0.0, 0.2)),
    )
    bodies = (rod("left", 0.6, 4.0 + load, *pads), rod("right", 0.6, 4.0 + load, *pads))
    return Model("trestle", bodies, (free, apex), muscles=muscles, ground=(Shape("plane", surface=surface),))

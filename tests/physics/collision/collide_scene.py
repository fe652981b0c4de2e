"""Two shapes in space, for the tests of contact: small models, random poses, contacts as plain arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Body, Model, Shape
from borelli.physics.arrays.shapes import ShapeTables, compile_shapes
from borelli.physics.collision.detect import find_contacts, make_contacts

KINDS = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh")
SIZES = {
    "sphere": (0.2,),
    "box": (0.3, 0.2, 0.1),
    "capsule": (0.1, 0.25),
    "cylinder": (0.15, 0.25),
    "ellipsoid": (0.3, 0.2, 0.1),
}
CLOUD = tuple(map(tuple, np.random.default_rng(1).normal(size=(20, 3)) * 0.2))
ORIGIN = np.zeros(3)
UPRIGHT = np.eye(3)


class Found(NamedTuple):
    pair: np.ndarray
    slot: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    depth: np.ndarray


def shape(kind: str, size: tuple[float, ...] | None = None) -> Shape:
    if kind == "mesh":
        return Shape("mesh", vertices=CLOUD)
    return Shape(kind, SIZES[kind] if size is None else size)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def rotation_about(axis: str, angle: float) -> np.ndarray:
    """Return the rotation matrix about a coordinate axis [rad]."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = np.cos(angle)
    matrix[j, i] = np.sin(angle)
    matrix[i, j] = -matrix[j, i]
    return matrix


def tables(*shapes: Shape, ground: tuple[Shape, ...] = ()) -> ShapeTables:
    """Return the arrays of one free body for each shape."""
    bodies = tuple(Body(f"b{i}", 1.0, shapes=(s,)) for i, s in enumerate(shapes))
    return compile_shapes(Model("test", bodies, ground=ground), {b.name: i for i, b in enumerate(bodies)})


def contacts(shapes: ShapeTables, poses: list[tuple[np.ndarray, np.ndarray]], margin: float = 0.0) -> Found:
    """Return contacts of the shapes with their bodies at (position, rotation)."""
    buffer = make_contacts(shapes)
    position = np.array([p for p, _ in poses], float).reshape(-1, 3)
    rotation = np.array([r for _, r in poses], float).reshape(-1, 3, 3)
    count = find_contacts(SharedTuple(shapes), position, rotation, margin, SharedTuple(buffer))
    return Found(*(array[:count].copy() for array in buffer[:5]))

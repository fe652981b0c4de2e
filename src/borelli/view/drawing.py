"""Drawing of a model: colored triangles on each body, and the planes of its ground."""

from __future__ import annotations

import colorsys
from math import inf
from typing import NamedTuple

import numpy as np

from borelli.model.model import GROUND, Body, Frame, Joint, Model, Shape
from borelli.numerics.quaternions import rotation_matrix
from borelli.view.mesh import Array, Indices, join, shape_mesh

# hue, saturation, value of the trees of a model in turn: colors that differ in lightness as well as in hue
HUES = (
    (0.085, 0.60, 0.90),  # amber
    (0.575, 0.55, 0.78),  # blue
    (0.440, 0.50, 0.68),  # teal
    (0.980, 0.52, 0.82),  # rose
    (0.750, 0.36, 0.74),  # violet
    (0.230, 0.52, 0.72),  # moss
)
GROUND_COLOR = (0.66, 0.68, 0.71)
TILES = ((0.80, 0.82, 0.84), (0.735, 0.755, 0.78))
FLOOR_COLOR = (0.78, 0.79, 0.81)
FLOOR_GAP = 0.1  # [m]
PATCH = 3.0  # half side of the square that represents a tilted plane [m]; level planes extend to the horizon
DOT_RADIUS = 0.03  # radius of the sphere that represents a body without shapes [m]
ROD_RADIUS = 0.02  # and of the rods between its joints [m]


class Drawing(NamedTuple):
    """Everything that is constant in time. Vertices are in the frames of their bodies."""

    vertices: Array
    normals: Array
    triangles: Indices
    body: Indices
    """(vertices,) index of the body; -1 is the ground."""
    colors: Array
    """(vertices, 3) linear light."""
    planes: Array
    """(planes, 4, 3) two directions, normal, origin, in lab axes."""
    plane_sizes: Array
    """(planes, 2) side of a tile and half side of the plane [m]."""
    plane_colors: Array
    """(planes, 2, 3) linear light of the two kinds of tile."""


def make_drawing(model: Model) -> Drawing:
    """Return the triangles, colors and planes of a model."""
    by_body, parts = body_colors(model), []
    for index, body in enumerate(model.bodies):
        parts += [(shape, index, by_body[body.name]) for shape in body.shapes or _rods(model, body)]
    parts += [(shape, -1, GROUND_COLOR) for shape in model.ground]
    meshes = [shape_mesh(shape) for shape, _, _ in parts]
    counts = [len(m.vertices) for m in meshes]
    planes = [shape for shape in model.ground if shape.kind == "plane"]
    return Drawing(
        *join(meshes),
        body=np.repeat(np.array([owner for _, owner, _ in parts], np.int64), counts),
        colors=linear(np.repeat(np.array([color for _, _, color in parts]).reshape(-1, 3), counts, axis=0)),
        planes=np.array([_plane(shape) for shape in planes]).reshape(-1, 4, 3),
        plane_sizes=np.array([(0.5, inf if _level(shape) else PATCH) for shape in planes]).reshape(-1, 2),
        plane_colors=linear(np.array([TILES] * len(planes)).reshape(-1, 2, 3)),
    )


def _rods(model: Model, body: Body) -> tuple[Shape, ...]:
    """Return shapes for a body without any: rods from its proximal joint to its distal joints, or a sphere.

    A joint that also translates, such as OpenSim's knee, is drawn at its reference position.
    """
    proximal = [j.child_frame.position for j in model.joints if j.child == body.name and not j.closes_loop]
    distal = [_joint_in_parent(body, model.body(j.child), j) for j in model.joints if j.parent == body.name]
    start = np.array(proximal[0] if proximal else body.center_of_mass)
    rods = []
    for end in distal:
        rod = end - start
        length = float(np.linalg.norm(rod))
        if length > DOT_RADIUS:
            # rotation of z to the rod: by 180 degrees about their bisector
            half = rod / length + [0.0, 0.0, 1.0]
            axis = half / np.linalg.norm(half) if np.linalg.norm(half) > 1e-9 else np.array([1.0, 0.0, 0.0])
            rotation = (0.0, float(axis[0]), float(axis[1]), float(axis[2]))
            x, y, z = (start + 0.5 * rod).tolist()
            rods.append(Shape("capsule", (ROD_RADIUS, 0.5 * length), Frame((x, y, z), rotation)))
    return tuple(rods) or (Shape("sphere", (DOT_RADIUS,)),)


def _joint_in_parent(parent: Body, child: Body, joint: Joint) -> Array:
    """Return the position of a joint in the frame of its parent, in the reference pose."""
    position = rotation_matrix(np.array(child.frame.orientation)) @ joint.child_frame.position + child.frame.position
    return np.asarray(
        rotation_matrix(np.array(parent.frame.orientation)).T @ (position - np.array(parent.frame.position))
    )


def transform_vertices(drawing: Drawing, position: Array, quaternion: Array) -> tuple[Array, Array]:
    """Return vertices and normals in lab axes for body positions (bodies, 3) and quaternions (bodies, 4).

    The triangles of a body whose position is NaN are collapsed to a vertex of another body.
    """
    # the ground is last, at index -1
    rotation = rotation_matrix(np.vstack([quaternion, [1.0, 0.0, 0.0, 0.0]]))[drawing.body]
    offset = np.vstack([position, np.zeros(3)])[drawing.body]
    vertices = np.einsum("nij,nj->ni", rotation, drawing.vertices) + offset
    absent = np.isnan(offset[:, 0])
    if absent.any():
        vertices[absent] = vertices[~absent][0] if not absent.all() else 0.0
    return vertices, np.einsum("nij,nj->ni", rotation, drawing.normals)


def body_colors(model: Model) -> dict[str, tuple[float, float, float]]:
    """Return the color (sRGB, 0 to 1) of each body: one hue per tree of joints; left darker, right lighter."""
    root = {body.name: body.name for body in model.bodies}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for joint in model.joints:
        if GROUND not in (joint.parent, joint.child):
            root[find(joint.child)] = find(joint.parent)
    trees = list(dict.fromkeys(find(body.name) for body in model.bodies))
    return {
        body.name: _color(body, index, HUES[trees.index(find(body.name)) % len(HUES)])
        for index, body in enumerate(model.bodies)
    }


def linear(srgb: Array) -> Array:
    """Return linear light of sRGB values in 0 to 1."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _color(body: Body, index: int, hsv: tuple[float, float, float]) -> tuple[float, float, float]:
    hue, saturation, value = hsv
    words = body.name.replace(".", "_").replace("-", "_").lower().split("_")
    if {"left", "l"} & set(words):
        value *= 0.80
    elif {"right", "r"} & set(words):
        saturation *= 0.75
    elif index % 2:
        value *= 0.92
    if body.kinematic:
        saturation *= 0.25
    return colorsys.hsv_to_rgb(hue, saturation, value)


def _plane(shape: Shape) -> Array:
    return np.vstack([rotation_matrix(np.array(shape.frame.orientation)).T, shape.frame.position])


def _level(shape: Shape) -> bool:
    return float(_plane(shape)[2, 2]) > 0.9999


def with_floor(drawing: Drawing, low: float) -> Drawing:
    """Return the drawing with a plain floor a little below the height `low` [m], unless it has its own ground."""
    if (drawing.body == -1).any() or len(drawing.planes):
        return drawing
    floor = np.vstack([np.eye(3), [0.0, 0.0, low - FLOOR_GAP]])
    return drawing._replace(
        planes=floor[None],
        plane_sizes=np.array([[1.0, inf]]),
        plane_colors=linear(np.array([[FLOOR_COLOR, FLOOR_COLOR]])),
    )

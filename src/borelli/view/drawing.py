"""A model as something to draw: coloured triangles on each body, and the planes of its ground."""

from __future__ import annotations

import colorsys
from math import inf
from typing import NamedTuple

import numpy as np

from borelli.model.model import GROUND, Body, Frame, Joint, Model, Shape
from borelli.view.mesh import Array, Indices, join, rotation_of, shape_mesh

# hue, saturation, value of the trees of a model in turn: calm colours that differ in lightness as well as in hue
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
STAGE = (0.78, 0.79, 0.81)
STAGE_GAP = 0.1  # [m]
PATCH = 3.0  # a tilted plane is drawn as a square of this half side [m]; level planes reach the horizon
DOT = 0.03  # radius [m] of the ball that stands for a body without shapes
BONE = 0.02  # and of the rods between its joints


class Drawing(NamedTuple):
    """What stays the same from picture to picture. Vertices are stated in their bodies' frames."""

    vertices: Array
    normals: Array
    triangles: Indices
    body: Indices
    """(vertices,) index of the body; -1 is the ground."""
    colors: Array
    """(vertices, 3) linear light."""
    planes: Array
    """(planes, 4, 3) two directions, normal, origin, in the world."""
    plane_sizes: Array
    """(planes, 2) side of a tile and half side of the plane [m]."""
    plane_colors: Array
    """(planes, 2, 3) linear light of the two kinds of tile."""


def drawing_of(model: Model) -> Drawing:
    """The triangles, colours and planes of a model."""
    meshes, owners, colors = [], [], []
    body_colors = colors_of(model)
    for index, body in enumerate(model.bodies):
        shapes = body.shapes or _bones(model, body)
        for shape in shapes:
            meshes.append(shape_mesh(shape))
            owners.append(index)
            colors.append(body_colors[body.name])
    for shape in model.ground:
        meshes.append(shape_mesh(shape))
        owners.append(-1)
        colors.append(GROUND_COLOR)
    mesh = join(meshes)
    counts = [len(m.vertices) for m in meshes]
    planes = [shape for shape in model.ground if shape.kind == "plane"]
    return Drawing(
        *mesh,
        body=np.repeat(np.array(owners, np.int64), counts),
        colors=linear(np.repeat(np.array(colors).reshape(-1, 3), counts, axis=0)),
        planes=np.array([_plane(shape) for shape in planes]).reshape(-1, 4, 3),
        plane_sizes=np.array([(0.5, inf if _level(shape) else PATCH) for shape in planes]).reshape(-1, 2),
        plane_colors=linear(np.array([TILES] * len(planes)).reshape(-1, 2, 3)),
    )


def _bones(model: Model, body: Body) -> tuple[Shape, ...]:
    """What stands for a body without shapes: rods from the joint it hangs on to those that hang on it, or a ball.

    A joint that also shifts, as OpenSim's knees do, is where the reference pose has it.
    """
    hung = [j.child_frame.position for j in model.joints if j.child == body.name and not j.closes_loop]
    carried = [_seen_from(body, model.body(j.child), j) for j in model.joints if j.parent == body.name]
    start = np.array(hung[0] if hung else body.center_of_mass)
    rods = []
    for end in carried:
        way = end - start
        length = float(np.linalg.norm(way))
        if length > DOT:
            # the turn that takes z to the rod: half way between the two, by half a circle
            half = way / length + [0.0, 0.0, 1.0]
            axis = half / np.linalg.norm(half) if np.linalg.norm(half) > 1e-9 else np.array([1.0, 0.0, 0.0])
            turn = (0.0, float(axis[0]), float(axis[1]), float(axis[2]))
            x, y, z = (start + 0.5 * way).tolist()
            rods.append(Shape("capsule", (BONE, 0.5 * length), Frame((x, y, z), turn)))
    return tuple(rods) or (Shape("sphere", (DOT,)),)


def _seen_from(parent: Body, child: Body, joint: Joint) -> Array:
    """Where a joint is on its parent in the reference pose."""
    place = rotation_of(np.array(child.frame.orientation)) @ joint.child_frame.position + child.frame.position
    return np.asarray(rotation_of(np.array(parent.frame.orientation)).T @ (place - np.array(parent.frame.position)))


def placed(drawing: Drawing, position: Array, quaternion: Array) -> tuple[Array, Array]:
    """Vertices and normals in the world, with the bodies at these positions (bodies, 3) and quaternions (bodies, 4).

    A body whose position is not a number is not there: its triangles are shrunk to a point that is.
    """
    # the ground is appended, so that index -1 finds it
    rotation = rotation_of(np.vstack([quaternion, [1.0, 0.0, 0.0, 0.0]]))[drawing.body]
    shift = np.vstack([position, np.zeros(3)])[drawing.body]
    vertices = np.einsum("nij,nj->ni", rotation, drawing.vertices) + shift
    absent = np.isnan(shift[:, 0])
    if absent.any():
        vertices[absent] = vertices[~absent][0] if not absent.all() else 0.0
    return vertices, np.einsum("nij,nj->ni", rotation, drawing.normals)


def colors_of(model: Model) -> dict[str, tuple[float, float, float]]:
    """The colour (sRGB, 0 to 1) of each body: one hue per tree of joints; left is darker, right lighter."""
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
        body.name: _tinted(body, index, HUES[trees.index(find(body.name)) % len(HUES)])
        for index, body in enumerate(model.bodies)
    }


def linear(srgb: Array) -> Array:
    """Linear light of sRGB values in 0 to 1."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _tinted(body: Body, index: int, hsv: tuple[float, float, float]) -> tuple[float, float, float]:
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
    return np.vstack([rotation_of(np.array(shape.frame.orientation)).T, shape.frame.position])


def _level(shape: Shape) -> bool:
    return float(_plane(shape)[2, 2]) > 0.9999


def with_stage(drawing: Drawing, low: float) -> Drawing:
    """The drawing with a plain floor a little below the height `low` [m], unless it has ground of its own."""
    if (drawing.body == -1).any() or len(drawing.planes):
        return drawing
    stage = np.vstack([np.eye(3), [0.0, 0.0, low - STAGE_GAP]])
    return drawing._replace(
        planes=stage[None], plane_sizes=np.array([[1.0, inf]]), plane_colors=linear(np.array([[STAGE, STAGE]]))
    )

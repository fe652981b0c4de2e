"""Shapes as triangles, for images and the browser viewer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.model import Shape
from borelli.numerics.quaternions import rotation_matrix

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

AROUND = 28  # divisions of a revolution: round enough at 1000 pixels
BEVEL = 0.06  # bevel of a box, relative to its smallest half extent; it catches the light


class Mesh(NamedTuple):
    """Triangles with smooth normals."""

    vertices: Array
    """(n, 3) [m]."""
    normals: Array
    """(n, 3) unit."""
    triangles: Indices
    """(m, 3) indices of vertices, counterclockwise from outside."""


EMPTY = Mesh(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), np.int64))


def shape_mesh(shape: Shape) -> Mesh:
    """Return the triangles of a shape in the frame of its body; a plane has none."""
    match shape.kind:
        case "sphere":
            mesh = _ellipsoid((shape.size[0],) * 3)
        case "ellipsoid":
            mesh = _ellipsoid(shape.size)
        case "box":
            mesh = _box(shape.size)
        case "capsule":
            mesh = _capsule(*shape.size)
        case "cylinder":
            mesh = _cylinder(*shape.size)
        case "mesh":
            mesh = _hull(np.array(shape.vertices))
        case _:
            mesh = EMPTY
    rotation = rotation_matrix(np.array(shape.frame.orientation))
    return Mesh(mesh.vertices @ rotation.T + np.array(shape.frame.position), mesh.normals @ rotation.T, mesh.triangles)


def join(meshes: list[Mesh]) -> Mesh:
    """Return several meshes as one."""
    if not meshes:
        return EMPTY
    starts = np.cumsum([0] + [len(m.vertices) for m in meshes[:-1]])
    return Mesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate([m.normals for m in meshes]),
        np.concatenate([m.triangles + s for m, s in zip(meshes, starts, strict=True)]),
    )


def _revolved(radius: Array, height: Array, slope_radial: Array, slope_axial: Array) -> Mesh:
    """Return the surface of revolution about z of a profile (radius by height, from the bottom up) with its normals."""
    angle = np.linspace(0.0, 2 * np.pi, AROUND, endpoint=False)
    c, s = np.cos(angle), np.sin(angle)
    vertices = np.stack([np.outer(radius, c), np.outer(radius, s), np.repeat(height[:, None], AROUND, 1)], axis=-1)
    normals = np.stack(
        [np.outer(slope_radial, c), np.outer(slope_radial, s), np.repeat(slope_axial[:, None], AROUND, 1)], axis=-1
    )
    ring, spoke = np.meshgrid(np.arange(len(radius) - 1), np.arange(AROUND), indexing="ij")
    a = (ring * AROUND + spoke).ravel()
    b = (ring * AROUND + (spoke + 1) % AROUND).ravel()
    triangles = np.concatenate([np.stack([a, b, b + AROUND], 1), np.stack([a, b + AROUND, a + AROUND], 1)])
    return Mesh(vertices.reshape(-1, 3), normals.reshape(-1, 3), triangles)


def _ellipsoid(half_axes: tuple[float, ...]) -> Mesh:
    latitude = np.linspace(-np.pi / 2, np.pi / 2, AROUND // 2 + 1)
    unit = _revolved(np.cos(latitude), np.sin(latitude), np.cos(latitude), np.sin(latitude))
    scale = np.array(half_axes)
    normals = unit.normals / scale
    return Mesh(unit.vertices * scale, normals / np.linalg.norm(normals, axis=1, keepdims=True), unit.triangles)


def _capsule(radius: float, half_length: float) -> Mesh:
    latitude = np.linspace(0.0, np.pi / 2, AROUND // 4 + 1)
    up, out = np.sin(latitude), np.cos(latitude)
    return _revolved(
        radius * np.concatenate([out[::-1], out]),
        np.concatenate([-half_length - radius * up[::-1], half_length + radius * up]),
        np.concatenate([out[::-1], out]),
        np.concatenate([-up[::-1], up]),
    )


def _cylinder(radius: float, half_length: float) -> Mesh:
    # edge rings are doubled: once with the normal of the end, once with that of the side
    r = radius * np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    z = half_length * np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    return _revolved(r, z, np.array([0.0, 0, 1, 1, 0, 0]), np.array([-1.0, -1, 0, 0, 1, 1]))


def arrow(length: float, radius: float, head_length: float, head_radius: float) -> Mesh:
    """Return an arrow along z with its tip at the origin."""
    neck, slope = -head_length, np.array([head_length, head_radius]) / np.hypot(head_length, head_radius)
    r = np.array([0.0, radius, radius, radius, radius, head_radius, head_radius, 0.0])
    z = np.array([-length, -length, -length, neck, neck, neck, neck, 0.0])
    return _revolved(
        r, z, np.array([0, 0, 1, 1, 0, 0, *slope[[0, 0]]]), np.array([-1, -1, 0, 0, -1, -1, *slope[[1, 1]]])
    )


def _box(half: tuple[float, ...]) -> Mesh:
    """Return a box with beveled edges: the hull of three slightly smaller boxes."""
    cut = BEVEL * min(half)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    inset = [np.array(half) - cut * (np.arange(3) != axis) for axis in range(3)]
    return _hull(np.concatenate([corners * size for size in inset]))


def _hull(points: Array) -> Mesh:
    """Return the convex hull of points, with flat faces."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = points[hull.simplices]
    outward = hull.equations[:, :3]
    reversed_ = (
        np.einsum("ij,ij->i", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), outward) < 0
    )
    corners[reversed_] = corners[reversed_][:, [0, 2, 1]]
    return Mesh(corners.reshape(-1, 3), np.repeat(outward, 3, axis=0), np.arange(3 * len(corners)).reshape(-1, 3))

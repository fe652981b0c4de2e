"""Renderer: triangles and a camera in, a Pillow image out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, inf, radians, sin, tan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.array_checks import as_floats, as_indices, check_integer
from borelli.view.drawing import Drawing
from borelli.view.mesh import Array, Indices, Mesh, join
from borelli.view.raster import develop, fill_depth, fill_height, shade

if TYPE_CHECKING:
    from PIL.Image import Image

SUN = np.array([0.38, -0.42, 0.82]) / np.linalg.norm([0.38, -0.42, 0.82])
MAP_SIZE = 900  # cells along each side of the shadow maps
GHOST_OPACITY = 0.5
DECAY_LENGTH = 0.15  # [m] behind the surface of a body in which muscles lose visibility by the factor e
FIELD_OF_VIEW = 32.0  # vertical [degrees]
LIGHT = np.linspace(0.0, 1.0, 4096)
SRGB = (255 * np.where(LIGHT <= 0.0031308, 12.92 * LIGHT, 1.055 * LIGHT ** (1 / 2.4) - 0.055) + 0.5).astype(np.uint8)


class Camera(NamedTuple):
    """Position and target of the camera [m], lab axes."""

    eye: Array
    target: Array


class Actors(NamedTuple):
    """Triangles in lab axes: one pose, or several side by side."""

    vertices: Array
    normals: Array
    triangles: Indices
    colors: Array
    inside: Actors | None = None
    """Triangles that show through the others: muscles."""
    ghost: Actors | None = None
    """Translucent triangles that the others hide: where bodies would be without perturbations."""


def join_actors(actors: Sequence[Actors]) -> Actors:
    """Return several poses as one set of triangles."""
    inside = [one.inside for one in actors if one.inside is not None]
    joined = Actors(*join([Mesh(*one[:3]) for one in actors]), np.concatenate([one.colors for one in actors]))
    ghosts = [one.ghost for one in actors if one.ghost is not None]
    return joined._replace(
        inside=join_actors(inside) if inside else None, ghost=join_actors(ghosts) if ghosts else None
    )


def camera_for(
    points: Array, aspect: float, *, azimuth: float = -62.0, elevation: float = 14.0, margin: float = 1.16
) -> Camera:
    """Return a camera that shows all points with a margin, from the given angles [degrees]."""
    axes = right, up, forward = axes_at(azimuth, elevation)
    target = (points.min(0) + points.max(0)) / 2
    distance = 0.0
    for _ in range(4):
        offset = points - target
        x, y, z = offset @ right, offset @ up, offset @ forward
        distance = needed_distance(offset, aspect, axes, margin)
        # center the projection, not the bounding box
        u, v = x / (z + distance), y / (z + distance)
        target = target + distance * ((u.min() + u.max()) / 2 * right + (v.min() + v.max()) / 2 * up)
    return Camera(target - distance * forward, target)


def needed_distance(offset: Array, aspect: float, axes: tuple[Array, Array, Array], margin: float = 1.16) -> float:
    """Return the distance [m] from which a camera shows points at these offsets from its target, with a margin."""
    x, y, z = (offset @ axis for axis in axes)
    half = tan(radians(FIELD_OF_VIEW / 2)) / margin
    return max(float((np.abs(x) / (half * aspect) - z).max()), float((np.abs(y) / half - z).max()), 0.3)


def render(drawing: Drawing, actors: Actors, camera: Camera, width: int, height: int, *, samples: int = 2) -> Image:
    """Render an image with `samples` squared rays per pixel."""
    from PIL import Image as images

    actors = _check_actors(actors)
    camera = Camera(*(as_floats(f"camera: {name}", at, (3,)) for name, at in zip(Camera._fields, camera, strict=True)))
    w, h = check_integer("width", width, 1) * samples, check_integer("height", height, 1) * samples
    right, up, forward = _screen(camera, width / height)
    screen = project(actors.vertices, camera, w, h)
    depth, triangle = np.zeros((h, w)), np.zeros((h, w), np.int32)
    weight, pixels = np.zeros((h, w, 2), np.float32), np.empty((h, w, 3), np.float32)
    fill_depth(screen, actors.triangles, depth, triangle, weight)
    size = max(float(np.linalg.norm(np.ptp(actors.vertices, axis=0))), 1e-3) if len(actors.vertices) else 1.0
    sun_frame, sun_map, sun_cell = _shadow_map(actors, SUN)
    sky_frame, sky_map, sky_cell = _shadow_map(actors, np.array([0.0, 0.0, 1.0]))
    shade(
        actors.normals, actors.triangles, actors.colors,
        drawing.planes, drawing.plane_sizes, drawing.plane_colors,
        depth, triangle, weight,
        camera.eye, right, up, forward,
        SUN, sun_frame, sun_map, max(0.012 / sun_cell, 1.5), sky_frame, sky_map, max(0.10 / sky_cell, 3.0),
        0.004 * min(size, 2.0), 0.06 * min(size, 2.0), 1.0 / (9.0 * max(size, 1.0)),
        pixels,
    )  # fmt: skip
    if actors.ghost is not None:
        _draw_over(_check_actors(actors.ghost), drawing, camera, depth, pixels, _ghost_opacity)
    if actors.inside is not None:
        _draw_over(_check_actors(actors.inside), drawing, camera, depth, pixels, _inside_opacity)
    image = np.empty((height, width, 3), np.uint8)
    develop(pixels, SRGB, image)
    return images.fromarray(image)


def _inside_opacity(near: Array, outer: Array) -> Array:
    """Return the opacity of muscles at a depth `near`: faded behind bodies, of inverse depth `outer` (0: none)."""
    behind = np.where(outer > 0.0, near - 1.0 / np.maximum(outer, 1e-9), 0.0)
    return np.exp(-np.maximum(behind, 0.0) / DECAY_LENGTH)


def _ghost_opacity(near: Array, outer: Array) -> Array:
    """Return the opacity of a ghost, which bodies hide."""
    return np.where(outer > 0.0, 0.0, GHOST_OPACITY)


def _draw_over(
    inside: Actors,
    drawing: Drawing,
    camera: Camera,
    depth: Array,
    pixels: NDArray[np.float32],
    opacity_of: Callable[[Array, Array], Array],
) -> None:
    """Draw triangles over the pixels, with an opacity by their depth and the bodies' inverse depth; planes hide all."""
    h, w = depth.shape
    inner, triangle, weight = np.zeros((h, w)), np.zeros((h, w), np.int32), np.zeros((h, w, 2), np.float32)
    fill_depth(project(inside.vertices, camera, w, h), inside.triangles, inner, triangle, weight)
    rows, columns = np.nonzero(inner > 0.0)
    near, outer = 1.0 / inner[rows, columns], depth[rows, columns]
    corners, (b, c) = inside.triangles[triangle[rows, columns]], weight[rows, columns].T
    normal = np.einsum("kn,nki->ni", [1.0 - b - c, b, c], inside.normals[corners])
    color = inside.colors[corners[:, 0]] * (0.5 + 0.5 * np.maximum(normal @ SUN, 0.0))[:, None]
    right, up, forward = _screen(camera, w / h)
    u, v = (columns + 0.5) / w * 2.0 - 1.0, 1.0 - (rows + 0.5) / h * 2.0
    ray = forward + u[:, None] * right + v[:, None] * up
    opacity = opacity_of(near, outer) * ~_behind_planes(drawing, camera.eye, ray, near)
    pixels[rows, columns] += opacity[:, None] * (color - pixels[rows, columns])


def _behind_planes(drawing: Drawing, eye: Array, ray: Array, near: Array) -> NDArray[np.bool_]:
    """Return whether a plane is between the eye and the point at a depth `near` [m] of each ray."""
    hidden = np.zeros(len(ray), bool)
    for (first, second, normal, origin), (_, half) in zip(drawing.planes, drawing.plane_sizes, strict=True):
        slope = ray @ normal
        distance = float((origin - eye) @ normal) / np.where(slope < 0.0, slope, -1e-9)
        at = eye + distance[:, None] * ray - origin
        on_plane = np.maximum(np.abs(at @ first), np.abs(at @ second)) < half
        hidden |= (slope < 0.0) & (distance > 0.0) & (distance < near) & on_plane
    return hidden


def _check_actors(actors: Actors) -> Actors:
    """Return the arrays for kernels; raise SettingsError if a vertex does not exist or is not finite."""
    vertices = as_floats("vertices", actors.vertices, (None, 3))
    return Actors(
        vertices,
        as_floats("normals", actors.normals, vertices.shape, finite=False),
        as_indices("triangles", actors.triangles, (None, 3), len(vertices)),
        as_floats("colors", actors.colors, vertices.shape, finite=False),
        actors.inside,
        actors.ghost,
    )


def axes_at(azimuth: float, elevation: float) -> tuple[Array, Array, Array]:
    """Return right, up and forward of a camera that looks at the origin from these angles [degrees]."""
    a, e = radians(azimuth), radians(elevation)
    forward = -np.array([cos(e) * cos(a), cos(e) * sin(a), sin(e)])
    right = np.array([-sin(a), cos(a), 0.0])
    return right, np.cross(right, forward), forward


def _screen(camera: Camera, aspect: float) -> tuple[Array, Array, Array]:
    """Return half the screen to the right and up, and the forward direction, all at unit depth."""
    forward = (camera.target - camera.eye) / np.linalg.norm(camera.target - camera.eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    half = tan(radians(FIELD_OF_VIEW / 2))
    return right * half * aspect, np.cross(right, forward) * half, forward


def project(points: Array, camera: Camera, width: int, height: int) -> Array:
    """Return column, row (of pixel centers) and inverse depth of points in lab axes."""
    right, up, forward = _screen(camera, width / height)
    offset = points - camera.eye
    z = offset @ forward
    inverse = np.where(z > 1e-3, 1.0 / np.maximum(z, 1e-3), -1.0)
    u, v = offset @ right / (right @ right) * inverse, offset @ up / (up @ up) * inverse
    return np.stack([(u + 1) / 2 * width - 0.5, (1 - v) / 2 * height - 0.5, inverse], axis=1)


def _shadow_map(actors: Actors, toward: Array) -> tuple[Array, Array, float]:
    """Return the frame of a light (lab to column, row, height), its map of heights, and the size of a cell [m]."""
    side = np.cross([0.0, 1.0, 0.0], toward)
    side /= np.linalg.norm(side)
    frame = np.vstack([side, np.cross(toward, side), toward])
    local = actors.vertices @ frame.T
    if not len(local):
        return np.zeros((3, 4)), np.full((1, 1), -inf), 1.0
    low, high = local.min(0), local.max(0)
    cell = max(float((high - low)[:2].max()) / (MAP_SIZE - 4), 1e-6)
    scale = np.array([1 / cell, 1 / cell, 1.0])
    offset = np.array([2.0 - low[0] / cell, 2.0 - low[1] / cell, 0.0])
    heights = np.full((MAP_SIZE, MAP_SIZE), -inf)
    fill_height(local * scale + offset, actors.triangles, heights)
    return np.hstack([frame * scale[:, None], offset[:, None]]), heights, cell

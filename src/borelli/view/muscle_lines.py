"""Muscles as colored lines along their paths, for images, videos, the browser viewer and the report."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.model import Model
from borelli.muscles.paths import path_points
from borelli.view.mesh import Array, Mesh

REST_COLOR, ACTIVE_COLOR = (0.47, 0.56, 0.68), (0.85, 0.10, 0.10)
"""Colors (sRGB, 0 to 1) at activation 0 and 1; between them, the mixture."""
UNKNOWN_COLOR = (0.52, 0.44, 0.40)
"""Color (sRGB) of muscles of unknown activation."""
LINE_RADIUS = 0.004
"""[m] of the tube that represents a muscle."""
TUBE_SIDES = 6
"""Number of sides of the tube."""


class MuscleLines(NamedTuple):
    """Muscle paths of a model in time, computed for the frames that are drawn."""

    model: Model
    """With the muscles that have a path; in its own axes."""
    coordinates: Array
    """(frames, coordinates) [rad or m]; paths of frames with NaN are not drawn."""
    activation: Array
    """(frames, muscles); NaN: unknown."""
    rotation: Array
    """(3, 3) model axes to lab axes."""
    offset: Array
    """(3,) displacement [m], lab axes."""

    def segments(self, frame: int) -> tuple[Array, NDArray[np.int64]]:
        """Return the straight pieces of all paths (pieces, 2, 3) [m], lab axes, and the muscle of each."""
        row = self.coordinates[frame]
        if not np.isfinite(row).all():
            return np.zeros((0, 2, 3)), np.zeros(0, np.int64)
        lines = path_points(self.model, row)[0]
        pieces = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
        owner = np.repeat(np.arange(len(lines)), [len(piece) for piece in pieces])
        ends = np.concatenate(pieces) @ self.rotation.T + self.offset
        drawn = np.isfinite(ends).all(axis=(1, 2)) & (np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) > 1e-9)
        return ends[drawn], owner[drawn]

    def colors(self, frame: int) -> Array:
        """Return the colors (muscles, 3) in one frame, sRGB in 0 to 1."""
        return activation_colors(self.activation[frame])


def muscle_lines(model: Model, coordinates: Array, activation: Array | None, rotation: Array) -> MuscleLines | None:
    """Return the lines of a model's muscles; None if it has none.

    Args:
        model: Model in its own axes.
        coordinates: (frames, coordinates) [rad or m].
        activation: (frames, muscles); None: unknown.
        rotation: (3, 3) model axes to lab axes.
    """
    from dataclasses import replace

    drawn = [k for k, muscle in enumerate(model.muscles) if len(muscle.path) > 1]
    if not drawn:
        return None
    values = np.full((len(coordinates), len(model.muscles)), np.nan) if activation is None else activation
    kept = replace(model, muscles=tuple(model.muscles[k] for k in drawn))
    return MuscleLines(kept, np.asarray(coordinates, float), values[:, drawn], rotation, np.zeros(3))


def activation_colors(activation: Array) -> Array:
    """Return colors (..., 3), sRGB in 0 to 1, of activations (...): blue-gray at rest, red at 1."""
    rest, active = np.array(REST_COLOR), np.array(ACTIVE_COLOR)
    mixed = rest + np.clip(activation, 0.0, 1.0)[..., None] * (active - rest)
    return np.where(np.isfinite(activation)[..., None], mixed, UNKNOWN_COLOR)


def tubes(segments: Array) -> Mesh:
    """Return a tube along each of the segments (segments, 2, 3), with 2 `TUBE_SIDES` vertices each."""
    count = len(segments)
    along = segments[:, 1] - segments[:, 0]
    along = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    # the axis that is least along the tube, so that the cross product is not small
    helper = np.eye(3)[np.abs(along).argmin(axis=1)]
    side = np.cross(along, helper)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
    other = np.cross(along, side)
    angle = 2.0 * np.pi * np.arange(TUBE_SIDES) / TUBE_SIDES
    ring = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None]
    vertices = segments[:, :, None] + LINE_RADIUS * ring[:, None]
    normals = np.broadcast_to(ring[:, None], vertices.shape)
    a = np.arange(TUBE_SIDES)
    b = (a + 1) % TUBE_SIDES
    one = np.concatenate([np.stack([a, b, b + TUBE_SIDES], 1), np.stack([a, b + TUBE_SIDES, a + TUBE_SIDES], 1)])
    triangles = one + 2 * TUBE_SIDES * np.arange(count)[:, None, None]
    return Mesh(vertices.reshape(-1, 3), normals.reshape(-1, 3).copy(), triangles.reshape(-1, 3))

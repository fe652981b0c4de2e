"""Rigid objects in a recording, such as a box or a stick: their motion from the markers on them.

An object's shape is the mean of its markers over all frames in which all are visible, aligned to one of them. Its pose
in a frame is the rotation and translation that fit the shape to its visible markers best (Söderkvist and Wedin 1993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, list_names
from borelli.numerics.quaternions import quaternion_series
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note, Recording, with_layout

OBJECT_VARIABLES = ("object_position", "object_orientation", "object_marker_error")
MIN_MARKERS = 3
"""Visible markers that determine a pose."""
MIN_WIDTH = 0.01
"""[m] RMS distance of markers from the line that fits them best: nearer ones do not show rotation about it."""
MAX_MARKER_ERROR = 0.01
"""[m] RMS distance of an object's markers from their rigid shape beyond which it is not rigid, or a label is wrong."""
SHAPE_ROUNDS = 3
"""Times that the shape is averaged and the frames are aligned to it: it converges in two."""


def separate_objects(recording: Recording, objects: Mapping[str, Sequence[str]]) -> Recording:
    """Return the recording with the motion of objects in place of their markers.

    Args:
        recording: Recording in the lab frame.
        objects: Labels of the markers on each object, by name.

    Returns:
        The recording without these markers, and with `OBJECT_VARIABLES`. An object's origin is the mean of its markers;
        its axes are those of the lab in the first frame in which all of them are visible.

    Raises:
        SettingsError: An object has too few markers, they are on a line, or never visible together.
    """
    if not objects:
        return recording
    points, labels = recording.data["marker_position"].values, recording.markers
    positions, orientations, errors, notes = [], [], [], []
    for name, own in objects.items():
        position, rotation, error = rigid_motion(points[:, [labels.index(label) for label in own]], name, own)
        positions.append(position)
        orientations.append(quaternion_series(rotation))
        errors.append(error)
        notes.append(_note(name, own, error))
    values = zip(OBJECT_VARIABLES, (positions, orientations, errors), strict=True)
    used = {label for own in objects.values() for label in own}
    data = recording.data.isel(marker=[i for i, label in enumerate(labels) if label not in used])
    data = data.assign(with_layout({name: np.stack(arrays, axis=1) for name, arrays in values}))
    return recording.with_data(data.assign_coords(object=list(objects), quaternion=list("wxyz")), *notes)


def rigid_motion(points: Array, name: str, labels: Sequence[str]) -> tuple[Array, Array, Array]:
    """Return origin (frames, 3) [m], rotation (frames, 3, 3) and RMS marker error (frames,) [m] of an object.

    `points` (frames, markers, 3) [m] are its markers. Frames with too few of them are NaN.
    """
    visible = np.asarray(np.isfinite(points).all(axis=2))
    complete = np.flatnonzero(visible.all(axis=1))
    if len(labels) < MIN_MARKERS or not len(complete):
        never = "" if len(labels) < MIN_MARKERS else ", which are never visible together"
        raise SettingsError(
            f"Object {name!r}: It has {len(labels)} markers ({list_names(labels)}){never}; its motion needs at least "
            f"{MIN_MARKERS} in one frame. Add markers to it in the map, or state that they are not used."
        )
    shape = points[complete[0]] - points[complete[0]].mean(axis=0)
    width = float(np.linalg.svd(shape, compute_uv=False)[1]) / np.sqrt(len(labels))
    if width < MIN_WIDTH:
        raise SettingsError(
            f"Object {name!r}: Its markers ({list_names(labels)}) are within {1e3 * width:.0f} mm of a line, at least "
            f"{1e3 * MIN_WIDTH:.0f} mm is needed to show its rotation. Add a marker off the line."
        )
    whole = points[complete]
    for _ in range(SHAPE_ROUNDS):
        rotation = _rotations(shape, whole)
        local = np.einsum("fji,fmj->fmi", rotation, whole - whole.mean(axis=1, keepdims=True))
        shape = local.mean(axis=0) @ rotation[0].T  # the axes stay those of the first frame
    return _poses(shape, points, visible)


def _poses(shape: Array, points: Array, visible: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return pose and RMS marker error of a shape (markers, 3) in every frame."""
    frames = len(points)
    position, rotation, error = np.full((frames, 3), np.nan), np.full((frames, 3, 3), np.nan), np.full(frames, np.nan)
    for pattern in np.unique(visible, axis=0):
        own = shape[pattern]
        if pattern.sum() < MIN_MARKERS or np.linalg.svd(own - own.mean(axis=0))[1][1] < MIN_WIDTH:
            continue
        at = np.flatnonzero((visible == pattern).all(axis=1))
        seen = points[at][:, pattern]
        rotation[at] = _rotations(own, seen)
        position[at] = seen.mean(axis=1) - rotation[at] @ own.mean(axis=0)
        modeled = position[at][:, None] + np.einsum("fij,mj->fmi", rotation[at], own)
        error[at] = np.sqrt(((modeled - seen) ** 2).sum(axis=2).mean(axis=1))
    return position, rotation, error


def _rotations(shape: Array, points: Array) -> Array:
    """Return the rotations (frames, 3, 3) that align a shape (markers, 3) with points (frames, markers, 3) best."""
    centered = points - points.mean(axis=1, keepdims=True)
    u, _, v = np.linalg.svd(np.einsum("fmi,mj->fij", centered, shape - shape.mean(axis=0)))
    v[:, 2] *= np.linalg.det(u @ v)[:, None]
    return np.asarray(u @ v)


def _note(name: str, labels: Sequence[str], error: Array) -> Note:
    rms = float(np.sqrt(np.nanmean(error**2)))
    text = (
        f"Object {name!r}: its motion follows from {len(labels)} markers ({list_names(labels)}; {1e3 * rms:.1f} mm RMS "
        f"from a rigid shape), known in {100.0 * float(np.isfinite(error).mean()):.0f} % of frames. It is not part of "
        "the body, and puts no load on it."
    )
    if rms > MAX_MARKER_ERROR:
        text = f"{text} It is not rigid within {1e3 * MAX_MARKER_ERROR:.0f} mm, or a label is wrong."
        return Note(text, "problem", "correct the map (--markers)", code="objects")
    return Note(text, "stated", "--markers", code="objects")

"""Zero of feet and pelvis from their own markers, whatever else of the body has markers.

While the sole is flat on the ground, the heights of foot markers above one another determine the zero of the ankle. The
sole is flat in the static trial, and in walking while a plate carries the foot and its markers are at rest. The axes of
the pelvis are those of the markers on its iliac spines, as the ISB recommends (Wu et al. 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from borelli.analysis.motion import match_markers
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording

FEET = {"right": "foot_r", "left": "foot_l"}
"""Bodies of `human()`, whose z axis is the normal of the sole."""
HEIGHT_SD = 0.003
"""[m] of a marker's height above the others of a flat foot: a sole is flat to about one degree."""
MAX_SPEED = 0.1
"""[m/s] of the markers of a foot at rest."""
MIN_LOAD = 0.5
"""Fraction of its largest vertical force that a flat foot supports."""
MIN_FRAMES = 3
SPINES = ("asis", "psis")
MIN_PELVIS_WIDTH = 0.05
"""[m] Root of the summed squared distances of markers on the pelvis from a line; nearer to it they show no rotation."""
MAX_CORRECTION = 0.04
"""[m] A marker that is farther from its height in the marker set belongs to a foot that is not flat."""


class FlatFoot(NamedTuple):
    """Markers of one foot, and their heights [m] in the axes of its body, of which only differences are known."""

    markers: tuple[int, ...]
    height: Array


def find_flat_feet(model: Model, recordings: Sequence[Recording], static: Recording | None) -> tuple[FlatFoot, ...]:
    """Return the feet of a person whose soles were flat in trials with force plates; the static trial has precedence.

    Without plates nothing shows when a foot supports the body, and the marker set alone determines the foot.
    """
    if not any("ground_reaction_force" in recording.data for recording in recordings):
        return ()
    result = []
    for side, body in FEET.items():
        markers = tuple(i for i, marker in enumerate(model.markers) if marker.body == body)
        if len(markers) < 2:
            continue
        stated = np.array([model.markers[i].position[2] for i in markers])
        sources = [] if static is None else [(static, None)]
        for recording, load in (*sources, *((recording, side) for recording in recordings)):
            height = _heights(model, markers, recording, load)
            if height is None:
                continue
            height = height - height.mean() + stated.mean()
            if np.abs(height - stated).max() < MAX_CORRECTION:
                result.append(FlatFoot(markers, height))
                break
    return tuple(result)


def pelvis_markers(model: Model) -> tuple[int, ...]:
    """Return the markers that define the axes of a person's pelvis; () if they are too near to a line.

    They are those on the iliac spines (Wu et al. 2002), if there are enough of them, else all.
    """
    own = tuple(i for i, marker in enumerate(model.markers) if marker.body == "pelvis")
    readings = interpret_labels([marker.name for marker in model.markers]).readings
    for chosen in (tuple(i for i in own if readings[i].landmark in SPINES), own):
        at = np.array([model.markers[i].position for i in chosen]).reshape(-1, 3)
        if len(chosen) >= 3 and np.linalg.svd(at - at.mean(axis=0), compute_uv=False)[1] > MIN_PELVIS_WIDTH:
            return chosen
    return ()


def mean_rotation(points: Array) -> Array:
    """Return the matrix (3, 3 markers) from small displacements of points (markers, 3) [m] to their rotation [rad].

    The rotation vector w minimizes sum |d_i - w x r_i|^2, with r_i from the mean point: w = A^-1 sum r_i x d_i, where
    A = sum |r_i|^2 1 - r_i r_i^T.
    """
    r = points - points.mean(axis=0)
    inertia = (r**2).sum() * np.eye(3) - r.T @ r
    cross = np.cross(r[:, None], np.eye(3)).transpose(2, 0, 1).reshape(3, -1)
    return np.asarray(np.linalg.solve(inertia, cross))


def _heights(model: Model, markers: tuple[int, ...], recording: Recording, side: str | None) -> Array | None:
    """Return the median heights [m] of markers at rest; with `side`, only while a plate carries that foot."""
    column = match_markers([model.markers[i] for i in markers], recording.markers)
    if min(column) < 0:
        return None
    at = recording.data["marker_position"].values[:, column]
    speed = recording.rate * np.linalg.norm(np.gradient(at, axis=0), axis=-1) if len(at) > 1 else np.zeros(at.shape[:2])
    flat = np.isfinite(at).all(axis=(1, 2)) & (speed < MAX_SPEED).all(axis=1)
    if side is not None:
        if "ground_reaction_force" not in recording.data or side not in recording.data["foot"].values:
            return None
        data = recording.data.sel(foot=side)
        force = np.interp(
            data["time"].values, data["analog_time"].values, np.nan_to_num(data["ground_reaction_force"].values[:, 2])
        )
        flat &= force > MIN_LOAD * max(force.max(), 1.0)
    if flat.sum() < MIN_FRAMES:
        return None
    return np.asarray(np.median(at[flat][..., 2], axis=0))

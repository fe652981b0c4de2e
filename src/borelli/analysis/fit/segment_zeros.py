"""Zero of feet and pelvis from their own markers, whatever else of the body has markers.

While the sole is flat on the ground, the heights of foot markers above one another determine the zero of the ankle. The
sole is flat in the static trial, and in walking while a plate carries the foot and its markers are at rest. With one
leg, the rotation of the pelvis follows from the symmetry of the markers on its iliac spines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from borelli.analysis.motion import match_markers
from borelli.model.model import Model
from borelli.model.people.partial import LEGS
from borelli.numerics.vectors import Array
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


def mirrored_landmarks(model: Model) -> tuple[tuple[int, int], ...]:
    """Return the pairs of markers on the pelvis that mirror each other in the marker set; () with both legs.

    Two hips that mirror each other determine the rotation of the pelvis better.
    """
    if not any(joint.name in LEGS and joint.kind == "fixed" for joint in model.joints):
        return ()
    own = [i for i, marker in enumerate(model.markers) if marker.body == "pelvis"]
    at = {i: np.array(model.markers[i].position) for i in own}
    return tuple(
        (i, j) for i in own for j in own if at[i][1] < 0.0 and np.abs(at[i] - at[j] * (1.0, -1.0, 1.0)).max() < 1e-9
    )


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

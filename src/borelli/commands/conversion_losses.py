"""Losses of a conversion: the written file is read back and compared with the recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from borelli.errors import BorelliError, list_names
from borelli.recording.io import read_recording
from borelli.recording.recording import LAYOUT, Recording

NAMES = {
    "marker_position": "markers",
    "marker_residual": "marker residuals",
    "model_output": "model outputs",
    "plate_force": "plate forces",
    "plate_center_of_pressure": "centers of pressure",
    "plate_free_moment": "plate free moments",
    "plate_corners": "plate corners",
    "analog": "analog channels",
    "coordinate_value": "coordinates",
    "column_value": "other columns",
    "joint_center": "joint centers",
    "event_time": "events",
}
"""Names of a recording's variables in messages."""
ROUNDING = 1e-9
"""Largest difference [m, N, rad, ...] that the rounding of decimal text explains."""
MAX_MARKER_ROUNDING = 1e-3
"""Largest marker difference [m] that rounding explains; beyond it, the reader inferred other units or axes."""


def conversion_losses(recording: Recording, path: Path) -> list[str]:
    """List what the file that a recording was written to does not contain; netCDF contains everything."""
    if path.suffix.lower() == ".nc":
        return []
    try:
        back, axes = read_recording(path), []
        if _other_axes(recording, back):
            units, up, forward = (str(recording.data.attrs[f"file_{key}"]) for key in ("units", "up", "forward"))
            back = read_recording(path, units=units, up=up, forward=forward)
            axes = [
                "units and axes: the format does not state them all, and others would be inferred. Read the file with "
                f"--units {units} --up {up} --forward {forward}"
            ]
    except BorelliError as error:
        return [f"everything: the file cannot be read again ({error})"]
    return axes + _lost_values(recording, back) + _lost_names(recording, back) + _lost_header(recording, back)


def _other_axes(recording: Recording, back: Recording) -> bool:
    """Return whether the reader inferred other units or axes than those of the recording."""
    has_markers = all("marker_position" in one.data for one in (recording, back))
    stated = has_markers and "file_up" in recording.data.attrs
    return stated and _difference(recording, back, "marker_position") > MAX_MARKER_ROUNDING


def _lost_values(recording: Recording, back: Recording) -> list[str]:
    lost, rounded = [], []
    for name, words in NAMES.items():
        if name not in recording.data:
            continue
        count = recording.data[name].shape[0 if name in ("event_time", "plate_corners") else 1]
        if name not in back.data:
            lost.append(f"{words} ({count})")
            continue
        difference = _difference(recording, back, name)
        units = LAYOUT[name].units
        if np.isnan(difference):
            lost.append(_shape_change(words, recording.data[name].shape, back.data[name].shape))
            continue
        # numbers that are missing in one recording but not in the other
        changed = int((np.isfinite(recording.data[name].values) != np.isfinite(back.data[name].values)).sum())
        if changed:
            lost.append(f"missing values: {changed} numbers of {words} appeared or disappeared")
        if difference > ROUNDING:
            rounded.append(f"{words} by {difference:.2g}{f' {units}' if units else ''}")
    return lost + ([f"digits, at most: {', '.join(rounded)}"] if rounded else [])


def _shape_change(words: str, before: tuple[int, ...], after: tuple[int, ...]) -> str:
    if before[0] == after[0] and before[1] < after[1]:
        return f"the form of {words}: {before[1]} became {after[1]}"
    return f"some {words}: {' x '.join(map(str, before))} became {' x '.join(map(str, after))}"


def _difference(recording: Recording, back: Recording, name: str) -> float:
    """Return the largest difference; NaN if the shapes differ."""
    a, b = recording.data[name].values, back.data[name].values
    if a.shape != b.shape:
        return float("nan")
    if name == "analog" and "channel_kind" in recording.data.coords:
        # channels of plates are rewritten to give the plates' present forces
        own = recording.data["channel_kind"].values != "plate"
        a, b = a[:, own], b[:, own]
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a[both] - b[both]).max()) if both.any() else 0.0


def _lost_names(recording: Recording, back: Recording) -> list[str]:
    lost = []
    for name in ("marker_position", "model_output", "plate_force", "analog"):
        if name not in recording.data or name not in back.data:
            continue
        before, after = (list(map(str, one.data[LAYOUT[name].dims[1]].values)) for one in (recording, back))
        if len(before) == len(after) and before != after:
            old, new = next((a, b) for a, b in zip(before, after, strict=True) if a != b)
            lost.append(f"some names of {NAMES[name]}: {old!r} became {new!r}")
    return lost


def _lost_header(recording: Recording, back: Recording) -> list[str]:
    subject = [key for key in recording.subject if key not in back.subject]
    rest = [str(key) for key in recording.metadata if key not in back.metadata]
    lost = [f"about the subject: {', '.join(subject)}"] if subject else []
    return lost + ([f"the rest of the header: {list_names(rest)}"] if rest else [])

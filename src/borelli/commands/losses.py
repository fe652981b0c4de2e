"""What a recording loses in a file: the file is read back and compared with what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from borelli.errors import BorelliError
from borelli.recording.read import read_recording
from borelli.recording.recording import LAYOUT, Recording

WORDS = {
    "markers": "markers",
    "residual": "residuals of markers",
    "quantities": "computed quantities",
    "plate_force": "forces of plates",
    "plate_center_of_pressure": "centres of pressure",
    "plate_free_moment": "free moments of plates",
    "plate_corners": "corners of plates",
    "analog": "analog channels",
    "coordinates": "coordinates",
    "value": "other columns",
    "joint_center": "joint centres",
    "event_time": "events",
}
"""What the variables of a recording are called."""
SAME = 1e-9
"""Differences [m, N, rad...] below this are rounding of decimal text."""
ELSEWHERE = 1e-3
"""Markers further off than this [m] mean that units or axes were taken otherwise, not rounded."""


def lost(recording: Recording, path: Path) -> list[str]:
    """What of a recording is not in the file it was just written to, one sentence each.

    netCDF keeps everything, which its own tests show, and is not read again.
    """
    if path.suffix.lower() == ".nc":
        return []
    try:
        back = read_recording(path)
        told = _told(recording, back, path)
        back, said = (told, _way(recording)) if told is not None else (back, [])
    except BorelliError as error:
        return [f"everything: the file cannot be read back ({error})"]
    return said + _variables(recording, back) + _subject(recording, back)


def _told(recording: Recording, back: Recording, path: Path) -> Recording | None:
    """The file read with its units and axes told, if it does not state them and they would be taken otherwise."""
    if "markers" not in recording.data or "markers" not in back.data or "file_up" not in recording.data.attrs:
        return None
    if not _difference(recording, back, "markers") > ELSEWHERE:
        return None
    attrs = recording.data.attrs
    return read_recording(path, units=attrs["file_units"], up=attrs["file_up"], forward=attrs["file_forward"])


def _way(recording: Recording) -> list[str]:
    attrs = recording.data.attrs
    return [
        "units and axes: the format does not state them all, and its reader would take others; read it with "
        f"--units {attrs['file_units']} --up {attrs['file_up']} --forward {attrs['file_forward']}"
    ]


def _variables(recording: Recording, back: Recording) -> list[str]:
    gone, rounded = [], []
    for name, words in WORDS.items():
        if name not in recording.data:
            continue
        count = recording.data[name].shape[0 if name in ("event_time", "plate_corners") else 1]
        if name not in back.data:
            gone.append(f"{words} ({count})")
            continue
        difference = _difference(recording, back, name)
        units = LAYOUT[name].units
        if np.isnan(difference):
            gone.append(f"some {words}: {recording.data[name].shape} became {back.data[name].shape}")
        elif difference > SAME:
            rounded.append(f"{words} by {difference:.2g}{f' {units}' if units else ''}")
    return gone + ([f"digits, at most: {', '.join(rounded)}"] if rounded else [])


def _difference(recording: Recording, back: Recording, name: str) -> float:
    """The largest difference; not a number where the shapes differ."""
    a, b = recording.data[name].values, back.data[name].values
    if a.shape != b.shape:
        return float("nan")
    if name == "analog" and "channel_kind" in recording.data.coords:
        # a plate's channels are written so that they give the plate's forces as they are now
        own = recording.data["channel_kind"].values != "plate"
        a, b = a[:, own], b[:, own]
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a[both] - b[both]).max()) if both.any() else 0.0


def _subject(recording: Recording, back: Recording) -> list[str]:
    keys = [key for key in recording.subject if key not in back.subject]
    return [f"about the subject: {', '.join(keys)}"] if keys else []

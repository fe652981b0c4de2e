"""What a recording loses in a file: the file is read back and compared with what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from borelli.errors import BorelliError
from borelli.recording.io import read_recording
from borelli.recording.recording import LAYOUT, Recording

WORDS = {
    "marker_position": "markers",
    "marker_residual": "residuals of markers",
    "model_output": "computed quantities",
    "plate_force": "forces of plates",
    "plate_center_of_pressure": "centres of pressure",
    "plate_free_moment": "free moments of plates",
    "plate_corners": "corners of plates",
    "analog": "analog channels",
    "coordinate_value": "coordinates",
    "column_value": "other columns",
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
    return said + _variables(recording, back) + _names(recording, back) + _header(recording, back)


def _told(recording: Recording, back: Recording, path: Path) -> Recording | None:
    """The file read with its units and axes told, if it does not state them and they would be taken otherwise."""
    if "marker_position" not in recording.data or "marker_position" not in back.data or "file_up" not in recording.data.attrs:
        return None
    if not _difference(recording, back, "marker_position") > ELSEWHERE:
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
            gone.append(_reshaped(words, recording.data[name].shape, back.data[name].shape))
            continue
        holes = _holes(recording, back, name)
        if holes:
            gone.append(f"what was not seen or not measured: {holes} numbers of {words} came or went")
        if difference > SAME:
            rounded.append(f"{words} by {difference:.2g}{f' {units}' if units else ''}")
    return gone + ([f"digits, at most: {', '.join(rounded)}"] if rounded else [])


def _reshaped(words: str, before: tuple[int, ...], after: tuple[int, ...]) -> str:
    if before[0] == after[0] and before[1] < after[1]:
        return f"the form of {words}: {before[1]} became {after[1]}"
    return f"some {words}: {' x '.join(map(str, before))} became {' x '.join(map(str, after))}"


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


def _holes(recording: Recording, back: Recording, name: str) -> int:
    """How many numbers are there in one and not in the other."""
    return int((np.isfinite(recording.data[name].values) != np.isfinite(back.data[name].values)).sum())


def _names(recording: Recording, back: Recording) -> list[str]:
    found = []
    for name, words in WORDS.items():
        if name not in recording.data or name not in back.data or name == "event_time":
            continue
        dimension = LAYOUT[name].dims[0 if name == "plate_corners" else 1]
        before, after = (list(map(str, one.data[dimension].values)) for one in (recording, back))
        if len(before) == len(after) and before != after and name in ("marker_position", "plate_force", "analog", "model_output"):
            other = next((a, b) for a, b in zip(before, after, strict=True) if a != b)
            found.append(f"some names of {words}: {other[0]!r} became {other[1]!r}")
    return found


def _header(recording: Recording, back: Recording) -> list[str]:
    """What was said of the subject and in the rest of the header."""
    about = [key for key in recording.subject if key not in back.subject]
    rest = [str(key) for key in recording.metadata if key not in back.metadata]
    found = [f"about the subject: {', '.join(about)}"] if about else []
    shown = ", ".join(rest[:8]) + (f" and {len(rest) - 8} more" if len(rest) > 8 else "")
    return found + ([f"the rest of the header: {shown}"] if rest else [])

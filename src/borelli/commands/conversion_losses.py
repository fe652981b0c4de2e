"""Losses of a conversion: the written file is read back and compared with the recording or the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from borelli.errors import BorelliError, list_names
from borelli.model.formats.parsing import LossNote
from borelli.model.io import read_model
from borelli.model.model import GROUND, Model
from borelli.numerics.vectors import Array
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
ELEMENTS = {
    "bodies": "bodies",
    "joints": "joints",
    "coordinates": "coordinates",
    "markers": "markers",
    "couplings": "couplings",
    "muscles": "muscles",
    "ligaments": "ligaments",
    "wrap_objects": "wrap objects",
    "shapes": "shapes",
}
"""Names of a model's elements in messages."""
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
    return axes + _lost_values(recording, back) + _lost_header(recording, back)


def model_losses(model: Model, path: Path, stated: Sequence[str]) -> list[str]:
    """List what the file that a model was written to does not contain of the file that it was read from.

    These are objects of the source that the reader did not use, what the writer `stated`, and elements of the model
    that the written file no longer contains when it is read again.
    """
    lost = [str(note) for note in model.notes if isinstance(note, LossNote)] + list(stated)
    try:
        back = read_model(path)
    except BorelliError as error:
        return [*lost, f"everything: the file cannot be read again ({error})"]
    for name, words in ELEMENTS.items():
        before, after = (_element_names(each, name) for each in (model, back))
        gone = [one for one in before if one not in set(after)]
        if len(after) < len(before):
            lost.append(f"{len(before) - len(after)} of {len(before)} {words}: {list_names(gone, 40)}")
    return lost


def _element_names(model: Model, elements: str) -> list[str]:
    """Return the names of elements; of shapes without a name their kind and body."""
    if elements != "shapes":
        return [one.name for one in getattr(model, elements)]
    owners = [(GROUND, model.ground), *((body.name, body.shapes) for body in model.bodies)]
    return [shape.name or f"{shape.kind} of {owner}" for owner, shapes in owners for shape in shapes]


def _other_axes(recording: Recording, back: Recording) -> bool:
    """Return whether the reader inferred other units or axes than those of the recording."""
    has_markers = all("marker_position" in one.data for one in (recording, back))
    stated = has_markers and "file_up" in recording.data.attrs
    a, b = (one.data["marker_position"].values if has_markers else np.zeros(0) for one in (recording, back))
    return stated and a.shape == b.shape and _difference(a, b) > MAX_MARKER_ROUNDING


def _lost_values(recording: Recording, back: Recording) -> list[str]:
    lost, rounded = [], []
    for name, words in NAMES.items():
        if name not in recording.data:
            continue
        before, after = _names(recording, name), _names(back, name)
        if name not in back.data:
            lost.append(f"{words} ({len(before)})" + (f": {list_names(before, 40)}" if len(before) > 1 else ""))
            continue
        if gone := [one for one in before if one not in set(after)]:
            lost.append(f"{len(gone)} of {len(before)} {words}: {list_names(gone, 40)}")
        if new := [one for one in after if one not in set(before)]:
            lost.append(f"{len(new)} {words} have new names or are added: {list_names(new, 40)}")
        pairs = [(before.index(one), after.index(one)) for one in before if one in set(after)]
        a, b = _matched(recording, back, name, pairs)
        if a.shape != b.shape:
            lost.append(f"some {words}: {len(a)} samples became {len(b)}")
            continue
        # numbers that are missing in one recording but not in the other
        if changed := int((np.isfinite(a) != np.isfinite(b)).sum()):
            lost.append(f"missing values: {changed} numbers of {words} appeared or disappeared")
        if (difference := _difference(a, b)) > ROUNDING:
            units = LAYOUT[name].units
            rounded.append(f"{words} by {difference:.2g}{f' {units}' if units else ''}")
    return lost + ([f"digits, at most: {', '.join(rounded)}"] if rounded else [])


def _names(recording: Recording, variable: str) -> list[str]:
    """Return the labels of a variable: its markers, channels, plates...; numbers where it has none."""
    if variable not in recording.data:
        return []
    dimension = LAYOUT[variable].dims[0 if variable in ("event_time", "plate_corners") else 1]
    if variable != "event_time" and dimension in recording.data.coords:
        return list(map(str, recording.data[dimension].values))
    return [str(i + 1) for i in range(recording.data.sizes[dimension])]


def _matched(recording: Recording, back: Recording, name: str, pairs: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Return the values of a variable in both recordings, of the labels that both have."""
    a, b = recording.data[name].values, back.data[name].values
    if name == "analog" and "channel_kind" in recording.data.coords:
        # channels of plates are rewritten to give the plates' present forces
        kinds = recording.data["channel_kind"].values
        pairs = [(i, j) for i, j in pairs if kinds[i] != "plate"]
    axis = 0 if name in ("event_time", "plate_corners") else 1
    return np.take(a, [i for i, _ in pairs], axis), np.take(b, [j for _, j in pairs], axis)


def _difference(a: Array, b: Array) -> float:
    """Return the largest difference of numbers that both have."""
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a[both] - b[both]).max()) if both.any() else 0.0


def _lost_header(recording: Recording, back: Recording) -> list[str]:
    subject = [key for key in recording.subject if key not in back.subject]
    rest = [str(key) for key in recording.metadata if key not in back.metadata]
    lost = [f"about the subject: {', '.join(subject)}"] if subject else []
    return lost + ([f"the rest of the header: {list_names(rest)}"] if rest else [])

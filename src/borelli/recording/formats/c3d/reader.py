"""C3D files, read: every encoding of the format, its parameters checked, its samples taken by numpy in pieces.

Positions and channels are kept in double precision, except those of integer files beyond `LARGE`: 16 bits fit into
single precision, and so a long recording takes less than three times its file's size in memory. Residuals, one byte
each in the file, are always kept in single precision.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from borelli.errors import FileFormatError
from borelli.recording.formats.c3d.force_plates import Plate, baseline, file_corners, measure, read_plates
from borelli.recording.formats.c3d.labels import Points, channel_kinds, name_points, per_kilogram, read_subject
from borelli.recording.formats.c3d.layout import Layout, settle_layout
from borelli.recording.formats.c3d.parameters import (
    BLOCK,
    Header,
    Parameters,
    looks_like_c3d,
    read_header,
    read_parameters,
)
from borelli.recording.formats.c3d.samples import Analog, Samples
from borelli.recording.recording import MIN_PLATE_FORCE, Event, Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import event_origin
from borelli.recording.units_and_axes import Conversion, infer_conversion

__all__ = ["looks_like_c3d", "read_c3d"]

HEAD = 65536 * BLOCK
"""The samples begin at most so many bytes into a file; the parameters lie before them."""
LARGE = 64 * 1024 * 1024
"""Integer files with more bytes than this are kept in single precision."""
Array = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]


def read_c3d(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    partial: bool = False,
) -> Recording:
    """The recording in a C3D file, in metres, z up.

    Args:
        path: The file.
        units: Unit of length, if the file is wrong about it: "mm", "m"...
        up: Axis of the file that points up, if the file is wrong about it: "+Z", "+Y"...
        forward: Axis of the file to be turned into x.
        partial: Reads the whole frames of a file that was cut off, instead of refusing it.

    Raises:
        FileFormatError: if the file is no C3D file or contradicts itself.
    """
    path = Path(path)
    try:
        if not path.is_file():
            what = "it is a folder" if path.is_dir() else "it is no regular file" if path.exists() else "no such file"
            raise FileFormatError(path, f"cannot be read: {what}")
        # samples may be any bit pattern: what is no number is found by looking, not by numpy's warnings
        with path.open("rb") as file, np.errstate(all="ignore"):
            return _read(file, path, units, up, forward, partial)
    except OSError as error:
        raise FileFormatError(path, f"cannot be read: {error.strerror or error}") from None


def _read(
    file: BinaryIO, path: Path, units: str | None, up: str | None, forward: str | None, partial: bool
) -> Recording:
    size = os.fstat(file.fileno()).st_size
    header, parameters = _header(file.read(min(size, HEAD)), path)
    layout, notes = settle_layout(header, parameters, size, path, partial=partial)
    notes = [Note(fault, "problem") for fault in parameters.faults] + notes
    points, naming = name_points(parameters, layout.points)
    analog = _analog(parameters, layout)
    source = Samples(file, layout, parameters.processor, analog, path)
    turned, turning = infer_conversion(
        parameters.text("POINT", "UNITS") or None,
        parameters.text("POINT", "Y_SCREEN") or None,
        source.glance(points.markers),
        points.marker_names,
        units=units,
        up=up,
        forward=forward,
        plate_corners=file_corners(parameters),
    )
    arrays = source.read(points, turned, single=size > LARGE and not layout.real)
    plates, measured, measuring = _plates(parameters, layout, turned, analog, arrays["analog"])
    subject = read_subject(parameters, points.prefix)
    quantity_units, normalising = _quantity_units(points, arrays["model_output"], subject.get("mass"))
    events, event_notes = _events(header, parameters, layout)
    data = make_dataset(
        {**arrays, **measured, "event_time": [event.time for event in events]},
        {
            **_point_labels(points, quantity_units),
            **_channel_labels(analog, plates),
            "event": np.arange(len(events)),
            "event_label": [event.label for event in events],
            "event_context": [event.context for event in events],
        },
        rate=layout.rate,
        analog_rate=layout.rate * layout.samples,
        **turned.attributes,
        first_frame=layout.first,
        encoding=f"{parameters.processor} {'real' if layout.real else 'integer'}",
    )
    if plates:
        data["plate_center_of_pressure"].attrs["threshold"] = f"not a number below {MIN_PLATE_FORCE:g} N normal force"
        data["plate_free_moment"].attrs["threshold"] = f"zero below {MIN_PLATE_FORCE:g} N normal force"
    notes += [*naming, *turning, *source.notes, *measuring, *normalising, *event_notes]
    return Recording(data, path.stem, str(path), "C3D", subject, parameters.plain(), tuple(notes))


def _plates(
    parameters: Parameters, layout: Layout, turned: Conversion, analog: Analog, samples: Array
) -> tuple[list[Plate], dict[str, Doubles], list[Note]]:
    plates, notes = read_plates(parameters, turned, layout.channels)
    if not plates:
        return [], {}, notes
    measured, measuring = measure(
        plates,
        samples,
        analog.units,
        length=turned.scale,
        empty=baseline(parameters, layout.frames, layout.samples),
        exerted_on=parameters.text("FORCE_PLATFORM", "EXERTED_ON"),
    )
    return plates, measured, notes + measuring


def _point_labels(points: Points, quantity_units: list[str]) -> dict[str, list[str]]:
    return {
        "marker": points.marker_names,
        "quantity": points.quantity_names,
        "quantity_kind": points.quantity_kinds,
        "quantity_units": quantity_units,
    }


def _channel_labels(analog: Analog, plates: list[Plate]) -> dict[str, list[str]]:
    wired = {int(i) for plate in plates for i in plate.channels}
    return {
        "channel": analog.names,
        "channel_units": analog.units,
        "channel_kind": channel_kinds(analog.names, analog.descriptions, analog.units, wired),
        "plate": [plate.name for plate in plates],
    }


def _header(head: bytes, path: Path) -> tuple[Header, Parameters]:
    if not head:
        raise FileFormatError(path, "the file is empty")
    if not looks_like_c3d(head):
        raise FileFormatError(
            path, f"not a C3D file: its first bytes are {head[:2].hex(' ')}, but must be a block's number and 50"
        )
    if len(head) < BLOCK:
        raise FileFormatError(path, f"the file has {len(head)} bytes, but a C3D header alone takes {BLOCK}")
    content = memoryview(head)
    parameters = read_parameters(content, path)
    return read_header(content, parameters.processor), parameters


def _analog(parameters: Parameters, layout: Layout) -> Analog:
    """Names, units and scales of the analog channels, with the defaults of the format where they are missing."""
    count = layout.channels
    labels = _padded(parameters.texts("ANALOG", "LABELS"), count)
    names, _ = unique_names([label or f"channel {i + 1}" for i, label in enumerate(labels)])
    unsigned = parameters.text("ANALOG", "FORMAT").upper() == "UNSIGNED" and not layout.real
    kind = parameters.counts if unsigned else parameters.numbers
    scale = _numbers(parameters.numbers("ANALOG", "SCALE"), count, 1.0)
    return Analog(
        names=names,
        descriptions=_padded(parameters.texts("ANALOG", "DESCRIPTIONS"), count),
        units=_padded(parameters.texts("ANALOG", "UNITS"), count),
        scale=scale * parameters.number("ANALOG", "GEN_SCALE", 1.0),
        offset=_numbers(kind("ANALOG", "OFFSET"), count, 0.0),
        unsigned=unsigned,
    )


def _padded(texts: list[str], count: int) -> list[str]:
    return texts[:count] + [""] * (count - len(texts))


def _numbers(values: npt.NDArray[np.generic], count: int, default: float) -> Doubles:
    filled = np.full(count, default)
    filled[: len(values)] = values[:count]
    return filled


def _quantity_units(points: Points, quantity: Array, mass: str | float | None) -> tuple[list[str], list[Note]]:
    if not quantity.size:
        return points.quantity_units, []
    size = np.where(np.isfinite(quantity), np.abs(quantity), 0.0).max(axis=(0, 2))
    return per_kilogram(points, size, mass if isinstance(mass, float) else None)


def _events(header: Header, parameters: Parameters, layout: Layout) -> tuple[list[Event], list[Note]]:
    """What the file says happened when, in seconds from its first frame; the header's events where no others are."""
    times = parameters.numbers("EVENT", "TIMES")
    times = times[: len(times) // 2 * 2].reshape(-1, 2)
    used = int(min(max(parameters.number("EVENT", "USED", len(times)), 0.0), len(times)))
    if not used:
        return sorted(Event(time, label, _side(label, "")) for time, label in header.events), []
    labels = _padded(parameters.texts("EVENT", "LABELS"), used)
    contexts = _padded(parameters.texts("EVENT", "CONTEXTS"), used)
    seconds = 60.0 * times[:used, 0] + times[:used, 1]
    since, notes = event_origin(seconds, layout.first, layout.frames, layout.rate)
    events = [
        Event(float(time - since), label or context, _side(label or context, context))
        for time, label, context in zip(seconds, labels, contexts, strict=True)
        if np.isfinite(time)
    ]
    return sorted(events), notes


def _side(label: str, context: str) -> str:
    """Left, Right or General: as the context says, else by the letter that begins a label such as RHS or LTO."""
    for side in ("Left", "Right"):
        if context.lower() == side.lower() or label.lower().startswith(side.lower()):
            return side
    first, rest = label[:1].upper(), label[1:].strip(" ._-").upper()
    if first in "LR" and rest in ("HS", "TO", "IC", "FS", "FO", "FC", "MS", "ON", "OFF"):
        return "Left" if first == "L" else "Right"
    return "General"

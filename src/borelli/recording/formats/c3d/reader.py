"""C3D reader for every encoding of the format, with checked parameters.

Positions and channels are kept in double precision, except those of integer files beyond `MAX_DOUBLE_BYTES`: 16 bits
fit into single precision, so that a long recording takes less than three times its file size in memory. Marker
residuals, one byte each in the file, are always kept in single precision.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from borelli.errors import FileFormatError, MissingFileError
from borelli.files.paths import as_path
from borelli.recording.formats.c3d.force_plates import Plate, compute_loads, read_corners, read_plates, unloaded_samples
from borelli.recording.formats.c3d.labels import Points, channel_kinds, name_points, normalized_units, read_subject
from borelli.recording.formats.c3d.layout import Layout, infer_layout
from borelli.recording.formats.c3d.parameters import (
    BLOCK,
    Header,
    Parameters,
    looks_like_c3d,
    read_header,
    read_parameters,
)
from borelli.recording.formats.c3d.samples import Analog, Samples
from borelli.recording.formats.grf_columns import add_threshold
from borelli.recording.length_unit import BodyMotion, pelvis_or_all
from borelli.recording.recording import MIN_PLATE_FORCE, Event, Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import event_origin
from borelli.recording.units_and_axes import Conversion, FrameOptions, infer_conversion

__all__ = ["looks_like_c3d", "read_c3d"]

MAX_HEAD_BYTES = 65536 * BLOCK
"""Largest offset [bytes] of the samples; the parameters precede them."""
MAX_MOTION_FRAMES = 4000
"""Frames whose forces and accelerations are compared to infer the unit of length."""
MAX_DOUBLE_BYTES = 64 * 1024 * 1024
"""Integer files with more bytes are kept in single precision."""
Array = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]


def read_c3d(
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    partial: bool = False,
) -> Recording:
    """Read a C3D file, in meters, z up; with `partial`, read the complete frames of a truncated file.

    Other arguments: `read_recording`.
    """
    path = as_path(path)
    try:
        if not path.is_file():
            if not path.exists():
                raise MissingFileError(path)
            what = "a folder. Pass a file in it" if path.is_dir() else "not a regular file. Pass a file"
            raise FileFormatError(path, f"The path is {what}.")
        # samples may be any bit pattern: NaN are detected explicitly, without numpy's warnings
        with path.open("rb") as file, np.errstate(all="ignore"):
            return _read(file, path, FrameOptions(units=units, up=up, forward=forward), partial)
    except OSError as error:
        raise FileFormatError(path, f"The file cannot be read ({error.strerror or error}).") from None


def _read(file: BinaryIO, path: Path, frame: FrameOptions, partial: bool) -> Recording:
    size = os.fstat(file.fileno()).st_size
    header, parameters = _header(file.read(min(size, MAX_HEAD_BYTES)), path)
    layout, notes = infer_layout(header, parameters, size, path, partial=partial)
    notes = [Note(text, "problem", code="parameter_section") for text in parameters.problems] + notes
    points, label_notes = name_points(parameters, layout.points)
    analog = _analog(parameters, layout)
    source = Samples(file, layout, parameters.processor, analog, path)
    source.infer_sign(parameters.text("ANALOG", "FORMAT"))
    converted, axis_notes = infer_conversion(
        parameters.text("POINT", "UNITS") or None,
        parameters.text("POINT", "Y_SCREEN") or None,
        source.sample_positions(points.markers),
        points.marker_names,
        plate_corners=read_corners(parameters),
        plate_force=_sampled_forces(parameters, layout, source),
        body_motion=lambda: _body_motion(parameters, layout, source, points),
        **frame,
    )
    arrays = source.read(points, converted, single=size > MAX_DOUBLE_BYTES and not layout.real)
    plates, loads, plate_notes = _plates(parameters, layout, converted, analog, arrays["analog"])
    subject = read_subject(parameters, points.prefix)
    quantity_units, unit_notes = _quantity_units(points, arrays["model_output"], subject.get("mass"))
    events, event_notes = _events(header, parameters, layout)
    wired = {int(i) for plate in plates for i in plate.channels}
    data = make_dataset(
        {**arrays, **loads, "event_time": [event.time for event in events]},
        {
            "marker": points.marker_names,
            "quantity": points.quantity_names,
            "quantity_kind": points.quantity_kinds,
            "quantity_units": quantity_units,
            "channel": analog.names,
            "channel_units": analog.units,
            "channel_kind": channel_kinds(analog.names, analog.descriptions, analog.units, wired),
            "plate": [plate.name for plate in plates],
            "event": np.arange(len(events)),
            "event_label": [event.label for event in events],
            "event_context": [event.context for event in events],
        },
        rate=layout.rate,
        analog_rate=layout.rate * layout.samples,
        **converted.attributes,
        first_frame=layout.first,
        encoding=f"{parameters.processor} {'real' if layout.real else 'integer'}",
    )
    if plates:
        data = add_threshold(data)
        data["plate_free_moment"].attrs["threshold"] = f"zero below {MIN_PLATE_FORCE:g} N normal force"
    notes += [*label_notes, *axis_notes, *source.notes, *plate_notes, *unit_notes, *event_notes]
    return Recording(data, path.stem, str(path), "C3D", subject, parameters.plain(), tuple(notes))


def _sampled_forces(parameters: Parameters, layout: Layout, source: Samples) -> Doubles | None:
    """Return forces of all plates in some frames (samples, 3) [N], in the axes of the file; None without plates."""
    plates, _ = read_plates(parameters, Conversion.from_axes("m", "+Z"), layout.channels)
    if not plates:
        return None
    loads, _ = compute_loads(plates, source.sample_channels(), source.analog.units)
    return np.asarray(loads["plate_force"].reshape(-1, 3))


def _body_motion(parameters: Parameters, layout: Layout, source: Samples, points: Points) -> BodyMotion | None:
    """Return motion of the pelvis and force of all plates, in unit and axes of the file; None without plates."""
    plates, _ = read_plates(parameters, Conversion.from_axes("m", "+Z"), layout.channels)
    if not plates or not layout.rate > 0.0 or not layout.samples or not len(points.markers):
        return None
    positions, analog = source.first_frames(points.markers[pelvis_or_all(points.marker_names)], MAX_MOTION_FRAMES)
    loads, _ = compute_loads(plates, analog, source.analog.units)
    force = loads["plate_force"].sum(axis=1).reshape(-1, layout.samples, 3).mean(axis=1)
    return BodyMotion(positions, force, layout.rate)


def _plates(
    parameters: Parameters, layout: Layout, converted: Conversion, analog: Analog, samples: Array
) -> tuple[list[Plate], dict[str, Doubles], list[Note]]:
    plates, notes = read_plates(parameters, converted, layout.channels)
    if not plates:
        return [], {}, notes
    loads, load_notes = compute_loads(
        plates,
        samples,
        analog.units,
        length=converted.scale,
        empty=unloaded_samples(parameters, layout.frames, layout.samples),
        exerted_on=parameters.text("FORCE_PLATFORM", "EXERTED_ON"),
    )
    return plates, loads, notes + load_notes


def _header(head: bytes, path: Path) -> tuple[Header, Parameters]:
    if not head:
        raise FileFormatError(path, "The file is empty. Copy or export it again.")
    if not looks_like_c3d(head):
        got = head[:2].hex(" ")
        raise FileFormatError(path, f"The file is not C3D (first bytes {got}, expected a block number and 50).")
    if len(head) < BLOCK:
        raise FileFormatError(path, f"The file has {len(head)} bytes, but a C3D header alone has {BLOCK}.")
    content = memoryview(head)
    parameters = read_parameters(content, path)
    return read_header(content, parameters.processor), parameters


def _analog(parameters: Parameters, layout: Layout) -> Analog:
    """Return names, units and scales of the analog channels, with the defaults of the format."""
    count = layout.channels
    labels = _padded(parameters.texts("ANALOG", "LABELS"), count)
    names, _ = unique_names([label or f"channel {i + 1}" for i, label in enumerate(labels)])
    offset = parameters.numbers("ANALOG", "OFFSET")
    stored = parameters.get("ANALOG", "OFFSET")
    wraps = stored is not None and stored.kind == 2
    scale = _numbers(parameters.numbers("ANALOG", "SCALE"), count, 1.0)
    return Analog(
        names=names,
        descriptions=_padded(parameters.texts("ANALOG", "DESCRIPTIONS"), count),
        units=_padded(parameters.texts("ANALOG", "UNITS"), count),
        scale=scale * parameters.number("ANALOG", "GEN_SCALE", 1.0),
        offset=_numbers(offset, count, 0.0),
        unsigned_offset=_numbers(np.where(wraps & (offset < 0.0), offset + 65536.0, offset), count, 0.0),
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
    return normalized_units(points, size, mass if isinstance(mass, float) else None)


def _events(header: Header, parameters: Parameters, layout: Layout) -> tuple[list[Event], list[Note]]:
    """Return the events in seconds from the first frame; those of the header if there are no others."""
    times = parameters.numbers("EVENT", "TIMES")
    times = times[: len(times) // 2 * 2].reshape(-1, 2)
    used = int(min(max(parameters.number("EVENT", "USED", len(times)), 0.0), len(times)))
    if not used:
        return sorted(Event(time, label, _side(label, "")) for time, label in header.events), []
    labels = _padded(parameters.texts("EVENT", "LABELS"), used)
    contexts = _padded(parameters.texts("EVENT", "CONTEXTS"), used)
    seconds = 60.0 * times[:used, 0] + times[:used, 1]
    origin, notes = event_origin(seconds, layout.first, layout.frames, layout.rate)
    events = [
        Event(float(time - origin), label or context, _side(label or context, context))
        for time, label, context in zip(seconds, labels, contexts, strict=True)
        if np.isfinite(time)
    ]
    return sorted(events), notes


def _side(label: str, context: str) -> str:
    """Return Left, Right or General, from the context or from the first letter of a label such as RHS or LTO."""
    for side in ("Left", "Right"):
        if context.lower() == side.lower() or label.lower().startswith(side.lower()):
            return side
    first, rest = label[:1].upper(), label[1:].strip(" ._-").upper()
    if first in "LR" and rest in ("HS", "TO", "IC", "FS", "FO", "FC", "MS", "ON", "OFF"):
        return "Left" if first == "L" else "Right"
    return "General"

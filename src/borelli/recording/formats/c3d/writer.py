"""C3D writer: Intel byte order, 32-bit reals, in the units and axes of the file that was read.

Other parameters of that file are kept where they are still valid. Force plates are written with their own channels as
long as these still give the recording's forces; otherwise (after cleaning, or from another format) as plates of type 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.files.atomic import atomic_path
from borelli.recording.formats.c3d.force_plates import Plate, channels_match_plates, plate_channels
from borelli.recording.formats.c3d.labels import GROUPS
from borelli.recording.formats.c3d.layout import WORD, WORDS_OF_POINT
from borelli.recording.formats.c3d.parameters import BLOCK, KEY
from borelli.recording.formats.c3d.write_parameters import format_section, parameters_from_plain
from borelli.recording.units_and_axes import Conversion

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.recording.recording import Recording

CHUNK_BYTES = 4 * 1024 * 1024
"""Bytes of samples assembled at once."""
MAX_SURPLUS_TIME = 0.1
"""Longest time [s] of analog samples before the first or after the last frame that is dropped."""
RESIDUAL_STEPS = 255
"""Largest marker residual in steps: it is stored in one byte."""
_LISTS = ("USED", "LABELS", "DESCRIPTIONS")
_STALE = {
    "POINT": (*_LISTS, "FRAMES", "LONG_FRAMES", "DATA_START", "SCALE", "RATE", "UNITS", *GROUPS),
    "ANALOG": (*_LISTS, "RATE", "SCALE", "GEN_SCALE", "OFFSET", "UNITS", "GAIN", "BITS", "FORMAT"),
    "TRIAL": ("ACTUAL_START_FIELD", "ACTUAL_END_FIELD"),
    "EVENT": (*_LISTS, "CONTEXTS", "ICON_IDS", "ICONS_IDS", "SUBJECTS", "TIMES", "GENERIC_FLAGS"),
}
"""Parameters that describe the samples and are written again."""

Values = dict[str, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class _Channels:
    """Analog samples to write, shape (samples, channels), with names, units and descriptions."""

    values: npt.NDArray[np.floating]
    names: list[str]
    units: list[str]
    descriptions: list[str]


def write_c3d(recording: Recording, path: str | Path, *, overwrite: bool = False) -> None:
    """Write markers, model outputs, plates, analog channels and events as a C3D file, completely or not at all.

    The format does not support joint angles and table columns, which are omitted.
    """
    content = _Content(recording)
    with atomic_path(path, overwrite=overwrite, inputs=[recording.path]) as temporary, temporary.open("wb") as file:
        content.write(file)


class _Content:
    """Content of a C3D file for a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.data = recording.data
        self.converted = Conversion.from_attributes(self.data.attrs)
        self.stored = parameters_from_plain(recording.metadata if recording.format == "C3D" else {})
        self.kept: Values = _kept_parameters(recording)
        self.markers = self.data["marker_position"].values if "marker_position" in self.data else np.empty((0, 0, 3))
        self.quantities = self.data["model_output"].values if "model_output" in self.data else np.empty((0, 0, 3))
        self.points = self.markers.shape[1] + self.quantities.shape[1]
        self.channels = self._channels()
        self.frames, self.rate, self.samples = self._timing()
        self.channels = self._aligned()
        self.first = int(self.data.attrs.get("first_frame", 1)) + round(self._start() * self.rate)
        if self.first < 0:
            raise SettingsError(
                f"The recording starts at {self._start():g} s, but C3D numbers frames from 0 on. Crop it (--start 0), "
                "or write a .trc, .csv or .nc file, which keep negative times."
            )
        self.scale = self._scale()

    def write(self, file: BinaryIO) -> None:
        """Write the header, the parameters and the samples."""
        block = 2 + len(format_section(self._parameters(0))) // BLOCK
        file.write(self._header(block))
        file.write(format_section(self._parameters(block)))
        words = WORDS_OF_POINT * self.points + self.samples * len(self.channels.names)
        rows = max(1, CHUNK_BYTES // (4 * words))
        for start in range(0, self.frames, rows):
            piece = slice(start, min(start + rows, self.frames))
            file.write(self._piece(piece, words).tobytes())
        file.write(bytes(-file.tell() % BLOCK))

    def _start(self) -> float:
        """Return the time of the first frame [s]; positive in a cropped recording."""
        return float(self.data["time" if "time" in self.data.coords else "analog_time"].values[0])

    def _timing(self) -> tuple[int, float, int]:
        """Return number of frames, frame rate [Hz], and analog samples per frame."""
        recording, count = self.recording, len(self.channels.values)
        if not self.points and not count:
            what = "The recording has no markers, plates or channels"
            raise SettingsError(f"{what}, so there is nothing to write as C3D.")
        if self.points >= WORD:
            has = f"The recording has {self.points} markers and model outputs"
            raise SettingsError(f"{has}, but C3D supports at most {WORD - 1}.")
        if not self.points:
            return count, _positive(recording.analog_rate, "analog_rate"), 1
        rate = _positive(recording.rate, "rate")
        frames = recording.frames
        if not self.channels.names:
            return frames, rate, 1
        samples = _positive(recording.analog_rate, "analog_rate") / rate
        if abs(samples - round(samples)) > 1e-6 * samples:
            why = f"but {recording.analog_rate:g} Hz is not a multiple of {rate:g} Hz. Resample first."
            raise SettingsError(f"C3D requires an integer number of analog samples per frame, {why}")
        return frames, rate, round(samples)

    def _aligned(self) -> _Channels:
        """Return the analog samples of the frames, from the first frame on."""
        if not self.points or not self.channels.names:
            return self.channels
        values, rate, count = self.channels.values, self.recording.analog_rate, self.samples * self.frames
        before = round((self._start() - float(self.data["analog_time"].values[0])) * rate)
        after = len(values) - before - count
        if before < 0 or after <= -self.samples or max(before, after) > MAX_SURPLUS_TIME * rate:
            span = f"{before / rate:g} s before the first of {self.frames} frames and continue for {after / rate:g} s"
            text = f"C3D requires analog samples for its frames only, but they begin {span} after the last."
            raise SettingsError(f"{text} Crop first.")
        padding = np.repeat(values[-1:], max(0, -after), axis=0)  # the end of the last frame, if not sampled
        return replace(self.channels, values=np.concatenate([values[before:], padding])[:count])

    def _scale(self) -> float:
        """Return the step of marker residuals in the file's unit: as before, unless too fine for the largest one."""
        stated = abs(self.stored.number("POINT", "SCALE"))
        largest = 0.0
        if "marker_residual" in self.data:
            residual = self.data["marker_residual"].values
            largest = float(np.nanmax(residual, initial=0.0)) / self.converted.scale
        if stated and largest <= RESIDUAL_STEPS * stated:
            return stated
        return max(largest / RESIDUAL_STEPS, 1e-6)

    def _channels(self) -> _Channels:
        """Return the channels to write, with plate channels computed from the loads if these changed."""
        data = self.data
        values = data["analog"].values if "analog" in data else np.empty((0, 0))
        names = [str(name) for name in data["channel"].values] if "analog" in data else []
        units = _texts(data, "channel_units", len(names))
        descriptions = self.stored.texts("ANALOG", "DESCRIPTIONS")
        if not self.stored.number("ANALOG", "USED") == len(names) == len(descriptions):
            descriptions = [""] * len(names)
        channels = _Channels(values, names, units, descriptions)
        if "plate_force" not in data:
            self.kept.pop("FORCE_PLATFORM", None)
            return channels
        if channels_match_plates(self.recording):
            return channels
        kinds = _texts(data, "channel_kind", len(names))
        others = [i for i, kind in enumerate(kinds) if kind != "plate"]
        computed = self._plate_channels()
        self._describe_plates(len(others))
        parts = [values[:, others].astype(float), computed.values] if others else [computed.values]
        return _Channels(
            np.concatenate(parts, axis=1),
            [names[i] for i in others] + computed.names,
            [units[i] for i in others] + computed.units,
            [descriptions[i] for i in others] + computed.descriptions,
        )

    def _plates(self) -> list[Plate]:
        """Return the plates; where their corners are unknown, with rectangles around the centers of pressure."""
        names = self.recording.plates
        if "plate_corners" in self.data:
            corners = list(self.data["plate_corners"].values.astype(float))
        else:
            corners = [_enclosing_rectangle(self._centers()[:, i]) for i in range(len(names))]
        none = np.zeros(0, np.intp)
        return [Plate(name, 2, c, none, np.zeros(3)) for name, c in zip(names, corners, strict=True)]

    def _centers(self) -> npt.NDArray[np.float64]:
        if "plate_center_of_pressure" in self.data:
            return self.data["plate_center_of_pressure"].values
        return np.full(self.data["plate_force"].shape, np.nan)

    def _plate_channels(self) -> _Channels:
        data = self.data
        center = self._centers()
        moment = data["plate_free_moment"].values if "plate_free_moment" in data else np.zeros_like(center)
        millimeters = self.converted.units == "mm"
        names, parts = [], []
        for i, plate in enumerate(self._plates()):
            wrench = plate_channels(plate, data["plate_force"].values[:, i], center[:, i], np.nan_to_num(moment[:, i]))
            wrench[:, 3:] *= 1e3 if millimeters else 1.0
            parts.append(wrench)
            names += [f"{part}{i + 1}" for part in ("Fx", "Fy", "Fz", "Mx", "My", "Mz")]
        units = (["N"] * 3 + ["Nmm" if millimeters else "Nm"] * 3) * len(parts)
        return _Channels(np.concatenate(parts, axis=1), names, units, [""] * len(names))

    def _describe_plates(self, before: int) -> None:
        plates = self._plates()
        count = len(plates)
        corners = self.converted.invert(np.stack([plate.corners for plate in plates]))
        self.kept["FORCE_PLATFORM"] = {
            "USED": count,
            "TYPE": [2] * count,
            "ZERO": [0, 0],
            "CORNERS": corners.tolist(),
            "ORIGIN": [[0.0, 0.0, 0.0]] * count,
            "CHANNEL": [[before + 6 * i + k for k in range(1, 7)] for i in range(count)],
            "EXERTED_ON": "SUBJECT",
        }

    def _header(self, block: int) -> bytes:
        words = np.zeros(BLOCK // 2, "<u2")
        last = self.first + self.frames - 1
        first, last = (self.first, last) if last < WORD else (1, min(self.frames, WORD - 1))
        words[0] = 2 | KEY << 8
        words[1:5] = self.points, min(self.samples * len(self.channels.names), WORD - 1), first, last
        words[6:8] = np.array([-self.scale], "<f4").view("<u2")
        words[8:10] = block, self.samples
        words[10:12] = np.array([self.rate], "<f4").view("<u2")
        return words.tobytes()

    def _parameters(self, block: int) -> Values:
        values = {group: dict(content) for group, content in self.kept.items()}
        for group, content in self._described(block).items():
            values.setdefault(group, {}).update(content)
        return values

    def _described(self, block: int) -> Values:
        point = self.kept.get("POINT", {})
        described: Values = {
            "POINT": {
                "USED": self.points,
                "FRAMES": min(self.frames, WORD - 1),
                "DATA_START": block,
                "SCALE": -self.scale,
                "RATE": float(self.rate),
                "UNITS": self.converted.units,
                "X_SCREEN": point.get("X_SCREEN", self.converted.forward),
                "Y_SCREEN": self.converted.up,
                "LABELS": self._labels("marker") + self._labels("quantity"),
            },
            "ANALOG": {
                "USED": len(self.channels.names),
                "GEN_SCALE": 1.0,
                "RATE": float(self.rate * self.samples),
                "SCALE": [1.0] * len(self.channels.names),
                "OFFSET": [0] * len(self.channels.names),
                "LABELS": self.channels.names,
                "UNITS": self.channels.units,
                "DESCRIPTIONS": self.channels.descriptions,
            },
            "TRIAL": {
                "ACTUAL_START_FIELD": _two_words(self.first),
                "ACTUAL_END_FIELD": _two_words(self.first + self.frames - 1),
            },
        }
        if self.frames >= WORD:
            described["POINT"]["LONG_FRAMES"] = float(self.frames)
        described["POINT"] |= self._quantity_groups()
        described |= self._events() | self._subject()
        described.setdefault("FORCE_PLATFORM", {} if "FORCE_PLATFORM" in self.kept else {"USED": 0})
        return described

    def _labels(self, dimension: str) -> list[str]:
        prefix = self.recording.subject.get("prefix", "")
        names = [str(name) for name in self.data[dimension].values] if dimension in self.data.coords else []
        return [f"{prefix}:{name}" if prefix and not name.startswith("*") else name for name in names]

    def _quantity_groups(self) -> dict[str, Any]:
        if "model_output" not in self.data:
            return {}
        names = self._labels("quantity")
        kinds = [k if k in GROUPS.values() else "scalar" for k in _texts(self.data, "quantity_kind", len(names))]
        units = [text.removesuffix("/kg") for text in _texts(self.data, "quantity_units", len(names))]
        groups: dict[str, Any] = {}
        for group, kind in GROUPS.items():
            chosen = [i for i in range(len(names)) if kinds[i] == kind]
            if chosen:
                groups[group] = [names[i] for i in chosen]
                unit = next((units[i] for i in chosen if "%" not in units[i]), "")
                groups[f"{group[:-1]}_UNITS"] = unit.replace(" ", "")
        return groups

    def _events(self) -> Values:
        events = self.recording.events
        origin = (int(self.data.attrs.get("first_frame", 1)) - 1) / self.rate
        times = [event.time + origin for event in events]
        return {
            "EVENT": {
                "USED": len(events),
                "CONTEXTS": [event.context for event in events],
                "LABELS": [event.label for event in events],
                "TIMES": [[float(time // 60.0), float(time % 60.0)] for time in times],
            }
        }

    def _subject(self) -> Values:
        """Return name, mass and height of the subject, unless the kept parameters state them."""
        subject = self.recording.subject
        values: Values = {}
        if "name" in subject and "SUBJECTS" not in self.kept and "SUBJECT" not in self.kept:
            values["SUBJECTS"] = {"USED": 1, "NAMES": [str(subject["name"])]}
        if "PROCESSING" not in self.kept and "SUBJECT" not in self.kept:
            size = {"BODYMASS": subject.get("mass"), "HEIGHT": subject.get("height")}
            size = {key: float(value) * (1e3 if key == "HEIGHT" else 1.0) for key, value in size.items() if value}
            if size:
                values["PROCESSING"] = size
        return values

    def _piece(self, rows: slice, words: int) -> npt.NDArray[np.float32]:
        count = rows.stop - rows.start
        piece = np.zeros((count, words), "<f4")
        points = piece[:, : WORDS_OF_POINT * self.points].reshape(count, self.points, WORDS_OF_POINT)
        markers = self.markers[rows]
        split = markers.shape[1]
        if split:
            points[:, :split, :3] = self.converted.invert(np.asarray(markers, float))
            if "marker_residual" in self.data:
                steps = self.data["marker_residual"].values[rows] / (self.converted.scale * self.scale)
                points[:, :split, 3] = np.clip(np.rint(np.nan_to_num(steps)), 0, RESIDUAL_STEPS)
        if self.points > split:
            points[:, split:, :3] = self.quantities[rows]
        missing = ~np.isfinite(points[..., :3]).all(axis=2)
        points[missing] = (0.0, 0.0, 0.0, -1.0)
        piece[:, : WORDS_OF_POINT * self.points] = points.reshape(count, -1)
        if self.channels.names:
            samples = self.channels.values[rows.start * self.samples : rows.stop * self.samples]
            piece[:, WORDS_OF_POINT * self.points :] = samples.reshape(count, -1)
        return piece


def _kept_parameters(recording: Recording) -> Values:
    """Return the parameters of the C3D file that was read, except those that describe its samples."""
    if recording.format != "C3D":
        return {}
    return {
        group: {n: v for n, v in content.items() if n.rstrip("0123456789") not in _STALE.get(group, ())}
        for group, content in recording.metadata.items()
        if isinstance(content, Mapping)
    }


def _enclosing_rectangle(center: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the corners [m] of a level rectangle around centers of pressure, its own z downward."""
    known = center[np.isfinite(center).all(axis=1)]
    low, high = np.percentile(known, (1, 99), axis=0) if len(known) else np.zeros((2, 3))
    half = np.maximum(0.5 * (high - low) + 0.1, 0.3) * (1.0, 1.0, 0.0)
    return 0.5 * (low + high) + half * np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])


def _texts(data: Dataset, name: str, count: int) -> list[str]:
    return [str(text) for text in data[name].values] if name in data.coords else [""] * count


def _two_words(number: int) -> list[int]:
    """Return a number as two 16-bit words, the low one first."""
    return [number % WORD, number // WORD]


def _positive(rate: float, name: str) -> float:
    if not rate > 0.0:
        raise SettingsError(f"{name}: {rate} Hz is not positive, which C3D requires.")
    return rate

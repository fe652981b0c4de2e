"""A recording: what was measured, labelled, in metres, z up, with what the reader decided about it.

Whatever varies in time is in one `xarray.Dataset`; `LAYOUT` says which variables it may have, their dimensions, units
and frames. Every reader makes its dataset with `make_dataset`, so that all formats look alike afterwards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import FileFormatError, SettingsError, unknown_name

if TYPE_CHECKING:
    from xarray import Dataset

NOTE_KINDS = ("stated", "inferred", "problem", "changed")

LAB = "lab: right-handed, z up"

MIN_PLATE_FORCE = 20.0
"""Below this normal force [N] a plate's centre of pressure means nothing and is given as not a number."""


class Layout(NamedTuple):
    """Where a variable of the dataset lives: its dimensions, its units ("" where they differ by element), its frame."""

    dims: tuple[str, ...]
    units: str
    frame: str


LAYOUT: Mapping[str, Layout] = {
    "marker_position": Layout(("time", "marker", "axis"), "m", LAB),
    "marker_residual": Layout(("time", "marker"), "m", ""),
    "model_output": Layout(("time", "quantity", "axis"), "", "as the file's own model defines it"),
    "plate_force": Layout(("analog_time", "plate", "axis"), "N", LAB),
    "plate_center_of_pressure": Layout(("analog_time", "plate", "axis"), "m", LAB),
    "plate_free_moment": Layout(("analog_time", "plate", "axis"), "N m", LAB),
    "plate_corners": Layout(("plate", "corner", "axis"), "m", LAB),
    "ground_reaction_force": Layout(("analog_time", "foot", "axis"), "N", LAB),
    "center_of_pressure": Layout(("analog_time", "foot", "axis"), "m", LAB),
    "free_moment": Layout(("analog_time", "foot", "axis"), "N m", LAB),
    "analog": Layout(("analog_time", "channel"), "", ""),
    "coordinate_value": Layout(("time", "coordinate"), "", ""),
    "column_value": Layout(("time", "column"), "", ""),
    "joint_center": Layout(("time", "joint", "axis"), "m", LAB),
    "event_time": Layout(("event",), "s", ""),
}


@dataclass(frozen=True)
class Note:
    """A decision or observation of a program stage, for the user.

    Attributes:
        text: One sentence, with its evidence.
        kind: "stated" (by the file or the user), "inferred" (from the data), "problem" (in the data), "changed" (by us).
        action: The option or function that overrides or fixes it; empty where nothing need be done.
        code: What the note is about, such as "up_axis": programs decide by it, never by the text.
    """

    text: str
    kind: str
    action: str = ""
    code: str = ""

    def __post_init__(self) -> None:
        if self.kind not in NOTE_KINDS:
            raise SettingsError(unknown_name("kind of note", self.kind, NOTE_KINDS))


class Event(NamedTuple):
    """Something that happened at one time [s from the first frame]; context is "Left", "Right" or "General"."""

    time: float
    label: str
    context: str


@dataclass(frozen=True)
class Recording:
    """What one file holds, in metres and seconds, z up.

    Attributes:
        data: Everything that varies in time, as `LAYOUT` describes.
        name: The recording's name, by default its file's name without the ending.
        path: The file it was read from; None if it was made otherwise.
        format: "C3D", "TRC", "MOT", "STO", "CSV", "AMC" or "BVH".
        subject: What the file says of the subject: name, mass [kg], height [m], prefix of its marker names.
        metadata: The rest of the file's header, as plain values.
        notes: What the reader and the cleaning decided, noticed and changed, in order.
    """

    data: Dataset
    name: str = ""
    path: str | None = None
    format: str = ""
    subject: Mapping[str, str | float] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def rate(self) -> float:
        """Frames per second [Hz]; not a number where the file has fewer than two frames and states no rate."""
        return self._rate("rate", "time")

    @property
    def analog_rate(self) -> float:
        """Samples per second of plates and analog channels [Hz]; not a number where there are none."""
        return self._rate("analog_rate", "analog_time")

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return int(self.data.sizes.get("time", 0))

    @property
    def duration(self) -> float:
        """Time from the first frame to the last [s]."""
        spans = [np.ptp(self.data[name].values) for name in ("time", "analog_time") if self.data.sizes.get(name, 0)]
        return float(spans[0]) if spans else 0.0

    @property
    def markers(self) -> tuple[str, ...]:
        """Names of the markers."""
        return self._names("marker")

    @property
    def plates(self) -> tuple[str, ...]:
        """Names of the force plates."""
        return self._names("plate")

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the analog channels."""
        return self._names("channel")

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened when, in order of time."""
        if "event_time" not in self.data:
            return ()
        times = self.data["event_time"].values
        labels = self.data["event_label"].values
        contexts = self.data["event_context"].values
        order = np.argsort(times, kind="stable")
        return tuple(Event(float(times[i]), str(labels[i]), str(contexts[i])) for i in order)

    def with_data(self, data: Dataset, *notes: Note) -> Recording:
        """This recording with other data, and with notes that say what was done."""
        return replace(self, data=data, notes=(*self.notes, *notes))

    def with_notes(self, *notes: Note) -> Recording:
        """This recording with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def select_markers(self, names: Iterable[str]) -> Recording:
        """This recording with only these markers, in this order.

        Raises:
            SettingsError: naming the marker that is not there, and those that are.
        """
        wanted = list(names)
        known = self.markers
        for name in wanted:
            if name not in known:
                raise SettingsError(unknown_name("marker", name, known))
        return replace(self, data=self.data.isel(marker=[known.index(name) for name in wanted]))

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Writes the recording with its notes as netCDF 4: whole or, if anything fails, not at all."""
        path = Path(path)
        about = {key: getattr(self, key) for key in ("name", "path", "format")}
        about |= {"subject": dict(self.subject), "metadata": dict(self.metadata)}
        about["notes"] = [asdict(note) for note in self.notes]
        data = self.data.assign_attrs(borelli_recording=json.dumps(about))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            data.to_netcdf(temporary, engine="h5netcdf")
            temporary.replace(path)
        except OSError as error:
            raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from None
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def from_netcdf(cls, path: str | os.PathLike[str]) -> Recording:
        """The recording that `to_netcdf` wrote."""
        from borelli.recording.formats.netcdf import read_netcdf

        return read_netcdf(path)

    def _names(self, dimension: str) -> tuple[str, ...]:
        return tuple(map(str, self.data[dimension].values)) if dimension in self.data.coords else ()

    def _rate(self, attribute: str, dimension: str) -> float:
        if attribute in self.data.attrs:
            return float(self.data.attrs[attribute])
        if self.data.sizes.get(dimension, 0) < 2:
            return float("nan")
        time = self.data[dimension].values
        return float((len(time) - 1) / (time[-1] - time[0]))


def make_dataset(
    variables: Mapping[str, npt.ArrayLike],
    coordinates: Mapping[str, npt.ArrayLike],
    *,
    rate: float | None = None,
    analog_rate: float | None = None,
    **attributes: Any,
) -> Dataset:
    """A dataset as `LAYOUT` describes: dimensions, units and frames are put to each variable by its name.

    Args:
        variables: Arrays by names of `LAYOUT`; those of size zero are left out.
        coordinates: Values by coordinate: `marker`, `plate`, `channel`...; names such as `channel_units` or
            `event_label` lie along the dimension that is the first word. `time` [s] may be given; otherwise it is made
            from the rate, and so is `analog_time`. `axis` and `corner` are added.
        rate: Frames per second [Hz].
        analog_rate: Samples per second of plates and channels [Hz].
        attributes: What else is to be said of the whole: `file_units`, `file_up`, `file_forward`...
    """
    import xarray

    arrays = {name: np.asarray(values) for name, values in variables.items()}
    arrays = {name: values for name, values in arrays.items() if values.size}
    sizes = {dim: n for name, values in arrays.items() for dim, n in zip(LAYOUT[name].dims, values.shape, strict=True)}
    given: dict[str, Any] = {"axis": ["x", "y", "z"], "corner": np.arange(1, 5)}
    given |= {"time": times(sizes.get("time", 0), rate), "analog_time": times(sizes.get("analog_time", 0), analog_rate)}
    given |= {name: values for name, values in coordinates.items() if values is not None}
    labels = {}
    for name, values in given.items():
        dimension = name if name in sizes else name.split("_")[0]
        if dimension in sizes:
            units = {"units": "s"} if name in ("time", "analog_time") else {}
            labels[name] = (dimension, _coordinate(values), units)
    filled = {}
    for name, values in arrays.items():
        layout = LAYOUT[name]
        filled[name] = (layout.dims, values, {"units": layout.units, "frame": layout.frame})
    rates = {"rate": rate, "analog_rate": analog_rate if "analog_time" in sizes else None}
    attrs = {key: float(value) for key, value in rates.items() if value is not None}
    return xarray.Dataset(filled, coords=labels, attrs=attrs | attributes)


def times(count: int, rate: float | None) -> npt.NDArray[np.float64]:
    """Times of so many samples [s], from zero, each to the last bit."""
    return np.arange(count) / (rate or 1.0)


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names, repeated ones told apart as `name_2`, `name_3`...; and which were repeated, each once."""
    taken = set(names)
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        if count > 1:
            while (other := f"{name}_{count}") in taken:
                count = seen[name] = count + 1
            taken.add(other)
            name = other
        unique.append(name)
    return unique, [name for name, count in seen.items() if count > 1]


def split_prefix(names: Sequence[str]) -> tuple[list[str], str]:
    """The names without the subject prefix, as in `Subject:LASI`, that all of them share; and that prefix or ""."""
    prefix = names[0].partition(":")[0] if names and ":" in names[0] else ""
    if not prefix or not all(name.startswith(f"{prefix}:") and len(name) > len(prefix) + 1 for name in names):
        return list(names), ""
    return [name[len(prefix) + 1 :] for name in names], prefix


def _coordinate(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind in "OU" else array

"""Recordings: labeled measurements in meters, z up, with notes on the decisions of the reader.

All time series are in one `xarray.Dataset`; `LAYOUT` lists its variables with dimensions, units and frames. Every
reader makes its dataset with `make_dataset`, so that all formats look alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import html_table, sparkline_svg
from borelli.files.netcdf_writer import write_netcdf
from borelli.files.number_rows import mask_implausible

if TYPE_CHECKING:
    from xarray import Dataset

NOTE_KINDS = ("stated", "inferred", "problem", "changed")

LAB = "lab: right-handed, z up"

MIN_PLATE_FORCE = 20.0
"""Normal force [N] below which a plate counts as unloaded and its center of pressure is NaN."""


class Layout(NamedTuple):
    """Dimensions, units ("" where they differ by element) and frame of a variable."""

    dims: tuple[str, ...]
    units: str
    frame: str


LAYOUT: Mapping[str, Layout] = {
    "marker_position": Layout(("time", "marker", "axis"), "m", LAB),
    "marker_residual": Layout(("time", "marker"), "m", ""),
    "object_position": Layout(("time", "object", "axis"), "m", LAB),
    "object_orientation": Layout(("time", "object", "quaternion"), "1", LAB),
    "object_marker_error": Layout(("time", "object"), "m", ""),
    "model_output": Layout(("time", "quantity", "axis"), "", "as the file's own model defines it"),
    "plate_force": Layout(("analog_time", "plate", "axis"), "N", LAB),
    "plate_center_of_pressure": Layout(("analog_time", "plate", "axis"), "m", LAB),
    "plate_free_moment": Layout(("analog_time", "plate", "axis"), "N m", LAB),
    "plate_corners": Layout(("plate", "corner", "axis"), "m", LAB),
    "ground_reaction_force": Layout(("analog_time", "foot", "axis"), "N", LAB),
    "center_of_pressure": Layout(("analog_time", "foot", "axis"), "m", LAB),
    "free_moment": Layout(("analog_time", "foot", "axis"), "N m", LAB),
    "analog": Layout(("analog_time", "channel"), "", ""),
    "emg": Layout(("analog_time", "muscle"), "V", ""),
    "emg_envelope": Layout(("time", "muscle"), "1", ""),
    "emg_active": Layout(("time", "muscle"), "", ""),
    "coordinate_value": Layout(("time", "coordinate"), "", ""),
    "column_value": Layout(("time", "column"), "", ""),
    "joint_center": Layout(("time", "joint", "axis"), "m", LAB),
    "event_time": Layout(("event",), "s", ""),
}


@dataclass(frozen=True)
class Note:
    """Decision or observation of a program stage, for the user.

    Attributes:
        text: One sentence, with its evidence.
        kind: "stated" (by file or user), "inferred" (from the data), "problem" (in the data), "changed" (by borelli).
        action: Option or function that overrides or fixes it; "" if none is needed.
        code: Subject of the note, such as "up_axis". Programs decide by it, never by the text.
    """

    text: str
    kind: str
    action: str = ""
    code: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.kind not in NOTE_KINDS:
            raise SettingsError(unknown_name("kind of note", self.kind, NOTE_KINDS))

    @classmethod
    def implausible(cls, count: int, where: str = "") -> Note:
        """Return the note on infinite or implausibly large numbers that were set to missing."""
        text = f"{where}{count} infinite or implausibly large numbers are set to missing."
        return cls(text, "problem", code="implausible_values")

    @classmethod
    def short_rows(cls, count: int) -> list[Note]:
        """Return the note on rows with fewer cells than columns, whose values are missing."""
        text = f"{count} rows have fewer cells than there are columns; the values of the others are missing."
        return [cls(text, "problem", code="short_rows")] if count else []

    @classmethod
    def zeros(cls, counts: Sequence[int] | npt.NDArray[np.integer], names: Sequence[str]) -> list[Note]:
        """Return the note on positions at exactly the origin that were set to missing, given their count by marker."""
        affected = [name for name, count in zip(names, counts, strict=True) if count]
        if not affected:
            return []
        text = f"{int(np.sum(counts))} positions at exactly the origin are read as missing: {list_names(affected)}."
        return [cls(text, "changed", code="zero_positions")]

    @classmethod
    def repeated(cls, names: Sequence[str]) -> Note:
        """Return the note on repeated names that were numbered."""
        return cls(f"Repeated names are numbered: {list_names(names, 10)}.", "problem", code="repeated_names")


class Event(NamedTuple):
    """Event with its time [s from the first frame]; context is "Left", "Right" or "General"."""

    time: float
    label: str
    context: str


@dataclass(frozen=True, repr=False)
class Recording:
    """Content of one file in meters and seconds, z up.

    Attributes:
        data: Time series and events, as listed in `LAYOUT`.
        name: Name of the recording, by default the file name without its extension.
        path: File it was read from; None if there is none.
        format: "C3D", "TRC", "MOT", "STO", "CSV", "AMC" or "BVH".
        subject: Name, mass [kg], height [m] and marker prefix of the subject, as far as stated.
        metadata: Other header data of the file, as plain values.
        notes: Decisions, observations and changes of the reader and of cleaning, in order.
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
        """Frame rate [Hz]; NaN for fewer than two frames without a stated rate."""
        return self._rate("rate_hz", "time")

    @property
    def analog_rate(self) -> float:
        """Sampling rate of plates and analog channels [Hz]; NaN if there are none."""
        return self._rate("analog_rate_hz", "analog_time")

    @property
    def frames(self) -> int:
        """Number of frames."""
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
        """Events in order of time."""
        if "event_time" not in self.data:
            return ()
        times = self.data["event_time"].values
        labels = self.data["event_label"].values
        contexts = self.data["event_context"].values
        order = np.argsort(times, kind="stable")
        return tuple(Event(float(times[i]), str(labels[i]), str(contexts[i])) for i in order)

    @check_arguments
    def with_data(self, data: Dataset, *notes: Note) -> Recording:
        """Return a copy with other data and further notes."""
        return replace(self, data=data, notes=(*self.notes, *notes))

    @check_arguments
    def with_notes(self, *notes: Note) -> Recording:
        """Return a copy with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    @check_arguments
    def select_markers(self, names: Iterable[str]) -> Recording:
        """Return a copy with only these markers, in this order.

        Raises:
            SettingsError: if a marker does not exist.
        """
        chosen = list(names)
        known = self.markers
        check_names("marker", chosen, known)
        return replace(self, data=self.data.isel(marker=[known.index(name) for name in chosen]))

    @check_arguments
    def to_netcdf(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the recording with its notes as netCDF 4 with a checksum, completely or not at all.

        An existing file is replaced only with `overwrite`, the file that the recording was read from never.
        """
        about = {key: getattr(self, key) for key in ("name", "path", "format")}
        about |= {"subject": dict(self.subject), "metadata": dict(self.metadata)}
        about["notes"] = [asdict(note) for note in self.notes]
        data = self.data.assign_attrs(borelli_recording=json.dumps(about))
        write_netcdf(path, {"/": data}, overwrite=overwrite, inputs=[self.path])

    def __repr__(self) -> str:
        rows = "".join(f"\n    {name}: {value}" for name, value in self._summary())
        return f"<borelli.Recording {self.name[:60]!r}{rows}>"

    def _repr_html_(self) -> str:
        """Return a table of the content and a plot of marker heights, for notebooks."""
        plot = ""
        if "marker_position" in self.data:
            heights = self.data["marker_position"].values[..., 2].T.tolist()
            series = dict(zip(self.markers, heights, strict=True))
            plot = sparkline_svg(self.data["time"].values.tolist(), series, label="Marker height [m]")
        return html_table(f"Recording {self.name}", self._summary()) + plot

    def _summary(self) -> list[tuple[str, str]]:
        events = [f"{event.label} {event.context} {event.time:.3g} s" for event in self.events]
        rows = [
            ("format", self.format[:20]),
            ("frames", f"{self.frames} at {self.rate:g} Hz, {self.duration:.3f} s"),
            ("markers", f"{len(self.markers)}: {list_names(self.markers, 12)}"),
            ("plates", f"{len(self.plates)}: {list_names(self.plates, 4)}"),
            ("channels", f"{len(self.channels)}: {list_names(self.channels, 4)}"),
            ("events", f"{len(events)}: {list_names(events, 4)}"),
            ("notes", f"{len(self.notes)}"),
        ]
        return [(name, value) for name, value in rows if value and not value.startswith("0")]

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
    """Return a dataset with the dimensions, units and frames of `LAYOUT`.

    Args:
        variables: Arrays by names of `LAYOUT`; empty ones are omitted.
        coordinates: Values by coordinate: `marker`, `plate`, `channel`...; names such as `channel_units` or
            `event_label` lie along the dimension that is their first word. `time` [s] and `analog_time` [s] follow
            from the rates unless given. `axis` and `corner` are added.
        rate: Frame rate [Hz].
        analog_rate: Sampling rate of plates and channels [Hz].
        attributes: Attributes of the dataset: `file_units`, `file_up`, `file_forward`...
    """
    import xarray

    arrays = {name: np.asarray(values) for name, values in variables.items()}
    arrays = {name: values for name, values in arrays.items() if values.size}
    sizes = {dim: n for name, values in arrays.items() for dim, n in zip(LAYOUT[name].dims, values.shape, strict=True)}
    given: dict[str, Any] = {"axis": ["x", "y", "z"], "corner": np.arange(1, 5)}
    given |= {
        "time": sample_times(sizes.get("time", 0), rate),
        "analog_time": sample_times(sizes.get("analog_time", 0), analog_rate),
    }
    given |= {name: values for name, values in coordinates.items() if values is not None}
    labels = {}
    for name, values in given.items():
        dimension = name if name in sizes else name.split("_")[0]
        if dimension in sizes:
            units = {"units": "s"} if name in ("time", "analog_time") else {}
            labels[name] = (dimension, _coordinate(values), units)
    rates = {"rate_hz": rate, "analog_rate_hz": analog_rate if "analog_time" in sizes else None}
    attrs = {key: float(value) for key, value in rates.items() if value is not None}
    return xarray.Dataset(with_layout(arrays), coords=labels, attrs=attrs | attributes)


def with_layout(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, tuple[tuple[str, ...], npt.NDArray[Any], Any]]:
    """Return arrays with the dimensions, units and frame of their names in `LAYOUT`, as variables of a dataset."""
    layouts = {name: LAYOUT[name] for name in arrays}
    return {n: (of.dims, arrays[n], {"units": of.units, "frame": of.frame}) for n, of in layouts.items()}


def sample_times(count: int, rate: float | None) -> npt.NDArray[np.float64]:
    """Return the times [s] of `count` samples from zero, without accumulated rounding errors."""
    return np.arange(count) / (rate or 1.0)


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names with repeated ones numbered `name_2`, `name_3`..., and the repeated names."""
    taken = set(names)
    counts: dict[str, int] = {}
    unique = []
    for name in names:
        count = counts[name] = counts.get(name, 0) + 1
        if count > 1:
            while (other := f"{name}_{count}") in taken:
                count = counts[name] = count + 1
            taken.add(other)
            name = other
        unique.append(name)
    return unique, [name for name, count in counts.items() if count > 1]


def number_repeated(names: Sequence[str], notes: list[Note]) -> list[str]:
    """Return the names with repeated ones numbered, and note them."""
    unique, repeated = unique_names(names)
    if repeated:
        notes.append(Note.repeated(repeated))
    return unique


def drop_implausible(values: npt.NDArray[np.float64], notes: list[Note], where: str = "") -> npt.NDArray[np.float64]:
    """Return the values with infinite and implausibly large ones set to NaN, and note their number."""
    plausible, count = mask_implausible(values)
    if count:
        notes.append(Note.implausible(count, where))
    return plausible


def note_count(stated: float | None, count: int, what: str, notes: list[Note]) -> None:
    """Note a number of rows, markers... that the header states wrongly."""
    if stated is not None and stated != count:
        text = f"The header states {stated:g} {what}, but the file has {count}, which are read."
        notes.append(Note(text, "problem", code="header_counts"))


def check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise `SettingsError` for a name of a marker, plate... that does not exist."""
    for name in names:
        if name not in known:
            raise SettingsError(unknown_name(what, name, known))


def assign_values(recording: Recording, values: Mapping[str, npt.ArrayLike], *notes: Note) -> Recording:
    """Return the recording with other values of some variables, and further notes."""
    changed = {name: recording.data[name].copy(data=array) for name, array in values.items()}
    return recording.with_data(recording.data.assign(changed), *notes)


def split_prefix(names: Sequence[str]) -> tuple[list[str], str]:
    """Return the names without the subject prefix they all have (`Subject:LASI`), and that prefix or ""."""
    prefix = names[0].partition(":")[0] if names and ":" in names[0] else ""
    if not prefix or not all(name.startswith(f"{prefix}:") and len(name) > len(prefix) + 1 for name in names):
        return list(names), ""
    return [name[len(prefix) + 1 :] for name in names], prefix


def _coordinate(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind in "OU" else array

"""Filtering, resampling and cropping of recordings."""

from __future__ import annotations

import numpy as np

from borelli.errors import SettingsError
from borelli.files.memory import check_memory
from borelli.numerics.filters import ORDER, lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.wrench_filter import filter_wrench
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording, assign_values, sample_times
from borelli.recording.time_stamps import repair_time_stamps as repair_stamps

CUTOFF = 6.0
"""Cutoff for markers [Hz], usual for walking; `task_cutoff` has those of other tasks."""


def lowpass_filter(
    recording: Recording, *, cutoff: float | None = CUTOFF, plate_cutoff: float | None = None
) -> Recording:
    """Return the recording with markers, and optionally plate forces, low-pass filtered (4th order, zero lag).

    Args:
        recording: Recording to filter.
        cutoff: Cutoff for markers and joint centers [Hz]; see `CUTOFF`. None for no filter.
        plate_cutoff: Cutoff for plates [Hz]; None for no filter. Forces and moments are filtered as wrenches about a
            fixed point, from which centers of pressure follow.
    """
    filtered: dict[str, Array] = {}
    notes: list[Note] = []
    if cutoff is not None:
        for name in ("marker_position", "joint_center"):
            if name in recording.data and _can_filter(recording, name, cutoff, notes):
                filtered[name] = lowpass(recording.data[name].values, recording.rate, cutoff)
    plates = "plate_force" in recording.data
    if plates and plate_cutoff is not None and _can_filter(recording, "plate_force", plate_cutoff, notes):
        filtered |= _filter_plates(recording, plate_cutoff)
    return assign_values(recording, filtered, *notes) if notes else recording


def _can_filter(recording: Recording, name: str, cutoff: float, notes: list[Note]) -> bool:
    """Return whether the cutoff [Hz] is below the Nyquist frequency of a variable, and add notes on its filter."""
    dimension = str(recording.data[name].dims[0])
    rate = recording.rate if dimension == "time" else recording.analog_rate
    if not cutoff < rate / 2.0:
        text = f"{name} is not filtered: {cutoff:g} Hz is not below the Nyquist frequency ({0.5 * rate:g} Hz)."
        notes.append(Note(text, "inferred", "clean(cutoff=...)", code="lowpass_filter"))
        return False
    text = f"{name} is low-pass filtered at {cutoff:g} Hz (Butterworth, order {ORDER}, zero lag)."
    notes.append(Note(text, "changed", "clean(cutoff=...)", code="lowpass_filter"))
    steps = np.diff(recording.data[dimension].values)
    if len(steps) and np.ptp(steps) > 0.01 * np.median(steps):
        text = f"{name} was filtered as if its time steps were even, but they are not."
        notes.append(Note(text, "problem", "resample first", code="uneven_time_steps"))
    return True


def _filter_plates(recording: Recording, cutoff: float) -> dict[str, Array]:
    """Return forces, centers of pressure and free moments of the plates, filtered as wrenches about a fixed point."""
    data, rate = recording.data, recording.analog_rate
    names = ("plate_force", "plate_center_of_pressure", "plate_free_moment")
    if not all(name in data for name in names):
        return {name: lowpass(data[name].values, rate, cutoff) for name in names[::2] if name in data}
    force, point, moment = (np.asarray(data[name].values, dtype=float) for name in names)
    force, point, moment = filter_wrench(force, point, moment, lambda values: lowpass(values, rate, cutoff))
    point[~(force[..., 2] >= MIN_PLATE_FORCE)] = np.nan
    return dict(zip(names, (force, point, moment), strict=True))


def resample(recording: Recording, rate: float | None = None, *, analog_rate: float | None = None) -> Recording:
    """Return the recording at another rate, interpolated by cubic splines; gaps stay gaps.

    A lower rate is preceded by a low-pass filter at 0.4 of it against aliasing.

    Args:
        recording: Recording to resample.
        rate: New frame rate [Hz]; None keeps it.
        analog_rate: New sampling rate of plates and channels [Hz]; None keeps it.
    """
    for given in (rate, analog_rate):
        if given is not None and not 0.0 < given < 1e6:
            raise SettingsError(f"rate: {given:g} Hz is not between 0 and 1e6 Hz.")
    data, notes = recording.data, []
    rates = {"time": (recording.rate, rate), "analog_time": (recording.analog_rate, analog_rate)}
    for dimension, (old_rate, new_rate) in rates.items():
        if new_rate is None or data.sizes.get(dimension, 0) < 2 or not old_rate > 0.0:
            continue
        old = data[dimension].values
        columns = sum(v.size for v in data.data_vars.values() if dimension in v.dims) / len(old)
        count = (old[-1] - old[0]) * new_rate
        check_memory(
            24.0 * columns * (count + len(old)), f"rate: A recording of {count:.0f} samples at {new_rate:g} Hz",
            "Choose a lower rate, or crop the recording first (--start, --end).",
        )  # fmt: skip
        new = old[0] + sample_times(int(np.floor((old[-1] - old[0]) * new_rate + 1e-6)) + 1, new_rate)
        resampled = {}
        for name, variable in data.data_vars.items():
            if dimension in variable.dims:
                source = lowpass(variable.values, old_rate, 0.4 * new_rate) if new_rate < old_rate else variable.values
                resampled[name] = (variable.dims, _interpolate(old, source, new), variable.attrs)
        coordinate = {dimension: (dimension, new, data[dimension].attrs)}
        data = data.drop_dims(dimension).assign(resampled).assign_coords(coordinate)
        data.attrs["rate_hz" if dimension == "time" else "analog_rate_hz"] = float(new_rate)
        text = f"{dimension}: {len(old)} samples at {old_rate:g} Hz are resampled to {len(new)} at {new_rate:g} Hz."
        notes.append(Note(text, "changed", code="resampled"))
    return recording.with_data(data, *notes)


def repair_time_stamps(recording: Recording) -> Recording:
    """Return the recording with rounded time stamps recomputed from a constant rate that explains them.

    Args:
        recording: Recording read from a table with a column of time.
    """
    if recording.frames < 3:
        return recording
    stamps = recording.data["time"].values
    repaired = repair_stamps(stamps, infer_decimals(stamps), recording.data.attrs.get("rate_hz"))
    if repaired.rate is None or np.array_equal(repaired.times, stamps):
        return recording
    data = recording.data.assign_coords(time=("time", repaired.times, recording.data["time"].attrs))
    data.attrs["rate_hz"] = repaired.rate
    error = 1000.0 * float(np.max(np.abs(repaired.times - stamps)))
    text = f"Time stamps with errors of up to {error:.2g} ms are recomputed from the rate of {repaired.rate:.6g} Hz."
    return recording.with_data(data, Note(text, "changed", code="time_stamps_repaired"))


def infer_decimals(stamps: Array) -> int:
    """Return the number of decimals that times [s] were written with, at most 9."""
    for count in range(9):
        if np.allclose(stamps * 10.0**count, np.round(stamps * 10.0**count), atol=1e-6, rtol=0.0):
            return count
    return 9


def crop(recording: Recording, start: float = -np.inf, end: float = np.inf) -> Recording:
    """Return the part of the recording from start to end [s], both included; events outside are dropped.

    Args:
        recording: Recording to cut.
        start: First time that is kept [s].
        end: Last time that is kept [s].
    """
    if not start < end:
        raise SettingsError(f"start: {start:g} s is not before the end, {end:g} s.")
    data = recording.data
    for name in ("time", "analog_time", "event_time"):
        if name not in data:
            continue
        low, high = _frame_limits(recording, start, end) if name == "analog_time" else (start, end)
        # a microsecond of tolerance for computed times
        inside = (data[name].values >= low - 1e-6) & (data[name].values <= high + 1e-6)
        kept = np.flatnonzero(inside)
        # a slice needs no copy
        whole = len(kept) and kept[-1] - kept[0] == len(kept) - 1
        chosen = slice(int(kept[0]), int(kept[-1]) + 1) if whole else kept
        data = data.isel({"event" if name == "event_time" else name: chosen})
    if not data.sizes.get("time", 1) or not data.sizes.get("analog_time", 1):
        span = recording.data["time" if "time" in recording.data else "analog_time"].values
        text = f"No frame lies between {start:g} and {end:g} s."
        raise SettingsError(f"{text} The recording covers {span[0]:g} to {span[-1]:g} s.")
    text = f"Cropped to {max(start, 0.0):g} to {min(end, recording.duration):g} s."
    return recording.with_data(data, Note(text, "changed", code="cropped"))


def _frame_limits(recording: Recording, start: float, end: float) -> tuple[float, float]:
    """Return start and end [s] moved to the limits of frames, so that frames keep all their analog samples."""
    frames = recording.data["time"].values if "time" in recording.data else np.empty(0)
    kept = frames[(frames >= start - 1e-6) & (frames <= end + 1e-6)]
    if not len(kept) or not recording.rate > 0.0 or not recording.analog_rate > 0.0:
        return start, end
    last = kept[-1] + 1.0 / recording.rate - 0.5 / recording.analog_rate
    return (kept[0] if frames[0] < kept[0] else start), (last if frames[-1] > kept[-1] else end)


def _interpolate(old: Array, values: Array, new: Array) -> Array:
    """Return cubic splines through the values at new times, NaN in gaps."""
    from scipy.interpolate import CubicSpline

    columns = values.reshape(len(values), -1)
    out = np.full((len(new), columns.shape[1]), np.nan)
    for column in range(columns.shape[1]):
        for start, stop in find_runs(np.isfinite(columns[:, column])):
            inside = (new >= old[start] - 1e-9) & (new <= old[stop - 1] + 1e-9)
            if stop - start > 1:
                out[inside, column] = CubicSpline(old[start:stop], columns[start:stop, column])(new[inside])
            else:
                out[inside, column] = columns[start, column]
    return out.reshape(len(new), *values.shape[1:])

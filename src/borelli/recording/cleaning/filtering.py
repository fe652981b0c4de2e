"""Noise taken out of recordings, and other rates and times put on them.

The filter is `borelli.numerics.filters.lowpass`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.numerics.filters import ORDER, lowpass
from borelli.numerics.runs import find_runs
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording, times
from borelli.recording.time_stamps import repair_time_stamps as restored

Array = npt.NDArray[np.float64]

CUTOFF = 6.0
"""Cutoff for markers [Hz], usual for walking; 10 to 12 Hz suit jumps, 15 Hz and more sprints."""
PULSE = 1.5
"""A push that lasts T, as half a sine, has its frequencies below 1.5 / T, where its spectrum first vanishes."""
SHORTEST_STEP = 0.05
"""Time [s] for which a foot loads a plate at least: what is shorter is chatter. Sprinters take 0.08 to 0.1 s."""


def lowpass_filter(
    recording: Recording, *, cutoff: float | None = CUTOFF, plate_cutoff: float | None = None
) -> Recording:
    """The recording with its markers low-passed (4th order, zero lag), and its plates too if a cutoff is given.

    Args:
        recording: What to smooth.
        cutoff: For markers and joint centres [Hz]; see `CUTOFF`. None leaves them.
        plate_cutoff: For forces and moments of plates [Hz]; None leaves them. Centres of pressure are left as they are.
    """
    changed, notes = {}, []
    chosen = [] if cutoff is None else [(name, recording.rate, cutoff) for name in ("marker_position", "joint_center")]
    if plate_cutoff is not None:
        chosen += [(name, recording.analog_rate, plate_cutoff) for name in ("plate_force", "plate_free_moment")]
    for name, rate, at in chosen:
        if name not in recording.data:
            continue
        variable = recording.data[name]
        if not at < rate / 2.0:
            said = f"{name} is not low-passed: {at:g} Hz is not below half the rate of {rate:g} Hz"
            notes.append(Note(said, "inferred", "clean(cutoff=...)"))
        else:
            changed[name] = variable.copy(data=lowpass(variable.values, rate, at))
            said = f"{name} low-passed at {at:g} Hz (Butterworth, order {ORDER} over both passes, no lag)"
            notes.append(Note(said, "changed", "clean(cutoff=...)"))
            steps = np.diff(recording.data[str(variable.dims[0])].values)
            if len(steps) and np.ptp(steps) > 0.01 * np.median(steps):
                said = f"{name} was low-passed as if its time steps were alike, which they are not"
                notes.append(Note(said, "problem", "resample first"))
    return recording.with_data(recording.data.assign(changed), *notes) if notes else recording


def resample(recording: Recording, rate: float | None = None, *, analog_rate: float | None = None) -> Recording:
    """The recording at another rate, by cubics through the frames; gaps stay gaps.

    A lower rate is preceded by a low-pass at 0.4 of it, so that nothing folds back.

    Args:
        recording: What to resample.
        rate: Frames per second [Hz]; None leaves them.
        analog_rate: Samples per second of plates and channels [Hz]; None leaves them.
    """
    for given in (rate, analog_rate):
        if given is not None and not 0.0 < given < 1e6:
            raise SettingsError(f"a rate must lie between 0 and 1e6 Hz, got {given:g} Hz")
    data, notes = recording.data, []
    for dimension, had, wanted in (("time", recording.rate, rate), ("analog_time", recording.analog_rate, analog_rate)):
        if wanted is None or data.sizes.get(dimension, 0) < 2 or not had > 0.0:
            continue
        old = data[dimension].values
        new = old[0] + times(int(np.floor((old[-1] - old[0]) * wanted + 1e-6)) + 1, wanted)
        moved = {}
        for name, variable in data.data_vars.items():
            if dimension in variable.dims:
                source = lowpass(variable.values, had, 0.4 * wanted) if wanted < had else variable.values
                moved[name] = (variable.dims, _through(old, source, new), variable.attrs)
        data = (
            data.drop_dims(dimension).assign(moved).assign_coords({dimension: (dimension, new, data[dimension].attrs)})
        )
        data.attrs["rate" if dimension == "time" else "analog_rate"] = float(wanted)
        notes.append(Note(f"{dimension}: {len(old)} samples at {had:g} Hz made {len(new)} at {wanted:g} Hz", "changed"))
    return recording.with_data(data, *notes)


def repair_time_stamps(recording: Recording) -> Recording:
    """The recording with times that a constant rate explains, to the last bit, where its own were rounded."""
    if recording.frames < 3:
        return recording
    stamps = recording.data["time"].values
    found = restored(stamps, decimals(stamps), recording.data.attrs.get("rate"))
    if found.rate is None or np.array_equal(found.times, stamps):
        return recording
    data = recording.data.assign_coords(time=("time", found.times, recording.data["time"].attrs))
    data.attrs["rate"] = found.rate
    off = 1000.0 * float(np.max(np.abs(found.times - stamps)))
    note = Note(f"time stamps, up to {off:.2g} ms off, restored from the rate of {found.rate:.6g} Hz", "changed")
    return recording.with_data(data, note)


def decimals(stamps: Array) -> int:
    """With how many decimals times [s] were written, at most 9."""
    for count in range(9):
        if np.allclose(stamps * 10.0**count, np.round(stamps * 10.0**count), atol=1e-6, rtol=0.0):
            return count
    return 9


def step_cutoff(recording: Recording) -> tuple[float, Note | None]:
    """A cutoff [Hz] for coordinates that leaves the pushes of feet on plates as they are, and a note if it is unusual.

    That of walking would flatten the steps of a sprint.
    """
    data = recording.data
    if "ground_reaction_force" not in data or not recording.analog_rate > 0.0:
        return CUTOFF, None
    loaded = data["ground_reaction_force"].values[..., 2] >= MIN_PLATE_FORCE
    steps = [b - a for foot in loaded.T for a, b in find_runs(foot) if a > 0 and b < len(foot)]
    lasting = [step for step in steps if step >= SHORTEST_STEP * recording.analog_rate]
    lasts = float(np.median(lasting)) / recording.analog_rate if lasting else np.inf
    cutoff = round(PULSE / lasts, 1)
    if cutoff <= CUTOFF:
        return CUTOFF, None
    said = f"steps last {lasts:.2f} s: coordinates are low-passed at {cutoff:g} Hz in place of {CUTOFF:g} Hz"
    if not cutoff < 0.5 * recording.rate:
        said = f"steps last {lasts:.2f} s, which ask for a cutoff of {cutoff:g} Hz: too much for {recording.rate:g} Hz"
        return CUTOFF, Note(f"{said}, so {CUTOFF:g} Hz flatten them", "problem", "record faster")
    return cutoff, Note(said, "inferred", "--cutoff")


def crop(recording: Recording, start: float = -np.inf, stop: float = np.inf) -> Recording:
    """The part of the recording from start to stop [s], both included; events outside it are dropped."""
    if not start < stop:
        raise SettingsError(f"the start must come before the stop, got {start:g} s and {stop:g} s")
    data = recording.data
    for name in ("time", "analog_time", "event_time"):
        if name not in data:
            continue
        low, high = _frames_span(recording, start, stop) if name == "analog_time" else (start, stop)
        # a millionth of a second forgives times that were computed
        inside = (data[name].values >= low - 1e-6) & (data[name].values <= high + 1e-6)
        data = data.isel({"event" if name == "event_time" else name: np.flatnonzero(inside)})
    if not data.sizes.get("time", 1) or not data.sizes.get("analog_time", 1):
        span = recording.data["time" if "time" in recording.data else "analog_time"].values
        raise SettingsError(f"nothing lies between {start:g} and {stop:g} s; there is {span[0]:g} to {span[-1]:g} s")
    note = Note(f"cropped to {max(start, 0.0):g} ... {min(stop, recording.duration):g} s", "changed")
    return recording.with_data(data, note)


def _frames_span(recording: Recording, start: float, stop: float) -> tuple[float, float]:
    """The span from start to stop [s] moved to where frames begin and end, so that frames keep all their samples."""
    frames = recording.data["time"].values if "time" in recording.data else np.empty(0)
    kept = frames[(frames >= start - 1e-6) & (frames <= stop + 1e-6)]
    if not len(kept) or not recording.rate > 0.0 or not recording.analog_rate > 0.0:
        return start, stop
    last = kept[-1] + 1.0 / recording.rate - 0.5 / recording.analog_rate
    return (kept[0] if frames[0] < kept[0] else start), (last if frames[-1] > kept[-1] else stop)


def _through(old: Array, values: Array, new: Array) -> Array:
    """Cubics through values, at new times, not a number where the values were not."""
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

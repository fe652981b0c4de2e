"""EMG envelopes of a recording: channels by muscle, processed and normalized, on the times of the frames."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from borelli.errors import SettingsError, list_names, unknown_name
from borelli.numerics.vectors import Array
from borelli.recording.emg.muscle_names import read_muscle_names
from borelli.recording.emg.processing import (
    EmgSettings,
    band_pass,
    effective_high_cutoff,
    envelope,
    find_activity,
    saturated_fraction,
)
from borelli.recording.recording import Note, Recording, make_dataset

if TYPE_CHECKING:
    from xarray import Dataset

VOLTS = {"v": 1.0, "mv": 1e-3, "uv": 1e-6, "µv": 1e-6, "": 1.0}
"""Units of EMG channels in volts; those without a unit are assumed to be volts."""
MAX_NEGATIVE_FRACTION = 0.1
"""Signals are envelopes already if their median one goes below zero by no more than this fraction of its peak: raw
ones go as far down as up, filters of envelopes undershoot by a few percent."""
OTHER_SIGNAL = re.compile(r"(fp?\d*|pf\d*)?[_ -]?[fm][xyz]?\d*[xyz]?[\d+]*|(channel|sync).*", re.IGNORECASE)
"""Names of force plate components, and default names, which are not listed as possible EMG."""


class EmgChannel(NamedTuple):
    """Signal of one channel."""

    channel: str
    muscle: str
    """With its side, such as "soleus_r"."""
    values: Array
    """[V], or as the file has them if they are envelopes."""


class EmgSource(NamedTuple):
    """EMG channels of a recording, their times and rate."""

    channels: tuple[EmgChannel, ...]
    times: Array
    """[s]"""
    rate: float
    """[Hz]"""
    notes: tuple[Note, ...]


def emg_envelopes(
    recording: Recording,
    *,
    settings: EmgSettings = EmgSettings(),
    muscles: Mapping[str, str] | None = None,
    mvc: Mapping[str, float] | None = None,
    processed: bool | None = None,
) -> Dataset:
    """Return the EMG of a recording by muscle, its envelopes and activity.

    Channels are recognized by abbreviations of muscles, with their side; all others that may be EMG are listed in a
    note. The signal is band-passed, rectified and low-passed (no delay), and normalized. Samples that are NaN stay
    so; constant channels are left out; saturated ones are noted.

    Args:
        recording: Recording with analog channels, or a table with a column per muscle.
        settings: Cutoffs, normalization and onset detection.
        muscles: Muscle by channel name, such as {"EMG 1": "soleus_r"}; only these channels are used. Default:
            recognized by name.
        mvc: Envelope of a maximum voluntary contraction [V] by muscle, for the normalization "mvc".
        processed: Whether the signals are envelopes already. Default: inferred for each channel from its sign.

    Returns:
        Dataset with `emg` (analog_time, muscle) [V], unless the signals come from a table, `emg_envelope`
        (time, muscle) and `emg_active` (time, muscle). `notes` and `settings` are attributes, as JSON.

    Raises:
        SettingsError: There is no EMG, a channel is unknown, or an MVC is missing.
    """
    source = find_emg(recording, muscles)
    notes = list(source.notes)
    live = [channel for channel in source.channels if np.nanmin(channel.values) < np.nanmax(channel.values)]
    if len(live) < len(source.channels):
        dead = [channel.channel for channel in source.channels if channel not in live]
        text = f"EMG channels that are constant are left out: {list_names(dead, 20)}."
        notes.append(Note(text, "problem", code="emg_constant"))
    if not live:
        raise SettingsError(f"{recording.name or 'The recording'}: All EMG channels are constant.")
    times = recording.data["time"].values if recording.frames else source.times
    processed = _are_envelopes(live, notes) if processed is None else processed
    envelopes, active = [], []
    for channel in live:
        rectified = _rectify(channel, source.rate, settings, processed, notes)
        smooth = rectified if processed else envelope(rectified, source.rate, settings.envelope_cutoff)
        scale = _scale(channel.muscle, smooth, settings, mvc)
        envelopes.append(_at_times(smooth / scale, source.times, times))
        activity = find_activity(rectified, source.rate, settings)
        active.append(_at_times(activity.astype(float), source.times, times) >= 0.5)
    if not processed:
        _note_processing(source.rate, settings, notes)
    names = [channel.muscle for channel in live]
    variables = {"emg_envelope": np.stack(envelopes, axis=1), "emg_active": np.stack(active, axis=1)}
    if "analog" in recording.data:
        variables["emg"] = np.stack([channel.values for channel in live], axis=1)
    rates = {"rate": recording.rate if recording.frames else source.rate, "analog_rate": source.rate}
    labels = {"muscle": names, "muscle_channel": [channel.channel for channel in live], "time": times}
    data = make_dataset(variables, labels | {"analog_time": source.times}, **rates)
    data["emg_envelope"].attrs["units"] = "V" if settings.normalization == "none" else "1"
    return data.assign_attrs(settings=json.dumps(asdict(settings)), notes=json.dumps([asdict(note) for note in notes]))


def has_emg(recording: Recording) -> bool:
    """Return whether a recording has analog channels with the names of muscles."""
    if "analog" not in recording.data:
        return False
    units = [""] * len(recording.channels)
    return bool(_recognize(list(recording.channels), units, []))


def find_emg(recording: Recording, muscles: Mapping[str, str] | None = None) -> EmgSource:
    """Return the EMG channels of a recording by name, or those of `muscles`.

    Raises:
        SettingsError: There are none, or one of `muscles` does not exist.
    """
    data = recording.data
    if "analog" in data:
        names, values, times = list(recording.channels), data["analog"].values, data["analog_time"].values
        rate = recording.analog_rate
        units = data["channel_units"].values.tolist() if "channel_units" in data.coords else [""] * len(names)
    elif "column_value" in data:
        names = [str(name) for name in data["column"].values]
        values, times, rate = data["column_value"].values, data["time"].values, recording.rate
        units = [""] * len(names)
    else:
        raise SettingsError(f"{recording.name or 'The recording'}: There are no analog channels. Pass one with EMG.")
    notes: list[Note] = []
    if muscles is None:
        chosen = _recognize(names, units, notes)
    else:
        for name in muscles:
            if name not in names:
                raise SettingsError(unknown_name("channel", name, names))
        chosen = dict(muscles)
    if not chosen:
        text = f"{recording.name or 'The recording'}: No channel has the name of a muscle. Pass `muscles`; channels:"
        raise SettingsError(f"{text} {list_names([n for n in names if not OTHER_SIGNAL.fullmatch(n)], 40)}.")
    channels = tuple(
        EmgChannel(name, chosen[name], values[:, i].astype(float) * VOLTS.get(units[i].strip().lower(), 1.0))
        for i, name in enumerate(names)
        if name in chosen
    )
    return EmgSource(channels, times, float(rate), tuple(notes))


def _recognize(names: Sequence[str], units: Sequence[str], notes: list[Note]) -> dict[str, str]:
    """Return the muscle of each channel in volts whose name is that of a muscle; note all others that may be EMG."""
    known: dict[str, str] = {}
    repeated, unread = [], []
    read = read_muscle_names(names)
    for muscle, unit in zip(read, units, strict=True):
        electric = unit.strip().lower() in VOLTS
        if electric and muscle.muscle and muscle.label in known.values():
            repeated.append(muscle.name)
        elif electric and muscle.muscle:
            known[muscle.name] = muscle.label
        elif muscle.muscle:
            unread.append(f"{muscle.name} (in {unit})")
        elif muscle.candidates:
            unread.append(f"{muscle.name} ({' or '.join(muscle.candidates)})")
        elif electric and not OTHER_SIGNAL.fullmatch(muscle.name):
            unread.append(muscle.name)
    if repeated:
        text = f"EMG channels of a muscle that another channel has are left out: {list_names(repeated, 20)}."
        notes.append(Note(text, "problem", "muscles=", code="emg_repeated"))
    if unread:
        text = f"Channels that may be EMG, of unknown muscles, are left out: {list_names(unread, 40)}."
        notes.append(Note(text, "problem", "muscles=", code="emg_unknown"))
    if known:
        pairs = [f"{name}: {label}" for name, label in known.items()]
        notes.append(
            Note(f"EMG channels by name: {list_names(pairs, 40)}.", "inferred", "muscles=", code="emg_channels")
        )
    return known


def _are_envelopes(channels: Sequence[EmgChannel], notes: list[Note]) -> bool:
    """Return whether the signals are envelopes already, by their sign, all together."""
    negative = float(np.median([-np.nanmin(c.values) / np.nanmax(np.abs(c.values)) for c in channels]))
    if negative > MAX_NEGATIVE_FRACTION:
        return False
    text = "The signals are hardly ever negative, and used as the envelopes they appear to be, without filters."
    notes.append(Note(text, "inferred", "processed=False", code="emg_processed"))
    return True


def _rectify(channel: EmgChannel, rate: float, settings: EmgSettings, processed: bool, notes: list[Note]) -> Array:
    """Return the band-passed and rectified signal; of an envelope, its positive part."""
    if processed:
        return np.maximum(channel.values, 0.0)
    if fraction := saturated_fraction(channel.values):
        text = f"{channel.channel}: {100.0 * fraction:.2g} % of the samples are saturated; peaks are underestimated."
        notes.append(Note(text, "problem", code="emg_saturated"))
    return np.abs(band_pass(channel.values, rate, settings))


def _scale(muscle: str, smooth: Array, settings: EmgSettings, mvc: Mapping[str, float] | None) -> float:
    if settings.normalization == "none":
        return 1.0
    if settings.normalization == "peak":
        return float(np.nanmax(smooth)) or 1.0
    if mvc is None or muscle not in mvc:
        raise SettingsError(f"mvc: {muscle} has no value. Pass its envelope in a maximum voluntary contraction [V].")
    if not mvc[muscle] > 0.0:
        raise SettingsError(f"mvc: {muscle} has {mvc[muscle]:g} V. Pass a positive number.")
    return float(mvc[muscle])


def _at_times(values: Array, own: Array, times: Array) -> Array:
    """Return a signal at other times by linear interpolation; NaN outside of its own and in its gaps."""
    return np.interp(times, own, values, left=np.nan, right=np.nan)


def _note_processing(rate: float, settings: EmgSettings, notes: list[Note]) -> None:
    high = effective_high_cutoff(rate, settings)
    if high < settings.high_cutoff:
        text = f"The band-pass of EMG ends at {high:g} Hz: the sampling rate is {rate:g} Hz."
        notes.append(Note(text, "changed", "high_cutoff=", code="emg_band_pass"))

"""Processing of EMG signals: band-pass, rectification, envelope, onsets, saturation. All filters have no delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.numerics.filters import MIN_RUN, lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array

Mask = NDArray[np.bool_]

NYQUIST_FRACTION = 0.9
"""Highest cutoff as a fraction of half the sampling rate."""
BAND_PASS_ORDER = 4
"""Order of the band-pass of both passes together, at each end."""
MIN_SATURATED_RUN = 3
"""Consecutive samples at the largest or smallest value of a channel that count as saturated."""
NORMALIZATIONS = ("peak", "mvc", "none")


@dataclass(frozen=True)
class EmgSettings:
    """Parameters of EMG processing.

    Attributes:
        low_cutoff: Lower end of the band-pass [Hz] (De Luca et al. 2010: 20 Hz).
        high_cutoff: Upper end [Hz], or 0.9 of half the sampling rate if that is lower.
        envelope_cutoff: Low-pass of the rectified signal [Hz].
        normalization: "peak" of the trial, "mvc" (maximum voluntary contraction) or "none".
        onset_sd: Standard deviations above the mean of the baseline from which a muscle is active (Hodges and Bui
            1996: 3).
        onset_cutoff: Low-pass of the rectified signal for onsets [Hz] (Hodges and Bui 1996: 50).
        baseline_duration: Length [s] of the quietest stretch of the trial, which is the baseline.
        min_duration: Shortest burst and shortest pause [s].
    """

    low_cutoff: float = 20.0
    high_cutoff: float = 450.0
    envelope_cutoff: float = 6.0
    normalization: str = "peak"
    onset_sd: float = 3.0
    onset_cutoff: float = 50.0
    baseline_duration: float = 0.2
    min_duration: float = 0.05

    def __post_init__(self) -> None:
        if self.normalization not in NORMALIZATIONS:
            raise SettingsError(unknown_name("normalization", str(self.normalization), NORMALIZATIONS))
        numbers = {name: value for name, value in vars(self).items() if name != "normalization"}
        for name, value in numbers.items():
            if not 0.0 < value < np.inf:
                raise SettingsError(f"{name}: {value} is out of range. Pass a positive number.")
        if self.low_cutoff >= self.high_cutoff:
            raise SettingsError(
                f"low_cutoff: {self.low_cutoff:g} Hz is not below high_cutoff, {self.high_cutoff:g} Hz."
            )


def band_pass(signal: Array, rate: float, settings: EmgSettings) -> Array:
    """Return a signal (samples,) between the cutoffs; runs between NaN are filtered separately.

    Raises:
        SettingsError: The sampling rate is too low for the band-pass.
    """
    from scipy.signal import butter, sosfiltfilt

    low, high = settings.low_cutoff, effective_high_cutoff(rate, settings)
    if high <= low:
        text = f"EMG at {rate:g} Hz has no frequencies above {low:g} Hz. Record at 1000 Hz or more, or pass"
        raise SettingsError(f"{text} processed=True if these are envelopes.")
    sections = butter(BAND_PASS_ORDER // 2, (low, high), "bandpass", fs=rate, output="sos")
    out = np.full(len(signal), np.nan)
    for start, end in find_runs(np.isfinite(signal)):
        if end - start >= MIN_RUN:
            piece = signal[start:end] - signal[start:end].mean()
            out[start:end] = sosfiltfilt(sections, piece, padlen=min(int(2.0 * rate / low), end - start - 1))
    return out


def effective_high_cutoff(rate: float, settings: EmgSettings) -> float:
    """Return the upper end of the band-pass [Hz] that the sampling rate admits."""
    return min(settings.high_cutoff, NYQUIST_FRACTION * rate / 2.0)


def envelope(rectified: Array, rate: float, cutoff: float) -> Array:
    """Return the low-pass of a rectified signal (samples,), not below zero.

    Its ends are extended by reflection in time: a point reflection would pull the envelope to the last sample.
    """
    cutoff = min(cutoff, NYQUIST_FRACTION * rate / 2.0)
    out = np.full(len(rectified), np.nan)
    for start, end in find_runs(np.isfinite(rectified)):
        pad = min(int(2.0 * rate / cutoff), end - start - 1)
        mirrored = np.pad(rectified[start:end], pad, mode="reflect")
        out[start:end] = np.maximum(lowpass(mirrored, rate, cutoff)[pad : pad + end - start], 0.0)
    return out


def find_activity(rectified: Array, rate: float, settings: EmgSettings) -> Mask:
    """Return the samples in which a muscle is active: above the baseline's mean by so many standard deviations.

    The baseline is the stretch of `baseline_duration` with the least mean. Shorter bursts than `min_duration` are
    removed, then shorter pauses filled.
    """
    smooth = envelope(rectified, rate, settings.onset_cutoff)
    length = max(2, min(round(settings.baseline_duration * rate), len(smooth)))
    known = np.isfinite(smooth)
    filled = np.where(known, smooth, np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(filled, length)
    if not np.isfinite(windows.mean(axis=1)).any():
        return np.zeros(len(smooth), bool)
    quiet = windows[int(np.argmin(windows.mean(axis=1)))]
    with np.errstate(invalid="ignore"):
        above = known & (smooth > quiet.mean() + settings.onset_sd * quiet.std())
    shortest = round(settings.min_duration * rate)
    for value in (True, False):
        for start, end in find_runs(above == value):
            at_end = start == 0 or end == len(above)
            if end - start < shortest and not (at_end and not value):
                above[start:end] = not value
    return above & known


def saturated_fraction(signal: Array) -> float:
    """Return the fraction of samples that are at the largest or smallest value for several samples in a row."""
    finite = np.isfinite(signal)
    if not finite.any() or np.nanmin(signal) == np.nanmax(signal):
        return 0.0
    count = 0
    for extreme in (np.nanmin(signal), np.nanmax(signal)):
        runs = [end - start for start, end in find_runs(signal == extreme)]
        count += sum(length for length in runs if length >= MIN_SATURATED_RUN)
    return count / int(finite.sum())

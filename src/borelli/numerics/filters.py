"""Low-pass filters without delay.

`lowpass` runs a Butterworth filter forward and backward. Both passes together square its gain: a filter of order n and
cutoff w has the gain 1/(1 + (f/w)^2n) after both, which is sqrt(1/2) at f = w (sqrt(2) - 1)^(1/2n). The single pass is
therefore given a cutoff that much higher (Robertson and Dowling 2003), in the frequencies of the bilinear transform,
and the pair has the stated cutoff exactly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from borelli.errors import SettingsError
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array

ORDER = 4
"""Filter order of the two passes together."""
OPENSIM_ORDER = 6
"""The same of OpenSim's filter."""
MIN_RUN = 4
"""Shorter runs of samples are not filtered."""


def lowpass(signal: Array, rate: float, cutoff: float, order: int = ORDER) -> Array:
    """Return a signal without the frequencies above the cutoff; time runs along the first axis.

    Runs between NaN are filtered separately. Ends are extended by point reflection.

    Args:
        signal: Values, shape (samples, ...).
        rate: Sampling rate [Hz].
        cutoff: Frequency [Hz] at which the gain of both passes together is sqrt(1/2).
        order: Even filter order of both passes together.

    Raises:
        SettingsError: if the cutoff is not between zero and half the rate, or the order is not even.
    """
    from scipy.signal import sosfiltfilt

    if order < 2 or order % 2:
        raise SettingsError(f"filter order: {order} is not an even number. Both passes need half of it each.")
    if not 0.0 < cutoff < rate / 2.0:
        text = f"cutoff: {cutoff:g} Hz is not between 0 and the Nyquist frequency of {rate / 2.0:g} Hz."
        raise SettingsError(f"{text} Choose a lower cutoff.")
    if not signal.size:
        return signal.astype(np.float64)
    sections = _sections(rate, cutoff, order)
    pad = int(np.ceil(2.0 * rate / cutoff))
    columns = signal.reshape(len(signal), -1)
    out = columns.astype(np.float64)  # single precision would put its own noise on second derivatives
    finite = np.isfinite(columns)
    complete = finite.all(axis=0)
    # a few columns at a time: the filter needs several copies of its input
    groups = np.array_split(np.flatnonzero(complete), max(1, columns.size // 1_000_000))
    runs = [(0, len(columns), chosen) for chosen in groups if len(chosen)]
    for column in np.flatnonzero(~complete):
        runs += [(start, end, np.array([column])) for start, end in find_runs(finite[:, column])]
    for start, end, chosen in runs:
        if end - start >= MIN_RUN:
            piece = out[start:end, chosen]
            out[start:end, chosen] = sosfiltfilt(sections, piece, axis=0, padlen=min(pad, end - start - 1))
    return out.reshape(signal.shape)


def cutoff_of_both_passes(cutoff: float, rate: float, order: int = ORDER) -> float:
    """Return the cutoff [Hz] of `lowpass` for two passes of which each has the given cutoff, where their gain is 1/2.

    `order` is that of both passes together.
    """
    return float(rate / np.pi * np.arctan(np.tan(np.pi * cutoff / rate) * (np.sqrt(2.0) - 1.0) ** (1.0 / order)))


@lru_cache(maxsize=64)
def _sections(rate: float, cutoff: float, order: int) -> Array:
    """Return the second-order sections of one pass (cached: do not write to them)."""
    from scipy.signal import butter

    single = order // 2
    corrected = np.tan(np.pi * cutoff / rate) / (np.sqrt(2.0) - 1.0) ** (0.5 / single)
    return np.asarray(butter(single, rate / np.pi * np.arctan(corrected), fs=rate, output="sos"))


def opensim_lowpass(signal: Array, rate: float, cutoff: float) -> Array:
    """Return a signal (samples, columns) filtered as by OpenSim's `lowpassIIR`.

    The filter has order 3 and runs forward and backward; each pass copies its first three samples.
    """
    from scipy.signal import butter

    b, a = butter(OPENSIM_ORDER // 2, cutoff, fs=rate)
    return _pass(_pass(signal, b, a)[::-1], b, a)[::-1]


def _pass(signal: Array, b: Array, a: Array) -> Array:
    from scipy.signal import lfilter, lfiltic

    order = len(b) - 1
    result = signal.copy()
    latest = signal[:order][::-1]
    state = np.stack([lfiltic(b, a, column, column) for column in latest.T], axis=-1)
    result[order:] = lfilter(b, a, signal[order:], axis=0, zi=state)[0]
    return result

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
    if order < 2 or order % 2:
        raise SettingsError(f"filter order: {order} is not an even number. Both passes need half of it each.")
    if not 0.0 < cutoff < rate / 2.0:
        text = f"cutoff: {cutoff:g} Hz is not between 0 and the Nyquist frequency of {rate / 2.0:g} Hz."
        raise SettingsError(f"{text} Choose a lower cutoff.")
    if not signal.size:
        return signal.astype(np.float64)
    corrected = np.tan(np.pi * cutoff / rate) / (np.sqrt(2.0) - 1.0) ** (1.0 / order)
    sections = _butterworth(corrected, order // 2)
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
            out[start:end, chosen] = _both_passes(piece, sections, min(pad, end - start - 1))
    return out.reshape(signal.shape)


def cutoff_of_both_passes(cutoff: float, rate: float, order: int = ORDER) -> float:
    """Return the cutoff [Hz] of `lowpass` for two passes of which each has the given cutoff, where their gain is 1/2.

    `order` is that of both passes together.
    """
    return float(rate / np.pi * np.arctan(np.tan(np.pi * cutoff / rate) * (np.sqrt(2.0) - 1.0) ** (1.0 / order)))


@lru_cache(maxsize=64)
def _butterworth(tangent: float, order: int) -> tuple[tuple[Array, Array], ...]:
    """Return numerators and denominators of the sections of a Butterworth filter, by the bilinear transform.

    `tangent` is tan(pi cutoff / rate). A pair of poles at the angles +-t from the negative real axis is the section
    1 / (s^2 + 2 cos(t) s + 1); a filter of odd order has a single pole too. All sections have the gain 1 at 0 Hz.
    """
    sections = []
    for angle in np.pi / (2.0 * order) * np.arange(order - 1, 0, -2):
        size = 1.0 + 2.0 * np.cos(angle) * tangent + tangent**2
        middle, last = 2.0 * (tangent**2 - 1.0), 1.0 - 2.0 * np.cos(angle) * tangent + tangent**2
        sections.append((tangent**2 / size * np.array([1.0, 2.0, 1.0]), np.array([1.0, middle / size, last / size])))
    if order % 2:
        size = 1.0 + tangent
        sections.append((tangent / size * np.ones(2), np.array([1.0, (tangent - 1.0) / size])))
    return tuple(sections)


def _both_passes(signal: Array, sections: tuple[tuple[Array, Array], ...], pad: int) -> Array:
    """Return a signal (samples, columns) filtered forward and backward, extended by `pad` samples at both ends."""
    before, after = 2.0 * signal[0] - signal[pad:0:-1], 2.0 * signal[-1] - signal[-2 : -pad - 2 : -1]
    result = np.concatenate([before, signal, after])
    for _ in range(2):
        start = result[0]  # as if it had always been so
        result = result - start
        for numerator, denominator in sections:
            result = _recursion(result, numerator, denominator)
        result = (result + start)[::-1]
    return result[pad : pad + len(signal)]


def _recursion(signal: Array, numerator: Array, denominator: Array, kept: int = 0) -> Array:
    """Return y of sum_k a_k y[n - k] = sum_k b_k x[n - k], whose first `kept` samples are those of x; zero before."""
    from scipy.linalg.lapack import dtbtrs

    count = len(signal)
    right = np.asfortranarray(numerator[0] * signal)
    band = np.zeros((len(denominator), count), order="F")
    band[0] = denominator[0]
    for k in range(1, len(denominator)):
        right[k:] += numerator[k] * signal[:-k]
        band[k, max(kept - k, 0) :] = denominator[k]
    right[:kept], band[0, :kept] = signal[:kept], 1.0
    result, _ = dtbtrs(band, right, uplo="L", overwrite_b=1)
    return np.ascontiguousarray(result)


def opensim_lowpass(signal: Array, rate: float, cutoff: float) -> Array:
    """Return a signal (samples, columns) filtered as by OpenSim's `lowpassIIR`.

    The filter has order 3 and runs forward and backward; each pass copies its first three samples.
    """
    numerator, denominator = np.ones(1), np.ones(1)
    for over, under in _butterworth(np.tan(np.pi * cutoff / rate), OPENSIM_ORDER // 2):
        numerator, denominator = np.convolve(numerator, over), np.convolve(denominator, under)
    kept = len(numerator) - 1
    forward = _recursion(signal, numerator, denominator, kept)
    return _recursion(forward[::-1], numerator, denominator, kept)[::-1]

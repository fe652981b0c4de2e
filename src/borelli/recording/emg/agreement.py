"""Agreement of activations with EMG envelopes: correlation, lag, and on/off."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.kernels.array_checks import as_floats
from borelli.numerics.vectors import Array

ON_FRACTION = 0.2
"""Fraction of the range above the minimum at which a signal without given on/off is on."""
MIN_SAMPLES = 4
"""Fewer common samples have no agreement."""


class EmgAgreement(NamedTuple):
    """Agreement of an activation with an envelope."""

    r: float
    """Pearson correlation without lag; NaN if a signal is constant."""
    lag: float
    """Time [s] by which the activation follows the envelope at the largest correlation."""
    r_at_lag: float
    """Correlation at that lag."""
    on_off: float
    """Fraction of samples in which both are on or both are off."""
    on_off_by_chance: float
    """The same expected of unrelated signals that are on as often."""


def emg_agreement(
    activation: npt.ArrayLike, envelope: npt.ArrayLike, rate: float, *, max_lag: float = 0.15, on: float = ON_FRACTION
) -> EmgAgreement:
    """Return how well an activation agrees with an EMG envelope.

    The electromechanical delay of muscle force is 30 to 100 ms (Cavanagh and Komi 1979), so envelopes lead.

    Args:
        activation: (samples,)
        envelope: (samples,) at the same times; samples with NaN in either are left out.
        rate: Sampling rate [Hz].
        max_lag: Largest lag that is tried, both ways [s].
        on: Fraction of its range at which each signal is on.

    Raises:
        SettingsError: Lengths differ, or fewer than 4 samples are common.
    """
    a = as_floats("activation", activation, (None,), finite=False)
    e = as_floats("envelope", envelope, (len(a),), finite=False)
    known = np.isfinite(a) & np.isfinite(e)
    if known.sum() < MIN_SAMPLES:
        raise SettingsError(f"envelope: {known.sum()} samples are known of both. Pass at least {MIN_SAMPLES}.")
    shifts = range(-round(max_lag * rate), round(max_lag * rate) + 1)
    by_shift = {shift: _correlation(*_shifted(a, e, shift)) for shift in shifts}
    # the smallest lag on a tie
    best = max(by_shift, key=lambda shift: (np.nan_to_num(by_shift[shift], nan=-2.0), -abs(shift)))
    is_on = [_is_on(signal[known], on) for signal in (a, e)]
    often = [float(mask.mean()) for mask in is_on]
    chance = often[0] * often[1] + (1.0 - often[0]) * (1.0 - often[1])
    return EmgAgreement(by_shift[0], best / rate, by_shift[best], float((is_on[0] == is_on[1]).mean()), chance)


def _shifted(a: Array, e: Array, shift: int) -> tuple[Array, Array]:
    """Return the parts in which the activation is `shift` samples behind the envelope."""
    if shift >= 0:
        return a[shift:], e[: len(e) - shift]
    return a[:shift], e[-shift:]


def _correlation(a: Array, e: Array) -> float:
    known = np.isfinite(a) & np.isfinite(e)
    if known.sum() < MIN_SAMPLES or np.ptp(a[known]) == 0.0 or np.ptp(e[known]) == 0.0:
        return float("nan")
    return float(np.corrcoef(a[known], e[known])[0, 1])


def _is_on(signal: Array, fraction: float) -> npt.NDArray[np.bool_]:
    return np.asarray(signal > signal.min() + fraction * np.ptp(signal))

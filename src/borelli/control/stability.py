"""Stability of gains for steps of any length.

With a constant target the step maps (E, E') to (a E + b E', ((a - 1) E + b E') / h), where E' is the mean rate
of the step: trace a + b / h, determinant b / h. Both eigenvalues lie within the unit circle if and only if (Jury 1964)

    |b / h| < 1,      a < 1,      1 + a + 2 b / h > 0.

Critically damped or more, 0 < b < h and 0 < a < 1, and all three are satisfied. With less damping the third is the
first to fail: where the oscillation has about half a period in a step, E changes sign and grows.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError

Array = NDArray[np.float64]

MIN_RATIO = 0.02933
"""Damping ratio from which every step is stable: for the doubled gains, sqrt 2 times the ratio, it is 0.041472."""


def spectral_radius(a: Array, b: Array, step: Array | float) -> Array:
    """Return the largest growth factor of an error per step, in repeated steps of one length; a, b as above."""
    ratio = b / step
    trace = a + ratio
    root = np.sqrt(np.asarray(trace * trace - 4.0 * ratio, complex))
    return np.asarray(np.maximum(np.abs(trace + root), np.abs(trace - root)) / 2.0)


def check_ratio(ratio: float) -> None:
    """Raise SettingsError if a damping ratio does not make every step stable."""
    if not (isfinite(ratio) and ratio >= MIN_RATIO):
        raise SettingsError(
            f"PD: The damping ratio is {ratio}; below {MIN_RATIO} the error grows for some step lengths. Use at least "
            f"{MIN_RATIO}, or 1 for the quickest approach without overshoot."
        )

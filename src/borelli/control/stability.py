"""Which gains are stable for steps of any length.

With a target that stands still the step maps (E, E') to (a E + b E', ((a - 1) E + b E') / h), where E' is the mean rate
of the step: trace a + b / h, determinant b / h. Both eigenvalues lie within the unit circle if and only if (Jury 1964)

    |b / h| < 1,      a < 1,      1 + a + 2 b / h > 0.

Critically damped or more, 0 < b < h and 0 < a < 1, and all three hold. With less damping the third is the first to
fail: where the swing has about half a turn in a step, E leaps to the other side and grows.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError

Array = NDArray[np.float64]

MIN_RATIO = 0.02933
"""Damping ratio from which every step is stable: for the doubled gains, sqrt 2 times the ratio, it is 0.041472."""


def is_stable(a: Array, b: Array, step: Array | float) -> NDArray[np.bool_]:
    """Whether errors die away when steps of one length are repeated; a, b as in `response.coefficients`."""
    share = b / step
    return np.asarray((np.abs(share) < 1.0) & (a < 1.0) & (1.0 + a + 2.0 * share > 0.0))


def spectral_radius(a: Array, b: Array, step: Array | float) -> Array:
    """By how much, at most, an error grows in a step, when steps of one length are repeated."""
    share = b / step
    trace = a + share
    root = np.sqrt(np.asarray(trace * trace - 4.0 * share, complex))
    return np.asarray(np.maximum(np.abs(trace + root), np.abs(trace - root)) / 2.0)


def check_ratio(ratio: float) -> None:
    """Raises SettingsError if a damping ratio does not make every step stable."""
    if not (isfinite(ratio) and ratio >= MIN_RATIO):
        raise SettingsError(
            f"PD control: damping ratio is {ratio}, and below {MIN_RATIO} there are steps with which the error "
            "grows; take at least that, or 1 for the quickest approach without overshoot"
        )

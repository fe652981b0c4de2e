"""Quantities sampled over time as functions of it: cubic splines through the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.files.html_repr import fields_repr
from borelli.optimal.casadi_import import ca

MIN_SAMPLES = 4
"""Samples of a cubic spline."""


@dataclass(frozen=True)
class TimeSeries:
    """Named quantities at times of a problem, such as the reference of a tracking cost."""

    names: tuple[str, ...]
    time: NDArray[np.float64]
    """(samples,) [s]"""
    values: NDArray[np.float64]
    """(samples, names)"""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.time), len(self.names)):
            raise SettingsError(
                f"Time series: {self.values.shape} values for {len(self.time)} times and {len(self.names)} names. Give "
                "one row per time and one column per name."
            )
        if len(self.time) < MIN_SAMPLES or not np.all(np.diff(self.time) > 0.0):
            raise SettingsError(
                f"Time series: {len(self.time)} samples. Give at least {MIN_SAMPLES} at increasing times."
            )
        if not np.isfinite(self.values).all():
            bad = self.names[int(np.flatnonzero(~np.isfinite(self.values).all(axis=0))[0])]
            raise SettingsError(f"Time series: {bad!r} contains NaN. Fill the gaps first.")


def spline_function(series: Sequence[TimeSeries]) -> ca.Function:
    """Return casadi.Function(t) -> values of all series, one after another."""
    t = ca.MX.sym("t")
    found = [ca.interpolant("samples", "bspline", [one.time], one.values.ravel())(t) for one in series if one.names]
    return ca.Function("signals", [t], [ca.vertcat(*found, ca.MX(0, 1))])

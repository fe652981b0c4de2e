"""Normative gait curves over the gait cycle, mean and standard deviation, by walking speed.

Values and sources are in `data/gait_curves.csv`.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name

Array = NDArray[np.float64]

SOURCES = {
    "schwartz2008": "Schwartz, Rozumalski and Trost 2008 (typically developing children, by speed)",
    "pinzone2014": "Pinzone, Schwartz, Thomason and Baker 2014 (mean of two services)",
}
SPEEDS = {"very slow": 0.227, "slow": 0.363, "free": 0.500, "fast": 0.636, "very fast": np.inf}
"""Upper bound of each class in dimensionless speed v / sqrt(g leg length) (Schwartz, Rozumalski and Trost 2008)."""


class NormativeCurve(NamedTuple):
    """A curve at 101 points of the gait cycle, 0 to 100 %: deg, N m/kg, W/kg or body weights."""

    mean: Array
    sd: Array


def normative_curve(curve: str, speed: str = "free", source: str = "schwartz2008") -> NormativeCurve | None:
    """Return the curve of that name ("hip_flexion"...), for one of `SPEEDS`, or None if the source has none."""
    if source not in SOURCES:
        raise SettingsError(unknown_name("normative source", source, SOURCES))
    if speed not in SPEEDS:
        raise SettingsError(unknown_name("speed class", speed, SPEEDS))
    return _curves().get((curve, source, speed))


def relative_speed(speed: float, leg_length: float) -> float:
    """Return speed / sqrt(g leg length) for a speed [m/s] and a leg length [m]."""
    return float(speed / np.sqrt(9.81 * leg_length))


def speed_class(relative: float) -> str:
    """Return the class of a walking speed / sqrt(g leg length)."""
    return next(name for name, bound in SPEEDS.items() if relative <= bound)


@cache
def _curves() -> dict[tuple[str, str, str], NormativeCurve]:
    from scipy.interpolate import CubicSpline

    text = (files("borelli.normative") / "data" / "gait_curves.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(line for line in text.splitlines() if not line.startswith("#")))
    percent = np.array(rows[0][4:], float)
    curves = CubicSpline(percent, np.array([row[4:] for row in rows[1:]], float), axis=1)(np.arange(101.0))
    parts: dict[tuple[str, str, str], dict[str, Array]] = {}
    for (curve, source, speed, statistic, *_), values in zip(rows[1:], curves, strict=True):
        parts.setdefault((curve, source, speed), {})[statistic] = values
    return {key: NormativeCurve(part["mean"], part["sd"]) for key, part in parts.items()}

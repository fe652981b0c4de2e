"""Values of a gait over its strides: extremes and variability of curves, gait profile score.

The movement analysis profile is that of Baker et al. (2009). A gait variable score is the RMS difference [deg] over the
gait cycle between a kinematic curve and the normative mean. The profile has the scores of nine variables; the gait
profile score of a side is the RMS of its nine scores, that of both sides the RMS of fifteen (the pelvis moves once: its
scores are those of the left strides).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.strides import Statistic, parameters_by_side, statistic
from borelli.export.gait_curves import SIDES, Curve, Gait, curve_by_stride
from borelli.normative.gait import NormativeCurve

Array = NDArray[np.float64]

PELVIS = ("pelvis_tilt", "pelvis_obliquity", "pelvis_rotation")
VARIABLES = (
    *PELVIS, "hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_dorsiflexion", "foot_progression",
)  # fmt: skip
"""Kinematic variables of the movement analysis profile (Baker et al. 2009)."""


PEAKS = {
    "knee_flexion": "deg", "ankle_plantarflexor_moment": "nm_per_kg", "hip_extensor_moment": "nm_per_kg",
    "ankle_power": "w_per_kg",
}  # fmt: skip
"""Curves whose maximum is a value of `summary.json`, and its unit there."""


class CurveValues(NamedTuple):
    """Extremes and range of a curve over the gait cycle, over the strides of a side, and its variability."""

    minimum: Statistic
    maximum: Statistic
    range: Statistic
    variability: float
    """Standard deviation over strides, RMS over the gait cycle; NaN with fewer than two strides."""


class GaitProfile(NamedTuple):
    """Scores [deg] over the strides of each side."""

    titles: Mapping[str, str]
    """Title of each variable that is known, in the order of `VARIABLES`."""
    scores: Mapping[str, Mapping[str, Statistic]]
    """Gait variable score, by variable and side."""
    normative: Mapping[str, float]
    """Expected score of a person of the normative sample: RMS of the standard deviation over the cycle."""
    total: Mapping[str, Statistic]
    """Gait profile score of "right", "left" and "both"; a side without all nine variables is missing."""

    @property
    def normative_total(self) -> float:
        """Expected gait profile score of a person of the normative sample [deg]."""
        return float(np.sqrt(np.mean(np.square(list(self.normative.values())))))


def curve_values(gait: Gait, curve: Curve, side: str) -> CurveValues:
    """Return extremes, range and variability of a curve over the strides of a side."""
    rows = curve_by_stride(gait, curve, side)
    low, high = rows.min(axis=1), rows.max(axis=1)
    spread = float(np.sqrt(np.mean(rows.var(axis=0, ddof=1)))) if len(rows) > 1 else float("nan")
    return CurveValues(statistic(low), statistic(high), statistic(high - low), spread)


def variable_scores(rows: Array, norm: NormativeCurve) -> Array:
    """Return the gait variable score (strides,) of curves (strides, 101), in their unit."""
    return np.asarray(np.sqrt(np.mean((rows - norm.mean) ** 2, axis=-1)))


def gait_profile(gait: Gait) -> GaitProfile | None:
    """Return the movement analysis profile of a gait, relative to Schwartz et al. (2008) at its speed; None without."""
    curves = {curve.name: curve for curve in gait.curves}
    titles: dict[str, str] = {}
    scores: dict[str, dict[str, Array]] = {}
    normative: dict[str, float] = {}
    for name in VARIABLES:
        norm = gait.normative(curves[name]) if name in curves else None
        if norm is None:
            continue
        rows = {side: curve_by_stride(gait, curves[name], side) for side in SIDES}
        titles[name] = curves[name].title
        scores[name] = {side: variable_scores(own, norm) for side, own in rows.items() if len(own)}
        normative[name] = float(np.sqrt(np.mean(norm.sd**2)))
    if not any(scores.values()):
        return None
    total: dict[str, Statistic] = {}
    for side in SIDES:
        if all(side in scores.get(name, {}) for name in VARIABLES):
            total[side] = statistic(np.sqrt(np.mean([scores[name][side] ** 2 for name in VARIABLES], axis=0)))
    statistics = {name: {side: statistic(own) for side, own in both.items()} for name, both in scores.items()}
    if len(total) == len(SIDES):
        means = [statistics[name]["left"].mean for name in PELVIS]
        means += [statistics[name][side].mean for name in VARIABLES if name not in PELVIS for side in SIDES]
        count = sum(total[side].strides for side in SIDES)
        total["both"] = Statistic(float(np.sqrt(np.mean(np.square(means)))), float("nan"), count)
    return GaitProfile(titles, statistics, normative, total)


def gait_values(gait: Gait) -> dict[str, float]:
    """Return the values of a gait in `summary.json`: means over strides and, as `_sd`, standard deviations."""
    values: dict[str, float] = {}
    if not gait.strides:
        return values
    units = {"s": "s", "m": "m", "steps/min": "steps_per_min", "m/s": "m_per_s", "%": "percent"}

    def add(name: str, unit: str, by_side: Mapping[str, Statistic]) -> None:
        for side, one in by_side.items():
            key = name if side == "both" else f"{name}_{side}"
            values[f"{key}_{unit}"] = one.mean
            if side != "both" or name != "gait_profile_score":
                values[f"{key}_{unit}_sd"] = one.sd

    for name, by_side in parameters_by_side(gait.parameters).items():
        add(name, units[gait.parameters[name].attrs["units"]], by_side)
    for curve in gait.curves:
        if curve.name in PEAKS:
            peaks = {side: curve_values(gait, curve, side).maximum for side in curve.sides}
            add(f"{curve.name}_max", PEAKS[curve.name], peaks)
    profile = gait_profile(gait)
    if profile is not None:
        add("gait_profile_score", "deg", profile.total)
        for name, scores in profile.scores.items():
            add(f"gait_variable_score_{name}", "deg", scores)
    return values

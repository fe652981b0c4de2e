"""Unit of length of a file, decided from all evidence together.

Each piece of evidence is a length whose usual size is known: the stature that labeled markers show, or else the spread
of the markers, and the edges of force plates. Its logarithm is normally distributed, so every unit has a likelihood,
and the unit with the greatest product of likelihoods is used. Centimeters and inches are near enough (2.54) to be
plausible both. Then forces show which it is: by Newton's second law the vertical force on a body of weight W is
F = W (1 + a/g), so that a line through forces and accelerations of the pelvis, which are about those of the body, has
the slope W u/g and the value W at a = 0, where u is the length of the unit [m]: the mass need not be known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log
from typing import NamedTuple

import numpy as np

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import find_landmarks, visible
from borelli.recording.up_axis import stature_vectors

UNITS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "in": 0.0254, "ft": 0.3048}
"""Length [m] of each known unit."""
UNIT_COST = {"m": 0.0, "mm": 0.0, "cm": 0.0, "in": 3.0, "ft": 5.0, "dm": 5.0}
"""Negative log likelihood of each unit of length in motion files: inches are rare."""
STATED_WEIGHT = 2.0
"""Negative log likelihood of a unit other than the one that the file states: statements are sometimes wrong."""
MIN_MARGIN = 1.5
"""Least difference of negative log likelihoods from the next unit (odds of 4.5 to 1) with which a unit is certain."""
MAX_AMBIGUOUS_MARGIN = 6.0
"""Difference below which forces are evaluated as well."""
GRAVITY = 9.81
ACCELERATION_SPAN = 0.04
"""Half width [s] of the second difference that gives an acceleration, and of the mean of the force over it."""
MIN_LOAD = 0.5
"""Force as a fraction of its 90th percentile below which the plates do not carry the body."""
MIN_BODY_FORCE = 100.0
"""Least force [N] of a body."""
MIN_CORRELATION = 0.5
"""Least correlation of force and acceleration that shows that both are of one body."""
MIN_SAMPLES = 20
"""Least number of frames in which the plates carry the body."""


class Quantity(NamedTuple):
    """Quantity of known usual size; its logarithm is normally distributed, with other widths below and above."""

    name: str
    typical: float
    sd_below: float
    sd_above: float
    range: tuple[float, float]
    suffix: str = " m"

    def cost(self, value: float) -> float:
        """Return the negative log likelihood of a value; infinite outside the plausible range."""
        low, high = self.range
        if not low <= value <= high:
            return inf
        deviation = log(value / self.typical)
        return 0.5 * (deviation / (self.sd_above if deviation > 0.0 else self.sd_below)) ** 2


STATURE = Quantity("the stature estimated from labeled markers", 1.65, 0.25, 0.15, (0.5, 2.6))
"""[m]. Smaller are children and bent bodies, larger ones are errors of the estimate."""
SPREAD = Quantity("the median distance of markers from their median", 0.45, 0.8, 0.6, (0.04, 2.5))
"""[m]. Of a body 0.38 to 0.50; of a hand less, of two people more."""
SPREAD_ON_PLATES = SPREAD._replace(sd_below=0.3, sd_above=0.3)
"""[m]. Where there are force plates, a body is recorded."""
SPREAD_IF_STATED = SPREAD._replace(sd_below=inf, sd_above=inf)
"""[m]. A unit that the file states is contradicted by a spread out of range only: it may be of a hand."""
PLATE_EDGE = Quantity("the median edge of the force plates", 0.55, 0.35, 0.45, (0.15, 3.0))
"""Usual plates have edges of 0.4 to 0.9 m, steps of stairs of 0.3, treadmills of 1.8."""
ACCELERATION = Quantity("the acceleration of the pelvis over that of the forces", 1.15, 0.3, 0.3, (0.1, 10.0), "")
"""Ratio, 0.9 to 1.4 in five trials; in nine others the same but for a drop jump (2.7)."""


class UnitEvidence(NamedTuple):
    """Size of a quantity in the unit of the file."""

    quantity: Quantity
    size: float

    def cost(self, unit: str) -> float:
        """Return the negative log likelihood of a unit; infinite outside the plausible range."""
        return self.quantity.cost(self.size * unit_length(unit))

    def text(self, unit: str) -> str:
        """Return the size in a unit as a part of a sentence."""
        return f"{self.quantity.name} is {self.size * unit_length(unit):.3g}{self.quantity.suffix}"


def unit_length(unit: str) -> float:
    """Return the length [m] of a unit: a name of `UNITS` or a number of meters."""
    return UNITS[unit] if unit in UNITS else float(unit)


class UnitDecision(NamedTuple):
    """Unit with the greatest likelihood ("" if none is possible), the next one, and the difference of their costs."""

    unit: str
    other: str
    margin: float
    evidence: tuple[UnitEvidence, ...]

    @property
    def certain(self) -> bool:
        """Whether the next unit is much less likely."""
        return bool(self.unit) and self.margin >= MIN_MARGIN

    def reason(self, unit: str) -> str:
        """Return the sizes of all quantities in a unit."""
        return " and ".join(one.text(unit) for one in self.evidence)

    def objection(self, unit: str) -> str:
        """Return the sizes that a unit makes implausible; "" if there are none."""
        return " and ".join(one.text(unit) for one in self.evidence if one.cost(unit) == inf)


class BodyMotion(NamedTuple):
    """Points (frames, points, 3) in the unit of the file, NaN where missing, and force (frames, 3) [N] in its axes."""

    position: Array
    force: Array
    rate: float


def decide_unit(
    points: Array,
    labels: Sequence[str],
    *,
    stated: str = "",
    corners: Array | None = None,
    motion: Callable[[], BodyMotion | None] | None = None,
    up: Array | None = None,
) -> UnitDecision:
    """Return the unit of length with the greatest likelihood.

    Args:
        points: (frames, points, 3) in the unit of the file, NaN where missing.
        labels: Names of the points.
        stated: Unit that the file states, "" if none.
        corners: (plates, 4, 3) in the unit of the points.
        motion: Motion and force of the body; called where lengths alone leave two units possible.
        up: Unit vector (3,) that points up in the file, for the motion.
    """
    edges = _plate_edges(corners)
    spread = SPREAD_ON_PLATES if edges is not None else SPREAD_IF_STATED if stated else SPREAD
    evidence = [one for one in (_body_size(points, labels, spread), edges) if one is not None]
    decision = _decide(evidence, stated)
    if motion is None or up is None or decision.margin >= MAX_AMBIGUOUS_MARGIN:
        return decision
    moving = motion()
    acceleration = None if moving is None else _acceleration(moving.position @ up, moving.force @ up, moving.rate)
    return decision if acceleration is None else _decide([*evidence, acceleration], stated)


def pelvis_or_all(labels: Sequence[str]) -> list[int]:
    """Return the markers that move with the body: those of the pelvis, or else all that have names, or else all."""
    return (
        find_landmarks(labels, ("pelvis", "hip"))
        or [i for i, label in enumerate(labels) if not label.startswith("*")]
        or list(range(len(labels)))
    )


def _body_size(points: Array, labels: Sequence[str], spread: Quantity) -> UnitEvidence | None:
    """Return the stature of the body in the unit of the points, or else the spread of its markers."""
    if not points.size:
        return None
    slopes = stature_vectors(points, labels)
    if len(slopes):
        return UnitEvidence(STATURE, float(np.median(np.linalg.norm(slopes, axis=1))))
    named = [i for i, label in enumerate(labels) if not label.startswith("*")]
    chosen = points[:, named] if named else points
    is_visible = visible(chosen)
    full = is_visible.sum(axis=1) >= 3
    if not full.any():
        return None
    part = np.where(is_visible[full][..., None], chosen[full], np.nan)
    medians = np.nanmedian(part, axis=1, keepdims=True)
    size = float(np.nanmedian(np.linalg.norm(part - medians, axis=2)))
    return UnitEvidence(spread, size) if size > 0.0 else None


def _decide(evidence: Sequence[UnitEvidence], stated: str) -> UnitDecision:
    prior = UNIT_COST
    if stated:
        prior = {unit: STATED_WEIGHT + cost for unit, cost in UNIT_COST.items()} | {stated: 0.0}
    costs = {unit: cost + sum(one.cost(unit) for one in evidence) for unit, cost in prior.items()}
    ranked = sorted(costs, key=lambda unit: costs[unit])
    possible = [unit for unit in ranked if costs[unit] < inf]
    if not evidence or not possible:
        return UnitDecision("", "", 0.0, tuple(evidence))
    other = possible[1] if len(possible) > 1 else ""
    margin = costs[other] - costs[possible[0]] if other else inf
    return UnitDecision(possible[0], other, margin, tuple(evidence))


def _plate_edges(corners: Array | None) -> UnitEvidence | None:
    if corners is None or not len(corners):
        return None
    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    edges = edges[np.isfinite(edges) & (edges > 0.0)]
    return UnitEvidence(PLATE_EDGE, float(np.median(edges))) if len(edges) else None


def _acceleration(height: Array, force: Array, rate: float) -> UnitEvidence | None:
    """Return the ratio of the accelerations that points and forces show; None unless they vary together.

    A second difference over 2 h is the mean of the acceleration with triangular weights, so the force is averaged with
    the same weights. The ratio of standard deviations does not shrink with noise of either, as a slope does.

    Args:
        height: Heights of points (frames, points) in the unit of the file, NaN where missing.
        force: Vertical force (frames) [N], of either sign.
        rate: Frame rate [Hz].
    """
    half = max(1, round(ACCELERATION_SPAN * rate))
    frames = min(len(height), len(force))
    if frames < 2 * half + MIN_SAMPLES:
        return None
    z = height[:frames]
    difference = z[2 * half :] - 2.0 * z[half:-half] + z[: -2 * half]
    count = np.isfinite(difference).sum(axis=1)
    acceleration = np.nansum(difference, axis=1) / np.maximum(count, 1) * (rate / half) ** 2
    weights = 1.0 - np.abs(np.arange(1 - half, half)) / half
    load = np.abs(np.convolve(force[:frames], weights / weights.sum(), "same")[half:-half])
    usable = (count > 0) & np.isfinite(load)
    if usable.sum() < MIN_SAMPLES:
        return None
    usable &= load > max(MIN_BODY_FORCE, MIN_LOAD * float(np.percentile(load[usable], 90)))
    a, f = acceleration[usable], load[usable]
    if len(a) < MIN_SAMPLES or not min(a.std(), f.std()) > 0.0 or not np.corrcoef(a, f)[0, 1] >= MIN_CORRELATION:
        return None
    # F = W + (W/g) u a: the line through the means with the ratio of the deviations as its slope has F = W at a = 0
    slope = f.std() / a.std()
    weight = f.mean() - slope * a.mean()
    return UnitEvidence(ACCELERATION, float(weight / (GRAVITY * slope))) if weight > 0.0 else None

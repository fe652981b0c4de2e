"""Actuation of joints by muscles: which coordinates muscles can move, in which direction, and how strongly.

Muscles only pull. With arms R (muscles, coordinates) and isometric forces F along the tendon, the strongest moments of
a coordinate are sum F max(R, 0) and sum F min(R, 0), each with all its muscles at once. A coordinate with only one of
them needs a spring, gravity or a reserve in the other direction. The rank of R is the number of independent motions
that muscles drive; where it is less than the number of coordinates, some moments cannot be commanded separately.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.files.html_repr import fields_summary, summary_html, summary_repr
from borelli.model.model import GROUND, Model
from borelli.muscles.paths import muscle_paths

Floats = NDArray[np.float64]
MIN_MOMENT_ARM = 1e-3
"""Moment arm [m] below which a muscle is not counted for a coordinate: a tenth of the smallest arms at fingers."""


@dataclass(frozen=True, slots=True)
class ActuationReport:
    """Strongest moments of muscles about the free coordinates of a model in one pose, without its root."""

    coordinate: tuple[str, ...]
    positive: Floats
    """(coordinates) [N m or N]"""
    negative: Floats
    """(coordinates) [N m or N], at most zero."""
    rank: int
    """Rank of the moment arms of all muscles."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    @property
    def without_muscles(self) -> tuple[str, ...]:
        """Coordinates that no muscle moves."""
        return self._named((self.positive == 0.0) & (self.negative == 0.0))

    @property
    def one_sided(self) -> tuple[str, ...]:
        """Coordinates that muscles move in one direction only."""
        return self._named((self.positive == 0.0) != (self.negative == 0.0))

    def _named(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, one in zip(self.coordinate, chosen, strict=True) if one)


def actuation_report(model: Model, coordinates_row: ArrayLike | None = None) -> ActuationReport:
    """Return the strongest moments of muscles about each coordinate in one pose, and the rank of their arms.

    Args:
        model: Model with muscles.
        coordinates_row: Coordinates [rad or m]. Default: those of the model's default pose.

    Raises:
        SettingsError: if the row does not fit the model.
    """
    row = [c.default for c in model.coordinates] if coordinates_row is None else coordinates_row
    paths = muscle_paths(model, row)
    free = {
        c.name for joint in model.joints if joint.parent != GROUND and not joint.closes_loop
        for c in joint.coordinates if not c.locked
    } - {coupling.coordinate for coupling in model.couplings}  # fmt: skip
    columns = [i for i, name in enumerate(paths.coordinate) if name in free]
    arm = paths.moment_arm[0][:, columns]
    arm = np.where(np.abs(arm) < MIN_MOMENT_ARM, 0.0, arm)
    force = np.array([m.max_isometric_force * np.cos(m.pennation_angle) for m in model.muscles])
    positive, negative = force @ np.maximum(arm, 0.0), force @ np.minimum(arm, 0.0)
    rank = int(np.linalg.matrix_rank(arm)) if arm.size else 0
    return ActuationReport(tuple(paths.coordinate[i] for i in columns), positive, negative, rank)

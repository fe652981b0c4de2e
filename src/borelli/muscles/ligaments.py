"""Forces of ligaments from their path lengths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError
from borelli.model.functions import Function
from borelli.model.model import Model
from borelli.muscles.hill_kernels.arrays import Floats

__all__ = ["ligament_force"]


def ligament_force(model: Model, length: ArrayLike) -> Floats:
    """Return the tension of a model's ligaments, (frames, ligaments) [N]; zero at or below the resting length.

    Args:
        model: with ligaments.
        length: path lengths (frames, ligaments) [m], in the order of `model.ligaments`.
    """
    path = np.asarray(length, float)
    if path.ndim != 2 or path.shape[1] != len(model.ligaments):
        raise SettingsError(f"length: The shape is {path.shape}. Give (frames, {len(model.ligaments)}).")
    columns = []
    for ligament, column in zip(model.ligaments, path.T, strict=True):
        ratio = column / ligament.resting_length
        tension = ligament.force_scale * _evaluate(ligament.force_length, ratio)
        columns.append(np.where(ratio > 1.0, tension, np.where(np.isnan(ratio), np.nan, 0.0)))
    return np.column_stack(columns) if columns else np.zeros(path.shape)


def _evaluate(function: Function, x: Floats) -> Floats:
    """Return the values of a function at many points."""
    breaks = np.array(function.breaks)
    powers = max(map(len, function.coefficients))
    table = np.array([[*piece, *[0.0] * (powers - len(piece))] for piece in function.coefficients])
    inside = np.clip(x, breaks[0], breaks[-1])
    piece = np.clip(np.searchsorted(breaks, inside, "right") - 1, 0, len(table) - 1)
    s = inside - breaks[piece]
    value, slope = np.zeros_like(x), np.zeros_like(x)
    for k in range(powers - 1, -1, -1):
        slope = slope * s + value
        value = value * s + table[piece, k]
    return value + slope * (x - inside)

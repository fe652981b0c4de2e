"""Hip joint centers from the iliac spines, by published regressions.

The axes are those of the spines: x forward from the midpoint of the posterior spines to that of the anterior ones, y to
the left along the anterior spines, z up. A regression gives the hip from the midpoint of the anterior spines, from the
distance between these (pelvis width) and from the distance between the two midpoints (pelvis depth).

    Harrington et al. 2007     x = -0.24 depth - 9.9 mm,  y = 0.33 width + 7.3 mm,  z = -0.30 width - 10.9 mm
    Bell et al. 1990           x = -0.22 width,           y = 0.36 width,           z = -0.30 width

Markers lie on the skin: the spines themselves are deeper by the tissue (Mantovani et al. 2016: 10 mm in front, 20 mm
behind) and the radius of a marker (7 mm).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from borelli.numerics.vectors import Array

FRONT_DEPTH, BACK_DEPTH = 0.017, 0.027
"""[m] Distance of markers from the anterior and the posterior spines."""
HIP_SD = 0.008
"""[m] Standard deviation of Harrington's regression along each axis: 13.2 +- 6.5 mm in all (Fiorentino et al. 2016)."""


def _harrington(width: float, depth: float) -> tuple[float, float, float]:
    return -0.24 * depth - 0.0099, 0.33 * width + 0.0073, -0.30 * width - 0.0109


def _bell(width: float, depth: float) -> tuple[float, float, float]:
    return -0.22 * width, 0.36 * width, -0.30 * width


_FORMULAS: Mapping[str, Callable[[float, float], tuple[float, float, float]]] = {
    "harrington": _harrington,
    "bell": _bell,
}
HIP_REGRESSIONS = tuple(_FORMULAS)
"""Names of the regressions."""


def spine_axes(right: Array, left: Array, back: Array) -> tuple[Array, Array]:
    """Return the midpoint of the anterior spines, and the axes (rows forward, left, up) of the spines.

    All functions here take complex numbers too, so that derivatives can be computed by complex steps.
    """
    middle = 0.5 * (right + left)
    across = left - right
    across = across / _norm(across)
    forward = middle - back
    forward = forward - (forward @ across) * across
    forward = forward / _norm(forward)
    return middle, np.array([forward, across, np.cross(forward, across)])


def regress_hip(right: Array, left: Array, back: Array, side: float, regression: str = "harrington") -> Array:
    """Return the hip center (3,) [m] in the axes of the points.

    Args:
        right: Marker on the right anterior superior iliac spine (3,) [m].
        left: Marker on the left one.
        back: Midpoint of the markers on the posterior spines, or a marker on the sacrum.
        side: 1.0 for the left hip, -1.0 for the right one.
        regression: One of `HIP_REGRESSIONS`.
    """
    middle, axes = spine_axes(right, left, back)
    width, depth = _norm(left - right), _norm(middle - back) - FRONT_DEPTH - BACK_DEPTH
    x, y, z = _FORMULAS[regression](width, depth)
    return np.asarray(middle + np.array([x - FRONT_DEPTH, side * y, z]) @ axes)


def _norm(vector: Array) -> float:
    return (vector @ vector) ** 0.5  # type: ignore[return-value]

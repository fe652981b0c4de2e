"""Lengths of muscles as CasADi expressions: exact polylines, and polynomials where a path is not smooth.

A path through fixed and moving points is a sum of distances, each in the frame of the innermost of its two bodies.
Paths that wrap over surfaces, or have points that come and go, have lengths in pieces; polynomials replace them
(`borelli.muscles.fitted_paths`), provided that they keep a length error and a moment arm error on held-out poses.
Moment arms are the derivatives of the lengths in both cases, so virtual work holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, isfinite, pi

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import Model, Muscle, PathPoint
from borelli.muscles.fitted_paths import FittedPath, FittedPaths, fit_paths
from borelli.muscles.paths import muscle_paths
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.coordinates import CoordinateMotion
from borelli.optimal.symbolic_dynamics.piecewise import evaluate_piecewise
from borelli.optimal.symbolic_dynamics.poses import Poses
from borelli.optimal.symbolic_dynamics.vectors import Expression, Vector, add, dot, numbers, scale, subtract

DEGREES = (5, 6, 7, 8)
"""Degrees of polynomials, tried until one passes the gate; 5 halves the errors of 4 on leg muscles."""
MAX_TERMS = 500
"""Terms of a polynomial: degree 8 in four coordinates, 6 in five, 3 in eleven."""
SAMPLES = 2000
"""Poses of a fit, a quarter of them held out."""
UNSTATED_RANGE = (-pi / 2.0, pi / 2.0)
"""[rad] of an angle for which the model states no range."""

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class PathGate:
    """Largest errors, on held-out poses, with which a polynomial may replace a muscle's path."""

    length_error: float = 1e-3
    """[m], root mean square."""
    arm_error: float = 3e-3
    """[m], root mean square; 3 mm is the criterion of Falisse et al. (2019)."""


def coordinate_ranges(model: Model, ranges: Ranges | None = None) -> dict[str, tuple[float, float]]:
    """Return the range [rad or m] of each coordinate: the caller's, its limits, its usual range, or infinite.

    Raises:
        SettingsError: if a range has the name of no coordinate or is not in order.
    """
    result = {}
    names = [c.name for c in model.coordinates]
    for name, (low, high) in (ranges or {}).items():
        if name not in names:
            raise SettingsError(f"ranges: {unknown_name('coordinate', name, names)}.")
        if not low < high:
            raise SettingsError(f"ranges: That of {name!r} is ({low:g}, {high:g}). Give lower, then upper bound.")
    for c in model.coordinates:
        low, high = c.lower, c.upper
        if c.usual_range is not None and not (isfinite(low) and isfinite(high)):
            low, high = max(low, c.usual_range[0]), min(high, c.usual_range[1])
        result[c.name] = (ranges or {}).get(c.name, (low, high))
    return result


def is_polyline(muscle: Muscle) -> bool:
    """Return whether a muscle's length is a sum of distances at all poses."""
    return not muscle.wraps and not muscle.pulleys and all(point.only_within is None for point in muscle.path)


def fit_lengths(
    model: Model, muscles: Sequence[str], ranges: Ranges | None = None, gate: PathGate | None = None
) -> FittedPaths:
    """Fit polynomials to muscles' lengths over ranges of coordinates, each of the lowest degree that passes the gate.

    Args:
        model: Model that `validate` accepts.
        muscles: Names of muscles.
        ranges: Ranges [rad or m] of coordinates by name. Default: those of the model.
        gate: Largest errors. Default: 1 mm of length, 3 mm of moment arms.

    Raises:
        ModelError: if a muscle passes the gate with no degree; names it and its errors.
    """
    gate = gate or PathGate()
    poses = _sample_poses(model, coordinate_ranges(model, ranges))
    arms = muscle_paths(model, poses, muscles=muscles).moment_arm
    found, rejected = [], []
    for m, name in enumerate(muscles):
        for degree in _degrees(int(np.any(arms[:, m], axis=0).sum())):
            (path,) = fit_paths(model, poses, degree=degree, muscles=[name]).path
            if path.rms_length_error <= gate.length_error and path.rms_arm_error <= gate.arm_error:
                found.append(path)
                break
        else:
            rejected.append(path)
    _raise_if_rejected(rejected, gate)
    return FittedPaths(tuple(c.name for c in model.coordinates), tuple(found))


def _degrees(coordinates: int) -> list[int]:
    """Return the degrees to try for a muscle of this many coordinates; one at least, below the first if need be."""
    allowed = [d for d in range(1, DEGREES[-1] + 1) if comb(coordinates + d, d) <= MAX_TERMS] or [1]
    return [d for d in allowed if d >= DEGREES[0]] or allowed[-1:]


def _raise_if_rejected(rejected: list[FittedPath], gate: PathGate) -> None:
    if not rejected:
        return
    listed = "; ".join(
        f"{path.muscle!r} {1e3 * path.rms_length_error:.2g} and {1e3 * path.rms_arm_error:.2g} mm"
        for path in rejected[:5]
    )
    raise ModelError(
        f"{len(rejected)} muscles have no polynomial (degree {DEGREES[-1]}, {MAX_TERMS} terms) with RMS errors below "
        f"{1e3 * gate.length_error:g} mm of length and {1e3 * gate.arm_error:g} mm of moment arm: {listed}. Give "
        "narrower `ranges` of their coordinates, a wider `gate`, or remove them from the model."
    )


def _sample_poses(model: Model, ranges: Ranges) -> NDArray[np.float64]:
    """Return poses (samples, coordinates) uniform in the ranges, the same at every call; without range, the default."""
    from scipy.stats import qmc

    columns, bounds = [], []
    for i, c in enumerate(model.coordinates):
        low, high = ranges[c.name]
        if c.rotational:
            low, high = (
                bound if isfinite(bound) else usual for bound, usual in zip((low, high), UNSTATED_RANGE, strict=True)
            )
        if isfinite(low) and isfinite(high) and not c.locked:
            columns.append(i)
            bounds.append((low, high))
    poses = np.tile([c.default for c in model.coordinates], (SAMPLES, 1))
    if columns:
        unit = qmc.Halton(len(columns), rng=0).random(SAMPLES)
        low, high = np.array(bounds).T
        poses[:, columns] = low + unit * (high - low)
    return poses


def polyline_length(poses: Poses, motion: CoordinateMotion, muscle: Muscle) -> Expression:
    """Return the length [m] of a path through points."""
    total: Expression = 0.0
    for first, second in pairwise(muscle.path):
        bodies = [poses.index(point.body) for point in (first, second)]
        reference = poses.common(bodies)
        ends = [
            poses.point(body, _position(poses.model, point, motion), reference)
            for body, point in zip(bodies, (first, second), strict=True)
        ]
        apart = subtract(ends[1], ends[0])
        total = total + _root(dot(apart, apart))
    return total


def _root(x: Expression) -> Expression:
    return x**0.5 if isinstance(x, float) else ca.sqrt(x)


def _position(model: Model, point: PathPoint, motion: CoordinateMotion) -> Vector:
    """Return the position [m] of a path point in its body's frame."""
    if not point.motion:
        return [float(x) for x in point.position]
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    total: Vector = [0.0, 0.0, 0.0]
    for part in point.motion:
        x = 0.0 if part.coordinate is None else motion.value[column[part.coordinate]]
        size = float(np.linalg.norm(part.axis))
        total = add(total, scale(evaluate_piecewise(part.function, x)[0], numbers(np.array(part.axis) / size)))
    return total


def polynomial_length(path: FittedPath, model: Model, motion: CoordinateMotion) -> Expression:
    """Return the length [m] of a fitted path: products of Chebyshev polynomials, collected coordinate by coordinate."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    degree = int(path.power.max(initial=0))
    basis = []
    for name, center, half in zip(path.coordinate, path.center, path.half_range, strict=True):
        x = (motion.value[column[name]] - float(center)) / float(half)
        terms: list[Expression] = [1.0, x]
        for _ in range(degree - 1):
            terms.append(2.0 * x * terms[-1] - terms[-2])
        basis.append(terms)
    rows = [(tuple(int(p) for p in power), float(c)) for power, c in zip(path.power, path.coefficient, strict=True)]
    return _collect(rows, basis, 0)


def _collect(rows: list[tuple[tuple[int, ...], float]], basis: list[list[Expression]], level: int) -> Expression:
    """Return the sum of coefficients times products of the basis from one coordinate on."""
    if level == len(basis):
        return sum(c for _, c in rows)
    total: Expression = 0.0
    for n in sorted({power[level] for power, _ in rows}):
        total = total + basis[level][n] * _collect([row for row in rows if row[0][level] == n], basis, level + 1)
    return total

"""Fitted paths: muscle lengths as polynomials of the coordinates that change them.

Each length is a sum of products of Chebyshev polynomials of the muscle's coordinates, up to a total degree. The fit is
a least-squares problem on lengths and moment arms together, so that the slope of the polynomial is the arm: virtual
work holds by construction. Polynomials of muscle paths: Menegaldo, de Toledo Fleury and Weber (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.muscles.paths import MusclePaths, muscle_paths
from borelli.tree.kinematic_tree import make_tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_DEGREE = 12
MAX_TERMS = 3000
"""Terms of a polynomial: more cannot be fitted in reasonable time."""


@dataclass(frozen=True, slots=True)
class FittedPath:
    """Polynomial length of one muscle, with its errors on samples that were held out."""

    muscle: str
    coordinate: tuple[str, ...]
    """Coordinates on which the length depends."""
    center: Floats
    half_range: Floats
    """Coordinates are scaled to -1 ... 1 by (q - center) / half_range."""
    power: Integers
    """(terms, coordinates) degrees of the Chebyshev polynomials."""
    coefficient: Floats
    """(terms,) [m]"""
    max_length_error: float
    """[m]"""
    rms_length_error: float
    max_arm_error: float
    """[m]; of coordinates that are angles."""
    rms_arm_error: float


@dataclass(frozen=True, slots=True)
class FittedPaths:
    """Polynomial lengths of a model's muscles."""

    coordinate: tuple[str, ...]
    path: tuple[FittedPath, ...]

    def evaluate(self, coordinates: ArrayLike, velocities: ArrayLike | None = None) -> MusclePaths:
        """Return lengths, moment arms and speeds at rows of all coordinates, as `muscle_paths` does."""
        rows = np.atleast_2d(np.asarray(coordinates, dtype=float))
        length = np.zeros((len(rows), len(self.path)))
        arm = np.zeros((*length.shape, len(self.coordinate)))
        for m, path in enumerate(self.path):
            columns = [self.coordinate.index(name) for name in path.coordinate]
            basis, slopes = _basis((rows[:, columns] - path.center) / path.half_range, path.power)
            length[:, m] = basis @ path.coefficient
            for k, column in enumerate(columns):
                arm[:, m, column] = -(slopes[k] @ path.coefficient) / path.half_range[k]
        speed = None
        if velocities is not None:
            speed = -np.einsum("fmc,fc->fm", arm, np.atleast_2d(np.asarray(velocities, dtype=float)))
        names = tuple(path.muscle for path in self.path)
        return MusclePaths(names, self.coordinate, length, arm, speed, (), np.zeros((len(rows), 0), np.int64))


def fit_paths(
    model: Model, coordinates: ArrayLike, *, degree: int = 5, muscles: Sequence[str] | None = None
) -> FittedPaths:
    """Fit polynomials to the lengths and moment arms of muscles over given poses.

    Args:
        model: Model that `validate` accepts.
        coordinates: Poses (frames, coordinates) [rad or m] that cover the range of use; every fourth one is held out
            of the fit to measure its errors.
        degree: Largest total degree of a term.
        muscles: Names of muscles. Default: all.

    Raises:
        SettingsError: if there are too few poses for the terms of a muscle, or the degree is out of range.
    """
    if not 1 <= degree <= MAX_DEGREE:
        raise SettingsError(f"degree is {degree}. It must be from 1 to {MAX_DEGREE}.")
    paths = muscle_paths(model, coordinates, muscles=muscles)
    rows = np.atleast_2d(np.asarray(coordinates, dtype=float))
    angle = np.array([c.rotational for c in model.coordinates])
    free = make_tree(model).free
    fitted = []
    for m, name in enumerate(paths.muscle):
        columns = [int(c) for c in free if np.any(paths.moment_arm[:, m, c])]
        arms = paths.moment_arm[:, m][:, columns]
        fitted.append(_fit(name, paths.coordinate, columns, angle[columns], rows, paths.length[:, m], arms, degree))
    return FittedPaths(paths.coordinate, tuple(fitted))


def _fit(
    name: str, names: tuple[str, ...], columns: list[int], angle: NDArray[np.bool_], rows: Floats, length: Floats,
    arms: Floats, degree: int,
) -> FittedPath:  # fmt: skip
    values = rows[:, columns]
    low, high = values.min(axis=0), values.max(axis=0)
    center, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-6)
    power = _powers(len(columns), degree)
    held = np.arange(len(rows)) % 4 == 3
    equations = (~held).sum() * (1 + len(columns))
    if len(power) > MAX_TERMS or equations < 2 * len(power):
        raise SettingsError(
            f"Muscle {name!r}: {len(power)} terms of degree {degree} in {len(columns)} coordinates need more than "
            f"{len(rows)} poses (at most {MAX_TERMS} terms). Lower degree, or pass more poses."
        )
    basis, slopes = _basis((values - center) / half, power)
    blocks = [basis, *(-slope / h for slope, h in zip(slopes, half, strict=True))]
    targets = [length, *arms.T]
    matrix = np.concatenate([block[~held] for block in blocks])
    coefficient = np.linalg.lstsq(matrix, np.concatenate([t[~held] for t in targets]), rcond=None)[0]
    errors = [block[held] @ coefficient - t[held] for block, t in zip(blocks, targets, strict=True)]
    arm_errors = np.array(errors[1:])[angle].ravel() if angle.any() else np.zeros(1)
    return FittedPath(
        name, tuple(names[c] for c in columns), center, half, power, coefficient,
        float(np.abs(errors[0]).max(initial=0.0)), _rms(errors[0]), float(np.abs(arm_errors).max(initial=0.0)),
        _rms(arm_errors),
    )  # fmt: skip


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def _powers(count: int, degree: int) -> Integers:
    """Return all degrees (terms, coordinates) with a sum up to `degree`."""
    if count == 0:
        return np.zeros((1, 0), np.int64)
    rows = [np.zeros(count, np.int64)]
    if (degree + 1) ** count <= 10 * MAX_TERMS:
        return np.array([p for p in product(range(degree + 1), repeat=count) if sum(p) <= degree], np.int64)
    # many coordinates: extend terms one degree at a time
    seen = {tuple(rows[0])}
    frontier = [tuple(rows[0])]
    for _ in range(degree):
        grown = {(*term[:k], term[k] + 1, *term[k + 1 :]) for term in frontier for k in range(count)} - seen
        seen |= grown
        frontier = list(grown)
        if len(seen) > MAX_TERMS:
            break
    return np.array(sorted(seen), np.int64)


def _basis(x: Floats, power: Integers) -> tuple[Floats, list[Floats]]:
    """Return the terms (samples, terms) and their derivatives by each scaled coordinate."""
    degree = int(power.max(initial=0))
    values = [chebyshev.chebvander(column, degree) for column in x.T]
    derivative = np.zeros((degree + 1, degree + 1))
    for k in range(1, degree + 1):
        own = chebyshev.chebder(np.eye(degree + 1)[k])
        derivative[: len(own), k] = own
    terms = [value[:, power[:, k]] for k, value in enumerate(values)]
    basis = np.prod(terms, axis=0) if terms else np.ones((len(x), 1))
    slopes = []
    for k, value in enumerate(values):
        own = (value @ derivative)[:, power[:, k]]
        slopes.append(own * np.prod([t for i, t in enumerate(terms) if i != k], axis=0))
    return basis, slopes

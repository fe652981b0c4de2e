"""Jumps of muscle lengths: where along a coordinate a path changes its state, by how much, and why.

A path that wraps by rules is not a continuous function of the pose: a point that enters its wrap object, a conditional
point away from the line, or a surface that is passed on the other side changes the length at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import SettingsError
from borelli.model.model import Coordinate, Model, Muscle
from borelli.muscles.paths import MusclePaths, muscle_paths
from borelli.tree.kinematic_tree import make_tree

Floats = NDArray[np.float64]

BISECTIONS = 30
"""Halvings of the interval of a jump: a step of 0.25 deg becomes 4e-12 rad."""
DEFAULT_RANGE = {True: pi, False: 1.0}
"""Largest distance from zero [rad or m] of a coordinate, by whether it is an angle, that has no limits of its own."""


@dataclass(frozen=True, slots=True)
class PathJump:
    """Jump of a muscle's length along one coordinate."""

    muscle: str
    coordinate: str
    at: float
    """Value of the coordinate [rad or m]."""
    size: float
    """Change of length [m] in the direction of increasing coordinate."""
    cause: str

    def __str__(self) -> str:
        where = f"{self.coordinate} = {self.at:.5g}"
        return f"{self.muscle}: The length jumps by {1000.0 * self.size:+.2f} mm at {where}: {self.cause}."


def find_path_jumps(
    model: Model,
    *,
    step: float = pi / 720.0,
    min_size: float = 0.001,
    pose: ArrayLike | None = None,
    muscles: Sequence[str] | None = None,
    geometry: str = "exact",
) -> tuple[PathJump, ...]:
    """Return the jumps of muscle lengths, one coordinate at a time over its range of motion.

    Args:
        model: Model that `validate` accepts.
        step: Distance between tested values of a coordinate [rad or m].
        min_size: Smallest jump that is reported [m].
        pose: Values of the other coordinates [rad or m]. Default: those of the model.
        muscles: Names of muscles. Default: all.
        geometry: As in `muscle_paths`.
    """
    if not step > 0.0 or not min_size > 0.0:
        raise SettingsError(f"step is {step} and min_size {min_size}. Both must be positive.")
    rest = np.array([c.default for c in model.coordinates] if pose is None else pose, dtype=float)
    jumps = []
    for column in make_tree(model).free:
        coordinate = model.coordinates[column]
        lower, upper = _range(coordinate)
        values = np.linspace(lower, upper, max(2, int(np.ceil((upper - lower) / step)) + 1))
        rows = np.repeat(rest[None], len(values), axis=0)
        rows[:, column] = values
        paths = muscle_paths(model, rows, geometry=geometry, muscles=muscles)
        spacing = values[1] - values[0] if upper > lower else 0.0
        arm = paths.moment_arm[:, :, column]
        # a smooth length follows its slope at both ends of an interval
        change = np.diff(paths.length, axis=0) + 0.5 * spacing * (arm[:-1] + arm[1:])
        for interval, m in np.argwhere(np.abs(change) > 0.5 * min_size):
            bounds = values[interval], values[interval + 1]
            found = _bisect(model, rest, int(column), paths.muscle[m], bounds, geometry)
            if found is not None and abs(found.size) >= min_size:
                jumps.append(found)
    return tuple(sorted(jumps, key=lambda jump: -abs(jump.size)))


def _range(coordinate: Coordinate) -> tuple[float, float]:
    lower, upper = coordinate.usual_range or (coordinate.lower, coordinate.upper)
    most = DEFAULT_RANGE[coordinate.rotational]
    return (lower if lower > -inf else -most), (upper if upper < inf else most)


def _bisect(
    model: Model, rest: Floats, column: int, name: str, bounds: tuple[float, float], geometry: str
) -> PathJump | None:
    """Return the largest jump of one muscle within an interval."""

    def at(*values: float) -> MusclePaths:
        rows = np.repeat(rest[None], len(values), axis=0)
        rows[:, column] = values
        return muscle_paths(model, rows, geometry=geometry, muscles=[name])

    low, high = bounds
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        paths = at(low, middle, high)
        arm, half = paths.moment_arm[:, 0, column], middle - low
        change = np.abs(np.diff(paths.length[:, 0]) + 0.5 * half * (arm[:-1] + arm[1:]))
        low, high = (low, middle) if change[0] >= change[1] else (middle, high)
    paths = at(low, high)
    size = float(paths.length[1, 0] - paths.length[0, 0])
    cause = _cause(model.muscle(name), paths, model.coordinates[column].name, low, high)
    return PathJump(name, model.coordinates[column].name, float(0.5 * (low + high)), size, cause)


def _cause(muscle: Muscle, paths: MusclePaths, coordinate: str, low: float, high: float) -> str:
    """Return what differs between the two paths."""
    words = {-1: "has an end of the segment inside it", 0: "is not touched"}
    causes = []
    for i, (_, surface) in enumerate(paths.wrap):
        before, after = (int(s) for s in paths.wrap_state[:, i])
        if (before > 0) != (after > 0):
            first, second = (words.get(state, "is wrapped") for state in (before, after))
            causes.append(f"{surface!r} {first} before and {second} after")
    for point in muscle.path:
        span = point.only_within
        if span is not None and span.coordinate == coordinate:
            inside = [span.lower <= value <= span.upper for value in (low, high)]
            if inside[0] != inside[1]:
                causes.append(f"conditional point {point.name!r} becomes {'inactive' if inside[0] else 'active'}")
    return "; ".join(causes) or "a surface is passed on another side or between other points"

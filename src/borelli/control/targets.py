"""Targets in time: where coordinates are asked to be, from keyframes, B-splines, functions or a motion.

Whatever they are made of, they are checked when they are made, as far as that can be, and again whenever they are asked
for: a curve may pass a stop between two keys that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.analysis.motion import Motion
from borelli.control.response import check_step
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]

INTERPOLATIONS = {
    "hold": "each value until the next key",
    "linear": "straight lines",
    "monotone": "cubics that never pass beyond the values of their keys",
    "cubic": "the cubic spline through the keys, which starts and ends at rest",
    "minimum jerk": "at rest at every key, with the least jerk between them",
}
AT_STOP = 1e-9
"""How far a target may lie beyond a stop by rounding [rad or m]."""


@dataclass(frozen=True)
class Targets:
    """Where coordinates of a model are asked to be; before the first and after the last time, the same as there."""

    model: Model
    coordinates: tuple[str, ...]
    curve: Curve
    """Values (times, coordinates) [rad or m] at times (times,) [s] between start and end."""
    start: float = -inf
    end: float = inf
    """[s]"""

    def __post_init__(self) -> None:
        _check_names(self.model, self.coordinates)

    def at(self, time: ArrayLike) -> Array:
        """Values (times, coordinates) [rad or m] at times (times,) [s]; (coordinates,) at one time.

        Raises:
            SettingsError: a time or a value that is not finite, or one beyond a stop.
        """
        times = np.atleast_1d(np.asarray(time, float))
        if not np.isfinite(times).all():
            raise SettingsError(f"targets: asked for at {times[~np.isfinite(times)][0]} s; times must be finite")
        values = np.asarray(self.curve(np.clip(times, self.start, self.end)), float)
        check_values(self.model, self.coordinates, times, values)
        return values if np.ndim(time) else values[0]

    def around(self, time: float, step: float) -> tuple[Array, Array, Array]:
        """Values a step ago, now, and a step ahead: what `next_velocity` takes."""
        check_step(step)
        before, now, ahead = self.at(np.array([time - step, time, time + step]))
        return before, now, ahead


def keyframes(
    model: Model, times: ArrayLike, values: Mapping[str, ArrayLike], interpolation: str = "monotone"
) -> Targets:
    """Targets through values at some times.

    Args:
        model: Whose coordinates they are.
        times: (keys,) [s], rising.
        values: By coordinate, (keys,) [rad or m].
        interpolation: One of `INTERPOLATIONS`.
    """
    if interpolation not in INTERPOLATIONS:
        raise SettingsError(f"keyframes: {unknown_name('interpolation', interpolation, INTERPOLATIONS)}")
    t = rising("keyframes", times)
    table = _table("keyframes", values, len(t))
    names = tuple(values)
    _check_names(model, names)
    check_values(model, names, t, table)
    return Targets(model, names, _through(t, table, interpolation), t[0], t[-1])


def b_spline_targets(model: Model, times: ArrayLike, values: Mapping[str, ArrayLike], degree: int = 3) -> Targets:
    """Targets on a B-spline that starts at the first and ends at the last of its control values.

    The curve stays between the least and the greatest of any `degree + 1` neighbours, so what obeys the stops in its
    control values obeys them everywhere.

    Args:
        model: Whose coordinates they are.
        times: (pieces + 1,) where polynomials join [s], rising.
        values: By coordinate, (pieces + degree,) control values [rad or m].
        degree: Of the polynomials, 1 to 5.
    """
    from scipy.interpolate import BSpline

    if degree not in range(1, 6):
        raise SettingsError(f"B-spline: degree is {degree}; it must be from 1 to 5")
    t = rising("B-spline", times)
    if len(t) < 2:
        raise SettingsError("B-spline: one time given; at least two are needed, the start and the end")
    table = _table("B-spline", values, len(t) - 1 + degree)
    knots = np.concatenate([np.full(degree, t[0]), t, np.full(degree, t[-1])])
    # Greville's points: the time that each control value belongs to
    belongs = np.array([knots[i + 1 : i + 1 + degree].mean() for i in range(len(table))])
    names = tuple(values)
    _check_names(model, names)
    check_values(model, names, belongs, table)
    return Targets(model, names, BSpline(knots, table, degree), t[0], t[-1])


def targets_from_functions(model: Model, of_time: Mapping[str, Callable[[float], float]]) -> Targets:
    """Targets that are functions of time [s], by coordinate [rad or m]."""

    def curve(times: Array) -> Array:
        return np.array([[function(float(t)) for function in of_time.values()] for t in times]).reshape(len(times), -1)

    return Targets(model, tuple(of_time), curve)


def targets_from_motion(motion: Motion, coordinates: Sequence[str] | None = None) -> Targets:
    """Targets that follow a motion, on the cubic splines through its frames; whole turns between frames are undone.

    Args:
        motion: What is to be followed.
        coordinates: Those that are; all that are neither locked nor coupled, if not given.
    """
    model = motion.model
    coupled = {coupling.coordinate for coupling in model.couplings}
    if coordinates is None:
        coordinates = [c.name for c in model.coordinates if not c.locked and c.name not in coupled]
    names = tuple(coordinates)
    _check_names(model, names)
    columns = [[c.name for c in model.coordinates].index(name) for name in names]
    t = rising("motion", motion.data["time"].values)
    table = motion.coordinates[:, columns].copy()
    check_values(model, names, t, table)
    turning = [model.coordinates[column].rotational for column in columns]
    table[:, turning] = np.unwrap(table[:, turning], axis=0)
    return Targets(model, names, _through(t, table, "cubic"), t[0], t[-1])


def combine_targets(*parts: Targets) -> Targets:
    """Targets of several kinds, for different coordinates of one model."""
    if not parts:
        raise SettingsError("targets: none were given to combine")
    for part in parts[1:]:
        if part.model != parts[0].model:
            raise SettingsError(
                f"targets: models {parts[0].model.name!r} and {part.model.name!r} differ; combine those of one model"
            )

    def curve(times: Array) -> Array:
        return np.concatenate([part.at(times) for part in parts], axis=1)

    return Targets(parts[0].model, tuple(name for part in parts for name in part.coordinates), curve)


def _through(times: Array, values: Array, interpolation: str) -> Curve:
    from scipy.interpolate import BPoly, CubicSpline, PchipInterpolator, make_interp_spline

    if interpolation == "hold" or len(times) == 1:
        return lambda t: values[np.searchsorted(times, t, side="right") - 1]
    if interpolation == "linear":
        return make_interp_spline(times, values, k=1)
    if interpolation == "monotone":
        return PchipInterpolator(times, values)
    if interpolation == "cubic":
        return CubicSpline(times, values, bc_type="clamped")
    rest = np.zeros_like(values)
    return BPoly.from_derivatives(times, np.stack([values, rest, rest], axis=1))


def rising(what: str, times: ArrayLike) -> Array:
    """Times as an array, if they are finite and rise."""
    t = np.asarray(times, float)
    if t.ndim != 1 or not len(t):
        raise SettingsError(f"{what}: times have shape {t.shape}; a list of at least one is needed")
    if not np.isfinite(t).all():
        raise SettingsError(f"{what}: time {int(np.argmin(np.isfinite(t)))} is {t[~np.isfinite(t)][0]}, not finite")
    back = np.flatnonzero(np.diff(t) <= 0.0)
    if len(back):
        first = int(back[0])
        raise SettingsError(
            f"{what}: time {first + 1} is {t[first + 1]:g} s and does not come after {t[first]:g} s; times must rise"
        )
    return t


def _table(what: str, values: Mapping[str, ArrayLike], count: int) -> Array:
    """(count, coordinates), one column for each name."""
    columns = []
    for name, column in values.items():
        array = np.asarray(column, float)
        if array.shape != (count,):
            raise SettingsError(f"{what}: coordinate {name!r} has values of shape {array.shape}; it needs ({count},)")
        columns.append(array)
    if not columns:
        raise SettingsError(f"{what}: no coordinate is given")
    return np.stack(columns, axis=1)


def _check_names(model: Model, names: Sequence[str]) -> None:
    known = {c.name: c for c in model.coordinates}
    coupled = {coupling.coordinate: coupling.on for coupling in model.couplings}
    for place, name in enumerate(names):
        if name not in known:
            raise SettingsError(f"targets: {unknown_name('coordinate', name, known)}")
        if name in names[:place]:
            raise SettingsError(f"targets: coordinate {name!r} has two targets; leave one of them out")
        if known[name].locked:
            raise SettingsError(f"targets: coordinate {name!r} is locked and cannot follow; leave it out")
        if name in coupled:
            raise SettingsError(
                f"targets: coordinate {name!r} is coupled to {coupled[name]!r}; give that one the target"
            )


def check_values(model: Model, names: Sequence[str], times: Array, values: Array) -> None:
    """Raises SettingsError if a value (times, names) is not finite or lies beyond a stop of the model."""
    if values.shape != (len(times), len(names)):
        raise SettingsError(
            f"targets: values have shape {values.shape}; {len(times)} times and {len(names)} coordinates need "
            f"({len(times)}, {len(names)})"
        )
    known = {c.name: c for c in model.coordinates}
    lower, upper = np.array([known[name].lower for name in names]), np.array([known[name].upper for name in names])
    good = (values >= lower - AT_STOP) & (values <= upper + AT_STOP) & np.isfinite(values)
    if good.all():
        return
    row, column = np.argwhere(~good)[0]
    name, got = names[column], values[row, column]
    where = f"targets: coordinate {name!r} at {times[row]:g} s is {got:g}"
    if not np.isfinite(got):
        raise SettingsError(f"{where}; every target must be a finite number")
    unit = "rad" if known[name].rotational else "m"
    raise SettingsError(
        f"{where} {unit}, beyond its stops {lower[column]:g} to {upper[column]:g} {unit}; "
        "ask for less, or widen the stops in the model"
    )

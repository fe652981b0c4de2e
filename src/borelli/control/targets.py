"""Targets of coordinates in time, from keyframes, B-splines, functions or a motion.

Targets are checked when they are created, as far as possible, and again whenever they are evaluated: a curve may exceed
a joint limit between two keys that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.analysis.motion import Motion
from borelli.control.response import check_step
from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats
from borelli.model.model import Model

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]

INTERPOLATIONS = {
    "hold": "each value until the next key",
    "linear": "straight lines",
    "monotone": "cubics that never exceed the values of their keys",
    "cubic": "the cubic spline through the keys, at rest at the start and the end",
    "minimum jerk": "at rest at every key, with minimum jerk between them",
}
LIMIT_TOLERANCE = 1e-9
"""Excess of a target over a joint limit by rounding [rad or m]."""


@dataclass(frozen=True)
class Targets:
    """Target values of coordinates in time; constant before the start and after the end."""

    model: Model
    coordinates: tuple[str, ...]
    curve: Curve
    """Values (times, coordinates) [rad or m] at times (times,) [s] between start and end."""
    start: float = -inf
    end: float = inf
    """[s]"""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        names = f"{len(self.coordinates)}: {list_names(self.coordinates)}"
        rows = [("model", self.model.name), ("coordinates", names), ("times", f"{self.start:g} to {self.end:g} s")]
        return Summary("Targets", rows)

    def __post_init__(self) -> None:
        _check_names(self.model, self.coordinates)

    def at(self, time: ArrayLike) -> Array:
        """Return values (times, coordinates) [rad or m] at times (times,) [s]; (coordinates,) at one time.

        Raises:
            SettingsError: A time or a value is not finite, or a value exceeds a joint limit.
        """
        times = check_times(time)
        values = np.asarray(self.curve(np.clip(times, self.start, self.end)))
        values = as_floats("targets: values", values, (len(times), len(self.coordinates)), finite=False)
        check_values(self.model, self.coordinates, times, values)
        return values if np.ndim(time) else values[0]

    def around(self, time: float, step: float) -> tuple[Array, Array, Array]:
        """Return the values one step ago, now, and one step ahead, as `next_velocity` takes them."""
        check_step(step)
        before, now, ahead = self.at(np.array([time - step, time, time + step]))
        return before, now, ahead


def keyframes(
    model: Model, times: ArrayLike, values: Mapping[str, ArrayLike], interpolation: str = "monotone"
) -> Targets:
    """Return targets through values at given times.

    Args:
        model: The model.
        times: Key times (keys,) [s], increasing.
        values: Key values by coordinate, (keys,) [rad or m].
        interpolation: One of `INTERPOLATIONS`.

    Raises:
        SettingsError: A name is unknown, or a value is not finite or exceeds a joint limit.
    """
    if interpolation not in INTERPOLATIONS:
        raise SettingsError(f"keyframes: {unknown_name('interpolation', interpolation, INTERPOLATIONS)}")
    t = check_rising("keyframes", times)
    table = _table("keyframes", values, len(t))
    names = tuple(values)
    _check_names(model, names)
    check_values(model, names, t, table)
    return Targets(model, names, _interpolate(t, table, interpolation), t[0], t[-1])


def b_spline_targets(model: Model, times: ArrayLike, values: Mapping[str, ArrayLike], degree: int = 3) -> Targets:
    """Return targets on a B-spline that starts at the first and ends at the last of its control values.

    The curve stays within the range of any `degree + 1` neighboring control values, so control values within the joint
    limits keep it within them everywhere.

    Args:
        model: The model.
        times: Knots (pieces + 1,) between polynomials [s], increasing.
        values: Control values by coordinate, (pieces + degree,) [rad or m].
        degree: Degree of the polynomials, 1 to 5.
    """
    from scipy.interpolate import BSpline

    if degree not in range(1, 6):
        raise SettingsError(f"B-spline: degree is {degree}. Use a degree from 1 to 5.")
    t = check_rising("B-spline", times)
    if len(t) < 2:
        raise SettingsError("B-spline: One time was given. Pass at least two, the start and the end.")
    table = _table("B-spline", values, len(t) - 1 + degree)
    knots = np.concatenate([np.full(degree, t[0]), t, np.full(degree, t[-1])])
    # Greville abscissae: the time of each control value
    abscissae = np.array([knots[i + 1 : i + 1 + degree].mean() for i in range(len(table))])
    names = tuple(values)
    _check_names(model, names)
    check_values(model, names, abscissae, table)
    return Targets(model, names, BSpline(knots, table, degree), t[0], t[-1])


def targets_from_functions(model: Model, of_time: Mapping[str, Callable[[float], float]]) -> Targets:
    """Return targets that are functions of time [s], by coordinate [rad or m].

    Args:
        model: Model that tracks them.
        of_time: Functions of time [s] by coordinate, with values in rad or m.
    """

    def curve(times: Array) -> Array:
        return np.array([[function(float(t)) for function in of_time.values()] for t in times]).reshape(len(times), -1)

    return Targets(model, tuple(of_time), curve)


def targets_from_motion(motion: Motion, coordinates: Sequence[str] | None = None) -> Targets:
    """Return targets that track a motion, on cubic splines through its frames; angles are unwrapped.

    Args:
        motion: Target motion.
        coordinates: Names of the coordinates. Default: all that are neither locked nor coupled.
    """
    model = motion.model
    coupled = {coupling.coordinate for coupling in model.couplings}
    if coordinates is None:
        coordinates = [c.name for c in model.coordinates if not c.locked and c.name not in coupled]
    names = tuple(coordinates)
    _check_names(model, names)
    columns = [[c.name for c in model.coordinates].index(name) for name in names]
    t = check_rising("motion", motion.data["time"].values)
    table = motion.coordinates[:, columns].copy()
    check_values(model, names, t, table)
    rotational = [model.coordinates[column].rotational for column in columns]
    table[:, rotational] = np.unwrap(table[:, rotational], axis=0)
    return Targets(model, names, _interpolate(t, table, "cubic"), t[0], t[-1])


def combine_targets(*parts: Targets) -> Targets:
    """Return one set of targets from several, for different coordinates of one model.

    Args:
        parts: Targets of the same model, each for other coordinates.
    """
    if not parts:
        raise SettingsError("targets: There are no targets to combine. Pass at least one.")
    for part in parts[1:]:
        if part.model != parts[0].model:
            raise SettingsError(
                f"targets: Models {parts[0].model.name!r} and {part.model.name!r} differ. Combine targets of one model."
            )

    def curve(times: Array) -> Array:
        return np.concatenate([part.at(times) for part in parts], axis=1)

    return Targets(parts[0].model, tuple(name for part in parts for name in part.coordinates), curve)


def _interpolate(times: Array, values: Array, interpolation: str) -> Curve:
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


def check_times(time: ArrayLike) -> Array:
    """Return times as an array; raise SettingsError if one is not finite."""
    return as_floats("targets: times", np.atleast_1d(np.asarray(time)), (None,))


def check_rising(where: str, times: ArrayLike) -> Array:
    """Return times as an array; raise SettingsError unless they are finite and increase."""
    t = as_floats(f"{where}: times", times, (None,))
    if not len(t):
        raise SettingsError(f"{where}: There are no times. Pass a list of at least one time.")
    back = np.flatnonzero(np.diff(t) <= 0.0)
    if len(back):
        first = int(back[0])
        raise SettingsError(
            f"{where}: Time {first + 1} is {t[first + 1]:g} s and is not after {t[first]:g} s. Times must increase."
        )
    return t


def _table(where: str, values: Mapping[str, ArrayLike], count: int) -> Array:
    """Return the values (count, coordinates), one column for each name."""
    columns = []
    for name, column in values.items():
        columns.append(as_floats(f"{where}: values of coordinate {name!r}", column, (count,), finite=False))
    if not columns:
        raise SettingsError(f"{where}: There is no coordinate. Pass values of at least one.")
    return np.stack(columns, axis=1)


def _check_names(model: Model, names: Sequence[str]) -> None:
    known = {c.name: c for c in model.coordinates}
    coupled = {coupling.coordinate: coupling.on for coupling in model.couplings}
    for i, name in enumerate(names):
        if name not in known:
            raise SettingsError(f"targets: {unknown_name('coordinate', name, known)}")
        if name in names[:i]:
            raise SettingsError(f"targets: Coordinate {name!r} has two targets. Remove one of them.")
        if known[name].locked:
            raise SettingsError(f"targets: Coordinate {name!r} is locked and cannot move. Remove its target.")
        if name in coupled:
            raise SettingsError(
                f"targets: Coordinate {name!r} is coupled to {coupled[name]!r}. Give {coupled[name]!r} the target."
            )


def check_values(model: Model, names: Sequence[str], times: Array, values: Array) -> None:
    """Raise SettingsError if a value (times, names) is not finite or exceeds a joint limit of the model."""
    if values.shape != (len(times), len(names)):
        raise SettingsError(
            f"targets: The values have shape {values.shape}. {len(times)} times and {len(names)} coordinates need "
            f"({len(times)}, {len(names)})."
        )
    known = {c.name: c for c in model.coordinates}
    lower, upper = np.array([known[name].lower for name in names]), np.array([known[name].upper for name in names])
    good = (values >= lower - LIMIT_TOLERANCE) & (values <= upper + LIMIT_TOLERANCE) & np.isfinite(values)
    if good.all():
        return
    row, column = np.argwhere(~good)[0]
    name, got = names[column], values[row, column]
    where = f"targets: Coordinate {name!r} at {times[row]:g} s is {got:g}"
    if not np.isfinite(got):
        raise SettingsError(f"{where}. Every target must be a finite number.")
    unit = "rad" if known[name].rotational else "m"
    raise SettingsError(
        f"{where} {unit}, outside its limits {lower[column]:g} to {upper[column]:g} {unit}. Reduce the target, or "
        "widen the joint limits of the model."
    )

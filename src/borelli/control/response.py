"""Response of a tracking error under control, in closed form, and the velocity that realizes it in one step.

Impulse-based PD control (Weinstein, Guendelman and Fedkiw 2008) prescribes accelerations, not torques: the error
E = x - x_o of a coordinate x from its target x_o is to obey

    E'' + k_v E' + k_p E = 0,   so   E(t) = a E(0) + b E'(0),   E'(t) = -k_p b E(0) + (a - k_v b) E'(0)

and the step uses the velocity that leads exactly there, V = (x_o(next) + E(h) - x) / h, for any stiffness, load or h.
With l = k_v / 2, D = l^2 - k_p and the roots r_1 > r_2:

    D < 0, w^2 = -D     a = exp(-l t) (cos w t + l sin(w t) / w)          b = exp(-l t) sin(w t) / w
    D = 0               a = exp(-l t) (1 + l t)                           b = exp(-l t) t
    D > 0, s^2 = D      a = exp(r_1 t) - r_1 b                            b = exp(r_1 t) (1 - exp(-2 s t)) / (2 s)

V is the mean velocity of the step, that is, its velocity at the midpoint. Two things follow. Half of the acceleration
never affects the next step, so the closed form is evaluated with both gains doubled. And E'(0) is the velocity of the
previous step minus that of the target over the same time, a backward difference: the target's velocity at the step's
end would leave the error of a body that gets half the target's acceleration, for steps of any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, pi
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.control.stability import check_ratio
from borelli.errors import SettingsError
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_floats, as_number

Array = NDArray[np.float64]

SETTLED_FRACTION = 0.02
"""Fraction of an error, released at rest, that remains after the settling time: the usual 2 %."""


class Response(Protocol):
    """Change of an error in a step; any such class can replace `PD`."""

    def after(self, error: Array, rate: Array, step: float, time: float) -> Array:
        """Return the error at `time + step`.

        Args:
            error: At `time` [rad or m]; any shape.
            rate: Mean rate of the error over the previous step [rad/s or m/s].
            step: Step length [s].
            time: Present time [s].
        """
        ...


def coefficients(stiffness: ArrayLike, damping: ArrayLike, time: ArrayLike) -> tuple[Array, Array]:
    """Return a and b [s] of E(t) = a E(0) + b E'(0), for any gains that are not negative.

    Args:
        stiffness: k_p [1/s^2].
        damping: k_v [1/s].
        time: Time t [s]; the shapes of the three are broadcast.
    """
    k, half, t = np.broadcast_arrays(np.asarray(stiffness, float), 0.5 * np.asarray(damping, float), time)
    square = half * half - k
    swing = np.sqrt(np.maximum(-square, 0.0))
    decay = np.exp(-half * t)
    sine = t * np.sinc(swing * t / pi)  # sin(w t) / w, also where w is zero
    under = decay * (np.cos(swing * t) + half * sine), decay * sine

    spread = np.sqrt(np.maximum(square, 0.0))
    fast = half + spread
    # the slow root from the product of the two: their difference would cancel
    slow = np.divide(k, fast, out=np.zeros(k.shape), where=fast > 0.0)
    rest = np.exp(-slow * t)
    apart = np.divide(-np.expm1(-2.0 * spread * t), 2.0 * spread, out=np.array(t, float), where=spread > 0.0)
    over = rest * (1.0 + slow * apart), rest * apart
    return np.where(square < 0.0, under[0], over[0]), np.where(square < 0.0, under[1], over[1])


def error_after(
    stiffness: ArrayLike, damping: ArrayLike, time: ArrayLike, error: ArrayLike, rate: ArrayLike
) -> tuple[Array, Array]:
    """Return the error and its rate after a time, for gains as given (not doubled)."""
    a, b = coefficients(stiffness, damping, time)
    error, rate = np.asarray(error, float), np.asarray(rate, float)
    return a * error + b * rate, (a - np.asarray(damping) * b) * rate - np.asarray(stiffness) * b * error


@dataclass(frozen=True, slots=True)
class PD:
    """PD control with the same gains for any number of coordinates. `from_settling_time` computes them from a time.

    Raises:
        SettingsError: The gains are not stable for every step length.
    """

    stiffness: float
    """k_p [1/s^2]: acceleration per error."""
    ratio: float = 1.0
    """Damping ratio; 1 is critical, the quickest without overshoot."""

    def __post_init__(self) -> None:
        if not as_number("PD: stiffness", self.stiffness) > 0.0:
            raise SettingsError(f"PD: stiffness is {self.stiffness} 1/s^2. Pass a positive, finite stiffness.")
        check_ratio(self.ratio)

    @property
    def damping(self) -> float:
        """k_v of the equations [1/s]."""
        return float(2.0 * self.ratio * np.sqrt(self.stiffness))

    @staticmethod
    def from_settling_time(time: float, ratio: float = 1.0) -> PD:
        """Return the gains with which an error, released at rest, stays below 2 % after a time [s]."""
        if not as_number("PD: settling time", time) > 0.0:
            raise SettingsError(f"PD: The settling time is {time} s. Pass a positive, finite time.")
        check_ratio(ratio)
        return PD((_settling_at_unit_stiffness(ratio) / time) ** 2, ratio)

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """Return the error one step later; see `Response`."""
        a, b = coefficients(2.0 * self.stiffness, 2.0 * self.damping, step)
        return np.asarray(a * error + b * rate)


@dataclass(frozen=True, slots=True)
class MinimumJerk:
    """Response that brings an error to rest at zero at a set time, with minimum jerk (Flash and Hogan 1985).

    With s the fraction of the time that has passed, the path from error E and rate E' (and no acceleration) is

        E (1 - 10 s^3 + 15 s^4 - 6 s^5) + duration E' (s - 6 s^3 + 8 s^4 - 3 s^5)

    and deviations from it decay by `correction`. The ends of steps of any length lie on the path.
    """

    error: ArrayLike
    """Initial error [rad or m]."""
    rate: ArrayLike
    """Initial rate [rad/s or m/s]."""
    duration: float
    """[s]"""
    correction: Response
    start: float = 0.0
    """[s]"""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        error = as_floats("MinimumJerk: error", self.error, np.shape(self.error))
        rate = as_floats("MinimumJerk: rate", self.rate, np.shape(self.rate))
        if error.ndim and rate.ndim and error.shape != rate.shape:
            raise SettingsError(f"MinimumJerk: error has shape {error.shape} and rate {rate.shape}. Pass equal shapes.")
        if not as_number("MinimumJerk: duration", self.duration) > 0.0:
            raise SettingsError(f"MinimumJerk: duration is {self.duration} s. Pass a positive, finite duration.")

    def path(self, time: float) -> Array:
        """Return the undisturbed error at a time [s]; before the start it has the initial rate."""
        error, rate = np.asarray(self.error, float), np.asarray(self.rate, float)
        s = (time - self.start) / self.duration
        if s < 0.0:
            return np.asarray(error + (time - self.start) * rate)
        s = min(s, 1.0)
        of_error = 1.0 - s**3 * (10.0 - s * (15.0 - 6.0 * s))
        of_rate = self.duration * s * (1.0 - s * s * (6.0 - s * (8.0 - 3.0 * s)))
        return np.asarray(of_error * error + of_rate * rate)

    def after(self, error: Array, rate: Array, step: float, time: float) -> Array:
        """Return the error one step later; see `Response`."""
        now = self.path(time)
        planned = (now - self.path(time - step)) / step
        return np.asarray(self.path(time + step) + self.correction.after(error - now, rate - planned, step, time))


def next_velocity(
    response: Response,
    coordinate: ArrayLike,
    velocity: ArrayLike,
    target: tuple[ArrayLike, ArrayLike, ArrayLike],
    step: float,
    time: float = 0.0,
    *,
    wrap: bool = False,
) -> Array:
    """Return the velocity of the next step that makes the error follow a response.

    Args:
        response: `PD`, or another.
        coordinate: Present values [rad or m]; any shape.
        velocity: Of the previous step [rad/s or m/s], before forces of this step act.
        target: Targets one step ago, now, and one step ahead.
        step: Step length [s].
        time: Present time [s].
        wrap: Treat angles that differ by full revolutions as equal, and use the shorter direction.
    """
    check_step(step)
    before, now, ahead = (np.asarray(value, float) for value in target)
    error, last, ahead_change = np.asarray(coordinate, float) - now, now - before, ahead - now
    if wrap:
        error, last, ahead_change = wrap_angle(error), wrap_angle(last), wrap_angle(ahead_change)
    after = response.after(error, np.asarray(velocity, float) - last / step, step, time)
    return np.asarray((ahead_change + after - error) / step)


def wrap_angle(angle: ArrayLike) -> Array:
    """Return the same angles within (-pi, pi]."""
    return np.asarray(pi - np.mod(pi - np.asarray(angle, float), 2.0 * pi))


def check_step(step: float) -> None:
    """Raise SettingsError unless the step [s] is positive and finite."""
    if not (isfinite(step) and step > 0.0):
        raise SettingsError(f"control: The step is {step} s. Pass a positive, finite step.")


def _settling_at_unit_stiffness(ratio: float) -> float:
    """Return the time after which |E| stays below `SETTLED_FRACTION`, for k_p = 1 and E(0) = 1 at rest."""
    from scipy.optimize import brentq

    def beyond(time: float) -> float:
        return abs(float(coefficients(1.0, 2.0 * ratio, time)[0])) - SETTLED_FRACTION

    if ratio >= 1.0:
        # the slow root alone, with its largest possible factor, is below the fraction before this time
        return float(brentq(beyond, 0.0, 2.0 * ratio * np.log(2.0 / SETTLED_FRACTION) + 10.0, xtol=1e-13))
    # |E| peaks every half period; the last peak above the fraction is followed by the crossing
    half_period = pi / np.sqrt(1.0 - ratio * ratio)
    last = np.floor(np.log(1.0 / SETTLED_FRACTION) / (ratio * half_period) * (1.0 - 1e-12)) * half_period
    zero = last + (1.0 - np.arccos(ratio) / pi) * half_period
    return float(brentq(beyond, last, zero, xtol=1e-13))

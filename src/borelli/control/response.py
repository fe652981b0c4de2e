"""How an error dies away under control, in closed form, and the velocity that brings it there in one step.

Impulse-based PD control (Weinstein, Guendelman and Fedkiw 2008) asks for accelerations, not for torques: the error
E = x - x_o of a coordinate x from its target x_o is to obey

    E'' + k_v E' + k_p E = 0,   so   E(t) = a E(0) + b E'(0),   E'(t) = -k_p b E(0) + (a - k_v b) E'(0)

and the step takes the velocity that leads exactly there, V = (x_o(next) + E(h) - x) / h, whatever stiffness, load or h.
With l = k_v / 2, D = l^2 - k_p and the roots r_1 > r_2:

    D < 0, w^2 = -D     a = exp(-l t) (cos w t + l sin(w t) / w)          b = exp(-l t) sin(w t) / w
    D = 0               a = exp(-l t) (1 + l t)                           b = exp(-l t) t
    D > 0, s^2 = D      a = exp(r_1 t) - r_1 b                            b = exp(r_1 t) (1 - exp(-2 s t)) / (2 s)

V is the mean velocity of the step: it belongs to its middle. Two things follow. Half of the acceleration is never seen
by the next step, so the closed form is taken with both gains doubled. And E'(0) is the velocity of the step before less
that of the target over the same time, a backward difference: the target's velocity at the step's end would leave the
error of a body pushed with half the target's acceleration, for steps of any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, pi
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.control.stability import check_ratio
from borelli.errors import SettingsError

Array = NDArray[np.float64]

SETTLED = 0.02
"""Share of an error, released at rest, that is left for good after the settling time: the usual 2 %."""


class Response(Protocol):
    """How an error changes in a step: whatever has one can be put in the place of PD."""

    def after(self, error: Array, rate: Array, step: float, time: float) -> Array:
        """The error at `time + step`.

        Args:
            error: At `time` [rad or m]; any shape.
            rate: Mean rate of the error over the step before [rad/s or m/s].
            step: [s]
            time: [s]
        """
        ...


def coefficients(stiffness: ArrayLike, damping: ArrayLike, time: ArrayLike) -> tuple[Array, Array]:
    """The a and b [s] of E(t) = a E(0) + b E'(0), for any gains that are not negative.

    Args:
        stiffness: k_p [1/s^2]
        damping: k_v [1/s]
        time: [s]; shapes of the three are broadcast.
    """
    k, half, t = np.broadcast_arrays(np.asarray(stiffness, float), 0.5 * np.asarray(damping, float), time)
    square = half * half - k
    swing = np.sqrt(np.maximum(-square, 0.0))
    decay = np.exp(-half * t)
    sine = t * np.sinc(swing * t / pi)  # sin(w t) / w, also where w is nothing
    under = decay * (np.cos(swing * t) + half * sine), decay * sine

    spread = np.sqrt(np.maximum(square, 0.0))
    fast = half + spread
    # the slow root by the product of the two: their difference would cancel
    slow = np.divide(k, fast, out=np.zeros(k.shape), where=fast > 0.0)
    rest = np.exp(-slow * t)
    apart = np.divide(-np.expm1(-2.0 * spread * t), 2.0 * spread, out=np.array(t, float), where=spread > 0.0)
    over = rest * (1.0 + slow * apart), rest * apart
    return np.where(square < 0.0, under[0], over[0]), np.where(square < 0.0, under[1], over[1])


def error_after(
    stiffness: ArrayLike, damping: ArrayLike, time: ArrayLike, error: ArrayLike, rate: ArrayLike
) -> tuple[Array, Array]:
    """Error and its rate after a time, under gains as they are (not doubled)."""
    a, b = coefficients(stiffness, damping, time)
    error, rate = np.asarray(error, float), np.asarray(rate, float)
    return a * error + b * rate, (a - np.asarray(damping) * b) * rate - np.asarray(stiffness) * b * error


@dataclass(frozen=True, slots=True)
class PD:
    """PD control of any number of coordinates: the same gains for all. `from_settling_time` states them as a time.

    Raises:
        SettingsError: gains that no step is stable with for certain.
    """

    stiffness: float
    """k_p [1/s^2]: acceleration asked for per error."""
    ratio: float = 1.0
    """Damping ratio; 1 is critical: as quick as can be without overshoot."""

    def __post_init__(self) -> None:
        if not (isfinite(self.stiffness) and self.stiffness > 0.0):
            raise SettingsError(f"PD control: stiffness is {self.stiffness} 1/s^2; it must be positive and finite")
        check_ratio(self.ratio)

    @property
    def damping(self) -> float:
        """The k_v of the equations [1/s]."""
        return float(2.0 * self.ratio * np.sqrt(self.stiffness))

    @staticmethod
    def from_settling_time(time: float, ratio: float = 1.0) -> PD:
        """The gains with which an error, released at rest, is and stays below 2 % after a time [s]."""
        if not (isfinite(time) and time > 0.0):
            raise SettingsError(f"PD control: settling time is {time} s; it must be positive and finite")
        check_ratio(ratio)
        return PD((_settling_at_unit_stiffness(ratio) / time) ** 2, ratio)

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """The error a step later; see `Response`."""
        a, b = coefficients(2.0 * self.stiffness, 2.0 * self.damping, step)
        return np.asarray(a * error + b * rate)


@dataclass(frozen=True, slots=True)
class MinimumJerk:
    """Brings an error to rest at nothing at a set time, along the path with the least jerk (Flash and Hogan 1985).

    With s the share of the time that has passed, the path from error E and rate E' (and no acceleration) is

        E (1 - 10 s^3 + 15 s^4 - 6 s^5) + duration E' (s - 6 s^3 + 8 s^4 - 3 s^5)

    and what pushes the body off it dies away by `correction`. The ends of steps of any length lie on the path.
    """

    error: ArrayLike
    """At the start [rad or m]."""
    rate: ArrayLike
    """At the start [rad/s or m/s]."""
    duration: float
    """[s]"""
    correction: Response
    start: float = 0.0
    """[s]"""

    def __post_init__(self) -> None:
        if not (isfinite(self.duration) and self.duration > 0.0):
            raise SettingsError(f"minimum jerk: duration is {self.duration} s; it must be positive and finite")

    def path(self, time: float) -> Array:
        """The error at a time, if nothing disturbs it; before the start it came with the rate it has there."""
        error, rate = np.asarray(self.error, float), np.asarray(self.rate, float)
        s = (time - self.start) / self.duration
        if s < 0.0:
            return np.asarray(error + (time - self.start) * rate)
        s = min(s, 1.0)
        place = 1.0 - s**3 * (10.0 - s * (15.0 - 6.0 * s))
        travel = self.duration * s * (1.0 - s * s * (6.0 - s * (8.0 - 3.0 * s)))
        return np.asarray(place * error + travel * rate)

    def after(self, error: Array, rate: Array, step: float, time: float) -> Array:
        """The error a step later; see `Response`."""
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
    full_turns: bool = False,
) -> Array:
    """The velocity of the coming step that makes the error follow a response.

    Args:
        response: `PD`, or another.
        coordinate: [rad or m]; any shape.
        velocity: Of the step before [rad/s or m/s], before gravity and pushes of this one act.
        target: A step ago, now, and a step ahead.
        step: [s]
        time: [s]
        full_turns: Angles that differ by whole turns are the same: the shorter way is taken.
    """
    check_step(step)
    before, now, ahead = (np.asarray(value, float) for value in target)
    error, last, coming = np.asarray(coordinate, float) - now, now - before, ahead - now
    if full_turns:
        error, last, coming = wrap_angle(error), wrap_angle(last), wrap_angle(coming)
    after = response.after(error, np.asarray(velocity, float) - last / step, step, time)
    return np.asarray((coming + after - error) / step)


def wrap_angle(angle: ArrayLike) -> Array:
    """The same angles within (-pi, pi]."""
    return np.asarray(pi - np.mod(pi - np.asarray(angle, float), 2.0 * pi))


def check_step(step: float) -> None:
    """Raises SettingsError if time does not run forward by `step` [s]."""
    if not (isfinite(step) and step > 0.0):
        raise SettingsError(f"control: the step is {step} s; it must be positive and finite: time runs forward")


def _settling_at_unit_stiffness(ratio: float) -> float:
    """The time after which |E| stays below `SETTLED`, for k_p = 1 and E(0) = 1 at rest."""
    from scipy.optimize import brentq

    def beyond(time: float) -> float:
        return abs(float(coefficients(1.0, 2.0 * ratio, time)[0])) - SETTLED

    if ratio >= 1.0:
        # the slow root alone, with the larger factor it can have, is below SETTLED before this time
        return float(brentq(beyond, 0.0, 2.0 * ratio * np.log(2.0 / SETTLED) + 10.0, xtol=1e-13))
    # |E| is greatest every half swing; the last that is above is followed by the crossing sought
    half_swing = pi / np.sqrt(1.0 - ratio * ratio)
    last = np.floor(np.log(1.0 / SETTLED) / (ratio * half_swing) * (1.0 - 1e-12)) * half_swing
    zero = last + (1.0 - np.arccos(ratio) / pi) * half_swing
    return float(brentq(beyond, last, zero, xtol=1e-13))

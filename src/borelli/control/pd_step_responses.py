"""Responses of springs and dampers for one coordinate alone, to compare impulse-based PD with.

Both apply PD as a torque on the inertia I that it rotates, k_1 = k_p I and k_2 = k_v I, so that alone and without
gravity the error obeys E'' + k_v E' + k_p E = 0, as in `PD`; they differ from it, and from each other, by the step.

*Traditional* PD takes the torque from the step's start: E'(next) = E' - h (k_p E + k_v E'), E(next) = E + h E'(next).
By Jury's conditions it is stable where k_p h^2 + 2 k_v h < 4; critically damped, sqrt(k_p) h < 2 sqrt 2 - 2 = 0.828.

*Stable* PD takes it from the step's end, -k_1 E(next) - k_2 E'(next) (Tan, Liu and Turk 2011): the new rate solves
(1 + h k_v + h^2 k_p) E'(next) = E' - h k_p E. That is what an implicit spring does. The authors predict E(next) from
the previous rate instead, E + h E', so that only k_2 enters their equations of motion. It is the same but for terms of
second order in h, and for stability: their form is unstable where 3 k_p h^2 > 4 + 2 k_v h (critically damped, where
sqrt(k_p) h > 2), E(next) itself nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TraditionalResponse:
    """Response under torques of the step's start."""

    gains: PD

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """Return the error one step later; see `Response`."""
        pull = self.gains.stiffness * error + self.gains.damping * rate
        return np.asarray(error + step * (rate - step * pull))


@dataclass(frozen=True, slots=True)
class StableResponse:
    """Response under torques of the step's end."""

    gains: PD

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """Return the error one step later; see `Response`."""
        k, d = step * self.gains.stiffness, self.gains.damping
        return np.asarray(error + step * (rate - k * error) / (1.0 + step * (d + k)))

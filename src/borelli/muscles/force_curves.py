"""Parameters of force curves: from the values of a muscle to the rows that kernels read.

Each model's constants are those of its class in OpenSim 4.6 or MuJoCo, unless the muscle states others in `parameters`
under the names of its file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import acos, atan, exp, log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from borelli.errors import ModelError, unknown_name
from borelli.model.model import Muscle
from borelli.muscles.hill_kernels.activation import PARK_RATE, SMOOTH_STEP, TANH, WINTERS
from borelli.muscles.hill_kernels.curves import DE_GROOTE, MILLARD, MUJOCO, PARK, THELEN
from borelli.muscles.hill_kernels.de_groote import MIN_LENGTH, TENDON_SCALE
from borelli.muscles.millard_curves import millard_row

Floats = NDArray[np.float64]

MAX_PENNATION_ANGLE = acos(0.1)
"""[rad] largest pennation angle of a fiber (OpenSim 4.6)."""
MIN_LENGTH_UNPENNATED = 0.01
"""Shortest fiber without pennation [optimal fiber lengths] (OpenSim's MuscleFixedWidthPennationModel)."""
DEFAULT_CLASS = "Millard2012EquilibriumMuscle"
"""Curves of muscles that name no class."""
ACTIVE_WIDTH = 0.45
"""Width of the active bell (Thelen 2003, table 1)."""
PARK_LENGTHENING_FORCE = 1.5
"""Largest force-velocity multiplier of Park's arctangent; the report names none. Zajac (1989), fig. 5: 1.5 or more."""
PARK_SLOPE = 3.0
"""Slope of Park's arctangent at zero velocity: that of a Hill curve with a / F0 = 0.5."""
PARK_TENDON_STRAIN = 0.033
"""Strain of the linear tendon at one normalized force (Zajac 1989)."""


@dataclass(frozen=True, slots=True)
class MuscleClass:
    """Curves and activation dynamics of a muscle class."""

    curve_kind: int
    activation_kind: int
    row: Callable[[Muscle], list[float]]
    damping: float = 0.0
    min_activation: float = 0.0
    smoothing: float = 0.0


def _positive(muscle: Muscle, name: str, default: float) -> float:
    value = muscle.parameter(name, default)
    if not value > 0.0:
        raise ModelError(f"Muscle {muscle.name!r}: {name} is {value:g}. It must be positive.")
    return value


def _thelen_row(muscle: Muscle) -> list[float]:
    strain = _positive(muscle, "FmaxTendonStrain", 0.04)
    longest, threshold = muscle.parameter("Flen", 1.4), muscle.parameter("fv_linear_extrap_threshold", 0.95)
    if not longest > 1.0 or not 1.0 / longest < threshold < 1.0:
        found = f"Flen is {longest:g} and fv_linear_extrap_threshold is {threshold:g}"
        raise ModelError(f"Muscle {muscle.name!r}: {found}. Flen must exceed 1, the threshold lie from 1 / Flen to 1.")
    # Thelen (2003) rounds the end of the toe to 0.609 of the strain; this value makes the slope continuous
    toe = 99.0 * strain * exp(3.0) / (166.0 * exp(3.0) - 67.0)
    return [
        _positive(muscle, "KshapeActive", ACTIVE_WIDTH), _positive(muscle, "Af", 0.25), longest, threshold,
        _positive(muscle, "KshapePassive", 5.0), _positive(muscle, "FmaxMuscleStrain", 0.6), toe, 0.67 / (strain - toe),
    ]  # fmt: skip


def _de_groote_row(muscle: Muscle) -> list[float]:
    strain = _positive(muscle, "tendon_strain_at_one_norm_force", 0.049)
    return [
        _positive(muscle, "active_force_width_scale", 1.0),
        _positive(muscle, "passive_fiber_strain_at_one_norm_force", 0.6),
        log((1.0 + TENDON_SCALE) / TENDON_SCALE) / strain,
        0.0 if muscle.parameter("ignore_passive_fiber_force", 0.0) else 1.0,
    ]


def arctangent_constants(longest: float, slope: float) -> tuple[float, float, float, float]:
    """Return A, B, C and v0 of F = A + B atan(C (v - v0)) with F(-1) = 0, F(0) = 1, F'(0) = slope, F(inf) = longest."""

    def constants(q: float) -> tuple[float, float, float]:  # q = -C v0
        b = (longest - 1.0) / (pi / 2.0 - atan(q))
        return longest - b * pi / 2.0, b, slope * (1.0 + q * q) / b

    def at_full_speed(q: float) -> float:
        a, b, c = constants(q)
        return a + b * atan(q - c)

    q = brentq(at_full_speed, -50.0, 50.0, xtol=1e-15, rtol=1e-15)
    a, b, c = constants(q)
    return a, b, c, -q / c


def _park_row(muscle: Muscle) -> list[float]:
    constants = arctangent_constants(PARK_LENGTHENING_FORCE, PARK_SLOPE)
    return [ACTIVE_WIDTH, *constants, 5.0, 0.6, PARK_TENDON_STRAIN]


def _mujoco_row(muscle: Muscle) -> list[float]:
    low, high = muscle.parameter("lmin", 0.5), muscle.parameter("lmax", 1.6)
    longest = muscle.parameter("fvmax", 1.2)
    if not low < 1.0 < high or not longest >= 1.0:
        found = f"lmin is {low:g}, lmax is {high:g}, fvmax is {longest:g}"
        raise ModelError(f"Muscle {muscle.name!r}: {found}. lmin must be below 1, lmax above 1 and fvmax at least 1.")
    return [low, high, muscle.parameter("fpmax", 1.3), longest]


CLASSES = {
    "Park1992Muscle": MuscleClass(PARK, PARK_RATE, _park_row),
    "Thelen2003Muscle": MuscleClass(THELEN, WINTERS, _thelen_row, min_activation=0.01),
    DEFAULT_CLASS: MuscleClass(MILLARD, WINTERS, millard_row, damping=0.1, min_activation=0.01),
    "DeGrooteFregly2016Muscle": MuscleClass(DE_GROOTE, TANH, _de_groote_row, smoothing=0.1),
    "MuJoCo": MuscleClass(MUJOCO, SMOOTH_STEP, _mujoco_row),
}
"""Muscle classes with curves of their own; damping, minimum activation and smoothing of OpenSim 4.6."""
SUBSTITUTES = {
    "": DEFAULT_CLASS,
    "Millard2012AccelerationMuscle": DEFAULT_CLASS,
    "RigidTendonMuscle": DEFAULT_CLASS,
    "Schutte1993Muscle_Deprecated": "Thelen2003Muscle",
    "Delp1990Muscle_Deprecated": "Thelen2003Muscle",
    "Thelen2003Muscle_Deprecated": "Thelen2003Muscle",
}
"""Class whose curves replace those of a class; `muscle_warnings` reports it."""


def muscle_class(muscle: Muscle) -> MuscleClass:
    """Return curves and activation dynamics of a muscle's class.

    Raises:
        ModelError: if the class is unknown.
    """
    name = SUBSTITUTES.get(muscle.kind, muscle.kind)
    if name not in CLASSES:
        raise ModelError(f"Muscle {muscle.name!r}: {unknown_name('muscle class', name, CLASSES)}. Set its kind.")
    return CLASSES[name]


def min_fiber_length(muscle: Muscle, kind: int, row: list[float]) -> float:
    """Return the shortest fiber [m]: where pennation reaches its largest angle or the curves begin."""
    largest = muscle.parameter("maximum_pennation_angle", MAX_PENNATION_ANGLE)
    pennated = np.sin(muscle.pennation_angle) / np.sin(largest) if muscle.pennation_angle > 0.0 else 0.0
    shortest = {MILLARD: row[0], DE_GROOTE: MIN_LENGTH}.get(kind, MIN_LENGTH_UNPENNATED)
    return float(max(pennated, shortest) * muscle.optimal_fiber_length)

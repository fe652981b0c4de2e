"""Metabolic power of muscles: Umberger (2010) and Bhargava et al. (2004), as in OpenSim's probes, and smooth forms.

Both sum heats and the mechanical power of the fibers. Per muscle, with mass m = Fmax l0 density / specific tension,
slow-twitch fraction r, excitation u, activation a, normalized fiber length l, fiber velocity v (negative: shortening):

    Umberger    A = u if u > a else (u + a) / 2,    r' = uS / (uS + uF)
                activation and maintenance   1.5 A^0.6 (128 (1 - r') + 25),  times 0.4 + 0.6 fl beyond l = 1
                shortening                   1.5 A^2 (min(100, 250 w) r' + 153 w (1 - r')),   w = -v / (l0 vmax) > 0
                lengthening                  1.5 A 4 250 v / (l0 vmax);  both times fl beyond l = 1          [W/kg]
    Bhargava    activation                   m (40 uS + 133 uF)
                maintenance                  m L(l) (74 uS + 111 uF)
                shortening                   -0.25 F v,  zero while lengthening                              [W]
    both        uS = r sin(pi u / 2),  uF = (1 - r) (1 - cos(pi u / 2)),   work -F_active v

The shortening heat is raised until the muscle's total is not negative; the heat of a muscle is at least 1 W/kg. The
smooth form replaces every condition "x > 0" by (1 + tanh(b x)) / 2 with b = 10, as OpenSim's
Bhargava2004SmoothedMuscleMetabolics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.muscles.hill import evaluate_curve
from borelli.muscles.hill_kernels.arrays import Floats
from borelli.muscles.muscle_arrays import MuscleArrays

MODELS = ("umberger2010", "bhargava2004")
SPECIFIC_TENSION = 0.25e6
"""[Pa] of muscle (Umberger et al. 2003; OpenSim 4.6)."""
DENSITY = 1059.7
"""[kg/m^3] of muscle (Mendez and Keys 1960; OpenSim 4.6)."""
BASAL_RATE = 1.2
"""[W per kg of body mass] (Umberger et al. 2003; OpenSim 4.6)."""
SLOW_TWITCH_FRACTION = 0.5
"""Fraction of slow-twitch fibers where none is given (OpenSim 4.6)."""
MIN_HEAT_RATE = 1.0
"""[W per kg of muscle] (Umberger et al. 2003, p. 104)."""
AEROBIC_FACTOR = 1.5
"""Heat of primarily aerobic conditions over anaerobic ones (Umberger et al. 2003)."""
MAX_SLOW_SHORTENING_HEAT = 100.0
"""[W/kg] of slow-twitch fibers at their maximum contraction velocity (Umberger et al. 2003)."""
FAST_SHORTENING_HEAT = 153.0
"""[W/kg] of fast-twitch fibers at their maximum contraction velocity (Umberger et al. 2003)."""
FAST_OVER_SLOW_VELOCITY = 2.5
"""Maximum contraction velocity of fast-twitch over slow-twitch fibers (Umberger et al. 2003)."""
LENGTHENING_FACTOR = 4.0
"""Lengthening over slow shortening heat coefficient, where work of lengthening is counted (Umberger 2010)."""
BHARGAVA_SHORTENING = 0.25
"""Shortening heat over fiber force times velocity (Anderson 1999; OpenSim 4.6)."""
MAINTENANCE_LENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0)
MAINTENANCE_FACTORS = (0.5, 0.5, 1.0, 0.0, 0.0)
"""Maintenance heat over normalized fiber length, linear between (Bhargava et al. 2004, fig. 2; OpenSim 4.6)."""
SMOOTHING = 10.0
"""Steepness of the smooth form (OpenSim 4.6)."""


class MetabolicPower(NamedTuple):
    """Metabolic power, (frames, muscles) [W] unless stated otherwise."""

    activation: Floats
    """Activation heat; in Umberger's model activation and maintenance together."""
    maintenance: Floats
    """Maintenance heat; zero in Umberger's model."""
    shortening: Floats
    """Heat of shortening and lengthening, after it was raised to keep the total positive."""
    work: Floats
    """Mechanical power of the active fiber force, positive while shortening."""
    total: Floats
    """Sum per muscle, with the minimum heat."""
    basal: float
    """[W] of the whole body."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)

    @property
    def whole_body(self) -> Floats:
        """Power of the whole body (frames) [W]: all muscles and the basal rate."""
        return np.asarray(self.total.sum(axis=1) + self.basal)


def muscle_mass(arrays: MuscleArrays, specific_tension: float = SPECIFIC_TENSION) -> Floats:
    """Return the masses [kg] of muscles: maximum isometric force times fiber length, by tension and density.

    Args:
        arrays: Muscles of a model, of `make_muscle_arrays`.
        specific_tension: Force per area of muscle [N/m^2].
    """
    return arrays.max_isometric_force * arrays.optimal_fiber_length * DENSITY / specific_tension


def metabolic_power(
    arrays: MuscleArrays,
    model: str = "umberger2010",
    smooth: bool = False,
    *,
    excitation: ArrayLike,
    activation: ArrayLike,
    fiber_length: ArrayLike,
    fiber_velocity: ArrayLike,
    active_force: ArrayLike,
    passive_force: ArrayLike | None = None,
    body_mass: float,
    slow_twitch: ArrayLike = SLOW_TWITCH_FRACTION,
    specific_tension: float = SPECIFIC_TENSION,
    recruitment: bool = True,
) -> MetabolicPower:
    """Compute the metabolic power of muscles and of the whole body.

    Args:
        arrays: muscles.
        model: "umberger2010" or "bhargava2004".
        smooth: replace the conditions by smooth functions, for optimization.
        excitation: (frames, muscles), 0 to 1.
        activation: (frames, muscles), 0 to 1.
        fiber_length: (frames, muscles) [m].
        fiber_velocity: (frames, muscles) [m/s], negative while shortening.
        active_force: active fiber force (frames, muscles) [N].
        passive_force: passive fiber force with damping (frames, muscles) [N]; Bhargava's shortening heat needs it.
        body_mass: [kg], for the basal rate.
        slow_twitch: fraction of slow-twitch fibers, one number or (muscles).
        specific_tension: [Pa], for the masses of the muscles.
        recruitment: in Umberger's model, recruit slow-twitch fibers first (Bhargava et al. 2004), as OpenSim 4 does.
            False: the fraction is constant, as published and in OpenSim 3.

    Returns:
        Power of each muscle by term, and of the whole body [W].
    """
    if model not in MODELS:
        raise SettingsError(f"{unknown_name('metabolic model', model, MODELS)}.")
    if not body_mass > 0.0 or not specific_tension > 0.0:
        raise SettingsError(
            f"body_mass is {body_mass:g} kg, specific_tension {specific_tension:g} Pa. Both are positive."
        )
    slow = np.broadcast_to(np.asarray(slow_twitch, float), (len(arrays.names),))
    if not np.all((slow >= 0.0) & (slow <= 1.0)):
        raise SettingsError("slow_twitch: Fractions must be from 0 to 1.")
    given = [np.asarray(value, float) for value in (excitation, activation, fiber_length, fiber_velocity, active_force)]
    shape = (len(given[0]), len(arrays.names)) if given[0].ndim == 2 else ()
    if any(value.shape != shape for value in given):
        found = ", ".join(str(value.shape) for value in given)
        raise SettingsError(f"The shapes differ ({found}). Give (frames, {len(arrays.names)}) for each.")
    u, a, length, velocity, active = given
    passive = np.zeros(shape) if passive_force is None else np.asarray(passive_force, float)
    mass = muscle_mass(arrays, specific_tension)
    u, a = np.clip(u, 0.0, 1.0), np.clip(a, 0.0, 1.0)
    state = _State(arrays, mass, slow, u, a, length / arrays.optimal_fiber_length, velocity, active, active + passive)
    if model == "umberger2010":
        work = (
            -np.maximum(active, 0.0) * velocity
        )  # OpenSim's probe of Bhargava counts negative forces, this one does not
        return _limited(state, *_umberger(state, smooth, recruitment), work, smooth, BASAL_RATE * body_mass)
    return _limited(state, *_bhargava(state, smooth), -active * velocity, smooth, BASAL_RATE * body_mass)


class _State(NamedTuple):
    """Muscles and their states, (frames, muscles)."""

    arrays: MuscleArrays
    mass: Floats
    slow: Floats
    excitation: Floats
    activation: Floats
    length: Floats
    velocity: Floats
    active: Floats
    force: Floats


def _recruited(state: _State) -> tuple[Floats, Floats]:
    """Return slow- and fast-twitch excitation (Bhargava et al. 2004, eqs. 4 and 5)."""
    angle = 0.5 * np.pi * state.excitation
    return state.slow * np.sin(angle), (1.0 - state.slow) * (1.0 - np.cos(angle))


def _choose(condition: Floats, below: Floats, above: Floats, smooth: bool) -> Floats:
    """Return `above` where the condition is positive, else `below`; blended by tanh in the smooth form."""
    if not smooth:
        return np.where(condition > 0.0, above, below)
    return below + (above - below) * (0.5 + 0.5 * np.tanh(SMOOTHING * condition))


def _slow_fraction(state: _State) -> Floats:
    """Return the fraction of slow-twitch among the recruited fibers; 1 where none is recruited."""
    slow, fast = _recruited(state)
    total = slow + fast
    return np.where(total > 0.0, slow / np.where(total > 0.0, total, 1.0), 1.0)


def _umberger(state: _State, smooth: bool, recruitment: bool) -> tuple[Floats, Floats, Floats]:
    """Return activation and maintenance heat, zero, and shortening heat [W] (Umberger 2010)."""
    u, a = state.excitation, state.activation
    scale = _choose(u - a, 0.5 * (u + a), u, smooth)
    slow = _slow_fraction(state) if recruitment else state.slow
    fl = evaluate_curve(state.arrays, "active", state.length)[0]
    beyond = state.length - 1.0
    ones = np.ones_like(fl)
    maintained = _choose(beyond, ones, 0.4 + 0.6 * fl, smooth)
    heat = AEROBIC_FACTOR * scale**0.6 * (128.0 * (1.0 - slow) + 25.0) * maintained
    v = state.velocity / (state.arrays.optimal_fiber_length * state.arrays.max_contraction_velocity)
    slow_heat = MAX_SLOW_SHORTENING_HEAT * FAST_OVER_SLOW_VELOCITY
    limited = np.minimum(-v * slow_heat, MAX_SLOW_SHORTENING_HEAT)
    concentric = scale**2 * (limited * slow - v * FAST_SHORTENING_HEAT * (1.0 - slow))
    eccentric = scale * LENGTHENING_FACTOR * slow_heat * v
    per_second = state.velocity / state.arrays.optimal_fiber_length
    shortening = AEROBIC_FACTOR * _choose(per_second, concentric, eccentric, smooth) * _choose(beyond, ones, fl, smooth)
    return heat * state.mass, np.zeros_like(heat), shortening * state.mass


def _bhargava(state: _State, smooth: bool) -> tuple[Floats, Floats, Floats]:
    """Return activation, maintenance and shortening heat [W] (Bhargava et al. 2004)."""
    slow, fast = _recruited(state)
    factor = np.interp(state.length, MAINTENANCE_LENGTHS, MAINTENANCE_FACTORS)
    activation = state.mass * (40.0 * slow + 133.0 * fast)
    maintenance = state.mass * factor * (74.0 * slow + 111.0 * fast)
    alpha = _choose(state.velocity, BHARGAVA_SHORTENING * state.force, np.zeros_like(state.force), smooth)
    return activation, maintenance, -alpha * state.velocity


def _limited(
    state: _State, activation: Floats, maintenance: Floats, shortening: Floats, work: Floats, smooth: bool, basal: float
) -> MetabolicPower:
    """Return the terms with a total that is not negative and the minimum heat."""
    sum_of_terms = activation + maintenance + shortening + work
    shortening = shortening - _choose(-sum_of_terms, np.zeros_like(sum_of_terms), sum_of_terms, smooth)
    heat = activation + maintenance + shortening
    least = MIN_HEAT_RATE * state.mass * np.ones_like(heat)
    total = _choose(least - heat, heat, least, smooth) + work
    return MetabolicPower(activation, maintenance, shortening, work, total, basal)

"""Hill-type muscles as CasADi expressions, with the parameters and curves of `borelli.muscles`.

The equations are those of `borelli.muscles.hill_kernels.musculotendon`. With a rigid tendon, path length and speed give
the fiber's. With an elastic one the normalized tendon force F is a state, and its rate follows from the equilibrium
of fiber and tendon in implicit form (De Groote et al. 2016, formulation 2):

    lt(F),  x = L - lt,  l = sqrt(x^2 + h^2),  cos = x / l,  l' = (L' - lt' F') cos
    0 = (a fl(l) fv(l') + fpe(l) + damping l') cos - F

Lengths are not limited from below as in the kernels; a smooth positive part keeps x positive, so that the force of a
slack muscle goes to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sin

from borelli.errors import SettingsError, unknown_name
from borelli.muscles.hill_kernels.activation import PARK_RATE, TANH, Z0, Z1
from borelli.muscles.muscle_arrays import MuscleArrays
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.contact import positive_part
from borelli.optimal.symbolic_dynamics.force_curves import Curves, curves_of
from borelli.optimal.symbolic_dynamics.vectors import Expression

SLACK_SMOOTHING = 1e-4
"""Width [optimal fiber lengths] of the positive part of a fiber's length along the tendon."""
SWITCH_STEEPNESS = 50.0
"""Of tanh(b (u - a)), which replaces the switch of Winters' and MuJoCo's activation between its time constants."""

ACTIVATIONS = ("model", "park")
"""Choices of activation dynamics."""


@dataclass(frozen=True, slots=True)
class MuscleState:
    """Expressions of one muscle."""

    force: Expression
    """[N] along the tendon."""
    fiber_length: Expression
    """[m]"""
    fiber_velocity: Expression
    """[m/s]"""
    residual: Expression
    """Fiber minus tendon force [max isometric forces]; zero with a rigid tendon."""
    force_rate: Expression
    """Rate [1/s] of the normalized tendon force in equilibrium; None where it has no expression, or a rigid tendon."""


@dataclass(frozen=True, slots=True)
class HillMuscle:
    """Parameters of one muscle of a model, and its curves."""

    name: str
    max_isometric_force: float
    optimal_fiber_length: float
    tendon_slack_length: float
    width: float
    """[m] of the parallel fibers."""
    max_velocity: float
    """[m/s] of the fiber."""
    damping: float
    curves: Curves
    rigid: bool
    activation_kind: int
    activation_time: float
    deactivation_time: float
    activation_smoothing: float
    bounds: tuple[float, float]
    """Of activation and excitation."""

    @property
    def has_activation_dynamics(self) -> bool:
        """False where activation equals excitation."""
        return self.activation_time > 0.0 and self.deactivation_time > 0.0

    def activation_rate(self, a: Expression, u: Expression) -> Expression:
        """Return da/dt [1/s]."""
        rise, fall = self.activation_time, self.deactivation_time
        if self.activation_kind == PARK_RATE:
            return (1.0 - a) * u / rise + (u - 1.0) * a / fall
        steepness = self.activation_smoothing if self.activation_kind == TANH else SWITCH_STEEPNESS
        z = Z0 + Z1 * a
        switch = 0.5 * ca.tanh(steepness * (u - a))
        return ((0.5 + switch) / (rise * z) + (0.5 - switch) * z / fall) * (u - a)

    def rigid_tendon(self, length: Expression, speed: Expression, activation: Expression) -> MuscleState:
        """Return the muscle with a tendon of slack length, from its path's length [m] and speed [m/s]."""
        fiber, cosine = self._fiber(length - self.tendon_slack_length)
        velocity = speed * cosine
        force = self._fiber_force(fiber, velocity, activation) * cosine
        return MuscleState(self.max_isometric_force * force, fiber, velocity, 0.0, None)

    def elastic_tendon(
        self, length: Expression, speed: Expression, activation: Expression, force: Expression, rate: Expression
    ) -> MuscleState:
        """Return the muscle with a normalized tendon force as state, and its rate [1/s]."""
        slack = self.tendon_slack_length
        tendon, tendon_slope = self.curves.tendon_length(force)
        fiber, cosine = self._fiber(length - slack * tendon)
        velocity = (speed - slack * tendon_slope * rate) * cosine
        residual = self._fiber_force(fiber, velocity, activation) * cosine - force
        relative = fiber / self.optimal_fiber_length
        active = activation * self.curves.active(relative)
        needed = force / cosine - self.curves.passive(relative)
        if self.damping:
            own = self.curves.damped_velocity(active, self.damping, needed)
        else:
            own = self.curves.inverse_velocity(needed / active, activation)
        closed = None
        if own is not None:
            closed = (speed - self.max_velocity * own / cosine) / (slack * tendon_slope)
        return MuscleState(self.max_isometric_force * force, fiber, velocity, residual, closed)

    def _fiber(self, along: Expression) -> tuple[Expression, Expression]:
        """Return the fiber's length [m] and cos(phi) from its length along the tendon."""
        x = positive_part(along, SLACK_SMOOTHING * self.optimal_fiber_length)
        if self.width == 0.0:
            return x, 1.0
        length = ca.sqrt(x * x + self.width**2)
        return length, x / length

    def _fiber_force(self, length: Expression, velocity: Expression, activation: Expression) -> Expression:
        """Return the fiber force [max isometric forces]."""
        relative, v = length / self.optimal_fiber_length, velocity / self.max_velocity
        force = activation * self.curves.active(relative) * self.curves.velocity(v, activation)
        force = force + self.curves.passive(relative)
        return force + self.damping * v if self.damping else force


def hill_muscles(arrays: MuscleArrays, activation: str = "model") -> tuple[HillMuscle, ...]:
    """Return the muscles of a model's arrays.

    Args:
        arrays: Parameters of muscles.
        activation: "model" for the activation dynamics of each muscle's class, "park" for those of Park et al. (1992).

    Raises:
        ModelError: if a muscle has curves without a smooth closed form.
        SettingsError: if the activation dynamics are unknown.
    """
    if activation not in ACTIVATIONS:
        raise SettingsError(f"activation: {unknown_name('activation dynamics', activation, ACTIVATIONS)}.")
    result = []
    for m, name in enumerate(arrays.names):
        optimal = float(arrays.optimal_fiber_length[m])
        low = float(max(arrays.min_activation[m], arrays.min_control[m]))
        high = float(min(arrays.max_activation[m], arrays.max_control[m]))
        result.append(
            HillMuscle(
                name,
                float(arrays.max_isometric_force[m]),
                optimal,
                float(arrays.tendon_slack_length[m]),
                optimal * sin(float(arrays.pennation_angle[m])),
                optimal * float(arrays.max_contraction_velocity[m]),
                float(arrays.damping[m]),
                curves_of(name, int(arrays.curve_kind[m]), arrays.curve[m]),
                bool(arrays.rigid_tendon[m]),
                PARK_RATE if activation == "park" else int(arrays.activation_kind[m]),
                float(arrays.activation_time[m]),
                float(arrays.deactivation_time[m]),
                float(arrays.activation_smoothing[m]),
                (low, high),
            )
        )
    return tuple(result)

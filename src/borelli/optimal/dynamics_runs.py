"""Pure forward and pure inverse dynamics of systems in joint coordinates (Park et al. 1992, sections 2.1 and 2.2).

Forward: the controls come from a controller, the motion follows. Inverse: a motion is planned in extended coordinates,
torques are computed for it (eq. 8), and the system moves forward under them for one step; the next torques are computed
from the pose and the speeds it has attained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.optimal.casadi_import import ca
from borelli.optimal.extended_coordinates import ExtendedCoordinates
from borelli.optimal.system import System, names_of

Array = NDArray[np.float64]
Controller = Callable[[float, Array], Array]
"""Function of time [s] and states that returns the controls."""
Plan = Callable[[float], tuple[Array, Array, Array]]
"""Function of time [s] that returns extended coordinates and their first and second derivatives."""
STEP = 4e-4
"""[s] of the integration (Park et al. 1992, section 2.2)."""


class DynamicsRun(NamedTuple):
    """Motion of a system."""

    time: Array
    """(steps + 1,) [s]"""
    state: Array
    """(steps + 1, states)"""
    control: Array
    """(steps, controls), each constant over its step."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


def run_forward(
    system: System, controller: Controller, start: Mapping[str, float], duration: float, *, step: float = STEP
) -> DynamicsRun:
    """Simulate a system under a controller by the classical Runge-Kutta method.

    Args:
        system: System without algebraic variables and parameters.
        controller: Called at the begin of every step.
        start: States by name; those left out are zero.
        duration: [s]
        step: [s]

    Returns:
        Times, states and controls of the run.

    Raises:
        SettingsError: A state is unknown, the system has algebraic variables or parameters, or the motion diverges.
    """
    names = names_of(system.states)
    unknown = sorted(set(start) - set(names))
    if unknown:
        raise SettingsError(f"System {system.name!r}: {unknown_name('state', unknown[0], names)}.")
    if system.algebraics or system.parameters:
        raise SettingsError(f"System {system.name!r}: It has algebraic variables or parameters. Remove them.")
    count = max(1, round(duration / step))
    advance = runge_kutta_step(system, duration / count)
    state = np.zeros((count + 1, len(names)))
    control = np.zeros((count, len(system.controls)))
    time = np.linspace(0.0, duration, count + 1)
    state[0] = [start.get(name, 0.0) for name in names]
    for k in range(count):
        control[k] = controller(time[k], state[k])
        state[k + 1] = np.array(advance(state[k], time[k], control[k], control[k])).ravel()
        if not np.isfinite(state[k + 1]).all():
            raise SettingsError(f"System {system.name!r}: The motion diverges at {time[k]:.4g} s. Shorten `step`.")
    return DynamicsRun(time, state, control)


def run_inverse(
    system: System, coordinates: ExtendedCoordinates, plan: Plan, start: Mapping[str, float], duration: float, *,
    step: float = STEP,
) -> DynamicsRun:  # fmt: skip
    """Move a system along a plan in extended coordinates by inverse dynamics.

    Args:
        system: Tree system with a torque on every coordinate, in the order of `coordinates.coordinates`.
        coordinates: Extended coordinates of its joint coordinates.
        plan: Planned motion.
        start: Joint coordinates by name at the begin; speeds follow from the plan.
        duration: [s]
        step: [s]

    Returns:
        Times, states and controls of the run.
    """
    torques = torque_function(system)
    names = list(coordinates.coordinates)
    count = len(names)

    def controller(t: float, x: Array) -> Array:
        _, u_rate, u_acceleration = plan(t)
        rates = coordinates.rates(x[:count], u_rate)
        accelerations = coordinates.accelerations(x[:count], rates, u_acceleration)
        # torques held over a step leave a small error of speed, which would grow without this correction
        accelerations += (rates - x[count:]) / step
        return np.array(torques(x[:count], x[count:], accelerations)).ravel()

    first = coordinates.rates([start[name] for name in names], plan(0.0)[1])
    speeds = {f"{name}_speed": float(v) for name, v in zip(names, first, strict=True)}
    return run_forward(system, controller, dict(start) | speeds, duration, step=step)


def torque_function(system: System) -> ca.Function:
    """Return casadi.Function(q, v, a) -> controls of a tree system with one torque for each coordinate (eq. 8).

    The equations of motion are affine in the controls, r(u) = r(0) + B u, so u = -B^-1 r(0).

    Raises:
        SettingsError: if the system has other states or controls.
    """
    count = len(system.controls)
    if len(system.states) != 2 * count or system.algebraics or system.parameters:
        raise SettingsError(
            f"System {system.name!r} has {len(system.states)} states and {count} controls. Inverse dynamics needs one "
            "control for each coordinate, and no other states or parameters."
        )
    q, v, a, u = (ca.SX.sym(name, count) for name in "qvau")
    none = ca.SX(0, 1)
    rows = system.residual(0.0, ca.vertcat(q, v), ca.vertcat(v, a), none, u, none)[count:]
    at_zero = ca.substitute(rows, u, ca.SX.zeros(count))
    return ca.Function("torques", [q, v, a], [ca.cse(-ca.solve(ca.jacobian(rows, u), at_zero))])


def runge_kutta_step(system: System, step: float, substeps: int = 1) -> ca.Function:
    """Return casadi.Function(x, t, ua, ub) -> x after a step [s] with controls linear from ua to ub."""
    t, x0 = ca.MX.sym("t"), ca.MX.sym("x", len(system.states))
    ua, ub = (ca.MX.sym(name, len(system.controls)) for name in ("ua", "ub"))
    h, x, none = step / substeps, x0, ca.DM(0, 1)

    def rate(fraction: float, state: ca.MX) -> ca.MX:
        return system.explicit(t + fraction * step, state, ua + fraction * (ub - ua), none)[0]

    for k in range(substeps):
        begin, middle, end = (k / substeps, (k + 0.5) / substeps, (k + 1) / substeps)
        k1 = rate(begin, x)
        k2 = rate(middle, x + h / 2.0 * k1)
        k3 = rate(middle, x + h / 2.0 * k2)
        k4 = rate(end, x + h * k3)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return ca.Function("runge_kutta_step", [x0, t, ua, ub], [x])

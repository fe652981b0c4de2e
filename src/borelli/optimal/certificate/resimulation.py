"""Re-simulation of a solution by an integrator that shares nothing with the transcription.

The explicit form is integrated with the optimized controls by the Runge-Kutta pair of order 8 of Dormand and Prince
(Hairer, Norsett and Wanner 1993), with equal steps (`fixed_steps`), adaptive ones where those are not accurate, or by
the implicit Radau method of order 5 where they are too many: element by element from the solution's own states
(one-step defects), and over the whole phase from its start.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from borelli.optimal.casadi_import import ca
from borelli.optimal.certificate.fixed_steps import FixedSteps, Tolerance
from borelli.optimal.problem import Problem
from borelli.optimal.transcription.point_functions import system_parameters
from borelli.optimal.transcription.trajectory import Trajectory

Array = NDArray[np.float64]
RELATIVE_TOLERANCE = 1e-8
"""Of a step of the integrator: its errors are four orders below the default limit of one-step defects."""
ABSOLUTE_TOLERANCE = 1e-8
"""Of a step, in typical sizes of states."""
MAX_EVALUATIONS = 5_000
"""Of the explicit form in one integration by the explicit method, then by the implicit one."""
INNER_FRACTIONS = np.linspace(0.0, 1.0, 6)
"""Of each element, where path constraints are evaluated between points."""


class Resimulation(NamedTuple):
    """Comparison of one phase with the integrator."""

    defects: Array
    """(elements, states) Difference at the end of each element integrated from its own start; inf if it failed."""
    errors: Array
    """(elements, states) Difference at the end of each element, integrated from the last restart."""
    inner: list[tuple[Array, Array, Array]]
    """Times, states and controls within each element, integrated from its own start."""


class _TooManyEvaluationsError(Exception):
    """Signal that an integration is too expensive."""


class PhaseSimulator:
    """Explicit form of a phase as a function of arrays, with the optimized controls."""

    def __init__(self, problem: Problem, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        system = trajectory.phase.system
        self.p = system_parameters(problem, trajectory.phase, ca.DM(trajectory.parameters))
        self.explicit = system.explicit
        self.sizes = np.array([v.size for v in system.states])
        self.times = trajectory.start + trajectory.duration * trajectory.mesh.edges
        elements = range(trajectory.mesh.count)
        self._ends = tuple(np.array([trajectory.control(side, k) for k in elements]) for side in (0.0, 1.0))
        tolerance = Tolerance(RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE * self.sizes)
        self._steps = FixedSteps(self.explicit, self.p, len(INNER_FRACTIONS) - 1, tolerance)

    @cached_property
    def jacobian(self) -> Any:
        """casadi.Function(t, x, u, p) -> derivatives of the rates by the states, for the implicit method."""
        t, x, u, p = (ca.MX.sym(n, self.explicit.numel_in(i)) for i, n in enumerate("txup"))
        slope = self.explicit(t, x, u, p)[0]
        return ca.Function("jacobian", [t, x, u, p], [ca.jacobian(slope, x)])

    def control_at(self, element: int, t: float) -> Array:
        """Return the controls at a time in an element."""
        left, right = self.times[element], self.times[element + 1]
        return self.trajectory.control((t - left) / max(right - left, 1e-300), element)

    def integrate(self, elements: NDArray[np.intp], x: Array) -> Array:
        """Return the states (elements, `INNER_FRACTIONS`, states) from those at the starts; inf on failure."""
        first, last = (controls[elements] for controls in self._ends)
        start = self.times[elements]
        states, accurate = self._steps.integrate(x, start, self.times[elements + 1] - start, first, last)
        for k in np.flatnonzero(np.logical_not(accurate)):
            states[k] = self._integrate_adaptively(int(elements[k]), x[k])
        return states

    def _integrate_adaptively(self, element: int, x: Array) -> Array:
        left, right = self.times[element : element + 2]
        times = left + INNER_FRACTIONS * (right - left)
        if right > left and np.isfinite(x).all():
            for method in ("DOP853", "Radau"):
                states = self._integrate(method, element, x, times)
                if states is not None:
                    return states
        return np.full((len(times), len(x)), np.inf)

    def _integrate(self, method: str, element: int, x: Array, times: Array) -> Array | None:
        count = 0

        def slope(t: float, state: Array) -> Array:
            nonlocal count
            count += 1
            if count > MAX_EVALUATIONS:
                raise _TooManyEvaluationsError
            return np.array(self.explicit(t, state, self.control_at(element, t), self.p)[0]).ravel()

        def jacobian(t: float, state: Array) -> Array:
            return np.array(self.jacobian(t, state, self.control_at(element, t), self.p))

        options: dict[str, Any] = {"rtol": RELATIVE_TOLERANCE, "atol": ABSOLUTE_TOLERANCE * self.sizes}
        if method == "Radau":
            options["jac"] = jacobian
        try:
            with np.errstate(all="ignore"):
                found = solve_ivp(slope, (times[0], times[-1]), x, method=method, t_eval=times, **options)
        except (_TooManyEvaluationsError, ValueError):  # scipy refuses to factor matrices with NaN
            return None
        return found.y.T if found.success and np.isfinite(found.y).all() else None


def resimulate(problem: Problem, trajectory: Trajectory, window: float) -> Resimulation:
    """Re-simulate a phase.

    Args:
        problem: The problem.
        trajectory: Phase of the solution.
        window: Time [s] after which the long simulation restarts from the solution; inf for the whole phase.
    """
    simulator = PhaseSimulator(problem, trajectory)
    states, count = trajectory.x[trajectory.edges], trajectory.mesh.count
    own = simulator.integrate(np.arange(count), states[:-1])
    defects, errors = own[:, -1] - states[1:], np.empty((count, states.shape[1]))
    inner = []
    x, restart = states[0], simulator.times[0]
    for element in range(count):
        left, right = simulator.times[element : element + 2]
        times = left + INNER_FRACTIONS * (right - left)
        controls = np.array([simulator.control_at(element, t) for t in times])
        inner.append((times, own[element], controls))
        if right - restart > window and left > restart:
            x, restart = states[element], left
        if np.array_equal(x, states[element]):
            x = own[element, -1]
        elif np.isfinite(x).all():
            x = simulator.integrate(np.array([element]), x[None])[0, -1]
        errors[element] = x - states[element + 1]
    return Resimulation(defects, errors, inner)

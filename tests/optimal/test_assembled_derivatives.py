"""Derivatives assembled from elements against automatic differentiation of the whole program."""

import casadi as ca
import numpy as np
import pytest

from borelli.optimal import Constraint, Phase, Problem, TimeSeries, tree_system
from borelli.optimal.transcription.guess import default_guess
from borelli.optimal.transcription.transcribe import transcribe

from .swing import implicit_pendulum, pendulum, swing_up
from .symbolic_dynamics.trees import mixed_tree

END = {"angle": np.pi, "angle_speed": 0}


def two_phases(**settings):
    """Return two phases with free durations, a link, a path constraint and a cost that divides an integral."""
    cost = {"torque": lambda s: s.angle_torque**2}
    first = Phase("first", pendulum(), (0.5, 1.5), 4, (1, 2, 3), cost=cost, **settings)
    path = [Constraint("power", lambda s: s.angle_torque * s.angle_speed, upper=100.0)]
    second = Phase(
        "second", implicit_pendulum(), (0.5, 1.5), 3, end=END, path=path, integrals={"squared": cost["torque"]}
    )
    return Problem("two", [first, second], cost=lambda p: p.second.integrals.squared / p.second.duration)


def with_signals(duration):
    series = TimeSeries(("goal",), np.linspace(0.0, 2.0, 30), np.sin(np.linspace(0.0, 2.0, 30))[:, None])
    system = tree_system(mixed_tree(), signals=series)
    name = system.states[0].name
    phase = Phase("tree", system, duration, 4, cost=lambda s: (s[name] - s.goal) ** 2 + s[system.controls[0].name] ** 2)
    return Problem("signals", [phase])


PROBLEMS = {
    "swing": lambda: swing_up(5),
    "constant controls": lambda: swing_up(5, control="constant"),
    "algebraic": lambda: swing_up(4, implicit_pendulum()),
    "two phases": two_phases,
    "signals": lambda: with_signals(1.0),
}


def derivatives(problem, method):
    """Return assembled and automatic Jacobian and Hessian at a random point."""
    nlp = transcribe(problem, default_guess(problem), method=method, order=3)
    random = np.random.default_rng(1)
    w = nlp.first + 0.3 * random.standard_normal(len(nlp.first))
    sigma, multipliers = 0.7, random.standard_normal(len(nlp.lower_g))
    found = nlp.derivative_functions
    assert set(found) == {"jac_g", "hess_lag"}
    g, jacobian = found["jac_g"](w, ca.DM(0, 1))
    hessian = found["hess_lag"](w, ca.DM(0, 1), sigma, multipliers)
    lagrangian = sigma * nlp.objective + ca.dot(ca.DM(multipliers), nlp.constraints)
    plain = ca.Function(
        "plain", [nlp.w],
        [nlp.constraints, ca.jacobian(nlp.constraints, nlp.w), ca.triu(ca.hessian(lagrangian, nlp.w)[0])],
    )(w)  # fmt: skip
    return [np.array(ca.DM(one)) for one in (g, jacobian, hessian)], [np.array(ca.DM(one)) for one in plain]


@pytest.mark.parametrize("method", ["radau", "hermite-simpson"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_assembled_derivatives_are_those_of_the_program(name, method):
    assembled, plain = derivatives(PROBLEMS[name](), method)
    for one, other in zip(assembled, plain, strict=True):
        assert np.abs(other).max() > 0.1  # the comparison is not one of zeros
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_programs_that_must_be_differentiated_as_a_whole():
    """Not linear in integrals, times of signals that move, and elements that are no scalar expressions."""
    cost = {"torque": lambda s: s.angle_torque**2}
    squared = Problem("squared", [Phase("swing", pendulum(), 1.0, 4, integrals=cost)],
                      cost=lambda p: p.swing.integrals.torque**2)  # fmt: skip
    for problem, method in (
        (squared, "radau"),
        (with_signals((0.5, 1.0)), "radau"),
        (with_signals(1.0), "multiple-shooting"),
    ):
        assert transcribe(problem, default_guess(problem), method=method).derivative_functions == {}

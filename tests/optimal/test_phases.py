"""Phases, links, parameters, periodic motions, algebraic variables and rates at the start."""

import casadi as ca
import numpy as np
import pytest

from borelli.optimal import Constraint, Link, Phase, Problem, System, Variable, make_system, solve

from .example_problems import METHODS, car, car_system, squared_force
from .swing import GRAVITY, implicit_pendulum, pendulum, swing_up


@pytest.mark.parametrize("method", METHODS)
def test_a_phase_cut_in_two_costs_the_same(method):
    """Continuity and a total time of 2 s make two phases one car; where the cut lies is free."""
    system = car_system()
    first = Phase("first", system, (0.2, 5.0), 6, start={"x": 0, "v": 0}, end={"x": (0.2, 0.4)}, cost=squared_force)
    second = Phase("second", system, (0.2, 5.0), 6, end={"x": 1, "v": 0}, cost=squared_force)
    total = Constraint("total time", lambda p: p.first.duration + p.second.duration, 2.0, 2.0)
    solution = solve(Problem("two", [first, second], constraints=[total]), method=method)
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(1.5, abs=1e-8)
    assert solution.duration == pytest.approx(2.0, abs=1e-9)
    position = np.interp(0.5, solution.dataset["time"].values, solution.value("x"))
    assert position == pytest.approx(0.75 * 0.5**2 - 0.25 * 0.5**3, abs=5e-3)  # x = 3/4 t^2 - 1/4 t^3


def falling():
    return make_system(
        "ball",
        states=[Variable("y", "m"), Variable("y_speed", "m/s")],
        rates=lambda s: {"y": s.y_speed, "y_speed": -GRAVITY},
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_bounce_by_an_impulse_that_is_optimized(method):
    """A ball falls 1 m, the ground gives an impulse, and it must reach 0.5 m: v+ = sqrt(2 g 0.5)."""
    fall = Phase("fall", falling(), (0.01, 2.0), 2, start={"y": 1, "y_speed": 0}, end={"y": 0})
    rise = Phase("rise", falling(), (0.01, 2.0), 2, end={"y": 0.5, "y_speed": 0}, guess={"y_speed": 1.0})
    jump = Constraint("impulse", lambda end, start: start.y_speed - end.y_speed - end.impulse, 0.0, 0.0)
    problem = Problem(
        "bounce",
        [fall, rise],
        [Link("fall", "rise", states=["y"], conditions=[jump])],
        [Variable("impulse", "N s", 0.0, 100.0)],
        guess={"impulse": 5.0},
    )
    solution = solve(problem, method=method)
    assert solution.solved, solution.certificate
    expected = np.sqrt(2.0 * GRAVITY * 1.0) + np.sqrt(2.0 * GRAVITY * 0.5)
    assert solution.parameters["impulse"] == pytest.approx(expected, abs=1e-6)
    assert solution.dataset["phase_duration"].values == pytest.approx(
        [np.sqrt(2.0 / GRAVITY), np.sqrt(2.0 * 0.5 / GRAVITY)], abs=1e-6
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_of_the_system_is_optimized(method):
    """Least total of squared force and 4/m: J = 12 m^2 / T^3 + 4 / m with T = 2 has its minimum at 3 m^3 = 4."""
    system = make_system(
        "car",
        states=[Variable("x", "m"), Variable("v", "m/s")],
        controls=[Variable("force", "N")],
        parameters=[Variable("mass", "kg", 0.1, 10.0)],
        rates=lambda s: {"x": s.v, "v": s.force / s.mass},
    )
    phase = Phase(
        "drive",
        system,
        2.0,
        5,
        start={"x": 0, "v": 0},
        end={"x": 1, "v": 0},
        cost=squared_force,
        final_cost=lambda s: 4.0 / s.mass,
    )
    solution = solve(Problem("car", [phase], guess={"mass": 1.0}), method=method)
    assert solution.solved, solution.certificate
    assert solution.parameters["mass"] == pytest.approx((4.0 / 3.0) ** (1.0 / 3.0), abs=1e-5)
    assert set(solution.costs) == {"drive: cost", "drive: final cost"}
    assert sum(solution.costs.values()) == pytest.approx(solution.objective)


@pytest.mark.parametrize("method", ["radau", "hermite-simpson", "multiple-shooting"])
def test_periodic_motion(method):
    """An oscillator of 1 rad/s is periodic without force only after 2 pi s, with a mirror after pi s."""
    system = make_system(
        "oscillator",
        states=[Variable("x"), Variable("y")],
        controls=[Variable("force", "1", -5.0, 5.0)],
        rates=lambda s: {"x": s.y, "y": s.force - s.x},
    )
    phase = Phase(
        "swing",
        system,
        (4.0, 8.0),
        21,
        start={"x": 1.0, "y": 0.0},
        periodic=("x", "y"),
        cost=lambda s: s.force**2,
        guess={"duration": 6.0, "x": np.cos(np.linspace(0, 6, 30)), "y": -np.sin(np.linspace(0, 6, 30))},
    )
    solution = solve(Problem("periodic", [phase]), method=method)
    assert solution.solved, solution.certificate
    assert solution.duration == pytest.approx(2.0 * np.pi, abs=1e-3)
    assert solution.objective == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_implicit_form_with_an_algebraic_variable(method):
    """The implicit pendulum moves as the explicit one, and its tension is that of the closed form."""
    first = solve(swing_up(11, elements=4), method="single-shooting")
    solution = solve(swing_up(11, implicit_pendulum(), elements=4), method=method, warm_start=first)
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(first.objective, rel=1e-5)
    tension = solution.value("angle_speed") ** 2 + GRAVITY * np.cos(solution.value("angle"))
    np.testing.assert_allclose(solution.value("tension"), tension, atol=1e-6)


def test_explicit_form_by_newton():
    """0 = z^3 + z - u is not affine in z; the derived explicit form solves it."""
    t, x, xdot, z, u, p = (ca.SX.sym(n, k) for n, k in zip("txyzup", (1, 1, 1, 1, 1, 0), strict=True))
    residual = ca.Function("r", [t, x, xdot, z, u, p], [ca.vertcat(z**3 + z - u, xdot - z)])
    system = System("cubic", (Variable("x"),), (Variable("u"),), residual, algebraics=(Variable("z"),))
    for value in (-10.0, 0.3, 2.0):
        rate, root = system.explicit(0.0, [0.0], [value], [])
        assert float(root) ** 3 + float(root) == pytest.approx(value, abs=1e-9)
        assert float(rate) == pytest.approx(float(root))


@pytest.mark.parametrize("method", METHODS)
def test_static_start(method):
    """A start at rest in equilibrium: the rate there is an unknown of the problem, and zero."""
    problem = swing_up(11, pendulum(), elements=2)
    phase = problem.phases[0]
    conditions = {"angle": 0.5, "angle_speed": 0.0, "angle_speed_rate": 0.0}
    from dataclasses import replace

    solution = solve(replace(problem, phases=[replace(phase, start=conditions)]), method=method)
    assert solution.solved, solution.certificate
    assert solution.value("angle_torque")[0] == pytest.approx(GRAVITY * np.sin(0.5), abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_path_constraint_and_control_rate(method):
    """A bound on power and one on the rate of the force both bind, and hold between points."""
    limits = [
        Constraint("power", lambda s: s.power, upper=0.35),
        Constraint("force rate", lambda s: s.force_rate, lower=-2.0),
    ]
    solution = solve(car(11, elements=2, path=limits), method=method)
    free = solve(car(11, elements=2), method=method)
    assert solution.solved, solution.certificate
    assert free.value("power").max() > 0.4
    assert solution.value("power").max() <= 0.35 + 1e-6
    assert solution.objective > free.objective
    assert solution.dataset["control_rate"].values.min() >= -2.0 - 1e-6


def test_constant_controls():
    """With n constant pieces the least squared force is that of the best step function (normal equations)."""
    n = 4
    solution = solve(car(n + 1, control="constant", elements=2))
    edges = np.linspace(0.0, 2.0, n + 1)
    width = edges[1] - edges[0]
    middles = edges[:-1] + width / 2.0
    ends = np.array([width * (2.0 - middles), np.full(n, width)])
    multipliers = np.linalg.solve(ends @ ends.T / width, [1.0, 0.0])
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(multipliers[0], abs=1e-8)


def test_costs_on_integrals_of_phases():
    """A cost per distance: the integral of a phase divided by what it travels."""
    problem = car(5, cost={}, integrals={"effort": squared_force}, end={"x": (0.5, 3.0), "v": 0})
    per_distance = Problem("ratio", problem.phases, cost=lambda p: p.drive.integrals.effort / p.drive.end.x)
    solution = solve(per_distance)
    assert solution.solved, solution.certificate
    assert solution.value("x")[-1] == pytest.approx(0.5, abs=1e-6)  # effort grows with the square of the distance
    assert solution.objective == pytest.approx(1.5 * 0.5, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_time_runs_on_from_phase_to_phase(method):
    """With xdot = t over two phases of 1 s, x ends at 2: the second phase begins at 1 s."""
    system = make_system("clock", states=[Variable("x")], rates=lambda s: {"x": s.t})
    phases = [Phase("first", system, 1.0, 2, start={"x": 0.0}), Phase("second", system, 1.0, 2)]
    solution = solve(Problem("clock", phases), method=method)
    assert solution.solved, solution.certificate
    assert solution.value("x")[-1] == pytest.approx(2.0, abs=1e-9)
    assert solution.dataset["time"].values[-1] == pytest.approx(2.0)

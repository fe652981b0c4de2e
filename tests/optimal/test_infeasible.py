"""Problems without a solution end in time and name the reason; mistakes are found before solving."""

import re
import time

import casadi as ca
import pytest

from borelli.errors import SettingsError
from borelli.optimal import Constraint, Phase, Problem, Variable, make_system, solve

from .example_problems import METHODS, car, car_system, fastest, squared_force

TIME_LIMIT = 20.0
"""[s]"""


def assert_not_solved(problem, method, *names):
    begin = time.monotonic()
    solution = solve(problem, method=method, time_limit=TIME_LIMIT)
    assert time.monotonic() - begin < TIME_LIMIT + 10.0
    assert not solution.solved
    verdict = solution.certificate.verdict
    assert "No feasible trajectory" in verdict
    assert any(name in verdict for name in names), verdict
    return solution


@pytest.mark.parametrize("method", METHODS)
def test_goal_out_of_reach(method):
    """1 N on 1 kg moves 1 m at most in 2 s, not 5 m."""
    problem = fastest(11)
    phase = problem.phases[0]
    far = Phase("drive", phase.system, 2.0, 11, start=phase.start, end={"x": 5, "v": 0}, cost=squared_force)
    solution = assert_not_solved(Problem("far", [far]), method, "end: x", "end: v", "equations of motion")
    reached = float(re.search(r"x ends phase 'drive' at (\S+) m \(required 5\)", solution.certificate.verdict)[1])
    assert 0.5 < reached < 2.1  # 2 m without braking


@pytest.mark.parametrize("method", METHODS)
def test_time_too_short(method):
    assert_not_solved(fastest(11, longest=1.0), method, "end: x", "end: v", "equations of motion")


@pytest.mark.parametrize("method", ["radau", "single-shooting"])
def test_contradictory_constraints(method):
    path = [Constraint("slow", lambda s: s.v, upper=0.3)]  # 1 m in 2 s needs 0.5 m/s on average
    assert_not_solved(car(11, path=path), method, "slow", "equations of motion", "end: x")


def test_contradictory_bounds_are_found_before_solving():
    with pytest.raises(SettingsError, match=r"lower bound 2 is above the upper bound 1"):
        Variable("x", "m", 2.0, 1.0)
    with pytest.raises(SettingsError, match=r"'force' must lie in \(3, 3\), which is outside its bounds \(-1, 1\)"):
        Problem("car", [Phase("drive", car_system(max_force=1.0), 2.0, start={"force": 3.0})])
    with pytest.raises(SettingsError, match="not in order"):
        car(3, end={"x": (1.0, 0.0)})
    with pytest.raises(SettingsError, match="no bounds"):
        Constraint("free", lambda s: s.x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cost": {"effort": lambda s: ca.sqrt(s.x - 5.0)}}, "Cost 'drive: effort' is NaN or infinite"),
        ({"path": [Constraint("root", lambda s: ca.log(s.x - 5.0), upper=1.0)]}, "root is NaN or infinite"),
        ({"final_cost": lambda s: s.x / 0.0 * s.v}, "Cost 'drive: final cost' is NaN or infinite"),
        ({"cost": lambda s: ca.sqrt(s.force)}, "derivative of the cost by Phase 'drive', controls"),
    ],
)
def test_nan_is_found_before_solving(settings, message):
    with pytest.raises(SettingsError, match=message):
        solve(car(3, **settings))


def test_a_motion_that_blows_up_is_not_solved():
    """xdot = x^2 + u reaches infinity within the phase unless u holds it back: an iterate may not be finite."""
    system = make_system(
        "blow-up",
        states=[Variable("x")],
        controls=[Variable("u", "1", -30.0, 30.0, scale=1.0)],
        rates=lambda s: {"x": s.x**2 + s.u},
    )
    ends = {"start": {"x": 1.0}, "end": {"x": 60.0}}
    phase = Phase("rise", system, 1.5, 4, 3, **ends, cost=lambda s: s.u**2, guess={"u": -1.5})
    problem = Problem("blow-up", [phase])
    for method in ("radau", "hermite-simpson", "single-shooting"):
        solution = solve(problem, method=method, time_limit=TIME_LIMIT, max_iterations=200)
        assert not solution.solved
        assert "not solved: " in solution.certificate.verdict
    with pytest.raises(SettingsError, match="is NaN or infinite at the first values"):  # x = 20 lasts 0.05 s
        solve(problem, method="multiple-shooting")


def test_starts_without_finite_first_values_are_varied_less():
    """sqrt(1 + x) is NaN where a random variation of size 10 takes x below -1."""
    problem = car(3, cost=lambda s: s.force**2 + ca.sqrt(1.0 + s.x))
    solution = solve(problem, starts=4, spread=10.0)
    assert solution.solved, solution.certificate
    assert len(solution.dataset["start_objective"]) == 4


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"start": {"y": 0}}, "y"),
        ({"end": {"speed": 0}}, "speed"),
        ({"guess": {"forse": 0}}, "forse"),
        ({"bounds": {"forse": (0, 1)}}, "forse"),
        ({"periodic": ["forse"]}, "forse"),
        ({"cost": lambda s: s.forse**2}, "forse"),
        ({"path": [Constraint("wrong", lambda s: s.forse, upper=1.0)]}, "forse"),
    ],
)
def test_wrong_names_list_the_candidates(settings, name):
    with pytest.raises(SettingsError, match=f"Unknown name '{name}'.*known: .*v"):
        solve(car(3, **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "radow"}, "Unknown method 'radow'.*did you mean 'radau'"),
        ({"order": 9}, "Order 9 is not available"),
        ({"linear_solver": "pardiso"}, "Unknown linear solver 'pardiso'"),
        ({"method": "single-shooting", "gradients": "none"}, "Unknown kind of gradients"),
        ({"coarse": [{"ride": (3, 1)}]}, "Unknown phase 'ride'"),
        ({"starts": 2, "checkpoint": "x.npz"}, "A checkpoint belongs to one start"),
        ({"workers": 0}, "Give positive numbers"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        solve(car(3), **settings)


def test_wrong_phases():
    with pytest.raises(SettingsError, match="1 nodes"):
        car(1)
    with pytest.raises(SettingsError, match="numbers of elements"):
        car(3, elements=(1, 2, 3))
    with pytest.raises(SettingsError, match="duration"):
        car(3, duration=-1.0)
    with pytest.raises(SettingsError, match="name of its own"):
        Problem("twice", [*car(3).phases, *car(3).phases])
    with pytest.raises(SettingsError, match=r"expected a number or an expression"):
        solve(car(3, cost=lambda s: "force"))

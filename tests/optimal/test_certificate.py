"""Certificates reject what does not survive re-simulation, and what is not optimal."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.optimal import CertificateLimits, Constraint, Phase, Problem, Variable, make_system, solve
from borelli.optimal.certificate.certificate import Certificate, Check
from borelli.optimal.certificate.certify import certify, path_values
from borelli.optimal.certificate.optimality import check_optimality, fit_multipliers
from borelli.optimal.certificate.resimulation import resimulate
from borelli.optimal.nlp_solvers.ipopt import solve_ipopt
from borelli.optimal.transcription.guess import default_guess
from borelli.optimal.transcription.trajectory import read_trajectories
from borelli.optimal.transcription.transcribe import transcribe

from .example_problems import METHODS, car, fastest
from .swing import swing_up


def stiff(nodes, elements=1):
    """Van der Pol's oscillator with mu = 50, whose fast jumps a coarse mesh cuts short."""
    system = make_system(
        "van der Pol",
        states=[Variable("x", "1", scale=2.0), Variable("y", "1", scale=50.0)],
        controls=[Variable("u", "1", -1.0, 1.0)],
        rates=lambda s: {"x": s.y, "y": 50.0 * (1.0 - s.x**2) * s.y - s.x + s.u},
    )
    phase = Phase("relax", system, 60.0, nodes, elements, start={"x": 2.0, "y": 0.0}, cost=lambda s: s.x**2 + s.u**2)
    return Problem("stiff", [phase])


@pytest.mark.parametrize("method", ["radau", "hermite-simpson"])
def test_a_coarse_mesh_of_a_stiff_problem_is_not_solved(method):
    solution = solve(stiff(11), method=method, max_iterations=300)
    assert not solution.solved
    assert "one-step defect" in solution.certificate.verdict
    check = solution.certificate.check("one-step defect")
    assert solution.certificate.status != "converged" or check.value > 10.0 * check.limit


def test_refinement_solves_what_a_coarse_mesh_does_not():
    problem = swing_up(5)
    coarse, fine = solve(problem), solve(problem, refine=5)
    assert not coarse.solved and "one-step defect" in coarse.certificate.verdict
    assert fine.solved, fine.certificate
    assert fine.certificate.check("one-step defect").value <= CertificateLimits().defect


def solved_program(problem, method="radau"):
    nlp = transcribe(problem, default_guess(problem), method=method)
    result = solve_ipopt(
        nlp,
        nlp.first,
        watch=lambda iterate: None,
        tolerance=1e-8,
        max_iterations=500,
        time_limit=60.0,
        linear_solver="mumps",
        warm=False,
    )
    return nlp, result


def verdict(nlp, result):
    return certify(nlp, result, read_trajectories(nlp, result.w), CertificateLimits()).certificate


@pytest.mark.parametrize("method", METHODS)
def test_a_suboptimal_trajectory_is_not_solved(method):
    """A feasible car with another force history obeys the equations of motion but not the optimality conditions."""
    nlp, result = solved_program(car(5), method)
    assert verdict(nlp, result).solved
    phase = car(5, cost=lambda s: (s.force - 3.0 * s.t**2) ** 2).phases[0]
    _, other = solved_program(Problem("car", [phase]), method)
    cheat = result._replace(w=other.w)
    assert "stationarity" in verdict(nlp, cheat).verdict
    assert "No feasible" not in verdict(nlp, cheat).verdict
    fitted = result._replace(w=other.w, multipliers_w=None, multipliers_g=None)
    assert "stationarity" in verdict(nlp, fitted).verdict


def test_a_moved_state_is_not_solved():
    nlp, result = solved_program(car(5))
    w = result.w.copy()
    stages = nlp.phases[0].stages
    w[stages.offset + 5] += 1e-3
    found = verdict(nlp, result._replace(w=w))
    assert not found.solved
    assert "equations of motion" in found.verdict


def test_wrong_multipliers_are_found():
    nlp, result = solved_program(fastest(5))
    at = nlp.derivatives(result.w)
    good = check_optimality(nlp, at, result.w, result.multipliers_w, result.multipliers_g)
    assert max(good.stationarity, good.complementarity) < 1e-6
    bad = check_optimality(nlp, at, result.w, -result.multipliers_w, result.multipliers_g)
    assert bad.stationarity > 1e-2


def test_fitted_multipliers_are_those_of_the_solver():
    """The least-squares multipliers satisfy the same conditions where the solver gives none."""
    nlp, result = solved_program(car(4))
    at = nlp.derivatives(result.w)
    _, rows = fit_multipliers(nlp, at, result.w)
    np.testing.assert_allclose(rows, result.multipliers_g, atol=1e-7)
    nlp, result = solved_program(fastest(4))
    at = nlp.derivatives(result.w)
    fitted = check_optimality(nlp, at, result.w, *fit_multipliers(nlp, at, result.w))
    assert fitted.stationarity < 1e-5


def test_derivatives_are_those_of_finite_differences():
    nlp, result = solved_program(swing_up(4), "hermite-simpson")
    at = nlp.derivatives(result.w)
    random = np.random.default_rng(3)
    for _ in range(5):
        direction = random.standard_normal(len(result.w))
        step = 1e-6
        ahead, behind = nlp.derivatives(result.w + step * direction), nlp.derivatives(result.w - step * direction)
        change = (ahead.constraints - behind.constraints) / (2.0 * step)
        np.testing.assert_allclose(at.jacobian @ direction, change, atol=1e-6 * max(1.0, np.abs(change).max()))
        slope = (ahead.objective - behind.objective) / (2.0 * step)
        assert at.gradient @ direction == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_a_constraint_broken_between_points_is_found():
    """One element satisfies a bound on x at its points, 1/3 and 1; x = 1.175 t^2 - 0.475 t^3 has 1.065 m at 1.65 s."""
    path = [Constraint("rail", lambda s: s.x, upper=0.999)]
    problem = car(2, duration=2.0, end={"x": 0.9, "v": -1.0}, path=path)
    solution = solve(problem, order=2)
    assert not solution.solved
    assert "path between points" in solution.certificate.verdict
    assert "rail" in solution.certificate.verdict


def test_windows_restart_the_simulation():
    """An unstable motion (e^30 within the phase) is re-simulated in windows, or fails as a whole."""
    system = make_system(
        "unstable",
        states=[Variable("x"), Variable("v")],
        controls=[Variable("u", "1", -200.0, 200.0)],
        rates=lambda s: {"x": s.v, "v": 100.0 * s.x + s.u},
    )
    ends = {"start": {"x": 1.0, "v": 0.0}, "end": {"x": 0.0, "v": 0.0}}
    phase = Phase("fall", system, 3.0, 41, 2, **ends, cost=lambda s: s.u**2 / 1e4)
    whole = solve(Problem("unstable", [phase]))
    windows = solve(Problem("unstable", [phase]), limits=CertificateLimits(window=0.1))
    assert "re-simulation" in whole.certificate.verdict
    assert windows.solved, windows.certificate
    assert windows.certificate.check("re-simulation").value < whole.certificate.check("re-simulation").value


def test_active_bounds_have_names():
    solution = solve(fastest(21))
    active = solution.certificate.active_bounds
    assert active["Phase 'drive', controls: upper bound of force"] == pytest.approx(10 / 21, abs=1.5 / 21)
    assert not any("duration" in name for name in active)
    short = solve(replace_duration(car(3), (1.0, 1.5)))
    assert "Phase 'drive': upper bound of duration" in short.certificate.active_bounds


def replace_duration(problem, duration):
    return replace(problem, phases=[replace(problem.phases[0], duration=duration)])


def test_certificates_round_trip():
    found = Certificate("converged", (Check("re-simulation", np.inf, 1e-3, "here"),), {"bound": 0.5}, ("Reason.",))
    again = Certificate.from_json(found.to_json())
    assert again == found
    assert "not solved: Reason." in str(again)


def test_path_constraints_between_points_know_the_rates_of_controls():
    """Along the car's optimum the force falls by 1.5 N/s, and the acceleration is the force."""
    rates = [Constraint("rates", lambda s: [s.force_rate, s.v_rate - s.force], -9.0, 9.0)]
    nlp, result = solved_program(car(4, elements=2, path=rates))
    part = read_trajectories(nlp, result.w)[0]
    again = resimulate(nlp.problem, part, np.inf)
    times, states, controls = (np.concatenate(columns) for columns in zip(*again.inner, strict=True))
    values = path_values(nlp.problem, nlp.phases[0].functions, part, times, states, controls)
    np.testing.assert_allclose(values[:, 0], -1.5, atol=1e-6)
    np.testing.assert_allclose(values[:, 1], 0.0, atol=1e-9)

"""The references themselves: random systems are as specified, the proof can fail, and the dense references agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from borelli.physics.rows.rows import FLAT, make_rows

from ..called import bounded_law, one_sided_law, soft_law
from ..five_piece_laws import dead_zone_law, two_rate_law
from ..hand import Problem, hand_problems
from ..proof import law_defect, law_distances, momentum_defect, row_velocities, velocity_error
from ..systems import System, driven_chain, entry_rows, random_system
from ..twin import impulse_at, solve_boxed, solve_dantzig, solve_dense_newton, split_law

HARDNESSES = ("soft", "mixed", "hard")
KINDS = ("feasible", "conflicting")
ROUNDING = 1e-14
"""A few dozen roundings of numbers near the scale."""
AGREEMENT = 1e-9
"""References on feasible systems; loops with beta 1e-8 cost them up to 5 digits (observed: 1e-11)."""
HAND_TOLERANCE = 1e-12


def some_systems(count: int, hardness: str, kind: str, bodies: int = 3) -> list[System]:
    """Return systems with 0, 1 and 2 loops in turn."""
    return [random_system(np.random.default_rng([7, seed]), bodies, hardness, kind, seed % 3) for seed in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hardness", HARDNESSES)
def test_laws_are_continuous_and_monotone(hardness: str, kind: str) -> None:
    for system in some_systems(20, hardness, kind, 8):
        rows = system.rows
        for k, count in enumerate(rows.pieces):
            for s in range(count - 1):
                u, p = rows.break_u[k, s], rows.break_p[k, s]
                for side in (s, s + 1):
                    if rows.beta[k, side] == FLAT:
                        assert rows.c[k, side] == p
                    else:
                        scale = abs(rows.c[k, side]) + rows.beta[k, side] * abs(p)
                        assert rows.c[k, side] - rows.beta[k, side] * p == pytest.approx(u, abs=1e-15 + 1e-15 * scale)
                if s > 0:
                    assert rows.break_u[k, s - 1] <= u
                    assert rows.break_p[k, s - 1] >= p
            assert np.all((rows.beta[k, :count] > 0) | (rows.beta[k, :count] == FLAT)) or k in system.hard


@pytest.mark.parametrize("hardness", HARDNESSES)
def test_hard_rows_are_independent_tree_joints(hardness: str) -> None:
    for system in some_systems(20, hardness, "feasible", 8):
        rows = system.rows
        for k in system.hard:
            bodies = rows.body[rows.first[k] : rows.first[k + 1]]
            assert rows.pieces[k] == 1
            above = system.parent[bodies[0]]
            assert list(bodies[1:]) == ([above] if above >= 0 else [])
        J = system.jacobian()[system.hard]
        assert np.linalg.matrix_rank(J) == len(system.hard)


def test_parents_come_first_and_loops_join_unconnected_bodies() -> None:
    system = random_system(np.random.default_rng(0), 21, "mixed", "feasible", 3)
    assert np.all(system.parent < np.arange(21))
    rows, unconnected = system.rows, 0
    for k in range(system.row_count):
        pair = rows.body[rows.first[k] : rows.first[k + 1]]
        if len(pair) == 2 and system.parent[pair[0]] != pair[1]:
            assert system.parent[pair[1]] != pair[0]
            unconnected += 1
    assert unconnected == 9


def test_same_seed_same_system() -> None:
    first, second = (random_system(np.random.default_rng(5), 21, "mixed", "conflicting", 2) for _ in range(2))
    assert np.array_equal(first.momentum, second.momentum)
    assert all(np.array_equal(a, b) for a, b in zip(first.rows, second.rows, strict=True))


def test_every_law_appears_and_half_the_limits_are_on_their_kink() -> None:
    kinds, on_kink, limits = set(), 0, 0
    for system in (s for s in some_systems(60, "soft", "feasible", 8) if s.velocity is not None):
        rows, u = system.rows, row_velocities(system, system.velocity)
        kinds |= {tuple(np.sign(b[:n])) for b, n in zip(rows.beta, rows.pieces, strict=True)}
        angular_only = np.bincount(entry_rows(rows), np.abs(rows.jacobian[:, :3]).sum(1), system.row_count) == 0
        limit = (rows.pieces == 2) & angular_only
        limits += limit.sum()
        on_kink += (np.abs(u - rows.break_u[:, 0])[limit] < ROUNDING).sum()
    assert kinds == {(), (0,), (1,), (1, -1), (-1, 1, -1), (-1, 1, -1, 1, -1), (-1, 1, 1, 1, -1)}
    assert limits > 200
    assert 0.4 < on_kink / limits < 0.6


def test_conflicting_hard_rows_reach_huge_impulses() -> None:
    largest = [np.abs(solve_boxed(system)[1]).max() for system in some_systems(5, "hard", "conflicting")]
    assert 1e8 < max(largest) < 1e12


@pytest.mark.parametrize("hardness", HARDNESSES)
def test_planted_solution_passes_the_proof(hardness: str) -> None:
    planted = [system for system in some_systems(20, hardness, "feasible", 21) if system.velocity is not None]
    assert len(planted) >= 5
    for system in planted:
        assert momentum_defect(system, system.velocity, system.impulse) < ROUNDING
        assert law_defect(system, system.velocity, system.impulse) < ROUNDING


def test_proof_detects_small_errors() -> None:
    for system in some_systems(20, "mixed", "feasible", 8):
        if system.velocity is None:
            continue
        v, p = system.velocity.copy(), system.impulse.copy()
        v[3, 4] += 1e-6 * np.abs(v).max()
        assert momentum_defect(system, v, p) > 1e-10 or law_defect(system, v, p) > 1e-8
        loaded = np.argmax(np.abs(p) * (system.rows.pieces > 0))
        p[loaded] *= 1 + 1e-6
        assert momentum_defect(system, system.velocity, p) > 1e-10
        p[:] = np.nan
        assert momentum_defect(system, v, p) == law_defect(system, v, p) == np.inf


def test_law_distance_by_hand() -> None:
    """One body of 2 kg at 1 m/s: velocity scale 1, impulse scale |r| = 2."""
    rows = make_rows(np.ones(5, np.int64))
    rows.body[:], rows.jacobian[:, 0] = 0, 1.0
    one_sided_law(rows, 0, 0.5, 0.1)
    one_sided_law(rows, 1, 1.0, 0.1)
    one_sided_law(rows, 2, 1.3, 0.1)
    bounded_law(rows, 3, 1.2, 0.1, -1.0, 1.0)
    system = System(np.eye(6)[None] * 2, np.array([[2.0, 0, 0, 0, 0, 0]]), np.array([-1]), rows, np.zeros(0, np.int64))
    v, p = np.array([[1.0, 0, 0, 0, 0, 0]]), np.array([0.2, -0.1, 1.0, 1.5, 0.4])
    # Free but loaded by 0.2; pulling by 0.1; 0.2 m/s below its slope; 0.5 beyond its bound; absent but loaded by 0.4.
    assert law_distances(system, v, p) == pytest.approx([0.1, 0.05, 0.2, 0.25, 0.2])


def test_dantzig_against_all_choices() -> None:
    """Every assignment of (low, held, high) to four rows is tried; exactly one satisfies the conditions."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        root = rng.normal(size=(4, 4))
        A, b = root @ root.T + 0.1 * np.eye(4), rng.normal(size=4)
        lo, hi = -rng.random(4), rng.random(4)
        lo[0], hi[0], hi[1], lo[2] = -np.inf, np.inf, np.inf, 0.0
        solutions = []
        for sides in itertools.product((-1, 0, 1), repeat=4):
            side = np.array(sides)
            x = np.where(side < 0, lo, np.where(side > 0, hi, 0.0))
            if not np.all(np.isfinite(x)):
                continue
            held = side == 0
            x[held] = np.linalg.solve(A[np.ix_(held, held)], -(b + A[:, ~held] @ x[~held])[held]) if held.any() else 0
            w = A @ x + b
            if np.all((x >= lo) & (x <= hi)) and np.all(w[side < 0] >= 0) and np.all(w[side > 0] <= 0):
                solutions.append(x)
        assert len(solutions) == 1
        assert solve_dantzig(A, b, lo, hi) == pytest.approx(solutions[0], abs=1e-11)


def test_split_laws_add_up_to_the_polyline() -> None:
    rows = make_rows(np.ones(6, np.int64))
    soft_law(rows, 0, 0.3, 0.5)
    bounded_law(rows, 1, 0.3, 0.5, 0.2, 1.0)
    one_sided_law(rows, 2, 0.3, 0.5)
    dead_zone_law(rows, 3, 0.3, 0.2, 0.5, -1.0, 2.0)
    two_rate_law(rows, 4, 0.3, 0.2, 0.5, 0.4, 0.8, -1.0, 2.0)
    two_rate_law(rows, 5, 0.3, 0.2, 0.1, 5.0, 8.0, 0.1, 2.0)
    for u in np.linspace(-3, 3, 121):
        expected = impulse_at(rows, np.full(6, u))[0]
        for k in range(6):
            base, pieces = split_law(rows, k)
            assert all(lo <= 0 <= hi for _, _, lo, hi in pieces)
            total = base + sum(np.clip((c - u) / beta, lo, hi) for c, beta, lo, hi in pieces)
            assert total == pytest.approx(expected[k], abs=1e-12)


@pytest.mark.parametrize(
    ("hardness", "kind", "tolerance"), [("soft", "feasible", AGREEMENT), ("soft", "conflicting", 1e-6)]
)
def test_twins_agree(hardness: str, kind: str, tolerance: float) -> None:
    """Conflicts reach 1e6 N s, which costs the references another 6 digits."""
    for system in some_systems(70, hardness, kind):
        v, p = solve_boxed(system)
        other, _, _ = solve_dense_newton(system, tolerance=min(1e-9, tolerance))
        assert velocity_error(system, other, v) < tolerance
        assert momentum_defect(system, v, p) < 1e-12
        assert law_defect(system, v, p) < tolerance
        if system.velocity is not None:
            assert velocity_error(system, v, system.velocity) < tolerance


@pytest.mark.parametrize("hardness", ["mixed", "hard"])
def test_dantzig_finds_planted_solutions_at_tiny_betas(hardness: str) -> None:
    for system in some_systems(30, hardness, "feasible"):
        if system.velocity is not None:
            assert velocity_error(system, solve_boxed(system)[0], system.velocity) < AGREEMENT


@pytest.mark.parametrize("problem", hand_problems(), ids=lambda problem: problem[0])
def test_hand_problems(problem: Problem) -> None:
    _, system, v, p = problem
    assert momentum_defect(system, v, p) < HAND_TOLERANCE
    assert law_defect(system, v, p) < HAND_TOLERANCE
    for found_v, found_p in (solve_boxed(system), solve_dense_newton(system)[:2]):
        assert found_v == pytest.approx(v, abs=HAND_TOLERANCE)
        assert found_p == pytest.approx(p, abs=HAND_TOLERANCE)


def test_driven_chain_takes_many_plain_newton_iterations() -> None:
    """Some drives saturate, others do not, and Newton alone switches them one by one."""
    system = driven_chain(np.random.default_rng(0), 20)
    _, p, iterations = solve_dense_newton(system)
    saturated = np.mean(np.abs(p[60:]) >= system.rows.c[60:, 0])
    assert 0.05 < saturated < 0.95
    assert iterations > 40

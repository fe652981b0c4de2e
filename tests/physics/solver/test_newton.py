"""Solutions of the fast solver: momentum balance and laws on random systems, and agreement with dense references.

`SYSTEMS=20 pytest tests/physics/solver/test_newton.py` runs 20 times as many random systems as usual (6,000).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from borelli.physics.rows.rows import FLAT

from ..called import bounded_law, no_law
from ..five_piece_laws import dead_zone_law
from ..hand import Problem, hand_problems
from ..proof import law_defect, momentum_defect, velocity_error
from ..solve_rows import solve_rows
from ..systems import System, driven_chain, random_system
from ..twin import solve_boxed

HARDNESSES = ("soft", "mixed", "hard")
KINDS = ("feasible", "conflicting")
COUNTS = {3: 12, 8: 8, 21: 4, 60: 1}
"""Systems of each size in each class of an ordinary run."""
MULTIPLE = int(os.environ.get("SYSTEMS", "1"))
MOMENTUM_TOLERANCE = 1e-11
LAW_TOLERANCE = {"feasible": 1e-9, "conflicting": 1e-6}
"""Conflicts reach 1e10 N s next to momenta of 1 N s; 16 digits leave 6 of the latter."""
VELOCITY_TOLERANCE = 1e-6
"""The stopping rule of rows on kinks allows 1e-13 of the energy, 3e-7 of the velocity."""
TWIN_TOLERANCE = {"feasible": 1e-8, "conflicting": 1e-6}
"""Accuracy of the dense references (test_twin)."""
MAX_FACTORIZATIONS = 40

Floats = NDArray[np.float64]


def solve(system: System, **options: int) -> tuple[Floats, Floats, Any]:
    """Return the solution from a cold start; check that the inputs are unchanged."""
    before = [array.copy() for array in (system.mass, system.momentum, system.parent, *system.rows)]
    v, p, info = solve_rows(system.mass, system.momentum, system.rows, system.parent, **options)
    after = (system.mass, system.momentum, system.parent, *system.rows)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "solve_rows changed its inputs"
    return np.array(v), np.array(p), info


def find_problems(system: System, kind: str) -> list[str]:
    """Return the problems of the solution of a system."""
    v, p, info = solve(system)
    found = []
    if info.status != 0:
        found.append(f"status {info.status} after {info.iterations} iterations")
    if (momentum := momentum_defect(system, v, p)) > MOMENTUM_TOLERANCE:
        found.append(f"momentum {momentum:.1e}")
    if (law := law_defect(system, v, p)) > LAW_TOLERANCE[kind]:
        found.append(f"law {law:.1e}")
    if system.velocity is not None and (error := velocity_error(system, v, system.velocity)) > VELOCITY_TOLERANCE:
        found.append(f"velocity {error:.1e} from the planted one")
    return found


@pytest.mark.parametrize("loops", [0, 2])
@pytest.mark.parametrize("bodies", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hardness", HARDNESSES)
def test_random_systems(hardness: str, kind: str, bodies: int, loops: int) -> None:
    """Cold start, no failure; planted systems (rows exactly on kinks) return the planted velocity."""
    count = COUNTS[bodies] * MULTIPLE
    wrong = []
    for seed in range(count):
        system = random_system(np.random.default_rng([bodies, seed]), bodies, hardness, kind, loops)
        if found := find_problems(system, kind):
            wrong.append(f"seed {seed}: {', '.join(found)}")
    assert not wrong, f"{len(wrong)} of {count} wrong: " + "; ".join(wrong[:10])


@pytest.mark.parametrize(
    ("hardness", "kind"), [("soft", "feasible"), ("mixed", "feasible"), ("hard", "feasible"), ("soft", "conflicting")]
)
def test_equals_dantzig(hardness: str, kind: str) -> None:
    """Stiffer conflicts are left out: there the reference is less accurate than the proof."""
    for seed in range(10 * MULTIPLE):
        system = random_system(np.random.default_rng([99, seed]), 3, hardness, kind, seed % 3)
        assert velocity_error(system, solve(system)[0], solve_boxed(system)[0]) < TWIN_TOLERANCE[kind], f"seed {seed}"


@pytest.mark.parametrize("problem", hand_problems(), ids=lambda problem: problem[0])
def test_hand_problems(problem: Problem) -> None:
    _, system, v, p = problem
    found_v, found_p, info = solve(system)
    assert info.status == 0
    assert found_v == pytest.approx(v, abs=1e-12)
    assert found_p == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("links", [40, 80, 160, 320, 1000])
def test_driven_chain(links: int) -> None:
    """Hundreds of stiff drives saturate; plain Newton would need about one factorization per link."""
    system = driven_chain(np.random.default_rng(links), links)
    v, p, info = solve(system)
    assert info.status == 0
    assert info.factorizations <= MAX_FACTORIZATIONS
    assert momentum_defect(system, v, p) <= MOMENTUM_TOLERANCE
    assert law_defect(system, v, p) <= LAW_TOLERANCE["feasible"]


@pytest.mark.parametrize("hardness", HARDNESSES)
def test_closed_and_unlimited_laws(hardness: str) -> None:
    """Zero bounds (friction without load), no bounds, and rows with a fixed impulse, mixed with the others.

    Stiff rows without bounds conflict.
    """
    for seed in range(4 * MULTIPLE):
        rng = np.random.default_rng([7, seed])
        system = random_system(rng, 21, hardness, "feasible", seed % 3)
        rows = system.rows
        for k in np.flatnonzero(rows.pieces == 3):
            c, beta = rows.c[k, 1], rows.beta[k, 1]
            fate = rng.integers(5)
            if fate == 0:
                bounded_law(rows, k, c, beta, 0.0, 0.0)
            elif fate == 1:
                bounded_law(rows, k, c, beta, -np.inf, np.inf)
            elif fate == 2:
                dead_zone_law(rows, k, c, 0.01, beta, -np.inf, np.inf)
            elif fate == 3:
                rows.pieces[k], rows.beta[k, 0], rows.c[k, 0] = 1, FLAT, 0.01 * rng.normal()
        assert not find_problems(replace(system, velocity=None), "conflicting"), f"seed {seed}"


def test_interior_point_and_newton_agree() -> None:
    """Velocities are unique: each method alone must find the same."""
    for seed in range(8 * MULTIPLE):
        system = random_system(np.random.default_rng([98, seed]), 8, "soft", "feasible", seed % 3)
        v, _, newton = solve(system, patience=60)
        w, _, interior = solve(system, patience=0)
        assert newton.interior_iterations == 0
        assert newton.status == interior.status == 0
        assert interior.iterations <= 2
        assert velocity_error(system, w, v) < TWIN_TOLERANCE["feasible"], f"seed {seed}"


@pytest.mark.parametrize("hardness", HARDNESSES)
def test_same_input_same_bits(hardness: str) -> None:
    system = random_system(np.random.default_rng(1), 21, hardness, "feasible", 2)
    other = random_system(np.random.default_rng(2), 8, hardness, "feasible", 1)
    first = solve(system)
    solve(other)
    second = solve(system)
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_internal_rows_keep_momentum() -> None:
    """A driven chain without rows to the world: its rows conserve momentum."""
    system = driven_chain(np.random.default_rng(4), 40)
    for k in np.flatnonzero(np.diff(system.rows.first) == 1):
        no_law(system.rows, k)
    hard = np.setdiff1d(system.hard, np.flatnonzero(system.rows.pieces == 0))
    v, _, info = solve(replace(system, hard=hard))
    assert info.status == 0
    momentum = np.einsum("nij,nj->ni", system.mass, v)[:, :3]
    assert np.abs(momentum.sum(0) - system.momentum[:, :3].sum(0)).max() <= 1e-12 * np.abs(momentum).sum()

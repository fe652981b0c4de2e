"""Control experiments: a quick run of each, whose criteria must pass; complete runs are slow."""

import numpy as np
import pytest

from borelli.experiments import control
from borelli.experiments.catalog import run_experiment
from borelli.experiments.control import chain
from borelli.experiments.control import closed_loop as loop

CONTROL = list(control.EXPERIMENTS)


def check(outcome):
    assert outcome.claims
    assert outcome.passed, [claim for claim in outcome.claims if not claim.passed]
    kinds = {path.suffix for path in outcome.files}
    assert {".csv", ".json", ".png", ".gif"} <= kinds and all(path.stat().st_size > 0 for path in outcome.files)


@pytest.mark.parametrize("name", CONTROL)
def test_quick_run(name, tmp_path):
    check(run_experiment(name, tmp_path, quick=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROL)
def test_complete_run(name, tmp_path):
    check(run_experiment(name, tmp_path))


def test_all_ten_experiments_are_listed():
    assert CONTROL == [
        "pd-convergence", "pd-large-step", "plank-gravity", "chain", "curl-obstacle", "ball-hit", "carry-block", "mace",
        "net", "loop",
    ]  # fmt: skip


def test_spring_torques_balance_gravity():
    # moments of gravity about each hinge, summed over planks
    angles = chain.equilibrium_angles(3)
    slopes = np.cumsum(angles)
    x = np.concatenate([[0.0], np.cumsum(chain.LENGTH * np.cos(slopes))])
    for i in range(3):
        moment = sum(9.8 * (0.5 * (x[j] + x[j + 1]) - x[i]) for j in range(i, 3))
        inertia = (3 - i) * ((3 - i) * chain.LENGTH) ** 2 / 3.0
        assert -25.0 * inertia * angles[i] == pytest.approx(moment, rel=1e-9)


def test_least_squares_fit_of_four_targets():
    targets = np.array(list(loop.CONFLICTING.values()))
    best = np.linalg.lstsq(loop.SIGNS[:, None], targets, rcond=None)[0][0]
    assert best == pytest.approx(loop.LEAST_SQUARES_ANGLE) == pytest.approx(0.25)

"""Jump, arm swing, reach and foreign body: small runs that must show what the paper's figures show."""

import numpy as np
import pytest

from borelli.experiments import armswing, jump, reach
from borelli.experiments.movement import inertia_swap as foreign_body

SEEN = []


def run(module, folder):
    outcome = module.run(folder, recording=None, quick=True, say=SEEN.append)
    assert outcome.files and all(path.is_file() for path in outcome.files)
    assert "synthetic" in outcome.about
    return outcome


def test_a_jump_is_reproduced_from_the_ground_and_a_limited_torque(tmp_path):
    outcome = run(jump, tmp_path)
    assert outcome.passed
    row = outcome.rows[0]
    assert row["residual_torque_max_nm"] <= 100.0 + 1e-9  # Fig. 2
    assert row["rise_made_m"] == pytest.approx(row["rise_asked_m"], abs=0.03)
    assert row["flight_s"] == pytest.approx(2 * 2.1 / 9.81, abs=0.1)  # takeoff at 2.1 m/s


def test_clamped_arms_cost_more_and_the_more_the_stiffer(tmp_path):
    outcome = run(armswing, tmp_path)
    assert outcome.passed
    assert (np.diff([row["effort_nms"] for row in outcome.rows[1:]]) > 0.0).all()


def test_far_targets_cost_more(tmp_path):
    assert run(reach, tmp_path).passed


def test_another_body_walks_the_same_way(tmp_path):
    outcome = run(foreign_body, tmp_path)
    assert outcome.passed
    assert outcome.rows[1]["mass_kg"] == pytest.approx(50.0)

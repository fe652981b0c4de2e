"""Jump, arm swing, reach and inertia swap: small runs that reproduce the published findings."""

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.experiments.catalog import run_experiment
from borelli.experiments.movement.jump import MIN_BOX_HEIGHT, from_above_ground, synthetic_jump


def run(name, folder):
    outcome = run_experiment(name, folder, quick=True)
    assert outcome.files and all(path.is_file() for path in outcome.files)
    assert "synthetic" in outcome.about
    return outcome


def test_jump_is_reproduced_with_a_limited_residual_moment(tmp_path):
    outcome = run("jump", tmp_path)
    assert outcome.passed
    row = outcome.rows[0]
    assert row["residual_torque_max_nm"] <= 100.0 + 1e-9  # Fig. 2
    assert row["rise_simulated_m"] == pytest.approx(row["rise_reference_m"], abs=0.03)
    assert row["flight_s"] == pytest.approx(2 * 2.1 / 9.81, abs=0.1)  # takeoff at 2.1 m/s


@pytest.mark.parametrize("missing", [[], [0], [30, 31], [90]], ids=str)
@pytest.mark.filterwarnings("error")
def test_jump_off_a_box_starts_near_the_ground_also_with_missing_poses(missing):
    jump = synthetic_jump()
    time, height = jump.data["time"].values, [c.name for c in jump.model.coordinates].index("root_z")
    coordinates = jump.coordinates.copy()
    coordinates[:40, height] += 2.0 * MIN_BOX_HEIGHT
    coordinates[missing] = np.nan
    cut = from_above_ground(make_motion(jump.model, coordinates, time, jump.rate))
    assert cut.data["time"].values[0] == (0.0 if missing == [0] else time[40])


def test_cost_of_clamped_arms_rises_with_cocontraction(tmp_path):
    outcome = run("armswing", tmp_path)
    assert outcome.passed
    assert (np.diff([row["torque_time_integral_nms"] for row in outcome.rows[1:]]) > 0.0).all()


def test_far_targets_cost_more(tmp_path):
    assert run("reach", tmp_path).passed


def test_walk_with_the_inertia_of_another_body(tmp_path):
    outcome = run("inertia-swap", tmp_path)
    assert outcome.passed
    assert outcome.rows[1]["mass_kg"] == pytest.approx(50.0)

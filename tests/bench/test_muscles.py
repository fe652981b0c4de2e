"""Muscle jobs of the benchmark: their motion, their accuracy figures and their peers."""

import numpy as np
import pytest

from borelli.bench import load_sharing, muscle_paths, peers_mujoco

from ..muscles.sample_models import moving_and_conditional_model
from ..shared_data import shared

needs_mujoco = pytest.mark.skipif(peers_mujoco.absent() is not None, reason=str(peers_mujoco.absent()))


@pytest.fixture(scope="module")
def skeleton():
    return muscle_paths.make_job(None, frames=24)


def test_skeleton_has_the_muscles_of_the_requirement(skeleton):
    assert skeleton.muscles >= 228
    found = muscle_paths.measure_paths(skeleton)
    assert found.us > 0.0
    assert found.accuracy["wrapped"] > 1.0  # wraps are at work in this motion


def test_coordinates_stay_within_their_ranges(skeleton):
    for values, c in zip(skeleton.rows.T, skeleton.model.coordinates, strict=True):
        if not c.locked and c.name not in {one.coordinate for one in skeleton.model.couplings}:
            assert values.min() >= c.lower and values.max() <= c.upper, c.name


def test_virtual_work_error_is_that_of_wrong_arms(monkeypatch):
    model = moving_and_conditional_model()
    job = muscle_paths.PathJob(model, np.array([[0.3]]))
    assert muscle_paths.virtual_work_error(job) < 1e-9
    right = muscle_paths.muscle_paths(model, job.rows).moment_arm[0, 0, 0]
    compute = muscle_paths.muscle_paths

    def wrong(*given):
        paths = compute(*given)
        paths.moment_arm[:] *= 1.01
        return paths

    monkeypatch.setattr(muscle_paths, "muscle_paths", wrong)
    assert muscle_paths.virtual_work_error(job) == pytest.approx(0.01 * abs(right), rel=1e-4)


def test_sharing_of_the_skeleton_is_attained_and_optimal(skeleton):
    found = load_sharing.measure_skeleton(skeleton).accuracy
    assert found["muscles"] >= 228 and found["coordinates"] > 100
    assert found["kkt_residual"] < 1e-8


def test_missing_folder_is_stated(tmp_path):
    found, absent = muscle_paths.available(None)
    assert list(found) == ["skeleton"] and all("BORELLI_DATA" in reason for reason in absent.values())
    assert "does not exist" in muscle_paths.available(tmp_path)[1]["rajagopal2016"]
    assert "BORELLI_DATA" in load_sharing.missing_files(None)
    assert "does not exist" in load_sharing.missing_files(tmp_path)


@pytest.mark.data
@pytest.mark.crosscheck
@needs_mujoco
def test_mujoco_has_the_same_lengths():
    job = muscle_paths.make_job(shared(muscle_paths.MODELS["myolegs"][1]), frames=24)
    assert muscle_paths.measure_mujoco(job).accuracy["length_difference_m"] < 1e-7


@pytest.mark.data
@pytest.mark.crosscheck
def test_walk_agrees_with_opensim(opensim_python):
    """As required of load sharing on identical input; here each has its own inverse dynamics and paths."""
    found = load_sharing.measure_opensim(shared(""), opensim_python).accuracy
    assert found["activation_difference"] <= 0.01
    assert found["force_difference_n"] <= 5.0

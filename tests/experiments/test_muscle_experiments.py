"""Experiments with muscles: claims of short runs, and the motion of a push-up."""

import numpy as np
import pytest

from borelli.experiments import muscles
from borelli.experiments.catalog import run_experiment
from borelli.experiments.muscles.pushup_motion import pushup_model, pushup_path
from borelli.model.kinematics import poses


def check(outcome):
    missed = [claim for claim in outcome.claims if not claim.passed]
    assert outcome.claims and not missed, missed
    assert {".csv", ".json", ".png"} <= {path.suffix for path in outcome.files}
    assert all(path.stat().st_size > 0 for path in outcome.files)


@pytest.mark.parametrize("name", muscles.EXPERIMENTS)
def test_claims_of_short_runs_hold(name, tmp_path):
    check(run_experiment(name, tmp_path, quick=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", muscles.EXPERIMENTS)
def test_claims_of_complete_runs_hold(name, tmp_path):
    check(run_experiment(name, tmp_path))


def test_hands_and_feet_are_planted_throughout_the_planned_motion():
    path = pushup_path(pushup_model())
    model, phases = path.model, np.linspace(0.0, 1.0, 37)  # between the solved ones, too
    q = path.at(phases)
    position, rotation = poses(model, q)
    names = [body.name for body in model.bodies]
    for name in ("hand_r", "hand_l", "foot_r", "foot_l"):
        b = names.index(name)
        assert np.abs(position[:, b] - position[0, b]).max() < 1e-4, name
        assert np.abs(rotation[:, b] - rotation[0, b]).max() < 1e-3, name
    for coordinate, values in zip(model.coordinates, q.T, strict=True):
        assert values.min() >= coordinate.lower - 1e-9 and values.max() <= coordinate.upper + 1e-9, coordinate.name
    elbow = q[:, [c.name for c in model.coordinates].index("elbow_flexion_r")]
    assert (np.diff(elbow) > 0.0).all() and np.degrees(elbow[-1] - elbow[0]) > 30.0

"""Scaled models: wrap objects and moving points follow their body, fibers keep their normalized lengths."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError
from borelli.model.io import read_model
from borelli.model.resize import resize_body
from borelli.muscles.fiber_tuning import tune_fibers
from borelli.muscles.paths import muscle_paths
from borelli.people.human import human

from ..shared_data import shared


def scaled_whole(model, factor):
    for body in model.bodies:
        model = resize_body(model, body.name, (factor,) * 3)
    return model


def normalized(model, rows):
    length = muscle_paths(model, rows).length
    slack, fiber = (
        np.array([getattr(m, key) for m in model.muscles]) for key in ("tendon_slack_length", "optimal_fiber_length")
    )
    return (length - slack) / fiber


def random_rows(model, count=20):
    generator = np.random.default_rng(3)
    bounds = [(c.lower, c.upper) if c.rotational and np.isfinite(c.lower) else (0.0, 0.0) for c in model.coordinates]
    return np.array([generator.uniform(*np.array(bounds).T) for _ in range(count)])


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_larger_body_has_larger_paths(factor):
    """Lengths and moment arms of a body that is larger in all directions scale exactly, over wraps and patellas too."""
    model = human(muscles=True)
    other = scaled_whole(model, factor)
    rows = random_rows(model)
    own, known = muscle_paths(other, rows), muscle_paths(model, rows)
    np.testing.assert_allclose(own.length, factor * known.length, rtol=1e-9)
    rotational = [c.rotational for c in model.coordinates]
    np.testing.assert_allclose(own.moment_arm[:, :, rotational], factor * known.moment_arm[:, :, rotational], atol=1e-8)
    tuned = tune_fibers(other, model)
    for muscle, before in zip(tuned.muscles, model.muscles, strict=True):
        assert muscle.optimal_fiber_length == pytest.approx(factor * before.optimal_fiber_length, rel=1e-9)
        assert muscle.tendon_slack_length == pytest.approx(factor * before.tendon_slack_length, rel=1e-6)


@pytest.mark.data
def test_fibers_keep_their_lengths_in_a_scaled_leg():
    """A thigh 10 % longer and a pelvis 10 % wider change fibers by up to a half, and by a fifth of it when tuned."""
    model = read_model(shared("opensim/rajagopal2016/Rajagopal2016.osim"))
    other = resize_body(resize_body(model, "femur_r", (1.0, 1.1, 1.0)), "pelvis", (1.0, 1.0, 1.1))
    rows = random_rows(model)
    before = normalized(model, rows)
    change, tuned = (np.abs(normalized(one, rows) - before) for one in (other, tune_fibers(other, model)))
    assert change.max() > 0.3
    assert tuned.max() < 0.2 and np.sqrt((tuned**2).mean()) < 0.25 * np.sqrt((change**2).mean())


def test_models_without_muscles_and_other_models():
    plain = human()
    assert tune_fibers(plain, plain) is plain
    muscled = human(muscles=True)
    with pytest.raises(ModelError, match="different muscles"):
        tune_fibers(plain, muscled)
    with pytest.raises(ModelError, match="different coordinates"):
        tune_fibers(muscled, replace(muscled, joints=muscled.joints[:-1]))

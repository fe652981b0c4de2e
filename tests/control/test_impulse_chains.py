"""Chains of hinges under impulse-based control, against the figures of `spec/impulse-pd` (rows of its table)."""

import numpy as np
import pytest

from .impulse_worlds import follow, planks, recursion

QUARTER = -0.5 * np.pi


@pytest.mark.parametrize(
    ("stiffness", "left"),
    # what the spec's prototype has left after 4 s (row 9), to the digits it gives
    [(10.0, 7.05e-5), (25.0, 7.25e-8), (100.0, 4e-16)],
)
@pytest.mark.parametrize("gravity", [0.0, 9.8])
def test_plank_reaches_its_target_whatever_gravity(stiffness, left, gravity):
    data = follow(planks(1, 1.0, gravity), {"q0": 0.0}, stiffness, duration=4.0, initial_coordinates={"q0": QUARTER})
    errors = data["coordinate_value"].values[:, 0]
    assert abs(errors[-1]) <= left
    np.testing.assert_allclose(errors, recursion(stiffness, 1 / 240, QUARTER, 960), atol=2e-14)


def test_plank_follows_the_recursion():
    data = follow(planks(1, 1.0), {"q0": 0.0}, duration=2.0, step=1 / 60, initial_coordinates={"q0": QUARTER})
    # row 11: 4.4e-16 in the prototype; here Newton's method ends below 1e-14
    np.testing.assert_allclose(data["coordinate_value"].values[:, 0], recursion(25.0, 1 / 60, QUARTER, 120), atol=1e-14)


def test_plank_takes_steps_of_a_second():
    data = follow(planks(1, 1.0), {"q0": 0.0}, duration=5.0, step=1.0, initial_coordinates={"q0": QUARTER})
    expected = [-0.101, -9.9e-4, 3.2e-4, 2.5e-5, 5.3e-7]  # row 12
    np.testing.assert_allclose(data["coordinate_value"].values[1:, 0], expected, rtol=0.02)
    assert data["joint_gap"].max() < 1e-14


@pytest.mark.parametrize(("count", "most"), [(5, 1.8e-14), (20, 8.5e-13)])  # row 13
def test_chain_is_lifted_to_the_level(count, most):
    model = planks(count)
    data = follow(model, {c.name: 0.0 for c in model.coordinates}, duration=6.0, step=1 / 60, initial_coordinates={"q0": QUARTER})
    expected = np.zeros((361, count))
    expected[:, 0] = recursion(25.0, 1 / 60, QUARTER, 360)
    assert np.abs(data["coordinate_value"].values - expected).max() <= most
    assert abs(data["body_position"].values[-1, -1, 2]) < 1e-10
    assert data["joint_gap"].max() < 1e-13


def test_chain_curls():
    model, angle = planks(8), np.deg2rad(40.0)
    data = follow(model, {c.name: angle for c in model.coordinates}, duration=5.0, step=1 / 60, initial_coordinates={"q0": 0.0})
    assert np.rad2deg(np.abs(data["coordinate_value"].values[-1] - angle)).max() < 2.0e-6  # row 15


@pytest.mark.parametrize("rate", [30, 60, 120])
def test_moving_targets_are_met(rate):
    model = planks(4)
    moving = {c.name: lambda t: 0.5 * np.sin(2.0 * t) for c in model.coordinates}
    data = follow(model, moving, duration=4.0, step=1 / rate)
    assert np.abs(data["coordinate_value"] - data["coordinate_target"]).max() < 8e-8  # row 17


@pytest.mark.parametrize("stiffness", [0.01, 1.0, 100.0, 1e4, 1e8])
@pytest.mark.parametrize("step", [1e-5, 1e-3, 1 / 60, 1.0])
def test_chain_is_stable_with_any_gain_and_step(stiffness, step):
    """Whatever the load, each joint follows the recursion, which never diverges."""
    model = planks(4)
    start = {"q0": -1.2, "q1": 0.8, "q2": -0.5, "q3": 1.0}
    data = follow(model, dict.fromkeys(start, 0.0), stiffness, duration=30 * step, step=step, initial_coordinates=start)
    expected = np.stack([recursion(stiffness, step, error, 30) for error in start.values()], axis=1)
    np.testing.assert_allclose(data["coordinate_value"].values, expected, atol=1e-10)
    assert data["joint_gap"].max() < 1e-9

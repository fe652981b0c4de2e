"""The full skeleton in the soft step: it falls as one, tumbles freely, and stays within its joint limits."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.people.full_skeleton import full_skeleton
from borelli.physics.simulate import simulate

MODEL = replace(full_skeleton(), ground=())
INNER = MODEL.coordinates[6:]


def thrown(step: float, seed: int = 1):
    """Half a second of weightless tumbling from a random pose, all joints moving."""
    rng = np.random.default_rng(seed)
    inside = rng.uniform(0.3, 0.7, len(INNER))
    start = {c.name: float(c.lower + share * (c.upper - c.lower)) for c, share in zip(INNER, inside, strict=True)}
    speeds = {c.name: float(speed) for c, speed in zip(INNER, rng.uniform(-3.0, 3.0, len(INNER)), strict=True)}
    model = replace(MODEL, gravity=(0.0, 0.0, 0.0))
    return simulate(model, duration=0.5, step=step, initial_coordinates=start, initial_velocities=speeds)


def test_falls_as_one_body() -> None:
    result = simulate(MODEL, duration=0.5, step=1 / 240)
    drop = result["body_position"].values[-1] - result["body_position"].values[0]
    expected = -9.81 * 0.5 * (0.5 + 1 / 240) / 2.0  # sum of g h^2 k over 120 steps
    assert drop == pytest.approx(np.tile([0.0, 0.0, expected], (75, 1)), abs=1e-9)


def test_tumbles_without_external_forces_and_within_limits() -> None:
    coarse, fine = thrown(1 / 240), thrown(1 / 960)
    drift = []
    for result in (coarse, fine):
        linear, angular = result["linear_momentum"].values, result["angular_momentum"].values
        assert linear == pytest.approx(np.tile(linear[0], (len(linear), 1)), abs=1e-10)
        drift.append(np.abs(angular - angular[0]).max() / np.linalg.norm(angular[0]))
    # rotation is integrated to first order: the drift decreases with the step
    assert drift[1] < 0.5 * drift[0] < 0.05
    # free fingertips reach 170 rad/s: in the longer steps they jump over a limit
    value = fine["coordinate_value"].values[:, 6:]
    beyond = [np.maximum(c.lower - value[:, i], value[:, i] - c.upper).max() for i, c in enumerate(INNER)]
    assert max(beyond) < 0.001  # [rad]
    assert fine["joint_gap"].values.max() < 0.001  # [m or rad]


def test_segments_do_not_overlap_in_the_default_pose() -> None:
    model = replace(MODEL, gravity=(0.0, 0.0, 0.0), self_collision=True)
    result = simulate(model, duration=10 / 240, step=1 / 240)
    assert result["kinetic_energy"].values.max() < 1e-20

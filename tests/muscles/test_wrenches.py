"""Muscles are internal forces: their wrenches add up to zero and do the work that moment arms state."""

import numpy as np
import pytest

from borelli.analysis.dynamics.rnea import coordinate_forces, forward_kinematics, subtree_wrenches
from borelli.errors import SettingsError
from borelli.muscles.paths import muscle_paths
from borelli.muscles.wrenches import body_wrenches
from borelli.people.human import human


@pytest.fixture(scope="module")
def pulled():
    """Return a model, poses, forces [N] and the wrenches of the forces."""
    model = human(muscles=True)
    generator = np.random.default_rng(1)
    rest = np.array([c.default for c in model.coordinates])
    q = rest + 0.3 * generator.standard_normal((6, len(rest)))
    force = generator.uniform(0.0, 1000.0, (6, len(model.muscles)))
    return model, q, force, body_wrenches(model, q, force)


def test_wrenches_add_up_to_zero(pulled):
    *_, wrench = pulled
    assert np.abs(wrench).max() > 1e3
    np.testing.assert_allclose(wrench.sum(axis=1), 0.0, atol=1e-12 * np.abs(wrench).sum())


def test_work_is_that_of_moment_arms(pulled):
    """Generalized forces of the wrenches are R F, but for the work of points that move in their body (quadriceps)."""
    model, q, force, _ = pulled
    fixed = np.array([not any(point.motion for point in muscle.path) for muscle in model.muscles])
    own = np.where(fixed, force, 0.0)
    zero = np.zeros_like(q)
    kinematics = forward_kinematics(model, q, zero, zero)
    wrench = body_wrenches(model, q, own).transpose(1, 2, 0)
    torque = coordinate_forces(kinematics, subtree_wrenches(kinematics, wrench))
    expected = np.einsum("fmc,fm->fc", muscle_paths(model, q).moment_arm, own)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())


def test_wrong_shapes_are_refused(pulled):
    model, q, force, _ = pulled
    with pytest.raises(SettingsError, match="shape"):
        body_wrenches(model, q, force[:, 1:])

"""Rotations of many frames at once, against scipy's."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from borelli.numerics.quaternions import quaternion_from_matrix, rotation_matrix, smallest_rotation

DIRECTIONS = arrays(float, 3, elements=st.floats(-1.0, 1.0)).filter(lambda v: np.linalg.norm(v) > 1e-3)


@given(start=DIRECTIONS, end=DIRECTIONS)
@example(start=np.array([1.0, 0.0, 0.0]), end=np.array([-1.0, 1e-6, 0.0]))
def test_the_smallest_rotation_leads_from_one_direction_to_the_other(start, end):
    a, b = start / np.linalg.norm(start), end / np.linalg.norm(end)
    angle = 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
    rotation = smallest_rotation(start, end)
    np.testing.assert_allclose(rotation @ a, b, atol=2e-8)  # opposite within 1e-8 rad
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-14)
    assert Rotation.from_matrix(rotation).magnitude() == pytest.approx(angle, abs=2e-8)


@pytest.mark.parametrize("direction", [(0.0, 0.0, -9.81), (1.0, 2.0, 3.0)])
def test_opposite_directions_are_half_a_revolution_apart(direction):
    rotation = smallest_rotation(np.array(direction), -np.array(direction))
    np.testing.assert_allclose(rotation @ direction, -np.array(direction), atol=1e-14)
    assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_matrices_are_those_of_scipy():
    rotations = Rotation.random(50, random_state=3)
    quaternions = rotations.as_quat(scalar_first=True)
    matrices = rotation_matrix(quaternions)
    np.testing.assert_allclose(matrices, rotations.as_matrix(), atol=1e-15)
    found = np.array([quaternion_from_matrix(matrix) for matrix in matrices])
    np.testing.assert_allclose(np.abs((found * quaternions).sum(axis=1)), 1.0, atol=1e-15)

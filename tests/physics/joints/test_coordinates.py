"""Coordinates from poses and back; velocities compared with finite differences."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelli.model.model import Body, Model

from ..jointed import SCENES, SLOPE_TOLERANCE, Jointed, compile_scene, make_joint, make_pair, unit_twists

MOVING = [scene for scene in SCENES if scene != "fixed"]
ROUND_TRIP = 1e-9
"""Rounding of an angle near the end of its range: sqrt of double precision would be 1e-8."""

PAIRS = {scene: make_pair(scene) for scene in MOVING}
values = st.lists(st.floats(-1.4, 1.4), min_size=6, max_size=6)
wide = st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6)


@pytest.mark.parametrize("scene", MOVING)
@settings(max_examples=25, deadline=None)
@given(coordinates=values, speeds=values, start=st.floats(-0.1, 0.1))
def test_coordinates_and_velocities_are_recovered_from_poses(
    scene: str, coordinates: list[float], speeds: list[float], start: float
) -> None:
    pair = PAIRS[scene]
    count = len(pair.coordinate)
    q, u = np.array(coordinates[:count]), np.array(speeds[:count])
    pair.set_coordinates(q, u)
    pair.coordinate += start
    pair.fill()
    np.testing.assert_allclose(pair.coordinate, q, atol=ROUND_TRIP)
    np.testing.assert_allclose(pair.speed, u, atol=100.0 * ROUND_TRIP)


@pytest.mark.parametrize("scene", MOVING)
@settings(max_examples=25, deadline=None)
@given(coordinates=wide)
def test_coordinates_fitted_from_a_distant_start_give_the_same_pose(scene: str, coordinates: list[float]) -> None:
    """Either twin of the angles describes the same poses."""
    if scene in ("knee", "scapula"):
        coordinates = [c / 3.0 for c in coordinates]
    pair = PAIRS[scene]
    pair.set_coordinates(np.array(coordinates[: len(pair.coordinate)]))
    position, rotation = pair.position.copy(), pair.rotation
    pair.coordinate[:] = 0.0
    pair.fill()
    pair.set_coordinates(pair.coordinate.copy())
    np.testing.assert_allclose(pair.position, position, atol=10.0 * ROUND_TRIP)
    np.testing.assert_allclose(pair.rotation, rotation, atol=10.0 * ROUND_TRIP)


@pytest.mark.parametrize("scene", MOVING)
def test_velocities_are_the_derivatives_of_coordinates(scene: str) -> None:
    """For every motion of either body, allowed by the joint or not."""
    pair = make_pair(scene)
    pair.set_coordinates(np.random.default_rng(3).uniform(-0.9, 0.9, len(pair.coordinate)))
    for twist in unit_twists(2):
        pair.twist[:] = twist
        pair.fill()
        slope = pair.slope(lambda s: s.coordinate, twist)
        np.testing.assert_allclose(pair.speed, slope, rtol=SLOPE_TOLERANCE, atol=SLOPE_TOLERANCE)


@pytest.mark.parametrize("scene", MOVING)
def test_twists_move_bodies_along_the_coordinates(scene: str) -> None:
    rng = np.random.default_rng(4)
    pair = make_pair(scene)
    q, u = rng.uniform(-0.9, 0.9, len(pair.coordinate)), rng.normal(size=len(pair.coordinate))
    pair.set_coordinates(q, u)
    later, earlier = pair.moved_along(pair.twist, 1e-5), pair.moved_along(pair.twist, -1e-5)
    np.testing.assert_allclose((later.coordinate - earlier.coordinate) / 2e-5, u, atol=SLOPE_TOLERANCE)


@pytest.mark.parametrize("scene", ["hinge", "universal", "ball", "planar"])
def test_angles_count_full_revolutions(scene: str) -> None:
    pair = make_pair(scene)
    turning = [i for i, c in enumerate(pair.model.coordinates) if c.rotational and i != 1]
    for angle in np.linspace(0.0, 5.0 * pi, 60):
        q = np.zeros(len(pair.coordinate))
        q[turning[-1]] = angle
        last = pair.coordinate.copy()
        pair.set_coordinates(q)
        pair.coordinate[:] = last
        pair.fill()
        np.testing.assert_allclose(pair.coordinate, q, atol=ROUND_TRIP)


def test_ball_passes_gimbal_lock_smoothly() -> None:
    """Through b = 90 degrees all angles stay continuous, and velocities stay bounded."""
    pair = make_pair("ball")
    q = np.array([0.3, 1.2, -0.2])
    pair.set_coordinates(q)
    pair.fill()
    for b in [*np.arange(1.2, 2.0, 0.05).tolist(), pi / 2.0]:
        last = pair.coordinate.copy()
        pair.set_coordinates(np.array([0.3, b, -0.2]), np.array([0.1, 1.0, 0.2]))
        pair.coordinate[:] = last
        pair.fill()
        np.testing.assert_allclose(pair.coordinate, [0.3, b, -0.2], atol=1e-6)
        assert abs(pair.speed).max() < 2.0


def test_velocities_at_gimbal_lock_are_damped() -> None:
    """An angular velocity that would need infinite velocities of a and c results in at most a hundred times its own."""
    pair = make_pair("ball")
    for b in (pi / 2.0, pi / 2.0 + 1e-4, pi / 2.0 - 1e-4):
        pair.set_coordinates(np.array([0.3, b, -0.2]))
        pair.twist[1, 3:] = np.random.default_rng(0).normal(size=3)
        pair.fill()
        assert abs(pair.speed).max() <= 100.0 * np.linalg.norm(pair.twist[1, 3:] - pair.twist[0, 3:])


def chain() -> Jointed:
    """A chain of every kind of joint from the ground, listed from the end."""
    rng = np.random.default_rng(2)
    bodies = tuple(Body(f"b{i}", 1.0, tuple(rng.normal(scale=0.1, size=3))) for i in range(len(SCENES)))
    names = ["ground", *(body.name for body in bodies)]
    joints = [make_joint(scene, f"j{i}", names[i], names[i + 1], rng) for i, scene in enumerate(SCENES)]
    return compile_scene(Model("chain", bodies, tuple(reversed(joints))))


def test_tree_poses_do_not_depend_on_the_order_of_joints() -> None:
    scene = chain()
    rng = np.random.default_rng(1)
    q, u = rng.uniform(-0.8, 0.8, len(scene.coordinate)), rng.normal(size=len(scene.coordinate))
    scene.set_coordinates(q, u)
    scene.fill()
    np.testing.assert_allclose(scene.coordinate, q, atol=ROUND_TRIP)
    np.testing.assert_allclose(scene.speed, u, atol=100.0 * ROUND_TRIP)
    np.testing.assert_allclose(scene.row_velocity(scene.twist), 0.0, atol=1e-9)

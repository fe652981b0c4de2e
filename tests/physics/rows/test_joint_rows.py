"""Constraint rows of joints: directions against finite differences of the errors, and the motions they allow."""

from __future__ import annotations

import numpy as np
import pytest

from borelli.model.model import Body, Coordinate, Joint, Model, Softness
from borelli.physics.arrays.joints import canonical_axes
from borelli.physics.rows.joint_rows import POINT_KINDS

from ..jointed import (
    HOLDERS,
    ODD_AXES,
    SCENES,
    SLOPE_TOLERANCE,
    STEP,
    Jointed,
    compile_scene,
    joint_errors,
    make_pair,
    unit_twists,
)

ONLY_WHERE_CLOSED = ("fixed", "slider", "slider odd", "knee", "scapula")
"""Their rows are the errors' slopes on the closed joint; elsewhere they differ by a fraction of the error."""
ROUNDING = 1e-12


def check_directions(pair: Jointed) -> None:
    count = pair.joints.row_ranges[1]
    for twist in unit_twists(len(pair.position)):
        pair.twist[:] = twist
        pair.fill()
        slope = pair.slope(joint_errors, twist)
        parent = pair.joints.parent[0]
        if parent >= 0 and pair.joints.kind[0] in POINT_KINDS:
            # these rows are the rate of the gap relative to the parent
            slope[:3] -= np.cross(twist[parent, 3:], joint_errors(pair)[:3])
        np.testing.assert_allclose(pair.row_velocity(twist)[:count], slope, rtol=SLOPE_TOLERANCE, atol=SLOPE_TOLERANCE)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("scene", SCENES)
def test_directions_are_the_slopes_of_the_errors(scene: str, holder: str) -> None:
    rng = np.random.default_rng(5)
    pair = make_pair(scene, holder)
    pair.set_coordinates(rng.uniform(-0.9, 0.9, len(pair.coordinate)))
    check_directions(pair)


@pytest.mark.parametrize("holder", ["dynamic", "kinematic", "kinematic child"])
@pytest.mark.parametrize("scene", [s for s in SCENES if s not in ONLY_WHERE_CLOSED])
def test_directions_are_right_on_an_open_joint(scene: str, holder: str) -> None:
    rng = np.random.default_rng(6)
    pair = make_pair(scene, holder)
    pair.set_coordinates(rng.uniform(-0.9, 0.9, len(pair.coordinate)))
    opened = pair.moved_along(rng.normal(scale=0.2, size=(2, 6)), 1.0)
    check_directions(opened)


@pytest.mark.parametrize("scene", ["fixed", "slider", "slider odd"])
def test_rotated_joint_torque_is_along_its_rotation_vector(scene: str) -> None:
    """The rate of |phi|^2 / 2 is phi times the rows' velocity at any angle."""
    rng = np.random.default_rng(7)
    pair = make_pair(scene)
    pair.set_coordinates(rng.uniform(-0.9, 0.9, len(pair.coordinate)))
    opened = pair.moved_along(np.concatenate([np.zeros((2, 3)), rng.normal(size=(2, 3))], axis=1), 1.0)
    twist = rng.normal(size=(2, 6))
    opened.fill()
    phi, u = joint_errors(opened)[-3:], opened.row_velocity(twist)[-3:]
    rate = opened.slope(lambda s: np.array([joint_errors(s)[-3:] @ joint_errors(s)[-3:] / 2.0]), twist)[0]
    assert np.linalg.norm(phi) > 0.1
    assert abs(phi @ u - rate) < SLOPE_TOLERANCE


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("scene", SCENES)
def test_allowed_motion_moves_no_row(scene: str, holder: str) -> None:
    rng = np.random.default_rng(8)
    pair = make_pair(scene, holder)
    for _ in range(5):
        pair.twist[:] = rng.normal(size=pair.twist.shape)
        pair.set_coordinates(rng.uniform(-0.9, 0.9, len(pair.coordinate)), rng.normal(size=len(pair.coordinate)))
        pair.fill()
        count = pair.joints.row_ranges[1]
        np.testing.assert_allclose(pair.row_velocity(pair.twist)[:count], 0.0, atol=ROUNDING * 100)
        np.testing.assert_allclose(joint_errors(pair), 0.0, atol=ROUNDING)


@pytest.mark.parametrize("scene", SCENES)
def test_rows_and_coordinates_add_up_to_six(scene: str) -> None:
    """The rows of a joint are independent and leave exactly its coordinates."""
    pair = make_pair(scene, "ground")
    pair.set_coordinates(np.full(len(pair.coordinate), 0.3))
    pair.fill()
    constrained = pair.rows.jacobian[: pair.rows.first[pair.joints.row_ranges[1]]]
    assert len(constrained) + len(pair.coordinate) == 6
    assert len(constrained) == 0 or np.linalg.matrix_rank(constrained, tol=1e-3) == len(constrained)


@pytest.mark.parametrize("scene", ["knee", "scapula"])
def test_custom_joint_rows_contain_the_full_pose_error(scene: str) -> None:
    """On an open joint, its rows contain all of the pose error its coordinates cannot represent."""
    rng = np.random.default_rng(9)
    pair = make_pair(scene)
    pair.set_coordinates(rng.uniform(-0.5, 0.5, len(pair.coordinate)))
    opened = pair.moved_along(rng.normal(scale=0.05, size=(2, 6)), 1.0)
    residual = opened.joints.motion.residual[0]
    assert np.linalg.norm(residual) > 1e-3
    assert np.linalg.norm(joint_errors(opened)) == pytest.approx(np.linalg.norm(residual), rel=1e-9)


def test_custom_joint_pose_follows_its_functions() -> None:
    """R = Rz(q) Rx(f2) Ry(0.1) and t = sum of axes times functions, written out."""
    pair = make_pair("knee", "ground")
    joints, q = pair.joints, 0.7
    f = [part.function(q) for part in pair.model.joints[0].motion]
    pair.set_coordinates(np.array([q]))
    c, s = np.cos(f), np.sin(f)
    rz = np.array([[c[0], -s[0], 0.0], [s[0], c[0], 0.0], [0.0, 0.0, 1.0]])
    rx = np.array([[1.0, 0.0, 0.0], [0.0, c[1], -s[1]], [0.0, s[1], c[1]]])
    ry = np.array([[c[2], 0.0, s[2]], [0.0, 1.0, 0.0], [-s[2], 0.0, c[2]]])
    rotation = joints.frame_parent[0].T @ pair.rotation[1] @ joints.frame_child[0]
    anchor = pair.position[1] + pair.rotation[1] @ joints.anchor_child[0]
    np.testing.assert_allclose(rotation, rz @ rx @ ry, atol=ROUNDING)
    np.testing.assert_allclose(joints.frame_parent[0].T @ (anchor - joints.anchor_parent[0]), f[3:], atol=ROUNDING)


@pytest.mark.parametrize("kind", ODD_AXES)
def test_odd_axes_become_right_handed(kind: str) -> None:
    axes = ODD_AXES[kind]
    rotation, sign = canonical_axes(Joint("j", kind, "a", "b", axes=axes))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=ROUNDING)
    assert np.linalg.det(rotation) > 0.0
    for i, axis in enumerate(axes):
        own = (sign if i == 2 else 1.0) * rotation[:, i]
        np.testing.assert_allclose(own, axis / np.linalg.norm(axis), atol=ROUNDING)


def test_law_of_joint_rows_is_their_softness() -> None:
    soft = Softness(stiffness=5000.0, damping=20.0)
    names = tuple(Coordinate(f"q{i}") for i in range(3))
    joint = Joint("hip", "ball", "a", "b", coordinates=names, softness=soft)
    scene = compile_scene(Model("m", (Body("a", 1.0), Body("b", 1.0)), (joint,)))
    scene.fill()
    alpha, beta = soft.at_step(STEP)
    gap = scene.position[1] - scene.position[0]
    np.testing.assert_allclose(scene.rows.c[:3, 0], -alpha / STEP * gap)
    np.testing.assert_array_equal(scene.rows.beta[:3, 0], beta)
    np.testing.assert_array_equal(scene.rows.pieces[:3], 1)
    assert scene.names == ["hip/x", "hip/y", "hip/z"]
    assert scene.units == ["N"] * 3

"""Posing by dragging: closed forms of small arms, the least motion, joint limits, and goals out of range."""

from math import acos, atan2, cos, hypot, pi, sin

import numpy as np
import pytest

from borelli.control.drag_posing import MAX_COORDINATE_CHANGE, drag_point
from borelli.errors import SettingsError
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import generalized_forces, point_positions, poses
from borelli.model.model import Coordinate, Frame, Joint, Model, Shape
from borelli.people.human import human

LENGTHS = (0.4, 0.3, 0.2)
Z_TO_X = Frame(orientation=(0.5**0.5, 0.0, 0.5**0.5, 0.0))


def arm(links, **limits):
    """Rods in the plane y = 0, hinged about -y, so that angles count from x towards z."""
    bodies, joints = [], []
    for i, length in enumerate(LENGTHS[:links]):
        bodies.append(body_from_shapes(f"rod_{i}", (Shape("capsule", (0.02, length / 2), Z_TO_X),)))
        at = Frame() if not i else Frame((LENGTHS[i - 1] / 2, 0.0, 0.0))
        angle = Coordinate(f"q{i}", *limits.get(f"q{i}", (0.0,)))
        joints.append(
            Joint(f"j{i}", "hinge", f"rod_{i - 1}" if i else "ground", f"rod_{i}", at, Frame((-length / 2, 0.0, 0.0)),
                  axes=((0.0, -1.0, 0.0),), coordinates=(angle,))
        )  # fmt: skip
    return Model("arm", tuple(bodies), tuple(joints))


def tip(links):
    return (LENGTHS[links - 1] / 2, 0.0, 0.0)


def mass_matrix(model, q):
    count = len(q)
    still = np.zeros((count, count))
    return generalized_forces(model, np.tile(q, (count, 1)), still, np.eye(count), gravity=False)


def jacobian(model, q, body, point):
    """Jacobian of a point, by central differences."""
    e = 1e-6 * np.eye(len(q))
    ahead, behind = (point_positions(model, q + s * e, [body], [point])[:, 0] for s in (1.0, -1.0))
    return (ahead - behind).T / 2e-6


def test_two_links_satisfy_the_law_of_cosines():
    a, b = LENGTHS[:2]
    goal = (0.35, 0.0, 0.25)
    found = drag_point(arm(2), {"q0": 0.2, "q1": 0.9}, "rod_1", tip(2), goal)
    distance = hypot(goal[0], goal[2])
    elbow = pi - acos((a * a + b * b - distance**2) / (2 * a * b))
    shoulder = atan2(goal[2], goal[0]) - atan2(b * sin(elbow), a + b * cos(elbow))
    assert found.reached
    np.testing.assert_allclose(list(found.coordinates.values()), [shoulder, elbow], atol=1e-9)


def test_a_short_drag_is_the_motion_with_the_least_kinetic_energy():
    model, q = arm(3), np.array([0.3, 0.8, -0.5])
    point = point_positions(model, q, ["rod_2"], [tip(3)])[0, 0]
    displacement = np.array([3e-6, 0.0, -4e-6])
    goal = tuple(point + displacement)
    found = drag_point(model, dict(zip(("q0", "q1", "q2"), q, strict=True)), "rod_2", tip(3), goal)
    moved = np.array(list(found.coordinates.values())) - q
    inverse = np.linalg.inv(mass_matrix(model, q))
    j = jacobian(model, q, "rod_2", tip(3))[[0, 2]]
    impulse = np.linalg.solve(j @ inverse @ j.T, displacement[[0, 2]])
    # Weinstein et al. 2008: dv = M^-1 J^T l; the rest is of second order, (26 microradians)^2
    np.testing.assert_allclose(moved, inverse @ j.T @ impulse, rtol=0.0, atol=1e-9)


def test_the_center_of_mass_of_a_free_body_moves_by_the_dragging_impulse():
    """Momentum: the pull is the only external force, so the center of mass moves along it."""
    model, e = human(), 1e-4
    names = [c.name for c in model.coordinates]
    start = {c.name: c.default for c in model.coordinates} | {"elbow_flexion_r": 0.8, "shoulder_flexion_r": 0.5}
    q = np.array([start[name] for name in names])
    point = point_positions(model, q, ["hand_r"], [(0.0, 0.0, -0.1)])[0, 0]
    found = drag_point(model, start, "hand_r", (0.0, 0.0, -0.1), tuple(point + np.array([e, 0.0, 0.0])))
    after = np.array([found.coordinates[name] for name in names])

    def centers(values):
        position, rotation = poses(model, values)
        return (position + np.einsum("fbij,bj->fbi", rotation, [b.center_of_mass for b in model.bodies]))[0]

    def pulled(values):
        return point_positions(model, values, ["hand_r"], [(0.0, 0.0, -0.1)])[0, 0]

    mass = np.array([b.mass for b in model.bodies])
    momentum = (mass[:, None] * (centers(after) - centers(q))).sum(axis=0)
    inverse = np.linalg.inv(mass_matrix(model, q))
    j = jacobian(model, q, "hand_r", (0.0, 0.0, -0.1))
    impulse = np.linalg.solve(j @ inverse @ j.T, pulled(after) - pulled(q))
    np.testing.assert_allclose(momentum, impulse, atol=2e-3 * np.linalg.norm(impulse))


def test_joint_limits_are_respected_to_the_last_digit():
    model = arm(3, q1=(0.5, 0.3, 0.7), q2=(0.0, -0.1, 0.1))
    found = drag_point(model, {}, "rod_2", tip(3), (0.0, 0.0, 0.5))
    assert 0.3 <= found.coordinates["q1"] <= 0.7 and -0.1 <= found.coordinates["q2"] <= 0.1
    # folded as far as limits allow, the tip is farther than 0.5 m from the shoulder: the nearest is on the line
    assert not found.reached
    folded = point_positions(model, [0.0, 0.7, 0.1], ["rod_2"], [tip(3)])[0, 0]
    assert found.distance == pytest.approx(np.linalg.norm(folded) - 0.5, abs=1e-8)
    assert found.coordinates["q1"] == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("goal", [(1.2, 0.0, 0.5), (-3.0, 0.0, 0.1)])
def test_a_goal_out_of_range_ends_at_the_nearest_point(goal):
    found = drag_point(arm(2), {"q0": 0.2, "q1": 0.9}, "rod_1", tip(2), goal)
    distance = LENGTHS[0] + LENGTHS[1]
    assert not found.reached
    assert found.distance == pytest.approx(np.linalg.norm(goal) - distance, abs=1e-8)
    np.testing.assert_allclose(found.point, distance * np.array(goal) / np.linalg.norm(goal), atol=1e-4)


def test_fixed_bodies_and_coordinates_do_not_move():
    model = human()
    fixed = ("foot_r", "foot_l", "head_flexion")
    goal = (0.5, -0.2, 0.6)
    found = drag_point(model, {"knee_flexion_r": 0.3}, "hand_r", (0.0, 0.0, -0.1), goal, fixed=fixed)
    assert found.reached and found.coordinates["head_flexion"] == 0.0
    rest = {c.name: c.default for c in model.coordinates} | {"knee_flexion_r": 0.3}
    index = [b.name for b in model.bodies].index
    for foot in fixed[:2]:
        (before, rotation), (after, rotated) = (
            poses(model, list(values.values())) for values in (rest, found.coordinates)
        )
        np.testing.assert_allclose(after[0, index(foot)], before[0, index(foot)], atol=1e-9)
        np.testing.assert_allclose(rotated[0, index(foot)], rotation[0, index(foot)], atol=1e-9)
    for c in model.coordinates:
        assert c.lower <= found.coordinates[c.name] <= c.upper


def test_straight_legs_bend_when_the_pelvis_is_dragged_down():
    """Along straight legs nothing can move at first order."""
    model = human()
    found = drag_point(model, {}, "pelvis", (0.0, 0.0, 0.0), (-0.25, 0.0, 0.75), fixed=("foot_r", "foot_l"))
    assert found.reached
    assert found.coordinates["knee_flexion_r"] > 0.5
    # and both alike, by symmetry
    assert found.coordinates["knee_flexion_l"] == pytest.approx(found.coordinates["knee_flexion_r"], abs=1e-5)


def test_many_small_drags_equal_one():
    model, start = arm(3), {"q0": 0.3, "q1": 0.8, "q2": -0.5}
    begin = point_positions(model, list(start.values()), ["rod_2"], [tip(3)])[0, 0]
    end = np.array([0.2, 0.0, 0.1])
    once = drag_point(model, start, "rod_2", tip(3), tuple(end)).coordinates
    pieces = start
    for s in np.linspace(0.0, 1.0, 38)[1:]:
        pieces = drag_point(model, pieces, "rod_2", tip(3), tuple(begin + s * (end - begin))).coordinates
    there = np.array([once[name] for name in start])
    # of first order in the step: over a path of 0.63 m and 4 rad, 0.0005 rad at 5 mm and 0.00002 at 1.25 mm
    np.testing.assert_allclose([pieces[name] for name in start], there, atol=1e-3)


def test_a_loop_stays_closed():
    from borelli.scenes.gallery import gallery_scene

    scene = gallery_scene("four_bar")
    model = scene.model
    point = point_positions(model, [scene.coordinates.get(c.name, 0.0) for c in model.coordinates], ["crank"],
                            [(0.1, 0.0, 0.0)])[0, 0]  # fmt: skip
    goal = np.array([0.2 * cos(1.5), 0.0, 0.5 + 0.2 * sin(1.5)])
    assert np.linalg.norm(point - goal) > 0.05
    found = drag_point(model, scene.coordinates, "crank", (0.1, 0.0, 0.0), tuple(goal))
    ends = point_positions(model, list(found.coordinates.values()), ["coupler", "rocker"],
                           [(0.275, 0.0, 0.0), (0.225, 0.0, 0.0)])[0]  # fmt: skip
    assert found.reached
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"body": "rod_9"}, r"drag_point: [Uu]nknown body 'rod_9' \(did you mean 'rod_\d'\?\).* rod_0, rod_1"),
        ({"fixed": ("q7",)}, "drag_point: fixed: [Uu]nknown body or coordinate 'q7'"),
        ({"goal": (0.0, np.nan, 0.0)}, r"drag_point: goal: Element \[1\] is nan\. Pass finite numbers"),
        ({"fixed": ("rod_1",)}, "Body 'rod_1' is fixed and cannot be dragged"),
    ],
)
def test_invalid_arguments_raise(change, match):
    arguments = {"body": "rod_1", "goal": (0.3, 0.0, 0.1), "fixed": ()} | change
    with pytest.raises(SettingsError, match=match):
        drag_point(arm(2), {}, arguments["body"], tip(2), arguments["goal"], fixed=arguments["fixed"])


def test_a_body_without_joint_raises():
    loose = Model("loose", (body_from_shapes("ball", (Shape("sphere", (0.1,)),)),))
    with pytest.raises(SettingsError, match="child of no joint"):
        drag_point(loose, {}, "ball", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))


def test_steps_are_shorter_than_the_range_of_limit_rows():
    from borelli.physics.rows.coordinate_rows import LIMIT_RANGE_ROTATION

    assert MAX_COORDINATE_CHANGE < LIMIT_RANGE_ROTATION

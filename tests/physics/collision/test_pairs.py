"""Contacts between two shapes: closed forms, and a slow reference that searches over directions.

The gap of two convex shapes A, B along a unit direction n is min over A of n.x minus max over B of n.x. Their
signed distance is the largest gap over all n: positive the distance, negative minus the depth. So a contact's depth d
and normal n are right when gap(n) = -d and no other direction has a larger gap.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from borelli.model.model import Shape

from .collide_scene import KINDS, ORIGIN, SIZES, UPRIGHT, contacts, random_rotation, rotation_about, shape, tables

PAIRS = list(combinations_with_replacement(KINDS, 2))
ROUND = ("sphere", "capsule", "box")
MARGIN = 0.05
FACE_BIAS = 0.011
"""Fraction of the depth by which two boxes' faces are preferred to their edges, plus a margin."""


def support(kind, corners, pose, directions):
    """Return max over the shape of direction . x, for each direction."""
    position, rotation = pose
    along = directions @ rotation
    size = np.array(SIZES.get(kind, ()))
    if kind == "sphere":
        own = size[0] * np.linalg.norm(along, axis=1)
    elif kind == "box":
        own = np.abs(along) @ size
    elif kind == "capsule":
        own = size[0] * np.linalg.norm(along, axis=1) + size[1] * np.abs(along[:, 2])
    elif kind == "cylinder":
        own = size[0] * np.hypot(along[:, 0], along[:, 1]) + size[1] * np.abs(along[:, 2])
    elif kind == "ellipsoid":
        own = np.linalg.norm(along * size, axis=1)
    else:
        own = (along @ corners.T).max(axis=1)
    return own + directions @ position


class Twin:
    """Signed distance of two shapes by search over directions."""

    def __init__(self, kinds, shapes, poses):
        self.kinds = kinds
        self.corners = [shapes.vertices[shapes.first[i] : shapes.first[i + 1]] for i in range(2)]
        self.poses = [(p + r @ shapes.position[i], r) for i, (p, r) in enumerate(poses)]

    def gap(self, directions):
        a, b = zip(self.kinds, self.corners, self.poses, strict=True)
        return -support(*a, -directions) - support(*b, directions)

    def signed_distance(self):
        count = np.arange(2000) + 0.5
        polar, azimuth = np.arccos(1 - count / 1000), np.pi * (1 + 5**0.5) * count
        sphere = np.stack([np.cos(azimuth) * np.sin(polar), np.sin(azimuth) * np.sin(polar), np.cos(polar)], 1)
        gaps = self.gap(sphere)
        rng = np.random.default_rng(0)
        best = -np.inf
        for start in np.argsort(-gaps)[:2]:
            direction, here, spread = sphere[start], gaps[start], 0.05
            while spread > 1e-8:
                tries = direction + spread * rng.normal(size=(48, 3))
                tries /= np.linalg.norm(tries, axis=1)[:, None]
                found = self.gap(tries)
                if found.max() > here:
                    direction, here = tries[found.argmax()], found.max()
                else:
                    spread *= 0.5
            best = max(best, here)
        return best


def random_poses(rng, spread=0.15):
    return [(rng.normal(size=3) * spread, random_rotation(rng)), (ORIGIN, random_rotation(rng))]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_depth_and_normal_are_the_minimum_translation(one, two):
    rng = np.random.default_rng(7)
    shapes = tables(shape(one), shape(two))
    # along the contact's own normal; against every other direction
    exact, least = (1e-12, 1e-6) if one in ROUND and two in ROUND else (1e-8, 1e-4)
    in_contact = 0
    for _ in range(12):
        poses = random_poses(rng)
        found = contacts(shapes, poses, MARGIN)
        twin = Twin((one, two), shapes, poses)
        distance = twin.signed_distance()
        assert (len(found.depth) > 0) == (distance < MARGIN)
        if len(found.depth) == 0:
            continue
        in_contact += 1
        deepest = found.depth.argmax()
        depth, own = found.depth[deepest], twin.gap(found.normal[deepest][None])[0]
        if one == two == "box":
            exact = least = FACE_BIAS * abs(depth) + 1e-6
            if distance > 0.0:  # separated boxes: the distance is that along the nearest face or edge direction
                assert own <= distance + 1e-9
                continue
        assert own == pytest.approx(-depth, abs=exact)
        assert depth <= -distance + least
    assert in_contact > 5


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_translation_by_the_depth_separates_the_shapes(one, two):
    rng = np.random.default_rng(8)
    shapes = tables(shape(one), shape(two))
    slack = 1e-6 if one in ROUND and two in ROUND else 1e-4
    for _ in range(10):
        (position, rotation), other = random_poses(rng, 0.1)
        found = contacts(shapes, [(position, rotation), other])
        if len(found.depth):
            deepest = found.depth.argmax()
            depth, normal = found.depth[deepest], found.normal[deepest]
            buffer = slack + (FACE_BIAS * depth if one == two == "box" else 0.0)
            separated = contacts(shapes, [(position + (depth + buffer) * normal, rotation), other])
            assert len(separated.depth) == 0
            if not one == two == "box":
                remaining = contacts(shapes, [(position + (depth - slack) * normal, rotation), other])
                assert 0.0 < remaining.depth.max() <= 1.01 * slack


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_swapping_the_shapes_reverses_the_normal(one, two):
    rng = np.random.default_rng(9)
    there, back = tables(shape(one), shape(two)), tables(shape(two), shape(one))
    for _ in range(10):
        poses = random_poses(rng)
        result, reference = contacts(there, poses), contacts(back, poses[::-1])
        assert (len(result.depth) > 0) == (len(reference.depth) > 0)
        if len(result.depth):
            a, b = result.depth.argmax(), reference.depth.argmax()
            assert result.depth[a] == pytest.approx(reference.depth[b], abs=1e-5)
            assert result.normal[a] == pytest.approx(-reference.normal[b], abs=2e-3)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_contacts_rotate_with_the_world(one, two):
    rng = np.random.default_rng(10)
    shapes = tables(shape(one), shape(two))
    smooth = "ellipsoid" in (one, two) or "cylinder" in (one, two)
    for _ in range(10):
        poses = random_poses(rng)
        world, offset = random_rotation(rng), rng.normal(size=3)
        result = contacts(shapes, poses)
        rotated = contacts(shapes, [(world @ p + offset, world @ r) for p, r in poses])
        assert len(result.depth) == len(rotated.depth)
        # on smooth shapes the search converges: the normal is accurate to the root of the depth's accuracy
        assert rotated.depth == pytest.approx(result.depth, abs=1e-6)
        assert rotated.normal == pytest.approx(result.normal @ world.T, abs=2e-3 if smooth else 1e-6)
        assert rotated.point == pytest.approx(result.point @ world.T + offset, abs=2e-3 if smooth else 1e-6)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_point_lies_midway_between_the_surfaces(one, two):
    rng = np.random.default_rng(11)
    shapes = tables(shape(one), shape(two))
    for _ in range(10):
        poses = random_poses(rng)
        twin = Twin((one, two), shapes, poses)
        found = contacts(shapes, poses, MARGIN)
        for point, normal, depth in zip(found.point, found.normal, found.depth, strict=True):
            # A's surface is half the depth below the point, B's half above; both points are inside their shapes
            sphere = np.vstack([rng.normal(size=(500, 3)), normal, -normal])
            sphere /= np.linalg.norm(sphere, axis=1)[:, None]
            a, b = zip(twin.kinds, twin.corners, twin.poses, strict=True)
            tolerance = 1e-3 * max(SIZES["box"]) + 1e-6 if one == two == "box" else 1e-6
            if not (one == two == "box" and depth < 0.0):
                assert np.all(sphere @ (point - 0.5 * depth * normal) <= support(*a, sphere) + tolerance)
                assert np.all(sphere @ (point + 0.5 * depth * normal) <= support(*b, sphere) + tolerance)


def test_sphere_contact_is_on_the_line_of_centers():
    shapes = tables(Shape("sphere", (0.3,)), Shape("sphere", (0.2,)))
    found = contacts(shapes, [(np.array([0.0, 0.45, 0.0]), UPRIGHT), (ORIGIN, UPRIGHT)])
    assert found.depth == pytest.approx([0.05])
    assert found.normal[0] == pytest.approx([0.0, 1.0, 0.0])
    assert found.point[0] == pytest.approx([0.0, 0.175, 0.0])


def test_concentric_shapes_get_a_unit_normal():
    for one, two in PAIRS:
        found = contacts(tables(shape(one), shape(two)), [(ORIGIN, UPRIGHT), (ORIGIN, UPRIGHT)])
        assert np.linalg.norm(found.normal, axis=1) == pytest.approx(np.ones(len(found.depth)))
        assert np.all(np.isfinite(found.point))
        assert found.depth.max() > 0.1


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-4, -1e-3])
def test_parallel_capsules_have_two_contacts(tilt):
    shapes = tables(Shape("capsule", (0.1, 0.5)), Shape("capsule", (0.1, 0.3)))
    found = contacts(shapes, [(np.array([0.19, 0.0, 0.1]), rotation_about("y", tilt)), (ORIGIN, UPRIGHT)])
    assert found.depth == pytest.approx([0.01, 0.01], abs=1e-3)
    assert found.point[:, 2] == pytest.approx([-0.3, 0.3], abs=1e-3)
    assert list(found.slot) == [0, 1]


def test_crossed_capsules_have_one_contact():
    shapes = tables(Shape("capsule", (0.1, 0.5)), Shape("capsule", (0.1, 0.5)))
    found = contacts(shapes, [(np.array([0.0, 0.15, 0.0]), rotation_about("y", np.pi / 2)), (ORIGIN, UPRIGHT)])
    assert found.depth == pytest.approx([0.05])
    assert found.normal[0] == pytest.approx([0.0, 1.0, 0.0])


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-3, -1e-3])
@pytest.mark.parametrize("offset", [0.0, 0.4])
def test_capsule_lying_on_a_box_has_two_contacts(tilt, offset):
    shapes = tables(Shape("capsule", (0.1, 0.3)), Shape("box", (0.5, 0.5, 0.5)))
    lying = (np.array([offset, 0.0, 0.59]), rotation_about("y", np.pi / 2 + tilt))
    found = contacts(shapes, [lying, (ORIGIN, UPRIGHT)])
    assert found.depth == pytest.approx([0.01, 0.01], abs=1e-3)
    assert found.normal == pytest.approx(np.array(2 * [(0.0, 0.0, 1.0)]), abs=2e-3)
    assert np.sort(found.point[:, 0]) == pytest.approx([offset - 0.3, min(offset + 0.3, 0.5)], abs=2e-3)


def test_capsule_below_the_face_of_a_box_is_separated_along_that_face():
    shapes = tables(Shape("capsule", (0.1, 0.3)), Shape("box", (0.5, 0.5, 0.5)))
    found = contacts(shapes, [(np.array([0.0, 0.0, 0.45]), rotation_about("y", np.pi / 2)), (ORIGIN, UPRIGHT)])
    assert found.depth == pytest.approx([0.15, 0.15])
    assert found.normal == pytest.approx(np.array(2 * [(0.0, 0.0, 1.0)]))


@pytest.mark.parametrize("angle", [0.0, 1e-7, -1e-7])
def test_stacked_boxes_have_contacts_at_the_four_corners(angle):
    shapes = tables(Shape("box", (0.2, 0.2, 0.2)), Shape("box", (0.2, 0.2, 0.2)))
    rotation = rotation_about("z", angle) @ rotation_about("x", angle)
    found = contacts(shapes, [(np.array([0.0, 0.0, 0.399]), rotation), (ORIGIN, UPRIGHT)], 1e-3)
    assert found.depth == pytest.approx(4 * [1e-3], abs=1e-6)
    corners = {tuple(np.round(p, 5)) for p in found.point}
    assert corners == {(x, y, 0.1995) for x in (-0.2, 0.2) for y in (-0.2, 0.2)}
    assert found.normal == pytest.approx(np.array(4 * [(0.0, 0.0, 1.0)]), abs=1e-6)


def test_small_box_on_a_large_one_has_contacts_at_its_own_corners():
    shapes = tables(Shape("box", (2.0, 2.0, 0.5)), Shape("box", (0.1, 0.2, 0.3)))
    found = contacts(shapes, [(ORIGIN, UPRIGHT), (np.array([1.0, 1.0, 0.79]), UPRIGHT)])
    assert {tuple(np.round(p, 9)) for p in found.point} == {(x, y, 0.495) for x in (0.9, 1.1) for y in (0.8, 1.2)}
    assert found.normal == pytest.approx(np.array(4 * [(0.0, 0.0, -1.0)]))


def test_rotated_box_on_another_has_eight_contacts():
    shapes = tables(Shape("box", (0.2, 0.2, 0.2)), Shape("box", (0.2, 0.2, 0.2)))
    found = contacts(shapes, [(np.array([0.0, 0.0, 0.39]), rotation_about("z", np.pi / 4)), (ORIGIN, UPRIGHT)])
    assert len(found.depth) == 8
    # a regular octagon about the square of half side 0.2
    assert np.linalg.norm(found.point[:, :2], axis=1) == pytest.approx(8 * [0.2 / np.cos(np.pi / 8)])


def test_overhanging_box_has_contacts_on_the_common_area():
    shapes = tables(Shape("box", (0.2, 0.2, 0.2)), Shape("box", (0.2, 0.2, 0.2)))
    found = contacts(shapes, [(np.array([0.3, 0.0, 0.39]), UPRIGHT), (ORIGIN, UPRIGHT)])
    assert sorted(found.point[:, 0]) == pytest.approx([0.1, 0.1, 0.2, 0.2])


def test_crossed_edges_have_one_contact_at_the_crossing():
    shapes = tables(Shape("box", (1.0, 0.1, 0.1)), Shape("box", (0.1, 1.0, 0.1)))
    upper = (np.array([0.0, 0.0, 2 * np.sqrt(0.02) - 0.01]), rotation_about("x", np.pi / 4))
    found = contacts(shapes, [upper, (ORIGIN, rotation_about("y", np.pi / 4))])
    assert found.depth == pytest.approx([0.01])
    assert found.normal[0] == pytest.approx([0.0, 0.0, 1.0])
    assert found.point[0] == pytest.approx([0.0, 0.0, np.sqrt(0.02) - 0.005])


@pytest.mark.crosscheck
@pytest.mark.parametrize("kinds", [("box", "box"), ("capsule", "box"), ("capsule", "capsule"), ("cylinder", "box")])
def test_depth_agrees_with_mujoco(kinds):
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(12)
    geoms = [f'<geom name="{i}" type="{k}" size="{" ".join(map(str, SIZES[k]))}"/>' for i, k in enumerate(kinds)]
    free = "".join(f"<body><freejoint/>{geom}</body>" for geom in geoms)
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{free}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    shapes = tables(*(shape(kind) for kind in kinds))
    compared = 0
    for _ in range(60):
        poses = random_poses(rng, 0.25)
        for i, (position, rotation) in enumerate(poses):
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, rotation.ravel())
            data.qpos[7 * i : 7 * i + 7] = [*position, *quaternion]
        mujoco.mj_forward(model, data)
        reference = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
        result = contacts(shapes, poses, 1.0)
        if kinds == ("box", "box") and reference > -1e-3:
            continue  # separated boxes are measured along the nearest face or edge direction only
        if kinds == ("capsule", "box") and result.depth.max() > SIZES["capsule"][0]:
            continue  # a capsule whose axis enters the box: MuJoCo's depth is then not the minimum translation
        slack = FACE_BIAS * abs(reference) if kinds == ("box", "box") else 0.0
        assert result.depth.max() == pytest.approx(-reference, abs=1e-4 + slack)
        compared += 1
    assert compared > 15

"""Contacts with a plane against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from borelli.model.model import Frame, Shape

from .collide_scene import CLOUD, KINDS, ORIGIN, UPRIGHT, contacts, random_rotation, rotation_about, shape, tables

FLOOR = (Shape("plane"),)


def rest(body_shape, height, rotation=UPRIGHT, margin=0.0):
    return contacts(tables(body_shape, ground=FLOOR), [(np.array([1.0, -2.0, height]), rotation)], margin)


def test_sphere_contact_is_below_its_center():
    found = rest(Shape("sphere", (0.3,)), 0.29)
    assert found.depth == pytest.approx([0.01])
    assert found.point[0] == pytest.approx([1.0, -2.0, -0.005])
    assert found.normal[0] == pytest.approx([0.0, 0.0, 1.0])


def test_lying_capsule_has_contacts_at_both_ends():
    found = rest(Shape("capsule", (0.1, 0.4)), 0.09, rotation_about("y", np.pi / 2))
    assert found.depth == pytest.approx([0.01, 0.01])
    assert sorted(found.point[:, 0]) == pytest.approx([0.6, 1.4])
    assert list(found.slot) == [0, 1]


def test_box_has_contacts_at_its_four_lower_corners():
    found = rest(Shape("box", (0.3, 0.2, 0.1)), 0.1 - 1e-3)
    assert found.depth == pytest.approx(4 * [1e-3])
    assert list(found.slot) == [0, 1, 2, 3]
    assert found.point[:, :2] - (1.0, -2.0) == pytest.approx(
        np.array([(-0.3, -0.2), (0.3, -0.2), (-0.3, 0.2), (0.3, 0.2)])
    )


def test_box_on_its_edge_has_contacts_at_two_corners():
    found = rest(Shape("box", (0.3, 0.1, 0.1)), 0.14, rotation_about("x", np.pi / 4))
    assert found.depth == pytest.approx(2 * [np.sqrt(0.02) - 0.14])


def test_standing_cylinder_rests_on_three_points_around_its_axis():
    for tilt in (0.0, 1e-6, 1e-5):
        found = rest(Shape("cylinder", (0.2, 0.5)), 0.5 - 1e-3, rotation_about("x", tilt))
        assert len(found.depth) == 3
        assert found.depth == pytest.approx(3 * [1e-3], abs=2e-5 * 0.2 + 1e-9)
        assert found.point[:, :2].mean(axis=0) == pytest.approx([1.0, -2.0], abs=1e-4)
        assert np.linalg.norm(found.point[:, :2] - (1.0, -2.0), axis=1) == pytest.approx(3 * [0.2], abs=1e-4)


def test_contact_points_of_a_standing_cylinder_ignore_small_tilts():
    still, tilted = (rest(Shape("cylinder", (0.2, 0.5)), 0.499, rotation_about("y", tilt)) for tilt in (0.0, -1e-5))
    assert tilted.point == pytest.approx(still.point, abs=1e-5)


def test_lying_cylinder_rests_on_both_rims():
    found = rest(Shape("cylinder", (0.2, 0.5)), 0.19, rotation_about("x", np.pi / 2))
    assert found.depth == pytest.approx([0.01, 0.01])
    assert sorted(found.point[:, 1]) == pytest.approx([-2.5, -1.5])


def test_lowest_point_of_a_tilted_cylinder_is_on_its_rim():
    angle = 0.3
    found = rest(Shape("cylinder", (0.2, 0.5)), 0.5, rotation_about("y", angle))
    assert found.depth.max() == pytest.approx(0.5 * np.cos(angle) + 0.2 * np.sin(angle) - 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_deepest_contact_is_the_lowest_point_of_the_shape(kind):
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(20_000, 3))
    for _ in range(10):
        rotation = random_rotation(rng)
        lowest = points_on(kind, directions) @ rotation.T
        found = rest(shape(kind), 0.05, rotation)
        # sampling never reaches below the true lowest point and misses it by little
        assert found.depth.max() > -lowest[:, 2].min() - 0.05 - 1e-12
        assert found.depth.max() == pytest.approx(-lowest[:, 2].min() - 0.05, abs=2e-3)


def points_on(kind, directions):
    """Points of the surface of the test shape."""
    unit = directions / np.linalg.norm(directions, axis=1)[:, None]
    if kind == "mesh":
        return np.array(CLOUD)
    size = shape(kind).size
    if kind == "sphere":
        return size[0] * unit
    if kind == "ellipsoid":
        return unit * size
    if kind == "box":
        return np.sign(unit) * size
    rim = unit[:, :2] / np.linalg.norm(unit[:, :2], axis=1)[:, None]
    if kind == "cylinder":
        return np.column_stack([size[0] * rim, np.sign(unit[:, 2]) * size[1]])
    return size[0] * unit + np.sign(unit[:, 2:]) * (0.0, 0.0, size[1])


def test_mesh_has_contacts_at_its_eight_deepest_vertices():
    rng = np.random.default_rng(3)
    sphere = rng.normal(size=(200, 3))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    for _ in range(5):
        rotation = random_rotation(rng)
        found = rest(Shape("mesh", vertices=tuple(map(tuple, sphere))), 0.5, rotation)
        expected = np.sort(-(sphere @ rotation.T)[:, 2] - 0.5)[-8:]
        assert np.sort(found.depth) == pytest.approx(expected)
        assert list(found.slot) == list(range(8))


def test_contact_normals_are_those_of_a_tilted_plane():
    angle = 0.4
    frame = Frame((0.0, 0.0, 0.5), (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0))
    shapes = tables(*(shape(kind) for kind in KINDS), ground=(Shape("plane", frame=frame),))
    poses = [(np.array([0.0, 10.0 * i, 0.5]), UPRIGHT) for i in range(len(KINDS))]
    found = contacts(shapes, poses)
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    assert set(shapes.pair_a[found.pair]) == set(range(1, 1 + len(KINDS)))
    assert found.normal == pytest.approx(np.tile(normal, (len(found.depth), 1)))
    # the point lies midway between the plane and the shape's surface
    assert (found.point - (0.0, 0.0, 0.5)) @ normal == pytest.approx(-0.5 * found.depth)


def test_shape_below_the_plane_has_contacts():
    assert rest(Shape("sphere", (0.3,)), -5.0).depth == pytest.approx([5.3])
    assert len(rest(Shape("box", (0.1, 0.1, 0.1)), -5.0).depth) == 8


def test_the_ground_body_of_a_plane_is_at_the_origin_by_default():
    shapes = tables(Shape("sphere", (1.0,)), ground=FLOOR)
    assert shapes.position[0] == pytest.approx(ORIGIN)

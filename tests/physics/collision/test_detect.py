"""Pairs of shapes that may collide, and the order of contacts."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Body, Frame, Joint, Model, Shape, Softness, Surface
from borelli.physics.arrays.shapes import BOX, PLANE, SPHERE, compile_shapes
from borelli.physics.collision.detect import find_contacts, make_contacts

from .collide_scene import ORIGIN, UPRIGHT, contacts, rotation_about, tables

BALL = Shape("sphere", (0.5,))
PLATE = Shape("plane")


def compiled(model):
    return compile_shapes(model, {body.name: i for i, body in enumerate(model.bodies)})


def body_pairs(model):
    shapes = compiled(model)
    return [(shapes.body[a], shapes.body[b]) for a, b in zip(shapes.pair_a, shapes.pair_b, strict=True)]


def chain(count, kind="hinge"):
    bodies = tuple(Body(f"b{i}", 1.0, shapes=(BALL,)) for i in range(count))
    joints = tuple(Joint(f"j{i}", kind, f"b{i}", f"b{i + 1}") for i in range(count - 1))
    return Model("chain", bodies, joints)


def test_jointed_model_collides_with_the_ground_but_not_itself():
    model = replace(chain(3), ground=(PLATE,))
    assert body_pairs(model) == [(0, -1), (1, -1), (2, -1)]


def test_self_collision_excludes_joined_bodies():
    assert body_pairs(replace(chain(4), self_collision=True)) == [(0, 2), (0, 3), (1, 3)]


def test_free_bodies_collide_with_or_without_a_free_joint():
    loose = replace(chain(3), joints=())
    to_ground = replace(loose, joints=tuple(Joint(f"j{i}", "free", "ground", f"b{i}") for i in range(3)))
    hinged_to_ground = replace(loose, joints=tuple(Joint(f"j{i}", "hinge", "ground", f"b{i}") for i in range(3)))
    for model in (loose, to_ground, hinged_to_ground, chain(3, kind="free")):
        assert body_pairs(model) == [(0, 1), (0, 2), (1, 2)]


def test_immovable_shapes_do_not_collide():
    moving = Body("moving", 1.0, shapes=(BALL,))
    plates = tuple(Body(name, 1.0, shapes=(BALL,), kinematic=True) for name in ("left", "right"))
    model = Model("plates", (plates[0], moving, plates[1]), ground=(PLATE, BALL))
    assert body_pairs(model) == [(1, -1), (1, -1), (1, 0), (1, 2)]


def test_shapes_of_one_body_and_disabled_shapes_are_excluded():
    double = Body("double", 1.0, shapes=(BALL, BALL, replace(BALL, collides=False)))
    shapes = compiled(Model("double", (double,), ground=(PLATE,)))
    assert list(shapes.kind) == [PLANE, SPHERE, SPHERE]
    assert list(shapes.pair_b) == [0, 0]


def test_a_pair_combines_its_surfaces():
    rough = Surface(friction=0.9, restitution=0.1, rolling_friction=0.02, softness=Softness(1e4, 10.0))
    slick = Surface(friction=0.4, restitution=0.5, rolling_friction=0.01, velocity=(1.0, 2.0, 3.0))
    body = Body("ball", 1.0, shapes=(replace(BALL, surface=rough),))
    shapes = compiled(Model("ball", (body,), ground=(replace(PLATE, surface=slick),)))
    assert shapes.pair_friction[0] == pytest.approx(0.6)
    assert shapes.pair_restitution[0] == 0.5
    assert shapes.pair_rolling[0] == 0.02
    assert list(shapes.soft[1, :2]) == [1e4, 10.0]
    assert np.isnan(shapes.soft[1, 3])
    assert list(shapes.velocity[0]) == [1.0, 2.0, 3.0]


def test_shape_poses_follow_the_center_of_mass_and_rotation():
    offset = Shape("sphere", (0.1,), Frame((0.5, 0.0, 0.0)))
    body = Body("arm", 1.0, center_of_mass=(0.2, 0.0, 0.0), shapes=(offset,))
    shapes = compiled(Model("arm", (body,), ground=(PLATE,)))
    # pointing down from a center of mass at z = 0.35: the ball's center is 0.3 below
    found = contacts(shapes, [(np.array([1.0, 2.0, 0.35]), rotation_about("y", np.pi / 2))])
    assert found.depth == pytest.approx([0.05])
    assert found.point[0] == pytest.approx([1.0, 2.0, -0.025])


def test_contacts_are_sorted_by_slot_and_deterministic():
    rng = np.random.default_rng(0)
    shapes = tables(*[Shape("box", (0.2, 0.2, 0.2))] * 6, ground=(PLATE, Shape("box", (1.0, 1.0, 0.1))))
    poses = [(np.array([*rng.uniform(-0.4, 0.4, 2), 0.25]), rotation_about("z", rng.uniform(0, 1))) for _ in range(6)]
    one, two = contacts(shapes, poses, 0.01), contacts(shapes, poses, 0.01)
    assert len(one.depth) > 20
    assert np.all(np.diff(one.slot) > 0)
    assert np.all(shapes.pair_first[one.pair] <= one.slot)
    assert np.all(one.slot < shapes.pair_first[one.pair + 1])
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)


def test_full_list_keeps_the_first_contacts_and_returns_their_number():
    shapes = tables(Shape("box", (0.2, 0.2, 0.2)), ground=(PLATE,))
    buffer = make_contacts(shapes, capacity=2)
    count = find_contacts(SharedTuple(shapes), np.array([[0.0, 0.0, 0.19]]), np.eye(3)[None], 0.0, SharedTuple(buffer))
    assert count == 4
    assert list(buffer.slot) == [0, 1]


def test_only_contacts_within_the_margin_are_listed():
    for shape in (BALL, Shape("box", (0.5, 0.5, 0.5)), Shape("cylinder", (0.2, 0.5))):
        for ground in (PLATE, Shape("box", (3.0, 3.0, 1.0), Frame((0.0, 0.0, -1.0)))):
            shapes = tables(shape, ground=(ground,))
            assert len(contacts(shapes, [(np.array([0.0, 0.0, 0.52]), UPRIGHT)], 0.019).depth) == 0
            near = contacts(shapes, [(np.array([0.0, 0.0, 0.52]), UPRIGHT)], 0.021)
            assert len(near.depth) > 0
            assert near.depth == pytest.approx(-0.02)


def test_plane_of_a_kinematic_body_moves_with_it():
    plate = Body("plate", 1.0, shapes=(PLATE,), kinematic=True)
    shapes = compiled(Model("plate", (plate, Body("ball", 1.0, shapes=(BALL,)))))
    upright = (np.array([0.0, 0.0, 1.0]), rotation_about("y", np.pi / 2))
    found = contacts(shapes, [upright, (np.array([0.4, 0.0, 0.0]), UPRIGHT)])
    assert found.normal[0] == pytest.approx([1.0, 0.0, 0.0])
    assert found.depth == pytest.approx([0.1])


def test_scene_without_shapes_has_no_contacts():
    shapes = compiled(Model("empty", (Body("point", 1.0),)))
    assert len(contacts(shapes, [(ORIGIN, UPRIGHT)]).depth) == 0


def test_three_hundred_free_boxes_compile_in_a_second():
    model = replace(chain(300), joints=(), ground=(PLATE,))
    start = time.process_time()
    shapes = compiled(model)
    assert time.process_time() - start < 1.0
    assert len(shapes.pair_a) == 300 + 300 * 299 // 2


def test_mesh_keeps_only_its_convex_hull():
    corners = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
    shapes = tables(Shape("mesh", vertices=(*corners, (0.5, 0.5, 0.5))), ground=(PLATE,))
    assert len(shapes.vertices) == 8
    assert shapes.bound[1] == pytest.approx(np.sqrt(0.75))
    assert BOX not in shapes.kind

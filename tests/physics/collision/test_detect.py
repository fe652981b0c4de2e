"""Which shapes may touch, and how the contacts of a step are listed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Body, Frame, Joint, Model, Shape, Softness, Surface
from borelli.physics.arrays.shapes import BOX, PLANE, SPHERE, compile_shapes
from borelli.physics.collision.detect import find_contacts, make_contacts

from .collide_scene import ORIGIN, UPRIGHT, contacts, tables, turn

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


def test_a_jointed_model_meets_the_ground_but_not_itself():
    model = replace(chain(3), ground=(PLATE,))
    assert body_pairs(model) == [(0, -1), (1, -1), (2, -1)]


def test_self_collision_spares_joined_neighbours():
    assert body_pairs(replace(chain(4), self_collision=True)) == [(0, 2), (0, 3), (1, 3)]


def test_free_bodies_meet_each_other_whether_or_not_a_free_joint_names_them():
    loose = replace(chain(3), joints=())
    to_ground = replace(loose, joints=tuple(Joint(f"j{i}", "free", "ground", f"b{i}") for i in range(3)))
    hinged_to_ground = replace(loose, joints=tuple(Joint(f"j{i}", "hinge", "ground", f"b{i}") for i in range(3)))
    for model in (loose, to_ground, hinged_to_ground, chain(3, kind="free")):
        assert body_pairs(model) == [(0, 1), (0, 2), (1, 2)]


def test_what_cannot_move_never_meets_what_cannot_move():
    moving = Body("moving", 1.0, shapes=(BALL,))
    plates = tuple(Body(name, 1.0, shapes=(BALL,), kinematic=True) for name in ("left", "right"))
    model = Model("plates", (plates[0], moving, plates[1]), ground=(PLATE, BALL))
    assert body_pairs(model) == [(1, -1), (1, -1), (1, 0), (1, 2)]


def test_shapes_of_one_body_and_shapes_that_do_not_collide_are_left_out():
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


def test_shapes_are_placed_from_the_centre_of_mass_and_turn_with_the_body():
    offset = Shape("sphere", (0.1,), Frame((0.5, 0.0, 0.0)))
    body = Body("arm", 1.0, center_of_mass=(0.2, 0.0, 0.0), shapes=(offset,))
    shapes = compiled(Model("arm", (body,), ground=(PLATE,)))
    # pointing down from a centre of mass at z = 0.35: the ball's centre is 0.3 below
    found = contacts(shapes, [(np.array([1.0, 2.0, 0.35]), turn("y", np.pi / 2))])
    assert found.depth == pytest.approx([0.05])
    assert found.point[0] == pytest.approx([1.0, 2.0, -0.025])


def test_contacts_are_listed_by_rising_slot_with_the_same_bits_each_time():
    rng = np.random.default_rng(0)
    shapes = tables(*[Shape("box", (0.2, 0.2, 0.2))] * 6, ground=(PLATE, Shape("box", (1.0, 1.0, 0.1))))
    poses = [(np.array([*rng.uniform(-0.4, 0.4, 2), 0.25]), turn("z", rng.uniform(0, 1))) for _ in range(6)]
    one, two = contacts(shapes, poses, 0.01), contacts(shapes, poses, 0.01)
    assert len(one.depth) > 20
    assert np.all(np.diff(one.slot) > 0)
    assert np.all(shapes.pair_first[one.pair] <= one.slot)
    assert np.all(one.slot < shapes.pair_first[one.pair + 1])
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)


def test_a_full_list_keeps_the_first_contacts_and_says_how_many_there_were():
    shapes = tables(Shape("box", (0.2, 0.2, 0.2)), ground=(PLATE,))
    room = make_contacts(shapes, capacity=2)
    count = find_contacts(SharedTuple(shapes), np.array([[0.0, 0.0, 0.19]]), np.eye(3)[None], 0.0, SharedTuple(room))
    assert count == 4
    assert list(room.slot) == [0, 1]


def test_only_contacts_within_the_margin_are_listed():
    for shape in (BALL, Shape("box", (0.5, 0.5, 0.5)), Shape("cylinder", (0.2, 0.5))):
        for ground in (PLATE, Shape("box", (3.0, 3.0, 1.0), Frame((0.0, 0.0, -1.0)))):
            shapes = tables(shape, ground=(ground,))
            assert len(contacts(shapes, [(np.array([0.0, 0.0, 0.52]), UPRIGHT)], 0.019).depth) == 0
            near = contacts(shapes, [(np.array([0.0, 0.0, 0.52]), UPRIGHT)], 0.021)
            assert len(near.depth) > 0
            assert near.depth == pytest.approx(-0.02)


def test_a_plane_on_a_moving_plate_moves_with_it():
    plate = Body("plate", 1.0, shapes=(PLATE,), kinematic=True)
    shapes = compiled(Model("plate", (plate, Body("ball", 1.0, shapes=(BALL,)))))
    found = contacts(shapes, [(np.array([0.0, 0.0, 1.0]), turn("y", np.pi / 2)), (np.array([0.4, 0.0, 0.0]), UPRIGHT)])
    assert found.normal[0] == pytest.approx([1.0, 0.0, 0.0])
    assert found.depth == pytest.approx([0.1])


def test_a_scene_without_shapes_has_no_contacts():
    shapes = compiled(Model("empty", (Body("point", 1.0),)))
    assert len(contacts(shapes, [(ORIGIN, UPRIGHT)]).depth) == 0


def test_three_hundred_free_boxes_compile_in_a_second():
    model = replace(chain(300), joints=(), ground=(PLATE,))
    start = time.process_time()
    shapes = compiled(model)
    assert time.process_time() - start < 1.0
    assert len(shapes.pair_a) == 300 + 300 * 299 // 2


def test_a_mesh_keeps_only_the_corners_of_its_hull():
    corners = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
    shapes = tables(Shape("mesh", vertices=(*corners, (0.5, 0.5, 0.5))), ground=(PLATE,))
    assert len(shapes.vertices) == 8
    assert shapes.bound[1] == pytest.approx(np.sqrt(0.75))
    assert BOX not in shapes.kind

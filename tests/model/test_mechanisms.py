"""Planks, chains, loops and nets: counts, masses, closed joints in the initial pose, and carried objects."""

from math import cos, pi

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model import GROUND, Frame, validate
from borelli.model.kinematics import poses
from borelli.model.mechanisms import chain, four_bar, net, planks, with_ball, with_block, with_mace
from borelli.model.model import Shape
from borelli.model.transforms import compose
from borelli.people.full_skeleton import full_skeleton

SKELETON = full_skeleton()


def gaps(model) -> np.ndarray:
    """How far apart [m, and sine of half the angle] the two frames of each joint are in the reference pose."""
    frames = {body.name: body.frame for body in model.bodies} | {GROUND: Frame()}
    found = []
    for joint in (j for j in model.joints if j.kind != "free"):
        a = compose(frames[joint.parent], joint.parent_frame)
        b = compose(frames[joint.child], joint.child_frame)
        turn = 1.0 - abs(np.dot(a.orientation, b.orientation))
        found.append(max(np.linalg.norm(np.subtract(a.position, b.position)), turn**0.5 if turn > 1e-15 else 0.0))
    return np.array(found)


def test_net_has_the_counts_of_the_paper() -> None:
    """Weinstein, Guendelman and Fedkiw 2008: 960 joints and 225 loops; 16 by 16 knots, 480 bars, two corners fixed."""
    model = validate(net())
    knots = [body for body in model.bodies if body.name.startswith("knot")]
    assert (len(knots), len(model.bodies) - len(knots), len(model.joints)) == (256, 480, 960)
    assert len(model.joints) - len(model.bodies) + 1 == 225
    assert {joint.kind for joint in model.joints} == {"ball"}
    assert [body.name for body in model.bodies if body.kinematic] == ["knot_0_0", "knot_0_15"]
    assert model.mass == pytest.approx(0.02 * (254 + 480))
    assert gaps(model).max() < 1e-12


def test_net_has_the_given_pose() -> None:
    turned = Frame((1.0, 2.0, 3.0), (0.5**0.5, 0.0, 0.5**0.5, 0.0))  # x becomes down
    model = validate(net(3, 4, spacing=0.2, arc=0.0, frame=turned))
    assert len(model.joints) == 2 * (3 * 3 + 2 * 4)
    assert gaps(model).max() < 1e-12
    assert model.body("knot_2_0").frame.position == pytest.approx((1.0, 1.7, 2.8))
    assert model.body("knot_0_3").frame.position == pytest.approx((1.0, 2.3, 3.2))


def test_net_hangs_slack_between_its_corners() -> None:
    model = net(2, 6, spacing=0.1, arc=1.0)
    ends = [np.array(model.body(f"knot_0_{column}").frame.position) for column in (0, 2, 5)]
    assert np.linalg.norm(ends[2] - ends[0]) == pytest.approx(
        0.48, abs=0.005
    )  # 2 sin(1/2) of an arc of length 1: 0.959
    assert ends[0][2] == pytest.approx(2.0) and ends[2][2] == pytest.approx(2.0) and ends[1][2] < 1.96
    assert gaps(model).max() < 1e-12


def test_plank_falls_like_a_uniform_rod() -> None:
    """m L^2 / 3 about its end, L = 1 m, but for its thickness: the plank of the paper's figures."""
    plank = planks().body("link_1")
    about_end = plank.inertia[1][1] + plank.mass * 0.25
    assert about_end == pytest.approx(1.0 / 3.0 * (1.0 + 1.0 / 40000.0), rel=1e-12)
    assert plank.mass == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_planks_follow_each_other(kind: str) -> None:
    model = validate(planks(5, kind=kind, length=0.5, mass=2.0))
    assert gaps(model).max() < 1e-12
    assert model.mass == pytest.approx(10.0)
    assert {joint.kind for joint in model.joints} == {kind}
    assert model.body("link_5").frame.position == pytest.approx((2.25, 0.0, 2.5))


def test_increasing_angles_lift_a_plank() -> None:
    model = planks(2)
    position, _ = poses(model, np.array([[0.3, 0.0], [-pi / 2, 0.0]]))
    base = model.joints[0].parent_frame.position[2]
    assert position[0, 1, 0] == pytest.approx(1.5 * cos(0.3)) and position[0, 1, 2] > base
    assert position[1, 1] == pytest.approx([0.0, 0.0, base - 1.5], abs=1e-12)


@pytest.mark.parametrize("angle", [0.3, 1.0, 2.5])
def test_four_bar_is_closed_initially(angle: float) -> None:
    model, start = four_bar(angle=angle)
    row = np.array([[start.get(c.name, c.default) for c in model.coordinates]])
    position, rotation = poses(model, row)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    loop = model.joint("loop")
    a, b = (
        position[0, index[name]] + rotation[0, index[name]] @ np.array(frame.position)
        for name, frame in ((loop.parent, loop.parent_frame), (loop.child, loop.child_frame))
    )
    assert a == pytest.approx(b, abs=1e-12)


@pytest.mark.parametrize("hand", ["hand_r", "hand_l", "foot_r"])
def test_mace_hangs_from_the_hand(hand: str) -> None:
    model = with_mace(SKELETON, hand, at=Frame((0.0, 0.0, -0.08)), links=6)
    assert len(model.joints) - len(SKELETON.joints) == 8
    assert gaps(model).max() < 1e-9
    held = {joint.name: joint.kind for joint in model.joints[-8:]}
    assert held.pop("mace_grip") == "fixed" and set(held.values()) == {"ball"}
    handle, head = model.body("mace_handle").frame.position, model.body("mace_head").frame.position
    assert handle[2] - head[2] > 0.3
    # 7800 kg/m^3 of iron
    assert model.body("mace_head").mass == pytest.approx(2.0)
    assert model.body("mace_head").shapes[0].size[0] == pytest.approx((3 * 2.0 / (4 * pi * 7800)) ** (1 / 3))


def test_loads_are_added_to_the_model() -> None:
    model = with_block(SKELETON, "hand_l", mass=5.0, at=Frame((0.0, 0.0, -0.2)))
    assert model.mass == pytest.approx(80.0)
    assert gaps(model).max() < 1e-12
    hit = with_ball(planks(3), (1.0, 0.0, 4.0), mass=10.0)
    assert hit.self_collision and hit.mass == pytest.approx(13.0)
    with pytest.raises(ModelError, match=r"already has a body 'block'. Choose another name"):
        with_block(model, "hand_r")
    with pytest.raises(ModelError, match=r"Unknown body 'hand'"):
        with_mace(SKELETON, "hand")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: net(1, 5), "rows and columns are 1 and 5. A net has at least 2 by 2 knots"),
        (lambda: planks(0), "links is 0. A .* has at least 1 link"),
        (lambda: chain(2, Shape("sphere", (0.1,)), 0.2, kind="slider"), "Unknown kind of joint in a chain 'slider'"),
        (lambda: with_mace(SKELETON, "hand_r", links=0), "links is 0. A .* has at least 1 link"),
        (lambda: four_bar(rocker=0.05), "cannot span"),
    ],
)
def test_impossible_mechanisms_are_refused(make, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        make()

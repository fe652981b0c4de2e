"""Joint limits, drives, locks and couplings: directions, laws and power."""

from __future__ import annotations

from dataclasses import replace
from math import inf, pi

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.model import GROUND, Body, Coordinate, Joint, Model, Softness
from borelli.physics.arrays.joints import compile_joints
from borelli.physics.rows.coordinate_rows import Drives, make_drives
from borelli.physics.rows.rows import FLAT

from ..called import fill_drive_rows, fill_limit_rows, set_drive_targets_from_twists
from ..jointed import (
    HOLDERS,
    KINDS,
    SCENES,
    SLOPE_TOLERANCE,
    STEP,
    Jointed,
    compile_scene,
    make_coupled,
    make_joint,
    unit_twists,
)

MOVING = [scene for scene in SCENES if scene != "fixed"]
ROUNDING = 1e-10


def driven_pair(scene: str, holder: str = "dynamic", *, as_one: bool = False) -> tuple[Jointed, Drives]:
    """Return a joint with springs on its coordinates; `as_one`: on the rotation of a ball."""
    rng = np.random.default_rng(0)
    link = Body("link", 1.0, (0.1, 0.0, 0.2), kinematic=holder == "kinematic")
    limb = Body("limb", 1.0, (0.0, -0.1, 0.0), kinematic=holder == "kinematic child")
    joint = make_joint(scene, "joint", GROUND if holder == "ground" else "link", "limb", rng)
    driven = {c.name for c in joint.coordinates}
    drives = make_drives(len(joint.coordinates))
    drives.alpha[:], drives.beta[:] = Softness(stiffness=300.0, damping=5.0).at_step(STEP)
    drives.target[:] = rng.uniform(-0.5, 0.5, len(drives.target))
    fill = [lambda s: fill_drive_rows(s.joints, drives, s.coordinate, s.rows, STEP)]
    return compile_scene(Model("pair", (link, limb), (joint,)), driven, fill, as_one=as_one), drives


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("scene", MOVING)
def test_power_of_a_drive_is_force_times_speed(scene: str, holder: str) -> None:
    """A drive row's velocity is its coordinate's rate, for any motion of the bodies."""
    pair, _ = driven_pair(scene, holder)
    rng = np.random.default_rng(1)
    pair.set_coordinates(rng.uniform(-0.8, 0.8, len(pair.coordinate)))
    pair.twist[:] = rng.normal(size=(2, 6))
    pair.fill()
    used = pair.joints.drive_row >= 0
    u = pair.row_velocity(pair.twist)[pair.joints.drive_row[used]]
    np.testing.assert_allclose(u, pair.speed[used], atol=ROUNDING)


@pytest.mark.parametrize("scene", ["ball", "ball odd"])
def test_ball_drive_rotates_directly_to_its_target(scene: str) -> None:
    """Its rows' target is the rotation vector to the target, in the child's axes, also at gimbal lock."""
    pair, drives = driven_pair(scene, as_one=True)
    drives.target[:] = 0.4, pi / 2.0, -0.3
    sign = pair.joints.sign[2]
    assert pair.joints.rotation_driven[0]
    pair.set_coordinates(np.array([0.4, pi / 2.0, -0.3]))
    pair.fill()
    k = pair.joints.drive_row[0]
    np.testing.assert_allclose(pair.rows.c[k : k + 3, 0], 0.0, atol=1e-9)
    rotation = np.array([0.1, -0.2, 0.15])
    twist = np.zeros((2, 6))
    twist[1, 3:] = rotation @ pair.joints.axes_child[0]
    rotated = pair.moved_along(twist, 1.0)
    away = rotation * [1.0, 1.0, sign]
    np.testing.assert_allclose(rotated.rows.c[k : k + 3, 0], -drives.alpha / STEP * away, atol=1e-9)
    np.testing.assert_allclose(rotated.row_velocity(twist)[k : k + 3], away, atol=1e-9)


@pytest.mark.parametrize("scene", ["ball", "ball odd"])
def test_ball_drive_follows_the_angular_velocity_of_its_target(scene: str) -> None:
    """On target, the rows' target is the angular velocity of the moving target."""
    pair, drives = driven_pair(scene, as_one=True)
    drives.target[:], drives.velocity[:] = (0.4, -0.5, 0.7), (1.0, -2.0, 0.5)
    pair.set_coordinates(drives.target, drives.velocity)
    pair.fill()
    k = pair.joints.drive_row[0]
    np.testing.assert_allclose(pair.rows.c[k : k + 3, 0], pair.row_velocity(pair.twist)[k : k + 3], atol=1e-9)


def law(pair: Jointed, k: int, u: float) -> float:
    """Return the impulse of row k at velocity u, from its polyline."""
    rows = pair.rows
    piece = int(np.sum(u > rows.break_u[k, : rows.pieces[k] - 1]))
    beta, c = rows.beta[k, piece], rows.c[k, piece]
    return c if beta == FLAT else (c - u) / beta


@pytest.mark.parametrize("limit", [inf, 0.4])
@pytest.mark.parametrize("rest", [0.0, 0.11, -0.07])
@pytest.mark.parametrize("zone", [0.0, 0.02])
def test_drive_is_a_limited_spring_and_damper_at_the_end_of_the_step(limit: float, rest: float, zone: float) -> None:
    """The force is rest - k e - d u with e the error at the step's end less the dead zone, clipped at the limit."""
    stiffness, damping = 300.0, 5.0
    pair, drives = driven_pair("hinge")
    drives.lo[:], drives.hi[:], drives.rest[:], drives.dead_zone[:] = -limit, limit, rest, zone
    drives.target[:], drives.velocity[:] = 0.1, 0.3
    pair.set_coordinates(np.array([0.25]))
    pair.fill()
    k = pair.joints.drive_row[0]
    for u in np.linspace(-60.0, 30.0, 31):
        force = stiffness * (0.15 + STEP * (u - 0.3)) + damping * (u - 0.3)
        force = np.sign(force) * max(abs(force) - stiffness * zone, 0.0)
        assert law(pair, k, u) == pytest.approx(np.clip(rest - STEP * force, -limit, limit), abs=1e-9)


def test_drive_without_spring_or_damper_is_a_plain_force() -> None:
    pair, drives = driven_pair("hinge")
    drives.beta[:], drives.rest[:], drives.hi[:] = inf, 0.7, 0.5
    pair.fill()
    k = pair.joints.drive_row[0]
    assert law(pair, k, -3.0) == law(pair, k, 5.0) == 0.5


@pytest.mark.parametrize("holder", HOLDERS)
def test_drive_targets_from_twists_give_those_twists(holder: str) -> None:
    pair, drives = driven_pair("ball", holder)
    rng = np.random.default_rng(2)
    drives.hi[:], drives.lo[:] = 3.0, -3.0
    pair.fill()
    target = rng.normal(size=(2, 6))
    set_drive_targets_from_twists(pair.joints, drives, target, pair.rows, STEP)
    for k in pair.joints.drive_row:
        assert law(pair, k, pair.row_velocity(target)[k]) == pytest.approx(0.0, abs=1e-9)


def limited_hinge(**limits: float) -> Jointed:
    joint = Joint("elbow", "hinge", "a", "b", coordinates=(Coordinate("flexion", **limits),))
    return compile_scene(
        Model("m", (Body("a", 1.0), Body("b", 1.0)), (joint,)),
        fills=[lambda s: fill_limit_rows(s.joints, s.coordinate, s.speed, s.rows, STEP)],
    )


@pytest.mark.parametrize(("angle", "side"), [(-0.98, 1.0), (-1.03, 1.0), (1.99, -1.0), (2.01, -1.0)])
@pytest.mark.parametrize("speed", [-1.0, 0.5])
def test_limit_row_acts_inward_from_the_nearer_limit(angle: float, side: float, speed: float) -> None:
    scene = limited_hinge(lower=-1.0, upper=2.0)
    scene.set_coordinates(np.array([angle]), np.array([speed]))
    scene.fill()
    k = scene.joints.limit_row[0]
    distance = angle + 1.0 if side > 0.0 else 2.0 - angle
    fraction = 1.0 if distance > 0.0 else 0.2
    assert scene.rows.pieces[k] == 2
    assert scene.rows.break_u[k, 0] == pytest.approx(-fraction * distance / STEP)
    assert scene.row_velocity(scene.twist)[k] == pytest.approx(side * speed)


def test_distant_limit_is_absent_unless_the_motion_is_fast() -> None:
    scene = limited_hinge(lower=-1.0, upper=2.0)
    k = scene.joints.limit_row[0]
    scene.set_coordinates(np.array([0.0]))
    scene.fill()
    assert scene.rows.pieces[k] == 0
    scene.set_coordinates(np.array([0.5]), np.array([-240.0]))
    scene.fill()
    assert scene.rows.pieces[k] == 2
    assert scene.row_velocity(scene.twist)[k] == pytest.approx(-240.0)


def test_one_limit_gives_a_row_and_no_limit_gives_none() -> None:
    scene = limited_hinge(upper=0.5)
    scene.set_coordinates(np.array([0.45]))
    scene.fill()
    assert scene.rows.pieces[scene.joints.limit_row[0]] == 2
    assert limited_hinge().joints.limit_row[0] == -1


def locked_model() -> Model:
    names = (Coordinate("a", default=0.2, locked=True, lower=-1.0), Coordinate("b"), Coordinate("c"))
    return Model("m", (Body("p", 1.0), Body("q", 1.0)), (Joint("hip", "ball", "p", "q", coordinates=names),))


def test_locked_coordinate_is_fixed_at_its_default() -> None:
    drives = make_drives(3)
    scene = compile_scene(
        locked_model(), fills=[lambda s: fill_drive_rows(s.joints, drives, s.coordinate, s.rows, STEP)]
    )
    scene.set_coordinates(np.array([0.5, 0.1, 0.2]))
    scene.fill()
    k = scene.joints.drive_row[0]
    assert scene.joints.limit_row[0] == -1
    assert (scene.rows.pieces[k], scene.rows.beta[k, 0]) == (1, 0.0)
    assert scene.rows.c[k, 0] == pytest.approx(-0.2 / STEP * 0.3)


@pytest.mark.parametrize("name", ["a", "knee"])
def test_drive_on_a_locked_or_unknown_coordinate_raises(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        compile_scene(locked_model(), driven={name})


@pytest.mark.parametrize("kinematic", [False, True])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("first", "second"), [("hinge", "hinge odd"), ("ball", "slider"), ("knee", "universal"), ("planar", "scapula")]
)
def test_coupling_row_is_the_slope_of_its_error(first: str, second: str, shared: bool, kinematic: bool) -> None:
    scene = make_coupled(first, second, shared=shared, kinematic=kinematic)
    scene.set_coordinates(np.random.default_rng(4).uniform(-0.8, 0.8, len(scene.coordinate)))
    k = scene.joints.coupling_row[0]

    def error(s: Jointed) -> np.ndarray:
        return -STEP / s.joints.coupling_alpha[0] * s.rows.c[k : k + 1, 0]

    function = scene.model.couplings[0].function
    scene.fill()
    assert error(scene)[0] == pytest.approx(scene.coordinate[-1] - function(scene.coordinate[0]))
    assert scene.rows.first[k + 1] - scene.rows.first[k] == (3 if shared else 4) - kinematic
    for twist in unit_twists(len(scene.position)):
        scene.twist[:] = twist
        scene.fill()
        slope = scene.slope(error, twist)
        np.testing.assert_allclose(scene.row_velocity(twist)[k], slope[0], rtol=SLOPE_TOLERANCE, atol=SLOPE_TOLERANCE)


def test_joint_between_kinematic_bodies_has_no_rows() -> None:
    joint = replace(
        Joint("rail", "slider", GROUND, "plate"), coordinates=(Coordinate("x", lower=0.0, rotational=False),)
    )
    model = Model("m", (Body("plate", 1.0, kinematic=True),), (joint,))
    tables, entries, _, _ = compile_joints(model, {"plate": 0}, np.zeros((1, 3)), np.array([True]), STEP, {"x"})
    assert entries == []
    assert tables.limit_row[0] == tables.drive_row[0] == -1


def test_every_kind_names_its_rows_and_units() -> None:
    for kind in KINDS:
        pair, _ = driven_pair(kind)
        assert len(pair.names) == len(pair.units) == len(pair.rows.offset)
        assert len(set(pair.names)) == len(pair.names)

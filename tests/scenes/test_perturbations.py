"""Perturbations in scenes: each obeys mechanics and is restored from a file."""

from dataclasses import replace
from math import cos, inf, pi, sin

import numpy as np
import pytest

from borelli.control.apply_perturbations import apply_perturbations, heading_of_pose
from borelli.control.perturbations import CarriedLoad, MoveGround, Obstacle, Push, WeakenedJoint, heading_axes
from borelli.errors import SettingsError
from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Coordinate, Frame, Joint, Model, Shape, Surface
from borelli.people.human import human
from borelli.physics.inputs import Drive
from borelli.scenes.gallery import gallery_scene
from borelli.scenes.scene import Scene, run_scene
from borelli.scenes.scene_files import scene_from_text, scene_to_text

BOX = body_from_shapes("box", (Shape("box", (0.1, 0.1, 0.1)),), frame=Frame((0.0, 0.0, 0.1)))
ROOT = Joint(
    "root", "free", GROUND, "box",
    coordinates=(*(Coordinate(f"root_{a}", 0.1 if a == "z" else 0.0, rotational=False) for a in "xyz"),
                 *(Coordinate(a) for a in ("roll", "pitch", "yaw"))),
)  # fmt: skip
FLOATING = Model("box", (BOX,), (ROOT,), gravity=(0.0, 0.0, 0.0))
ON_FLOOR = replace(FLOATING, gravity=(0.0, 0.0, -9.81), ground=(Shape("plane"),))


def position(result, body, time):
    return result["body_position"].sel(body=body).sel(time=time, method="nearest").values


@pytest.mark.parametrize("yaw", [0.0, 0.5, pi / 2])
def test_a_push_gives_its_impulse_in_the_direction_of_heading(yaw):
    scene = Scene(
        "x", FLOATING, duration=1.0, coordinates={"yaw": yaw}, pushes=(Push("box", (20.0, 40.0, 0.0), 0.5, 0.25),)
    )
    result = run_scene(scene)
    momentum = result["linear_momentum"].values
    assert not momentum[result["time"] < 0.5].any()
    along = np.array([20.0 * cos(yaw) - 40.0 * sin(yaw), 20.0 * sin(yaw) + 40.0 * cos(yaw), 0.0])
    np.testing.assert_allclose(momentum[-1], 0.25 * along, atol=1e-12)


def test_the_heading_of_a_supine_body_points_to_the_head():
    supine = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # x up, z along -x
    np.testing.assert_allclose(heading_axes(FLOATING, supine)[0], [-1.0, 0.0, 0.0])


@pytest.mark.parametrize("up", [(0.0, 9.81, 0.0), (0.0, 0.0, 9.81)])
def test_forward_left_and_up_are_right_handed_whichever_axis_is_up(up):
    model = replace(FLOATING, gravity=tuple(-v for v in up))
    rows = heading_of_pose(model, np.array([c.default for c in model.coordinates]))
    np.testing.assert_allclose(rows[2], np.array(up) / 9.81)
    np.testing.assert_allclose(np.cross(rows[0], rows[1]), rows[2], atol=1e-15)


def test_a_load_weighs_on_its_attachment_point():
    """A rod is fixed level by a drive: the drive's moment is that of rod and load."""
    rod = body_from_shapes("rod", (Shape("box", (0.5, 0.05, 0.05)),), mass=2.0)
    hinge = Joint("hinge", "hinge", GROUND, "rod", child_frame=Frame((-0.5, 0.0, 0.0)), axes=((0.0, 1.0, 0.0),),
                  coordinates=(Coordinate("angle"),))  # fmt: skip
    hold = Drive("angle", stiffness=inf)
    for hanging in (False, True):
        load = CarriedLoad("rod", 5.0, (0.4, 0.0, 0.0), hanging=hanging)
        scene = Scene("x", Model("rod", (rod,), (hinge,)), duration=0.05, drives=(hold,), loads=(load,))
        result = run_scene(scene)
        moment = float(result["torque"].sel(coordinate="angle")[-1])
        # about y, so that a supporting moment is negative; the load hangs still
        assert moment == pytest.approx(-9.81 * (2.0 * 0.5 + 5.0 * 0.9), rel=1e-9)
        assert "load on rod" in result["body"].values


def test_a_hanging_load_swings_as_a_pendulum():
    """The ball's center is two radii below the joint: T = 2 pi sqrt((r_c^2 + I/m) / (g r_c)), small swings."""
    scene = Scene(
        "x", replace(ON_FLOOR, ground=(), gravity=(0.0, 0.0, -9.81)), loads=(CarriedLoad("box", 1.0, hanging=True),)
    )
    model = apply_perturbations(scene.model, scene.perturbations, lambda t: np.eye(3)).model
    fixed = replace(model, bodies=(replace(model.bodies[0], kinematic=True), model.bodies[1]))
    found = run_scene(Scene("y", fixed, step=1e-3, duration=2.0, coordinates={"load on box x": 0.05}))
    angle, clock = found["coordinate_value"].sel(coordinate="load on box x").values, found["time"].values
    falls = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = clock[falls] + 1e-3 * angle[falls] / (angle[falls] - angle[falls + 1])
    radius = (3.0 / (4.0 * pi * 4000.0)) ** (1 / 3)
    period = 2 * pi * np.sqrt((4 * radius**2 + 0.4 * radius**2) / (9.81 * 2 * radius))
    assert np.diff(crossings).mean() == pytest.approx(period, rel=3e-3)


def test_a_weakened_drive_has_the_remaining_fraction_and_recovers():
    carriage = Joint(
        "rail", "slider", GROUND, "box", axes=((1.0, 0.0, 0.0),), coordinates=(Coordinate("x", rotational=False),)
    )
    model = Model("cart", (BOX,), (carriage,), gravity=(0.0, 0.0, 0.0))
    pull = Drive("x", offset=10.0)
    scene = Scene(
        "x",
        model,
        duration=1.0,
        drives=(pull,),
        weakened=(WeakenedJoint("rail", 0.25, 0.25, 0.5), WeakenedJoint("x", 0.5, 0.75)),
    )
    result = run_scene(scene)
    force = result["torque"].values[1:, 0]
    begin = result["time"].values[:-1] + 1e-9
    for start, end, fraction in ((0.0, 0.25, 1.0), (0.25, 0.5, 0.25), (0.5, 0.75, 1.0), (0.75, 1.0, 0.5)):
        np.testing.assert_allclose(force[(begin >= start) & (begin < end)], 10.0 * fraction, rtol=1e-12)


def test_an_obstacle_stops_a_slider_while_it_is_present():
    wall = Obstacle(Shape("box", (0.05, 0.5, 0.5)), Frame((0.5, 0.0, 0.1)), 0.0, 1.0)
    scene = Scene("x", FLOATING, duration=2.0, speeds={"root_x": 1.0}, obstacles=(wall,))
    result = run_scene(scene)
    # contact of a soft step yields by a millimeter at most
    assert position(result, "box", 0.9)[0] == pytest.approx(0.35, abs=1e-3)
    there = np.isfinite(result["body_position"].sel(body="obstacle").values[:, 0])
    np.testing.assert_array_equal(there, result["time"].values < 1.0)
    again = run_scene(replace(scene, pushes=(Push("box", (80.0, 0.0, 0.0), 1.0, 0.1),)))
    # absent: 8 N s on 8 kg make 1 m/s, through where the wall was
    assert position(again, "box", 2.0)[0] == pytest.approx(0.35 + 0.05 + 0.9, abs=0.01)


def test_an_obstacle_has_no_position_until_it_is_there():
    """It is far below while it is absent; no record shows it on its way."""
    wall = Obstacle(Shape("box", (0.05, 0.5, 0.5)), Frame((0.5, 0.0, 0.1)), 0.5, 1.0)
    at = run_scene(Scene("x", FLOATING, duration=1.5, obstacles=(wall,)))["body_position"].sel(body="obstacle")
    present = np.isfinite(at.values).all(axis=1)
    assert present.any() and not present[at["time"].values < 0.5].any()
    np.testing.assert_allclose(at.values[present], [[0.5, 0.0, 0.1]] * int(present.sum()), atol=1e-9)


def test_a_moving_obstacle_pushes_at_its_own_speed():
    ram = Obstacle(Shape("box", (0.05, 0.05, 0.05)), Frame((-0.5, 0.0, 0.1)), velocity=(0.5, 0.0, 0.0))
    result = run_scene(Scene("x", FLOATING, duration=2.0, obstacles=(ram,)))
    np.testing.assert_allclose(position(result, "obstacle", 2.0), [0.5, 0.0, 0.1], atol=1e-9)
    assert result["body_com_velocity"].sel(body="box")[-1, 0] == pytest.approx(0.5, abs=1e-3)


def test_slowly_moving_ground_moves_the_box_and_fast_ground_slips_beneath_it():
    """Friction 0.8 supports up to 7.8 m/s^2; minimum jerk over d in T needs 5.77 d / T^2 at most."""
    slow, fast = MoveGround((0.0, 0.3, 0.0), 0.1, 1.0), MoveGround((0.0, 0.3, 0.0), 0.1, 0.2)
    for move, goes_along in ((slow, True), (fast, False)):
        assert (5.7735 * 0.3 / move.duration**2 < 0.8 * 9.81) == goes_along
        result = run_scene(Scene("x", ON_FLOOR, duration=1.5, ground_moves=(move,)))
        np.testing.assert_allclose(position(result, "moving ground", 1.5), [0.0, 0.3, 0.0], atol=1e-9)
        displacement = position(result, "box", 1.5)[1]
        assert abs(displacement - 0.3) < 2e-3 if goes_along else displacement < 0.25


FULL = replace(
    gallery_scene("human_drop"),
    pushes=(Push("pelvis", (1 / 3, 0.0, -2.0), 0.5, 0.1, (0.0, 0.1, 0.0)),),
    loads=(CarriedLoad("hand_r", 5.0, hanging=True, outside=True),),
    drives=(Drive("knee_flexion_r", stiffness=10.0),),
    weakened=(WeakenedJoint("knee_r", 0.3, 0.5, 1.0),),
    obstacles=(
        Obstacle(Shape("box", (0.1, 0.2, 0.3), surface=Surface(friction=0.1)), Frame((1.0, 0.0, 0.3)), 0.5, 2.0),
    ),
    ground_moves=(MoveGround((0.1, 0.0, 0.0), 0.3, 0.5),),
)


def test_all_perturbations_are_restored_from_a_file():
    assert scene_from_text(scene_to_text(FULL)) == FULL


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"pushes": (Push("pelvs", (1.0, 0.0, 0.0)),)}, r"push: [Uu]nknown body 'pelvs' \(did you mean 'pelvis'\?\)"),
        ({"loads": (CarriedLoad("ground", 1.0),)}, "carry: [Uu]nknown body 'ground'"),
        ({"weakened": (WeakenedJoint("knee", 0.3),)}, "weaken: [Uu]nknown coordinate or joint 'knee'"),
        ({"weakened": (WeakenedJoint("hip_r", 0.3),)}, "weaken: 'hip_r' has no drive .* coordinate: knee_flexion_r"),
        ({"model": replace(human(), ground=())}, "move-ground: The model has no ground"),
    ],
)  # fmt: skip
def test_perturbations_that_do_not_fit_the_model_raise(change, match):
    text = scene_to_text(replace(FULL, **change))
    with pytest.raises(SettingsError, match=f"file.toml: scene 'human_drop': {match}"):
        scene_from_text(text, "file.toml")


def test_a_value_out_of_range_names_the_file():
    text = scene_to_text(FULL).replace("fraction = 0.3", "fraction = 1.3")
    with pytest.raises(SettingsError, match=r"file.toml: weakened 'knee_r': The remaining fraction is 1.3"):
        scene_from_text(text, "file.toml")

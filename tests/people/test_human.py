"""The human: counts, masses, symmetry, stance, and signs of angles."""

from collections import Counter
from math import cos, pi, radians, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.model import Frame, Model, extent, validate
from borelli.model.transforms import compose, inverse
from borelli.people.human import human

MIRROR = np.array([1.0, -1.0, 1.0])


def center_of_mass(model: Model) -> np.ndarray:
    moments = [b.mass * (np.array(b.frame.position) + b.center_of_mass) for b in model.bodies]
    return np.sum(moments, axis=0) / model.mass


def turned(axis, angle: float) -> Frame:
    x, y, z = np.array(axis) / np.linalg.norm(axis) * sin(angle / 2)
    return Frame(orientation=(cos(angle / 2), float(x), float(y), float(z)))


def pose(model: Model, **angles: float) -> dict[str, Frame]:
    """World frames of the bodies with the named angles [rad] set, by the definition of the joints."""
    frames = {"ground": Frame()}
    for joint in model.joints:
        value = {c.name: angles.get(c.name, c.default) for c in joint.coordinates}
        moved = Frame()
        if joint.kind == "free":
            moved = Frame(tuple(value[c.name] for c in joint.coordinates[:3]))
        turns = [c.name for c in joint.coordinates if c.rotational]
        for name, axis in zip(turns, joint.axes, strict=False):
            moved = compose(moved, turned(axis, value[name]))
        anchor = compose(frames[joint.parent], joint.parent_frame)
        frames[joint.child] = compose(compose(anchor, moved), inverse(joint.child_frame))
    return frames


def other_side(name: str) -> str:
    return {"_r": name[:-2] + "_l", "_l": name[:-2] + "_r"}.get(name[-2:], name)


def test_counts_are_those_of_the_paper() -> None:
    model = human()
    kinds = Counter(joint.kind for joint in model.joints)
    assert len(model.bodies) == 21
    assert kinds == {"free": 1, "ball": 10, "universal": 8, "hinge": 2}
    assert len(model.coordinates) == 48 + 6
    assert not model.self_collision


@settings(max_examples=40, deadline=None)
@given(st.floats(1.0, 500.0), st.floats(0.3, 3.0), st.sampled_from(["male", "female"]))
def test_any_subject_is_sound_and_has_the_requested_mass(mass: float, height: float, sex: str) -> None:
    model = validate(human(mass, height, sex))
    assert model.mass == pytest.approx(mass, rel=1e-14)


def test_default_mass_is_exact() -> None:
    assert abs(human().mass - 75.0) < 1e-12
    assert abs(human(mass=72.6, height=1.78).mass - 72.6) < 1e-12


@pytest.mark.parametrize("sex", ["male", "female"])
def test_center_of_mass_agrees_with_measurements(sex: str) -> None:
    """Standing center of mass at 0.56 of stature (0.55 to 0.57 in the literature), over the feet, at the midline."""
    x, y, z = center_of_mass(human(70.0, 1.70, sex)) / 1.70
    assert z == pytest.approx(0.56, abs=0.015)
    assert abs(x) < 0.01
    assert abs(y) < 1e-15


@pytest.mark.parametrize("sex", ["male", "female"])
def test_stands_on_the_ground_at_full_height(sex: str) -> None:
    model = human(80.0, 1.9, sex)
    bottoms, tops = {}, {}
    for body in model.bodies:
        middle, half = extent(body)
        bottoms[body.name] = (body.frame.position[2] + middle - half)[2]
        tops[body.name] = (body.frame.position[2] + middle + half)[2]
    assert min(bottoms.values()) == pytest.approx(0.0, abs=1e-12)
    for part in ("foot_r", "foot_l", "toes_r", "toes_l"):
        assert bottoms[part] == pytest.approx(0.0, abs=1e-12)
    assert max(tops.values()) == tops["head"] == pytest.approx(1.9)


def test_left_mirrors_right_to_the_bit() -> None:
    model = human(sex="female")
    for body in model.bodies:
        twin = model.body(other_side(body.name))
        assert twin.mass == body.mass
        assert np.array(twin.center_of_mass) == pytest.approx(MIRROR * body.center_of_mass, abs=1e-15)
        assert np.array(twin.inertia) == pytest.approx(np.outer(MIRROR, MIRROR) * body.inertia, abs=1e-15)
        assert np.array(twin.frame.position) == pytest.approx(MIRROR * body.frame.position, abs=0)
    for joint in model.joints:
        twin_joint = model.joint(other_side(joint.name))
        if twin_joint is joint:
            continue
        assert np.array(twin_joint.parent_frame.position) == pytest.approx(
            MIRROR * joint.parent_frame.position, abs=1e-15
        )
        # a rotation is mirrored by mirroring its axis and reversing its sign
        assert np.array(twin_joint.axes) == pytest.approx(-MIRROR * np.array(joint.axes), abs=0)
        assert [(c.lower, c.upper) for c in twin_joint.coordinates] == [(c.lower, c.upper) for c in joint.coordinates]


def test_reference_frames_are_the_pose_at_default_coordinates() -> None:
    model = human()
    frames = pose(model)
    for body in model.bodies:
        assert frames[body.name].position == pytest.approx(body.frame.position, abs=1e-12)
        assert frames[body.name].orientation == pytest.approx(body.frame.orientation, abs=1e-12)


FORWARD, LEFT, UP = np.eye(3)
# angle, body whose point is watched, the point [m], where it goes; for the right side where there are two
MOTIONS = [
    ("sacral_flexion", "head", (0, 0, 0), FORWARD),
    ("lumbar_flexion", "head", (0, 0, 0), FORWARD),
    ("lumbar_bending", "head", (0, 0, 0), LEFT),
    ("neck_flexion", "head", (0, 0, 0), FORWARD),
    ("head_flexion", "head", (0, 0, 0.1), FORWARD),
    ("head_bending", "head", (0, 0, 0.1), LEFT),
    ("head_rotation", "head", (0.1, 0, 0), LEFT),
    ("clavicle_protraction_r", "upper_arm_r", (0, 0, 0), FORWARD),
    ("clavicle_elevation_r", "upper_arm_r", (0, 0, 0), UP),
    ("clavicle_rotation_r", "collar_r", (0.1, 0, 0), UP),
    ("shoulder_flexion_r", "hand_r", (0, 0, 0), FORWARD),
    ("shoulder_adduction_r", "hand_r", (0, 0, 0), LEFT),
    ("shoulder_rotation_r", "hand_r", (0.1, 0, 0), LEFT),
    ("elbow_flexion_r", "hand_r", (0, 0, 0), FORWARD),
    ("elbow_pronation_r", "hand_r", (0.1, 0, 0), LEFT),
    ("wrist_flexion_r", "hand_r", (0, 0, -0.1), LEFT),
    ("wrist_deviation_r", "hand_r", (0, 0, -0.1), FORWARD),
    ("hip_flexion_r", "foot_r", (0, 0, 0), FORWARD),
    ("hip_adduction_r", "foot_r", (0, 0, 0), LEFT),
    ("hip_rotation_r", "toes_r", (0, 0, 0), LEFT),
    ("knee_flexion_r", "foot_r", (0, 0, 0), -FORWARD),
    ("knee_rotation_r", "toes_r", (0, 0, 0), LEFT),
    ("ankle_flexion_r", "toes_r", (0, 0, 0), UP),
    ("ankle_inversion_r", "foot_r", (0, 0.1, 0), UP),
    ("toe_extension_r", "toes_r", (0.1, 0, 0), UP),
]


@pytest.mark.parametrize(("angle", "body", "point", "way"), MOTIONS, ids=[m[0] for m in MOTIONS])
def test_signs_of_angles_match_their_names(angle: str, body: str, point, way) -> None:
    model = human()
    sides = [(angle, body, point, way)]
    if angle.endswith("_r"):
        sides.append((other_side(angle), other_side(body), MIRROR * point, MIRROR * way))
    for name, carrier, local, expected in sides:
        spot = Frame(tuple(float(v) for v in local))
        before = np.array(compose(pose(model)[carrier], spot).position)
        after = np.array(compose(pose(model, **{name: 0.1})[carrier], spot).position)
        moved = after - before
        assert moved @ expected > 0.9 * np.linalg.norm(moved) > 0.0, name


def test_every_internal_angle_has_limits_around_its_default() -> None:
    for coordinate in human().coordinates[6:]:
        assert -pi <= coordinate.lower <= 0.0 <= coordinate.upper <= pi, coordinate.name
        assert coordinate.upper - coordinate.lower >= radians(9.9), coordinate.name


def test_second_angles_of_balls_avoid_gimbal_lock() -> None:
    for joint in human().joints:
        if joint.kind == "ball":
            middle = joint.coordinates[1]
            assert max(-middle.lower, middle.upper) <= radians(86), joint.name


def test_whole_segments_of_the_tables_are_kept() -> None:
    """Head with neck, trunk with collars, foot with toes: mass fractions of de Leva 1996, summed over both parts."""
    model = human(100.0, 1.8)
    mass = {b.name: b.mass for b in model.bodies}
    assert mass["head"] + mass["neck"] == pytest.approx(6.94)
    assert mass["upper_torso"] + mass["collar_r"] + mass["collar_l"] == pytest.approx(15.96)
    assert mass["foot_r"] + mass["toes_r"] == pytest.approx(1.37)
    assert mass["thigh_l"] == pytest.approx(14.16)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mass": 0.0}, "mass is 0.0"),
        ({"mass": float("nan")}, "mass is nan"),
        ({"height": 175.0}, "height is 175.0 m. It must be from 0.3 to 3 m"),
        ({"sex": "mal"}, "Unknown sex 'mal'.*did you mean 'male'"),
        ({"markers": "cmu"}, "Unknown marker set 'cmu'.*cmu41"),
    ],
)
def test_bad_settings_are_refused(settings: dict, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        human(**settings)

"""Predicted ground reaction forces: laws on motions whose forces are known."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.ground.contact_detection import belt_velocity
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.ground.soles import find_soles
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.errors import ModelError
from borelli.model.kinematics import center_of_mass
from borelli.model.model import Marker
from borelli.people.human import human

RATE = 100.0
MODEL = human(70.0, 1.75)
WEIGHT = MODEL.mass * 9.81
COLUMN = {c.name: i for i, c in enumerate(MODEL.coordinates)}
SAME = 1e-6  # of the weight: what rotating, mirroring and translating the lab may change


def motion_of(change, seconds=2.0, model=MODEL):
    """Return the standing human with some coordinates as functions of time, and its derivatives, unfiltered."""
    time = np.arange(round(seconds * RATE)) / RATE
    q = np.tile([c.default for c in model.coordinates], (len(time), 1))
    for name, function in change.items():
        q[:, COLUMN[name]] += function(time)
    motion = make_motion(model, q, time, RATE)
    return motion, differentiate(motion, filter="none")


def march(period=1.6):
    """Return marching in place: the body leans over one leg while the other is lifted, with swinging arms."""
    leg = 0.86  # m from hip to ankle, so that the feet stay in place

    def sway(t):
        return 0.08 * np.sin(2.0 * np.pi * t / period)

    change = {
        "root_y": sway,
        "root_yaw": lambda t: 0.05 * np.sin(2.0 * np.pi * t / period + 0.3),
        "shoulder_flexion_r": lambda t: 0.5 * np.sin(2.0 * np.pi * t / period),
        "shoulder_flexion_l": lambda t: -0.3 * np.sin(2.0 * np.pi * t / period),
        "lumbar_bending": lambda t: 0.1 * np.cos(2.0 * np.pi * t / period),
    }
    for letter, side in (("r", 1.0), ("l", -1.0)):

        def raised(t, side=side):
            return np.maximum(0.0, side * np.sin(2.0 * np.pi * t / period)) ** 4

        def tilt(t, side=side):
            return -side * np.arcsin(sway(t) / leg)

        change[f"hip_flexion_{letter}"] = lambda t, raised=raised: 0.9 * raised(t)
        change[f"knee_flexion_{letter}"] = lambda t, raised=raised: 1.2 * raised(t)
        change[f"ankle_flexion_{letter}"] = lambda t, raised=raised: 0.3 * raised(t)
        change[f"hip_adduction_{letter}"] = change[f"ankle_inversion_{letter}"] = tilt
    return change


def test_a_standing_body_is_supported_by_both_feet_equally():
    motion, curves = motion_of({})
    found = predict_grf(motion, curves)
    force = found["ground_reaction_force"].values
    assert force[..., 2] == pytest.approx(np.full((len(curves.time), 2), WEIGHT / 2), abs=0.001 * WEIGHT)
    assert force.sum(axis=1)[:, :2] == pytest.approx(0.0, abs=0.001 * WEIGHT)
    center = center_of_mass(MODEL, curves.coordinates)
    pressure = found["center_of_pressure"].values
    assert pressure.mean(axis=1)[:, :2] == pytest.approx(center[:, :2], abs=0.001)
    assert pressure[..., 2] == pytest.approx(0.0, abs=1e-9)
    assert (found["belt_velocity"].values == 0.0).all()


def test_predicted_and_unexplained_forces_add_up_to_the_required_force():
    motion, curves = motion_of(march())
    found = predict_grf(motion, curves)
    given = found["ground_reaction_force"].values.sum(axis=1) + found["unexplained_force"].values
    center = center_of_mass(MODEL, curves.coordinates)
    acceleration = np.gradient(np.gradient(center, 1.0 / RATE, axis=0), 1.0 / RATE, axis=0)
    inner = slice(5, -5)
    required = MODEL.mass * (acceleration - np.array(MODEL.gravity))
    assert given[inner] == pytest.approx(required[inner], abs=0.005 * WEIGHT)  # differences over 20 ms


def test_the_lifted_foot_has_no_force_and_the_other_all_of_it():
    motion, curves = motion_of(march(), seconds=1.6)
    found = predict_grf(motion, curves)
    right, left = np.moveaxis(found["ground_reaction_force"].values[..., 2], 1, 0)
    position = found["sole_position"].values
    up = position[:, :5, 2].min(axis=1) > 0.05
    assert up.sum() > 10
    assert (right[up] == 0.0).all()
    needed = (found["ground_reaction_force"].sum("foot") + found["unexplained_force"]).values[:, 2]
    assert left[up] == pytest.approx(needed[up], abs=0.01 * WEIGHT)
    # the pressure is under the stance foot
    pressure = found["center_of_pressure"].values[up, 1, :2]
    assert (pressure >= position[up, 5:, :2].min(axis=1) - 1e-3).all()
    assert (pressure <= position[up, 5:, :2].max(axis=1) + 1e-3).all()


def test_forces_stay_in_their_friction_cones(monkeypatch):
    motion, curves = motion_of(march())
    for friction in (0.05, 0.8):
        monkeypatch.setattr("borelli.analysis.ground.predict_grf.FRICTION", friction)
        force = predict_grf(motion, curves)["sole_force"].values
        slant = np.linalg.norm(force[..., :2], axis=-1)
        assert (slant <= friction * force[..., 2] + 1e-9 * WEIGHT).all()


def test_a_body_in_flight_has_no_ground_reaction():
    def fall(t):
        return np.where((t > 0.5) & (t < 1.1), 0.5 * 9.81 * (t - 0.5) * (1.1 - t), 0.0)

    motion, curves = motion_of({"root_z": fall})
    found = predict_grf(motion, curves)
    flight = (curves.time > 0.56) & (curves.time < 1.04)
    assert (found["ground_reaction_force"].values[flight] == 0.0).all()
    assert np.isnan(found["center_of_pressure"].values[flight]).all()


def rotated(vectors, angle):
    c, s = np.cos(angle), np.sin(angle)
    return vectors @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def differences(first, second):
    return max(
        np.abs(np.nan_to_num(first[name].values - second[name].values)).max() / (1.0 if "center" in name else WEIGHT)
        for name in ("ground_reaction_force", "center_of_pressure", "free_moment", "sole_force", "unexplained_moment")
    )


def test_rotating_and_translating_the_lab_rotates_and_translates_the_forces():
    change = march()
    motion, curves = motion_of(change)
    found = predict_grf(motion, curves)
    angle, displacement = 1.1, np.array([3.0, -7.0, 0.4])
    start = np.array([MODEL.coordinates[COLUMN[f"root_{axis}"]].default for axis in "xyz"])

    def position(axis):
        def function(t):
            path = np.stack([np.zeros_like(t), change["root_y"](t), np.zeros_like(t)], axis=1) + start
            return (rotated(path, angle) + displacement - start)[:, axis]

        return function

    other = {**change, "root_yaw": lambda t: change["root_yaw"](t) + angle}
    other |= {f"root_{name}": position(axis) for axis, name in enumerate("xyz")}
    again = predict_grf(*motion_of(other))
    expected = found.copy(deep=True)
    for name in ("ground_reaction_force", "free_moment", "sole_force", "unexplained_moment"):
        expected[name].values = rotated(found[name].values, angle)
    expected["center_of_pressure"].values = rotated(found["center_of_pressure"].values, angle) + displacement
    assert differences(again, expected) <= SAME


def test_mirroring_the_body_mirrors_the_forces():
    change = march() | {
        "hip_rotation_r": lambda t: 0.05 * np.sin(3.0 * t),
        "head_rotation": lambda t: 0.2 * np.sin(2.0 * t),
    }
    flipped = ("root_y", "root_roll", "root_yaw", "_bending", "_rotation")

    def mirrored(name):
        if name.endswith("_r") or name.endswith("_l"):
            return name[:-1] + ("l" if name.endswith("_r") else "r"), 1.0
        return name, -1.0 if name.endswith(flipped) else 1.0

    other = {}
    for name, function in change.items():
        twin, sign = mirrored(name)
        other[twin] = lambda t, function=function, sign=sign: sign * function(t)
    found, again = predict_grf(*motion_of(change)), predict_grf(*motion_of(other))
    expected = found.isel(foot=[1, 0], sole=[5, 6, 7, 8, 9, 0, 1, 2, 3, 4]).copy(deep=True)
    across = np.array([1.0, -1.0, 1.0])
    for name in ("ground_reaction_force", "sole_force", "center_of_pressure"):
        expected[name].values = expected[name].values * across
    for name in ("free_moment", "unexplained_moment"):  # moments are mirrored the other way
        expected[name].values = -expected[name].values * across
    assert differences(again, expected) <= SAME


def test_a_treadmill_is_detected_and_changes_nothing(monkeypatch):
    """Galilei: a belt that moves everything at constant velocity needs the same forces."""
    change = march()
    found = predict_grf(*motion_of(change))
    carried = change | {"root_x": lambda t: -1.2 * t, "root_y": lambda t: change["root_y"](t) + 0.3 * t}
    motion, curves = motion_of(carried)
    again = predict_grf(motion, curves)
    assert again["belt_velocity"].values == pytest.approx([-1.2, 0.3, 0.0], abs=0.05)
    monkeypatch.setattr("borelli.analysis.ground.predict_grf.belt_velocity", lambda *_: np.array([-1.2, 0.3, 0.0]))
    stated = predict_grf(motion, curves)
    assert stated["ground_reaction_force"].values == pytest.approx(
        found["ground_reaction_force"].values, abs=SAME * WEIGHT
    )
    assert again["ground_reaction_force"].values == pytest.approx(
        found["ground_reaction_force"].values, abs=0.05 * WEIGHT
    )


def test_a_slow_belt_counts_as_none():
    height = np.zeros((50, 2))
    velocity = np.zeros((50, 2, 3))
    velocity[..., 0] = 0.1
    assert (belt_velocity(height, velocity) == 0.0).all()
    assert belt_velocity(height, 10.0 * velocity) == pytest.approx([1.0, 0.0, 0.0])


def test_a_body_on_a_box_is_supported_by_it():
    def down(t):
        s = np.clip((t - 1.0) / 0.4, 0.0, 1.0)
        return 0.3 * (1.0 - s**3 * (10.0 - 15.0 * s + 6.0 * s * s))

    motion, curves = motion_of({"root_z": down}, seconds=3.0)
    found = predict_grf(motion, curves)
    on_box = curves.time < 0.9
    assert found["ground_reaction_force"].values.sum(axis=1)[on_box, 2] == pytest.approx(WEIGHT, rel=0.01)
    assert found["center_of_pressure"].values[on_box, :, 2] == pytest.approx(0.3, abs=0.01)
    assert found["ground_reaction_force"].values.sum(axis=1)[curves.time > 1.6, 2] == pytest.approx(WEIGHT, rel=0.01)


def test_soles_follow_the_markers_of_heel_and_forefoot():
    """A foot whose markers are displaced from its box: the points follow the markers, on both sides."""
    aside = 0.04
    foot = MODEL.body("foot_r").shapes[0]
    back = foot.frame.position[0] - foot.size[0]
    marks = tuple(
        Marker(f"{side}{name}", f"foot_{side.lower()}", (x, sign * aside, 0.0))
        for side, sign in (("R", -1.0), ("L", 1.0))
        for name, x in (("HEE", back - 0.01), ("TOE", 0.1))
    )
    plain, marked = find_soles(MODEL), find_soles(replace(MODEL, markers=marks))
    # x, z as before; y moved to the markers
    assert marked.positions[:, [0, 2]] == pytest.approx(plain.positions[:, [0, 2]], abs=1e-12)
    outward = np.repeat([-aside, aside], 5)
    assert marked.positions[:, 1] == pytest.approx(plain.positions[:, 1] + outward, abs=1e-12)


def test_invalid_arguments_raise():
    motion, curves = motion_of({}, seconds=0.5)
    renamed = {"foot_r": "a", "foot_l": "b", "toes_r": "c", "toes_l": "d"}
    footless = replace(
        MODEL,
        bodies=tuple(replace(body, name=renamed.get(body.name, body.name)) for body in MODEL.bodies),
        joints=tuple(
            replace(j, parent=renamed.get(j.parent, j.parent), child=renamed.get(j.child, j.child))
            for j in MODEL.joints
        ),
    )
    with pytest.raises(ModelError, match="has no right foot"):
        predict_grf(replace(motion, model=footless), curves)

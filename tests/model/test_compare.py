"""Parity: equal models agree, each change is found where it was made, names are matched with care."""

import json
from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model import (
    GROUND,
    Body,
    Coordinate,
    Coupling,
    Frame,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    TransformAxis,
    constant,
    linear,
    polynomial,
    validate,
)
from borelli.model.compare import compare_models
from borelli.model.kinematics import coupled_forces, coupled_motion, generalized_forces
from borelli.model.transforms import compose
from borelli.people.human import human

from .test_kinematics import KINDS, random_model

ROUNDING = 1e-9


def arm() -> Model:
    inertia = ((0.02, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, 0.01))
    bodies = (Body("upper", 2.0, (0.0, 0.0, -0.15), inertia), Body("fore", 1.2, (0.0, 0.0, -0.12), inertia))
    joints = (
        Joint("shoulder", "ball", GROUND, "upper", coordinates=tuple(Coordinate(f"shoulder_{a}") for a in "xyz")),
        Joint("elbow", "hinge", "upper", "fore", Frame((0.0, 0.0, -0.3)), coordinates=(Coordinate("elbow", 0.2),)),
    )
    markers = (Marker("WRI", "fore", (0.0, 0.0, -0.25)), Marker("ELB", "upper", (0.0, 0.03, -0.3)))
    path = (PathPoint("upper", (0.0, 0.0, 0.0)), PathPoint("fore", (0.0, 0.02, -0.05)))
    return validate(Model("arm", bodies, joints, markers, muscles=(Muscle("BIC", path, 500.0, 0.12, 0.2),)))


def changed(model, **fields):
    return replace(model, **fields)


def test_model_agrees_with_itself() -> None:
    report = compare_models(human(), human())
    assert all(report.worst(quantity.name) == 0.0 for quantity in report.quantities)
    assert report.only_a == report.only_b == {}
    assert len(report.quantity("inverse dynamics").rows) == len(human().coordinates)


@pytest.mark.parametrize(
    ("change", "touched"),
    [
        (lambda m: changed(m, bodies=(replace(m.bodies[0], mass=2.5), m.bodies[1])),
         {"total mass": 0.5, "body mass": 0.5}),
        (lambda m: changed(m, bodies=(m.bodies[0], replace(m.bodies[1], center_of_mass=(0.0, 0.01, -0.12)))),
         {"body center of mass": 0.01}),
        (lambda m: changed(m, joints=(m.joints[0], replace(m.joints[1], parent_frame=Frame((0.0, 0.0, -0.32))))),
         {"segment length": 0.02, "body position": 0.02}),
        (lambda m: changed(m, markers=(replace(m.markers[0], position=(0.0, 0.003, -0.246)), m.markers[1])),
         {"marker position": 0.005}),
        (lambda m: changed(m, muscles=(replace(m.muscles[0], max_isometric_force=480.0, tendon_slack_length=0.21),)),
         {"muscle maximum isometric force": 20.0, "tendon slack length": 0.01}),
    ],
)  # fmt: skip
def test_changes_appear_in_their_quantity(change, touched) -> None:
    report = compare_models(arm(), change(arm()), poses=20)
    for name, size in touched.items():
        assert report.worst(name) == pytest.approx(size, rel=1e-9)
    moves = {"body mass", "body center of mass", "segment length"} & touched.keys()
    assert (report.worst("inverse dynamics") > 1e-3) == bool(moves)
    untouched = {"body inertia", "body orientation"}
    assert all(report.worst(name) < ROUNDING for name in untouched)


def test_names_match_without_case_and_punctuation_if_unambiguous() -> None:
    model = arm()
    other = replace(
        model, markers=(Marker("wri", "fore", (0.0, 0.0, -0.25)), Marker("L_ELB", "upper", (0.0, 0.0, 0.0)))
    )
    report = compare_models(model, other)
    assert [row.name for row in report.quantity("marker position").rows] == ["WRI"]
    assert (report.only_a, report.only_b) == ({"markers": ("ELB",)}, {"markers": ("L_ELB",)})
    twice = replace(model, markers=(*other.markers[:1], Marker("Wri", "fore", (0.0, 0.0, 0.0))))
    assert compare_models(model, twice).quantity("marker position").rows == ()


def test_other_vertical_axis_is_rotated() -> None:
    model = arm()
    half = 0.5**0.5
    lying = Frame(orientation=(half, -half, 0.0, 0.0))  # z up in a world with y up
    joints = tuple(
        replace(j, parent_frame=compose(lying, j.parent_frame)) if j.parent == GROUND else j for j in model.joints
    )
    other = replace(model, joints=joints, gravity=(0.0, -9.81, 0.0))
    report = compare_models(model, other)
    assert any("Gravity" in note for note in report.notes)
    for name in ("body position", "body orientation", "marker position", "inverse dynamics", "model center of mass"):
        assert report.worst(name) < ROUNDING


def test_positions_can_be_relative_to_a_body() -> None:
    model = arm()
    moved = replace(model, joints=(replace(model.joints[0], parent_frame=Frame((1.0, 2.0, 3.0))), model.joints[1]))
    assert compare_models(model, moved).worst("marker position") > 3.0
    assert compare_models(model, moved, frame="upper").worst("marker position") < ROUNDING
    with pytest.raises(SettingsError, match="Unknown body in both models 'hand'"):
        compare_models(model, moved, frame="hand")


def followed(powers) -> tuple[Model, Model]:
    """A knee whose shift is a function of its angle, and the same with a coordinate of its own, coupled."""
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    still = [TransformAxis(axis, constant(0.0)) for axis in axes]
    knee = TransformAxis(axes[0], linear(1.0), "knee")
    body = Body("shank", 3.0, (0.0, 0.05, -0.2), ((0.05, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.01)))
    one = (knee, still[1], still[2], still[0], TransformAxis(axes[1], polynomial(powers), "knee"), still[2])
    two = (*one[:4], TransformAxis(axes[1], linear(1.0), "slide"), still[2])
    angle, slide = Coordinate("knee", lower=-1.0, upper=1.0), Coordinate("slide", rotational=False)
    a = Model("one", (body,), (Joint("j", "coordinate", GROUND, "shank", coordinates=(angle,), motion=one),))
    b = Model(
        "two",
        (body,),
        (Joint("j", "coordinate", GROUND, "shank", coordinates=(angle, slide), motion=two),),
        couplings=(Coupling("c", "slide", "knee", polynomial(powers)),),
    )
    return validate(a), validate(b)


def test_coupling_equals_a_function_in_the_joint() -> None:
    report = compare_models(*followed([0.01, 0.1, -0.2, 0.05]))
    for name in ("body position", "inverse dynamics"):
        assert len(report.quantity(name).rows) == 1
        assert report.worst(name) < ROUNDING
    assert report.quantity("inverse dynamics").rows[0].a[0] != 0.0


def test_coupled_motion_and_forces_do_the_same_work() -> None:
    _, model = followed([0.01, 0.1, -0.2, 0.05])
    step = 1e-5
    time = np.array([-step, 0.0, step])
    knee = 0.4 + 0.9 * time + 0.5 * 3.0 * time**2
    q = np.stack([knee, np.zeros(3)], axis=1)
    u = np.stack([0.9 + 3.0 * time, np.zeros(3)], axis=1)
    a = np.tile([3.0, 0.0], (3, 1))
    q, u, a = coupled_motion(model, q, u, a)
    assert u[1, 1] == pytest.approx((q[2, 1] - q[0, 1]) / (2 * step), rel=1e-8)
    assert a[1, 1] == pytest.approx((u[2, 1] - u[0, 1]) / (2 * step), rel=1e-8)
    forces = generalized_forces(model, q, u, a)
    held = coupled_forces(model, q, forces)
    assert (held[:, 1] == 0.0).all()
    assert (held * u).sum(axis=1) == pytest.approx((forces * u).sum(axis=1))


def test_random_models_agree_through_all_joint_kinds() -> None:
    model = random_model(5, KINDS)
    report = compare_models(model, replace(model, bodies=model.bodies[::-1], joints=model.joints[::-1]), poses=10)
    assert all(report.worst(quantity.name) < ROUNDING for quantity in report.quantities)


def test_comparison_as_text_and_json() -> None:
    model = arm()
    other = replace(model, name="arm 2", markers=(replace(model.markers[0], position=(0.0, 0.01, -0.25)),))
    report = compare_models(model, other, poses=5)
    text = report.text()
    assert "marker position" in text and "0.01" in text and "markers only in arm: ELB" in text
    plain = json.loads(json.dumps(report.to_dict()))
    (entry,) = (q for q in plain["quantities"] if q["name"] == "marker position")
    assert entry["worst"] == pytest.approx(0.01)
    assert entry["rows"][0]["name"] == "WRI"
    assert compare_models(model, model).a == "arm (1)"
    assert compare_models(model, model, labels=("a.osim", "b.xml")).b == "b.xml"


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(SettingsError, match="poses is 0"):
        compare_models(arm(), arm(), poses=0)
    with pytest.raises(SettingsError, match="Unknown quantity 'weight'"):
        compare_models(arm(), arm(), poses=1).worst("weight")


def test_models_without_common_elements() -> None:
    empty = Model("empty", (), ())
    report = compare_models(arm(), empty, poses=2)
    assert report.worst("body position") == 0.0
    assert report.only_a["bodies"] == ("upper", "fore")
    assert "0" in report.text()

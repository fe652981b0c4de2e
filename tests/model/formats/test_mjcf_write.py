"""MJCF writer: MuJoCo loads the files, poses and markers agree, and reading restores the model."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.model import (
    GROUND,
    JOINT_KINDS,
    Body,
    Coordinate,
    Coupling,
    Frame,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    Shape,
    TransformAxis,
    constant,
    linear,
    natural_cubic_spline,
    polynomial,
    validate,
)
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.formats.mjcf.writer import mjcf_text, write_mjcf
from borelli.model.kinematics import coupled_coordinates, poses, with_default_frames
from borelli.people.human import human

from ...shared_data import SHARED_DATA as DATA
from ..mujoco_referee import POSITION_TOLERANCE, agrees, engine, random_rows, same_masses
from ..test_kinematics import random_model

FULL_BODY = DATA / "muscle_models" / "mjcf" / "musclemimic_models" / "body" / "myofullbody.xml"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo writes its log where it is called."""
    monkeypatch.chdir(tmp_path)


def wrote(model, tmp_path):
    """A written model as MuJoCo loads it, as borelli reads it, and the notes."""
    mujoco = engine()
    path = tmp_path / "written.xml"
    notes = write_mjcf(model, path, overwrite=True)
    return mujoco.MjModel.from_xml_path(str(path)), read_mjcf(path), notes


@pytest.mark.crosscheck
def test_mjcf_restores_the_human(tmp_path) -> None:
    model = human(mass=70.0, height=1.8)
    theirs, again, notes = wrote(model, tmp_path)
    assert notes == ()
    agrees(model, theirs, random_rows(model))
    same_masses(model, theirs)
    assert {j.child: j.kind for j in again.joints} == {j.child: j.kind for j in model.joints}
    for c, d in zip(sorted(model.coordinates, key=_name), sorted(again.coordinates, key=_name), strict=True):
        assert (c.name, c.rotational, c.locked) == (d.name, d.rotational, d.locked)
        assert (c.default, c.lower, c.upper) == pytest.approx((d.default, d.lower, d.upper))
    for body in model.bodies:
        other = again.body(body.name)
        assert other.mass == body.mass
        assert other.frame.position == pytest.approx(body.frame.position, abs=1e-12)
        assert [s.kind for s in other.shapes] == [s.kind for s in body.shapes]
        assert [s.size for s in other.shapes] == [s.size for s in body.shapes]
        assert [s.collides for s in other.shapes] == [s.collides for s in body.shapes]
    assert again.gravity == model.gravity and again.self_collision == model.self_collision


def _name(element) -> str:
    return element.name


def coordinate_model() -> Model:
    """Joints of every kind, functions of every sort, a chain through a body without mass."""
    inertia = ((0.1, 0.01, 0.0), (0.01, 0.2, 0.0), (0.0, 0.0, 0.15))
    bodies = [Body(n, 1.0, (0.1, 0.0, 0.2), inertia) for n in ("a", "b", "c", "d", "e")]
    nothing = Body("nothing", 0.0, inertia=((0.0,) * 3,) * 3)
    turned = Frame((0.1, 0.2, 0.3), (0.5, 0.5, -0.5, 0.5))
    spline = natural_cubic_spline([-1.0, 0.0, 0.5, 1.0], [0.0, 0.1, -0.1, 0.2])
    knee = (
        TransformAxis((0.0, 0.0, 1.0), linear(-1.0, 0.2), "knee"),
        TransformAxis((0.0, 1.0, 0.0), constant(0.3)),
        TransformAxis((1.0, 0.0, 0.0), polynomial([0.1, 0.2, 0.3]), "knee"),
        TransformAxis((1.0, 0.0, 0.0), spline, "knee"),
        TransformAxis((0.0, 1.0, 0.0), linear(1.0), "slip"),
        TransformAxis((0.0, 0.0, 1.0), constant(-0.4)),
    )
    only = (
        TransformAxis((1.0, 0.0, 0.0), linear(0.5), "odd"),
        *(TransformAxis(axis, constant(0.0)) for axis in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))),
        *(TransformAxis(axis, constant(0.0)) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))),
    )
    joints = [
        Joint("root", "planar", GROUND, "a", turned, Frame((0.0, 0.1, 0.0)), ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
              (Coordinate("x", 0.2, rotational=False), Coordinate("z", rotational=False), Coordinate("turn", 0.3))),
        Joint("knee", "coordinate", "a", "b", turned, turned, (),
              (Coordinate("knee", 0.1, -1.0, 1.0), Coordinate("slip", rotational=False)), knee),
        Joint("first", "universal", "b", "nothing", turned, Frame(), (),
              (Coordinate("u"), Coordinate("v", lower=-1.0))),
        Joint("second", "ball", "nothing", "c", Frame((0.0, 0.0, 0.4)), turned, (),
              (Coordinate("i"), Coordinate("j"), Coordinate("k", 0.4, locked=True))),
        Joint("odd", "coordinate", "c", "d", turned, Frame(), (), (Coordinate("odd"),), only),
        Joint("stiff", "fixed", "a", "e", turned, turned),
    ]  # fmt: skip
    model = Model(
        "all",
        (*bodies, nothing),
        tuple(joints),
        (Marker("m", "d", (0.1, 0.2, 0.3)), Marker("g", GROUND, (1.0, 2.0, 3.0))),
        (Coupling("slips", "slip", "knee", polynomial([0.01, 0.0, 0.1])),),
        (Muscle("pull", (PathPoint("a", (0.0, 0.0, 0.1)), PathPoint("c", (0.1, 0.0, 0.0))), 900.0, 0.1, 0.2, 0.3),),
        (Shape("plane"), Shape("box", (1.0, 1.0, 0.1), turned)),
        (0.0, -9.81, 0.0),
    )
    return with_default_frames(validate(model, sound_masses=False))


@pytest.mark.crosscheck
def test_every_kind_of_joint_is_restored_from_mjcf(tmp_path) -> None:
    mujoco = engine()
    model = coordinate_model()
    theirs, again, notes = wrote(model, tmp_path)
    text = " ".join(notes)
    assert "1 functions are fitted" in text and "odd" in text and "no axis equals" in text and "pennation" in text
    # MuJoCo's equalities are soft, so dependent joints are set to the values that satisfy them
    data = mujoco.MjData(theirs)
    rows = coupled_coordinates(model, random_rows(model))
    back = np.array([[dict(zip(map(_name, model.coordinates), row, strict=True)).get(c.name, 0.0)
                      for c in again.coordinates] for row in rows])  # fmt: skip
    back = coupled_coordinates(again, back)
    mine, names = poses(model, rows)[0], [body.name for body in model.bodies]
    ours = poses(again, back)[0]
    fit = 0.05  # [m], what a fourth-order polynomial leaves of the spline
    for f, row in enumerate(back):
        for c, value in zip(again.coordinates, row, strict=True):
            data.joint(c.name).qpos[0] = value
        mujoco.mj_kinematics(theirs, data)
        for b, name in enumerate(names):
            if name != "nothing":
                assert data.body(name).xpos == pytest.approx(mine[f, b], abs=fit)
                k = [body.name for body in again.bodies].index(name)
                assert data.body(name).xpos == pytest.approx(ours[f, k], abs=POSITION_TOLERANCE)
    assert next(c for c in again.coordinates if c.name == "k").locked
    assert again.body("d").frame.position == pytest.approx(model.body("d").frame.position, abs=fit)
    assert again.muscle("pull").optimal_fiber_length == pytest.approx(0.1)
    assert again.muscle("pull").tendon_slack_length == pytest.approx(0.2)
    assert again.gravity == (0.0, -9.81, 0.0)
    assert [c.name for c in again.coordinates if c.lower == -1.0 and c.upper == inf] == ["v"]


@pytest.mark.crosscheck
def test_models_without_splines_are_restored_exactly(tmp_path) -> None:
    model = coordinate_model()
    joints = tuple(
        replace(
            j,
            motion=tuple(replace(m, function=linear(2.0, 0.1)) if len(m.function.breaks) == 4 else m for m in j.motion),
        )
        for j in model.joints
    )
    model = with_default_frames(replace(model, joints=joints))
    _, again, _ = wrote(model, tmp_path)
    rows = coupled_coordinates(model, random_rows(model))
    back = np.array([[dict(zip(map(_name, model.coordinates), row, strict=True)).get(c.name, 0.0)
                      for c in again.coordinates] for row in rows])  # fmt: skip
    mine, ours = poses(model, rows)[0], poses(again, coupled_coordinates(again, back))[0]
    names, others = ([body.name for body in m.bodies] for m in (model, again))
    for b, name in enumerate(names):
        if name in others:
            assert ours[:, others.index(name)] == pytest.approx(mine[:, b], abs=1e-12)
    assert again.mass == pytest.approx(model.mass, abs=1e-9)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from([k for k in JOINT_KINDS if k != "coordinate"]), min_size=1, max_size=6),
)
def test_models_of_simple_joints_are_restored(tmp_path, seed, kinds) -> None:
    model = with_default_frames(random_model(seed, kinds))
    path = tmp_path / "random.xml"
    assert write_mjcf(model, path, overwrite=True) == ()
    again = read_mjcf(path)
    assert {j.child: (j.parent, j.kind) for j in again.joints} == {j.child: (j.parent, j.kind) for j in model.joints}
    assert {c.name: c for c in again.coordinates} == {c.name: c for c in model.coordinates}
    order = {c.name: i for i, c in enumerate(model.coordinates)}
    rows = random_rows(model, 2, seed)
    places = dict(
        zip(
            map(_name, again.bodies),
            poses(again, rows[:, [order[c.name] for c in again.coordinates]])[0][1],
            strict=True,
        )
    )
    for body, place in zip(model.bodies, poses(model, rows)[0][1], strict=True):
        other = again.body(body.name)
        assert places[body.name] == pytest.approx(place, abs=1e-12)
        assert (other.mass, other.center_of_mass) == (body.mass, body.center_of_mass)
        assert np.array(other.inertia) == pytest.approx(np.array(body.inertia), rel=1e-12, abs=1e-15)
    assert sorted(again.markers, key=_name) == sorted(model.markers, key=_name)


@pytest.mark.crosscheck
def test_flat_and_invalid_inertias_load(tmp_path) -> None:
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    flat = turn @ np.diag([1.0, 2.0, 3.0]) @ turn.T
    impossible = turn @ np.diag([1.0, 2.0, 4.0]) @ turn.T
    bodies = tuple(
        Body(name, 1.0, inertia=tuple(map(tuple, 0.5 * (i + i.T)))) for name, i in (("flat", flat), ("odd", impossible))
    )
    joints = tuple(Joint(b.name, "hinge", GROUND, b.name, coordinates=(Coordinate(b.name),)) for b in bodies)
    theirs, again, notes = wrote(Model("two", bodies, joints), tmp_path)
    assert np.sort(theirs.body_inertia[1]) == pytest.approx([1.0, 2.0, 3.0])
    assert np.array(again.body("flat").inertia) == pytest.approx(flat)
    assert any("Invalid inertias" in note and "odd" in note for note in notes)


def test_special_characters_in_names(tmp_path) -> None:
    model = Model('a<b>&"c"\x00', (Body("x & <y>", 1.0),), (Joint("j", "fixed", GROUND, "x & <y>"),))
    text, notes = mjcf_text(model)
    path = tmp_path / "named.xml"
    path.write_text(text)
    assert read_mjcf(path).bodies[0].name == "x & <y>"
    assert any("XML does not allow" in note for note in notes)


@pytest.mark.data
@pytest.mark.crosscheck
@pytest.mark.data
def test_native_file_restores_a_real_model(tmp_path) -> None:
    model = read_mjcf(FULL_BODY)
    theirs, again, _ = wrote(model, tmp_path)
    rows = random_rows(model, 3)
    agrees(model, theirs, rows)
    order = {c.name: i for i, c in enumerate(model.coordinates)}
    same = poses(again, rows[:, [order[c.name] for c in again.coordinates]])[0]
    assert same == pytest.approx(poses(model, rows)[0], abs=1e-12)
    assert {m.name: m.max_isometric_force for m in again.muscles} == {
        m.name: m.max_isometric_force for m in model.muscles
    }
    for body in model.bodies:
        assert sorted(s.kind for s in again.body(body.name).shapes) == sorted(s.kind for s in body.shapes)
    for one, other in zip(sorted(again.wrap_objects, key=_name), sorted(model.wrap_objects, key=_name), strict=True):
        assert (one.name, one.kind, one.body, one.size) == (other.name, other.kind, other.body, other.size)
        assert one.frame.position == pytest.approx(other.frame.position)
        assert one.frame.orientation == pytest.approx(other.frame.orientation)
    functions = {c.coordinate: c.function for c in again.couplings}
    for coupling in model.couplings:
        for x in (-0.5, 0.0, 0.7):
            assert functions[coupling.coordinate](x) == pytest.approx(coupling.function(x), abs=1e-12)

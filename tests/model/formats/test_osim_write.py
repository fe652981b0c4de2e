"""Writer of .osim files: what is read back moves, weighs and pulls as what was written."""

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import ModelError
from borelli.model import (
    Body,
    Coordinate,
    Coupling,
    Frame,
    Function,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    Shape,
    TransformAxis,
    model_from_text,
    model_to_text,
    polynomial,
)
from borelli.model.formats.osim.reader import read_osim
from borelli.model.formats.osim.writer import osim_text, write_osim
from borelli.model.functions import constant, linear, natural_cubic_spline, piecewise_linear, simm_spline
from borelli.model.kinematics import generalized_forces, marker_positions, poses
from borelli.model.model import CoordinateRange, PathWrap, WrapObject
from borelli.model.validate import ROTATIONAL_COORDINATES
from borelli.people.human import human

HERE = Path(__file__).parent / "osim"
number = st.floats(-3.0, 3.0)
vectors = st.tuples(number, number, number)
turns = vectors.map(lambda v: np.array([1.0, *v]) / np.linalg.norm([1.0, *v])).map(lambda v: tuple(map(float, v)))
frames = st.builds(Frame, vectors, st.one_of(st.just((1.0, 0.0, 0.0, 0.0)), turns))
points = st.lists(st.floats(0.1, 2.0), min_size=2, max_size=6).map(lambda gaps: np.cumsum(gaps) - 3.0)
names = st.text("abc_ /+é<&\"'", min_size=1, max_size=5)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    kind = draw(st.sampled_from([constant, linear, polynomial, piecewise_linear, simm_spline, natural_cubic_spline]))
    if kind in (constant, linear):
        return kind(draw(number))
    if kind is polynomial:
        return polynomial(draw(st.lists(number, min_size=1, max_size=5)))
    x = draw(points)
    return kind(x, [draw(number) for _ in x])


@st.composite
def axes(draw: st.DrawFn, count: int) -> tuple[tuple[float, float, float], ...]:
    matrix = np.linalg.qr(np.array(draw(st.tuples(vectors, vectors, vectors))) + 5.0 * np.eye(3))[0]
    matrix[2] *= draw(st.sampled_from([1.0, -1.0]))  # right- or left-handed
    return tuple(tuple(float(c) for c in row) for row in matrix[:count])


@st.composite
def coordinates(draw: st.DrawFn, name: str, rotational: bool) -> Coordinate:
    lower, default, upper = sorted(draw(number) for _ in range(3))
    kind = draw(st.sampled_from(["none", "clamped", "half", "usual"]))
    stops = {"clamped": (lower, upper), "half": (lower, inf)}.get(kind, (-inf, inf))
    usual = (lower, upper) if kind == "usual" else None
    return Coordinate(name, default, *stops, locked=draw(st.booleans()), rotational=rotational, usual_range=usual)


@st.composite
def joints(draw: st.DrawFn, name: str, parent: str, child: str) -> Joint:
    kind = draw(st.sampled_from([*ROTATIONAL_COORDINATES, "coordinate"]))
    ends = (draw(frames), draw(frames))
    if kind == "coordinate":
        own = (draw(coordinates(f"{name}.q", True)),)
        parts = tuple(TransformAxis(axis, draw(functions()), own[0].name) for axis in (*draw(axes(3)), *draw(axes(3))))
        if all(part.function.is_constant for part in parts[:3]):
            own = (replace(own[0], rotational=False),)
        return Joint(name, kind, parent, child, *ends, coordinates=own, motion=parts)
    count = {"ball": 3, "free": 3, "planar": 2, "universal": 2, "hinge": 1, "slider": 1, "fixed": 0}[kind]
    given_axes = draw(axes(count)) if draw(st.booleans()) else ()
    named = tuple(draw(coordinates(f"{name}.{i}", turn)) for i, turn in enumerate(ROTATIONAL_COORDINATES[kind]))
    return Joint(name, kind, parent, child, *ends, given_axes, named)


@st.composite
def models(draw: st.DrawFn) -> Model:
    labels = draw(st.lists(names.filter(lambda n: n != "ground"), min_size=1, max_size=4, unique=True))
    linked = tuple(draw(joints(f"to {n}", p, n)) for p, n in zip(["ground", *labels], labels, strict=False))
    bodies = tuple(
        Body(n, draw(st.floats(0.0, 9.0)), draw(vectors), ((3.0, 0.1, 0.2), (0.1, 4.0, 0.3), (0.2, 0.3, 5.0)))
        for n in labels
    )
    known = [c.name for joint in linked for c in joint.coordinates]
    carrier = st.sampled_from([*labels, "ground"])
    span = (
        st.one_of(st.none(), st.builds(CoordinateRange, st.sampled_from(known), number, number)) if known else st.none()
    )
    path = [PathPoint(draw(carrier), draw(vectors), f"P{i}", draw(span)) for i in range(3)]
    wraps = tuple(
        WrapObject(n, kind, draw(carrier), size, draw(frames), draw(st.sampled_from(["all", "+x", "-z"])))
        for n, (kind, size) in zip(
            ("w1", "w2"), draw(st.permutations([("sphere", (0.1,)), ("cylinder", (0.1, 0.3)), ("torus", (0.1, 0.2))])),
            strict=False,
        )
    )  # fmt: skip
    muscle = Muscle(
        "m",
        tuple(path),
        draw(st.floats(1.0, 1e4)),
        0.1,
        0.2,
        draw(st.floats(0.0, 1.5)),
        "Thelen2003Muscle",
        draw(st.floats(1.0, 20.0)),
        wraps=(PathWrap("w1", 0, 1, "axial"), PathWrap("w2")),
        parameters=(("Flen", draw(number)), ("ignore_tendon_compliance", 1.0)),
    )
    coupled = draw(functions())
    return Model(
        draw(names),
        bodies,
        linked,
        tuple(Marker(n, draw(carrier), draw(vectors)) for n in draw(st.lists(names, max_size=3, unique=True))),
        (Coupling("c", known[0], known[1], coupled),) if len(known) > 1 else (),
        (muscle,),
        (Shape("plane", (), draw(frames), name="floor"),),
        gravity=draw(vectors),
        wrap_objects=wraps,
    )


def same(one: Model, other: Model, tolerance: float = 1e-9) -> None:
    """Asserts that two models, whose elements stand in the same order, are the same body."""
    assert [len(part) for part in (one.bodies, one.markers, one.muscles, one.wrap_objects)] == [
        len(part) for part in (other.bodies, other.markers, other.muscles, other.wrap_objects)
    ]
    rng = np.random.default_rng(0)
    count = len(one.coordinates)
    assert count == len(other.coordinates)
    q, u, a = rng.uniform(-1.0, 1.0, (3, 4, count))
    for mine, yours in zip(poses(one, q), poses(other, q), strict=True):
        assert np.abs(mine - yours).max() < tolerance * (1.0 + np.abs(mine).max())
    assert np.abs(marker_positions(one, q) - marker_positions(other, q)).max(initial=0.0) < 1e-6
    force, again = (generalized_forces(model, q, u, a) for model in (one, other))
    assert np.abs(force - again).max(initial=0.0) < tolerance * (1.0 + np.abs(force).max(initial=0.0))
    for mine, yours in zip(one.coordinates, other.coordinates, strict=True):
        assert replace(mine, name="") == replace(yours, name="")
    for mine, yours in zip(one.bodies, other.bodies, strict=True):
        assert (mine.mass, mine.center_of_mass, mine.inertia) == (yours.mass, yours.center_of_mass, yours.inertia)
    order = {wrap.name: wrap for wrap in other.wrap_objects}  # a file lists them by body
    for mine, yours in ((wrap, order[wrap.name]) for wrap in one.wrap_objects):
        assert replace(mine, body="", frame=Frame()) == replace(yours, body="", frame=Frame())
        assert mine.frame.position == yours.frame.position
    for mine, yours in zip(one.couplings, other.couplings, strict=True):
        assert [mine.function(x) for x in (-2.0, 0.1, 5.0)] == pytest.approx(
            [yours.function(x) for x in (-2.0, 0.1, 5.0)], rel=1e-9, abs=1e-9
        )


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(models())
def test_written_files_restore_the_model(tmp_path, model: Model) -> None:
    notes = write_osim(model, tmp_path / "a.osim", overwrite=True)
    back = read_osim(tmp_path / "a.osim")
    same(model, back)
    assert all("because OpenSim does not allow them" in note for note in notes)
    for mine, yours in zip(model.muscles, back.muscles, strict=True):
        assert mine.wraps == yours.wraps
        assert (mine.kind, mine.parameters, mine.pennation_angle) == (
            yours.kind,
            yours.parameters,
            yours.pennation_angle,
        )
        assert [point.position for point in mine.path] == [point.position for point in yours.path]
        assert [point.only_within is None for point in mine.path] == [point.only_within is None for point in yours.path]
    assert osim_text(back)[0].count("<Body ") == len(model.bodies)


@pytest.mark.parametrize("name", ["every_joint.osim", "nested_joints.osim"])
def test_written_file_restores_the_model(tmp_path, name: str) -> None:
    model = read_osim(HERE / name)
    write_osim(model, tmp_path / name, overwrite=True)
    back = read_osim(tmp_path / name)
    same(model, back)
    assert [joint.kind for joint in back.joints] == [joint.kind for joint in model.joints]
    assert [joint.closes_loop for joint in back.joints] == [joint.closes_loop for joint in model.joints]
    assert [muscle.path for muscle in back.muscles][1:] == [muscle.path for muscle in model.muscles][1:]
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["every_joint.osim", "nested_joints.osim"])
def test_native_files_contain_all_that_was_read(name: str) -> None:
    model = read_osim(HERE / name)
    back = model_from_text(model_to_text(model))
    assert back == model
    assert back.notes == model.notes


def test_human_is_written_without_boxes(tmp_path) -> None:
    model = human(mass=70.0, height=1.8)
    (note,) = write_osim(model, tmp_path / "human.osim")
    assert "Shapes are not written" in note
    same(model, read_osim(tmp_path / "human.osim"))


def arm(**rest) -> Model:
    return Model("m", (Body("a", 1.0),), (Joint("j", "hinge", "ground", "a", coordinates=(Coordinate("q"),)),), **rest)


def test_what_opensim_cannot_represent_is_noted() -> None:
    bend = TransformAxis((0.6, 0.8, 0.0), linear(1.0), "q")
    points = (PathPoint("a", (0.0, 0.0, 0.0), motion=(bend,)), PathPoint("ground", (1.0, 0.0, 0.0)))
    wrap = PathWrap("w", side_point=points[1])
    muscle = Muscle("m", points, 1.0, 0.1, 0.1, kind="mujoco", wraps=(wrap,), parameters=(("x", 1.0),))
    loop = Joint("loop", "hinge", "ground", "a", coordinates=(Coordinate("r"),), closes_loop=True)
    model = arm(
        muscles=(muscle,),
        wrap_objects=(WrapObject("w", "sphere", "a", (0.1,)),),
        markers=(Marker("M", "a", (0.0, 0.0, 0.0), ("N",)),),
    )
    model = replace(model, joints=(*model.joints, loop), bodies=(replace(model.bodies[0], kinematic=True),))
    notes = " ".join(osim_text(model)[1])
    for sentence in (
        "Muscles of class mujoco are written as Millard2012EquilibriumMuscle, without their own parameters: m",
        "Moving path points that OpenSim cannot represent are written at their default positions: m-P1 of m",
        "Side points of wraps are not written: m on w",
        "are not written unless ball or fixed: loop",
        "Kinematic bodies are written as free bodies: a",
        "Aliases of markers are not written: M",
    ):
        assert sentence in notes


def test_similar_losses_are_one_sentence() -> None:
    points = (PathPoint("a", (0.0, 0.0, 0.0)), PathPoint("ground", (1.0, 0.0, 0.0)))
    muscles = tuple(Muscle(f"m{i}", points, 1.0, 0.1, 0.1, kind="mujoco") for i in range(300))
    (note,) = osim_text(arm(muscles=muscles))[1]
    assert "m0, m1" in note
    assert "(300 in all)" in note
    assert len(note) < 200


def test_functions_opensim_does_not_have_are_refused(tmp_path) -> None:
    odd = Function((0.0, 1.0, 2.0), ((0.0, 1.0, 2.0), (7.0, 1.0)))
    model = replace(
        arm(), joints=(Joint("j", "universal", "ground", "a", coordinates=(Coordinate("q"), Coordinate("r"))),)
    )
    model = replace(model, couplings=(Coupling("c", "q", "r", odd),))
    with pytest.raises(ModelError, match="Coupling 'c': OpenSim has no such function"):
        write_osim(model, tmp_path / "a.osim")
    assert list(tmp_path.iterdir()) == []


def test_body_without_joint_stays(tmp_path) -> None:
    frame = Frame((1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5))
    write_osim(Model("m", (Body("a", 1.0, frame=frame),)), tmp_path / "a.osim")
    back = read_osim(tmp_path / "a.osim")
    assert back.joints[0].kind == "free"
    assert back.bodies[0].frame.position == pytest.approx(frame.position)
    assert back.bodies[0].frame.orientation == pytest.approx(frame.orientation)

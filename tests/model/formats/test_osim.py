"""Reader of .osim files: what it makes of every element, and what it says of those it refuses."""

import os
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import BorelliError, FileFormatError, ModelError
from borelli.model.formats.osim.frames import frame_from_angles, xyz_angles
from borelli.model.formats.osim.reader import read_osim
from borelli.model.formats.osim.spanning_tree import reversed_joint
from borelli.model.functions import constant, natural_cubic_spline, simm_spline
from borelli.model.kinematics import generalized_forces, poses
from borelli.model.model import CoordinateRange, Frame, Model, WrapObject

HERE = Path(__file__).parent / "osim"
EVERY = (HERE / "every_joint.osim").read_text()
NESTED = (HERE / "nested_joints.osim").read_text()

BODY = "<Body name='a'><mass>1</mass><inertia>1 1 1 0 0 0</inertia></Body>"
PIN = (
    "<PinJoint name='j'><socket_parent_frame>/ground</socket_parent_frame>"
    "<socket_child_frame>/bodyset/a</socket_child_frame><coordinates><Coordinate name='q'>RANGE</Coordinate>"
    "</coordinates></PinJoint>"
)


def document(*, bodies: str = BODY, joints: str = PIN, rest: str = "", version: str = "40000") -> str:
    return (
        f"<OpenSimDocument Version='{version}'><Model name='m'><BodySet><objects>{bodies}</objects></BodySet>"
        f"<JointSet><objects>{joints}</objects></JointSet>{rest}</Model></OpenSimDocument>"
    ).replace("RANGE", "")


def custom(function: str, coordinates: str = "q") -> str:
    axes = "".join(
        f"<TransformAxis name='{name}'><axis>{axis}</axis></TransformAxis>"
        for name, axis in zip(
            ("rotation2", "rotation3", "translation1", "translation2", "translation3"),
            ("0 1 0", "1 0 0", "1 0 0", "0 1 0", "0 0 1"),
            strict=True,
        )
    )
    first = f"<TransformAxis name='rotation1'><coordinates>{coordinates}</coordinates><axis>0 0 1</axis>{function}"
    return PIN.replace("PinJoint", "CustomJoint").replace(
        "</CustomJoint>", f"<SpatialTransform>{first}</TransformAxis>{axes}</SpatialTransform></CustomJoint>"
    )


@pytest.fixture
def read(tmp_path):
    def reader(text: str) -> Model:
        (tmp_path / "a.osim").write_text(text)
        return read_osim(tmp_path / "a.osim")

    return reader


def test_every_element_is_read_or_noted() -> None:
    model = read_osim(HERE / "every_joint.osim")
    assert {joint.name: joint.kind for joint in model.joints} == {
        "root": "free",
        "hip": "ball",
        "knee": "coordinate",
        "ankle": "hinge",
        "mtp": "universal",
        "rail": "slider",
        "table": "planar",
        "wrist": "ball",
        "spine": "hinge",
        "hold": "ball",
        "glue": "fixed",
    }
    assert [joint.name for joint in model.joints if joint.closes_loop] == ["hold", "glue"]
    assert [c.name for c in model.joint("table").coordinates] == ["table_x", "table_y", "table_turn"]
    assert [c.rotational for c in model.joint("knee").coordinates] == [True, True, False]
    assert model.joint("knee").coordinates[1].locked
    (coupling,) = model.couplings
    assert (coupling.coordinate, coupling.on, coupling.function(0.3)) == ("mtp_a", "bend", 2.0 * (0.5 * 0.3 + 0.1))
    assert "ConstantDistanceConstraint 'rod' is not read" in " ".join(model.notes)
    assert any(note.startswith("Not read: 1 CoordinateActuator") for note in model.notes)
    assert "Joint 'spine' is reversed" in " ".join(model.notes)
    assert model.gravity == (0.0, -9.81, 0.0)
    assert model.body("femur").inertia[0] == (0.021, 0.001, -0.002)


def test_clamped_ranges_are_joint_limits() -> None:
    model = read_osim(HERE / "every_joint.osim")
    by_name = {c.name: c for c in model.coordinates}
    assert (by_name["hip_x"].lower, by_name["hip_x"].upper, by_name["hip_x"].usual_range) == (-1.0, 1.0, None)
    assert (by_name["bend"].lower, by_name["bend"].upper, by_name["bend"].usual_range) == (-inf, inf, (-2.0, 1.5))
    assert by_name["ankle"].usual_range is None  # the file says nothing, OpenSim's default says no more
    assert by_name["ankle"].default == 0.2


def test_muscles_keep_all_parameters() -> None:
    model = read_osim(HERE / "every_joint.osim")
    long, short = model.muscles
    assert (long.kind, long.max_isometric_force, long.max_contraction_velocity) == ("Thelen2003Muscle", 812.5, 12.0)
    assert (long.activation_time, long.deactivation_time, long.parameter("Flen")) == (0.012, 0.05, 1.5)
    assert [(wrap.wrap_object, wrap.first, wrap.last, wrap.method) for wrap in long.wraps] == [
        ("egg", 1, 2, "axial"),
        ("tube", 0, -1, "hybrid"),
    ]
    assert long.path[1].only_within == CoordinateRange("bend", -0.5, 0.5)
    moving = long.path[2]
    assert [part.coordinate for part in moving.motion] == ["bend"] * 3
    assert moving.position == pytest.approx((0.05, 0.1, -0.1 * 1.7))  # the functions at bend = 0
    assert short.parameter("ignore_tendon_compliance") == 1.0
    assert short.parameter("ActiveForceLengthCurve.min_norm_active_fiber_length") == 0.5
    with pytest.raises(ModelError, match="Muscle 'short': Unknown parameter 'Flen'"):
        short.parameter("Flen")
    assert short.parameter("Flen", 1.4) == 1.4
    kinds = {wrap.name: (wrap.kind, wrap.size, wrap.side) for wrap in model.wrap_objects}
    assert kinds == {
        "tube": ("cylinder", (0.03, 0.1), "+x"),
        "ball": ("sphere", (0.02,), "all"),
        "egg": ("ellipsoid", (0.02, 0.03, 0.04), "-y"),
        "ring": ("torus", (0.01, 0.03), "all"),
    }
    assert isinstance(model.wrap_objects[0], WrapObject)


def test_contact_geometry_becomes_shapes() -> None:
    model = read_osim(HERE / "every_joint.osim")
    (sphere,) = model.body("foot").shapes
    assert (sphere.kind, sphere.size, sphere.name) == ("sphere", (0.03,), "heel")
    (plane,) = model.ground
    w, x, y, z = plane.frame.orientation
    normal = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert normal == pytest.approx((0.0, 1.0, 0.0), abs=1e-12)  # a half space is solid towards +x: here downwards


def test_older_files_give_an_equivalent_model() -> None:
    model = read_osim(HERE / "nested_joints.osim")
    assert {j.name: (j.kind, j.parent, j.child) for j in model.joints} == {
        "hip": ("hinge", "ground", "thigh"),
        "knee": ("coordinate", "thigh", "shank"),
        "back": ("coordinate", "thigh", "trunk"),
        "screws": ("fixed", "trunk", "lid"),
    }
    (muscle,) = model.muscles
    assert muscle.parameter("appliesForce") == 0.0  # isDisabled
    assert muscle.parameter("KshapePassive") == 3.5  # from <defaults>
    assert muscle.default_activation == 0.02
    assert muscle.path[1].only_within == CoordinateRange("bend", -1.0, 0.3)


def test_files_between_3_and_4_use_connectors(read) -> None:
    pin = "<PinJoint name='j'><connectors>"
    for end, frame in (("parent_frame", "ground"), ("child_frame", "a")):
        pin += f"<Connector_PhysicalFrame_ name='{end}'><connectee_name>{frame}</connectee_name>"
        pin += "</Connector_PhysicalFrame_>"
    joint = read(document(joints=pin + "</connectors></PinJoint>", version="30503")).joints[0]
    assert (joint.parent, joint.child) == ("ground", "a")
    assert joint.coordinates[0].name == "j_coord_0"


def test_offset_frames_can_be_nested(read) -> None:
    frames = (
        "<components><PhysicalOffsetFrame name='one'><socket_parent>..</socket_parent><translation>0 0 1</translation>"
        "<orientation>0 0 1.5707963267948966</orientation></PhysicalOffsetFrame><PhysicalOffsetFrame name='two'>"
        "<socket_parent>/bodyset/a/one</socket_parent><translation>1 0 0</translation></PhysicalOffsetFrame>"
        "</components>"
    )
    marker = (
        "<MarkerSet><objects><Marker name='M'><socket_parent_frame>/bodyset/a/two</socket_parent_frame>"
        "<location>0 1 0</location></Marker></objects></MarkerSet>"
    )
    model = read(document(bodies=BODY.replace("</Body>", f"{frames}</Body>"), rest=marker))
    assert model.markers[0].body == "a"
    assert model.markers[0].position == pytest.approx((-1.0, 1.0, 1.0))
    circle = frames.replace("<socket_parent>..</socket_parent>", "<socket_parent>../two</socket_parent>")
    with pytest.raises(FileFormatError, match="nested in more than 64 frames, or in itself"):
        read(document(bodies=BODY.replace("</Body>", f"{circle}</Body>"), rest=marker))


def test_body_without_joint_is_free(read) -> None:
    model = read(document(joints=""))
    (joint,) = model.joints
    assert (joint.kind, joint.name, len(joint.coordinates)) == ("free", "free_a", 6)


def test_massless_bodies_are_noted(read) -> None:
    model = read(document(bodies=BODY.replace("<mass>1", "<mass>0").replace("1 1 1", "0 0 0")))
    assert model.body("a").mass == 0.0
    assert any("The mass is zero" in note for note in model.notes)
    model = read(document(bodies=BODY.replace("1 1 1", "1 2 9")))
    assert any("violate the triangle inequality" in note for note in model.notes)


def test_units_other_than_meters_are_noted(read) -> None:
    notes = read(document(rest="<length_units>mm</length_units><force_units>N</force_units>")).notes
    assert any("length_units is 'mm', but numbers are read as meters" in note for note in notes)
    assert not any("force_units" in note for note in notes)


@pytest.mark.parametrize("name", ["spine", "mtp", "wrist", "rail", "back"])
def test_reversed_joint_gives_the_same_poses(name: str) -> None:
    model = read_osim(HERE / ("nested_joints.osim" if name == "back" else "every_joint.osim"))
    joint = replace(model.joint(name), parent="ground", child="a")
    body = replace(model.bodies[0], name="a")
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (5, len(joint.coordinates)))
    forth = poses(Model("m", (body,), (joint,)), q)
    # the child hung on the ground and the parent free: the parent's pose must be the inverse
    back = reversed_joint(replace(joint, parent="a", child="ground"))
    order = [joint.coordinates.index(c) for c in back.coordinates]
    other = poses(Model("m", (body,), (replace(back, parent="ground", child="a"),)), q[:, order])
    position = np.einsum("fbij,fbj->fbi", other[1], forth[0]) + other[0]
    assert np.abs(position).max() < 1e-12
    assert np.abs(other[1] @ forth[1] - np.eye(3)).max() < 1e-12


def test_joint_with_rotation_and_translation_cannot_be_reversed() -> None:
    with pytest.raises(ModelError, match=r"both rotates and translates\. Swap parent and child"):
        reversed_joint(read_osim(HERE / "every_joint.osim").joint("knee"))


@given(st.tuples(*[st.floats(-3.1, 3.1)] * 3))
def test_angles_are_restored(angles: tuple[float, float, float]) -> None:
    frame = frame_from_angles((1.0, 2.0, 3.0), angles)
    again = frame_from_angles((1.0, 2.0, 3.0), xyz_angles(frame))
    assert min(
        np.abs(np.array(again.orientation) - np.array(frame.orientation)).max(),
        np.abs(np.array(again.orientation) + np.array(frame.orientation)).max(),
    ) == pytest.approx(0.0, abs=1e-7)
    assert frame_from_angles((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)) == Frame()


@given(
    st.lists(st.floats(-5.0, 5.0), min_size=4, max_size=8),
    st.lists(st.floats(0.1, 2.0), min_size=8, max_size=8),
)
def test_simm_spline_has_the_slopes_of_a_cubic(y: list[float], gaps: list[float]) -> None:
    """Through points of one cubic it is that cubic; through any, it is twice differentiable and interpolates."""
    x = np.cumsum(gaps[: len(y)])
    cubic = np.polynomial.Polynomial([0.3, -1.0, 0.5, 0.2])
    exact = simm_spline(x, cubic(x))
    inside = np.linspace(x[0], x[-1], 23)
    scale = np.abs(cubic(x)).max() + 1.0
    assert np.abs([exact(p) - cubic(p) for p in inside]).max() < 1e-9 * scale
    spline = simm_spline(x, y)
    assert [spline(p) for p in x] == pytest.approx(y, abs=1e-9)
    for left, right, h in zip(spline.coefficients, spline.coefficients[1:], np.diff(x), strict=False):
        slope = left[1] + 2.0 * left[2] * h + 3.0 * left[3] * h**2
        assert slope == pytest.approx(right[1], abs=1e-6 * (1.0 + abs(slope)))
        assert left[2] + 3.0 * left[3] * h == pytest.approx(right[2], abs=1e-6 * (1.0 + abs(right[2])))


FUNCTIONS = {
    "<Constant><value>0.3</value></Constant>": constant(0.3),
    "<GCVSpline><half_order>2</half_order><x>0 1 2 3</x><y>0 1 0 1</y></GCVSpline>": natural_cubic_spline(
        (0, 1, 2, 3), (0, 1, 0, 1)
    ),
    "<function><SimmSpline><x>0 1 2 3</x><y>0 1 0 1</y></SimmSpline></function>": simm_spline(
        (0, 1, 2, 3), (0, 1, 0, 1)
    ),
    "<natCubicSpline><x>0 1 2 3</x><y>0 1 0 1</y></natCubicSpline>": simm_spline((0, 1, 2, 3), (0, 1, 0, 1)),
    "<SimmSpline><x>1</x><y>2</y></SimmSpline>": constant(2.0),
    "": constant(0.0),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(read, text: str) -> None:
    joint = read(document(joints=custom(text))).joints[0]
    assert joint.motion[0].function == FUNCTIONS[text]


REFUSED = {
    "no document": ("<Model/>", "The root element is <Model>, not <OpenSimDocument>"),
    "no model": ("<OpenSimDocument Version='40000'><ForceSet/></OpenSimDocument>", "contains <ForceSet> instead of"),
    "version": ("<OpenSimDocument Version='x'/>", "Version of the document is 'x'"),
    "old": ("<OpenSimDocument Version='10905'/>", "before 2.0"),
    "not XML": ("<OpenSimDocument", "line 1: Invalid XML"),
    "entities": ("<!DOCTYPE a [<!ENTITY b 'c'>]><OpenSimDocument/>", "document type or entities"),
    "function": (document(joints=custom("<StepFunction/>")), "Function StepFunction is not supported"),
    "quintic": (
        document(joints=custom("<GCVSpline><half_order>3</half_order></GCVSpline>")),
        "The GCVSpline has half_order",
    ),
    "two coordinates": (document(joints=custom("", "q r")), "The function has 2 coordinates"),
    "unknown coordinate": (document(joints=custom("", "knee")), "Unknown coordinate 'knee'; known: q"),
    "unordered": (
        document(joints=custom("<SimmSpline><x>0 2 1</x><y>0 0 0</y></SimmSpline>")),
        "do not increase",
    ),
    "joint": (document(joints=PIN.replace("Pin", "Ellipsoid")), "EllipsoidJoint 'j': Joints of this class are not"),
    "scapula": (document(joints=PIN.replace("Pin", "Scapulothoracic")), "Joints of this class are not supported"),
    "frame": (document(joints=PIN.replace("bodyset/a", "bodyset/b")), "Unknown frame '/bodyset/b'"),
    "number": (document(bodies=BODY.replace("<mass>1", "<mass>heavy")), "<mass> is 'heavy'. Give finite numbers"),
    "infinity": (document(bodies=BODY.replace("<mass>1", "<mass>inf")), "<mass> is 'inf'. Give finite numbers"),
    "negative": (document(bodies=BODY.replace("<mass>1", "<mass>-1")), "Mass is -1.0 kg. It must not be negative"),
    "inertia": (document(bodies=BODY.replace("1 1 1 0 0 0", "1 1 1")), "<inertia> has 3 numbers. Give 6"),
    "truth": (document(joints=PIN.replace("RANGE", "<locked>maybe</locked>")), "<locked> is 'maybe'. It must be"),
    "two of a name": (document(bodies=BODY + BODY), "The name is used 2 times"),
    "too few coordinates": (
        document(joints=PIN.replace("Pin", "Universal")),
        "The joint has 1 coordinates. A UniversalJoint has 2",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_unreadable_elements_are_named(read, text: str, sentence: str) -> None:
    with pytest.raises((FileFormatError, ModelError), match=re.escape(sentence)) as caught:
        read(text)
    assert "a.osim" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repeated_names_are_made_unique(read) -> None:
    second = PIN.replace("'j'", "'k'").replace("bodyset/a", "bodyset/b")
    bodies = BODY + BODY.replace("'a'", "'b'")
    markers = "".join("<Marker name='M'><socket_parent_frame>/ground</socket_parent_frame></Marker>" for _ in range(3))
    model = read(
        document(bodies=bodies, joints=PIN + second, rest=f"<MarkerSet><objects>{markers}</objects></MarkerSet>")
    )
    assert [c.name for c in model.coordinates] == ["q", "q_2"]
    assert [marker.name for marker in model.markers] == ["M", "M_2", "M_3"]
    assert sum("is renamed" in note for note in model.notes) == 3


def test_files_of_other_kinds_are_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "pipe", "missing"):
        with pytest.raises(FileFormatError):
            read_osim(tmp_path / name)
    (tmp_path / "empty").touch()
    with pytest.raises(FileFormatError, match="The file is empty"):
        read_osim(tmp_path / "empty")


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 100_000,
        document(
            rest="<MarkerSet><objects>" + "<Marker name='M'><body>a</body></Marker>" * 15_000 + "</objects></MarkerSet>"
        ),
        document(bodies="".join(BODY.replace("'a'", f"'b{i}'") for i in range(20_000)), joints=""),
        document(joints=custom(f"<SimmSpline><x>{' '.join(map(str, range(200_000)))}</x></SimmSpline>")),
        document(
            joints=custom(f"<PolynomialFunction><coefficients>{'1 ' * 100_000}</coefficients></PolynomialFunction>")
        ),
        document(rest="<defaults><Body>" + "<mass>1</mass>" * 20_000 + "</Body></defaults>", bodies=BODY * 3_000),
    ],
    ids=["depth", "one name", "many bodies", "long spline", "high powers", "defaults"],
)
def test_implausible_files_do_not_hang(read, text: str) -> None:
    try:
        model = read(text)
    except BorelliError as error:
        assert "\n" not in str(error)
    else:
        assert len({marker.name for marker in model.markers}) == 15_000


TAGS = sorted(set(re.findall(r"<(\w+)", EVERY + NESTED)))
NUMBERS = ["0", "-1", "nan", "1e400", "", "1 2", "99999999999", "x", "1e-320", "true"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_give_a_model_or_a_sentence(tmp_path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([EVERY, NESTED]))
    for _ in range(data.draw(st.integers(1, 3))):
        kind = data.draw(st.sampled_from(["number", "tag", "cut", "drop", "double", "name"]))
        spots = {
            "number": r">[^<>]*\d[^<>]*<",
            "tag": r"(?<=<)\w+",
            "cut": r"\n",
            "drop": r"<(\w+)[^<>]*>[^<>]*</\1>",
            "double": r"<(\w+)[^<>]*>[^<>]*</\1>",
            "name": r'(?<=name=")[^"]*',
        }
        found = list(re.finditer(spots[kind], text))
        if not found:
            continue
        spot = found[data.draw(st.integers(0, len(found) - 1))]
        replacement = {
            "number": f">{data.draw(st.sampled_from(NUMBERS))}<",
            "tag": data.draw(st.sampled_from(TAGS)),
            "cut": data.draw(st.text(max_size=3)),
            "drop": "",
            "double": spot[0] * 2,
            "name": data.draw(st.sampled_from(["", "ground", "pelvis", "bend", "../x", "a b"])),
        }[kind]
        text = text[: spot.start()] + replacement + text[spot.end() :]
    (tmp_path / "damaged.osim").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        model = read_osim(tmp_path / "damaged.osim")
    except BorelliError as error:
        assert "\n" not in str(error)
    else:
        zero = np.zeros((1, len(model.coordinates)))
        assert np.isfinite(generalized_forces(model, zero, zero, zero)).all()


@pytest.mark.parametrize("share", np.linspace(0.02, 0.98, 25))
def test_line_of_a_truncated_file_is_reported(tmp_path, share: float) -> None:
    (tmp_path / "cut.osim").write_text(EVERY[: int(share * len(EVERY))])
    with pytest.raises(FileFormatError, match=r"cut.osim, line \d+: Invalid XML"):
        read_osim(tmp_path / "cut.osim")

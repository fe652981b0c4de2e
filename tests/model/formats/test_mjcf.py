"""MJCF: MuJoCo's positions, masses and forces; unread elements are noted; mistakes are named."""

import os
from math import inf, pi
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import BorelliError, FileFormatError, ModelError
from borelli.model import GROUND, validate
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.kinematics import coupled_coordinates, generalized_forces

from ...shared_data import SHARED_DATA
from ..mujoco_referee import agrees, compiled, engine, random_rows, read_both, same_masses

MODELS = SHARED_DATA / "muscle_models" / "mjcf"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo writes its log where it is called."""
    monkeypatch.chdir(tmp_path)


def written(tmp_path, body: str, before: str = "", after: str = "", name: str = "model.xml") -> Path:
    path = tmp_path / name
    path.write_text(f"<mujoco>{before}<worldbody>{body}</worldbody>{after}</mujoco>")
    return path


@pytest.mark.crosscheck
@pytest.mark.parametrize(
    "joints",
    [
        '<joint name="a" axis="1 2 3" pos="0.1 0.2 -0.1"/>',
        '<joint name="a" type="slide" axis="1 2 0"/>',
        '<joint name="a" type="ball" pos="0.3 0 0"/>',
        '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/>',
        '<joint name="a" axis="1 0 0" pos="0 0 1"/><joint name="b" axis="0 1 0" pos="0 0 1"/><joint pos="0 0 1"/>',
        '<joint name="a" axis="1 0 0"/><joint name="b" axis="1 0.5 0"/><joint name="c" axis="0 1 1"/>',
        # axes that meet in a point that is no anchor
        '<joint name="a" axis="1 0 0" pos="0.5 0 0.1"/><joint name="b" axis="0 1 0" pos="0 0.7 0.1"/>',
        # axes that do not meet, are parallel, or come after a shift: bodies between
        '<joint name="a" axis="1 0 0" pos="0 0 0.3"/><joint name="b" axis="0 1 0" pos="0 0 -0.2"/>',
        '<joint name="a" axis="1 0 0" pos="0 0 0.3"/><joint name="b" axis="1 0 0" pos="0 0 -0.2"/>',
        '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0" type="slide"/><joint name="c" axis="0 0 1"/>',
        # a translation along the axis of the rotation before it
        '<joint name="a" axis="0 0 1" pos="0.1 0 0"/><joint name="b" type="slide" axis="0 0 2"/>',
        '<joint name="a" type="slide" axis="1 0 0"/><joint name="b" type="slide" axis="0 1 0"/><joint name="c"/>',
        '<joint name="a" type="slide" axis="1 0 0"/><joint name="b" type="ball" pos="0.1 0 0"/>',
        # four turns
        '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/><joint name="c"/><joint name="d" axis="1 0 0"/>',
        '<joint name="a" axis="1 1 0" ref="30"/>',
        '<joint name="a" axis="1 1 0" type="slide" ref="0.3"/>',
        '<joint name="a" axis="1 0 0" ref="30"/><joint name="b" axis="0 1 0" ref="-20"/><joint name="c" ref="5"/>',
        '<joint name="a" axis="1 0 0" ref="0.1" type="slide"/><joint name="b" axis="0 1 0" ref="-20"/>',
    ],
)
def test_joints_of_one_body_agree_with_mujoco(tmp_path, joints) -> None:
    inner = (
        f'<body name="arm" pos="0.1 0.2 0.3" euler="20 -30 40">{joints}<geom size="0.1"/>'
        '<site name="tip" pos="0 0.1 0.2"/><body name="hand" pos="0 0 1"><joint name="last" axis="0 1 1"/>'
        '<geom size="0.1"/><site name="nail" pos="1 0 0"/>'
        "</body></body>"
    )
    ours, theirs = read_both(written(tmp_path, inner))
    validate(ours, sound_masses=False)
    agrees(ours, theirs, random_rows(ours))
    same_masses(ours, theirs)


def test_joints_have_the_simplest_kind(tmp_path) -> None:
    square = '<joint name="a{0}" axis="1 0 0"/><joint name="b{0}" axis="0 1 0"/><joint name="c{0}" axis="0 0 1"/>'
    travel = (
        '<joint name="x{0}" type="slide" axis="1 0 0"/><joint name="y{0}" type="slide" axis="0 1 0"/>'
        '<joint name="z{0}" type="slide" axis="0 0 1"/>'
    )
    joints = {
        "hinge": '<joint name="h"/>',
        "slider": '<joint name="s" type="slide"/>',
        "universal": '<joint name="u" axis="1 0 0"/><joint name="v" axis="0 1 0"/>',
        "ball": square.format(1),
        "planar": '<joint name="p" type="slide" axis="1 0 0"/><joint name="q" type="slide" axis="0 1 0"/>'
        '<joint name="r"/>',
        "free": travel.format(2) + square.format(2),
        "coordinate": '<joint name="i" axis="1 0 0"/><joint name="j" axis="1 1 0"/>',
        "fixed": "",
    }
    bodies = "".join(f'<body name="{k}">{j}<geom size="1"/></body>' for k, j in joints.items())
    model = read_mjcf(written(tmp_path, bodies))
    assert {joint.child: joint.kind for joint in model.joints} == {kind: kind for kind in joints}
    assert len(model.bodies) == len(joints)


@pytest.mark.crosscheck
def test_free_bodies_start_at_the_file_pose(tmp_path) -> None:
    inner = '<body name="root" pos="1 2 3" euler="10 80 30"><freejoint name="float"/><geom size="0.1"/></body>'
    ours, theirs = read_both(written(tmp_path, inner))
    agrees(ours, theirs, random_rows(ours))
    assert [c.default for c in ours.coordinates] == pytest.approx([1, 2, 3, 0, 0, 0])
    assert ours.body("root").frame.position == pytest.approx((1, 2, 3))


@pytest.mark.crosscheck
@pytest.mark.parametrize("sequence", ["xyz", "zyx", "XYZ", "ZxY"])
@pytest.mark.parametrize("angle", ["degree", "radian"])
def test_orientations_in_all_notations(tmp_path, sequence, angle) -> None:
    ways = [
        'euler="0.3 -1.1 2.0"',
        'axisangle="1 2 -1 0.8"',
        'xyaxes="1 1 0 0 1 1"',
        'zaxis="1 -2 0.3"',
        'quat="2 1 0 1"',
    ]
    ways += ['zaxis="0 0 -1"', 'zaxis="0 0 3"', ""]
    bodies = "".join(
        f'<body name="b{i}" {way}><frame pos="1 2 3" euler="0.1 0.2 0.3"><body name="c{i}" pos="0 1 0">'
        f'<joint axis="1 0 0"/><geom size=".1"/></body><site name="s{i}" pos="1 0 0"/></frame></body>'
        for i, way in enumerate(ways)
    )
    compiler = f'<compiler eulerseq="{sequence}" angle="{angle}"/>'
    ours, theirs = read_both(written(tmp_path, bodies, compiler))
    agrees(ours, theirs, random_rows(ours))


@pytest.mark.crosscheck
@pytest.mark.parametrize(
    "compiler",
    [
        "",
        '<compiler inertiafromgeom="true"/>',
        '<compiler boundmass="3" boundinertia="0.5"/>',
        '<compiler settotalmass="10"/>',
        '<compiler balanceinertia="true"/>',
        '<compiler inertiagrouprange="0 1"/>',
    ],
)
def test_masses_agree_with_mujoco(tmp_path, compiler) -> None:
    flat = "1 0.2 0.3" if "balance" in compiler else "1 0.9 0.8"
    inner = f"""
      <body name="stated" pos="0 0 1"><freejoint/>
        <inertial pos="0.1 0 0" mass="2" diaginertia="{flat}" euler="10 20 30"/><geom size="1"/></body>
      <body name="full"><inertial pos="0 0.1 0" mass="2" fullinertia="1 1.1 1.2 0.1 0.2 0.05"/><joint/></body>
      <body name="geoms"><joint/>
        <geom type="box" size="0.1 0.2 0.3" pos="1 0 0" euler="10 20 30" group="2"/>
        <geom type="capsule" fromto="0 0 0 1 2 3" size="0.1" density="500"/>
        <geom type="cylinder" size="0.1 0.4" mass="3" zaxis="1 1 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3"/>
        <geom type="sphere" size="0.2" mass="0"/>
      </body>
      <body name="bare" pos="1 2 3" euler="10 20 30"/>"""
    ours, theirs = read_both(written(tmp_path, inner, compiler))
    same_masses(ours, theirs)


def test_default_classes_begin_as_copies(tmp_path) -> None:
    before = """
      <default><geom size="0.1"/><joint axis="1 0 0"/>
        <default class="arm"><joint axis="0 1 0" range="-10 20"/><site pos="1 2 3"/>
          <default class="hand"><joint range="-30 40"/></default></default></default>
      <default><joint damping="2"/><geom size="0.3"/></default>"""
    inner = """
      <body name="a"><joint name="a"/><geom/></body>
      <body name="b" childclass="arm"><joint name="b"/><geom/><site name="m"/>
        <body name="c"><joint name="c" class="hand"/><geom/></body>
        <body name="d" childclass="hand"><joint name="d" class="main"/><geom class="main"/></body></body>"""
    model = read_mjcf(written(tmp_path, inner, before))
    spans = {c.name: (c.lower, c.upper) for c in model.coordinates}
    assert spans["a"] == spans["d"] == (-inf, inf)
    assert spans["b"] == pytest.approx((-pi / 18, pi / 9))
    assert spans["c"] == pytest.approx((-pi / 6, pi / 4.5))
    assert model.joint("b").axes == ((0.0, 1.0, 0.0),)
    assert model.joint("d").axes == ((1.0, 0.0, 0.0),)
    assert model.marker("m").position == (1.0, 2.0, 3.0)
    assert {b.name: b.shapes[0].size[0] for b in model.bodies} == {"a": 0.3, "b": 0.1, "c": 0.1, "d": 0.3}


def test_limits_follow_autolimits(tmp_path) -> None:
    joints = (
        '<joint name="a" range="-1 1"/><joint name="b" range="-1 1" limited="false"/>',
        '<joint name="c" range="-1 1" limited="true"/>',
    )
    body = f'<body>{joints[0]}<geom size="1"/></body><body>{joints[1]}<geom size="1"/></body>'
    radians = '<compiler angle="radian" autolimits="{}"/>'
    limits = {}
    for word in ("true", "false"):
        model = read_mjcf(written(tmp_path, body, radians.format(word)))
        limits[word] = [c.name for c in model.coordinates if c.upper < inf]
    assert limits == {"true": ["a", "c"], "false": ["c"]}


@pytest.mark.crosscheck
def test_couplings_agree_with_mujoco(tmp_path) -> None:
    inner = """<body name="a"><joint name="x" ref="0.2" axis="1 0 0"/><geom size=".1"/>
      <body name="b"><joint name="y" ref="-0.3"/><geom size=".1"/></body>
      <body name="c"><joint name="z" type="slide" range="-1 1"/><geom size=".1"/></body></body>"""
    after = """<equality><joint name="e" joint1="y" joint2="x" polycoef="0.1 2 -0.5 0.25 0.125"/>
      <joint joint1="z" polycoef="0.4 0 0 0 0"/><joint active="false" joint1="z" joint2="x"/></equality>"""
    ours, theirs = read_both(written(tmp_path, inner, '<compiler angle="radian"/>', after))
    mujoco = engine()
    data = mujoco.MjData(theirs)
    for x in (-1.0, 0.2, 0.9):
        values = {"x": x, "y": 0.0, "z": 0.4}
        row = [values[c.name] for c in ours.coordinates]
        for c, value in zip(ours.coordinates, coupled_coordinates(ours, row)[0], strict=True):
            data.joint(c.name).qpos[0] = value
        mujoco.mj_fwdPosition(theirs, data)
        assert data.efc_pos[: data.ne] == pytest.approx(0.0, abs=1e-12)
    held = next(c for c in ours.coordinates if c.name == "z")
    assert held.locked and held.default == 0.4
    assert "Not read: 1 inactive joint equality" in " ".join(ours.notes)


def test_welds_and_connections_close_loops(tmp_path) -> None:
    inner = """<body name="a" pos="0 0 1"><joint name="x" axis="1 0 0"/><geom size=".1"/></body>
      <body name="b" pos="1 0 0"><freejoint name="f"/><geom size=".1"/></body>"""
    after = """<equality><connect body1="a" body2="b" anchor="0.1 0 0"/><weld body1="world" body2="b"/>
      <weld name="w" body1="a" body2="b" relpose="1 2 3 1 0 0 0"/></equality>"""
    model = read_mjcf(written(tmp_path, inner, "", after))
    ball, ground, weld = (joint for joint in model.joints if joint.closes_loop)
    assert (ball.kind, ball.child, ball.child_frame.position) == ("ball", "a", (0.1, 0.0, 0.0))
    assert ball.parent_frame.position == pytest.approx((-0.9, 0.0, 1.0))  # where b is as the file states it
    assert (ground.kind, ground.parent, ground.child) == ("fixed", GROUND, "b")
    assert weld.child_frame.position == (1.0, 2.0, 3.0)


def muscle_file(tmp_path, actuator: str, default: str = "") -> Path:
    inner = """<site name="o" pos="0 0 1"/><body name="a"><joint name="x" axis="0 1 0" range="-1 1"/><geom size=".1"/>
      <geom name="w" type="cylinder" size="0.02 0.1" pos="0 0 0.1" contype="0" conaffinity="0"/>
      <site name="side" pos="0 0 0.3"/><site name="i" pos="0.3 0 0"/></body>"""
    tendon = """<tendon><spatial name="t"><site site="o"/><geom geom="w" sidesite="side"/><site site="i"/></spatial>
      <spatial name="unused"><site site="o"/><site site="i"/></spatial></tendon>"""
    before = f'<compiler angle="radian"/>{default}'
    return written(tmp_path, inner, before, f"{tendon}<actuator>{actuator}</actuator>")


@pytest.mark.crosscheck
@pytest.mark.parametrize(
    ("actuator", "default"),
    [
        ('<muscle name="m" tendon="t" force="800" range="0.6 1.2" lengthrange="0.5 1.1" timeconst="0.02 0.05"/>', ""),
        (
            '<general name="m" class="k" tendon="t" lengthrange="0.5 1.1" '
            'gainprm="0.6 1.2 800 200 .5 1.6 1.5 1.3 1.2" biasprm="0.6 1.2 800 200 .5 1.6 1.5 1.3 1.2"/>',
            '<default><default class="k"><general gaintype="muscle" biastype="muscle" dyntype="muscle" '
            'dynprm="0.02 0.05"/></default></default>',
        ),
        (
            '<muscle name="m" class="k" tendon="t" lengthrange="0.5 1.1" range="0.6 1.2"/>',
            '<default><default class="k"><muscle force="800" timeconst="0.02 0.05"/></default></default>',
        ),
    ],
)
def test_muscle_parameters_in_all_notations(tmp_path, actuator, default) -> None:
    model, theirs = read_both(muscle_file(tmp_path, actuator, default))
    muscle = model.muscle("m")
    assert theirs.actuator_gainprm[0, :3] == pytest.approx([0.6, 1.2, 800])
    assert muscle.max_isometric_force == 800.0
    assert muscle.optimal_fiber_length == pytest.approx(1.0)
    assert muscle.tendon_slack_length == 0.0  # 0.5 - 0.6 is less than nothing
    assert "negative tendon length" in " ".join(model.notes)
    assert (muscle.activation_time, muscle.deactivation_time) == (0.02, 0.05)
    assert [point.name for point in muscle.path] == ["o", "i"]
    wrap = model.wrap_objects[0]
    assert (wrap.name, wrap.kind, wrap.body, wrap.size) == ("w", "cylinder", "a", (0.02, 0.1))
    assert muscle.wraps[0].side_point.name == "side"
    assert [s.kind for s in model.body("a").shapes] == ["sphere"]  # what is only wrapped over is no shape
    assert (muscle.wraps[0].first, muscle.wraps[0].last) == (0, 1)
    assert "1 spatial tendon (unused)" in " ".join(model.notes)


def test_inferred_muscle_parameters_are_noted(tmp_path) -> None:
    model = read_mjcf(muscle_file(tmp_path, '<muscle name="m" tendon="t"/><motor joint="x"/>'))
    notes = " ".join(model.notes)
    assert "lengths are inferred" in notes and "maximum force" in notes and "1 motor actuator" in notes


def test_includes_are_found_from_the_main_file_then_from_the_including_one(tmp_path) -> None:
    (tmp_path / "deep" / "more").mkdir(parents=True)
    (tmp_path / "deep" / "one.xml").write_text('<mujocoinclude><include file="more/two.xml"/></mujocoinclude>')
    (tmp_path / "deep" / "more" / "two.xml").write_text('<any><body name="two"><geom size="1"/></body></any>')
    main = written(tmp_path, '<include file="deep/one.xml"/><include file="nowhere.xml"/>')
    model = read_mjcf(main)
    assert [body.name for body in model.bodies] == ["two"]
    assert any("'nowhere.xml' is missing" in note for note in model.notes)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "two.xml").write_text('<any><body name="near"><geom size="1"/></body></any>')
    assert [body.name for body in read_mjcf(main).bodies] == ["near"]
    inside = written(tmp_path / "deep", '<include file="../more/two.xml"/>')
    assert any("outside the model's folder: '../more/two.xml'" in note for note in read_mjcf(inside).notes)


def test_fragment_names_the_models_that_include_it(tmp_path) -> None:
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "leg.xml"
    part.write_text('<mujocoinclude><body name="leg"/></mujocoinclude>')
    written(tmp_path, '<!-- <include file="parts/leg.xml"/> -->', name="unrelated.xml")
    with pytest.raises(FileFormatError, match="none was found nearby"):
        read_mjcf(part)
    written(tmp_path, '<include file="parts/leg.xml"/>', name="walker.xml")
    with pytest.raises(FileFormatError, match=r"fragment.*Read ../walker.xml, which includes it"):
        read_mjcf(part)


def test_missing_meshes_are_noted(tmp_path) -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    (tmp_path / "t.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in corners)
        + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces)
    )
    stl = np.zeros(4, dtype=[("n", "<f4", 3), ("c", "<f4", (3, 3)), ("a", "<u2")])
    stl["c"] = corners[faces]
    (tmp_path / "t.stl").write_bytes(b"\0" * 80 + (4).to_bytes(4, "little") + stl.tobytes())
    asset = """<asset><mesh name="o" file="t.obj" scale="0.1 0.2 0.3"/><mesh file="t.stl" scale="0.1 0.2 0.3"/>
      <mesh name="lost" file="lost.stl"/><mesh name="v" vertex="0 0 0 .1 0 0 0 .2 0 0 0 .3"/></asset>"""
    geoms = {"o": 'mesh="o"', "s": 'mesh="t"', "v": 'mesh="v"', "l": 'mesh="lost"', "m": 'mesh="lost" mass="3"'}
    inner = "".join(f'<body name="{k}"><geom type="mesh" {g}/></body>' for k, g in geoms.items())
    model = read_mjcf(written(tmp_path, inner, asset))
    for name in "osv":
        body = model.body(name)
        assert body.mass == pytest.approx(1000 * 0.1 * 0.2 * 0.3 / 6)
        assert body.center_of_mass == pytest.approx((0.025, 0.05, 0.075))
        assert len(body.shapes[0].vertices) == 4
    assert (model.body("l").mass, model.body("m").mass) == (0.0, 3.0)
    notes = " ".join(model.notes)
    assert "1 meshes are not read" in notes and "lost.stl" in notes and "mass of l depends on meshes" in notes


@pytest.mark.crosscheck
def test_keyframes_become_defaults_on_request(tmp_path) -> None:
    inner = """<body name="root" pos="0 0 1" euler="0 0 90"><freejoint name="f"/><geom size=".1"/>
      <body name="a"><joint name="x" axis="0 1 0"/><geom size=".1"/></body>
      <body name="b"><joint name="y" type="ball"/><geom size=".1"/></body></body>"""
    key = """<keyframe><key qpos="0 0 0 1 0 0 0 0 1 0 0 0"/>
      <key name="sit" qpos="1 2 3 .5 .5 -.5 .5 .7 .6 0 .8 0"/></keyframe>"""
    path = written(tmp_path, inner, "", key)
    mujoco = engine()
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 1)
    mujoco.mj_kinematics(theirs, data)
    for asked in ("sit", 1):
        ours = read_mjcf(path, keyframe=asked)
        for body in ours.bodies:
            assert body.frame.position == pytest.approx(data.body(body.name).xpos, abs=1e-9)
            assert abs(np.dot(body.frame.orientation, data.body(body.name).xquat)) == pytest.approx(1.0)
    with pytest.raises(ModelError, match=r"Unknown keyframe 'run'.*known: 0, sit"):
        read_mjcf(path, keyframe="run")


@pytest.mark.parametrize(
    ("body", "before", "problem"),
    [
        ('<body pos="1 2"/>', "", "line 1.*pos has 2 numbers. Give 3"),
        ('<body pos="1 x 2"/>', "", "pos is .* Give finite numbers"),
        ('<body pos="1 nan 2"/>', "", "pos is .* Give finite numbers"),
        ('<body><joint axis="0 0 0"/></body>', "", "axis has no length"),
        ('<body><joint type="hinj"/></body>', "", "Unknown type 'hinj'.*did you mean 'hinge'"),
        ('<body><joint class="arm"/></body>', "", "Unknown class 'arm'"),
        ('<body name="a"/><body name="a"/>', "", "used twice"),
        ('<body><geom type="box" size="1 2"/></body>', "", "A box has 3 positive sizes"),
        ('<joint name="a"/>', "", "The world cannot have joints"),
        ('<body><body><freejoint/></body></body>', "", "free joint in a child of"),
        ('<body><joint range="2 1"/></body>', '<compiler angle="radian"/>', "is reversed"),
        ("", "", "The model has no bodies"),
        ("<body/>", '<compiler coordinate="global"/>', "coordinate 'global' was removed"),
        ("<body/>", '<compiler eulerseq="xyq"/>', "three of x y z X Y Z"),
        ("<body/>", "<default><default/></default>", "has no name"),
        ("<body/>", '<default><default class="a"/><default class="a"/></default>', "defined twice"),
        ("<body/>", '<include file="model.xml"/>', "included twice"),
        ("<body/>", '<equality><joint joint1="a" joint2="b"/></equality>', "Unknown hinge or slide 'a'"),
        ("<body/>", '<tendon><spatial name="t"><site site="s"/></spatial></tendon>'
         '<actuator><muscle tendon="t"/></actuator>', "Unknown site 's'"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, body, before, problem) -> None:
    with pytest.raises(FileFormatError, match=problem):
        read_mjcf(written(tmp_path, body, before))


def test_unknown_attributes_are_noted(tmp_path) -> None:
    model = read_mjcf(written(tmp_path, '<body name="a" po="1 2 3"/>'))
    assert "Line 1: body has the attribute 'po', which is not part of MJCF." in model.notes


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"<mujoco>",
        b"<mujoco></mujok>",
        b"\xff\xfe\x00",
        b"<robot/>",
        b"<mujoco><worldbody>" + b"<body>" * 5000,
        b'<!DOCTYPE a [<!ENTITY b "c">]><mujoco>&b;</mujoco>',
        b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><mujoco model="&b;"/>',
        b'<?xml version="1.0" encoding="nonsense"?><mujoco/>',
    ],
)
def test_broken_files_are_refused_in_one_sentence(tmp_path, content) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read_mjcf(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_invalid_paths_are_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    for name in ("pipe.xml", "nothing.xml", "."):
        with pytest.raises(FileFormatError):
            read_mjcf(tmp_path / name)
    main = written(tmp_path, '<include file="pipe.xml"/><body/>')
    assert any("'pipe.xml' is missing" in note for note in read_mjcf(main).notes)


SAMPLE = """<mujoco model="s"><compiler angle="radian" boundmass="0.1"/><default><geom size="0.1"/>
<default class="k"><joint axis="1 0 0" range="-1 1"/></default></default><worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1" childclass="k"><freejoint name="f"/><geom type="capsule" fromto="0 0 0 0 0 1"/>
<body name="b" quat="1 0 1 0"><joint name="j" ref="0.1"/><joint name="k" axis="0 1 0" pos="0 0 1"/><geom mass="1"/>
<site name="s" pos="1 2 3"/></body></body></worldbody><equality><joint joint1="j" joint2="k" polycoef="0 1 0 0 0"/>
</equality><tendon><spatial name="t"><site site="s"/><site site="s"/></spatial></tendon>
<actuator><muscle tendon="t" lengthrange="0.1 0.2" force="10"/></actuator></mujoco>"""


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_files_give_a_model_or_a_sentence(tmp_path, data) -> None:
    text = bytearray(SAMPLE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text) - 1))
        end = min(start + data.draw(st.integers(0, 12)), len(text))
        pieces = st.sampled_from([b"", b"nan", b"1e400", b"-1", b"<", b'"', b"0 0 0", b"slide", b"\xff", b"a"])
        text[start:end] = data.draw(pieces | st.binary(max_size=4))
        if not text:
            break
    path = tmp_path / "mutant.xml"
    path.write_bytes(bytes(text))
    try:
        model = read_mjcf(path)
    except BorelliError as error:
        assert "\n" not in str(error)
    else:
        validate(model, sound_masses=False)


MAIN = sorted(p for p in MODELS.rglob("*.xml") if p.parent.name != "assets") if MODELS.is_dir() else []
PARTS = sorted(p for p in MODELS.rglob("assets/*.xml")) if MODELS.is_dir() else []


@pytest.mark.data
@pytest.mark.crosscheck
@pytest.mark.data
@pytest.mark.parametrize("path", MAIN, ids=lambda p: p.stem)
def test_real_models_agree_with_mujoco(path) -> None:
    ours = read_mjcf(path)
    theirs = compiled(path, boundmass="1e-9", boundinertia="1e-12")  # without their meshes some bodies have no mass
    assert theirs.nbody - 1 == len([body for body in ours.bodies if "_carrier" not in body.name])
    assert theirs.nsite == len(ours.markers)
    agrees(ours, theirs, random_rows(ours, 3))


@pytest.mark.data
@pytest.mark.parametrize("path", PARTS, ids=lambda p: p.stem)
def test_real_fragments_name_their_models(path) -> None:
    with pytest.raises(FileFormatError, match="fragment") as caught:
        read_mjcf(path)
    orphans = ("myotorso_arm_chain.xml", "myohand_body_TTrans.xml")
    assert ("none was found nearby" in str(caught.value)) == (path.name in orphans)


@pytest.mark.data
@pytest.mark.crosscheck
@pytest.mark.data
@pytest.mark.parametrize("name", ["myotorso", "finger_v0"])
def test_real_forces_equal_mujoco(name) -> None:
    mujoco = engine()
    path = next(p for p in MAIN if p.stem == name)
    ours, theirs = read_mjcf(path), compiled(path)
    same_masses(ours, theirs)
    theirs.dof_armature[:], theirs.dof_damping[:], theirs.jnt_stiffness[:] = 0.0, 0.0, 0.0
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    theirs.tendon_stiffness[:], theirs.tendon_damping[:] = 0.0, 0.0
    data = mujoco.MjData(theirs)
    order = [theirs.joint(c.name).dofadr[0] for c in ours.coordinates]
    q, u, a = (random_rows(ours, 3, seed) for seed in range(3))
    found = generalized_forces(ours, q, u, a)
    for f in range(3):
        data.qpos[order], data.qvel[order], data.qacc[order] = q[f], u[f], a[f]
        mujoco.mj_inverse(theirs, data)
        expected = data.qfrc_inverse[order]
        assert found[f] == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(expected).max())

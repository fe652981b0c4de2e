"""Any model file: the reader is chosen by what is in it; URDF is read as another engine reads it."""

import os
import shutil
from math import inf
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import BorelliError, FileFormatError, ModelError, SettingsError
from borelli.model import GROUND, Model, model_to_text
from borelli.model.compare import compare_models
from borelli.model.formats.mjcf.writer import mjcf_text
from borelli.model.formats.osim.writer import osim_text
from borelli.model.formats.urdf import read_urdf
from borelli.model.io import read_model, write_model
from borelli.model.kinematics import coupled_coordinates, generalized_forces, poses
from borelli.people.human import human

from ..shared_data import SHARED_DATA as DATA

PAGODA = "chest box 0.4 0.2 0.6\narm cap 0.3 0.05*\nball chest(1 0 1) <- arm(0 0 1)\n"
ASF = """:version 1.10
:name one
:units
  mass 1.0
  length 0.45
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name femur
     direction 0 -1 0
     length 5
     axis 0 0 0  XYZ
     dof rx
     limits (-90.0 90.0)
  end
:hierarchy
  begin
    root femur
  end
"""
URDF = """<?xml version="1.0"?>
<robot name="gripper">
  <link name="base"><inertial><mass value="2"/><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0.002"/></inertial>
    <collision><origin xyz="0 0 0.1"/><geometry><box size="0.2 0.3 0.4"/></geometry></collision>
    <collision><geometry><mesh filename="x.stl"/></geometry></collision></link>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
  <link name="slide"><inertial><mass value="0.5"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="finger"><inertial><mass value="0.1"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0.1 0.3" rpy="0.3 -0.2 0.9"/>
    <axis xyz="0 1 1"/><limit lower="-1" upper="2" effort="1" velocity="1"/></joint>
  <joint name="reach" type="prismatic"><parent link="arm"/><child link="slide"/>
    <origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="0.5" effort="1" velocity="1"/></joint>
  <joint name="grip" type="continuous"><parent link="slide"/><child link="finger"/><origin rpy="1 0 0" xyz="0.1 0 0"/>
    <axis xyz="1 0 0"/></joint>
  <joint name="end" type="fixed"><parent link="finger"/><child link="tip"/><origin xyz="0 0 0.1"/></joint>
  <transmission name="t"/>
</robot>
"""


def put(path, text) -> Path:
    path.write_text(text)
    return path


def test_reader_is_chosen_by_content(tmp_path) -> None:
    man = human()
    files = {
        "native": model_to_text(man),
        "osim": osim_text(man)[0],
        "mjcf": mjcf_text(man)[0],
        "pagoda": PAGODA,
        "asf": ASF,
        "urdf": URDF,
    }
    bodies = {}
    for kind, text in files.items():
        bodies[kind] = len(read_model(put(tmp_path / f"{kind}.dat", text)).bodies)
    assert bodies["native"] == bodies["osim"] == bodies["mjcf"] == len(man.bodies)
    assert bodies["pagoda"] == 2 and bodies["asf"] == 2 and bodies["urdf"] == 5


def test_long_comment_may_come_first(tmp_path) -> None:
    text = mjcf_text(human())[0]
    first, rest = text.split("\n", 1)
    long = put(tmp_path / "m.xml", f"{first}\n<!-- {'licence ' * 20000} -->\n{rest}")
    assert len(read_model(long).bodies) == len(human().bodies)


@pytest.mark.parametrize("ending", [".toml", ".osim", ".xml", ".mjcf"])
def test_models_are_written_by_ending_and_restored(tmp_path, ending) -> None:
    man = human(mass=80.0, height=1.9)
    path = tmp_path / f"man{ending}"
    assert write_model(man, path) == () or ending == ".osim"
    report = compare_models(man, read_model(path), poses=10)
    for name in ("total mass", "body position", "body orientation", "marker position", "body inertia"):
        assert report.worst(name) < 1e-9
    assert report.worst("inverse dynamics") < 1e-6
    assert "coordinates" not in report.only_a


def test_unknown_ending_is_refused(tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"Unknown file extension of a model '.c3d'.*\.toml .*\.osim .*\.xml "):
        write_model(human(), tmp_path / "man.c3d")
    assert not (tmp_path / "man.c3d").exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"hello\n", "Unknown model format"),
        (b"\x02\x50" + bytes(510), "use read_recording"),
        (b"HIERARCHY\nROOT hips\n", "use read_recording"),
        (b"<html></html>", "root element is <html>"),
        (b"<<<<", "begins like XML"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco/>", "document type"),
        (b"<OpenSimDocument", "begins like XML"),
    ],
)
def test_other_content_is_refused_in_one_sentence(tmp_path, content, problem) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=problem) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)


def test_folders_pipes_and_missing_files_are_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe", "nothing"):
        with pytest.raises(FileFormatError):
            read_model(tmp_path / name)


@pytest.mark.data
def test_tables_of_qtvr_are_read_by_folder_or_by_one_of_them(hdm, tmp_path) -> None:
    assert len(read_model(hdm).bodies) == len(read_model(hdm / "dimMap.txt").bodies) == 21
    assert len(read_model(hdm / "cooper-skeleton.txt").bodies) == 21
    shutil.copy(hdm / "dimMap.txt", tmp_path)
    with pytest.raises(BorelliError):
        read_model(tmp_path / "dimMap.txt")


def test_urdf_joints_shapes_and_limits(tmp_path) -> None:
    model = read_urdf(put(tmp_path / "r.urdf", URDF))
    assert {j.child: j.kind for j in model.joints} == {
        "arm": "hinge", "slide": "slider", "finger": "hinge", "tip": "fixed", "base": "fixed",
    }  # fmt: skip
    limits = {c.name: (c.lower, c.upper, c.default) for c in model.coordinates}
    assert limits == {"shoulder": (-1.0, 2.0, 0.0), "reach": (0.1, 0.5, 0.1), "grip": (-inf, inf, 0.0)}
    assert model.body("base").shapes[0].size == (0.1, 0.15, 0.2)
    assert model.body("arm").shapes[0].size == (0.05, 0.2)
    assert model.joint("base_to_ground").parent == GROUND
    notes = " ".join(model.notes)
    assert "mesh" in notes and "transmission" in notes and "fixed to the ground" in notes


@pytest.mark.crosscheck
def test_urdf_poses_agree_with_pinocchio(tmp_path) -> None:
    pinocchio = pytest.importorskip("pinocchio")
    limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'  # pinocchio keeps a continuous angle as two numbers
    text = URDF.replace("continuous", "revolute").replace('<axis xyz="1 0 0"/>', f'<axis xyz="1 0 0"/>{limit}')
    ours = read_urdf(put(tmp_path / "r.urdf", text))
    theirs = pinocchio.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    data = theirs.createData()
    order = [theirs.joints[theirs.getJointId(c.name)].idx_q for c in ours.coordinates]
    rng = np.random.default_rng(0)
    q, u, a = rng.uniform(-1, 1, (3, 4, 3))
    found, places = generalized_forces(ours, q, u, a), poses(ours, q)[0]
    for f in range(4):
        rows = [np.zeros(3) for _ in range(3)]
        for row, values in zip(rows, (q, u, a), strict=True):
            row[order] = values[f]
        assert found[f] == pytest.approx(pinocchio.rnea(theirs, data, *rows)[order], abs=1e-9)
        pinocchio.framesForwardKinematics(theirs, data, rows[0])
        for b, body in enumerate(ours.bodies):
            place = data.oMf[theirs.getFrameId(body.name)].translation
            assert places[f, b] == pytest.approx(place, abs=1e-9)


def test_urdf_mimic_floating_and_world(tmp_path) -> None:
    text = """<robot name="r"><link name="world"/><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
      <joint name="f" type="floating"><parent link="world"/><child link="a"/></joint>
      <joint name="p" type="planar"><parent link="a"/><child link="b"/><axis xyz="0 0 2"/></joint>
      <joint name="j" type="continuous"><parent link="b"/><child link="c"/></joint>
      <joint name="k" type="continuous"><parent link="c"/><child link="d"/>
        <mimic joint="j" multiplier="-2" offset="0.5"/></joint></robot>"""
    model = read_urdf(put(tmp_path / "r.urdf", text))
    assert model.joint("f").parent == GROUND and model.joint("f").kind == "free"
    normal = np.cross(*model.joint("p").axes)
    assert normal == pytest.approx([0.0, 0.0, 1.0])
    row = coupled_coordinates(model, [0.1] * len(model.coordinates))[0]
    assert row[[c.name for c in model.coordinates].index("k")] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("<robot/>", FileFormatError, "no links"),
        ('<robot><link name="a"/><joint name="j" type="hinge"/></robot>', FileFormatError, "Unknown type 'hinge'"),
        ('<robot><link name="a"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>',
         FileFormatError, "Unknown child link 'b'"),
        ('<robot><link name="a"><inertial><mass value="x"/></inertial></link></robot>', FileFormatError, "finite"),
        ('<robot><link name="a"><inertial><mass value="-1"/></inertial></link></robot>', ModelError, "not be negative"),
        ('<robot><link name="a"/><link name="b"/>'
         '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
         '<joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint></robot>', ModelError, "closed loop"),
    ],
)  # fmt: skip
def test_mistakes_in_a_urdf_are_named(tmp_path, text, error, problem) -> None:
    with pytest.raises(error, match=problem):
        read_urdf(put(tmp_path / "r.urdf", text))


@pytest.mark.data
def test_reader_choice_on_all_data() -> None:
    from borelli.model.io import model_reader

    for path in DATA.rglob("*"):
        if path.is_file() and path.stat().st_size < 3_000_000:
            try:
                model_reader(path)
            except FileFormatError as error:
                assert "\n" not in str(error)


def test_model_summary_is_short() -> None:
    man = human(markers="plugin_gait")
    assert repr(man) == (
        "Model('human, male, 75 kg, 1.75 m', mass=75 kg, bodies=21, joints=21, coordinates=54, markers=39, muscles=0)"
    )
    long = Model("x" * 5000, man.bodies * 50, man.joints * 50)
    assert len(repr(long)) < 2000 and len(long._repr_html_()) < 60_000
    html = man._repr_html_()
    assert html.startswith("<table>") and "75 kg" in html and "knee_r" in html and "thigh_r" in html


@pytest.mark.parametrize(
    "call", [read_model, read_urdf, lambda path: write_model(human(), path), lambda path: human(markers=path)]
)
def test_paths_of_other_types_are_refused(call) -> None:
    for path in (3, b"model.toml", ["model.toml"]):
        with pytest.raises(SettingsError, match=r"Expected a path \(str or Path\)|A file path must be"):
            call(path)

"""Losses of a conversion: whatever a source contains and its target does not is listed by name."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from borelli.cli import main
from borelli.commands.conversion_losses import conversion_losses, model_losses
from borelli.errors import FileFormatError
from borelli.model.formats.mjcf.includes import load
from borelli.model.formats.parsing import unread_notes
from borelli.model.io import read_model, write_model
from borelli.people.human import human
from borelli.recording.io import write_recording
from borelli.recording.recording import Recording, make_dataset

from ..shared_data import SHARED_DATA, shared

LOST = """
    <ForceSet><objects>
      <CoordinateActuator name="hip_motor"><coordinate>root_x</coordinate></CoordinateActuator>
      <FantasyForce name="wind"><strength>3</strength></FantasyForce>
    </objects></ForceSet>
    <ControllerSet><objects><PrescribedController name="brain"/></objects></ControllerSet>
    <ComponentSet><objects><NovelThing name="gadget"/></objects></ComponentSet>
"""


def with_losses(tmp_path):
    """Return an .osim file with a force, an actuator, a controller, a mesh and a component of unknown classes."""
    path = tmp_path / "losses.osim"
    write_model(human(markers=None), path)
    text = re.sub(r"<ForceSet.*?(/>|</ForceSet>)", "", path.read_text(), count=1, flags=re.DOTALL)
    mesh = '<attached_geometry><Mesh name="bone"><mesh_file>femur.vtp</mesh_file></Mesh></attached_geometry>'
    text = text.replace("<mass>", f"{mesh}<mass>", 1).replace("</Model>", f"{LOST}</Model>")
    path.write_text(text)
    return path


def test_objects_of_any_class_that_are_not_read_are_listed_by_name(tmp_path):
    model = read_model(with_losses(tmp_path))
    for target in ("back.toml", "back.osim", "back.xml"):
        stated = write_model(model, tmp_path / target)
        lost = " ".join(model_losses(model, tmp_path / target, stated))
        for kind, name in (
            ("CoordinateActuator", "hip_motor"), ("FantasyForce", "wind"), ("PrescribedController", "brain"),
            ("NovelThing", "gadget"), ("Mesh", "femur.vtp"),
        ):  # fmt: skip
            assert f"1 {kind} ({name})" in lost, (target, kind)


def test_convert_prints_them(tmp_path, capsys, monkeypatch):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["borelli", "convert", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code in (0, None)
        return capsys.readouterr().out

    lost = json.loads(call(with_losses(tmp_path), tmp_path / "model.toml", "--json"))["lost"]
    assert sum("Not read" in text for text in lost) == 5
    write_model(human(), tmp_path / "plain.toml")
    assert "Nothing was lost" in call(tmp_path / "plain.toml", tmp_path / "again.toml")


def test_elements_that_a_written_file_no_longer_contains_are_listed(tmp_path):
    """The losses follow from the written file, whatever the writer states."""
    model = human(markers="cmu41")
    write_model(model, tmp_path / "part.toml")
    more = replace(model, markers=(*model.markers, replace(model.markers[0], name="extra")))
    assert model_losses(more, tmp_path / "part.toml", ()) == [f"1 of {len(more.markers)} markers: extra"]


def test_joints_that_are_not_supported_are_refused_by_name(tmp_path):
    path = tmp_path / "spine.osim"
    write_model(human(markers=None), path)
    text = path.read_text()
    kind = re.search(r"<(\w+Joint) ", text)[1]
    start = text.index(f"<{kind} ")
    end = text.index(f"</{kind}>", start)
    body = text[start:end].replace(f"<{kind} ", "<ConstantCurvatureJoint ", 1)
    path.write_text(f"{text[:start]}{body}</ConstantCurvatureJoint>{text[end + len(kind) + 3 :]}")
    with pytest.raises(FileFormatError, match="ConstantCurvatureJoint"):
        read_model(path)


MJCF = """<mujoco model="m"><option timestep="0.001"><flag gravity="disable"/></option>
  <default><geom friction="0.5"/></default>
  <asset><texture name="sky" builtin="flat"/><mesh name="spare" file="spare.stl"/></asset>
  <gizmo name="top"/><novelties><novelty name="inner"/></novelties>
  <worldbody><light name="lamp"/><geom name="floor" type="plane" size="1 1 1"/>
    <body name="a"><joint name="hip"/><geom name="ball" size="0.1"/><camera name="eye"/><gadget/>
      <frame><widget name="in_frame"/></frame><site name="s1"/></body></worldbody>
  <actuator><motor name="drive" joint="hip"/><warp name="field"/></actuator>
  <sensor><jointpos name="angle" joint="hip"/></sensor>
  <contact><exclude name="none" body1="a" body2="world"/></contact>
  <tendon><fixed name="cord"><joint joint="hip" coef="1"/></fixed></tendon>
  <custom><numeric name="number" data="1"/></custom>
  <keyframe><key name="bent" qpos="1"/></keyframe></mujoco>"""
MJCF_LOST = (
    "1 flag.", "1 mesh (spare)", "1 gizmo (top)", "1 novelty (inner)", "1 light (lamp)", "1 camera (eye)",
    "1 gadget (a)", "1 widget (in_frame)", "1 motor actuator (drive)", "1 warp actuator (field)",
    "1 jointpos sensor (angle)", "1 exclude contact (none)", "1 fixed tendon (cord)", "1 numeric (number)",
    "1 key (bent)",
)  # fmt: skip
READ_OR_DRAWN = """
body joint freejoint geom site inertial frame default compiler option mesh muscle general spatial weld connect worldbody
asset actuator tendon equality keyframe mujoco sensor contact custom visual statistic size texture material headlight
map quality rgba global scale
"""
"""Elements of MJCF that are read, contain others or change the picture only."""
URDF = """<robot name="r"><material name="blue"/><gizmo name="top"/>
  <link name="world"><collision name="wall"><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/><novelty/></inertial>
    <visual><geometry><mesh filename="a.dae"/></geometry></visual>
    <collision><geometry><mesh filename="a.stl"/></geometry></collision>
    <collision><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry><widget/></collision></link>
  <joint name="hip" type="revolute"><parent link="world"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1"/>
    <dynamics damping="1"/></joint>
  <transmission name="t"><actuator name="motor"/></transmission></robot>"""
URDF_LOST = (
    "1 gizmo (top)", "1 collision (wall)", "1 collision mesh (a.stl)", "1 novelty (a)", "1 visual mesh (a.dae)",
    "1 widget (a)", "1 dynamics (hip)", "1 transmission (t)",
)  # fmt: skip
ASF = """:version 1.10
:name one
:units
  mass 1.0
  length 0.45
  angle deg
  color blue
:documentation
  Free text.
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
  glow 3
:bonedata
  begin
    id 1
    name femur
    direction 0 -1 0
    length 30
    axis 0 0 0 XYZ
    bodymass 7
  end
:hierarchy
  begin
    root femur
  end
:skin
  skin.obj
"""
ASF_LOST = ("1 color (units)", "1 glow (root)", "1 bodymass (femur)", "1 skin.")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("one.xml", MJCF, MJCF_LOST), ("one.urdf", URDF, URDF_LOST), ("one.asf", ASF, ASF_LOST)],
)
def test_elements_of_any_kind_that_are_not_read_are_listed_in_each_format(name, text, expected, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    model = read_model(path)
    stated = write_model(model, tmp_path / "back.toml")
    lost = [text for text in model_losses(model, tmp_path / "back.toml", stated) if text.startswith("Not read")]
    for one in expected:
        assert any(f"Not read: {one}" in text for text in lost), (one, lost)
    assert len(lost) == len(expected), lost  # what is read, or only drawn, is not listed
    assert all(text in model.notes for text in lost)  # as `info` prints them


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("own.toml", 'format = "borelli-model"\nversion = 2\nname = "m"\nbodies = []\ngizmo = 1\n'),
        ("pagoda.txt", "head box 0.1 0.2 0.2 gizmo 3\n"),
    ],
)
def test_formats_without_foreign_entries_refuse_them(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FileFormatError, match="gizmo"):
        read_model(path)


def test_many_kinds_of_unread_elements_are_summed_up():
    notes = list(unread_notes((f"kind{i}", f"name{i}") for i in range(100)))
    assert len(notes) == 41 and notes[-1].startswith("Not read: 60 elements of 60 other kinds (kind40, kind41, ")


def test_channels_are_compared_by_name_and_not_by_position(tmp_path):
    names = ["emg 1", "emg 2", "force", "trigger"]
    values = np.arange(40.0).reshape(10, 4)
    points = np.random.default_rng(0).normal(size=(10, 2, 3))
    variables = {"marker_position": points, "analog": values}
    attributes = {"file_units": "m", "file_up": "+Z", "file_forward": "+X"}

    def recording(order, *, drop=()):
        kept = [i for i in order if names[i] not in drop]
        labels = {"marker": ["A", "B"], "channel": [names[i] for i in kept], "channel_units": ["V"] * len(kept)}
        data = {**variables, "analog": values[:, kept]}
        return Recording(make_dataset(data, labels, rate=100.0, analog_rate=100.0, **attributes), "one")

    path = tmp_path / "one.c3d"
    write_recording(recording((2, 0, 3, 1)), path)
    assert not [text for text in conversion_losses(recording(range(4)), path) if "analog" in text]
    write_recording(recording(range(4), drop=("emg 2",)), path, overwrite=True)
    assert "1 of 4 analog channels: emg 2" in conversion_losses(recording(range(4)), path)
    swapped = recording(range(4))
    swapped = swapped.with_data(swapped.data.assign_coords(channel=["emg 2", "emg 1", "force", "trigger"]))
    write_recording(swapped, path, overwrite=True)
    assert any("analog channels by 1" in text for text in conversion_losses(recording(range(4)), path))


@pytest.mark.data
def test_every_object_of_real_models_is_read_or_listed():
    """Tags of forces and actuators in the text of each file are those of muscles, or are listed as not read."""
    for path in sorted((shared("opensim"), *SHARED_DATA.glob("opensim/**/*.osim")))[:12]:
        if path.suffix != ".osim":
            continue
        model, text = read_model(path), path.read_text(errors="replace")
        notes = " ".join(model.notes)
        section = text[text.find("<ForceSet") : text.find("</ForceSet>")]
        for kind in set(re.findall(r"<(\w+(?:Actuator|Force)) name=", section)):
            assert f" {kind} (" in notes, (path.name, kind)


@pytest.mark.data
def test_every_element_of_real_mujoco_models_is_read_or_listed():
    """Elements in the text of each file, with its includes, are of kinds that are read, drawn, or listed."""
    for name in ("leg/myolegs.xml", "hand/myohand.xml"):
        path = shared(f"muscle_models/mjcf/myo_sim/{name}")
        root, _ = load(path)
        notes = " ".join(note for note in read_model(path).notes if note.startswith("Not read"))
        for tag in {element.tag for element in root.walk()} - set(READ_OR_DRAWN.split()):
            assert re.search(rf"\d {tag}\b", notes), (name, tag, notes)


def test_shapes_without_names_are_listed_by_kind_and_body(tmp_path):
    model = human()
    stated = write_model(model, tmp_path / "human.osim")
    (text,) = (text for text in model_losses(model, tmp_path / "human.osim", stated) if " shapes: " in text)
    boxes = sum(shape.kind == "box" and not shape.name for body in model.bodies for shape in body.shapes)
    assert boxes > 5 and text.count("box of ") == boxes and ", ," not in text

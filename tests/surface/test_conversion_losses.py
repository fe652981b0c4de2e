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
from borelli.model.io import read_model, write_model
from borelli.model.people.human import human
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

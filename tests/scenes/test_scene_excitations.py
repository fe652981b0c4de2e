"""Excitations of scenes: every form is restored from its file, and moves the model."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray

from borelli.cli import main
from borelli.errors import BorelliError, FileFormatError, ModelError, SettingsError
from borelli.model.formats.native import write_model
from borelli.muscles.excitation_files import write_excitations
from borelli.muscles.excitations import Excitations
from borelli.scenes.gallery import gallery_scene
from borelli.scenes.scene import Scene, run_scene, validate_scene
from borelli.scenes.scene_files import read_scene, scene_from_text, scene_to_text

from ..physics.muscle_step.muscled import floating

TABLE = Excitations(("two",), np.array([0.0, 0.025, 0.05]), np.array([[0.1], [0.9], [1 / 3]]), "constant")
HEADING = 'format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "floating.toml"\nstep = 0.001\nduration = 0.05\n'


def scene(excitations, **changes):
    return replace(Scene("s", floating(), step=0.001, duration=0.05, excitations=excitations), **changes)


@pytest.mark.parametrize("excitations", [None, 0.25, {"one": 1 / 3}, {}])
def test_numbers_are_restored_exactly(excitations):
    again = scene_from_text(scene_to_text(scene(excitations)))
    assert (again.excitations or None) == (excitations or None)
    assert scene_to_text(again) == scene_to_text(scene(excitations))


def test_a_table_is_restored_exactly():
    again = scene_from_text(scene_to_text(scene(TABLE))).excitations
    assert again.names == TABLE.names and again.interpolation == TABLE.interpolation
    assert np.array_equal(again.time, TABLE.time) and np.array_equal(again.value, TABLE.value)


@pytest.mark.parametrize("stepping", ["soft", "impulse"])
def test_a_scene_moves_by_its_muscles(stepping):
    first, second = (run_scene(scene(TABLE, stepping=stepping)) for _ in range(2))
    assert np.array_equal(first["muscle_force"].values, second["muscle_force"].values)
    assert np.abs(first["coordinate_velocity"].values[-1]).max() > 0.1
    assert first["muscle_activation"].sel(muscle="two").values.max() > 0.5
    assert first["muscle_excitation"].sel(muscle="one").values.max() == 0.0


def test_a_scene_names_a_file_of_excitations(tmp_path):
    """A column per muscle; muscles without one are not excited."""
    write_model(floating(), tmp_path / "floating.toml")
    write_excitations(replace(TABLE, interpolation="linear"), tmp_path / "u.sto")
    (tmp_path / "scene.toml").write_text(HEADING + 'excitations = "u.sto"\n')
    data = run_scene(read_scene(tmp_path / "scene.toml"))
    expected = np.interp(data["time"].values, TABLE.time, TABLE.value[:, 0])
    np.testing.assert_allclose(data["muscle_excitation"].sel(muscle="two").values, expected, atol=1e-9)


def test_the_command_writes_muscles(tmp_path, capsys, monkeypatch):
    write_model(floating(), tmp_path / "floating.toml")
    (tmp_path / "scene.toml").write_text(HEADING + "excitations = 0.4\n")
    files = ["simulate", str(tmp_path / "scene.toml"), "--out", str(tmp_path / "out.nc"), "--json"]
    monkeypatch.setattr(sys, "argv", ["borelli", *files])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert json.loads(capsys.readouterr().out)["bodies"] == 3.0
    with xarray.open_dataset(tmp_path / "out.nc") as data:
        for name, units in (("muscle_force", "N"), ("muscle_activation", "1"), ("fiber_length", "m")):
            assert data[name].dims == ("time", "muscle") and data[name].attrs["units"] == units
            assert np.isfinite(data[name].values).all()
        assert float(data["muscle_activation"][-1].max()) == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("excitations = 1.5", SettingsError, "outside 0 to 1"),
        ("excitations = true", FileFormatError, "Expected a number"),
        ("excitations = {thre = 0.5}", SettingsError, "Unknown muscle 'thre'"),
        ("excitations = {one = nan}", SettingsError, "outside 0 to 1"),
        ('excitations = "none.sto"', BorelliError, "none.sto"),
        ("excitations = 0.1\n[excitation_table]\nmuscles = []", FileFormatError, "Remove one of them"),
        ("[excitation_table]\nmuscle = []", FileFormatError, "Unknown key 'muscle'"),
        ("[excitation_table]\nmuscles = ['one']\ntime = 0.0\nvalue = []", FileFormatError, "Expected a list"),
        ("[excitation_table]\nmuscles = ['one']\ntime = ['a']\nvalue = [[0.0]]", FileFormatError, "lists of numbers"),
        ("[excitation_table]\nmuscles = ['one']\ntime = [0.0]\nvalue = [[7.0]]", SettingsError, "outside 0 to 1"),
    ],
)
def test_bad_excitations_are_refused(tmp_path, text, kind, message):
    write_model(floating(), tmp_path / "floating.toml")
    with pytest.raises(kind, match=message):
        scene_from_text(HEADING + text, tmp_path / "scene.toml")


def test_a_scene_without_muscles_is_refused():
    with pytest.raises(ModelError, match="has no muscles to excite"):
        validate_scene(replace(gallery_scene("pendulum"), excitations=0.5))

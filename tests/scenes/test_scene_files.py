"""Scene files: an exact round trip, and errors that name the problem."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import BorelliError, FileFormatError, ModelError, SettingsError
from borelli.model.formats.native import write_model
from borelli.physics.inputs import AppliedForce, Drive
from borelli.scenes.gallery import GALLERY, gallery_scene
from borelli.scenes.scene import run_scene, validate_scene
from borelli.scenes.scene_files import read_scene, scene_from_text, scene_to_text, with_changes, write_scene

FULL = replace(
    gallery_scene("pendulum"),
    name="all of it",
    speeds={"pivot": -0.1},
    twists={"rod": (0.1, 0.2, 0.3, 1e-17, 0.5, -0.0)},
    drives=(Drive("pivot", target=0.1, stiffness=3.0, damping=0.2, max_force=5.0),),
    forces=(AppliedForce("rod", force=(1.0, 0.0, 0.0), torque=(0.0, 0.0, 1 / 3), start=0.1, end=0.2),),
)
HEADING = 'format = "borelli-scene"\nversion = 1\nname = "x"\n'
NO_MASS = """
[model]
format = "borelli-model"
version = 2
name = "m"
[[model.bodies]]
name = "a"
mass = 0.0
inertia = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
"""
numbers = st.floats(allow_nan=False, allow_infinity=False)
durations = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_is_restored_exactly(name, tmp_path):
    scene = gallery_scene(name)
    write_scene(scene, tmp_path / "x.toml", overwrite=True)
    again = read_scene(tmp_path / "x.toml")
    assert again == scene
    assert scene_to_text(again) == scene_to_text(scene)


def test_every_part_is_restored_exactly():
    again = scene_from_text(scene_to_text(FULL))
    assert again == FULL
    assert math.copysign(1.0, again.twists["rod"][5]) == -1.0


@given(start=numbers, speed=numbers, duration=durations, description=st.text())
def test_any_numbers_and_words_are_restored(start, speed, duration, description):
    scene = replace(
        FULL, coordinates={"pivot": start}, speeds={"pivot": speed}, step=duration / 3, duration=duration,
        description=description,
    )  # fmt: skip
    assert scene_from_text(scene_to_text(scene)) == scene


def test_names_with_spaces_and_dots_are_restored():
    model = FULL.model
    (joint,) = model.joints
    odd = 'left "knee". x\n'
    joint = replace(joint, coordinates=(replace(joint.coordinates[0], name=odd),))
    scene = replace(FULL, model=replace(model, joints=(joint,)), coordinates={odd: 0.5}, speeds={}, drives=())
    assert scene_from_text(scene_to_text(scene)) == scene


def test_truncated_file_raises_or_is_complete():
    """No truncation gives another kind of error than BorelliError, and none gives another scene."""
    text = scene_to_text(FULL)
    for end in range(0, len(text) - 1, 7):
        try:
            assert scene_from_text(text[:end]) != FULL or text[end:].strip() == ""
        except BorelliError as error:
            assert "\n" not in str(error)


def test_model_file_in_the_scene_folder(tmp_path):
    write_model(FULL.model, tmp_path / "arm.toml")
    (tmp_path / "s.toml").write_text(HEADING + 'model = "arm.toml"\n')
    assert read_scene(tmp_path / "s.toml").model == FULL.model


def test_human_by_name():
    scene = scene_from_text(HEADING + 'model = "human"\n[human]\nmass = 50\nsex = "female"\n')
    assert scene.model.mass == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", FileFormatError, ["format"]),
        ('format = "borelli-scene"\nversion = 99\n', FileFormatError, ["version", "99"]),
        (HEADING, FileFormatError, ["model"]),
        (HEADING + "model = 3\n", FileFormatError, ["model"]),
        (HEADING + 'model = "human"\nfriends = 2\n', FileFormatError, ["friends"]),
        (HEADING + 'model = "absent.toml"\n', FileFormatError, ["absent.toml"]),
        (HEADING + 'model = "human"\n[human]\nmass = -3\n', SettingsError, ["mass", "-3"]),
        (HEADING + 'model = "human"\n[human]\nmass = "fat"\n', FileFormatError, ["mass", "fat"]),
        (HEADING + 'model = "human"\n[human]\nweight = 3\n', FileFormatError, ["weight"]),
        (HEADING + 'model = "human"\nstep = 0.0\n', SettingsError, ["step", "0.0"]),
        (HEADING + 'model = "human"\nstep = "long"\n', FileFormatError, ["step", "long"]),
        (HEADING + 'model = "human"\nduration = -1\n', SettingsError, ["duration", "-1"]),
        (HEADING + 'model = "human"\nduration = nan\n', SettingsError, ["duration", "nan"]),
        (HEADING + 'model = "human"\n[coordinates]\nknee = 1\n', SettingsError, ["coordinates", "'knee'"]),
        (HEADING + 'model = "human"\n[coordinates]\nroot_z = inf\n', SettingsError, ["root_z", "inf"]),
        (HEADING + 'model = "human"\n[speeds]\nroot_z = "fast"\n', FileFormatError, ["root_z", "fast"]),
        (HEADING + 'model = "human"\n[twists]\npelvis = [1, 2]\n', FileFormatError, ["pelvis"]),
        (HEADING + 'model = "human"\n[twists]\npelvos = [1, 2, 3, 4, 5, 6]\n', SettingsError, ["mean 'pelvis'"]),
        (HEADING + 'model = "human"\n[[forces]]\nbody = "tail"\nforce = [1, 0, 0]\ntorque = [0, 0, 0]\n', SettingsError,
         ["forces", "'tail'"]),
        (HEADING + 'model = "human"\n[[drives]]\ncoordinate = "tail"\nstiffness = 1\ndamping = 1\n', SettingsError,
         ["drives", "'tail'"]),
        (HEADING + '[human]\nmass = 3\n', FileFormatError, ["human"]),
        (HEADING + NO_MASS, ModelError, ["'a'", "Mass"]),
    ],
)  # fmt: skip
def test_the_problem_is_named(text, kind, words):
    with pytest.raises(kind) as caught:
        scene_from_text(text, "scene.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_unknown_name_lists_the_gallery():
    with pytest.raises(SettingsError, match="pendulum"):
        read_scene("nonsense")


def test_changes_are_checked():
    assert with_changes(FULL, step=0.01).step == 0.01
    with pytest.raises(SettingsError, match="step"):
        with_changes(FULL, step=10.0)


def test_scene_of_impulse_steps_runs_and_is_restored():
    hard = replace(FULL, drives=(), stepping="impulse", duration=0.05)
    assert scene_from_text(scene_to_text(hard)).stepping == "impulse"
    data = run_scene(hard)
    assert data["joint_gap"].max() < 1e-13
    with pytest.raises(SettingsError, match="springs"):
        validate_scene(replace(hard, drives=FULL.drives))
    with pytest.raises(SettingsError, match="stepping"):
        validate_scene(replace(hard, stepping="bouncy"))

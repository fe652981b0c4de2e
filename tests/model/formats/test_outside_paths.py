"""Paths in models, scenes and motions that leave the file's folder: one note each, with a code."""

import shutil

import pytest

from borelli.files.outside_paths import MAX_NOTED_PATHS, is_outside, joined_path, outside_notes
from borelli.model.io import read_model, write_model
from borelli.model.mechanisms import planks
from borelli.recording.io import read_recording
from borelli.scenes.scene_files import read_scene

from ...shared_data import shared

OUTSIDE = (
    "/etc/passwd", "../secret.stl", "inner/../../secret.stl", "..\\secret.stl", "\\\\server\\share\\secret.stl",
    "//server/share/secret.stl", "C:\\secret.stl", "file:///etc/passwd", "package://other/secret.stl",
    "http://example.org/secret.stl", "~/secret.stl", "linked.stl",
)  # fmt: skip
INSIDE = ("near.stl", "inner/near.stl", "./near.stl", "inner/../near.stl", "inner\\near.stl", "..near.stl", "")
AMC = "#!OML:ASF linked.asf\n:FULLY-SPECIFIED\n:DEGREES\n1\nroot 0 0 0 0 0 0\n2\nroot 0 0 0 0 0 0\n"
ASF = """:version 1.10
:name made
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
    name leg
    direction 0 -1 0
    length 5
    axis 0 0 0 XYZ
  end
:hierarchy
  begin
    root leg
  end
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a link to a file outside it."""
    inside = tmp_path / "model"
    (inside / "inner").mkdir(parents=True)
    (tmp_path / "secret.stl").write_text("solid")
    (inside / "linked.stl").symlink_to(tmp_path / "secret.stl")
    return inside


def noted(notes):
    """Return the notes about paths."""
    return [note for note in notes if getattr(note, "code", "") == "path_outside"]


def test_paths_that_leave_a_folder(folder):
    for path in OUTSIDE:
        assert is_outside(path, folder), path
    for path in (*INSIDE, "a\0b", "x" * 5000):
        assert not is_outside(path, folder), path
    assert not is_outside(str(folder / "near.stl"), folder)


def test_every_path_has_one_note_and_many_are_counted(folder):
    paths = [("mesh", path) for path in OUTSIDE]
    assert len(outside_notes([*paths, *paths], folder)) == len(OUTSIDE)
    many = outside_notes([("mesh", f"../{k}.stl") for k in range(100)], folder)
    assert len(many) == MAX_NOTED_PATHS + 1 and f"{100 - MAX_NOTED_PATHS} more" in many[-1]
    assert "\x1b" not in outside_notes([("mesh", "/\x1b[2J")], folder)[0]


def test_paths_below_a_folder_keep_absolute_ones():
    assert joined_path("assets", "a.stl") == "assets/a.stl"
    for path in ("/a.stl", "C:\\a.stl", "file:///a.stl", "\\\\server\\a.stl"):
        assert joined_path("assets", path) == path


def check(folder, file, text, use):
    """Check the notes of a file made from a template with each path."""
    for path in (*OUTSIDE, *INSIDE[:-1]):
        (folder / file).write_text(text.replace("PATH", path))
        notes = noted(read_model(folder / file).notes)
        assert len(notes) == (path in OUTSIDE), (path, notes)
        assert all(repr(path) in note and use in note for note in notes)


@pytest.mark.parametrize(
    "asset",
    [
        '<mesh name="m" file="PATH"/>', '<texture name="t" type="2d" file="PATH"/>',
        '<texture name="t" type="cube" fileright="PATH"/>', '<hfield name="h" file="PATH"/>',
        '<skin name="s" file="PATH"/>',
    ],
)  # fmt: skip
def test_mjcf_assets(folder, asset):
    body = '<worldbody><body><geom size="1"/></body></worldbody>'
    check(folder, "m.xml", f"<mujoco><asset>{asset}</asset>{body}</mujoco>", asset[1:5])


def test_mjcf_includes(folder):
    body = '<worldbody><body><geom size="1"/></body></worldbody>'
    (folder.parent / "secret.xml").write_text("<mujocoinclude/>")
    (folder / "linked.xml").symlink_to(folder.parent / "secret.xml")
    (folder / "inner" / "part.xml").write_text('<mujocoinclude><include file="../near.xml"/></mujocoinclude>')
    (folder / "near.xml").write_text("<mujocoinclude/>")
    for path, count in (("../secret.xml", 1), ("linked.xml", 1), (str(folder.parent / "secret.xml"), 1),
                        ("/nowhere.xml", 1), ("file:///nowhere.xml", 1), ("\\\\server\\a.xml", 1),
                        ("near.xml", 0), ("inner/part.xml", 0)):  # fmt: skip
        (folder / "m.xml").write_text(f'<mujoco><include file="{path}"/>{body}</mujoco>')
        assert len(noted(read_model(folder / "m.xml").notes)) == count, path


def test_mjcf_folders_of_meshes_and_textures(folder):
    body = '<worldbody><body><geom size="1"/></body></worldbody>'
    for compiler, count in (('meshdir="../meshes"', 1), ('texturedir="/textures"', 1), ('assetdir=".."', 2),
                            ('assetdir="inner"', 0), ('meshdir="../meshes" strippath="true"', 1)):  # fmt: skip
        assets = '<mesh name="m" file="a.stl"/><texture name="t" type="2d" file="b.png"/>'
        text = f"<mujoco><compiler {compiler}/><asset>{assets}</asset>{body}</mujoco>"
        (folder / "m.xml").write_text(text)
        assert len(noted(read_model(folder / "m.xml").notes)) == count, compiler


@pytest.mark.parametrize("kind", ["visual", "collision"])
def test_urdf_meshes(folder, kind):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    mesh = f'<{kind}><geometry><mesh filename="PATH"/></geometry></{kind}>'
    check(folder, "m.urdf", f'<robot name="r"><link name="a">{inertial}{mesh}</link></robot>', "mesh")


def test_urdf_textures(folder):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    material = '<material name="m"><texture filename="PATH"/></material>'
    check(folder, "m.urdf", f'<robot name="r">{material}<link name="a">{inertial}</link></robot>', "texture")


@pytest.mark.parametrize(
    "geometry",
    [
        "<attached_geometry><Mesh name='m'><mesh_file>PATH</mesh_file></Mesh></attached_geometry>",
        "<VisibleObject><GeometrySet><objects><DisplayGeometry><geometry_file>PATH</geometry_file></DisplayGeometry>"
        "</objects></GeometrySet></VisibleObject>",
        "<VisibleObject><geometry_files>PATH near.vtp</geometry_files></VisibleObject>",
    ],
)
def test_osim_geometry(folder, geometry):
    write_model(planks(2), folder / "m.osim")
    text = (folder / "m.osim").read_text()
    first = text.index("</mass>") + len("</mass>")
    check(folder, "m.osim", text[:first] + geometry + text[first:], "mesh")


def test_scenes_that_name_a_model(folder):
    write_model(planks(2), folder.parent / "secret.toml")
    shutil.copy(folder.parent / "secret.toml", folder / "near.toml")
    (folder / "linked.toml").symlink_to(folder.parent / "secret.toml")
    head = 'format = "borelli-scene"\nversion = 1\nname = "s"\nduration = 0.1\nstep = 0.01\n'
    for path, count in (("near.toml", 0), ("../secret.toml", 1), (str(folder.parent / "secret.toml"), 1),
                        ("linked.toml", 1)):  # fmt: skip
        (folder / "s.toml").write_text(f'{head}model = "{path}"\n')
        assert len(noted(read_scene(str(folder / "s.toml")).model.notes)) == count, path


def test_native_models_refer_to_no_files(folder):
    write_model(planks(2), folder / "m.toml")
    assert not noted(read_model(folder / "m.toml").notes)
    assert not any(word in (folder / "m.toml").read_text() for word in ("file", "path ="))


def test_skeleton_of_an_amc_that_is_a_link(folder):
    (folder.parent / "secret.asf").write_text(ASF)
    (folder / "linked.asf").symlink_to(folder.parent / "secret.asf")
    (folder / "walk.amc").write_text(AMC)
    (note,) = noted(read_recording(folder / "walk.amc").notes)
    assert note.kind == "problem" and "linked.asf" in note.text
    # the user's own choice needs no note
    assert not noted(read_recording(folder / "walk.amc", skeleton=folder.parent / "secret.asf").notes)
    (folder.parent / "secret.asf").replace(folder / "linked.asf")
    assert not noted(read_recording(folder / "walk.amc").notes)


@pytest.mark.data
def test_qtvr_tables_that_are_links(folder):
    tables = ("dimMap.txt", "anchorMap.txt", "markMap.txt", "posMap.txt")
    for table in tables:
        shutil.copy(shared("hdm") / table, folder / table)
    assert not noted(read_model(folder).notes)
    (folder / "posMap.txt").rename(folder.parent / "posMap.txt")
    (folder / "posMap.txt").symlink_to(folder.parent / "posMap.txt")
    (note,) = noted(read_model(folder).notes)
    assert "posMap.txt" in note

"""AMC with ASF: poses computed by hand, and one walk in files of three formats."""

import shutil
from functools import cache

import numpy as np
import pytest

from borelli.errors import FileFormatError
from borelli.model.formats.asf import read_asf
from borelli.model.kinematics import poses
from borelli.recording.formats.amc import read_amc
from borelli.recording.formats.bvh import read_bvh, write_bvh
from borelli.recording.io import read_recording

from ..text_recordings import notes_of, refuse_special_files
from ..walker import real

ASF = """:version 1.10
:name arm
:units
  mass 1.0
  length 1.0
  angle deg
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
  begin
    id 1
    name upper
    direction 0 1 0
    length 2
    axis 0 0 90 XYZ
    dof rx ry rz
    limits (-180 180)
           (-90 90)
           (-90 90)
  end
  begin
    id 2
    name lower
    direction 1 0 0
    length 1
    axis 0 0 0 XYZ
    dof rz
    limits (-10 170)
  end
:hierarchy
  begin
    root upper
    upper lower
  end
"""
AMC = """#!OML:ASF C:\\lab\\arm.ASF
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 0 0 0
upper 0 0 0
lower 0
2
root 0 0 0 90 0 90
upper 90 0 0
lower 90
"""
PAIRS = {  # the AMC's bone and the BVH's joint where it begins
    "root": "Hips",
    "lfemur": "LeftUpLeg",
    "ltibia": "LeftLeg",
    "lfoot": "LeftFoot",
    "ltoes": "LeftToeBase",
    "rfemur": "RightUpLeg",
    "rtibia": "RightLeg",
    "rfoot": "RightFoot",
    "rtoes": "RightToeBase",
    "upperback": "Spine",
    "thorax": "Spine1",
}
ABOVE = {  # children of the thorax, whose length the BVH omits
    "lowerneck": "Neck",
    "head": "Head",
    "lclavicle": "LeftShoulder",
    "lhumerus": "LeftArm",
    "rradius": "RightForeArm",
    "rwrist": "RightHand",
}


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "arm.asf").write_text(ASF)
    (tmp_path / "arm_01.amc").write_text(AMC)
    return tmp_path / "arm_01.amc"


def test_a_posed_arm_by_hand(arm):
    recording = read_amc(arm, units="m", up="+Z")
    centers = recording.data["joint_center"]
    assert list(centers["joint"].values) == ["root", "upper", "lower", "lower_end"]
    np.testing.assert_allclose(centers[0], [[1, 2, 3], [1, 2, 3], [1, 4, 3], [2, 4, 3]])
    # the root rotates about x, then z: its y is now z, its z is x, its x is y; the upper arm rotates by 90 about its x,
    # the root's y, which keeps its direction and rotates the root's z, and with it the lower arm's axis, to x
    np.testing.assert_allclose(centers[1], [[0, 0, 0], [0, 0, 0], [0, 0, 2], [0, 0, 3]], atol=1e-12)
    assert recording.rate == 120.0
    assert list(recording.data["coordinate"].values)[-4:] == ["upper_rz", "upper_ry", "upper_rx", "lower_rz"]


def test_radians_and_a_rate_may_be_stated(arm):
    text = AMC.replace(":DEGREES", ":RADIANS").replace("lower 90", "lower 1.5707963267948966")
    text = text.replace("90 0 90", "1.5707963267948966 0 1.5707963267948966").replace(
        "upper 90", "upper 1.5707963267948966"
    )
    degrees = read_amc(arm, units="m", up="+Z")
    arm.write_text(text)
    radians = read_amc(arm, units="m", up="+Z", rate=60.0)
    np.testing.assert_allclose(radians.data["coordinate_value"], degrees.data["coordinate_value"])
    assert radians.rate == 60.0


def test_the_skeleton_is_found_in_the_folder_of_the_motion(arm, tmp_path):
    (tmp_path / "other.asf").write_text(ASF)
    assert read_amc(arm).metadata["asf"] == "arm.asf"
    (tmp_path / "arm.asf").rename(tmp_path / "elsewhere.asf")
    with pytest.raises(FileFormatError, match=r"no skeleton arm_01\.asf, arm\.asf in the folder, only 2 others"):
        read_amc(arm)
    assert read_amc(arm, tmp_path / "elsewhere.asf").metadata["asf"] == "elsewhere.asf"
    (tmp_path / "other.asf").unlink()
    assert read_amc(arm).metadata["asf"] == "elsewhere.asf"


def test_skipped_frames_and_missing_bones_are_noted(arm):
    arm.write_text(AMC.replace("\n2\n", "\n7\n").replace("upper 0 0 0\n", ""))
    problems = notes_of(read_amc(arm), "problem")
    assert "such as 7" in problems
    assert "1 frames do not state every bone" in problems


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (AMC.replace("lower 0", "middle 0"), "line 7: Unknown bone 'middle'"),
        (AMC.replace("lower 0", "lower 0 1"), "line 7: Bone 'lower' must have 1 numbers, got '0 1'"),
        (AMC.replace("lower 0", "lower x"), "line 7: Bone 'lower' must have 1 numbers, got 'x'"),
        (AMC.replace("\n1\n", "\n"), "line 4: Bone 'root' precedes the number"),
        (":FULLY-SPECIFIED\n:DEGREES\n", "contains no frame"),
    ],
)
def test_damage_is_refused_with_the_location(arm, text, part):
    arm.write_text(text)
    with pytest.raises(FileFormatError) as error:
        read_amc(arm)
    assert part in str(error.value)


def test_paths_that_are_not_regular_files_are_refused(arm, tmp_path):
    refuse_special_files(read_amc, tmp_path, ".amc")


@pytest.mark.data
@pytest.mark.parametrize("trial", ["02_01", "07_05", "09_06", "87_03"])
def test_a_motion_written_as_bvh_is_the_same_motion(trial, tmp_path):
    recording = read_amc(real(f"cmu/asfamc/{trial}.amc"))
    write_bvh(recording, tmp_path / "x.bvh", overwrite=True)
    back = read_bvh(tmp_path / "x.bvh", units=recording.data.attrs["file_units"])
    np.testing.assert_allclose(back.data["joint_center"], recording.data["joint_center"], atol=1e-9)


@pytest.mark.data
@pytest.mark.parametrize(("trial", "frames"), [("02_01", 343), ("07_05", 517), ("09_06", 141)])
def test_amc_and_bvh_of_one_trial_agree(trial, frames):
    amc = read_recording(real(f"cmu/asfamc/{trial}.amc")).data["joint_center"]
    bvh = read_recording(real(f"cmu/bvh_hahne2010/{trial}.bvh")).data["joint_center"][1:]  # after the added rest pose
    assert amc.sizes["time"] == bvh.sizes["time"] == frames
    for bone, joint in PAIRS.items():
        apart = np.linalg.norm(amc.sel(joint=bone).values - bvh.sel(joint=joint).values, axis=1)
        assert apart.max() < 1e-4, bone
    thorax = np.linalg.norm(amc.sel(joint="lowerneck").values - amc.sel(joint="thorax").values, axis=1)
    for bone, joint in ABOVE.items():
        apart = np.linalg.norm(amc.sel(joint=bone).values - bvh.sel(joint=joint).values, axis=1)
        np.testing.assert_allclose(apart, thorax, atol=1e-4, err_msg=bone)


MARKERS = {  # bone of each marker of the C3D, and the largest deviation from its position there [m RMS]
    **dict.fromkeys([("LFWT", "root"), ("RFWT", "root"), ("LBWT", "root"), ("RBWT", "root")], 0.015),
    **dict.fromkeys([(f"{s}{m}", b) for s in "LR" for m, b in (("FHD", "head"), ("BHD", "head"))], 0.015),
    **dict.fromkeys([("LSHO", "lclavicle"), ("RSHO", "rclavicle"), ("LELB", "lhumerus"), ("RELB", "rhumerus")], 0.015),
    **dict.fromkeys([(f"{s}{m}", f"{s.lower()}wrist") for s in "LR" for m in ("WRA", "WRB")], 0.015),
    **dict.fromkeys([(f"{s}{m}", f"{s.lower()}foot") for s in "LR" for m in ("TOE", "HEE", "ANK")], 0.015),
    **dict.fromkeys([("LANK", "ltibia"), ("RANK", "rtibia")], 0.005),
    **dict.fromkeys([("LKNE", "lfemur"), ("RKNE", "rfemur")], 0.030),  # the AMC's knee itself wanders in the thigh
}


@pytest.mark.data
def test_c3d_and_amc_of_one_trial_agree_on_the_position_of_the_body():
    c3d = read_recording(real("hdm/data.c3d"))
    amc = read_recording(real("cmu/asfamc/02_01.amc"), forward="+Z")  # the C3D walks along its x
    assert c3d.rate == amc.rate
    markers = c3d.data["marker_position"]
    pelvis = markers.sel(marker=["LFWT", "RFWT", "LBWT", "RBWT"]).mean("marker").values
    apart = pelvis - amc.data["joint_center"].sel(joint="root").values
    assert np.sqrt(np.mean(np.sum(apart**2, axis=1))) < 0.015
    ankles = {"LANK": "lfoot", "RANK": "rfoot"}
    across = markers.sel(marker="LFWT").values - markers.sel(marker="RFWT").values
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    for (marker, bone), side in zip(ankles.items(), (-1.0, 1.0), strict=True):
        center = markers.sel(marker=marker).values + side * 0.047 * across  # half an ankle's width, to the midline
        apart = center - amc.data["joint_center"].sel(joint=bone).values
        assert np.sqrt(np.mean(np.sum(apart**2, axis=1))) < 0.015, marker


@cache
def _walk():
    """Return markers of the C3D, and names, positions and rotations of the bones of the AMC, in one lab frame."""
    c3d = read_recording(real("hdm/data.c3d"), forward="+Y")  # what an AMC's x is in the C3D
    amc = read_recording(real("cmu/asfamc/02_01.amc"))
    model = read_asf(real("cmu/asfamc/02.asf"))
    order = [coordinate.name for coordinate in model.coordinates]
    positions, rotations = poses(model, amc.data["coordinate_value"].sel(coordinate=order).values)
    return c3d.data["marker_position"], [body.name for body in model.bodies], positions, rotations


@pytest.mark.data
@pytest.mark.parametrize(("marker", "bone"), MARKERS)
def test_each_marker_keeps_its_position_on_its_bone(marker, bone):
    markers, bodies, positions, rotations = _walk()
    index = bodies.index(bone)
    local = np.einsum("fij,fi->fj", rotations[:, index], markers.sel(marker=marker).values - positions[:, index])
    spread = np.sqrt(np.mean(np.sum((local - local.mean(axis=0)) ** 2, axis=1)))
    assert spread < MARKERS[marker, bone]


@pytest.mark.data
def test_a_copy_without_its_skeleton_says_so(tmp_path):
    shutil.copy(real("cmu/asfamc/02_01.amc"), tmp_path)
    with pytest.raises(FileFormatError, match="TakeoMonday"):
        read_recording(tmp_path / "02_01.amc")


def test_the_skeleton_of_another_subject_is_a_problem(arm, tmp_path):
    other = tmp_path / "77.asf"
    asf = tmp_path / "arm.asf"
    shutil.copy(asf, other)
    own = read_amc(arm)
    assert not [note for note in own.notes if note.code == "skeleton" and note.kind == "problem"]
    (note,) = [note for note in read_amc(arm, other).notes if note.code == "skeleton"]
    assert note.kind == "problem" and "77.asf" in note.text and note.action == "--skeleton FILE"

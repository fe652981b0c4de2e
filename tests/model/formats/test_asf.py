"""ASF skeletons as models: limits, masses, and the same positions as in the motion."""

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.model.formats.asf import FRACTIONS, read_asf
from borelli.model.formats.asf_parser import read_asf_text
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.model.kinematics import poses
from borelli.recording.formats.amc import read_amc

from ...shared_data import SHARED_DATA

BONES = """:units
  length 1
  angle deg
:root
  order TX TY TZ RX RY RZ
  axis XYZ
:bonedata
  begin
    name thigh # of a stick
    direction 0 -1 0
    length 16
    axis 0 0 20 XYZ
    dof rx rz
    limits (-30 40) (10 20)
  end
  begin
    name shank
    direction 0 -1 0
    length 20
    axis 0 0 0
    dof rx
    limits (-inf inf)
  end
  begin
    name foot
    direction 0 0 1
    length 1
    axis 0 0 0 XYZ
  end
:hierarchy
  begin
    root thigh
    thigh shank
    shank foot
  end
"""


def write(text, folder):
    path = folder / "stick.asf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="session")
def cmu():
    folder = SHARED_DATA / "cmu" / "asfamc"
    return folder


def test_a_stick_figure(tmp_path):
    model = read_asf(write(BONES, tmp_path), mass=50.0, units=0.05)
    assert [body.name for body in model.bodies] == ["root", "thigh", "shank", "foot"]
    assert [joint.kind for joint in model.joints] == ["free", "universal", "hinge", "fixed"]
    assert model.mass == pytest.approx(50.0)
    by_name = {coordinate.name: coordinate for coordinate in model.coordinates}
    assert np.degrees([by_name["thigh_rx"].lower, by_name["thigh_rx"].upper]) == pytest.approx([-30, 40])
    assert np.degrees(by_name["thigh_rz"].default) == pytest.approx(10.0)  # the nearest to zero that the limits allow
    assert by_name["shank_rx"].upper == np.inf
    places, _ = poses(model, np.zeros(len(model.coordinates)))
    np.testing.assert_allclose(places[0], [[0, 0, 0], [0, 0, 0], [0, 0, -0.8], [0, 0, -1.8]], atol=1e-15)
    assert model_from_text(model_to_text(model)) == model


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_any_encoding_is_read(encoding, tmp_path):
    model = read_asf(write(BONES.replace("stick", "Stöckchen").encode(encoding), tmp_path))
    assert model == read_asf(write(BONES, tmp_path))


def test_units_are_inferred_from_stature(tmp_path):
    assert read_asf_text(write(BONES, tmp_path)).length_unit()[0] == pytest.approx(0.0254 / 0.45)  # 36 high
    assert read_asf_text(
        write(BONES.replace("length 16", "length 26").replace("length 20", "length 40"), tmp_path)
    ).length_unit()[0] == pytest.approx(0.0254)
    centimeters = BONES.replace("length 16", "length 80").replace("length 20", "length 90")
    assert read_asf_text(write(centimeters, tmp_path)).length_unit()[0] == 0.01


def test_mass_fractions_sum_to_one():
    sides = {"hipjoint", "clavicle", "femur", "tibia", "foot", "toes", "humerus", "radius", "wrist", "hand"}
    sides |= {"fingers", "thumb"}
    assert sum(share * (2 if name in sides else 1) for name, share in FRACTIONS.items()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (BONES.replace("dof rx rz", "dof rx tz"), "translational degrees of freedom (tz)"),
        (BONES.replace("dof rx rz", "dof rx rq"), "Unknown degree of freedom 'rq'"),
        (BONES.replace("(10 20)", ""), "Expected 2 limits"),
        (BONES.replace("(10 20)", "(20 10)"), "are reversed"),
        (BONES.replace("length 16", "length nan"), "Expected 1 numbers (found 'nan')"),
        (BONES.replace("XYZ", "XXZ"), "must be XYZ in some order"),
        (BONES.replace("thigh shank", "thigh shin"), "Unknown bone 'shin'"),
        (BONES.replace("    shank foot\n", ""), "without a parent: foot"),
        (BONES.replace("root thigh", "shank thigh").replace("thigh shank", "thigh shank"), "without a parent"),
        (BONES.replace("name foot", "name thigh"), "defined twice"),
        (BONES.replace("name foot", ""), "has no name"),
        (BONES.partition(":bonedata")[0], "There is no bone"),
        (BONES.encode("utf-16-le"), "NUL"),
        (b"", "There is no bone"),
    ],
)
def test_line_of_damage_is_reported(text, part, tmp_path):
    with pytest.raises(FileFormatError) as error:
        read_asf(write(text, tmp_path))
    assert part in str(error.value)


def test_masses_and_units_out_of_range_are_refused(tmp_path):
    path = write(BONES, tmp_path)
    with pytest.raises(SettingsError, match="mass"):
        read_asf(path, mass=-1.0)
    with pytest.raises(SettingsError, match="units"):
        read_asf(path, units=0.0)


@pytest.mark.data
@pytest.mark.parametrize("trial", ["02_01", "07_05", "09_06", "87_03"])
def test_poses_agree_with_the_motion(cmu, trial):
    model = read_asf(cmu / f"{trial[:2]}.asf")
    assert len(model.bodies) == 31
    assert len(model.coordinates) == 62
    recording = read_amc(cmu / f"{trial}.amc")
    order = [coordinate.name for coordinate in model.coordinates]
    places, _ = poses(model, recording.data["coordinate_value"].sel(coordinate=order).values)
    bodies = [body.name for body in model.bodies]
    np.testing.assert_allclose(places, recording.data["joint_center"].sel(joint=bodies), atol=1e-12)

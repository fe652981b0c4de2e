"""BVH: forward kinematics by hand, round trips, skeletons of any nesting, damage refused."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.formats.animation_skeleton import Link, joint_positions, plain_links
from borelli.recording.formats.bvh import read_bvh, write_bvh
from borelli.recording.recording import Recording, make_dataset

from ..text_recordings import notes_of, refuse_special_files
from ..walker import real

ARM = """HIERARCHY
ROOT base
{
  OFFSET 1 2 3
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT elbow
  {
    OFFSET 0 1 0
    CHANNELS 1 Zrotation
    End Site
    {
      OFFSET 0 2 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0083333
0 0 0 0 0 0 90
5 6 7 90 0 0 -90
"""
ORDERS = ["ZXY", "ZYX", "XYZ", "YXZ", "XZY", "YZX"]


def read(text, folder, **options):
    path = folder / "made.bvh"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_bvh(path, **{"units": "m", "up": "+Z"} | options)


def position(recording, joint):
    return recording.data["joint_center"].sel(joint=joint).values


def test_a_posed_arm_by_hand(tmp_path):
    recording = read(ARM, tmp_path)
    np.testing.assert_allclose(position(recording, "base"), [[0, 0, 0], [5, 6, 7]])  # positions replace the offset
    np.testing.assert_allclose(position(recording, "elbow"), [[0, 1, 0], [4, 6, 7]], atol=1e-15)
    np.testing.assert_allclose(position(recording, "elbow_end"), [[-2, 1, 0], [4, 8, 7]], atol=1e-14)
    assert recording.rate == 120.0
    assert list(recording.data["coordinate"].values[-2:]) == ["base_Yrotation", "elbow_Zrotation"]
    np.testing.assert_allclose(recording.data["coordinate_value"][:, -1], [np.pi / 2, -np.pi / 2])


@pytest.mark.parametrize("order", ORDERS)
def test_rotations_multiply_in_the_order_of_their_channels(order, tmp_path):
    channels = " ".join(f"{axis}rotation" for axis in order)
    text = ARM.replace("Zrotation Xrotation Yrotation", channels).replace("0 0 0 0 0 0 90", "0 0 0 10 20 30 0")
    rotation = Rotation.from_euler(order, [10, 20, 30], degrees=True)
    np.testing.assert_allclose(position(read(text, tmp_path), "elbow")[0], rotation.apply([0, 1, 0]), atol=1e-15)


@st.composite
def skeletons(draw):
    """A tree of joints in any order of channels, moving at random."""
    count = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, count)]
    links = []
    for i, parent in enumerate(parents):
        turns = [f"r{axis.lower()}" for axis in draw(st.sampled_from([*ORDERS, "X", "ZY", ""]))]
        shifts = ["tx", "ty", "tz"] if i == 0 or draw(st.integers(0, 4)) == 0 else []
        end = tuple(rng.normal(size=3)) if i not in parents and draw(st.booleans()) else None
        links.append(Link(f"j{i} ö", parent, tuple(rng.normal(size=3)), (*shifts, *turns), end=end))
    # BVH nests its joints, so children come right after their parents
    order = sorted(range(count), key=lambda i: _path(parents, i))
    links = [_renumbered(links[i], order) for i in order]
    width = sum(len(link.channels) for link in links)
    values = rng.uniform(-3.0, 3.0, (draw(st.integers(1, 4)), width))
    names, positions = joint_positions(links, values)
    channels = [(link.name, channel) for link in links for channel in link.channels]
    words = {"t": "position", "r": "rotation"}
    dataset = make_dataset(
        {"coordinate_value": values, "joint_center": positions @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])},
        {
            "coordinate": [f"{name}_{channel[1].upper()}{words[channel[0]]}" for name, channel in channels],
            "coordinate_units": ["rad" if channel[0] == "r" else "m" for _, channel in channels],
            "joint": names,
        },
        rate=draw(st.sampled_from([30.0, 120.0, 119.88, 100.0 / 3.0])),
        file_units=draw(st.sampled_from(["cm", "m", "in"])),
        file_up="+Y",
        file_forward="+X",
    )
    return Recording(dataset, "made", metadata={"skeleton": plain_links(links)})


def _path(parents, i):
    return (*_path(parents, parents[i]), i) if parents[i] >= 0 else (i,)


def _renumbered(link, order):
    from dataclasses import replace

    return replace(link, parent=order.index(link.parent)) if link.parent >= 0 else link


@given(recording=skeletons())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_written_files_are_read_back(recording, tmp_path):
    write_bvh(recording, tmp_path / "x.bvh", overwrite=True)
    back = read_bvh(tmp_path / "x.bvh", units=recording.data.attrs["file_units"], up="+Y")
    np.testing.assert_allclose(
        back.data["coordinate_value"], recording.data["coordinate_value"], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(back.data["joint_center"], recording.data["joint_center"], atol=1e-9)
    for name in ("coordinate", "coordinate_units", "joint"):
        assert list(back.data[name].values) == list(recording.data[name].values)
    assert back.rate == pytest.approx(recording.rate, rel=1e-12)
    assert back.data.attrs["file_units"] == recording.data.attrs["file_units"]


@pytest.mark.parametrize(
    "text",
    [
        ARM.replace("\n{", " {"),
        ARM.replace("\n", "\r\n"),
        ARM.replace("ROOT", "Root").replace("End Site", "END SITE").replace("MOTION", "Motion"),
        ARM.replace("Frame Time: 0.0083333", "Frame Time:\t.0083333").replace("Frames: 2", "Frames:\t2"),
        ARM.encode("utf-16"),
        ARM.replace("Zposition", "zPosition"),
    ],
)
def test_spellings_mean_the_same(text, tmp_path):
    assert read(text, tmp_path).data.identical(read(ARM, tmp_path).data)


def test_repeated_names_rates_and_short_rows_are_noted(tmp_path):
    recording = read(ARM.replace("elbow", "base").replace("Frames: 2", "Frames: 9") + "1 2 3", tmp_path)
    problems = notes_of(recording, "problem")
    assert "base" in problems
    assert "states 9 frames" in problems
    assert "3 of 7 numbers" in problems
    assert list(recording.data["joint"].values) == ["base", "base_2", "base_2_end"]
    assert "rounded" in notes_of(recording, "inferred")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (ARM.replace("OFFSET 0 1 0", "OFFSET 0 1"), "line 8: OFFSET must have three numbers"),
        (ARM.replace("OFFSET 0 1 0", "OFFSET 0 inf 0"), "line 8: OFFSET must have three numbers"),
        (ARM.replace("CHANNELS 1", "CHANNELS 3"), "line 9: CHANNELS must have a number"),
        (ARM.replace("CHANNELS 1", "CHANNELS 99999999999999999999"), "line 9: CHANNELS must have a number"),
        (ARM.replace("1 Zrotation", "1 Wrotation"), "line 9: Unknown channel 'wrotation'"),
        (ARM.replace("  }\n}\nMOTION", "MOTION"), "is open"),
        (ARM.replace("}\nMOTION", "}\n}\nMOTION"), "closing brace without"),
        (ARM.replace("JOINT elbow", "MUSCLE elbow"), "line 6: Unknown word 'MUSCLE'"),
        (ARM.replace("JOINT elbow", "JOINT"), "line 6: JOINT has no name"),
        (ARM.replace("0 0 0 0 0 0 90", "0 0 0 90"), "line 19: The row has 4 numbers for 7 channels"),
        (ARM.replace("0 0 0 0 0 0 90", "0 0 0 0 0 0 ninety"), "line 19: Column 7"),
        (ARM.replace("0.0083333", "0"), "Frame Time"),
        (ARM.partition("MOTION")[0], "ends before MOTION"),
        ("HIERARCHY\nMOTION\nFrames: 0\n", "There is no joint before MOTION"),
        ("HIERARCHY\n" + "ROOT a\n{\n" + "JOINT a\n{\n" * 5000, "more than 1000 nested joints"),
        ("HIERARCHY\n" + "ROOT a\n{\nOFFSET 0 0 0\nCHANNELS 0\n}\n" * 20_000, "10000 joints"),
    ],
)
def test_damage_is_refused_with_the_location(text, part, tmp_path):
    with pytest.raises(FileFormatError) as error:
        read(text, tmp_path)
    assert part in str(error.value)


def test_many_joints_without_channels_cannot_fill_the_memory(tmp_path):
    joints = "JOINT a\n{\nOFFSET 0 0 0\nCHANNELS 0\n}\n" * 9000
    text = (
        "HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n"
        + joints
        + "}\nMOTION\nFrame Time: 1\n"
        + "1\n" * 5000
    )
    with pytest.raises(FileFormatError, match="too large"):
        read(text, tmp_path)


def test_paths_that_are_not_regular_files_are_refused(tmp_path):
    refuse_special_files(read_bvh, tmp_path, ".bvh")


def test_a_recording_without_a_skeleton_is_not_written(tmp_path):
    with pytest.raises(SettingsError, match="no skeleton"):
        write_bvh(Recording(make_dataset({"column_value": [[1.0]]}, {"column": ["a"]})), tmp_path / "x.bvh")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "joints", "frames", "rate", "stature"),
    [
        ("bvh/AV_8Walk_Meredith_HVHA_Rep1.bvh", 23, 1064, 120.0, 1.6),
        ("bvh/npybvh_example.bvh", 31, 75, 120.0, 1.5),
        ("bvh/test_freebvh.bvh", 55, 69, 30.0, 1.8),
        ("bvh/test_mocapbank.bvh", 19, 455, 30.0, 1.7),
        ("bvh/walk01.bvh", 19, 101, 24.0, 1.8),
        ("bvh/sinusoidal.bvh", 4, 120, 60.0, None),
        ("cmu/bvh_hahne2010/88_02.bvh", 31, 3329, 120.0, 1.4),
        ("cmu/bvh_hahne2010/13_11.bvh", 31, 416, 120.0, 1.6),
    ],
)
def test_real_files_have_the_known_facts(name, joints, frames, rate, stature):
    recording = read_bvh(real(name))
    assert recording.data.sizes["time"] == frames
    assert len(recording.metadata["skeleton"]) == joints
    assert recording.rate == rate
    if stature is not None:
        centers = recording.data["joint_center"].values
        heights = np.ptp(centers[..., 2], axis=1)
        assert np.percentile(heights, 95) == pytest.approx(stature, abs=0.25)
        assert abs(np.percentile(centers[..., 2].min(axis=1), 5)) < 0.2  # feet on the ground

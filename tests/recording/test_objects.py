"""Rigid objects in a recording: their motion, and that they are not the person's."""

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.export.stage_files import read_stage
from borelli.numerics.quaternions import rotate, rotation_exponential
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze
from borelli.recording.io import read_recording
from borelli.recording.marker_map import apply_marker_map, read_marker_map
from borelli.recording.objects import separate_objects
from borelli.recording.recording import make_dataset
from borelli.synthetic.recordings import synthetic_recording

BOX = {"B1": (0.15, 0.2, 0.1), "B2": (0.15, -0.2, 0.1), "B3": (-0.15, 0.2, 0.1), "B4": (-0.15, -0.2, -0.1)}
"""Markers on a box [m]."""
MAP = 'format = "borelli-marker-map"\nversion = 1\n[markers]\n' + "".join(f'{name} = "object box"\n' for name in BOX)


def carried_box(walk, noise=0.0):
    """Return the walk with a box before the chest that turns, and the position and orientation of the box."""
    data = walk.recording.data
    time = data["time"].values
    place = data["marker_position"].mean("marker").values + np.array([0.4, 0.0, 0.2])
    turn = rotation_exponential(np.stack([0.2 * np.sin(3.0 * time), 0.1 * time, np.cos(2.0 * time)], axis=1))
    points = place[:, None] + rotate(turn[:, None], np.array(list(BOX.values()))[None])
    points += noise * np.random.default_rng(0).normal(size=points.shape)
    names = [*walk.recording.markers, *BOX]
    both = np.concatenate([data["marker_position"].values, points], axis=1)
    box = make_dataset({"marker_position": both}, {"marker": names}, rate=walk.recording.rate)
    others = data.drop_dims("marker").drop_vars(["time", "axis"], errors="ignore")
    return walk.recording.with_data(others.merge(box, combine_attrs="override")), place, turn


@pytest.fixture(scope="module")
def walk():
    return synthetic_recording("walk")


def test_the_motion_of_an_object_is_that_of_its_markers(walk):
    recording, place, turn = carried_box(walk)
    points = recording.data["marker_position"].copy(deep=True)
    points.values[40:60, -1] = np.nan  # three markers suffice
    points.values[80:90, -2:] = np.nan  # two do not
    found = separate_objects(recording.with_data(recording.data.assign(marker_position=points)), {"box": list(BOX)})
    assert found.markers == walk.recording.markers
    data = found.data.sel(object="box")
    known = np.ones(found.frames, bool)
    known[80:90] = False
    assert np.array_equal(np.isfinite(data["object_marker_error"].values), known)
    # the box's own axes are those of the lab in the first frame, its origin is the mean of its markers
    offset = np.mean(list(BOX.values()), axis=0)
    origin = place + rotate(turn, offset[None])
    assert np.abs(data["object_position"].values - origin)[known].max() < 1e-12
    now = rotate(data["object_orientation"].values, rotate(turn[:1], np.array([[1.0, 2.0, 3.0]])))
    assert np.abs(now - rotate(turn, np.array([[1.0, 2.0, 3.0]])))[known].max() < 1e-12
    assert data["object_marker_error"].values[known].max() < 1e-12
    assert data["object_position"].attrs == {"units": "m", "frame": "lab: right-handed, z up"}


def test_the_error_of_an_object_is_that_of_its_markers(walk):
    """Four markers have twelve coordinates, of which the pose takes six: half of the noise remains."""
    recording, _, _ = carried_box(walk, noise=0.001)
    found = separate_objects(recording, {"box": list(BOX)})
    error = float(np.sqrt((found.data["object_marker_error"].values ** 2).mean()))
    assert error == pytest.approx(0.001 * np.sqrt(3.0 * 6.0 / 12.0), rel=0.05)
    assert found.notes[-1].code == "objects" and found.notes[-1].kind == "stated" and "no load" in found.notes[-1].text
    points = recording.data["marker_position"].copy(deep=True)
    points.values[100:, -4, 0] += 0.2
    slack = separate_objects(recording.with_data(recording.data.assign(marker_position=points)), {"box": list(BOX)})
    assert slack.notes[-1].kind == "problem" and "not rigid" in slack.notes[-1].text


def test_objects_that_show_no_rotation_are_refused(walk):
    recording, _, _ = carried_box(walk)
    with pytest.raises(SettingsError, match=r"Object 'box': It has 2 markers \(B1, B2\); its motion needs at least 3"):
        separate_objects(recording, {"box": ["B1", "B2"]})
    points = recording.data["marker_position"].copy(deep=True)
    ends = points.sel(marker="B1").values, points.sel(marker="B2").values
    points.loc[{"marker": "B3"}] = 0.3 * ends[0] + 0.7 * ends[1]
    line = recording.with_data(recording.data.assign(marker_position=points))
    with pytest.raises(SettingsError, match=r"Object 'stick': .* within 0 mm of a line, at least 10 mm"):
        separate_objects(line, {"stick": ["B1", "B2", "B3"]})
    points.loc[{"marker": "B4"}] = np.nan
    hidden = recording.with_data(recording.data.assign(marker_position=points))
    with pytest.raises(SettingsError, match="which are never visible together"):
        separate_objects(hidden, {"box": list(BOX)})


def test_a_map_states_which_markers_are_on_an_object(walk, tmp_path):
    (tmp_path / "map.toml").write_text(MAP)
    recording, _, _ = carried_box(walk)
    found = apply_marker_map(recording, read_marker_map(tmp_path / "map.toml"))
    assert found.markers == walk.recording.markers and found.data["object"].values.tolist() == ["box"]
    found.to_netcdf(tmp_path / "box.nc")
    assert read_recording(tmp_path / "box.nc").data["object_position"].equals(found.data["object_position"])
    for text in ("object", "object red box"):
        (tmp_path / "wrong.toml").write_text(MAP.replace("object box", text))
        with pytest.raises(FileFormatError, match="does not name one object"):
            read_marker_map(tmp_path / "wrong.toml")


def test_a_carried_box_is_in_the_results_and_changes_no_other(walk, tmp_path):
    recording, place, turn = carried_box(walk)
    recording.to_netcdf(tmp_path / "carry.nc")
    walk.recording.to_netcdf(tmp_path / "walk.nc")
    (tmp_path / "map.toml").write_text(MAP)
    settings = AnalysisSettings(reading={"markers": tmp_path / "map.toml"})
    (found,) = analyze([tmp_path / "carry.nc"], tmp_path / "out", settings)
    (plain,) = analyze([tmp_path / "walk.nc"], tmp_path / "plain", AnalysisSettings())
    motion = found.energy.torques.motion.data
    assert motion["object_position"].dims == ("time", "object", "axis")
    offset = np.mean(list(BOX.values()), axis=0)
    origin = (place + rotate(turn, offset[None]))[: motion.sizes["time"]]
    assert np.abs(motion["object_position"].sel(object="box").values - origin).max() < 1e-9
    assert np.array_equal(found.energy.torques.data["torque"].values, plain.energy.torques.data["torque"].values)
    again = read_stage(tmp_path / "out" / "motion.nc")
    assert again.data["object_orientation"].equals(motion["object_orientation"])

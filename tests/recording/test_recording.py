"""The recording itself: labelled data, its notes, names that stay apart, and netCDF files that give it back."""

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.recording import LAYOUT, Note, Recording, make_dataset, unique_names, split_prefix

NAMES = st.lists(st.sampled_from(["A", "A_2", "A_3", "B", "B_2", ""]), max_size=12)


def small():
    """Three markers, two plates, two channels and two events of a made-up walk."""
    rng = np.random.default_rng(1)
    data = make_dataset(
        {
            "markers": rng.normal(size=(4, 3, 3)),
            "plate_force": rng.normal(size=(8, 2, 3)),
            "analog": rng.normal(size=(8, 2)),
            "event_time": [0.03, 0.01],
            "quantities": np.zeros((4, 0, 3)),
        },
        {
            "marker": ["LASI", "RASI", "SACR"],
            "plate": ["plate 1", "plate 2"],
            "channel": ["EMG 1", "EMG 2"],
            "channel_units": ["V", "mV"],
            "event": [0, 1],
            "event_label": ["Foot Off", "Foot Strike"],
            "event_context": ["Left", "Right"],
        },
        rate=120.0,
        analog_rate=240.0,
        file_units="mm",
    )
    notes = (Note("lengths are taken as mm: the file says so", "stated"), Note("odd", "problem", "mend it"))
    return Recording(data, "walk", "walk.c3d", "C3D", {"name": "A", "mass": 70.0}, {"POINT": {"RATE": 120.0}}, notes)


def test_every_variable_has_its_dimensions_units_and_frame():
    data = small().data
    for name in ("markers", "plate_force", "analog", "event_time"):
        assert data[name].dims == LAYOUT[name].dims
        assert data[name].attrs == {"units": LAYOUT[name].units, "frame": LAYOUT[name].frame}
    assert "model_output" not in data and "quantity" not in data.coords
    assert list(data["axis"].values) == ["x", "y", "z"]


@pytest.mark.parametrize("rate", [60.0, 119.88, 1000.0 / 3.0])
def test_times_are_exact_multiples_of_the_frame_time(rate):
    data = make_dataset({"marker_position": np.zeros((1001, 1, 3))}, {"marker": ["A"]}, rate=rate)
    assert all(time == k / rate for k, time in enumerate(data["time"].values))


def test_what_there_is_is_told():
    one = small()
    assert (one.rate, one.analog_rate, one.frames) == (120.0, 240.0, 4)
    assert one.duration == pytest.approx(3 / 120.0)
    assert one.markers == ("LASI", "RASI", "SACR")
    assert one.plates == ("plate 1", "plate 2") and one.channels == ("EMG 1", "EMG 2")
    assert [(event.label, event.context) for event in one.events] == [("Foot Strike", "Right"), ("Foot Off", "Left")]


def test_the_rate_comes_from_the_times_where_none_is_stated():
    data = make_dataset({"marker_position": np.zeros((3, 1, 3))}, {"marker": ["A"], "time": [0.0, 0.02, 0.04]})
    assert Recording(data).rate == pytest.approx(50.0)
    assert np.isnan(Recording(data.isel(time=[0])).rate) and np.isnan(Recording(data).analog_rate)
    assert Recording(data).plates == () and Recording(data).events == ()


def test_markers_are_selected_in_the_order_asked_and_unknown_ones_are_refused_with_those_there_are():
    chosen = small().select_markers(["SACR", "LASI"])
    assert chosen.markers == ("SACR", "LASI")
    assert np.array_equal(chosen.data["marker_position"].values, small().data["marker_position"].values[:, [2, 0]])
    with pytest.raises(SettingsError, match=r"unknown marker 'LASS' \(did you mean 'LASI'\?\).*RASI, SACR"):
        small().select_markers(["LASS"])


def test_notes_add_up_and_have_known_kinds():
    one = small()
    changed = one.with_data(one.data * 2.0, Note("doubled", "changed"))
    assert [note.kind for note in changed.notes] == ["stated", "problem", "changed"]
    assert len(one.notes) == 2
    assert one.with_notes(Note("seen", "inferred")).notes[-1].text == "seen"
    with pytest.raises(SettingsError, match=r"unknown kind of note 'gues'.*inferred"):
        Note("text", "gues")


def test_netcdf_gives_the_recording_back(tmp_path):
    one = small()
    one.to_netcdf(tmp_path / "walk.nc")
    again = Recording.from_netcdf(tmp_path / "walk.nc")
    xarray.testing.assert_identical(one.data, again.data)
    for name in ("name", "path", "format", "subject", "metadata", "notes"):
        assert getattr(one, name) == getattr(again, name)
    assert again.data["time"].dtype == float
    assert [path.name for path in tmp_path.iterdir()] == ["walk.nc"]


def test_other_files_are_refused_as_netcdf_recordings(tmp_path):
    xarray.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="no recording of borelli"):
        Recording.from_netcdf(tmp_path / "other.nc")
    (tmp_path / "text.nc").write_text("time x y z")
    with pytest.raises(FileFormatError, match="cannot be read as netCDF"):
        Recording.from_netcdf(tmp_path / "text.nc")
    with pytest.raises(FileFormatError, match="no such file"):
        Recording.from_netcdf(tmp_path / "none.nc")
    with pytest.raises(FileFormatError, match="cannot be written"):
        small().to_netcdf(tmp_path / "nowhere" / "walk.nc")


@given(NAMES)
def test_repeated_names_are_told_apart_and_first_ones_kept(names):
    unique, repeated = unique_names(names)
    assert len(set(unique)) == len(names)
    assert set(repeated) == {name for name in names if names.count(name) > 1}
    for name in set(names):
        assert unique[names.index(name)] == name
    assert unique_names(unique) == (unique, [])


@given(st.lists(st.text("ABC", min_size=1, max_size=4), min_size=1, max_size=6), st.sampled_from(["Anna", "S1", ""]))
def test_a_prefix_is_taken_off_when_all_share_it(names, prefix):
    full = [f"{prefix}:{name}" if prefix else name for name in names]
    assert split_prefix(full) == (names, prefix)


def test_a_prefix_that_not_all_share_stays():
    names = ["A:LASI", "B:LASI"]
    assert split_prefix(names) == (names, "")
    assert split_prefix([]) == ([], "")

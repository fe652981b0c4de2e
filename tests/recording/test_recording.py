"""Recordings: labeled data, notes, unique names, summaries and netCDF files."""

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.formats.netcdf import read_netcdf
from borelli.recording.recording import LAYOUT, Note, Recording, make_dataset, split_prefix, unique_names

NAMES = st.lists(st.sampled_from(["A", "A_2", "A_3", "B", "B_2", ""]), max_size=12)


def small():
    """Return three markers, two plates, two channels and two events of a synthetic walk."""
    rng = np.random.default_rng(1)
    data = make_dataset(
        {
            "marker_position": rng.normal(size=(4, 3, 3)),
            "plate_force": rng.normal(size=(8, 2, 3)),
            "analog": rng.normal(size=(8, 2)),
            "event_time": [0.03, 0.01],
            "model_output": np.zeros((4, 0, 3)),
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
    notes = (Note("Length unit: mm.", "stated", code="length_unit"), Note("Odd.", "problem", "fix it", code="odd"))
    return Recording(data, "walk", "walk.c3d", "C3D", {"name": "A", "mass": 70.0}, {"POINT": {"RATE": 120.0}}, notes)


def test_every_variable_has_its_dimensions_units_and_frame():
    data = small().data
    for name in ("marker_position", "plate_force", "analog", "event_time"):
        assert data[name].dims == LAYOUT[name].dims
        assert data[name].attrs == {"units": LAYOUT[name].units, "frame": LAYOUT[name].frame}
    assert "model_output" not in data and "quantity" not in data.coords
    assert list(data["axis"].values) == ["x", "y", "z"]


@pytest.mark.parametrize("rate", [60.0, 119.88, 1000.0 / 3.0])
def test_times_are_exact_multiples_of_the_frame_time(rate):
    data = make_dataset({"marker_position": np.zeros((1001, 1, 3))}, {"marker": ["A"]}, rate=rate)
    assert all(time == k / rate for k, time in enumerate(data["time"].values))


def test_properties_describe_the_content():
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


def test_markers_are_selected_in_the_given_order_and_unknown_ones_are_refused():
    chosen = small().select_markers(["SACR", "LASI"])
    assert chosen.markers == ("SACR", "LASI")
    assert np.array_equal(chosen.data["marker_position"].values, small().data["marker_position"].values[:, [2, 0]])
    with pytest.raises(SettingsError, match=r"Unknown marker 'LASS' \(did you mean 'LASI'\?\).*RASI, SACR"):
        small().select_markers(["LASS"])


def test_notes_add_up_and_have_known_kinds():
    one = small()
    changed = one.with_data(one.data * 2.0, Note("Doubled.", "changed", code="scaled"))
    assert [note.kind for note in changed.notes] == ["stated", "problem", "changed"]
    assert len(one.notes) == 2
    assert one.with_notes(Note("Seen.", "inferred", code="test")).notes[-1].text == "Seen."
    with pytest.raises(SettingsError, match=r"Unknown kind of note 'gues'.*inferred"):
        Note("text", "gues", code="test")


def test_netcdf_gives_the_recording_back(tmp_path):
    one = small()
    one.to_netcdf(tmp_path / "walk.nc")
    again = read_netcdf(tmp_path / "walk.nc")
    xarray.testing.assert_identical(one.data, again.data)
    for name in ("name", "path", "format", "subject", "metadata", "notes"):
        assert getattr(one, name) == getattr(again, name)
    assert again.data["time"].dtype == float
    assert [path.name for path in tmp_path.iterdir()] == ["walk.nc"]


def test_other_files_are_refused_as_netcdf_recordings(tmp_path):
    xarray.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="does not contain a borelli recording"):
        read_netcdf(tmp_path / "other.nc")
    (tmp_path / "text.nc").write_text("time x y z")
    with pytest.raises(FileFormatError, match="not in netCDF 4 format"):
        read_netcdf(tmp_path / "text.nc")
    with pytest.raises(FileFormatError, match="does not exist"):
        read_netcdf(tmp_path / "none.nc")
    with pytest.raises(SettingsError, match="does not exist"):
        small().to_netcdf(tmp_path / "nowhere" / "walk.nc")


@given(NAMES)
def test_repeated_names_are_numbered_and_first_ones_kept(names):
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


def test_summaries_are_short_and_list_the_content():
    one = small()
    text = repr(one)
    assert len(text) < 2000
    for words in ("'walk'", "4 at 120 Hz", "3: LASI, RASI, SACR", "2: plate 1, plate 2", "Foot Strike Right"):
        assert words in text
    wide = make_dataset(
        {"marker_position": np.zeros((2, 500, 3))}, {"marker": [f"{'<M>' * 40}{i}" for i in range(500)]}
    )
    assert len(repr(Recording(wide, "n" * 5000))) < 2000
    assert len(Recording(wide)._repr_html_()) < 12_000
    assert "<M>" not in Recording(wide)._repr_html_()
    assert repr(Recording(make_dataset({}, {}))) == "<borelli.Recording ''>"


def test_html_summary_plots_marker_heights():
    html = small()._repr_html_()
    assert html.startswith("<table>") and "<svg" in html and "Marker height [m]" in html
    assert len(html) < 10_000

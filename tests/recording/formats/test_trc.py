"""TRC: round trips, variants with the same meaning, exact recovery of rounded times."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from borelli.errors import FileFormatError, SettingsError
from borelli.files import number_rows as texts
from borelli.recording.formats.trc import read_trc, write_trc
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording, make_dataset

from ..text_recordings import marker_recordings, notes_of, refuse_special_files
from ..walker import real

SETTINGS = "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames"
PLAIN = f"""PathFileType\t4\t(X/Y/Z)\tplain.trc
{SETTINGS}
100.00\t100.00\t3\t2\tmm\t100.00\t1\t3
Frame#\tTime\tRASI\t\t\tLHEE\t\t
\t\tX1\tY1\tZ1\tX2\tY2\tZ2

1\t0.000\t1.0\t2.0\t3.0\t4.5\t5.5\t6.5
2\t0.010\t\t\t\t4.6\t5.6\t6.6
3\t0.020\t1.2\t2.2\t3.2\t4.7\t5.7\t6.7
"""
EXPECTED = 1e-3 * np.array(  # y up in the file, so its x, -z, y
    [[[1.0, -3.0, 2.0], [4.5, -6.5, 5.5]], [[np.nan] * 3, [4.6, -6.6, 5.6]], [[1.2, -3.2, 2.2], [4.7, -6.7, 5.7]]]
)
VARIANTS = {
    "tabs at the ends": PLAIN.replace("\n", "\t\t\n"),
    "no blank line": PLAIN.replace("Z2\n\n", "Z2\n"),
    "Windows lines": PLAIN.replace("\n", "\r\n"),
    "old Macintosh lines": PLAIN.replace("\n", "\r"),
    "names two tabs apart": PLAIN.replace("Time\tRASI\t\t\tLHEE\t\t", "Time\t\tRASI\t\tLHEE"),
    "each name three times": PLAIN.replace("RASI\t\t\tLHEE\t\t", "RASI\tRASI\tRASI\tLHEE\tLHEE\tLHEE"),
    "no axes line": PLAIN.replace("\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n", ""),
    "settings padded": PLAIN.replace("100.00\t100.00\t3\t2\tmm", "  100.00\t\t100.00\t\t 3\t\t 2\t\t mm"),
    "semicolons": PLAIN.replace("\t", ";").replace("DataRate;", "DataRate\t"),
    "decimal commas": PLAIN.replace(".5", ",5").replace(".6", ",6"),
    "holes in words": PLAIN.replace("0.010\t\t\t\t", "0.010\tNaN\t-1.#IND\tnan\t"),
    "hole in one axis": PLAIN.replace("0.010\t\t\t\t", "0.010\t7\t\t9\t"),
    "no frame column": PLAIN.replace("Frame#\t", "")
    .replace("\n1\t", "\n")
    .replace("\n2\t", "\n")
    .replace("\n3\t", "\n"),
    "no time column": PLAIN.replace("\tTime", "").replace("\t0.000", "").replace("\t0.010", "").replace("\t0.020", ""),
    "no times": PLAIN.replace("\t0.000", "\t").replace("\t0.010", "\t").replace("\t0.020", "\t"),
    "units in words": PLAIN.replace("\tmm\t", "\tMillimetres\t"),
}
PROBLEMS = {  # words of the note, and the file
    "states 9 markers": PLAIN.replace("3\t2\tmm", "3\t9\tmm"),
    "states 77 frames": PLAIN.replace("3\t2\tmm", "77\t2\tmm"),
    "header lines": PLAIN.replace("2\t0.010", PLAIN.partition("1\t0.000")[0] + "2\t0.010"),
    "The header states 50 Hz": PLAIN.replace("100.00\t100.00", "50\t50"),
    "infinite": PLAIN.replace("0.010\t\t\t\t", "0.010\tinf\t1\t1e999\t"),
}


def read(text, folder, **options):
    path = folder / "made.trc"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trc(path, up="+Y", **options)


def test_markers_of_other_formats_are_written_with_y_up_as_opensim_wants_them(tmp_path):
    """One marker shows no axes, so the reader uses the convention of the format, which must be the one written."""
    data = make_dataset(
        {"marker_position": np.array([[[1.0, 2.0, 3.0]]])}, {"marker": ["A"]}, rate=100.0, file_units="mm", file_up="+Z"
    )
    write_trc(Recording(data, format="C3D"), tmp_path / "x.trc", overwrite=True)
    assert "1000\t3000\t-2000" in (tmp_path / "x.trc").read_text()
    assert np.allclose(read_trc(tmp_path / "x.trc").data["marker_position"], data["marker_position"])


@given(recording=marker_recordings())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_written_files_are_read_back(recording, tmp_path):
    attrs = recording.data.attrs
    write_trc(replace(recording, format="TRC"), tmp_path / "x.trc", overwrite=True)
    back = read_trc(tmp_path / "x.trc", up=attrs["file_up"])
    np.testing.assert_allclose(back.data["marker_position"], recording.data["marker_position"], rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(back.data["time"], recording.data["time"])
    prefix = back.subject.get("prefix", "")
    assert [f"{prefix}:{name}" if prefix else name for name in back.markers] == list(recording.markers)
    assert back.rate == recording.rate
    assert {key: back.data.attrs[key] for key in ("file_units", "file_up")} == {
        key: attrs[key] for key in ("file_units", "file_up")
    }
    assert not notes_of(back, "changed")


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_mean_the_same(variant, tmp_path):
    recording = read(VARIANTS[variant], tmp_path)
    assert recording.markers == ("RASI", "LHEE")
    np.testing.assert_allclose(recording.data["marker_position"], EXPECTED, rtol=1e-14)
    np.testing.assert_array_equal(recording.data["time"], [0.0, 0.01, 0.02])
    assert recording.rate == 100.0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems_are_repaired_and_noted(problem, tmp_path):
    recording = read(PROBLEMS[problem], tmp_path)
    np.testing.assert_allclose(recording.data["marker_position"], EXPECTED, rtol=1e-14)
    np.testing.assert_array_equal(recording.data["time"], [0.0, 0.01, 0.02])
    assert problem in notes_of(recording, "problem")


def test_columns_without_names_are_kept_with_numbers(tmp_path):
    wider = PLAIN.replace("6.5\n", "6.5\t7\t8\t9\n")
    recording = read(wider, tmp_path)
    assert recording.markers == ("RASI", "LHEE", "*3")
    np.testing.assert_allclose(recording.data["marker_position"][0, 2], [7e-3, -9e-3, 8e-3])
    assert np.isnan(recording.data["marker_position"][1:, 2]).all()
    nameless = read(PLAIN.replace("RASI", ""), tmp_path)
    assert nameless.markers == ("*1", "LHEE")


def test_short_rows_lose_only_their_missing_values(tmp_path):
    recording = read(PLAIN.replace("4.7\t5.7\t6.7", "4.7\t5.7"), tmp_path)
    assert np.isnan(recording.data["marker_position"][2, 1]).all()
    np.testing.assert_allclose(recording.data["marker_position"][2, 0], EXPECTED[2, 0])


def test_prefix_repeated_names_and_zeros_are_noted(tmp_path):
    text = PLAIN.replace("RASI", "Bob:A").replace("LHEE", "Bob:A").replace("4.6\t5.6\t6.6", "0\t0\t0")
    recording = read(text, tmp_path)
    assert recording.markers == ("A", "A_2")
    assert recording.subject["prefix"] == "Bob"
    problems = notes_of(recording, "problem")
    assert "Repeated names" in problems
    assert "1 positions at exactly the origin are read as missing" in notes_of(recording, "changed")
    assert np.isnan(recording.data["marker_position"].values).any(axis=2).sum() == 2  # and an empty cell


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "latin-1"])
def test_any_encoding_is_read(encoding, tmp_path):
    recording = read(PLAIN.replace("RASI", "Schädel").encode(encoding), tmp_path)
    assert recording.markers == ("Schädel", "LHEE")
    np.testing.assert_allclose(recording.data["marker_position"], EXPECTED)


def timed(stamps, rate, folder):
    rows = "".join(f"{k + 1}\t{stamp}\t1\t2\t3\n" for k, stamp in enumerate(stamps))
    text = f"PathFileType\t4\n{SETTINGS}\n{rate}\t{rate}\t{len(stamps)}\t1\tmm\t{rate}\t1\t1\nFrame#\tTime\tA\n{rows}"
    return read(text, folder)


@pytest.mark.parametrize("rate", [60, 120, 150, 240, 119.88])
@pytest.mark.parametrize("first", [0, 24])
def test_rounded_times_come_back_to_the_last_bit(rate, first, tmp_path):
    exact = np.arange(first, first + 300) / rate
    recording = timed([f"{t:.3f}" for t in exact], rate, tmp_path)
    np.testing.assert_allclose(recording.data["time"], exact, rtol=0, atol=1e-15)
    assert "time_stamps_repaired" in [note.code for note in recording.notes]
    # the purpose: the second difference of a quadratic in the frame number
    path = recording.data["time"].values ** 2
    assert np.ptp(np.diff(path, 2)) < 1e-12


def test_a_dropped_frame_is_not_smoothed_over(tmp_path):
    stamps = [k / 100 for k in range(40) if k != 20]
    recording = timed([f"{t:.2f}" for t in stamps], 100, tmp_path)
    np.testing.assert_array_equal(recording.data["time"], np.round(stamps, 2))
    assert "uneven_time_steps" in [note.code for note in recording.notes]


def test_the_time_column_wins_over_a_wrong_rate(tmp_path):
    recording = timed([f"{k / 25:.3f}" for k in range(50)], 250, tmp_path)
    assert recording.rate == 25.0
    assert "250 Hz" in notes_of(recording, "problem")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (PLAIN.replace("4.6", "four"), "line 8: Column 6: Expected a number, got 'four'"),
        (PLAIN.replace("4.6", "4_6"), "line 8: Column 6: Expected a number, got '4_6'"),
        (PLAIN.partition("Frame#")[0], "no line `Frame#"),
        (PLAIN.partition("1\t0.000")[0], "no frame"),
        (PLAIN.replace("Frame#\tTime", "1\t2"), "line 4"),
    ],
)
def test_damage_is_refused_with_the_location(text, part, tmp_path):
    with pytest.raises(FileFormatError) as error:
        read(text, tmp_path)
    assert part in str(error.value)


def test_hostile_shapes_are_refused_quickly(tmp_path, monkeypatch):
    wide = PLAIN.replace("LHEE\t\t", "\t".join(f"M{i}" for i in range(40_000))).replace(
        "6.7\n", "6.7\n" + "4\t0\n" * 20_000
    )
    with pytest.raises(FileFormatError, match="cut short"):
        read(wide.replace("6.5\n", "6.5" + "\t1" * 50_000 + "\n"), tmp_path)
    with pytest.raises(FileFormatError, match=r"line 7: The row has 100008 cells \(maximum 60000\)"):
        read(wide.replace("6.5\n", "6.5" + "\t1" * 100_000 + "\n"), tmp_path)
    monkeypatch.setattr(texts, "MAX_LINE", 1000)
    with pytest.raises(FileFormatError, match="line 7: The line has"):
        read(PLAIN.replace("6.5\n", "6.5" + "\t1" * 1000 + "\n"), tmp_path)


def test_paths_that_are_not_regular_files_are_refused(tmp_path):
    refuse_special_files(read_trc, tmp_path, ".trc")


def test_a_recording_without_markers_is_not_written(tmp_path):
    empty = Recording(make_dataset({"event_time": [1.0]}, {"event_label": ["a"], "event_context": ["Left"]}))
    with pytest.raises(SettingsError, match="no markers"):
        write_trc(empty, tmp_path / "x.trc")
    assert not list(tmp_path.iterdir())


FACTS = [  # markers, frames, rate [Hz], units, missing samples (README of the data)
    ("opensim/subject01_walk/subject01_walk1.trc", 41, 151, 60.0, "mm", 0),
    ("opensim/subject01_walk/subject01_static.trc", 49, 300, 60.0, "mm", 0),
    ("opensim/hamner2010_running/subject02_running.trc", 41, 600, 60.0, "mm", 600),  # one marker at the origin
    ("opensim/hamner2010_running/subject02_static.trc", 49, 300, 60.0, "mm", 0),
    ("opensim/rajagopal2015_run_bmclab/motion_capture_run.trc", 78, 123, 150.0, "mm", 2460),
    ("opensim/rajagopal2016/walk/motion_capture_walk.trc", 41, 238, 100.0, "mm", 0),
    ("opensim/rajagopal2016/walk/static_walk_1.trc", 64, 287, 100.0, "mm", 0),
    ("opensim/opencap_subject4/walking1.trc", 51, 131, 100.0, "m", 125),
    ("opensim/opencap_subject4/DJ1.trc", 51, 269, 100.0, "m", 4),
    ("opensim/arm26/arm26_elbow_flex.trc", 3, 121, 120.0, "mm", 0),
    ("c3d/opensim_walking2/reference/std_walking2_markers.trc", 44, 126, None, "mm", 2809),
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "markers", "frames", "rate", "units", "missing"), FACTS)
def test_real_files_have_the_known_facts(name, markers, frames, rate, units, missing):
    recording = read_trc(real(name))
    data = recording.data
    assert data["marker_position"].shape == (frames, markers, 3)
    assert np.isnan(data["marker_position"]).any(axis=2).sum() == missing
    assert data.attrs["file_units"] == units
    if rate is not None:
        assert recording.rate == rate
        np.testing.assert_array_equal(data["time"], np.arange(frames) / rate)
    assert 0.5 < np.nanpercentile(data["marker_position"][..., 2], 90) < 2.0 or "arm26" in name


@pytest.mark.data
def test_the_same_trial_is_the_same_in_trc_and_c3d():
    trc = read_recording(real("c3d/motionanalysis_gait/reference/Gait.trc"))
    c3d = read_recording(real("c3d/motionanalysis_gait/Gait.c3d"))
    named = [name for name in trc.markers if not name.startswith("*")]
    assert len(named) == 33
    assert set(named) <= set(c3d.markers)
    apart = trc.data["marker_position"].sel(marker=named).values - c3d.data["marker_position"].sel(marker=named).values
    # one of the two files was smoothed before it was written
    assert np.nanmedian(np.linalg.norm(apart, axis=2)) < 1e-3
    assert np.nanmax(np.abs(apart)) < 1e-2

"""C3D: all encodings, round trips, unusual files, and damaged files refused in one sentence."""

import os
import stat
import time
import tracemalloc

import numpy as np
import pytest
import xarray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.signal import butter, filtfilt

from borelli.errors import BorelliError, FileFormatError, SettingsError
from borelli.recording.formats.c3d.parameters import floats
from borelli.recording.formats.c3d.reader import looks_like_c3d, read_c3d
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.recording import Note, Recording, make_dataset

from ..c3d_files import c3d_bytes, float_bytes
from ..walker import real

SINGLE = 2.0**-23
"""Relative step of the format's 32-bit reals."""
ENCODINGS = [(processor, kind) for processor in ("Intel", "DEC", "SGI") for kind in (True, False)]
KINDS = {"angle": "deg", "force": "N", "moment": "N mm", "power": "W", "scalar": "mm"}


def read_bytes(raw, folder, **options):
    path = folder / "made.c3d"
    path.write_bytes(raw)
    return read_c3d(path, **options)


def steps(seed=0, frames=6, points=4):
    """Positions in mm that are multiples of 0.5, which every encoding represents exactly; some missing."""
    rng = np.random.default_rng(seed)
    markers = rng.integers(-2000, 2000, (frames, points, 3)) * 0.5
    markers[rng.random((frames, points)) < 0.2] = np.nan
    return markers


def problems(one):
    return [note.text for note in one.notes if note.kind == "problem"]


@pytest.mark.parametrize(("processor", "kind"), ENCODINGS)
def test_every_encoding_reads_the_same_numbers(tmp_path, processor, kind):
    markers = steps()
    analog = np.random.default_rng(1).integers(-500, 500, (6, 5, 3)).astype(float)
    groups = {
        "POINT": {"LABELS": ["A", "B", "C", "D"], "Y_SCREEN": "+Z"},
        "ANALOG": {"LABELS": ["X", "Y", "Z"], "SCALE": np.array([2.0, -0.5, 1.0]), "GEN_SCALE": 0.25},
    }
    groups["ANALOG"]["OFFSET"] = np.array([10, -20, 0])
    raw = c3d_bytes(markers, groups, processor=processor, real=kind, scale=0.5, rate=50.0, first=7, analog=analog)
    one = read_bytes(raw, tmp_path)
    assert np.allclose(one.data["marker_position"].values, 1e-3 * markers, rtol=1e-15, atol=0.0, equal_nan=True)
    assert np.allclose(one.data["analog"].values, ((analog - [10, -20, 0]) * [0.5, -0.125, 0.25]).reshape(-1, 3))
    seen = ~np.isnan(markers[..., 0])
    assert np.allclose(one.data["marker_residual"].values[seen], 5 * 0.5e-3)  # the low byte of the fourth word, 0x0305
    assert np.isnan(one.data["marker_residual"].values[~seen]).all()
    assert (one.rate, one.analog_rate, one.markers) == (50.0, 250.0, ("A", "B", "C", "D"))
    assert one.data.attrs["encoding"] == f"{processor} {'real' if kind else 'integer'}"
    assert one.data.attrs["first_frame"] == 7
    assert one.data["marker_position"].dtype == one.data["analog"].dtype == np.float64


@given(st.lists(st.floats(width=32, min_value=-(2.0**120), max_value=2.0**120), min_size=1, max_size=8))
def test_numbers_of_dec_come_back(values):
    wanted = np.array(values, np.float32)
    wanted[np.abs(wanted) < 2.0**-120] = 0.0
    raw = b"".join(float_bytes(float(value), "DEC") for value in wanted)
    assert np.array_equal(floats(raw, "DEC"), wanted)


def test_unsigned_analog_samples_are_not_taken_for_negative_ones(tmp_path):
    analog = np.array([[[40000.0], [100.0]]])
    groups = {"ANALOG": {"FORMAT": "UNSIGNED", "OFFSET": np.array([32768]), "LABELS": ["A"]}}
    one = read_bytes(c3d_bytes(steps(frames=1), groups, real=False, scale=0.5, analog=analog), tmp_path)
    assert one.data["analog"].values.ravel().tolist() == [7232.0, -32668.0]


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize("stated", ["UNSIGNED", None])
def test_unsigned_offsets_are_read_in_real_files_and_without_a_statement(stated, real, tmp_path):
    """A channel of a 16-bit converter rests at 32,768; as a signed number its offset is -32,768."""
    signal = np.array([0.0, 250.0, -120.0, 40.0])
    raw = 32768.0 + np.stack([signal, -signal], axis=1)[None]
    groups = {"ANALOG": {"OFFSET": np.array([-32768, -32768]), "SCALE": np.array([0.5, 1.0]), "LABELS": ["A", "B"]}}
    groups["ANALOG"] |= {} if stated is None else {"FORMAT": stated}
    one = read_bytes(c3d_bytes(steps(frames=1), groups, real=real, scale=0.5, analog=raw), tmp_path)
    assert np.allclose(one.data["analog"].values, np.stack([0.5 * signal, -signal], axis=1))
    assert any(note.code == "analog_offset" for note in one.notes) == (stated is None)


@pytest.mark.parametrize("real", [True, False])
def test_signed_offsets_stay_signed(real, tmp_path):
    raw = np.array([[[-900.0, 3.0], [-1010.0, -20.0], [-990.0, 40.0]]])
    groups = {"ANALOG": {"OFFSET": np.array([-1000, -5]), "LABELS": ["A", "B"]}}
    one = read_bytes(c3d_bytes(steps(frames=1), groups, real=real, scale=0.5, analog=raw), tmp_path)
    assert np.allclose(one.data["analog"].values, raw[0] + [1000.0, 5.0])
    assert not any(note.code == "analog_offset" for note in one.notes)


def test_a_point_at_exactly_the_origin_is_missing_but_a_zero_output_is_not(tmp_path):
    markers = steps()
    markers[0, 1] = 0.0
    groups = {"POINT": {"LABELS": ["LASI", "RASI", "LHEE", "LAnkleAngles"], "ANGLES": ["LAnkleAngles"]}}
    markers[:, 3] = 0.0
    one = read_bytes(c3d_bytes(markers, groups), tmp_path)
    missing = np.isnan(one.data["marker_position"].values).any(axis=2)
    assert missing[0, one.markers.index("RASI")]
    assert np.isfinite(one.data["model_output"].values).all()
    (note,) = [note for note in one.notes if note.code == "zero_positions"]
    assert "RASI" in note.text and note.kind == "changed"


@st.composite
def recordings(draw):
    """Recordings with gaps, residuals, quantities, channels, plates and events, in various units and axes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    frames, samples = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    counts = {name: draw(st.integers(0, 4)) for name in ("marker", "quantity", "channel", "plate", "event")}
    counts["marker"] = max(counts["marker"], 1)
    rate = draw(st.sampled_from([50.0, 100.0, 119.88, 250.0]))
    markers = rng.normal(size=(frames, counts["marker"], 3))
    markers[rng.random(markers.shape[:2]) < 0.2] = np.nan
    residual = rng.integers(0, 256, markers.shape[:2]) * 1e-5
    residual[np.isnan(markers[..., 0])] = np.nan
    residual[0, 0] = 255e-5 if np.isfinite(markers[0, 0, 0]) else np.nan
    kinds = [draw(st.sampled_from(sorted(KINDS))) for _ in range(counts["quantity"])]
    plates = _plates(rng, samples * frames, counts["plate"])
    variables = {
        "marker_position": markers,
        "marker_residual": residual,
        "model_output": rng.normal(size=(frames, counts["quantity"], 3)),
        "analog": rng.normal(size=(samples * frames, counts["channel"])),
        "event_time": np.sort(rng.uniform(0, frames / rate, counts["event"])),
    }
    coordinates = {name: [f"{name}{i}" for i in range(n)] for name, n in counts.items() if name != "plate"}
    coordinates |= {"plate": [f"plate {i + 1}" for i in range(counts["plate"])], "event": np.arange(counts["event"])}
    coordinates |= {"quantity_kind": kinds, "quantity_units": [KINDS[kind] for kind in kinds]}
    coordinates |= {"channel_units": ["V"] * counts["channel"], "channel_kind": ["other"] * counts["channel"]}
    coordinates |= {"event_label": ["Foot Strike"] * counts["event"], "event_context": ["Left"] * counts["event"]}
    up = draw(st.sampled_from(["+Z", "+Y", "-Y", "+X"]))
    units = draw(st.sampled_from(["mm", "m", "cm", "in"]))
    attributes = {"file_units": units, "file_up": up, "file_forward": "", "first_frame": draw(st.integers(1, 500))}
    data = make_dataset(variables | plates, coordinates, rate=rate, analog_rate=samples * rate, **attributes)
    prefix = draw(st.sampled_from([{}, {"prefix": "Anna"}]))
    return Recording(data, "made", None, "C3D", {"name": "Anna", "mass": 61.0, "height": 1.71} | prefix)


def _plates(rng, samples, count):
    """Return loads on plates of half a meter, by names of `LAYOUT`."""
    if not count:
        return {}
    corners = np.array([[0.25, 0.25, 0], [0.25, -0.25, 0], [-0.25, -0.25, 0], [-0.25, 0.25, 0]])
    corners = corners + rng.normal(size=(count, 1, 3)) - np.array([0.0, 0.0, 9.0])  # below every marker
    center = corners.mean(axis=1) + rng.uniform(-0.2, 0.2, (samples, count, 3)) * (1, 1, 0)
    force = rng.uniform((-50, -50, 150), (50, 50, 900), (samples, count, 3))
    moment = rng.uniform(-5, 5, (samples, count, 3)) * (0, 0, 1)
    names = ("plate_force", "plate_center_of_pressure", "plate_free_moment", "plate_corners")
    return dict(zip(names, (force, center, moment, corners), strict=True))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=recordings())
def test_written_files_are_read_again(tmp_path, one):
    path = tmp_path / "made.c3d"
    write_c3d(one, path, overwrite=True)
    again = read_c3d(path)
    assert [file.name for file in tmp_path.iterdir()] == ["made.c3d"]
    for name, variable in one.data.data_vars.items():
        found = again.data[name].sel(channel=list(one.channels)) if name == "analog" else again.data[name]
        wanted, got = variable.values, found.values
        size = np.nanmax(np.abs(wanted), initial=1.0)
        scale = {"event_time": 100.0, "plate_free_moment": 2000.0, "plate_center_of_pressure": 10.0}.get(name, 4.0)
        if name == "marker_residual":
            size, scale = 1e-5 / SINGLE, 0.5  # half a step of its byte
        assert got.shape == wanted.shape, name
        assert np.allclose(got, wanted, rtol=0.0, atol=scale * SINGLE * size, equal_nan=True), name
    for name in ("marker", "quantity", "quantity_kind", "quantity_units", "plate", "event_label", "event_context"):
        assert (name in one.data.coords) == (name in again.data.coords)
        if name in one.data.coords:
            assert one.data[name].values.tolist() == again.data[name].values.tolist()
    assert set(one.channels) <= set(again.channels)
    for name in ("file_units", "file_up", "first_frame"):
        assert again.data.attrs[name] == one.data.attrs[name]
    assert again.rate == pytest.approx(one.rate) and again.subject == pytest.approx(one.subject)
    assert not problems(again) or all(
        note.code in ("length_unit_conflict", "up_axis_conflict", "up_axis")
        for note in again.notes
        if note.kind == "problem"
    )


def test_writing_twice_changes_nothing(tmp_path):
    """Reading and writing again gives the same bytes: what was read is all that was written."""
    one = next(iter_examples())
    write_c3d(one, tmp_path / "first.c3d")
    write_c3d(read_c3d(tmp_path / "first.c3d"), tmp_path / "second.c3d")
    write_c3d(read_c3d(tmp_path / "second.c3d"), tmp_path / "third.c3d")
    assert (tmp_path / "second.c3d").read_bytes() == (tmp_path / "third.c3d").read_bytes()


def iter_examples():
    rng = np.random.default_rng(8)
    data = make_dataset(
        {"marker_position": rng.normal(size=(5, 2, 3)), **_plates(rng, 10, 2)},
        {"marker": ["A", "B"], "plate": ["plate 1", "plate 2"]},
        rate=100.0,
        analog_rate=200.0,
    )
    yield Recording(data, "made", None, "MOT")


def test_plates_that_were_changed_are_written_as_changed(tmp_path):
    write_c3d(next(iter_examples()), tmp_path / "first.c3d")
    one = read_c3d(tmp_path / "first.c3d")
    doubled = one.with_data(
        one.data.assign(plate_force=2.0 * one.data["plate_force"]), Note("Doubled.", "changed", code="scaled")
    )
    write_c3d(doubled, tmp_path / "second.c3d")
    again = read_c3d(tmp_path / "second.c3d")
    assert np.allclose(again.data["plate_force"], 2.0 * one.data["plate_force"], rtol=1e-5)
    assert np.allclose(again.data["plate_center_of_pressure"], one.data["plate_center_of_pressure"], atol=1e-5)


def test_plates_without_corners_are_put_where_their_load_is(tmp_path):
    """As those of a .mot file, wherever in the lab they are."""
    rng = np.random.default_rng(4)
    loads = _plates(rng, 40, 1)
    del loads["plate_corners"]
    loads["plate_center_of_pressure"] = loads["plate_center_of_pressure"] + np.array([30.0, -20.0, 0.0])
    data = make_dataset(loads, {"plate": ["left"]}, analog_rate=100.0)
    write_c3d(Recording(data, "grf", None, "MOT"), tmp_path / "plates.c3d")
    again = read_c3d(tmp_path / "plates.c3d").data
    assert again.sizes["plate"] == 1 and "marker_position" not in again
    assert np.allclose(again["plate_force"], data["plate_force"], rtol=1e-5)
    assert np.allclose(again["plate_center_of_pressure"], data["plate_center_of_pressure"], atol=1e-4)
    assert np.allclose(again["plate_free_moment"], data["plate_free_moment"], atol=1e-2)


def test_a_cropped_recording_keeps_its_events_and_frame_numbers(tmp_path):
    variables = {"marker_position": np.random.default_rng(0).normal(size=(50, 2, 3)), "event_time": [0.3]}
    labels = {"marker": ["A", "B"], "event": [0], "event_label": ["Foot Strike"], "event_context": ["Left"]}
    one = Recording(make_dataset(variables, labels, rate=100.0, first_frame=11))
    write_c3d(one.with_data(one.data.isel(time=slice(20, 50))), tmp_path / "part.c3d")
    again = read_c3d(tmp_path / "part.c3d")
    assert again.frames == 30 and again.data.attrs["first_frame"] == 31
    assert again.events[0].time == pytest.approx(0.1, abs=1e-5)


def three_frames(start, count):
    """A recording of 0.03 s whose channel counts its samples, which begin at another time [s]."""
    arrays = {"marker_position": np.zeros((3, 1, 3)), "analog": np.arange(float(count))[:, None]}
    labels = {"marker": ["A"], "channel": ["E"], "analog_time": start + np.arange(count) / 1000.0}
    return Recording(make_dataset(arrays, labels, rate=100.0, analog_rate=1000.0))


def test_analog_samples_are_written_with_the_frames_they_belong_to(tmp_path):
    for start, count, first, last in ((-0.02, 70, 20, 49), (0.0, 27, 0, 26)):
        write_c3d(three_frames(start, count), tmp_path / "a.c3d", overwrite=True)
        analog = read_c3d(tmp_path / "a.c3d").data["analog"].values[:, 0]
        assert (len(analog), analog[0], analog[-1]) == (30, first, last)


def test_recordings_that_do_not_fit_the_format_are_refused(tmp_path):
    angles = make_dataset({"coordinate_value": np.zeros((3, 1))}, {"coordinate": ["q"]}, rate=1.0)
    with pytest.raises(SettingsError, match="nothing to write"):
        write_c3d(Recording(angles), tmp_path / "a")
    arrays = {"marker_position": np.zeros((3, 1, 3)), "analog": np.zeros((7, 1))}
    data = make_dataset(arrays, {"marker": ["A"], "channel": ["E"]}, rate=100.0, analog_rate=250.0)
    with pytest.raises(SettingsError, match="250 Hz is not a multiple of 100 Hz"):
        write_c3d(Recording(data), tmp_path / "a")
    for start, count in ((-1.0, 1030), (0.5, 30), (0.0, 1030), (0.0, 15)):  # of three frames, which want 30 samples
        with pytest.raises(SettingsError, match="Crop first"):
            write_c3d(three_frames(start, count), tmp_path / "a")
    with pytest.raises(SettingsError, match="does not exist"):
        write_c3d(next(iter_examples()), tmp_path / "nowhere" / "a.c3d")
    assert not list(tmp_path.iterdir())


def test_more_than_65535_frames(tmp_path):
    markers = np.random.default_rng(0).normal(size=(70_000, 1, 3))
    data = make_dataset({"marker_position": markers}, {"marker": ["A"]}, rate=100.0)
    write_c3d(Recording(data), tmp_path / "long.c3d")
    one = read_c3d(tmp_path / "long.c3d")
    assert one.frames == 70_000 and not problems(one)
    assert np.allclose(one.data["marker_position"], data["marker_position"], atol=1e-6)
    raw = (tmp_path / "long.c3d").read_bytes()
    raw = raw.replace(b"ACTUAL", b"FACTUA")
    assert read_bytes(raw, tmp_path).frames == 70_000
    inferred = read_bytes(raw.replace(b"LONG_F", b"GONE_F"), tmp_path)
    assert 70_000 <= inferred.frames < 70_000 + 512 // 16  # padding of the last block looks like frames
    assert any(note.code == "frame_count" for note in inferred.notes)


def test_more_than_255_labels_and_events(tmp_path):
    names = [f"marker with a long name {i}" for i in range(600)]
    variables = {
        "marker_position": np.random.default_rng(0).normal(size=(4, 600, 3)),
        "event_time": np.arange(300) * 1e-4,
    }
    labels = {"marker": names, "event": np.arange(300), "event_label": [f"e{i}" for i in range(300)]}
    labels["event_context"] = ["General"] * 300
    write_c3d(Recording(make_dataset(variables, labels, rate=100.0)), tmp_path / "wide.c3d")
    one = read_c3d(tmp_path / "wide.c3d")
    assert one.markers == tuple(names)
    assert {event.label for event in one.events} == set(labels["event_label"])
    assert "LABELS3" in one.metadata["POINT"]


def test_negative_times_are_refused(tmp_path):
    """Frame numbers are unsigned: a file that started at frame -50 would be read at other times, or not at all."""
    data = make_dataset({"marker_position": np.zeros((5, 1, 3))}, {"marker": ["A"]}, rate=100.0)
    early = data.assign_coords(time=data["time"].values - 0.5)
    with pytest.raises(SettingsError, match=r"starts at -0.5 s.*--start 0"):
        write_c3d(Recording(early, "early"), tmp_path / "early.c3d")
    assert not (tmp_path / "early.c3d").exists()


@pytest.mark.parametrize(
    ("labels", "descriptions", "names"),
    [
        (["RKNE", "RKNE", "THEA"], ["R.Knee", "R.Knee.Medial", "Top.Head"], ("R.Knee", "R.Knee.Medial", "Top.Head")),
        (["RASI", "LASI", "SACR"], ["Right ASIS", "Left ASIS", "Sacrum"], ("RASI", "LASI", "SACR")),
        (["PT00", "PT01", "PT02"], ["TOP1", "TOP2", "BOT1"], ("PT00", "PT01", "PT02")),
        (["RKNE", "RKNE", "RKNE"], ["", "", ""], ("RKNE", "RKNE_2", "RKNE_3")),
        (["S:LASI", "S:RASI", "*17"], None, ("LASI", "RASI", "*17")),
        (["A:LASI", "B:LASI", "B:RASI"], None, ("A:LASI", "B:LASI", "B:RASI")),
        (["LASI", "U3", ""], None, ("LASI", "*3", "*3_2")),
        (["LASI"], None, ("LASI", "*2", "*3")),
        (["A", "B", "C", "D", "E"], None, ("A", "B", "C")),
    ],
)
def test_names(tmp_path, labels, descriptions, names):
    groups = {"POINT": {"LABELS": labels} | ({"DESCRIPTIONS": descriptions} if descriptions else {})}
    one = read_bytes(c3d_bytes(steps(points=3), groups), tmp_path)
    assert one.markers == names
    repeated = any(name.endswith("_2") for name in names)
    assert any("Repeated names" in what for what in problems(one)) == repeated
    assert any("no label" in what for what in problems(one)) == any(name.startswith("*") for name in names)
    assert one.subject.get("prefix", "") == ("S" if labels[0].startswith("S:") else "")


def test_computed_quantities_are_not_markers(tmp_path):
    groups = {
        "POINT": {
            "LABELS": ["LASI", "LKneeAngles", "LKneeMoment", "LAnklePower"],
            "ANGLES": ["LKneeAngles"],
            "MOMENTS": ["LKneeMoment"],
            "MOMENT_UNITS": "Nmm",
        }
    }
    markers = steps()
    one = read_bytes(c3d_bytes(markers, groups), tmp_path)
    assert one.markers == ("LASI",)
    assert one.data["quantity"].values.tolist() == ["LKneeAngles", "LKneeMoment", "LAnklePower"]
    assert one.data["quantity_kind"].values.tolist() == ["angle", "moment", "power"]
    assert one.data["quantity_units"].values.tolist() == ["deg", "N mm", "W"]
    assert np.array_equal(one.data["model_output"].values, markers[:, 1:], equal_nan=True)
    assert any("LAnklePower" in note.text and note.kind == "inferred" for note in one.notes)


def test_channels_are_sorted_into_muscles_and_others(tmp_path):
    labels = ["EMG 1", "RVAS", "L_TA", "Pin 1", "Voltage.RGAS", "Fz"]
    descriptions = ["", "Right Vastus", "", "", "", "Biceps"]
    groups = {"ANALOG": {"LABELS": labels, "DESCRIPTIONS": descriptions, "UNITS": ["mV", "V", "uV", "V", "V", "N"]}}
    one = read_bytes(c3d_bytes(steps(), groups, analog=np.zeros((6, 2, 6))), tmp_path)
    assert one.data["channel_kind"].values.tolist() == ["emg", "emg", "emg", "other", "emg", "other"]


@pytest.mark.parametrize("since", [0, 199])
def test_events_count_from_the_trial_or_from_the_file(tmp_path, since):
    """EVENT:TIMES count from frame 1 of the trial; some programs count from the file's first frame."""
    times = np.array([[0.0, 0.02 + since / 100.0], [0.0, 0.05 + since / 100.0]])
    groups = {"EVENT": {"USED": 2, "TIMES": times, "LABELS": ["RHS", "Foot Off"], "CONTEXTS": ["", "Left"]}}
    one = read_bytes(c3d_bytes(steps(frames=9), groups, first=200), tmp_path)
    assert [event.time for event in one.events] == pytest.approx([0.02, 0.05], abs=1e-5)
    assert [event.context for event in one.events] == ["Right", "Left"]
    assert any(note.code == "event_times" for note in one.notes) == (since == 0)


def test_user_statements_override_the_file(tmp_path):
    raw = c3d_bytes(steps(), {"POINT": {"LABELS": ["A", "B", "C", "D"], "Y_SCREEN": "+Z"}})
    stated, specified = read_bytes(raw, tmp_path), read_bytes(raw, tmp_path, units="m", up="+Y")
    assert np.allclose(
        specified.data["marker_position"][..., 2], 1e3 * stated.data["marker_position"][..., 1], equal_nan=True
    )
    with pytest.raises(SettingsError, match="Unknown unit 'mn'"):
        read_bytes(raw, tmp_path, units="mn")


@pytest.mark.parametrize(
    ("change", "header", "expected"),
    [
        ({"POINT": {"USED": 7}}, {}, "disagree on the number of points"),
        ({"POINT": {"FRAMES": 9}}, {}, "disagree on the number of frames"),
        ({}, {"points": 9}, "disagree on the number of points"),
        ({}, {"last": 700}, "disagree on the number of frames"),
        ({}, {"block": 60000}, "Samples are read from block"),
        ({"POINT": {"SCALE": 0.1}}, {}, None),
        ({"POINT": {"RATE": 0.0}}, {}, None),
        ({}, {"rate": 0.0}, None),
        ({"ANALOG": {"USED": None, "RATE": None}, "POINT": {"DATA_START": None, "FRAMES": None}}, {}, None),
    ],
)
def test_the_statement_that_fits_the_file_wins(tmp_path, change, header, expected):
    markers = steps(frames=60, points=5)
    one = read_bytes(c3d_bytes(markers, change, header=header), tmp_path)
    assert np.allclose(one.data["marker_position"], 1e-3 * markers, equal_nan=True)
    assert (expected is None) or any(expected in what for what in problems(one))


@pytest.mark.parametrize("wrong", [0, 84, 85, 86])
@pytest.mark.parametrize("processor", ["Intel", "DEC", "SGI"])
def test_a_wrong_processor_byte_is_detected(tmp_path, processor, wrong):
    markers = steps()
    raw = bytearray(c3d_bytes(markers, processor=processor, rate=100.0))
    right = raw[515]
    raw[515] = wrong
    one = read_bytes(bytes(raw), tmp_path)
    assert np.array_equal(one.data["marker_position"], 1e-3 * markers, equal_nan=True)
    assert any("processor type" in what for what in problems(one)) == (wrong != right)


def test_numbers_that_are_not_finite_are_missing(tmp_path):
    markers = steps(frames=50)
    raw = c3d_bytes(np.nan_to_num(markers, nan=1.0))
    samples = np.frombuffer(raw, "<f4").copy()
    start = (len(raw) - -(-50 * 64 // 512) * 512) // 4
    samples[start], samples[start + 5], samples[start + 10] = np.nan, np.inf, -np.inf
    one = read_bytes(samples.tobytes(), tmp_path)
    assert np.isnan(one.data["marker_position"].values[0]).all(axis=1).tolist() == [True, True, True, False]
    assert any("3 positions" in what for what in problems(one))


def test_a_truncated_file_is_refused_in_one_sentence(tmp_path):
    markers = steps(frames=80, points=5)
    raw = c3d_bytes(markers)
    for size in range(0, len(raw) - 512, 256):
        with pytest.raises(FileFormatError) as error:
            read_bytes(raw[:size], tmp_path)
        assert "\n" not in str(error.value) and "made.c3d" in str(error.value)
    part = read_bytes(raw[:-2048], tmp_path, partial=True)
    assert 50 < part.frames < 80 and any("truncated" in what for what in problems(part))
    assert np.allclose(part.data["marker_position"], 1e-3 * markers[: part.frames], equal_nan=True)


@pytest.mark.parametrize(
    ("header", "change", "words"),
    [
        ({"points": 65535}, {"POINT": {"USED": 65535}}, "65535 points"),
        ({"last": 65535}, {"POINT": {"FRAMES": 65535}}, "65535 frames"),
        ({"first": 9, "last": 2}, {"POINT": {"FRAMES": 0}}, "no frames"),
        ({"points": 0}, {"POINT": {"USED": 0}}, "neither points nor analog"),
        ({"points": 0}, {"POINT": {"USED": 0}, "ROTATION": {"USED": 3}}, "only segment rotations"),
        ({"analog": 65535}, {"ANALOG": {"USED": 65535}}, "65535 analog samples"),
        ({"rate": -1.0}, {"POINT": {"RATE": float("nan")}}, "frame rate is nan"),
        ({"block": 65535}, {"POINT": {"DATA_START": None}}, "begin in block 65535"),
    ],
)
def test_implausible_counts_are_refused_before_allocation(tmp_path, header, change, words):
    raw = c3d_bytes(steps(), change, header=header)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=words):
        read_bytes(raw, tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


def test_files_that_are_not_c3d_are_refused(tmp_path):
    cases = ((b"", "empty"), (b"\x02", "not C3D"), (b"PathFileType\t4", "not C3D"), (b"\x02P" * 9, "header"))
    for raw, words in cases:
        with pytest.raises(FileFormatError, match=words):
            read_bytes(raw, tmp_path)
        assert looks_like_c3d(raw) == (words == "header")
    with pytest.raises(FileFormatError, match="a folder"):
        read_c3d(tmp_path)
    with pytest.raises(FileFormatError, match="does not exist"):
        read_c3d(tmp_path / "none.c3d")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_c3d(tmp_path / "pipe")
    locked = tmp_path / "locked.c3d"
    locked.write_bytes(b"\x02P")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):  # root reads everything
        with pytest.raises(FileFormatError, match="Permission denied"):
            read_c3d(locked)
    locked.chmod(stat.S_IRUSR | stat.S_IWUSR)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    encoding=st.sampled_from(ENCODINGS),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=12),
    reach=st.sampled_from([24, 512, 2048, 10**6]),
    cut=st.floats(0.3, 1.5),
)
def test_damaged_files_are_read_or_refused(tmp_path, encoding, changes, reach, cut):
    raw = bytearray(damaged_source(encoding))
    for place, value in changes:
        raw[int(place * (min(reach, len(raw)) - 1))] = value
    started = time.perf_counter()
    try:
        read_bytes(bytes(raw[: int(cut * len(raw))]), tmp_path)
    except BorelliError as error:
        assert "\n" not in str(error)
    assert time.perf_counter() - started < 5.0


def damaged_source(encoding, made={}):  # noqa: B006
    """A file with everything in it, to be damaged; made once per encoding."""
    if encoding not in made:
        corners = np.array([[[300.0, -200, 0], [-300, -200, 0], [-300, 200, 0], [300, 200, 0]]])
        groups = {
            "POINT": {"LABELS": ["S:LASI", "S:RASI", "S:LKneeAngles", "*3"], "ANGLES": ["LKneeAngles"]},
            "ANALOG": {"LABELS": [f"C{i}" for i in range(8)], "SCALE": np.full(8, 0.5), "UNITS": ["N"] * 8},
            "FORCE_PLATFORM": {"USED": 1, "TYPE": np.array([2]), "CORNERS": corners, "CHANNEL": np.arange(1, 7)[None]},
            "EVENT": {"USED": 1, "TIMES": np.array([[0.0, 0.02]]), "LABELS": ["RHS"], "CONTEXTS": ["Right"]},
            "TRIAL": {"ACTUAL_START_FIELD": np.array([1, 0]), "ACTUAL_END_FIELD": np.array([12, 0])},
        }
        analog = np.random.default_rng(3).integers(-900, 900, (12, 4, 8)).astype(float)
        processor, kind = encoding
        made[encoding] = c3d_bytes(steps(frames=12), groups, processor=processor, real=kind, analog=analog)
    return made[encoding]


def long_file(path, *, integers):
    """200,000 frames of 60 markers, written piece by piece."""
    stated = {"POINT": {"FRAMES": 65535, "LONG_FRAMES": 200_000.0}}
    head = c3d_bytes(np.zeros((1, 60, 3)), stated, real=not integers, header={"last": 65535})
    with path.open("wb") as file:
        file.write(head[: len(head) - (512 if integers else 1024)])
        piece = np.random.default_rng(0).normal(0, 900, (2000, 60, 4))
        piece[..., 3] = 5.0
        for _ in range(100):
            file.write(piece.astype("<i2" if integers else "<f4").tobytes())


@pytest.mark.parametrize("integers", [False, True])
def test_a_long_file_is_read_quickly_and_in_less_than_three_times_its_size(tmp_path, integers):
    path = tmp_path / "long.c3d"
    long_file(path, integers=integers)
    size = path.stat().st_size
    tracemalloc.start()
    started = time.perf_counter()
    one = read_c3d(path)
    taken = time.perf_counter() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one.frames == 200_000 and len(one.markers) == 60
    assert taken < 10.0 and peak < 3 * size


FACTS = {
    "hdm/data.c3d": (41, 343, 120.0, 0),
    "cmu/c3d/02_05.c3d": (41, 1854, 120.0, None),
    "cmu/c3d/06_01_misnamed_dribble_shoot.c3d": (41, 494, 120.0, None),
    "cmu/c3d/85_02.c3d": (41, 810, 120.0, None),
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D": (13, 199, 60.0, 653),
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-4.C3D": (13, 199, 60.0, 653),
    "c3d/format_variants/sample15_plate_type3/FP1.C3D": (8, 480, 60.0, 0),
    "c3d/motionanalysis_gait/Gait.c3d": (33, 487, 100.0, 9682),
    "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d": (51, 264, 120.0, 0),
    "c3d/motionanalysis_walk_jump/Walk1.c3d": (49, 151, 60.0, 1208),
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d": (24, 134, 60.0, 24),
    "c3d/motionmonitor_metres/Static_Pose.c3d": (30, 120, 60.0, 0),
    "c3d/opensim_walking2/walking2.c3d": (44, 1249, 250.0, 27567),
    "c3d/pycgm_movement/Movement_trial.c3d": (239, 323, 120.0, 2735),
    "c3d/qualisys_walk/Qualisys.c3d": (55, 340, 200.0, 0),
    "c3d/sprint_8plates/JA1Gait35.c3d": (53, 324, 250.0, 1),  # that reader has it at the origin
    "c3d/vicon_overground_4plates/test_small.c3d": (191, 337, 100.0, 4374),
    "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d": (137, 94, 100.0, 0),
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": (193, 315, 100.0, 6048),
}
"""Points (markers and quantities), frames, rate [Hz] and missing point-samples, measured by another reader."""


@pytest.mark.data
@pytest.mark.parametrize("name", FACTS)
def test_real_files_agree_with_another_reader(name, tmp_path):
    path = real(name)
    started = time.perf_counter()
    one = read_c3d(path)
    assert time.perf_counter() - started < 1.0
    points, frames, rate, missing = FACTS[name]
    arrays = [one.data[key].values for key in ("marker_position", "model_output") if key in one.data]
    assert (sum(array.shape[1] for array in arrays), one.frames, one.rate) == (points, frames, rate)
    if missing is not None:
        assert sum(int(np.isnan(array[..., 0]).sum()) for array in arrays) == missing
    assert one.data.attrs["file_up"] == "+Z"
    height = one.data["marker_position"][..., 2]
    assert float(height.min()) > -0.3 and float(height.max()) < 3.0  # people, in meters, z up
    write_c3d(one, tmp_path / "again.c3d")
    again = read_c3d(tmp_path / "again.c3d")
    data = again.data.assign_attrs(encoding=one.data.attrs["encoding"])
    xarray.testing.assert_allclose(one.data, data, rtol=1e-6, atol=2e-5)


@pytest.mark.data
def test_six_encodings_of_one_trial_read_equal():
    names = ("pc_int.c3d", "DEC_INT.C3D", "sgi_int.c3d", "pc_real.c3d", "Dec_real.c3d", "sgi_real.c3d")
    ones = [read_c3d(real(f"c3d/format_variants/sample02/{name}")) for name in names]
    # one step of the integers [m]: the programs that wrote the files rounded differently
    step = 1.0001e-3 * ones[0].metadata["POINT"]["SCALE"]
    for one in ones:
        assert int(np.isnan(one.data["marker_position"].values[..., 0]).sum()) == 228
        assert one.markers == ones[0].markers and len(one.markers) == 36
        for name in (
            "marker_position",
            "marker_residual",
            "analog",
            "plate_force",
            "plate_center_of_pressure",
            "plate_free_moment",
        ):
            wanted, got = ones[0].data[name].values, one.data[name].values
            assert np.allclose(
                got, wanted, rtol=0.0, atol=step if name == "marker_position" else 1e-9, equal_nan=True
            ), name
    for one in ones[4:]:
        assert np.array_equal(one.data["marker_position"], ones[3].data["marker_position"], equal_nan=True)


@pytest.mark.data
def test_markers_equal_opensims_import():
    one = read_c3d(real("c3d/opensim_walking2/walking2.c3d"))
    lines = real("c3d/opensim_walking2/reference/std_walking2_markers.trc").read_text().splitlines()
    names = [name for name in lines[3].split("\t")[2:] if name.strip()]
    rows = [[float(cell) for cell in line.split("\t") if cell.strip()] for line in lines[6:] if line.strip()]
    table = np.array(rows)
    places = table[:, 2:].reshape(len(table), -1, 3)
    frames = np.rint(table[:, 1] * one.rate).astype(int)
    found = 1e3 * one.data["marker_position"].sel(marker=names).values[frames]
    assert np.array_equal(np.isnan(found), np.isnan(places))
    assert np.nanmax(np.abs(found - places)) < 0.0501  # the reference is rounded to 0.1 mm


@pytest.mark.data
def test_full_names_come_from_the_descriptions_and_match_the_trc():
    """The C3D is the TRC low-passed at 6 Hz twice (second order, 6 / 0.802 Hz), and stored in steps of 0.074 mm."""
    one = read_c3d(real("c3d/motionanalysis_gait/Gait.c3d"))
    lines = real("c3d/motionanalysis_gait/reference/Gait.trc").read_text().splitlines()
    names = [name.strip() for name in lines[3].split("\t")[2:] if name.strip()]
    assert one.markers == tuple(names) and len(set(names)) == 33
    rows = [line.split("\t")[2 : 2 + 99] for line in lines[5:] if line[:1].isdigit()]
    places = np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows]).reshape(-1, 33, 3)
    found = 1e3 * one.data["marker_position"].values
    assert np.nanmedian(np.abs(found - places)) < 0.6 and np.nanmax(np.abs(found - places)) < 8.0
    b, a = butter(2, 6.0 / 0.802 / 50.0)
    knee = one.markers.index("R.Knee")
    seen = np.flatnonzero(np.isfinite(places[:, knee, 0]))
    smooth = filtfilt(b, a, places[seen[0] : seen[-1] + 1, knee], axis=0)[20:-20]
    assert len(seen) == seen[-1] - seen[0] + 1
    apart = np.abs(smooth - found[seen[0] + 20 : seen[-1] - 19, knee])
    assert np.nanmedian(apart) < 0.05 and np.nanmax(apart) < 0.5


@pytest.mark.data
def test_plug_in_gait_outputs_are_quantities_per_kilogram():
    one = read_c3d(real("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d"))
    quantities = one.data["model_output"]
    kinds, counts = np.unique(one.data["quantity_kind"].values, return_counts=True)
    assert kinds.tolist() == ["angle", "force", "moment", "power"] and counts.tolist() == [26, 20, 18, 16]
    peaks = {"LAnkleMoment": ("N mm/kg", 1310.0), "LGroundReactionForce": ("N/kg", 10.3), "LKneeAngles": ("deg", 60.0)}
    for name, (units, peak) in peaks.items():
        one_quantity = quantities.sel(quantity=name)
        assert str(one_quantity["quantity_units"].values) == units
        assert float(np.abs(one_quantity).max()) == pytest.approx(peak, rel=0.15)
    assert one.subject["mass"] == 47.5 and one.subject["height"] == pytest.approx(1.505)
    assert "LASI" in one.markers and "CentreOfMass" in one.markers


@pytest.mark.data
def test_prefixes_and_unlabeled_points_of_real_files():
    walk = read_c3d(real("hdm/data.c3d"))
    assert walk.subject["prefix"] == "TakeoMonday" and {"LFWT", "RFWT", "LBWT", "RBWT"} <= set(walk.markers)
    stairs = read_c3d(real("c3d/pycgm_movement/Movement_trial.c3d"))
    assert sum(name.startswith("*") for name in stairs.markers) == 42
    heights = stairs.data["plate_corners"].values[..., 2].mean(axis=1)
    assert np.allclose(heights, [0.0, 0.195, 0.389, 0.584], atol=0.002)

"""CSV: files of borelli keep every bit; exports of measuring systems and plain tables are read or refused."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import FileFormatError
from borelli.recording.formats.csv import read_csv, write_csv
from borelli.recording.recording import Recording, make_dataset

from ..text_recordings import NAMES, RATES, notes_of, numbers, refuse_special_files
from ..walker import real

NEXUS = """Trajectories
100
,,Bob:LASI,,,Bob:RHEE,,
Frame,Sub Frame,X,Y,Z,X,Y,Z
,,mm,mm,mm,mm,mm,mm
7,0,1,2,900,4,5,60
8,0,,,,4.5,5.5,60.5

Devices
200
,,Plate - Force,Plate - Force,EMG
Frame,Sub Frame,Fx,Fz,1
,,N,N,V
7,0,1,700,0.1
7,1,2,701,0.2
8,0,3,702,0.3
8,1,4,703,0.4

Model Outputs
100
,,Bob:LKneeAngles,,,Bob:PEL,,
Frame,Sub Frame,X,Y,Z,RX,RY
,,deg,deg,deg,deg,deg
7,0,10,11,12,1,2
8,0,20,21,22,3,4

Events
100
Subject,Context,Name,Time (s),Description
Bob,Left,Foot Strike,0.01,
"""
QUALISYS = """NO_OF_FRAMES\t2
NO_OF_CAMERAS\t8
NO_OF_MARKERS\t2
FREQUENCY\t100
DESCRIPTION\t--
EVENT\tjump\t2\t0.01
DATA_INCLUDED\t3D
MARKER_NAMES\tLASI\tRHEE
1\t2\t900\t4\t5\t60
\t\t\t4.5\t5.5\t60.5
"""
MOTIVE = """Format Version,1.23,Take Name,walk,Capture Frame Rate,100.000000,Export Frame Rate,100.0,Length Units,Meters

,,Rigid Body,Marker,Marker,Marker,Marker,Marker,Marker
,Name,box,LASI,LASI,LASI,RHEE,RHEE,RHEE
,ID,1,2,2,2,3,3,3
,,Position,Position,Position,Position,Position,Position,Position
Frame,Time (Seconds),X,X,Y,Z,X,Y,Z
0,0.000000,9,0.001,0.900,-0.002,0.004,0.060,-0.005
1,0.010000,9,,,,0.0045,0.0605,-0.0055
"""
EXPECTED = 1e-3 * np.array([[[1, 2, 900], [4, 5, 60]], [[np.nan] * 3, [4.5, 5.5, 60.5]]])


def read(text, folder, name="made.csv", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(path, **options)


@st.composite
def recordings(draw):
    """A recording that may have every variable there is."""
    frames, samples = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    coordinates, variables = {}, {}

    def add(variable, dimension, length, *shape, **more):
        if draw(st.booleans()):
            coordinates.setdefault(dimension, draw(NAMES))
            count = len(coordinates[dimension])
            variables[variable] = draw(numbers(length, count, *shape, low=-1e3, high=1e3, holes=bool(shape)))
            for key, words in more.items():
                coordinates[key] = draw(st.lists(st.sampled_from(words), min_size=count, max_size=count))

    add("marker_position", "marker", frames, 3)
    add("marker_residual", "marker", frames)
    add("model_output", "quantity", frames, 3, quantity_units=["deg", "N mm/kg", ""], quantity_kind=["angle", "moment"])
    add("coordinate_value", "coordinate", frames, coordinate_units=["rad", "m"])
    add("column_value", "column", frames, column_units=["", "W"])
    add("joint_center", "joint", frames, 3)
    add("plate_force", "plate", samples, 3)
    add("plate_free_moment", "plate", samples, 3)
    add("analog", "channel", samples, channel_units=["V", ""], channel_kind=["emg", "plate", "other"])
    if "plate" in coordinates:
        variables["plate_corners"] = draw(numbers(len(coordinates["plate"]), 4, 3))
    variables["event_time"] = draw(numbers(2))
    coordinates |= {"event": [0, 1], "event_label": ["Foot Strike", 'a, "b"'], "event_context": ["Left", "General"]}
    rates = {"rate": draw(RATES), "analog_rate": draw(RATES)}
    dataset = make_dataset(variables, coordinates, **rates, file_up="+Y", file_units="mm", first_frame=7)
    return Recording(dataset, "made", subject={"mass": 70.5, "name": "é"})


@given(recording=recordings())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_borelli_csv_keeps_every_bit(recording, tmp_path):
    write_csv(recording, tmp_path / "x.csv", overwrite=True)
    back = read_csv(tmp_path / "x.csv")
    assert back.data.identical(recording.data)
    assert back.subject == recording.subject
    assert back.name == recording.name


@pytest.mark.parametrize(("text", "up"), [(NEXUS, "+Z"), (QUALISYS, "+Z"), (MOTIVE, "+Y")])
def test_exports_of_measuring_systems(text, up, tmp_path):
    recording = read(text, tmp_path, up=up)
    assert recording.markers == ("LASI", "RHEE")
    np.testing.assert_allclose(recording.data["marker_position"], EXPECTED)
    assert recording.rate == 100.0
    np.testing.assert_array_equal(recording.data["time"], [0.0, 0.01])


def test_all_parts_of_a_nexus_export(tmp_path):
    recording = read(NEXUS, tmp_path)
    data = recording.data
    assert recording.subject["prefix"] == "Bob"
    assert recording.metadata["first_frame"] == 7
    np.testing.assert_array_equal(data["model_output"].sel(quantity="LKneeAngles"), [[10, 11, 12], [20, 21, 22]])
    assert str(data["quantity_kind"].values[0]) == "angle"
    assert list(data["column"].values) == ["PEL.RX", "PEL.RY"]
    assert recording.channels == ("Plate - Force Fx", "Plate - Force Fz", "EMG 1")
    assert list(data["channel_kind"].values) == ["plate", "plate", "emg"]
    np.testing.assert_array_equal(data["analog_time"], np.arange(4) / 200)
    assert recording.events[0][:3] == (0.01, "Foot Strike", "Left")
    assert "event_times" in [note.code for note in recording.notes]
    # Nexus counts from frame 1 of the trial, and this file begins with frame 7
    trial = read(NEXUS.replace("Strike,0.01", "Strike,0.07"), tmp_path)
    assert trial.events[0].time == pytest.approx(0.01)
    semicolons = read(NEXUS.replace(",", ";").replace(".5", ",5"), tmp_path)
    assert semicolons.data["marker_position"].identical(data["marker_position"])


def test_a_measured_marker_precedes_that_of_its_rigid_body(tmp_path):
    lines = MOTIVE.splitlines()
    lines[2] = lines[2].replace("Rigid Body,", "Rigid Body Marker,Rigid Body Marker,Rigid Body Marker,")
    lines[3] = lines[3].replace("box,", "LASI,LASI,LASI,")
    lines[4], lines[5] = lines[4].replace(",1,", ",1,1,1,"), lines[5].replace(",,P", ",,Position,Position,P", 1)
    lines[6] = lines[6].replace("(Seconds),X,", "(Seconds),X,Y,Z,")
    lines[7:] = [line.replace(",9,", ",9,9,9,") for line in lines[7:]]
    np.testing.assert_allclose(read("\n".join(lines), tmp_path, up="+Y").data["marker_position"], EXPECTED)


def test_markers_without_evidence_of_axes_use_those_of_the_plates(tmp_path):
    forces = ",".join(f"ground_force_v{a}" for a in "xyz")
    text = f"time,A_x_m,A_y_m,A_z_m,{forces}\n0,1,2,3,10,700,20\n0.01,1,2,3,10,700,20\n"
    data = read(text, tmp_path).data
    np.testing.assert_allclose(data["marker_position"][0, 0], [1.0, -3.0, 2.0])
    np.testing.assert_allclose(data["plate_force"][0, 0], [10.0, -20.0, 700.0])


def test_events_of_qualisys(tmp_path):
    assert read(QUALISYS, tmp_path, "x.tsv").events[0][:2] == (0.01, "jump")


@pytest.mark.parametrize(
    "text",
    [
        "time,LASI_x_mm,LASI_y_mm,LASI_z_mm,emg\n0,1,2,3,0.5\n0.01,1,2,3,0.25\n",
        "time [s],LASI.x [mm],LASI.y [mm],LASI.z [mm],emg\n0,1,2,3,0.5\n0.01,1,2,3,0.25\n",
        "frame;time (ms);LASI X (mm);LASI Y (mm);LASI Z (mm);emg\n1;0;1;2;3;0,5\n2;10;1;2;3;0,25\n",
        '"time"\t"LASI x [mm]"\t"LASI y [mm]"\t"LASI z [mm]"\t"emg"\t\n0\t1\t2\t3\t.5\t\n0.01\t1\t2\t3\t.25\t\n',
        "# made by hand\n\ntime,LASI_x_m,LASI_y_m,LASI_z_m,emg\n0,.001,.002,.003,.5\n0.01,.001,.002,.003,.25\n",
    ],
)
def test_plain_tables(text, tmp_path):
    recording = read(text, tmp_path, up="+Z")
    np.testing.assert_allclose(recording.data["marker_position"][:, 0], [[1e-3, 2e-3, 3e-3]] * 2)
    assert recording.markers == ("LASI",)
    np.testing.assert_array_equal(recording.data["column_value"].sel(column="emg"), [0.5, 0.25])
    np.testing.assert_allclose(recording.data["time"], [0.0, 0.01])


def test_a_table_that_only_counts_frames_takes_a_rate(tmp_path):
    text = "Timestep,a\nAll RMSE,3\n0,1\n1,2\n"
    recording = read(text, tmp_path)
    assert "no rate" in notes_of(recording, "problem")
    assert "'All RMSE'" in notes_of(recording, "problem")
    np.testing.assert_array_equal(read(text, tmp_path, rate=50.0).data["time"], [0.0, 0.02])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("segment,mass\nfoot,1\n", "no column is called time or frame, only segment, mass"),
        ("time,who\n0,Bob\n1,Eve\n", "line 2: Column 2: Expected a number, got 'Bob'"),
        ("time,a\n0,1,2\n", "line 2: The row has 3 cells for 2 columns"),
        ("time,a\n", "no row of numbers"),
        ("0,1\n2,3\n", "line 1: Expected a line of column names"),
        ("time,a\nx,1\ny,1\nz,1\nw,1\n", "line 5: Column 'time' contains 'w'"),
        (NEXUS.replace("Frame,", "Bild,"), "Expected a line that begins with Frame"),
        ("# borelli recording 2\ntime [s],a.x [m]\n0,1\n", "Each marker must have 3 columns"),
        ("# borelli recording 1\n# rate: 100.0\n", "line 1: The file has format version 1, which is no longer read"),
        ("# borelli recording 2\ntime [s],foo\n0,1\n", "expected `name.axis [unit]`"),
        ("# borelli recording 2\n# rate_hz: {{\n", "not JSON"),
        ("# borelli recording 2\n# variables: 1\n# coordinates: 2\n", "no table"),
        (
            "# borelli recording 2\ntime [s],value:a [m],analog:b [V]\n0,1,2\n",
            "does not belong into the table along time",
        ),
        (
            "# borelli recording 2\ntime [s],force:1.x [N],force:1.y [N],force:1.z [N]\n0,1,2,3\n\n"
            "plate,corner,x [m],y [m],z [m]\n" + "1,1,0,0,0\n" * 8,
            "are inconsistent",
        ),
    ],
)
def test_damage_is_refused_with_the_location(text, part, tmp_path):
    with pytest.raises(FileFormatError) as error:
        read(text, tmp_path)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_paths_that_are_not_regular_files_are_refused(tmp_path):
    refuse_special_files(read_csv, tmp_path, ".csv")


@pytest.mark.data
def test_vicons_model_outputs_equal_those_in_the_c3d():
    from borelli.recording.io import read_recording

    csv = read_recording(real("c3d/pycgm_movement/Movement_trial.csv"))
    c3d = read_recording(real("c3d/pycgm_movement/Movement_trial.c3d"))
    shared = [str(name) for name in csv.data["quantity"].values if name in c3d.data["quantity"].values]
    assert len(shared) > 60
    apart = csv.data["model_output"].sel(quantity=shared).values - c3d.data["model_output"].sel(quantity=shared).values
    scale = np.nanmax(np.abs(c3d.data["model_output"].sel(quantity=shared).values), axis=(0, 2))
    worst = np.nanmax(np.abs(apart), axis=(0, 2)) / scale
    assert np.median(worst) < 1e-4

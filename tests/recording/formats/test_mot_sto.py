"""MOT and STO: headers of every version, degrees or radians, ground forces under all names, round trips."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.formats.grf_columns import find_plates
from borelli.recording.formats.mot_sto import read_table, write_table
from borelli.recording.recording import MIN_PLATE_FORCE, Recording, make_dataset

from ..text_recordings import RATES, notes_of, numbers, refuse_special_files
from ..walker import real

HEADERS = {
    "OpenSim 1 to 3": "Coordinates\nversion=1\nnRows=2\nnColumns=3\ninDegrees=yes\n\nUnits are S.I. units\nendheader\n",
    "OpenSim 4": "Coordinates\nnColumns=3\nnRows=2\nDataType=double\nversion=3\ninDegrees=yes\nendheader\n",
    "SIMM": "name walk.mot\ndatacolumns 3\ndatarows 2\notherdata 1\nrange 0 0.1\nendheader\n",
    "spreadsheet": "walk\t\t\nversion=1\t\t\nnRows=2\t\t\nnColumns=3\t\t\ninDegrees=yes\t\t\nendheader\t\t\n",
    "capitals": "Coordinates\nNROWS = 2\nNCOLUMNS = 3\nINDEGREES = YES\nENDHEADER\n\n",
}
ROWS = "time\tpelvis_tx\tknee_angle_r\n0\t0.5\t90\n0.1\t0.6\t180\n"
NAMES = {  # columns of one plate: force, point, torque
    "ground_force": ("ground_force_v", "ground_force_p", "ground_torque_"),
    "1": ("1_ground_force_v", "1_ground_force_p", "1_ground_torque_"),
    "2": ("ground_force_2_v", "ground_force_2_p", "ground_force_2_m"),
    "r": ("ground_force_r_v", "ground_force_r_p", "ground_torque_r_"),
    "R": ("R_ground_force_v", "R_ground_force_p", "R_ground_torque_"),
    "calcn_l": ("calcn_l_ground_force_v", "calcn_l_ground_force_p", "calcn_l_ground_moment_m"),
    "left_foot": ("ground_force_left_foot_v", "ground_force_left_foot_p", "ground_moment_left_foot_m"),
}


def read(text, folder, name="made.mot", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, **options)


@st.composite
def tables(draw):
    """Coordinates, or coordinates with plates at their times, or plates, or other columns."""
    frames, rate = draw(st.integers(2, 6)), draw(RATES)
    kinds = draw(st.sampled_from([{"coordinates"}, {"plates"}, {"coordinates", "plates"}, {"value"}]))
    variables, labels = {}, {}
    if "coordinates" in kinds:
        turns = draw(st.lists(st.booleans(), min_size=1, max_size=4))
        labels["coordinate"] = [f"joint{i}_angle" if turn else f"joint{i}_tx" for i, turn in enumerate(turns)]
        labels["coordinate_units"] = ["rad" if turn else "m" for turn in turns]
        variables["coordinate_value"] = draw(numbers(frames, len(turns), low=-20.0, high=20.0))
    if "plates" in kinds:
        labels["plate"] = draw(
            st.lists(st.sampled_from(["ground_force", "1", "R", "FP 3", "x_y"]), min_size=1, unique=True)
        )
        labels["plate"] = [name.replace(" ", "_") for name in labels["plate"]]
        shape = (frames, len(labels["plate"]), 3)
        force = draw(numbers(*shape, low=-15.0, high=15.0))
        force[..., 2] = draw(numbers(frames, shape[1], low=-5.0, high=900.0))
        force[0, 0] = (10.0, 5.0, 700.0)
        center = draw(numbers(*shape))
        center[~(np.abs(force[..., 2]) >= MIN_PLATE_FORCE)] = np.nan
        variables |= {
            "plate_force": force,
            "plate_center_of_pressure": center,
            "plate_free_moment": draw(numbers(*shape)),
        }
    if "value" in kinds:
        labels["column"] = draw(
            st.lists(st.sampled_from(["soleus_r", "a.b", "FX", "pelvis_tx"]), min_size=1, unique=True)
        )
        labels["column_units"] = [""] * len(labels["column"])
        variables["column_value"] = draw(numbers(frames, len(labels["column"]), holes=True))
    times = draw(st.integers(0, 100)) / rate + np.arange(frames) / rate
    dataset = make_dataset(
        variables, {**labels, "time": times, "analog_time": times}, rate=rate, analog_rate=rate, file_up="+Y"
    )
    return Recording(dataset, "made")


@given(recording=tables(), ending=st.sampled_from([".mot", ".sto"]))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_written_files_are_read_back(recording, ending, tmp_path):
    if ending == ".sto" and {"coordinate_value", "plate_force"} <= set(recording.data):
        ending = ".mot"
    write_table(recording, tmp_path / f"x{ending}", overwrite=True)
    back = read_table(tmp_path / f"x{ending}", up="+Y")
    assert set(back.data.data_vars) == set(recording.data.data_vars)
    for name in recording.data.data_vars:
        np.testing.assert_allclose(back.data[name], recording.data[name], rtol=1e-10, atol=1e-12, err_msg=name)
    for name in set(recording.data.coords) - {"axis", "corner"}:
        if recording.data[name].dtype.kind == "U":
            assert list(back.data[name].values) == list(recording.data[name].values)
        else:
            np.testing.assert_array_equal(back.data[name], recording.data[name])
    assert back.rate == pytest.approx(recording.rate, rel=1e-12)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_every_age(header, tmp_path):
    recording = read(HEADERS[header] + ROWS, tmp_path)
    np.testing.assert_allclose(recording.data["coordinate_value"], [[0.5, np.pi / 2], [0.6, np.pi]])
    assert list(recording.data["coordinate_units"].values) == ["m", "rad"]
    np.testing.assert_array_equal(recording.data["time"], [0.0, 0.1])
    assert not notes_of(recording, "problem")


def test_radians_degrees_and_a_wrong_header(tmp_path):
    radians = HEADERS["OpenSim 1 to 3"].replace("yes", "no")
    small = "time\tpelvis_tx\tknee_angle_r\n0\t0.5\t1.5\n0.1\t0.6\t-1\n"
    recording = read(radians + small, tmp_path)
    np.testing.assert_array_equal(recording.data["coordinate_value"][:, 1], [1.5, -1.0])
    wrong = read(radians + ROWS, tmp_path)
    np.testing.assert_allclose(wrong.data["coordinate_value"][:, 1], [np.pi / 2, np.pi])
    assert "inDegrees=no" in notes_of(wrong, "problem")
    assert wrong.notes[0].action == "degrees=False"
    specified = read(radians + ROWS, tmp_path, degrees=False)
    np.testing.assert_array_equal(specified.data["coordinate_value"][:, 1], [90.0, 180.0])


def test_coupled_coordinates_that_opensim_leaves_in_radians(tmp_path):
    rows = "time\tknee_angle_r\tknee_angle_r_beta\n0\t90\t1.5707963\n0.1\t45\t0.78539816\n"
    recording = read(HEADERS["OpenSim 1 to 3"] + rows, tmp_path)
    np.testing.assert_allclose(
        recording.data["coordinate_value"][:, 0], recording.data["coordinate_value"][:, 1], rtol=1e-6
    )
    assert "beta is in radians" in notes_of(recording, "inferred")


def test_states_and_results_are_not_coordinates(tmp_path):
    states = "walk_states\nversion=1\ninDegrees=no\nendheader\ntime\tq\tq_u\tm.activation\n0\t1\t2\t0.5\n1\t1\t2\t0.5\n"
    recording = read(states, tmp_path, "s.sto")
    assert list(recording.data["coordinate"].values) == ["q"]
    assert list(recording.data["column"].values) == ["q_u", "m.activation"]
    paths = states.replace("q\tq_u", "/jointset/knee/q/value\t/jointset/knee/q/speed")
    assert list(read(paths, tmp_path, "s.sto").data["coordinate"].values) == ["q"]
    moments = "Inverse Dynamics\nversion=1\nendheader\ntime\tknee_angle_r_moment\tpelvis_tx_force\n0\t1\t2\n"
    recording = read(moments, tmp_path, "id.mot")
    assert "coordinate_value" not in recording.data
    assert list(recording.data["column_units"].values) == ["N m", "N"]


@pytest.mark.parametrize("plate", NAMES)
def test_ground_forces_by_all_their_names(plate, tmp_path):
    names = [f"{stem}{axis}" for stem in NAMES[plate] for axis in "xyz"]
    rows = "time\t" + "\t".join(names) + "\n0\t10\t700\t-20\t0.1\t0\t0.3\t1\t5\t2\n0.01\t0\t3\t0\t9\t9\t9\t0\t0\t0\n"
    recording = read("grf\nversion=1\nendheader\n" + rows, tmp_path)
    assert recording.plates == (plate,)
    data = recording.data.isel(plate=0)
    np.testing.assert_array_equal(data["plate_force"][0], [10.0, 20.0, 700.0])  # y up: x, -z, y
    np.testing.assert_array_equal(data["plate_center_of_pressure"][0], [0.1, -0.3, 0.0])
    np.testing.assert_array_equal(data["plate_free_moment"][0], [1.0, -2.0, 5.0])
    assert np.isnan(data["plate_center_of_pressure"][1]).all()
    assert "analog_time" in data.coords


def test_repeated_force_columns_are_two_plates(tmp_path):
    names = "\t".join(f"ground_force_{kind}{axis}" for kind in "vp" for axis in "xyz")
    rows = f"time\t{names}\t{names}\n0\t1\t500\t0\t1\t0\t0\t2\t600\t0\t2\t0\t0\n"
    recording = read("grf\nversion=1\nendheader\n" + rows, tmp_path)
    assert recording.plates == ("ground_force", "2")
    np.testing.assert_array_equal(recording.data["plate_force"][0, :, 2], [500.0, 600.0])


@given(st.lists(st.sampled_from(list(NAMES)), min_size=1, max_size=4, unique=True), st.randoms())
def test_plates_are_found_in_any_order_of_columns(plates, random):
    names = [f"{stem}{axis}" for plate in plates for stem in NAMES[plate] for axis in "xyz"] + ["time", "hip_flexion"]
    random.shuffle(names)
    found = find_plates(names)
    assert set(found) == set(plates)
    for plate, columns in found.items():
        for stem, triple in zip(NAMES[plate], columns[:3], strict=True):
            assert [names[i] for i in triple] == [f"{stem}{axis}" for axis in "xyz"]


def test_vectors_of_opensim_4(tmp_path):
    text = "DataRate=100\nDataType=Vec3\nversion=3\nendheader\ntime\tf1\tp1\tm1\n0\t1,2,700\t100,200,0\t0,0,9\n"
    text += "0.01\t~[1,2,700]\t100,200,0\t0,0,9\n"
    recording = read(text, tmp_path, "v.sto")
    assert recording.plates == ("1",)
    np.testing.assert_allclose(recording.data["plate_center_of_pressure"][:, 0], [[0.1, 0.2, 0.0]] * 2)
    turned = "DataType=Quaternion\nversion=3\nendheader\ntime\tpelvis_imu\n0\t1,0,0,0\n1\t1,0,0,0\n"
    assert list(read(turned, tmp_path, "q.sto").data["column"].values) == [f"pelvis_imu.{a}" for a in "wxyz"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a\nversion=1\nendheader\ntime\tb\n0\t1\t2\n", "line 5: The row has 3 cells for 2 columns"),
        ("a\nversion=1\nendheader\ntime\tb\n0\tx\n", "line 5: Column 2: Expected a number, got 'x'"),
        ("a\nversion=1\nendheader\nframe\tb\n0\t1\n", "No column is called time"),
        ("a\nversion=1\nendheader\n0\t1\n", "got numbers"),
        ("a\nversion=1\nendheader\ntime\tb\n", "no row under the column names"),
        ("a\nversion=1\nendheader\n", "no line of column names"),
        ("a\nversion=1\nDataType=Matrix\nendheader\ntime\tb\n0\t1\n", "Unknown DataType 'matrix'"),
    ],
)
def test_damage_is_refused_with_the_location(text, part, tmp_path):
    with pytest.raises(FileFormatError) as error:
        read(text, tmp_path)
    assert part in str(error.value)


def test_counts_in_the_header_allocate_nothing_and_are_noted(tmp_path):
    text = (
        HEADERS["OpenSim 1 to 3"].replace("nRows=2", "nRows=999999999999").replace("nColumns=3", "nColumns=-1") + ROWS
    )
    recording = read(text, tmp_path)
    assert recording.data["coordinate_value"].shape == (2, 2)
    assert "states 1e+12 rows" in notes_of(recording, "problem")


def test_paths_that_are_not_regular_files_are_refused(tmp_path):
    refuse_special_files(read_table, tmp_path, ".sto")


def test_variables_that_do_not_fit_into_one_table_are_refused(tmp_path):
    times = {"time": [0.0, 1.0], "analog_time": [0.0, 0.5, 1.0], "plate": ["1"], "coordinate": ["q"], "column": ["v"]}
    both = make_dataset(
        {"coordinate_value": np.zeros((2, 1)), "plate_force": np.zeros((3, 1, 3)), "column_value": np.ones((2, 1))},
        times,
    )
    with pytest.raises(SettingsError, match="different times"):
        write_table(Recording(both), tmp_path / "x.mot", overwrite=True)
    with pytest.raises(SettingsError, match="do not fit into one table"):
        write_table(Recording(both), tmp_path / "x.mot", variables=["coordinate_value", "column_value"], overwrite=True)
    with pytest.raises(SettingsError, match="neither"):
        write_table(Recording(both[["event"]] if "event" in both else both[[]]), tmp_path / "x.mot")
    assert not list(tmp_path.iterdir())


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "rate", "plates", "coordinates"),
    [
        ("opensim/subject01_walk/subject01_walk1_grf.mot", 1501, 600.0, ("ground_force", "1"), 0),
        ("opensim/hamner2010_running/subject02_running_grf.mot", 601, 60.0, ("ground_force", "1"), 23),
        ("opensim/rajagopal2015_run_bmclab/grf_run.mot", 246, 300.0, ("R", "L"), 0),
        ("opensim/rajagopal2016/walk/grf_walk.mot", 4778, 2000.0, ("r", "l"), 0),
        ("opensim/opencap_subject4/DJ1_grf.mot", 269, 100.0, ("1", "2", "3"), 0),
        ("c3d/sprint_8plates/reference/JA1Gait35_grf.mot", 322, 250.0, tuple("12345678"), 0),
        ("opensim/gait10dof18musc/reference/subject01_walk_IK.mot", 151, 60.0, (), 10),
    ],
)
def test_real_files_have_the_known_facts(name, rows, rate, plates, coordinates):
    recording = read_table(real(name))
    dimension = "analog_time" if plates else "time"
    assert recording.plates == plates
    assert recording.data.sizes[dimension] == rows
    assert recording.data.sizes.get("coordinate", 0) == coordinates
    assert recording.rate == rate
    np.testing.assert_allclose(recording.data[dimension], np.arange(rows) / rate, atol=1e-15)
    if plates:
        total = recording.data["plate_force"].sum("plate").values
        assert total[:, 2].mean() > 5 * abs(total[:, :2].mean(axis=0)).max()
        center = recording.data["plate_center_of_pressure"].values
        assert np.nanmax(np.abs(center)) < 12.0  # no point of an unloaded plate, hundreds of meters away, remains


@pytest.mark.data
def test_opensims_two_ways_to_state_a_plate_agree():
    at_origin = read_table(real("c3d/opensim_walking2/reference/std_walking2_grfs.sto"))
    at_center = read_table(real("c3d/opensim_walking2/reference/std_cop_walking2_grfs.sto"))
    for name, tolerance in (("plate_force", 1e-9), ("plate_center_of_pressure", 1e-6), ("plate_free_moment", 1e-6)):
        loaded = at_center.data["plate_force"][..., 2].values >= MIN_PLATE_FORCE
        assert loaded.sum() > 20
        np.testing.assert_allclose(
            at_origin.data[name].values[loaded], at_center.data[name].values[loaded], atol=tolerance
        )


@pytest.mark.data
def test_radians_and_degrees_of_one_motion_agree():
    opencap = read_table(real("opensim/opencap_subject4/reference/walking1_ik.mot"))
    manual = read_table(real("opensim/opencap_subject4/reference/walking1_manual_scaling_ik.mot"))
    for name in ("hip_flexion_r", "knee_angle_l", "pelvis_tx"):
        a, b = (one.data["coordinate_value"].sel(coordinate=name).values for one in (opencap, manual))
        assert np.sqrt(np.mean((a - b) ** 2)) < 0.1


def force_table(arm):
    """Return a table of a loaded plate whose moment is the force times an arm [m]."""
    names = [f"ground_force_{kind}{axis}" for kind in "vp" for axis in "xyz"] + [f"ground_torque_{a}" for a in "xyz"]
    rows = "".join(f"{0.01 * k}\t0\t700\t0\t0.1\t0\t0.2\t0\t{700.0 * arm}\t0\n" for k in range(30))
    return "forces\nnRows=30\nnColumns=10\nendheader\ntime\t" + "\t".join(names) + "\n" + rows


@pytest.mark.parametrize(("arm", "expected"), [(0.01, 7.0), (0.4, 280.0), (20.0, 14.0)])
def test_moments_of_force_files_are_checked_for_plausibility(arm, expected, tmp_path):
    recording = read(force_table(arm), tmp_path)
    assert np.allclose(recording.data["plate_free_moment"].values[:, 0, 2], expected)
    noted = [note for note in recording.notes if note.code == "plate_moment"]
    assert len(noted) == (arm > 0.1) and all(note.kind == "problem" for note in noted)

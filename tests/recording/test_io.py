"""Files of every format: detected by content, read or refused with a reason, written by extension."""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.formats.csv import write_csv
from borelli.recording.formats.trc import write_trc
from borelli.recording.io import FORMATS, WRITERS, read_recording, write_recording
from borelli.recording.recording import Recording, make_dataset

from .text_recordings import marker_recordings, refuse_special_files
from .walker import real


@given(recording=marker_recordings())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_markers_survive_every_format_with_markers(recording, tmp_path):
    for ending in (".trc", ".csv", ".nc", ".c3d"):
        write_recording(recording, tmp_path / f"x{ending}", overwrite=True)
        up = {".nc": {}, ".trc": {"up": "+Y"}}.get(ending, {"up": recording.data.attrs["file_up"]})
        back = read_recording(tmp_path / f"x{ending}", **up)
        prefix = f"{back.subject['prefix']}:" if "prefix" in back.subject else ""
        assert [prefix + name for name in back.markers] == list(recording.markers), ending
        np.testing.assert_allclose(
            back.data["marker_position"],
            recording.data["marker_position"],
            atol=1e-6,
            err_msg=ending,  # C3D has single precision
        )


def test_the_format_is_detected_from_the_content(tmp_path):
    recording = Recording(real_free_dataset(), "made")
    write_recording(recording, tmp_path / "x.trc")
    shutil.move(tmp_path / "x.trc", tmp_path / "x.c3d")
    back = read_recording(tmp_path / "x.c3d")
    assert back.format == "TRC"
    assert back.notes[-1].code == "file_format"


def test_a_table_whose_title_begins_like_a_c3d_file_is_a_table(tmp_path):
    data = make_dataset({"column_value": np.ones((3, 1))}, {"column": ["a"]}, rate=100.0)
    write_recording(Recording(data, "FP1"), tmp_path / "x.sto")
    assert (tmp_path / "x.sto").read_bytes()[1] == 0x50
    assert read_recording(tmp_path / "x.sto").format == "STO"


def real_free_dataset():
    return make_dataset({"marker_position": np.ones((2, 2, 3))}, {"marker": ["A", "B"]}, rate=100.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b'<?xml version="1.0"?>\n<OpenSimDocument Version="40000">', "is an OpenSim model or setup file"),
        (b"<mujoco>", "is a MuJoCo model"),
        (b":version 1.1\n:name a\n:units\n:bonedata\n", "contains a skeleton, not its motion"),
        (b"PK\x03\x04" + bytes(100), "Unknown recording format"),
        (b"x" * 5000, "Unknown recording format"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "cannot be read as netCDF"),
    ],
)
def test_files_that_are_not_recordings_are_refused(text, part, tmp_path):
    (tmp_path / "x.dat").write_bytes(text)
    with pytest.raises(FileFormatError) as error:
        read_recording(tmp_path / "x.dat")
    assert part in str(error.value)


@pytest.mark.parametrize("ending", [ending for kind in FORMATS.values() for ending in kind.extensions])
def test_paths_that_are_not_regular_files_are_refused(ending, tmp_path):
    refuse_special_files(read_recording, tmp_path, ending)


def test_unreadable_files_are_refused(tmp_path):
    path = tmp_path / "x.trc"
    path.write_bytes(b"PathFileType")
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(FileFormatError, match="Permission denied"):
            read_recording(path)


def test_names_and_options(tmp_path):
    write_recording(Recording(real_free_dataset()), tmp_path / "x.trc")
    assert read_recording(tmp_path / "x.trc", names={"A": "LASI"}).markers == ("LASI", "B")
    with pytest.raises(SettingsError, match="Unknown marker 'C'"):
        read_recording(tmp_path / "x.trc", names={"C": "D"})
    with pytest.raises(SettingsError, match="Two markers"):
        read_recording(tmp_path / "x.trc", names={"A": "B"})
    with pytest.raises(SettingsError, match="skeleton"):
        read_recording(tmp_path / "x.trc", skeleton="a.asf")
    with pytest.raises(SettingsError, match=r"Unknown file extension .*'\.xyz'"):
        write_recording(Recording(real_free_dataset()), tmp_path / "x.xyz")
    assert set(WRITERS) == {".nc", ".c3d", ".trc", ".mot", ".sto", ".csv", ".bvh"}


@pytest.mark.data
def test_every_file_of_the_data_is_read_or_refused_with_a_reason():
    folder = real("README.md").parent
    readable = (".trc", ".mot", ".sto", ".bvh", ".amc", ".c3d")
    counts = {}
    start = time.perf_counter()
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        ending = path.suffix.lower()
        try:
            recording = read_recording(path)
        except FileFormatError as error:
            assert ending not in readable, error
            assert len(str(error).splitlines()) == 1
            continue
        counts[ending] = counts.get(ending, 0) + 1
        assert recording.data.data_vars
        for name, values in recording.data.data_vars.items():
            assert "units" in values.attrs, name
            assert not np.isinf(values).any()
    least = {".trc": 12, ".mot": 22, ".sto": 42, ".bvh": 16, ".amc": 4, ".c3d": 25, ".csv": 4}  # folders grow
    assert set(counts) == set(least) and all(counts[ending] >= n for ending, n in least.items())
    assert time.perf_counter() - start < 60.0


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d",
        "c3d/sprint_8plates/JA1Gait35.c3d",
        "opensim/hamner2010_running/subject02_running_grf.mot",
        "cmu/asfamc/02_01.amc",
    ],
)
def test_complete_recordings_survive_csv_and_netcdf(name, tmp_path):
    recording = read_recording(real(name))
    for ending in (".csv", ".nc"):
        write_recording(recording, tmp_path / f"x{ending}", overwrite=True)
        back = read_recording(tmp_path / f"x{ending}")
        assert back.data.equals(recording.data), ending
    assert back.notes == recording.notes


ASK = """
import sys
import numpy as np, opensim
found = {}
for path in sys.argv[2:]:
    table = opensim.TimeSeriesTableVec3(path) if path.endswith(".trc") else opensim.TimeSeriesTable(path)
    flat = table.flatten() if path.endswith(".trc") else table
    values = flat.getMatrix().to_numpy()
    found[path[-3:]] = np.column_stack([table.getIndependentColumn(), values])
np.savez(sys.argv[1], **found)
"""


@pytest.mark.crosscheck
@pytest.mark.data
def test_opensim_reads_written_files(tmp_path):
    python = os.environ.get("BORELLI_OPENSIM_PYTHON") or (sys.executable if find_spec("opensim") else None)
    if python is None:
        pytest.skip("opensim is not installed: set BORELLI_OPENSIM_PYTHON to a Python with it")
    markers = read_recording(real("opensim/opencap_subject4/walking1.trc"))
    write_recording(markers, tmp_path / "x.trc")
    write_recording(read_recording(real("opensim/opencap_subject4/walking1_grf.mot")), tmp_path / "x.mot")
    write_recording(read_recording(real("opensim/gait2354/reference/inverse_dynamics.sto")), tmp_path / "x.sto")
    paths = [str(tmp_path / f"x.{ending}") for ending in ("trc", "mot", "sto")]
    subprocess.run(
        [python, "-c", ASK, str(tmp_path / "out.npz"), *paths], check=True, capture_output=True, cwd=tmp_path
    )
    with np.load(tmp_path / "out.npz") as read:
        opensim = read["trc"][:, 1:].reshape(131, 51, 3) @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
        np.testing.assert_allclose(opensim, markers.data["marker_position"], atol=1e-9)
        original = np.loadtxt(real("opensim/opencap_subject4/walking1_grf.mot"), skiprows=7)
        loaded = original[:, 2] > 20.0
        np.testing.assert_allclose(read["mot"][loaded, :7], original[loaded, :7], atol=1e-6)
        assert read["sto"].shape == (73, 24)


@pytest.mark.parametrize("path", [None, 3, b"walk.c3d", ["walk.c3d"]])
def test_paths_of_a_wrong_type_are_refused_in_a_sentence(path):
    recording = Recording(real_free_dataset())
    for call in (*(kind.read for kind in FORMATS.values()), read_recording):
        with pytest.raises(SettingsError, match=r"(path \(str or Path\)|must be a str or a pathlib\.Path), got "):
            call(path)
    for write in (write_recording, Recording.to_netcdf, write_c3d, write_trc, write_csv):
        with pytest.raises(SettingsError, match=r"(path \(str or Path\)|must be a str or a pathlib\.Path), got "):
            write(recording, path)


def test_paths_may_be_strings(tmp_path):
    write_recording(Recording(real_free_dataset()), str(tmp_path / "x.trc"))
    assert read_recording(str(tmp_path / "x.trc")).markers == ("A", "B")

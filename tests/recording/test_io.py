"""Any file: told by content, every file of the data read or refused with a true reason, written by its ending."""

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
from borelli.recording.io import FORMATS, WRITERS, read_recording, write_recording
from borelli.recording.recording import Recording, make_dataset

from .text_recordings import marker_recordings, notes_of, refuse_special_files
from .walker import real


@given(recording=marker_recordings())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_markers_survive_every_format_that_holds_them(recording, tmp_path):
    for ending in (".trc", ".csv", ".nc", ".c3d"):
        write_recording(recording, tmp_path / f"x{ending}")
        up = {".nc": {}, ".trc": {"up": "+Y"}}.get(ending, {"up": recording.data.attrs["file_up"]})
        back = read_recording(tmp_path / f"x{ending}", **up)
        prefix = f"{back.subject['prefix']}:" if "prefix" in back.subject else ""
        assert [prefix + name for name in back.markers] == list(recording.markers), ending
        np.testing.assert_allclose(
            back.data["marker_position"],
            recording.data["marker_position"],
            atol=1e-6,
            err_msg=ending,  # C3D holds single precision
        )


def test_content_counts_not_the_name(tmp_path):
    recording = Recording(real_free_dataset(), "made")
    write_recording(recording, tmp_path / "x.trc")
    shutil.move(tmp_path / "x.trc", tmp_path / "x.c3d")
    back = read_recording(tmp_path / "x.c3d")
    assert back.format == "TRC"
    assert "by its content" in notes_of(back, "stated")


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
        (b'<?xml version="1.0"?>\n<OpenSimDocument Version="40000">', "is an OpenSim model or setting"),
        (b"<mujoco>", "is a MuJoCo model"),
        (b":version 1.1\n:name a\n:units\n:bonedata\n", "holds a skeleton, not its motion"),
        (b"PK\x03\x04" + bytes(100), "not known here"),
        (b"x" * 5000, "not known here"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "cannot be read as netCDF"),
    ],
)
def test_what_is_no_recording_is_refused(text, part, tmp_path):
    (tmp_path / "x.dat").write_bytes(text)
    with pytest.raises(FileFormatError) as error:
        read_recording(tmp_path / "x.dat")
    assert part in str(error.value)


@pytest.mark.parametrize("ending", [ending for kind in FORMATS.values() for ending in kind.endings])
def test_what_is_no_file_is_refused(ending, tmp_path):
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
    with pytest.raises(SettingsError, match="unknown marker 'C'"):
        read_recording(tmp_path / "x.trc", names={"C": "D"})
    with pytest.raises(SettingsError, match="two markers"):
        read_recording(tmp_path / "x.trc", names={"A": "B"})
    with pytest.raises(SettingsError, match="skeleton"):
        read_recording(tmp_path / "x.trc", skeleton="a.asf")
    with pytest.raises(SettingsError, match=r"unknown ending .*'\.xyz'"):
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
def test_whole_recordings_survive_csv_and_netcdf(name, tmp_path):
    recording = read_recording(real(name))
    for ending in (".csv", ".nc"):
        write_recording(recording, tmp_path / f"x{ending}")
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
def test_opensim_reads_what_is_written(tmp_path):
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
    with np.load(tmp_path / "out.npz") as said:
        theirs = said["trc"][:, 1:].reshape(131, 51, 3) @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
        np.testing.assert_allclose(theirs, markers.data["marker_position"], atol=1e-9)
        original = np.loadtxt(real("opensim/opencap_subject4/walking1_grf.mot"), skiprows=7)
        loaded = original[:, 2] > 20.0
        np.testing.assert_allclose(said["mot"][loaded, :7], original[loaded, :7], atol=1e-6)
        assert said["sto"].shape == (73, 24)

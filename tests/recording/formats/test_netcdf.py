"""Modified netCDF recordings: their content is checked against its description."""

import json

import h5py
import numpy as np
import pytest

from borelli.errors import FileFormatError
from borelli.recording.formats.netcdf import read_netcdf
from borelli.recording.recording import Recording, make_dataset


@pytest.fixture
def path(tmp_path):
    """Return the path of a written recording of four frames."""
    variables = {"marker_position": np.ones((4, 2, 3)), "event_time": [0.01, 0.02]}
    labels = {"marker": ["A", "B"], "event": [0, 1], "event_label": ["on", "off"], "event_context": ["Left", "Left"]}
    Recording(make_dataset(variables, labels, rate=100.0), "x").to_netcdf(tmp_path / "x.nc", overwrite=True)
    return tmp_path / "x.nc"


def rewrite(file, name, values):
    """Replace the values of a name; they have no dimensions then."""
    del file[name]
    file[name] = values


def describe(file, **changes):
    about = json.loads(file.attrs["borelli_recording"])
    file.attrs["borelli_recording"] = json.dumps(about | changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f["marker"].write_direct(np.array(["A", "A"], dtype=object)),
            "2 markers have only 1 different names",
        ),
        (
            lambda f: f["time"].write_direct(np.array([0.0, np.nan, 0.1, 0.2])),
            "time contains numbers that are not finite",
        ),
        (
            lambda f: rewrite(f, "marker_position", np.ones((4, 2))),
            "marker_position contains .*, expected numbers along time, marker",
        ),
        (
            lambda f: rewrite(f, "marker_position", np.ones((4, 2, 3), dtype=complex)),
            "contains complex128, expected numbers",
        ),
        (lambda f: f.pop("event_label"), "event_time has no coordinate 'event_label'"),
        (lambda f: f.attrs.modify("rate_hz", -1.0), "rate_hz is '-1.0', expected a finite number above 0"),
        (lambda f: f.attrs.create("rate", 100.0), "attribute 'rate' is of an earlier version.* Rename it to 'rate_hz'"),
        (lambda f: f.attrs.modify("borelli_recording", "{"), "borelli_recording is not JSON"),
        (lambda f: describe(f, name=3), "name is 3, expected a string"),
        (lambda f: describe(f, subject={"mass": 10**400}), "The subject's mass is 1000"),
        (
            lambda f: describe(f, notes=[{"text": "x"}]),
            "A note is .*, expected the strings text, kind, action and code",
        ),
        (lambda f: describe(f, other=1), "expected name, path, format, subject, metadata, notes"),
        (lambda f: f.create_group("more"), "'more' is a group, expected variables only"),
        (lambda f: f.create_dataset("z", (10**6, 10**4), dtype="f8", chunks=(9, 9)), "would take 80000"),
        (lambda f: f.create_dataset("z", (1,), maxshape=(None,), chunks=(2**25,), dtype="f8"), "would take 268"),
    ],
)
def test_inconsistent_files_are_refused_with_the_location(path, change, message):
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(FileFormatError, match=message):
        read_netcdf(path)


def test_strings_that_share_one_long_string_are_measured_before_loading(path):
    """Elements are references into a heap; a thousand of them are set to one string of two megabytes."""
    with h5py.File(path, "r+") as file:
        made = file.create_dataset("many", data=["first", *["x"] * 999], dtype=h5py.string_dtype())
        made[0] = "n" * 2_000_000
        start = made.id.get_offset()
    raw = bytearray(path.read_bytes())
    raw[start : start + 16_000] = raw[start : start + 16] * 1000
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match=r"its arrays up to 'many' would take 1\d{10}"):
        read_netcdf(path)


def test_infinite_numbers_and_times_that_do_not_increase_are_noted(path):
    with h5py.File(path, "r+") as file:
        file["marker_position"][1, 0, 2] = np.inf
        file["time"][:] = [0.0, 0.01, 0.01, 0.02]
    found = read_netcdf(path)
    assert (
        np.isnan(found.data["marker_position"].values[1, 0, 2])
        and np.isfinite(found.data["marker_position"].values).sum() == 23
    )
    problems = [note for note in found.notes if note.kind == "problem"]
    assert [note.code for note in problems] == ["implausible_values", "time_not_increasing"]
    assert [note.text.split(" ", 1)[0] for note in problems] == ["1", "1"]

"""netCDF recordings that someone has changed: what they promise is held against what they hold."""

import json

import h5py
import numpy as np
import pytest

from borelli.errors import FileFormatError
from borelli.recording.recording import Recording, make_dataset


@pytest.fixture
def path(tmp_path):
    """A recording of four frames, written."""
    variables = {"markers": np.ones((4, 2, 3)), "event_time": [0.01, 0.02]}
    labels = {"marker": ["A", "B"], "event": [0, 1], "event_label": ["on", "off"], "event_context": ["Left", "Left"]}
    Recording(make_dataset(variables, labels, rate=100.0), "x").to_netcdf(tmp_path / "x.nc")
    return tmp_path / "x.nc"


def rewrite(file, name, values):
    """Puts other values under a name; they have no dimensions then."""
    del file[name]
    file[name] = values


def describe(file, **changes):
    about = json.loads(file.attrs["borelli_recording"])
    file.attrs["borelli_recording"] = json.dumps(about | changes)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda f: f["marker"].write_direct(np.array(["A", "A"], dtype=object)), "2 markers have 1 names"),
        (lambda f: f["time"].write_direct(np.array([0.0, np.nan, 0.1, 0.2])), "time holds numbers that are not finite"),
        (lambda f: rewrite(f, "markers", np.ones((4, 2))), "markers holds .* but must hold numbers along time, marker"),
        (lambda f: rewrite(f, "markers", np.ones((4, 2, 3), dtype=complex)), "holds complex128, but must hold numbers"),
        (lambda f: f.pop("event_label"), "event_time has no coordinate 'event_label'"),
        (lambda f: f.attrs.modify("rate", -1.0), "rate is '-1.0', but must be a finite number above 0"),
        (lambda f: f.attrs.modify("borelli_recording", "{"), "borelli_recording is no JSON"),
        (lambda f: describe(f, name=3), "name is 3, but must be a text"),
        (lambda f: describe(f, subject={"mass": 10**400}), "the subject's 'mass' is 1000"),
        (lambda f: describe(f, notes=[{"text": "x"}]), "a note is .* but must have text, kind, action and code"),
        (lambda f: describe(f, other=1), "must hold name, path, format, subject, metadata, notes"),
        (lambda f: f.create_group("more"), "'more' is a group without numbers"),
        (lambda f: f.create_dataset("z", (10**6, 10**4), dtype="f8", chunks=(9, 9)), "would take 80000"),
        (lambda f: f.create_dataset("z", (1,), maxshape=(None,), chunks=(2**25,), dtype="f8"), "would take 268"),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_place(path, change, said):
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(FileFormatError, match=said):
        Recording.from_netcdf(path)


def test_texts_that_are_all_one_long_text_are_measured_before_they_are_loaded(path):
    """Elements are references into a heap; those of a thousand are made to lead to one text of two megabytes."""
    with h5py.File(path, "r+") as file:
        made = file.create_dataset("many", data=["first", *["x"] * 999], dtype=h5py.string_dtype())
        made[0] = "n" * 2_000_000
        start = made.id.get_offset()
    raw = bytearray(path.read_bytes())
    raw[start : start + 16_000] = raw[start : start + 16] * 1000
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match=r"the arrays up to 'many' would take 2\d{8}"):
        Recording.from_netcdf(path)


def test_infinite_numbers_and_times_that_stand_still_are_noted(path):
    with h5py.File(path, "r+") as file:
        file["marker_position"][1, 0, 2] = np.inf
        file["time"][:] = [0.0, 0.01, 0.01, 0.02]
    found = Recording.from_netcdf(path)
    assert np.isnan(found.data["marker_position"].values[1, 0, 2]) and np.isfinite(found.data["marker_position"].values).sum() == 23
    assert [note.text.split(" ", 1)[0] for note in found.notes if note.kind == "problem"] == ["1", "1"]

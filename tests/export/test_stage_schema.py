"""Stage files with a right checksum and contents that contradict each other or the model."""

import json

import h5py
import numpy as np
import pytest

from borelli.commands.detect_file import open_file
from borelli.errors import FileFormatError
from borelli.export.stage_files import open_stage_file
from borelli.export.uncertainty_files import load_uncertainty
from borelli.recording.io import read_recording

from ..hostile.attacks import few_and_full
from ..hostile.stage_mutations import stamped, unstamped
from ..hostile.stage_seeds import energy, read_any, stage_files


def written(folder, name, edit):
    """Return the path of a file that was changed through HDF5, with its checksum."""
    path = folder / name
    path.write_bytes(unstamped(stage_files()[name]))
    with h5py.File(path, "r+") as file:
        edit(file)
    path.write_bytes(stamped(path.read_bytes()))
    return path


def metadata(*keys, value=None):
    """Return a change of one value in the metadata."""

    def edit(file):
        table = json.loads(file.attrs["borelli_metadata"])
        part = table
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value
        file.attrs["borelli_metadata"] = json.dumps(table)

    return edit


def values(name, at, value):
    """Return a change of one value of a variable."""

    def edit(file):
        file[name][at] = value

    return edit


def relabel(file):
    file["motion/coordinate"][0] = "other"


def unscale(file):
    """Give a variable one frame less than its dimension has."""
    old = file["torques/torque"][1:]
    del file["torques/torque"]
    file["torques/torque"] = old
    for axis, name in enumerate(("time", "coordinate")):
        file["torques/torque"].dims[axis].attach_scale(file[f"torques/{name}"])


CONTRADICTIONS = [
    ("motion.nc", lambda f: f.__delitem__("motion/body_position"), "'body_position' is missing"),
    ("motion.nc", lambda f: f.__delitem__("motion"), "motion.nc"),
    ("motion.nc", values("motion/time", 3, np.nan), "times are not finite"),
    ("motion.nc", values("motion/coordinate_value", (2, 1), np.inf), "coordinate_value contains infinite"),
    ("motion.nc", relabel, "coordinate is other, .* but the model has x"),
    ("motion.nc", lambda f: f["motion"].attrs.__setitem__("rate_hz", -1.0), "rate_hz is -1"),
    (
        "motion.nc",
        lambda f: f["motion"].attrs.__setitem__("rate_hz", 1e9),
        "rate_hz is 1e.09, but the times are 0.01 s apart",
    ),
    ("motion.nc", lambda f: f["motion"].attrs.__setitem__("rate_hz", "fast"), "rate_hz is 'fast', expected a number"),
    ("motion.nc", lambda f: f.attrs.__delitem__("model"), "The model is missing"),
    ("motion.nc", lambda f: f.attrs.__setitem__("model", "x = "), "Invalid TOML"),
    ("motion.nc", lambda f: f.attrs.__setitem__("borelli_stage", "torques"), "torques"),
    ("motion.nc", metadata("motion", value=[]), "motion.settings is missing"),
    ("motion.nc", metadata("motion", "notes", value=3), "The notes are 3, expected a list"),
    ("motion.nc", metadata("recording", "subject", value=[]), "subject is .*, expected a table"),
    ("torques.nc", unscale, "variables and dimensions are inconsistent"),
    ("torques.nc", metadata("torques", "settings", "filter", value=7), "The filter of the torques"),
    ("torques.nc", metadata("torques", "settings", "cutoff_hz", value="6"), "The filter of the torques"),
    ("torques.nc", metadata("torques", "settings", "cutoff_hz", value=10**400), "cutoff of the torques"),
    ("torques.nc", values("torques/time", 3, 0.0301), "times of motion and torques differ"),
    ("torques.nc", values("torques/time", 3, 9.0), "times do not increase"),
    ("torques.nc", values("loads/load_body", 0, "hand"), "Loads act on hand"),
    ("torques.nc", lambda f: f["loads"].attrs.__setitem__("notes", "3"), "The notes are 3"),
    ("torques.nc", lambda f: f["loads"].attrs.__setitem__("belt", [1.0]), "belt velocity is not three numbers"),
    ("torques.nc", lambda f: f["torques"].attrs.__setitem__("mass_kg", "x"), "mass_kg is 'x', expected a number"),
    ("muscles.nc", values("muscles/time", 0, -0.1), "times of muscles and torques differ"),
    ("muscles.nc", values("torques/torque", (2, 6), np.nan), "Muscles produce torques that are missing"),
    ("muscles.nc", metadata("muscles", "settings", "cost", value=None), "cost of the muscle forces"),
    ("muscles.nc", metadata("muscles", "settings", "exponent", value="2"), "exponent is '2', expected a number"),
    ("metabolic.nc", values("muscles/unattained_torque", (2, 6), np.nan), "Muscles produce torques that are missing"),
    ("energy.nc", values("energy/time", 0, -0.1), "times of energy and torques differ"),
    ("energy.nc", values("energy/foot", 0, "third"), "feet of energy and torques differ"),
    ("energy.nc", metadata("energy", "summary", "net_work_j", value="x"), "net_work_j is 'x', expected a number"),
    ("energy.nc", metadata("energy", "summary", value=[]), "summary of energy"),
    ("fit.nc", lambda f: f.__delitem__("length"), "'length' is missing"),
    ("fit.nc", metadata("train_rms", value=[]), "train_rms is .*, expected a number"),
    ("fit.nc", metadata("iterations", value=None), "number of iterations"),
    ("uncertainty.nc", lambda f: f.__delitem__("curves"), "The group 'curves' is missing"),
    ("uncertainty.nc", lambda f: f.__delitem__("energy/kinetic_energy_low"), "energy/kinetic_energy does not have"),
    ("uncertainty.nc", values("torques/time", 0, -0.1), "times of torques are not those of the energy"),
    ("uncertainty.nc", metadata("repeats", value=True), "repeats is missing"),
    ("uncertainty.nc", metadata("marker_noise", value={}), "marker noise is missing"),
    ("result.nc", lambda f: f.__delitem__("joint_gap"), "joint_gap does not contain numbers along time"),
    ("result.nc", lambda f: f.attrs.__delitem__("step_s"), "step_s is 'None', expected a number"),
]


@pytest.mark.parametrize(("name", "edit", "message"), CONTRADICTIONS)
def test_contradictions_are_refused_in_one_sentence(tmp_path, name, edit, message):
    with pytest.raises(FileFormatError, match=message):
        read_any(written(tmp_path, name, edit))


def test_unchanged_files_are_read(tmp_path):
    for name in stage_files():
        read_any(written(tmp_path, name, lambda file: None))


def test_variables_of_the_user_are_kept(tmp_path):
    path = written(tmp_path, "motion.nc", lambda file: file["motion"].create_dataset("own", data=2.5))
    assert float(open_file(path).value.data["own"]) == 2.5


@few_and_full
def test_no_flipped_bit_is_loaded(full, tmp_path):
    """Each of 5,000 files with one flipped bit is refused, or everything loaded from it is the same."""
    random = np.random.default_rng(7)
    names, loaded = list(stage_files()), 0
    for number in range(5000 if full else 400):
        name = names[number % len(names)]
        content = bytearray(stage_files()[name])
        # every tenth in the checksum itself
        place = int(random.integers(len(content)) if number % 10 else len(content) - random.integers(1, 81))
        content[place] ^= 1 << int(random.integers(8))
        path = tmp_path / name
        path.write_bytes(content)
        try:
            found = read_any(path)
        except FileFormatError as error:
            assert name in str(error)
            continue
        loaded += 1
        path.write_bytes(stage_files()[name])
        assert name == "recording.nc" and found.data.identical(read_recording(path).data)
        assert [note.code for note in found.notes] == ["no_checksum"]
    assert loaded > 0, "a flipped bit in the checksum of a recording leaves a recording without checksum"


def test_recordings_of_other_programs_are_read_with_a_note_and_results_are_not(tmp_path):
    for name, content in stage_files().items():
        path = tmp_path / name
        path.write_bytes(unstamped(content))
        if name == "recording.nc":
            assert [note.code for note in read_any(path).notes] == ["no_checksum"]
            continue
        with pytest.raises(FileFormatError, match="has no checksum"):
            read_any(path)


def test_uncertainty_is_read_as_written(tmp_path):
    path = written(tmp_path, "uncertainty.nc", lambda file: None)
    found = load_uncertainty(open_stage_file(path), energy())
    assert found.repeats == 3 and found.groups["torques"]["torque_sd"].dims == ("time", "coordinate")

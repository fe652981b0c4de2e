"""Markers put on the model by landmark: as good a fit as with the marker set of the recording, and refusals."""

import numpy as np
import pytest

from borelli.analysis.fit import frame_selection
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.fit.frame_selection import choose_marker_set
from borelli.analysis.fit.landmark_dressing import dress_by_landmarks
from borelli.errors import SettingsError
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.cleaning.trim_to_visible import trim_to_visible
from borelli.recording.io import read_recording, rename_markers
from borelli.recording.marker_map import apply_marker_map, read_marker_map
from borelli.synthetic.recordings import synthetic_recording

from ...shared_data import shared

MAX_ERROR_CHANGE = 0.5e-3
"""[m] RMS marker error compared with that of the recording's own set."""
MAX_LEG_CHANGE = 0.010
"""[m] Lengths of thigh and shank compared with those of the recording's own set."""
TRIALS = {
    "hdm/data.c3d": (70.0, 1.75),
    "c3d/qualisys_walk/Qualisys.c3d": (70.0, 1.75),
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d": (70.0, 1.75),
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": (47.5, 1.505),
    "opensim/moco_examples/walking_3d/markers_walk.trc": (70.0, 1.75),
}
PAIRS = {"KNE": "Knee lateral", "ANK": "outer ankle", "HEE": "heel", "ELB": "elbow", "FWT": "ASIS", "BWT": "PSIS"}


@pytest.fixture(scope="module")
def walk():
    return clean(synthetic_recording("walk").recording)


def compare(recording, model, monkeypatch):
    """Return the fits with the recording's own set, and by landmarks."""
    own = fit_model(model, recording)
    monkeypatch.setattr(frame_selection, "_add_best_set", lambda model, labels, first: None)
    return own, fit_model(model, recording)


def check_legs(own, other):
    for name in ("thigh_r", "thigh_l", "shank_r", "shank_l"):
        assert abs(other.lengths[name] - own.lengths[name]) < MAX_LEG_CHANGE, name


def test_landmarks_give_the_lengths_of_the_set(walk, monkeypatch):
    """Without the toe markers, which the set has on the toes and the atlas on the foot."""
    walk = walk.with_data(walk.data.drop_sel(marker=["RTOE", "LTOE"]))
    own, other = compare(walk, human(68.0, 1.72, "female"), monkeypatch)
    assert len(other.model.markers) == len(own.model.markers) == 39
    check_legs(own, other)
    assert other.held_out_rms - own.held_out_rms < MAX_ERROR_CHANGE
    codes = {note.code for note in other.notes}
    assert "marker_landmarks" in codes and "marker_set" not in codes


@pytest.mark.data
@pytest.mark.parametrize("name", TRIALS)
def test_real_trials_fit_as_well_without_their_set(name, monkeypatch):
    recording = trim_to_visible(clean(read_recording(shared(name)), cutoff=None))
    own, other = compare(recording, human(*TRIALS[name]), monkeypatch)
    assert len(other.model.markers) >= len(own.model.markers)
    check_legs(own, other)
    assert abs(other.train_rms - own.train_rms) < MAX_ERROR_CHANGE
    assert abs(other.held_out_rms - own.held_out_rms) < MAX_ERROR_CHANGE


def test_names_of_no_set_are_dressed(walk):
    """The labels are words that no set has; the markers get the bodies of their landmarks."""
    names = {f"{s[0]}{code}": f"{s} {words}" for s in ("Right", "Left") for code, words in PAIRS.items()}
    recording = rename_markers(walk, names)
    recording = recording.with_data(recording.data.sel(marker=list(names.values())))
    model, notes = dress_by_landmarks(human(), (recording,))
    bodies = {marker.name: marker.body for marker in model.markers}
    assert bodies["Right Knee lateral"] == "thigh_r" and bodies["Left heel"] == "foot_l" and len(bodies) == 12
    assert "unsure_labels" in {note.code for note in notes}


def test_landmarks_that_a_map_names_join_the_marker_set(walk, tmp_path):
    """Knees whose labels mean nothing: with the map of docs/markers.md the fit has all markers of the original."""
    own = rename_markers(walk, {"RKNE": "K1", "LKNE": "K2"})
    text = 'format = "borelli-marker-map"\nversion = 1\n[markers]\n'
    (tmp_path / "map.toml").write_text(text + 'K1 = "right knee_lateral"\nK2 = "left knee_lateral"\n')
    original, _ = choose_marker_set(human(), [walk])
    unknown, _ = choose_marker_set(human(), [own])
    mapped, notes = choose_marker_set(human(), [apply_marker_map(own, read_marker_map(tmp_path / "map.toml"))])
    knees = {"right.knee_lateral": "thigh_r", "left.knee_lateral": "thigh_l"}
    assert len(mapped.markers) == len(original.markers) == len(unknown.markers) + 2
    assert knees.items() <= {marker.name: marker.body for marker in mapped.markers}.items()
    assert "right.knee_lateral" in next(note.text for note in notes if note.code == "marker_set")


def test_a_cluster_marker_is_put_where_it_is_seen(walk):
    """A thigh marker 80 mm above its usual position is found there, not where the atlas has it."""
    model, _ = dress_by_landmarks(human(68.0, 1.72, "female"), (walk,))
    usual = np.array(next(marker.position for marker in model.markers if marker.name == "RTHI"))
    data = walk.data.copy(deep=True)
    points = data["marker_position"].values
    index = {name: walk.markers.index(name) for name in ("RTHI", "RKNE")}
    up = points[:, index["RTHI"]] - points[:, index["RKNE"]]
    points[:, index["RTHI"]] += 0.08 * up / np.linalg.norm(up, axis=1, keepdims=True)
    moved, _ = dress_by_landmarks(human(68.0, 1.72, "female"), (walk.with_data(data),))
    shift = np.array(next(marker.position for marker in moved.markers if marker.name == "RTHI")) - usual
    assert 0.03 < shift[2] < 0.09 and np.abs(shift[:2]).max() < 0.03


def test_too_few_landmarks_are_refused_with_the_command_that_helps(walk):
    names = [f"Q{chr(65 + i)}" for i in range(len(walk.markers))]
    unknown = walk.with_data(walk.data.assign_coords(marker=names))
    with pytest.raises(SettingsError, match=r"borelli markers FILE --write map\.toml"):
        fit_model(human(), unknown)


def test_markers_that_are_not_on_their_segments_are_refused(walk):
    """Thigh and upper arm markers are exchanged: they are seen far from their segments."""
    names = {"RTHI": "LUPA", "LUPA": "RTHI", "LTHI": "RUPA", "RUPA": "LTHI", "RSHN": "RFRM", "RFRM": "RSHN"}
    with pytest.raises(SettingsError, match="misread"):
        dress_by_landmarks(human(68.0, 1.72, "female"), (rename_markers(walk, names),))

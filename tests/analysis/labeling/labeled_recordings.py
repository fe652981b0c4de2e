"""Shared recordings with the landmark of every label, from the published table of conventions."""

import csv
import tomllib
from collections import defaultdict
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from borelli.model.landmark_atlas import MarkerLandmark
from borelli.model.marker_sets import list_marker_sets
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.label_swaps import repair_label_swaps
from borelli.recording.identify_marker_set import rank_marker_sets
from borelli.recording.io import read_recording
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording
from tests.shared_data import shared

FILES = (
    "hdm/data.c3d", "cmu/c3d/02_05.c3d", "cmu/c3d/06_01_misnamed_dribble_shoot.c3d", "cmu/c3d/85_02.c3d",
    "c3d/format_variants/sample02/pc_real.c3d", "c3d/motionanalysis_gait/Gait.c3d",
    "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d", "c3d/motionanalysis_walk_jump/Walk1.c3d",
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d", "c3d/motionmonitor_metres/Static_Pose.c3d",
    "c3d/opensim_walking2/walking2.c3d", "c3d/pycgm_movement/Movement_trial.c3d", "c3d/qualisys_walk/Qualisys.c3d",
    "c3d/sprint_8plates/JA1Gait35.c3d", "c3d/vicon_overground_4plates/test_small.c3d",
    "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d", "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d",
    "opensim/hamner2010_running/subject02_running.trc", "opensim/hamner2010_running/subject02_static.trc",
    "opensim/moco_examples/walking_3d/markers_walk.trc", "opensim/opencap_subject4/DJ1.trc",
    "opensim/opencap_subject4/walking1.trc", "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc",
    "opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
    "opensim/subject01_walk/subject01_static.trc", "opensim/subject01_walk/subject01_walk1.trc",
)  # fmt: skip
"""Recordings of people with markers."""
SAME_FRACTION = 0.9
"""Fraction of the labels of the best convention from which on another one is the same with other spellings."""
NOT_AS_IN_THE_TABLE = {
    ("c3d/qualisys_walk", "R_UHE"): "wrist_ulnar", ("c3d/qualisys_walk", "L_UHE"): "wrist_ulnar",
    ("opensim/moco_examples/walking_3d", "R.Toe"): "hallux", ("opensim/moco_examples/walking_3d", "L.Toe"): "hallux",
    ("opensim/rajagopal2016/walk", "R.Toe"): "hallux", ("opensim/rajagopal2016/walk", "L.Toe"): "hallux",
}  # fmt: skip
"""Labels that mean another landmark in recordings than in the convention of the same spelling, by folder.

The scaled model that comes with the trial of Rajagopal et al. (2016) has R.Toe on the toes, 88 mm before the joint of
the toes and 23 mm to its medial side: on the tip of the big toe, not on the second metatarsal.
"""


class LabeledRecording(NamedTuple):
    """Markers on a person, without computed points, and what their labels mean."""

    recording: Recording
    points: Array
    """(frames, markers, 3) [m]; NaN where missing."""
    markers: tuple[MarkerLandmark, ...]
    segment: tuple[str, ...]


@cache
def conventions() -> dict[str, dict[str, dict[str, str]]]:
    """Return the rows of the table by convention and label."""
    table: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    with shared("tables/marker_labels.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            table[row["convention"]][_plain(row["label"])] = row
    return table


def _plain(label: str) -> str:
    return "".join(c for c in label.rpartition(":")[2].lower() if c.isalnum())


@cache
def labeled_recording(name: str) -> LabeledRecording:
    """Return a recording with the landmarks of the convention that explains most of its labels, then of others."""
    recording = repair_label_swaps(read_recording(shared(name)))
    folder, labels = name.rpartition("/")[0], [_plain(label) for label in recording.markers]
    ranked = sorted(conventions().values(), key=lambda table: -sum(label in table for label in labels))
    rows = [next((t[label] for t in ranked[:3] if label in t), None) for label in labels]
    points = recording.data["marker_position"].values.copy()
    points[(points == 0.0).all(axis=-1)] = np.nan
    worn = [
        i
        for i, row in enumerate(rows)
        if row and row["kind"] in ("landmark", "cluster", "wand") and np.isfinite(points[:, i]).any()
    ]
    chosen = [(recording.markers[i], rows[i]) for i in worn]
    markers = tuple(
        MarkerLandmark(label, NOT_AS_IN_THE_TABLE.get((folder, label), r["landmark"]), r["side"], r["kind"])
        for label, r in chosen
        if r
    )
    return LabeledRecording(recording, points[:, worn], markers, tuple(r["segment"] for _, r in chosen if r))


def own_marker_set(recording: Recording) -> tuple[str, ...]:
    """Return the marker set of borelli that has most of the labels of a recording, and the conventions that do."""
    files = {_set_name(name): name for name in list_marker_sets() if not name.startswith("joint_centers")}
    ranked = (match.set.name for match in rank_marker_sets(recording.markers))
    own = next(((files[name],) for name in ranked if name in files), ())
    conventions = interpret_labels(recording.markers).conventions
    return (*own, *(name for name, fraction in conventions if fraction >= SAME_FRACTION * conventions[0][1]))


def _set_name(name: str) -> str:
    text = (resources.files("borelli.model") / "data" / "markersets" / f"{name}.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["name"])

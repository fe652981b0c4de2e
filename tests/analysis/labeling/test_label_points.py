"""Labels of unnamed points: right where they are sure, for the whole body and parts of it, in any order."""

import numpy as np
import pytest

from borelli.analysis.labeling.generic_body import generic_model
from borelli.analysis.labeling.label_cloud import label_cloud
from borelli.analysis.labeling.label_points import PointLabels, label_points
from borelli.analysis.labeling.objects import find_objects
from borelli.analysis.labeling.tracklets import join_tracklets, split_into_tracklets, tracklet_points
from borelli.model.landmark_atlas import MarkerLandmark, find_in_atlas
from borelli.numerics.vectors import Array
from tests.analysis.labeling.labeled_recordings import FILES, LabeledRecording, labeled_recording, own_marker_set
from tests.analysis.labeling.test_check_labels import synthetic_markers

WRISTS = {"wrist_radial", "wrist_ulnar", "wrist"}
"""Landmarks that geometry cannot tell apart: the forearm may be rotated."""
SAME_PLACE = 0.02
"""[m] Landmarks of one body that are nearer than this in the atlas are one place under several names.

It is the standard deviation of soft places over laboratories: `clavicle` and `sternoclavicular` (published models of
two recordings have them 28 and 24 mm from the midline), `back_offset` and `scapula` (Plug-in Gait puts RBAK in the
middle of the right scapula), `sternum` and `chest`, T7 and T8, metatarsals and their bases, `hand` and `mc3`.
"""
MIDLINE_SEGMENTS = ("head", "torso", "pelvis")
CLUSTERS_ONLY = "c3d/format_variants/sample02/pc_real.c3d"
"""Recording of rigid clusters without a landmark, which no label table explains."""


def is_same_place(found: str, true: str, side: str) -> bool:
    """Return whether two names mean one place on the body."""
    if found == true or {found, true} <= WRISTS:
        return True
    one, other = (find_in_atlas(name, side, "landmark") for name in (found, true))
    if one is None or other is None or one.body != other.body:
        return False
    distance = np.array(one.position(generic_model())) - other.position(generic_model())
    return float(np.linalg.norm(distance)) < SAME_PLACE


class Count:
    """Right and wrong labels."""

    def __repr__(self) -> str:
        return f"{self.points} markers, segments {self.segments}, landmarks {self.landmarks}, sure {self.sure}"

    def __init__(self) -> None:
        self.points = self.segments = self.landmarks = 0
        self.sure = self.sure_wrong = 0

    def add(self, trial: LabeledRecording, found: PointLabels) -> None:
        for marker, segment, label in zip(trial.markers, trial.segment, found.labels, strict=True):
            self.points += 1
            if label is None:
                continue
            # a cluster is judged by its body, which has no side on the midline
            sideless = marker.kind != "landmark" and segment in MIDLINE_SEGMENTS
            on_segment = label.segment == segment and (label.side == marker.side or sideless)
            at_landmark = on_segment and is_same_place(label.landmark, marker.landmark, marker.side)
            self.segments += on_segment
            self.landmarks += at_landmark or (on_segment and marker.kind != "landmark")
            self.sure += label.sure_segment
            self.sure_wrong += (label.sure_segment and not on_segment) or (label.sure_landmark and not at_landmark)


def shuffled(trial: LabeledRecording) -> LabeledRecording:
    order = np.random.default_rng(0).permutation(len(trial.markers))
    markers, segments = (tuple(row[i] for i in order) for row in (trial.markers, trial.segment))
    return LabeledRecording(trial.recording, trial.points[:, order], markers, segments)


def synthetic_trial(bodies: tuple[str, ...] = ()) -> LabeledRecording:
    points, markers = synthetic_markers()
    segments = [_segment(marker) for marker in markers]
    kept = [i for i, segment in enumerate(segments) if not bodies or segment in bodies]
    chosen, names = tuple(markers[i] for i in kept), tuple(segments[i] for i in kept)
    return shuffled(LabeledRecording(None, points[:, kept], chosen, names))  # type: ignore[arg-type]


def _segment(marker: MarkerLandmark) -> str:
    found = find_in_atlas(marker.landmark, marker.side, marker.kind)
    assert found is not None
    return found.segment


@pytest.mark.parametrize("without", [(), pytest.param(("cmu41", "plugin_gait"), marks=pytest.mark.slow)])
def test_synthetic_walk_without_names(without: tuple[str, ...]) -> None:
    trial = synthetic_trial()
    found = label_points(trial.points, without=without)
    assert found is not None and found.part == "whole body" and not found.uncertainties
    assert found.height == pytest.approx(1.72, abs=0.06)
    count = Count()
    count.add(trial, found)
    assert count.segments >= 0.95 * count.points and count.sure > 0.2 * count.points and count.sure_wrong == 0


def test_legs_are_recognized() -> None:
    trial = synthetic_trial(("pelvis", "thigh", "shank", "foot"))
    found = label_points(trial.points)
    assert found is not None and found.part == "legs"
    count = Count()
    count.add(trial, found)
    assert count.segments == count.points and count.sure_wrong == 0


def test_points_that_are_not_a_body_have_no_sure_labels() -> None:
    assert label_points(synthetic_trial().points[:, :5]) is None
    assert label_points(np.full((4, 20, 3), np.nan)) is None
    assert label_points(np.zeros((2, 1000, 3))) is None
    rng = np.random.default_rng(2)
    flat = rng.uniform(-1.0, 1.0, (1, 12, 3)) * (1.0, 1.0, 0.0)
    for points in (np.zeros((3, 8, 3)), flat):
        found = label_points(points)
        assert found is not None and found.uncertainties
        assert not any(label is not None and label.sure_segment for label in found.labels)


def in_any_order(points: Array) -> tuple[Array, Array]:
    rng = np.random.default_rng(8)
    order = np.array([rng.permutation(points.shape[1]) for _ in points])
    return np.take_along_axis(points, order[..., None], axis=1), order


def test_tracklets_are_pure() -> None:
    points, order = in_any_order(synthetic_trial().points)
    index = join_tracklets(points)
    tracks = tracklet_points(points, index)
    assert np.isfinite(tracks).all(axis=-1).sum() == np.isfinite(points).all(axis=-1).sum()
    for column in index.T:
        frames = np.flatnonzero(column >= 0)
        assert (np.diff(frames) == 1).all()
        assert len(set(order[frames, column[frames]])) == 1
    # a body of one marker per frame at random positions is not joined
    random = np.random.default_rng(1).uniform(-1.0, 1.0, (50, 3, 3))
    assert (join_tracklets(random) >= 0).sum(axis=0).max() <= 3


def test_columns_with_gaps_are_tracklets() -> None:
    points = synthetic_trial().points.copy()
    points[40:50, 3] = np.nan
    points[60:, 5], points[:60, 7] = points[60:, 7].copy(), np.nan  # the column goes on with another marker
    index = split_into_tracklets(points)
    pieces = {(int(c[c >= 0][0]), *np.flatnonzero(c >= 0)[[0, -1]]) for c in index.T if (c >= 0).sum() > 10}
    assert {(3, 0, 39), (5, 0, 59)} <= {(column, begin, end) for column, begin, end in pieces}
    assert {(3, 50), (5, 60), (7, 60)} <= {(column, begin) for column, begin, _ in pieces}


def test_points_that_move_together_are_an_object() -> None:
    trial = synthetic_trial()
    rng = np.random.default_rng(3)
    angle = np.linspace(0.0, 2.0, len(trial.points))
    rotation = np.array([[[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]] for a in angle])
    box = np.einsum("fij,pj->fpi", rotation, rng.uniform(-0.3, 0.3, (4, 3))) + np.array([0.5, 2.0, 0.3])
    points = np.concatenate([trial.points, box + rng.normal(0.0, 0.001, box.shape)], axis=1)
    far = np.ones(points.shape[1], bool)
    objects = find_objects(points, far)
    assert len(set(objects[-4:])) == 1 and objects[-1] >= 0 and not np.isin(objects[:-4], objects[-1]).any()
    far[-4:] = False
    assert (find_objects(points, far)[-4:] == -1).all()


def test_cloud_in_any_order() -> None:
    trial = synthetic_trial()
    body = len(trial.markers)
    points, order = in_any_order(trial.points)
    found = label_cloud(points)
    assert found is not None
    seen, labeled = np.isfinite(points).all(axis=-1), found.marker >= 0
    names = np.array([(label.segment, label.side) for label in found.labels])
    truth = np.array([(trial.segment[i], trial.markers[i].side) for i in range(body)])
    right = labeled & (names[found.marker] == truth[order]).all(axis=-1)
    assert not (labeled & ~seen).any() and not (found.objects >= 0).any()
    assert right.sum() >= 0.97 * seen.sum()
    assert (labeled & ~right).sum() <= 0.01 * seen.sum()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("set_known", [True, False])
def test_recordings_without_names(set_known: bool) -> None:
    counts = Count(), Count()
    names = [name for name in FILES if name != CLUSTERS_ONLY]
    for i, name in enumerate(names):
        trial = shuffled(labeled_recording(name))
        found = label_points(trial.points, without=() if set_known else own_marker_set(trial.recording))
        assert found is not None
        one = Count()
        for count in (one, counts[i % 2]):
            count.add(trial, found)
        print(f"{name}: {one}, like {found.marker_set} {found.part}; {'; '.join(found.uncertainties)}")
    for half, count in zip(("chosen on", "judged on"), counts, strict=True):
        print(f"{half}: {count}")
        assert count.sure_wrong == 0
    points, segments, landmarks = (
        sum(getattr(one, key) for one in counts) for key in ("points", "segments", "landmarks")
    )
    assert segments >= 0.975 * points
    assert landmarks >= (0.96 if set_known else 0.925) * points

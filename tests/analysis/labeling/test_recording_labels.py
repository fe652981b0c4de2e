"""Recordings without names: named by geometry with a note, refused when uncertain; names that contradict geometry."""

import numpy as np
import pytest

from borelli.analysis.labeling.recording_labels import (
    check_marker_labels,
    label_unnamed,
    name_markers,
    read_by_geometry,
)
from borelli.errors import SettingsError
from borelli.recording import rename_markers
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording
from borelli.synthetic import synthetic_recording
from tests.analysis.labeling.labeled_recordings import labeled_recording

WALK = synthetic_recording("walk", seed=6).recording


def numbered(recording: Recording) -> Recording:
    order = np.random.default_rng(3).permutation(len(recording.markers))
    mixed = recording.select_markers([recording.markers[i] for i in order])
    return rename_markers(mixed, {name: f"{i:04d}" for i, name in enumerate(mixed.markers)})


def test_numbers_get_names_with_evidence() -> None:
    numbers = numbered(WALK)
    named = name_markers(numbers)
    (note,) = [note for note in named.notes if note.code == "labels_by_geometry"]
    assert "41 markers" in note.text and note.action and len(named.markers) == len(WALK.markers)
    truth = {one.label: one for one in interpret_labels(WALK.markers).readings}
    for name, reading in zip(named.markers, interpret_labels(named.markers).readings, strict=True):
        column = named.data["marker_position"].sel(marker=name).values
        same = [
            label for label in WALK.markers if _equal(column, WALK.data["marker_position"].sel(marker=label).values)
        ]
        if reading.landmark:
            assert (reading.segment, reading.side) == (truth[same[0]].segment, truth[same[0]].side), same


@pytest.mark.data
@pytest.mark.slow
def test_a_set_of_letters_is_read_by_geometry() -> None:
    """R and L are sides, F thighs, K knees, B shanks, A ankles, D toes; R, B and H alone are on the pelvis."""
    recording = labeled_recording("c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D").recording
    segments = {"F": ("thigh",), "K": ("thigh", "shank"), "B": ("shank",), "A": ("shank",), "D": ("foot",)}
    readings = read_by_geometry(recording)
    assert len(readings) == len(recording.markers) == 13
    for one in readings:
        side, segment = one.label[0], segments.get(one.label[1:], ("pelvis",))
        assert one.segment in segment and (len(one.label) == 1 or one.side == {"R": "right", "L": "left"}[side]), one


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


def in_pieces(recording: Recording, seed: int = 4) -> tuple[Recording, list[str]]:
    """Return the recording with each marker cut into columns with gaps, shuffled, and a box; and the true names."""
    rng = np.random.default_rng(seed)
    points = recording.data["marker_position"].values
    columns, names = [], []
    for i, name in enumerate(recording.markers):
        cuts = sorted(rng.choice(np.arange(10, len(points) - 10), rng.integers(0, 3), replace=False).tolist())
        for begin, end in zip([0, *cuts], [*cuts, len(points) + 5], strict=True):
            piece = np.full(points[:, i].shape, np.nan)
            piece[begin : end - 5] = points[begin : end - 5, i]
            if np.isfinite(piece[:, 0]).sum() >= 10:
                columns.append(piece)
                names.append(name)
    corners = np.array([[0.5, 1.2, 0.2], [0.9, 1.2, 0.2], [0.5, 1.5, 0.2], [0.5, 1.2, 0.6]])
    columns += [np.tile(corner, (len(points), 1)) for corner in corners]
    names += ["box"] * len(corners)
    order = rng.permutation(len(columns))
    data = recording.data.drop_dims("marker").assign(
        marker_position=(("time", "marker", "axis"), np.array(columns)[order].transpose(1, 0, 2), {"units": "m"})
    )
    labels = [f"*{i + 1}" for i in range(len(columns))]
    return recording.with_data(data.assign_coords(marker=labels)), [names[i] for i in order]


def test_pieces_of_markers_are_gathered_and_objects_left_out() -> None:
    pieces, truth = in_pieces(WALK)
    named = name_markers(pieces)
    (note,) = [note for note in named.notes if note.code == "labels_by_geometry"]
    count = sum(name != "box" for name in truth)
    assert f"41 markers are gathered from {count} columns" in note.text
    (note,) = [note for note in named.notes if note.code == "objects"]
    assert note.text.startswith("4 points move as one rigid object")
    assert all(f"*{i + 1}" in note.text for i, name in enumerate(truth) if name == "box")
    expected = {one.label: one for one in interpret_labels(WALK.markers).readings}
    measured = WALK.data["marker_position"]
    right = total = 0
    for name, reading in zip(named.markers, interpret_labels(named.markers).readings, strict=True):
        column = named.data["marker_position"].sel(marker=name).values
        same = [_shared_samples(column, measured.sel(marker=label).values) for label in WALK.markers]
        best = expected[WALK.markers[int(np.argmax(same))]]
        total += int(np.isfinite(column[:, 0]).sum())
        right += max(same) * ((reading.segment, reading.side) == (best.segment, best.side))
    assert right == total and total > 0.99 * np.isfinite(pieces.data["marker_position"].values[..., 0]).sum() - 4 * 347


def _shared_samples(one: np.ndarray, other: np.ndarray) -> int:
    return int((one == other).all(axis=1).sum())


@pytest.mark.slow
def test_pieces_are_read_column_by_column() -> None:
    pieces, truth = in_pieces(WALK)
    expected = {one.label: one for one in interpret_labels(WALK.markers).readings}
    readings = {one.label: one for one in read_by_geometry(pieces)}
    for label, name in zip(pieces.markers, truth, strict=True):
        if name == "box":
            assert not readings[label].landmark and "rigid object" in readings[label].evidence
        elif label in readings:
            found, wanted = readings[label], expected[name]
            assert (found.segment, found.side) == (wanted.segment, wanted.side)
            mates = [
                other
                for other, same in zip(pieces.markers, truth, strict=True)
                if same == name != "" and other != label
            ]
            assert not mates or any(mate in found.evidence for mate in mates)


MIN_RIGHT, MAX_WRONG = 0.9, 0.02
"""Fractions of visible samples of recordings in pieces."""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "hdm/data.c3d",
        "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d",
        "c3d/qualisys_walk/Qualisys.c3d",
        "opensim/rajagopal2016/walk/motion_capture_walk.trc",
        "opensim/subject01_walk/subject01_walk1.trc",
    ],
)
def test_recordings_in_pieces(name: str) -> None:
    trial = labeled_recording(name)
    pieces, truth = in_pieces(trial.recording.select_markers([one.label for one in trial.markers]))
    segments = {one.label: (part, one.side) for one, part in zip(trial.markers, trial.segment, strict=True)}
    found = label_unnamed(pieces)
    assert found is not None and found.in_pieces
    right = wrong = total = boxed = 0
    for i, label in enumerate(truth):
        own = found.marker[:, i]
        if label == "box":
            boxed += int((found.objects[:, i] >= 0).all())
            continue
        names = [found.found.labels[k] for k in own[own >= 0]]
        good = sum(one is not None and (one.segment, one.side) == segments[label] for one in names)
        right, wrong = right + good, wrong + len(names) - good
        total += int(np.isfinite(pieces.data["marker_position"].values[:, i, 0]).sum())
    print(f"{name}: {100 * right / total:.1f} % right, {100 * wrong / total:.1f} % wrong, {boxed} of 4 on the object")
    assert right >= MIN_RIGHT * total and wrong <= MAX_WRONG * total and boxed == 4


def test_names_are_kept() -> None:
    assert name_markers(WALK) is WALK and read_by_geometry(WALK) == ()
    assert check_marker_labels(WALK) is WALK


def test_uncertainty_is_an_error_with_a_remedy() -> None:
    legs = [
        name
        for name in WALK.markers
        if name[0] == "R" and name[1:] in ("THI", "KNE", "SHN", "ANK", "HEE", "MT5", "TOE")
    ]
    one_leg = numbered(WALK.select_markers(legs))
    with pytest.raises(SettingsError, match=r"one leg.*borelli markers FILE --write map\.toml"):
        name_markers(one_leg)
    assert all(reading.certainty < 0.5 for reading in read_by_geometry(one_leg))


def test_swapped_labels_are_noted() -> None:
    swapped = rename_markers(WALK, {"RKNE": "LKNE", "LKNE": "RKNE"})
    (note,) = [note for note in check_marker_labels(swapped).notes if note.code == "swapped_labels"]
    assert note.kind == "problem" and "RKNE" in note.text and "swap_markers" in note.action


def test_a_box_without_names_is_told_apart_from_a_named_body() -> None:
    """Four points of a box that turns next to the body, and one loose point: the box is an object, the point is not."""
    points = WALK.data["marker_position"].values
    angle = np.linspace(0.0, 1.0, len(points))
    rotation = np.array([[[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]] for a in angle])
    corners = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.3]])
    box = points.mean(axis=1)[:, None] + np.array([0.0, 1.5, 0.0]) + np.einsum("fij,pj->fpi", rotation, corners)
    loose = points[:, :1] + np.array([0.0, 2.0, 0.5]) * np.sin(5.0 * angle)[:, None, None]
    together = np.concatenate([points, box, loose], axis=1)
    data = WALK.data.drop_dims("marker").assign_coords(marker=[*WALK.markers, "*101", "*102", "*103", "*104", "*105"])
    attributes = WALK.data["marker_position"].attrs
    recording = WALK.with_data(data.assign(marker_position=(("time", "marker", "axis"), together, attributes)))
    (note,) = [one for one in name_markers(recording).notes if one.code == "objects"]
    assert "4 points" in note.text and "*101, *102, *103, *104" in note.text and "*105" not in note.text
    assert not any(one.code == "objects" for one in name_markers(WALK).notes)

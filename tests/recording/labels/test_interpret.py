"""Labels: read by the vote of conventions, never wrong where called sure, in every spelling and any mixture."""

from collections import Counter, defaultdict

import pytest

from borelli.recording.io import read_recording
from borelli.recording.labels.conventions import load_conventions, midline_landmarks, own_label
from borelli.recording.labels.interpret import MIN_SURE, interpret_labels

from ..walker import real

CONVENTIONS = {one.name: one for one in load_conventions()}
RECORDINGS = {
    "hdm/data.c3d": "CMU 41",
    "cmu/c3d/85_02.c3d": "CMU 41",
    "c3d/qualisys_walk/Qualisys.c3d": "Qualisys CAST / Visual3D (Van Sint Jan)",
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d": "Motion Monitor gait",
    "c3d/motionmonitor_metres/Static_Pose.c3d": "Motion Monitor gait",
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": "Plug-in Gait full body (CGM1)",
    "c3d/vicon_overground_4plates/test_small.c3d": "Plug-in Gait full body (CGM1)",
    "c3d/pycgm_movement/Movement_trial.c3d": "Plug-in Gait full body (CGM1)",
    "opensim/moco_examples/walking_3d/markers_walk.trc": "Rajagopal 2016 walking trial",
    "c3d/motionanalysis_gait/Gait.c3d": "Helen Hayes (Motion Analysis Cortex/OrthoTrak)",
    "c3d/motionanalysis_walk_jump/Walk1.c3d": "Helen Hayes (Motion Analysis Cortex/OrthoTrak)",
    "c3d/sprint_8plates/JA1Gait35.c3d": "Dorn 2012 sprint",
    "opensim/subject01_walk/subject01_walk1.trc": "Cleveland Clinic style clusters (OpenSim gait2354/2392)",
    "opensim/opencap_subject4/DJ1.trc": "OpenCap mocap (Stanford)",
    "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc": "Rajagopal 2016 / AddBiomechanics",
}
"""The convention that each recording follows: its labels mean what the convention states."""
TARGETS = (
    "Plug-in Gait full body (CGM1)",
    "Cleveland Clinic style clusters (OpenSim gait2354/2392)",
    "Qualisys CAST / Visual3D (Van Sint Jan)",
    "Rajagopal 2016 / AddBiomechanics",
    "OptiTrack Biomech (Van Sint Jan abbreviations)",
    "Davis (BTS SMART)",
    "IOR gait (Leardini 2007)",
)
WRISTS = {"wrist", "wrist_radial", "wrist_ulnar"}


def without(convention):
    return tuple(one for one in load_conventions() if one is not convention)


def is_right(reading, truth):
    """Return whether segment and side are right; a side that the convention does not state is not judged."""
    unstated = truth.side == "middle" and truth.landmark not in midline_landmarks()
    return reading.segment == truth.segment and (unstated or reading.side == truth.side)


def judge(reading, truth):
    return "none" if not reading.landmark else "right" if is_right(reading, truth) else "wrong"


def judged(name):
    """Return the labels of a recording, and what those of its convention mean there."""
    labels = read_recording(real(name)).markers
    convention = CONVENTIONS[RECORDINGS[name]]
    readings = interpret_labels(labels, conventions=(convention,)).readings
    return labels, {one.label: one for one in readings if convention.name in one.evidence}, convention


def test_conventions_are_complete_and_have_sources():
    assert len(CONVENTIONS) == 50
    assert sum(len(one.labels) for one in CONVENTIONS.values()) == 1914
    for one in CONVENTIONS.values():
        assert one.source
        assert all(meaning.segment for meaning in one.labels.values()), one.name


def test_each_convention_reads_itself():
    for one in CONVENTIONS.values():
        readings = interpret_labels(list(one.labels)).readings
        wrong = [r.label for r, truth in zip(readings, one.labels.values(), strict=True) if judge(r, truth) == "wrong"]
        assert not wrong, (one.name, wrong)


def test_each_convention_is_read_without_itself_and_never_wrong_where_sure():
    counts, sure = Counter(), Counter()
    for one in CONVENTIONS.values():
        readings = interpret_labels(list(one.labels), conventions=without(one)).readings
        for reading, truth in zip(readings, one.labels.values(), strict=True):
            verdict = judge(reading, truth)
            counts[verdict] += 1
            sure[verdict] += reading.sure and bool(reading.landmark)
    total = sum(counts.values())
    assert sure["wrong"] == 0
    assert sure["right"] >= 400  # so that sure is not an empty word
    assert counts["right"] >= 0.85 * total
    assert counts["right"] + counts["none"] >= 0.95 * total


@pytest.mark.data
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_read_with_and_without_their_convention(name):
    labels, truths, convention = judged(name)
    for voters in (None, without(convention)):
        readings = interpret_labels(labels, conventions=voters).readings
        verdicts = Counter(judge(one, truths[one.label]) for one in readings if one.label in truths)
        assert not any(one.sure and judge(one, truths[one.label]) == "wrong" for one in readings if one.label in truths)
        if voters is None:
            assert verdicts["right"] == len(truths)
        assert verdicts["wrong"] <= 0.05 * len(truths)


@pytest.mark.data
@pytest.mark.parametrize("target", TARGETS)
def test_renamed_recordings_are_read_alike(target):
    names = defaultdict(list)
    for label, meaning in CONVENTIONS[target].labels.items():
        names[meaning.landmark, meaning.side].append(label)
    total = right = 0
    for recording in RECORDINGS:
        labels, truths, convention = judged(recording)
        if convention.name == target:
            continue
        renamed, expected, used = [], {}, Counter()
        for label in labels:
            truth = truths.get(label)
            new = label
            if truth is not None and truth.kind != "virtual center":
                key = (truth.landmark, truth.side)
                new = names[key][used[key]] if used[key] < len(names[key]) else label
                used[key] += 1
                new = label if new in renamed else new
                expected[new] = truth
            renamed.append(new)
        for reading in interpret_labels(renamed).readings:
            if truth := expected.get(reading.label):
                body = (reading.segment, reading.side) == (truth.segment, truth.side)
                # a cluster is judged by its body, and a wrist by being one
                bony = truth.kind != "landmark" or reading.landmark == truth.landmark
                right += body and (bony or {reading.landmark, truth.landmark} <= WRISTS)
                total += 1
                assert body or not reading.sure, (recording, reading)
    assert total > 400
    assert right >= 0.99 * total


@pytest.mark.parametrize(
    ("labels", "label", "meaning"),
    [
        (["LUMB", "LUMC", "RKNE", "LKNE"], "LUMB", ("spine", "middle")),
        (["Rear.Head", "Top.Head", "L.Ankle", "R.Ankle"], "Rear.Head", ("head_back", "middle")),
        (["RIBL", "RIBR"], "RIBR", ("rib", "right")),
        (["Subject1:r asis", "Subject1:l asis", "Subject1:r mall", "Subject1:l mall"], "Subject1:r mall",
         ("malleolus_lateral", "right")),
        (["r_humerus_epicondyle", "r_radius_styloid"], "r_humerus_epicondyle", ("elbow_lateral", "right")),
        (["RKNE", "RANK", "RHEE", "RTOE"], "RANK", ("malleolus_lateral", "right")),
        (["Knee lateral right", "Knee lateral left"], "Knee lateral left", ("knee_lateral", "left")),
        (["pRightASI", "pLeftASI", "pSacrum", "pRightToe"], "pRightASI", ("asis", "right")),
        (["RAG1", "R.MElbow", "L.MElbow"], "L.MElbow", ("elbow_medial", "left")),
    ],
)  # fmt: skip
def test_sides_and_landmarks_of_many_spellings(labels, label, meaning):
    reading = interpret_labels(labels).readings[labels.index(label)]
    assert (reading.landmark, reading.side) == meaning


@pytest.mark.parametrize("label", ["*12", "0001", "7", "x52", "PT03", "U12", "", "  ", "Marker 3", "unlabeled12"])
def test_labels_without_a_name_are_set_aside(label):
    assert interpret_labels([label, "RKNE", "LKNE"]).readings[0].kind == "unnamed"


def test_quantities_axes_and_projections_are_no_markers():
    axes = [f"{side}{code}{axis}" for side in "LR" for code in ("FE", "TI") for axis in "OALP"]
    readings = interpret_labels(
        ["RKNE", "LKNE", "LKneeAngles", "CentreOfMass", "MidASIS", "R.HeelGround", *axes]
    ).readings
    assert [one.kind for one in readings[2:6]] == ["quantity", "quantity", "virtual center", "virtual center"]
    assert {one.kind for one in readings[6:]} == {"axis"}
    assert not any(one.landmark for one in readings[2:])


def test_the_file_decides_between_joints_and_skin():
    joints = interpret_labels(
        ["Nose", "Neck", "RKnee", "LKnee", "RAnkle", "LAnkle", "RBigToe", "LBigToe", "RHip", "LHip"]
    )
    skin = interpret_labels(["RASI", "LASI", "RPSI", "LPSI", "RKnee", "LKnee", "RANK", "LANK", "RHEE", "LHEE"])
    assert joints.keypoints and not skin.keypoints
    assert joints.readings[2].landmark == "knee_center"
    assert skin.readings[4].landmark == "knee_lateral"


def test_an_ambiguous_code_is_settled_by_the_set_it_occurs_in():
    """`FM1` is a metatarsal in one set and a marker on the femur in another."""
    for name, landmark in (
        ("Qualisys CAST / Visual3D (Van Sint Jan)", "mt1"), ("FBLS (Raabe 2016)", "thigh"),
    ):  # fmt: skip
        labels = list(CONVENTIONS[name].labels)
        index = next(i for i, label in enumerate(labels) if label.replace("_", "") == "RFM1")
        reading = interpret_labels(labels).readings[index]
        assert (reading.landmark, reading.side) == (landmark, "right")
        assert reading.certainty > 0.8


def test_words_alone_are_not_sure():
    readings = interpret_labels(["right lateral knee marker", "left lateral knee marker"]).readings
    assert all(one.landmark == "knee_lateral" and one.certainty < MIN_SURE for one in readings)


def test_a_label_whose_twin_is_in_the_file_has_a_side():
    """`LK` alone may be a lateral knee; next to `RK` it is no marker of the midline."""
    alone, left, right = (*interpret_labels(["LK", "H"]).readings[:1], *interpret_labels(["LK", "RK"]).readings)
    assert (alone.landmark, alone.side) == ("knee_lateral", "middle")
    assert not any(one.landmark and one.side == "middle" for one in (left, right))


def test_duplicates_are_listed():
    labels = [*CONVENTIONS["CMU 41"].labels, "R.Heel"]
    assert ("RHEE", "R.Heel") in interpret_labels(labels).duplicates


def test_descriptions_are_read_where_labels_mean_nothing():
    readings = interpret_labels(["QX1", "QX2"], ["right heel", "left heel"]).readings
    assert [(one.landmark, one.side) for one in readings] == [("heel", "right"), ("heel", "left")]


def test_own_names_are_sure():
    labels = [own_label("knee_lateral", "right"), own_label("thigh", "left", 3), own_label("C7", "middle"), "QX"]
    readings = interpret_labels(labels).readings
    assert [(one.landmark, one.side) for one in readings[:3]] == [
        ("knee_lateral", "right"), ("thigh", "left"), ("C7", "middle"),
    ]  # fmt: skip
    assert all(one.sure for one in readings[:3]) and not readings[3].landmark


def test_hostile_labels_are_bounded():
    labels = ["R" * 10_000, "\x00\x01", "右膝", "R.KNE" * 500, *(f"R{i}{'x' * 50}" for i in range(2000))]
    assert len(interpret_labels(labels).readings) == len(labels)

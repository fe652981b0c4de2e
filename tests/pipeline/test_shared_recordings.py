"""All shared recordings: each with a person is analyzed, or refused with the one thing that is missing."""

import re

import pytest

from borelli.errors import BorelliError
from borelli.pipeline.analyze import analyze

from ..shared_data import SHARED_DATA, shared
from .shared_trials import settings_of

PLATES, PREDICTED, BOTH = "plates", "predicted", "plates and predicted"
ANALYZED = {
    # limits of marker error [mm] and residual force [% of body weight], a tenth above what they are; source of GRF
    "bvh/AV_8Walk_Meredith_HVHA_Rep1.bvh": (0.5, 5, PREDICTED),
    "bvh/npybvh_example.bvh": (1.1, 260, PREDICTED),
    "bvh/test_freebvh.bvh": (0.6, 9, PREDICTED),
    "bvh/test_mocapbank.bvh": (1.0, 5, PREDICTED),
    "bvh/walk01.bvh": (0.7, 5, PREDICTED),
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D": (3.9, None, PLATES),
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-4.C3D": (3.9, None, PLATES),
    "c3d/motionanalysis_gait/Gait.c3d": (3.8, 11, BOTH),
    "c3d/motionanalysis_gait/reference/Gait.trc": (4.0, 2, PREDICTED),
    "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d": (4.2, 16, PLATES),
    "c3d/motionanalysis_walk_jump/Walk1.c3d": (4.2, 9, BOTH),
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d": (5.2, None, PLATES),
    "c3d/motionmonitor_metres/Static_Pose.c3d": (0.5, None, PLATES),
    "c3d/opensim_walking2/reference/std_walking2_markers.trc": (5.2, 3, PREDICTED),
    "c3d/opensim_walking2/walking2.c3d": (5.2, 10, BOTH),
    "c3d/pycgm_movement/Movement_trial.c3d": (3.8, 9, BOTH),
    "c3d/qualisys_walk/Qualisys.c3d": (3.9, 9, BOTH),
    "c3d/sprint_8plates/JA1Gait35.c3d": (8.0, 73, BOTH),
    "c3d/vicon_overground_4plates/test_small.c3d": (2.3, 9, BOTH),
    "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d": (0.5, 5, PLATES),
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": (3.0, 12, BOTH),
    "cmu/asfamc/02_01.amc": (0.4, 8, PREDICTED),
    "cmu/asfamc/07_05.amc": (0.7, 17, PREDICTED),
    "cmu/asfamc/09_06.amc": (0.6, 21, PREDICTED),
    "cmu/asfamc/87_03.amc": (6.4, 241, PREDICTED),
    "cmu/bvh_hahne2010/02_01.bvh": (0.5, 8, PREDICTED),
    "cmu/bvh_hahne2010/06_01.bvh": (0.5, 4, PREDICTED),
    "cmu/bvh_hahne2010/07_05.bvh": (0.7, 18, PREDICTED),
    "cmu/bvh_hahne2010/09_06.bvh": (0.9, 23, PREDICTED),
    "cmu/bvh_hahne2010/13_11.bvh": (0.6, 11, PREDICTED),
    "cmu/bvh_hahne2010/14_07.bvh": (1.1, 14, PREDICTED),
    "cmu/bvh_hahne2010/16_03.bvh": (0.6, 20, PREDICTED),
    "cmu/bvh_hahne2010/35_01.bvh": (0.9, 3, PREDICTED),
    "cmu/bvh_hahne2010/35_17.bvh": (0.6, 15, PREDICTED),
    "cmu/bvh_hahne2010/88_02.bvh": (5.8, 172, PREDICTED),
    "cmu/c3d/02_05.c3d": (4.4, 1, PREDICTED),
    "cmu/c3d/06_01_misnamed_dribble_shoot.c3d": (3.2, 2, PREDICTED),
    "cmu/c3d/85_02.c3d": (7.0, 28, PREDICTED),
    "hdm/data.c3d": (3.5, 6, PREDICTED),
    "opensim/hamner2010_running/subject02_running.trc": (4.4, 20, PLATES),
    "opensim/hamner2010_running/subject02_static.trc": (0.8, 1, PREDICTED),
    "opensim/moco_examples/walking_3d/markers_walk.trc": (4.6, 5, BOTH),
    "opensim/opencap_subject4/DJ1.trc": (4.6, 36, BOTH),
    "opensim/opencap_subject4/walking1.trc": (4.0, 7, BOTH),
    "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc": (5.2, 27, BOTH),
    "opensim/rajagopal2016/walk/motion_capture_walk.trc": (4.9, 5, BOTH),
    "opensim/rajagopal2016/walk/static_walk_1.trc": (0.9, 1, PREDICTED),
    "opensim/subject01_walk/subject01_static.trc": (0.7, 1, PREDICTED),
    "opensim/subject01_walk/subject01_walk1.trc": (4.4, 7, PLATES),
}
REFUSED = {
    # four joints of a chain; 8 points of a part of a body; an arm without a trunk
    "bvh/sinusoidal.bvh": "Lengths are not in m",
    "c3d/format_variants/sample15_plate_type3/FP1.C3D": "name no landmarks, and geometry leaves uncertainties",
    "opensim/arm26/arm26_elbow_flex.trc": "name 3 landmarks of the body",
}
"""What is missing."""
ENCODINGS = "c3d/format_variants/sample02"
"""One trial in six encodings."""
MAX_TORQUE = 6.5
"""[N m/kg] Peak joint torque; that of a sprint at 9.5 m/s is 5.5."""
BEYOND = ("85_02", "87_03", "88_02", "npybvh")
"""Acrobatics without plates, and a file that falls faster than gravity allows: larger torques, each with a warning."""
MAX_EXTENSION = {"c3d/motionmonitor_metres/Static_Pose.c3d": 0.09}
"""[rad] Mean angle by which knees are bent backward, where it is more than 0.05.

In this pose the middles of condyles and malleoli and the hips of Harrington et al. (2007) make 6.7 and 3.9 degrees.
"""


@pytest.mark.data
def test_no_shared_recording_is_forgotten():
    found = {
        path.relative_to(SHARED_DATA).as_posix()
        for path in shared("").rglob("*")
        if path.suffix.lower() in (".c3d", ".trc", ".bvh", ".amc")
    }
    encodings = {name for name in found if name.startswith(ENCODINGS)}
    assert found - encodings == ANALYZED.keys() | REFUSED.keys() and len(encodings) == 6


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ANALYZED)
def test_recordings_of_persons_are_analyzed(name, tmp_path):
    marker_error, residual, source = ANALYZED[name]
    (found,) = analyze([shared(name)], tmp_path, settings_of(name))
    summary = found.summary
    assert summary["marker_rms_mm"] < marker_error and summary["grf_source"] == source
    assert (summary["residual_force_rms_bw"] is None) == (residual is None)
    assert residual is None or summary["residual_force_rms_bw"] < residual
    torque = summary["peak_torque_nm_per_kg"]
    warned = any("twice the voluntary maximum" in text for text in summary["warnings"])
    assert torque is None or torque < MAX_TORQUE or (warned and any(word in name for word in BEYOND))
    knees = [str(c) for c in found.energy.torques.motion.data["coordinate"].values if str(c).startswith("knee_flexion")]
    bent = found.energy.torques.motion.data["coordinate_value"].sel(coordinate=knees)
    assert knees and float(bent.mean()) > -MAX_EXTENSION.get(name, 0.05)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_recordings_without_a_whole_person_are_refused_with_the_reason(name, tmp_path):
    with pytest.raises(BorelliError, match=re.escape(REFUSED[name])):
        analyze([shared(name)], tmp_path, settings_of(name))


@pytest.mark.data
@pytest.mark.slow
def test_encodings_of_one_trial_have_one_outcome(tmp_path):
    """All are analyzed with the same marker error, or refused with the same sentence."""
    outcomes = set()
    for path in sorted(shared(ENCODINGS).iterdir()):
        try:
            (found,) = analyze([path], tmp_path / path.name, settings_of(""))
            outcomes.add(f"{found.summary['marker_rms_mm']:.1f} mm")
        except BorelliError as error:
            outcomes.add(str(error).replace(path.name, "").replace(path.stem, ""))
    assert len(outcomes) == 1, outcomes

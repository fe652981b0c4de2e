"""Recordings among the shared data with the files that belong to them, and what is known of their subjects."""

from borelli.pipeline.analysis_settings import AnalysisSettings

from ..shared_data import shared

PIG, OVERGROUND = "c3d/vicon_pig/PiG", "c3d/vicon_overground_4plates/test_small.c3d"
HAMNER, OPENCAP = "opensim/hamner2010_running/subject02", "opensim/opencap_subject4"
RUN, WALK, SUBJECT01 = (
    "opensim/rajagopal2015_run_bmclab",
    "opensim/rajagopal2016/walk",
    "opensim/subject01_walk/subject01",
)
MOCO, MONITOR = "opensim/moco_examples/walking_3d", "c3d/motionmonitor_metres"
KNOWN = {
    f"{MONITOR}/Gait_with_EMG.c3d": {"static": f"{MONITOR}/Static_Pose.c3d"},
    f"{PIG}_Motion-FlatFoot-Full.c3d": {
        "static": f"{PIG}_Calibration-FlatFoot-Full.c3d", "mass": 47.5, "height": 1.505,
    },
    f"{PIG}_Calibration-FlatFoot-Full.c3d": {"mass": 47.5, "height": 1.505},
    OVERGROUND: {"mass": 63.6, "height": 1.58},
    "c3d/pycgm_movement/Movement_trial.c3d": {"mass": 85.0, "height": 1.679},
    "c3d/sprint_8plates/JA1Gait35.c3d": {"mass": 68.1},
    f"{HAMNER}_running.trc": {"mass": 65.9, "static": f"{HAMNER}_static.trc", "forces": f"{HAMNER}_running_grf.mot"},
    f"{HAMNER}_static.trc": {"mass": 65.9},
    f"{MOCO}/markers_walk.trc": {"forces": f"{MOCO}/grf_walk.mot"},
    f"{OPENCAP}/DJ1.trc": {"mass": 62.6, "forces": f"{OPENCAP}/DJ1_grf.mot"},
    f"{OPENCAP}/walking1.trc": {"mass": 62.6, "forces": f"{OPENCAP}/walking1_grf.mot"},
    f"{RUN}/motion_capture_run.trc": {"mass": 70.0, "forces": f"{RUN}/grf_run.mot"},
    f"{WALK}/motion_capture_walk.trc": {"static": f"{WALK}/static_walk_1.trc", "forces": f"{WALK}/grf_walk.mot"},
    f"{SUBJECT01}_walk1.trc": {
        "mass": 72.6, "static": f"{SUBJECT01}_static.trc", "forces": f"{SUBJECT01}_walk1_grf.mot",
    },
    f"{SUBJECT01}_static.trc": {"mass": 72.6},
    **{
        f"cmu/asfamc/{name}.amc": {"skeleton": f"cmu/asfamc/{name[:2]}.asf"}
        for name in ("02_01", "07_05", "09_06", "87_03")
    },
}  # fmt: skip
"""Static trial, force file, skeleton, mass [kg] and height [m] by recording."""


def settings_of(name):
    """Return the settings with which a recording is analyzed: its other files, mass and height, and nothing else."""
    known = {key: shared(value) if isinstance(value, str) else value for key, value in KNOWN.get(name, {}).items()}
    skeleton = known.pop("skeleton", None)
    return AnalysisSettings(**known, reading={} if skeleton is None else {"skeleton": skeleton})

"""Recorded walks of many laboratories and tools stand on the ground when they are animated, before any perturbation.

Heights and slips are measured on the simulated bodies (`sole_contact`), in stances that are found in the motion as
recorded.
"""

from __future__ import annotations

import numpy as np
import pytest

from borelli.commands.load_motion import load_motion
from borelli.control.animate import TrackingSettings, animate
from borelli.model.kinematics import poses

from ..pipeline.shared_trials import settings_of
from ..shared_data import shared
from .sole_contact import find_stances, measure_sole, rotations, sole_corners

MAX_HEIGHT, MAX_DEPTH, MAX_SLIP = 0.005, 0.003, 0.010
"""[m]"""
SHORT = {"bvh/walk01.bvh": 8, "cmu/asfamc/02_01.amc": 5, "c3d/motionanalysis_walk_jump/Walk1.c3d": 4}
LONG = {
    "bvh/AV_8Walk_Meredith_HVHA_Rep1.bvh": 16, "bvh/test_freebvh.bvh": 5, "cmu/asfamc/07_05.amc": 5,
    **{f"cmu/bvh_hahne2010/{name}.bvh": 5 for name in ("02_01", "06_01", "07_05", "35_01")},
    "cmu/c3d/06_01_misnamed_dribble_shoot.c3d": 8, "hdm/data.c3d": 5, "c3d/opensim_walking2/walking2.c3d": 4,
    "c3d/motionanalysis_gait/Gait.c3d": 5, "c3d/motionmonitor_metres/Gait_with_EMG.c3d": 4,
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": 6, "c3d/vicon_overground_4plates/test_small.c3d": 7,
    "c3d/qualisys_walk/Qualisys.c3d": 4, "c3d/format_variants/sample02/pc_real.c3d": 4,
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D": 2,
}  # fmt: skip
"""Walks and the least number of stances of both feet in each."""
UNCERTAIN = "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D"


def recorded_stances(motion, side):
    """Stances in the recorded frames, in times [s] from the first frame with a pose."""
    posed = np.isfinite(motion.coordinates).all(axis=1)
    time = motion.data["time"].values[posed]
    corners = sole_corners(motion.model, side, *poses(motion.model, motion.coordinates[posed]))
    smooth = np.hanning(2 * round(0.04 * motion.rate) + 3)[1:-1]
    edge = len(smooth) // 2
    padded = np.pad(corners, [(edge, edge), (0, 0), (0, 0)], mode="reflect", reflect_type="odd")
    corners = np.apply_along_axis(np.convolve, 0, padded, smooth / smooth.sum(), mode="valid")
    return find_stances(corners, time - time[0])


@pytest.mark.data
@pytest.mark.parametrize("contact", [False, True], ids=["drawn ground", "ground contact"])
@pytest.mark.parametrize("name", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_feet_of_recorded_walks_stand(name, contact, request):
    if name == UNCERTAIN and contact:
        reason = "a foot is 5.3 mm high for 0.02 s; 13 markers, none of them on the feet"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    motion = load_motion(shared(name), settings_of(name))
    data = animate(motion, tracking=TrackingSettings(ground_contact=contact)).data
    pose, count = (data["body_position"].values, rotations(data["body_orientation"].values)), 0
    for side in "rl":
        stances = recorded_stances(motion, side)
        sole = measure_sole(sole_corners(motion.model, side, *pose), data["time"].values, stances)
        print(name, side, contact, len(stances), *(f"{1e3 * value:.1f} mm" for value in sole))
        assert sole.height < MAX_HEIGHT and sole.depth < MAX_DEPTH and sole.slip < MAX_SLIP
        count += len(stances)
    assert count >= {**SHORT, **LONG}[name]

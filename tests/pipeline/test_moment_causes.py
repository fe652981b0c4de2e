"""Joint moments of borelli's own human against OpenSim's, and what makes the difference: filter, centers, axes.

A moment about another center is M + (c - c') x F, with F the force of the joint; a torque is the part along an axis.
"""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.motion import rotate, to_model_axes
from borelli.model.io import read_model
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze
from borelli.pipeline.stages import compute_torques
from borelli.recording.io import read_recording

from ..analysis.opensim_trials import motion_of
from ..shared_data import shared
from .shared_trials import MOCO, SUBJECT01, WALK, settings_of

GAIT = "opensim/gait2392"
TRIALS = {  # recording; model, coordinates, setup and table of the loads, moments of OpenSim
    "subject01": (
        f"{SUBJECT01}_walk1.trc", f"{GAIT}/subject01_simbody.osim", f"{GAIT}/reference/subject01_walk1_ik.mot",
        f"{GAIT}/setup/subject01_walk1_grf.xml", f"{SUBJECT01}_walk1_grf.mot",
        f"{GAIT}/reference/InverseDynamicsOutput.sto",
    ),
    "raj2016": (
        f"{WALK}/motion_capture_walk.trc", f"{MOCO}/subject_walk_scaled.osim", f"{MOCO}/coordinates.sto",
        f"{MOCO}/grf_walk.xml", f"{MOCO}/grf_walk.mot", f"{MOCO}/id_walk.sto",
    ),
}  # fmt: skip
JOINTS = {  # coordinate; joint and body whose origin it is; the same of OpenSim
    "hip_flexion": ("hip", "thigh", "hip_flexion", "femur"),
    "hip_adduction": ("hip", "thigh", "hip_adduction", "femur"),
    "knee_flexion": ("knee", "shank", "knee_angle", "tibia"),
    "ankle_flexion": ("ankle", "foot", "ankle_angle", "talus"),
}
LIMITS = {  # as analyzed, about OpenSim's centers [N m/kg]
    "subject01": {"hip_flexion": (0.24, 0.07), "hip_adduction": (0.13, 0.07), "knee_flexion": (0.12, 0.05),
                  "ankle_flexion": (0.08, 0.04)},
    "raj2016": {"hip_flexion": (0.17, 0.14), "hip_adduction": (0.13, 0.06), "knee_flexion": (0.13, 0.09),
                "ankle_flexion": (0.15, 0.04)},
}  # fmt: skip
"""About OpenSim's centers, the study of these trials reached 0.06, 0.07, 0.04, 0.02 and 0.14, 0.06, 0.09, 0.03."""
STANCE = 20.0
"""[N] of vertical force."""


def axes_in_lab(torques):
    """Return unit axes (frames, 3) of rotational coordinates."""
    model, data = torques.motion.model, torques.data
    moving = (data[f"coordinate_{part}"].values for part in ("value", "velocity", "acceleration"))
    kinematics, rotation = forward_kinematics(model, *moving), to_model_axes(model)
    axes = {}
    for axis, column in zip(kinematics.axis, kinematics.column, strict=True):
        if column >= 0:
            axes[model.coordinates[column].name] = rotate(np.ascontiguousarray(axis.T), rotation)
    return axes


def at_times(times, known, values):
    return np.stack([np.interp(times, known, each) for each in np.atleast_2d(values.T)], axis=-1).squeeze()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
def test_moments_differ_from_opensims_by_where_joints_are(name, tmp_path):
    file, osim, coordinates, setup, table, moments = TRIALS[name]
    settings = settings_of(file)
    (own,) = analyze([shared(file)], tmp_path / "own", settings)
    (raw,) = analyze([shared(file)], tmp_path / "raw", replace(settings, cutoff=6.0, plate_cutoff=0.0))
    motion = motion_of(read_model(shared(osim)), read_recording(shared(coordinates)))
    loads = {"external_loads": shared(setup), "forces": shared(table)}
    other = compute_torques(motion, AnalysisSettings(filter="opensim", cutoff=6.0, **loads))
    reference = read_recording(shared(moments)).data["column_value"]
    own, raw = own.energy.torques, raw.energy.torques
    time, mass = own.data["time"].values, own.motion.model.mass
    known = reference["time"].values, other.data["time"].values
    inside = (time >= max(t[0] for t in known)) & (time <= min(t[-1] for t in known))
    ours, theirs = axes_in_lab(raw), axes_in_lab(other)
    for coordinate, (joint, body, their_coordinate, their_body) in JOINTS.items():
        found = []
        for side, foot in (("r", "right"), ("l", "left")):
            torque, filtered = (one.data["torque"].sel(coordinate=f"{coordinate}_{side}").values for one in (raw, own))
            column = f"{their_coordinate}_{side}_moment"
            expected = at_times(time, known[0], reference.sel({reference.dims[1]: column}).values)
            expected *= np.sign(np.nansum(expected * torque))
            center = raw.motion.data["body_position"].sel(body=f"{body}_{side}").values
            their_center = at_times(
                time, motion.data["time"].values, motion.data["body_position"].sel(body=f"{their_body}_{side}").values
            )
            force, moment = (
                raw.data[f"joint_reaction_{kind}"].sel(joint=f"{joint}_{side}").values for kind in ("force", "moment")
            )
            axis = ours[f"{coordinate}_{side}"]
            assert (axis * moment).sum(axis=1) == pytest.approx(torque, abs=1e-9)
            moment = moment + np.cross(center - their_center, force)
            their_axis = at_times(time, known[1], theirs[f"{their_coordinate}_{side}"])
            their_axis *= np.sign((axis * their_axis).sum(axis=1, keepdims=True))
            stance = inside & (own.data["ground_reaction_force"].sel(foot=foot, axis="z").values > STANCE)
            steps = (filtered, torque, (axis * moment).sum(axis=1), (their_axis * moment).sum(axis=1))
            found.append([np.sqrt(np.mean((step - expected)[stance] ** 2)) / mass for step in steps])
        rms = np.mean(found, axis=0)
        print(name, coordinate, "as analyzed, raw plates, their centers, their axes:", rms.round(3), "N m/kg")
        assert rms[0] < LIMITS[name][coordinate][0]
        assert rms[2] < LIMITS[name][coordinate][1]

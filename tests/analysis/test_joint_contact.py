"""Joint contact forces against OpenSim's JointReaction analysis of gait2392, with its published muscle forces."""

import numpy as np
import pytest

from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.motion import rotate, to_model_axes
from borelli.analysis.muscle_forces import joint_contact_forces
from borelli.analysis.opensim_setup import loads_from_setup, read_external_loads
from borelli.model.io import read_model
from borelli.model.kinematics import poses
from borelli.recording.io import read_recording

from .opensim_trials import DATA, folder, motion_of

pytestmark = pytest.mark.data
END = 0.05
"""[s] at the ends of the trial, where accelerations depend on the spline's ends."""


def columns(table, names, time):
    data = read_recording(table).data
    return np.column_stack([np.interp(time, data["time"].values, data["column_value"].sel(column=n)) for n in names])


def test_hip_load_is_that_of_opensim():
    """Within 1 % of the peak, 2669 N: the published forces miss the torques of the motion by a few newton meters."""
    where = folder("gait2392")
    model = read_model(where / "subject01_simbody_adjusted_StaticOp.osim")
    motion = motion_of(model, read_recording(where / "reference/StaticOptimization_input_Kinematics.sto"))
    plates = read_recording(DATA / "subject01_walk/subject01_walk1_grf.mot")
    loads = loads_from_setup(read_external_loads(where / "setup/subject01_walk1_grf.xml"), plates, at_origin=True)
    torques = inverse_dynamics(motion, forces=loads, filter="none")
    time = torques.data["time"].values
    force = columns(where / "reference/StaticOptimization_force.sto", [m.name for m in model.muscles], time)
    contact = joint_contact_forces(torques, force)["joint_contact_force"].sel(joint="hip_r").values
    femur = [body.name for body in model.bodies].index("femur_r")
    rotation = poses(model, torques.data["coordinate_value"].values)[1][:, femur]
    in_femur = np.einsum("fij,fi->fj", rotation, rotate(contact, to_model_axes(model).T))
    expected = columns(
        where / "reference/JointReaction_ReactionLoads.sto", [f"hip_r_on_femur_r_in_femur_r_f{a}" for a in "xyz"], time
    )
    peak = np.linalg.norm(expected, axis=1).max()
    assert 2600.0 < peak < 2700.0
    inner = (time > time[0] + END) & (time < time[-1] - END)
    assert np.linalg.norm(in_femur - expected, axis=1)[inner].max() < 0.01 * peak

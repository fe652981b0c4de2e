"""Marker-driven kinematics and stepped torques of recordings: a walk, and a drop jump with strong ground contact."""

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.analysis.stepped.marker_driven_ik import find_lag
from borelli.analysis.stepped.stepped_torques import stepped_torques
from borelli.experiments.movement.jump import metrics, reproduce
from borelli.model.io import read_model
from borelli.people.human import human
from borelli.recording.io import read_recording

from ...shared_data import SHARED_DATA as DATA

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def walk():
    recording = read_recording(DATA / "hdm" / "data.c3d")
    model = fit_model(human(80.0, 1.8), recording).model
    return model, recording, inverse_kinematics(model, recording)


def test_marker_driven_walk_is_close_to_the_framewise_one(walk):
    model, recording, framewise = walk
    driven = inverse_kinematics(model, recording, method="marker_driven")
    assert driven.marker_rms < framewise.marker_rms + 0.1e-3  # [m]: 2.55 and 2.48 mm
    assert abs(find_lag(driven, framewise)) < 1e-3  # [s]: 0.4 ms


def test_the_walk_is_reproduced_by_contacts_and_a_limited_moment(walk):
    _, _, framewise = walk
    torques = stepped_torques(framewise, forces="contacts")
    residual = torques.data["residual_moment"].values
    assert np.abs(residual).max() <= 100.0
    assert torques.residual_moment_rms < 60.0  # [N m]; Liu, Cooper and Ballard: 30 to 100
    assert np.abs(torques.data["coordinate_error"].values[:, 2]).max() < 0.05  # [m]: it does not fall
    assert np.degrees(torques.rms_error) < 0.5
    vertical = torques.data["ground_reaction_force"].values[..., 2].sum(axis=1)
    assert vertical.mean() == pytest.approx(80.0 * 9.81, rel=0.03)
    assert torques.data.attrs["numerical_percent"] < 0.1  # of positive work
    assert compute_energy(torques).balance_error < 1e-6  # [%]
    # torques do not chatter as the foot rolls from corner to corner: 12.6, 8.5, 2.6 N m above 15 Hz (on soles of
    # 6e4 N/m that sink under load 22, 14.5, 8.5)
    named = ["hip_flexion_r", "knee_flexion_r", "ankle_flexion_r"]
    fast = sosfiltfilt(butter(4, 15.0, "high", fs=framewise.rate, output="sos"), torques.data["torque"].sel(
        coordinate=named).values, axis=0)[12:-12]  # fmt: skip
    assert np.all(np.sqrt(np.mean(fast**2, axis=0)) < [15.0, 10.0, 4.0])


def test_a_walk_of_another_laboratory_stays_up_on_contacts():
    folder = DATA / "opensim" / "opencap_subject4"
    motion = inverse_kinematics(
        read_model(folder / "optimized_scale_and_markers.osim"), read_recording(folder / "walking1.trc")
    )
    torques = stepped_torques(motion, forces="contacts")
    assert np.degrees(torques.rms_error) < 0.7  # 0.48
    height = [str(n) for n in torques.data["coordinate"].values].index("pelvis_ty")
    assert np.abs(torques.data["coordinate_error"].values[:, height]).max() < 0.05  # [m]
    assert compute_energy(torques).balance_error < 1e-4  # [%]; couplings' rows are soft


def test_a_drop_jump_is_reproduced_from_landing_on():
    folder = DATA / "opensim" / "opencap_subject4"
    model = read_model(folder / "optimized_scale_and_markers.osim")
    whole = inverse_kinematics(model, read_recording(folder / "DJ1.trc"))
    start = 134  # the subject stands on a box until then; plates are touched at frame 142
    time = whole.data["time"].values[start:]
    row = metrics(reproduce(make_motion(model, whole.coordinates[start:], time, whole.rate), 100.0))
    assert row["residual_torque_max_nm"] <= 100.0 + 1e-9
    assert row["residual_force_max_n"] == 0.0
    assert row["root_deviation_m"] < 0.15
    assert row["angle_rms_deg"] < 1.0

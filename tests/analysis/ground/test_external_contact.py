"""External contact: a seat without a plate is found, measured feet stay as they are, and its force is estimated."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.ground.off_plate_steps import SOURCE, _off_plates
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.errors import SettingsError
from borelli.export.stage_files import read_stage, write_stage
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.forces.plate_area import inside_plates
from borelli.synthetic.recordings import synthetic_recording

WEIGHT = 68.0 * 9.81
MAX_SEAT_ERROR = 0.1 * WEIGHT
"""[N]: the error that an estimated seat may have in any frame; it is 0.024 of the weight."""


@cache
def standing_up(corners=True):
    """Return the motion of standing up from a seat, and the force of the seat."""
    made = synthetic_recording("sit_to_stand")
    recording = clean(made.recording, cutoff=None)
    if not corners:  # as in a .mot file
        recording = recording.with_data(recording.data.drop_vars("plate_corners"))
    return inverse_kinematics(made.model, recording), made.seat_force


def contact_note(torques):
    (note,) = [note for note in torques.notes if note.code == "external_contact"]
    return note


@pytest.mark.parametrize("corners", [True, False])
def test_feet_of_a_seated_subject_are_kept_to_the_bit(corners):
    motion, seat = standing_up(corners)
    found = compute_torques(motion, AnalysisSettings(plate_cutoff=0.0))
    raw = assign_plates(synthetic_recording("sit_to_stand").recording).data.sel(foot=["right", "left"])
    for name, kept in (("ground_reaction_force", found.loads.force), ("free_moment", found.loads.moment)):
        assert np.array_equal(kept, raw[name].values), name
    assert found.grf_source == "plates" and (found.data["grf_source"].values == "plate").all()
    note = contact_note(found)
    assert note.kind == "problem" and "--contact" in note.action
    seated = seat[:, 2] > 0.25 * WEIGHT
    assert not found.grf_known[seated].any() and found.grf_known[~(seat[:, 2] > 0.0)][10:].all()


def test_the_force_of_the_seat_is_estimated_on_request():
    motion, seat = standing_up()
    found = compute_torques(motion, AnalysisSettings(contact="pelvis"))
    force = found.data["ground_reaction_force"]
    assert np.abs(force.sel(foot="pelvis").values - seat).max() < MAX_SEAT_ERROR
    plain = compute_torques(motion, AnalysisSettings())
    feet = ["right", "left"]
    assert np.array_equal(force.sel(foot=feet).values, plain.data["ground_reaction_force"].values)
    assert found.grf_known.all() and "estimated" in contact_note(found).text
    # a contact of the root body changes the residual and no torque of a joint
    assert np.allclose(found.data["torque"].values[:, 6:], plain.data["torque"].values[:, 6:], atol=1e-6)
    whole = np.linalg.norm(found.data["residual_force"].values, axis=1)
    assert whole.max() < 0.05 * WEIGHT
    assert compute_energy(found).balance_error < 0.1


def test_an_estimated_contact_is_restored_from_a_file(tmp_path):
    motion, _ = standing_up()
    found = inverse_dynamics(motion, forces=SOURCE, contact="pelvis")
    write_stage(found, tmp_path / "torques.nc")
    again = read_stage(tmp_path / "torques.nc")
    assert again.loads.body[-1] == "pelvis" and again.settings["contact"] == "pelvis"
    assert again.data.equals(found.data)


def test_a_contact_needs_plates_a_body_of_the_model_and_a_deficit():
    motion, _ = standing_up()
    with pytest.raises(SettingsError, match="Unknown body 'seat'"):
        compute_torques(motion, AnalysisSettings(contact="seat"))
    with pytest.raises(SettingsError, match="force plate"):
        compute_torques(motion, AnalysisSettings(contact="pelvis", plates=False))
    standing = replace(motion, data=motion.data.isel(time=slice(250, None)))
    found = compute_torques(standing, AnalysisSettings(contact="pelvis"))
    assert "No external contact" in contact_note(found).text


def test_a_foot_above_a_loaded_plate_is_not_off_it_whatever_it_measures():
    """One foot stands alone for 1 s; its plate measures half of what is needed."""
    time, needed = np.arange(100) / 100.0, np.zeros((100, 2))
    needed[:, 0] = 1.0
    measured, complete = 0.5 * needed, np.zeros(100, bool)
    on, half_off = np.ones((100, 2), bool), np.zeros((100, 2), bool)
    assert not _off_plates(time, complete, needed, measured, on).any()
    assert _off_plates(time, complete, needed, measured, half_off)[:, 0].all()
    assert _off_plates(time, complete, needed, 0.0 * measured, on)[:, 0].all()  # a plate that did not record


def test_points_above_plates_in_either_order_of_corners():
    corners = np.array([[[0.0, 0, 0], [0.5, 0, 0], [0.5, 0.4, 0], [0, 0.4, 0]]])
    points = np.array([[0.1, 0.1, 0.0], [0.51, 0.2, 0.3], [0.6, 0.2, 0.0], [-0.3, -0.3, 0.0]])
    for plates in (corners, corners[:, ::-1]):
        assert inside_plates(points, plates).tolist() == [True, True, False, False]

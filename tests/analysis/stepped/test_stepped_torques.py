"""Stepped torques: compared with known torques, with contacts and measured forces, their work, and their replays."""

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import coordinate_forces, forward_kinematics, subtree_wrenches, weight_wrenches
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.stepped.dataset import about_origin, external_wrenches, inertial_wrenches
from borelli.analysis.stepped.replay import replay
from borelli.analysis.stepped.stepped_torques import stepped_torques
from borelli.analysis.stepped.stepper import drive_axis_forces
from borelli.bench.metrics import torque_error
from borelli.errors import SettingsError
from borelli.physics.inputs import Residual

from ..job_motion import job, job_model, job_truth

ERROR = 0.02  # [%] of the torques' RMS: central differences at 120 Hz; bench/run_borelli.py has 0.0198
WEIGHT = 71.0 * 9.81  # [N] of the job's human


@pytest.fixture(scope="module")
def free():
    return stepped_torques(job(2.0), filter="none")


@pytest.fixture(scope="module")
def standing():
    return stepped_torques(job(), filter="none", forces="contacts", ground=None, residual=0.0)


def test_torques_are_those_of_the_motion(free):
    q, truth = job_truth(2.0)
    found = drive_axis_forces(free.stepper.compiled, q, free.data["torque"].values)[:, 6:]
    assert torque_error(found[:-1], truth) < ERROR


def test_the_motion_is_tracked_and_parts_add_up(free):
    assert free.rms_error < 1e-6  # steps move bodies along straight lines: second order in the step
    parts = sum(free.data[f"torque_{part}"].values for part in ("inertial", "gravity", "ground"))
    assert parts == pytest.approx(free.data["torque"].values, abs=1e-9)


def test_rows_agree_with_newton_and_euler(free):
    """The bodies' own accelerations, summed from tips to root, require what drives and residual rows supply."""
    data, stepper, record = free.data, free.stepper, free.record
    names = ("coordinate_value", "coordinate_velocity", "coordinate_acceleration")
    moved = forward_kinematics(job_model(), *(data[name].values for name in names))
    external = about_origin(record, external_wrenches(stepper, record)).transpose(1, 2, 0)
    carried = subtree_wrenches(moved, inertial_wrenches(stepper.compiled, record) + weight_wrenches(moved) - external)
    required = coordinate_forces(moved, carried)
    assert required[:, 6:] == pytest.approx(data["torque"].values[:, 6:], abs=0.01)  # gaps of 1e-6 m times weight
    assert required[:, :3] == pytest.approx(data["residual_force"].values, abs=1e-6)


def test_work_of_all_rows_is_the_change_of_energy(free, standing):
    """Every term by its own formula, none by what the others leave: they add up to rounding."""
    for torques in (free, standing):
        assert torques.data.attrs["numerical_percent"] < 0.01  # [%] of positive work; 0.1 is reported
        found = compute_energy(torques)
        assert found.balance_error < 1e-8  # [%]: rounding
        summary = found.summary
        absolute = summary["numerical_work_absolute_j"]
        assert abs(summary["numerical_work_net_j"]) <= absolute < 0.1 * summary["positive_work_j"]


def test_work_of_the_scheme_falls_with_the_step(free):
    """Joint rows have opposite errors before and after a step: second order is left midway."""
    coarse, fine = compute_energy(free), compute_energy(stepped_torques(job(2.0), filter="none", substeps=4))
    assert fine.balance_error < 1e-8
    parts = [found.summary["numerical_work_absolute_j"] / found.summary["positive_work_j"] for found in (coarse, fine)]
    assert parts[1] == pytest.approx(parts[0] / 4**2, rel=0.05)
    assert fine.summary["positive_work_j"] == pytest.approx(coarse.summary["positive_work_j"], rel=0.01)


def test_several_steps_per_frame_give_the_same_torques(free):
    fine = stepped_torques(job(2.0), filter="none", substeps=4)
    assert fine.data.sizes["time"] == free.data.sizes["time"]
    inside = slice(2, -2)
    torque, other = (t.data["torque"].values[inside, 6:] for t in (free, fine))
    # both are means over the frames around with the same weight
    assert np.sqrt(np.mean((torque - other) ** 2)) < 2e-3 * np.sqrt(np.mean(torque**2))
    opened = replay(fine, loop="open")
    error = opened.data["coordinate_error"].values - fine.data["coordinate_error"].values
    assert np.abs(error[:30]).max() < 1e-9  # 0.25 s: only rounding, growing
    with pytest.raises(SettingsError, match="substeps"):
        stepped_torques(job(), substeps=0)


def test_contacts_alone_support_the_body(standing):
    data = standing.data
    assert np.abs(data["residual_force"].values).max() == 0.0
    assert np.abs(data["residual_moment"].values).max() == 0.0
    acceleration = np.gradient(np.gradient(_center(), 1 / 120.0, axis=0), 1 / 120.0, axis=0)
    vertical = data["ground_reaction_force"].values[..., 2].sum(axis=1)
    expected = WEIGHT + 71.0 * acceleration[:, 2]
    assert vertical[6:-6] == pytest.approx(expected[6:-6], abs=0.05 * WEIGHT)
    assert np.abs(data["coordinate_error"].values[:, :3]).max() < 0.01  # [m]: the feet stay, so the body does
    assert np.nanmin(data["center_of_pressure"].values[..., 0]) > -0.07  # under the feet: heel at -0.06 m
    assert np.nanmax(data["center_of_pressure"].values[..., 0]) < 0.22


def test_a_limited_residual_stays_within_its_limit():
    torques = stepped_torques(
        job(), filter="none", forces="contacts", ground=None, residual=[Residual("pelvis", 4, 5.0)]
    )
    residual = torques.data["residual_moment"].values
    assert np.abs(residual[:, 1]).max() == pytest.approx(5.0)
    assert np.abs(residual[:, [0, 2]]).max() == 0.0


def test_measured_forces_replace_the_residual(standing):
    """Contact forces, applied as if plates had measured them, leave little residual."""
    data = standing.data
    point = np.nan_to_num(data["center_of_pressure"].values)
    loads = Loads(
        ("right", "left"), ("right_foot", "left_foot"), data["time"].values, data["ground_reaction_force"].values,
        point, data["free_moment"].values,
    )  # fmt: skip
    torques = stepped_torques(job(), filter="none", forces=loads)
    inside = slice(10, -10)  # at the ends the contacts converge
    assert np.abs(torques.data["residual_force"].values[inside]).max() < 0.1 * WEIGHT
    assert np.abs(torques.data["residual_force"].values[inside]).mean() < 0.01 * WEIGHT
    assert torques.data["grf_complete"].values[inside].all()
    assert torques.data.attrs["plate_mass_kg"] == pytest.approx(WEIGHT / 9.81, rel=0.03)


def test_replayed_torques_reproduce_the_motion_then_drift(free):
    opened = replay(free, loop="open")
    error = opened.data["coordinate_error"].values - free.data["coordinate_error"].values
    assert np.abs(error[:60]).max() < 1e-9  # 0.5 s: only rounding, growing
    angles = opened.data["coordinate_error"].values[:, opened.data["coordinate_units"].values == "rad"]
    drifted = opened.data["time"].values[np.abs(angles).max(axis=1) > 1e-3]
    assert drifted[0] - opened.data["time"].values[0] < 1.9  # there is no feedback: the body drifts
    closed = replay(free, loop="closed")
    assert closed.rms_error < 1e-6
    assert np.abs(closed.data["feedback"].values).max() < 1e-6
    assert replay(free, loop="kinematic").rms_error < 1e-12


def test_a_standing_body_falls_in_open_loop_and_stands_in_closed_loop():
    torques = stepped_torques(job(2.0), filter="none", forces="contacts", ground=None, residual=30.0)
    assert np.nanmax(replay(torques, loop="open").data["root_drop"].values) > 0.25  # [m]: it has fallen
    closed = replay(torques, loop="closed")
    assert closed.data["root_tracking_error"].values.max() < 0.01


def test_drives_with_limits_and_tolerances_have_tracking_errors():
    limited = stepped_torques(job(), filter="none", max_force={"left_hand_y": 0.0, "left_hand_x": 0.0})
    hand = [str(n) for n in limited.data["coordinate"].values].index("left_hand_y")
    assert np.abs(limited.data["torque"].values[:, hand]).max() == 0.0
    assert np.abs(limited.data["coordinate_error"].values[:, hand]).max() > 0.1  # [rad]: it hangs
    loose = stepped_torques(job(), filter="none", tolerance={"left_hand_y": 0.05})
    assert np.abs(loose.data["coordinate_error"].values[:, hand]).max() == pytest.approx(0.05, abs=0.01)


def test_unknown_options_raise(free):
    with pytest.raises(SettingsError, match="source of forces"):
        stepped_torques(job(), forces="hope")
    with pytest.raises(SettingsError, match="loop"):
        replay(free, loop="round")
    with pytest.raises(SettingsError, match="no recording"):
        stepped_torques(job(), forces="plates")


def _center():
    from borelli.model.kinematics import center_of_mass

    return center_of_mass(job_model(), job_truth()[0])

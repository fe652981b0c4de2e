"""Synthetic recordings: Newton's laws, stationary feet in stance, and notes that state they are synthetic."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.kinematics import center_of_mass, marker_positions
from borelli.normative.gait import normative_curve, relative_speed, speed_class
from borelli.people.human import human
from borelli.recording.forces.gait_events import STRIKE, gait_events
from borelli.synthetic.curves import harmonics, minimum_jerk, spline_derivatives
from borelli.synthetic.ground_forces import distribute_load, root_wrench, sole_points
from borelli.synthetic.recordings import synthetic_recording
from borelli.synthetic.walk import CYCLE, left_load_fraction, walk_coordinates

SLIP = 0.010  # [m]: few harmonics cannot keep a foot quite still


@pytest.fixture(scope="module")
def model():
    return human(68.0, 1.72, "female")


@pytest.mark.parametrize("task", ["walk", "jump", "reach", "sit_to_stand"])
def test_plate_forces_obey_newton(task):
    synthetic = synthetic_recording(task, noise=0.0, gaps=0.0)
    data = synthetic.recording.data
    weight = synthetic.model.mass * 9.81
    time = data["time"].values
    center = center_of_mass(synthetic.model, synthetic.coordinates)
    _, _, acceleration = spline_derivatives(center, time[1] - time[0])
    force = np.stack([
        np.interp(time, data["analog_time"].values, data["plate_force"].sum("plate").values[:, i]) for i in range(3)
    ], axis=1)  # fmt: skip
    force = force if synthetic.seat_force is None else force + synthetic.seat_force
    needed = synthetic.model.mass * acceleration + np.array([0.0, 0.0, weight])
    inner = slice(8, -8)
    if task == "jump":  # frames are too coarse at takeoff and landing
        near = np.min(np.abs(time[:, None] - [0.66, 0.95, 1.378, 1.638]), axis=1) < 0.04
        force, needed = force[~near], needed[~near]
    assert np.abs(force - needed)[inner].max() < 0.05 * weight
    assert np.sqrt(((force - needed)[inner] ** 2).mean()) < 0.01 * weight


def test_a_seat_carries_most_of_a_seated_body_and_nothing_of_a_standing_one():
    synthetic = synthetic_recording("sit_to_stand", noise=0.0, gaps=0.0)
    weight, seat = synthetic.model.mass * 9.81, synthetic.seat_force[:, 2]
    assert 0.5 * weight < seat[0] < 0.9 * weight and seat.min() >= 0.0
    leaves = np.flatnonzero(seat > 0.0)[-1]
    assert not seat[leaves + 1 :].any() and 0.5 < 0.01 * leaves < 2.0
    # the pelvis has not risen yet, and the feet stay where they are
    assert np.ptp(synthetic.coordinates[: leaves + 1, 2]) < 0.01
    assert np.ptp(sole_points(synthetic.model, synthetic.coordinates), axis=0).max() < SLIP
    center = synthetic.recording.data["plate_center_of_pressure"].values
    soles = sole_points(synthetic.model, synthetic.coordinates)[..., 0]
    assert soles.min() < np.nanmin(center[..., 0]) and np.nanmax(center[..., 0]) < soles.max()


def test_distributed_loads_have_the_given_force_and_moment():
    rng = np.random.default_rng(3)
    force = rng.normal(0.0, 50.0, (40, 3)) + np.array([0.0, 0.0, 700.0])
    moment, under = rng.normal(0.0, 60.0, (40, 3)), rng.normal(0.0, 0.2, (40, 2, 3))
    loads = distribute_load(force, moment, rng.uniform(0.0, 1.0, 40), under)
    assert np.allclose(loads.force.sum(axis=1), force)
    assert np.allclose((np.cross(loads.center, loads.force) + loads.free_moment).sum(axis=1), moment)
    assert not loads.center[..., 2].any()


def test_root_wrench_of_a_standing_body_is_its_weight(model):
    q = np.array([[c.default for c in model.coordinates]] * 2)
    q[1, 3:6] = 0.3, -0.2, 0.5
    force, moment = root_wrench(model, q, 0.0 * q, 0.0 * q)
    weight = np.array([0.0, 0.0, 9.81 * model.mass])
    assert np.allclose(force, weight)
    assert np.allclose(moment, np.cross(center_of_mass(model, q), weight))


def test_feet_of_the_walk_are_stationary_in_stance(model):
    time = np.arange(0.0, 2.0 * CYCLE, 0.01)
    soles = sole_points(model, walk_coordinates(model, time).coordinates)
    phase = (time / CYCLE) % 1.0
    flat = (phase > 0.14) & (phase < 0.32) & (time < CYCLE)  # the right foot
    assert np.ptp(soles[flat, 1, :4, :2], axis=0).max() < SLIP
    assert soles[..., 2].min() > -0.02  # toes of a swinging foot graze the ground
    assert np.abs(soles[flat, 1, 2:4, 2]).max() < SLIP  # the ball; the heel rises slowly


def test_walk_is_close_to_normative_angles_and_speed(model):
    time = np.arange(101) / 100.0 * CYCLE
    q = walk_coordinates(model, time).coordinates
    names = [c.name for c in model.coordinates]
    for coordinate, curve, off in (
        ("knee_flexion_r", "knee_flexion", 7.0),
        ("ankle_flexion_r", "ankle_dorsiflexion", 5.0),
    ):
        found = np.degrees(q[:, names.index(coordinate)])
        assert np.sqrt(((found - normative_curve(curve).mean) ** 2).mean()) < off
    assert (q[-1, 0] - q[0, 0]) / CYCLE == pytest.approx(0.76 * 1.72 / CYCLE, abs=0.01)
    assert left_load_fraction(np.array([0.3, 0.8])).tolist() == [0.0, 1.0]


def test_walk_of_another_model_raises(model):
    from borelli.scenes.gallery import gallery_scene

    with pytest.raises(SettingsError, match="human"):
        walk_coordinates(gallery_scene("pendulum").model, np.zeros(2))


def test_recording_states_that_it_is_synthetic_and_has_noise_and_gaps(walk):
    recording = walk.recording
    assert recording.metadata["synthetic"] is True
    assert recording.notes[0].code == "synthetic"
    measured = recording.data["marker_position"].values
    assert 0.02 <= np.isnan(measured).any(axis=-1).mean() < 0.03
    error = measured - marker_positions(walk.model, walk.coordinates)
    assert np.nanstd(error) == pytest.approx(1e-3, rel=0.05)
    strikes = [e.time for e in gait_events(recording, "plates") if e.label == STRIKE and e.context == "Right"]
    assert np.diff(strikes) == pytest.approx(CYCLE, abs=0.02)


def test_recordings_depend_on_the_seed_only():
    one, same, other = (synthetic_recording("reach", seed=seed).recording.data for seed in (1, 1, 2))
    assert one.equals(same) and not one.equals(other)


def test_unknown_task_names_the_known_ones():
    with pytest.raises(SettingsError, match="walk"):
        synthetic_recording("cartwheel")


def test_normative_curves_have_standard_deviations_and_speeds():
    assert speed_class(relative_speed(1.25, 0.85)) == "free"
    assert speed_class(relative_speed(0.3, 0.9)) == "very slow"
    assert normative_curve("knee_flexion").mean.max() == pytest.approx(
        59.3, abs=1.0
    )  # Schwartz 2008, free speed, at 72 %
    assert (
        normative_curve("ankle_plantarflexor_moment", "fast").mean.max()
        > normative_curve("ankle_plantarflexor_moment", "slow").mean.max()
    )
    assert normative_curve("knee_flexion", source="pinzone2014").sd.min() > 0.0
    assert normative_curve("trunk_tilt", source="pinzone2014") is None


def test_minimum_jerk_passes_its_knots_and_harmonics_repeat():
    knots = [(0.0, 1.0), (0.5, 2.0, 3.0, -9.81), (1.0, 0.0)]
    assert minimum_jerk(knots, [-1.0, 0.0, 0.5, 1.0, 2.0]) == pytest.approx([1.0, 1.0, 2.0, 0.0, 0.0])
    step = 1e-4
    three = minimum_jerk(knots, [0.5 - step, 0.5, 0.5 + step])
    assert (three[2] - three[0]) / (2 * step) == pytest.approx(3.0, abs=1e-3)
    phase = np.arange(50) / 50
    assert harmonics(phase, np.sin(2 * np.pi * phase), [0.25, 1.25], 3) == pytest.approx([1.0, 1.0])

"""Tracking, muscles of a prescribed motion and what-if of a forearm whose torque is known."""

import json

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.optimal import Actuation, TrackingWeights, read_solution, solve_inverse, track_motion, what_if
from borelli.optimal.tracking.changes import apply_changes, parse_change
from borelli.optimal.tracking.reference import make_reference

from .arm import DURATION, angle, forearm, recorded_torques, torque


@pytest.fixture(scope="module")
def plain():
    return recorded_torques(muscles=False)


@pytest.fixture(scope="module")
def muscled():
    return recorded_torques()


def test_torque_of_a_tracked_motion_is_the_closed_form(plain):
    weights = TrackingWeights(tracking=1e6, speed=1e3, effort=1e-3)
    tracked = track_motion(plain, tendon=None, weights=weights, start=0.1, end=0.7)
    assert tracked.solved, tracked.solution.certificate
    time = tracked.solution.dataset["time"].values
    assert tracked.solution.value("elbow") == pytest.approx(angle(time + 0.1)[0], abs=1e-4)
    inner = (time > 0.05) & (time < 0.55)
    assert tracked.solution.value("elbow_torque")[inner] == pytest.approx(torque(time + 0.1)[inner], abs=0.05)
    assert tracked.errors()["elbow"] < 1e-4
    motion = tracked.motion()
    assert motion.data["time"].values[[0, -1]] == pytest.approx([0.1, 0.7])
    assert motion.coordinates[:, 0] == pytest.approx(angle(motion.data["time"].values)[0], abs=1e-3)


def test_more_effort_weight_leaves_the_recording(plain):
    """With the weights exchanged the arm hangs more: effort is weighed against tracking."""
    near = track_motion(plain, tendon=None, refine=0)
    far = track_motion(plain, tendon=None, weights=TrackingWeights(tracking=1e-2, speed=1e-3, effort=10.0), refine=0)
    assert far.errors()["elbow"] > 10.0 * near.errors()["elbow"]
    effort = [np.abs(one.solution.value("elbow_torque")).mean() for one in (near, far)]
    assert effort[1] < effort[0]


def test_muscles_of_a_tracked_motion_produce_its_torque(muscled):
    tracked = track_motion(muscled, start=0.1, end=0.7, actuation=Actuation(reserve=1.0))
    assert tracked.solved, tracked.solution.certificate
    activation = tracked.solution.dataset["muscle_activation"]
    assert float(activation.min()) >= 0.0 and float(activation.max()) < 1.0
    assert np.abs(tracked.solution.value("elbow_torque")).max() < 0.2
    first = tracked.solution.value("flexor_r_activation")[0], tracked.solution.value("flexor_r_excitation")[0]
    assert first[0] == pytest.approx(first[1], abs=1e-6)


def test_inverse_produces_the_torque_by_muscles_and_reserves(muscled):
    found = solve_inverse(muscled, start=0.1, end=0.7, reserve=1.0)
    assert found.solved and found.prescribed, found.solution.certificate
    solution = found.solution
    time = solution.dataset["time"].values
    reference = found.reference
    lengths = {"flexor_r": ((0.04, 0.25), (0.03, -0.05)), "extensor_r": ((-0.04, 0.25), (-0.03, -0.04))}
    total = solution.value("elbow_torque").copy()
    for name, (a, b) in lengths.items():

        def length(q, a=a, b=b):
            x, y = np.cos(q) * b[0] - np.sin(q) * b[1], np.sin(q) * b[0] + np.cos(q) * b[1]
            return np.hypot(x - a[0], y - a[1])

        q = angle(time + 0.1)[0]
        arm = -(length(q + 1e-6) - length(q - 1e-6)) / 2e-6
        total += arm * solution.value(f"{name}_force")
    assert total == pytest.approx(torque(time + 0.1), abs=5e-3)
    assert reference.duration == pytest.approx(0.6)
    rate = np.gradient(solution.value("flexor_r_activation"), time)
    assert np.abs(rate).max() < 1.0 / 0.015  # activation dynamics bound its rate


def test_inverse_with_elastic_tendons(muscled):
    found = solve_inverse(muscled, tendon="elastic", start=0.1, end=0.7, reserve=1.0, fiber_damping=0.05)
    assert found.solved, found.solution.certificate
    force = found.solution.value("flexor_r_tendon_force")
    assert force * 900.0 == pytest.approx(found.solution.value("flexor_r_force"), rel=1e-6)


def test_weak_flexor_needs_more_activation(muscled):
    result = what_if(muscled, ["flexor 50%"], start=0.1, end=0.7)
    assert result.solved
    figures = result.compare()
    before, after = figures["mean_flexor_r_activation"]
    assert after > 1.3 * before
    data = result.dataset()
    assert data["muscle_activation"].dims == ("person", "time", "muscle")
    assert data.attrs["changes"] == "flexor 50%"


def test_added_mass_and_spring_change_the_equations(plain):
    """A spring that carries the mean moment lowers the effort, a mass at the forearm raises it."""
    heavy = what_if(plain, ["forearm 1kg"], tendon=None, refine=0).compare()["cost_effort"]
    helped = what_if(plain, ["elbow 4Nm/rad"], tendon=None, refine=0).compare()["cost_effort"]
    assert heavy[1] > 1.3 * heavy[0] and helped[1] > heavy[0]  # the spring pulls toward zero, against flexion


def test_changes_of_a_model():
    model = forearm()
    weak = apply_changes(model, [parse_change("flexor 50%")]).model
    assert [m.max_isometric_force for m in weak.muscles] == [450.0, 900.0]
    assert apply_changes(model, [parse_change("forearm 1.5kg")]).mass_ratio == pytest.approx(2.0)
    for text, words in (
        ("flexor", "another form"), ("flexr 50%", "did you mean"), ("flexor 0%", "not between"),
        ("forearm -1kg", "negative"), ("elbow 5N", "another form"),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match=words):
            apply_changes(model, [parse_change(text)])


def test_references_need_frames_and_intervals(plain):
    with pytest.raises(SettingsError, match="frames with known ground reaction force"):
        make_reference(plain, start=5.0)
    with pytest.raises(SettingsError, match="positive time between control nodes"):
        track_motion(plain, interval=0.0)
    with pytest.raises(SettingsError, match="weight"):
        TrackingWeights(effort=-1.0)
    assert make_reference(plain, muscles=False).duration == pytest.approx(DURATION)


def test_saved_solution_and_plot(plain, tmp_path):
    tracked = track_motion(plain, tendon=None, refine=0)
    tracked.solution.save(tmp_path / "solution.nc")
    assert read_solution(tmp_path / "solution.nc").objective == tracked.solution.objective
    assert {"coordinate_value", "coordinate_velocity", "torque"} <= set(tracked.solution.dataset)
    tracked.plot(tmp_path / "track.png")
    assert (tmp_path / "track.png").stat().st_size > 10_000
    json.dumps(tracked.summary())

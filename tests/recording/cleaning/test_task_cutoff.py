"""Cutoff by task: contacts on plates, flight of the markers, and what is reported."""

import numpy as np
import pytest

from borelli.recording.clean import clean
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.cleaning.task_cutoff import FLIGHT_CUTOFF, contact_duration, has_flight, task_cutoff
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.recordings import synthetic_recording

from ...shared_data import shared


def steps(duration, count=4, every=0.5, rate=200.0, height=0.0):
    """Return a recording with steps of a duration [s] on plates, and a marker at some heights [m]."""
    time = np.arange(2000) / 1000.0
    force = np.zeros((2000, 2, 3))
    for k in range(count):
        inside = (time >= k * every + 0.1) & (time < k * every + 0.1 + duration)
        force[inside, k % 2, 2] = 900.0
    zero = np.zeros_like(force)
    marker = np.zeros((int(2 * rate), 1, 3))
    marker[:, 0, 2] = height
    data = make_dataset(
        {"ground_reaction_force": force, "center_of_pressure": zero, "free_moment": zero, "marker_position": marker},
        {"foot": ["left", "right"], "marker": ["a"]}, rate=rate, analog_rate=1000.0,
    )  # fmt: skip
    return Recording(data)


def test_short_contacts_raise_the_cutoff():
    """Half a sine of 0.1 s has the first zero of its spectrum at 15 Hz."""
    spectrum = np.abs(np.fft.rfft(np.sin(np.pi * np.arange(1000) / 1000.0), 100_000))  # of 0.1 s, in steps of 0.1 Hz
    assert np.argmin(spectrum[100:200]) == pytest.approx(50, abs=1)
    cutoff, note = task_cutoff(steps(0.1))
    assert cutoff == pytest.approx(15.0, abs=0.2) and "contacts last 0.10 s" in note.text and note.action == "--cutoff"
    assert contact_duration(steps(0.25)) == pytest.approx(0.25, abs=0.002)
    assert task_cutoff(steps(0.2))[0] == pytest.approx(7.5, abs=0.1)
    for walk in (steps(0.4), steps(0.4, count=0), steps(0.01), None):  # contact chatter is no step
        cutoff, note = task_cutoff(walk)
        assert cutoff == CUTOFF and note.code == "cutoff" and note.kind == "inferred"


def test_a_cutoff_above_the_nyquist_frequency_is_a_problem():
    cutoff, note = task_cutoff(steps(0.06, rate=40.0))
    assert cutoff == CUTOFF and "Nyquist frequency of the recording (20 Hz)" in note.text and note.kind == "problem"


def test_falling_markers_are_in_flight():
    """0.2 s of free fall are flight, an acceleration of 0.5 g is not; gaps do not matter."""
    rate = 200.0
    time = np.arange(400) / rate
    for fraction, expected in ((1.0, True), (0.5, False)):
        falling = np.where((time > 0.8) & (time < 1.0), -9.81 * fraction, 0.0)
        height = np.cumsum(np.cumsum(falling)) / rate**2
        recording = steps(0.4, height=height)
        assert has_flight(recording) is expected
        assert task_cutoff(recording)[0] == (FLIGHT_CUTOFF if expected else CUTOFF)
        recording.data["marker_position"].values[30:40] = np.nan
        assert has_flight(recording) is expected


@pytest.mark.parametrize(("task", "expected"), [("walk", 6.0), ("reach", 6.0), ("sit_to_stand", 6.0), ("jump", 10.0)])
def test_synthetic_tasks(task, expected):
    recording = clean(synthetic_recording(task).recording, cutoff=None)
    assert task_cutoff(recording)[0] == expected
    names = [name for name in recording.data.data_vars if "analog_time" in recording.data[name].dims]
    assert task_cutoff(recording.with_data(recording.data.drop_vars(names)))[0] == expected  # without plates


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "expected"),
    [("c3d/qualisys_walk/Qualisys.c3d", 6.0), ("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", 6.0),
     ("opensim/hamner2010_running/subject02_running.trc", 10.0), ("opensim/opencap_subject4/DJ1.trc", 10.0),
     ("c3d/motionanalysis_walk_jump/Sample_Jump2.c3d", 10.0)],
)  # fmt: skip
def test_recorded_tasks(file, expected):
    assert task_cutoff(clean(read_recording(shared(file)), cutoff=None))[0] == expected

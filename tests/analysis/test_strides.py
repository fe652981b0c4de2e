"""Strides and spatiotemporal parameters: a synthetic walk with known footfalls, overground and on a treadmill."""

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.analysis.strides import (
    event_source,
    find_strides,
    is_jump,
    motion_events,
    parameters_by_side,
    spatiotemporal_parameters,
    statistic,
)
from borelli.people.human import human
from borelli.recording.forces.gait_events import OFF, STRIKE, standardize_event
from borelli.recording.io import read_recording
from borelli.recording.landmarks import find_landmarks, mean_position
from borelli.recording.recording import MIN_PLATE_FORCE, Recording, make_dataset
from borelli.synthetic.recordings import HEIGHT, MARKER_OFFSET_SD
from borelli.synthetic.walk import CYCLE, STRIDE

from ..shared_data import shared

MODEL = human(70.0, 1.75)
RATE = 100.0
STRIDE_TIME, STANCE = 1.0, 0.62  # [s], fraction of the stride
STEP = {"right": 0.72, "left": 0.64}  # [m] length of the step that ends with this foot's strike
WIDTH = 0.12  # [m]
LATE = {"right": 0.0, "left": 0.48}  # [s] strike after the start of each cycle


def footfalls(belt=0.0, heading=0.0):
    """Return a motion whose heels stand at known footfalls, with the events of each foot, heading [rad] from x."""
    time = np.arange(401) / RATE
    stride = STEP["right"] + STEP["left"]
    heels, events = [], []
    for side, y, first in (("right", -WIDTH / 2, 0.0), ("left", WIDTH / 2, STEP["left"])):
        strikes = np.arange(-2, 6) * STRIDE_TIME + LATE[side]
        x = first + stride * np.arange(-2, 6)
        # stands from strike to off, then moves on to the next footfall
        points = np.stack([np.ravel([strikes, strikes + STANCE * STRIDE_TIME], "F"), np.repeat(x, 2)])
        along = np.interp(time, *points)
        heels.append(np.stack([along, np.full(len(time), y), np.zeros(len(time))], axis=1))
        events += [(t, "Foot Strike", side.capitalize()) for t in strikes if 0.0 <= t <= time[-1]]
        events += [
            (t + STANCE * STRIDE_TIME, "Foot Off", side.capitalize()) for t in strikes if 0.0 <= t + STANCE <= 4.0
        ]
    c, s = np.cos(heading), np.sin(heading)
    markers = np.stack(heels, axis=1) + belt * np.outer(time, (1.0, 0.0, 0.0))[:, None]
    markers = markers @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T
    events.sort()
    data = make_dataset({"marker_position": markers}, {"marker": ["RHEE", "LHEE"]}, rate=RATE)
    data = data.assign(event_time=("event", [event[0] for event in events])).assign_coords(
        event_label=("event", [event[1] for event in events]), event_context=("event", [event[2] for event in events])
    )
    q = np.tile([c.default for c in MODEL.coordinates], (len(time), 1))
    return make_motion(MODEL, q, time, RATE, recording=Recording(data))


def check(table):
    for side in STEP:
        own = table.sel(stride=table["stride_side"].values == side)
        assert len(own["stride"]) >= 3
        assert own["stride_time"].values == pytest.approx(STRIDE_TIME)
        assert own["stride_length"].values == pytest.approx(sum(STEP.values()))
        assert own["step_length"].values == pytest.approx(STEP[side])
        assert own["step_width"].values == pytest.approx(WIDTH)
        assert own["cadence"].values == pytest.approx(120.0)
        assert own["speed"].values == pytest.approx(sum(STEP.values()))
        assert own["stance"].values == pytest.approx(62.0) and own["swing"].values == pytest.approx(38.0)
        assert own["double_support"].dropna("stride").values == pytest.approx(24.0)
        step = LATE["left"] if side == "left" else STRIDE_TIME - LATE["left"]
        assert own["step_time"].values == pytest.approx(step)
    assert {name: table[name].attrs["units"] for name in ("step_length", "cadence", "speed", "stance")} == {
        "step_length": "m", "cadence": "steps/min", "speed": "m/s", "stance": "%",
    }  # fmt: skip


@pytest.mark.parametrize("heading", [0.0, 2.5])
def test_parameters_of_known_footfalls(heading):
    check(spatiotemporal_parameters(footfalls(heading=heading)))


def test_parameters_on_a_treadmill_are_those_relative_to_the_belt():
    check(spatiotemporal_parameters(footfalls(belt=-1.36), belt=(-1.36, 0.0, 0.0)))


def test_strides_lie_within_the_given_time():
    motion = footfalls()
    assert len(find_strides(motion)) == 7
    inside = find_strides(motion, np.array([0.9, 3.1]))
    assert inside and all(stride.start >= 0.9 and stride.end <= 3.1 for stride in inside)


def test_motions_without_recording_have_no_strides():
    motion = footfalls()
    bare = make_motion(MODEL, motion.coordinates, motion.data["time"].values, RATE)
    assert find_strides(bare) == ()
    table = spatiotemporal_parameters(bare)
    assert table.sizes["stride"] == 0 and "step_length" in table


def motion_of(recording):
    """Return a motion of the model's rest pose at the frames of a recording."""
    time = recording.data["time"].values
    q = np.tile([c.default for c in MODEL.coordinates], (len(time), 1))
    return make_motion(MODEL, q, time, recording.rate, recording=recording)


def with_events(events):
    """Return a motion of 4 s with these events: time [s], label, side."""
    motion = footfalls()
    data = motion.recording.data.drop_dims("event").assign(event_time=("event", [event[0] for event in events]))
    data = data.assign_coords(
        event_label=("event", [event[1] for event in events]), event_context=("event", [event[2] for event in events])
    )
    return motion_of(Recording(data))


def test_landings_on_both_feet_are_no_strides():
    landings = [(time + late, "Foot Strike", side) for time in (0.5, 1.6, 2.9) for late, side in
                ((0.0, "Right"), (0.03, "Left"))]  # fmt: skip
    jump = with_events(landings)
    assert is_jump(jump) and find_strides(jump) == ()
    assert not is_jump(footfalls()) and not is_jump(
        make_motion(MODEL, footfalls().coordinates, np.arange(401) / RATE, RATE)
    )
    # a limp: the left step takes 0.3 of the stride
    limp = with_events(sorted((k + late, "Foot Strike", side) for k in range(4) for late, side in
                              ((0.0, "Right"), (0.3, "Left"))))  # fmt: skip
    assert not is_jump(limp) and len(find_strides(limp)) == 6
    # steps of one foot alone are strides: nothing contradicts them
    assert len(find_strides(with_events([(float(k), "Foot Strike", "Right") for k in range(4)]))) == 3


def test_mean_and_deviation_by_side():
    table = spatiotemporal_parameters(footfalls())
    by_side = parameters_by_side(table)
    for side in STEP:
        assert by_side["step_length"][side].mean == pytest.approx(STEP[side])
        assert by_side["step_length"][side].strides == (table["stride_side"].values == side).sum()
    both = table["step_length"].values
    assert by_side["step_length"]["both"].sd == pytest.approx(np.sqrt(((both - both.mean()) ** 2).sum() / 6))
    assert statistic(np.array([1.0, np.nan, 4.0])) == (2.5, pytest.approx(np.sqrt(4.5)), 2)
    assert np.isnan(statistic(np.array([np.nan]))[:2]).all() and np.isnan(statistic(np.array([3.0])).sd)


def test_parameters_of_the_synthetic_walk(walk):
    """The stride and its time are those of the plan; stance is the time of the true force above the threshold."""
    motion = motion_of(walk.recording)
    assert event_source(motion) == "plates and markers"
    by_side = parameters_by_side(spatiotemporal_parameters(motion))
    stride = STRIDE * HEIGHT
    for side in ("right", "left"):
        found = {name: values[side].mean for name, values in by_side.items()}
        assert found["stride_time"] == pytest.approx(CYCLE, abs=0.003)  # samples of the plates: 2.5 ms
        assert found["cadence"] == pytest.approx(120.0 / CYCLE, rel=0.003)
        assert found["stride_length"] == pytest.approx(stride, rel=0.005)  # 1 mm of noise
        assert found["speed"] == pytest.approx(stride / CYCLE, rel=0.005)
        # both heels have markers that are offset by 6 mm along each axis
        assert found["step_length"] == pytest.approx(stride / 2, abs=2.0 * MARKER_OFFSET_SD)
        force = walk.recording.data["plate_force"].sel(axis="z").values
        time = walk.recording.data["analog_time"].values
        durations = [np.ptp(time[load >= MIN_PLATE_FORCE]) for load in force.T if (load >= MIN_PLATE_FORCE).any()]
        stance = 100.0 * np.median(durations) / CYCLE  # each plate has one whole step but those at the ends
        assert found["stance"] == pytest.approx(stance, abs=0.5)
        assert found["swing"] == pytest.approx(100.0 - found["stance"])
        assert found["double_support"] == pytest.approx(2.0 * stance - 100.0, abs=1.0)  # symmetric gait


HEALTHY_WALKS = (
    "c3d/vicon_overground_4plates/test_small.c3d",
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d",
    "c3d/qualisys_walk/Qualisys.c3d",
)


@pytest.mark.data
@pytest.mark.parametrize("name", HEALTHY_WALKS)
def test_parameters_of_real_walks(name):
    """Stance from the events in the file; speed from the pelvis; all near those of healthy adults.

    Adults at free speed (Perry and Burnfield 2010): 1.37 m/s, 113 steps/min, strides of 1.41 m, stance of 62 %, double
    support of 24 %. These subjects walk as they like in a laboratory: lengths, times and speeds within 30 %, phases
    within 5 % of the stride.
    """
    recording = read_recording(shared(name))
    motion = motion_of(recording)
    assert event_source(motion) == "recording" and not is_jump(motion)
    events = sorted(event for event in map(standardize_event, recording.events) if event)
    assert list(motion_events(motion)) == events
    table = spatiotemporal_parameters(motion)
    for k, (side, start, end) in enumerate(
        zip(*(table[n].values for n in ("stride_side", "stride_start", "stride_end")), strict=True)
    ):
        own = [event for event in events if event.context.lower() == side]
        assert start in [e.time for e in own if e.label == STRIKE] and end in [e.time for e in own if e.label == STRIKE]
        (off,) = [event.time for event in own if event.label == OFF and start < event.time < end]
        assert table["stance"].values[k] == pytest.approx(100.0 * (off - start) / (end - start))
    means = {parameter: values["both"].mean for parameter, values in parameters_by_side(table).items()}
    for parameter, typical, tolerance in (
        ("speed", 1.37, 0.3 * 1.37), ("cadence", 113.0, 0.3 * 113.0), ("stride_length", 1.41, 0.3 * 1.41),
        ("stance", 62.0, 5.0), ("double_support", 24.0, 5.0),
    ):  # fmt: skip
        assert means[parameter] == pytest.approx(typical, abs=tolerance), parameter
    time, points = recording.data["time"].values, recording.data["marker_position"].values
    inside = (time >= table["stride_start"].values[0]) & (time <= table["stride_end"].values[-1])
    path = mean_position(points[inside], find_landmarks(recording.markers, ("pelvis",)))[:, :2]
    known = np.isfinite(path).all(axis=1)
    slope = np.polyfit(time[inside][known], path[known], 1)[0]
    assert means["speed"] == pytest.approx(np.linalg.norm(slope), rel=0.05)

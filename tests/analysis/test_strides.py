"""Strides and spatiotemporal parameters: a synthetic walk with known footfalls, overground and on a treadmill."""

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.analysis.strides import find_strides, spatiotemporal_parameters
from borelli.model.people.human import human
from borelli.recording.recording import Recording, make_dataset

MODEL = human(70.0, 1.75)
RATE = 100.0
STRIDE_TIME, STANCE = 1.0, 0.62  # [s], fraction of the stride
STEP = {"right": 0.72, "left": 0.64}  # [m] length of the step that ends with this foot's strike
WIDTH = 0.12  # [m]
LATE = {"right": 0.0, "left": 0.48}  # [s] strike after the start of each cycle


def walk(belt=0.0, heading=0.0):
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
    check(spatiotemporal_parameters(walk(heading=heading)))


def test_parameters_on_a_treadmill_are_those_relative_to_the_belt():
    check(spatiotemporal_parameters(walk(belt=-1.36), belt=(-1.36, 0.0, 0.0)))


def test_strides_lie_within_the_given_time():
    motion = walk()
    assert len(find_strides(motion)) == 7
    inside = find_strides(motion, np.array([0.9, 3.1]))
    assert inside and all(stride.start >= 0.9 and stride.end <= 3.1 for stride in inside)


def test_motions_without_recording_have_no_strides():
    motion = walk()
    bare = make_motion(MODEL, motion.coordinates, motion.data["time"].values, RATE)
    assert find_strides(bare) == ()
    table = spatiotemporal_parameters(bare)
    assert table.sizes["stride"] == 0 and "step_length" in table

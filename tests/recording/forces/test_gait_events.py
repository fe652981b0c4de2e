"""Plates, feet and gait events, compared with a walk of known steps and with events in real files."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.recording.forces.assign_to_feet import (
    add_plates,
    assign_plates,
    find_plate_swaps,
    plate_contacts,
    swap_plates,
    threshold_plates,
    zero_plates,
)
from borelli.recording.forces.gait_events import (
    OFF,
    STRIKE,
    add_events,
    events_from_markers,
    events_from_plates,
    gait_events,
    standardize_event,
)
from borelli.recording.formats.c3d.force_plates import plates_from_channels
from borelli.recording.formats.c3d.reader import read_c3d
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.recording import Event

from ..walker import STANCE, STRIDE, WEIGHT, footprints, real, recording

WITH_EVENTS = {  # file: largest error [s] of plate events, of marker strikes, of marker offs
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": (0.02, 0.06, 0.02),
    "c3d/vicon_overground_4plates/test_small.c3d": (0.01, 0.04, 0.03),
    "c3d/qualisys_walk/Qualisys.c3d": (0.03, 0.04, 0.02),
    "c3d/motionanalysis_walk_jump/Walk1.c3d": (0.03, 0.03, 0.03),
    "c3d/sprint_8plates/JA1Gait35.c3d": (0.01, 0.06, 0.06),
}


def add_offset(walk, offset):
    """Return the recording with an offset [N] on its first plate."""
    force = walk.data["plate_force"].values.copy()
    force[:, 0] += offset
    return walk.with_data(walk.data.assign(plate_force=walk.data["plate_force"].copy(data=force)))


def test_each_load_is_assigned_to_the_foot_on_the_plate():
    steps = plate_contacts(recording())
    assert [(step.plate, step.side) for step in steps] == [("plate 1", "left"), ("plate 2", "right")]
    assert all(step.distance < 0.06 for step in steps)


def test_a_step_truncated_by_the_recording_counts_as_a_step():
    """Cut 0.04 s after its strike it counts, where as long a load in the midst of a recording does not."""
    walk = recording()
    second, clock = plate_contacts(walk)[1], walk.data["analog_time"].values
    cut = walk.with_data(walk.data.sel(analog_time=clock <= second.start + 0.04))
    assert [step.side for step in plate_contacts(cut)] == ["left", "right"]
    force = walk.data["plate_force"].copy(deep=True)
    force.values[clock > second.start + 0.04, 1] = 0.0
    assert [step.side for step in plate_contacts(walk.with_data(walk.data.assign(plate_force=force)))] == ["left"]


def test_forces_of_feet_are_those_of_their_plates_and_so_is_the_pressure():
    walk = recording()
    given = assign_plates(walk)
    force = given.data["ground_reaction_force"].values
    plates = threshold_plates(walk).data["plate_force"].values
    assert np.allclose(force[:, 0], plates[:, 0])
    assert np.allclose(force[:, 1], plates[:, 1])
    center = given.data["center_of_pressure"].values[:, 0]
    assert np.allclose(center, walk.data["plate_center_of_pressure"].values[:, 0], equal_nan=True)
    assert np.allclose(given.data["free_moment"].values, 0.0, atol=1e-9)


def test_one_foot_on_two_plates_has_the_wrench_of_both():
    walk = recording()
    data = walk.data.copy(deep=True)
    # both plates support the left step: the second a third of it, a little to the side
    for name, part in (("plate_force", 0.5), ("plate_center_of_pressure", 1.0)):
        data[name].values[:, 1] = part * data[name].values[:, 0]
    data["plate_center_of_pressure"].values[:, 1, 1] += 0.06
    given = assign_plates(walk.with_data(data))
    force = given.data["ground_reaction_force"].values[:, 0]
    firm = force[:, 2] > 100.0
    assert np.allclose(force[firm, 2], 1.5 * walk.data["plate_force"].values[firm, 0, 2])
    side = given.data["center_of_pressure"].values[firm, 0, 1] - 0.09
    assert np.allclose(side, 0.02)


def test_a_load_without_a_center_of_pressure_acts_at_the_nearest_known_one():
    """At the first and last samples of a step, and far from the lab's origin, where it acted before."""
    walk = recording()
    data = walk.data.copy(deep=True)
    normal, points = data["plate_force"].values[:, 0, 2], data["plate_center_of_pressure"].values[:, 0]
    step = np.flatnonzero(normal >= 20.0)
    first, last = step[3], step[-4]
    unknown = np.concatenate([step[:3], step[-3:]])
    points[unknown] = np.nan
    center = assign_plates(walk.with_data(data)).data["center_of_pressure"].values[:, 0]
    assert center[unknown] == pytest.approx(np.repeat(points[[first, last]], 3, axis=0), abs=1e-12)


def test_an_empty_plate_is_zeroed_and_a_loaded_one_is_not():
    walk = recording()
    zeroed = zero_plates(add_offset(walk, (3.0, -2.0, 9.0)))
    assert np.allclose(zeroed.data["plate_force"].values, walk.data["plate_force"].values, atol=1e-9)
    assert [(note.code, note.kind) for note in zeroed.notes[-2:]] == [
        ("plate_offset", "changed"),
        ("plate_offset", "inferred"),
    ]
    assert "plate 1" in zeroed.notes[-2].text and "(3.0, -2.0, 9.0) N" in zeroed.notes[-2].text
    assert zero_plates(walk) is walk
    assert zero_plates(add_offset(walk, (0.0, 0.0, 600.0))).notes == ()


def test_zeroing_a_c3d_recording_corrects_its_centers_of_pressure(tmp_path):
    write_c3d(recording(), tmp_path / "a.c3d")
    true = read_c3d(tmp_path / "a.c3d")
    drift = np.array([2.0, -3.0, 9.0, 4.0, -5.0, 1.0, *[0.0] * 6])  # N and N m, of the first plate's channels only
    analog = true.data["analog"].copy(data=true.data["analog"].values + drift)
    drifted = true.with_data(true.data.assign(analog=analog))
    measured = plates_from_channels(drifted)
    drifted = drifted.with_data(
        drifted.data.assign({name: true.data[name].copy(data=values) for name, values in measured.items()})
    )
    names = ("plate_force", "plate_center_of_pressure", "plate_free_moment")
    loaded = true.data["plate_force"].values[..., 2] > 50.0
    error = [np.abs((drifted.data[n] - true.data[n]).values[loaded]).max() for n in names]
    assert error[1] > 0.003
    zeroed = zero_plates(drifted)
    assert [np.abs((zeroed.data[n] - true.data[n]).values[loaded]).max() for n in names] == pytest.approx(
        [0.0, 0.0, 0.0], abs=1e-6
    )
    assert (zeroed.notes[-1].code, zeroed.notes[-1].kind) == ("plate_offset", "changed")
    for name in names:
        assert np.array_equal(zeroed.data[name].values[:, 1], drifted.data[name].values[:, 1], equal_nan=True)


def test_new_events_replace_those_of_the_file():
    walk = add_events(recording())
    few = walk.with_data(walk.data.isel(event=slice(0, 2)))
    assert add_events(few).events == walk.events
    assert len(walk.events) > 2


def test_plate_loads_below_the_threshold_are_zero():
    bare = threshold_plates(recording(), 100.0).data
    normal = bare["plate_force"].values[..., 2]
    assert set(np.unique(normal < 100.0)) == {False, True}
    assert (normal[normal < 100.0] == 0.0).all()
    assert np.isnan(bare["plate_center_of_pressure"].values[normal == 0.0]).all()


def test_swapped_plates_are_found_and_swapping_twice_changes_nothing():
    walk = recording()
    assert find_plate_swaps(walk) == ()
    wrong = swap_plates(walk, "plate 1", "plate 2")
    (pair,) = find_plate_swaps(wrong)
    assert (pair.first, pair.second) == ("plate 1", "plate 2")
    assert pair.swapped_distance < 0.06 < 0.3 < pair.distance
    again = swap_plates(wrong, "plate 1", "plate 2")
    for name in ("plate_force", "plate_center_of_pressure"):
        assert np.allclose(again.data[name].values, walk.data[name].values, equal_nan=True)
    with pytest.raises(SettingsError, match="Unknown plate"):
        swap_plates(walk, "plate 1", "plate 9")


def test_events_from_plates_are_where_the_load_begins_and_ends():
    walk = recording()
    events = events_from_plates(walk)
    strikes = {event.context: event.time for event in events if event.label == STRIKE}
    offs = {event.context: event.time for event in events if event.label == OFF}
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        start = footprints(sign)[0][3]
        assert strikes[side] == pytest.approx(start, abs=0.003)
        assert offs[side] == pytest.approx(start + STANCE * STRIDE, abs=0.003)
    assert walk.data["plate_force"].values.max() == pytest.approx(WEIGHT, rel=1e-3)


def test_events_from_markers_find_every_step_on_either_way_and_on_a_treadmill():
    walk = recording(4.0, plates=False)
    events = events_from_markers(walk)
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        for label, delay in ((STRIKE, 0.0), (OFF, STANCE * STRIDE)):
            truth = [t + delay for t in footprints(sign)[0] if 0.2 < t + delay < 3.8]
            found = [event.time for event in events if (event.label, event.context) == (label, side)]
            assert len(found) == len(truth)
            assert np.allclose(found, truth, atol=0.07)
    belt = walk.data["marker_position"].values - np.array([1.3, 0, 0]) * walk.data["time"].values[:, None, None]
    treadmill = walk.with_data(walk.data.assign(marker_position=walk.data["marker_position"].copy(data=belt)))
    assert len(events_from_markers(treadmill)) == len(events)
    back = walk.with_data(
        walk.data.assign(
            marker_position=walk.data["marker_position"].copy(data=walk.data["marker_position"].values * (-1, -1, 1))
        )
    )
    assert events_from_markers(back) == events


def test_auto_uses_plates_where_possible_and_markers_elsewhere():
    walk = recording()
    events = gait_events(walk)
    assert set(events_from_plates(walk)) < set(events)
    assert len(events) >= len(events_from_markers(walk))
    added = add_events(walk)
    assert added.events == events
    assert added.notes[-1].kind == "changed"
    with pytest.raises(SettingsError, match="no plates"):
        gait_events(recording(plates=False), "plates")
    with pytest.raises(SettingsError, match="Unknown source"):
        gait_events(walk, "video")


def test_standing_has_no_gait_events():
    walk = recording(plates=False)
    still = np.repeat(walk.data["marker_position"].values[:1], walk.frames, axis=0)
    still = still + 0.001 * np.random.default_rng(0).normal(size=still.shape)
    assert (
        events_from_markers(
            walk.with_data(walk.data.assign(marker_position=walk.data["marker_position"].copy(data=still)))
        )
        == ()
    )


@pytest.mark.parametrize(
    ("label", "context", "expected"),
    [
        ("LHS", "", (STRIKE, "Left")), ("RTO", "Right", (OFF, "Right")), ("Foot Strike", "Left", (STRIKE, "Left")),
        ("Foot Off", "Right", (OFF, "Right")), ("Start", "General", None),
        ("Right Heel Contact", "General", (STRIKE, "Right")),
    ],
)  # fmt: skip
def test_events_are_understood_as_files_spell_them(label, context, expected):
    named = standardize_event(Event(1.0, label, context))
    assert (None if named is None else (named.label, named.context)) == expected


@pytest.mark.data
@pytest.mark.parametrize("name", WITH_EVENTS)
def test_events_agree_with_those_in_the_file(name):
    from borelli.recording.formats.c3d.reader import read_c3d

    recorded = read_c3d(real(name))
    marks = [event for event in map(standardize_event, recorded.events) if event]
    plate_limit, strike_limit, off_limit = WITH_EVENTS[name]
    for found, limits, fewest in (
        (events_from_plates(recorded), {STRIKE: plate_limit, OFF: plate_limit}, 4),
        (events_from_markers(recorded), {STRIKE: strike_limit, OFF: off_limit}, 5),
    ):
        errors = []
        for event in found:
            same = [mark.time for mark in marks if (mark.label, mark.context) == (event.label, event.context)]
            near = min((abs(time - event.time) for time in same), default=np.inf)
            if near < 0.2:
                errors.append((near, limits[event.label]))
        assert len(errors) >= fewest
        assert all(error <= limit for error, limit in errors)


@pytest.mark.data
@pytest.mark.parametrize("name", list(WITH_EVENTS)[:3])
def test_plates_under_some_steps_correct_the_strikes_of_the_others(name):
    """Walks whose files state all strikes: markers alone err by up to 53 ms, with the plates' correction by 30 ms."""
    recorded = read_c3d(real(name))
    marks = [event for event in map(standardize_event, recorded.events) if event and event.label == STRIKE]
    found = [event for event in gait_events(recorded) if event.label == STRIKE]
    on_plates = {event for event in events_from_plates(recorded) if event.label == STRIKE}
    assert set(found) - on_plates  # some strikes are off the plates
    errors = [min(abs(mark.time - event.time) for mark in marks if mark.context == event.context) for event in found]
    assert max(errors) <= 0.03


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", {"plate 1": "right", "plate 2": "left"}),
        (
            "c3d/pycgm_movement/Movement_trial.c3d",
            {"plate 4": "right", "plate 3": "left", "plate 2": "right", "plate 1": "left"},
        ),
        ("c3d/opensim_walking2/walking2.c3d", {"plate 1": "right", "plate 2": "left"}),
        ("c3d/motionanalysis_walk_jump/Sample_Jump2.c3d", {"plate 1": "left", "plate 2": "right"}),
    ],
)
def test_real_plates_are_assigned_to_feet_and_swaps_are_found(name, sides):
    from borelli.recording.formats.c3d.reader import read_c3d

    recorded = read_c3d(real(name))
    assert {step.plate: step.side for step in plate_contacts(recorded)} == sides
    assert find_plate_swaps(recorded) == ()
    (pair,) = find_plate_swaps(swap_plates(recorded, "plate 1", "plate 2"))
    assert {pair.first, pair.second} == {"plate 1", "plate 2"}


@pytest.mark.data
@pytest.mark.parametrize(
    ("markers", "forces", "sides"),
    [
        (
            "subject01_walk/subject01_walk1.trc",
            "subject01_walk/subject01_walk1_grf.mot",
            {"ground_force": "right", "1": "left"},
        ),
        ("rajagopal2016/walk/motion_capture_walk.trc", "rajagopal2016/walk/grf_walk.mot", {"r": "right", "l": "left"}),
        ("opencap_subject4/DJ1.trc", "opencap_subject4/DJ1_grf.mot", {"1": "right", "2": "left"}),
    ],
)
def test_ground_forces_of_another_file_are_assigned_to_feet(markers, forces, sides):
    from borelli.recording.formats.mot_sto import read_table
    from borelli.recording.formats.trc import read_trc

    both = add_plates(read_trc(real(f"opensim/{markers}")), read_table(real(f"opensim/{forces}")))
    steps = plate_contacts(both)
    assert {step.plate: step.side for step in steps} == sides
    assert max(step.distance for step in steps) < 0.08
    with pytest.raises(SettingsError, match="already has plates"):
        add_plates(both, both)


def problems(recording, code):
    return [note for note in recording.notes if note.code == code and note.kind == "problem"]


def test_plates_of_another_trial_are_reported():
    walk = recording()
    plates = [name for name in walk.data.data_vars if name.startswith("plate_")]
    markers, forces = (
        walk.with_data(walk.data.drop_dims("analog_time").drop_dims("corner")),
        walk.with_data(walk.data[plates]),
    )
    assert not problems(add_plates(markers, forces), "plate_times")
    late = forces.with_data(forces.data.assign_coords(analog_time=forces.data["analog_time"] + 1.5))
    (note,) = problems(add_plates(markers, late), "plate_times")
    assert "1.50 to 4.50 s" in note.text
    short = forces.with_data(forces.data.isel(analog_time=slice(0, 1500)))
    assert problems(add_plates(markers, short), "plate_times")


def test_loads_far_from_the_feet_are_dropped_with_a_warning():
    walk = recording()
    center = walk.data["plate_center_of_pressure"]
    moved = center + np.array([0.0, 3.0, 0.0])
    far = walk.with_data(walk.data.assign(plate_center_of_pressure=moved).drop_vars("plate_corners"))
    found = assign_plates(far)
    assert "ground_reaction_force" not in found.data
    (note,) = problems(found, "plate_omitted")
    assert "plate 1" in note.text and "m from the nearer foot" in note.text


def test_a_light_foot_that_rests_on_a_plate_is_no_offset():
    """A plate under a foot that presses with 30 N is not zeroed; an empty plate that reads 30 N is."""
    from borelli.recording.forces.assign_to_feet import zero_plates

    walk = recording()
    points = np.repeat(walk.data["marker_position"].values[100:101], walk.frames, axis=0)  # stands still
    feet = [points[0, walk.markers.index(name)] for name in ("LHEE", "LTOE")]
    corners = walk.data["plate_corners"].values.copy()
    corners[0] = np.mean(feet, axis=0) * (1, 1, 0) + [[0.3, 0.2, 0], [-0.3, 0.2, 0], [-0.3, -0.2, 0], [0.3, -0.2, 0]]
    corners[1] = corners[0] + [5.0, 0.0, 0.0]
    force = np.zeros_like(walk.data["plate_force"].values)
    force[..., 2] = 30.0
    changed = {"marker_position": points, "plate_corners": corners, "plate_force": force}
    data = walk.data.assign({name: walk.data[name].copy(data=values) for name, values in changed.items()})
    found = zero_plates(walk.with_data(data)).data["plate_force"].values
    assert (found[:, 0, 2] == 30.0).all() and not found[:, 1, 2].any()

"""Planted feet: faults that are put into a standing motion are gone; motions that do not stand are left alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import TrackingSettings, animate
from borelli.control.plant_feet import MIN_STANCE, plant_feet
from borelli.model.kinematics import poses
from borelli.people.human import human

from .sole_contact import measure_soles, rotations

RATE, SECONDS = 240.0, 3.0
STEP = 1.0 / RATE
MODEL = human()
NAMES = [c.name for c in MODEL.coordinates]
TIME = np.arange(round(SECONDS * RATE) + 1) / RATE


def standing(**changes):
    """Coordinates of a human that stands with slightly bent knees, with changes (frames,) of some of them."""
    table = np.tile([c.default for c in MODEL.coordinates], (len(TIME), 1))
    for side in "rl":
        for name, angle in (("hip_flexion", 0.15), ("knee_flexion", 0.3), ("ankle_flexion", 0.15)):
            table[:, NAMES.index(f"{name}_{side}")] += angle
    for name, values in changes.items():
        table[:, NAMES.index(name)] += values
    position, rotation = poses(MODEL, table[:1])
    lowest = min(sole.min() for sole in measure_soles(MODEL, TIME[:1], position, rotation, raw=True).values())
    table[:, NAMES.index("root_z")] -= lowest
    return table


def soles(table):
    return measure_soles(MODEL, TIME, *poses(MODEL, table))


def ramp(start, duration):
    """From 0 to 1 with minimum jerk."""
    x = np.clip((TIME - start) / duration, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def dip(start, end):
    """From 0 to 1 after `start` [s], and back after `end` [s], each in 0.2 s."""
    return ramp(start, 0.2) - ramp(end, 0.2)


@cache
def faulty(fault):
    """A standing motion with a fault."""
    if fault == "slides":
        return standing(root_x=0.03 * ramp(0.0, SECONDS))
    if fault == "hovers":  # thigh forward, shank back, foot level
        return standing(hip_flexion_r=0.09, knee_flexion_r=0.19, ankle_flexion_r=0.10)
    if fault == "sinks":
        return standing(root_z=-0.02 * dip(1.2, 1.5))
    return standing(toe_extension_r=-0.35 * dip(1.2, 1.5))


BEFORE = {"slides": ("slip", 0.029, 0.031), "hovers": ("height", 0.015, 0.03), "sinks": ("depth", 0.018, 0.022),
          "toe sinks": ("depth", 0.015, 0.03)}  # fmt: skip


@pytest.mark.parametrize("fault", BEFORE)
def test_faults_of_standing_feet_are_gone(fault):
    table = faulty(fault)
    measure, low, high = BEFORE[fault]
    assert low < max(getattr(sole, measure) for sole in soles(table).values()) < high
    planted, notes = plant_feet(MODEL, table, STEP)
    for sole in soles(planted).values():
        assert sole.height < 0.002 and sole.depth < 0.002 and sole.slip < 0.002
    assert "2 stances" in notes[0].text and notes[0].code == "planted_feet"
    reported = float(notes[0].text.split("up to ")[1].split(" mm")[0])
    assert 1e3 * low / 2.0 - 1.0 < reported < 1e3 * high + 1.0
    # feet keep their orientation, and what is no leg keeps its angles
    before, after = (poses(MODEL, one)[1] for one in (table, planted))
    turned = np.einsum("fbji,fbji->fb", before, after)[:, [MODEL.bodies.index(MODEL.body(f"foot_{s}")) for s in "rl"]]
    assert np.degrees(np.arccos(np.clip(0.5 * (turned - 1.0), -1.0, 1.0))).max() < 1.0
    arms = [i for i, name in enumerate(NAMES) if "shoulder" in name or "elbow" in name or "lumbar" in name]
    np.testing.assert_array_equal(planted[:, arms], table[:, arms])
    # smooth: the change accelerates joints no more than the fault does, and 10 rad/s^2
    fastest, of_fault = (np.abs(np.diff(one, 2, axis=0)).max() / STEP**2 for one in (planted - table, table))
    assert fastest < of_fault + 10.0


def test_planted_feet_are_left_where_they_are():
    table = standing()
    planted, _ = plant_feet(MODEL, table, STEP)
    np.testing.assert_allclose(planted, table, atol=1e-4)


@pytest.mark.parametrize("motion", ["treadmill", "jump", "one short touch"])
def test_motions_that_do_not_stand_are_left_alone(motion):
    if motion == "treadmill":
        table = standing(root_x=-1.2 * TIME)
    elif motion == "jump":
        table = standing(root_z=0.5)
        table[:, NAMES.index("root_z")] += 0.5
    else:
        table = standing()
        away = np.abs(TIME - 1.5) > 0.4 * MIN_STANCE
        table[:, NAMES.index("root_z")] += np.where(away, 0.3, 0.0)
    planted, notes = plant_feet(MODEL, table, STEP)
    assert planted is table and notes == ()


def test_models_without_feet_or_gravity_are_left_alone():
    from dataclasses import replace

    from borelli.scenes.gallery import gallery_scene

    pendulum = gallery_scene("pendulum").model
    for model in (pendulum, replace(MODEL, gravity=(0.0, 0.0, 0.0))):
        table = np.zeros((20, len(model.coordinates)))
        assert plant_feet(model, table, STEP) == (table, ())


@pytest.mark.parametrize("contact", [False, True])
def test_animated_feet_stand(contact):
    """The simulated feet of a motion that slides by 30 mm and is 15 mm high stand on the ground, from its start."""
    table = faulty("slides").copy()
    table[:, NAMES.index("root_z")] += 0.015
    motion = make_motion(MODEL, table, TIME, RATE)
    found = animate(motion, tracking=TrackingSettings(ground_contact=contact))
    time = found.data["time"].values
    pose = found.data["body_position"].values, rotations(found.data["body_orientation"].values)
    for sole in measure_soles(MODEL, time, *pose).values():
        assert sole.height < 0.002 and sole.depth < 0.002 and sole.slip < 0.002
    assert found.metrics["shift onto the ground [m]"] == pytest.approx(0.015, abs=1e-4)
    assert {"ground_shift", "planted_feet"} <= {note.code for note in found.notes}

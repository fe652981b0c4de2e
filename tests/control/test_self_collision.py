"""Bodies of an animated character collide with each other, but for those that overlap in its motion."""

from __future__ import annotations

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import animate
from borelli.control.perturbations import Push
from borelli.control.self_collision import overlapping_bodies
from borelli.control.track_targets import track_targets
from borelli.errors import ModelError
from borelli.people.human import human

RATE = 100.0
MODEL = human()
NAMES = [c.name for c in MODEL.coordinates]
TIME = np.arange(101) / RATE


def posture(**angles):
    table = np.tile([c.default for c in MODEL.coordinates], (len(TIME), 1))
    for name, angle in angles.items():
        table[:, NAMES.index(name)] = angle
    return table


def motion_of(table):
    return make_motion(MODEL, table, TIME, RATE)


def gap_of_shanks(data):
    """Distance of the origins of the shanks [m], along y."""
    y = data["body_position"][..., 1]
    return (y.sel(body="shank_l") - y.sel(body="shank_r")).values


APART = {"hip_adduction_r": -0.15, "hip_adduction_l": -0.15}


def test_pushed_legs_stop_at_each_other():
    """Both shanks are pushed to the midline: without collisions they would pass through each other."""
    table = posture(**APART)
    pushes = [Push("shank_r", (0.0, 300.0, 0.0), 0.1, 0.6), Push("shank_l", (0.0, -300.0, 0.0), 0.1, 0.6)]
    data = animate(motion_of(table), pushes).data
    touching = np.abs(data["contact_force"].values).sum(axis=(1, 2)) > 0.0
    assert touching.any() and np.isfinite(data["body_position"].values).all()
    assert gap_of_shanks(data).min() > 0.0
    # equal and opposite: the momentum of the whole is not changed by them
    total = data["contact_force"].values.sum(axis=1)
    assert np.abs(total).max() < 1e-6 * np.abs(data["contact_force"].values).max()


def test_bodies_that_overlap_in_the_motion_pass_through_each_other():
    """Crossed legs are tracked as if there were no collisions, and the bodies are named in a note."""
    table = posture(hip_adduction_r=0.25, hip_adduction_l=0.25)
    pairs = overlapping_bodies(MODEL, table)
    assert ("shank_r", "shank_l") in pairs or ("thigh_r", "thigh_l") in pairs
    assert not any({joint.parent, joint.child} == set(pair) for joint in MODEL.joints for pair in pairs)
    found = animate(motion_of(table))
    assert found.data["body_tracking_error"].max() < 1e-6
    assert not found.data["contact_force"].values.any()
    (note,) = [note for note in found.notes if note.code == "self_collision"]
    assert all(name in note.text for name in pairs[0])
    assert not {("shank_r", "shank_l"), ("thigh_r", "thigh_l")} & set(overlapping_bodies(MODEL, posture(**APART)))


def test_unknown_body_that_should_not_collide_is_refused():
    with pytest.raises(ModelError, match="no_contact: Unknown body 'shnk_r'"):
        track_targets(MODEL, [], duration=0.1, no_contact=[("shnk_r", "shank_l")])

"""Motions set on the ground before they are tracked, and what is reported of root and obstacles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import TrackingSettings, animate
from borelli.control.ground_shift import ground_shift, lowest_heights
from borelli.control.perturbations import Obstacle, Push
from borelli.model.model import Frame, Shape
from borelli.people.human import human

COUNT, RATE = 40, 60.0


def standing_table(model, height=0.0):
    table = np.tile([c.default for c in model.coordinates], (COUNT, 1))
    table[:, [c.name for c in model.coordinates].index("root_z")] += height
    return table


@pytest.mark.parametrize("height", [0.04, -0.02])
def test_feet_are_set_on_the_ground(height):
    """The soles are on the plane after the shift, whose size and direction are reported."""
    model = human()
    table = standing_table(model, height)
    np.testing.assert_allclose(lowest_heights(model, table), height, atol=1e-9)
    shift, notes = ground_shift(model, table)
    np.testing.assert_allclose(lowest_heights(model, table + shift), 0.0, atol=1e-9)
    assert f"by {abs(1e3 * height):.0f} mm" in notes[0].text
    assert ("lowered" if height > 0.0 else "raised") in notes[0].text


def test_raised_ground_counts():
    model = replace(human(), ground=(Shape("plane", frame=Frame((0.0, 0.0, 0.1))),))
    np.testing.assert_allclose(lowest_heights(model, standing_table(model, 0.1)), 0.0, atol=1e-9)


def test_motion_far_from_the_ground_is_left_alone():
    model = human()
    shift, notes = ground_shift(model, standing_table(model, 0.9))
    assert not shift.any() and "0.90 m" in notes[0].text


def test_root_support_and_untouched_obstacles_are_reported():
    """A human far above the ground hangs on its root; an obstacle elsewhere touches nothing, a push is listed."""
    model, time = human(), np.arange(COUNT) / RATE
    motion = make_motion(model, standing_table(model, 0.02), time, RATE)
    box = Obstacle(Shape("box", (0.1, 0.1, 0.1)), Frame((3.0, 3.0, 0.1)))
    push = Push("pelvis", (0.0, 20.0, 0.0), start=0.1, duration=0.1)
    result = animate(motion, [box, push], tracking=TrackingSettings(ground_contact=True))
    assert "perturbation_contact" in {note.code for note in result.notes}
    assert result.metrics["shift onto the ground [m]"] == pytest.approx(0.02, abs=1e-6)
    hanging = animate(motion, tracking=TrackingSettings(), record_every=4)
    assert hanging.metrics["the root carries [% of the weight]"] == pytest.approx(100.0, abs=0.5)
    assert '"body": "pelvis"' in result.data.attrs["applied_forces"]

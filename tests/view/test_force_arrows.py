"""Arrows of pushes and captions of stills."""

from __future__ import annotations

import numpy as np

from borelli.model.model import Body, Frame, Model, Shape
from borelli.physics.inputs import AppliedForce
from borelli.physics.simulate import simulate
from borelli.view.picture import picture
from borelli.view.results import posed_model


def red_pixels(image):
    pixels = np.asarray(image.convert("RGB")).astype(int)
    return int(((pixels[..., 0] > 120) & (pixels[..., 1] < 80) & (pixels[..., 2] < 80)).sum())


def test_push_is_drawn_while_it_acts():
    box = Body("box", 2.0, shapes=(Shape("box", (0.2, 0.2, 0.2)),), frame=Frame((0.0, 0.0, 0.2)))
    model = Model("box", (box,), ground=(Shape("plane"),))
    push = AppliedForce("box", (100.0, 0.0, 0.0), start=0.1, end=0.3)
    result = simulate(model, duration=0.6, forces=[push])
    counts = [red_pixels(picture(result, time=t, width=320, height=240)) for t in (0.05, 0.2, 0.55)]
    assert counts[1] > 30 and counts[0] == counts[2] == 0
    arrow = posed_model(result).arrows[0]
    np.testing.assert_array_equal(arrow.force, [100.0, 0.0, 0.0])


def test_still_of_a_motion_has_its_time():
    """The corner with the time differs from that of a model, which has none."""
    box = Body("box", 2.0, shapes=(Shape("box", (0.2, 0.2, 0.2)),), frame=Frame((0.0, 0.0, 0.2)))
    model = Model("box", (box,), ground=(Shape("plane"),))
    result = simulate(model, duration=0.1)
    corners = [np.asarray(picture(one, width=320, height=240))[220:240, 280:320].astype(int) for one in (result, model)]
    assert corners[0].min() < corners[1].min() - 20

"""Actuation reports of small models whose moments are known in closed form."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.model.model import Body, Coordinate, Coupling, Frame, Function, Joint, Model, Muscle, PathPoint
from borelli.muscles.actuation import actuation_report

ARM, FORCE, PENNATION = 0.03, 100.0, 0.3
"""Moment arm [m], isometric force [N] and pennation [rad] of the flexor."""


def muscle(name: str, side: float, force: float) -> Muscle:
    """Return a muscle parallel to the thigh, a distance before or behind the knee, in the straight pose."""
    points = (PathPoint("thigh", (side, 0.0, 0.2)), PathPoint("shank", (side, 0.0, -0.2)))
    return Muscle(name, points, force, 0.1, 0.2, PENNATION)


@pytest.fixture
def leg() -> Model:
    inertia = ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01))
    bodies = tuple(Body(name, 1.0, (0.0, 0.0, 0.0), inertia) for name in ("thigh", "shank", "foot"))
    down = Frame((0.0, 0.0, -0.4))
    joints = (
        Joint("hip", "hinge", "ground", "thigh", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("hip"),)),
        Joint("knee", "hinge", "thigh", "shank", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("knee"),)),
        Joint("ankle", "hinge", "shank", "foot", down, axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("ankle"),)),
    )
    return Model("leg", bodies, joints, muscles=(muscle("front", ARM, FORCE), muscle("back", -2.0 * ARM, 3.0 * FORCE)))


def test_moments_are_force_times_arm(leg) -> None:
    report = actuation_report(leg)
    assert report.coordinate == ("knee", "ankle")  # the first joint is the root
    # rotation about y moves what lies below forward to the back: a pull in front turns the shank forward, negative
    moment = FORCE * np.cos(PENNATION) * ARM
    assert report.negative == pytest.approx([-moment, 0.0])
    assert report.positive == pytest.approx([6.0 * moment, 0.0])
    assert report.without_muscles == ("ankle",) and report.one_sided == () and report.rank == 1


def test_one_muscle_moves_one_way(leg) -> None:
    report = actuation_report(replace(leg, muscles=leg.muscles[:1]))
    assert report.one_sided == ("knee",)


def test_locked_and_coupled_coordinates_are_left_out(leg) -> None:
    coupled = replace(leg, couplings=(Coupling("c", "ankle", "knee", Function((0.0, 1.0), ((0.0, 1.0),))),))
    assert actuation_report(coupled).coordinate == ("knee",)
    knee = replace(leg.joints[1], coordinates=(Coordinate("knee", locked=True),))
    assert actuation_report(replace(leg, joints=(leg.joints[0], knee, leg.joints[2]))).coordinate == ("ankle",)


def test_a_model_without_muscles_has_rank_zero(leg) -> None:
    report = actuation_report(replace(leg, muscles=()))
    assert report.rank == 0 and report.without_muscles == ("knee", "ankle")

"""A posed human that impulse control holds on the ground, without forces on the root."""

from __future__ import annotations

import numpy as np
import pytest

from borelli.control.controls import make_controls
from borelli.control.response import PD
from borelli.control.targets import keyframes
from borelli.control.track_targets import track_targets
from borelli.model.kinematics import center_of_mass
from borelli.people.human import human
from borelli.physics.inputs import AppliedForce

COMPLIANCE = 0.01
"""Compliance of controls that know the ground [rad/s per N m s]: at 0.001 and less a pushed body rocks on its feet."""
PUSH = 50.0
"""[N] for 0.1 s."""


def stand(settling_time, seconds, forces=()):
    model = human()
    names = [c.name for c in model.coordinates if not c.name.startswith("root_")]
    targets = keyframes(model, [0.0, seconds], {name: [0.0, 0.0] for name in names})
    controls = make_controls(targets, PD.from_settling_time(settling_time))
    start = {c.name: c.default for c in model.coordinates}
    return model, track_targets(
        model, controls, duration=seconds, initial_coordinates=start, contact_compliance=COMPLIANCE, forces=forces,
        record_every=8,
    )  # fmt: skip


def check_standing(data, speed=1e-3):
    """Pelvis at its height, at rest in the end, and feet where they stood."""
    height = data["body_position"].sel(body="pelvis", axis="z").values
    assert np.abs(height - height[0]).max() < 0.01
    assert np.abs(data["body_com_velocity"].values[-30:]).max() < speed
    feet = data["body_position"].sel(body=["foot_l", "foot_r"]).values[..., :2]
    assert np.abs(feet - feet[0]).max() < 1e-3


@pytest.mark.parametrize("settling_time", [0.02, 0.3])
def test_posed_human_stands(settling_time):
    """Nothing drives the root; the ground carries the weight, and the ankles the moment of statics."""
    model, data = stand(settling_time, 2.0)
    check_standing(data, 1e-5)
    late = data.isel(time=-1)
    weight = model.mass * 9.81
    assert float(late["ground_reaction_force"].sel(axis="z").sum()) == pytest.approx(weight, rel=1e-3)
    root = [c.name for c in model.coordinates if c.name.startswith("root_")]
    assert (data["torque"].sel(coordinate=root).values == 0.0).all()
    # center of pressure under the center of mass: the ankles balance the weight above them
    force, point = late["ground_reaction_force"].values, np.nan_to_num(late["center_of_pressure"].values)
    pressure = (force[:, 2:] * point).sum(axis=0) / force[:, 2].sum()
    center = center_of_mass(model, late["coordinate_value"].values[None])[0]
    np.testing.assert_allclose(pressure[:2], center[:2], atol=1e-3)
    ankles = late["torque"].sel(coordinate=["ankle_flexion_l", "ankle_flexion_r"]).values.sum()
    below = [b for b in model.bodies if b.name.startswith(("foot", "toes"))]
    place = {
        str(n): late["body_position"].sel(body=n).values + np.array(b.center_of_mass)
        for n, b in ((b.name, b) for b in below)
    }
    joint = late["body_position"].sel(body="foot_l").values[0]
    above = weight * center[0] - sum(b.mass * 9.81 * place[b.name][0] for b in below)
    mass_above = model.mass - sum(b.mass for b in below)
    statics = above - mass_above * 9.81 * joint
    assert abs(ankles) == pytest.approx(abs(statics), rel=0.05)


def push(direction):
    angle = direction * np.pi / 4.0
    force = (float(PUSH * np.cos(angle)), float(PUSH * np.sin(angle)), 0.0)
    return AppliedForce("pelvis", force, start=0.2, end=0.3)


def test_pushed_human_stands():
    _, data = stand(0.1, 4.0, [push(4)])
    check_standing(data)
    assert np.nanmax(np.abs(data["coordinate_error"].values)) > 1e-3  # it yielded


@pytest.mark.slow
@pytest.mark.parametrize("settling_time", [0.02, 0.05, 0.1, 0.2, 0.3])
def test_pushes_from_eight_directions(settling_time):
    for direction in range(8):
        _, data = stand(settling_time, 6.0, [push(direction)])
        check_standing(data)


@pytest.mark.slow
@pytest.mark.parametrize("settling_time", [0.02, 0.05, 0.1, 0.2, 0.3])
def test_human_stands_for_half_a_minute(settling_time):
    _, data = stand(settling_time, 30.0)
    check_standing(data, 1e-5)

"""Virtual sensors: rest, free fall, finite differences of positions, and forces that are known."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape
from borelli.model.transforms import orientation_matrix
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.force_elements.sensors import ContactSensor, ForcePlate, Imu
from borelli.physics.inputs import AppliedForce
from borelli.physics.simulate import simulate

BOX = Body(
    "box", 3.0, inertia=((0.02, 0.0, 0.0), (0.0, 0.03, 0.0), (0.0, 0.0, 0.04)),
    shapes=(Shape("box", (0.1, 0.1, 0.1)),), frame=Frame((0.0, 0.0, 0.1)),
)  # fmt: skip
FLOOR = (Shape("plane"),)
TILTED = Frame((0.05, -0.02, 0.03), (sqrt(0.5), sqrt(0.5), 0.0, 0.0))
"""Sensor rotated by 90 degrees about x: its y axis points up, its z axis backward along y."""


def test_imu_at_rest_reads_gravity_upward():
    result = simulate(
        Model("box", (BOX,), ground=FLOOR), duration=0.5, sensors=[Imu("a", "box"), Imu("b", "box", TILTED)]
    )
    late = result["imu_specific_force"].values[-10:]
    np.testing.assert_allclose(late[:, 0], np.broadcast_to([0.0, 0.0, 9.81], (10, 3)), atol=1e-6)
    np.testing.assert_allclose(late[:, 1], np.broadcast_to([0.0, 9.81, 0.0], (10, 3)), atol=1e-6)


def test_imu_in_free_fall_reads_nothing():
    """At the center of mass, also while the body spins; elsewhere w x (w x r) about a principal axis."""
    spin = {"box": (1.0, 0.0, 2.0, 0.0, 0.0, 5.0)}
    sensors = [Imu("center", "box"), Imu("side", "box", Frame((0.1, 0.0, 0.0)))]
    result = simulate(Model("box", (BOX,)), duration=0.5, step=1e-3, initial_twists=spin, sensors=sensors)
    force = result["imu_specific_force"].values
    np.testing.assert_allclose(force[:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(force[2:-2, 1], np.broadcast_to([-2.5, 0.0, 0.0], force[2:-2, 1].shape), atol=1e-4)
    np.testing.assert_allclose(
        result["imu_angular_velocity"].values[:, 0], np.broadcast_to([0, 0, 5.0], (501, 3)), atol=1e-9
    )


def test_imu_is_the_second_difference_of_positions():
    """A double pendulum in space: the sensor's point twice differentiated, less gravity, in the sensor's axes."""
    links = tuple(replace(BOX, name=name, shapes=(), center_of_mass=(0.0, 0.1, -0.3)) for name in ("upper", "lower"))
    angles = tuple(Coordinate(f"{name}") for name in "abc")
    joints = (
        Joint("top", "ball", GROUND, "upper", coordinates=angles),
        Joint(
            "knee",
            "hinge",
            "upper",
            "lower",
            Frame((0.0, 0.0, -0.6)),
            axes=((1.0, 0.0, 0.0),),
            coordinates=(Coordinate("k"),),
        ),
    )
    step = 1e-4
    start = {"a": 0.8, "b": 0.4, "k": -0.5}
    sensor = Imu("imu", "lower", TILTED)
    result = simulate(Model("arm", links, joints), duration=0.2, step=step, initial_coordinates=start,
                      initial_velocities={"c": 3.0}, sensors=[sensor])  # fmt: skip
    one = result.sel(body="lower")
    rotation = rotation_matrix(one["body_orientation"].values)
    point = one["body_position"].values + rotation @ np.array(TILTED.position)
    acceleration = (point[2:] - 2.0 * point[1:-1] + point[:-2]) / step**2
    axes = rotation[1:-1] @ orientation_matrix(TILTED.orientation)
    expected = np.einsum("tji,tj->ti", axes, acceleration - np.array([0.0, 0.0, -9.81]))
    found = result["imu_specific_force"].values[1:-1, 0]
    # the first step closes the joints; then the difference is of first order in the step
    assert np.abs(found - expected)[3:].max() < 1e-3 * np.abs(expected).max()
    turning = np.einsum("tji,tjk->tik", rotation[:-1], rotation[1:])
    rate = np.stack(
        [turning[:, 2, 1] - turning[:, 1, 2], turning[:, 0, 2] - turning[:, 2, 0], turning[:, 1, 0] - turning[:, 0, 1]],
        -1,
    )
    in_sensor = (0.5 / step * rate) @ orientation_matrix(TILTED.orientation)
    np.testing.assert_allclose(result["imu_angular_velocity"].values[1:, 0], in_sensor, atol=2e-2)


def test_force_plate_reads_weight_center_and_moment():
    """A box off the center of a kinematic plate, twisted by a moment that friction balances."""
    plate = Body("plate", 1.0, kinematic=True, shapes=(Shape("box", (0.5, 0.5, 0.05)),), frame=Frame((0.0, 0.0, -0.05)))
    box = replace(BOX, frame=Frame((0.2, -0.1, 0.1)))
    twist = AppliedForce("box", torque=(0.0, 0.0, 0.5))
    sensors = [ForcePlate("plate", "plate"), ForcePlate("floor"), ContactSensor("touch", "box", 1.0)]
    result = simulate(Model("plate", (box, plate)), duration=1.0, forces=[twist], sensors=sensors)
    last = result.isel(time=-1)
    np.testing.assert_allclose(
        last["force_plate_force"].sel(force_plate="plate").values, [0.0, 0.0, 3.0 * 9.81], atol=1e-6
    )
    np.testing.assert_allclose(last["force_plate_center"].sel(force_plate="plate").values[:2], [0.2, -0.1], atol=1e-4)
    assert float(last["force_plate_moment"].sel(force_plate="plate", axis="z")) == pytest.approx(-0.5, abs=1e-6)
    assert (last["force_plate_force"].sel(force_plate="floor").values == 0.0).all()
    assert bool(last["contact_sensor_state"][0]) and float(last["contact_sensor_force"][0]) == pytest.approx(3.0 * 9.81)
    assert (result["ground_reaction_force"].values == 0.0).all()


def test_ground_and_other_contacts_are_separate():
    """Two boxes on each other: the ground supports both, the lower one the upper."""
    upper = replace(BOX, name="upper", mass=2.0, frame=Frame((0.0, 0.0, 0.3)))
    sensors = [ForcePlate("floor")]
    last = simulate(Model("stack", (BOX, upper), ground=FLOOR), duration=1.0, sensors=sensors).isel(time=-1)
    up = last.sel(axis="z")
    np.testing.assert_allclose(up["ground_reaction_force"].values, [5.0 * 9.81, 0.0], atol=1e-5)
    np.testing.assert_allclose(up["contact_force"].values, [-2.0 * 9.81, 2.0 * 9.81], atol=1e-5)
    assert float(up["force_plate_force"][0]) == pytest.approx(5.0 * 9.81, abs=1e-5)
    moment = last["ground_reaction_moment"].values.sum(axis=0)
    np.testing.assert_allclose(moment, np.cross(last["force_plate_center"].values[0], [0, 0, 5.0 * 9.81]), atol=1e-4)


def test_errors_name_the_sensor():
    model = Model("box", (BOX,))
    with pytest.raises(ModelError, match="nobody"):
        simulate(model, duration=0.1, sensors=[Imu("imu", "nobody")])
    with pytest.raises(SettingsError, match="Rename"):
        simulate(model, duration=0.1, sensors=[Imu("imu", "box"), Imu("imu", "box")])
    with pytest.raises(SettingsError, match="Threshold"):
        simulate(model, duration=0.1, sensors=[ContactSensor("touch", "box", -1.0)])

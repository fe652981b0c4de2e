"""Virtual sensors: inertial measurement units, force plates and contact sensors, read from the dataset of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import GROUND, Frame, Model
from borelli.model.transforms import orientation_matrix
from borelli.numerics.quaternions import rotation_matrix

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Imu:
    """Inertial measurement unit: specific force (acceleration less gravity) and angular velocity in its own frame.

    At rest it reads 9.81 m/s^2 upward, in free fall 0. The acceleration is the central difference of the velocity of
    its point over the frames of the dataset; an impact appears in the two frames around it.
    """

    name: str
    body: str
    frame: Frame = Frame()
    """Position [m] and orientation of the sensor on the body."""


@dataclass(frozen=True, slots=True)
class ForcePlate:
    """Force plate: force, center of pressure and moment that the ground, or one body, exerts on what touches it."""

    name: str
    body: str = GROUND
    """"ground": all contacts with the ground; a body: all contacts of other bodies with it."""


@dataclass(frozen=True, slots=True)
class ContactSensor:
    """Contact sensor: size of the contact force on a body, and whether it is larger than a threshold."""

    name: str
    body: str
    threshold: float = 0.0
    """[N]"""


Sensor = Imu | ForcePlate | ContactSensor


def check_sensors(model: Model, sensors: Sequence[Sensor]) -> None:
    """Raise an error if a sensor is not valid for a model.

    Raises:
        ModelError: A body is unknown.
        SettingsError: Two sensors of a kind have the same name, or a threshold is negative.
    """
    bodies = [body.name for body in model.bodies]
    for kind in (Imu, ForcePlate, ContactSensor):
        names = [sensor.name for sensor in sensors if isinstance(sensor, kind)]
        for name in names:
            if names.count(name) > 1:
                raise SettingsError(f"sensor {name!r}: Two sensors of this kind have this name. Rename one.")
    for sensor in sensors:
        allowed = [*bodies, GROUND] if isinstance(sensor, ForcePlate) else bodies
        if sensor.body not in allowed:
            raise ModelError(f"sensor {sensor.name!r}: {unknown_name('body', sensor.body, allowed)}")
        if isinstance(sensor, ContactSensor) and not sensor.threshold >= 0.0:
            raise SettingsError(f"sensor {sensor.name!r}: Threshold {sensor.threshold}. Pass 0 N or more.")


def add_sensors(data: xarray.Dataset, model: Model, sensors: Sequence[Sensor]) -> xarray.Dataset:
    """Return the dataset of a simulation with the readings of sensors.

    Adds `imu_specific_force` [m/s^2] and `imu_angular_velocity` [rad/s] (time, imu, axis), sensor frame;
    `force_plate_force` [N], `force_plate_center` [m] and `force_plate_moment` [N m], about that center
    (time, force_plate, axis), world; `contact_sensor_force` [N] and `contact_sensor_state` (time, contact_sensor).

    Args:
        data: Dataset of `simulate`, with poses and velocities of bodies.
        model: Model that was simulated.
        sensors: IMUs, force plates and contact sensors on its bodies.

    Raises:
        ModelError: A body is unknown.
        SettingsError: Sensors are not valid, or the dataset has a single frame.
    """
    check_sensors(model, sensors)
    for kind, read in ((Imu, _add_imus), (ForcePlate, _add_plates), (ContactSensor, _add_contacts)):
        own: list[Any] = [sensor for sensor in sensors if isinstance(sensor, kind)]
        if own:
            data = read(data, model, own)
    return data


def _add_imus(data: xarray.Dataset, model: Model, sensors: Sequence[Imu]) -> xarray.Dataset:
    time = data["time"].values
    if len(time) < 2:
        raise SettingsError("sensors: The dataset has one frame, and an IMU needs two. Record more frames.")
    centers = {body.name: np.array(body.center_of_mass) for body in model.bodies}
    force, rate = np.zeros((2, len(time), len(sensors), 3))
    for k, sensor in enumerate(sensors):
        one = data.sel(body=sensor.body)
        rotation = rotation_matrix(one["body_orientation"].values)
        axes = rotation @ orientation_matrix(sensor.frame.orientation)
        w = one["body_angular_velocity"].values
        arm = rotation @ (np.array(sensor.frame.position) - centers[sensor.body])
        velocity = one["body_com_velocity"].values + np.cross(w, arm)
        acceleration = np.gradient(velocity, time, axis=0, edge_order=2 if len(time) > 2 else 1)
        force[:, k] = np.einsum("tji,tj->ti", axes, acceleration - np.array(model.gravity))
        rate[:, k] = np.einsum("tji,tj->ti", axes, w)
    dims = ("time", "imu", "axis")
    return data.assign_coords(imu=[sensor.name for sensor in sensors]).assign(
        imu_specific_force=(dims, force, {"units": "m/s^2", "frame": "sensor; acceleration less gravity"}),
        imu_angular_velocity=(dims, rate, {"units": "rad/s", "frame": "sensor"}),
    )


def _add_plates(data: xarray.Dataset, model: Model, sensors: Sequence[ForcePlate]) -> xarray.Dataset:
    up = -np.array(model.gravity) / (np.linalg.norm(model.gravity) or 1.0)
    force, center, moment = np.zeros((3, data.sizes["time"], len(sensors), 3))
    for k, sensor in enumerate(sensors):
        if sensor.body == GROUND:
            by_body = data["ground_reaction_force"].values
            weight = np.maximum(by_body @ up, 0.0)
            force[:, k], about_origin = by_body.sum(axis=1), data["ground_reaction_moment"].values.sum(axis=1)
            points = np.nan_to_num(data["center_of_pressure"].values)
            with np.errstate(invalid="ignore", divide="ignore"):
                center[:, k] = np.einsum("tb,tbi->ti", weight, points) / weight.sum(axis=1)[:, None]
        else:
            one = data.sel(body=sensor.body)
            force[:, k], about_origin = -one["contact_force"].values, -one["contact_moment"].values
            center[:, k] = one["contact_center"].values
        moment[:, k] = about_origin - np.cross(center[:, k], force[:, k])
    dims = ("time", "force_plate", "axis")
    return data.assign_coords(force_plate=[sensor.name for sensor in sensors]).assign(
        force_plate_force=(dims, force, {"units": "N", "frame": "world; on what touches the plate"}),
        force_plate_center=(dims, center, {"units": "m", "frame": "world; NaN when unloaded"}),
        force_plate_moment=(dims, moment, {"units": "N m", "frame": "world; about the center, NaN when unloaded"}),
    )


def _add_contacts(data: xarray.Dataset, model: Model, sensors: Sequence[ContactSensor]) -> xarray.Dataset:
    both = data["ground_reaction_force"] + data["contact_force"]
    size = np.linalg.norm(both.sel(body=[sensor.body for sensor in sensors]).values, axis=-1)
    state = size > np.array([sensor.threshold for sensor in sensors])
    dims = ("time", "contact_sensor")
    return data.assign_coords(contact_sensor=[sensor.name for sensor in sensors]).assign(
        contact_sensor_force=(dims, size, {"units": "N", "frame": "sum of all contacts of the body"}),
        contact_sensor_state=(dims, state, {"units": "1", "frame": "force above the threshold"}),
    )

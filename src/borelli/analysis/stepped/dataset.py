"""Dataset of stepped inverse dynamics, by frame and in lab axes: torques, ground reaction, residuals, power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.dynamics.external_loads import FEET, FOOT_VARIABLES
from borelli.analysis.dynamics.rnea import (
    BodyKinematics,
    coordinate_forces,
    forward_kinematics,
    joint_reactions,
    subtree_wrenches,
    weight_wrenches,
)
from borelli.analysis.dynamics.torques import torque_labels
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import root_columns, to_model_axes
from borelli.analysis.stepped.rollout import StepRecord
from borelli.analysis.stepped.soles_and_ground import descendants
from borelli.analysis.stepped.step_work import angular_momentum, step_power
from borelli.analysis.stepped.stepper import Stepper, coordinate_errors, drive_forces, residual_wrench
from borelli.model.kinematics import coupled_coordinates, coupled_forces, root_coordinates
from borelli.numerics.quaternions import rotation_matrix
from borelli.numerics.vectors import Array, cross
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.recording.recording import LAB

if TYPE_CHECKING:
    from xarray import Dataset


def to_dataset(
    curves: Derivatives, stepper: Stepper, record: StepRecord, source: str, feet: Mapping[str, str] | None
) -> Dataset:
    """Return torques, forces and powers of the steps by frame, in lab axes."""
    import xarray as xr

    model, compiled = curves.model, stepper.compiled
    axes = to_model_axes(model)
    target = stepper.coordinates[1:-1]
    # coupled coordinates follow those they are coupled to
    values = coupled_coordinates(model, coordinates_and_velocities(compiled, record.pose[:-1], record.twist[:-1])[0])
    error = coordinate_errors(model, values, target)
    torque = drive_forces(compiled, record)
    external = external_wrenches(stepper, record)
    moved = forward_kinematics(model, target + error, curves.speeds, curves.accelerations)
    inertial, weight = inertial_wrenches(compiled, record), weight_wrenches(moved)
    ground = -about_origin(record, external).transpose(1, 2, 0)
    carried = subtree_wrenches(moved, np.stack([inertial, weight, ground]))
    by_gravity, by_ground = coordinate_forces(moved, carried[1:])
    if model.couplings:
        by_gravity, by_ground = (coupled_forces(model, target, part) for part in (by_gravity, by_ground))
    if stepper.root_tolerance is None:
        residual = residual_wrench(stepper, record)
        torque += residual_forces(stepper, moved, residual)
    else:
        residual = residual_from_drives(stepper, moved, torque)
    known = np.isin([c.name for c in model.coordinates], [d.coordinate for d in stepper.drives])
    known |= np.isin([c.name for c in model.coordinates], root_coordinates(model))
    by_gravity, by_ground = by_gravity * known, by_ground * known
    force, moment = joint_reactions(moved, carried.sum(axis=0))
    power = step_power(stepper, record, external)
    by_coordinate, by_axis, by_time, lab = ("time", "coordinate"), ("time", "axis"), ("time",), {"frame": LAB}
    rate = "rad or m, per second"
    variables: dict[str, Any] = {
        "coordinate_value": (by_coordinate, target + error, {"units": "rad or m: see coordinate_units"}),
        "coordinate_error": (by_coordinate, error, {"units": "rad or m: see coordinate_units"}),
        "coordinate_velocity": (by_coordinate, curves.speeds, {"units": rate}),
        "coordinate_acceleration": (by_coordinate, curves.accelerations, {"units": f"{rate} squared"}),
        "torque": (by_coordinate, torque, {"units": "N m or N"}),
        "torque_inertial": (by_coordinate, torque - by_gravity - by_ground, {"units": "N m or N"}),
        "torque_gravity": (by_coordinate, by_gravity, {"units": "N m or N"}),
        "torque_ground": (by_coordinate, by_ground, {"units": "N m or N"}),
        "residual_force": (by_axis, residual[:, :3] @ axes, {"units": "N"} | lab),
        "residual_moment": (by_axis, residual[:, 3:] @ axes, {"units": "N m"} | lab),
        "joint_reaction_force": (("time", "joint", "axis"), force.transpose(2, 0, 1) @ axes, {"units": "N"} | lab),
        "joint_reaction_moment": (("time", "joint", "axis"), moment.transpose(2, 0, 1) @ axes, {"units": "N m"} | lab),
        "joint_power": (by_coordinate, power.drive, {"units": "W", "of": "a ball's along the child's axes"}),
        "ground_power": (by_time, power.ground, {"units": "W"}),
        "residual_power": (by_time, power.residual, {"units": "W"}),
        "constraint_power": (by_time, power.constraint, {"units": "W", "of": "the scheme: rows of joints, couplings"}),
        "gyroscopic_power": (by_time, power.gyroscopic, {"units": "W", "of": "the scheme"}),
        "mechanical_energy": (by_time, power.energy, {"units": "J"}),
    }
    if feet is not None:
        loads = foot_loads(stepper, record, external, feet, axes)
        for name, (values, units) in zip(FOOT_VARIABLES, loads, strict=True):
            variables[name] = (("time", "foot", "axis"), values, {"units": units} | lab)
    attrs = {
        "method": "stepped", "grf_source": source, "root_body": stepper.root, "mass_kg": float(model.mass),
        "numerical_percent": power.numerical_percent,
    }  # fmt: skip
    time = xr.Coordinates({"time": ("time", curves.time, {"units": "s"})})
    return xr.Dataset(variables, time.assign(torque_labels(model, () if feet is None else FEET)), attrs)


def residual_forces(stepper: Stepper, moved: BodyKinematics, residual: Array) -> Array:
    """Return the generalized forces (frames, coordinates) of the residual (frames, 6) on the root."""
    wrench = np.zeros((len(moved.position), 6, len(residual)))
    if stepper.root:
        root = stepper.compiled.body_index[stepper.root]
        force = residual[:, :3].T
        wrench[root, :3], wrench[root, 3:] = residual[:, 3:].T + cross(moved.position[root], force), force
    return coordinate_forces(moved, wrench)


def residual_from_drives(stepper: Stepper, moved: BodyKinematics, force: Array) -> Array:
    """Return the residual (frames, 6) of generalized forces (frames, coordinates) of drives at the root."""
    columns = root_columns(stepper.compiled.model)
    units = [np.tile(unit, (len(force), 1)) for unit in np.eye(6)]
    maps = np.stack([residual_forces(stepper, moved, unit)[:, columns] for unit in units], axis=2)
    return np.asarray(np.einsum("fij,fj->fi", np.linalg.pinv(maps), force[:, columns]))


def external_wrenches(stepper: Stepper, record: StepRecord) -> Array:
    """Return (steps, bodies, 6) force and moment about the center of mass of contacts and loads, model axes."""
    wrench = record.contact[:, :, :6] / stepper.compiled.step
    if stepper.applied_force is not None:
        rotation = rotation_matrix(record.pose[:-1, :, 3:])
        for i, name in enumerate(stepper.loaded_bodies):
            body, applied = stepper.compiled.body_index[name], stepper.applied_force[:, i]
            arm = np.einsum("fij,fj->fi", rotation[:, body], applied[:, 6:])
            wrench[:, body, :3] += applied[:, :3]
            wrench[:, body, 3:] += applied[:, 3:6] + np.cross(arm, applied[:, :3])
    return wrench


def about_origin(record: StepRecord, wrench: Array) -> Array:
    """Convert forces and moments about centers of mass to (steps, bodies, 6) moment about the origin and force."""
    force, moment = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([moment + np.cross(record.pose[:-1, :, :3], force), force], axis=-1)


def inertial_wrenches(compiled: CompiledModel, record: StepRecord) -> Array:
    """Return (bodies, 6, steps) moment about the world's origin and force that changed the velocities."""
    bodies, h = compiled.tables.bodies, compiled.step
    change = np.diff(record.twist, axis=0) / h
    angular_velocity = 0.5 * (record.twist[1:, :, 3:] + record.twist[:-1, :, 3:])
    rotation = rotation_matrix(record.pose[:-1, :, 3:])
    force = bodies.mass[:, None] * change[..., :3]
    rate, momentum = (angular_momentum(bodies.inertia, rotation, v) for v in (change[..., 3:], angular_velocity))
    moment = rate + np.cross(angular_velocity, momentum)
    return about_origin(record, np.concatenate([force, moment], axis=-1)).transpose(1, 2, 0)


def foot_loads(
    stepper: Stepper, record: StepRecord, external: Array, feet: Mapping[str, str], axes: Array
) -> tuple[tuple[Array, str], ...]:
    """Return force, center of pressure and free moment (frames, feet, 3) of each foot with its toes, lab axes.

    The center of pressure is the mean of the contacts weighted by normal impulse, or that of the measured force.
    """
    model, index = stepper.compiled.model, stepper.compiled.body_index
    origin = about_origin(record, external)
    force, center, free = (np.zeros((len(external), len(FEET), 3)) for _ in range(3))
    center[:] = np.nan
    for f, side in enumerate(FEET):
        body = feet[side]
        own = [index[body], *(index[name] for name in descendants(model, body))]
        wrench = origin[:, own].sum(axis=1)
        force[:, f] = wrench[:, 3:] @ axes
        if stepper.applied_force is not None:
            applied = stepper.applied_force[:, stepper.loaded_bodies.index(body)]
            rotation = rotation_matrix(record.pose[:-1, index[body], 3:])
            point = record.pose[:-1, index[body], :3] + np.einsum("fij,fj->fi", rotation, applied[:, 6:])
            loaded = np.linalg.norm(applied[:, :3], axis=1) > 0.0
        else:
            normal = record.contact[:, own, 9].sum(axis=1)
            loaded = normal > 0.0
            point = record.contact[:, own, 6:9].sum(axis=1) / np.where(loaded, normal, 1.0)[:, None]
        center[loaded, f] = point[loaded] @ axes
        moment = wrench[:, :3] - np.cross(point, wrench[:, 3:])
        free[loaded, f] = moment[loaded] @ axes
    return (force, "N"), (center, "m"), (free, "N m")

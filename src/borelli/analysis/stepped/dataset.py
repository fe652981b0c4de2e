"""What steps show, by frame and in lab axes: torques and their parts, ground forces, residuals, reactions, work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import FEET
from borelli.analysis.dynamics.rnea import BodyKinematics, subtree_wrenches, coordinate_forces, forward_kinematics, joint_reactions, weight_wrenches
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import AXES, to_model_axes
from borelli.analysis.stepped.rollout import Trace
from borelli.analysis.stepped.soles_and_ground import carried_by
from borelli.analysis.stepped.step_work import row_work
from borelli.analysis.stepped.stepper import Stepper, drive_forces, residual_wrench
from borelli.model.kinematics import coupled_coordinates, coupled_forces
from borelli.numerics.vectors import cross
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.diagnostics import coordinates_and_velocities, rotation_matrices
from borelli.recording.recording import LAB

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]


def to_dataset(
    curves: Derivatives, stepper: Stepper, trace: Trace, source: str, feet: Mapping[str, str] | None
) -> Dataset:
    """What the steps show, by frame, in lab axes."""
    import xarray as xr

    model, compiled = curves.model, stepper.compiled
    turn = to_model_axes(model)
    asked = stepper.coordinates[1:-1]
    # coupled coordinates are where those they follow put them
    made = coupled_coordinates(model, coordinates_and_velocities(compiled, trace.pose[:-1], trace.twist[:-1])[0])
    turning = np.array([c.rotational for c in model.coordinates])
    deviation = made - asked
    deviation[:, turning] = (deviation[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
    torque = drive_forces(compiled, trace)
    outside = outside_wrenches(stepper, trace)
    moved = forward_kinematics(model, asked + deviation, curves.speeds, curves.accelerations)
    inertial, weight = inertia_of(compiled, trace), weight_wrenches(moved)
    ground = -about_origin(trace, outside).transpose(1, 2, 0)
    carried = subtree_wrenches(moved, np.stack([inertial, weight, ground]))
    by_gravity, by_ground = coordinate_forces(moved, carried[1:])
    if model.couplings:
        by_gravity, by_ground = (coupled_forces(model, asked, part) for part in (by_gravity, by_ground))
    if stepper.slack is None:
        residual = residual_wrench(stepper, trace)
        torque += residual_shares(stepper, moved, residual)
    else:
        residual = driven_residual(stepper, moved, torque)
    known = np.isin([c.name for c in model.coordinates], [d.coordinate for d in stepper.drives])
    known |= np.isin([c.name for c in model.coordinates], root_coordinates(model))
    by_gravity, by_ground = by_gravity * known, by_ground * known
    force, moment = joint_reactions(moved, carried.sum(axis=0))
    joints = {joint.child: joint.name for joint in model.joints if not joint.closes_loop}
    work = row_work(stepper, trace, outside)
    by_coordinate, by_axis, by_time, lab = ("time", "coordinate"), ("time", "axis"), ("time",), {"frame": LAB}
    rate = "rad or m, per second"
    variables: dict[str, Any] = {
        "coordinates": (by_coordinate, asked + deviation, {"units": "rad or m: see coordinate_units"}),
        "deviation": (by_coordinate, deviation, {"units": "rad or m: see coordinate_units"}),
        "speeds": (by_coordinate, curves.speeds, {"units": rate}),
        "accelerations": (by_coordinate, curves.accelerations, {"units": f"{rate} squared"}),
        "torque": (by_coordinate, torque, {"units": "N m or N"}),
        "torque_inertial": (by_coordinate, torque - by_gravity - by_ground, {"units": "N m or N"}),
        "torque_gravity": (by_coordinate, by_gravity, {"units": "N m or N"}),
        "torque_ground": (by_coordinate, by_ground, {"units": "N m or N"}),
        "residual_force": (by_axis, residual[:, :3] @ turn, {"units": "N"} | lab),
        "residual_moment": (by_axis, residual[:, 3:] @ turn, {"units": "N m"} | lab),
        "joint_reaction_force": (("time", "joint", "axis"), force.transpose(2, 0, 1) @ turn, {"units": "N"} | lab),
        "joint_reaction_moment": (("time", "joint", "axis"), moment.transpose(2, 0, 1) @ turn, {"units": "N m"} | lab),
        "joint_power": (by_coordinate, work.drive, {"units": "W", "of": "a ball's along the child's axes"}),
        "ground_power": (by_time, work.ground, {"units": "W"}),
        "residual_power": (by_time, work.residual, {"units": "W"}),
        "constraint_power": (by_time, work.constraint, {"units": "W", "of": "the scheme: rows of joints, couplings"}),
        "gyroscopic_power": (by_time, work.gyroscopic, {"units": "W", "of": "the scheme"}),
        "mechanical_energy": (by_time, work.energy, {"units": "J"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", curves.time, {"units": "s"}),
        "coordinate": [c.name for c in model.coordinates],
        "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
        "joint": [joints[model.bodies[link.child].name] for link in moved.links],
        "axis": list(AXES),
    }
    if feet is not None:
        coords["foot"] = list(FEET)
        found = foot_loads(stepper, trace, outside, feet, turn)
        for name, (values, units) in zip(
            ("ground_reaction_force", "center_of_pressure", "free_moment"), found, strict=True
        ):
            variables[name] = (("time", "foot", "axis"), values, {"units": units} | lab)
    attrs = {
        "method": "stepped", "grf_source": source, "root_body": stepper.root, "mass_kg": float(model.mass),
        "numerical_percent": work.numerical_percent,
    }  # fmt: skip
    return xr.Dataset(variables, coords, attrs)


def residual_shares(stepper: Stepper, moved: BodyKinematics, residual: Array) -> Array:
    """(frames, coordinates) generalized forces of the residual (frames, 6), at the root's coordinates."""
    wrench = np.zeros((len(moved.position), 6, len(residual)))
    if stepper.root:
        root = stepper.compiled.body_index[stepper.root]
        force = residual[:, :3].T
        wrench[root, :3], wrench[root, 3:] = residual[:, 3:].T + cross(moved.position[root], force), force
    return coordinate_forces(moved, wrench)


def driven_residual(stepper: Stepper, moved: BodyKinematics, force: Array) -> Array:
    """(frames, 6) the residual of generalized forces (frames, coordinates) of drives at the root's coordinates."""
    model = stepper.compiled.model
    names = [c.name for c in model.coordinates]
    columns = [names.index(name) for name in root_coordinates(model)]
    units = [np.tile(unit, (len(force), 1)) for unit in np.eye(6)]
    shares = np.stack([residual_shares(stepper, moved, unit)[:, columns] for unit in units], axis=2)
    return np.asarray(np.einsum("fij,fj->fi", np.linalg.pinv(shares), force[:, columns]))


def outside_wrenches(stepper: Stepper, trace: Trace) -> Array:
    """(steps, bodies, 6) force and moment about the centre of mass from contacts and pushes, model axes."""
    wrench = trace.contact[:, :, :6] / stepper.compiled.step
    if stepper.push is not None:
        rotation = rotation_matrices(trace.pose[:-1, :, 3:])
        for i, name in enumerate(stepper.pushed):
            body, push = stepper.compiled.body_index[name], stepper.push[:, i]
            arm = np.einsum("fij,fj->fi", rotation[:, body], push[:, 6:])
            wrench[:, body, :3] += push[:, :3]
            wrench[:, body, 3:] += push[:, 3:6] + np.cross(arm, push[:, :3])
    return wrench


def about_origin(trace: Trace, wrench: Array) -> Array:
    """(steps, bodies, 6) moment about the world's origin and force, of forces and moments about centres of mass."""
    force, moment = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([moment + np.cross(trace.pose[:-1, :, :3], force), force], axis=-1)


def inertia_of(compiled: CompiledModel, trace: Trace) -> Array:
    """(bodies, 6, steps) moment about the world's origin and force that made the velocities change so."""
    bodies, h = compiled.tables.bodies, compiled.step
    change = np.diff(trace.twist, axis=0) / h
    spin = 0.5 * (trace.twist[1:, :, 3:] + trace.twist[:-1, :, 3:])
    rotation = rotation_matrices(trace.pose[:-1, :, 3:])

    def times_inertia(vector: Array) -> Array:
        local = np.einsum("fbji,fbj->fbi", rotation, vector)
        return np.asarray(np.einsum("fbij,fbj->fbi", rotation, np.einsum("bij,fbj->fbi", bodies.inertia, local)))

    force = bodies.mass[:, None] * change[..., :3]
    moment = times_inertia(change[..., 3:]) + np.cross(spin, times_inertia(spin))
    return about_origin(trace, np.concatenate([force, moment], axis=-1)).transpose(1, 2, 0)


def foot_loads(
    stepper: Stepper, trace: Trace, outside: Array, feet: Mapping[str, str], turn: Array
) -> tuple[tuple[Array, str], ...]:
    """Force, centre of pressure and free moment (frames, feet, 3) of each foot with what hangs on it, lab axes.

    The centre of pressure is where the normal impulses of contacts act in the mean, or where a measured force acts.
    """
    model, index = stepper.compiled.model, stepper.compiled.body_index
    origin = about_origin(trace, outside)
    force, center, free = (np.zeros((len(outside), len(FEET), 3)) for _ in range(3))
    center[:] = np.nan
    for f, side in enumerate(FEET):
        body = feet[side]
        own = [index[body], *(index[name] for name in carried_by(model, body))]
        wrench = origin[:, own].sum(axis=1)
        force[:, f] = wrench[:, 3:] @ turn
        if stepper.push is not None:
            push = stepper.push[:, stepper.pushed.index(body)]
            rotation = rotation_matrices(trace.pose[:-1, index[body], 3:])
            point = trace.pose[:-1, index[body], :3] + np.einsum("fij,fj->fi", rotation, push[:, 6:])
            loaded = np.linalg.norm(push[:, :3], axis=1) > 0.0
        else:
            normal = trace.contact[:, own, 9].sum(axis=1)
            loaded = normal > 0.0
            point = trace.contact[:, own, 6:9].sum(axis=1) / np.where(loaded, normal, 1.0)[:, None]
        center[loaded, f] = point[loaded] @ turn
        moment = wrench[:, :3] - np.cross(point, wrench[:, 3:])
        free[loaded, f] = moment[loaded] @ turn
    return (force, "N"), (center, "m"), (free, "N m")

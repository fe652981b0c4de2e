"""Tracking by springs and dampers: traditional and stable PD, which impulse-based PD is compared with.

Both pull a coordinate q to its target q_o with the torque -k_1 (q - q_o) - k_2 (q' - q_o'), where k_1 = k_p I and
k_2 = k_v I scale the gains by the inertia I outboard of the joint about its axis (Zordan and Hodgins 2002): alone and
without gravity the error then decays as in `PD`. Gravity, loads and the other joints move the coordinate off its target
permanently: that is the difference to impulse-based PD.

Traditional PD takes the torque from the step's start and adds it as an impulse. Stable PD takes it from the step's end:
with u the new velocity and q + h u the new coordinate,

    torque = -k_1 (q + h u - q_o(next)) - k_2 (u - q_o'),     q_o(next) = q_o + h q_o',

which is the law of the soft step's drives, c = q_o' - (alpha / h) (q - q_o), beta = 1 / (h (h k_1 + k_2)),
alpha = h k_1 / (h k_1 + k_2): u = c - beta h torque. `pd_step_responses` gives the effect on a coordinate alone.

The three coordinates of a ball joint that are all driven rotate it together: the error is the rotation vector from the
target, C = log(T_o^-1 T), in the child's joint axes, and so is the angular velocity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD, wrap_angle
from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.physics import diagnostics
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.arrays.joints import JointTables, with_own_scratch
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state, to_dataset
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import State, make_inputs

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


def outboard_inertia(compiled: CompiledModel, values: Array) -> Array:
    """Return the inertia [kg m^2 or kg] of all bodies beyond each coordinate's joint, about its axis, in a pose.

    It is twice the kinetic energy at unit velocity. Entries of joints that close a loop are zero.
    """
    names = [coordinate.name for coordinate in compiled.model.coordinates]
    pose = dict(zip(names, map(float, values), strict=True))
    inertia = np.zeros(len(names))
    for i, name in enumerate(names):
        state = initial_state(compiled, coordinates=pose, velocities={name: 1.0})
        body_poses = np.concatenate([state.position, state.quaternion], axis=1)
        inertia[i] = 2.0 * diagnostics.kinetic_energy(compiled, body_poses[None], state.twist[None])[0]
    return inertia


def track_with_springs(
    model: Model,
    gains: Mapping[str, PD],
    target: Array,
    *,
    step: float,
    implicit: bool,
    initial_coordinates: Mapping[str, float] | None = None,
    initial_velocities: Mapping[str, float] | None = None,
    initial_twists: Mapping[str, Sequence[float]] | None = None,
    max_forces: Mapping[str, float] | None = None,
    forces: Sequence[AppliedForce] = (),
    settings: SolverSettings | None = None,
    steer: Callable[[State, float], None] | None = None,
    record_every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """Simulate a model whose coordinates are pulled to targets by springs and dampers; see also `track_targets`.

    Targets [rad or m] are those of all coordinates (steps + 1, coordinates), one step apart from the start on; those of
    coordinates without gains are not used. `implicit` uses torques of the step's end (stable PD) instead of its start
    (traditional PD). The largest torque or force [N m or N] is unlimited by default.
    """
    steps = len(target) - 1
    springs = [Drive(name, max_force=(max_forces or {}).get(name, inf)) for name in gains]
    compiled = compile_model(model, step=step, settings=settings, drives=springs, balls_as_one=True)
    state = initial_state(
        compiled, coordinates=initial_coordinates, velocities=initial_velocities, twists=initial_twists
    )
    inputs = make_inputs(compiled, drives=springs, forces=forces)
    driven = np.array([compiled.coordinate_index[name] for name in gains], np.int64)
    inertia = outboard_inertia(compiled, state.coordinate)[driven]
    for name, value in zip(gains, inertia, strict=True):
        if not value > 0.0:
            raise SettingsError(
                f"control of {name!r}: Its joint closes a loop, so it has no outboard inertia to scale the gains with. "
                "Control another coordinate of the loop."
            )
    stiffness = inertia * [pd.stiffness for pd in gains.values()]
    damping = inertia * [pd.damping for pd in gains.values()]
    if implicit:
        spring = step * stiffness + damping
        inputs.drives.alpha[driven], inputs.drives.beta[driven] = step * stiffness / spring, 1.0 / (step * spring)
    simulation = Simulation(compiled, state, inputs)
    frames = steps // record_every
    record = make_record(compiled, frames + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    for k in range(steps):
        if steer is not None:
            steer(state, k * step)
        rate = (target[k + 1] - target[k]) / step
        if implicit:
            inputs.drives.target[driven], inputs.drives.velocity[driven] = target[k, driven], rate[driven]
        else:
            error, error_rate = coordinate_errors(compiled, state, target[k], target[k + 1])
            torque = -stiffness * error[driven] - damping * error_rate[driven]
            inputs.drives.rest[driven] = step * torque
        simulation.advance(1, record, record_every=record_every, frame=1 + k // record_every)
        if progress is not None and (k + 1) % record_every == 0:
            progress((k + 1) / steps)
    return to_dataset(compiled, record, step * record_every * np.arange(frames + 1, dtype=np.float64))


def coordinate_errors(compiled: CompiledModel, state: State, target: Array, ahead: Array) -> tuple[Array, Array]:
    """Return the errors of all coordinates from their targets now and one step ahead [rad or m], and their rates."""
    joints, h = with_own_scratch(compiled.tables.joints), compiled.step
    pose = np.concatenate([state.position, state.quaternion], axis=1)
    values, velocities = (
        part[0] for part in diagnostics.joint_coordinates(joints, len(pose), pose[None], state.twist[None])
    )
    rotational = np.array([coordinate.rotational for coordinate in compiled.model.coordinates], bool)
    error = np.where(rotational, wrap_angle(values - target), values - target)
    rate = velocities - (ahead - target) / h
    for j in np.flatnonzero(joints.rotation_driven):
        three = slice(int(joints.coordinate_first[j]), int(joints.coordinate_first[j + 1]))
        sign = np.array([1.0, 1.0, joints.sign[three][2]])
        error[three], rate[three] = _rotation_error(joints, h, state, int(j), sign * target[three], sign * ahead[three])
        error[three], rate[three] = sign * error[three], sign * rate[three]
    return error, rate


def _rotation_error(
    joints: JointTables, step: float, state: State, j: int, target: Array, ahead: Array
) -> tuple[Array, Array]:
    """Return the rotation vector from the target and its rate, in the child's joint axes; targets are Cardan angles.

    The scratch arrays of `joints` contain the joint's axes in the present pose.
    """
    from scipy.spatial.transform import Rotation

    angular_velocity = _angular_velocity(state, int(joints.child[j])) - _angular_velocity(state, int(joints.parent[j]))
    relative = joints.axes_parent[j] @ joints.axes_child[j].T
    now, later = (Rotation.from_euler("XYZ", angles).as_matrix() for angles in (target, ahead))
    error, rotation = (Rotation.from_matrix(now.T @ matrix).as_rotvec() for matrix in (relative, later))
    # the target's angular velocity is stated in the target's axes and expressed in the child's
    return error, joints.axes_child[j] @ angular_velocity - relative.T @ now @ rotation / step


def _angular_velocity(state: State, body: int) -> Array:
    return state.twist[body, 3:] if body >= 0 else np.zeros(3)

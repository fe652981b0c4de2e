"""Following targets by springs and dampers: traditional and stable PD, which impulse-based PD is compared with.

Both pull a coordinate q to its target q_o with the torque -k_1 (q - q_o) - k_2 (q' - q_o'), where k_1 = k_p I and
k_2 = k_v I scale the gains by the inertia I outboard of the joint about its axis (Zordan and Hodgins 2002): alone and
without gravity the error then dies away as `PD` says. What else is there (gravity, loads, the other joints) moves the
coordinate off its target, and nothing brings it back: that is the difference to impulse-based PD.

Traditional PD takes the torque from the step's start and adds it as an impulse. Stable PD takes it from the step's end:
with u the new velocity and q + h u the new coordinate,

    torque = -k_1 (q + h u - q_o(next)) - k_2 (u - q_o'),     q_o(next) = q_o + h q_o',

which is the law of the soft step's drives, c = q_o' - (alpha / h) (q - q_o), beta = 1 / (h (h k_1 + k_2)),
alpha = h k_1 / (h k_1 + k_2): u = c - beta h torque. `spring_responses` tells what either does to a coordinate alone.

The three coordinates of a ball joint that are all pulled turn it as one: the error is the rotation vector from the
target, C = log(T_o^-1 T), in the child's joint axes, and so is the spin.
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
from borelli.physics import diagnostics as measure
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state, to_dataset
from borelli.physics.state import State, make_inputs

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


def outboard_inertia(compiled: CompiledModel, values: Array) -> Array:
    """What each coordinate of a tree moves alone [kg m^2 or kg]: all bodies beyond its joint, about its axis.

    Twice the kinetic energy at unit speed. A joint that closes a loop moves nothing alone: its entries are zero.

    Args:
        compiled: The model.
        values: Of all coordinates [rad or m].
    """
    names = [coordinate.name for coordinate in compiled.model.coordinates]
    pose = dict(zip(names, map(float, values), strict=True))
    inertia = np.zeros(len(names))
    for i, name in enumerate(names):
        state = initial_state(compiled, coordinates=pose, velocities={name: 1.0})
        placed = np.concatenate([state.position, state.quaternion], axis=1)
        inertia[i] = 2.0 * measure.kinetic_energy(compiled, placed[None], state.twist[None])[0]
    return inertia


def track_with_springs(
    model: Model,
    gains: Mapping[str, PD],
    course: Array,
    *,
    step: float,
    implicit: bool,
    start: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
    limits: Mapping[str, float] | None = None,
    forces: Sequence[AppliedForce] = (),
    settings: SolverSettings | None = None,
    steer: Callable[[State, float], None] | None = None,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """What the model does when springs and dampers pull its coordinates along a course; a dataset as of `simulate`.

    Args:
        model: Bodies, joints and ground.
        gains: By coordinate.
        course: Targets of all coordinates of the model [rad or m], (steps + 1, coordinates), a step apart from the
            start on; those of coordinates without gains are not read.
        step: [s]
        implicit: Whether torques are those of the step's end (stable PD) or of its start (traditional PD).
        start: Where coordinates are at first [rad or m]; others at their defaults.
        speeds: How fast they start.
        twists: Velocity [m/s] and spin [rad/s] that bodies start with, world axes; these win over `speeds`.
        limits: Largest torque or force by coordinate [N m or N]; unlimited if not given.
        forces: What pushes bodies.
        settings: Of the solver.
        steer: Called before each step with the state and the time [s]; it may move kinematic bodies.
        every: Steps between two records.
        progress: Told the share done, 0 to 1, at every record.

    Raises:
        DivergedError: Torques of the step's start burst.
    """
    steps = len(course) - 1
    springs = [Drive(name, max_force=(limits or {}).get(name, inf)) for name in gains]
    compiled = compile_model(model, step=step, settings=settings, drives=springs)
    state = initial_state(compiled, coordinates=start, velocities=speeds, twists=twists)
    inputs = make_inputs(compiled, drives=springs, forces=forces)
    pulled = np.array([compiled.coordinate_index[name] for name in gains], np.int64)
    inertia = outboard_inertia(compiled, state.coordinate)[pulled]
    _check_outboard(list(gains), inertia)
    stiffness = inertia * [pd.stiffness for pd in gains.values()]
    damping = inertia * [pd.damping for pd in gains.values()]
    if implicit:
        spring = step * stiffness + damping
        inputs.drives.alpha[pulled], inputs.drives.beta[pulled] = step * stiffness / spring, 1.0 / (step * spring)
    simulation = Simulation(compiled, state, inputs)
    frames = steps // every
    record = make_record(compiled, frames + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    for k in range(steps):
        if steer is not None:
            steer(state, k * step)
        rate = (course[k + 1] - course[k]) / step
        if implicit:
            inputs.drives.target[pulled], inputs.drives.velocity[pulled] = course[k, pulled], rate[pulled]
        else:
            error, error_rate = errors_at(compiled, state, course[k], course[k + 1])
            torque = -stiffness * error[pulled] - damping * error_rate[pulled]
            inputs.drives.rest[pulled] = step * torque
        simulation.advance(1, record, record_every=every, frame=1 + k // every)
        if progress is not None and (k + 1) % every == 0:
            progress((k + 1) / steps)
    return to_dataset(compiled, record, step * every * np.arange(frames + 1, dtype=np.float64))


def errors_at(compiled: CompiledModel, state: State, target: Array, ahead: Array) -> tuple[Array, Array]:
    """Errors of all coordinates from their targets and their rates [rad or m, and a second].

    Args:
        compiled: The model.
        state: Of its bodies.
        target: Where the coordinates are to be, (coordinates,).
        ahead: And a step later.
    """
    joints, h = compiled.tables.joints, compiled.step
    pose = np.concatenate([state.position, state.quaternion], axis=1)
    values, speeds = (found[0] for found in measure.coordinates_and_velocities(compiled, pose[None], state.twist[None]))
    turning = np.array([coordinate.rotational for coordinate in compiled.model.coordinates], bool)
    error = np.where(turning, wrap_angle(values - target), values - target)
    rate = speeds - (ahead - target) / h
    for j in np.flatnonzero(joints.rotation_driven):
        three = slice(int(joints.coordinate_first[j]), int(joints.coordinate_first[j + 1]))
        sign = np.array([1.0, 1.0, joints.sign[three][2]])
        error[three], rate[three] = _turn_error(compiled, state, int(j), sign * target[three], sign * ahead[three])
        error[three], rate[three] = sign * error[three], sign * rate[three]
    return error, rate


def _turn_error(compiled: CompiledModel, state: State, j: int, target: Array, ahead: Array) -> tuple[Array, Array]:
    """Rotation vector from the target and its rate, in the child's joint axes, of ball joint j; by Cardan angles."""
    from scipy.spatial.transform import Rotation

    joints = compiled.tables.joints
    # finding the coordinates left the joint's axes in the world in the tables
    spin = _spin_of(state, int(joints.child[j])) - _spin_of(state, int(joints.parent[j]))
    relative = joints.axes_parent[j] @ joints.axes_child[j].T
    now, later = (Rotation.from_euler("XYZ", angles).as_matrix() for angles in (target, ahead))
    error, turning = (Rotation.from_matrix(now.T @ matrix).as_rotvec() for matrix in (relative, later))
    # the target's spin is stated in the target's axes: seen from the child's
    return error, joints.axes_child[j] @ spin - relative.T @ now @ turning / compiled.step


def _spin_of(state: State, body: int) -> Array:
    return state.twist[body, 3:] if body >= 0 else np.zeros(3)


def _check_outboard(names: Sequence[str], inertia: Array) -> None:
    for name, value in zip(names, inertia, strict=True):
        if not value > 0.0:
            raise SettingsError(
                f"control of {name!r}: its joint closes a loop, so nothing is outboard of it to scale the gains of "
                "springs with; control another coordinate of the loop"
            )

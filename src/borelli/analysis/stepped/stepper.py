"""Stepped inverse dynamics: the torques are the impulses of drives that move every joint to the next frame.

Step i starts from the pose of frame i with the velocity that led there and ends with the one that leads to frame i + 1,
so its impulses are central differences: they belong to frame i (Liu, Cooper and Ballard). Because a step is solved
exactly, applying these impulses (rewinding, and stepping again with them instead of the drives) gives the same step, as
in `replay`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion, make_motion, to_model_axes
from borelli.analysis.stepped.rollout import StepInputs, StepRecord, make_step_inputs
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.kinematics import root_coordinates, tree_links
from borelli.model.model import Model, Softness
from borelli.numerics.quaternions import (
    conjugate,
    quaternion_from_matrix,
    quaternion_product,
    rotation_logarithm,
    rotation_matrix,
)
from borelli.numerics.vectors import Array
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.diagnostics import coordinates_and_velocities, generalized_drive_forces
from borelli.physics.inputs import AppliedForce, Drive, Residual
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import Inputs, State, make_inputs, make_state

MAX_RESIDUAL_MOMENT = 100.0
"""Largest residual moment about each axis with contacts [N m] (Liu, Cooper and Ballard: 30 to 100 N m)."""
RESIDUAL_SOFTNESS = Softness(stiffness=2000.0)
"""Spring of that residual [N m/rad]: a hard row would always apply its limit."""
TANGENT_SOFTNESS = 1.0
"""Compliance of friction relative to the sole's: feet with small position errors would pull at each other."""
PUSH_OUT_SPEED = 0.4
"""Fastest correction of soles that penetrate the ground [m/s]: faster, the stiff body would be thrown up; slower, a
loaded sole sinks in."""
COUPLING_CFM = 1e-9
"""CFM of couplings [ODE number]: a thousandth of a degree under 100 N m."""
SAMPLES_PER_STEP = 4
"""Samples of measured forces in the step before and after a frame; the frame is one more."""


class StepOptions(NamedTuple):
    """Options of drives and residuals: see `stepped_torques`."""

    residual: Sequence[Residual] | float | None = None
    max_force: Mapping[str, float] | float = inf
    tolerance: Mapping[str, float] | float = 0.0
    root_tolerance: tuple[float, float] | None = None


@dataclass(frozen=True)
class Stepper:
    """A model prepared for stepping along a motion, one step from each frame to the next."""

    compiled: CompiledModel
    drives: tuple[Drive, ...]
    residuals: tuple[Residual, ...]
    """Axes of the model."""
    root: str
    """Body on the free root joint; "" without one."""
    coordinates: Array
    """(frames + 2, coordinates): a frame before the first, the frames, a frame after the last."""
    poses: Array
    """(frames + 2, bodies, 7) centers of mass and quaternions, model axes."""
    applied_force: Array | None
    """(frames, loads, 9) as `StepInputs.applied_force`."""
    loaded_bodies: tuple[str, ...]
    """Body of each load."""
    substeps: int = 1
    """Steps per frame of the motion; "frames" above are those that are stepped to."""
    root_tolerance: tuple[float, float] | None = None
    """Dead zones [m, rad] of drives that replace the root's residual rows."""

    @property
    def frames(self) -> int:
        """Number of frames and steps."""
        return len(self.poses) - 2

    def initial_state(self) -> State:
        """Return the state at the first frame, with the velocities that led there."""
        state = make_state(self.compiled)
        state.position[:], state.quaternion[:] = self.poses[1, :, :3], self.poses[1, :, 3:]
        state.twist[:] = twists_between(self.poses[:2], self.compiled.step)[0]
        state.coordinate[:] = self.coordinates[1]
        return state

    def inputs(self) -> Inputs:
        """Return inputs with buffers for all steps."""
        forces = [AppliedForce(body) for body in self.loaded_bodies]
        return make_inputs(self.compiled, drives=self.drives, forces=forces, pose=np.zeros_like(self.poses[1:]))

    def step_inputs(self, drive_force: Array | None = None, nominal_pose: Array | None = None) -> StepInputs:
        """Return the inputs of all steps; see `StepInputs`."""
        return make_step_inputs(
            self.compiled, drive_force=drive_force, applied_force=self.applied_force, pose=self.poses[2:],
            nominal_pose=nominal_pose,
        )  # fmt: skip


def prepare_stepper(
    curves: Derivatives, loads: Loads | None, contacts: bool, options: StepOptions, substeps: int = 1
) -> Stepper:
    """Prepare the model with its target poses and measured forces; curves are those of `subdivide`."""
    step = 1.0 / curves.rate
    compiled, drives, residuals, root = compile_stepped(curves.model, step, contacts, options)
    time = np.concatenate([[curves.time[0] - step], curves.time, [curves.time[-1] + step]])
    coordinates = curves.at(time)[0]
    poses = body_poses(make_motion(curves.model, coordinates, time, curves.rate), compiled)
    applied = None if loads is None else step_loads(loads, curves, poses[1:-1], compiled)
    bodies = () if loads is None else tuple(loads.body)
    return Stepper(
        compiled, drives, residuals, root, coordinates, poses, applied, bodies, substeps, options.root_tolerance
    )


def compile_stepped(
    model: Model, step: float, contacts: bool, options: StepOptions
) -> tuple[CompiledModel, tuple[Drive, ...], tuple[Residual, ...], str]:
    """Compile the model with hard joints, without limits and markers; also return drives, residuals and root body."""
    model = hard_model(model, ground=contacts)
    if contacts and not (model.ground and any(shape.collides for body in model.bodies for shape in body.shapes)):
        raise ModelError(
            f"Model {model.name!r} has no ground, or no shapes that collide with it, so contacts cannot support it. "
            "Add a ground plane and feet, or use plate forces."
        )
    named = root_coordinates(model)
    root = next((j.child for j in model.joints if named and any(c.name == named[0] for c in j.coordinates)), "")
    coupled = {coupling.coordinate for coupling in model.couplings}
    driven = [c.name for c in model.coordinates if not (c.locked or c.name in coupled or c.name in named)]
    limits = _by_name(options.max_force, driven, "max_force", inf)
    zones = _by_name(options.tolerance, driven, "tolerance", 0.0)
    drives = tuple(Drive(name, stiffness=inf, max_force=limits[name], dead_zone=zones[name]) for name in driven)
    residual = options.residual
    if options.root_tolerance is not None:
        drives = (*_root_drives(model, named, residual, options.root_tolerance), *drives)
        residual = []
    if residual is None:
        residual = MAX_RESIDUAL_MOMENT if contacts else inf
    if isinstance(residual, (int, float)):
        axes = range(3, 6) if contacts else range(6)
        soft = RESIDUAL_SOFTNESS if contacts else Softness(erp=1.0)
        residual = [Residual(root, axis, float(residual), soft) for axis in axes] if root and residual > 0.0 else []
    free = len(named) == 6
    residuals = tuple(_to_model(model, r) for r in residual if free or r.body != root or _may_move(model, root, r))
    settings = SolverSettings(push_out_speed=PUSH_OUT_SPEED, tangent_softness=TANGENT_SOFTNESS)
    compiled = compile_model(model, step=step, settings=settings, drives=drives, residuals=residuals, balls_as_one=True)
    return compiled, drives, residuals, root


def step_loads(loads: Loads, curves: Derivatives, poses: Array, compiled: CompiledModel) -> Array:
    """Return the applied forces (frames, loads, 9) of each step, model axes.

    The second difference of a position is its acceleration averaged over the steps before and after, with a weight that
    decreases to zero at their far ends; forces are averaged in the same way.
    """
    count = SAMPLES_PER_STEP + 1
    force, moment = np.zeros((2, len(curves.time), len(loads.body), 3))
    for offset in np.arange(-SAMPLES_PER_STEP, count) / count:
        now = loads.at(curves.time + offset / curves.rate)
        weight = (1.0 - abs(offset)) / count
        force += weight * now.force
        moment += weight * (now.moment + np.cross(now.point, now.force))
    axes = to_model_axes(curves.model).T
    force, moment = force @ axes, moment @ axes
    point = loads.at(curves.time).point @ axes
    moment -= np.cross(point, force)
    bodies = [compiled.body_index[name] for name in loads.body]
    arm = point - poses[:, bodies, :3]
    local = np.einsum("flji,flj->fli", rotation_matrix(poses[:, bodies, 3:]), arm)
    return np.concatenate([force, moment, local], axis=-1)


def twists_between(poses: Array, step: float) -> Array:
    """Return the velocity [m/s] and angular velocity [rad/s] (frames - 1, bodies, 6) between poses a step [s] apart."""
    displacement = poses[1:, :, :3] - poses[:-1, :, :3]
    rotation = rotation_logarithm(quaternion_product(poses[1:, :, 3:], conjugate(poses[:-1, :, 3:])))
    return np.concatenate([displacement, rotation], axis=-1) / step


def hard_model(model: Model, *, ground: bool) -> Model:
    """Return the model with hard joints, without limits and markers, and optionally without ground."""
    hard = Softness(erp=1.0)
    joints = tuple(
        replace(j, softness=hard, coordinates=tuple(replace(c, lower=-inf, upper=inf) for c in j.coordinates))
        for j in model.joints
    )
    # a hard coupling next to a hard drive has no pivot
    couplings = tuple(replace(c, softness=Softness(erp=1.0, cfm=COUPLING_CFM)) for c in model.couplings)
    return replace(
        model, joints=joints, couplings=couplings, markers=(), muscles=(), ground=model.ground if ground else ()
    )


def body_poses(motion: Motion, compiled: CompiledModel) -> Array:
    """Return centers of mass [m] and quaternions (frames, bodies, 7) of a motion, in the model's axes."""
    axes = to_model_axes(motion.model)
    quaternion = quaternion_product(quaternion_from_matrix(axes), motion.data["body_orientation"].values)
    origin = motion.data["body_position"].values @ axes.T
    center = np.einsum("fbij,bj->fbi", rotation_matrix(quaternion), compiled.center_of_mass)
    return np.concatenate([origin + center, quaternion], axis=-1)


def coordinate_errors(model: Model, values: Array, target: Array) -> Array:
    """Return the differences of coordinates from their targets, angles within half a revolution."""
    rotational = np.array([c.rotational for c in model.coordinates])
    error = values - target
    error[:, rotational] = (error[:, rotational] + np.pi) % (2.0 * np.pi) - np.pi
    return error


def drive_forces(compiled: CompiledModel, record: StepRecord) -> Array:
    """Return the generalized forces (steps, coordinates) [N m or N] of the drives."""
    values, _ = coordinates_and_velocities(compiled, record.pose[:-1], record.twist[:-1])
    return generalized_drive_forces(compiled, record.impulse, values)


def drive_axis_forces(compiled: CompiledModel, coordinates: Array, force: Array) -> Array:
    """Return forces of drives, those of ball joints along the child's axes, from generalized forces."""
    joints = compiled.tables.joints
    result = force.copy()
    for j in np.flatnonzero(joints.rotation_driven):
        i = int(joints.coordinate_first[j])
        sign = joints.sign[i + 2]
        b, c = coordinates[:, i + 1], sign * coordinates[:, i + 2]
        z = sign * force[:, i + 2]
        along = (force[:, i] - np.sin(b) * z) / np.cos(b)
        result[:, i] = np.cos(c) * along + np.sin(c) * force[:, i + 1]
        result[:, i + 1] = -np.sin(c) * along + np.cos(c) * force[:, i + 1]
    return result


def residual_wrench(stepper: Stepper, record: StepRecord) -> Array:
    """Return the residual force [N] and moment [N m] (steps, 6) about the root body's origin, model axes."""
    tables, compiled = stepper.compiled.tables.residuals, stepper.compiled
    result = np.zeros((len(record.impulse), 6))
    if not stepper.root:
        return result
    at = compiled.body_index[stepper.root]
    origin = record.pose[:-1, at, :3] - rotation_matrix(record.pose[:-1, at, 3:]) @ compiled.center_of_mass[at]
    for row, body, axis in zip(tables.row, tables.body, tables.axis, strict=True):
        force = record.impulse[:, row] / compiled.step
        result[:, axis] += force
        if axis < 3:
            vector = np.zeros((len(force), 3))
            vector[:, axis] = force
            result[:, 3:] += np.cross(record.pose[:-1, body, :3] - origin, vector)
    return result


def _root_drives(
    model: Model, named: Sequence[str], residual: Sequence[Residual] | float | None, root_tolerance: tuple[float, float]
) -> tuple[Drive, ...]:
    along, about = root_tolerance
    if not (0.0 <= along < inf and 0.0 <= about < inf):
        raise SettingsError(f"root_tolerance: Got {along} m and {about} rad. Pass finite numbers, 0 or larger.")
    if not named:
        raise ModelError(f"Model {model.name!r} has no free root and no residual. Use root_tolerance=None.")
    if not isinstance(residual, (int, float, type(None))):
        raise SettingsError("root_tolerance: It applies to the whole root. Pass residual as a number, not as rows.")
    limit = inf if residual is None else float(residual)
    rotational = {c.name: c.rotational for c in model.coordinates}
    return tuple(
        Drive(name, stiffness=inf, max_force=limit, dead_zone=about if rotational[name] else along) for name in named
    )


def _by_name(given: Mapping[str, float] | float, names: Sequence[str], what: str, default: float) -> dict[str, float]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, float(given))
    for name in given:
        if name not in names:
            raise SettingsError(f"{what}: {unknown_name('driven coordinate', name, names)}")
    return {name: float(given.get(name, default)) for name in names}


def _to_model(model: Model, residual: Residual) -> Residual:
    """Return the residual with the model's axis that lies along its lab axis."""
    axes = to_model_axes(model)
    axis = int(np.abs(axes[:, residual.axis % 3]).argmax())
    return replace(residual, axis=axis + (3 if residual.axis >= 3 else 0))


def _may_move(model: Model, root: str, residual: Residual) -> bool:
    """Return False if the root cannot move along the residual's axis, as that of a planar model out of its plane."""
    index = [body.name for body in model.bodies].index(root)
    link = next(link for link in tree_links(model) if link.child == index)
    parts = link.translations if residual.axis < 3 else link.rotations
    directions = [link.parent_rotation @ part.axis for part in parts if part.column >= 0]
    axis = _to_model(model, residual).axis % 3
    return any(abs(direction[axis]) > 1e-9 for direction in directions)

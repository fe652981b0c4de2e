"""Torques by rows (seed 004): drives lead every joint to the next frame, and what they had to do is the torque.

Step i starts from the pose of frame i with the velocity that led there and ends with the one that leads to frame i + 1,
so its impulses are central differences: they belong to frame i. Because a step is solved exactly, applying the impulses
read (rewinding, and stepping again with them in place of the drives) gives the same step: `replay` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion, make_motion, to_model_axes
from borelli.analysis.stepped.rollout import Course, Trace, make_step_inputs
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.kinematics import tree_links
from borelli.model.model import Model, Softness
from borelli.numerics.quaternions import conjugate, quaternion_from_matrix, quaternion_product, rotation_logarithm
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.diagnostics import coordinates_and_velocities, rotation_matrices
from borelli.physics.inputs import AppliedForce, Drive, Residual
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import Inputs, State, make_inputs, make_state

Array = NDArray[np.float64]

RESIDUAL_LIMIT = 100.0
"""[N m] about each axis where contacts carry the body (seed 004: 30 to 100 N m)."""
UPRIGHT = Softness(stiffness=2000.0)
"""[N m/rad] of that residual: a spring, for a hard row would always pull with all it may."""
TANGENT = 1.0
"""Compliance of friction relative to the sole's: feet that are not quite where they seem would pull at each other."""
PUSH_OUT = 0.4
"""[m/s] Fastest correction of soles that are in the ground: faster, the body, being stiff, would be thrown up; slower,
a sole that carries the body sinks like into sand."""
COUPLING_CFM = 1e-9
"""[ODE number] of couplings: a thousandth of a degree under 100 N m."""
SAMPLES = 4
"""Measured forces are averaged over the step before and after a frame, at so many times in each and at the frame."""


@dataclass(frozen=True)
class Stepper:
    """A model made ready for stepping along a motion, one step from each frame to the next."""

    compiled: CompiledModel
    drives: tuple[Drive, ...]
    residuals: tuple[Residual, ...]
    """World axes of the model."""
    root: str
    """The body that carries the others through the world; "" where the ground does."""
    coordinates: Array
    """(frames + 2, coordinates): a frame before the first, the frames, a frame after the last."""
    poses: Array
    """(frames + 2, bodies, 7) centres of mass and quaternions, model axes."""
    push: Array | None
    """(frames, pushes, 9) as `Course.push`."""
    pushed: tuple[str, ...]
    """The body of each push."""
    substeps: int = 1
    """Steps a frame of the motion; "frames" above are those that are stepped to."""
    slack: tuple[float, float] | None = None
    """Where drives with dead zones [m, rad] hold the root in place of residual rows."""

    @property
    def frames(self) -> int:
        """How many frames there are, and steps are made."""
        return len(self.poses) - 2

    def start(self) -> State:
        """The state at the first frame, with the velocities that led there."""
        state = make_state(self.compiled)
        state.position[:], state.quaternion[:] = self.poses[1, :, :3], self.poses[1, :, 3:]
        state.twist[:] = twists_between(self.poses[:2], self.compiled.step)[0]
        state.coordinate[:] = self.coordinates[1]
        return state

    def inputs(self, drives: Sequence[Drive] | None = None) -> Inputs:
        """Inputs with room for all steps."""
        forces = [AppliedForce(body) for body in self.pushed]
        drives = self.drives if drives is None else drives
        return make_inputs(self.compiled, drives=drives, forces=forces, pose=np.zeros_like(self.poses[1:]))

    def course(self, rest: Array | None = None, base: Array | None = None) -> Course:
        """What the steps are given; `rest` and `base` as those of `Course`."""
        return make_step_inputs(self.compiled, rest=rest, push=self.push, pose=self.poses[2:], base=base)


def prepare(
    curves: Derivatives,
    loads: Loads | None,
    contacts: bool,
    residual: Sequence[Residual] | float | None,
    limit: Mapping[str, float] | float,
    tolerance: Mapping[str, float] | float,
    substeps: int = 1,
    slack: tuple[float, float] | None = None,
) -> Stepper:
    """The model made ready, with the poses it is led along and the measured forces; curves are those of `finer`."""
    step = 1.0 / curves.rate
    compiled, drives, residuals, root = compile_stepped(curves.model, step, contacts, residual, limit, tolerance, slack)
    time = np.concatenate([[curves.time[0] - step], curves.time, [curves.time[-1] + step]])
    coordinates = curves.at(time)[0]
    poses = model_poses(make_motion(curves.model, coordinates, time, curves.rate), compiled)
    push = None if loads is None else measured_pushes(loads, curves, poses[1:-1], compiled)
    pushed = () if loads is None else tuple(loads.body)
    return Stepper(compiled, drives, residuals, root, coordinates, poses, push, pushed, substeps, slack)


def compile_stepped(
    model: Model,
    step: float,
    contacts: bool,
    residual: Sequence[Residual] | float | None = None,
    limit: Mapping[str, float] | float = inf,
    tolerance: Mapping[str, float] | float = 0.0,
    slack: tuple[float, float] | None = None,
) -> tuple[CompiledModel, tuple[Drive, ...], tuple[Residual, ...], str]:
    """The model with hard joints, without stops and markers; its drives and residuals; the name of its root body."""
    model = hard_model(model, ground=contacts)
    if contacts and not (model.ground and any(shape.collides for body in model.bodies for shape in body.shapes)):
        raise ModelError(
            f"model {model.name!r} has no ground, or no shapes that touch it, so contacts cannot carry it: "
            "give it a ground plane and feet, or use the forces of plates"
        )
    named = root_coordinates(model)
    root = next((j.child for j in model.joints if named and any(c.name == named[0] for c in j.coordinates)), "")
    held = {coupling.coordinate for coupling in model.couplings}
    driven = [c.name for c in model.coordinates if not (c.locked or c.name in held or c.name in named)]
    limits, zones = _by_name(limit, driven, "limit", inf), _by_name(tolerance, driven, "tolerance", 0.0)
    drives = tuple(Drive(name, stiffness=inf, max_force=limits[name], dead_zone=zones[name]) for name in driven)
    if slack is not None:
        drives = (*_root_drives(model, named, residual, slack), *drives)
        residual = []
    if residual is None:
        residual = RESIDUAL_LIMIT if contacts else inf
    if isinstance(residual, (int, float)):
        axes = range(3, 6) if contacts else range(6)
        soft = UPRIGHT if contacts else Softness(erp=1.0)
        residual = [Residual(root, axis, float(residual), soft) for axis in axes] if root and residual > 0.0 else []
    whole = len(named) == 6
    residuals = tuple(_to_model(model, r) for r in residual if whole or r.body != root or _may_move(model, root, r))
    settings = SolverSettings(push_out_speed=PUSH_OUT, tangent_softness=TANGENT)
    return (
        compile_model(model, step=step, settings=settings, drives=drives, residuals=residuals),
        drives,
        residuals,
        root,
    )


def measured_pushes(loads: Loads, curves: Derivatives, poses: Array, compiled: CompiledModel) -> Array:
    """(frames, loads, 9) pushes of each step, model axes.

    The second difference of a position is its acceleration averaged over the steps before and after, with a weight that
    falls to zero at their far ends; so are the forces averaged.
    """
    count = SAMPLES + 1
    shares = np.arange(-SAMPLES, count) / count
    force, moment = np.zeros((2, len(curves.time), len(loads.body), 3))
    for share in shares:
        now = loads.at(curves.time + share / curves.rate)
        weight = (1.0 - abs(share)) / count
        force += weight * now.force
        moment += weight * (now.moment + np.cross(now.point, now.force))
    turn = to_model_axes(curves.model).T
    force, moment = force @ turn, moment @ turn
    point = loads.at(curves.time).point @ turn
    moment -= np.cross(point, force)
    bodies = [compiled.body_index[name] for name in loads.body]
    arm = point - poses[:, bodies, :3]
    local = np.einsum("flji,flj->fli", rotation_matrices(poses[:, bodies, 3:]), arm)
    return np.concatenate([force, moment, local], axis=-1)


def twists_between(poses: Array, step: float) -> Array:
    """(frames - 1, bodies, 6) velocity [m/s] and spin [rad/s] that lead from each pose to the next in a step [s]."""
    moved = poses[1:, :, :3] - poses[:-1, :, :3]
    turned = rotation_logarithm(quaternion_product(poses[1:, :, 3:], conjugate(poses[:-1, :, 3:])))
    return np.concatenate([moved, turned], axis=-1) / step


def hard_model(model: Model, *, ground: bool) -> Model:
    """The model with joints that do not give, no stops and no markers; without ground where that is not wanted."""
    hard = Softness(erp=1.0)
    joints = tuple(
        replace(j, softness=hard, coordinates=tuple(replace(c, lower=-inf, upper=inf) for c in j.coordinates))
        for j in model.joints
    )
    # a hard coupling beside a hard drive has no pivot
    couplings = tuple(replace(c, softness=Softness(erp=1.0, cfm=COUPLING_CFM)) for c in model.couplings)
    return replace(
        model, joints=joints, couplings=couplings, markers=(), muscles=(), ground=model.ground if ground else ()
    )


def model_poses(motion: Motion, compiled: CompiledModel) -> Array:
    """(frames, bodies, 7) centres of mass [m] and quaternions of a motion, in the model's axes."""
    turn = to_model_axes(motion.model)
    quaternion = quaternion_product(quaternion_from_matrix(turn), motion.data["body_orientation"].values)
    origin = motion.data["body_position"].values @ turn.T
    center = np.einsum("fbij,bj->fbi", rotation_matrices(quaternion), compiled.center_of_mass)
    return np.concatenate([origin + center, quaternion], axis=-1)


def drive_forces(compiled: CompiledModel, trace: Trace) -> Array:
    """(steps, coordinates) generalized forces [N m or N] of the drives.

    A ball's three drives act along the child's axes; the power of a Cardan angle's rate is their moment along the axis
    that the angle turns about.
    """
    joints, h = compiled.tables.joints, compiled.step
    row = joints.drive_row
    force = np.where(row >= 0, trace.impulse[:, row], 0.0) / h
    values, _ = coordinates_and_velocities(compiled, trace.pose[:-1], trace.twist[:-1])
    for j in np.flatnonzero(joints.rotation_driven):
        i = int(joints.coordinate_first[j])
        sign = joints.sign[i + 2]
        b, c = values[:, i + 1], sign * values[:, i + 2]
        x, y, z = force[:, i].copy(), force[:, i + 1].copy(), sign * force[:, i + 2]
        force[:, i] = np.cos(b) * (np.cos(c) * x - np.sin(c) * y) + np.sin(b) * z
        force[:, i + 1] = np.sin(c) * x + np.cos(c) * y
    return force


def drive_axis_forces(compiled: CompiledModel, coordinates: Array, force: Array) -> Array:
    """The way back: forces of drives, balls' along the child's axes, from generalized forces (steps, coordinates)."""
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


def residual_wrench(stepper: Stepper, trace: Trace) -> Array:
    """(steps, 6) force [N] and torque [N m] of the residuals about the root body's origin, model axes."""
    tables, compiled = stepper.compiled.tables.residuals, stepper.compiled
    result = np.zeros((len(trace.impulse), 6))
    if not stepper.root:
        return result
    at = compiled.body_index[stepper.root]
    origin = trace.pose[:-1, at, :3] - rotation_matrices(trace.pose[:-1, at, 3:]) @ compiled.center_of_mass[at]
    for row, body, axis in zip(tables.row, tables.body, tables.axis, strict=True):
        force = trace.impulse[:, row] / compiled.step
        result[:, axis] += force
        if axis < 3:
            pull = np.zeros((len(force), 3))
            pull[:, axis] = force
            result[:, 3:] += np.cross(trace.pose[:-1, body, :3] - origin, pull)
    return result


def _root_drives(
    model: Model, named: Sequence[str], residual: Sequence[Residual] | float | None, slack: tuple[float, float]
) -> tuple[Drive, ...]:
    """Drives of the root's coordinates that do nothing within the slack."""
    if not all(0.0 <= part < inf for part in slack):
        raise SettingsError(f"slack is {slack[0]} m and {slack[1]} rad; both must be finite numbers, 0 or larger")
    if not named:
        raise ModelError(f"model {model.name!r} stands on the ground for good: it has no residual, and needs no slack")
    if not isinstance(residual, (int, float, type(None))):
        raise SettingsError("slack is that of the whole root: residual must be its limit, not rows of one's own choice")
    limit = inf if residual is None else float(residual)
    turning = {c.name: c.rotational for c in model.coordinates}
    return tuple(
        Drive(name, stiffness=inf, max_force=limit, dead_zone=slack[1] if turning[name] else slack[0]) for name in named
    )


def _by_name(given: Mapping[str, float] | float, names: Sequence[str], what: str, usual: float) -> dict[str, float]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, float(given))
    for name in given:
        if name not in names:
            raise SettingsError(f"{what}: {unknown_name('driven coordinate', name, names)}")
    return {name: float(given.get(name, usual)) for name in names}


def _to_model(model: Model, residual: Residual) -> Residual:
    """The residual about the model's axis that lies along its lab axis."""
    turn = to_model_axes(model)
    axis = int(np.abs(turn[:, residual.axis % 3]).argmax())
    return replace(residual, axis=axis + (3 if residual.axis >= 3 else 0))


def _may_move(model: Model, root: str, residual: Residual) -> bool:
    """Whether the root can move along the residual's axis at all: that of a planar model cannot leave its plane."""
    index = [body.name for body in model.bodies].index(root)
    link = next(link for link in tree_links(model) if link.child == index)
    parts = link.translations if residual.axis < 3 else link.rotations
    directions = [link.parent_rotation @ part.axis for part in parts if part.column >= 0]
    axis = _to_model(model, residual).axis % 3
    return any(abs(direction[axis]) > 1e-9 for direction in directions)

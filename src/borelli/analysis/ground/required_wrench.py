"""Wrench that the ground must supply for a motion, and the effect of a force at each point of the soles.

A force f at a point is J^T f at the coordinates, J the point's Jacobian. The body must get, from ground and joints
together, Q = M a + c - gravity. At the joints of the legs the ground's part should leave little torque; at the root it
must leave none, so there Q is stated as a wrench: the root's coordinates move the body by S = (v, w) at its center of
mass, Q = S^T W, and with weights D for forces and moments

    |D (J^T f - W)|^2 = |(S^T D^-1)^+ (J_root^T f - Q)|^2.

A planar model's S has rank three, and its root requires no more than that. The result does not depend on the frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.ground.soles import Soles
from borelli.analysis.motion import rotate, to_model_axes
from borelli.analysis.tree_kernels.friction_cone_forces import compute_point_paths
from borelli.analysis.tree_kernels.marker_energy import Points
from borelli.analysis.tree_kernels.newton_ik import make_ik_search
from borelli.errors import ModelError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import coupled_forces
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.vectors import Array, cross
from borelli.tree.kinematic_tree import Tree, make_tree

FORCE_WEIGHT, MOMENT_WEIGHT, TORQUE_WEIGHT = 20.0, 100.0, 1.0
"""Weights of 1 N and 1 N m left at the root, about the center of mass, and of 1 N m left at a joint of the legs.

On walks over plates, foot forces hardly change when these do by a factor of three (docs/theory.md).
"""

MIN_ROOT_VOLUME = 1e-6
"""Volume of a root's six motions, each per unit of its variable, above which they span every wrench."""


@dataclass(frozen=True)
class RequiredWrench:
    """Required wrench and torques, and the effect of forces at the soles, in lab axes."""

    position: Array
    """(frames, points, 3) of the soles' points [m]."""
    velocity: Array
    """(frames, points, 3) [m/s]."""
    rows: Array
    """(frames, 6 + leg variables, points, 3) effect of a force [N], weighted; the root's force and moment first."""
    need: Array
    """(frames, 6 + leg variables) required effect."""

    def root_wrench(self, values: Array) -> Array:
        """Return force [N] and moment about the center of mass [N m] (frames, 6) of the first six weighted values."""
        return np.asarray(values[:, :6] / ([FORCE_WEIGHT] * 3 + [MOMENT_WEIGHT] * 3))


@dataclass(frozen=True)
class SoleMotion:
    """Positions and Jacobians of the soles, in model axes."""

    tree: Tree
    columns: list[int]
    """Variables that move the soles, those of the root first."""
    of_root: int
    """Number of variables of the root."""
    position: Array
    """(frames, points + 4, 3) [m]; the last four are the root's origin and the ends of its axes."""
    velocity: Array
    """(frames, points, 3) [m/s]."""
    jacobian: Array
    """(frames, columns, points + 4, 3)."""


def sole_motion(moved: BodyKinematics, soles: Soles) -> SoleMotion:
    """Compute positions, velocities and Jacobians of the soles in a motion."""
    model, tree = moved.model, make_tree(moved.model)
    at = np.array(sole_bodies(model, soles), dtype=np.int64)
    root, of_root, of_legs = _variables(model, tuple(at.tolist()))
    columns = [*of_root, *of_legs]
    slot = np.full(len(tree.free), -1, np.int64)
    slot[columns] = np.arange(len(columns))
    probes = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    points = Points(np.concatenate([at, np.full(4, root)]), np.concatenate([soles.positions, probes]))
    q = np.array(moved.coordinates)
    frames, count = len(q), len(points.body)
    position, jacobian = np.empty((frames, count, 3)), np.empty((frames, len(columns), count, 3))
    compute_point_paths(SharedTuple(make_ik_search(tree, points)), slot, q, position, jacobian)
    velocity = moved.velocity[at] + cross(moved.angular_velocity[at], position[:, : len(at)].transpose(1, 2, 0))
    return SoleMotion(tree, columns, len(of_root), position, velocity.transpose(2, 0, 1), jacobian)


def sole_bodies(model: Model, soles: Soles) -> list[int]:
    """Return the index of each point's body."""
    index = {body.name: i for i, body in enumerate(model.bodies)}
    return [index[name] for name in soles.bodies]


def required_wrench(moved: BodyKinematics, soles: Soles, given: Array | float = 0.0) -> RequiredWrench:
    """Compute what the ground must supply, besides given generalized forces (frames, coordinates) [N m or N]."""
    model = moved.model
    axes, own = to_model_axes(model), len(soles.bodies)
    motion = sole_motion(moved, soles)
    all_forces = coupled_forces(model, moved.coordinates, moved.required_force.sum(axis=0))
    needed = (all_forces - given)[:, motion.tree.free[motion.columns]]
    center = _center(moved)
    k = motion.of_root
    of_wrench = _wrench_rows(motion.jacobian[:, :k, own:], motion.position[:, own:], center, axes)
    effects = rotate(motion.jacobian[:, :, :own], axes).reshape(len(center), -1, 3 * own)
    rows = np.empty((len(effects), 6 + effects.shape[1] - k, 3 * own))
    np.matmul(of_wrench, effects[:, :k], out=rows[:, :6])
    np.multiply(TORQUE_WEIGHT, effects[:, k:], out=rows[:, 6:])
    of_root = (of_wrench @ needed[:, :k, None])[..., 0]
    need = np.concatenate([of_root, TORQUE_WEIGHT * needed[:, k:]], axis=1)
    position, velocity = (rotate(values, axes) for values in (motion.position[:, :own], motion.velocity))
    return RequiredWrench(position, velocity, rows.reshape(*rows.shape[:2], own, 3), need)


@cached_per_model
def _variables(model: Model, at: tuple[int, ...]) -> tuple[int, list[int], list[int]]:
    """Return the root body, the variables that move it, and the others on the paths to these bodies."""
    tree = make_tree(model)
    inboard = {int(child): int(parent) for child, parent in zip(tree.child, tree.parent, strict=True)}
    roots, legs = set(), set[int]()
    for body in set(at):
        path = [body]
        while inboard.get(path[-1], -1) >= 0:
            path.append(inboard[path[-1]])
        roots.add(path[-1])
        legs.update(path[:-1])
    if len(roots) != 1:
        names = ", ".join(sorted(model.bodies[i].name for i in roots))
        raise ModelError(f"Model {model.name!r}: The feet are on different roots ({names}). Connect them to one root.")

    def moving(bodies: set[int]) -> set[int]:
        links = [i for i, child in enumerate(tree.child) if int(child) in bodies]
        parts = [p for i in links for p in range(tree.first[i], tree.first[i + 1]) if tree.coordinate[p] >= 0]
        return {int(tree.variable[tree.coordinate[p]]) for p in parts} - {-1}

    of_root = moving(roots)
    return roots.pop(), sorted(of_root), sorted(moving(legs) - of_root)


def _wrench_rows(jacobian: Array, probes: Array, center: Array, axes: Array) -> Array:
    """Return the map (frames, 6, root variables) from generalized forces of the root to the weighted lab wrench.

    `jacobian` (frames, variables, probes, 3) and `probes` (frames, probes, 3) are those of the root's origin and axes.
    """
    jacobian = np.ascontiguousarray(jacobian.transpose(2, 1, 3, 0))  # probe, variable, axis, frame
    probes = np.ascontiguousarray(probes.transpose(1, 2, 0))
    translation = jacobian[0]
    rotation = np.zeros_like(translation)
    for k in range(1, 4):
        rotation += 0.5 * cross(probes[k] - probes[0], jacobian[k] - translation)
    translation = translation + cross(rotation, center.T - probes[0])
    directions = np.concatenate([translation / FORCE_WEIGHT, rotation / MOMENT_WEIGHT], axis=1)
    motions = rotate(directions.transpose(2, 0, 1).reshape(len(center), -1, 2, 3), axes).reshape(len(center), -1, 6)
    smallest = MIN_ROOT_VOLUME * (FORCE_WEIGHT * MOMENT_WEIGHT) ** -3
    if motions.shape[1] == 6 and (np.abs(np.linalg.det(motions)) > smallest).all():
        return np.asarray(np.linalg.inv(motions))
    return np.asarray(np.linalg.pinv(motions))


def _center(moved: BodyKinematics) -> Array:
    total = moved.masses.sum()
    if not total > 0.0:
        raise ModelError(f"Model {moved.model.name!r}: The bodies have no mass. Add masses.")
    return np.tensordot(moved.masses / total, moved.center, axes=1).T

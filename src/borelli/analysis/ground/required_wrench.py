"""What the ground must give: the wrench and torques of a motion without ground, and what a force at each sole does.

A force f at a point is J^T f at the coordinates, J the point's Jacobian. The body must get, from ground and joints
together, Q = M a + c - gravity. At the joints of the legs the ground's share should leave little torque; at the root it
must leave none, so there Q is asked for as the wrench it stands for: the root's coordinates move the body by S = (v, w)
at its centre of mass, Q = S^T W, and with weights D for forces and moments

    |D (J^T f - W)|^2 = |(S^T D^-1)^+ (J_root^T f - Q)|^2.

A planar model's S has rank three, and its root asks for no more than that. All this is the same in any frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.ground.soles import Soles
from borelli.analysis.motion import to_model_axes, rotate
from borelli.analysis.tree_kernels.friction_cone_forces import compute_point_paths
from borelli.analysis.tree_kernels.kinematic_tree import Tree, make_tree
from borelli.analysis.tree_kernels.marker_energy import Points
from borelli.analysis.tree_kernels.newton_ik import make_ik_search
from borelli.errors import ModelError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import coupled_forces
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.vectors import cross

Array = NDArray[np.float64]

FORCE_WEIGHT, MOMENT_WEIGHT, TORQUE_WEIGHT = 20.0, 100.0, 1.0
"""Of 1 N and 1 N m left at the root, about the centre of mass, and of 1 N m left at a joint of the legs.

On walks over plates, forces of the feet hardly change when these do by a factor of three (docs/theory.md).
"""

REACHES = 1e-6
"""Volume of the six ways of a root, each per unit of its variable, above which they reach every wrench."""


@dataclass(frozen=True)
class Rows:
    """What is needed, and what the soles can do about it, in lab axes.

    Attributes:
        place: (frames, points, 3) of the soles' points [m].
        velocity: (frames, points, 3) [m/s].
        rows: (frames, 6 + leg variables, points, 3) what a force [N] does, weighted; the root's force and moment first.
        need: (frames, 6 + leg variables) what it should do.
        center: (frames, 3) of mass [m].
    """

    place: Array
    velocity: Array
    rows: Array
    need: Array
    center: Array

    def root_wrench(self, values: Array) -> Array:
        """(frames, 6) force [N] and moment about the centre of mass [N m] of the first six of weighted values."""
        return np.asarray(values[:, :6] / ([FORCE_WEIGHT] * 3 + [MOMENT_WEIGHT] * 3))


@dataclass(frozen=True)
class Paths:
    """Where soles are, and how they move with what carries them, in model axes.

    Attributes:
        tree: Of the model.
        columns: Variables that move the soles, those of the root first.
        of_root: How many of them are the root's.
        place: (frames, points + 4, 3) [m]; the last four are the root's origin and the ends of its axes.
        velocity: (frames, points, 3) [m/s]
        jacobian: (frames, columns, points + 4, 3)
    """

    tree: Tree
    columns: list[int]
    of_root: int
    place: Array
    velocity: Array
    jacobian: Array


def sole_motion(moved: BodyKinematics, soles: Soles) -> Paths:
    """The ways of the soles in a motion.

    Raises:
        ModelError: the feet do not hang on one root.
    """
    model, tree = moved.model, make_tree(moved.model)
    at = np.array(sole_bodies(model, soles), dtype=np.int64)
    root, of_root, of_legs = _variables(model, tuple(at.tolist()))
    columns = [*of_root, *of_legs]
    slot = np.full(len(tree.free), -1, np.int64)
    slot[columns] = np.arange(len(columns))
    probes = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    points = Points(np.concatenate([at, np.full(4, root)]), np.concatenate([soles.places, probes]))
    q = np.array(moved.coordinates)
    frames, count = len(q), len(points.body)
    place, jacobian = np.empty((frames, count, 3)), np.empty((frames, len(columns), count, 3))
    compute_point_paths(SharedTuple(make_ik_search(tree, points)), slot, q, place, jacobian)
    velocity = (moved.velocity[at] + cross(moved.angular_velocity[at], place[:, : len(at)].transpose(1, 2, 0))).transpose(2, 0, 1)
    return Paths(tree, columns, len(of_root), place, velocity, jacobian)


def sole_bodies(model: Model, soles: Soles) -> list[int]:
    """The index of each point's body."""
    index = {body.name: i for i, body in enumerate(model.bodies)}
    return [index[name] for name in soles.bodies]


def required_wrench(moved: BodyKinematics, soles: Soles, given: Array | float = 0.0) -> Rows:
    """What the ground must give for a motion.

    `given` is what is already known to act on the coordinates (frames, coordinates) [N m or N].

    Raises:
        ModelError: the feet do not hang on one root, or nothing has mass.
    """
    model = moved.model
    turn, own = to_model_axes(model), len(soles.bodies)
    paths = sole_motion(moved, soles)
    all_forces = coupled_forces(model, moved.coordinates, moved.required_force.sum(axis=0))
    needed = (all_forces - given)[:, paths.tree.free[paths.columns]]
    center = _center(moved)
    k = paths.of_root
    of_wrench = _wrench_rows(paths.jacobian[:, :k, own:], paths.place[:, own:], center, turn)
    acts = rotate(paths.jacobian[:, :, :own], turn).reshape(len(center), -1, 3 * own)
    rows = np.empty((len(acts), 6 + acts.shape[1] - k, 3 * own))
    np.matmul(of_wrench, acts[:, :k], out=rows[:, :6])
    np.multiply(TORQUE_WEIGHT, acts[:, k:], out=rows[:, 6:])
    asked = (of_wrench @ needed[:, :k, None])[..., 0]
    need = np.concatenate([asked, TORQUE_WEIGHT * needed[:, k:]], axis=1)
    place, velocity, center = (rotate(values, turn) for values in (paths.place[:, :own], paths.velocity, center))
    return Rows(place, velocity, rows.reshape(*rows.shape[:2], own, 3), need, center)


@cached_per_model
def _variables(model: Model, at: tuple[int, ...]) -> tuple[int, list[int], list[int]]:
    """The body that carries all, the variables that move it, and the others on the ways to these bodies."""
    tree = make_tree(model)
    inboard = {int(child): int(parent) for child, parent in zip(tree.child, tree.parent, strict=True)}
    roots, legs = set(), set[int]()
    for body in set(at):
        way = [body]
        while inboard.get(way[-1], -1) >= 0:
            way.append(inboard[way[-1]])
        roots.add(way[-1])
        legs.update(way[:-1])
    if len(roots) != 1:
        names = ", ".join(sorted(model.bodies[i].name for i in roots))
        raise ModelError(f"model {model.name!r}: its feet hang on different bodies ({names}), but must share one root")

    def moving(bodies: set[int]) -> set[int]:
        links = [i for i, child in enumerate(tree.child) if int(child) in bodies]
        parts = [p for i in links for p in range(tree.first[i], tree.first[i + 1]) if tree.coordinate[p] >= 0]
        return {int(tree.variable[tree.coordinate[p]]) for p in parts} - {-1}

    of_root = moving(roots)
    return roots.pop(), sorted(of_root), sorted(moving(legs) - of_root)


def _wrench_rows(jacobian: Array, probes: Array, center: Array, turn: Array) -> Array:
    """(frames, 6, root variables) that make the weighted wrench of the root's generalized forces, in lab axes.

    `jacobian` (frames, variables, probes, 3) and `probes` (frames, probes, 3) are those of the root's origin and axes.
    """
    jacobian = np.ascontiguousarray(jacobian.transpose(2, 1, 3, 0))  # probe, variable, axis, frame
    probes = np.ascontiguousarray(probes.transpose(1, 2, 0))
    shift = jacobian[0]
    spin = np.zeros_like(shift)
    for k in range(1, 4):
        spin += 0.5 * cross(probes[k] - probes[0], jacobian[k] - shift)
    shift = shift + cross(spin, center.T - probes[0])
    directions = np.concatenate([shift / FORCE_WEIGHT, spin / MOMENT_WEIGHT], axis=1)
    ways = rotate(directions.transpose(2, 0, 1).reshape(len(center), -1, 2, 3), turn).reshape(len(center), -1, 6)
    if ways.shape[1] == 6 and (np.abs(np.linalg.det(ways)) > REACHES * (FORCE_WEIGHT * MOMENT_WEIGHT) ** -3).all():
        return np.asarray(np.linalg.inv(ways))
    return np.asarray(np.linalg.pinv(ways))


def _center(moved: BodyKinematics) -> Array:
    """(frames, 3) of mass [m]."""
    total = moved.masses.sum()
    if not total > 0.0:
        raise ModelError(f"model {moved.model.name!r}: its bodies have no mass, so the ground has nothing to hold")
    return np.tensordot(moved.masses / total, moved.center, axes=1).T

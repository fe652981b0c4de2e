"""Dynamics of a model as arrays: the fast form under the labeled functions of `generalized_dynamics`.

States are rows of arrays. Coordinates are all of the model's; *variables* are the free ones, neither locked nor
coupled. Mass matrices, Jacobians and forces are those of variables: a coupled coordinate q_c = f(q) adds f'(q) times
its force.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import DivergedError, ModelError, SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import GROUND, Model
from borelli.model.validate import validate
from borelli.tree.forward_kinematics import make_tree_pose
from borelli.tree.kinematic_tree import make_tree
from borelli.tree.tree_dynamics import (
    make_dynamics_work,
    make_tree_inertia,
    point_jacobians,
    tree_dynamics,
    tree_inverse_dynamics,
)

Floats = NDArray[np.float64]

MIN_PIVOT_RATIO = 1e-13
"""Smallest pivot of the scaled mass matrix, relative to 1, at which accelerations are still determined."""


class Evaluation(NamedTuple):
    """Dynamics of many states."""

    mass: Floats
    """(states, variables, variables) mass matrix."""
    force: Floats
    """(states, variables) generalized forces that the accelerations require next to gravity and loads [N m or N]."""
    motion: Floats
    """(states, bodies, 12) of the centers of mass: velocity, angular velocity, acceleration, angular acceleration."""
    slope: Floats
    """(states, coordinates, 2) first and second derivative of each coordinate by its variable."""


class ModelDynamics:
    """Mass matrix, inverse and forward dynamics and Jacobians of a tree model, for arrays of states.

    Contacts, joint limits, drives and muscles are not part of it: pass their forces. Not for several threads at once:
    work arrays belong to the object.
    """

    def __init__(self, model: Model) -> None:
        """Prepare a model.

        Raises:
            ModelError: The model is invalid, has closed loops, a body without a joint, or a kinematic body on a joint.
        """
        validate(model)
        _check_tree(model)
        self.model = model
        self._tree = make_tree(model)
        self.free = self._tree.free
        """(variables,) coordinate of each variable."""
        self.variable = self._tree.variable
        """(coordinates,) variable of each coordinate; -1: locked."""
        self.variables = tuple(model.coordinates[i].name for i in self.free)
        self.body_index = {body.name: i for i, body in enumerate(model.bodies)}
        self._pose = make_tree_pose(self._tree)
        self._shared = (
            SharedTuple(self._tree), SharedTuple(self._pose), SharedTuple(make_tree_inertia(model)),
            SharedTuple(make_dynamics_work(self._tree)),
        )  # fmt: skip

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        count, names = len(self.variables), list_names(self.variables)
        return Summary("ModelDynamics", [("model", repr(self.model)), ("variables", f"{count}: {names}")])

    def evaluate(
        self, coordinates: ArrayLike, rates: ArrayLike, rate_changes: ArrayLike, loads: ArrayLike | None = None
    ) -> Evaluation:
        """Return mass matrices, inverse dynamics and the motion of bodies.

        Args:
            coordinates: (states, coordinates) [rad or m]; coupled ones are computed from their functions.
            rates: (states, variables) [rad/s or m/s].
            rate_changes: (states, variables) [rad/s^2 or m/s^2].
            loads: (states, bodies, 6) moment about the world origin [N m] and force [N]. Default: none.
        """
        given = self._states(coordinates, rates, rate_changes, loads)
        states, n = given[1].shape
        found = Evaluation(
            np.empty((states, n, n)), np.empty((states, n)), np.empty((states, len(self.model.bodies), 12)),
            np.empty((states, len(self.model.coordinates), 2)),
        )  # fmt: skip
        tree_dynamics(*(*self._shared, *given, *found))
        return found

    def required_forces(
        self, coordinates: ArrayLike, rates: ArrayLike, rate_changes: ArrayLike, loads: ArrayLike | None = None
    ) -> Floats:
        """Return `evaluate(...).force` alone, the inverse dynamics, in less time; arguments as of `evaluate`."""
        given = self._states(coordinates, rates, rate_changes, loads)
        force = np.empty_like(given[1])
        tree_inverse_dynamics(*self._shared, *given, force)
        return force

    def _states(
        self, coordinates: ArrayLike, rates: ArrayLike, rate_changes: ArrayLike, loads: ArrayLike | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return states as arrays for kernels; the coordinates are a copy, in which coupled ones are set."""
        q = as_floats("coordinates", coordinates, (None, len(self.model.coordinates))).copy()
        shape, load_shape = (len(q), len(self.free)), (len(q), len(self.model.bodies), 6)
        u, du = (as_floats(name, v, shape) for name, v in (("rates", rates), ("rate_changes", rate_changes)))
        load = np.zeros(load_shape) if loads is None else as_floats("loads", loads, load_shape)
        return q, np.ascontiguousarray(u), np.ascontiguousarray(du), np.ascontiguousarray(load)

    def accelerations(
        self, coordinates: ArrayLike, rates: ArrayLike, forces: ArrayLike, loads: ArrayLike | None = None
    ) -> Floats:
        """Return the accelerations (states, variables) [rad/s^2 or m/s^2] that forces and loads cause.

        Args:
            coordinates: (states, coordinates) [rad or m].
            rates: (states, variables) [rad/s or m/s].
            forces: (states, coordinates) generalized forces [N m or N].
            loads: As of `evaluate`.

        Raises:
            DivergedError: The mass matrix is singular: a Cardan angle is at gimbal lock, or a part that moves has no
                mass.
        """
        rates = np.asarray(rates, float)
        found = self.evaluate(coordinates, rates, np.zeros_like(rates), loads)
        return self.solve(found.mass, self.variable_forces(forces, found.slope) - found.force)

    def solve(self, mass: Floats, force: Floats) -> Floats:
        """Return mass^-1 force, (states, variables) or (states, variables, columns); check that it is determined."""
        if not len(self.free):
            return np.zeros_like(force)
        scale = np.sqrt(np.einsum("sii->si", mass))
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = mass / scale[:, :, None] / scale[:, None, :]
        if not _smallest_pivot(scaled) > MIN_PIVOT_RATIO:
            raise DivergedError(
                f"The mass matrix of model {self.model.name!r} is singular, so accelerations are not "
                "determined. A ball or free joint is at gimbal lock (its second angle is 90 degrees), or a part that "
                "moves has no mass."
            )
        columns = force[..., None] if force.ndim == 2 else force
        solved = np.linalg.solve(scaled, columns / scale[..., None]) / scale[..., None]
        return np.asarray(solved[..., 0] if force.ndim == 2 else solved)

    def variable_forces(self, forces: ArrayLike, slope: Floats) -> Floats:
        """Return forces on variables (states, variables) from those on all coordinates (states, coordinates)."""
        given = as_floats("forces", forces, (len(slope), len(self.model.coordinates)))
        locked = (self.variable < 0) & (given != 0.0).any(axis=0)
        if locked.any():
            name = self.model.coordinates[int(np.argmax(locked))].name
            raise SettingsError(f"forces: Coordinate {name!r} is locked, so a force on it has no effect. Remove it.")
        moving = np.flatnonzero(self.variable >= 0)
        to_variables = np.zeros((len(moving), len(self.free)))
        to_variables[np.arange(len(moving)), self.variable[moving]] = 1.0
        return np.asarray((given[:, moving] * slope[:, moving, 0]) @ to_variables)

    def all_coordinates(self, slope: Floats, rates: Floats, rate_changes: Floats) -> tuple[Floats, Floats]:
        """Return velocities and accelerations (states, coordinates) of all coordinates from those of variables."""
        speed, acceleration = np.zeros(slope.shape[:2]), np.zeros(slope.shape[:2])
        moving = np.flatnonzero(self.variable >= 0)
        u, du = rates[:, self.variable[moving]], rate_changes[:, self.variable[moving]]
        speed[:, moving] = slope[:, moving, 0] * u
        acceleration[:, moving] = slope[:, moving, 0] * du + slope[:, moving, 1] * u**2
        return speed, acceleration

    def jacobians(self, coordinates: ArrayLike, bodies: Sequence[str], points: ArrayLike) -> Floats:
        """Return the Jacobians (states, points, 6, variables) of points: velocity, then angular velocity, world axes.

        Args:
            coordinates: (states, coordinates) [rad or m].
            bodies: Body of each point.
            points: (points, 3) in the body frames [m].
        """
        q = as_floats("coordinates", coordinates, (None, len(self.model.coordinates))).copy()
        index = np.array([self._body(name) for name in bodies], np.int64)
        local = np.ascontiguousarray(as_floats("points", points, (len(index), 3)))
        result = np.empty((len(q), len(index), 6, len(self.free)))
        point_jacobians(*self._shared[:2], q, index, local, result)
        return result

    def poses(self, coordinates: ArrayLike) -> tuple[Floats, Floats]:
        """Return origins (bodies, 3) [m] and rotations (bodies, 3, 3) of the bodies in one state (coordinates,)."""
        self.jacobians(np.asarray(coordinates, float)[None], (), np.zeros((0, 3)))
        return self._pose.position.copy(), self._pose.rotation.copy()

    def _body(self, name: str) -> int:
        if name not in self.body_index:
            raise ModelError(unknown_name("body", name, self.body_index))
        return self.body_index[name]


def _smallest_pivot(matrices: Floats) -> float:
    """Return the smallest pivot of the Cholesky factors of scaled mass matrices; 0 if there is none."""
    try:
        return float((np.einsum("sii->si", np.linalg.cholesky(matrices)) ** 2).min(initial=1.0))
    except np.linalg.LinAlgError:
        return 0.0


def _check_tree(model: Model) -> None:
    """Raise ModelError if coordinates do not determine the motion of all bodies."""
    loops = [joint.name for joint in model.joints if joint.closes_loop]
    if loops:
        raise ModelError(
            f"Model {model.name!r}: Joint {loops[0]!r} closes a loop, which generalized coordinates of a tree do not "
            "describe. Use `simulate`, or remove the joint."
        )
    jointed = {joint.child for joint in model.joints}
    for body in model.bodies:
        if body.kinematic and body.name in jointed:
            raise ModelError(f"Body {body.name!r} is kinematic: its motion is prescribed. Use `simulate`.")
        if not body.kinematic and body.name not in jointed and body.name != GROUND:
            raise ModelError(
                f"Body {body.name!r} has no joint, and so no coordinates. Connect it to the ground by a free joint."
            )

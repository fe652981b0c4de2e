"""Post-stabilization (Weinstein et al. 2008): the least change of velocities that satisfies joints and targets.

    M (v' - v) = J^T p        J v' = c

with c = 0 for the directions that joints constrain and the target velocity for controlled ones; other directions have
no row. It is a projection: a second one changes nothing, and without targets it only removes energy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError, SettingsError, unknown_name
from borelli.kernels.array_checks import as_floats
from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import ArrayOwner, SharedTuples, load_shared
from borelli.model.model import Model
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS
from borelli.physics.function_pointers import pointers
from borelli.physics.inputs import Drive
from borelli.physics.rigid_bodies import compute_rotations, load_bodies
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.run_soft_steps import FAILURES
from borelli.physics.soft_step import prepare_solve_by_pointer
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import IMPULSE, SOLUTION, Capacity
from borelli.physics.solver.gauss_seidel import make_joint_blocks, sweep_joints_by_pointer
from borelli.physics.solver.newton import NO_PIVOT, init_active_pieces
from borelli.physics.solver.redundant_rows import make_ridge, solve_redundant_by_pointer
from borelli.physics.state import State, make_inputs, make_state
from borelli.physics.work_arrays import make_work

Floats = NDArray[np.float64]
METHODS = ("global", "joints")

RIDGE = 1e-8
"""Slope added to rows while solving, relative to the response of the row's velocity to its impulse (1e-8 to 1e-6)."""
TARGET_RIDGE = 1e4
"""Ratio of the ridge of targets to that of joints: targets yield to joints."""
MAX_REFINEMENTS = 8
"""Maximum number of refinements of the global solve; two or three suffice."""
TOLERANCE = 1e-12
"""Velocity defect relative to the initial one, and relative change of impulses, at which refinement ends."""
MAX_SWEEPS = 200
"""Maximum number of Gauss-Seidel sweeps over joints."""
SWEEP_TOLERANCE = 1e-6
"""Velocity defect relative to the initial one at which sweeps end."""
CAPACITY_SHORT = -2
"""Result of a solve whose work arrays were too small."""

Target = float | Sequence[float]


class PostStabilization(NamedTuple):
    """Result of a post-stabilization."""

    twist: Floats
    """(n, 6) velocity of the center of mass [m/s] and angular velocity [rad/s], world."""
    impulse: Floats
    """(rows,) impulses on the child [N s or N m s], in the order of `PostStabilizer.row_names`."""
    defect: Floats
    """(rows,) required minus resulting velocity of each row [m/s or rad/s]."""
    iterations: int
    """Number of refinements, or of sweeps."""
    sweep_defects: Floats
    """(sweeps,) RMS velocity defect of rows just before they were solved; empty for the global solve."""


class PostStabilizer(ArrayOwner):
    """Post-stabilization of one model; the elimination order is computed once for all solves."""

    def __init__(
        self,
        model: Model,
        *,
        controlled: Collection[str] = (),
        method: str = "global",
        weights: Sequence[float] | None = None,
        ridge: float = RIDGE,
        sweeps: int = MAX_SWEEPS,
        tolerance: float | None = None,
    ) -> None:
        """Prepare the rows of a model.

        Args:
            model: Bodies and joints; contacts and joint limits are ignored.
            controlled: Names of coordinates or ball joints that get targets.
            method: "global" solves all rows at once; "joints" solves one joint after the other, for nets.
            weights: W of each row, see `redundant_rows`. Default: the response of the row's velocity to its impulse
                (so that the norm is an energy), and targets yield to joints.
            ridge: Slope added while solving, relative to that response; larger for strongly contradictory rows.
            sweeps: Maximum number of sweeps of method "joints".
            tolerance: Velocity defect of rows at the end, relative to that at the start.

        Raises:
            SettingsError: A setting is out of range or a name is unknown.
        """
        if method not in METHODS:
            raise SettingsError(unknown_name("method", str(method), METHODS))
        if not 0.0 < ridge <= 1e-2:
            raise SettingsError(f"ridge: {ridge}. It must be larger than 0 and at most 0.01; use 1e-8 to 1e-6.")
        if not 1 <= sweeps <= 1_000_000:
            raise SettingsError(f"sweeps: {sweeps}. Allowed: 1 to 1,000,000.")
        if tolerance is not None and not 0.0 <= tolerance < 1.0:
            raise SettingsError(f"tolerance: {tolerance}. It must be 0 or larger and below 1.")
        self.method, self.ridge, self.sweeps = method, ridge, sweeps
        self.tolerance = float(tolerance) if tolerance is not None else (TOLERANCE, SWEEP_TOLERANCE)[method == "joints"]
        self.controlled = tuple(controlled)
        drives = [Drive(name, stiffness=np.inf) for name in _coordinates(model, controlled)]
        self.compiled = compile_model(model, step=1.0, drives=drives)
        self.row_names = tuple(self.compiled.rows.names)
        self.weights = None if weights is None else as_floats("weights", weights, (len(self.row_names),))
        if self.weights is not None and not np.all(self.weights > 0.0):
            raise SettingsError("weights: A value is not larger than 0. Pass a positive value for each row.")
        self._inputs = make_inputs(self.compiled, drives=drives)
        self._capacity = Capacity.initial(len(model.bodies), len(self.row_names))
        self._work = make_work(self.compiled, 1, self._capacity)
        self._ridge = make_ridge(len(self._work.rows.pieces))
        self._blocks = make_joint_blocks(self._groups(), len(self._work.rows.body), sweeps)
        self._shared = SharedTuples()

    def solve(self, state: State, targets: Mapping[str, Target] | None = None) -> PostStabilization:
        """Compute velocities that satisfy joints and targets; the state is not changed.

        Args:
            state: Poses and velocities.
            targets: Velocity [rad/s or m/s] of controlled coordinates; angular velocity [rad/s] of a ball joint's child
                relative to its parent, world axes. Default: 0.

        Raises:
            SettingsError: A target is unknown or not finite, or the state is of another model.
            DivergedError: Rows of one joint are redundant, or the state is not finite.
        """
        own = make_state(self.compiled)
        for name in ("position", "quaternion", "twist", "coordinate"):
            array = getattr(own, name)
            array[:] = as_floats(f"state.{name}", getattr(state, name), array.shape, finite=False)
        if not all(np.all(np.isfinite(array)) for array in (own.position, own.quaternion, own.twist)):
            raise DivergedError("post-stabilization: Poses or velocities are not finite. Pass a finite state.")
        tables, shared = self.compiled.tables, self._shared
        while True:
            arguments = (
                pointers(), shared("tables", tables), shared("state", own), shared("inputs", self._inputs),
                shared("work", self._work),
            )
            _fill_rows(*arguments)
            self._set_velocities(targets or {})
            self._set_ridge(own)
            joints = self.method == "joints"
            iterations = _solve_rows(
                *arguments, shared("ridge", self._ridge), shared("blocks", self._blocks), joints,
                self.sweeps if joints else MAX_REFINEMENTS, self.tolerance,
            )
            if iterations != CAPACITY_SHORT:
                break
            self._capacity = self._capacity.doubled()
            self._work = make_work(self.compiled, 1, self._capacity)
        if iterations < 0:
            raise DivergedError(f"post-stabilization: The solve failed because {FAILURES[NO_PIVOT]}.")
        return self._result(own, iterations)

    def _groups(self) -> list[list[int]]:
        """Return the rows of each joint, with the drive rows of its coordinates, and of each coupling."""
        joints = self.compiled.tables.joints
        groups = []
        for j in range(len(joints.kind)):
            drives = joints.drive_row[joints.coordinate_first[j] : joints.coordinate_first[j + 1]]
            groups.append([*range(joints.row_first[j], joints.row_first[j + 1]), *(int(k) for k in drives if k >= 0)])
        return [group for group in groups if group] + [[int(k)] for k in joints.coupling_row]

    def _set_velocities(self, targets: Mapping[str, Target]) -> None:
        """Write the required velocity of each row."""
        joints, rows = self.compiled.tables.joints, self._work.rows
        rows.pieces[joints.row_ranges[LIMIT_ROWS] : joints.row_ranges[DRIVE_ROWS]] = 0
        rows.c[:, 0] = 0.0
        for name in targets:
            if name not in self.controlled:
                raise SettingsError(f"target: {unknown_name('controlled coordinate or joint', name, self.controlled)}")
        speed = np.zeros(len(joints.joint))
        for name, i in self.compiled.coordinate_index.items():
            if name in targets:
                speed[i] = _numbers(name, targets[name], 1)[0]
        free = (joints.drive_row >= 0) & ~joints.locked & ~joints.rotation_driven[joints.joint]
        rows.c[joints.drive_row[free], 0] = speed[free]
        for j in np.flatnonzero(joints.rotation_driven):
            name = self.compiled.model.joints[j].name
            own = slice(int(joints.coordinate_first[j]), int(joints.coordinate_first[j + 1]))
            angular_velocity = np.linalg.lstsq(joints.direction[own, 3:], speed[own], rcond=None)[0].astype(float)
            if name in targets:
                angular_velocity = _numbers(name, targets[name], 3)
            slot, sign = (joints.child_slot[j], 1.0) if joints.child_slot[j] >= 0 else (joints.parent_slot[j], -1.0)
            for k in joints.drive_row[own]:
                rows.c[k, 0] = sign * rows.jacobian[rows.first[k] + slot, 3:] @ angular_velocity

    def _set_ridge(self, state: State) -> None:
        """Write the ridge: weights in the unit of slopes."""
        joints, count = self.compiled.tables.joints, len(self.row_names)
        response = self._responses(state)
        if self.weights is None:
            driven = joints.drive_row[(joints.drive_row >= 0) & ~joints.locked]
            self._ridge.slope[:count] = self.ridge * response
            if len(driven):  # equal weights: contradictory targets result in their mean
                self._ridge.slope[driven] = self.ridge * TARGET_RIDGE * response[driven].min()
            self._ridge.yields[driven] = 1
        else:
            self._ridge.slope[:count] = self.ridge * self.weights * (response.sum() / self.weights.sum())

    def _responses(self, state: State) -> Floats:
        """Return the response of each row's velocity to its impulse: the diagonal of J M^-1 J^T."""
        rows, bodies = self._work.rows, self.compiled.tables.bodies
        rotation = rotation_matrix(state.quaternion)
        inverse = np.zeros((len(bodies.mass), 6, 6))
        inverse[:, :3, :3] = np.eye(3) / bodies.mass[:, None, None]
        inverse[:, 3:, 3:] = rotation @ np.linalg.inv(bodies.inertia) @ rotation.transpose(0, 2, 1)
        inverse[bodies.kinematic > 0] = 0.0
        each = np.einsum("ei,eij,ej->e", rows.jacobian, inverse[rows.body], rows.jacobian) * (rows.body >= 0)
        return self._by_row(each)

    def _by_row(self, of_entry: Floats) -> Floats:
        """Return the sum over the entries of each row."""
        rows = self._work.rows
        owner = np.repeat(np.arange(len(rows.pieces)), np.diff(rows.first))
        return np.bincount(owner, of_entry, len(rows.pieces))[: len(self.row_names)].astype(float)

    def _result(self, state: State, iterations: int) -> PostStabilization:
        work, count = self._work, len(self.row_names)
        bodies = work.graph.node[: work.graph.count[0], BODY]
        twist = state.twist.copy()
        twist[bodies] = work.factor.block[: len(bodies), SOLUTION : SOLUTION + 6]
        rows = work.rows
        speed = self._by_row(np.einsum("ei,ei->e", rows.jacobian, twist[rows.body]) * (rows.body >= 0))
        defect = rows.c[:count, 0] - rows.offset[:count] - speed
        present = rows.pieces[:count] > 0
        return PostStabilization(
            twist=twist,
            impulse=np.where(present, work.factor.value[:count, IMPULSE], 0.0),
            defect=np.where(present, defect, 0.0),
            iterations=iterations,
            sweep_defects=self._blocks.defect[: iterations if self.method == "joints" else 0].copy(),
        )


def post_stabilize(
    compiled: CompiledModel,
    state: State,
    *,
    targets: Mapping[str, Target] | None = None,
    weights: Sequence[float] | None = None,
    method: str = "global",
) -> PostStabilization:
    """Return the post-stabilization of one state; for several use a `PostStabilizer`, which is faster."""
    stabilizer = PostStabilizer(compiled.model, controlled=tuple(targets or ()), weights=weights, method=method)
    return stabilizer.solve(state, targets)


def _coordinates(model: Model, controlled: Collection[str]) -> list[str]:
    """Return the coordinates that get a row: those named and those of the ball joints named."""
    balls = {joint.name: [c.name for c in joint.coordinates] for joint in model.joints if joint.kind == "ball"}
    known = {coordinate.name for coordinate in model.coordinates}
    allowed = sorted(known | set(balls))
    names: list[str] = []
    for name in controlled:
        if name not in allowed:
            raise SettingsError(f"controlled: {unknown_name('coordinate or ball joint', name, allowed)}")
        names += [name] if name in known else balls[name]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SettingsError(f"controlled: {', '.join(twice)} appear twice. Name a ball joint or its coordinates, once.")
    return names


def _numbers(name: str, target: Target, count: int) -> Floats:
    return as_floats(f"target of {name!r}", np.atleast_1d(target), (count,))


@kernel
def _fill_rows(pointers, tables, state_at, inputs, work):
    """Write the Jacobian of all rows at the poses of the state."""
    state, scratch = load_shared(state_at, work.scratch)
    compute_rotations(state.quaternion, scratch.rotation)
    fill_persistent_rows_by_pointer(pointers, tables, state_at, inputs, work.rows, work.scratch, 0, False)


@kernel
def _solve_rows(pointers, tables, state_at, inputs, work, ridge, blocks, by_joint, max_iterations, tolerance):
    """Solve and return the number of refinements or sweeps; -1 without a pivot, or CAPACITY_SHORT."""
    first = tables.contacts.first_row[0]
    work.rows.used[0] = first
    if not prepare_solve_by_pointer(pointers, tables.bodies, work, first, 0):
        return CAPACITY_SHORT
    load_bodies(tables.bodies, tables.gravity, state_at, work.scratch, work.graph, work.factor.block, 0.0, False)
    init_active_pieces(work.rows, work.factor)
    if by_joint:
        return sweep_joints_by_pointer(pointers, work, blocks, max_iterations, tolerance)
    return solve_redundant_by_pointer(pointers, work, ridge, max_iterations, tolerance)

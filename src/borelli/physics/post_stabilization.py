"""Post-stabilisation (seed 000): the least change of velocities after which joints keep and targets are met.

    M (v' - v) = J^T p        J v' = c

with c = 0 for what joints forbid and the wanted speed for what is controlled; directions that are neither have no row.
It is a projection: a second time it changes nothing, and without targets it only takes energy out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import DivergedError, SettingsError, unknown_name
from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import SharedTuples, load_shared
from borelli.model.model import Model
from borelli.physics.arrays.compile_model import Compiled, compile_model
from borelli.physics.diagnostics import rotations_of
from borelli.physics.function_pointers import pointers
from borelli.physics.inputs import Drive
from borelli.physics.rigid_bodies import load_bodies, turn_bodies
from borelli.physics.run_soft_steps import FAILURES
from borelli.physics.soft_step import fill_standing_rows_by_pointer, prepare_solve_by_pointer
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import IMPULSE, SOLUTION
from borelli.physics.solver.joint_gauss_seidel import make_joint_blocks, sweep_joints_by_pointer
from borelli.physics.solver.newton import NO_PIVOT, init_active_pieces
from borelli.physics.solver.redundant_rows import make_ridge, solve_redundant_by_pointer
from borelli.physics.solver.workspace import initial_capacity
from borelli.physics.state import State, make_inputs
from borelli.physics.work_arrays import make_work

Floats = NDArray[np.float64]
METHODS = ("global", "joints")

RIDGE = 1e-8
"""Slope added to rows while solving, of what a row's velocity answers to its impulse (spec 3.2: 1e-8 to 1e-6)."""
YIELDING = 1e4
"""How much larger it is for targets: they give way to joints."""
MOST_ROUNDS = 8
"""Refinements of the global solve; two or three do."""
TOLERANCE = 1e-12
"""Velocity lacking, of that before, and change of the impulses, of their size, at which refinement ends."""
SWEEPS = 200
"""Joint by joint: the most sweeps."""
SWEEP_TOLERANCE = 1e-6
"""Joint by joint: what joints may still lack, of what they did at first."""
NO_ROOM = -2
"""Work arrays were too small."""

Target = float | Sequence[float]


class Stabilised(NamedTuple):
    """Velocities after a post-stabilisation, and how it went."""

    twist: Floats
    """(n, 6) velocity of the centre of mass [m/s] and spin [rad/s], world."""
    impulse: Floats
    """(rows,) [N s or N m s], in the order of `Stabiliser.row_names`; on the child."""
    lacking: Floats
    """(rows,) what is left of the velocity each row asked for [m/s or rad/s]."""
    turns: int
    """Rounds of refinement, or sweeps."""
    progress: Floats
    """(sweeps,) what rows lacked when their turn came, root mean square; empty for the global solve."""


class Stabiliser:
    """Post-stabilisation of one model, ready to be repeated: the order of elimination is found once."""

    def __init__(
        self,
        model: Model,
        *,
        controlled: Collection[str] = (),
        method: str = "global",
        weights: Sequence[float] | None = None,
        ridge: float = RIDGE,
        sweeps: int = SWEEPS,
        tolerance: float | None = None,
    ) -> None:
        """Prepare for a model.

        Args:
            model: bodies and joints; contacts and stops take no part.
            controlled: coordinates, or ball joints by name, that will be given targets.
            method: "global" solves all rows at once; "joints" goes from joint to joint, for nets.
            weights: W of each row, see `redundancy`; without, a row's W is what its velocity answers to its impulse
                (so that the norm is an energy), and targets give way to joints.
            ridge: slope added while solving, of that answer; larger where rows contradict each other strongly.
            sweeps: the most sweeps of "joints".
            tolerance: what rows may lack at the end, of what they did at the start.
        """
        if method not in METHODS:
            raise SettingsError(f"method is {method!r}; allowed: {', '.join(map(repr, METHODS))}")
        if not 0.0 < ridge <= 1e-2:
            raise SettingsError(f"ridge is {ridge}; it must be larger than 0 and at most 0.01 (1e-8 to 1e-6 do well)")
        if not 1 <= sweeps <= 1_000_000:
            raise SettingsError(f"sweeps is {sweeps}; allowed: 1 to 1,000,000")
        if tolerance is not None and not 0.0 <= tolerance < 1.0:
            raise SettingsError(f"tolerance is {tolerance}; it must be 0 or larger and below 1")
        self.method, self.ridge, self.sweeps = method, ridge, sweeps
        self.tolerance = float(tolerance) if tolerance is not None else (TOLERANCE, SWEEP_TOLERANCE)[method == "joints"]
        self.controlled = tuple(controlled)
        drives = [Drive(name, stiffness=np.inf) for name in _coordinates(model, controlled)]
        self.compiled = compile_model(model, step=1.0, drives=drives)
        self.row_names = tuple(self.compiled.rows.names)
        if weights is not None and (len(weights) != len(self.row_names) or not np.all(np.asarray(weights) > 0.0)):
            raise SettingsError(
                f"weights: {len(weights)} given; each of the {len(self.row_names)} rows (`row_names`) takes one larger "
                "than 0"
            )
        self.weights = None if weights is None else np.asarray(weights, float)
        self._inputs = make_inputs(self.compiled, drives=drives)
        self._capacity = initial_capacity(len(model.bodies), len(self.row_names))
        self._work = make_work(self.compiled, 1, self._capacity)
        self._ridge = make_ridge(len(self._work.rows.pieces))
        self._blocks = make_joint_blocks(self._groups(), len(self._work.rows.body), sweeps)
        self._share = SharedTuples()

    def solve(self, state: State, targets: Mapping[str, Target] | None = None) -> Stabilised:
        """Velocities that keep the joints and have the wanted speeds; the state is left as it is.

        Args:
            state: poses and velocities.
            targets: speed [rad/s or m/s] of controlled coordinates; spin [rad/s] of a ball joint's child in its parent,
                world axes. Controlled ones without a target stand still.

        Raises:
            DivergedError: rows of one joint repeat each other.
        """
        bodies = len(self.compiled.model.bodies)
        if len(state.position) != bodies:
            raise SettingsError(f"the state has {len(state.position)} bodies, the model {bodies}")
        if not all(np.all(np.isfinite(array)) for array in (state.position, state.quaternion, state.twist)):
            raise DivergedError("post-stabilisation: poses and velocities must be finite numbers")
        own = state.copy()
        tables, share = self.compiled.tables, self._share
        while True:
            arguments = (
                pointers(), share("tables", tables), share("state", own), share("inputs", self._inputs),
                share("work", self._work),
            )  # fmt: skip
            _fill_rows(*arguments)
            self._aim(targets or {})
            self._weigh(own)
            joints = self.method == "joints"
            turns = _solve_rows(
                *arguments, share("ridge", self._ridge), share("blocks", self._blocks), joints,
                self.sweeps if joints else MOST_ROUNDS, self.tolerance,
            )  # fmt: skip
            if turns != NO_ROOM:
                break
            self._capacity = self._capacity.doubled()
            self._work = make_work(self.compiled, 1, self._capacity)
        if turns < 0:
            raise DivergedError(f"post-stabilisation failed: {FAILURES[NO_PIVOT]}")
        return self._read(own, turns)

    def _groups(self) -> list[list[int]]:
        """Rows that are solved at once when going from joint to joint."""
        joints = self.compiled.tables.joints
        groups = []
        for j in range(len(joints.kind)):
            drives = joints.drive_row[joints.coordinate_first[j] : joints.coordinate_first[j + 1]]
            groups.append([*range(joints.row_first[j], joints.row_first[j + 1]), *(int(k) for k in drives if k >= 0)])
        return [group for group in groups if group] + [[int(k)] for k in joints.coupling_row]

    def _aim(self, targets: Mapping[str, Target]) -> None:
        """Write what each row asks for."""
        joints, rows = self.compiled.tables.joints, self._work.rows
        rows.pieces[joints.row_ranges[2] : joints.row_ranges[3]] = 0  # stops
        rows.c[:, 0] = 0.0
        for name in targets:
            if name not in self.controlled:
                raise SettingsError(f"target: {unknown_name('controlled coordinate or joint', name, self.controlled)}")
        speed = np.zeros(len(joints.joint))
        for name, i in self.compiled.coordinate_index.items():
            if name in targets:
                speed[i] = _numbers(name, targets[name], 1)[0]
        free = (joints.drive_row >= 0) & ~joints.locked & ~joints.spin_driven[joints.joint]
        rows.c[joints.drive_row[free], 0] = speed[free]
        for j in np.flatnonzero(joints.spin_driven):
            name = self.compiled.model.joints[j].name
            own = slice(int(joints.coordinate_first[j]), int(joints.coordinate_first[j + 1]))
            spin = _spin(joints.direction[own], speed[own])
            if name in targets:
                spin = _numbers(name, targets[name], 3)
            slot, sign = (joints.child_slot[j], 1.0) if joints.child_slot[j] >= 0 else (joints.parent_slot[j], -1.0)
            for k in joints.drive_row[own]:
                rows.c[k, 0] = sign * rows.jacobian[rows.first[k] + slot, 3:] @ spin

    def _weigh(self, state: State) -> None:
        """The ridge: weights in the unit of slopes."""
        joints, count = self.compiled.tables.joints, len(self.row_names)
        answer = self._answers(state)
        if self.weights is None:
            driven = joints.drive_row[(joints.drive_row >= 0) & ~joints.locked]
            self._ridge.slope[:count] = self.ridge * answer
            if len(driven):  # all alike: where targets contradict each other, the plain mean
                self._ridge.slope[driven] = self.ridge * YIELDING * answer[driven].min()
            self._ridge.yields[driven] = 1
        else:
            self._ridge.slope[:count] = self.ridge * self.weights * (answer.sum() / self.weights.sum())

    def _answers(self, state: State) -> Floats:
        """What each row's velocity answers to its impulse: the diagonal of J M^-1 J^T."""
        rows, bodies = self._work.rows, self.compiled.tables.bodies
        turn = rotations_of(state.quaternion)
        inverse = np.zeros((len(bodies.mass), 6, 6))
        inverse[:, :3, :3] = np.eye(3) / bodies.mass[:, None, None]
        inverse[:, 3:, 3:] = turn @ np.linalg.inv(bodies.inertia) @ turn.transpose(0, 2, 1)
        inverse[bodies.kinematic > 0] = 0.0
        each = np.einsum("ei,eij,ej->e", rows.jacobian, inverse[rows.body], rows.jacobian) * (rows.body >= 0)
        return self._by_row(each)

    def _by_row(self, of_entry: Floats) -> Floats:
        """Sums over the entries of each row."""
        rows = self._work.rows
        owner = np.repeat(np.arange(len(rows.pieces)), np.diff(rows.first))
        return np.bincount(owner, of_entry, len(rows.pieces))[: len(self.row_names)].astype(float)

    def _read(self, state: State, turns: int) -> Stabilised:
        work, count = self._work, len(self.row_names)
        bodies = work.graph.node[: work.graph.count[0], BODY]
        twist = state.twist.copy()
        twist[bodies] = work.factor.block[: len(bodies), SOLUTION : SOLUTION + 6]
        rows = work.rows
        speed = self._by_row(np.einsum("ei,ei->e", rows.jacobian, twist[rows.body]) * (rows.body >= 0))
        lacking = rows.c[:count, 0] - rows.offset[:count] - speed
        present = rows.pieces[:count] > 0
        return Stabilised(
            twist=twist,
            impulse=np.where(present, work.factor.value[:count, IMPULSE], 0.0),
            lacking=np.where(present, lacking, 0.0),
            turns=turns,
            progress=self._blocks.defect[: turns if self.method == "joints" else 0].copy(),
        )


def post_stabilise(
    compiled: Compiled,
    state: State,
    *,
    targets: Mapping[str, Target] | None = None,
    weights: Sequence[float] | None = None,
    method: str = "global",
) -> Stabilised:
    """One post-stabilisation of a state: see `Stabiliser`, which is quicker where there are several."""
    stabiliser = Stabiliser(compiled.model, controlled=tuple(targets or ()), weights=weights, method=method)
    return stabiliser.solve(state, targets)


def _coordinates(model: Model, controlled: Collection[str]) -> list[str]:
    """Coordinates that get a row, of those named and of the ball joints named."""
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
        raise SettingsError(f"controlled twice: {', '.join(twice)}; name a ball joint or its coordinates, once")
    return names


def _numbers(name: str, target: Target, count: int) -> Floats:
    numbers = np.atleast_1d(np.asarray(target, float))
    if numbers.shape != (count,) or not np.all(np.isfinite(numbers)):
        raise SettingsError(f"target of {name!r} is {target}; it takes {count} finite number{'s' * (count > 1)}")
    return numbers


def _spin(direction: Floats, speed: Floats) -> Floats:
    """The spin whose coordinates' speeds are those given."""
    return np.linalg.lstsq(direction[:, 3:], speed, rcond=None)[0].astype(float)


@kernel
def _fill_rows(pointers, tables, state_at, inputs, work):
    """Directions of all rows at the poses of the state."""
    state, scratch = load_shared(state_at, work.scratch)
    turn_bodies(state.quaternion, scratch.rotation)
    fill_standing_rows_by_pointer(
        pointers, tables.joints, tables.anchors, tables.residuals, tables.numbers, state_at, inputs, work.rows,
        work.scratch, 0, False,
    )  # fmt: skip


@kernel
def _solve_rows(pointers, tables, state_at, inputs, work_at, ridge, blocks, by_joint, most, tolerance):
    """Rounds or sweeps made; -1 without a pivot, NO_ROOM."""
    bodies, state, rows, scratch = load_shared(tables.bodies, state_at, work_at.rows, work_at.scratch)
    graph, factor = load_shared(work_at.graph, work_at.factor)
    first = tables.contacts.first_row[0]
    rows.used[0] = first
    if not prepare_solve_by_pointer(pointers, tables.bodies, work_at, first, 0):
        return NO_ROOM
    load_bodies(bodies, tables.gravity, state, scratch, graph, factor.block, 0.0, False)
    init_active_pieces(rows, factor)
    if by_joint:
        return sweep_joints_by_pointer(pointers, work_at.rows, work_at.graph, work_at.factor, blocks, most, tolerance)
    return solve_redundant_by_pointer(
        pointers, work_at.rows, work_at.graph, work_at.factor, work_at.fill, ridge, most, tolerance
    )  # fmt: skip

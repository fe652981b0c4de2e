"""Posing by dragging a point of a body: post-stabilization computes the pose (Weinstein, Guendelman and Fedkiw 2008).

Post-stabilization gives the velocity change with the least kinetic energy that satisfies its rows: with M the masses, J
the rows, l their impulses and u the required velocities of the rows,

    dv = M^-1 J^T l,     l = (J M^-1 J^T)^-1 (u - J v).

A pose at rest whose dragged point is to move a little, joints closed, changes by dq = M^-1 J^T l: heavy bodies stay
where light ones can move instead. The soft step solves exactly these rows (joint limits are one-sided ones among them),
so a drag is a sequence of its steps without gravity, each from rest and one second long, so that velocities are
displacements. A distant goal is approached in short steps: the result depends on the path, not on its subdivision.

Goals out of range have no such l. The point's row is therefore damped by b, (J M^-1 J^T + b) l = u: as little as
rounding allows while steps succeed, and more (Levenberg 1944, Marquardt 1963) when a step would increase the distance,
change a coordinate too much, or exceed a joint limit. It then ends at the nearest point: no small motion within the
limits leads nearer. (Exactly straight limbs are bent a little first, since along them nothing moves at first order.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats
from borelli.model.kinematics import coupled_coordinates
from borelli.model.model import Joint, Marker, Model, Softness, Vector
from borelli.numerics.quaternions import rotate
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities, joint_gap
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

Array = NDArray[np.float64]

HARD = Softness(erp=1.0)
"""Softness of a hard row whose error is gone after one step."""
POINT_STEP = 0.005
"""Largest displacement of the point in one step [m]."""
MAX_DISTANCE = 100.0
"""Largest distance of a goal [m]: about a minute of steps."""
GOAL_TOLERANCE = 1e-6
"""Distance from the goal [m] within which the point has reached it."""
ROUNDING_DISTANCE = 1e-11
"""Distance [m] that is zero but for rounding."""
MAX_COORDINATE_CHANGE = 0.09
"""Largest change of a coordinate in one step [rad or m]: rows of joint limits exist from 0.1 rad on."""
LIMIT_TOLERANCE = 1e-5
"""Excess over a joint limit by the curvature of one step [rad or m]; the coordinate is then set to the limit."""
MIN_DAMPING, MAX_DAMPING = 1e-7, 1e9
"""Damping b of the dragged point's row, times the model's mass [s]; at the maximum nothing moves."""
FIXED_DAMPING = 1e-10
"""The same of fixed bodies, which are attached at three points each."""
GRIP_POINTS: tuple[Vector, ...] = ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3))
"""Attachment points of a fixed body, in its frame [m]."""
BEND_ANGLE = 0.01
"""Rotation of joints [rad] when nothing moves."""
MAX_SOLVES = 2000
"""Solves at the goal itself: towards a nearest point the distance shrinks by a constant factor each time."""


@dataclass(frozen=True)
class DragResult:
    """Pose at the end of a drag."""

    coordinates: Mapping[str, float]
    """Values of all coordinates [rad or m]."""
    point: Vector
    """Position of the dragged point [m], world."""
    distance: float
    """Distance of the point from its goal [m]."""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [("point", f"{self.point} m"), ("distance from the goal", f"{self.distance:.3g} m")]
        return Summary("DragResult", [*rows, ("coordinates", len(self.coordinates))])

    @property
    def reached(self) -> bool:
        """True if the point is at its goal; otherwise it is as near as possible."""
        return self.distance <= GOAL_TOLERANCE


def drag_point(
    model: Model,
    coordinates: Mapping[str, float],
    body: str,
    point: Vector,
    goal: Vector,
    *,
    fixed: Sequence[str] = (),
) -> DragResult:
    """Drag a point of a body along a straight line and return the pose that needs the least motion.

    Joints stay closed and within their limits; ground contact and collisions are ignored.

    Args:
        model: The model.
        coordinates: Initial pose [rad or m]. Default of each coordinate: the model's.
        body: Body that is dragged.
        point: Dragged point, in the body's frame [m].
        goal: Goal of the point [m], world.
        fixed: Bodies that keep their poses and coordinates that keep their values.

    Returns:
        The pose, the point and its distance from the goal.

    Raises:
        SettingsError: A name is unknown, a point is not finite, or the body cannot move.
    """
    _check(model, body, point, goal, fixed)
    return _Drag(model, coordinates, body, point, fixed).drag_to(np.array(goal, float))


class _Drag:
    """A model attached at a point."""

    def __init__(
        self, model: Model, coordinates: Mapping[str, float], body: str, point: Vector, fixed: Sequence[str]
    ) -> None:
        bodies = [name for name in fixed if name in _bodies(model)]
        markers = [Marker("dragged", body, point)]
        markers += [Marker(f"{name} {i}", name, at) for name in bodies for i, at in enumerate(GRIP_POINTS)]
        self.compiled = compile_model(_unloaded(model, fixed, markers), step=1.0, marker_springs=HARD)
        self.state = initial_state(self.compiled, coordinates=coordinates)
        self.goals = self.points()
        inputs = make_inputs(self.compiled, marker=np.stack([self.goals, self.goals]))
        self.simulation = Simulation(self.compiled, self.state, inputs)
        self.record = make_record(self.compiled, 1)
        # coordinates of joints that close loops follow from the rest
        self.compiled.tables.joints.default[:] = self.state.coordinate
        self.state.coordinate[:] = self.read()
        self.unit = 1.0 / model.mass
        self.damping = MIN_DAMPING

    def drag_to(self, goal: Array) -> DragResult:
        """Move the point along a straight line, then until nothing brings it nearer."""
        begin = self.goals[0].copy()
        distance = float(np.linalg.norm(goal - begin))
        if not distance <= MAX_DISTANCE:
            raise SettingsError(
                f"drag_point: The goal is {distance:.3g} m from the point. Pass a goal within {MAX_DISTANCE:g} m."
            )
        steps = int(np.ceil(distance / POINT_STEP))
        tried = False
        for k in range(1, steps + 1):
            last = self.points()[0]
            self.move_to(begin + k / steps * (goal - begin), 4 if k < steps else MAX_SOLVES)
            stuck = float(np.linalg.norm(self.points()[0] - last)) < 0.1 * POINT_STEP
            # once while nothing moves, and at the end
            if (stuck and not tried) or (k == steps and self.error() > GOAL_TOLERANCE):
                tried = not self.bend_joints()
        x, y, z = self.points()[0].tolist()
        names = [c.name for c in self.compiled.model.coordinates]
        values = dict(zip(names, self.state.coordinate.tolist(), strict=True))
        return DragResult(values, (x, y, z), float(np.linalg.norm(np.array([x, y, z]) - goal)))

    def move_to(self, goal: Array, solves: int) -> None:
        """Move the point to a near goal in at most that many solves."""
        self.goals[0] = goal
        self.simulation.inputs.marker[:] = self.goals
        error = self.error()
        for _ in range(solves):
            if error <= ROUNDING_DISTANCE:
                return
            before = self.state.copy()
            valid = self.solve()
            now = self.error()
            if valid and now < error:
                self.damping = max(MIN_DAMPING, 0.1 * self.damping)
                if error - now < ROUNDING_DISTANCE:
                    return
                error = now
                continue
            self.state.restore(before)
            self.damping *= 10.0
            if self.damping > MAX_DAMPING:
                self.damping = MIN_DAMPING
                return

    def bend_joints(self) -> bool:
        """Bend joints a little and move again; undo it unless it leads nearer. Return True if it did.

        Straight limbs are singular: a point dragged along them cannot begin to move, although it could if they were
        bent. Joints at a limit, such as straight knees, are bent away from it; if there are none, all are.
        """
        before, error = self.state.copy(), self.error()
        joints, value = self.compiled.tables.joints, self.state.coordinate
        bent = np.clip(value + BEND_ANGLE, joints.lower, joints.upper)
        bent = np.where(bent < value + BEND_ANGLE, value - BEND_ANGLE, bent)
        rotational = joints.rotational.astype(bool) & ~joints.locked.astype(bool)
        near_limit = (value <= joints.lower + LIMIT_TOLERANCE) | (value >= joints.upper - LIMIT_TOLERANCE)
        at_limit = rotational & near_limit
        self.set_pose(np.where(at_limit if at_limit.any() else rotational, bent, value))
        self.move_to(self.goals[0].copy(), 50)
        if self.error() < error - GOAL_TOLERANCE:
            return True
        self.state.restore(before)
        return False

    def set_pose(self, coordinates: Array) -> None:
        """Set the poses of all bodies from coordinates, couplings applied."""
        state, still = self.state, np.zeros(len(coordinates))
        state.coordinate[:] = coupled_coordinates(self.compiled.model, coordinates)
        joints = self.compiled.tables.joints
        poses_from_coordinates(joints, state.coordinate, still, state.position, state.quaternion, state.twist)

    def solve(self) -> bool:
        """Run one post-stabilization from rest; return True if changes are small and joint limits respected."""
        state, tables = self.state, self.compiled.tables
        tables.marker_springs.beta[0] = self.damping * self.unit
        tables.marker_springs.beta[1:] = FIXED_DAMPING * self.unit
        state.twist[:] = 0.0
        last = tables.joints.default[:] = state.coordinate.copy()  # locked coordinates keep these
        lower, upper = tables.joints.lower, tables.joints.upper
        self.simulation.index = 0
        self.simulation.advance(1, self.record)
        values = self.read()
        # a coordinate beyond its limit before need not return at once
        beyond = np.abs(last - np.clip(last, lower, upper)).max()
        inside = np.clip(values, lower, upper)
        excess, change = np.abs(values - inside).max(), np.abs(values - last).max()
        # joints closed, limits respected, locked coordinates fixed and couplings satisfied to the last digit
        self.set_pose(np.where(tables.joints.locked, last, inside))
        return bool(excess <= LIMIT_TOLERANCE + beyond and change <= MAX_COORDINATE_CHANGE)

    def read(self) -> Array:
        """Return the coordinates of the present body poses, angles continued from the tables' defaults."""
        pose = np.hstack([self.state.position, self.state.quaternion])
        return coordinates_and_velocities(self.compiled, pose[None], self.state.twist[None])[0][0]

    def points(self) -> Array:
        """Return the dragged point, then the attachment points of fixed bodies (points, 3) [m]."""
        anchors = self.compiled.tables.marker_springs
        return np.asarray(
            self.state.position[anchors.body] + rotate(self.state.quaternion[anchors.body], anchors.offset)
        )

    def error(self) -> float:
        """Return the sum of all points' distances from their goals and the largest gap of loops [m]."""
        error = float(np.linalg.norm(self.points() - self.goals, axis=1).sum())
        if any(joint.closes_loop for joint in self.compiled.model.joints):
            error += float(joint_gap(self.compiled, np.hstack([self.state.position, self.state.quaternion])[None])[0])
        return error


def _bodies(model: Model) -> list[str]:
    return [body.name for body in model.bodies]


def _unloaded(model: Model, fixed: Sequence[str], markers: Sequence[Marker]) -> Model:
    """Return the model with hard joints and these markers, without gravity and contact, `fixed` coordinates locked."""

    def joint(old: Joint) -> Joint:
        coordinates = tuple(replace(c, locked=c.locked or c.name in fixed) for c in old.coordinates)
        return replace(old, softness=HARD, coordinates=coordinates)

    return replace(
        model,
        joints=tuple(map(joint, model.joints)),
        couplings=tuple(replace(coupling, softness=HARD) for coupling in model.couplings),
        markers=tuple(markers),
        muscles=(),
        ground=(),
        self_collision=False,
        gravity=(0.0, 0.0, 0.0),
    )


def _check(model: Model, body: str, point: Vector, goal: Vector, fixed: Sequence[str]) -> None:
    bodies, coordinates = _bodies(model), [c.name for c in model.coordinates]
    if body not in bodies:
        raise SettingsError(f"drag_point: {unknown_name('body', body, bodies)}")
    for name in fixed:
        if name not in (*bodies, *coordinates):
            known = unknown_name("body or coordinate", name, (*bodies, *coordinates))
            raise SettingsError(f"drag_point: fixed: {known}")
    for argument, vector in (("point", point), ("goal", goal)):
        as_floats(f"drag_point: {argument}", vector, (3,))
    if body in fixed or model.body(body).kinematic:
        raise SettingsError(f"drag_point: Body {body!r} is fixed and cannot be dragged. Remove it from `fixed`.")
    if all(joint.child != body for joint in model.joints):
        raise SettingsError(
            f"drag_point: Body {body!r} is the child of no joint, so no coordinate moves it. Drag another body."
        )

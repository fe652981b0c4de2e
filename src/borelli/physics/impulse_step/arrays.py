"""What the impulse step reads and writes besides the tables, state and work of the soft step.

Joints, couplings, stops and contacts are hard here, whatever softness the model gives them: the impulse step corrects
positions by Newton's method and needs no springs for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import GROUND, Joint, Model, Shape, Softness
from borelli.model.validate import validate
from borelli.physics.arrays.compile_model import FLOOR, NET_LOOPS, CompiledModel, Tables, compile_model
from borelli.physics.inputs import Drive, SolverSettings, check_step
from borelli.physics.rows.joint_rows import init_joint_rows
from borelli.physics.rows.rows import Rows, make_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.uint8]

CONTACT_SHARE = 0.2
"""Of an overlap that is taken back in a step: all of it at once would throw bodies apart."""
SHARED = 1e-6
"""Slope of controls of one loop, relative to the inverse of the least inertia: a hundred times that of its joints, so
that contradictory targets meet in the middle (least squares) and the joints hold (spec impulse-pd, 3.2)."""


class Controls(NamedTuple):
    """What is controlled and how, constant while stepping. Entries by coordinate of the model unless said otherwise."""

    coordinate: Integers
    """(c,) coordinates that are controlled one by one."""
    ball: Integers
    """(balls,) joints that are turned about all three axes at once."""
    side: Floats
    """(balls,) 1 where the joint's parent is the base that its error is carried by, -1 where the child is."""
    a: Floats
    b: Floats
    """The response a step later is a E + b E' [b in s] plus what the course adds."""
    solver_stats: Flags
    """1 where the response is not a and b but is told before each step, in `StageArrays.after`."""
    slope: Floats
    """Of the control's row; 0 where its impulse is unlimited."""
    shares: Flags
    """(coordinates,) 1 for one of several controls in a loop: they may contradict each other, and none is held."""
    unlimited: Flags
    """1 where nothing limits the control."""
    outside: Flags
    """(standing rows,) 1 for a row that the controller does not know of: it touches a body outside its world."""
    reach: Floats
    """(bodies,) of a body's shapes from its centre of mass [m]."""
    netted: Flags
    """(1,) 1 if there is a net among the bodies: more loops than `NET_LOOPS`."""


class TargetTrajectory(NamedTuple):
    """Where the targets are: row i + 1 at the start of step i, so that row 0 is a step before the first."""

    value: Floats
    """(steps + 2, coordinates) [rad or m]"""
    turn: Floats
    """(steps + 2, balls, 4) of the child's joint frame in the parent's."""
    shift: Floats
    """(steps or 0, coordinates) added to the response of step i [rad or m]."""
    most: Floats
    """(steps or 1, coordinates) largest impulse of a control in step i, or in any [N s or N m s]."""


class ControlHistory(NamedTuple):
    """What a step leaves to the next besides the state: where controlled joints stood when it began."""

    value: Floats
    """(coordinates,)"""
    turn: Floats
    """(balls, 4) of the moved body as the base sees it."""
    known: Integers
    """(1,) 0 before the first step."""
    bend: Floats
    """(3, standing rows) velocities along rows that correcting positions added in the last steps, the latest first."""
    bends: Integers
    """(1,) how many of those are known."""

    def copy(self) -> ControlHistory:
        """A snapshot to rewind to."""
        return ControlHistory._make(array.copy() for array in self)


class StageArrays(NamedTuple):
    """Numbers that the stages of one step hand on."""

    position: Floats
    quaternion: Floats
    twist: Floats
    """Bodies when the step began."""
    value: Floats
    """(coordinates,) when the step began."""
    turn: Floats
    """(balls, 4) likewise."""
    now: Floats
    """(balls, 4) while positions are corrected."""
    error: Floats
    rate: Floats
    after: Floats
    """(coordinates,) of the error: now, its rate, and what it is to be at the step's end; balls: in the base's axes."""
    aim: Floats
    """(coordinates,) where controlled coordinates are to be at the step's end."""
    aim_turn: Floats
    """(balls, 4)"""
    speed: Floats
    """(coordinates,) of the controlled rows before a solve."""
    most: Floats
    """(coordinates,) largest impulse of the control in this step [N s or N m s]."""
    held: Flags
    """(coordinates,) 1 while the control can do what it is asked."""
    trial: Rows
    """Standing rows at the poses that are tried."""
    change: Floats
    """(bodies, 6) how a solve of a correction moves bodies where they are tried."""
    moved: Floats
    """(bodies, 6) velocities that all its solves have added."""
    corrections: Integers
    """(1,) how often poses were tried in this step."""
    factored: Floats
    factored_turn: Floats
    """Positions and quaternions of bodies for which the factors are that the last step left."""
    bend: Floats
    """(standing rows,) as in `ControlHistory.bend`, of this step."""
    segment: Integers
    """(standing rows,) where laws were in stage 4: the warm start of the next step."""
    total: Floats
    """(rows,) impulses of all stages."""
    ground: Floats
    """(bodies, 7) of contacts, as in `Record.ground`."""
    solver_stats: Integers
    """(4,) as in `Record.told`."""


class ResponseCoefficients(NamedTuple):
    """How the error of one coordinate changes in a step."""

    a: float = 0.0
    b: float = 0.0
    """[s]"""
    solver_stats: bool = False
    limited: bool = False
    """Whether there is a limit to the control's force."""


def compile_impulse(
    model: Model,
    *,
    step: float,
    controlled: Mapping[str, ResponseCoefficients],
    outside: Collection[str] = (),
    settings: SolverSettings | None = None,
) -> tuple[CompiledModel, Controls]:
    """Tables for impulse steps [s]; `controlled` by coordinate, a ball's three with one response turn it as one."""
    check_step(step)
    validate(model)
    drives = [Drive(coordinate) for coordinate in controlled]
    compiled = compile_model(harden(model, step), step=step, settings=settings, drives=drives)._replace(model=model)
    for name in outside:
        if name not in compiled.body_index:
            raise ModelError(unknown_name("body", name, compiled.body_index) + " (asked to be outside)")
    return compiled, _make_controls(compiled, controlled, frozenset(outside))


def harden(model: Model, step: float) -> Model:
    """The model with everything hard, and all of an error but that of contacts corrected in a step."""
    lightest = min((body.mass for body in model.bodies if not body.kinematic), default=1.0)
    hard, stop = Softness(erp=1.0), Softness(erp=1.0, cfm=FLOOR / lightest * step)

    def hard_shape(shape: Shape) -> Shape:
        return replace(shape, surface=replace(shape.surface, softness=Softness(erp=CONTACT_SHARE)))

    def hard_joint(joint: Joint) -> Joint:
        stops = tuple(replace(coordinate, limit_softness=stop) for coordinate in joint.coordinates)
        return replace(joint, softness=hard, coordinates=stops)

    return replace(
        model,
        bodies=tuple(replace(body, shapes=tuple(map(hard_shape, body.shapes))) for body in model.bodies),
        ground=tuple(map(hard_shape, model.ground)),
        joints=tuple(map(hard_joint, model.joints)),
        couplings=tuple(replace(coupling, softness=hard) for coupling in model.couplings),
    )


def _make_controls(compiled: CompiledModel, controlled: Mapping[str, ResponseCoefficients], outside: frozenset[str]) -> Controls:
    model, tables = compiled.model, compiled.tables
    joints, count = tables.joints, len(model.coordinates)
    lightest = min((float(np.linalg.eigvalsh(inertia)[0]) for inertia in tables.bodies.inertia), default=1.0)
    a, b, slope, told = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, np.uint8)
    for name, response in controlled.items():
        i = compiled.coordinate_index[name]
        a[i], b[i], told[i] = response.a, response.b, response.solver_stats
        slope[i] = FLOOR / lightest if response.limited else 0.0
    shares = np.zeros(count, np.uint8)
    for group in _loops(model):
        own = [i for name, i in compiled.coordinate_index.items() if name in controlled and name in group]
        if len(own) > 1:
            shares[own], slope[own] = 1, SHARED / lightest
    balls = [int(j) for j in np.flatnonzero(joints.rotation_driven)]
    of_balls = {i for j in balls for i in range(joints.coordinate_first[j], joints.coordinate_first[j + 1])}
    singles = [compiled.coordinate_index[name] for name in controlled]
    depth = _distance_from_ground(model)
    order = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    side = []
    for j in balls:
        joint = model.joints[j]
        nearer = min((joint.parent, joint.child), key=lambda name: (depth[name], order[name]))
        side.append(1.0 if nearer == joint.parent else -1.0)
    return Controls(
        coordinate=np.array(sorted(i for i in singles if i not in of_balls), np.int64),
        ball=np.array(balls, np.int64),
        side=np.array(side, float),
        a=a,
        b=b,
        solver_stats=told,
        slope=slope,
        shares=shares,
        unlimited=(slope == 0.0).astype(np.uint8),
        outside=_outside_rows(compiled, controlled, outside),
        reach=_reach(tables, len(model.bodies)),
        netted=np.array([sum(joint.closes_loop for joint in model.joints) > NET_LOOPS], np.uint8),
    )


def _loops(model: Model) -> list[set[str]]:
    """The coordinates of each closed loop; loops that have a joint in common are one."""
    above = {joint.child: joint for joint in model.joints if not joint.closes_loop}

    def way(body: str) -> dict[str, Joint]:
        found: dict[str, Joint] = {}
        while body in above and above[body].name not in found:
            found[above[body].name] = above[body]
            body = above[body].parent
        return found

    loops: list[dict[str, Joint]] = []
    for joint in model.joints:
        if joint.closes_loop:
            first, second = way(joint.parent), way(joint.child)
            loop = {name: one for name, one in (first | second).items() if (name in first) != (name in second)}
            loop[joint.name] = joint
            for other in [one for one in loops if one.keys() & loop.keys()]:
                loops.remove(other)
                loop |= other
            loops.append(loop)
    return [{c.name for joint in loop.values() for c in joint.coordinates} for loop in loops]


def _distance_from_ground(model: Model) -> dict[str, int]:
    """Joints between each body and the ground, or the heaviest body of those that no joint holds to it."""
    beside: dict[str, list[str]] = {name: [] for name in (GROUND, *(body.name for body in model.bodies))}
    for joint in model.joints:
        beside[joint.parent].append(joint.child)
        beside[joint.child].append(joint.parent)
    depth: dict[str, int] = {}
    for root in (GROUND, *(body.name for body in sorted(model.bodies, key=lambda body: -body.mass))):
        if root in depth:
            continue
        depth[root] = 0
        waiting = deque([root])
        while waiting:
            name = waiting.popleft()
            for other in beside[name]:
                if other not in depth:
                    depth[other] = depth[name] + 1
                    waiting.append(other)
    return depth


def _outside_rows(compiled: CompiledModel, controlled: Mapping[str, ResponseCoefficients], outside: frozenset[str]) -> Flags:
    model, joints = compiled.model, compiled.tables.joints
    marks = np.zeros(len(compiled.rows.entries), np.uint8)
    apart = [joint.parent in outside or joint.child in outside for joint in model.joints]
    for j, joint in enumerate(model.joints):
        if not apart[j]:
            continue
        for coordinate in joint.coordinates:
            if coordinate.name in controlled:
                raise SettingsError(
                    f"control of {coordinate.name!r}: joint {joint.name!r} holds a body that is outside the "
                    "controller's world; leave out the control, or take the body in"
                )
        marks[joints.row_first[j] : joints.row_first[j + 1]] = 1
    for rows in (joints.limit_row, joints.drive_row):
        for i, k in enumerate(rows):
            if k >= 0 and apart[joints.joint[i]]:
                marks[k] = 1
    for k, i, on in zip(joints.coupling_row, joints.coupling_coordinate, joints.coupling_on, strict=True):
        marks[k] = apart[joints.joint[i]] or apart[joints.joint[on]]
    return marks


def _reach(tables: Tables, bodies: int) -> Floats:
    shapes, reach = tables.shapes, np.zeros(bodies)
    for body, position, bound in zip(shapes.body, shapes.position, shapes.bound, strict=True):
        if body >= 0 and np.isfinite(bound):
            reach[body] = max(reach[body], float(np.linalg.norm(position)) + bound)
    return reach


def make_target_trajectory(
    compiled: CompiledModel, value: Floats, turn: Floats, *, most: Floats | None = None, shift: Floats | None = None
) -> TargetTrajectory:
    """Arrays as kernels take them; limits that are not given are infinite."""
    count = len(compiled.model.coordinates)
    return TargetTrajectory(
        value=np.ascontiguousarray(value, float),
        turn=np.ascontiguousarray(turn, float),
        shift=np.zeros((0, count)) if shift is None else np.ascontiguousarray(shift, float),
        most=np.full((1, count), np.inf) if most is None else np.ascontiguousarray(most, float),
    )


def make_history(compiled: CompiledModel, controls: Controls) -> ControlHistory:
    """No step was made."""
    return ControlHistory(
        value=np.zeros(len(compiled.model.coordinates)),
        turn=np.zeros((len(controls.ball), 4)),
        known=np.zeros(1, np.int64),
        bend=np.zeros((3, len(compiled.rows.entries))),
        bends=np.zeros(1, np.int64),
    )


def make_stage_arrays(compiled: CompiledModel, controls: Controls, rows: int) -> StageArrays:
    """Room for so many rows, contacts included."""
    trial = make_rows(np.array(compiled.rows.entries, np.int64))
    init_joint_rows(compiled.tables.joints, trial)
    bodies, count, balls = len(compiled.model.bodies), len(compiled.model.coordinates), len(controls.ball)
    return StageArrays(
        position=np.zeros((bodies, 3)),
        quaternion=np.zeros((bodies, 4)),
        twist=np.zeros((bodies, 6)),
        value=np.zeros(count),
        turn=np.zeros((balls, 4)),
        now=np.zeros((balls, 4)),
        error=np.zeros(count),
        rate=np.zeros(count),
        after=np.zeros(count),
        aim=np.zeros(count),
        aim_turn=np.zeros((balls, 4)),
        speed=np.zeros(count),
        most=np.zeros(count),
        held=np.zeros(count, np.uint8),
        trial=trial,
        change=np.zeros((bodies, 6)),
        moved=np.zeros((bodies, 6)),
        corrections=np.zeros(1, np.int64),
        factored=np.full((bodies, 3), np.nan),
        factored_turn=np.zeros((bodies, 4)),
        bend=np.zeros(len(compiled.rows.entries)),
        segment=np.zeros(len(compiled.rows.entries), np.int64),
        total=np.zeros(rows),
        ground=np.zeros((bodies, 7)),
        solver_stats=np.zeros(4, np.int64),
    )

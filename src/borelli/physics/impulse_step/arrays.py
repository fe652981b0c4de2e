"""Arrays of the impulse step besides the tables, state and work arrays of the soft step.

Joints, couplings, limits and contacts are hard here, whatever softness the model gives them: the impulse step corrects
positions by Newton's method and needs no springs for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.kernels.array_checks import as_floats, as_indices, check_arrays
from borelli.model.model import GROUND, Joint, Model, Shape, Softness
from borelli.model.validate import validate
from borelli.physics.arrays.compile_model import DRIVEN, MIN_SLOPE, NET_LOOPS, CompiledModel, Tables, compile_model
from borelli.physics.arrays.indices import GROUND_COLUMNS
from borelli.physics.group_momentum import TALLY_COLUMNS
from borelli.physics.inputs import Drive
from borelli.physics.rows.joint_rows import init_joint_rows
from borelli.physics.rows.rows import Rows, make_rows
from borelli.physics.solver_settings import SolverSettings, check_step

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.uint8]

CONTACT_ERP = 0.2
"""Fraction of an overlap that is corrected in a step: all of it at once would separate bodies with a jump."""
LOOP_CONTROL_SLOPE = 1e-6
"""Slope of controls of one loop, relative to the inverse of the least inertia: a hundred times that of its joints, so
that contradictory targets result in their mean (least squares) and the joints stay closed."""


class Controls(NamedTuple):
    """Controls and their responses, constant while stepping. Entries are by coordinate of the model unless stated."""

    coordinate: Integers
    """(c,) coordinates that are controlled one by one."""
    ball: Integers
    """(balls,) joints that are controlled about all three axes at once."""
    every: Integers
    """(c + 3 balls,) all controlled coordinates: those one by one, then those of balls."""
    side: Floats
    """(balls,) 1 where the joint's parent is the base that its error rotates with, -1 where the child is."""
    a: Floats
    b: Floats
    """The error a step later is a E + b E' [b in s]."""
    callback_response: Flags
    """1 where the response is not a and b but is written to `StageArrays.response` before each step."""
    slope: Floats
    """Slope of the control's row; 0 where its impulse is unlimited."""
    in_loop: Flags
    """1 for one of several controls in a loop: they may be contradictory, and none is feasible."""
    unlimited: Flags
    """1 where nothing limits the control."""
    outside: Flags
    """(persistent rows,) 1 for a row with a body outside the controller's world, which the controller ignores."""
    extent: Floats
    """(bodies,) largest distance of a body's shapes from its center of mass [m]."""
    is_net: Flags
    """(1,) 1 if there is a net among the bodies: more loops than `NET_LOOPS`."""
    compliance: Floats
    """Compliance of the control [rad/s per N m s, or m/s per N s] where contacts close loops: of all torques with the
    same motion, the least are found, weighted by it."""
    knows_contacts: Flags
    """(1,) 1 if contacts are solved with the controls, which then support the weight on them; 0: controls ignore them
    and yield to them."""


class TargetTrajectory(NamedTuple):
    """Targets of all steps: row i + 1 at the start of step i, so that row 0 is a step before the first."""

    value: Floats
    """(steps + 2, coordinates) [rad or m]"""
    rotation: Floats
    """(steps + 2, balls, 4) of the child's joint frame in the parent's."""
    max_impulse: Floats
    """(steps or 1, coordinates) maximum impulse of a control in step i, or in any [N s or N m s]."""


class ControlHistory(NamedTuple):
    """Values that a step passes to the next besides the state: controlled joints at its start."""

    value: Floats
    """(coordinates,)"""
    rotation: Floats
    """(balls, 4) of the moved body relative to the base."""
    has_previous: Integers
    """(1,) 0 before the first step."""
    curvature: Floats
    """(3, persistent rows) velocities along rows that position correction added in the last steps, the latest first."""
    curvature_count: Integers
    """(1,) number of steps with known curvature."""
    half_change: Floats
    """(bodies, 6) mean velocities of the last step less those before it."""
    mean_impulse: Floats
    """(persistent rows,) impulses of its mean motion."""
    mean_known: Integers
    """(1,) 1 if these two are known: the next step starts from them."""


class MeanMotion(NamedTuple):
    """Mean motion of a step, or of a part of it (`mean_motion`)."""

    group_kind: Integers
    """(groups,) as `BodyTables.group_kind`; DRIVEN with controls."""
    balance: Integers
    """(groups,) balance of energy in this step."""
    tally: Floats
    """(groups, TALLY_COLUMNS) energy, momenta and inertia of each group."""
    begin_twist: Floats
    """(bodies, 6) velocities before the whole step, after collisions."""
    begin_impulse: Floats
    """(persistent rows,) impulses of collisions."""
    position: Floats
    quaternion: Floats
    rotation: Floats
    twist: Floats
    """Bodies before the part of the step; `rotation` (bodies, 3, 3)."""
    end_position: Floats
    end_rotation: Floats
    """Bodies after it."""
    velocity: Floats
    """(bodies, 6) mean velocities."""
    impulse: Floats
    """(persistent rows,) impulses along mean rows."""
    total_impulse: Floats
    """(persistent rows,) impulses of all parts, projections included."""
    replaced: Floats
    """(persistent rows,) impulses of controls that other forces exert."""
    is_replaced: Integers
    """(1,) 1 if they do."""
    wrench: Floats
    """(bodies, 6) impulses of contacts."""
    reaction: Floats
    """(bodies, 6) impulses of joints."""
    at_limit: Flags
    """(persistent rows,) 1 for rows of joint limits that act."""
    free: Flags
    """(coordinates,) 1 where no control clamps the coordinate to its limits."""
    stiffness: Floats
    """(bodies, 9) geometric stiffness of rotations."""


class StageArrays(NamedTuple):
    """Values that the stages of one step pass on."""

    position: Floats
    quaternion: Floats
    twist: Floats
    """Bodies at the start of the step."""
    value: Floats
    """(coordinates,) at the start of the step."""
    rotation: Floats
    """(balls, 4) likewise."""
    trial_rotation: Floats
    """(balls, 4) while positions are corrected."""
    error: Floats
    rate: Floats
    response: Floats
    """(coordinates,) error, its rate, and the error at the step's end; of balls in the base's axes."""
    target: Floats
    """(coordinates,) values of controlled coordinates at the step's end."""
    target_rotation: Floats
    """(balls, 4) likewise."""
    velocity: Floats
    """(coordinates,) of the controlled rows before a solve, or those that controls require."""
    max_impulse: Floats
    """(coordinates,) maximum impulse of the control in this step [N s or N m s]."""
    feasible: Flags
    """(coordinates,) 1 while the control can reach its target."""
    trial_rows: Rows
    """Persistent rows at the trial poses."""
    change: Floats
    """(bodies, 6) change of velocities of a solve, by its effect at the trial poses."""
    total_change: Floats
    """(bodies, 6) velocities that all solves of a correction have added."""
    corrections: Integers
    """(1,) number of corrections in this step."""
    factored_position: Floats
    factored_quaternion: Floats
    """Poses of bodies for which the factors of the last step are valid."""
    curvature: Floats
    """(persistent rows,) of this step, as in `ControlHistory.curvature`."""
    active_piece: Integers
    """(persistent rows,) active pieces of laws in stage 4: the warm start of the next step."""
    impulse: Floats
    """(rows,) impulses of all stages."""
    ground: Floats
    """(2 bodies, GROUND_COLUMNS) of contacts, as in `Record.ground`."""
    solver_stats: Integers
    """(4,) as in `Record.solver_stats`."""
    mean: MeanMotion


class ResponseCoefficients(NamedTuple):
    """Response of one coordinate: its error a step later is a E + b E'."""

    a: float = 0.0
    b: float = 0.0
    """[s]"""
    callback: bool = False
    """True if the response is computed before each step instead."""
    limited: bool = False
    """True if the control has a force limit."""


def compile_impulse(
    model: Model,
    *,
    step: float,
    controlled: Mapping[str, ResponseCoefficients],
    outside: Collection[str] = (),
    settings: SolverSettings | None = None,
) -> tuple[CompiledModel, Controls]:
    """Compile a model for impulse steps.

    Args:
        model: Model to compile.
        step: Time step [s].
        controlled: Responses by coordinate; a ball joint with three of them is controlled as one rotation.
        outside: Bodies that the controller does not know.
        settings: Settings of the solver.

    Raises:
        ModelError: The model is invalid or a body is unknown.
        SettingsError: A controlled joint has a body outside, or a setting is out of range.
    """
    check_step(step)
    validate(model)
    drives = [Drive(coordinate) for coordinate in controlled]
    compiled = compile_model(harden(model, step), step=step, settings=settings, drives=drives, balls_as_one=True)
    compiled = compiled._replace(model=model)
    for name in outside:
        if name not in compiled.body_index:
            raise ModelError(f"outside: {unknown_name('body', name, compiled.body_index)}")
    return compiled, _make_controls(compiled, controlled, frozenset(outside))


def harden(model: Model, step: float) -> Model:
    """Return the model with hard rows; a step corrects all of an error, of contacts a fraction."""
    lightest = min((body.mass for body in model.bodies if not body.kinematic), default=1.0)
    hard, limit = Softness(erp=1.0), Softness(erp=1.0, cfm=MIN_SLOPE / lightest * step)

    def hard_shape(shape: Shape) -> Shape:
        return replace(shape, surface=replace(shape.surface, softness=Softness(erp=CONTACT_ERP)))

    def hard_joint(joint: Joint) -> Joint:
        coordinates = tuple(replace(coordinate, limit_softness=limit) for coordinate in joint.coordinates)
        return replace(joint, softness=hard, coordinates=coordinates)

    return replace(
        model,
        bodies=tuple(replace(body, shapes=tuple(map(hard_shape, body.shapes))) for body in model.bodies),
        ground=tuple(map(hard_shape, model.ground)),
        joints=tuple(map(hard_joint, model.joints)),
        couplings=tuple(replace(coupling, softness=hard) for coupling in model.couplings),
    )


def _make_controls(
    compiled: CompiledModel, controlled: Mapping[str, ResponseCoefficients], outside: frozenset[str]
) -> Controls:
    model, tables = compiled.model, compiled.tables
    joints, count = tables.joints, len(model.coordinates)
    lightest = min((float(np.linalg.eigvalsh(inertia)[0]) for inertia in tables.bodies.inertia), default=1.0)
    a, b, slope, callback = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, np.uint8)
    for name, response in controlled.items():
        i = compiled.coordinate_index[name]
        a[i], b[i], callback[i] = response.a, response.b, response.callback
        slope[i] = MIN_SLOPE / lightest if response.limited else 0.0
    in_loop = np.zeros(count, np.uint8)
    for group in _loops(model):
        own = [i for name, i in compiled.coordinate_index.items() if name in controlled and name in group]
        if len(own) > 1:
            in_loop[own], slope[own] = 1, LOOP_CONTROL_SLOPE / lightest
    balls = [int(j) for j in np.flatnonzero(joints.rotation_driven)]
    of_balls = [i for j in balls for i in range(joints.coordinate_first[j], joints.coordinate_first[j + 1])]
    singles = sorted({compiled.coordinate_index[name] for name in controlled} - set(of_balls))
    depth = _distance_from_ground(model)
    order = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    side = []
    for j in balls:
        joint = model.joints[j]
        nearer = min((joint.parent, joint.child), key=lambda name: (depth[name], order[name]))
        side.append(1.0 if nearer == joint.parent else -1.0)
    return Controls(
        coordinate=np.array(singles, np.int64),
        ball=np.array(balls, np.int64),
        every=np.array(singles + of_balls, np.int64),
        side=np.array(side, float),
        a=a,
        b=b,
        callback_response=callback,
        slope=slope,
        in_loop=in_loop,
        unlimited=(slope == 0.0).astype(np.uint8),
        outside=_outside_rows(compiled, controlled, outside),
        extent=_extent(tables, len(model.bodies)),
        is_net=np.array([sum(joint.closes_loop for joint in model.joints) > NET_LOOPS], np.uint8),
        compliance=np.zeros(count),
        knows_contacts=np.zeros(1, np.uint8),
    )


def _loops(model: Model) -> list[set[str]]:
    """Return the coordinates of each closed loop; loops with a common joint are one."""
    above = {joint.child: joint for joint in model.joints if not joint.closes_loop}

    def path_to_root(body: str) -> dict[str, Joint]:
        path: dict[str, Joint] = {}
        while body in above and above[body].name not in path:
            path[above[body].name] = above[body]
            body = above[body].parent
        return path

    loops: list[dict[str, Joint]] = []
    for joint in model.joints:
        if joint.closes_loop:
            first, second = path_to_root(joint.parent), path_to_root(joint.child)
            loop = {name: one for name, one in (first | second).items() if (name in first) != (name in second)}
            loop[joint.name] = joint
            for other in [one for one in loops if one.keys() & loop.keys()]:
                loops.remove(other)
                loop |= other
            loops.append(loop)
    return [{c.name for joint in loop.values() for c in joint.coordinates} for loop in loops]


def _distance_from_ground(model: Model) -> dict[str, int]:
    """Return the number of joints between each body and the ground, or the heaviest body of its own group."""
    neighbors: dict[str, list[str]] = {name: [] for name in (GROUND, *(body.name for body in model.bodies))}
    for joint in model.joints:
        neighbors[joint.parent].append(joint.child)
        neighbors[joint.child].append(joint.parent)
    depth: dict[str, int] = {}
    for root in (GROUND, *(body.name for body in sorted(model.bodies, key=lambda body: -body.mass))):
        if root in depth:
            continue
        depth[root] = 0
        waiting = deque([root])
        while waiting:
            name = waiting.popleft()
            for other in neighbors[name]:
                if other not in depth:
                    depth[other] = depth[name] + 1
                    waiting.append(other)
    return depth


def _outside_rows(
    compiled: CompiledModel, controlled: Mapping[str, ResponseCoefficients], outside: frozenset[str]
) -> Flags:
    model, joints = compiled.model, compiled.tables.joints
    marks = np.zeros(len(compiled.rows.entries), np.uint8)
    is_outside = [joint.parent in outside or joint.child in outside for joint in model.joints]
    for j, joint in enumerate(model.joints):
        if not is_outside[j]:
            continue
        for coordinate in joint.coordinates:
            if coordinate.name in controlled:
                raise SettingsError(
                    f"control of {coordinate.name!r}: A body of joint {joint.name!r} is outside the controller's "
                    "world. Remove the control, or remove the body from `outside`."
                )
        marks[joints.row_first[j] : joints.row_first[j + 1]] = 1
    for rows in (joints.limit_row, joints.drive_row):
        for i, k in enumerate(rows):
            if k >= 0 and is_outside[joints.joint[i]]:
                marks[k] = 1
    for k, i, on in zip(joints.coupling_row, joints.coupling_coordinate, joints.coupling_on, strict=True):
        marks[k] = is_outside[joints.joint[i]] or is_outside[joints.joint[on]]
    return marks


def _extent(tables: Tables, bodies: int) -> Floats:
    shapes, extent = tables.shapes, np.zeros(bodies)
    for body, position, bound in zip(shapes.body, shapes.position, shapes.bound, strict=True):
        if body >= 0 and np.isfinite(bound):
            extent[body] = max(extent[body], float(np.linalg.norm(position)) + bound)
    return extent


def make_target_trajectory(
    compiled: CompiledModel, value: Floats, rotation: Floats, *, max_impulse: Floats | None = None
) -> TargetTrajectory:
    """Return targets as contiguous arrays; impulse limits that are not given are infinite."""
    count = len(compiled.model.coordinates)
    largest = np.full((1, count), np.inf) if max_impulse is None else max_impulse
    return TargetTrajectory(
        value=as_floats("target values", value, (None, count), finite=False),
        rotation=as_floats("target rotations", rotation, (None, None, 4), finite=False),
        max_impulse=as_floats("max_impulse", largest, (None, count), finite=False),
    )


def check_controls(compiled: CompiledModel, controls: Controls) -> None:
    """Raise SettingsError if controls are not those of this model."""
    template, variable = _make_controls(compiled, {}, frozenset()), ("coordinate", "ball", "every", "side")
    check_arrays("controls", controls, template, variable)
    counts = {"coordinate": len(controls.a), "every": len(controls.a), "ball": len(compiled.model.joints)}
    for name, count in counts.items():
        as_indices(f"controls.{name}", getattr(controls, name), (None,), count)
    balls = len(controls.ball)
    for name, length in (("side", balls), ("every", len(controls.coordinate) + 3 * balls)):
        if len(getattr(controls, name)) != length:
            raise SettingsError(f"controls.{name}: The length is {len(getattr(controls, name))}. Pass length {length}.")


def check_targets(compiled: CompiledModel, controls: Controls, targets: TargetTrajectory) -> None:
    """Raise SettingsError if targets are not those of this model and these controls."""
    count, balls = len(compiled.model.coordinates), len(controls.ball)
    template = TargetTrajectory(np.zeros((0, count)), np.zeros((0, balls, 4)), np.zeros((0, count)))
    check_arrays("targets", targets, template, TargetTrajectory._fields)
    if not len(targets.max_impulse) or np.isnan(targets.max_impulse).any():
        raise SettingsError("targets.max_impulse: It is empty or has NaN. Pass at least one row of numbers.")


def make_history(compiled: CompiledModel, controls: Controls) -> ControlHistory:
    """Return the history before the first step."""
    return ControlHistory(
        value=np.zeros(len(compiled.model.coordinates)),
        rotation=np.zeros((len(controls.ball), 4)),
        has_previous=np.zeros(1, np.int64),
        curvature=np.zeros((3, len(compiled.rows.entries))),
        curvature_count=np.zeros(1, np.int64),
        half_change=np.zeros((len(compiled.model.bodies), 6)),
        mean_impulse=np.zeros(len(compiled.rows.entries)),
        mean_known=np.zeros(1, np.int64),
    )


def _make_mean_motion(compiled: CompiledModel, controls: Controls) -> MeanMotion:
    bodies, rows = len(compiled.model.bodies), len(compiled.rows.entries)
    kind = _group_kinds(compiled, controls)
    free = np.ones(len(compiled.model.coordinates), np.uint8)
    free[controls.every] = 0
    arrays: dict[str, Any] = {
        name: np.zeros((bodies, 6))
        for name in ("begin_twist", "twist", "velocity", "wrench", "reaction")
    }  # fmt: skip
    return MeanMotion(
        **arrays,
        group_kind=kind,
        balance=np.zeros(len(kind), np.int64),
        tally=np.zeros((len(kind), TALLY_COLUMNS)),
        position=np.zeros((bodies, 3)),
        quaternion=np.zeros((bodies, 4)),
        rotation=np.zeros((bodies, 3, 3)),
        end_position=np.zeros((bodies, 3)),
        end_rotation=np.zeros((bodies, 3, 3)),
        impulse=np.zeros(rows),
        begin_impulse=np.zeros(rows),
        replaced=np.zeros(rows),
        is_replaced=np.zeros(1, np.int64),
        total_impulse=np.zeros(rows),
        at_limit=np.zeros(rows, np.uint8),
        free=free,
        stiffness=np.zeros((bodies, 9)),
    )


def _group_kinds(compiled: CompiledModel, controls: Controls) -> Integers:
    """Return the kind of each group of bodies; one with a controlled joint is driven."""
    joints, bodies = compiled.tables.joints, compiled.tables.bodies
    kind = bodies.group_kind.copy()
    for i in controls.every:
        for body in (joints.child[joints.joint[i]], joints.parent[joints.joint[i]]):
            if body >= 0:
                kind[bodies.group[body]] = DRIVEN
    return kind


def make_stage_arrays(compiled: CompiledModel, controls: Controls, rows: int) -> StageArrays:
    """Return stage arrays for `rows` rows, contacts included."""
    trial_rows = make_rows(np.array(compiled.rows.entries, np.int64))
    init_joint_rows(compiled.tables.joints, trial_rows)
    bodies, count, balls = len(compiled.model.bodies), len(compiled.model.coordinates), len(controls.ball)
    arrays: dict[str, Any] = {
        name: np.zeros(count) for name in ("value", "error", "rate", "response", "target", "velocity", "max_impulse")
    }
    arrays |= {name: np.zeros((balls, 4)) for name in ("rotation", "trial_rotation", "target_rotation")}
    arrays |= {name: np.zeros((bodies, 6)) for name in ("twist", "change", "total_change")}
    return StageArrays(
        **arrays,
        position=np.zeros((bodies, 3)),
        quaternion=np.zeros((bodies, 4)),
        feasible=np.zeros(count, np.uint8),
        trial_rows=trial_rows,
        corrections=np.zeros(1, np.int64),
        factored_position=np.full((bodies, 3), np.nan),
        factored_quaternion=np.zeros((bodies, 4)),
        curvature=np.zeros(len(compiled.rows.entries)),
        active_piece=np.zeros(len(compiled.rows.entries), np.int64),
        impulse=np.zeros(rows),
        ground=np.zeros((2 * bodies, GROUND_COLUMNS)),
        solver_stats=np.zeros(4, np.int64),
        mean=_make_mean_motion(compiled, controls),
    )

"""Tables: a model compiled into arrays for the kernels, for one step size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.model.model import Model, Softness
from borelli.model.validate import validate
from borelli.physics.arrays.joints import JointTables, compile_joints
from borelli.physics.arrays.shapes import ShapeTables, compile_shapes
from borelli.physics.inputs import Drive, Residual, check_drive
from borelli.physics.solver_settings import SolverSettings, check_step

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MIN_SLOPE = 1e-11
"""Minimum slope of a bounded or one-sided row, relative to the inverse of the mass it acts on: at 0 it has no pivot."""
MIN_LOOP_SLOPE = 1e-8
"""Minimum slope of a row that closes a loop, likewise: its rows are often redundant."""
NET_LOOPS = 30
"""Number of loops above which bodies connected by joints are a net, in which the loop-closing joints are arbitrary."""


FREE, GROUNDED, DRIVEN = range(3)
"""Kind of a group: not connected to the ground; connected to it; with controls or kinematic bodies, whose work is not
limited."""


class BodyTables(NamedTuple):
    """Bodies, one entry each."""

    mass: Floats
    inertia: Floats
    """(n, 3, 3) about the center of mass, body axes [kg m^2]."""
    kinematic: NDArray[np.uint8]
    tree_parent: Integers
    """Parent of the body, if that is solved for and the body does not belong to a net; else -1."""
    links: Integers
    """(links, 2) pairs of bodies with a common persistent row."""
    group: Integers
    """Group of bodies that joints or couplings connect, not through the ground or kinematic bodies."""
    group_kind: Integers
    """(groups,) FREE, GROUNDED or DRIVEN."""


class MarkerSpringTables(NamedTuple):
    """Marker springs: soft rows that pull a marker to its measured position; one entry per marker, three rows each."""

    body: Integers
    offset: Floats
    """(m, 3) from the center of mass, body axes [m]."""
    row: Integers
    alpha: Floats
    beta: Floats


class ResidualTables(NamedTuple):
    """Residuals, one entry and one row each."""

    body: Integers
    axis: Integers
    row: Integers
    alpha: Floats
    beta: Floats
    max_impulse: Floats
    """Maximum impulse of a step [N s or N m s]."""


class ContactTables(NamedTuple):
    """Contact laws, one entry per pair of shapes, and the position of contact rows."""

    alpha: Floats
    beta: Floats
    tangent_beta: Floats
    first_row: Integers
    """(1,)"""
    rows_each: Integers
    """(1,) number of rows of a contact: 3, or 6 with rolling friction."""


class Tables(NamedTuple):
    """All arrays of a model; constant while stepping, except for scratch arrays of joints."""

    bodies: BodyTables
    joints: JointTables
    shapes: ShapeTables
    marker_springs: MarkerSpringTables
    residuals: ResidualTables
    contacts: ContactTables
    gravity: Floats
    parameters: Floats
    """(6,) scalars in the order of `indices`: CONTACT_MARGIN to STEP_SIZE."""
    iteration_limits: Integers
    """(3,) in the order of `indices`: MAX_FRICTION_SOLVES to GAUSS_SEIDEL_SWEEPS (0: Newton)."""


class RowNames(NamedTuple):
    """Names of the persistent rows, units of their forces, and numbers of their entries."""

    names: list[str]
    units: list[str]
    entries: list[int]


class CompiledModel(NamedTuple):
    """Tables of a model, with the names that results need."""

    model: Model
    step: float
    settings: SolverSettings
    tables: Tables
    rows: RowNames
    body_index: dict[str, int]
    coordinate_index: dict[str, int]
    center_of_mass: Floats
    """(n, 3) in body frames [m]."""
    notes: tuple[str, ...]
    """Changes made to the model, in sentences."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


def compile_model(
    model: Model,
    *,
    step: float,
    settings: SolverSettings | None = None,
    drives: Sequence[Drive] = (),
    marker_springs: Softness | None = None,
    residuals: Sequence[Residual] = (),
    balls_as_one: bool = False,
) -> CompiledModel:
    """Compile a model into arrays.

    Args:
        model: Model to compile.
        step: Time step [s].
        settings: Settings of the solver.
        drives: Joint drives; their coordinates get drive rows.
        marker_springs: Softness of the springs that pull markers. Default: no marker springs.
        residuals: Residuals; each gets a row.
        balls_as_one: Three drives of a ball joint act on its rotation: along the child's axes, with the rotation vector
            from the target as error. Default: every drive acts on the coordinate it names, as a generalized force,
            except three that fix the rotation (infinite stiffness, no limit), where both are the same motion.

    Raises:
        ModelError: The model is invalid, or a body or coordinate is unknown.
        SettingsError: A setting is out of range.
    """
    check_step(step)
    validate(model)
    settings = settings or SolverSettings()
    body_index = {body.name: i for i, body in enumerate(model.bodies)}
    com = np.array([body.center_of_mass for body in model.bodies]).reshape(-1, 3)
    kinematic = np.array([body.kinematic for body in model.bodies], np.uint8)
    drives = [check_drive(drive) for drive in drives]
    driven = _driven(model, drives)
    notes: list[str] = []
    as_one = {drive.coordinate for drive in drives if balls_as_one or _is_hard(drive)}
    joints, entries, names, units = compile_joints(model, body_index, com, kinematic > 0, step, driven, as_one)
    nets = _bodies_of_nets(model, body_index, kinematic)
    joints = _soften_loops(model, joints, nets, notes)
    bodies = _body_tables(model, body_index, kinematic, nets, joints)
    spring_tables = _marker_spring_tables(model, body_index, com, marker_springs, step, len(entries))
    for marker in model.markers if marker_springs else ():
        names += [f"marker {marker.name} {axis}" for axis in "xyz"]
        units += ["N"] * 3
        entries += [1] * 3
    residual_tables = _residual_tables(residuals, body_index, bodies.mass, step, len(entries))
    for residual in residuals:
        names.append(f"residual {residual.body} {'xyz'[residual.axis % 3]}")
        units.append("N" if residual.axis < 3 else "N m")
        entries.append(1)
    shapes = compile_shapes(model, body_index)
    parameters = [settings.contact_margin, settings.bounce_speed, settings.push_out_speed, settings.friction_tolerance]
    parameters += [settings.marker_speed_limit**2, step]
    sweeps = settings.sweeps if settings.solver == "sweeps" else 0
    tables = Tables(
        bodies,
        joints,
        shapes,
        spring_tables,
        residual_tables,
        _contact_tables(shapes, bodies, settings, step, len(entries)),
        np.array(model.gravity, float),
        np.array(parameters, float),
        np.array([settings.friction_solves, settings.refine, sweeps], np.int64),
    )
    coordinate_index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
    return CompiledModel(
        model, step, settings, tables, RowNames(names, units, entries), body_index, coordinate_index, com, tuple(notes)
    )


def _is_hard(drive: Drive) -> bool:
    """Return True if a drive fixes its coordinate whatever force that takes."""
    return drive.stiffness == np.inf and drive.max_force == np.inf and drive.dead_zone == 0.0


def _driven(model: Model, drives: Sequence[Drive]) -> set[str]:
    known = {coordinate.name for coordinate in model.coordinates}
    driven: set[str] = set()
    for drive in drives:
        if drive.coordinate not in known:
            raise ModelError(f"drive: {unknown_name('coordinate', drive.coordinate, sorted(known))}")
        if drive.coordinate in driven:
            raise ModelError(f"coordinate {drive.coordinate!r}: It has two drives. Remove one of them.")
        driven.add(drive.coordinate)
    return driven


def _bodies_of_nets(model: Model, body_index: dict[str, int], kinematic: NDArray[np.uint8]) -> set[int]:
    """Return the bodies of nets: groups connected by joints, not through kinematic bodies, with many loops."""
    pairs = [(body_index[joint.child], body_index.get(joint.parent, -1)) for joint in model.joints]
    ends = [tuple(b for b in pair if b >= 0 and not kinematic[b]) for pair in pairs]
    loops = [pair[0] for pair, joint in zip(ends, model.joints, strict=True) if pair and joint.closes_loop]
    if len(loops) <= NET_LOOPS:
        return set()
    neighbors: dict[int, list[int]] = {b: [] for b in range(len(kinematic))}
    for pair in ends:
        if len(pair) == 2:
            neighbors[pair[0]].append(pair[1])
            neighbors[pair[1]].append(pair[0])
    nets: set[int] = set()
    left = set(loops)
    while left:
        group, waiting = {min(left)}, [min(left)]
        while waiting:
            new = set(neighbors[waiting.pop()]) - group
            group |= new
            waiting += sorted(new)
        if sum(b in group for b in loops) > NET_LOOPS:
            nets |= group
        left -= group
    return nets


def _body_tables(
    model: Model, body_index: dict[str, int], kinematic: NDArray[np.uint8], nets: set[int], joints: JointTables
) -> BodyTables:
    parent = np.full(len(model.bodies), -1, np.int64)
    links = []
    for joint in model.joints:
        child, above = body_index[joint.child], body_index.get(joint.parent, -1)
        if above < 0 or kinematic[child] or kinematic[above]:
            continue
        links.append((child, above))
        if not joint.closes_loop and child not in nets:
            parent[child] = above
    joint_of = {c.name: joint for joint in model.joints for c in joint.coordinates}
    for coupling in model.couplings:
        pair = joint_of[coupling.coordinate], joint_of[coupling.on]
        bodies = sorted({body_index.get(name, -1) for joint in pair for name in (joint.child, joint.parent)} - {-1})
        solved = [b for b in bodies if not kinematic[b]]
        links += [(a, b) for i, a in enumerate(solved) for b in solved[:i]]
    pairs = np.array(links, np.int64).reshape(-1, 2)
    group, kind = _groups(kinematic, joints, pairs)
    return BodyTables(
        mass=np.array([body.mass for body in model.bodies], float),
        inertia=np.array([body.inertia for body in model.bodies], float).reshape(-1, 3, 3),
        kinematic=kinematic,
        tree_parent=parent,
        links=pairs,
        group=group,
        group_kind=kind,
    )


def _groups(kinematic: NDArray[np.uint8], joints: JointTables, links: Integers) -> tuple[Integers, Integers]:
    """Return the group of each body and the groups' kinds."""
    label = np.arange(len(kinematic))
    for a, b in links:
        label[label == label[a]] = label[b]
    names, group = np.unique(label, return_inverse=True)
    kind = np.full(len(names), FREE, np.int64)
    for j, (a, b) in enumerate(zip(joints.child, joints.parent, strict=True)):
        if joints.row_first[j + 1] > joints.row_first[j]:
            for body, other in ((a, b), (b, a)):
                if body >= 0 and other < 0:
                    kind[group[body]] = max(kind[group[body]], GROUNDED)
                elif body >= 0 and kinematic[other]:
                    kind[group[body]] = DRIVEN
    return group.astype(np.int64), kind


def _soften_loops(model: Model, joints: JointTables, nets: set[int], notes: list[str]) -> JointTables:
    """Raise the slope of hard loop-closing rows, and of rows of nets, so that redundant rows can be solved.

    Then the bodies of a net can be eliminated in any order, which saves nine tenths of the work (`elimination_order`).
    """
    beta = joints.beta.copy()
    lightest = min((body.mass for body in model.bodies if not body.kinematic), default=1.0)
    netted = 0
    for j, joint in enumerate(model.joints):
        in_net = joints.child[j] in nets or joints.parent[j] in nets
        if (joint.closes_loop or in_net) and beta[j] < MIN_LOOP_SLOPE / lightest:
            beta[j] = MIN_LOOP_SLOPE / lightest
            netted += in_net
            if not in_net:
                notes.append(f"Joint {joint.name!r} closes a loop: its rows are softened to {beta[j]:.1e} s/kg")
    if netted:
        notes.append(f"{netted} joints form a net: their rows are softened to {MIN_LOOP_SLOPE / lightest:.1e} s/kg")
    return joints._replace(beta=beta)


def _marker_spring_tables(
    model: Model, body_index: dict[str, int], com: Floats, softness: Softness | None, step: float, first_row: int
) -> MarkerSpringTables:
    markers = model.markers if softness else ()
    alpha, beta = softness.at_step(step) if softness else (0.0, 0.0)
    body = np.array([body_index[marker.body] for marker in markers], np.int64)
    offset = np.array([marker.position for marker in markers], float).reshape(-1, 3)
    count = len(markers)
    return MarkerSpringTables(
        body=body,
        offset=offset - com[body] if count else offset,
        row=first_row + 3 * np.arange(count),
        alpha=np.full(count, alpha),
        beta=np.full(count, beta),
    )


def _residual_tables(
    residuals: Sequence[Residual], body_index: dict[str, int], mass: Floats, step: float, first_row: int
) -> ResidualTables:
    alphas, betas = [], []
    for residual in residuals:
        if residual.body not in body_index:
            raise ModelError(f"residual: {unknown_name('body', residual.body, body_index)}")
        if residual.axis not in range(6):
            raise SettingsError(f"residual on {residual.body!r}: Its axis is {residual.axis}. Allowed: 0 to 5.")
        alpha, beta = residual.softness.at_step(step)
        bounded = residual.max_force < np.inf
        alphas.append(alpha)
        betas.append(max(beta, MIN_SLOPE / mass[body_index[residual.body]]) if bounded else beta)
    return ResidualTables(
        body=np.array([body_index[r.body] for r in residuals], np.int64),
        axis=np.array([r.axis for r in residuals], np.int64),
        row=first_row + np.arange(len(residuals)),
        alpha=np.array(alphas),
        beta=np.array(betas),
        max_impulse=np.array([r.max_force * step for r in residuals]),
    )


def _contact_tables(
    shapes: ShapeTables, bodies: BodyTables, settings: SolverSettings, step: float, first_row: int
) -> ContactTables:
    """Return contact laws: compliances of the two sides add up and weight the corrected fraction of the error."""
    soft = [Softness(k, d, erp, None if np.isnan(cfm) else cfm).at_step(step) for k, d, erp, cfm in shapes.soft]
    alpha, beta = np.array(soft, float).reshape(-1, 2).T.copy()
    a, b = shapes.pair_a, shapes.pair_b
    total = beta[a] + beta[b]
    weight = np.divide(beta[a], total, out=np.full(len(a), 0.5), where=total > 0.0)
    free = (shapes.body >= 0) & ~bodies.kinematic[shapes.body].astype(bool)
    inverse = np.where(free, 1.0 / bodies.mass[shapes.body], 0.0)
    floor = MIN_SLOPE * (inverse[a] + inverse[b])
    return ContactTables(
        alpha=weight * alpha[a] + (1.0 - weight) * alpha[b],
        beta=np.maximum(total, floor),
        tangent_beta=np.maximum(settings.tangent_softness * total, floor),
        first_row=np.array([first_row], np.int64),
        rows_each=np.array([6 if np.any(shapes.pair_rolling > 0.0) else 3], np.int64),
    )

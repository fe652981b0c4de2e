"""Tables: a model turned into arrays for the kernels, for one step size.

The only physics module, with those it calls to compile joints and shapes, that knows `Model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import Model, Softness
from borelli.model.validate import validate
from borelli.physics.arrays.joints import JointTables, compile_joints
from borelli.physics.arrays.shapes import ShapeTables, compile_shapes
from borelli.physics.inputs import Drive, Residual, SolverSettings, check_step

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FLOOR = 1e-11
"""Least slope of a bounded or one-sided row, relative to the inverse of the mass it acts on: at 0 it has no pivot."""
LOOP_FLOOR = 1e-8
"""Least slope of a row that closes a loop, likewise: its rows are often redundant (spec solver, section 5)."""
NET_LOOPS = 30
"""More loops than this in what hangs together by joints make it a net: which joints close its loops means nothing."""


class BodyTables(NamedTuple):
    """One entry per body."""

    mass: Floats
    inertia: Floats
    """(n, 3, 3) about the centre of mass, body axes [kg m^2]."""
    kinematic: NDArray[np.uint8]
    tree_parent: Integers
    """The body it hangs on by a joint, if that is solved for and it is no part of a net; else -1."""
    links: Integers
    """(links, 2) bodies that share rows for good."""


class MarkerSpringTables(NamedTuple):
    """Soft rows between a point of a body and a moving target: one entry per marker, three rows each."""

    body: Integers
    offset: Floats
    """(m, 3) from the centre of mass, body axes [m]."""
    row: Integers
    alpha: Floats
    beta: Floats


class ResidualTables(NamedTuple):
    """Rows that hold a body's own motion: one entry each."""

    body: Integers
    axis: Integers
    row: Integers
    alpha: Floats
    beta: Floats
    limit: Floats
    """Largest impulse."""


class ContactTables(NamedTuple):
    """Contact laws, one entry per pair of shapes, and where contact rows stand."""

    alpha: Floats
    beta: Floats
    tangent_beta: Floats
    first_row: Integers
    """(1,)"""
    rows_each: Integers
    """(1,) 3, or 6 with rolling friction."""


class Tables(NamedTuple):
    """Everything constant while stepping."""

    bodies: BodyTables
    joints: JointTables
    shapes: ShapeTables
    anchors: MarkerSpringTables
    residuals: ResidualTables
    contacts: ContactTables
    gravity: Floats
    numbers: Floats
    """(6,) contact margin, bounce speed, push-out speed, friction tolerance, marker speed limit squared, step."""
    counts: Integers
    """(3,) most friction solves, refinements, Gauss-Seidel sweeps (0: Newton)."""


class RowNames(NamedTuple):
    """What each row that is always there is called, and the unit of its force."""

    names: list[str]
    units: list[str]
    entries: list[int]


class CompiledModel(NamedTuple):
    """Tables with what a person needs to read their results."""

    model: Model
    step: float
    settings: SolverSettings
    tables: Tables
    rows: RowNames
    body_index: dict[str, int]
    coordinate_index: dict[str, int]
    center_of_mass: Floats
    """(n, 3) in body frames."""
    notes: tuple[str, ...]
    """What was softened or raised, in sentences."""


def compile_model(
    model: Model,
    *,
    step: float,
    settings: SolverSettings | None = None,
    drives: Sequence[Drive] = (),
    anchors: Softness | None = None,
    residuals: Sequence[Residual] = (),
) -> CompiledModel:
    """Tables of a valid model for a step [s]; `anchors` gives every marker rows of that softness."""
    check_step(step)
    validate(model)
    settings = settings or SolverSettings()
    body_index = {body.name: i for i, body in enumerate(model.bodies)}
    com = np.array([body.center_of_mass for body in model.bodies]).reshape(-1, 3)
    kinematic = np.array([body.kinematic for body in model.bodies], np.uint8)
    driven = _driven(model, drives)
    notes: list[str] = []
    joints, entries, names, units = compile_joints(model, body_index, com, kinematic > 0, step, driven)
    nets = _bodies_of_nets(model, body_index, kinematic)
    joints = _soften_loops(model, joints, nets, notes)
    bodies = _body_tables(model, body_index, kinematic, nets)
    anchor_tables = _anchor_tables(model, body_index, com, anchors, step, len(entries))
    for marker in model.markers if anchors else ():
        names += [f"anchor {marker.name} {axis}" for axis in "xyz"]
        units += ["N"] * 3
        entries += [1] * 3
    residual_tables = _residual_tables(residuals, body_index, bodies.mass, step, len(entries))
    for residual in residuals:
        names.append(f"residual {residual.body} {'xyz'[residual.axis % 3]}")
        units.append("N" if residual.axis < 3 else "N m")
        entries.append(1)
    shapes = compile_shapes(model, body_index)
    tables = Tables(
        bodies,
        joints,
        shapes,
        anchor_tables,
        residual_tables,
        _contact_tables(shapes, bodies, settings, step, len(entries)),
        np.array(model.gravity, float),
        np.array(
            [
                settings.contact_margin,
                settings.bounce_speed,
                settings.push_out_speed,
                settings.friction_tolerance,
                settings.marker_speed_limit**2,
                step,
            ]
        ),
        np.array(
            [settings.friction_solves, settings.refine, settings.sweeps if settings.solver == "sweeps" else 0],
            np.int64,
        ),
    )
    coordinate_index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
    return CompiledModel(
        model, step, settings, tables, RowNames(names, units, entries), body_index, coordinate_index, com, tuple(notes)
    )


def _driven(model: Model, drives: Sequence[Drive]) -> set[str]:
    known = {coordinate.name for coordinate in model.coordinates}
    seen: set[str] = set()
    for drive in drives:
        if drive.coordinate not in known:
            raise ModelError(unknown_name("coordinate", drive.coordinate, sorted(known)) + " (asked for by a drive)")
        if drive.coordinate in seen:
            raise ModelError(f"coordinate {drive.coordinate!r} has two drives; give it one")
        seen.add(drive.coordinate)
    return seen


def _bodies_of_nets(model: Model, body_index: dict[str, int], kinematic: NDArray[np.uint8]) -> set[int]:
    """Bodies joined, not by way of bodies whose motion is given, to others with more than NET_LOOPS loops in all."""
    pairs = [(body_index[joint.child], body_index.get(joint.parent, -1)) for joint in model.joints]
    ends = [tuple(b for b in pair if b >= 0 and not kinematic[b]) for pair in pairs]
    loops = [pair[0] for pair, joint in zip(ends, model.joints, strict=True) if pair and joint.closes_loop]
    if len(loops) <= NET_LOOPS:
        return set()
    beside: dict[int, list[int]] = {b: [] for b in range(len(kinematic))}
    for pair in ends:
        if len(pair) == 2:
            beside[pair[0]].append(pair[1])
            beside[pair[1]].append(pair[0])
    nets: set[int] = set()
    left = set(loops)
    while left:
        reached, waiting = {min(left)}, [min(left)]
        while waiting:
            new = set(beside[waiting.pop()]) - reached
            reached |= new
            waiting += sorted(new)
        if sum(b in reached for b in loops) > NET_LOOPS:
            nets |= reached
        left -= reached
    return nets


def _body_tables(
    model: Model, body_index: dict[str, int], kinematic: NDArray[np.uint8], nets: set[int]
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
        touched = sorted({body_index.get(name, -1) for joint in pair for name in (joint.child, joint.parent)} - {-1})
        solved = [b for b in touched if not kinematic[b]]
        links += [(a, b) for i, a in enumerate(solved) for b in solved[:i]]
    return BodyTables(
        mass=np.array([body.mass for body in model.bodies], float),
        inertia=np.array([body.inertia for body in model.bodies], float).reshape(-1, 3, 3),
        kinematic=kinematic,
        tree_parent=parent,
        links=np.array(links, np.int64).reshape(-1, 2),
    )


def _soften_loops(model: Model, joints: JointTables, nets: set[int], notes: list[str]) -> JointTables:
    """Raise hard loop-closing rows, and those of nets, to a slope at which redundant ones still have an answer.

    With it the bodies of a net can go in any order, which saves nine tenths of the work (`graph`).
    """
    beta = joints.beta.copy()
    lightest = min((body.mass for body in model.bodies if not body.kinematic), default=1.0)
    netted = 0
    for j, joint in enumerate(model.joints):
        in_net = joints.child[j] in nets or joints.parent[j] in nets
        if (joint.closes_loop or in_net) and beta[j] < LOOP_FLOOR / lightest:
            beta[j] = LOOP_FLOOR / lightest
            netted += in_net
            if not in_net:
                notes.append(f"joint {joint.name!r} closes a loop: its rows are softened to {beta[j]:.1e} s/kg")
    if netted:
        notes.append(f"{netted} joints make a net: their rows are softened to {LOOP_FLOOR / lightest:.1e} s/kg")
    return joints._replace(beta=beta)


def _anchor_tables(
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
            raise ModelError(unknown_name("body", residual.body, body_index) + " (asked for by a residual)")
        if residual.axis not in range(6):
            raise SettingsError(f"residual on {residual.body!r}: axis is {residual.axis}; allowed: 0 to 5")
        alpha, beta = residual.softness.at_step(step)
        bounded = residual.limit < np.inf
        alphas.append(alpha)
        betas.append(max(beta, FLOOR / mass[body_index[residual.body]]) if bounded else beta)
    return ResidualTables(
        body=np.array([body_index[r.body] for r in residuals], np.int64),
        axis=np.array([r.axis for r in residuals], np.int64),
        row=first_row + np.arange(len(residuals)),
        alpha=np.array(alphas),
        beta=np.array(betas),
        limit=np.array([r.limit * step for r in residuals]),
    )


def _contact_tables(
    shapes: ShapeTables, bodies: BodyTables, settings: SolverSettings, step: float, first_row: int
) -> ContactTables:
    """Compliances of the two sides add up; the share of the error corrected is weighted by them."""
    soft = [Softness(k, d, erp, None if np.isnan(cfm) else cfm).at_step(step) for k, d, erp, cfm in shapes.soft]
    alpha, beta = np.array(soft, float).reshape(-1, 2).T.copy()
    a, b = shapes.pair_a, shapes.pair_b
    total = beta[a] + beta[b]
    weight = np.divide(beta[a], total, out=np.full(len(a), 0.5), where=total > 0.0)
    free = (shapes.body >= 0) & ~bodies.kinematic[shapes.body].astype(bool)
    inverse = np.where(free, 1.0 / bodies.mass[shapes.body], 0.0)
    floor = FLOOR * (inverse[a] + inverse[b])
    return ContactTables(
        alpha=weight * alpha[a] + (1.0 - weight) * alpha[b],
        beta=np.maximum(total, floor),
        tangent_beta=np.maximum(settings.tangent_softness * total, floor),
        first_row=np.array([first_row], np.int64),
        rows_each=np.array([6 if np.any(shapes.pair_rolling > 0.0) else 3], np.int64),
    )

"""Writer of MuJoCo's models (MJCF).

Every coordinate becomes a hinge or slide of the same name and value, so that MuJoCo's qpos are our coordinates; markers
become sites; masses are stated, not left to the geoms. The default pose is the keyframe `default`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.files.text import write_text
from borelli.files.xml import Element, make_element, format_xml
from borelli.model.formats.mjcf.bodies import NO_LIMIT
from borelli.model.formats.mjcf.defaults import Settings
from borelli.model.formats.mjcf.geoms import bounded
from borelli.model.formats.mjcf.joints import Move
from borelli.model.formats.mjcf.write_joints import (
    Follower,
    Ranges,
    carried_by,
    counted_from,
    fitted,
    passed_over,
    working_ranges,
)
from borelli.model.formats.mjcf.write_muscles import MuscleParts, Sites, muscle_parts, numbers
from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape, Surface, WrapObject
from borelli.model.transforms import compose, inverse, orientation_from_matrix
from borelli.model.validate import inertia_problem, validate

Array = NDArray[np.float64]

FLAT = 1e-9
"""Share by which the largest moment of inertia must stay below the sum of the others not to be flat."""
ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow."""
LEAST = 1e-12
"""Mass [kg] and moment of inertia [kg m^2] given to moving bodies without: MuJoCo wants more than 1e-15."""


@dataclass(slots=True)
class _Writer:
    """What is gathered while bodies are written."""

    model: Model
    sites: Sites
    children: dict[str, list[Joint]]
    ranges: Ranges
    passed: set[str]
    refs: dict[str, float] = field(default_factory=dict)
    followers: list[Follower] = field(default_factory=list)
    drivers: list[Coordinate] = field(default_factory=list)
    misfit: dict[str, float] = field(default_factory=dict)
    order: list[Coordinate] = field(default_factory=list)
    """Scalar joints as MuJoCo numbers them; a body that floats free is in `floating`."""
    wraps: list[WrapObject] = field(default_factory=list)
    """Those that need a geom of their own."""
    meshes: list[Element] = field(default_factory=list)
    geom_names: set[str] = field(default_factory=set)
    light: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)
    floating: list[str] = field(default_factory=list)


def write_mjcf(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes the model as an MJCF file; gives back sentences on what MuJoCo cannot be told."""
    text, notes = mjcf_text(model)
    write_text(text, path)
    return notes


def mjcf_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """The model as the text of an MJCF file, and sentences on what MuJoCo cannot be told."""
    validate(model, sound_masses=False)
    children: dict[str, list[Joint]] = {}
    for joint in model.joints:
        if not joint.closes_loop:
            children.setdefault(joint.parent, []).append(joint)
    sites = Sites({marker.name: (marker.body, marker.position) for marker in model.markers})
    writer = _Writer(model, sites, children, working_ranges(model), passed_over(model))
    writer.wraps = [w for w in model.wrap_objects if w.kind in ("sphere", "cylinder") and not _is_shape(model, w)]
    writer.geom_names = {wrap.name for wrap in writer.wraps}
    muscles = muscle_parts(model, sites)
    loops = _loops(model, sites)
    world = _world(writer)
    equality = [
        *(_follower(writer, follower) for follower in writer.followers),
        *_couplings(writer),
        *_locks(writer),
        *loops,
    ]
    root = make_element(
        "mujoco",
        make_element("compiler", angle="radian", autolimits="true"),
        make_element("option", gravity=numbers(*model.gravity)),
        *_section("asset", writer.meshes),
        world,
        *_section("equality", equality),
        *_section("tendon", muscles.tendons),
        *_section("actuator", muscles.actuators),
        *_section("keyframe", _default_pose(writer)),
        model=model.name,
    )
    text, notes = format_xml(root), _notes(writer, muscles)
    legal = ILLEGAL.sub("_", text)
    if legal != text:
        notes.append("characters in names that XML does not allow are written as _")
    return legal, tuple(notes)


def _section(tag: str, children: Iterable[Element]) -> list[Element]:
    held = list(children)
    return [make_element(tag, *held)] if held else []


def _world(writer: _Writer) -> Element:
    """The tree of bodies with what stands on the ground."""
    model = writer.model
    hung = {joint.child for joint in model.joints if not joint.closes_loop}
    parts = [_geom(writer, shape, GROUND) for shape in model.ground]
    parts += _marks(writer, GROUND)
    for joint in writer.children.get(GROUND, ()):
        parts.append(_body(writer, joint))
    for body in model.bodies:
        if body.name not in hung:
            parts.append(_loose_body(writer, body))
    parts += [_driver(writer, coordinate) for coordinate in writer.drivers]
    return make_element("worldbody", *parts)


def _body(writer: _Writer, joint: Joint) -> Element:
    """The body a joint carries; bodies that hold nothing are passed over on the way to it."""
    carried = carried_by(joint, writer.ranges)
    while joint.child in writer.passed:
        (joint,) = writer.children[joint.child]
        carried = carried.before(carried_by(joint, writer.ranges))
    body = writer.model.body(joint.child)
    writer.followers += carried.followers
    writer.drivers += carried.drivers
    writer.misfit |= carried.misfit
    joints = [_joint(writer, move) for move in carried.moves]
    return _body_element(writer, body, carried.place, joints, moves=bool(joints))


def _loose_body(writer: _Writer, body: Body) -> Element:
    """A body on no joint: it moves as prescribed, or freely."""
    if body.kinematic:
        element = _body_element(writer, body, body.frame, [], moves=False)
        element.attributes["mocap"] = "true"
        return element
    writer.floating.append(body.name)
    return _body_element(writer, body, body.frame, [make_element("freejoint", name=f"{body.name}_free")], moves=True)


def _body_element(writer: _Writer, body: Body, place: Frame, joints: list[Element], *, moves: bool) -> Element:
    inner = [_body(writer, joint) for joint in writer.children.get(body.name, ())]
    return make_element(
        "body",
        *joints,
        _inertial(writer, body, moves),
        *(_geom(writer, shape, body.name) for shape in body.shapes),
        *_marks(writer, body.name),
        *inner,
        name=body.name,
        **_placed(place),
    )


def _placed(frame: Frame) -> dict[str, str]:
    still = {} if frame.orientation == (1.0, 0.0, 0.0, 0.0) else {"quat": numbers(*frame.orientation)}
    return {"pos": numbers(*frame.position), **still}


def _joint(writer: _Writer, move: Move) -> Element:
    coordinate = move.coordinate
    writer.order.append(coordinate)
    writer.refs[coordinate.name] = move.offset
    extra = {} if move.offset == 0.0 else {"ref": numbers(move.offset)}
    if coordinate.lower > -inf or coordinate.upper < inf:
        extra["range"] = numbers(max(coordinate.lower, -NO_LIMIT), min(coordinate.upper, NO_LIMIT))
        extra["limited"] = "true"
    return make_element(
        "joint",
        name=coordinate.name,
        type="hinge" if move.turns else "slide",
        pos=numbers(*move.anchor),
        axis=numbers(*move.axis),
        **extra,
    )


def _driver(writer: _Writer, coordinate: Coordinate) -> Element:
    """A body of almost no mass whose only joint is a coordinate that nothing moves by as much as itself."""
    move = Move(coordinate, coordinate.rotational, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    light = make_element("inertial", pos="0 0 0", mass=numbers(LEAST), diaginertia=numbers(LEAST, LEAST, LEAST))
    return make_element("body", _joint(writer, move), light, name=f"{coordinate.name}_driver")


def _inertial(writer: _Writer, body: Body, moves: bool) -> Element:
    inertia = np.array(body.inertia)
    mass = body.mass
    if body.mass > 0.0 and inertia_problem(inertia) and np.any(inertia):
        writer.unsound.append(body.name)
        mended = bounded(
            Settings(balance_inertia=True, least_inertia=LEAST), MassProperties(mass, np.zeros(3), inertia)
        )
        inertia = mended.inertia
    if moves and (mass < LEAST or np.linalg.eigvalsh(inertia)[0] < LEAST):
        writer.light.append(body.name)
        mass, inertia = max(mass, LEAST), inertia + LEAST * np.eye(3)
    return make_element("inertial", pos=numbers(*body.center_of_mass), mass=numbers(mass), **_moments(inertia))


def _moments(inertia: Array) -> dict[str, str]:
    """An inertia as attributes; a flat body's by its axes, where rounding could make the largest moment too large."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    if not any((xy, xz, yz)):
        return {"diaginertia": numbers(xx, yy, zz)}
    moments, axes = np.linalg.eigh(inertia)
    if moments[2] < (1.0 - FLAT) * (moments[0] + moments[1]):
        return {"fullinertia": numbers(xx, yy, zz, xy, xz, yz)}
    moments[2] = min(moments[2], moments[0] + moments[1])
    turn = axes * np.sign(np.linalg.det(axes))
    return {"diaginertia": numbers(*moments), "quat": numbers(*orientation_from_matrix(turn))}


def _marks(writer: _Writer, body: str) -> list[Element]:
    """Sites and wrap geoms of a body."""
    markers = [(marker.name, marker.position) for marker in writer.model.markers if marker.body == body]
    sites = [
        make_element("site", name=name, pos=numbers(*place)) for name, place in [*markers, *writer.sites.added.get(body, [])]
    ]
    return [*sites, *(_wrap(wrap) for wrap in writer.wraps if wrap.body == body)]


def _is_shape(model: Model, wrap: WrapObject) -> bool:
    """Whether a shape of its body is the wrap object too: one geom is both then."""
    shapes = model.ground if wrap.body == GROUND else model.body(wrap.body).shapes
    return any((s.name, s.kind, s.size, s.frame) == (wrap.name, wrap.kind, wrap.size, wrap.frame) for s in shapes)


def _wrap(wrap: WrapObject) -> Element:
    size = numbers(*wrap.size)
    still = {"contype": "0", "conaffinity": "0", "mass": "0", "group": "3"}
    return make_element("geom", name=wrap.name, type=wrap.kind, size=size, **_placed(wrap.frame), **still)


def _geom(writer: _Writer, shape: Shape, body: str) -> Element:
    """A shape; without self-collision the bodies' shapes meet those of the ground only."""
    masks = (0, 1) if body == GROUND else (1, 0)
    if writer.model.self_collision:
        masks = (1, 1)
    masks = masks if shape.collides else (0, 0)
    extra = {}
    if shape.name and shape.name not in writer.geom_names:
        writer.geom_names.add(shape.name)
        extra["name"] = shape.name
    if shape.kind == "mesh":
        name = f"mesh{len(writer.meshes) + 1}"
        writer.meshes.append(make_element("mesh", name=name, vertex=numbers(*(c for v in shape.vertices for c in v))))
        extra["mesh"] = name
    else:
        extra["size"] = numbers(*shape.size) if shape.size else "0 0 1"
    return make_element(
        "geom",
        type=shape.kind,
        **_placed(shape.frame),
        density=numbers(shape.density),
        friction=numbers(shape.surface.friction, 0.005, 0.0001),
        contype=str(masks[0]),
        conaffinity=str(masks[1]),
        **extra,
    )


def _equality(name: str, first: str, second: str | None, powers: Iterable[float]) -> Element:
    on = {} if second is None else {"joint2": second}
    return make_element("joint", name=name, joint1=first, **on, polycoef=numbers(*powers))


def _follower(writer: _Writer, follower: Follower) -> Element:
    powers = counted_from(follower.powers, writer.refs[follower.on], writer.refs[follower.coordinate])
    return _equality(f"{follower.coordinate}_follows", follower.coordinate, follower.on, powers)


def _couplings(writer: _Writer) -> list[Element]:
    elements = []
    for coupling in writer.model.couplings:
        powers, misfit = fitted(coupling.function, writer.ranges[coupling.on])
        if misfit > 0.0:
            writer.misfit[coupling.coordinate] = misfit
        counted = counted_from(powers, writer.refs[coupling.on], writer.refs[coupling.coordinate])
        elements.append(_equality(coupling.name, coupling.coordinate, coupling.on, counted))
    return elements


def _locks(writer: _Writer) -> list[Element]:
    """Locked coordinates are held at their defaults, unless a coupling holds them already."""
    coupled = {coupling.coordinate for coupling in writer.model.couplings}
    return [
        _equality(f"{c.name}_locked", c.name, None, (c.default - writer.refs[c.name], 0.0, 0.0, 0.0, 0.0))
        for c in writer.order
        if c.locked and c.name not in coupled
    ]


def _loops(model: Model, sites: Sites) -> list[Element]:
    """Joints that close loops: balls as connected points, fixed ones as welds."""
    elements = []
    for joint in model.joints:
        if not joint.closes_loop:
            continue
        if joint.kind == "ball":
            first = sites.at(joint.child, joint.child_frame.position, f"{joint.name}_end1")
            second = sites.at(joint.parent, joint.parent_frame.position, f"{joint.name}_end2")
            elements.append(make_element("connect", name=joint.name, site1=first, site2=second))
        elif joint.kind == "fixed":
            between = compose(joint.child_frame, inverse(joint.parent_frame))
            other = "world" if joint.parent == GROUND else joint.parent
            pose = numbers(*between.position, *between.orientation)
            elements.append(make_element("weld", name=joint.name, body1=joint.child, body2=other, relpose=pose))
    return elements


def _default_pose(writer: _Writer) -> list[Element]:
    """The default pose as a keyframe, unless it is the one the file states anyhow."""
    if writer.floating or all(c.default == writer.refs[c.name] for c in writer.order):
        return []
    values = {follower.coordinate: follower for follower in writer.followers}
    known = {c.name: c.default for c in writer.order}
    stands = []
    for coordinate in writer.order:
        follower = values.get(coordinate.name)
        stands.append(
            coordinate.default
            if follower is None
            else float(np.polynomial.Polynomial(follower.powers)(known[follower.on]))
        )
    return [make_element("key", name="default", qpos=numbers(*stands))]


def _notes(writer: _Writer, muscles: MuscleParts) -> list[str]:
    """What MuJoCo could not be told, or is told otherwise."""
    notes = []
    model = writer.model
    if writer.misfit:
        worst = max(writer.misfit, key=lambda name: writer.misfit[name])
        notes.append(
            f"MJCF has polynomials of order four only: {len(writer.misfit)} functions are fitted, the worst, of "
            f"{worst!r}, to {writer.misfit[worst]:.2g} rad or m"
        )
    if writer.followers:
        notes.append(f"{len(writer.followers)} parts of motions are joints of their own, held to their coordinate")
    if writer.drivers:
        names = ", ".join(c.name for c in writer.drivers[:6])
        notes.append(f"bodies of almost no mass carry coordinates that nothing moves by as much as themselves: {names}")
    if writer.passed:
        notes.append(f"bodies without mass between joints are not written: {', '.join(sorted(writer.passed)[:6])}")
    if writer.light:
        notes.append(f"moving bodies without mass or inertia get {LEAST:g} kg, kg m^2: {', '.join(writer.light[:6])}")
    if writer.unsound:
        notes.append(
            f"inertias that no mass has are changed to the nearest MuJoCo takes: {', '.join(writer.unsound[:6])}"
        )
    if writer.floating:
        notes.append(f"bodies on no joint are written with a free joint: {', '.join(writer.floating[:6])}")
    left = [j.name for j in model.joints if j.closes_loop and j.kind not in ("ball", "fixed")]
    if left:
        notes.append(f"joints that close loops and are neither ball nor fixed are not written: {', '.join(left[:6])}")
    notes += [f"not written: {what} ({count})" for what, count in muscles.lost.items()]
    shapes = [shape for body in model.bodies for shape in body.shapes] + list(model.ground)
    if any(shape.surface != Surface(friction=shape.surface.friction) for shape in shapes):
        notes.append("not written: restitution, rolling friction, softness and motion of surfaces")
    return notes

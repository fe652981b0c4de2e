"""Writer of MuJoCo's models (MJCF).

Every coordinate becomes a hinge or slide of the same name and value, so that MuJoCo's qpos are the model's coordinates;
markers become sites; masses are stated and not left to the geoms. The default pose is the keyframe `default`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np

from borelli.files.atomic import write_atomic
from borelli.files.xml import Element, format_xml, make_element
from borelli.model.formats.mjcf.bodies import NO_LIMIT
from borelli.model.formats.mjcf.defaults import Settings
from borelli.model.formats.mjcf.geoms import bounded
from borelli.model.formats.mjcf.joints import AxisMotion
from borelli.model.formats.mjcf.write_joints import (
    DependentCoordinate,
    Ranges,
    body_motion,
    fit_polynomial,
    massless_bodies,
    shift_polynomial,
    working_ranges,
)
from borelli.model.formats.mjcf.write_muscles import MuscleParts, Sites, muscle_parts, numbers
from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape, Surface, WrapObject
from borelli.model.transforms import Array, compose, inverse, orientation_from_matrix
from borelli.model.validate import inertia_problem, validate

FLAT_TOLERANCE = 1e-9
"""Fraction below which a body's largest moment of inertia counts as the sum of the others (flat body)."""
ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow."""
MIN_MASS = 1e-12
"""Mass [kg] and moment of inertia [kg m^2] of massless moving bodies: MuJoCo requires more than 1e-15."""


@dataclass(slots=True)
class _Writer:
    model: Model
    sites: Sites
    children: dict[str, list[Joint]]
    ranges: Ranges
    skipped: set[str]
    refs: dict[str, float] = field(default_factory=dict)
    dependents: list[DependentCoordinate] = field(default_factory=list)
    drivers: list[Coordinate] = field(default_factory=list)
    fit_error: dict[str, float] = field(default_factory=dict)
    order: list[Coordinate] = field(default_factory=list)
    """Scalar joints in MuJoCo's order; free bodies are in `floating`."""
    wraps: list[WrapObject] = field(default_factory=list)
    """Wrap objects that need a geom of their own."""
    meshes: list[Element] = field(default_factory=list)
    geom_names: set[str] = field(default_factory=set)
    light: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)
    floating: list[str] = field(default_factory=list)


def write_mjcf(model: Model, path: str | Path, *, overwrite: bool = False) -> tuple[str, ...]:
    """Write the model as an MJCF file.

    Args:
        model: Model of any source.
        path: File to write (.xml).
        overwrite: Whether an existing file is replaced.

    Returns:
        Sentences on what MuJoCo cannot represent.
    """
    text, notes = mjcf_text(model)
    write_atomic(text, path, overwrite=overwrite)
    return notes


def mjcf_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """Return the model as the text of an MJCF file, and sentences on what MuJoCo cannot represent."""
    validate(model, sound_masses=False)
    children: dict[str, list[Joint]] = {}
    for joint in model.joints:
        if not joint.closes_loop:
            children.setdefault(joint.parent, []).append(joint)
    sites = Sites({marker.name: (marker.body, marker.position) for marker in model.markers})
    writer = _Writer(model, sites, children, working_ranges(model), massless_bodies(model))
    writer.wraps = [w for w in model.wrap_objects if w.kind in ("sphere", "cylinder") and not _is_shape(model, w)]
    writer.geom_names = {wrap.name for wrap in writer.wraps}
    muscles = muscle_parts(model, sites)
    loops = _loops(model, sites)
    world = _world(writer)
    equality = [*_couplings(writer), *_locks(writer), *loops]
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
        notes.append("Characters in names that XML does not allow are written as _.")
    return legal, tuple(notes)


def _section(tag: str, children: Iterable[Element]) -> list[Element]:
    elements = list(children)
    return [make_element(tag, *elements)] if elements else []


def _world(writer: _Writer) -> Element:
    model = writer.model
    connected = {joint.child for joint in model.joints if not joint.closes_loop}
    parts = [_geom(writer, shape, GROUND) for shape in model.ground] + _marks(writer, GROUND)
    parts += [_body(writer, joint) for joint in writer.children.get(GROUND, ())]
    parts += [_loose_body(writer, body) for body in model.bodies if body.name not in connected]
    parts += [_driver(writer, coordinate) for coordinate in writer.drivers]
    return make_element("worldbody", *parts)


def _body(writer: _Writer, joint: Joint) -> Element:
    """Return the child of a joint; massless bodies with nothing attached are skipped."""
    motion = body_motion(joint, writer.ranges)
    while joint.child in writer.skipped:
        (joint,) = writer.children[joint.child]
        motion = motion.before(body_motion(joint, writer.ranges))
    body = writer.model.body(joint.child)
    writer.dependents += motion.dependents
    writer.drivers += motion.drivers
    writer.fit_error |= motion.fit_error
    joints = [_joint(writer, move) for move in motion.moves]
    return _body_element(writer, body, motion.pose, joints, moves=bool(joints))


def _loose_body(writer: _Writer, body: Body) -> Element:
    if body.kinematic:
        element = _body_element(writer, body, body.frame, [], moves=False)
        element.attributes["mocap"] = "true"
        return element
    writer.floating.append(body.name)
    return _body_element(writer, body, body.frame, [make_element("freejoint", name=f"{body.name}_free")], moves=True)


def _body_element(writer: _Writer, body: Body, pose: Frame, joints: list[Element], *, moves: bool) -> Element:
    inner = [_body(writer, joint) for joint in writer.children.get(body.name, ())]
    return make_element(
        "body",
        *joints,
        _inertial(writer, body, moves),
        *(_geom(writer, shape, body.name) for shape in body.shapes),
        *_marks(writer, body.name),
        *inner,
        name=body.name,
        **_pose_attributes(pose),
    )


def _pose_attributes(frame: Frame) -> dict[str, str]:
    constant_attributes = {} if frame.orientation == (1.0, 0.0, 0.0, 0.0) else {"quat": numbers(*frame.orientation)}
    return {"pos": numbers(*frame.position), **constant_attributes}


def _joint(writer: _Writer, move: AxisMotion) -> Element:
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
        type="hinge" if move.rotational else "slide",
        pos=numbers(*move.anchor),
        axis=numbers(*move.axis),
        **extra,
    )


def _driver(writer: _Writer, coordinate: Coordinate) -> Element:
    """Return an almost massless body whose only joint is a coordinate that no axis equals."""
    move = AxisMotion(coordinate, coordinate.rotational, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    moments = numbers(MIN_MASS, MIN_MASS, MIN_MASS)
    light = make_element("inertial", pos="0 0 0", mass=numbers(MIN_MASS), diaginertia=moments)
    return make_element("body", _joint(writer, move), light, name=f"{coordinate.name}_driver")


def _inertial(writer: _Writer, body: Body, moves: bool) -> Element:
    inertia = np.array(body.inertia)
    mass = body.mass
    if body.mass > 0.0 and inertia_problem(inertia) and np.any(inertia):
        writer.unsound.append(body.name)
        settings = Settings(balance_inertia=True, min_inertia=MIN_MASS)
        inertia = bounded(settings, MassProperties(mass, np.zeros(3), inertia)).inertia
    if moves and (mass < MIN_MASS or np.linalg.eigvalsh(inertia)[0] < MIN_MASS):
        writer.light.append(body.name)
        mass, inertia = max(mass, MIN_MASS), inertia + MIN_MASS * np.eye(3)
    return make_element("inertial", pos=numbers(*body.center_of_mass), mass=numbers(mass), **_moments(inertia))


def _moments(inertia: Array) -> dict[str, str]:
    """Return an inertia as attributes; by principal axes for a flat body, whose full inertia rounding could spoil."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    if not any((xy, xz, yz)):
        return {"diaginertia": numbers(xx, yy, zz)}
    moments, axes = np.linalg.eigh(inertia)
    if moments[2] < (1.0 - FLAT_TOLERANCE) * (moments[0] + moments[1]):
        return {"fullinertia": numbers(xx, yy, zz, xy, xz, yz)}
    moments[2] = min(moments[2], moments[0] + moments[1])
    rotation = axes * np.sign(np.linalg.det(axes))
    return {"diaginertia": numbers(*moments), "quat": numbers(*orientation_from_matrix(rotation))}


def _marks(writer: _Writer, body: str) -> list[Element]:
    markers = [(marker.name, marker.position) for marker in writer.model.markers if marker.body == body]
    points = [*markers, *writer.sites.added.get(body, [])]
    sites = [make_element("site", name=name, pos=numbers(*position)) for name, position in points]
    return [*sites, *(_wrap(wrap) for wrap in writer.wraps if wrap.body == body)]


def _is_shape(model: Model, wrap: WrapObject) -> bool:
    """Return True if a shape of its body equals the wrap object: one geom represents both."""
    shapes = model.ground if wrap.body == GROUND else model.body(wrap.body).shapes
    return any((s.name, s.kind, s.size, s.frame) == (wrap.name, wrap.kind, wrap.size, wrap.frame) for s in shapes)


def _wrap(wrap: WrapObject) -> Element:
    own = {"size": numbers(*wrap.size), **_pose_attributes(wrap.frame)}
    no_contact = {"contype": "0", "conaffinity": "0", "mass": "0", "group": "3"}
    return make_element("geom", name=wrap.name, type=wrap.kind, **own, **no_contact)


def _geom(writer: _Writer, shape: Shape, body: str) -> Element:
    """Return the geom of a shape; without self-collision, shapes of bodies collide with the ground only."""
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
        **_pose_attributes(shape.frame),
        density=numbers(shape.density),
        friction=numbers(shape.surface.friction, 0.005, 0.0001),
        contype=str(masks[0]),
        conaffinity=str(masks[1]),
        **extra,
    )


def _equality(name: str, first: str, second: str | None, powers: Iterable[float]) -> Element:
    on = {} if second is None else {"joint2": second}
    return make_element("joint", name=name, joint1=first, **on, polycoef=numbers(*powers))


def _couplings(writer: _Writer) -> list[Element]:
    """Return equalities for axes that depend on a coordinate, and for couplings of coordinates."""
    dependents = [(f"{dependent.coordinate}_follows", dependent) for dependent in writer.dependents]
    for coupling in writer.model.couplings:
        powers, fit_error = fit_polynomial(coupling.function, writer.ranges[coupling.on])
        if fit_error > 0.0:
            writer.fit_error[coupling.coordinate] = fit_error
        dependents.append((coupling.name, DependentCoordinate(coupling.coordinate, coupling.on, powers)))
    return [
        _equality(name, d.coordinate, d.on, shift_polynomial(d.powers, writer.refs[d.on], writer.refs[d.coordinate]))
        for name, d in dependents
    ]


def _locks(writer: _Writer) -> list[Element]:
    """Return equalities for locked coordinates, unless a coupling determines them."""
    coupled = {coupling.coordinate for coupling in writer.model.couplings}
    return [
        _equality(f"{c.name}_locked", c.name, None, (c.default - writer.refs[c.name], 0.0, 0.0, 0.0, 0.0))
        for c in writer.order
        if c.locked and c.name not in coupled
    ]


def _loops(model: Model, sites: Sites) -> list[Element]:
    """Return joints that close loops: balls as connected points, fixed ones as welds."""
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
    """Return the default pose as a keyframe, unless it is the pose of the file."""
    if writer.floating or all(c.default == writer.refs[c.name] for c in writer.order):
        return []
    values = {c.name: c.default for c in writer.order}
    own = {d.coordinate: float(np.polynomial.Polynomial(d.powers)(values[d.on])) for d in writer.dependents}
    return [make_element("key", name="default", qpos=numbers(*(values | own).values()))]


def _notes(writer: _Writer, muscles: MuscleParts) -> list[str]:
    model, fits = writer.model, writer.fit_error
    worst = max(fits, key=lambda name: fits[name], default="")
    shapes = [shape for body in model.bodies for shape in body.shapes] + list(model.ground)
    listed = {
        "Almost massless bodies are added for coordinates that no axis equals": [c.name for c in writer.drivers],
        "Massless bodies between joints are not written": sorted(writer.skipped),
        f"Massless moving bodies get {MIN_MASS:g} kg and kg m^2": writer.light,
        "Invalid inertias are changed to the nearest that MuJoCo accepts": writer.unsound,
        "Bodies without a joint get a free joint": writer.floating,
        "Joints that close loops are not written unless ball or fixed": [
            j.name for j in model.joints if j.closes_loop and j.kind not in ("ball", "fixed")
        ],
    }
    notes = []
    if fits:
        notes.append(
            f"MJCF has only polynomials of order four: {len(fits)} functions are fitted, with an error "
            f"of up to {fits[worst]:.2g} rad or m for {worst!r}."
        )
    if writer.dependents:
        notes.append(f"{len(writer.dependents)} axes of motions are written as joints that depend on their coordinate.")
    notes += [f"{text}: {', '.join(names[:6])}." for text, names in listed.items() if names]
    notes += [f"Not written: {kind} ({count})." for kind, count in muscles.unwritten.items()]
    if any(shape.surface != Surface(friction=shape.surface.friction) for shape in shapes):
        notes.append("Not written: restitution, rolling friction, softness and motion of surfaces.")
    return notes

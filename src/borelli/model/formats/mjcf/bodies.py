"""Bodies of an MJCF file: the tree under `worldbody` with its joints, geoms and sites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf.defaults import Settings, Values
from borelli.model.formats.mjcf.geoms import Geom, Mesh, between, bounded, inertial, read_geom, transform_geom
from borelli.model.formats.mjcf.joints import AxisMotion, free_joint, joint_chain
from borelli.model.formats.parsing import Namer
from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Marker, Vector
from borelli.model.transforms import AXES, compose, orientation_matrix, vector

WORLD = "world"
MAX_BODIES, MAX_PARTS = 1500, 10_000
"""Bodies or joints, and elements of the tree; the largest known model has 101 and 2600."""
NO_LIMIT = 1e10
"""Joint limits beyond this [rad, deg or m] are ignored."""
MASSLESS = MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))


_COMMON = "name class user plugin"
_POSE = "pos quat axisangle xyaxes zaxis euler"
KNOWN = {
    "body": f"{_COMMON} {_POSE} childclass mocap gravcomp sleep",
    "inertial": f"{_POSE} mass diaginertia fullinertia",
    "joint": f"{_COMMON} type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit "
    "solreffriction solimpfriction stiffness range actuatorfrcrange actuatorgravcomp margin ref springref armature "
    "damping frictionloss",
    "freejoint": f"{_COMMON} group align",
    "site": f"{_COMMON} {_POSE} type group material size fromto rgba",
    "geom": f"{_COMMON} {_POSE} type contype conaffinity condim group priority size material friction mass density "
    "shellinertia solmix solref solimp margin gap fromto axis hfield mesh fitscale rgba fluidshape fluidcoef",
    "frame": f"{_POSE} name childclass",
}
"""Attributes of MJCF; MuJoCo does not accept others."""


@dataclass(frozen=True, slots=True)
class FileJoint:
    """Joint of the file: the meaning of its qpos."""

    name: str
    kind: str
    coordinates: tuple[str, ...]
    reference: Frame = Frame()
    """Pose of a free body in the file."""


@dataclass(slots=True)
class Tree:
    """Content of the tree of bodies, as far as it has been read."""

    settings: Settings
    meshes: Mapping[str, Mesh]
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    ground: list[Geom] = field(default_factory=list)
    file_joints: list[FileJoint] = field(default_factory=list)
    scalar_joints: dict[str, None] = field(default_factory=dict)
    """Hinges and slides in the order of the file; each is a coordinate of the same name."""
    geoms: dict[str, tuple[str, Geom]] = field(default_factory=dict)
    """Body and geom by the geom's name."""
    contact_masks: list[tuple[str, tuple[int, int]]] = field(default_factory=list)
    """Body and collision masks of every geom except those of the world."""
    body_names: dict[str, str] = field(default_factory=lambda: {WORLD: GROUND})
    """Name in the model by name in the file."""
    sites: dict[str, Marker] = field(default_factory=dict)
    namers: defaultdict[str, Namer] = field(default_factory=lambda: defaultdict(Namer))
    """Names in use, by kind of element."""
    meshes_used: set[str] = field(default_factory=set)
    meshes_missing: set[str] = field(default_factory=set)
    lost_mass: list[str] = field(default_factory=list)
    """Bodies whose mass depends on missing meshes."""
    inserted_bodies: list[str] = field(default_factory=list)
    """Bodies that require massless bodies before them."""
    lost_limits: list[str] = field(default_factory=list)
    references: dict[str, float] = field(default_factory=dict)
    """Coordinates in the pose of the file, where it is outside their range and so not the default pose."""
    passive: set[str] = field(default_factory=set)
    """Passive joint parameters that are not read."""

    def body(self, name: str, element: Element) -> str:
        """Return the model's name of a body of the file."""
        if name not in self.body_names:
            raise element.error(f"{element.tag.capitalize()}: {unknown_name('body', name, self.body_names)}")
        return self.body_names[name]

    def unique_name(self, kind: str, name: str) -> str:
        """Return the name, or a similar one that no other element of that kind has."""
        return self.namers[kind].unique(name)


@dataclass(frozen=True, slots=True)
class _Context:
    """Surroundings of an element: its body, its frame in the body, and its default class."""

    body: str
    frame: Frame
    childclass: str | None


@dataclass(slots=True)
class _Own:
    geoms: list[Geom] = field(default_factory=list)
    moves: list[AxisMotion] = field(default_factory=list)
    free: str | None = None
    joint_names: list[str] = field(default_factory=list)
    stated: MassProperties | None = None
    inner: list[tuple[Element, _Context]] = field(default_factory=list)


def read_tree(root: Element, settings: Settings, meshes: Mapping[str, Mesh]) -> Tree:
    """Return all bodies of a file with its includes expanded and its settings and meshes read."""
    tree = Tree(settings, meshes)
    _reserve_names(root, tree)
    for section in root.all("worldbody"):
        own = _Own()
        _read_children(tree, section, _Context(GROUND, Frame(), section.attributes.get("childclass")), own)
        tree.ground.extend(own.geoms)
        for element, context in own.inner:
            _read_body(tree, element, context)
    return tree


def _reserve_names(root: Element, tree: Tree) -> None:
    """Reserve all names of the file, so that generated names are unique, and note unknown attributes."""
    for section in root.all("worldbody"):
        for number, element in enumerate(section.walk()):
            if number > MAX_PARTS:
                raise element.error(f"The worldbody has more than {MAX_PARTS} elements.")
            known = KNOWN.get(element.tag, " ".join(element.attributes)).split()
            for unknown in element.attributes.keys() - set(known):
                tree.settings.notes.append(
                    f"Line {element.line}: {element.tag} has the attribute {unknown!r}, which is not part of MJCF."
                )
            if name := element.attributes.get("name"):
                kind = "joint" if element.tag == "freejoint" else element.tag
                tree.namers[kind].reserve(name)
                if kind == "joint":
                    tree.namers["coordinate"].reserve(name)


def _read_body(tree: Tree, element: Element, context: _Context) -> None:
    if len(tree.bodies) >= MAX_BODIES:
        raise element.error(f"The model has more than {MAX_BODIES} bodies.")
    name = _body_name(tree, element)
    childclass = element.attributes.get("childclass", context.childclass)
    values = Values(element, element.attributes)
    pose = compose(context.frame, tree.settings.frame(values))
    own = _Own()
    _read_children(tree, element, _Context(name, Frame(), childclass), own)
    mass = _mass(tree, name, own, pose)
    shapes = tuple(geom.shape for geom in own.geoms if geom.shape is not None and geom.kind != "plane")
    kinematic = values.flag("mocap", False)
    body = Body(name, *mass.fields(), shapes, pose if kinematic else Frame(), kinematic)
    if kinematic:
        tree.bodies.append(body)
    else:
        _add_body(tree, body, context.body, pose, own, element)
    for inner, where in own.inner:
        _read_body(tree, inner, where)


def _body_name(tree: Tree, element: Element) -> str:
    stated = element.attributes.get("name", "")
    if stated in tree.body_names:
        problem = "reserved" if stated == WORLD else "used twice"
        raise element.error(f"Body: The name {stated!r} is {problem}. Rename the body.")
    name = stated or tree.unique_name("body", f"body{len(tree.bodies) + 1}")
    if name == GROUND:
        name = tree.unique_name("body", "ground_body")
        tree.settings.notes.append(f"Body {GROUND!r} is renamed {name!r}: {GROUND!r} is the name of the world.")
    if stated:
        tree.body_names[stated] = name
    return name


def _add_body(tree: Tree, body: Body, parent: str, pose: Frame, own: _Own, element: Element) -> None:
    if own.free is not None:
        if own.moves or parent != GROUND:
            where = "next to other joints" if own.moves else f"in a child of {parent!r}"
            raise element.error(f"Body {body.name!r}: A free joint {where} is not possible, as in MuJoCo. Remove it.")
        suffixes = ("tx", "ty", "tz", "rx", "ry", "rz")
        coordinates = tuple(tree.unique_name("coordinate", f"{own.free}_{suffix}") for suffix in suffixes)
        tree.joints.append(free_joint(own.free, body.name, parent, pose, coordinates))
        tree.bodies.append(body)
        tree.file_joints.append(FileJoint(own.free, "free", coordinates, pose))
        return
    single = own.joint_names[0] if len(own.joint_names) == 1 else ""
    joints, between_bodies = joint_chain(body.name, parent, pose, own.moves, single)
    if single and len(joints) == 1 and joints[0].name != single:
        joints = [replace(joints[0], name=single)]  # a ball joint has three motions
    names = [j.name if j.name == single else tree.unique_name("joint", j.name) for j in joints]
    tree.joints.extend(replace(joint, name=name) for joint, name in zip(joints, names, strict=True))
    tree.bodies.extend([*between_bodies, body])
    if between_bodies:
        tree.inserted_bodies.append(body.name)


def _read_children(tree: Tree, element: Element, context: _Context, own: _Own) -> None:
    """Read the content of a body element, or of a `frame` within it."""
    for child in element.children:
        child.was_read = child.tag in ("frame", "body", "inertial", *_READERS)
        if child.tag == "frame":
            values = Values(child, child.attributes)
            frame = compose(context.frame, tree.settings.frame(values))
            childclass = child.attributes.get("childclass", context.childclass)
            _read_children(tree, child, _Context(context.body, frame, childclass), own)
        elif child.tag == "body":
            own.inner.append((child, context))
        elif child.tag == "inertial":
            own.stated = inertial(tree.settings, child).transformed(context.frame)
        elif child.tag in _READERS:
            _READERS[child.tag](tree, child, context, own)


def _read_geom(tree: Tree, element: Element, context: _Context, own: _Own) -> None:
    geom = read_geom(tree.settings, element, context.childclass, tree.meshes)
    if context.frame != Frame():
        geom = transform_geom(geom, context.frame)
    own.geoms.append(geom)
    if geom.name:
        tree.geoms[geom.name] = (context.body, geom)
    if context.body != GROUND:
        tree.contact_masks.append((context.body, geom.masks))
    if geom.mesh:
        tree.meshes_used.add(geom.mesh)
    if geom.mesh and geom.shape is None:
        tree.meshes_missing.add(geom.mesh)
    elif geom.shape is None:
        tree.settings.leave_out(element, f"geom of type {geom.kind}")
    elif geom.kind == "plane" and context.body != GROUND:
        tree.settings.leave_out(element, "plane fixed to a body")


def _read_site(tree: Tree, element: Element, context: _Context, own: _Own) -> None:
    values = tree.settings.values(element, context.childclass)
    ends = values.numbers("fromto", 6, 6)
    position = values.vector("pos") if ends is None else between(ends, values)[0].position
    name = values.text("name") or tree.unique_name("site", f"{context.body}_site")
    if context.frame != Frame():
        position = compose(context.frame, Frame(position)).position
    tree.sites[name] = Marker(name, context.body, position)
    tree.markers.append(tree.sites[name])


def _read_joint(tree: Tree, element: Element, context: _Context, own: _Own) -> None:
    if context.body == GROUND:
        raise element.error("The world cannot have joints. Move the joint to a body.")
    if len(tree.file_joints) >= MAX_BODIES:
        raise element.error(f"The model has more than {MAX_BODIES} joints.")
    values = tree.settings.values(element, context.childclass)
    kind = "free" if element.tag == "freejoint" else values.choice("type", "hinge", ("hinge", "slide", "ball", "free"))
    name = values.text("name") or tree.unique_name("joint", f"{context.body}_{kind}")
    own.joint_names.append(name)
    for passive in ("stiffness", "damping", "armature", "frictionloss"):
        if any(values.numbers(passive) or ()):
            tree.passive.add(passive)
    if kind == "free":
        own.free = name
        return
    anchor = compose(context.frame, Frame(values.vector("pos"))).position
    rotation = orientation_matrix(context.frame.orientation)
    if kind == "ball":  # three rotations about x, y and z, each rotated by the ones before
        coordinates = [Coordinate(tree.unique_name("coordinate", f"{name}_{letter}")) for letter in "xyz"]
        moves = [AxisMotion(c, True, anchor, axis) for c, axis in zip(coordinates, AXES, strict=True)]
        if _range(tree, values, 1.0) is not None:
            tree.lost_limits.append(name)
    else:
        moves = [_move(tree, values, name, kind, anchor, vector(rotation @ np.array(_axis(values))))]
        tree.scalar_joints[name] = None
    own.moves.extend(moves)
    tree.file_joints.append(FileJoint(name, kind, tuple(move.coordinate.name for move in moves)))


def _move(tree: Tree, values: Values, name: str, kind: str, anchor: Vector, axis: Vector) -> AxisMotion:
    rotational = kind == "hinge"
    unit = tree.settings.to_radians if rotational else 1.0
    offset = values.number("ref", 0.0) * unit
    lower, upper = _range(tree, values, unit) or (-inf, inf)
    default = min(max(offset, lower), upper)
    if default != offset:
        tree.references[name] = offset
    return AxisMotion(Coordinate(name, default, lower, upper, rotational=rotational), rotational, anchor, axis, offset)


def _axis(values: Values) -> Vector:
    axis = np.array(values.vector("axis", (0.0, 0.0, 1.0)))
    length = float(np.linalg.norm(axis))
    if length < 1e-14:
        raise values.element.error(f"Joint {values.text('name')!r}: The axis has no length. Give it a direction.")
    return vector(axis / length)


def _range(tree: Tree, values: Values, unit: float) -> tuple[float, float] | None:
    span = values.numbers("range", 2, 2)
    word = values.choice("limited", "auto", ("true", "false", "auto"))
    if span is None or word == "false" or (word == "auto" and not tree.settings.automatic_limits):
        return None
    lower, upper = (inf * v if abs(v) >= NO_LIMIT else v * unit for v in span)
    if word == "auto" and lower == upper == 0.0:
        return None
    if lower > upper:
        raise values.element.error(f"Joint {values.text('name')!r}: The range {span} is reversed. Swap its ends.")
    return lower, upper


def _mass(tree: Tree, name: str, own: _Own, pose: Frame) -> MassProperties:
    """Return the mass of a body as MuJoCo's compiler computes it."""
    settings = tree.settings
    first, last = settings.inertia_groups
    counted = [geom.mass for geom in own.geoms if first <= geom.group <= last]
    mass = own.stated
    if counted and (settings.inertia_from_geom == "true" or (mass is None and settings.inertia_from_geom == "auto")):
        if any(part is None for part in counted):
            tree.lost_mass.append(name)
        parts = [part for part in counted if part is not None and part.mass > 0.0]
        mass = reduce(lambda a, b: a + b, parts) if parts else MASSLESS
    if mass is None:  # MuJoCo puts the minimum mass at the body's position in its parent, read in the body frame
        mass = MassProperties(0.0, np.array(pose.position), np.zeros((3, 3)))
    return bounded(settings, mass)


_READERS: dict[str, Callable[[Tree, Element, _Context, _Own], None]] = {
    "geom": _read_geom,
    "site": _read_site,
    "joint": _read_joint,
    "freejoint": _read_joint,
}

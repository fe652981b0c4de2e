"""The bodies of an MJCF file: the tree under `worldbody` with its joints, geoms and sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf.defaults import Settings, Values
from borelli.model.formats.mjcf.geoms import Geom, between, bounded, inertial, moved_geom, read_geom
from borelli.model.formats.mjcf.joints import Move, chain, free_joint, limited
from borelli.model.formats.mjcf.meshes import Mesh
from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Frame, Joint, Marker, Vector
from borelli.model.transforms import compose, orientation_matrix, vector

WORLD = "world"
MAX_BODIES, MAX_PARTS = 1500, 10_000
"""Bodies or joints, and elements of the tree in all; the largest model met has 101 and 2600."""
NO_LIMIT = 1e10
"""A stop as far away as this [rad, deg or m] is none."""
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
NOTHING = MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))


_COMMON = "name class user plugin"
_PLACE = "pos quat axisangle xyaxes zaxis euler"
KNOWN = {
    "body": f"{_COMMON} {_PLACE} childclass mocap gravcomp sleep",
    "inertial": f"{_PLACE} mass diaginertia fullinertia",
    "joint": f"{_COMMON} type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit "
    "solreffriction solimpfriction stiffness range actuatorfrcrange actuatorgravcomp margin ref springref armature "
    "damping frictionloss",
    "freejoint": f"{_COMMON} group align",
    "site": f"{_COMMON} {_PLACE} type group material size fromto rgba",
    "geom": f"{_COMMON} {_PLACE} type contype conaffinity condim group priority size material friction mass density "
    "shellinertia solmix solref solimp margin gap fromto axis hfield mesh fitscale rgba fluidshape fluidcoef",
    "frame": f"{_PLACE} name childclass",
}
"""The attributes MJCF has; others are mistakes that MuJoCo refuses."""


@dataclass(frozen=True, slots=True)
class FileJoint:
    """A joint of the file: what its numbers in a keyframe mean."""

    name: str
    kind: str
    coordinates: tuple[str, ...]
    place: Frame = Frame()
    """Of a free body, as the file has it."""


@dataclass(slots=True)
class Tree:
    """What the tree of bodies holds, as far as it has been read."""

    settings: Settings
    meshes: Mapping[str, Mesh]
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    ground: list[Geom] = field(default_factory=list)
    file_joints: list[FileJoint] = field(default_factory=list)
    scalar_joints: dict[str, None] = field(default_factory=dict)
    """Hinges and slides by name, in the order of the file; each is a coordinate of the same name."""
    geoms: dict[str, tuple[str, Geom]] = field(default_factory=dict)
    """Body and geom by the geom's name."""
    touching: list[tuple[str, tuple[int, int]]] = field(default_factory=list)
    """Body, other than the world, and masks of every geom."""
    body_names: dict[str, str] = field(default_factory=lambda: {WORLD: GROUND})
    """Ours by the file's."""
    sites: dict[str, Marker] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    tried: dict[str, int] = field(default_factory=dict)
    """The last number tried for a made-up name."""
    meshes_missing: set[str] = field(default_factory=set)
    lost_mass: list[str] = field(default_factory=list)
    """Bodies whose mass depends on meshes that are not there."""
    carriers: list[str] = field(default_factory=list)
    """Bodies that needed bodies without mass before them."""
    lost_limits: list[str] = field(default_factory=list)
    moved_defaults: list[str] = field(default_factory=list)
    references: dict[str, float] = field(default_factory=dict)
    """Coordinates in the pose in which the file states the bodies, where that is not their default."""
    passive: set[str] = field(default_factory=set)
    """Kinds of passive joint parameters that are left out."""

    def body(self, name: str, element: Element) -> str:
        """Our name of a body of the file."""
        if name not in self.body_names:
            raise element.error(f"{element.tag}: {unknown_name('body', name, self.body_names)}")
        return self.body_names[name]

    def free_name(self, kind: str, wanted: str) -> str:
        """The wanted name, or one like it that no other element of that kind has."""
        name, key = wanted, f"{kind} {wanted}"
        while f"{kind} {name}" in self.used:
            self.tried[key] = self.tried.get(key, 1) + 1
            name = f"{wanted}_{self.tried[key]}"
        self.used.add(f"{kind} {name}")
        return name


@dataclass(frozen=True, slots=True)
class _Inside:
    """Where an element stands: the body around it, the frame within that, and the class that holds there."""

    body: str
    frame: Frame
    around: str | None


@dataclass(slots=True)
class _Own:
    """What one body element holds for itself."""

    geoms: list[Geom] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    free: str | None = None
    joint_names: list[str] = field(default_factory=list)
    stated: MassProperties | None = None
    inner: list[tuple[Element, _Inside]] = field(default_factory=list)


def read_tree(root: Element, settings: Settings, meshes: Mapping[str, Mesh]) -> Tree:
    """All bodies of a file whose includes are in place and whose settings and meshes are read."""
    tree = Tree(settings, meshes)
    _look_through(root, tree)
    for section in root.all("worldbody"):
        own = _Own()
        around = section.attributes.get("childclass")
        _read_children(tree, section, _Inside(GROUND, Frame(), around), own)
        tree.ground.extend(own.geoms)
        for element, inside in own.inner:
            _read_body(tree, element, inside)
    return tree


def _look_through(root: Element, tree: Tree) -> None:
    """So that names made up here are none that the file gives, even further on; and unknown attributes are told."""
    for section in root.all("worldbody"):
        for number, element in enumerate(section.walk()):
            if number > MAX_PARTS:
                raise element.error(f"worldbody holds more than {MAX_PARTS} elements, which are not read")
            for unknown in element.attributes.keys() - set(
                KNOWN.get(element.tag, " ".join(element.attributes)).split()
            ):
                tree.settings.notes.append(
                    f"line {element.line}: {element.tag} has the attribute {unknown!r}, which MJCF does not know"
                )
            if name := element.attributes.get("name"):
                kind = "joint" if element.tag == "freejoint" else element.tag
                tree.used.add(f"{kind} {name}")
                if kind == "joint":
                    tree.used.add(f"coordinate {name}")


def _read_body(tree: Tree, element: Element, inside: _Inside) -> None:
    if len(tree.bodies) >= MAX_BODIES:
        raise element.error(f"the model has more than {MAX_BODIES} bodies, which are not read")
    name = _body_name(tree, element)
    around = element.attributes.get("childclass", inside.around)
    values = Values(element, element.attributes)
    place = compose(inside.frame, tree.settings.frame(values))
    own = _Own()
    _read_children(tree, element, _Inside(name, Frame(), around), own)
    mass = _mass(tree, name, own, place)
    shapes = tuple(geom.shape for geom in own.geoms if geom.shape is not None and geom.kind != "plane")
    kinematic = values.truth("mocap", False)
    body = Body(name, *mass.fields(), shapes, place if kinematic else Frame(), kinematic)
    if kinematic:
        tree.bodies.append(body)
    else:
        _hang(tree, body, inside.body, place, own, element)
    for inner, where in own.inner:
        _read_body(tree, inner, where)


def _body_name(tree: Tree, element: Element) -> str:
    stated = element.attributes.get("name", "")
    if stated in tree.body_names:
        raise element.error(
            f"body: the name {stated!r} is {'reserved' if stated == WORLD else 'given twice'}; rename it"
        )
    name = stated or tree.free_name("body", f"body{len(tree.bodies) + 1}")
    if name == GROUND:
        name = tree.free_name("body", "ground_body")
        tree.settings.notes.append(f"the body {GROUND!r} is called {name!r} here: {GROUND!r} is our name of the world")
    if stated:
        tree.body_names[stated] = name
    return name


def _hang(tree: Tree, body: Body, parent: str, place: Frame, own: _Own, element: Element) -> None:
    """Adds a body with the joints that carry it."""
    if own.free is not None:
        if own.moves or parent != GROUND:
            where = "beside other joints" if own.moves else f"in a body inside {parent!r}"
            raise element.error(f"body {body.name!r}: a free joint {where} is not possible; MuJoCo refuses it too")
        name = own.free
        suffixes = ("tx", "ty", "tz", "rx", "ry", "rz")
        coordinates = tuple(tree.free_name("coordinate", f"{name}_{suffix}") for suffix in suffixes)
        tree.joints.append(free_joint(name, body.name, parent, place, coordinates))
        tree.bodies.append(body)
        tree.file_joints.append(FileJoint(name, "free", coordinates, place))
        return
    single = own.joint_names[0] if len(own.joint_names) == 1 else ""
    joints, between_bodies = chain(body.name, parent, place, own.moves, single)
    if single and len(joints) == 1 and joints[0].name != single:
        joints = [replace(joints[0], name=single)]  # a ball is three moves of one joint
    names = [j.name if j.name == single else tree.free_name("joint", j.name) for j in joints]
    tree.joints.extend(replace(joint, name=name) for joint, name in zip(joints, names, strict=True))
    tree.bodies.extend([*between_bodies, body])
    if between_bodies:
        tree.carriers.append(body.name)


def _read_children(tree: Tree, element: Element, inside: _Inside, own: _Own) -> None:
    """What stands in a body element, or in a `frame` within it."""
    for child in element.children:
        if child.tag == "frame":
            values = Values(child, child.attributes)
            frame = compose(inside.frame, tree.settings.frame(values))
            around = child.attributes.get("childclass", inside.around)
            _read_children(tree, child, _Inside(inside.body, frame, around), own)
        elif child.tag == "body":
            own.inner.append((child, inside))
        elif child.tag in _READERS:
            _READERS[child.tag](tree, child, inside, own)
        else:
            tree.settings.leave_out(child.tag)


def _read_inertial(tree: Tree, element: Element, inside: _Inside, own: _Own) -> None:
    own.stated = inertial(tree.settings, element).moved(inside.frame)


def _read_geom(tree: Tree, element: Element, inside: _Inside, own: _Own) -> None:
    geom = read_geom(tree.settings, element, inside.around, tree.meshes)
    if inside.frame != Frame():
        geom = moved_geom(geom, inside.frame)
    own.geoms.append(geom)
    if geom.name:
        tree.geoms[geom.name] = (inside.body, geom)
    if inside.body != GROUND:
        tree.touching.append((inside.body, geom.masks))
    if geom.mesh:
        tree.meshes_missing.add(geom.mesh)
    elif geom.shape is None:
        tree.settings.leave_out(f"geom of type {geom.kind}")
    elif geom.kind == "plane" and inside.body != GROUND:
        tree.settings.leave_out("plane fixed to a body")


def _read_site(tree: Tree, element: Element, inside: _Inside, own: _Own) -> None:
    values = tree.settings.values(element, inside.around)
    ends = values.numbers("fromto", 6, 6)
    position = values.vector("pos") if ends is None else between(ends, values)[0].position
    name = values.text("name") or tree.free_name("site", f"{inside.body}_site")
    if inside.frame != Frame():
        position = compose(inside.frame, Frame(position)).position
    marker = Marker(name, inside.body, position)
    tree.markers.append(marker)
    tree.sites[name] = marker


def _read_joint(tree: Tree, element: Element, inside: _Inside, own: _Own) -> None:
    if inside.body == GROUND:
        raise element.error("joint: the world cannot have joints; put it in a body")
    if len(tree.file_joints) >= MAX_BODIES:
        raise element.error(f"the model has more than {MAX_BODIES} joints, which are not read")
    values = tree.settings.values(element, inside.around)
    kind = "free" if element.tag == "freejoint" else values.choice("type", "hinge", ("hinge", "slide", "ball", "free"))
    name = values.text("name") or tree.free_name("joint", f"{inside.body}_{kind}")
    own.joint_names.append(name)
    for passive in ("stiffness", "damping", "armature", "frictionloss"):
        if any(values.numbers(passive) or ()):
            tree.passive.add(passive)
    if kind == "free":
        own.free = name
        return
    anchor = compose(inside.frame, Frame(values.vector("pos"))).position
    turn = orientation_matrix(inside.frame.orientation)
    if kind == "ball":
        moves = _ball_moves(tree, name, anchor)
        if _range(tree, values, 1.0) is not None:
            tree.lost_limits.append(name)
    else:
        moves = [_move(tree, values, name, kind, anchor, vector(turn @ np.array(_axis(values))))]
        tree.scalar_joints[name] = None
    own.moves.extend(moves)
    tree.file_joints.append(FileJoint(name, kind, tuple(move.coordinate.name for move in moves)))


def _ball_moves(tree: Tree, name: str, anchor: Vector) -> list[Move]:
    """Three turns about x, y and z, each carried by the ones before."""
    names = (tree.free_name("coordinate", f"{name}_{letter}") for letter in "xyz")
    return [
        Move(limited(coordinate, 0.0, None, True), True, anchor, axis)
        for coordinate, axis in zip(names, AXES, strict=True)
    ]


def _move(tree: Tree, values: Values, name: str, kind: str, anchor: Vector, axis: Vector) -> Move:
    turns = kind == "hinge"
    unit = tree.settings.to_radians if turns else 1.0
    offset = values.number("ref", 0.0) * unit
    coordinate = limited(name, offset, _range(tree, values, unit), turns)
    if coordinate.default != offset:
        tree.moved_defaults.append(name)
        tree.references[name] = offset
    return Move(coordinate, turns, anchor, axis, offset)


def _axis(values: Values) -> Vector:
    axis = np.array(values.vector("axis", (0.0, 0.0, 1.0)))
    length = float(np.linalg.norm(axis))
    if length < 1e-14:
        raise values.element.error(f"joint {values.text('name')!r}: its axis has no length; give it a direction")
    return vector(axis / length)


def _range(tree: Tree, values: Values, unit: float) -> tuple[float, float] | None:
    """The stops of a joint; None if it has none."""
    span = values.numbers("range", 2, 2)
    word = values.choice("limited", "auto", ("true", "false", "auto"))
    if span is None or word == "false" or (word == "auto" and not tree.settings.automatic_limits):
        return None
    lower, upper = (inf * v if abs(v) >= NO_LIMIT else v * unit for v in span)
    if word == "auto" and lower == upper == 0.0:
        return None
    if lower > upper:
        raise values.element.error(f"joint {values.text('name')!r}: its range {span} runs backwards; swap its ends")
    return lower, upper


def _mass(tree: Tree, name: str, own: _Own, place: Frame) -> MassProperties:
    """The mass of a body as MuJoCo's compiler finds it."""
    settings = tree.settings
    first, last = settings.inertia_groups
    counted = [geom.mass for geom in own.geoms if first <= geom.group <= last]
    mass = own.stated
    if counted and (settings.inertia_from_geom == "true" or (mass is None and settings.inertia_from_geom == "auto")):
        if any(part is None for part in counted):
            tree.lost_mass.append(name)
        parts = [part for part in counted if part is not None and part.mass > 0.0]
        mass = reduce(lambda a, b: a + b, parts) if parts else NOTHING
    if mass is None:  # a least mass sits where MuJoCo puts it: at the body's place in its parent, seen from the body
        mass = MassProperties(0.0, np.array(place.position), np.zeros((3, 3)))
    return bounded(settings, mass)


_READERS: dict[str, Callable[[Tree, Element, _Inside, _Own], None]] = {
    "inertial": _read_inertial,
    "geom": _read_geom,
    "site": _read_site,
    "joint": _read_joint,
    "freejoint": _read_joint,
}

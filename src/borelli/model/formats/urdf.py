"""Reader of robots' models (URDF): links, joints, inertias, simple collision shapes and mimicked joints.

A link's frame is that of the joint it hangs on; the root link is fixed to the ground, or is the ground if it is called
`world`. Meshes, transmissions, sensors and looks are passed over.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from math import inf

import numpy as np

from borelli.errors import FileFormatError, ModelError, list_names, unknown_name
from borelli.files.xml import Element, read_xml
from borelli.model.functions import linear
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Coupling, Frame, Joint, Model, Shape, Vector
from borelli.model.transforms import orientation_matrix, orientation_from_matrix, vector
from borelli.model.validate import validate

WORLD = "world"
MAX_NUMBER = 1e30
"""Larger ones cannot be meant, and their cubes could not be computed with."""
MOST = {"link": 2000, "joint": 2000, "collision": 4000, "box": 4000, "sphere": 4000, "cylinder": 4000, "capsule": 4000}
"""Most elements of a tag: ten times what the largest robots have."""
KINDS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
SUFFIXES = {"free": ("tx", "ty", "tz", "rx", "ry", "rz"), "planar": ("x", "y", "turn")}
SHAPES: dict[str, Callable[[Element], tuple[str, tuple[float, ...]]]] = {
    "box": lambda e: ("box", tuple(0.5 * size for size in _numbers(e, "size", 3))),
    "sphere": lambda e: ("sphere", _numbers(e, "radius", 1)),
    "cylinder": lambda e: ("cylinder", (*_numbers(e, "radius", 1), 0.5 * _numbers(e, "length", 1)[0])),
    "capsule": lambda e: ("capsule", (*_numbers(e, "radius", 1), 0.5 * _numbers(e, "length", 1)[0])),
}


def read_urdf(path: str | os.PathLike[str]) -> Model:
    """The model in a URDF file.

    Raises:
        FileFormatError: naming the line of what cannot be read.
        ModelError: if the model it describes contradicts itself.
    """
    root = read_xml(path)
    if root.tag != "robot":
        raise FileFormatError(path, f"the root element is <{root.tag[:40]}>, but a URDF begins with <robot>")
    _check_numbers(root)
    links = _links(root)
    notes: list[str] = []
    world = {WORLD: GROUND}
    joints, couplings = [], []
    for element in root.all("joint"):
        joint, coupling = _joint(element, links, world)
        joints.append(joint)
        couplings += coupling
    hung = {joint.child for joint in joints}
    bodies = tuple(_body(name, link, notes) for name, link in links.items() if name != WORLD)
    roots = [body.name for body in bodies if body.name not in hung]
    joints += [Joint(f"{name}_to_ground", "fixed", GROUND, name) for name in roots]
    if roots:
        notes.append(f"the root link {list_names(roots)} is fixed to the ground; use a free joint to let it move")
    left = sorted({e.tag for e in root.children} - {"link", "joint", "material"})
    if left:
        notes.append(f"not read: {list_names(left)}")
    name = root.attributes.get("name", "").strip() or "robot"
    model = Model(name, bodies, tuple(joints), couplings=tuple(couplings), notes=tuple(dict.fromkeys(notes)))
    try:
        return with_default_frames(validate(model, sound_masses=False))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _check_numbers(root: Element) -> None:
    """Refuses a file with more of anything than a robot can have."""
    counts = Counter(element.tag for element in root.walk())
    for tag, most in MOST.items():
        if counts[tag] > most:
            raise FileFormatError(root.path, f"it has {counts[tag]} elements <{tag}>, but at most {most} are read")


def _links(root: Element) -> dict[str, Element]:
    """The links by their names."""
    links: dict[str, Element] = {}
    for link in root.all("link"):
        name = link.attributes.get("name", "")
        if name in links:
            raise link.error(f"the link {name[:60]!r} is described twice; give each link its own name")
        links[name] = link
    if not links:
        raise FileFormatError(root.path, "the robot has no links")
    return links


def _joint(element: Element, links: dict[str, Element], world: dict[str, str]) -> tuple[Joint, list[Coupling]]:
    """A joint and, if it mimics another, the coupling that says so."""
    name = element.attributes.get("name", "")
    stated = element.attributes.get("type", "")
    if stated not in KINDS:
        raise element.error(f"joint {name!r}: {unknown_name('type', stated, KINDS)}")
    kind = KINDS[stated]
    ends = []
    for end in ("parent", "child"):
        found = element.find(end)
        link = "" if found is None else found.attributes.get("link", "")
        if link not in links:
            raise element.error(f"joint {name!r}: {unknown_name(f'{end} link', link, links)}")
        ends.append(world.get(link, link))
    given = element.find("axis")
    axis = vector(_numbers(given, "xyz", 3)) if given is not None else (1.0, 0.0, 0.0)
    axes: tuple[Vector, ...] = {"hinge": (axis,), "slider": (axis,)}.get(kind, ())
    if kind == "planar":
        axes = _plane(axis, element)
    frame = _frame(element.find("origin"))
    coupling = _mimic(element, name)
    return Joint(name, kind, ends[0], ends[1], frame, Frame(), axes, _coordinates(element, name, stated)), coupling


def _coordinates(element: Element, name: str, stated: str) -> tuple[Coordinate, ...]:
    kind = KINDS[stated]
    if kind == "fixed":
        return ()
    if kind in SUFFIXES:
        turns = {"free": 3, "planar": 2}[kind]
        return tuple(Coordinate(f"{name}_{s}", rotational=i >= turns) for i, s in enumerate(SUFFIXES[kind]))
    limit = element.find("limit")
    lower, upper = -inf, inf
    if limit is not None and stated != "continuous":
        lower, upper = (_numbers(limit, end, 1, (0.0,))[0] for end in ("lower", "upper"))
    default = min(max(0.0, lower), max(lower, upper))
    return (Coordinate(name, default, lower, upper, rotational=kind == "hinge"),)


def _mimic(element: Element, name: str) -> list[Coupling]:
    mimic = element.find("mimic")
    if mimic is None:
        return []
    factor, offset = (_numbers(mimic, key, 1, (d,))[0] for key, d in (("multiplier", 1.0), ("offset", 0.0)))
    return [Coupling(f"{name}_mimics", name, mimic.attributes.get("joint", ""), linear(factor, offset))]


def _plane(normal: Vector, element: Element) -> tuple[Vector, Vector]:
    """Two directions of travel square to a normal."""
    z = np.array(normal)
    if not z.any():
        raise element.error("joint: its axis has no length; give it a direction")
    x = np.cross(np.roll(np.eye(3)[int(np.argmax(np.abs(z)))], 1), z)
    return vector(x / np.linalg.norm(x)), vector(np.cross(z, x) / np.linalg.norm(np.cross(z, x)))


def _body(name: str, link: Element, notes: list[str]) -> Body:
    mass, center, inertia = 0.0, (0.0, 0.0, 0.0), np.zeros((3, 3))
    inertial = link.find("inertial")
    if inertial is not None:
        frame = _frame(inertial.find("origin"))
        center, turn = frame.position, orientation_matrix(frame.orientation)
        if (weight := inertial.find("mass")) is not None:
            (mass,) = _numbers(weight, "value", 1)
        if (moments := inertial.find("inertia")) is not None:
            xx, xy, xz, yy, yz, zz = (
                _numbers(moments, key, 1, (0.0,))[0] for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            )
            inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    shapes = []
    for collision in link.all("collision"):
        geometry = collision.find("geometry")
        for form in geometry.children if geometry is not None else ():
            if form.tag not in SHAPES:
                notes.append(f"collision shapes of the kind {form.tag} are not read")
                continue
            kind, size = SHAPES[form.tag](form)
            shapes.append(
                Shape(kind, size, _frame(collision.find("origin")), name=collision.attributes.get("name", ""))
            )
    x, y, z = (vector(row) for row in inertia)
    return Body(name, mass, center, (x, y, z), tuple(shapes))


def _frame(origin: Element | None) -> Frame:
    """Where an origin stands: roll, pitch, yaw about the fixed axes x, y, z."""
    if origin is None:
        return Frame()
    roll, pitch, yaw = _numbers(origin, "rpy", 3, (0.0, 0.0, 0.0))
    turn = np.eye(3)
    for axis, angle in enumerate((roll, pitch, yaw)):
        half = [np.cos(0.5 * angle), 0.0, 0.0, 0.0]
        half[axis + 1] = np.sin(0.5 * angle)
        turn = orientation_matrix((half[0], half[1], half[2], half[3])) @ turn
    return Frame(vector(_numbers(origin, "xyz", 3, (0.0, 0.0, 0.0))), orientation_from_matrix(turn))


def _numbers(element: Element, name: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
    """The numbers of an attribute."""
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    try:
        values = tuple(float(word) for word in (text or "").split())
    except ValueError:
        values = ()
    if len(values) != count or not all(abs(value) < MAX_NUMBER for value in values):
        plural = "s" if count > 1 else ""
        raise element.error(f"{element.tag}: {name} must hold {count} finite number{plural}, got {(text or '')[:40]!r}")
    return values

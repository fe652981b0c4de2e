"""Reader of robot models (URDF): links, joints, inertias, simple collision shapes and mimic joints.

The frame of a link is that of its parent joint. The root link is fixed to the ground, or is the ground if it is called
`world`. The model's notes list every element that is not read, such as meshes, transmissions and sensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, list_names, unknown_name
from borelli.files.outside_paths import outside_notes
from borelli.files.xml import Element, read_xml
from borelli.model.formats.parsing import parse_numbers, unread_notes, validate_file
from borelli.model.functions import linear
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Coupling, Frame, Joint, Model, Shape, Vector
from borelli.model.transforms import AXES, axis_angle, orientation_from_matrix, orientation_matrix, vector

WORLD = "world"
MAX_ELEMENTS = dict.fromkeys(("link", "joint"), 2000)
MAX_ELEMENTS |= dict.fromkeys(("collision", "box", "sphere", "cylinder", "capsule"), 4000)
"""Maximum number of elements of a tag: ten times that of the largest robots."""
KINDS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
DISPLAY = ("material",)
"""Elements that change how a robot is drawn, and nothing else."""
SUFFIXES = {"free": ("tx", "ty", "tz", "rx", "ry", "rz"), "planar": ("x", "y", "turn")}
SHAPES: dict[str, Callable[[Element], tuple[str, tuple[float, ...]]]] = {
    "box": lambda e: ("box", tuple(0.5 * size for size in _numbers(e, "size", 3))),
    "sphere": lambda e: ("sphere", _numbers(e, "radius", 1)),
    "cylinder": lambda e: ("cylinder", (*_numbers(e, "radius", 1), 0.5 * _numbers(e, "length", 1)[0])),
    "capsule": lambda e: ("capsule", (*_numbers(e, "radius", 1), 0.5 * _numbers(e, "length", 1)[0])),
}


def read_urdf(path: str | Path) -> Model:
    """Read the model of a URDF file.

    Args:
        path: URDF file.

    Raises:
        FileFormatError: if the file cannot be read; the message names the line.
        ModelError: if the model is inconsistent.
    """
    root = read_xml(path)
    if root.tag != "robot":
        raise FileFormatError(path, f"The root element is <{root.tag[:40]}>. A URDF file begins with <robot>.")
    counts = Counter(element.tag for element in root.walk())
    for tag, most in MAX_ELEMENTS.items():
        if counts[tag] > most:
            raise FileFormatError(root.path, f"The file has {counts[tag]} elements <{tag}> (maximum {most}).")
    links = _links(root)
    files = (("mesh", element.attributes.get("filename", "")) for element in root.walk() if element.tag == "mesh")
    textures = (("texture", e.attributes.get("filename", "")) for e in root.walk() if e.tag == "texture")
    notes: list[str] = [*outside_notes((*files, *textures), Path(path).parent)]
    world = {WORLD: GROUND}
    joints = [_joint(element, links, world) for element in root.all("joint")]
    couplings = [coupling for element in root.all("joint") for coupling in _mimic(element)]
    children = {joint.child for joint in joints}
    bodies = tuple(_body(name, link) for name, link in links.items() if name != WORLD)
    roots = [body.name for body in bodies if body.name not in children]
    joints += [Joint(f"{name}_to_ground", "fixed", GROUND, name) for name in roots]
    if roots:
        notes.append(f"The root link {list_names(roots)} is fixed to the ground. Use a floating joint to let it move.")
    notes.extend(_left_out(root))
    name = root.attributes.get("name", "").strip() or "robot"
    model = Model(name, bodies, tuple(joints), couplings=tuple(couplings), notes=tuple(dict.fromkeys(notes)))
    return with_default_frames(validate_file(model, path, sound_masses=False))


def _left_out(root: Element) -> Iterator[str]:
    """Yield a note for each kind of element of which the reader used nothing, whatever kind that is."""
    unread = root.unread(lambda element: element.tag not in DISPLAY)
    yield from unread_notes(_described(element, owner) for element, owner in unread)


def _described(element: Element, owner: str) -> tuple[str, str]:
    """Return the kind of an element, and its mesh file, its name or that of the link or joint that it belongs to."""
    mesh = next((one for one in element.walk() if one.tag == "mesh"), None)
    if mesh is not None and mesh is not element:
        return f"{element.tag} mesh", mesh.attributes.get("filename", "")
    return element.tag, element.attributes.get("name", "") or owner


def _links(root: Element) -> dict[str, Element]:
    links: dict[str, Element] = {}
    for link in root.all("link"):
        name = _text(link, "name")
        if name in links:
            raise link.error(f"Link {name[:60]!r} is defined twice. Give each link its own name.")
        links[name] = link
    if not links:
        raise FileFormatError(root.path, "The robot has no links.")
    return links


def _joint(element: Element, links: dict[str, Element], world: dict[str, str]) -> Joint:
    name = _text(element, "name")
    urdf_type = element.attributes.get("type", "")
    if urdf_type not in KINDS:
        raise element.error(f"Joint {name!r}: {unknown_name('type', urdf_type, KINDS)}")
    kind = KINDS[urdf_type]
    ends = []
    for end in ("parent", "child"):
        link = _text(element.find(end), "link")
        if link not in links:
            raise element.error(f"Joint {name!r}: {unknown_name(f'{end} link', link, links)}")
        ends.append(world.get(link, link))
    axis_element = element.find("axis")
    axis = vector(_numbers(axis_element, "xyz", 3)) if axis_element is not None else (1.0, 0.0, 0.0)
    axes: tuple[Vector, ...] = {"hinge": (axis,), "slider": (axis,)}.get(kind, ())
    if kind == "planar":
        axes = _plane(axis, element)
    frame = _frame(element.find("origin"))
    return Joint(name, kind, ends[0], ends[1], frame, Frame(), axes, _coordinates(element, name, urdf_type))


def _coordinates(element: Element, name: str, urdf_type: str) -> tuple[Coordinate, ...]:
    kind = KINDS[urdf_type]
    if kind == "fixed":
        return ()
    if kind in SUFFIXES:
        translations = {"free": 3, "planar": 2}[kind]
        return tuple(Coordinate(f"{name}_{s}", rotational=i >= translations) for i, s in enumerate(SUFFIXES[kind]))
    limit = element.find("limit")
    lower, upper = -inf, inf
    if limit is not None and urdf_type != "continuous":
        lower, upper = (_numbers(limit, end, 1, (0.0,))[0] for end in ("lower", "upper"))
    default = min(max(0.0, lower), max(lower, upper))
    return (Coordinate(name, default, lower, upper, rotational=kind == "hinge"),)


def _mimic(element: Element) -> list[Coupling]:
    mimic = element.find("mimic")
    if mimic is None:
        return []
    factor, offset = (_numbers(mimic, key, 1, (d,))[0] for key, d in (("multiplier", 1.0), ("offset", 0.0)))
    name = element.attributes.get("name", "")
    return [Coupling(f"{name}_mimics", name, _text(mimic, "joint"), linear(factor, offset))]


def _plane(normal: Vector, element: Element) -> tuple[Vector, Vector]:
    """Return two translation axes perpendicular to a normal."""
    z = np.array(normal)
    if not z.any():
        raise element.error("Joint: The axis has no length. Give it a direction.")
    x = np.cross(np.roll(np.eye(3)[int(np.argmax(np.abs(z)))], 1), z)
    return vector(x / np.linalg.norm(x)), vector(np.cross(z, x) / np.linalg.norm(np.cross(z, x)))


def _body(name: str, link: Element) -> Body:
    mass, center, inertia = 0.0, (0.0, 0.0, 0.0), np.zeros((3, 3))
    inertial = link.find("inertial")
    if inertial is not None:
        frame = _frame(inertial.find("origin"))
        center, rotation = frame.position, orientation_matrix(frame.orientation)
        if (mass_element := inertial.find("mass")) is not None:
            (mass,) = _numbers(mass_element, "value", 1)
        if (inertia_element := inertial.find("inertia")) is not None:
            xx, xy, xz, yy, yz, zz = (
                _numbers(inertia_element, key, 1, (0.0,))[0] for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            )
            inertia = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
    shapes = []
    for collision in link.all("collision"):
        geometry = collision.find("geometry")
        for geometry_element in geometry.children if geometry is not None else ():
            if geometry_element.tag not in SHAPES:
                continue  # listed with everything that is not read
            kind, size = SHAPES[geometry_element.tag](geometry_element)
            frame, title = _frame(collision.find("origin")), collision.attributes.get("name", "")
            shapes.append(Shape(kind, size, frame, name=title))
    x, y, z = (vector(row) for row in inertia)
    return Body(name, mass, center, (x, y, z), tuple(shapes))


def _frame(origin: Element | None) -> Frame:
    """Return the frame of an origin: roll, pitch, yaw about the fixed axes x, y, z."""
    if origin is None:
        return Frame()
    roll, pitch, yaw = _numbers(origin, "rpy", 3, (0.0, 0.0, 0.0))
    rotation = np.eye(3)
    for axis, angle in zip(AXES, (roll, pitch, yaw), strict=True):
        rotation = orientation_matrix(axis_angle(axis, angle)) @ rotation
    return Frame(vector(_numbers(origin, "xyz", 3, (0.0, 0.0, 0.0))), orientation_from_matrix(rotation))


def _text(element: Element | None, name: str) -> str:
    """Return an attribute of an element; "" if either is missing."""
    if element is None:
        return ""
    element.was_read = True
    return element.attributes.get(name, "")


def _numbers(element: Element, name: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
    element.was_read = True
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    values = parse_numbers((text or "").split(), count)
    if values is None:
        plural = "s" if count > 1 else ""
        raise element.error(f"{element.tag}: {name} is {(text or '')[:40]!r}. Give {count} finite number{plural}.")
    return tuple(values)

"""Which body a frame of an .osim file is fixed to, and how: offset frames may stand anywhere and rest on each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, sin
from posixpath import normpath

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND, Frame, Vector
from borelli.model.transforms import compose, orientation_matrix

MAX_PATH = 300
MAX_OFFSETS = 64
"""Most offset frames that may rest one on another."""


def turned(position: Vector, angles: Vector) -> Frame:
    """The frame at a position [m], turned by angles [rad] about x, then the turned y, then the turned z."""
    x, y, z = ((cos(a / 2.0), sin(a / 2.0)) for a in angles)
    (cx, sx), (cy, sy), (cz, sz) = x, y, z
    return Frame(
        position,
        (
            cx * cy * cz - sx * sy * sz,
            sx * cy * cz + cx * sy * sz,
            cx * sy * cz - sx * cy * sz,
            cx * cy * sz + sx * sy * cz,
        ),
    )


def angles_of(frame: Frame) -> Vector:
    """The angles [rad] about x, the turned y and the turned z that turn a frame so."""
    m = orientation_matrix(frame.orientation)
    y = float(np.arctan2(m[0, 2], np.hypot(m[0, 0], m[0, 1])))
    if np.hypot(m[0, 0], m[0, 1]) < 1e-9:  # x and z turn about the same line: all of it is given to x
        return float(np.arctan2(m[2, 1], m[1, 1])), y, 0.0
    return float(np.arctan2(-m[1, 2], m[2, 2])), y, float(np.arctan2(-m[0, 1], m[0, 0]))


def place(frame: Frame, point: Vector) -> Vector:
    """A point stated in `frame`, in the frame in which that is stated."""
    if frame == Frame():
        return point
    x, y, z = (float(c) for c in np.array(frame.position) + orientation_matrix(frame.orientation) @ np.array(point))
    return x, y, z


@dataclass(slots=True)
class Frames:
    """All frames of a model by their paths, such as `/jointset/knee_r/femur_r_offset`."""

    bodies: tuple[Item, ...]
    """In the order of the file, without the ground."""
    _bodies: dict[str, str]
    """Path to name of body."""
    _offsets: dict[str, Item]
    """Path to offset frame."""
    _by_name: dict[str, str]
    """Name to path, for files that give a name only."""
    wrap_sets: tuple[tuple[str, Item], ...]
    """Path of each frame that holds wrap objects, and the frame."""
    _found: dict[str, tuple[str, Frame]] = field(default_factory=dict)

    def locate(self, owner: Item, owner_path: str, stated: str) -> tuple[str, Frame]:
        """The body to which a frame is fixed, and where.

        Args:
            owner: Who states the frame: named in errors.
            owner_path: From where a path that begins with no slash is followed.
            stated: A path, or a name.
        """
        path = self._path(owner, owner_path, stated)
        if path not in self._found:
            frame, at = Frame(), path
            for _ in range(MAX_OFFSETS):
                if at in self._bodies:
                    break
                item = self._offsets[at]
                offset = turned(item.vector("translation"), item.vector("orientation"))
                frame = offset if frame == Frame() else compose(offset, frame)
                at = self._path(item, at, item.socket("parent") or "..")
            else:
                raise owner.error(f"the frame {stated!r} rests on more than {MAX_OFFSETS} others, or on itself")
            self._found[path] = self._bodies[at], frame
        return self._found[path]

    def _path(self, owner: Item, owner_path: str, stated: str) -> str:
        if len(stated) <= MAX_PATH:
            starts = ("",) if stated.startswith("/") else (f"{owner_path}/", f"{owner_path}/../", "/")
            for start in starts:
                path = normpath(start + stated)
                if path in self._bodies or path in self._offsets:
                    return path
            name = stated.rsplit("/", 1)[-1]
            if name in self._by_name:
                return self._by_name[name]
        raise owner.error(unknown_name("frame", stated[:80], self._by_name))


def find_frames(model: Item) -> Frames:
    """Every body and offset frame of a model."""
    bodies = {f"/{GROUND}": GROUND}
    items: list[Item] = []
    offsets: dict[str, Item] = {}
    wrap_sets: list[tuple[str, Item]] = []
    waiting: list[tuple[Element, str]] = [(model.element, "")]
    while waiting:
        element, path = waiting.pop()
        for child in element.children:
            name = child.attributes.get("name", "").strip()
            inner = path
            if child.tag.endswith("Set") and path == "":
                inner = f"/{child.tag.lower()}"
            elif name and child.children and child.tag[:1].isupper() and len(path) + len(name) <= MAX_PATH:
                inner = f"{path}/{name}"
            if child.tag == "Body" and name != GROUND:  # before 4.0 the ground is among the bodies
                bodies[inner] = name
                items.append(Item(child))
            elif child.tag == "PhysicalOffsetFrame":
                offsets[inner] = Item(child)
            elif child.tag == "WrapObjectSet":
                wrap_sets.append((path, Item(element)))
            waiting.append((child, inner))
    # a body wins over an offset frame of the same name
    by_name = {path.rsplit("/", 1)[-1]: path for path in (*offsets, *bodies)}
    return Frames(tuple(items), bodies, offsets, by_name, tuple(wrap_sets))

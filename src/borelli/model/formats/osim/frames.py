"""Frames of an .osim file: the body to which each is fixed, and its pose there; offset frames can be nested."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, sin, sqrt
from posixpath import normpath

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND, Frame, Vector
from borelli.model.transforms import compose, orientation_matrix, vector

HALF_SPACE = Frame(orientation=(sqrt(0.5), 0.0, -sqrt(0.5), 0.0))
"""Rotation of the outward normal from z, of a plane, to -x, of Simbody's half space."""
MAX_PATH = 300
MAX_OFFSETS = 64
"""Maximum depth of nested offset frames."""


def frame_from_angles(position: Vector, angles: Vector) -> Frame:
    """Return the frame at a position [m], rotated by angles [rad] about x, then the new y, then the new z."""
    (cx, sx), (cy, sy), (cz, sz) = ((cos(a / 2.0), sin(a / 2.0)) for a in angles)
    orientation = (
        cx * cy * cz - sx * sy * sz,
        sx * cy * cz + cx * sy * sz,
        cx * sy * cz - sx * cy * sz,
        cx * cy * sz + sx * sy * cz,
    )
    return Frame(position, orientation)


def xyz_angles(frame: Frame) -> Vector:
    """Return the angles [rad] about x, the new y and the new z of a frame's orientation."""
    m = orientation_matrix(frame.orientation)
    y = float(np.arctan2(m[0, 2], np.hypot(m[0, 0], m[0, 1])))
    if np.hypot(m[0, 0], m[0, 1]) < 1e-9:  # gimbal lock: x and z rotate about the same line, and z is set to zero
        return float(np.arctan2(m[2, 1], m[1, 1])), y, 0.0
    return float(np.arctan2(-m[1, 2], m[2, 2])), y, float(np.arctan2(-m[0, 1], m[0, 0]))


def compose_offset(frame: Frame, offset: Frame) -> Frame:
    """Return compose(frame, offset), and exactly `offset` where `frame` is the identity."""
    return offset if frame == Frame() else compose(frame, offset)


def transform_point(frame: Frame, point: Vector) -> Vector:
    """Return a point stated in `frame` in the frame in which `frame` is stated."""
    if frame == Frame():
        return point
    return vector(np.array(frame.position) + orientation_matrix(frame.orientation) @ np.array(point))


@dataclass(slots=True)
class Frames:
    """All frames of a model by their paths, such as `/jointset/knee_r/femur_r_offset`."""

    bodies: tuple[Item, ...]
    """In the order of the file, without the ground."""
    _bodies: dict[str, str]
    """Body name by path."""
    _offsets: dict[str, Item]
    """Offset frame by path."""
    _by_name: dict[str, str]
    """Path by name, for files that state names only."""
    wrap_sets: tuple[tuple[str, Item], ...]
    """Path of each frame that contains wrap objects, and the frame."""
    _located: dict[str, tuple[str, Frame]] = field(default_factory=dict)

    def locate(self, owner: Item, owner_path: str, stated: str) -> tuple[str, Frame]:
        """Return the body to which the frame `stated` by path or name is fixed, and the frame's pose in it.

        Relative paths begin at `owner_path`, the path of the element `owner` that refers to the frame.
        """
        path = self._path(owner, owner_path, stated)
        if path not in self._located:
            frame, at = Frame(), path
            for _ in range(MAX_OFFSETS):
                if at in self._bodies:
                    break
                item = self._offsets[at]
                offset = frame_from_angles(item.vector("translation"), item.vector("orientation"))
                frame = offset if frame == Frame() else compose(offset, frame)
                at = self._path(item, at, item.socket("parent") or "..")
            else:
                raise owner.error(
                    f"Frame {stated!r} is nested in more than {MAX_OFFSETS} frames, or in itself. Correct its parents."
                )
            self._located[path] = self._bodies[at], frame
        return self._located[path]

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
    """Return every body and offset frame of a model."""
    bodies = {f"/{GROUND}": GROUND}
    items: list[Item] = []
    offsets: dict[str, Item] = {}
    wrap_sets: list[tuple[str, Item]] = []
    stack: list[tuple[Element, str]] = [(model.element, "")]
    while stack:
        element, path = stack.pop()
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
            stack.append((child, inner))
    # a body has precedence over an offset frame of the same name
    by_name = {path.rsplit("/", 1)[-1]: path for path in (*offsets, *bodies)}
    return Frames(tuple(items), bodies, offsets, by_name, tuple(wrap_sets))

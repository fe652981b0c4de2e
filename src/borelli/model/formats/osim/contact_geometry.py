"""Contact geometry of an .osim file as shapes."""

from __future__ import annotations

from math import sqrt

from borelli.model.formats.osim.frames import Frames, compose_offset, frame_from_angles
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND, Frame, Shape
from borelli.model.transforms import compose, inverse

NORMAL = Frame(orientation=(sqrt(0.5), 0.0, -sqrt(0.5), 0.0))
"""Rotation of the outward normal from z, of a plane, to -x, of Simbody's half space."""


def read_contact_geometry(model: Item, frames: Frames, notes: list[str]) -> dict[str, list[Shape]]:
    """Return shapes by body; unsupported geometry is noted."""
    shapes: dict[str, list[Shape]] = {}
    for item in model.listed("ContactGeometrySet", "components"):
        if not item.kind.startswith("Contact"):
            continue
        stated = item.socket("frame", "body_name")
        body, frame = frames.locate(item, f"/contactgeometryset/{item.name}", stated)
        frame = compose_offset(frame, frame_from_angles(item.vector("location"), item.vector("orientation")))
        if item.kind == "ContactSphere" and item.number("radius", 0.0) > 0.0:
            shape = Shape("sphere", (item.number("radius", 0.0),), frame, name=item.name)
        elif item.kind == "ContactHalfSpace" and body == GROUND:
            shape = Shape("plane", (), compose(frame, NORMAL), name=item.name)
        else:
            named = f" (file {item.text('filename')!r})" if item.text("filename") else ""
            notes.append(
                f"{item.title}{named} on {body!r} is not read (only spheres, and half spaces on the ground, are)."
            )
            continue
        shapes.setdefault(body, []).append(shape)
    return shapes


def half_space_frame(plane: Shape) -> Frame:
    """Return the frame of the half space whose surface is this plane."""
    return compose(plane.frame, inverse(NORMAL))

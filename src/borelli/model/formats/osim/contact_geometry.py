"""Contact geometry of an .osim file as shapes."""

from __future__ import annotations

from math import sqrt

from borelli.model.formats.osim.frames import Frames, turned
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND, Frame, Shape
from borelli.model.transforms import compose, inverse

NORMAL = Frame(orientation=(sqrt(0.5), 0.0, -sqrt(0.5), 0.0))
"""Turns our plane's outward normal z to a half space's, which is -x (Simbody)."""


def read_contact_geometry(model: Item, frames: Frames, notes: list[str]) -> dict[str, list[Shape]]:
    """Shapes by the body that carries them; what is no shape to us is noted."""
    shapes: dict[str, list[Shape]] = {}
    for item in model.listed("ContactGeometrySet", "components"):
        if not item.kind.startswith("Contact"):
            continue
        stated = item.socket("frame", "body_name")
        body, frame = frames.locate(item, f"/contactgeometryset/{item.name}", stated)
        own = turned(item.vector("location"), item.vector("orientation"))
        frame = own if frame == Frame() else compose(frame, own)
        if item.kind == "ContactSphere" and item.number("radius", 0.0) > 0.0:
            shape = Shape("sphere", (item.number("radius", 0.0),), frame, name=item.name)
        elif item.kind == "ContactHalfSpace" and body == GROUND:
            shape = Shape("plane", (), compose(frame, NORMAL), name=item.name)
        else:
            named = f" (file {item.text('filename')!r})" if item.text("filename") else ""
            notes.append(f"{item.title}{named} on {body!r} is left out: only spheres, and half spaces on the ground")
            continue
        shapes.setdefault(body, []).append(shape)
    return shapes


def half_space_frame(plane: Shape) -> Frame:
    """The frame of the half space whose surface is this plane."""
    return compose(plane.frame, inverse(NORMAL))

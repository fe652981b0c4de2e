"""Elements and legal names shared by the parts of the .osim writer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.frames import xyz_angles
from borelli.model.formats.parsing import Namer
from borelli.model.model import GROUND, Frame, Model

ILLEGAL = re.compile(r"[\s/\\*+\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that OpenSim does not allow in names, or XML in text."""


def value(tag: str, *numbers: float) -> Element:
    """Return a property with numbers, with all their digits."""
    return make_element(tag, text=" ".join(repr(float(number)) for number in numbers))


def words(tag: str, text: str) -> Element:
    """Return a property with text."""
    return make_element(tag, text=text)


def flag(tag: str, state: bool) -> Element:
    """Return a property with a boolean."""
    return make_element(tag, text="true" if state else "false")


def objects(tag: str, members: Iterable[Element]) -> Element:
    """Return a set of objects."""
    return make_element(tag, make_element("objects", *members), make_element("groups"), name=tag.lower())


def offset_frame(name: str, body_path: str, frame: Frame) -> Element:
    """Return a frame fixed to a body."""
    return make_element(
        "PhysicalOffsetFrame",
        words("socket_parent", body_path),
        value("translation", *frame.position),
        value("orientation", *xyz_angles(frame)),
        name=name,
    )


Notes = dict[str, list[str]]
"""Elements concerned, by what cannot be written."""


@dataclass(slots=True)
class Names:
    """Names that OpenSim allows, one for each element of the model."""

    notes: Notes
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    joint_of: dict[str, str] = field(default_factory=dict)
    """Joint of each coordinate."""

    def add(self, kind: str, names: Iterable[str]) -> None:
        """Add all elements of one kind."""
        namer = Namer()
        for name in names:
            legal = namer.unique(ILLEGAL.sub("_", name))
            if legal != name:
                text = f"Names of kind {kind!r} are changed, because OpenSim does not allow them"
                self.notes.setdefault(text, []).append(f"{name!r} as {legal!r}")
            self.known[kind, name] = legal

    def of(self, kind: str, name: str) -> str:
        """Return the name to write."""
        return self.known[kind, name]

    def body_path(self, name: str) -> str:
        """Return the path of a body, or of the ground."""
        return f"/{GROUND}" if name == GROUND else f"/bodyset/{self.of('body', name)}"

    def coordinate_path(self, name: str) -> str:
        """Return the path of a coordinate."""
        return f"/jointset/{self.of('joint', self.joint_of[name])}/{self.of('coordinate', name)}"


def legal_names(model: Model, notes: Notes) -> Names:
    """Return legal names for all elements of a model."""
    names = Names(notes)
    names.add("body", (body.name for body in model.bodies))
    names.add("joint", (joint.name for joint in model.joints))
    names.add("coordinate", (c.name for c in model.coordinates))
    names.add("marker", (marker.name for marker in model.markers))
    names.add("coupling", (coupling.name for coupling in model.couplings))
    names.add("muscle", (muscle.name for muscle in model.muscles))
    names.add("wrap object", (wrap.name for wrap in model.wrap_objects))
    names.joint_of = {c.name: joint.name for joint in model.joints for c in joint.coordinates}
    return names

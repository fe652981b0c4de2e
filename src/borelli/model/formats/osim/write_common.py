"""What all parts of the .osim writer share: numbers as text, legal names, offset frames."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.frames import angles_of
from borelli.model.formats.osim.properties import Namer
from borelli.model.model import GROUND, Frame, Model

ILLEGAL = re.compile(r"[\s/\\*+\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that OpenSim refuses in names, or XML in text."""


def value(tag: str, *numbers: float) -> Element:
    """A property that holds numbers, with all their digits."""
    return make_element(tag, text=" ".join(repr(float(number)) for number in numbers))


def words(tag: str, text: str) -> Element:
    """A property that holds text."""
    return make_element(tag, text=text)


def flag(tag: str, state: bool) -> Element:
    """A property that holds a truth."""
    return make_element(tag, text="true" if state else "false")


def objects(tag: str, members: Iterable[Element]) -> Element:
    """A set of objects."""
    return make_element(tag, make_element("objects", *members), make_element("groups"), name=tag.lower())


def offset_frame(name: str, body_path: str, frame: Frame) -> Element:
    """A frame fixed to a body."""
    return make_element(
        "PhysicalOffsetFrame",
        words("socket_parent", body_path),
        value("translation", *frame.position),
        value("orientation", *angles_of(frame)),
        name=name,
    )


Notes = dict[str, list[str]]
"""Sentences on what cannot be written, and the elements that each of them is about."""


@dataclass(slots=True)
class Names:
    """Names as OpenSim allows them, the same wherever an element is spoken of."""

    notes: Notes
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    joint_of: dict[str, str] = field(default_factory=dict)
    """The joint that has a coordinate."""

    def add(self, what: str, names: Iterable[str]) -> None:
        """Takes in all elements of one kind."""
        namer = Namer()
        for name in names:
            legal = namer.unique(ILLEGAL.sub("_", name))
            if legal != name:
                said = f"names of kind {what!r} are written otherwise, because OpenSim refuses them"
                self.notes.setdefault(said, []).append(f"{name!r} as {legal!r}")
            self.known[what, name] = legal

    def of(self, what: str, name: str) -> str:
        """The name to write."""
        return self.known[what, name]

    def body_path(self, name: str) -> str:
        """The path of a body, or of the ground."""
        return f"/{GROUND}" if name == GROUND else f"/bodyset/{self.of('body', name)}"

    def coordinate_path(self, name: str) -> str:
        """The path of a coordinate."""
        return f"/jointset/{self.of('joint', self.joint_of[name])}/{self.of('coordinate', name)}"


def names_of(model: Model, notes: Notes) -> Names:
    """Legal names for everything in a model."""
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

"""OpenSim's XML as typed properties: with defaults, lists and sockets of all versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

from borelli.errors import FileFormatError
from borelli.files.xml import Element, read_xml
from borelli.model.model import Vector

FLAGS = {"true": True, "1": True, "false": False, "0": False}
MIN_VERSION = 20000
"""Documents before OpenSim 2.0 define joints differently."""
MAX_DEFAULTS = 20_000_000
"""Maximum number of characters that the <defaults> of a file add to its elements."""
MAX_ELEMENTS = {
    "Body": 1000,
    "Joint": 2000,
    "Constraint": 2000,
    "Muscle": 4000,
    "PathPoint": 40_000,
    "PathWrap": 20_000,
    "Marker": 20_000,
}
"""Maximum number of elements by ending of the tag: about ten times that of the largest known model."""
MAX_SPLINE_TEXT = 2_000_000
"""Maximum number of characters of all x values of splines together."""


@dataclass(frozen=True, slots=True)
class Item:
    """Object of the file with its properties."""

    element: Element

    @property
    def kind(self) -> str:
        """OpenSim's class name."""
        return self.element.tag

    @property
    def name(self) -> str:
        """Name of the object; may be empty."""
        return self.element.attributes.get("name", "").strip()

    @property
    def title(self) -> str:
        """Class and name, for messages."""
        return f"{self.kind} {self.name!r}"

    def error(self, problem: str) -> FileFormatError:
        """Return an error that names this object and its line."""
        return self.element.error(f"{self.title}: {problem}")

    def child(self, *tags: str) -> Item | None:
        """Return the first child with one of these tags."""
        return next((Item(child) for child in self.element.children if child.tag in tags), None)

    def children(self) -> Iterator[Item]:
        """Return an iterator over the children."""
        return (Item(child) for child in self.element.children)

    def listed(self, *tags: str) -> list[Item]:
        """Return the objects of a list property or set, directly or inside `<objects>`."""
        items: list[Item] = []
        for child in self.children():
            if child.kind in tags:
                inner = child.child("objects")
                items.extend(child.children() if inner is None else inner.children())
        return [item for item in items if item.kind not in ("objects", "groups", "defaults")]

    def text(self, *tags: str) -> str:
        """Return the text of the first property with one of these tags; empty if there is none."""
        self.element.was_read = True
        child = self.child(*tags)
        return "" if child is None else child.element.text

    def numbers(self, tag: str) -> list[float]:
        """Return all numbers of a property; empty if it is missing."""
        text = self.text(tag)
        try:
            values = [float(word) for word in text.replace(",", " ").replace("_", "?").split()]
        except ValueError:
            values = [nan]
        if not all(map(isfinite, values)):
            raise self.error(f"<{tag}> is {text[:40]!r}. Give finite numbers.")
        return values

    def number(self, tag: str, default: float) -> float:
        """Return the number of a property."""
        return self._exactly(tag, 1, (default,))[0]

    def vector(self, tag: str, default: Vector = (0.0, 0.0, 0.0)) -> Vector:
        """Return the three numbers of a property."""
        x, y, z = self._exactly(tag, 3, default)
        return x, y, z

    def pair(self, tag: str, default: tuple[float, float]) -> tuple[float, float]:
        """Return the two numbers of a property."""
        first, second = self._exactly(tag, 2, default)
        return first, second

    def flag(self, tag: str, default: bool = False) -> bool:
        """Return the boolean of a property."""
        word = self.text(tag).lower()
        if word not in FLAGS and word:
            raise self.error(f"<{tag}> is {word[:40]!r}. It must be true or false.")
        return FLAGS.get(word, default)

    def socket(self, name: str, *older: str) -> str:
        """Return what the object is connected to under this name: a path, or in older files a plain name."""
        stated = self.text(f"socket_{name}", f"socket_{name}_connectee_name")
        if stated:
            return stated
        for connector in self.listed("connectors"):
            if connector.name == name:
                return connector.text("connectee_name")
        return self.text(*older)

    def _exactly(self, tag: str, count: int, default: tuple[float, ...]) -> tuple[float, ...]:
        values = self.numbers(tag)
        if not values and self.child(tag) is None:
            return default
        if len(values) != count:
            raise self.error(f"<{tag}> has {len(values)} numbers. Give {count}.")
        return tuple(values)


def load(path: str | Path) -> Item:
    """Return the model of an .osim file, with its <defaults> applied."""
    root = read_xml(path)
    if root.tag != "OpenSimDocument":
        hint = " Save files of OpenSim 1 again with OpenSim 3 or 4." if root.tag == "Model" else ""
        raise FileFormatError(path, f"The root element is <{root.tag[:40]}>, not <OpenSimDocument>.{hint}")
    stated = root.attributes.get("Version", "")
    if not stated.isascii() or not stated.isdigit() or len(stated) > 9:
        problem = f"The Version of the document is {stated[:20]!r}. It must be a number such as 40000."
        raise FileFormatError(path, problem)
    if int(stated) < MIN_VERSION:
        problem = f"The file is from OpenSim before 2.0 (Version {stated}). Save it again with OpenSim 3 or 4."
        raise FileFormatError(path, problem)
    model = root.find("Model")
    if model is None:
        items = root.children[0].tag[:40] if root.children else "nothing"
        raise FileFormatError(path, f"The document contains <{items}> instead of <Model>. Pass a model file.")
    _fill_defaults(model, path)
    _check_counts(model, path)
    return Item(model)


def _fill_defaults(model: Element, path: object) -> None:
    """Give every object the properties that it leaves out and the file's <defaults> state for its class."""
    section = model.find("defaults")
    if section is None:
        return
    patterns = {element.tag: element for element in section.children}
    sizes = {tag: sum(len(e.tag) + len(e.text) + 16 for e in pattern.walk()) for tag, pattern in patterns.items()}
    model.children = [child for child in model.children if child is not section]
    added = 0
    for element in list(model.walk()):
        pattern = patterns.get(element.tag)
        if pattern is None:
            continue
        added += sizes[element.tag]
        if added > MAX_DEFAULTS:
            raise FileFormatError(path, f"The <defaults> add more than {MAX_DEFAULTS} characters to the file.")
        own = {child.tag for child in element.children}
        element.children.extend(child for child in pattern.children if child.tag not in own)


def _check_counts(model: Element, path: object) -> None:
    counts = Counter(element.tag for element in model.walk())
    spline_text = sum(len(element.text) for element in model.walk() if element.tag == "x")
    for ending, most in MAX_ELEMENTS.items():
        items = sum(count for tag, count in counts.items() if tag.endswith(ending))
        if items > most:
            raise FileFormatError(path, f"The file has {items} elements <...{ending}> (maximum {most}).")
    if spline_text > MAX_SPLINE_TEXT:
        raise FileFormatError(path, f"The splines have more than {MAX_SPLINE_TEXT} characters.")

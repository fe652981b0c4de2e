"""OpenSim's XML as typed properties: defaults filled in, lists and sockets found whatever the version of the file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, nan

from borelli.errors import FileFormatError
from borelli.files.xml import Element, read_xml
from borelli.model.model import Vector

OLDEST = 20000
"""Documents before OpenSim 2.0 state joints in another way."""
MAX_DEFAULTS = 20_000_000
"""Most characters that the <defaults> of a file may add to its elements."""
MOST = {
    "Body": 1000,
    "Joint": 2000,
    "Constraint": 2000,
    "Muscle": 4000,
    "PathPoint": 40_000,
    "PathWrap": 20_000,
    "Marker": 20_000,
}
"""Most elements whose tag ends so: some ten times what the largest model met has."""
MOST_SPLINE_TEXT = 2_000_000
"""Most characters of all x values of splines together."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object of the file with its properties."""

    element: Element

    @property
    def kind(self) -> str:
        """OpenSim's class name."""
        return self.element.tag

    @property
    def name(self) -> str:
        """The object's name; may be empty."""
        return self.element.attributes.get("name", "").strip()

    @property
    def title(self) -> str:
        """Class and name, for messages."""
        return f"{self.kind} {self.name!r}"

    def error(self, problem: str) -> FileFormatError:
        """The error that says what is wrong with this object, and where it stands."""
        return self.element.error(f"{self.title}: {problem}")

    def child(self, *tags: str) -> Item | None:
        """The first child with one of these tags."""
        return next((Item(child) for child in self.element.children if child.tag in tags), None)

    def children(self) -> Iterator[Item]:
        """Every child."""
        return (Item(child) for child in self.element.children)

    def listed(self, *tags: str) -> list[Item]:
        """The objects of a list property or set; `<objects>` inside it is looked through."""
        found: list[Item] = []
        for child in self.children():
            if child.kind in tags:
                inner = child.child("objects")
                found.extend(child.children() if inner is None else inner.children())
        return [item for item in found if item.kind not in ("objects", "groups", "defaults")]

    def text(self, *tags: str) -> str:
        """The text of the first property with one of these tags; empty if there is none."""
        child = self.child(*tags)
        return "" if child is None else child.element.text

    def numbers(self, tag: str) -> list[float]:
        """All numbers of a property; empty if it is not there."""
        text = self.text(tag)
        try:
            values = [float(word) for word in text.replace(",", " ").replace("_", "?").split()]
        except ValueError:
            values = [nan]
        if not all(map(isfinite, values)):
            raise self.error(f"<{tag}> must hold finite numbers, got {text[:40]!r}")
        return values

    def number(self, tag: str, default: float) -> float:
        """The one number of a property."""
        return self._exactly(tag, 1, (default,))[0]

    def vector(self, tag: str, default: Vector = (0.0, 0.0, 0.0)) -> Vector:
        """The three numbers of a property."""
        x, y, z = self._exactly(tag, 3, default)
        return x, y, z

    def pair(self, tag: str, default: tuple[float, float]) -> tuple[float, float]:
        """The two numbers of a property."""
        first, second = self._exactly(tag, 2, default)
        return first, second

    def flag(self, tag: str, default: bool = False) -> bool:
        """The truth a property states."""
        word = self.text(tag).lower()
        if word in ("true", "1"):
            return True
        if word in ("false", "0"):
            return False
        if word:
            raise self.error(f"<{tag}> must be true or false, got {word[:40]!r}")
        return default

    def socket(self, name: str, *older: str) -> str:
        """What the object is connected to under this name: a path, or in older files a plain name."""
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
            raise self.error(f"<{tag}> must hold {count} number{'s' * (count > 1)}, got {len(values)}")
        return tuple(values)


class Namer:
    """Gives each element a name of its own: the one it has, or that with _2, _3 ... behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or the first of name_2, name_3 ... that is not taken; it is taken from now on."""
        candidate, number = name, self._last.get(name, 1)
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._last[name] = number
        self._taken.add(candidate)
        return candidate


def load(path: str | os.PathLike[str]) -> Item:
    """The model of an .osim file, its <defaults> filled in."""
    root = read_xml(path)
    if root.tag != "OpenSimDocument":
        hint = "; old files of OpenSim 1 must be saved anew by OpenSim" if root.tag == "Model" else ""
        raise FileFormatError(path, f"the root element is <{root.tag[:40]}>, not <OpenSimDocument>{hint}")
    stated = root.attributes.get("Version", "")
    if not stated.isascii() or not stated.isdigit() or len(stated) > 9:
        raise FileFormatError(path, f"the Version of the document is {stated[:20]!r}, but must be a number like 40000")
    if int(stated) < OLDEST:
        raise FileFormatError(
            path, f"written by OpenSim before 2.0 (Version {stated}); save it anew with OpenSim 3 or 4"
        )
    model = root.find("Model")
    if model is None:
        got = root.children[0].tag[:40] if root.children else "nothing"
        raise FileFormatError(path, f"the document holds <{got}> instead of <Model>; give a model file")
    _fill_defaults(model, path)
    _check_counts(model, path)
    return Item(model)


def _fill_defaults(model: Element, path: object) -> None:
    """Gives every object the properties it leaves out and the file's <defaults> state for its class."""
    section = model.find("defaults")
    if section is None:
        return
    patterns = {element.tag: element for element in section.children}
    weights = {tag: _weight(element) for tag, element in patterns.items()}
    model.children = [child for child in model.children if child is not section]
    added = 0
    for element in list(model.walk()):
        pattern = patterns.get(element.tag)
        if pattern is None:
            continue
        added += weights[element.tag]
        if added > MAX_DEFAULTS:
            raise FileFormatError(path, f"the <defaults> add more than {MAX_DEFAULTS} characters to the file")
        own = {child.tag for child in element.children}
        element.children.extend(child for child in pattern.children if child.tag not in own)


def _check_counts(model: Element, path: object) -> None:
    counts: Counter[str] = Counter()
    spline_text = 0
    for element in model.walk():
        counts[element.tag] += 1
        if element.tag == "x":
            spline_text += len(element.text)
    for ending, most in MOST.items():
        found = sum(count for tag, count in counts.items() if tag.endswith(ending))
        if found > most:
            raise FileFormatError(path, f"it has {found} elements <...{ending}>, but at most {most} are read")
    if spline_text > MOST_SPLINE_TEXT:
        raise FileFormatError(path, f"its splines hold more than {MOST_SPLINE_TEXT} characters, which are not read")


def _weight(element: Element) -> int:
    return sum(len(part.tag) + len(part.text) + 16 for part in element.walk())

"""The text of an ASF file: Acclaim's skeleton of bones, each a direction, a length, axes and degrees of freedom.

Sections begin with a colon. In the skeleton's default pose every bone points along its stated direction; its degrees
of freedom turn it about its own `axis`, in the order the axis word gives (XYZ: about x first).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, radians
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, unknown_name
from borelli.files.text import MAX_NUMBER, read_bytes
from borelli.model.model import Vector
from borelli.model.transforms import Array

ROOT = "root"
MAX_BONES = 2000
INCH = 0.0254
LENGTHS = (1.0, 0.01, 0.001, INCH, INCH / 0.45)
"""Units [m] tried where the file's own unit makes no person."""
STATURE = (1.2, 2.3)
"""Extents [m] of a skeleton in its default pose that are a grown person's."""
FREEDOMS = ("tx", "ty", "tz", "rx", "ry", "rz", "l")


@dataclass(frozen=True)
class Bone:
    """One bone, in the file's units and axes; angles in radians."""

    name: str
    direction: Vector
    length: float
    axis: Vector
    order: str
    freedoms: tuple[str, ...] = ()
    limits: tuple[tuple[float, float], ...] = ()

    @property
    def end(self) -> Array:
        """From the bone's joint to its end, in the default pose."""
        return np.array(self.direction) * self.length


@dataclass(frozen=True)
class AsfSkeleton:
    """What an ASF file says. `bones` holds parents before children; `parents` their parents' names."""

    name: str
    length: float
    degrees: bool
    root_order: tuple[str, ...]
    root_axis: str
    root_position: Vector
    root_orientation: Vector
    bones: tuple[Bone, ...]
    parents: tuple[str, ...]
    documentation: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    def default_starts(self) -> Array:
        """Where each bone begins in the default pose, relative to the root [file units]."""
        ends: dict[str, Array] = {ROOT: np.zeros(3)}
        starts = []
        for bone, parent in zip(self.bones, self.parents, strict=True):
            starts.append(ends[parent])
            ends[bone.name] = ends[parent] + bone.end
        return np.array(starts).reshape(-1, 3)

    def extent(self) -> float:
        """The longest side of a box around the skeleton in its default pose [file units]."""
        starts = self.default_starts()
        ends = starts + np.array([bone.end for bone in self.bones]).reshape(-1, 3)
        return float(np.max(np.ptp(np.concatenate((starts, ends)), axis=0)))

    def metres(self) -> tuple[float, str]:
        """Length of the file's unit [m], and why it is taken to be that."""
        size = self.extent()
        stated = INCH / self.length
        if STATURE[0] <= size * stated <= STATURE[1]:
            return stated, f"the file says length {self.length:g}, and {self.length:g} units to the inch make a person"
        for unit in LENGTHS:
            if STATURE[0] <= size * unit <= STATURE[1]:
                return unit, f"the skeleton's extent, {size:.4g} in the file, is then {size * unit:.2f} m"
        return stated, f"the file says length {self.length:g}, taken as units to the inch, which makes no person"


def read_asf_text(path: str | os.PathLike[str]) -> AsfSkeleton:
    """The skeleton in an ASF file, as the file states it."""
    path = Path(path)
    data = read_bytes(path)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = data.decode(encoding, errors="replace")
    if "\0" in text:
        raise FileFormatError(path, f"character {text.index(chr(0))} is NUL, so this is no ASF text")
    reader = _Reader(path)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            reader.take(words, number)
    return reader.skeleton()


def looks_like_asf(head: bytes) -> bool:
    """Whether a file that begins so is an ASF."""
    return any(line.strip().lower().startswith((b":bonedata", b":root", b":units")) for line in head.splitlines())


def bone_rotation(angles: Vector, order: str) -> Array:
    """The rotation of a bone's axis [rad]: about the first axis of the order first."""
    matrix = np.eye(3)
    for letter in order.lower():
        matrix = _turn(letter, angles["xyz".index(letter)]) @ matrix
    return matrix


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.section = ""
        self.settings: dict[str, str] = {}
        self.root: dict[str, list[str]] = {}
        self.documentation: list[str] = []
        self.bone: dict[str, list[str]] = {}
        self.bones: dict[str, Bone] = {}
        self.parent_of: dict[str, str] = {}
        self.key = ""

    def take(self, text: str, number: int) -> None:
        if text.startswith(":"):
            self.section, _, rest = text[1:].partition(" ")
            self.section = self.section.lower()
            if rest.strip():
                self.settings[self.section] = rest.strip()
            return
        words = text.split()
        if self.section == "units":
            self.settings[words[0].lower()] = " ".join(words[1:])
        elif self.section == "root":
            self.root[words[0].lower()] = words[1:]
        elif self.section == "bonedata":
            self._take_bone(words, number)
        elif self.section == "hierarchy":
            self._take_children(words, number)
        elif self.section == "documentation":
            self.documentation.append(text)

    def _take_bone(self, words: list[str], number: int) -> None:
        key = words[0].lower()
        if key == "begin":
            self.bone, self.key = {}, ""
        elif key == "end":
            bone = self._bone(number)
            if bone.name in self.bones or bone.name == ROOT:
                raise FileFormatError(self.path, f"bone {bone.name!r} is described twice", line=number)
            if len(self.bones) >= MAX_BONES:
                raise FileFormatError(self.path, f"more than {MAX_BONES} bones", line=number)
            self.bones[bone.name] = bone
        elif key[0] == "(" and self.key == "limits":
            self.bone["limits"] += words
        else:
            self.key = key
            self.bone[key] = words[1:]

    def _bone(self, number: int) -> Bone:
        for key in ("name", "direction", "length", "axis"):
            if not self.bone.get(key):
                raise FileFormatError(self.path, f"the bone that ends here has no {key}", line=number)
        name = " ".join(self.bone["name"])
        freedoms = tuple(word.lower() for word in self.bone.get("dof", []))
        for word in freedoms:
            if word not in FREEDOMS:
                what = f"bone {name!r}: {unknown_name('degree of freedom', word, FREEDOMS)}"
                raise FileFormatError(self.path, what, line=number)
        if len(set(freedoms)) < len(freedoms):
            raise FileFormatError(self.path, f"bone {name!r}: a degree of freedom is named twice", line=number)
        *angles, order = self.bone["axis"] if len(self.bone["axis"]) == 4 else [*self.bone["axis"], "XYZ"]
        return Bone(
            name=name,
            direction=self._vector(self.bone["direction"], f"bone {name!r}: direction", number),
            length=self._numbers(self.bone["length"], 1, f"bone {name!r}: length", number)[0],
            axis=self._turned(self._vector(angles, f"bone {name!r}: axis", number)),
            order=self._order(order, number),
            freedoms=freedoms,
            limits=self._limits(name, freedoms, number),
        )

    def _limits(self, name: str, freedoms: Sequence[str], number: int) -> tuple[tuple[float, float], ...]:
        words = " ".join(self.bone.get("limits", [])).replace("(", " ").replace(")", " ").replace(",", " ").split()
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = [float("nan")]
        if not values:
            return ((-inf, inf),) * len(freedoms)
        if len(values) != 2 * len(freedoms) or any(value != value for value in values):
            what = f"bone {name!r}: expected {len(freedoms)} limits in brackets, got {' '.join(words)[:60]!r}"
            raise FileFormatError(self.path, what, line=number)
        pairs = []
        for freedom, low, high in zip(freedoms, values[0::2], values[1::2], strict=True):
            if low > high:
                raise FileFormatError(self.path, f"bone {name!r}: the limits {low} {high} run backwards", line=number)
            turns = freedom[0] == "r" and self._degrees()
            pairs.append((radians(low), radians(high)) if turns else (low, high))
        return tuple(pairs)

    def _take_children(self, words: list[str], number: int) -> None:
        if words[0].lower() in ("begin", "end") and len(words) == 1:
            return
        for child in words[1:]:
            if child == ROOT:
                raise FileFormatError(self.path, f"the root cannot hang on {words[0]!r}", line=number)
            if child in self.parent_of:
                raise FileFormatError(self.path, f"bone {child!r} has two parents", line=number)
            for name in (words[0], child):
                if name not in self.bones and name != ROOT:
                    raise FileFormatError(self.path, unknown_name("bone", name, self.bones), line=number)
            self.parent_of[child] = words[0]

    def skeleton(self) -> AsfSkeleton:
        if not self.bones:
            raise FileFormatError(self.path, "no bone between `:bonedata` and `:hierarchy`; is this an ASF file?")
        order = self._parents_first()
        length = self._numbers(self.settings.get("length", "1").split(), 1, "length", None)[0]
        if not length > 0.0:
            raise FileFormatError(self.path, f"length is {length}, but must be positive")
        root_order = tuple(word.lower() for word in self.root.get("order", ["tx", "ty", "tz", "rx", "ry", "rz"]))
        if len(set(root_order)) < len(root_order) or not set(root_order) <= set(FREEDOMS[:6]):
            raise FileFormatError(self.path, f"the root's order is {' '.join(root_order)!r}; allowed are tx ... rz")
        return AsfSkeleton(
            name=self.settings.get("name", self.path.stem),
            length=length,
            degrees=self._degrees(),
            root_order=root_order,
            root_axis=self._order("".join(self.root.get("axis", ["XYZ"])), None),
            root_position=self._vector(self.root.get("position", ["0", "0", "0"]), "root position", None),
            root_orientation=self._turned(
                self._vector(self.root.get("orientation", ["0", "0", "0"]), "root orientation", None)
            ),
            bones=tuple(self.bones[name] for name in order),
            parents=tuple(self.parent_of[name] for name in order),
            documentation="\n".join(self.documentation),
            settings=dict(self.settings),
        )

    def _parents_first(self) -> list[str]:
        """Names of the bones that hang on the root, parents before children, otherwise as the hierarchy lists them."""
        children: dict[str, list[str]] = {}
        for child, parent in self.parent_of.items():
            children.setdefault(parent, []).append(child)
        order, waiting = [], children.get(ROOT, [])[::-1]
        while waiting:
            name = waiting.pop()
            order.append(name)
            waiting += children.get(name, [])[::-1]
        hung = set(order)
        loose = [name for name in self.bones if name not in hung]
        if loose:
            raise FileFormatError(self.path, f"bones that hang on nothing: {', '.join(loose[:10])}; mend `:hierarchy`")
        return order

    def _degrees(self) -> bool:
        return not self.settings.get("angle", "deg").lower().startswith("rad")

    def _turned(self, angles: Vector) -> Vector:
        x, y, z = angles
        return (radians(x), radians(y), radians(z)) if self._degrees() else angles

    def _order(self, word: str, number: int | None) -> str:
        if sorted(word.upper()) != ["X", "Y", "Z"]:
            raise FileFormatError(self.path, f"axis order is {word!r}, but must be XYZ in some order", line=number)
        return word.upper()

    def _vector(self, words: Sequence[str], what: str, number: int | None) -> Vector:
        x, y, z = self._numbers(words, 3, what, number)
        return x, y, z

    def _numbers(self, words: Sequence[str], count: int, what: str, number: int | None) -> list[float]:
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not all(abs(value) < MAX_NUMBER for value in values):
            got = " ".join(words)[:60]
            raise FileFormatError(self.path, f"{what}: expected {count} numbers, got {got!r}", line=number)
        return values


def _turn(letter: str, angle: float) -> Array:
    k = "xyz".index(letter)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = np.cos(angle)
    matrix[j, i] = np.sin(angle)
    matrix[i, j] = -np.sin(angle)
    return matrix

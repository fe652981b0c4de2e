"""Parser of ASF files: Acclaim's skeleton of bones, each with a direction, a length, axes and degrees of freedom.

Sections begin with a colon. In the skeleton's default pose every bone points along its stated direction; its degrees
of freedom rotate it about its own `axis`, in the order of the axis word (XYZ: about x first).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, radians
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, unknown_name
from borelli.files.paths import as_path
from borelli.files.text import read_bytes
from borelli.model.formats.parsing import parse_numbers
from borelli.model.model import Vector
from borelli.model.transforms import Array

ROOT = "root"
MAX_BONES = 2000
INCH = 0.0254
LENGTHS = (1.0, 0.01, 0.001, INCH, INCH / 0.45)
"""Units [m] tried where the stature in the file's own unit is implausible."""
STATURE = (1.2, 2.3)
"""Plausible extent [m] of an adult's skeleton in its default pose."""
FREEDOMS = ("tx", "ty", "tz", "rx", "ry", "rz", "l")
KEYS = {
    "": ("version", "name", "units", "documentation", "root", "bonedata", "hierarchy"),
    "units": ("mass", "length", "angle"),
    "root": ("order", "axis", "position", "orientation"),
    "bonedata": ("begin", "end", "id", "name", "direction", "length", "axis", "dof", "limits"),
}
"""Sections, and the entries of each, that are read or that only describe the file."""


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
        """Vector from the bone's joint to its end, in the default pose."""
        return np.array(self.direction) * self.length


@dataclass(frozen=True)
class AsfSkeleton:
    """Content of an ASF file. `bones` has parents before children; `parents` their parents' names."""

    name: str
    length: float
    degrees: bool
    root_order: tuple[str, ...]
    root_axis: str
    root_position: Vector
    root_orientation: Vector
    bones: tuple[Bone, ...]
    parents: tuple[str, ...]
    unread: tuple[tuple[str, str], ...] = ()
    """Kind and owner of the entries that are not read."""

    def default_starts(self) -> Array:
        """Return the start of each bone in the default pose, relative to the root [file units]."""
        ends: dict[str, Array] = {ROOT: np.zeros(3)}
        starts = []
        for bone, parent in zip(self.bones, self.parents, strict=True):
            starts.append(ends[parent])
            ends[bone.name] = ends[parent] + bone.end
        return np.array(starts).reshape(-1, 3)

    def extent(self) -> float:
        """Return the longest side of the bounding box in the default pose [file units]."""
        starts = self.default_starts()
        ends = starts + np.array([bone.end for bone in self.bones]).reshape(-1, 3)
        return float(np.max(np.ptp(np.concatenate((starts, ends)), axis=0)))

    def length_unit(self) -> tuple[float, str]:
        """Return the length of the file's unit [m], and the reason."""
        size = self.extent()
        stated_unit = INCH / self.length
        if STATURE[0] <= size * stated_unit <= STATURE[1]:
            return stated_unit, f"stated in the file: {self.length:g} units per inch"
        for unit in LENGTHS:
            if STATURE[0] <= size * unit <= STATURE[1]:
                return unit, f"inferred from the extent of the skeleton, {size * unit:.2f} m"
        return stated_unit, f"stated in the file: {self.length:g} units per inch, with an implausible stature"


def read_asf_text(path: str | Path) -> AsfSkeleton:
    """Read the skeleton of an ASF file, in the file's units and axes."""
    path = as_path(path)
    data = read_bytes(path)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = data.decode(encoding, errors="replace")
    if "\0" in text:
        raise FileFormatError(path, f"Character {text.index(chr(0))} is NUL. The file is not ASF text.")
    reader = _Reader(path)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            reader.line = number
            reader.add_line(words)
    return reader.skeleton()


def looks_like_asf(head: bytes) -> bool:
    """Return True if a file that begins so is an ASF file."""
    return any(line.strip().lower().startswith((b":bonedata", b":root", b":units")) for line in head.splitlines())


def bone_rotation(angles: Vector, order: str) -> Array:
    """Return the rotation of a bone's axis from angles [rad]: about the first axis of the order first."""
    matrix = np.eye(3)
    for letter in order.lower():
        matrix = _elementary_rotation(letter, angles["xyz".index(letter)]) @ matrix
    return matrix


@dataclass
class _Reader:
    path: Path
    line: int | None = None
    """Number of the line that is read, for errors; None: the whole file."""
    section: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    root: dict[str, list[str]] = field(default_factory=dict)
    bone: dict[str, list[str]] = field(default_factory=dict)
    bones: dict[str, Bone] = field(default_factory=dict)
    parent_of: dict[str, str] = field(default_factory=dict)
    key: str = ""
    unread: list[tuple[str, str]] = field(default_factory=list)

    def add_line(self, text: str) -> None:
        if text.startswith(":"):
            self.section, _, rest = text[1:].partition(" ")
            self.section = self.section.lower()
            self._note_unread("", self.section, "")
            if rest.strip():
                self.settings[self.section] = rest.strip()
            return
        words = text.split()
        if self.section in ("units", "root"):
            self._note_unread(self.section, words[0].lower(), self.section)
        if self.section == "units":
            self.settings[words[0].lower()] = " ".join(words[1:])
        elif self.section == "root":
            self.root[words[0].lower()] = words[1:]
        elif self.section == "bonedata":
            self._add_bone_line(words)
        elif self.section == "hierarchy":
            self._add_children(words)

    def _add_bone_line(self, words: list[str]) -> None:
        key = words[0].lower()
        if key == "begin":
            self.bone, self.key = {}, ""
        elif key == "end":
            bone = self._bone()
            for entry in self.bone:
                self._note_unread("bonedata", entry, bone.name)
            if bone.name in self.bones or bone.name == ROOT:
                raise self._error(f"Bone {bone.name!r} is defined twice. Rename one.")
            if len(self.bones) >= MAX_BONES:
                raise self._error(f"The file has more than {MAX_BONES} bones.")
            self.bones[bone.name] = bone
        elif key[0] == "(" and self.key == "limits":
            self.bone["limits"] += words
        else:
            self.key = key
            self.bone[key] = words[1:]

    def _note_unread(self, section: str, key: str, owner: str) -> None:
        if key not in KEYS[section]:
            self.unread.append((key, owner))

    def _bone(self) -> Bone:
        for key in ("name", "direction", "length", "axis"):
            if not self.bone.get(key):
                raise self._error(f"The bone that ends here has no {key}.")
        name = " ".join(self.bone["name"])
        freedoms = tuple(word.lower() for word in self.bone.get("dof", []))
        for word in freedoms:
            if word not in FREEDOMS:
                problem = f"Bone {name!r}: {unknown_name('degree of freedom', word, FREEDOMS)}"
                raise self._error(problem)
        if len(set(freedoms)) < len(freedoms):
            raise self._error(f"Bone {name!r}: A degree of freedom is repeated.")
        *angles, order = self.bone["axis"] if len(self.bone["axis"]) == 4 else [*self.bone["axis"], "XYZ"]
        return Bone(
            name=name,
            direction=self._vector(self.bone["direction"], f"Bone {name!r}: direction"),
            length=self._numbers(self.bone["length"], 1, f"Bone {name!r}: length")[0],
            axis=self._to_radians(self._vector(angles, f"Bone {name!r}: axis")),
            order=self._order(order),
            freedoms=freedoms,
            limits=self._limits(name, freedoms),
        )

    def _limits(self, name: str, freedoms: Sequence[str]) -> tuple[tuple[float, float], ...]:
        words = re.sub(r"[(),]", " ", " ".join(self.bone.get("limits", []))).split()
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = [float("nan")]
        if not values:
            return ((-inf, inf),) * len(freedoms)
        if len(values) != 2 * len(freedoms) or any(value != value for value in values):
            problem = f"Bone {name!r}: Expected {len(freedoms)} limits in brackets (found {' '.join(words)[:60]!r})."
            raise self._error(problem)
        pairs = []
        for freedom, low, high in zip(freedoms, values[0::2], values[1::2], strict=True):
            if low > high:
                raise self._error(f"Bone {name!r}: The limits {low} {high} are reversed. Swap them.")
            in_degrees = freedom[0] == "r" and self._degrees()
            pairs.append((radians(low), radians(high)) if in_degrees else (low, high))
        return tuple(pairs)

    def _add_children(self, words: list[str]) -> None:
        if words[0].lower() in ("begin", "end") and len(words) == 1:
            return
        for child in words[1:]:
            if child == ROOT:
                raise self._error(f"The root is a child of {words[0]!r}. It cannot have a parent.")
            if child in self.parent_of:
                raise self._error(f"Bone {child!r} has two parents. Remove one.")
            for name in (words[0], child):
                if name not in self.bones and name != ROOT:
                    raise self._error(unknown_name("bone", name, self.bones))
            self.parent_of[child] = words[0]

    def skeleton(self) -> AsfSkeleton:
        self.line = None
        if not self.bones:
            raise self._error("There is no bone between `:bonedata` and `:hierarchy`. Pass an ASF file.")
        order = self._parents_first()
        length = self._numbers(self.settings.get("length", "1").split(), 1, "length")[0]
        if not length > 0.0:
            raise self._error(f"length is {length}. It must be positive.")
        root_order = tuple(word.lower() for word in self.root.get("order", ["tx", "ty", "tz", "rx", "ry", "rz"]))
        if len(set(root_order)) < len(root_order) or not set(root_order) <= set(FREEDOMS[:6]):
            raise self._error(f"The order of the root is {' '.join(root_order)!r}. Allowed are tx ... rz.")
        return AsfSkeleton(
            name=self.settings.get("name", self.path.stem),
            length=length,
            degrees=self._degrees(),
            root_order=root_order,
            root_axis=self._order("".join(self.root.get("axis", ["XYZ"]))),
            root_position=self._vector(self.root.get("position", ["0", "0", "0"]), "root position"),
            root_orientation=self._to_radians(
                self._vector(self.root.get("orientation", ["0", "0", "0"]), "root orientation")
            ),
            bones=tuple(self.bones[name] for name in order),
            parents=tuple(self.parent_of[name] for name in order),
            unread=tuple(self.unread),
        )

    def _parents_first(self) -> list[str]:
        """Return the bones connected to the root, parents first, otherwise in the order of the hierarchy."""
        children: dict[str, list[str]] = {}
        for child, parent in self.parent_of.items():
            children.setdefault(parent, []).append(child)
        order, stack = [], children.get(ROOT, [])[::-1]
        while stack:
            name = stack.pop()
            order.append(name)
            stack += children.get(name, [])[::-1]
        connected = set(order)
        orphans = [name for name in self.bones if name not in connected]
        if orphans:
            raise self._error(f"Bones without a parent: {', '.join(orphans[:10])}. Correct `:hierarchy`.")
        return order

    def _error(self, problem: str) -> FileFormatError:
        return FileFormatError(self.path, problem, line=self.line)

    def _degrees(self) -> bool:
        return not self.settings.get("angle", "deg").lower().startswith("rad")

    def _to_radians(self, angles: Vector) -> Vector:
        x, y, z = angles
        return (radians(x), radians(y), radians(z)) if self._degrees() else angles

    def _order(self, word: str) -> str:
        if sorted(word.upper()) != ["X", "Y", "Z"]:
            raise self._error(f"The axis order is {word!r}. It must be XYZ in some order.")
        return word.upper()

    def _vector(self, words: Sequence[str], name: str) -> Vector:
        x, y, z = self._numbers(words, 3, name)
        return x, y, z

    def _numbers(self, words: Sequence[str], count: int, name: str) -> list[float]:
        values = parse_numbers(words, count)
        if values is None:
            found = " ".join(words)[:60]
            raise self._error(f"{name}: Expected {count} numbers (found {found!r}).")
        return values


def _elementary_rotation(letter: str, angle: float) -> Array:
    k = "xyz".index(letter)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = np.cos(angle)
    matrix[j, i] = np.sin(angle)
    matrix[i, j] = -np.sin(angle)
    return matrix

"""Reader of pagoda's skeleton and marker text.

Body lines: `name box X Y Z` or `name cap LENGTH RADIUS*` (full lengths; the star marks the radius, and the length is
without the caps), then `density D` [kg/m^3] and `position x y z` if need be. Joint lines: `kind A(anchor) <- B(anchor)
stops lo~hi ... axes <x y z> ...`, anchors as fractions of the half extents, stops in degrees. `<-` moves B so that the
anchors meet, `->` moves A. Marker lines: `label body x y z`, fractions of the half extents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import radians
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, unknown_name
from borelli.files.text import MAX_NUMBER, read_text
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Marker, Model, Shape, Vector
from borelli.model.transforms import Array, vector
from borelli.model.validate import validate

SMALLEST = 1e-30
"""What is smaller counts as zero: no volume can be made of it."""
MOST_BODIES = 2000
"""And as many joints: a person has twenty."""
LONGEST_LINE = 2000
"""Letters; those of a joint with all its stops and axes are some 150."""
DENSITY = 1000.0
"""[kg/m^3] where the file gives none: pagoda's default."""
KINDS = {"ball": ("ball", 3), "uni": ("universal", 2), "hinge": ("hinge", 1)}
TURN = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""From pagoda's x right, y forward to x forward, y left."""
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

_JOINT = re.compile(r"(\S+)\s+([^\s(]+)\s*\(([^)]*)\)\s*(<-|->)\s*([^\s(]+)\s*\(([^)]*)\)(.*)")
_OPTIONS = re.compile(r"\s*(?:stops\s+(?P<stops>[^a<]*))?(?:axes\s*(?P<axes>(?:<[^>]*>\s*)*))?")


def read_pagoda(skeleton: str | os.PathLike[str], markers: str | os.PathLike[str] | None = None) -> Model:
    """The model in a pagoda skeleton file, wearing the markers of its marker file.

    The axes are turned so that x is forward and y left, and the stops so that a joint's angle counts the child against
    the parent; `notes` says so. The first body is the root and is free.
    """
    reader = _Reader(Path(skeleton))
    for number, line in _content(reader.path):
        if "(" in line:
            reader.add_joint(line, number)
        else:
            reader.add_body(line, number)
        if max(len(reader.bodies), len(reader.joints)) > MOST_BODIES:
            raise FileFormatError(reader.path, f"more than {MOST_BODIES} bodies or joints are not read", line=number)
    if not reader.bodies:
        raise FileFormatError(reader.path, "no body in the file; a line such as `head box 0.1 0.2 0.2` describes one")
    model = Model(
        name=reader.path.stem,
        bodies=tuple(reader.bodies.values()),
        joints=tuple(reader.joints),
        markers=() if markers is None else tuple(reader.markers(Path(markers))),
        notes=(
            f"{reader.path.name}: axes turned from x right, y forward to x forward, y left.",
            f"{reader.path.name}: stops negated, because the file counts angles parent against child.",
        ),
    )
    try:
        return validate(model)
    except ModelError as error:
        raise ModelError(f"{reader.path}: {error}") from None


@dataclass
class _Reader:
    path: Path
    bodies: dict[str, Body] = field(default_factory=dict)
    halves: dict[str, Array] = field(default_factory=dict)
    joints: list[Joint] = field(default_factory=list)

    def add_body(self, line: str, number: int) -> None:
        words = line.split()
        if len(words) < 2:
            raise FileFormatError(self.path, f"expected `name shape sizes`, got {line!r}", line=number)
        name, kind, *rest = words
        if name in self.bodies:
            raise FileFormatError(self.path, f"body {name!r} is described twice", line=number)
        if kind == "box":
            half = np.abs(TURN) @ np.array(self._numbers(rest[:3], 3, number)) / 2.0
            shape, rest = Shape("box", vector(half)), rest[3:]
        elif kind == "cap":
            shape, rest = self._capsule(rest, number)
            radius, half_length = shape.size
            half = np.array([radius, radius, radius + half_length])
        else:
            raise FileFormatError(self.path, unknown_name("shape", kind, ("box", "cap")), line=number)
        density, position = self._body_options(rest, number)
        if not min(*shape.size, density) > SMALLEST:
            raise FileFormatError(self.path, f"body {name!r}: sizes and density must be positive", line=number)
        self.halves[name] = half
        self.bodies[name] = body_from_shapes(name, [replace(shape, density=density)], frame=Frame(position))

    def add_joint(self, line: str, number: int) -> None:
        match = _JOINT.fullmatch(line)
        if match is None:
            raise FileFormatError(self.path, f"expected `kind A(x y z) <- B(x y z) ...`, got {line!r}", line=number)
        word, a, anchor_a, arrow, b, anchor_b, rest = match.groups()
        if word not in KINDS:
            raise FileFormatError(self.path, unknown_name("joint", word, KINDS), line=number)
        kind, freedom = KINDS[word]
        anchors = {name: self._place(name, text.split(), number) for name, text in ((a, anchor_a), (b, anchor_b))}
        parent, child = (a, b) if arrow == "<-" else (b, a)
        names, axes, stops = self._joint_options(rest, freedom, number)
        if arrow == "->":
            stops = [(-high, -low) for low, high in stops]
        meeting = np.array(self.bodies[parent].frame.position) + anchors[parent] - anchors[child]
        self.bodies[child] = replace(self.bodies[child], frame=Frame(vector(meeting)))
        self.joints.append(
            Joint(
                name=child,
                kind=kind,
                parent=parent,
                child=child,
                parent_frame=Frame(vector(anchors[parent])),
                child_frame=Frame(vector(anchors[child])),
                axes=tuple(axes),
                coordinates=tuple(
                    # the file's angle is A against B, ours the child against the parent
                    Coordinate(f"{child}_{axis}", min(max(0.0, -high), -low), -high, -low)
                    for axis, (low, high) in zip(names, stops, strict=True)
                ),
            )
        )

    def markers(self, path: Path) -> Iterator[Marker]:
        for number, line in _content(path):
            words = line.split()
            if len(words) != 5:
                raise FileFormatError(path, f"expected `label body x y z`, got {line!r}", line=number)
            label, body, *at = words
            bare = label.rpartition(":")[2]
            place = vector(self._place(body, at, number, path))
            yield Marker(label, body, place, (bare,) if bare != label else ())

    def _capsule(self, words: list[str], number: int) -> tuple[Shape, list[str]]:
        starred = [word.endswith("*") for word in words[:2]]
        if sorted(starred) != [False, True]:
            got = " ".join(words[:2])
            raise FileFormatError(self.path, f"a cap takes a length and a radius with a star, got {got!r}", line=number)
        first, second = self._numbers([word.rstrip("*") for word in words[:2]], 2, number)
        length, radius = (second, first) if starred[0] else (first, second)
        return Shape("capsule", (radius, length / 2.0)), words[2:]

    def _body_options(self, words: list[str], number: int) -> tuple[float, Vector]:
        density, position = DENSITY, (0.0, 0.0, 0.0)
        while words:
            key, *words = words
            if key == "density":
                (density,), words = self._numbers(words[:1], 1, number), words[1:]
            elif key == "position":
                position, words = vector(TURN @ np.array(self._numbers(words[:3], 3, number))), words[3:]
            else:
                raise FileFormatError(self.path, unknown_name("word", key, ("density", "position")), line=number)
        return density, position

    def _joint_options(
        self, text: str, freedom: int, number: int
    ) -> tuple[list[str], list[Vector], list[tuple[float, float]]]:
        """Names and directions of the axes, and the stops [rad] as the file counts them."""
        match = _OPTIONS.fullmatch(text)
        if match is None:
            raise FileFormatError(self.path, f"expected `stops lo~hi ... axes <x y z> ...`, got {text!r}", line=number)
        given = [self._numbers(part.split(), 3, number) for part in re.findall(r"<([^>]*)>", match["axes"] or "")]
        axes = given or [list(axis) for axis in AXES.values()][:freedom]
        ranges = (match["stops"] or "").split()
        if len(axes) != freedom or len(ranges) not in (0, freedom):
            raise FileFormatError(
                self.path, f"{freedom} axes and stops belong here, got {len(axes)} and {len(ranges)}", line=number
            )
        stops = []
        for text_range in ranges:
            low, high = (radians(v) for v in self._numbers(text_range.split("~"), 2, number))
            if low > high:
                raise FileFormatError(self.path, f"stop {text_range} runs backwards", line=number)
            stops.append((low, high))
        letters = {axis: letter for letter, axis in AXES.items()}
        names = [letters.get(vector(axis), str(index)) for index, axis in enumerate(axes)]
        unlimited = [(-np.inf, np.inf)] * freedom
        return names, [vector(TURN @ np.array(axis)) for axis in axes], stops or unlimited

    def _place(self, body: str, words: list[str], number: int, path: Path | None = None) -> Array:
        """A point [m] in a body's frame from fractions of its half extents."""
        path = path or self.path
        if body not in self.halves:
            raise FileFormatError(path, unknown_name("body", body, self.halves), line=number)
        return np.asarray(self.halves[body] * (TURN @ np.array(self._numbers(words, 3, number, path))))

    def _numbers(self, words: list[str], count: int, number: int, path: Path | None = None) -> list[float]:
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not all(abs(value) < MAX_NUMBER for value in values):
            got = " ".join(words)[:60]
            raise FileFormatError(path or self.path, f"expected {count} numbers, got {got!r}", line=number)
        return values


def _content(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and lines without comments and blanks."""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        stripped = line.partition("#")[0].strip()
        if len(stripped) > LONGEST_LINE:
            what = f"the line has {len(stripped)} letters, but at most {LONGEST_LINE} are read"
            raise FileFormatError(path, what, line=number)
        if stripped:
            yield number, stripped

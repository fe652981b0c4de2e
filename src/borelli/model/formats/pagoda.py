"""Reader of pagoda's skeleton and marker text.

Body lines: `name box X Y Z` or `name cap LENGTH RADIUS*` (full lengths; the star marks the radius, and the length is
without the caps), then optionally `density D` [kg/m^3] and `position x y z`. Joint lines: `kind A(anchor) <- B(anchor)
stops lo~hi ... axes <x y z> ...`, with anchors as fractions of the half extents and joint limits in degrees. `<-` moves
B so that the anchors meet, `->` moves A. Marker lines: `label body x y z`, fractions of the half extents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import radians
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, unknown_name
from borelli.files.paths import as_path
from borelli.files.text import read_text
from borelli.model.formats.parsing import parse_numbers
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Marker, Model, Shape, Vector
from borelli.model.transforms import Array, vector
from borelli.model.validate import validate

MIN_SIZE = 1e-30
"""Sizes [m] and densities below this count as zero."""
MAX_BODIES = 2000
"""Maximum number of bodies, and of joints; a person has twenty."""
MAX_LINE_LENGTH = 2000
"""Characters; a joint with all its limits and axes has about 150."""
DENSITY = 1000.0
"""Default density of pagoda [kg/m^3]."""
KINDS = {"ball": ("ball", 3), "uni": ("universal", 2), "hinge": ("hinge", 1)}
TO_MODEL_AXES = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""Rotation from pagoda's x right, y forward to x forward, y left."""
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

_JOINT = re.compile(r"(\S+)\s+([^\s(]+)\s*\(([^)]*)\)\s*(<-|->)\s*([^\s(]+)\s*\(([^)]*)\)(.*)")
_OPTIONS = re.compile(r"\s*(?:stops\s+(?P<stops>[^a<]*))?(?:axes\s*(?P<axes>(?:<[^>]*>\s*)*))?")


def read_pagoda(skeleton: str | Path, markers: str | Path | None = None) -> Model:
    """Read the model of a pagoda skeleton file, with the markers of its marker file.

    The axes are rotated so that x is forward and y left, and joint limits are negated because the file counts angles of
    the parent relative to the child; `notes` states both. The first body is the root and is free.

    Args:
        skeleton: Skeleton file.
        markers: Marker file. Default: no markers.

    Raises:
        FileFormatError: if a file cannot be read; the message names the line.
        ModelError: if the model is inconsistent.
    """
    reader = _Reader(as_path(skeleton))
    for number, line in _content(reader.path):
        if "(" in line:
            reader.add_joint(line, number)
        else:
            reader.add_body(line, number)
        if max(len(reader.bodies), len(reader.joints)) > MAX_BODIES:
            raise FileFormatError(reader.path, f"The file has more than {MAX_BODIES} bodies or joints.", line=number)
    if not reader.bodies:
        raise FileFormatError(
            reader.path, "The file has no bodies. Add one with a line such as `head box 0.1 0.2 0.2`."
        )
    model = Model(
        name=reader.path.stem,
        bodies=tuple(reader.bodies.values()),
        joints=tuple(reader.joints),
        markers=() if markers is None else tuple(reader.markers(as_path(markers))),
        notes=(
            f"{reader.path.name}: Axes are rotated from x right, y forward to x forward, y left.",
            f"{reader.path.name}: Joint limits are negated: the file's angles are of the parent relative to the child.",
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
            raise FileFormatError(self.path, f"Expected `name shape sizes` (found {line!r}).", line=number)
        name, kind, *rest = words
        if name in self.bodies:
            raise FileFormatError(self.path, f"Body {name!r} is defined twice. Rename one.", line=number)
        if kind == "box":
            half = np.abs(TO_MODEL_AXES) @ np.array(self._numbers(rest[:3], 3, number)) / 2.0
            shape, rest = Shape("box", vector(half)), rest[3:]
        elif kind == "cap":
            shape, rest = self._capsule(rest, number)
            radius, half_length = shape.size
            half = np.array([radius, radius, radius + half_length])
        else:
            raise FileFormatError(self.path, unknown_name("shape", kind, ("box", "cap")), line=number)
        density, position = self._body_options(rest, number)
        if not min(*shape.size, density) > MIN_SIZE:
            raise FileFormatError(self.path, f"Body {name!r}: Sizes and density must be positive.", line=number)
        self.halves[name] = half
        self.bodies[name] = body_from_shapes(name, [replace(shape, density=density)], frame=Frame(position))

    def add_joint(self, line: str, number: int) -> None:
        match = _JOINT.fullmatch(line)
        if match is None:
            raise FileFormatError(self.path, f"Expected `kind A(x y z) <- B(x y z) ...` (found {line!r}).", line=number)
        word, a, anchor_a, arrow, b, anchor_b, rest = match.groups()
        if word not in KINDS:
            raise FileFormatError(self.path, unknown_name("joint", word, KINDS), line=number)
        kind, dof = KINDS[word]
        anchors = {name: self._point(name, text.split(), number) for name, text in ((a, anchor_a), (b, anchor_b))}
        parent, child = (a, b) if arrow == "<-" else (b, a)
        names, axes, limits = self._joint_options(rest, dof, number)
        if arrow == "->":
            limits = [(-high, -low) for low, high in limits]
        origin = np.array(self.bodies[parent].frame.position) + anchors[parent] - anchors[child]
        self.bodies[child] = replace(self.bodies[child], frame=Frame(vector(origin)))
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
                    # the file's angle is of the parent relative to the child
                    Coordinate(f"{child}_{axis}", min(max(0.0, -high), -low), -high, -low)
                    for axis, (low, high) in zip(names, limits, strict=True)
                ),
            )
        )

    def markers(self, path: Path) -> Iterator[Marker]:
        for number, line in _content(path):
            words = line.split()
            if len(words) != 5:
                raise FileFormatError(path, f"Expected `label body x y z` (found {line!r}).", line=number)
            label, body, *at = words
            bare = label.rpartition(":")[2]
            point = vector(self._point(body, at, number, path))
            yield Marker(label, body, point, (bare,) if bare != label else ())

    def _capsule(self, words: list[str], number: int) -> tuple[Shape, list[str]]:
        starred = [word.endswith("*") for word in words[:2]]
        if sorted(starred) != [False, True]:
            found = " ".join(words[:2])
            raise FileFormatError(self.path, f"A cap has a length and a radius* (found {found!r}).", line=number)
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
                position, words = vector(TO_MODEL_AXES @ np.array(self._numbers(words[:3], 3, number))), words[3:]
            else:
                raise FileFormatError(self.path, unknown_name("word", key, ("density", "position")), line=number)
        return density, position

    def _joint_options(
        self, text: str, dof: int, number: int
    ) -> tuple[list[str], list[Vector], list[tuple[float, float]]]:
        """Return names and directions of the axes, and the joint limits [rad] as the file counts them."""
        match = _OPTIONS.fullmatch(text)
        if match is None:
            raise FileFormatError(
                self.path, f"Expected `stops lo~hi ... axes <x y z> ...` (found {text!r}).", line=number
            )
        given = [self._numbers(part.split(), 3, number) for part in re.findall(r"<([^>]*)>", match["axes"] or "")]
        axes = given or [list(axis) for axis in AXES.values()][:dof]
        ranges = (match["stops"] or "").split()
        if len(axes) != dof or len(ranges) not in (0, dof):
            raise FileFormatError(
                self.path, f"Expected {dof} axes and stops (found {len(axes)} and {len(ranges)}).", line=number
            )
        limits = []
        for text_range in ranges:
            low, high = (radians(v) for v in self._numbers(text_range.split("~"), 2, number))
            if low > high:
                raise FileFormatError(self.path, f"Joint limits {text_range} are reversed. Swap them.", line=number)
            limits.append((low, high))
        letters = {axis: letter for letter, axis in AXES.items()}
        names = [letters.get(vector(axis), str(index)) for index, axis in enumerate(axes)]
        unlimited = [(-np.inf, np.inf)] * dof
        return names, [vector(TO_MODEL_AXES @ np.array(axis)) for axis in axes], limits or unlimited

    def _point(self, body: str, words: list[str], number: int, path: Path | None = None) -> Array:
        """Return a point [m] in a body's frame from fractions of its half extents."""
        path = path or self.path
        if body not in self.halves:
            raise FileFormatError(path, unknown_name("body", body, self.halves), line=number)
        return np.asarray(self.halves[body] * (TO_MODEL_AXES @ np.array(self._numbers(words, 3, number, path))))

    def _numbers(self, words: list[str], count: int, number: int, path: Path | None = None) -> list[float]:
        values = parse_numbers(words, count)
        if values is None:
            found = " ".join(words)[:60]
            raise FileFormatError(path or self.path, f"Expected {count} numbers (found {found!r}).", line=number)
        return values


def _content(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_text(path).splitlines(), 1):
        stripped = line.partition("#")[0].strip()
        if len(stripped) > MAX_LINE_LENGTH:
            problem = f"The line has {len(stripped)} characters (maximum {MAX_LINE_LENGTH})."
            raise FileFormatError(path, problem, line=number)
        if stripped:
            yield number, stripped

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

from borelli.errors import FileFormatError, unknown_name
from borelli.files.paths import as_path
from borelli.files.text import read_text
from borelli.model.formats.parsing import parse_numbers, validate_file
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Marker, Model, Shape, Vector
from borelli.model.transforms import Array, vector

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
    path = as_path(skeleton)
    reader = _Reader(path)
    for line in reader.lines():
        if "(" in line:
            reader.add_joint(line)
        else:
            reader.add_body(line)
        if max(len(reader.bodies), len(reader.joints)) > MAX_BODIES:
            raise reader.error(f"The file has more than {MAX_BODIES} bodies or joints.")
    if not reader.bodies:
        raise FileFormatError(path, "The file has no bodies. Add one with a line such as `head box 0.1 0.2 0.2`.")
    model = Model(
        name=path.stem,
        bodies=tuple(reader.bodies.values()),
        joints=tuple(reader.joints),
        markers=() if markers is None else tuple(reader.markers(as_path(markers))),
        notes=(
            f"{path.name}: Axes are rotated from x right, y forward to x forward, y left.",
            f"{path.name}: Joint limits are negated: the file's angles are of the parent relative to the child.",
        ),
    )
    return validate_file(model, path)


@dataclass
class _Reader:
    path: Path
    line: int = 0
    """File and number of the line that is read, for errors."""
    bodies: dict[str, Body] = field(default_factory=dict)
    halves: dict[str, Array] = field(default_factory=dict)
    joints: list[Joint] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the content of the lines that are not empty."""
        for number, text in enumerate(read_text(self.path).splitlines(), 1):
            self.line = number
            content = text.partition("#")[0].strip()
            if len(content) > MAX_LINE_LENGTH:
                raise self.error(f"The line has {len(content)} characters (maximum {MAX_LINE_LENGTH}).")
            if content:
                yield content

    def error(self, problem: str) -> FileFormatError:
        return FileFormatError(self.path, problem, line=self.line)

    def add_body(self, line: str) -> None:
        words = line.split()
        if len(words) < 2:
            raise self.error(f"Expected `name shape sizes` (found {line!r}).")
        name, kind, *rest = words
        if name in self.bodies:
            raise self.error(f"Body {name!r} is defined twice. Rename one.")
        if kind == "box":
            half = np.abs(TO_MODEL_AXES) @ np.array(self._numbers(rest[:3], 3)) / 2.0
            shape, rest = Shape("box", vector(half)), rest[3:]
        elif kind == "cap":
            shape, rest = self._capsule(rest)
            radius, half_length = shape.size
            half = np.array([radius, radius, radius + half_length])
        else:
            raise self.error(unknown_name("shape", kind, ("box", "cap")))
        density, position = self._body_options(rest)
        if not min(*shape.size, density) > MIN_SIZE:
            raise self.error(f"Body {name!r}: Sizes and density must be positive.")
        self.halves[name] = half
        self.bodies[name] = body_from_shapes(name, [replace(shape, density=density)], frame=Frame(position))

    def add_joint(self, line: str) -> None:
        match = _JOINT.fullmatch(line)
        if match is None:
            raise self.error(f"Expected `kind A(x y z) <- B(x y z) ...` (found {line!r}).")
        word, a, anchor_a, arrow, b, anchor_b, rest = match.groups()
        if word not in KINDS:
            raise self.error(unknown_name("joint", word, KINDS))
        kind, dof = KINDS[word]
        anchors = {name: self._point(name, text.split()) for name, text in ((a, anchor_a), (b, anchor_b))}
        parent, child = (a, b) if arrow == "<-" else (b, a)
        names, axes, limits = self._joint_options(rest, dof)
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
        self.path = path
        for line in self.lines():
            words = line.split()
            if len(words) != 5:
                raise self.error(f"Expected `label body x y z` (found {line!r}).")
            label, body, *at = words
            bare = label.rpartition(":")[2]
            point = vector(self._point(body, at))
            yield Marker(label, body, point, (bare,) if bare != label else ())

    def _capsule(self, words: list[str]) -> tuple[Shape, list[str]]:
        starred = [word.endswith("*") for word in words[:2]]
        if sorted(starred) != [False, True]:
            found = " ".join(words[:2])
            raise self.error(f"A cap has a length and a radius* (found {found!r}).")
        first, second = self._numbers([word.rstrip("*") for word in words[:2]], 2)
        length, radius = (second, first) if starred[0] else (first, second)
        return Shape("capsule", (radius, length / 2.0)), words[2:]

    def _body_options(self, words: list[str]) -> tuple[float, Vector]:
        density, position = DENSITY, (0.0, 0.0, 0.0)
        while words:
            key, *words = words
            if key == "density":
                (density,), words = self._numbers(words[:1], 1), words[1:]
            elif key == "position":
                position, words = vector(TO_MODEL_AXES @ np.array(self._numbers(words[:3], 3))), words[3:]
            else:
                raise self.error(unknown_name("word", key, ("density", "position")))
        return density, position

    def _joint_options(self, text: str, dof: int) -> tuple[list[str], list[Vector], list[tuple[float, float]]]:
        """Return names and directions of the axes, and the joint limits [rad] as the file counts them."""
        match = _OPTIONS.fullmatch(text)
        if match is None:
            raise self.error(f"Expected `stops lo~hi ... axes <x y z> ...` (found {text!r}).")
        given = [self._numbers(part.split(), 3) for part in re.findall(r"<([^>]*)>", match["axes"] or "")]
        axes = given or [list(axis) for axis in AXES.values()][:dof]
        ranges = (match["stops"] or "").split()
        if len(axes) != dof or len(ranges) not in (0, dof):
            raise self.error(f"Expected {dof} axes and stops (found {len(axes)} and {len(ranges)}).")
        limits = []
        for text_range in ranges:
            low, high = (radians(v) for v in self._numbers(text_range.split("~"), 2))
            if low > high:
                raise self.error(f"Joint limits {text_range} are reversed. Swap them.")
            limits.append((low, high))
        letters = {axis: letter for letter, axis in AXES.items()}
        names = [letters.get(vector(axis), str(index)) for index, axis in enumerate(axes)]
        unlimited = [(-np.inf, np.inf)] * dof
        return names, [vector(TO_MODEL_AXES @ np.array(axis)) for axis in axes], limits or unlimited

    def _point(self, body: str, words: list[str]) -> Array:
        """Return a point [m] in a body's frame from fractions of its half extents."""
        if body not in self.halves:
            raise self.error(unknown_name("body", body, self.halves))
        return np.asarray(self.halves[body] * (TO_MODEL_AXES @ np.array(self._numbers(words, 3))))

    def _numbers(self, words: list[str], count: int) -> list[float]:
        values = parse_numbers(words, count)
        if values is None:
            found = " ".join(words)[:60]
            raise self.error(f"Expected {count} numbers (found {found!r}).")
        return values

"""Reader of the four tables of QtVR, the program of the Human Dynamic Model (Liu, Cooper and Ballard).

`dimMap`: per segment its shape (0 sphere, 1 box, 2 capsule along z), three full extents [m] and an unused quaternion.
`anchorMap`: segment, joint, and the anchor as fractions of the segment's half extents. `markMap`: per recorded point
its segment, or -1. `posMap`: per recorded point its position on that segment [m]. The tables do not contain the bodies
and kind of each joint and the standing pose, which are defined here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError
from borelli.files.outside_paths import outside_notes
from borelli.files.paths import as_path
from borelli.files.text import read_text
from borelli.model.formats.parsing import parse_numbers, unread_notes, validate_file
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Marker, Model, Shape
from borelli.model.transforms import Array, compose, inverse, orientation_from_matrix, vector

TABLES = ("dimMap.txt", "anchorMap.txt", "markMap.txt", "posMap.txt")
UNROTATED = (1.0, 0.0, 0.0, 0.0)
"""Quaternion of every segment in the tables of the program, which does not use it."""

SEGMENTS = (
    "head", "neck", "upper_torso", "collar_r", "upper_arm_r", "forearm_r", "hand_r", "collar_l", "upper_arm_l",
    "forearm_l", "hand_l", "lower_torso", "pelvis", "thigh_r", "shank_r", "foot_r", "toes_r", "thigh_l", "shank_l",
    "foot_l", "toes_l",
)  # fmt: skip

JOINTS = (  # name, kind, the two segments (parent first: the head is the root), axes
    ("chin", "ball", 0, 1, "xyz"), ("throat", "ball", 1, 2, "xyz"),
    ("collar_r", "ball", 2, 3, "xyz"), ("shoulder_r", "ball", 3, 4, "xyz"),
    ("elbow_r", "universal", 4, 5, "xz"), ("wrist_r", "universal", 5, 6, "xy"),
    ("collar_l", "ball", 2, 7, "xyz"), ("shoulder_l", "ball", 7, 8, "xyz"),
    ("elbow_l", "universal", 8, 9, "xz"), ("wrist_l", "universal", 9, 10, "xy"),
    ("spine", "ball", 2, 11, "xyz"), ("waist", "ball", 11, 12, "xyz"),
    ("hip_r", "ball", 12, 13, "xyz"), ("knee_r", "universal", 13, 14, "xz"),
    ("ankle_r", "universal", 14, 15, "xy"), ("foot_r", "hinge", 15, 16, "x"),
    ("hip_l", "ball", 12, 17, "xyz"), ("knee_l", "universal", 17, 18, "xz"),
    ("ankle_l", "universal", 18, 19, "xy"), ("foot_l", "hinge", 19, 20, "x"),
)  # fmt: skip

# The joint axes x right, y forward, z up, in the world of the model (x forward, y left, z up).
AXES = {"x": (0.0, -1.0, 0.0), "y": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}

# Orientations of segments in the standing pose, inferred from anchors and markers: columns are their x, y, z in the
# world; y is forward in all.
UPRIGHT = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
LYING_LEFT = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # z to the left, x up
LYING_RIGHT = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])  # z to the right, x down
ORIENTATIONS = dict.fromkeys((2, 3, 12, 16), LYING_LEFT) | dict.fromkeys((7, 20), LYING_RIGHT)


def read_qtvr(source: str | Path | Sequence[str | Path], *, labels: Sequence[str] | None = None) -> Model:
    """Read the model of QtVR's four tables; `notes` lists problems of the tables and assumptions.

    Args:
        source: Directory with dimMap.txt, anchorMap.txt, markMap.txt and posMap.txt, or these four files in this order.
        labels: Names of the recorded points in the order of markMap. Default: point_0, point_1, ...

    Raises:
        FileFormatError: if a table cannot be read; the message names the line.
        ModelError: if the model is inconsistent.
    """
    dimensions, anchors, marks, offsets = _paths(source)
    tables = ((f"table {path.name}", path.name) for path in (dimensions, anchors, marks, offsets))
    notes: list[str] = [*outside_notes(tables, dimensions.parent)] if isinstance(source, str | Path) else []
    notes.append(
        "QtVR tables contain no joint limits and no standing pose: angles are unlimited, and the pose is assumed."
    )
    bodies, halves = _bodies(dimensions, notes)
    joints = _joints(_anchors(anchors, halves, notes), anchors)
    segments = [_index(value, -1, len(SEGMENTS), "segment", marks, line) for line, (value,) in _rows(marks, 1)]
    points = _rows(offsets, 3)
    if len(points) != len(segments):
        problem = f"The table has {len(points)} positions, but {marks.name} has {len(segments)} points."
        raise FileFormatError(offsets, problem)
    if labels is None:
        labels = [f"point_{k}" for k in range(len(segments))]
    elif len(labels) != len(segments):
        raise FileFormatError(marks, f"The table has {len(segments)} points, but {len(labels)} labels were given.")
    notes += _asymmetries(marks.name, segments, labels)
    model = Model(
        name=dimensions.parent.name or "qtvr",
        bodies=_standing_bodies(bodies, halves, joints),
        joints=tuple(joints),
        markers=tuple(
            Marker(label, SEGMENTS[segment], vector(point))
            for label, segment, (_, point) in zip(labels, segments, points, strict=True)
            if segment >= 0
        ),
        notes=tuple(notes),
    )
    return validate_file(model, dimensions.parent)


def _paths(source: str | Path | Sequence[str | Path]) -> list[Path]:
    if isinstance(source, str | Path):
        return [Path(source) / name for name in TABLES]
    if len(source) != len(TABLES):
        raise FileFormatError(", ".join(map(str, source)), f"Expected four tables in the order {', '.join(TABLES)}.")
    return [as_path(path) for path in source]


def _rows(path: Path, width: int) -> list[tuple[int, list[float]]]:
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        values = parse_numbers(words, width)
        if values is None:
            raise FileFormatError(path, f"Expected {width} numbers (found {line.strip()[:60]!r}).", line=number)
        rows.append((number, values))
    return rows


def _index(value: float, lowest: int, count: int, name: str, path: Path, line: int) -> int:
    if value != int(value) or not lowest <= value < count:
        raise FileFormatError(path, f"{name} is {value:g}. It must be from {lowest} to {count - 1}.", line=line)
    return int(value)


def _bodies(path: Path, notes: list[str]) -> tuple[list[Body], list[Array]]:
    rows = _rows(path, 8)
    if len(rows) != len(SEGMENTS):
        raise FileFormatError(path, f"The table has {len(rows)} segments. Expected {len(SEGMENTS)}.")
    bodies, halves, rotated = [], [], []
    for name, (line, (kind, *extents)) in zip(SEGMENTS, rows, strict=True):
        half = np.array(extents[:3]) / 2.0
        if half.min() <= 1e-30:  # smaller extents have no volume
            raise FileFormatError(path, f"The extents of {name} must be positive.", line=line)
        match _index(kind, 0, 3, "shape", path, line):
            case 0:
                shape = Shape("sphere", (float(half[0]),))
            case 1:
                shape = Shape("box", vector(half))
            case _:
                if half[2] <= half[0]:
                    raise FileFormatError(path, f"The capsule {name} is shorter than it is wide.", line=line)
                shape = Shape("capsule", (float(half[0]), float(half[2] - half[0])))
        bodies.append(body_from_shapes(name, [shape]))
        halves.append(half)
        if tuple(extents[3:]) != UNROTATED:
            rotated.append(("orientation", name))
    notes.extend(unread_notes(rotated))
    return bodies, halves


def _anchors(path: Path, halves: list[Array], notes: list[str]) -> dict[tuple[int, int], Array]:
    """Return each anchor [m] by joint and segment.

    A line whose segment does not have the joint is reported in the notes. It is assigned to the joint of that segment
    without an anchor, if there is exactly one.
    """
    expected = {(joint, segment) for joint, (_, _, a, b, _) in enumerate(JOINTS) for segment in (a, b)}
    anchors: dict[tuple[int, int], Array] = {}
    unassigned = []
    for line, (segment_value, joint_value, *fractions) in _rows(path, 5):
        segment = _index(segment_value, 0, len(SEGMENTS), "segment", path, line)
        joint = _index(joint_value, 0, len(JOINTS), "joint", path, line)
        anchor = halves[segment] * np.array(fractions)
        if (joint, segment) not in expected:
            unassigned.append((line, segment, joint, anchor))
        elif (joint, segment) in anchors:
            problem = f"Joint {joint} has a second anchor on segment {segment}. Remove one."
            raise FileFormatError(path, problem, line=line)
        else:
            anchors[joint, segment] = anchor
    for line, segment, joint, anchor in unassigned:
        problem = (
            f"{path.name}, line {line}: Joint {joint} ({JOINTS[joint][0]}) has an anchor on segment {segment} "
            f"({SEGMENTS[segment]}), to which it does not belong"
        )
        missing = [key for key in sorted(expected - anchors.keys()) if key[1] == segment]
        if len(missing) == 1:
            anchors[missing[0]] = anchor
            meant = missing[0][0]
            notes.append(f"{problem}; read as joint {meant} ({JOINTS[meant][0]}), whose anchor there is missing.")
        else:
            notes.append(f"{problem}; the line is ignored.")
    return anchors


def _joints(anchors: dict[tuple[int, int], Array], path: Path) -> list[Joint]:
    joints = []
    for index, (name, kind, parent, child, letters) in enumerate(JOINTS):
        for segment in (parent, child):
            if (index, segment) not in anchors:
                problem = f"Joint {index} ({name}) has no anchor on segment {segment} ({SEGMENTS[segment]})."
                raise FileFormatError(path, problem)
        parent_frame, child_frame = (_level(anchors[index, segment], segment) for segment in (parent, child))
        axes = tuple(AXES[letter] for letter in letters)
        coordinates = tuple(Coordinate(f"{name}_{letter}") for letter in letters)
        ends = SEGMENTS[parent], SEGMENTS[child]
        joints.append(Joint(name, kind, *ends, parent_frame, child_frame, axes, coordinates))
    return joints


def _level(anchor: Array, segment: int) -> Frame:
    """Return the joint frame on a segment: parallel to the world in the standing pose."""
    return Frame(vector(anchor), orientation_from_matrix(ORIENTATIONS.get(segment, UPRIGHT).T))


def _standing_bodies(bodies: list[Body], halves: list[Array], joints: list[Joint]) -> tuple[Body, ...]:
    """Return the bodies in the standing pose, the lowest of them on z = 0."""
    frames = {SEGMENTS[0]: Frame(orientation=orientation_from_matrix(UPRIGHT))}
    for joint in joints:
        anchor = compose(frames[joint.parent], joint.parent_frame)
        frames[joint.child] = compose(anchor, inverse(joint.child_frame))
    bottoms = (
        frames[name].position[2] - np.abs(ORIENTATIONS.get(segment, UPRIGHT)[2]) @ halves[segment]
        for segment, name in enumerate(SEGMENTS)
    )
    lift = np.array([0.0, 0.0, -min(bottoms)])
    return tuple(
        replace(body, frame=replace(frames[body.name], position=vector(frames[body.name].position + lift)))
        for body in bodies
    )


def _asymmetries(table: str, segments: list[int], labels: Sequence[str]) -> list[str]:
    """Return sentences on points attached differently left and right: by label if known, else by count."""
    by_label = {label.rpartition(":")[2]: SEGMENTS[c] for label, c in zip(labels, segments, strict=True) if c >= 0}
    notes = []
    for label, segment in sorted(by_label.items()):
        other = by_label.get(f"R{label[1:]}")
        if label.startswith("L") and other is not None and segment != _other_side(other):
            notes.append(f"{table}: {label} is on {segment}, but R{label[1:]} on {other}; the two sides differ.")
    if notes:
        return notes
    counts = Counter(SEGMENTS[c] for c in segments if c >= 0)
    for left in SEGMENTS:
        right = _other_side(left)
        if left.endswith("_l") and counts[left] != counts[right]:
            notes.append(f"{table}: {counts[left]} points on {left}, but {counts[right]} on {right}.")
    return notes


def _other_side(segment: str) -> str:
    swap = {"_r": "_l", "_l": "_r"}
    return segment[:-2] + swap[segment[-2:]] if segment[-2:] in swap else segment

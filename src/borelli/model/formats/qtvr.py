"""Reader of the four tables of QtVR, the program of the Human Dynamic Model.

`dimMap`: per segment its shape (0 sphere, 1 box, 2 capsule along z), three full extents [m] and an unused quaternion.
`anchorMap`: segment, joint, and the anchor as fractions of the segment's half extents. `markMap`: per recorded point
the segment that carries it, or -1. `posMap`: per recorded point its place on that segment [m]. Which segments a joint
joins, its kind and how the segments stand is known to the program only; it is repeated here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError
from borelli.files.text import MAX_NUMBER, read_text
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Marker, Model, Shape
from borelli.model.transforms import Array, compose, inverse, orientation_from_matrix, vector
from borelli.model.validate import validate

TABLES = ("dimMap.txt", "anchorMap.txt", "markMap.txt", "posMap.txt")

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

# The joint axes x right, y forward, z up, in our world (x forward, y left, z up).
AXES = {"x": (0.0, -1.0, 0.0), "y": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}

# How segments stand: columns are their own x, y, z in our world. y is forward in all; told from anchors and markers.
UPRIGHT = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
LYING_LEFT = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # z to the left, x up
LYING_RIGHT = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])  # z to the right, x down
STANCES = dict.fromkeys((2, 3, 12, 16), LYING_LEFT) | dict.fromkeys((7, 20), LYING_RIGHT)


def read_qtvr(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, labels: Sequence[str] | None = None
) -> Model:
    """The model in QtVR's four tables; `notes` lists what is wrong with them and what was assumed.

    Args:
        source: The directory that holds dimMap.txt, anchorMap.txt, markMap.txt and posMap.txt, or these four files in
            this order.
        labels: Names of the recorded points in the order of markMap; without them they are point_0, point_1, ...
    """
    dimensions, anchors, marks, places = _paths(source)
    notes = ["QtVR tables: no stops and no standing pose are in the files; angles are free, the pose is assumed."]
    bodies, halves = _bodies(dimensions)
    joints = _joints(_anchors(anchors, halves, notes), anchors)
    carriers = _carriers(marks)
    points = _rows(places, 3)
    if len(points) != len(carriers):
        raise FileFormatError(places, f"{len(points)} places, but {marks.name} lists {len(carriers)} points")
    if labels is None:
        labels = [f"point_{k}" for k in range(len(carriers))]
    elif len(labels) != len(carriers):
        raise FileFormatError(marks, f"{len(carriers)} points, but {len(labels)} labels were given")
    notes += _asymmetries(marks.name, carriers, labels)
    model = Model(
        name=dimensions.parent.name or "qtvr",
        bodies=_placed(bodies, halves, joints),
        joints=tuple(joints),
        markers=tuple(
            Marker(label, SEGMENTS[carrier], vector(point))
            for label, carrier, (_, point) in zip(labels, carriers, points, strict=True)
            if carrier >= 0
        ),
        notes=tuple(notes),
    )
    try:
        return validate(model)
    except ModelError as error:
        raise ModelError(f"{dimensions.parent}: {error}") from None


def _paths(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(source, str | os.PathLike):
        return [Path(source) / name for name in TABLES]
    if len(source) != len(TABLES):
        raise FileFormatError(", ".join(map(str, source)), f"four tables are needed, in the order {', '.join(TABLES)}")
    return [Path(path) for path in source]


def _rows(path: Path, width: int) -> list[tuple[int, list[float]]]:
    """Line numbers and numbers of each line that is not blank."""
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != width or not all(abs(value) < MAX_NUMBER for value in values):
            raise FileFormatError(path, f"expected {width} numbers, got {line.strip()[:60]!r}", line=number)
        rows.append((number, values))
    return rows


def _index(value: float, lowest: int, count: int, what: str, path: Path, line: int) -> int:
    if value != int(value) or not lowest <= value < count:
        raise FileFormatError(path, f"{what} is {value:g}, but must be from {lowest} to {count - 1}", line=line)
    return int(value)


def _bodies(path: Path) -> tuple[list[Body], list[Array]]:
    rows = _rows(path, 8)
    if len(rows) != len(SEGMENTS):
        raise FileFormatError(path, f"{len(rows)} segments, but the body has {len(SEGMENTS)}")
    bodies, halves = [], []
    for name, (line, (kind, *extents)) in zip(SEGMENTS, rows, strict=True):
        half = np.array(extents[:3]) / 2.0
        if half.min() <= 1e-30:  # no volume can be made of less
            raise FileFormatError(path, f"the extents of {name} must be positive", line=line)
        match _index(kind, 0, 3, "shape", path, line):
            case 0:
                shape = Shape("sphere", (float(half[0]),))
            case 1:
                shape = Shape("box", vector(half))
            case _:
                if half[2] <= half[0]:
                    raise FileFormatError(path, f"the capsule {name} is shorter than it is wide", line=line)
                shape = Shape("capsule", (float(half[0]), float(half[2] - half[0])))
        bodies.append(body_from_shapes(name, [shape]))
        halves.append(half)
    return bodies, halves


def _anchors(path: Path, halves: list[Array], notes: list[str]) -> dict[tuple[int, int], Array]:
    """Each anchor [m] by joint and segment.

    A line whose segment has no such joint is told in the notes, and taken for the one joint of that segment that has
    no line, if there is just one.
    """
    wanted = {(joint, segment) for joint, (_, _, a, b, _) in enumerate(JOINTS) for segment in (a, b)}
    found: dict[tuple[int, int], Array] = {}
    strays = []
    for line, (segment_value, joint_value, *fractions) in _rows(path, 5):
        segment = _index(segment_value, 0, len(SEGMENTS), "segment", path, line)
        joint = _index(joint_value, 0, len(JOINTS), "joint", path, line)
        anchor = halves[segment] * np.array(fractions)
        if (joint, segment) not in wanted:
            strays.append((line, segment, joint, anchor))
        elif (joint, segment) in found:
            raise FileFormatError(path, f"joint {joint} has a second anchor on segment {segment}", line=line)
        else:
            found[joint, segment] = anchor
    for line, segment, joint, anchor in strays:
        fault = (
            f"{path.name}, line {line}: an anchor of joint {joint} ({JOINTS[joint][0]}) on segment {segment} "
            f"({SEGMENTS[segment]}), which that joint does not touch"
        )
        missing = [key for key in sorted(wanted - found.keys()) if key[1] == segment]
        if len(missing) == 1:
            found[missing[0]] = anchor
            meant = missing[0][0]
            notes.append(f"{fault}; read as joint {meant} ({JOINTS[meant][0]}), which lacks its anchor there.")
        else:
            notes.append(f"{fault}; the line is left out.")
    return found


def _joints(anchors: dict[tuple[int, int], Array], path: Path) -> list[Joint]:
    joints = []
    for index, (name, kind, parent, child, letters) in enumerate(JOINTS):
        for segment in (parent, child):
            if (index, segment) not in anchors:
                raise FileFormatError(
                    path, f"joint {index} ({name}) has no anchor on segment {segment} ({SEGMENTS[segment]})"
                )
        joints.append(
            Joint(
                name=name,
                kind=kind,
                parent=SEGMENTS[parent],
                child=SEGMENTS[child],
                parent_frame=_level(anchors[index, parent], parent),
                child_frame=_level(anchors[index, child], child),
                axes=tuple(AXES[letter] for letter in letters),
                coordinates=tuple(Coordinate(f"{name}_{letter}") for letter in letters),
            )
        )
    return joints


def _level(anchor: Array, segment: int) -> Frame:
    """The joint frame on a segment: parallel to the world when the body stands."""
    return Frame(vector(anchor), orientation_from_matrix(STANCES.get(segment, UPRIGHT).T))


def _placed(bodies: list[Body], halves: list[Array], joints: list[Joint]) -> tuple[Body, ...]:
    """The bodies in the standing pose, the lowest of them touching z = 0."""
    frames = {SEGMENTS[0]: Frame(orientation=orientation_from_matrix(UPRIGHT))}
    for joint in joints:
        anchor = compose(frames[joint.parent], joint.parent_frame)
        frames[joint.child] = compose(anchor, inverse(joint.child_frame))
    bottoms = (
        frames[name].position[2] - np.abs(STANCES.get(segment, UPRIGHT)[2]) @ halves[segment]
        for segment, name in enumerate(SEGMENTS)
    )
    lift = np.array([0.0, 0.0, -min(bottoms)])
    return tuple(
        replace(body, frame=replace(frames[body.name], position=vector(frames[body.name].position + lift)))
        for body in bodies
    )


def _carriers(path: Path) -> list[int]:
    return [_index(value, -1, len(SEGMENTS), "segment", path, line) for line, (value,) in _rows(path, 1)]


def _asymmetries(table: str, carriers: list[int], labels: Sequence[str]) -> list[str]:
    """Sentences about points that left and right carry differently: by label if that tells, else counted."""
    by_label = {label.rpartition(":")[2]: SEGMENTS[c] for label, c in zip(labels, carriers, strict=True) if c >= 0}
    notes = []
    for label, segment in sorted(by_label.items()):
        twin = by_label.get(f"R{label[1:]}")
        if label.startswith("L") and twin is not None and segment != _other_side(twin):
            notes.append(f"{table}: {label} is on {segment}, but R{label[1:]} on {twin}; the two sides disagree.")
    if notes:
        return notes
    counts = Counter(SEGMENTS[c] for c in carriers if c >= 0)
    for left in SEGMENTS:
        right = _other_side(left)
        if left.endswith("_l") and counts[left] != counts[right]:
            notes.append(f"{table}: {counts[left]} points on {left}, but {counts[right]} on {right}.")
    return notes


def _other_side(segment: str) -> str:
    swap = {"_r": "_l", "_l": "_r"}
    return segment[:-2] + swap[segment[-2:]] if segment[-2:] in swap else segment

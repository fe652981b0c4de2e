"""Conventions: labels that laboratories and programs use, and the landmarks that they mean, read from package data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from borelli.recording.labels.spelling import clean_labels, normalize, split_sides

LEFT, RIGHT, MIDDLE = "left", "right", "middle"
KINDS = {
    "": "landmark",
    "cluster": "cluster",
    "wand": "wand",
    "virtual": "virtual center",
    "keypoint": "joint keypoint",
}
"""Kinds of labels by their word in the table."""


class Meaning(NamedTuple):
    """Meaning of a label.

    Attributes:
        landmark: Name of the landmark, such as "knee_lateral", or of the segment of a cluster.
        side: "left", "right" or "middle".
        kind: "landmark", "cluster", "wand", "virtual center" or "joint keypoint".
    """

    landmark: str
    side: str
    kind: str = "landmark"

    @property
    def segment(self) -> str:
        """Segment of the landmark."""
        return segment_of(self.landmark)


@dataclass(frozen=True, eq=False)
class Convention:
    """Labels of one laboratory, program or publication.

    Attributes:
        name: Name of the convention.
        source: Origin of the labels.
        labels: Meanings by label.
        exact: Meanings by label in lower case without separators.
        stems: Meanings by side and by the label without its side.
        has_keypoints: Whether most labels are those of joints, not of markers on skin.
    """

    name: str
    source: str
    labels: Mapping[str, Meaning]
    exact: Mapping[str, Meaning]
    stems: Mapping[tuple[str, str], Meaning]
    has_keypoints: bool


def make_convention(name: str, source: str, labels: Mapping[str, Meaning]) -> Convention:
    """Return a convention with its labels indexed by spelling."""
    exact: dict[str, Meaning] = {}
    stems: dict[tuple[str, str], Meaning] = {}
    for cleaned, meaning in zip(clean_labels(tuple(labels)), labels.values(), strict=True):
        exact.setdefault(normalize(cleaned), meaning)
        split = next((one for one in split_sides(cleaned) if one.side == meaning.side), None)
        if split is not None:
            stems.setdefault((split.side, split.stem), meaning)
    centers = sum(meaning.kind in ("virtual center", "joint keypoint") for meaning in labels.values())
    return Convention(name, source, labels, exact, stems, 2 * centers > len(labels))


@cache
def load_conventions() -> tuple[Convention, ...]:
    """Return the conventions of the package."""
    return tuple(make_convention(*one) for one in _read_table()[1])


@cache
def landmark_segments() -> Mapping[str, str]:
    """Return the segment of each landmark."""
    return {name: segment for segment, sided, midline in _read_table()[0] for name in (*sided, *midline)}


@cache
def midline_landmarks() -> frozenset[str]:
    """Return the landmarks on the midline of the body."""
    return frozenset(name for _, _, midline in _read_table()[0] for name in midline)


def segment_of(landmark: str) -> str:
    """Return the segment of a landmark; "" if it is unknown."""
    return landmark_segments().get(landmark, "")


def own_label(landmark: str, side: str, number: int = 1) -> str:
    """Return borelli's own label of a landmark, such as `right.knee_lateral`; `number` counts labels of one cluster."""
    return f"{side}.{landmark}" if number == 1 else f"{side}.{landmark}.{number}"


def read_own_label(label: str) -> Meaning | None:
    """Return the meaning of one of borelli's own labels; None for any other label."""
    parts = label.split(".")
    if parts[0] not in (LEFT, RIGHT, MIDDLE) or not 2 <= len(parts) <= 3 or parts[1] not in landmark_segments():
        return None
    return Meaning(parts[1], parts[0], usual_kind(parts[1]))


def usual_kind(landmark: str) -> str:
    """Return the kind of marker that a landmark has where no convention states it."""
    if landmark.endswith("_center") or landmark == "hip_mid":
        return "virtual center"
    clusters = ("thigh", "shank", "upper_arm", "forearm", "pelvis_cluster", "foot_cluster")
    return "cluster" if landmark in clusters else "landmark"


Landmarks = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
Rows = tuple[tuple[str, str, dict[str, Meaning]], ...]


@cache
def _read_table() -> tuple[Landmarks, Rows]:
    """Return the landmarks of each segment (sided, midline), and name, source and labels of each convention."""
    text = (files("borelli.recording") / "data" / "label_conventions.txt").read_text(encoding="utf-8")
    landmarks: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    rows: list[tuple[str, str, dict[str, Meaning]]] = []
    for section, lines in _sections(text.splitlines()):
        if section == "landmarks":
            landmarks = [(segment, *_two(rest)) for segment, rest in lines]
            continue
        labels: dict[str, Meaning] = {}
        for head, rest in lines[1:]:
            landmark, _, kind = head.partition(" ")
            first, second = _two(rest)
            sides = ((RIGHT, first), (LEFT, second)) if "|" in rest else ((MIDDLE, first),)
            labels |= {label: Meaning(landmark, side, KINDS[kind]) for side, names in sides for label in names}
        rows.append((section, lines[0][1], labels))
    return tuple(landmarks), tuple(rows)


def _sections(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the name of each section and its lines, split at the first colon."""
    name, pairs = "", list[tuple[str, str]]()
    for line in lines:
        if line.startswith("["):
            if name:
                yield name, pairs
            name, pairs = line[1:-1], []
        elif line and not line.startswith("#"):
            head, _, rest = line.partition(":")
            pairs.append((head, rest.strip()))
    yield name, pairs


def _two(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, _, second = text.partition("|")
    parts = [tuple(name.strip() for name in part.split(",") if name.strip()) for part in (first, second)]
    return parts[0], parts[1]

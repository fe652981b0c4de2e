"""Patterns of markers on segments: laboratories combine those of published conventions, segment by segment.

A convention states which landmarks of a segment occur together: two markers on the front of a head come with two on its
back, and a single marker on the forefoot is on the second metatarsal rather than on the tip of a toe.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.candidate_places import (
    RARITY_DISTANCE,
    convention_rows,
    list_candidate_conventions,
    mirror_places,
    select_part,
    union_rows,
)
from borelli.analysis.labeling.generic_body import Places
from borelli.analysis.labeling.measured_offsets import offset_on_side
from borelli.analysis.labeling.refine_posing import ONE_SIDED
from borelli.numerics.vectors import Array

OTHER_DISTANCE = 0.045
"""[m] A landmark that is not of the pattern of its segment must be nearer by this, in squares of distances."""
UNUSED_DISTANCE = 0.03
"""[m] Cost of a landmark of a pattern without a point, as a square of a distance."""
PATTERN_DISTANCE = 0.02
"""[m] A pattern of e times fewer conventions must be nearer by this, in sums of squares of distances."""
CLUSTER_DISTANCE = 0.04
"""[m] Cost of a position of a cluster, as a square of a distance: its markers may be anywhere on the segment."""
MEMBER_RARITY = 0.6
"""Fraction of the cost of rare landmarks that remains for those of a pattern.

These five were chosen on every other one of 26 public recordings, with the marker set of each removed.
"""
SINGLE_DISTANCE = 0.045
"""[m] Cost of a landmark on one side only, as a square of a distance: markers are put on both sides."""
EMPTY_DISTANCE = 0.03
"""[m] Cost of a segment of the part of the body without a point, as a square of a distance."""
CHAIN = {"hand": ("forearm", "upper_arm"), "forearm": ("upper_arm",), "foot": ("shank", "thigh"), "shank": ("thigh",)}
"""Segments that have markers if one farther from the trunk has."""
CHAIN_DISTANCE = 0.1
"""[m] Cost of a segment without a point that belongs to a chain, as a square of a distance.

The last three were added after all 26 recordings were looked at.
"""

Key = tuple[str, str, str]
"""Landmark, side and kind."""


class Pattern(NamedTuple):
    """Places (places,) of the landmarks that conventions have on a segment, and their number of conventions."""

    members: NDArray[np.bool_]
    conventions: int


class PatternCost(NamedTuple):
    """Costs [m^2] with a pattern for each segment."""

    place: Array
    """(places,) of a point at each place."""
    unused: Array
    """(places,) of each place without a point."""
    rarity: float
    """Of the patterns themselves."""


class SegmentPatterns:
    """Places on a part of the body, and the patterns of its segments, of the conventions that are known."""

    def __init__(self, part: str, without: tuple[str, ...]) -> None:
        self.places = _pattern_places(part, without)
        self.segment = np.array(self.places.segment)
        self.loose = np.array([kind == "cluster" for kind in self.places.kind])
        self.mirror = mirror_places(self.places)
        self._paired = ~self.loose & ~np.isin(self.places.landmark, ONE_SIDED)
        keys = list(zip(*self.places[:3], strict=True))
        patterns: Counter[tuple[str, tuple[bool, ...]]] = Counter()
        for name in _known_conventions(without):
            members = {row[:3] for row in convention_rows(name)}
            present = np.array([key in members for key in keys])
            for segment in set(self.segment[present]):
                patterns[segment, tuple(present & (self.segment == segment))] += 1
        none = Pattern(np.zeros(len(keys), bool), 1)
        self.patterns: dict[str, list[Pattern]] = {segment: [none] for segment in dict.fromkeys(self.places.segment)}
        for (segment, chosen), count in patterns.items():
            self.patterns[segment].append(Pattern(np.array(chosen), count))
        self._member = np.where(self.loose, CLUSTER_DISTANCE**2, MEMBER_RARITY * self.places.cost)
        self._other = self.places.cost + OTHER_DISTANCE**2
        self._costs = {segment: self._pattern_costs(segment) for segment in self.patterns}

    def cost(self, chosen: dict[str, int]) -> PatternCost:
        """Return the costs with these patterns, given by their numbers."""
        patterns = [self.patterns[segment][number] for segment, number in chosen.items()]
        member = np.any([one.members for one in patterns], axis=0)
        unused = np.where(member & ~self.loose, UNUSED_DISTANCE**2, 0.0)
        rarity = -(PATTERN_DISTANCE**2) * float(np.log([one.conventions for one in patterns]).sum())
        return PatternCost(np.where(member, self._member, self._other), unused, rarity)

    def asymmetry(self, used: NDArray[np.bool_]) -> float:
        """Return the cost of landmarks on one side only, and of segments without a point."""
        single = int((used & ~used[self.mirror] & self._paired).sum())
        full = set(self.segment[used])
        gaps = {one for segment in full for one in CHAIN.get(segment, ())} - full
        empty = len(self.patterns) - len(full)
        return SINGLE_DISTANCE**2 * single + EMPTY_DISTANCE**2 * empty + CHAIN_DISTANCE**2 * len(gaps)

    def best(self, used: NDArray[np.bool_]) -> dict[str, int]:
        """Return the pattern of each segment that costs least if these places (places,) have a point."""
        return {
            segment: int(np.argmin(with_point @ used + without_point @ ~used + rarity))
            for segment, (with_point, without_point, rarity) in self._costs.items()
        }

    def _pattern_costs(self, segment: str) -> tuple[Array, Array, Array]:
        """Return costs [m^2] of places with and without a point (patterns, places), and of patterns of a segment."""
        members = np.array([one.members for one in self.patterns[segment]])
        with_point = np.where(members, self._member, self._other) * (self.segment == segment)
        without_point = UNUSED_DISTANCE**2 * (members & ~self.loose)
        rarity = -(PATTERN_DISTANCE**2) * np.log([one.conventions for one in self.patterns[segment]])
        return with_point, without_point, np.asarray(rarity)


@cache
def segment_patterns(part: str, without: tuple[str, ...] = ()) -> SegmentPatterns:
    """Return the patterns of the segments of one of the `PARTS`.

    Args:
        part: Part of the body.
        without: Marker sets and conventions that are not known.
    """
    return SegmentPatterns(part, without)


def _known_conventions(without: tuple[str, ...]) -> list[str]:
    return [name for name in list_candidate_conventions() if name not in without]


def _pattern_places(part: str, without: tuple[str, ...]) -> Places:
    """Return the places of all landmarks of conventions, where markers are seen, and of cluster markers."""
    rows = list(union_rows(without))
    common = {row[:3] for row in rows}
    rare = [row for name in _known_conventions(without) for row in convention_rows(name) if row[:3] not in common]
    counts = Counter(row[:3] for row in rare)
    conventions = len(_known_conventions(without))
    for key, row in {row[:3]: row for row in rare}.items():
        rows.append((*row[:-1], RARITY_DISTANCE**2 * float(np.log(conventions / counts[key]))))
    moved = [
        (*row[:4], row[4] + offset_on_side(row[0], row[1], without), row[5]) if row[2] == "landmark" else row
        for row in rows
    ]
    return select_part(moved, part)

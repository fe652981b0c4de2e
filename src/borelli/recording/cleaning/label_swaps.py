"""Exchanged labels: two markers that trade places at a frame, and left taken for right.

In time: at one frame each of two markers continues the other's path far better than its own. Over a whole trial: the
body shows where its left is (up, and the fronts and backs of its parts); markers called left must lie there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError, unknown_name
from borelli.recording.landmarks import facing, identify_landmark, left_right_pairs, visible
from borelli.recording.recording import Note, Recording

Array = npt.NDArray[np.float64]

JUMP = 0.03
"""Least leap [m] of both markers at an exchange."""
BETTER = 0.35
"""Most that the exchanged paths may leap, as a part of what the labelled ones leap."""
BLINK = 0.15
"""Longest time [s] out of sight across which paths are compared."""
PIECE = 20_000
"""Frames looked at together, so that long recordings need no more room than short ones."""
APART = 0.03
"""Distance [m] between the twins of a pair below which their sides are not judged."""


class Swap(NamedTuple):
    """Two markers that trade places from frame start to stop (exclusive); `leap` [m] is the lesser of their jumps."""

    first: str
    second: str
    start: int
    stop: int
    leap: float


class Sides(NamedTuple):
    """Pairs whose left marker lies on the body's left, and pairs for which it lies on its right.

    Attributes:
        right: Pairs (left name, right name) that are as they should be.
        wrong: Pairs that are exchanged in most frames.
        distance: Median distance [m] by which the wrong ones are across.
    """

    right: tuple[tuple[str, str], ...]
    wrong: tuple[tuple[str, str], ...]
    distance: float

    @property
    def whole(self) -> bool:
        """Whether all pairs are exchanged, so that the file's sides are: at least three, none of them right."""
        return len(self.wrong) >= 3 and not self.right


def find_swaps(recording: Recording) -> tuple[Swap, ...]:
    """Pairs of markers that trade places, in order of time.

    A pair that trades once and never back keeps its names in the longer part of the recording.
    """
    if "marker_position" not in recording.data or recording.frames < 4:
        return ()
    points = recording.data["marker_position"].values
    reach = max(1, round(BLINK * recording.rate)) if recording.rate > 0.0 else 1
    named = [i for i, name in enumerate(recording.markers) if not name.startswith("*")]
    trades: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for begin in range(0, len(points), PIECE):
        lead = min(begin, reach + 2)
        for frame, first, second, leap in _trades(points[begin - lead : begin + PIECE], named, reach):
            if frame >= lead:
                trades.setdefault((first, second), []).append((begin - lead + frame, leap))
    found = []
    for (first, second), times in trades.items():
        for start, stop, leap in _exchanged(times, len(points)):
            found.append(Swap(recording.markers[first], recording.markers[second], start, stop, leap))
    return tuple(sorted(found, key=lambda swap: swap.start))


def repair_label_swaps(recording: Recording) -> Recording:
    """The recording with the markers that trade places put back, and a note for each."""
    swaps = find_swaps(recording)
    if not swaps:
        return recording
    points = recording.data["marker_position"].values.copy()
    notes = []
    for swap in swaps:
        pair = [recording.markers.index(swap.first), recording.markers.index(swap.second)]
        points[swap.start : swap.stop, pair] = points[swap.start : swap.stop, pair[::-1]]
        said = f"{swap.first} and {swap.second} exchanged back in frames {swap.start} to {swap.stop - 1}"
        notes.append(
            Note(f"{said}: both leapt by at least {1000.0 * swap.leap:.0f} mm there", "changed", "clean(swaps=False)")
        )
    return recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)), *notes)


def find_sides(recording: Recording) -> Sides | None:
    """Which left markers lie on the body's left; None where the labels do not show the body's front or no pairs."""
    if "marker_position" not in recording.data:
        return None
    step = max(1, recording.frames // 1000)
    points = recording.data["marker_position"].values[::step]
    names = recording.markers
    ahead = facing(points, names)
    left = np.stack([-ahead[:, 1], ahead[:, 0], np.zeros(len(ahead))], axis=1)
    right_pairs: list[tuple[str, str]] = []
    wrong_pairs: list[tuple[str, str]] = []
    across = []
    for one, other in left_right_pairs(names):
        mark = identify_landmark(names[one])
        if mark is None or mark.part in ("elbow", "forearm", "wrist", "hand", "heel", "toe", "foot"):
            continue  # arms reach across, and feet are set down on a line
        way = ((points[:, one] - points[:, other]) * left).sum(axis=1)
        way = way[np.isfinite(way)]
        if len(way) >= 3 and abs(np.median(way)) > APART:
            (right_pairs if np.median(way) > 0.0 else wrong_pairs).append((names[one], names[other]))
            if np.median(way) < 0.0:
                across.append(-float(np.median(way)))
    if not right_pairs and not wrong_pairs:
        return None
    return Sides(tuple(right_pairs), tuple(wrong_pairs), float(np.median(across)) if across else 0.0)


def swap_sides(recording: Recording) -> Recording:
    """The recording with every left label called right and every right label left."""
    names = list(recording.markers)
    pairs = left_right_pairs(names)
    if not pairs:
        raise SettingsError("no marker has a twin on the other side, so there are no sides to exchange")
    for one, other in pairs:
        names[one], names[other] = names[other], names[one]
    note = Note(
        f"left and right exchanged in the names of {len(pairs)} pairs of markers", "changed", "swap_sides again"
    )
    return recording.with_data(recording.data.assign_coords(marker=np.array(names, dtype=str)), note)


def swap_markers(recording: Recording, first: str, second: str, start: int = 0, stop: int | None = None) -> Recording:
    """The recording with two markers exchanged from frame start to stop (exclusive; to the end by default)."""
    names = recording.markers
    for name in (first, second):
        if name not in names:
            raise SettingsError(unknown_name("marker", name, names))
    points = recording.data["marker_position"].values.copy()
    pair = [names.index(first), names.index(second)]
    points[start:stop, pair] = points[start:stop, pair[::-1]]
    last = recording.frames if stop is None else stop
    note = Note(f"{first} and {second} exchanged in frames {start} to {last - 1}", "changed")
    return recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)), note)


def _trades(points: Array, named: Sequence[int], reach: int) -> list[tuple[int, int, int, float]]:
    """Frames at which two markers continue each other's paths, with the two markers and the lesser of their leaps."""
    seen = visible(points)
    guess, known = _continuations(points, seen, reach)
    leap = np.linalg.norm(points - guess, axis=2)
    # a usual error of the guess is a marker's own noise; a leap must stand out of it
    usual = [np.median(leap[known[:, i], i]) if known[:, i].any() else 0.0 for i in range(points.shape[1])]
    leaps = known & (leap > np.maximum(JUMP, 5.0 * np.array(usual)))
    found = []
    for frame in np.flatnonzero(leaps[:, named].sum(axis=1) >= 2):
        there = np.array([i for i in named if leaps[frame, i]])
        own = leap[frame, there]
        across = np.linalg.norm(points[frame, there][:, None] - guess[frame, there][None], axis=2)
        traded = (across + across.T < BETTER * (own[:, None] + own)) & (
            np.maximum(across, across.T) < np.minimum(own[:, None], own)
        )
        for first, second in np.argwhere(np.triu(traded, 1)):
            found.append((int(frame), int(there[first]), int(there[second]), float(min(own[first], own[second]))))
    return found


def _continuations(points: Array, seen: npt.NDArray[np.bool_], reach: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Where each marker is expected in each frame from the last two frames it was seen in, if not too long ago."""
    frames = np.arange(len(points))[:, None]
    last = np.maximum.accumulate(np.where(seen, frames, -1), axis=0)
    last = np.concatenate([np.full((1, points.shape[1]), -1), last[:-1]])
    columns = np.arange(points.shape[1])[None, :]
    steady = (last >= 1) & seen[np.maximum(last - 1, 0), columns]
    before = points[np.maximum(last, 0), columns]
    pace = np.where(steady[..., None], before - points[np.maximum(last - 1, 0), columns], 0.0)
    ago = (frames - last)[..., None]
    # beyond a few frames a straight line runs away: it is followed for three frames at most
    guess = before + np.minimum(ago, 3) * np.nan_to_num(pace)
    known = seen & (last >= 0) & (frames - last <= reach)
    return guess, np.asarray(known)


def _exchanged(times: list[tuple[int, float]], frames: int) -> list[tuple[int, int, float]]:
    """Frames between trades, from one to the next; the longer part of the whole counts as rightly named."""
    edges = [0, *(frame for frame, _ in times), frames]
    leap = min(size for _, size in times)
    pieces = list(pairwise(edges))
    odd = pieces[1::2]
    even = pieces[::2]
    wrong = odd if sum(b - a for a, b in odd) <= sum(b - a for a, b in even) else even
    return [(start, stop, leap) for start, stop in wrong if stop > start]

"""Swapped labels: two markers that swap their labels at a frame, and left-right reversals.

At a swap, each of two markers continues the other's path far better than its own. Over a whole trial, the left side of
the body follows from the vertical and from the fronts and backs of its parts; left markers must lie there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import facing_direction, identify_landmarks, left_right_pairs, visible
from borelli.recording.recording import Note, Recording, assign_values, check_names

MIN_JUMP = 0.03
"""Least jump [m] of both markers at a swap."""
MAX_JUMP_RATIO = 0.35
"""Largest ratio of the jumps of swapped paths to those of labeled paths."""
MAX_OCCLUSION = 0.15
"""Longest gap [s] across which paths are compared."""
CHUNK_FRAMES = 20_000
"""Frames processed together, to bound memory."""
MIN_PAIR_DISTANCE = 0.03
"""Least distance [m] of a left-right pair whose sides are evaluated."""


class Swap(NamedTuple):
    """Two markers with swapped labels from frame start to stop (exclusive); `jump` [m] is their smaller jump."""

    first: str
    second: str
    start: int
    stop: int
    jump: float


class Sides(NamedTuple):
    """Pairs of left and right markers, by whether they lie on the side of their name.

    Attributes:
        consistent: Pairs (left name, right name) on the correct sides.
        reversed: Pairs on the wrong sides in most frames.
        distance: Median distance [m] across the midline of the reversed pairs.
    """

    consistent: tuple[tuple[str, str], ...]
    reversed: tuple[tuple[str, str], ...]
    distance: float

    @property
    def all_reversed(self) -> bool:
        """Whether all pairs are reversed, and at least three."""
        return len(self.reversed) >= 3 and not self.consistent


def find_swaps(recording: Recording) -> tuple[Swap, ...]:
    """Return pairs of markers with swapped labels, in order of time.

    A pair that swaps only once keeps its labels in the longer part of the recording.

    Args:
        recording: Recording with markers.
    """
    if "marker_position" not in recording.data or recording.frames < 4:
        return ()
    points = recording.data["marker_position"].values
    max_frames = max(1, round(MAX_OCCLUSION * recording.rate)) if recording.rate > 0.0 else 1
    named = [i for i, name in enumerate(recording.markers) if not name.startswith("*")]
    crossings: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for begin in range(0, len(points), CHUNK_FRAMES):
        overlap = min(begin, max_frames + 2)
        chunk = points[begin - overlap : begin + CHUNK_FRAMES]
        for frame, first, second, jump in _find_crossings(chunk, named, max_frames):
            if frame >= overlap:
                crossings.setdefault((first, second), []).append((begin - overlap + frame, jump))
    swaps = []
    for (first, second), found in crossings.items():
        times = _follow_pair(points, first, second, found, max_frames) if len(found) > 2 else found
        for start, stop, jump in _swapped_intervals(times, len(points)):
            swaps.append(Swap(recording.markers[first], recording.markers[second], start, stop, jump))
    return tuple(sorted(swaps, key=lambda swap: swap.start))


def swaps_by_pair(swaps: Sequence[Swap]) -> dict[tuple[str, str], list[Swap]]:
    """Return the swaps of each pair of markers, in order of time."""
    pairs: dict[tuple[str, str], list[Swap]] = {}
    for swap in swaps:
        pairs.setdefault((swap.first, swap.second), []).append(swap)
    return pairs


def list_swapped_frames(swaps: Sequence[Swap]) -> str:
    """Return the frames of the swaps of one pair: those of a single swap, else their number and where they are."""
    first, last = swaps[0].start, swaps[-1].stop - 1
    if len(swaps) == 1:
        return f"frames {first} to {last}"
    return f"{sum(swap.stop - swap.start for swap in swaps)} of the frames {first} to {last}"


def repair_label_swaps(recording: Recording) -> Recording:
    """Return the recording with swapped marker labels repaired, and a note for each swap.

    Args:
        recording: Recording with markers.
    """
    swaps = find_swaps(recording)
    if not swaps:
        return recording
    points = recording.data["marker_position"].values.copy()
    notes = []
    for (first, second), own in swaps_by_pair(swaps).items():
        pair = [recording.markers.index(first), recording.markers.index(second)]
        for swap in own:
            points[swap.start : swap.stop, pair] = points[swap.start : swap.stop, pair[::-1]]
        text = (
            f"{first} and {second} are swapped back in {list_swapped_frames(own)}: "
            f"both jumped by at least {1000.0 * min(swap.jump for swap in own):.0f} mm."
        )
        notes.append(Note(text, "changed", "clean(label_swaps=False)", code="label_swap"))
    return assign_values(recording, {"marker_position": points}, *notes)


def find_sides(recording: Recording) -> Sides | None:
    """Return which left-right pairs are on the sides of their names; None if labels show no front or no pairs.

    Args:
        recording: Recording with labels of both sides.
    """
    if "marker_position" not in recording.data:
        return None
    step = max(1, recording.frames // 1000)
    points = recording.data["marker_position"].values[::step]
    names = recording.markers
    ahead = facing_direction(points, names)
    left = np.stack([-ahead[:, 1], ahead[:, 0], np.zeros(len(ahead))], axis=1)
    consistent_pairs: list[tuple[str, str]] = []
    reversed_pairs: list[tuple[str, str]] = []
    across = []
    marks = identify_landmarks(names)
    for one, other in left_right_pairs(names):
        mark = marks[one]
        if mark is None or mark.part in ("elbow", "forearm", "wrist", "hand", "heel", "toe", "foot"):
            continue  # arms cross the midline, and feet are placed on a line
        offset = ((points[:, one] - points[:, other]) * left).sum(axis=1)
        offset = offset[np.isfinite(offset)]
        if len(offset) >= 3 and abs(np.median(offset)) > MIN_PAIR_DISTANCE:
            (consistent_pairs if np.median(offset) > 0.0 else reversed_pairs).append((names[one], names[other]))
            if np.median(offset) < 0.0:
                across.append(-float(np.median(offset)))
    if not consistent_pairs and not reversed_pairs:
        return None
    return Sides(tuple(consistent_pairs), tuple(reversed_pairs), float(np.median(across)) if across else 0.0)


def swap_sides(recording: Recording) -> Recording:
    """Return the recording with left and right swapped in all marker names.

    Args:
        recording: Recording with labels of both sides.
    """
    names = list(recording.markers)
    pairs = left_right_pairs(names)
    if not pairs:
        raise SettingsError("No marker has a counterpart on the other side, so there are no sides to swap.")
    for one, other in pairs:
        names[one], names[other] = names[other], names[one]
    text = f"Left and right are swapped in the names of {len(pairs)} pairs of markers."
    note = Note(text, "changed", "swap_sides again", code="left_right_labels")
    return recording.with_data(recording.data.assign_coords(marker=np.array(names, dtype=str)), note)


def swap_markers(recording: Recording, first: str, second: str, start: int = 0, stop: int | None = None) -> Recording:
    """Return the recording with two markers swapped from frame start to stop (exclusive; default: the end).

    Args:
        recording: Recording with markers.
        first: Label of one marker.
        second: Label of the other.
        start: First frame that is swapped.
        stop: Frame after the last one that is swapped.
    """
    names = recording.markers
    check_names("marker", (first, second), names)
    points = recording.data["marker_position"].values.copy()
    pair = [names.index(first), names.index(second)]
    points[start:stop, pair] = points[start:stop, pair[::-1]]
    last = recording.frames if stop is None else stop
    text = f"{first} and {second} are swapped in frames {start} to {last - 1}."
    return assign_values(recording, {"marker_position": points}, Note(text, "changed", code="label_swap"))


def _find_crossings(points: Array, named: Sequence[int], max_frames: int) -> list[tuple[int, int, int, float]]:
    """Return frames at which two markers continue each other's paths, the two markers, and the smaller jump.

    Paths are extrapolated; from one frame to the next they are also compared as they are, which finds labels that swap
    every few frames. Of two markers that move together by v at a distance d, no such comparison finds a swap, because
    |v + d| + |v - d| >= 2 |v|.
    """
    is_visible = visible(points)
    predicted, known = _extrapolate(points, is_visible, max_frames)
    jump = np.linalg.norm(points - predicted, axis=2)
    # the typical prediction error is the noise of a marker; a jump must exceed it
    typical = [np.median(jump[known[:, i], i]) if known[:, i].any() else 0.0 for i in range(points.shape[1])]
    crossings = _crossed_paths(points, predicted, known, np.maximum(MIN_JUMP, 5.0 * np.array(typical)), named)
    held, next_to = np.roll(points, 1, axis=0), is_visible & np.roll(is_visible, 1, axis=0)
    next_to[0] = False
    crossings |= _crossed_paths(points, held, next_to, np.full(points.shape[1], MIN_JUMP), named)
    return [(*where, crossings[where]) for where in sorted(crossings)]


def _crossed_paths(
    points: Array, predicted: Array, known: npt.NDArray[np.bool_], min_jump: Array, named: Sequence[int]
) -> dict[tuple[int, int, int], float]:
    """Return the smaller jump by frame and two markers that both jump to what is predicted of the other."""
    jump = np.linalg.norm(points - predicted, axis=2)
    jumps = known & (jump > min_jump)
    crossings = {}
    for frame in np.flatnonzero(jumps[:, named].sum(axis=1) >= 2):
        there = np.array([i for i in named if jumps[frame, i]])
        own = jump[frame, there]
        across = np.linalg.norm(points[frame, there][:, None] - predicted[frame, there][None], axis=2)
        crossed = (across + across.T < MAX_JUMP_RATIO * (own[:, None] + own)) & (
            np.maximum(across, across.T) < np.minimum(own[:, None], own)
        )
        for first, second in np.argwhere(np.triu(crossed, 1)):
            crossings[int(frame), int(there[first]), int(there[second])] = float(min(own[first], own[second]))
    return crossings


def _follow_pair(
    points: Array, first: int, second: int, found: list[tuple[int, float]], max_frames: int
) -> list[tuple[int, float]]:
    """Return frames and smaller jumps at which two markers swap, each compared with the corrected paths before it."""
    begin, end = max(found[0][0] - 2, 0), min(found[-1][0] + max_frames + 1, len(points))
    pair = points[begin:end, [first, second]]
    frames = np.flatnonzero(visible(pair).all(axis=1))
    result: list[tuple[int, float]] = []
    is_swapped = False
    path: list[tuple[int, Array]] = []
    for frame in map(int, frames):
        here = pair[frame, ::-1] if is_swapped else pair[frame]
        if path and frame - path[-1][0] <= max_frames:
            (before, start), (last, place) = path[-2:] if len(path) > 1 else (path[-1], path[-1])
            step = place - start if last - before == 1 else 0.0
            predicted = place + min(frame - last, 3) * step
            own, across = (np.linalg.norm(one - predicted, axis=1) for one in (here, here[::-1]))
            if own.min() > max(MIN_JUMP, across.max()) and across.sum() < MAX_JUMP_RATIO * own.sum():
                is_swapped, here = not is_swapped, here[::-1]
                result.append((begin + frame, float(own.min())))
        path = [*path[-1:], (frame, here)]
    return result or found


def _extrapolate(
    points: Array, is_visible: npt.NDArray[np.bool_], max_frames: int
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return each marker's position extrapolated from its last two visible frames, and where it is known."""
    frames = np.arange(len(points))[:, None]
    last = np.maximum.accumulate(np.where(is_visible, frames, -1), axis=0)
    last = np.concatenate([np.full((1, points.shape[1]), -1), last[:-1]])
    columns = np.arange(points.shape[1])[None, :]
    steady = (last >= 1) & is_visible[np.maximum(last - 1, 0), columns]
    before = points[np.maximum(last, 0), columns]
    step = np.where(steady[..., None], before - points[np.maximum(last - 1, 0), columns], 0.0)
    elapsed = (frames - last)[..., None]
    # a straight line is extrapolated over at most three frames
    predicted = before + np.minimum(elapsed, 3) * np.nan_to_num(step)
    known = is_visible & (last >= 0) & (frames - last <= max_frames)
    return predicted, np.asarray(known)


def _swapped_intervals(times: list[tuple[int, float]], frames: int) -> list[tuple[int, int, float]]:
    """Return the intervals between swaps that are wrongly labeled; the longer part counts as correct."""
    edges = [0, *(frame for frame, _ in times), frames]
    jump = min(size for _, size in times)
    pieces = list(pairwise(edges))
    halves = (pieces[1::2], pieces[::2])
    wrong = min(halves, key=lambda half: sum(stop - start for start, stop in half))
    return [(start, stop, jump) for start, stop in wrong if stop > start]

"""Skeletons of animation files: links that hang on one another, posed by the numbers of each frame.

The place of a link in its parent is: shift by its offset, turn by its axis A, then by its channels from left to right,
then by A backwards. BVH has no axis (A is the identity); ASF states one for each bone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.model.model import Vector
from borelli.model.transforms import Array
from borelli.recording.landmarks import HEIGHT, identify_landmark, mean_position, find_landmarks
from borelli.recording.recording import Note
from borelli.recording.units_and_axes import Conversion, infer_conversion

FRAMES_AT_ONCE = 4096
CHANNELS = ("tx", "ty", "tz", "rx", "ry", "rz")
Matrix = tuple[Vector, Vector, Vector]
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

CMU = 0.0254 / 0.45
"""Length [m] of the unit of the CMU recordings: 0.45 of them make an inch."""
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, f"{CMU:.17g}": CMU}
REMEDY = "--units cm (or m, mm, in, a number of metres)"
STATURE = (1.2, 2.2)
"""Statures [m] that are a grown person's, narrow enough to tell these units apart."""


@dataclass(frozen=True)
class Link:
    """One joint and what hangs on it, in the axes of the file.

    Attributes:
        name: Of the joint.
        parent: Number of the link it hangs on, which comes before it; -1 for a root.
        offset: From the parent's joint to this one, in the parent's frame at rest.
        channels: "tx" ... "rz", applied from left to right.
        axis: Rotation A, rows of its matrix.
        end: From the joint to the end of the link, where nothing else hangs on it.
        replaces: Whether its shifts stand in place of the offset (BVH) or are added to it.
    """

    name: str
    parent: int
    offset: Vector
    channels: tuple[str, ...] = ()
    axis: Matrix = IDENTITY
    end: Vector | None = None
    replaces: bool = True


def plain_links(links: Sequence[Link]) -> list[dict[str, Any]]:
    """The links as plain values, for a recording's metadata."""
    return [asdict(link) for link in links]


def links_of(plain: Sequence[Mapping[str, Any]]) -> list[Link]:
    """The links that `plain_links` made, even after a file kept them.

    Raises:
        SettingsError: if they are not what that function made.
    """
    try:
        return [
            Link(
                name=str(one["name"]),
                parent=int(one["parent"]),
                offset=_vector(one["offset"]),
                channels=tuple(str(channel) for channel in one["channels"]),
                axis=(_vector(one["axis"][0]), _vector(one["axis"][1]), _vector(one["axis"][2])),
                end=None if one["end"] is None else _vector(one["end"]),
                replaces=bool(one["replaces"]),
            )
            for one in plain
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SettingsError(f"the recording's skeleton cannot be used: {error}") from None


def scaled(links: Sequence[Link], factor: float) -> list[Link]:
    """The same skeleton in another unit of length."""
    return [
        replace(
            link,
            offset=_vector(factor * np.array(link.offset)),
            end=None if link.end is None else _vector(factor * np.array(link.end)),
        )
        for link in links
    ]


def pose(links: Sequence[Link], values: Array) -> tuple[list[str], Array]:
    """Names of the joints and of the ends of links, and their places (frames, joints, 3) in the file's units and axes.

    Args:
        links: The skeleton.
        values: One column per channel, link by link; angles in radians.
    """
    ends = [i for i, link in enumerate(links) if link.end is not None]
    names = [link.name for link in links] + [f"{links[i].name}_end" for i in ends]
    places = np.empty((len(values), len(names), 3))
    for start in range(0, len(values), FRAMES_AT_ONCE):
        part = slice(start, start + FRAMES_AT_ONCE)
        origins, turns = _pose(links, values[part])
        places[part, : len(links)] = np.stack(origins, axis=1)
        for k, i in enumerate(ends):
            places[part, len(links) + k] = origins[i] + turns[i] @ np.array(links[i].end)
    return names, places


def local_rotations(links: Sequence[Link], values: Array) -> list[Array]:
    """How each link is turned in its parent, (frames, 3, 3), its axis included."""
    columns = _columns(links)
    return [_local(link, values[:, columns[i]])[1] for i, link in enumerate(links)]


def turn_about(axis: str, angle: Array) -> Array:
    """Rotations (frames, 3, 3) about x, y or z by angles [rad]."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrices = np.zeros((len(angle), 3, 3))
    matrices[:, k, k] = 1.0
    matrices[:, i, i] = matrices[:, j, j] = np.cos(angle)
    matrices[:, j, i] = np.sin(angle)
    matrices[:, i, j] = -np.sin(angle)
    return matrices


def lab_frame(
    links: Sequence[Link],
    names: Sequence[str],
    places: Array,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
) -> tuple[Conversion, tuple[Note, ...]]:
    """How to turn a skeleton's places into the lab's metres: animation files state neither unit nor axes.

    Args:
        links: The skeleton.
        names: Of its places, as `pose` gives them.
        places: In the file's units and axes, as `pose` gives them.
        units: The user's word.
        up: The user's word.
        forward: The file's axis to be turned into x.
    """
    unit, unit_note = _unit(links)
    axis, up_note = _up(names, places)
    found, (asked_unit, asked_up, *notes) = infer_conversion(
        None, None, places, names, units=units or unit, up=up or axis, forward=forward
    )
    return found, (asked_unit if units else unit_note, asked_up if up else up_note, *notes)


def stature(links: Sequence[Link]) -> float:
    """Stature of the person a skeleton is made for: along its bones from ankle to pelvis to the top of the head.

    Not a number where its names do not tell ankles and a head. It is the same in every pose.
    """
    reach: list[float] = []
    for link in links:
        reach.append(0.0 if link.parent < 0 else reach[link.parent] + float(np.linalg.norm(link.offset)))
    marks = [identify_landmark(link.name) for link in links]
    ankles = [r for r, mark in zip(reach, marks, strict=True) if mark and mark.part in ("ankle", "foot")]
    heads = [
        r + (float(np.linalg.norm(link.end)) if link.end is not None else 0.0)
        for r, mark, link in zip(reach, marks, links, strict=True)
        if mark and mark.part == "head"
    ]
    return (min(ankles) + max(heads)) / (1.0 - HEIGHT["ankle"]) if ankles and heads else float("nan")


def _unit(links: Sequence[Link]) -> tuple[str, Note]:
    size = stature(links)
    for name, length in UNITS.items():
        if STATURE[0] <= size * length <= STATURE[1]:
            shown = name if length != CMU else f"{length:.5g} m (0.45 to the inch, as in CMU's files)"
            what = f"lengths are taken as {shown}: the skeleton is {size:.4g} tall in the file, {size * length:.2f} m"
            return name, Note(what, "inferred", REMEDY)
    why = (
        "its joints are not those of a body" if size != size else f"it is {size:.4g} tall, a person's in no usual unit"
    )
    return "m", Note(f"lengths are taken as m, without evidence: {why}", "inferred", REMEDY)


def _up(names: Sequence[str], places: Array) -> tuple[str, Note]:
    """The axis along which the head is above the feet, in most frames; else y, as is the custom."""
    remedy = "--up +Z (or another axis)"
    heads, feet = find_landmarks(names, ("head",)), find_landmarks(names, ("ankle", "foot", "toe"))
    if heads and feet and len(places):
        rise = mean_position(places, heads) - mean_position(places, feet)
        length = np.linalg.norm(rise, axis=1)
        seen = np.isfinite(length) & (length > 0.0)
        mean = (rise[seen] / length[seen, None]).sum(axis=0) / max(1, np.count_nonzero(seen))
        axis = int(np.argmax(np.abs(mean)))
        if abs(mean[axis]) > 0.5:
            answer = ("+" if mean[axis] > 0.0 else "-") + "XYZ"[axis]
            return answer, Note(f"{answer} is up: the head is above the feet along it", "inferred", remedy)
    return "+Y", Note("+Y is up, as is the custom of animation files, without other evidence", "inferred", remedy)


def _pose(links: Sequence[Link], values: Array) -> tuple[list[Array], list[Array]]:
    origins: list[Array] = []
    turns: list[Array] = []
    columns = _columns(links)
    for i, link in enumerate(links):
        shift, turn = _local(link, values[:, columns[i]])
        if link.parent < 0:
            origins.append(shift)
            turns.append(turn)
        else:
            origins.append(origins[link.parent] + (turns[link.parent] @ shift[..., None])[..., 0])
            turns.append(turns[link.parent] @ turn)
    return origins, turns


def _columns(links: Sequence[Link]) -> list[slice]:
    ends = np.cumsum([len(link.channels) for link in links])
    return [slice(end - len(link.channels), end) for link, end in zip(links, ends.tolist(), strict=True)]


def _local(link: Link, values: Array) -> tuple[Array, Array]:
    """Shift and turn of a link in its parent, per frame."""
    shift = np.tile(np.array(link.offset), (len(values), 1))
    axis = np.array(link.axis)
    turn: NDArray[np.float64] = np.tile(axis, (len(values), 1, 1))
    for k, channel in enumerate(link.channels):
        number = values[:, k]
        if channel[0] == "t":
            place = "xyz".index(channel[1])
            shift[:, place] = number if link.replaces else shift[:, place] + number
        else:
            turn = turn @ turn_about(channel[1], number)
    return shift, turn @ axis.T


def _vector(values: Iterable[float]) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z

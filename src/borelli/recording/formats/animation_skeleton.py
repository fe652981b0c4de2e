"""Skeletons of animation files: a tree of links, posed by the channels of each frame.

The pose of a link in its parent is a translation by its offset, then the rotations by its axis A, by its channels from
left to right, and by the inverse of A. BVH has no axis (A is the identity); ASF states one for each bone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.model.model import Vector
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import RELATIVE_HEIGHT, find_landmarks, identify_landmarks, mean_position
from borelli.recording.length_unit import STATURE, UNIT_COST
from borelli.recording.recording import Note, make_dataset
from borelli.recording.units_and_axes import (
    UNIT_CONFLICT,
    Conversion,
    FrameOptions,
    infer_conversion,
    specified_options,
)

if TYPE_CHECKING:
    from xarray import Dataset

CHUNK_FRAMES = 4096
Matrix = tuple[Vector, Vector, Vector]
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

CMU_UNIT = 0.0254 / 0.45
"""Length [m] of the unit of the CMU recordings: 0.45 units are an inch."""
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, f"{CMU_UNIT:.17g}": CMU_UNIT}
OVERRIDE = "--units cm (or m, mm, in, a number of meters)"
STATURE_RANGE = (0.8, 2.5)
"""Plausible statures [m] of a skeleton, from a child's."""
CMU_COST = 1.0
"""Negative log likelihood of the CMU unit, next to `UNIT_COST`."""


@dataclass(frozen=True)
class Link:
    """Joint with its segment, in the axes of the file.

    Attributes:
        name: Name of the joint.
        parent: Index of the parent link, which precedes it; -1 for a root.
        offset: Vector from the parent's joint to this one, in the parent's frame at rest.
        channels: "tx" ... "rz", applied from left to right.
        axis: Rotation A, rows of its matrix.
        end: Vector from the joint to the end of a link without children.
        replaces: Whether its translations replace the offset (BVH) or are added to it.
    """

    name: str
    parent: int
    offset: Vector
    channels: tuple[str, ...] = ()
    axis: Matrix = IDENTITY
    end: Vector | None = None
    replaces: bool = True


def plain_links(links: Sequence[Link]) -> list[dict[str, Any]]:
    """Return the links as plain values, for the metadata of a recording."""
    return [asdict(link) for link in links]


def links_from_plain(plain: Sequence[Mapping[str, Any]]) -> list[Link]:
    """Return the links from the plain values of `plain_links`; raise `SettingsError` for others."""
    try:
        return [
            Link(
                name=str(one["name"]),
                parent=int(one["parent"]),
                offset=vector(one["offset"]),
                channels=tuple(str(channel) for channel in one["channels"]),
                axis=(vector(one["axis"][0]), vector(one["axis"][1]), vector(one["axis"][2])),
                end=None if one["end"] is None else vector(one["end"]),
                replaces=bool(one["replaces"]),
            )
            for one in plain
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SettingsError(f"The skeleton of the recording is invalid ({error}).") from None


def scale_links(links: Sequence[Link], factor: float) -> list[Link]:
    """Return the skeleton in another unit of length."""

    def scaled(length: Vector) -> Vector:
        return vector(factor * np.array(length))

    return [replace(link, offset=scaled(link.offset), end=link.end and scaled(link.end)) for link in links]


def joint_positions(links: Sequence[Link], values: Array) -> tuple[list[str], Array]:
    """Return names and positions (frames, joints, 3) of joints and link ends, in the units and axes of the file.

    `values` has one column per channel, link by link, with angles in radians.
    """
    ends = [i for i, link in enumerate(links) if link.end is not None]
    names = [link.name for link in links] + [f"{links[i].name}_end" for i in ends]
    positions = np.empty((len(values), len(names), 3))
    for start in range(0, len(values), CHUNK_FRAMES):
        part = slice(start, start + CHUNK_FRAMES)
        origins, rotations = _link_poses(links, values[part])
        positions[part, : len(links)] = np.stack(origins, axis=1)
        for k, i in enumerate(ends):
            positions[part, len(links) + k] = origins[i] + rotations[i] @ np.array(links[i].end)
    return names, positions


def local_rotations(links: Sequence[Link], values: Array) -> list[Array]:
    """Return the rotation of each link in its parent, (frames, 3, 3), including its axis."""
    columns = _columns(links)
    return [_local(link, values[:, columns[i]])[1] for i, link in enumerate(links)]


def axis_rotation(axis: str, angle: Array) -> Array:
    """Return the rotations (frames, 3, 3) about x, y or z by angles [rad]."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrices = np.zeros((len(angle), 3, 3))
    matrices[:, k, k] = 1.0
    matrices[:, i, i] = matrices[:, j, j] = np.cos(angle)
    matrices[:, j, i] = np.sin(angle)
    matrices[:, i, j] = -np.sin(angle)
    return matrices


def infer_lab_frame(
    links: Sequence[Link], names: Sequence[str], positions: Array, frame: FrameOptions
) -> tuple[Conversion, tuple[Note, ...]]:
    """Return the conversion of a skeleton to the lab, and notes; animation files state neither unit nor axes.

    Names and positions of joints and link ends are those of `joint_positions`.
    """
    unit, unit_note = _unit(links)
    axis, up_note = _up(names, positions)
    units, up, forward = frame["units"], frame["up"], frame["forward"]
    converted, (given_unit, given_up, *notes) = infer_conversion(
        None, None, positions, names, units=units or unit, up=up or axis, forward=forward
    )
    converted = replace(converted, user_specified=specified_options(frame))
    if not units:  # the length of the skeleton shows the unit better than the spread of its joints
        notes = [note for note in notes if note.code != UNIT_CONFLICT]
    return converted, (given_unit if units else unit_note, given_up if up else up_note, *notes)


def skeleton_dataset(
    links: Sequence[Link],
    values: Array,
    names: Sequence[str],
    joints: Sequence[str],
    positions: Array,
    converted: Conversion,
    rate: float | None,
) -> Dataset:
    """Return the dataset of an animation file, from the values of all channels (angles in radians) and their names."""
    rotational = rotational_channels(links)
    angles_and_lengths = np.where(rotational, values, converted.scale * values)
    units = ["rad" if angle else "m" for angle in rotational]
    return make_dataset(
        {"coordinate_value": angles_and_lengths, "joint_center": converted.apply(positions)},
        {"coordinate": names, "coordinate_units": units, "joint": joints},
        rate=rate,
        **converted.attributes,
    )


def rotational_channels(links: Sequence[Link]) -> NDArray[np.bool_]:
    """Return which channels of a skeleton are rotations."""
    return np.array([channel[0] == "r" for link in links for channel in link.channels], dtype=bool)


def skeleton_stature(links: Sequence[Link]) -> float:
    """Return the stature of a skeleton: along its bones from ankle to pelvis to the top of the head.

    NaN if its names do not identify ankles and a head. It does not depend on the pose.
    """
    distances: list[float] = []
    for link in links:
        distances.append(0.0 if link.parent < 0 else distances[link.parent] + float(np.linalg.norm(link.offset)))
    marks = identify_landmarks([link.name for link in links])
    ankles = [r for r, mark in zip(distances, marks, strict=True) if mark and mark.part in ("ankle", "foot")]
    heads = [
        r + (float(np.linalg.norm(link.end)) if link.end is not None else 0.0)
        for r, mark, link in zip(distances, marks, links, strict=True)
        if mark and mark.part == "head"
    ]
    return (min(ankles) + max(heads)) / (1.0 - RELATIVE_HEIGHT["ankle"]) if ankles and heads else float("nan")


def _unit(links: Sequence[Link]) -> tuple[str, Note]:
    size = skeleton_stature(links)
    fitting = [name for name, length in UNITS.items() if STATURE_RANGE[0] <= size * length <= STATURE_RANGE[1]]
    if fitting:
        name = min(fitting, key=lambda name: UNIT_COST.get(name, CMU_COST) + STATURE.cost(size * UNITS[name]))
        length = UNITS[name]
        shown = name if length != CMU_UNIT else f"{length:.5g} m (0.45 to the inch, as in CMU files)"
        evidence = f"the skeleton is {size:.4g} tall in the file, {size * length:.2f} m"
        text = f"Length unit: {shown}, inferred ({evidence})."
        return name, Note(text, "inferred", OVERRIDE, code="length_unit")
    why = f"a stature of {size:.4g} is implausible in every unit"
    why = "the joints are not those of a body" if size != size else why
    return "m", Note(f"Length unit: m, without evidence ({why}).", "inferred", OVERRIDE, code="length_unit")


def _up(names: Sequence[str], positions: Array) -> tuple[str, Note]:
    """Return the axis along which the head is above the feet in most frames, else y, as usual."""
    action = "--up +Z (or another axis)"
    heads, feet = find_landmarks(names, ("head",)), find_landmarks(names, ("ankle", "foot", "toe"))
    if heads and feet and len(positions):
        rise = mean_position(positions, heads) - mean_position(positions, feet)
        length = np.linalg.norm(rise, axis=1)
        known = np.isfinite(length) & (length > 0.0)
        mean = (rise[known] / length[known, None]).sum(axis=0) / max(1, int(np.count_nonzero(known)))
        index = int(np.argmax(np.abs(mean)))
        if abs(mean[index]) > 0.5:
            axis = ("+" if mean[index] > 0.0 else "-") + "XYZ"[index]
            text = f"Vertical axis: {axis}, inferred (the head is above the feet)."
            return axis, Note(text, "inferred", action, code="up_axis")
    text = "Vertical axis: +Y, as usual in animation files, without other evidence."
    return "+Y", Note(text, "inferred", action, code="up_axis")


def _link_poses(links: Sequence[Link], values: Array) -> tuple[list[Array], list[Array]]:
    origins: list[Array] = []
    rotations: list[Array] = []
    columns = _columns(links)
    for i, link in enumerate(links):
        translation, rotation = _local(link, values[:, columns[i]])
        if link.parent < 0:
            origins.append(translation)
            rotations.append(rotation)
        else:
            origins.append(origins[link.parent] + (rotations[link.parent] @ translation[..., None])[..., 0])
            rotations.append(rotations[link.parent] @ rotation)
    return origins, rotations


def _columns(links: Sequence[Link]) -> list[slice]:
    ends = np.cumsum([len(link.channels) for link in links])
    return [slice(end - len(link.channels), end) for link, end in zip(links, ends.tolist(), strict=True)]


def _local(link: Link, values: Array) -> tuple[Array, Array]:
    translation = np.tile(np.array(link.offset), (len(values), 1))
    axis = np.array(link.axis)
    rotation: NDArray[np.float64] = np.tile(axis, (len(values), 1, 1))
    for k, channel in enumerate(link.channels):
        number = values[:, k]
        if channel[0] == "t":
            index = "xyz".index(channel[1])
            translation[:, index] = number if link.replaces else translation[:, index] + number
        else:
            rotation = rotation @ axis_rotation(channel[1], number)
    return translation, rotation @ axis.T

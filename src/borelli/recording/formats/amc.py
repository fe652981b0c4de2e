"""AMC: the motion of an ASF skeleton, frame by frame, bone by bone.

The file states neither its rate nor its unit of length: the skeleton states the unit, and the rate is assumed to be
120 Hz, as in the CMU collection, unless the caller states it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, list_names, unknown_name
from borelli.files.number_rows import (
    MAX_VALUES,
    decode_line,
    enumerate_lines,
    mask_implausible,
    parse_number,
    read_text_bytes,
)
from borelli.files.outside_paths import outside_notes
from borelli.files.paths import as_path
from borelli.model.formats.asf_parser import ROOT, AsfSkeleton, bone_rotation, read_asf_text
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.formats.animation_skeleton import (
    Link,
    Matrix,
    infer_lab_frame,
    joint_positions,
    plain_links,
    rotational_channels,
    scale_links,
    skeleton_dataset,
)
from borelli.recording.recording import Note, Recording
from borelli.recording.time_stamps import check_rate, specified_rate_note
from borelli.recording.units_and_axes import UNIT_CONFLICT, FrameOptions

CMU_RATE = 120.0
"""Frame rate [Hz] of the CMU collection."""


def looks_like_amc(head: bytes) -> bool:
    """Return whether the first bytes are those of an AMC file."""
    lines = [line.strip().lower() for line in head.splitlines()[:200]]
    return any(line.startswith((b":fully-specified", b"#!oml:asf")) for line in lines)


def read_amc(
    path: str | Path,
    skeleton: str | Path | None = None,
    *,
    rate: float | None = None,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
) -> Recording:
    """Read the joint angles and joint centers of an AMC file, in radians and meters, z up.

    The skeleton is an ASF file; default: the one in the same folder with the same name up to an underscore, or the only
    one. The default rate is 120 Hz, the default unit that of the skeleton. Other arguments: `read_recording`.
    """
    check_rate(rate)
    path = as_path(path)
    data = read_text_bytes(path)
    asf_path = as_path(skeleton) if skeleton is not None else _find_skeleton(path, data)
    asf = read_asf_text(asf_path)
    links, order = links_from_asf(asf)
    values, notes = _values(path, data, asf, order, rotational_channels(links))
    joints, positions = joint_positions(links, values)
    meters, why = asf.length_unit()
    converted, (unit_note, *axis_notes) = infer_lab_frame(
        links, joints, positions, FrameOptions(units=units or f"{meters:.17g}", up=up, forward=forward)
    )
    if not units:
        text = f"Length unit: {meters:.5g} m ({why})."
        unit_note = Note(text, "inferred", "--units cm (or m, mm, in, a number)", code="length_unit")
        axis_notes = [note for note in axis_notes if note.code != UNIT_CONFLICT]
        specified = tuple(name for name in converted.user_specified if name != "units")
        converted = replace(converted, user_specified=specified)
    text = f"Frame rate: {CMU_RATE:g} Hz, assumed as in the CMU collection, because the file states none."
    rate_note = specified_rate_note(rate) if rate else Note(text, "inferred", "rate=", code="frame_rate")
    skeleton_note = _skeleton_note(path, data, asf_path)
    names = [f"{link.name}_{channel}" for link in links for channel in link.channels]
    dataset = skeleton_dataset(links, values, names, joints, positions, converted, rate or CMU_RATE)
    metadata = {"skeleton": plain_links(scale_links(links, converted.scale)), "asf": asf_path.name}
    outside = () if skeleton is not None else outside_notes([("skeleton", asf_path.name)], path.parent)
    path_notes = tuple(Note(text, "problem", "Pass the skeleton that is meant.", code=text.code) for text in outside)
    all_notes = (*path_notes, skeleton_note, unit_note, *axis_notes, rate_note, *notes)
    return Recording(dataset, path.stem, str(path), "AMC", metadata=metadata, notes=all_notes)


def _values(
    path: Path, data: bytes, asf: AsfSkeleton, order: list[int], rotational: NDArray[np.bool_]
) -> tuple[Array, list[Note]]:
    """Return the values of all frames in the order of the links' channels, angles in radians, and notes."""
    motion = _Motion(path, asf)
    for number, line in enumerate_lines(data, path):
        motion.take(line, number)
    values, notes = motion.values()
    if len(values) * (len(asf.bones) + 2) * 4 > MAX_VALUES:
        raise FileFormatError(path, f"The file is too large ({len(asf.bones)} bones in {len(values)} frames).")
    scale = np.where(rotational, np.pi / 180.0 if motion.degrees else 1.0, 1.0)
    return values[:, order] * scale, notes


def links_from_asf(asf: AsfSkeleton) -> tuple[list[Link], list[int]]:
    """Return the skeleton as links in its own unit, and the order of the AMC columns in their channels.

    AMC columns are the root first, then bone by bone in the skeleton's order, in the order of the `dof` lines.
    """
    channels = _channels(asf.root_order)
    order = [asf.root_order.index(channel) for channel in channels]
    root = Link(ROOT, -1, asf.root_position, channels, _axis(asf.root_orientation, asf.root_axis))
    links, positions = [root], {ROOT: 0}
    ends = {ROOT: (0.0, 0.0, 0.0)}
    count = len(asf.root_order)
    parents = set(asf.parents)
    for bone, parent in zip(asf.bones, asf.parents, strict=True):
        channels = _channels(bone.freedoms)
        order += [count + bone.freedoms.index(channel) for channel in channels]
        count += len(bone.freedoms)
        end = vector(bone.end)
        axis, tip = _axis(bone.axis, bone.order), None if bone.name in parents else end
        links.append(Link(bone.name, positions[parent], ends[parent], channels, axis, tip, replaces=False))
        positions[bone.name] = len(links) - 1
        ends[bone.name] = end
    return links, order


def _channels(words: Sequence[str]) -> tuple[str, ...]:
    """Return translations first, then rotations; the first axis of the `order` or `dof` line is innermost."""
    rotations = [word for word in words if word[0] == "r"]
    return (*(word for word in words if word[0] == "t"), *rotations[::-1])


def _axis(angles: tuple[float, float, float], order: str) -> Matrix:
    matrix = bone_rotation(angles, order)
    return vector(matrix[0]), vector(matrix[1]), vector(matrix[2])


class _Motion:
    """Values of an AMC file, checked against its skeleton."""

    def __init__(self, path: Path, asf: AsfSkeleton) -> None:
        self.path = path
        self.degrees = asf.degrees
        self.frame = array("d")
        self.frames = array("d")
        self.count = 0
        self.numbers: list[int] = []
        """Frame numbers that are not one more than that of the frame before."""
        self.columns: dict[str, slice] = {ROOT: slice(0, len(asf.root_order))}
        width = len(asf.root_order)
        for bone in asf.bones:
            self.columns[bone.name] = slice(width, width + len(bone.freedoms))
            width += len(bone.freedoms)
        self.blank = array("d", [float("nan")] * width)

    def take(self, line: bytes, number: int) -> None:
        """Read one line: a setting, a frame number, or a bone with its values."""
        words = line.split()
        if not words or words[0][:1] == b"#":
            return
        if words[0][:1] == b":":
            key = words[0].lower()
            if key in (b":degrees", b":radians"):
                self.degrees = key == b":degrees"
        elif len(words) == 1 and words[0].isdigit():
            self._end_frame()
            self.frame = array("d", self.blank)
            frame = int(words[0][:15])
            if not self.count:
                self.first = frame
            elif frame != self.first + self.count:
                self.numbers.append(frame)
        else:
            self._take_bone(decode_line(words[0]), words[1:], number)

    def _take_bone(self, name: str, words: list[bytes], number: int) -> None:
        if not self.frame:
            raise FileFormatError(self.path, f"Bone {name!r} precedes the number of the first frame.", line=number)
        if name not in self.columns:
            what = f"{unknown_name('bone', name, self.columns)}. Check that this is the skeleton of the motion."
            raise FileFormatError(self.path, what, line=number)
        columns = self.columns[name]
        values = [parse_number(word) for word in words]
        count = columns.stop - columns.start
        if len(values) != count or None in values:
            what = f"Bone {name!r} must have {count} numbers, got {decode_line(b' '.join(words))[:60]!r}."
            raise FileFormatError(self.path, what, line=number)
        self.frame[columns] = array("d", [value or 0.0 for value in values])

    def _end_frame(self) -> None:
        if self.frame:
            self.frames.extend(self.frame)
            self.count += 1
            if len(self.frames) > MAX_VALUES:
                raise FileFormatError(self.path, f"The file has more than {MAX_VALUES} numbers.")

    def values(self) -> tuple[Array, list[Note]]:
        """Return the values of all frames (frames, columns), and notes."""
        self._end_frame()
        if not self.count:
            raise FileFormatError(self.path, "The file contains no frame. Check that it is an AMC file.")
        values, implausible = mask_implausible(np.frombuffer(self.frames, dtype=float).reshape(self.count, -1))
        notes = []
        missing = int(np.isnan(values).any(axis=1).sum())
        if missing:
            text = f"{missing} frames do not state every bone; the missing values are NaN."
            notes.append(Note(text, "problem", code="missing_values"))
        if implausible:
            notes.append(Note.implausible(implausible))
        if self.numbers:
            text = f"{len(self.numbers)} frame numbers are not consecutive (such as {self.numbers[0]}) and are ignored."
            notes.append(Note(text, "problem", code="frame_numbers"))
        return values, notes


def _skeleton_note(path: Path, data: bytes, skeleton: Path) -> Note:
    """Return the note on the skeleton of a motion; a problem if its name is that of another subject."""
    names = _skeleton_names(path, data)
    if skeleton.stem.lower() in {name.lower() for name in names}:
        return Note(f"Skeleton: {skeleton.name}.", "stated", code="skeleton")
    text = (
        f"The skeleton {skeleton.name} may be that of another subject: by its name and header, the motion belongs to "
        f"{list_names([f'{name}.asf' for name in names])}. Lengths and joint centers are those of the skeleton."
    )
    return Note(text, "problem", "--skeleton FILE", code="skeleton")


def _skeleton_names(path: Path, data: bytes) -> list[str]:
    """Return the names that the skeleton of an AMC file may have, by the name and the header of the file."""
    named = [path.stem, path.stem.rpartition("_")[0], path.stem.partition("_")[0], path.stem.partition("-")[0]]
    for line in data[:4096].splitlines():
        if line.upper().startswith(b"#!OML:ASF"):
            named.append(decode_line(line[9:]).strip().replace("\\", "/").rpartition("/")[2].rpartition(".")[0])
    return list(dict.fromkeys(filter(None, named)))


def _find_skeleton(path: Path, data: bytes) -> Path:
    """Return the ASF file in the folder of an AMC file that belongs to it."""
    folder = path.parent
    try:
        skeletons = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() == ".asf")
    except OSError as error:
        raise FileFormatError(folder, f"The folder cannot be read ({error.strerror or error}).") from None
    named = _skeleton_names(path, data)
    for name in named:
        for entry in skeletons:
            if entry.stem.lower() == name.lower():
                return entry
    if len(skeletons) == 1:
        return skeletons[0]
    tried = ", ".join(f"{name}.asf" for name in named)
    what = f"There is no skeleton {tried} in the folder, only {len(skeletons)} others. Pass the ASF file as `skeleton`."
    raise FileFormatError(path, what)

"""BVH: an animated skeleton as text, joints nested in braces, then a row of channels per frame.

The rotation of a joint is the product of its rotation channels in the listed order, the first outermost. Position
channels replace the joint's OFFSET. Neither units nor axes are stated; y is usually up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.atomic import write_atomic
from borelli.files.number_rows import (
    MAX_MAGNITUDE,
    MAX_VALUES,
    Rows,
    count_decimals,
    decode_line,
    enumerate_lines,
    format_numbers,
    mask_implausible,
    parse_number,
    read_text_bytes,
    to_single_line,
)
from borelli.files.paths import as_path
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.formats.animation_skeleton import (
    IDENTITY,
    Link,
    infer_lab_frame,
    joint_positions,
    links_from_plain,
    local_rotations,
    plain_links,
    rotational_channels,
    scale_links,
    skeleton_dataset,
)
from borelli.recording.recording import Note, Recording, note_count, number_repeated
from borelli.recording.time_stamps import check_rate, rate_of_period, usable_rate
from borelli.recording.units_and_axes import Conversion, FrameOptions

MAX_DEPTH = 1000
MAX_JOINTS = 10_000
CHANNELS = {
    f"{axis}{kind}": f"{kind[0].replace('p', 't')}{axis}" for kind in ("position", "rotation") for axis in "xyz"
}
CHANNEL_NAMES = {short: f"{word[0].upper()}{word[1:]}" for word, short in CHANNELS.items()}


def looks_like_bvh(head: bytes) -> bool:
    """Return whether the first bytes are those of a BVH file."""
    return head.lstrip()[:9].upper() == b"HIERARCHY"


def read_bvh(
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    rate: float | None = None,
) -> Recording:
    """Read the joint angles and joint centers of a BVH file, in radians and meters, z up.

    The default rate [Hz] follows from the frame time of the file. Other arguments: `read_recording`.
    """
    path = as_path(path)
    data = read_text_bytes(path)
    reader = _Reader(path)
    rows = Rows(path, len(data))
    for number, line in enumerate_lines(data, path):
        if line.strip():
            reader.take(line, number, rows)
    del data
    notes: list[Note] = []
    links = reader.complete(notes)
    degrees, implausible = mask_implausible(rows.matrix(reader.width))
    if len(degrees) * len(links) * 4 > MAX_VALUES:
        raise FileFormatError(path, f"The file is too large ({len(links)} joints in {len(degrees)} frames).")
    rotational = rotational_channels(links)
    values = degrees * np.where(rotational, np.pi / 180.0, 1.0)
    joints, positions = joint_positions(links, values)
    converted, axis_notes = infer_lab_frame(links, joints, positions, FrameOptions(units=units, up=up, forward=forward))
    check_rate(rate)
    if rate is None and reader.period is not None:
        rate = rate_of_period(*reader.period)
    names = [f"{link.name}_{CHANNEL_NAMES[channel]}" for link in links for channel in link.channels]
    dataset = skeleton_dataset(links, values, names, joints, positions, converted, rate)
    reader.note_problems(len(values), implausible, notes)
    notes = [*axis_notes, *notes, *_rest_pose_notes(degrees[:, rotational])]
    skeleton = plain_links(scale_links(links, converted.scale))
    return Recording(dataset, path.stem, str(path), "BVH", metadata={"skeleton": skeleton}, notes=tuple(notes))


def write_bvh(recording: Recording, path: str | Path, *, overwrite: bool = False) -> None:
    """Write skeleton and motion of a BVH or AMC file as BVH, in the unit of that file."""
    path = as_path(path)
    if "skeleton" not in recording.metadata or "coordinate_value" not in recording.data:
        what = f"{recording.name or 'The recording'} has no skeleton."
        raise SettingsError(f"{what} Only recordings of BVH or AMC files can be written as BVH.")
    links = links_from_plain(recording.metadata["skeleton"])
    values = np.asarray(recording.data["coordinate_value"].values, dtype=float)
    if values.shape[1] != sum(len(link.channels) for link in links):
        raise SettingsError("The coordinates do not match the skeleton of the recording. Write the complete recording.")
    unit = str(recording.data.attrs.get("file_units", "m"))
    scale = Conversion.from_axes(unit, "+Y").scale
    links, values = _to_euler_angles(links, values)
    links = scale_links(links, 1.0 / scale)
    rotational = rotational_channels(links)
    numbers = np.where(rotational, np.degrees(values), values / scale)
    rate = usable_rate(recording.rate) or 1.0
    lines = ["HIERARCHY", *_hierarchy(links), "MOTION", f"Frames: {len(values)}", f"Frame Time: {1.0 / rate!r}"]
    lines += [" ".join(format_numbers(row, "nan")) for row in numbers.tolist()]
    write_atomic("\n".join(lines) + "\n", path, overwrite=overwrite, inputs=[recording.path])


@dataclass
class _Reader:
    """State of the reader after each line."""

    path: Path
    joints: list[Link] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    """Indices of the joints whose braces are open; -1 for an end site."""
    moving: bool = False
    frames: float | None = None
    period: tuple[float, int] | None = None
    width: int = 0
    cut: int | None = None

    def take(self, line: bytes, number: int, rows: Rows) -> None:
        if self.moving:
            self._take_motion(line, number, rows)
            return
        words = decode_line(line).replace("{", " { ").replace("}", " } ").split()
        while words:
            key = words.pop(0).upper()
            if key == "MOTION":
                self._end_hierarchy(number)
                return
            words = self._take_hierarchy(key, words, number)

    def _take_hierarchy(self, key: str, words: list[str], number: int) -> list[str]:
        """Read one statement of the hierarchy and return the words after it."""
        if key in ("HIERARCHY", "{"):
            return words
        if key in ("ROOT", "JOINT", "END"):
            name_length = words.index("{") if "{" in words else len(words)
            self._open(key, " ".join(words[:name_length]), number)
            return words[name_length:]
        if key == "}":
            if not self.open:
                raise self._error("There is a closing brace without an opening one.", number)
            self.open.pop()
            return words
        if key == "OFFSET":
            self._offset(words[:3], number)
            return words[3:]
        if key == "CHANNELS":
            return self._channels(words, number)
        raise self._error(unknown_name("word", key, ("JOINT", "End Site", "OFFSET", "CHANNELS", "MOTION")), number)

    def _open(self, key: str, name: str, number: int) -> None:
        if key != "ROOT" and (not self.open or self.open[-1] < 0):
            raise self._error(f"{key} is outside of a joint.", number)
        if len(self.open) >= MAX_DEPTH or len(self.joints) >= MAX_JOINTS:
            raise self._error(f"There are more than {MAX_DEPTH} nested joints or {MAX_JOINTS} joints.", number)
        if key == "END":
            self.open.append(-1)
            return
        if not name:
            raise self._error(f"{key} has no name.", number)
        self.joints.append(Link(to_single_line(name), self.open[-1] if self.open else -1, (0.0, 0.0, 0.0)))
        self.open.append(len(self.joints) - 1)

    def _offset(self, words: Sequence[str], number: int) -> None:
        values = [parse_number(word.encode()) for word in words]
        if len(values) != 3 or not all(value is not None and abs(value) < MAX_MAGNITUDE for value in values):
            raise self._error(f"OFFSET must have three numbers, got {' '.join(words)[:60]!r}.", number)
        offset = vector(value or 0.0 for value in values)
        if not self.open:
            raise self._error("OFFSET is outside of a joint.", number)
        if self.open[-1] >= 0:
            self._change_joint(self.open[-1], offset=offset)
        else:
            self._change_joint(self.open[-2], end=offset)

    def _channels(self, words: list[str], number: int) -> list[str]:
        if not self.open or self.open[-1] < 0:
            raise self._error("CHANNELS is outside of a joint.", number)
        count = int(words[0]) if words and words[0].isdecimal() and len(words[0]) < 4 else -1
        given = [word.lower() for word in words[1 : 1 + max(count, 0)]]
        if count < 0 or len(given) != count:
            raise self._error(f"CHANNELS must have a number and as many names, got {' '.join(words)[:60]!r}.", number)
        for word in given:
            if word not in CHANNELS:
                raise self._error(unknown_name("channel", word, CHANNEL_NAMES.values()), number)
        self._change_joint(self.open[-1], channels=tuple(CHANNELS[word] for word in given))
        return words[1 + count :]

    def _end_hierarchy(self, number: int) -> None:
        if self.open:
            name = self.joints[max(self.open)].name
            raise self._error(f"MOTION begins while the brace of {name!r} is open.", number)
        if not self.joints:
            raise self._error("There is no joint before MOTION.", number)
        self.width = sum(len(joint.channels) for joint in self.joints)
        if not self.width:
            raise self._error("No joint has a channel.", number)
        self.moving = True

    def _take_motion(self, line: bytes, number: int, rows: Rows) -> None:
        lower = line.strip().lower()
        word = lower.partition(b":")[2].strip() or lower.split()[-1]
        if lower.startswith(b"frames"):
            self.frames = parse_number(word)
            return
        if lower.startswith(b"frame time"):
            value = parse_number(word)
            if value is None or not 1e-7 < value < 1e6:
                raise self._error(f"Frame Time is {decode_line(word[:40])!r}, expected a positive number [s].", number)
            self.period = (value, count_decimals(word))
            return
        if self.cut is not None:
            raise self._error(f"The row has {self.cut} numbers for {self.width} channels.", number - 1)
        cells = line.split()
        if len(cells) != self.width:
            if len(cells) > self.width or not len(rows):
                raise self._error(f"The row has {len(cells)} numbers for {self.width} channels.", number)
            self.cut = len(cells)
            return
        rows.add(cells, number)

    def complete(self, notes: list[Note]) -> list[Link]:
        """Return the skeleton, and note repeated names."""
        if not self.moving:
            raise FileFormatError(self.path, "The file ends before MOTION. Check that it is complete.")
        names = number_repeated([joint.name for joint in self.joints], notes)
        return [replace(joint, name=name) for joint, name in zip(self.joints, names, strict=True)]

    def note_problems(self, frames: int, implausible: int, notes: list[Note]) -> None:
        note_count(self.frames, frames, "frames", notes)
        if self.cut is not None:
            text = f"The last row has only {self.cut} of {self.width} numbers and is skipped."
            notes.append(Note(text, "problem", code="short_rows"))
        if self.period is None:
            text = "There is no Frame Time: one frame counts as 1 s."
            notes.append(Note(text, "problem", "rate=", code="frame_rate"))
        else:
            rate = rate_of_period(*self.period)
            if abs(rate * self.period[0] - 1.0) > 1e-9:
                text = f"Frame rate: {rate:.6g} Hz, inferred (the Frame Time of {self.period[0]:g} s is rounded)."
                notes.append(Note(text, "inferred", code="frame_rate"))
        if implausible:
            notes.append(Note.implausible(implausible))

    def _change_joint(self, index: int, **changes: Any) -> None:
        self.joints[index] = replace(self.joints[index], **changes)

    def _error(self, problem: str, number: int) -> FileFormatError:
        return FileFormatError(self.path, problem, line=number)


def _rest_pose_notes(angles: Array) -> list[Note]:
    """Return a note if the first frame differs from the second by more than the motion: a rest pose."""
    if len(angles) < 4:
        return []
    # angles that differ by a revolution are the same pose
    steps = np.sqrt(np.mean((np.mod(np.diff(angles, axis=0) + 180.0, 360.0) - 180.0) ** 2, axis=1))
    typical = float(np.median(steps[1:]))
    if not steps[0] > max(5.0, 10.0 * typical):
        return []
    text = (
        f"The first frame is probably a rest pose: it differs from the second by {steps[0]:.0f} degrees, "
        f"later frames differ by {typical:.2g}."
    )
    return [Note(text, "inferred", "crop the first frame", code="rest_pose")]


def _to_euler_angles(links: Sequence[Link], values: Array) -> tuple[list[Link], Array]:
    """Return the same motion without link axes; rotated links get Euler angles about z, y, x."""
    if all(np.array_equal(link.axis, IDENTITY) and (link.replaces or "t" not in str(link.channels)) for link in links):
        return list(links), values
    columns, converted = [], []
    start = 0
    for link, rotation in zip(links, local_rotations(links, values), strict=True):
        own = values[:, start : start + len(link.channels)]
        start += len(link.channels)
        translations = [channel for channel in link.channels if channel[0] == "t"]
        for channel in translations:
            offset = 0.0 if link.replaces else link.offset["xyz".index(channel[1])]
            columns.append(own[:, link.channels.index(channel)] + offset)
        y = np.arcsin(np.clip(-rotation[:, 2, 0], -1.0, 1.0))
        z = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])
        x = np.arctan2(rotation[:, 2, 1], rotation[:, 2, 2])
        columns += [z, y, x]
        converted.append(replace(link, channels=(*translations, "rz", "ry", "rx"), axis=IDENTITY, replaces=True))
    return converted, np.column_stack(columns)


def _hierarchy(links: Sequence[Link]) -> list[str]:
    children: dict[int, list[int]] = {}
    for i, link in enumerate(links):
        children.setdefault(link.parent, []).append(i)
    lines: list[str] = []
    stack: list[tuple[int, int]] = [(i, 0) for i in reversed(children.get(-1, []))]
    depths: list[int] = []
    while stack:
        i, depth = stack.pop()
        while depths and depths[-1] >= depth:
            lines.append("\t" * depths.pop() + "}")
        tabs = "\t" * depth
        link = links[i]
        lines += [f"{tabs}{'JOINT' if depth else 'ROOT'} {to_single_line(link.name)}", f"{tabs}{{"]
        lines.append(f"{tabs}\tOFFSET {' '.join(format_numbers(link.offset))}")
        spelled = [CHANNEL_NAMES[channel] for channel in link.channels]
        lines.append(f"{tabs}\tCHANNELS {' '.join([str(len(spelled)), *spelled])}")
        if link.end is not None:
            lines += [f"{tabs}\tEnd Site", f"{tabs}\t{{"]
            lines += [f"{tabs}\t\tOFFSET {' '.join(format_numbers(link.end))}", f"{tabs}\t}}"]
        depths.append(depth)
        stack += [(child, depth + 1) for child in reversed(children.get(i, []))]
    while depths:
        lines.append("\t" * depths.pop() + "}")
    return lines

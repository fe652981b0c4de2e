"""BVH: an animated skeleton as text, joints nested in braces, then a row of channels per frame.

The rotation of a joint is the product of its rotation channels in the listed order, the first outermost. Position
channels replace the joint's OFFSET. Neither units nor axes are stated; y is usually up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from borelli.model.transforms import Array, vector
from borelli.recording.formats.animation_skeleton import (
    IDENTITY,
    Link,
    infer_lab_frame,
    joint_positions,
    links_from_plain,
    local_rotations,
    plain_links,
    scale_links,
)
from borelli.recording.recording import Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import rate_of_period, usable_rate
from borelli.recording.units_and_axes import Conversion

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

    Args:
        path: File to read.
        units: Length unit of the file: m, cm, mm, in, or a number of meters. Default: inferred.
        up: Vertical axis of the file. Default: inferred.
        forward: Axis of the file that becomes x.
        rate: Frame rate [Hz]. Default: from the frame time of the file.
    """
    path = as_path(path)
    data = read_text_bytes(path)
    reader = _Reader(path)
    rows = Rows(path, len(data))
    for number, line in enumerate_lines(data, path):
        if line.strip():
            reader.take(line, number, rows)
    del data
    links = reader.links()
    values, implausible = mask_implausible(rows.matrix(sum(len(link.channels) for link in links)))
    if len(values) * len(links) * 4 > MAX_VALUES:
        raise FileFormatError(path, f"The file is too large ({len(links)} joints in {len(values)} frames).")
    channels = [(link, channel) for link in links for channel in link.channels]
    rotational = np.array([channel[0] == "r" for _, channel in channels], dtype=bool)
    radians = np.where(rotational, np.pi / 180.0, 1.0)
    names, positions = joint_positions(links, values * radians)
    converted, axis_notes = infer_lab_frame(links, names, positions, units=units, up=up, forward=forward)
    if rate is not None and usable_rate(rate) is None:
        raise SettingsError(f"rate: {rate} Hz is not positive.")
    if rate is None and reader.period is not None:
        rate = rate_of_period(*reader.period)
    dataset = make_dataset(
        {
            "coordinate_value": values * np.where(rotational, radians, converted.scale),
            "joint_center": converted.apply(positions),
        },
        {
            "coordinate": [f"{link.name}_{CHANNEL_NAMES[channel]}" for link, channel in channels],
            "coordinate_units": ["rad" if angle else "m" for angle in rotational],
            "joint": names,
        },
        rate=rate,
        **converted.attributes,
    )
    return Recording(
        data=dataset,
        name=path.stem,
        path=str(path),
        format="BVH",
        metadata={"skeleton": plain_links(scale_links(links, converted.scale))},
        notes=(*axis_notes, *reader.notes(len(values), implausible), *_rest_pose_notes(values[:, rotational])),
    )


def write_bvh(recording: Recording, path: str | Path) -> None:
    """Write skeleton and motion of a BVH or AMC file as BVH, in the unit of that file.

    Raises:
        SettingsError: if the recording has no skeleton.
    """
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
    rotational = np.array([channel[0] == "r" for link in links for channel in link.channels], dtype=bool)
    numbers = np.where(rotational, np.degrees(values), values / scale)
    rate = usable_rate(recording.rate) or 1.0
    lines = ["HIERARCHY", *_hierarchy(links), "MOTION", f"Frames: {len(values)}", f"Frame Time: {1.0 / rate!r}"]
    lines += [" ".join(format_numbers(row, "nan")) for row in numbers.tolist()]
    write_atomic("\n".join(lines) + "\n", path)


@dataclass
class _Joint:
    name: str
    parent: int
    offset: tuple[float, float, float] | None = None
    channels: tuple[str, ...] = ()
    end: tuple[float, float, float] | None = None


@dataclass
class _Reader:
    """State of the reader after each line."""

    path: Path
    joints: list[_Joint] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    """Indices of the joints whose braces are open; -1 for an end site."""
    moving: bool = False
    frames: float | None = None
    period: tuple[float, int] | None = None
    width: int = 0
    cut: int | None = None
    expected: str = "HIERARCHY"

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
        if key == "HIERARCHY":
            return words
        if key in ("ROOT", "JOINT", "END"):
            name_length = words.index("{") if "{" in words else len(words)
            self._open(key, " ".join(words[:name_length]), number)
            return words[name_length:]
        if key == "{":
            return words
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
        self.joints.append(_Joint(to_single_line(name), self.open[-1] if self.open else -1))
        self.open.append(len(self.joints) - 1)

    def _offset(self, words: Sequence[str], number: int) -> None:
        values = [parse_number(word.encode()) for word in words]
        if len(values) != 3 or not all(value is not None and abs(value) < MAX_MAGNITUDE for value in values):
            raise self._error(f"OFFSET must have three numbers, got {' '.join(words)[:60]!r}.", number)
        offset = vector(value or 0.0 for value in values)
        if not self.open:
            raise self._error("OFFSET is outside of a joint.", number)
        if self.open[-1] >= 0:
            self.joints[self.open[-1]].offset = offset
        else:
            self.joints[self.open[-2]].end = offset

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
        self.joints[self.open[-1]].channels = tuple(CHANNELS[word] for word in given)
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
        if lower.startswith(b"frames"):
            self.frames = parse_number(lower.partition(b":")[2].strip() or lower.split()[-1])
            return
        if lower.startswith(b"frame time"):
            word = lower.partition(b":")[2].strip() or lower.split()[-1]
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

    def links(self) -> list[Link]:
        if not self.moving:
            raise FileFormatError(self.path, "The file ends before MOTION. Check that it is complete.")
        names, _ = unique_names([joint.name for joint in self.joints])
        links = []
        for name, joint in zip(names, self.joints, strict=True):
            links.append(Link(name, joint.parent, joint.offset or (0.0, 0.0, 0.0), joint.channels, end=joint.end))
        return links

    def notes(self, frames: int, implausible: int) -> list[Note]:
        notes = []
        _, repeated = unique_names([joint.name for joint in self.joints])
        if repeated:
            notes.append(Note.repeated(repeated))
        if self.frames is not None and self.frames != frames:
            text = f"The header states {self.frames:g} frames, but the file has {frames}, which are read."
            notes.append(Note(text, "problem", code="header_counts"))
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
        return notes

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

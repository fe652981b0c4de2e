"""BVH: an animated skeleton as text, joints nested in braces, then a row of channels per frame.

A joint's rotation is the product of its rotation channels in the order they are listed, the first outermost. Position
channels stand in place of the joint's OFFSET. Neither units nor axes are stated; y is up by custom.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.number_rows import (
    ABSURD,
    MAX_VALUES,
    Rows,
    decimals_of,
    decode,
    number_cells,
    number_of,
    numbered_lines,
    one_line,
    read_text_bytes,
    without_absurd,
)
from borelli.files.text import write_text
from borelli.model.transforms import Array, vector
from borelli.recording.formats.animation_skeleton import (
    IDENTITY,
    Link,
    lab_frame,
    links_of,
    local_rotations,
    plain_links,
    pose,
    scaled,
)
from borelli.recording.recording import Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import rate_of_period, usable_rate
from borelli.recording.units_and_axes import Conversion

MAX_DEPTH = 1000
MAX_JOINTS = 10_000
CHANNELS = {
    f"{axis}{kind}": f"{kind[0].replace('p', 't')}{axis}" for kind in ("position", "rotation") for axis in "xyz"
}
SPELLED = {short: f"{word[0].upper()}{word[1:]}" for word, short in CHANNELS.items()}


def looks_like_bvh(head: bytes) -> bool:
    """Whether a file that begins so is a BVH."""
    return head.lstrip()[:9].upper() == b"HIERARCHY"


def read_bvh(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    rate: float | None = None,
) -> Recording:
    """The joint angles of a BVH file and the joint centres they imply, in metres, z up.

    Args:
        path: The file.
        units: Its unit of length: m, cm, mm, in, or a number of metres.
        up: Its vertical axis, if the reader does not see it.
        forward: Its axis to be turned into x.
        rate: Frames per second [Hz], instead of what the file's frame time says.
    """
    path = Path(path)
    data = read_text_bytes(path)
    reader = _Reader(path)
    rows = Rows(path, len(data))
    for number, line in numbered_lines(data, path):
        if line.strip():
            reader.take(line, number, rows)
    del data
    links = reader.links()
    values, infinite = without_absurd(rows.matrix(sum(len(link.channels) for link in links)))
    if len(values) * len(links) * 4 > MAX_VALUES:
        raise FileFormatError(path, f"{len(links)} joints in {len(values)} frames are more than is read")
    channels = [(link, channel) for link in links for channel in link.channels]
    turns = np.array([channel[0] == "r" for _, channel in channels], dtype=bool)
    radians = np.where(turns, np.pi / 180.0, 1.0)
    names, places = pose(links, values * radians)
    found, axis_notes = lab_frame(links, names, places, units=units, up=up, forward=forward)
    if rate is not None and usable_rate(rate) is None:
        raise SettingsError(f"rate is {rate} Hz, but must be positive")
    if rate is None and reader.period is not None:
        rate = rate_of_period(*reader.period)
    dataset = make_dataset(
        {"coordinate_value": values * np.where(turns, radians, found.scale), "joint_center": found.apply(places)},
        {
            "coordinate": [f"{link.name}_{SPELLED[channel]}" for link, channel in channels],
            "coordinate_units": ["rad" if turn else "m" for turn in turns],
            "joint": names,
        },
        rate=rate,
        **found.attributes,
    )
    return Recording(
        data=dataset,
        name=path.stem,
        path=str(path),
        format="BVH",
        metadata={"skeleton": plain_links(scaled(links, found.scale))},
        notes=(*axis_notes, *reader.notes(len(values), infinite), *_apart(values[:, turns])),
    )


def write_bvh(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Writes the skeleton and its motion, as a BVH or AMC file gave them, in the units of that file.

    Raises:
        SettingsError: if the recording has no skeleton.
    """
    path = Path(path)
    if "skeleton" not in recording.metadata or "coordinate_value" not in recording.data:
        what = f"{recording.name or 'the recording'} has no skeleton"
        raise SettingsError(f"{what}; BVH can be written from recordings that came from BVH or AMC files")
    links = links_of(recording.metadata["skeleton"])
    values = np.asarray(recording.data["coordinate_value"].values, dtype=float)
    if values.shape[1] != sum(len(link.channels) for link in links):
        raise SettingsError("the coordinates are not those of the recording's skeleton; write the whole recording")
    unit = str(recording.data.attrs.get("file_units", "m"))
    scale = Conversion.of(unit, "+Y").scale
    links, values = _without_axes(links, values)
    links = scaled(links, 1.0 / scale)
    turns = np.array([channel[0] == "r" for link in links for channel in link.channels], dtype=bool)
    numbers = np.where(turns, np.degrees(values), values / scale)
    rate = usable_rate(recording.rate) or 1.0
    lines = ["HIERARCHY", *_hierarchy(links), "MOTION", f"Frames: {len(values)}", f"Frame Time: {1.0 / rate!r}"]
    lines += [" ".join(number_cells(row, "nan")) for row in numbers.tolist()]
    write_text("\n".join(lines) + "\n", path)


@dataclass
class _Joint:
    name: str
    parent: int
    offset: tuple[float, float, float] | None = None
    channels: tuple[str, ...] = ()
    end: tuple[float, float, float] | None = None


@dataclass
class _Reader:
    """What has been read, line by line."""

    path: Path
    joints: list[_Joint] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    """Numbers of the joints whose braces are open; -1 stands for an end site."""
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
        words = decode(line).replace("{", " { ").replace("}", " } ").split()
        while words:
            key = words.pop(0).upper()
            if key == "MOTION":
                self._end_hierarchy(number)
                return
            words = self._take_hierarchy(key, words, number)

    def _take_hierarchy(self, key: str, words: list[str], number: int) -> list[str]:
        """Reads one statement of the hierarchy; gives back the words after it."""
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
                raise self._error("a closing brace without an opening one", number)
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
            raise self._error(f"{key} stands outside any joint", number)
        if len(self.open) >= MAX_DEPTH or len(self.joints) >= MAX_JOINTS:
            raise self._error(f"more than {MAX_DEPTH} joints in one another or {MAX_JOINTS} in all", number)
        if key == "END":
            self.open.append(-1)
            return
        if not name:
            raise self._error(f"{key} has no name", number)
        self.joints.append(_Joint(one_line(name), self.open[-1] if self.open else -1))
        self.open.append(len(self.joints) - 1)

    def _offset(self, words: Sequence[str], number: int) -> None:
        values = [number_of(word.encode()) for word in words]
        if len(values) != 3 or not all(value is not None and abs(value) < ABSURD for value in values):
            raise self._error(f"OFFSET takes three numbers, got {' '.join(words)[:60]!r}", number)
        offset = vector(value or 0.0 for value in values)
        if not self.open:
            raise self._error("OFFSET stands outside any joint", number)
        if self.open[-1] >= 0:
            self.joints[self.open[-1]].offset = offset
        else:
            self.joints[self.open[-2]].end = offset

    def _channels(self, words: list[str], number: int) -> list[str]:
        if not self.open or self.open[-1] < 0:
            raise self._error("CHANNELS stands outside any joint", number)
        count = int(words[0]) if words and words[0].isdecimal() and len(words[0]) < 4 else -1
        given = [word.lower() for word in words[1 : 1 + max(count, 0)]]
        if count < 0 or len(given) != count:
            raise self._error(f"CHANNELS takes their number and names, got {' '.join(words)[:60]!r}", number)
        for word in given:
            if word not in CHANNELS:
                raise self._error(unknown_name("channel", word, SPELLED.values()), number)
        self.joints[self.open[-1]].channels = tuple(CHANNELS[word] for word in given)
        return words[1 + count :]

    def _end_hierarchy(self, number: int) -> None:
        if self.open:
            name = self.joints[max(self.open)].name
            raise self._error(f"MOTION begins while the brace of {name!r} is still open", number)
        if not self.joints:
            raise self._error("no joint before MOTION", number)
        self.width = sum(len(joint.channels) for joint in self.joints)
        if not self.width:
            raise self._error("no joint has a channel", number)
        self.moving = True

    def _take_motion(self, line: bytes, number: int, rows: Rows) -> None:
        lower = line.strip().lower()
        if lower.startswith(b"frames"):
            self.frames = number_of(lower.partition(b":")[2].strip() or lower.split()[-1])
            return
        if lower.startswith(b"frame time"):
            word = lower.partition(b":")[2].strip() or lower.split()[-1]
            value = number_of(word)
            if value is None or not 1e-7 < value < 1e6:
                raise self._error(f"Frame Time is {decode(word[:40])!r}, but must be a positive number [s]", number)
            self.period = (value, decimals_of(word))
            return
        if self.cut is not None:
            raise self._error(f"the row has {self.cut} numbers for {self.width} channels", number - 1)
        cells = line.split()
        if len(cells) != self.width:
            if len(cells) > self.width or not len(rows):
                raise self._error(f"the row has {len(cells)} numbers for {self.width} channels", number)
            self.cut = len(cells)
            return
        rows.add(cells, number)

    def links(self) -> list[Link]:
        if not self.moving:
            raise FileFormatError(self.path, "the file ends before MOTION; is it cut short?")
        names, _ = unique_names([joint.name for joint in self.joints])
        links = []
        for name, joint in zip(names, self.joints, strict=True):
            links.append(Link(name, joint.parent, joint.offset or (0.0, 0.0, 0.0), joint.channels, end=joint.end))
        return links

    def notes(self, frames: int, infinite: int) -> list[Note]:
        notes = []
        _, repeated = unique_names([joint.name for joint in self.joints])
        if repeated:
            notes.append(Note(f"repeated joint names are numbered: {', '.join(repeated[:10])}", "problem"))
        if self.frames is not None and self.frames != frames:
            notes.append(Note(f"Frames says {self.frames:g}, the file has {frames}, which are read", "problem"))
        if self.cut is not None:
            notes.append(Note(f"the last row, with {self.cut} of {self.width} numbers, is left out", "problem"))
        if self.period is None:
            notes.append(Note("no Frame Time; times count frames as seconds", "problem", "rate="))
        else:
            rate = rate_of_period(*self.period)
            if abs(rate * self.period[0] - 1.0) > 1e-9:
                what = f"the rate is {rate:.6g} Hz: the file's Frame Time of {self.period[0]:g} s is that, rounded"
                notes.append(Note(what, "inferred"))
        if infinite:
            notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not measured", "problem"))
        return notes

    def _error(self, what: str, number: int) -> FileFormatError:
        return FileFormatError(self.path, what, line=number)


def _apart(angles: Array) -> list[Note]:
    """A note if the first frame stands apart from the second as no motion does: a rest pose put before it."""
    if len(angles) < 4:
        return []
    # turns beyond half a circle are the same pose
    steps = np.sqrt(np.mean((np.mod(np.diff(angles, axis=0) + 180.0, 360.0) - 180.0) ** 2, axis=1))
    usual = float(np.median(steps[1:]))
    if not steps[0] > max(5.0, 10.0 * usual):
        return []
    what = f"the first frame is {steps[0]:.0f} degrees from the second, where later ones differ by {usual:.2g}"
    return [Note(f"{what}: probably a rest pose put before the motion", "inferred", "crop the first frame")]


def _without_axes(links: Sequence[Link], values: Array) -> tuple[list[Link], Array]:
    """The same motion without axes of links: turned ones get Euler angles about z, y, x."""
    if all(np.array_equal(link.axis, IDENTITY) and (link.replaces or "t" not in str(link.channels)) for link in links):
        return list(links), values
    columns, made = [], []
    start = 0
    for link, turn in zip(links, local_rotations(links, values), strict=True):
        own = values[:, start : start + len(link.channels)]
        start += len(link.channels)
        shifts = [channel for channel in link.channels if channel[0] == "t"]
        for channel in shifts:
            moved = 0.0 if link.replaces else link.offset["xyz".index(channel[1])]
            columns.append(own[:, link.channels.index(channel)] + moved)
        y = np.arcsin(np.clip(-turn[:, 2, 0], -1.0, 1.0))
        z = np.arctan2(turn[:, 1, 0], turn[:, 0, 0])
        x = np.arctan2(turn[:, 2, 1], turn[:, 2, 2])
        columns += [z, y, x]
        made.append(replace(link, channels=(*shifts, "rz", "ry", "rx"), axis=IDENTITY, replaces=True))
    return made, np.column_stack(columns)


def _hierarchy(links: Sequence[Link]) -> list[str]:
    """The nested lines of the skeleton."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(links):
        children.setdefault(link.parent, []).append(i)
    lines: list[str] = []
    waiting: list[tuple[int, int]] = [(i, 0) for i in reversed(children.get(-1, []))]
    depths: list[int] = []
    while waiting:
        i, depth = waiting.pop()
        while depths and depths[-1] >= depth:
            lines.append("\t" * depths.pop() + "}")
        tabs = "\t" * depth
        link = links[i]
        lines += [f"{tabs}{'JOINT' if depth else 'ROOT'} {one_line(link.name)}", f"{tabs}{{"]
        lines.append(f"{tabs}\tOFFSET {' '.join(number_cells(link.offset))}")
        spelled = [SPELLED[channel] for channel in link.channels]
        lines.append(f"{tabs}\tCHANNELS {' '.join([str(len(spelled)), *spelled])}")
        if link.end is not None:
            lines += [f"{tabs}\tEnd Site", f"{tabs}\t{{"]
            lines += [f"{tabs}\t\tOFFSET {' '.join(number_cells(link.end))}", f"{tabs}\t}}"]
        depths.append(depth)
        waiting += [(child, depth + 1) for child in reversed(children.get(i, []))]
    while depths:
        lines.append("\t" * depths.pop() + "}")
    return lines

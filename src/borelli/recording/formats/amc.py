"""AMC: the motion of an ASF skeleton, frame by frame, bone by bone.

The file names neither its rate nor its units of length: the skeleton states the latter, and 120 Hz is taken for the
former, as in the CMU collection, unless the caller knows better.
"""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.number_rows import MAX_VALUES, decode, number_of, numbered_lines, read_text_bytes, without_absurd
from borelli.model.formats.asf_parser import ROOT, AsfSkeleton, Bone, bone_rotation, read_asf_text
from borelli.model.transforms import Array, vector
from borelli.recording.formats.animation_skeleton import Link, Matrix, lab_frame, plain_links, pose, scaled
from borelli.recording.recording import Note, Recording, make_dataset
from borelli.recording.time_stamps import usable_rate

RATE = 120.0
"""[Hz], of the CMU collection."""


def looks_like_amc(head: bytes) -> bool:
    """Whether a file that begins so is an AMC."""
    lines = [line.strip().lower() for line in head.splitlines()[:200]]
    return any(line.startswith((b":fully-specified", b"#!oml:asf")) for line in lines)


def read_amc(
    path: str | os.PathLike[str],
    skeleton: str | os.PathLike[str] | None = None,
    *,
    rate: float | None = None,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
) -> Recording:
    """The joint angles of an AMC file and the joint centres they imply, in metres, z up.

    Args:
        path: The file.
        skeleton: Its ASF file; by default the one beside it, of the same name up to an underscore, or the only one.
        rate: Frames per second [Hz], which the file does not say.
        units: The skeleton's unit of length, if it is not the one the reader takes: cm, in, a number of metres...
        up: Its vertical axis.
        forward: Its axis to be turned into x.
    """
    if rate is not None and usable_rate(rate) is None:
        raise SettingsError(f"rate is {rate} Hz, but must be positive")
    path = Path(path)
    data = read_text_bytes(path)
    asf_path = Path(skeleton) if skeleton is not None else _skeleton_beside(path, data)
    asf = read_asf_text(asf_path)
    links, order = chain_of(asf)
    turns = np.array([channel[0] == "r" for link in links for channel in link.channels], dtype=bool)
    values, notes = _values(path, data, asf, order, turns)
    names, places = pose(links, values)
    metres, why = asf.metres()
    found, (unit_note, *axis_notes) = lab_frame(
        links, names, places, units=units or f"{metres:.17g}", up=up, forward=forward
    )
    if not units:
        unit_note = Note(
            f"lengths are taken as {metres:.5g} m: {why}", "inferred", "--units cm (or m, mm, in, a number)"
        )
    rate_note = Note(f"the rate is {rate:g} Hz, as asked", "stated") if rate else _RATE_NOTE
    dataset = make_dataset(
        {"coordinate_value": np.where(turns, values, found.scale * values), "joint_center": found.apply(places)},
        {
            "coordinate": [f"{link.name}_{channel}" for link in links for channel in link.channels],
            "coordinate_units": ["rad" if turn else "m" for turn in turns],
            "joint": names,
        },
        rate=rate or RATE,
        **found.attributes,
    )
    return Recording(
        data=dataset,
        name=path.stem,
        path=str(path),
        format="AMC",
        metadata={"skeleton": plain_links(scaled(links, found.scale)), "asf": asf_path.name},
        notes=(Note(f"the skeleton is that of {asf_path.name}", "stated"), unit_note, *axis_notes, rate_note, *notes),
    )


_RATE_NOTE = Note(
    f"the rate is taken as {RATE:g} Hz, as in the CMU collection; the file states none", "inferred", "rate="
)


def _values(
    path: Path, data: bytes, asf: AsfSkeleton, order: list[int], turns: NDArray[np.bool_]
) -> tuple[Array, list[Note]]:
    """The numbers of all frames in the order of the links' channels, angles in radians; and what is to be said."""
    motion = _Motion(path, asf)
    for number, line in numbered_lines(data, path):
        motion.take(line, number)
    values, notes = motion.values()
    if len(values) * (len(asf.bones) + 2) * 4 > MAX_VALUES:
        raise FileFormatError(path, f"{len(asf.bones)} bones in {len(values)} frames are more than is read")
    scale = np.where(turns, np.pi / 180.0 if motion.degrees else 1.0, 1.0)
    return values[:, order] * scale, notes


def chain_of(asf: AsfSkeleton) -> tuple[list[Link], list[int]]:
    """The skeleton as links, in its own units; and which of the AMC's numbers belong to their channels, in order.

    The AMC's numbers are taken root first, then bone by bone in the skeleton's order, in the order of the `dof` lines.
    """
    shifts = [word for word in asf.root_order if word[0] == "t"]
    turns = [word for word in asf.root_order if word[0] == "r"][::-1]
    order = [asf.root_order.index(word) for word in (*shifts, *turns)]
    root = Link(ROOT, -1, asf.root_position, (*shifts, *turns), _axis(asf.root_orientation, asf.root_axis))
    links, places = [root], {ROOT: 0}
    ends = {ROOT: (0.0, 0.0, 0.0)}
    count = len(asf.root_order)
    parents = set(asf.parents)
    for bone, parent in zip(asf.bones, asf.parents, strict=True):
        channels = _channels(bone)
        order += [count + bone.freedoms.index(channel) for channel in channels]
        count += len(bone.freedoms)
        end = vector(bone.end)
        links.append(
            Link(
                name=bone.name,
                parent=places[parent],
                offset=ends[parent],
                channels=channels,
                axis=_axis(bone.axis, bone.order),
                end=None if bone.name in parents else end,
                replaces=False,
            )
        )
        places[bone.name] = len(links) - 1
        ends[bone.name] = end
    return links, order


def _channels(bone: Bone) -> tuple[str, ...]:
    """Shifts first, then rotations: the one about the first axis of the `dof` line is innermost."""
    shifts = [word for word in bone.freedoms if word[0] == "t"]
    turns = [word for word in bone.freedoms if word[0] == "r"]
    return (*shifts, *turns[::-1])


def _axis(angles: tuple[float, float, float], order: str) -> Matrix:
    matrix = bone_rotation(angles, order)
    return vector(matrix[0]), vector(matrix[1]), vector(matrix[2])


class _Motion:
    """The numbers of an AMC file, checked against its skeleton."""

    def __init__(self, path: Path, asf: AsfSkeleton) -> None:
        self.path = path
        self.degrees = asf.degrees
        self.frame = array("d")
        self.frames = array("d")
        self.count = 0
        self.numbers: list[int] = []
        """What the file calls its frames, where that is not one more than the frame before."""
        self.places: dict[str, slice] = {ROOT: slice(0, len(asf.root_order))}
        width = len(asf.root_order)
        for bone in asf.bones:
            self.places[bone.name] = slice(width, width + len(bone.freedoms))
            width += len(bone.freedoms)
        self.blank = array("d", [float("nan")] * width)

    def take(self, line: bytes, number: int) -> None:
        """Reads one line: a setting, the number of a frame, or a bone with its numbers."""
        words = line.split()
        if not words or words[0][:1] == b"#":
            return
        if words[0][:1] == b":":
            key = words[0].lower()
            if key in (b":degrees", b":radians"):
                self.degrees = key == b":degrees"
        elif len(words) == 1 and words[0].isdigit():
            self._end_frame(number)
            self.frame = array("d", self.blank)
            said = int(words[0][:15])
            if not self.count:
                self.first = said
            elif said != self.first + self.count:
                self.numbers.append(said)
        else:
            self._take_bone(decode(words[0]), words[1:], number)

    def _take_bone(self, name: str, words: list[bytes], number: int) -> None:
        if not self.frame:
            raise FileFormatError(self.path, f"bone {name!r} before the number of the first frame", line=number)
        if name not in self.places:
            what = f"{unknown_name('bone', name, self.places)}; is this the motion of another skeleton?"
            raise FileFormatError(self.path, what, line=number)
        place = self.places[name]
        values = [number_of(word) for word in words]
        if len(values) != place.stop - place.start or None in values:
            what = f"bone {name!r} takes {place.stop - place.start} numbers, got {decode(b' '.join(words))[:60]!r}"
            raise FileFormatError(self.path, what, line=number)
        self.frame[place] = array("d", [value or 0.0 for value in values])

    def _end_frame(self, number: int) -> None:
        if self.frame:
            self.frames.extend(self.frame)
            self.count += 1
            if len(self.frames) > MAX_VALUES:
                raise FileFormatError(self.path, f"more than {MAX_VALUES} numbers, which is more than is read")

    def values(self) -> tuple[Array, list[Note]]:
        """All frames (frames, numbers), and what is to be said of them."""
        self._end_frame(0)
        if not self.count:
            raise FileFormatError(self.path, "no frame in the file; is this an AMC file?")
        values, infinite = without_absurd(np.frombuffer(self.frames, dtype=float).reshape(self.count, -1))
        notes = []
        missing = int(np.isnan(values).any(axis=1).sum())
        if missing:
            notes.append(Note(f"{missing} frames do not set every bone; what they lack is not a number", "problem"))
        if infinite:
            notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not measured", "problem"))
        if self.numbers:
            what = f"the numbers of {len(self.numbers)} frames do not follow on (such as {self.numbers[0]})"
            notes.append(Note(f"{what}; frames are counted as they stand", "problem"))
        return values, notes


def _skeleton_beside(path: Path, data: bytes) -> Path:
    """The ASF file in the directory of an AMC file that goes with it."""
    folder = path.parent
    try:
        found = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() == ".asf")
    except OSError as error:
        raise FileFormatError(folder, f"cannot be read: {error.strerror or error}") from None
    named = [path.stem, path.stem.rpartition("_")[0], path.stem.partition("_")[0], path.stem.partition("-")[0]]
    for line in data[:4096].splitlines():
        if line.upper().startswith(b"#!OML:ASF"):
            named.append(decode(line[9:]).strip().replace("\\", "/").rpartition("/")[2].rpartition(".")[0])
    for name in filter(None, named):
        for entry in found:
            if entry.stem.lower() == name.lower():
                return entry
    if len(found) == 1:
        return found[0]
    tried = ", ".join(f"{name}.asf" for name in dict.fromkeys(filter(None, named)))
    what = f"its skeleton is not beside it ({tried}); {len(found)} others are; name the ASF file with `skeleton`"
    raise FileFormatError(path, what)

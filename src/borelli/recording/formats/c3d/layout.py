"""Layout of the samples in a C3D file, determined before any is read.

Header and parameters state the same counts twice, and programs disagree about which to update. Every statement is a
candidate; the one with which the samples fill the file is used, and statements that contradict it are noted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from borelli.errors import FileFormatError
from borelli.recording.formats.c3d.parameters import BLOCK, Header, Parameters
from borelli.recording.recording import Note

WORD = 65536
WORDS_OF_POINT = 4


@dataclass(frozen=True)
class Layout:
    """Layout of the samples: frames of points, each point four numbers, followed by analog samples."""

    start: int
    """First byte of the first frame."""
    frames: int
    first: int
    """Number of the first frame in the trial."""
    points: int
    channels: int
    samples: int
    """Analog samples of each channel in a frame."""
    real: bool
    """Whether numbers are 32-bit reals; otherwise they are 16-bit integers."""
    scale: float
    """Factor from integers to the file's length unit, positive; also that of the marker residuals."""
    rate: float
    """Frame rate [Hz]."""

    @property
    def words(self) -> int:
        """Numbers in a frame."""
        return WORDS_OF_POINT * self.points + self.channels * self.samples

    @property
    def frame_bytes(self) -> int:
        """Bytes in a frame."""
        return self.words * (4 if self.real else 2)


class _Candidate(NamedTuple):
    frames: int
    points: int
    analog: int
    real: bool

    @property
    def frame_bytes(self) -> int:
        return (WORDS_OF_POINT * self.points + self.analog) * (4 if self.real else 2)


def infer_layout(
    header: Header, parameters: Parameters, size: int, path: object, *, partial: bool = False
) -> tuple[Layout, list[Note]]:
    """Return the layout that fits a file of this size, and notes on statements that contradict it.

    A truncated file is an error unless `partial`.
    """
    notes: list[Note] = []
    rate = _rate(header, parameters, path)
    scale = parameters.number("POINT", "SCALE") or header.scale
    start = _start(header, parameters, size, path, notes)
    first, counts = _frame_counts(header, parameters)
    best = _choose_candidate(header, parameters, counts, size - start)
    if best.frames == 0 or best.frame_bytes == 0:
        what = "no frames" if best.frames == 0 else "neither points nor analog channels"
        if parameters.number("ROTATION", "USED") > 0:
            what += ", only segment rotations (ROTATION), which are not supported"
        raise FileFormatError(path, f"The file contains {what}.")
    complete = (size - start) // best.frame_bytes
    if best.frames > complete:
        _note_truncation(best, complete, size, path, partial, notes)
    samples = _samples(header, parameters, best.analog, rate)
    layout = Layout(
        start=start,
        frames=min(best.frames, complete),
        first=first,
        points=best.points,
        channels=best.analog // samples,
        samples=samples,
        real=best.real,
        scale=abs(scale) if math.isfinite(scale) and scale else 1.0,
        rate=rate,
    )
    if best.frames not in counts:
        text = f"The number of frames, {best.frames}, follows from the file size: it states only {counts}, in 16 bits."
        notes.append(Note(text, "inferred", code="frame_count"))
    notes.extend(_disagreement_notes(header, parameters, best, counts))
    return layout, notes


def _rate(header: Header, parameters: Parameters, path: object) -> float:
    for rate in (parameters.number("POINT", "RATE"), header.rate):
        if math.isfinite(rate) and 1e-6 < rate < 1e9:
            return rate
    got = f"{parameters.number('POINT', 'RATE'):g} in POINT:RATE and {header.rate:g} in the header"
    text = f"The frame rate is {got}, expected a positive number [Hz]."
    raise FileFormatError(path, f"{text} The header is damaged or has another byte order.")


def _start(header: Header, parameters: Parameters, size: int, path: object, notes: list[Note]) -> int:
    """Return the first byte of the samples as stated by the header, else by the parameters."""
    blocks = [header.data_block, *parameters.counts("POINT", "DATA_START")[:1]]
    usable = [int(block) for block in blocks if block > 2 and (block - 1) * BLOCK <= size]
    if not usable:
        has = f"the file has {-(-size // BLOCK)} blocks of {BLOCK} bytes"
        text = f"The samples should begin in block {header.data_block}, but {has}."
        raise FileFormatError(path, f"{text} It is truncated, or its header is damaged. Copy it again.")
    if len(set(blocks)) > 1:
        text = f"Samples are read from block {usable[0]}; header and POINT:DATA_START state {blocks}."
        notes.append(Note(text, "problem", code="data_start"))
    return (usable[0] - 1) * BLOCK


def _frame_counts(header: Header, parameters: Parameters) -> tuple[int, list[int]]:
    """Return the number of the first frame and the stated numbers of frames, the most reliable first."""
    first, last = (_long(parameters, f"ACTUAL_{end}_FIELD") for end in ("START", "END"))
    counts = []
    if first is not None and last is not None and last >= first:
        counts.append(last - first + 1)
    for name in ("LONG_FRAMES", "FRAMES"):
        counts.extend(int(count) for count in parameters.counts("POINT", name)[:1] if count > 0)
    if header.last >= header.first:
        counts.append(header.last - header.first + 1)
    return first if first else max(header.first, 1), list(dict.fromkeys(counts))


def _long(parameters: Parameters, name: str) -> int | None:
    """Return a frame number stored as one number or as two words, the low one first."""
    words = parameters.counts("TRIAL", name)
    if not len(words):
        return None
    return int(words[0]) + (WORD * int(words[1]) if len(words) > 1 else 0)


def _choose_candidate(header: Header, parameters: Parameters, counts: list[int], available: int) -> _Candidate:
    """Return the candidate with which the samples fill the file, else the first that fits, else the first."""
    scale = parameters.number("POINT", "SCALE")
    points = _distinct(parameters.counts("POINT", "USED")[:1], (header.points,))
    used = int(next(iter(parameters.counts("ANALOG", "USED")), 0))
    analog = _distinct((header.analog_words, used * header.samples))
    real = _distinct([value < 0 for value in (scale, header.scale) if value])
    candidates = [
        _Candidate(frames, int(n), int(words), bool(kind))
        for n, words, kind in product(points, analog, real or [False])
        for frames in _possible_counts(counts, _Candidate(0, int(n), int(words), bool(kind)).frame_bytes, available)
    ]
    fitting = [candidate for candidate in candidates if candidate.frames * candidate.frame_bytes <= available]
    filling = [candidate for candidate in fitting if available - candidate.frames * candidate.frame_bytes < BLOCK]
    return next(iter(filling or fitting or candidates), _Candidate(0, 0, 0, False))


def _possible_counts(counts: list[int], frame_bytes: int, available: int) -> Iterator[int]:
    """Yield the stated numbers of frames, and the number that overflowed a 16-bit count."""
    yield from counts
    complete = available // frame_bytes if frame_bytes else 0
    if complete > WORD - 1 and any((complete - count) % WORD == 0 or count == WORD - 1 for count in counts):
        yield complete


def _samples(header: Header, parameters: Parameters, analog: int, rate: float) -> int:
    used = int(next(iter(parameters.counts("ANALOG", "USED")), 0))
    if used and analog % used == 0 and analog:
        return analog // used
    ratio = parameters.number("ANALOG", "RATE") / rate
    for samples in (header.samples, round(ratio) if math.isfinite(ratio) and 0 < ratio < WORD else 0):
        if samples and analog % samples == 0:
            return max(int(samples), 1)
    return 1


def _note_truncation(
    best: _Candidate, complete: int, size: int, path: object, partial: bool, notes: list[Note]
) -> None:
    text = (
        f"The file states {best.frames} frames of {best.points} points and {best.analog} analog samples, "
        f"but ends after {size} bytes with {complete} complete frames"
    )
    if not partial or not complete:
        action = " Read the complete frames with read_c3d(path, partial=True)." if complete else ""
        raise FileFormatError(path, f"{text}: it is truncated, or its header is damaged.{action}")
    text = f"{text}: it is truncated, and only the complete frames are read."
    notes.append(Note(text, "problem", "copy the file again", code="truncated"))


def _disagreement_notes(header: Header, parameters: Parameters, best: _Candidate, counts: list[int]) -> Iterator[Note]:
    stated = {"frames": (best.frames, counts), "points": (best.points, [header.points])}
    stated["points"][1].extend(map(int, parameters.counts("POINT", "USED")[:1]))
    for what, (used, others) in stated.items():
        # a header cannot state more than 65,535 frames: that is no contradiction
        wrong = sorted({n for n in others if n != used and not (used >= WORD - 1 and n <= WORD - 1)})
        if wrong:
            text = f"Header and parameters disagree on the number of {what}: {used} is used, {wrong} is also stated."
            yield Note(text, "problem", code="header_counts")


def _distinct(*values: Iterable[object]) -> list[int]:
    return list(dict.fromkeys(int(v) for group in values for v in group))  # type: ignore[call-overload]

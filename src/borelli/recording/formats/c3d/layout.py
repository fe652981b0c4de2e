"""Where a C3D file keeps its samples and how many there are, settled before a single one is read.

Header and parameters tell the same counts twice, and programs disagree about which to keep up to date. Every statement
is a candidate; the one with which the samples fill the file is taken, and what contradicts it is noted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from borelli.errors import FileFormatError
from borelli.recording.formats.c3d.parameters import BLOCK, Header, Parameters
from borelli.recording.recording import Note

WORD = 65536
WORDS_OF_POINT = 4


@dataclass(frozen=True)
class Layout:
    """How the samples lie in the file: frames of points, each point four numbers, followed by analog samples.

    Attributes:
        start: First byte of the first frame.
        frames: How many frames there are.
        first: Number of the first frame, as the laboratory counted.
        points: Points in a frame.
        channels: Analog channels.
        samples: Analog samples of each channel in a frame.
        real: Whether numbers are 32-bit reals; otherwise they are 16-bit integers.
        scale: Factor from integers to the file's length unit, positive; also that of the residuals.
        rate: Frames per second [Hz].
    """

    start: int
    frames: int
    first: int
    points: int
    channels: int
    samples: int
    real: bool
    scale: float
    rate: float

    @property
    def words(self) -> int:
        """Numbers in a frame."""
        return WORDS_OF_POINT * self.points + self.channels * self.samples

    @property
    def frame_bytes(self) -> int:
        """Bytes in a frame."""
        return self.words * (4 if self.real else 2)


@dataclass(frozen=True)
class _Guess:
    frames: int
    points: int
    analog: int
    real: bool

    @property
    def frame_bytes(self) -> int:
        return (WORDS_OF_POINT * self.points + self.analog) * (4 if self.real else 2)


def settle_layout(
    header: Header, parameters: Parameters, size: int, path: object, *, partial: bool = False
) -> tuple[Layout, list[Note]]:
    """The layout that fits a file of this size, and notes on statements that contradict it.

    Raises:
        FileFormatError: if the file is too short for what it says it holds (unless a part will do), or says nothing.
    """
    notes: list[Note] = []
    rate = _rate(header, parameters, path)
    scale = parameters.number("POINT", "SCALE") or header.scale
    start = _start(header, parameters, size, path, notes)
    first, spans = _spans(header, parameters)
    best = _best(header, parameters, spans, size - start)
    if best.frames == 0 or best.frame_bytes == 0:
        what = "no frames" if best.frames == 0 else "neither points nor analog channels"
        if parameters.number("ROTATION", "USED") > 0:
            what += ", only rotations of segments (ROTATION), which are not read"
        raise FileFormatError(path, f"the file says that it holds {what}; there is nothing to read")
    frames = best.frames
    whole = (size - start) // best.frame_bytes
    if frames > whole:
        frames = whole
        _refuse_or_note(best, whole, size, path, partial, notes)
    samples = _samples(header, parameters, best.analog, rate)
    layout = Layout(
        start=start,
        frames=frames,
        first=first,
        points=best.points,
        channels=best.analog // samples,
        samples=samples,
        real=best.real,
        scale=abs(scale) if math.isfinite(scale) and scale else 1.0,
        rate=rate,
    )
    if best.frames not in spans:
        said = f"the number of frames, {best.frames}, is taken from the file's size: it only says {spans}, in 16 bits"
        notes.append(Note(said, "inferred"))
    notes.extend(_contradictions(header, parameters, best, spans))
    return layout, notes


def _rate(header: Header, parameters: Parameters, path: object) -> float:
    for rate in (parameters.number("POINT", "RATE"), header.rate):
        if math.isfinite(rate) and 1e-6 < rate < 1e9:
            return rate
    raise FileFormatError(
        path,
        f"the frame rate is {parameters.number('POINT', 'RATE'):g} in POINT:RATE and {header.rate:g} in the header, "
        "but must be a positive number of frames per second; the header is damaged or of another byte order",
    )


def _start(header: Header, parameters: Parameters, size: int, path: object, notes: list[Note]) -> int:
    """First byte of the samples: as the header says, else as the parameters say."""
    blocks = [header.data_block, *parameters.counts("POINT", "DATA_START")[:1]]
    usable = [int(block) for block in blocks if block > 2 and (block - 1) * BLOCK <= size]
    if not usable:
        raise FileFormatError(
            path,
            f"the samples should begin in block {header.data_block}, but the file has {-(-size // BLOCK)} blocks "
            f"of {BLOCK} bytes; it was cut off before its samples, or its header is damaged",
        )
    if len(set(blocks)) > 1:
        notes.append(
            Note(f"samples are read from block {usable[0]}; header and POINT:DATA_START say {blocks}", "problem")
        )
    return (usable[0] - 1) * BLOCK


def _spans(header: Header, parameters: Parameters) -> tuple[int, list[int]]:
    """Number of the first frame, and the counts of frames that are stated, the most trusted first."""
    first, last = (_long(parameters, f"ACTUAL_{end}_FIELD") for end in ("START", "END"))
    spans = []
    if first is not None and last is not None and last >= first:
        spans.append(last - first + 1)
    spans.extend(int(count) for count in parameters.counts("POINT", "LONG_FRAMES")[:1] if count > 0)
    spans.extend(int(count) for count in parameters.counts("POINT", "FRAMES")[:1] if count > 0)
    if header.last >= header.first:
        spans.append(header.last - header.first + 1)
    return first if first else max(header.first, 1), list(dict.fromkeys(spans))


def _long(parameters: Parameters, name: str) -> int | None:
    """A frame number written as one number or as two words, the low one first."""
    words = parameters.counts("TRIAL", name)
    if not len(words):
        return None
    return int(words[0]) + (WORD * int(words[1]) if len(words) > 1 else 0)


def _best(header: Header, parameters: Parameters, spans: list[int], room: int) -> _Guess:
    """The statements with which the samples fill the file; without such, the first that fits; else the first."""
    scale = parameters.number("POINT", "SCALE")
    points = _distinct(parameters.counts("POINT", "USED")[:1], (header.points,))
    used = int(next(iter(parameters.counts("ANALOG", "USED")), 0))
    analog = _distinct((header.analog_words, used * header.samples))
    real = _distinct([value < 0 for value in (scale, header.scale) if value])
    guesses = [
        _Guess(frames, int(n), int(words), bool(kind))
        for n, words, kind in product(points, analog, real or [False])
        for frames in _lengths(spans, _Guess(0, int(n), int(words), bool(kind)).frame_bytes, room)
    ]
    fitting = [guess for guess in guesses if guess.frames * guess.frame_bytes <= room]
    filling = [guess for guess in fitting if room - guess.frames * guess.frame_bytes < BLOCK]
    return next(iter(filling or fitting or guesses), _Guess(0, 0, 0, False))


def _lengths(spans: list[int], frame_bytes: int, room: int) -> Iterator[int]:
    """Counts of frames that may be meant: those stated, and those a 16-bit count has lost 65,536 of."""
    yield from spans
    whole = room // frame_bytes if frame_bytes else 0
    if whole > WORD - 1 and any((whole - span) % WORD == 0 or span == WORD - 1 for span in spans):
        yield whole


def _samples(header: Header, parameters: Parameters, analog: int, rate: float) -> int:
    """Analog samples of one channel in a frame."""
    used = int(next(iter(parameters.counts("ANALOG", "USED")), 0))
    if used and analog % used == 0 and analog:
        return analog // used
    ratio = parameters.number("ANALOG", "RATE") / rate
    for samples in (header.samples, round(ratio) if math.isfinite(ratio) and 0 < ratio < WORD else 0):
        if samples and analog % samples == 0:
            return max(int(samples), 1)
    return 1


def _refuse_or_note(best: _Guess, whole: int, size: int, path: object, partial: bool, notes: list[Note]) -> None:
    said = (
        f"the file says that it holds {best.frames} frames of {best.points} points and {best.analog} analog samples, "
        f"but it ends after {size} bytes with {whole} whole frames"
    )
    if not partial or not whole:
        way = "; read_c3d(path, partial=True) reads those" if whole else ""
        raise FileFormatError(path, f"{said}: it was cut off, or its header is damaged{way}")
    notes.append(Note(f"{said}: it was cut off, and only those are read", "problem", "copy the file again"))


def _contradictions(header: Header, parameters: Parameters, best: _Guess, spans: list[int]) -> Iterator[Note]:
    stated = {"frames": (best.frames, spans), "points": (best.points, [header.points])}
    stated["points"][1].extend(map(int, parameters.counts("POINT", "USED")[:1]))
    for what, (taken, others) in stated.items():
        # a header cannot say more than 65,535 frames: that is no contradiction
        wrong = sorted({n for n in others if n != taken and not (taken >= WORD - 1 and n <= WORD - 1)})
        if wrong:
            said = f"header and parameters disagree on the number of {what}: {taken} was taken, {wrong} is also stated"
            yield Note(said, "problem")


def _distinct(*values: Iterable[object]) -> list[int]:
    return list(dict.fromkeys(int(v) for group in values for v in group))  # type: ignore[call-overload]

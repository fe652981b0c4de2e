"""Random recordings for readers and writers of text, and small files with problems."""

import os

import numpy as np
import pytest
from hypothesis import strategies as st

from borelli.recording.recording import Recording, make_dataset

NAMES = st.lists(
    st.text("abcLR.:_-#é8 *", min_size=1, max_size=8).map(str.strip).filter(lambda name: name and name[0] not in "#*"),
    min_size=2,
    max_size=5,
    unique=True,
)
RATES = st.sampled_from([24.0, 59.94005994, 60.0, 100.0, 119.88, 250.0, 1000.0 / 3.0])
UNITS = st.sampled_from(["mm", "m", "cm", "in"])
UPS = st.sampled_from(["+Y", "+Z", "-Y", "-Z", "+X", "-X"])


@st.composite
def numbers(draw, *shape, low=-3.0, high=3.0, holes=False):
    """Draw an array of this shape; with holes, complete rows of its last axis are NaN."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.uniform(low, high, shape)
    if holes and draw(st.booleans()):
        values[rng.random(shape[:-1]) < 0.3] = np.nan
    return values


@st.composite
def marker_recordings(draw):
    """Markers with gaps, in any units and axes, beginning at any frame."""
    names, frames, rate = draw(NAMES), draw(st.integers(2, 6)), draw(RATES)
    start = draw(st.integers(0, 1000)) / rate
    dataset = make_dataset(
        {"marker_position": draw(numbers(frames, len(names), 3, holes=True))},
        {"marker": names, "time": start + np.arange(frames) / rate if start else np.arange(frames) / rate},
        rate=rate,
        file_units=draw(UNITS),
        file_up=draw(UPS),
    )
    return Recording(dataset, "made")


def refuse_special_files(read, folder, suffix):
    """Check that a reader refuses paths that are not regular files, each in one sentence."""
    from borelli.errors import FileFormatError

    missing, empty, blank, binary, pipe = (
        folder / f"{name}{suffix}" for name in ("missing", "0", "blank", "b", "pipe")
    )
    empty.write_bytes(b"")
    blank.write_bytes(b" \n\t\n\n")
    binary.write_bytes(bytes(range(256)) * 8)
    os.mkfifo(pipe)
    for path in (missing, folder, empty, blank, binary, pipe, folder / f"nul\0{suffix}"):
        with pytest.raises(FileFormatError) as error:
            read(path)
        assert "\n" not in str(error.value)
        assert str(error.value).startswith(str(path).partition("\0")[0])


def notes_of(recording, kind):
    """Return the texts of a recording's notes of one kind."""
    return "; ".join(note.text for note in recording.notes if note.kind == kind)

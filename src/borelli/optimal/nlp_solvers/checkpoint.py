"""Checkpoints: the last iterate of a solution in progress, from which a killed run resumes."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, SettingsError
from borelli.files.atomic import atomic_path
from borelli.files.paths import as_path
from borelli.optimal.nlp_solvers.solver_result import Iterate
from borelli.optimal.transcription.nlp import Nlp

Array = NDArray[np.float64]
MIN_INTERVAL = 0.5
"""[s] Between two writes."""
MAX_CHECKPOINT_BYTES = 1_000_000_000
"""Larger files are not read."""


class Checkpoint(NamedTuple):
    """Iterate on one of the meshes of a solution."""

    level: int
    """Number of the mesh in the sequence."""
    elements: dict[str, list[int]]
    """Elements of each interval, by phase."""
    w: Array
    fingerprint: str


class CheckpointWriter:
    """Writer of the last iterate, at most every `MIN_INTERVAL`, and at the end."""

    def __init__(self, path: str | PathLike[str], level: int, nlp: Nlp) -> None:
        self.path = as_path(path)
        self.level = level
        self.elements = {part.functions.phase.name: list(part.functions.phase.element_counts) for part in nlp.phases}
        self.fingerprint = fingerprint(nlp)
        self.written = -np.inf

    def __call__(self, iterate: Iterate) -> None:
        """Write an iterate unless the last one is recent."""
        if time.monotonic() - self.written >= MIN_INTERVAL:
            self.write(iterate.w)

    def write(self, w: Array) -> None:
        """Write an iterate, completely or not at all."""
        description = json.dumps([self.level, self.elements, self.fingerprint])
        with atomic_path(self.path, overwrite=True) as temporary, temporary.open("wb") as file:
            np.savez(file, w=w, description=np.frombuffer(description.encode(), np.uint8))
        self.written = time.monotonic()


def fingerprint(nlp: Nlp) -> str:
    """Return a hash of the names, sizes and scales of the unknowns and constraints of a program."""
    content = repr(
        (
            nlp.problem.name,
            nlp.method,
            [(b.where, b.names, b.shape, b.scale.tolist()) for b in nlp.blocks],
            [(b.where, b.names, b.columns) for b in nlp.row_blocks],
            nlp.cost_names,
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()


def read_checkpoint(path: str | PathLike[str]) -> Checkpoint | None:
    """Return the checkpoint in a file; None if the file does not exist.

    Raises:
        FileFormatError: The file is damaged, or is not a checkpoint.
    """
    path = as_path(path)
    if not path.exists():
        return None
    if path.stat().st_size > MAX_CHECKPOINT_BYTES:
        raise FileFormatError(path, "The checkpoint is larger than 1 GB. Choose another file.")
    try:
        with np.load(path, allow_pickle=False) as content:
            level, elements, mark = json.loads(content["description"].tobytes())
            w = np.asarray(content["w"], float)
        return Checkpoint(int(level), {str(k): [int(n) for n in v] for k, v in elements.items()}, w, str(mark))
    except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile):
        raise FileFormatError(path, "The file is not a checkpoint. Delete it, or choose another name.") from None


def check_matches(checkpoint: Checkpoint, nlp: Nlp, path: str | PathLike[str]) -> None:
    """Raise SettingsError unless a checkpoint belongs to this program."""
    if checkpoint.fingerprint != fingerprint(nlp) or len(checkpoint.w) != len(nlp.first):
        raise SettingsError(
            f"{path}: The checkpoint belongs to another problem, method or mesh. Delete it, or choose another name."
        )

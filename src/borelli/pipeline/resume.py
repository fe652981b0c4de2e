"""Reuse of stage files from earlier runs.

A stage file contains a key: a hash of the recordings, the settings so far, the version and the code. A stage whose file
has the expected key is read instead of computed, so an interrupted run continues where it stopped, and a changed
setting recomputes only the stages that depend on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from borelli import __version__
from borelli.errors import BorelliError
from borelli.export.stage_files import Stage, read_provenance, read_stage, to_json_values, write_stage

S = TypeVar("S", bound=Stage)
HASHED_BYTES = 1_000_000
"""Bytes of a file that are hashed at once."""
Progress = Callable[[str, float], None]
"""Callback with a description of the running task and the fraction of all work that is done."""


@dataclass(frozen=True)
class StageCache:
    """Stage files of one recording.

    Attributes:
        folder: Folder of the files.
        keys: Expected key of each stage's file.
        runtime: Run time of each stage [s].
        progress: Callback for progress.
        reused: Stages that were read from files.
        written: Results and the files that contain them, the latest last.
    """

    folder: Path
    keys: Mapping[str, str]
    runtime: dict[str, float]
    progress: Progress
    reused: list[str] = field(default_factory=list)
    written: list[tuple[Any, Path]] = field(default_factory=list)

    def load_or_compute(self, name: str, file: str, compute: Callable[[], S]) -> S:
        """Read a stage, with those before it, from its file, or compute it and write the file."""
        known = self.load(name, file)
        if known is not None:
            return cast("S", known)
        result = compute()
        previous = self.written[-1] if self.written else None
        write_stage(result, self.folder / file, self.provenance(name), previous=previous)
        self.written.append((result, self.folder / file))
        return result

    def load(self, name: str, file: str) -> Stage | None:
        """Read a stage, with those before it, from its file; None if it is missing, damaged or of other inputs."""
        path = self.folder / file
        provenance = read_provenance(path)
        if provenance.get("key") != self.keys[name]:
            return None
        try:
            result = read_stage(path)
        except BorelliError:
            return None  # the file is damaged: compute the stage again
        self.runtime.update(provenance["runtime_s"])
        self.reused.extend(provenance["runtime_s"])
        self.written.append((result, path))
        return result

    def provenance(self, name: str) -> dict[str, Any]:
        """Return the key of a stage and the run times up to it, to store in its file."""
        runtime = {stage: self.runtime[stage] for stage in self.keys if stage in self.runtime}
        return {"key": self.keys[name], "runtime_s": runtime}

    @contextmanager
    def timed(self, name: str, task: str, done: float) -> Iterator[None]:
        """Report a task with the fraction of work done before it, and record the run time of the block."""
        self.progress(task, done)
        start = perf_counter()
        yield
        self.runtime[name] = perf_counter() - start


def stage_key(stage: str, inputs: Any, settings: Mapping[str, Any], *, code: str) -> str:
    """Return the key of a stage from the hashes or keys of its inputs, its settings and the hash of its code."""
    parts = [stage, __version__, code, to_json_values(inputs), to_json_values(settings)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                while chunk := opened.read(HASHED_BYTES):
                    digest.update(chunk)
    return digest.hexdigest()

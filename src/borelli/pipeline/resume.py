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
from borelli.export.stage_files import (
    STAGES,
    Stage,
    StageFile,
    load_stage,
    open_stage_file,
    to_json_values,
    write_stage,
)

S = TypeVar("S", bound=Stage)
T = TypeVar("T")
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
        damaged: Sentences on files that cannot be reused because they are damaged.
        written: Results and the files that contain them, the latest last.
    """

    folder: Path
    keys: Mapping[str, str]
    runtime: dict[str, float]
    progress: Progress
    reused: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    written: list[tuple[Any, Path]] = field(default_factory=list)

    def load_or_compute(self, name: str, file: str, compute: Callable[[], S]) -> S:
        """Read a stage, with those before it, from its file, or compute it and write the file."""
        known = self.load(name, file)
        if known is not None:
            return cast("S", known)
        result = compute()
        self._write(name, self.folder / file, result)
        return result

    def load(self, name: str, file: str) -> Stage | None:
        """Read a stage, with those before it, from its file; None if it is missing, damaged or of other inputs."""
        path = self.folder / file
        stored = load_if_current(path, self.keys[name], load_stage, self.damaged)
        if stored is None:
            return None
        result, runtime = stored
        self.runtime.update(runtime)
        self.reused.extend(runtime)
        self.written.append((result, path))
        return result

    def restore(self, name: str, file: str, stage: Stage) -> None:
        """Write the file of a stage again if it is damaged; it was not read, because a later stage was reused."""
        path, count = self.folder / file, len(self.damaged)
        if path not in [known for _, known in self.written]:
            load_if_current(path, self.keys[name], lambda _: None, self.damaged)
            if len(self.damaged) > count:
                self._write(name, path, stage)

    def provenance(self, name: str) -> dict[str, Any]:
        """Return the key of a stage and the run times up to it, to store in its file."""
        stages = list(self.keys)[: list(self.keys).index(name) + 1]
        runtime = {stage: self.runtime[stage] for stage in stages if stage in self.runtime}
        return {"key": self.keys[name], "runtime_s": runtime}

    def _write(self, name: str, path: Path, stage: Stage) -> None:
        previous = self.written[-1] if self.written else None
        write_stage(stage, path, self.provenance(name), previous=previous)
        self.written.append((stage, path))

    @contextmanager
    def timed(self, name: str, task: str, done: float) -> Iterator[None]:
        """Report a task with the fraction of work done before it, and record the run time of the block."""
        self.progress(task, done)
        start = perf_counter()
        yield
        self.runtime[name] = perf_counter() - start


def load_if_current(
    path: Path, key: str, load: Callable[[StageFile], T], damaged: list[str]
) -> tuple[T, dict[str, float]] | None:
    """Return what a file of an earlier run, named after its stage, contains, and the run times [s] of its stages.

    None if the file is missing, has another key, or is damaged; `damaged` gets a sentence then.
    """
    if not path.exists():
        return None
    try:
        stage = open_stage_file(path, (path.stem,))
        if stage.provenance.get("key") != key:
            return None
        runtime = stage.provenance.get("runtime_s")
        runtime = runtime if path.stem in STAGES else {path.stem: runtime}
        if not isinstance(runtime, dict) or not all(isinstance(value, float) for value in runtime.values()):
            stage.refuse("The run time is missing")
        return load(stage), runtime
    except BorelliError as error:
        damaged.append(f"A file of an earlier run cannot be reused and was computed again. {error}")
        return None


def stage_key(stage: str, inputs: Any, settings: Mapping[str, Any], *, code: str) -> str:
    """Return the key of a stage from the hashes or keys of its inputs, its settings and the hash of its code."""
    parts = [stage, __version__, code, to_json_values(inputs), to_json_values(settings)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def is_damaged_stage(path: Path) -> bool:
    """Return whether a file cannot be read as a stage: its content is not what borelli wrote."""
    try:
        open_stage_file(path)
    except BorelliError:
        return True
    return False


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                while chunk := opened.read(HASHED_BYTES):
                    digest.update(chunk)
    return digest.hexdigest()

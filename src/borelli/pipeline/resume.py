"""Stages that are taken up where they were left.

A stage's file carries a key made of what went into it: the content of the recordings, the settings so far, the version
and the code. A stage whose file has the right key is loaded, not computed; so a run that was stopped is taken up where
it was, and a changed setting computes only what follows from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from borelli import __version__
from borelli.errors import BorelliError
from borelli.export.stage_files import read_provenance, to_json_values, read_stage, write_stage

Progress = Callable[[str, float], None]
"""Hears what is being done, and the share of all that is done."""


@dataclass(frozen=True)
class StageCache:
    """The stages of one recording in its folder.

    Attributes:
        folder: Where their files are.
        keys: What their files must carry, by stage.
        seconds: What each stage took, when it was made.
        tell: Hears what is being made.
        loaded: Stages that came from files.
        held: Stages and the files that hold them, the latest last.
    """

    folder: Path
    keys: Mapping[str, str]
    seconds: dict[str, float]
    tell: Progress
    loaded: list[str] = field(default_factory=list)
    held: list[tuple[Any, Path]] = field(default_factory=list)

    def stage(self, name: str, file: str, make: Callable[[], Any]) -> Any:
        """From its file, which holds the stages before it, or made: then those before it are asked for."""
        path = self.folder / file
        known = read_provenance(path)
        if known.get("key") == self.keys[name]:
            try:
                found = read_stage(path)
            except BorelliError:
                pass  # damaged: made anew
            else:
                self.seconds.update(known["seconds"])
                self.loaded.extend(known["seconds"])
                self.held.append((found, path))
                return found
        found = make()
        own = {one: self.seconds[one] for one in self.keys if one in self.seconds}
        write_stage(found, path, {"key": self.keys[name], "seconds": own}, upon=self.held[-1] if self.held else None)
        self.held.append((found, path))
        return found

    def timed(self, name: str, what: str, share: float, make: Callable[[], Any]) -> Any:
        """What is made, its time taken."""
        self.tell(what, share)
        start = perf_counter()
        found = make()
        self.seconds[name] = perf_counter() - start
        return found


def stage_key(stage: str, inputs: Any, settings: Mapping[str, Any], *, code: str) -> str:
    """Return the key of a stage made by code from inputs, given by their hashes or keys, with settings."""
    told = [stage, __version__, code, to_json_values(inputs), to_json_values(settings)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()

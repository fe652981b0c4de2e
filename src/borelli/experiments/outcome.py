"""What an experiment leaves behind: a table with its conditions, what was claimed and whether it held, and pictures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Claim:
    """One figure beside what was published or asked for."""

    text: str
    value: float
    published: str
    passed: bool


@dataclass(frozen=True)
class Outcome:
    """An experiment's result.

    Attributes:
        name: Of the experiment.
        about: What was done, in a sentence or two, with what is synthetic called so.
        rows: One line for every trial or condition: conditions first, then what was measured; units in the names.
        claims: Figures beside published ones.
        files: What was written.
    """

    name: str
    about: str
    rows: Sequence[Mapping[str, Any]]
    claims: Sequence[Claim] = ()
    files: tuple[Path, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every claim does."""
        return all(claim.passed for claim in self.claims)


def write_outcome(outcome: Outcome, out: Path) -> Outcome:
    """The outcome with its table as CSV and all of it as JSON in a folder, which is made if need be."""
    out.mkdir(parents=True, exist_ok=True)
    table, whole = out / f"{outcome.name}.csv", out / f"{outcome.name}.json"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(outcome.rows[0]))
        writer.writeheader()
        writer.writerows(outcome.rows)
    claims = [asdict(claim) | {"holds": bool(claim.passed)} for claim in outcome.claims]  # numpy has truths of its own
    said = {"name": outcome.name, "about": outcome.about, "claims": claims}
    said["rows"] = [{key: _plain(value) for key, value in row.items()} for row in outcome.rows]
    whole.write_text(json.dumps(said, indent=1) + "\n")
    files = (table, whole, *outcome.files)
    return Outcome(outcome.name, outcome.about, outcome.rows, outcome.claims, files)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value

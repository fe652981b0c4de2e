"""Outcome of an experiment: its table, its criteria against published values, and the files written."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

from borelli.files.atomic import write_atomic

Rows = Sequence[Mapping[str, Any]]
"""Rows of a table: values by the name of their column."""


@dataclass(frozen=True)
class Claim:
    """One value next to the published or required one."""

    text: str
    value: float
    published: str
    passed: bool


def below(text: str, value: float, published: str, limit: float) -> Claim:
    """Return the claim that a value is below a limit."""
    return Claim(text, value, published, bool(value < limit))


def above(text: str, value: float, published: str, limit: float) -> Claim:
    """Return the claim that a value is above a limit."""
    return Claim(text, value, published, bool(value > limit))


def near(text: str, value: float, published: str, expected: float, tolerance: float) -> Claim:
    """Return the claim that a value differs from the expected one by less than a tolerance."""
    return Claim(text, value, published, bool(abs(value - expected) < tolerance))


def within_fraction(text: str, value: float, published: str, expected: float, fraction: float) -> Claim:
    """Return the claim that a value differs from the expected one by less than a fraction of it."""
    return Claim(text, value, published, bool(abs(value / expected - 1.0) < fraction))


@dataclass(frozen=True)
class Outcome:
    """Result of an experiment.

    Attributes:
        name: Name of the experiment.
        about: Description of what was done, in a sentence or two; synthetic data are called synthetic.
        rows: One row for each trial or condition: conditions first, then measured values; units in the names.
        claims: Values next to published ones.
        files: Files written.
    """

    name: str
    about: str
    rows: Rows
    claims: Sequence[Claim] = ()
    files: tuple[Path, ...] = ()

    @property
    def passed(self) -> bool:
        """True if every claim passed."""
        return all(claim.passed for claim in self.claims)


def write_outcome(outcome: Outcome, out: Path) -> Outcome:
    """Write the table as CSV and the complete outcome as JSON into a folder; return the outcome with these files."""
    table, document = out / f"{outcome.name}.csv", out / f"{outcome.name}.json"
    text = StringIO()
    writer = csv.DictWriter(text, list(outcome.rows[0]))
    writer.writeheader()
    writer.writerows(outcome.rows)
    write_atomic(text.getvalue(), table)
    claims = [asdict(claim) | {"passed": bool(claim.passed)} for claim in outcome.claims]  # JSON takes no numpy bool
    rows = [{key: _finite_or_none(value) for key, value in row.items()} for row in outcome.rows]
    content = {"name": outcome.name, "about": outcome.about, "claims": claims, "rows": rows}
    write_atomic(json.dumps(content, indent=1) + "\n", document)
    return replace(outcome, files=(table, document, *outcome.files))


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value

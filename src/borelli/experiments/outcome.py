"""Outcome of an experiment: its table, its claims with published and required values, its files."""

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


PASSED_MEANING = (
    "passed: the value meets the required condition, which this project sets; published: what the paper states or "
    "shows; derived: a value from a derivation or a study of this project, not from the paper"
)
"""What the columns of a table of claims mean."""
NOT_GIVEN = "not given"
"""Entry of a value that the paper does not give."""


@dataclass(frozen=True)
class Claim:
    """One value with what the paper states of it, what this project derives, and what is required of it.

    Attributes:
        text: What the value is, with its unit.
        value: The value measured by this run.
        published: What the paper states or shows; "not given" if it does not.
        required: The condition that the value must meet.
        passed: True if it meets the condition.
        derived: The value that a derivation or a study of this project gives; "" if there is none.
    """

    text: str
    value: float
    published: str
    required: str
    passed: bool
    derived: str = ""


def below(text: str, value: float, published: str, limit: float, derived: str = "") -> Claim:
    """Return the claim that a value is below a limit."""
    return Claim(text, value, published, f"below {limit:g}", bool(value < limit), derived)


def above(text: str, value: float, published: str, limit: float, derived: str = "") -> Claim:
    """Return the claim that a value is above a limit."""
    return Claim(text, value, published, f"above {limit:g}", bool(value > limit), derived)


def near(text: str, value: float, published: str, expected: float, tolerance: float, derived: str = "") -> Claim:
    """Return the claim that a value differs from the expected one by less than a tolerance."""
    required = f"{expected:.4g} to within {tolerance:g}"
    return Claim(text, value, published, required, bool(abs(value - expected) < tolerance), derived)


def within_fraction(
    text: str, value: float, published: str, expected: float, fraction: float, derived: str = ""
) -> Claim:
    """Return the claim that a value differs from the expected one by less than a fraction of it."""
    required = f"{expected:.4g} to within {100.0 * fraction:g} %"
    return Claim(text, value, published, required, bool(abs(value / expected - 1.0) < fraction), derived)


@dataclass(frozen=True)
class Outcome:
    """Result of an experiment.

    Attributes:
        name: Name of the experiment.
        about: Description of what was done, in a sentence or two; synthetic data are called synthetic.
        rows: One row for each trial or condition: conditions first, then measured values; units in the names.
        claims: Values with what is published, derived and required.
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
    content = {
        "name": outcome.name, "about": outcome.about, "meaning": PASSED_MEANING, "claims": claims, "rows": rows,
    }  # fmt: skip
    write_atomic(json.dumps(content, indent=1) + "\n", document)
    return replace(outcome, files=(table, document, *outcome.files))


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value

"""Result of the checks of a solution."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_summary, summary_html, summary_repr


@dataclass(frozen=True)
class Check:
    """One check: a value and the limit it must not exceed."""

    name: str
    value: float
    limit: float
    where: str = ""
    """Where the value is largest, in words."""

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        sign = "<=" if self.passed else ">"
        return f"{self.name}: {self.value:.3g} {sign} {self.limit:.3g}{f' ({self.where})' if self.where else ''}"


@dataclass(frozen=True)
class Certificate:
    """Verdict on a solution and what it rests on."""

    status: str
    """How the solver ended."""
    checks: tuple[Check, ...]
    active_bounds: Mapping[str, float] = field(default_factory=dict)
    """Fraction of the points at which each bound is active, by name."""
    reasons: tuple[str, ...] = ()
    """Why the problem is not solved; empty if it is."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    @property
    def solved(self) -> bool:
        """Whether the solver converged and the solution passed every check."""
        return not self.reasons

    @property
    def verdict(self) -> str:
        """Word "solved", or "not solved" with the reason."""
        return "solved" if self.solved else f"not solved: {' '.join(self.reasons)}"

    @check_arguments
    def check(self, name: str) -> Check:
        """Return the check of this name."""
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        lines = [self.verdict, *(f"  {check}" for check in self.checks)]
        lines += [
            f"  active: {name} ({100.0 * fraction:.0f} % of points)" for name, fraction in self.active_bounds.items()
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the certificate as text; numbers that are not finite become strings."""
        content = asdict(self)
        for check in content["checks"]:
            for key in ("value", "limit"):
                check[key] = check[key] if isfinite(check[key]) else str(check[key])
        return json.dumps(content)

    @classmethod
    @check_arguments
    def from_json(cls, text: str) -> Certificate:
        """Return the certificate from the text of `to_json`."""
        content: dict[str, Any] = json.loads(text)
        checks = tuple(Check(c["name"], float(c["value"]), float(c["limit"]), c["where"]) for c in content["checks"])
        return cls(content["status"], checks, content["active_bounds"], tuple(content["reasons"]))

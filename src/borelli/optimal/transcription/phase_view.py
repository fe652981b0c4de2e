"""Phase as the cost and the constraints of a problem see it."""

from __future__ import annotations

from typing import Any, NamedTuple

from borelli.optimal.namespace import Namespace


class PhaseView(NamedTuple):
    """Start, end, duration [s] and integrals of a phase as expressions of the unknowns."""

    start: Namespace
    end: Namespace
    duration: Any
    integrals: Namespace

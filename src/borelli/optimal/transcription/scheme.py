"""Form that all transcriptions share: one function of one finite element, evaluated for all elements at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from borelli.optimal.casadi_import import ca
from borelli.optimal.transcription.point_functions import Point, PointFunctions


class StageRow(NamedTuple):
    """Meaning of one unknown of an element."""

    kind: str
    """"x", "xdot" or "z"."""
    number: int
    """Of the state or algebraic variable."""
    fraction: float
    """Position in the element, 0 to 1."""


class ElementSymbols(NamedTuple):
    """Arguments of every function of an element."""

    x0: Any
    """State at the start of the element."""
    s: Any
    """Unknowns of the element, as `Scheme.rows` describes them."""
    ua: Any
    """Control at the node before the element."""
    ub: Any
    """Control at the node after it; the same as `ua` for constant controls."""
    left: Any
    """Start of the element as a fraction of the interval between nodes."""
    right: Any
    """End of the element as such a fraction."""
    t0: Any
    h: Any
    """Duration of the element [s]."""
    p: Any
    g: Any
    """Signals at the points of the element at which the equations hold, one column each."""

    def control(self, fraction: float) -> tuple[Any, Any]:
        """Return the controls and their rates at a fraction of the element."""
        width = self.right - self.left
        position = self.left + fraction * width
        return self.ua + position * (self.ub - self.ua), (self.ub - self.ua) * width / self.h


@dataclass(frozen=True)
class Scheme:
    """Transcription of one phase.

    Every function has the arguments of `ElementSymbols`.
    """

    rows: tuple[StageRow, ...]
    """Unknowns of an element besides the state at its start."""
    end_rows: tuple[int, ...]
    """Rows of the state at the end of the element; empty if that state is computed (single shooting)."""
    element: Any
    """-> (state at the end, defects, path values at the points (names x points), integrals)."""
    points: Any
    """-> (state, its rate, algebraic variables, controls, control rates) at `fractions`, one column each."""
    fractions: tuple[float, ...]
    """Points of the element at which the solution is reported, the last at 1."""
    end_point: Any
    """-> (rate, algebraic variables) at the end of the element."""
    start_point: Any
    """-> the same at its start; None if the transcription does not define them there."""
    signal_fractions: tuple[float, ...]
    """Points of the element at which signals are arguments."""


def element_symbols(functions: PointFunctions, size: int, parameters: int, points: int) -> ElementSymbols:
    """Return symbols for an element with `size` unknowns and signals at `points`."""
    nx, _, nu = functions.sizes
    sizes = (nx, size, nu, nu, 1, 1, 1, 1, parameters)
    names = ElementSymbols._fields[:-1]
    symbols = [functions.symbol.sym(name, n) for name, n in zip(names, sizes, strict=True)]
    symbols.append(functions.symbol.sym("g", functions.signals.numel_out(0), points))
    return ElementSymbols(*symbols)


def build_scheme(
    functions: PointFunctions,
    e: ElementSymbols,
    rows: Sequence[StageRow],
    end_rows: Sequence[int],
    end_state: Any,
    defects: Any,
    path_points: Sequence[Point],
    integrals: Any,
    points: Sequence[Point],
    fractions: Sequence[float],
    start: Point | None,
    signal_fractions: Sequence[float],
) -> Scheme:
    """Return the scheme whose functions are the given expressions of the symbols `e`."""
    path = ca.horzcat(*(functions.path(*point) for point in path_points))
    stacked = [ca.horzcat(*parts) for parts in zip(*(q[1:6] for q in points), strict=True)]
    arguments = list(e)
    last = points[-1]
    return Scheme(
        tuple(rows),
        tuple(end_rows),
        ca.Function("element", arguments, [end_state, defects, path, integrals]),
        ca.Function("points", arguments, stacked),
        tuple(fractions),
        ca.Function("end_point", arguments, [last.xdot, last.z]),
        None if start is None else ca.Function("start_point", arguments, [start.xdot, start.z]),
        tuple(signal_fractions),
    )

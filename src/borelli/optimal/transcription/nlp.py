"""Nonlinear program of a problem: unknowns scaled by their typical size, constraints with names.

minimize f(w)  subject to  lower_w <= w <= upper_w,  lower_g <= g(w) <= upper_g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from borelli.optimal.casadi_import import ca
from borelli.optimal.problem import Problem
from borelli.optimal.transcription.assembled_derivatives import LiftedProgram, assembled_derivatives
from borelli.optimal.transcription.mesh import Mesh
from borelli.optimal.transcription.point_functions import PointFunctions
from borelli.optimal.transcription.scheme import Scheme

Array = NDArray[np.float64]


class Block(NamedTuple):
    """Contiguous part of the unknowns: a matrix, column after column."""

    offset: int
    shape: tuple[int, int]
    scale: Array
    """(rows,)"""
    names: tuple[str, ...]
    """Of the rows."""
    where: str
    unit: str
    """Meaning of a column: "element", "node"."""

    @property
    def slice(self) -> slice:
        """Position in the vector of unknowns."""
        return slice(self.offset, self.offset + self.shape[0] * self.shape[1])

    def read(self, w: Array) -> Array:
        """Return the matrix in physical units from the vector of scaled unknowns."""
        return w[self.slice].reshape(self.shape, order="F") * self.scale[:, None]


@dataclass
class Unknowns:
    """Unknowns collected block by block, with bounds and first values."""

    symbols: list[Any] = field(default_factory=list)
    lower: list[Array] = field(default_factory=list)
    upper: list[Array] = field(default_factory=list)
    first: list[Array] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    size: int = 0

    def add(
        self,
        where: str,
        names: Sequence[str],
        scale: Any,
        lower: Any,
        upper: Any,
        first: Any,
        symbol: Any = None,
        unit: str = "element",
    ) -> tuple[Any, Block]:
        """Add a matrix (names, columns) given in physical units; return its expression and block."""
        scale = np.asarray(scale, float).reshape(-1)
        columns = np.shape(first)[1] if np.ndim(first) == 2 else 1
        shape = (len(names), columns)
        tables = [np.broadcast_to(np.asarray(a, float), shape) for a in (lower, upper, first)]
        tables[2] = np.clip(tables[2], tables[0], tables[1])
        block = Block(self.size, shape, scale, tuple(names), where, unit)
        if symbol is None:
            symbol = ca.MX.sym(f"w{len(self.blocks)}", len(names) * columns)
        for target, table in zip((self.lower, self.upper, self.first), tables, strict=True):
            target.append((table / scale[:, None]).ravel(order="F"))
        self.symbols.append(symbol)
        self.blocks.append(block)
        self.size += len(names) * columns
        physical = ca.reshape(symbol, *shape) * ca.repmat(ca.DM(scale), 1, columns)
        return physical, block


class RowBlock(NamedTuple):
    """Contiguous part of the constraints."""

    offset: int
    names: tuple[str, ...]
    """Of the rows of one column; the rows of all columns follow one after another."""
    where: str
    columns: int
    unit: str
    """Meaning of a column: "element", "point"."""
    scale: Array
    """(rows of one column,) Physical unit of each row per unit of the scaled one."""


@dataclass
class Rows:
    """Constraints collected block by block."""

    expressions: list[Any] = field(default_factory=list)
    lower: list[Array] = field(default_factory=list)
    upper: list[Array] = field(default_factory=list)
    blocks: list[RowBlock] = field(default_factory=list)
    size: int = 0

    def add(
        self,
        where: str,
        names: Sequence[str],
        expression: Any,
        lower: Any,
        upper: Any,
        scale: Any = 1.0,
        unit: str = "element",
    ) -> None:
        """Add lower <= expression <= upper, a matrix (names, columns), divided by `scale` row by row."""
        count, columns = len(names), expression.numel() // max(len(names), 1)
        if not count or not columns:
            return
        scale = np.broadcast_to(np.asarray(scale, float), (count,))
        scaled = ca.reshape(expression, count, columns) / ca.repmat(ca.DM(scale), 1, columns)
        self.expressions.append(ca.vec(scaled))
        for target, bound in ((self.lower, lower), (self.upper, upper)):
            one = np.broadcast_to(np.asarray(bound, float), (count,)) / scale
            target.append(np.tile(one, columns))
        self.blocks.append(RowBlock(self.size, tuple(names), where, columns, unit, scale))
        self.size += count * columns


class Derivatives(NamedTuple):
    """Values and first derivatives of a program at one point."""

    objective: float
    gradient: Array
    constraints: Array
    jacobian: csc_matrix


class PhaseNlp(NamedTuple):
    """Parts of the program that belong to one phase."""

    functions: PointFunctions
    scheme: Scheme
    mesh: Mesh
    duration: Block
    controls: Block
    start: Block
    """State at the start."""
    stages: Block | None
    """Unknowns of the elements, one column each; None for single shooting."""


@dataclass(frozen=True)
class Nlp:
    """Nonlinear program and the meaning of its unknowns and constraints."""

    problem: Problem
    method: str
    w: Any
    objective: Any
    constraints: Any
    costs: Any
    """casadi.Function(w) -> parts of the objective, named by `cost_names`."""
    cost_names: tuple[str, ...]
    lower_w: Array
    upper_w: Array
    lower_g: Array
    upper_g: Array
    first: Array
    """First values of the unknowns."""
    blocks: tuple[Block, ...]
    row_blocks: tuple[RowBlock, ...]
    phases: tuple[PhaseNlp, ...]
    parameters: Block
    program: LiftedProgram

    def as_casadi(self) -> dict[str, Any]:
        """Return the program as `casadi.nlpsol` takes it."""
        return {"x": self.w, "f": self.objective, "g": self.constraints}

    @cached_property
    def derivative_functions(self) -> dict[str, Any]:
        """Jacobian and Hessian assembled from elements, as options of IPOPT; empty if it must differentiate itself."""
        return assembled_derivatives(self.program)

    @cached_property
    def _derivatives(self) -> Any:
        """casadi.Function(w) -> (objective, gradient, constraints, Jacobian)."""
        gradient = ca.densify(ca.gradient(self.objective, self.w))
        jacobian = (
            self.derivative_functions["jac_g"](self.w, ca.MX(0, 1))[1]
            if self.derivative_functions
            else ca.jacobian(self.constraints, self.w)
        )
        return ca.Function("derivatives", [self.w], [self.objective, gradient, self.constraints, jacobian])

    def derivatives(self, w: Array) -> Derivatives:
        """Return values and exact first derivatives at one point."""
        objective, gradient, constraints, jacobian = self._derivatives(w)
        matrix = csc_matrix(jacobian.sparse()) if jacobian.numel() else csc_matrix((constraints.numel(), len(w)))
        return Derivatives(float(objective), np.array(gradient).ravel(), np.array(constraints).ravel(), matrix)

    def describe_row(self, row: int) -> str:
        """Return where a constraint acts and its name."""
        for block in self.row_blocks:
            count = len(block.names) * block.columns
            if block.offset <= row < block.offset + count:
                column, index = divmod(row - block.offset, len(block.names))
                element = f", {block.unit} {column + 1} of {block.columns}" if block.columns > 1 else ""
                return f"{block.where}{element}: {block.names[index]}"
        raise IndexError(row)

    def row_scale(self, row: int) -> float:
        """Return the physical size of a scaled constraint."""
        for block in self.row_blocks:
            count = len(block.names) * block.columns
            if block.offset <= row < block.offset + count:
                return float(block.scale[(row - block.offset) % len(block.names)])
        raise IndexError(row)

    def describe_unknown(self, index: int) -> str:
        """Return where an unknown acts and its name."""
        for block in self.blocks:
            if block.slice.start <= index < block.slice.stop:
                column, row = divmod(index - block.offset, len(block.names))
                count = f", {block.unit} {column + 1} of {block.shape[1]}" if block.shape[1] > 1 else ""
                return f"{block.where}{count}: {block.names[row]}"
        raise IndexError(index)

    def unknown_scale(self, index: int) -> float:
        """Return the physical size of a scaled unknown."""
        for block in self.blocks:
            if block.slice.start <= index < block.slice.stop:
                return float(block.scale[(index - block.offset) % len(block.names)])
        raise IndexError(index)

    def violation(self, w: Array, g: Array) -> Array:
        """Return the scaled violation of every constraint, then of every bound."""
        return np.concatenate(
            [
                np.maximum(0.0, np.maximum(self.lower_g - g, g - self.upper_g)),
                np.maximum(0.0, np.maximum(self.lower_w - w, w - self.upper_w)),
            ]
        )

"""Derivatives of a program assembled from those of its elements.

All elements of a phase share one function y = e(a), whose arguments a = C w + c are affine in the unknowns, so

    dy/dw = e'(a) C,    d2(m . y)/dw2 = C^T (m . e'')(a) C.

e' and e'' are expressions of one element, evaluated for all; C only moves and scales their entries. That takes a tenth
of the time of automatic differentiation of the whole program, which finds the same entries by one sweep per color.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

from borelli.optimal.casadi_import import ca

VARIED = 8
"""Arguments of an element that unknowns determine: `x0` to `p`."""
CONSTANT = (4, 5)
"""Those of them, `left` and `right`, that never depend on unknowns."""


@dataclass(frozen=True)
class ElementCall:
    """Function of one element, evaluated for all elements of a phase."""

    function: Any
    """Element function of a scheme."""
    threads: int
    arguments: tuple[Any, ...]
    """Expressions of the unknowns, columns of all elements."""
    symbols: tuple[Any, ...]
    """Stand-ins for defects, path values and integrals of all elements."""

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(self.arguments[0].shape[1])

    def values(self) -> list[Any]:
        """Return defects, path values and integrals as expressions of the unknowns."""
        return list(self._map(self.function)(*self.arguments))[1:]

    def _map(self, function: Any) -> Any:
        return function.map(self.count, *(("thread", self.threads) if self.threads > 1 else ("serial",)))


@dataclass(frozen=True)
class LiftedProgram:
    """Objective and constraints as functions of the unknowns and of the values of elements."""

    w: Any
    objective: Any
    constraints: Any
    calls: tuple[ElementCall, ...]


def substitute_elements(program: LiftedProgram, terms: Any) -> tuple[Any, Any, Any]:
    """Return objective, constraints and the terms of the objective as expressions of the unknowns alone."""
    symbols = [symbol for call in program.calls for symbol in call.symbols]
    values = [value for call in program.calls for value in call.values()]
    found = [program.objective, program.constraints, terms]
    lifted = ca.Function("lifted", [program.w, *symbols], found)
    return tuple(lifted(program.w, *values))


def assembled_derivatives(program: LiftedProgram) -> dict[str, Any]:
    """Return Jacobian and Hessian as functions for IPOPT; empty where automatic differentiation must do.

    It must where an element is no scalar expression, where a free duration moves the times of signals, and where
    objective or constraints are not linear in the values of elements (with factors that may depend on the unknowns).
    """
    calls = program.calls
    if not calls or not all(call.function.is_a("SXFunction") for call in calls):
        return {}
    if any(ca.jacobian_sparsity(ca.MX(call.arguments[-1]), program.w).nnz() for call in calls):
        return {}
    y = ca.vertcat(*(ca.vec(symbol) for call in calls for symbol in call.symbols))
    sigma, multipliers = ca.MX.sym("sigma"), ca.MX.sym("multipliers", program.constraints.numel())
    lagrangian = sigma * program.objective + ca.dot(multipliers, program.constraints)
    weights = ca.gradient(lagrangian, y)
    if ca.jacobian_sparsity(weights, y).nnz():
        return {}
    parts = [_ElementDerivatives(call, program.w) for call in calls]
    w, none = program.w, ca.MX.sym("p", 0, 1)
    symbols = [symbol for call in calls for symbol in call.symbols]
    values = [value for call in calls for value in call.values()]
    slopes = ca.vertcat(*(part.jacobian(w) for part in parts))

    by_w = ca.Function("by_w", [w, *symbols], [program.constraints, ca.jacobian(program.constraints, w)])
    by_y = ca.Function("by_y", [w, *symbols], [ca.jacobian(program.constraints, y)])
    g, direct = by_w(w, *values)
    jacobian = direct + by_y(w, *values) @ slopes

    outer = ca.jacobian(ca.gradient(lagrangian, w), w)
    mixed = ca.jacobian(weights, w)
    second = ca.Function("second", [w, *symbols, sigma, multipliers], [outer, mixed, weights])
    own, crossed, factors = second(w, *values, sigma, multipliers)
    hessian = own
    if crossed.nnz():
        product = crossed.T @ slopes
        hessian = hessian + product + product.T
    offset = 0
    for part in parts:
        hessian = hessian + part.hessian(w, factors[offset : offset + part.size])
        offset += part.size
    return {
        "jac_g": ca.Function("nlp_jac_g", [w, none], [g, jacobian], ["x", "p"], ["g", "jac_g_x"]),
        "hess_lag": ca.Function(
            "nlp_hess_l", [w, none, sigma, multipliers], [ca.triu(hessian)],
            ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"],
        ),
    }  # fmt: skip


class _ElementDerivatives:
    """Jacobian and Hessian of all elements of a phase by the unknowns of the program."""

    def __init__(self, call: ElementCall, w: Any) -> None:
        function = call.function
        symbols = [ca.SX.sym(f"a{i}", *function.size_in(i)) for i in range(function.n_in())]
        varied = [i for i in range(VARIED + 1) if i not in CONSTANT]
        outputs = [ca.vec(value) for value in function(*symbols)[1:]]
        value = ca.vertcat(*outputs)
        argument = ca.vertcat(*(symbols[i] for i in varied))
        factor = ca.SX.sym("factor", value.numel())
        slope = ca.jacobian(value, argument)
        curvature = ca.triu(ca.hessian(ca.dot(factor, value), argument)[0])
        self.call, self.size = call, value.numel() * call.count
        self._sizes = [part.numel() for part in outputs]
        self._unknowns = w.numel()
        self._slope_pattern, self._curvature_pattern = slope.sparsity(), curvature.sparsity()
        self._slopes = call._map(ca.Function("slopes", symbols, [ca.vertcat(*slope.nz[:].elements())]))
        self._curvatures = call._map(
            ca.Function("curvatures", [*symbols, factor], [ca.vertcat(*curvature.nz[:].elements())])
        )
        self._moved = self._affine_map(w, varied)

    def _affine_map(self, w: Any, varied: Sequence[int]) -> csr_matrix:
        """Return C (arguments of all elements, element after element; unknowns)."""
        stacked = ca.vec(ca.vertcat(*(self.call.arguments[i] for i in varied)))
        matrix = ca.Function("affine", [w], [ca.jacobian(stacked, w)])(ca.DM.zeros(w.numel()))
        return csr_matrix(matrix.sparse())

    def jacobian(self, w: Any) -> Any:
        """Return the derivatives of defects, path values and integrals of all elements by the unknowns."""
        rows, columns = (np.array(a, dtype=np.int64) for a in self._slope_pattern.get_triplet())
        count, values = self.call.count, sum(self._sizes)
        arguments = self._moved.shape[0] // count
        target = _stacked_rows(self._sizes, count)  # (count, values) row of each value
        entries = np.arange(len(rows) * count)
        element, entry = np.divmod(entries, len(rows)) if len(rows) else (entries, entries)
        moved = self._moved[element * arguments + columns[entry]].tocoo()
        row = target[element[moved.row], rows[entry[moved.row]]]
        numbers = ca.vec(self._slopes(*self.call.arguments))
        return _scatter(row, moved.col, moved.row, moved.data, (values * count, self._unknowns), numbers)

    def hessian(self, w: Any, factors: Any) -> Any:
        """Return the second derivatives by the unknowns of the sum of all values times factors, in full."""
        count, order = self.call.count, _stacked_rows(self._sizes, self.call.count)
        shaped = ca.reshape(factors[order.ravel().tolist()], order.shape[1], count)
        numbers = ca.vec(self._curvatures(*self.call.arguments, shaped))
        rows, columns = (np.array(a, dtype=np.int64) for a in self._curvature_pattern.get_triplet())
        arguments = self._moved.shape[0] // count
        entries = np.arange(len(rows) * count)
        element, entry = np.divmod(entries, len(rows)) if len(rows) else (entries, entries)
        left = self._moved[element * arguments + rows[entry]].tocoo()
        right = self._moved[element * arguments + columns[entry]]
        starts, ends = right.indptr[left.row], right.indptr[left.row + 1]
        repeats = ends - starts
        source = np.repeat(left.row, repeats)
        first, scale = np.repeat(left.col, repeats), np.repeat(left.data, repeats)
        position = np.repeat(starts - np.concatenate([[0], np.cumsum(repeats)[:-1]]), repeats)
        position = position + np.arange(len(source))
        second, scale = right.indices[position], scale * right.data[position]
        mirrored = rows[entry[source]] != columns[entry[source]]
        shape = (self._unknowns, self._unknowns)
        row = np.concatenate([first, second[mirrored]])
        column = np.concatenate([second, first[mirrored]])
        source = np.concatenate([source, source[mirrored]])
        scale = np.concatenate([scale, scale[mirrored]])
        return _scatter(row, column, source, scale, shape, numbers)


def _stacked_rows(sizes: Sequence[int], count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return for each element and value its position in the stack of symbols: one kind after another."""
    parts, offset = [], 0
    for size in sizes:
        parts.append(offset + np.arange(count * size).reshape(count, size))
        offset += count * size
    return np.hstack(parts).astype(np.int64)


def _scatter(row: Any, column: Any, source: Any, scale: Any, shape: tuple[int, int], numbers: Any) -> Any:
    """Return the sparse matrix with sums of scale times numbers[source] at (row, column)."""
    where = np.asarray(column, np.int64) * shape[0] + np.asarray(row, np.int64)
    places, index = np.unique(where, return_inverse=True)
    weights = coo_matrix((scale, (index, source)), shape=(len(places), numbers.numel())).tocsc()
    pattern = csc_matrix((np.ones(len(places)), (places % shape[0], places // shape[0])), shape=shape)
    sparsity = ca.Sparsity(shape[0], shape[1], pattern.indptr.tolist(), pattern.indices.tolist())
    return ca.MX(sparsity, _sparse(weights) @ numbers)


def _sparse(matrix: csc_matrix) -> Any:
    """Return a constant sparse matrix."""
    matrix.sort_indices()
    pattern = ca.Sparsity(*matrix.shape, matrix.indptr.tolist(), matrix.indices.tolist())
    return ca.DM(pattern, matrix.data)

"""Slow, obvious, dense reference solvers for small systems.

`solve_dantzig` pivots on impulses (the dual problem in boxed form); `solve_dense_newton` works on velocities and on the
polylines themselves. They share no algebra. Both lose digits when tiny betas meet conflicting targets, and Newton may
not end at betas below 1e-6 or so (beta = 0 of independent unbounded rows is exact in both).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.physics.rows.rows import FLAT, Rows

from .proof import law_defect, momentum_defect, row_velocities
from .systems import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def solve_dantzig(A: Floats, b: Floats, lo: Floats, hi: Floats) -> Floats:
    """Return x of the boxed linear complementarity problem w = A x + b, by Dantzig's pivoting after Baraff (1994).

        x = lo and w >= 0,   or   x = hi and w <= 0,   or   lo <= x <= hi and w = 0

    A is symmetric, positive definite except that unbounded rows need only be independent; lo <= 0 <= hi. Unbounded rows
    are solved for at once. Each further row is brought in by moving its x away from 0 until its own w is 0 or its x is
    at a bound; meanwhile w stays 0 on the held rows; a row that reaches a bound, or whose w reaches 0, changes sides.
    """
    x, w, count = np.zeros(len(b)), b.astype(float).copy(), len(b)
    held = [int(i) for i in np.flatnonzero(np.isinf(lo) & np.isinf(hi))]
    at_bound: list[int] = []
    if held:
        x[held] = np.linalg.solve(A[np.ix_(held, held)], -b[held])
        w = A @ x + b
    for i in (i for i in range(count) if i not in set(held)):
        for _ in range(100 * count):
            if w[i] == 0.0 or (w[i] > 0 and x[i] == lo[i]) or (w[i] < 0 and x[i] == hi[i]):
                break
            dx = np.zeros(count)
            dx[i] = -np.sign(w[i])
            if held:
                dx[held] = np.linalg.solve(A[np.ix_(held, held)], -A[np.ix_(held, [i])][:, 0] * dx[i])
            dw = A @ dx
            dw[held] = 0.0
            step, mover, end = nearest_event(i, held, at_bound, x, w, dx, dw, lo, hi)
            x, w = x + step * dx, w + step * dw
            w[held] = 0.0
            if end is None:
                w[mover] = 0.0
            else:
                x[mover] = end
            if mover == i:
                break
            old, new = (held, at_bound) if mover in held else (at_bound, held)
            old.remove(mover)
            new.append(mover)
        else:
            raise RuntimeError(f"Dantzig's method did not bring in row {i} within {100 * count} pivots.")
        (held if w[i] == 0.0 else at_bound).append(i)
    return x


def nearest_event(
    i: int, held: list[int], at_bound: list[int], x: Floats, w: Floats, dx: Floats, dw: Floats, lo: Floats, hi: Floats
) -> tuple[float, int, float | None]:
    """Return the step of x along dx, the row that ends it, and the bound it meets (None: its w becomes 0)."""
    events: list[tuple[float, int, float | None]] = [(-w[i] / dw[i], i, None)]
    for j in (i, *held):
        end = hi[j] if dx[j] > 0 else lo[j]
        if dx[j] != 0.0 and np.isfinite(end):
            events.append((max(0.0, (end - x[j]) / dx[j]), j, float(end)))
    for j in at_bound:
        leaves = dw[j] < 0 if x[j] == lo[j] else dw[j] > 0
        if leaves:
            events.append((max(0.0, -w[j] / dw[j]), j, None))
    return min(events, key=lambda event: event[0])


class Boxed(NamedTuple):
    """System as a boxed problem; row k's impulse is base[k] plus the x of its pieces."""

    row: Ints
    A: Floats
    b: Floats
    lo: Floats
    hi: Floats
    base: Floats


def split_law(rows: Rows, k: int) -> tuple[float, list[tuple[float, float, float, float]]]:
    """Return row k's law as parallel pieces: a base impulse and, for each sloped piece, (target, beta, lo, hi).

    Along the polyline p falls from P_0 to P_1 on the first sloped piece, from P_1 to P_2 on the second, and so on;
    flat pieces between them do not change it. Let the pieces have the velocity u in common and add their impulses,
    p = q + sum x_j, with q the value of [P_m, P_0] nearest 0. Piece j moves only while p is between P_j and P_(j-1),
    where p = x_j + a_j for a constant a_j that depends on the position of q:

        P_j >= q:        the piece adds above q,    0 <= x_j <= P_(j-1) - P_j,       a_j = P_j
        P_(j-1) <= q:    it subtracts below q,      P_j - P_(j-1) <= x_j <= 0,       a_j = P_(j-1)
        otherwise:       it crosses q,              P_j - q <= x_j <= P_(j-1) - q,   a_j = q

    Its law u = c_j - beta_j p becomes u = (c_j - beta_j a_j) - beta_j x_j between bounds: one bounded variable. When u
    is beyond the piece its x is at the bound that the neighbor's a_j assumes, so the sum follows the polyline.
    A bounded row stays one variable, a dead zone becomes two, a two-rate law three.
    """
    last = int(rows.pieces[k]) - 1
    if last < 0:
        return 0.0, []
    sloped = [s for s in range(last + 1) if rows.beta[k, s] != FLAT]
    if not sloped:
        return float(rows.c[k, 0]), []
    top = [np.inf if s == 0 else rows.break_p[k, s - 1] for s in sloped]
    bottom = [-np.inf if s == last else rows.break_p[k, s] for s in sloped]
    base = float(np.clip(0.0, bottom[-1], top[0]))
    pieces = []
    for s, high, low in zip(sloped, top, bottom, strict=True):
        offset = low if low >= base else high if high <= base else base
        beta = rows.beta[k, s]
        pieces.append((rows.c[k, s] - beta * offset, beta, low - offset, high - offset))
    return base, pieces


def to_boxed(system: System) -> Boxed:
    """Return the system without velocities: v = M^-1 (r + J^T p), hence u = J M^-1 J^T p + J M^-1 r + offset."""
    J = system.jacobian()
    split = [split_law(system.rows, k) for k in range(system.row_count)]
    row = np.array([k for k, (_, pieces) in enumerate(split) for _ in pieces], np.int64)
    pieces = np.array([piece for _, some in split for piece in some]).reshape(-1, 4)
    base = np.array([q for q, _ in split])
    weight = np.linalg.solve(system.dense_mass(), np.column_stack([J.T, system.momentum.ravel()]))
    B, free = J @ weight[:, :-1], J @ weight[:, -1] + system.rows.offset
    A = B[np.ix_(row, row)] + np.diag(pieces[:, 1])
    b = (free + B @ base)[row] - pieces[:, 0]
    return Boxed(row, 0.5 * (A + A.T), b, pieces[:, 2], pieces[:, 3], base)


def solve_boxed(system: System) -> tuple[Floats, Floats]:
    """Return velocities (n, 6) and impulses (rows,) by Dantzig's method."""
    boxed = to_boxed(system)
    p = boxed.base + np.bincount(boxed.row, solve_dantzig(*boxed[1:5]), system.row_count)
    v = np.linalg.solve(system.dense_mass(), system.momentum.ravel() + system.jacobian().T @ p)
    return v.reshape(-1, 6), p


def impulse_at(rows: Rows, u: Floats) -> tuple[Floats, Ints]:
    """Return the impulse (rows,) of each law at velocity u, and the piece of u; undefined where beta = 0."""
    index, breaks = np.arange(len(u)), np.arange(rows.break_u.shape[1])
    piece = ((u[:, None] > rows.break_u) & (breaks < rows.pieces[:, None] - 1)).sum(1)
    beta, c = rows.beta[index, piece], rows.c[index, piece]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(beta == FLAT, c, (c - u) / beta)
    return np.where(rows.pieces == 0, 0.0, p), piece


def solve_dense_newton(system: System, tolerance: float = 1e-11, limit: int = 1000) -> tuple[Floats, Floats, int]:
    """Return velocities, impulses and iterations by Newton on the polylines, one dense linear system per iteration.

    Each iteration solves M v - J^T p = r with the sloped pieces' u + beta p = c and the flat ones' p = q, then moves
    along the line to that v as far as the convex function falls; its derivative there only rises, so bisection
    finds its zero. The iteration ends when the proof is within the tolerance.
    """
    rows, M, J = system.rows, system.dense_mass(), system.jacobian()
    r, size, index = system.momentum.ravel(), 6 * system.bodies, np.arange(system.row_count)
    soft = np.setdiff1d(index, system.hard)
    piece = np.array([initial_piece(rows, k) for k in index], np.int64)
    v = None
    for iteration in range(1, limit + 1):
        beta, c = rows.beta[index, piece], rows.c[index, piece]
        off = rows.pieces == 0
        flat = (beta == FLAT) | off
        K = np.block([[M, -J.T], [np.where(flat[:, None], 0.0, J), np.diag(np.where(flat, 1.0, beta))]])
        known = np.where(off, 0.0, np.where(flat, c, c - rows.offset))
        solution = np.linalg.solve(K, np.concatenate([r, known]))
        candidate, p = solution[:size].reshape(-1, 6), solution[size:]
        if max(law_defect(system, candidate, p), momentum_defect(system, candidate, p)) <= tolerance:
            return candidate, p, iteration
        if v is None:
            v = candidate
        else:
            d = candidate - v
            u, du = row_velocities(system, v)[soft], (J @ d.ravel())[soft]
            law = Rows(rows.first, rows.body, rows.jacobian, *(column[soft] for column in rows[3:]))

            def slope(
                alpha: float, v: Floats = v, d: Floats = d, u: Floats = u, du: Floats = du, law: Rows = law
            ) -> float:
                inertial = d.ravel() @ (M @ (v + alpha * d).ravel() - r)
                return float(inertial - impulse_at(law, u + alpha * du)[0] @ du)

            v = v + bisect(slope) * d
        piece = np.where(np.isin(index, soft), impulse_at(rows, row_velocities(system, v))[1], piece)
    raise RuntimeError(f"The dense Newton twin has not ended after {limit} iterations.")


def initial_piece(rows: Rows, k: int) -> int:
    """Return the sloped piece nearest the middle of row k's law: a cold start."""
    sloped = [s for s in range(int(rows.pieces[k])) if rows.beta[k, s] != FLAT]
    return sloped[len(sloped) // 2] if sloped else 0


def bisect(slope: Callable[[float], float]) -> float:
    """Return the zero in [0, 1] of a rising function that is negative at 0; 1 if there is none."""
    if slope(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(100):
        midpoint = 0.5 * (low + high)
        low, high = (midpoint, high) if slope(midpoint) < 0.0 else (low, midpoint)
    return high

"""Proof of a solution: momentum balance and laws, checked without any solver.

The step is convex, so velocities and impulses that balance the momentum and lie on the laws are the solution.

Scales, one set per system, with a meter as the unit of length where linear and angular numbers meet:

- momentum: the largest single number that enters the balance, in M v, in r or in one row's J^T p;
- velocity: the largest component of v or u;
- impulse: the largest |p| or component of r.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.physics.rows.rows import MAX_PIECES

from .systems import System, entry_rows

Floats = NDArray[np.float64]


def row_velocities(system: System, v: Floats) -> Floats:
    """Return (rows,) u = J v + offset."""
    rows = system.rows
    used = rows.body >= 0
    terms = np.einsum("ej,ej->e", rows.jacobian[used], v[rows.body[used]])
    return rows.offset + np.bincount(entry_rows(rows)[used], terms, len(rows.offset))


def row_momentum(system: System, p: Floats) -> tuple[Floats, float]:
    """Return (n, 6) J^T p, and its largest summand."""
    rows = system.rows
    used = rows.body >= 0
    terms = rows.jacobian[used] * p[entry_rows(rows)[used], None]
    total = np.zeros((system.bodies, 6))
    np.add.at(total, rows.body[used], terms)
    return total, float(np.abs(terms).max(initial=0.0))


def momentum_defect(system: System, v: Floats, p: Floats) -> float:
    """Return the largest |M v - r - J^T p| relative to the momentum scale."""
    momentum = np.einsum("nij,nj->ni", system.mass, v)
    applied, largest = row_momentum(system, p)
    scale = max(largest, np.abs(momentum).max(), np.abs(system.momentum).max(), np.finfo(float).tiny)
    return not_nan(np.abs(momentum - system.momentum - applied).max() / scale)


def law_distances(system: System, v: Floats, p: Floats) -> Floats:
    """Return (rows,) the scaled distance of (u, p) to the nearest piece of each row's polyline.

    A point is first clipped to the piece's extent (a sloped one's in p, a flat one's in u), then projected on it (a
    sloped one along u, a flat one along p). The distance is the larger of the two moves, each in its own scale:
    |u - c + beta p| over the velocity scale, |p - q| and impulses outside the extent (wrong side of a one-sided row)
    over the impulse scale. An absent row must have p = 0.
    """
    rows, u = system.rows, row_velocities(system, v)
    speed = max(np.abs(v).max(), np.abs(u).max(initial=0.0), np.finfo(float).tiny)
    impulse = max(np.abs(p).max(initial=0.0), np.abs(system.momentum).max(), np.finfo(float).tiny)
    inf = np.full((len(u), 1), np.inf)
    piece = np.arange(MAX_PIECES)
    last = piece == rows.pieces[:, None] - 1
    u_low, u_high = np.hstack([-inf, rows.break_u]), np.where(last, np.inf, np.hstack([rows.break_u, inf]))
    p_high, p_low = np.hstack([inf, rows.break_p]), np.where(last, -np.inf, np.hstack([rows.break_p, -inf]))
    clipped_u, clipped_p = np.clip(u[:, None], u_low, u_high), np.clip(p[:, None], p_low, p_high)
    with np.errstate(invalid="ignore"):
        flat = np.maximum(np.abs(u[:, None] - clipped_u) / speed, np.abs(p[:, None] - rows.c) / impulse)
        along_u = np.abs(u[:, None] - (rows.c - rows.beta * clipped_p))
        sloped = np.maximum(along_u / speed, np.abs(p[:, None] - clipped_p) / impulse)
    distance = np.where(rows.beta < 0, flat, sloped)
    distance[piece >= rows.pieces[:, None]] = np.inf
    nearest = distance.min(1, initial=np.inf)
    return np.where(rows.pieces == 0, np.abs(p) / impulse, nearest)


def law_defect(system: System, v: Floats, p: Floats) -> float:
    """Return the largest of the law distances."""
    return not_nan(law_distances(system, v, p).max(initial=0.0))


def velocity_error(system: System, v: Floats, reference: Floats) -> float:
    """Return the distance of two velocities in the norm of kinetic energy, relative to the reference."""

    def energy(x: Floats) -> float:
        return float(np.einsum("ni,nij,nj->", x, system.mass, x))

    return not_nan(np.sqrt(energy(v - reference) / energy(reference)))


def not_nan(value: float) -> float:
    """Return the value, infinity instead of NaN: comparisons with NaN would pass wrongly."""
    return np.inf if np.isnan(value) else float(value)

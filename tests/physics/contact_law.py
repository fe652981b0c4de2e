"""Defects of Signorini's and Coulomb's laws and of the momentum balance after a step.

Computed from the step's rows, impulses and new velocities alone, independently of the solver's own report.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.physics.rows.contact_rows import FRICTION, TANGENT_BETA
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.solver.elimination_order import POSITION
from borelli.physics.solver.factor_arrays import ABSENT, IMPULSE, KIND, MASS, MOMENTUM, SOLUTION

LOWER = np.tril_indices(6)


class ContactDefects(NamedTuple):
    tangent: float
    """Largest distance of a friction impulse from the disc's law, relative to the largest bound mu N."""
    normal: float
    """Largest distance of a normal impulse from 0 <= p, u >= c - beta p, not both slack; relative to the largest."""
    momentum: float
    """Largest |M v - r - J^T p| relative to the largest term."""


def mass_matrices(simulation: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Return (bodies, 6, 6) mass matrices and (bodies, 6) free momenta of the last step, by body."""
    work = simulation.work
    position = work.graph.node[: len(simulation.state.position), POSITION]
    packed = work.factor.block[position, MASS : MASS + 21]
    mass = np.zeros((len(position), 6, 6))
    mass[:, LOWER[0], LOWER[1]] = packed
    mass = mass + np.tril(mass, -1).transpose(0, 2, 1)
    return mass, work.factor.block[position, MOMENTUM : MOMENTUM + 6]


def contact_defects(simulation: Simulation) -> ContactDefects:
    """Return the defects of a simulation without kinematic bodies, after `advance`."""
    work, tables = simulation.work, simulation.compiled.tables
    position = work.graph.node[: len(simulation.state.position), POSITION]
    twist = work.factor.block[position, SOLUTION : SOLUTION + 6]  # closing joints may change that of the state
    rows, touch = work.rows, work.contact_arrays
    mass, free = mass_matrices(simulation)
    used, entries = int(rows.used[0]), int(rows.first[rows.used[0]])
    row = np.repeat(np.arange(used), np.diff(rows.first[: used + 1]))
    body, jacobian = rows.body[:entries], rows.jacobian[:entries]
    solved = (body >= 0) & (work.factor.mark[row, KIND] != ABSENT)
    impulse = work.factor.value[:used, IMPULSE]
    applied = np.zeros_like(free)
    np.add.at(applied, body[solved], jacobian[solved] * impulse[row[solved], None])
    momentum_now = np.einsum("bij,bj->bi", mass, twist)
    momentum = np.abs(momentum_now - free - applied).max() / max(np.abs(applied).max(), np.abs(momentum_now).max())
    count = int(touch.count[0])
    if count == 0:
        return ContactDefects(0.0, 0.0, float(momentum))
    velocity, response = rows.offset[:used].copy(), np.zeros(used)
    np.add.at(velocity, row[solved], np.einsum("ei,ei->e", jacobian[solved], twist[body[solved]]))
    diagonal = np.einsum("bii->bi", mass)
    np.add.at(response, row[solved], (jacobian[solved] ** 2 / diagonal[body[solved]]).sum(axis=1))
    stride, first = int(tables.contacts.rows_each[0]), int(tables.contacts.first_row[0])
    k = first + stride * np.arange(count)
    p, mu, beta = impulse[k], touch.contact[:count, FRICTION], touch.contact[:count, TANGENT_BETA]
    normal = p - np.maximum(p - (velocity[k] - rows.c[k, 0] + rows.beta[k, 0] * p) / response[k], 0.0)
    force = np.stack([impulse[k + 1], impulse[k + 2]], axis=1)
    slip = np.stack([velocity[k + 1], velocity[k + 2]], axis=1) + beta[:, None] * force
    s = force - slip / response[k + 1][:, None]
    bound, length = mu * np.maximum(p, 0.0), np.linalg.norm(s, axis=1)
    on_disc = s * np.minimum(1.0, bound / np.maximum(length, 1e-300))[:, None]
    tangent = np.linalg.norm(force - on_disc, axis=1)[mu > 0.0]
    return ContactDefects(
        float(tangent.max(initial=0.0) / max(bound.max(), 1e-300)),
        float(np.abs(normal).max() / max(p.max(), 1e-300)),
        float(momentum),
    )

"""Work and energy of steps: where the energy of a motion came from, row by row.

With M (v+ - v) = h f + J^T p, the kinetic energy grows by exactly p J (v + v+)/2 of every row, and by the like of
forces from outside. A velocity belongs to the middle of the way it led; counted there, gravity's work is the loss of
potential energy exactly as well. What drives, ground, residuals and gravity leave is numerical: the joints' own rows,
which hold at the end of a step and not midway, and gyroscopic terms where the body did not go as it aimed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.marching import Trace
from borelli.analysis.stepped import Stepper
from borelli.physics.measure import kinetic_energy, potential_energy

Array = NDArray[np.float64]


class Work(NamedTuple):
    """Mean power of each step [W], and energy."""

    drive: Array
    """(steps, coordinates)"""
    ground: Array
    """(steps,) of contacts and pushes."""
    residual: Array
    numerical: Array
    energy: Array
    """(steps,) kinetic and potential, half a step before each frame [J]."""
    numerical_percent: float
    """Numerical work, summed without its sign, in percent of the drives' positive work."""


def row_work(stepper: Stepper, trace: Trace, outside: Array) -> Work:
    """The work of all rows; `outside` (steps, bodies, 6): forces and moments of contacts and pushes."""
    compiled = stepper.compiled
    h = compiled.step
    row = compiled.tables.joints.drive_row
    drive = np.where(row >= 0, trace.work[:, row], 0.0) / h
    residual = trace.work[:, compiled.tables.residuals.row].sum(axis=1) / h
    ground = (0.5 * (trace.twist[1:] + trace.twist[:-1]) * outside).sum(axis=(1, 2))
    midway = trace.pose.copy()
    midway[..., :3] -= 0.5 * h * trace.twist[..., :3]
    energy = kinetic_energy(compiled, trace.pose, trace.twist) + potential_energy(compiled, midway)
    numerical = np.diff(energy) / h - drive.sum(axis=1) - residual - ground
    positive = float(np.clip(drive, 0.0, None).sum())
    percent = 100.0 * float(np.abs(numerical.sum())) / positive if positive > 0.0 else 0.0
    return Work(drive, ground, residual, numerical, energy[:-1], percent)

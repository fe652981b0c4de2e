"""Work and energy of steps: where the energy of a motion came from, term by term.

With M (v+ - v) = h f + J^T p, the kinetic energy grows by exactly p J (v + v+)/2 of every row, and by the like of
forces from outside; turning a body by its own spin does not change it. A velocity belongs to the middle of the way it
led; counted there, gravity's work is the loss of potential energy exactly as well. So

    drives + ground + residuals + constraints + gyroscopic = change of energy

to rounding. The last two are the scheme's own, none of nature's, and vanish with the step:

- constraints: rows of joints and couplings hold at the end of a step and not midway, where work is counted;
- gyroscopic: -h w x I w does no work at the mean w of the spins before and after. It is taken at the mean of the spin
  before and the one *aimed* at; where the body does not turn as it aimed, it works.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.stepped.rollout import Trace
from borelli.analysis.stepped.stepper import Stepper
from borelli.numerics.quaternions import conjugate, quaternion_product, rotation_logarithm
from borelli.physics.diagnostics import kinetic_energy, potential_energy, rotation_matrices

Array = NDArray[np.float64]


class Work(NamedTuple):
    """Mean power of each step [W], and energy."""

    drive: Array
    """(steps, coordinates)"""
    ground: Array
    """(steps,) of contacts and pushes."""
    residual: Array
    constraint: Array
    gyroscopic: Array
    energy: Array
    """(steps,) kinetic and potential, half a step before each frame [J]."""
    numerical_percent: float
    """Net work of the scheme, constraints and gyroscopic, in percent of the drives' positive work."""


def row_work(stepper: Stepper, trace: Trace, outside: Array) -> Work:
    """The work of all rows; `outside` (steps, bodies, 6): forces and moments of contacts and pushes."""
    compiled = stepper.compiled
    h, joints = compiled.step, compiled.tables.joints
    drive = np.where(joints.drive_row >= 0, trace.work[:, joints.drive_row], 0.0) / h
    residual = trace.work[:, compiled.tables.residuals.row].sum(axis=1) / h
    # drives of the root's coordinates hold it in place of residual rows
    root = np.isin([c.name for c in compiled.model.coordinates], root_coordinates(compiled.model))
    residual += drive[:, root].sum(axis=1)
    drive[:, root] = 0.0
    ground = (0.5 * (trace.twist[1:] + trace.twist[:-1]) * outside).sum(axis=(1, 2))
    # joints' rows, then couplings': see row_ranges
    constraint = trace.work[:, : joints.row_ranges[2]].sum(axis=1) / h
    gyroscopic = gyroscopic_power(stepper, trace)
    midway = trace.pose.copy()
    midway[..., :3] -= 0.5 * h * trace.twist[..., :3]
    energy = kinetic_energy(compiled, trace.pose, trace.twist) + potential_energy(compiled, midway)
    positive = float(np.clip(drive, 0.0, None).sum())
    percent = 100.0 * abs(float((constraint + gyroscopic).sum())) / positive if positive > 0.0 else 0.0
    return Work(drive, ground, residual, constraint, gyroscopic, energy[:-1], percent)


def gyroscopic_power(stepper: Stepper, trace: Trace) -> Array:
    """(steps,) power [W] of -w x I w, w the mean of the spins before and aimed at."""
    bodies, h = stepper.compiled.tables.bodies, stepper.compiled.step
    before, after = trace.twist[:-1, :, 3:], trace.twist[1:, :, 3:]
    now, aim = trace.pose[:-1, :, 3:], stepper.poses[2:, :, 3:]
    spin = 0.5 * (before + rotation_logarithm(quaternion_product(aim, conjugate(now))) / h)
    rotation = rotation_matrices(now)
    local = np.einsum("bij,fbj->fbi", bodies.inertia, np.einsum("fbji,fbj->fbi", rotation, spin))
    moment = -np.cross(spin, np.einsum("fbij,fbj->fbi", rotation, local))
    power = (0.5 * (before + after) * moment).sum(axis=2)
    return np.asarray(power[:, bodies.kinematic == 0].sum(axis=1))

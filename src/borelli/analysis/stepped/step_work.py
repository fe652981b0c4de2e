"""Work and energy of steps: the sources of a motion's energy, term by term.

With M (v+ - v) = h f + J^T p, the kinetic energy grows by exactly p J (v + v+)/2 of every row, and likewise by external
forces; rotating a body by its own angular velocity does not change it. A velocity belongs to the midpoint of its step;
counted there, gravity's work is exactly the loss of potential energy as well. So

    drives + ground + residuals + constraints + gyroscopic = change of energy

to rounding. The last two are artifacts of the scheme and vanish with the step:

- constraints: rows of joints and couplings are satisfied at the end of a step and not midway, where work is counted;
- gyroscopic: -h w x I w does no work at the mean w of the angular velocities before and after. It is evaluated at the
  mean of the present and the *target* angular velocity; where the body rotates otherwise, it does work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.analysis.stepped.rollout import StepRecord
from borelli.analysis.stepped.stepper import Stepper
from borelli.model.kinematics import root_coordinates
from borelli.numerics.quaternions import conjugate, quaternion_product, rotation_logarithm, rotation_matrix
from borelli.numerics.vectors import Array
from borelli.physics.diagnostics import kinetic_energy, potential_energy


class StepPower(NamedTuple):
    """Mean power of each step [W], and energy."""

    drive: Array
    """(steps, coordinates)"""
    ground: Array
    """(steps,) of contacts and applied loads."""
    residual: Array
    constraint: Array
    gyroscopic: Array
    energy: Array
    """(steps,) kinetic and potential, half a step before each frame [J]."""
    numerical_percent: float
    """Net work of the scheme, constraints and gyroscopic, in percent of the drives' positive work."""


def step_power(stepper: Stepper, record: StepRecord, external: Array) -> StepPower:
    """Return the power of all rows; `external` (steps, bodies, 6): forces and moments of contacts and loads."""
    compiled = stepper.compiled
    h, joints = compiled.step, compiled.tables.joints
    drive = np.where(joints.drive_row >= 0, record.work[:, joints.drive_row], 0.0) / h
    residual = record.work[:, compiled.tables.residuals.row].sum(axis=1) / h
    # drives of the root's coordinates replace residual rows
    root = np.isin([c.name for c in compiled.model.coordinates], root_coordinates(compiled.model))
    residual += drive[:, root].sum(axis=1)
    drive[:, root] = 0.0
    ground = (0.5 * (record.twist[1:] + record.twist[:-1]) * external).sum(axis=(1, 2))
    # joints' rows, then couplings': see row_ranges
    constraint = record.work[:, : joints.row_ranges[2]].sum(axis=1) / h
    gyroscopic = gyroscopic_power(stepper, record)
    midway = record.pose.copy()
    midway[..., :3] -= 0.5 * h * record.twist[..., :3]
    energy = kinetic_energy(compiled, record.pose, record.twist) + potential_energy(compiled, midway)
    positive = float(np.clip(drive, 0.0, None).sum())
    percent = 100.0 * abs(float((constraint + gyroscopic).sum())) / positive if positive > 0.0 else 0.0
    return StepPower(drive, ground, residual, constraint, gyroscopic, energy[:-1], percent)


def gyroscopic_power(stepper: Stepper, record: StepRecord) -> Array:
    """Return (steps,) power [W] of -w x I w, w the mean of the present and the target angular velocity."""
    bodies, h = stepper.compiled.tables.bodies, stepper.compiled.step
    before, after = record.twist[:-1, :, 3:], record.twist[1:, :, 3:]
    now, target = record.pose[:-1, :, 3:], stepper.poses[2:, :, 3:]
    angular_velocity = 0.5 * (before + rotation_logarithm(quaternion_product(target, conjugate(now))) / h)
    moment = -np.cross(angular_velocity, angular_momentum(bodies.inertia, rotation_matrix(now), angular_velocity))
    power = (0.5 * (before + after) * moment).sum(axis=2)
    return np.asarray(power[:, bodies.kinematic == 0].sum(axis=1))


def angular_momentum(inertia: Array, rotation: Array, vectors: Array) -> Array:
    """Return inertias (bodies, 3, 3) in body axes times world vectors (steps, bodies, 3), world axes."""
    local = np.einsum("fbji,fbj->fbi", rotation, vectors)
    return np.asarray(np.einsum("fbij,fbj->fbi", rotation, np.einsum("bij,fbj->fbi", inertia, local)))

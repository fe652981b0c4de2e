"""Prediction of the velocities that position correction adds at contacts which close loops.

Contacts that are solved with the controls prescribe velocities at the start of a step; its end is reached on curved
paths, so that a hand at rest on the ground would creep by

    h^2 / 2 (acceleration of its point at constant joint velocities)

in every step, toward the body. Body by body, the velocity c that the last step's correction added is added again, and
contacts are solved for J (v + c) = 0 in place of J v = 0. What is left is of third order in the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.quaternions import conjugate, quaternion_product
from borelli.physics.rows.contact_rows import (
    ARM_A,
    ARM_B,
    BODY_A,
    BODY_B,
    BOUND,
    CONTACTS_NOW,
    DRIFT,
    FRICTION,
    NORMAL,
    NORMAL_OF_BOUND,
)

if TYPE_CHECKING:
    from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation

Floats = NDArray[np.float64]


class ContactCurvature:
    """Velocities that corrections added to the bodies in the last step, besides those predicted along rows."""

    def __init__(self, bodies: int) -> None:
        self.last = np.zeros((bodies, 6))
        self.known = 0

    def predict(self, simulation: ImpulseSimulation) -> None:
        """Add the predicted velocities to the contacts of the present step, if the controller knows them."""
        count = simulation.work.contact_arrays.count[CONTACTS_NOW]
        if not (count and simulation.controls.knows_contacts[0]):
            return
        _seed_friction(simulation, count)
        if not self.known:
            return
        change = self.last
        arrays, laws, h = simulation.work.contact_arrays, simulation.tables.contacts, simulation.compiled.step
        contact, spin = arrays.contact[:count], simulation.state.twist[:, 3:]
        drift = np.zeros((count, 3))
        for column, arm, sign in ((BODY_A, ARM_A, 1.0), (BODY_B, ARM_B, -1.0)):
            body, r = arrays.contact_body[:count, column], contact[:, arm : arm + 3]
            moving = body >= 0
            w, c = spin[body], change[body]
            own = c[:, :3] + np.cross(c[:, 3:], r) + 0.5 * h * np.cross(w, np.cross(w, r))
            drift += sign * np.where(moving[:, None], own, 0.0)
        contact[:, DRIFT : DRIFT + 3] += drift
        first, each = laws.first_row[0], laws.rows_each[0]
        normal = (drift * contact[:, NORMAL : NORMAL + 3]).sum(axis=1)
        simulation.work.rows.offset[first : first + each * count : each] += normal

    def store(self, simulation: ImpulseSimulation, solved: Floats) -> None:
        """Store what the correction of a step added to the velocities that it was solved for."""
        state, stages, h = simulation.state, simulation.stages, simulation.compiled.step
        turned = quaternion_product(state.quaternion, conjugate(stages.quaternion))
        vector = turned[:, 1:] * np.where(turned[:, :1] < 0.0, -1.0, 1.0)
        sine = np.linalg.norm(vector, axis=1, keepdims=True)
        angle = 2.0 * np.arctan2(sine, np.abs(turned[:, :1]))
        rotation = np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 2.0) * vector
        moved = np.hstack([state.position - stages.position, rotation]) / h
        self.last[:] = moved - solved
        self.known += 1


def _seed_friction(simulation: ImpulseSimulation, count: int) -> None:
    """Give new contacts the friction bound of an equal part of the weight.

    Sticking contacts of a controlled body are consistent with any bound: from zero, friction would remain zero.
    """
    contact, tables = simulation.work.contact_arrays.contact[:count], simulation.tables
    weight = tables.bodies.mass.sum() * np.linalg.norm(tables.gravity) * simulation.compiled.step
    new = contact[:, NORMAL_OF_BOUND] == 0.0
    contact[new, NORMAL_OF_BOUND] = weight / count
    contact[new, BOUND] = contact[new, FRICTION] * weight / count

"""Muscles in an impulse step (Weinstein, Guendelman and Fedkiw 2008, section 6).

The impulses of controls that meet the targets of a step, with joints and contacts in the same solve, are torques tau of
coordinates times the step. On a tree the paper's equation for muscle impulses, with constraint impulses eliminated, is

    R^T f + reserves = tau,    f = passive force + activation x active force at this length and speed (Hill)

with R the moment arms: no other force enters, since joints and contacts answer equal torques with equal impulses. The
forces f then act on the bodies along their lines of action, reserves about the axes of joints, and the step is solved
again without controls. If tau is attained its motion is that of the torques; if not, bodies go where muscles take them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.load_sharing.dual_newton import ATTAINED
from borelli.control.muscle_actuation.body_forces import BodyForces
from borelli.control.muscle_actuation.settings import MuscleActuation
from borelli.control.muscle_actuation.sharing import StepSharing
from borelli.errors import SettingsError
from borelli.muscles.hill import make_muscle_arrays, rigid_tendon_force
from borelli.muscles.paths import PathFrames
from borelli.physics.impulse_step.run_impulse_steps import MAX_CONTROL_SOLVES, ImpulseSimulation

Array = NDArray[np.float64]

LIMIT_TOLERANCE = 1e-3
"""Unattained torque, relative to the required one or to 1 N m, above which a control is limited."""


class MuscleActuator:
    """Muscles of a simulated model, which replace the impulses of its controls step by step."""

    def __init__(self, simulation: ImpulseSimulation, settings: MuscleActuation) -> None:
        self.simulation = simulation
        model, joints = simulation.compiled.model, simulation.tables.joints
        settings.check(model)
        index = simulation.compiled.coordinate_index
        self.controlled = np.sort(simulation.controls.every)
        """Coordinates whose torques are shared."""
        self._frames = PathFrames(model, [c.default for c in model.coordinates], "exact")
        self._muscles = make_muscle_arrays(model)
        scaled = settings.strength * self._muscles.max_isometric_force
        self._muscles = self._muscles._replace(max_isometric_force=scaled)
        count, coordinates = len(model.muscles), len(model.coordinates)
        crossed = np.zeros((count, coordinates), bool)
        arrays = self._frames.arrays
        crossed[np.repeat(np.arange(count), np.diff(arrays.first_entry)), arrays.entry_coordinate] = True
        reserves = settings.reserve_torques(model)
        self._reserved = np.zeros(coordinates, bool)
        self._reserved[[index[name] for name in settings.reserves]] = True
        self._sharing = StepSharing(
            crossed[:, self.controlled], reserves[:, self.controlled], np.zeros(count), self._muscles.max_activation
        )
        self._forces = BodyForces(model, self._frames)
        self._check_moving_points()
        self._balls = [int(joints.coordinate_first[j]) for j in simulation.controls.ball]
        self._first_required, self._later = np.zeros(coordinates), np.zeros(coordinates)
        self._solves, self._is_first, self.is_limited = 0, True, False
        self._ball_columns = [np.arange(i, i + 3) for i in self._balls]
        self._groups = [np.array([index[name] for name in group]) for group in settings.passive_groups]
        self._max_impulse = simulation.targets.max_impulse.copy()
        self._active, self._passive = np.zeros(count), np.zeros(count)
        self._length, self._arm = np.zeros((1, count)), np.zeros((1, count, coordinates))
        self._wrap_state = np.zeros((1, len(arrays.wrap_object)), np.int64)
        self.activation, self.force = np.zeros(count), np.zeros(count)
        self.required, self.reserve, self.unattained = (np.zeros(coordinates) for _ in range(3))
        """Torques of coordinates [N m or N]: of controls, of reserves, and what is missing."""
        self.status = 0

    @property
    def torque(self) -> Array:
        """Torques (coordinates,) of muscles and reserves [N m or N]."""
        return self.required - self.unattained

    @property
    def first_required(self) -> Array:
        """Torques (coordinates,) that controls require before they are limited by what muscles attain [N m or N]."""
        return self._first_required

    def prepare(self) -> None:
        """Compute muscles at the start of the present step."""
        simulation = self.simulation
        self._compute_paths()
        speed = -self._arm[0] @ simulation.work.scratch.speed
        hill = rigid_tendon_force(self._muscles, self._length, speed[None])
        self._active, self._passive = hill.active_force[0], hill.passive_force[0]
        self._solves, self._is_first, self.is_limited = 0, True, False
        self._limits()[:] = self._max_impulse[min(simulation.index, len(self._max_impulse) - 1)]

    def after_step(self) -> None:
        """Store the torques of controls after those of muscles: they are part of what muscles exert in the next step.

        Controls keep their velocities while positions are corrected and axes rotate: half of the torque that
        accelerates rotating bodies acts there. Muscles exert it too; what the step applies by itself is subtracted.
        """
        simulation, rows = self.simulation, self.simulation.tables.joints.drive_row
        self._later[:] = 0.0
        if self.is_limited:  # controls that yield have no such torques
            return
        self._later[self.controlled] = simulation.stages.impulse[rows[self.controlled]] / simulation.compiled.step

    def _limits(self) -> Array:
        """Return the limits of impulses in the present step (coordinates,), to be changed [N m s or N s]."""
        given = self.simulation.targets.max_impulse
        return given[min(self.simulation.index, len(given) - 1)]

    def share(self) -> bool:
        """Share the impulses of controls in the present step among muscles; write the wrenches of the result.

        Returns False if muscles do not attain them. The controls that require too much are then limited to what was
        attained, so that the others adapt to the motion without it, when the step is solved again.
        """
        simulation, chosen = self.simulation, self.controlled
        rows = simulation.tables.joints.drive_row
        axial = self._later.copy()
        axial[chosen] += simulation.stages.impulse[rows[chosen]] / simulation.compiled.step
        self.required[:] = self._transform(axial, to_coordinates=True)
        active, passive, arm = self._active, self._passive, self._arm[0][:, chosen]
        activation, reserve, unattained, self.status = self._sharing.solve(
            arm, self.required[chosen] - passive @ arm, active
        )
        if self.status == ATTAINED:  # what is left is rounding; reserves take it
            taken = np.where(self._reserved[chosen], unattained, 0.0)
            reserve, unattained = reserve + taken, unattained - taken
        self.activation[:], self.force[:] = activation, activation * active + passive
        self.reserve[chosen], self.unattained[chosen] = reserve, unattained
        self._write_wrenches()
        if self._is_first:
            self._first_required[:], self._is_first = self.required, False
        self._solves += 1
        if self.status == ATTAINED or self._solves == MAX_CONTROL_SOLVES or not self._limit(axial):
            return True
        simulation.work.scratch.wrench[:] = 0.0  # controls are solved for again, without muscles
        return False

    def _limit(self, axial: Array) -> bool:
        """Limit controls to what muscles exert at most, and those whose torque is not attained to what is.

        Without limits, a body that muscles cannot move as required would be driven by ever larger torques. `axial` are
        torques along the rows of controls [N m or N]. Returns False if no control is limited further.
        """
        attained, controlled = self._transform(self.torque, to_coordinates=False), np.zeros(len(axial), bool)
        controlled[self.controlled] = True
        short = controlled & (np.abs(axial - attained) > LIMIT_TOLERANCE * np.maximum(np.abs(axial), 1.0))
        allowed = np.where(attained * axial > 0.0, np.minimum(np.abs(attained), np.abs(axial)), 0.0)
        limits, step = self._limits(), self.simulation.compiled.step
        limits[:] = np.minimum(limits, step * self._strengths())
        limits[short] = np.minimum(limits[short], step * allowed[short])
        self.is_limited = True
        return bool(short.any())

    def _strengths(self) -> Array:
        """Return the largest torques (coordinates,) of muscles [N m or N], infinite where there are reserves.

        Coordinates of a ball joint, and of a passive group, have that of the strongest of them.
        """
        pull, passive = self._arm[0] * self._active[:, None], self._passive @ self._arm[0]
        up, down = np.maximum(pull, 0.0).sum(axis=0) + passive, -np.minimum(pull, 0.0).sum(axis=0) - passive
        largest = np.maximum(np.maximum(up, down), 0.0)
        for columns in (*self._groups, *self._ball_columns):
            largest[columns] = largest[columns].max()
        largest[self._reserved] = np.inf
        return largest

    def _compute_paths(self) -> None:
        self._arm[:] = 0.0
        row = self.simulation.state.coordinate[None].copy()
        self._frames.run(row, self._length, self._arm, self._wrap_state)

    def _transform(self, values: Array, *, to_coordinates: bool) -> Array:
        """Return torques of coordinates from torques along the rows of controls, or the reverse.

        The rows of a ball joint are along the axes of the child, in which the angular velocity of Rx(a) Ry(b) Rz(c) is
        E (a', b', c'); torques are E^T times those along the axes. Other rows are those of coordinates.
        """
        result, joints, q = values.copy(), self.simulation.tables.joints, self.simulation.state.coordinate
        for i in self._balls:
            sign = joints.sign[i + 2]
            b, c = q[i + 1], sign * q[i + 2]
            rates = np.array([
                [np.cos(c) * np.cos(b), np.sin(c), 0.0],
                [-np.sin(c) * np.cos(b), np.cos(c), 0.0],
                [sign * np.sin(b), 0.0, 1.0],
            ])  # fmt: skip
            own = values[i : i + 3]
            result[i : i + 3] = rates.T @ own if to_coordinates else np.linalg.solve(rates.T, own)
        return result

    def _check_moving_points(self) -> None:
        model, controlled = self.simulation.compiled.model, set(self.controlled.tolist())
        for motion in self._forces.motions:
            if motion.coordinate not in controlled:
                name, muscle = model.coordinates[motion.coordinate].name, model.muscles[motion.muscle].name
                raise SettingsError(
                    f"actuation: Coordinate {name!r} moves a path point of muscle {muscle!r} and has no control. "
                    "Control it."
                )

    def _write_wrenches(self) -> None:
        """Write forces and moments about centers of mass to the applied forces of the step."""
        simulation, state = self.simulation, self.simulation.state
        wrench, rows = simulation.work.scratch.wrench, simulation.work.rows
        wrench[:] = self._forces.wrenches(self.force, state.position)
        moving = self._forces.moving_point_torques(self.force, simulation.work.scratch.rotation, state.coordinate)
        axial = self._transform(self.reserve + moving, to_coordinates=False) - self._later
        for i in np.flatnonzero(axial):
            k = simulation.tables.joints.drive_row[i]
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    wrench[rows.body[e]] += axial[i] * rows.jacobian[e]

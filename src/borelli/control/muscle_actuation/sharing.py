"""Load sharing of one simulation step after the other, each started from the solution of the one before.

The problem is that of `share_loads` with the cost sum a^2 + sum (reserve / optimal force)^2, one frame at a time. What
does not change from step to step (the sparsity of moment arms, costs, bounds) is set up once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.load_sharing.actuator_columns import find_pattern
from borelli.analysis.load_sharing.dual_newton import MISSING, SOFTNESS, solve_next_frame
from borelli.analysis.load_sharing.problem_arrays import SharingProblem, make_buffers

Array = NDArray[np.float64]


class StepSharing:
    """Load sharing with the multipliers of the last step as its start."""

    def __init__(self, crossed: NDArray[np.bool_], reserves: Array, lower: Array, upper: Array) -> None:
        """Set up the sharing of torques.

        Args:
            crossed: (muscles, coordinates) where a muscle may have a moment arm.
            reserves: (actuators, coordinates) torques of reserve actuators per unit of control [N m or N].
            lower: (muscles,) least activations.
            upper: (muscles,) largest activations.
        """
        muscles, coordinates = crossed.shape
        count = muscles + len(reserves)
        self._reserves, self._upper = reserves, upper
        self._pattern = find_pattern(np.concatenate([crossed, reserves != 0.0]))
        self._of_muscle = self._pattern.column < muscles
        self._muscle = self._pattern.column[self._of_muscle]
        self._coordinate = self._pattern.order[self._pattern.position]
        self._own = reserves[self._pattern.column[~self._of_muscle] - muscles, self._coordinate[~self._of_muscle]]
        bound, zero = np.full(len(reserves), np.inf), np.zeros((1, count))
        self._problem = SharingProblem(
            start=self._pattern.start, row=self._pattern.position, entry=np.zeros((1, len(self._coordinate))),
            required=np.zeros((1, coordinates)), lower=np.append(lower, -bound)[None],
            upper=np.append(upper, bound)[None], exponent=np.full(count, 2.0), join=np.zeros(count),
            join_slope=np.zeros(count), power_weight=zero, quadratic=np.full((1, count), 2.0), linear=zero, pull=zero,
            softness=np.array([0.5 * SOFTNESS]), rise=np.zeros(0), decay=np.zeros(0), rated=np.array([muscles]),
        )  # fmt: skip
        self._buffers = make_buffers(count, coordinates)
        self._control, self._missing = np.zeros(count), np.zeros(coordinates)
        self._muscles, self._last = muscles, MISSING

    def solve(self, moment_arm: Array, torque: Array, max_force: Array) -> tuple[Array, Array, Array, int]:
        """Return activations, reserve torques, unattained torques [N m or N] and the status of `share_loads`.

        Args:
            moment_arm: (muscles, coordinates) [m or 1].
            torque: (coordinates,) required of muscles and reserves, without passive forces [N m or N].
            max_force: (muscles,) at full activation [N].
        """
        problem, order, of_muscle = self._problem, self._pattern.order, self._of_muscle
        entry = np.empty(len(of_muscle))
        entry[of_muscle] = moment_arm[self._muscle, self._coordinate[of_muscle]] * max_force[self._muscle]
        entry[~of_muscle] = self._own
        strength = self._strength(entry)
        problem.entry[0] = entry / strength[self._coordinate]
        problem.required[0] = (torque / strength)[order]
        status, _, _ = solve_next_frame(problem, self._buffers, self._last, self._control, self._missing)
        self._last = int(status)
        unattained = np.empty_like(self._missing)
        unattained[order] = self._missing
        reserve = self._control[self._muscles :] @ self._reserves
        return self._control[: self._muscles].copy(), reserve, unattained * strength, self._last

    def _strength(self, entry: Array) -> Array:
        """Return the strength (coordinates,): of muscles, else of the reserve, 1 where nothing acts."""
        of_muscle, count = self._of_muscle, len(self._missing)
        pull = np.abs(entry[of_muscle]) * self._upper[self._muscle]
        strength = np.bincount(self._coordinate[of_muscle], pull, count)
        of_reserves = np.abs(self._reserves).sum(axis=0)
        return np.where(strength > 0.0, strength, np.where(of_reserves > 0.0, of_reserves, 1.0))

"""Fibers of muscles whose tendons are stretched by a known force.

The tendon force F gives the tendon length, and with the path length L the length of the fiber along the tendon,

    x = L - l_Ts fse^-1(F / F_max),    l = sqrt(x^2 + h^2)

(symbols as in `hill_kernels.musculotendon`). As in `elastic_tendon_force`, the fiber velocity is that of the path times
cos(phi): the tendon's own velocity is neglected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from borelli.muscles.hill import RigidTendon, evaluate_curve, rigid_tendon_force
from borelli.muscles.hill_kernels import status as codes
from borelli.muscles.hill_kernels.arrays import Floats
from borelli.muscles.muscle_arrays import MuscleArrays

MAX_ITERATIONS = 80
"""Of Newton's method within a bracket; bisection alone ends after about 50."""
FORCE_TOLERANCE = 1e-14
"""[max isometric forces] at which the search for the tendon length ends."""


def tendon_length(arrays: MuscleArrays, force: ArrayLike) -> Floats:
    """Return the length [m] of tendons under a force (frames, muscles) [N]; without force it is the slack length."""
    target = np.maximum(np.asarray(force, float), 0.0) / arrays.max_isometric_force
    low, high = np.ones_like(target), np.full_like(target, 1.1)
    while (short := evaluate_curve(arrays, "tendon", high)[0] < target).any():
        high = np.where(short, 2.0 * high - 1.0, high)
    ratio = 0.5 * (low + high)
    for _ in range(MAX_ITERATIONS):
        value, slope = evaluate_curve(arrays, "tendon", ratio)
        if (np.abs(value - target) <= FORCE_TOLERANCE).all():
            break
        below = value < target
        low, high = np.where(below, ratio, low), np.where(below, high, ratio)
        newton = ratio - (value - target) / np.where(slope > 0.0, slope, np.inf)
        ratio = np.where((low < newton) & (newton < high), newton, 0.5 * (low + high))
    return arrays.tendon_slack_length * np.where(target > 0.0, ratio, 1.0)


def stretched_tendon_force(
    arrays: MuscleArrays, length: ArrayLike, velocity: ArrayLike, force: ArrayLike
) -> RigidTendon:
    """Compute fibers and their forces at full activation, with tendons stretched by known forces.

    Muscles with rigid tendons are computed as such, and so are muscles whose force is NaN.

    Args:
        arrays: muscles.
        length: path lengths (frames, muscles) [m].
        velocity: path lengthening velocities (frames, muscles) [m/s].
        force: tendon forces (frames, muscles) [N].
    """
    stretched = np.isfinite(np.asarray(force, float)) & ~arrays.rigid_tendon
    tendon = tendon_length(arrays, np.where(stretched, force, 0.0))
    stretch = np.where(stretched, tendon - arrays.tendon_slack_length, 0.0)
    fibers = rigid_tendon_force(arrays, np.asarray(length, float) - stretch, velocity)
    # a fiber below its minimum length under this stretch is the tendon's doing: the muscle is not slack
    status = np.where(stretched & (fibers.status == codes.SLACK), codes.BELOW_MIN_FIBER_LENGTH, fibers.status)
    return fibers._replace(status=status)

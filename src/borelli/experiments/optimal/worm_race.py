"""Motions of racing inchworms: stretching forward with the tail clamped, by spacetime constraints or by a plan.

A worm stretches from an arch to its full length while its tail is clamped, then its head is clamped and the tail
follows, which is the same motion backward in time and mirrored.
"""

from __future__ import annotations

from borelli.experiments.optimal.worm_model import ARCH, LINKS, angle_names, worm_system
from borelli.optimal.problem import Constraint
from borelli.optimal.spacetime import SpacetimeSolution, spacetime

STRETCH_TIME = 0.8
"""[s]"""
MAX_RATE = 6.0
"""[rad/s] of each hinge: without this bound the optimum exploits the coarseness of the differences."""
GROUND_TOLERANCE = 1e-6
"""[m]"""


def extend(intervals: int, *, max_rate: float = MAX_RATE) -> SpacetimeSolution:
    """Return the stretch of a worm with the least squared torques, its links above the ground."""
    names = angle_names()
    above = [
        Constraint(f"end_{k}", lambda s, k=k: s[f"worm_1_end_{k}_y"], lower=-GROUND_TOLERANCE)
        for k in range(1, LINKS + 1)
    ]
    return spacetime(
        worm_system(), dict(zip(names, ARCH.tolist(), strict=True)), dict.fromkeys(names, 0.0), duration=STRETCH_TIME,
        intervals=intervals, max_rate=max_rate, path=above,
    )  # fmt: skip

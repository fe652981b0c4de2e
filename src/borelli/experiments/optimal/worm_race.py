"""Motions of racing inchworms: stretching forward with the tail clamped, then gathering with the head clamped.

Gathering is the stretch backward in time and mirrored, which obeys the same equations, as nothing dissipates energy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.experiments.optimal.worm_model import ARCH, LINKS, angle_names, link_ends, worm_system
from borelli.optimal.dynamics_runs import DynamicsRun, run_inverse
from borelli.optimal.extended_coordinates import ExtendedCoordinates
from borelli.optimal.namespace import Namespace
from borelli.optimal.problem import Constraint
from borelli.optimal.spacetime import SpacetimeSolution, solve_spacetime

Array = NDArray[np.float64]

STRETCH_TIME = 0.8
"""[s]"""
MAX_RATE = 6.0
"""[rad/s] of each hinge: without this bound the optimum exploits the coarseness of the differences."""
GROUND_TOLERANCE = 1e-6
"""[m]"""
LOW_ARCH = np.radians([20.0, -15.0, -10.0, -15.0])
"""Angles [rad] of a stretched worm; quite straight, the head could not be moved along the body."""
STEP_HEIGHT = 0.04
"""[m] by which a planned head lifts."""


class Stretch(NamedTuple):
    """Stretch of a worm with its tail clamped."""

    time: Array
    angles: Array
    """(times, links) [rad]"""

    @property
    def stride(self) -> float:
        """Way of the head along the track [m]."""
        ends = link_ends(self.angles[[0, -1]])[:, -1, 0]
        return float(ends[1] - ends[0])


def extend(intervals: int, *, max_rate: float = MAX_RATE) -> SpacetimeSolution:
    """Return the stretch of a worm with the least squared torques, its links above the ground."""
    names = angle_names()
    above = [
        Constraint(f"end_{k}", lambda s, k=k: s[f"worm_1_end_{k}_y"], lower=-GROUND_TOLERANCE)
        for k in range(1, LINKS + 1)
    ]
    return solve_spacetime(
        worm_system(), dict(zip(names, ARCH.tolist(), strict=True)), dict.fromkeys(names, 0.0), duration=STRETCH_TIME,
        intervals=intervals, max_rate=max_rate, path=above,
    )  # fmt: skip


def planned_stretch(*, shape: bool) -> tuple[DynamicsRun, ExtendedCoordinates, Any]:
    """Return the stretch by inverse dynamics, its coordinates and its plan: of the head, and of the body's shape.

    Without `shape` the head alone is planned, and hinges move as little as possible (Lagrange multipliers).
    """
    names = angle_names()

    def planned(s: Namespace) -> dict[str, Any]:
        head = {"head_x": s[f"worm_1_end_{LINKS}_x"], "head_y": s[f"worm_1_end_{LINKS}_y"]}
        return head | ({"back": s[names[2]], "symmetry": s[names[1]] - s[names[3]]} if shape else {})

    system = worm_system()
    coordinates = ExtendedCoordinates(names, planned, system)
    first, last = coordinates.values(ARCH), coordinates.values(LOW_ARCH)
    lift = np.array([0.0, STEP_HEIGHT, 0.0, 0.0])[: len(first)]

    def plan(t: float) -> tuple[Array, Array, Array]:
        # fifth-order polynomial from rest to rest, and a lift of the head in between
        s, rate = t / STRETCH_TIME, 1.0 / STRETCH_TIME
        way = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        speed, bend = 30.0 * s**2 * (1.0 - s) ** 2 * rate, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) * rate**2
        up = np.array([np.sin(np.pi * s) ** 2, np.pi * np.sin(2 * np.pi * s), 2 * np.pi**2 * np.cos(2 * np.pi * s)])
        up *= [1.0, rate, rate**2]
        return (
            first + way * (last - first) + up[0] * lift,
            speed * (last - first) + up[1] * lift,
            (bend * (last - first) + up[2] * lift),
        )

    start = dict(zip(names, ARCH.tolist(), strict=True))
    return run_inverse(system, coordinates, plan, start, STRETCH_TIME), coordinates, plan


def race_motion(stretches: list[Stretch], time: Array) -> dict[str, Array]:
    """Return the coordinates of all worms at times [s]: strides of stretching and gathering, one after another."""
    found: dict[str, Array] = {}
    for worm, stretch in enumerate(stretches, start=1):
        duration = stretch.time[-1]
        cycle, phase = np.divmod(time, 2.0 * duration)
        gathering = phase > duration
        own = np.where(gathering, 2.0 * duration - phase, phase)
        angles = np.column_stack([np.interp(own, stretch.time, column) for column in stretch.angles.T])
        absolute = np.cumsum(angles, axis=1)
        # mirrored, from the head: the links in reverse order at opposite angles
        absolute = np.where(gathering[:, None], -absolute[:, ::-1], absolute)
        head = link_ends(angles)[:, -1]
        full = link_ends(stretch.angles[[-1]])[0, -1, 0]
        start = cycle * stretch.stride
        found[f"worm_{worm}_x"] = np.where(gathering, start + full - head[:, 0], start)
        found[f"worm_{worm}_y"] = np.where(gathering, head[:, 1], 0.0)
        relative = np.diff(absolute, axis=1, prepend=0.0)
        found |= dict(zip(angle_names(worm), relative.T, strict=True))
    return found

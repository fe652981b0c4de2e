"""Targets of joints that turn freely: rotations in time, of the child's joint frame in the parent's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.control.targets import rising
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model

Array = NDArray[np.float64]

UNIT = 1e-6
"""By how much the length of a quaternion may differ from 1."""


@dataclass(frozen=True)
class RotationTargets:
    """Where a ball joint is asked to be; before the first and after the last time, the same as there."""

    model: Model
    joint: str
    curve: Callable[[Array], Array]
    """Quaternions (times, 4) at times (times,) [s] between start and end."""
    start: float = -inf
    end: float = inf
    """[s]"""

    def __post_init__(self) -> None:
        balls = [joint.name for joint in self.model.joints if joint.kind == "ball"]
        if self.joint not in balls:
            raise SettingsError(f"targets: {unknown_name('ball joint', self.joint, balls)}")

    def at(self, time: ArrayLike) -> Array:
        """Unit quaternions (times, 4) at times (times,) [s].

        Raises:
            SettingsError: a time that is not finite, or a value that is no rotation.
        """
        times = np.atleast_1d(np.asarray(time, float))
        if not np.isfinite(times).all():
            raise SettingsError(f"targets: asked for at {times[~np.isfinite(times)][0]} s; times must be finite")
        values = np.asarray(self.curve(np.clip(times, self.start, self.end)), float)
        if values.shape != (len(times), 4):
            raise SettingsError(
                f"targets: joint {self.joint!r} has values of shape {values.shape}; quaternions at {len(times)} times "
                f"need ({len(times)}, 4)"
            )
        length = np.linalg.norm(values, axis=1)
        good = np.abs(length - 1.0) <= UNIT
        if not good.all():
            row = int(np.argmin(good))
            raise SettingsError(
                f"targets: joint {self.joint!r} at {times[row]:g} s is {values[row]}; every target must be a unit "
                "quaternion (w, x, y, z)"
            )
        return np.asarray(values / length[:, None])


def rotation_keyframes(model: Model, joint: str, times: ArrayLike, quaternions: ArrayLike) -> RotationTargets:
    """Targets through rotations at some times, turning steadily from each to the next by the shorter way.

    Args:
        model: Whose joint it is.
        joint: A ball joint.
        times: (keys,) [s], rising.
        quaternions: (keys, 4) of the child's joint frame in the parent's.
    """
    from scipy.spatial.transform import Rotation, Slerp

    t = rising("keyframes", times)
    table = np.asarray(quaternions, float)
    keys = RotationTargets(model, joint, lambda _: table).at(t)
    if len(t) == 1:
        return RotationTargets(model, joint, lambda times: np.repeat(keys, len(times), axis=0))
    between = Slerp(t, Rotation.from_quat(np.roll(keys, -1, axis=1)))
    return RotationTargets(model, joint, lambda times: np.roll(between(times).as_quat(), 1, axis=1), t[0], t[-1])

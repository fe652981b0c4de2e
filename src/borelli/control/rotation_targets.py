"""Targets of ball joints: rotations in time, of the child's joint frame in the parent's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.control.targets import check_rising, check_times
from borelli.errors import SettingsError, unknown_name
from borelli.kernels.array_checks import as_floats
from borelli.model.model import Model

Array = NDArray[np.float64]

UNIT_TOLERANCE = 1e-6
"""Allowed deviation of a quaternion's length from 1."""


@dataclass(frozen=True)
class RotationTargets:
    """Target rotation of a ball joint in time; constant before the start and after the end."""

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
        """Return unit quaternions (times, 4) at times (times,) [s].

        Raises:
            SettingsError: A time is not finite, or a value is not a rotation.
        """
        times = check_times(time)
        values = as_floats(
            f"targets: quaternions of joint {self.joint!r}", self.curve(np.clip(times, self.start, self.end)),
            (len(times), 4), finite=False,
        )  # fmt: skip
        length = np.linalg.norm(values, axis=1)
        good = np.abs(length - 1.0) <= UNIT_TOLERANCE
        if not good.all():
            row = int(np.argmin(good))
            raise SettingsError(
                f"targets: Joint {self.joint!r} at {times[row]:g} s is {values[row]}. Every target must be a unit "
                "quaternion (w, x, y, z)."
            )
        return np.asarray(values / length[:, None])


def rotation_keyframes(model: Model, joint: str, times: ArrayLike, quaternions: ArrayLike) -> RotationTargets:
    """Return targets through rotations at given times, with constant angular velocity by the shorter path between them.

    Args:
        model: The model.
        joint: Name of a ball joint.
        times: Key times (keys,) [s], increasing.
        quaternions: (keys, 4) of the child's joint frame in the parent's.
    """
    from scipy.spatial.transform import Rotation, Slerp

    t = check_rising("keyframes", times)
    table = as_floats("keyframes: quaternions", quaternions, (len(t), 4), finite=False)
    keys = RotationTargets(model, joint, lambda _: table).at(t)
    if len(t) == 1:
        return RotationTargets(model, joint, lambda times: np.repeat(keys, len(times), axis=0))
    between = Slerp(t, Rotation.from_quat(np.roll(keys, -1, axis=1)))
    return RotationTargets(model, joint, lambda times: np.roll(between(times).as_quat(), 1, axis=1), t[0], t[-1])

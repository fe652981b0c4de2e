"""A walk that is made, not measured: every angle a sum of waves, so that speeds, accelerations and torques are exact.

The shapes are those of level walking at a natural pace, to a few degrees (after the mean curves of Kadaba, Ramakrishnan
and Wootten 1990, and Winter 2009 for the arms); it is no one's data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import marker_positions
from borelli.model.model import Model
from borelli.recording.recording import Recording, make_dataset

Array = NDArray[np.float64]

STRIDE = 1.08
"""[s] from a foot's strike to its next."""
SPEED = 1.3
"""[m/s]"""
HARMONICS = 7
"""Of the stride that the curves keep: up to 6.5 Hz."""

# every tenth of the stride from the foot's strike [deg]
LEG = {
    "hip_flexion": (30, 26, 16, 6, -3, -10, -6, 12, 27, 33),
    "hip_adduction": (0, 5, 5, 4, 3, 0, -6, -5, -2, -1),
    "hip_rotation": (-2, 1, 2, 1, 0, -2, -5, -5, -4, -3),
    "knee_flexion": (5, 16, 15, 8, 5, 12, 38, 60, 48, 15),
    "ankle_flexion": (0, -3, 4, 8, 10, 6, -14, -8, 1, 2),
    "toe_extension": (5, 0, 0, 1, 5, 18, 25, 8, 5, 8),
}
# mean, swing and the part of the stride at which it is furthest [deg, deg, 1]; of the right side, from its strike
ARM = {
    "shoulder_flexion": (-5.0, 18.0, 0.5),
    "shoulder_adduction": (-8.0, 2.0, 0.2),
    "elbow_flexion": (28.0, 10.0, 0.55),
}
# swing, waves in a stride, and the part of it at which it is furthest [deg, 1, 1]
TRUNK = {
    "root_yaw": (4.0, 1, 0.5),
    "root_roll": (3.0, 1, 0.35),
    "root_pitch": (1.5, 2, 0.1),
    "sacral_rotation": (-4.0, 1, 0.5),
    "lumbar_rotation": (-4.0, 1, 0.5),
    "sacral_bending": (-1.5, 1, 0.35),
    "lumbar_bending": (-1.5, 1, 0.35),
    "neck_rotation": (2.0, 1, 0.5),
    "head_rotation": (2.0, 1, 0.5),
}
BOB, SWAY, SURGE = 0.022, 0.02, 0.01
"""[m] how far the pelvis goes up and down (twice a stride), side to side, and ahead of its mean path (twice)."""


@dataclass(frozen=True)
class Walk:
    """A walk of a model, exact."""

    model: Model
    time: Array
    """(frames,) [s]"""
    rate: float
    coordinates: Array
    """(frames, coordinates) [rad or m]"""
    speeds: Array
    accelerations: Array

    def record(self, noise: float = 0.0, seed: int | tuple[int, ...] = 0) -> Recording:
        """Its markers, with Gaussian noise [m] on every axis."""
        points = marker_positions(self.model, self.coordinates)
        points = points + noise * np.random.default_rng(seed).normal(size=points.shape)
        names = [marker.name for marker in self.model.markers]
        return Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=self.rate), "synthetic walk")


def make_walk(model: Model, frames: int = 260, rate: float = 60.0) -> Walk:
    """The walk of a model that has the human's coordinates.

    Args:
        model: Made by `borelli.human`.
        frames: How many.
        rate: [Hz]
    """
    time = np.arange(frames) / rate
    names = [c.name for c in model.coordinates]
    waves = _waves()
    start = np.array([c.default for c in model.coordinates])
    values = np.zeros((3, frames, len(names)))
    values[0] = start
    for name, wave in waves.items():
        values[:, :, names.index(name)] += _sampled(wave, time)
    x = names.index("root_x")
    values[0, :, x] += SPEED * time
    values[1, :, x] += SPEED
    return Walk(model, time, rate, *values)


def _waves() -> dict[str, NDArray[np.complex128]]:
    """Complex amplitudes by coordinate: value = real sum amplitude_n exp(2 pi i n t / STRIDE)."""
    found = {}
    order = np.arange(HARMONICS + 1)
    for side, late in (("r", 0.0), ("l", 0.5)):
        for name, tenths in LEG.items():
            series = np.fft.rfft(np.radians(tenths)) / len(tenths)
            series[1:] *= 2.0
            found[f"{name}_{side}"] = np.pad(series[:5], (0, HARMONICS - 4)) * np.exp(-2j * np.pi * order * late)
        for name, (mean, swing, furthest) in ARM.items():
            found[f"{name}_{side}"] = np.radians(mean) * (order == 0) + _wave(np.radians(swing), 1, furthest + late)
    for name, (swing, waves, furthest) in TRUNK.items():
        found[name] = _wave(np.radians(swing), waves, furthest)
    found["root_z"] = _wave(BOB, 2, 0.3)
    found["root_y"] = _wave(-SWAY, 1, 0.3)
    found["root_x"] = _wave(SURGE, 2, 0.05)
    return found


def _wave(swing: float, waves: int, furthest: float) -> NDArray[np.complex128]:
    series = np.zeros(HARMONICS + 1, complex)
    series[waves] = swing * np.exp(-2j * np.pi * waves * furthest)
    return series


def _sampled(series: NDArray[np.complex128], time: Array) -> Array:
    """Value, speed and acceleration (3, frames)."""
    omega = 2j * np.pi * np.arange(len(series)) / STRIDE
    turning = np.exp(np.multiply.outer(time, omega))
    return np.stack([(turning @ (series * omega**order)).real for order in range(3)])

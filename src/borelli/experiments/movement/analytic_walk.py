"""Synthetic walk in closed form: every angle is a Fourier series, so that velocities and accelerations are exact.

The curves are those of level walking at a natural pace, to a few degrees (after the mean curves of Kadaba, Ramakrishnan
and Wootten 1990, and Winter 2009 for the arms).
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
"""Duration of a stride [s]."""
SPEED = 1.3
"""[m/s]"""
HARMONICS = 7
"""Number of harmonics of the stride in the curves: up to 6.5 Hz."""

# every tenth of the stride from foot strike [deg]
LEG = {
    "hip_flexion": (30, 26, 16, 6, -3, -10, -6, 12, 27, 33),
    "hip_adduction": (0, 5, 5, 4, 3, 0, -6, -5, -2, -1),
    "hip_rotation": (-2, 1, 2, 1, 0, -2, -5, -5, -4, -3),
    "knee_flexion": (5, 16, 15, 8, 5, 12, 38, 60, 48, 15),
    "ankle_flexion": (0, -3, 4, 8, 10, 6, -14, -8, 1, 2),
    "toe_extension": (5, 0, 0, 1, 5, 18, 25, 8, 5, 8),
}
# mean, amplitude and phase of the maximum [deg, deg, stride]; right side, from its foot strike
ARM = {
    "shoulder_flexion": (-5.0, 18.0, 0.5),
    "shoulder_adduction": (-8.0, 2.0, 0.2),
    "elbow_flexion": (28.0, 10.0, 0.55),
}
# amplitude, cycles per stride, and phase of the maximum [deg, 1, stride]
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
VERTICAL, LATERAL, FORWARD = 0.022, 0.02, 0.01
"""Amplitudes of the pelvis [m]: vertical (twice a stride), lateral, and forward of its mean path (twice a stride)."""


@dataclass(frozen=True)
class Walk:
    """Walk of a model with exact derivatives."""

    model: Model
    time: Array
    """(frames,) [s]"""
    rate: float
    coordinates: Array
    """(frames, coordinates) [rad or m]"""
    speeds: Array
    accelerations: Array

    def record(self, noise: float = 0.0, seed: int | tuple[int, ...] = 0) -> Recording:
        """Return a recording of the markers with Gaussian noise [m] on every axis."""
        points = marker_positions(self.model, self.coordinates)
        points = points + noise * np.random.default_rng(seed).normal(size=points.shape)
        names = [marker.name for marker in self.model.markers]
        return Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=self.rate), "synthetic walk")


def make_walk(model: Model, frames: int = 260, rate: float = 60.0) -> Walk:
    """Return the walk, at a rate [Hz], of a model that has the coordinates of `borelli.human`."""
    time = np.arange(frames) / rate
    names = [c.name for c in model.coordinates]
    values = np.zeros((3, frames, len(names)))
    values[0] = [c.default for c in model.coordinates]
    for name, wave in _waves().items():
        values[:, :, names.index(name)] += _sampled(wave, time)
    x = names.index("root_x")
    values[0, :, x] += SPEED * time
    values[1, :, x] += SPEED
    return Walk(model, time, rate, *values)


def _waves() -> dict[str, NDArray[np.complex128]]:
    """Return complex amplitudes by coordinate: value = Re sum_n amplitude_n exp(2 pi i n t / STRIDE)."""
    amplitudes = {}
    order = np.arange(HARMONICS + 1)
    for side, delay in (("r", 0.0), ("l", 0.5)):
        for name, tenths in LEG.items():
            series = np.fft.rfft(np.radians(tenths)) / len(tenths)
            series[1:] *= 2.0
            amplitudes[f"{name}_{side}"] = np.pad(series[:5], (0, HARMONICS - 4)) * np.exp(-2j * np.pi * order * delay)
        for name, (mean, amplitude, phase) in ARM.items():
            wave = _wave(np.radians(amplitude), 1, phase + delay)
            amplitudes[f"{name}_{side}"] = np.radians(mean) * (order == 0) + wave
    for name, (amplitude, cycles, phase) in TRUNK.items():
        amplitudes[name] = _wave(np.radians(amplitude), cycles, phase)
    amplitudes["root_z"] = _wave(VERTICAL, 2, 0.3)
    amplitudes["root_y"] = _wave(-LATERAL, 1, 0.3)
    amplitudes["root_x"] = _wave(FORWARD, 2, 0.05)
    return amplitudes


def _wave(amplitude: float, cycles: int, phase: float) -> NDArray[np.complex128]:
    series = np.zeros(HARMONICS + 1, complex)
    series[cycles] = amplitude * np.exp(-2j * np.pi * cycles * phase)
    return series


def _sampled(series: NDArray[np.complex128], time: Array) -> Array:
    """Return value, velocity and acceleration (3, frames)."""
    omega = 2j * np.pi * np.arange(len(series)) / STRIDE
    phasor = np.exp(np.multiply.outer(time, omega))
    return np.stack([(phasor @ (series * omega**order)).real for order in range(3)])

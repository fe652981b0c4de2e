"""Times of an engine on a job, and its errors against the ground truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from borelli.bench.ground_truth import Motion
from borelli.bench.workload import markers, segments
from borelli.numerics.quaternions import conjugate, quaternion_product, rotation_logarithm, rotation_matrix

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """Loads on the human besides its joints, and whether its poses are reset to the ground truth each frame."""

    name: str
    title: str
    contacts: bool = False
    markers: bool = False
    motors: bool = False
    reset: bool = False
    steps: int | None = None
    """None: the complete recording."""

    def steps_of(self, motion: Motion) -> int:
        """Return the number of steps of the job on a recording, one per frame."""
        return min(self.steps or motion.frames, motion.frames - 1)


COLLAPSE_STEPS = 72
"""0.6 s at 120 Hz: the body is down on its knees, and MuJoCo's undamped limbs have not yet diverged (0.72 s)."""

JOBS = (
    Job("joints", "joints only", reset=True),
    Job("contacts", "16 contacts, poses reset", contacts=True, reset=True),
    Job("collapse", "contacts, collapsing freely", contacts=True, steps=COLLAPSE_STEPS),
    Job("markers", "41 markers", markers=True),
    Job("markers_contacts", "markers + contacts", markers=True, contacts=True),
    Job("hdm_full", "markers + contacts + 48 motors", markers=True, contacts=True, motors=True),
)

SETTLING_FRAMES = 6
"""Frames at either end excluded from errors, while the engine adapts to its initial state."""


@dataclass(frozen=True)
class Measurement:
    """Times and errors of one engine on one job."""

    us: float
    """CPU time of a step [us], median."""
    low: float
    high: float
    """Tenth and ninetieth percentile [us]."""
    accuracy: dict[str, float] = field(default_factory=dict)
    """Other metrics, by their key in the JSON object."""


def summary(samples_us: Array, **accuracy: float) -> Measurement:
    """Return median and percentiles of step times [us]."""
    low, median, high = np.percentile(samples_us, [10, 50, 90])
    return Measurement(float(median), float(low), float(high), dict(accuracy))


def timed(call: Callable[[], object], batch: int = 1) -> float:
    """Return the CPU time of one call in this thread [us]; use a batch if one call is near the clock's resolution."""
    start = time.thread_time_ns()
    for _ in range(batch):
        call()
    return (time.thread_time_ns() - start) / (1e3 * batch)


def tracking_errors(poses: Array, motion: Motion) -> dict[str, float]:
    """Return RMS errors of markers [mm] and joint rotations [deg] of poses (frames - 1, 21, 7), from frame 1 on."""
    estimate, true = poses[SETTLING_FRAMES:], motion.poses[1 + SETTLING_FRAMES :]
    names = [segment.name for segment in segments()]
    owner = [names.index(name) for name, _ in markers()]
    offsets = np.array([position for _, position in markers()])
    position = estimate[:, owner, :3] + np.einsum("fmij,mj->fmi", rotation_matrix(estimate[:, owner, 3:]), offsets)
    error = position - motion.markers[1 + SETTLING_FRAMES :]
    return {
        "marker_rms_mm": float(np.sqrt(np.mean(np.sum(error**2, axis=-1))) * 1e3),
        "angle_rms_deg": joint_angle_rms(estimate[..., 3:], true[..., 3:]),
    }


def joint_angle_rms(estimate: Array, true: Array) -> float:
    """Return the RMS angle [deg] between joint rotations of two motions, by quaternions (frames, 21, 4) of segments."""
    names = [segment.name for segment in segments()]
    parent = [names.index(segment.parent) for segment in segments()[1:]]
    one, other = (quaternion_product(conjugate(q[:, parent]), q[:, 1:]) for q in (estimate, true))
    angle = np.linalg.norm(rotation_logarithm(quaternion_product(conjugate(one), other)), axis=-1)
    return float(np.degrees(np.sqrt(np.mean(angle**2))))


def torque_error(estimate: Array, truth: Array) -> float:
    """Return the RMS error of torques (frames - 1, 48) in percent of the RMS of the truth; row i is frame i."""
    kept = slice(SETTLING_FRAMES, len(truth) - SETTLING_FRAMES)
    error = estimate[kept] - truth[kept]
    return float(100.0 * np.sqrt(np.mean(error**2) / np.mean(truth[kept] ** 2)))

"""A walk of any length on a treadmill with two plates: synthetic cycles with fresh noise and a drifting direction.

`python long_walk.py FRAMES FILE` writes it, for campaigns that measure the memory of another process.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import marker_positions
from borelli.model.model import Marker, Model
from borelli.people.human import human
from borelli.recording.io import write_recording
from borelli.recording.recording import MIN_PLATE_FORCE, Recording, make_dataset
from borelli.synthetic.curves import spline_derivatives
from borelli.synthetic.ground_forces import distribute_load, root_wrench
from borelli.synthetic.walk import CYCLE, preferred_pressure, walk_coordinates

Array = NDArray[np.float64]

MASS, HEIGHT = 68.0, 1.72
RATE = 120.0
SAMPLES_PER_FRAME = 8
CYCLES = 5
PERIOD = 648
"""Frames of five cycles of 1.08 s at 120 Hz."""
MARKERS = 60
NOISE = 0.001
"""Standard deviation of each marker along each axis [m]."""
GAP_FRAMES = 8
GAPS_PER_FRAME = 0.02
TURN, TURN_PERIOD = 0.15, 300.0
"""The direction of walking swings by this angle [rad] with this period [s]."""
LEAD, LEAD_PERIOD = 0.4, 61.0
"""The walker is ahead of an even cadence by up to this time [s], with this period [s]: no two strides are alike."""
BLOCK = 5000
"""Frames made at once: noise and gaps are seeded by block, so that a longer walk begins as a shorter one does."""


def walking_subject() -> Model:
    """Return the subject with 60 markers: a full set, and others that no model has."""
    model = human(MASS, HEIGHT, "female", markers="cmu41")
    extra = [
        Marker(f"cluster{i + 1:02d}", marker.body, (marker.position[0], marker.position[1] + 0.02, marker.position[2]))
        for i, marker in enumerate(model.markers[: MARKERS - len(model.markers)])
    ]
    return replace(model, markers=(*model.markers, *extra))


def long_walk(frames: int, *, off_plate_every: int = 20, seed: int = 0) -> Recording:
    """Return the recording of a walk of this many frames; the left foot misses its plate once in so many strides."""
    model = walking_subject()
    points, force, center, moment = _period()
    clock = np.arange(frames) / RATE
    markers = np.empty((frames, MARKERS, 3))
    for block, start in enumerate(range(0, frames, BLOCK)):
        rows = np.arange(start, min(start + BLOCK, frames))
        random = np.random.default_rng((seed, block))
        phase = _phase(clock[rows]) * RATE * SAMPLES_PER_FRAME
        before, part = np.floor(phase).astype(int), (phase % 1.0)[:, None, None]
        walk = (1.0 - part) * points[before % len(points)] + part * points[(before + 1) % len(points)]
        part = _turned(walk, clock[rows]) + random.normal(0.0, NOISE, (len(rows), MARKERS, 3))
        for gap in random.integers(0, BLOCK, round(GAPS_PER_FRAME * BLOCK)):
            part[gap : gap + GAP_FRAMES, random.integers(MARKERS)] = np.nan
        markers[rows] = part
    time = np.arange(frames * SAMPLES_PER_FRAME) / (RATE * SAMPLES_PER_FRAME)
    at = np.round(_phase(time) * RATE * SAMPLES_PER_FRAME).astype(int) % len(force)
    forces, centers, moments = force[at], center[at], moment[at]
    missed = np.floor(_phase(time) / CYCLE + 0.5) % off_plate_every == off_plate_every - 1
    forces[missed, 0], moments[missed, 0], centers[missed, 0] = 0.0, 0.0, np.nan
    corners = np.array([[[0.9, y + 0.3, 0.0], [-0.9, y + 0.3, 0.0], [-0.9, y - 0.3, 0.0], [0.9, y - 0.3, 0.0]]
                        for y in (0.3, -0.3)])  # fmt: skip
    data = make_dataset(
        {
            "marker_position": markers, "plate_force": _turned(forces, time),
            "plate_center_of_pressure": _turned(centers, time), "plate_free_moment": moments, "plate_corners": corners,
        },
        {"marker": [marker.name for marker in model.markers], "plate": ["left belt", "right belt"]},
        rate=RATE, analog_rate=RATE * SAMPLES_PER_FRAME, file_units="m", file_up="+Z", file_forward="+X",
    )  # fmt: skip
    subject: dict[str, str | float] = {"name": "synthetic", "mass": MASS, "height": HEIGHT, "sex": "female"}
    return Recording(data, "long_walk", subject=subject, metadata={"synthetic": True})


@cache
def _period() -> tuple[Array, Array, Array, Array]:
    """Return markers (samples, 60, 3) of five cycles; force, COP and free moment (samples, 2, 3), left foot first."""
    model = walking_subject()
    step = 1.0 / (RATE * SAMPLES_PER_FRAME)
    time = np.arange(-PERIOD * SAMPLES_PER_FRAME // CYCLES, (CYCLES + 1) * PERIOD * SAMPLES_PER_FRAME // CYCLES) * step
    walk = walk_coordinates(model, time)
    q, velocities, accelerations = spline_derivatives(walk.coordinates, step)
    wrench = root_wrench(model, q, velocities, accelerations)
    loads = distribute_load(*wrench, walk.left_load, preferred_pressure(model, time))
    inner = np.searchsorted(time, -0.5 * step) + np.arange(PERIOD * SAMPLES_PER_FRAME)
    # the belt carries the walker back
    speed = float(np.polyfit(time[inner], walk.coordinates[inner, 0], 1)[0])
    back = np.outer(speed * time, [1.0, 0.0, 0.0])
    points = marker_positions(model, q[inner]) - back[inner, None]
    center = loads.center[inner] - back[inner, None]
    off = loads.force[inner][..., 2] < MIN_PLATE_FORCE
    center[off] = np.nan
    return points, np.where(off[..., None], 0.0, loads.force[inner]), center, loads.free_moment[inner]


def _phase(time: Array) -> Array:
    """Return the time [s] at which an even cadence is where the walker is."""
    return time + LEAD * (1.0 + np.sin(2.0 * np.pi * time / LEAD_PERIOD))


def _turned(vectors: Array, time: Array) -> Array:
    """Return vectors (times, ..., 3) turned about the vertical by the direction of walking at each time [s]."""
    angle = TURN * np.sin(2.0 * np.pi * time / TURN_PERIOD)
    c, s = (np.expand_dims(f(angle), tuple(range(1, vectors.ndim - 1))) for f in (np.cos, np.sin))
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.stack([c * x - s * y, s * x + c * y, z], axis=-1)


if __name__ == "__main__":
    write_recording(long_walk(int(sys.argv[1])), Path(sys.argv[2]))

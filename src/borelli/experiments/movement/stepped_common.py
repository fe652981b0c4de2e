"""Motions and cost functions shared by the movement experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import Motion, make_motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques
from borelli.errors import SettingsError
from borelli.experiments.experiment import Request
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.io import read_recording
from borelli.synthetic.walk import walk_coordinates

Array = NDArray[np.float64]

MASS, HEIGHT = 75.0, 1.75
"""Default body mass [kg] and height [m] of the subject."""
RATE = 100.0
"""Frame rate of synthetic motions [Hz]."""


def recorded_motion(path: Path) -> Motion:
    """Return inverse kinematics of a human fitted to a recording."""
    recording = clean(read_recording(path))
    mass, height = (
        float(recording.subject.get(key) or default) for key, default in (("mass", MASS), ("height", HEIGHT))
    )
    return inverse_kinematics(fit_model(human(mass, height), recording).model, recording)


def synthetic_walk(seconds: float = 3.0) -> Motion:
    """Return a synthetic walk of a standard human."""
    model = human(MASS, HEIGHT, markers="cmu41")
    time = np.arange(int(seconds * RATE)) / RATE
    return make_motion(model, walk_coordinates(model, time).coordinates, time, RATE)


def requested_walk(request: Request) -> Motion:
    """Return the motion of the request's recording, or a synthetic walk, a short one if quick."""
    if request.recording is not None:
        return recorded_motion(request.recording)
    return synthetic_walk(1.5 if request.quick else 3.0)


def with_changes(motion: Motion, coordinates: Array | None = None, model: Model | None = None) -> Motion:
    """Return the motion with other coordinates, or of another model with the same coordinates."""
    q = motion.coordinates if coordinates is None else coordinates
    new = make_motion(model or motion.model, q, motion.data["time"].values, motion.rate)
    return replace(new, recording=motion.recording)


def torque_time_integral(torques: Torques, start: float = 0.0, end: float = np.inf) -> float:
    """Return the time integral of absolute joint torques [N m s] between two times from the first frame [s]."""
    time = torques.data["time"].values - torques.data["time"].values[0]
    inside = (time >= start) & (time <= end)
    if not inside.any():
        raise SettingsError(f"No frame lies between {start:g} and {end:g} s. Choose a longer interval.")
    root = root_coordinates(torques.motion.model)
    joints = [c.rotational and c.name not in root for c in torques.motion.model.coordinates]
    return float(np.abs(torques.data["torque"].values[inside][:, joints]).sum() / torques.motion.rate)


def positive_work(torques: SteppedTorques) -> float:
    """Return the positive work of all joints [J], summed over constraint rows."""
    return float(np.clip(torques.data["joint_power"].values, 0.0, None).sum() / torques.motion.rate)


def root_deviation(torques: SteppedTorques) -> float:
    """Return the largest distance of the root from its path [m]."""
    columns = [i for i, unit in enumerate(torques.data["coordinate_units"].values) if unit == "m"][:3]
    return float(np.linalg.norm(torques.data["coordinate_error"].values[:, columns], axis=1).max())

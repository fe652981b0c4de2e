"""What experiments that step through a motion share: the motion they start from, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics, root_coordinates
from borelli.analysis.motion import Motion, make_motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques
from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.model.people.human import human

Array = NDArray[np.float64]

MASS, HEIGHT = 75.0, 1.75
"""Of the subject where nobody says [kg, m]."""
RATE = 100.0
"""Of synthetic motions [Hz]."""
INK, BLUE, ORANGE, GREEN, RED = "#2b2f36", "#3f6fae", "#d9822b", "#3a8f7d", "#c0506a"


def recorded_motion(path: Path, mass: float = MASS, height: float = HEIGHT) -> Motion:
    """The motion of a human fitted to a recording that follows its markers."""
    from borelli.analysis.fit.fit_model import fit_model
    from borelli.recording.clean import clean
    from borelli.recording.io import read_recording

    recording = clean(read_recording(path))
    told = recording.subject
    fitted = fit_model(
        human(float(told.get("mass", mass) or mass), float(told.get("height", height) or height)), recording
    )
    return inverse_kinematics(fitted.model, recording)


def synthetic_walk(seconds: float = 3.0) -> Motion:
    """A walk of a standard human that was made, not measured."""
    from borelli.synthetic.walk import walk_coordinates

    model = human(MASS, HEIGHT, markers="cmu41")
    time = np.arange(int(seconds * RATE)) / RATE
    return make_motion(model, walk_coordinates(model, time).coordinates, time, RATE)


def changed(motion: Motion, coordinates: Array | None = None, model: Model | None = None) -> Motion:
    """The motion with other coordinates, or of another model with the same ones."""
    q = motion.coordinates if coordinates is None else coordinates
    made = make_motion(model or motion.model, q, motion.data["time"].values, motion.rate)
    return replace(made, recording=motion.recording)


def effort(torques: Torques, start: float = 0.0, stop: float = np.inf) -> float:
    """Integrated net torque of all joints [N m s] between two times from the first frame [s] (seed 004's cost)."""
    time = torques.data["time"].values - torques.data["time"].values[0]
    inside = (time >= start) & (time <= stop)
    if not inside.any():
        raise SettingsError(f"there is no frame from {start:g} to {stop:g} s")
    root = root_coordinates(torques.motion.model)
    joints = [c.rotational and c.name not in root for c in torques.motion.model.coordinates]
    return float(np.abs(torques.data["torque"].values[inside][:, joints]).sum() / torques.motion.rate)


def positive_work(torques: SteppedTorques) -> float:
    """Of all joints [J], row by row."""
    return float(np.clip(torques.data["joint_power"].values, 0.0, None).sum() / torques.motion.rate)


def root_deviation(torques: SteppedTorques) -> float:
    """Farthest distance of the root from its path [m]."""
    columns = [i for i, unit in enumerate(torques.data["coordinate_units"].values) if unit == "m"][:3]
    return float(np.linalg.norm(torques.data["deviation"].values[:, columns], axis=1).max())


def tidy(axes: object) -> None:
    """The look all pictures share."""
    for ax in np.atleast_1d(np.array(axes, dtype=object)).flat:
        ax.grid(color="#e3e5e8", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)

"""Compile the kernels that an analysis calls, by analyzing a body that hardly moves."""

from __future__ import annotations

import numpy as np

from borelli.analysis.dynamics.torques import inverse_dynamics
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.kernels.compile_cache import CompileTask
from borelli.model.kinematics import marker_positions
from borelli.model.people.human import human
from borelli.recording.recording import Recording, make_dataset

FRAMES = 16


def warm_up() -> None:
    """Fit, follow and push against the ground once."""
    body = human(markers="cmu41")
    sway = 0.02 * np.sin(np.arange(FRAMES)[:, None] * np.linspace(0.1, 0.3, len(body.coordinates)))
    rest = np.array([c.default for c in body.coordinates])
    seen = marker_positions(body, rest + sway)
    names = [marker.name for marker in body.markers]
    recording = Recording(make_dataset({"marker_position": seen}, {"marker": names}, rate=100.0), "sample")
    fitted = fit_model(body, recording, frames=4, held_out=2).model
    inverse_dynamics(inverse_kinematics(fitted, recording, method="smoothed"), forces="contacts")


TASKS = (CompileTask("analysis", warm_up, 4),)

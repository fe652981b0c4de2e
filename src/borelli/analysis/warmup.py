"""Warm-up: compiles the kernels of an analysis by analyzing a body that hardly moves."""

from __future__ import annotations

import numpy as np

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.load_sharing.share_loads import share_loads
from borelli.kernels.compile_cache import CompileTask
from borelli.model.kinematics import marker_positions
from borelli.people.human import human
from borelli.recording.recording import Recording, make_dataset

FRAMES = 16


def warm_up() -> None:
    """Run fit, inverse kinematics and inverse dynamics once."""
    body = human(markers="cmu41")
    sway = 0.02 * np.sin(np.arange(FRAMES)[:, None] * np.linspace(0.1, 0.3, len(body.coordinates)))
    rest = np.array([c.default for c in body.coordinates])
    markers = marker_positions(body, rest + sway)
    names = [marker.name for marker in body.markers]
    recording = Recording(make_dataset({"marker_position": markers}, {"marker": names}, rate=100.0), "sample")
    fitted = fit_model(body, recording, frames=4, held_out=2).model
    inverse_dynamics(inverse_kinematics(fitted, recording, method="smoothed"), forces="predicted")


def warm_up_load_sharing() -> None:
    """Share one torque."""
    share_loads(np.full((2, 1, 1), 0.05), np.full((2, 1), 10.0), np.full((2, 1), 1000.0))


TASKS = (
    CompileTask("analysis", warm_up, 4),
    CompileTask("load sharing", warm_up_load_sharing, 9, group="muscles"),
)

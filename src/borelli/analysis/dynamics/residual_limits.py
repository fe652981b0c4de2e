"""Recommended limits of residuals, judged by peak and RMS over the frames in which they are evaluated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.torques import Torques
from borelli.model.kinematics import center_of_mass

MAX_RESIDUAL_FORCE = 0.05
"""Recommended limit of residual force, as a fraction of the peak net external force (Hicks et al. 2015)."""
MAX_RESIDUAL_MOMENT = 0.01
"""The same of the residual moment, as a fraction of that force times the height of the COM (Hicks et al. 2015)."""
HEIGHT_FRAMES = 1000
"""Frames, at least, whose mean gives the height of the center of mass of a longer motion."""


class Residuals(NamedTuple):
    """RMS and peak of residual force [N] and moment [N m], their limits, and the times of the peaks [s]."""

    force_rms: float
    force_peak: float
    moment_rms: float
    moment_peak: float
    force_limit: float
    moment_limit: float
    force_time: float
    moment_time: float
    frames: int

    def verdict(self) -> str:
        """Return which of them are within their limits."""
        values = {
            "force RMS": self.force_rms <= self.force_limit, "force peak": self.force_peak <= self.force_limit,
            "moment RMS": self.moment_rms <= self.moment_limit, "moment peak": self.moment_peak <= self.moment_limit,
        }  # fmt: skip
        beyond = [name for name, within in values.items() if not within]
        return "all within" if not beyond else f"beyond: {', '.join(beyond)}"


def judge_residuals(torques: Torques) -> Residuals:
    """Return RMS and peak residuals over the evaluated frames, with the limits."""
    used = torques.evaluated
    data, model = torques.data, torques.motion.model
    force, moment = (np.linalg.norm(data[name].values[used], axis=-1) for name in ("residual_force", "residual_moment"))
    external = model.mass * float(np.linalg.norm(model.gravity))
    if "ground_reaction_force" in data:
        external = float(np.nanmax(np.linalg.norm(data["ground_reaction_force"].sum("foot").values, axis=-1)))
    up = -np.asarray(model.gravity) / max(float(np.linalg.norm(model.gravity)), 1e-12)
    some = data["coordinate_value"].values[used][:: max(1, int(used.sum()) // HEIGHT_FRAMES)]
    height = float(np.mean(center_of_mass(model, some) @ up))
    time = data["time"].values[used]
    rms = [float(np.sqrt(np.mean(one**2))) for one in (force, moment)]
    return Residuals(
        rms[0], float(force.max()), rms[1], float(moment.max()), MAX_RESIDUAL_FORCE * external,
        MAX_RESIDUAL_MOMENT * abs(height) * external, float(time[force.argmax()]), float(time[moment.argmax()]),
        int(used.sum()),
    )  # fmt: skip

"""Errors of force plates: their position relative to the cameras, gain, and noise of the center of pressure."""

from __future__ import annotations

import numpy as np

from borelli.analysis.error_sources.error_sizes import ErrorSizes
from borelli.recording.recording import Recording, assign_values

VARIABLES = (
    ("ground_reaction_force", "center_of_pressure", "free_moment"),
    ("plate_force", "plate_center_of_pressure", "plate_free_moment"),
)
"""Force, point and free moment of each foot, or of each plate if no foot is assigned to them."""


def draw_plate_errors(recording: Recording, sizes: ErrorSizes, random: np.random.Generator) -> Recording:
    """Draw a recording with other plate forces: each foot's, as if it had a plate of its own."""
    names = next((names for names in VARIABLES if names[0] in recording.data), None)
    if names is None or not (sizes.plate_position or sizes.plate_gain or sizes.center_of_pressure):
        return recording
    force, point, moment = (recording.data[name].values for name in names)
    gain = 1.0 + sizes.plate_gain * random.standard_normal((force.shape[1], 1))
    horizontal = np.array([1.0, 1.0, 0.0])
    offset = sizes.plate_position * horizontal * random.standard_normal((force.shape[1], 3))
    noise = sizes.center_of_pressure * horizontal * random.standard_normal(point.shape)
    return assign_values(
        recording, dict(zip(names, (gain * force, point + offset + noise, gain * moment), strict=True))
    )

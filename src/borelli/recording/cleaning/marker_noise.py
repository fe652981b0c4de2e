"""How much markers shake, told from the recording itself.

Fourth differences leave little of a movement and all that changes from frame to frame. Of independent noise of
deviation s they have deviation s sqrt(70), for 70 is the sum of the squares of 1, 4, 6, 4, 1. Of a movement at
frequency f, seen at rate r, they leave the part (2 sin(pi f/r))^4, which over sqrt(70) is a 400th at 6 and 100 Hz. The
median of their sizes stands for the deviation, so that the few frames of a foot's strike do not count. Noise that is
slower than frames is not seen: that of markers filtered before, and skin that slides over bone.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.recording import Recording

ORDER = 4
PER_DEVIATION = np.sqrt(70.0)
"""Deviation of a fourth difference of independent noise of deviation 1."""
MEDIAN_SIZE = 0.6745
"""Median of the size of a normal variable of deviation 1."""
BRIDGED = 1e-9
"""Fourth differences below this [m] are those of cubics, by which gaps were filled."""
FEWEST = 30
"""A marker of which fewer differences are known is taken to shake as the middle one of the others."""


def marker_noise(recording: Recording) -> dict[str, float]:
    """Deviation [m] along each axis by which each marker shakes from frame to frame."""
    points = recording.data["marker_position"].values
    sizes = np.abs(np.diff(points, ORDER, axis=0))
    found = []
    for marker in range(points.shape[1]):
        of_marker = sizes[:, marker]
        of_marker = of_marker[of_marker > BRIDGED]
        told = len(of_marker) >= FEWEST
        found.append(float(np.median(of_marker)) / (MEDIAN_SIZE * PER_DEVIATION) if told else np.nan)
    noise = np.array(found)
    usual = float(np.nanmedian(noise)) if np.isfinite(noise).any() else 0.0
    return dict(zip(recording.markers, np.where(np.isfinite(noise), noise, usual).tolist(), strict=True))

"""Marker noise, estimated from the recording itself.

Fourth differences remove most of a movement and keep frame-to-frame noise. Independent noise of standard deviation s
gives them the standard deviation s sqrt(70), where 70 is the sum of squares of 1, 4, 6, 4, 1. A movement at frequency
f, sampled at rate r, is attenuated to (2 sin(pi f/r))^4, which over sqrt(70) is 1/400 at 6 and 100 Hz. The median of
their magnitudes estimates the standard deviation, so that the few frames of a foot strike do not count. Noise slower
than frames is not included: that of filtered markers, and skin motion relative to bone.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.recording import Recording

DIFFERENCE_ORDER = 4
DIFFERENCE_SD = np.sqrt(70.0)
"""Standard deviation of the fourth difference of independent noise of standard deviation 1."""
MEDIAN_TO_SD = 0.6745
"""Median magnitude of a standard normal variable."""
MIN_DIFFERENCE = 1e-9
"""Smaller fourth differences [m] are those of cubics that fill gaps."""
MIN_DIFFERENCES = 30
"""A marker with fewer known differences gets the median noise of the others."""


def marker_noise(recording: Recording) -> dict[str, float]:
    """Return the standard deviation [m] of the frame-to-frame noise of each marker along each axis."""
    points = recording.data["marker_position"].values
    sizes = np.abs(np.diff(points, DIFFERENCE_ORDER, axis=0))
    deviations = []
    for marker in range(points.shape[1]):
        own = sizes[:, marker]
        own = own[own > MIN_DIFFERENCE]
        known = len(own) >= MIN_DIFFERENCES
        deviations.append(float(np.median(own)) / (MEDIAN_TO_SD * DIFFERENCE_SD) if known else np.nan)
    noise = np.array(deviations)
    typical = float(np.nanmedian(noise)) if np.isfinite(noise).any() else 0.0
    return dict(zip(recording.markers, np.where(np.isfinite(noise), noise, typical).tolist(), strict=True))

"""Joint centres of a skeleton's motion, followed as if they were markers.

Animation files (AMC, BVH) hold no markers but the angles of a skeleton of their own. Its joint centres are places on
the body as markers are, and a model can be fitted to them; what they do not tell, such as the twist of a straight limb,
the fit says.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.recording import LAYOUT, Note, Recording

LEAP = 0.05
"""A first frame farther [m] from the second than this, and than five times any later step, is a rest pose."""


def use_joint_centers_as_markers(recording: Recording) -> Recording:
    """The recording with its joint centres as markers, where it has none; without a rest pose at its start."""
    data = recording.data
    if "marker_position" in data or "joint_center" not in data or not recording.frames:
        return recording
    centers = data["joint_center"].values
    steps = np.linalg.norm(np.diff(centers, axis=0), axis=-1).max(axis=1)
    said = "the file holds no markers: the joint centres of its skeleton are followed in their place"
    notes = [Note(said, "problem", "twist of straight limbs is not seen; markers tell more")]
    layout = LAYOUT["marker_position"]
    names = [str(name) for name in data["joint"].values]
    made = data.assign_coords(marker=names).assign(
        markers=(layout.dims, centers, {"units": layout.units, "frame": layout.frame})
    )
    if len(steps) > 2 and steps[0] > max(LEAP, 5.0 * float(steps[1:].max())):
        made = made.isel(time=slice(1, None))
        notes.append(Note(f"the first frame, {steps[0]:.2f} m from the second, is a rest pose and left out", "changed"))
    return recording.with_data(made, *notes)

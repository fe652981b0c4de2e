"""Joint centers of a skeleton used as markers.

Animation files (AMC, BVH) contain no markers but the joint angles of a skeleton. A model can be fitted to its joint
centers; quantities they do not determine, such as the axial rotation of a straight limb, are reported by the fit.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.recording import Note, Recording, with_layout

MIN_REST_POSE_JUMP = 0.05
"""Least distance [m] of a rest pose in the first frame from the second, and five times any later step."""


def use_joint_centers_as_markers(recording: Recording) -> Recording:
    """Return the recording with joint centers as markers if it has none, without a rest pose at its start."""
    data = recording.data
    if "marker_position" in data or "joint_center" not in data or not recording.frames:
        return recording
    centers = data["joint_center"].values
    steps = np.linalg.norm(np.diff(centers, axis=0), axis=-1).max(axis=1)
    text = "The file contains no markers; the joint centers of its skeleton are used instead."
    action = "axial rotation of straight limbs is not determined: prefer a recording with markers"
    notes = [Note(text, "problem", action, code="joint_centers")]
    names = [str(name) for name in data["joint"].values]
    data = data.assign_coords(marker=names).assign(with_layout({"marker_position": centers}))
    if len(steps) > 2 and steps[0] > max(MIN_REST_POSE_JUMP, 5.0 * float(steps[1:].max())):
        data = data.isel(time=slice(1, None))
        text = f"The first frame is a rest pose, {steps[0]:.2f} m from the second, and is removed."
        notes.append(Note(text, "changed", code="rest_pose"))
    return recording.with_data(data, *notes)

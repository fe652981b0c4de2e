"""Consequences of warnings: the results that each affects, and what to do, in words for readers of the report."""

from __future__ import annotations

import re
from collections.abc import Mapping

ALL = "All results"
ANGLES = "Joint angles, and all that is computed from them"
FORCES = "Ground reaction forces, joint moments, powers and work"
MOMENTS = "Joint moments, powers and work"
WORK = "Work and energy"
MUSCLES = "Muscle forces, joint contact forces and metabolic power"
INTERVALS = "95 % intervals"
GROUPS = (ALL, ANGLES, FORCES, MOMENTS, WORK, MUSCLES, INTERVALS)
"""Affected results, in the order of the report."""

CODES: Mapping[str, tuple[str, str]] = {
    "length_unit": (ALL, "Check the unit of length; override it with --units."),
    "up_axis": (ALL, "Check the vertical axis; override it with --up."),
    "frame_rate": (ALL, "Check the frame rate of the recording."),
    "time_not_increasing": (ALL, "Export the recording again with increasing time stamps."),
    "time_stamps": (ALL, "Export the recording again with even time stamps."),
    "uneven_time_steps": (ALL, "Export the recording again with even time stamps."),
    "truncated": (ALL, "Copy the file again: its end is missing."),
    "trimmed": (ALL, "Frames without markers are left out; --start and --end choose the frames."),
    "gap": (ANGLES, "Angles near long gaps are interpolated: do not interpret them there."),
    "marker_rms": (ANGLES, "Check the marker names and the fit before using any result."),
    "marker_error": (ANGLES, "Check the labels of these markers for swaps, or leave them out."),
    "model_markers": (ANGLES, "Check the names of these markers with borelli markers."),
    "labels_by_geometry": (ANGLES, "Check the labels with borelli markers; correct them with --markers."),
    "left_right_labels": (ANGLES, "Check the sides of these labels."),
    "label_swap": (ANGLES, "Check these labels, or repair them with borelli clean."),
    "misplaced_markers": (ANGLES, "Check these labels with borelli markers; correct them with --markers."),
    "unsure_labels": (ANGLES, "Check these labels with borelli markers; correct them with --markers."),
    "unknown_labels": (ANGLES, "Name these markers with --markers, if they are on the subject."),
    "unlabeled_points": (ANGLES, "Label these markers in the recording if they are on the subject."),
    "objects": (ANGLES, "If these markers are on the subject, name them with --markers."),
    "spike": (ANGLES, "Do not interpret peaks at these times."),
    "cutoff": (ANGLES, "Record at a higher frame rate."),
    "coordinate_limits": (ANGLES, "Do not interpret these angles; check the labels of the markers next to the joint."),
    "frames_without_pose": (ANGLES, "Analyze the other frames only: --start and --end."),
    "extrapolated_poses": (ANGLES, "Analyze the other frames only: --start and --end."),
    "missing_poses": (ANGLES, "Analyze the other frames only: --start and --end."),
    "not_smoothed": (ANGLES, "Use frame-by-frame inverse kinematics, or crop the trial."),
    "frames_not_converged": (ANGLES, "Do not use results in these frames."),
    "segments_without_markers": (FORCES, "Put markers on these segments, or use angles of the legs only."),
    "partial_body": (FORCES, "Put markers on the whole body if these results are needed."),
    "faster_than_gravity": (FORCES, "Check the frame rate and the unit of length (--units)."),
    "mass_assumed": (MOMENTS, "Analyze again with the subject's mass: --mass."),
    "height_assumed": (ANGLES, "Analyze again with the subject's height: --height."),
    "plate_mass": (MOMENTS, "Check the subject's mass (--mass), then the calibration of the plates."),
    "plate_omitted": (FORCES, "Steps on this plate count as not measured."),
    "plate_geometry": (FORCES, "Check the position of the plates in the recording."),
    "plate_offset": (FORCES, "Zero the plates before recording."),
    "plate_assignment": (FORCES, "Use steps with one foot on a plate only."),
    "plate_swap": (FORCES, "Check the order of the plates in the recording."),
    "plate_sign": (FORCES, "Check the sign of the plates' channels."),
    "plate_moment": (FORCES, "Check the moments in the force file."),
    "plate_times": (FORCES, "Check that the force file belongs to this trial."),
    "plate_nan": (FORCES, "Check the plates of the recording with borelli doctor."),
    "clipped_channel": (FORCES, "If it belongs to a force plate, do not use steps in which it is clipped."),
    "constant_channel": (FORCES, "If it belongs to a force plate, check its cable and do not use this plate."),
    "external_contact": (FORCES, "Name the supported body with --contact, such as --contact pelvis for a seat."),
    "grf_unavailable": (FORCES, "Use angles only, or record force plates."),
    "grf_incomplete": (FORCES, "Strides with unknown forces are left out of moments and powers; do not use them."),
    "grf_predicted": (FORCES, "Prefer steps on the plates; those with predicted forces are less certain."),
    "grf_source": (FORCES, "Prefer a trial with force plates."),
    "contact_chatter": (FORCES, "Predict the forces from the motion instead."),
    "residual_force": (MOMENTS, "See Residuals: motion, body mass and ground reaction forces do not agree there."),
    "residual_moment": (MOMENTS, "See Residuals: motion, body mass and ground reaction forces do not agree there."),
    "joint_torque": (MOMENTS, "Do not use this moment; check the ground reaction forces and the filter."),
    "evaluated_time": (WORK, "Compare trials by work per stride or per second."),
    "energy_balance": (WORK, "Do not use work and power."),
    "numerical_work": (WORK, "Do not use work and power."),
    "muscle_state": (MUSCLES, "Do not use the forces of these muscles; check their fiber and tendon lengths."),
    "torque_unattained": (
        MUSCLES,
        "See Muscles: do not use muscle and contact forces of these joints where it is high.",
    ),
    "sharing_not_converged": (MUSCLES, "Do not use muscle forces in these frames; check the motion there."),
    "failed_repeats": (INTERVALS, "Intervals are too narrow if many repeats failed."),
}
"""Affected results and recommended action by the code of a note or warning."""

_PROGRAM = re.compile(r"\w\(|\w=|[a-z]_[a-z]|\b(None|True|False|select|resample|substeps)\b|^crop$")


def affected_results(code: str, default: str) -> str:
    """Return the results that a warning affects: one of `GROUPS`; `default` for codes that have no entry."""
    return CODES[code][0] if code in CODES else default


def plain_action(code: str, action: str) -> str:
    """Return what to do in words, as a sentence; "" where there are none but names of the program."""
    text = CODES[code][1] if code in CODES else "" if _PROGRAM.search(action) else action.strip()
    return _sentence(text)


def plain_option(action: str) -> str:
    """Return the option of the command line that overrides an assumption; "" for names of the program."""
    return "" if _PROGRAM.search(action) else action


def _sentence(text: str) -> str:
    if not text:
        return ""
    first = text if text.startswith("-") else text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else f"{first}."

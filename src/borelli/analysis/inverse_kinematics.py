"""Inverse kinematics: the motion of a model that matches the markers of a recording.

| method | poses |
|---|---|
| `framewise` | each frame by itself, at the minimum of the marker energy: no lag at any rate |
| `smoothed` | all frames at once, with a penalty on the fourth difference of every coordinate |
| `marker_driven` | a forward simulation in which springs pull the body to its markers; lags behind them |

The first two keep all coordinates within their joint limits; a note lists coordinates and frames at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    POSE_STIFFNESS,
    limit_notes,
    make_ik_problem,
    motion_from_coordinates,
    solve_framewise,
)
from borelli.analysis.kinematics.trajectory_smoother import smooth_markers
from borelli.analysis.motion import Motion
from borelli.analysis.option_values import option_value
from borelli.analysis.stepped.marker_driven_ik import MARKER_DRIVEN_OPTIONS, marker_driven_ik
from borelli.errors import SettingsError, unknown_name
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Model
from borelli.recording.recording import Recording

METHODS = ("framewise", "smoothed", "marker_driven")


def inverse_kinematics(
    model: Model,
    recording: Recording,
    *,
    method: str = "framewise",
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    fixed: tuple[str, ...] = (),
    **options: Any,
) -> Motion:
    """Compute the motion of a model from recorded markers.

    Args:
        model: A model with markers, fitted or scaled to the subject.
        recording: A recording with markers [m].
        method: "framewise", "smoothed" or "marker_driven".
        weights: Stiffness of the marker springs [N/m]: one for all, or by marker; markers left out have none.
        pose_stiffness: Stiffness of the springs to the rest pose [N m/rad or N/m]: one for all coordinates but the
            root's, or by coordinate.
        rest: Rest pose by coordinate [rad or m]. Default: the model's default pose.
        fixed: Coordinates fixed at their rest pose.
        options: Further options of "marker_driven": `substeps`, `ground`, `softness`, `rest_torque`.

    Returns:
        The motion, with model markers [m] and marker errors [m] in lab axes. Frames without a pose are NaN.

    Raises:
        SettingsError: Unknown method, option, marker or coordinate; or no marker of the model was recorded.
        BorelliError: No frame has a pose.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> motion = bo.inverse_kinematics(walk.model, walk.recording)
        >>> knee = motion.data["coordinate_value"].sel(coordinate="knee_flexion_r")
        >>> 0.9 < float(knee.max()) < 1.2  # rad
        True
    """
    ensure_compiled()
    name = option_value("inverse kinematics method", method, METHODS)
    problem = make_ik_problem(model, recording, weights, pose_stiffness, rest, fixed)
    _check_options(name, options)
    if name == "marker_driven":
        return marker_driven_ik(problem, recording, **options)
    q, notes = solve_framewise(problem) if name == "framewise" else smooth_markers(problem, recording)
    more = limit_notes(problem, q, recording.data["time"].values)
    return motion_from_coordinates(problem, q, recording, name, (*notes, *more))


def _check_options(method: str, options: Mapping[str, Any]) -> None:
    for name in options:
        if method != "marker_driven":
            what = f'option of method "{method}"'
            hint = f'Options of "marker_driven": {", ".join(MARKER_DRIVEN_OPTIONS)}.'
            raise SettingsError(f"{unknown_name(what, name, ())}. {hint}")
        if name not in MARKER_DRIVEN_OPTIONS:
            raise SettingsError(unknown_name('option of method "marker_driven"', name, MARKER_DRIVEN_OPTIONS))

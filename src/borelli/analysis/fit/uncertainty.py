"""Uncertainty of a fit, and notes on what the recordings do not determine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.fit.center_checks import center_notes
from borelli.analysis.fit.center_uncertainty import center_covariance
from borelli.analysis.fit.derivatives import NOISE_ENERGY
from borelli.analysis.fit.least_squares import FitSolution
from borelli.analysis.fit.parameters import FitParameters
from borelli.analysis.motion import AXES, coordinate_labels
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

MAX_ZERO_SD = 0.12
"""[rad] Angles whose zero is less certain are listed: 7 degrees, more than a person's neutral stance varies."""
MAX_POSE_SD = 0.35
"""[rad] Angles less certain in a frame are determined by the rest pose rather than by markers: 20 degrees."""
MAX_LENGTH_SD = 0.010
"""[m] Lengths that are less certain are listed."""
MAX_MARKER_ERROR = 0.02
"""[m] Markers with a larger error are listed."""
MAX_SIZE_DIFFERENCE = 0.06
"""Fraction by which well-determined lengths together may differ from the given model's before it is reported."""
SENSITIVITY_FRAMES = 8
"""Frames from which the influence of the parameters on a pose is estimated."""


def fit_dataset(parameters: FitParameters, solution: FitSolution, train: list[Array], test: list[Array]) -> Dataset:
    """Return the `data` of a `Fit`; `train` and `test` are marker errors (frames, markers) [m] of groups of frames."""
    import xarray as xr

    p, covariance = solution.p, solution.covariance
    lengths, sds, given = [], [], []
    for i in range(len(parameters.segments)):
        value, slope = parameters.length(p, i)
        lengths.append(value)
        sds.append(float(np.sqrt(slope @ covariance @ slope)))
        given.append(parameters.length(parameters.start, i)[0])
    zero, pose = _coordinate_sd(parameters, solution, covariance)
    markers = [marker.name for marker in parameters.model.markers]
    centers = p.reshape(-1, 3)[: len(parameters.joints)]
    covariances = center_covariance(parameters, solution)
    center_sd = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))

    def per_marker(errors: list[Array]) -> Array:
        every = np.concatenate(errors) if errors else np.full((1, len(markers)), np.nan)
        count = np.isfinite(every).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(np.nansum(every**2, axis=0) / count))

    units = {"units": "rad or m: see coordinate_units"}
    return xr.Dataset(
        {
            "length": ("segment", lengths, {"units": "m"}),
            "length_sd": ("segment", sds, {"units": "m"}),
            "length_given": ("segment", given, {"units": "m"}),
            "zero_sd": ("coordinate", zero, units),
            "pose_sd": ("coordinate", pose, units),
            "joint_center": (("joint", "axis"), centers, {"units": "m", "frame": "parent body"}),
            "joint_center_sd": (("joint", "axis"), center_sd, {"units": "m", "frame": "parent body"}),
            "marker_rms": ("marker", per_marker(train), {"units": "m"}),
            "marker_rms_held_out": ("marker", per_marker(test), {"units": "m"}),
        },
        {
            "segment": [segment.name for segment in parameters.segments],
            "joint": [joint.name for joint in parameters.joints],
            "axis": list(AXES),
            **coordinate_labels(parameters.model),
            "marker": markers,
        },
    )


def _coordinate_sd(parameters: FitParameters, solution: FitSolution, covariance: Array) -> tuple[Array, Array]:
    """Return the standard deviations of each coordinate's mean over the fitted frames, and of its value in one frame.

    A pose changes by -pose_response dp and varies by itself; the latter averages out over the frames.
    """
    count = len(parameters.model.coordinates)
    zero, pose = np.zeros(count), np.zeros(count)
    groups = [group for group in solution.groups if group.fitted]
    free = groups[0].problem.tree.free
    response, own = solution.derivatives.pose_response, solution.derivatives.pose_compliance * NOISE_ENERGY
    mean = response.mean(axis=0)
    by_mean = np.einsum("ip,pq,iq->i", mean, covariance, mean, optimize=True)
    zero[free] = np.sqrt(by_mean + own.mean(axis=0) / len(own))
    some = response[:: max(1, len(response) // SENSITIVITY_FRAMES)]
    by_p = ((some @ covariance) * some).sum(axis=-1).mean(axis=0)
    pose[free] = np.sqrt(by_p + own.mean(axis=0))
    return zero, pose


def uncertainty_notes(parameters: FitParameters, solution: FitSolution, data: Dataset, static: bool) -> list[Note]:
    """Return notes on what the recordings do not determine, and on what fits badly."""
    notes = [
        *center_notes(parameters, solution.p, data, static),
        *_angle_notes(parameters, data, static),
        *_length_notes(data),
        *_size_notes(data),
        *_marker_notes(data),
    ]
    kept = [f"{parameters.segments[i].name} {1e3 * length:.0f} mm" for i, length in parameters.kept_lengths.items()]
    kept += [parameters.model.markers[i].name for i in parameters.kept_offsets]
    if kept:
        notes.append(Note(f"Kept as stated: {', '.join(kept)}.", "stated", code="kept_values"))
    if solution.stopped_early:
        text = "The fit was ended early, because held-out frames got worse."
        notes.append(Note(text, "changed", "held_out=0", code="fit_ended_early"))
    return notes


def _angle_notes(parameters: FitParameters, data: Dataset, static: bool) -> list[Note]:
    root = {c.name for joint in parameters.model.joints if joint not in parameters.joints for c in joint.coordinates}
    names = [str(name) for name in data["coordinate"].values]
    angles = [u == "rad" and n not in root for n, u in zip(names, data["coordinate_units"].values, strict=True)]
    poses, zeros = {}, {}
    for name, angle, zero, pose in zip(names, angles, data["zero_sd"].values, data["pose_sd"].values, strict=True):
        if angle and pose > MAX_POSE_SD:
            poses[name] = np.degrees(pose)
        elif angle and zero > MAX_ZERO_SD:
            zeros[name] = np.degrees(zero)
    notes = []
    if poses:
        text = f"These angles are poorly determined by the markers and stay near the rest pose: {_degrees(poses)}."
        notes.append(Note(text, "inferred", "put markers on the bodies between", code="uncertain_angles"))
    if zeros:
        text = "The neutral position of these angles cannot be determined from the recordings; only changes can: "
        action = "" if static else "give a static trial (static=)"
        notes.append(Note(f"{text}{_degrees(zeros)}.", "inferred", action, code="uncertain_zeros"))
    return notes


def _degrees(sds: dict[str, float]) -> str:
    """Return angles by the size of their standard deviation, both sides as one."""
    sides: dict[str, float] = {}
    for name, value in sds.items():
        key = re.sub(r"^(r|l)_|_(r|l)$", "", name)
        sides[key] = max(value, sides.get(key, 0.0))
    listed = ", ".join(f"{name} {value:.0f}" for name, value in sorted(sides.items(), key=lambda pair: -pair[1]))
    return f"{listed} (standard deviation, degrees)"


def _above(data: Dataset, name: str, limit: float) -> str:
    """Return the labels of a variable's values [m] above a limit, each with its value in mm."""
    values = data[name]
    return ", ".join(
        f"{label} {1e3 * value:.0f}"
        for label, value in zip(data[values.dims[0]].values, values.values, strict=True)
        if value > limit
    )


def _length_notes(data: Dataset) -> list[Note]:
    uncertain = _above(data, "length_sd", MAX_LENGTH_SD)
    text = f"Lengths poorly determined by the recordings: {uncertain} (standard deviation, mm)."
    return [Note(text, "inferred", code="uncertain_lengths")] if uncertain else []


def _size_notes(data: Dataset) -> list[Note]:
    """Return a note if all well-determined lengths together differ from the given model's."""
    certain = data["length_sd"].values < MAX_LENGTH_SD
    given = data["length_given"].values[certain]
    if certain.sum() < 4 or not given.sum() > 0.0:
        return []
    ratio = float(data["length"].values[certain].sum() / given.sum())
    if abs(ratio - 1.0) <= MAX_SIZE_DIFFERENCE:
        return []
    text = (
        f"The subject's limbs are {ratio:.2f} times as long as the model's; lengths that the markers do not determine "
    )
    return [Note(f"{text}are still the model's.", "inferred", "give the subject's height", code="subject_size")]


def _marker_notes(data: Dataset) -> list[Note]:
    far = _above(data, "marker_rms", MAX_MARKER_ERROR)
    text = f"Markers with large error after fitting: {far} (RMS, mm)."
    return [Note(text, "problem", "check their labels, or leave them out", code="marker_error")] if far else []

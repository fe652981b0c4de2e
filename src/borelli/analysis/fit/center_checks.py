"""Checks of fitted joint centers that marker errors cannot replace.

A marker error of 2.5 mm says nothing about a joint center that is 60 mm off: the poses absorb it. These checks compare
the centers with landmarks and anatomy, and state the effect on joint moments: while one leg carries the body, a center
that is displaced by d changes the moment by about g d per kg of body mass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.fit.anatomical_ties import SIDES, find_spines
from borelli.analysis.fit.hip_regressions import regress_hip
from borelli.analysis.fit.parameters import FitParameters
from borelli.errors import list_names
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

MAX_TIE_SD = 2.0
"""Standard deviations from its landmarks beyond which a joint center is reported."""
HIP_WIDTH_RANGE = (0.6, 0.85)
"""Range of the distance between the hips over that between the anterior spines (Harrington 2007: 0.66 + 15 mm)."""
LENGTH_VARIATION = 0.05
"""Standard deviation of segment lengths among persons of one stature, as a fraction of the length (ANSUR)."""
MAX_LENGTH_SD = 3.0
MAX_VIRTUAL_DISTANCE = 0.025
"""[m] between a virtual hip center of a file and the regression: two standard deviations of both."""
LEG_JOINTS = ("hip", "knee", "ankle")
GRAVITY = 9.81
"""[N/kg] Moment of one body weight per kg and meter of displacement."""


def center_notes(parameters: FitParameters, p: Array, data: Dataset, static: bool) -> list[Note]:
    """Return notes on joint centers of a person that are far from their landmarks or not determined by any."""
    if "pelvis" not in {body.name for body in parameters.model.bodies} or not any(
        joint.name == "hip_r" or joint.name == "hip_l" for joint in parameters.joints
    ):
        return []
    return [
        *_tie_notes(parameters, p),
        *_hip_width_notes(parameters, p),
        *_virtual_notes(parameters, p),
        *_length_notes(data),
        *_landmark_notes(parameters, static),
    ]


def _effect(distance: float) -> str:
    return f"Moments about it change by up to {GRAVITY * distance:.2g} N m/kg"


def _tie_notes(parameters: FitParameters, p: Array) -> list[Note]:
    """Return a note on each joint center that the fit moved away from its landmarks."""
    notes = []
    for tie in parameters.ties:
        deviation = tie.evaluate(p)[0]
        ratio = float(np.abs(deviation / tie.sd).max())
        if ratio > MAX_TIE_SD and np.isfinite(tie.sd).all():
            distance = float(np.linalg.norm(deviation))
            text = (
                f"The center of {tie.joint} is {1e3 * distance:.0f} mm from where its {tie.source} puts it "
                f"({ratio:.1f} standard deviations). {_effect(distance)}."
            )
            action = "check the landmarks at this joint, or give a static or functional trial"
            notes.append(Note(text, "problem", action, code="center_off_landmark"))
    return notes


def _spine_points(parameters: FitParameters, p: Array) -> tuple[Array, Array] | None:
    """Return both hips (2, 3) and right, left and posterior spines (3, 3) [m] in the pelvis; None if any is missing."""
    spines = find_spines(parameters.model)
    names = [joint.name for joint in parameters.joints]
    if not spines or not {"hip_r", "hip_l"} <= set(names):
        return None
    points = p.reshape(-1, 3)
    markers = points[len(names) + np.array(spines)]
    return points[[names.index("hip_r"), names.index("hip_l")]], np.array([*markers[:2], markers[2:].mean(axis=0)])


def _hip_width_notes(parameters: FitParameters, p: Array) -> list[Note]:
    points = _spine_points(parameters, p)
    if points is None:
        return []
    hips, spines = points
    distance, width = float(np.linalg.norm(hips[0] - hips[1])), float(np.linalg.norm(spines[0] - spines[1]))
    low, high = HIP_WIDTH_RANGE
    if low * width <= distance <= high * width:
        return []
    expected = 0.66 * width + 0.0146
    text = (
        f"The hips are {1e3 * distance:.0f} mm apart, {distance / width:.2f} of the distance between the anterior "
        f"iliac spines ({low:g} to {high:g} is expected). {_effect(abs(distance - expected) / 2.0)} in the frontal "
        "plane."
    )
    return [Note(text, "problem", "check the markers on the iliac spines", code="hip_width")]


def _virtual_notes(parameters: FitParameters, p: Array) -> list[Note]:
    """Return a note if the virtual hip centers of the file are far from the regression."""
    points = _spine_points(parameters, p)
    if points is None:
        return []
    notes = []
    for tie in parameters.ties:
        if tie.source == "virtual center":
            side = -1.0 if tie.joint.endswith("r") else 1.0
            center = points[0][int(side > 0.0)] - tie.evaluate(p)[0]
            right, left, back = points[1]
            distance = float(np.linalg.norm(center - regress_hip(right, left, back, side)))
            if distance > MAX_VIRTUAL_DISTANCE:
                text = (
                    f"The virtual center of {tie.joint} in the file is {1e3 * distance:.0f} mm from the regression by "
                    f"Harrington et al. (2007). {_effect(distance)}, depending on which is right."
                )
                action = "check how the file's centers were computed, or leave them out"
                notes.append(Note(text, "problem", action, code="virtual_center"))
    return notes


def _length_notes(data: Dataset) -> list[Note]:
    length, sd, given = (data[name].values for name in ("length", "length_sd", "length_given"))
    limit = MAX_LENGTH_SD * np.hypot(LENGTH_VARIATION * given, sd)
    ratio = np.where(np.abs(length - given) > limit, length / np.maximum(given, 1e-9), 1.0)
    far = [f"{n} {100.0 * (r - 1.0):+.0f} %" for n, r in zip(data["segment"].values, ratio, strict=True) if r != 1.0]
    if not far:
        return []
    most = float(np.abs(length - given)[ratio != 1.0].max())
    text = (
        f"Segments of unusual length for this height: {list_names(far, 6)} (more than {MAX_LENGTH_SD:g} standard "
        f"deviations). {_effect(most)} if a joint center at an end is wrong."
    )
    return [Note(text, "problem", "check the labels and the height", code="unusual_length")]


def _landmark_notes(parameters: FitParameters, static: bool) -> list[Note]:
    """Return a note on joints of the legs without landmarks, whose centers follow from height and motion alone."""
    tied = {tie.joint for tie in parameters.ties}
    bodies = {marker.body for marker in parameters.model.markers}
    legs = [
        joint.name
        for joint in parameters.joints
        if joint.name[:-2] in LEG_JOINTS and joint.name[-1] in SIDES.values() and {joint.parent, joint.child} & bodies
    ]
    missing = [name for name in legs if name not in tied]
    if not missing:
        return []
    kinds = {one.kind for one in interpret_labels([m.name for m in parameters.model.markers]).readings}
    text = f"No landmark determines the centers of {list_names(missing, 6)}: they follow from height and motion. "
    text += f"Errors of 20 to 50 mm are usual. {_effect(0.03)} at 30 mm."
    if "cluster" in kinds and not static:
        action = "give a static trial with markers on epicondyles, malleoli and iliac spines (--static)"
        return [Note(text, "problem", action, code="clusters_without_static")]
    return [Note(text, "problem", "add markers on landmarks, or a static trial with them", code="no_landmark")]

"""What to analyse, and how: the plan, its recordings read and cleaned, and the body before it is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.dynamics.torques import METHODS as TORQUE_METHODS
from borelli.analysis.kinematics.framewise_ik import METHODS as POSE_METHODS
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError, list_names, unknown_name
from borelli.model.io import read_model
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.model.resize import scale_mass
from borelli.recording.clean import clean
from borelli.recording.cleaning.trim_to_visible import trim_to_visible
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording
from borelli.recording.joint_center_markers import use_joint_centers_as_markers
from borelli.recording.recording import Note, Recording

MASS, HEIGHT = 75.0, 1.75
"""Of a subject of whom nothing is known [kg, m]; a warning says so."""
UNSEEN = 0.3
"""Part of the body's mass without markers that is told; two arms are a tenth."""


@dataclass(frozen=True)
class AnalysisSettings:
    """What to analyse, and how.

    Attributes:
        model: A model file; None: a human of this mass, height and sex.
        mass: Of the subject [kg]; None: what the recording says.
        height: Of the subject [m]; None: what the recording says.
        sex: "male" or "female"; None: what the recording says.
        fit: Whether the model is fitted to the recordings; else it is taken as it is.
        static: A recording in which the subject stands still.
        forces: A second file with the plates of the recording.
        plates: Whether plates are used; else the ground's forces are computed from the motion.
        method: Of the poses: "framewise", "smoothed" or "marker_driven".
        torque_method: "newton_euler" or "stepped".
        cutoff: Of the low-pass on coordinates [Hz]; None: the default.
        start: Where to begin [s].
        stop: Where to end [s].
        reading: What the user says of the recordings: units, up, forward, skeleton.
        monte_carlo: How often the analysis is done again on shaken markers, for a band on every output; 0: no bands.
        noise: Deviation [m] along each axis by which markers are then shaken; None: as they are seen to shake.
    """

    model: Path | None = None
    mass: float | None = None
    height: float | None = None
    sex: str | None = None
    fit: bool = True
    static: Path | None = None
    forces: Path | None = None
    plates: bool = True
    method: str = "framewise"
    torque_method: str = "newton_euler"
    cutoff: float | None = None
    start: float = -np.inf
    stop: float = np.inf
    reading: Mapping[str, Any] = field(default_factory=dict)
    monte_carlo: int = 0
    noise: float | None = None

    def __post_init__(self) -> None:
        """Raises SettingsError before anything is read, not when it comes to that stage."""
        for what, given, known in (
            ("method", self.method, POSE_METHODS), ("torque method", self.torque_method, TORQUE_METHODS)
        ):  # fmt: skip
            if given not in known:
                raise SettingsError(unknown_name(what, given, known))


def read_trial(path: Path, plan: AnalysisSettings) -> Recording:
    """A recording read and cleaned: gaps filled, swaps and spikes undone, plates zeroed and given to feet."""
    given = {key: value for key, value in plan.reading.items() if value is not None}
    recording = use_joint_centers_as_markers(read_recording(path, **given))
    if not recording.markers:
        raise SettingsError(f"{path.name} holds no markers, which a body is fitted to: {_instead(recording, path)}")
    if plan.forces is not None:
        recording = add_plates(recording, read_recording(plan.forces))
    # no low-pass: poses follow what was seen, and coordinates are filtered before they are differentiated
    cleaned = clean(recording, cutoff=None, start=plan.start, stop=plan.stop)
    return trim_to_visible(cleaned, start=not np.isfinite(plan.start), stop=not np.isfinite(plan.stop))


def read_static(plan: AnalysisSettings) -> Recording | None:
    """The static trial, whole: start, stop and a second file of forces are those of the trials; None: there is none."""
    if plan.static is None:
        return None
    return read_trial(plan.static, replace(plan, forces=None, start=-np.inf, stop=np.inf))


def _instead(recording: Recording, path: Path) -> str:
    """What a recording without markers holds, and what to do with it."""
    if "plate_force" in recording.data:
        return f"it holds force plates. Name the file with the markers, and this one with --forces {path.name}"
    if "coordinate_value" in recording.data:
        return "it holds joint angles. Name the file with the markers they were made from, such as a .trc or .c3d"
    return "see what it holds with `borelli info`, and name a .c3d or .trc file with markers"


def generic_model(plan: AnalysisSettings, recording: Recording) -> Model:
    """The model before it is fitted: that of the plan, or a human of the subject's size."""
    about = recording.subject
    mass = plan.mass if plan.mass is not None else _number(about.get("mass"))
    if plan.model is not None:
        model = read_model(plan.model)
        return scale_mass(model, plan.mass) if plan.mass is not None else model
    height = plan.height if plan.height is not None else _number(about.get("height"))
    said = str(about.get("sex", "male"))
    sex = plan.sex or (said if said in ("male", "female") else "male")
    return human(mass or MASS, height or HEIGHT, sex)


def size_notes(plan: AnalysisSettings, recording: Recording) -> tuple[Note, ...]:
    """What had to be guessed of the subject's size."""
    if plan.model is not None:
        return ()
    notes = []
    for name, unit, taken in (("mass", "kg", MASS), ("height", "m", HEIGHT)):
        if getattr(plan, name) is None and not _number(recording.subject.get(name)):
            said = f"the subject's {name} is not known: {taken:g} {unit} is taken, and results scale with it"
            # of a body that is fitted, the height is soon forgotten
            notes.append(Note(said, "inferred" if name == "height" and plan.fit else "problem", f"--{name}"))
    return tuple(notes)


def missing_marker_notes(motion: Motion) -> tuple[Note, ...]:
    """Says so where much of the body has no markers, on itself or beyond, and so keeps its rest pose."""
    model = motion.model
    seen = {marker.body for marker in model.markers if marker.name in motion.data["marker"].values}
    above = {joint.child: joint.parent for joint in model.joints if not joint.closes_loop}
    for name in tuple(seen):
        while (name := above.get(name, "")) and name not in seen:
            seen.add(name)
    unseen = [body for body in model.bodies if body.name not in seen]
    share = sum(body.mass for body in unseen) / model.mass
    if share < UNSEEN:
        return ()
    said = (
        f"no markers are on {list_names([body.name for body in unseen], 6)}, {100.0 * share:.0f} % of the mass: they keep "
        "their rest pose, and forces of the ground from the motion, residuals and moments of the hips err by it"
    )
    return (Note(said, "problem", "put markers on the trunk"),)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None

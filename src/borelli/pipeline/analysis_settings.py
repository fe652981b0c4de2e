"""Settings of an analysis, its recordings read and cleaned, and the model before it is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from borelli.analysis.fit.fit_model import Fit, fit_model
from borelli.analysis.fit.hip_regressions import HIP_REGRESSIONS
from borelli.analysis.inverse_dynamics import METHODS as ID_METHODS
from borelli.analysis.inverse_kinematics import METHODS as IK_METHODS
from borelli.analysis.kinematics.differentiation import filter_settings
from borelli.analysis.labeling.recording_labels import check_marker_labels, name_markers
from borelli.analysis.motion import Motion
from borelli.analysis.option_values import option_value
from borelli.errors import SettingsError, list_names
from borelli.files.html_repr import fields_repr
from borelli.model.io import read_model
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.people.human import human
from borelli.people.partial import is_partial
from borelli.recording.clean import clean
from borelli.recording.cleaning.trim_to_visible import trim_to_visible
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording
from borelli.recording.joint_center_markers import use_joint_centers_as_markers
from borelli.recording.marker_map import read_marker_map
from borelli.recording.quality_checks import check_prepared
from borelli.recording.recording import Note, Recording

DEFAULT_MASS, DEFAULT_HEIGHT = 75.0, 1.75
"""Body mass [kg] and height [m] assumed for an unknown subject; a note reports it."""
MAX_UNMARKED_FRACTION = 0.3
"""Fraction of body mass without markers above which a note reports it; both arms are 0.1."""
PATHS = ("model", "static", "forces", "scale_setup", "ik_setup", "id_setup", "external_loads")
NUMBERS = ("mass", "height", "cutoff", "plate_cutoff", "start", "end", "marker_noise", "knee_width", "ankle_width")


@dataclass(frozen=True)
class AnalysisSettings:
    """Settings of an analysis.

    Attributes:
        model: Model file; None: a generic human of the given mass, height and sex.
        mass: Body mass [kg]; None: from the recording, else estimated from the force plates.
        height: Body height [m]; None: from the recording.
        sex: "male" or "female"; None: from the recording.
        fit: Fit the model to the recordings.
        static: Static calibration trial, in which the subject stands still.
        functional: Functional trials, in which the hips move far in several directions.
        hip_regression: Regression of hip centers, as in `fit_model`.
        knee_width: Width of the knee [m]; None: from the recording, else from height.
        ankle_width: Width of the ankle [m]; None: from the recording, else from height.
        forces: Separate file with the force plates of the recording.
        scale_setup: OpenSim's setup of its scale tool: the model is scaled by it instead of fitted.
        ik_setup: OpenSim's setup of inverse kinematics: marker weights, coordinate tasks and time range.
        id_setup: OpenSim's setup of inverse dynamics: cutoff with OpenSim's filter, external loads and time range.
        external_loads: OpenSim's external loads: the bodies on which the forces of a table act.
        filter: Low-pass filter of the coordinates, as in `inverse_dynamics`; None: the one that suits the forces.
        contact: Body that something without a plate supports, such as a seat ("pelvis") or a rail ("hand_r"): the force
            on it is estimated where plates do not support the subject. None: such a contact is only reported.
        plates: Use the force plates; if False, ground reaction forces are predicted from the motion.
        ik_method: Inverse kinematics method, as in `inverse_kinematics`.
        id_method: Inverse dynamics method, as in `inverse_dynamics`.
        cutoff: Low-pass cutoff for joint coordinates and force plates [Hz]; None: by the task (`task_cutoff`).
        plate_cutoff: Another cutoff for force plates [Hz]; 0: no filter; None: the same.
        reduce_residuals: Reduce residuals where plates record the full ground reaction force (`reduce_residuals`).
        muscles: Compute muscle forces; a generic human gets the muscles of `add_muscles`.
        start: Time of the first frame [s].
        end: Time of the last frame [s].
        ignore: Codes of errors of `borelli doctor` in spite of which the recordings are analyzed.
        reading: Options of `read_recording`: units, up, forward, skeleton, markers, marker_set.
        monte_carlo: Number of Monte Carlo repeats; 0: no uncertainty is computed.
        marker_noise: Standard deviation of marker noise along each axis [m]; None: estimated from the recording.
    """

    model: Path | None = None
    mass: float | None = None
    height: float | None = None
    sex: str | None = None
    fit: bool = True
    static: Path | None = None
    functional: tuple[Path, ...] = ()
    hip_regression: str = HIP_REGRESSIONS[0]
    knee_width: float | None = None
    ankle_width: float | None = None
    forces: Path | None = None
    scale_setup: Path | None = None
    ik_setup: Path | None = None
    id_setup: Path | None = None
    external_loads: Path | None = None
    filter: str | None = None
    contact: str | None = None
    plates: bool = True
    ik_method: str = IK_METHODS[0]
    id_method: str = ID_METHODS[0]
    cutoff: float | None = None
    plate_cutoff: float | None = None
    reduce_residuals: bool = False
    muscles: bool = False
    start: float = -np.inf
    end: float = np.inf
    ignore: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    monte_carlo: int = 0
    marker_noise: float | None = None

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        """Raise SettingsError for a value of the wrong type or an unknown method."""
        for name in PATHS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_path(value, name))
        for name in NUMBERS:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | np.number)):
                raise SettingsError(f"{name}: Expected a number, got {type(value).__name__} {value!r}.")
        functional = (self.functional,) if isinstance(self.functional, str | PathLike) else self.functional
        object.__setattr__(self, "functional", tuple(as_path(path, "functional") for path in functional))
        methods = (("ik_method", IK_METHODS), ("id_method", ID_METHODS), ("hip_regression", HIP_REGRESSIONS))
        for name, known in methods:
            object.__setattr__(self, name, option_value(name, str(getattr(self, name)), known))
        if self.filter is not None:
            filter_settings(self.filter, None)
        if self.reduce_residuals and self.id_method != ID_METHODS[0]:
            raise SettingsError(
                f'reduce_residuals: It applies to id_method "{ID_METHODS[0]}" only. Omit one of the two.'
            )


def as_path(value: object, name: str) -> Path:
    """Return a path given as text or as a path.

    Raises:
        SettingsError: The value is neither.
    """
    if isinstance(value, str | PathLike):
        return Path(value)
    raise SettingsError(f"{name}: Expected a path (text or Path), got {type(value).__name__}.")


def read_trial(path: Path, settings: AnalysisSettings) -> Recording:
    """Read and clean a recording: fill gaps, repair swapped labels and spikes, zero plates, assign loads to feet.

    Raises:
        SettingsError: The file has no markers, or a check of its quality found an error that is not to be ignored.
    """
    # markers stay unfiltered: coordinates are low-passed before differentiation
    cleaned = clean(_read_with_plates(path, settings), cutoff=None, start=settings.start, end=settings.end)
    checked = _check_quality(cleaned, path, settings)
    return trim_to_visible(checked, start=not np.isfinite(settings.start), end=not np.isfinite(settings.end))


def _check_quality(recording: Recording, path: Path, settings: AnalysisSettings) -> Recording:
    """Return the recording with notes on its issues; raise SettingsError for an error that is not to be ignored."""
    notes, known = [], {(note.code, note.text) for note in recording.notes}
    for issue in check_prepared(recording):
        if issue.severity == "error" and issue.code not in settings.ignore:
            raise SettingsError(
                f"{path.name}: {issue.text} ({issue.evidence}). Remedy: {issue.action}. To analyze it in spite of "
                f"this, add --ignore {issue.code}."
            )
        if (issue.code, issue.text) not in known:
            notes.append(
                Note(f"{issue.text} ({issue.where}: {issue.evidence})", "problem", issue.action, code=issue.code)
            )
    return recording.with_notes(*notes) if notes else recording


def _read_with_plates(path: Path, settings: AnalysisSettings) -> Recording:
    options = {key: value for key, value in settings.reading.items() if value is not None}
    recording = use_joint_centers_as_markers(read_recording(path, **options))
    if not recording.markers:
        raise SettingsError(f"{path.name}: The file has no markers{_alternative(recording, path)}")
    if settings.model is None:
        height = settings.height if settings.height is not None else np.nan
        recording = check_marker_labels(name_markers(recording, height), height)
    return recording if settings.forces is None else add_plates(recording, read_recording(settings.forces))


class CalibrationTrials(NamedTuple):
    """Trials that determine the joint centers."""

    static: Recording | None = None
    functional: tuple[Recording, ...] = ()


def read_calibration(settings: AnalysisSettings) -> CalibrationTrials:
    """Read the complete calibration trials; `start`, `end` and `forces` apply to the other trials only."""
    whole = replace(settings, forces=None, start=-np.inf, end=np.inf)
    static = None if settings.static is None else _read_calibration_trial(settings.static, whole)
    return CalibrationTrials(static, tuple(_read_calibration_trial(path, whole) for path in settings.functional))


def _read_calibration_trial(path: Path, settings: AnalysisSettings) -> Recording:
    """Read a calibration trial; a marker map that lists none of its labels is one of the other trials' labels."""
    plain = {name: value for name, value in settings.reading.items() if name != "markers"}
    if (markers := settings.reading.get("markers")) is not None:
        given = {name: value for name, value in plain.items() if value is not None}
        if not set(read_recording(path, **given).markers) & set(read_marker_map(markers)):
            settings = replace(settings, reading=plain)
    return read_trial(path, settings)


def fit_subject(settings: AnalysisSettings, trials: Sequence[Recording], calibration: CalibrationTrials) -> Fit:
    """Fit the model of the settings to trials."""
    return fit_model(
        generic_model(settings, trials[0]), list(trials), static=calibration.static, functional=calibration.functional,
        hip_regression=settings.hip_regression, knee_width=settings.knee_width, ankle_width=settings.ankle_width,
    )  # fmt: skip


def _alternative(recording: Recording, path: Path) -> str:
    if "plate_force" in recording.data:
        return f", only force plates. Pass the file with the markers, and add this one with --forces {path.name}."
    if "coordinate_value" in recording.data:
        return ", only joint angles. Pass the markers they were computed from, such as a .trc or .c3d file."
    return ". Pass a recording with markers, such as a .c3d or .trc file; `borelli info` lists the content of a file."


def generic_model(settings: AnalysisSettings, recording: Recording) -> Model:
    """Return the model before fitting: the one of the settings, or a human of the subject's size."""
    subject = recording.subject
    if settings.model is not None:
        model = read_model(settings.model)
        return scale_mass(model, settings.mass) if settings.mass is not None else model
    mass = settings.mass if settings.mass is not None else _positive(subject.get("mass"))
    height = settings.height if settings.height is not None else _positive(subject.get("height"))
    stated = str(subject.get("sex", "male"))
    sex = settings.sex or (stated if stated in ("male", "female") else "male")
    return human(mass or DEFAULT_MASS, height or DEFAULT_HEIGHT, sex)


def size_notes(settings: AnalysisSettings, recording: Recording) -> tuple[Note, ...]:
    """Return notes on the body mass, height and sex that had to be assumed."""
    if settings.model is not None:
        return ()
    notes = []
    for name, unit, assumed in (("mass", "kg", DEFAULT_MASS), ("height", "m", DEFAULT_HEIGHT)):
        if getattr(settings, name) is None and not _positive(recording.subject.get(name)):
            text = f"Body {name}: {assumed:g} {unit}, assumed, since neither the recording nor the settings state it. "
            # a fit replaces the height, but not the mass
            kind = "inferred" if name == "height" and settings.fit else "problem"
            notes.append(Note(f"{text}Results scale with it.", kind, f"--{name}", code=f"{name}_assumed"))
    if settings.sex is None and recording.subject.get("sex") not in ("male", "female"):
        text = "Sex: male, assumed, since neither the recording nor the settings state it. It selects the tables of "
        notes.append(Note(f"{text}segment masses and joint centers.", "inferred", "--sex", code="sex_assumed"))
    return tuple(notes)


def missing_marker_notes(motion: Motion) -> tuple[Note, ...]:
    """Return a note if much of the body mass has no markers, on its segments or distal to them.

    Parts of a partial body have a note of the fit.
    """
    model = motion.model
    if is_partial(model):
        return ()
    driven = {marker.body for marker in model.markers if marker.name in motion.data["marker"].values}
    parents = {joint.child: joint.parent for joint in model.joints if not joint.closes_loop}
    for name in tuple(driven):
        while (name := parents.get(name, "")) and name not in driven:
            driven.add(name)
    unmarked = [body for body in model.bodies if body.name not in driven]
    fraction = sum(body.mass for body in unmarked) / model.mass
    if fraction < MAX_UNMARKED_FRACTION:
        return ()
    text = (
        f"No markers are on {list_names([body.name for body in unmarked], 6)} ({100.0 * fraction:.0f} % of body mass). "
        "These segments stay in their rest pose, which affects predicted ground reaction forces, residuals and hip "
        "moments."
    )
    return (Note(text, "problem", "Put markers on the trunk.", code="segments_without_markers"),)


def _positive(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None

"""Motion from a stage file, from the coordinates of a model, or from a model fitted to a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.commands.detect_file import detect_kind, open_file
from borelli.commands.options import read_with
from borelli.errors import SettingsError, list_names

if TYPE_CHECKING:
    from borelli.analysis.motion import Motion
    from borelli.model.model import Model
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.recording.recording import Recording

MIN_NAMED_FRACTION = 0.5
"""Fraction of a model's free coordinates that a file must name to be a motion of that model."""


def load_motion(path: Path, settings: AnalysisSettings) -> Motion:
    """Load the motion in a file.

    A stage file contains one. A recording that names the coordinates of the model in the settings (an AMC with its ASF,
    a .mot with its .osim) is a motion of that model. To any other recording the model, or a human, is fitted; inverse
    kinematics then uses its markers or, for BVH and AMC, its joint centers.

    Raises:
        SettingsError: The file contains no motion.
    """
    kind = detect_kind(path)
    if kind == "stage":
        if settings.model is not None:
            raise SettingsError(f"{path}: The file contains a motion with its model. Omit --model.")
        stage = open_file(path).value
        motion: Motion = getattr(getattr(stage, "torques", stage), "motion", stage)
        return motion
    if kind != "recording":
        raise SettingsError(
            f"{path}: The file contains a {kind}. Pass a motion: .bvh, .amc, .mot, .c3d, .trc or motion.nc."
        )
    if settings.model is not None:
        from borelli.model.io import read_model

        recording, model = read_with(path, **settings.reading), read_model(settings.model)
        if named_fraction(recording, model) >= MIN_NAMED_FRACTION:
            if names := lengths_read_as_angles(recording, model):
                recording = _with_values(recording, read_with(path, **settings.reading, degrees=False), names)
            return motion_from_coordinates(recording, model, settings.start, settings.end)
    return _fit_and_follow(path, settings)


def named_fraction(recording: Recording, model: Model) -> float:
    """Return the fraction of a model's free coordinates that a recording contains."""
    free = _free_coordinates(model)
    if "coordinate_value" not in recording.data or not free:
        return 0.0
    return len(set(free) & set(recording.data["coordinate"].values.tolist())) / len(free)


def lengths_read_as_angles(recording: Recording, model: Model) -> list[str]:
    """Return the coordinates that are lengths in the model, but were read as angles because of their names."""
    units = dict(zip(recording.data["coordinate"].values, recording.data["coordinate_units"].values, strict=True))
    return [c.name for c in model.coordinates if not c.rotational and units.get(c.name) == "rad"]


def _with_values(recording: Recording, raw: Recording, names: list[str]) -> Recording:
    """Return the recording with coordinates from `raw`, which was read without conversion from degrees."""
    data = recording.data.copy(deep=True)
    for name in names:
        data["coordinate_value"].loc[{"coordinate": name}] = raw.data["coordinate_value"].sel(coordinate=name)
    return recording.with_data(data)


def motion_from_coordinates(recording: Recording, model: Model, start: float = -np.inf, end: float = np.inf) -> Motion:
    """Return the motion of a model from coordinates in a recording; missing ones stay at their defaults."""
    from borelli.analysis.motion import make_motion
    from borelli.recording.recording import Note

    time = recording.data["time"].values
    kept = (time >= start) & (time <= end)
    if not kept.any():
        raise SettingsError(
            f"{recording.name}: No frame lies between {start:g} and {end:g} s. Change --start or --end."
        )
    names = [c.name for c in model.coordinates]
    table = np.tile([c.default for c in model.coordinates], (int(kept.sum()), 1))
    known = recording.data["coordinate"].values.tolist()
    for i, name in enumerate(names):
        if name in known:
            table[:, i] = recording.data["coordinate_value"].values[kept, known.index(name)]
    missing = [name for name in _free_coordinates(model) if name not in known]
    notes: tuple[Note, ...] = ()
    if missing:
        text = f"The file has no values of {list_names(missing)}; they stay at their defaults."
        notes = (Note(text, "problem", code="missing_coordinates"),)
    return make_motion(model, table, time[kept], recording.rate, recording=recording, notes=notes)


def _free_coordinates(model: Model) -> list[str]:
    coupled = {coupling.coordinate for coupling in model.couplings}
    return [c.name for c in model.coordinates if not c.locked and c.name not in coupled]


def _fit_and_follow(path: Path, settings: AnalysisSettings) -> Motion:
    """Fit a model to a recording and run inverse kinematics."""
    from borelli.pipeline.analysis_settings import CalibrationTrials, fit_subject, read_trial, size_notes
    from borelli.pipeline.stages import StageSettings, run_inverse_kinematics

    trial = read_trial(path, settings)
    fit = fit_subject(settings, [trial], CalibrationTrials())
    motion = run_inverse_kinematics(trial, fit.model, StageSettings(ik_method=settings.ik_method))
    return replace(motion, notes=(*size_notes(settings, trial), *fit.notes, *motion.notes))

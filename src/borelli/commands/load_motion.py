"""A motion from whatever file holds one: a stage, the coordinates of a model, or what a body can be fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import SettingsError, list_names

if TYPE_CHECKING:
    from borelli.analysis.motion import Motion
    from borelli.model.model import Model
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.recording.recording import Recording

ENOUGH = 0.5
"""Share of a model's free coordinates that a file must name to be taken for theirs."""


def motion_of(path: Path, plan: AnalysisSettings) -> Motion:
    """The motion in a file.

    A stage has one. A recording that names the coordinates of the plan's model (an AMC with its ASF, a .mot with its
    .osim) is that model's motion. To any other the model, or a human, is fitted, and follows its markers or, of BVH and
    AMC, its joint centres.

    Raises:
        SettingsError: the file holds neither.
    """
    from borelli.commands.detect_file import kind_of, open_file

    kind = kind_of(path)
    if kind == "stage":
        if plan.model is not None:
            raise SettingsError(f"{path}: holds a motion with its model, so --model cannot be given")
        stage = open_file(path).thing
        found: Motion = getattr(getattr(stage, "torques", stage), "motion", stage)
        return found
    if kind != "recording":
        raise SettingsError(f"{path}: holds a {kind}; a motion is in a .bvh, .amc, .mot, .c3d, .trc or motion.nc")
    if plan.model is not None:
        from borelli.model.io import read_model
        from borelli.recording.io import read_recording

        given = {key: value for key, value in plan.reading.items() if value is not None}
        recording, model = read_recording(path, **given), read_model(plan.model)
        if named_share(recording, model) >= ENOUGH:
            if lengths_read_as_angles(recording, model):
                recording = with_lengths(recording, read_recording(path, **given, degrees=False), model)
            return stated_motion(recording, model, plan.start, plan.stop)
    return _fitted(path, plan)


def named_share(recording: Recording, model: Model) -> float:
    """Share of a model's free coordinates that a recording has values of."""
    free = _free(model)
    if "coordinate_value" not in recording.data or not free:
        return 0.0
    return len(set(free) & set(recording.data["coordinate"].values.tolist())) / len(free)


def lengths_read_as_angles(recording: Recording, model: Model) -> list[str]:
    """Coordinates that are lengths in the model, but angles by their names in a table, which knows no model."""
    units = dict(zip(recording.data["coordinate"].values, recording.data["coordinate_units"].values, strict=True))
    return [c.name for c in model.coordinates if not c.rotational and units.get(c.name) == "rad"]


def with_lengths(recording: Recording, raw: Recording, model: Model) -> Recording:
    """The recording with such coordinates as the table has them, `raw`, without a change from degrees."""
    data, names = recording.data.copy(deep=True), lengths_read_as_angles(recording, model)
    for name in names:
        data["coordinate_value"].loc[{"coordinate": name}] = raw.data["coordinate_value"].sel(coordinate=name)
    return recording.with_data(data)


def stated_motion(recording: Recording, model: Model, start: float = -np.inf, stop: float = np.inf) -> Motion:
    """The motion of a model whose coordinates a recording states; those it lacks stay at their defaults."""
    from borelli.analysis.motion import make_motion
    from borelli.recording.recording import Note

    time = recording.data["time"].values
    kept = (time >= start) & (time <= stop)
    if not kept.any():
        raise SettingsError(f"{recording.name}: nothing is left between {start:g} and {stop:g} s")
    names = [c.name for c in model.coordinates]
    table = np.tile([c.default for c in model.coordinates], (int(kept.sum()), 1))
    known = recording.data["coordinate"].values.tolist()
    for i, name in enumerate(names):
        if name in known:
            table[:, i] = recording.data["coordinates"].values[kept, known.index(name)]
    lacking = [name for name in _free(model) if name not in known]
    notes = [Note(f"the file has no {list_names(lacking)}: they stay at their defaults", "problem")] if lacking else []
    return make_motion(model, table, time[kept], recording.rate, recording=recording, notes=tuple(notes))


def _free(model: Model) -> list[str]:
    coupled = {coupling.coordinate for coupling in model.couplings}
    return [c.name for c in model.coordinates if not c.locked and c.name not in coupled]


def _fitted(path: Path, plan: AnalysisSettings) -> Motion:
    from dataclasses import replace

    from borelli.analysis.fit.fit_model import fit_model
    from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
    from borelli.pipeline.analysis_settings import generic_model, read_trial, size_notes

    trial = read_trial(path, plan)
    fit = fit_model(generic_model(plan, trial), [trial])
    motion = inverse_kinematics(fit.model, trial)
    return replace(motion, notes=(*size_notes(plan, trial), *fit.notes, *motion.notes))

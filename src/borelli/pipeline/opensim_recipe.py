"""OpenSim's setup files as settings of an analysis: scaling, inverse kinematics, inverse dynamics, external loads.

A setup file states what OpenSim's tools would do; what the user states as well has precedence. Files that it names are
looked for next to it, by their names: paths in setup files are often those of another computer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from borelli.analysis.dynamics.external_loads import Loads, name_by_feet
from borelli.analysis.opensim_setup import loads_from_setup, read_external_loads, read_id_setup, read_ik_setup
from borelli.analysis.scaling.opensim_scale_setup import read_scale_setup, with_opensim_markers
from borelli.analysis.scaling.scale_model import place_markers, scale_model
from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.model.model import Model
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.recording.io import read_recording
from borelli.recording.recording import Note, Recording


def named_file(setup: Path, name: str, what: str) -> Path:
    """Return the path of a file that a setup file names, next to it or in the folder above.

    Raises:
        SettingsError: The setup names no such file, or it is not there.
    """
    base = PureWindowsPath(name.strip()).name
    for folder in (setup.parent, setup.parent.parent):
        if base and (folder / base).is_file():
            return folder / base
    found = f"names {base!r}, which is not next to it" if base else "names none"
    raise SettingsError(f"{setup.name}: {what} is missing: the setup {found}. Put the file there, or pass it.")


def apply_setups(settings: AnalysisSettings) -> AnalysisSettings:
    """Return the settings with what OpenSim's setup files state, where the user states nothing."""
    changes: dict[str, Any] = {}
    ranges = []
    if settings.ik_setup is not None:
        ranges.append(read_ik_setup(settings.ik_setup).time_range)
    if settings.id_setup is not None:
        setup = read_id_setup(settings.id_setup)
        ranges.append(setup.time_range)
        changes["filter"] = settings.filter or ("none" if setup.cutoff is None else "opensim")
        changes["cutoff"] = setup.cutoff if settings.cutoff is None else settings.cutoff
        if settings.external_loads is None and setup.external_loads_file:
            changes["external_loads"] = named_file(
                settings.id_setup, setup.external_loads_file, "The file of external loads (--external-loads)"
            )
    loads = changes.get("external_loads", settings.external_loads)
    if loads is not None and settings.forces is None:
        changes["forces"] = named_file(loads, read_external_loads(loads).data_file, "The table of forces (--forces)")
    for low, high in ranges:
        changes["start"] = max(changes.get("start", settings.start), low)
        changes["end"] = min(changes.get("end", settings.end), high)
    if settings.scale_setup is not None:
        changes["fit"] = False
    return replace(settings, **changes) if changes else settings


def ik_options(model: Model, setup: Path | None) -> dict[str, Any]:
    """Return the options of `inverse_kinematics` that an InverseKinematicsTool file states.

    Tasks of markers and coordinates that the model does not have are left out, as in OpenSim.

    Raises:
        SettingsError: No marker of the setup is in the model, or a task follows a file.
    """
    if setup is None:
        return {}
    stated = read_ik_setup(setup)
    markers, coordinates = ({one.name for one in part} for part in (model.markers, model.coordinates))
    weights = {name: weight for name, weight in stated.marker_weights.items() if name in markers}
    if not any(weights.values()):
        raise SettingsError(
            f"{setup.name}: No marker of its tasks is in model {model.name!r}. Pass the setup's model with --model."
        )
    tasks = {name: task for name, task in stated.coordinate_tasks.items() if name in coordinates}
    followed = [name for name, task in tasks.items() if task.from_file and task.weight > 0.0]
    if followed:
        raise SettingsError(
            f"{setup.name}: The task of {followed[0]!r} follows a file, which is not supported. Set its value, or set "
            "apply to false."
        )
    return {
        "weights": weights, "pose_stiffness": {name: task.weight for name, task in tasks.items()},
        "rest": {name: task.value for name, task in tasks.items() if task.value is not None},
    }  # fmt: skip


def external_loads(setup: Path, table: Path) -> Loads:
    """Return the loads that an ExternalLoads file and its table of forces state; those on feet are named by side."""
    return name_by_feet(loads_from_setup(read_external_loads(setup), read_recording(table), at_origin=None))


def scale_files(settings: AnalysisSettings) -> tuple[Path | None, Path | None, Path | None]:
    """Return the unscaled model, the marker set and the static trial that a scale setup names, None where it does not.

    Raises:
        SettingsError: A file that the setup names is missing.
    """
    path = settings.scale_setup
    if path is None:
        return None, None, None
    setup = read_scale_setup(path)
    model = settings.model or named_file(path, setup.model_file, "The unscaled model (--model)")
    with_markers = setup.marker_set_file.strip() not in ("", "Unassigned")
    markers = named_file(path, setup.marker_set_file, "The marker set") if with_markers else None
    static = settings.static or named_file(path, setup.marker_file, "The static trial (--static)")
    return model, markers, static


def scale_by_setup(settings: AnalysisSettings, static: Recording | None) -> tuple[Model, tuple[Note, ...]]:
    """Return the model that OpenSim's scale tool would make: scaled to a static trial, with its markers moved onto it.

    Raises:
        SettingsError: The model, its markers or the static trial are missing.
    """
    path = settings.scale_setup
    assert path is not None
    setup = read_scale_setup(path)
    generic, markers, standing = scale_files(settings)
    assert generic is not None and standing is not None
    model = read_model(generic)
    fixed: tuple[str, ...] = ()
    if markers is not None:
        model, fixed = with_opensim_markers(model, markers)
    if static is None:
        static = read_recording(standing)
    scaled = scale_model(
        model, static, setup.measurements, factors=setup.factors, mass=settings.mass or setup.mass,
        keep_mass_fractions=setup.keep_mass_fractions, time=setup.time,
    )  # fmt: skip
    names = {marker.name for marker in model.markers}
    weights = {name: weight for name, weight in setup.marker_weights.items() if name in names}
    placed = scaled.model
    if any(weights.values()):
        placed = place_markers(
            placed, static, weights=weights, pose_stiffness=_known(setup.coordinate_weights, model),
            rest=_known(setup.coordinate_values, model), fixed=fixed, time=setup.placement_time,
        )  # fmt: skip
    factors = [value for factor in scaled.factors.values() for value in factor]
    sizes = f"factors {min(factors):.3f} to {max(factors):.3f}" if factors else "no body changes its size"
    text = (
        f"The model was scaled by {path.name}: {len(setup.measurements)} measurements, {sizes}, {placed.mass:.1f} kg; "
        "its markers were moved onto the static trial."
    )
    return placed, (*scaled.notes, Note(text, "stated", code="scale_setup"))


def _known(values: Mapping[str, float], model: Model) -> dict[str, float]:
    names = {c.name for c in model.coordinates}
    return {name: value for name, value in values.items() if name in names}

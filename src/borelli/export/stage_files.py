"""Stage files: results in netCDF 4 with everything they were computed from, so that an analysis can continue from them.

Each dataset is a group of the file: `recording`, `motion`, `torques`, `loads`, `muscles`, `energy`. Attributes of
the root group are the stage (`borelli_stage`), the model as text (`model`), and the rest as JSON (`borelli_metadata`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from borelli import __version__
from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import Motion
from borelli.analysis.muscle_forces import MuscleForces
from borelli.errors import FileFormatError
from borelli.export.stage_schema import check_energy, check_fit, check_loads, check_motion, check_muscles, check_torques
from borelli.files.netcdf import CREATE_AGAIN, NetcdfFile, open_netcdf
from borelli.files.netcdf_writer import write_netcdf
from borelli.files.text import MAX_NUMBER, parse_json
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.model.model import Model
from borelli.recording.formats.netcdf import make_recording, parse_notes
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("motion", "torques", "muscles", "energy")
KINDS = (*STAGES, "fit", "uncertainty")
"""Values of the attribute `borelli_stage`."""
LONG_TRIAL = 10_000
"""Frames beyond which the datasets of a file are opened, not loaded: values are read whenever they are used."""
Stage = Motion | Torques | MuscleForces | Energy


def write_stage(
    stage: Stage,
    path: str | PathLike[str],
    provenance: Mapping[str, Any] | None = None,
    *,
    previous: tuple[Stage, Path] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a motion, torques, muscle forces or energy atomically, with everything they were computed from.

    Args:
        stage: The result.
        path: Path of the file (.nc).
        provenance: Plain values to store, such as the key and the run time of the pipeline.
        previous: A stage and the file that contains it. If the result was computed from it, groups are copied from that
            file, which takes a tenth of the time.
        overwrite: Replace an existing file. The recording is never replaced.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> bo.write_stage(bo.inverse_kinematics(walk.model, walk.recording), "motion.nc")
    """
    import xarray

    motion, torques, muscles, energy = _parts(stage)
    groups: dict[str, Dataset] = {}
    if motion.recording is not None:
        groups["recording"] = motion.recording.data.drop_dims("channel", errors="ignore")
    groups["motion"] = motion.data
    if torques is not None:
        groups["torques"] = torques.data
        if torques.loads is not None:
            groups["loads"] = loads_dataset(torques.loads)
    if muscles is not None:
        groups["muscles"] = muscles.data
    if energy is not None:
        groups["energy"] = energy.data
    attrs = stage_attributes(stage, provenance or {})
    copied: tuple[str, ...] = ()
    if previous is not None and previous[0] is motion:
        copied = ("recording", "motion")
    elif previous is not None and previous[0] is torques:
        copied = ("recording", "motion", "torques", "loads")
    elif previous is not None and previous[0] is muscles:
        copied = ("recording", "motion", "torques", "loads", "muscles")
    write_netcdf(
        path,
        {"/": xarray.Dataset(attrs=attrs)} | {group: data for group, data in groups.items() if group not in copied},
        copy_of=previous[1] if previous is not None and copied else None,
        overwrite=overwrite,
        inputs=[motion.recording.path if motion.recording is not None else None],
    )


@dataclass(frozen=True)
class StageFile:
    """A file of an analysis whose checksum and structure are checked and whose arrays are not loaded.

    Attributes:
        file: The netCDF file.
        stage: One of `KINDS`.
        metadata: Settings, notes and provenance as JSON values.
    """

    file: NetcdfFile
    stage: str
    metadata: Mapping[str, Any]

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.file.path

    @property
    def provenance(self) -> dict[str, Any]:
        """Plain values that were stored with the stage."""
        return dict(self.table("provenance"))

    def model(self) -> Model:
        """Return the model of the stage."""
        text = self.file.attrs.get("model")
        if not isinstance(text, str):
            self.refuse("The model is missing")
        return model_from_text(text, self.path)

    def table(self, *keys: str) -> dict[str, Any]:
        """Return a table of the metadata."""
        table: Any = self.metadata
        for key in keys:
            table = table.get(key)
            if not isinstance(table, dict):
                self.refuse(f"{'.'.join(keys)} is missing in the metadata")
        return dict(table)

    def number(self, key: str) -> float:
        """Return a number of the metadata; NaN if it is null."""
        value = self.metadata.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float | None) or (value and abs(value) > MAX_NUMBER):
            self.refuse(f"{key} is {str(value)[:40]!r} in the metadata, expected a number")
        return float("nan") if value is None else float(value)

    def refuse(self, problem: str) -> NoReturn:
        """Raise `FileFormatError`."""
        raise FileFormatError(self.path, f"The file is damaged: {problem}. {CREATE_AGAIN}")


def open_stage_file(path: str | PathLike[str], known: Sequence[str] = KINDS) -> StageFile:
    """Check a file of an analysis and return it without its arrays.

    Raises:
        FileFormatError: The file is missing, damaged, or contains none of the known stages.
    """
    file = open_netcdf(path)
    stage = file.attrs.get("borelli_stage")
    if stage not in known:
        got = "no stage of an analysis" if stage is None else f"the stage {str(stage)[:40]!r}"
        raise FileFormatError(file.path, f"The file contains {got}, expected one of {', '.join(known)}.")
    return StageFile(file, str(stage), parse_json(file.attrs.get("borelli_metadata"), file.path, "borelli_metadata"))


def stage_attributes(stage: Stage, provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a stage file: everything that is not a dataset."""
    motion, torques, muscles, energy = _parts(stage)
    metadata: dict[str, Any] = {"motion": _settings_and_notes(motion.settings, motion.notes)}
    if motion.recording is not None:
        recording = motion.recording
        metadata["recording"] = {key: getattr(recording, key) for key in ("name", "path", "format")}
        metadata["recording"] |= {"subject": dict(recording.subject), "metadata": to_json_values(recording.metadata)}
        metadata["recording"]["notes"] = [asdict(note) for note in recording.notes]
    if torques is not None:
        metadata["torques"] = _settings_and_notes(torques.settings, torques.notes)
    if muscles is not None:
        metadata["muscles"] = _settings_and_notes(muscles.settings, muscles.notes)
    if energy is not None:
        metadata["energy"] = {"summary": dict(energy.summary), "notes": [asdict(note) for note in energy.notes]}
    return {
        "borelli_stage": _stage_name(stage), "borelli_version": __version__,
        "model": model_to_text(motion.model),
        "borelli_metadata": json.dumps({**metadata, "provenance": to_json_values(provenance)}),
    }  # fmt: skip


class StageParts(NamedTuple):
    """A stage and those that it was computed from."""

    motion: Motion
    torques: Torques | None = None
    muscles: MuscleForces | None = None
    energy: Energy | None = None


def _parts(stage: Stage) -> StageParts:
    match stage:
        case Energy():
            return StageParts(stage.torques.motion, stage.torques, stage.muscles, stage)
        case MuscleForces():
            return StageParts(stage.torques.motion, stage.torques, stage)
        case Torques():
            return StageParts(stage.motion, stage)
    return StageParts(stage)


def _stage_name(stage: Stage) -> str:
    kinds = (Motion, Torques, MuscleForces, Energy)
    return next(name for name, kind in zip(STAGES, kinds, strict=True) if isinstance(stage, kind))


def read_stage(path: str | PathLike[str]) -> Stage:
    """Read the motion, torques, muscle forces or energy that `write_stage` wrote.

    Datasets of more than 10,000 frames are opened, not loaded: their values are read from the file each time they are
    used, so that the file must stay, and `isel(time=...)` reads a part. Such torques have neither `loads` nor
    `derivatives`.

    Args:
        path: File that `write_stage` or `borelli analyze` wrote.

    Raises:
        FileFormatError: The file contains no stage, or is damaged.

    Examples:
        >>> reach = bo.synthetic_recording("reach")
        >>> motion = bo.inverse_kinematics(reach.model, reach.recording)
        >>> bo.write_stage(motion, "motion.nc")
        >>> bo.read_stage("motion.nc").data["coordinate_value"].equals(motion.data["coordinate_value"])
        True
    """
    return load_stage(open_stage_file(path, STAGES))


def load_stage(stage: StageFile) -> Stage:
    """Load the stage of a file, with everything it was computed from, and check it."""
    path, model = stage.path, stage.model()
    is_long = stage.file.open("motion").sizes.get("time", 0) > LONG_TRIAL
    read = stage.file.open if is_long else stage.file.load
    data = read("motion")
    check_motion(data, model, path)
    recording = None
    if stage.metadata.get("recording") is not None:
        recording = make_recording(read("recording"), stage.table("recording"), path)
    motion = Motion(model, data, recording, stage.table("motion", "settings"), _notes(stage, "motion"))
    if stage.stage == "motion":
        return motion
    torques = _load_torques(stage, motion, read("torques"), is_long)
    if stage.stage == "torques":
        return torques
    muscles = None
    if stage.stage == "muscles" or "muscles" in stage.file.groups:
        data = read("muscles")
        settings = stage.table("muscles", "settings")
        check_muscles(data, settings, torques.data, model, path)
        muscles = MuscleForces(torques, data, settings, _notes(stage, "muscles"))
        if stage.stage == "muscles":
            return muscles
    data, summary = read("energy"), stage.table("energy").get("summary")
    check_energy(data, summary, torques.data, model, path)
    return Energy(torques, data, dict(summary or {}), _notes(stage, "energy"), muscles)


def _load_torques(stage: StageFile, motion: Motion, data: Dataset, is_long: bool) -> Torques:
    settings = stage.table("torques", "settings")
    check_torques(data, motion.model, stage.path)
    curves = None
    if settings.get("method") == "newton_euler" and not is_long:
        preset, cutoff = settings.get("filter"), settings.get("cutoff_hz")
        if not isinstance(preset, str) or isinstance(cutoff, bool) or not isinstance(cutoff, int | float | None):
            stage.refuse("The filter of the torques is not stated")
        if cutoff is not None and not abs(cutoff) < MAX_NUMBER:
            stage.refuse("The cutoff of the torques is not a frequency")
        curves = differentiate(motion, filter=preset, cutoff=cutoff)
        if not np.array_equal(curves.time, data["time"].values):
            stage.refuse("The times of motion and torques differ")
    elif not np.isin(data["time"].values, motion.data["time"].values).all():
        stage.refuse("The times of motion and torques differ")
    loads = _load_loads(stage, motion.model) if "loads" in stage.file.groups and not is_long else None
    return Torques(motion, data, settings, _notes(stage, "torques"), curves, loads)


def write_fit(fit: Fit, path: Path, provenance: Mapping[str, Any] | None = None, *, overwrite: bool = False) -> None:
    """Write a fit atomically as netCDF 4, with its model as text."""
    metadata = {
        "train_rms": fit.train_rms, "held_out_rms": to_json_values(fit.held_out_rms), "iterations": fit.iterations,
        "notes": [asdict(note) for note in fit.notes], "provenance": to_json_values(provenance or {}),
    }  # fmt: skip
    attrs = {"borelli_stage": "fit", "borelli_version": __version__, "model": model_to_text(fit.model)}
    data = fit.data.assign_attrs(attrs, borelli_metadata=json.dumps(metadata))
    write_netcdf(path, {"/": data}, overwrite=overwrite)


def read_fit(path: Path) -> Fit:
    """Read the fit that `write_fit` wrote.

    Raises:
        FileFormatError: The file contains no fit, or is damaged.
    """
    return load_fit(open_stage_file(path, ("fit",)))


def load_fit(stage: StageFile) -> Fit:
    """Load the fit of a file and check it."""
    data, model = stage.file.load(), stage.model()
    check_fit(data, model, stage.path)
    iterations = stage.metadata.get("iterations")
    if not isinstance(iterations, int):
        stage.refuse("The number of iterations is missing")
    notes = parse_notes(stage.metadata.get("notes"), stage.path)
    return Fit(model, data, stage.number("train_rms"), stage.number("held_out_rms"), iterations, notes)


def read_provenance(path: Path) -> dict[str, Any]:
    """Return the provenance stored in a stage file; {} if the file is missing, damaged or of another kind."""
    try:
        return open_stage_file(path).provenance
    except FileFormatError:
        return {}


def to_json_values(value: Any) -> Any:
    """Return a value as JSON types: paths as text, arrays as lists, None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): to_json_values(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return to_json_values(value.tolist())
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [to_json_values(part) for part in value]
    if isinstance(value, np.generic):
        return to_json_values(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def _settings_and_notes(settings: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {"settings": to_json_values(settings), "notes": [asdict(note) for note in notes]}


def _notes(stage: StageFile, name: str) -> tuple[Note, ...]:
    return parse_notes(stage.table(name).get("notes"), stage.path)


def loads_dataset(loads: Loads) -> Dataset:
    """Return the loads as a dataset of a stage file."""
    import xarray

    dims = ("time", "load", "axis")
    dataset = xarray.Dataset(
        {
            "force": (dims, loads.force, {"units": "N", "frame": LAB}),
            "point": (dims, loads.point, {"units": "m", "frame": LAB}),
            "moment": (dims, loads.moment, {"units": "N m", "frame": LAB}),
        },
        {
            "time": ("time", loads.time, {"units": "s"}),
            "load": list(loads.name),
            "load_body": ("load", list(loads.body)),
            "axis": list("xyz"),
        },
        {"source": loads.source, "notes": json.dumps([asdict(note) for note in loads.notes])},
    )
    if loads.belt is not None:
        dataset.attrs["belt"] = list(loads.belt)
    if loads.cutoff is not None:
        dataset.attrs["cutoff_hz"] = float(loads.cutoff)
    if loads.computed is not None:
        dataset["computed"] = (dims[:2], loads.computed, {"units": "1"})
    return dataset


def _load_loads(stage: StageFile, model: Model) -> Loads:
    data = stage.file.load("loads")
    check_loads(data, model, stage.path)
    notes = parse_json(f'{{"notes": {data.attrs.get("notes")}}}', stage.path, "notes of the loads")["notes"]
    belt = tuple(map(float, data.attrs["belt"])) if "belt" in data.attrs else None
    return Loads(
        tuple(map(str, data["load"].values)), tuple(map(str, data["load_body"].values)), data["time"].values,
        data["force"].values, data["point"].values, data["moment"].values, str(data.attrs["source"]),
        parse_notes(notes, stage.path),
        belt,  # type: ignore[arg-type]
        data["computed"].values if "computed" in data else None,
        float(data.attrs["cutoff_hz"]) if "cutoff_hz" in data.attrs else None,
    )  # fmt: skip

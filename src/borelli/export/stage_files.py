"""Stage files: results in netCDF 4 with everything they were computed from, so that an analysis can continue from them.

Each dataset is a group of the file: `recording`, `motion`, `torques`, `loads`, `energy`. Attributes of the root group
are the stage (`borelli_stage`), the model as text (`model`), and the rest as JSON (`borelli_metadata`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import Motion
from borelli.errors import BorelliError, FileFormatError
from borelli.files.netcdf import DAMAGED
from borelli.files.netcdf_writer import write_netcdf
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("motion", "torques", "energy")
Stage = Motion | Torques | Energy


def write_stage(
    stage: Stage,
    path: str | PathLike[str],
    provenance: Mapping[str, Any] | None = None,
    *,
    previous: tuple[Stage, Path] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a motion, torques or energy atomically, with everything they were computed from.

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
    energy = stage if isinstance(stage, Energy) else None
    torques = energy.torques if energy else stage if isinstance(stage, Torques) else None
    motion = torques.motion if torques else stage
    assert isinstance(motion, Motion)
    groups: dict[str, Dataset] = {}
    metadata: dict[str, Any] = {"motion": _settings_and_notes(motion.settings, motion.notes)}
    if motion.recording is not None:
        recording = motion.recording
        groups["recording"] = recording.data.drop_dims("channel", errors="ignore")
        metadata["recording"] = {key: getattr(recording, key) for key in ("name", "path", "format")}
        metadata["recording"] |= {"subject": dict(recording.subject), "metadata": to_json_values(recording.metadata)}
        metadata["recording"]["notes"] = [asdict(note) for note in recording.notes]
    groups["motion"] = motion.data
    if torques is not None:
        groups["torques"] = torques.data
        metadata["torques"] = _settings_and_notes(torques.settings, torques.notes)
        if torques.loads is not None:
            groups["loads"] = _loads_dataset(torques.loads)
    if energy is not None:
        groups["energy"] = energy.data
        metadata["energy"] = {"summary": dict(energy.summary), "notes": [asdict(note) for note in energy.notes]}
    import xarray

    name = STAGES[(torques is not None) + (energy is not None)]
    attrs = {
        "borelli_stage": name, "borelli_version": __version__, "model": model_to_text(motion.model),
        "borelli_metadata": json.dumps({**metadata, "provenance": to_json_values(provenance or {})}),
    }  # fmt: skip
    copied: tuple[str, ...] = ()
    if previous is not None and previous[0] is motion:
        copied = ("recording", "motion")
    elif previous is not None and previous[0] is torques:
        copied = ("recording", "motion", "torques", "loads")
    write_netcdf(
        path,
        {"/": xarray.Dataset(attrs=attrs)} | {group: data for group, data in groups.items() if group not in copied},
        copy_of=previous[1] if previous is not None and copied else None,
        overwrite=overwrite,
        inputs=[motion.recording.path if motion.recording is not None else None],
    )


def read_stage(path: str | PathLike[str]) -> Stage:
    """Read the motion, torques or energy that `write_stage` wrote.

    Raises:
        FileFormatError: The file contains no stage, or is damaged.

    Examples:
        >>> reach = bo.synthetic_recording("reach")
        >>> motion = bo.inverse_kinematics(reach.model, reach.recording)
        >>> bo.write_stage(motion, "motion.nc")
        >>> bo.read_stage("motion.nc").data["coordinate_value"].equals(motion.data["coordinate_value"])
        True
    """
    path = Path(path)
    name, model_text, metadata = _read_root(path)
    try:
        model = model_from_text(model_text, path)
        motion = Motion(
            model, read_group(path, "motion"), _read_recording(path, metadata), dict(metadata["motion"]["settings"]),
            _notes(metadata["motion"]),
        )  # fmt: skip
        if name == "motion":
            return motion
        settings = dict(metadata["torques"]["settings"])
        curves = None
        if settings.get("method") == "newton_euler":
            curves = differentiate(motion, filter=settings["filter"], cutoff=settings.get("cutoff_hz"))
        torques = Torques(
            motion, read_group(path, "torques"), settings, _notes(metadata["torques"]), curves, _read_loads(path),
        )  # fmt: skip
        if name == "torques":
            return torques
        return Energy(torques, read_group(path, "energy"), metadata["energy"]["summary"], _notes(metadata["energy"]))
    except BorelliError:
        raise
    except DAMAGED as error:
        raise FileFormatError(path, f"The file is damaged: {' '.join(str(error).split())}") from None


def write_fit(fit: Fit, path: Path, provenance: Mapping[str, Any] | None = None, *, overwrite: bool = False) -> None:
    """Write a fit atomically as netCDF 4, with its model as text."""
    metadata = {
        "train_rms": fit.train_rms, "held_out_rms": to_json_values(fit.held_out_rms), "iterations": fit.iterations,
        "notes": [asdict(note) for note in fit.notes], "provenance": to_json_values(provenance or {}),
    }  # fmt: skip
    attrs = {"borelli_stage": "fit", "borelli_version": __version__, "model": model_to_text(fit.model)}
    data = fit.data.assign_attrs(attrs, borelli_metadata=json.dumps(metadata))
    write_netcdf(path, {"/": data}, overwrite=overwrite)


def read_fit(path: Path) -> Fit | None:
    """Read the fit that `write_fit` wrote; None if the file is missing or damaged."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
        metadata = json.loads(data.attrs["borelli_metadata"])
        held_out = float("nan") if metadata["held_out_rms"] is None else metadata["held_out_rms"]
        model = model_from_text(data.attrs["model"], path)
        return Fit(model, data, metadata["train_rms"], held_out, metadata["iterations"], _notes(metadata))
    except (*DAMAGED, BorelliError):
        return None


def read_provenance(path: Path) -> dict[str, Any]:
    """Return the provenance stored in a stage file; {} if the file is missing, damaged or of another kind."""
    try:
        return dict(_read_root(path, (*STAGES, "fit", "uncertainty"))[2].get("provenance", {}))
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


def _read_root(path: Path, known: Sequence[str] = STAGES) -> tuple[str, str, dict[str, Any]]:
    """Return the stage, the model's text and the metadata of a file."""
    import h5py

    if not path.is_file():
        raise FileFormatError(path, "The file does not exist.")
    try:
        with h5py.File(path, "r") as file:
            stage, text = (str(file.attrs[key]) for key in ("borelli_stage", "borelli_metadata"))
            model = str(file.attrs.get("model", ""))
        metadata = json.loads(text)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        problem = f"The file contains no motion, torques or energy of borelli: {' '.join(str(error).split())}."
        raise FileFormatError(path, problem) from None
    if stage not in known:
        raise FileFormatError(path, f"The file contains the stage {stage!r}; expected one of {', '.join(known)}.")
    return stage, model, metadata


def read_group(path: Path, group: str) -> Dataset:
    """Read one dataset of a stage file."""
    import xarray

    # xarray would decode the units "s" of a time as timestamps
    opened = xarray.open_dataset(path, engine="h5netcdf", group=group, decode_times=False, decode_timedelta=False)
    with opened as dataset:
        return dataset.load()


def _read_recording(path: Path, metadata: dict[str, Any]) -> Recording | None:
    fields = metadata.get("recording")
    if fields is None:
        return None
    return Recording(data=read_group(path, "recording"), **{**fields, "notes": _notes(fields)})


def _settings_and_notes(settings: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {"settings": to_json_values(settings), "notes": [asdict(note) for note in notes]}


def _notes(metadata: Mapping[str, Any]) -> tuple[Note, ...]:
    return tuple(Note(**note) for note in metadata["notes"])


def _loads_dataset(loads: Loads) -> Dataset:
    import xarray

    dims = ("time", "load", "axis")
    dataset = xarray.Dataset(
        {
            "force": (dims, loads.force, {"units": "N"}),
            "point": (dims, loads.point, {"units": "m"}),
            "moment": (dims, loads.moment, {"units": "N m"}),
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
    if loads.computed is not None:
        dataset["computed"] = (dims[:2], loads.computed, {"units": "1"})
    return dataset


def _read_loads(path: Path) -> Loads | None:
    import h5py

    with h5py.File(path, "r") as file:
        if "loads" not in file:
            return None
    data = read_group(path, "loads")
    notes = tuple(Note(**note) for note in json.loads(data.attrs["notes"]))
    belt = tuple(map(float, data.attrs["belt"])) if "belt" in data.attrs else None
    return Loads(
        tuple(map(str, data["load"].values)), tuple(map(str, data["load_body"].values)), data["time"].values,
        data["force"].values, data["point"].values, data["moment"].values, str(data.attrs["source"]), notes,
        belt,  # type: ignore[arg-type]
        data["computed"].values if "computed" in data else None,
    )  # fmt: skip

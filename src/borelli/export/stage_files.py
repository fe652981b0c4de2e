"""Stage files: results in netCDF 4 with everything they were computed from, so that an analysis can continue from them.

Each dataset is a group of the file: `recording`, `motion`, `torques`, `loads`, `energy`. Attributes of the root group
are the stage (`borelli_stage`), the model as text (`model`), and the rest as JSON (`borelli_metadata`).
"""

from __future__ import annotations

import json
import shutil
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
from borelli.files.atomic import atomic_path
from borelli.files.netcdf import DAMAGED
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("motion", "torques", "energy")
LONG_TRIAL = 10_000
"""Frames beyond which the datasets of a file are opened, not loaded: values are read whenever they are used."""
Stage = Motion | Torques | Energy


def write_stage(
    stage: Stage,
    path: str | PathLike[str],
    provenance: Mapping[str, Any] | None = None,
    *,
    previous: tuple[Stage, Path] | None = None,
) -> None:
    """Write a motion, torques or energy atomically, with everything they were computed from.

    Args:
        stage: The result.
        path: Path of the file (.nc).
        provenance: Plain values to store, such as the key and the run time of the pipeline.
        previous: A stage and the file that contains it. If the result was computed from it, groups are copied from that
            file, which takes a tenth of the time.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> bo.write_stage(bo.inverse_kinematics(walk.model, walk.recording), "motion.nc")
    """
    import xarray

    motion, torques, energy = _parts(stage)
    groups: dict[str, Dataset] = {}
    if motion.recording is not None:
        groups["recording"] = motion.recording.data.drop_dims("channel", errors="ignore")
    groups["motion"] = motion.data
    if torques is not None:
        groups["torques"] = torques.data
        if torques.loads is not None:
            groups["loads"] = loads_dataset(torques.loads)
    if energy is not None:
        groups["energy"] = energy.data
    attrs = stage_attributes(stage, provenance or {})
    copied: tuple[str, ...] = ()
    if previous is not None and previous[0] is motion:
        copied = ("recording", "motion")
    elif previous is not None and previous[0] is torques:
        copied = ("recording", "motion", "torques", "loads")
    with atomic_path(Path(path)) as temporary:
        if previous is not None and copied:
            shutil.copyfile(previous[1], temporary)
        xarray.Dataset(attrs=attrs).to_netcdf(temporary, engine="h5netcdf", mode="a")
        for group, data in groups.items():
            if group not in copied:
                data.to_netcdf(temporary, engine="h5netcdf", group=group, mode="a")


def stage_attributes(stage: Stage, provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a stage file: everything that is not a dataset."""
    motion, torques, energy = _parts(stage)
    metadata: dict[str, Any] = {"motion": _settings_and_notes(motion.settings, motion.notes)}
    if motion.recording is not None:
        recording = motion.recording
        metadata["recording"] = {key: getattr(recording, key) for key in ("name", "path", "format")}
        metadata["recording"] |= {"subject": dict(recording.subject), "metadata": to_json_values(recording.metadata)}
        metadata["recording"]["notes"] = [asdict(note) for note in recording.notes]
    if torques is not None:
        metadata["torques"] = _settings_and_notes(torques.settings, torques.notes)
    if energy is not None:
        metadata["energy"] = {"summary": dict(energy.summary), "notes": [asdict(note) for note in energy.notes]}
    return {
        "borelli_stage": STAGES[(torques is not None) + (energy is not None)], "borelli_version": __version__,
        "model": model_to_text(motion.model),
        "borelli_metadata": json.dumps({**metadata, "provenance": to_json_values(provenance)}),
    }  # fmt: skip


def _parts(stage: Stage) -> tuple[Motion, Torques | None, Energy | None]:
    """Return a stage and those that it was computed from."""
    energy = stage if isinstance(stage, Energy) else None
    torques = energy.torques if energy else stage if isinstance(stage, Torques) else None
    motion = torques.motion if torques else stage
    assert isinstance(motion, Motion)
    return motion, torques, energy


def read_stage(path: str | PathLike[str]) -> Stage:
    """Read the motion, torques or energy that `write_stage` wrote.

    Datasets of more than 10,000 frames are opened, not loaded: their values are read from the file each time they are
    used, so that the file must stay, and `isel(time=...)` reads a part. Such torques have neither `loads` nor
    `derivatives`.

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
        whole = _count_frames(path) <= LONG_TRIAL
        motion = Motion(
            model, read_group(path, "motion", load=whole), _read_recording(path, metadata, whole),
            dict(metadata["motion"]["settings"]), _notes(metadata["motion"]),
        )  # fmt: skip
        if name == "motion":
            return motion
        settings = dict(metadata["torques"]["settings"])
        curves = None
        if whole and settings.get("method") == "newton_euler":
            curves = differentiate(motion, filter=settings["filter"], cutoff=settings.get("cutoff_hz"))
        torques = Torques(
            motion, read_group(path, "torques", load=whole), settings, _notes(metadata["torques"]), curves,
            _read_loads(path) if whole else None,
        )  # fmt: skip
        if name == "torques":
            return torques
        data = read_group(path, "energy", load=whole)
        return Energy(torques, data, metadata["energy"]["summary"], _notes(metadata["energy"]))
    except BorelliError:
        raise
    except DAMAGED as error:
        raise FileFormatError(path, f"The file is damaged: {' '.join(str(error).split())}") from None


def write_fit(fit: Fit, path: Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a fit atomically as netCDF 4, with its model as text."""
    metadata = {
        "train_rms": fit.train_rms, "held_out_rms": to_json_values(fit.held_out_rms), "iterations": fit.iterations,
        "notes": [asdict(note) for note in fit.notes], "provenance": to_json_values(provenance or {}),
    }  # fmt: skip
    attrs = {"borelli_stage": "fit", "borelli_version": __version__, "model": model_to_text(fit.model)}
    with atomic_path(path) as temporary:
        fit.data.assign_attrs(attrs, borelli_metadata=json.dumps(metadata)).to_netcdf(temporary, engine="h5netcdf")


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


def read_group(path: Path, group: str, *, load: bool = True) -> Dataset:
    """Read one dataset of a stage file, or only open it: its values are then read whenever they are used."""
    import xarray

    # xarray would decode the units "s" of a time as timestamps
    opened = xarray.open_dataset(
        path, engine="h5netcdf", group=group, decode_times=False, decode_timedelta=False, cache=load
    )
    if not load:
        return opened
    with opened as dataset:
        return dataset.load()


def has_group(path: Path, group: str) -> bool:
    """Return whether a stage file has a dataset of this name."""
    import h5py

    with h5py.File(path, "r") as file:
        return group in file


def _count_frames(path: Path) -> int:
    import h5py

    with h5py.File(path, "r") as file:
        return len(file["motion/time"])


def _read_recording(path: Path, metadata: dict[str, Any], load: bool) -> Recording | None:
    fields = metadata.get("recording")
    if fields is None:
        return None
    return Recording(data=read_group(path, "recording", load=load), **{**fields, "notes": _notes(fields)})


def _settings_and_notes(settings: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {"settings": to_json_values(settings), "notes": [asdict(note) for note in notes]}


def _notes(metadata: Mapping[str, Any]) -> tuple[Note, ...]:
    return tuple(Note(**note) for note in metadata["notes"])


def loads_dataset(loads: Loads) -> Dataset:
    """Return the loads as a dataset of a stage file."""
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
    if not has_group(path, "loads"):
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

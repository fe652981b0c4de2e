"""Results of a stage as netCDF 4 files that hold all they were made from: a stage can be taken up where it was left.

Each dataset is a group of the file: `recording`, `motion`, `torques`, `loads`, `energy`. The root's attributes say what
it is (`borelli_stage`), which model moved (`model`, its text), and the rest as JSON (`borelli_about`).
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
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.recording.formats.netcdf import DAMAGED
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("motion", "torques", "energy")
Stage = Motion | Torques | Energy


def write_stage(
    stage: Stage,
    path: str | PathLike[str],
    about: Mapping[str, Any] | None = None,
    *,
    upon: tuple[Stage, Path] | None = None,
) -> None:
    """Writes a motion, torques or energy, with all they were made from: whole or not at all.

    Args:
        stage: The result.
        path: Where; ends in .nc.
        about: What else to keep, as plain values: the key and the seconds of the pipeline.
        upon: A stage this may be made from, and the file that holds it: then its groups are copied from there, which
            takes a tenth of the time of writing them.
    """
    energy = stage if isinstance(stage, Energy) else None
    torques = energy.torques if energy else stage if isinstance(stage, Torques) else None
    motion = torques.motion if torques else stage
    assert isinstance(motion, Motion)
    groups: dict[str, Dataset] = {}
    told: dict[str, Any] = {"motion": _told(motion.settings, motion.notes)}
    if motion.recording is not None:
        recording = motion.recording
        groups["recording"] = recording.data.drop_dims("channel", errors="ignore")
        told["recording"] = {key: getattr(recording, key) for key in ("name", "path", "format")}
        told["recording"] |= {"subject": dict(recording.subject), "metadata": to_json_values(recording.metadata)}
        told["recording"]["notes"] = [asdict(note) for note in recording.notes]
    groups["motion"] = motion.data
    if torques is not None:
        groups["torques"] = torques.data
        told["torques"] = _told(torques.settings, torques.notes)
        if torques.loads is not None:
            groups["loads"] = _of_loads(torques.loads)
    if energy is not None:
        groups["energy"] = energy.data
        told["energy"] = {"summary": dict(energy.summary), "notes": [asdict(note) for note in energy.notes]}
    import xarray

    name = STAGES[(torques is not None) + (energy is not None)]
    attrs = {
        "borelli_stage": name, "borelli_version": __version__, "model": model_to_text(motion.model),
        "borelli_about": json.dumps({**told, "made": to_json_values(about or {})}),
    }  # fmt: skip
    copied: tuple[str, ...] = ()
    if upon is not None and upon[0] is motion:
        copied = ("recording", "motion")
    elif upon is not None and upon[0] is torques:
        copied = ("recording", "motion", "torques", "loads")
    with atomic_path(Path(path)) as temporary:
        if upon is not None and copied:
            shutil.copyfile(upon[1], temporary)
        xarray.Dataset(attrs=attrs).to_netcdf(temporary, engine="h5netcdf", mode="a")
        for group, data in groups.items():
            if group not in copied:
                data.to_netcdf(temporary, engine="h5netcdf", group=group, mode="a")


def read_stage(path: str | PathLike[str]) -> Stage:
    """The motion, torques or energy that `write_stage` wrote.

    Raises:
        FileFormatError: if the file holds none, or is damaged.
    """
    path = Path(path)
    name, model_text, told = _head(path)
    try:
        model = model_from_text(model_text, path)
        motion = Motion(
            model, read_group(path, "motion"), _recording(path, told), dict(told["motion"]["settings"]),
            _notes(told["motion"]),
        )  # fmt: skip
        if name == "motion":
            return motion
        settings = dict(told["torques"]["settings"])
        curves = None
        if settings.get("method") == "newton_euler":
            curves = differentiate(motion, filter=settings["filter"], cutoff=settings.get("cutoff_hz"))
        torques = Torques(
            motion, read_group(path, "torques"), settings, _notes(told["torques"]), curves, _loads_of(path),
        )  # fmt: skip
        if name == "torques":
            return torques
        return Energy(torques, read_group(path, "energy"), told["energy"]["summary"], _notes(told["energy"]))
    except BorelliError:
        raise
    except DAMAGED as error:
        raise FileFormatError(path, f"is damaged: {' '.join(str(error).split())}") from None


def write_fit(fit: Fit, path: Path, about: Mapping[str, Any] | None = None) -> None:
    """Writes a fit as netCDF 4, its model as text in it: whole or not at all."""
    told = {
        "train_rms": fit.train_rms, "held_out_rms": to_json_values(fit.held_out_rms), "iterations": fit.iterations,
        "notes": [asdict(note) for note in fit.notes], "made": to_json_values(about or {}),
    }  # fmt: skip
    attrs = {"borelli_stage": "fit", "borelli_version": __version__, "model": model_to_text(fit.model)}
    with atomic_path(path) as temporary:
        fit.data.assign_attrs(attrs, borelli_about=json.dumps(told)).to_netcdf(temporary, engine="h5netcdf")


def read_fit(path: Path) -> Fit | None:
    """The fit that `write_fit` wrote; None if the file is not there or is damaged."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
        told = json.loads(data.attrs["borelli_about"])
        notes = tuple(Note(**note) for note in told["notes"])
        held_out = float("nan") if told["held_out_rms"] is None else told["held_out_rms"]
        model = model_from_text(data.attrs["model"], path)
        return Fit(model, data, told["train_rms"], held_out, told["iterations"], notes)
    except (*DAMAGED, BorelliError):  # a fit is soon made anew
        return None


def read_provenance(path: Path) -> dict[str, Any]:
    """What `write_stage` was told to keep besides; {} where the file is not there, is none of ours or is damaged."""
    try:
        return dict(_head(path, (*STAGES, "fit", "bands"))[2].get("made", {}))
    except FileFormatError:
        return {}


def to_json_values(value: Any) -> Any:
    """A value that JSON can say: paths as text, arrays as lists, None for what is not finite."""
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


def _head(path: Path, known: Sequence[str] = STAGES) -> tuple[str, str, dict[str, Any]]:
    """Stage, model and JSON of a file."""
    import h5py

    if not path.is_file():
        raise FileFormatError(path, "cannot be read: no such file")
    try:
        with h5py.File(path, "r") as file:
            found = {key: str(file.attrs[key]) for key in ("borelli_stage", "borelli_about")}
            model = str(file.attrs.get("model", ""))
        told = json.loads(found["borelli_about"])
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        what = f"holds no motion, torques or energy of borelli: {' '.join(str(error).split())}"
        raise FileFormatError(path, what) from None
    if found["borelli_stage"] not in known:
        raise FileFormatError(path, f"holds a stage {found['borelli_stage']!r}, which is none of {', '.join(known)}")
    return found["borelli_stage"], model, told


def read_group(path: Path, group: str) -> Dataset:
    """One dataset of a stage's file."""
    import xarray

    # the units "s" of a time would otherwise make timestamps of it
    opened = xarray.open_dataset(path, engine="h5netcdf", group=group, decode_times=False, decode_timedelta=False)
    with opened as dataset:
        return dataset.load()


def _recording(path: Path, told: dict[str, Any]) -> Recording | None:
    about = told.get("recording")
    if about is None:
        return None
    notes = tuple(Note(**note) for note in about["notes"])
    return Recording(
        data=read_group(path, "recording"),
        notes=notes,
        **{key: value for key, value in about.items() if key != "notes"},
    )


def _told(settings: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {"settings": to_json_values(settings), "notes": [asdict(note) for note in notes]}


def _notes(about: Mapping[str, Any]) -> tuple[Note, ...]:
    return tuple(Note(**note) for note in about["notes"])


def _of_loads(loads: Loads) -> Dataset:
    import xarray

    dims = ("time", "load", "axis")
    found = xarray.Dataset(
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
        found.attrs["belt"] = list(loads.belt)
    if loads.computed is not None:
        found["computed"] = (dims[:2], loads.computed, {"units": "1"})
    return found


def _loads_of(path: Path) -> Loads | None:
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

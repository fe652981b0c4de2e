"""Variables of muscles and ligaments in the dataset of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import list_names
from borelli.model.model import Model
from borelli.muscles.hill import STATUS
from borelli.physics.muscle_step.arrays import MuscleRecord

if TYPE_CHECKING:
    import xarray


def add_muscles(data: xarray.Dataset, model: Model, record: MuscleRecord) -> xarray.Dataset:
    """Return the dataset of a simulation with its muscles and ligaments."""
    count = len(model.muscles)
    muscles = {
        "muscle_excitation": (record.excitation, "1"),
        "muscle_activation": (record.muscle[:, :, 0], "1"),
        "muscle_force": (record.tension[:, :count], "N"),
        "muscle_length": (record.length[:, :count], "m"),
        "muscle_velocity": (record.velocity[:, :count], "m/s"),
        "fiber_length": (record.muscle[:, :, 1], "m"),
        "fiber_velocity": (record.fiber_velocity, "m/s"),
    }
    ligaments = {
        "ligament_force": (record.tension[:, count:], "N"),
        "ligament_length": (record.length[:, count:], "m"),
    }
    by_muscle, by_ligament = ("time", "muscle"), ("time", "ligament")
    variables: dict[str, Any] = {
        name: (by_muscle, values, {"units": units}) for name, (values, units) in muscles.items()
    }
    meaning = "; ".join(f"{code}: {text}" for code, text in STATUS.items())
    variables["muscle_status"] = (by_muscle, record.status, {"units": "1", "meaning": meaning})
    labels = {"muscle": [muscle.name for muscle in model.muscles]}
    if model.ligaments:
        variables |= {name: (by_ligament, values, {"units": units}) for name, (values, units) in ligaments.items()}
        labels["ligament"] = [ligament.name for ligament in model.ligaments]
    result = data.assign(variables).assign_coords(labels)
    result.attrs["notes"] = "; ".join(filter(None, (data.attrs["notes"], *_path_notes(model, record))))
    return result


def _path_notes(model: Model, record: MuscleRecord) -> list[str]:
    """Return a note on paths that were not found on a surface."""
    missed = np.mean(record.path_found == 0, axis=0)
    names = [*(muscle.name for muscle in model.muscles), *(ligament.name for ligament in model.ligaments)]
    bad = [f"{name} ({part:.0%} of frames)" for name, part in zip(names, missed, strict=True) if part > 0.0]
    return [f"Paths over a surface were not found and are plane sections: {list_names(bad)}."] if bad else []

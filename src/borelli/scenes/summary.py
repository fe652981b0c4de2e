"""A result in a few numbers: what a person wants to know before looking closer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from borelli.model.formats.native import model_from_text

if TYPE_CHECKING:
    from xarray import Dataset


def summary(dataset: Dataset) -> dict[str, float]:
    """Key figures of a run, each named with its unit."""
    model = model_from_text(dataset.attrs["model"])
    energy = (dataset["kinetic_energy"] + dataset["potential_energy"]).values
    force = dataset["ground_reaction_force"].values.sum(axis=1)
    late = dataset["time"].values >= dataset["time"].values[-1] - 0.25
    figures = {
        "duration [s]": float(dataset["time"][-1] - dataset["time"][0]),
        "step [s]": float(dataset.attrs["step_s"]),
        "bodies": float(len(model.bodies)),
        "coordinates": float(dataset.sizes.get("coordinate", 0)),
        "mass [kg]": model.mass,
        "energy at the start [J]": float(energy[0]),
        "energy change [J]": float(energy[-1] - energy[0]),
        "largest joint error [mm]": 1e3 * float(dataset["joint_gap"].max()),
        "solver iterations per step": float(dataset["solver_iterations"].mean()),
    }
    if not model.ground and not model.self_collision:
        return figures
    return figures | {
        "steps with friction unsettled": float((dataset["solver_status"] != 0).sum()),
        "weight [N]": model.mass * float(np.linalg.norm(model.gravity)),
        "vertical ground force, last quarter second [N]": float(force[late, 2].mean()),
    }

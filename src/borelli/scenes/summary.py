"""Summary of a simulation in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from borelli.model.formats.native import model_from_text
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED

if TYPE_CHECKING:
    from xarray import Dataset


def summary(dataset: Dataset) -> dict[str, float]:
    """Return metrics of a run, each named with its unit."""
    model = model_from_text(dataset.attrs["model"])
    energy = (dataset["kinetic_energy"] + dataset["potential_energy"]).values
    force = dataset["ground_reaction_force"].values.sum(axis=1)
    late = dataset["time"].values >= dataset["time"].values[-1] - 0.25
    metrics = {
        "duration [s]": float(dataset["time"][-1] - dataset["time"][0]),
        "step [s]": float(dataset.attrs["step_s"]),
        "bodies": float(len(model.bodies)),
        "coordinates": float(dataset.sizes.get("coordinate", 0)),
        "mass [kg]": model.mass,
        "energy at the start [J]": float(energy[0]),
        "energy change [J]": float(energy[-1] - energy[0]),
        "largest joint gap [mm]": 1e3 * float(dataset["joint_gap"].max()),
        "solver iterations per step": float(dataset["solver_iterations"].mean()),
    }
    if not model.ground and not model.self_collision:
        return metrics
    return metrics | {
        "steps without converged friction": float((dataset["solver_status"] & FRICTION_NOT_CONVERGED > 0).sum()),
        "weight [N]": model.mass * float(np.linalg.norm(model.gravity)),
        "vertical ground reaction force, last quarter second [N]": float(force[late, 2].mean()),
    }

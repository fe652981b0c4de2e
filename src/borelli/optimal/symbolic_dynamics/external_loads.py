"""Measured loads as functions of time: cubic splines through the samples of force, point and moment."""

from __future__ import annotations

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.motion import to_model_axes
from borelli.errors import ModelError, unknown_name
from borelli.model.model import Model
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.time_series import TimeSeries
from borelli.optimal.symbolic_dynamics.tree_dynamics import Wrench
from borelli.optimal.symbolic_dynamics.vectors import identifier

LOAD_SIZE = 9
"""Numbers of a load: force, point and moment."""


def load_series(model: Model, loads: Loads) -> TimeSeries:
    """Return the loads over time: force, point, moment of each, in the model's axes.

    Raises:
        ModelError: if a load acts on an unknown body.
        SettingsError: if there are too few samples, or values are NaN.
    """
    names = [body.name for body in model.bodies]
    for body in loads.body:
        if body not in names:
            raise ModelError(f"external_loads: {unknown_name('body', body, names)}.")
    filled = loads.at(np.asarray(loads.time))
    rotation = to_model_axes(model)
    values = np.concatenate([filled.force, filled.point, filled.moment], axis=2).reshape(len(loads.time), -1, 3, 3)
    values = np.einsum("ij,tlkj->tlki", rotation, values).reshape(len(loads.time), -1)
    names = [
        f"{identifier(load)}_load_{part}_{axis}"
        for load in loads.name
        for part in ("force", "point", "moment")
        for axis in "xyz"
    ]
    return TimeSeries(tuple(names), np.asarray(loads.time, float), values)


def load_wrenches(model: Model, loads: Loads, values: ca.SX) -> list[Wrench]:
    """Return the wrenches of loads from their numbers (9 loads,)."""
    names = [body.name for body in model.bodies]
    wrenches = []
    for k, body in enumerate(loads.body):
        own = [values[LOAD_SIZE * k + i] for i in range(LOAD_SIZE)]
        wrenches.append(Wrench(names.index(body), own[0:3], own[3:6], own[6:9]))
    return wrenches

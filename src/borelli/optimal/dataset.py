"""Solutions as datasets of the common schema: all variables by name, and coordinates, torques and muscles as elsewhere.

States `q` and `q_speed` are a coordinate and its velocity; `q_torque` is a torque; `m_activation` and `m_excitation`
belong to the muscle `m`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.optimal.certificate.resimulation import Resimulation
from borelli.optimal.problem import Problem
from borelli.optimal.system import Variable, names_of
from borelli.optimal.transcription.trajectory import Trajectory

if TYPE_CHECKING:
    from xarray import Dataset

SPEED, TORQUE, ACTIVATION, EXCITATION = "_speed", "_torque", "_activation", "_excitation"
"""Endings of the names of variables that have a place in the schema."""


def make_dataset(problem: Problem, trajectories: Sequence[Trajectory]) -> Dataset:
    """Return all phases as one dataset; the end of a phase and the start of the next are two points."""
    import xarray

    time = np.concatenate([part.time for part in trajectories])
    tables: dict[str, tuple[list[str], Any, list[str]]] = {}
    for kind, value, rate in (("state", "x", "xdot"), ("control", "u", "udot"), ("algebraic", "z", None)):
        variables = _variables(problem, f"{kind}s")
        names = list(names_of(variables))
        units = [v.unit for v in variables]
        tables[kind] = (names, _stack(trajectories, names, f"{kind}s", value), units)
        if rate is not None:
            tables[f"{kind}_rate"] = (names, _stack(trajectories, names, f"{kind}s", rate), units)
    outputs = list(dict.fromkeys(name for phase in problem.phases for name in phase.system.output_names))
    stated = {name: unit for phase in problem.phases for name, unit in phase.system.output_units.items()}
    values = _stack(trajectories, outputs, "output_names", "outputs")
    tables["output"] = (outputs, values, [stated.get(name, "1") for name in outputs])
    parameters = problem.all_parameters
    data: dict[str, Any] = {}
    coords: dict[str, Any] = {
        "time": ("time", time, {"units": "s"}),
        "phase": ("time", np.concatenate([[part.phase.name] * len(part.time) for part in trajectories])),
        "element_end": ("time", np.concatenate([part.edges for part in trajectories]).astype(np.int8)),
    }
    for kind, (names, table, column_units) in tables.items():
        base = kind.removesuffix("_rate")
        if not names:
            continue
        unit = f"{_common(column_units)} per s" if kind.endswith("_rate") else _common(column_units)
        variable = kind if kind.endswith("_rate") else f"{kind}_value"
        data[variable] = (("time", base), table, {"units": unit})
        coords[base] = names
        coords[f"{base}_units"] = (base, column_units)
    data |= _schema_variables(tables, coords)
    if parameters:
        unit = _common([v.unit for v in parameters])
        data["parameter_value"] = ("parameter", trajectories[0].parameters, {"units": unit})
        coords["parameter"] = list(names_of(parameters))
    data["phase_duration"] = ("phase_name", [part.duration for part in trajectories], {"units": "s"})
    coords["phase_name"] = [part.phase.name for part in trajectories]
    return xarray.Dataset(data, coords)


def add_defects(dataset: Dataset, trajectories: Sequence[Trajectory], again: Sequence[Resimulation]) -> Dataset:
    """Return the dataset with the one-step defect of every state in every element, at the end of the element."""
    if not again:
        return dataset
    names = dataset["state"].values.tolist()
    table = np.full(dataset["state_value"].shape, np.nan)
    first = 0
    for part, result in zip(trajectories, again, strict=True):
        rows = first + np.flatnonzero(part.edges)[1:]
        for i, name in enumerate(names_of(part.phase.system.states)):
            table[rows, names.index(name)] = result.defects[:, i]
        first += len(part.time)
    attrs = {"units": dataset["state_value"].attrs["units"], "long_name": "one-step defect"}
    dataset["state_defect"] = (("time", "state"), table, attrs)
    return dataset


def _variables(problem: Problem, kind: str) -> list[Variable]:
    """Return the variables of all systems of one kind, each name once."""
    found: dict[str, Variable] = {}
    for phase in problem.phases:
        for variable in getattr(phase.system, kind):
            found.setdefault(variable.name, variable)
    return list(found.values())


def _stack(trajectories: Sequence[Trajectory], names: Sequence[str], kind: str, field: str) -> Any:
    """Return the values of all phases under these names; NaN where a phase does not have one."""
    parts = []
    for part in trajectories:
        table = np.full((len(part.time), len(names)), np.nan)
        own = getattr(part.phase.system, kind)
        for i, name in enumerate(own if kind == "output_names" else names_of(own)):
            table[:, names.index(name)] = getattr(part, field)[:, i]
        parts.append(table)
    return np.concatenate(parts)


def _schema_variables(tables: dict[str, Any], coords: dict[str, Any]) -> dict[str, Any]:
    """Return coordinates, torques and muscles as variables of the common schema; add their names to `coords`."""
    states, controls = tables["state"], tables["control"]
    data: dict[str, Any] = {}
    coordinates = [name for name in states[0] if name + SPEED in states[0]]
    if coordinates:
        coords["coordinate"] = coordinates
        coords["coordinate_units"] = ("coordinate", [states[2][states[0].index(n)] for n in coordinates])
        for variable, table, ending in (
            ("coordinate_value", tables["state"], ""),
            ("coordinate_velocity", tables["state"], SPEED),
            ("coordinate_acceleration", tables["state_rate"], SPEED),
            ("torque", controls, TORQUE),
        ):
            data |= _pick(variable, table, coordinates, ending, "coordinate")
    muscles = [n.removesuffix(ACTIVATION) for n in states[0] if n.endswith(ACTIVATION)]
    muscles += [n.removesuffix(EXCITATION) for n in controls[0] if n.endswith(EXCITATION)]
    muscles = list(dict.fromkeys(muscles))
    if muscles:
        coords["muscle"] = muscles
        data |= _pick("muscle_activation", states, muscles, ACTIVATION, "muscle")
        data |= _pick("muscle_excitation", controls, muscles, EXCITATION, "muscle")
    return data


def _pick(variable: str, table: Any, names: Sequence[str], ending: str, dimension: str) -> dict[str, Any]:
    """Return one variable of the schema; NaN for names without a column, none if no name has one."""
    columns, values, units = table
    found = [name for name in names if name + ending in columns]
    if not found:
        return {}
    picked = np.full((len(values), len(names)), np.nan)
    for name in found:
        picked[:, names.index(name)] = values[:, columns.index(name + ending)]
    unit = _common([units[columns.index(name + ending)] for name in found])
    if variable == "coordinate_acceleration":
        unit = f"{unit} per s"
    return {variable: (("time", dimension), picked, {"units": unit, "frame": "joint"})}


def _common(units: Sequence[str]) -> str:
    """Return the units that occur, in order."""
    return " or ".join(dict.fromkeys(units)) or "1"

"""Checks of the datasets in stage and result files, so that whatever uses them finds what it needs.

A quantity has the same dimensions in every group. Variables that are not listed are allowed and not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from borelli.analysis.dynamics.torques import torque_labels
from borelli.analysis.motion import AXES, coordinate_labels
from borelli.errors import FileFormatError, list_names
from borelli.files.netcdf import CREATE_AGAIN
from borelli.model.model import Model

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

MAX_MAGNITUDE = 1e15
"""Largest plausible number in SI units in a stage."""
MAX_RATE_RATIO = 2.0
"""Largest ratio of the stated frame rate to that of the times, and its inverse."""

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "coordinate_value", "coordinate_velocity", "coordinate_acceleration", "coordinate_error", "torque",
            "torque_inertial", "torque_gravity", "torque_ground", "joint_power", "muscle_torque", "reserve_torque",
            "unattained_torque",
        ),
        ("time", "coordinate"),
    ),
    **dict.fromkeys(
        (
            "total_joint_power", "residual_power", "ground_power", "numerical_power", "constraint_power",
            "gyroscopic_power", "kinetic_energy", "potential_energy", "mechanical_energy", "grf_complete", "grf_known",
            "metabolic_power", "sharing_status",
        ),
        ("time",),
    ),
    **dict.fromkeys(
        (
            "muscle_activation", "muscle_force", "muscle_length", "muscle_velocity", "max_active_force", "fiber_length",
            "fiber_velocity", "muscle_metabolic_power", "emg_envelope",
        ),
        ("time", "muscle"),
    ),
    **dict.fromkeys(
        ("residual_force", "residual_moment", "center_of_mass", "center_of_mass_velocity"), ("time", "axis")
    ),
    **dict.fromkeys(
        ("joint_reaction_force", "joint_reaction_moment", "joint_contact_force", "joint_contact_moment"),
        ("time", "joint", "axis"),
    ),
    **dict.fromkeys(("ground_reaction_force", "center_of_pressure", "free_moment"), ("time", "foot", "axis")),
    **dict.fromkeys(("grf_source", "center_of_mass_power"), ("time", "foot")),
    **dict.fromkeys(("model_marker_position", "marker_position"), ("time", "marker", "axis")),
    **dict.fromkeys(("force", "point", "moment"), ("time", "load", "axis")),
    **dict.fromkeys(("positive_work", "negative_work", "torque_time_integral"), ("coordinate",)),
    **dict.fromkeys(
        ("stride_positive_work", "stride_negative_work", "stride_torque_time_integral"), ("stride", "coordinate")
    ),
    **dict.fromkeys(("stride_start", "stride_end", "stride_side"), ("stride",)),
    **dict.fromkeys(("length", "length_sd", "length_given"), ("segment",)),
    **dict.fromkeys(("zero_sd", "pose_sd", "coordinate_units"), ("coordinate",)),
    **dict.fromkeys(("joint_center", "joint_center_sd"), ("joint", "axis")),
    **dict.fromkeys(("marker_rms", "marker_rms_held_out"), ("marker",)),
    "body_position": ("time", "body", "axis"),
    "body_orientation": ("time", "body", "quaternion"),
    "object_position": ("time", "object", "axis"),
    "object_orientation": ("time", "object", "quaternion"),
    "object_marker_error": ("time", "object"),
    "marker_error": ("time", "marker"),
    "computed": ("time", "load"),
    "load_body": ("load",),
}  # fmt: skip
"""Dimensions of the variables of stages, loads and fits."""
STRINGS = ("grf_source", "stride_side", "coordinate_units", "load_body")
FLAGS = ("grf_complete", "grf_known", "sharing_status")

MOTION = ("coordinate_value", "coordinate_units", "body_position", "body_orientation")
TORQUES = (
    "coordinate_value", "coordinate_units", "coordinate_velocity", "coordinate_acceleration", "torque",
    "torque_inertial", "torque_gravity", "torque_ground", "residual_force", "residual_moment", "joint_reaction_force",
    "joint_reaction_moment",
)  # fmt: skip
MUSCLES = (
    "muscle_activation", "muscle_force", "muscle_length", "muscle_velocity", "max_active_force", "fiber_length",
    "fiber_velocity", "muscle_torque", "reserve_torque", "unattained_torque", "sharing_status", "joint_contact_force",
    "joint_contact_moment",
)  # fmt: skip
ENERGY = (
    "joint_power", "total_joint_power", "residual_power", "ground_power", "numerical_power", "kinetic_energy",
    "potential_energy", "mechanical_energy", "center_of_mass", "center_of_mass_velocity", "positive_work",
    "negative_work", "torque_time_integral",
)  # fmt: skip
ENERGY_SUMMARY = (
    "evaluated_s", "positive_work_j", "negative_work_j", "net_work_j", "positive_work_j_per_kg",
    "torque_time_integral_nms", "torque_time_integral_nms_per_kg", "distance_m", "speed_m_per_s",
    "cost_of_transport_j_per_kg_m", "residual_work_net_j", "residual_work_absolute_j", "ground_work_j",
    "numerical_work_net_j", "numerical_work_absolute_j", "energy_change_j", "energy_balance_error_percent",
)  # fmt: skip
LOADS = ("force", "point", "moment", "load_body")
FIT = (
    "length", "length_sd", "length_given", "joint_center", "joint_center_sd", "zero_sd", "pose_sd", "coordinate_units",
    "marker_rms",
)  # fmt: skip
SUFFIXES = ("sd", "low", "high")
"""Forms of each variable of the uncertainty."""
UNCERTAINTY_GROUPS = ("torques", "energy", "summary", "curves", "tables")
UNCERTAINTY_DIMENSIONS = {
    **DIMENSIONS,
    "value": ("metric",),
    "in_time": ("curve", "side", "time"),
    "over_cycle": ("curve", "side", "percent"),
}
CYCLE_POINTS = 101
"""Points of the gait cycle, 0 to 100 %."""
FOOT_VARIABLES = ("ground_reaction_force", "center_of_pressure", "free_moment")
RESULT = ("kinetic_energy", "potential_energy", "joint_gap", "solver_iterations", "solver_status")
"""Variables by time of a simulation that its summary needs."""


def check_motion(data: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that is not the motion of this model."""
    markers = ("model_marker_position",) if data.sizes.get("marker") else ()
    labels = {**_labels(coordinate_labels(model)), "body": [body.name for body in model.bodies], "axis": AXES}
    _check_variables(data, path, (*MOTION, *markers), {**labels, "quaternion": tuple("wxyz")})
    _check_times(data, path, increasing=False)  # where they do not, differentiation reports it with a remedy
    rate, time = _number(data.attrs, "rate_hz", path), data["time"].values
    if not 0.0 < rate <= MAX_MAGNITUDE:
        _refuse(path, f"rate_hz is {rate:g}, expected a number above 0")
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0 / rate
    if step > 0.0 and not 1.0 / MAX_RATE_RATIO < rate * step < MAX_RATE_RATIO:
        _refuse(path, f"rate_hz is {rate:g}, but the times are {step:g} s apart")


def check_torques(data: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that does not contain torques of this model."""
    feet = FOOT_VARIABLES if "foot" in data.dims else ()
    labels = _labels({str(name): values.values for name, values in torque_labels(model, ()).items()})
    _check_variables(data, path, (*TORQUES, *feet), labels)
    _check_times(data, path)
    _number(data.attrs, "mass_kg", path)
    for name in ("grf_source", "root_body"):
        if not isinstance(data.attrs.get(name, ""), str):
            _refuse(path, f"{name} is {str(data.attrs[name])[:40]!r}, expected a string")


def check_muscles(data: Dataset, settings: Mapping[str, Any], torques: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that does not contain the muscle forces of these torques."""
    if not isinstance(settings.get("cost"), str):
        _refuse(path, "The cost of the muscle forces is not stated")
    _number(settings, "exponent", path)
    labels = {
        "coordinate": [c.name for c in model.coordinates],
        "muscle": [m.name for m in model.muscles],
        "axis": AXES,
    }
    _check_variables(data, path, MUSCLES, labels)
    _check_times(data, path)
    if not np.array_equal(data["time"].values, torques["time"].values):
        _refuse(path, "The times of muscles and torques differ")
    produced, required = np.isfinite(data["muscle_torque"].values), np.isfinite(torques["torque"].values)
    if (produced & ~(required & np.isfinite(data["unattained_torque"].values))).any():
        _refuse(path, "Muscles produce torques that are missing")


def check_energy(data: Dataset, summary: Any, torques: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that is not the energy of these torques."""
    strides = ("stride_positive_work", "stride_start", "stride_end", "stride_side") if "stride" in data.dims else ()
    labels = {"coordinate": [c.name for c in model.coordinates], "axis": AXES}
    _check_variables(data, path, (*ENERGY, *strides), labels)
    _check_times(data, path)
    if not np.array_equal(data["time"].values, torques["time"].values):
        _refuse(path, "The times of energy and torques differ")
    if "foot" in data.dims and data["foot"].values.tolist() != torques["foot"].values.tolist():
        _refuse(path, "The feet of energy and torques differ")
    _number(data.attrs, "energy_balance_error_percent", path)
    if not isinstance(summary, dict):
        _refuse(path, f"The summary of energy is {str(summary)[:40]!r}, expected a table")
    for name in (*ENERGY_SUMMARY, *summary):
        _number(summary, name, path)


def check_loads(data: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that does not contain loads on bodies of this model."""
    _check_variables(data, path, LOADS, {"axis": AXES})
    _check_times(data, path)
    if unknown := sorted({*data["load_body"].values.tolist()} - {body.name for body in model.bodies}):
        _refuse(path, f"Loads act on {list_names(unknown)}, which the model does not have")
    belt = np.asarray(data.attrs.get("belt", np.zeros(3)))
    if belt.shape != (3,) or belt.dtype.kind != "f" or not _plausible(belt):
        _refuse(path, "The belt velocity is not three numbers")
    cutoff = np.asarray(data.attrs.get("cutoff_hz", 1.0))
    if cutoff.shape != () or cutoff.dtype.kind != "f" or not _plausible(cutoff):
        _refuse(path, "The cutoff of the loads has no numeric value")
    if not isinstance(data.attrs.get("source"), str):
        _refuse(path, "The source of the loads is missing")


def check_fit(data: Dataset, model: Model, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that does not describe the fit of this model."""
    labels = {**_labels(coordinate_labels(model)), "marker": [marker.name for marker in model.markers], "axis": AXES}
    _check_variables(data, path, FIT, labels)


def check_uncertainty(groups: Mapping[str, Dataset], energy: Dataset, path: Path) -> None:
    """Raise `FileFormatError` for groups that are not the uncertainty of this energy."""
    for group in UNCERTAINTY_GROUPS:
        if group not in groups:
            _refuse(path, f"The group {group!r} is missing")
    for group, data in groups.items():
        for name in map(str, data.data_vars):
            stem, _, suffix = name.rpartition("_")
            dims = (f"{stem}_time", f"{stem}_column") if group == "tables" else UNCERTAINTY_DIMENSIONS.get(stem)
            if suffix not in SUFFIXES or dims is None or data[name].dims != dims or data[name].dtype.kind != "f":
                _refuse(path, f"{group}/{name} is unknown or has other dimensions than expected")
            if not _plausible(data[name].values):
                _refuse(path, f"{group}/{name} contains infinite or implausibly large numbers")
            if any(f"{stem}_{other}" not in data for other in SUFFIXES):
                _refuse(path, f"{group}/{stem} does not have the forms {', '.join(SUFFIXES)}")
            if group == "tables":
                _check_strings(data, dims[1], path)
                if dims[0] not in data.coords:
                    _refuse(path, f"{group}/{stem} has no times")
        if "time" in data.dims and not np.array_equal(data["time"].values, energy["time"].values):
            _refuse(path, f"The times of {group} are not those of the energy")
    for group, label, variable in (("summary", "metric", "value"), ("curves", "curve", "in_time")):
        _check_strings(groups[group], label, path)
        if f"{variable}_{SUFFIXES[0]}" not in groups[group]:
            _refuse(path, f"{group}/{variable} is missing")
    sizes = groups["curves"].sizes
    if sizes["side"] != 2 or sizes.get("percent", CYCLE_POINTS) != CYCLE_POINTS:
        _refuse(path, f"The curves have other sizes than 2 sides and {CYCLE_POINTS} points of the gait cycle")
    for name in ("torques", "energy"):
        for label in ("coordinate", "foot", "joint", "stride"):
            size = energy.sizes.get(label)
            if size is not None and groups[name].sizes.get(label, size) != size:
                _refuse(path, f"{name} has {groups[name].sizes[label]} elements of {label!r}, expected {size}")


def check_result(data: Dataset, path: Path) -> None:
    """Raise `FileFormatError` for a dataset that is not the result of a simulation."""
    if "component" in data.dims or "coordinate_unit" in data.coords:
        problem = "The result is of an earlier version, which is no longer read"
        raise FileFormatError(path, f"{problem} (its dimension 'component' is 'quaternion' now). {CREATE_AGAIN}")
    for name in (*RESULT, "ground_reaction_force"):
        dims = ("time", "body", "axis") if name == "ground_reaction_force" else ("time",)
        if name not in data or data[name].dims != dims or data[name].dtype.kind not in "fi":
            _refuse(path, f"{name} does not contain numbers along {', '.join(dims)}")
        if not _plausible(data[name].values.astype(float)):
            _refuse(path, f"{name} contains implausible numbers")
    if data.sizes["axis"] != 3:
        _refuse(path, f"axis has {data.sizes['axis']} elements, expected 3")
    _check_times(data, path)
    _number(data.attrs, "step_s", path)


def _labels(labels: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names along each dimension."""
    return {name: list(values[1] if isinstance(values, tuple) else values) for name, values in labels.items()}


def _check_variables(data: Dataset, path: Path, required: Iterable[str], labels: Mapping[str, Sequence[str]]) -> None:
    """Check the required variables, the known ones, and the labels of the dimensions."""
    for name in required:
        if name not in data.variables:
            _refuse(path, f"The variable {name!r} is missing")
    for name in map(str, data.variables):
        if name in DIMENSIONS:
            _check_variable(name, data[name], path)
    used = {dimension for name in data.variables for dimension in DIMENSIONS.get(str(name), ())}
    for name in sorted(used - {"time", "stride"}):
        _check_strings(data, name, path)
    for name, expected in labels.items():
        if name in data.variables and data[name].values.tolist() != list(expected):
            got = list_names([str(value) for value in data[name].values.tolist()])
            _refuse(path, f"{name} is {got}, but the model has {list_names(list(expected))}")


def _check_variable(name: str, values: DataArray, path: Path) -> None:
    dims = DIMENSIONS[name]
    kinds = "OUT" if name in STRINGS else "biuf" if name in FLAGS else "f"
    if values.dims != dims or values.dtype.kind not in kinds:
        what = "strings" if name in STRINGS else "numbers"
        _refuse(path, f"{name} does not contain {what} along {', '.join(dims)}")
    if name in STRINGS:
        if not all(isinstance(value, str) for value in values.values.ravel().tolist()):
            _refuse(path, f"{name} contains other values than strings")
    elif not _plausible(values.values):
        _refuse(path, f"{name} contains infinite or implausibly large numbers")


def _check_strings(data: Dataset, name: str, path: Path) -> None:
    """Refuse a dimension whose labels are missing, not strings or not unique."""
    values = data[name].values.tolist() if name in data.coords else [None]
    if not all(isinstance(value, str) for value in values):
        _refuse(path, f"The dimension {name!r} has no names")
    if len(set(values)) < len(values):
        _refuse(path, f"Two elements of {name!r} have the same name")


def _check_times(data: Dataset, path: Path, *, increasing: bool = True) -> None:
    time = data.coords.get("time")
    if time is None or time.dims != ("time",) or time.dtype.kind != "f" or not time.size:
        _refuse(path, "The times are missing")
    if not np.isfinite(time.values).all() or not _plausible(time.values):
        _refuse(path, "The times are not finite")
    if increasing and not (np.diff(time.values) > 0.0).all():
        _refuse(path, "The times do not increase")


def _plausible(values: Any) -> bool:
    """Return whether no number is infinite or implausibly large; NaN is a missing value."""
    return not bool((values > MAX_MAGNITUDE).any() or (values < -MAX_MAGNITUDE).any())


def _number(table: Mapping[Any, Any], name: str, path: Path) -> float:
    """Return a number, which may be NaN, of attributes or metadata."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        _refuse(path, f"{name} is {str(value)[:40]!r}, expected a number")
    if value > MAX_MAGNITUDE or value < -MAX_MAGNITUDE:
        _refuse(path, f"{name} is {str(value)[:40]!r}, expected a number")
    return float(value)


def _refuse(path: Path, problem: str) -> NoReturn:
    raise FileFormatError(path, f"The file is damaged: {problem}. {CREATE_AGAIN}")

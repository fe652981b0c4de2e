"""Tables that spreadsheets open: angles over time, curves over the gait cycle, and spatiotemporal parameters.

Columns have clinical names and units, such as "Right knee flexion [deg]"; a comma separates cells, missing values are
empty.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.energetics.energy import Energy
from borelli.export.clinical_names import clinical_name
from borelli.export.gait_curves import PERCENT, SIDES, Curve, Gait, coordinate_sign, curve_by_stride
from borelli.files.atomic import atomic_path
from borelli.model.kinematics import root_coordinates

Array = NDArray[np.float64]

ANGLE_FILE = "angles.csv"
CYCLE_FILE, STRIDE_CURVE_FILE, PARAMETER_FILE = "gait_cycles.csv", "gait_cycles_by_stride.csv", "gait_parameters.csv"
GAIT_FILES = (ANGLE_FILE, CYCLE_FILE, STRIDE_CURVE_FILE, PARAMETER_FILE)
"""Files that `write_gait_tables` writes; all but the first only of trials with whole strides."""
PARAMETER_TITLES = {
    "speed": "Walking speed", "cadence": "Cadence", "stride_length": "Stride length", "step_length": "Step length",
    "step_width": "Step width", "stride_time": "Stride time", "step_time": "Step time", "stance": "Stance",
    "swing": "Swing", "double_support": "Double support",
}  # fmt: skip
"""Titles of the spatiotemporal parameters, in the order of tables."""


def write_gait_tables(energy: Energy, gait: Gait, folder: Path) -> None:
    """Write angles over time and, of trials with whole strides, curves over the gait cycle and parameters by stride."""
    _write_angles(energy, gait, folder / ANGLE_FILE)
    if gait.strides:
        _write_cycles(gait, folder / CYCLE_FILE)
        _write_stride_curves(gait, folder / STRIDE_CURVE_FILE)
        _write_parameters(gait, folder / PARAMETER_FILE)


def column_title(curve: Curve, side: str = "") -> str:
    """Return the title of a curve's column, such as "Right knee flexion [deg]"."""
    title = curve.title if not side else f"{side.capitalize()} {curve.title[:1].lower()}{curve.title[1:]}"
    return f"{title} [{curve.unit}]"


def _write_angles(energy: Energy, gait: Gait, path: Path) -> None:
    """Write the angles of the pelvis and of all joints at the frames of the inverse dynamics."""
    model, data = energy.torques.motion.model, energy.torques.data
    root = set(root_coordinates(model))
    titles, columns = [], []
    for curve in gait.curves:
        if curve.name.startswith("pelvis_") or curve.name == "foot_progression":
            sides = {"": curve.right} if curve.name == "pelvis_tilt" else curve.sides
            titles += [column_title(curve, side) for side in sides]
            columns += [values for values in sides.values() if values is not None]
    chosen = [k for k, c in enumerate(model.coordinates) if c.rotational and c.name not in root]
    signs = np.array([coordinate_sign(model.coordinates[k]) for k in chosen])
    titles += [f"{clinical_name(model.coordinates[k].name)} [deg]" for k in chosen]
    joints = np.degrees(signs * data["coordinate_value"].values[:, chosen])
    values = np.column_stack([*columns, joints]) if columns else joints
    times = data["time"].values.tolist()
    rows = ([repr(time), *_cells(row)] for time, row in zip(times, values, strict=True))
    _write(path, ["Time [s]", *titles], rows)


def _write_cycles(gait: Gait, path: Path) -> None:
    """Write mean and standard deviation of each curve over the strides of a side, and the normative curve."""
    titles, columns = [], []
    for curve in gait.curves:
        for side in curve.sides:
            rows = curve_by_stride(gait, curve, side)
            title = column_title(curve, side)
            titles += [_with_statistic(title, "mean"), _with_statistic(title, "SD")]
            unknown = np.full(len(PERCENT), np.nan)
            columns.append(rows.mean(axis=0) if len(rows) else unknown)
            columns.append(rows.std(axis=0, ddof=1) if len(rows) > 1 else unknown)
        norm = gait.normative(curve)
        if norm is not None:
            title = column_title(curve, "normative")
            titles += [_with_statistic(title, "mean"), _with_statistic(title, "SD")]
            columns += [norm.mean, norm.sd]
    table = np.column_stack(columns)
    rows_of_cells = ([f"{percent:g}", *_cells(row)] for percent, row in zip(PERCENT, table, strict=True))
    _write(path, ["Gait cycle [%]", *titles], rows_of_cells)


def _with_statistic(title: str, statistic: str) -> str:
    """Return a title with a statistic before its unit."""
    words, _, unit = title.rpartition(" [")
    return f"{words} {statistic} [{unit}"


def _write_stride_curves(gait: Gait, path: Path) -> None:
    """Write the curves of every stride, 101 rows each; kinetics are empty where the GRF is unknown."""
    numbers = {side: [k for k, one in enumerate(gait.strides) if one.side == side] for side in SIDES}
    table = np.full((len(gait.strides), len(PERCENT), len(gait.curves)), np.nan)
    for column, curve in enumerate(gait.curves):
        for side in curve.sides:
            kept = [k for k in numbers[side] if gait.grf_known[k] or curve.group == "angle"]
            table[kept, :, column] = curve_by_stride(gait, curve, side)
    head = ["Stride", "Side", "Start [s]", "Gait cycle [%]", *(column_title(curve) for curve in gait.curves)]
    rows = (
        [str(k + 1), stride.side, f"{stride.start:.4f}", f"{percent:g}", *_cells(table[k, i])]
        for k, stride in enumerate(gait.strides)
        for i, percent in enumerate(PERCENT)
    )
    _write(path, head, rows)


def _write_parameters(gait: Gait, path: Path) -> None:
    """Write the spatiotemporal parameters, one row for each stride."""
    table = gait.parameters
    titles = [f"{title} [{table[name].attrs['units']}]" for name, title in PARAMETER_TITLES.items()]
    values = np.column_stack([table[name].values for name in PARAMETER_TITLES])
    rows = (
        [str(k + 1), stride.side, f"{stride.start:.4f}", f"{stride.end:.4f}", *_cells(values[k])]
        for k, stride in enumerate(gait.strides)
    )
    _write(path, ["Stride", "Side", "Start [s]", "End [s]", *titles], rows)


def _cells(values: Array) -> list[str]:
    return ["" if value != value else f"{value:.6g}" for value in values.tolist()]


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file atomically."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)

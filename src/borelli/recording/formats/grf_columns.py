"""Ground reaction forces in tables: from columns such as `ground_force_vx` to force plates, and back.

Three columns for the force [N], three for its point of application [m], three for the moment [N m] about that point,
all exerted by the ground on the body, as in OpenSim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.files.number_rows import MAX_NAME_LENGTH, to_single_line
from borelli.numerics.vectors import Array
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording
from borelli.recording.units_and_axes import Conversion, FrameOptions, parse_axis, specified_options

if TYPE_CHECKING:
    from xarray import Dataset


MAX_MOMENT_ARM = 0.1
"""Largest plausible ratio [m] of a moment about the point of application to the force."""
MIN_MILLIMETER_ARM = 3.0
"""Ratio [m] above which moments are in N mm: no plate is as long."""
MIN_MOMENT_FORCE = 100.0
"""Least force [N] of samples whose moments are checked."""
MIN_MOMENT_SAMPLES = 10
ZERO_POINTS = "zero_points"
"""Code of notes on forces whose point of application is zero."""
UNNAMED = "ground_force"
"""Name of a plate whose columns have no other."""

_NAMES = (  # ground_force_vx, 1_ground_force_px, ground_force_r_vz, R_ground_torque_x, ground_force_1_mx
    re.compile(r"(?:(.+?)_)?ground_(force|torque|moment)_(?:(.+)_)?([vpm]?)([xyz])()", re.IGNORECASE),
    re.compile(r"(?:(.+?)_)?ground_(force|torque|moment)_(?:(.+)_)?([vpm]?)([xyz])_(\d+)", re.IGNORECASE),
)
_NUMBERED = re.compile(r"([fpm])(\d+)[_.]([123xyz])")  # f1_1, p1_2, m2_3: OpenSim's own import of C3D


class PlateColumns(NamedTuple):
    """Indices of the columns of a plate's force, point of application and moment, three each, or None."""

    force: tuple[int, int, int]
    point: tuple[int, int, int] | None
    moment: tuple[int, int, int] | None
    numbered: bool


class Plates(NamedTuple):
    """Variables of the dataset, the conversion of the file, and notes."""

    variables: dict[str, Array]
    conversion: Conversion
    notes: tuple[Note, ...]


def find_plates(names: Sequence[str]) -> dict[str, PlateColumns]:
    """Return the plates described by columns of these names, by plate name, in order of appearance."""
    columns: dict[tuple[str, bool], dict[str, dict[str, int]]] = {}
    for index, name in enumerate(names):
        parsed = _parse(name)
        if parsed is not None:
            plate, kind, axis, numbered = parsed
            columns.setdefault((plate, numbered), {}).setdefault(kind, {}).setdefault(axis, index)
    plates = {}
    for (plate, numbered), kinds in columns.items():
        force, point, moment = (_triple(kinds.get(kind, {})) for kind in "fpm")
        if force is not None and plate not in plates and (point is not None or not numbered):
            plates[plate] = PlateColumns(force, point, moment, numbered)
    return plates


def extract_plates(
    columns: Mapping[str, PlateColumns], values: Array, *, units: str | None, up: str | None, forward: str | None
) -> Plates:
    """Return force, center of pressure and free moment of plates in the lab frame, from the columns of a table."""
    force = _gathered(values, [plate.force for plate in columns.values()])
    point = _gathered(values, [plate.point for plate in columns.values()])
    moment = np.nan_to_num(_gathered(values, [plate.moment for plate in columns.values()]))
    loaded = np.linalg.norm(np.nan_to_num(force), axis=2) >= MIN_PLATE_FORCE
    upward, up_note = _up(force, loaded, up)
    unit, unit_note = _unit(point, loaded, units)
    ahead = "" if forward in (None, "auto") else str(forward)
    specified = specified_options(FrameOptions(units=units, up=up, forward=forward))
    conversion = replace(Conversion.from_axes(unit, upward, ahead), user_specified=specified)
    lab_force = conversion.rotate(force)
    lab_point = conversion.apply(point)
    numbered = any(plate.numbered for plate in columns.values())
    # moments are in newton meters, except where all lengths are in another unit
    lab_moment = conversion.rotate(moment) * (conversion.scale if numbered else 1.0)
    moment_notes: tuple[Note, ...] = ()
    about_origin = _is_at_origin(point, loaded)
    if numbered or about_origin:
        lab_point, lab_moment = _to_center_of_pressure(lab_force, lab_point, lab_moment)
        if about_origin:
            text = (
                "All points of application are at the origin: moments are about it, and centers of pressure follow "
                "from them."
            )
            moment_notes = (Note(text, "inferred", "check the columns of points", code="points_at_origin"),)
    else:
        lab_moment, moment_notes = _plausible_moments(list(columns), lab_force, lab_moment)
    has_force = np.abs(np.nan_to_num(force)).max(axis=2) > 0.0
    zeros = int(((point == 0.0).all(axis=2) & has_force).any(axis=1).sum())
    if zeros and not about_origin:
        text = (
            f"{zeros} samples have a force and a point of application of zero. The nearest known point is used; "
            "OpenSim applies such a force at the world origin."
        )
        moment_notes = (*moment_notes, Note(text, "inferred", code=ZERO_POINTS))
    lab_point[~(np.abs(lab_force[..., 2]) >= MIN_PLATE_FORCE)] = np.nan
    variables = {"plate_force": lab_force, "plate_center_of_pressure": lab_point, "plate_free_moment": lab_moment}
    return Plates(variables, conversion, (unit_note, up_note, *moment_notes))


def _is_at_origin(point: Array, loaded: NDArray[np.bool_]) -> bool:
    """Return whether the points of all loads are exactly at the origin."""
    return bool(loaded.any()) and bool((point[loaded] == 0.0).all())


def add_threshold(dataset: Dataset) -> Dataset:
    """Return the dataset with the load threshold of its center of pressure as an attribute."""
    if "plate_center_of_pressure" in dataset:
        dataset["plate_center_of_pressure"].attrs["threshold"] = f"NaN below {MIN_PLATE_FORCE:g} N normal force"
    return dataset


def plate_columns(recording: Recording, conversion: Conversion) -> tuple[list[str], Array]:
    """Return names and values of the columns that describe the plates of a recording in the axes of a file."""
    data = recording.data
    force = data["plate_force"].values @ conversion.rotation
    empty = np.zeros_like(force)
    point = data["plate_center_of_pressure"].values if "plate_center_of_pressure" in data else empty
    moment = data["plate_free_moment"].values if "plate_free_moment" in data else empty
    # OpenSim accepts no NaN: the point of an unloaded plate is written as the origin
    point, moment = np.nan_to_num(point @ conversion.rotation), np.nan_to_num(moment @ conversion.rotation)
    names = []
    for plate in recording.plates:
        tag = "" if plate == UNNAMED else re.sub(r"\s+", "_", to_single_line(plate)) + "_"
        names += [f"ground_force_{tag}{kind}{axis}" for kind in "vp" for axis in "xyz"]
        names += [f"ground_torque_{tag}{axis}" for axis in "xyz"]
    return names, np.concatenate((force, point, moment), axis=2).reshape(len(force), -1)


def _parse(name: str) -> tuple[str, str, str, bool] | None:
    """Return plate, kind (f, p, m), axis of a column, and whether the plate is a number; None for other columns."""
    if len(name) > MAX_NAME_LENGTH:
        return None
    numbered = _NUMBERED.fullmatch(name)
    if numbered:
        return numbered[2], numbered[1], numbered[3].translate(str.maketrans("123", "xyz")), True
    match = _NAMES[0].fullmatch(name) or _NAMES[1].fullmatch(name)
    if match is None:
        return None
    before, word, between, kind, axis, after = match.groups()
    plate = "_".join(part for part in (before, between, after) if part) or UNNAMED
    if word.lower() != "force":
        return plate, "m", axis.lower(), False
    return plate, {"": "f", "v": "f"}.get(kind.lower(), kind.lower()), axis.lower(), False


def _triple(axes: Mapping[str, int]) -> tuple[int, int, int] | None:
    return (axes["x"], axes["y"], axes["z"]) if len(axes) == 3 else None


def _gathered(values: Array, columns: Sequence[tuple[int, int, int] | None]) -> Array:
    """Return the three columns of each plate, shape (rows, plates, 3); NaN where a plate has none."""
    gathered = np.full((len(values), len(columns), 3), np.nan)
    for plate, triple in enumerate(columns):
        if triple is not None:
            gathered[:, plate] = values[:, triple]
    return gathered


def _up(force: Array, loaded: NDArray[np.bool_], specified: str | None) -> tuple[str, Note]:
    """Return the vertical axis, along which loaded plates push the subject."""
    if specified:
        axis = parse_axis(specified, "up")
        return axis, Note(f"Vertical axis of ground forces: {axis}, as specified.", "stated", code="up_axis")
    action = "--up +Y (or another axis)"
    if not loaded.any():
        text = "Vertical axis of ground forces: +Y, as in OpenSim, without evidence (no plate is loaded)."
        return "+Y", Note(text, "inferred", action, code="up_axis")
    mean = np.nan_to_num(force)[loaded].mean(axis=0)
    index = int(np.argmax(np.abs(mean)))
    axis = ("+" if mean[index] > 0.0 else "-") + "XYZ"[index]
    text = f"Vertical axis of ground forces: {axis}, inferred (mean force of loaded plates {abs(mean[index]):.0f} N)."
    return axis, Note(text, "inferred", action, code="up_axis")


def _unit(point: Array, loaded: NDArray[np.bool_], specified: str | None) -> tuple[str, Note]:
    """Return the unit of the points of application: meters, unless they are tens of meters from the origin."""
    if specified:
        text = f"Length unit of ground forces: {specified}, as specified."
        return specified, Note(text, "stated", code="length_unit")
    distances = np.abs(point[loaded])
    distances = distances[np.isfinite(distances).all(axis=1)]
    far = float(np.median(distances.max(axis=1))) if len(distances) else 0.0
    unit = "mm" if far > 30.0 else "m"
    text = f"Length unit of ground forces: {unit}, inferred (loaded plates have points {far:.3g} from the origin)."
    return unit, Note(text, "inferred", "--units m (or mm)", code="length_unit")


def _plausible_moments(names: Sequence[str], force: Array, moment: Array) -> tuple[Array, tuple[Note, ...]]:
    """Return the moments [N m] about the points of application, those in N mm converted, and notes.

    A foot on a plate twists it by friction: the moment divided by the force is a few centimeters. Larger ones move the
    center of pressure away from the stated point, by that many meters.
    """
    result, notes = moment, list[Note]()
    for k, name in enumerate(names):
        size = np.linalg.norm(np.nan_to_num(force[:, k]), axis=1)
        loaded = size >= MIN_MOMENT_FORCE
        if loaded.sum() < MIN_MOMENT_SAMPLES:
            continue
        arm = float(np.median(np.linalg.norm(moment[loaded, k], axis=1) / size[loaded]))
        if arm <= MAX_MOMENT_ARM:
            continue
        found = f"{name}: The moment is {arm:.3g} m times the force"
        if arm > MIN_MILLIMETER_ARM:
            result = result.copy()
            result[:, k] *= 1e-3
            text = f"{found}, which only N mm explain: it is divided by 1000."
        else:
            text = f"{found}: it may be about the origin of the plate instead of the point of application."
        action = "check the columns of moments; OpenSim expects N m about the point of application"
        notes.append(Note(text, "problem", action, code="plate_moment"))
    return result, tuple(notes)


def _to_center_of_pressure(force: Array, point: Array, moment: Array) -> tuple[Array, Array]:
    """Return the same wrench at the point of the given height about which its moment is vertical."""
    normal = np.where(np.abs(force[..., 2]) >= MIN_PLATE_FORCE, force[..., 2], np.nan)
    offset = np.stack((-moment[..., 1] / normal, moment[..., 0] / normal, np.zeros_like(normal)), axis=2)
    # before numpy 2, a product of NaN warns
    offset = np.nan_to_num(offset)
    return point + offset, moment - np.cross(offset, force)

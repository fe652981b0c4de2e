"""Ground forces in tables: from columns such as `ground_force_vx` to force plates, and back.

Three numbers for the force [N], three for its point of application [m], three for the moment [N m] about that point;
what the ground exerts on the body, as OpenSim applies it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.files.number_rows import LONGEST_NAME, one_line
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording
from borelli.recording.units_and_axes import Conversion, parse_axis

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

UNNAMED = "ground_force"
"""Name of the plate whose columns carry no other."""

_NAMES = (  # ground_force_vx, 1_ground_force_px, ground_force_r_vz, R_ground_torque_x, ground_force_1_mx
    re.compile(r"(?:(.+?)_)?ground_(force|torque|moment)_(?:(.+)_)?([vpm]?)([xyz])()", re.IGNORECASE),
    re.compile(r"(?:(.+?)_)?ground_(force|torque|moment)_(?:(.+)_)?([vpm]?)([xyz])_(\d+)", re.IGNORECASE),
)
_NUMBERED = re.compile(r"([fpm])(\d+)[_.]([123xyz])")  # f1_1, p1_2, m2_3: OpenSim's own import of C3D


class PlateColumns(NamedTuple):
    """Which columns hold a plate's force, point of application and moment, three each, or None."""

    force: tuple[int, int, int]
    point: tuple[int, int, int] | None
    moment: tuple[int, int, int] | None
    numbered: bool


class Plates(NamedTuple):
    """Variables of the dataset, the file's axes, and what was decided."""

    variables: dict[str, Array]
    conversion: Conversion
    notes: tuple[Note, ...]


def find_plates(names: Sequence[str]) -> dict[str, PlateColumns]:
    """The plates that columns of these names describe, by their own names, in order of appearance."""
    found: dict[tuple[str, bool], dict[str, dict[str, int]]] = {}
    for index, name in enumerate(names):
        parsed = _parse(name)
        if parsed is not None:
            plate, kind, axis, numbered = parsed
            found.setdefault((plate, numbered), {}).setdefault(kind, {}).setdefault(axis, index)
    plates = {}
    for (plate, numbered), kinds in found.items():
        force, point, moment = (_triple(kinds.get(kind, {})) for kind in "fpm")
        if force is not None and plate not in plates and (point is not None or not numbered):
            plates[plate] = PlateColumns(force, point, moment, numbered)
    return plates


def plates_of(
    columns: Mapping[str, PlateColumns], values: Array, *, units: str | None, up: str | None, forward: str | None
) -> Plates:
    """The plates' force, centre of pressure and free moment in the lab frame, from the columns of a table."""
    force = _gathered(values, [plate.force for plate in columns.values()])
    point = _gathered(values, [plate.point for plate in columns.values()])
    moment = np.nan_to_num(_gathered(values, [plate.moment for plate in columns.values()]))
    loaded = np.linalg.norm(np.nan_to_num(force), axis=2) >= MIN_PLATE_FORCE
    upward, up_note = _up(force, loaded, up)
    unit, unit_note = _unit(point, loaded, units)
    found = Conversion.of(unit, upward, "" if forward in (None, "auto") else str(forward))
    lab_force = found.turn(force)
    lab_point = found.apply(point)
    # the moments of tables are in newton metres, except where all their lengths are in another unit
    lab_moment = found.turn(moment) * (found.scale if any(plate.numbered for plate in columns.values()) else 1.0)
    if any(plate.numbered for plate in columns.values()):
        lab_point, lab_moment = _to_center_of_pressure(lab_force, lab_point, lab_moment)
    lab_point[~(np.abs(lab_force[..., 2]) >= MIN_PLATE_FORCE)] = np.nan
    variables = {
        "plate_force": lab_force,
        "plate_center_of_pressure": lab_point,
        "plate_free_moment": lab_moment,
    }
    return Plates(variables, found, (unit_note, up_note))


def with_threshold(dataset: Dataset) -> Dataset:
    """The dataset, its centre of pressure saying below which load it means nothing."""
    if "plate_center_of_pressure" in dataset:
        dataset["plate_center_of_pressure"].attrs["threshold"] = f"not a number below {MIN_PLATE_FORCE:g} N normal force"
    return dataset


def plate_table(recording: Recording, back: Conversion) -> tuple[list[str], Array]:
    """Names and values of the columns that say the same as the plates of a recording, in the axes of `back`."""
    data = recording.data
    force = data["plate_force"].values @ back.rotation
    empty = np.zeros_like(force)
    point = data["plate_center_of_pressure"].values if "plate_center_of_pressure" in data else empty
    moment = data["plate_free_moment"].values if "plate_free_moment" in data else empty
    # OpenSim takes no holes: a point that means nothing is written as the origin
    point, moment = np.nan_to_num(point @ back.rotation), np.nan_to_num(moment @ back.rotation)
    names = []
    for plate in recording.plates:
        tag = "" if plate == UNNAMED else re.sub(r"\s+", "_", one_line(plate)) + "_"
        names += [f"ground_force_{tag}{kind}{axis}" for kind in "vp" for axis in "xyz"]
        names += [f"ground_torque_{tag}{axis}" for axis in "xyz"]
    return names, np.concatenate((force, point, moment), axis=2).reshape(len(force), -1)


def _parse(name: str) -> tuple[str, str, str, bool] | None:
    """Plate, kind (f, p, m), axis of a column, and whether the plate is only a number; None for other columns."""
    if len(name) > LONGEST_NAME:
        return None
    numbered = _NUMBERED.fullmatch(name)
    if numbered:
        return numbered[2], numbered[1], numbered[3].translate(str.maketrans("123", "xyz")), True
    match = _NAMES[0].fullmatch(name) or _NAMES[1].fullmatch(name)
    if match is None:
        return None
    before, word, middle, kind, axis, after = match.groups()
    plate = "_".join(part for part in (before, middle, after) if part) or UNNAMED
    if word.lower() != "force":
        return plate, "m", axis.lower(), False
    return plate, {"": "f", "v": "f"}.get(kind.lower(), kind.lower()), axis.lower(), False


def _triple(axes: Mapping[str, int]) -> tuple[int, int, int] | None:
    return (axes["x"], axes["y"], axes["z"]) if len(axes) == 3 else None


def _gathered(values: Array, columns: Sequence[tuple[int, int, int] | None]) -> Array:
    """The three columns of each plate, shape (rows, plates, 3); not a number where a plate lacks them."""
    gathered = np.full((len(values), len(columns), 3), np.nan)
    for plate, triple in enumerate(columns):
        if triple is not None:
            gathered[:, plate] = values[:, triple]
    return gathered


def _up(force: Array, loaded: NDArray[np.bool_], asked: str | None) -> tuple[str, Note]:
    """The axis against gravity: the one along which loaded plates push."""
    if asked:
        return parse_axis(asked, "up"), Note(f"{parse_axis(asked)} is up in the ground forces, as asked", "stated")
    remedy = "--up +Y (or another axis)"
    if not loaded.any():
        return "+Y", Note("+Y is up, as in OpenSim, without evidence: no plate carries a load", "inferred", remedy)
    mean = np.nan_to_num(force)[loaded].mean(axis=0)
    axis = int(np.argmax(np.abs(mean)))
    answer = ("+" if mean[axis] > 0.0 else "-") + "XYZ"[axis]
    what = f"{answer} is up in the ground forces: loaded plates push that way with {abs(mean[axis]):.0f} N on average"
    return answer, Note(what, "inferred", remedy)


def _unit(point: Array, loaded: NDArray[np.bool_], asked: str | None) -> tuple[str, Note]:
    """The unit of the points of application: metres, unless they lie tens of metres off."""
    if asked:
        return asked, Note(f"points of ground forces are taken as {asked}, as asked", "stated")
    places = np.abs(point[loaded])
    places = places[np.isfinite(places).all(axis=1)]
    far = float(np.median(places.max(axis=1))) if len(places) else 0.0
    unit = "mm" if far > 30.0 else "m"
    what = f"points of ground forces are taken as {unit}: those of loaded plates lie {far:.3g} from the origin"
    return unit, Note(what, "inferred", "--units m (or mm)")


def _to_center_of_pressure(force: Array, point: Array, moment: Array) -> tuple[Array, Array]:
    """The same wrench stated where its moment is vertical: at the height of the point given."""
    normal = np.where(np.abs(force[..., 2]) >= MIN_PLATE_FORCE, force[..., 2], np.nan)
    shift = np.stack((-moment[..., 1] / normal, moment[..., 0] / normal, np.zeros_like(normal)), axis=2)
    # before numpy 2 a product of not-a-numbers warns
    shift = np.nan_to_num(shift)
    return point + shift, moment - np.cross(shift, force)

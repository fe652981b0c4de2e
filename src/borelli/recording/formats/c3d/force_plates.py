"""Force plates: from channels to force, center of pressure and free moment in the lab, exerted on the subject.

A plate has its own frame: its origin at the center of the surface, x from corner 2 to corner 1, y from corner 4 to
corner 1, z right-handed (downward on all known plates). Its transducers measure a force F and moments M about their own
origin, from which a vector d points to the center of the surface (`FORCE_PLATFORM:ORIGIN`):

    moment about the center      M_c = M + F x d
    center of pressure           x = -M_cy / F_z,   y = M_cx / F_z,   z = 0
    free moment about it         T = M_cz - x F_y + y F_x, along z

Types as in the C3D user guide: 1 gives F, center of pressure and free moment; 2 gives F and M; 3 (Kistler) gives
eight sensor forces; 4 is 2 with a calibration matrix. A file does not state whether its channels are the force on the
plate or on the subject: the ground never pulls, so the sign of loaded samples decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.numerics.vectors import Array
from borelli.recording.formats.c3d.parameters import Parameters
from borelli.recording.formats.c3d.write_parameters import parameters_from_plain
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording
from borelli.recording.units_and_axes import Conversion

CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
"""Number of channels of each supported plate type."""
MAX_OFFSET_FORCE = 50.0
"""Largest normal force [N] of an unloaded plate; above it, the plate was loaded while it was to be zeroed."""
MIN_SIGN_FORCE = 100.0
"""Least force [N] that determines the sign of a plate's channels."""
FORCE_UNITS = {"n": 1.0, "nt": 1.0, "newton": 1.0, "newtons": 1.0, "kn": 1e3, "lbf": 4.4482216152605}
"""Newtons in each unit of force."""
MOMENT_UNITS = {"nmm": 1e-3, "ntmm": 1e-3, "nm": 1.0, "ntm": 1.0, "ncm": 1e-2, "newtonmeters": 1.0}
"""Newton meters in each unit of moment."""


@dataclass(frozen=True, eq=False)
class Plate:
    """Plate with its pose in the lab and the interpretation of its channels."""

    name: str
    kind: int
    """Type 1 to 4."""
    corners: Array
    """Corners in the lab [m], shape (4, 3), in the format's order."""
    channels: npt.NDArray[np.intp]
    """Indices of its channels."""
    offset: Array
    """Vector ORIGIN [m] in the plate frame, as stated."""
    calibration: Array | None = None
    """Matrix from channels to forces and moments, for type 4."""

    @property
    def center(self) -> Array:
        """Center of the surface in the lab [m]."""
        return self.corners.mean(axis=0)

    @property
    def rotation(self) -> Array:
        """Matrix from the plate frame to the lab; its columns are the plate axes."""
        return plate_axes(self.corners)

    @property
    def size(self) -> tuple[float, float]:
        """Extents along x and y [m]."""
        x, y = (float(np.linalg.norm(self.corners[0] - self.corners[i])) for i in (1, 3))
        return x, y


@dataclass(frozen=True, eq=False)
class PlateLoad:
    """Load in the plate frame: force [N], center of pressure x, y [m], free moment [N m]."""

    force: Array
    center: Array
    free_moment: Array


def plate_axes(corners: Array) -> Array:
    """Return the axes of a plate with these corners, as columns."""
    x = corners[0] + corners[3] - corners[1] - corners[2]
    z = np.cross(x, corners[0] + corners[1] - corners[2] - corners[3])
    y = np.cross(z, x)
    return np.stack([axis / max(np.linalg.norm(axis), 1e-12) for axis in (x, y, z)], axis=1)


def read_corners(parameters: Parameters) -> Array:
    """Return the corners of the plates in the file's unit, shape (plates, 4, 3)."""
    values = parameters.numbers("FORCE_PLATFORM", "CORNERS")
    return values[: len(values) // 12 * 12].reshape(-1, 4, 3)


def read_plates(parameters: Parameters, conversion: Conversion, channels: int) -> tuple[list[Plate], list[Note]]:
    """Return the plates of a C3D file, and notes on plates that cannot be used."""
    used = int(max(0.0, min(parameters.number("FORCE_PLATFORM", "USED"), 255.0)))
    corners = read_corners(parameters)
    kinds = parameters.counts("FORCE_PLATFORM", "TYPE")
    kinds = np.full(used, kinds[0]) if len(kinds) == 1 else kinds  # one type of all plates
    plates, notes = [], []
    for i in range(used):
        problem = ""
        kind = int(kinds[i]) if i < len(kinds) else 0
        numbers = _plate_channel_numbers(parameters, i, used)
        if kind not in CHANNELS:
            problem = f"its type is {kind}, expected 1 to 4"
        elif i >= len(corners) or not _has_area(corners[i]):
            problem = "its corners (FORCE_PLATFORM:CORNERS) are missing or have no area"
        elif len(numbers) < CHANNELS[kind]:
            problem = f"FORCE_PLATFORM:CHANNEL lists {len(numbers)} of its {CHANNELS[kind]} channels"
        elif not all(1 <= number <= channels for number in numbers[: CHANNELS[kind]]):
            problem = f"FORCE_PLATFORM:CHANNEL lists channels {numbers[: CHANNELS[kind]]}, but the file has {channels}"
        elif kind == 4 and _calibration(parameters, i) is None:
            problem = "it has type 4, but no matrix in FORCE_PLATFORM:CAL_MATRIX"
        if problem:
            notes.append(Note(f"plate {i + 1} is not used: {problem}.", "problem", code="plate_omitted"))
            continue
        origin = parameters.numbers("FORCE_PLATFORM", "ORIGIN")[3 * i : 3 * i + 3]
        plates.append(
            Plate(
                name=f"plate {i + 1}",
                kind=kind,
                corners=conversion.apply(corners[i]),
                channels=np.array(numbers[: CHANNELS[kind]], np.intp) - 1,
                offset=conversion.scale * np.nan_to_num(origin) if len(origin) == 3 else np.zeros(3),
                calibration=_calibration(parameters, i) if kind == 4 else None,
            )
        )
    return plates, notes


def unloaded_samples(parameters: Parameters, frames: int, samples: int) -> slice | None:
    """Return the analog samples in which the plates are stated to be unloaded (FORCE_PLATFORM:ZERO), or None."""
    zero = parameters.counts("FORCE_PLATFORM", "ZERO")
    if len(zero) < 2 or not 1 <= zero[0] <= zero[1] <= frames:
        return None
    return slice((int(zero[0]) - 1) * samples, int(zero[1]) * samples)


def compute_loads(
    plates: Sequence[Plate],
    analog: npt.NDArray[np.floating],
    units: Sequence[str],
    *,
    length: float = 1e-3,
    empty: slice | None = None,
    exerted_on: str = "",
) -> tuple[dict[str, Array], list[Note]]:
    """Return force, center of pressure and free moment of every plate, in the lab, exerted on the subject, and notes.

    Args:
        plates: Plates.
        analog: Scaled samples, shape (samples, channels).
        units: Unit of each channel, as spelled by the file.
        length: Length unit of the file [m], for moments whose unit is not stated.
        empty: Samples in which the plates are unloaded; their mean is subtracted.
        exerted_on: "SUBJECT" or "PLATE", if known.
    """
    notes: list[Note] = []
    loads = [_load(plate, analog, units, length, empty, notes) for plate in plates]
    signs = _signs(plates, loads, exerted_on, notes)
    shape = (len(analog), len(plates), 3)
    force, center, moment = np.empty(shape), np.full(shape, np.nan), np.zeros(shape)
    for i, (plate, load, sign) in enumerate(zip(plates, loads, signs, strict=True)):
        rotation = plate.rotation
        force[:, i] = sign * load.force @ rotation.T
        loaded = np.abs(load.force[:, 2]) >= MIN_PLATE_FORCE
        center[loaded, i] = plate.center + load.center[loaded] @ rotation[:, :2].T
        moment[loaded, i] = sign * load.free_moment[loaded, None] * rotation[:, 2]
    variables = {
        "plate_force": force,
        "plate_center_of_pressure": center,
        "plate_free_moment": moment,
        "plate_corners": np.stack([plate.corners for plate in plates]) if plates else np.empty((0, 4, 3)),
    }
    return variables, notes


def plate_channels(plate: Plate, force: Array, center: Array, free_moment: Array) -> Array:
    """Return the channels Fx Fy Fz [N] Mx My Mz [N m] of a type 2 plate without offset for a load in the lab.

    The center of pressure [m] is NaN where the plate is unloaded.
    """
    rotation = plate.rotation
    local = force @ rotation
    point = np.nan_to_num((center - plate.center) @ rotation)
    point[:, 2] = 0.0
    return np.concatenate([local, np.cross(point, local) + free_moment @ rotation], axis=1)


def plates_from_channels(recording: Recording, empty: npt.NDArray[np.bool_] | None = None) -> dict[str, Array] | None:
    """Return the variables of the plates computed from the channels; None if there are no such channels.

    The median over the samples in which a plate is `empty`, a mask (samples, plates), is subtracted from its channels;
    by default the mean over the frames stated by the file, if any.
    """
    data = recording.data
    if recording.format != "C3D" or "analog" not in data or "plate_force" not in data:
        return None
    parameters = parameters_from_plain(recording.metadata)
    values = data["analog"].values
    if parameters.number("ANALOG", "USED") != values.shape[1]:
        return None
    converted = Conversion.from_attributes(data.attrs)
    plates, _ = read_plates(parameters, converted, values.shape[1])
    if tuple(plate.name for plate in plates) != recording.plates:
        return None
    samples = max(1, round(recording.analog_rate / recording.rate)) if recording.rate > 0.0 else 1
    if empty is not None:
        values = values.astype(float)
        for plate, rows in zip(plates, empty.T, strict=True):
            # the positions of a plate of type 1 have no offset
            with_offset = plate.channels if plate.kind != 1 else plate.channels[[0, 1, 2, 5]]
            values[:, with_offset] -= np.median(values[np.ix_(rows, with_offset)], axis=0) if rows.any() else 0.0
    loads, _ = compute_loads(
        plates,
        values,
        [str(unit) for unit in data["channel_units"].values],
        length=converted.scale,
        empty=unloaded_samples(parameters, len(values) // samples, samples) if empty is None else None,
        exerted_on=parameters.text("FORCE_PLATFORM", "EXERTED_ON"),
    )
    return loads


def channels_match_plates(recording: Recording) -> bool:
    """Return whether the plate channels still give the plate loads of the recording."""
    loads = plates_from_channels(recording)
    return loads is not None and all(
        np.allclose(values, recording.data[name].values, rtol=1e-6, atol=1e-4, equal_nan=True)
        for name, values in loads.items()
        if name in recording.data
    )


def _load(
    plate: Plate,
    analog: npt.NDArray[np.floating],
    units: Sequence[str],
    length: float,
    empty: slice | None,
    notes: list[Note],
) -> PlateLoad:
    values = np.asarray(analog[:, plate.channels], float)
    spelled = [units[i] for i in plate.channels]
    newtons = _newtons(plate, spelled[2 if plate.kind != 3 else 4], notes)
    values = _subtract_offset(plate, values, empty, newtons, notes)
    if plate.kind == 1:
        meters = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}.get(spelled[3].lower(), length)
        scale = MOMENT_UNITS.get(_normalize_unit(spelled[5]), length)
        return PlateLoad(newtons * values[:, :3], meters * values[:, 3:5], scale * values[:, 5])
    force, moment = _wrench(plate, values)
    force, scale = newtons * force, newtons
    if plate.kind != 3:
        stated = MOMENT_UNITS.get(_normalize_unit(spelled[3]))
        scale = _moment_scale(plate, force, moment, stated, length, notes)
    load = _at_center_of_pressure(plate, force, scale * moment)
    if plate.kind == 3 and not plate.offset[:2].all():
        text = f"{plate.name}: FORCE_PLATFORM:ORIGIN does not state the sensor distances (type 3)"
        text = f"{text}; center of pressure and free moment are unknown."
        notes.append(Note(text, "problem", code="plate_geometry"))
        unknown = np.full_like(load.center, np.nan)
        return PlateLoad(load.force, unknown, unknown[:, 0])
    return load


def _wrench(plate: Plate, values: Array) -> tuple[Array, Array]:
    """Return force and moment about the transducers' origin; for type 3 the moment is force times meters."""
    if plate.kind == 4 and plate.calibration is not None:
        values = values @ plate.calibration.T
    if plate.kind != 3:
        return values[:, :3], values[:, 3:6]
    x12, x34, y14, y23, z1, z2, z3, z4 = values.T
    a, b = np.abs(plate.offset[:2])
    force = np.stack([x12 + x34, y14 + y23, z1 + z2 + z3 + z4], axis=1)
    moment = np.stack([b * (z1 + z2 - z3 - z4), a * (z2 + z3 - z1 - z4), b * (x34 - x12) + a * (y14 - y23)], axis=1)
    return force, moment


def _at_center_of_pressure(plate: Plate, force: Array, moment: Array) -> PlateLoad:
    """Return the wrench as force, center of pressure and free moment (equations: module docstring)."""
    offset = plate.offset if plate.kind != 3 else plate.offset * (0.0, 0.0, 1.0)
    # transducers lie below the surface, whichever sign the program used
    to_center = offset if offset[2] * plate.rotation[2, 2] >= 0.0 else -offset
    about_center = moment + np.cross(force, to_center)
    pressed = np.where(force[:, 2:] == 0.0, np.nan, force[:, 2:])
    center = np.stack([-about_center[:, 1], about_center[:, 0]], axis=1) / pressed
    free = about_center[:, 2] - center[:, 0] * force[:, 1] + center[:, 1] * force[:, 0]
    return PlateLoad(force, center, free)


def _subtract_offset(plate: Plate, values: Array, empty: slice | None, newtons: float, notes: list[Note]) -> Array:
    """Return the channels without their mean over the samples in which the plate is unloaded."""
    if empty is None:
        return values
    mean = values[empty].mean(axis=0)
    if plate.kind == 1:
        mean[3:5] = 0.0
    force = newtons * abs(_wrench(plate, mean[None])[0][0, 2])
    span = f"samples {empty.start + 1} to {empty.stop} (FORCE_PLATFORM:ZERO)"
    if not force <= MAX_OFFSET_FORCE:
        text = f"{plate.name}: No offset is subtracted, because the plate is loaded by {force:.0f} N in {span}."
        notes.append(Note(text, "problem", "zero the plates with borelli clean", code="plate_offset"))
        return values
    text = f"{plate.name}: The mean of {span} is subtracted ({force:.1f} N normal force)."
    notes.append(Note(text, "stated", code="plate_offset"))
    return values - mean


def _newtons(plate: Plate, unit: str, notes: list[Note]) -> float:
    if plate.kind == 4:
        return 1.0  # the calibration matrix gives newtons for any unit of the channels
    known = FORCE_UNITS.get(_normalize_unit(unit))
    if known is None:
        what = f"the stated unit {unit!r} is unknown" if unit else "no unit is stated"
        notes.append(Note(f"{plate.name}: Force unit: N, assumed ({what}).", "inferred", code="force_unit"))
    return known or 1.0


def _moment_scale(
    plate: Plate, force: Array, moment: Array, stated: float | None, length: float, notes: list[Note]
) -> float:
    """Return the newton meters per unit of moment as stated, unless the load is on the plate only with another."""
    assumed = stated or (1.0 if length == 1.0 else 1e-3)
    strong = np.abs(force[:, 2]) >= MIN_SIGN_FORCE
    if strong.sum() < 10:
        return assumed
    half = np.array(plate.size) / 2.0

    def on_plate(scale: float) -> tuple[float, float]:
        """Return the fraction of loaded samples on the plate, and their largest distance relative to its size."""
        offsets = np.abs(_at_center_of_pressure(plate, force[strong], scale * moment[strong]).center) / half
        return float((offsets <= 1.1).all(axis=1).mean()), float(np.nanmax(offsets, initial=0.0))

    larger, smaller = on_plate(1e3 * assumed), on_plate(1e-3 * assumed)
    inside, _ = on_plate(assumed)
    other = 0.0
    if larger[0] >= 0.99 and larger[1] > 0.2:
        other = 1e3 * assumed
    elif inside < 0.5 and smaller[0] >= 0.9 and smaller[1] > 0.02:
        other = 1e-3 * assumed
    if other:
        why = f"because with {assumed:g} N m the load would be off the plate"
        text = f"{plate.name}: Moment unit: {other:g} N m, {why}."
        notes.append(Note(text, "problem" if stated else "inferred", code="moment_unit"))
        return other
    if not stated:
        text = f"{plate.name}: Moment unit: {assumed:g} N m, inferred (the load is on the plate)."
        notes.append(Note(text, "inferred", code="moment_unit"))
    if inside < 0.5:
        text = f"{plate.name}: The center of pressure is off the plate in {1 - inside:.0%} of the loaded samples."
        action = "check FORCE_PLATFORM:CORNERS, ORIGIN and CHANNEL"
        notes.append(Note(text, "problem", action, code="plate_geometry"))
    return assumed


def _signs(plates: Sequence[Plate], loads: Sequence[PlateLoad], exerted_on: str, notes: list[Note]) -> list[float]:
    """Return for each plate 1 if its channels are the force on the subject, -1 if they are that on the plate."""
    if exerted_on.upper() in ("SUBJECT", "PLATE"):
        return [1.0 if exerted_on.upper() == "SUBJECT" else -1.0] * len(plates)
    signs = []
    for plate, load in zip(plates, loads, strict=True):
        strong = load.force[np.abs(load.force[:, 2]) >= MIN_SIGN_FORCE]
        signs.append(float(np.sign((strong @ plate.rotation.T)[:, 2].sum())))
    default = -1.0 if sum(signs) < 0.0 else 1.0
    for sign, meaning in (
        (1.0, "the force on the subject (upward under load) and are kept"),
        (-1.0, "the force on the plate (downward under load) and are reversed"),
    ):
        names = ", ".join(plate.name for plate, each in zip(plates, signs, strict=True) if each == sign)
        if names:
            notes.append(Note(f"{names}: The channels contain {meaning}.", "inferred", code="plate_sign"))
    return [sign or default for sign in signs]


def _plate_channel_numbers(parameters: Parameters, index: int, plates: int) -> list[int]:
    """Return the channel numbers of a plate, counted from one."""
    stored = parameters.get("FORCE_PLATFORM", "CHANNEL")
    if stored is None or not stored.dims or isinstance(stored.values, tuple):
        return []
    numbers = parameters.counts("FORCE_PLATFORM", "CHANNEL")
    width = stored.dims[0] if len(stored.dims) > 1 else len(numbers) // plates  # a list without rows
    return [int(number) for number in numbers[width * index :][:width]]


def _calibration(parameters: Parameters, index: int) -> Array | None:
    values = parameters.numbers("FORCE_PLATFORM", "CAL_MATRIX")[36 * index : 36 * index + 36]
    if len(values) < 36 or not np.isfinite(values).all() or not values.any():
        return None
    matrix = values.reshape(6, 6)
    return matrix if parameters.text("FORCE_PLATFORM", "MATRIX_STORE").upper() == "BYROW" else matrix.T


def _has_area(corners: Array) -> bool:
    area = np.linalg.norm(np.cross(corners[0] - corners[2], corners[1] - corners[3]))
    return bool(np.isfinite(area) and area > 0.0 and np.abs(corners).max() < 1e9)


def _normalize_unit(unit: str) -> str:
    return "".join(c for c in unit.lower() if c.isalpha())

"""Force plates: from channels to force, centre of pressure and free moment in the lab, on the subject.

A plate has its own frame: its origin in the middle of the surface, x from corner 2 towards corner 1, y from corner 4
towards corner 1, z completing the right hand (downward on all plates met so far). Its transducers measure a force F and
moments M about their own origin, from which a vector d leads to the middle of the surface (`FORCE_PLATFORM:ORIGIN`):

    moment about the middle      M_c = M + F x d
    centre of pressure           x = -M_cy / F_z,   y = M_cx / F_z,   z = 0
    free moment about it         T = M_cz - x F_y + y F_x, along z

Types as in the C3D user guide: 1 gives F, centre of pressure and free moment; 2 gives F and M; 3 (Kistler) gives
eight sensor forces; 4 is 2 with a calibration matrix. A file does not say whether its channels hold what the subject
does to the plate or the reverse: ground pushes and never pulls, so the loaded samples tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.recording.formats.c3d.parameters import Parameters
from borelli.recording.recording import MIN_PLATE_FORCE, Note
from borelli.recording.units_and_axes import Conversion

Array = npt.NDArray[np.float64]

CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
"""Channels of each known type of plate."""
STANDING = 50.0
"""A baseline above this normal force [N] means that somebody stood on the plate while it was to be zeroed."""
CERTAIN = 100.0
"""Forces above this [N] show which way a plate's channels point."""
FORCE_UNITS = {"n": 1.0, "nt": 1.0, "newton": 1.0, "newtons": 1.0, "kn": 1e3, "lbf": 4.4482216152605}
"""Newtons in the units in which files give forces."""
MOMENT_UNITS = {"nmm": 1e-3, "ntmm": 1e-3, "nm": 1.0, "ntm": 1.0, "ncm": 1e-2, "newtonmeters": 1.0}
"""Newton metres in the units in which files give moments."""


@dataclass(frozen=True, eq=False)
class Plate:
    """One plate: where it lies in the lab and how its channels are to be read.

    Attributes:
        name: "plate 1"...
        kind: Type 1 to 4.
        corners: Corners in the lab [m], shape (4, 3), in the format's order.
        channels: Indices of its channels.
        offset: Vector ORIGIN [m] in the plate frame, as the file has it.
        calibration: Matrix from channels to forces and moments, for type 4.
    """

    name: str
    kind: int
    corners: Array
    channels: npt.NDArray[np.intp]
    offset: Array
    calibration: Array | None = None

    @property
    def middle(self) -> Array:
        """Middle of the surface in the lab [m]."""
        return self.corners.mean(axis=0)

    @property
    def rotation(self) -> Array:
        """Matrix from the plate frame to the lab; its columns are the plate's axes."""
        x = self.corners[0] + self.corners[3] - self.corners[1] - self.corners[2]
        y = self.corners[0] + self.corners[1] - self.corners[2] - self.corners[3]
        z = np.cross(x, y)
        y = np.cross(z, x)
        return np.stack([v / np.linalg.norm(v) for v in (x, y, z)], axis=1)

    @property
    def size(self) -> tuple[float, float]:
        """Extents along its x and y [m]."""
        return (
            float(np.linalg.norm(self.corners[0] - self.corners[1])),
            float(np.linalg.norm(self.corners[0] - self.corners[3])),
        )


@dataclass(frozen=True, eq=False)
class Load:
    """What a plate measured, in its own frame: force [N], centre of pressure x, y [m], free moment [N m]."""

    force: Array
    center: Array
    free_moment: Array


def file_corners(parameters: Parameters) -> Array:
    """Corners of the plates in the file's own numbers, shape (plates, 4, 3)."""
    values = parameters.numbers("FORCE_PLATFORM", "CORNERS")
    return values[: len(values) // 12 * 12].reshape(-1, 4, 3)


def read_plates(parameters: Parameters, conversion: Conversion, channels: int) -> tuple[list[Plate], list[Note]]:
    """The plates a C3D file describes; those that cannot be used are left out with a note that says why."""
    used = int(max(0.0, min(parameters.number("FORCE_PLATFORM", "USED"), 255.0)))
    corners = file_corners(parameters)
    kinds = parameters.counts("FORCE_PLATFORM", "TYPE")
    plates, notes = [], []
    for i in range(used):
        problem = ""
        kind = int(kinds[i]) if i < len(kinds) else 0
        wired = _wired(parameters, i)
        if kind not in CHANNELS:
            problem = f"its type is {kind}, but types 1 to 4 are read"
        elif i >= len(corners) or not _spans_surface(corners[i]):
            problem = "its corners (FORCE_PLATFORM:CORNERS) are missing or span no surface"
        elif len(wired) < CHANNELS[kind]:
            problem = f"FORCE_PLATFORM:CHANNEL names {len(wired)} of its {CHANNELS[kind]} channels"
        elif not all(1 <= number <= channels for number in wired[: CHANNELS[kind]]):
            problem = f"FORCE_PLATFORM:CHANNEL names channels {wired[: CHANNELS[kind]]}, but the file has {channels}"
        elif kind == 4 and _calibration(parameters, i) is None:
            problem = "it is of type 4, but FORCE_PLATFORM:CAL_MATRIX holds no matrix for it"
        if problem:
            notes.append(Note(f"plate {i + 1} is left out: {problem}", "problem"))
            continue
        origin = parameters.numbers("FORCE_PLATFORM", "ORIGIN")[3 * i : 3 * i + 3]
        plates.append(
            Plate(
                name=f"plate {i + 1}",
                kind=kind,
                corners=conversion.apply(corners[i]),
                channels=np.array(wired[: CHANNELS[kind]], np.intp) - 1,
                offset=conversion.scale * np.nan_to_num(origin) if len(origin) == 3 else np.zeros(3),
                calibration=_calibration(parameters, i) if kind == 4 else None,
            )
        )
    return plates, notes


def baseline(parameters: Parameters, frames: int, samples: int) -> slice | None:
    """The analog samples in which the plates are said to be empty (FORCE_PLATFORM:ZERO, in frames); None if none."""
    zero = parameters.counts("FORCE_PLATFORM", "ZERO")
    if len(zero) < 2 or not 1 <= zero[0] <= zero[1] <= frames:
        return None
    return slice((int(zero[0]) - 1) * samples, int(zero[1]) * samples)


def measure(
    plates: Sequence[Plate],
    analog: npt.NDArray[np.floating],
    units: Sequence[str],
    *,
    length: float = 1e-3,
    empty: slice | None = None,
    exerted_on: str = "",
) -> tuple[dict[str, Array], list[Note]]:
    """Force, centre of pressure and free moment of every plate, in the lab, as exerted on the subject.

    Args:
        plates: The plates.
        analog: Scaled samples, shape (samples, channels).
        units: Unit of each channel, as the file spells it.
        length: The file's unit of length [m], for moments whose unit is not stated.
        empty: Samples in which the plates carry nothing, whose mean is taken off.
        exerted_on: "SUBJECT" or "PLATE" where it is known what the channels act on.
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
        center[loaded, i] = plate.middle + load.center[loaded] @ rotation[:, :2].T
        moment[loaded, i] = sign * load.free_moment[loaded, None] * rotation[:, 2]
    variables = {
        "plate_force": force,
        "plate_center_of_pressure": center,
        "plate_free_moment": moment,
        "plate_corners": np.stack([plate.corners for plate in plates]) if plates else np.empty((0, 4, 3)),
    }
    return variables, notes


def channels_of(plate: Plate, force: Array, center: Array, free_moment: Array) -> Array:
    """Channels Fx Fy Fz [N] Mx My Mz [N m] of a type 2 plate without offset that carries this load.

    Args:
        plate: Where the plate lies.
        force: Force in the lab [N], shape (samples, 3).
        center: Centre of pressure in the lab [m]; not a number where the plate is unloaded.
        free_moment: Free moment in the lab [N m].
    """
    rotation = plate.rotation
    local = force @ rotation
    place = np.nan_to_num((center - plate.middle) @ rotation)
    place[:, 2] = 0.0
    return np.concatenate([local, np.cross(place, local) + free_moment @ rotation], axis=1)


def _load(
    plate: Plate,
    analog: npt.NDArray[np.floating],
    units: Sequence[str],
    length: float,
    empty: slice | None,
    notes: list[Note],
) -> Load:
    values = np.asarray(analog[:, plate.channels], float)
    spelled = [units[i] for i in plate.channels]
    newtons = _newtons(plate, spelled[2 if plate.kind != 3 else 4], notes)
    values = _zeroed(plate, values, empty, newtons, notes)
    if plate.kind == 1:
        metres = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}.get(spelled[3].lower(), length)
        scale = MOMENT_UNITS.get(_plain(spelled[5]), length)
        return Load(newtons * values[:, :3], metres * values[:, 3:5], scale * values[:, 5])
    force, moment, sized = _wrench(plate, values, length)
    force = newtons * force
    if not sized:
        scale = _moment_scale(plate, force, moment, MOMENT_UNITS.get(_plain(spelled[3])), length, notes)
        moment = scale * moment
    else:
        moment = newtons * moment
    load = _about_center(plate, force, moment)
    if plate.kind == 3 and not plate.offset[:2].all():
        said = f"{plate.name}: FORCE_PLATFORM:ORIGIN gives no distances between its sensors (type 3)"
        notes.append(Note(f"{said}; centre of pressure and free moment are not known", "problem"))
        unknown = np.full_like(load.center, np.nan)
        return Load(load.force, unknown, unknown[:, 0])
    return load


def _wrench(plate: Plate, values: Array, length: float) -> tuple[Array, Array, bool]:
    """Force, moment about the transducers' origin, and whether the moment already is force times metres."""
    if plate.kind == 4 and plate.calibration is not None:
        values = values @ plate.calibration.T
    if plate.kind != 3:
        return values[:, :3], values[:, 3:6], False
    x12, x34, y14, y23, z1, z2, z3, z4 = values.T
    a, b = np.abs(plate.offset[:2])
    force = np.stack([x12 + x34, y14 + y23, z1 + z2 + z3 + z4], axis=1)
    moment = np.stack([b * (z1 + z2 - z3 - z4), a * (z2 + z3 - z1 - z4), b * (x34 - x12) + a * (y14 - y23)], axis=1)
    return force, moment, True


def _about_center(plate: Plate, force: Array, moment: Array) -> Load:
    """The wrench as a force at the centre of pressure and a free moment; see the top of the module."""
    offset = plate.offset if plate.kind != 3 else plate.offset * (0.0, 0.0, 1.0)
    # transducers lie below the surface, whichever way round the file's author read the definition
    to_middle = offset if offset[2] * plate.rotation[2, 2] >= 0.0 else -offset
    middle = moment + np.cross(force, to_middle)
    pressed = np.where(force[:, 2:] == 0.0, np.nan, force[:, 2:])
    center = np.stack([-middle[:, 1], middle[:, 0]], axis=1) / pressed
    free = middle[:, 2] - center[:, 0] * force[:, 1] + center[:, 1] * force[:, 0]
    return Load(force, center, free)


def _zeroed(plate: Plate, values: Array, empty: slice | None, newtons: float, notes: list[Note]) -> Array:
    """Channels less their mean over the samples in which the plate is said to be empty."""
    if empty is None:
        return values
    mean = values[empty].mean(axis=0)
    if plate.kind == 1:
        mean[3:5] = 0.0
    carried = newtons * abs(_wrench(plate, mean[None], 1.0)[0][0, 2]) if plate.kind != 1 else newtons * abs(mean[2])
    span = f"samples {empty.start + 1} to {empty.stop} (FORCE_PLATFORM:ZERO)"
    if not carried <= STANDING:
        said = f"{plate.name}: no baseline is taken off, because it carries {carried:.0f} N in {span}"
        notes.append(Note(said, "problem", "zero the plates with borelli clean"))
        return values
    notes.append(Note(f"{plate.name}: the mean of {span} is taken off, {carried:.1f} N normal force", "stated"))
    return values - mean


def _newtons(plate: Plate, unit: str, notes: list[Note]) -> float:
    if plate.kind == 4:
        return 1.0  # the calibration matrix is meant to give newtons, whatever its channels are in
    known = FORCE_UNITS.get(_plain(unit))
    if known is None:
        said = f"{plate.name}: its force channels have the unit {unit!r}" if unit else f"{plate.name}: no unit of force"
        notes.append(Note(f"{said}; forces are taken as N", "inferred"))
    return known or 1.0


def _moment_scale(
    plate: Plate, force: Array, moment: Array, stated: float | None, length: float, notes: list[Note]
) -> float:
    """Newton metres in the unit of the moments: as stated, unless only another puts the load on the plate."""
    taken = stated or (1.0 if length == 1.0 else 1e-3)
    strong = np.abs(force[:, 2]) >= CERTAIN
    if strong.sum() < 10:
        return taken
    half = np.array(plate.size) / 2.0

    def on_plate(scale: float) -> tuple[float, float]:
        """Share of strong samples on the plate, and how far from its middle they go, as a share of its size."""
        places = np.abs(_about_center(plate, force[strong], scale * moment[strong]).center) / half
        return float((places <= 1.1).all(axis=1).mean()), float(np.nanmax(places, initial=0.0))

    larger, smaller = on_plate(1e3 * taken), on_plate(1e-3 * taken)
    inside, _ = on_plate(taken)
    other = 0.0
    if larger[0] >= 0.99 and larger[1] > 0.2:
        other = 1e3 * taken
    elif inside < 0.5 and smaller[0] >= 0.9 and smaller[1] > 0.02:
        other = 1e-3 * taken
    if other:
        kind = "problem" if stated else "inferred"
        said = (
            f"{plate.name}: moments are taken as {other:g} N m: with {taken:g} N m the load would not lie on the plate"
        )
        notes.append(Note(said, kind))
        return other
    if not stated:
        notes.append(
            Note(f"{plate.name}: moments are taken as {taken:g} N m: so the load lies on the plate", "inferred")
        )
    if inside < 0.5:
        said = f"{plate.name}: the centre of pressure is beside the plate in {1 - inside:.0%} of the samples under load"
        notes.append(Note(said, "problem", "check FORCE_PLATFORM:CORNERS, ORIGIN and CHANNEL"))
    return taken


def _signs(plates: Sequence[Plate], loads: Sequence[Load], exerted_on: str, notes: list[Note]) -> list[float]:
    """Per plate +1 where its channels hold the force on the subject, -1 where they hold that on the plate."""
    if exerted_on.upper() in ("SUBJECT", "PLATE"):
        return [1.0 if exerted_on.upper() == "SUBJECT" else -1.0] * len(plates)
    signs = []
    for plate, load in zip(plates, loads, strict=True):
        strong = load.force[np.abs(load.force[:, 2]) >= CERTAIN]
        signs.append(float(np.sign((strong @ plate.rotation.T)[:, 2].sum())))
    usual = -1.0 if sum(signs) < 0.0 else 1.0
    for sign, said in (
        (1.0, "already point up: the force on the subject"),
        (-1.0, "point down: the force on the plate"),
    ):
        those = ", ".join(plate.name for plate, each in zip(plates, signs, strict=True) if each == sign)
        if those:
            then = "they are kept" if sign > 0.0 else "they are reversed to give that on the subject"
            notes.append(Note(f"{those}: under load the channels {said}; {then}", "inferred"))
    return [sign or usual for sign in signs]


def _wired(parameters: Parameters, index: int) -> list[int]:
    """Channel numbers of a plate, counted from one."""
    stored = parameters.get("FORCE_PLATFORM", "CHANNEL")
    if stored is None or not stored.dims or isinstance(stored.values, tuple):
        return []
    width = stored.dims[0]
    return [int(number) for number in parameters.counts("FORCE_PLATFORM", "CHANNEL")[width * index :][:width]]


def _calibration(parameters: Parameters, index: int) -> Array | None:
    values = parameters.numbers("FORCE_PLATFORM", "CAL_MATRIX")[36 * index : 36 * index + 36]
    if len(values) < 36 or not np.isfinite(values).all() or not values.any():
        return None
    matrix = values.reshape(6, 6)
    return matrix if parameters.text("FORCE_PLATFORM", "MATRIX_STORE").upper() == "BYROW" else matrix.T


def _spans_surface(corners: Array) -> bool:
    area = np.linalg.norm(np.cross(corners[0] - corners[2], corners[1] - corners[3]))
    return bool(np.isfinite(area) and area > 0.0 and np.abs(corners).max() < 1e9)


def _plain(unit: str) -> str:
    return "".join(c for c in unit.lower() if c.isalpha())

"""Units and axes of a file, as stated or as inferred from the bodies in it; each decision is a note.

The lab frame is right-handed, z up, in meters. The frame of a file is given by its unit of length, its vertical axis
("up") and the axis that becomes x in the lab ("forward"). Unit and vertical axis are inferred where they are not
stated: body parts lie at known fractions of stature (`landmarks.RELATIVE_HEIGHT`), so the slope of marker positions
over those fractions is a vector that points up and is as long as the person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import (
    RELATIVE_HEIGHT,
    facing_direction,
    find_landmarks,
    identify_landmarks,
    mean_position,
    visible,
)
from borelli.recording.recording import Note, Recording

UNITS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "in": 0.0254, "ft": 0.3048}
"""Length [m] of each known unit."""
_SPELLINGS = (("mil", "mm"), ("cen", "cm"), ("dec", "dm"), ("met", "m"), ("inc", "in"), ("fee", "ft"), ("foo", "ft"))
STATURE_RANGE = (0.5, 2.6)
"""Plausible statures [m], from a crouching child to a jumping tall adult."""
TYPICAL_STATURE = 1.65
"""Stature [m] that decides between inches and centimeters where both are plausible."""
MARKER_SPREAD_RANGE = (0.04, 2.5)
"""Plausible median distances [m] of markers from their median, from a hand to two people."""
MIN_UPRIGHT_COMPONENT = 0.75
"""Least component of the mean body direction along the vertical axis."""
MIN_TRAVEL_DISTANCE = 0.5
"""Horizontal displacement [m] below which the subject counts as stationary."""
MAX_SAMPLED_FRAMES = 400
"""Number of frames used for inference, evenly spread over the recording."""


@dataclass(frozen=True, eq=False)
class Conversion:
    """Conversion from the coordinates of a file to meters in the lab frame, z up.

    Attributes:
        scale: Length of the file's unit [m].
        rotation: Matrix from the file's axes to the lab's, shape (3, 3).
        units: Unit of length of the file: a name of `UNITS`, or a number of meters.
        up: Axis of the file that is z in the lab: "+Y", "+Z"...
        forward: Axis of the file that is x in the lab.
        user_specified: Which of "units", "up" and "forward" the user stated.
        subject_forward: Axis of the file along which the subject moves or faces; "" if unknown.
    """

    scale: float
    rotation: Array
    units: str
    up: str
    forward: str
    user_specified: tuple[str, ...] = ()
    subject_forward: str = ""

    @classmethod
    def from_axes(cls, units: str, up: str, forward: str = "") -> Conversion:
        """Return the conversion for a unit, a vertical axis and a forward axis (default: +X, or +Y if X is vertical).

        Raises:
            SettingsError: if a unit or an axis is unknown, or up and forward are parallel.
        """
        unit, upward = _unit(units), parse_axis(up, "up")
        ahead = parse_axis(forward, "forward") if forward else "+Y" if upward[1] == "X" else "+X"
        z, x = _vector(upward), _vector(ahead)
        if abs(z @ x) > 0.5:
            text = f"forward: {ahead} is parallel to the vertical axis {upward}."
            raise SettingsError(f"{text} Choose one of the other two axes.")
        length = UNITS[unit] if unit in UNITS else float(unit)
        return cls(length, np.array([x, np.cross(z, x), z]), unit, upward, ahead)

    @classmethod
    def from_attributes(cls, attributes: Mapping[Any, Any], units: str = "mm", up: str = "+Z") -> Conversion:
        """Return the conversion of the file a recording came from; units and up are the defaults without a file."""
        stated = (attributes.get(f"file_{name}") for name in ("units", "up", "forward"))
        return cls.from_axes(*(str(word or default) for word, default in zip(stated, (units, up, ""), strict=True)))

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the dataset that record the conversion."""
        stated = {"file_units": self.units, "file_up": self.up, "file_forward": self.forward}
        optional = {"user_specified": " ".join(self.user_specified), "subject_forward": self.subject_forward}
        return stated | {name: value for name, value in optional.items() if value}

    def apply(self, points: Array) -> Array:
        """Convert points of the file [its unit] to the lab [m]; the last axis is x, y, z."""
        return self.scale * self.rotate(points)

    def rotate(self, vectors: Array) -> Array:
        """Rotate vectors of the file into the lab without scaling, such as forces and directions."""
        return vectors @ self.rotation.T

    def invert(self, points: Array) -> Array:
        """Convert points in the lab [m] to the unit and axes of the file."""
        return (points @ self.rotation) / self.scale


def opensim_conversion(recording: Recording, units: str | None = None, up: str | None = None) -> Conversion:
    """Return the conversion for writing OpenSim formats: y up, or the axes of the OpenSim file that was read."""
    original = Conversion.from_attributes(recording.data.attrs, up="+Y")
    if up or recording.format not in ("TRC", "MOT", "STO"):
        original = Conversion.from_axes(original.units, up or "+Y")
    return Conversion.from_axes(units, original.up, original.forward) if units else original


class Inference(NamedTuple):
    """Unit or axis inferred from the data ("" if none), and its evidence.

    `source` is "labels" (names of body parts, the most reliable), "plates", "floor" or "".
    """

    value: str
    evidence: str
    source: str = ""


class FrameOptions(TypedDict):
    """Unit and axes of a file as specified by the user: the options of `infer_conversion` of these names."""

    units: str | None
    up: str | None
    forward: str | None


def specified_options(frame: FrameOptions) -> tuple[str, ...]:
    """Return the names of the options that the user stated; "auto" is inferred."""
    return tuple(name for name, value in frame.items() if value and (name, value) != ("forward", "auto"))


def infer_conversion(
    stated_units: str | None,
    stated_up: str | None,
    positions: Array | None,
    labels: Sequence[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    plate_corners: Array | None = None,
    default_units: str = "mm",
    default_up: str = "+Z",
) -> tuple[Conversion, tuple[Note, ...]]:
    """Return the conversion from a file to the lab, and notes on how it was determined.

    Args:
        stated_units: Unit of length stated by the file, or None.
        stated_up: Vertical axis stated by the file, such as "+Z" or "Y", or None.
        positions: Points in the file's unit, shape (frames, points, 3), NaN where missing; None without points.
        labels: Names of the points.
        units: Unit stated by the user, which overrides everything.
        up: Vertical axis stated by the user.
        forward: Axis of the file that becomes x; "auto" for the direction in which the subject moves or faces. By
            default nothing is rotated about the vertical.
        plate_corners: Corners of force plates in the file's unit, shape (plates, 4, 3).
        default_units: Usual unit of this format, used without evidence.
        default_up: Usual vertical axis of this format, used without evidence.
    """
    points = _sample(positions)
    labels = labels[: points.shape[1]]
    unit, unit_notes = _choose_unit(stated_units, units, points, labels, default_units)
    inferred = infer_up(points, labels, None if plate_corners is None else np.asarray(plate_corners, float))
    upward, up_notes = _choose_up(stated_up, up, inferred, default_up)
    result = Conversion.from_axes(unit, upward)
    direction = infer_forward(result.apply(points), labels)
    ahead = to_file_axis(direction.value, result)
    notes = [*unit_notes, *up_notes]
    if forward == "auto":
        result = Conversion.from_axes(unit, upward, ahead)
        decision = f"{result.forward} of the file becomes x" if ahead else "not changed"
        text = f"Forward axis: {decision} ({direction.evidence})."
        notes.append(Note(text, "inferred", "--forward +X (or another axis)", code="forward_axis"))
    elif forward:
        result = Conversion.from_axes(unit, upward, forward)
        text = f"Forward axis: {result.forward} of the file becomes x, as specified."
        notes.append(Note(text, "stated", code="forward_axis"))
    elif ahead:
        action = "" if ahead == result.forward else f"--forward {ahead} makes it x"
        text = f"Forward axis: {ahead} of the file ({direction.evidence})."
        notes.append(Note(text, "inferred", action, code="forward_axis"))
    specified = specified_options(FrameOptions(units=units, up=up, forward=forward))
    return replace(result, user_specified=specified, subject_forward=ahead), tuple(notes)


def parse_axis(word: str, what: str = "axis") -> str:
    """Return an axis as sign and letter: "y", "Y" and "+y" are "+Y"."""
    match = re.fullmatch(r"\s*([+-]?)\s*([xyzXYZ])\s*", word)
    if match is None:
        raise SettingsError(f"{what}: {unknown_name('axis', word, ('+X', '-X', '+Y', '-Y', '+Z', '-Z'))}")
    return (match[1] or "+") + match[2].upper()


def parse_unit(word: str | None) -> str | None:
    """Return the name in `UNITS` of a unit as files spell it ("Meters", "mete", "MM"), or None."""
    text = (word or "").replace("\0", "").strip().lower()
    if text in UNITS:
        return text
    return next((name for start, name in _SPELLINGS if text.startswith(start)), None)


def infer_units(points: Array, labels: Sequence[str]) -> Inference:
    """Infer the unit in which the body has a plausible size; prefer meters and millimeters."""
    size, (low, high), what = measure_body_size(points, labels)
    if not size > 0.0:
        return Inference("", "there are no points")
    fitting = [name for name in ("m", "mm", "cm", "in", "ft", "dm") if low <= size * UNITS[name] <= high]
    if not fitting:
        return Inference("", f"{what} is {size:.4g} in the file, which is implausible in every known unit")
    if (low, high) == STATURE_RANGE:
        fitting.sort(key=lambda name: abs(np.log(size * UNITS[name] / TYPICAL_STATURE)))
    return Inference(fitting[0], f"{what} is {size:.4g} in the file, {size * UNITS[fitting[0]]:.2f} m")


def measure_body_size(points: Array, labels: Sequence[str]) -> tuple[float, tuple[float, float], str]:
    """Return the body size in the unit of the points, the plausible range [m], and a name of the size."""
    if not points.size:
        return 0.0, MARKER_SPREAD_RANGE, "nothing"
    slopes = _stature_vectors(points, labels)
    if len(slopes):
        stature = float(np.median(np.linalg.norm(slopes, axis=1)))
        return stature, STATURE_RANGE, "the stature estimated from labeled markers"
    named = [i for i, label in enumerate(labels) if not label.startswith("*")]
    chosen = points[:, named] if named else points
    is_visible = visible(chosen)
    full = is_visible.sum(axis=1) >= 3
    if not full.any():
        return 0.0, MARKER_SPREAD_RANGE, "nothing"
    part = np.where(is_visible[full][..., None], chosen[full], np.nan)
    medians = np.nanmedian(part, axis=1, keepdims=True)
    distances = np.linalg.norm(part - medians, axis=2)
    return float(np.nanmedian(distances)), MARKER_SPREAD_RANGE, "the median distance of markers from their median"


def infer_up(points: Array, labels: Sequence[str], corners: Array | None = None) -> Inference:
    """Infer the vertical axis from heads above feet, else from the plane of force plates, else from a floor."""
    slopes = _stature_vectors(points, labels)
    if len(slopes):
        mean = (slopes / np.linalg.norm(slopes, axis=1, keepdims=True)).mean(axis=0)
        axis = int(np.argmax(np.abs(mean)))
        if abs(mean[axis]) >= MIN_UPRIGHT_COMPONENT:
            name = _signed_axis(axis, mean[axis])
            return Inference(name, f"the upper body is above the lower body along {name}", "labels")
    if corners is not None and len(corners):
        by_plates = _up_from_plates(points, corners)
        if by_plates.value:
            return by_plates
    return _up_from_floor(points)


def infer_forward(lab_points: Array, labels: Sequence[str]) -> Inference:
    """Infer the horizontal lab axis along which the subject moves or, if stationary, faces."""
    if not lab_points.size:
        return Inference("", "there are no points")
    hips = find_landmarks(labels, ("pelvis", "hip"))
    path = mean_position(lab_points, hips or range(lab_points.shape[1]))
    path = path[visible(path)]
    if len(path) > 1:
        tenth = max(1, len(path) // 10)
        displacement = path[-tenth:].mean(axis=0) - path[:tenth].mean(axis=0)
        distance = np.hypot(displacement[0], displacement[1])
        if distance >= MIN_TRAVEL_DISTANCE:
            name = "pelvis" if hips else "center of the markers"
            return Inference(_dominant_axis(displacement), f"the {name} moves {distance:.2f} m")
    directions = facing_direction(lab_points, labels)
    directions = directions[visible(directions)]
    if len(directions):
        return Inference(_dominant_axis(directions.mean(axis=0)), "the stationary subject faces this direction")
    return Inference("", "the subject is stationary, and no labels show its front and back")


def to_file_axis(lab_axis: str, conversion: Conversion) -> str:
    """Return the axis of the file that corresponds to a lab axis; "" for ""."""
    if not lab_axis:
        return ""
    direction = _vector(lab_axis) @ conversion.rotation
    axis = int(np.argmax(np.abs(direction)))
    return _signed_axis(axis, direction[axis])


def _choose_unit(
    stated: str | None, specified: str | None, points: Array, labels: Sequence[str], default: str
) -> tuple[str, list[Note]]:
    if specified:
        unit = _unit(specified)
        return unit, [Note(f"Length unit: {unit}, as specified.", "stated", code="length_unit")]
    inferred = infer_units(points, labels)
    named = parse_unit(stated)
    override = "--units mm (or m, cm, in)"
    if named is None:
        unknown = f" The stated unit {stated.strip()!r} is unknown." if stated and stated.strip() else ""
        how = "inferred" if inferred.value else "the usual one, without evidence"
        unit = inferred.value or default
        text = f"Length unit: {unit}, {how} ({inferred.evidence}).{unknown}"
        return unit, [Note(text, "inferred", override, code="length_unit")]
    notes = [Note(f"Length unit: {named}, stated by the file.", "stated", code="length_unit")]
    size, (low, high), what = measure_body_size(points, labels)
    if size > 0.0 and not low <= size * UNITS[named] <= high:
        text = f"The file states lengths in {named}, but then {what} is {size * UNITS[named]:.4g} m."
        action = f"--units {inferred.value}" if inferred.value else override
        notes.append(Note(text, "problem", action, code="length_unit"))
    return named, notes


def _choose_up(stated: str | None, specified: str | None, inferred: Inference, default: str) -> tuple[str, list[Note]]:
    override = "--up +Y (or another axis)"
    if specified:
        upward = parse_axis(specified, "up")
        return upward, [Note(f"Vertical axis: {upward}, as specified.", "stated", code="up_axis")]
    try:
        axis = parse_axis(stated, "up") if stated and stated.strip() else None
    except SettingsError:
        axis = None
    if axis is None:
        how = "inferred" if inferred.value else "the usual one, without evidence"
        axis = inferred.value or parse_axis(default)
        text = f"Vertical axis: {axis}, {how} ({inferred.evidence})."
        return axis, [Note(text, "inferred", override, code="up_axis")]
    if inferred.value not in ("", axis) and inferred.value[1] == axis[1] and inferred.source == "labels":
        # screens are described from in front and from behind, so only the letter is reliable
        text = f"Vertical axis: {inferred.value}, inferred ({inferred.evidence}), although the file states {axis}."
        return inferred.value, [Note(text, "inferred", f"--up {axis}", code="up_axis")]
    notes = [Note(f"Vertical axis: {axis}, stated by the file.", "stated", code="up_axis")]
    if inferred.value not in ("", axis):
        text = f"The file states that {axis} is up, but {inferred.evidence}."
        notes.append(Note(text, "problem", f"--up {inferred.value}", code="up_axis"))
    return axis, notes


def _stature_vectors(points: Array, labels: Sequence[str]) -> Array:
    """Return the slope of position over relative height in each frame that shows enough of the body."""
    marks = identify_landmarks(labels)
    chosen = [i for i, mark in enumerate(marks) if mark and mark.part in RELATIVE_HEIGHT]
    if len(chosen) < 3 or not points.size:
        return np.empty((0, 3))
    heights = np.array([RELATIVE_HEIGHT[mark.part] for mark in marks if mark and mark.part in RELATIVE_HEIGHT])
    part = points[:, chosen]
    is_visible = visible(part)
    part = np.where(is_visible[..., None], part, 0.0)
    count = is_visible.sum(axis=1)
    offset = np.where(is_visible, heights - (is_visible @ heights / np.maximum(count, 1))[:, None], 0.0)
    weight = (offset**2).sum(axis=1)
    # a fifth of stature between the upper and the lower half of at least three markers
    enough = (count >= 3) & (weight > count * 0.1**2)
    slopes = np.einsum("fm,fma->fa", offset[enough], part[enough]) / weight[enough, None]
    return slopes[np.linalg.norm(slopes, axis=1) > 0.0]


def _up_from_plates(points: Array, corners: Array) -> Inference:
    first, second = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    normals = np.cross(first, second)
    sizes = np.linalg.norm(normals, axis=1, keepdims=True)
    if not np.isfinite(sizes).all() or (sizes <= 0.0).any():
        return Inference("", "the force plates have no area")
    level = np.abs(normals / sizes).min(axis=0)
    axis = int(np.argmax(level))
    measured = points[visible(points)]
    if level[axis] < 0.95 or not len(measured):
        return Inference("", "the force plates are not aligned with the axes")
    name = _signed_axis(axis, float(np.median(measured[:, axis]) - corners[..., axis].mean()))
    evidence = f"{name[1]} is normal to the force plates, and the markers are on their {name[0]} side"
    return Inference(name, evidence, "plates")


def _up_from_floor(points: Array) -> Inference:
    """Infer the axis along which the lowest point of all frames is nearly constant and near zero."""
    is_visible = visible(points)
    full = is_visible.sum(axis=1) >= 3
    if full.sum() < 3:
        return Inference("", "there are too few points to detect a floor")
    part = np.where(is_visible[full][..., None], points[full], np.nan)
    extent = np.nanmax(part, axis=1) - np.nanmin(part, axis=1)
    size = float(np.median(np.linalg.norm(extent, axis=1)))
    candidates: list[tuple[float, str]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            lowest = np.nanmin(sign * part[..., axis], axis=1)
            wide = np.median(extent[:, axis]) > 0.3 * size
            if wide and -0.1 * size < np.percentile(lowest, 5) and np.median(lowest) < 0.15 * size:
                candidates.append((float(np.std(lowest)), _signed_axis(axis, sign)))
    ranked = sorted(candidates)
    if len(ranked) == 1 or (len(ranked) > 1 and ranked[0][0] < 0.5 * ranked[1][0]):
        name = ranked[0][1]
        return Inference(name, f"the height of the lowest marker is nearly constant only along {name}", "floor")
    return Inference("", "neither labels nor a floor show the vertical axis")


def _sample(positions: Array | None) -> Array:
    if positions is None or not np.size(positions):
        return np.empty((0, 0, 3))
    step = -(-len(positions) // MAX_SAMPLED_FRAMES)
    points = np.asarray(positions[::step, :, :3], float)
    missing = ~(np.abs(points) < 1e12).all(axis=2) | (points == 0.0).all(axis=2)
    return np.where(missing[..., None], np.nan, points)


def _unit(word: str) -> str:
    if (named := parse_unit(word)) is not None:
        return named
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 1e-9 < number < 1e9:
        raise SettingsError(f"units: {unknown_name('unit', word, UNITS)}, or a number of meters")
    return str(number)


def _vector(axis: str) -> Array:
    return (1.0 if axis[0] == "+" else -1.0) * np.eye(3)["XYZ".index(axis[1])]


def _signed_axis(axis: int, sign: float) -> str:
    return ("+" if sign >= 0.0 else "-") + "XYZ"[axis]


def _dominant_axis(direction: Array) -> str:
    axis = int(np.argmax(np.abs(direction[:2])))
    return _signed_axis(axis, direction[axis])

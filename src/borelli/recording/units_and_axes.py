"""Units and axes of a file, as stated or as inferred from the bodies in it; each decision is a note.

The lab frame is right-handed, z up, in meters. The frame of a file is given by its unit of length, its vertical axis
("up") and the axis that becomes x in the lab ("forward"). Unit and vertical axis are compared with the data, and
inferred where they are not stated: body parts lie at known fractions of stature (`landmarks.RELATIVE_HEIGHT`), so the
slope of marker positions over those fractions is a vector that points up and is as long as the person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_repr
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import facing_direction, find_landmarks, mean_position, visible
from borelli.recording.length_unit import UNITS, BodyMotion, UnitDecision, decide_unit, unit_length
from borelli.recording.recording import Note, Recording
from borelli.recording.up_axis import UpEvidence, contradicts, decide_up, signed_axis, up_evidence

_SPELLINGS = (("mil", "mm"), ("cen", "cm"), ("dec", "dm"), ("met", "m"), ("inc", "in"), ("fee", "ft"), ("foo", "ft"))
UNIT_CONFLICT = "length_unit_conflict"
"""Code of the note on a unit of length that the evidence contradicts or leaves uncertain."""
UP_CONFLICT = "up_axis_conflict"
"""Code of the note on a vertical axis that the evidence contradicts."""
UNIT_OVERRIDE = "--units mm (or m, cm, in)"
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

    __repr__ = fields_repr

    @classmethod
    @check_arguments
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
        return cls(unit_length(unit), np.array([x, np.cross(z, x), z]), unit, upward, ahead)

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

    @check_arguments
    def apply(self, points: Array) -> Array:
        """Convert points of the file [its unit] to the lab [m]; the last axis is x, y, z."""
        return self.scale * self.rotate(points)

    @check_arguments
    def rotate(self, vectors: Array) -> Array:
        """Rotate vectors of the file into the lab without scaling, such as forces and directions."""
        return vectors @ self.rotation.T

    @check_arguments
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
    """Unit or axis inferred from the data ("" if none), and its evidence."""

    value: str
    evidence: str


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
    plate_force: Array | None = None,
    body_motion: Callable[[], BodyMotion | None] | None = None,
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
        plate_force: Forces of plates [N] in the axes of the file, shape (samples, 3); of either sign.
        body_motion: Motion of the body and total force of the plates; called where lengths leave two units possible.
        default_units: Usual unit of this format, used without evidence.
        default_up: Usual vertical axis of this format, used without evidence.
    """
    points = _sample(positions)
    labels = labels[: points.shape[1]]
    corners = None if plate_corners is None else np.asarray(plate_corners, float)
    stated_axis = _stated_axis(stated_up)
    evidence = up_evidence(points, labels, stated=stated_axis, corners=corners, force=plate_force)
    upward, up_notes = _choose_up(stated_axis, up, evidence, default_up)

    def decide(unit: str) -> UnitDecision:
        return decide_unit(points, labels, stated=unit, corners=corners, motion=body_motion, up=_vector(upward))

    unit, unit_notes = _choose_unit(stated_units, units, decide, default_units)
    result = Conversion.from_axes(unit, upward)
    direction = infer_forward(result.apply(points), labels)
    ahead = to_file_axis(direction.value, result)
    # the decisions first, then what contradicts them
    notes = [unit_notes[0], up_notes[0], *unit_notes[1:], *up_notes[1:]]
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
    return signed_axis(axis, direction[axis])


def _choose_unit(
    stated: str | None, specified: str | None, decide: Callable[[str], UnitDecision], default: str
) -> tuple[str, list[Note]]:
    """Return the unit that the user or the file states, or else that of the data, with notes; `decide` takes a unit."""
    if specified:
        unit = _unit(specified)
        notes = [Note(f"Length unit: {unit}, as specified.", "stated", code="length_unit")]
        return unit, notes + _unit_conflict(unit, f"{unit} is specified as the length unit", decide(unit))
    if (named := parse_unit(stated)) is not None:
        notes = [Note(f"Length unit: {named}, stated by the file.", "stated", code="length_unit")]
        decision = decide(named)
        if decision.unit == named and not decision.certain:
            return named, [*notes, _uncertain_unit(decision)]
        return named, notes + _unit_conflict(named, f"The file states lengths in {named}", decision)
    decision = decide("")
    if decision.unit and not decision.certain:
        return decision.unit, [_uncertain_unit(decision)]
    unknown = f" The stated unit {stated.strip()!r} is unknown." if stated and stated.strip() else ""
    unit = decision.unit or default
    sizes = f"{decision.reason(unit)}, which no known unit makes plausible"
    evidence = decision.reason(unit) if decision.unit else sizes if decision.evidence else "there are no points"
    how = "inferred" if decision.unit else "the usual one, without evidence"
    text = f"Length unit: {unit}, {how} ({evidence}).{unknown}"
    return unit, [Note(text, "inferred", UNIT_OVERRIDE, code="length_unit")]


def _unit_conflict(unit: str, statement: str, decision: UnitDecision) -> list[Note]:
    """Return a note if the data show another unit than the one in use, or sizes that no unit makes plausible."""
    if decision.unit == unit or not decision.evidence:
        return []
    if not decision.unit:
        objection = decision.objection(unit)
        text = f"{statement}, but then {objection}."
        return [Note(text, "problem", UNIT_OVERRIDE, code=UNIT_CONFLICT)] if objection else []
    text = f"{statement}, but then {decision.reason(unit)}; with {decision.unit}, {decision.reason(decision.unit)}."
    return [Note(text, "problem", f"--units {decision.unit}", code=UNIT_CONFLICT)]


def _uncertain_unit(decision: UnitDecision) -> Note:
    unit, other = decision.unit, decision.other
    text = (
        f"The length unit is uncertain: {unit}, with which {decision.reason(unit)}; or {other}, with which "
        f"{decision.reason(other)}. {unit} is used."
    )
    return Note(text, "problem", f"--units {unit} or --units {other}", code=UNIT_CONFLICT)


def _stated_axis(word: str | None) -> str:
    """Return the axis that a file states, "" if it states none."""
    try:
        return parse_axis(word, "up") if word and word.strip() else ""
    except SettingsError:
        return ""


def _choose_up(
    stated: str, specified: str | None, evidence: Sequence[UpEvidence], default: str
) -> tuple[str, list[Note]]:
    override = "--up +Y (or another axis)"
    if specified:
        upward = parse_axis(specified, "up")
        notes = [Note(f"Vertical axis: {upward}, as specified.", "stated", code="up_axis")]
        if (opposed := contradicts(evidence, upward)) is not None:
            text = f"{upward} is specified as vertical, but {opposed.reason}."
            notes.append(Note(text, "problem", f"--up {opposed.axis}", code=UP_CONFLICT))
        return upward, notes
    decision = decide_up(evidence)
    if decision is None:
        axis = parse_axis(default)
        text = f"Vertical axis: {axis}, the usual one, without evidence (neither labels nor a floor show it)."
        return axis, [Note(text, "inferred", override, code="up_axis")]
    axis = decision.axis
    if not decision.certain:
        text = f"The vertical axis is uncertain: {axis}, because {decision.reason}; or {decision.other}, because "
        text = f"{text}{decision.objection}. {axis} is used."
        return axis, [Note(text, "problem", f"--up {axis} or --up {decision.other}", code=UP_CONFLICT)]
    if [one.kind for one in decision.evidence] == ["file"] or (stated and axis == stated and not decision.other):
        return axis, [Note(f"Vertical axis: {axis}, stated by the file.", "stated", code="up_axis")]
    text = f"Vertical axis: {axis}, inferred ({decision.reason})"
    if stated and axis != stated:
        # screens are described from in front and from behind: another sign is no contradiction
        kind = "inferred" if axis[1] == stated[1] else "problem"
        text = f"{text}, although the file states {stated}"
        return axis, [Note(f"{text}.", kind, f"--up {stated}", code="up_axis")]
    if decision.other:
        text = f"{text}, although {decision.objection}"
    return axis, [Note(f"{text}.", "inferred", override, code="up_axis")]


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


def _dominant_axis(direction: Array) -> str:
    axis = int(np.argmax(np.abs(direction[:2])))
    return signed_axis(axis, direction[axis])

"""Units and axes of a file: as it states them, or as the bodies in it show them, never silently.

The lab frame is right-handed, z up, in metres. A file's own frame is told by three words: its unit of length, the axis
that points up, and the axis that becomes x in the lab ("forward"). Where the file does not state the first two, they
are inferred: a person's parts lie at known fractions of stature (`landmarks.HEIGHT`), so the slope of the marker
positions over those fractions is a vector as long as the person, pointing up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError, unknown_name
from borelli.recording.landmarks import HEIGHT, MOST_LABELS, facing, identify_landmark, mean_position, visible, find_landmarks
from borelli.recording.recording import Note, Recording

Array = npt.NDArray[np.float64]

UNITS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "in": 0.0254, "ft": 0.3048}
"""Lengths [m] of the units that are known by name."""
_SPELLINGS = (("mil", "mm"), ("cen", "cm"), ("dec", "dm"), ("met", "m"), ("inc", "in"), ("fee", "ft"), ("foo", "ft"))
STATURE = (0.5, 2.6)
"""Statures [m] that are believed, from a child's crouch to a tall man's leap."""
USUAL_STATURE = 1.65
"""Stature [m] that tells inches from centimetres where both would be believed."""
SPREAD = (0.04, 2.5)
"""Median distances [m] of markers from their middle that are believed, from a hand to two people."""
UPRIGHT = 0.75
"""How much of a body's mean direction must lie along one axis to call that axis up."""
TRAVEL = 0.5
"""Distances [m] below which a body is said to stay where it is."""
SAMPLE = 400
"""How many frames are looked at, evenly spread over the recording."""


@dataclass(frozen=True, eq=False)
class Conversion:
    """From a file's numbers to metres in the lab frame, z up.

    Attributes:
        scale: Length of the file's unit [m].
        rotation: Matrix from the file's axes to the lab's, shape (3, 3).
        units: The file's unit of length: a name of `UNITS`, or a number of metres.
        up: The file's axis that is z in the lab: "+Y", "+Z"...
        forward: The file's axis that is x in the lab.
    """

    scale: float
    rotation: Array
    units: str
    up: str
    forward: str

    @classmethod
    def of(cls, units: str, up: str, forward: str = "") -> Conversion:
        """The conversion for a unit and an up axis; forward may be left to `default_forward`.

        Raises:
            SettingsError: if a word is not understood, or up and forward are the same axis.
        """
        unit, upward = _unit(units), parse_axis(up, "up")
        ahead = parse_axis(forward, "forward") if forward else default_forward(upward)
        z, x = _vector(upward), _vector(ahead)
        if abs(z @ x) > 0.5:
            raise SettingsError(f"forward is {ahead}, but {upward} is up; forward must be one of the other two axes")
        return cls(_length(unit), np.array([x, np.cross(z, x), z]), unit, upward, ahead)

    @classmethod
    def of_file(cls, attributes: Mapping[Any, Any], units: str = "mm", up: str = "+Z") -> Conversion:
        """The conversion of the file that a recording came from; units and up stand in where it came from none."""
        stated = (attributes.get(f"file_{what}") for what in ("units", "up", "forward"))
        return cls.of(*(str(word or usual) for word, usual in zip(stated, (units, up, ""), strict=True)))

    @property
    def attributes(self) -> dict[str, Any]:
        """What a recording keeps of it."""
        return {"file_units": self.units, "file_up": self.up, "file_forward": self.forward}

    def apply(self, points: Array) -> Array:
        """Points of the file [its units] as points in the lab [m]; last axis x, y, z."""
        return self.scale * self.turn(points)

    def turn(self, vectors: Array) -> Array:
        """Vectors of the file as vectors in the lab, in the same units; for forces and directions."""
        return vectors @ self.rotation.T

    def undo(self, points: Array) -> Array:
        """Points in the lab [m] as the file would have them."""
        return (points @ self.rotation) / self.scale


def opensim_axes(recording: Recording, units: str | None = None, up: str | None = None) -> Conversion:
    """Units and axes to write in OpenSim's formats: y up, unless the recording came from one of them with others."""
    had = Conversion.of_file(recording.data.attrs, up="+Y")
    if up or recording.format not in ("TRC", "MOT", "STO"):
        had = Conversion.of(had.units, up or "+Y")
    return Conversion.of(units, had.up, had.forward) if units else had


class Inference(NamedTuple):
    """What the data say about a file's units, up axis or forward axis, and why; answer "" where they say nothing.

    `by_labels` if names of body parts tell it, which is surer than a floor or plates.
    """

    answer: str
    evidence: str
    by_labels: bool = False


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
    usual_units: str = "mm",
    usual_up: str = "+Z",
) -> tuple[Conversion, tuple[Note, ...]]:
    """How to turn a file's numbers into lab metres, and the notes that say how that was found.

    Args:
        stated_units: Unit of length the file states; None if it states none.
        stated_up: Axis the file calls up, "+Z" or "Y"...; None if it does not say.
        positions: The file's own numbers, shape (frames, points, 3), not a number where not seen; None without points.
        labels: Names of the points, which tell heads from feet.
        units: The user's word, which wins over everything.
        up: The user's word for the axis that points up.
        forward: The file's axis to be turned into x; "auto" for the way the subject goes or faces. By default nothing
            is turned about the vertical.
        plate_corners: Corners of force plates in the file's numbers, shape (plates, 4, 3).
        usual_units: What files of this format mostly use, for want of evidence.
        usual_up: Likewise for the axis that points up.
    """
    points = _sample(positions)
    labels = labels[: points.shape[1]]
    unit, unit_notes = _choose_units(stated_units, units, points, labels, usual_units)
    seen = infer_up(points, labels, None if plate_corners is None else np.asarray(plate_corners, float))
    upward, up_notes = _choose_up(stated_up, up, seen, usual_up)
    found = Conversion.of(unit, upward)
    way = infer_forward(found.apply(points), labels)
    ahead = file_axis(way.answer, found)
    notes = [*unit_notes, *up_notes]
    if forward == "auto":
        found = Conversion.of(unit, upward, ahead)
        said = f"{found.forward} is made x: {way.evidence}" if ahead else f"nothing is turned: {way.evidence}"
        notes.append(Note(f"forward: {said}", "inferred", "--forward +X (or another axis)"))
    elif forward:
        found = Conversion.of(unit, upward, forward)
        notes.append(Note(f"{found.forward} is made x, as asked", "stated"))
    elif ahead:
        turn = "" if ahead == found.forward else f"--forward {ahead} makes it x"
        notes.append(Note(f"forward is {ahead} of the file: {way.evidence}", "inferred", turn))
    return found, tuple(notes)


def default_forward(up: str) -> str:
    """The file's axis that becomes x where nobody asks for another: +X, or +Y in files whose X is vertical."""
    return "+Y" if up[1] == "X" else "+X"


def parse_axis(word: str, what: str = "axis") -> str:
    """An axis as sign and letter: "y", "Y" and "+y" are "+Y".

    Raises:
        SettingsError: if the word is no axis.
    """
    match = re.fullmatch(r"\s*([+-]?)\s*([xyzXYZ])\s*", word)
    if match is None:
        raise SettingsError(f"{what}: {unknown_name('axis', word, ('+X', '-X', '+Y', '-Y', '+Z', '-Z'))}")
    return (match[1] or "+") + match[2].upper()


def parse_unit(word: str | None) -> str | None:
    """The name in `UNITS` of a unit as files spell it ("Meters", "mete", "MM"); None if it is not understood."""
    text = (word or "").replace("\0", "").strip().lower()
    if text in UNITS:
        return text
    return next((name for start, name in _SPELLINGS if text.startswith(start)), None)


def infer_units(points: Array, labels: Sequence[str]) -> Inference:
    """The unit in which the bodies have a person's size; where several would do, metres and millimetres come first."""
    size, (low, high), what = body_size(points, labels)
    if not size > 0.0:
        return Inference("", "there are no points to measure")
    fitting = [name for name in ("m", "mm", "cm", "in", "ft", "dm") if low <= size * UNITS[name] <= high]
    if not fitting:
        return Inference("", f"{what} is {size:.4g} in the file, which is a person's in no usual unit")
    if (low, high) == STATURE:
        fitting.sort(key=lambda name: abs(np.log(size * UNITS[name] / USUAL_STATURE)))
    return Inference(fitting[0], f"{what} is {size:.4g} in the file, {size * UNITS[fitting[0]]:.2f} m")


def body_size(points: Array, labels: Sequence[str]) -> tuple[float, tuple[float, float], str]:
    """Size of the bodies in the units of the points, the sizes [m] that are believed, and what was measured."""
    if not points.size:
        return 0.0, SPREAD, "nothing"
    slopes = _long_axes(points, labels)
    if len(slopes):
        return float(np.median(np.linalg.norm(slopes, axis=1))), STATURE, "the stature that the labels imply"
    named = [i for i, label in enumerate(labels) if not label.startswith("*")]
    chosen = points[:, named] if named else points
    seen = visible(chosen)
    full = seen.sum(axis=1) >= 3
    if not full.any():
        return 0.0, SPREAD, "nothing"
    part = np.where(seen[full][..., None], chosen[full], np.nan)
    middles = np.nanmedian(part, axis=1, keepdims=True)
    distances = np.linalg.norm(part - middles, axis=2)
    return float(np.nanmedian(distances)), SPREAD, "the markers' median distance from their middle"


def infer_up(points: Array, labels: Sequence[str], corners: Array | None = None) -> Inference:
    """The axis that points up: by heads above feet, else by the plane of the force plates, else by a common floor."""
    slopes = _long_axes(points, labels)
    if len(slopes):
        mean = (slopes / np.linalg.norm(slopes, axis=1, keepdims=True)).mean(axis=0)
        axis = int(np.argmax(np.abs(mean)))
        if abs(mean[axis]) >= UPRIGHT:
            answer = _named(axis, mean[axis])
            return Inference(answer, f"the body's upper markers are above its lower ones along {answer}", True)
    if corners is not None and len(corners):
        found = _up_of_plates(points, corners)
        if found.answer:
            return found
    return _up_of_floor(points)


def infer_forward(lab_points: Array, labels: Sequence[str]) -> Inference:
    """The lab's horizontal axis along which the subject travels or, staying in place, faces."""
    if not lab_points.size:
        return Inference("", "there are no points")
    hips = find_landmarks(labels, ("pelvis", "hip"))
    path = mean_position(lab_points, hips or range(lab_points.shape[1]))
    path = path[visible(path)]
    if len(path) > 1:
        tenth = max(1, len(path) // 10)
        way = path[-tenth:].mean(axis=0) - path[:tenth].mean(axis=0)
        if np.hypot(way[0], way[1]) >= TRAVEL:
            name = "pelvis" if hips else "markers' middle"
            return Inference(_main_axis(way), f"the {name} travels {np.hypot(way[0], way[1]):.2f} m")
    faced = facing(lab_points, labels)
    faced = faced[visible(faced)]
    if len(faced):
        return Inference(_main_axis(faced.mean(axis=0)), "the subject stays in place and faces that way")
    return Inference("", "the subject does not travel, and no labels show its front and back")


def file_axis(lab_axis: str, found: Conversion) -> str:
    """The file's axis that a lab axis was; "" for ""."""
    if not lab_axis:
        return ""
    way = _vector(lab_axis) @ found.rotation
    axis = int(np.argmax(np.abs(way)))
    return _named(axis, way[axis])


def _choose_units(
    stated: str | None, asked: str | None, points: Array, labels: Sequence[str], usual: str
) -> tuple[str, list[Note]]:
    if asked:
        return _unit(asked), [Note(f"lengths are taken as {_unit(asked)}, as asked", "stated")]
    seen = infer_units(points, labels)
    named = parse_unit(stated)
    if named is None:
        odd = f"the file's unit {stated.strip()!r} is not known; " if stated and stated.strip() else ""
        if seen.answer:
            said = f"{odd}lengths are taken as {seen.answer}: {seen.evidence}"
            return seen.answer, [Note(said, "inferred", "--units mm (or m, cm, in)")]
        said = f"{odd}lengths are taken as {usual}, which is usual, without evidence: {seen.evidence}"
        return usual, [Note(said, "inferred", "--units mm (or m, cm, in)")]
    notes = [Note(f"lengths are taken as {named}: the file says so", "stated")]
    size, (low, high), what = body_size(points, labels)
    if size > 0.0 and not low <= size * UNITS[named] <= high:
        remedy = f"--units {seen.answer}" if seen.answer else "--units mm (or m, cm, in)"
        said = f"the file says lengths are in {named}, but {what} would be {size * UNITS[named]:.4g} m"
        notes.append(Note(said, "problem", remedy))
    return named, notes


def _choose_up(stated: str | None, asked: str | None, seen: Inference, usual: str) -> tuple[str, list[Note]]:
    if asked:
        upward = parse_axis(asked, "up")
        return upward, [Note(f"{upward} is up, as asked", "stated")]
    try:
        said = parse_axis(stated, "up") if stated and stated.strip() else None
    except SettingsError:
        said = None
    if said is None:
        if seen.answer:
            return seen.answer, [Note(f"{seen.answer} is up: {seen.evidence}", "inferred", "--up +Y (or another axis)")]
        answer = parse_axis(usual)
        why = f"{answer} is up, which is usual, without evidence: {seen.evidence}"
        return answer, [Note(why, "inferred", "--up +Y (or another axis)")]
    if not seen.answer or seen.answer == said:
        return said, [Note(f"{said} is up: the file says so", "stated")]
    if seen.answer[1] == said[1] and seen.by_labels:
        # screens are described from in front and from behind: only the letter is to be trusted
        both = f"{seen.answer} is up: {seen.evidence}, although the file says {said}"
        return seen.answer, [Note(both, "inferred", f"--up {said}")]
    notes = [Note(f"{said} is up: the file says so", "stated")]
    notes.append(Note(f"the file says {said} is up, but {seen.evidence}", "problem", f"--up {seen.answer}"))
    return said, notes


def _long_axes(points: Array, labels: Sequence[str]) -> Array:
    """Per frame, the slope of position over fraction of stature; frames that show too little of a body are left out."""
    marks = [identify_landmark(label) for label in labels[:MOST_LABELS]]
    chosen = [i for i, mark in enumerate(marks) if mark and mark.part in HEIGHT]
    if len(chosen) < 3 or not points.size:
        return np.empty((0, 3))
    heights = np.array([HEIGHT[mark.part] for mark in marks if mark and mark.part in HEIGHT])
    part = points[:, chosen]
    seen = visible(part)
    part = np.where(seen[..., None], part, 0.0)
    count = seen.sum(axis=1)
    offset = np.where(seen, heights - (seen @ heights / np.maximum(count, 1))[:, None], 0.0)
    weight = (offset**2).sum(axis=1)
    # a fifth of stature between the upper and the lower half of at least three markers
    enough = (count >= 3) & (weight > count * 0.1**2)
    slopes = np.einsum("fm,fma->fa", offset[enough], part[enough]) / weight[enough, None]
    return slopes[np.linalg.norm(slopes, axis=1) > 0.0]


def _up_of_plates(points: Array, corners: Array) -> Inference:
    first, second = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    normals = np.cross(first, second)
    sizes = np.linalg.norm(normals, axis=1, keepdims=True)
    if not np.isfinite(sizes).all() or (sizes <= 0.0).any():
        return Inference("", "the force plates have no area")
    level = np.abs(normals / sizes).min(axis=0)
    axis = int(np.argmax(level))
    seen = points[visible(points)]
    if level[axis] < 0.95 or not len(seen):
        return Inference("", "the force plates do not lie along the axes")
    above = float(np.median(seen[:, axis]) - corners[..., axis].mean())
    answer = _named(axis, above)
    return Inference(answer, f"the force plates lie across {answer[1]}, and the markers are on their {answer[0]} side")


def _up_of_floor(points: Array) -> Inference:
    """The axis along which the lowest point of all frames stays nearest to one height, that height being about zero."""
    seen = visible(points)
    full = seen.sum(axis=1) >= 3
    if full.sum() < 3:
        return Inference("", "there are too few points to see a floor")
    part = np.where(seen[full][..., None], points[full], np.nan)
    extent = np.nanmax(part, axis=1) - np.nanmin(part, axis=1)
    size = float(np.median(np.linalg.norm(extent, axis=1)))
    found: list[tuple[float, str]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            lowest = np.nanmin(sign * part[..., axis], axis=1)
            wide = np.median(extent[:, axis]) > 0.3 * size
            if wide and -0.1 * size < np.percentile(lowest, 5) and np.median(lowest) < 0.15 * size:
                found.append((float(np.std(lowest)), _named(axis, sign)))
    if len(found) == 1 or (len(found) > 1 and sorted(found)[0][0] < 0.5 * sorted(found)[1][0]):
        answer = min(found)[1]
        return Inference(answer, f"the lowest marker keeps to one height near zero along {answer} only")
    return Inference("", "neither labels nor a floor show which axis is vertical")


def _sample(positions: Array | None) -> Array:
    if positions is None or not np.size(positions):
        return np.empty((0, 0, 3))
    step = -(-len(positions) // SAMPLE)
    points = np.asarray(positions[::step, :, :3], float)
    absurd = ~(np.abs(points) < 1e12).all(axis=2) | (points == 0.0).all(axis=2)
    return np.where(absurd[..., None], np.nan, points)


def _unit(word: str) -> str:
    named = parse_unit(word)
    if named is not None:
        return named
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 1e-9 < number < 1e9:
        raise SettingsError(f"units: {unknown_name('unit', word, UNITS)}, or a number of metres")
    return str(number)


def _length(unit: str) -> float:
    return UNITS[unit] if unit in UNITS else float(unit)


def _vector(axis: str) -> Array:
    return (1.0 if axis[0] == "+" else -1.0) * np.eye(3)["XYZ".index(axis[1])]


def _named(axis: int, sign: float) -> str:
    return ("+" if sign >= 0.0 else "-") + "XYZ"[axis]


def _main_axis(way: Array) -> str:
    axis = int(np.argmax(np.abs(way[:2])))
    return _named(axis, way[axis])

"""Names, kinds and units of the points and channels of a C3D file, and its subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.errors import list_names
from borelli.recording.formats.c3d.parameters import Parameters
from borelli.recording.recording import Note, number_repeated, split_prefix

GROUPS = {"ANGLES": "angle", "FORCES": "force", "MOMENTS": "moment", "POWERS": "power", "SCALARS": "scalar"}
"""Parameters of the group POINT that list computed quantities other than positions (Vicon model outputs)."""

_BY_NAME = re.compile(r"[LR]?\w*?(?P<kind>Angle|Force|GRF|Moment|Power)s?")
_UNLABELED = re.compile(r"(?:\*|U|uname\*?|unlabell?ed\s*|unnamed\s*|unknown\s*)(\d+)", re.IGNORECASE)
_TRUNCATED_LENGTH = 4
"""Length to which old programs truncate labels."""

_MUSCLES = re.compile(
    r"rect|vast|bicep|tricep|hamst|semi[tm]|tibial|gastro|sole[ua]|glut|adduct|peron|erector|trapez|delt|lat.*dors|"
    r"gracil|sartor|magnus|psoas|oblique|abdom|pector|brachi|quad|flexor|extensor|\bemg",
    re.IGNORECASE,
)
_MUSCLE_CODES = re.compile(
    r"(?:[LR][ _.-]?)?(?:RF|VMO?|VL|BF|ST|SM|TA|GM|GL|[LM]?GAST?|GMED|GMAX|M?SOL|PL|PE|PB|ES|ERS|DL|MF|"
    r"ADD|REC|VAS|TIB|[LM]?HAMS?|BIC|TRI|ISC|GLU|LAT|DEL)",
    re.IGNORECASE,
)
_VOLTS = {"v", "mv", "uv", "µv", "volt", "volts", "microv", "millivolts"}


@dataclass(frozen=True)
class Points:
    """Indices, names and units of the points that are markers and of those that are other quantities."""

    markers: npt.NDArray[np.intp]
    marker_names: list[str]
    quantities: npt.NDArray[np.intp]
    quantity_names: list[str]
    quantity_kinds: list[str]
    quantity_units: list[str]
    prefix: str


def name_points(parameters: Parameters, count: int) -> tuple[Points, list[Note]]:
    """Return names and kinds of `count` points, and notes."""
    notes: list[Note] = []
    labels, described = _full_labels(parameters, count)
    if described:
        notes.append(described)
    labels, prefix = _stripped(labels)
    kinds = _kinds(parameters, labels, prefix)
    inferred = [name for name, (kind, stated) in zip(labels, kinds, strict=True) if kind and not stated]
    if inferred:
        text = f"{list_names(inferred)} are assumed to be angles, forces, moments or powers because of their names."
        notes.append(Note(text, "inferred", code="model_outputs"))
    unlabeled = [i for i, name in enumerate(labels) if not name or _UNLABELED.fullmatch(name)]
    for i in unlabeled:
        match = _UNLABELED.fullmatch(labels[i])
        labels[i] = f"*{match[1] if match else i + 1}"
    if unlabeled:
        called = list_names([labels[i] for i in unlabeled])
        text = f"{len(unlabeled)} of {count} points have no label and are called {called}."
        notes.append(Note(text, "problem", "label them, or omit them with select_markers", code="unlabeled_points"))
    names = number_repeated(labels, notes)
    chosen = np.array([bool(kind) for kind, _ in kinds], bool)
    units = {kind: _kind_units(parameters, group, kind) for group, kind in GROUPS.items()}
    markers, quantities = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    points = Points(
        markers=markers,
        marker_names=[names[i] for i in markers],
        quantities=quantities,
        quantity_names=[names[i] for i in quantities],
        quantity_kinds=[kinds[i][0] for i in quantities],
        quantity_units=[units.get(kinds[i][0], "") for i in quantities],
        prefix=prefix,
    )
    return points, notes


def _full_labels(parameters: Parameters, count: int) -> tuple[list[str], Note | None]:
    """Return the labels of the points, completed from the descriptions where they are truncated, and a note."""
    labels = parameters.texts("POINT", "LABELS")[:count]
    labels += [""] * (count - len(labels))
    stored = parameters.get("POINT", "LABELS")
    descriptions = parameters.texts("POINT", "DESCRIPTIONS")[:count]
    if stored is None or not stored.dims or stored.dims[0] > _TRUNCATED_LENGTH or len(descriptions) < count:
        return labels, None
    truncated = [_is_truncated(label, text) for label, text in zip(labels, descriptions, strict=True)]
    words = any(" " in text for text in descriptions)
    repeated = len(set(labels)) < len(labels)
    fuller = sum(len(text) > len(label) for label, text in zip(labels, descriptions, strict=True))
    if not fuller or sum(truncated) < 0.8 * count or (words and not repeated):
        return labels, None
    full = [text or label for label, text in zip(labels, descriptions, strict=True)]
    example = next(i for i in range(count) if len(full[i]) > len(labels[i]))
    text = f"Labels are truncated to {stored.dims[0]} characters; full names are from POINT:DESCRIPTIONS"
    return full, Note(f"{text} ({labels[example]} is {full[example]}).", "stated", code="truncated_labels")


def _is_truncated(label: str, description: str) -> bool:
    """Return whether a label is a truncated description: its start, or an initial and the start of the next word."""
    words = [word.upper() for word in re.findall(r"[A-Za-z0-9]+", description)]
    if not words or not label:
        return False
    forms = {
        description.upper()[:_TRUNCATED_LENGTH],
        "".join(words)[:_TRUNCATED_LENGTH],
        words[0][:1] + "".join(words[1:])[: _TRUNCATED_LENGTH - 1],
    }
    return label.upper() in forms


def _stripped(labels: list[str]) -> tuple[list[str], str]:
    """Return the labels without the prefix of all labeled points, and that prefix."""
    named = [i for i, name in enumerate(labels) if name and not _UNLABELED.fullmatch(name)]
    short, prefix = split_prefix([labels[i] for i in named])
    new = dict(zip(named, short, strict=True))
    return [new.get(i, label) for i, label in enumerate(labels)], prefix


def _kinds(parameters: Parameters, labels: Sequence[str], prefix: str) -> list[tuple[str, bool]]:
    """Return for each point the kind of quantity ("" for a position), and whether the file states it."""
    named = {group: parameters.texts("POINT", group) for group in GROUPS}
    stated = {name.removeprefix(f"{prefix}:"): GROUPS[group] for group, names in named.items() for name in names}
    kinds = []
    for name in labels:
        if name in stated:
            kinds.append((stated[name], True))
        elif match := _BY_NAME.fullmatch(name):
            kinds.append((match["kind"].lower().replace("grf", "force"), False))
        else:
            kinds.append(("", False))
    return kinds


def _kind_units(parameters: Parameters, group: str, kind: str) -> str:
    usual = {"angle": "deg", "force": "N", "moment": "N mm", "power": "W"}.get(kind, "")
    stated = parameters.text("POINT", f"{group[:-1]}_UNITS")
    return {"Nmm": "N mm", "Nm": "N m", "N.m": "N m", "N.mm": "N mm"}.get(stated, stated) or usual


def normalized_units(
    points: Points, peaks: npt.NDArray[np.float64], mass: float | None
) -> tuple[list[str], list[Note]]:
    """Return the units of the quantities, with "/kg" if the size of the ground force shows a division by mass [kg].

    `peaks` are the largest magnitudes over time, in the stated units.
    """
    units = list(points.quantity_units)
    ground = [0.0]
    for i, name in enumerate(points.quantity_names):
        if name.endswith("NormalisedGRF"):
            units[i] = "% of body weight"
        elif points.quantity_kinds[i] == "force" and re.fullmatch(r"[LR]?GroundReactionForce", name):
            ground.append(float(peaks[i]))
    largest = max(peak for peak in ground if np.isfinite(peak))
    if not 2.0 < largest < 60.0 or (mass is not None and largest > 0.3 * mass * 9.81):
        return units, []
    for i, kind in enumerate(points.quantity_kinds):
        if kind in ("force", "moment", "power") and not points.quantity_names[i].endswith("NormalisedGRF"):
            units[i] += "/kg"
    weight = f", and the subject weighs {mass * 9.81:.0f} N" if mass else ""
    text = "Computed forces, moments and powers are assumed to be divided by body mass"
    text = f"{text}: the ground force peaks at {largest:.1f}, where the file states N{weight}."
    return units, [Note(text, "inferred", code="mass_normalized")]


def channel_kinds(
    labels: Sequence[str], descriptions: Sequence[str], units: Sequence[str], plates: set[int]
) -> list[str]:
    """Return the kind of each channel: "plate", "emg" (by label, description and unit) or "other"."""
    kinds = []
    for i, label in enumerate(labels):
        text = f"{label} {descriptions[i]}"
        muscle = _MUSCLES.search(text) or _MUSCLE_CODES.fullmatch(re.split(r"[.:]", label)[-1])
        emg = "emg" in text.lower() or (muscle and units[i].lower() in _VOLTS)
        kinds.append("plate" if i in plates else "emg" if emg else "other")
    return kinds


def read_subject(parameters: Parameters, prefix: str) -> dict[str, str | float]:
    """Return name, mass [kg], height and joint widths [m], marker set and label prefix of the subject, as stated."""
    names = [name for name in parameters.texts("SUBJECTS", "NAMES") if name]
    mass = _first(parameters, ("BODYMASS", "MASS", "WEIGHT"))
    height = _first(parameters, ("HEIGHT", "BODYHEIGHT", "STATURE"))
    subject: dict[str, str | float] = {
        "name": ", ".join(names) or parameters.text("SUBJECT", "NAME"),
        "mass": mass if 1.0 < mass < 500.0 else 0.0,
        "height": next((height * unit for unit in (1.0, 1e-3, 1e-2) if 0.3 < height * unit < 2.8), 0.0),
        "marker_set": ", ".join(text for text in parameters.texts("SUBJECTS", "MARKER_SETS") if text),
        "prefix": prefix,
    }
    for joint in ("knee", "ankle"):
        sides = [_first(parameters, (f"{side}{joint}WIDTH".upper(),)) for side in "LR"]
        widths = [width * unit for width in sides for unit in (1.0, 1e-3, 1e-2) if 0.03 < width * unit < 0.2]
        subject[f"{joint}_width"] = sum(widths) / len(widths) if widths else 0.0
    return {key: value for key, value in subject.items() if value}


def _first(parameters: Parameters, names: Sequence[str]) -> float:
    values = (parameters.number(group, name) for group in ("PROCESSING", "SUBJECT", "SUBJECTS") for name in names)
    return next((value for value in values if np.isfinite(value) and value > 0.0), 0.0)

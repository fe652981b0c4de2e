"""What the points and channels of a C3D file are: their names, kinds and units, and the subject they belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.errors import list_names
from borelli.recording.formats.c3d.parameters import Parameters
from borelli.recording.recording import Note, unique_names, split_prefix

GROUPS = {"ANGLES": "angle", "FORCES": "force", "MOMENTS": "moment", "POWERS": "power", "SCALARS": "scalar"}
"""Parameters of the group POINT that list computed points which are no positions (Vicon's model outputs)."""

_BY_NAME = re.compile(r"[LR]?\w*?(?P<kind>Angle|Force|GRF|Moment|Power)s?")
_UNLABELLED = re.compile(r"(?:\*|U|uname\*?|unlabell?ed\s*|unnamed\s*|unknown\s*)(\d+)", re.IGNORECASE)
_CUT = 4
"""Width to which old programs cut labels."""

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
    """Which of a file's points are markers and which are other quantities, by index, with their names and units."""

    markers: npt.NDArray[np.intp]
    marker_names: list[str]
    quantities: npt.NDArray[np.intp]
    quantity_names: list[str]
    quantity_kinds: list[str]
    quantity_units: list[str]
    prefix: str


def name_points(parameters: Parameters, count: int) -> tuple[Points, list[Note]]:
    """The names of so many points, told into markers and computed quantities."""
    notes: list[Note] = []
    labels, described = _full_labels(parameters, count)
    if described:
        notes.append(described)
    labels, prefix = _stripped(labels)
    kinds = _kinds(parameters, labels, prefix)
    guessed = [name for name, (kind, stated) in zip(labels, kinds, strict=True) if kind and not stated]
    if guessed:
        said = f"{list_names(guessed)} are taken for computed angles, forces, moments or powers by their names"
        notes.append(Note(f"{said}, not for positions", "inferred"))
    unlabelled = [i for i, name in enumerate(labels) if not name or _UNLABELLED.fullmatch(name)]
    for i in unlabelled:
        match = _UNLABELLED.fullmatch(labels[i])
        labels[i] = f"*{match[1] if match else i + 1}"
    if unlabelled:
        called = list_names([labels[i] for i in unlabelled])
        said = f"{len(unlabelled)} of {count} points have no label and are called {called}"
        notes.append(Note(said, "problem", "label them, or leave them out with select_markers"))
    names, repeated = unique_names(labels)
    if repeated:
        said = (
            f"the labels {list_names(repeated)} occur more than once; the later ones are called {repeated[0]}_2 and so on"
        )
        notes.append(Note(said, "problem"))
    chosen = np.array([bool(kind) for kind, _ in kinds], bool)
    units = {kind: _kind_units(parameters, group, kind) for group, kind in GROUPS.items()}
    quantities = np.flatnonzero(chosen)
    points = Points(
        markers=np.flatnonzero(~chosen),
        marker_names=[names[i] for i in np.flatnonzero(~chosen)],
        quantities=quantities,
        quantity_names=[names[i] for i in quantities],
        quantity_kinds=[kinds[i][0] for i in quantities],
        quantity_units=[units.get(kinds[i][0], "") for i in quantities],
        prefix=prefix,
    )
    return points, notes


def _full_labels(parameters: Parameters, count: int) -> tuple[list[str], Note | None]:
    """Labels of the points, completed from the descriptions where programs cut them to four letters."""
    labels = parameters.texts("POINT", "LABELS")[:count]
    labels += [""] * (count - len(labels))
    stored = parameters.get("POINT", "LABELS")
    descriptions = parameters.texts("POINT", "DESCRIPTIONS")[:count]
    if stored is None or not stored.dims or stored.dims[0] > _CUT or len(descriptions) < count:
        return labels, None
    cut = [_is_cut(label, text) for label, text in zip(labels, descriptions, strict=True)]
    words = any(" " in text for text in descriptions)
    repeated = len(set(labels)) < len(labels)
    fuller = sum(len(text) > len(label) for label, text in zip(labels, descriptions, strict=True))
    if not fuller or sum(cut) < 0.8 * count or (words and not repeated):
        return labels, None
    full = [text or label for label, text in zip(labels, descriptions, strict=True)]
    example = next(i for i in range(count) if len(full[i]) > len(labels[i]))
    said = f"labels are cut to {stored.dims[0]} letters; full names are taken from POINT:DESCRIPTIONS"
    return full, Note(f"{said} ({labels[example]} is {full[example]})", "stated")


def _is_cut(label: str, description: str) -> bool:
    """Whether a label is what remains of a description: its start, or an initial and the next word's start."""
    words = [word.upper() for word in re.findall(r"[A-Za-z0-9]+", description)]
    if not words or not label:
        return False
    forms = {description.upper()[:_CUT], "".join(words)[:_CUT], words[0][:1] + "".join(words[1:])[: _CUT - 1]}
    return label.upper() in forms


def _stripped(labels: list[str]) -> tuple[list[str], str]:
    """Labels without the prefix that all labelled points share."""
    named = [i for i, name in enumerate(labels) if name and not _UNLABELLED.fullmatch(name)]
    short, prefix = split_prefix([labels[i] for i in named])
    stripped = list(labels)
    for i, name in zip(named, short, strict=True):
        stripped[i] = name
    return stripped, prefix


def _kinds(parameters: Parameters, labels: Sequence[str], prefix: str) -> list[tuple[str, bool]]:
    """Per point: the kind of quantity ("" for a position), and whether the file states it."""
    stated = {}
    for group, kind in GROUPS.items():
        for name in parameters.texts("POINT", group):
            stated[name.removeprefix(f"{prefix}:")] = kind
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


def per_kilogram(points: Points, peaks: npt.NDArray[np.float64], mass: float | None) -> tuple[list[str], list[Note]]:
    """Units of the quantities, with "/kg" where a ground force of a few N/kg shows that they are divided by mass.

    Args:
        points: The quantities.
        peaks: Largest magnitude of each over time, in its stated units.
        mass: The subject's mass [kg], if the file tells it.
    """
    units = list(points.quantity_units)
    ground = [
        i
        for i, name in enumerate(points.quantity_names)
        if points.quantity_kinds[i] == "force" and re.fullmatch(r"[LR]?GroundReactionForce", name)
    ]
    for i, name in enumerate(points.quantity_names):
        if name.endswith("NormalisedGRF"):
            units[i] = "% of body weight"
    largest = max((float(peaks[i]) for i in ground if np.isfinite(peaks[i])), default=0.0)
    if not 2.0 < largest < 60.0 or (mass is not None and largest > 0.3 * mass * 9.81):
        return units, []
    for i, kind in enumerate(points.quantity_kinds):
        if kind in ("force", "moment", "power") and not points.quantity_names[i].endswith("NormalisedGRF"):
            units[i] += "/kg"
    weight = f", and the subject weighs {mass * 9.81:.0f} N" if mass else ""
    said = "computed forces, moments and powers are taken as divided by body mass"
    return units, [Note(f"{said}: the ground force peaks at {largest:.1f} where the file says N{weight}", "inferred")]


def channel_kinds(
    labels: Sequence[str], descriptions: Sequence[str], units: Sequence[str], plates: set[int]
) -> list[str]:
    """Kind of each channel: "plate", "emg" (by its label, description and unit) or "other"."""
    kinds = []
    for i, label in enumerate(labels):
        text = f"{label} {descriptions[i]}"
        volts = units[i].lower() in _VOLTS
        if i in plates:
            kinds.append("plate")
        elif "emg" in text.lower() or (
            volts and (_MUSCLES.search(text) or _MUSCLE_CODES.fullmatch(re.split(r"[.:]", label)[-1]))
        ):
            kinds.append("emg")
        else:
            kinds.append("other")
    return kinds


def read_subject(parameters: Parameters, prefix: str) -> dict[str, str | float]:
    """What the file says of the subject: name, mass [kg], height [m], marker set, prefix of the labels."""
    subject: dict[str, str | float] = {}
    names = [name for name in parameters.texts("SUBJECTS", "NAMES") if name]
    name = ", ".join(names) or parameters.text("SUBJECT", "NAME")
    if name:
        subject["name"] = name
    mass = _first(parameters, ("BODYMASS", "MASS", "WEIGHT"))
    if 1.0 < mass < 500.0:
        subject["mass"] = mass
    height = _first(parameters, ("HEIGHT", "BODYHEIGHT", "STATURE"))
    for unit in (1.0, 1e-3, 1e-2):
        if 0.3 < height * unit < 2.8:
            subject["height"] = height * unit
            break
    marker_set = ", ".join(text for text in parameters.texts("SUBJECTS", "MARKER_SETS") if text)
    if marker_set:
        subject["marker_set"] = marker_set
    if prefix:
        subject["prefix"] = prefix
    return subject


def _first(parameters: Parameters, names: Sequence[str]) -> float:
    for group in ("PROCESSING", "SUBJECT", "SUBJECTS"):
        for name in names:
            value = parameters.number(group, name)
            if np.isfinite(value) and value > 0.0:
                return value
    return 0.0

"""Parts shared by the sections of the report: legends, tables, intervals, settings as text, pairs of coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.recording.recording import Note
from borelli.reports.report_warnings import ReportWarning


def legend(**entries: str) -> str:
    """Return a legend: texts by the style class of their line."""
    items = "".join(f'<span><i class="{style}"></i>{escape(text)}</span>' for style, text in entries.items())
    return f'<div class="key">{items}</div>'


def interval_of(
    uncertainty: AnalysisUncertainty | None,
    group: str,
    name: str,
    index: Any = (),
    factor: float = 1.0,
    zero: float = 0.0,
) -> dict[str, Any]:
    """Return the interval of a line, factor * (variable[index] - zero), as `low` and `high`; {} if unknown."""
    if uncertainty is None or f"{name}_low" not in uncertainty.groups[group]:
        return {}
    data = uncertainty.groups[group]
    limits = [factor * (data[f"{name}_{suffix}"].values[index] - zero) for suffix in ("low", "high")]
    return dict(zip(("low", "high"), limits if factor > 0.0 else limits[::-1], strict=True))


def interval_legend(uncertainty: AnalysisUncertainty | None) -> dict[str, str]:
    """Return the entry of the legend for intervals, if there are any."""
    return {} if uncertainty is None else {"interval": f"95 % interval of {uncertainty.repeats} repeats"}


def coordinate_pairs(model: Model) -> dict[str, list[tuple[str, int]]]:
    """Return the sides and columns of coordinates by title, both sides together; the root has the side "root"."""
    root = set(root_coordinates(model))
    pairs: dict[str, list[tuple[str, int]]] = {}
    for k, coordinate in enumerate(model.coordinates):
        stem, _, letter = coordinate.name.rpartition("_")
        side = {"r": "right", "l": "left"}.get(letter)
        title = (stem if side else coordinate.name).replace("_", " ").capitalize()
        pairs.setdefault(title, []).append(("root" if coordinate.name in root else side or "right", k))
    return pairs


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as text."""
    parts = []
    for key, value in values.items():
        name, unit = (key[:-3], " Hz") if key.endswith("_hz") else (key, "")
        if value is not None and (text := value_text(value)):
            parts.append(f"{name.replace('_', ' ')} {text}{unit}")
    return ", ".join(parts)


def value_text(value: Any) -> str:
    """Return a value as short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return settings_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(value_text, value))
    return str(value)


def note_items(notes: Iterable[Note | ReportWarning]) -> str:
    """Return notes as items of a list: a sentence, then the recommended action, if any, in smaller type."""
    items = ""
    for note in notes:
        text = note.text[:1].upper() + note.text[1:] + ("" if note.text.endswith((".", "!", "?")) else ".")
        grade = f' class="{note.grade}"' if isinstance(note, ReportWarning) else ""
        items += f"<li{grade}>{escape(text)}{f'<em>{escape(note.action)}</em>' if note.action else ''}</li>"
    return items


def number_cells(*texts: str) -> str:
    """Return cells of a table that are aligned as numbers."""
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def table(head: Sequence[str], rows: str) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    numbers = "".join(f'<th class="n">{title}</th>' for title in head[1:])
    return f"<table><tr><th>{head[0]}</th>{numbers}</tr>{rows}</table>"

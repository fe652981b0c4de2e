"""Parts shared by the sections of the report: legends, tables, intervals, settings as text, pairs of coordinates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from borelli.analysis.strides import Statistic
from borelli.export.clinical_names import clinical_stem, split_side
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.recording.recording import Note
from borelli.reports.report_warnings import ReportWarning

SETTING_WORDS = {
    "framewise": "frame by frame", "newton_euler": "recursive Newton-Euler",
    "marker_driven": "marker-driven simulation",
    "ik method": "inverse kinematics", "id method": "inverse dynamics", "reading": "",
}  # fmt: skip
"""Words for settings and their values that have names of the program."""

MAX_WARNING_LENGTH = 240
"""Number of characters of a warning beyond which the list at its end is folded."""


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
        side = split_side(coordinate.name)[1]
        title = clinical_stem(coordinate.name)
        title = title[:1].upper() + title[1:]
        pairs.setdefault(title, []).append(("root" if coordinate.name in root else side or "right", k))
    return pairs


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as text."""
    parts = []
    for key, value in values.items():
        name, unit = (key[:-3], " Hz") if key.endswith("_hz") else (key, "")
        name = name.replace("_", " ")
        if value is not None and (text := value_text(value)):
            parts.append(f"{SETTING_WORDS.get(name, name)} {text}{unit}".strip())
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
    text = SETTING_WORDS.get(str(value), str(value))
    return text.replace("_", " ") if re.fullmatch(r"[a-z_]+", text) else text


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def warning_items(warnings: Iterable[ReportWarning], text: Callable[[str], str]) -> str:
    """Return warnings as items of a list: what is wrong, then what to do, once for all with the same remedy.

    `text` puts names into words.
    """
    same: dict[tuple[str, str], list[str]] = {}
    for one in warnings:
        same.setdefault((one.grade, one.action), []).append(_folded_list(sentence(text(one.text))))
    return "".join(
        f'<li class="{grade}">{"<br>".join(lines)}{f"<em>{escape(text(action))}</em>" if action else ""}</li>'
        for (grade, action), lines in same.items()
    )


def _folded_list(text: str) -> str:
    """Return a sentence; of a long one that ends in a list, the list folded."""
    head, colon, rest = text.partition(": ")
    if len(text) <= MAX_WARNING_LENGTH or not colon or len(head) > MAX_WARNING_LENGTH:
        return escape(text)
    return f"{escape(head)}.<details><summary>List</summary>{escape(rest[:1].upper() + rest[1:])}</details>"


def note_items(notes: Iterable[Note]) -> str:
    """Return notes as items of a list."""
    return "".join(f"<li>{escape(sentence(note.text))}</li>" for note in notes)


def number_cells(*texts: str) -> str:
    """Return cells of a table that are aligned as numbers."""
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def with_deviation(value: Statistic | None, digits: int) -> str:
    """Return a mean with its standard deviation over strides; "" if it is unknown."""
    if value is None or value.mean != value.mean:
        return ""
    spread = f'<span class="sd"> ± {value.sd:.{digits}f}</span>' if value.sd == value.sd else ""
    return f"{value.mean:.{digits}f}{spread}"


def table(head: Sequence[str], rows: str) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    numbers = "".join(f'<th class="n">{title}</th>' for title in head[1:])
    return scroll(f"<table><thead><tr><th>{head[0]}</th>{numbers}</tr></thead><tbody>{rows}</tbody></table>")


def scroll(content: str) -> str:
    """Return content that scrolls sideways where the page is too narrow for it."""
    return f'<div class="scroll">{content}</div>'


def folded(title: str, content: str) -> str:
    """Return content under a title that unfolds it; printing unfolds all."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"

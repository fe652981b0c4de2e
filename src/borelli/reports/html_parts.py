"""What the report's sections are made of: legends, edges of bands, lists in words, pairs of coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.model.model import Model


def legend(**entries: str) -> str:
    """What the lines of the plots below mean: words by class of the style sheet."""
    words = "".join(f'<span><i class="{style}"></i>{escape(text)}</span>' for style, text in entries.items())
    return f'<div class="key">{words}</div>'


def interval_of(
    bands: AnalysisUncertainty | None, group: str, name: str, at: Any = (), factor: float = 1.0, zero: float = 0.0
) -> dict[str, Any]:
    """Between what a line lies: `low` and `high` of a variable, at an index, from a zero; {} without bands."""
    if bands is None or f"{name}_low" not in bands.groups[group]:
        return {}
    ends = [factor * (bands.groups[group][f"{name}_{ending}"].values[at] - zero) for ending in ("low", "high")]
    return dict(zip(("low", "high"), ends if factor > 0.0 else ends[::-1], strict=True))


def interval_legend(bands: AnalysisUncertainty | None) -> dict[str, str]:
    """What the legend says of bands, where there are any."""
    return {} if bands is None else {"sure": f"95 % of {bands.repeats} repeats"}


def coordinate_pairs(model: Model) -> dict[str, list[tuple[str, int]]]:
    """Columns of coordinates by what they are, both sides together; the root's are marked as such."""
    root = set(root_coordinates(model))
    found: dict[str, list[tuple[str, int]]] = {}
    for k, coordinate in enumerate(model.coordinates):
        stem, _, letter = coordinate.name.rpartition("_")
        side = {"r": "right", "l": "left"}.get(letter)
        title = (stem if side else coordinate.name).replace("_", " ").capitalize()
        found.setdefault(title, []).append(("root" if coordinate.name in root else side or "right", k))
    return found


def settings_text(values: Mapping[str, Any]) -> str:
    """Settings in words."""
    words = []
    for key, value in values.items():
        name, unit = (key[:-3], " Hz") if key.endswith("_hz") else (key, "")
        if value is not None and (said := value_text(value)):
            words.append(f"{name.replace('_', ' ')} {said}{unit}")
    return ", ".join(words)


def value_text(value: Any) -> str:
    """A value in few words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return settings_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(value_text, value))
    return str(value)


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def action_html(text: str) -> str:
    """What to do about a warning, in smaller type; nothing where nothing is to be done."""
    return f"<em>{escape(text)}</em>" if text else ""

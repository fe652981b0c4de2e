"""HTML summaries for notebooks: a table and a small line plot, in plain Python and with all text escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

MAX_LINES = 20
"""Lines in one plot; further series are left out."""
MAX_POINTS = 700
"""Points in one plot, over all lines: about 6 kB."""
SIZE = (420, 110)
"""Width and height of a plot [px]."""
MAX_TEXT = 200
"""Characters of one cell or title."""
MAX_FIELD = 80
"""Characters of one field."""
MAX_ENTRIES = 6
"""Entries of a tuple or vector that are shown."""
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Tol's bright scheme, distinguishable for color-blind readers."""


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return an HTML table with a caption and one row for each (name, value)."""
    lines = "".join(
        f'<tr><th style="text-align:left">{_escape(name)}</th><td style="text-align:left">{_escape(value)}</td></tr>'
        for name, value in rows
    )
    caption = f'<caption style="text-align:left;font-weight:bold">{_escape(title)}</caption>'
    return f"<table>{caption}<tbody>{lines}</tbody></table>"


def sparkline_svg(time: Sequence[float], series: Mapping[str, Sequence[float]], *, label: str = "") -> str:
    """Return a line plot over time [s] as an inline SVG of at most about 10 kB, or "" where no sample is finite.

    NaN interrupts a line. The label is a title with the unit, such as "Marker height [m]".
    """
    width, height = SIZE
    names = list(series)[:MAX_LINES]
    size = min(len(time), *(len(series[name]) for name in names)) if names else 0
    if not size:
        return ""
    step = max(1, math.ceil(size * len(names) / MAX_POINTS))
    lines = {name: [(float(time[i]), float(series[name][i])) for i in range(0, size, step)] for name in names}
    finite = [(t, v) for points in lines.values() for t, v in points if math.isfinite(t) and math.isfinite(v)]
    if not finite:
        return ""
    (left, right), (low, high) = ((min(axis), max(axis)) for axis in zip(*finite, strict=True))
    top, bottom, side = 14, height - 12, 4

    def pixel(t: float, v: float) -> str:
        x = side + (width - 2 * side) * (t - left) / ((right - left) or 1.0)
        y = bottom - (bottom - top) * ((v - low) / (high - low) if high > low else 0.5)
        return f"{x:.0f},{y:.0f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="9" fill="none" stroke-width="1">'
    ]
    for number, (name, points) in enumerate(lines.items()):
        path = _path(points, pixel)
        if path:
            color = COLORS[number % len(COLORS)]
            parts.append(f'<path stroke="{color}" d="{path}"><title>{_escape(name, 30)}</title></path>')
    texts = [
        (side, 9, "start", f"{label} {low:.3g} to {high:.3g}".strip()),
        (side, height - 2, "start", f"{left:.3g} s"),
        (width - side, height - 2, "end", f"{right:.3g} s"),
    ]
    for x, y, anchor, text in texts:
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#666">{_escape(text)}</text>')
    return "".join((*parts, "</svg>"))


class Summary(NamedTuple):
    """What a result shows of itself: rows of a table, and lines of a small plot."""

    title: str
    rows: Sequence[tuple[str, object]]
    time: Sequence[float] = ()
    series: Mapping[str, Sequence[float]] = MappingProxyType({})
    label: str = ""


def fields_summary(result: Any) -> Summary:
    """Return the fields of a dataclass or named tuple: arrays by shape, long tuples by number and first entries."""
    rows = [(name, describe(getattr(result, name))) for name in _shown_fields(result)]
    return Summary(type(result).__name__, rows)


def fields_repr(result: Any) -> str:
    """Return the `repr` of a dataclass or named tuple in one line, with long fields described."""
    parts = ((name, getattr(result, name)) for name in _shown_fields(result))
    return f"{type(result).__name__}({', '.join(f'{name}={_brief(value)}' for name, value in parts)})"


def describe(value: object) -> str:
    """Return a value in at most about `MAX_FIELD` characters."""
    shape, variables = getattr(value, "shape", None), getattr(value, "data_vars", None)
    if variables is not None:
        return f"dataset of {len(variables)} variables"
    if isinstance(shape, tuple):
        return _array_text(value, shape)
    if isinstance(value, Mapping):
        return _list_text(list(islice(map(str, value), MAX_ENTRIES + 1)), len(value))
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return _list_text(value, len(value))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"function {value.__qualname__.rpartition('.')[2]}"
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= MAX_FIELD or isinstance(value, str | int | float):
        return _shorten(text, MAX_FIELD)
    name = getattr(value, "name", None)
    return f"{type(value).__name__} {_shorten(name, MAX_FIELD)!r}" if isinstance(name, str) else type(value).__name__


def _array_text(value: Any, shape: tuple[int, ...]) -> str:
    """Return the numbers of a short vector, or the shape of an array."""
    if not shape:
        return str(value)
    if len(shape) == 1 and shape[0] <= MAX_ENTRIES:
        return _shorten(f"[{', '.join(f'{number:.6g}' for number in value.tolist())}]", MAX_FIELD)
    return f"array of shape {shape}"


def _list_text(values: Sequence[object], count: int) -> str:
    """Return the number of entries and the first ones: their names where they have names, else their class."""
    if not values:
        return "none"
    names = [one if isinstance(one, str) else getattr(one, "name", None) for one in values[:MAX_ENTRIES]]
    shown = [f"{one:.6g}" if isinstance(one, float) else str(one) for one in values[:MAX_ENTRIES]]
    if not isinstance(values[0], str | int | float):
        kind = type(values[0]).__name__
        if not all(isinstance(name, str) for name in names):
            return f"{count} {kind}"
        return _shorten(f"{count} {kind}: {_enumeration(names, count)}", MAX_FIELD)
    return _shorten(f"{count}: {_enumeration(shown, count)}", MAX_FIELD)


def _enumeration(shown: Sequence[Any], count: int) -> str:
    return ", ".join(shown) + (", ..." if count > len(shown) else "")


def _brief(value: object) -> str:
    """Return the `repr` of a value, or its description in angle brackets where that is long."""
    if not hasattr(value, "shape") and not hasattr(value, "data_vars"):
        text = repr(value) if not isinstance(value, tuple | list | Mapping) or len(value) <= MAX_ENTRIES else None
        if text is not None and len(text) <= MAX_FIELD:
            return text
    return f"<{describe(value)}>"


def _shown_fields(result: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass, but those without `repr`, or of a named tuple."""
    if is_dataclass(result):
        return tuple(field.name for field in fields(result) if field.repr)
    return tuple(result._fields)


def summary_repr(result: Any) -> str:
    """Return the `repr` of a result from its `_summary()`."""
    summary: Summary = result._summary()
    rows = "".join(f"\n    {name}: {_shorten(value)}" for name, value in summary.rows)
    return f"<borelli.{_shorten(summary.title)}{rows}>"


def summary_html(result: Any) -> str:
    """Return the HTML of a result for notebooks from its `_summary()`."""
    summary: Summary = result._summary()
    return html_table(summary.title, summary.rows) + sparkline_svg(summary.time, summary.series, label=summary.label)


def main_series(data: Any, variable: str, count: int = 6, scale: float = 1.0) -> dict[str, list[float]]:
    """Return the columns (time, names) of a dataset's variable with the largest range, by name, times `scale`."""
    values = data[variable].values
    names = [str(name) for name in data[data[variable].dims[1]].values]
    columns = {name: [scale * float(value) for value in values[:, i]] for i, name in enumerate(names)}

    def extent(name: str) -> float:
        finite = [value for value in columns[name] if math.isfinite(value)]
        return max(finite) - min(finite) if finite else 0.0

    return {name: columns[name] for name in sorted(columns, key=extent, reverse=True)[:count]}


def _path(points: Iterable[tuple[float, float]], pixel: Callable[[float, float], str]) -> str:
    """Return the `d` attribute of a line that is interrupted where a value is not finite."""
    commands, command = [], "M"
    for t, v in points:
        finite = math.isfinite(t) and math.isfinite(v)
        if finite:
            commands.append(f"{command}{pixel(t, v)}")
        command = "L" if finite else "M"
    return "".join(commands)


def _escape(value: object, most: int = MAX_TEXT) -> str:
    return escape(_shorten(value, most))


def _shorten(value: object, most: int = MAX_TEXT) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}..."

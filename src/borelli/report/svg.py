"""Plots as SVG text: lines with bands, and bars. Every plot has a title, named axes with units, and ticks.

Lines are polylines in pixels; the element's `data-at` says which values the edges stand for, so that the page's script
can tell the values under the pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEFT, RIGHT, TOP, BOTTOM = 46.0, 6.0, 24.0, 32.0


class Line(NamedTuple):
    """A curve: its name, x, y, and classes of the style sheet ("right", "left", "third", "dark"; "thin", "dash")."""

    name: str
    x: Array
    y: Array
    style: str = "dark"


class Band(NamedTuple):
    """What is usual: mean and standard deviation along x."""

    x: Array
    mean: Array
    sd: Array


def line_plot(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    *,
    kind: str = "time",
    band: Band | None = None,
    second: Array | None = None,
    limits: Sequence[float] = (),
    spans: Sequence[float] = (),
    wide: bool = False,
) -> str:
    """A plot of lines.

    Args:
        title: What is shown.
        x_label: With its unit.
        y_label: With its unit.
        lines: Curves.
        kind: "time", "cycle" or "": what x is, for the page's script.
        band: Drawn behind, one standard deviation to both sides.
        second: A further mean, on the x of the band, dashed.
        limits: Values y at which a threshold is drawn.
        spans: Values x at which a vertical line is drawn, such as foot off.
        wide: Whether the plot is wider than it is high by more than usual.
    """
    width, height = (460.0, 190.0) if wide else (300.0, 196.0)
    x_values = np.concatenate([line.x for line in lines]) if lines else np.array([0.0, 1.0])
    y_values = [line.y for line in lines] + [np.array(limits, float)]
    if band is not None:
        y_values += [band.mean - band.sd, band.mean + band.sd]
    x0, x1 = (0.0, 100.0) if kind == "cycle" else _extent(x_values)
    y0, y1 = _room(*_extent(np.concatenate(y_values)))
    l, r, t, b = LEFT, width - RIGHT, TOP, height - BOTTOM

    def at(x: Array, y: Array) -> tuple[Array, Array]:
        return l + (np.asarray(x) - x0) / (x1 - x0) * (r - l), b - (np.asarray(y) - y0) / (y1 - y0) * (b - t)

    parts = [_open("plot", width, height, kind, (l, r, t, b, x0, x1, y0, y1), title)]
    parts += _axes(title, x_label, y_label, (l, r, t, b), (x0, x1, y0, y1), kind)
    if band is not None:
        upper, lower = at(band.x, band.mean + band.sd), at(band.x, band.mean - band.sd)
        edge = f"{_points(*upper)} {_points(lower[0][::-1], lower[1][::-1])}"
        parts.append(f'<polygon class="band" points="{edge}"/>')
        parts.append(f'<polyline class="mean" data-name="norm" points="{_points(*at(band.x, band.mean))}"/>')
        if second is not None:
            parts.append(f'<polyline class="mean dots" points="{_points(*at(band.x, second))}"/>')
    for value in limits:
        y = float(at(np.array([x0]), np.array([value]))[1][0])
        parts.append(f'<line class="limit" x1="{l:.1f}" x2="{r:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for value in spans:
        x = float(at(np.array([value]), np.array([y0]))[0][0])
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{t:.1f}" y2="{b:.1f}" style="stroke:#b9c4cd"/>')
    for line in lines:
        told = "" if "thin" in line.style else f' data-name="{escape(line.name)}"'
        for x, y in _pieces(*at(line.x, line.y)):
            parts.append(f'<polyline class="s {line.style}"{told} points="{_points(x, y)}"/>')
    return "<figure>" + "".join(parts) + "</svg></figure>"


def bar_plot(title: str, x_label: str, names: Sequence[str], values: Array, whiskers: Array, hot: float) -> str:
    """Bars to the right, one to a name, with a whisker to a second value; those above `hot` stand out."""
    rows = len(names)
    width, height = 460.0, 58.0 + 15.0 * rows
    l, r, t, b = 78.0, width - 40.0, TOP, height - BOTTOM
    x1 = _room(0.0, float(np.nanmax([*whiskers, *values, 1e-9])))[1]
    step = (b - t) / max(rows, 1)
    parts = [_open("bars", width, height, "", (l, r, t, b, 0.0, x1, 0.0, 1.0), title)]
    parts += [f'<text class="title" x="{l:.0f}" y="14">{escape(title)}</text>']
    parts += [f'<text x="{(l + r) / 2:.0f}" y="{height - 4:.0f}" text-anchor="middle">{escape(x_label)}</text>']
    for tick in _ticks(0.0, x1):
        x = l + tick / x1 * (r - l)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{t:.1f}" y2="{b:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{b + 13:.1f}" text-anchor="middle">{tick:g}</text>')
    for i, (name, value, whisker) in enumerate(zip(names, values, whiskers, strict=True)):
        y = t + (i + 0.5) * step
        parts.append(f'<text x="{l - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        if not np.isfinite(value):
            continue
        end, far = l + value / x1 * (r - l), l + whisker / x1 * (r - l)
        style = "bar hot" if value > hot else "bar"
        parts.append(
            f'<rect class="{style}" x="{l:.1f}" y="{y - 5:.1f}" width="{end - l:.1f}" height="10">'
            f"<title>{escape(name)}: {value:.2f}, at most {whisker:.2f}</title></rect>"
        )
        parts.append(f'<line class="whisker" x1="{end:.1f}" x2="{far:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<line class="whisker" x1="{far:.1f}" x2="{far:.1f}" y1="{y - 3:.1f}" y2="{y + 3:.1f}"/>')
    return "<figure>" + "".join(parts) + "</svg></figure>"


def _open(style: str, width: float, height: float, kind: str, at: Sequence[float], title: str) -> str:
    edges = " ".join(f"{value:.6g}" for value in at)
    return (
        f'<svg class="{style}" viewBox="0 0 {width:g} {height:g}" data-x="{kind}" data-at="{edges}" role="img" '
        f'aria-label="{escape(title)}">'
    )


def _axes(
    title: str, x_label: str, y_label: str, box: Sequence[float], span: Sequence[float], kind: str
) -> list[str]:
    l, r, t, b = box
    x0, x1, y0, y1 = span
    parts = [f'<text class="title" x="{l:.0f}" y="14">{escape(title)}</text>']
    for tick in _ticks(y0, y1):
        y = b - (tick - y0) / (y1 - y0) * (b - t)
        style = "zero" if abs(tick) < 1e-12 else "grid"
        parts.append(f'<line class="{style}" x1="{l:.1f}" x2="{r:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{l - 5:.0f}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    ticks = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0] if kind == "cycle" else _ticks(x0, x1)
    for tick in ticks:
        x = l + (tick - x0) / (x1 - x0) * (r - l)
        parts.append(f'<text x="{x:.1f}" y="{b + 13:.1f}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<line class="frame" x1="{l:.1f}" x2="{r:.1f}" y1="{b:.1f}" y2="{b:.1f}"/>')
    parts.append(f'<text x="{(l + r) / 2:.0f}" y="{b + 27:.0f}" text-anchor="middle">{escape(x_label)}</text>')
    middle = (t + b) / 2
    parts.append(
        f'<text x="10" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 10 {middle:.0f})">'
        f"{escape(y_label)}</text>"
    )
    return parts


def _points(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _pieces(x: Array, y: Array) -> list[tuple[Array, Array]]:
    """The parts of a curve that are known."""
    known = np.isfinite(y) & np.isfinite(x)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return [(x[a:b], y[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1]


def _extent(values: Array) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _room(low: float, high: float) -> tuple[float, float]:
    """A little more than the values take, ending at ticks."""
    step = _step(low, high)
    return float(np.floor(low / step + 0.03) * step), float(np.ceil(high / step - 0.03) * step)


def _step(low: float, high: float) -> float:
    rough = (high - low) / 4.0
    power = 10.0 ** np.floor(np.log10(rough))
    return float(next(m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if rough <= m * power * 1.0001) * power)


def _ticks(low: float, high: float) -> list[float]:
    step = _step(low, high)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(round(n * step, 10)) + 0.0 for n in np.arange(first, last + 1.0)]

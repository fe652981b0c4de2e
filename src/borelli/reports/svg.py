"""Plots as SVG text: lines with intervals, bars, and pairs of bars. Every plot has a title, axes with units, and ticks.

Lines are polylines in pixels; the attribute `data-at` contains the values at the plot's edges, from which the script of
the page computes the values under the pointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.runs import find_runs

Array = NDArray[np.float64]

MAX_POINTS, DRAWN_POINTS = 10_000, 2_000
"""Points of a line beyond which it is thinned, and the number then drawn: four for each pixel of a wide plot."""
ROW_HEIGHT = 15.0
"""Height of a bar's row [px]."""
PAIR_HEIGHT = 26.0
"""Height of the row of a pair of bars [px]."""


class Line(NamedTuple):
    """Curve with classes of the style sheet ("right", "left", "third", "dark"; "thin", "dash").

    The interval between `low` and `high`, if given, is shaded.
    """

    name: str
    x: Array
    y: Array
    style: str = "dark"
    low: Array | None = None
    high: Array | None = None


class NormativeBand(NamedTuple):
    """Normative mean and standard deviation along x."""

    x: Array
    mean: Array
    sd: Array


class Axes(NamedTuple):
    """Edges of a plot [px] and the values at these edges."""

    left: float
    right: float
    top: float
    bottom: float
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, values: Array | float) -> Array:
        """Return the pixels of values along x."""
        return np.asarray(self.left + (np.asarray(values) - self.x0) / (self.x1 - self.x0) * (self.right - self.left))

    def y(self, values: Array | float) -> Array:
        """Return the pixels of values along y."""
        return np.asarray(self.bottom - (np.asarray(values) - self.y0) / (self.y1 - self.y0) * (self.bottom - self.top))

    def points(self, x: Array, y: Array) -> str:
        """Return the points of a polyline; of a long series, the least and the largest of each piece."""
        x, y = _thinned(x, y)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(self.x(x), self.y(y), strict=True))

    def across(self, y: float, style: str) -> str:
        """Return a horizontal line."""
        at = float(self.y(y))
        return f'<line class="{style}" x1="{self.left:.1f}" x2="{self.right:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>'

    def down(self, x: float, style: str) -> str:
        """Return a vertical line."""
        at = float(self.x(x))
        return f'<line class="{style}" x1="{at:.1f}" x2="{at:.1f}" y1="{self.top:.1f}" y2="{self.bottom:.1f}"/>'


def line_plot(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    *,
    kind: str = "time",
    norm: NormativeBand | None = None,
    second: Array | None = None,
    limits: Sequence[float] = (),
    references: Sequence[float] = (),
    including: Sequence[float] = (),
    shaded: Sequence[tuple[float, float]] = (),
    marks: Mapping[str, float] | None = None,
    wide: bool = False,
) -> str:
    """Return a plot of lines.

    The script of the page needs the `kind` of quantity on the x axis: "time", "cycle" or "". A normative curve is drawn
    behind, one standard deviation to both sides, the mean of a `second` source dotted; `limits` are thresholds of y,
    `references` published values of y, `including` values that the y axis shows at least, `shaded` ranges of x, `marks`
    vertical lines at values of x by their style class.
    """
    width, height = (460.0, 190.0) if wide else (300.0, 196.0)
    values = [line.y for line in lines] + [np.array([*limits, *references, *including], float)]
    values += [limit for line in lines for limit in (line.low, line.high) if limit is not None]
    if norm is not None:
        values += [norm.mean - norm.sd, norm.mean + norm.sd]
    along = (0.0, 100.0) if kind == "cycle" else _extent([line.x for line in lines])
    axes = Axes(46.0, width - 6.0, 24.0, height - 32.0, *along, *_round_to_ticks(*_extent(values)))
    parts = [_open("plot", width, height, kind, axes, title), *_frame(axes, title, x_label, y_label, kind)]
    for first, last in shaded:
        left, right = float(axes.x(first)), float(axes.x(last))
        parts.append(
            f'<rect class="shaded" x="{left:.1f}" y="{axes.top:.1f}" width="{max(right - left, 0.5):.1f}" '
            f'height="{axes.bottom - axes.top:.1f}"/>'
        )
    if norm is not None:
        upper = axes.points(norm.x, norm.mean + norm.sd)
        lower = axes.points(norm.x[::-1], (norm.mean - norm.sd)[::-1])
        parts.append(f'<polygon class="norm" points="{upper} {lower}"/>')
        parts.append(f'<polyline class="mean" data-name="normative" points="{axes.points(norm.x, norm.mean)}"/>')
        if second is not None:
            parts.append(f'<polyline class="mean dots" points="{axes.points(norm.x, second)}"/>')
    parts += [axes.across(value, "limit") for value in limits]
    parts += [axes.across(value, "published") for value in references]
    parts += [axes.down(value, f"mark {style}") for style, value in (marks or {}).items()]
    parts += [_interval(axes, line) for line in lines]
    for line in lines:
        name = "" if "thin" in line.style else f' data-name="{escape(line.name)}"'
        for x, y in _pieces(line):
            parts.append(f'<polyline class="s {line.style}"{name} points="{axes.points(x, y)}"/>')
    return "<figure>" + "".join(parts) + "</svg></figure>"


def spans(x: Array, mask: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return the first and last x of every run of frames in a mask, half a frame wider where it has neighbors."""
    middle = np.concatenate([x[:1], 0.5 * (x[1:] + x[:-1]), x[-1:]])
    return [(float(middle[first]), float(middle[end])) for first, end in find_runs(mask)]


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a series of at most `MAX_POINTS`; of a longer one the extremes of pieces, which look the same."""
    if len(y) <= MAX_POINTS:
        return x, y
    edges = np.linspace(0, len(y), DRAWN_POINTS // 2 + 1).astype(int)[:-1]
    low, high = (ufunc.reduceat(y, edges) for ufunc in (np.minimum, np.maximum))
    return np.repeat(x[edges], 2), np.stack([low, high], axis=1).ravel()


def bar_plot(
    title: str, x_label: str, names: Sequence[str], values: Array, whiskers: Array, highlight: float, end: float
) -> str:
    """Return horizontal bars on a scale from 0 to about `end`, with whiskers to a second value.

    Bars above `highlight` are highlighted.
    """
    axes, parts = _open_bars(title, x_label, 78.0, ROW_HEIGHT, len(names), end)
    for i, (name, value, whisker) in enumerate(zip(names, values, whiskers, strict=True)):
        y = float(axes.y(i + 0.5))
        parts.append(f'<text x="{axes.left - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        if np.isfinite(value):
            parts.append(_bar(axes, name, float(value), float(whisker), y, "bar hot" if value > highlight else "bar"))
    return "<figure>" + "".join(parts) + "</svg></figure>"


def pair_plot(
    title: str,
    x_label: str,
    names: Sequence[str],
    pairs: Sequence[Mapping[str, tuple[float, float]]],
    references: Sequence[float],
) -> str:
    """Return horizontal bars of both sides: by style class a value and its standard deviation; reference as a line."""
    ends = [value + (sd if sd == sd else 0.0) for pair in pairs for value, sd in pair.values()]
    axes, parts = _open_bars(title, x_label, 158.0, PAIR_HEIGHT, len(names), max([*ends, *references, 1e-9]))
    for i, (name, pair, reference) in enumerate(zip(names, pairs, references, strict=True)):
        y = float(axes.y(i + 0.5))
        parts.append(f'<text x="{axes.left - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        for k, (style, (value, sd)) in enumerate(pair.items()):
            middle = y + (k - 0.5 * (len(pair) - 1)) * 9.0
            x, spread = float(axes.x(value)), f" ± {sd:.1f}" if sd == sd else ""
            parts.append(
                f'<rect class="bar {style}" x="{axes.left:.1f}" y="{middle - 3.5:.1f}" width="{x - axes.left:.1f}" '
                f'height="7"><title>{escape(name)}, {style}: {value:.1f}{spread}</title></rect>'
            )
            if sd == sd:
                low, high = (float(axes.x(max(value + sign * sd, 0.0))) for sign in (-1.0, 1.0))
                parts.append(
                    f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
                )
        x = float(axes.x(reference))
        parts.append(f'<line class="reference" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 10:.1f}" y2="{y + 10:.1f}"/>')
    return "<figure>" + "".join(parts) + "</svg></figure>"


def _open_bars(title: str, x_label: str, left: float, row: float, count: int, end: float) -> tuple[Axes, list[str]]:
    """Return the axes of horizontal bars in rows of a height [px], and the plot up to its grid."""
    width, height = 460.0, 58.0 + row * count
    largest = _round_to_ticks(0.0, max(end, 1e-9))[1]
    axes = Axes(left, width - 40.0, 24.0, height - 32.0, 0.0, largest, count, 0.0)
    center = (axes.left + axes.right) / 2
    parts = [
        _open("bars", width, height, "", axes, title),
        f'<text class="title" x="4" y="14">{escape(title)}</text>',
        f'<text x="{center:.0f}" y="{height - 4:.0f}" text-anchor="middle">{escape(x_label)}</text>',
    ]
    for tick in _ticks(0.0, largest):
        x = float(axes.x(tick))
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{axes.top:.1f}" y2="{axes.bottom:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{axes.bottom + 13:.1f}" text-anchor="middle">{tick:g}</text>')
    return axes, parts


def _bar(axes: Axes, name: str, value: float, whisker: float, y: float, style: str) -> str:
    end, far = float(axes.x(value)), float(axes.x(whisker))
    return (
        f'<rect class="{style}" x="{axes.left:.1f}" y="{y - 5:.1f}" width="{end - axes.left:.1f}" height="10">'
        f"<title>{escape(name)}: {value:.2f}, maximum {whisker:.2f}</title></rect>"
        f'<line class="whisker" x1="{end:.1f}" x2="{far:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<line class="whisker" x1="{far:.1f}" x2="{far:.1f}" y1="{y - 3:.1f}" y2="{y + 3:.1f}"/>'
    )


def _open(style: str, width: float, height: float, kind: str, axes: Axes, title: str) -> str:
    edges = " ".join(f"{value:.6g}" for value in axes)
    return (
        f'<svg class="{style}" viewBox="0 0 {width:g} {height:g}" data-x="{kind}" data-at="{edges}" role="img" '
        f'aria-label="{escape(title)}">'
    )


def _frame(axes: Axes, title: str, x_label: str, y_label: str, kind: str) -> list[str]:
    """Return the title, ticks, labels of the axes and grid."""
    parts = [f'<text class="title" x="{axes.left:.0f}" y="14">{escape(title)}</text>']
    for tick in _ticks(axes.y0, axes.y1):
        parts.append(axes.across(tick, "grid" if tick else "zero"))
        y = float(axes.y(tick)) + 3.5
        parts.append(f'<text x="{axes.left - 5:.0f}" y="{y:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in [0.0, 20.0, 40.0, 60.0, 80.0, 100.0] if kind == "cycle" else _ticks(axes.x0, axes.x1):
        x = float(axes.x(tick))
        parts.append(f'<text x="{x:.1f}" y="{axes.bottom + 13:.1f}" text-anchor="middle">{tick:g}</text>')
    parts.append(axes.across(axes.y0, "frame"))
    across, down = (axes.left + axes.right) / 2, (axes.top + axes.bottom) / 2
    parts.append(f'<text x="{across:.0f}" y="{axes.bottom + 27:.0f}" text-anchor="middle">{escape(x_label)}</text>')
    rotated = f'text-anchor="middle" transform="rotate(-90 10 {down:.0f})"'
    return [*parts, f'<text x="10" y="{down:.0f}" {rotated}>{escape(y_label)}</text>']


def _interval(axes: Axes, line: Line) -> str:
    """Return the shaded interval of a curve."""
    if line.low is None or line.high is None:
        return ""
    lows = _pieces(Line("", line.x, np.where(np.isfinite(line.high), line.low, np.nan)))
    highs = _pieces(Line("", line.x, np.where(np.isfinite(line.low), line.high, np.nan)))
    return "".join(
        f'<polygon class="interval {line.style}" points="{axes.points(x, low)} {axes.points(x[::-1], high[::-1])}"/>'
        for (x, low), (_, high) in zip(lows, highs, strict=True)
    )


def _pieces(line: Line) -> list[tuple[Array, Array]]:
    """Return the parts of a curve without missing values."""
    known = np.isfinite(line.y) & np.isfinite(line.x)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return [(line.x[a:b], line.y[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1]


def _extent(values: Sequence[Array]) -> tuple[float, float]:
    every = np.concatenate([np.zeros(0), *values])
    known = every[np.isfinite(every)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _round_to_ticks(low: float, high: float) -> tuple[float, float]:
    """Return the range of the values rounded to ticks."""
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

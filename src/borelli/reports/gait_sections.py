"""The parts of the report about gait: angles, moments, powers and ground forces over the cycle, or over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.energetics.energy import Energy
from borelli.export.summary import grf_agreement
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.numerics.series_extension import EDGE_DURATION
from borelli.reports.gait_curves import PERCENT, SIDES, Curve, Gait, heading, curve_by_stride
from borelli.reports.html_parts import interval_of, legend, interval_legend
from borelli.reports.svg import Line, NormativeBand, line_plot

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GROUPS = (("angle", "Angles"), ("moment", "Internal moments"), ("power", "Powers"))
STRIDES_SHOWN = 12
"""Strides of a side that are drawn each; the mean is over all."""


def gait_section(gait: Gait, bands: AnalysisUncertainty | None) -> str:
    """Angles, moments and powers over the gait cycle; over time where there is none."""
    if not gait.strides:
        return _over_time(gait, bands)
    counts = {side: sum(one.side == side for one in gait.strides) for side in SIDES}
    spans = np.mean([one.end - one.start for one in gait.strides])
    offset = ""
    if gait.offset:
        offset = (
            f" Norms of pelvis tilt and hip flexion are drawn {gait.offset:.0f}° lower: they count from the pelvis's "
            "landmarks, the model from a pelvis that stands upright."
        )
    parts = [
        f'<section id="gait"><h2>Angles, moments, powers</h2><p class="lead">{counts["right"]} right and '
        f"{counts['left']} left strides of {spans:.2f} s, from foot strike to the next of the same foot; each one "
        f"thin, their mean thick. Grey: normal gait at {gait.speed} speed, mean and sd.{offset}</p>",
        legend(right="right", left="left", band="normal, mean and sd", mean="mean of a second source", **interval_legend(bands)),
    ]
    unseen = len(gait.seen) - sum(gait.seen)
    if unseen:
        parts.append(
            f"<p>In {unseen} of {len(gait.seen)} strides forces under the feet are not known: they are left out of "
            "moments, powers and ground forces.</p>"
        )
    for group, title in GROUPS:
        plots = [_cycle_plot(gait, curve, bands) for curve in gait.curves if curve.group == group]
        if plots:
            parts.append(f'<h3>{title}</h3><div class="plots">{"".join(plots)}</div>')
    return "".join(parts) + "</section>"


def ground_section(energy: Energy, gait: Gait, contacts: Dataset | None, bands: AnalysisUncertainty | None) -> str:
    """Ground forces over the cycle and in time, against plates, with figures."""
    data = energy.torques.data
    if "ground_reaction_force" not in data:
        return ""
    source = energy.torques.grf_source
    lead = {
        "plates": "As the plates measured them, given to the feet.",
        "contacts": "Computed from the motion alone: no plates were used.",
        "plates and predicted": "As the plates measured them, given to the feet; of steps beside the plates computed.",
    }.get(source, "")
    parts = [f'<section id="ground"><h2>Ground forces</h2><p class="lead">{lead} In % of body weight.</p>']
    if gait.strides:
        parts.append(legend(right="right", left="left", band="normal, mean and sd", **interval_legend(bands)))
        plots = [_cycle_plot(gait, curve, bands) for curve in gait.curves if curve.group == "ground"]
        parts.append(f'<div class="plots">{"".join(plots)}</div>')
    weight = energy.torques.motion.model.mass * float(np.linalg.norm(energy.torques.motion.model.gravity))
    way = heading(energy)
    ahead = np.array([np.cos(way), np.sin(way), 0.0])
    beside = contacts if energy.torques.on_plates else None
    words = "computed" if source == "contacts" else source
    if beside is not None:
        parts.append("<h3>Measured by plates, and computed from the motion alone</h3>")
        computed = {"right dash": "computed", "left dash": "computed"}
        parts.append(legend(right=f"right, {words}", left=f"left, {words}", **computed, **interval_legend(bands)))
    else:
        parts.append("<h3>In time</h3>" + legend(right="right", left="left", **interval_legend(bands)))
    plots = []
    for title, direction in (("Vertical", np.array([0.0, 0.0, 1.0])), ("Forward", ahead)):
        lines = []
        for side in SIDES:
            line = _push_line(data, f"{side}, {words}", side, direction, weight, side)
            lines.append(line._replace(**_around(bands, "in_time", f"ground_force_{title.lower()}", side)))
            if beside is not None:
                lines.append(_push_line(beside, f"{side}, computed", side, direction, weight, f"{side} dash"))
        plots.append(line_plot(title, "time [s]", "force [% BW]", lines, wide=True))
    parts.append(f'<div class="plots wide">{"".join(plots)}</div>')
    parts.append(_agreement_table(energy, contacts))
    return "".join(parts) + "</section>"


def _over_time(gait: Gait, bands: AnalysisUncertainty | None) -> str:
    parts = [
        '<section id="gait"><h2>Angles, moments, powers</h2><p class="lead">Over time: the recording shows no whole '
        "stride.</p>",
        legend(right="right", left="left", **interval_legend(bands)),
    ]
    for group, title in GROUPS:
        plots = []
        for curve in gait.curves:
            if curve.group == group:
                lines = [
                    Line(side, gait.time, values, side, **_around(bands, "in_time", curve.name, side))
                    for side, values in (("right", curve.right), ("left", curve.left))
                    if values is not None
                ]
                plots.append(line_plot(curve.title, "time [s]", f"{_quantity(curve)} [{curve.unit}]", lines))
        if plots:
            parts.append(f'<h3>{title}</h3><div class="plots">{"".join(plots)}</div>')
    return "".join(parts) + "</section>"


def _cycle_plot(gait: Gait, curve: Curve, bands: AnalysisUncertainty | None) -> str:
    usual, second = gait.norm(curve), gait.norm(curve, "pinzone2014")
    lines = []
    for side, values in (("right", curve.right), ("left", curve.left)):
        if values is None:
            continue
        rows = curve_by_stride(gait, curve, side)
        if len(rows) > 1:
            lines += [Line(side, PERCENT, row, f"{side} thin") for row in rows[:STRIDES_SHOWN]]
        if len(rows):
            lines.append(Line(side, PERCENT, rows.mean(axis=0), side, **_around(bands, "over_cycle", curve.name, side)))
    return line_plot(
        curve.title, "gait cycle [%]", f"{_quantity(curve)} [{curve.unit}]", lines, kind="cycle",
        band=None if usual is None else NormativeBand(PERCENT, usual.mean, usual.sd),
        second=None if second is None or usual is None else second.mean,
    )  # fmt: skip


def _around(bands: AnalysisUncertainty | None, variable: str, curve: str, side: str) -> dict[str, Any]:
    """Between what a curve lies."""
    if bands is None:
        return {}
    names = list(map(str, bands.groups["curves"]["curve"].values))
    return interval_of(bands, "curves", variable, (names.index(curve), SIDES.index(side))) if curve in names else {}


def _quantity(curve: Curve) -> str:
    return {"angle": "angle", "moment": "moment", "power": "power", "ground": "force"}[curve.group]


def _push_line(data: Dataset, name: str, side: str, direction: Array, weight: float, style: str) -> Line:
    values = 100.0 * data["ground_reaction_force"].sel(foot=side).values @ direction / weight
    return Line(name, data["time"].values, values, style)


def _agreement_table(energy: Energy, contacts: Dataset | None) -> str:
    feet = grf_agreement(energy, contacts)
    if not feet:
        return ""
    told = energy.torques.data["grf_complete"].values
    rows = "".join(
        f'<tr><td>{one.foot}</td><td class="n">{one.vertical_rms:.1f} % BW</td><td class="n">{one.vertical_r:.3f}</td>'
        f'<td class="n">{one.forward_rms:.1f} % BW</td><td class="n">{one.sideways_rms:.1f} % BW</td>'
        f'<td class="n">{one.center_forward:.0f} / {one.center_sideways:.0f} mm</td>'
        f'<td class="n">{one.frames}</td></tr>'
        for one in feet
    )
    with_ends = ", ".join(f"{one.foot} {one.vertical_rms:.1f}" for one in grf_agreement(energy, contacts, ends=True))
    where = (
        f" Forces in the outer {EDGE_DURATION:g} s of the motion depend on how it went on and are left out; with them "
        f"the vertical rms is {with_ends} % BW."
    )
    if not told.all():
        where += f" Plates carry the whole body in {100 * told.mean():.0f} % of the frames; the rest is left out."
    return (
        f"<p>Over measured stance (20 N and more).{where}</p><table><tr><th>foot</th><th class='n'>vertical rms</th>"
        "<th class='n'>r</th><th class='n'>forward, rms</th><th class='n'>sideways, rms</th>"
        f"<th class='n'>centre of pressure, forward / sideways</th><th class='n'>frames</th></tr>{rows}</table>"
    )

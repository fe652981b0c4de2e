"""Sections of the report on gait: angles, moments, powers and ground reaction forces over the gait cycle or time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.energetics.energy import Energy
from borelli.export.gait_curves import PERCENT, SIDES, Curve, Gait, curve_by_stride
from borelli.export.summary import grf_agreement
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.numerics.series_extension import EDGE_DURATION
from borelli.reports.html_parts import interval_legend, interval_of, legend, scroll
from borelli.reports.parameter_sections import curve_table, norm_text
from borelli.reports.svg import Line, NormativeBand, line_plot

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GROUPS = (("angle", "Angles"), ("moment", "Internal moments"), ("power", "Powers"))
MAX_STRIDES = 12
"""Number of single strides of a side that are drawn; the mean is over all."""
CURSOR = "time shown in the player"
"""Text of the legend on the cursor in plots."""


def gait_section(gait: Gait, uncertainty: AnalysisUncertainty | None) -> str:
    """Return angles, moments and powers over the gait cycle, or over time if there is no complete stride."""
    if not gait.strides:
        return (
            '<p class="lead">Over time: the recording has no complete stride.</p>'
            + legend(right="right", left="left", **interval_legend(uncertainty), cursor=CURSOR)
            + _groups(gait, uncertainty, time_plot)
        )
    counts = {side: sum(one.side == side for one in gait.strides) for side in SIDES}
    duration = np.mean([one.end - one.start for one in gait.strides])
    norms, lead = {}, " Normative curves of walking do not apply to running."
    if not gait.running:
        norms = {"norm": "normative, mean ± SD", "mean": "normative mean, second source"}
        lead = f" Gray: {norm_text(gait)}, mean ± SD."
    if gait.offset and not gait.running:
        lead += (
            f" Normative pelvic tilt and hip flexion are drawn {gait.offset:.0f}° lower: they refer to pelvic "
            "landmarks, the model to an upright pelvis."
        )
    marks = {f"mark {side}": f"{side} toe-off" for side in gait.toe_off}
    unknown = len(gait.grf_known) - sum(gait.grf_known)
    excluded = (
        f"<p>{unknown} of {len(gait.grf_known)} strides have incomplete ground reaction forces and are excluded from "
        "moments, powers and ground reaction forces.</p>"
    )
    return (
        f'<p class="lead">{counts["right"]} right and {counts["left"]} left strides of {duration:.2f} s, from one foot '
        f"strike to the next of the same foot. Thin lines: single strides; thick lines: mean.{lead}</p>"
        + legend(right="right", left="left", **norms, **marks, **interval_legend(uncertainty), cursor=CURSOR)
        + (excluded if unknown else "")
        + _groups(gait, uncertainty, cycle_plot)
    )


def _groups(gait: Gait, uncertainty: AnalysisUncertainty | None, plot: Callable[..., str]) -> str:
    """Return the plots of angles, moments and powers, each group under its title."""
    text = ""
    for group, title in GROUPS:
        plots = "".join(plot(gait, curve, uncertainty) for curve in gait.curves if curve.group == group)
        if plots:
            text += f'<h3>{title}</h3><div class="plots">{plots}</div>{curve_table(gait, group)}'
    return text


def ground_section(
    energy: Energy, gait: Gait, predicted_grf: Dataset | None, uncertainty: AnalysisUncertainty | None
) -> str:
    """Return ground reaction forces over the gait cycle and over time, and their agreement with prediction."""
    data = energy.torques.data
    if "ground_reaction_force" not in data:
        return ""
    source = energy.torques.grf_source
    lead = {
        "plates": "Measured by force plates and assigned to the feet.",
        "predicted": "Predicted from the motion, without force plates.",
        "contacts": "Simulated contact, without force plates.",
        "plates and predicted": "Measured by force plates and assigned to feet; predicted for steps off the plates.",
    }.get(source, "")
    parts = [f'<p class="lead">{lead} Forces in % of body weight.</p>']
    if gait.strides:
        norm = {} if gait.running else {"norm": "normative, mean ± SD"}
        marks = {f"mark {side}": f"{side} toe-off" for side in gait.toe_off}
        parts.append(legend(right="right", left="left", **norm, **marks, **interval_legend(uncertainty), cursor=CURSOR))
        plots = [cycle_plot(gait, curve, uncertainty) for curve in gait.curves if curve.group == "ground"]
        parts.append(f'<div class="plots">{"".join(plots)}</div>')
    weight = energy.torques.motion.model.mass * float(np.linalg.norm(energy.torques.motion.model.gravity))
    ahead = np.array([np.cos(gait.heading), np.sin(gait.heading), 0.0])
    predicted = predicted_grf if energy.torques.on_plates else None
    label = {"plates": "measured", "plates and predicted": "measured and predicted"}.get(source, source)
    if predicted is not None:
        parts.append("<h3>Measured by plates and predicted from the motion</h3>")
        dashed = {"right dash": "right, predicted", "left dash": "left, predicted"}
        parts.append(
            legend(
                right=f"right, {label}", left=f"left, {label}", **dashed, **interval_legend(uncertainty), cursor=CURSOR
            )
        )
    else:
        shading = interval_legend(uncertainty)
        parts.append("<h3>Over time</h3>" + legend(right="right", left="left", **shading, cursor=CURSOR))
    plots = []
    for title, direction in (("Vertical", np.array([0.0, 0.0, 1.0])), ("Forward", ahead)):
        lines = []
        for side in (side for side in SIDES if side in data["foot"].values):
            line = _force_line(data, f"{side}, {label}", side, direction, weight, side)
            lines.append(line._replace(**_interval(uncertainty, "in_time", f"ground_force_{title.lower()}", side)))
            if predicted is not None:
                lines.append(_force_line(predicted, f"{side}, predicted", side, direction, weight, f"{side} dash"))
        plots.append(line_plot(title, "time [s]", "force [% BW]", lines, wide=True))
    parts.append(f'<div class="plots wide">{"".join(plots)}</div>')
    return "".join(parts) + _agreement_table(energy, predicted_grf)


def time_plot(
    gait: Gait,
    curve: Curve,
    uncertainty: AnalysisUncertainty | None,
    *,
    including: Sequence[float] = (),
    references: Sequence[float] = (),
    dashed: Curve | None = None,
) -> str:
    """Return the plot of a curve over time; `including` and `references` are those of `line_plot`."""
    lines = [
        Line(side, gait.time, values, side, **_interval(uncertainty, "in_time", curve.name, side))
        for side, values in curve.sides.items()
    ]
    if dashed is not None:
        lines += [
            Line(f"{side}, {dashed.group}", gait.time, values, f"{side} dash") for side, values in dashed.sides.items()
        ]
    return line_plot(curve.title, "time [s]", curve.label, lines, including=including, references=references)


def cycle_plot(
    gait: Gait,
    curve: Curve,
    uncertainty: AnalysisUncertainty | None,
    *,
    including: Sequence[float] = (),
    references: Sequence[float] = (),
    dashed: Curve | None = None,
) -> str:
    """Return the plot of a curve over the gait cycle; `including` and `references` are those of `line_plot`."""
    norm, second = gait.normative(curve), gait.normative(curve, "pinzone2014")
    lines = []
    for side in curve.sides:
        rows = curve_by_stride(gait, curve, side)
        if len(rows) > 1:
            lines += [Line(side, PERCENT, row, f"{side} thin") for row in rows[:MAX_STRIDES]]
        if len(rows):
            lines.append(
                Line(side, PERCENT, rows.mean(axis=0), side, **_interval(uncertainty, "over_cycle", curve.name, side))
            )
    if dashed is not None:
        for side in dashed.sides:
            rows = curve_by_stride(gait, dashed, side)
            if len(rows):
                lines.append(Line(f"{side}, {dashed.group}", PERCENT, rows.mean(axis=0), f"{side} dash"))
    return line_plot(
        curve.title, "gait cycle [%]", curve.label, lines, kind="cycle",
        norm=None if norm is None else NormativeBand(PERCENT, norm.mean, norm.sd),
        second=None if second is None or norm is None else second.mean, marks=gait.toe_off,
        including=including, references=references,
    )  # fmt: skip


def _interval(uncertainty: AnalysisUncertainty | None, variable: str, curve: str, side: str) -> dict[str, Any]:
    names = [] if uncertainty is None else list(map(str, uncertainty.groups["curves"]["curve"].values))
    if curve not in names:
        return {}
    return interval_of(uncertainty, "curves", variable, (names.index(curve), SIDES.index(side)))


def _force_line(data: Dataset, name: str, side: str, direction: Array, weight: float, style: str) -> Line:
    values = 100.0 * data["ground_reaction_force"].sel(foot=side).values @ direction / weight
    return Line(name, data["time"].values, values, style)


def _agreement_table(energy: Energy, predicted_grf: Dataset | None) -> str:
    feet = grf_agreement(energy, predicted_grf)
    if not feet:
        return ""
    complete = energy.torques.data["grf_complete"].values
    rows = "".join(
        f'<tr><td>{one.foot}</td><td class="n">{one.vertical_rms:.1f} % BW</td><td class="n">{one.vertical_r:.3f}</td>'
        f'<td class="n">{one.forward_rms:.1f} % BW</td><td class="n">{one.sideways_rms:.1f} % BW</td>'
        f'<td class="n">{one.center_forward:.0f} / {one.center_sideways:.0f} mm</td>'
        f'<td class="n">{one.frames}</td></tr>'
        for one in feet
    )
    with_ends = ", ".join(
        f"{one.foot} {one.vertical_rms:.1f}" for one in grf_agreement(energy, predicted_grf, ends=True)
    )
    where = (
        f" The first and last {EDGE_DURATION:g} s are excluded, where prediction depends on the motion's extension; "
        f"including them, the vertical RMS error is {with_ends} % BW."
    )
    if not complete.all():
        where += f" {100 * (1 - complete.mean()):.0f} % of frames are excluded, since plates do not record all forces."
    return f"<p>Prediction error over measured stance (20 N and more).{where}</p>" + scroll(
        "<table><tr><th>Foot</th><th class='n'>Vertical, RMS</th><th class='n'>Vertical, r</th>"
        "<th class='n'>Forward, RMS</th><th class='n'>Lateral, RMS</th>"
        "<th class='n'>Center of pressure, forward / lateral, RMS</th>"
        f"<th class='n'>Frames</th></tr>{rows}</table>"
    )

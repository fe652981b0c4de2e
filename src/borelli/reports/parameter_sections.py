"""Sections of the report on spatiotemporal parameters, the movement analysis profile, and curves in numbers."""

from __future__ import annotations

from html import escape

import numpy as np

from borelli.analysis.strides import parameters_by_side
from borelli.export.gait_curves import SIDES, Curve, Gait
from borelli.export.gait_profile import GaitProfile, curve_values, gait_profile
from borelli.export.gait_tables import PARAMETER_TITLES
from borelli.reports.html_parts import folded, legend, number_cells, scroll, table, with_deviation
from borelli.reports.svg import pair_plot

TYPICAL_ADULT = {
    "speed": 1.37, "cadence": 113.0, "stride_length": 1.41, "step_length": 0.705, "stance": 62.0, "swing": 38.0,
    "double_support": 24.0, "stride_time": 1.06, "step_time": 0.53,
}  # fmt: skip
"""Adults at free speed, men and women together (Perry and Burnfield 2010): 82 m/min, 113 steps/min, stride of 1.41 m,
stance of 62 %. Steps and times follow from these; double support is twice the stance beyond half a stride."""
DIGITS = {"speed": 2, "stride_length": 3, "step_length": 3, "step_width": 3, "stride_time": 3, "step_time": 3}
IMPORTANT_DIFFERENCE = 1.6
"""Minimal clinically important difference of the gait profile score [deg] (Baker et al. 2012)."""

EVENT_SOURCES = {
    "recording": "Foot strikes and toe-offs are the events stated by the recording.",
    "plates and markers": "Foot strikes and toe-offs are those on the force plates, and found from markers for other "
    "steps, where strikes err by at most 30 ms in three recordings with stated events.",
    "markers": "Foot strikes and toe-offs are found from markers (Zeni et al. 2008): strikes come 21 ms early in the "
    "median of ten walks, so that stance is about 2 % of the stride too long, and double support 4 %.",
}
"""Sentences on the source of gait events."""
RUNNING_NOTE = " In running, toe-offs from markers come 40 to 120 ms late: do not use stance and swing."


def norm_text(gait: Gait) -> str:
    """Return the normative sample in words."""
    return f"typically developing children at {gait.speed} speed (Schwartz et al. 2008)"


def gait_title(gait: Gait, title: str) -> str:
    """Return the title of a parameter of walking or running."""
    return title.replace("Walking", "Running") if gait.running else title


def parameter_section(gait: Gait, source: str) -> str:
    """Return the spatiotemporal parameters by side, mean and standard deviation over strides.

    `source` is that of the gait events, one of `EVENT_SOURCES`.
    """
    if not gait.strides:
        return ""
    by_side = parameters_by_side(gait.parameters)
    rows = ""
    for name, title in PARAMETER_TITLES.items():
        digits, unit = DIGITS.get(name, 1), gait.parameters[name].attrs["units"]
        unit = "% of the stride" if unit == "%" else unit
        values = [with_deviation(by_side[name][side], digits) for side in (*SIDES, "both")]
        typical = TYPICAL_ADULT.get(name)
        known = "" if typical is None or gait.running else f"{typical:.3g}"
        rows += f"<tr><td>{gait_title(gait, title)} [{unit}]</td>{number_cells(*values, known)}</tr>"
    counts = [sum(one.side == side for one in gait.strides) for side in SIDES]
    rows += f"<tr><td>Strides</td>{number_cells(*map(str, counts), str(sum(counts)), '')}</tr>"
    late = RUNNING_NOTE if gait.running and source == "markers" else ""
    return (
        '<p class="lead">Mean ± standard deviation over strides. A step ends with the strike of its own foot; lengths '
        "and widths are those of the heels at foot strike, along and across the line from one strike of a foot to its "
        f"next (Huxham et al. 2006). {EVENT_SOURCES.get(source, '')}{late} Typical: adults at free speed (Perry and "
        "Burnfield 2010).</p>"
        + table(("Parameter", "Right", "Left", "Both", "Typical adult"), rows)
        + _toe_off_note(gait)
    )


def _toe_off_note(gait: Gait) -> str:
    missing = [side for side in SIDES if side not in gait.toe_off]
    if not missing:
        return ""
    return f"<p>Toe-off of the {' and '.join(missing)} foot is unknown, and so are its stance and swing.</p>"


def profile_section(gait: Gait) -> str:
    """Return the movement analysis profile and the gait profile score; "" without normative curves or strides."""
    profile = gait_profile(gait) if gait.strides else None
    if profile is None:
        return ""
    names = [title.split(" (")[0] for title in profile.titles.values()]
    pairs = [{side: one[:2] for side, one in profile.scores[name].items()} for name in profile.titles]
    references = list(profile.normative.values())
    if profile.total:
        names.append("Gait profile score")
        pairs.append({side: profile.total[side][:2] for side in SIDES if side in profile.total})
        references.append(profile.normative_total)
    plot = pair_plot("Movement analysis profile", "RMS difference from the norm [deg]", names, pairs, references)
    offset = ""
    if gait.offset:
        offset = (
            f" Pelvic tilt and hip flexion of the norm are lowered by {gait.offset:.0f}°, since the model's pelvis is "
            "upright in its neutral pose: their scores depend on this."
        )
    return (
        '<p class="lead">Root mean square difference over the gait cycle between each angle and the mean of '
        f"{norm_text(gait)}; the gait profile score is the root mean square of all nine (Baker et al. 2009). A "
        f"difference of {IMPORTANT_DIFFERENCE} degrees in the gait profile score is clinically important (Baker et al. "
        f"2012).{offset}</p>"
        + legend(right="right", left="left", reference="expected within the normative sample")
        + f'<div class="plots wide"><div>{plot}</div><div>{_score_table(profile)}</div></div>'
    )


def _score_table(profile: GaitProfile) -> str:
    rows = ""
    for name, title in profile.titles.items():
        values = [with_deviation(profile.scores[name].get(side), 1) for side in SIDES]
        rows += f"<tr><td>{escape(title)}</td>{number_cells(*values, f'{profile.normative[name]:.1f}')}</tr>"
    if profile.total:
        values = [with_deviation(profile.total.get(side), 1) for side in SIDES]
        expected = f"{profile.normative_total:.1f}"
        rows += f"<tr><th>Gait profile score</th>{number_cells(*values, expected)}</tr>"
    if "both" in profile.total:
        both = f'<td class="n" colspan="2">{profile.total["both"].mean:.1f}</td>'
        rows += f"<tr><th>Gait profile score, both sides</th>{both}{number_cells('')}</tr>"
    return table(("Score [deg]", "Right", "Left", "Norm"), rows)


def curve_table(gait: Gait, group: str) -> str:
    """Return extremes, range and variability of the curves of a group ("angle", "moment", "power"), folded."""
    curves = [curve for curve in gait.curves if curve.group == group]
    rows = "".join(_curve_row(gait, curve) for curve in curves)
    if not gait.strides or not rows:
        return ""
    columns = "".join('<th class="n">Minimum</th><th class="n">Maximum</th><th class="n">Range</th>'
                      '<th class="n">SD over strides</th>' for _ in SIDES)  # fmt: skip
    head = (
        '<tr><th></th><th colspan="4">Right</th><th colspan="4">Left</th><th colspan="2">Norm</th></tr>'
        f'<tr><th>Curve</th>{columns}<th class="n">Minimum</th><th class="n">Maximum</th></tr>'
    )
    note = (
        '<p class="small">Mean ± standard deviation over strides. SD over strides: variability of the curve, root mean '
        "square over the gait cycle. Norm: extremes of the mean curve.</p>"
    )
    return folded(
        f"{group.capitalize()}s in numbers", scroll(f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>") + note
    )


def _curve_row(gait: Gait, curve: Curve) -> str:
    digits = 1 if curve.unit == "deg" else 2
    cells = []
    for side in SIDES:
        values = curve_values(gait, curve, side) if side in curve.sides else None
        if values is None:
            cells += [""] * 4
            continue
        cells += [with_deviation(one, digits) for one in values[:3]]
        cells.append(f"{values.variability:.{digits}f}" if np.isfinite(values.variability) else "")
    norm = gait.normative(curve)
    known = ["", ""] if norm is None else [f"{edge:.{digits}f}" for edge in (norm.mean.min(), norm.mean.max())]
    title = f"{escape(curve.title)} [{escape(curve.unit)}]"
    return f"<tr><td>{title}</td>{number_cells(*cells, *known)}</tr>" if any(cells) else ""

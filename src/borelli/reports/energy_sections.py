"""Sections of the report on residuals, energy, uncertainty and all coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from borelli.analysis.dynamics.residual_limits import judge_residuals
from borelli.analysis.energetics.energy import Energy
from borelli.export.gait_curves import SIDES
from borelli.export.uncertainty_files import AnalysisUncertainty, summary_values
from borelli.numerics.series_extension import EDGE_DURATION
from borelli.reports.gait_sections import CURSOR
from borelli.reports.html_parts import (
    coordinate_pairs,
    interval_legend,
    interval_of,
    legend,
    note_items,
    number_cells,
    scroll,
    table,
)
from borelli.reports.svg import Line, line_plot, spans

MIN_MOVEMENT = {"rad": np.radians(2.0), "m": 0.01}
"""Range [rad, m] below which a coordinate is not plotted."""
STYLES = ("right", "left", "third")
MAX_WORK_ROWS = 12
SUMMARY_ROWS = (
    ("positive_work_j", "Positive joint work", "J", 1),
    ("negative_work_j", "Negative joint work", "J", 1),
    ("positive_work_per_stride_j_per_kg", "Positive joint work per stride", "J/kg", 2),
    ("cost_of_transport_j_per_kg_m", "Mechanical cost of transport", "J/(kg m)", 3),
    ("distance_m", "Distance", "m", 2),
    ("speed_m_per_s", "Speed", "m/s", 2),
    ("center_of_mass_positive_work_j", "Positive work on the center of mass", "J", 1),
    ("torque_time_integral_nms", "Time integral of absolute torque", "N m s", 0),
    ("residual_force_rms_n", "Residual force, RMS", "N", 1),
    ("residual_moment_rms_nm", "Residual moment, RMS", "N m", 1),
    ("residual_work_net_j", "Net residual work", "J", 2),
    ("residual_work_absolute_j", "Absolute residual work", "J", 2),
    ("energy_balance_error_percent", "Energy balance error", "% of positive work", 4),
)
ENERGY_WORDS = (
    "Mechanical energy is the sum of kinetic energy (the motion of all segments) and potential energy (the height of "
    "the center of mass). In walking, the two exchange: the body slows down while it rises and speeds up while it "
    "falls. Whatever changes their sum comes from the joints: positive power adds energy, negative power absorbs it; "
    "the ground adds or absorbs energy where feet slip or a belt moves them; the residual is what motion and forces "
    "leave unexplained. Positive joint work sums all positive power. It is mechanical work, not the metabolic cost: "
    "muscles that act against each other or hold a load without moving do not appear in it. Potential energy is "
    "drawn relative to its minimum, and mechanical energy is the sum of both curves."
)
WITHOUT_UNCERTAINTY = ("distance_m", "residual_work_net_j", "energy_balance_error_percent")


def residual_section(energy: Energy, uncertainty: AnalysisUncertainty | None) -> str:
    """Return residual force and moment over time, with their recommended limits."""
    data, found = energy.torques.data, judge_residuals(energy.torques)
    time = data["time"].values
    outside = spans(time, ~energy.torques.evaluated)
    plots = ""
    for name, title, label, limit in (
        ("residual_force", "Residual force", "force [N]", found.force_limit),
        ("residual_moment", "Residual moment at the pelvis", "moment [N m]", found.moment_limit),
    ):
        residual = data[name].values
        lines = [
            Line(axis, time, residual[:, k], style, **interval_of(uncertainty, "torques", name, np.s_[:, k]))
            for k, (axis, style) in enumerate(zip("xyz", STYLES, strict=True))
        ]
        plots += line_plot(title, "time [s]", label, lines, limits=(-limit, limit), shaded=outside, wide=True)
    bases = "5 % of the peak net external force", "1 % of that force times the height of the center of mass"
    rows = (
        ("Residual force, RMS", found.force_rms, found.force_limit, "N", bases[0]),
        ("Residual force, peak", found.force_peak, found.force_limit, "N", bases[0]),
        ("Residual moment, RMS", found.moment_rms, found.moment_limit, "N m", bases[1]),
        ("Residual moment, peak", found.moment_peak, found.moment_limit, "N m", bases[1]),
    )
    body = "".join(
        f'<tr><td>{name}</td><td class="n {"ok" if value <= limit else "off"}">{value:.1f} {unit}</td>'
        f'<td class="n">{limit:.1f} {unit}</td><td>{basis}</td></tr>'
        for name, value, limit, unit, basis in rows
    )
    head = '<tr><th>Quantity</th><th class="n">Value</th><th class="n">Limit</th><th>Basis of the limit</th></tr>'
    return (
        '<p class="lead">Force and moment at the root that joint torques and ground reaction do not explain. Small '
        f"residuals mean consistent motion, masses and forces. RMS and peak are those of {found.frames} of "
        f"{len(time)} frames: with full ground reaction force, {EDGE_DURATION:g} s and more from the ends.</p>"
        + legend(
            right="x",
            left="y",
            third="z",
            limit="limit (Hicks et al. 2015)",
            **({"shaded": "not evaluated"} if outside else {}),
            **interval_legend(uncertainty),
            cursor=CURSOR,
        )
        + f'<div class="plots wide">{plots}</div>'
        + scroll(f"<table>{head}{body}</table>")
    )


def energy_section(energy: Energy, uncertainty: AnalysisUncertainty | None) -> str:
    """Return powers and energies over time, summary values, and work by joint."""
    data, summary = energy.data, energy.summary
    time, mass = data["time"].values, energy.torques.motion.model.mass
    powers = [
        Line(title, time, data[name].values / mass, style, **interval_of(uncertainty, "energy", name, factor=1 / mass))
        for name, title, style in (
            ("total_joint_power", "joints", "dark"), ("ground_power", "ground", "third"),
            ("residual_power", "residual", "left"),
        )
        if name in data
    ]  # fmt: skip
    energies = []
    lowest = float(np.nanmin(data["potential_energy"].values)) if "potential_energy" in data else 0.0
    for name, title, style, zero in (
        ("mechanical_energy", "mechanical", "dark", lowest), ("kinetic_energy", "kinetic", "right", 0.0),
        ("potential_energy", "potential", "third", lowest),
    ):  # fmt: skip
        if name in data:
            interval = interval_of(uncertainty, "energy", name, factor=1.0 / mass, zero=zero)
            energies.append(Line(title, time, (data[name].values - zero) / mass, style, **interval))
    power_plot = line_plot("Power", "time [s]", "power [W/kg]", powers, wide=True)
    energy_plot = line_plot("Mechanical energy", "time [s]", "energy [J/kg]", energies, wide=True)
    body = "".join(
        f"<tr><td>{title}</td>{number_cells(escape(f'{summary[key]:.{digits}f} {unit}'))}</tr>"
        for key, title, unit, digits in SUMMARY_ROWS
        if key in summary and np.isfinite(summary[key])
    )
    shading = interval_legend(uncertainty)
    return (
        f'<p class="lead">{ENERGY_WORDS}</p><div class="plots wide"><div>'
        + legend(dark="joints", third="ground", left="residual", **shading, cursor=CURSOR) + power_plot + "</div><div>"
        + legend(dark="mechanical", right="kinetic", third="potential", **shading, cursor=CURSOR) + energy_plot
        + "</div></div>"
        + '<div class="plots wide"><div><h3>Summary</h3>' + table(("Quantity", "Value"), body)
        + "</div><div><h3>Work by joint</h3>" + _work_table(energy) + "</div></div>"
    )  # fmt: skip


def _work_table(energy: Energy) -> str:
    data, model = energy.data, energy.torques.motion.model
    rows = []
    for title, columns in coordinate_pairs(model).items():
        if columns[0][0] == "root":
            continue
        positive, negative = (
            {side: float(data[name].values[k]) / model.mass for side, k in columns}
            for name in ("positive_work", "negative_work")
        )
        rows.append((sum(positive.values()) - sum(negative.values()), title, positive, negative))
    rows.sort(key=lambda row: -row[0])

    def cells(values: Mapping[str, float]) -> str:
        return "".join(f'<td class="n">{values[s]:+.3f}</td>' if s in values else "<td></td>" for s in SIDES)

    body = "".join(
        f"<tr><td>{escape(title)}</td>{cells(positive)}{cells(negative)}</tr>"
        for _, title, positive, negative in rows[:MAX_WORK_ROWS]
    )
    return table(("Work [J/kg]", "Right +", "Left +", "Right -", "Left -"), body)


def uncertainty_section(energy: Energy, uncertainty: AnalysisUncertainty) -> str:
    """Return method, notes, and values with standard deviation and 95 % interval."""
    values = summary_values(energy)
    rows = "".join(
        f"<tr><td>{title} [{unit}]</td>"
        + number_cells(f"{values[key]:.4g}", f"{spread['sd']:.2g}", f"{spread['low']:.4g}", f"{spread['high']:.4g}")
        + "</tr>"
        for key, title, unit, _ in SUMMARY_ROWS
        if key not in WITHOUT_UNCERTAINTY
        and (spread := uncertainty.summary.get(key)) is not None
        and spread["sd"] == spread["sd"]
    )
    models = "a model drawn from the fit" if uncertainty.models_drawn else "the same model"
    return (
        f'<p class="lead">The analysis was repeated {uncertainty.repeats} times with marker noise of '
        f"{uncertainty.noise_mm:.2g} mm{'' if uncertainty.noise_stated else ' (median)'}, {models}, and the errors "
        "listed below. Shading shows the 95 % interval: 95 % of the repeats differ from the value by no more than half "
        "its width.</p>"
        f'<ul class="notes">{note_items(uncertainty.notes)}</ul>'
        + table(("Quantity", "Value", "SD", "95 % from", "to"), rows)
    )


def coordinate_section(energy: Energy, uncertainty: AnalysisUncertainty | None) -> str:
    """Return plots of every moving coordinate and its torque over time, collapsed."""
    plots = coordinate_plots(energy, uncertainty)
    if not plots:
        return ""
    return (
        "<details><summary>Angles and torques over time</summary>"
        + legend(right="right or unpaired", left="left", **interval_legend(uncertainty), cursor=CURSOR)
        + f'<div class="plots">{"".join(plots)}</div></details>'
    )


def coordinate_plots(energy: Energy, uncertainty: AnalysisUncertainty | None = None) -> list[str]:
    """Return plots of value and torque of each pair of coordinates that moves."""
    torques, model = energy.torques, energy.torques.motion.model
    data, time = torques.data, torques.data["time"].values
    series = {name: data[name].values for name in ("coordinate_value", "torque")}
    values, plots = series["coordinate_value"], []
    for title, columns in coordinate_pairs(model).items():
        rotational = model.coordinates[columns[0][1]].rotational
        if all(np.ptp(values[:, k]) < MIN_MOVEMENT["rad" if rotational else "m"] for _, k in columns):
            continue

        def lines(name: str, factor: float, columns: list[tuple[str, int]] = columns) -> list[Line]:
            return [
                Line(
                    side, time, factor * series[name][:, k], side,
                    **interval_of(uncertainty, "torques", name, np.s_[:, k], factor),
                )
                for side, k in columns
            ]  # fmt: skip

        factor, label = (180.0 / np.pi, "angle [deg]") if rotational else (1.0, "displacement [m]")
        plots.append(line_plot(title, "time [s]", label, lines("coordinate_value", factor)))
        if columns[0][0] != "root":
            label = "torque [N m/kg]" if rotational else "force [N/kg]"
            torque = lines("torque", 1.0 / model.mass)
            plots.append(line_plot(f"{title}, {label.split()[0]}", "time [s]", label, torque))
    return plots

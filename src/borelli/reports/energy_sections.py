"""The parts of the report about residuals and energy, and the plots of every coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.reports.gait_curves import SIDES
from borelli.reports.html_parts import interval_of, legend, coordinate_pairs, interval_legend
from borelli.reports.report_warnings import residual_peaks
from borelli.reports.svg import Line, line_plot

STILL = {"rad": np.radians(2.0), "m": 0.01}
"""Coordinates that move less [rad, m] are not drawn."""
STYLES = ("right", "left", "third")
WORKS = ("work_positive", "work_negative")
JOINTS_SHOWN = 12


def residual_section(energy: Energy, bands: AnalysisUncertainty | None) -> str:
    """Residuals in time, against thresholds."""
    data = energy.torques.data
    limits = residual_peaks(energy)
    time = data["time"].values
    lines = [
        [
            Line(axis, time, data[name].values[:, k], style, **interval_of(bands, "torques", name, np.s_[:, k]))
            for k, (axis, style) in enumerate(zip("xyz", STYLES, strict=True))
        ]
        for name in ("residual_force", "residual_torque")
    ]
    force = line_plot(
        "Residual force", "time [s]", "force [N]", lines[0], limits=(-limits.force_limit, limits.force_limit), wide=True
    )
    moment = line_plot(
        "Residual moment at the pelvis", "time [s]", "moment [N m]", lines[1],
        limits=(-limits.moment_limit, limits.moment_limit), wide=True,
    )  # fmt: skip
    rows = (
        ("force, peak", limits.force, limits.force_limit, "N", "5 % of the peak net external force"),
        (
            "moment, peak",
            limits.moment,
            limits.moment_limit,
            "N m",
            "1 % of it times the height of the centre of mass",
        ),
    )
    body = "".join(
        f'<tr><td>{name}</td><td class="n {"ok" if value <= limit else "off"}">{value:.1f} {unit}</td>'
        f'<td class="n">{limit:.1f} {unit}</td><td>{why}</td></tr>'
        for name, value, limit, unit, why in rows
    )
    torques = energy.torques
    body += (
        f'<tr><td>force, rms</td><td class="n">{torques.residual_force_rms:.1f} N</td><td></td><td></td></tr>'
        f'<tr><td>moment, rms</td><td class="n">{torques.residual_moment_rms:.1f} N m</td><td></td><td></td></tr>'
    )
    return (
        '<section id="residuals"><h2>Residuals</h2><p class="lead">What neither joints nor ground supply: the smaller, '
        "the better motion, masses and forces fit together.</p>"
        + legend(right="x", left="y", third="z", limit="limit (Hicks et al. 2015)", **interval_legend(bands))
        + f'<div class="plots wide">{force}{moment}</div>'
        + '<table><tr><th></th><th class="n">here</th><th class="n">limit</th><th>which is</th></tr>'
        + f"{body}</table></section>"
    )


def energy_section(energy: Energy, bands: AnalysisUncertainty | None) -> str:
    """Powers and energy in time, work by joint, and the books."""
    data, summary = energy.data, energy.summary
    time, mass = data["time"].values, energy.torques.motion.model.mass
    powers = [
        Line(title, time, data[name].values / mass, style, **interval_of(bands, "energy", name, factor=1.0 / mass))
        for name, title, style in (
            ("joint_power", "joints", "dark"), ("ground_power", "ground", "third"),
            ("residual_power", "residual", "left"),
        )
        if name in data
    ]  # fmt: skip
    joules = []
    for name, title, style in (
        ("mechanical_energy", "mechanical, from its least", "dark"), ("kinetic_energy", "kinetic", "right"),
        ("potential_energy", "potential, from its least", "third"),
    ):  # fmt: skip
        if name in data:
            least = 0.0 if name == "kinetic_energy" else float(np.nanmin(data[name].values))
            around = interval_of(bands, "energy", name, factor=1.0 / mass, zero=least)
            joules.append(Line(title, time, (data[name].values - least) / mass, style, **around))
    power_plot = line_plot("Power", "time [s]", "power [W/kg]", powers, wide=True)
    energy_plot = line_plot("Mechanical energy", "time [s]", "energy [J/kg]", joules, wide=True)
    rows = [
        (f"{title}", f"{summary[key]:.{digits}f} {unit}")
        for key, title, unit, digits in (
            ("positive_work_j", "positive work of the joints", "J", 1), ("negative_work_j", "negative work", "J", 1),
            ("positive_work_per_stride_j_per_kg", "positive work a stride", "J/kg", 2),
            ("cost_of_transport_j_per_kg_m", "mechanical cost of transport", "J/(kg m)", 3),
            ("distance_m", "distance", "m", 2), ("speed_m_per_s", "speed", "m/s", 2),
            ("center_of_mass_positive_work_j", "positive work on the centre of mass", "J", 1),
            ("effort", "effort (integrated torque)", "N m s", 0),
            ("residual_work_net_j", "work of the residual, net", "J", 2),
            ("residual_work_absolute_j", "work of the residual, absolute", "J", 2),
            ("energy_balance_error_percent", "difference of work and energy", "% of positive work", 4),
        )
        if key in summary and np.isfinite(summary[key])
    ]  # fmt: skip
    body = "".join(f'<tr><td>{title}</td><td class="n">{escape(value)}</td></tr>' for title, value in rows)
    return (
        '<section id="energy"><h2>Energy</h2><div class="plots wide"><div>'
        + legend(dark="joints", third="ground", left="residual", **interval_legend(bands)) + power_plot + "</div><div>"
        + legend(dark="mechanical", right="kinetic", third="potential", **interval_legend(bands)) + energy_plot + "</div></div>"
        + '<div class="plots wide"><div><h3>Sums</h3><table>' + body + "</table></div><div><h3>Work by joint</h3>"
        + _work_table(energy) + "</div></div></section>"
    )  # fmt: skip


def _work_table(energy: Energy) -> str:
    data, model = energy.data, energy.torques.motion.model
    mass = model.mass
    rows = []
    for title, columns in coordinate_pairs(model).items():
        if columns[0][0] == "root":
            continue
        plus, minus = ({side: float(data[name].values[k]) / mass for side, k in columns} for name in WORKS)
        rows.append((sum(plus.values()) - sum(minus.values()), title, plus, minus))
    rows.sort(key=lambda row: -row[0])

    def cells(values: Mapping[str, float]) -> str:
        return "".join(f'<td class="n">{values[s]:+.3f}</td>' if s in values else "<td></td>" for s in SIDES)

    shown = rows[:JOINTS_SHOWN]
    body = "".join(f"<tr><td>{escape(title)}</td>{cells(plus)}{cells(minus)}</tr>" for _, title, plus, minus in shown)
    return (
        '<table><tr><th>J/kg</th><th class="n">right +</th><th class="n">left +</th><th class="n">right -</th>'
        f'<th class="n">left -</th></tr>{body}</table>'
    )


def other_section(energy: Energy, bands: AnalysisUncertainty | None) -> str:
    """Every coordinate that moves, and its torque, in time; folded away."""
    plots = coordinate_plots(energy, bands)
    if not plots:
        return ""
    return (
        '<section id="others"><h2>All coordinates</h2><details><summary>angles and torques over time</summary>'
        + legend(right="right, or middle", left="left", **interval_legend(bands))
        + f'<div class="plots">{"".join(plots)}</div></details></section>'
    )


def coordinate_plots(energy: Energy, bands: AnalysisUncertainty | None = None) -> list[str]:
    """A plot of the angle and one of the torque of each pair of coordinates that moves."""
    torques, model = energy.torques, energy.torques.motion.model
    data, time = torques.data, torques.data["time"].values
    plots = []
    for title, columns in coordinate_pairs(model).items():
        rotational = model.coordinates[columns[0][1]].rotational
        values = data["coordinate_value"].values
        if all(np.ptp(values[:, k]) < STILL["rad" if rotational else "m"] for _, k in columns):
            continue
        factor, unit = (180.0 / np.pi, "deg") if rotational else (1.0, "m")
        lines = [
            Line(side, time, factor * values[:, k], side, **interval_of(bands, "torques", "coordinates", np.s_[:, k], factor))
            for side, k in columns
        ]
        plots.append(line_plot(title, "time [s]", f"{'angle' if rotational else 'place'} [{unit}]", lines))
        if columns[0][0] != "root":
            unit = "N m/kg" if rotational else "N/kg"
            pulls = [
                Line(
                    side, time, data["torque"].values[:, k] / model.mass, side,
                    **interval_of(bands, "torques", "torque", np.s_[:, k], 1.0 / model.mass),
                )
                for side, k in columns
            ]  # fmt: skip
            plots.append(line_plot(f"{title}, torque", "time [s]", f"torque [{unit}]", pulls))
    return plots

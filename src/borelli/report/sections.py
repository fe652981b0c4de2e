"""The parts of the report, each a piece of HTML; an empty text where there is nothing to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli import __version__
from borelli.analysis.energy import Energy
from borelli.analysis.fit import Fit
from borelli.analysis.motion import Motion
from borelli.analysis.pose import root_coordinates
from borelli.export.compare import covered
from borelli.export.summary import agreement
from borelli.model.model import Model
from borelli.report.gait import PERCENT, Curve, Gait, heading, over_cycles
from borelli.report.svg import Band, Line, bar_plot, line_plot
from borelli.report.warnings import MARKER_MAX, all_notes, residuals, warnings_of

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

SIDES = ("right", "left")
GROUPS = (("angle", "Angles"), ("moment", "Internal moments"), ("power", "Powers"), ("ground", "Ground forces"))
STILL = {"rad": np.radians(2.0), "m": 0.01}
"""Coordinates that move less [rad, m] are not drawn."""
CHANGES_SHOWN = 60


def warning_section(energy: Energy, contacts: Dataset | None) -> str:
    """What is to be known first, and all notes in a fold."""
    warned = warnings_of(energy, contacts)
    rows = "".join(
        f'<li class="{one.grade}">{escape(_sentence(one.what))}{_remedy(one.remedy)}</li>' for one in warned
    )
    rows = rows or '<li class="fine">No warnings.</li>'
    notes = [note for note in all_notes(energy) if note.kind in ("stated", "change")]
    listed = "".join(f"<li>{escape(_sentence(note.what))}</li>" for note in notes[:CHANGES_SHOWN])
    more = f"<li>and {len(notes) - CHANGES_SHOWN} more</li>" if len(notes) > CHANGES_SHOWN else ""
    fold = f"<details><summary>{len(notes)} things that were read or changed</summary><ul>{listed}{more}</ul></details>"
    return f'<section id="warnings"><h2>Warnings</h2><ul class="warnings">{rows}</ul>{fold if notes else ""}</section>'


def tiles(energy: Energy, contacts: Dataset | None) -> str:
    """The key figures."""
    torques, motion = energy.torques, energy.torques.motion
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    found: list[tuple[str, str, str]] = []
    if "marker_error" in motion.data:
        found.append((f"{1e3 * motion.marker_rms:.1f}", "mm", "markers, root mean square"))
    if torques.contact_source != "none":
        share = 100.0 * torques.residual_force_rms / weight
        found.append((f"{share:.1f}", "% BW", "residual force, rms"))
        found.append((f"{torques.residual_torque_rms:.1f}", "N m", "residual moment, rms"))
    feet = agreement(energy, contacts)
    if feet:
        rms = float(np.mean([foot.vertical_rms for foot in feet]))
        found.append((f"{rms:.1f}", "% BW", "vertical force from motion against plates"))
    found.append((f"{energy.summary['work_j']:.0f}", "J", "positive work of the joints"))
    cost = energy.summary.get("cost_j_per_kg_m", float("nan"))
    if np.isfinite(cost):
        found.append((f"{cost:.2f}", "J/(kg m)", "mechanical cost of transport"))
        found.append((f"{energy.summary['speed_m_per_s']:.2f}", "m/s", "speed"))
    boxes = "".join(f'<div class="tile"><b>{v} <i>{escape(u)}</i></b><span>{escape(w)}</span></div>' for v, u, w in found)
    return f'<div class="tiles">{boxes}</div>'


def source_section(energy: Energy, about: Mapping[str, Any]) -> str:
    """File, hash, settings, version, model."""
    torques, motion = energy.torques, energy.torques.motion
    recording, model = motion.recording, motion.model
    rows: dict[str, str] = {}
    if recording is not None:
        rows["recording"] = f"{about.get('file') or recording.path or recording.name} ({recording.format})"
    if "sha256" in about:
        rows["SHA-256"] = f"<code>{escape(str(about['sha256']))}</code>"
    frames = int(motion.data.sizes["time"])
    rows["frames"] = f"{frames} at {motion.rate:g} Hz, {np.ptp(motion.data['time'].values):.2f} s"
    rows["markers"] = f"{motion.data.sizes.get('marker', 0)} followed"
    if recording is not None:
        rows["markers"] += f" of {len(recording.markers)} in the recording; {len(recording.plates)} plates"
    rows["model"] = (
        f"{model.name}: {len(model.bodies)} bodies, {len(model.coordinates)} coordinates, {model.mass:.1f} kg"
    )
    rows["poses"] = _listed(motion.settings)
    rows["torques"] = f"{_listed(torques.settings)}; ground forces: {_source_words(torques.contact_source)}"
    given = {k: v for k, v in dict(about.get("settings", {})).items() if v not in (None, {}, [])}
    if given:
        rows["settings"] = _listed(given)
    seconds = {k: v for k, v in dict(about.get("seconds", {})).items() if v is not None}
    if seconds:
        rows["seconds"] = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    rows["version"] = f"borelli {about.get('version', __version__)}" + (f", code {about['code']}" if "code" in about else "")
    body = "".join(
        f"<tr><th>{key}</th><td>{text if text.startswith('<code>') else escape(text)}</td></tr>"
        for key, text in rows.items()
    )
    return f'<section id="source"><h2>What was analysed</h2><table class="facts">{body}</table></section>'


def gait_section(energy: Energy, gait: Gait) -> str:
    """Angles, moments and powers over the gait cycle; over time where there is none."""
    if not gait.strides:
        return _over_time(energy, gait)
    counts = {side: sum(one.side == side for one in gait.strides) for side in SIDES}
    spans = np.mean([one.stop - one.start for one in gait.strides])
    offset = ""
    if gait.offset:
        offset = (
            f" Norms of pelvis tilt and hip flexion are drawn {gait.offset:.0f}° lower: they count from the pelvis's "
            "landmarks, the model from a pelvis that stands upright."
        )
    parts = [
        f'<section id="gait"><h2>Angles, moments, powers</h2><p class="lead">{counts["right"]} right and '
        f"{counts['left']} left strides of {spans:.2f} s, from foot strike to the next of the same foot; each one thin, "
        f"their mean thick. Grey: normal gait at {gait.speed} speed, mean and one standard deviation.{offset}</p>",
        _key(right="right", left="left", band="normal, mean and sd", mean="mean of a second source"),
    ]
    for group, title in GROUPS[:3]:
        plots = [_cycle_plot(gait, curve) for curve in gait.curves if curve.group == group]
        if plots:
            parts.append(f'<h3>{title}</h3><div class="plots">{"".join(plots)}</div>')
    return "".join(parts) + "</section>"


def ground_section(energy: Energy, gait: Gait, contacts: Dataset | None) -> str:
    """Ground forces over the cycle and in time, against plates, with figures."""
    data = energy.torques.data
    if "foot_force" not in data:
        return ""
    source = energy.torques.contact_source
    lead = {
        "plates": "As the plates measured them, given to the feet.",
        "contacts": "Computed from the motion alone: no plates were used.",
    }.get(source, "")
    parts = [f'<section id="ground"><h2>Ground forces</h2><p class="lead">{lead} In % of body weight.</p>']
    if gait.strides:
        parts.append(_key(right="right", left="left", band="normal, mean and sd"))
        plots = [_cycle_plot(gait, curve) for curve in gait.curves if curve.group == "ground"]
        parts.append(f'<div class="plots">{"".join(plots)}</div>')
    weight = energy.torques.motion.model.mass * float(np.linalg.norm(energy.torques.motion.model.gravity))
    way = heading(energy)
    ahead = np.array([np.cos(way), np.sin(way), 0.0])
    beside = contacts if source == "plates" else None
    words = "plates" if source == "plates" else "computed"
    if beside is not None:
        parts.append("<h3>Measured by plates, and computed from the motion alone</h3>")
        parts.append(_key(right="right, plates", left="left, plates", **{"right dash": "computed", "left dash": "computed"}))
    else:
        parts.append("<h3>In time</h3>" + _key(right="right", left="left"))
    plots = []
    for title, direction in (("Vertical", np.array([0.0, 0.0, 1.0])), ("Forward", ahead)):
        lines = []
        for side in SIDES:
            lines.append(_push_line(data, f"{side}, {words}", side, direction, weight, side))
            if beside is not None:
                lines.append(_push_line(beside, f"{side}, computed", side, direction, weight, f"{side} dash"))
        plots.append(line_plot(title, "time [s]", "force [% BW]", lines, wide=True))
    parts.append(f'<div class="plots wide">{"".join(plots)}</div>')
    parts.append(_agreement_table(energy, contacts, weight))
    return "".join(parts) + "</section>"


def residual_section(energy: Energy) -> str:
    """Residuals in time, against thresholds."""
    data = energy.torques.data
    limits = residuals(energy)
    time = data["time"].values
    lines = [
        [Line(axis, time, data[name].sel(axis=axis).values, style) for axis, style in zip("xyz", STYLES, strict=True)]
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
        ("moment, peak", limits.moment, limits.moment_limit, "N m", "1 % of that force times the height of the centre of mass"),
    )
    body = "".join(
        f'<tr><td>{name}</td><td class="n {"ok" if value <= limit else "off"}">{value:.1f} {unit}</td>'
        f'<td class="n">{limit:.1f} {unit}</td><td>{why}</td></tr>'
        for name, value, limit, unit, why in rows
    )
    torques = energy.torques
    body += (
        f'<tr><td>force, rms</td><td class="n">{torques.residual_force_rms:.1f} N</td><td></td><td></td></tr>'
        f'<tr><td>moment, rms</td><td class="n">{torques.residual_torque_rms:.1f} N m</td><td></td><td></td></tr>'
    )
    return (
        '<section id="residuals"><h2>Residuals</h2><p class="lead">What neither joints nor ground supply: the smaller, '
        "the better motion, masses and forces fit together.</p>"
        + _key(right="x", left="y", third="z", limit="limit (Hicks et al. 2015)")
        + f'<div class="plots wide">{force}{moment}</div>'
        + f'<table><tr><th></th><th class="n">here</th><th class="n">limit</th><th>which is</th></tr>{body}</table></section>'
    )


STYLES = ("right", "left", "third")


def energy_section(energy: Energy) -> str:
    """Powers and energy in time, work by joint, and the books."""
    data, summary = energy.data, energy.summary
    time, mass = data["time"].values, energy.torques.motion.model.mass
    powers = [
        Line(title, time, data[name].values / mass, style)
        for name, title, style in (
            ("joint_power", "joints", "dark"), ("ground_power", "ground", "third"), ("residual_power", "residual", "left"),
        )
        if name in data
    ]  # fmt: skip
    joules = [Line("mechanical", time, data["mechanical_energy"].values / mass, "dark")]
    if "kinetic_energy" in data:
        joules.append(Line("kinetic", time, data["kinetic_energy"].values / mass, "right"))
    if "potential_energy" in data:
        height = data["potential_energy"].values
        joules.append(Line("potential, from its least", time, (height - np.nanmin(height)) / mass, "third"))
    joules[0] = joules[0]._replace(y=joules[0].y - np.nanmin(joules[0].y), name="mechanical, from its least")
    power_plot = line_plot("Power", "time [s]", "power [W/kg]", powers, wide=True)
    energy_plot = line_plot("Mechanical energy", "time [s]", "energy [J/kg]", joules, wide=True)
    rows = [
        (f"{title}", f"{summary[key]:.{digits}f} {unit}")
        for key, title, unit, digits in (
            ("work_j", "positive work of the joints", "J", 1), ("work_negative_j", "negative work", "J", 1),
            ("work_per_cycle_j_per_kg", "positive work a stride", "J/kg", 2),
            ("cost_j_per_kg_m", "mechanical cost of transport", "J/(kg m)", 3),
            ("distance_m", "distance", "m", 2), ("speed_m_per_s", "speed", "m/s", 2),
            ("center_of_mass_work_positive_j", "positive work on the centre of mass", "J", 1),
            ("effort", "effort (integrated torque)", "N m s", 0),
            ("residual_work_net_j", "work of the residual, net", "J", 2),
            ("residual_work_absolute_j", "work of the residual, absolute", "J", 2),
            ("balance_error_percent", "difference of work and energy", "% of positive work", 4),
        )
        if key in summary and np.isfinite(summary[key])
    ]  # fmt: skip
    body = "".join(f'<tr><td>{title}</td><td class="n">{escape(value)}</td></tr>' for title, value in rows)
    return (
        '<section id="energy"><h2>Energy</h2><div class="plots wide"><div>'
        + _key(dark="joints", third="ground", left="residual") + power_plot + "</div><div>"
        + _key(dark="mechanical", right="kinetic", third="potential") + energy_plot + "</div></div>"
        + '<div class="plots wide"><div><h3>Sums</h3><table>' + body + "</table></div><div><h3>Work by joint</h3>"
        + _work_table(energy) + "</div></div></section>"
    )  # fmt: skip


def marker_section(motion: Motion) -> str:
    """How far each marker is from where it was seen."""
    if "marker_error" not in motion.data:
        return ""
    errors = 1e3 * motion.data["marker_error"].values
    names = [str(name) for name in motion.data["marker"].values]
    with np.errstate(invalid="ignore"):
        count = np.maximum(np.isfinite(errors).sum(axis=0), 1)
        rms = np.sqrt(np.nansum(errors**2, axis=0) / count)
        over_time = np.sqrt(np.nansum(errors**2, axis=1) / np.maximum(np.isfinite(errors).sum(axis=1), 1))
    worst = np.max(np.where(np.isfinite(errors), errors, 0.0), axis=0, initial=0.0)
    rms[~np.isfinite(errors).any(axis=0)] = np.nan
    order = np.argsort(-np.nan_to_num(rms))
    half = -(-len(order) // 2)
    bars = [
        bar_plot(title, "distance [mm]", [names[i] for i in part], rms[part], worst[part], float(1.5 * np.nanmedian(rms)))
        for title, part in (("Each marker, rms and largest", order[:half]), ("", order[half:]))
        if len(part)
    ]
    line = Line("all markers", motion.data["time"].values, over_time, "dark")
    plot = line_plot("All markers, rms in each frame", "time [s]", "distance [mm]", [line], wide=True)
    return (
        '<section id="markers"><h2>Markers</h2><p class="lead">Distance of the model\'s markers from the measured ones: '
        f"{1e3 * motion.marker_rms:.1f} mm rms, at most {worst.max():.1f} mm ({escape(names[int(worst.argmax())])}); "
        f"up to {1e3 * MARKER_MAX:.0f} mm is usual. Bars that stand out are half as much again as the middle one.</p>"
        f'<div class="plots wide">{"".join(bars)}</div><div class="plots wide">{plot}</div></section>'
    )


def body_section(fit: Fit) -> str:
    """Lengths that were fitted, with their uncertainty."""
    data = fit.data
    rows = ""
    for segment in map(str, data["segment"].values):
        one = data.sel(segment=segment)
        length, sd, given = (1e3 * float(one[name]) for name in ("length", "length_sd", "length_given"))
        rows += (
            f'<tr><td>{escape(segment.replace("_", " "))}</td><td class="n">{length:.0f}</td><td class="n">± {sd:.0f}</td>'
            f'<td class="n">{length - given:+.0f}</td></tr>'
        )
    held = f", {1e3 * fit.held_out_rms:.1f} mm in frames kept apart" if np.isfinite(fit.held_out_rms) else ""
    doubts = [
        (str(name), float(sd))
        for name, sd, unit in zip(
            data["coordinate"].values, data["zero_sd"].values, data["coordinate_units"].values, strict=True
        )
        if str(unit) == "rad" and sd > np.radians(3.0)
    ]
    doubts.sort(key=lambda pair: -pair[1])
    unsure = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">± {np.degrees(sd):.0f}°</td></tr>' for name, sd in doubts[:14]
    )
    table = (
        f"<div><h3>Angles whose zero is not well known</h3><table>{unsure}</table></div>" if unsure else ""
    )  # fmt: skip
    return (
        f'<section id="body"><h2>Body</h2><p class="lead">The model was fitted to the recording: markers '
        f"{1e3 * fit.train_rms:.1f} mm rms in the frames fitted{held}.</p>"
        '<div class="plots wide"><div><h3>Lengths</h3><table><tr><th>segment</th><th class="n">mm</th>'
        f'<th class="n">sd</th><th class="n">changed by</th></tr>{rows}</table></div>{table}</div></section>'
    )


def other_section(energy: Energy) -> str:
    """Every coordinate that moves, and its torque, in time; folded away."""
    plots = coordinate_plots(energy)
    if not plots:
        return ""
    return (
        '<section id="others"><h2>All coordinates</h2><details><summary>angles and torques over time</summary>'
        + _key(right="right, or middle", left="left")
        + f'<div class="plots">{"".join(plots)}</div></details></section>'
    )


def coordinate_plots(energy: Energy) -> list[str]:
    """A plot of the angle and one of the torque of each pair of coordinates that moves."""
    torques, model = energy.torques, energy.torques.motion.model
    data, time = torques.data, torques.data["time"].values
    plots = []
    for title, columns in _pairs(model).items():
        rotational = model.coordinates[columns[0][1]].rotational
        values = data["coordinates"].values
        if all(np.ptp(values[:, k]) < STILL["rad" if rotational else "m"] for _, k in columns):
            continue
        factor, unit = (180.0 / np.pi, "deg") if rotational else (1.0, "m")
        lines = [Line(side, time, factor * values[:, k], side) for side, k in columns]
        plots.append(line_plot(title, "time [s]", f"{'angle' if rotational else 'place'} [{unit}]", lines))
        if columns[0][0] != "root":
            unit = "N m/kg" if rotational else "N/kg"
            pulls = [Line(side, time, data["torque"].values[:, k] / model.mass, side) for side, k in columns]
            plots.append(line_plot(f"{title}, torque", "time [s]", f"torque [{unit}]", pulls))
    return plots


def _over_time(energy: Energy, gait: Gait) -> str:
    parts = [
        '<section id="gait"><h2>Angles, moments, powers</h2><p class="lead">Over time: the recording shows no whole '
        "stride.</p>",
        _key(right="right", left="left"),
    ]
    for group, title in GROUPS[:3]:
        plots = []
        for curve in gait.curves:
            if curve.group == group:
                lines = [
                    Line(side, gait.time, values, side)
                    for side, values in (("right", curve.right), ("left", curve.left))
                    if values is not None
                ]
                plots.append(line_plot(curve.title, "time [s]", f"{_quantity(curve)} [{curve.unit}]", lines))
        if plots:
            parts.append(f'<h3>{title}</h3><div class="plots">{"".join(plots)}</div>')
    return "".join(parts) + "</section>"


def _cycle_plot(gait: Gait, curve: Curve) -> str:
    usual, second = gait.norm(curve), gait.norm(curve, "pinzone2014")
    lines = []
    for side, values in (("right", curve.right), ("left", curve.left)):
        if values is None:
            continue
        rows = over_cycles(gait, values, side)
        if len(rows) > 1:
            lines += [Line(side, PERCENT, row, f"{side} thin") for row in rows[:12]]
        if len(rows):
            lines.append(Line(side, PERCENT, rows.mean(axis=0), side))
    return line_plot(
        curve.title, "gait cycle [%]", f"{_quantity(curve)} [{curve.unit}]", lines, kind="cycle",
        band=None if usual is None else Band(PERCENT, usual.mean, usual.sd),
        second=None if second is None or usual is None else second.mean,
    )  # fmt: skip


def _quantity(curve: Curve) -> str:
    return {"angle": "angle", "moment": "moment", "power": "power", "ground": "force"}[curve.group]


def _push_line(data: Dataset, name: str, side: str, direction: Array, weight: float, style: str) -> Line:
    values = 100.0 * data["foot_force"].sel(foot=side).values @ direction / weight
    return Line(name, data["time"].values, values, style)


def _agreement_table(energy: Energy, contacts: Dataset | None, weight: float) -> str:
    feet = agreement(energy, contacts)
    if not feet or contacts is None:
        return ""
    told = covered(energy.torques.data, contacts, weight)
    rows = "".join(
        f'<tr><td>{one.foot}</td><td class="n">{one.vertical_rms:.1f} % BW</td><td class="n">{one.vertical_r:.3f}</td>'
        f'<td class="n">{one.forward_rms:.1f} % BW</td><td class="n">{one.sideways_rms:.1f} % BW</td>'
        f'<td class="n">{one.center_forward:.0f} / {one.center_sideways:.0f} mm</td><td class="n">{one.frames}</td></tr>'
        for one in feet
    )
    where = "" if told.all() else f" Plates saw every step in {100 * told.mean():.0f} % of the frames; the rest is left out."
    return (
        f"<p>Over measured stance (20 N and more).{where}</p><table><tr><th>foot</th><th class='n'>vertical rms</th>"
        "<th class='n'>r</th><th class='n'>along x, rms</th><th class='n'>along y, rms</th>"
        f"<th class='n'>centre of pressure x / y</th><th class='n'>frames</th></tr>{rows}</table>"
    )


def _work_table(energy: Energy) -> str:
    data, model = energy.data, energy.torques.motion.model
    mass = model.mass
    rows = []
    for title, columns in _pairs(model).items():
        if columns[0][0] == "root":
            continue
        plus, minus = ({side: float(data[name].values[k]) / mass for side, k in columns} for name in WORKS)
        rows.append((sum(plus.values()) - sum(minus.values()), title, plus, minus))
    rows.sort(key=lambda row: -row[0])

    def cells(values: Mapping[str, float]) -> str:
        return "".join(f'<td class="n">{values[s]:+.3f}</td>' if s in values else "<td></td>" for s in SIDES)

    body = "".join(f"<tr><td>{escape(title)}</td>{cells(plus)}{cells(minus)}</tr>" for _, title, plus, minus in rows[:12])
    return (
        '<table><tr><th>J/kg</th><th class="n">right +</th><th class="n">left +</th><th class="n">right -</th>'
        f'<th class="n">left -</th></tr>{body}</table>'
    )


WORKS = ("work_positive", "work_negative")


def _pairs(model: Model) -> dict[str, list[tuple[str, int]]]:
    """Columns of coordinates by what they are, both sides together; the root's are marked as such."""
    root = set(root_coordinates(model))
    found: dict[str, list[tuple[str, int]]] = {}
    for k, coordinate in enumerate(model.coordinates):
        stem, _, letter = coordinate.name.rpartition("_")
        side = {"r": "right", "l": "left"}.get(letter)
        title = (stem if side else coordinate.name).replace("_", " ").capitalize()
        found.setdefault(title, []).append(("root" if coordinate.name in root else side or "right", k))
    return found


def _key(**entries: str) -> str:
    return '<div class="key">' + "".join(f'<span><i class="{s}"></i>{escape(t)}</span>' for s, t in entries.items()) + "</div>"


def _source_words(source: str) -> str:
    return {"plates": "measured by plates", "contacts": "computed from the motion", "none": "not known"}.get(source, source)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in values.items() if value is not None)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return _listed(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_short, value))
    return str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _remedy(text: str) -> str:
    return f"<em>{escape(text)}</em>" if text else ""

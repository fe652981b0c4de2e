"""Section of the report on muscles: activations, forces, unattained torque, joint contact forces, metabolic power."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.muscle_forces import MAX_UNATTAINED, MuscleForces, unattained_fractions
from borelli.export.clinical_names import clinical_name
from borelli.export.gait_curves import SIDES, Curve, Gait
from borelli.export.muscle_curves import (
    activation_curves,
    body_weight,
    contact_curves,
    emg_curves,
    force_curves,
    known_frames,
)
from borelli.export.opensim_names import has_borelli_root
from borelli.recording.emg.agreement import MIN_SAMPLES, emg_agreement
from borelli.reports.gait_sections import CURSOR, cycle_plot, time_plot
from borelli.reports.html_parts import folded, legend, number_cells, table
from borelli.reports.svg import Line, line_plot

IMPLANT_PEAKS = {"hip_contact_force": 2.38, "knee_contact_force": 2.61}
"""Mean peak contact force of walking [body weights], measured by instrumented implants: hip, four patients at about
4 km/h (Bergmann et al. 2001); knee, five (Kutzner et al. 2010). There is none for the ankle."""
MUSCLE_REFERENCES = (
    "Unattained torque: Hicks et al. (2015), reserve actuators. Hip contact force: Bergmann et al., J. Biomech. 34 "
    "(2001) 859; of the knee: Kutzner et al., J. Biomech. 43 (2010) 2164. "
)
COSTS = {
    "activation": "of activations to the power {p:g}",
    "force": "of activations to the power {p:g}, weighted by force",
    "volume": "of activations to the power {p:g}, weighted by volume",
    "metabolic": "of metabolic costs",
}
"""Costs of load sharing in words, with the exponent p."""
CONTACT_WORDS = (
    "Force of the joint on its distal segment, with muscles pulling on their own points: the magnitude, in body "
    "weights. Implants are those of patients at slow speed."
)
HUMAN_CONTACT = (
    " Peaks of the generic human were 1.3 to 2.4 times these means in two recorded walks: compare sides and trials by "
    "them, but do not use them as loads."
)
"""Peaks by side and joint of the walks of `docs/accuracy.md`, divided by `IMPLANT_PEAKS`."""
EMG_WORDS = (
    "Dashed: EMG envelopes, from 0 to their largest value or to that of the reference contraction. EMG leads force by "
    "30 to 100 ms (Cavanagh and Komi 1979); its timing can be compared with that of activations, its size cannot."
)
METABOLIC_MODELS = {"umberger2010": "Umberger (2010)", "bhargava2004": "Bhargava et al. (2004)"}


def muscle_section(energy: Energy, gait: Gait) -> str:
    """Return activations and contact forces over the gait cycle or time, and tables; "" without muscle forces."""
    muscles = energy.muscles
    if muscles is None:
        return ""
    marks = {f"mark {side}": f"{side} toe-off" for side in gait.toe_off} if gait.strides else {}
    emg = emg_curves(muscles)
    dashed = {f"{side} dash": f"{side}, EMG" for side in SIDES if any(side in one.sides for one in emg.values())}
    sides = legend(right="right", left="left", **dashed, **marks, cursor=CURSOR)
    contacts = contact_curves(muscles)
    peaks = {curve.name: _published(gait, curve) for curve in contacts}
    implants = {"published": "mean peak of walking, instrumented implants"} if any(peaks.values()) else {}
    activations = "".join(
        _plot(gait, one, including=(0.0, 1.0), dashed=emg.get(one.title)) for one in activation_curves(muscles)
    )
    forces = "".join(_plot(gait, one, including=(0.0,), references=peaks[one.name]) for one in contacts)
    contact_words = CONTACT_WORDS + (HUMAN_CONTACT if has_borelli_root(energy.torques.motion.model) else "")
    contact_part = (
        f'<h3>Joint contact forces</h3><p class="lead">{contact_words}</p>'
        + legend(right="right", left="left", **marks, **implants, cursor=CURSOR)
        + f'<div class="plots">{forces}</div>'
    )
    return (
        f'<p class="lead">{_lead(muscles)}</p><h3>Activations</h3>{sides}<div class="plots">{activations}</div>'
        + _emg_table(muscles) + (contact_part if contacts else "")
        + "<h3>Peak muscle forces</h3>" + _force_table(muscles) + _every_muscle(muscles)
        + '<div class="plots wide"><div><h3>Unattained torque</h3>' + _unattained_table(muscles)
        + "</div><div>" + _metabolic_part(energy) + "</div></div>"
    )  # fmt: skip


def _lead(muscles: MuscleForces) -> str:
    settings = muscles.settings
    cost = COSTS[str(settings["cost"])].format(p=settings["exponent"])
    passive = "with" if settings["passive"] else "without"
    return (
        f"Forces of {muscles.data.sizes['muscle']} muscles that produce the joint torques with the least sum {cost}, "
        "within what each muscle can produce at its length and velocity (rigid "
        f"tendons, {passive} passive force). They are computed, not measured: antagonists that pull against each other "
        "are not in them. The activation of a group is the mean of its muscles, weighted by their strength."
    )


def _published(gait: Gait, curve: Curve) -> tuple[float, ...]:
    """Return the published peak of a contact force in walking; () for other movements."""
    walking = bool(gait.strides) and not gait.running
    return (IMPLANT_PEAKS[curve.name],) if walking and curve.name in IMPLANT_PEAKS else ()


def _plot(
    gait: Gait,
    curve: Curve,
    *,
    including: Sequence[float] = (),
    references: Sequence[float] = (),
    dashed: Curve | None = None,
) -> str:
    draw = cycle_plot if gait.strides else time_plot
    return draw(gait, curve, None, including=including, references=references, dashed=dashed)


def _emg_table(muscles: MuscleForces) -> str:
    """Return how well the activation of each muscle with EMG agrees with its envelope; "" without EMG."""
    if "emg_envelope" not in muscles.data:
        return ""
    known, rate = known_frames(muscles), float(muscles.data.attrs["rate_hz"])
    rows = ""
    for name in muscles.data["muscle"].values:
        activation, envelope = (
            np.where(known, muscles.data[one].sel(muscle=name).values, np.nan)
            for one in ("muscle_activation", "emg_envelope")
        )
        if np.isfinite(activation + envelope).sum() >= MIN_SAMPLES:
            found = emg_agreement(activation, envelope, rate)
            cells = (
                _figure(found.r), _figure(found.r_at_lag), f"{1e3 * found.lag:.0f} ms",
                f"{100.0 * found.on_off:.0f} %", f"{100.0 * found.on_off_by_chance:.0f} %",
            )  # fmt: skip
            rows += f"<tr><td><code>{escape(str(name))}</code></td>{number_cells(*cells)}</tr>"
    head = ("Muscle", "Correlation", "Largest correlation", "at EMG earlier by", "On and off together", "By chance")
    return (
        f'<p class="small">{EMG_WORDS}</p>' + folded("Activations and EMG, by muscle", table(head, rows))
        if rows
        else ""
    )


def _figure(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _force_table(muscles: MuscleForces) -> str:
    known, weight = known_frames(muscles), body_weight(muscles)
    activations = {curve.title: curve.sides for curve in activation_curves(muscles)}
    rows = ""
    for curve in force_curves(muscles):
        cells = []
        for side in SIDES:
            if side not in curve.sides:
                cells += ["", "", ""]
                continue
            peak = _peak(curve.sides[side][known])
            activation = _peak(activations[curve.title][side][known])
            cells += [f"{peak:.0f}", f"{peak / weight:.2f}", f"{activation:.2f}"]
        rows += f"<tr><td>{escape(curve.title)}</td>{number_cells(*cells)}</tr>"
    head = [f"{side.capitalize()} {quantity}" for side in SIDES for quantity in ("[N]", "[BW]", "activation")]
    words = (
        "Largest sum of the forces of a group, and its largest activation, in frames with known ground reaction force."
    )
    return f'<p class="small">{words}</p>' + table(("Group", *head), rows)


def _unattained_table(muscles: MuscleForces) -> str:
    """Return the largest torque of each coordinate, and the part of it that muscles cannot produce."""
    known, data = known_frames(muscles), muscles.torques.data
    units = dict(zip(data["coordinate"].values.tolist(), data["coordinate_units"].values.tolist(), strict=True))
    rows = ""
    for name, fraction in sorted(unattained_fractions(muscles).items(), key=lambda item: -round(item[1], 3)):
        peak = _peak(np.abs(data["torque"].sel(coordinate=name).values[known]))
        unit = "N m" if units[name] == "rad" else "N"
        grade = "ok" if fraction <= MAX_UNATTAINED else "off"
        rows += (
            f"<tr><td>{escape(clinical_name(name))}</td>{number_cells(f'{peak:.1f} {unit}')}"
            f'<td class="n {grade}">{100.0 * fraction:.1f} %</td></tr>'
        )
    words = (
        f"Torque that muscles cannot produce, of the peak torque. Limit: {100.0 * MAX_UNATTAINED:.0f} % (Hicks et al. "
        "2015); beyond it, forces of the muscles that cross the joint are not reliable."
    )
    return f'<p class="small">{words}</p>' + table(("Coordinate", "Peak torque", "Unattained, largest"), rows)


def _metabolic_part(energy: Energy) -> str:
    """Return mean metabolic power and cost of transport, and the power over time."""
    muscles = energy.muscles
    if muscles is None or "metabolic_power" not in muscles.data:
        return ""
    mass, power = float(muscles.data.attrs["mass_kg"]), muscles.data["metabolic_power"].values
    mean = energy.summary.get("metabolic_power_w", float("nan"))
    cost = energy.summary.get("metabolic_cost_of_transport_j_per_kg_m", float("nan"))
    values = (
        ("Mean metabolic power", f"{mean:.0f} W", mean), ("Per body mass", f"{mean / mass:.2f} W/kg", mean),
        ("Metabolic cost of transport", f"{cost:.2f} J/(kg m)", cost),
    )  # fmt: skip
    rows = "".join(
        f"<tr><td>{name}</td>{number_cells(text)}</tr>" for name, text, value in values if np.isfinite(value)
    )
    model = METABOLIC_MODELS.get(str(muscles.settings["metabolics"]), str(muscles.settings["metabolics"]))
    line = Line("whole body", muscles.data["time"].values, power / mass, "dark")
    return (
        f'<h3>Metabolic power</h3><p class="small">Model of {model}, with excitations equal to activations: muscles '
        "of the model and the basal rate. The cost of other muscles is not included.</p>"
        + table(("Quantity", "Value"), rows)
        + line_plot("Metabolic power", "time [s]", "power [W/kg]", [line], including=(0.0,), wide=True)
    )


def _every_muscle(muscles: MuscleForces) -> str:
    """Return the peak force and activation of every muscle, under its name in the model, folded."""
    known, weight = known_frames(muscles), body_weight(muscles)
    force, activation = (muscles.data[name].values[known] for name in ("muscle_force", "muscle_activation"))
    rows = "".join(
        f"<tr><td><code>{escape(str(name))}</code></td>"
        + number_cells(f"{_peak(f):.0f}", f"{_peak(f) / weight:.2f}", f"{_peak(a):.2f}", f"{np.nanmean(a):.2f}")
        + "</tr>"
        for name, f, a in zip(muscles.data["muscle"].values, force.T, activation.T, strict=True)
    )
    head = ("Muscle", "Peak force [N]", "[BW]", "Peak activation", "Mean activation")
    return folded(f"All {force.shape[1]} muscles", table(head, rows))


def _peak(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else float("nan")

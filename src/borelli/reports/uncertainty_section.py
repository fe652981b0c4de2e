"""Section of the report on the uncertainty of its results."""

from __future__ import annotations

from html import escape

from borelli.analysis.energetics.energy import Energy
from borelli.export.uncertainty_files import AnalysisUncertainty, summary_values
from borelli.reports.html_parts import action_html, sentence

VALUES = (
    ("positive_work_j", "Positive joint work", "J"),
    ("negative_work_j", "Negative joint work", "J"),
    ("positive_work_per_stride_j_per_kg", "Positive joint work per stride", "J/kg"),
    ("cost_of_transport_j_per_kg_m", "Mechanical cost of transport", "J/(kg m)"),
    ("speed_m_per_s", "Speed", "m/s"),
    ("center_of_mass_positive_work_j", "Positive work on the center of mass", "J"),
    ("torque_time_integral_nms", "Time integral of absolute torque", "N m s"),
    ("residual_force_rms_n", "Residual force, RMS", "N"),
    ("residual_moment_rms_nm", "Residual moment, RMS", "N m"),
    ("residual_work_absolute_j", "Absolute residual work", "J"),
)


def uncertainty_section(energy: Energy, uncertainty: AnalysisUncertainty) -> str:
    """Return the section: method, notes, and values with standard deviation and 95 % interval."""
    values = summary_values(energy)
    rows = "".join(
        f'<tr><td>{title} [{unit}]</td><td class="n">{values[key]:.4g}</td><td class="n">{spread["sd"]:.2g}</td>'
        f'<td class="n">{spread["low"]:.4g}</td><td class="n">{spread["high"]:.4g}</td></tr>'
        for key, title, unit in VALUES
        if (spread := uncertainty.summary.get(key)) is not None and spread["sd"] == spread["sd"]
    )
    notes = "".join(f"<li>{escape(sentence(note.text))}{action_html(note.action)}</li>" for note in uncertainty.notes)
    models = "a model drawn from the fit" if uncertainty.models_drawn else "the same model"
    return (
        '<section id="uncertainty"><h2>Uncertainty</h2><p class="lead">The analysis was repeated '
        f"{uncertainty.repeats} times with marker noise of {uncertainty.noise_mm:.2g} mm"
        f"{'' if uncertainty.noise_stated else ' (median)'} and {models}. Shading shows the 95 % interval of the "
        "repeats. A value can lie outside its interval: repeats add noise to data that already contain noise, which "
        "biases quantities such as positive work.</p>"
        f'<ul class="notes">{notes}</ul><table><tr><th>Quantity</th><th class="n">Value</th><th class="n">SD</th>'
        f'<th class="n">2.5 %</th><th class="n">97.5 %</th></tr>{rows}</table></section>'
    )

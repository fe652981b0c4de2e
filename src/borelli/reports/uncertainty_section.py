"""The part of the report that says how sure its figures are."""

from __future__ import annotations

from html import escape

from borelli.analysis.energetics.energy import Energy
from borelli.export.uncertainty_files import AnalysisUncertainty, summary_values
from borelli.reports.html_parts import action_html, sentence

FIGURES = (
    ("positive_work_j", "positive work of the joints", "J"),
    ("negative_work_j", "negative work", "J"),
    ("positive_work_per_stride_j_per_kg", "positive work a stride", "J/kg"),
    ("cost_of_transport_j_per_kg_m", "mechanical cost of transport", "J/(kg m)"),
    ("speed_m_per_s", "speed", "m/s"),
    ("center_of_mass_positive_work_j", "positive work on the centre of mass", "J"),
    ("effort", "effort (integrated torque)", "N m s"),
    ("residual_force_rms_n", "residual force, rms", "N"),
    ("residual_moment_rms_nm", "residual moment, rms", "N m"),
    ("residual_work_absolute_j", "work of the residual, absolute", "J"),
)


def uncertainty_section(energy: Energy, bands: AnalysisUncertainty) -> str:
    """Repeats, noise, what drew the models; and the figures with their spread."""
    values = summary_values(energy)
    rows = "".join(
        f'<tr><td>{title} [{unit}]</td><td class="n">{values[key]:.4g}</td><td class="n">{doubt["sd"]:.2g}</td>'
        f'<td class="n">{doubt["low"]:.4g}</td><td class="n">{doubt["high"]:.4g}</td></tr>'
        for key, title, unit in FIGURES
        if (doubt := bands.figures.get(key)) is not None and doubt["sd"] == doubt["sd"]
    )
    notes = "".join(f"<li>{escape(sentence(note.text))}{action_html(note.action)}</li>" for note in bands.notes)
    return (
        f'<section id="bands"><h2>How sure</h2><p class="lead">The analysis was done {bands.repeats} times more, each '
        f"time with other noise on the markers, of {bands.noise_mm:.2g} mm"
        f"{'' if bands.stated else ' in the middle'}, {_models(bands)}. Shaded in all plots: where 95 % of the repeats "
        "lie. Where a figure lies outside of its own, noise shifts it, for the repeats have noise twice.</p>"
        f'<ul class="doubts">{notes}</ul><table><tr><th></th><th class="n">value</th><th class="n">sd</th>'
        f'<th class="n">2.5 %</th><th class="n">97.5 %</th></tr>{rows}</table></section>'
    )


def _models(bands: AnalysisUncertainty) -> str:
    return "and with another of the models that the fit allows" if bands.drawn else "and with the model as it is"

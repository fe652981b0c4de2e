"""The verb `analyze`: from recordings to angles, torques, ground forces, energy and a report."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import bar, out, print_json, print_marked, show_title
from borelli.commands.options import Forces, Forward, Json, Skeleton, Units, Up

if TYPE_CHECKING:
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.pipeline.analyze import Analysis

Mass = Annotated[float | None, typer.Option(help="Of the subject [kg]; else what the recording says.")]
Height = Annotated[float | None, typer.Option(help="Of the subject [m]; else what the recording says.")]
Sex = Annotated[str | None, typer.Option(help="male or female: whose segment tables are taken.")]
ModelFile = Annotated[Path | None, typer.Option("--model", help="A model file; none: a human of that mass and height.")]
Static = Annotated[Path | None, typer.Option(help="A recording in which the subject stands still.")]
Method = Annotated[str, typer.Option(help="Of the poses: converged, smoothed or dynamic.")]
TorqueMethod = Annotated[str, typer.Option("--torques", help="smooth or stepped.")]
Plates = Annotated[bool, typer.Option(help="Use the plates; else ground forces are computed from the motion.")]
Cutoff = Annotated[float | None, typer.Option(help="Low-pass of coordinates before they are differentiated [Hz].")]
Start = Annotated[float, typer.Option(help="Cut off what is before \\[s].")]
Stop = Annotated[float, typer.Option(help="Cut off what is after \\[s].")]

Repeats = Annotated[
    int, typer.Option("--monte-carlo", metavar="N", help="Repeat N times on shaken markers: a band on every output.")
]
Noise = Annotated[
    float | None, typer.Option(metavar="MM", help="Of markers, for the bands \\[mm]; else told from the recording.")
]


def analyze(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Trials of one subject.")],
    folder: Annotated[Path, typer.Option("--out", "-o", help="Where the results go.")] = Path("analysis"),
    model: ModelFile = None,
    mass: Mass = None,
    height: Height = None,
    sex: Sex = None,
    fit: Annotated[bool, typer.Option(help="Fit the model to the recordings; else it is taken as it is.")] = True,
    static: Static = None,
    forces: Forces = None,
    plates: Plates = True,
    method: Method = "framewise",
    torques: TorqueMethod = "newton_euler",
    cutoff: Cutoff = None,
    start: Start = -inf,
    stop: Stop = inf,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    monte_carlo: Repeats = 0,
    noise: Noise = None,
    json: Json = False,
) -> None:
    """From recordings to angles, torques, ground forces, energy and a report.

    Stages that an earlier run has done in the same folder, with the same settings, are not done again.
    """
    from borelli.commands.compile_notice import compile_once
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.pipeline.uncertainty import check_uncertainty_settings

    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton}
    plan = AnalysisSettings(
        model=model, mass=mass, height=height, sex=sex, fit=fit, static=static, forces=forces, plates=plates,
        method=method, torque_method=torques, cutoff=cutoff, start=start, stop=stop, reading=reading,
        monte_carlo=monte_carlo, noise=None if noise is None else 1e-3 * noise,
    )  # fmt: skip
    check_uncertainty_settings(plan.monte_carlo, plan.noise)
    compile_once(*recordings, model, static, forces, skeleton)
    results = run(recordings, folder, plan)
    if json:
        told = {result.energy.torques.motion.recording.name: dict(result.summary) for result in results}  # type: ignore[union-attr]
        print_json(dict(results[0].summary) if len(results) == 1 else told)
        return
    for result in results:
        show(result)


def run(recordings: list[Path], folder: Path, plan: AnalysisSettings) -> tuple[Analysis, ...]:
    """The analyses, with a progress bar."""
    from borelli.pipeline.analyze import analyze as analyzed

    with bar("starting") as move:
        return analyzed(recordings, folder, plan, lambda what, share: move(share, what))


def show(result: Analysis) -> None:
    """Print the key figures of an analysis, its warnings, and where its report is."""
    summary = result.summary
    show_title(summary["file"])
    out.print(figures(summary))
    print_marked([("warning", text) for text in summary["warnings"]])
    if result.bands is not None:
        print_marked([("note" if note.kind == "stated" else note.kind, note.text) for note in result.bands.notes])
    if result.loaded:
        print_marked([("note", f"taken from an earlier run: {', '.join(result.loaded)}")])
    out.print(f"\nLook at [bold]{escape(str(result.folder / 'report.html'))}[/]", soft_wrap=True)


def figures(summary: dict[str, Any] | Any) -> Table:
    """The key figures as a table."""
    table = Table(show_header=False)
    rows = (
        ("frames", "frames", "{:d}", ""), ("rate", "rate_hz", "{:g}", "Hz"), ("mass", "mass_kg", "{:.1f}", "kg"),
        ("marker error, rms", "marker_rms_mm", "{:.2f}", "mm"),
        ("marker error, largest", "marker_max_mm", "{:.1f}", "mm"),
        ("fit, frames kept apart", "fit_held_out_rms_mm", "{:.2f}", "mm"),
        ("ground forces", "contact_source", "{}", ""),
        ("residual force, rms", "residual_force_rms_n", "{:.1f}", "N"),
        ("residual moment, rms", "residual_moment_rms_nm", "{:.1f}", "N m"),
        ("vertical force from motion against plates", "grf_vertical_rms_bw", "{:.1f}", "% BW"),
        ("positive work of the joints", "positive_work_j", "{:.1f}", "J"),
        ("mechanical cost of transport", "cost_of_transport_j_per_kg_m", "{:.3f}", "J/(kg m)"),
        ("difference of work and energy", "energy_balance_error_percent", "{:.4f}", "%"),
    )  # fmt: skip
    for title, key, form, unit in rows:
        if summary.get(key) is not None:
            doubt = summary.get("bands", {}).get(key, {}).get("sd")
            told = form.format(summary[key]) + (f" ± {form.format(doubt)}" if doubt is not None else "")
            table.add_row(title, escape(f"{told} {unit}".strip()))
    seconds = {name: value for name, value in summary["seconds"].items() if value is not None}
    table.add_row("seconds", ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    return table

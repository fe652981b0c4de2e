"""The subcommand `analyze`: from recordings to angles, torques, ground reaction forces, energy and a report."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands import options
from borelli.commands.console import compile_once, note_lines, out, print_json, print_marked, progress_bar, show_title
from borelli.commands.options import ID_HELP, IK_HELP, option, output

if TYPE_CHECKING:
    from borelli.pipeline.analyze import Analysis


def analyze(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING", help="Trials of one subject.")],
    folder: Annotated[Path, output("Folder for the results. Default: analysis.", "FOLDER")] = Path("analysis"),
    model: options.ModelFile = None,
    mass: options.Mass = None,
    height: options.Height = None,
    sex: options.Sex = None,
    fit: Annotated[bool, option("Fit the model to the recordings. Default: on.")] = True,
    static: options.Static = None,
    functional: options.Functional = None,
    hip_regression: options.HipRegression = "harrington",
    knee_width: options.KneeWidth = None,
    ankle_width: options.AnkleWidth = None,
    forces: options.Forces = None,
    scale_setup: options.ScaleSetup = None,
    ik_setup: options.IkSetup = None,
    id_setup: options.IdSetup = None,
    external_loads: options.ExternalLoads = None,
    filter: options.Filter = None,
    plates: options.Plates = True,
    contact: options.Contact = None,
    ik_method: Annotated[str, option(IK_HELP, "METHOD", "--ik-method")] = "framewise",
    id_method: Annotated[str, option(ID_HELP, "METHOD", "--id-method")] = "newton-euler",
    cutoff: options.Cutoff = None,
    plate_cutoff: options.PlateCutoff = None,
    reduce_residuals: options.ReduceResiduals = False,
    muscles: Annotated[
        bool,
        option(
            "Compute muscle forces, activations, joint contact forces and metabolic cost. Default: off.",
            None,
            "--muscles",
        ),
    ] = False,
    start: options.Start = -inf,
    end: options.End = inf,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    ignore: options.Ignore = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    monte_carlo: Annotated[
        int,
        option(
            "Run N Monte Carlo repeats with errors of published size; report a 95 % interval for every output.",
            "N",
            "--monte-carlo",
        ),
    ] = 0,
    marker_noise: Annotated[
        float | None, option("Standard deviation of marker noise [mm]. Default: estimated from the recording.", "MM")
    ] = None,
    force: options.ForceFolder = False,
    json: options.Json = False,
) -> None:
    """Analyze recordings and write a report.

    Results are joint angles, torques, ground reaction forces and energy. Stages that an earlier run computed in the
    same folder with the same settings are reused.
    """
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.pipeline.analyze import analyze as run_analysis
    from borelli.pipeline.uncertainty import check_uncertainty_settings

    settings = AnalysisSettings(
        model=model, mass=mass, height=height, sex=sex, fit=fit, static=static, functional=tuple(functional or ()),
        hip_regression=hip_regression, knee_width=options.to_meters(knee_width),
        ankle_width=options.to_meters(ankle_width), forces=forces, plates=plates,
        contact=contact, ik_method=ik_method, id_method=id_method, cutoff=cutoff, plate_cutoff=plate_cutoff,
        reduce_residuals=reduce_residuals, muscles=muscles, scale_setup=scale_setup, ik_setup=ik_setup,
        id_setup=id_setup, external_loads=external_loads, filter=filter,
        start=start, end=end, ignore=tuple(ignore or ()),
        reading={
            "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
            "marker_set": marker_set,
        },
        monte_carlo=monte_carlo, marker_noise=options.to_meters(marker_noise),
    )  # fmt: skip
    check_uncertainty_settings(settings.monte_carlo, settings.marker_noise)
    compile_once(
        *recordings, model, static, *(functional or ()), forces, skeleton, markers, scale_setup, ik_setup, id_setup,
        external_loads, muscles=muscles,
    )  # fmt: skip
    with progress_bar("starting") as update:
        results = run_analysis(recordings, folder, settings, lambda task, done: update(done, task), overwrite=force)
    if json:
        by_name = {str(result.summary["recording"]): dict(result.summary) for result in results}
        print_json(dict(results[0].summary) if len(results) == 1 else by_name)
        return
    for result in results:
        show_analysis(result)


def show_analysis(result: Analysis) -> None:
    """Print the key values of an analysis, its warnings and the path of its report."""
    summary = result.summary
    show_title(summary["file"])
    out.print(summary_table(summary))
    print_marked(note_lines([n for n in result.energy.torques.notes if n.code == "residual_reduction"]))
    print_marked([("warning", text) for text in summary["warnings"]])
    if result.uncertainty is not None:
        print_marked(note_lines(result.uncertainty.notes))
    if result.reused_stages:
        print_marked([("note", f"Reused from an earlier run: {', '.join(result.reused_stages)}.")])
    out.print(f"\nReport: [bold]{escape(str(result.folder / 'report.html'))}[/]", soft_wrap=True)


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Return the key values of a summary as a table."""
    table = Table(show_header=False)
    rows = (
        ("frames", "frames", "{:d}", ""), ("frame rate", "rate_hz", "{:g}", "Hz"),
        ("body mass", "mass_kg", "{:.1f}", "kg"), ("marker error, RMS", "marker_rms_mm", "{:.2f}", "mm"),
        ("marker error, maximum", "marker_max_mm", "{:.1f}", "mm"),
        ("fit error in held-out frames, RMS", "fit_held_out_rms_mm", "{:.2f}", "mm"),
        ("low-pass cutoff, motion", "cutoff_hz", "{:g}", "Hz"),
        ("low-pass cutoff, force plates", "plate_cutoff_hz", "{:g}", "Hz"),
        ("ground reaction force", "grf_source", "{}", ""),
        ("residual force, RMS", "residual_force_rms_n", "{:.1f}", "N"),
        ("residual moment, RMS", "residual_moment_rms_nm", "{:.1f}", "N m"),
        ("peak joint torque", "peak_torque_nm_per_kg", "{:.2f}", "N m/kg"),
        ("predicted vs. measured vertical GRF, RMS", "grf_vertical_rms_bw", "{:.1f}", "% BW"),
        ("largest unattained torque", "unattained_torque_percent", "{:.1f}", "% of peak"),
        ("metabolic power", "metabolic_power_w", "{:.0f}", "W"),
        ("metabolic cost of transport", "metabolic_cost_of_transport_j_per_kg_m", "{:.2f}", "J/(kg m)"),
        ("positive joint work", "positive_work_j", "{:.1f}", "J"),
        ("mechanical cost of transport", "cost_of_transport_j_per_kg_m", "{:.3f}", "J/(kg m)"),
        ("energy balance error", "energy_balance_error_percent", "{:.4f}", "%"),
    )  # fmt: skip
    for title, key, form, unit in rows:
        if summary.get(key) is not None:
            sd = summary.get("uncertainty", {}).get(key, {}).get("sd")
            text = form.format(summary[key]) + (f" ± {form.format(sd)}" if sd is not None else "")
            table.add_row(title, escape(f"{text} {unit}".strip()))
    runtime = {name: value for name, value in summary["runtime_s"].items() if value is not None}
    table.add_row(escape("run time [s]"), ", ".join(f"{name} {value:.1f}" for name, value in runtime.items()))
    return table

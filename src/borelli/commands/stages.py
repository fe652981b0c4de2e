"""The subcommands `fit`, `ik`, `id`, `muscles`, `energy` and `report`: stages of `analyze`, one output file each."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borelli.commands import options
from borelli.commands.console import compile_once, err, note_lines, print_json, print_marked, print_pairs, show_title
from borelli.commands.options import ID_HELP, IK_HELP, check_target, option, output
from borelli.errors import BorelliError, SettingsError

if TYPE_CHECKING:
    from borelli.analysis.energetics.energy import Energy
    from borelli.analysis.fit.fit_model import Fit
    from borelli.export.uncertainty_files import AnalysisUncertainty
    from borelli.recording.recording import Note

CREATED_BY = {
    "Motion": ("motion", "borelli ik"), "Torques": ("torques", "borelli id"),
    "MuscleForces": ("muscle forces", "borelli muscles"), "Energy": ("energy", "borelli energy"),
}  # fmt: skip
"""What each kind of stage file contains, and the command that creates it."""


def fit(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING", help="Trials of one subject.")],
    target: Annotated[Path, output("Model file: .toml, .osim or .xml. Default: model.toml.")] = Path("model.toml"),
    model: options.ModelFile = None,
    mass: options.FitMass = None,
    height: options.Height = None,
    sex: options.Sex = None,
    static: options.Static = None,
    functional: options.Functional = None,
    hip_regression: options.HipRegression = "harrington",
    knee_width: options.KneeWidth = None,
    ankle_width: options.AnkleWidth = None,
    start: options.Start = -inf,
    end: options.End = inf,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Fit a model to recordings and write it.

    Segment lengths, joint centers and marker offsets are estimated.
    """
    check_target(target, (*recordings, model, static, *(functional or ()), skeleton, markers), force=force)
    from borelli.model.io import write_model
    from borelli.pipeline.analysis_settings import (
        AnalysisSettings,
        fit_subject,
        read_calibration,
        read_trial,
        size_notes,
    )

    settings = AnalysisSettings(
        model=model, mass=mass, height=height, sex=sex, static=static, functional=tuple(functional or ()),
        hip_regression=hip_regression, knee_width=options.to_meters(knee_width),
        ankle_width=options.to_meters(ankle_width), start=start, end=end,
        reading={
            "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
            "marker_set": marker_set,
        },
    )  # fmt: skip
    compile_once(*recordings, model, static, *(functional or ()), skeleton, markers)
    with err.status("fitting the model"):
        trials = [read_trial(path, settings) for path in recordings]
        result = fit_subject(settings, trials, read_calibration(settings))
        lost = write_model(result.model, target, overwrite=force)
    notes = (*size_notes(settings, trials[0]), *result.notes)
    values = {
        "out": str(target), "rms_mm": 1e3 * result.train_rms, "held_out_rms_mm": 1e3 * result.held_out_rms,
        "lengths_m": result.lengths, "lost": list(lost), "notes": [note.text for note in notes],
    }  # fmt: skip
    if json:
        print_json(values)
        return
    show_title(target)
    error = f"{values['rms_mm']:.2f} mm RMS, {values['held_out_rms_mm']:.2f} mm RMS in held-out frames"
    print_pairs({"marker error": error})
    print_marked([("lost", text) for text in lost])
    print_marked(note_lines(notes))


def ik(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model with the recording's markers.")],
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="Recording with markers.")],
    target: Annotated[Path, output("Motion file (.nc). Default: motion.nc.")] = Path("motion.nc"),
    method: Annotated[str, option(IK_HELP, "METHOD")] = "framewise",
    forces: options.Forces = None,
    ik_setup: options.IkSetup = None,
    start: options.Start = -inf,
    end: options.End = inf,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Run inverse kinematics on a recording and write the motion."""
    _check_stage_file(target, (model, recording, forces, skeleton, markers, ik_setup), force)
    from borelli.export.stage_files import write_stage
    from borelli.model.io import read_model
    from borelli.pipeline.analysis_settings import AnalysisSettings, read_trial
    from borelli.pipeline.opensim_recipe import apply_setups
    from borelli.pipeline.stages import StageSettings, run_inverse_kinematics

    settings = AnalysisSettings(
        forces=forces, start=start, end=end, ik_method=method, ik_setup=ik_setup,
        reading={
            "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
            "marker_set": marker_set,
        },
    )  # fmt: skip
    compile_once(model, recording, forces, skeleton, markers)
    with err.status("inverse kinematics"):
        settings = apply_setups(settings)
        trial = read_trial(recording, settings)
        stage = StageSettings(ik_method=settings.ik_method, ik_setup=settings.ik_setup)
        motion = run_inverse_kinematics(trial, read_model(model), stage)
        write_stage(motion, target, overwrite=force)
    values = {
        "frames": motion.data.sizes["time"], "marker_rms_mm": 1e3 * motion.marker_rms,
        "marker_max_mm": 1e3 * float(motion.data["marker_error"].max()),
    }  # fmt: skip
    _show_stage(target, values, motion.notes, json)


def id(
    motion: Annotated[Path, typer.Argument(metavar="MOTION", help="Motion file of `borelli ik`.")],
    target: Annotated[Path, output("Torque file (.nc). Default: torques.nc.")] = Path("torques.nc"),
    method: Annotated[str, option(ID_HELP, "METHOD")] = "newton-euler",
    plates: options.Plates = True,
    contact: options.Contact = None,
    cutoff: options.Cutoff = None,
    plate_cutoff: options.PlateCutoff = None,
    reduce_residuals: options.ReduceResiduals = False,
    filter: options.Filter = None,
    id_setup: options.IdSetup = None,
    external_loads: options.ExternalLoads = None,
    forces: options.Forces = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Run inverse dynamics on a motion and write the torques.

    Ground reaction forces are measured by plates or predicted from the motion.
    """
    _check_stage_file(target, (motion, id_setup, external_loads, forces), force)
    from borelli.analysis.motion import Motion
    from borelli.export.stage_files import read_stage, write_stage
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.pipeline.opensim_recipe import apply_setups
    from borelli.pipeline.stages import compute_torques

    settings = AnalysisSettings(
        id_method=method, plates=plates, contact=contact, cutoff=cutoff, plate_cutoff=plate_cutoff,
        reduce_residuals=reduce_residuals, filter=filter, id_setup=id_setup, external_loads=external_loads,
        forces=forces,
    )  # fmt: skip
    compile_once(motion)
    with err.status("inverse dynamics"):
        torques = compute_torques(_select_stage(read_stage(motion), Motion, motion), apply_setups(settings))
        write_stage(torques, target, overwrite=force)
    peak = torques.peak_joint_torque
    values = {
        "cutoff_hz": torques.settings["cutoff_hz"], "plate_cutoff_hz": torques.settings["plate_cutoff_hz"],
        "grf_source": torques.grf_source, "residual_force_rms_n": torques.residual_force_rms,
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "peak_torque_nm_per_kg": peak.per_mass if peak is not None else None,
        "peak_torque_coordinate": peak.coordinate if peak is not None else None,
    }  # fmt: skip
    _show_stage(target, values, torques.notes, json)


def muscles(
    torques: Annotated[Path, typer.Argument(metavar="TORQUES", help="Torque file of `borelli id`.")],
    target: Annotated[Path, output("Muscle file (.nc). Default: muscles.nc.")] = Path("muscles.nc"),
    cost: Annotated[
        str, option("Cost: activation, force, volume or metabolic. Default: activation.", "COST")
    ] = "activation",
    exponent: Annotated[float, option("Exponent of the cost, 1 to 5. Default: 2.", "P")] = 2.0,
    passive: Annotated[
        bool, option("Include passive forces of stretched fibers. Default: off.", None, "--passive")
    ] = False,
    tendon: Annotated[str, option("Tendons: rigid or elastic. Default: rigid.", "KIND")] = "rigid",
    reserve: Annotated[
        float | None, option("Optimal force of reserve actuators [N m]. Default: no reserves.", "NM")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Compute muscle forces that produce the torques, and write them.

    The model must have muscles: a model file with them, or the human of `borelli analyze --muscles`.
    """
    _check_stage_file(target, (torques,), force)
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.muscle_forces import muscle_forces
    from borelli.export.stage_files import read_stage, write_stage

    compile_once(torques, muscles=True)
    with err.status("muscle forces"):
        source = _select_stage(read_stage(torques), Torques, torques)
        result = muscle_forces(source, cost=cost, exponent=exponent, passive=passive, tendon=tendon, reserves=reserve)
        write_stage(result, target, overwrite=force)
    worst = result.worst_unattained
    values = {
        "muscles": result.data.sizes["muscle"], "unattained_torque_percent": 0.0 if worst is None else 100.0 * worst[1],
        "unattained_torque_coordinate": None if worst is None else worst[0],
        "max_activation": float(result.data["muscle_activation"].max()),
    }  # fmt: skip
    _show_stage(target, values, result.notes, json)


def energy(
    torques: Annotated[
        Path,
        typer.Argument(metavar="TORQUES", help="File of `borelli id` or `borelli muscles`."),
    ],
    target: Annotated[Path, output("Energy file (.nc). Default: energy.nc.")] = Path("energy.nc"),
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Compute power, work and energy, and write them."""
    _check_stage_file(target, (torques,), force)
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import compute_energy
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.export.stage_files import read_stage, write_stage

    with err.status("energetics"):
        stage = read_stage(torques)
        muscles = stage if isinstance(stage, MuscleForces) else getattr(stage, "muscles", None)
        source = muscles or _select_stage(stage, Torques, torques)
        result = compute_energy(source)
        write_stage(result, target, overwrite=force)
    _show_stage(target, dict(result.summary), result.notes, json)


def report(
    energy: Annotated[Path, typer.Argument(metavar="ENERGY", help="Energy file of `borelli energy` or `analyze`.")],
    target: Annotated[Path, output("HTML file. Default: report.html.")] = Path("report.html"),
    force: options.Force = False,
) -> None:
    """Write the report of an analysis as one HTML file."""
    if target.suffix.lower() not in (".html", ".htm"):
        raise SettingsError(f"{target}: Reports are HTML files. Use a name that ends in .html.")
    check_target(target, (energy,), force=force)
    from borelli.analysis.energetics.energy import Energy
    from borelli.export.stage_files import STAGES, load_stage, open_stage_file
    from borelli.pipeline.stages import predict_grf_for_comparison
    from borelli.reports.report import write_report

    with err.status("writing the report"):
        file = open_stage_file(energy, STAGES)
        result = _select_stage(load_stage(file), Energy, energy)
        fit, uncertainty, problems = _read_neighbors(energy, result, file.provenance.get("key"))
        write_report(
            result, target, fit=fit, predicted_grf=predict_grf_for_comparison(result.torques), uncertainty=uncertainty,
            provenance={"file": energy.name}, overwrite=force,
        )  # fmt: skip
    show_title(target)
    print_marked([("problem", f"The report was written without a damaged file. {text}") for text in problems])


def _read_neighbors(path: Path, energy: Energy, key: Any) -> tuple[Fit | None, AnalysisUncertainty | None, list[str]]:
    """Return the fit and the uncertainty in the folder of an energy file with this key, and sentences on damage."""
    from borelli.export.stage_files import open_stage_file, read_fit
    from borelli.export.uncertainty_files import UNCERTAINTY_FILE, load_uncertainty

    fit, uncertainty, problems = None, None, []
    fit_file, uncertainty_file = path.with_name("fit.nc"), path.with_name(UNCERTAINTY_FILE)
    try:
        fit = read_fit(fit_file) if fit_file.exists() else None
    except BorelliError as error:
        problems.append(str(error))
    try:
        file = open_stage_file(uncertainty_file, ("uncertainty",)) if key and uncertainty_file.exists() else None
        if file is not None and file.provenance.get("energy") == key:
            uncertainty = load_uncertainty(file, energy)
    except BorelliError as error:
        problems.append(str(error))
    return fit, uncertainty, problems


def _check_stage_file(target: Path, sources: tuple[Path | None, ...], force: bool) -> None:
    if target.suffix.lower() != ".nc":
        raise SettingsError(f"{target}: Stages are written as netCDF. Use a name that ends in .nc.")
    check_target(target, sources, force=force)


def _select_stage(stage: Any, kind: type, path: Path) -> Any:
    """Return the stage, or the one it was computed from, that has the required kind."""
    for part in (stage, getattr(stage, "torques", None), getattr(getattr(stage, "torques", stage), "motion", None)):
        if isinstance(part, kind):
            return part
    wanted, command = CREATED_BY[kind.__name__]
    raise SettingsError(
        f"{path}: The file contains {CREATED_BY[type(stage).__name__][0]}, but {wanted} is required. Create it with "
        f"`{command}`."
    )


def _show_stage(target: Path, values: dict[str, Any], notes: tuple[Note, ...], json: bool) -> None:
    if json:
        print_json({"out": str(target), **values, "notes": [note.text for note in notes]})
        return
    show_title(target)
    print_pairs({name: f"{value:.5g}" if isinstance(value, float) else str(value) for name, value in values.items()})
    print_marked(note_lines(notes))

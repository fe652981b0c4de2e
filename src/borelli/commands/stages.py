"""The verbs `fit`, `pose`, `torques`, `energy` and `report`: the stages of `analyze`, one file in, one file out."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borelli.commands.analyze import (
    Cutoff,
    Height,
    Mass,
    Method,
    ModelFile,
    Plates,
    Sex,
    Start,
    Static,
    Stop,
)
from borelli.commands.console import err, print_json, print_marked, print_pairs, show_title
from borelli.commands.options import Force, Forces, Forward, Json, Skeleton, Units, Up, check_target
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from borelli.recording.recording import Note

Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write: .nc")]
HtmlOut = Annotated[Path, typer.Option("--out", "-o", help="Where to write: .html")]
ModelOut = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model: .toml .osim .xml")]


def fit(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Trials of one subject.")],
    target: ModelOut = Path("model.toml"),
    model: ModelFile = None,
    mass: Mass = None,
    height: Height = None,
    sex: Sex = None,
    static: Static = None,
    start: Start = -inf,
    stop: Stop = inf,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a model to recordings: segment lengths, joint places, marker places; write the model."""
    check_target(target, (*recordings, model, static), force=force)
    from borelli.analysis.fit.fit_model import fit_model
    from borelli.commands.compile_notice import compile_once
    from borelli.model.io import write_model
    from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, read_static, read_trial, size_notes

    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton}
    plan = AnalysisSettings(
        model=model, mass=mass, height=height, sex=sex, static=static, start=start, stop=stop, reading=reading
    )  # fmt: skip
    compile_once(*recordings, model, static, skeleton)
    with err.status("fitting"):
        trials = [read_trial(path, plan) for path in recordings]
        found = fit_model(generic_model(plan, trials[0]), trials, static=read_static(plan))
        lost = write_model(found.model, target)
    figures = {
        "out": str(target), "rms_mm": 1e3 * found.train_rms, "held_out_rms_mm": 1e3 * found.held_out_rms,
        "lengths_m": found.lengths, "lost": list(lost),
        "notes": [note.text for note in (*size_notes(plan, trials[0]), *found.notes)],
    }  # fmt: skip
    if json:
        print_json(figures)
        return
    show_title(target)
    print_pairs(
        {"markers": f"{figures['rms_mm']:.2f} mm rms, {figures['held_out_rms_mm']:.2f} mm in frames kept apart"}
    )
    _print_notes((*size_notes(plan, trials[0]), *found.notes))


def pose(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that wears the recording's markers.")],
    recording: Annotated[Path, typer.Argument(metavar="RECORDING")],
    target: Out = Path("motion.nc"),
    method: Method = "framewise",
    forces: Forces = None,
    start: Start = -inf,
    stop: Stop = inf,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Let a model follow a recording's markers; write the motion."""
    _check(target, (model, recording, forces), force)
    from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
    from borelli.commands.compile_notice import compile_once
    from borelli.export.stage_files import write_stage
    from borelli.model.io import read_model
    from borelli.pipeline.analysis_settings import AnalysisSettings, read_trial

    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton}
    compile_once(model, recording, forces, skeleton)
    with err.status("following the markers"):
        trial = read_trial(recording, AnalysisSettings(forces=forces, start=start, stop=stop, reading=reading))
        motion = inverse_kinematics(read_model(model), trial, method=method)
        write_stage(motion, target)
    worst = 1e3 * float(motion.data["marker_error"].max())
    told = {"out": str(target), "frames": motion.data.sizes["time"], "marker_rms_mm": 1e3 * motion.marker_rms}
    _tell(target, {**told, "marker_max_mm": worst}, motion.notes, json)


def torques(
    motion: Annotated[Path, typer.Argument(metavar="MOTION", help="What `borelli pose` wrote.")],
    target: Out = Path("torques.nc"),
    method: Annotated[str, typer.Option(help="smooth or stepped.")] = "newton_euler",
    plates: Plates = True,
    cutoff: Cutoff = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the torques of a motion, with measured or computed ground forces; write them."""
    _check(target, (motion,), force)
    from borelli.analysis.motion import Motion
    from borelli.commands.compile_notice import compile_once
    from borelli.export.stage_files import read_stage, write_stage
    from borelli.pipeline.analysis_settings import AnalysisSettings
    from borelli.pipeline.stages import compute_torques

    compile_once(motion)
    with err.status("finding torques"):
        read = _of(read_stage(motion), Motion, motion)
        found = compute_torques(read, AnalysisSettings(torque_method=method, plates=plates, cutoff=cutoff))
        write_stage(found, target)
    told = {
        "out": str(target), "ground_forces": found.grf_source,
        "residual_force_rms_n": found.residual_force_rms, "residual_moment_rms_nm": found.residual_moment_rms,
    }  # fmt: skip
    _tell(target, told, found.notes, json)


def energy(
    torques: Annotated[Path, typer.Argument(metavar="TORQUES", help="What `borelli torques` wrote.")],
    target: Out = Path("energy.nc"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Find power, work and energy; write them."""
    _check(target, (torques,), force)
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import compute_energy
    from borelli.export.stage_files import read_stage, write_stage

    with err.status("finding energy"):
        found = compute_energy(_of(read_stage(torques), Torques, torques))
        write_stage(found, target)
    _tell(target, {"out": str(target), **found.summary}, found.notes, json)


def report(
    energy: Annotated[Path, typer.Argument(metavar="ENERGY", help="What `borelli energy` or `analyze` wrote.")],
    target: HtmlOut = Path("report.html"),
    force: Force = False,
) -> None:
    """Draw the report of an analysis: one HTML file."""
    if target.suffix.lower() not in (".html", ".htm"):
        raise SettingsError(f"{target}: reports are HTML; end the name with .html")
    check_target(target, (energy,), force=force)
    from borelli.analysis.energetics.energy import Energy
    from borelli.export.stage_files import read_provenance, read_fit, read_stage
    from borelli.export.uncertainty_files import UNCERTAINTY_FILE, read_uncertainty
    from borelli.pipeline.stages import predict_grf_for_comparison
    from borelli.reports.report import write_report

    with err.status("drawing"):
        found = _of(read_stage(energy), Energy, energy)
        fitted = read_fit(energy.with_name("fit.nc"))
        about = {"file": energy.name}
        # bands that are beside it, if they are its own
        key, beside = read_provenance(energy).get("key"), energy.with_name(UNCERTAINTY_FILE)
        bands = read_uncertainty(beside) if key and read_provenance(beside).get("energy") == key else None
        contacts = predict_grf_for_comparison(found.torques)
        write_report(found, target, fit=fitted, contacts=contacts, bands=bands, about=about)
    show_title(target)


def _check(target: Path, sources: tuple[Path | None, ...], force: bool) -> None:
    if target.suffix.lower() != ".nc":
        raise SettingsError(f"{target}: a stage is written as netCDF; end the name with .nc")
    check_target(target, sources, force=force)


def _of(stage: Any, wanted: type, path: Path) -> Any:
    """The stage, if it is of that kind; or that which it was made from."""
    for found in (stage, getattr(stage, "torques", None), getattr(getattr(stage, "torques", stage), "motion", None)):
        if isinstance(found, wanted):
            return found
    kind = wanted.__name__.lower()
    read_provenance = {"motion": "pose"}.get(kind, kind)
    raise SettingsError(
        f"{path}: holds {type(stage).__name__.lower()}, and {kind} is needed: `borelli {read_provenance}` makes it"
    )


def _tell(target: Path, figures: dict[str, Any], notes: tuple[Note, ...], json: bool) -> None:
    if json:
        print_json({**figures, "notes": [note.text for note in notes]})
        return
    show_title(target)
    shown = {name: value for name, value in figures.items() if name != "out"}
    print_pairs({name: f"{value:.5g}" if isinstance(value, float) else str(value) for name, value in shown.items()})
    _print_notes(notes)


def _print_notes(notes: tuple[Note, ...]) -> None:
    print_marked([(note.kind if note.kind != "stated" else "note", note.text) for note in notes])

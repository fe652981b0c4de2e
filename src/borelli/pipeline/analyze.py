"""From recordings to a report: read, clean, fit, pose, torques, energy, bands, report, each stage's file in one folder.

Files appear whole or not at all, and stages whose file is there are not made again: see `resuming.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from borelli import __version__
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy, compute_energy
from borelli.analysis.fit.fit_model import Fit, fit_model
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError
from borelli.export.stage_files import read_provenance, to_json_values, read_fit, write_fit
from borelli.export.summary import summarize
from borelli.export.tables import write_tables
from borelli.export.uncertainty_files import UNCERTAINTY_FILE, AnalysisUncertainty, remove_uncertainty, write_uncertainty_tables
from borelli.files.atomic import remove_stale_temporaries, write_atomic
from borelli.kernels.source_hash import source_hash
from borelli.model.formats.native import model_to_text
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.pipeline.analysis_settings import (
    AnalysisSettings,
    generic_model,
    read_static,
    read_trial,
    size_notes,
    missing_marker_notes,
)
from borelli.pipeline.stages import predict_grf_for_comparison, compute_torques, mass_from_plates
from borelli.pipeline.resume import Progress, StageCache, file_hash, stage_key
from borelli.pipeline.uncertainty import load_or_compute_uncertainty, check_uncertainty_settings
from borelli.recording.recording import Note, Recording
from borelli.reports.report import write_report
from borelli.reports.report_warnings import report_warnings

if TYPE_CHECKING:
    from xarray import Dataset

FILES = ("static", "forces", "model")
"""Of a plan, beside the recordings."""
SHARES = {"read": 0.1, "fit": 0.35, "pose": 0.5, "torques": 0.8, "energy": 0.9, "report": 1.0}
"""Of the work without bands, when each stage has ended."""
RESULT_MODULES = tuple(make.__module__ for make in (read_trial, fit_model, inverse_kinematics, compute_torques))
"""Modules whose code, with all that they import, decides results."""
REPEAT = 0.05
"""What a repeat takes of all that work."""


@dataclass(frozen=True)
class Analysis:
    """What one recording gave.

    Attributes:
        energy: The last stage; the others are in it.
        fit: How the model was fitted; None: it was taken as it is.
        contacts: Forces of the feet computed from the motion, where plates measured them too.
        summary: The figures of `summary.json`.
        folder: Where the files are.
        loaded: Stages that were taken from earlier files.
        bands: How sure each output is; None: that was not asked for.
    """

    energy: Energy
    fit: Fit | None
    contacts: Dataset | None
    summary: Mapping[str, Any]
    folder: Path
    loaded: tuple[str, ...] = ()
    bands: AnalysisUncertainty | None = None


def analyze(
    recordings: Sequence[Path],
    folder: Path,
    plan: AnalysisSettings | None = None,
    progress: Progress = lambda what, share: None,
) -> tuple[Analysis, ...]:
    """Analyses recordings of one subject; each one's files go into the folder, of several into folders of their own.

    Args:
        recordings: Files.
        folder: Where results go; it is made if need be.
        plan: How.
        progress: Hears what is done.

    Raises:
        SettingsError: no recording, two of one name, one file of forces for several, or a setting that does not fit.
    """
    plan = plan or AnalysisSettings()
    if not recordings:
        raise SettingsError("no recording given: name at least one file")
    names = [path.stem for path in recordings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two recordings are called {twice!r}, and so would their folders; rename one")
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file, but results go into a folder: name another with --out")
    if plan.forces is not None and len(recordings) > 1:
        raise SettingsError(
            f"{plan.forces.name} holds the plates of one recording, but {len(recordings)} are given: analyse one at a "
            "time with --forces"
        )
    check_uncertainty_settings(plan.monte_carlo, plan.noise)
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale_temporaries(folder)
    seconds: dict[str, float] = {}
    start = perf_counter()
    progress("loading libraries", 0.0)
    _load_libraries()
    seconds["load"] = perf_counter() - start
    start = perf_counter()
    progress("reading", 0.0)
    trials = [read_trial(path, plan) for path in recordings]
    static = read_static(plan)
    seconds["read"] = perf_counter() - start
    ends = stage_ends(plan.monte_carlo)
    progress("fitting the body", ends["read"])
    inputs: dict[str, Any] = {"recordings": [file_hash(path) for path in recordings]}
    inputs |= {name: file_hash(path) for name in FILES if (path := getattr(plan, name)) is not None}
    model, fit, fitted = _fitted(trials, static, folder, plan, inputs)

    @cache
    def solved() -> Fit | None:
        """The fit with its solution, which its file does not hold: found again where it was loaded."""
        if fit is None or fit.solution is not None:
            return fit
        # of the mass that is in the file, which plates may have weighed
        return replace(fit_model(generic_model(plan, trials[0]), list(trials), static=static), model=fit.model)

    results = []
    for i, (path, trial) in enumerate(zip(recordings, trials, strict=True)):
        own = folder if len(recordings) == 1 else folder / path.stem
        own.mkdir(exist_ok=True)
        remove_stale_temporaries(own)

        def tell(what: str, share: float, i: int = i) -> None:
            first = ends["fit"]
            progress(what, first + (1.0 - first) * (i + (share - first) / (1.0 - first)) / len(recordings))

        source = {"file": path.name, "sha256": file_hash(path)}
        results.append(_analyzed(trial, model, fit, own, plan, fitted, {**seconds}, source, tell, solved))
    progress("done", 1.0)
    return tuple(results)


def result_hash() -> str:
    """Return the hash of all code and data that decide results."""
    return source_hash(*RESULT_MODULES)


def _load_libraries() -> None:
    """Load what the stages load when they first need it, so that their seconds are their own."""
    for name in ("scipy.interpolate", "scipy.signal", "xarray"):
        import_module(name)


def stage_ends(repeats: int) -> dict[str, float]:
    """Of the work, when each stage has ended."""
    rest = 1.0 / (1.0 + REPEAT * repeats)
    found = {stage: rest * share for stage, share in SHARES.items() if stage != "report"}
    return {**found, "bands": 1.0 - rest * (1.0 - SHARES["energy"]), "report": 1.0}


def _fitted(
    trials: Sequence[Recording],
    static: Recording | None,
    folder: Path,
    plan: AnalysisSettings,
    inputs: Mapping[str, Any],
) -> tuple[Model, Fit | None, dict[str, Any]]:
    """The model, how it was fitted, and the stage's key and seconds."""
    start = perf_counter()
    settings = {name: getattr(plan, name) for name in ("mass", "height", "sex", "fit", "start", "stop", "plates")}
    key = stage_key("fit", inputs, settings | {"reading": plan.reading}, code=result_hash())
    path = folder / "fit.nc"
    if plan.fit and read_provenance(path).get("key") == key:
        known = read_fit(path)
        if known is not None:
            return known.model, known, {**read_provenance(path), "loaded": True}
    model = generic_model(plan, trials[0])
    notes = size_notes(plan, trials[0])
    if not plan.fit:
        return model, None, {"key": key, "seconds": perf_counter() - start, "notes": notes}
    fit = fit_model(model, list(trials), static=static)
    guessed = next((note for note in notes if note.action == "--mass"), None)
    on_plates = [*trials, static] if static is not None else trials
    weighed = mass_from_plates(fit.model, on_plates) if guessed is not None and plan.plates else None
    if weighed is not None:
        said = (
            f"the subject's mass is not given: plates weigh {weighed[0]:.1f} kg over {weighed[1]:.2f} s, which is taken"
        )
        notes = (*(note for note in notes if note is not guessed), Note(said, "inferred", "--mass"))
        fit = replace(fit, model=scale_mass(fit.model, weighed[0]))
    fit = replace(fit, notes=(*notes, *fit.notes))
    about = {"key": key, "seconds": perf_counter() - start}
    write_fit(fit, path, about)
    write_atomic(model_to_text(fit.model), folder / "model.toml")
    return fit.model, fit, about


def _analyzed(
    trial: Recording,
    model: Model,
    fit: Fit | None,
    folder: Path,
    plan: AnalysisSettings,
    fitted: Mapping[str, Any],
    seconds: dict[str, float],
    source: Mapping[str, str],
    tell: Progress,
    solved: Callable[[], Fit | None],
) -> Analysis:
    """The stages from pose to report of one recording."""
    ends = stage_ends(plan.monte_carlo)
    seconds["fit"] = float(fitted["seconds"])
    settings = {"method": plan.torque_method, "plates": plan.plates, "cutoff": plan.cutoff}
    key = partial(stage_key, code=result_hash())
    keys = {"pose": key("pose", [fitted["key"], source["sha256"]], {"method": plan.method})}
    keys["torques"] = key("torques", keys["pose"], settings)
    keys["energy"] = key("energy", keys["torques"], {})
    stages = StageCache(folder, keys, seconds, tell, ["fit"] if fitted.get("loaded") else [])

    def make_motion() -> Motion:
        notes = tuple(fitted.get("notes", ())) if fit is None else fit.notes
        follow = partial(inverse_kinematics, model, trial, method=plan.method)
        motion: Motion = stages.timed("pose", "following the markers", ends["fit"], follow)
        return replace(motion, notes=(*notes, *motion.notes, *missing_marker_notes(motion)))

    def make_torques() -> Torques:
        motion = stages.stage("pose", "motion.nc", make_motion)
        found: Torques = stages.timed("torques", "finding torques", ends["pose"], partial(compute_torques, motion, plan))
        return found

    def make_energy() -> Energy:
        torques = stages.stage("torques", "torques.nc", make_torques)
        found: Energy = stages.timed("energy", "finding energy", ends["torques"], partial(compute_energy, torques))
        return found

    energy: Energy = stages.stage("energy", "energy.nc", make_energy)
    bands = None
    if plan.monte_carlo:

        def count(done: int) -> None:
            share = ends["energy"] + (ends["bands"] - ends["energy"]) * done / plan.monte_carlo
            tell(f"repeating: {done} of {plan.monte_carlo}", share)

        told = {"repeats": plan.monte_carlo, "noise": plan.noise}
        own = {
            "key": stage_key("bands", keys["energy"], told, code=source_hash(load_or_compute_uncertainty.__module__)),
            "energy": keys["energy"],
        }
        bands, seconds["bands"], known = load_or_compute_uncertainty(
            folder, own, energy, solved, repeats=plan.monte_carlo, noise=plan.noise, progress=count
        )
        stages.loaded.extend(["bands"] if known else [])
    elif read_provenance(folder / UNCERTAINTY_FILE).get("energy", keys["energy"]) != keys["energy"]:
        remove_uncertainty(folder)
    tell("writing the report", ends["bands"])
    start = perf_counter()
    contacts = predict_grf_for_comparison(energy.torques)
    about = {
        **source, "settings": to_json_values(asdict(plan)), "seconds": {**seconds},
        "version": __version__, "code": result_hash(),
    }  # fmt: skip
    write_tables(energy, folder)
    if bands is not None:
        write_uncertainty_tables(bands, folder)
    write_report(energy, folder / "report.html", fit=fit, contacts=contacts, bands=bands, about=about)
    seconds["report"] = perf_counter() - start
    warned = [warning.text for warning in report_warnings(energy)]
    warned += [note.text for note in bands.notes if note.kind == "problem"] if bands is not None else []
    summary = summarize(energy, fit=fit, contacts=contacts, bands=bands, seconds=seconds, warnings=warned)
    summary |= {**source, "loaded": stages.loaded}
    write_atomic(json.dumps(summary, indent=1, allow_nan=False) + "\n", folder / "summary.json")
    return Analysis(energy, fit, contacts, summary, folder, tuple(stages.loaded), bands)

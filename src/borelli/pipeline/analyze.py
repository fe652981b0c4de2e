"""Complete analysis: read, clean, fit, inverse kinematics, inverse dynamics, energy, uncertainty, report.

Each stage has its file in one folder. Files are written atomically; stages of earlier runs are reused (`resume.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from borelli import __version__
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy, compute_energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.ground.external_contact import check_contact_body
from borelli.analysis.motion import Motion
from borelli.analysis.muscle_forces import MuscleForces, muscle_forces
from borelli.errors import SettingsError
from borelli.export.gait_curves import gait_curves
from borelli.export.gait_tables import GAIT_FILES, write_gait_tables
from borelli.export.opensim_files import OPENSIM_FILES, write_opensim_files
from borelli.export.stage_files import load_fit, read_provenance, to_json_values, write_fit
from borelli.export.summary import summarize
from borelli.export.tables import MUSCLE_FILES, TABLE_FILES, write_tables
from borelli.export.uncertainty_files import (
    UNCERTAINTY_FILE,
    UNCERTAINTY_FILES,
    AnalysisUncertainty,
    write_uncertainty_tables,
)
from borelli.files.atomic import write_atomic
from borelli.files.html_repr import html_table
from borelli.files.inputs import protect_inputs
from borelli.files.results_folder import ResultsFolders, check_folder, results_folders
from borelli.kernels.source_hash import source_hash
from borelli.model.formats.native import model_to_text
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.people.human_muscles import add_muscles
from borelli.pipeline.analysis_settings import (
    PATHS,
    AnalysisSettings,
    CalibrationTrials,
    as_path,
    fit_subject,
    generic_model,
    missing_marker_notes,
    read_calibration,
    read_trial,
    size_notes,
)
from borelli.pipeline.blocks import remove_blocks
from borelli.pipeline.long_trial import analyze_long_trial, excerpt, is_long, keep_in_file, read_predicted_grf
from borelli.pipeline.opensim_recipe import apply_setups, scale_by_setup, scale_files
from borelli.pipeline.resume import Progress, StageCache, file_hash, is_damaged_stage, load_if_current, stage_key
from borelli.pipeline.stages import (
    StageSettings,
    check_one_piece,
    compute_torques,
    mass_from_plates,
    predict_grf_for_comparison,
    run_inverse_kinematics,
)
from borelli.pipeline.uncertainty import check_uncertainty_settings, load_or_compute_uncertainty
from borelli.recording.recording import Note, Recording
from borelli.reports.report import write_report
from borelli.reports.report_warnings import report_warnings

if TYPE_CHECKING:
    from xarray import Dataset

FIT_FILES = ("fit.nc", "model.toml")
STAGE_FILES = {"ik": "motion.nc", "id": "torques.nc", "muscles": "muscles.nc", "energy": "energy.nc"}
"""File of each stage after the fit."""
TRIAL_FILES = (
    *(STAGE_FILES[stage] for stage in ("ik", "id", "energy")), *TABLE_FILES, *GAIT_FILES, *OPENSIM_FILES, "report.html",
    "summary.json",
)  # fmt: skip
"""Files of each recording."""
STAGE_ENDS = {"read": 0.1, "fit": 0.35, "ik": 0.5, "id": 0.75, "muscles": 0.8, "energy": 0.9, "report": 1.0}
"""Fraction of the work done at the end of each stage, without Monte Carlo repeats."""
RESULT_MODULES = tuple(function.__module__ for function in (read_trial, compute_torques))
"""Modules whose code, with all that they import, determines the results."""
REPEAT_WORK = 0.05
"""Work of one Monte Carlo repeat as a fraction of the rest of the analysis."""


@dataclass(frozen=True, repr=False)
class Analysis:
    """Results of the analysis of one recording.

    Attributes:
        energy: Energy, with the torques and the motion it was computed from.
        fit: Fit of the model; None: the model was not fitted.
        predicted_grf: Ground reaction forces predicted from the motion where plates measured them too.
        summary: Content of `summary.json`.
        folder: Folder of the files.
        reused_stages: Stages that were read from files of an earlier run.
        uncertainty: Uncertainty of every output; None: not requested.
    """

    energy: Energy
    fit: Fit | None
    predicted_grf: Dataset | None
    summary: Mapping[str, Any]
    folder: Path
    reused_stages: tuple[str, ...] = ()
    uncertainty: AnalysisUncertainty | None = None

    def __repr__(self) -> str:
        values = self.summary
        error = values["marker_rms_mm"]
        return (
            f"<Analysis of {str(values['file'])[:200]!r}: {values['frames']} frames at {values['rate_hz']:g} Hz, "
            f"{values['mass_kg']:.1f} kg, marker error {'unknown' if error is None else f'{error:.1f} mm RMS'}, "
            f"ground reaction force: {values['grf_source']}, {len(values['warnings'])} warnings; "
            f"files in {str(self.folder)[-400:]!r}>"
        )

    def _repr_html_(self) -> str:
        """Return tables of the numbers in `summary.json`, and the summary of the energy, for notebooks."""
        numbers = [(k, v) for k, v in self.summary.items() if isinstance(v, int | float | str)]
        return html_table(f"Analysis of {self.summary['file']}", numbers) + self.energy._repr_html_()


@dataclass(frozen=True)
class _FittedModel:
    """Model of the subject and the result of the fit stage."""

    model: Model
    fit: Fit | None
    notes: tuple[Note, ...]
    key: str
    runtime: float
    reused: bool = False
    damaged: tuple[str, ...] = ()
    """Sentences on damaged files of earlier runs."""


def analyze(
    recordings: str | PathLike[str] | Sequence[str | PathLike[str]],
    folder: str | PathLike[str],
    settings: AnalysisSettings | None = None,
    progress: Progress = lambda task, done: None,
    *,
    overwrite: bool = False,
) -> tuple[Analysis, ...]:
    """Analyze recordings of one subject and write the results.

    Args:
        recordings: Path of a recording, or paths of several.
        folder: Folder for the results, created if needed; each of several recordings has its own folder inside.
        settings: Settings of the analysis.
        progress: Callback with the running task and the fraction of work done.
        overwrite: Replace files of the folder that have names of results, but are not results of an earlier analysis,
            or were edited. Inputs are never replaced.

    Returns:
        One analysis for each recording, in order.

    Raises:
        SettingsError: No recording, two of the same name, a setting that does not apply, a file that must not be
            replaced, or another analysis that is writing into the folder.

    Examples:
        >>> bo.write_recording(bo.synthetic_recording("walk").recording, "walk.c3d")
        >>> settings = bo.AnalysisSettings(mass=68.0, height=1.72, sex="female")
        >>> (analysis,) = bo.analyze("walk.c3d", "results", settings)
        >>> analysis.summary["grf_source"]
        'plates'
    """
    settings = AnalysisSettings() if settings is None else settings
    paths, folder = _check_arguments(recordings, folder, settings)
    settings = apply_setups(settings)
    folders = [folder] if len(paths) == 1 else [folder / path.stem for path in paths]
    files = (*TRIAL_FILES, *(UNCERTAINTY_FILES if settings.monte_carlo else ()))
    if settings.muscles:
        files = (*files, STAGE_FILES["muscles"], *MUSCLE_FILES)
    outputs: dict[Path, tuple[str, ...]] = {folder: FIT_FILES if settings.fit else ()}
    for own in folders:
        outputs[own] = (*outputs.get(own, ()), *files)
    read_too = (*(settings.reading.get(name) for name in ("skeleton", "markers")), *scale_files(settings))
    sources = (*paths, *(getattr(settings, name) for name in PATHS), *settings.functional, *read_too)
    with (
        protect_inputs(*sources),
        results_folders(outputs, "analyze", overwrite=overwrite, is_damaged=is_damaged_stage) as results,
    ):
        return _analyze(paths, folder, folders, settings, results, progress)


def _analyze(
    paths: Sequence[Path],
    folder: Path,
    folders: Sequence[Path],
    settings: AnalysisSettings,
    results: ResultsFolders,
    progress: Progress,
) -> tuple[Analysis, ...]:
    """Analyze recordings; the fit is written into `folder`, the results of each recording into one of `folders`."""
    runtime: dict[str, float] = {}
    start = perf_counter()
    progress("loading libraries", 0.0)
    _load_libraries()
    runtime["load"] = perf_counter() - start
    start = perf_counter()
    progress("reading recordings", 0.0)
    trials = [_read_trial(path, folder if len(paths) == 1 else folder / path.stem, settings) for path in paths]
    calibration = read_calibration(settings)
    runtime["read"] = perf_counter() - start
    ends = stage_ends(settings.monte_carlo)
    progress("fitting the model", ends["read"])
    sources = [{"file": path.name, "sha256": file_hash(path)} for path in paths]
    inputs: dict[str, Any] = {"recordings": [source["sha256"] for source in sources]}
    inputs |= {name: file_hash(path) for name in PATHS if (path := getattr(settings, name)) is not None}
    inputs["functional"] = [file_hash(path) for path in settings.functional]
    if settings.reading.get("markers") is not None:
        inputs["markers"] = file_hash(Path(settings.reading["markers"]))
    fit_key = _fit_key(settings, inputs)
    keys = [_stage_keys(fit_key, source["sha256"], settings) for source in sources]
    if settings.fit and read_provenance(folder / "fit.nc").get("key") == fit_key:
        results.keep(folder / name for name in FIT_FILES)
    for own, expected in zip(folders, keys, strict=True):
        results.keep(_reusable_stages(own, expected, settings))
    fitted = _fit_subject(trials, calibration, folder, settings, fit_key)
    runtime["fit"] = fitted.runtime

    @cache
    def get_fit() -> Fit | None:
        """Return the fit with its solution, which its file does not contain."""
        if fitted.fit is None or fitted.fit.solution is not None:
            return fitted.fit
        again = fit_subject(settings, trials, calibration)
        return replace(again, model=fitted.model)  # whose mass may come from the plates

    analyses = []
    for i, (own, trial, source) in enumerate(zip(folders, trials, sources, strict=True)):

        def report_progress(task: str, done: float, i: int = i) -> None:
            first = ends["fit"]
            progress(task, first + (1.0 - first) * (i + (done - first) / (1.0 - first)) / len(paths))

        reused = ["fit"] if fitted.reused else []
        stages = StageCache(own, keys[i], {**runtime}, report_progress, reused, list(fitted.damaged))
        analyses.append(_analyze_trial(trial, fitted, settings, source, stages, get_fit))
    progress("done", 1.0)
    return tuple(analyses)


def _read_trial(path: Path, folder: Path, settings: AnalysisSettings) -> Recording:
    """Return a trial; the recording of a long one stays in a file of its folder."""
    trial = read_trial(path, settings)
    return keep_in_file(trial, folder) if is_long(trial, settings) else trial


def _check_arguments(recordings: Any, folder: Any, settings: AnalysisSettings) -> tuple[list[Path], Path]:
    if not isinstance(settings, AnalysisSettings):
        raise SettingsError(f"settings: Expected AnalysisSettings, got {type(settings).__name__}.")
    if isinstance(recordings, str | PathLike):
        recordings = [recordings]
    if not isinstance(recordings, Sequence):
        raise SettingsError(f"recordings: Expected a path or a list of paths, got {type(recordings).__name__}.")
    paths, folder = [as_path(path, "recordings") for path in recordings], as_path(folder, "folder")
    if not paths:
        raise SettingsError("recordings: No recording is given. Pass at least one file.")
    names = [path.stem for path in paths]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise SettingsError(f"recordings: Two files are called {duplicate!r}, like the folders of results. Rename one.")
    check_folder(folder)
    if settings.forces is not None and len(paths) > 1:
        raise SettingsError(
            f"{settings.forces.name}: The plates of one file cannot belong to {len(paths)} recordings. Analyze one "
            "recording at a time with --forces."
        )
    check_uncertainty_settings(settings.monte_carlo, settings.marker_noise)
    return paths, folder


def result_hash() -> str:
    """Return the hash of all code and data that determine the results."""
    return source_hash(*RESULT_MODULES)


def _load_libraries() -> None:
    """Load the libraries that stages import on first use, so that no stage's run time includes it."""
    for name in ("scipy.interpolate", "scipy.signal", "xarray"):
        import_module(name)


def stage_ends(repeats: int) -> dict[str, float]:
    """Return the fraction of the work done at the end of each stage."""
    rest = 1.0 / (1.0 + REPEAT_WORK * repeats)
    ends = {stage: rest * end for stage, end in STAGE_ENDS.items() if stage != "report"}
    return {**ends, "uncertainty": 1.0 - rest * (1.0 - STAGE_ENDS["energy"]), "report": 1.0}


def _fit_key(settings: AnalysisSettings, inputs: Mapping[str, Any]) -> str:
    names = ("mass", "height", "sex", "fit", "start", "end", "plates", "ignore", "muscles")
    used = {name: getattr(settings, name) for name in (*names, "hip_regression", "knee_width", "ankle_width")}
    return stage_key("fit", inputs, used | {"reading": settings.reading}, code=result_hash())


def _stage_keys(fit_key: str, recording: str, settings: AnalysisSettings) -> dict[str, str]:
    """Return the keys of the stages after the fit, for the hash of a recording."""
    key = partial(stage_key, code=result_hash())
    keys = {"ik": key("ik", [fit_key, recording], {"method": settings.ik_method})}
    used = {
        name: getattr(settings, name)
        for name in ("id_method", "plates", "cutoff", "plate_cutoff", "contact", "reduce_residuals", "filter")
    }
    keys["id"] = key("id", keys["ik"], used)
    keys["muscles"] = key("muscles", keys["id"], {})
    keys["energy"] = key("energy", keys["muscles" if settings.muscles else "id"], {})
    return keys


def _reusable_stages(folder: Path, keys: Mapping[str, str], settings: AnalysisSettings) -> list[Path]:
    """Return the files of earlier stages with the same keys, and those of their uncertainty unless it is replaced."""
    files = {stage: folder / file for stage, file in STAGE_FILES.items()}
    reusable = [path for stage, path in files.items() if read_provenance(path).get("key") == keys[stage]]
    stored = read_provenance(folder / UNCERTAINTY_FILE)
    replaced = settings.monte_carlo and stored.get("key") != _uncertainty_key(keys["energy"], settings)
    if stored.get("energy") == keys["energy"] and not replaced:
        reusable += [folder / name for name in UNCERTAINTY_FILES]
    return reusable


def _uncertainty_key(energy_key: str, settings: AnalysisSettings) -> str:
    used = {"repeats": settings.monte_carlo, "marker_noise": settings.marker_noise}
    return stage_key("uncertainty", energy_key, used, code=source_hash(load_or_compute_uncertainty.__module__))


def _fit_subject(
    trials: Sequence[Recording], calibration: CalibrationTrials, folder: Path, settings: AnalysisSettings, key: str
) -> _FittedModel:
    """Fit the model to the trials, or read the fit of an earlier run."""
    start = perf_counter()
    path = folder / "fit.nc"
    damaged: list[str] = []
    stored = load_if_current(path, key, load_fit, damaged) if settings.fit else None
    if stored is not None:
        known, runtimes = stored
        write_atomic(model_to_text(known.model), folder / "model.toml")
        return _FittedModel(known.model, known, known.notes, key, runtimes["fit"], reused=True)
    notes = size_notes(settings, trials[0])
    if settings.scale_setup is not None:
        model, scaled = scale_by_setup(settings, calibration.static)
        return _FittedModel(_with_muscles(model, settings), None, scaled, key, perf_counter() - start)
    if not settings.fit:
        model = _with_muscles(generic_model(settings, trials[0]), settings)
        return _FittedModel(model, None, notes, key, perf_counter() - start)
    fit = fit_subject(settings, trials, calibration)
    if settings.plates and any(note.code == "mass_assumed" for note in notes):
        weighed = mass_from_plates(
            fit.model, [excerpt(one) for one in (*trials, calibration.static) if one is not None]
        )
        if weighed is not None:
            text = f"Body mass: {weighed[0]:.1f} kg, estimated from {weighed[1]:.2f} s on the force plates."
            others = (note for note in notes if note.code != "mass_assumed")
            notes = (*others, Note(text, "inferred", "--mass", code="mass_from_plates"))
            fit = replace(fit, model=scale_mass(fit.model, weighed[0]))
    fit = replace(fit, model=_with_muscles(fit.model, settings), notes=(*notes, *fit.notes))
    runtime = perf_counter() - start
    write_fit(fit, path, {"key": key, "runtime_s": runtime})
    write_atomic(model_to_text(fit.model), folder / "model.toml")
    return _FittedModel(fit.model, fit, fit.notes, key, runtime, damaged=tuple(damaged))


def _with_muscles(model: Model, settings: AnalysisSettings) -> Model:
    """Return the model, with muscles if they are requested and it has none."""
    if not settings.muscles or model.muscles:
        return model
    return add_muscles(model, height=settings.height)


def _analyze_trial(
    trial: Recording,
    fitted: _FittedModel,
    settings: AnalysisSettings,
    source: Mapping[str, str],
    stages: StageCache,
    get_fit: Callable[[], Fit | None],
) -> Analysis:
    """Run the stages after the fit on one recording and write its results."""
    ends, folder = stage_ends(settings.monte_carlo), stages.folder
    energy = _run_stages(trial, fitted, settings, stages, ends)
    uncertainty = _run_uncertainty(energy, settings, stages, ends, get_fit)
    stages.progress("writing the report", ends["uncertainty"])
    start = perf_counter()
    predicted = read_predicted_grf(folder) if is_long(trial, settings) else predict_grf_for_comparison(energy.torques)
    provenance = {
        **source, "settings": to_json_values(asdict(settings)), "runtime_s": {**stages.runtime},
        "version": __version__, "code": result_hash(),
    }  # fmt: skip
    gait = gait_curves(energy)
    write_tables(energy, folder)
    write_gait_tables(energy, gait, folder)
    unwritten = write_opensim_files(energy.torques, folder)
    if uncertainty is not None:
        write_uncertainty_tables(uncertainty, folder)
    write_report(
        energy, folder / "report.html", fit=fitted.fit, predicted_grf=predicted, uncertainty=uncertainty,
        provenance=provenance,
    )  # fmt: skip
    stages.runtime["report"] = perf_counter() - start
    warnings = [*stages.damaged, *unwritten, *(warning.text for warning in report_warnings(energy))]
    if uncertainty is not None:
        warnings += [note.text for note in uncertainty.notes if note.kind == "problem"]
    summary = summarize(
        energy, fit=fitted.fit, predicted_grf=predicted, uncertainty=uncertainty, runtime=stages.runtime,
        warnings=warnings, gait=gait,
    )  # fmt: skip
    summary |= {**source, "reused_stages": stages.reused}
    write_atomic(json.dumps(summary, indent=1, allow_nan=False) + "\n", folder / "summary.json")
    remove_blocks(folder)
    return Analysis(energy, fitted.fit, predicted, summary, folder, tuple(stages.reused), uncertainty)


def _run_stages(
    trial: Recording,
    fitted: _FittedModel,
    settings: AnalysisSettings,
    stages: StageCache,
    ends: Mapping[str, float],
) -> Energy:
    """Compute the energy of a trial and the stages before it, or read what earlier runs left."""
    check_contact_body(fitted.model, settings.contact)
    if is_long(trial, settings):
        if settings.muscles:
            raise SettingsError(
                f"--muscles: The trial has {trial.frames} frames, which are analyzed in blocks, and muscle forces "
                "are not. Analyze a part with --start and --end."
            )
        return analyze_long_trial(trial, fitted.model, fitted.notes, settings, stages, dict(ends))
    methods = f"{settings.ik_method} inverse kinematics with {settings.id_method} inverse dynamics"
    check_one_piece(trial.frames, 1, f"{methods.capitalize()} (--ik-method, --id-method)")

    def make_motion() -> Motion:
        stage = StageSettings(ik_method=settings.ik_method, ik_setup=settings.ik_setup)
        with stages.timed("ik", "inverse kinematics", ends["fit"]):
            motion = run_inverse_kinematics(trial, fitted.model, stage)
        return replace(motion, notes=(*fitted.notes, *motion.notes, *missing_marker_notes(motion)))

    def make_torques() -> Torques:
        motion = stages.load_or_compute("ik", STAGE_FILES["ik"], make_motion)
        with stages.timed("id", "inverse dynamics", ends["ik"]):
            return compute_torques(motion, settings)

    def make_muscles() -> MuscleForces:
        torques = stages.load_or_compute("id", STAGE_FILES["id"], make_torques)
        with stages.timed("muscles", "muscle forces", ends["id"]):
            return muscle_forces(torques)

    def make_energy() -> Energy:
        source: Torques | MuscleForces
        if settings.muscles:
            source = stages.load_or_compute("muscles", STAGE_FILES["muscles"], make_muscles)
        else:
            source = stages.load_or_compute("id", STAGE_FILES["id"], make_torques)
        with stages.timed("energy", "energetics", ends["muscles"]):
            return compute_energy(source)

    energy = stages.load_or_compute("energy", STAGE_FILES["energy"], make_energy)
    if not settings.reduce_residuals:  # which changes the motion
        stages.restore("ik", STAGE_FILES["ik"], energy.torques.motion)
    stages.restore("id", STAGE_FILES["id"], energy.torques)
    if energy.muscles is not None:
        stages.restore("muscles", STAGE_FILES["muscles"], energy.muscles)
    return energy


def _run_uncertainty(
    energy: Energy,
    settings: AnalysisSettings,
    stages: StageCache,
    ends: Mapping[str, float],
    get_fit: Callable[[], Fit | None],
) -> AnalysisUncertainty | None:
    """Compute the requested uncertainty, or read what an earlier run left."""
    folder, key, repeats = stages.folder, stages.keys["energy"], settings.monte_carlo
    if not repeats:
        return None

    def count(done: int) -> None:
        fraction = ends["energy"] + (ends["uncertainty"] - ends["energy"]) * done / repeats
        stages.progress(f"Monte Carlo repeats: {done} of {repeats}", fraction)

    provenance = {"key": _uncertainty_key(key, settings), "energy": key}
    uncertainty, stages.runtime["uncertainty"], reused = load_or_compute_uncertainty(
        folder,
        provenance,
        energy,
        get_fit,
        repeats=repeats,
        marker_noise=settings.marker_noise,
        progress=count,
        damaged=stages.damaged,
    )
    stages.reused.extend(["uncertainty"] if reused else [])
    return uncertainty

"""Monte Carlo uncertainty of a complete analysis: its stages repeated with all errors whose sizes are known.

These are marker noise, models of the fit, and `analysis.error_sources`: skin motion, masses, plates, the filter, and
what plates show of predicted ground reaction forces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.error_sources.error_sizes import ErrorSizes
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.inverse_kinematics import METHODS as IK_METHODS
from borelli.analysis.monte_carlo import MAX_NOISE, MonteCarloResult, check_repeats, monte_carlo
from borelli.analysis.strides import with_gait_events
from borelli.errors import SettingsError
from borelli.export.gait_curves import curve_dataset, gait_curves
from borelli.export.gait_profile import gait_values
from borelli.export.tables import table_dataset
from borelli.export.uncertainty_files import (
    UNCERTAINTY_FILE,
    AnalysisUncertainty,
    load_uncertainty,
    summary_values,
    write_uncertainty,
)
from borelli.numerics.vectors import Array
from borelli.pipeline.repeats import Repeats, default_errors, error_notes
from borelli.pipeline.resume import load_if_current
from borelli.pipeline.stages import check_one_piece
from borelli.recording.cleaning.marker_noise import marker_noise as estimate_marker_noise
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

SEED = 0
MAX_WORKERS = 4
"""Number of repeats that run in parallel; more would wait for the interpreter lock."""


def check_uncertainty_settings(repeats: int, marker_noise: float | None) -> None:
    """Raise SettingsError for too few repeats, noise out of range, or noise without repeats."""
    if repeats:
        check_repeats(repeats)
    elif marker_noise is not None:
        raise SettingsError("--marker-noise: No Monte Carlo repeats are requested. Add --monte-carlo N.")
    if marker_noise is not None and not 0.0 <= marker_noise < MAX_NOISE:
        raise SettingsError(
            f"--marker-noise: {1e3 * marker_noise:g} mm is out of range. Give 0 to {1e3 * MAX_NOISE:g} mm."
        )


def load_or_compute_uncertainty(
    folder: Path,
    provenance: Mapping[str, str],
    energy: Energy,
    get_fit: Callable[[], Fit | None],
    *,
    repeats: int,
    marker_noise: float | None,
    progress: Callable[[int], None],
    damaged: list[str],
) -> tuple[AnalysisUncertainty, float, bool]:
    """Read the uncertainty from its file if the key matches, or compute it and write the file.

    `provenance` has the `key` of the uncertainty and that of the `energy` it belongs to; `get_fit` returns the fit with
    its solution; `damaged` gets a sentence if the file is damaged. The result has the run time [s] and whether the
    file was read; other arguments as of
    `propagate_uncertainty`.
    """
    path = folder / UNCERTAINTY_FILE
    stored = load_if_current(path, provenance["key"], lambda file: load_uncertainty(file, energy), damaged)
    if stored is not None:
        return stored[0], stored[1]["uncertainty"], True
    start = perf_counter()
    progress(0)
    workers = min(MAX_WORKERS, os.cpu_count() or 1)
    check_one_piece(
        energy.torques.motion.data.sizes["time"], workers, "An analysis with Monte Carlo repeats (--monte-carlo)"
    )
    result = propagate_uncertainty(
        energy, repeats, fit=get_fit(), marker_noise=marker_noise, workers=workers, progress=progress
    )
    runtime = perf_counter() - start
    write_uncertainty(result, path, {**provenance, "runtime_s": runtime})
    return result, runtime, False


def propagate_uncertainty(
    energy: Energy,
    repeats: int,
    *,
    fit: Fit | None = None,
    marker_noise: float | None = None,
    errors: ErrorSizes | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> AnalysisUncertainty:
    """Compute the uncertainty of every output of an analysis by repeating it with errors of known size.

    Foot strikes stay those of the recording.

    Args:
        energy: Results of the analysis.
        repeats: Number of Monte Carlo repeats.
        fit: Fit of the model, from which models are drawn; None: the model is treated as exact.
        marker_noise: Standard deviation of marker noise along each axis [m]; None: estimated for each marker.
        errors: Sizes of the other errors; None: as published.
        workers: Number of repeats that run in parallel.
        progress: Callback with the number of finished repeats.

    Returns:
        Standard deviation and 95 % interval of every output.

    Raises:
        SettingsError: A setting is out of range, or the motion does not come from a recording's markers.
        BorelliError: More than half of the repeats failed.

    Examples:
        >>> reach = bo.synthetic_recording("reach")
        >>> torques = bo.inverse_dynamics(bo.inverse_kinematics(reach.model, reach.recording))
        >>> uncertainty = bo.propagate_uncertainty(bo.compute_energy(torques), repeats=3)
        >>> "torque_sd" in uncertainty.groups["torques"]
        True
    """
    torques, motion = energy.torques, energy.torques.motion
    if motion.recording is None or motion.settings.get("method") not in IK_METHODS:
        raise SettingsError(
            "The motion was not computed from markers of a recording, so that marker noise cannot be added. Compute it "
            "with `inverse_kinematics`."
        )
    recording = with_gait_events(motion.recording)
    if errors is None:
        errors = default_errors(motion)
    repeat = Repeats(energy, recording, errors, fit)
    reference = outputs(energy)
    estimated = marker_noise is None
    if marker_noise is None:
        noise = estimate_marker_noise(recording)
    else:
        noise = dict.fromkeys(recording.markers, float(marker_noise))
    result = monte_carlo(
        lambda *parts, **options: _flatten(outputs(repeat.run(*parts, **options))), recording, repeats, noise, SEED,
        models=repeat, vary=repeat.vary, value=_flatten(reference), workers=workers, progress=progress,
    )  # fmt: skip
    groups = {}
    for group, data in reference.items():
        value, sd, low, high = (_select(part, group) for part in (result.value, result.sd, result.low, result.high))
        groups[group] = MonteCarloResult(value, sd, low, high, result.repeats).to_dataset(data)
    notes = (
        _noise_note(noise, estimated), _model_note(fit is not None), *error_notes(errors, torques), *result.notes
    )  # fmt: skip
    return AnalysisUncertainty(groups, result.repeats, noise, not estimated, fit is not None, SEED, notes)


def outputs(energy: Energy) -> dict[str, Dataset]:
    """Return all numeric outputs of an analysis by group."""
    import xarray as xr

    gait = gait_curves(energy)
    values = summary_values(energy)
    values |= {f"gait.{name}": value for name, value in gait_values(gait).items() if not name.endswith("_sd")}
    return {
        "torques": _numeric(energy.torques.data),
        "energy": _numeric(energy.data),
        "summary": xr.Dataset({"value": ("metric", list(values.values()))}, {"metric": list(values)}),
        "curves": curve_dataset(gait),
        "tables": table_dataset(energy),
    }


def _numeric(data: Dataset) -> Dataset:
    return data[[name for name in data.data_vars if np.issubdtype(data[name].dtype, np.floating)]]


def _flatten(groups: Mapping[str, Dataset]) -> dict[str, Array]:
    return {f"{group}/{name}": data[name].values for group, data in groups.items() for name in data.data_vars}


def _select(values: Mapping[str, Array], group: str) -> dict[str, Array]:
    return {name.removeprefix(f"{group}/"): value for name, value in values.items() if name.startswith(f"{group}/")}


def _noise_note(noise: Mapping[str, float], estimated: bool) -> Note:
    millimeters = 1e3 * np.array(list(noise.values()))
    if not estimated:
        text = f"Uncertainty: marker noise of {millimeters[0]:g} mm along each axis, as specified."
        return Note(text, "stated", code="marker_noise")
    text = (
        f"Uncertainty: marker noise along each axis has a median of {np.median(millimeters):.2g} mm "
        f"({millimeters.min():.2g} to {millimeters.max():.2g} mm), estimated from frame-to-frame changes. Noise that "
        "earlier filtering removed is not included."
    )
    return Note(text, "inferred", "--marker-noise", code="marker_noise")


def _model_note(drawn: bool) -> Note:
    own = (
        "each repeat uses its own joint centers and marker offsets, drawn from the distribution of the fit (landmarks, "
        "regressions of the hips, skin motion)."
    )
    exact = "joint centers and marker offsets are treated as exact; their uncertainty is not included."
    return Note(f"Uncertainty: {own if drawn else exact}", "stated", code="model_uncertainty")

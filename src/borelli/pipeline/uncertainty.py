"""Bands on every output: poses, torques and energy found again on shaken markers, with models that the fit allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.dynamics.torques import inverse_dynamics
from borelli.analysis.energetics.energy import Energy, compute_energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.monte_carlo import MOST_NOISE, Array, MonteCarloResult, check_repeats, monte_carlo
from borelli.analysis.strides import with_gait_events
from borelli.errors import SettingsError
from borelli.export.stage_files import read_provenance
from borelli.export.tables import table_dataset
from borelli.export.uncertainty_files import UNCERTAINTY_FILE, AnalysisUncertainty, summary_values, read_uncertainty, write_uncertainty
from borelli.model.model import Model
from borelli.recording.cleaning.marker_noise import marker_noise
from borelli.recording.recording import Note, Recording
from borelli.reports.gait_curves import curve_dataset, gait_curves

if TYPE_CHECKING:
    from xarray import Dataset

SEED = 0
MOST_WORKERS = 4
"""Repeats that run side by side; more would wait for the interpreter."""


def check_uncertainty_settings(repeats: int, noise: float | None) -> None:
    """Refuses settings of bands that mean nothing, before anything is done.

    Raises:
        SettingsError: too few repeats, noise out of range, or noise without repeats.
    """
    if repeats:
        check_repeats(repeats)
    elif noise is not None:
        raise SettingsError("noise is stated, but no bands are asked for: give --monte-carlo N too")
    if noise is not None and not 0.0 <= noise < MOST_NOISE:
        raise SettingsError(f"noise is {1e3 * noise:g} mm, but must lie between 0 and {1e3 * MOST_NOISE:g} mm")


def load_or_compute_uncertainty(
    folder: Path,
    about: Mapping[str, str],
    energy: Energy,
    solved: Callable[[], Fit | None],
    *,
    repeats: int,
    noise: float | None,
    progress: Callable[[int], None],
) -> tuple[AnalysisUncertainty, float, bool]:
    """The bands, from their file if its key is that of `about`, or made; their seconds; and whether they were there.

    Args:
        folder: Where the file is, or is to be.
        about: What to keep in the file: the `key` of the bands, and that of the `energy` they belong to.
        energy: As for `propagate_uncertainty`.
        solved: Gives the fit with its solution.
        repeats: As for `propagate_uncertainty`.
        noise: As for `propagate_uncertainty`.
        progress: As for `propagate_uncertainty`.
    """
    path = folder / UNCERTAINTY_FILE
    known = read_provenance(path)
    if known.get("key") == about["key"]:
        found = read_uncertainty(path)
        if found is not None:
            return found, float(known["seconds"]), True
    start = perf_counter()
    progress(0)
    workers = min(MOST_WORKERS, os.cpu_count() or 1)
    found = propagate_uncertainty(energy, repeats, fit=solved(), noise=noise, workers=workers, progress=progress)
    seconds = perf_counter() - start
    write_uncertainty(found, path, {**about, "seconds": seconds})
    return found, seconds, False


def propagate_uncertainty(
    energy: Energy,
    repeats: int,
    *,
    fit: Fit | None = None,
    noise: float | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> AnalysisUncertainty:
    """How sure each output of an analysis is: it is done again with the same settings.

    Feet strike when they do in the recording, and plates push as they do there.

    Args:
        energy: The last stage, which holds the others.
        repeats: How often.
        fit: How the model was fitted; None: it is taken as certain.
        noise: Deviation [m] of markers along each axis; None: by marker, as much as they shake from frame to frame.
        workers: How many repeats run side by side.
        progress: Told how many are done.

    Raises:
        SettingsError: a setting is out of range, or the motion has no recording.
        BorelliError: more than half of the repeats failed.
    """
    torques, motion = energy.torques, energy.torques.motion
    if motion.recording is None:
        raise SettingsError("the motion has no recording, whose markers could be shaken")
    recording = with_gait_events(motion.recording)
    source = torques.grf_source

    def run(shaken: Recording, model: Model = motion.model) -> Mapping[str, Array]:
        moved = inverse_kinematics(model, shaken, method=motion.settings["method"])
        pushed = inverse_dynamics(
            moved, method=torques.settings["method"], forces=None if source == "none" else source,
            cutoff=torques.settings.get("cutoff_hz"),
        )  # fmt: skip
        return _flat(outputs(compute_energy(pushed)))

    like = outputs(energy)
    sizes = marker_noise(recording) if noise is None else dict.fromkeys(recording.markers, float(noise))
    band = monte_carlo(
        run, recording, repeats, sizes, SEED, models=fit, value=_flat(like), workers=workers, progress=progress
    )
    groups = {}
    for group, data in like.items():
        value, sd, low, high = (_of_group(values, group) for values in (band.value, band.sd, band.low, band.high))
        groups[group] = MonteCarloResult(value, sd, low, high, band.repeats).to_dataset(data)
    notes = [_noise_note(sizes, noise is not None), _model_note(fit is not None), *band.notes]
    if torques.on_plates:
        notes.append(Note("bands: the plates' forces are taken as they were measured, without noise", "stated"))
    return AnalysisUncertainty(groups, band.repeats, sizes, noise is not None, fit is not None, SEED, tuple(notes))


def outputs(energy: Energy) -> dict[str, Dataset]:
    """All that an analysis gives, by group: numbers that noise can change."""
    import xarray as xr

    torques = energy.torques
    figures = summary_values(energy)
    return {
        "torques": _numbers(torques.data),
        "energy": _numbers(energy.data),
        "summary": xr.Dataset({"value": ("figure", list(figures.values()))}, {"figure": list(figures)}),
        "curves": curve_dataset(gait_curves(energy)),
        "tables": table_dataset(energy),
    }


def _numbers(data: Dataset) -> Dataset:
    return data[[name for name in data.data_vars if np.issubdtype(data[name].dtype, np.floating)]]


def _flat(groups: Mapping[str, Dataset]) -> dict[str, Array]:
    return {f"{group}/{name}": data[name].values for group, data in groups.items() for name in data.data_vars}


def _of_group(values: Mapping[str, Array], group: str) -> dict[str, Array]:
    return {name.removeprefix(f"{group}/"): value for name, value in values.items() if name.startswith(f"{group}/")}


def _noise_note(sizes: Mapping[str, float], stated: bool) -> Note:
    millimetres = 1e3 * np.array(list(sizes.values()))
    if stated:
        return Note(f"bands: markers are shaken by {millimetres[0]:g} mm along each axis, as stated", "stated")
    said = (
        f"bands: markers are shaken along each axis as they are seen to shake from frame to frame, the middle one by "
        f"{np.median(millimetres):.2g} mm ({millimetres.min():.2g} to {millimetres.max():.2g}); what filters have "
        "taken away before, and skin that slides over bone, is not in it"
    )
    return Note(said, "inferred", "--noise")


def _model_note(drawn: bool) -> Note:
    if drawn:
        return Note("bands: each repeat has a model of its own, drawn from those that the fit allows", "stated")
    return Note("bands: the model is taken as it is, so that doubt about it is not in them", "stated")

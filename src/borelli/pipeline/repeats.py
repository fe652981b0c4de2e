"""Monte Carlo repeats of the stages of an analysis, each with its own errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.error_sources.error_sizes import ASSUMED_MASS_SD, ErrorSizes
from borelli.analysis.error_sources.force_plates import draw_plate_errors
from borelli.analysis.error_sources.segment_inertia import draw_inertia
from borelli.analysis.error_sources.soft_tissue import WALK_EXCURSION, SkinMotion
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.fit.skin_motion import SKIN_MOTION
from borelli.analysis.motion import Motion
from borelli.analysis.residual_reduction.reduce import unreduced_model
from borelli.model.model import Model
from borelli.pipeline.stages import StageSettings, run_stages, settings_of_results
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note, Recording, assign_values

MAX_CUTOFF_FRACTION = 0.45
"""Highest cutoff that is drawn, as a fraction of the frame rate; the Nyquist frequency is 0.5."""


def default_errors(motion: Motion) -> ErrorSizes:
    """Return the published sizes of errors, with that of an assumed body mass where the subject's is unknown."""
    assumed = any(note.code == "mass_assumed" for note in motion.notes)
    return ErrorSizes(body_mass=ASSUMED_MASS_SD) if assumed else ErrorSizes()


class Repeats:
    """Repeats of an analysis: models to draw, errors of the recording, and the stages themselves."""

    def __init__(self, energy: Energy, recording: Recording, errors: ErrorSizes, fit: Fit | None) -> None:
        """Prepare repeats of the results of an analysis of a recording, with models of a fit, if any."""
        motion = energy.torques.motion
        self.model = unreduced_model(motion.model, energy.torques.settings)
        self._errors, self._fit = errors, fit
        self._settings, self._rate = settings_of_results(energy), motion.rate
        self._skin = SkinMotion(motion, recording.markers) if errors.skin_motion else None

    def draw(self, random: np.random.Generator) -> Model:
        """Draw a model: joint centers and marker offsets from the fit, masses and inertias by their errors."""
        model = self.model if self._fit is None else self._fit.draw(random)
        return draw_inertia(model, self._errors, random)

    def vary(self, recording: Recording, random: np.random.Generator) -> tuple[Recording, Mapping[str, Any]]:
        """Draw errors of markers and plates, and return the recording with them and the other options of `run`."""
        if self._skin is not None:
            points = recording.data["marker_position"].values
            moved = points + self._errors.skin_motion * self._skin.draw(random)
            recording = assign_values(recording, {"marker_position": moved})
        recording = draw_plate_errors(recording, self._errors, random)
        factor = float(np.exp(self._errors.cutoff * random.uniform(-1.0, 1.0)))
        return recording, {"cutoff_factor": factor}

    def run(self, recording: Recording, model: Model, *, cutoff_factor: float = 1.0) -> Energy:
        """Run all stages, with a multiple of the cutoff."""
        return run_stages(recording, model, self._scale_cutoff(cutoff_factor))

    def _scale_cutoff(self, factor: float) -> StageSettings:
        settings = self._settings
        if factor == 1.0 or settings.filter == "none":
            return settings
        cutoff = min(factor * (settings.cutoff or CUTOFF), MAX_CUTOFF_FRACTION * self._rate)
        plates = None if settings.plate_cutoff is None else factor * settings.plate_cutoff
        return replace(settings, cutoff=cutoff, plate_cutoff=plates)


def error_notes(errors: ErrorSizes, torques: Torques) -> tuple[Note, ...]:
    """Return notes on the errors that are drawn, with size and source, and on those that are not."""
    included = []
    if errors.skin_motion:
        slide, turn = (errors.skin_motion * size / WALK_EXCURSION["thigh"] for size in SKIN_MOTION["thigh"])
        included.append((
            "skin_motion_uncertainty",
            f"skin moves on each segment with the angles of its joints, by {1e3 * slide:.0f} mm/rad and "
            f"{np.degrees(turn):.0f} degrees/rad on thighs and upper arms, half of it elsewhere (Benoit et al. "
            "2006, Barre et al. 2017, Bonci et al. 2014)",
        ))  # fmt: skip
    if errors.body_mass or errors.segment_mass or errors.center_of_mass or errors.gyration_radius:
        included.append((
            "mass_uncertainty",
            f"body mass errs by {100 * errors.body_mass:g} %, segment masses by {100 * errors.segment_mass:g} %, "
            f"centers of mass by {100 * errors.center_of_mass:g} % of segment length, radii of gyration by "
            f"{100 * errors.gyration_radius:g} % (Durkin and Dowling 2003, Rossi et al. 2013)",
        ))  # fmt: skip
    if torques.on_plates and (errors.plate_position or errors.plate_gain or errors.center_of_pressure):
        included.append((
            "plate_uncertainty",
            f"plates are {1e3 * errors.plate_position:g} mm off, forces err by {100 * errors.plate_gain:g} %, centers "
            f"of pressure have noise of {1e3 * errors.center_of_pressure:g} mm (Collins et al. 2009, Cappello et al. "
            "2011)",
        ))  # fmt: skip
    if errors.cutoff and torques.settings.get("filter") != "none":
        included.append((
            "filter_uncertainty",
            f"the cutoff of the low-pass filter varies by a factor of up to {np.exp(errors.cutoff):.2g} (Winter 2009)",
        ))  # fmt: skip
    missing = "the kinematic structure of the model (such as joints with one axis) and the times of foot strikes"
    if torques.grf_source not in ("plates", "none"):
        missing += "; nor, for predicted forces, how two feet share the load other than by the errors above"
    notes = [Note(f"Uncertainty: {text}.", "stated", code=code) for code, text in included]
    return (*notes, Note(f"Uncertainty: Not included are {missing}.", "stated", code="not_included"))

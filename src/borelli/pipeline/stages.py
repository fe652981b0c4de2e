"""Stages of an analysis: motion, torques and energy as functions of a recording, a model and settings.

`analyze`, its Monte Carlo repeats and the stage commands all run these functions, so that every interval belongs to the
quantity it is reported for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy, compute_energy
from borelli.analysis.ground.external_contact import check_contact_body
from borelli.analysis.ground.off_plate_steps import SOURCE as PLATES_AND_PREDICTED
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.inverse_dynamics import METHODS as ID_METHODS
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import METHODS as IK_METHODS
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import Motion
from borelli.errors import BorelliError, SettingsError
from borelli.files.memory import check_memory
from borelli.model.model import Model
from borelli.people.partial import is_partial
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.filter_effects import add_filter_effects, mismatch_notes
from borelli.pipeline.opensim_recipe import external_loads, ik_options
from borelli.recording.cleaning.task_cutoff import LOW_CUTOFF, low_cutoff_notes, task_cutoff
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset


FRAME_BYTES = 160_000.0
"""Memory [bytes] for each frame of a trial that is analyzed in one piece: measured on `human()` with 60 markers."""


MIN_PULL, MIN_PULLED_FRACTION = 0.5, 0.1
"""Downward residual force, in body weights, and the fraction of frames with it, that no error of poses explains."""


@dataclass(frozen=True)
class StageSettings:
    """Methods and filters of the stages, with every choice made.

    Attributes:
        ik_method: Inverse kinematics method.
        id_method: Inverse dynamics method.
        forces: Source of ground reaction forces, as in `inverse_dynamics`; None: no ground reaction force.
        filter: Low-pass filter of the coordinates, as in `inverse_dynamics`.
        cutoff: Cutoff of that filter [Hz]; None: by the task.
        plate_cutoff: Low-pass cutoff of measured forces [Hz]; 0: no filter; None: as `inverse_dynamics` chooses.
        contact: Body on which support without a plate is estimated; None: it is only reported.
        reduce_residuals: Reduce residuals, as in `inverse_dynamics`.
        ik_setup: OpenSim's setup of inverse kinematics; None: marker weights and springs of `inverse_kinematics`.
        external_loads: OpenSim's external loads and the table of their forces; None: plates are assigned to feet.
    """

    ik_method: str = IK_METHODS[0]
    id_method: str = ID_METHODS[0]
    forces: str | None = None
    filter: str = "default"
    cutoff: float | None = None
    plate_cutoff: float | None = None
    contact: str | None = None
    reduce_residuals: bool = False
    ik_setup: Path | None = None
    external_loads: tuple[Path, Path] | None = None


def settings_of_results(energy: Energy) -> StageSettings:
    """Return the settings that reproduce the results of an analysis."""
    torques, motion = energy.torques, energy.torques.motion
    used, source = torques.settings, torques.grf_source
    return StageSettings(
        motion.settings["method"], used["method"], used.get("forces", None if source == "none" else source),
        used["filter"], used["cutoff_hz"], used.get("plate_cutoff_hz") or 0.0, used.get("contact"),
        "residual_reduction" in used, Path(setup) if (setup := motion.settings.get("ik_setup")) else None,
        (Path(loads[0]), Path(loads[1])) if (loads := used.get("external_loads")) else None,
    )  # fmt: skip


def check_one_piece(frames: int, copies: int, what: str) -> None:
    """Refuse an analysis of all frames at once, several at a time, that needs more memory than is available."""
    check_memory(
        FRAME_BYTES * frames * copies, f"{what} for {frames} frames",
        "Analyze a part with --start and --end, or only with the default methods, which work in blocks.",
    )  # fmt: skip


def run_stages(recording: Recording, model: Model, settings: StageSettings) -> Energy:
    """Run inverse kinematics, inverse dynamics and energetics on a recording."""
    return compute_energy(run_inverse_dynamics(run_inverse_kinematics(recording, model, settings), settings))


def run_inverse_kinematics(recording: Recording, model: Model, settings: StageSettings) -> Motion:
    """Compute the motion of a model from a recording's markers."""
    motion = inverse_kinematics(model, recording, method=settings.ik_method, **ik_options(model, settings.ik_setup))
    if settings.ik_setup is None:
        return motion
    return replace(motion, settings={**motion.settings, "ik_setup": str(settings.ik_setup)})


def run_inverse_dynamics(motion: Motion, settings: StageSettings) -> Torques:
    """Compute the torques of a motion; the requested source of forces is kept in their settings."""
    forces: str | Loads | None = settings.forces
    if settings.external_loads is not None:
        forces = external_loads(*settings.external_loads)
    torques = inverse_dynamics(
        motion, method=settings.id_method, forces=forces, filter=settings.filter, cutoff=settings.cutoff,
        plate_cutoff=settings.plate_cutoff, contact=settings.contact,
        residual="reduce" if settings.reduce_residuals else None,
    )  # fmt: skip
    used = {**torques.settings, "forces": settings.forces}
    if settings.external_loads is not None:
        used["external_loads"] = [str(path) for path in settings.external_loads]
    return replace(torques, settings=used)


def compute_torques(motion: Motion, settings: AnalysisSettings) -> Torques:
    """Compute the torques of a motion with the best ground reaction forces available.

    These are measured forces, completed by predicted ones for steps off the plates; predicted forces where there are no
    plates; and none where prediction fails, such as for a model without feet.
    """
    check_contact_body(motion.model, settings.contact)
    chosen, notes = choose_settings(motion.recording, settings)
    if is_partial(motion.model):
        chosen = replace(chosen, forces="plates" if chosen.forces == PLATES_AND_PREDICTED else None, filter="default")
    try:
        torques = run_inverse_dynamics(motion, chosen)
    except BorelliError as error:
        chosen, note = without_prediction(chosen, error)
        torques, notes = run_inverse_dynamics(motion, chosen), (note, *notes)

    def run(cutoff: float) -> Torques:
        return run_inverse_dynamics(motion, replace(chosen, cutoff=cutoff, plate_cutoff=cutoff))

    notes = add_filter_effects(torques, notes, task_cutoff(motion.recording)[0], run)
    own = tuple(note for note in torques.notes if note.code != LOW_CUTOFF)  # stated with its effect
    return replace(torques, notes=(*own, *notes, *falling_notes(torques)))


def falling_notes(torques: Torques) -> tuple[Note, ...]:
    """Return a note if a body without plates falls faster than gravity allows in many frames."""
    if torques.grf_source != "predicted":
        return ()
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    pull = -torques.data["residual_force"].values[:, 2] / weight  # the ground supplies all that pushes up
    frames = float((pull > MIN_PULL).mean())
    if frames < MIN_PULLED_FRACTION:
        return ()
    text = (
        f"In {100.0 * frames:.0f} % of frames the body falls faster than gravity allows: something would have to pull "
        f"it down with up to {pull.max():.1f} body weights. The frame rate or the length unit of the file is probably "
        "wrong."
    )
    return (Note(text, "problem", "check the rate, and --units", code="faster_than_gravity"),)


def choose_settings(recording: Recording | None, settings: AnalysisSettings) -> tuple[StageSettings, tuple[Note, ...]]:
    """Return the methods and filters with the best ground reaction forces of a recording, and notes on them."""
    measured = settings.plates and recording is not None and "ground_reaction_force" in recording.data
    cutoff, evidence = task_cutoff(recording)
    notes: tuple[Note, ...] = (evidence,)
    if settings.cutoff is not None:
        notes = low_cutoff_notes(settings.cutoff, cutoff, evidence)
        cutoff = settings.cutoff
    preset = settings.filter or "default"
    plate_cutoff = 0.0 if preset == "opensim" and settings.plate_cutoff is None else settings.plate_cutoff
    if preset == "none":
        cutoff, notes = 0.0, ()
    chosen = StageSettings(
        id_method=settings.id_method, filter=preset, cutoff=cutoff or None, plate_cutoff=plate_cutoff
    )
    measured = measured or settings.external_loads is not None
    if measured and plate_cutoff not in (None, cutoff):
        notes += mismatch_notes(cutoff, plate_cutoff)
    # predicted forces need accelerations at the ends of the motion, which the preset "strides" estimates
    predicted = replace(chosen, forces="predicted", filter=settings.filter or "strides")
    if measured:
        chosen = replace(chosen, reduce_residuals=settings.reduce_residuals)
        if settings.external_loads is not None:
            if settings.forces is None:
                raise SettingsError(f"{settings.external_loads.name}: Pass the table of its forces with --forces.")
            return replace(chosen, forces="plates", external_loads=(settings.external_loads, settings.forces)), notes
        return replace(chosen, forces=PLATES_AND_PREDICTED, contact=settings.contact), notes
    if settings.reduce_residuals:
        raise SettingsError(
            "--reduce-residuals: No foot is on a force plate, and predicted forces have the residual that the "
            "prediction leaves. Use a recording with force plates."
        )
    if settings.contact is not None:
        raise SettingsError(
            f"--contact {settings.contact}: No foot is on a force plate, so that the support of this body cannot be "
            "separated from that of the feet. Use a recording with force plates, or omit --contact."
        )
    return predicted, notes


def without_prediction(chosen: StageSettings, error: BorelliError) -> tuple[StageSettings, Note]:
    """Return the settings without predicted forces, which an error prevents, and a note on it."""
    if chosen.forces == PLATES_AND_PREDICTED:
        text = f"Steps off the plates have no ground reaction force, since it cannot be predicted: {error}"
        note = Note(text, "problem", "Use frames with complete ground reaction force only.", code="grf_incomplete")
        return replace(chosen, forces="plates", contact=None), note
    text = f"Ground reaction forces are neither measured nor predicted; residuals contain them: {error}"
    note = Note(text, "problem", "Record force plates.", code="grf_unavailable")
    return replace(chosen, forces=None, filter="default"), note


def predict_grf_for_comparison(torques: Torques) -> Dataset | None:
    """Predict ground reaction forces that plates measured too; None without plates, or if they cannot be predicted."""
    if not torques.on_plates or is_partial(torques.motion.model):
        return None
    try:
        cutoff = torques.settings.get("cutoff_hz")
        return predict_grf(torques.motion, differentiate(torques.motion, filter="strides", cutoff=cutoff))
    except BorelliError:
        return None


def mass_from_plates(model: Model, trials: Sequence[Recording]) -> tuple[float, float] | None:
    """Return body mass from force plates [kg] and the longest time of a trial over which it was averaged [s]."""
    best: tuple[float, float] | None = None
    for trial in trials:
        if "ground_reaction_force" in trial.data:
            settings = StageSettings(forces="plates")
            attrs = run_inverse_dynamics(run_inverse_kinematics(trial, model, settings), settings).data.attrs
            if attrs["plate_mass_kg"] > 0.0 and (best is None or attrs["weighed_s"] > best[1]):
                best = (float(attrs["plate_mass_kg"]), float(attrs["weighed_s"]))
    return best

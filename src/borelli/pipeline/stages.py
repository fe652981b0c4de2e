"""Which forces of the ground an analysis takes: measured, computed from the motion, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from borelli.analysis.dynamics.torques import Torques, inverse_dynamics
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.errors import BorelliError
from borelli.model.model import Model
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.recording.cleaning.filtering import step_cutoff
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset


def compute_torques(motion: Motion, plan: AnalysisSettings) -> Torques:
    """Torques with the plates' forces, where there are any and they are wanted, else, or beside them, computed ones."""
    has_plates = motion.recording is not None and "ground_reaction_force" in motion.recording.data
    measured = plan.plates and has_plates
    if plan.cutoff is None and measured and motion.recording is not None:
        cutoff, note = step_cutoff(motion.recording)
        if note is not None:
            found = compute_torques(motion, replace(plan, cutoff=cutoff))
            return replace(found, notes=(*found.notes, note))
    forces, ends = ("plates and predicted", "default") if measured else ("contacts", "strides")
    try:
        return inverse_dynamics(motion, method=plan.torque_method, forces=forces, filter=ends, cutoff=plan.cutoff)
    except BorelliError as error:
        if measured:  # such as a model without soles, which has contacts nowhere
            found = inverse_dynamics(motion, method=plan.torque_method, forces="plates", cutoff=plan.cutoff)
            said = f"steps beside the plates are not filled in: {error}"
            return replace(found, notes=(*found.notes, Note(said, "problem", "look at frames that are covered")))
        found = inverse_dynamics(motion, method=plan.torque_method, forces=None, cutoff=plan.cutoff)
        said = f"no forces of the ground are known, so all of its part is residual: {error}"
        return replace(found, notes=(*found.notes, Note(said, "problem", "record plates")))


def predict_grf_for_comparison(torques: Torques) -> Dataset | None:
    """Forces of the feet computed from the motion, where plates measured them; None where that cannot be done."""
    if not torques.on_plates:
        return None
    try:
        cutoff = torques.settings.get("cutoff_hz")
        return predict_grf(torques.motion, differentiate(torques.motion, filter="strides", cutoff=cutoff))
    except BorelliError:
        return None


def mass_from_plates(model: Model, trials: Sequence[Recording]) -> tuple[float, float] | None:
    """Mass [kg] that the plates of the trials find, and for how long [s] they weighed it; None where they do not."""
    best: tuple[float, float] | None = None
    for trial in trials:
        if "ground_reaction_force" in trial.data:
            attrs = inverse_dynamics(inverse_kinematics(model, trial), forces="plates").data.attrs
            if attrs["plate_mass_kg"] > 0.0 and (best is None or attrs["weighed_s"] > best[1]):
                best = (float(attrs["plate_mass_kg"]), float(attrs["weighed_s"]))
    return best

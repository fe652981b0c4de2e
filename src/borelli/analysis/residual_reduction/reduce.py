"""Residual reduction for use: errors of plates and model first, then small changes of the motion.

1. A constant horizontal offset of the plates from the cameras: it explains a constant moment that would otherwise move
   the trunk's center of mass.
2. Segment masses and the trunk's center of mass, with the total mass that the plates weigh (`masses`).
3. Root translation and trunk angles in the frames in which plates record the full ground reaction force (`kinematics`).

Each step has bounds, and the price is reported next to the gain: marker error and the change of joint torques. A small
residual is no evidence of right joint centers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.residual_limits import Residuals, judge_residuals
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion, root_columns
from borelli.analysis.residual_reduction.kinematics import MAX_ROTATION, MAX_TRANSLATION, adjust_kinematics
from borelli.analysis.residual_reduction.masses import AdjustedMasses, adjust_masses
from borelli.errors import ModelError, SettingsError
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

Mask = NDArray[np.bool_]

LEG_WORDS = ("hip", "knee", "ankle", "subtalar", "mtp", "toe")
"""Words of the names of leg coordinates."""


@dataclass(frozen=True)
class ReductionBounds:
    """Bounds of residual reduction.

    Attributes:
        plate_offset: Of the plates along each horizontal axis [m]: what calibrations of plates and cameras differ by.
        mass: Relative change of a segment's mass.
        center: Displacement of the trunk's center of mass along each axis [m].
        translation: Displacement of the root along each axis [m].
        rotation: Change of each angle of the trunk [rad].
    """

    plate_offset: float = 0.01
    mass: float = 0.1
    center: float = 0.02
    translation: float = MAX_TRANSLATION
    rotation: float = MAX_ROTATION


@dataclass(frozen=True)
class Reduction:
    """What residual reduction found."""

    motion: Motion
    """Adjusted motion of the adjusted model."""
    plate_offset: tuple[float, float, float]
    """Displacement of the plates [m]."""
    masses: AdjustedMasses
    original: Model
    """Model before."""
    bounds: ReductionBounds


def reduce_residuals(motion: Motion, curves: Derivatives, loads: Loads | None, bounds: ReductionBounds) -> Reduction:
    """Find plate offset, masses and kinematics that reduce the residual within bounds.

    Args:
        motion: Motion of a model with a free root.
        curves: Its derivatives.
        loads: Measured loads, filtered like the motion.
        bounds: Bounds of what is changed.

    Raises:
        SettingsError: No frame has the full ground reaction force on plates.
        ModelError: The model has no free root.
    """
    model = motion.model
    if loads is None or loads.source != "plates":
        raise SettingsError("Residual reduction needs measured ground reaction forces. Use a recording with plates.")
    if not root_columns(model):
        raise ModelError(f"Model {model.name!r} has no free root, so it has no residual. Use a model with a free root.")
    first = newton_euler_torques(motion, curves, loads)
    used = np.asarray(first.data["grf_complete"].values, bool)
    if not used.any():
        raise SettingsError(
            "No frame has the full ground reaction force on plates, so that residuals cannot be reduced. Use a trial "
            "with complete steps on the plates."
        )
    weighed = float(first.data.attrs["plate_mass_kg"])
    if weighed > 0.0:  # moments per mass change with it, and the vertical force is as the plates weigh
        first = newton_euler_torques(
            replace(motion, model=scale_mass(model, weighed)), replace(curves, model=scale_mass(model, weighed)), loads
        )
    fitted = first.evaluated & used
    fitted = fitted if fitted.any() else used
    offset = find_plate_offset(first, fitted, curves, bounds.plate_offset)
    loads = loads.moved(offset)
    masses = adjust_masses(
        first.motion.model, curves, loads, fitted, max_change=bounds.mass, max_displacement=bounds.center
    )
    adjusted = adjust_kinematics(
        replace(motion, model=masses.model), loads, max_translation=bounds.translation, max_rotation=bounds.rotation,
        filter=curves.settings["filter"], cutoff=curves.settings["cutoff_hz"], used=used,
    )  # fmt: skip
    return Reduction(adjusted.motion, vector(offset), masses, model, bounds)


def find_plate_offset(torques: Torques, used: Mask, curves: Derivatives, bound: float) -> Array:
    """Return the horizontal displacement (3,) of the plates [m] that explains the residual moment, within a bound.

    Plates displaced by d add the moment d x F of their force F, which the residual loses.
    """
    from scipy.optimize import lsq_linear

    moment = torques.data["residual_moment"].values[used]
    force = torques.data["ground_reaction_force"].sum("foot").values[used]
    rows = np.stack([np.cross(axis, force) for axis in np.eye(3)[:2]], axis=-1)  # (frames, 3, 2)
    size = np.sqrt((moment**2).mean(axis=0)) + 1e-9
    independent = np.sqrt(min(1.0, 2.0 * (curves.settings["cutoff_hz"] or CUTOFF) / curves.rate))
    rows, right = (independent * part / size.reshape((3, 1) if part.ndim == 3 else 3) for part in (rows, moment))
    prior = np.diag([2.0 / bound] * 2)
    solved = lsq_linear(
        np.vstack([rows.reshape(-1, 2), prior]), np.concatenate([right.ravel(), np.zeros(2)]), (-bound, bound)
    )
    return np.array([*solved.x, 0.0])


def with_reduction(before: Torques, after: Torques, reduction: Reduction) -> Torques:
    """Return the torques after residual reduction, with a note on its gain and its price."""
    first, second = judge_residuals(before), judge_residuals(after)  # of each as its report states them
    known = "marker_error" in before.motion.data
    errors = [1e3 * torques.motion.marker_rms if known else float("nan") for torques in (before, after)]
    legs, others = _torque_changes(before, after, before.evaluated & after.evaluated)
    settings = {
        "plate_offset_m": list(reduction.plate_offset), "mass_changes": reduction.masses.changes,
        "center_displacement_m": {reduction.masses.trunk: [float(x) for x in reduction.masses.displacement]},
        "before": first._asdict(), "after": second._asdict(), "marker_rms_mm": errors,
        "leg_torque_change_nm_per_kg": legs, "other_torque_change_nm_per_kg": others,
    }  # fmt: skip
    stored = {"residual_reduction": settings, "original_bodies": _bodies(reduction.original)}
    note = Note(_text(reduction, first, second, errors, legs, others), "changed", "omit --reduce-residuals",
                code="residual_reduction")  # fmt: skip
    return replace(after, settings={**after.settings, **stored}, notes=(*after.notes, note))


def _text(
    reduction: Reduction, before: Residuals, after: Residuals, errors: list[float], legs: float, others: float
) -> str:
    """Return the gain and the price of a reduction in words."""
    x, y, _ = (1e3 * value for value in reduction.plate_offset)
    changes = [100.0 * value for value in reduction.masses.changes.values()]
    moved = 1e3 * float(np.linalg.norm(reduction.masses.displacement))
    price = f"marker error {errors[0]:.2f} to {errors[1]:.2f} mm RMS, " if np.isfinite(errors[0]) else ""
    bounds = reduction.bounds
    return (
        f"Residuals were reduced over {after.frames} frames with full ground reaction force: force "
        f"{before.force_rms:.1f} to {after.force_rms:.1f} N RMS (peak {before.force_peak:.0f} to "
        f"{after.force_peak:.0f}), moment {before.moment_rms:.1f} to {after.moment_rms:.1f} N m RMS (peak "
        f"{before.moment_peak:.0f} to {after.moment_peak:.0f}). Limits of Hicks et al. (2015): "
        f"{after.force_limit:.0f} N and {after.moment_limit:.1f} N m, {after.verdict()}. Changed: plates by "
        f"({x:.1f}, {y:.1f}) mm, segment masses by {min(changes):+.0f} to {max(changes):+.0f} % at a total of "
        f"{reduction.masses.model.mass:.1f} kg, the center of mass of {reduction.masses.trunk} by {moved:.0f} mm, the "
        f"root by up to {1e3 * bounds.translation:g} mm and the trunk by up to {np.degrees(bounds.rotation):.2g} "
        f"degrees. Price: {price}joint torques changed by up to {legs:.3f} (legs) and {others:.3f} (others) N m/kg RMS."
    )


def _torque_changes(before: Torques, after: Torques, frames: Mask) -> tuple[float, float]:
    """Return the largest RMS change of a joint torque of the legs, and of the others, per body mass [N m/kg]."""
    model = before.motion.model
    root = set(root_coordinates(model))
    largest = [0.0, 0.0]
    for i, coordinate in enumerate(model.coordinates):
        if coordinate.rotational and coordinate.name not in root:
            values = [one.data["torque"].values[frames, i] / one.motion.model.mass for one in (before, after)]
            change = float(np.sqrt(np.mean((values[1] - values[0]) ** 2)))
            kind = 0 if any(word in coordinate.name for word in LEG_WORDS) else 1
            largest[kind] = max(largest[kind], change)
    return largest[0], largest[1]


def _bodies(model: Model) -> dict[str, list[float]]:
    return {body.name: [body.mass, *body.center_of_mass, *np.ravel(body.inertia).tolist()] for body in model.bodies}


def unreduced_model(model: Model, settings: Mapping[str, Any]) -> Model:
    """Return the model before residual reduction, from the settings of its torques; else the model as it is."""
    known = settings.get("original_bodies")
    if known is None:
        return model
    bodies = []
    for body in model.bodies:
        mass, *rest = known[body.name]
        x, y, z = (vector(rest[i : i + 3]) for i in (3, 6, 9))
        bodies.append(replace(body, mass=mass, center_of_mass=vector(rest[:3]), inertia=(x, y, z)))
    return replace(model, bodies=tuple(bodies))

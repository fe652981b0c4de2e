"""Measured forces as soft measurements: each foot's row gives, by a stated doubt, for what the motion says against it.

Motion and plates seldom agree: what is left is a residual r on the root (force, and torque about its origin). Held by
rows in parallel, that of the root and those of the loaded feet, each as soft as its doubt squared, S0 and S_k, the
residual is shared as springs share a load. With A_k the wrench that a change x_k of foot k has on the root,

    x_k = S_k A_k^T W^-1 r,    what is left = S0 W^-1 r,    W = S0 + sum over feet A_k S_k A_k^T

which is also the most likely change if doubts are standard deviations. A foot without load has no doubt: nothing acts
on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import inverse_dynamics, root_body
from borelli.analysis.motion import Motion
from borelli.errors import ModelError, SettingsError
from borelli.recording.recording import MIN_PLATE_FORCE, Note

Array = NDArray[np.float64]

MOTION_FORCE, MOTION_TORQUE = 0.05, 0.01
"""Doubt in what the motion asks for: shares of body weight, and of body weight times 1 m. What Hicks et al. (2015) let
pass as residuals, their height of the centre of mass being about 1 m."""


def adjust_loads(
    motion: Motion,
    loads: Loads,
    *,
    force: float,
    point: float,
    filter: str = "default",
    cutoff: float | None = None,
) -> Loads:
    """The loads, changed within their doubt towards what the motion asks for.

    Args:
        motion: Of a model with masses and a root that moves freely.
        loads: What was measured.
        force: Doubt in each part of a foot's force [N].
        point: Doubt in its centre of pressure [m]; in its free moment, so much times the force.
        filter: Of the coordinates, as in `derivatives`.
        cutoff: Of the filter [Hz].

    Raises:
        SettingsError: a doubt is negative or not finite.
        ModelError: the model has no root that moves.
    """
    for name, value in (("force", force), ("point", point)):
        if not 0.0 <= value < np.inf:
            raise SettingsError(f"doubt in {name} is {value}; it must be a finite number, 0 or larger")
    root = root_body(motion.model)
    if root < 0:
        raise ModelError(f"model {motion.model.name!r} stands on the ground for good: it has no residual to share")
    data = inverse_dynamics(motion, forces=loads, filter=filter, cutoff=cutoff).data
    time = np.asarray(data["time"].values, dtype=float)
    residual = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    first = int(np.argmin(np.abs(motion.data["time"].values - time[0])))
    origin = motion.data["body_position"].values[first : first + len(time), root]
    now = loads.at(time)
    change, left = _shared(
        now, residual, origin, float(motion.model.mass * np.linalg.norm(motion.model.gravity)), force, point
    )
    before, after = ((_rms(part[:, :3]), _rms(part[:, 3:])) for part in (residual, left))
    said = Note(
        f"measured forces were changed by {_rms(change[..., :3]):.1f} N RMS, their doubt being {force:g} N and "
        f"{point:g} m: residual {before[0]:.1f} to {after[0]:.1f} N, {before[1]:.1f} to {after[1]:.1f} N m",
        "changed", "doubt=None",
    )  # fmt: skip
    return _changed(loads, time, change, (*loads.notes, said))


def _shared(
    now: Loads, residual: Array, origin: Array, weight: float, force: float, point: float
) -> tuple[Array, Array]:
    """(frames, loads, 6) changes of force and moment, and (frames, 6) what is left of the residual."""
    frames, count = len(residual), len(now.body)
    own = np.diag([(MOTION_FORCE * weight) ** 2] * 3 + [(MOTION_TORQUE * weight) ** 2] * 3)
    acts = np.zeros((frames, count, 6, 6))
    acts[..., range(6), range(6)] = 1.0
    arm = now.point - origin[:, None]
    # torque of a force at the point: arm x force
    for axis, unit in enumerate(np.eye(3)):
        acts[..., 3:, axis] = np.cross(arm, unit)
    normal = np.maximum(now.force[..., 2], 0.0)
    loaded = (normal > MIN_PLATE_FORCE)[..., None]
    doubt = np.concatenate([np.full((frames, count, 3), force), (point * normal)[..., None].repeat(3, -1)], axis=-1)
    soft = np.where(loaded, doubt, 0.0) ** 2
    whole = own + np.einsum("fkij,fkj,fklj->fil", acts, soft, acts)
    pull = np.linalg.solve(whole, residual[..., None])[..., 0]
    return soft * np.einsum("fkji,fj->fki", acts, pull), pull @ own


def _changed(loads: Loads, time: Array, change: Array, notes: tuple[Note, ...]) -> Loads:
    """The loads with the changes, those of moments about level axes told as shifts of the centre of pressure."""
    flat = change.reshape(len(time), -1)
    at = np.stack([np.interp(loads.time, time, column) for column in flat.T], axis=1)
    at = at.reshape(len(loads.time), *change.shape[1:])
    force, moment = loads.force + at[..., :3], at[..., 3:]
    firm = force[..., 2] > MIN_PLATE_FORCE
    normal = np.where(firm, force[..., 2], 1.0)
    shift = np.stack([-moment[..., 1] / normal, moment[..., 0] / normal, np.zeros_like(normal)], axis=-1)
    shift *= firm[..., None]
    rest = loads.moment + moment - np.cross(shift, force)
    point = np.where(np.isfinite(loads.point), loads.point + shift, loads.point)
    return replace(loads, force=force, point=point, moment=rest, notes=notes)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean((values**2).sum(axis=-1))))

"""Residual reduction by adjusting measured forces within their standard deviations.

Motion and plates seldom agree: the difference is a residual r on the root (force, and moment about its origin). It is
distributed to the root and the loaded feet in proportion to their variances, S0 and S_k, as parallel springs share a
load. With A_k the wrench on the root of a change x_k of foot k,

    x_k = S_k A_k^T W^-1 r,    remaining residual = S0 W^-1 r,    W = S0 + sum over feet A_k S_k A_k^T

which is the most likely change. A foot without load has no variance: nothing acts on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import newton_euler_torques, root_body
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import Motion
from borelli.errors import ModelError, SettingsError
from borelli.numerics.vectors import Array
from borelli.recording.recording import MIN_PLATE_FORCE, Note

MOTION_FORCE_SD, MOTION_MOMENT_SD = 0.05, 0.01
"""Standard deviation of the forces that the motion requires: fractions of body weight, and of body weight times 1 m:
the residuals that Hicks et al. (2015) accept, with a height of the center of mass of about 1 m."""


def adjust_loads(
    motion: Motion,
    loads: Loads,
    *,
    force_sd: float,
    point_sd: float,
    filter: str = "default",
    cutoff: float | None = None,
) -> Loads:
    """Adjust measured loads within their standard deviations towards what the motion requires.

    These are of each component of a foot's force [N] and of its center of pressure [m]; that of its free moment is
    `point_sd` times the force. Filter and cutoff are those of `differentiate`.
    """
    for name, value in (("force", force_sd), ("point", point_sd)):
        if not 0.0 <= value < np.inf:
            raise SettingsError(f"load_sd: The {name} has {value}. Pass a finite number, 0 or larger.")
    root = root_body(motion.model)
    if root < 0:
        raise ModelError(f"Model {motion.model.name!r} has no free root, so it has no residual. Use load_sd=None.")
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    loads = loads.matched(curves.settings)
    data = newton_euler_torques(motion, curves, loads).data
    time = np.asarray(data["time"].values, dtype=float)
    residual = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    first = int(np.argmin(np.abs(motion.data["time"].values - time[0])))
    origin = motion.data["body_position"].values[first : first + len(time), root]
    now = loads.at(time)
    weight = float(motion.model.mass * np.linalg.norm(motion.model.gravity))
    change, left = _distribute(now, residual, origin, weight, force_sd, point_sd)
    before, after = ((_rms(part[:, :3]), _rms(part[:, 3:])) for part in (residual, left))
    note = Note(
        f"Measured forces were changed by {_rms(change[..., :3]):.1f} N RMS within standard deviations of "
        f"{force_sd:g} N and {point_sd:g} m: residual {before[0]:.1f} to {after[0]:.1f} N, {before[1]:.1f} to "
        f"{after[1]:.1f} N m.",
        "changed", "load_sd=None", code="adjusted_loads",
    )  # fmt: skip
    return _add_changes(loads, time, change, (*loads.notes, note))


def _distribute(
    now: Loads, residual: Array, origin: Array, weight: float, force_sd: float, point_sd: float
) -> tuple[Array, Array]:
    """Return changes (frames, loads, 6) of force and moment, and the remaining residual (frames, 6)."""
    frames, count = len(residual), len(now.body)
    own = np.diag([(MOTION_FORCE_SD * weight) ** 2] * 3 + [(MOTION_MOMENT_SD * weight) ** 2] * 3)
    wrench_maps = np.zeros((frames, count, 6, 6))
    wrench_maps[..., range(6), range(6)] = 1.0
    arm = now.point - origin[:, None]
    # torque of a force at the point: arm x force
    for axis, unit in enumerate(np.eye(3)):
        wrench_maps[..., 3:, axis] = np.cross(arm, unit)
    normal = np.maximum(now.force[..., 2], 0.0)
    loaded = (normal > MIN_PLATE_FORCE)[..., None]
    of_moment = (point_sd * normal)[..., None].repeat(3, -1)
    sd = np.concatenate([np.full((frames, count, 3), force_sd), of_moment], axis=-1)
    variance = np.where(loaded, sd, 0.0) ** 2
    total = own + np.einsum("fkij,fkj,fklj->fil", wrench_maps, variance, wrench_maps)
    solved = np.linalg.solve(total, residual[..., None])[..., 0]
    return variance * np.einsum("fkji,fj->fki", wrench_maps, solved), solved @ own


def _add_changes(loads: Loads, time: Array, change: Array, notes: tuple[Note, ...]) -> Loads:
    """Add changes to the loads; moments about horizontal axes become displacements of the center of pressure."""
    flat = change.reshape(len(time), -1)
    at = np.stack([np.interp(loads.time, time, column) for column in flat.T], axis=1)
    at = at.reshape(len(loads.time), *change.shape[1:])
    force, moment = loads.force + at[..., :3], at[..., 3:]
    pressed = force[..., 2] > MIN_PLATE_FORCE
    normal = np.where(pressed, force[..., 2], 1.0)
    displacement = np.stack([-moment[..., 1] / normal, moment[..., 0] / normal, np.zeros_like(normal)], axis=-1)
    displacement *= pressed[..., None]
    rest = loads.moment + moment - np.cross(displacement, force)
    point = np.where(np.isfinite(loads.point), loads.point + displacement, loads.point)
    return replace(loads, force=force, point=point, moment=rest, notes=notes)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean((values**2).sum(axis=-1))))

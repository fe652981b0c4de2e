"""Ground forces without plates: what the feet must push so that the motion can be as it was.

Inverse dynamics without ground says what wrench the body needs from outside and what torques its joints would need.
Under each foot are five points (see `ground_soles`), each of which may push within its friction cone, the more readily
the surer it stands on the ground (see `ground_contact`). Per frame, one least squares finds the pushes

    minimize |D (W - W(f))|^2 + |tau - tau(f)|^2 + sum (rho / c^2) |f_p|^2     f_p in its cone

The wrench must fit, joint torques should be small, and points that hardly touch are dear. The last term makes the
answer the only one, and as continuous in time as the motion and its contacts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.analysis.derivatives import Derivatives, derivatives
from borelli.analysis.ground_contact import UNHELD, contact_weights, find_belt, find_steps, ground_levels
from borelli.analysis.ground_rows import Rows, find_rows
from borelli.analysis.ground_soles import FEET, POINTS, Soles, find_soles
from borelli.analysis.motion import AXES, Motion
from borelli.errors import SettingsError
from borelli.recording.recording import LAB, LOADED
from borelli.reduced.support import find_support, make_room

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

RELUCTANCE = 0.25
"""Rho: what 1 N of a surely standing point costs, against 1 N m of joint torque, both squared."""
SLANT = 0.57
"""1 N along the ground costs as much as 1 N / SLANT upward."""
LEAST_CONTACT = 1e-3
"""Points that stand less surely bear nothing."""


def ground_forces(
    motion: Motion, curves: Derivatives | None = None, *, friction: float = 0.8, belt: ArrayLike | None = None
) -> Dataset:
    """The forces of the ground on each foot, found from the motion alone.

    Args:
        motion: Of a model with feet and masses.
        curves: Its derivatives, filtered as the motion deserves; None: at 6 Hz, which is right for walking.
        friction: Coulomb coefficient between sole and ground.
        belt: Velocity (x, y) or (x, y, z) of the ground [m/s], lab axes; None: found, treadmill or not.

    Returns:
        By time, in lab axes: `foot_force` [N] on the body, `foot_center_of_pressure` [m] (not a number below 20 N) and
        `foot_free_moment` [N m] of each foot; `sole_force` [N], `sole_position` [m] and `contact` (0 to 1) of each
        point of the soles; `missing_force` [N] and `missing_moment` [N m], about the centre of mass: what the motion
        needs and the ground cannot give; and `belt_velocity` [m/s].

    Raises:
        ModelError: the model has no feet to stand on.
        SettingsError: the friction or the belt is no such thing.
    """
    if not 0.0 < friction < np.inf:
        raise SettingsError(f"friction is {friction}, but must be positive; 0.8 is usual for a shoe")
    curves = curves or derivatives(motion)
    model = motion.model
    soles = find_soles(model)
    rows = find_rows(model, soles, curves.coordinates, curves.speeds, curves.accelerations)
    level = ground_levels(rows.place)
    height = rows.place[..., 2] - level
    moving = find_belt(height, rows.velocity) if belt is None else _belt(belt)
    contact = contact_weights(height, rows.velocity, moving)
    force, missing = solve_support(rows, contact, friction)
    unheld = missing[:, 2] > UNHELD * model.mass * float(np.linalg.norm(model.gravity))
    lift = find_steps(height, rows.velocity, moving, unheld, curves.rate, len(FEET))[:, soles.foot]
    if lift.any():
        contact = contact_weights(height - lift, rows.velocity, moving)
        force, missing = solve_support(rows, contact, friction)
    return _dataset(curves.time, soles, rows, level + lift, moving, contact, force, missing)


def solve_support(rows: Rows, contact: Array, friction: float) -> tuple[Array, Array]:
    """Forces (frames, points, 3) [N] of the points, and the wrench (frames, 6) that is still missing at the root."""
    frames, count = contact.shape
    cheap = np.array([SLANT, SLANT, 1.0])  # forces are counted in units in which all directions cost alike
    does = np.ascontiguousarray((rows.rows * cheap).reshape(frames, -1, 3 * count))
    ridge = RELUCTANCE / np.maximum(contact, 1e-9) ** 2
    force, steps = np.empty((frames, count, 3)), np.empty(frames, np.int64)
    find_support(
        does, rows.need, ridge, RELUCTANCE / LEAST_CONTACT**2, friction / SLANT, make_room(does.shape[1]), force, steps
    )
    given = np.einsum("frp,fp->fr", does[:, :6], force.reshape(frames, -1))
    return force * cheap, rows.root_wrench(rows.need[:, :6] - given)


def _dataset(
    time: Array, soles: Soles, rows: Rows, level: Array, belt: Array, contact: Array, force: Array, missing: Array
) -> Dataset:
    import xarray as xr

    shape = (len(force), len(FEET), len(POINTS), 3)
    of_foot, place = force.reshape(shape), rows.place.reshape(shape)
    total = of_foot.sum(axis=2)
    moment = np.cross(place, of_foot).sum(axis=2)
    normal = total[..., 2]
    loaded = normal >= LOADED
    safe = np.where(loaded, normal, 1.0)
    height = (of_foot[..., 2] * level.reshape(shape[:3])).sum(axis=2) / safe
    x = (height * total[..., 0] - moment[..., 1]) / safe
    y = (height * total[..., 1] + moment[..., 0]) / safe
    center = np.where(loaded[..., None], np.stack([x, y, height], axis=-1), np.nan)
    free = np.zeros_like(total)
    free[..., 2] = np.where(loaded, moment[..., 2] - (x * total[..., 1] - y * total[..., 0]), 0.0)

    foot, sole = ("time", "foot", "axis"), ("time", "sole", "axis")
    newtons, metres = {"units": "N", "frame": LAB}, {"units": "m", "frame": LAB}
    variables = {
        "foot_force": (foot, total, newtons),
        "foot_center_of_pressure": (foot, center, metres | {"threshold": f"not a number below {LOADED:g} N"}),
        "foot_free_moment": (foot, free, {"units": "N m", "frame": LAB}),
        "sole_force": (sole, force, newtons),
        "sole_position": (sole, rows.place, metres),
        "contact": (("time", "sole"), contact, {"units": "1"}),
        "missing_force": (("time", "axis"), missing[:, :3], newtons),
        "missing_moment": (
            ("time", "axis"), missing[:, 3:], {"units": "N m", "frame": LAB, "about": "the centre of mass"},
        ),
        "belt_velocity": (("axis",), belt, {"units": "m/s", "frame": LAB}),
    }  # fmt: skip
    return xr.Dataset(
        variables,
        {
            "time": ("time", time, {"units": "s"}),
            "foot": list(FEET),
            "sole": list(soles.names),
            "axis": list(AXES),
        },
        {"contact_source": "contacts"},
    )


def _belt(belt: ArrayLike) -> Array:
    given = np.asarray(belt, dtype=float)
    if given.shape not in ((2,), (3,)) or not np.isfinite(given).all():
        raise SettingsError(
            f"belt is {given.tolist()}, but must be a velocity of two or three numbers [m/s], such as (-1.2, 0)"
        )
    return np.array([*given, 0.0][:3])

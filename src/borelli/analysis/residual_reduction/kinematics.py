"""Residual reduction by adjusting root and trunk kinematics within given bounds.

Measured forces and measured motion never quite agree: the difference is the residual. A small change of the root's
translation and of the trunk's angles reduces it. Around the motion the residual is linear in such an adjustment z(t),
its velocity and its acceleration,

    r = r0 + A0 z + A1 z' + A2 z''

and the z that minimizes sum |r|^2 + weight |z|^2 is one sparse solve. The weight is chosen so that z stays just within
its bounds; where the residual cannot be reduced further, z stays smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.dynamics.torques import newton_euler, root_body
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate, quintic_spline
from borelli.analysis.motion import Motion, make_motion, root_columns
from borelli.errors import ModelError, SettingsError
from borelli.model.kinematics import coupled_motion
from borelli.model.model import Model
from borelli.numerics.series_extension import reflect
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note

DIFFERENCE_STEP = 1e-5
"""Step of numerical derivatives [rad, m, or per second]."""
LINEARIZATIONS = 3
"""Number of linearizations of the residual."""
BISECTIONS = 14
"""Number of bisections of the weight's range."""
EDGE_FRAMES = 3
"""Frames at either end that are not evaluated: their accelerations are not known."""
MOMENT_ARM = 0.3
"""Arm [m] at which a moment counts as much as a force."""


@dataclass(frozen=True)
class AdjustedMotion:
    """A motion adjusted for a smaller residual."""

    motion: Motion
    adjustment: Array
    """(frames, coordinates) difference from the filtered original [rad or m]."""
    before: tuple[float, float]
    """RMS residual force [N] and moment [N m] of the original."""
    after: tuple[float, float]
    """The same of the adjusted motion."""
    notes: tuple[Note, ...]


def adjust_kinematics(
    motion: Motion,
    loads: Loads | None,
    *,
    max_translation: float = 0.02,
    max_rotation: float = 0.05,
    filter: str = "default",
    cutoff: float | None = None,
) -> AdjustedMotion:
    """Adjust root translation and trunk angles so that forces and motion agree better.

    The root moves by at most `max_translation` along each axis [m], each angle between trunk and root by at most
    `max_rotation` [rad]. Filter and cutoff are those of `differentiate`.
    """
    if not (max_translation > 0.0 and max_rotation > 0.0):
        raise SettingsError(
            f"kinematic_tolerance: The bounds are {max_translation} m and {max_rotation} rad. Both must be positive."
        )
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    model = curves.model
    columns = _columns(model)
    allowed = np.array([max_rotation if model.coordinates[i].rotational else max_translation for i in columns])
    now = None if loads is None else loads.matched(curves.settings).at(curves.time)
    q, base = curves.coordinates.copy(), curves
    first = _residual(base, now, curves.coordinates, curves.speeds, curves.accelerations)
    for _ in range(LINEARIZATIONS):
        r0, parts = _linearize(base, now, columns)
        done = (q - curves.coordinates)[:, columns]
        q[:, columns] += _best_adjustment(r0, parts, done, allowed, curves.rate)
        base = _adjusted(curves, q)
    last = _residual(base, now, base.coordinates, base.speeds, base.accelerations)
    new = make_motion(
        model, q, curves.time, curves.rate, recording=motion.recording,
        settings={**motion.settings, "adjusted_kinematics": True}, notes=motion.notes,
    )  # fmt: skip
    before, after = _rms(first), _rms(last)
    named = ", ".join(model.coordinates[i].name for i in columns)
    text = (
        f"The residual was reduced from {before[0]:.1f} N and {before[1]:.1f} N m to {after[0]:.1f} N and "
        f"{after[1]:.1f} N m by adjusting {named} by up to {1e3 * max_translation:g} mm and "
        f"{np.degrees(max_rotation):.2g} deg."
    )
    note = Note(text, "changed", "kinematic_tolerance=None", code="adjusted_kinematics")
    return AdjustedMotion(new, q - curves.coordinates, before, after, (note,))


def _adjusted(curves: Derivatives, coordinates: Array) -> Derivatives:
    """Return the motion with other coordinates; the adjustment is reflected at its ends, as in `_best_adjustment`."""
    adjustment, pad = coordinates - curves.coordinates, len(curves.time) // 2
    spline = quintic_spline(reflect(curves.time[:, None], pad)[:, 0], reflect(adjustment, pad))
    speeds, accelerations = curves.speeds + spline(curves.time, 1), curves.accelerations + spline(curves.time, 2)
    q, u, a = coupled_motion(curves.model, coordinates, speeds, accelerations)
    return replace(curves, coordinates=q, speeds=u, accelerations=a)


def _columns(model: Model) -> list[int]:
    """Return the columns of the root's translations, and of the angles of its heaviest child."""
    root = root_body(model)
    names = [c.name for c in model.coordinates]
    translations = [i for i in root_columns(model) if not model.coordinates[i].rotational]
    if root < 0 or not translations:
        raise ModelError(f"Model {model.name!r} has no free root, so it has no residual. Use a model with a free root.")
    subtree_mass = {body.name: body.mass for body in model.bodies}
    joints = [j for j in model.joints if not j.closes_loop]
    for joint in reversed(joints):
        if joint.parent in subtree_mass:
            subtree_mass[joint.parent] += subtree_mass[joint.child]
    on_root = [j for j in joints if j.parent == model.bodies[root].name and j.coordinates]
    if not on_root:
        raise ModelError(f"Model {model.name!r} has no body on its root, so no trunk to adjust. Use another model.")
    trunk = max(on_root, key=lambda j: subtree_mass[j.child])
    return translations + [names.index(c.name) for c in trunk.coordinates if not c.locked]


def _residual(curves: Derivatives, loads: Loads | None, q: Array, u: Array, a: Array) -> Array:
    """Return (frames, 6) force [N], and moment [N m] about the root's origin divided by an arm, model axes."""
    forces = newton_euler(forward_kinematics(curves.model, q, u, a), loads)
    root = root_body(curves.model)
    wrench = forces.wrench[root]
    moment = wrench[:3] - np.cross(forces.kinematics.position[root], wrench[3:], axis=0)
    return np.concatenate([wrench[3:], moment / MOMENT_ARM]).T


def _linearize(curves: Derivatives, loads: Loads | None, columns: list[int]) -> tuple[Array, Array]:
    """Return the residual, and its derivatives (3, frames, 6, columns) by value, velocity and acceleration."""
    state = [curves.coordinates, curves.speeds, curves.accelerations]
    r0 = _residual(curves, loads, *state)
    parts = np.zeros((3, *r0.shape, len(columns)))
    for order in range(3):
        step = 1.0 if order == 2 else DIFFERENCE_STEP
        for k, column in enumerate(columns):
            moved = [values.copy() if i == order else values for i, values in enumerate(state)]
            moved[order][:, column] += step
            parts[order, :, :, k] = (_residual(curves, loads, *moved) - r0) / step
    return r0, parts


def _best_adjustment(r0: Array, parts: Array, done: Array, allowed: Array, rate: float) -> Array:
    """Return the further adjustment (frames, columns) that minimizes the residual, the total within bounds."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    frames, count = done.shape
    ones = np.ones(frames)
    first_difference = sparse.diags([-ones[1:], ones[1:]], [-1, 1]).tolil() * (0.5 * rate)
    second_difference = sparse.diags([ones[1:], -2.0 * ones, ones[1:]], [-1, 0, 1]).tolil() * rate**2
    for matrix in (first_difference, second_difference):
        matrix[0], matrix[-1] = 0.0, 0.0
    identity = sparse.identity(frames)
    jacobian: Any = 0
    for part, operator in zip(parts, (identity, first_difference, second_difference), strict=True):
        blocks = sparse.block_diag(list(part), format="csr")  # (frames, 6, columns)
        jacobian = jacobian + blocks @ sparse.kron(operator.tocsr(), sparse.identity(count))
    penalty = sparse.diags(np.tile(1.0 / allowed**2, frames))
    normal, gradient = jacobian.T @ jacobian, -jacobian.T @ r0.ravel()
    bias = penalty @ done.ravel()
    scale = float(np.mean(r0**2)) + 1e-12

    def solve(weight: float) -> Array:
        solution = spsolve((normal + weight * penalty).tocsc(), gradient - weight * bias)
        return np.asarray(solution).reshape(frames, count)

    low, high = -8.0, 4.0
    for _ in range(BISECTIONS):
        midpoint = 0.5 * (low + high)
        beyond = np.abs((solve(scale * 10.0**midpoint) + done) / allowed).max() > 1.0
        low, high = (midpoint, high) if beyond else (low, midpoint)
    return solve(scale * 10.0**high)


def _rms(residual: Array) -> tuple[float, float]:
    inner = residual[EDGE_FRAMES:-EDGE_FRAMES]
    force, torque = inner[:, :3], MOMENT_ARM * inner[:, 3:]
    return tuple(float(np.sqrt(np.mean((part**2).sum(axis=1)))) for part in (force, torque))  # type: ignore[return-value]

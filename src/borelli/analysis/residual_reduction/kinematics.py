"""Residual reduction by adjusting root and trunk kinematics within given bounds.

Measured forces and measured motion never quite agree: the difference is the residual. A small change of the root's
translation and of the trunk's angles reduces it. Around the motion the residual is linear in such an adjustment z(t),
its velocity and its acceleration,

    r = r0 + A0 z + A1 z' + A2 z''          z(t) = sum_k c_k B_k(t)

with quintic B-splines B_k that are zero, with their velocities and accelerations, outside the frames in which plates
record the full ground reaction force: elsewhere the motion is unchanged. z is added to the coordinates before their
low-pass filter, which is linear, too, and is applied to the B_k. The c minimize sum |r|^2 + weight |z|^2 within the
bounds of z, which bound z as well, because B-splines add up to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.dynamics.torques import newton_euler, newton_euler_torques, root_body
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate, smooth_spline
from borelli.analysis.motion import Motion, make_motion, root_columns
from borelli.errors import ModelError, SettingsError
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.series_extension import mask_inner_frames
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Mask = NDArray[np.bool_]

MAX_TRANSLATION, MAX_ROTATION = 0.002, float(np.radians(0.5))
"""Default bounds of the root's translation [m] and of the trunk's angles [rad]: markers hardly notice them (0.5 mm);
larger ones lower the residual by moving root and feet off the plates together."""
KNOT_SPACING = 0.25
"""Distance of the knots of z, in periods of the cutoff."""
DEGREE = 5
"""Degree of the B-splines, which have four continuous derivatives between the ends of a span."""
EDGE_KNOTS = 2
"""More knots at the ends of a span, where z vanishes with its velocity and acceleration. If two more derivatives did,
too, the residual of its outer 0.1 s could not be reduced."""
MIN_KNOT_FRAMES = 2.0
"""Least distance of the knots, in frames."""
DIFFERENCE_STEP = 1e-5
"""Step of numerical derivatives [rad, m, or per second]."""
ITERATIONS = 3
"""Number of solves; the derivatives of the residual hardly change within the bounds and are computed once."""
WEIGHT = 1.0
"""Cost of an adjustment at its bound, relative to that of the mean residual."""
MAX_NEWTON_STEPS, MAX_HALVINGS, STEP_TOLERANCE = 50, 12, 1e-4
"""Limits of the search for the least cost within bounds; its last step as a fraction of the bounds."""
NEGLIGIBLE = 1e-7
"""Fraction of the largest value of a filtered B-spline that counts as zero."""
MOMENT_ARM = 0.3
"""Arm [m] at which a moment counts as much as a force."""


@dataclass(frozen=True)
class AdjustedMotion:
    """A motion adjusted for a smaller residual."""

    motion: Motion
    adjustment: Array
    """(frames, coordinates) difference from the original, before the filter [rad or m]."""
    before: tuple[float, float]
    """RMS residual force [N] and moment [N m] of the original over the frames with full ground reaction force, farther
    than 0.1 s from the ends."""
    after: tuple[float, float]
    """The same of the adjusted motion."""
    notes: tuple[Note, ...]


def adjust_kinematics(
    motion: Motion,
    loads: Loads | None,
    *,
    max_translation: float = MAX_TRANSLATION,
    max_rotation: float = MAX_ROTATION,
    filter: str = "default",
    cutoff: float | None = None,
    used: Mask | None = None,
) -> AdjustedMotion:
    """Adjust root translation and trunk angles so that forces and motion agree better.

    Args:
        motion: Motion of a model with a free root.
        loads: Measured loads; None: none.
        max_translation: Largest change of the root along each axis [m].
        max_rotation: Largest change of each angle between trunk and root [rad].
        filter: As in `differentiate`.
        cutoff: As in `differentiate`.
        used: (frames,) of the filtered motion that may change; None: those with complete ground reaction force.
    """
    if not (max_translation > 0.0 and max_rotation > 0.0):
        raise SettingsError(
            f"kinematic_tolerance: The bounds are {max_translation} m and {max_rotation} rad. Both must be positive."
        )
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    if loads is not None:
        loads = loads.matched(curves.settings)
    if used is None:
        data = newton_euler_torques(motion, curves, loads).data
        used = np.asarray(data["grf_complete"].values) if "grf_complete" in data else np.ones(len(curves.time), bool)
    columns = _columns(curves.model)
    allowed = np.array([max_rotation if curves.model.coordinates[i].rotational else max_translation for i in columns])
    now = None if loads is None else loads.at(curves.time)
    first, parts = _linearize(curves, now, columns)
    basis, filtered = _basis(curves, used, filter)
    judged = used & mask_inner_frames(curves.time)  # at the ends accelerations are extrapolated
    judged = judged if judged.any() else used
    coefficients = np.zeros(basis.shape[1] * len(columns))
    new, last = motion, first
    for _ in range(ITERATIONS if basis.shape[1] else 0):
        coefficients, adjustment = _Problem(last, parts, basis, filtered, used, allowed).solve(coefficients)
        new = _moved(motion, curves.time, columns, adjustment)
        last = _residual(differentiate(new, filter=filter, cutoff=cutoff, joints=curves.rotation_joints), now)
    before, after = (_rms(residual[judged]) for residual in (first, last))
    named = ", ".join(curves.model.coordinates[i].name for i in columns)
    text = (
        f"The residual was reduced from {before[0]:.1f} N and {before[1]:.1f} N m to {after[0]:.1f} N and "
        f"{after[1]:.1f} N m by adjusting {named} by up to {1e3 * max_translation:g} mm and "
        f"{np.degrees(max_rotation):.2g} deg in the {int(used.sum())} frames with full ground reaction force."
    )
    note = Note(text, "changed", "kinematic_tolerance=None", code="adjusted_kinematics")
    return AdjustedMotion(new, new.coordinates - motion.coordinates, before, after, (note,))


def _moved(motion: Motion, time: Array, columns: list[int], adjustment: Array) -> Motion:
    """Return the motion with an adjustment (frames, columns) of some coordinates at some of its times."""
    data = motion.data
    first = int(np.searchsorted(data["time"].values, time[0] - 1e-9))
    q = motion.coordinates.copy()
    q[first : first + len(time), columns] += adjustment
    names = [str(name) for name in data["marker"].values] if "marker_error" in data else []
    markers = [marker for name in names for marker in motion.model.markers if marker.name == name]
    new = make_motion(
        motion.model, q, data["time"].values, motion.rate, markers=markers, recording=motion.recording,
        measured=data["marker_position"].values if names else None,
        settings={**motion.settings, "adjusted_kinematics": True}, notes=motion.notes,
    )  # fmt: skip
    kept = {name: data[name] for name in data.data_vars if name not in new.data}
    return replace(new, data=new.data.assign(kept))


def _basis(curves: Derivatives, used: Mask, filter: str) -> tuple[csr_matrix, list[csr_matrix]]:
    """Return B-splines (frames, splines) inside the used frames, and their values and derivatives after the filter."""
    from scipy import sparse
    from scipy.interpolate import BSpline

    cutoff = curves.settings["cutoff_hz"] or CUTOFF
    step = max(KNOT_SPACING / cutoff, MIN_KNOT_FRAMES / curves.rate)
    time, splines = curves.time, []
    for start, stop in find_runs(used):
        low, high = time[start], time[stop - 1]
        count = int((high - low) / step)
        knots = np.linspace(low, high, count + 1) if count else np.zeros(0)
        width = (high - low) / max(count, 1)
        if count:  # at the ends of the motion there is no frame that must not change
            before = width * np.arange(-DEGREE, 0) if start == 0 else np.zeros(EDGE_KNOTS)
            after = width * np.arange(1, DEGREE + 1) if stop == len(time) else np.zeros(EDGE_KNOTS)
            knots = np.concatenate([low + before, knots, high + after])
        for k in range(len(knots) - DEGREE - 1):
            values = BSpline.basis_element(knots[k : k + DEGREE + 2], extrapolate=False)(time)
            splines.append(np.where(used, np.nan_to_num(values), 0.0))
    basis = np.array(splines).T if splines else np.zeros((len(time), 0))
    if not splines:
        return sparse.csr_matrix(basis), []
    preset = "default" if filter == "strides" else filter
    curve = smooth_spline(basis, time, curves.rate, preset, cutoff)
    filtered = []
    for order in range(3):
        values = np.asarray(curve(time, order))
        values[np.abs(values) < NEGLIGIBLE * np.abs(values).max()] = 0.0
        filtered.append(sparse.csr_matrix(values))
    return sparse.csr_matrix(basis), filtered


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


def _residual(curves: Derivatives, loads: Loads | None) -> Array:
    """Return (frames, 6) force [N], and moment [N m] about the root's origin divided by an arm, model axes."""
    moved = forward_kinematics(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    forces = newton_euler(moved, loads)
    root = root_body(curves.model)
    wrench = forces.wrench[root]
    moment = wrench[:3] - np.cross(forces.kinematics.position[root], wrench[3:], axis=0)
    return np.concatenate([wrench[3:], moment / MOMENT_ARM]).T


def _linearize(curves: Derivatives, loads: Loads | None, columns: list[int]) -> tuple[Array, Array]:
    """Return the residual, and its derivatives (3, frames, 6, columns) by value, velocity and acceleration."""
    names = ("coordinates", "speeds", "accelerations")
    r0 = _residual(curves, loads)
    parts = np.zeros((3, *r0.shape, len(columns)))
    for order, name in enumerate(names):
        step = 1.0 if order == 2 else DIFFERENCE_STEP
        for k, column in enumerate(columns):
            values = getattr(curves, name).copy()
            values[:, column] += step
            parts[order, :, :, k] = (_residual(replace(curves, **{name: values}), loads) - r0) / step
    return r0, parts


class _Problem:
    """Least squares of the residual over the coefficients of the adjustment."""

    def __init__(
        self, r0: Array, parts: Array, basis: csr_matrix, filtered: list[csr_matrix], used: Mask, allowed: Array
    ) -> None:
        from scipy import sparse

        count = len(allowed)
        jacobian: Any = 0
        for part, operator in zip(np.where(used[:, None, None], parts, 0.0), filtered, strict=True):
            # (frames, 6, columns); the first block states the kind of the result, which scipy is about to change
            blocks = sparse.block_diag([sparse.coo_matrix(part[0]), *part[1:]], format="csr")
            jacobian = jacobian + blocks @ sparse.kron(operator, sparse.identity(count), format="csr")
        scale = float(np.mean(r0[used] ** 2)) + 1e-12
        penalty = sparse.kron(basis.T @ basis, sparse.diags(WEIGHT * scale / allowed**2), format="csc")
        self.values = sparse.kron(basis, sparse.identity(count), format="csr")
        self.bounds = np.tile(allowed, basis.shape[1])
        self.shape = (len(r0), count)
        self.jacobian, self.residual = jacobian, r0.ravel()
        self.hessian = (jacobian.T @ jacobian + penalty).tocsc()

    def solve(self, done: Array) -> tuple[Array, Array]:
        """Return coefficients within bounds, and the adjustment (frames, columns); `done` are those of the residual.

        Newton's method on the coefficients that are free to move, projected to the bounds (Bertsekas 1982).
        """
        from scipy.sparse.linalg import spsolve

        target = self.jacobian.T @ (self.jacobian @ done - self.residual)
        c = np.clip(done, -self.bounds, self.bounds)
        for _ in range(MAX_NEWTON_STEPS):
            slope = self.hessian @ c - target
            held = ((c <= -self.bounds) & (slope > 0.0)) | ((c >= self.bounds) & (slope < 0.0))
            free = np.flatnonzero(~held)
            change = np.zeros_like(c)
            change[free] = -spsolve(self.hessian[free][:, free], slope[free])
            new, value = c, self._cost(c, target)
            for size in 0.5 ** np.arange(MAX_HALVINGS):
                trial = np.clip(c + size * change, -self.bounds, self.bounds)
                if self._cost(trial, target) < value:
                    new = trial
                    break
            if np.abs((new - c) / self.bounds).max() < STEP_TOLERANCE:
                break
            c = new
        return c, np.asarray(self.values @ c).reshape(self.shape)

    def _cost(self, c: Array, target: Array) -> float:
        return float(0.5 * c @ (self.hessian @ c) - target @ c)


def _rms(residual: Array) -> tuple[float, float]:
    if not len(residual):
        return 0.0, 0.0
    force, torque = residual[:, :3], MOMENT_ARM * residual[:, 3:]
    return tuple(float(np.sqrt(np.mean((part**2).sum(axis=1)))) for part in (force, torque))  # type: ignore[return-value]

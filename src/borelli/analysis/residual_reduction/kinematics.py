"""Residuals lowered by letting the motion deviate, by no more than is said.

Forces measured and motion measured never quite agree: what is left is the residual. A root that goes a little
elsewhere, and a trunk that turns a little otherwise, need less of it. Around the motion the residual is linear in such
a deviation z(t), its speed and its acceleration,

    r = r0 + A0 z + A1 z' + A2 z''

and the z that makes sum |r|^2 + weight |z|^2 least is one sparse solve. The weight is found so that z stays just within
what is allowed; where nothing more is to be had, z stays smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.dynamics.torques import newton_euler, root_body
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate, quintic_spline
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion, make_motion
from borelli.errors import ModelError, SettingsError
from borelli.model.kinematics import coupled_motion
from borelli.model.model import Model
from borelli.numerics.series_extension import reflect
from borelli.recording.recording import Note

Array = NDArray[np.float64]

SMALL = 1e-5
"""[rad, m, or per second] for derivatives by differences."""
ROUNDS = 3
"""Times the residual is made linear anew."""
HALVINGS = 14
"""Of the span in which the weight is looked for."""
ENDS = 3
"""Frames at either end that are not judged: their accelerations are not known."""
ARM = 0.3
"""[m] at which a torque counts as much as a force."""


@dataclass(frozen=True)
class Traded:
    """A motion that deviates from another, for a smaller residual.

    Attributes:
        motion: The new motion.
        deviation: (frames, coordinates) of it from the filtered old one [rad or m].
        before: Root mean square residual force [N] and torque [N m].
        after: The same of the new motion.
        notes: What was done.
    """

    motion: Motion
    deviation: Array
    before: tuple[float, float]
    after: tuple[float, float]
    notes: tuple[Note, ...]


def adjust_kinematics(
    motion: Motion,
    loads: Loads | None,
    *,
    shift: float = 0.02,
    turn: float = 0.05,
    filter: str = "default",
    cutoff: float | None = None,
) -> Traded:
    """The motion whose root and trunk deviate so that forces and motion agree better.

    Args:
        motion: Of a model with a root that moves freely and a trunk on it.
        loads: What the ground supplied; None: nothing.
        shift: Farthest deviation of the root's place along an axis [m].
        turn: Farthest deviation of an angle of the trunk on the root [rad].
        filter: Of the coordinates, as in `derivatives`.
        cutoff: Of the filter [Hz].

    Raises:
        ModelError: the model has no such root or trunk.
    """
    if not (shift > 0.0 and turn > 0.0):
        raise SettingsError(f"shift is {shift} m and turn {turn} rad; both must be larger than 0")
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    model = curves.model
    columns = _columns(model)
    allowed = np.array([turn if model.coordinates[i].rotational else shift for i in columns])
    now = None if loads is None else loads.at(curves.time)
    q, base = curves.coordinates.copy(), curves
    first = _residual(base, now, curves.coordinates, curves.speeds, curves.accelerations)
    for _ in range(ROUNDS):
        r0, parts = _linear(base, now, columns)
        done = (q - curves.coordinates)[:, columns]
        q[:, columns] += _best(r0, parts, done, allowed, curves.rate)
        base = _deviated(curves, q)
    last = _residual(base, now, base.coordinates, base.speeds, base.accelerations)
    new = make_motion(
        model, q, curves.time, curves.rate, recording=motion.recording,
        settings={**motion.settings, "traded": True}, notes=motion.notes,
    )  # fmt: skip
    before, after = _rms(first), _rms(last)
    named = ", ".join(model.coordinates[i].name for i in columns)
    said = (
        f"residual lowered from {before[0]:.1f} N and {before[1]:.1f} N m to {after[0]:.1f} N and {after[1]:.1f} N m "
        f"by deviations of up to {1e3 * shift:g} mm and {np.degrees(turn):.2g} deg of {named}"
    )
    return Traded(new, q - curves.coordinates, before, after, (Note(said, "changed", "trade=None"),))


def _deviated(curves: Derivatives, coordinates: Array) -> Derivatives:
    """The motion with other coordinates; what they deviate by is reflected in its ends, as `_best` takes it to be."""
    deviation, pad = coordinates - curves.coordinates, len(curves.time) // 2
    spline = quintic_spline(reflect(curves.time[:, None], pad)[:, 0], reflect(deviation, pad))
    q, u, a = coupled_motion(
        curves.model,
        coordinates,
        curves.speeds + spline(curves.time, 1),
        curves.accelerations + spline(curves.time, 2),
    )
    return replace(curves, coordinates=q, speeds=u, accelerations=a)


def _columns(model: Model) -> list[int]:
    """Of the root's shifts, and of the angles of what hangs on the root and weighs most."""
    named = root_coordinates(model)
    root = root_body(model)
    names = [c.name for c in model.coordinates]
    shifts = [names.index(n) for n in named if not model.coordinates[names.index(n)].rotational]
    if root < 0 or not shifts:
        raise ModelError(f"model {model.name!r} has no root that moves through the world, so no residual to lower")
    carried = {body.name: body.mass for body in model.bodies}
    joints = [j for j in model.joints if not j.closes_loop]
    for joint in reversed(joints):
        if joint.parent in carried:
            carried[joint.parent] += carried[joint.child]
    on_root = [j for j in joints if j.parent == model.bodies[root].name and j.coordinates]
    if not on_root:
        raise ModelError(f"model {model.name!r}: nothing hangs on its root, so no trunk can turn")
    trunk = max(on_root, key=lambda j: carried[j.child])
    return shifts + [names.index(c.name) for c in trunk.coordinates if not c.locked]


def _residual(curves: Derivatives, loads: Loads | None, q: Array, u: Array, a: Array) -> Array:
    """(frames, 6) force [N], and torque [N m] about the root's origin divided by an arm, model axes."""
    balance = newton_euler(forward_kinematics(curves.model, q, u, a), loads)
    root = root_body(curves.model)
    wrench = balance.carried[root]
    moment = wrench[:3] - np.cross(balance.moved.position[root], wrench[3:], axis=0)
    return np.concatenate([wrench[3:], moment / ARM]).T


def _linear(curves: Derivatives, loads: Loads | None, columns: list[int]) -> tuple[Array, Array]:
    """The residual, and its derivatives (3, frames, 6, columns) by value, speed and acceleration."""
    state = [curves.coordinates, curves.speeds, curves.accelerations]
    r0 = _residual(curves, loads, *state)
    parts = np.zeros((3, *r0.shape, len(columns)))
    for order in range(3):
        step = 1.0 if order == 2 else SMALL
        for k, column in enumerate(columns):
            moved = [values.copy() if i == order else values for i, values in enumerate(state)]
            moved[order][:, column] += step
            parts[order, :, :, k] = (_residual(curves, loads, *moved) - r0) / step
    return r0, parts


def _best(r0: Array, parts: Array, done: Array, allowed: Array, rate: float) -> Array:
    """The further deviation (frames, columns) that lowers the residual most, all of it within what is allowed."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    frames, count = done.shape
    ones = np.ones(frames)
    slope = sparse.diags([-ones[1:], ones[1:]], [-1, 1]).tolil() * (0.5 * rate)
    bend = sparse.diags([ones[1:], -2.0 * ones, ones[1:]], [-1, 0, 1]).tolil() * rate**2
    for matrix in (slope, bend):
        matrix[0], matrix[-1] = 0.0, 0.0
    same = sparse.identity(frames)
    acts: Any = 0
    for part, operator in zip(parts, (same, slope, bend), strict=True):
        acts = acts + _blocks(part) @ sparse.kron(operator.tocsr(), sparse.identity(count))
    held = sparse.diags(np.tile(1.0 / allowed**2, frames))
    normal, pull = acts.T @ acts, -acts.T @ r0.ravel()
    bias = held @ done.ravel()
    least = float(np.mean(r0**2)) + 1e-12

    def solve(weight: float) -> Array:
        found = spsolve((normal + weight * held).tocsc(), pull - weight * bias)
        return np.asarray(found).reshape(frames, count)

    low, high = -8.0, 4.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        beyond = np.abs((solve(least * 10.0**middle) + done) / allowed).max() > 1.0
        low, high = (middle, high) if beyond else (low, middle)
    return solve(least * 10.0**high)


def _blocks(part: Array) -> Any:
    """(frames, 6, columns) as a block-diagonal sparse matrix."""
    from scipy import sparse

    return sparse.block_diag(list(part), format="csr")


def _rms(residual: Array) -> tuple[float, float]:
    inner = residual[ENDS:-ENDS]
    force, torque = inner[:, :3], ARM * inner[:, 3:]
    return tuple(float(np.sqrt(np.mean((part**2).sum(axis=1)))) for part in (force, torque))  # type: ignore[return-value]

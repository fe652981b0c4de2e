"""Feet planted where they stand: in stance they neither slide, hover nor sink.

In each stance a foot is displaced so that the part of its sole that is in contact stays where it is: the displacement
cancels the height of this part and the integral of its velocity, so that a foot may roll from heel to toe. In swing the
displacement passes smoothly from one stance to the next. The joints of the leg, and the height of the root where a leg
is too short, follow by damped least squares; the foot keeps its orientation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.ground.soles import FEET, foot_bodies, shape_corners
from borelli.control.ground_shift import ground_height, root_translations, upward
from borelli.dynamics.model_dynamics import ModelDynamics
from borelli.errors import ModelError
from borelli.model.kinematics import coupled_coordinates, poses, tree_links
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.recording.recording import Note

Array = NDArray[np.float64]

STANCE_HEIGHT = 0.08
"""Largest distance from the ground [m] of a sole in stance: errors of measured feet are below it."""
STANCE_SPEED = 0.5
"""Largest horizontal speed [m/s] of the part of a sole that is in contact: low-passed feet do not stop at once."""
MIN_STANCE = 0.1
"""Least duration of a stance [s]."""
CONTACT_DEPTH = 0.003
"""Height above the lowest corner [m] at which the weight of a corner in the contact is 1/e."""
BLEND_TIME = 0.5
"""Longest time [s] after and before a stance in which the displacement changes with its speed in the stance."""
CLEARANCE, CLEARANCE_TIME = 0.01, 0.06
"""Least height [m] of a swinging sole, and the time [s] from and to a stance in which it is reached: the toes of
walkers pass the ground at 10 to 20 mm (Winter 1992), and toes that touch it in swing stick."""
CLEARANCE_SMOOTHING = 0.004
"""Distance [m] over which the raising of a swinging foot sets in."""
POSITION_ERROR, ROTATION_ERROR, LIMIT_EXCESS = 3e-4, 1e-2, 1e-2
"""Errors of a foot's position [m] and orientation [rad], and excess over a joint limit [rad or m], that weigh as much
as the next two."""
LEG_CHANGE, LEG_CUTOFF = 0.1, 3.5
"""Change of a leg's coordinates [rad or m], and the frequency [Hz] above which it weighs more."""
ROOT_CHANGE, ROOT_CUTOFF = 0.1, 0.8
"""The same for the translation of the root [m]."""
SWING_WEIGHT = 1.0
"""Weight of errors of a foot in swing relative to one in stance."""
ITERATIONS, MAX_ITERATION_CHANGE = 12, 0.2
"""Least-squares iterations, and the largest change of a coordinate in each [rad or m]."""


@dataclass(frozen=True)
class _Foot:
    """A foot and its leg."""

    body: str
    parts: tuple[tuple[int, Array], ...]
    """Index of a body and the corners (corners, 3) of its colliding shapes, in its frame [m]."""
    leg: NDArray[np.int64]
    """Coordinates of the joints between the foot and the parts of the body that both legs carry."""


def plant_feet(model: Model, table: Array, step: float) -> tuple[Array, tuple[Note, ...]]:
    """Return a motion (frames, coordinates) with frames `step` seconds apart with planted feet, and notes.

    The motion is returned as it is if no foot stands.
    """
    up, feet = upward(model), _find_feet(model)
    if up is None or not feet or len(table) < 2:
        return table, ()
    position, rotation = poses(model, table)
    plans = []
    for foot in feet:
        corners = np.concatenate(
            [np.einsum("fij,pj->fpi", rotation[:, b], local) + position[:, b, None] for b, local in foot.parts], axis=1
        )
        plans.append(_plan(corners, up, ground_height(model, up), step))
    displacement, stands = (np.stack(parts, axis=1) for parts in zip(*plans, strict=True))
    count = sum(len(find_runs(one)) for one in stands.T)
    if not count:
        return table, ()
    result = _move_legs(model, table, step, feet, displacement, stands)
    largest = 1e3 * float(np.linalg.norm(displacement, axis=2).max())
    text = f"The feet were planted in {count} stances; this displaced them by up to {largest:.0f} mm."
    return result, (Note(text, "changed", code="planted_feet"),)


def _find_feet(model: Model) -> list[_Foot]:
    """Return the feet that have colliding shapes."""
    index = {body.name: i for i, body in enumerate(model.bodies)}
    parent = {link.child: link for link in tree_links(model)}

    def path(body: int) -> list[int]:
        """Return a body and those between it and the ground."""
        found = [body]
        while found[-1] in parent and parent[found[-1]].parent >= 0:
            found.append(parent[found[-1]].parent)
        return found

    found = []
    for side in FEET:
        try:
            foot, toes = foot_bodies(model, side)
        except ModelError:  # a model of part of the body
            continue
        parts = []
        for body in (foot, toes):
            shapes = [s for s in body.shapes if s.collides and s.kind != "plane"] if body is not None else []
            if body is not None and shapes:
                parts.append((index[body.name], np.concatenate([shape_corners(shape) for shape in shapes])))
        if parts:
            found.append((foot.name, tuple(parts), path(index[foot.name])))
    feet = []
    for name, parts_of, bodies in found:
        # the joints above those of the other leg, or of the root, carry more than this foot
        others = {b for other, _, chain in found if other != name for b in chain} | {bodies[-1]}
        columns = [axis.column for b in bodies if b not in others for axis in parent[b].axes if axis.column >= 0]
        feet.append(_Foot(name, parts_of, np.array(sorted(set(columns)), np.int64)))
    return feet


def _plan(corners: Array, up: Array, ground: float, step: float) -> tuple[Array, NDArray[np.bool_]]:
    """Return how to displace a foot with these corners (frames, corners, 3): (frames, 3), and when it stands."""
    heights = corners @ up - ground
    lowest = heights.min(axis=1)
    weight = np.exp(-(heights - lowest[:, None]) / CONTACT_DEPTH)
    weight /= weight.sum(axis=1, keepdims=True)
    velocity = np.einsum("fp,fpi->fi", weight, np.gradient(corners, step, axis=0))
    velocity -= (velocity @ up)[:, None] * up
    near = (np.abs(lowest) < STANCE_HEIGHT) & (np.linalg.norm(velocity, axis=1) < STANCE_SPEED)
    runs = [(a, b) for a, b in find_runs(near) if (b - a - 1) * step >= MIN_STANCE]
    result, stands = np.zeros((len(corners), 3)), np.zeros(len(corners), bool)
    if not runs:
        return result, stands
    for a, b in runs:
        way = np.zeros((b - a, 3))
        way[1:] = np.cumsum(0.5 * step * (velocity[a : b - 1] + velocity[a + 1 : b]), axis=0)
        result[a:b] = way.mean(axis=0) - way - lowest[a:b, None] * up
        stands[a:b] = True
    _blend(result, runs, max(1, round(BLEND_TIME / step)))
    frames = np.arange(len(result))
    edges = np.array([frame for a, b in runs for frame in (a, b - 1)])
    since = step * np.abs(frames[:, None] - edges).min(axis=1)
    least = CLEARANCE * np.sin(0.5 * np.pi * np.minimum(since / CLEARANCE_TIME, 1.0)) ** 2
    under = least - lowest - result @ up
    raised = 0.5 * (under + np.hypot(under, CLEARANCE_SMOOTHING) - CLEARANCE_SMOOTHING)
    result += np.where(stands, 0.0, np.maximum(raised, 0.0))[:, None] * up
    return result, stands


def _blend(displacement: Array, runs: Sequence[tuple[int, int]], width: int) -> None:
    """Fill the frames between runs by cubics; `width` frames from a run, if they are so far apart, it is at rest."""
    from scipy.interpolate import CubicHermiteSpline

    last = len(displacement) - 1
    knots: list[tuple[int, Array, Array]] = []
    for n, (a, b) in enumerate(runs):
        rates, rest = np.gradient(displacement[a:b], axis=0), np.zeros(3)
        before = runs[n - 1][1] - 1 if n else -2 * width
        after = runs[n + 1][0] if n + 1 < len(runs) else last + 2 * width
        if a - before > 2 * width:
            knots.append((a - width, displacement[a], rest))
        knots += [(a, displacement[a], rates[0]), (b - 1, displacement[b - 1], rates[-1])]
        if after - b + 1 > 2 * width:
            knots.append((b - 1 + width, displacement[b - 1], rest))
    if knots[0][0] > 0:
        knots.insert(0, (0, knots[0][1], np.zeros(3)))
    if knots[-1][0] < last:
        knots.append((last, knots[-1][1], np.zeros(3)))
    frames = np.delete(np.arange(last + 1), np.concatenate([np.arange(a, b) for a, b in runs]))
    at, values, slopes = (np.array(part) for part in zip(*knots, strict=True))
    displacement[frames] = CubicHermiteSpline(at, values, slopes)(frames)


def _move_legs(
    model: Model, table: Array, step: float, feet: Sequence[_Foot], displacement: Array, stands: NDArray[np.bool_]
) -> Array:
    """Return the motion with feet displaced (frames, feet, 3) by smooth changes of their legs and of the root."""
    from scipy.linalg import solveh_banded

    dynamics, names = ModelDynamics(model), [foot.body for foot in feet]
    bodies = [dynamics.body_index[name] for name in names]
    free = set(dynamics.free.tolist())
    root = sorted(free & {column for column, _ in root_translations(model)})
    legs = sorted(free & {int(c) for foot in feet for c in foot.leg})
    columns, frames = np.array([*legs, *root], np.int64), len(table)
    count = len(columns)
    if not count:
        return table
    size = np.array([LEG_CHANGE] * len(legs) + [ROOT_CHANGE] * len(root))
    cutoff = np.array([LEG_CUTOFF] * len(legs) + [ROOT_CUTOFF] * len(root))
    low, high = (np.array([getattr(model.coordinates[c], side) for c in columns]) for side in ("lower", "upper"))
    low, high = np.minimum(low, table[:, columns].min(axis=0)), np.maximum(high, table[:, columns].max(axis=0))
    smooth = _smoothness(size**-2, cutoff, frames, step)
    weight = np.repeat([1.0 / POSITION_ERROR, 1.0 / ROTATION_ERROR], 3) * np.where(stands, 1.0, SWING_WEIGHT)[..., None]
    position, kept = (pose[:, bodies] for pose in poses(model, table))
    wanted, change, q = position + displacement, np.zeros((frames, count)), table.copy()
    for _ in range(ITERATIONS):
        jacobian = dynamics.jacobians(q, names, np.zeros((len(names), 3)))[..., dynamics.variable[columns]]
        rows = (jacobian * weight[..., None]).reshape(frames, -1, count)
        error = _pose_error(wanted, kept, *(pose[:, bodies] for pose in poses(model, q))) * weight
        excess = q[:, columns] - np.clip(q[:, columns], low, high)
        right = np.einsum("fri,fr->fi", rows, error.reshape(frames, -1)) - excess / LIMIT_EXCESS**2
        right -= _times(smooth, change)
        normal = np.einsum("fri,frj->fij", rows, rows)
        normal[:, range(count), range(count)] += (excess != 0.0) / LIMIT_EXCESS**2
        matrix = smooth.copy()
        for k in range(count):
            matrix[k].reshape(frames, count)[:, : count - k] += np.diagonal(normal, -k, axis1=1, axis2=2)
        found = solveh_banded(matrix, right.ravel(), lower=True).reshape(frames, count)
        change += found * min(1.0, MAX_ITERATION_CHANGE / max(float(np.abs(found).max()), 1e-12))
        q[:, columns] = table[:, columns] + change
        q = coupled_coordinates(model, q)
    return q


def _pose_error(wanted: Array, kept: Array, position: Array, rotation: Array) -> Array:
    """Return the displacements [m] and rotations [rad] (frames, feet, 6) that feet lack."""
    turn = np.einsum("ftij,ftkj->ftik", kept, rotation)
    # sines of the angles, which are small
    angles = [turn[..., 2, 1] - turn[..., 1, 2], turn[..., 0, 2] - turn[..., 2, 0], turn[..., 1, 0] - turn[..., 0, 1]]
    return np.concatenate([wanted - position, 0.5 * np.stack(angles, axis=-1)], axis=-1)


def _smoothness(weight: Array, cutoff: Array, frames: int, step: float) -> Array:
    """Return the matrix of sum w (x^2 + (x'' / (2 pi cutoff)^2)^2) over frames, its lower diagonals, for (columns,)."""
    count = len(weight)
    bands = np.zeros((3 * count, frames, count))
    bending = weight * (2.0 * np.pi * cutoff * step) ** -4
    for offset, factors in ((0, (1.0, 4.0, 1.0)), (1, (-2.0, -2.0)), (2, (1.0,))):
        for first, factor in enumerate(factors):
            bands[offset * count, first : max(frames - 2 + first, 0)] += factor * bending
    bands[0] += weight
    return bands.reshape(3 * count, -1)


def _times(bands: Array, values: Array) -> Array:
    """Return the product of the matrix of `_smoothness` and values (frames, columns)."""
    count = values.shape[1]
    result = bands[0].reshape(values.shape) * values
    for offset in (1, 2):
        band = bands[offset * count].reshape(values.shape)[:-offset]
        result[offset:] += band * values[:-offset]
        result[:-offset] += band * values[offset:]
    return result

"""Muscles in the 3-D player: nodes of their paths in the frames of their bodies, and activations.

A node is a path point or the beginning or end of an arc over a wrap object. In the frame of its body it moves little or
not at all, so a node of an earlier frame is still right on a body that has moved on: fewer frames suffice than of the
poses.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import to_model_axes
from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.muscles.paths import PathFrames
from borelli.view.muscle_lines import ACTIVE_COLOR, REST_COLOR, UNKNOWN_COLOR
from borelli.view.results import activation_at

Array = NDArray[np.float64]

NODE_UNIT = 1e-4
"""Resolution of nodes [m]."""
MAX_BYTES = 900_000
"""Size of the nodes in the page; frames are left out until they fit."""
ACTIVATION_STEPS = 250
"""Number of steps from activation 0 to 1; 255 is unknown."""
UNKNOWN = 255


def pack_muscles(energy: Energy, frames: NDArray[np.int64], origin: Array) -> dict[str, Any] | None:
    """Return the muscles in these frames of the motion, with positions relative to `origin` [m]; None without them.

    `nodes` has by frame and node x, y, z [`unit`] and the body (-1: ground, -2: unknown), 16-bit integers; a path with
    fewer nodes in a frame repeats its last.
    """
    if energy.muscles is None:
        return None
    motion = energy.torques.motion
    coordinates = motion.data["coordinate_value"].values[frames]
    sizes = _node_counts(motion.model, coordinates[:1])
    every = max(1, -(-(8 * int(sizes.sum()) * len(frames)) // MAX_BYTES))
    chosen = frames[::every]
    nodes, counts = _nodes(motion.model, coordinates[::every], sizes, origin)
    activation = activation_at(energy.muscles, motion.data["time"].values[chosen])
    steps = np.rint(ACTIVATION_STEPS * np.clip(np.nan_to_num(activation), 0.0, 1.0))
    packed = np.where(np.isfinite(activation), steps, UNKNOWN).astype(np.uint8)
    return {
        "every": every,
        "counts": counts.tolist(),
        "unit": NODE_UNIT,
        "steps": ACTIVATION_STEPS,
        "colors": [REST_COLOR, ACTIVE_COLOR, UNKNOWN_COLOR],
        "nodes": b64encode(nodes.tobytes()).decode(),
        "activation": b64encode(packed.tobytes()).decode(),
    }


def _node_counts(model: Model, coordinates: Array) -> NDArray[np.int64]:
    """Return the largest number of nodes that each muscle can have."""
    first = PathFrames(model, np.nan_to_num(coordinates), "exact").arrays.first_node
    return np.diff(first)


def _nodes(
    model: Model, coordinates: Array, sizes: NDArray[np.int64], origin: Array
) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """Return x, y, z and body of all nodes (frames, nodes, 4), and the number of nodes of each muscle."""
    known = np.asarray(np.isfinite(coordinates).all(axis=1))
    rows = PathFrames(model, np.nan_to_num(coordinates), "exact")
    first, work, rotation = rows.arrays.first_node, rows.work, to_model_axes(model)
    every = np.concatenate([first[m] + np.arange(size) for m, size in enumerate(sizes)])
    within = np.concatenate([np.arange(size) for size in sizes])
    table = np.zeros((len(coordinates), len(every), 4), np.int16)
    used = np.zeros(len(sizes), np.int64)
    position, orientation = poses(model, rows.q)
    for frame, row in enumerate(rows.q):
        rows.run(row[None])
        used = np.maximum(used, work.node_count)
        at = every - np.maximum(within - np.repeat(work.node_count - 1, sizes), 0)
        body, point = work.node_body[at], work.node_position[at]
        local = np.einsum("nji,nj->ni", orientation[frame, body], point - position[frame, body])
        local = np.where(body[:, None] < 0, point @ rotation - origin, local)
        table[frame, :, :3] = np.clip(np.rint(local / NODE_UNIT), -32767, 32767)
        table[frame, :, 3] = body
        if not known[frame]:
            table[frame, :, 3] = -2
    kept = within < np.repeat(used, sizes)
    return np.ascontiguousarray(table[:, kept]), used

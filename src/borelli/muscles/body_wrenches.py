"""Wrenches that muscles under tension apply to the bodies of their paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.muscles.paths import Floats, PathFrames


def body_wrenches(model: Model, coordinates: ArrayLike, force: ArrayLike) -> Floats:
    """Return the wrenches of muscles on bodies: moment about the world origin [N m] and force [N], model axes.

    Args:
        model: Model with muscles.
        coordinates: (frames, coordinates) [rad or m].
        force: (frames, muscles) forces along the tendon [N].

    Returns:
        (frames, bodies, 6)
    """
    frames = PathFrames(model, coordinates, "exact")
    tension = np.asarray(force, float)
    if tension.shape != (len(frames.q), len(frames.names)):
        raise SettingsError(f"force: Its shape is {tension.shape}. Give ({len(frames.q)}, {len(frames.names)}).")
    result = np.zeros((len(frames.q), len(model.bodies) + 1, 6))  # the ground is last
    first, work = frames.arrays.first_node, frames.work
    for row, own, total in zip(frames.q, tension, result, strict=True):
        frames.run(row[None])
        used = np.concatenate([first[m] + np.arange(count) for m, count in enumerate(work.node_count)])
        pull = np.repeat(own, work.node_count)[:, None] * work.node_force[used]
        np.add.at(total, work.node_body[used], np.hstack([np.cross(work.node_position[used], pull), pull]))
    return result[:, :-1]

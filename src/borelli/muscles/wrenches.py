"""Wrenches that muscles under tension apply to the bodies of their paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.muscles.paths import Floats, PathFrames
from borelli.numerics.vectors import cross


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
    owner = np.repeat(np.arange(len(frames.names)), np.diff(first))
    place = np.arange(len(owner)) - first[owner]
    for row, own, total in zip(frames.q, tension, result, strict=True):
        frames.run(row[None])
        used = place < work.node_count[owner]
        pull = own[owner[used], None] * work.node_force[used]
        moment = cross(work.node_position[used].T, pull.T).T
        np.add.at(total, work.node_body[used], np.hstack([moment, pull]))
    return result[:, :-1]

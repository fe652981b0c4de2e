"""Wrenches of muscles on the bodies of a simulated model, and the torques of path points that move in their bodies.

A path point that a coordinate moves in its body (the patella's, moved by the knee) stands for a mechanism that the
model does not have: the force f on it does the power f . axis slope per unit rate of the coordinate. The mechanism
transmits it to the joint as the torque f . axis slope; without it, moment arms and wrenches would not agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.functions import Function
from borelli.model.model import Model
from borelli.muscles.path_kernels.moment_arms import add_body_wrenches
from borelli.muscles.paths import PathFrames
from borelli.numerics.vectors import cross

Array = NDArray[np.float64]


class _Motion(NamedTuple):
    """One motion of a path point along an axis of its body."""

    muscle: int
    point: int
    """Index of the path point among those of all muscles."""
    body: int
    axis: Array
    coordinate: int
    function: Function


class BodyForces:
    """Forces of muscles on bodies, from the paths of the last pose computed by `frames`."""

    def __init__(self, model: Model, frames: PathFrames) -> None:
        self._frames = frames
        self._shared = SharedTuple(frames.arrays), SharedTuple(frames.work)
        bodies = {body.name: b for b, body in enumerate(model.bodies)}
        index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
        self.motions: list[_Motion] = []
        for m, muscle in enumerate(model.muscles):
            for p, point in enumerate(muscle.path):
                for part in point.motion:
                    if part.coordinate is not None:
                        first, body = int(frames.arrays.first_point[m]), bodies.get(point.body, -1)
                        axis, column = np.array(part.axis, float), index[part.coordinate]
                        self.motions.append(_Motion(m, first + p, body, axis, column, part.function))

    def wrenches(self, tension: Array, position: Array) -> Array:
        """Return forces [N] and moments about centers of mass (bodies, 6) [N m] of muscles with tensions [N]."""
        about_origin = np.zeros((len(position), 6))
        add_body_wrenches(*self._shared, tension, about_origin)
        force = about_origin[:, 3:]
        return np.hstack([force, about_origin[:, :3] - cross(position.T, force.T).T])

    def moving_point_torques(self, tension: Array, rotation: Array, q: Array) -> Array:
        """Return the torques (coordinates,) [N m or N] of moving path points.

        Args:
            tension: (muscles,) [N].
            rotation: (bodies, 3, 3) from body axes to the world.
            q: (coordinates,) [rad or m].
        """
        torque, arrays, work = np.zeros(len(q)), self._frames.arrays, self._frames.work
        for m, point, body, axis, coordinate, function in self.motions:
            nodes = slice(arrays.first_node[m], arrays.first_node[m] + work.node_count[m])
            force = work.node_force[nodes][work.node_point[nodes] == point].sum(axis=0)
            direction = rotation[body] @ axis if body >= 0 else axis
            torque[coordinate] += tension[m] * function.slope(float(q[coordinate])) * (direction @ force)
        return torque

"""Prescribed motion of kinematic bodies, which may appear and disappear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import ModelError
from borelli.model.model import Frame, Model
from borelli.numerics.quaternions import conjugate, quaternion_product, rotate, rotation_logarithm
from borelli.physics.state import State

if TYPE_CHECKING:
    from xarray import Dataset

ABSENT_POSITION = np.array([0.0, 0.0, -1e4])
"""Position of a body while it is absent [m]: out of contact with everything."""


@dataclass(frozen=True, slots=True)
class PrescribedMotion:
    """Prescribed motion of a kinematic body."""

    body: str
    frame: Callable[[float], Frame | None]
    """Frame of the body in the world at a time [s]; None while it is absent."""


def prescribe_motion(model: Model, motions: Sequence[PrescribedMotion], step: float) -> Callable[[State, float], None]:
    """Return a function that writes poses, and twists that lead to the poses a step later, at a time [s].

    Raises:
        ModelError: A body is unknown or not kinematic.
    """
    index = {body.name: i for i, body in enumerate(model.bodies)}
    for motion in motions:
        if not model.body(motion.body).kinematic:
            raise ModelError(
                f"body {motion.body!r}: Its motion is prescribed, but it is not kinematic. Set kinematic = true in "
                "the model."
            )

    def write_poses(state: State, time: float) -> None:
        for motion in motions:
            b = index[motion.body]
            center = np.array(model.bodies[b].center_of_mass)
            now = motion.frame(time)
            state.twist[b] = 0.0
            if now is None:
                state.position[b] = ABSENT_POSITION
                continue
            ahead = motion.frame(time + step) or now
            rotation, next_rotation = np.array(now.orientation), np.array(ahead.orientation)
            position = np.array(now.position) + rotate(rotation, center)
            next_position = np.array(ahead.position) + rotate(next_rotation, center)
            state.position[b], state.quaternion[b] = position, rotation
            state.twist[b, :3] = (next_position - position) / step
            state.twist[b, 3:] = rotation_logarithm(quaternion_product(next_rotation, conjugate(rotation))) / step

    return write_poses


def mask_absent_bodies(dataset: Dataset, motions: Sequence[PrescribedMotion]) -> Dataset:
    """Return the dataset with NaN positions of bodies while they are absent.

    Poses are written at the start of a step, so a body is not there yet at the end of the step before it appears.
    """
    absent = np.zeros((dataset.sizes["time"], dataset.sizes["body"]), bool)
    names = list(dataset["body"].values)
    position = dataset["body_position"]
    for motion in motions:
        b = names.index(motion.body)
        away = position.values[:, b, 2] < 0.5 * ABSENT_POSITION[2]
        absent[:, b] = away | [motion.frame(float(t)) is None for t in dataset["time"].values]
    if absent.any():
        dataset = dataset.assign(body_position=position.where(~absent[..., None]).assign_attrs(position.attrs))
    return dataset

"""Paths: kinematic bodies that move as told, come and go."""

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

AWAY = np.array([0.0, 0.0, -1e4])
"""Where a body waits while it is not there [m]: out of anyone's reach."""


@dataclass(frozen=True, slots=True)
class PrescribedMotion:
    """How a kinematic body moves."""

    body: str
    frame: Callable[[float], Frame | None]
    """Its frame in the world at a time [s]; None: it is not there."""


def prescribe_motion(model: Model, paths: Sequence[PrescribedMotion], step: float) -> Callable[[State, float], None]:
    """What puts the bodies of paths where they are at a time [s], with the twists that lead to the end of the step.

    Raises:
        ModelError: a path of a body that is not there or not kinematic.
    """
    index = {body.name: i for i, body in enumerate(model.bodies)}
    for path in paths:
        if not model.body(path.body).kinematic:
            raise ModelError(f"body {path.body!r} has a path, but is not kinematic; make it so in the model")

    def steer(state: State, time: float) -> None:
        for path in paths:
            b = index[path.body]
            center = np.array(model.bodies[b].center_of_mass)
            now = path.frame(time)
            state.twist[b] = 0.0
            if now is None:
                state.position[b] = AWAY
                continue
            ahead = path.frame(time + step) or now
            turn, turned = np.array(now.orientation), np.array(ahead.orientation)
            here = np.array(now.position) + rotate(turn, center)
            there = np.array(ahead.position) + rotate(turned, center)
            state.position[b], state.quaternion[b] = here, turn
            state.twist[b, :3] = (there - here) / step
            state.twist[b, 3:] = rotation_logarithm(quaternion_product(turned, conjugate(turn))) / step

    return steer


def mask_absent_bodies(dataset: Dataset, paths: Sequence[PrescribedMotion]) -> Dataset:
    """The result with bodies of paths at no place (not a number) while they are not there."""
    absent = np.zeros((dataset.sizes["time"], dataset.sizes["body"]), bool)
    names = list(dataset["body"].values)
    for path in paths:
        absent[:, names.index(path.body)] = [path.frame(float(t)) is None for t in dataset["time"].values]
    if absent.any():
        position = dataset["position"]
        dataset = dataset.assign(position=position.where(~absent[..., None]).assign_attrs(position.attrs))
    return dataset

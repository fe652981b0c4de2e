"""Small models that impulse-based control is tested on, and the recursion that a controlled coordinate must follow."""

import numpy as np

from borelli.control.controls import make_controls
from borelli.control.response import PD, coefficients
from borelli.control.targets import targets_from_functions
from borelli.control.track_targets import track_targets
from borelli.model.model import Body, Coordinate, Frame, Joint, Model


def planks(count, length=0.5, gravity=9.8, kind="hinge", free=()):
    """A chain along x from the origin; a positive hinge angle lifts what is beyond it. Thin rods of 1 kg."""
    across = length**2 / 12.0
    inertia = ((0.01 * across, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across))
    bodies = tuple(Body(f"plank_{k}", 1.0, inertia=inertia) for k in range(count))
    joints = tuple(
        Joint(
            f"joint_{k}",
            "ball" if k in free and kind == "ball" else kind,
            f"plank_{k - 1}" if k else "ground",
            f"plank_{k}",
            Frame((0.5 * length if k else 0.0, 0.0, 0.0)),
            Frame((-0.5 * length, 0.0, 0.0)),
            axes=((0.0, -1.0, 0.0),) if kind == "hinge" else (),
            coordinates=coordinates_of(kind, k),
        )
        for k in range(count)
    )
    return Model(f"{count} planks", bodies, joints, gravity=(0.0, 0.0, -gravity))


def coordinates_of(kind, k):
    names = {"hinge": [f"q{k}"], "universal": [f"a{k}", f"b{k}"], "ball": [f"x{k}", f"y{k}", f"z{k}"]}[kind]
    return tuple(Coordinate(name) for name in names)


def follow(model, curves, stiffness=25.0, **given):
    """The dataset of following functions of time, by coordinate (a number stands still), with critical damping."""
    of_time = {name: (curve if callable(curve) else lambda t, value=curve: value) for name, curve in curves.items()}
    limit = given.pop("limit", np.inf)
    return track_targets(model, make_controls(targets_from_functions(model, of_time), PD(stiffness), limit), **given)


def recursion(stiffness, step, error, steps, rate=0.0):
    """Errors (steps + 1,) that `response` predicts: E(h) = a E + b E' with doubled gains, E' = (E - E before) / h."""
    a, b = coefficients(2.0 * stiffness, 4.0 * np.sqrt(stiffness), step)
    errors = [error]
    for _ in range(steps):
        errors.append(a * errors[-1] + b * rate)
        rate = (errors[-1] - errors[-2]) / step
    return np.array(errors)

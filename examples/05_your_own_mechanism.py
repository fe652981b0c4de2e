"""Build a pendulum from a shape, simulate it, and compare its period with the closed form for small swings."""

import numpy as np

import borelli as bo
from borelli.model import Coordinate, Frame, Joint, Model, Shape, body_from_shapes

rod = body_from_shapes("rod", [Shape("capsule", (0.02, 0.25))])
pivot = Joint(
    "pivot",
    "hinge",
    parent="ground",
    child="rod",
    parent_frame=Frame((0.0, 0.0, 1.0)),
    child_frame=Frame((0.0, 0.0, 0.25)),
    axes=((0.0, 1.0, 0.0),),
    coordinates=(Coordinate("angle"),),
)
model = Model("pendulum", (rod,), (pivot,))
result = bo.simulate(model, duration=10.0, step=1 / 1000, initial_coordinates={"angle": 0.05})

angle, time = result["coordinate_value"].sel(coordinate="angle").values, result["time"].values
crossings = time[1:][(angle[:-1] < 0) & (angle[1:] >= 0)]
inertia = rod.inertia[1][1] + rod.mass * 0.25**2
expected = 2 * np.pi * np.sqrt(inertia / (rod.mass * 9.80665 * 0.25))
print(f"period {np.diff(crossings).mean():.4f} s, expected {expected:.4f} s")

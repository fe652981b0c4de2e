import numpy as np
import pytest
import xarray

from borelli.model.formats.native import model_to_text
from borelli.people.human import human


def still(model, times=(0.0, 0.5, 1.0), rise=0.0):
    """Return a dataset in which the bodies keep the reference pose and rise steadily [m/s]."""
    clock = np.array(times)
    position = np.array([body.frame.position for body in model.bodies])
    displacement = np.stack([0 * clock, 0 * clock, rise * clock], axis=-1)
    quaternion = np.array([body.frame.orientation for body in model.bodies])
    count = len(model.bodies)
    zero = np.zeros((len(clock), count, 3))
    names = [c.name for c in model.coordinates]
    return xarray.Dataset(
        {
            "body_position": (("time", "body", "axis"), position + displacement[:, None]),
            "body_orientation": (("time", "body", "quaternion"), np.repeat(quaternion[None], len(clock), axis=0)),
            "ground_reaction_force": (("time", "body", "axis"), zero),
            "kinetic_energy": ("time", 0 * clock),
            "potential_energy": ("time", clock),
            "coordinate_value": (("time", "coordinate"), np.outer(clock, np.arange(len(names)))),
        },
        coords={
            "time": clock,
            "axis": list("xyz"),
            "coordinate": names,
            "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
        },
        attrs={"model": model_to_text(model), "step": 0.5},
    )


@pytest.fixture
def person():
    return still(human())

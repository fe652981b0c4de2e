"""OpenSim's own examples: model, coordinates, plates and the results of its inverse dynamics."""

from functools import cache
from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.motion import Motion, make_motion
from borelli.analysis.opensim_setup import loads_from_setup, read_external_loads
from borelli.model.io import read_model
from borelli.recording.io import read_recording

from ..shared_data import SHARED_DATA

DATA = SHARED_DATA / "opensim"

FILES = {
    "gait10dof18musc": ("subject01.osim", "subject01_walk_IK.mot", "subject01_walk_grf.xml", "subject01_walk_ID.sto"),
    "gait2354": ("subject01_simbody.osim", "subject01_walk1_ik.mot", "subject01_walk1_grf.xml", "inverse_dynamics.sto"),
    "rajagopal2015_run_bmclab": (
        "Rajagopal2015_scaled2.osim", "ik_output_run.mot", "grf_setup.xml", "inverse_dynamics.sto",
    ),
}  # fmt: skip
PLATES = {"rajagopal2015_run_bmclab": "rajagopal2015_run_bmclab/grf_run.mot"}


class Trial(NamedTuple):
    motion: Motion
    loads: Loads
    reference: dict[str, np.ndarray]
    """Generalized forces by coordinate, those of coupled ones moved to their drivers."""


def folder(name=""):
    return DATA / name


def motion_of(model, table):
    """Return the motion of a table of coordinates."""
    names = list(map(str, table.data["coordinate"].values))
    values = table.data["coordinate_value"].values
    q = np.tile([c.default for c in model.coordinates], (len(values), 1))
    for i, coordinate in enumerate(model.coordinates):
        if coordinate.name in names:
            q[:, i] = values[:, names.index(coordinate.name)]
    return make_motion(model, q, table.data["time"].values, table.rate)


@cache
def trial(name):
    where = folder(name)
    osim, ik, grf, moments = FILES[name]
    model = read_model(where / osim)
    motion = motion_of(model, read_recording(where / "reference" / ik))
    plates = read_recording(DATA / PLATES.get(name, "subject01_walk/subject01_walk1_grf.mot"))
    # the run's table has zeros for points of application below some 20 N, where OpenSim applies the force
    loads = loads_from_setup(read_external_loads(where / "setup" / grf), plates, at_origin=name in PLATES)
    table = read_recording(where / "reference" / moments)
    columns = {str(c).rsplit("_", 1)[0]: i for i, c in enumerate(table.data["column"].values)}
    reference = {name: table.data["column_value"].values[:, i].copy() for name, i in columns.items()}
    for coupling in model.couplings:
        reference[coupling.on] += reference.pop(coupling.coordinate)  # all of them are of slope 1
    return Trial(motion, loads, reference)

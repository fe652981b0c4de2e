"""Load sharing against OpenSim's static optimization of the same model, motion and loads, in a process of its own."""

import json
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from borelli.analysis.load_sharing.share_loads import share_loads
from borelli.analysis.load_sharing.sharing_settings import Reserves

from ...shared_data import shared

pytestmark = [pytest.mark.data, pytest.mark.crosscheck]

ACTIVATION, ACTIVATION_RMS, FORCE = 0.01, 0.002, 5.0
"""Largest differences [1, 1, N]: OpenSim's optimizer ends at a tolerance of 1e-4 from a start at zero."""
ARM_NOISE = 1e-9
"""Moment arms [m] below are rounding errors of OpenSim's solver; zero keeps the columns sparse."""


def jobs(name, folder):
    """Return the job of the referee: settings as in the setup files of the OpenSim distribution."""
    base = {"folder": str(folder), "out": str(folder / "out.npz"), "actuators": "", "loads": ""}
    data = shared("opensim")
    if name == "arm26":
        return base | {
            "model": str(data / "arm26/arm26.osim"),
            "coordinates": str(data / "arm26/reference/arm26_InverseKinematics.mot"),
            "cutoff": 6.0, "start": 0.1, "end": 0.9, "step_interval": 5,
        }  # fmt: skip
    loads = folder / "loads.xml"
    text = (data / "gait2392/setup/subject01_walk1_grf.xml").read_text()
    forces = data / "subject01_walk/subject01_walk1_grf.mot"
    loads.write_text(re.sub("<datafile>.*</datafile>", f"<datafile>{forces}</datafile>", text))
    return base | {
        "model": str(data / "gait2392/subject01_simbody_adjusted_StaticOp.osim"),
        "actuators": str(data / "gait2392/setup/gait2392_SO_weak_Residual_Actuators.xml"),
        "coordinates": str(data / "gait2392/reference/StaticOptimization_input_Kinematics.sto"),
        "loads": str(loads), "cutoff": -1.0, "start": 0.9, "end": 1.2, "step_interval": 30,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["arm26", "gait2392"])
def test_activations_and_forces_agree(name, tmp_path, opensim_python):
    job = tmp_path / "job.json"
    job.write_text(json.dumps(jobs(name, tmp_path)))
    referee = Path(__file__).with_name("opensim_so_referee.py")
    ran = subprocess.run(
        [opensim_python, str(referee), str(job)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = np.load(tmp_path / "out.npz")
    muscles = len(found["muscles"])
    activation, control = found["activation"][:, :muscles], found["activation"][:, muscles:]
    np.testing.assert_allclose(activation * found["max_force"], found["force"][:, :muscles], atol=1e-3)
    arm = np.where(np.abs(found["moment_arm"]) > ARM_NOISE, found["moment_arm"], 0.0)
    reserves = Reserves(np.ones(control.shape[1]), found["column"]) if control.size else None
    bounds = {"min_activation": found["lower"], "max_activation": found["upper"], "reserves": reserves}
    produced = np.einsum("fm,fmc->fc", found["force"][:, :muscles], arm)
    produced += np.einsum("fa,fac->fc", control, found["column"])
    objective = (activation**2).sum(axis=1) + (control**2).sum(axis=1)
    for torque in (found["torque"], produced):
        begun = time.process_time()
        result = share_loads(arm, torque, found["max_force"], **bounds)
        seconds = time.process_time() - begun
        assert result.attained.all() and (result.kkt_residual <= 1e-8).all()
        difference = result.activation - activation
        assert np.abs(difference).max() <= ACTIVATION
        assert np.sqrt((difference**2).mean(axis=1)).max() <= ACTIVATION_RMS
        assert np.abs(result.force - found["force"][:, :muscles]).max() <= FORCE
    # for the torque that OpenSim's activations produce: never a higher cost, and never slower
    assert (result.objective <= objective * (1.0 + 1e-9)).all()
    assert seconds < float(re.search(r"seconds (\S+)", ran.stdout)[1])

"""Agreement with OpenSim's inverse kinematics: same model, markers and weights, same angles, no higher cost.

Published motions that are not minima of their setups (gait2392, the BMClab run, OpenCap) are compared by cost, and
OpenSim is run again, to 1e-9, in a process of its own.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import borelli as bo
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.framewise_ik import make_ik_problem
from borelli.analysis.opensim_setup import read_ik_setup
from borelli.analysis.tree_kernels.newton_ik import compute_frame_derivatives

from ...shared_data import SHARED_DATA

pytestmark = pytest.mark.data
DATA = SHARED_DATA / "opensim"
WALK = "subject01_walk/subject01_walk1.trc"


@dataclass
class Trial:
    """Model, recording, setup and the motion published with them."""

    model: str
    markers: str
    setup: str
    published: str

    def __post_init__(self):
        self.body = bo.read_model(DATA / self.model)
        self.recording = bo.read_recording(DATA / self.markers)
        setup = read_ik_setup(DATA / self.setup)
        names = {marker.name for marker in self.body.markers}
        tasks = setup.coordinate_tasks
        self.settings = {
            "weights": {name: w for name, w in setup.marker_weights.items() if name in names},
            "pose_stiffness": {name: task.weight for name, task in tasks.items()},
            "rest": {name: task.value for name, task in tasks.items() if task.value is not None},
        }

    def solve(self):
        self.motion = inverse_kinematics(self.body, self.recording, **self.settings)
        return self.motion

    def read(self, path):
        """Return coordinates (frames, coordinates) of a motion file and their frames in the recording."""
        table = bo.read_recording(path).data["coordinate_value"]
        times = self.recording.data["time"].values
        frames = np.array([np.abs(times - t).argmin() for t in table["time"].values])
        kept = np.abs(times[frames] - table["time"].values) < 0.002  # the files' times are rounded to milliseconds
        found = self.motion.coordinates[frames[kept]].copy()
        for i, c in enumerate(self.body.coordinates):
            if c.name in table["coordinate"].values:
                found[:, i] = table.sel(coordinate=c.name).values[kept]
        return found, frames[kept]

    def difference(self, q, frames):
        """Return the RMS difference [deg] of the free angles."""
        free = [i for i, c in enumerate(self.body.coordinates) if c.rotational and not c.locked]
        apart = q[:, free] - self.motion.coordinates[frames][:, free]
        return np.degrees(np.sqrt(np.mean(apart**2, axis=0)))

    def cost(self, q, frames):
        """Return the sum of the energies of poses."""
        problem = make_ik_problem(self.body, self.recording, **self.settings)
        n, count = len(problem.tree.free), len(frames)
        energy = np.zeros(count)
        compute_frame_derivatives(
            problem.search, problem.rest, problem.target[frames].copy(), problem.weight[frames].copy(), q.copy(),
            energy, np.zeros((count, n)), np.zeros((count, n, n)), np.zeros((count, n, n)),
        )  # fmt: skip
        return energy.sum()

    def cost_ratio(self, q, frames):
        return self.cost(self.motion.coordinates[frames], frames) / self.cost(q, frames)


GAIT10 = (
    "gait10dof18musc/subject01.osim", WALK, "gait10dof18musc/setup/walk_Setup_IK.xml",
    "gait10dof18musc/reference/subject01_walk_IK.mot",
)  # fmt: skip
GAIT2354 = (
    "gait2354/subject01_simbody.osim", WALK, "gait2354/setup/subject01_Setup_IK.xml",
    "gait2354/reference/subject01_walk1_ik.mot",
)  # fmt: skip
GAIT2392 = (
    "gait2392/subject01_simbody.osim", WALK, "gait2392/setup/subject01_Setup_IK.xml",
    "gait2392/reference/subject01_walk1_ik.mot",
)  # fmt: skip
RUN = (
    "rajagopal2015_run_bmclab/Rajagopal2015_scaled2.osim", "rajagopal2015_run_bmclab/motion_capture_run.trc",
    "rajagopal2015_run_bmclab/setup/IK_setup.xml", "rajagopal2015_run_bmclab/reference/ik_output_run.mot",
)  # fmt: skip
OPENCAP = (
    "opencap_subject4/optimized_scale_and_markers.osim", "opencap_subject4/walking1.trc",
    "opencap_subject4/setup/walking1_ik_setup.xml", "opencap_subject4/reference/walking1_ik.mot",
)  # fmt: skip


@pytest.mark.parametrize("files", [GAIT10, GAIT2354], ids=["gait10dof", "gait2354"])
def test_published_angles_agree_within_a_twentieth_of_a_degree(files):
    trial = Trial(*files)
    trial.solve()
    q, frames = trial.read(DATA / trial.published)
    assert len(frames) > 70
    assert trial.difference(q, frames).max() < 0.05
    assert trial.cost_ratio(q, frames) <= 1.0001


@pytest.mark.parametrize("files", [GAIT2392, RUN, OPENCAP], ids=["gait2392", "run", "opencap"])
def test_published_motions_that_are_not_minima_cost_more(files):
    trial = Trial(*files)
    trial.solve()
    q, frames = trial.read(DATA / trial.published)
    ratio = trial.cost_ratio(q, frames)
    print(f"{trial.published}: cost {ratio:.3f} of the published motion's")
    assert ratio < 0.95


@pytest.mark.parametrize("files", [GAIT2392, RUN, OPENCAP], ids=["gait2392", "run", "opencap"])
def test_converged_opensim_agrees(files, tmp_path):
    python = os.environ.get("BORELLI_OPENSIM_PYTHON") or sys.executable
    if find_spec("opensim") is None and python == sys.executable:
        pytest.skip("opensim is not installed: `pip install opensim`")
    trial = Trial(*files)
    trial.solve()
    times = trial.recording.data["time"].values
    start, end = times[len(times) // 3], times[len(times) // 3 + 9]
    command = [
        python, Path(__file__).with_name("opensim_ik_referee.py"), DATA / trial.model, DATA / trial.markers,
        DATA / trial.setup, tmp_path / "ik.mot", "1e-9", f"{start:.3f}", f"{end:.3f}",
    ]  # fmt: skip
    done = subprocess.run(map(str, command), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    q, frames = trial.read(tmp_path / "ik.mot")
    assert len(frames) >= 8
    assert trial.cost_ratio(q, frames) <= 1.0001
    # angles that no marker determines stay at their start
    names = np.array([c.name for c in trial.body.coordinates if c.rotational and not c.locked])
    apart = dict(zip(names, trial.difference(q, frames), strict=True))
    undetermined = {name for name in names if name.startswith(("mtp_angle", "wrist_", "pro_sup"))}
    print(trial.model, {name: round(v, 4) for name, v in apart.items() if v > 0.01})
    assert max(v for name, v in apart.items() if name not in undetermined) < 0.05

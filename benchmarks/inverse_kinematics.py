"""Inverse kinematics compared with OpenSim: gait2392, the same markers and weights, one run.

    python benchmarks/inverse_kinematics.py            # needs BORELLI_DATA (or ../shared/data) and the package opensim

CPU time of one thread; OpenSim in a process of its own, its time that of `InverseKinematicsTool.run` only. The time
of borelli includes everything from the recording to the motion with its body poses and marker errors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import borelli as bo
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.opensim_setup import read_ik_setup

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BORELLI_DATA", ROOT.parent / "shared" / "data")) / "opensim"
MODEL = DATA / "gait2392/subject01_simbody.osim"
MARKERS = DATA / "subject01_walk/subject01_walk1.trc"
SETUP = DATA / "gait2392/setup/subject01_Setup_IK.xml"
ROUNDS = 5


def borelli_time() -> tuple[float, int]:
    """Return CPU time [s] and number of frames."""
    model, recording, setup = bo.read_model(MODEL), bo.read_recording(MARKERS), read_ik_setup(SETUP)
    stiffness = {name: task.weight for name, task in setup.coordinate_tasks.items()}
    start = time.process_time()
    motion = inverse_kinematics(
        model, recording, weights=setup.marker_weights, pose_stiffness=stiffness, hard_limits=True
    )  # fmt: skip
    return time.process_time() - start, len(motion.coordinates)


def opensim_time(accuracy: str) -> tuple[float, int]:
    """Return CPU time [s] and number of frames of OpenSim."""
    referee = ROOT / "tests/analysis/opensim_ik_referee.py"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ik.mot"
        command = [sys.executable, referee, MODEL, MARKERS, SETUP, out, accuracy, "0", "2.5"]
        process = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=True)
        frames = sum(line[:1].isspace() or line[:1].isdigit() for line in out.read_text().splitlines()) - 1
    return float(process.stdout.split()[-1]), frames


def main() -> None:
    """Print times per frame and their ratio."""
    borelli_time()  # loads the kernels
    borelli_us, opensim_us = [], []
    for _ in range(ROUNDS):
        seconds, frames = borelli_time()
        borelli_us.append(1e6 * seconds / frames)
        seconds, frames = opensim_time("1e-5")
        opensim_us.append(1e6 * seconds / frames)
    ratio = median(opensim_us) / median(borelli_us)
    print(
        f"borelli {median(borelli_us):.0f} us per frame, OpenSim {median(opensim_us):.0f} us: {ratio:.0f} times as fast"
    )


if __name__ == "__main__":
    main()

"""Poses from markers beside OpenSim's inverse kinematics: gait2392, the same markers and weights, one run.

    python benchmarks/inverse_kinematics.py            # needs BORELLI_DATA (or ../shared/data) and the package opensim

CPU time of one thread; OpenSim in a process of its own, its time that of `InverseKinematicsTool.run` alone. Ours counts
everything from the recording to the motion with its bodies and marker errors, the search for the first pose included.
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
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.opensim_setup import read_ik_setup

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BORELLI_DATA", ROOT.parent / "shared" / "data")) / "opensim"
MODEL = DATA / "gait2392/subject01_simbody.osim"
MARKERS = DATA / "subject01_walk/subject01_walk1.trc"
SETUP = DATA / "gait2392/setup/subject01_Setup_IK.xml"
ROUNDS = 5


def ours() -> tuple[float, int]:
    """Seconds of CPU time, and frames."""
    model, recording, setup = bo.read_model(MODEL), bo.read_recording(MARKERS), read_ik_setup(SETUP)
    stiffness = {name: task.weight for name, task in setup.coordinate_tasks.items()}
    start = time.process_time()
    motion = inverse_kinematics(
        model, recording, weights=setup.marker_weights, pose_stiffness=stiffness, hard_limits=True
    )  # fmt: skip
    return time.process_time() - start, len(motion.coordinates)


def opensim(accuracy: str) -> tuple[float, int]:
    """The same of OpenSim."""
    referee = ROOT / "tests/analysis/opensim_ik_referee.py"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ik.mot"
        command = [sys.executable, referee, MODEL, MARKERS, SETUP, out, accuracy, "0", "2.5"]
        done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=True)
        frames = sum(line[:1].isspace() or line[:1].isdigit() for line in out.read_text().splitlines()) - 1
    return float(done.stdout.split()[-1]), frames


def main() -> None:
    """Print microseconds a frame and the ratio."""
    ours()  # kernels loaded
    ours_us, theirs_us = [], []
    for _ in range(ROUNDS):
        seconds, frames = ours()
        ours_us.append(1e6 * seconds / frames)
        seconds, frames = opensim("1e-5")
        theirs_us.append(1e6 * seconds / frames)
    ratio = median(theirs_us) / median(ours_us)
    print(f"borelli {median(ours_us):.0f} us a frame, OpenSim {median(theirs_us):.0f} us: {ratio:.0f} times as fast")


if __name__ == "__main__":
    main()

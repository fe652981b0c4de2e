"""Load sharing: borelli, and OpenSim's static optimization of the same model, motion and loads.

`skeleton`: activations of the full skeleton that produce given torques, each frame from the multipliers of the last.
`gait2392`: a walk from coordinates and plates to activations: inverse dynamics, paths, force-length-velocity, sharing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.load_sharing.share_loads import share_loads
from borelli.analysis.motion import Motion, make_motion
from borelli.analysis.muscle_forces import MIN_MOMENT_ARM
from borelli.analysis.opensim_setup import loads_from_setup, read_external_loads
from borelli.bench.metrics import Measurement, summary, timed
from borelli.bench.muscle_paths import PathJob
from borelli.model.io import read_model
from borelli.model.kinematics import root_coordinates
from borelli.muscles.hill import make_muscle_arrays, rigid_tendon_force
from borelli.muscles.paths import muscle_paths
from borelli.recording.io import read_recording

Array = NDArray[np.float64]

REPEATS = 5
TITLES = {
    "skeleton": "full skeleton, activations from torques",
    "gait2392": "gait2392 walk, activations from coordinates and plates",
}
"""Key of the metrics: title."""
MEAN_ACTIVATION, ACTIVATION_SWING = 0.3, 0.2
"""Mean and amplitude of the activations behind the torques of `skeleton`, so that these are attainable."""
FILES = {
    "model": "gait2392/subject01_simbody_adjusted_StaticOp.osim",
    "actuators": "gait2392/setup/gait2392_SO_weak_Residual_Actuators.xml",
    "coordinates": "gait2392/reference/StaticOptimization_input_Kinematics.sto",
    "setup": "gait2392/setup/subject01_walk1_grf.xml",
    "forces": "subject01_walk/subject01_walk1_grf.mot",
}
"""Walk of OpenSim's distribution, in the folder `opensim` of the data."""
START, ENDS, STEP_INTERVAL = 0.9, (0.96, 1.2), 30
"""Time range of OpenSim's run [s], and every how many rows of the 1000 Hz motion it solves a frame. Its time per frame
is the difference of two runs, so that loading of files does not count."""


def opensim_python() -> str | None:
    """Return a Python that can import opensim; None if there is none."""
    if chosen := os.environ.get("BORELLI_OPENSIM_PYTHON"):
        return chosen
    return sys.executable if find_spec("opensim") else None


def missing_files(data: Path | None) -> str | None:
    """Return why the walk cannot be measured; None if it can."""
    if data is None:
        return "the walk of gait2392 needs a folder of data. Pass --data, or set BORELLI_DATA."
    lost = [name for name in FILES.values() if not (data / "opensim" / name).is_file()]
    return f"{data / 'opensim' / lost[0]} does not exist." if lost else None


def measure_skeleton(job: PathJob) -> Measurement:
    """Time load sharing of the full skeleton, per frame, and evaluate its optimality."""
    paths = muscle_paths(job.model, job.rows)
    crossed = np.abs(paths.moment_arm).max(axis=(0, 1)) > MIN_MOMENT_ARM
    arm = np.ascontiguousarray(paths.moment_arm[:, :, crossed])
    force = np.tile([muscle.max_isometric_force for muscle in job.model.muscles], (len(arm), 1))
    phase = 2.0 * np.pi * np.arange(len(arm))[:, None] / len(arm) + np.arange(job.muscles)
    activation = MEAN_ACTIVATION + ACTIVATION_SWING * np.sin(phase)
    torque = np.einsum("fm,fmc->fc", activation * force, arm)
    result = share_loads(arm, torque, force)
    samples = np.array([timed(lambda: share_loads(arm, torque, force)) for _ in range(REPEATS)])
    return summary(
        samples / len(arm), muscles=float(job.muscles), coordinates=float(arm.shape[2]),
        kkt_residual=float(result.kkt_residual.max()), iterations=float(result.iterations.mean()),
    )  # fmt: skip


@cache
def walk(data: Path) -> tuple[Motion, Loads]:
    """Return the motion of the walk and the loads of its plates."""
    files = {key: data / "opensim" / name for key, name in FILES.items()}
    model, table = read_model(files["model"]), read_recording(files["coordinates"])
    names = list(map(str, table.data["coordinate"].values))
    q = np.tile([c.default for c in model.coordinates], (table.data.sizes["time"], 1))
    for i, c in enumerate(model.coordinates):
        if c.name in names:
            q[:, i] = table.data["coordinate_value"].values[:, names.index(c.name)]
    loads = loads_from_setup(read_external_loads(files["setup"]), read_recording(files["forces"]))
    return make_motion(model, q, table.data["time"].values, table.rate), loads


def share_walk(data: Path) -> tuple[Array, Array]:
    """Return activations and forces [N] (frames, muscles) of the walk."""
    motion, loads = walk(data)
    torques = inverse_dynamics(motion, forces=loads, filter="none").data
    model, root = motion.model, set(root_coordinates(motion.model))
    paths = muscle_paths(model, torques["coordinate_value"].values, torques["coordinate_velocity"].values)
    assert paths.velocity is not None
    arrays = make_muscle_arrays(model)
    hill = rigid_tendon_force(arrays, paths.length, paths.velocity)
    crossed = np.abs(paths.moment_arm).max(axis=(0, 1)) > MIN_MOMENT_ARM
    kept = [i for i, name in enumerate(paths.coordinate) if crossed[i] and name not in root]
    result = share_loads(
        paths.moment_arm[:, :, kept], torques["torque"].values[:, kept], hill.active_force,
        min_activation=arrays.min_activation, max_activation=arrays.max_activation,
    )  # fmt: skip
    return result.activation, result.force


def measure_walk(data: Path) -> Measurement:
    """Time the walk, per frame, from coordinates and loads to activations."""
    activation, _ = share_walk(data)
    samples = np.array([timed(lambda: share_walk(data)) for _ in range(REPEATS)]) / len(activation)
    return summary(samples, frames_per_s=1e6 / float(np.median(samples)))


def measure_opensim(data: Path, python: str) -> Measurement:
    """Time OpenSim's static optimization in a process of its own, per frame; compare activations and forces."""
    files = {key: str(data / "opensim" / name) for key, name in FILES.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = Path(files.pop("setup")).read_text()
        text = re.sub("<datafile>.*</datafile>", f"<datafile>{files.pop('forces')}</datafile>", text)
        (folder / "loads.xml").write_text(text)
        job = files | {"loads": str(folder / "loads.xml"), "folder": name, "start": START, "ends": ENDS}
        (folder / "job.json").write_text(json.dumps(job | {"step_interval": STEP_INTERVAL}))
        program = Path(__file__).with_name("opensim_static_optimization.py")
        command = [python, str(program), str(folder / "job.json")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        seconds, frames = found["seconds"], found["frames"]
        tables = [read_recording(folder / f"bench_StaticOptimization_{part}.sto") for part in ("activation", "force")]
    us = 1e6 * (seconds[1] - seconds[0]) / (frames[1] - frames[0])
    model = walk(data)[0].model
    muscles = [muscle.name for muscle in model.muscles]
    time = walk(data)[0].data["time"].values
    rows = [int(np.argmin(np.abs(time - t))) for t in tables[0].data["time"].values]
    differences = {}
    for key, table, own in zip(("activation_difference", "force_difference_n"), tables, share_walk(data), strict=True):
        columns = list(map(str, table.data["column"].values))
        theirs = table.data["column_value"].values[:, [columns.index(name) for name in muscles]]
        differences[key] = float(np.abs(own[rows] - theirs).max())
    return Measurement(us, us, us, {"frames": float(frames[1]), **differences})


def measure_all(
    skeleton: PathJob, data: Path | None, peers: bool
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return the metrics of load sharing by key in the JSON object, and why some are missing."""
    own = measure_skeleton(skeleton)
    result, absent = {"skeleton": {"us": own.us, **own.accuracy}}, {}
    reason = missing_files(data)
    if reason is not None or data is None:
        return result, {"gait2392": str(reason)}
    entry = measure_walk(data)
    result["gait2392"] = {"us": entry.us, **entry.accuracy}
    if peers:
        python = opensim_python()
        if python is None:
            absent["opensim"] = "the Python package opensim is not installed (or set BORELLI_OPENSIM_PYTHON)"
        else:
            found = measure_opensim(data, python)
            names = {"opensim_us": found.us, "opensim_times": found.us / entry.us}
            result["gait2392"] |= names | {f"opensim_{key}": value for key, value in found.accuracy.items()}
    return result, absent

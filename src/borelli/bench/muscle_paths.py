"""Lengths and moment arms of muscles: borelli, and MuJoCo's tendons.

Every coordinate swings about the midpoint of its range, so that wraps open and close. A frame is forward kinematics,
paths and moment arms of all muscles about all coordinates.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from borelli.bench.metrics import Measurement, summary, timed
from borelli.model.formats.mjcf.writer import write_mjcf
from borelli.model.io import read_model
from borelli.model.kinematics import coupled_coordinates
from borelli.model.model import Model
from borelli.muscles.paths import PathFrames, muscle_paths
from borelli.people.full_skeleton import full_skeleton

Array = NDArray[np.float64]

FRAMES = 240
SWING = 0.3
"""Amplitude of each coordinate, as a fraction of its range."""
MAX_SWING_ANGLE, MAX_SWING_LENGTH = 1.5, 0.5
"""Bounds of coordinates without a narrower range [rad, m]."""
REPEATS = 9
DIFFERENCE_STEP = 1e-5
"""Step [rad or m] of the central differences of lengths."""
CHECKED_FRAMES = 5

MODELS = {
    "skeleton": ("borelli's full skeleton", ""),
    "rajagopal2016": ("Rajagopal 2016", "opensim/rajagopal2016/Rajagopal2016.osim"),
    "raabe": ("Raabe 2016, full body", "muscle_models/osim/FBLS_Raabe_fullbody_324.osim"),
    "myolegs": ("MyoSim legs", "muscle_models/mjcf/myo_sim/leg/myolegs.xml"),
}
"""Key of the metrics: title, and file in the folder of data."""
MUJOCO_MODEL = "myolegs"
"""Model whose tendons MuJoCo computes, too."""


@dataclass(frozen=True)
class PathJob:
    """Model and the motion over which its paths are computed."""

    model: Model
    rows: Array
    """(frames, coordinates) [rad or m]"""

    @property
    def muscles(self) -> int:
        """Number of muscles."""
        return len(self.model.muscles)


def available(data: Path | None) -> tuple[dict[str, Path | None], dict[str, str]]:
    """Return the file of each model that can be measured, and why others cannot."""
    found: dict[str, Path | None] = {}
    absent = {}
    for key, (title, name) in MODELS.items():
        if not name:
            found[key] = None
        elif data is None:
            absent[key] = f"{title} needs a folder of models. Pass --data, or set BORELLI_DATA."
        elif not (data / name).is_file():
            absent[key] = f"{data / name} does not exist."
        else:
            found[key] = data / name
    return found, absent


def make_job(path: Path | None, frames: int = FRAMES) -> PathJob:
    """Return the job of a model file; None: borelli's full skeleton."""
    model = full_skeleton(muscles=True) if path is None else read_model(path)
    return PathJob(model, coupled_coordinates(model, swing(model, frames)))


def swing(model: Model, frames: int) -> Array:
    """Return coordinates (frames, coordinates) that swing about the midpoints of their ranges, each in its phase."""
    ranges = []
    for c in model.coordinates:
        low, high = c.usual_range or (c.lower, c.upper)
        most = MAX_SWING_ANGLE if c.rotational else MAX_SWING_LENGTH
        ranges.append((c.default, c.default) if c.locked else (max(low, -most), min(high, most)))
    low, high = np.array(ranges).T
    phase = np.arange(len(low))
    angle = 2.0 * np.pi * np.arange(frames)[:, None] / frames + phase
    return 0.5 * (low + high) + SWING * (high - low) * np.sin(angle)


def measure_paths(job: PathJob) -> Measurement:
    """Time lengths and moment arms of all muscles, per frame; all frames are one kernel call."""
    paths = PathFrames(job.model, job.rows, "exact")
    length = np.zeros((len(job.rows), job.muscles))
    arm = np.zeros((*length.shape, job.rows.shape[1]))
    state = np.zeros((len(job.rows), len(paths.arrays.wrap_object)), np.int64)
    paths.run(paths.q, length, arm, state)
    samples = np.array([timed(lambda: paths.run(paths.q, length, arm, state)) for _ in range(REPEATS)])
    return summary(samples / len(job.rows), wrapped=float((state > 0).sum(axis=1).mean()))


def virtual_work_error(job: PathJob) -> float:
    """Return the largest |R + dl/dq| [m] over some frames, by central differences along every free coordinate."""
    model, worst = job.model, 0.0
    driven = {c.coordinate for c in model.couplings}
    free = [i for i, c in enumerate(model.coordinates) if not c.locked and c.name not in driven]
    for row in job.rows[:: max(len(job.rows) // CHECKED_FRAMES, 1)]:
        moved = np.repeat(row[None], 2 * len(free), axis=0)
        moved[np.arange(len(free)), free] += DIFFERENCE_STEP
        moved[len(free) + np.arange(len(free)), free] -= DIFFERENCE_STEP
        found = muscle_paths(model, np.vstack([row[None], moved]))
        ahead, behind = found.length[1 : 1 + len(free)], found.length[1 + len(free) :]
        same = (found.wrap_state == found.wrap_state[0]).all(axis=1)
        kept = same[1 : 1 + len(free)] & same[1 + len(free) :]  # a length may jump where a wrap opens
        slope = (ahead - behind) / (2.0 * DIFFERENCE_STEP)
        worst = max(worst, float(np.abs(slope + found.moment_arm[0].T[free])[kept].max(initial=0.0)))
    return worst


def measure_mujoco(job: PathJob) -> Measurement:
    """Time MuJoCo's kinematics, tendons and transmissions on the same poses; compare lengths."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        write_mjcf(job.model, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    address = [model.joint(c.name).qposadr[0] for c in job.model.coordinates]
    tendon = {model.actuator(i).name: model.actuator_trnid[i, 0] for i in range(model.nu)}
    order = [tendon[muscle.name] for muscle in job.model.muscles]

    def run() -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_tendon(model, data)
        mujoco.mj_transmission(model, data)

    samples, lengths = [], []
    for row in job.rows:
        data.qpos[address] = row
        samples.append(timed(run, batch=4))
        lengths.append(data.ten_length[order].copy())
    difference = np.abs(muscle_paths(job.model, job.rows).length - lengths).max()
    return summary(np.array(samples), length_difference_m=float(difference))


def measure_all(
    data: Path | None, rounds: int, frames: int, mujoco: bool
) -> tuple[dict[str, dict[str, float]], dict[str, str], PathJob]:
    """Return the metrics of paths by model, why some are missing, and the job of the skeleton.

    MuJoCo and borelli take turns, `rounds` times.
    """
    found, absent = available(data)
    jobs = {key: make_job(path, frames) for key, path in found.items()}
    results: dict[str, list[Measurement]] = {}
    for _ in range(rounds):
        for key, job in jobs.items():
            results.setdefault(key, []).append(measure_paths(job))
            if mujoco and key == MUJOCO_MODEL:
                results.setdefault("mujoco", []).append(measure_mujoco(job))
    entries = {}
    for key, job in jobs.items():
        us = median(one.us for one in results[key])
        entries[key] = {"us": us, "muscles": float(job.muscles), "us_per_muscle": us / job.muscles}
        entries[key] |= results[key][-1].accuracy | {"virtual_work_m": virtual_work_error(job)}
    if "mujoco" in results:
        us = median(one.us for one in results["mujoco"])
        own = {"us": us, "us_per_muscle": us / jobs[MUJOCO_MODEL].muscles} | results["mujoco"][-1].accuracy
        entries[MUJOCO_MODEL] |= {f"mujoco_{key}": value for key, value in own.items()}
    return entries, absent, jobs["skeleton"]

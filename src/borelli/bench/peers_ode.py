"""Open Dynamics Engine (ODE) on the common jobs, through a small C program compiled on demand.

ODE has no maintained Python binding: `ode_driver.c` reads the job from a text file, steps, and prints JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.bench import workload as jobs
from borelli.bench.ground_truth import Motion
from borelli.bench.metrics import Job, Measurement, summary, torque_error, tracking_errors
from borelli.kernels.cache_folder import code_folder
from borelli.model.model import GROUND, Model

Array = NDArray[np.float64]

NAME = "ode"
SOURCE = Path(__file__).with_name("ode_driver.c")
JOINT_CODES = {"free": 0, "ball": 1, "universal": 2, "hinge": 3}
TIME_LIMIT = 120.0
"""Time limit of one run of the driver [s]; the direct step of a chain of 1000 takes seconds."""


@cache
def absent() -> str | None:
    """Return why ODE is not available; None if it is."""
    compiler = shutil.which("cc")
    if compiler is None:
        return "no C compiler (cc) is installed"
    if _driver().exists():
        return None
    _driver().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "ode_driver"
        command = [compiler, "-O2", str(SOURCE), "-o", str(binary), "-lode", "-lm"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            message = next((line for line in result.stderr.splitlines() if "error" in line), "cc failed")
            return f"the ODE driver does not compile (is libode-dev installed?): {message.strip()}"
        shutil.copy(binary, _driver())
    return None


def _driver() -> Path:
    """Return the path of the compiled driver, named by the hash of its source."""
    return code_folder() / f"ode_driver-{sha256(SOURCE.read_bytes()).hexdigest()[:16]}"


def measure_job(job: Job, motion: Motion, solver: str = "step") -> Measurement:
    """Time dWorldStep (or dWorldQuickStep, solver "quick") on a job of the human, one step per frame."""
    steps = job.steps_of(motion)
    switches = job.contacts, job.motors, job.markers
    output = _run(jobs.human(), motion, solver, motion.step, "reset" if job.reset else "free", steps, switches)
    errors = tracking_errors(output["poses"].reshape(steps, -1, 7), motion) if job.markers else {}
    return summary(output["step_us"], contacts=float(np.mean(output["contacts"])), **errors)


def measure_torques(motion: Motion, solver: str = "step") -> Measurement:
    """Time and evaluate unbounded motors that drive every joint along the recording, with prescribed root."""
    steps = motion.frames - 1
    output = _run(jobs.human(), motion, solver, motion.step, "torques", steps)
    torques = output["torques"].reshape(steps, -1)
    return summary(output["step_us"], error_percent=torque_error(torques, motion.torques()))


def measure_chain(links: int, steps: int, solver: str = "step") -> Measurement:
    """Time dWorldStep (or dWorldQuickStep) on a chain falling from rest."""
    return summary(_run(jobs.chain(links), None, solver, jobs.CHAIN_STEP, "free", steps)["step_us"])


def _run(
    model: Model,
    motion: Motion | None,
    solver: str,
    step: float,
    mode: str,
    steps: int,
    switches: tuple[bool, bool, bool] = (False, False, False),
) -> dict[str, Array]:
    """Run the driver and return step_us, contacts, poses and torques as flat arrays.

    The switches add contacts, motors and markers.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(job_text(model, motion))
        file.flush()
        command = [str(_driver()), file.name, solver, repr(step), mode, str(steps), *(str(int(on)) for on in switches)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIME_LIMIT).stdout
    return {name: np.array(values, float) for name, values in json.loads(output).items()}


def job_text(model: Model, motion: Motion | None) -> str:
    """Return the job as numbers for the driver: sizes and ground height, bodies, markers, then the frames.

    A body's line: parent index (-1: ground), joint code, collides, mass, inertia (3), center (3), half extents (3),
    anchor (3), first axis (3), second axis (3).
    """
    names = [body.name for body in model.bodies]
    joints = {joint.child: joint for joint in model.joints}
    height = model.ground[0].frame.position[2] if model.ground else 0.0
    rows: list[list[float]] = [[len(names), len(model.markers), motion.frames if motion else 0, height]]
    for body in model.bodies:
        joint, shape = joints.get(body.name), body.shapes[0]
        axes = [*(joint.axes if joint else ()), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
        parent = names.index(joint.parent) if joint and joint.parent != GROUND else -1
        anchor = np.add(body.frame.position, joint.child_frame.position) if joint else body.frame.position
        half = shape.size if shape.collides else (0.0, 0.0, 0.0)
        inertia = [body.inertia[k][k] for k in range(3)]
        kind = JOINT_CODES[joint.kind] if joint else 0
        rows.append([parent, kind, int(shape.collides and bool(model.ground)), body.mass, *inertia,
                     *body.frame.position, *half, *anchor, *axes[0], *axes[1]])  # fmt: skip
    for marker in model.markers:
        rows.append([names.index(marker.body), *marker.position])
    if motion:
        frames = (motion.frames, -1)
        rows.extend(np.hstack([motion.poses.reshape(frames), motion.markers.reshape(frames)]).tolist())
    return "\n".join(" ".join(repr(float(value)) for value in row) for row in rows) + "\n"

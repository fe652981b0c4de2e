"""borelli on the common jobs: every trajectory is one kernel call."""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.bench import workload as jobs
from borelli.bench.ground_truth import Motion, twists
from borelli.bench.metrics import Job, Measurement, summary, timed, torque_error, tracking_errors
from borelli.kernels.worker_process import start_worker
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.inputs import Drive, Residual
from borelli.physics.run_soft_steps import Record, Simulation, make_record
from borelli.physics.state import Inputs, make_inputs, make_state

Array = NDArray[np.float64]

CHAIN_STEPS = 60
REPEATS = 9
"""Runs of a trajectory; the result is the median of their means per step."""


def measure_job(job: Job, motion: Motion) -> Measurement:
    """Time the soft step on a job of the human, one step per frame."""
    steps, velocity = job.steps_of(motion), twists(motion)
    model = jobs.human() if job.contacts else replace(jobs.human(), ground=())
    # a motor row of compliance CFM is a damper of 1/CFM
    motor = Drive("", damping=1.0 / (jobs.JOINT_SOFTNESS.cfm or 1.0), max_force=jobs.MOTOR_TORQUE)
    drives = [replace(motor, coordinate=c.name) for c in model.coordinates] if job.motors else []
    springs = jobs.MARKER_SOFTNESS if job.markers else None
    compiled = compile_model(model, step=motion.step, drives=drives, marker_springs=springs, balls_as_one=True)
    inputs = make_inputs(compiled, drives=drives, marker=motion.markers[: steps + 1] if job.markers else None)
    reset = (motion.poses[:steps], velocity[:steps]) if job.reset else (None, None)
    samples, record = _time_run(compiled, inputs, steps, (motion.poses[0], velocity[0]), reset)
    errors = tracking_errors(record.pose, motion) if job.markers else {}
    return summary(samples, contacts=float(record.solver_stats[:, 2].mean()), iterations=_iterations(record), **errors)


def measure_torques(motion: Motion) -> Measurement:
    """Time and evaluate hard drives that track the recording, with prescribed root."""
    model = replace(jobs.human(jobs.HARD_JOINT), ground=())
    drives = [Drive(c.name, stiffness=math.inf) for c in model.coordinates]
    residuals = [Residual(model.bodies[0].name, axis) for axis in range(6)]
    compiled = compile_model(model, step=motion.step, drives=drives, residuals=residuals)
    inputs = make_inputs(compiled, drives=drives, pose=motion.poses)
    samples, record = _time_run(compiled, inputs, motion.frames - 1, (motion.poses[0], twists(motion)[0]))
    torques = record.impulse[:, compiled.tables.joints.drive_row] / motion.step
    return summary(samples, error_percent=torque_error(torques, motion.torques()))


def measure_chain(links: int, steps: int) -> Measurement:
    """Time the soft step on a chain falling from rest, with at least `CHAIN_STEPS` steps for a stable median."""
    compiled = compile_model(jobs.chain(links), step=jobs.CHAIN_STEP)
    samples, record = _time_run(compiled, make_inputs(compiled), max(steps, CHAIN_STEPS))
    return summary(samples, iterations=_iterations(record))


def compile_seconds(fresh: bool) -> float:
    """Return the wall time until the kernels can step [s]: in a new process with an empty cache if `fresh`."""
    if not fresh:
        start = time.perf_counter()
        compiled = compile_model(jobs.chain(2), step=jobs.CHAIN_STEP)
        _time_run(compiled, make_inputs(compiled), 1, repeats=0)
        return time.perf_counter() - start
    program = "from borelli.kernels.compile_cache import compile_kernels; print(compile_kernels())"
    with tempfile.TemporaryDirectory() as folder:
        process = start_worker(program, {"BORELLI_CACHE": folder}, stdout=subprocess.PIPE)
        assert process.stdout is not None
        output = process.stdout.read()
        process.wait()
    return float(output)


def _time_run(
    compiled: CompiledModel,
    inputs: Inputs,
    steps: int,
    initial: tuple[Array, Array] | None = None,
    reset: tuple[Array | None, Array | None] = (None, None),
    repeats: int = REPEATS,
) -> tuple[Array, Record]:
    """Simulate in one kernel call, once and then repeatedly; return the CPU times per step [us] and the last record.

    `initial` are poses (bodies, 7) and twists (bodies, 6) at the start, by default at rest in the reference pose;
    `reset` those (steps, bodies, ...) that are set before each step.
    """
    start = make_state(compiled)
    if initial is not None:
        poses, start.twist[:] = initial
        start.position[:], start.quaternion[:] = poses[:, :3], poses[:, 3:]
    record = make_record(compiled, steps)
    simulation = Simulation(compiled, start.copy(), inputs)

    def run() -> None:
        simulation.state.restore(start)
        simulation.index = 0
        simulation.advance(steps, record, poses=reset[0], twists=reset[1])

    run()
    return np.array([timed(run) for _ in range(repeats)]) / steps, record


def _iterations(record: Record) -> float:
    """Return the mean number of factorizations per step."""
    return float(record.solver_stats[:, 0].mean())

"""borelli on the common jobs: every trajectory is one kernel call."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.bench import workload as jobs
from borelli.bench.ground_truth import Motion, torque_truth, twists
from borelli.bench.metrics import Job, Measurement, summary, timed, torque_error, tracking_errors
from borelli.model.model import Model, Softness
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.inputs import Drive, Residual
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.state import make_inputs, make_state

Array = NDArray[np.float64]

CHAIN_STEPS = 60
REPEATS = 9
"""Runs of a trajectory; the result is the median of their means per step."""


@dataclass(frozen=True)
class Trajectory:
    """Inputs of a simulation in one call: row i of each array belongs to step i; None: absent."""

    model: Model
    step: float
    steps: int
    start_poses: Array | None = None
    """(bodies, 7) centers [m] and quaternions; None starts at rest in the reference configuration."""
    start_twists: Array | None = None
    """(bodies, 6)"""
    reset_poses: Array | None = None
    """(steps, bodies, 7) set before each step, with `reset_twists`."""
    reset_twists: Array | None = None
    """(steps, bodies, 6)"""
    marker_targets: Array | None = None
    """(steps, markers, 3) target positions at the end of each step [m]."""
    marker_start: Array | None = None
    """(markers, 3) positions at the start [m]."""
    marker_softness: Softness = jobs.MARKER_SOFTNESS
    contacts: bool = False
    motor_torque: float = 0.0
    """Limit of the motors that keep every coordinate at rest [N m]; 0: no motors."""
    root_poses: Array | None = None
    """(steps + 1, 7) prescribed poses of the root."""
    target_poses: Array | None = None
    """(steps + 1, bodies, 7) targets of hard, unbounded drives at the end of each step."""


@dataclass(frozen=True)
class Outcome:
    """Result of a simulation."""

    poses: Array
    """(steps, bodies, 7) after each step."""
    drive_torques: Array
    """(steps, coordinates) [N m], on the child; balls along the child's axes."""
    contacts: float
    """Mean number of contacts per step."""
    iterations: float
    """Mean number of factorizations per step."""


def measure_job(job: Job, motion: Motion) -> Measurement:
    """Time the soft step on a job of the human, one step per frame."""
    steps = job.steps_of(motion)
    velocity = twists(motion)
    trajectory = Trajectory(
        jobs.human(),
        motion.step,
        steps,
        start_poses=motion.poses[0],
        start_twists=velocity[0],
        reset_poses=motion.poses[:steps] if job.reset else None,
        reset_twists=velocity[:steps] if job.reset else None,
        marker_targets=motion.markers[1 : steps + 1] if job.markers else None,
        marker_start=motion.markers[0] if job.markers else None,
        contacts=job.contacts,
        motor_torque=jobs.MOTOR_TORQUE if job.motors else 0.0,
    )
    samples, outcome = _time_trajectory(trajectory)
    errors = tracking_errors(outcome.poses, motion) if job.markers else {}
    return summary(samples, contacts=outcome.contacts, iterations=outcome.iterations, **errors)


def measure_torques(motion: Motion) -> Measurement:
    """Time and evaluate hard drives that track the recording, with prescribed root."""
    steps = motion.frames - 1
    trajectory = Trajectory(
        jobs.human(jobs.HARD_JOINT),
        motion.step,
        steps,
        start_poses=motion.poses[0],
        start_twists=twists(motion)[0],
        root_poses=motion.poses[:, 0],
        target_poses=motion.poses,
    )
    samples, outcome = _time_trajectory(trajectory)
    truth = torque_truth(motion.fps, motion.frames / motion.fps)
    return summary(samples, error_percent=torque_error(outcome.drive_torques, truth))


def measure_chain(links: int, steps: int) -> Measurement:
    """Time the soft step on a chain falling from rest, with at least `CHAIN_STEPS` steps for a stable median."""
    samples, outcome = _time_trajectory(Trajectory(jobs.chain(links), jobs.CHAIN_STEP, max(steps, CHAIN_STEPS)))
    return summary(samples, iterations=outcome.iterations)


def compile_seconds(fresh: bool) -> float:
    """Return the wall time until the kernels can step [s]: in a new process with an empty cache if `fresh`."""
    if not fresh:
        start = time.perf_counter()
        prepare(Trajectory(jobs.chain(2), jobs.CHAIN_STEP, 1)).run()
        return time.perf_counter() - start
    program = "from borelli.kernels.compile_cache import compile_kernels; print(compile_kernels())"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"BORELLI_CACHE": folder}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(result.stdout)


def _time_trajectory(trajectory: Trajectory) -> tuple[Array, Outcome]:
    """Return the CPU time per step [us] of each repeat, and the result of the last."""
    prepared = prepare(trajectory)
    prepared.run()
    return np.array([timed(prepared.run) for _ in range(REPEATS)]) / trajectory.steps, prepared.outcome()


class PreparedRun(NamedTuple):
    """Simulation whose model is compiled and whose arrays are allocated."""

    run: Callable[[], None]
    """Simulate from start to end in one kernel call; may be called again."""
    outcome: Callable[[], Outcome]
    """Return the result of the last run."""


def prepare(trajectory: Trajectory) -> PreparedRun:
    """Compile the model and allocate the arrays of a trajectory."""
    model = trajectory.model if trajectory.contacts else replace(trajectory.model, ground=())
    drives = _drives(trajectory)
    residuals = [Residual(model.bodies[0].name, axis) for axis in range(6)] if trajectory.root_poses is not None else []
    compiled = compile_model(
        model,
        step=trajectory.step,
        drives=drives,
        marker_springs=trajectory.marker_softness if trajectory.marker_targets is not None else None,
        residuals=residuals,
    )
    inputs = make_inputs(compiled, drives=drives, marker=_markers(trajectory), pose=trajectory.target_poses)
    start = make_state(compiled)
    if trajectory.start_poses is not None:
        start.position[:], start.quaternion[:] = trajectory.start_poses[:, :3], trajectory.start_poses[:, 3:]
    if trajectory.start_twists is not None:
        start.twist[:] = trajectory.start_twists
    record = make_record(compiled, trajectory.steps)
    simulation = Simulation(compiled, start.copy(), inputs)
    drive_rows = compiled.tables.joints.drive_row

    def run() -> None:
        simulation.state.restore(start)
        simulation.index = 0
        simulation.advance(trajectory.steps, record, poses=trajectory.reset_poses, twists=trajectory.reset_twists)

    def outcome() -> Outcome:
        torques = record.impulse[:, drive_rows] / trajectory.step if drives else np.zeros((trajectory.steps, 0))
        return Outcome(
            record.pose, torques, float(record.solver_stats[:, 2].mean()), float(record.solver_stats[:, 0].mean())
        )

    return PreparedRun(run, outcome)


def _drives(trajectory: Trajectory) -> list[Drive]:
    """Return motors that keep coordinates at rest with limited torque, or hard drives that track the recording."""
    names = [coordinate.name for coordinate in trajectory.model.coordinates]
    if trajectory.target_poses is not None:
        return [Drive(name, stiffness=math.inf) for name in names]
    if trajectory.motor_torque > 0.0:
        # a motor row of compliance CFM is a damper of 1/CFM
        damping = 1.0 / (jobs.JOINT_SOFTNESS.cfm or 1.0)
        return [Drive(name, damping=damping, max_force=trajectory.motor_torque) for name in names]
    return []


def _markers(trajectory: Trajectory) -> Array | None:
    """Return marker positions at the start and at the end of every step."""
    if trajectory.marker_targets is None or trajectory.marker_start is None:
        return None
    return np.concatenate([trajectory.marker_start[None], trajectory.marker_targets])

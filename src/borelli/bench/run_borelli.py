"""borelli on the common job: every trajectory is one kernel call, timed whole."""

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
from borelli.bench.metrics import Job, Measured, summary, timed, torque_error, tracking_errors
from borelli.model.model import Model, Softness
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.inputs import Drive, Residual
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.state import make_inputs, make_state

Array = NDArray[np.float64]

CHAIN_STEPS = 60
REPEATS = 9
"""Runs of a trajectory; the figure is the median of their means per step."""


@dataclass(frozen=True)
class Course:
    """A trajectory to be stepped in one call: row i of each array belongs to step i. None: absent."""

    model: Model
    step: float
    steps: int
    start_poses: Array | None = None
    """(bodies, 7) centres [m] and quaternions; None starts at rest in the reference configuration."""
    start_twists: Array | None = None
    """(bodies, 6)"""
    reset_poses: Array | None = None
    """(steps, bodies, 7) put in place before each step, with `reset_twists`."""
    reset_twists: Array | None = None
    """(steps, bodies, 6)"""
    marker_targets: Array | None = None
    """(steps, markers, 3) [m] where the markers shall be at the end of each step."""
    marker_start: Array | None = None
    """(markers, 3) [m] where they are at the start of the first."""
    marker_softness: Softness = jobs.MARKER_SOFTNESS
    contacts: bool = False
    motor_torque: float = 0.0
    """[N m] with which every coordinate is held still; 0: no motors."""
    root_poses: Array | None = None
    """(steps + 1, 7) the path along which the root is led."""
    aim_poses: Array | None = None
    """(steps + 1, bodies, 7) reached at the end of each step by hard, unbounded drives and the led root."""


@dataclass(frozen=True)
class Outcome:
    """What a trajectory left behind."""

    poses: Array
    """(steps, bodies, 7) after each step."""
    drive_torques: Array
    """(steps, coordinates) [N m], on the child; balls along the child's axes."""
    contacts: float
    """Mean number of contacts a step."""
    iterations: float
    """Mean number of factorisations a step."""


def measure_job(job: Job, motion: Motion) -> Measured:
    """The soft step on one of the human's jobs, one step a frame."""
    steps = job.steps_of(motion)
    carried = twists(motion)
    course = Course(
        jobs.human(),
        motion.step,
        steps,
        start_poses=motion.poses[0],
        start_twists=carried[0],
        reset_poses=motion.poses[:steps] if job.reset else None,
        reset_twists=carried[:steps] if job.reset else None,
        marker_targets=motion.markers[1 : steps + 1] if job.markers else None,
        marker_start=motion.markers[0] if job.markers else None,
        contacts=job.contacts,
        motor_torque=jobs.MOTOR_TORQUE if job.motors else 0.0,
    )
    samples, outcome = _timed_course(course)
    found = tracking_errors(outcome.poses, motion) if job.markers else {}
    return summary(samples, contacts=outcome.contacts, iterations=outcome.iterations, **found)


def measure_torques(motion: Motion) -> Measured:
    """Torques of hard drives that lead every joint along the recording, the root prescribed."""
    steps = motion.frames - 1
    course = Course(
        jobs.human(jobs.HARD_JOINT),
        motion.step,
        steps,
        start_poses=motion.poses[0],
        start_twists=twists(motion)[0],
        root_poses=motion.poses[:, 0],
        aim_poses=motion.poses,
    )
    samples, outcome = _timed_course(course)
    truth = torque_truth(motion.fps, motion.frames / motion.fps)
    return summary(samples, error_percent=torque_error(outcome.drive_torques, truth))


def measure_chain(links: int, steps: int) -> Measured:
    """The soft step on a chain falling from rest; more steps than slow peers make, for a steady figure."""
    samples, outcome = _timed_course(Course(jobs.chain(links), jobs.CHAIN_STEP, max(steps, CHAIN_STEPS)))
    return summary(samples, iterations=outcome.iterations)


def compile_seconds(fresh: bool) -> float:
    """Wall time [s] until the kernels can step: in a new process with an empty cache, or (not fresh) as found here."""
    if not fresh:
        start = time.perf_counter()
        prepare(Course(jobs.chain(2), jobs.CHAIN_STEP, 1)).go()
        return time.perf_counter() - start
    program = "from borelli.kernels.compile_cache import compile_kernels; print(compile_kernels())"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"BORELLI_CACHE": folder}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(result.stdout)


def _timed_course(course: Course) -> tuple[Array, Outcome]:
    """CPU time per step [us] of each repeat, and what the last one left."""
    ready = prepare(course)
    ready.go()
    return np.array([timed(ready.go) for _ in range(REPEATS)]) / course.steps, ready.outcome()


class Ready(NamedTuple):
    """A course whose tables are compiled and whose arrays are allocated."""

    go: Callable[[], None]
    """Steps it from its start to its end, in one kernel call; may be called again."""
    outcome: Callable[[], Outcome]
    """What the last time left behind."""


def prepare(course: Course) -> Ready:
    """The course ready to be stepped."""
    model = course.model if course.contacts else replace(course.model, ground=())
    drives = _drives(course)
    led = [Residual(model.bodies[0].name, axis) for axis in range(6)] if course.root_poses is not None else []
    compiled = compile_model(
        model,
        step=course.step,
        drives=drives,
        marker_springs=course.marker_softness if course.marker_targets is not None else None,
        residuals=led,
    )
    inputs = make_inputs(compiled, drives=drives, marker=_markers(course), pose=course.aim_poses)
    start = make_state(compiled)
    if course.start_poses is not None:
        start.position[:], start.quaternion[:] = course.start_poses[:, :3], course.start_poses[:, 3:]
    if course.start_twists is not None:
        start.twist[:] = course.start_twists
    record = make_record(compiled, course.steps)
    simulation = Simulation(compiled, start.copy(), inputs)
    driven = compiled.tables.joints.drive_row

    def go() -> None:
        simulation.state.restore(start)
        simulation.index = 0
        simulation.advance(course.steps, record, poses=course.reset_poses, twists=course.reset_twists)

    def outcome() -> Outcome:
        torques = record.impulse[:, driven] / course.step if drives else np.zeros((course.steps, 0))
        return Outcome(record.pose, torques, float(record.solver_stats[:, 2].mean()), float(record.solver_stats[:, 0].mean()))

    return Ready(go, outcome)


def _drives(course: Course) -> list[Drive]:
    """Motors that hold still with limited torque, or hard drives that lead along the recording."""
    names = [coordinate.name for coordinate in course.model.coordinates]
    if course.aim_poses is not None:
        return [Drive(name, stiffness=math.inf) for name in names]
    if course.motor_torque > 0.0:
        # a motor row of compliance CFM is a damper of 1/CFM
        damping = 1.0 / (jobs.JOINT_SOFTNESS.cfm or 1.0)
        return [Drive(name, damping=damping, max_force=course.motor_torque) for name in names]
    return []


def _markers(course: Course) -> Array | None:
    """Marker positions at the start and at the end of every step."""
    if course.marker_targets is None or course.marker_start is None:
        return None
    return np.concatenate([course.marker_start[None], course.marker_targets])

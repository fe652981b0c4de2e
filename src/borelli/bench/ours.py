"""borelli on the common job: every trajectory is one kernel call, timed whole."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.bench import job as jobs
from borelli.bench.measured import Job, Measured, summary, timed, torque_error, tracking_errors
from borelli.bench.truth import Motion, torque_truth, twists
from borelli.model.model import Model, Softness

Array = NDArray[np.float64]

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
    marker_softness: Softness = jobs.MARKER_SOFTNESS
    contacts: bool = False
    motor_torque: float = 0.0
    """[N m] with which every coordinate is held still; 0: no motors."""
    root_poses: Array | None = None
    """(steps + 1, 7) the path along which the root is led."""
    drive_targets: Array | None = None
    """(steps, coordinates) [rad] reached at the end of each step by hard, unbounded drives with erp 1."""


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
        drive_targets=motion.coordinates[1:],
    )
    samples, outcome = _timed_course(course)
    truth = torque_truth(motion.fps, motion.frames / motion.fps)
    return summary(samples, error_percent=torque_error(outcome.drive_torques, truth))


def measure_chain(links: int, steps: int) -> Measured:
    """The soft step on a chain falling from rest."""
    samples, outcome = _timed_course(Course(jobs.chain(links), jobs.CHAIN_STEP, steps))
    return summary(samples, iterations=outcome.iterations)


def compile_seconds(fresh: bool) -> float:
    """Wall time [s] until the kernels can step: in a new process with an empty cache, or (not fresh) as found here."""
    if not fresh:
        start = time.perf_counter()
        prepare(Course(jobs.chain(2), jobs.CHAIN_STEP, 1))()
        return time.perf_counter() - start
    program = "from borelli.bench import ours; print(ours.compile_seconds(fresh=False))"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"BORELLI_CACHE": folder}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(result.stdout)


def _timed_course(course: Course) -> tuple[Array, Outcome]:
    """CPU time per step [us] of each repeat, and what the last one left."""
    go = prepare(course)
    outcome = go()
    return np.array([timed(go) for _ in range(REPEATS)]) / course.steps, outcome


def prepare(course: Course) -> Callable[[], Outcome]:
    """The course ready to be stepped from its start, as often as called: tables compiled, arrays allocated."""
    raise NotImplementedError("ours.prepare: to be connected to the trajectory kernel of borelli.physics")

"""The common job from its markers alone: angles and torques, frame by frame and smoothed, with and without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import find_initial_pose, inverse_kinematics, solve_poses, make_ik_problem
from borelli.analysis.kinematics.snap_penalty import group_variables, joint_rotation
from borelli.analysis.motion import Motion as Found
from borelli.analysis.tree_kernels.kinematic_tree import make_tree
from borelli.bench import workload as job
from borelli.bench.ground_truth import Motion, motion, torque_truth
from borelli.bench.metrics import Measured, summary, timed
from borelli.model.kinematics import generalized_forces
from borelli.model.model import GROUND, Coordinate, Joint, Model
from borelli.numerics.quaternions import conjugate, quaternion_product, rotation_logarithm
from borelli.recording.recording import Recording, make_dataset

Array = NDArray[np.float64]

NOISE = 1e-3
"""[m] of the noisy job, on every axis of every marker."""
REPEATS = 9
POSE_WAYS = {
    "exact": "converged, exact markers",
    "framewise": "converged, 1 mm noise",
    "smoothed": "smoothed, 1 mm noise",
}
"""Keys of the poses' figures: what they are called."""


def human() -> Model:
    """The job's human with a joint that carries its root, as reduced coordinates want it."""
    model = job.human()
    at = model.bodies[0].frame.position
    shifts = (Coordinate(f"root_{axis}", value, rotational=False) for axis, value in zip("xyz", at, strict=True))
    turns = (Coordinate(f"root_{turn}") for turn in ("roll", "pitch", "yaw"))
    root = Joint("root", "free", GROUND, job.ROOT, coordinates=(*shifts, *turns))
    return replace(model, joints=(root, *model.joints))


def record(truth: Motion, noise: float = 0.0, seed: int = 0) -> Recording:
    """The job's markers as they would be recorded, with Gaussian noise [m] on every axis."""
    shake = noise * np.random.default_rng(seed).normal(size=truth.markers.shape)
    names = [marker.name for marker in job.human().markers]
    return Recording(make_dataset({"marker_position": truth.markers + shake}, {"marker": names}, rate=truth.fps), "common job")


def angle_error(found: Found, truth: Motion) -> float:
    """RMS over frames and the 20 joints of the angle [deg] by which a joint's rotation is off."""
    names = [segment.name for segment in job.segments()]
    parent = [names.index(segment.parent) for segment in job.segments()[1:]]
    both = (found.data["body_orientation"].values, truth.poses[:, :, 3:])
    turned = [quaternion_product(conjugate(q[:, parent]), q[:, 1:]) for q in both]
    angle = np.linalg.norm(rotation_logarithm(quaternion_product(conjugate(turned[0]), turned[1])), axis=-1)
    return float(np.degrees(np.sqrt(np.mean(angle**2))))


def joint_torques(model: Model, q: Array, speeds: Array, accelerations: Array) -> Array:
    """The 48 joint torques [N m] (frames, 48) as `torque_truth` counts them: those of balls along the child's axes."""
    forces = generalized_forces(model, q, speeds, accelerations)
    for turn in group_variables(model, make_tree(model)).rotations:
        spin = joint_rotation(turn, q)[1]
        columns = list(turn.columns)
        forces[:, columns] = np.linalg.solve(spin.swapaxes(1, 2), forces[:, columns, None])[..., 0]
    return forces[:, 6:]


def spline_torques(found: Found) -> Array:
    """The 48 joint torques [N m] of a motion, its derivatives from quintic splines through its frames, unfiltered."""
    from scipy.interpolate import make_interp_spline

    time = np.arange(len(found.coordinates)) / found.rate
    curve = make_interp_spline(time, found.coordinates, k=5)
    return joint_torques(found.model, *(np.asarray(curve(time, order)) for order in range(3)))


def torque_error(found: Found, truth: Motion) -> float:
    """RMS error [N m] of a motion's joint torques, all frames and coordinates."""
    true = torque_truth(truth.fps, truth.frames / truth.fps)
    return float(np.sqrt(np.mean((spline_torques(found) - true) ** 2)))


def measure_converged(truth: Motion | None = None) -> Measured:
    """Time a frame of converged poses of markers without noise, and how far their angles are off.

    The frames are timed from a pose for the first, as for other engines; finding that takes `start_ms`, once.
    """
    truth = truth or motion()
    model, recording = human(), record(truth)
    # every joint shows: no pose springs are needed
    problem = make_ik_problem(model, recording, pose_stiffness=0.0)
    begun = np.array([timed(lambda: find_initial_pose(problem, 0)) for _ in range(REPEATS)])
    poses = np.tile(find_initial_pose(problem, 0), (truth.frames, 1))
    frames = np.arange(truth.frames)
    samples = np.array([timed(lambda: solve_poses(problem, frames, poses, chained=True)) for _ in range(REPEATS)])
    found = inverse_kinematics(model, recording, pose_stiffness=0.0)
    return summary(
        samples / truth.frames, angle_rms_deg=angle_error(found, truth), start_ms=float(np.median(begun)) / 1e3
    )


def measure_noisy(method: str, truth: Motion | None = None) -> Measured:
    """Time a frame of poses of markers with 1 mm noise, and how far angles and torques are off."""
    truth = truth or motion()
    model, recording = human(), record(truth, NOISE)
    found = inverse_kinematics(model, recording, method=method)
    samples = np.array([timed(lambda: inverse_kinematics(model, recording, method=method)) for _ in range(3)])
    errors = {"angle_rms_deg": angle_error(found, truth), "torque_rms_nm": torque_error(found, truth)}
    return summary(samples / truth.frames, **errors)


def measure_all(truth: Motion) -> dict[str, dict[str, float]]:
    """What is told of poses, by the name each way has in the JSON object."""
    ways = {"exact": measure_converged(truth), **{way: measure_noisy(way, truth) for way in ("framewise", "smoothed")}}
    return {name: {"us": measured.us, **measured.accuracy} for name, measured in ways.items()}

"""Inverse kinematics of the common motion, framewise and smoothed, with and without noise; torques from coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.framewise_ik import find_initial_pose, make_ik_problem, solve_poses
from borelli.analysis.kinematics.snap_penalty import group_variables, joint_rotations
from borelli.analysis.motion import Motion as Estimate
from borelli.bench import workload as job
from borelli.bench.ground_truth import Motion
from borelli.bench.metrics import Measurement, joint_angle_rms, summary, timed
from borelli.bench.metrics import torque_error as torque_error_percent
from borelli.dynamics.model_dynamics import ModelDynamics
from borelli.model.kinematics import generalized_forces
from borelli.model.model import GROUND, Coordinate, Joint, Model
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.recording.recording import Recording, make_dataset
from borelli.tree.kinematic_tree import make_tree

Array = NDArray[np.float64]

NOISE = 1e-3
"""Standard deviation of marker noise, along each axis [m]."""
REPEATS = 9
POSE_METHODS = {
    "exact": "framewise, exact markers",
    "framewise": "framewise, 1 mm noise",
    "smoothed": "smoothed, 1 mm noise",
}
"""Key of the metrics: title."""


def human() -> Model:
    """Return the benchmark human with a free joint at its root, as generalized coordinates require."""
    model = job.human()
    position = model.bodies[0].frame.position
    axes = zip("xyz", position, strict=True)
    translations = (Coordinate(f"root_{axis}", value, rotational=False) for axis, value in axes)
    rotations = (Coordinate(f"root_{name}") for name in ("roll", "pitch", "yaw"))
    root = Joint("root", "free", GROUND, job.ROOT, coordinates=(*translations, *rotations))
    return replace(model, joints=(root, *model.joints))


def record(truth: Motion, noise: float = 0.0, seed: int = 0) -> Recording:
    """Return a recording of the markers with Gaussian noise [m] on every axis."""
    error = noise * np.random.default_rng(seed).normal(size=truth.markers.shape)
    names = [marker.name for marker in job.human().markers]
    data = make_dataset({"marker_position": truth.markers + error}, {"marker": names}, rate=truth.fps)
    return Recording(data, "common job")


def angle_error(estimate: Estimate, truth: Motion) -> float:
    """Return the RMS angle error of joint rotations [deg], over frames and the 20 joints."""
    return joint_angle_rms(estimate.data["body_orientation"].values, truth.poses[:, :, 3:])


def joint_torques(model: Model, q: Array, speeds: Array, accelerations: Array) -> Array:
    """Return the 48 joint torques [N m] (frames, 48) as in `torque_truth`: of balls along the axes of the child."""
    return on_children(model, q, generalized_forces(model, q, speeds, accelerations))


def on_children(model: Model, q: Array, forces: Array) -> Array:
    """Return the joint torques [N m] (frames, 48) of forces on coordinates; of balls on axes of the child."""
    forces = forces.copy()
    joints = group_variables(model, make_tree(model)).joints
    for joint, spin in zip(joints, joint_rotations(joints, q)[1], strict=True):
        columns = list(joint.columns)
        forces[:, columns] = np.linalg.solve(spin.swapaxes(1, 2), forces[:, columns, None])[..., 0]
    return forces[:, 6:]


def spline_torques(estimate: Estimate) -> Array:
    """Return the 48 joint torques [N m] of a motion, differentiated by unfiltered quintic splines."""
    time = np.arange(len(estimate.coordinates)) / estimate.rate
    curve = make_interp_spline(time, estimate.coordinates, k=5)
    return joint_torques(estimate.model, *(np.asarray(curve(time, order)) for order in range(3)))


def torque_error(estimate: Estimate, truth: Motion) -> float:
    """Return the RMS error of joint torques [N m], over frames and coordinates."""
    return float(np.sqrt(np.mean((spline_torques(estimate) - truth.torques()) ** 2)))


def measure_rnea(truth: Motion) -> Measurement:
    """Time inverse dynamics in generalized coordinates, on central differences of the recorded coordinates."""
    model = human()
    compiled = compile_model(replace(model, ground=()), step=truth.step)
    q, _ = coordinates_and_velocities(compiled, truth.poses, np.zeros((truth.frames, len(model.bodies), 6)))
    rate = np.diff(q, axis=0) * truth.fps
    mean, change = (rate[:-1] + rate[1:]) / 2, np.diff(rate, axis=0) * truth.fps
    inner, dynamics = np.ascontiguousarray(q[1:-1]), ModelDynamics(model)
    samples = np.array([timed(lambda: dynamics.required_forces(inner, mean, change)) for _ in range(REPEATS)])
    torques = np.zeros((truth.frames - 1, len(dynamics.free) - 6))
    torques[1:] = on_children(model, inner, dynamics.required_forces(inner, mean, change))
    return summary(samples / len(inner), error_percent=torque_error_percent(torques, truth.torques()))


def measure_exact(truth: Motion) -> Measurement:
    """Time framewise inverse kinematics of exact markers, per frame, and evaluate its angles.

    Timing starts with a given first pose, as for other engines; finding that pose takes `start_ms`, once.
    """
    model, recording = human(), record(truth)
    # the markers determine every joint: no rest springs are needed
    problem = make_ik_problem(model, recording, pose_stiffness=0.0)
    start = np.array([timed(lambda: find_initial_pose(problem, 0)) for _ in range(REPEATS)])
    poses = np.tile(find_initial_pose(problem, 0), (truth.frames, 1))
    frames = np.arange(truth.frames)
    samples = np.array([timed(lambda: solve_poses(problem, frames, poses, chained=True)) for _ in range(REPEATS)])
    estimate = inverse_kinematics(model, recording, pose_stiffness=0.0)
    return summary(
        samples / truth.frames, angle_rms_deg=angle_error(estimate, truth), start_ms=float(np.median(start)) / 1e3
    )


def measure_noisy(method: str, truth: Motion) -> Measurement:
    """Time inverse kinematics of markers with 1 mm noise, per frame, and evaluate angles and torques."""
    model, recording = human(), record(truth, NOISE)
    estimate = inverse_kinematics(model, recording, method=method)
    samples = np.array([timed(lambda: inverse_kinematics(model, recording, method=method)) for _ in range(3)])
    errors = {"angle_rms_deg": angle_error(estimate, truth), "torque_rms_nm": torque_error(estimate, truth)}
    return summary(samples / truth.frames, **errors)


def measure_all(truth: Motion) -> dict[str, dict[str, float]]:
    """Return the metrics of inverse kinematics, by key in the JSON object."""
    results = {
        "exact": measure_exact(truth),
        **{method: measure_noisy(method, truth) for method in ("framewise", "smoothed")},
    }
    return {name: {"us": measured.us, **measured.accuracy} for name, measured in results.items()}

"""Live tracking: inverse kinematics and torques of a live source, frame by frame.

Each frame's pose is solved as in framewise inverse kinematics, starting from the extrapolated previous poses: the only
lag is the computing time, which is measured. Torques need accelerations, and so frames on both sides: they belong to an
earlier frame, and come from one simulation step along a cubic through the frames around it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    MAX_ITERATIONS,
    MIN_VISIBLE_MARKERS,
    POSE_STIFFNESS,
    find_initial_pose,
    make_ik_problem,
)
from borelli.analysis.motion import match_markers, to_model_axes
from borelli.analysis.stepped.rollout import Rollout, make_step_inputs, make_step_record
from borelli.analysis.stepped.stepper import StepOptions, compile_stepped, drive_forces, twists_between
from borelli.analysis.tree_kernels.newton_ik import make_ik_search, solve_ik_frames
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats, check_integer
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.state import make_inputs, make_state
from borelli.recording.live import LiveSource
from borelli.recording.recording import Recording, make_dataset

WINDOW = 4
"""Frames on either side of the cubic for a torque."""
DEGREE = 3


@dataclass(frozen=True)
class LivePose:
    """Pose of a live frame.

    Attributes:
        time: Of the frame [s].
        coordinates: (coordinates,) [rad or m]; NaN until enough markers were visible once.
        marker_rms: RMS distance of the visible markers [m].
        torque: (coordinates,) of an earlier frame [N m or N]; None: not requested, or too few frames yet.
        torque_time: Of that earlier frame [s].
        latency: From the frame's arrival until its pose was computed [s].
    """

    time: float
    coordinates: Array
    marker_rms: float
    torque: Array | None
    torque_time: float
    latency: float

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        error = f"{1e3 * self.marker_rms:.1f} mm RMS"
        rows = [("time", f"{self.time:.3f} s"), ("marker error", error), ("latency", f"{1e3 * self.latency:.2f} ms")]
        return Summary("LivePose", [*rows, ("torques", self.torque is not None)])


def live_inverse_kinematics(
    model: Model,
    source: LiveSource,
    *,
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    torques: bool = False,
    window: int = WINDOW,
) -> Iterator[LivePose]:
    """Compute the pose of each frame of a live source as it arrives.

    Args:
        model: A model with markers, fitted to the subject.
        source: Source of marker frames [m].
        weights: Stiffness of the marker springs [N/m], as in `inverse_kinematics`.
        pose_stiffness: Stiffness of the springs to the rest pose [N m/rad or N/m].
        rest: Rest pose by coordinate [rad or m]. Default: the model's default pose.
        torques: Whether to compute torques: without ground reaction forces, the root on its prescribed path.
        window: Delay of the torques in frames, and frames on either side over which they are smoothed.

    Returns:
        Poses in the order of the frames, with the latency of each.

    Yields:
        The pose of each frame.

    Raises:
        SettingsError: The window is too short, or no marker of the model is in the source.

    Examples:
        >>> from borelli.recording import FileSource
        >>> walk = bo.synthetic_recording("walk")
        >>> poses = bo.live_inverse_kinematics(walk.model, FileSource(walk.recording))
        >>> next(poses).coordinates.shape
        (54,)
    """
    if torques:
        check_integer("window of torques", window, 2)
    # any position but the origin, which means a missing marker
    blank = np.ones((1, len(source.markers), 3))
    data = make_dataset({"marker_position": blank}, {"marker": list(source.markers)}, rate=source.rate)
    problem = make_ik_problem(model, Recording(data), weights, pose_stiffness, rest)
    full = problem.weight[0].copy()
    labels = match_markers(problem.markers, source.markers)
    rotation, search = to_model_axes(model), make_ik_search(problem.tree, problem.points, problem.rest_springs)
    shared = SharedTuple(search)
    energy, count = np.zeros(1), np.zeros(1, np.int64)
    q = np.full((1, len(model.coordinates)), np.nan)
    before, gap = q.copy(), 1
    dynamics = _LiveTorques(model, source.rate, window) if torques else None
    for frame in source.frames():
        given = as_floats("markers of a live frame", frame.markers, (len(source.markers), 3), finite=False)
        measured = given[labels] @ rotation.T
        visible = np.asarray(np.isfinite(measured).all(axis=1) & (measured != 0.0).any(axis=1))
        problem.target[0] = np.where(visible[:, None], measured, 0.0)
        problem.weight[0] = full * visible
        rms = np.nan
        if visible.sum() >= MIN_VISIBLE_MARKERS:
            if np.isnan(q[0, 0]):
                q[0] = find_initial_pose(problem, 0)
                before = q.copy()
            else:
                extrapolated = q + (q - before) / gap
                before, gap, q = q, 1, extrapolated
            solve_ik_frames(
                shared, problem.rest, problem.target, problem.weight, q, MAX_ITERATIONS, False, energy, count
            )
            distance = np.linalg.norm(search.energy.point_position - problem.target[0], axis=1)[visible]
            rms = float(np.sqrt(np.mean(distance**2)))
        else:
            gap += 1
        torque, stamp = dynamics.add_frame(frame.time, q[0]) if dynamics else (None, np.nan)
        yield LivePose(frame.time, q[0].copy(), rms, torque, stamp, time.perf_counter() - frame.received)


class _LiveTorques:
    """Torques of the middle of the last frames, by one simulation step."""

    def __init__(self, model: Model, rate: float, window: int) -> None:
        self.compiled, drives, _, _ = compile_stepped(model, 1.0 / rate, False, StepOptions())
        self.rollout = Rollout(self.compiled)
        self.state = make_state(self.compiled)
        bodies = len(model.bodies)
        self.inputs = make_inputs(self.compiled, drives=drives, pose=np.zeros((2, bodies, 7)))
        self.step_inputs = make_step_inputs(self.compiled, pose=np.zeros((1, bodies, 7)))
        self.record = make_step_record(self.compiled, 1)
        self.window = window
        self.last: deque[tuple[float, Array]] = deque(maxlen=2 * window + 1)
        # the cubic through the window, at the frame before the middle, the middle and the one after
        x = np.arange(-window, window + 1, dtype=float)
        fit = np.linalg.pinv(np.vander(x, DEGREE + 1))
        self.smooth = np.vander([-1.0, 0.0, 1.0], DEGREE + 1) @ fit

    def add_frame(self, stamp: float, q: Array) -> tuple[Array | None, float]:
        """Return the torque of the middle frame and its time [s]; None while there are too few frames."""
        self.last.append((stamp, q.copy()))
        if len(self.last) < 2 * self.window + 1 or np.isnan(q).any():
            return None, np.nan
        values = self.smooth @ np.array([value for _, value in self.last])
        poses = np.zeros((3, len(self.state.position), 7))
        speed, joints = np.zeros_like(q), self.compiled.tables.joints
        for pose, value in zip(poses, values, strict=True):
            poses_from_coordinates(joints, value, speed, self.state.position, self.state.quaternion, self.state.twist)
            pose[:, :3], pose[:, 3:] = self.state.position, self.state.quaternion
        self.state.position[:], self.state.quaternion[:] = poses[1, :, :3], poses[1, :, 3:]
        self.state.twist[:] = twists_between(poses[:2], self.compiled.step)[0]
        self.state.coordinate[:] = values[1]
        self.step_inputs.pose[0] = poses[2]
        self.rollout.run(self.state, self.inputs, self.step_inputs, 1, record=self.record)
        return drive_forces(self.compiled, self.record)[0], self.last[self.window][0]

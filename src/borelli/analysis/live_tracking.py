"""Pose and torques of a live source, frame by frame, with the functions that take whole recordings.

Each frame's pose is brought to its least energy, starting from where the frames before lead: it has no lag but the
time the computing takes, which is measured. Torques want accelerations, and so frames on both sides: they are those of
an earlier frame, some frames back, from a cubic through the frames around it, by rows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import (
    MIN_VISIBLE_MARKERS,
    MARKER_STIFFNESS,
    MAX_ITERATIONS,
    POSE_STIFFNESS,
    find_initial_pose,
    make_ik_problem,
)
from borelli.analysis.motion import match_markers, to_model_axes
from borelli.analysis.stepped.rollout import Rollout, make_step_inputs, make_step_record
from borelli.analysis.stepped.stepper import compile_stepped, drive_forces, twists_between
from borelli.analysis.tree_kernels.newton_ik import make_ik_search, solve_ik_frames
from borelli.errors import SettingsError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Model
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.state import make_inputs, make_state
from borelli.recording.live import LiveSource
from borelli.recording.recording import Recording, make_dataset

Array = NDArray[np.float64]

WINDOW = 4
"""Frames on either side that a torque's cubic goes through."""
DEGREE = 3


@dataclass(frozen=True)
class LivePose:
    """What is known when a frame has come.

    Attributes:
        time: Of the frame [s].
        coordinates: (coordinates,) [rad or m]; not a number while too few markers were ever seen.
        marker_rms: Root mean square distance of the markers seen [m].
        torque: (coordinates,) [N m or N] of an earlier frame; None: not asked for, or too few frames yet.
        torque_time: Of that frame [s].
        latency: From the frame's arrival until this was known [s].
    """

    time: float
    coordinates: Array
    marker_rms: float
    torque: Array | None
    torque_time: float
    latency: float


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
    """Pose by pose, as frames come; arguments as those of `inverse_kinematics`.

    Args:
        model: A model with markers, fitted to the subject.
        source: Of marker frames.
        weights: Of the markers [N/m].
        pose_stiffness: Of the springs to the rest pose.
        rest: The rest pose.
        torques: Whether torques are wanted: without ground forces, the root held on its path.
        window: Frames by which torques are late, and on either side of which they are smoothed.
    """
    if torques and window < 2:
        raise SettingsError(f"window is {window}; a cubic wants at least 2 frames on either side")
    # anywhere but at the origin, which stands for a marker that was not seen
    blank = np.ones((1, len(source.markers), 3))
    data = make_dataset({"marker_position": blank}, {"marker": list(source.markers)}, rate=source.rate)
    problem = make_ik_problem(model, Recording(data), weights, pose_stiffness, rest)
    full = problem.weight[0].copy()
    labels = match_markers(problem.markers, source.markers)
    turn, search = to_model_axes(model), make_ik_search(problem.tree, problem.points, problem.rest_springs)
    shared = SharedTuple(search)
    energy, count = np.zeros(1), np.zeros(1, np.int64)
    q = np.full((1, len(model.coordinates)), np.nan)
    before, gap = q.copy(), 1
    dynamics = _LiveTorques(model, source.rate, window) if torques else None
    for frame in source.frames():
        seen = frame.markers[labels] @ turn.T
        visible = np.asarray(np.isfinite(seen).all(axis=1) & (seen != 0.0).any(axis=1))
        problem.target[0] = np.where(visible[:, None], seen, 0.0)
        problem.weight[0] = full * visible
        rms = np.nan
        if visible.sum() >= MIN_VISIBLE_MARKERS:
            if np.isnan(q[0, 0]):
                q[0] = find_initial_pose(problem, 0)
                before = q.copy()
            else:
                guess = q + (q - before) / gap
                before, gap = q, 1
                q = guess
            solve_ik_frames(
                shared, problem.rest, problem.target, problem.weight, q, MAX_ITERATIONS, False, energy, count
            )
            away = np.linalg.norm(search.energy.point_position - problem.target[0], axis=1)[visible]
            rms = float(np.sqrt(np.mean(away**2)))
        else:
            gap += 1
        torque, stamp = dynamics.take(frame.time, q[0]) if dynamics else (None, np.nan)
        yield LivePose(frame.time, q[0].copy(), rms, torque, stamp, time.perf_counter() - frame.arrived)


class _LiveTorques:
    """Torques by one step around the middle of the last frames."""

    def __init__(self, model: Model, rate: float, window: int) -> None:
        self.compiled, drives, _, _ = compile_stepped(model, 1.0 / rate, contacts=False)
        self.rollout = Rollout(self.compiled)
        self.state = make_state(self.compiled)
        bodies = len(model.bodies)
        self.inputs = make_inputs(self.compiled, drives=drives, pose=np.zeros((2, bodies, 7)))
        self.step_inputs, self.record = (
            make_step_inputs(self.compiled, pose=np.zeros((1, bodies, 7))),
            make_step_record(self.compiled, 1),
        )
        self.window = window
        self.last: deque[tuple[float, Array]] = deque(maxlen=2 * window + 1)
        # the cubic through the window, at the frame before the middle, the middle and the one after
        x = np.arange(-window, window + 1, dtype=float)
        fit = np.linalg.pinv(np.vander(x, DEGREE + 1))
        self.smooth = np.vander([-1.0, 0.0, 1.0], DEGREE + 1) @ fit

    def take(self, stamp: float, q: Array) -> tuple[Array | None, float]:
        """The torque of the middle frame and its time, once there are frames enough."""
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

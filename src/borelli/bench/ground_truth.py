"""Common motion of the benchmark and its joint torques, exact to rounding.

A squat with flat feet while every joint of the upper body swings: all joint angles are sines of time, so velocities
and accelerations are in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.bench.workload import ROOT, Segment, human, markers, segments
from borelli.numerics.quaternions import (
    conjugate,
    quaternion_product,
    rotation_exponential,
    rotation_logarithm,
    rotation_matrix,
)

Array = NDArray[np.float64]

SEED = 7
SQUAT_ANGLE, SQUAT_RATE = 0.35, 0.5
"""Largest angle of the thigh [rad], and squats per second [Hz]."""
ELBOW_REST = -0.5
"""Mean elbow angle [rad]."""
GRAVITY = np.array([0.0, 0.0, -9.81])
"""[m/s^2]"""
ANKLE = "left_foot"
"""Joint that the path of the root keeps fixed (the motion is symmetric below the pelvis)."""


@dataclass(frozen=True)
class Motion:
    """Recorded motion. Frame i is at time i / fps."""

    fps: float
    poses: Array
    """(frames, 21, 7) center of mass [m] and quaternion (w, x, y, z) of every segment."""
    markers: Array
    """(frames, 41, 3) [m]"""
    angles: Array
    """(frames, 48) per joint [rad]: ball = rotation vector; universal, hinge = angle about each axis."""

    @property
    def coordinates(self) -> Array:
        """Coordinates of the model (frames, 48) [rad]: as `angles`, with ball joints as Cardan angles about x, y, z."""
        parts = []
        for part in self.joint_positions():
            if part.shape[1] == 4:
                r = rotation_matrix(part)
                x, y = np.arctan2(-r[:, 1, 2], r[:, 2, 2]), np.arcsin(r[:, 0, 2])
                part = np.stack([x, y, np.arctan2(-r[:, 0, 1], r[:, 0, 0])], axis=1)
            parts.append(part)
        return np.hstack(parts)

    def joint_positions(self) -> list[Array]:
        """Return quaternions (frames, 4) of ball joints, angles (frames, axes) [rad] of others, from root to leaves."""
        moving = segments()[1:]
        parts = np.split(self.angles, np.cumsum([segment.degrees_of_freedom for segment in moving])[:-1], axis=1)
        return [
            rotation_exponential(part) if segment.joint == "ball" else part
            for segment, part in zip(moving, parts, strict=True)
        ]

    def torques(self) -> Array:
        """Return the true joint torques [N m] (frames, 48), see `torque_truth`."""
        return torque_truth(self.fps, self.frames / self.fps)

    @property
    def step(self) -> float:
        """Time between frames [s]."""
        return 1.0 / self.fps

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.poses)


@dataclass(frozen=True)
class Wave:
    """Angles [rad] of one joint over time, (frames, axes), with their first and second derivatives."""

    value: Array
    rate: Array
    rate2: Array


@dataclass(frozen=True)
class Kinematics:
    """World pose and motion of one segment over time, at its center of mass."""

    rotation: Array
    """(frames, 3, 3) body to world"""
    quaternion: Array
    angular_velocity: Array
    angular_acceleration: Array
    position: Array
    velocity: Array
    acceleration: Array

    def at(self, offset: Array) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration of a point at `offset` [m] in the frame of the segment."""
        r = self.rotation @ offset
        tangential = np.cross(self.angular_velocity, r)
        centripetal = np.cross(self.angular_velocity, tangential)
        acceleration = self.acceleration + np.cross(self.angular_acceleration, r) + centripetal
        return self.position + r, self.velocity + tangential, acceleration


def motion(fps: float = 120.0, seconds: float = 2.0) -> Motion:
    """Return the common motion, sampled at `fps` [Hz]."""
    time = np.arange(int(fps * seconds)) / fps
    bodies = kinematics(time)
    waves = joint_waves(time)
    poses = np.stack([np.hstack([body.position, body.quaternion]) for body in bodies.values()], axis=1)
    points = np.stack([bodies[name].at(np.array(offset))[0] for name, offset in markers()], axis=1)
    return Motion(fps, poses, points, np.hstack([wave.value for wave in waves.values()]))


def torque_truth(fps: float = 120.0, seconds: float = 2.0) -> Array:
    """Return the 48 joint torques on the children [N m] (frames, 48), with prescribed root and no ground.

    Ball joints: along the axes of the child. Universal: about the axis fixed in the parent, then in the child.
    """
    time = np.arange(int(fps * seconds)) / fps
    return inverse_dynamics(kinematics(time), joint_waves(time))[0]


def joint_waves(time: Array) -> dict[str, Wave]:
    """Return the angles of every joint but the root at the given times [s], by the name of its child."""
    random = np.random.default_rng(SEED)
    waves = {}
    for segment in segments():
        amplitude = random.uniform(0.1, 0.3, 3)
        frequency = random.uniform(0.4, 1.0, 3)
        phase = random.uniform(0.0, 6.28, 3)
        if segment.joint == "free":
            continue
        if segment.leg:
            waves[segment.name] = _squat(segment, time)
            continue
        axes = segment.degrees_of_freedom
        swing = _sine(time, amplitude[:axes], frequency[:axes], phase[:axes])
        if segment.name.endswith("_forearm"):
            swing.value[:, 0] += ELBOW_REST
        waves[segment.name] = swing
    return waves


def _sine(time: Array, amplitude: Array, frequency: Array, phase: Array) -> Wave:
    omega = 2.0 * np.pi * frequency
    argument = np.multiply.outer(time, omega) + phase
    value = amplitude * np.sin(argument)
    return Wave(value, amplitude * omega * np.cos(argument), -omega * omega * value)


def _squat(segment: Segment, time: Array) -> Wave:
    """Return the angles of a leg joint in the squat: hip and ankle by the squat angle, the knee by twice as much."""
    omega = 2.0 * np.pi * SQUAT_RATE
    half = SQUAT_ANGLE / 2.0
    cosine, sine = np.cos(omega * time), np.sin(omega * time)
    squat = half * (1.0 - cosine), half * omega * sine, half * omega**2 * cosine
    factor = {"thigh": -1.0, "shin": 2.0, "foot": -1.0, "toes": 0.0}[segment.name.split("_")[1]]
    axis = 1 if segment.joint == "ball" else 0
    parts = []
    for derivative in squat:
        part = np.zeros((len(time), segment.degrees_of_freedom))
        part[:, axis] = factor * derivative
        parts.append(part)
    return Wave(*parts)


def kinematics(time: Array) -> dict[str, Kinematics]:
    """Return pose, velocity and acceleration of every segment, with a root path that keeps the ankle fixed."""
    waves = joint_waves(time)
    fixed_root = _propagate(waves, np.zeros((3, len(time), 3)))
    ankle = next(segment for segment in segments() if segment.name == ANKLE)
    path = fixed_root[ANKLE].at(_offset(ankle.anchor, ankle.center))
    root = -np.stack(path)
    root[0] += ankle.anchor
    root[:, :, 1] = 0.0  # the distance between the ankles is constant
    return _propagate(waves, root)


def _propagate(waves: dict[str, Wave], root_displacement: Array) -> dict[str, Kinematics]:
    """Return kinematics from root to leaves; `root_displacement` includes its first two derivatives."""
    frames = root_displacement.shape[1]
    table = {segment.name: segment for segment in segments()}
    zero = np.zeros((frames, 3))
    bodies = {}
    for name, segment in table.items():
        if name == ROOT:
            upright = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
            eye = np.tile(np.eye(3), (frames, 1, 1))
            bodies[name] = Kinematics(
                eye, upright, zero, zero, root_displacement[0] + segment.center, *root_displacement[1:]
            )
            continue
        parent = bodies[segment.parent]
        relative, velocity, acceleration = _relative_motion(segment, waves[name])
        quaternion = quaternion_product(parent.quaternion, relative)
        rotation = rotation_matrix(quaternion)
        relative_velocity = np.einsum("fij,fj->fi", rotation, velocity)
        angular_velocity = parent.angular_velocity + relative_velocity
        # `velocity` is expressed in axes that rotate with the child
        angular_acceleration = (
            parent.angular_acceleration
            + np.einsum("fij,fj->fi", rotation, acceleration)
            + np.cross(parent.angular_velocity, relative_velocity)
        )
        anchor = parent.at(_offset(segment.anchor, table[segment.parent].center))
        rotations = rotation, quaternion, angular_velocity, angular_acceleration
        center = Kinematics(*rotations, *anchor).at(_offset(segment.center, segment.anchor))
        bodies[name] = Kinematics(*rotations, *center)
    return bodies


def _relative_motion(segment: Segment, wave: Wave) -> tuple[Array, Array, Array]:
    """Return the rotation of the child in the parent, and its angular velocity and acceleration in the child's axes."""
    if segment.joint == "ball":
        return rotation_exponential(wave.value), *_ball_velocity(wave)
    rotations = [rotation_exponential(np.outer(wave.value[:, k], axis)) for k, axis in enumerate(segment.axes)]
    last = np.array(segment.axes[-1])
    velocity, acceleration = np.outer(wave.rate[:, -1], last), np.outer(wave.rate2[:, -1], last)
    if len(rotations) == 1:
        return rotations[0], velocity, acceleration
    # axis of the parent in the frame of the child
    first = np.einsum("fji,j->fi", rotation_matrix(rotations[1]), np.array(segment.axes[0]))
    acceleration = acceleration + wave.rate2[:, :1] * first - wave.rate[:, :1] * np.cross(velocity, first)
    return quaternion_product(rotations[0], rotations[1]), velocity + wave.rate[:, :1] * first, acceleration


def _ball_velocity(wave: Wave) -> tuple[Array, Array]:
    """Return angular velocity and acceleration in the child's axes from a rotation vector v(t).

    w = v' - a v x v' + b v x (v x v'), a = (1 - cos|v|)/|v|^2, b = (|v| - sin|v|)/|v|^3 (derivative of the
    exponential map); w' differentiates this term by term.
    """
    v, dv, ddv = wave.value, wave.rate, wave.rate2
    square = np.sum(v * v, axis=1, keepdims=True)
    small = square < 1e-4
    angle = np.sqrt(np.where(small, 1.0, square))
    # below 0.01 rad the Taylor series is exact to rounding and the quotients are not
    a = np.where(small, 0.5 - square / 24 + square**2 / 720, (1 - np.cos(angle)) / angle**2)
    b = np.where(small, 1 / 6 - square / 120 + square**2 / 5040, (angle - np.sin(angle)) / angle**3)
    slope_a = np.where(small, -1 / 12 + square / 180, (np.sin(angle) / angle - 2 * a) / angle**2)
    slope_b = np.where(small, -1 / 60 + square / 1260, (a - 3 * b) / angle**2)
    dot = np.sum(v * dv, axis=1, keepdims=True)
    once, twice = np.cross(v, dv), np.cross(v, np.cross(v, dv))
    velocity = dv - a * once + b * twice
    acceleration = ddv - a * np.cross(v, ddv) + b * (np.cross(dv, once) + np.cross(v, np.cross(v, ddv)))
    return velocity, acceleration + dot * (slope_b * twice - slope_a * once)


def inverse_dynamics(bodies: dict[str, Kinematics], waves: dict[str, Wave]) -> tuple[Array, Array]:
    """Return the 48 joint torques [N m] (frames, 48), and force and moment on the root at its center (frames, 6).

    Recursive Newton-Euler algorithm (RNEA), from leaves to root.
    """
    table = {segment.name: segment for segment in segments()}
    inertias = {body.name: np.array(body.inertia) for body in human().bodies}
    frames = len(bodies[ROOT].position)
    force = {name: np.zeros((frames, 3)) for name in table}
    moment = {name: np.zeros((frames, 3)) for name in table}
    torques: dict[str, Array] = {}
    for name, segment in reversed(table.items()):
        body = bodies[name]
        inertia = body.rotation @ inertias[name] @ np.swapaxes(body.rotation, 1, 2)
        force[name] += segment.mass * (body.acceleration - GRAVITY)
        angular_momentum = np.einsum("fij,fj->fi", inertia, body.angular_velocity)
        moment[name] += np.einsum("fij,fj->fi", inertia, body.angular_acceleration) + np.cross(
            body.angular_velocity, angular_momentum
        )
        if name == ROOT:
            continue
        anchor = body.at(_offset(segment.anchor, segment.center))[0]
        # moment about the segment's center, moved to the joint, then to the parent's center
        torque = moment[name] + np.cross(body.position - anchor, force[name])
        parent = bodies[segment.parent]
        force[segment.parent] += force[name]
        moment[segment.parent] += torque + np.cross(anchor - parent.position, force[name])
        torques[name] = _along_axes(segment, torque, parent, body)
    return np.hstack([torques[name] for name in waves]), np.hstack([force[ROOT], moment[ROOT]])


def _along_axes(segment: Segment, torque: Array, parent: Kinematics, child: Kinematics) -> Array:
    """Return the components of a world torque (frames, 3) about the axes of the joint."""
    in_child = np.einsum("fji,fj->fi", child.rotation, torque)
    if segment.joint == "ball":
        return in_child
    last = in_child @ np.array(segment.axes[-1])
    if segment.joint == "hinge":
        return last[:, None]
    first = np.einsum("fji,fj->fi", parent.rotation, torque) @ np.array(segment.axes[0])
    return np.stack([first, last], axis=1)


def twists(motion: Motion) -> Array:
    """Return mean velocity and angular velocity (frames - 1, 21, 6) of each segment from frame i to frame i + 1."""
    rotation = quaternion_product(motion.poses[1:, :, 3:], conjugate(motion.poses[:-1, :, 3:]))
    displacement = motion.poses[1:, :, :3] - motion.poses[:-1, :, :3]
    return np.concatenate([displacement, rotation_logarithm(rotation)], axis=-1) * motion.fps


def _offset(point: tuple[float, float, float], origin: tuple[float, float, float]) -> Array:
    return np.array(point) - np.array(origin)

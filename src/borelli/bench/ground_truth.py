"""The common motion and the torques that make it, exact to rounding.

A squat with flat feet while every joint of the upper body swings: all joint angles are sines of time, so velocities
and accelerations are closed formulas and nothing here differentiates numbers.
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
"""[rad] of the thigh at the bottom, and squats a second [Hz]."""
ELBOW_REST = -0.5
"""[rad] about which the forearms swing."""
GRAVITY = np.array([0.0, 0.0, -9.81])
"""[m/s^2]"""
ANKLE = "left_foot"
"""The joint that the root's path keeps in place (the motion is symmetric below the pelvis)."""


@dataclass(frozen=True)
class Motion:
    """The recorded motion. Frame i is at time i / fps."""

    fps: float
    poses: Array
    """(frames, 21, 7) centre of mass [m] and quaternion (w, x, y, z) of every segment."""
    markers: Array
    """(frames, 41, 3) [m]"""
    angles: Array
    """(frames, 48) per joint [rad]: ball = rotation vector; universal, hinge = angle about each axis."""

    @property
    def coordinates(self) -> Array:
        """(frames, 48) the model's coordinates [rad]: as `angles`, but balls as Cardan angles about x, y, z."""
        values = self.angles.copy()
        column = 0
        for segment in segments()[1:]:
            if segment.joint == "ball":
                turn = rotation_matrix(rotation_exponential(self.angles[:, column : column + 3]))
                values[:, column] = np.arctan2(-turn[:, 1, 2], turn[:, 2, 2])
                values[:, column + 1] = np.arcsin(turn[:, 0, 2])
                values[:, column + 2] = np.arctan2(-turn[:, 0, 1], turn[:, 0, 0])
            column += len(segment.axes) or 3
        return values

    @property
    def step(self) -> float:
        """[s] between frames."""
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
    """World pose and motion of one segment over time, at its centre of mass."""

    rotation: Array
    """(frames, 3, 3) body to world"""
    quaternion: Array
    spin: Array
    spin_rate: Array
    position: Array
    velocity: Array
    acceleration: Array

    def at(self, offset: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of a point `offset` [m] from the centre, in the segment's frame."""
        r = self.rotation @ offset
        swing = np.cross(self.spin, r)
        acceleration = self.acceleration + np.cross(self.spin_rate, r) + np.cross(self.spin, swing)
        return self.position + r, self.velocity + swing, acceleration


def motion(fps: float = 120.0, seconds: float = 2.0) -> Motion:
    """The common motion, sampled."""
    time = np.arange(int(fps * seconds)) / fps
    bodies = kinematics(time)
    waves = joint_waves(time)
    poses = np.stack([np.hstack([body.position, body.quaternion]) for body in bodies.values()], axis=1)
    points = np.stack([bodies[name].at(np.array(offset))[0] for name, offset in markers()], axis=1)
    return Motion(fps, poses, points, np.hstack([wave.value for wave in waves.values()]))


def torque_truth(fps: float = 120.0, seconds: float = 2.0) -> Array:
    """The 48 joint torques [N m] (frames, 48) that act on the children, the root led along its path, no ground.

    Balls: along the child's axes. Universals: about the axis fixed in the parent, then that fixed in the child.
    """
    time = np.arange(int(fps * seconds)) / fps
    return inverse_dynamics(kinematics(time), joint_waves(time))[0]


def joint_waves(time: Array) -> dict[str, Wave]:
    """How every joint but the root moves at the given times [s], by the name of its child."""
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
        axes = len(segment.axes) or 3
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
    """The leg's share of the squat: hip and ankle turn by the squat angle, the knee by twice as much."""
    omega = 2.0 * np.pi * SQUAT_RATE
    half = SQUAT_ANGLE / 2.0
    cosine, sine = np.cos(omega * time), np.sin(omega * time)
    squat = half * (1.0 - cosine), half * omega * sine, half * omega**2 * cosine
    share = {"thigh": -1.0, "shin": 2.0, "foot": -1.0, "toes": 0.0}[segment.name.split("_")[1]]
    axis = 1 if segment.joint == "ball" else 0
    parts = []
    for derivative in squat:
        part = np.zeros((len(time), len(segment.axes) or 3))
        part[:, axis] = share * derivative
        parts.append(part)
    return Wave(*parts)


def kinematics(time: Array) -> dict[str, Kinematics]:
    """Pose, velocity and acceleration of every segment, the root moved so that the ankle stays in place."""
    waves = joint_waves(time)
    still = _propagate(waves, np.zeros((3, len(time), 3)))
    ankle = next(segment for segment in segments() if segment.name == ANKLE)
    path = still[ANKLE].at(_offset(ankle.anchor, ankle.center))
    root = np.zeros((3, len(time), 3))
    for derivative, moved in enumerate(path):
        root[derivative] = -moved
    root[0] += ankle.anchor
    root[:, :, 1] = 0.0  # the ankles keep their width by themselves
    return _propagate(waves, root)


def _propagate(waves: dict[str, Wave], root_shift: Array) -> dict[str, Kinematics]:
    """Kinematics from root to leaves; `root_shift` is the root's displacement with its two derivatives."""
    frames = root_shift.shape[1]
    table = {segment.name: segment for segment in segments()}
    zero = np.zeros((frames, 3))
    bodies = {}
    for name, segment in table.items():
        if name == ROOT:
            upright = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
            eye = np.tile(np.eye(3), (frames, 1, 1))
            bodies[name] = Kinematics(eye, upright, zero, zero, root_shift[0] + segment.center, *root_shift[1:])
            continue
        parent = bodies[segment.parent]
        turn, spin, spin_rate = _relative_motion(segment, waves[name])
        quaternion = quaternion_product(parent.quaternion, turn)
        rotation = rotation_matrix(quaternion)
        relative = np.einsum("fij,fj->fi", rotation, spin)
        world_spin = parent.spin + relative
        # `spin` is stated in axes that turn with the child
        world_rate = parent.spin_rate + np.einsum("fij,fj->fi", rotation, spin_rate) + np.cross(parent.spin, relative)
        anchor = parent.at(_offset(segment.anchor, table[segment.parent].center))
        hung = Kinematics(rotation, quaternion, world_spin, world_rate, *anchor)
        center = hung.at(_offset(segment.center, segment.anchor))
        bodies[name] = Kinematics(rotation, quaternion, world_spin, world_rate, *center)
    return bodies


def _relative_motion(segment: Segment, wave: Wave) -> tuple[Array, Array, Array]:
    """Quaternion of the child in the parent; spin and its rate relative to the parent, in the child's axes."""
    if segment.joint == "ball":
        return rotation_exponential(wave.value), *_ball_spin(wave)
    turns = [rotation_exponential(np.outer(wave.value[:, k], axis)) for k, axis in enumerate(segment.axes)]
    last = np.array(segment.axes[-1])
    spin, rate = np.outer(wave.rate[:, -1], last), np.outer(wave.rate2[:, -1], last)
    if len(turns) == 1:
        return turns[0], spin, rate
    # the parent's axis as the child sees it turns back by the second angle
    first = np.einsum("fji,j->fi", rotation_matrix(turns[1]), np.array(segment.axes[0]))
    rate = rate + wave.rate2[:, :1] * first - wave.rate[:, :1] * np.cross(spin, first)
    return quaternion_product(turns[0], turns[1]), spin + wave.rate[:, :1] * first, rate


def _ball_spin(wave: Wave) -> tuple[Array, Array]:
    """Spin in the child's axes, and its rate, from a rotation vector v(t).

    spin = v' - a v x v' + b v x (v x v'), a = (1 - cos|v|)/|v|^2, b = (|v| - sin|v|)/|v|^3 (derivative of the
    exponential map); the rate differentiates this term by term.
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
    turning = np.sum(v * dv, axis=1, keepdims=True)
    once, twice = np.cross(v, dv), np.cross(v, np.cross(v, dv))
    spin = dv - a * once + b * twice
    rate = ddv - a * np.cross(v, ddv) + b * (np.cross(dv, once) + np.cross(v, np.cross(v, ddv)))
    return spin, rate + turning * (slope_b * twice - slope_a * once)


def inverse_dynamics(bodies: dict[str, Kinematics], waves: dict[str, Wave]) -> tuple[Array, Array]:
    """The 48 joint torques [N m] (frames, 48), and the root's wrench (frames, 6): force, moment at its centre.

    Newton and Euler's laws for each segment, summed from leaves to root (recursive Newton-Euler).
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
        angular_momentum = np.einsum("fij,fj->fi", inertia, body.spin)
        moment[name] += np.einsum("fij,fj->fi", inertia, body.spin_rate) + np.cross(body.spin, angular_momentum)
        if name == ROOT:
            continue
        anchor = body.at(_offset(segment.anchor, segment.center))[0]
        # `moment` is about the segment's centre: carried to the joint, then on to the parent's centre
        torque = moment[name] + np.cross(body.position - anchor, force[name])
        parent = bodies[segment.parent]
        force[segment.parent] += force[name]
        moment[segment.parent] += torque + np.cross(anchor - parent.position, force[name])
        torques[name] = _along_axes(segment, torque, parent, body)
    return np.hstack([torques[name] for name in waves]), np.hstack([force[ROOT], moment[ROOT]])


def _along_axes(segment: Segment, torque: Array, parent: Kinematics, child: Kinematics) -> Array:
    """The part of a world torque (frames, 3) about each of the joint's own axes."""
    in_child = np.einsum("fji,fj->fi", child.rotation, torque)
    if segment.joint == "ball":
        return in_child
    last = in_child @ np.array(segment.axes[-1])
    if segment.joint == "hinge":
        return last[:, None]
    first = np.einsum("fji,fj->fi", parent.rotation, torque) @ np.array(segment.axes[0])
    return np.stack([first, last], axis=1)


def twists(motion: Motion) -> Array:
    """(frames - 1, 21, 6) the velocity of each centre and the spin that carry frame i to frame i + 1."""
    turned = quaternion_product(motion.poses[1:, :, 3:], conjugate(motion.poses[:-1, :, 3:]))
    moved = motion.poses[1:, :, :3] - motion.poses[:-1, :, :3]
    return np.concatenate([moved, rotation_logarithm(turned)], axis=-1) * motion.fps


def _offset(point: tuple[float, float, float], origin: tuple[float, float, float]) -> Array:
    return np.array(point) - np.array(origin)

"""Pinocchio on the common jobs: accelerations (ABA) and inverse dynamics (RNEA), which are not complete steps.

It does not step contacts or markers; its times show the cost of linear-time recursions over the same tree.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.bench import workload as jobs
from borelli.bench.ground_truth import Motion
from borelli.bench.metrics import Measurement, summary, timed, torque_error
from borelli.model.model import GROUND, Joint, Model

if TYPE_CHECKING:
    import pinocchio

Array = NDArray[np.float64]

NAME = "pinocchio"
MAX_CHAIN_LINKS = 100
"""createData of 4.1.0 takes 3 s for 100 ball joints, a minute for 160, and did not finish for 320."""


def absent() -> str | None:
    """Return why Pinocchio is not available; None if it is."""
    return None if find_spec("pinocchio") else "the Python package pin is not installed"


def measure_accelerations(motion: Motion) -> Measurement:
    """Time ABA along the recorded motion: a step with joints only, without integration."""
    import pinocchio as pin

    model = build(jobs.human())
    data = model.createData()
    q, v = positions(motion), _velocities(model, motion)
    free = np.zeros(model.nv)
    samples = [timed(partial(pin.aba, model, data, q[i], v[i], free), 4) for i in range(len(v))]
    return summary(np.array(samples))


def measure_torques(motion: Motion) -> Measurement:
    """Time RNEA on central differences of the recorded coordinates."""
    import pinocchio as pin

    model = build(jobs.human())
    data = model.createData()
    q, v = positions(motion), _velocities(model, motion)
    torques = np.zeros((motion.frames - 1, model.nv - 6))
    samples = []
    for i in range(1, motion.frames - 1):
        mean, rate = (v[i - 1] + v[i]) / 2, (v[i] - v[i - 1]) * motion.fps
        samples.append(timed(partial(pin.rnea, model, data, q[i], mean, rate), 4))
        torques[i] = data.tau[6:]
    return summary(np.array(samples), error_percent=torque_error(torques, motion.torques()))


def measure_chain(links: int, steps: int) -> Measurement:
    """Time ABA on a chain at rest."""
    import pinocchio as pin

    model = build(jobs.chain(links))
    data = model.createData()
    q, zero = pin.neutral(model), np.zeros(model.nv)
    return summary(np.array([timed(lambda: pin.aba(model, data, q, zero, zero), 4) for _ in range(steps)]))


def build(model: Model) -> pinocchio.Model:
    """Return the model with Pinocchio's joint types; the frame of a body is at its joint anchor (free: its center)."""
    import pinocchio as pin

    built = pin.Model()
    built.gravity.linear = np.array(model.gravity)
    joints = {joint.child: joint for joint in model.joints}
    numbers, anchors = {GROUND: 0}, {GROUND: np.zeros(3)}
    for body in model.bodies:
        joint = joints.get(body.name)
        parent = joint.parent if joint else GROUND
        center = np.array(body.frame.position)
        # the free root's coordinates are its world pose, so its joint frame starts at the origin
        anchors[body.name] = center + joint.child_frame.position if joint else np.zeros(3)
        placement = pin.SE3(np.eye(3), anchors[body.name] - anchors[parent])
        numbers[body.name] = built.addJoint(numbers[parent], _joint_model(joint), placement, body.name)
        if joint is None:
            anchors[body.name] = center
        lever = center - anchors[body.name]
        inertia = pin.Inertia(body.mass, lever, np.array(body.inertia))
        built.appendBodyToJoint(numbers[body.name], inertia, pin.SE3.Identity())
    return built


def _joint_model(joint: Joint | None) -> pinocchio.JointModel:
    import pinocchio as pin

    if joint is None:
        return pin.JointModelFreeFlyer()
    if joint.kind == "ball":
        return pin.JointModelSpherical()
    axes = [np.array(axis) for axis in joint.axes]
    return pin.JointModelUniversal(*axes) if joint.kind == "universal" else pin.JointModelRevoluteUnaligned(*axes)


def positions(motion: Motion) -> Array:
    """Return the motion in Pinocchio's coordinates (frames, nq), with w last in quaternions."""
    parts = [motion.poses[:, 0, :3], motion.poses[:, 0, 3:], *motion.joint_positions()]
    return np.hstack([part[:, [1, 2, 3, 0]] if part.shape[1] == 4 else part for part in parts])


def _velocities(model: pinocchio.Model, motion: Motion) -> Array:
    """Return the mean velocity (frames - 1, nv) from frame i to frame i + 1."""
    import pinocchio as pin

    q = positions(motion)
    return np.array([pin.difference(model, q[i], q[i + 1]) for i in range(len(q) - 1)]) * motion.fps

"""Common workload: its counts, and its ground truth against mechanics and other engines."""

from collections import Counter

import numpy as np
import pytest

from borelli.bench import ground_truth as truth
from borelli.bench import workload as job
from borelli.model.model import GROUND
from borelli.numerics.quaternions import rotation_matrix


def test_human_has_the_stated_parts():
    human = job.human()
    assert len(human.bodies) == 21
    assert Counter(joint.kind for joint in human.joints) == {"ball": 10, "universal": 8, "hinge": 2}
    assert len(human.coordinates) == 48
    assert len(human.markers) == 41
    assert sum(shape.collides for body in human.bodies for shape in body.shapes) == 4
    left = sum(body.mass for body in human.bodies if body.name.startswith("left_"))
    right = sum(body.mass for body in human.bodies if body.name.startswith("right_"))
    assert left == pytest.approx(right)


def test_joint_anchors_meet_at_rest():
    for model in (job.human(), job.chain(4)):
        origin = {body.name: np.array(body.frame.position) for body in model.bodies} | {GROUND: np.zeros(3)}
        for joint in model.joints:
            parent = origin[joint.parent] + joint.parent_frame.position
            child = origin[joint.child] + joint.child_frame.position
            np.testing.assert_allclose(parent, child, atol=1e-15)


def test_motion_keeps_joints_together_and_feet_flat():
    motion = truth.motion()
    names = [segment.name for segment in job.segments()]
    rotation = rotation_matrix(motion.poses[..., 3:])
    position = dict(zip(names, np.moveaxis(motion.poses[..., :3], 1, 0), strict=True))
    rotations = dict(zip(names, np.moveaxis(rotation, 1, 0), strict=True))
    for joint in job.human().joints:
        ends = [
            position[body] + rotations[body] @ np.array(frame.position)
            for body, frame in ((joint.parent, joint.parent_frame), (joint.child, joint.child_frame))
        ]
        np.testing.assert_allclose(*ends, atol=1e-14)
    for side in ("left", "right"):
        np.testing.assert_allclose(
            rotations[f"{side}_foot"], np.broadcast_to(np.eye(3), rotations["neck"].shape), atol=1e-14
        )
        np.testing.assert_allclose(position[f"{side}_foot"] - position[f"{side}_foot"][0], 0.0, atol=1e-14)


def test_velocities_are_the_derivatives_of_the_poses():
    step = 1e-4
    times = 0.4 + step * np.arange(-1, 2)
    for body in truth.kinematics(times).values():
        central = (body.position[2] - body.position[0]) / (2 * step)
        np.testing.assert_allclose(body.velocity[1], central, atol=1e-6)  # h^2/6 times the third derivative
        np.testing.assert_allclose(body.acceleration[1], (body.velocity[2] - body.velocity[0]) / (2 * step), atol=1e-5)
        np.testing.assert_allclose(
            body.angular_acceleration[1], (body.angular_velocity[2] - body.angular_velocity[0]) / (2 * step), atol=1e-5
        )
        skew = (body.rotation[2] - body.rotation[0]) / (2 * step) @ body.rotation[1].T
        np.testing.assert_allclose(body.angular_velocity[1], [skew[2, 1], skew[0, 2], skew[1, 0]], atol=1e-6)


def test_power_of_all_forces_is_the_rate_of_energy():
    step = 1e-4
    times = np.concatenate([t + step * np.arange(-1, 2) for t in (0.1, 0.7, 1.3)])
    bodies, waves = truth.kinematics(times), truth.joint_waves(times)
    torques, wrench = truth.inverse_dynamics(bodies, waves)
    power = np.sum(wrench[:, :3] * bodies[job.ROOT].velocity, axis=1)  # the root does not rotate
    column = 0
    for segment in job.segments()[1:]:
        count = len(segment.axes) or 3
        own = torques[:, column : column + count]
        column += count
        if segment.joint == "ball":
            relative = bodies[segment.name].angular_velocity - bodies[segment.parent].angular_velocity
            rate = np.einsum("fji,fj->fi", bodies[segment.name].rotation, relative)
        else:
            rate = waves[segment.name].rate
        power += np.sum(own * rate, axis=1)
    energy = np.zeros(len(times))
    for body in job.human().bodies:
        moving = bodies[body.name]
        omega = np.einsum("fji,fj->fi", moving.rotation, moving.angular_velocity)
        energy += 0.5 * body.mass * np.sum(moving.velocity**2, axis=1) + 9.81 * body.mass * moving.position[:, 2]
        energy += 0.5 * np.einsum("fi,ij,fj->f", omega, np.array(body.inertia), omega)
    rate = (energy[2::3] - energy[0::3]) / (2 * step)
    np.testing.assert_allclose(power[1::3], rate, atol=1e-4)  # [W], of tens of watts: h^2 error of the difference


def test_root_force_is_the_sum_of_weight_and_inertial_forces():
    times = np.linspace(0.0, 2.0, 11)
    bodies = truth.kinematics(times)
    _, wrench = truth.inverse_dynamics(bodies, truth.joint_waves(times))
    human = job.human()
    force = sum(body.mass * (bodies[body.name].acceleration - truth.GRAVITY) for body in human.bodies)
    np.testing.assert_allclose(wrench[:, :3], force, atol=1e-10)


def test_cardan_angles_reproduce_the_poses():
    motion = truth.motion(seconds=0.5)
    a, b, c = motion.coordinates[:, :3].T
    zero, one = np.zeros_like(a), np.ones_like(a)

    def about(axis, angle):
        half = np.stack([np.cos(angle / 2), *(np.sin(angle / 2) if k == axis else zero for k in range(3))], axis=-1)
        return rotation_matrix(half)

    assert np.ptp(one * a) > 0.01
    abdomen = rotation_matrix(motion.poses[:, 1, 3:])  # its parent, the pelvis, stays upright
    np.testing.assert_allclose(about(0, a) @ about(1, b) @ about(2, c), abdomen, atol=1e-14)


@pytest.mark.crosscheck
def test_poses_and_torques_agree_with_mujoco():
    mujoco = pytest.importorskip("mujoco")
    from borelli.bench import peers_mujoco
    from borelli.bench.metrics import Job

    motion = truth.motion(fps=6000.0, seconds=0.3)
    model = peers_mujoco.build(job.human(), motion.step, Job("", ""))
    data = mujoco.MjData(model)
    q = peers_mujoco.positions(motion)
    torques = truth.torque_truth(fps=6000.0, seconds=0.3)
    before, after = np.zeros(model.nv), np.zeros(model.nv)
    for frame in range(100, 1700, 400):
        mujoco.mj_differentiatePos(model, before, motion.step, q[frame - 1], q[frame])
        mujoco.mj_differentiatePos(model, after, motion.step, q[frame], q[frame + 1])
        data.qpos[:], data.qvel[:], data.qacc[:] = q[frame], (before + after) / 2, (after - before) / motion.step
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(data.xpos[1:22], motion.poses[frame, :, :3], atol=1e-12)
        np.testing.assert_allclose(data.xquat[1:22], motion.poses[frame, :, 3:], atol=1e-12)
        scale = np.sqrt(np.mean(torques[frame] ** 2))
        np.testing.assert_allclose(data.qfrc_inverse[6:], torques[frame], atol=1e-5 * scale)

"""Response of ball joints, on chains whose bodies rotate as commanded: kinematics alone."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.control.response import PD, coefficients, next_velocity
from borelli.control.stability import MIN_RATIO, spectral_radius
from borelli.errors import SettingsError
from borelli.numerics.quaternions import conjugate, quaternion_product, rotate, rotation_exponential, rotation_logarithm
from tests.control.ball_joint_response import next_rotation, relative_angular_velocity

CRITICAL = PD(25.0)


def quaternion(rotation):
    return np.roll(rotation.as_quat(), 1, axis=-1)


def swaying(joints, t):
    """Rotations of the outer bodies relative to the inner ones; no axis is constant."""
    j = np.arange(joints)
    angles = [0.5 * np.sin(2.0 * t + j), 0.4 * np.sin(1.5 * t + 2 * j), 0.3 * np.cos(2.5 * t + j)]
    return rotation_exponential(np.stack(angles, axis=-1))


def outward(of_joints):
    """Orientations of a chain's bodies, the ground first."""
    bodies = [np.array([1.0, 0.0, 0.0, 0.0])]
    for joint in of_joints:
        bodies.append(quaternion_product(bodies[-1], joint))
    return np.array(bodies)


class Chain:
    """Bodies from the ground outward, on ball joints; each body is the base of the next."""

    def __init__(self, start, target, step):
        self.target, self.step, self.joints = target, step, len(start)
        self.bodies = outward(start)
        self.velocities = np.zeros((len(self.bodies), 3))
        self.time = 0.0

    def targets(self):
        """Targets one step ago, now, and one step ahead."""
        return tuple(self.target(self.joints, self.time + s * self.step) for s in (-1, 0, 1))

    def composed(self, solves):
        """Angular velocities with which each joint rotates as commanded; each solve uses those of the last."""
        pairs = self.bodies[:-1], self.bodies[1:], self.velocities[:-1], self.velocities[1:]
        rotation = next_rotation(CRITICAL, *pairs, self.targets(), self.step)
        velocities = self.velocities
        for _ in range(solves):
            velocities = summed(relative_angular_velocity(rotation, velocities[:-1], self.step))
        return velocities

    def world_vectors(self):
        """Angular velocities of the form that adds vectors in the world."""
        a, b = (CRITICAL.after(np.array(e), np.array(r), self.step) for e, r in ((1.0, 0.0), (0.0, 1.0)))
        before, now, ahead = self.targets()
        base = self.bodies[:-1]
        joint = quaternion_product(conjugate(base), self.bodies[1:])

        def velocity(to, since):
            return rotate(base, rotation_logarithm(quaternion_product(to, conjugate(since)))) / self.step

        rate = self.velocities[1:] - self.velocities[:-1] - velocity(now, before)
        return summed(velocity(ahead, now) + (a - 1.0) * velocity(joint, now) + b * rate / self.step)

    def advance(self, form="composed", solves=8):
        self.velocities = self.world_vectors() if form == "world_vectors" else self.composed(solves)
        self.bodies = quaternion_product(rotation_exponential(self.step * self.velocities), self.bodies)
        self.time += self.step

    def error(self):
        joint = quaternion_product(conjugate(self.bodies[:-1]), self.bodies[1:])
        error = quaternion_product(joint, conjugate(self.target(self.joints, self.time)))
        return np.linalg.norm(rotation_logarithm(error), axis=-1).max()


def summed(relative):
    """Angular velocities of all bodies, the ground's first."""
    return np.concatenate([np.zeros((1, 3)), np.cumsum(relative, axis=0)])


REST = outward([])[[0, 0, 0]]


def last_errors(chain, duration, **how):
    errors = []
    for _ in range(round(duration / chain.step)):
        chain.advance(**how)
        errors.append(chain.error())
    return np.array(errors)[3 * len(errors) // 4 :]


@pytest.mark.parametrize("step", [1 / 60, 1 / 240])
def test_moving_targets_are_tracked(step):
    # adding world vectors leaves 0.013 rad; composed rotations leave what has not decayed in 4 s
    assert last_errors(Chain(swaying(3, 0.7), swaying, step), 4.0, solves=5)[-1] < 9e-8


def test_adding_world_vectors_leaves_an_error_for_any_step():
    # it does not depend on the step; its size is that of the target's motion
    errors = [last_errors(Chain(REST, swaying, step), 3.0, form="world_vectors")[-1] for step in (1 / 60, 1 / 240)]
    assert min(errors) > 0.01 and errors[1] == pytest.approx(errors[0], rel=0.1)


def on_target(step):
    """Return a chain that is and was on its moving targets."""
    chain = Chain(swaying(3, 0.0), swaying, step)
    since = quaternion_product(chain.bodies, conjugate(outward(swaying(3, -step))))
    chain.velocities = rotation_logarithm(since) / step
    return chain


def test_a_joint_released_on_a_moving_target_stays_on_it():
    assert last_errors(on_target(1 / 60), 1.0).max() < 1e-12


def test_one_solve_is_of_first_order_and_two_of_second():
    # axes rotate with unknown angular velocities: with those of the previous step, 7e-4 rad are left at 1/60 s
    one = [last_errors(on_target(step), 2.0, solves=1).max() for step in (1 / 60, 1 / 120)]
    assert one[0] < 1e-3 and np.log2(one[0] / one[1]) == pytest.approx(1.0, abs=0.15)
    two = [last_errors(on_target(step), 2.0, solves=2).max() for step in (1 / 60, 1 / 120)]
    assert two[0] < 1e-5 and np.log2(two[0] / two[1]) == pytest.approx(2.0, abs=0.3)


def random_pairs(count, velocity, seed):
    random = np.random.default_rng(seed)
    base, moved = (quaternion(Rotation.random(count, rng=random)) for _ in range(2))
    return base, moved, *random.uniform(-velocity, velocity, (3, count, 3))


@pytest.mark.parametrize("ratio", [MIN_RATIO, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("pace", [0.3, 1.0, 5.0, 1e4])
def test_errors_decay_from_anywhere_with_any_step(pace, ratio):
    # pace: sqrt(kp) h; 1e4 is kp = 1e8 with h = 1 s. Bodies and targets rotate by up to 1.7 rad a step
    response, h = PD(pace**2, ratio), 1.0
    base, moved, base_velocity, velocity, target_velocity = random_pairs(40, 1.0, 8)
    # steps in which the slower mode falls to 1e-7; two modes that are almost equal take a little longer
    decay = float(spectral_radius(*coefficients(2.0 * pace**2, 4.0 * ratio * pace, h), h))
    steps = 10 + int(np.log(1e-7) / np.log(max(decay, 1e-7)))
    worst = []
    for k in range(steps):
        targets = tuple(rotation_exponential((k + s) * h * target_velocity) for s in (-1, 0, 1))
        rotation = next_rotation(response, base, moved, base_velocity, velocity, targets, h)
        velocity = base_velocity + relative_angular_velocity(rotation, base_velocity, h)
        base, moved = (
            quaternion_product(rotation_exponential(h * w), q) for w, q in ((base_velocity, base), (velocity, moved))
        )
        error = quaternion_product(quaternion_product(conjugate(base), moved), conjugate(targets[2]))
        worst.append(np.linalg.norm(rotation_logarithm(error), axis=-1).max())
    assert worst[-1] < 1e-4


def test_the_error_does_not_depend_on_the_motion_of_target_and_base():
    step = 1 / 30
    base, moved, base_velocity, velocity, target_velocity = random_pairs(40, 2.0, 9)
    joint, relative = quaternion_product(conjugate(base), moved), np.zeros_like(velocity)
    for k in range(60):
        targets = tuple(rotation_exponential((k + s) * step * target_velocity) for s in (-1, 0, 1))
        if k == 0:
            # at the same error, with the same rate: at rest against its moving target
            before = quaternion_product(quaternion_product(joint, conjugate(targets[1])), targets[0])
            rotated = quaternion_product(joint, conjugate(before))
            velocity = base_velocity + relative_velocity_before(base, base_velocity, rotated, step)
        rotation = next_rotation(CRITICAL, base, moved, base_velocity, velocity, targets, step)
        velocity = base_velocity + relative_angular_velocity(rotation, base_velocity, step)
        base, moved = (
            quaternion_product(rotation_exponential(step * w), q) for w, q in ((base_velocity, base), (velocity, moved))
        )
        error = quaternion_product(quaternion_product(conjugate(base), moved), conjugate(targets[2]))
        # the twin: nothing moves but the joint, to a constant target
        one, none = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
        twin = next_rotation(CRITICAL, one, joint, none, relative, (one, one, one), step)
        relative = twin / step
        joint = quaternion_product(rotation_exponential(twin), joint)
        apart = rotation_logarithm(quaternion_product(error, conjugate(joint)))
        assert np.abs(apart).max() < 1e-11


def relative_velocity_before(base, base_velocity, rotated, step):
    """Return m - b of the step that ended now and rotated the joint by `rotated`, relative to the base."""
    # exp(h m) exp(-h b) is that rotation in the world, so exp(h m) = exp(turn) exp(h b)
    rotation = rotation_exponential(rotate(base, rotation_logarithm(rotated)))
    return (
        rotation_logarithm(quaternion_product(rotation, rotation_exponential(step * base_velocity))) / step
        - base_velocity
    )


def test_distant_random_targets_are_reached():
    # the sign as printed by Weinstein et al. 2008 ends at the antipode
    random = np.random.default_rng(2)
    poses = quaternion(Rotation.random(3, rng=random))
    chain = Chain(REST, lambda joints, t: poses, 1 / 60)
    assert last_errors(chain, 4.0, solves=5)[-1] < 2.2e-7


def test_swapping_the_bodies_changes_nothing_on_constant_targets():
    base, moved, base_velocity, velocity, _ = random_pairs(40, 2.0, 4)
    target, step = quaternion(Rotation.random(40, rng=np.random.default_rng(1))), 1 / 60
    forward = next_rotation(CRITICAL, base, moved, base_velocity, velocity, (target,) * 3, step)
    swapped = next_rotation(CRITICAL, moved, base, velocity, base_velocity, (conjugate(target),) * 3, step)
    np.testing.assert_allclose(forward, -swapped, atol=1e-12)


def test_about_one_axis_a_joint_equals_a_coordinate():
    axis, step = np.array([2.0, -1.0, 2.0]) / 3.0, 1 / 60
    chain = Chain(REST[:1], lambda joints, t: rotation_exponential(0.5 * np.sin(2.0 * t) * axis[None]), step)
    x, v = 0.0, 0.0
    for k in range(120):
        target = tuple(0.5 * np.sin(2.0 * step * (k + s)) for s in (-1, 0, 1))
        v = next_velocity(CRITICAL, x, v, target, step)
        x = x + step * v
        chain.advance()
        np.testing.assert_allclose(rotation_logarithm(chain.bodies[1]), x * axis, atol=1e-12)


def test_the_shorter_rotation_is_used():
    # a quaternion with either sign is the same rotation; beyond half a revolution, continuing is shorter
    none, one = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    for angle, sign in ((3.0, 1.0), (3.0, -1.0)):
        moved = sign * rotation_exponential(np.array([0.0, 0.0, angle]))
        rotation = next_rotation(CRITICAL, one, moved, none, none, (one, one, one), 0.1)
        assert rotation[2] == pytest.approx(float(CRITICAL.after(np.array(3.0), np.array(0.0), 0.1)) - 3.0, abs=1e-12)
    past = rotation_exponential(np.array([0.0, 0.0, np.pi + 0.1]))
    assert next_rotation(CRITICAL, one, past, none, none, (one, one, one), 0.1)[2] > 0.0


def test_many_joints_at_once():
    base, moved, base_velocity, velocity, _ = random_pairs(7, 2.0, 5)
    targets = tuple(quaternion(Rotation.random(7, rng=np.random.default_rng(seed))) for seed in (1, 2, 3))
    at_once = next_rotation(CRITICAL, base, moved, base_velocity, velocity, targets, 0.01)
    for i in range(7):
        one = next_rotation(
            CRITICAL, base[i], moved[i], base_velocity[i], velocity[i], tuple(t[i] for t in targets), 0.01
        )
        np.testing.assert_allclose(at_once[i], one, atol=1e-13)


def test_relative_angular_velocity_rotates_the_joint_as_commanded():
    random = np.random.default_rng(6)
    base_velocity, rotation, step = random.normal(size=3), 0.3 * random.normal(size=3), 0.05
    velocity = base_velocity + relative_angular_velocity(rotation, base_velocity, step)
    rotated = Rotation.from_rotvec(-step * base_velocity) * Rotation.from_rotvec(step * velocity)
    np.testing.assert_allclose(rotated.as_rotvec(), rotation, atol=1e-14)


def test_a_step_of_zero_raises():
    one, none = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
    with pytest.raises(SettingsError, match=r"The step is 0.0 s\. Pass a positive"):
        next_rotation(CRITICAL, one, one, none, none, (one, one, one), 0.0)

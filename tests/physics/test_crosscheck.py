"""The same bodies in other engines: accelerations without contact, forces at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, sin

import numpy as np
import pytest

from borelli.bench import peers_mujoco, peers_pinocchio
from borelli.bench import workload as jobs
from borelli.bench.metrics import Job
from borelli.model.model import GROUND, Frame, Model, Softness
from borelli.numerics.quaternions import conjugate, quaternion_product
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.inputs import Drive
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.simulate import initial_state, simulate
from borelli.physics.state import make_inputs

from .worlds import GRAVITY, HALF, advance, crate, heading, on_floor, on_slope

pytestmark = pytest.mark.crosscheck

SAME = 1e-6
"""Relative to the largest acceleration of the state."""
TINY = 1e-8
"""[s] Rows constrain velocities at the start pose of a step, so the second step shows the acceleration, with an error
of first order in h (1e-6 relative at 1e-7 s); rounding adds 1e-16 v / h, 1e-8 m/s^2."""
IN_FLIGHT = Job("flight", "")
ON_GROUND = Job("ground", "", contacts=True)
MODELS = {"human": jobs.human, "chain": lambda softness: jobs.chain(12, softness)}
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Moment:
    """A moving state and borelli's accelerations."""

    model: Model
    position: np.ndarray
    quaternion: np.ndarray
    twist: np.ndarray
    coordinates: dict[str, float]
    acceleration: np.ndarray
    """(n, 6) of the centers of mass [m/s^2], then angular [rad/s^2]; world."""

    def relative_quaternion(self, child: str, parent: str) -> np.ndarray:
        index = {body.name: i for i, body in enumerate(self.model.bodies)}
        turned = self.quaternion[index[child]]
        return turned if parent == GROUND else quaternion_product(conjugate(self.quaternion[index[parent]]), turned)

    def positions(self, scalar_last: bool) -> np.ndarray:
        """Return the generalized positions of other engines: poses of free bodies, quaternions of balls, angles."""
        order = [1, 2, 3, 0] if scalar_last else [0, 1, 2, 3]
        joints = {joint.child: joint for joint in self.model.joints}
        parts = []
        for b, body in enumerate(self.model.bodies):
            joint = joints.get(body.name)
            if joint is None:
                parts += [self.position[b], self.quaternion[b][order]]
            elif joint.kind == "ball":
                parts.append(self.relative_quaternion(body.name, joint.parent)[order])
            else:
                parts.append(np.array([self.coordinates[c.name] for c in joint.coordinates]))
        return np.concatenate(parts)


def moment(name: str, seed: int) -> Moment:
    """Return a model with all joints bent and rotating, thrown as a whole if it is free."""
    model = replace(MODELS[name](Softness(erp=0.0)), ground=())
    compiled = compile_model(model, step=TINY)
    rng = np.random.default_rng(seed)
    names = [coordinate.name for coordinate in model.coordinates]
    coordinates = dict(zip(names, map(float, rng.uniform(-0.7, 0.7, len(names))), strict=True))
    speeds = dict(zip(names, map(float, rng.uniform(-3.0, 3.0, len(names))), strict=True))
    state = initial_state(compiled, coordinates=coordinates, velocities=speeds)
    if name == "human":
        spin = rng.uniform(-2.0, 2.0, 3)
        state.twist[:, :3] += rng.uniform(-1.0, 1.0, 3) + np.cross(spin, state.position - state.position[0])
        state.twist[:, 3:] += spin
    start = state.copy()
    record = advance(Simulation(compiled, state, make_inputs(compiled)), 2)
    acceleration = (record.twist[1] - record.twist[0]) / TINY
    return Moment(model, start.position, start.quaternion, start.twist, coordinates, acceleration)


def check_same(found: np.ndarray, ours: np.ndarray) -> None:
    for part in (slice(0, 3), slice(3, 6)):
        assert np.abs(found[:, part] - ours[:, part]).max() < SAME * np.abs(found[:, part]).max()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_mujoco_accelerates_bodies_alike(name, seed):
    mujoco = pytest.importorskip("mujoco")
    at = moment(name, seed)
    model = peers_mujoco.build(at.model, TINY, IN_FLIGHT)
    data = mujoco.MjData(model)
    data.qpos[:] = at.positions(scalar_last=False)
    mujoco.mj_forward(model, data)
    count = len(at.model.bodies)
    np.testing.assert_allclose(data.xipos[1 : count + 1], at.position, atol=1e-12)
    jacobian = np.zeros((count, 6, model.nv))
    for b in range(count):
        mujoco.mj_jacBodyCom(model, data, jacobian[b, :3], jacobian[b, 3:], b + 1)
    speeds, *_ = np.linalg.lstsq(jacobian.reshape(-1, model.nv), at.twist.ravel(), rcond=None)
    np.testing.assert_allclose(jacobian @ speeds, at.twist, atol=1e-10)
    data.qvel[:] = speeds
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    found, one = np.zeros((count, 6)), np.zeros(6)
    for b in range(count):
        mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_BODY, b + 1, one, 0)
        # it treats gravity as an acceleration of the world
        found[b] = [*(one[3:] + model.opt.gravity), *one[:3]]
    check_same(found, at.acceleration)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_pinocchio_accelerates_bodies_alike(name, seed):
    pin = pytest.importorskip("pinocchio")
    at = moment(name, seed)
    model = peers_pinocchio.build(at.model)
    data = model.createData()
    q = at.positions(scalar_last=True)
    pin.computeJointJacobians(model, data, q)
    count, frame = len(at.model.bodies), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    arms, jacobian = np.zeros((count, 3)), np.zeros((count, 6, model.nv))
    for b in range(count):
        place = data.oMi[b + 1]
        arms[b] = place.rotation @ model.inertias[b + 1].lever
        np.testing.assert_allclose(place.translation + arms[b], at.position[b], atol=1e-12)
        jacobian[b] = pin.getJointJacobian(model, data, b + 1, frame)
        jacobian[b, :3] += np.cross(jacobian[b, 3:].T, arms[b]).T
    speeds, *_ = np.linalg.lstsq(jacobian.reshape(-1, model.nv), at.twist.ravel(), rcond=None)
    np.testing.assert_allclose(jacobian @ speeds, at.twist, atol=1e-10)
    rate = pin.aba(model, data, q, speeds, np.zeros(model.nv))
    pin.forwardKinematics(model, data, q, speeds, rate)
    found = np.zeros((count, 6))
    for b, (arm, twist) in enumerate(zip(arms, at.twist, strict=True)):
        one = pin.getClassicalAcceleration(model, data, b + 1, frame)
        spin = twist[3:]
        found[b, 3:] = one.angular
        found[b, :3] = one.linear + np.cross(one.angular, arm) + np.cross(spin, np.cross(spin, arm))
    check_same(found, at.acceleration)


def mujoco_cube(friction: float, gravity: np.ndarray, height: float = HALF):
    """Return a cube on MuJoCo's plane with a round, nearly hard friction cone."""
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.gravity = 1 / 1000, gravity
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=[friction, 0.0, 0.0])
    body = spec.worldbody.add_body(pos=[0, 0, height])
    body.add_freejoint()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[HALF] * 3, mass=crate().mass, friction=[friction, 0.0, 0.0])
    model = spec.compile()
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("slope", [0.3, 0.6])
def test_ramp_agrees_with_mujoco(slope):
    """At rest at 0.3 rad, sliding at 0.6 rad, mu = 0.5: displacement in half a second."""
    mujoco = pytest.importorskip("mujoco")
    mu, duration, azimuth = 0.5, 0.5, 30.0
    # there, gravity is tilted instead of the plane
    tilted = GRAVITY * np.array([sin(slope), 0.0, -cos(slope)])
    model, data = mujoco_cube(mu, tilted)
    while data.time < duration:
        mujoco.mj_step(model, data)
    result = simulate(on_slope(slope, mu, azimuth), duration=duration, step=1 / 1000)
    down = heading(azimuth) * cos(slope) - np.array([0.0, 0.0, sin(slope)])
    ours = float((result["body_position"].values[-1, 0] - result["body_position"].values[0, 0]) @ down)
    free = GRAVITY * sin(slope) * duration**2 / 2
    assert ours == pytest.approx(data.qpos[0], abs=0.01 * free)  # MuJoCo's friction creeps


def ground_force(model, data) -> np.ndarray:
    """Return MuJoCo's contact forces by body [N]."""
    import mujoco

    total, one = np.zeros((model.nbody, 3)), np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        mujoco.mj_contactForce(model, data, i, one)
        # the force on the second geom's body, which is the one that is not the ground
        total[model.geom_bodyid[contact.geom2]] += contact.frame.reshape(3, 3).T @ one[:3]
    return total


def test_dropped_box_comes_to_rest_on_the_same_force():
    mujoco = pytest.importorskip("mujoco")
    model, data = mujoco_cube(0.8, np.array([0.0, 0.0, -GRAVITY]), HALF + 0.1)
    while data.time < 1.0:
        mujoco.mj_step(model, data)
    theirs = ground_force(model, data)[1]
    box = crate(position=(0.0, 0.0, HALF + 0.1))
    result = simulate(on_floor(box), duration=1.0, step=1 / 1000)
    np.testing.assert_allclose(result["ground_reaction_force"].values[-1, 0], theirs, atol=0.01 * box.mass * GRAVITY)


def test_dropped_human_comes_to_rest_on_the_same_forces():
    """Springs in every joint, dropped by 1 cm: at rest after 4 s, each leg supports the same to 1 % of weight."""
    mujoco = pytest.importorskip("mujoco")
    stiffness, damping, h, drop = 2000.0, 100.0, 1 / 500, 0.01
    human = jobs.human()
    model = peers_mujoco.build(human, h, ON_GROUND)
    model.jnt_stiffness[1:], model.dof_damping[6:] = stiffness, damping
    data = mujoco.MjData(model)
    data.qpos[2] += drop
    while data.time < 4.0:
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-3
    theirs = ground_force(model, data)[1:]

    drives = [Drive(c.name, stiffness=stiffness, damping=damping) for c in human.coordinates]
    lowered = replace(human.ground[0], frame=Frame((0.0, 0.0, jobs.GROUND_HEIGHT - drop)))
    result = simulate(replace(human, ground=(lowered,)), duration=4.0, step=h, drives=drives)
    assert np.abs(result["coordinate_velocity"].values[-1]).max() < 1e-3
    ours = result["ground_reaction_force"].values[-1]
    weight = human.mass * GRAVITY
    for side in ("left", "right"):
        leg = [i for i, body in enumerate(human.bodies) if body.name.startswith(side)]
        np.testing.assert_allclose(ours[leg].sum(axis=0), theirs[leg].sum(axis=0), atol=0.01 * weight)
    assert ours[:, 2].sum() == pytest.approx(weight, rel=1e-3)

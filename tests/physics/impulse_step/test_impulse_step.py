"""The impulse step: compared with a dense reference, and laws it must satisfy."""

import numpy as np
import pytest

from borelli.control.response import coefficients
from borelli.model.model import Body, Coordinate, Frame, Joint, Model, Shape, Surface
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics import diagnostics as measure
from borelli.physics.impulse_step.arrays import ResponseCoefficients, compile_impulse, make_target_trajectory
from borelli.physics.impulse_step.modes import BEGIN
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state, to_dataset
from borelli.physics.state import make_inputs

from ..impulse_twin import Twin, TwinJoint

INERTIA = ((0.02, 0.001, 0.0), (0.001, 0.03, 0.0), (0.0, 0.0, 0.035))


def chain(kinds, *, grounded=True, gravity=-9.8):
    """Return rods along x on hinges about skew axes ("hinge") and balls."""
    bodies = tuple(
        Body(f"b{k}", 1.0 + 0.5 * k, inertia=INERTIA, frame=Frame((0.25 + 0.5 * k, 0.0, 0.0)))
        for k in range(len(kinds))
    )
    joints = []
    for k, kind in enumerate(kinds):
        if k == 0 and not grounded:
            continue
        axis = np.array([0.2 * k, 1.0, 0.3 * k])
        names = [f"q{k}"] if kind == "hinge" else [f"x{k}", f"y{k}", f"z{k}"]
        joints.append(
            Joint(
                f"j{k}",
                kind,
                f"b{k - 1}" if k else "ground",
                f"b{k}",
                Frame((0.25 if k else 0.0, 0.0, 0.0)),
                Frame((-0.25, 0.0, 0.0)),
                axes=(tuple(axis / np.linalg.norm(axis)),) if kind == "hinge" else (),
                coordinates=tuple(Coordinate(name) for name in names),
            )
        )
    return Model("chain", bodies, tuple(joints), gravity=(0.0, 0.0, gravity))


def simulation_of(model, controlled=(), *, step, steps, start=None, twists=None, stiffness=30.0):
    """Return a simulation whose controlled coordinates have targets 0."""
    a, b = coefficients(2.0 * stiffness, 4.0 * np.sqrt(stiffness), step)
    compiled, controls = compile_impulse(
        model, step=step, controlled={n: ResponseCoefficients(float(a), float(b)) for n in controlled}
    )
    state = initial_state(compiled, coordinates=start, twists=twists)
    count = len(model.coordinates)
    course = make_target_trajectory(
        compiled, np.zeros((steps + 2, count)), np.tile([1.0, 0.0, 0.0, 0.0], (steps + 2, len(controls.ball), 1))
    )
    return ImpulseSimulation(compiled, state, make_inputs(compiled), controls, course)


def run(simulation, steps):
    record = make_record(simulation.compiled, steps)
    simulation.advance_impulses(steps, record)
    return to_dataset(simulation.compiled, record, simulation.compiled.step * np.arange(1, steps + 1))


def pose_of(state):
    return np.concatenate([state.position, state.quaternion], axis=1)[None]


@pytest.mark.parametrize(("controlled", "step"), [((), 1 / 240), ((), 1 / 30), (("q0", "q3"), 1 / 30)])
def test_dense_reference_moves_alike(controlled, step):
    model = chain(["hinge", "hinge", "ball", "hinge"])
    simulation = simulation_of(model, controlled, step=step, steps=5, start={"q0": 0.4, "q1": -0.3, "q3": 0.5})
    a, b = coefficients(60.0, 4.0 * np.sqrt(30.0), step)
    joints = [
        TwinJoint(
            k - 1, k, np.array(joint.parent_frame.position), np.array([-0.25, 0.0, 0.0]),
            np.array(joint.axes[0]) if joint.kind == "hinge" else None,
            (float(a), float(b)) if joint.coordinates[0].name in controlled else None,
        )
        for k, joint in enumerate(model.joints)
    ]  # fmt: skip
    state = simulation.state
    twin = Twin(
        [body.mass for body in model.bodies], [np.array(INERTIA)] * 4, joints, model.gravity, state.position,
        rotation_matrix(state.quaternion), state.twist,
    )  # fmt: skip
    record = make_record(simulation.compiled, 5)
    for _ in range(5):
        simulation.advance_impulses(1, record)
        twin.step(step)
        np.testing.assert_allclose(state.position, twin.x, atol=1e-12)
        np.testing.assert_allclose(rotation_matrix(state.quaternion), twin.R, atol=1e-12)
        np.testing.assert_allclose(state.twist, twin.v, atol=1e-10)


def random_twists(model, seed):
    draw = np.random.default_rng(seed)
    return {body.name: draw.normal(size=6) for body in model.bodies}


@pytest.mark.parametrize(("rate", "most"), [(30, 16), (60, 12), (120, 9), (240, 8)])
def test_few_iterations_close_a_joint(rate, most):
    """100 random joints, all six rows, coupled, in a first step: without the guess of an earlier one."""
    draw, corrections, gaps = np.random.default_rng(29), [], []
    for _ in range(100):
        model = chain(["ball", "ball"], grounded=False, gravity=0.0)
        start = dict(zip(("x1", "y1", "z1"), draw.uniform(-1.0, 1.0, 3), strict=True))
        twists = {body.name: draw.normal(size=6) for body in model.bodies}
        simulation = simulation_of(model, ("x1", "y1", "z1"), step=1 / rate, steps=1, start=start, twists=twists)
        data = run(simulation, 1)
        corrections.append(int(simulation.stages.corrections[0]))
        gaps.append(float(data["joint_gap"][0]))
    assert max(gaps) <= 1e-12
    assert max(corrections) <= most


def test_factors_of_other_poses_are_not_reused():
    """Factors of a step are reused in the next only if it starts from the same poses."""
    simulation = simulation_of(chain(["hinge", "hinge", "ball"]), step=1 / 60, steps=40, start={"q0": 0.4, "q1": -0.3})
    kept = [array.copy() for array in simulation.state]
    first = run(simulation, 20)
    for array, before in zip(simulation.state, kept, strict=True):
        array[...] = before
    again = run(simulation, 20)
    assert np.abs(first["body_position"].values[-1] - first["body_position"].values[0]).max() > 0.1
    np.testing.assert_allclose(again["body_position"], first["body_position"], atol=1e-11)


def test_velocities_are_projected_once_and_momentum_is_conserved():
    """Internal impulses change no momentum, remove energy, and change nothing the second time."""
    model = chain(["ball", "hinge", "ball", "hinge"], grounded=False, gravity=0.0)
    simulation = simulation_of(model, step=1 / 60, steps=2, twists=random_twists(model, 3))
    state, compiled = simulation.state, simulation.compiled
    record = make_record(compiled, 1)
    energies, momenta, twists = [], [], []
    for _ in range(3):
        energies.append(measure.kinetic_energy(compiled, pose_of(state), state.twist[None])[0])
        momenta.append(np.concatenate(measure.momentum(compiled, pose_of(state), state.twist[None]), axis=1)[0])
        twists.append(state.twist.copy())
        simulation._run(1, record, 1, 0, BEGIN)
    assert energies[1] < 0.9 * energies[0]
    np.testing.assert_allclose(momenta[1], momenta[0], atol=1e-12)
    np.testing.assert_allclose(twists[2], twists[1], atol=1e-13)


def test_controls_change_no_momentum():
    """In steps so short that nothing moves, only their impulses act."""
    model = chain(["ball", "hinge", "ball", "hinge"], grounded=False, gravity=0.0)
    names = [c.name for c in model.coordinates]
    start = dict.fromkeys(names, 0.3)
    simulation = simulation_of(model, names, step=1e-9, steps=1, start=start, stiffness=3e6)
    before = np.concatenate(
        measure.momentum(simulation.compiled, pose_of(simulation.state), simulation.state.twist[None]), 1
    )
    data = run(simulation, 1)
    assert np.abs(data["body_angular_velocity"]).max() > 1e-4
    scale = np.abs(data["body_angular_velocity"]).max().item()
    after = np.concatenate([data["linear_momentum"].values, data["angular_momentum"].values], axis=1)
    assert np.abs(after - before).max() < 1e-12 * scale


@pytest.mark.parametrize("rate", [60, 240])
def test_momentum_in_flight(rate):
    model = chain(["ball", "hinge", "ball", "hinge"], grounded=False, gravity=0.0)
    data = run(
        simulation_of(model, ["q1", "q3"], step=1 / rate, steps=3 * rate, start={"q1": 0.5, "q3": -0.4}), 3 * rate
    )
    assert np.abs(data["body_angular_velocity"]).max() > 0.5
    assert np.abs(data["linear_momentum"] - data["linear_momentum"][0]).max() < 1e-13
    assert np.abs(data["angular_momentum"] - data["angular_momentum"][0]).max() < 1e-12


def test_light_fast_bodies_gain_no_energy():
    """The explicit gyroscopic term is unstable for them."""
    needle = Body("needle", 1e-3, inertia=((1e-8, 0.0, 0.0), (0.0, 4e-7, 0.0), (0.0, 0.0, 4.05e-7)))
    model = Model("needle", (needle,), gravity=(0.0, 0.0, 0.0))
    data = run(simulation_of(model, step=1 / 60, steps=600, twists={"needle": (0, 0, 0, 80.0, 60.0, 3.0)}), 600)
    energy = data["kinetic_energy"].values
    assert np.isfinite(energy).all() and np.diff(energy).max() <= 1e-12 * energy[0]


def sphere(name, at, mass=1.0, restitution=0.0, friction=0.0):
    inertia = 0.4 * mass * 0.05**2 * np.eye(3)
    shape = Shape("sphere", (0.05,), surface=Surface(friction=friction, restitution=restitution))
    return Body(name, mass, inertia=tuple(map(tuple, inertia)), shapes=(shape,), frame=Frame(at))


def test_ball_rebounds_with_its_restitution():
    floor = (Shape("plane", surface=Surface(friction=0.0)),)
    model = Model("drop", (sphere("ball", (0.0, 0.0, 1.05), restitution=0.8),), ground=floor, gravity=(0.0, 0.0, -9.8))
    data = run(simulation_of(model, step=1 / 240, steps=480), 480)
    speed, height = data["body_com_velocity"].values[:, 0, 2], data["body_position"].values[:, 0, 2]
    bounced = np.flatnonzero(np.diff(speed) > 0.1)
    assert len(bounced) == 3
    # the step of the bounce ends with the rebound velocity and one step of gravity
    np.testing.assert_allclose(speed[bounced + 1], -0.8 * speed[bounced] - 9.8 / 240, atol=1e-9)
    assert height.min() > 0.05 - 1e-9


def test_impact_propagates_through_a_row_of_balls():
    model = Model(
        "row", tuple(sphere(f"s{k}", (0.2 * k, 0.0, 0.0), restitution=1.0) for k in range(5)), gravity=(0.0, 0.0, 0.0)
    )
    data = run(simulation_of(model, step=1 / 240, steps=240, twists={"s0": (2.0, 0, 0, 0, 0, 0)}), 240)
    np.testing.assert_allclose(data["body_com_velocity"].values[-1, :, 0], [0.0, 0.0, 0.0, 0.0, 2.0], atol=1e-9)


def test_impact_propagates_through_joints():
    """A ball hits the free end of a rod on a hinge: with I about the hinge, w = (1 + e) m v L / (I + m L^2)."""
    shape = Shape("box", (0.5, 0.02, 0.02), surface=Surface(friction=0.0, restitution=0.6))
    inertia = ((0.01, 0.0, 0.0), (0.0, 2.0 / 12.0, 0.0), (0.0, 0.0, 2.0 / 12.0))
    rod = Body("rod", 2.0, inertia=inertia, shapes=(shape,), frame=Frame((0.5, 0.0, 0.0)))
    hinge = Joint(
        "hinge", "hinge", "ground", "rod", Frame(), Frame((-0.5, 0.0, 0.0)), ((0.0, -1.0, 0.0),), (Coordinate("q"),)
    )
    model = Model("struck", (rod, sphere("ball", (0.8, 0.0, 0.1), 0.5)), (hinge,), gravity=(0.0, 0.0, 0.0))
    data = run(simulation_of(model, step=1 / 240, steps=12, twists={"ball": (0, 0, -3.0, 0, 0, 0)}), 12)
    about_hinge, arm = 2.0 / 12.0 + 2.0 * 0.25, 0.8
    spin = 1.6 * 0.5 * -3.0 * arm / (about_hinge + 0.5 * arm**2)
    assert data["coordinate_velocity"].values[-1, 0] == pytest.approx(spin, rel=1e-8)
    assert data["body_com_velocity"].values[-1, 1, 2] == pytest.approx(0.6 * 3.0 + spin * arm, rel=1e-8)


def test_sliding_box_comes_to_rest_by_friction():
    box = Body(
        "box", 1.0, inertia=((0.01, 0, 0), (0, 0.01, 0), (0, 0, 0.01)),
        shapes=(Shape("box", (0.1, 0.1, 0.05), surface=Surface(friction=0.5)),), frame=Frame((0.0, 0.0, 0.05)),
    )  # fmt: skip
    floor = (Shape("plane", surface=Surface(friction=0.5)),)
    model = Model("slide", (box,), ground=floor, gravity=(0.0, 0.0, -9.8))
    data = run(simulation_of(model, step=1 / 240, steps=120, twists={"box": (0.8, 0.6, 0, 0, 0, 0)}), 120)
    way = np.hypot(*data["body_position"].values[-1, 0, :2])
    # v^2 / (2 mu g)
    assert way == pytest.approx(1.0 / (2 * 0.5 * 9.8), abs=5e-5)
    np.testing.assert_allclose(data["ground_reaction_force"].values[-1, 0], [0.0, 0.0, 9.8], atol=1e-9)

"""Laws of mechanics that bodies, joints and drives obey; each tolerance has its derivation next to it.

The step is semi-implicit Euler: v+ = v + h a, x+ = x + h v+. Where its own recursion has a closed form the tolerance is
rounding; elsewhere the error is first order in h, which the tests show by halving h.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import atan2, cos, exp, hypot, inf, pi, sin, sqrt

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.bench.workload import human as benchmark_human
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Softness
from borelli.numerics.quaternions import rotation_matrix
from borelli.people.human import human
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import momentum
from borelli.physics.inputs import AppliedForce, Drive, Residual
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.simulate import initial_state, simulate
from borelli.physics.solver.elimination_order import POSITION
from borelli.physics.solver.factor_arrays import SOLUTION
from borelli.physics.state import make_inputs, make_state
from borelli.scenes.gallery import chain, four_bar, human_drop
from borelli.scenes.scene import run_scene

from .worlds import GRAVITY, WEIGHTLESS, advance, carriage, crate

ROUNDING = 1e-12
HALVED = 1.8
"""Ratio by which a first-order error decreases when h is halved, less the next order's part."""


def test_projectile_follows_the_recursion_of_the_step():
    """x_n = v n h; z_n = z_0 + w n h - g h^2 n (n + 1) / 2, the parabola to first order."""
    h, v, w = 1 / 100, 3.0, 4.0
    model = Model("projectile", (crate(position=(0.0, 0.0, 5.0)),))
    result = simulate(model, duration=1.0, step=h, initial_twists={"box": (v, 0.0, w, 0.0, 0.0, 0.0)})
    n = np.arange(len(result.time))
    x, z = result["body_position"].values[:, 0, 0], result["body_position"].values[:, 0, 2]
    np.testing.assert_allclose(x, v * n * h, atol=ROUNDING)
    np.testing.assert_allclose(z, 5.0 + w * n * h - GRAVITY * h**2 * n * (n + 1) / 2, atol=ROUNDING)


def pendulum_model() -> tuple[Model, float]:
    """A rod of 0.6 m on a hinge at its end, and its period at small angles: T = 2 pi sqrt((I + m d^2) / (m g d))."""
    mass, arm, inertia = 1.5, 0.3, 0.045
    rod = Body("rod", mass, inertia=((inertia, 0, 0), (0, inertia, 0), (0, 0, 0.001)), frame=Frame((0.0, 0.0, -arm)))
    hinge = Joint(
        "pivot", "hinge", GROUND, "rod", child_frame=Frame((0.0, 0.0, arm)), axes=((0.0, 1.0, 0.0),),
        coordinates=(Coordinate("angle"),),
    )  # fmt: skip
    return Model("pendulum", (rod,), (hinge,)), 2 * pi * sqrt((inertia + mass * arm**2) / (mass * GRAVITY * arm))


def period_error(h: float) -> float:
    """Return the relative error of the mean of five periods."""
    model, theory = pendulum_model()
    result = simulate(model, duration=8.0, step=h, initial_coordinates={"angle": 0.02})
    angle, time = result["coordinate_value"].values[:, 0], result.time.values
    down = np.flatnonzero((angle[:-1] > 0.0) & (angle[1:] <= 0.0))
    crossings = time[down] + h * angle[down] / (angle[down] - angle[down + 1])
    return float((crossings[5] - crossings[0]) / 5 / theory - 1.0)


def test_pendulum_swings_with_its_period():
    steps = (1 / 200, 1 / 400, 1 / 800)
    errors = [abs(period_error(h)) for h in steps]
    amplitude = 0.02**2 / 16  # T grows by theta^2 / 16 with the amplitude
    assert errors[-1] < amplitude + 1e-4
    for coarse, fine in pairwise(errors):
        assert fine - amplitude < coarse / HALVED


def tumbling(h: float, duration: float = 2.0) -> tuple[float, float, float]:
    """Rotate a body about its intermediate principal axis; return largest gain and loss of energy, and drift of
    angular momentum, all relative."""
    inertia = np.diag([0.4, 0.9, 1.2])
    body = Body("top", 3.0, inertia=tuple(map(tuple, inertia)))
    model = Model("tumbling", (body,), gravity=WEIGHTLESS)
    result = simulate(model, duration=duration, step=h, initial_twists={"top": (0.0, 0.0, 0.0, 0.3, 4.0, 0.5)})
    energy, spin = result["kinetic_energy"].values, result["angular_momentum"].values
    drift = np.linalg.norm(spin - spin[0], axis=1).max() / np.linalg.norm(spin[0])
    change = energy / energy[0] - 1.0
    return float(change.max()), float(-change.min()), float(drift)


def test_free_rotation_keeps_energy_and_angular_momentum_to_first_order():
    runs = [tumbling(h) for h in (1 / 500, 1 / 1000, 1 / 2000)]
    for gain, loss, drift in runs:
        assert gain < ROUNDING  # the implicit gyroscopic term may lose energy, never gain it
        assert loss < 0.05 and drift < 0.05
    for coarse, fine in pairwise(runs):
        assert fine[1] < coarse[1] / HALVED
        assert fine[2] < coarse[2] / HALVED


def test_free_rotation_stays_bounded_for_long():
    gain, loss, _ = tumbling(1 / 240, 60.0)
    assert gain < ROUNDING and loss < 1.0


def precession_error(h: float) -> float:
    """A symmetric top with moments A, A, C: its axis precesses about the angular momentum at the rate |L| / A."""
    across, along = 0.5, 0.8
    body = Body("top", 1.0, inertia=((across, 0, 0), (0, across, 0), (0, 0, along)))
    model = Model("symmetric", (body,), gravity=WEIGHTLESS)
    result = simulate(model, duration=1.0, step=h, initial_twists={"top": (0.0, 0.0, 0.0, 1.0, 0.0, 5.0)})
    axis = rotation_matrix(result["body_orientation"].values[:, 0])[..., 2]
    total = np.array([across, 0.0, along * 5.0])
    pole, turned = total / np.linalg.norm(total), float(np.linalg.norm(total)) / across * 1.0
    start = axis[0]
    theory = start * cos(turned) + np.cross(pole, start) * sin(turned) + pole * (pole @ start) * (1 - cos(turned))
    return float(np.linalg.norm(axis[-1] - theory))


def test_symmetric_top_precesses_about_its_angular_momentum():
    errors = [precession_error(h) for h in (1 / 500, 1 / 1000, 1 / 2000)]
    assert errors[-1] < 0.01  # [1], of a unit vector after 8.1 rad
    for coarse, fine in pairwise(errors):
        assert fine < coarse / HALVED


def test_driven_mass_sags_by_its_load_over_its_stiffness():
    """Statics: k x = m g."""
    mass, stiffness = 2.0, 400.0
    model = carriage((0.0, 0.0, 1.0), mass, (0.0, 0.0, -GRAVITY))
    drive = Drive("x", stiffness=stiffness, damping=2 * sqrt(stiffness * mass))
    result = simulate(model, duration=4.0, step=1 / 240, drives=(drive,))
    assert result["coordinate_value"].values[-1, 0] == pytest.approx(-mass * GRAVITY / stiffness, rel=1e-9)
    assert result["torque"].values[-1, 0] == pytest.approx(mass * GRAVITY, rel=1e-9)


def test_soft_joint_sags_by_its_load_over_its_stiffness():
    mass, stiffness = 3.0, 5e4
    joint = Joint(
        "hook", "ball", GROUND, "weight", coordinates=tuple(Coordinate(f"hook_{axis}") for axis in "xyz"),
        softness=Softness(stiffness, 2 * sqrt(stiffness * mass)),
    )  # fmt: skip
    model = Model("hanging", (Body("weight", mass),), (joint,))
    result = simulate(model, duration=2.0, step=1 / 500)
    assert result["body_position"].values[-1, 0, 2] == pytest.approx(-mass * GRAVITY / stiffness, rel=1e-9)
    assert float(result["joint_gap"][-1]) == pytest.approx(mass * GRAVITY / stiffness, rel=1e-9)


OSCILLATOR = {"mass": 2.0, "stiffness": 200.0, "damping": 8.0, "target": 0.1}
"""Damping ratio 0.2."""


def step_response(h: float, duration: float) -> np.ndarray:
    """Return the position of the carriage at each step after its drive is switched on."""
    o = OSCILLATOR
    drive = Drive("x", target=o["target"], stiffness=o["stiffness"], damping=o["damping"])
    return simulate(carriage(mass=o["mass"]), duration=duration, step=h, drives=(drive,))["coordinate_value"].values[
        :, 0
    ]


def test_soft_drive_is_an_implicit_spring_and_damper():
    """m (v+ - v) = -h [k (x + h v+ - target) + d v+]: Liu, Cooper and Ballard, eq. 14, as a recursion."""
    h = 1 / 240
    mass, stiffness, damping, target = OSCILLATOR.values()
    found = step_response(h, 1.0)
    x, v, path = 0.0, 0.0, [0.0]
    for _ in found[1:]:
        v = (mass * v - h * stiffness * (x - target)) / (mass + h * damping + h * h * stiffness)
        x += h * v
        path.append(x)
    np.testing.assert_allclose(found, path, atol=1e-12)


def test_step_response_converges_to_the_damped_oscillator():
    """x = target (1 - e^(-z w t) (cos wd t + z w / wd sin wd t)), z the damping ratio, wd = w sqrt(1 - z^2)."""
    mass, stiffness, damping, target = OSCILLATOR.values()
    omega = sqrt(stiffness / mass)
    ratio = damping / (2 * mass * omega)
    turned = omega * sqrt(1 - ratio**2)
    errors = []
    for h in (1 / 250, 1 / 500, 1 / 1000):
        found = step_response(h, 1.0)
        theory = [
            target * (1 - exp(-ratio * omega * t) * (cos(turned * t) + ratio * omega / turned * sin(turned * t)))
            for t in h * np.arange(len(found))
        ]
        errors.append(np.abs(found - theory).max() / target)
    assert errors[-1] < omega / 1000  # first order: w h
    for coarse, fine in pairwise(errors):
        assert fine < coarse / HALVED


def test_saturated_drive_acts_with_its_maximum_force():
    """a = F / m until the target is near."""
    h, mass, limit = 1 / 240, 2.0, 6.0
    drive = Drive("x", target=100.0, stiffness=1e4, damping=100.0, max_force=limit)
    result = simulate(carriage(mass=mass), duration=1.0, step=h, drives=(drive,))
    np.testing.assert_allclose(result["torque"].values[1:, 0], limit, rtol=1e-9)
    n = np.arange(len(result.time))
    np.testing.assert_allclose(result["coordinate_velocity"].values[:, 0], limit / mass * n * h, rtol=1e-9)


def test_drive_does_nothing_within_its_dead_zone():
    """Spring and damper act on the error as it will be h + d / k ahead: at rest k (|x| - D) = F, inside D zero."""
    h, stiffness, damping, zone, load = 1 / 500, 500.0, 60.0, 0.05, 20.0
    drive = Drive("x", stiffness=stiffness, damping=damping, dead_zone=zone)
    result = simulate(carriage(), duration=1.0, step=h, drives=(drive,), initial_velocities={"x": 0.2})
    x, v = result["coordinate_value"].values[:, 0], result["coordinate_velocity"].values[:, 0]
    ahead = np.abs(x[:-1] + (h + damping / stiffness) * v[:-1])  # as it would be if the mass coasted
    force = result["torque"].values[1:, 0]
    np.testing.assert_allclose(force[ahead < zone - 1e-9], 0.0, atol=1e-9)
    assert (force[ahead > zone + 1e-9] < 0.0).all() and (ahead < zone).sum() > 50 < (ahead > zone).sum()
    pushed = AppliedForce("mass", force=(load, 0.0, 0.0))
    held = simulate(carriage(), duration=3.0, step=h, drives=(drive,), forces=(pushed,))
    assert held["coordinate_value"].values[-1, 0] == pytest.approx(zone + load / stiffness, rel=1e-6)


def test_drive_offset_is_added_to_its_force():
    result = simulate(carriage(mass=2.0), duration=0.1, step=1 / 100, drives=(Drive("x", offset=3.0),))
    np.testing.assert_allclose(np.diff(result["coordinate_velocity"].values[:, 0]), 3.0 / 2.0 / 100, rtol=1e-9)


def test_applied_wrench_accelerates_a_body_by_newton_and_euler():
    """dv = h F / m, dw = h I^-1 (T + r x F), only from start to end."""
    h, force, torque, point = 1 / 100, np.array([3.0, -2.0, 5.0]), np.array([0.1, 0.4, -0.2]), (0.2, 0.1, -0.3)
    inertia = np.diag([0.4, 0.9, 1.2])
    body = Body("block", 3.0, (0.05, 0.0, 0.0), tuple(map(tuple, inertia)))
    model = Model("pushed", (body,), gravity=WEIGHTLESS)
    push = AppliedForce("block", tuple(force), tuple(torque), point, start=2 * h, end=3 * h)
    result = simulate(model, duration=4 * h, step=h, forces=(push,))
    velocity, spin = result["body_com_velocity"].values[:, 0], result["body_angular_velocity"].values[:, 0]
    assert not velocity[:3].any() and not spin[:3].any()
    arm = np.array(point) - np.array(body.center_of_mass)
    np.testing.assert_allclose(velocity[3], h * force / 3.0, rtol=1e-12)
    np.testing.assert_allclose(spin[3], h * np.linalg.solve(inertia, torque + np.cross(arm, force)), rtol=1e-12)
    np.testing.assert_allclose(velocity[4], velocity[3], rtol=1e-12)


def test_residual_that_supports_a_body_reports_its_weight():
    h, mass = 1 / 240, 4.0
    compiled = compile_model(
        Model("held", (Body("block", mass),)),
        step=h,
        residuals=(Residual("block", 2), Residual("block", 5, max_force=1.0)),
    )
    simulation = Simulation(compiled, make_state(compiled), make_inputs(compiled))
    record = advance(simulation, 10)
    assert compiled.rows.names[-2:] == ["residual block z", "residual block z"]
    assert compiled.rows.units[-2:] == ["N", "N m"]
    np.testing.assert_allclose(record.impulse[:, -2] / h, mass * GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(record.impulse[:, -1], 0.0, atol=1e-12)
    assert not np.abs(record.twist).max() > 1e-12


def test_bounded_residual_is_at_most_its_limit():
    h, mass, limit = 1 / 240, 4.0, 10.0
    compiled = compile_model(Model("held", (Body("block", mass),)), step=h, residuals=(Residual("block", 2, limit),))
    record = advance(Simulation(compiled, make_state(compiled), make_inputs(compiled)), 10)
    np.testing.assert_allclose(record.impulse[:, -1] / h, limit, rtol=1e-12)
    np.testing.assert_allclose(record.twist[-1, 0, 2], -10 * h * (GRAVITY - limit / mass), rtol=1e-12)


def rocker_of(crank: float, scene_lengths: tuple[float, float, float, float]) -> float:
    """The rocker's angle for a crank's: where the circles about crank end and rocker pivot cross, upper branch."""
    a, b, c, base = scene_lengths
    x, z = a * cos(-crank), a * sin(-crank)
    reach = hypot(base - x, z)
    corner = (b * b + reach * reach - c * c) / (2 * b * reach)
    coupler = atan2(-z, base - x) + atan2(sqrt(1 - corner * corner), corner)
    return -atan2(z + b * sin(coupler), x + b * cos(coupler) - base)


def test_four_bar_stays_closed_and_its_rocker_follows():
    lengths = (0.2, 0.55, 0.45, 0.6)
    errors, gaps = [], []
    for h in (1 / 500, 1 / 1000):
        result = run_scene(replace(four_bar(*lengths), step=h))
        crank = result["coordinate_value"].sel(coordinate="crank").values
        rocker = result["coordinate_value"].sel(coordinate="rocker").values
        theory = np.array([rocker_of(angle, lengths) for angle in crank])
        assert crank[0] - crank[-1] > 4 * pi  # [rad]: two revolutions
        errors.append(np.abs(rocker - theory).max())
        gaps.append(float(result["joint_gap"].max()))
    # each step leaves a gap of second order, (w h)^2 r / 2, of which erp = 0.2 is closed: five times that remains
    assert gaps[0] < 5 * (2 * pi / 500) ** 2 * 0.6
    assert errors[0] < 5 * (2 * pi / 500) ** 2 * 0.6 / 0.2
    assert gaps[1] < gaps[0] / 3 and errors[1] < errors[0] / 3  # second order


def linkage() -> Model:
    """A free chain of every kind of joint, no two bodies alike."""
    kinds = {"slider": 1, "planar": 3, "fixed": 0, "hinge": 1, "universal": 2, "ball": 3}
    bodies, joints = [Body("body_0", 2.0)], []
    for k, (kind, count) in enumerate(kinds.items()):
        spread = 0.02 * (k + 1)
        inertia = ((spread, 0.0, 0.0), (0.0, 1.5 * spread, 0.0), (0.0, 0.0, 2 * spread))
        bodies.append(Body(f"body_{k + 1}", 1.0 + 0.3 * k, inertia=inertia, frame=Frame((0.4 * (k + 1), 0.0, 0.0))))
        shifts = {"slider": 1, "planar": 2}.get(kind, 0)
        coordinates = tuple(Coordinate(f"{kind}_{i}", rotational=i >= shifts) for i in range(count))
        ends = Frame((0.2, 0.02 * k, 0.0)), Frame((-0.2, 0.02 * k, 0.0))
        joints.append(Joint(kind, kind, f"body_{k}", f"body_{k + 1}", *ends, coordinates=coordinates))
    return Model("linkage", tuple(bodies), tuple(joints), gravity=WEIGHTLESS)


THROWN = {
    "human": lambda: replace(benchmark_human(Softness(erp=0.2)), ground=(), gravity=WEIGHTLESS),
    "linkage": linkage,
}


def free_flight(
    name: str, h: float, steps: int, drives: tuple[Drive, ...] = ()
) -> tuple[Simulation, list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Throw a model with all joints bent and rotating.

    Returns poses and twists before and after each step, and the velocities solved for in each.
    """
    model = THROWN[name]()
    compiled = compile_model(model, step=h, drives=drives)
    rng = np.random.default_rng(3)
    names = [coordinate.name for coordinate in model.coordinates]
    state = initial_state(
        compiled,
        coordinates=dict(zip(names, rng.uniform(-0.4, 0.4, len(names)), strict=True)),
        velocities=dict(zip(names, rng.uniform(-3.0, 3.0, len(names)), strict=True)),
    )
    state.twist[:, :3] += (1.0, -0.5, 2.0)
    poses, twists = [np.hstack([state.position, state.quaternion])], [state.twist.copy()]
    simulation = Simulation(compiled, state, make_inputs(compiled, drives=drives))
    solutions = []
    for _ in range(steps):
        record = advance(simulation, 1)
        position = simulation.work.graph.node[: len(state.position), POSITION]
        solutions.append(simulation.work.factor.block[position, SOLUTION : SOLUTION + 6])
        poses.append(record.pose[0])
        twists.append(record.twist[0])
    return simulation, poses, twists, solutions


@pytest.mark.parametrize("is_driven", [False, True], ids=["loose", "driven"])
@pytest.mark.parametrize("name", THROWN)
def test_internal_rows_change_no_momentum(name, is_driven):
    """Each step: sum m dv = 0 and sum (x x m dv + I (w+ - w*)) = 0, w* after the gyroscopic term alone.

    Where the step then closed joints, its angular momentum is that before joints were closed or, without drives, that
    before the step.
    """
    h = 1 / 240
    drives = [Drive(c.name, 0.1, stiffness=50.0, damping=2.0, max_force=20.0) for c in THROWN[name]().coordinates]
    simulation, poses, twists, solutions = free_flight(name, h, 100, tuple(drives) if is_driven else ())
    bodies = simulation.compiled.tables.bodies
    mass = bodies.mass[:, None]
    scale, closed = float(np.abs(mass * twists[0][:, :3]).sum()), 0
    for (pose, moved), (before, after), solved in zip(pairwise(poses), pairwise(twists), solutions, strict=True):
        turn = rotation_matrix(pose[:, 3:])
        inertia = turn @ bodies.inertia @ turn.transpose(0, 2, 1)
        push = mass * (solved[:, :3] - before[:, :3])
        twisting = np.zeros(3)
        for b, moment in enumerate(inertia):
            w = before[b, 3:]
            slope = moment + h * (skew(w) @ moment - skew(moment @ w))
            free = w - h * np.linalg.solve(slope, np.cross(w, moment @ w))
            twisting += np.cross(pose[b, :3], push[b]) + moment @ (solved[b, 3:] - free)
        assert np.abs(push.sum(axis=0)).max() < ROUNDING * scale
        assert np.abs(twisting).max() < ROUNDING * scale
        if np.array_equal(solved, after):
            continue
        closed += 1
        turned = Rotation.from_rotvec(h * solved[:, 3:]) * Rotation.from_quat(pose[:, 3:], scalar_first=True)
        open_pose = np.hstack([pose[:, :3] + h * solved[:, :3], turned.as_quat(scalar_first=True)])
        start = (open_pose, solved) if is_driven else (pose, before)
        linear, angular = momentum(
            simulation.compiled, *(np.array(pair) for pair in zip(start, (moved, after), strict=True))
        )
        assert np.abs(linear[1] - linear[0]).max() < ROUNDING * scale
        assert np.abs(angular[1] - angular[0]).max() < ROUNDING * scale
    assert closed > 0


def skew(v: np.ndarray) -> np.ndarray:
    """[v]x"""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def test_free_flight_keeps_momentum():
    """To rounding: a step that closes joints keeps the angular momentum before it."""
    for h in (1 / 240, 1 / 480, 1 / 960):
        simulation, poses, twists, _ = free_flight("human", h, round(0.5 / h))
        linear, angular = momentum(simulation.compiled, np.array(poses), np.array(twists))
        assert np.abs(linear - linear[0]).max() < 1e-11 * np.linalg.norm(linear[0])
        assert np.abs(angular - angular[0]).max() < 1e-11 * np.linalg.norm(angular[0])


def test_chain_of_1000_links_falls_in_one_piece():
    scene = replace(chain(1000), duration=0.5)
    result = run_scene(scene)
    assert np.isfinite(result["body_position"].values).all()
    assert (result["solver_status"].values == 0).all()
    energy = (result["kinetic_energy"] + result["potential_energy"]).values
    scale = float(result["kinetic_energy"][-1])
    assert (energy - energy[0]).max() < 1e-3 * scale
    # a step leaves a gap of r (w h)^2 / 2 at each end of a link, r = 0.05 m; erp = 0.2 lets five such gaps pile up
    turned = np.linalg.norm(result["body_angular_velocity"].values, axis=-1).max() * scene.step
    assert float(result["joint_gap"].max()) < 5 * 0.05 * turned**2


def test_human_falls_comes_to_rest_and_is_supported():
    """At rest the ground supports the weight and no more; the fall gains no energy."""
    model = human()
    assert sum(1 for c in model.coordinates if not c.name.startswith("root")) == 48
    result = run_scene(replace(human_drop(), duration=6.0))
    energy = (result["kinetic_energy"] + result["potential_energy"]).values
    weight = model.mass * GRAVITY
    assert np.isfinite(energy).all()
    assert energy.max() - energy[0] < 1e-3 * weight  # [J]: a millimeter of height
    late = result.isel(time=slice(-240, None))
    assert float(late["kinetic_energy"].max()) < 0.5  # [J]: still limbs drift at 0.1 m/s at the most
    force = late["ground_reaction_force"].sum("body").mean("time").values
    np.testing.assert_allclose(force, [0.0, 0.0, weight], atol=0.01 * weight)
    assert float(result["joint_gap"].max()) < 0.01  # [m]


def test_unlimited_stiffness_reaches_the_target_in_one_step():
    result = simulate(carriage(), duration=0.05, step=1 / 100, drives=(Drive("x", target=0.3, stiffness=inf),))
    np.testing.assert_allclose(result["coordinate_value"].values[1:, 0], 0.3, rtol=1e-12)

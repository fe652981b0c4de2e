"""Systems from models: closed forms, derivatives, external loads, other engines, names and bounds."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.dynamics.torques import newton_euler
from borelli.errors import SettingsError
from borelli.model.model import Body, Coordinate, Joint, Model, Softness
from borelli.muscles.paths import muscle_paths
from borelli.optimal import Phase, Problem, solve
from borelli.optimal.symbolic_dynamics.contact import SphereContact
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.passive_forces import CoordinateSpring, JointLimits
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.system import Variable, explicit_form
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

from ...physics.worlds import advance
from .test_muscle_lengths import WALKING, moving_point_model
from .trees import GAIT10, mixed_tree, random_motion, stored

MASS, LENGTH, G = 2.0, 0.7, 9.81
TINY = 1e-8
"""[s] Step of the engine: its second step shows the acceleration, with an error of 1e-7 relative."""


def pendulum(**more) -> Model:
    """Return a point mass on a rod that hangs at angle zero."""
    tiny = 1e-12
    body = Body("bob", MASS, (0.0, -LENGTH, 0.0), ((tiny, 0.0, 0.0), (0.0, tiny, 0.0), (0.0, 0.0, tiny)))
    hinge = Coordinate("angle", lower=-2.0, upper=1.0)
    joint = Joint("hinge", "hinge", "ground", "bob", axes=((0.0, 0.0, 1.0),), coordinates=(hinge,))
    return Model("pendulum", (body,), (joint,), gravity=(0.0, -G, 0.0), **more)


def acceleration(system, x, u=(), p=()) -> np.ndarray:
    return np.array(system.explicit(0.0, x, u, p)[0]).ravel()


def test_pendulum_accelerates_by_the_closed_form():
    system = tree_system(pendulum(), damping=0.4, springs={"angle": CoordinateSpring(3.0, 0.2)})
    assert [v.name for v in system.states] == ["angle", "angle_speed"]
    assert [v.name for v in system.controls] == ["angle_torque"]
    q, v, torque = 0.6, -1.3, 2.5
    moment = torque - MASS * G * LENGTH * np.sin(q) - 0.4 * v - 3.0 * (q - 0.2)
    assert acceleration(system, [q, v], [torque]) == pytest.approx([v, moment / (MASS * LENGTH**2)], rel=1e-10)


def test_joint_limits_by_the_closed_form():
    limits = JointLimits(torque=4.0, steepness=20.0)
    limited, plain = tree_system(pendulum(), limits=limits), tree_system(pendulum())
    for q, expected in ((1.1, -4.0 * np.exp(2.0)), (-2.1, 4.0 * np.exp(2.0)), (-0.5, 0.0)):
        gained = acceleration(limited, [q, 0.0], [0.0]) - acceleration(plain, [q, 0.0], [0.0])
        assert gained[1] * MASS * LENGTH**2 == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_forces_and_parameters_by_name():
    def heel(s):
        return {"angle": s.stiffness * ca.exp(3.0 * s.angle) * (1.0 + 0.3 * s.angle_speed) + 0.1 * s.t}

    system = tree_system(pendulum(), actuators={}, forces=heel, parameters=[Variable("stiffness", "N m", 1.0, 60.0)])
    q, v = 0.2, 0.5
    moment = 7.0 * np.exp(3.0 * q) * (1.0 + 0.3 * v) - MASS * G * LENGTH * np.sin(q)
    assert acceleration(system, [q, v], p=[7.0])[1] == pytest.approx(moment / (MASS * LENGTH**2), rel=1e-10)
    with pytest.raises(SettingsError, match="knee"):
        tree_system(pendulum(), forces=lambda s: {"knee": s.angle})


def planar_pendulum() -> Model:
    """Return the pendulum on a base with x and y, to be held."""
    base = Body("base", 0.5)
    bob = replace(pendulum().bodies[0])
    xy = (Coordinate("x", rotational=False), Coordinate("y", rotational=False), Coordinate("tilt"))
    joints = (
        Joint("root", "planar", "ground", "base", coordinates=xy),
        replace(pendulum().joints[0], parent="base"),
    )
    return Model("base and bob", (base, bob), joints, gravity=(0.0, -G, 0.0))


def test_reactions_of_held_coordinates_carry_weight_and_centripetal_force():
    system = tree_system(planar_pendulum(), held={"x": 0.1, "y": 0.2, "tilt": 0.0})
    q, v = 0.0, 3.0
    rates = acceleration(system, [q, v], [0.0])
    outputs = system.outputs(t=0.0, x=[q, v], z=[], u=[0.0], p=[], xdot=rates)
    assert float(outputs["y_reaction"]) == pytest.approx((MASS + 0.5) * G + MASS * LENGTH * v**2, rel=1e-12)
    assert float(outputs["x_reaction"]) == pytest.approx(0.0, abs=1e-9)
    assert float(outputs["tilt_reaction"]) == pytest.approx(0.0, abs=1e-9)
    height = (MASS * (0.2 - LENGTH) + 0.5 * 0.2) / (MASS + 0.5)
    assert float(outputs["center_of_mass_y"]) == pytest.approx(height, rel=1e-12)
    assert float(outputs["center_of_mass_velocity_x"]) == pytest.approx(MASS * LENGTH * v / (MASS + 0.5), rel=1e-12)


def test_muscles_act_on_held_coordinates():
    """Holding a coordinate that a muscle crosses moves its moment into the reaction."""
    model = moving_point_model()
    free, held = (tree_system(model, tendon="rigid", held=h) for h in (None, {"flexion": 0.1}))
    x, u = dict.fromkeys((v.name for v in free.states), 0.1), [0.5]
    for name in ("flexion_speed", "p0"):
        x[name] = 0.0
    whole = np.array([x[v.name] for v in free.states])
    part = np.array([x[v.name] for v in held.states])
    rates = np.zeros(len(held.states))
    reaction = float(held.outputs(t=0.0, x=part, z=[], u=u, p=[], xdot=rates)["flexion_reaction"])
    residual = np.array(free.residual(0.0, whole, np.zeros(len(whole)), [], u, [])).ravel()
    names = [v.name for v in free.states]
    row = len([n for n in names if n.endswith("_speed")]) + names.index("flexion")
    assert reaction == pytest.approx(residual[row], rel=1e-10)
    assert abs(float(free.outputs(t=0, x=whole, z=[], u=u, p=[], xdot=0.0 * whole)["m_force"])) > 1.0


def test_power_of_muscles_is_minus_tension_times_lengthening():
    """Virtual work: a muscle pulls its ends together."""
    model = moving_point_model()
    pulled, bare = tree_system(model, tendon="rigid"), tree_system(replace(model, muscles=()), actuators={})
    q, v, _, free = random_motion(model, 1)
    count = len(free)
    x = np.concatenate([0.2 * q[0, free], v[0, free]])
    at_rest = np.zeros(2 * count)
    without = np.array(bare.residual(0.0, x, at_rest, [], [], [])).ravel()[count:]
    activated = np.append(x, 0.7)
    found = np.array(pulled.residual(0.0, activated, np.zeros(2 * count + 1), [], [0.7], [])).ravel()[count : 2 * count]
    outputs = pulled.outputs(t=0.0, x=activated, z=[], u=[0.7], p=[], xdot=np.zeros(2 * count + 1))
    row = np.zeros(len(model.coordinates))
    row[free] = x[:count]
    speed = float(muscle_paths(model, row, v).velocity[0, 0])
    power = (without - found) @ x[count:]
    assert power == pytest.approx(-float(outputs["m_force"]) * speed, rel=1e-9)
    assert abs(power) > 1.0


def test_markers_are_outputs():
    model = mixed_tree()
    system = tree_system(model, points=["tip"])
    q, v, _, free = random_motion(model, 1)
    x = [*q[0, free], *v[0, free]]
    found = system.outputs(t=0.0, x=x, z=[], u=np.zeros(len(system.controls)), p=[], xdot=np.zeros(len(x)))
    motion = forward_kinematics(model, q, v, 0.0 * q)
    body = [b.name for b in model.bodies].index("planar")
    point = motion.position[body, :, 0] + motion.rotation[body, :, :, 0] @ np.array(model.marker("tip").position)
    velocity = motion.point_velocity(body, point[None])[0]
    assert [float(found[f"tip_{axis}"]) for axis in "xyz"] == pytest.approx(point, abs=1e-12)
    assert [float(found[f"tip_velocity_{axis}"]) for axis in "xyz"] == pytest.approx(velocity, abs=1e-11)


def rich_system(tendon):
    """Return a system with everything: contacts, limits, damping, springs, muscles, a held coordinate."""
    model = moving_point_model()
    if tendon is None:
        model = replace(model, muscles=())
    return tree_system(
        model,
        tendon=tendon,
        held={"p2": 0.2},
        actuators={"flexion": 100.0, "b0": (-20.0, 30.0)},
        contacts=[SphereContact("sole", "planar", (0.1, 0.0, 0.0), 0.05, smoothing=0.05)],
        limits=JointLimits(),
        damping=0.3,
        springs={"u0": CoordinateSpring(5.0)},
        ranges={"flexion": (-0.9, 1.4)},
    )


def random_state(system, seed=0):
    """Return x, xdot and u within the bounds of a system's variables."""
    rng = np.random.default_rng(seed)

    def values(variables):
        low = np.array([max(v.lower, -0.5) for v in variables])
        high = np.array([min(v.upper, 0.5) for v in variables])
        return low + (high - low) * rng.uniform(0.2, 0.8, len(variables))

    return values(system.states), rng.normal(size=len(system.states)), values(system.controls)


@pytest.mark.parametrize("tendon", [None, "rigid", "elastic"])
def test_jacobian_of_the_residual_agrees_with_finite_differences(tendon):
    system = rich_system(tendon)
    x, rates, u = random_state(system)
    sizes = (len(x), len(x), len(u))
    y = ca.SX.sym("y", sum(sizes))
    parts = ca.vertsplit(y, np.cumsum([0, *sizes]).tolist())
    residual = system.residual(0.0, parts[0], parts[1], ca.SX(0, 1), parts[2], ca.SX(0, 1))
    function = ca.Function("r", [y], [residual])
    jacobian = np.array(ca.Function("J", [y], [ca.jacobian(residual, y)])(ca.vertcat(x, rates, u)))
    point, h = np.concatenate([x, rates, u]), 1e-4
    for i in range(len(point)):
        steps = [point + s * h * np.eye(len(point))[i] for s in (-2, -1, 1, 2)]
        a, b, c, d = (np.array(function(one)).ravel() for one in steps)
        slope = (a - 8.0 * b + 8.0 * c - d) / (12.0 * h)
        assert jacobian[:, i] == pytest.approx(slope, abs=1e-6 * max(1.0, np.abs(slope).max()))


@pytest.mark.parametrize("tendon", [None, "rigid", "elastic"])
def test_explicit_form_makes_the_residual_zero(tendon):
    system = rich_system(tendon)
    assert system.given_explicit is not None
    x, _, u = random_state(system)
    if tendon == "elastic":  # a force that the fiber can produce: half of the active one
        x[[v.name for v in system.states].index("m_tendon_force")] = 0.1
    rates = acceleration(system, x, u)
    residual = np.array(system.residual(0.0, x, rates, [], u, [])).ravel()
    assert np.abs(residual).max() < 1e-9 * max(1.0, np.abs(rates).max())
    if tendon != "elastic":
        derived = np.array(explicit_form(system)(0.0, x, u, [])[0]).ravel()
        assert rates == pytest.approx(derived, rel=1e-8, abs=1e-8 * np.abs(rates).max())


def test_damped_fibers_of_thelen_leave_the_explicit_form_to_newton():
    model = moving_point_model()
    damped = replace(model.muscles[0], kind="Thelen2003Muscle", parameters=(("fiber_damping", 0.1),))
    assert tree_system(replace(model, muscles=(damped,)), tendon="elastic").given_explicit is None


def without_limits(joint: Joint) -> tuple[Coordinate, ...]:
    return tuple(replace(c, lower=-np.inf, upper=np.inf) for c in joint.coordinates)


def test_the_engine_in_maximal_coordinates_accelerates_alike():
    """Free flight of the human: bodies accelerate as in `borelli.physics`, which knows no coordinates."""
    model = replace(stored("human"), ground=(), self_collision=False)
    hard = tuple(replace(j, softness=Softness(erp=0.0)) for j in model.joints)
    loose = tuple(
        replace(j, coordinates=tuple(replace(c, lower=-np.inf, upper=np.inf) for c in j.coordinates)) for j in hard
    )
    model = replace(model, joints=loose)
    rng = np.random.default_rng(3)
    names = [c.name for c in model.coordinates]
    q, v = (dict(zip(names, map(float, rng.uniform(-s, s, len(names))), strict=True)) for s in (0.4, 2.0))
    compiled = compile_model(model, step=TINY)
    state = initial_state(compiled, coordinates=q, velocities=v)
    record = advance(Simulation(compiled, state, make_inputs(compiled)), 2)
    expected = (record.twist[1] - record.twist[0]) / TINY
    system = tree_system(model, actuators={})
    x = [*(q[s.name] for s in system.states[: len(names)]), *(v[s.name] for s in system.states[: len(names)])]
    rates = acceleration(system, x)[len(names) :]
    order = [s.name for s in system.states[: len(names)]]
    rows = [np.array([[given[n] for n in names]]) for given in (q, v, dict(zip(order, rates, strict=True)))]
    motion = forward_kinematics(model, *rows)
    for part, found in (
        (slice(0, 3), motion.center_acceleration[:, :, 0]),
        (slice(3, 6), motion.angular_acceleration[:, :, 0]),
    ):
        assert np.abs(found - expected[:, part]).max() < 1e-6 * np.abs(expected[:, part]).max()


@pytest.mark.data
def test_external_loads_are_those_of_inverse_dynamics():
    """At the samples, the residual without torques is the generalized force of `newton_euler`; y is up in the model."""
    model = stored(GAIT10)
    q, v, a, free = random_motion(model, 6)
    rng = np.random.default_rng(1)
    time = np.linspace(0.0, 0.5, 6)
    force, point, moment = (rng.normal(size=(6, 2, 3)) * s for s in (300.0, 0.2, 5.0))
    loads = Loads(("right", "left"), ("calcn_r", "calcn_l"), time, force, point, moment)
    system = tree_system(model, actuators={}, external_loads=loads)
    expected = newton_euler(forward_kinematics(model, q, v, a), loads).torque.sum(axis=0)[:, free]
    for k in range(6):
        rates = np.concatenate([v[k, free], a[k, free]])
        residual = system.residual(time[k], np.concatenate([q[k, free], v[k, free]]), rates, [], [], [])
        found = np.array(residual).ravel()[len(free) :]
        assert np.abs(found - expected[k]).max() < 1e-9 * np.abs(expected).max()
    between = 0.23  # in the explicit form too
    rates = np.array(system.explicit(between, np.concatenate([q[0, free], v[0, free]]), [], [])[0]).ravel()
    residual = system.residual(between, np.concatenate([q[0, free], v[0, free]]), rates, [], [], [])
    assert np.abs(np.array(residual)).max() < 1e-8 * np.abs(expected).max()


def test_a_problem_with_external_loads_is_solved():
    """A block of 2 kg pushed by a measured force must stand still: the control is minus the load at all times."""
    body = Body("block", MASS)
    joint = Joint(
        "slide", "slider", "ground", "block", axes=((1.0, 0.0, 0.0),), coordinates=(Coordinate("x", rotational=False),)
    )
    model = Model("block", (body,), (joint,))
    time = np.linspace(0.0, 1.0, 21)
    force = np.zeros((21, 1, 3))
    force[:, 0, 0] = 10.0 * time**2
    loads = Loads(("push",), ("block",), time, force, np.zeros_like(force), np.zeros_like(force))
    system = tree_system(model, external_loads=loads)
    rest = {"x": 0.0, "x_speed": 0.0}
    phase = Phase(
        "hold", system, 1.0, nodes=11, start=rest, end=rest, cost=lambda s: s.x**2, guess={"x_torque": -3.0}
    )  # fmt: skip
    solution = solve(Problem("hold", [phase]))
    assert solution.solved, solution.certificate
    torque = np.asarray(solution.value("x_torque"))
    # the control is linear between nodes 0.1 s apart: a parabola of 10 N/s^2 leaves it by 10 h^2 / 4 at most
    at_points = np.asarray(solution.phase("hold")["time"])
    assert np.abs(torque + 10.0 * at_points**2).max() < 10.0 * 0.1**2 / 4.0


@pytest.mark.data
def test_bounds_and_names_of_a_walking_model():
    model = with_de_groote_muscles(stored(GAIT10))
    system = tree_system(model, tendon="elastic", ranges=WALKING[GAIT10])
    by_name = {v.name: v for v in (*system.states, *system.controls)}
    hip = by_name["hip_flexion_r"]
    assert (hip.lower, hip.upper, hip.unit) == (-0.6, 1.2, "rad")
    assert by_name["soleus_r_activation"].lower == 0.01
    assert by_name["soleus_r_excitation"].upper == 1.0
    assert by_name["soleus_r_tendon_force"].lower == 0.0
    assert len(system.states) == 2 * 10 + 2 * 18
    assert len(system.controls) == 18
    assert {"soleus_r_force", "soleus_r_fiber_length", "center_of_mass_velocity_y"} <= set(system.output_names)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"actuators": {"nose": 1.0}}, "actuators.*nose"),
        ({"damping": {"nose": 1.0}}, "damping.*nose"),
        ({"springs": {"nose": CoordinateSpring(1.0)}}, "springs.*nose"),
        ({"tendon": "rigid"}, "has none"),
    ],
)
def test_unknown_names_are_errors(settings, words):
    with pytest.raises(SettingsError, match=words):
        tree_system(pendulum(), **settings)


def test_actuators_of_the_root_are_none_by_default():
    controls = [v.name for v in tree_system(mixed_tree()).controls]
    assert not any(name.startswith("r") for name in controls)
    assert {"flexion_torque", "b0_torque", "u0_torque"} <= set(controls)

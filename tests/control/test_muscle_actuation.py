"""Muscles in place of joint torques in impulse steps (Weinstein, Guendelman and Fedkiw 2008, section 6)."""

import numpy as np
import pytest

from borelli.control.control_arrays import ControlArrays
from borelli.control.controls import make_controls
from borelli.control.muscle_actuation.actuator import MuscleActuator
from borelli.control.muscle_actuation.settings import MuscleActuation
from borelli.control.response import PD
from borelli.control.targets import targets_from_functions
from borelli.control.track_targets import track_targets
from borelli.errors import ModelError, SettingsError
from borelli.muscles.paths import muscle_paths
from borelli.physics.impulse_step.arrays import compile_impulse
from borelli.physics.impulse_step.modes import BEGIN, CONTROL
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

from ..analysis.load_sharing.sharing_problems import solve_qp
from .muscle_models import floating_arm, trestle

GAINS = PD.from_settling_time(0.2)
SAME_MOTION = 2e-7
"""[rad] Load sharing attains torques to 1e-9 of the strength, about 2e-7 N m: over the least inertia about a joint
axis, 1e-3 kg m^2, and the stiffness of the response, 900 1/s^2."""
COMPLIANCE = 1e-3
OPEN = 0.8
"""Angle between the rods of the trestle [rad]: friction is far from its bound."""


def arm_controls(model):
    moving = {
        "a": lambda t: 0.2 * np.sin(5.0 * t), "b": lambda t: 0.15 * np.sin(4.0 * t),
        "c": lambda t: 0.1 * np.sin(6.0 * t), "e": lambda t: 0.3 - 0.3 * np.cos(5.0 * t),
    }  # fmt: skip
    return make_controls(targets_from_functions(model, moving), GAINS)


def arm_run(actuation, duration=0.5, step=1 / 240):
    model = floating_arm()
    return track_targets(model, arm_controls(model), duration=duration, step=step, actuation=actuation)


@pytest.fixture(scope="module")
def arm():
    return arm_run(MuscleActuation())


def trestle_run(actuation, *, load=0.0, angle=OPEN, friction=None, duration=0.3):
    model = trestle(load)
    start = {"tz": 0.02 + 0.3 * np.cos(0.5 * angle), "ry": 0.5 * angle, "open": -angle}
    controls = make_controls(
        targets_from_functions(model, {"open": lambda t: -angle - 0.1 * np.sin(6.0 * t) ** 2}), GAINS
    )
    return track_targets(
        model,
        controls,
        duration=duration,
        initial_coordinates=start,
        contact_compliance=COMPLIANCE,
        actuation=actuation,
    )


def test_attained_motion_is_that_of_torques(arm):
    torques = arm_run(None)
    assert (arm["sharing_status"].values == 0).all()
    assert arm["muscle_activation"].max() > 0.1
    assert float(np.abs(arm["coordinate_value"] - torques["coordinate_value"]).max()) < SAME_MOTION
    assert float(np.abs(arm["body_com_velocity"] - torques["body_com_velocity"]).max()) < 100.0 * SAME_MOTION


def test_muscles_are_internal_forces(arm):
    # no gravity, no contact: the body's momentum is that of the start
    momentum = arm["linear_momentum"].values
    assert np.abs(momentum - momentum[0]).max() < 1e-12


def test_wrenches_of_a_step_have_no_resultant():
    actuator = one_step()
    wrench, position = actuator.simulation.work.scratch.wrench, actuator.simulation.state.position
    force, moment = wrench[:, :3], wrench[:, 3:] + np.cross(position, wrench[:, :3])
    assert np.abs(force).max() > 10.0
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).sum()
    assert np.abs(moment.sum(axis=0)).max() < 1e-12 * np.abs(moment).sum()


def one_step(reserves=()):
    """The actuator of the floating arm after sharing the first step of a run that starts off its targets."""
    model, step = floating_arm(), 1 / 240
    arrays = ControlArrays(model, arm_controls(model), step, 3)
    compiled, tables = compile_impulse(model, step=step, controlled=arrays.responses(limited=True))
    state = initial_state(
        compiled, coordinates={"a": 0.1, "b": -0.2, "c": 0.15, "e": 0.4}, velocities={"a": 1.0, "e": -1.0}
    )
    trajectory = arrays.target_trajectory(compiled, tables)
    simulation = ImpulseSimulation(compiled, state, make_inputs(compiled), tables, trajectory)
    actuator = MuscleActuator(simulation, MuscleActuation(dict(reserves)))
    record = make_record(compiled, 3)
    simulation._run(1, record, 1, 1, BEGIN)
    actuator.prepare()
    simulation._run(1, record, 1, 1, CONTROL)
    actuator.share()
    return actuator


def test_one_step_against_a_quadratic_program():
    # a general solver on the problem as the paper states it: least squared activation, bounds, torques met
    actuator = one_step()
    q = actuator.simulation.state.coordinate
    chosen = actuator.controlled
    arm = muscle_paths(floating_arm(), q).moment_arm[0][:, chosen]
    columns = (arm * actuator._active[:, None]).T
    required = actuator.required[chosen] - actuator._passive @ arm
    count = len(arm)
    twin = solve_qp(columns, required, np.ones(count), np.zeros(count), np.zeros(count), np.ones(count))
    assert twin is not None
    assert np.abs(required).max() > 1.0
    assert actuator.status == 0
    np.testing.assert_allclose(actuator.activation, twin, atol=1e-7)


def test_work_of_muscles_is_the_change_of_energy():
    # of first order in the step, as the energy of the impulse step itself: 3 % at 1/240 s
    arm = arm_run(MuscleActuation(), duration=0.3, step=1 / 1920)
    moved = np.diff(arm["coordinate_value"].values[:, 6:], axis=0)
    work = np.cumsum((arm["torque"].values[1:, 6:] * moved).sum(axis=1))
    gain = (arm["kinetic_energy"] - arm["kinetic_energy"][0]).values[1:]
    assert np.abs(gain).max() > 0.01
    assert np.abs(work - gain).max() < 0.01 * np.abs(gain).max()


def test_reserves_supply_what_has_no_muscle():
    model = floating_arm()
    weak = MuscleActuation({"a": 5.0, "b": 5.0, "c": 5.0, "e": 5.0}, strength=1e-3)
    data = track_targets(model, arm_controls(model), duration=0.2, actuation=weak)
    torques = track_targets(model, arm_controls(model), duration=0.2)
    assert float(np.abs(data["reserve_torque"]).max()) > 0.1
    assert float(np.abs(data["unattained_torque"]).max()) < 1e-9
    assert float(np.abs(data["coordinate_value"] - torques["coordinate_value"]).max()) < SAME_MOTION


def test_passive_group_has_no_sum():
    # muscles attain the sum of a group's torques; passive structures transmit the difference
    model = floating_arm()
    grouped = MuscleActuation(passive_groups=(("b", "e"),))
    data = track_targets(model, arm_controls(model), duration=0.1, actuation=grouped)
    pair = data["reserve_torque"].sel(coordinate=["b", "e"]).values
    assert np.abs(pair).max() > 1e-3
    assert np.abs(pair.sum(axis=1)).max() < 1e-12


def test_controls_that_know_contacts_support_the_weight():
    torques, muscles = trestle_run(None), trestle_run(MuscleActuation())
    for data in (torques, muscles):
        vertical = data["ground_reaction_force"].sel(axis="z").sum("body").values[10:]
        momentum = np.diff(data["linear_momentum"].sel(axis="z").values)[9:] * 240.0
        np.testing.assert_allclose(vertical, 8.0 * 9.81 + momentum, rtol=0.02)
        assert float(np.abs(data["coordinate_error"].sel(coordinate="open")).max()) < 0.01
    # the first step is solved from the same state; later ones differ by the tolerance of friction
    difference = np.abs(muscles["coordinate_value"] - torques["coordinate_value"]).values
    assert difference[1].max() < 1e-10
    assert difference[:4].max() < 1e-6


def test_body_too_heavy_for_its_muscles_sinks_with_a_warning():
    light, heavy = (trestle_run(MuscleActuation(strength=2.0), load=load, angle=2.4) for load in (0.0, 400.0))
    height = [data["body_position"].sel(axis="z").values.mean(axis=1) for data in (light, heavy)]
    assert height[1][-1] < height[0][-1] - 0.02
    assert "too weak" in heavy.attrs["notes"]
    assert "too weak" not in light.attrs["notes"]
    assert heavy["muscle_activation"].max() <= 1.0
    assert np.isfinite(heavy["body_position"].values).all()
    assert np.abs(heavy["body_com_velocity"].values).max() < 5.0  # it falls, and does not explode


def test_errors_name_what_is_wrong():
    model = floating_arm()
    controls = arm_controls(model)
    with pytest.raises(SettingsError, match="reserves: Unknown coordinate 'knee'"):
        track_targets(model, controls, duration=0.1, actuation=MuscleActuation({"knee": 1.0}))
    with pytest.raises(SettingsError, match="Method 'stable' does not support it"):
        track_targets(model, controls, duration=0.1, method="stable", actuation=MuscleActuation())
    with pytest.raises(SettingsError, match="has no control"):
        some = [control for control in controls if control.name != "e"]
        track_targets(model, some, duration=0.1, actuation=MuscleActuation())
    with pytest.raises(SettingsError, match="positive"):
        MuscleActuation({"a": -1.0})
    bare = trestle()
    bare = type(bare)(bare.name, bare.bodies, bare.joints)
    own = make_controls(targets_from_functions(bare, {"open": lambda t: 0.0}), GAINS)
    with pytest.raises(ModelError, match="has no muscles"):
        track_targets(bare, own, duration=0.1, actuation=MuscleActuation())

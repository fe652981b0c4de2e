"""Muscles and ligaments are internal forces, and their work is the change of energy."""

import numpy as np
import pytest

from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.muscle_step.arrays import make_muscle_tables
from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

from .muscled import STEPPINGS, floating, run, slider

DURATION = 0.2
ROUNDING = 1e-12
"""Relative to the mass of the model times the speed of its fastest body."""
EXCITATIONS = {"one": lambda t: 0.5 + 0.5 * np.sin(20.0 * t), "two": lambda t: 0.4 + 0.3 * np.cos(13.0 * t)}
STARTS = {
    "planar": ({"h": 0.2, "b3": 0.1}, {"tx": 0.3, "rz": 1.0}),
    "spatial": ({"h": 0.2, "b1": 0.1, "b2": 0.1}, {"rx": 1.0, "tz": 0.3, "ry": -2.0}),
}


def fly(stepping, space="planar", step=1 / 1000, rigid=False):
    values, velocities = STARTS[space]
    return run(
        stepping, floating(space == "planar", rigid), duration=DURATION, step=step, excitations=EXCITATIONS,
        initial_coordinates=values, initial_velocities=velocities,
    )  # fmt: skip


def drift(data, what):
    values = data[what].values
    return np.abs(values - values[0]).max()


@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("rigid", [False, True])
def test_momentum_is_kept(stepping, rigid):
    """In the plane, where the gyroscopic terms of both steps vanish, angular momentum is kept to rounding as well."""
    data = fly(stepping, rigid=rigid)
    speed = np.abs(data["body_com_velocity"].values).max()
    assert data["muscle_force"].values.max() > 100.0 and data["ligament_force"].values.max() > 10.0
    assert drift(data, "linear_momentum") < ROUNDING * 4.5 * speed
    assert drift(data, "angular_momentum") < ROUNDING * 4.5 * speed


def test_momentum_of_a_tumbling_body_in_impulse_steps():
    """Muscles act at the start of a step, where they change no momentum; the rest of the step keeps it."""
    data = fly("impulse", "spatial", 1 / 1000)
    assert drift(data, "linear_momentum") < ROUNDING
    assert drift(data, "angular_momentum") < ROUNDING * 4.5 * np.abs(data["body_com_velocity"].values).max()


def test_momentum_of_a_tumbling_body_in_soft_steps():
    """In space soft steps integrate the gyroscopic terms with an error of first order, with muscles and without."""
    coarse, fine = (fly("soft", "spatial", step) for step in (1 / 1000, 1 / 2000))
    assert drift(fine, "linear_momentum") < ROUNDING
    ratio = drift(coarse, "angular_momentum") / drift(fine, "angular_momentum")
    assert 1.7 < ratio < 2.3


def test_wrenches_of_muscles_add_up_to_zero():
    """On all bodies together, about the world's origin, in space and with wraps."""
    model = floating(planar=False)
    compiled = compile_model(model, step=1e-3)
    values, velocities = STARTS["spatial"]
    state = initial_state(compiled, coordinates=values | {"tx": 0.7, "ry": 0.4}, velocities=velocities)
    state.muscle[:, 0] = 1.0
    simulation = MuscleSimulation(
        compiled, state, make_inputs(compiled), make_muscle_tables(compiled, np.ones((1, 2, 2)))
    )
    simulation.start_record(1)
    wrench = simulation.muscle_work.wrench
    moment = wrench[:, 3:] + np.cross(state.position, wrench[:, :3])
    size = np.abs(wrench[:, :3]).max()
    assert size > 100.0
    assert np.abs(wrench[:, :3].sum(axis=0)).max() < ROUNDING * size
    assert np.abs(moment.sum(axis=0)).max() < ROUNDING * size


def work(data):
    """Work [J] of muscles, with their passive fibers, and of ligaments: minus the integral of tension by length."""
    total = 0.0
    for what in ("muscle", "ligament"):
        force, length = data[f"{what}_force"].values, data[f"{what}_length"].values
        total -= float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(length, axis=0)))
    return total


def gain(data):
    energy = (data["kinetic_energy"] + data["potential_energy"]).values
    return float(energy[-1] - energy[0])


@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("rigid", [False, True])
def test_work_is_the_change_of_energy(stepping, rigid):
    """Within 1 % at a step of 0.5 ms, with an error of first order in the step."""
    errors, gains = [], []
    for step in (1 / 2000, 1 / 8000):
        data = fly(stepping, step=step, rigid=rigid)
        gains.append(gain(data))
        errors.append(abs(work(data) - gains[-1]))
    assert gains[-1] > 5.0  # [J]
    assert errors[0] < 0.01 * gains[0]
    assert errors[0] > 3.0 * errors[1]


@pytest.mark.parametrize("rigid", [False, True])
def test_both_steps_converge_to_one_motion(rigid):
    """Their difference is of first order in the step."""
    gaps = []
    for step in (1 / 1000, 1 / 2000, 1 / 4000):
        soft, impulse = (fly(stepping, step=step, rigid=rigid)["coordinate_value"].values[-1] for stepping in STEPPINGS)
        gaps.append(np.abs(soft - impulse).max())
    assert gaps[2] < 0.01  # [rad or m], of rotations by 1 to 3 rad
    assert gaps[0] > 3.0 * gaps[2]


def test_a_ligament_pulls_by_its_law():
    """Force is 2000 N times strain while a mass stretches the ligament, next to an unexcited muscle."""
    model = slider(ligament=True, activation=0.01)
    data = run(
        "soft", model, duration=0.5, step=1 / 4000, excitations=0.0, initial_velocities={"x": 0.05},
        initial_coordinates={"x": 0.3},
    )  # fmt: skip
    stretch = data["ligament_length"].values[:, 0] / 0.3 - 1.0
    np.testing.assert_allclose(data["ligament_force"].values[:, 0], 2000.0 * np.maximum(stretch, 0.0), rtol=1e-9)
    assert data["ligament_force"].values.max() > 1.0

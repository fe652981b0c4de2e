"""One muscle on a slider against the same differential equations, integrated by scipy to ten digits."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from borelli.muscles.activation import activation_rate
from borelli.muscles.hill import (
    elastic_tendon_force,
    evaluate_curve,
    fiber_velocity,
    make_muscle_arrays,
    rigid_tendon_force,
)
from borelli.physics.inputs import AppliedForce

from .muscled import STEPPINGS, run, slider

HEAVY = 1e9
"""Mass [kg] that 500 N do not move: the path keeps its length, or its speed."""
ODE = {"method": "Radau", "rtol": 1e-9, "atol": 1e-12}


def tendon(arrays, path, fiber):
    """Tendon force [N] of a state, from the balance of forces on the tendon itself."""
    width = arrays.optimal_fiber_length[0] * np.sin(arrays.pennation_angle[0])
    strain = (path - np.sqrt(fiber**2 - width**2)) / arrays.tendon_slack_length[0]
    return float(arrays.max_isometric_force[0] * evaluate_curve(arrays, "tendon", [[strain]])[0][0, 0])


def solve(model, excitation, duration, *, load=lambda t: 0.0, mass=HEAVY, speed=0.0, breaks=()):
    """Path length, path speed, activation and fiber length at the end, and the function of the tendon force."""
    arrays = make_muscle_arrays(model)
    length, activation = model.coordinates[0].default, model.muscles[0].default_activation
    start = elastic_tendon_force(arrays, [[length]], [[0.0]], [[activation]])

    def rate(t, y):
        x, v, a, fiber = y
        da = activation_rate(arrays, [[a]], [[excitation(t)]])[0][0, 0]
        speed_of_fiber = fiber_velocity(arrays, [[x]], [[fiber]], [[a]])[0][0, 0]
        return v, (load(t) - tendon(arrays, x, fiber)) / mass, da, speed_of_fiber

    y = np.array([length, speed, activation, start.fiber_length[0, 0]])
    for begin, end in zip((0.0, *breaks), (*breaks, duration), strict=True):
        y = solve_ivp(rate, (begin, end), y, **ODE).y[:, -1]
    return y, tendon(arrays, y[0], y[3])


@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("kind", ["Thelen2003Muscle", "Millard2012EquilibriumMuscle", "DeGrooteFregly2016Muscle"])
def test_isometric_contraction(stepping, kind):
    """Excited from 0.05 to 0.8 at a fixed length: the transient, then the equilibrium in closed form."""
    model = slider(HEAVY, kind=kind)
    (*_, a, fiber), force = solve(model, lambda t: 0.8, 0.06)
    data = run(stepping, model, duration=0.5, step=1 / 1000, excitations=0.8)
    during, end = data.isel(time=60, muscle=0), data.isel(time=-1, muscle=0)
    assert abs(float(during["muscle_activation"]) - a) < 1e-6
    assert abs(float(during["fiber_length"]) - fiber) < 1e-6  # [m]
    assert abs(float(during["muscle_force"]) - force) < 0.001 * force
    steady = elastic_tendon_force(make_muscle_arrays(model), [[0.3]], [[0.0]], [[float(end["muscle_activation"])]])
    assert abs(float(end["muscle_force"]) - steady.force[0, 0]) < 1e-4 * steady.force[0, 0]
    assert data["muscle_status"].values.max() == 0


@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("speed", [-0.2, 0.1])
def test_ramp(stepping, speed):
    """Shortened and stretched at a constant speed [m/s] while excitation rises linearly."""
    model = slider(HEAVY, activation=0.5)
    (x, v, a, fiber), force = solve(model, lambda t: 0.5 + 2.0 * t, 0.1, speed=speed)
    data = run(
        stepping, model, duration=0.1, step=1 / 2000, excitations={"muscle": lambda t: 0.5 + 2.0 * t},
        initial_velocities={"x": speed},
    ).isel(time=-1, muscle=0)  # fmt: skip
    assert abs(float(data["muscle_length"]) - x) < 1e-9 and abs(float(data["muscle_velocity"]) - v) < 1e-9
    assert abs(float(data["muscle_activation"]) - a) < 1e-5  # excitation is replaced by its mean in each half step
    assert abs(float(data["fiber_length"]) - fiber) < 1e-6
    assert abs(float(data["muscle_force"]) - force) < 0.002 * force


@pytest.mark.parametrize("stepping", STEPPINGS)
def test_quick_release(stepping):
    """A mass held by its load is released to half of it after 20 ms; the error is of first order in the step."""
    model = slider(5.0, activation=1.0)
    full = float(elastic_tendon_force(make_muscle_arrays(model), [[0.3]], [[0.0]], [[1.0]]).force[0, 0])
    loads = (
        AppliedForce("mass", (full, 0.0, 0.0), end=0.02 - 1e-9),
        AppliedForce("mass", (0.5 * full, 0.0, 0.0), start=0.02 - 1e-9),
    )
    expected, force = solve(
        model, lambda t: 1.0, 0.1, load=lambda t: full if t < 0.02 else 0.5 * full, mass=5.0, breaks=(0.02,)
    )
    errors = []
    for step in (1 / 1000, 1 / 2000, 1 / 4000):
        data = run(stepping, model, duration=0.1, step=step, excitations=1.0, forces=loads)
        end = data.isel(time=-1, muscle=0)
        found = [end["muscle_length"], end["muscle_velocity"], end["fiber_length"]]
        errors.append(np.abs(np.array(found, float) - expected[[0, 1, 3]]))
    assert abs(float(end["muscle_force"]) - force) < 0.01 * force
    assert 0.3 - expected[0] > 0.01  # [m]: it moved
    assert (errors[-1] < 0.01 * np.array([0.02, 0.3, 0.02])).all()
    assert (errors[0] > 3.0 * errors[2]).all()


@pytest.mark.parametrize("stepping", STEPPINGS)
def test_rigid_tendon(stepping):
    """A rigid tendon: the fiber follows the path, and force is that of length and speed."""
    model = slider(5.0, activation=0.5, rigid=True)
    arrays = make_muscle_arrays(model)

    def rate(t, y):
        x, v, a = y
        da = activation_rate(arrays, [[a]], [[0.5]])[0][0, 0]
        state = rigid_tendon_force(arrays, [[x]], [[v]])
        # Thelen's force-velocity curve depends on activation
        fiber, speed = state.fiber_length[0, 0], state.fiber_velocity[0, 0]
        active = a * evaluate_curve(arrays, "active", [[fiber / 0.1]])[0][0, 0]
        active *= max(evaluate_curve(arrays, "velocity", [[speed / 1.0]], [[a]])[0][0, 0], 0.0)
        passive = evaluate_curve(arrays, "passive", [[fiber / 0.1]])[0][0, 0]
        return v, -500.0 * state.pennation_cosine[0, 0] * (active + passive) / 5.0, da

    expected = solve_ivp(rate, (0.0, 0.08), [0.3, 0.0, 0.5], **ODE).y[:, -1]
    errors = []
    for step in (1 / 1000, 1 / 2000, 1 / 4000):
        end = run(stepping, model, duration=0.08, step=step, excitations=0.5).isel(time=-1, muscle=0)
        errors.append(abs(float(end["muscle_length"]) - expected[0]))
        assert abs(float(end["muscle_activation"]) - expected[2]) < 1e-9
    assert 0.3 - expected[0] > 0.01
    assert errors[-1] < 0.01 * (0.3 - expected[0])
    assert errors[0] > 3.0 * errors[2]

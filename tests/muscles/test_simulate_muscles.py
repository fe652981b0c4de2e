"""Forward simulation of muscles: isometric, ramp and quick release with energy balance, order, OpenSim as referee."""

import numpy as np
import pytest
from scipy.integrate import quad

from borelli.errors import SettingsError
from borelli.muscles.excitations import Excitations
from borelli.muscles.hill import elastic_tendon_force, evaluate_curve, make_muscle_arrays, simulate_muscles

from .muscle_cases import DE_GROOTE, ELASTIC, KINDS, MILLARD, MUJOCO, PARK, THELEN, ask_opensim, model, muscle

ALL = make_muscle_arrays(model(*(muscle(kind, kind) for kind in KINDS)))
SOFT = make_muscle_arrays(model(*(muscle(kind, kind) for kind in ELASTIC)))


def constant(value, arrays=SOFT):
    return lambda time: np.full((len(time), len(arrays.names)), value)


def curve_energy(arrays, m, name, low, high):
    """Return the integral of a normalized curve, by adaptive quadrature."""
    one = arrays._replace(names=("m",), curve=arrays.curve[[m]], curve_kind=arrays.curve_kind[[m]])
    return quad(lambda x: evaluate_curve(one, name, [[x]])[0][0, 0], low, high, epsabs=1e-11, limit=400)[0]


def balance_error(arrays, data, m):
    """Return work at the ends minus stored, damped and fiber work [J], relative to the largest part."""
    time = data["time"].values
    most, optimal = arrays.max_isometric_force[m], arrays.optimal_fiber_length[m]
    slack, width = arrays.tendon_slack_length[m], optimal * np.sin(arrays.pennation_angle[m])
    length, fiber, velocity, force, active = (
        data[name].values[:, m]
        for name in ("muscle_length", "fiber_length", "fiber_velocity", "muscle_force", "active_fiber_force")
    )
    tendon = (length - np.sqrt(fiber**2 - width**2)) / slack
    parts = [
        np.trapezoid(force, length),  # into the muscle at its ends
        -most * slack * curve_energy(arrays, m, "tendon", tendon[0], tendon[-1]),
        -most * optimal * curve_energy(arrays, m, "passive", fiber[0] / optimal, fiber[-1] / optimal),
        -np.trapezoid(active * velocity, time),  # of the active fiber
        -np.trapezoid(most * arrays.damping[m] / (optimal * arrays.max_contraction_velocity[m]) * velocity**2, time),
    ]
    return abs(sum(parts)) / max(map(abs, parts))


def ramp(time):
    """Return a path that lengthens by 8 mm and shortens by 12 mm, with a continuous velocity."""
    return np.tile((0.3 + 0.008 * np.sin(9.0 * time) - 0.004 * (1.0 - np.cos(9.0 * time)))[:, None], len(ELASTIC))


@pytest.mark.parametrize("m", range(len(ELASTIC)), ids=ELASTIC)
def test_ramp_balances_energy_to_second_order(m):
    errors = []
    for rate in (240, 480, 960):
        time = np.linspace(0.0, 0.5, rate // 2 + 1)
        data = simulate_muscles(SOFT, time, ramp, constant(0.5), activation=[0.5] * 4, max_step=1.0)
        assert not data["muscle_status"].values.any()
        errors.append(balance_error(SOFT, data, m))
    assert errors[-1] < 1e-3
    # the first step changes from rest; its error falls with the first order at least
    assert errors[0] / errors[2] > 6.0


@pytest.mark.parametrize("m", range(len(ELASTIC)), ids=ELASTIC)
def test_quick_release_balances_energy(m):
    """Isometric at 0.3 m, shortened by 6 mm within 10 ms (Hill 1938), held: the force drops, then recovers."""
    time = np.union1d(np.linspace(0.0, 0.6, 6001), [0.2, 0.21])
    length = np.interp(time, [0.0, 0.2, 0.21, 0.6], [0.3, 0.3, 0.294, 0.294])[:, None] * np.ones(4)
    data = simulate_muscles(SOFT, time, length, constant(1.0), activation=[1.0] * 4)
    force = data["muscle_force"].values[:, m]
    before, lowest, after = force[time <= 0.2][-1], force[(time > 0.2) & (time < 0.25)].min(), force[-1]
    assert lowest < 0.75 * before and lowest < after < 1.05 * before
    assert balance_error(SOFT, data, m) < 2e-3


@pytest.mark.parametrize("m", range(len(ELASTIC)), ids=ELASTIC)
def test_isometric_force_ends_in_the_equilibrium(m):
    errors = []
    for rate in (240, 960):
        time = np.linspace(0.0, 2.0, 2 * rate + 1)
        data = simulate_muscles(SOFT, time, constant(0.3), constant(0.6), activation=[0.1] * 4, max_step=1.0)
        errors.append(balance_error(SOFT, data, m))
    assert errors[1] < 1e-3 and errors[0] / errors[1] > 8.0
    a = data["muscle_activation"].values[-1:]
    expected = elastic_tendon_force(SOFT, np.full((1, 4), 0.3), np.zeros((1, 4)), a)
    assert data["muscle_force"].values[-1, m] == pytest.approx(expected.force[0, m], rel=1e-6)
    assert data["fiber_velocity"].values[-1, m] == pytest.approx(0.0, abs=1e-6)


def test_states_converge_with_second_order():
    def final(rate):
        time = np.linspace(0.0, 0.4, round(0.4 * rate) + 1)
        data = simulate_muscles(SOFT, time, ramp, constant(0.7), activation=[0.2] * 4, max_step=1.0)
        return data["fiber_length"].values[-1]

    truth = final(24000)
    coarse, fine = abs(final(240) - truth), abs(final(480) - truth)
    assert (coarse < 2e-4 * SOFT.optimal_fiber_length).all()
    assert (coarse / fine > 3.0).all()


@pytest.mark.parametrize("step", (1.0 / 240.0, 1.0 / 30.0))
def test_stiff_muscles_are_stable_at_large_steps(step):
    """Short tendons, fast fibers and no activation are stiff; states stay bounded and come to rest."""
    stiff = make_muscle_arrays(
        model(*(muscle(k, k, tendon_slack_length=0.01, max_contraction_velocity=20.0) for k in ELASTIC))
    )
    time = np.arange(0.0, 2.0, step)
    excitation = np.where(time % 0.5 < 0.25, 1.0, 0.0)[:, None] * np.ones(4)
    length = np.full(excitation.shape, 0.11)
    data = simulate_muscles(stiff, time, length, excitation, max_step=step)
    assert np.isfinite(data["muscle_force"].values).all()
    assert (data["muscle_force"].values <= 1.5 * 1000.0).all()
    rest = simulate_muscles(stiff, time, length, 0.0 * excitation, max_step=step)
    assert (np.abs(rest["fiber_velocity"].values[-1]) < 1e-4).all()


def test_slack_tendons_recover():
    """The path shortens faster than fibers can: no force and the status, then force again."""
    time = np.linspace(0.0, 1.5, 361)
    length = np.interp(time, [0.0, 0.1, 0.12, 1.5], [0.31, 0.31, 0.27, 0.27])[:, None] * np.ones(4)
    data = simulate_muscles(SOFT, time, length, constant(0.8), activation=[0.8] * 4)
    force, status = data["muscle_force"].values, data["muscle_status"].values
    assert (force >= 0.0).all()
    assert (force.min(axis=0) == 0.0).all() and (status.max(axis=0) == 1).all()
    assert (force[-1] > 100.0).all() and not status[-1].any()


def test_rigid_tendons_follow_the_path():
    rigid = make_muscle_arrays(model(*(muscle(k, k, ignore_tendon_compliance=1.0) for k in KINDS)))
    time = np.linspace(0.0, 0.5, 51)
    path = (0.3 + 0.01 * time)[:, None] * np.ones(len(KINDS))
    data = simulate_muscles(rigid, time, path, constant(0.5, rigid))
    width = rigid.optimal_fiber_length * np.sin(rigid.pennation_angle)
    np.testing.assert_allclose(data["fiber_length"].values, np.hypot(path - 0.2, width), rtol=1e-12)
    cosine = (path - 0.2) / data["fiber_length"].values
    np.testing.assert_allclose(data["fiber_velocity"].values, 0.01 * cosine, rtol=1e-9)


def test_muscles_do_not_depend_on_their_neighbors():
    time = np.linspace(0.0, 0.3, 40)
    both = simulate_muscles(ALL, time, constant(0.3, ALL), constant(0.4, ALL))
    for kind in (PARK, MUJOCO):
        alone = make_muscle_arrays(model(muscle(kind, kind)))
        single = simulate_muscles(alone, time, constant(0.3, alone), constant(0.4, alone))
        np.testing.assert_array_equal(both["muscle_force"].sel(muscle=kind), single["muscle_force"].sel(muscle=kind))


@pytest.mark.crosscheck
@pytest.mark.parametrize("kind", (THELEN, MILLARD))
def test_trajectory_of_opensim(kind, opensim_python, tmp_path):
    """Step of excitation at 0.1 s on a path that lengthens, integrated by OpenSim at an accuracy of 1e-9."""
    times = [0.05, 0.1, 0.12, 0.15, 0.2, 0.3]
    case = {
        "name": "m", "class": kind, "length": 0.3, "velocity": 0.0, "activation": 0.05, "excitation": 0.05,
        "fiber_length": 0.1, "slow": 0.5, "times": times, "on": 0.1, "low": 0.05, "high": 0.8,
        "path_time": [0.0, 0.5], "path": [0.3, 0.31],
        "properties": {"max_isometric_force": 1000.0, "optimal_fiber_length": 0.1, "tendon_slack_length": 0.2,
                       "pennation_angle_at_optimal": 0.2, "max_contraction_velocity": 10.0},
    }  # fmt: skip
    (answer,) = ask_opensim(opensim_python, tmp_path, simulations=[case])["simulations"]
    constants = {THELEN: (0.015, 0.05), MILLARD: (0.01, 0.04)}[kind]
    arrays = make_muscle_arrays(model(muscle(kind, activation_time=constants[0], deactivation_time=constants[1])))
    table = Excitations(("m",), [0.0, 0.1], [[0.05], [0.8]], "constant")
    frames = np.array([0.0, *times])
    data = simulate_muscles(
        arrays, frames, 0.3 + 0.02 * frames[:, None], table,
        activation=[0.05], fiber_length=[answer[0][1]], max_step=1e-4,
    )  # fmt: skip
    for name, column in (("muscle_activation", 0), ("fiber_length", 1), ("muscle_force", 2)):
        expected = np.array(answer)[:, column]
        np.testing.assert_allclose(data[name].values[:, 0], expected, rtol=5e-6, err_msg=name)


def test_wrong_input_is_refused():
    with pytest.raises(SettingsError, match="increasing"):
        simulate_muscles(SOFT, [0.0, 0.0], constant(0.3), constant(0.5))
    with pytest.raises(SettingsError, match="NaN"):
        simulate_muscles(SOFT, [0.0, 0.1], constant(np.nan), constant(0.5))
    with pytest.raises(SettingsError, match="step"):
        simulate_muscles(SOFT, [0.0, 0.1], constant(0.3), constant(0.5), max_step=0.0)
    with pytest.raises(SettingsError, match=DE_GROOTE):
        table = Excitations((PARK, THELEN, MILLARD), [0.0], [[0.1, 0.1, 0.1]])
        simulate_muscles(SOFT, [0.0, 0.1], constant(0.3), table)

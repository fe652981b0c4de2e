"""Load sharing: optimality against other solvers, laws of scaling and splitting, unattainable torques, bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from borelli.analysis.load_sharing.costs import LINEAR_PROGRAM_TERM
from borelli.analysis.load_sharing.share_loads import STATUS, share_loads
from borelli.analysis.load_sharing.sharing_settings import Reserves, SharingSettings
from borelli.errors import SettingsError

from .sharing_problems import make_problem, nearest_distance, solve_qp, stationarity_error, strengths

ATTAINED, NEAREST, MISSING = (STATUS.index(word) for word in ("attained", "nearest", "missing"))
KKT = 1e-8
"""Largest KKT residual that is accepted."""
SAME = 1e-6
"""Difference of activations that agree: the referees stop at about 1e-8."""


def produced(problem, result):
    """Return the torques of muscles and reserves."""
    return np.einsum("fm,fmc->fc", result.force, problem.moment_arm) + result.reserve_torque


def check_balance(problem, result):
    """Assert that produced and unattained torque add up to the required one, and that bounds are respected."""
    total = produced(problem, result) + result.unattained_torque
    np.testing.assert_allclose(total, problem.torque, atol=1e-10 * (1.0 + np.abs(problem.torque).max()))
    assert (result.activation >= 0.0).all() and (result.activation <= 1.0).all()
    assert (result.kkt_residual <= KKT).all()


@pytest.mark.parametrize(("muscles", "coordinates", "span"), [(10, 3, 2), (40, 12, 3), (92, 23, 4), (60, 60, 2)])
def test_squares_agree_with_a_qp_solver(muscles, coordinates, span):
    rng = np.random.default_rng(muscles)
    problem = make_problem(rng, 8, muscles, coordinates, span=span)
    weights = rng.uniform(0.5, 2.0, muscles)
    result = share_loads(*problem, weights=weights)
    assert (result.status == ATTAINED).all()
    check_balance(problem, result)
    for frame in range(8):
        A, zero, one = problem.matrix(frame), np.zeros(muscles), np.ones(muscles)
        expected = solve_qp(A, problem.torque[frame], weights, zero, zero, one)
        np.testing.assert_allclose(result.activation[frame], expected, atol=SAME)
        assert result.objective[frame] <= weights @ expected**2 * (1.0 + 1e-7)


def degenerate(kind, rng):
    """Return a problem with a defect that makes A singular or bounds active."""
    problem = make_problem(rng, 6, 24, 8, span=3)
    arm, torque, force = (array.copy() for array in problem)
    if kind == "equal muscles":
        arm[:, 12:], force[:, 12:] = arm[:, :12], force[:, :12]
    elif kind == "zero arms":
        arm[:, 3:6] = 0.0
    elif kind == "zero force":
        force[:, 5] = 0.0
    elif kind == "dependent coordinates":
        arm[..., 7] = 2.0 * arm[..., 6]
    elif kind == "uncrossed coordinate":
        arm[..., 4] = 0.0
    activation = rng.uniform(0.0, 1.0, force.shape)
    if kind == "saturation":
        activation = (rng.uniform(size=force.shape) < 0.5).astype(float)
    torque = np.einsum("fm,fmc->fc", activation * force, arm)
    if kind == "rest":
        torque[:] = 0.0
    return problem._replace(moment_arm=arm, torque=torque, max_force=force)


KINDS = (
    "equal muscles", "zero arms", "zero force", "dependent coordinates", "uncrossed coordinate", "saturation", "rest",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_problems_agree_with_a_qp_solver(kind):
    problem = degenerate(kind, np.random.default_rng(3))
    result = share_loads(*problem)
    assert (result.status == ATTAINED).all()
    check_balance(problem, result)
    zero, one = np.zeros(24), np.ones(24)
    for frame in range(6):
        A, torque = problem.matrix(frame), problem.torque[frame]
        if kind == "dependent coordinates":
            A, torque = A[:7], torque[:7]
        expected = solve_qp(A, torque, one, zero, zero, one)
        np.testing.assert_allclose(result.activation[frame], expected, atol=SAME)


@pytest.mark.parametrize("kind", [*KINDS, None])
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0, 5.0])
def test_nothing_nearer_is_attainable(kind, exponent):
    rng = np.random.default_rng(5)
    problem = make_problem(rng, 6, 24, 8) if kind is None else degenerate(kind, rng)
    problem = problem._replace(torque=3.0 * problem.torque + rng.normal(0.0, 40.0, problem.torque.shape))
    result = share_loads(*problem, settings=SharingSettings(exponent=exponent))
    assert (result.status == NEAREST).all()
    check_balance(problem, result)
    scale = strengths(problem)
    for frame in range(6):
        A = problem.matrix(frame)
        distance = np.linalg.norm(result.unattained_torque[frame] / scale)
        least = nearest_distance(A, problem.torque[frame], scale, np.zeros(24), np.ones(24))
        assert distance == pytest.approx(least, rel=1e-8)


def test_least_cost_among_the_nearest():
    """Torques that no activation attains: the nearest attainable ones, given as required, have the same solution."""
    rng = np.random.default_rng(6)
    problem = make_problem(rng, 6, 30, 6, demand=2.5)
    result = share_loads(*problem)
    nearest = np.flatnonzero(result.status == NEAREST)
    assert len(nearest) >= 4
    for frame in nearest:
        A, attained = problem.matrix(frame), produced(problem, result)[frame]
        inner = (result.activation[frame] > 1e-7) & (result.activation[frame] < 1.0 - 1e-7)
        # what the muscles off their bounds must add is attained by least squares of least norm
        remainder = attained - A[:, ~inner] @ result.activation[frame, ~inner]
        expected = np.linalg.pinv(A[:, inner]) @ remainder
        np.testing.assert_allclose(result.activation[frame, inner], expected, atol=SAME)


@pytest.mark.parametrize("exponent", [1.5, 2.5, 3.0, 4.0])
def test_powers_agree_with_slsqp(exponent):
    rng = np.random.default_rng(7)
    problem = make_problem(rng, 4, 9, 3, span=2)
    result = share_loads(*problem, settings=SharingSettings(exponent=exponent))
    assert (result.status == ATTAINED).all()
    for frame in range(4):
        A, b = problem.matrix(frame), problem.torque[frame]
        scale = np.abs(A).max(axis=1)
        constraint = {
            "type": "eq",
            "fun": lambda x, A=A, b=b, scale=scale: (A @ x - b) / scale,
            "jac": lambda x, A=A, scale=scale: A / scale[:, None],
        }
        slow = minimize(
            lambda x: (np.abs(x) ** exponent).sum(),
            np.full(9, 0.5),
            jac=lambda x: exponent * np.sign(x) * np.abs(x) ** (exponent - 1.0),
            bounds=[(0.0, 1.0)] * 9,
            constraints=constraint,
            options={"ftol": 1e-15, "maxiter": 500},
        )
        assert result.objective[frame] <= slow.fun + 1e-9
        np.testing.assert_allclose(result.activation[frame], slow.x, atol=2e-4)  # flat minimum: SLSQP stops early


@pytest.mark.parametrize("exponent", [1.5, 2.0, 3.0, 4.0, 5.0])
def test_optimality_conditions_hold(exponent):
    """Multipliers found by a least-squares solver satisfy gradient = A^T y + multipliers of the bounds."""
    rng = np.random.default_rng(8)
    problem = make_problem(rng, 5, 30, 8)
    weights = rng.uniform(0.5, 2.0, 30)
    result = share_loads(*problem, settings=SharingSettings(exponent=exponent), weights=weights)
    for frame in range(5):
        x = result.activation[frame]
        gradient = weights * exponent * x ** (exponent - 1.0)
        error = stationarity_error(problem.matrix(frame), gradient, x, np.zeros(30), np.ones(30))
        assert error <= 1e-6 * exponent  # the derivative is a line below 0.01 for p = 5: at most 1e-8


def test_exponent_one_solves_the_linear_program():
    problem = make_problem(np.random.default_rng(9), 6, 30, 8)
    result = share_loads(*problem, settings=SharingSettings(exponent=1.0))
    for frame in range(6):
        A, b = problem.matrix(frame), problem.torque[frame]
        scale = np.abs(A).max(axis=1)
        least = linprog(np.ones(30), A_eq=A / scale[:, None], b_eq=b / scale, bounds=(0.0, 1.0)).fun
        assert least - 1e-6 <= result.objective[frame] <= least + LINEAR_PROGRAM_TERM * 30


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("cost", ["volume", "metabolic"])
def test_a_split_muscle_counts_the_same(cost, exponent):
    rng = np.random.default_rng(10)
    problem = make_problem(rng, 6, 20, 5)
    volume = rng.uniform(0.5, 3.0, 20)
    choice = SharingSettings(cost=cost, exponent=exponent)
    whole = share_loads(*problem, settings=choice, volume=volume)
    part = rng.uniform(0.2, 0.8)
    arm = np.concatenate([problem.moment_arm, problem.moment_arm[:, :1]], axis=1)
    force = np.concatenate([problem.max_force, (1.0 - part) * problem.max_force[:, :1]], axis=1)
    force[:, 0] *= part
    sizes = np.append(volume, (1.0 - part) * volume[0])
    sizes[0] *= part
    split = share_loads(arm, problem.torque, force, settings=choice, volume=sizes)
    np.testing.assert_allclose(split.force[:, 0] + split.force[:, -1], whole.force[:, 0], atol=SAME * force.max())
    np.testing.assert_allclose(split.activation[:, 1:-1], whole.activation[:, 1:], atol=SAME)
    np.testing.assert_allclose(split.activation[:, 0], split.activation[:, -1], atol=SAME)


def test_a_split_muscle_takes_more_without_volumes():
    """Squared activations favor many small muscles: the pair carries more than the whole muscle did."""
    arm, torque, force = np.full((1, 2, 1), 0.05), np.array([[20.0]]), np.array([[1000.0, 1000.0]])
    whole = share_loads(arm, torque, force).force[0]
    split = share_loads(np.full((1, 3, 1), 0.05), torque, np.array([[1000.0, 500.0, 500.0]])).force[0]
    # x = A^T y / 2: forces are proportional to the squares of max_force
    assert whole == pytest.approx([200.0, 200.0])
    assert split == pytest.approx(400.0 * np.array([1.0, 0.25, 0.25]) / 1.5)


def test_scaling_laws():
    rng = np.random.default_rng(11)
    problem = make_problem(rng, 5, 20, 5, peak=0.4)
    base = share_loads(*problem, settings=SharingSettings(exponent=3.0), max_activation=10.0)
    twice = share_loads(
        problem.moment_arm, 2.0 * problem.torque, problem.max_force,
        settings=SharingSettings(exponent=3.0), max_activation=10.0,
    )  # fmt: skip
    np.testing.assert_allclose(twice.activation, 2.0 * base.activation, atol=SAME)  # a cost of one degree, bounds far
    units = share_loads(
        1000.0 * problem.moment_arm, 1000.0 * problem.torque, problem.max_force,
        settings=SharingSettings(exponent=3.0), max_activation=10.0, weights=np.full(20, 1e4),
    )  # fmt: skip
    np.testing.assert_allclose(units.activation, base.activation, atol=SAME)
    forces = share_loads(*problem, settings=SharingSettings(cost="force"))
    stress = share_loads(*problem, weights=problem.max_force[0] ** 2)
    np.testing.assert_allclose(forces.activation[0], stress.activation[0], atol=SAME)


def test_order_of_muscles_coordinates_and_frames_does_not_matter():
    rng = np.random.default_rng(12)
    problem = make_problem(rng, 10, 30, 9, demand=1.3)
    base = share_loads(*problem)
    assert {ATTAINED, NEAREST} == set(base.status.tolist())
    muscle, coordinate, frame = rng.permutation(30), rng.permutation(9), rng.permutation(10)
    other = share_loads(
        problem.moment_arm[frame][:, muscle][..., coordinate],
        problem.torque[frame][:, coordinate],
        problem.max_force[frame][:, muscle],
    )
    np.testing.assert_allclose(other.activation, base.activation[frame][:, muscle], atol=SAME)
    np.testing.assert_array_equal(other.status, base.status[frame])


def test_same_input_gives_the_same_bits():
    problem = make_problem(np.random.default_rng(13), 20, 40, 10, demand=1.2)
    first, second = (share_loads(*problem, settings=SharingSettings(exponent=3.0)) for _ in range(2))
    assert first.activation.tobytes() == second.activation.tobytes()


@pytest.mark.parametrize(("exponent", "most"), [(2.0, 4.0), (3.0, 8.0), (5.0, 14.0)])
def test_a_warm_start_saves_steps(exponent, most):
    """Frames of a motion need few Newton steps each, fewer than the same frames alone: that is the speed of it."""
    problem = make_problem(np.random.default_rng(19), 100, 92, 23, span=4)
    choice = SharingSettings(exponent=exponent)
    warm = share_loads(*problem, settings=choice).iterations[1:]
    cold = [share_loads(*(a[i : i + 1] for a in problem), settings=choice).iterations[0] for i in range(1, 100, 10)]
    assert warm.mean() <= most and warm.mean() < 0.8 * np.mean(cold)


def test_reserves_supply_the_rest():
    """One coordinate, one muscle, one reserve: closed form of the two-variable problem."""
    arm, force, optimal = 0.05, 1000.0, 10.0
    torque = np.array([[20.0], [100.0], [-5.0]])
    arms, forces = np.full((3, 1, 1), arm), np.full((3, 1), force)
    result = share_loads(arms, torque, forces, reserves=Reserves([optimal], weight=2.0))
    a2, o2 = (arm * force) ** 2, optimal**2 / 2.0
    expected = np.array([20.0 * arm * force / (a2 + o2), 1.0, 0.0])
    np.testing.assert_allclose(result.activation[:, 0], expected, atol=1e-9)
    np.testing.assert_allclose(result.reserve[:, 0], torque[:, 0] - expected * arm * force, atol=1e-7)
    np.testing.assert_allclose(result.unattained_torque, 0.0, atol=1e-7)
    bounded = share_loads(arms, torque, forces, reserves=Reserves([optimal], max_control=1.0))
    np.testing.assert_allclose(bounded.unattained_torque[:, 0], [0.0, 40.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(bounded.reserve[1], optimal)


def test_actuators_of_several_coordinates_agree_with_a_qp_solver():
    rng = np.random.default_rng(14)
    problem = make_problem(rng, 4, 15, 6, demand=2.0)
    direction, optimal = rng.normal(size=(4, 7, 6)), rng.uniform(1.0, 20.0, 7)
    result = share_loads(*problem, min_activation=0.01, reserves=Reserves(optimal, direction))
    for frame in range(4):
        A = np.concatenate([problem.matrix(frame), (direction[frame] * optimal[:, None]).T], axis=1)
        low, high = np.append(np.full(15, 0.01), np.full(7, -1e9)), np.append(np.ones(15), np.full(7, 1e9))
        expected = solve_qp(A, problem.torque[frame], np.ones(22), np.zeros(22), low, high)
        np.testing.assert_allclose(result.activation[frame], expected[:15], atol=SAME)
        np.testing.assert_allclose(result.reserve[frame], expected[15:] * optimal, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 1.5])
def test_soft_targets(exponent):
    """Targets that produce the torque are met the closer the larger their weight; a target of NaN is none."""
    rng = np.random.default_rng(15)
    problem = make_problem(rng, 5, 20, 4)
    target = rng.uniform(0.1, 0.9, (5, 20))
    torque = np.einsum("fm,fmc->fc", target * problem.max_force, problem.moment_arm)
    choice = SharingSettings(exponent=exponent)
    errors = []
    for weight in (1e-3, 1.0, 1e3, 1e5):
        result = share_loads(
            problem.moment_arm, torque, problem.max_force, settings=choice, targets=target,
            target_weights=np.full(20, weight),
        )  # fmt: skip
        assert (result.kkt_residual <= KKT).all() and (result.status == ATTAINED).all()
        errors.append(np.abs(result.activation - target).max())
    assert errors[0] > errors[1] > errors[2] > errors[3] and errors[3] < 1e-4
    plain = share_loads(problem.moment_arm, torque, problem.max_force, settings=choice)
    ignored = share_loads(
        problem.moment_arm, torque, problem.max_force, settings=choice, targets=np.full((5, 20), np.nan),
        target_weights=np.ones(20),
    )  # fmt: skip
    np.testing.assert_allclose(ignored.activation, plain.activation, atol=1e-9)


def test_soft_targets_agree_with_a_qp_solver():
    rng = np.random.default_rng(16)
    problem = make_problem(rng, 4, 20, 4)
    target, weight = rng.uniform(0.0, 1.0, (4, 20)), rng.uniform(0.0, 3.0, 20)
    result = share_loads(*problem, targets=target, target_weights=weight)
    for frame in range(4):
        pull = 2.0 * weight * target[frame]
        expected = solve_qp(problem.matrix(frame), problem.torque[frame], 1.0 + weight, pull, np.zeros(20), np.ones(20))
        np.testing.assert_allclose(result.activation[frame], expected, atol=SAME)


def test_passive_force_is_subtracted_from_the_torque():
    rng = np.random.default_rng(17)
    problem = make_problem(rng, 4, 20, 4)
    passive = rng.uniform(0.0, 100.0, (4, 20))
    torque = problem.torque + np.einsum("fm,fmc->fc", passive, problem.moment_arm)
    without = share_loads(*problem)
    result = share_loads(problem.moment_arm, torque, problem.max_force, passive_force=passive)
    np.testing.assert_allclose(result.activation, without.activation, atol=SAME)
    np.testing.assert_allclose(result.force, without.force + passive, atol=1e-2)
    check_balance(problem._replace(torque=torque), result)


def test_rates_are_bounded_by_activation_dynamics():
    """One muscle that must switch on and off: first-order responses, and unattained torque in the meantime."""
    times = 0.005 * np.arange(200)
    needed = ((times >= 0.1) & (times < 0.5)).astype(float)
    arm, force = np.full((200, 1, 1), 0.05), np.full((200, 1), 1000.0)
    torque = 50.0 * 0.8 * needed[:, None]
    choice = SharingSettings(activation_time=0.015, deactivation_time=0.05)
    result = share_loads(arm, torque, force, settings=choice, times=times)
    a = result.activation[:, 0]
    rise, decay = np.exp(-0.005 / 0.015), np.exp(-0.005 / 0.05)
    np.testing.assert_allclose(a[20], 1.0 - rise, atol=1e-9)
    np.testing.assert_allclose(a[21], 1.0 - rise**2, atol=1e-9)
    np.testing.assert_allclose(a[40:100], 0.8, atol=1e-9)
    np.testing.assert_allclose(a[100:], 0.8 * decay ** np.arange(1, 101), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(result.unattained_torque[:, 0], torque[:, 0] - 50.0 * a, atol=1e-6)
    assert (result.status[[20, 100]] == NEAREST).all() and (result.status[30:100] == ATTAINED).all()


def test_missing_frames_are_missing_alone():
    problem = make_problem(np.random.default_rng(18), 6, 20, 4)
    base = share_loads(*problem)
    torque, arm, force = problem.torque.copy(), problem.moment_arm.copy(), problem.max_force.copy()
    torque[1, 2], arm[3, 0, 0], force[4, 5] = np.nan, np.inf, np.nan
    result = share_loads(arm, torque, force)
    np.testing.assert_array_equal(result.status == MISSING, [False, True, False, True, True, False])
    known = result.status != MISSING
    np.testing.assert_allclose(result.activation[known], base.activation[known], atol=SAME)
    assert np.isnan(result.activation[~known]).all() and np.isnan(result.force[~known]).all()


@given(st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_problems_are_solved(data):
    """Frames without any continuity, of any size: each is attained with proof of optimality, or nearest with proof."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    muscles, coordinates = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 6))
    exponent = data.draw(st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0]))
    demand = data.draw(st.sampled_from([0.0, 0.5, 1.0, 1.5, 10.0]))
    arm = rng.normal(0.0, 0.05, (4, muscles, coordinates)) * (rng.random((muscles, coordinates)) < 0.6)
    force = 10.0 ** rng.uniform(2.0, 3.7, muscles) * rng.uniform(0.7, 1.3, (4, muscles))
    lower = data.draw(st.sampled_from([0.0, 0.01]))
    activation = rng.uniform(lower, 1.0, (4, muscles)).round(data.draw(st.sampled_from([0, 6]))).clip(lower, 1.0)
    torque = demand * np.einsum("fm,fmc->fc", activation * force, arm)
    result = share_loads(arm, torque, force, settings=SharingSettings(exponent=exponent), min_activation=lower)
    assert set(result.status.tolist()) <= {ATTAINED, NEAREST}
    assert (result.kkt_residual <= KKT).all()
    scale = np.einsum("fm,fmc->fc", force, np.abs(arm)).max(axis=0)
    scale[scale == 0.0] = 1.0
    for frame in range(4):
        A, x = (arm[frame] * force[frame][:, None]).T, result.activation[frame]
        np.testing.assert_allclose(A @ x + result.unattained_torque[frame], torque[frame], atol=1e-9 * scale.max())
        distance = np.linalg.norm(result.unattained_torque[frame] / scale)
        least = nearest_distance(A, torque[frame], scale, np.full(muscles, lower), np.ones(muscles))
        assert distance <= least * (1.0 + 1e-6) + 1e-7


WRONG = {
    "exponent": lambda: SharingSettings(exponent=0.5),
    "cost": lambda: SharingSettings(cost="pain"),
    "time": lambda: SharingSettings(activation_time=0.01),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    with pytest.raises(SettingsError, match=name):
        WRONG[name]()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"weights": [1.0, -1.0, 1.0]}, "weights"),
        ({"settings": SharingSettings(cost="volume")}, "volume"),
        ({"min_activation": 0.5, "max_activation": 0.2}, "min_activation"),
        ({"targets": np.zeros((2, 3))}, "targets"),
        ({"settings": SharingSettings(activation_time=0.01, deactivation_time=0.04)}, "times"),
        ({"reserves": Reserves([-1.0, 1.0])}, "optimal_force"),
        ({"reserves": Reserves([1.0])}, "optimal_force"),
        ({"passive_force": np.zeros((2, 2))}, "passive_force"),
    ],
)
def test_wrong_input_is_refused(options, match):
    with pytest.raises(SettingsError, match=match):
        share_loads(np.zeros((2, 3, 2)), np.zeros((2, 2)), np.ones((2, 3)), **options)

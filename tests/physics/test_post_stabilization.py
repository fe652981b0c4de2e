"""Post-stabilization: a projection that conserves momentum, also with redundant joints or contradictory targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from borelli.errors import DivergedError, SettingsError
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Coordinate, Frame, Joint, Model, Shape
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics import diagnostics as measure
from borelli.physics.arrays import compile_model as tables
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.post_stabilization import PostStabilizer, post_stabilize
from borelli.physics.simulate import simulate
from borelli.physics.solver.elimination_order import NEIGHBORS
from borelli.physics.state import make_state

from .nets import net_model
from .redundant import HINGES, SENSE, dense_of, four_bar, solve_by_qr

ROUNDING = 1e-12
CONFLICT = dict(zip(HINGES, (0.5, 0.1, 0.2, -0.4), strict=True))
"""Targets of the four hinges of one degree of freedom; in the same sense, 0.25 on average."""


def moving_state(stabilizer, seed=0):
    """Return the reference pose with random velocities."""
    state = make_state(stabilizer.compiled)
    solved = stabilizer.compiled.tables.bodies.kinematic == 0
    state.twist[:] = np.random.default_rng(seed).normal(size=state.twist.shape) * solved[:, None]
    return state


def energy(stabilizer, state, twist):
    pose = np.concatenate([state.position, state.quaternion], axis=1)[None]
    return float(measure.kinetic_energy(stabilizer.compiled, pose, twist[None])[0])


def momenta(stabilizer, state, twist):
    pose = np.concatenate([state.position, state.quaternion], axis=1)[None]
    return np.concatenate([x[0] for x in measure.momentum(stabilizer.compiled, pose, twist[None])])


def floating_chain(links=4, kind="ball", swapped=()):
    """Planks in space, end to end along x, bent a little; joints in `swapped` have parent and child swapped."""
    bend = (np.cos(0.2), 0.0, np.sin(0.2), 0.0)
    bodies, joints, place = [], [], np.zeros(3)
    for i in range(links):
        turn = bend if i % 2 else (1.0, 0.0, 0.0, 0.0)
        along = np.array([0.25 * np.cos(0.4), 0.0, -0.25 * np.sin(0.4)]) if i % 2 else np.array([0.25, 0.0, 0.0])
        frame = Frame(tuple(place + along), turn)
        place = place + 2 * along
        bodies.append(body_from_shapes(f"plank {i}", (Shape("box", (0.25, 0.04, 0.03 + 0.01 * i)),), frame=frame))
    for i in range(links - 1):
        ends = [(f"plank {i}", Frame((0.25, 0.0, 0.0))), (f"plank {i + 1}", Frame((-0.25, 0.0, 0.0)))]
        if i in swapped:
            ends.reverse()
        (parent, on_parent), (child, on_child) = ends
        names = [f"joint {i} {axis}" for axis in ("xyz" if kind == "ball" else "y")]
        axes = () if kind == "ball" else ((0.0, 1.0, 0.0),)
        joints.append(
            Joint(f"joint {i}", kind, parent, child, on_parent, on_child, axes, tuple(map(Coordinate, names)))
        )
    return Model("chain", tuple(bodies), tuple(joints))


# one joint and one degree of freedom


def test_one_joint_is_the_closed_form():
    """(K_p + K_c) j = -relative velocity, by one sweep and by the global solve."""
    model = floating_chain(2)
    stabilizer = PostStabilizer(model)
    state = moving_state(stabilizer)
    bodies, turn = stabilizer.compiled.tables.bodies, rotation_matrix(state.quaternion)
    joint = model.joints[0]
    K, relative = np.zeros((3, 3)), np.zeros(3)
    for b, frame, sign in ((0, joint.parent_frame, -1.0), (1, joint.child_frame, 1.0)):
        r = turn[b] @ (np.array(frame.position) - stabilizer.compiled.center_of_mass[b])
        cross = np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])
        K += np.eye(3) / bodies.mass[b] + cross.T @ np.linalg.inv(turn[b] @ bodies.inertia[b] @ turn[b].T) @ cross
        relative += sign * (state.twist[b, :3] + np.cross(state.twist[b, 3:], r))
    expected = np.linalg.solve(K, -relative)
    swept = PostStabilizer(model, method="joints").solve(state)
    assert swept.iterations == 2 and swept.sweep_defects[1] < ROUNDING * swept.sweep_defects[0]
    for result in (stabilizer.solve(state), swept):
        np.testing.assert_allclose(result.impulse, expected, rtol=1e-10)


def test_four_bars_rotate_together():
    """21 rows of rank 18: the target is met, and the loop stays closed."""
    stabilizer = PostStabilizer(four_bar(), controlled=HINGES[:1])
    state = moving_state(stabilizer)
    result = stabilizer.solve(state, {HINGES[0]: 0.5})
    assert len(stabilizer.row_names) == 21
    assert np.linalg.matrix_rank(dense_of(stabilizer, state).response, tol=1e-9) == 18
    assert np.abs(result.defect).max() <= 1e-11  # TOLERANCE, of velocities near 3
    spin = result.twist[:, 5]
    np.testing.assert_allclose(spin, [0.5, 0.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(result.twist[1, :3], [-0.25, 0.0, 0.0], atol=1e-9)  # the top moves sideways


# singular systems


@pytest.mark.parametrize("weighted", [False, True])
def test_least_norm_impulses_of_a_loop_are_those_of_pivoted_qr(weighted):
    """Consistent rows: velocities to 7e-14 with eps 1e-8, 3e-9 with 1e-6, impulses to 6e-14, 6e-9."""
    weights = np.random.default_rng(3).uniform(0.2, 5.0, 21) if weighted else np.ones(21)
    for ridge in (1e-8, 1e-6):
        stabilizer = PostStabilizer(four_bar(), controlled=HINGES[:1], weights=weights, ridge=ridge, tolerance=1e-15)
        state = moving_state(stabilizer)
        result = stabilizer.solve(state, {HINGES[0]: 0.5})
        dense = dense_of(stabilizer, state)
        expected = solve_by_qr(dense.response, dense.change, weights)
        assert np.abs(result.twist.ravel() - dense.moved(expected)).max() <= ROUNDING
        # nearly redundant rows share the load to 1e-16/eps of it
        assert np.abs(result.impulse - expected).max() <= 1e-9 * np.abs(expected).max()
        if not weighted:
            least = np.linalg.pinv(dense.response, rcond=1e-11) @ dense.change
            assert np.abs(least - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize(("ridge", "impulse_error", "velocity_error"), [(1e-6, 4.6e-6, 2.5e-6), (1e-8, 1.6e-3, 4.0e-8)])
def test_contradictory_targets_result_in_least_squares(ridge, impulse_error, velocity_error):
    """Inconsistent rows: values after two refinements."""
    stabilizer = PostStabilizer(four_bar(), controlled=HINGES, weights=np.ones(24), ridge=ridge)
    state = moving_state(stabilizer)
    result = stabilizer.solve(state, CONFLICT)
    dense = dense_of(stabilizer, state)
    expected = solve_by_qr(dense.response, dense.change, np.ones(24))
    assert np.abs(dense.change - dense.response @ expected).max() > 0.1
    assert np.abs(result.impulse - expected).max() <= impulse_error * np.abs(expected).max()
    assert np.abs(result.twist.ravel() - dense.moved(expected)).max() <= velocity_error


def test_targets_yield_to_joints():
    """The result is the mean, 0.25, and joints have no defect."""
    model = four_bar()
    stabilizer = PostStabilizer(model, controlled=HINGES)
    result = stabilizer.solve(moving_state(stabilizer), CONFLICT)
    assert np.abs(result.defect[:20]).max() <= ROUNDING
    speeds = [CONFLICT[name] - lacking for name, lacking in zip(HINGES, result.defect[20:], strict=True)]
    np.testing.assert_allclose(speeds, 0.25 * np.array(SENSE), atol=1e-6)


@pytest.mark.parametrize("size", [3, 5])
def test_taut_edge_of_a_net_is_redundant(size):
    """With two fixed corners A has one zero eigenvalue; velocities and impulses are those of pinv."""
    model = net_model(size)
    count = 3 * len(model.joints)
    stabilizer = PostStabilizer(model, weights=np.ones(count))
    state = moving_state(stabilizer)
    result = stabilizer.solve(state)
    dense = dense_of(stabilizer, state)
    values = scipy.linalg.eigvalsh(dense.response)
    assert values[0] <= 1e-12 * values[-1] < 1e-6 * values[-1] <= values[1]
    expected = np.linalg.pinv(dense.response, rcond=1e-10) @ dense.change
    solved = stabilizer.compiled.tables.bodies.kinematic == 0
    assert np.abs(result.twist[solved].ravel() - dense.moved(expected)).max() <= 1e-9
    assert np.abs(result.impulse - expected).max() <= 1e-7 * np.abs(expected).max()


# laws


def pinned_planks():
    model = floating_chain(3, "hinge")
    pin = Joint("pin", "hinge", "ground", "plank 0", Frame(), Frame((-0.25, 0.0, 0.0)), ((0.0, 1.0, 0.0),))
    return replace(model, joints=(replace(pin, coordinates=(Coordinate("pin"),)), *model.joints))


@pytest.mark.parametrize("method", ["global", "joints"])
@pytest.mark.parametrize("model", [pinned_planks(), four_bar(), net_model(3)], ids=["planks", "loop", "net"])
def test_post_stabilization_is_a_projection(model, method):
    """Energy decreases by that of the change, and a second projection changes nothing."""
    exact = {"sweeps": 20_000, "tolerance": 1e-14} if method == "joints" else {"tolerance": 1e-14}
    stabilizer = PostStabilizer(model, method=method, **exact)
    state = moving_state(stabilizer)
    once = stabilizer.solve(state)
    before, after = energy(stabilizer, state, state.twist), energy(stabilizer, state, once.twist)
    change = energy(stabilizer, state, state.twist - once.twist)
    assert after < 0.9 * before
    assert after + change == pytest.approx(before, rel=1e-11)  # orthogonal in the mass metric
    twice = stabilizer.solve(state._replace(twist=once.twist))
    assert np.abs(twice.twist - once.twist).max() <= 1e-13 * np.abs(once.twist).max()


@pytest.mark.parametrize("method", ["global", "joints"])
def test_momentum_is_conserved(method):
    """Impulses between bodies, of joints and of targets, do not move the center of mass (1e-12)."""
    targets = {"joint 0": (0.3, -0.4, 0.2), "joint 2": (1.0, 0.0, 0.0)}
    stabilizer = PostStabilizer(floating_chain(5), controlled=tuple(targets), method=method, sweeps=50)
    state = moving_state(stabilizer)
    # closed joints: impulses act on both bodies at the same point
    result = stabilizer.solve(state, targets)
    assert np.abs(result.impulse).max() > 0.1
    kept = momenta(stabilizer, state, result.twist) - momenta(stabilizer, state, state.twist)
    assert np.abs(kept).max() <= ROUNDING


@pytest.mark.parametrize("targets", [None, {"joint 1": (0.3, -0.4, 0.2)}])
def test_result_does_not_depend_on_which_body_is_the_parent(targets):
    given = targets or {}
    plain = PostStabilizer(floating_chain(5), controlled=tuple(given))
    turned = PostStabilizer(floating_chain(5, swapped=(0, 1)), controlled=tuple(given))
    state = moving_state(plain)
    result = plain.solve(state, given)
    opposite = {name: tuple(-x for x in spin) for name, spin in given.items()}  # the child in the parent
    np.testing.assert_allclose(turned.solve(state, opposite).twist, result.twist, atol=1e-10)


def test_ball_joint_gets_its_target_angular_velocity_or_coordinate_velocities():
    model = floating_chain(3)
    state = moving_state(PostStabilizer(model))
    spin = np.array([0.3, -0.4, 0.2])
    result = post_stabilize(compile_model(model, step=0.01), state, targets={"joint 1": spin})
    np.testing.assert_allclose(result.twist[2, 3:] - result.twist[1, 3:], spin, atol=1e-9)
    names = ("joint 1 x", "joint 1 y", "joint 1 z")
    speeds = dict(zip(names, (0.1, 0.2, -0.3), strict=True))
    result = post_stabilize(compile_model(model, step=0.01), state, targets=speeds)
    pose = np.concatenate([state.position, state.quaternion], axis=1)[None]
    _, found = measure.coordinates_and_velocities(compile_model(model, step=0.01), pose, result.twist[None])
    np.testing.assert_allclose(found[0, 3:6], [0.1, 0.2, -0.3], atol=1e-9)


# the net


def test_net_has_the_published_size_and_little_fill_in():
    """960 joints and 225 loops (Weinstein et al. 2008, Fig. 10); little fill-in by minimum degree."""
    free = net_model(16, held=())
    assert (len(free.bodies), len(free.joints), sum(joint.closes_loop for joint in free.joints)) == (736, 960, 225)
    stabilizer = PostStabilizer(net_model(16))
    result = stabilizer.solve(moving_state(stabilizer))
    graph = stabilizer._work.graph
    assert graph.node[graph.count[0], NEIGHBORS] < 3000  # 9728 with children before parents
    assert np.abs(result.defect).max() <= 1e-9
    again = stabilizer.solve(moving_state(stabilizer))
    assert again.impulse.tobytes() == result.impulse.tobytes()


def test_sweeps_over_a_net_converge():
    """The defect is 18, 12 and 2.8 % of the velocity change after 5, 20 and 200 sweeps."""
    model = net_model(16)
    exact = PostStabilizer(model)
    state = moving_state(exact)
    wanted = exact.solve(state).twist
    change = np.linalg.norm(wanted - state.twist)
    for sweeps, share in ((5, 0.18), (20, 0.12), (200, 0.028)):
        swept = PostStabilizer(model, method="joints", sweeps=sweeps).solve(state)
        assert swept.iterations == sweeps == len(swept.sweep_defects)
        assert np.all(np.diff(swept.sweep_defects) < 0.0)
        assert np.linalg.norm(swept.twist - wanted) <= share * change


def test_elimination_order_of_a_net_does_not_change_its_fall(monkeypatch):
    """36 loops that hang by a corner, as a net and as a tree with loops: slopes and order differ, the motion does not.

    (Held by two, its edge is taut: how far each of its joints then opens is for the slopes to say.)
    """
    model = net_model(7, held=((0, 0),))
    falls = []
    for most in (tables.NET_LOOPS, 1000):
        monkeypatch.setattr(tables, "NET_LOOPS", most)
        falls.append(simulate(model, duration=0.1, step=1 / 240))
    assert "net" in falls[0].notes and "net" not in falls[1].notes
    assert float(falls[0].body_position[-1, :, 2].min()) < -0.02
    # slopes of 1e-8 of an inverse mass change the fall by 1e-8 of it
    assert float(abs(falls[0].body_position - falls[1].body_position).max()) <= 1e-8


# invalid settings


def test_invalid_settings_are_rejected():
    model = four_bar()
    for wrong, match in (
        ({"method": "all"}, "Unknown method 'all'; known: global, joints"),
        ({"ridge": 0.0}, "ridge: 0.0"),
        ({"sweeps": 0}, "sweeps: 0"),
        ({"controlled": ["left fot"]}, "left foot"),
        ({"controlled": ["left foot", "left foot"]}, "left foot appear twice"),
        ({"weights": [1.0]}, r"Pass shape \(20,\)"),
    ):
        with pytest.raises(SettingsError, match=match):
            PostStabilizer(model, **wrong)
    stabilizer = PostStabilizer(model, controlled=HINGES[:1])
    state = make_state(stabilizer.compiled)
    for targets, match in (
        ({"left top": 0.1}, "left foot"),
        ({"left foot": np.nan}, "Pass finite numbers"),
        ({"left foot": (0.1, 0.2)}, r"Pass shape \(1,\)"),
    ):
        with pytest.raises(SettingsError, match=match):
            stabilizer.solve(state, targets)
    with pytest.raises(SettingsError, match=r"state.position: The array has shape \(5, 3\)"):
        stabilizer.solve(make_state(compile_model(floating_chain(5), step=0.01)))
    state.twist[0, 0] = np.inf
    with pytest.raises(DivergedError, match="finite"):
        stabilizer.solve(state)


def test_body_without_joints_is_not_changed():
    model = Model("ball", (body_from_shapes("ball", (Shape("sphere", (0.1,)),)),))
    stabilizer = PostStabilizer(model)
    state = moving_state(stabilizer)
    np.testing.assert_allclose(stabilizer.solve(state).twist, state.twist, rtol=1e-14)

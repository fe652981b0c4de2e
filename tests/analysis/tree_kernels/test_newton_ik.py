"""Poses of least energy: placement against plain kinematics, derivatives against differences, the answer by its law."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

import borelli as bo
from borelli.analysis.tree_kernels.frame_derivatives import find_curvatures
from borelli.analysis.tree_kernels.kinematic_tree import make_tree
from borelli.analysis.tree_kernels.marker_energy import Holds, Points
from borelli.analysis.tree_kernels.newton_ik import find_bodies, find_derivatives, make_search, settle_frames
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.functions import Function
from borelli.model.kinematics import coupled, marker_jacobians, marker_positions, poses
from borelli.model.model import Body, Coordinate, Coupling, Joint, Marker, Model, TransformAxis

STRAIGHT = Function((-9.0, 9.0), ((-9.0, 1.0),))
ROLLING = Function((-2.0, 0.5, 2.0), ((0.3, -0.1, 0.02), (0.175, 0.0, 0.1, 0.05)))
CURVED = Function((-1.0, 1.0), ((0.1, 0.6, -0.3, 0.2),))


def coupled_leg():
    """A free trunk, a knee that rolls, and a kneecap on it coupled to the knee through two functions."""
    knee = tuple(
        TransformAxis(axis, function, "knee" if function is not None else None)
        for axis, function in (
            ((0.0, 0.0, 1.0), STRAIGHT),
            ((1.0, 0.2, 0.0), CURVED),
            ((0.0, 1.0, 0.0), Function((0.0, 1.0), ((0.1,),))),
            ((1.0, 0.0, 0.0), ROLLING),
            ((0.0, 1.0, 0.0), CURVED),
            ((0.0, 0.0, 1.0), Function((0.0, 1.0), ((0.02,),))),
        )
    )
    free = tuple(Coordinate(f"root_{n}", rotational=n > 2) for n in range(6))
    joints = (
        Joint("root", "free", "ground", "trunk", coordinates=free),
        Joint("knee", "coordinate", "trunk", "shank", coordinates=(Coordinate("knee"),), motion=knee),
        Joint("cap", "hinge", "trunk", "cap", axes=((0.3, 0.1, 1.0),), coordinates=(Coordinate("cap"),)),
        Joint("half", "slider", "cap", "half", coordinates=(Coordinate("half", rotational=False),)),
        Joint("toe", "hinge", "shank", "foot", coordinates=(Coordinate("toe", 0.2, locked=True),)),
    )
    couplings = (Coupling("a", "half", "cap", ROLLING), Coupling("b", "cap", "knee", CURVED))
    bodies = tuple(Body(name, 1.0) for name in ("trunk", "shank", "cap", "half", "foot"))
    rng = np.random.default_rng(7)
    markers = tuple(
        Marker(f"{body.name}{i}", body.name, tuple(rng.normal(0.0, 0.3, 3))) for body in bodies for i in range(3)
    )
    return bo.validate(Model("leg", bodies, joints, markers, couplings))


def human():
    return bo.human(75.0, 1.75, markers="cmu41")


def tied_human():
    """A human with a leg that moves with an arm: two branches that a coupling makes one."""
    model = human()
    return replace(
        model,
        couplings=(
            Coupling("a", "knee_flexion_l", "wrist_flexion_r", CURVED),
            Coupling("b", "shoulder_flexion_l", "hip_flexion_r", STRAIGHT),
        ),
    )


MODELS = (human, coupled_leg, tied_human)


class Case:
    """A model seen in one pose while it stands in another."""

    def __init__(self, model, seed=0, frames=3, stiffness=0.5):
        rng = np.random.default_rng(seed)
        self.model, self.tree = model, make_tree(model)
        names = [body.name for body in model.bodies]
        self.points = Points(
            np.array([names.index(m.body) for m in model.markers]), np.array([m.position for m in model.markers])
        )
        n, count = len(self.tree.free), len(model.markers)
        start = np.array([c.default for c in model.coordinates])
        move = np.zeros((frames, len(start)))
        move[:, self.tree.free] = rng.normal(0.0, 0.3, (frames, n))
        self.q = coupled(model, start + move)
        move[:, self.tree.free] = rng.normal(0.0, 0.2, (frames, n))
        self.target = marker_positions(model, coupled(model, start + move)) + rng.normal(0.0, 0.01, (frames, count, 3))
        self.weight = rng.uniform(0.5, 2.0, (frames, count))
        self.weight[:, ::7] = 0.0
        self.holds = Holds(np.full(n, stiffness), np.zeros(n), np.full(n, -0.25), np.full(n, 0.25), np.full(n, 30.0))
        self.rest = rng.normal(0.0, 0.1, (1, n))
        self.search = SharedTuple(make_search(self.tree, self.points, self.holds))

    def derivatives(self, q):
        frames, n = len(q), len(self.tree.free)
        energy, gradient, gauss = np.zeros(frames), np.zeros((frames, n)), np.zeros((frames, n, n))
        find_derivatives(self.search, self.rest, self.target[:frames], self.weight[:frames], q, energy, gradient, gauss)
        return energy, gradient, gauss

    def second_derivatives(self, q):
        n = len(self.tree.free)
        gauss, rest = np.zeros((1, n, n)), np.zeros((1, n, n))
        find_curvatures(
            self.search, self.rest, self.target[:1], self.weight[:1], q, np.zeros(1), np.zeros((1, n)), gauss, rest
        )
        return gauss[0] + rest[0]

    def settle(self, q, most=100):
        q = q.copy()
        energy, count = np.zeros(len(q)), np.zeros(len(q), np.int64)
        settle_frames(self.search, self.rest, self.target, self.weight, q, most, False, energy, count)
        return q, energy, count


@pytest.mark.parametrize("make", MODELS)
def test_bodies_and_markers_are_where_plain_kinematics_puts_them(make):
    case = Case(make())
    bodies, count = len(case.model.bodies), len(case.model.markers)
    position, rotation = np.zeros((3, bodies, 3)), np.zeros((3, bodies, 3, 3))
    seen = np.zeros((3, count, 3))
    find_bodies(case.search, case.q, position, rotation, seen)
    expected, turned = poses(case.model, case.q)
    assert np.abs(position - expected).max() < 1e-14
    assert np.abs(rotation - turned).max() < 1e-14
    assert np.abs(seen - marker_positions(case.model, case.q)).max() < 1e-14


@pytest.mark.parametrize("make", MODELS)
def test_every_row_begins_with_the_row_of_any_variable_in_it(make):
    """So a column has one place in all rows, and elimination from the last row fills nothing in."""
    tree = make_tree(make())
    rows = [tree.row_column[a:b].tolist() for a, b in zip(tree.row_first[:-1], tree.row_first[1:], strict=True)]
    for row in rows:
        for place, variable in enumerate(row):
            assert row[:place] == rows[variable]


@pytest.mark.parametrize("make", MODELS)
def test_derivatives_are_those_of_differences(make):
    """Central differences of 1e-6 err by about 1e-10 of the largest entry."""
    case = Case(make(), frames=1)
    _, gradient, _ = case.derivatives(case.q)
    second = case.second_derivatives(case.q)
    half = 1e-6
    for v, c in enumerate(case.tree.free):
        there = []
        for sign in (1.0, -1.0):
            moved = case.q.copy()
            moved[0, c] += sign * half
            energy, slope, _ = case.derivatives(moved)
            there.append((energy[0], slope[0]))
        by_energy = (there[0][0] - there[1][0]) / (2.0 * half)
        by_slope = (there[0][1] - there[1][1]) / (2.0 * half)
        assert by_energy == pytest.approx(gradient[0, v], abs=1e-7 * np.abs(gradient).max())
        assert np.abs(by_slope - second[v]).max() < 1e-7 * np.abs(second).max()


def test_gauss_and_newtons_part_is_that_of_the_jacobian():
    """H = sum k J^T J + springs and stops, with the plain kinematics' Jacobian: a slow twin."""
    case = Case(human(), frames=1)
    _, _, gauss = case.derivatives(case.q)
    jacobian = marker_jacobians(case.model, case.q)[0][..., case.tree.free]
    plain = np.einsum("m,mxi,mxj->ij", case.weight[0], jacobian, jacobian)
    x = case.q[0, case.tree.free]
    plain += np.diag(0.5 + 30.0 * (np.abs(x) > 0.25))
    assert np.abs(gauss[0] - plain).max() < 1e-12 * np.abs(plain).max()


@pytest.mark.parametrize("make", MODELS)
def test_the_slope_vanishes_where_a_pose_settled(make):
    case = Case(make())
    q, _, count = case.settle(case.q)
    assert (count > 0).all()
    _, gradient, gauss = case.derivatives(q)
    assert np.abs(gradient).max() < 1e-9 * np.abs(gauss).max()


def test_energy_is_that_of_a_plain_least_squares():
    """scipy's solver on residuals written out as the energy states them."""
    case = Case(coupled_leg(), frames=1)
    q, energy, _ = case.settle(case.q)

    def residuals(x):
        pose = case.q[0].copy()
        pose[case.tree.free] = x
        away = (marker_positions(case.model, coupled(case.model, pose))[0] - case.target[0]).ravel()
        beyond = np.maximum(x - 0.25, 0.0) + np.minimum(x + 0.25, 0.0)
        pull = np.sqrt(np.repeat(case.weight[0], 3))
        return np.concatenate([pull * away, np.sqrt(0.5) * (x - case.rest[0]), np.sqrt(30.0) * beyond])

    plain = least_squares(residuals, case.q[0, case.tree.free], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert energy[0] == pytest.approx(plain.cost, rel=1e-10)
    assert np.abs(q[0, case.tree.free] - plain.x).max() < 1e-5


def test_hard_stops_hold_and_push_only_outwards():
    """The conditions of Karush, Kuhn and Tucker: free variables have no slope, stopped ones are pushed outwards."""
    case = Case(human())
    case.holds.stop[:] = np.inf
    q, _, count = case.settle(case.q)
    assert (count > 0).all()
    x = q[:, case.tree.free]
    assert (x >= -0.25).all() and (x <= 0.25).all()
    _, gradient, gauss = case.derivatives(q)
    tiny = 1e-8 * np.abs(gauss).max()
    at_lower, at_upper = x == -0.25, x == 0.25
    assert at_lower.any() and at_upper.any()
    assert np.abs(gradient[~at_lower & ~at_upper]).max() < tiny
    assert (gradient[at_lower] > -tiny).all() and (gradient[at_upper] < tiny).all()


def test_newton_ends_quadratically():
    """Near the answer the error is squared by every step, large residuals or not: three steps are enough."""
    case = Case(human())
    case.holds.stop[:] = 0.0  # whose kinks take a step each
    q, _, _ = case.settle(case.q)
    near = q.copy()
    near[:, case.tree.free] += 1e-3
    again, _, count = case.settle(near)
    assert count.max() <= 4
    assert np.abs(again - q).max() < 1e-9


def test_a_variable_that_nothing_sees_stays():
    model = human()
    case = Case(model, stiffness=0.0)
    case.holds.stop[:] = 0.0
    toes = [i for i, m in enumerate(model.markers) if m.body.startswith("toes")]
    case.weight[:, toes] = 0.0
    q, _, _ = case.settle(case.q)
    names = [c.name for c in model.coordinates]
    unseen = [names.index("toe_extension_r"), names.index("toe_extension_l")]
    assert (q[:, unseen] == case.q[:, unseen]).all()


def test_fixed_and_locked_coordinates_are_no_variables():
    model = coupled_leg()
    tree = make_tree(model, fixed=("root_0",))
    names = [model.coordinates[i].name for i in tree.free]
    assert "toe" not in names and "root_0" not in names and "cap" not in names and "half" not in names
    with pytest.raises(bo.ModelError, match="no coordinate 'rot_0'"):
        make_tree(model, fixed=("rot_0",))

"""Inverse kinematics: poses against plain kinematics, derivatives against differences, conditions of the solution."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

import borelli as bo
from borelli.analysis.tree_kernels.marker_energy import Points, RestSprings
from borelli.analysis.tree_kernels.newton_ik import (
    compute_body_poses,
    compute_frame_derivatives,
    make_ik_search,
    solve_ik_frames,
)
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.functions import Function
from borelli.model.kinematics import coupled_coordinates, marker_jacobians, marker_positions, poses
from borelli.model.model import Body, Coordinate, Coupling, Joint, Marker, Model, TransformAxis
from borelli.tree.kinematic_tree import make_tree

STRAIGHT = Function((-9.0, 9.0), ((-9.0, 1.0),))
ROLLING = Function((-2.0, 0.5, 2.0), ((0.3, -0.1, 0.02), (0.175, 0.0, 0.1, 0.05)))
CURVED = Function((-1.0, 1.0), ((0.1, 0.6, -0.3, 0.2),))


def coupled_leg():
    """Return a free trunk, a rolling knee, and a kneecap coupled to the knee through two functions."""
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
    """Return a human with a leg coupled to an arm: two branches that a coupling connects."""
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
    """Model in one pose with the markers of another."""

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
        self.q = coupled_coordinates(model, start + move)
        move[:, self.tree.free] = rng.normal(0.0, 0.2, (frames, n))
        self.target = marker_positions(model, coupled_coordinates(model, start + move)) + rng.normal(
            0.0, 0.01, (frames, count, 3)
        )
        self.weight = rng.uniform(0.5, 2.0, (frames, count))
        self.weight[:, ::7] = 0.0
        self.rest_springs = RestSprings(
            np.full(n, stiffness), np.zeros(n), np.full(n, -0.25), np.full(n, 0.25), np.full(n, 30.0)
        )
        self.rest = rng.normal(0.0, 0.1, (1, n))
        self.search = SharedTuple(make_ik_search(self.tree, self.points, self.rest_springs))

    def derivatives(self, q):
        """Return energy, gradient and the two parts of the Hessian."""
        frames, n = len(q), len(self.tree.free)
        energy, gradient = np.zeros(frames), np.zeros((frames, n))
        gauss, rest = np.zeros((2, frames, n, n))
        target, weight = self.target[:frames], self.weight[:frames]
        compute_frame_derivatives(self.search, self.rest, target, weight, q, energy, gradient, gauss, rest)
        return energy, gradient, gauss, rest

    def solve(self, q, max_iterations=100):
        q = q.copy()
        energy, count = np.zeros(len(q)), np.zeros(len(q), np.int64)
        solve_ik_frames(self.search, self.rest, self.target, self.weight, q, max_iterations, False, energy, count)
        return q, energy, count


@pytest.mark.parametrize("make", MODELS)
def test_poses_and_markers_equal_plain_forward_kinematics(make):
    case = Case(make())
    bodies, count = len(case.model.bodies), len(case.model.markers)
    position, rotation = np.zeros((3, bodies, 3)), np.zeros((3, bodies, 3, 3))
    point = np.zeros((3, count, 3))
    compute_body_poses(case.search, case.q, position, rotation, point)
    expected, expected_rotation = poses(case.model, case.q)
    assert np.abs(position - expected).max() < 1e-14
    assert np.abs(rotation - expected_rotation).max() < 1e-14
    assert np.abs(point - marker_positions(case.model, case.q)).max() < 1e-14


@pytest.mark.parametrize("make", MODELS)
def test_every_row_begins_with_the_row_of_any_variable_in_it(make):
    """So a column has one index in all rows, and elimination from the last row has no fill-in."""
    tree = make_tree(make())
    rows = [tree.row_column[a:b].tolist() for a, b in zip(tree.row_first[:-1], tree.row_first[1:], strict=True)]
    for row in rows:
        for index, variable in enumerate(row):
            assert row[:index] == rows[variable]


@pytest.mark.parametrize("make", MODELS)
def test_derivatives_equal_finite_differences(make):
    """Central differences of 1e-6 err by about 1e-10 of the largest entry."""
    case = Case(make(), frames=1)
    _, gradient, gauss, rest = case.derivatives(case.q[:1])
    second = gauss[0] + rest[0]
    half = 1e-6
    for v, c in enumerate(case.tree.free):
        there = []
        for sign in (1.0, -1.0):
            shifted = case.q.copy()
            shifted[0, c] += sign * half
            energy, slope, _, _ = case.derivatives(shifted)
            there.append((energy[0], slope[0]))
        by_energy = (there[0][0] - there[1][0]) / (2.0 * half)
        by_slope = (there[0][1] - there[1][1]) / (2.0 * half)
        assert by_energy == pytest.approx(gradient[0, v], abs=1e-7 * np.abs(gradient).max())
        assert np.abs(by_slope - second[v]).max() < 1e-7 * np.abs(second).max()


def test_gauss_newton_part_equals_that_of_the_jacobian():
    """H = sum k J^T J + springs and limits, with the plain kinematics' Jacobian."""
    case = Case(human(), frames=1)
    _, _, gauss, _ = case.derivatives(case.q)
    jacobian = marker_jacobians(case.model, case.q)[0][..., case.tree.free]
    plain = np.einsum("m,mxi,mxj->ij", case.weight[0], jacobian, jacobian)
    x = case.q[0, case.tree.free]
    plain += np.diag(0.5 + 30.0 * (np.abs(x) > 0.25))
    assert np.abs(gauss[0] - plain).max() < 1e-12 * np.abs(plain).max()


@pytest.mark.parametrize("make", MODELS)
def test_gradient_vanishes_at_the_solution(make):
    case = Case(make())
    q, _, count = case.solve(case.q)
    assert (count > 0).all()
    _, gradient, gauss, _ = case.derivatives(q)
    assert np.abs(gradient).max() < 1e-9 * np.abs(gauss).max()


def test_energy_equals_that_of_plain_least_squares():
    """scipy's solver on residuals written out from the energy."""
    case = Case(coupled_leg(), frames=1)
    q, energy, _ = case.solve(case.q)

    def residuals(x):
        pose = case.q[0].copy()
        pose[case.tree.free] = x
        away = (marker_positions(case.model, coupled_coordinates(case.model, pose))[0] - case.target[0]).ravel()
        beyond = np.maximum(x - 0.25, 0.0) + np.minimum(x + 0.25, 0.0)
        root_weight = np.sqrt(np.repeat(case.weight[0], 3))
        return np.concatenate([root_weight * away, np.sqrt(0.5) * (x - case.rest[0]), np.sqrt(30.0) * beyond])

    plain = least_squares(residuals, case.q[0, case.tree.free], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert energy[0] == pytest.approx(plain.cost, rel=1e-10)
    assert np.abs(q[0, case.tree.free] - plain.x).max() < 1e-5


def test_hard_limits_satisfy_the_karush_kuhn_tucker_conditions():
    """Free variables have no gradient, variables at a limit an outward one."""
    case = Case(human())
    case.rest_springs.limit_stiffness[:] = np.inf
    q, _, count = case.solve(case.q)
    assert (count > 0).all()
    x = q[:, case.tree.free]
    assert (x >= -0.25).all() and (x <= 0.25).all()
    _, gradient, gauss, _ = case.derivatives(q)
    tiny = 1e-8 * np.abs(gauss).max()
    at_lower, at_upper = x == -0.25, x == 0.25
    assert at_lower.any() and at_upper.any()
    assert np.abs(gradient[~at_lower & ~at_upper]).max() < tiny
    assert (gradient[at_lower] > -tiny).all() and (gradient[at_upper] < tiny).all()


def test_newton_converges_quadratically():
    """Near the solution every step squares the error, for large residuals too: three steps are enough."""
    case = Case(human())
    case.rest_springs.limit_stiffness[:] = 0.0  # whose kinks take a step each
    q, _, _ = case.solve(case.q)
    start = q.copy()
    start[:, case.tree.free] += 1e-3
    again, _, count = case.solve(start)
    assert count.max() <= 4
    assert np.abs(again - q).max() < 1e-9


def test_undetermined_variable_keeps_its_value():
    model = human()
    case = Case(model, stiffness=0.0)
    case.rest_springs.limit_stiffness[:] = 0.0
    toes = [i for i, m in enumerate(model.markers) if m.body.startswith("toes")]
    case.weight[:, toes] = 0.0
    q, _, _ = case.solve(case.q)
    names = [c.name for c in model.coordinates]
    undetermined = [names.index("toe_extension_r"), names.index("toe_extension_l")]
    assert (q[:, undetermined] == case.q[:, undetermined]).all()


def test_fixed_and_locked_coordinates_are_not_variables():
    model = coupled_leg()
    tree = make_tree(model, ("root_0",))
    names = [model.coordinates[i].name for i in tree.free]
    assert "toe" not in names and "root_0" not in names and "cap" not in names and "half" not in names
    with pytest.raises(bo.ModelError, match="no coordinate 'rot_0'"):
        make_tree(model, ("rot_0",))

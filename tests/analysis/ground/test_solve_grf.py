"""Contact forces of the soles: optimality, compared with a slow and simple solver."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.ground.required_wrench import required_wrench, sole_motion
from borelli.analysis.ground.soles import find_soles
from borelli.analysis.tree_kernels.friction_cone_forces import make_buffers, solve_cone_forces
from borelli.model.kinematics import center_of_mass, marker_jacobians, marker_positions
from borelli.model.model import Marker
from borelli.people.human import human

EXACT = 1e-8  # of the forces: Newton stops at 1e-12 of the requirement, and the problems' condition is some 1e4


def problems(frames=60, rows=14, points=6, seed=0):
    random = np.random.default_rng(seed)
    B = random.normal(size=(frames, rows, 3 * points))
    b = 5.0 * random.normal(size=(frames, rows)).cumsum(axis=0)
    d = 10.0 ** random.uniform(-2.0, 3.0, size=(frames, points))
    return B, b, d


def solve(B, b, d, mu, most=1e9):
    force, steps = np.empty((len(B), d.shape[1], 3)), np.empty(len(B), np.int64)
    solve_cone_forces(B, b, d, most, mu, make_buffers(B.shape[1]), force, steps)
    return force, steps


@pytest.mark.parametrize("mu", [0.3, 0.8, 2.0])
def test_forces_are_in_their_cones_and_optimal(mu):
    B, b, d = problems()
    force, steps = solve(B, b, d, mu)
    assert steps.max() < 60
    slant = np.linalg.norm(force[..., :2], axis=-1)
    size = np.abs(force).max()
    assert (slant <= mu * force[..., 2] + EXACT * size).all()
    # the gradient of the cost at each force lies in the dual cone, orthogonal to the force
    left = b - np.einsum("frk,fk->fr", B, force.reshape(len(B), -1))
    slope = d[..., None] * force - np.einsum("frk,fr->fk", B, left).reshape(force.shape)
    scale = np.abs(B).max() * np.abs(b).max()
    assert np.abs((slope * force).sum(axis=-1)).max() <= EXACT * scale * size
    assert (slope[..., 2] - mu * np.linalg.norm(slope[..., :2], axis=-1) >= -EXACT * scale).all()
    assert (force[..., 2] == 0.0).any()
    assert (slant < 0.99 * mu * force[..., 2]).any(), "the test has sticking, slipping and lifted points"


def test_pyramids_of_many_edges_approach_the_optimum():
    """A pyramid within the cone costs a little more, the less the more edges it has: a chord is (pi/n)^2/2 short."""
    B, b, d = problems(frames=12, rows=10, points=4)
    mu = 0.8
    force, _ = solve(B, b, d, mu)

    def cost(f, forces):
        return np.sum((B[f] @ forces.ravel() - b[f]) ** 2) + np.sum(d[f][:, None] * forces**2)

    def pyramid(f, count):
        angle = 2.0 * np.pi * np.arange(count) / count
        edges = np.stack([mu * np.cos(angle), mu * np.sin(angle), np.ones(count)])
        does = np.concatenate([B[f, :, 3 * p : 3 * p + 3] @ edges for p in range(4)], axis=1)
        costs = np.kron(np.diag(np.sqrt(d[f])), edges)
        x, _ = nnls(np.concatenate([does, costs]), np.concatenate([b[f], np.zeros(12)]), maxiter=20_000)
        return x.reshape(4, count) @ edges.T

    for f in range(len(B)):
        best, coarse, fine = cost(f, force[f]), cost(f, pyramid(f, 16)), cost(f, pyramid(f, 128))
        assert best <= fine * (1.0 + 1e-12)
        assert fine <= coarse * (1.0 + 1e-12)
        assert fine - best <= 2e-3 * best


def test_a_point_with_too_high_a_cost_has_no_force():
    B, b, d = problems()
    force, _ = solve(B, b, d, 0.8, most=10.0)
    assert (force[d > 10.0] == 0.0).all()
    assert (np.abs(force[d <= 10.0]).max() > 0.0).all()


def moving_human(frames=9, seed=3):
    model = human()
    random = np.random.default_rng(seed)
    shape = (frames, len(model.coordinates))
    return model, *(0.4 * random.normal(size=shape) for _ in range(3))


def test_motion_of_the_soles_agrees_with_plain_kinematics():
    model, q, u, _ = moving_human()
    soles = find_soles(model)
    marked = replace(
        model,
        markers=tuple(
            Marker(name, body, tuple(position))
            for name, body, position in zip(soles.names, soles.bodies, soles.positions, strict=True)
        ),
    )
    motion = sole_motion(forward_kinematics(model, q, u, u), soles)
    assert motion.position[:, :10] == pytest.approx(marker_positions(marked, q), abs=1e-12)
    jacobian = marker_jacobians(marked, q)
    assert motion.velocity == pytest.approx(np.einsum("fpic,fc->fpi", jacobian, u), abs=1e-12)
    of_columns = np.moveaxis(jacobian[..., motion.tree.free[motion.columns]], -1, 1)
    assert motion.jacobian[:, :, :10] == pytest.approx(of_columns, abs=1e-12)
    step = 1e-6
    along = (marker_positions(marked, q + step * u) - marker_positions(marked, q - step * u)) / (2.0 * step)
    assert motion.velocity == pytest.approx(along, abs=1e-8)


def test_required_force_at_the_root_obeys_newton():
    model, q, u, a = moving_human()
    required = required_wrench(forward_kinematics(model, q, u, a), find_soles(model))
    h = 1e-4
    ahead, behind = (center_of_mass(model, q + s * h * u + 0.5 * h * h * a) for s in (1.0, -1.0))
    acceleration = (ahead - 2.0 * center_of_mass(model, q) + behind) / h**2
    force = required.root_wrench(required.need)[:, :3]
    assert force == pytest.approx(model.mass * (acceleration - np.array(model.gravity)), abs=0.05)
    # a force at a sole's point is a force at the root, and a moment about the center of mass
    push, center = np.array([3.0, -5.0, 70.0]), center_of_mass(model, q)
    for p in range(10):
        wrench = required.root_wrench(required.rows[:, :, p] @ push)
        assert wrench[:, :3] == pytest.approx(np.broadcast_to(push, (len(q), 3)), abs=1e-8)
        assert wrench[:, 3:] == pytest.approx(np.cross(required.position[:, p] - center, push), abs=1e-8)

"""Redundant joints for the tests of post-stabilization, and their solution by dense pivoted QR (Weinstein 2008)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Coordinate, Frame, Joint, Model, Shape
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.post_stabilization import PostStabilizer
from borelli.physics.state import State

Floats = NDArray[np.float64]

LENGTH = 0.5
UPRIGHT = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
HINGES = ("left foot", "left top", "right top", "right foot")
SENSE = (1.0, -1.0, 1.0, -1.0)
"""Rotation of each hinge when the first rotates by 1: a parallelogram."""


def four_bar() -> Model:
    """Three planks and the ground joined to a square by four hinges about z: 20 rows, one degree of freedom."""
    plank = Shape("box", (LENGTH / 2, 0.04, 0.03))
    at = {
        "left": Frame((0.0, LENGTH / 2, 0.0), UPRIGHT),
        "top": Frame((LENGTH / 2, LENGTH, 0.0)),
        "right": Frame((LENGTH, LENGTH / 2, 0.0), UPRIGHT),
    }
    bodies = tuple(body_from_shapes(name, (plank,), frame=frame) for name, frame in at.items())
    back = (UPRIGHT[0], 0.0, 0.0, -UPRIGHT[3])
    near, far = (-LENGTH / 2, 0.0, 0.0), (LENGTH / 2, 0.0, 0.0)
    ends = (  # parent, where, child, where
        (GROUND, Frame(), "left", Frame(near, back)),
        ("left", Frame(far, back), "top", Frame(near)),
        ("top", Frame(far), "right", Frame(far, back)),
        ("right", Frame(near, back), GROUND, Frame((LENGTH, 0.0, 0.0))),
    )
    joints = []
    for name, (parent, on_parent, child, on_child) in zip(HINGES, ends, strict=True):
        closes = child == GROUND
        if closes:  # the ground is never a child: opposite sign
            parent, on_parent, child, on_child = child, on_child, parent, on_parent
        axis = ((0.0, 0.0, -1.0 if closes else 1.0),)
        joints.append(
            Joint(name, "hinge", parent, child, on_parent, on_child, axis, (Coordinate(name),), closes_loop=closes)
        )
    return Model("four bars", bodies, tuple(joints), gravity=(0.0, -9.81, 0.0))


class Dense(NamedTuple):
    """One post-stabilization as matrices: M (v' - v) = J^T p, J v' = c."""

    mass: Floats
    jacobian: Floats
    velocity: Floats
    wanted: Floats

    @property
    def response(self) -> Floats:
        """A = J M^-1 J^T."""
        return self.jacobian @ np.linalg.solve(self.mass, self.jacobian.T)

    @property
    def change(self) -> Floats:
        """Return the defect of the rows before."""
        return self.wanted - self.jacobian @ self.velocity

    def moved(self, impulse: Floats) -> Floats:
        """Return velocities (6 n,) after the impulses."""
        return self.velocity + np.linalg.solve(self.mass, self.jacobian.T @ impulse)


def dense_of(stabilizer: PostStabilizer, state: State) -> Dense:
    """Return the rows of the last solve as matrices over the solved bodies."""
    bodies, rows, count = stabilizer.compiled.tables.bodies, stabilizer._work.rows, len(stabilizer.row_names)
    solved = np.flatnonzero(bodies.kinematic == 0)
    place = {int(b): i for i, b in enumerate(solved)}
    jacobian = np.zeros((count, len(solved), 6))
    for k in range(count):
        for e in range(rows.first[k], rows.first[k + 1]):
            if rows.body[e] >= 0:
                jacobian[k, place[int(rows.body[e])]] += rows.jacobian[e]
    turn = rotation_matrix(state.quaternion)
    blocks = []
    for b in solved:
        blocks += [bodies.mass[b] * np.eye(3), turn[b] @ bodies.inertia[b] @ turn[b].T]
    mass = scipy.linalg.block_diag(*blocks)
    wanted = rows.c[:count, 0] - rows.offset[:count]
    return Dense(mass, jacobian.reshape(count, -1), state.twist[solved].ravel(), wanted)


def solve_by_qr(A: Floats, d: Floats, weights: Floats, rank_tolerance: float = 1e-10) -> Floats:
    """Solve A j = d: least squares, then least ||W^1/2 j|| (Weinstein et al. 2008).

    A Pi = Q R with R = (B S; 0 e); x = Z x_S + b, Z = (-B^-1 S; 1); x_S minimizes ||W^1/2 (Z x_S + b)||^2. The lines of
    R below the rank, rounding, are left out.
    """
    Q, R, order = scipy.linalg.qr(A, pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > rank_tolerance * abs(R[0, 0])))
    B, S = R[:rank, :rank], R[:rank, rank:]
    Z = np.vstack([-scipy.linalg.solve_triangular(B, S), np.eye(len(d) - rank)])
    start = np.concatenate([scipy.linalg.solve_triangular(B, (Q.T @ d)[:rank]), np.zeros(len(d) - rank)])
    root = np.sqrt(weights[order])
    x = start
    if rank < len(d):
        x = start + Z @ np.linalg.lstsq(root[:, None] * Z, -root * start, rcond=None)[0]
    impulse = np.empty(len(d))
    impulse[order] = x
    return impulse

"""Reference impulse step for chains of hinges and balls on the ground: the energy-momentum equations, dense."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, null_space
from scipy.optimize import root


class TwinJoint(NamedTuple):
    """Bodies by number (-1: ground), anchors from the centers of mass, the hinge's axis (None: a ball)."""

    parent: int
    child: int
    on_parent: np.ndarray
    on_child: np.ndarray
    axis: np.ndarray | None
    response: tuple[float, float] | None = None
    """The a and b of its control; None: not controlled."""


def cross_matrix(u):
    return np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])


class Twin:
    """Bodies and joints; joint frames are those of the bodies, and all targets are 0."""

    def __init__(self, mass, inertia, joints, gravity, position, rotation, twist):
        self.mass, self.inertia, self.joints, self.gravity = mass, inertia, joints, np.asarray(gravity)
        self.x, self.R, self.v = position.copy(), rotation.copy(), twist.copy()
        self.before = None

    def mass_matrix(self):
        turned = [R @ inertia @ R.T for R, inertia in zip(self.R, self.inertia, strict=True)]
        return block_diag(*(block_diag(m * np.eye(3), own) for m, own in zip(self.mass, turned, strict=True)))

    def frame(self, body):
        return (self.x[body], self.R[body]) if body >= 0 else (np.zeros(3), np.eye(3))

    def angle(self, joint):
        """Return the angle of the child about the axis relative to the parent."""
        turn = self.frame(joint.parent)[1].T @ self.frame(joint.child)[1]
        y, z = null_space(joint.axis[None]).T
        z = np.cross(joint.axis, y)
        return np.arctan2(z @ turn @ y, y @ turn @ y)

    def rows(self):
        """Return J, the errors of its rows, and for each row the joint it controls (None: a constraint)."""
        directions, errors, controls = [], [], []

        def add(joint, linear, angular_child, angular_parent, error, controlled=None):
            row = np.zeros((len(self.mass), 6))
            row[joint.child] = [*linear, *angular_child]
            if joint.parent >= 0:
                row[joint.parent] -= [*linear, *angular_parent]
            directions.append(row.ravel())
            errors.append(error)
            controls.append(controlled)

        for joint in self.joints:
            (xp, Rp), (xc, Rc) = self.frame(joint.parent), self.frame(joint.child)
            rp, rc = Rp @ joint.on_parent, Rc @ joint.on_child
            for e, gap in zip(np.eye(3), xc + rc - xp - rp, strict=True):
                add(joint, e, np.cross(rc, e), np.cross(rp, e), gap)
            if joint.axis is None:
                continue
            a, b = Rp @ joint.axis, Rc @ joint.axis
            for side in null_space(joint.axis[None]).T:
                t = np.cross(b, Rp @ side)
                add(joint, np.zeros(3), t, t, b @ Rp @ side)
            if joint.response is not None:
                add(joint, np.zeros(3), a, a, self.angle(joint), joint)
        return np.array(directions), np.array(errors), controls

    def project(self, J, aim):
        """Apply the impulses that result in J v = aim."""
        inverse = np.linalg.inv(self.mass_matrix())
        impulse = np.linalg.solve(J @ inverse @ J.T, aim - J @ self.v.ravel())
        self.v = self.v + (inverse @ J.T @ impulse).reshape(-1, 6)

    def move(self, h, u, x, R):
        """Move bodies from given poses by their mean velocities: R' = (1 - [h w / 2])^-1 (1 + [h w / 2]) R."""
        self.x = x + h * u[:, :3]
        halves = [0.5 * h * cross_matrix(w) for w in u[:, 3:]]
        self.R = np.array(
            [
                np.linalg.solve(np.eye(3) - half, (np.eye(3) + half) @ before)
                for half, before in zip(halves, R, strict=True)
            ]
        )

    def energy(self):
        own = [0.5 * w @ R @ M @ R.T @ w for w, R, M in zip(self.v[:, 3:], self.R, self.inertia, strict=True)]
        return 0.5 * np.sum(np.array(self.mass)[:, None] * self.v[:, :3] ** 2) + np.sum(own)

    def step(self, h):
        """Make a step by the energy-momentum equations, without contacts."""
        J, _, controls = self.rows()
        now = [0.0 if joint is None else self.angle(joint) for joint in controls]
        speed = J @ self.v.ravel()
        rates = speed if self.before is None else (np.array(now) - self.before) / h
        responses = [(0.0, 0.0) if joint is None else joint.response for joint in controls]
        aims = np.array([a * q + b * rate for (a, b), q, rate in zip(responses, now, rates, strict=True)])
        x, R, v, n = self.x, self.R, self.v, len(self.mass)
        before = self.energy()
        mass = np.array(self.mass)[:, None]

        def end_velocities(u):
            local = [Rb.T @ (2.0 * w - w0) for Rb, w, w0 in zip(R, u[:, 3:], v[:, 3:], strict=True)]
            return np.hstack([2.0 * u[:, :3] - v[:, :3], [end @ w for end, w in zip(self.R, local, strict=True)]])

        def balance(unknown):
            u, p = unknown[: 6 * n].reshape(n, 6), unknown[6 * n :]
            self.move(h, u, x, R)
            errors = (self.rows()[1] - aims) / h
            after = end_velocities(u)
            end_x, end_R = self.x, self.R
            self.x, self.R = 0.5 * (x + end_x), 0.5 * (R + end_R)
            mean = self.rows()[0]
            self.x, self.R = end_x, end_R
            linear = mass * (after[:, :3] - v[:, :3] - h * self.gravity)
            spins = [
                Re @ M @ Re.T @ w - Rb @ M @ Rb.T @ w0
                for Re, Rb, M, w, w0 in zip(end_R, R, self.inertia, after[:, 3:], v[:, 3:], strict=True)
            ]
            return np.concatenate([(np.hstack([linear, spins]) - (mean.T @ p).reshape(n, 6)).ravel(), errors])

        found = root(balance, np.concatenate([v.ravel(), np.zeros(len(J))]), tol=1e-14)
        assert np.abs(balance(found.x)).max() * h < 1e-13
        self.v = end_velocities(found.x[: 6 * n].reshape(n, 6))
        J, _, controls = self.rows()
        self.project(
            J, np.array([0.0 if j is None else self.angle(j) - q for j, q in zip(controls, now, strict=True)]) / h
        )
        if all(joint is None for joint in controls):  # the energy that the projection removed is given back
            required = before + np.sum(mass * self.gravity * (self.x - x))
            self.v = self.v * np.sqrt(required / self.energy())
        self.before = np.array(now)

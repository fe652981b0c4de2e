"""Tree models in MuJoCo and Pinocchio: every axis of every joint is a hinge or a slide of its own.

A coordinate that moves several axes by functions, or is coupled to another, is a combination of them: with x the axes
and v the variables, dx/dt = G dv/dt, so M = G^T M_x G and so on. G comes from `model.kinematics`, which is plain numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from borelli.model.kinematics import coupled_motion, tree_links
from borelli.model.model import Model


def _parts(link):
    return [(part, False) for part in link.translations] + [(part, True) for part in link.rotations]


@dataclass(frozen=True)
class Axes:
    """Values, rates and accelerations of all axes in a state."""

    value: np.ndarray
    rate: np.ndarray
    bias: np.ndarray
    """Accelerations where those of the variables are zero."""
    map: np.ndarray
    """(axes, variables) G."""


def axes_of(model: Model, q: np.ndarray, speeds: np.ndarray, free: np.ndarray) -> Axes:
    """Return the axes in a state; `speeds` (coordinates,) are zero where locked or coupled."""
    parts = [part for link in tree_links(model) for part, _ in _parts(link)]

    def rates(u):
        values, full, acceleration = coupled_motion(model, q[None], u[None], np.zeros((1, len(q))))
        rows = []
        for part in parts:
            value, slope, curvature = (float(x[0]) for x in part.values(values))
            c = part.column
            rows.append(
                (value, 0.0, 0.0)
                if c < 0
                else (value, slope * full[0, c], slope * acceleration[0, c] + curvature * full[0, c] ** 2)
            )
        return np.array(rows).reshape(-1, 3)

    now = rates(speeds)
    columns = [rates(np.eye(len(q))[i])[:, 1] for i in free]
    return Axes(now[:, 0], now[:, 1], now[:, 2], np.array(columns).T)


class Pinocchio:
    """The model in Pinocchio."""

    def __init__(self, model: Model) -> None:
        import pinocchio as pin

        self.pin, self.peer = pin, pin.Model()
        self.peer.gravity.linear = np.array(model.gravity)
        links = tree_links(model)
        first = np.cumsum([0, *(len(_parts(link)) for link in links)])
        self.at, self.order = {-1: (0, pin.SE3.Identity())}, np.zeros(first[-1], int)
        # its algorithms take the axes of a subtree to be contiguous: depth first
        waiting = [k for k, link in enumerate(links) if link.parent < 0][::-1]
        while waiting:
            k = waiting.pop()
            self._add(model, links[k], first[k])
            waiting += [n for n, link in enumerate(links) if link.parent == links[k].child]
        self.data = self.peer.createData()

    def _add(self, model: Model, link, first: int) -> None:
        pin = self.pin
        joint, place = self.at[link.parent]
        place = place * pin.SE3(link.parent_rotation, link.parent_position)
        for n, (part, rotational) in enumerate(_parts(link)):
            kind = pin.JointModelRevoluteUnaligned if rotational else pin.JointModelPrismaticUnaligned
            self.order[first + n] = self.peer.nv
            joint = self.peer.addJoint(joint, kind(part.axis), place, f"axis {self.peer.nv}")
            place = pin.SE3.Identity()
        place = place * pin.SE3(link.child_rotation, link.child_position).inverse()
        body = model.bodies[link.child]
        inertia = pin.Inertia(body.mass, np.array(body.center_of_mass), np.array(body.inertia))
        self.peer.appendBodyToJoint(joint, inertia, place)
        self.at[link.child] = joint, place

    def ordered(self, by_axis: np.ndarray) -> np.ndarray:
        """Return values by axis in the order of the engine."""
        result = np.zeros_like(by_axis)
        result[self.order] = by_axis
        return result

    def mass(self, axes: Axes) -> np.ndarray:
        full, own = self.pin.crba(self.peer, self.data, self.ordered(axes.value)), self.ordered(axes.map)
        full = np.triu(full) + np.triu(full, 1).T
        return own.T @ full @ own

    def force(self, axes: Axes, acceleration: np.ndarray) -> np.ndarray:
        """Return inverse dynamics for accelerations of the variables."""
        motion = (self.ordered(v) for v in (axes.value, axes.rate, axes.map @ acceleration + axes.bias))
        return self.ordered(axes.map).T @ self.pin.rnea(self.peer, self.data, *motion)

    def jacobian(self, axes: Axes, body: int, point: np.ndarray) -> np.ndarray:
        joint, place = self.at[body]
        self.pin.computeJointJacobians(self.peer, self.data, self.ordered(axes.value))
        if joint == 0:
            return np.zeros((6, axes.map.shape[1]))
        frame = self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobian = np.array(self.pin.getJointJacobian(self.peer, self.data, joint, frame))
        arm = self.data.oMi[joint].rotation @ place.act(np.array(point))
        jacobian[:3] += np.cross(jacobian[3:].T, arm).T
        return jacobian @ self.ordered(axes.map)


class MuJoCo:
    """The model in MuJoCo. A body's frame there is the joint frame on it."""

    def __init__(self, model: Model) -> None:
        import mujoco

        self.mujoco, spec = mujoco, mujoco.MjSpec()
        spec.option.gravity = model.gravity
        spec.compiler.boundmass, spec.compiler.boundinertia, spec.compiler.balanceinertia = 0.0, 0.0, False
        at = {-1: (spec.worldbody, np.zeros(3), np.eye(3))}
        self.local, self.name, count = {}, {}, 0
        for link in tree_links(model):
            parent, origin, rotation = at[link.parent]
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, (rotation @ link.parent_rotation).ravel())
            body = parent.add_body(
                name=f"body {link.child}", pos=origin + rotation @ link.parent_position, quat=quaternion
            )
            for part, rotational in _parts(link):
                kind = mujoco.mjtJoint.mjJNT_HINGE if rotational else mujoco.mjtJoint.mjJNT_SLIDE
                body.add_joint(name=f"axis {count}", type=kind, axis=part.axis)
                count += 1
            turn, shift = link.child_rotation.T, -link.child_rotation.T @ link.child_position
            own = model.bodies[link.child]
            inertia = turn @ np.array(own.inertia) @ turn.T
            body.explicitinertial, body.mass, body.ipos = True, own.mass, turn @ np.array(own.center_of_mass) + shift
            body.fullinertia = [*inertia.diagonal(), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
            at[link.child] = body, shift, turn
            self.local[link.child] = turn, shift
        self.peer = spec.compile()
        self.data = mujoco.MjData(self.peer)
        self.order = [
            self.peer.jnt_dofadr[mujoco.mj_name2id(self.peer, mujoco.mjtObj.mjOBJ_JOINT, f"axis {i}")]
            for i in range(count)
        ]

    def _set(self, axes: Axes) -> np.ndarray:
        """Set the state and return G in the order of the engine."""
        self.data.qpos[self.order], self.data.qvel[self.order] = axes.value, axes.rate
        self.mujoco.mj_forward(self.peer, self.data)
        result = np.zeros_like(axes.map)
        result[self.order] = axes.map
        return result

    def mass(self, axes: Axes) -> np.ndarray:
        own, full = self._set(axes), np.zeros((self.peer.nv, self.peer.nv))
        for column, unit in zip(full, np.eye(self.peer.nv), strict=True):
            self.mujoco.mj_mulM(self.peer, self.data, column, unit)
        return own.T @ full @ own

    def force(self, axes: Axes, acceleration: np.ndarray) -> np.ndarray:
        own, force = self._set(axes), np.zeros(self.peer.nv)
        self.data.qacc[self.order] = axes.map @ acceleration + axes.bias
        self.mujoco.mj_rne(self.peer, self.data, 1, force)
        return own.T @ force

    def jacobian(self, axes: Axes, body: int, point: np.ndarray) -> np.ndarray:
        own, jacobian = self._set(axes), np.zeros((6, self.peer.nv))
        i = self.mujoco.mj_name2id(self.peer, self.mujoco.mjtObj.mjOBJ_BODY, f"body {body}")
        turn, shift = self.local[body]
        world = self.data.xpos[i] + self.data.xmat[i].reshape(3, 3) @ (turn @ np.array(point) + shift)
        self.mujoco.mj_jac(self.peer, self.data, jacobian[:3], jacobian[3:], world, i)
        return jacobian @ own


PEERS = {"pinocchio": Pinocchio, "mujoco": MuJoCo}

"""MuJoCo on the common jobs.

Markers are mocap bodies with connect constraints. A motor that keeps its axis at rest with at most 5 N m is, in
MuJoCo's terms, dry friction of the joint: one bounded constraint row per axis, as in the other engines.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.bench import workload as jobs
from borelli.bench.ground_truth import Motion
from borelli.bench.metrics import Job, Measurement, summary, timed, torque_error, tracking_errors
from borelli.model.model import GROUND, Joint, Model

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]

NAME = "mujoco"
FRICTION = (1.0, 0.005, 0.0001)
"""Sliding 1; torsional [m] and rolling [m] are MuJoCo's defaults (unused by 3-row contacts)."""
MARKER_SOLREF = (0.02, 1.0)
"""Time constant [s] and damping ratio of markers: MuJoCo's default, near its lower limit of two steps of 1/120 s."""


def absent() -> str | None:
    """Return why MuJoCo is not available; None if it is."""
    return None if find_spec("mujoco") else "the Python package mujoco is not installed"


def measure_job(job: Job, motion: Motion) -> Measurement:
    """Time mj_step on a job of the human, one step per frame."""
    import mujoco

    model = build(jobs.human(), motion.step, job)
    data = mujoco.MjData(model)
    q, v = positions(motion), _velocities(model, motion)
    data.qpos[:], data.qvel[:] = q[0], v[0]
    samples, contacts, poses = [], [], []
    for frame in range(job.steps_of(motion)):
        if job.reset:
            data.qpos[:], data.qvel[:] = q[frame], v[frame]
            # the true accelerations are the best warm start for MuJoCo's solver
            data.qacc_warmstart[:] = (v[min(frame + 1, len(v) - 1)] - v[frame]) * motion.fps
        if job.markers:
            data.mocap_pos[:] = motion.markers[frame + 1]
        samples.append(timed(lambda: mujoco.mj_step(model, data)))
        contacts.append(data.ncon)
        if job.markers:
            mujoco.mj_kinematics(model, data)
            poses.append(_body_poses(data))
    errors = tracking_errors(np.array(poses), motion) if job.markers else {}
    if any(warning.number for warning in data.warning):
        errors["diverged"] = 1.0  # MuJoCo reset itself: its time is not that of this job
    return summary(np.array(samples), contacts=float(np.mean(contacts)), **errors)


def measure_torques(motion: Motion) -> Measurement:
    """Time mj_inverse on central differences of the recorded coordinates."""
    import mujoco

    model = build(jobs.human(), motion.step, Job("torques", ""))
    data = mujoco.MjData(model)
    q, v = positions(motion), _velocities(model, motion)
    torques = np.zeros((motion.frames - 1, model.nv - 6))
    samples = []
    for frame in range(1, motion.frames - 1):
        data.qpos[:] = q[frame]
        data.qvel[:] = (v[frame - 1] + v[frame]) / 2
        data.qacc[:] = (v[frame] - v[frame - 1]) * motion.fps
        samples.append(timed(lambda: mujoco.mj_inverse(model, data), batch=4))
        torques[frame] = data.qfrc_inverse[6:]
    return summary(np.array(samples), error_percent=torque_error(torques, motion.torques()))


def measure_chain(links: int, steps: int) -> Measurement:
    """Time mj_step on a chain falling from rest."""
    import mujoco

    model = build(jobs.chain(links), jobs.CHAIN_STEP, Job("chain", ""))
    data = mujoco.MjData(model)
    return summary(np.array([timed(lambda: mujoco.mj_step(model, data)) for _ in range(steps)]))


def build(model: Model, step: float, job: Job) -> mujoco.MjModel:
    """Return the model compiled for MuJoCo; shapes collide only with the ground."""
    import mujoco

    spec = mujoco.MjSpec()
    spec.option.timestep = step
    spec.option.gravity = model.gravity
    if not job.contacts:
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT
    for shape in model.ground:
        # collision bits: ground against shapes, no shape against another
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, pos=shape.frame.position, size=[5, 5, 0.1],
                                contype=1, conaffinity=2, friction=FRICTION)  # fmt: skip
    joints = {joint.child: joint for joint in model.joints}
    added = {GROUND: spec.worldbody}
    origins = {GROUND: np.zeros(3)}
    for body in model.bodies:
        joint = joints.get(body.name)
        parent = joint.parent if joint else GROUND
        origins[body.name] = np.array(body.frame.position)
        xx, yy, zz = (body.inertia[k][k] for k in range(3))
        new = added[parent].add_body(name=body.name, pos=origins[body.name] - origins[parent], mass=body.mass,
                                      inertia=[xx, yy, zz], ipos=[0, 0, 0], explicitinertial=True)  # fmt: skip
        added[body.name] = new
        if joint is None:
            new.add_freejoint()
        else:
            _add_joint(new, joint, jobs.MOTOR_TORQUE if job.motors else 0.0)
        for shape in body.shapes:
            if shape.collides and shape.kind == "box":
                new.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=shape.size, contype=2, conaffinity=1,
                              friction=FRICTION)  # fmt: skip
    if job.markers:
        _add_markers(spec, model, origins)
    return spec.compile()


def _add_joint(body: mujoco.MjsBody, joint: Joint, friction: float) -> None:
    import mujoco

    anchor = joint.child_frame.position
    if joint.kind == "ball":
        body.add_joint(type=mujoco.mjtJoint.mjJNT_BALL, pos=anchor, frictionloss=friction)
        return
    for axis in joint.axes:
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, pos=anchor, axis=axis, frictionloss=friction)


def _add_markers(spec: mujoco.MjSpec, model: Model, origins: dict[str, Array]) -> None:
    import mujoco

    for marker in model.markers:
        spec.worldbody.add_body(name=marker.name, mocap=True, pos=origins[marker.body] + marker.position)
        constraint = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY,
                                name1=marker.name, name2=marker.body)  # fmt: skip
        constraint.solref = MARKER_SOLREF
        constraint.data[:3] = 0.0


def positions(motion: Motion) -> Array:
    """Return the motion in MuJoCo's coordinates (frames, nq): root pose, quaternions of balls, angles of hinges."""
    return np.hstack([motion.poses[:, 0], *motion.joint_positions()])


def _velocities(model: mujoco.MjModel, motion: Motion) -> Array:
    """Return the mean velocity (frames - 1, nv) from frame i to frame i + 1."""
    import mujoco

    q = positions(motion)
    v = np.zeros((motion.frames - 1, model.nv))
    for frame, out in enumerate(v):
        mujoco.mj_differentiatePos(model, out, motion.step, q[frame], q[frame + 1])
    return v


def _body_poses(data: mujoco.MjData) -> Array:
    """Return the poses (21, 7) of the segments, whose frames are at their centers of mass."""
    bodies = slice(1, 1 + len(jobs.segments()))
    return np.hstack([data.xpos[bodies], data.xquat[bodies]])

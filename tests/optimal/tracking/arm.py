"""A forearm with two muscles and a known motion, whose torque is a closed form."""

import numpy as np

from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.motion import make_motion
from borelli.model.model import Body, Coordinate, Joint, Model, Muscle, PathPoint

MASS, LENGTH, INERTIA, G = 1.5, 0.18, 0.02, 9.81
"""[kg], [m] to the center of mass, [kg m^2] about it, [m/s^2]"""
DURATION, RATE = 0.8, 100.0


def forearm(*, muscles=True):
    """Return a forearm that hangs at angle zero; flexor and extensor pass through points."""
    body = Body("forearm", MASS, (0.0, -LENGTH, 0.0), tuple(map(tuple, np.diag([INERTIA, 0.001, INERTIA]))))
    elbow = Coordinate("elbow", lower=-0.2, upper=2.4)
    joint = Joint("elbow", "hinge", "ground", "forearm", axes=((0.0, 0.0, 1.0),), coordinates=(elbow,))
    paths = {
        "flexor_r": ((0.04, 0.25, 0.0), (0.03, -0.05, 0.0)),
        "extensor_r": ((-0.04, 0.25, 0.0), (-0.03, -0.04, 0.0)),
    }
    made = tuple(
        Muscle(
            name, (PathPoint("ground", a), PathPoint("forearm", b)), 900.0, 0.12, 0.17,
            kind="DeGrooteFregly2016Muscle", activation_time=0.015, deactivation_time=0.06,
        )
        for name, (a, b) in paths.items()
    )  # fmt: skip
    return Model("forearm", (body,), (joint,), muscles=made if muscles else (), gravity=(0.0, -G, 0.0))


def angle(t):
    """Return the angle [rad] of the motion, its speed and acceleration."""
    w = 2.0 * np.pi / DURATION
    return 1.0 - 0.4 * np.cos(w * t), 0.4 * w * np.sin(w * t), 0.4 * w**2 * np.cos(w * t)


def torque(t):
    """Return the torque [N m] of the motion."""
    q, _, a = angle(t)
    return (INERTIA + MASS * LENGTH**2) * a + MASS * G * LENGTH * np.sin(q)


def recorded_torques(**more):
    """Return the torques of the motion by inverse dynamics, without ground."""
    time = np.arange(0.0, DURATION + 1e-9, 1.0 / RATE)
    motion = make_motion(forearm(**more), angle(time)[0][:, None], time, RATE)
    return inverse_dynamics(motion, forces=None, filter="none")

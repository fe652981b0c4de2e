"""A pendulum: nonlinear, with a stiff variant, and a form with an algebraic variable."""

import casadi as ca
import numpy as np

from borelli.optimal import Phase, Problem, System, Variable, make_system

STATES = (Variable("angle", "rad", scale=1.0), Variable("angle_speed", "rad/s", scale=3.0))
TORQUE = Variable("angle_torque", "N m", -20.0, 20.0, scale=5.0)
GRAVITY = 9.81
"""[m/s^2] of a point of 1 kg on a rod of 1 m."""


def pendulum():
    return make_system(
        "pendulum",
        states=STATES,
        controls=[TORQUE],
        rates=lambda s: {"angle": s.angle_speed, "angle_speed": s.angle_torque - GRAVITY * ca.sin(s.angle)},
    )


def implicit_pendulum():
    """The same with the rod's tension as an algebraic variable and the explicit form left to borelli."""
    t, x, xdot, z, u, p = (ca.SX.sym(n, k) for n, k in zip("txyzup", (1, 2, 2, 1, 1, 0), strict=True))
    tension = x[1] ** 2 + GRAVITY * ca.cos(x[0])
    rows = ca.vertcat(xdot[0] - x[1], 2.0 * (xdot[1] - u + GRAVITY * ca.sin(x[0])), z - tension)
    residual = ca.Function("residual", [t, x, xdot, z, u, p], [rows])
    return System("pendulum", STATES, (TORQUE,), residual, algebraics=(Variable("tension", "N", scale=10.0),))


def swing_up(nodes, system=None, **settings):
    ends = {"start": {"angle": 0, "angle_speed": 0}, "end": {"angle": np.pi, "angle_speed": 0}}
    cost = {"torque": lambda s: s.angle_torque**2}
    return Problem("swing", [Phase("swing", system or pendulum(), 2.0, nodes, **ends, cost=cost, **settings)])

"""Systems of the jumper: heel on the ground (3 DOF), toe on the ground (4 DOF), or in the air (6 DOF).

What is on the ground is held, and the forces that hold it are outputs: `toe_x_reaction`, `toe_y_reaction` [N] and, with
the heel down, `foot_pitch_reaction` [N m]. The ground pushes the heel up, which is a negative moment about the toe.
On the toe, a soft heel is an exponential torsional spring and damper (Park et al. 1992, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.planar_jumper.jumper_model import JOINTS, jumper_model, jumper_paths, jumper_ranges
from borelli.optimal.problem import Constraint
from borelli.optimal.symbolic_dynamics.passive_forces import JointLimits
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.system import System, names_of

HELD = {
    "heel": {"toe_x": 0.0, "toe_y": 0.0, "foot_pitch": 0.0},
    "toe": {"toe_x": 0.0, "toe_y": 0.0},
    "air": {},
}
"""Coordinates that the ground holds, by what is on the ground."""
HEEL_TORQUE, HEEL_STEEPNESS, HEEL_DAMPING = 60.0, 100.0, 0.3
"""Soft heel: [N m] with the sole flat, [1/rad], [s/rad]. A choice: 60 N m balance a squat with the sole flat within
1 mrad."""
DAMPING = 0.5
"""[N m s/rad] of joints; a choice, as are the constants of the joint limits."""
TORQUE_LIMITS = {"ankle_angle": (-300.0, 50.0), "knee_angle": (-100.0, 500.0), "hip_flexion": (-400.0, 100.0)}
"""[N m] of both legs together; a choice near the strength of an adult."""
MAX_SPEED = 20.0
"""[rad/s] joint speed at which a joint produces no torque in its direction; a choice."""
SQUAT = {"ankle_angle": np.radians(30.0), "knee_angle": np.radians(-82.0), "hip_flexion": np.radians(102.0)}
"""[rad] squat from which jumps start: shank, thigh, and hip to center of mass of HAT at 60, 142 and 47 degrees from the
horizontal."""


def jumper_system(
    ground: str, *, muscles: bool = False, soft_heel: bool = False, activation_time: float | None = None,
    deactivation_time: float | None = None,
) -> System:  # fmt: skip
    """Return the jumper's system.

    Args:
        ground: What is on the ground: "heel", "toe" or "air" (nothing).
        muscles: Eight muscles with excitations as controls, instead of joint torques.
        soft_heel: Add the spring under the heel; on the toe only.
        activation_time: Of muscles [s]. Default: 20 ms.
        deactivation_time: Of muscles [s]. Default: 200 ms.
    """
    if ground not in HELD:
        raise SettingsError(f"ground: {unknown_name('value', str(ground), HELD)}.")
    times = {"activation_time": activation_time, "deactivation_time": deactivation_time}
    model = jumper_model(muscles=muscles, **{key: value for key, value in times.items() if value is not None})
    return tree_system(
        model,
        tendon="elastic" if muscles else None,
        activation="park",
        paths=jumper_paths() if muscles else None,
        actuators={} if muscles else TORQUE_LIMITS,
        held=HELD[ground],
        limits=JointLimits(),
        damping=DAMPING,
        forces=_soft_heel if soft_heel else None,
        ranges=jumper_ranges() if muscles else None,
        points=("heel",),
        name=f"jumper_{ground}",
    )


def _soft_heel(s: Namespace) -> Mapping[str, ca.SX]:
    """Return the moment of the ground on the heel, about the toe."""
    push = HEEL_TORQUE * ca.exp(HEEL_STEEPNESS * s.foot_pitch) * (1.0 + HEEL_DAMPING * s.foot_pitch_speed)
    return {"foot_pitch": -push}


def torque_velocity_limits() -> list[Constraint]:
    """Return the path constraints T / T0 + w / wmax <= 1 in both directions of each joint.

    T0 is the isometric limit, w the joint's speed in the direction of the torque: Hill's law as a straight line.
    """
    found = []
    for name, limits in TORQUE_LIMITS.items():
        for limit, direction in zip(limits, (-1.0, 1.0), strict=True):

            def fraction(s: Namespace, name: str = name, limit: float = limit, direction: float = direction) -> ca.SX:
                return s[f"{name}_torque"] / limit + direction * s[f"{name}_speed"] / MAX_SPEED

            end = "upper" if direction > 0.0 else "lower"
            found.append(Constraint(f"{name}_{end}_torque_velocity", fraction, upper=1.0))
    return found


def static_start(system: System, pose: Mapping[str, float] = SQUAT) -> dict[str, float]:
    """Return the states at rest in a pose with the least sum of squared controls (activations with muscles).

    Joint angles [rad] are given; all other states, such as the pitch of a foot on a soft heel, are found.

    Raises:
        SettingsError: if the controls cannot hold the pose.
    """
    names = names_of(system.states)
    x, u = ca.MX.sym("x", len(names)), ca.MX.sym("u", len(system.controls))
    none = ca.DM(0, 1)
    residual = system.residual(0.0, x, ca.DM.zeros(len(names)), none, u, none)
    coordinates = sum(name.endswith("_speed") for name in names)
    # activations need not be steady: excitations change at the start
    activations = sum(name.endswith("_activation") for name in names)
    rows = [*range(coordinates, 2 * coordinates), *range(2 * coordinates + activations, len(names))]
    fixed = {name: pose.get(name, 0.0) for name in names if name in pose or name.endswith("_speed")}
    lower = [fixed.get(v.name, v.lower) for v in system.states]
    upper = [fixed.get(v.name, v.upper) for v in system.states]
    effort = [x[i] for i, name in enumerate(names) if name.endswith("_activation")]
    cost = ca.sumsqr(ca.vertcat(*effort)) if effort else ca.sumsqr(u / ca.DM([v.size for v in system.controls]))
    first = [0.0 if isinf(a) or isinf(b) or a <= 0.0 <= b else a for a, b in zip(lower, upper, strict=True)]
    first = [
        0.3 if name.endswith(("_activation", "_tendon_force")) else f for name, f in zip(names, first, strict=True)
    ]
    bounds = [[getattr(v, side) for v in system.controls] for side in ("lower", "upper")]
    solver = ca.nlpsol(
        "static", "ipopt", {"x": ca.vertcat(x, u), "f": cost, "g": residual[rows]},
        {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "error_on_fail": False},
    )  # fmt: skip
    start = [*first, *([0.3] * len(system.controls) if effort else [0.0] * len(system.controls))]
    found = solver(x0=start, lbx=[*lower, *bounds[0]], ubx=[*upper, *bounds[1]], lbg=0.0, ubg=0.0)
    if not solver.stats()["success"]:
        angles = ", ".join(f"{name} {np.degrees(angle):.0f} deg" for name, angle in pose.items())
        raise SettingsError(f"The jumper cannot hold the pose ({angles}) at rest. Choose another pose.")
    # IPOPT relaxes bounds by 1e-8
    values = np.clip(np.array(found["x"]).ravel()[: len(names)], lower, upper)
    return dict(zip(names, values.tolist(), strict=True))


def standing_height() -> float:
    """Return the height [m] of the center of mass of the standing jumper, all angles zero."""
    from borelli.model.kinematics import center_of_mass

    return float(center_of_mass(jumper_model(muscles=False), np.zeros((1, len(HELD["toe"]) + 1 + len(JOINTS))))[0, 1])

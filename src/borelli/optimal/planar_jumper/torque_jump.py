"""Problems of jumping by joint torques, in phases with degrees of freedom of their own (Park et al. 1992, section 7).

heel    3 DOF: foot flat; ends as the moment under the heel becomes zero
toe     4 DOF: ends as the ground's force becomes zero
air     6 DOF: starts with the toe at rest, ends as it comes down
impact  the toe stops at once: M (v+ - v-) = impulse at the toe. The first two coordinates are the toe's position, so
        the impulse appears in their rows only, and the other rows are zero
land    4 DOF with a soft heel: ends at rest

Torques are limited by the torque-velocity law, or by constants. The latter leave directions in which the cost is flat
and speeds of 40 rad/s; they are a stress test of methods, not a model.
"""

from __future__ import annotations

from typing import Any

from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.planar_jumper.jump_problems import (
    MAX_GROUND_TIME,
    MIN_GROUND_TIME,
    OBJECTIVE_SCALE,
    apex_height,
    ground_pushes,
)
from borelli.optimal.planar_jumper.jumper_model import JOINTS, ROOT, jumper_model
from borelli.optimal.planar_jumper.jumper_systems import (
    SQUAT,
    jumper_system,
    standing_height,
    static_start,
    torque_velocity_limits,
)
from borelli.optimal.problem import Constraint, Link, Phase, Problem
from borelli.optimal.symbolic_dynamics.tree_dynamics import make_tree_dynamics
from borelli.optimal.system import System, names_of

ACCELERATION_WEIGHT = 3e-2
"""Weight of the mean squared joint acceleration over 0.6 s, in (100 rad/s^2)^2."""
TORQUE_RATE_WEIGHT = 1.2e-9
"""Weight of the time integral of squared torque rates, (N m/s)^2: 1e-3 times the squared increments in 100 N m between
nodes 12 ms apart. It smooths torques."""
MOMENT_SCALE = 100.0
"""[N m]"""
MAX_LANDING_FORCE = 12000.0
"""[N] about 17 body weights; a bound that keeps the first iterates sane."""
MAX_LANDING_TIME = 0.6
"""[s]"""
FREE = (ROOT[2], *JOINTS)
"""Coordinates that are free on the toe."""


def ground_phases(heel_nodes: int = 11, toe_nodes: int = 41) -> list[Phase]:
    """Return the phases on heel and toe, with the torque-velocity law."""
    heel, toe = jumper_system("heel"), jumper_system("toe")
    start = static_start(heel)
    half = {name: 0.5 * SQUAT[name] for name in JOINTS}
    return [
        Phase(
            "heel", heel, (0.05, MAX_GROUND_TIME), nodes=heel_nodes, start=start,
            end={"foot_pitch_reaction": 0.0},
            path=[
                *torque_velocity_limits(),
                ground_pushes(),
                # the ground pushes the heel up, which is a negative moment about the toe
                Constraint("heel_moment", lambda s: -s.foot_pitch_reaction / MOMENT_SCALE, lower=0.0),
            ],
            cost=_smoothness(heel),
            guess={name: [SQUAT[name], half[name]] for name in JOINTS} | {"duration": 0.35},
        ),
        Phase(
            "toe", toe, (0.02, MAX_GROUND_TIME), nodes=toe_nodes, start={"foot_pitch": 0.0, "foot_pitch_speed": 0.0},
            end={"toe_y_reaction": 0.0}, bounds={"foot_pitch": (-1.5, 0.0)},
            path=[*torque_velocity_limits(), ground_pushes()], cost=_smoothness(toe),
            guess={name: [half[name], 0.1 * SQUAT[name]] for name in JOINTS}
            | {"foot_pitch": [0.0, -0.6], "duration": 0.15},
        ),
    ]  # fmt: skip


def torque_jump(heel_nodes: int = 11, toe_nodes: int = 41) -> Problem:
    """Return the jump over heel and toe."""
    standing = standing_height()
    return Problem(
        "torque jump",
        ground_phases(heel_nodes, toe_nodes),
        constraints=[_ground_time()],
        cost=lambda p: -OBJECTIVE_SCALE * (apex_height(p.toe.end) - standing),
    )


def phase_jump(heel_nodes: int = 11, toe_nodes: int = 41, air_nodes: int = 31, land_nodes: int = 91) -> Problem:
    """Return the jump over heel, toe, air and landing."""
    air, land = jumper_system("air"), jumper_system("toe", soft_heel=True)
    standing = standing_height()
    clear = [Constraint(f"{name}_height", lambda s, name=name: s[f"{name}_y"], lower=-1e-4) for name in ("toe", "heel")]
    tucked = {name: [0.1 * SQUAT[name], 0.5 * SQUAT[name]] for name in JOINTS}
    flight = Phase(
        "air", air, (0.2, 1.2), nodes=air_nodes,
        start=dict.fromkeys(("toe_x", "toe_y", "toe_x_speed", "toe_y_speed"), 0.0),
        end={"toe_y": 0.0, "toe_y_speed": (-20.0, 0.0)}, path=[*torque_velocity_limits(), *clear],
        cost=_smoothness(air),
        guess=tucked | {"toe_y": [0.0, 0.3, 0.5, 0.3, 0.0], "foot_pitch": [-0.6, 0.0], "duration": 0.7},
    )  # fmt: skip
    landing = Phase(
        "land", land, (0.2, MAX_LANDING_TIME), nodes=land_nodes, end=dict.fromkeys((f"{n}_speed" for n in FREE), 0.0),
        path=[
            *torque_velocity_limits(),
            Constraint("ground_force", lambda s: s.toe_y_reaction / MAX_LANDING_FORCE, lower=0.0, upper=1.0),
        ],
        cost=_smoothness(land), guess={name: 0.5 * SQUAT[name] for name in JOINTS},
    )  # fmt: skip
    phases = [*ground_phases(heel_nodes, toe_nodes), flight, landing]
    links = [Link("heel", "toe"), Link("toe", "air"), Link("air", "land", FREE, impact_conditions())]
    return Problem(
        "jump and landing", phases, links, constraints=[_ground_time()],
        cost=lambda p: -OBJECTIVE_SCALE * (apex_height(p.toe.end) - standing),
    )  # fmt: skip


def constant_limit_jump(nodes: int = 21, elements: int = 1) -> Problem:
    """Return the stress test: constant torque limits, toe on the ground with a soft heel, from a static squat."""
    system = jumper_system("toe", soft_heel=True)
    start = static_start(system)
    standing = standing_height()
    phase = Phase(
        "push", system, (MIN_GROUND_TIME, MAX_GROUND_TIME), nodes=nodes, elements=elements, start=start,
        end={"toe_y_reaction": 0.0}, path=[ground_pushes()], cost={"torque_rate": _torque_rate(system)},
        final_cost=lambda s: -OBJECTIVE_SCALE * (apex_height(s) - standing),
        guess={name: [start[name], 0.2 * start[name]] for name in JOINTS} | {"duration": 0.4},
    )  # fmt: skip
    return Problem("jump with constant torque limits", [phase])


def impact_momentum() -> Any:
    """Return casadi.Function(q, change of speeds) -> change of generalized momentum of the free jumper."""
    tree = make_tree_dynamics(jumper_model(muscles=False))
    change = ca.SX.sym("change", len(tree.names))
    return ca.Function("momentum", [tree.q, change], [tree.mass_matrix() @ change])


def impact_conditions() -> list[Constraint]:
    """Return the conditions between air and landing: no impulse on the free coordinates, upward impulse on the toe."""
    momentum = impact_momentum()
    coordinates = (*ROOT[:2], *FREE)

    def change(before: Namespace, after: Namespace) -> Any:
        q = ca.vertcat(*(before[name] for name in coordinates))
        speeds = [after[f"{name}_speed"] if name in FREE else 0.0 for name in coordinates]
        return momentum(q, ca.vertcat(*speeds) - ca.vertcat(*(before[f"{name}_speed"] for name in coordinates)))

    free = [
        Constraint(f"{name}_impulse", lambda a, b, row=row: change(a, b)[row] / MOMENT_SCALE, 0.0, 0.0)
        for row, name in enumerate(coordinates)
        if name in FREE
    ]
    return [*free, Constraint("ground_impulse", lambda a, b: change(a, b)[1] / MOMENT_SCALE, lower=0.0)]


def _ground_time() -> Constraint:
    return Constraint("ground_time", lambda p: p.heel.duration + p.toe.duration, upper=MAX_GROUND_TIME)


def _torque_rate(system: System) -> Any:
    names = names_of(system.controls)
    return lambda s: TORQUE_RATE_WEIGHT * sum(s[f"{name}_rate"] ** 2 for name in names)


def _smoothness(system: System) -> dict[str, Any]:
    """Return the costs of torque rates and of joint accelerations."""
    weight = ACCELERATION_WEIGHT / (MAX_GROUND_TIME * len(JOINTS) * 100.0**2)

    def accelerations(s: Namespace) -> Any:
        return weight * sum(s[f"{name}_speed_rate"] ** 2 for name in JOINTS)

    return {"torque_rate": _torque_rate(system), "acceleration": accelerations}

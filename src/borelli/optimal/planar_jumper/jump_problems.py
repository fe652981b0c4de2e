"""Problems of maximum-height jumping from a squat: by muscles on the toe, and by torques over heel, toe, air, landing.

The height of a jump is that of the center of mass at its apex, y + vy^2 / 2g at take-off (Pandy, Zajac, Sim and Levine
1990). Ground phases end as the ground's force becomes zero, and last 0.6 s together at most: a longer limit allows a
countermovement, and a higher jump.
"""

from __future__ import annotations

from typing import Any

from borelli.optimal.namespace import Namespace
from borelli.optimal.planar_jumper.jumper_model import JOINTS, jumper_table
from borelli.optimal.planar_jumper.jumper_systems import (
    jumper_system,
    standing_height,
    static_start,
)
from borelli.optimal.problem import Constraint, Phase, Problem
from borelli.optimal.system import names_of

MAX_GROUND_TIME = 0.6
"""[s] longest push-off; a choice that is active in every solution."""
MIN_GROUND_TIME = 0.2
"""[s] shortest duration of the push-off on the toe."""
OBJECTIVE_SCALE = 10.0
"""Weight of the height: costs near 1 end a solver that compares them with forces of hundreds of newtons too early."""
FORCE_SCALE = 700.0
"""[N] about one body weight."""
EFFORT_WEIGHT = 1e-3
"""Weight of the time integral of squared excitations, worth 0.2 mm of height: without it excitations that do not matter
are undetermined, and the solver is slow to end."""
STRAIGHTENING = 0.8
"""Fraction of the squat that the first guess extends by the end."""


def apex_height(s: Namespace) -> Any:
    """Return the height [m] that the center of mass will reach without further contact."""
    return s.center_of_mass_y + s.center_of_mass_velocity_y**2 / (2.0 * jumper_table()["gravity"])


def ground_pushes() -> Constraint:
    """Return the constraint that the ground pushes the toe up."""
    return Constraint("ground_force", lambda s: s.toe_y_reaction / FORCE_SCALE, lower=0.0)


def straightening(start: dict[str, float], fraction: float = STRAIGHTENING) -> dict[str, Any]:
    """Return a guess that extends the joints of a start at constant speed, other states as at the start."""
    return start | {name: [start[name], (1.0 - fraction) * start[name]] for name in JOINTS}


def muscle_jump(*, nodes: int = 21, elements: int = 1, activation_time: float | None = None) -> Problem:
    """Return the jump by eight muscles, toe on the ground with a soft heel, from a static squat.

    Args:
        nodes: Control nodes.
        elements: Finite elements per interval between nodes.
        activation_time: Time constant of activation [s]. Default: 20 ms.
    """
    system = jumper_system("toe", muscles=True, soft_heel=True, activation_time=activation_time)
    start = static_start(system)
    standing = standing_height()
    excitations = names_of(system.controls)

    def effort(s: Namespace) -> Any:
        return EFFORT_WEIGHT * sum(s[name] ** 2 for name in excitations)

    phase = Phase(
        "push", system, (MIN_GROUND_TIME, MAX_GROUND_TIME), nodes=nodes, elements=elements, start=start,
        end={"toe_y_reaction": 0.0}, bounds=dict.fromkeys(excitations, (0.0, 1.0)),
        path=[ground_pushes()], cost={"effort": effort},
        final_cost=lambda s: -OBJECTIVE_SCALE * (apex_height(s) - standing),
        guess=straightening(start) | dict.fromkeys(excitations, 0.5) | {"duration": 0.4},
    )  # fmt: skip
    return Problem("muscle jump", [phase])

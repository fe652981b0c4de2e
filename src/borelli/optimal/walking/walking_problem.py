"""Half a gait cycle of a planar model as a problem: mirrored at its end, at a given speed, on smooth ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from borelli.analysis.ground.soles import default_soles
from borelli.errors import ModelError
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.optimal.problem import Constraint, Phase, Problem
from borelli.optimal.symbolic_dynamics.contact import SphereContact
from borelli.optimal.symbolic_dynamics.muscle_lengths import Ranges
from borelli.optimal.symbolic_dynamics.passive_forces import JointLimits
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.optimal.system import System

STEP = "step"
"""Name of the phase: from one foot's contact to that of the other."""
DURATIONS = (0.35, 0.8)
"""[s] of a step; normal ones are 0.5 to 0.6 s, so that the bounds are far."""
RANGES = {"hip": (-0.6, 1.0), "knee": (-1.4, 0.05), "ankle": (-0.6, 0.5), "lumbar": (-0.7, 0.5)}
"""[rad] of angles by the first word of their names, knees flexed when negative."""
ROOT_RANGES = {"tilt": (-0.5, 0.5), "tx": (-0.5, 2.0), "ty": (0.6, 1.3)}
"""[rad or m] of the root by the last word of its names."""
LIMITS = JointLimits(torque=2.0, steepness=20.0)
DAMPING = 1.0
"""[N m s/rad] of joints."""
ACCELERATION_WEIGHT = 1e-5
"""[s^4/rad^2] of squared accelerations of joints: smooth motions."""
TRUNK_WEIGHT, TRUNK_RATE_WEIGHT = 0.2, 0.02
"""[1/rad^2] and [s^2/rad^2] of the trunk's inclination and its rate: the head is held up."""
TORQUE_SIZE = 150.0
"""[N m] by which the effort of torques divides them."""
TRUNK_TORQUE = 100.0
"""[N m] by which the effort divides torques of joints without muscles."""


@dataclass(frozen=True)
class WalkingModel:
    """Planar model and the names of what walking needs."""

    model: Model
    tilt: str
    forward: str
    up: str
    joints: tuple[str, ...]
    trunk: tuple[str, ...]
    """Angles between root and trunk."""


def walking_model(model: Model) -> WalkingModel:
    """Return the roles of a planar model's coordinates.

    Raises:
        ModelError: The root has not one rotation and two translations, or a joint of the legs is missing.
    """
    root = root_coordinates(model)
    kinds = {c.name: c.rotational for c in model.coordinates}
    free = [c.name for c in model.coordinates if not c.locked and c.name not in {k.coordinate for k in model.couplings}]
    turns, moves = [n for n in root if kinds[n]], [n for n in root if not kinds[n]]
    joints = tuple(n for n in free if n not in root)
    legs = [f"{part}_{side}" for part in ("hip", "knee", "ankle") for side in "rl"]
    missing = [leg for leg in legs if not any(n.startswith(leg[:-2]) and n.endswith(leg[-2:]) for n in joints)]
    if len(turns) != 1 or len(moves) != 2 or missing:
        raise ModelError(
            f"Model {model.name!r}: Walking is predicted for planar models, whose root has one angle and two "
            f"displacements and whose legs have hip, knee and ankle angles with names that end in _r and _l; missing: "
            f"{', '.join(missing) or 'none'}. Use a model such as gait10dof18musc."
        )
    trunk = tuple(n for n in joints if not n.endswith(("_r", "_l")))
    return WalkingModel(model, turns[0], moves[0], moves[1], joints, trunk)


def foot_contacts(model: Model, stiffness: float, smoothing: float) -> tuple[SphereContact, ...]:
    """Return points under heel and ball of both feet."""
    soles = default_soles(model)
    found = []
    for side, foot in enumerate(("right", "left")):
        for part in ("heel", "ball"):
            rows = [i for i, n in enumerate(soles.names) if soles.foot[i] == side and part in n]
            place = tuple(float(x) for x in np.mean(soles.positions[rows], axis=0))
            found.append(
                SphereContact(f"{foot}_{part}", soles.bodies[rows[0]], place, stiffness=stiffness, smoothing=smoothing)  # type: ignore[arg-type]
            )
    return tuple(found)


def walking_ranges(walker: WalkingModel) -> dict[str, tuple[float, float]]:
    """Return the ranges [rad or m] of all coordinates."""
    ranges = {n: next((r for key, r in RANGES.items() if n.startswith(key)), (-0.7, 0.7)) for n in walker.joints}
    roles = {"tilt": walker.tilt, "tx": walker.forward, "ty": walker.up}
    return ranges | {name: ROOT_RANGES[key] for key, name in roles.items()}


def walking_system(
    walker: WalkingModel, contacts: Sequence[SphereContact], tendon: str | None, ranges: Ranges | None = None
) -> System:
    """Return the system of a walking model: torques, or muscles and torques of the trunk."""
    torques = walker.trunk if tendon else walker.joints
    return tree_system(
        walker.model, tendon=tendon, actuators=dict.fromkeys(torques, 2.0 * TORQUE_SIZE), contacts=contacts,
        limits=LIMITS, damping=DAMPING, ranges=walking_ranges(walker) | dict(ranges or {}),
    )  # fmt: skip


def mirrored(name: str) -> str:
    """Return the name of the same quantity of the other side."""
    for ending in ("", "_speed", "_activation", "_tendon_force"):
        for side, other in (("_r", "_l"), ("_l", "_r")):
            if name.endswith(side + ending):
                return name.removesuffix(side + ending) + other + ending
    return name


def walking_problem(
    walker: WalkingModel,
    system: System,
    *,
    speed: float,
    nodes: int,
    guess: dict[str, Any] | None = None,
) -> Problem:
    """Return the problem of a step: least effort for its distance at an average speed, mirrored at its end."""
    forward = identifier(walker.forward)
    periodic = {v.name: mirrored(v.name) for v in system.states if v.name != forward}
    phase = Phase(
        STEP, system, DURATIONS, nodes=nodes, start={forward: 0.0}, periodic=periodic,
        integrals={"cost": walking_cost(walker, system)}, guess=guess or {},
    )  # fmt: skip
    return Problem(
        f"walk at {speed:g} m/s",
        [phase],
        constraints=[Constraint("speed", lambda p: p[STEP].end[forward] - speed * p[STEP].duration, 0.0, 0.0)],
        cost=lambda p: p[STEP].integrals.cost / (speed * p[STEP].duration),
    )


def walking_cost(walker: WalkingModel, system: System) -> Callable[..., Any]:
    """Return the integrand: effort, accelerations and inclination of the trunk."""
    activations = [v.name for v in system.states if v.name.endswith("_activation")]
    excitations = [v.name for v in system.controls if v.name.endswith("_excitation")]
    torques = [v.name for v in system.controls if v.name.endswith("_torque")]
    size = TRUNK_TORQUE if excitations else TORQUE_SIZE
    joints = [identifier(n) for n in walker.joints]
    leaning = [identifier(n) for n in (walker.tilt, *walker.trunk)]

    def cost(s: Any) -> Any:
        effort = sum(s[n] ** 2 for n in activations) + 0.1 * sum(s[n] ** 2 for n in excitations)
        effort = effort + sum((s[n] / size) ** 2 for n in torques)
        smooth = ACCELERATION_WEIGHT * sum(s[f"{n}_speed_rate"] ** 2 for n in joints)
        lean, rate = sum(s[n] for n in leaning), sum(s[f"{n}_speed"] for n in leaning)
        return effort + smooth + TRUNK_WEIGHT * lean**2 + TRUNK_RATE_WEIGHT * rate**2

    return cost


def scissor_guess(walker: WalkingModel, speed: float) -> dict[str, Any]:
    """Return two legs that exchange their positions linearly, with a swing knee that flexes: a rough first motion."""
    t, duration = np.linspace(0.0, 1.0, 21), 0.5
    guess: dict[str, Any] = {
        "duration": duration,
        identifier(walker.forward): speed * duration * t,
        f"{identifier(walker.forward)}_speed": speed,
        identifier(walker.up): 0.93,
    }
    for name in walker.joints:
        key = identifier(name)
        if name.startswith("hip"):
            sign = 1.0 if name.endswith("_r") else -1.0
            guess |= {key: 0.05 + sign * (0.35 - 0.7 * t), f"{key}_speed": -sign * 0.7 / duration}
        elif name.startswith("knee"):
            bend = 0.0 if name.endswith("_r") else 0.9
            guess |= {
                key: -0.1 - bend * np.sin(np.pi * t), f"{key}_speed": -bend * np.pi / duration * np.cos(np.pi * t),
            }  # fmt: skip
    return guess

"""Motions for the full skeleton to follow, as targets of every angle that has stops: what nothing drives stays free.

Two are key-framed, at rest at every key with the least jerk between them; three are functions of time. All keep clear
of the stops. They say nothing of the root: a body that is not held stands or falls by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, pi

import numpy as np
from numpy.typing import NDArray

from borelli.control.targets import Targets, keyframes
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.model.transforms import orientation_matrix

Array = NDArray[np.float64]
Angles = dict[str, float]

FINGERS = ("thumb", "index", "middle", "ring", "little")
FIST = {
    "thumb": {"cmc_flexion": 0.2, "cmc_abduction": 0.3, "mcp_flexion": 0.6, "ip_flexion": 0.7},
    **{
        finger: {"mcp_flexion": 1.4, "pip_flexion": 1.6, "dip_flexion": 0.9}
        for finger in ("index", "middle", "ring", "little")
    },
}
"""How far fingers are bent in a fist [rad]."""
STEP_TIME = 1.2
"""Of two steps in place [s]."""
CURL_TIME = 4.0
"""To curl up and stretch again [s]."""
PUSH_UP_TIME = 2.0
"""Down and up [s]."""


def wave(model: Model) -> Targets:
    """Lifts the right arm to the side, waves three times with spread fingers, and lets it hang again: 5 s."""
    up = {
        "shoulder_adduction_r": -1.35, "shoulder_rotation_r": -1.35, "elbow_flexion_r": 1.5,
        "clavicle_elevation_r": 0.2, "C1_C2_rotation": -0.3, "jaw_opening": 0.1,
    }  # fmt: skip
    up |= {f"{finger}_mcp_abduction_r": 0.25 for finger in ("index", "ring", "little")}
    out, back = up | {"elbow_flexion_r": 1.0, "wrist_deviation_r": -0.3}, up | {"elbow_flexion_r": 2.0}
    return _keys(model, [0.0, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0, 3.4, 4.6, 5.0], [{}, up, *[out, back] * 3, {}, {}])


def count_fingers(model: Model) -> Targets:
    """Makes a fist before the right shoulder and counts to five, a finger each second: 7 s.

    At k + 1 seconds, k fingers are stretched, the thumb first.
    """
    lifted = {"shoulder_flexion_r": 0.9, "elbow_flexion_r": 2.0, "elbow_pronation_r": 0.3}
    shown = [lifted | _bent(FINGERS[count:], "r") for count in range(6)]
    return _keys(model, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [{}, *shown, {}])


def march(model: Model) -> Targets:
    """Walks in place without end, a step of either leg in `STEP_TIME`, arms against legs."""

    def angles(time: Array) -> Mapping[str, Array]:
        phase = 2.0 * pi * time / STEP_TIME
        turn = np.sin(phase)
        found = {"T4_T5_rotation": 0.12 * turn, "T8_T9_rotation": 0.08 * turn, "C1_C2_rotation": -0.15 * turn}
        for side, shift in (("r", 0.0), ("l", pi)):
            lift = (0.5 - 0.5 * np.cos(phase + shift)) ** 2
            swing = np.sin(phase + shift - 0.5 * pi)
            found |= {
                f"hip_flexion_{side}": 0.9 * lift, f"knee_flexion_{side}": 0.05 + 1.3 * lift,
                f"ankle_flexion_{side}": 0.2 * lift, f"toe_1_extension_{side}": 0.2 * lift,
                f"shoulder_flexion_{side}": 0.05 - 0.4 * swing, f"shoulder_adduction_{side}": np.full_like(time, -0.12),
                f"elbow_flexion_{side}": 0.8 - 0.3 * swing,
            }  # fmt: skip
        return found

    return _course(model, angles)


def curl(model: Model) -> Targets:
    """Curls up, vertebra by vertebra, and stretches again, without end, in `CURL_TIME`; hands close, toes bend."""
    bent = {c.name: 0.8 * c.upper for c in model.coordinates if _of_spine(c.name) and c.name.endswith("_flexion")}
    for side in ("r", "l"):
        bent |= {
            f"hip_flexion_{side}": 1.9, f"knee_flexion_{side}": 2.2, f"ankle_flexion_{side}": -0.4,
            f"shoulder_flexion_{side}": 0.9, f"elbow_flexion_{side}": 2.2, f"wrist_flexion_{side}": 0.5,
        }  # fmt: skip
        bent |= _bent(FINGERS, side) | {f"toe_{k}_extension_{side}": -0.5 for k in range(1, 6)}

    def angles(time: Array) -> Mapping[str, Array]:
        share = 0.5 - 0.5 * np.cos(2.0 * pi * time / CURL_TIME)
        return {name: angle * share for name, angle in bent.items()}

    return _course(model, angles)


def push_up(model: Model) -> Targets:
    """Push-ups without end, in `PUSH_UP_TIME` each: what the joints do. `push_up_start` lays the body on its hands."""

    def angles(time: Array) -> Mapping[str, Array]:
        down = 0.5 - 0.5 * np.cos(2.0 * pi * time / PUSH_UP_TIME)
        found: dict[str, Array] = {"C0_C1_flexion": np.full_like(time, -0.2)}
        for side in ("r", "l"):
            # upper arms swing back as elbows bend, so that forearms stay upright; toes carry
            found |= {
                f"shoulder_flexion_{side}": 1.45 - 1.35 * down, f"elbow_flexion_{side}": 0.05 + 1.5 * down,
                f"wrist_flexion_{side}": np.full_like(time, -1.15), f"elbow_pronation_{side}": np.full_like(time, 1.3),
                f"ankle_flexion_{side}": np.full_like(time, 0.1),
            }  # fmt: skip
            found |= {f"toe_{k}_extension_{side}": np.full_like(time, 1.1 if k == 1 else 0.65) for k in range(1, 6)}
        return found

    return _course(model, angles)


def push_up_start(model: Model) -> Angles:
    """Where all coordinates are as a push-up begins: face down, hands and toes on the ground, which is level z = 0."""
    from scipy.optimize import brentq

    targets = push_up(model)
    start = dict(zip(targets.coordinates, targets.at(0.0).tolist(), strict=True)) | {"root_x": 0.0, "root_y": 0.0}

    def lowest(pitch: float, bodies: Sequence[str]) -> float:
        row = np.array(
            [[(start | {"root_pitch": pitch, "root_z": 0.0}).get(c.name, c.default) for c in model.coordinates]]
        )
        position, rotation = poses(model, row)
        index = {body.name: i for i, body in enumerate(model.bodies)}
        return min(_depth(model, name, position[0, index[name]], rotation[0, index[name]]) for name in bodies)

    hands = ["hand_r", *(f"{finger}_distal_r" for finger in FINGERS)]
    feet = [f"toe_{k}_r" for k in range(2, 6)] + ["toe_1_r", "toe_1_distal_r"]
    pitch = float(brentq(lambda angle: lowest(angle, hands) - lowest(angle, feet), 0.9, 1.57, xtol=1e-12))
    return start | {"root_pitch": pitch, "root_z": -lowest(pitch, hands)}


MOTIONS: dict[str, Callable[[Model], Targets]] = {
    make.__name__: make for make in (wave, count_fingers, march, curl, push_up)
}


def _depth(model: Model, name: str, position: Array, rotation: Array) -> float:
    """Height of the lowest point of a body's capsules and balls [m]."""
    heights = [inf]
    for shape in model.body(name).shapes:
        radius, half = (*shape.size, 0.0)[:2]
        axis = orientation_matrix(shape.frame.orientation)[:, 2]
        middle = position + rotation @ np.array(shape.frame.position)
        heights.append(float(middle[2] - half * abs((rotation @ axis)[2]) - radius))
    return min(heights)


def _of_spine(name: str) -> bool:
    return name[0] in "LTC" and name[1].isdigit()


def _bent(fingers: Sequence[str], side: str) -> Angles:
    return {f"{finger}_{angle}_{side}": bent for finger in fingers for angle, bent in FIST[finger].items()}


def _held(model: Model) -> list[str]:
    """The coordinates that have stops on both sides: those of the body, not of its root or of what it swings."""
    return [c.name for c in model.coordinates if isfinite(c.lower) and isfinite(c.upper)]


def _check(model: Model, names: Sequence[str], wanted: Mapping[str, object]) -> None:
    for name in wanted:
        if name not in names:
            raise SettingsError(
                f"model {model.name!r} is no full skeleton, for which motions are made: "
                f"{unknown_name('coordinate', name, names)}"
            )


def _keys(model: Model, times: Sequence[float], shown: Sequence[Angles]) -> Targets:
    """Key-framed targets: angles that a key does not name are at their defaults."""
    names = _held(model)
    for pose in shown:
        _check(model, names, pose)
    rest = {c.name: c.default for c in model.coordinates}
    values = {name: [pose.get(name, rest[name]) for pose in shown] for name in names}
    return keyframes(model, times, values, "minimum jerk")


def _course(model: Model, angles: Callable[[Array], Mapping[str, Array]]) -> Targets:
    """Targets that are functions of time; angles that it does not name are at their defaults."""
    names = _held(model)
    _check(model, names, angles(np.zeros(1)))
    rest = np.array([c.default for c in model.coordinates if c.name in set(names)])
    place = {name: column for column, name in enumerate(names)}

    def curve(times: Array) -> Array:
        table = np.repeat(rest[None], len(times), axis=0)
        for name, values in angles(times).items():
            table[:, place[name]] = values
        return table

    return Targets(model, tuple(names), curve)

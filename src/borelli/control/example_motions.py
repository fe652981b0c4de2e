"""Example motions of the full skeleton, as targets of every angle with limits; other coordinates stay free.

Two are key-framed, at rest at every key with minimum jerk between them; three are functions of time. All stay within
the joint limits. None has a target of the root, so a body that is not supported may fall.
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
"""Finger angles of a fist [rad]."""
STEP_TIME = 1.2
"""Duration of two steps in place [s]."""
CURL_TIME = 4.0
"""Duration of curling up and stretching again [s]."""
PUSH_UP_TIME = 2.0
"""Duration of one push-up [s]."""


def wave(model: Model) -> Targets:
    """Raise the right arm to the side, wave three times with spread fingers, and lower it again: 5 s."""
    up = {
        "shoulder_adduction_r": -1.35, "shoulder_rotation_r": -1.35, "elbow_flexion_r": 1.5,
        "clavicle_elevation_r": 0.2, "C1_C2_rotation": -0.3, "jaw_opening": 0.1,
    }  # fmt: skip
    up |= {f"{finger}_mcp_abduction_r": 0.25 for finger in ("index", "ring", "little")}
    out, back = up | {"elbow_flexion_r": 1.0, "wrist_deviation_r": -0.3}, up | {"elbow_flexion_r": 2.0}
    keys = [{}, up, *[out, back] * 3, {}, {}]
    return _keyframe_targets(model, [0.0, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0, 3.4, 4.6, 5.0], keys)


def count_fingers(model: Model) -> Targets:
    """Make a fist in front of the right shoulder and count to five, a finger each second: 7 s.

    At k + 1 seconds, k fingers are extended, the thumb first.
    """
    lifted = {"shoulder_flexion_r": 0.9, "elbow_flexion_r": 2.0, "elbow_pronation_r": 0.3}
    keys = [lifted | _bent(FINGERS[count:], "r") for count in range(6)]
    return _keyframe_targets(model, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [{}, *keys, {}])


def march(model: Model) -> Targets:
    """Walk in place forever, one step of either leg in `STEP_TIME`, arms opposite to legs."""

    def angles(time: Array) -> Mapping[str, Array]:
        phase = 2.0 * pi * time / STEP_TIME
        sway = np.sin(phase)
        values = {"T4_T5_rotation": 0.12 * sway, "T8_T9_rotation": 0.08 * sway, "C1_C2_rotation": -0.15 * sway}
        for side, shift in (("r", 0.0), ("l", pi)):
            lift = (0.5 - 0.5 * np.cos(phase + shift)) ** 2
            swing = np.sin(phase + shift - 0.5 * pi)
            values |= {
                f"hip_flexion_{side}": 0.9 * lift, f"knee_flexion_{side}": 0.05 + 1.3 * lift,
                f"ankle_flexion_{side}": 0.2 * lift, f"toe_1_extension_{side}": 0.2 * lift,
                f"shoulder_flexion_{side}": 0.05 - 0.4 * swing, f"shoulder_adduction_{side}": np.full_like(time, -0.12),
                f"elbow_flexion_{side}": 0.8 - 0.3 * swing,
            }  # fmt: skip
        return values

    return _function_targets(model, angles)


def curl(model: Model) -> Targets:
    """Curl up, vertebra by vertebra, and stretch again, forever, in `CURL_TIME`; hands close, toes flex."""
    bent = {c.name: 0.8 * c.upper for c in model.coordinates if _of_spine(c.name) and c.name.endswith("_flexion")}
    for side in ("r", "l"):
        bent |= {
            f"hip_flexion_{side}": 1.9, f"knee_flexion_{side}": 2.2, f"ankle_flexion_{side}": -0.4,
            f"shoulder_flexion_{side}": 0.9, f"elbow_flexion_{side}": 2.2, f"wrist_flexion_{side}": 0.5,
        }  # fmt: skip
        bent |= _bent(FINGERS, side) | {f"toe_{k}_extension_{side}": -0.5 for k in range(1, 6)}

    def angles(time: Array) -> Mapping[str, Array]:
        fraction = 0.5 - 0.5 * np.cos(2.0 * pi * time / CURL_TIME)
        return {name: angle * fraction for name, angle in bent.items()}

    return _function_targets(model, angles)


def push_up(model: Model) -> Targets:
    """Do push-ups forever, one in `PUSH_UP_TIME`: joint angles only. `push_up_start` gives the initial pose."""

    def angles(time: Array) -> Mapping[str, Array]:
        down = 0.5 - 0.5 * np.cos(2.0 * pi * time / PUSH_UP_TIME)
        values: dict[str, Array] = {"C0_C1_flexion": np.full_like(time, -0.2)}
        for side in ("r", "l"):
            # upper arms swing back as elbows bend, so that forearms stay upright; toes bear load
            values |= {
                f"shoulder_flexion_{side}": 1.45 - 1.35 * down, f"elbow_flexion_{side}": 0.05 + 1.5 * down,
                f"wrist_flexion_{side}": np.full_like(time, -1.15), f"elbow_pronation_{side}": np.full_like(time, 1.3),
                f"ankle_flexion_{side}": np.full_like(time, 0.1),
            }  # fmt: skip
            values |= {f"toe_{k}_extension_{side}": np.full_like(time, 1.1 if k == 1 else 0.65) for k in range(1, 6)}
        return values

    return _function_targets(model, angles)


def push_up_start(model: Model) -> Angles:
    """Return the coordinates at the start of a push-up: face down, hands and toes on the ground, level z = 0."""
    from scipy.optimize import brentq

    targets = push_up(model)
    start = dict(zip(targets.coordinates, targets.at(0.0).tolist(), strict=True)) | {"root_x": 0.0, "root_y": 0.0}

    def lowest(pitch: float, bodies: Sequence[str]) -> float:
        row = np.array(
            [[(start | {"root_pitch": pitch, "root_z": 0.0}).get(c.name, c.default) for c in model.coordinates]]
        )
        position, rotation = poses(model, row)
        index = {body.name: i for i, body in enumerate(model.bodies)}
        return min(_lowest_height(model, name, position[0, index[name]], rotation[0, index[name]]) for name in bodies)

    hands = ["hand_r", *(f"{finger}_distal_r" for finger in FINGERS)]
    feet = [f"toe_{k}_r" for k in range(2, 6)] + ["toe_1_r", "toe_1_distal_r"]
    pitch = float(brentq(lambda angle: lowest(angle, hands) - lowest(angle, feet), 0.9, 1.57, xtol=1e-12))
    return start | {"root_pitch": pitch, "root_z": -lowest(pitch, hands)}


MOTIONS: dict[str, Callable[[Model], Targets]] = {
    make.__name__: make for make in (wave, count_fingers, march, curl, push_up)
}


def _lowest_height(model: Model, name: str, position: Array, rotation: Array) -> float:
    """Return the height of the lowest point of a body's capsules and spheres [m]."""
    heights = [inf]
    for shape in model.body(name).shapes:
        radius, half = (*shape.size, 0.0)[:2]
        axis = orientation_matrix(shape.frame.orientation)[:, 2]
        center = position + rotation @ np.array(shape.frame.position)
        heights.append(float(center[2] - half * abs((rotation @ axis)[2]) - radius))
    return min(heights)


def _of_spine(name: str) -> bool:
    return name[0] in "LTC" and name[1].isdigit()


def _bent(fingers: Sequence[str], side: str) -> Angles:
    return {f"{finger}_{angle}_{side}": bent for finger in fingers for angle, bent in FIST[finger].items()}


def _limited(model: Model) -> list[str]:
    """Return the coordinates with limits on both sides: those of the body, without its root and carried objects."""
    return [c.name for c in model.coordinates if isfinite(c.lower) and isfinite(c.upper)]


def _check(model: Model, names: Sequence[str], angles: Mapping[str, object]) -> None:
    for name in angles:
        if name not in names:
            raise SettingsError(
                f"model {model.name!r}: This motion needs a full skeleton: {unknown_name('coordinate', name, names)}"
            )


def _keyframe_targets(model: Model, times: Sequence[float], keys: Sequence[Angles]) -> Targets:
    """Return key-framed targets; angles that a key does not name are at their defaults."""
    names = _limited(model)
    for pose in keys:
        _check(model, names, pose)
    rest = {c.name: c.default for c in model.coordinates}
    values = {name: [pose.get(name, rest[name]) for pose in keys] for name in names}
    return keyframes(model, times, values, "minimum jerk")


def _function_targets(model: Model, angles: Callable[[Array], Mapping[str, Array]]) -> Targets:
    """Return targets that are functions of time; angles that they do not name are at their defaults."""
    names = _limited(model)
    _check(model, names, angles(np.zeros(1)))
    rest = np.array([c.default for c in model.coordinates if c.name in set(names)])
    columns = {name: column for column, name in enumerate(names)}

    def curve(times: Array) -> Array:
        table = np.repeat(rest[None], len(times), axis=0)
        for name, values in angles(times).items():
            table[:, columns[name]] = values
        return table

    return Targets(model, tuple(names), curve)

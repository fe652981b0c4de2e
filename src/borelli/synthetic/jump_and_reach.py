"""A jump and a reach, from key moments joined with least jerk; both feet stay where they stand.

The jump's centre of mass is given: down, up with an acceleration that ends at that of gravity, a parabola, and down and
up again; knees and trunk are found so that it is there. The reach bends hips, knees and trunk and lifts an arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.synthetic.curves import least_jerk

Array = NDArray[np.float64]

GRAVITY = 9.81
MOST_ITERATIONS = 40
LEAN = 0.45
"""How far a shank leans forward for each angle its knee bends."""
PUSH = 0.95
"""When the feet leave the ground [s]."""
TAKEOFF_SPEED = 2.1
"""[m/s]: a jump of 22 cm."""
FLIGHT = 2.0 * TAKEOFF_SPEED / GRAVITY
LANDED = PUSH + FLIGHT
JUMP_DURATION = LANDED + 1.25
REACH_DURATION = 3.0
KNEE_STANDS = 0.2
"""Knee flexion while it stands [rad]."""
OVER, OVER_TOES = 0.05, 0.10
"""How far ahead of the ankles [m] the centre of mass is, on flat feet and on the toes."""
KNEE_OFF = np.radians(35.0)
"""Knee flexion as the feet leave the ground and as they touch it."""
HEEL_OFF, HEEL_SPEED = np.radians(30.0), 5.0
"""Pitch of the feet, heel up, and its speed [rad/s] at these moments."""


def jump_coordinates(model: Model, time: Array) -> Array:
    """The coordinates (frames, coordinates) of a human that jumps up from both feet, arms swinging.

    Args:
        model: One made by `human()`.
        time: (frames,) [s].
    """
    t = np.asarray(time, float)
    heel = least_jerk([
        (PUSH - 0.22, 0.0), (PUSH, HEEL_OFF, HEEL_SPEED, 0.0), (PUSH + 0.5 * FLIGHT, HEEL_OFF + 0.3),
        (LANDED, HEEL_OFF, -HEEL_SPEED, 0.0), (LANDED + 0.16, 0.0),
    ], t)  # fmt: skip
    arms = least_jerk([(0.3, 0.1), (0.7, -0.6), (PUSH + 0.15, 2.0), (LANDED + 0.35, 0.7), (LANDED + 0.95, 0.1)], t)
    ahead = least_jerk([(0.1, OVER), (PUSH, OVER_TOES), (LANDED, OVER_TOES), (LANDED + 0.9, OVER)], t)
    flying = (t > PUSH) & (t < LANDED)
    leave, touch = int(np.flatnonzero(t <= PUSH)[-1]), int(np.flatnonzero(t >= LANDED)[0])

    def height_at(frame: int, knee: float) -> float:
        at = slice(frame, frame + 1)
        some = Stance(model, heel[at], arms[at])
        bent = np.full(1, knee)
        return float(some.place(bent, balanced(some, bent, ahead[at]))[1][0, 2])

    height = _jump_height(t, height_at(0, KNEE_STANDS), height_at(leave, KNEE_OFF), height_at(touch, KNEE_OFF))
    stance = Stance(model, heel, arms)
    knee, pitch = _found(stance, height, ahead, ~flying)
    # in the air, legs stretch and stay so, until they come to meet the ground
    for values, straight in ((knee, 0.1), (pitch, 0.05)):
        ends = [_end(t, values, leave, -1), (PUSH + 0.1, straight), (LANDED - 0.1, straight), _end(t, values, touch, 1)]
        values[flying] = least_jerk(ends, t[flying])
    q, center = stance.place(knee, pitch)
    q[flying, 0] += ahead[flying] - center[flying, 0]
    q[flying, 2] += height[flying] - center[flying, 2]
    return q


def reach_coordinates(model: Model, time: Array) -> Array:
    """The coordinates (frames, coordinates) of a human that reaches forward with its right hand, and back."""
    t = np.asarray(time, float)
    go = least_jerk([(0.5, 0.0), (1.4, 1.0), (1.7, 1.0), (2.6, 0.0)], t)
    hand = least_jerk([(0.55, 0.0), (1.3, 1.0), (1.75, 1.0), (2.5, 0.0)], t)
    others = {
        "sacral_flexion": 0.30 * go, "lumbar_flexion": 0.30 * go, "lumbar_rotation": 0.30 * go,
        "neck_flexion": -0.2 * go, "head_flexion": -0.3 * go,
        "clavicle_protraction_r": 0.15 * hand, "shoulder_flexion_r": 0.1 + 1.35 * hand,
        "shoulder_adduction_r": -0.12 + 0.1 * hand, "elbow_flexion_r": 0.35 + 0.9 * hand * (1.0 - hand) - 0.2 * hand,
    }  # fmt: skip
    stance = Stance(model, np.zeros(len(t)), 0.1 - 0.25 * go, others)
    knee = KNEE_STANDS + 0.25 * go
    return stance.place(knee, balanced(stance, knee, OVER + 0.02 * go))[0]


class Stance(NamedTuple):
    """A human whose toes stay where they stand: what is given in each frame, knees and pelvis left open.

    Attributes:
        model: The human.
        heel: Pitch of both feet about their balls, heel up [rad].
        shoulder: Flexion of both arms [rad].
        others: Coordinates that are given besides [rad], by name.
    """

    model: Model
    heel: Array
    shoulder: Array
    others: Mapping[str, Array] = MappingProxyType({})

    def place(self, knee: Array, pitch: Array) -> tuple[Array, Array]:
        """Coordinates (frames, coordinates), and the centre of mass (frames, 3) [m], of knees and pelvis bent so."""
        lean = LEAN * knee  # of the shanks
        both = {
            "knee_flexion": knee, "ankle_flexion": lean - self.heel, "toe_extension": self.heel,
            "hip_flexion": pitch - lean + knee, "shoulder_flexion": self.shoulder,
            "shoulder_adduction": np.full_like(knee, -0.12), "elbow_flexion": np.full_like(knee, 0.35),
        }  # fmt: skip
        values = {f"{name}_{side}": series for name, series in both.items() for side in "lr"}
        values |= {"root_pitch": pitch, **self.others}
        column = {c.name: i for i, c in enumerate(self.model.coordinates)}
        q = np.zeros((len(knee), len(column)))
        for name, series in values.items():
            q[:, column[name]] = series
        bodies = self.model.bodies
        place, turn = poses(self.model, q)
        shift = np.array(self.model.body("toes_r").frame.position) - place[:, [b.name for b in bodies].index("toes_r")]
        shift[:, 1] = 0.0
        q[:, :3] += shift
        masses = np.array([body.mass for body in bodies])
        middles = place + np.einsum("fbij,bj->fbi", turn, [body.center_of_mass for body in bodies])
        return q, np.einsum("b,fbi->fi", masses, middles) / masses.sum() + shift


def balanced(stance: Stance, knee: Array, ahead: Array) -> Array:
    """The pitch of the pelvis [rad] with which the centre of mass is so far ahead [m] of the ankles, knees given."""
    pitch = np.full(len(knee), 0.2)
    for _ in range(MOST_ITERATIONS):
        miss = stance.place(knee, pitch)[1][:, 0] - ahead
        slope = (stance.place(knee, pitch + 1e-6)[1][:, 0] - ahead - miss) / 1e-6
        change = np.clip(miss / slope, -0.3, 0.3)
        pitch -= change
        if np.abs(change).max() < 1e-9:
            break
    return pitch


def _found(stance: Stance, height: Array, ahead: Array, wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Knee flexion and pelvis's pitch [rad] with which the centre of mass is so high and so far ahead [m]."""
    x = np.stack([np.full(len(height), 0.8), np.full(len(height), 0.5)], axis=1)
    target = np.stack([height, ahead], axis=1)

    def miss(values: Array) -> Array:
        return stance.place(values[:, 0], values[:, 1])[1][:, [2, 0]] - target

    for _ in range(MOST_ITERATIONS):
        here = miss(x)
        slopes = np.stack([(miss(x + 1e-6 * unit) - here) / 1e-6 for unit in np.eye(2)], axis=-1)
        change = np.linalg.solve(slopes, here[..., None])[..., 0]
        x -= np.clip(change, -0.2, 0.2)
        x[:, 0] = np.maximum(x[:, 0], 0.03)  # beyond, the knee would bend the other way
        if np.abs(change[wanted]).max() < 1e-9:
            break
    return x[:, 0].copy(), x[:, 1].copy()


def _jump_height(t: Array, stand: float, leave: float, touch: float) -> Array:
    """Height of the centre of mass [m]: the ground lets it go, and catches it, at these heights."""
    speed = (touch - leave) / FLIGHT + 0.5 * GRAVITY * FLIGHT
    parabola = leave + speed * (t - PUSH) - 0.5 * GRAVITY * (t - PUSH) ** 2
    low, deep = stand - 0.26, stand - 0.20
    before = least_jerk([(0.2, stand), (0.66, low, 0.0, 8.0), (PUSH, leave, speed, -GRAVITY)], t)
    after = least_jerk([
        (LANDED, touch, speed - GRAVITY * FLIGHT, -GRAVITY), (LANDED + 0.26, deep, 0.0, 5.0), (LANDED + 1.0, stand),
    ], t)  # fmt: skip
    return np.where(t <= PUSH, before, np.where(t < LANDED, parabola, after))


def _end(t: Array, values: Array, at: int, way: int) -> tuple[float, float, float, float]:
    """Time, value and speed at a sample, from it and the three beyond it; and no acceleration."""
    step = t[1] - t[0]
    v = values[[at, at + way, at + 2 * way, at + 3 * way]]
    speed = way * (-11.0 * v[0] + 18.0 * v[1] - 9.0 * v[2] + 2.0 * v[3]) / (6.0 * step)
    return float(t[at]), float(v[0]), float(speed), 0.0

"""A jump and a reach, from key moments joined with minimum jerk; both feet stay on their spots.

The jump's center of mass is given: down, up with an acceleration that ends at that of gravity, a parabola, and down and
up again; knees and trunk follow from it. The reach bends hips, knees and trunk and lifts an arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.synthetic.curves import minimum_jerk

Array = NDArray[np.float64]

GRAVITY = 9.81
MAX_ITERATIONS = 40
SHANK_LEAN = 0.45
"""Forward lean of a shank per knee flexion."""
TAKEOFF = 0.95
"""Time at which the feet leave the ground [s]."""
TAKEOFF_SPEED = 2.1
"""[m/s]: a jump of 22 cm."""
FLIGHT = 2.0 * TAKEOFF_SPEED / GRAVITY
LANDING = TAKEOFF + FLIGHT
JUMP_DURATION = LANDING + 1.25
REACH_DURATION = 3.0
STANDING_KNEE = 0.2
"""Knee flexion in standing [rad]."""
COM_AHEAD, COM_AHEAD_ON_TOES = 0.05, 0.10
"""Distance of the center of mass in front of the ankles [m], on flat feet and on the toes."""
TAKEOFF_KNEE = np.radians(35.0)
"""Knee flexion at takeoff and landing [rad]."""
HEEL_PITCH, HEEL_PITCH_RATE = np.radians(30.0), 5.0
"""Pitch of the feet, heel up [rad], and its rate [rad/s] at these moments."""


def jump_coordinates(model: Model, time: Array) -> Array:
    """Return the coordinates (frames, coordinates) of a human that jumps from both feet, arms swinging."""
    t = np.asarray(time, float)
    heel = minimum_jerk([
        (TAKEOFF - 0.22, 0.0), (TAKEOFF, HEEL_PITCH, HEEL_PITCH_RATE, 0.0), (TAKEOFF + 0.5 * FLIGHT, HEEL_PITCH + 0.3),
        (LANDING, HEEL_PITCH, -HEEL_PITCH_RATE, 0.0), (LANDING + 0.16, 0.0),
    ], t)  # fmt: skip
    arms = minimum_jerk(
        [(0.3, 0.1), (0.7, -0.6), (TAKEOFF + 0.15, 2.0), (LANDING + 0.35, 0.7), (LANDING + 0.95, 0.1)], t
    )
    ahead = minimum_jerk(
        [(0.1, COM_AHEAD), (TAKEOFF, COM_AHEAD_ON_TOES), (LANDING, COM_AHEAD_ON_TOES), (LANDING + 0.9, COM_AHEAD)], t
    )
    flying = (t > TAKEOFF) & (t < LANDING)
    takeoff, landing = int(np.flatnonzero(t <= TAKEOFF)[-1]), int(np.flatnonzero(t >= LANDING)[0])

    def height_at(frame: int, knee: float) -> float:
        at = slice(frame, frame + 1)
        some = Stance(model, heel[at], arms[at])
        bent = np.full(1, knee)
        return float(some.pose(bent, balancing_pitch(some, bent, ahead[at]))[1][0, 2])

    height = _jump_height(
        t, height_at(0, STANDING_KNEE), height_at(takeoff, TAKEOFF_KNEE), height_at(landing, TAKEOFF_KNEE)
    )
    stance = Stance(model, heel, arms)
    knee, pitch = _solve_legs(stance, height, ahead, ~flying)
    # in flight, legs extend and stay so, until they approach the ground
    for values, straight in ((knee, 0.1), (pitch, 0.05)):
        first, last = _end(t, values, takeoff, -1), _end(t, values, landing, 1)
        knots = [first, (TAKEOFF + 0.1, straight), (LANDING - 0.1, straight), last]
        values[flying] = minimum_jerk(knots, t[flying])
    q, center = stance.pose(knee, pitch)
    q[flying, 0] += ahead[flying] - center[flying, 0]
    q[flying, 2] += height[flying] - center[flying, 2]
    return q


def reach_coordinates(model: Model, time: Array) -> Array:
    """Return the coordinates (frames, coordinates) of a human that reaches forward with the right hand, and back."""
    t = np.asarray(time, float)
    go = minimum_jerk([(0.5, 0.0), (1.4, 1.0), (1.7, 1.0), (2.6, 0.0)], t)
    hand = minimum_jerk([(0.55, 0.0), (1.3, 1.0), (1.75, 1.0), (2.5, 0.0)], t)
    others = {
        "sacral_flexion": 0.30 * go, "lumbar_flexion": 0.30 * go, "lumbar_rotation": 0.30 * go,
        "neck_flexion": -0.2 * go, "head_flexion": -0.3 * go,
        "clavicle_protraction_r": 0.15 * hand, "shoulder_flexion_r": 0.1 + 1.35 * hand,
        "shoulder_adduction_r": -0.12 + 0.1 * hand, "elbow_flexion_r": 0.35 + 0.9 * hand * (1.0 - hand) - 0.2 * hand,
    }  # fmt: skip
    stance = Stance(model, np.zeros(len(t)), 0.1 - 0.25 * go, others)
    knee = STANDING_KNEE + 0.25 * go
    return stance.pose(knee, balancing_pitch(stance, knee, COM_AHEAD + 0.02 * go))[0]


class Stance(NamedTuple):
    """A human with fixed toes: given coordinates of each frame, without knees and pelvis.

    Attributes:
        model: The human.
        heel: Pitch of both feet about their balls, heel up [rad].
        shoulder: Flexion of both arms [rad].
        others: Other given coordinates [rad], by name.
        lean: Forward lean of a shank per knee flexion.
    """

    model: Model
    heel: Array
    shoulder: Array
    others: Mapping[str, Array] = MappingProxyType({})
    lean: float = SHANK_LEAN

    def pose(self, knee: Array, pitch: Array) -> tuple[Array, Array]:
        """Return coordinates (frames, coordinates) and center of mass (frames, 3) [m] of knees and pelvis."""
        lean = self.lean * knee
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
        position, rotation = poses(self.model, q)
        toes = position[:, [b.name for b in bodies].index("toes_r")]
        displacement = np.array(self.model.body("toes_r").frame.position) - toes
        displacement[:, 1] = 0.0
        q[:, :3] += displacement
        masses = np.array([body.mass for body in bodies])
        centers = position + np.einsum("fbij,bj->fbi", rotation, [body.center_of_mass for body in bodies])
        return q, np.einsum("b,fbi->fi", masses, centers) / masses.sum() + displacement


def balancing_pitch(stance: Stance, knee: Array, ahead: Array) -> Array:
    """Return the pelvis pitch [rad] with which the center of mass is a distance [m] ahead of the ankles."""
    pitch = np.full(len(knee), 0.2)
    for _ in range(MAX_ITERATIONS):
        error = stance.pose(knee, pitch)[1][:, 0] - ahead
        slope = (stance.pose(knee, pitch + 1e-6)[1][:, 0] - ahead - error) / 1e-6
        change = np.clip(error / slope, -0.3, 0.3)
        pitch -= change
        if np.abs(change).max() < 1e-9:
            break
    return pitch


def _solve_legs(stance: Stance, height: Array, ahead: Array, used: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return knee flexion and pelvis pitch [rad] for a height and distance ahead [m] of the center of mass."""
    x = np.stack([np.full(len(height), 0.8), np.full(len(height), 0.5)], axis=1)
    target = np.stack([height, ahead], axis=1)

    def error(values: Array) -> Array:
        return stance.pose(values[:, 0], values[:, 1])[1][:, [2, 0]] - target

    for _ in range(MAX_ITERATIONS):
        here = error(x)
        slopes = np.stack([(error(x + 1e-6 * unit) - here) / 1e-6 for unit in np.eye(2)], axis=-1)
        change = np.linalg.solve(slopes, here[..., None])[..., 0]
        x -= np.clip(change, -0.2, 0.2)
        x[:, 0] = np.maximum(x[:, 0], 0.03)  # beyond, the knee would hyperextend
        if np.abs(change[used]).max() < 1e-9:
            break
    return x[:, 0].copy(), x[:, 1].copy()


def _jump_height(t: Array, standing: float, takeoff: float, landing: float) -> Array:
    """Return the height of the center of mass [m], given those in standing, at takeoff and at landing."""
    speed = (landing - takeoff) / FLIGHT + 0.5 * GRAVITY * FLIGHT
    parabola = takeoff + speed * (t - TAKEOFF) - 0.5 * GRAVITY * (t - TAKEOFF) ** 2
    low, deep = standing - 0.26, standing - 0.20
    before = minimum_jerk([(0.2, standing), (0.66, low, 0.0, 8.0), (TAKEOFF, takeoff, speed, -GRAVITY)], t)
    after = minimum_jerk([
        (LANDING, landing, speed - GRAVITY * FLIGHT, -GRAVITY), (LANDING + 0.26, deep, 0.0, 5.0),
        (LANDING + 1.0, standing),
    ], t)  # fmt: skip
    return np.where(t <= TAKEOFF, before, np.where(t < LANDING, parabola, after))


def _end(t: Array, values: Array, at: int, sign: int) -> tuple[float, float, float, float]:
    """Return time, value and velocity at a sample, from it and the three beyond it; and zero acceleration."""
    step = t[1] - t[0]
    v = values[[at, at + sign, at + 2 * sign, at + 3 * sign]]
    velocity = sign * (-11.0 * v[0] + 18.0 * v[1] - 9.0 * v[2] + 2.0 * v[3]) / (6.0 * step)
    return float(t[at]), float(v[0]), float(velocity), 0.0

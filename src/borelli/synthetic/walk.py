"""A walk with planned feet, a pelvis that sways for balance, and normative joint angles.

Weak springs pull joint angles to the mean curves of normative gait, strong ones feet to their plan; the pelvis moves so
that the center of pressure lies under the feet (the moment balance of a cart on a table, Kajita et al. 2003, corrected
by the rest of the whole body's motion).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import IkProblem, make_ik_problem
from borelli.analysis.tree_kernels.newton_ik import solve_ik_frames
from borelli.errors import SettingsError
from borelli.model.kinematics import center_of_mass, poses
from borelli.model.marker_sets import extent
from borelli.model.model import Marker, Model
from borelli.model.transforms import vector
from borelli.normative.gait import normative_curve
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.curves import harmonics, minimum_jerk, spline_derivatives
from borelli.synthetic.ground_forces import root_wrench, sole_points

Array = NDArray[np.float64]

CYCLE = 1.08
"""Stride time [s]: 111 steps per minute."""
STANCE = 0.62
"""Fraction of the cycle in stance (Perry and Burnfield 2010)."""
STRIDE = 0.76
"""Stride length in statures."""
HARMONICS = 5
"""Harmonics of all coordinates: up to 4.6 Hz."""
PELVIS_DROP = 0.01
"""Distance of the pelvis below that of normative angles [m], so that no knee is fully extended."""
CLEARANCE = 0.025
"""Distance of the swinging foot above that of normative angles [m]: the model's soles are flat and do not bend."""
COUNT = 200
PHASES = np.arange(COUNT) / COUNT


class Walk(NamedTuple):
    """Coordinates in time (frames, coordinates), and the fraction (frames,) of the load on the left foot."""

    coordinates: Array
    left_load: Array


def walk_coordinates(model: Model, time: Array) -> Walk:
    """Return the coordinates of a human that walks along x, with a right foot strike at time 0.

    Raises:
        SettingsError: The model is not one of `human()`.
    """
    if model.coordinates[0].name != "root_x" or "toes_r" not in {body.name for body in model.bodies}:
        raise SettingsError(f"Model {model.name!r} is not a human. Create the model with human().")
    cycle = _cycle(model)
    at = np.asarray(time, float) / CYCLE
    q = harmonics(PHASES, cycle, at, HARMONICS)
    q[:, 0] += STRIDE * _stature(model) * at
    return Walk(q, left_load_fraction(at))


def left_load_fraction(at: Array) -> Array:
    """Return the fraction of the load on the left foot, for times in cycles from a right foot strike."""
    double = STANCE - 0.5  # double support, in cycles

    def fade(phase: Array) -> Array:
        x = np.clip(phase / double, 0.0, 1.0)
        return np.asarray(x * x * (3.0 - 2.0 * x))

    phase = at % 1.0
    return np.where(phase < 0.5, 1.0 - fade(phase), fade(phase - 0.5))


def _cycle(model: Model) -> Array:
    """Return one cycle (phases, coordinates) in a frame that moves with the mean velocity."""
    target = _normative_angles(model)
    reach, height = _reach_and_height(model, target)
    pitch = _pitch(model, target)
    for letter, offset in (("r", 0.0), ("l", 0.5)):
        column = [c.name for c in model.coordinates].index(f"toe_extension_{letter}")
        at = (PHASES + offset) % 1.0
        # the toes are flat while the heel rises over them, and follow in swing
        target[:, column] = np.maximum(_curve(pitch, at), 0.0) * minimum_jerk([(STANCE, 1.0), (0.75, 0.0)], at)
    target[:, 2] = height
    free = sole_points(model, target)[..., :4, :]
    feet = [_foot_plan(model, letter, reach, pitch, _six(free[:, foot])) for foot, letter in enumerate(("l", "r"))]
    fraction = left_load_fraction(PHASES)[:, None]
    left, right = foot_pressure(model, reach, PHASES).swapaxes(0, 1)
    pressure = fraction * left + (1.0 - fraction) * right
    path = np.zeros((COUNT, 3))
    path[:, 2] = height
    problem = _springs(model, feet, target)
    square = (2.0 * np.pi / CYCLE) ** 2
    error = pressure
    for _ in range(4):
        # a displacement x of the body moves the center of pressure by x - (height / g) x''
        parts = np.fft.rfft(error, axis=0)
        number = np.arange(len(parts))[:, None]
        parts = parts / (1.0 + path[:, 2].mean() / 9.81 * square * number**2)
        parts[0, 0] = 0.0  # the distance of foot strikes is given
        parts[5:] = 0.0  # higher frequencies would only add noise
        path[:, :2] += np.fft.irfft(parts, COUNT, axis=0)
        target[:, :3] = path
        q = harmonics(PHASES, _solve_springs(problem, target), PHASES, HARMONICS)
        error = _pressure_error(model, q, pressure)
        # the center of mass moves up and down with each step, and hardly faster
        rise = center_of_mass(model, q)[:, 2]
        path[:, 2] -= rise - harmonics(PHASES, rise, PHASES, 2, every=2)
    return q


def _pressure_error(model: Model, cycle: Array, pressure: Array) -> Array:
    """Return the error (phases, 2) [m], weighted by load, of a cycle's center of pressure."""
    # the mean velocity changes no force: three cycles are differentiated, and the middle one is used
    q, velocities, accelerations = spline_derivatives(np.vstack([cycle] * 3), CYCLE / COUNT)
    middle = slice(COUNT, 2 * COUNT)
    force, moment = root_wrench(model, q[middle], velocities[middle], accelerations[middle])
    needed = np.stack([-moment[:, 1], moment[:, 0]], axis=1)
    return (pressure * force[:, 2:] - needed) / (9.81 * model.mass)


def _reach_and_height(model: Model, target: Array) -> tuple[float, Array]:
    """Return the distance of foot strikes ahead of the pelvis, and its height over a cycle [m], by normative angles."""
    soles = sole_points(model, target)[..., 2].min(axis=2)
    fraction = left_load_fraction(PHASES)
    height = -(fraction * soles[:, 0] + (1.0 - fraction) * soles[:, 1])
    ankle = poses(model, target[:1])[0][0, [body.name for body in model.bodies].index("foot_r")]
    # knees stay a little bent, away from full extension
    return float(ankle[0]), harmonics(PHASES, height, PHASES, 1, every=2) - PELVIS_DROP


def preferred_pressure(model: Model, time: Array) -> Array:
    """Return the preferred center of pressure of each foot (frames, 2, 3) [m], left first, in the world."""
    at = np.asarray(time, float) / CYCLE
    reach, _ = _reach_and_height(model, _normative_angles(model))
    under = np.zeros((len(at), 2, 3))
    under[..., :2] = foot_pressure(model, reach, at)
    under[..., 0] += (STRIDE * _stature(model) * at)[:, None]
    return under


def foot_pressure(model: Model, reach: float, at: Array) -> Array:
    """Return the center of pressure of each foot (times, 2, 2) [m], left first, in the moving frame, by cycles."""
    stride = STRIDE * _stature(model)
    under = np.empty((len(at), 2, 2))
    for foot, (letter, side) in enumerate((("l", 1.0), ("r", -1.0))):
        phase = (at + 0.5 * (letter == "l") + 0.1) % 1.0 - 0.1
        heel, ball = _foot_lengths(model)
        roll = minimum_jerk([(0.0, heel + 0.03), (0.55, ball + 0.02)], phase)
        under[:, foot, 0] = reach - stride * phase + roll
        under[:, foot, 1] = side * _half_width(model)
    return under


def _foot_plan(model: Model, letter: str, reach: float, pitches: Array, free: Array) -> Array:
    """Return six points of a sole over a cycle (phases, 6, 3) [m], in the moving frame.

    `reach` is the distance of foot strike ahead of the pelvis [m], `pitches` the foot's pitch over the cycle [rad], and
    `free` has the points by the normative angles alone.
    """
    heel, ball = _foot_lengths(model)
    phase = (PHASES + 0.5 * (letter == "l")) % 1.0
    near = (phase + 0.2) % 1.0 - 0.2  # before its strike a foot already moves to its spot
    pitch = _curve(pitches, phase)
    on_heel = pitch < 0.0  # rotates about the heel, later about the ball
    ahead = np.where(on_heel, heel + (ball - heel) * np.cos(pitch), ball) + reach - STRIDE * _stature(model) * near
    above = np.where(on_heel, -(ball - heel) * np.sin(pitch), 0.0)
    side = (1.0 if letter == "l" else -1.0) * _half_width(model)
    width = extent(model.body(f"foot_{letter}"))[1][1]
    stance = [
        np.stack([ahead + back * np.cos(pitch), np.full(COUNT, side + y), above - back * np.sin(pitch)], axis=1)
        for back in (heel - ball, 0.5 * (heel - ball), 0.0)
        for y in (-width, width)
    ]
    on_ground = minimum_jerk([(-0.1, 0.0), (0.06, 1.0), (STANCE - 0.06, 1.0), (STANCE + 0.1, 0.0)], near)
    lifted = free.copy()
    lifted[..., 2] += CLEARANCE * minimum_jerk([(STANCE, 0.0), (0.5 + 0.5 * STANCE, 1.0), (1.0, 0.0)], phase)[:, None]
    on_ground = on_ground[:, None, None]
    return np.asarray(on_ground * np.stack(stance, axis=1) + (1.0 - on_ground) * lifted)


def _springs(model: Model, feet: list[Array], target: Array) -> IkProblem:
    """Return strong springs from the soles to their plan and of the pelvis to its path, and weak ones to the angles."""
    markers = []
    for letter in ("l", "r"):
        center, half = extent(model.body(f"foot_{letter}"))
        markers += [
            Marker(f"{letter}{x}{y}", f"foot_{letter}", vector(center + half * (x, y, -1.0)))
            for x in (-1, 0, 1)
            for y in (-1, 1)
        ]
    names = [c.name for c in model.coordinates]
    stiff = {name: 1e4 if name.startswith(("root", "toe")) else 1.0 for name in names}
    data = make_dataset({"marker_position": np.hstack(feet)}, {"marker": [m.name for m in markers]}, rate=COUNT / CYCLE)
    return make_ik_problem(replace(model, markers=tuple(markers)), Recording(data), 1e4, stiff)


def _solve_springs(problem: IkProblem, target: Array) -> Array:
    """Return each frame at the least energy of its springs, from the target coordinates, which are also the rest."""
    q = target.copy()
    rest = np.ascontiguousarray(target[:, problem.tree.free])
    solve_ik_frames(
        problem.search, rest, problem.target, problem.weight, q, 50, False, np.zeros(COUNT), np.zeros(COUNT, np.int64)
    )
    return q


def _normative_angles(model: Model) -> Array:
    """Return every coordinate over one cycle [rad]; zero for the pelvis's position."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    q = np.zeros((COUNT, len(column)))

    def curve(name: str, at: Array) -> Array:
        normative = normative_curve(name)
        assert normative is not None
        return np.radians(np.interp(at % 1.0, np.linspace(0.0, 1.0, 101), normative.mean))

    tilt = curve("pelvis_tilt", PHASES)
    # the curves state pelvic tilt by its landmarks, which lean forward in standing
    upright = tilt.mean()
    roll, yaw = -curve("pelvis_obliquity", PHASES), curve("pelvis_rotation", PHASES)
    for name, values in (("root_roll", roll), ("root_pitch", tilt - upright), ("root_yaw", yaw)):
        q[:, column[name]] = values
    for letter, offset in (("r", 0.0), ("l", 0.5)):
        at = PHASES + offset
        swing = np.cos(2.0 * np.pi * at)
        angles = {
            "hip_flexion": curve("hip_flexion", at) - upright, "hip_adduction": curve("hip_adduction", at),
            "knee_flexion": curve("knee_flexion", at), "ankle_flexion": curve("ankle_dorsiflexion", at),
            # arms: no curves; opposite to the leg of their side, with about the usual range
            "shoulder_flexion": np.radians(2.0 - 17.0 * swing), "shoulder_adduction": np.full(COUNT, -0.12),
            "elbow_flexion": np.radians(28.0 - 9.0 * swing),
        }  # fmt: skip
        for name, series in angles.items():
            q[:, column[f"{name}_{letter}"]] = series
    for part in ("sacral", "lumbar"):  # the chest stays upright, and rotates against the pelvis
        q[:, column[f"{part}_bending"]] = 0.4 * roll
        q[:, column[f"{part}_rotation"]] = -0.8 * yaw
    return q


def _pitch(model: Model, target: Array) -> Array:
    """Return the pitch of the right foot, heel up, over a cycle [rad], by the normative angles."""
    foot = sole_points(model, target)[:, 1, :4, 2]
    heel, ball = _foot_lengths(model)
    return harmonics(PHASES, np.arcsin((foot[:, 0] - foot[:, 2]) / (ball - heel)), PHASES, HARMONICS)


def _six(corners: Array) -> Array:
    """Return heel, midpoint and ball of a sole, each inside and outside, from its four corners."""
    back, front = corners[:, :2], corners[:, 2:]
    return np.concatenate([back, 0.5 * (back + front), front], axis=1)


def _curve(values: Array, at: Array) -> Array:
    """Evaluate a curve over the cycle at other phases."""
    return harmonics(PHASES, values, at, HARMONICS)


def _foot_lengths(model: Model) -> tuple[float, float]:
    """Return the distances of heel and ball ahead of the ankle [m]."""
    center, half = extent(model.body("foot_r"))
    return float(center[0] - half[0]), float(center[0] + half[0])


def _half_width(model: Model) -> float:
    """Return the distance of a foot from the midline [m]: a little less than the hips."""
    return 0.8 * abs(model.joint("hip_l").parent_frame.position[1])


def _stature(model: Model) -> float:
    """Return the height of the head's top above the ground in standing [m]."""
    head = model.body("head")
    center, half = extent(head)
    return float(head.frame.position[2] + center[2] + half[2])

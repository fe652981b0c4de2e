"""A walk: feet that are planned and stay where they stand, a pelvis that sways as balance wants, normal joint angles.

Joint angles are drawn by weak springs to the mean curves of normal gait (`norms`), feet to their plan by strong ones;
the pelvis goes so that the centre of pressure lies under the feet (the moment balance of a cart on a table, Kajita et
al. 2003, corrected by what the whole body's motion leaves over).
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
from borelli.synthetic.curves import harmonics, least_jerk, stirred
from borelli.synthetic.ground_forces import root_wrench, sole_points

Array = NDArray[np.float64]

CYCLE = 1.08
"""Time [s] from one strike of a foot to its next: 111 steps a minute."""
STANCE = 0.62
"""Part of the cycle that a foot stands (Perry and Burnfield 2010)."""
STRIDE = 0.76
"""Length of a stride in statures."""
HARMONICS = 5
"""Of all coordinates: up to 4.6 Hz."""
KNEE_ROOM = 0.01
"""How much lower [m] the pelvis goes than normal angles have it, so that no knee is stretched out."""
CLEARANCE = 0.025
"""How much higher [m] than normal angles have it the swinging foot goes: our soles are flat and do not bend."""
COUNT = 200
PHASES = np.arange(COUNT) / COUNT


class Walk(NamedTuple):
    """Coordinates in time (frames, coordinates), and the part (frames,) of the load on the left foot."""

    coordinates: Array
    share: Array


def walk_coordinates(model: Model, time: Array) -> Walk:
    """The coordinates of a human that walks along x, its right foot striking at time 0.

    Args:
        model: One made by `human()`.
        time: (frames,) [s].

    Raises:
        SettingsError: if the model is not one of `human()`'s.
    """
    if model.coordinates[0].name != "root_x" or "toes_r" not in {body.name for body in model.bodies}:
        raise SettingsError(f"model {model.name!r} is none of human()'s, for which the walk is made")
    cycle = _cycle(model)
    at = np.asarray(time, float) / CYCLE
    q = harmonics(PHASES, cycle, at, HARMONICS)
    q[:, 0] += STRIDE * _stature(model) * at
    return Walk(q, load_share(at))


def load_share(at: Array) -> Array:
    """The part of the load on the left foot, for times counted in cycles from a right strike."""
    double = STANCE - 0.5  # time, in cycles, that both feet stand

    def fade(phase: Array) -> Array:
        x = np.clip(phase / double, 0.0, 1.0)
        return np.asarray(x * x * (3.0 - 2.0 * x))

    phase = at % 1.0
    return np.where(phase < 0.5, 1.0 - fade(phase), fade(phase - 0.5))


def _cycle(model: Model) -> Array:
    """One cycle (phases, coordinates) in a frame that goes along with the mean speed."""
    wanted = _normal_angles(model)
    reach, height = _reach_and_height(model, wanted)
    pitch = _pitch(model, wanted)
    for letter, shift in (("r", 0.0), ("l", 0.5)):
        column = [c.name for c in model.coordinates].index(f"toe_extension_{letter}")
        at = (PHASES + shift) % 1.0
        # the toes lie flat while the heel rises over them, and come along in the swing
        wanted[:, column] = np.maximum(_curve(pitch, at), 0.0) * least_jerk([(STANCE, 1.0), (0.75, 0.0)], at)
    wanted[:, 2] = height
    free = sole_points(model, wanted)[..., :4, :]
    feet = [_foot_plan(model, letter, reach, pitch, _six(free[:, foot])) for foot, letter in enumerate(("l", "r"))]
    share = load_share(PHASES)[:, None]
    left, right = foot_pressure(model, reach, PHASES).swapaxes(0, 1)
    pressure = share * left + (1.0 - share) * right
    path = np.zeros((COUNT, 3))
    path[:, 2] = height
    problem = _springs(model, feet, wanted)
    square = (2.0 * np.pi / CYCLE) ** 2
    miss = pressure
    for _ in range(4):
        # a shift x of the body moves the centre of pressure by x - (height / g) x''
        parts = np.fft.rfft(miss, axis=0)
        number = np.arange(len(parts))[:, None]
        parts = parts / (1.0 + path[:, 2].mean() / 9.81 * square * number**2)
        parts[0, 0] = 0.0  # how far ahead feet strike is given
        parts[5:] = 0.0  # what is quicker would only shake
        path[:, :2] += np.fft.irfft(parts, COUNT, axis=0)
        wanted[:, :3] = path
        q = harmonics(PHASES, _settled(problem, wanted), PHASES, HARMONICS)
        miss = _missed(model, q, pressure)
        # the centre of mass goes up and down with each step, and hardly quicker
        rise = center_of_mass(model, q)[:, 2]
        path[:, 2] -= rise - harmonics(PHASES, rise, PHASES, 2, every=2)
    return q


def _missed(model: Model, cycle: Array, pressure: Array) -> Array:
    """How far (phases, 2) [m], weighed by the load, a cycle's centre of pressure is from where it should be."""
    # the mean speed changes no force: the cycle is looked at thrice, and its middle is taken
    q, speeds, accelerations = stirred(np.vstack([cycle] * 3), CYCLE / COUNT)
    middle = slice(COUNT, 2 * COUNT)
    force, moment = root_wrench(model, q[middle], speeds[middle], accelerations[middle])
    needed = np.stack([-moment[:, 1], moment[:, 0]], axis=1)
    return (pressure * force[:, 2:] - needed) / (9.81 * model.mass)


def _reach_and_height(model: Model, wanted: Array) -> tuple[float, Array]:
    """How far ahead of the pelvis a foot strikes, and how high the pelvis is over a cycle [m], by the normal angles."""
    soles = sole_points(model, wanted)[..., 2].min(axis=2)
    share = load_share(PHASES)
    height = -(share * soles[:, 0] + (1.0 - share) * soles[:, 1])
    ankle = poses(model, wanted[:1])[0][0, [body.name for body in model.bodies].index("foot_r")]
    # knees are kept a little bent, away from where they lock
    return float(ankle[0]), harmonics(PHASES, height, PHASES, 1, every=2) - KNEE_ROOM


def pressure_wish(model: Model, time: Array) -> Array:
    """Where each foot would like its centre of pressure (frames, 2, 3) [m], left first, in the world."""
    at = np.asarray(time, float) / CYCLE
    reach, _ = _reach_and_height(model, _normal_angles(model))
    under = np.zeros((len(at), 2, 3))
    under[..., :2] = foot_pressure(model, reach, at)
    under[..., 0] += (STRIDE * _stature(model) * at)[:, None]
    return under


def foot_pressure(model: Model, reach: float, at: Array) -> Array:
    """Where each foot carries (times, 2, 2) [m], left first, for times in cycles, in the frame that goes along."""
    stride = STRIDE * _stature(model)
    under = np.empty((len(at), 2, 2))
    for foot, (letter, side) in enumerate((("l", 1.0), ("r", -1.0))):
        phase = (at + 0.5 * (letter == "l") + 0.1) % 1.0 - 0.1
        heel, ball = _foot_lengths(model)
        roll = least_jerk([(0.0, heel + 0.03), (0.55, ball + 0.02)], phase)
        under[:, foot, 0] = reach - stride * phase + roll
        under[:, foot, 1] = side * _half_width(model)
    return under


def _foot_plan(model: Model, letter: str, reach: float, turns: Array, free: Array) -> Array:
    """Where six points of a sole are over a cycle: (phases, 6, 3) [m], in the frame that goes along.

    Args:
        model: The human.
        letter: "l" or "r".
        reach: How far ahead of the pelvis the foot strikes [m].
        turns: The foot's pitch over the cycle [rad].
        free: (phases, 6, 3) where the normal angles alone would put them.
    """
    heel, ball = _foot_lengths(model)
    phase = (PHASES + 0.5 * (letter == "l")) % 1.0
    near = (phase + 0.2) % 1.0 - 0.2  # before its strike a foot already aims at where it will stand
    pitch = _curve(turns, phase)
    on_heel = pitch < 0.0  # turns about the heel, later about the ball
    ahead = np.where(on_heel, heel + (ball - heel) * np.cos(pitch), ball) + reach - STRIDE * _stature(model) * near
    above = np.where(on_heel, -(ball - heel) * np.sin(pitch), 0.0)
    side = (1.0 if letter == "l" else -1.0) * _half_width(model)
    width = extent(model.body(f"foot_{letter}"))[1][1]
    stands = [
        np.stack([ahead + back * np.cos(pitch), np.full(COUNT, side + y), above - back * np.sin(pitch)], axis=1)
        for back in (heel - ball, 0.5 * (heel - ball), 0.0)
        for y in (-width, width)
    ]
    firm = least_jerk([(-0.1, 0.0), (0.06, 1.0), (STANCE - 0.06, 1.0), (STANCE + 0.1, 0.0)], near)
    lifted = free.copy()
    lifted[..., 2] += CLEARANCE * least_jerk([(STANCE, 0.0), (0.5 + 0.5 * STANCE, 1.0), (1.0, 0.0)], phase)[:, None]
    firm = firm[:, None, None]
    return np.asarray(firm * np.stack(stands, axis=1) + (1.0 - firm) * lifted)


def _springs(model: Model, feet: list[Array], wanted: Array) -> IkProblem:
    """Strong springs from the soles to their plan and to the pelvis's path, weak ones to the angles wanted."""
    markers = []
    for letter in ("l", "r"):
        middle, half = extent(model.body(f"foot_{letter}"))
        markers += [
            Marker(f"{letter}{x}{y}", f"foot_{letter}", vector(middle + half * (x, y, -1.0)))
            for x in (-1, 0, 1)
            for y in (-1, 1)
        ]
    names = [c.name for c in model.coordinates]
    stiff = {name: 1e4 if name.startswith(("root", "toe")) else 1.0 for name in names}
    data = make_dataset({"marker_position": np.hstack(feet)}, {"marker": [m.name for m in markers]}, rate=COUNT / CYCLE)
    return make_ik_problem(replace(model, markers=tuple(markers)), Recording(data), 1e4, stiff)


def _settled(problem: IkProblem, wanted: Array) -> Array:
    """Each frame at the least energy of its springs, found from the coordinates wanted, which are also the rest."""
    q = wanted.copy()
    rest = np.ascontiguousarray(wanted[:, problem.tree.free])
    solve_ik_frames(
        problem.search, rest, problem.target, problem.weight, q, 50, False, np.zeros(COUNT), np.zeros(COUNT, np.int64)
    )
    return q


def _normal_angles(model: Model) -> Array:
    """Every coordinate over one cycle [rad]; zero for those of the pelvis's place."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    q = np.zeros((COUNT, len(column)))

    def curve(name: str, at: Array) -> Array:
        found = normative_curve(name)
        assert found is not None
        return np.radians(np.interp(at % 1.0, np.linspace(0.0, 1.0, 101), found.mean))

    tilt = curve("pelvis_tilt", PHASES)
    # the tables count the pelvis from its landmarks, which lean forward while a person stands upright
    upright = tilt.mean()
    roll, yaw = -curve("pelvis_obliquity", PHASES), curve("pelvis_rotation", PHASES)
    for name, values in (("root_roll", roll), ("root_pitch", tilt - upright), ("root_yaw", yaw)):
        q[:, column[name]] = values
    for letter, shift in (("r", 0.0), ("l", 0.5)):
        at = PHASES + shift
        swing = np.cos(2.0 * np.pi * at)
        values = {
            "hip_flexion": curve("hip_flexion", at) - upright, "hip_adduction": curve("hip_adduction", at),
            "knee_flexion": curve("knee_flexion", at), "ankle_flexion": curve("ankle_dorsiflexion", at),
            # arms: no tables; against the leg of their side, about as far as arms are seen to swing
            "shoulder_flexion": np.radians(2.0 - 17.0 * swing), "shoulder_adduction": np.full(COUNT, -0.12),
            "elbow_flexion": np.radians(28.0 - 9.0 * swing),
        }  # fmt: skip
        for name, series in values.items():
            q[:, column[f"{name}_{letter}"]] = series
    for part in ("sacral", "lumbar"):  # the chest is kept upright, and turns against the pelvis
        q[:, column[f"{part}_bending"]] = 0.4 * roll
        q[:, column[f"{part}_rotation"]] = -0.8 * yaw
    return q


def _pitch(model: Model, wanted: Array) -> Array:
    """How far the right foot's heel is up over its ball over a cycle [rad], by the normal angles."""
    foot = sole_points(model, wanted)[:, 1, :4, 2]
    heel, ball = _foot_lengths(model)
    return harmonics(PHASES, np.arcsin((foot[:, 0] - foot[:, 2]) / (ball - heel)), PHASES, HARMONICS)


def _six(corners: Array) -> Array:
    """Heel, middle and ball of a sole, each inside and outside, from its four corners."""
    back, front = corners[:, :2], corners[:, 2:]
    return np.concatenate([back, 0.5 * (back + front), front], axis=1)


def _curve(values: Array, at: Array) -> Array:
    """A curve over the cycle at other parts of it."""
    return harmonics(PHASES, values, at, HARMONICS)


def _foot_lengths(model: Model) -> tuple[float, float]:
    """How far heel and ball lie ahead of the ankle [m]."""
    middle, half = extent(model.body("foot_r"))
    return float(middle[0] - half[0]), float(middle[0] + half[0])


def _half_width(model: Model) -> float:
    """How far a foot is set from the midline [m]: a little less than the hips."""
    return 0.8 * abs(model.joint("hip_l").parent_frame.position[1])


def _stature(model: Model) -> float:
    """Height of the head's top above the ground [m] while the model stands."""
    head = model.body("head")
    middle, half = extent(head)
    return float(head.frame.position[2] + middle[2] + half[2])

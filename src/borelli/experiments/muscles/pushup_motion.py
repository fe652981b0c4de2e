"""Push-ups of the full skeleton: its contact pads, and joint angles that keep hands and feet where they are.

The body lies prone with its head toward -y. Hands are flat on the ground, feet on the balls of the feet; the trunk and
knees stay as they are. For each elbow angle, inverse kinematics finds the sagittal pose of the pelvis and the
angles of shoulders, forearms, wrists and ankles for which hands and feet have one and the same pose: Newton's method on
the errors of these poses. Between the elbow angles solved for, all angles are cubic splines of a phase of the movement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from borelli.control.targets import Targets
from borelli.errors import SettingsError
from borelli.model.kinematics import poses
from borelli.model.mechanisms import with_block
from borelli.model.model import Body, Coordinate, Frame, Model, Shape, Surface
from borelli.people.full_skeleton import full_skeleton

Array = NDArray[np.float64]

TOP_ELBOW, BOTTOM_ELBOW = 0.6, 1.3
"""Elbow flexion [rad] at the top and at the bottom of a push-up: about 34 and 74 deg."""
DIFFERENCE = 1e-7
"""Step of coordinates for numerical derivatives [rad or m]."""
KEYS = 65
"""Phases solved for; splines between them miss the pose of the hands by less than 1e-7 m."""
WRIST_EXTENSION = -1.75
"""Limit of wrist extension [rad]: the weight on a flat hand extends it to about 90 deg, beyond the active range."""
PAD_RADIUS = 0.008
"""Radius of the contact spheres under hands and feet [m]."""
PALM = 0.014
"""Distance of the ground from the axes of the metacarpals [m]."""
HAND_PADS = ((0.022, -0.012), (-0.022, -0.012), (0.020, -0.080), (-0.030, -0.070))
"""Places (x, z) [m] of pads in the hand: the two sides of the heel of the hand, and two heads of metacarpals."""
FOOT_PADS = ((0.118, 0.028, -0.052), (0.118, -0.028, -0.052))
"""Places [m] of pads in the foot: at the heads of the metatarsals."""
TRUNK_RADIUS = 0.06
TRUNK_PADS = {"T5_T8": (0.1, 0.0, 0.0), "pelvis": (0.06, 0.0, 0.0), "head": (0.05, 0.0, 0.05)}
"""Spheres of radius TRUNK_RADIUS [m] at the front of the trunk, on which a body that sinks comes to rest."""
FOOT_PITCH = 1.45
"""Angle [rad] of the feet from flat on the ground, heels up."""
VEST = Frame((-0.05, 0.0, 0.0))
"""Pose of the vest in the thorax: on the back."""
FRICTION = 1.0
"""Coulomb coefficient of hands and feet on the ground."""
HAND_SPREAD, HAND_REACH = 0.30, 1.12
"""Distances [m] of the wrists from the sagittal plane, and from the ankles along the body."""
_HAND = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Rotation of the right hand: palm down, fingers toward the head, thumb inward."""
START = (-0.83, 0.3, 1.36, 0.0, 0.0, 0.0, 0.0, 0.35, -0.23, -0.2, 1.17, -0.98)
"""Coordinates of BASE and ARM [m, rad] from which the pose at the bottom is found."""
WRIST_DEVIATION = 0.2
"""Radial deviation of the wrists [rad]; without it the arms could rotate about the line from shoulder to hand."""
MAX_ERROR = 1e-9
"""Error of hands and feet [m] of a pose that is solved."""
_FOOT = np.array([
    [0.0, 1.0, 0.0],
    [-np.cos(FOOT_PITCH), 0.0, -np.sin(FOOT_PITCH)],
    [-np.sin(FOOT_PITCH), 0.0, np.cos(FOOT_PITCH)],
])  # fmt: skip
"""Rotation of the right foot: heel up, toes toward the head."""
ARM = ("shoulder_flexion_r", "shoulder_adduction_r", "shoulder_rotation_r", "elbow_pronation_r", "wrist_flexion_r")
BASE = ("root_y", "root_z", "root_roll", "hip_adduction_r", "hip_rotation_r", "ankle_flexion_r", "ankle_inversion_r")


def pushup_model(vest_mass: float = 0.0) -> Model:
    """Return the full skeleton with muscles, contact pads under hands and feet, and a vest [kg] on the back."""
    model = full_skeleton(muscles=True)
    surface = Surface(friction=FRICTION)

    def pads(body: Body) -> tuple[Shape, ...]:
        kept = tuple(replace(shape, collides=False) for shape in body.shapes)
        palm = (PALM - PAD_RADIUS) * (1.0 if body.name == "hand_r" else -1.0)
        places: tuple[tuple[float, float, float], ...] = ()
        if body.name.startswith("hand_"):
            places = tuple((x, palm, z) for x, z in HAND_PADS)
        if body.name.startswith("foot_"):
            places = FOOT_PADS
        if body.name in TRUNK_PADS:
            return (*kept, Shape("sphere", (TRUNK_RADIUS,), Frame(TRUNK_PADS[body.name]), surface=surface))
        return (*kept, *(Shape("sphere", (PAD_RADIUS,), Frame(place), surface=surface) for place in places))

    def widen(coordinate: Coordinate) -> Coordinate:
        return replace(coordinate, lower=WRIST_EXTENSION) if coordinate.name.startswith("wrist_flexion") else coordinate

    bodies = tuple(replace(body, shapes=pads(body)) for body in model.bodies)
    joints = tuple(replace(j, coordinates=tuple(map(widen, j.coordinates))) for j in model.joints)
    model = replace(
        model, bodies=bodies, joints=joints, self_collision=False, ground=(Shape("plane", surface=surface),)
    )
    if not vest_mass:
        return model
    model = with_block(model, "T5_T8", mass=vest_mass, at=VEST, size=0.25, name="vest")
    vest = model.bodies[-1]
    hollow = replace(vest, shapes=tuple(replace(shape, collides=False) for shape in vest.shapes))
    return replace(model, bodies=(*model.bodies[:-1], hollow))


@dataclass(frozen=True)
class PushupPath:
    """Poses of a push-up by phase, 0 at the top and 1 at the bottom."""

    model: Model
    phase: Array
    coordinates: Array
    """(phases, coordinates) [rad or m]"""

    def at(self, phase: Array) -> Array:
        """Return coordinates (n, coordinates) at phases."""
        return np.asarray(CubicSpline(self.phase, self.coordinates)(phase))


class _Solver:
    """Inverse kinematics of the hands and feet, by damped Gauss-Newton steps within the joint limits."""

    def __init__(self, model: Model, hand: Array, foot: Array) -> None:
        self.model, self._hand, self._foot = model, hand, foot
        self.index = {c.name: i for i, c in enumerate(model.coordinates)}
        self._body = {b.name: i for i, b in enumerate(model.bodies)}
        self.unknown = np.array([self.index[name] for name in (*BASE, *ARM)])
        self.lower = np.array([model.coordinates[i].lower for i in self.unknown])
        self.upper = np.array([model.coordinates[i].upper for i in self.unknown])

    def errors(self, q: Array) -> Array:
        """Return the errors (n, 24) of the right hand and foot [m or 1] in poses (n, coordinates)."""
        position, rotation = poses(self.model, q)
        parts = []
        for name, place, turn in (("hand_r", self._hand, _HAND), ("foot_r", self._foot, _FOOT)):
            b = self._body[name]
            parts += [position[:, b] - place, (rotation[:, b] - turn).reshape(len(q), 9)]
        return np.hstack(parts)

    def solve(self, q: Array, iterations: int = 60) -> tuple[Array, float]:
        """Return the pose (coordinates,) nearest to the constraints from a pose, and its error."""
        damping, q = 1e-3, q.copy()
        best = self.errors(q[None])[0]
        for _ in range(iterations):
            shifted = np.repeat(q[None], len(self.unknown), axis=0)
            shifted[np.arange(len(self.unknown)), self.unknown] += DIFFERENCE
            jacobian = (self.errors(shifted) - best).T / DIFFERENCE
            matrix = jacobian.T @ jacobian + damping * np.eye(len(self.unknown))
            trial = q.copy()
            trial[self.unknown] = np.clip(
                q[self.unknown] - np.linalg.solve(matrix, jacobian.T @ best), self.lower, self.upper
            )
            error = self.errors(trial[None])[0]
            if np.linalg.norm(error) < np.linalg.norm(best):
                converged = np.abs(trial - q).max() < 1e-13
                q, best, damping = trial, error, 0.1 * damping
                if converged:
                    break
            else:
                damping = 10.0 * damping + 1e-12
                if damping > 1e3:
                    break
        return q, float(np.linalg.norm(best))


def rest_pose(model: Model) -> Array:
    """Return the coordinates of the trunk, legs, fingers and toes in a push-up; prone, arms at their defaults."""
    q = np.array([c.default for c in model.coordinates])
    for i, c in enumerate(model.coordinates):
        if "_mcp_flexion" in c.name or "_pip_" in c.name or "_dip_" in c.name or "thumb_" in c.name:
            q[i] = np.clip(0.05, c.lower + 0.03, c.upper - 0.03)
        if "toe_" in c.name:
            q[i] = -0.05 if "_ip_" in c.name else min(0.6, 0.9 * c.upper)
        if c.name.startswith("knee_flexion"):
            q[i] = 0.05
        if c.name.startswith("wrist_deviation"):
            q[i] = WRIST_DEVIATION
        if c.name == "root_yaw":
            q[i] = -0.5 * np.pi
        if c.name == "root_roll":
            q[i] = 1.3
    return q


def foot_position(model: Model) -> Array:
    """Return the position [m] of the right foot at FOOT_PITCH, its pads on the ground below y = 0."""
    x, _, z = FOOT_PADS[0]
    pad_y = -np.cos(FOOT_PITCH) * x - np.sin(FOOT_PITCH) * z
    pad_z = -np.sin(FOOT_PITCH) * x + np.cos(FOOT_PITCH) * z
    hip = next(joint for joint in model.joints if joint.name == "hip_r")
    return np.array([hip.parent_frame.position[1], -pad_y, PAD_RADIUS - pad_z])


def pushup_path(model: Model, keys: int = KEYS) -> PushupPath:
    """Return the poses of a push-up of `pushup_model`."""
    foot = foot_position(model)
    solver = _Solver(model, np.array([-HAND_SPREAD, foot[1] - HAND_REACH, PALM]), foot)
    q, phase = rest_pose(model), np.linspace(0.0, 1.0, keys)
    q[solver.unknown] = START
    table = []
    for elbow in BOTTOM_ELBOW + (TOP_ELBOW - BOTTOM_ELBOW) * phase:
        q[solver.index["elbow_flexion_r"]] = elbow
        q, error = solver.solve(q)
        if error > MAX_ERROR:
            raise SettingsError(
                f"push-up: No pose has the elbows at {elbow:.2f} rad (error {error:.2g}). Move the hands."
            )
        table.append(q.copy())
    rows = np.array(table[::-1])
    for name, i in solver.index.items():
        if name.endswith("_r"):
            rows[:, solver.index[name[:-1] + "l"]] = rows[:, i]
    return PushupPath(model, phase, rows)


def pushup_targets(path: PushupPath, period: float, model: Model | None = None) -> Targets:
    """Return targets of all joints in push-ups of a period [s], from rest at the top; the root has none.

    They are those of the path's model, or of another one with the same coordinates.
    """
    names = [(i, c.name) for i, c in enumerate(path.model.coordinates) if not c.name.startswith("root_")]
    columns = [i for i, _ in names]

    def curve(time: Array) -> Array:
        return path.at(0.5 - 0.5 * np.cos(2.0 * np.pi * time / period))[:, columns]

    return Targets(model or path.model, tuple(name for _, name in names), curve)

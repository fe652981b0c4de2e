"""Model of the planar jumper: foot, shank, thigh and HAT (head, arms and trunk) on a root at the toe.

x is forward, y up, z to the right, as in OpenSim. The coordinates are the toe's position, the pitch of the foot (zero
when the sole is flat, positive with the heel down and the toes up), and ankle, knee and hip angle with OpenSim's signs:
dorsiflexion and hip flexion are positive, knee flexion is negative. Children are proximal, so joints rotate about -z.
Masses, inertias and forces are of both legs together; numbers and their sources are in `data/jumper.toml`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from math import atan2, cos, hypot, pi, radians, sin
from typing import Any

import numpy as np

from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Marker, Model, Muscle, PathPoint, Shape, Vector
from borelli.model.validate import validate
from borelli.muscles.fitted_paths import FittedPath, FittedPaths

ROOT = ("toe_x", "toe_y", "foot_pitch")
"""Coordinates of the root."""
JOINTS = ("ankle_angle", "knee_angle", "hip_flexion")
LEGS = 2
HIP_HALF_WIDTH = 0.0855524
"""[m] distance of each hip from the sagittal plane, of the file; for pictures."""
PATH_DEPTH = 0.05
"""[m] distance of drawn muscles from the sagittal plane, outside of the right leg's center."""
ACTIVATION_TIME, DEACTIVATION_TIME = 0.020, 0.200
"""[s] Pandy, Zajac, Sim and Levine (1990)."""


@cache
def jumper_table() -> dict[str, Any]:
    """Return the numbers of `data/jumper.toml`."""
    text = (files("borelli.optimal.planar_jumper") / "data" / "jumper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def jumper_model(
    *, muscles: bool = True, activation_time: float = ACTIVATION_TIME, deactivation_time: float = DEACTIVATION_TIME
) -> Model:
    """Return the jumper, standing with its toe at the origin.

    Args:
        muscles: Add its eight muscles.
        activation_time: Time constant of activation [s].
        deactivation_time: Time constant of deactivation [s].
    """
    table = jumper_table()
    bodies = tuple(_body(name, table[name], shapes) for name, shapes in _shapes(table).items())
    ankle, knee = table["foot"]["ankle"], table["thigh"]["knee"]
    root = tuple(Coordinate(name, rotational=name == ROOT[2]) for name in ROOT)
    joints = (
        Joint("root", "planar", GROUND, "foot", coordinates=root),
        _hinge("ankle", "foot", "shank", ankle, table["shank"]["ankle"]),
        _hinge("knee", "shank", "thigh", [0.0, 0.0], knee),
        _hinge("hip", "thigh", "hat", [0.0, 0.0], [0.0, 0.0]),
    )
    markers = (Marker("heel", "foot", _vector(table["foot"]["heel"])),)
    times = activation_time, deactivation_time
    model = Model(
        "planar jumper", bodies, joints, markers,
        muscles=tuple(_muscle(row, *times) for row in table["muscles"]) if muscles else (),
        ground=(Shape("plane", frame=Frame(orientation=(cos(pi / 4), -sin(pi / 4), 0.0, 0.0))),),
        gravity=(0.0, -table["gravity"], 0.0),
    )  # fmt: skip
    return validate(with_default_frames(model))


def jumper_paths() -> FittedPaths:
    """Return the polynomial lengths of the jumper's muscles."""
    table = jumper_table()
    paths = []
    for row in table["muscles"]:
        low, high = np.radians([table["ranges"][name] for name in row["coordinates"]]).T
        errors = (row[f"{kind}_error"] for kind in ("max_length", "rms_length", "max_arm", "rms_arm"))
        power, coefficient = np.array(row["power"], np.int64), np.array(row["coefficient"])
        center, half = 0.5 * (low + high), 0.5 * (high - low)
        paths.append(FittedPath(row["name"], tuple(row["coordinates"]), center, half, power, coefficient, *errors))
    return FittedPaths((*ROOT, *JOINTS), tuple(paths))


def jumper_ranges() -> dict[str, tuple[float, float]]:
    """Return the ranges of joint angles [rad] within which the muscles' lengths hold."""
    ranges = jumper_table()["ranges"].items()
    return {name: (radians(low), radians(high)) for name, (low, high) in ranges}


def _vector(xy: list[float], z: float = 0.0) -> Vector:
    return float(xy[0]), float(xy[1]), z


def _body(name: str, row: dict[str, Any], shapes: tuple[Shape, ...]) -> Body:
    # inertia about x and y has no effect in the plane
    about = float(row["inertia"])
    inertia = ((about, 0.0, 0.0), (0.0, about, 0.0), (0.0, 0.0, about))
    return Body(name, row["mass"], _vector(row["center_of_mass"]), inertia, shapes)


def _hinge(name: str, parent: str, child: str, at_parent: list[float], at_child: list[float]) -> Joint:
    coordinate = next(c for c in JOINTS if c.startswith(name))
    lower, upper = (radians(x) for x in jumper_table()["limits"][coordinate])
    # a default outside the limits is invalid: the knee's is its upper limit
    rest = min(max(0.0, lower), upper)
    return Joint(
        name, "hinge", parent, child, Frame(_vector(at_parent)), Frame(_vector(at_child)), axes=((0.0, 0.0, -1.0),),
        coordinates=(Coordinate(coordinate, rest, lower, upper),),
    )  # fmt: skip


def _muscle(row: dict[str, Any], activation_time: float, deactivation_time: float) -> Muscle:
    """Return a muscle with the force of both legs."""
    depth = HIP_HALF_WIDTH + PATH_DEPTH
    return Muscle(
        row["name"], tuple(PathPoint(body, (x, y, depth)) for body, x, y in row["points"]),
        LEGS * row["max_isometric_force"], row["optimal_fiber_length"], row["tendon_slack_length"],
        row["pennation_angle"], "DeGrooteFregly2016Muscle",
        activation_time=activation_time, deactivation_time=deactivation_time,
    )  # fmt: skip


def _shapes(table: dict[str, Any]) -> dict[str, tuple[Shape, ...]]:
    """Return shapes for pictures, without contact: both legs, trunk, head and hanging arms."""
    heel, ankle, knee = table["foot"]["heel"], table["foot"]["ankle"], table["thigh"]["knee"]
    sides = -HIP_HALF_WIDTH, HIP_HALF_WIDTH
    shoulder = [-0.03, 0.50]
    return {
        "foot": tuple(
            shape
            for z in sides
            for shape in (_rod([0.03, 0.02], [heel[0] + 0.02, 0.03], 0.028, z), _rod([-0.03, 0.035], ankle, 0.032, z))
        ),
        "shank": tuple(_rod([0.0, 0.0], table["shank"]["ankle"], 0.045, z) for z in sides),
        "thigh": tuple(_rod([0.0, 0.0], knee, 0.065, z) for z in sides),
        "hat": (
            _rod([0.0, 0.05], [-0.04, 0.42], 0.11, 0.0),
            Shape("sphere", (0.10,), Frame((-0.03, 0.64, 0.0)), collides=False),
            *(_rod(shoulder, [0.0, 0.0], 0.035, 2.2 * z) for z in sides),
        ),
    }


def _rod(start: list[float], end: list[float], radius: float, z: float) -> Shape:
    """Return a capsule between two points of the sagittal plane at depth z."""
    along = end[0] - start[0], end[1] - start[1]
    half_turn = atan2(along[0], along[1]) / 2.0  # rotation about -z of y to the rod
    # z to y is a rotation of -90 degrees about x; then about z
    c, s = cos(half_turn), -sin(half_turn)
    a, b = cos(pi / 4), -sin(pi / 4)
    middle = [(start[i] + end[i]) / 2.0 for i in range(2)]
    frame = Frame(_vector(middle, z), (c * a, c * b, s * b, s * a))
    return Shape("capsule", (radius, hypot(*along) / 2.0), frame, collides=False)

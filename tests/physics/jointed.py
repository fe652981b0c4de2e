"""Two or three jointed bodies of every joint kind, and the effect of their motion on rows and coordinates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.model.functions import Function
from borelli.model.model import GROUND, Body, Coordinate, Coupling, Frame, Joint, Model, TransformAxis
from borelli.model.transforms import orientation_matrix
from borelli.numerics.rotation_kernels import quaternion_product, rotation_exponential
from borelli.physics.arrays.joints import JointTables, compile_joints
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.rows.joint_rows import init_joint_rows
from borelli.physics.rows.rows import Rows, make_rows

from .called import coordinates_from_poses, fill_coupling_rows, fill_joint_rows, fill_prescribed_motion, pose_joints

Floats = NDArray[np.float64]

STEP = 1.0 / 240.0
PROBE = 1e-5
"""Half width of a central difference: its two errors, of second order and of rounding, are both near 1e-10."""
SLOPE_TOLERANCE = 1e-7
"""Tolerance of central differences: a thousand times their error, a millionth of any wrong sign or arm."""

KNEE = (  # a hinge with a rolling center: two curved translations and a side tilt, as in models of the knee
    TransformAxis((0.0, 0.0, 1.0), Function((-9.0, 9.0), ((-9.0, 1.0),)), "flexion"),
    TransformAxis((1.0, 0.0, 0.0), Function((-2.0, 0.5, 2.0), ((0.3, -0.1, 0.02), (0.175, 0.0, 0.1, 0.05))), "flexion"),
    TransformAxis((0.0, 1.0, 0.0), Function((0.0, 1.0), ((0.1,),))),
    TransformAxis((1.0, 0.0, 0.0), Function((-2.0, 2.0), ((0.03, -0.02, 0.01, 0.004),)), "flexion"),
    TransformAxis((0.0, 1.0, 0.0), Function((-2.0, 2.0), ((-0.4, 0.05, -0.02),)), "flexion"),
    TransformAxis((0.0, 0.0, 1.0), Function((0.0, 1.0), ((0.0,),))),
)
SCAPULA = (  # two rotations about skew axes and a translation that follows the first
    TransformAxis((0.2, 0.1, 1.0), Function((-9.0, 9.0), ((-9.0, 1.0),)), "lift"),
    TransformAxis((1.0, 0.3, 0.0), Function((-9.0, 9.0), ((-18.0, 2.0),)), "tilt"),
    TransformAxis((0.0, 1.0, 0.0), Function((-2.0, 2.0), ((0.2, 0.1, 0.05),)), "lift"),
    TransformAxis((1.0, 0.0, 0.0), Function((-2.0, 2.0), ((0.03, 0.2, 0.1),)), "lift"),
    TransformAxis((0.0, 1.0, 0.0), Function((0.0, 1.0), ((0.1,),))),
    TransformAxis((0.3, 0.0, 1.0), Function((-9.0, 9.0), ((-9.0, 1.0),)), "slide"),
)

ROTATION, TRANSLATION = True, False
KINDS: Mapping[str, tuple[bool, ...]] = {
    "free": (TRANSLATION, TRANSLATION, TRANSLATION, ROTATION, ROTATION, ROTATION),
    "ball": (ROTATION, ROTATION, ROTATION),
    "universal": (ROTATION, ROTATION),
    "hinge": (ROTATION,),
    "slider": (TRANSLATION,),
    "planar": (TRANSLATION, TRANSLATION, ROTATION),
    "fixed": (),
}
ODD_AXES = {  # axes that are not x, y, z; the ball's and the free joint's are left-handed
    "free": ((0.6, 0.8, 0.0), (0.0, 0.0, 1.0), (-0.8, 0.6, 0.0)),
    "ball": ((0.0, 0.6, 0.8), (1.0, 0.0, 0.0), (0.0, -0.8, 0.6)),
    "universal": ((0.0, 0.0, 2.0), (0.6, -0.8, 0.0)),
    "hinge": ((0.1, -0.7, 0.4),),
    "slider": ((0.0, -1.0, 0.5),),
    "planar": ((0.0, 0.0, 1.0), (0.6, 0.8, 0.0)),
}
SCENES = [*KINDS, *(f"{kind} odd" for kind in ODD_AXES), "knee", "scapula"]
HOLDERS = ["dynamic", "kinematic", "ground", "kinematic child"]


def random_frame(rng: np.random.Generator) -> Frame:
    """Return a random frame on a body."""
    q = rng.normal(size=4)
    return Frame(tuple(rng.normal(scale=0.3, size=3)), tuple(q / np.linalg.norm(q)))


def make_joint(scene: str, name: str, parent: str, child: str, rng: np.random.Generator) -> Joint:
    """Return a joint of the scene's kind with random frames."""
    frames = random_frame(rng), random_frame(rng)
    if scene in ("knee", "scapula"):
        motion = KNEE if scene == "knee" else SCAPULA
        names = ("flexion",) if scene == "knee" else ("lift", "tilt", "slide")
        own = tuple(Coordinate(f"{name}.{c}", rotational=c != "slide") for c in names)
        parts = tuple(
            TransformAxis(part.axis, part.function, part.coordinate and f"{name}.{part.coordinate}") for part in motion
        )
        return Joint(name, "coordinate", parent, child, *frames, coordinates=own, motion=parts)
    kind, _, odd = scene.partition(" ")
    own = tuple(Coordinate(f"{name}.{i}", rotational=turn) for i, turn in enumerate(KINDS[kind]))
    return Joint(name, kind, parent, child, *frames, axes=ODD_AXES[kind] if odd else (), coordinates=own)


@dataclass
class Jointed:
    """Compiled model in some pose."""

    model: Model
    joints: JointTables
    rows: Rows
    names: list[str]
    units: list[str]
    position: Floats
    quaternion: Floats
    twist: Floats
    coordinate: Floats
    speed: Floats
    fills: list[Callable[[Jointed], None]]

    @property
    def rotation(self) -> Floats:
        return np.array([orientation_matrix(q) for q in self.quaternion])

    def set_coordinates(self, coordinate: Floats, speed: Floats | None = None) -> None:
        """Set the coordinates and the poses of the bodies."""
        self.coordinate[:] = coordinate
        self.speed[:] = 0.0 if speed is None else speed
        poses_from_coordinates(self.joints, self.coordinate, self.speed, self.position, self.quaternion, self.twist)

    def fill(self) -> None:
        """Update coordinates and all rows to the present pose."""
        pose_joints(self.joints, self.position, self.rotation, self.coordinate)
        coordinates_from_poses(self.joints, self.twist, self.coordinate, self.speed)
        fill_joint_rows(self.joints, self.rows, STEP)
        for fill in self.fills:
            fill(self)
        fill_prescribed_motion(self.joints, self.twist, self.rows)

    def row_velocity(self, twist: Floats) -> Floats:
        """Return J v + offset of every row; the offset belongs to the twist at which the rows were filled."""
        rows = self.rows
        u = rows.offset.copy()
        for k in range(len(u)):
            for e in range(rows.first[k], rows.first[k + 1]):
                u[k] += rows.jacobian[e] @ twist[rows.body[e]]
        return u

    def moved_along(self, twist: Floats, time: float) -> Jointed:
        """Return a copy whose bodies have moved with their twists for a time, with its own rows."""
        quaternion = np.array(
            [
                quaternion_product(*rotation_exponential(*(time * motion[3:])), *q)
                for motion, q in zip(twist, self.quaternion, strict=True)
            ]
        )
        other = Jointed(**(self.__dict__ | {"quaternion": quaternion}))
        other.position = self.position + time * twist[:, :3]
        other.coordinate, other.speed, other.twist = self.coordinate.copy(), self.speed.copy(), twist.copy()
        other.rows = Rows(*(array.copy() for array in self.rows))
        other.fill()
        return other

    def slope(self, value: Callable[[Jointed], Floats], twist: Floats) -> Floats:
        """Return the rate of a value as the bodies move with their twists."""
        return (value(self.moved_along(twist, PROBE)) - value(self.moved_along(twist, -PROBE))) / (2.0 * PROBE)


def joint_errors(scene: Jointed) -> Floats:
    """Return C of every joint row, from its target c = -(alpha / h) C."""
    joints = scene.joints
    alpha = np.repeat(joints.alpha, np.diff(joints.row_first))
    return -STEP / alpha * scene.rows.c[: joints.row_ranges[1], 0]


def compile_scene(
    model: Model,
    driven: Collection[str] = (),
    fills: list[Callable[[Jointed], None]] | None = None,
    seed: int = 0,
    as_one: bool = False,
) -> Jointed:
    """Return a model with random body poses."""
    rng = np.random.default_rng(seed)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    com = np.array([body.center_of_mass for body in model.bodies])
    kinematic = np.array([body.kinematic for body in model.bodies])
    joints, entries, names, units = compile_joints(model, index, com, kinematic, STEP, driven, driven if as_one else ())
    rows = make_rows(np.array(entries, np.int64))
    init_joint_rows(joints, rows)
    count = len(index)
    quaternion = rng.normal(size=(count, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    size = len(model.coordinates)
    return Jointed(
        model, joints, rows, names, units, rng.normal(size=(count, 3)), quaternion, rng.normal(size=(count, 6)),
        np.zeros(size), np.zeros(size), fills or [],
    )  # fmt: skip


def make_pair(scene: str, holder: str = "dynamic", seed: int = 0) -> Jointed:
    """Return two bodies and one joint; `holder` is the kind of the parent (or the child)."""
    rng = np.random.default_rng(seed)
    place = tuple(rng.normal(scale=0.1, size=3)), tuple(rng.normal(scale=0.1, size=3))
    link = Body("link", 1.0, place[0], kinematic=holder == "kinematic")
    limb = Body("limb", 1.0, place[1], kinematic=holder == "kinematic child")
    joint = make_joint(scene, "joint", GROUND if holder == "ground" else "link", "limb", rng)
    return compile_scene(Model("pair", (link, limb), (joint,)), seed=seed)


def make_coupled(first: str, second: str, *, shared: bool, kinematic: bool = False, seed: int = 0) -> Jointed:
    """Return two joints, in a chain or separate; the second's last coordinate is coupled to the first's."""
    rng = np.random.default_rng(seed)
    bodies = tuple(Body(f"body{i}", 1.0, tuple(rng.normal(scale=0.1, size=3)), kinematic=kinematic and i == 0)
                   for i in range(3 if shared else 4))  # fmt: skip
    joints = (
        make_joint(first, "one", "body0", "body1", rng),
        make_joint(second, "two", "body1" if shared else "body2", "body2" if shared else "body3", rng),
    )
    curve = Function((-1.0, 1.0), ((0.2, 0.5, -0.3, 0.1),))
    coupling = Coupling("tie", joints[1].coordinates[-1].name, joints[0].coordinates[0].name, curve)
    model = Model("coupled", bodies, joints, couplings=(coupling,))
    return compile_scene(
        model, fills=[lambda s: fill_coupling_rows(s.joints, s.twist, s.coordinate, s.rows, STEP)], seed=seed
    )


def unit_twists(bodies: int) -> Floats:
    """Return unit twists: every body moving along or rotating about every axis, one at a time."""
    return np.eye(6 * bodies).reshape(-1, bodies, 6)

"""Common workload: the human and the chains that every engine of the benchmark simulates.

The human has 21 segments, 20 joints (10 balls, 8 universals, 2 hinges) and 41 markers; feet and toes stand on a plane
raised by 1 mm so that they are always in contact. Its dimensions are round numbers, not anatomy (`borelli.human` is
anatomical). At rest every body frame is at its segment's center of mass, parallel to the world: x forward, y left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np

from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Marker, Model, Shape, Softness, Surface, Vector

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
AXIS_NAMES = {X: "x", Y: "y", Z: "z"}
ROOT = "pelvis"
GROUND_HEIGHT = 0.001
"""Height of the ground above the soles at rest [m]: every contact of the motion stays closed."""
MOTOR_TORQUE = 5.0
"""Torque limit of the motors of the full job [N m]."""

# ODE's global defaults, used with all engines
JOINT_SOFTNESS = Softness(erp=0.2, cfm=1e-5)
MARKER_SOFTNESS = Softness(erp=0.2, cfm=1e-4)
CONTACT_ERP, CONTACT_CFM = 0.3, 1e-5

HARD_JOINT = Softness(erp=1.0)
"""Hard joints for torque recovery: the complete error is corrected each step."""

LINK_LENGTH, LINK_WIDTH, LINK_MASS = 0.2, 0.05, 1.0
CHAIN_STEP = 1.0 / 240.0
"""[s]"""


@dataclass(frozen=True)
class Segment:
    """One row of the table. Positions [m] are in the world, at rest."""

    name: str
    parent: str
    mass: float
    center: Vector
    joint: str
    anchor: Vector
    axes: tuple[Vector, ...] = ()
    half: Vector | None = None
    """Half extents [m] of a box; None for a capsule."""
    radius: float = 0.0
    length: float = 0.0
    """Length of the cylindrical part of a capsule [m]."""
    along: int = 2
    """Axis of a capsule: 0, 1 or 2 for x, y or z."""

    @property
    def in_contact(self) -> bool:
        """True for feet and toes, which are in contact with the ground."""
        return self.name.endswith(("_foot", "_toes"))

    @property
    def degrees_of_freedom(self) -> int:
        """Number of angles of its joint."""
        return len(self.axes) or 3

    @property
    def leg(self) -> bool:
        """True if the squat moves the segment."""
        return self.name.endswith(("_thigh", "_shin", "_foot", "_toes"))


def _box(
    name: str, parent: str, center: Vector, half: Vector, mass: float, joint: str, anchor: Vector, *axes: Vector
) -> Segment:
    return Segment(name, parent, mass, center, joint, anchor, axes, half=half)


def _capsule(
    name: str, parent: str, start: Vector, end: Vector, radius: float, mass: float, joint: str, *axes: Vector
) -> Segment:
    """Return a capsule from its joint at `start` to `end`; each cap extends half a radius beyond."""
    a, b = np.array(start), np.array(end)
    length = max(float(np.linalg.norm(b - a)) - radius, 0.02)
    x, y, z = ((a + b) / 2).tolist()
    along = int(np.argmax(np.abs(b - a)))
    return Segment(name, parent, mass, (x, y, z), joint, start, axes, radius=radius, length=length, along=along)


def _arm(side: str, y: float) -> list[Segment]:
    clavicle, upper, fore = f"{side}_clavicle", f"{side}_upper_arm", f"{side}_forearm"
    outer = 0.18 * y
    return [
        _capsule(clavicle, "chest", (0, 0.03 * y, 1.43), (0, outer, 1.43), 0.03, 1.0, "ball"),
        _capsule(upper, clavicle, (0, outer, 1.43), (0, outer, 1.15), 0.045, 2.0, "ball"),
        _capsule(fore, upper, (0, outer, 1.15), (0, outer, 0.90), 0.035, 1.2, "universal", Y, Z),
        _box(f"{side}_hand", fore, (0, outer, 0.81), (0.04, 0.015, 0.09), 0.45, "universal", (0, outer, 0.90), Y, X),
    ]


def _leg(side: str, y: float) -> list[Segment]:
    thigh, shin, foot = f"{side}_thigh", f"{side}_shin", f"{side}_foot"
    hip = 0.09 * y
    return [
        _capsule(thigh, ROOT, (0, hip, 0.92), (0, hip, 0.50), 0.07, 8.0, "ball"),
        _capsule(shin, thigh, (0, hip, 0.50), (0, hip, 0.08), 0.05, 3.4, "universal", Y, Z),
        _box(foot, shin, (0.04, hip, 0.04), (0.10, 0.045, 0.04), 0.9, "universal", (0, hip, 0.08), Y, X),
        _box(f"{side}_toes", foot, (0.175, hip, 0.025), (0.035, 0.045, 0.025), 0.2, "hinge", (0.14, hip, 0.025), Y),
    ]


@cache
def segments() -> tuple[Segment, ...]:
    """Return the 21 segments, parents before children, the root first."""
    trunk = [
        _box(ROOT, GROUND, (0, 0, 0.98), (0.09, 0.14, 0.08), 9.0, "free", (0, 0, 0.98)),
        _capsule("abdomen", ROOT, (0, 0, 1.06), (0, 0, 1.22), 0.07, 8.0, "ball"),
        _box("chest", "abdomen", (0, 0, 1.34), (0.09, 0.14, 0.12), 14.0, "ball", (0, 0, 1.22)),
        _capsule("neck", "chest", (0, 0, 1.46), (0, 0, 1.56), 0.04, 1.2, "ball"),
        _capsule("head", "neck", (0, 0, 1.56), (0, 0, 1.75), 0.08, 4.5, "ball"),
    ]
    arms = _arm("left", 1.0) + _arm("right", -1.0)
    legs = _leg("left", 1.0) + _leg("right", -1.0)
    return tuple(trunk + arms + legs)


@cache
def markers() -> tuple[tuple[str, Vector], ...]:
    """Return the 41 markers: segment and offset from its center [m]."""
    offsets: list[tuple[str, Vector]] = []

    def add(segment: str, *positions: Vector) -> None:
        offsets.extend((segment, position) for position in positions)

    add(ROOT, (0.09, 0.12, 0.06), (0.09, -0.12, 0.06), (-0.09, 0.05, 0.06), (-0.09, -0.05, 0.06))
    add("abdomen", (-0.07, 0, 0))
    add("chest", (-0.09, 0, -0.05), (0.09, 0, 0.10), (0.09, 0, -0.03))
    add("neck", (-0.04, 0, 0))  # determines the axial rotation of the neck
    add("head", (0.07, 0.05, 0.04), (0.07, -0.05, 0.04), (-0.07, 0.05, 0.04), (-0.07, -0.05, 0.04))
    for side, y in (("left", 1.0), ("right", -1.0)):
        add(f"{side}_clavicle", (0, 0.06 * y, 0.03))
        add(f"{side}_upper_arm", (0, 0.045 * y, 0.04), (0.04, 0.02 * y, -0.06))
        add(f"{side}_forearm", (0, 0.035 * y, 0.10), (0.035, 0, -0.10), (-0.035, 0, -0.10))
        add(f"{side}_hand", (0.03, 0.015 * y, 0), (-0.03, 0.015 * y, -0.06))
        add(f"{side}_thigh", (0, 0.07 * y, 0.02), (0.06, 0.02 * y, -0.15))
        add(f"{side}_shin", (0, 0.05 * y, 0.05), (0, 0.05 * y, -0.19))
        add(f"{side}_foot", (-0.10, 0, 0))
        add(f"{side}_toes", (0.035, 0.02 * y, 0.02))
    return tuple(offsets)


def human(joint_softness: Softness = JOINT_SOFTNESS) -> Model:
    """Return the human of the workload; its root has no joint."""
    # a pair adds the compliances of its two surfaces, so each has half
    surface = Surface(friction=1.0, softness=Softness(erp=CONTACT_ERP, cfm=CONTACT_CFM / 2))
    centers = {segment.name: segment.center for segment in segments()}
    return Model(
        name="benchmark human",
        bodies=tuple(_body(segment, surface) for segment in segments()),
        joints=tuple(_joint(s, centers[s.parent], joint_softness) for s in segments() if s.joint != "free"),
        markers=tuple(Marker(f"m{k}", name, position) for k, (name, position) in enumerate(markers())),
        ground=(Shape("plane", frame=Frame((0.0, 0.0, GROUND_HEIGHT)), surface=surface),),
    )


def chain(links: int, joint_softness: Softness = JOINT_SOFTNESS) -> Model:
    """Return a chain of links with ball joints along x, its first joint at the origin of the ground."""
    half: Vector = (LINK_LENGTH / 2, LINK_WIDTH / 2, LINK_WIDTH / 2)
    bodies, joints = [], []
    for k in range(links):
        parent = GROUND if k == 0 else f"link{k - 1}"
        center, anchor = ((k + 0.5) * LINK_LENGTH, 0.0, 0.0), (k * LINK_LENGTH, 0.0, 0.0)
        link = Segment(f"link{k}", parent, LINK_MASS, center, "ball", anchor, half=half)
        bodies.append(_body(link, Surface()))
        ends = Frame((0.0 if k == 0 else half[0], 0.0, 0.0)), Frame((-half[0], 0.0, 0.0))
        coordinates = tuple(Coordinate(f"{link.name}_{axis}") for axis in "xyz")
        joints.append(
            Joint(link.name, "ball", parent, link.name, *ends, coordinates=coordinates, softness=joint_softness)
        )
    return Model(name=f"chain of {links}", bodies=tuple(bodies), joints=tuple(joints))


def _body(segment: Segment, surface: Surface) -> Body:
    if segment.half is not None:
        shape = Shape("box", segment.half, surface=surface, collides=segment.in_contact)
    else:
        size = (segment.radius, segment.length / 2)
        shape = Shape("capsule", size, Frame(orientation=_FROM_Z[segment.along]), surface=surface, collides=False)
    return body_from_shapes(segment.name, (shape,), mass=segment.mass, frame=Frame(segment.center))


_FROM_Z = {  # rotations of z to x, y, z
    0: (sqrt(0.5), 0.0, sqrt(0.5), 0.0),
    1: (sqrt(0.5), -sqrt(0.5), 0.0, 0.0),
    2: (1.0, 0.0, 0.0, 0.0),
}


def _joint(segment: Segment, parent_center: Vector, softness: Softness) -> Joint:
    axes = segment.axes or (X, Y, Z)
    return Joint(
        name=segment.name,
        kind=segment.joint,
        parent=segment.parent,
        child=segment.name,
        parent_frame=Frame(_difference(segment.anchor, parent_center)),
        child_frame=Frame(_difference(segment.anchor, segment.center)),
        axes=axes,
        coordinates=tuple(Coordinate(f"{segment.name}_{AXIS_NAMES[axis]}") for axis in axes),
        softness=softness,
    )


def _difference(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]

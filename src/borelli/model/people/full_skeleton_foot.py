"""Foot of the full skeleton: talus between the axes of ankle and subtalar joint, foot, and five toes.

The two axes are oblique, as measured; toes rotate about the transverse axis, and the great toe has a second joint. The
toes' part of the foot's mass is divided by volume. The sole is on the ground.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from math import cos, radians, sin, tan

import numpy as np

from borelli.model.inertia import MassProperties, shape_mass
from borelli.model.model import Frame, Shape, Vector
from borelli.model.people.anthropometry import Proportions, table
from borelli.model.people.segment_builder import NOT_Y, JointRow, Segment, bone, limb, offset, rod
from borelli.model.transforms import Array, vector

TOES = ("toe_1", "toe_2", "toe_3", "toe_4", "toe_5")


def foot(p: Proportions, letter: str, side: float, ankle: Array) -> list[Segment]:
    """Return talus, foot and toes of a standing leg."""
    data = table("full_skeleton")["foot"]
    heel = ankle * [1.0, 1.0, 0.0] - offset(x=p.length["ankle_from_heel"])
    length, breadth = p.length["foot_length"], p.length["foot_breadth"]

    def point(along: float, across: float, height: float) -> Array:
        return heel + offset(x=along * length, y=-side * across * breadth, z=height)

    toes: list[Segment] = []
    for name in TOES:
        toe = data[name]
        radius = toe["radius"] * breadth
        along, across = toe["joint"]
        knuckle, end = point(along, across, radius), point(toe["tip"], across, radius)
        middle = [point(toe["middle"], across, radius)] if "middle" in toe else []
        for number, (start, end_point) in enumerate(pairwise([knuckle, *middle, end])):
            # the shape extends beyond a joint, but ends at the tip
            flesh = (
                bone(start - offset(x=0.5 * radius), end_point, radius)
                if end_point is end
                else limb(start, end_point, radius)
            )
            toes.append(Segment(f"{name}{'_distal' if number else ''}_{letter}", start, shape_mass(flesh), (flesh,)))
    mass = p.mass_fraction["toes"] * p.segments["foot"]["mass"] * p.mass_scale
    per_volume = mass / sum(toe.solid.mass for toe in toes)
    toes = [replace(toe, solid=toe.solid.scaled(per_volume)) for toe in toes]

    ball = Shape("sphere", (0.0105 * p.height,), Frame(vector(ankle - offset(z=0.4 * data["joint_drop"] * p.height))))
    talus = p.part("foot", table("full_skeleton")["mass_fraction"]["talus"], ball)
    half_height = offset(z=p.length["ankle_height"] / 2.0)  # the table has no height of the center of mass
    whole = p.solid("foot", heel + half_height, heel + half_height + offset(x=length))
    rest = whole - talus - reduce(MassProperties.__add__, (toe.solid for toe in toes))
    below = ankle - offset(z=data["joint_drop"] * p.height)
    return [
        Segment(f"talus_{letter}", ankle, talus, (ball,)),
        Segment(f"foot_{letter}", below, rest, _bones(p, point, below)),
        *toes,
    ]


def joint_rows() -> list[JointRow]:
    """Return the joints of the right foot."""
    data = table("full_skeleton")["foot"]
    rows = [
        JointRow("ankle_*", "hinge", "shank_*", "talus_*", (ankle_axis(),), ("ankle_flexion",)),
        JointRow("subtalar_*", "hinge", "talus_*", "foot_*", (subtalar_axis(),), ("ankle_inversion",)),
    ]
    for name in TOES:
        rows.append(JointRow(f"{name}_*", "hinge", "foot_*", f"{name}_*", (NOT_Y,), (f"{name}_extension",)))
        if "middle" in data[name]:
            last = (f"{name}_ip_*", "hinge", f"{name}_*", f"{name}_distal_*", (NOT_Y,), (f"{name}_ip_extension",))
            rows.append(JointRow(*last))
    return rows


def ankle_axis() -> Vector:
    """Return the axis of the right ankle: positive rotation lifts the toes."""
    data = table("full_skeleton")["foot"]
    axis = np.array([-tan(radians(data["ankle_back"])), -1.0, -tan(radians(data["ankle_down"]))])
    return vector(axis / np.linalg.norm(axis))


def subtalar_axis() -> Vector:
    """Return the axis of the right subtalar joint: positive rotation inverts the foot."""
    data = table("full_skeleton")["foot"]
    up, inward = radians(data["subtalar_up"]), radians(data["subtalar_in"])
    return cos(up) * cos(inward), cos(up) * sin(inward), sin(up)


def _bones(p: Proportions, point: Callable[[float, float, float], Array], below: Array) -> tuple[Shape, ...]:
    """Return heel, instep and metatarsals; heel and metatarsal heads touch the ground."""
    data = table("full_skeleton")
    heel, thin = (p.height * data["bones"][name] for name in ("heel", "foot"))
    length = p.length["foot_length"]
    back = bone(point(0.0, 0.0, heel), point(0.0, 0.0, heel) + offset(x=0.36 * length), heel)
    instep = point(0.45, 0.05, 1.25 * heel)
    shapes = [back, limb(below, instep, 1.3 * thin)]
    for name in TOES:
        along, across = data["foot"][name]["joint"]
        radius = data["foot"][name]["radius"] * p.length["foot_breadth"]
        head = point(along, across, radius)
        root = point(0.45, 0.6 * across, 1.25 * heel - abs(across - 0.35) * 0.5 * heel)
        shapes.append(rod(root, head, radius, float(np.linalg.norm(head - root)) / 2.0))
    return tuple(shapes)

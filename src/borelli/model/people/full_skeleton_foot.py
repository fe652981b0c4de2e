"""The foot of the full skeleton: a talus between the axes of ankle and subtalar joint, the foot, five toes.

The two axes are oblique, as they were measured; toes turn about the transverse axis, and the great toe has a second
joint. The toes share their part of the foot's mass by volume. The sole lies on the ground.
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
    """Talus, foot and toes of a leg that stands."""
    data = table("full_skeleton")["foot"]
    heel = ankle * [1.0, 1.0, 0.0] - offset(x=p.length["ankle_from_heel"])
    length, breadth = p.length["foot_length"], p.length["foot_breadth"]

    def place(along: float, across: float, height: float) -> Array:
        return heel + offset(x=along * length, y=-side * across * breadth, z=height)

    toes: list[Segment] = []
    for name in TOES:
        toe = data[name]
        radius = toe["radius"] * breadth
        along, across = toe["joint"]
        knuckle, end = place(along, across, radius), place(toe["tip"], across, radius)
        middle = [place(toe["middle"], across, radius)] if "middle" in toe else []
        for number, (start, stop) in enumerate(pairwise([knuckle, *middle, end])):
            # a joint is inside the flesh, a tip is its end
            flesh = bone(start - offset(x=0.5 * radius), stop, radius) if stop is end else limb(start, stop, radius)
            toes.append(Segment(f"{name}{'_distal' if number else ''}_{letter}", start, shape_mass(flesh), (flesh,)))
    mass = p.share["toes"] * p.segments["foot"]["mass"] * p.mass_unit
    per_volume = mass / sum(toe.solid.mass for toe in toes)
    toes = [replace(toe, solid=toe.solid.scaled(per_volume)) for toe in toes]

    ball = Shape("sphere", (0.0105 * p.height,), Frame(vector(ankle - offset(z=0.4 * data["joint_drop"] * p.height))))
    talus = p.part("foot", table("full_skeleton")["share"]["talus"], ball)
    half_way = offset(z=p.length["ankle_height"] / 2.0)  # the table does not say how high the centre of mass lies
    whole = p.solid("foot", heel + half_way, heel + half_way + offset(x=length))
    rest = whole - talus - reduce(MassProperties.__add__, (toe.solid for toe in toes))
    below = ankle - offset(z=data["joint_drop"] * p.height)
    return [
        Segment(f"talus_{letter}", ankle, talus, (ball,)),
        Segment(f"foot_{letter}", below, rest, _bones(p, place, below)),
        *toes,
    ]


def joint_rows() -> list[JointRow]:
    """The joints of the right foot."""
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
    """Of the right ankle: turning about it lifts the toes."""
    data = table("full_skeleton")["foot"]
    axis = np.array([-tan(radians(data["ankle_back"])), -1.0, -tan(radians(data["ankle_down"]))])
    return vector(axis / np.linalg.norm(axis))


def subtalar_axis() -> Vector:
    """Of the right foot: turning about it turns the sole inward."""
    data = table("full_skeleton")["foot"]
    up, inward = radians(data["subtalar_up"]), radians(data["subtalar_in"])
    return cos(up) * cos(inward), cos(up) * sin(inward), sin(up)


def _bones(p: Proportions, place: Callable[[float, float, float], Array], below: Array) -> tuple[Shape, ...]:
    """Heel, instep and metatarsals; heel and balls touch the ground."""
    data = table("full_skeleton")
    heel, thin = (p.height * data["bones"][name] for name in ("heel", "foot"))
    length = p.length["foot_length"]
    back = bone(place(0.0, 0.0, heel), place(0.0, 0.0, heel) + offset(x=0.36 * length), heel)
    instep = place(0.45, 0.05, 1.25 * heel)
    shapes = [back, limb(below, instep, 1.3 * thin)]
    for name in TOES:
        along, across = data["foot"][name]["joint"]
        radius = data["foot"][name]["radius"] * p.length["foot_breadth"]
        head = place(along, across, radius)
        root = place(0.45, 0.6 * across, 1.25 * heel - abs(across - 0.35) * 0.5 * heel)
        shapes.append(rod(root, head, radius, float(np.linalg.norm(head - root)) / 2.0))
    return tuple(shapes)

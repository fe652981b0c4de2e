"""Hands and feet of the full skeleton.

A hand hangs from the wrist, thumb forward, palm towards the thigh: a palm, four fingers of three phalanges, and a thumb
with its metacarpal. A finger has two degrees of freedom at the knuckle and one at each joint after it. The thumb's
metacarpal has two, as its saddle joint has; the joints after it flex about the same axis.

A foot stands on its sole: the talus between the axes of ankle and subtalar joint, which are oblique, as measured; the
foot; and five toes, which rotate about the transverse axis. The great toe has a second joint.

The mass of fingers or toes is a part of the hand's or foot's, divided by volume; palm and foot have the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from math import cos, radians, sin, tan

import numpy as np

from borelli.model.inertia import MassProperties, shape_mass
from borelli.model.model import Frame, Shape, Vector
from borelli.model.transforms import Array, X, Y, vector
from borelli.people.anthropometry import Proportions, table
from borelli.people.segment_builder import NOT_Y, JointRow, Segment, bone, box, limb, offset, rod

FINGERS = ("index", "middle", "ring", "little")
PHALANGES = {"thumb": ("metacarpal", "proximal", "distal")} | dict.fromkeys(FINGERS, ("proximal", "middle", "distal"))
KNUCKLES = {"thumb": ("cmc", "mcp", "ip")} | dict.fromkeys(FINGERS, ("mcp", "pip", "dip"))
TOES = ("toe_1", "toe_2", "toe_3", "toe_4", "toe_5")


def hand(p: Proportions, letter: str, side: float, wrist: Array) -> list[Segment]:
    """Return the palm, the fourteen phalanges and the metacarpal of the thumb."""
    data = table("full_skeleton")["hand"]
    breadth = p.height * data["breadth"]
    middle = data["middle"]
    length = p.length["hand"] / (middle["knuckle"][0] + sum(middle["lengths"]))  # so that its tip is that of the hand

    def point(down: float, across: float) -> Array:
        return wrist + offset(x=across * breadth, z=-down * length)

    down = np.array([0.0, 0.0, -1.0])
    fingers: list[Segment] = []
    bones: list[Shape] = []
    for name in FINGERS:
        knuckle = point(*data[name]["knuckle"])
        fingers += _digit(name, letter, knuckle, down, length, breadth)
        bones.append(limb(point(*data[name]["base"]), knuckle, 0.8 * data[name]["radii"][0] * breadth))
    pointing = thumb_axes(side)[0]
    fingers += _digit("thumb", letter, point(*data["thumb"]["base"]), pointing, length, breadth)
    bones.append(limb(point(0.05, -0.18), point(0.05, 0.18), 0.13 * breadth))

    mass = p.segments["hand"]["mass"] * p.mass_scale
    fraction = table("full_skeleton")["mass_fraction"]["fingers"]
    fingers = _divided_by_volume(fraction * mass, fingers)
    flesh = box(point(middle["knuckle"][0], 0.0), wrist, (0.5 * breadth, 0.16 * breadth))
    palm = p.part("hand", 1.0 - fraction, flesh)
    return [Segment(f"hand_{letter}", wrist, palm, tuple(bones)), *fingers]


def thumb_axes(side: float) -> tuple[Array, Array, Array]:
    """Return the direction of the thumb at rest, its flexion axis and its abduction axis (out of the palm's plane).

    Flexion moves its tip across the palm; `side` is the sign of the hand's y.
    """
    data = table("full_skeleton")["hand"]
    away, out = radians(data["thumb_away"]), radians(data["thumb_out"])
    inward = -side
    points = np.array([sin(away) * cos(out), inward * sin(away) * sin(out), -cos(away)])
    across = np.array([-1.0, inward * 0.5, 0.0])  # direction of the tip in flexion
    across -= (across @ points) * points
    across /= np.linalg.norm(across)
    # rotation about d x u moves d towards u; rotation about -u moves d towards d x u, which a mirror image reverses
    return points, np.cross(points, across), -inward * across


def hand_joints() -> list[JointRow]:
    """Return the joints of the right hand's fingers."""
    _, flexion, abduction = thumb_axes(-1.0)
    axes = {name: (X, NOT_Y if name in ("index", "middle") else Y) for name in FINGERS}
    rows = []
    for name, own_axes in (axes | {"thumb": (vector(flexion), vector(abduction))}).items():
        before = "hand_*"
        for phalanx, knuckle in zip(PHALANGES[name], KNUCKLES[name], strict=True):
            body, joint = f"{name}_{phalanx}_*", f"{name}_{knuckle}"
            first = before == "hand_*"
            angles = (f"{joint}_flexion", f"{joint}_abduction")[: 2 if first else 1]
            kind = "universal" if first else "hinge"
            rows.append(JointRow(f"{joint}_*", kind, before, body, own_axes[: len(angles)], angles))
            before = body
    return rows


def _digit(name: str, letter: str, knuckle: Array, direction: Array, length: float, breadth: float) -> list[Segment]:
    data = table("full_skeleton")["hand"]
    segments = []
    start = knuckle
    for phalanx, part, radius in zip(PHALANGES[name], data[name]["lengths"], data[name]["radii"], strict=True):
        end = start + part * length * direction
        thickness = radius * breadth
        segments.append(_phalanx(f"{name}_{phalanx}_{letter}", start, end, thickness, direction, phalanx == "distal"))
        start = end
    return segments


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
            part = f"{name}{'_distal' if number else ''}_{letter}"
            toes.append(_phalanx(part, start, end_point, radius, offset(x=1.0), end_point is end))
    mass = p.mass_fraction["toes"] * p.segments["foot"]["mass"] * p.mass_scale
    toes = _divided_by_volume(mass, toes)

    ball = Shape("sphere", (0.0105 * p.height,), Frame(vector(ankle - offset(z=0.0044 * p.height))))
    talus = p.part("foot", table("full_skeleton")["mass_fraction"]["talus"], ball)
    half_height = offset(z=p.length["ankle_height"] / 2.0)  # the table has no height of the center of mass
    whole = p.solid("foot", heel + half_height, heel + half_height + offset(x=length))
    rest = whole - talus - reduce(MassProperties.__add__, (toe.solid for toe in toes))
    below = ankle - offset(z=data["joint_drop"] * p.height)
    return [
        Segment(f"talus_{letter}", ankle, talus, (ball,)),
        Segment(f"foot_{letter}", below, rest, _foot_bones(p, point, below)),
        *toes,
    ]


def foot_joints() -> list[JointRow]:
    """Return the joints of the right foot."""
    data = table("full_skeleton")["foot"]
    rows = [
        JointRow("ankle_*", "hinge", "shank_*", "talus_*", (ankle_axis(),), ("ankle_flexion",)),
        JointRow("subtalar_*", "hinge", "talus_*", "foot_*", (subtalar_axis(),), ("ankle_inversion",)),
    ]
    for name in TOES:
        rows.append(JointRow(f"{name}_*", "hinge", "foot_*", f"{name}_*", (NOT_Y,), (f"{name}_extension",)))
        if "middle" in data[name]:
            ends = f"{name}_*", f"{name}_distal_*"
            rows.append(JointRow(f"{name}_ip_*", "hinge", *ends, (NOT_Y,), (f"{name}_ip_extension",)))
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


def _foot_bones(p: Proportions, point: Callable[[float, float, float], Array], below: Array) -> tuple[Shape, ...]:
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


def _phalanx(name: str, start: Array, end: Array, radius: float, direction: Array, at_tip: bool) -> Segment:
    """Return a part of a finger or toe; its shape extends beyond a joint, but ends at the tip."""
    shape = bone(start - 0.5 * radius * direction, end, radius) if at_tip else limb(start, end, radius)
    return Segment(name, start, shape_mass(shape), (shape,))


def _divided_by_volume(mass: float, segments: Sequence[Segment]) -> list[Segment]:
    per_volume = mass / sum(segment.solid.mass for segment in segments)
    return [replace(segment, solid=segment.solid.scaled(per_volume)) for segment in segments]

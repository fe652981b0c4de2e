"""Hand of the full skeleton: a palm, four fingers of three phalanges, and a thumb with its metacarpal.

It hangs from the wrist, thumb forward, palm towards the thigh. A finger has two degrees of freedom at the knuckle and
one at each joint after it. The thumb's metacarpal has two, as its saddle joint has; the joints after it flex about the
same axis. The fingers' part of the hand's mass is divided by volume; the palm has the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import cos, radians, sin

import numpy as np

from borelli.model.inertia import shape_mass
from borelli.model.model import Shape, Vector
from borelli.model.people.anthropometry import Proportions, table
from borelli.model.people.segment_builder import NOT_Y, JointRow, Segment, bone, box, limb, offset
from borelli.model.transforms import Array, X, Y, vector

FINGERS = ("index", "middle", "ring", "little")
PHALANGES = {"thumb": ("metacarpal", "proximal", "distal")} | dict.fromkeys(FINGERS, ("proximal", "middle", "distal"))
KNUCKLES = {"thumb": ("cmc", "mcp", "ip")} | dict.fromkeys(FINGERS, ("mcp", "pip", "dip"))


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
    per_volume = fraction * mass / sum(segment.solid.mass for segment in fingers)
    fingers = [replace(segment, solid=segment.solid.scaled(per_volume)) for segment in fingers]
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


def joint_rows() -> list[JointRow]:
    """Return the joints of the right hand's fingers."""
    rows = []
    for name in FINGERS:
        to_thumb = name in ("index", "middle")
        first, *others = zip(PHALANGES[name], KNUCKLES[name], strict=True)
        body, joint = f"{name}_{first[0]}_*", f"{name}_{first[1]}"
        angles = (f"{joint}_flexion", f"{joint}_abduction")
        rows.append(JointRow(f"{joint}_*", "universal", "hand_*", body, (X, NOT_Y if to_thumb else Y), angles))
        rows += _after(name, body, others, X)
    _, flexion, abduction = thumb_axes(-1.0)
    angles = ("thumb_cmc_flexion", "thumb_cmc_abduction")
    axes = (vector(flexion), vector(abduction))
    rows.append(JointRow("thumb_cmc_*", "universal", "hand_*", "thumb_metacarpal_*", axes, angles))
    rest = list(zip(PHALANGES["thumb"], KNUCKLES["thumb"], strict=True))[1:]
    return [*rows, *_after("thumb", "thumb_metacarpal_*", rest, axes[0])]


def _after(name: str, before: str, parts: Iterable[tuple[str, str]], axis: Vector) -> list[JointRow]:
    rows = []
    for phalanx, knuckle in parts:
        body, joint = f"{name}_{phalanx}_*", f"{name}_{knuckle}"
        rows.append(JointRow(f"{joint}_*", "hinge", before, body, (axis,), (f"{joint}_flexion",)))
        before = body
    return rows


def _digit(name: str, letter: str, knuckle: Array, direction: Array, length: float, breadth: float) -> list[Segment]:
    data = table("full_skeleton")["hand"]
    segments = []
    start = knuckle
    for phalanx, part, radius in zip(PHALANGES[name], data[name]["lengths"], data[name]["radii"], strict=True):
        end = start + part * length * direction
        thickness = radius * breadth
        # the shape extends beyond a joint, but ends at the tip
        flesh = (
            bone(start - 0.5 * thickness * direction, end, thickness)
            if phalanx == "distal"
            else limb(start, end, thickness)
        )
        segments.append(Segment(f"{name}_{phalanx}_{letter}", start, shape_mass(flesh), (flesh,)))
        start = end
    return segments

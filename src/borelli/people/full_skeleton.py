"""Full skeleton: 75 bodies, 74 joints, 118 internal degrees of freedom, with vertebrae, fingers and toes.

It stands as `human` does, on z = 0, x forward, y left, arms hanging, thumbs forward, and has the same lengths, masses
and ranges where both have a part; the finer parts are from tables in `data/full_skeleton.toml`. Sizes in the code, as
fractions of stature, are those of bones for drawing and contact. The numbers of joints are those of the skeleton on
which impulse-based control was first shown (Weinstein, Guendelman and Fedkiw 2008):

    15 balls        hips and shoulders; 11 of the spine
    14 universals   wrists, collar bones, thumbs' saddle joints, knuckles
    45 hinges       knees, elbows, forearms (pronation), ankles, subtalar joints; 20 of fingers; 12 of toes;
                    skull on atlas (flexion), atlas on axis (rotation), jaw

Angles have the signs, and where both have them the names, of `human`. Those of the spine are named after the vertebrae
they connect; fingers flex towards the palm, a thumb across it; `abduction` moves a finger away from the middle finger
(the middle finger towards the thumb) and the thumb out of the palm's plane; toes extend up; a jaw opens.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from borelli.model.inertia import mass_of_shapes
from borelli.model.model import Frame, Model, Shape, Vector
from borelli.model.transforms import X, Y, Z, vector
from borelli.model.validate import validate
from borelli.people import full_skeleton_spine as spine_bones
from borelli.people.anthropometry import Proportions, check_person, table
from borelli.people.full_skeleton_hand_foot import FINGERS, foot, foot_joints, hand, hand_joints
from borelli.people.full_skeleton_spine import Spine, spine_of
from borelli.people.segment_builder import NOT_X, NOT_Y, SIDES, JointRow, Segment, bone, limb, offset, person
from borelli.people.skeleton_muscles import add_skeleton_muscles


def radioulnar_axis() -> Vector:
    """Return the axis of the right forearm, from the ulnar head to the radial head: positive rotation pronates."""
    data = table("full_skeleton")["forearm"]
    axis = np.array(data["radial_head"]) - data["ulnar_head"]
    return vector(axis / np.linalg.norm(axis))


JOINTS = tuple(JointRow(*row) for row in (
    ("jaw", "hinge", "head", "jaw", (Y,), ("jaw_opening",)),
    (
        "clavicle_*", "universal", "T1_T4", "collar_*", (Z, NOT_X), ("clavicle_protraction", "clavicle_elevation"),
    ),
    (
        "shoulder_*", "ball", "collar_*", "upper_arm_*", (NOT_Y, X, Z),
        ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation"),
    ),
    ("elbow_*", "hinge", "upper_arm_*", "ulna_*", (NOT_Y,), ("elbow_flexion",)),
    ("radioulnar_*", "hinge", "ulna_*", "radius_*", (radioulnar_axis(),), ("elbow_pronation",)),
    ("wrist_*", "universal", "radius_*", "hand_*", (X, NOT_Y), ("wrist_flexion", "wrist_deviation")),
    ("hip_*", "ball", "pelvis", "thigh_*", (NOT_Y, X, Z), ("hip_flexion", "hip_adduction", "hip_rotation")),
    ("knee_*", "hinge", "thigh_*", "shank_*", (Y,), ("knee_flexion",)),
))  # fmt: skip


def full_skeleton(mass: float = 75.0, height: float = 1.75, sex: str = "male", *, muscles: bool = False) -> Model:
    """Return a standing skeleton with the mass of the whole body on its bones, on level ground.

    Args:
        mass: Body mass [kg].
        height: Stature [m].
        sex: Sex ("male" or "female") that selects the anthropometric tables.
        muscles: Add the muscles of `add_muscles`: 137 of each side.

    Raises:
        SettingsError: if an argument is out of range.

    Examples:
        >>> model = bo.full_skeleton(mass=72.6, height=1.78)
        >>> round(model.mass, 1)
        72.6
    """
    check_person(mass, height, sex)
    segments = _segments(Proportions(mass, height, sex))
    rows = [*spine_bones.joint_rows(), *JOINTS, *hand_joints(), *foot_joints()]
    model = person(f"full skeleton, {sex}, {mass:g} kg, {height:g} m", segments, rows, _ranges())
    return add_skeleton_muscles(model, height=height) if muscles else validate(model)


def _segments(p: Proportions) -> list[Segment]:
    """Return all 75 segments, parents before children."""
    spine = spine_of(p)
    collars = [_collar(p, spine, letter, side) for letter, side in SIDES]
    both = collars[0].solid + collars[1].solid
    arms = [segment for letter, side in SIDES for segment in _arm(p, letter, side)]
    legs = [segment for letter, side in SIDES for segment in _leg(p, letter, side)]
    neck = spine_bones.neck(p, spine)
    trunk = spine_bones.trunk(p, spine, both)
    return [_pelvis(p, spine), *trunk, *neck, *_head(p, spine), *collars, *arms, *legs]


def _pelvis(p: Proportions, spine: Spine) -> Segment:
    hip, navel = (offset(z=p.length[f"{name}_height"]) for name in ("hip", "navel"))
    radius, h = _radius(p, "pelvis"), p.height
    shapes = [bone(spine.sacrum + offset(z=radius), spine.sacrum + offset(x=-0.022 * h, z=-0.062 * h), 1.2 * radius)]
    for _, side in SIDES:
        joint = hip + offset(y=side * p.length["hip_half_width"])
        sacral = spine.sacrum + offset(x=-0.006 * h, y=side * 0.022 * h, z=-0.012 * h)
        crest = hip + offset(x=-0.004 * h, y=side * 0.076 * h, z=0.066 * h)
        spine_front = hip + offset(x=0.030 * h, y=side * 0.068 * h, z=0.040 * h)
        pubis = hip + offset(x=0.032 * h, y=side * 0.008 * h, z=-0.012 * h)
        seat = hip + offset(x=-0.012 * h, y=side * 0.033 * h, z=-0.050 * h)
        ring = [
            (sacral, crest), (crest, spine_front), (spine_front, joint), (joint, pubis), (joint, seat), (seat, pubis),
            (sacral, joint),
        ]  # fmt: skip
        shapes += [limb(a, b, 0.8 * radius) for a, b in ring]
    return Segment("pelvis", hip, p.solid("lower_trunk", navel, hip), tuple(shapes))


def _head(p: Proportions, spine: Spine) -> list[Segment]:
    """Return skull and jaw; the mass of the head without neck and jaw fills an ellipsoid of the head's size."""
    data, h = table("full_skeleton")["head"], p.height
    at = spine.skull
    hinge = np.array([at[0] + data["jaw_ahead"] * h, 0.0, data["jaw_height"] * h])
    chin = np.array([at[0] + data["chin_ahead"] * h, 0.0, h - p.length["head"]])
    radius = _radius(p, "jaw")
    ends = [chin + offset(y=side * 0.012 * h, z=radius) for _, side in SIDES]
    corners = [hinge + offset(x=0.006 * h, y=side * data["jaw_half_width"] * h, z=-0.030 * h) for _, side in SIDES]
    condyles = [hinge + offset(y=side * data["jaw_half_width"] * h) for _, side in SIDES]
    arch = [*zip(condyles, corners, strict=True), *zip(corners, ends, strict=True), tuple(ends)]
    shapes = tuple(limb(a, b, radius) for a, b in arch)
    even = mass_of_shapes(shapes)
    fraction = table("full_skeleton")["mass_fraction"]["jaw"]
    jaw = even.scaled(fraction * p.segments["head"]["mass"] * p.mass_scale / even.mass)
    size = np.array([data["length"] * h, data["breadth"] * h, p.length["head"]]) / 2.0
    flesh = Shape("ellipsoid", vector(size), Frame((float(at[0] + 0.010 * h), 0.0, float(h - size[2]))))
    rest = p.part("head", 1.0 - fraction - p.mass_fraction["neck"], flesh)
    radius_fraction = h * np.array([data["length"] / 2.0, data["breadth"] / 2.0, 0.048])
    skull = Shape(
        "ellipsoid", vector(radius_fraction), Frame((float(at[0] + 0.010 * h), 0.0, float(h - radius_fraction[2])))
    )
    face = Shape(
        "ellipsoid", vector(h * np.array([0.026, 0.030, 0.028])),
        Frame((float(at[0] + 0.036 * h), 0.0, float(0.920 * h))),
    )  # fmt: skip
    return [Segment("head", at, rest, (skull, face)), Segment("jaw", hinge, jaw, shapes)]


def _collar(p: Proportions, spine: Spine, letter: str, side: float) -> Segment:
    h = p.height
    front = spine["T1"].disc + offset(x=table("full_skeleton")["ribs"]["ahead"][0] * h)
    inner = np.array([front[0], side * p.length["clavicle_half_width"], p.length["shoulder_height"]])
    shoulder = p.shoulder(side)
    clavicle = limb(inner, shoulder + offset(x=-0.004 * h, z=0.018 * h), _radius(p, "clavicle"))
    blade = [shoulder + offset(x=-0.008 * h, y=-side * 0.012 * h)]
    blade.append(shoulder + offset(x=-0.035 * h, y=-side * 0.056 * h, z=0.004 * h))
    blade.append(shoulder + offset(x=-0.040 * h, y=-side * 0.042 * h, z=-0.078 * h))
    thick = _radius(p, "scapula")
    scapula = [limb(blade[i], blade[i - 1], thick) for i in range(3)]
    # the mass is mainly that of the muscles around the shoulder, as in `human`
    girdle = limb(inner, shoulder, p.shape["collar"])
    return Segment(
        f"collar_{letter}", inner, p.part("upper_trunk", p.mass_fraction["collar"], girdle), (clavicle, *scapula)
    )


def _arm(p: Proportions, letter: str, side: float) -> list[Segment]:
    shoulder = p.shoulder(side)
    elbow = shoulder - offset(z=p.length["upper_arm"])
    wrist = elbow - offset(z=p.length["forearm"])
    radius_fraction = table("full_skeleton")["mass_fraction"]["radius"]
    forearm = p.solid("forearm", elbow, wrist)
    thin, apart = _radius(p, "forearm"), offset(x=0.010 * p.height)
    radial_head, ulnar_head = (
        elbow + p.length["forearm"] * np.array(table("full_skeleton")["forearm"][name]) * [1.0, -side, 1.0]
        for name in ("radial_head", "ulnar_head")
    )
    ulna = limb(elbow - 0.6 * apart, ulnar_head + offset(z=0.014 * p.height), thin)
    radius = limb(radial_head, wrist + 0.6 * apart, thin)
    return [
        Segment(
            f"upper_arm_{letter}", shoulder, p.solid("upper_arm", shoulder, elbow),
            (limb(shoulder, elbow, _radius(p, "humerus")),),
        ),
        Segment(f"ulna_{letter}", elbow, forearm.scaled(1.0 - radius_fraction), (ulna,)),
        Segment(f"radius_{letter}", radial_head, forearm.scaled(radius_fraction), (radius,)),
        *hand(p, letter, side, wrist),
    ]  # fmt: skip


def _leg(p: Proportions, letter: str, side: float) -> list[Segment]:
    hip, knee, ankle = p.leg(side)
    h = p.height
    femur, tibia = _radius(p, "femur"), _radius(p, "tibia")
    shaft = hip + offset(x=-0.003 * h, y=side * 0.022 * h, z=-0.022 * h)
    fibula = offset(x=-0.006 * h, y=side * 0.016 * h)
    above = offset(z=0.012 * h)  # space for the talus
    return [
        Segment(
            f"thigh_{letter}", hip, p.solid("thigh", hip, knee),
            (limb(hip, shaft, 0.8 * femur), limb(shaft, knee, femur)),
        ),
        Segment(
            f"shank_{letter}", knee, p.solid("shank", knee, ankle),
            (
                limb(knee, ankle + above, tibia),
                bone(knee + fibula - offset(z=0.02 * h), ankle + above + fibula, _radius(p, "fibula")),
            ),
        ),
        *foot(p, letter, side, ankle),
    ]  # fmt: skip


def _radius(p: Proportions, name: str) -> float:
    return float(p.height * table("full_skeleton")["bones"][name])


@cache
def _ranges() -> dict[str, tuple[float, float]]:
    """Return the ranges of motion [deg] of all angles, by name without side."""
    own = table("full_skeleton")["range"]
    fingers = {
        f"{finger}_{angle}": own[angle]
        for finger in FINGERS
        for angle in ("mcp_flexion", "mcp_abduction", "pip_flexion", "dip_flexion")
    }
    return table("human")["range"] | spine_bones.ranges() | fingers | own

"""Human of the Human Dynamic Model (Liu, Cooper and Ballard): 21 bodies, 20 joints, 48 internal degrees of freedom.

It stands upright on z = 0, x forward, y left, arms hanging, thumbs forward; every body frame is parallel to the world
and has its origin at the joint towards the pelvis (the pelvis: midway between the hips). Lengths, masses, inertias
and ranges of motion are from published tables in `data/human.toml`.

Signs of angles are the same on both sides of the body: flexion of the spine, neck and head is forward, bending and
rotation to the left; of shoulder and hip, flexion is forward, adduction and (internal) rotation towards the midline;
knee and elbow flexion close the joint; `ankle_flexion` is dorsiflexion, `ankle_inversion` rotates the sole inward,
`toe_extension` lifts the toes; `wrist_flexion` is towards the palm, `wrist_deviation` towards the thumb;
`elbow_pronation` rotates the palm backward; a clavicle protracts forward, elevates up, rotates its front edge up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from borelli.model.marker_sets import add_marker_set
from borelli.model.model import Frame, Model, Shape
from borelli.model.transforms import X, Y, Z
from borelli.model.validate import validate
from borelli.people.anthropometry import Proportions, check_person, table
from borelli.people.human_muscles import add_muscles
from borelli.people.segment_builder import NOT_X, NOT_Y, SIDES, JointRow, Segment, box, limb, offset, person, slab

# name, kind, parent, child, axes, angles; on the right side for pairs (`*` stands for the side's letter)
JOINTS = (
    ("sacral", "ball", "pelvis", "lower_torso", (Y, NOT_X, Z), ("sacral_flexion", "sacral_bending", "sacral_rotation")),
    (
        "lumbar", "ball", "lower_torso", "upper_torso", (Y, NOT_X, Z),
        ("lumbar_flexion", "lumbar_bending", "lumbar_rotation"),
    ),
    ("thoracic", "ball", "upper_torso", "neck", (Y, NOT_X, Z), ("neck_flexion", "neck_bending", "neck_rotation")),
    ("cervical", "ball", "neck", "head", (Y, NOT_X, Z), ("head_flexion", "head_bending", "head_rotation")),
    (
        "clavicle_*", "ball", "upper_torso", "collar_*", (Z, NOT_X, NOT_Y),
        ("clavicle_protraction", "clavicle_elevation", "clavicle_rotation"),
    ),
    (
        "shoulder_*", "ball", "collar_*", "upper_arm_*", (NOT_Y, X, Z),
        ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation"),
    ),
    ("elbow_*", "universal", "upper_arm_*", "forearm_*", (NOT_Y, Z), ("elbow_flexion", "elbow_pronation")),
    ("wrist_*", "universal", "forearm_*", "hand_*", (X, NOT_Y), ("wrist_flexion", "wrist_deviation")),
    ("hip_*", "ball", "pelvis", "thigh_*", (NOT_Y, X, Z), ("hip_flexion", "hip_adduction", "hip_rotation")),
    ("knee_*", "universal", "thigh_*", "shank_*", (Y, Z), ("knee_flexion", "knee_rotation")),
    ("ankle_*", "universal", "shank_*", "foot_*", (NOT_Y, X), ("ankle_flexion", "ankle_inversion")),
    ("toe_*", "hinge", "foot_*", "toes_*", (NOT_Y,), ("toe_extension",)),
)  # fmt: skip


def human(
    mass: float = 75.0,
    height: float = 1.75,
    sex: str = "male",
    *,
    markers: str | Path | None = None,
    muscles: bool = False,
) -> Model:
    """Return a standing human on level ground.

    Args:
        mass: Body mass [kg].
        height: Stature [m].
        sex: Sex ("male" or "female") that selects the anthropometric tables.
        markers: Marker set: one of `list_marker_sets()`, or the path of a .toml file. Default: no markers.
        muscles: Add the muscles of `add_muscles`: 40 of each leg and 13 of each side of the trunk.

    Raises:
        SettingsError: if an argument is out of range.

    Examples:
        >>> model = bo.human(mass=72.6, height=1.78, sex="female")
        >>> len(model.bodies), len(model.coordinates), round(model.mass, 1)
        (21, 54, 72.6)
    """
    check_person(mass, height, sex)
    segments, rows = _segments(Proportions(mass, height, sex)), map(JointRow._make, JOINTS)
    model = person(f"human, {sex}, {mass:g} kg, {height:g} m", segments, rows, table("human")["range"])
    if markers is not None:
        model = add_marker_set(model, markers)
    return add_muscles(model, height=height) if muscles else validate(model)


def _segments(p: Proportions) -> list[Segment]:
    """Return all 21 segments, parents before children."""
    collars = [_collar(p, letter, side) for letter, side in SIDES]
    arms = [segment for letter, side in SIDES for segment in _arm(p, letter, side)]
    legs = [segment for letter, side in SIDES for segment in _leg(p, letter, side)]
    return [*_trunk(p, collars), *_head(p), *collars, *arms, *legs]


def _trunk(p: Proportions, collars: list[Segment]) -> list[Segment]:
    hip, pelvis_top, navel, xiphion, cervicale = (
        np.array([0.0, 0.0, p.length[f"{name}_height"]])
        for name in ("hip", "pelvis_top", "navel", "xiphion", "cervicale")
    )
    crotch = hip - 0.25 * (pelvis_top - hip)  # the pelvis extends below the hip joints
    both = collars[0].solid + collars[1].solid  # added first, so that the rest of the trunk is exactly symmetric
    upper = p.solid("upper_trunk", cervicale, xiphion) - both
    return [
        Segment("pelvis", hip, p.solid("lower_trunk", navel, hip), (box(crotch, pelvis_top, p.shape["pelvis"]),)),
        Segment(
            "lower_torso", navel, p.solid("middle_trunk", xiphion, navel),
            (box(pelvis_top, xiphion, p.shape["lower_torso"]),),
        ),
        Segment("upper_torso", xiphion, upper, (box(xiphion, cervicale, p.shape["upper_torso"]),)),
    ]  # fmt: skip


def _head(p: Proportions) -> list[Segment]:
    cervicale, base, crown = (
        np.array([0.0, 0.0, z]) for z in (p.length["cervicale_height"], p.length["cranial_base_height"], p.height)
    )
    neck_shape = limb(cervicale, base, p.shape["neck"])
    neck = p.part("head", p.mass_fraction["neck"], neck_shape)
    radius = p.length["head"] / 2.0
    skull = Shape("sphere", (radius,), Frame((0.0, 0.0, p.height - radius)))
    return [
        Segment("neck", cervicale, neck, (neck_shape,)),
        Segment("head", base, p.solid("head", crown, cervicale) - neck, (skull,)),
    ]


def _collar(p: Proportions, letter: str, side: float) -> Segment:
    inner = np.array([0.0, side * p.length["clavicle_half_width"], p.length["shoulder_height"]])
    outer = p.shoulder(side)
    shape = limb(inner, outer, p.shape["collar"])
    return Segment(f"collar_{letter}", inner, p.part("upper_trunk", p.mass_fraction["collar"], shape), (shape,))


def _arm(p: Proportions, letter: str, side: float) -> list[Segment]:
    shoulder = p.shoulder(side)
    elbow = shoulder - offset(z=p.length["upper_arm"])
    wrist = elbow - offset(z=p.length["forearm"])
    fingertip = wrist - offset(z=p.length["hand"])
    return [
        Segment(
            f"upper_arm_{letter}", shoulder, p.solid("upper_arm", shoulder, elbow),
            (limb(shoulder, elbow, p.shape["upper_arm"]),),
        ),
        Segment(
            f"forearm_{letter}", elbow, p.solid("forearm", elbow, wrist), (limb(elbow, wrist, p.shape["forearm"]),)
        ),
        Segment(
            f"hand_{letter}", wrist, p.solid("hand", wrist, fingertip), (box(fingertip, wrist, p.shape["hand"]),)
        ),
    ]  # fmt: skip


def _leg(p: Proportions, letter: str, side: float) -> list[Segment]:
    hip, knee, ankle = p.leg(side)
    sole = ankle * [1.0, 1.0, 0.0]
    heel = sole - offset(x=p.length["ankle_from_heel"])
    ball = heel + offset(x=p.length["ball_from_heel"])
    tip = heel + offset(x=p.length["foot_length"])
    foot_shape = slab(heel, ball, p.length["foot_breadth"], p.length["ankle_height"])
    toes_shape = slab(ball, tip, p.length["foot_breadth"], p.shape["toes_height"])
    half_height = offset(z=p.length["ankle_height"] / 2.0)  # the table has no height of the center of mass
    toes = p.part("foot", p.mass_fraction["toes"], toes_shape)
    toe_joint = ball + offset(z=p.shape["toes_height"] / 2.0)
    return [
        Segment(f"thigh_{letter}", hip, p.solid("thigh", hip, knee), (limb(hip, knee, p.shape["thigh"]),)),
        Segment(f"shank_{letter}", knee, p.solid("shank", knee, ankle), (limb(knee, ankle, p.shape["shank"]),)),
        Segment(f"foot_{letter}", ankle, p.solid("foot", heel + half_height, tip + half_height) - toes, (foot_shape,)),
        Segment(f"toes_{letter}", toe_joint, toes, (toes_shape,)),
    ]

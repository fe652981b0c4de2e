"""Names of coordinates and bodies as the clinic says them: "Right hip internal rotation" for `hip_rotation_r`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from borelli.model.model import Model

SIDES = {"r": "right", "l": "left", "right": "right", "left": "left"}
NAMES = {
    "hip_rotation": "hip internal rotation", "knee_angle": "knee flexion", "knee_rotation": "knee internal rotation",
    "ankle_flexion": "ankle dorsiflexion", "ankle_angle": "ankle dorsiflexion", "ankle_inversion": "foot inversion",
    "subtalar_angle": "foot inversion", "mtp_angle": "toe extension", "shoulder_rotation": "shoulder internal rotation",
    "arm_flex": "shoulder flexion", "arm_add": "shoulder adduction", "arm_rot": "shoulder internal rotation",
    "elbow_flex": "elbow flexion", "elbow_pronation": "forearm pronation", "pro_sup": "forearm pronation",
    "wrist_flex": "wrist flexion", "wrist_dev": "wrist deviation", "pelvis_list": "pelvic obliquity",
    "pelvis_tilt": "pelvic tilt", "pelvis_rotation": "pelvic rotation",
    "root_x": "pelvis position, x", "root_y": "pelvis position, y", "root_z": "pelvis position, height",
    "root_roll": "pelvis roll", "root_pitch": "pelvis pitch", "root_yaw": "pelvis yaw",
    "pelvis_tx": "pelvis position, x", "pelvis_ty": "pelvis position, y", "pelvis_tz": "pelvis position, z",
    "calcn": "foot", "tibia": "shank", "femur": "thigh",
}  # fmt: skip
"""Words for a coordinate or body without its side, where its own name is not the clinic's."""
ENDINGS = (("_bending", " lateral bending"), ("_rotation", " axial rotation"))
"""Words for the end of the name of a coordinate of the spine or head."""


def split_side(name: str) -> tuple[str, str]:
    """Return the name of a coordinate or body without its side, and the side: "right", "left" or ""."""
    stem, _, letter = name.rpartition("_")
    return (stem, SIDES[letter]) if stem and letter in SIDES else (name, "")


def clinical_stem(name: str) -> str:
    """Return the words for a coordinate or body without its side, in lower case."""
    stem, side = split_side(name)
    if stem in NAMES:
        return NAMES[stem]
    if not side:
        for ending, words in ENDINGS:
            if stem.endswith(ending):
                return stem.removesuffix(ending).replace("_", " ") + words
    return stem.replace("_", " ")


def clinical_name(name: str) -> str:
    """Return the words for a coordinate or body, beginning with its side."""
    side = split_side(name)[1]
    words = f"{side} {clinical_stem(name)}".strip()
    return words[:1].upper() + words[1:]


def in_clinical_names(text: str, names: Iterable[str]) -> str:
    """Return a text with these names of coordinates, bodies or joints, also without their side, in words."""
    known = {name for name in names if "_" in name}
    known |= {stem for name in tuple(known) if "_" in (stem := split_side(name)[0])}
    if not known:
        return text
    pattern = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))

    def words(match: re.Match[str]) -> str:
        side = split_side(match[0])[1]
        return f"{side} {clinical_stem(match[0])}".strip()

    return re.sub(rf"(?<![\w/.])({pattern})(?![\w/(=])", words, text)


def model_names(model: Model) -> list[str]:
    """Return the names of a model's coordinates, bodies and joints."""
    joints = [joint.name for joint in model.joints]
    return [*(c.name for c in model.coordinates), *(body.name for body in model.bodies), *joints]

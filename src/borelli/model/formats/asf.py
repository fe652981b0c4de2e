"""Reader of ASF skeletons as models: bones become bodies, their degrees of freedom joints with the file's limits.

The file states no masses: they come from Dempster's segment fractions (in Winter's book, table 4.1) where the bones
have the names of the CMU collection, and otherwise from the volumes of the capsules that represent the bones.
Coordinates have the names of `read_amc` (`root_tx`, `lfemur_rx`) and the same values.
"""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, SettingsError
from borelli.files.paths import as_path
from borelli.model.formats.asf_parser import ROOT, AsfSkeleton, Bone, bone_rotation, read_asf_text
from borelli.model.formats.parsing import unread_notes, validate_file
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape
from borelli.model.transforms import AXES, Array, orientation_from_matrix, vector

FRACTIONS = {  # of body mass, equal on both sides; segments of the table are divided among their bones
    "root": 0.132,
    "hipjoint": 0.005,
    "lowerback": 0.070,
    "upperback": 0.069,
    "thorax": 0.176,
    "clavicle": 0.020,
    "lowerneck": 0.010,
    "upperneck": 0.010,
    "head": 0.061,
    "femur": 0.100,
    "tibia": 0.0465,
    "foot": 0.0115,
    "toes": 0.003,
    "humerus": 0.028,
    "radius": 0.011,
    "wrist": 0.005,
    "hand": 0.004,
    "fingers": 0.001,
    "thumb": 0.001,
}
RADII = {  # [m], of an adult
    "root": 0.10,
    "femur": 0.07,
    "tibia": 0.05,
    "lowerback": 0.11,
    "upperback": 0.11,
    "thorax": 0.12,
    "head": 0.09,
    "humerus": 0.045,
    "radius": 0.035,
}
BODY_MASS_INDEX = 23.0
"""[kg/m^2], for the mass of a person of known stature."""
TO_MODEL_AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Rotation from the file's axes, y up, to the world's, z up."""
KINDS = ("fixed", "hinge", "universal", "ball")


def read_asf(path: str | Path, *, mass: float | None = None, units: float | None = None) -> Model:
    """Read the model of an ASF file: z up, meters; one body per bone, and the root, which is free.

    Args:
        path: ASF file.
        mass: Mass of the whole body [kg], which the file does not state. Default: that of a person of this stature.
        units: Length of the file's unit [m]. Default: inferred from the file.

    Raises:
        FileFormatError: if the file is not an ASF file, or a bone has translational degrees of freedom.
        SettingsError: if `mass` or `units` is out of range.
    """
    path = as_path(path)
    asf = read_asf_text(path)
    unit, reason = asf.length_unit()
    if units is not None:
        if not 1e-6 < units < 1e6:
            raise SettingsError(f"units is {units} m. It must be the positive length of the file's unit.")
        unit, reason = units, "as specified"
    height = unit * asf.extent()
    total = mass if mass is not None else BODY_MASS_INDEX * height**2
    if not total > 0.0:
        raise SettingsError(f"mass is {total} kg. It must be positive.")
    masses, source = _masses(asf, unit, total)
    ends = {ROOT: np.zeros(3)} | {bone.name: TO_MODEL_AXES @ bone.end * unit for bone in asf.bones}
    bodies = [_body(name, end, m) for (name, end), m in zip(ends.items(), masses, strict=True)]
    joints = [_root_joint(asf, unit, path)]
    joints += [_joint(b, parent, ends[parent], path) for b, parent in zip(asf.bones, asf.parents, strict=True)]
    notes = (
        f"Length unit: {unit:.5g} m ({reason}). Override with units.",
        "Vertical axis: y, rotated to z.",
        f"Body mass: {total:.1f} kg, {'as specified' if mass is not None else 'inferred from stature'}; "
        f"segment masses from {source}.",
        *unread_notes(asf.unread),
    )
    return validate_file(with_default_frames(Model(asf.name, tuple(bodies), tuple(joints), notes=notes)), path)


def _joint(bone: Bone, parent: str, position: Array, path: Path) -> Joint:
    if odd := [word for word in bone.freedoms if word[0] != "r"]:
        problem = f"has translational degrees of freedom ({', '.join(odd)}), which are not supported"
        raise FileFormatError(path, f"Bone {bone.name!r} {problem}. Remove them from its dof line.")
    frame = orientation_from_matrix(TO_MODEL_AXES @ bone_rotation(bone.axis, bone.order))
    axes, coordinates = [], []
    for rotation, (lower, upper) in zip(reversed(bone.freedoms), reversed(bone.limits), strict=True):
        # the last axis named is the outermost
        axes.append(AXES["xyz".index(rotation[1])])
        coordinates.append(Coordinate(f"{bone.name}_{rotation}", min(max(0.0, lower), upper), lower, upper))
    return Joint(
        name=bone.name,
        kind=KINDS[len(axes)],
        parent=parent,
        child=bone.name,
        parent_frame=Frame(vector(position), frame),
        child_frame=Frame((0.0, 0.0, 0.0), frame),
        axes=tuple(axes),
        coordinates=tuple(coordinates),
    )


def _root_joint(asf: AsfSkeleton, unit: float, path: Path) -> Joint:
    letters = [word[1] for word in asf.root_order if word[0] == "r"][::-1]
    if sorted(letters) != ["x", "y", "z"] or sum(word[0] == "t" for word in asf.root_order) != 3:
        problem = f"The order of the root is {' '.join(asf.root_order)!r}. It must contain all of tx ... rz."
        raise FileFormatError(path, problem)
    if asf.root_orientation != (0.0, 0.0, 0.0):
        raise FileFormatError(path, "The orientation of the root must be 0 0 0. Rotate the motion instead.")
    translations = [
        Coordinate(f"{ROOT}_t{letter}", unit * asf.root_position["xyz".index(letter)], rotational=False)
        for letter in letters
    ]
    frame = Frame(orientation=orientation_from_matrix(TO_MODEL_AXES))
    axes = tuple(AXES["xyz".index(letter)] for letter in letters)
    coordinates = (*translations, *(Coordinate(f"{ROOT}_r{letter}") for letter in letters))
    return Joint(ROOT, "free", GROUND, ROOT, frame, frame, axes, coordinates)


def _kind_of(name: str) -> str:
    """Return the bone's name without its side: `lfemur` and `rfemur` are both a femur."""
    lower = name.lower()
    return lower[1:] if lower[:1] in ("l", "r") and lower[1:] in FRACTIONS else lower


def _masses(asf: AsfSkeleton, unit: float, total: float) -> tuple[list[float], str]:
    """Return the mass [kg] of the root and of each bone, and the source of the fractions."""
    names = [ROOT, *(bone.name for bone in asf.bones)]
    fractions = [FRACTIONS.get(_kind_of(name), 0.0) for name in names]
    source = "Dempster's segment fractions"
    if min(fractions) <= 0.0:
        lengths = [RADII[ROOT], *(abs(bone.length) * unit for bone in asf.bones)]
        radii = [_radius(name, length) for name, length in zip(names, lengths, strict=True)]
        fractions = [pi * r * r * length + 4.0 / 3.0 * pi * r**3 for r, length in zip(radii, lengths, strict=True)]
        source = "the volumes of capsules, because some bones have unknown names"
    return [total * fraction / sum(fractions) for fraction in fractions], source


def _radius(name: str, length: float) -> float:
    return RADII.get(_kind_of(name), min(max(0.2 * length, 0.01), 0.06))


def _body(name: str, end: Array, mass: float) -> Body:
    """Return a capsule from the joint to the bone's end, or a ball where the bone is short."""
    length = float(np.linalg.norm(end))
    radius = _radius(name, length)
    half = 0.5 * length - radius
    if half <= 0.0:
        shape = Shape("sphere", (max(radius, 0.5 * length),), Frame(vector(0.5 * end)), collides=False)
    else:
        shape = Shape("capsule", (radius, half), Frame(vector(0.5 * end), _along(end)), collides=False)
    return body_from_shapes(name, [shape], mass=mass)


def _along(direction: Array) -> tuple[float, float, float, float]:
    z = direction / np.linalg.norm(direction)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return orientation_from_matrix(np.column_stack((x, np.cross(z, x), z)))

"""Reader of ASF skeletons as models: bones become bodies, their degrees of freedom joints with the file's limits.

The file states no masses: they come from Dempster's segment fractions (in Winter's book, table 4.1) where the bones
have the names of the CMU collection, and otherwise from the volumes of the capsules the bones are drawn as.
Coordinates are named as `read_amc` names them (`root_tx`, `lfemur_rx`) and take the same values.
"""

from __future__ import annotations

import os
from math import pi
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, SettingsError
from borelli.model.formats.asf_parser import ROOT, AsfSkeleton, Bone, bone_rotation, read_asf_text
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape, Vector
from borelli.model.transforms import Array, orientation_from_matrix, vector
from borelli.model.validate import validate

FRACTIONS = {  # of body mass, both sides alike; the segments of the table shared out among the bones that make them up
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
RADII = {  # [m], of a grown person's
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
"""[kg/m^2], for the mass of a person whose stature only is known."""
UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""From the file's axes, y up, to the world's, z up."""
AXES: dict[str, Vector] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
KINDS = ("fixed", "hinge", "universal", "ball")


def read_asf(path: str | os.PathLike[str], *, mass: float | None = None, units: float | None = None) -> Model:
    """The model in an ASF file: z up, metres; one body per bone, and the root, which is free.

    Args:
        path: The file.
        mass: Of the whole body [kg], which the file does not state; by default that of a person of its stature.
        units: Length of the file's unit [m], if it is not the one the reader takes it for.

    Raises:
        FileFormatError: if the file is no ASF, or a bone may shift or stretch, which no joint here does.
    """
    path = Path(path)
    asf = read_asf_text(path)
    metres, why = asf.metres()
    if units is not None:
        if not 1e-6 < units < 1e6:
            raise SettingsError(f"units are {units} m, but must be the positive length of the file's unit")
        metres, why = units, "as asked"
    height = metres * asf.extent()
    total = mass if mass is not None else BODY_MASS_INDEX * height**2
    if not total > 0.0:
        raise SettingsError(f"mass is {total} kg, but must be positive")
    masses, source = _masses(asf, metres, total)
    bodies = [_body(ROOT, np.zeros(3), masses[0])]
    bodies += [_body(bone.name, UP @ bone.end * metres, m) for bone, m in zip(asf.bones, masses[1:], strict=True)]
    joints = [_root_joint(asf, metres, path)]
    ends = {ROOT: np.zeros(3)} | {bone.name: UP @ bone.end * metres for bone in asf.bones}
    for bone, parent in zip(asf.bones, asf.parents, strict=True):
        joints.append(_joint(bone, parent, ends[parent], path))
    notes = (
        f"lengths are taken as {metres:.5g} m: {why}.",
        "y is taken as up and turned into z.",
        f"the mass of {total:.1f} kg is {'as asked' if mass is not None else 'that of a person of its stature'},"
        f" shared out by {source}.",
    )
    try:
        return validate(with_default_frames(Model(asf.name, tuple(bodies), tuple(joints), notes=notes)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _joint(bone: Bone, parent: str, place: Array, path: Path) -> Joint:
    """A bone's joint at the end of its parent, its axes those of the bone."""
    turns = _turning(bone.name, bone.freedoms, path)
    frame = orientation_from_matrix(UP @ bone_rotation(bone.axis, bone.order))
    limits = dict(zip(bone.freedoms, bone.limits, strict=True))
    # the last axis named turns outermost
    coordinates = [_coordinate(f"{bone.name}_{turn}", *limits[turn]) for turn in reversed(turns)]
    return Joint(
        name=bone.name,
        kind=KINDS[len(turns)],
        parent=parent,
        child=bone.name,
        parent_frame=Frame(vector(place), frame),
        child_frame=Frame((0.0, 0.0, 0.0), frame),
        axes=tuple(AXES[turn[1]] for turn in reversed(turns)),
        coordinates=tuple(coordinates),
    )


def _root_joint(asf: AsfSkeleton, metres: float, path: Path) -> Joint:
    turns = [word[1] for word in asf.root_order if word[0] == "r"][::-1]
    if sorted(turns) != ["x", "y", "z"] or sum(word[0] == "t" for word in asf.root_order) != 3:
        raise FileFormatError(
            path, f"the root's order is {' '.join(asf.root_order)!r}, but all of tx ... rz must be free"
        )
    if asf.root_orientation != (0.0, 0.0, 0.0):
        raise FileFormatError(path, "the root's orientation must be 0 0 0; turn the motion instead")
    shifts = [
        Coordinate(f"{ROOT}_t{letter}", metres * asf.root_position["xyz".index(letter)], rotational=False)
        for letter in turns
    ]
    return Joint(
        name=ROOT,
        kind="free",
        parent=GROUND,
        child=ROOT,
        parent_frame=Frame(orientation=orientation_from_matrix(UP)),
        child_frame=Frame(orientation=orientation_from_matrix(UP)),
        axes=tuple(AXES[letter] for letter in turns),
        coordinates=(*shifts, *(Coordinate(f"{ROOT}_r{letter}") for letter in turns)),
    )


def _turning(name: str, freedoms: tuple[str, ...], path: Path) -> list[str]:
    odd = [word for word in freedoms if word[0] != "r"]
    if odd:
        what = f"bone {name!r} may shift or stretch ({', '.join(odd)}), which no joint of a model here does"
        raise FileFormatError(path, f"{what}; remove these from its dof line")
    return list(freedoms)


def _coordinate(name: str, lower: float, upper: float) -> Coordinate:
    return Coordinate(name, min(max(0.0, lower), upper), lower, upper)


def _kind_of(name: str) -> str:
    """The bone's name without its side: `lfemur` and `rfemur` are both a femur."""
    lower = name.lower()
    return lower[1:] if lower[:1] in ("l", "r") and lower[1:] in FRACTIONS else lower


def _masses(asf: AsfSkeleton, metres: float, total: float) -> tuple[list[float], str]:
    """Mass [kg] of the root and of each bone, and where the shares come from."""
    names = [ROOT, *(bone.name for bone in asf.bones)]
    shares = [FRACTIONS.get(_kind_of(name), 0.0) for name in names]
    source = "Dempster's segment fractions"
    if min(shares) <= 0.0:
        lengths = [RADII[ROOT], *(abs(bone.length) * metres for bone in asf.bones)]
        radii = [_radius(name, length) for name, length in zip(names, lengths, strict=True)]
        shares = [pi * r * r * length + 4.0 / 3.0 * pi * r**3 for r, length in zip(radii, lengths, strict=True)]
        source = "the volumes of its bones drawn as capsules, because not all of them have known names"
    return [total * share / sum(shares) for share in shares], source


def _radius(name: str, length: float) -> float:
    return RADII.get(_kind_of(name), min(max(0.2 * length, 0.01), 0.06))


def _body(name: str, end: Array, mass: float) -> Body:
    """A capsule from the joint to the bone's end, or a ball where the bone is short."""
    length = float(np.linalg.norm(end))
    radius = _radius(name, length)
    half = 0.5 * length - radius
    if half <= 0.0:
        shape = Shape("sphere", (max(radius, 0.5 * length),), Frame(vector(0.5 * end)), collides=False)
    else:
        shape = Shape("capsule", (radius, half), Frame(vector(0.5 * end), _along(end)), collides=False)
    return body_from_shapes(name, [shape], mass=mass)


def _along(direction: Array) -> tuple[float, float, float, float]:
    """The orientation whose z axis has this direction."""
    z = direction / np.linalg.norm(direction)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return orientation_from_matrix(np.column_stack((x, np.cross(z, x), z)))

"""Reader of MuJoCo's models (MJCF).

Bodies, joints, geoms, sites (as markers), tendons with muscle actuators, joint couplings, welds and connections are
read, with default classes, included files and compiler options as in MuJoCo; the model's notes list what is not read.
Mesh files are optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import asin, atan2
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, list_names, unknown_name
from borelli.files.outside_paths import outside_notes
from borelli.files.xml import Element
from borelli.model.formats.mjcf import muscles as mjcf_muscles
from borelli.model.formats.mjcf.bodies import FileJoint, Tree, read_tree
from borelli.model.formats.mjcf.defaults import UNIT, Settings, Values, read_settings
from borelli.model.formats.mjcf.equalities import apply_equalities, read_equalities
from borelli.model.formats.mjcf.geoms import asset_paths, mesh_name, read_meshes
from borelli.model.formats.mjcf.includes import load
from borelli.model.formats.parsing import MAX_LISTED_NAMES, LossNote, unread_notes
from borelli.model.inertia import scale_body
from borelli.model.kinematics import coupled_coordinates, with_default_frames
from borelli.model.model import Body, Coordinate, Model, Shape
from borelli.model.transforms import orientation_matrix
from borelli.model.validate import validate

DISPLAY = ("visual", "statistic", "size", "texture", "material")
"""Elements that change how a model is drawn and stored, and nothing else."""
NAMED_BY_SECTION = ("actuator", "tendon", "equality", "sensor", "contact")
"""Sections whose elements are named together with them: a motor is an actuator, a touch a sensor."""
SECTIONS = (*NAMED_BY_SECTION, "worldbody", "asset", "keyframe", "custom", "deformable", "extension")
"""Sections that only contain elements."""
DEFAULT_POSE = "default"
"""Keyframe with the default pose in files written by borelli."""
_SIZES = {"free": 7, "ball": 4}
"""Size of a joint's qpos; 1 for other joints."""


def read_mjcf(path: str | Path, *, keyframe: str | int | None = None) -> Model:
    """Read the model of an MJCF file.

    Args:
        path: Main file; included files are found as MuJoCo finds them.
        keyframe: Name or number (from 0) of the keyframe whose values become the coordinates' defaults. Default: the
            keyframe `default`, or else the pose in which the file states the bodies.

    Raises:
        FileFormatError: if the file cannot be read; the message names file and line.
        ModelError: if the model is inconsistent.
    """
    root, includes = load(path)
    settings = read_settings(root, includes.missing)
    meshes, mesh_problems = read_meshes(root, settings, includes.main.parent)
    tree = read_tree(root, settings, meshes)
    for section in root.all("asset"):
        for element in section.all("mesh"):
            element.was_read = mesh_name(settings.values(element)) in tree.meshes_used
    if not tree.bodies:
        lost = " (an included file is missing)" if includes.missing else ""
        raise FileFormatError(path, f"The model has no bodies{lost}. Pass the main file.")
    name = root.attributes.get("model", "").strip() or includes.main.stem or "model"
    model = Model(
        name,
        _rescaled(tree.bodies, settings),
        tuple(tree.joints),
        tuple(tree.markers),
        ground=tuple(geom.shape for geom in tree.ground if geom.shape is not None),
        gravity=settings.gravity,
        self_collision=_self_collision(tree),
    )
    try:
        model = apply_equalities(model, read_equalities(root, tree, model), settings)
        muscles = mjcf_muscles.read_muscles(root, tree, model)
        model = _with_muscles(model, muscles)
        key_names, keys = _keyframes(root)
        if keyframe is None and DEFAULT_POSE in key_names:
            keyframe = DEFAULT_POSE
        if keyframe is not None:
            model = _with_defaults(model, _keyframe(tree, key_names, keys, keyframe))
        coupled = coupled_coordinates(model, [c.default for c in model.coordinates])[0]
        dependent = {coupling.coordinate for coupling in model.couplings}
        values = {c.name: float(x) for c, x in zip(model.coordinates, coupled, strict=True) if c.name in dependent}
        model = _with_defaults(model, values)
        own = _notes(tree, root, dependent, key_names, mesh_problems)
        outside = outside_notes(asset_paths(root, settings), includes.main.parent)
        notes = (*includes.notes, *outside, *settings.notes, *own, *mjcf_muscles.notes(muscles))
        return validate(replace(with_default_frames(model), notes=notes), sound_masses=False)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _with_muscles(model: Model, found: mjcf_muscles.Muscles) -> Model:
    """Return the model with its muscles; geoms that only serve wrapping become wrap objects."""

    def others(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        return tuple(shape for shape in shapes if shape.collides or shape.name not in found.wrap_objects)

    bodies = tuple(replace(body, shapes=others(body.shapes)) for body in model.bodies)
    muscles, wraps = tuple(found.muscles), tuple(found.wrap_objects.values())
    return replace(model, bodies=bodies, ground=others(model.ground), muscles=muscles, wrap_objects=wraps)


def _rescaled(bodies: Iterable[Body], settings: Settings) -> tuple[Body, ...]:
    total = sum(body.mass for body in bodies)
    if not (settings.total_mass > 0.0 and total > 0.0):
        return tuple(bodies)
    return tuple(scale_body(body, settings.total_mass / total) for body in bodies)


def _self_collision(tree: Tree) -> bool:
    for bit in range(32):
        first = {body for body, (contype, _) in tree.contact_masks if contype >> bit & 1}
        second = {body for body, (_, conaffinity) in tree.contact_masks if conaffinity >> bit & 1}
        if first and second and len(first | second) > 1:
            return True
    return False


def _keyframes(root: Element) -> tuple[list[str], list[Element]]:
    keys = [key for section in root.all("keyframe") for key in section.all("key")]
    return [key.attributes.get("name", str(i)) for i, key in enumerate(keys)], keys


def _keyframe(tree: Tree, names: list[str], keys: list[Element], keyframe: str | int) -> dict[str, float]:
    if str(keyframe) not in names and not (isinstance(keyframe, int) and 0 <= keyframe < len(keys)):
        raise ModelError(unknown_name("keyframe", str(keyframe), names))
    key = keys[names.index(str(keyframe)) if str(keyframe) in names else int(keyframe)]
    key.was_read = True
    values = Values(key, key.attributes).numbers("qpos", 0) or ()
    count = sum(_SIZES.get(joint.kind, 1) for joint in tree.file_joints)
    if len(values) != count:
        raise key.error(f"Key {keyframe!r}: qpos has {len(values)} numbers. The joints require {count}.")
    values_by_name: dict[str, float] = {}
    start = 0
    for joint in tree.file_joints:
        size = _SIZES.get(joint.kind, 1)
        values_by_name.update(zip(joint.coordinates, _coordinates(joint, values[start : start + size]), strict=True))
        start += size
    return values_by_name


def _with_defaults(model: Model, values: dict[str, float]) -> Model:
    """Return the model with these defaults, limited to the range of motion."""

    def with_default(c: Coordinate) -> Coordinate:
        return replace(c, default=min(max(values.get(c.name, c.default), c.lower), c.upper))

    joints = (replace(joint, coordinates=tuple(map(with_default, joint.coordinates))) for joint in model.joints)
    return replace(model, joints=tuple(joints))


def _coordinates(joint: FileJoint, numbers: tuple[float, ...]) -> tuple[float, ...]:
    if joint.kind not in ("free", "ball"):
        return numbers
    w, x, y, z = numbers[-4:] if any(numbers[-4:]) else UNIT
    rotation = orientation_matrix((w, x, y, z))
    if joint.kind == "free":
        rotation = rotation @ orientation_matrix(joint.reference.orientation).T
    return numbers[:-4] + cardan_angles(rotation)


def cardan_angles(rotation: np.ndarray) -> tuple[float, float, float]:
    """Return the angles a, b, c [rad] of a rotation Rx(a) Ry(b) Rz(c), b from -pi/2 to pi/2."""
    b = asin(min(max(float(rotation[0, 2]), -1.0), 1.0))
    if abs(rotation[0, 2]) > 1.0 - 1e-14:  # gimbal lock: a and c rotate about the same axis
        return atan2(float(rotation[2, 1]), float(rotation[1, 1])), b, 0.0
    return atan2(-float(rotation[1, 2]), float(rotation[2, 2])), b, atan2(-float(rotation[0, 1]), float(rotation[0, 0]))


def _notes(tree: Tree, root: Element, dependent: set[str], keys: list[str], mesh_problems: dict[str, str]) -> list[str]:
    notes: list[str] = []
    if tree.meshes_missing:
        example = next((f" ({text})" for name, text in mesh_problems.items() if name in tree.meshes_missing), "")
        own = list_names(sorted(tree.meshes_missing), MAX_LISTED_NAMES)
        text = f"{len(tree.meshes_missing)} meshes are not read{example}: their geoms have no shape: {own}."
        notes.append(LossNote(text))
    moved = [name for name in tree.references if name not in dependent]
    depends = "depends on meshes that are not read: only the other geoms and the compiler's minimum mass count."
    inserted = "massless bodies (..._carrier1 and so on) are inserted between them. Give them mass"
    listed = {
        f"The mass of {{}} {depends}": tree.lost_mass,
        f"The joints of {{}} cannot be one joint: {inserted} for forward simulation.": tree.inserted_bodies,
        "The limits of the ball joints {} are not read: a cone is not supported.": tree.lost_limits,
        "The reference of {} is outside the range: the default is the nearer limit.": moved,
    }
    notes += [LossNote(text.format(list_names(names, 6))) for text, names in listed.items() if names]
    if dependent:
        notes.append(f"The defaults of {len(dependent)} coupled coordinates are computed from their couplings.")
    if tree.passive:
        notes.append(LossNote(f"Passive joint properties are not read: {', '.join(sorted(tree.passive))}."))
    if keys:
        used = f"{DEFAULT_POSE!r} is the default pose" if DEFAULT_POSE in keys else "none is used"
        notes.append(f"Keyframes: {', '.join(keys[:8])}; {used}. Override with read_mjcf(..., keyframe=...).")
    return [*notes, *unread_notes((*tree.settings.unused, *_left_out(root)))]


def _left_out(root: Element) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each element of which the reader used nothing, whatever kind that is."""
    for section in root.children:
        if section.tag in DISPLAY:
            continue
        if not (section.was_read or section.children or section.tag in SECTIONS):
            yield section.tag, section.attributes.get("name", "")
        for element, owner in section.unread(lambda element: element.tag not in DISPLAY):
            kind = f"{element.tag} {section.tag}" if section.tag in NAMED_BY_SECTION else element.tag
            yield kind, element.attributes.get("name") or element.attributes.get("file") or owner

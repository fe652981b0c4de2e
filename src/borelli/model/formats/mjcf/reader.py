"""MuJoCo's models (MJCF) as ours.

Bodies, joints, geoms, sites (as markers), tendons with muscle actuators, joint couplings, welds and connections are
read, with default classes, included files and the compiler's options as MuJoCo has them; what is not read is told in
the model's notes. Meshes need not be there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from math import asin, atan2

import numpy as np

from borelli.errors import FileFormatError, ModelError, unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf import muscles as mjcf_muscles
from borelli.model.formats.mjcf.bodies import FileJoint, Tree, read_tree
from borelli.model.formats.mjcf.defaults import Settings, Values, read_settings
from borelli.model.formats.mjcf.equalities import hold, read_equalities
from borelli.model.formats.mjcf.includes import load
from borelli.model.formats.mjcf.meshes import read_meshes
from borelli.model.kinematics import coupled_coordinates, with_default_frames
from borelli.model.model import Body, Model, Quaternion
from borelli.model.transforms import orientation_matrix
from borelli.model.validate import validate

READ_SECTIONS = ("compiler", "option", "default", "worldbody", "tendon", "actuator", "equality", "keyframe")
SILENT_SECTIONS = ("visual", "statistic", "size", "asset", "custom")
"""Sections that say nothing about the body."""
DEFAULT_POSE = "default"
"""The keyframe in which files of borelli keep the default pose."""
_SIZES = {"free": 7, "ball": 4}
"""Numbers a keyframe holds of a joint; one of others."""


def read_mjcf(path: str | os.PathLike[str], *, keyframe: str | int | None = None) -> Model:
    """The model in an MJCF file.

    Args:
        path: the main file; those it includes are found as MuJoCo finds them.
        keyframe: name or number (from 0) of the keyframe whose values become the coordinates' defaults; None takes one
            called `default`, else the pose in which the file states the bodies.

    Raises:
        FileFormatError: naming file and line of what cannot be read.
        ModelError: if the model it describes contradicts itself.
    """
    root, found = load(path)
    settings = read_settings(root, found.missing)
    meshes, mesh_faults = read_meshes(root, settings, found.main.parent)
    tree = read_tree(root, settings, meshes)
    if not tree.bodies:
        lost = " (an included file is missing)" if found.missing else ""
        raise FileFormatError(path, f"the model has no bodies{lost}; is this the main file?")
    name = root.attributes.get("model", "").strip() or found.main.stem or "model"
    model = Model(
        name,
        _rescaled(tree.bodies, settings),
        tuple(tree.joints),
        tuple(tree.markers),
        ground=tuple(geom.shape for geom in tree.ground if geom.shape is not None),
        gravity=settings.gravity,
        self_collision=_touch(tree),
    )
    try:
        model = hold(model, read_equalities(root, tree, model), settings)
        muscles = mjcf_muscles.read_muscles(root, tree, model)
        model = _with_muscles(model, muscles)
        if keyframe is None and DEFAULT_POSE in _key_names(root):
            keyframe = DEFAULT_POSE
        if keyframe is not None:
            model = _with_defaults(model, _keyframe(tree, root, keyframe))
        model = _with_defaults(model, _coupled_defaults(model))
        notes = (*found.notes, *settings.notes, *_notes(tree, root, model, mesh_faults), *mjcf_muscles.notes(muscles))
        return validate(replace(with_default_frames(model), notes=notes), sound_masses=False)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _with_muscles(model: Model, found: mjcf_muscles.Muscles) -> Model:
    """The model with its muscles; geoms that are only there to be wrapped over are wrap objects and no shapes."""
    wraps = found.wrap_objects
    bodies = tuple(
        replace(body, shapes=tuple(s for s in body.shapes if s.collides or s.name not in wraps))
        for body in model.bodies
    )
    ground = tuple(s for s in model.ground if s.collides or s.name not in wraps)
    muscles, objects = tuple(found.muscles), tuple(wraps.values())
    return replace(model, bodies=bodies, ground=ground, muscles=muscles, wrap_objects=objects)


def _rescaled(bodies: Iterable[Body], settings: Settings) -> tuple[Body, ...]:
    """Bodies with the total mass that the compiler is told to give them."""
    total = sum(body.mass for body in bodies)
    if not (settings.total_mass > 0.0 and total > 0.0):
        return tuple(bodies)
    factor = settings.total_mass / total
    return tuple(
        replace(
            body,
            mass=factor * body.mass,
            inertia=tuple(tuple(factor * c for c in row) for row in body.inertia),  # type: ignore[arg-type]
        )
        for body in bodies
    )


def _touch(tree: Tree) -> bool:
    """Whether geoms of two bodies may touch each other."""
    for bit in range(32):
        first = {body for body, (contype, _) in tree.touching if contype >> bit & 1}
        second = {body for body, (_, conaffinity) in tree.touching if conaffinity >> bit & 1}
        if first and second and len(first | second) > 1:
            return True
    return False


def _key_names(root: Element) -> list[str]:
    keys = (key for section in root.all("keyframe") for key in section.all("key"))
    return [key.attributes.get("name", str(i)) for i, key in enumerate(keys)]


def _keyframe(tree: Tree, root: Element, wanted: str | int) -> dict[str, float]:
    """The coordinates in a keyframe."""
    keys = [key for section in root.all("keyframe") for key in section.all("key")]
    names = _key_names(root)
    if str(wanted) not in names and not (isinstance(wanted, int) and 0 <= wanted < len(keys)):
        raise ModelError(unknown_name("keyframe", str(wanted), names))
    key = keys[names.index(str(wanted)) if str(wanted) in names else int(wanted)]
    values = Values(key, key.attributes).numbers("qpos", 0) or ()
    count = sum(_SIZES.get(joint.kind, 1) for joint in tree.file_joints)
    if len(values) != count:
        raise key.error(f"key {wanted!r}: qpos has {len(values)} numbers, but the joints want {count}")
    stands: dict[str, float] = {}
    place = 0
    for joint in tree.file_joints:
        size = _SIZES.get(joint.kind, 1)
        stands.update(zip(joint.coordinates, _coordinates(joint, values[place : place + size]), strict=True))
        place += size
    return stands


def _coupled_defaults(model: Model) -> dict[str, float]:
    """Defaults of the coupled coordinates as their couplings make them: the default pose keeps the model's laws."""
    values = coupled_coordinates(model, [c.default for c in model.coordinates])[0]
    held = {coupling.coordinate for coupling in model.couplings}
    return {c.name: float(x) for c, x in zip(model.coordinates, values, strict=True) if c.name in held}


def _with_defaults(model: Model, values: dict[str, float]) -> Model:
    """The model with these defaults, or the nearer stop where they lie beyond one."""
    joints = tuple(
        replace(
            joint,
            coordinates=tuple(
                replace(c, default=min(max(values.get(c.name, c.default), c.lower), c.upper)) for c in joint.coordinates
            ),
        )
        for joint in model.joints
    )
    return replace(model, joints=joints)


def _coordinates(joint: FileJoint, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Our coordinates for the numbers MuJoCo keeps of a joint."""
    if joint.kind not in ("free", "ball"):
        return numbers
    turn = orientation_matrix(_quaternion(numbers[-4:]))
    if joint.kind == "free":
        turn = turn @ orientation_matrix(joint.place.orientation).T
    return numbers[:-4] + cardan_angles(turn)


def cardan_angles(turn: np.ndarray) -> tuple[float, float, float]:
    """The angles a, b, c [rad] of a rotation Rx(a) Ry(b) Rz(c), b from -pi/2 to pi/2."""
    b = asin(min(max(float(turn[0, 2]), -1.0), 1.0))
    if abs(turn[0, 2]) > 1.0 - 1e-14:  # a and c are one turn
        return atan2(float(turn[2, 1]), float(turn[1, 1])), b, 0.0
    return atan2(-float(turn[1, 2]), float(turn[2, 2])), b, atan2(-float(turn[0, 1]), float(turn[0, 0]))


def _quaternion(values: tuple[float, ...]) -> Quaternion:
    w, x, y, z = values
    return (w, x, y, z) if any(values) else (1.0, 0.0, 0.0, 0.0)


def _notes(tree: Tree, root: Element, model: Model, mesh_faults: dict[str, str]) -> list[str]:
    """What the user must know of how the file was read."""
    notes = []
    if tree.meshes_missing:
        example = next((f" ({fault})" for name, fault in mesh_faults.items() if name in tree.meshes_missing), "")
        notes.append(f"{len(tree.meshes_missing)} meshes are not read{example}: their geoms have no shape here")
    if tree.lost_mass:
        notes.append(
            f"the mass of {_few(tree.lost_mass)} would come from meshes that are not read: only the other geoms count, "
            "and the compiler's least mass"
        )
    if tree.carriers:
        notes.append(
            f"the joints of {_few(tree.carriers)} cannot be one of ours: bodies without mass, called ..._carrier1 and "
            "so on, stand between them; forward simulation needs them to have some"
        )
    if tree.lost_limits:
        notes.append(f"the limits of the ball joints {_few(tree.lost_limits)} are left out: a cone cannot be said here")
    held = {c.coordinate for c in model.couplings}
    if moved := [name for name in tree.moved_defaults if name not in held]:
        notes.append(f"the reference of {_few(moved)} lies outside the range: the default is the nearer end")
    if held:
        notes.append(f"the defaults of {len(held)} coupled coordinates are what their couplings make them")
    if tree.passive:
        notes.append(f"passive joint properties are left out: {', '.join(sorted(tree.passive))}")
    for section in root.children:
        if section.tag not in READ_SECTIONS and section.tag not in SILENT_SECTIONS:
            for element in section.children or [section]:
                tree.settings.leave_out(element.tag if section.children else section.tag)
    if keys := _key_names(root):
        chosen = f"{DEFAULT_POSE!r} is the default pose unless" if DEFAULT_POSE in keys else "none is used unless"
        notes.append(f"keyframes in the file: {', '.join(keys[:8])}; {chosen} read_mjcf(..., keyframe=...) names one")
    if tree.settings.unused:
        left = ", ".join(f"{count} {what}" for what, count in sorted(tree.settings.unused.items()))
        notes.append(f"not read: {left}")
    return notes


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

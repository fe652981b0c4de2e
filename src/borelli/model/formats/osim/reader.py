"""Reader of OpenSim's model files (.osim), versions 2 to 4.

Frames and axes stay as in the file (y is up in most; `Model.gravity` defines the vertical), so that numbers can be
compared with OpenSim's. The model's notes list what a `Model` cannot represent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError
from borelli.files.outside_paths import outside_notes
from borelli.files.xml import Element
from borelli.model.formats.osim.frames import (
    HALF_SPACE,
    Frames,
    compose_offset,
    find_frames,
    frame_from_angles,
    transform_point,
)
from borelli.model.formats.osim.joints import JointReader, read_constraints
from borelli.model.formats.osim.muscles import LIGAMENTS, MuscleReader
from borelli.model.formats.osim.properties import Item, load
from borelli.model.formats.osim.spanning_tree import make_tree
from borelli.model.formats.parsing import LossNote, Namer, unread_notes
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Marker, Model, PathPoint, Shape
from borelli.model.transforms import Array, compose, vector
from borelli.model.validate import inertia_problem, validate

GRAVITY = (0.0, -9.80665, 0.0)
"""OpenSim's default gravity [m/s^2]."""
CONTAINERS = ("Model", "Ground", "Joint", "GeometryPath", "SpatialTransform")
"""Classes that only contain others."""
DISPLAY = (
    "Appearance", "SurfaceProperties", "FrameGeometry", "VisibleObject", "Transform", "Visualizer",
    "ModelVisualPreferences", "ModelDisplayHints", "PathAppearance", "GeometryVisibleObject",
)  # fmt: skip
"""Classes that change how a model is drawn, and nothing else."""
METERS = ("", "m", "meter", "meters", "metre", "metres")
NEWTONS = ("", "n", "newton", "newtons")


def read_osim(path: str | Path) -> Model:
    """Read the model of an .osim file.

    Args:
        path: OpenSim model (.osim) of version 3 or 4.

    Raises:
        FileFormatError: if the file cannot be read; the message names the element and line.
        ModelError: if the model is inconsistent.
    """
    file = load(path)
    notes = [*_unit_notes(file), *outside_notes(_geometry_files(file), Path(path).parent)]
    frames = find_frames(file)
    shapes = _contact_shapes(file, frames, notes)
    bodies = [_body(item, shapes.get(item.name, ()), notes) for item in frames.bodies]
    joints = JointReader(file, frames, notes)
    joints.read_all()
    try:
        tree, unconnected = make_tree(joints.joints, [body.name for body in bodies], notes)
        joints.joints = tree
        for name in unconnected:
            joints.add_free(name)
        couplings, loops = read_constraints(file, joints, notes)
        muscles = MuscleReader(frames, joints, notes)
        muscles.read_wrap_objects()
        forces = file.listed("ForceSet", "components")
        for item in forces:
            if _is_muscle(item):
                muscles.add(item)
            elif item.kind in LIGAMENTS:
                muscles.add_ligament(item)
        markers = tuple(_markers(file, frames, notes))
        notes.extend(_left_out(file))
        model = Model(
            name=file.name or Path(path).stem or "model",
            bodies=tuple(bodies),
            joints=(*joints.joints, *loops),
            markers=markers,
            couplings=tuple(couplings),
            muscles=tuple(muscles.muscles),
            ground=tuple(shapes.get(GROUND, ())),
            gravity=file.vector("gravity", GRAVITY),
            notes=tuple(notes),
            wrap_objects=tuple(muscles.wrap_objects.values()),
            ligaments=tuple(muscles.ligaments),
        )
        return _at_defaults(with_default_frames(validate(model, sound_masses=False)))
    except FileFormatError:
        raise
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _unit_notes(model: Item) -> list[str]:
    notes = []
    for tag, usual, unit in (("length_units", METERS, "meters"), ("force_units", NEWTONS, "newtons")):
        stated = model.text(tag)
        if stated.lower() not in usual:
            notes.append(f"{tag} is {stated[:40]!r}, but numbers are read as {unit}, as OpenSim does.")
    return notes


def _body(item: Item, shapes: Sequence[Shape], notes: list[str]) -> Body:
    mass = item.number("mass", 0.0)
    inertia = _inertia(item)
    problem = "The mass is zero." if mass == 0.0 else inertia_problem(inertia)
    if problem:
        notes.append(f"Body {item.name!r}: {problem} Inverse dynamics accepts it; forward simulation does not.")
    x, y, z = (vector(row) for row in inertia)
    return Body(item.name, mass, item.vector("mass_center"), (x, y, z), tuple(shapes))


def _inertia(item: Item) -> Array:
    """Return the inertia [kg m^2] about the center of mass: six numbers in one property, or before 4.0 in one each."""
    values = item.numbers("inertia")
    if not values:
        values = [item.number(f"inertia_{axes}", 0.0) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")]
    if len(values) != 6:
        raise item.error(f"<inertia> has {len(values)} numbers. Give 6 (xx yy zz xy xz yz).")
    xx, yy, zz, xy, xz, yz = values
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _contact_shapes(model: Item, frames: Frames, notes: list[str]) -> dict[str, list[Shape]]:
    """Return shapes by body; unsupported geometry is noted."""
    shapes: dict[str, list[Shape]] = {}
    for item in model.listed("ContactGeometrySet", "components"):
        if not item.kind.startswith("Contact"):
            continue
        stated = item.socket("frame", "body_name")
        body, frame = frames.locate(item, f"/contactgeometryset/{item.name}", stated)
        frame = compose_offset(frame, frame_from_angles(item.vector("location"), item.vector("orientation")))
        if item.kind == "ContactSphere" and item.number("radius", 0.0) > 0.0:
            shape = Shape("sphere", (item.number("radius", 0.0),), frame, name=item.name)
        elif item.kind == "ContactHalfSpace" and body == GROUND:
            shape = Shape("plane", (), compose(frame, HALF_SPACE), name=item.name)
        else:
            named = f" (file {item.text('filename')!r})" if item.text("filename") else ""
            why = "only spheres, and half spaces on the ground, are"
            notes.append(LossNote(f"{item.title}{named} on {body!r} is not read ({why})."))
            continue
        shapes.setdefault(body, []).append(shape)
    return shapes


def _markers(model: Item, frames: Frames, notes: list[str]) -> Iterator[Marker]:
    namer = Namer()
    for item in model.listed("MarkerSet", "components"):
        if item.kind != "Marker":
            continue
        name = namer.unique(item.name or "marker")
        if name != item.name:
            notes.append(f"{item.title} is renamed {name!r}: its name is empty or already used.")
        stated = item.socket("parent_frame", "body", "body_name")
        body, frame = frames.locate(item, f"/markerset/{item.name}", stated)
        yield Marker(name, body, transform_point(frame, item.vector("location")))


def _geometry_files(model: Item) -> Iterator[tuple[str, str]]:
    """Yield the files of display meshes and contact meshes, in the elements of OpenSim 2 to 4."""
    for element in model.element.walk():
        if element.tag in ("mesh_file", "geometry_file", "filename", "texture_file"):
            yield "mesh", element.text.strip()
        elif element.tag == "geometry_files":
            yield from (("mesh", name) for name in element.text.split())


def _is_muscle(item: Item) -> bool:
    return "Muscle" in item.kind and "Probe" not in item.kind


def _left_out(model: Item) -> Iterator[str]:
    """Yield a note for each class of objects in the file of which the reader used nothing, whatever class that is."""
    unread = model.element.unread(_is_object)
    yield from unread_notes((element.tag, _described(Item(element))) for element, _ in unread)


def _is_object(element: Element) -> bool:
    """Return whether an element is an object of OpenSim, whose classes begin with a capital, and not only a set."""
    if element.tag == "Body" and element.attributes.get("name") == GROUND:  # before 4.0 it is among the bodies
        return False
    return element.tag[:1].isupper() and not element.tag.endswith("Set") and element.tag not in (*CONTAINERS, *DISPLAY)


def _described(item: Item) -> str:
    """Return the name of an object, or the file of a mesh."""
    return item.text("mesh_file", "geometry_file") or item.name


def _at_defaults(model: Model) -> Model:
    """Return the model with its moving path points at the positions of the default coordinates."""
    values = {c.name: c.default for c in model.coordinates}

    def at_default(point: PathPoint) -> PathPoint:
        if not point.motion:
            return point
        amounts = (m.function(values[m.coordinate] if m.coordinate else 0.0) for m in point.motion)
        translations = [np.array(m.axis) * amount for m, amount in zip(point.motion, amounts, strict=True)]
        return replace(point, position=vector(np.sum(translations, axis=0)))

    return replace(
        model,
        muscles=tuple(replace(muscle, path=tuple(map(at_default, muscle.path))) for muscle in model.muscles),
        ligaments=tuple(replace(ligament, path=tuple(map(at_default, ligament.path))) for ligament in model.ligaments),
    )

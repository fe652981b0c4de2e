"""Reader of OpenSim's model files (.osim), versions 2 to 4.

Frames and axes stay exactly as in the file (y is up in nearly all; `Model.gravity` says which way is down), so that
numbers compare with OpenSim's own. What cannot be said by a `Model` is listed in its notes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError
from borelli.model.formats.osim.constraints import read_constraints
from borelli.model.formats.osim.contact_geometry import read_contact_geometry
from borelli.model.formats.osim.frames import Frames, find_frames, place
from borelli.model.formats.osim.joints import JointReader
from borelli.model.formats.osim.muscles import MuscleReader
from borelli.model.formats.osim.properties import Item, Namer, load
from borelli.model.formats.osim.spanning_tree import as_tree
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Body, Marker, Model, Muscle, PathPoint, Shape
from borelli.model.transforms import Array, vector
from borelli.model.validate import inertia_problem, validate

GRAVITY = (0.0, -9.80665, 0.0)
"""Where a file gives none."""
METRES = ("", "m", "meter", "meters", "metre", "metres")
NEWTONS = ("", "n", "newton", "newtons")


def read_osim(path: str | os.PathLike[str]) -> Model:
    """The model in an .osim file.

    Raises:
        FileFormatError: naming the element and line that cannot be read.
        ModelError: if the model it describes contradicts itself.
    """
    file = load(path)
    notes = _unit_notes(file)
    frames = find_frames(file)
    shapes = read_contact_geometry(file, frames, notes)
    bodies = [_body(item, shapes.get(item.name, ()), notes) for item in frames.bodies]
    joints = JointReader(file, frames, notes)
    joints.read_all()
    try:
        tree, loose = as_tree(joints.joints, [body.name for body in bodies], notes)
        joints.joints = tree
        for name in loose:
            joints.add_free(name)
        couplings, loops = read_constraints(file, joints, notes)
        muscles = MuscleReader(frames, joints, notes)
        muscles.read_wrap_objects()
        others = _read_forces(file, muscles)
        notes.extend(_left_out(file, others))
        model = Model(
            name=file.name or Path(path).stem or "model",
            bodies=tuple(bodies),
            joints=(*joints.joints, *loops),
            markers=tuple(_markers(file, frames, notes)),
            couplings=tuple(couplings),
            muscles=tuple(muscles.muscles),
            ground=tuple(shapes.get(GROUND, ())),
            gravity=file.vector("gravity", GRAVITY),
            notes=tuple(notes),
            wrap_objects=tuple(muscles.wrap_objects.values()),
        )
        return _at_defaults(with_default_frames(validate(model, sound_masses=False)))
    except FileFormatError:
        raise
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _unit_notes(model: Item) -> list[str]:
    """What the file says of its units, where that is not what OpenSim takes all numbers for."""
    notes = []
    for tag, usual, unit in (("length_units", METRES, "metres"), ("force_units", NEWTONS, "newtons")):
        stated = model.text(tag)
        if stated.lower() not in usual:
            notes.append(f"{tag} is {stated[:40]!r}, but numbers are taken as {unit}, as OpenSim itself takes them")
    return notes


def _body(item: Item, shapes: Sequence[Shape], notes: list[str]) -> Body:
    mass = item.number("mass", 0.0)
    inertia = _inertia(item)
    fault = "it has no mass" if mass == 0.0 else inertia_problem(inertia)
    if fault:
        notes.append(f"body {item.name!r}: {fault}; inverse dynamics takes it so, forward simulation refuses it")
    x, y, z = (vector(row) for row in inertia)
    return Body(item.name, mass, item.vector("mass_center"), (x, y, z), tuple(shapes))


def _inertia(item: Item) -> Array:
    """The inertia [kg m^2] about the centre of mass: six numbers in one property, or before 4.0 in one each."""
    values = item.numbers("inertia")
    if not values:
        values = [item.number(f"inertia_{axes}", 0.0) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")]
    if len(values) != 6:
        raise item.error(f"<inertia> must hold 6 numbers (xx yy zz xy xz yz), got {len(values)}")
    xx, yy, zz, xy, xz, yz = values
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _markers(model: Item, frames: Frames, notes: list[str]) -> Iterator[Marker]:
    namer = Namer()
    for item in model.listed("MarkerSet", "components"):
        if item.kind != "Marker":
            continue
        name = namer.unique(item.name or "marker")
        if name != item.name:
            notes.append(f"{item.title} is called {name!r}: its name is taken or empty")
        stated = item.socket("parent_frame", "body", "body_name")
        body, frame = frames.locate(item, f"/markerset/{item.name}", stated)
        yield Marker(name, body, place(frame, item.vector("location")))


def _read_forces(model: Item, muscles: MuscleReader) -> list[Item]:
    """Reads all muscles; gives back the forces that are none."""
    others = []
    for item in model.listed("ForceSet", "components"):
        if "Muscle" in item.kind and "Probe" not in item.kind:
            muscles.add(item)
        else:
            others.append(item)
    return others


def _left_out(model: Item, forces: Sequence[Item]) -> Iterator[str]:
    """One sentence on each kind of thing in the file that a model does not hold."""
    known = ("Body", "Joint", "Constraint", "Marker", "PhysicalOffsetFrame")
    counts = Counter(item.kind for item in forces if not item.kind.endswith(known) and "Contact" not in item.kind)
    for item in model.listed("ControllerSet", "ProbeSet", "ComponentSet", "AnalysisSet"):
        if item.kind != "PhysicalOffsetFrame":
            counts[item.kind] += 1
    display = sum(element.tag in ("Mesh", "DisplayGeometry") for element in model.element.walk())
    if display:
        counts["display mesh"] += display
    if counts:
        yield "left out: " + ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _at_defaults(model: Model) -> Model:
    """The model with its moving path points placed where the default coordinates put them."""
    values = {c.name: c.default for c in model.coordinates}
    return replace(model, muscles=tuple(_muscle_at(muscle, values) for muscle in model.muscles))


def _muscle_at(muscle: Muscle, values: Mapping[str, float]) -> Muscle:
    if not any(point.motion for point in muscle.path):
        return muscle
    return replace(muscle, path=tuple(_point_at(point, values) for point in muscle.path))


def _point_at(point: PathPoint, values: Mapping[str, float]) -> PathPoint:
    if not point.motion:
        return point
    shifts = [np.array(m.axis) * m.function(values[m.coordinate] if m.coordinate else 0.0) for m in point.motion]
    return replace(point, position=vector(np.sum(shifts, axis=0)))

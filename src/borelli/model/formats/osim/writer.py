"""Writer of OpenSim's model files (.osim), version 4."""

from __future__ import annotations

import os
from collections import Counter

from borelli.errors import list_names
from borelli.files.text import write_text
from borelli.files.xml import Element, make_element, format_xml
from borelli.model.formats.osim.contact_geometry import half_space_frame
from borelli.model.formats.osim.frames import angles_of
from borelli.model.formats.osim.properties import Namer
from borelli.model.formats.osim.write_common import ILLEGAL, Names, Notes, names_of, objects, value, words
from borelli.model.formats.osim.write_joints import coupling_element, free_joint, joint_element, loop_element
from borelli.model.formats.osim.write_muscles import muscle_element, wrap_element
from borelli.model.model import GROUND, Body, Marker, Model, Shape
from borelli.model.validate import validate

VERSION = "40000"


def write_osim(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes the model as an .osim file; gives back sentences on what OpenSim cannot be told.

    Raises:
        ModelError: if a function in the model is none that OpenSim knows, or the model contradicts itself.
    """
    text, notes = osim_text(model)
    write_text(text, path)
    return notes


def osim_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """The model as the text of an .osim file, and sentences on what OpenSim cannot be told."""
    validate(model, sound_masses=False)
    notes: Notes = {}
    names = names_of(model, notes)
    wraps: dict[str, list[Element]] = {}
    for wrap in model.wrap_objects:
        wraps.setdefault(wrap.body, []).append(wrap_element(wrap, names))
    hung = {joint.child for joint in model.joints if not joint.closes_loop}
    root = make_element(
        "Model",
        make_element("Ground", objects("WrapObjectSet", wraps.get(GROUND, ())), name=GROUND),
        value("gravity", *model.gravity),
        words("length_units", "meters"),
        words("force_units", "N"),
        objects("BodySet", (_body(body, wraps.get(body.name, []), names) for body in model.bodies)),
        objects(
            "JointSet",
            (
                *(joint_element(joint, names) for joint in model.joints if not joint.closes_loop),
                *(free_joint(body, names) for body in model.bodies if body.name not in hung),
            ),
        ),
        objects("ConstraintSet", _constraints(model, names, notes)),
        objects("ForceSet", (muscle_element(muscle, names, notes) for muscle in model.muscles)),
        objects("MarkerSet", (_marker(marker, names) for marker in model.markers)),
        objects("ContactGeometrySet", _contact_geometry(model, names, notes)),
        name=ILLEGAL.sub("_", model.name),
    )
    notes |= _left_out(model)
    document = make_element("OpenSimDocument", root)
    document.attributes["Version"] = VERSION
    return format_xml(document), tuple(f"{said}: {list_names(those)}" for said, those in notes.items())


def _body(body: Body, wraps: list[Element], names: Names) -> Element:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia
    return make_element(
        "Body",
        objects("WrapObjectSet", wraps),
        value("mass", body.mass),
        value("mass_center", *body.center_of_mass),
        value("inertia", xx, yy, zz, xy, xz, yz),
        name=names.of("body", body.name),
    )


def _marker(marker: Marker, names: Names) -> Element:
    return make_element(
        "Marker",
        words("socket_parent_frame", names.body_path(marker.body)),
        value("location", *marker.position),
        name=names.of("marker", marker.name),
    )


def _constraints(model: Model, names: Names, notes: Notes) -> list[Element]:
    found = [coupling_element(coupling, names) for coupling in model.couplings]
    for joint in model.joints:
        element = loop_element(joint, names) if joint.closes_loop else None
        if element is not None:
            found.append(element)
        elif joint.closes_loop:
            notes.setdefault("joints that close loops, but not as ball or fixed joints, are left out", []).append(
                joint.name
            )
    return found


def _contact_geometry(model: Model, names: Names, notes: Notes) -> list[Element]:
    found, namer, left_out = [], Namer(), Counter[str]()
    for body, shapes in ((GROUND, model.ground), *((body.name, body.shapes) for body in model.bodies)):
        for shape in shapes:
            if shape.kind not in ("sphere", "plane"):
                left_out[shape.kind] += 1
                continue
            name = namer.unique(ILLEGAL.sub("_", shape.name or f"{body}_{shape.kind}"))
            found.append(_contact(shape, name, names.body_path(body)))
    if left_out:
        said = "shapes are left out, because OpenSim's contacts know spheres and half spaces"
        notes[said] = [f"{count} {kind}" for kind, count in left_out.items()]
    return found


def _contact(shape: Shape, name: str, path: str) -> Element:
    frame = half_space_frame(shape) if shape.kind == "plane" else shape.frame
    return make_element(
        "ContactHalfSpace" if shape.kind == "plane" else "ContactSphere",
        words("socket_frame", path),
        value("location", *frame.position),
        value("orientation", *angles_of(frame)),
        value("radius", shape.size[0]) if shape.kind == "sphere" else None,
        name=name,
    )


def _left_out(model: Model) -> Notes:
    """What no element of the file can say."""
    kinematic = [body.name for body in model.bodies if body.kinematic]
    aliases = [marker.name for marker in model.markers if marker.aliases]
    found = {
        "bodies moved as prescribed are written as free to move": kinematic,
        "other labels of markers are left out": aliases,
    }
    return {said: names for said, names in found.items() if names}

"""Writer of OpenSim's model files (.osim), version 4."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from borelli.errors import list_names
from borelli.files.atomic import write_atomic
from borelli.files.xml import Element, format_xml, make_element
from borelli.model.formats.osim.frames import HALF_SPACE, xyz_angles
from borelli.model.formats.osim.write_elements import (
    ILLEGAL,
    Names,
    Notes,
    coupling_element,
    free_joint,
    joint_element,
    legal_names,
    ligament_element,
    loop_element,
    muscle_element,
    objects,
    properties,
    wrap_element,
)
from borelli.model.formats.parsing import Namer
from borelli.model.model import GROUND, Body, Marker, Model, Shape
from borelli.model.transforms import compose, inverse
from borelli.model.validate import validate

VERSION = "40000"


def write_osim(model: Model, path: str | Path, *, overwrite: bool = False) -> tuple[str, ...]:
    """Write the model as an .osim file.

    Args:
        model: Model of any source.
        path: File to write (.osim).
        overwrite: Whether an existing file is replaced.

    Returns:
        Sentences on what OpenSim cannot represent.

    Raises:
        ModelError: if OpenSim has no such function as one in the model, or the model is inconsistent.
    """
    text, notes = osim_text(model)
    write_atomic(text, path, overwrite=overwrite)
    return notes


def osim_text(model: Model) -> tuple[str, tuple[str, ...]]:
    """Return the model as the text of an .osim file, and sentences on what OpenSim cannot represent."""
    validate(model, sound_masses=False)
    notes: Notes = {}
    names = legal_names(model, notes)
    wraps: dict[str, list[Element]] = {}
    for wrap in model.wrap_objects:
        wraps.setdefault(wrap.body, []).append(wrap_element(wrap, names))
    connected = {joint.child for joint in model.joints if not joint.closes_loop}
    joints = [joint_element(joint, names) for joint in model.joints if not joint.closes_loop]
    joints += [free_joint(body, names) for body in model.bodies if body.name not in connected]
    forces = [muscle_element(muscle, names, notes) for muscle in model.muscles]
    forces += [ligament_element(ligament, names, notes) for ligament in model.ligaments]
    root = make_element(
        "Model",
        make_element("Ground", objects("WrapObjectSet", wraps.get(GROUND, ())), name=GROUND),
        *properties(gravity=model.gravity, length_units="meters", force_units="N"),
        objects("BodySet", (_body(body, wraps.get(body.name, []), names) for body in model.bodies)),
        objects("JointSet", joints),
        objects("ConstraintSet", _constraints(model, names, notes)),
        objects("ForceSet", forces),
        objects("MarkerSet", (_marker(marker, names) for marker in model.markers)),
        objects("ContactGeometrySet", _contact_geometry(model, names, notes)),
        name=ILLEGAL.sub("_", model.name),
    )
    notes |= _left_out(model)
    document = make_element("OpenSimDocument", root)
    document.attributes["Version"] = VERSION
    return format_xml(document), tuple(f"{text}: {list_names(names)}." for text, names in notes.items())


def _body(body: Body, wraps: list[Element], names: Names) -> Element:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia
    own = properties(mass=body.mass, mass_center=body.center_of_mass, inertia=(xx, yy, zz, xy, xz, yz))
    return make_element("Body", objects("WrapObjectSet", wraps), *own, name=names.of("body", body.name))


def _marker(marker: Marker, names: Names) -> Element:
    own = properties(socket_parent_frame=names.body_path(marker.body), location=marker.position)
    return make_element("Marker", *own, name=names.of("marker", marker.name))


def _constraints(model: Model, names: Names, notes: Notes) -> list[Element]:
    elements = [coupling_element(coupling, names) for coupling in model.couplings]
    for joint in model.joints:
        element = loop_element(joint, names) if joint.closes_loop else None
        if element is not None:
            elements.append(element)
        elif joint.closes_loop:
            notes.setdefault("Joints that close loops are not written unless ball or fixed", []).append(joint.name)
    return elements


def _contact_geometry(model: Model, names: Names, notes: Notes) -> list[Element]:
    elements, namer, unwritten = [], Namer(), Counter[str]()
    for body, shapes in ((GROUND, model.ground), *((body.name, body.shapes) for body in model.bodies)):
        for shape in shapes:
            if shape.kind not in ("sphere", "plane"):
                unwritten[shape.kind] += 1
                continue
            name = namer.unique(ILLEGAL.sub("_", shape.name or f"{body}_{shape.kind}"))
            elements.append(_contact(shape, name, names.body_path(body)))
    if unwritten:
        text = "Shapes are not written unless spheres or planes"
        notes[text] = [f"{count} {kind}" for kind, count in unwritten.items()]
    return elements


def _contact(shape: Shape, name: str, path: str) -> Element:
    frame = compose(shape.frame, inverse(HALF_SPACE)) if shape.kind == "plane" else shape.frame
    tag, radius = ("ContactHalfSpace", None) if shape.kind == "plane" else ("ContactSphere", shape.size[0])
    own = properties(socket_frame=path, location=frame.position, orientation=xyz_angles(frame), radius=radius)
    return make_element(tag, *own, name=name)


def _left_out(model: Model) -> Notes:
    elements = {
        "Kinematic bodies are written as free bodies": [body.name for body in model.bodies if body.kinematic],
        "Aliases of markers are not written": [marker.name for marker in model.markers if marker.aliases],
    }
    return {text: names for text, names in elements.items() if names}

"""Constraints of an .osim file: couplings of coordinates, and weld and point constraints that close loops."""

from __future__ import annotations

from dataclasses import replace

from borelli.model.formats.osim.frames import Frames, compose_offset, frame_from_angles
from borelli.model.formats.osim.functions import function_in
from borelli.model.formats.osim.joints import JointReader
from borelli.model.formats.osim.properties import Item
from borelli.model.formats.parsing import Namer
from borelli.model.model import GROUND, Coordinate, Coupling, Joint
from borelli.model.transforms import AXES


def read_constraints(model: Item, joints: JointReader, notes: list[str]) -> tuple[list[Coupling], list[Joint]]:
    """Return couplings of coordinates and joints that close loops; unsupported constraints are noted."""
    couplings: dict[str, Coupling] = {}
    loops: list[Joint] = []
    namer = Namer()
    for item in model.listed("ConstraintSet", "components"):
        if not item.kind.endswith("Constraint"):
            continue
        if not item.flag("isEnforced", not item.flag("isDisabled")):
            notes.append(f"{item.title} is disabled in the file and not read.")
        elif item.kind == "CoordinateCouplerConstraint":
            coupling = _coupling(item, joints, notes)
            if coupling is not None and coupling.coordinate in couplings:
                notes.append(
                    f"{item.title} is not read: {coupling.coordinate!r} already depends on another constraint."
                )
            elif coupling is not None:
                couplings[coupling.coordinate] = replace(coupling, name=namer.unique(coupling.name))
        elif item.kind in ("WeldConstraint", "PointConstraint"):
            loop = _loop(item, joints.frames, notes)
            if loop is not None:
                loops.append(_named(loop, joints.new_joint(loop.name), joints))
        else:
            notes.append(f"{item.title} is not read: this class is not supported.")
    return list(couplings.values()), loops


def _coupling(item: Item, joints: JointReader, notes: list[str]) -> Coupling | None:
    independent = item.text("independent_coordinate_names").split()
    if len(independent) != 1:
        notes.append(
            f"{item.title} is not read: it depends on {len(independent)} coordinates, and only one is supported."
        )
        return None
    holder = item.child("coupled_coordinates_function")
    function = None if holder is None else function_in(holder)
    if function is None:
        raise item.error("coupled_coordinates_function is missing.")
    dependent = joints.coordinate(item, item.text("dependent_coordinate_name"))
    name = item.name or f"{dependent}_coupling"
    return Coupling(
        name, dependent, joints.coordinate(item, independent[0]), function.scaled(item.number("scale_factor", 1.0))
    )


def _loop(item: Item, frames: Frames, notes: list[str]) -> Joint | None:
    ends = []
    for side in ("1", "2"):
        stated = item.socket(f"frame{side}") or item.socket(f"body_{side}", f"body_{side}")
        body, frame = frames.locate(item, f"/constraintset/{item.name}", stated)
        offset = frame_from_angles(item.vector(f"location_body_{side}"), item.vector(f"orientation_body_{side}"))
        ends.append((body, compose_offset(frame, offset)))
    (first, first_frame), (second, second_frame) = ends
    if first == second:
        notes.append(f"{item.title} is not read: it connects {first!r} to itself.")
        return None
    if second == GROUND:
        first, first_frame, second, second_frame = second, second_frame, first, first_frame
    kind = "fixed" if item.kind == "WeldConstraint" else "ball"
    name, axes = item.name or f"{second}_{kind}", AXES if kind == "ball" else ()
    return Joint(name, kind, first, second, first_frame, second_frame, axes, closes_loop=True)


def _named(loop: Joint, name: str, joints: JointReader) -> Joint:
    """Return the joint with a unique name; the angles of a ball joint, which OpenSim does not have, get names too."""
    if loop.kind == "fixed":
        return replace(loop, name=name)
    coordinates = tuple(Coordinate(joints.new_coordinate(f"{name}_{axis}", name)) for axis in "xyz")
    return replace(loop, name=name, coordinates=coordinates)

"""Constraints of an .osim file: couplings of coordinates, and welds and points that close loops."""

from __future__ import annotations

from dataclasses import replace

from borelli.model.formats.osim.frames import Frames, turned
from borelli.model.formats.osim.functions import function_in
from borelli.model.formats.osim.joints import JointReader
from borelli.model.formats.osim.properties import Item, Namer
from borelli.model.model import GROUND, Coordinate, Coupling, Frame, Joint
from borelli.model.transforms import compose

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def read_constraints(model: Item, joints: JointReader, notes: list[str]) -> tuple[list[Coupling], list[Joint]]:
    """Couplings of coordinates, and joints that close loops; what cannot be said is noted."""
    couplings: dict[str, Coupling] = {}
    loops: list[Joint] = []
    namer = Namer()
    for item in model.listed("ConstraintSet", "components"):
        if not item.kind.endswith("Constraint"):
            continue
        if not item.flag("isEnforced", not item.flag("isDisabled")):
            notes.append(f"{item.title} is switched off in the file and left out")
        elif item.kind == "CoordinateCouplerConstraint":
            coupling = _coupling(item, joints, notes)
            if coupling is not None and coupling.coordinate in couplings:
                notes.append(f"{item.title} is left out: {coupling.coordinate!r} is already held by another")
            elif coupling is not None:
                couplings[coupling.coordinate] = replace(coupling, name=namer.unique(coupling.name))
        elif item.kind in ("WeldConstraint", "PointConstraint"):
            loop = _loop(item, joints.frames, notes)
            if loop is not None:
                loops.append(_named(loop, joints.new_joint(loop.name), joints))
        else:
            notes.append(f"{item.title} is left out: constraints of this class are not read")
    return list(couplings.values()), loops


def _coupling(item: Item, joints: JointReader, notes: list[str]) -> Coupling | None:
    independent = item.text("independent_coordinate_names").split()
    if len(independent) != 1:
        notes.append(f"{item.title} is left out: it depends on {len(independent)} coordinates, only one can be said")
        return None
    holder = item.child("coupled_coordinates_function")
    function = None if holder is None else function_in(holder)
    if function is None:
        raise item.error("it has no coupled_coordinates_function")
    dependent = joints.coordinate(item, item.text("dependent_coordinate_name"))
    name = item.name or f"{dependent}_coupling"
    return Coupling(
        name, dependent, joints.coordinate(item, independent[0]), function.scaled(item.number("scale_factor", 1.0))
    )


def _loop(item: Item, frames: Frames, notes: list[str]) -> Joint | None:
    """A weld or point constraint as a joint that closes a loop."""
    ends = []
    for side in ("1", "2"):
        stated = item.socket(f"frame{side}") or item.socket(f"body_{side}", f"body_{side}")
        body, frame = frames.locate(item, f"/constraintset/{item.name}", stated)
        offset = turned(item.vector(f"location_body_{side}"), item.vector(f"orientation_body_{side}"))
        ends.append((body, offset if frame == Frame() else compose(frame, offset)))
    (first, first_frame), (second, second_frame) = ends
    if first == second:
        notes.append(f"{item.title} is left out: it joins {first!r} to itself")
        return None
    if second == GROUND:
        first, first_frame, second, second_frame = second, second_frame, first, first_frame
    kind = "fixed" if item.kind == "WeldConstraint" else "ball"
    return Joint(
        item.name or f"{second}_{kind}",
        kind,
        first,
        second,
        first_frame,
        second_frame,
        axes=(X, Y, Z) if kind == "ball" else (),
        closes_loop=True,
    )


def _named(loop: Joint, name: str, joints: JointReader) -> Joint:
    """The joint under a name of its own; a ball's angles, which OpenSim does not have, get names too."""
    if loop.kind == "fixed":
        return replace(loop, name=name)
    coordinates = tuple(Coordinate(joints.new_coordinate(f"{name}_{axis}", name)) for axis in "xyz")
    return replace(loop, name=name, coordinates=coordinates)

"""The equalities of an MJCF file: joints held at polynomials of others, points and bodies held together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf.bodies import WORLD, Tree
from borelli.model.formats.mjcf.defaults import Settings, Values
from borelli.model.functions import polynomial
from borelli.model.kinematics import poses
from borelli.model.model import GROUND, Coordinate, Coupling, Frame, Joint, Model
from borelli.model.transforms import compose, inverse, orientation_from_matrix, vector


@dataclass(frozen=True, slots=True)
class Equalities:
    """What the equalities of a file say about a model."""

    couplings: tuple[Coupling, ...]
    loops: tuple[Joint, ...]
    held: tuple[tuple[str, float], ...]
    """Coordinates held at one value [rad or m]."""


def read_equalities(root: Element, tree: Tree, model: Model) -> Equalities:
    """The equalities of a file, for the model of its bodies in its reference pose."""
    couplings: list[Coupling] = []
    loops: list[Joint] = []
    held: list[tuple[str, float]] = []
    offsets = _offsets(tree, model)
    places = _places(model, offsets)
    for section in root.all("equality"):
        for element in section.children:
            values = tree.settings.values(element, kind=f"equality {element.tag}")
            if not values.truth("active", True):
                tree.settings.leave_out(f"inactive {element.tag} equality")
            elif element.tag == "joint":
                _read_coupling(values, tree, offsets, couplings, held)
            elif element.tag in ("connect", "weld"):
                loops.append(_loop(values, tree, places))
            else:
                tree.settings.leave_out(f"{element.tag} equality")
    return Equalities(tuple(couplings), tuple(loops), tuple(held))


def _offsets(tree: Tree, model: Model) -> dict[str, float]:
    """Coordinates in the file's reference pose: a joint's ref, a free body's place."""
    defaults = {c.name: c.default for c in model.coordinates}
    return {**defaults, **tree.references}


def _places(model: Model, offsets: dict[str, float]) -> dict[str, Frame]:
    """Bodies in the file's reference pose."""
    position, rotation = poses(model, [[offsets[c.name] for c in model.coordinates]])
    found = {
        body.name: Frame(vector(position[0, i]), orientation_from_matrix(rotation[0, i])) for i, body in enumerate(model.bodies)
    }
    return {**found, GROUND: Frame()}


def _read_coupling(
    values: Values,
    tree: Tree,
    offsets: dict[str, float],
    couplings: list[Coupling],
    held: list[tuple[str, float]],
) -> None:
    """y - y0 = polynomial of x - x0, y0 and x0 their values in the reference pose; without x, y is held."""
    powers = values.numbers("polycoef", 1, 5) or (0.0, 1.0)
    coordinate = _coordinate(values, "joint1", tree)
    if "joint2" not in values:
        held.append((coordinate, offsets[coordinate] + powers[0]))
        return
    on = _coordinate(values, "joint2", tree)
    shifted = [
        sum(powers[k] * comb(k, i) * (-offsets[on]) ** (k - i) for k in range(i, len(powers)))
        for i in range(len(powers))
    ]
    shifted[0] += offsets[coordinate]
    while len(shifted) > 2 and shifted[-1] == 0.0:
        shifted.pop()
    name = tree.free_name("coupling", values.text("name") or f"{coordinate}_coupling")
    couplings.append(Coupling(name, coordinate, on, polynomial(shifted)))


def _coordinate(values: Values, which: str, tree: Tree) -> str:
    name = values.text(which)
    if name not in tree.scalar_joints:
        raise values.element.error(f"joint equality: {unknown_name('hinge or slide', name, tree.scalar_joints)}")
    return name


def _loop(values: Values, tree: Tree, places: dict[str, Frame]) -> Joint:
    """The joint that closes a loop where the file connects or welds two bodies."""
    element = values.element
    welds = element.tag == "weld"
    name = tree.free_name("joint", values.text("name") or f"{element.tag}")
    if "site1" in values:
        sites = tree.sites
        ends = []
        for which in ("site1", "site2"):
            if values.text(which) not in sites:
                raise element.error(f"{element.tag}: {unknown_name('site', values.text(which), sites)}")
            marker = sites[values.text(which)]
            ends.append((marker.body, Frame(marker.position)))
        if welds:
            tree.settings.notes.append(f"weld {name!r}: the orientations of its two sites are taken as their bodies'")
    else:
        first = tree.body(values.text("body1"), element)
        second = tree.body(values.text("body2", WORLD), element)
        anchor = Frame(values.vector("anchor"))
        ends = (
            _weld_ends(values, first, second, places)
            if welds
            else [
                (first, anchor),
                (second, compose(inverse(places[second]), compose(places[first], anchor))),
            ]
        )
    (child, child_frame), (parent, parent_frame) = ends
    if child == GROUND:
        (child, child_frame), (parent, parent_frame) = ends[::-1]
    if welds:
        return Joint(name, "fixed", parent, child, parent_frame, child_frame, closes_loop=True)
    coordinates = tuple(Coordinate(tree.free_name("coordinate", f"{name}_{letter}")) for letter in "xyz")
    return Joint(name, "ball", parent, child, parent_frame, child_frame, (), coordinates, closes_loop=True)


def _weld_ends(values: Values, first: str, second: str, places: dict[str, Frame]) -> list[tuple[str, Frame]]:
    """The frames on two welded bodies; the anchor, where the weld is measured, does not change what it holds."""
    pose = values.numbers("relpose", 7, 7)
    if pose is None or not any(pose[3:]):  # the file's reference pose is to be kept
        between = compose(inverse(places[first]), places[second])
    else:
        w, x, y, z = np.array(pose[3:]) / np.linalg.norm(pose[3:])
        between = Frame(vector(pose[:3]), (float(w), float(x), float(y), float(z)))
    return [(first, between), (second, Frame())]


def hold(model: Model, equalities: Equalities, settings: Settings) -> Model:
    """The model with couplings, loops and held coordinates."""
    held = dict(equalities.held)
    joints = tuple(
        replace(joint, coordinates=tuple(_held(c, held) for c in joint.coordinates)) for joint in model.joints
    )
    if held:
        settings.notes.append(f"held at one value by an equality, so locked: {', '.join(held)}")
    return replace(model, joints=(*joints, *equalities.loops), couplings=equalities.couplings)


def _held(coordinate: Coordinate, held: dict[str, float]) -> Coordinate:
    if coordinate.name not in held:
        return coordinate
    value = held[coordinate.name]
    return replace(
        coordinate,
        default=value,
        lower=min(coordinate.lower, value),
        upper=max(coordinate.upper, value),
        locked=True,
    )

"""Equalities of an MJCF file: joints that are polynomials of others, and connected points and bodies."""

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
    """Equalities of a file."""

    couplings: tuple[Coupling, ...]
    loops: tuple[Joint, ...]
    fixed: tuple[tuple[str, float], ...]
    """Coordinates fixed at one value [rad or m]."""


def read_equalities(root: Element, tree: Tree, model: Model) -> Equalities:
    """Return the equalities of a file, for the model of its bodies in its reference pose."""
    couplings: list[Coupling] = []
    loops: list[Joint] = []
    fixed: list[tuple[str, float]] = []
    # the file's reference pose: a joint's ref, a free body's position
    offsets = {c.name: c.default for c in model.coordinates} | tree.references
    poses_by_body = _poses(model, offsets)
    for section in root.all("equality"):
        for element in section.children:
            values = tree.settings.values(element, kind=f"equality {element.tag}")
            if not values.flag("active", True):
                tree.settings.leave_out(element, f"inactive {element.tag} equality")
                continue
            element.was_read = element.tag in ("joint", "connect", "weld")
            if element.tag == "joint":
                _read_coupling(values, tree, offsets, couplings, fixed)
            elif element.tag in ("connect", "weld"):
                loops.append(_loop(values, tree, poses_by_body))
    return Equalities(tuple(couplings), tuple(loops), tuple(fixed))


def _poses(model: Model, offsets: dict[str, float]) -> dict[str, Frame]:
    position, rotation = poses(model, [[offsets[c.name] for c in model.coordinates]])
    frames = {
        body.name: Frame(vector(position[0, i]), orientation_from_matrix(rotation[0, i]))
        for i, body in enumerate(model.bodies)
    }
    return {**frames, GROUND: Frame()}


def _read_coupling(
    values: Values, tree: Tree, offsets: dict[str, float], couplings: list[Coupling], fixed: list[tuple[str, float]]
) -> None:
    """Read y - y0 = polynomial of x - x0, with y0 and x0 in the reference pose; without x, y is fixed."""
    powers = values.numbers("polycoef", 1, 5) or (0.0, 1.0)
    coordinate = _coordinate(values, "joint1", tree)
    if "joint2" not in values:
        fixed.append((coordinate, offsets[coordinate] + powers[0]))
        return
    on = _coordinate(values, "joint2", tree)
    coefficients = [
        sum(powers[k] * comb(k, i) * (-offsets[on]) ** (k - i) for k in range(i, len(powers)))
        for i in range(len(powers))
    ]
    coefficients[0] += offsets[coordinate]
    while len(coefficients) > 2 and coefficients[-1] == 0.0:
        coefficients.pop()
    name = tree.unique_name("coupling", values.text("name") or f"{coordinate}_coupling")
    couplings.append(Coupling(name, coordinate, on, polynomial(coefficients)))


def _coordinate(values: Values, which: str, tree: Tree) -> str:
    name = values.text(which)
    if name not in tree.scalar_joints:
        raise values.element.error(f"Joint equality: {unknown_name('hinge or slide', name, tree.scalar_joints)}")
    return name


def _loop(values: Values, tree: Tree, poses_by_body: dict[str, Frame]) -> Joint:
    """Return the joint that closes a loop where the file connects or welds two bodies."""
    element = values.element
    welds = element.tag == "weld"
    name = tree.unique_name("joint", values.text("name") or f"{element.tag}")
    if "site1" in values:
        sites = tree.sites
        ends = []
        for which in ("site1", "site2"):
            if values.text(which) not in sites:
                raise element.error(f"{element.tag.capitalize()}: {unknown_name('site', values.text(which), sites)}")
            marker = sites[values.text(which)]
            ends.append((marker.body, Frame(marker.position)))
        if welds:
            tree.settings.notes.append(
                f"Weld {name!r}: The orientations of its sites are assumed to be those of their bodies."
            )
    else:
        first = tree.body(values.text("body1"), element)
        second = tree.body(values.text("body2", WORLD), element)
        anchor = Frame(values.vector("anchor"))
        if welds:
            ends = _weld_ends(values, first, second, poses_by_body)
        else:
            there = compose(inverse(poses_by_body[second]), compose(poses_by_body[first], anchor))
            ends = [(first, anchor), (second, there)]
    (child, child_frame), (parent, parent_frame) = ends
    if child == GROUND:
        (child, child_frame), (parent, parent_frame) = ends[::-1]
    if welds:
        return Joint(name, "fixed", parent, child, parent_frame, child_frame, closes_loop=True)
    coordinates = tuple(Coordinate(tree.unique_name("coordinate", f"{name}_{letter}")) for letter in "xyz")
    return Joint(name, "ball", parent, child, parent_frame, child_frame, (), coordinates, closes_loop=True)


def _weld_ends(values: Values, first: str, second: str, poses_by_body: dict[str, Frame]) -> list[tuple[str, Frame]]:
    """Return the frames on two welded bodies; the anchor does not change the constraint."""
    pose = values.numbers("relpose", 7, 7)
    if pose is None or not any(pose[3:]):  # keep the file's reference pose
        between = compose(inverse(poses_by_body[first]), poses_by_body[second])
    else:
        w, x, y, z = np.array(pose[3:]) / np.linalg.norm(pose[3:])
        between = Frame(vector(pose[:3]), (float(w), float(x), float(y), float(z)))
    return [(first, between), (second, Frame())]


def apply_equalities(model: Model, equalities: Equalities, settings: Settings) -> Model:
    """Return the model with couplings, loops and fixed coordinates."""
    fixed = dict(equalities.fixed)

    def locked(c: Coordinate) -> Coordinate:
        if c.name not in fixed:
            return c
        value = fixed[c.name]
        return replace(c, default=value, lower=min(c.lower, value), upper=max(c.upper, value), locked=True)

    joints = (replace(joint, coordinates=tuple(map(locked, joint.coordinates))) for joint in model.joints)
    if fixed:
        settings.notes.append(f"Coordinates fixed by an equality are locked: {', '.join(fixed)}.")
    return replace(model, joints=(*joints, *equalities.loops), couplings=equalities.couplings)

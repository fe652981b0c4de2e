"""Geoms of MJCF as shapes, and the mass they give a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from borelli.files.xml import Element
from borelli.model.formats.mjcf.defaults import Settings, Values, rotation_from_z
from borelli.model.formats.mjcf.meshes import Mesh
from borelli.model.inertia import MassProperties, shape_mass
from borelli.model.model import Frame, Shape, Surface
from borelli.model.transforms import compose, orientation_matrix, vector

GEOM_KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
MIN_VOLUME = 1e-300
"""Volume [m^3] below which a density is undefined."""


@dataclass(frozen=True, slots=True)
class Geom:
    """Geom: its shape in the frame of its body, and its mass."""

    name: str
    kind: str
    frame: Frame
    shape: Shape | None
    """None: a missing mesh or height field, or a plane of a body."""
    mass: MassProperties | None
    """None: unknown, because it depends on a missing mesh."""
    group: int
    masks: tuple[int, int]
    """contype and conaffinity: two geoms collide if contype of one shares a bit with conaffinity of the other."""
    mesh: str = ""


def read_geom(settings: Settings, element: Element, childclass: str | None, meshes: Mapping[str, Mesh]) -> Geom:
    """Return a geom element in the frame that contains it."""
    values = settings.values(element, childclass)
    kind = values.choice("type", "sphere", GEOM_KINDS)
    mesh = values.text("mesh")
    masks = (_whole(values, "contype", 1), _whole(values, "conaffinity", 1))
    group = _whole(values, "group", 0)
    name = values.text("name")
    if kind == "mesh" and mesh in meshes:
        return _mesh_geom(settings, values, meshes[mesh], group, masks)
    if kind not in SIZES or mesh:
        frame = settings.frame(values)
        shape = Shape("plane", frame=frame, surface=_surface(values), name=name) if kind == "plane" else None
        return Geom(name, kind, frame, shape, _mass_without_shape(values, kind, frame), group, masks, mesh)
    size, frame = _size_and_frame(settings, values, kind)
    solid = Shape(kind, size, frame)
    volume = shape_mass(Shape(kind, size, density=1.0)).mass
    mass = values.number("mass", values.number("density", 1000.0) * volume)
    if mass < 0.0:
        raise element.error(f"Geom {name!r}: Mass is {mass:g} kg. It must not be negative.")
    density = mass / max(volume, MIN_VOLUME)
    shape = Shape(kind, size, frame, density or 1000.0, _surface(values), any(masks), name=name)
    return Geom(name, kind, frame, shape, shape_mass(solid).scaled(density / solid.density), group, masks)


def _mesh_geom(settings: Settings, values: Values, mesh: Mesh, group: int, masks: tuple[int, int]) -> Geom:
    """Return a geom whose mesh is known: its shape is the mesh's hull."""
    name, frame = values.text("name"), settings.frame(values)
    density = values.number("density", 1000.0)
    mass = values.number("mass", density * mesh.mass.mass)
    solid = mesh.mass.scaled(mass / max(mesh.mass.mass, MIN_VOLUME)).transformed(frame)
    shape = Shape("mesh", (), frame, density or 1000.0, _surface(values), any(masks), mesh.hull, name)
    return Geom(name, "mesh", frame, shape, solid, group, masks)


def _mass_without_shape(values: Values, kind: str, frame: Frame) -> MassProperties | None:
    """Return the mass of a geom without shape: zero for planes, at its frame where stated, else None."""
    stated = 0.0 if kind in ("plane", "hfield") or values.numbers("density") == (0.0,) else None
    mass = values.number("mass", -1.0 if stated is None else stated)
    return None if mass < 0.0 else MassProperties(mass, np.array(frame.position), np.zeros((3, 3)))


def _size_and_frame(settings: Settings, values: Values, kind: str) -> tuple[tuple[float, ...], Frame]:
    count = SIZES[kind]
    size = values.numbers("size", 0, 3) or ()
    ends = values.numbers("fromto", 6, 6)
    frame = settings.frame(values)
    if ends is not None and kind != "sphere":
        frame, half = between(ends, values)
        size = (size[0], half) if count == 2 and size else (size[0], size[0], half) if size else ()
    if len(size) < count or not all(s > 0.0 for s in size[:count]):
        raise values.element.error(
            f"Geom {values.text('name')!r}: A {kind} has {count} positive sizes (found {size[:count]})."
        )
    return size[:count], frame


def between(ends: tuple[float, ...], values: Values) -> tuple[Frame, float]:
    """Return the frame halfway between two points with z along them, and half their distance [m]."""
    first, second = np.array(ends[:3]), np.array(ends[3:])
    along = first - second
    midpoint = 0.5 * (first + second)
    half = 0.5 * sqrt(float(along @ along))
    return Frame(vector(midpoint), rotation_from_z(tuple(along), values)), half


def _surface(values: Values) -> Surface:
    friction = values.numbers("friction", 1, 3)
    return Surface(friction=1.0 if friction is None else max(friction[0], 0.0))  # MuJoCo's default is 1


def _whole(values: Values, name: str, default: int) -> int:
    return int(values.number(name, default))


def transform_geom(geom: Geom, frame: Frame) -> Geom:
    """Return the geom in the frame in which `frame` is stated."""
    pose = compose(frame, geom.frame)
    shape = None if geom.shape is None else replace(geom.shape, frame=pose)
    return replace(geom, frame=pose, shape=shape, mass=None if geom.mass is None else geom.mass.transformed(frame))


def inertial(settings: Settings, element: Element) -> MassProperties:
    """Return the mass properties of an `inertial` element, in the frame of its body."""
    values = Values(element, element.attributes)
    mass = values.number("mass", -1.0)
    if mass < 0.0:
        raise element.error("Inertial: The mass is missing or negative. Give a mass that is not negative.")
    center = np.array(values.vector("pos"))
    full = values.numbers("fullinertia", 6, 6)
    if full is not None:
        xx, yy, zz, xy, xz, yz = full
        return MassProperties(mass, center, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    rotation = orientation_matrix(settings.orientation(values))
    return MassProperties(mass, center, rotation @ np.diag(values.vector("diaginertia")) @ rotation.T)


def bounded(settings: Settings, mass: MassProperties) -> MassProperties:
    """Return the mass with the compiler's minimum values and balance applied, as in MuJoCo."""
    moments, axes = np.linalg.eigh(mass.inertia)
    changed = np.maximum(moments, settings.min_inertia)
    if settings.balance_inertia and changed[0] + changed[1] < changed[2]:
        changed = np.full(3, changed.mean())
    inertia = mass.inertia if (changed == moments).all() else axes @ np.diag(changed) @ axes.T
    return MassProperties(max(mass.mass, settings.min_mass), mass.center, inertia)

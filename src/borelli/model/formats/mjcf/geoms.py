"""Geoms and meshes of MJCF as shapes, and the mass they give a body.

Of meshes, vertices in the file itself, STL (binary and text) and OBJ are read, as convex hulls with their mass
properties at unit density. Meshes with missing files or in other formats are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.errors import BorelliError
from borelli.files.outside_paths import joined_path
from borelli.files.text import read_bytes
from borelli.files.xml import Element
from borelli.model.formats.mjcf.defaults import UNIT, Settings, Values, rotation_from_z
from borelli.model.inertia import MassProperties, shape_mass, tetrahedra_mass
from borelli.model.model import Frame, Shape, Surface, Vector
from borelli.model.transforms import Array, compose, orientation_matrix, vector

GEOM_KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
MIN_VOLUME = 1e-300
"""Volume [m^3] below which a density is undefined."""
STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
MAX_CORNERS = 2_000_000
"""Maximum number of corners of one mesh."""
MAX_MESH_BYTES = 64 * 1024 * 1024
"""Maximum size of a mesh file, with about fifty bytes per corner."""
MAX_USES = 20
"""Maximum number of meshes from one file: the mesh, its mirror image and a few other sizes."""


@dataclass(frozen=True, slots=True)
class Mesh:
    """Hull of a mesh, and its mass properties at 1 kg/m^3, in the mesh's frame."""

    hull: tuple[Vector, ...]
    mass: MassProperties


def read_meshes(root: Element, settings: Settings, folder: Path) -> tuple[dict[str, Mesh], dict[str, str]]:
    """Return the meshes of a file by name, and by name why others could not be read."""
    meshes: dict[str, Mesh] = {}
    problems: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for section in root.all("asset"):
        for element in section.all("mesh"):
            values = settings.values(element)
            file, name = _mesh_file(values), mesh_name(values)
            uses[file] += bool(file)
            if uses[file] > MAX_USES:
                problems[name] = f"{file}: More than {MAX_USES} meshes use this file"
                continue
            try:
                meshes[name] = _mesh(values, settings, file, folder)
            except (BorelliError, OSError, ValueError, ArithmeticError) as error:
                problems[name] = str(error)
    return meshes, problems


def mesh_name(values: Values) -> str:
    """Return the name of a mesh: its own, or that of its file."""
    return values.text("name") or Path(_mesh_file(values)).stem


def _mesh_file(values: Values) -> str:
    return values.text("file").replace("\\", "/")


def asset_paths(root: Element, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield use and path of every file that assets refer to, read or not, relative to the main file's folder."""
    for section in root.all("asset"):
        for element in section.children:
            folder = settings.texture_folder if element.tag == "texture" else settings.mesh_folder
            for key, value in element.attributes.items():
                if key.startswith("file") and value:  # a cube texture has six files
                    name = Path(value.replace("\\", "/")).name if settings.strip_path else value
                    yield element.tag, joined_path(folder, name)


def _mesh(values: Values, settings: Settings, file: str, folder: Path) -> Mesh:
    stated = values.numbers("vertex", 12)
    if stated is not None:
        corners = np.array(stated[: len(stated) // 3 * 3]).reshape(-1, 3)
        triangles = None
    else:
        path = folder / settings.mesh_folder / (Path(file).name if settings.strip_path else file)
        corners, triangles = _read_file(path)
    corners = corners * np.array(values.vector("scale", (1.0, 1.0, 1.0)))
    w, x, y, z = values.numbers("refquat", 4, 4) or UNIT
    corners = (corners - np.array(values.vector("refpos"))) @ orientation_matrix((w, x, y, z))
    hull = _hull(corners)
    mass = shape_mass(Shape("mesh", vertices=hull, density=1.0))
    if triangles is not None and values.text("inertia") != "convex":
        mass = _solid(corners[triangles], mass)
    return Mesh(hull, mass)


def _read_file(path: Path) -> tuple[Array, NDArray[np.int64]]:
    content = read_bytes(path, MAX_MESH_BYTES)
    kind = path.suffix.lower()
    if kind == ".obj":
        return _read_obj(content)
    if kind != ".stl":
        raise ValueError(f"Files of kind {kind!r} are not supported (STL and OBJ are)")
    count = int.from_bytes(content[80:84], "little")
    if len(content) == 84 + STL_TRIANGLE.itemsize * count:
        corners = np.frombuffer(content, STL_TRIANGLE, offset=84)["corners"].reshape(-1, 3).astype(float)
    else:
        words = content.split(b"vertex")[1:]
        corners = np.array([word.split(None, 3)[:3] for word in words[: MAX_CORNERS + 1]], dtype=float).reshape(-1, 3)
    _check(corners)
    return corners, np.arange(len(corners)).reshape(-1, 3)


def _read_obj(content: bytes) -> tuple[Array, NDArray[np.int64]]:
    points, triangles = [], []
    for line in content.splitlines():
        words = line.split()
        if words[:1] == [b"v"]:
            points.append([float(word) for word in words[1:4]])
        elif words[:1] == [b"f"]:
            corner = [int(word.split(b"/")[0]) for word in words[1:]]
            corner = [c - 1 if c > 0 else len(points) + c for c in corner]
            triangles += [[corner[0], a, b] for a, b in pairwise(corner[1:])]
    corners, faces = np.array(points, dtype=float).reshape(-1, 3), np.array(triangles, dtype=np.int64).reshape(-1, 3)
    _check(corners)
    if len(faces) and not (faces.min() >= 0 and faces.max() < len(corners)):
        raise ValueError("A face refers to a missing corner")
    return corners, faces


def _check(corners: Array) -> None:
    if not 4 <= len(corners) <= MAX_CORNERS or not np.isfinite(corners).all():
        raise ValueError(f"The mesh has {len(corners)} corners; 4 to {MAX_CORNERS} finite ones are supported")


def _hull(corners: Array) -> tuple[Vector, ...]:
    from scipy.spatial import ConvexHull, QhullError

    try:
        corner_indices = np.sort(ConvexHull(corners).vertices)
    except QhullError:
        raise ValueError("The corners do not span a volume") from None
    return tuple(vector(corner) for corner in corners[corner_indices])


def _solid(triangles: Array, hull: MassProperties) -> MassProperties:
    """Return the mass properties inside closed triangles, or of the hull if the enclosed volume is implausible."""
    corners = triangles - hull.center
    volumes = np.linalg.det(corners) / 6.0
    if not 0.0 < volumes.sum() <= hull.mass * (1.0 + 1e-9):
        return hull
    return tetrahedra_mass(hull.center, corners, volumes)


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
    """Name of its mesh, read or not."""


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
    return Geom(name, "mesh", frame, shape, solid, group, masks, values.text("mesh"))


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

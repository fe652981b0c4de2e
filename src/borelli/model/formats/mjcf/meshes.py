"""Meshes of an MJCF file: convex hulls, and mass properties at unit density.

Vertices in the file itself, STL (binary and text) and OBJ are read. Meshes with missing files or
in other formats are left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.errors import BorelliError
from borelli.files.text import read_bytes
from borelli.files.xml import Element
from borelli.model.formats.mjcf.defaults import UNIT, Settings, Values
from borelli.model.inertia import MassProperties, shape_mass, tetrahedra_mass
from borelli.model.model import Shape, Vector
from borelli.model.transforms import Array, orientation_matrix, vector

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
            file = values.text("file").replace("\\", "/")
            name = values.text("name") or Path(file).stem
            uses[file] += bool(file)
            if uses[file] > MAX_USES:
                problems[name] = f"{file}: More than {MAX_USES} meshes use this file"
                continue
            try:
                meshes[name] = _mesh(values, settings, file, folder)
            except (BorelliError, OSError, ValueError, ArithmeticError) as error:
                problems[name] = str(error)
    return meshes, problems


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

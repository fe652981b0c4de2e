"""Mass, center of mass and inertia of shapes and of bodies made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import pi

import numpy as np

from borelli.errors import ModelError, unknown_name
from borelli.files.text import MAX_NUMBER
from borelli.model.model import SHAPE_KINDS, Body, Frame, Shape, Vector
from borelli.model.transforms import Array, orientation_matrix, vector

Matrix = tuple[Vector, Vector, Vector]


@dataclass(frozen=True, slots=True)
class MassProperties:
    """Mass [kg], center of mass [m] and inertia about it [kg m^2] of a rigid body, in one frame."""

    mass: float
    center: Array
    inertia: Array

    def __add__(self, other: MassProperties) -> MassProperties:
        """Return the properties of both bodies rigidly joined (parallel-axis theorem)."""
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / mass
        between = _point_inertia(self.center - other.center) * (self.mass * other.mass / mass)
        return MassProperties(mass, center, self.inertia + other.inertia + between)

    def __sub__(self, part: MassProperties) -> MassProperties:
        """Return the remainder after cutting out `part`, so that remainder + part gives this again."""
        mass = self.mass - part.mass
        center = (self.mass * self.center - part.mass * part.center) / mass
        between = _point_inertia(center - part.center) * (mass * part.mass / self.mass)
        return MassProperties(mass, center, self.inertia - part.inertia - between)

    def scaled(self, factor: float) -> MassProperties:
        """Return the same distribution with `factor` times the mass."""
        return MassProperties(factor * self.mass, self.center, factor * self.inertia)

    def stretched(self, factors: Sequence[float]) -> MassProperties:
        """Return the properties after stretching along x, y, z about the origin at constant density."""
        f = np.asarray(factors, dtype=float)
        # inertia = trace(S) E - S with S the second moment of mass, which a linear map F changes to F S F
        second_moment = 0.5 * np.trace(self.inertia) * np.eye(3) - self.inertia
        stretched = f.prod() * np.outer(f, f) * second_moment
        return MassProperties(f.prod() * self.mass, f * self.center, np.trace(stretched) * np.eye(3) - stretched)

    def transformed(self, frame: Frame) -> MassProperties:
        """Return the properties in the frame in which the body's own frame is `frame`."""
        rotation = orientation_matrix(frame.orientation)
        center = np.array(frame.position) + rotation @ self.center
        return MassProperties(self.mass, center, rotation @ self.inertia @ rotation.T)

    def fields(self) -> tuple[float, Vector, Matrix]:
        """Return mass, center of mass and inertia as `Body` stores them."""
        inertia = 0.5 * (self.inertia + self.inertia.T)
        return float(self.mass), vector(self.center), (vector(inertia[0]), vector(inertia[1]), vector(inertia[2]))


def shape_mass(shape: Shape) -> MassProperties:
    """Return the mass properties of a solid shape with its own density, in the frame in which the shape is stated.

    Args:
        shape: Solid with a density.

    Raises:
        ModelError: if the shape has no volume or numbers that are too large.
    """
    if shape.kind not in SHAPE_KINDS:
        raise ModelError(unknown_name("kind of shape", shape.kind, SHAPE_KINDS))
    if shape.kind == "plane":
        raise ModelError(
            "A plane has no volume, so its mass is undefined. Use another shape, or state the mass of the body."
        )
    numbers = (*shape.size, shape.density, *shape.frame.position, *(x for vertex in shape.vertices for x in vertex))
    if not all(abs(number) < MAX_NUMBER for number in numbers):
        raise ModelError(
            f"The mass of a {shape.kind} cannot be computed from numbers of {MAX_NUMBER:g} or more. Use SI units."
        )
    if shape.kind == "mesh":
        solid = _mesh(np.array(shape.vertices, dtype=float))
    else:
        volume, radii = _SOLIDS[shape.kind](*shape.size)
        solid = MassProperties(volume, np.zeros(3), volume * np.diag(radii))
    solid = solid.scaled(shape.density).transformed(shape.frame)
    if solid.mass == 0.0 and min(shape.size, default=1.0) > 0.0:
        raise ModelError(f"A {shape.kind} of sizes {shape.size} m is too small: its mass is zero. Use SI units.")
    return solid


def mass_of_shapes(shapes: Iterable[Shape]) -> MassProperties:
    """Return the mass properties of one or more rigidly joined solids; overlaps count twice.

    Args:
        shapes: Solids in the frame of one body.
    """
    return reduce(MassProperties.__add__, map(shape_mass, shapes))


def body_from_shapes(
    name: str,
    shapes: Iterable[Shape],
    *,
    mass: float | None = None,
    frame: Frame | None = None,
    kinematic: bool = False,
) -> Body:
    """Return a body whose center of mass and inertia follow from its shapes.

    Args:
        name: Name of the body.
        shapes: Solid shapes, each with its own density.
        mass: Mass of the body [kg], to which the densities are scaled. Default: from the densities.
        frame: Pose in the world in the reference configuration.
        kinematic: True if the motion of the body is prescribed.

    Raises:
        ModelError: if there are no shapes, or the mass is not positive.
    """
    shapes = tuple(shapes)
    if not shapes:
        problem = "has neither shapes nor inertia. Give it shapes, or state its mass and inertia."
        raise ModelError(f"Body {name!r} {problem}")
    solid = mass_of_shapes(shapes)
    if mass is not None:
        if not mass > 0.0:
            raise ModelError(f"Body {name!r} has a mass of {mass} kg. The mass must be positive.")
        solid = solid.scaled(mass / solid.mass)
    return Body(name, *solid.fields(), shapes, frame or Frame(), kinematic)


def mass_of_body(body: Body) -> MassProperties:
    """Return the mass properties of a body, in its own frame.

    Args:
        body: Body with a stated mass, or with shapes.
    """
    return MassProperties(body.mass, np.array(body.center_of_mass), np.array(body.inertia))


def scale_body(body: Body, factor: float) -> Body:
    """Return the body with `factor` times the mass and inertia."""
    x, y, z = (vector(factor * entry for entry in row) for row in body.inertia)
    return replace(body, mass=factor * body.mass, inertia=(x, y, z))


def _point_inertia(offset: Array) -> Array:
    return offset @ offset * np.eye(3) - np.outer(offset, offset)


# Volume [m^3] and squared radii of gyration [m^2] about the three axes of each solid.


def _sphere(radius: float) -> tuple[float, list[float]]:
    return 4.0 / 3.0 * pi * radius**3, [0.4 * radius**2] * 3


def _box(x: float, y: float, z: float) -> tuple[float, list[float]]:
    return 8.0 * x * y * z, [(y * y + z * z) / 3.0, (x * x + z * z) / 3.0, (x * x + y * y) / 3.0]


def _ellipsoid(x: float, y: float, z: float) -> tuple[float, list[float]]:
    return 4.0 / 3.0 * pi * x * y * z, [(y * y + z * z) / 5.0, (x * x + z * z) / 5.0, (x * x + y * y) / 5.0]


def _cylinder(radius: float, half: float) -> tuple[float, list[float]]:
    across = radius**2 / 4.0 + half**2 / 3.0
    return 2.0 * pi * radius**2 * half, [across, across, radius**2 / 2.0]


def _capsule(radius: float, half: float) -> tuple[float, list[float]]:
    tube, (tube_across, _, tube_along) = _cylinder(radius, half)
    caps, (ball, *_) = _sphere(radius)
    # the center of mass of a hemisphere is 3/8 r from its flat side, hence the mixed term
    caps_across = ball + half**2 + 0.75 * half * radius
    volume = tube + caps
    if volume == 0.0:
        return 0.0, [0.0] * 3
    across = (tube * tube_across + caps * caps_across) / volume
    return volume, [across, across, (tube * tube_along + caps * ball) / volume]


_SOLIDS: dict[str, Callable[..., tuple[float, list[float]]]] = {
    "sphere": _sphere,
    "box": _box,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
}


def _mesh(vertices: Array) -> MassProperties:
    """Return the mass properties of the convex hull at unit density, as tetrahedra from the mean vertex."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(vertices)
    except (QhullError, ValueError) as error:
        problem = f"The {len(vertices)} vertices of a mesh span no volume. Give four or more that do."
        raise ModelError(problem) from error
    inner = vertices.mean(axis=0)
    corners = vertices[hull.simplices] - inner
    volumes = np.abs(np.linalg.det(corners)) / 6.0
    return tetrahedra_mass(inner, corners, volumes)


def tetrahedra_mass(apex: Array, corners: Array, volumes: Array) -> MassProperties:
    """Return the mass properties at unit density of tetrahedra with a common apex [m].

    Their other corners (tetrahedra, 3, 3) [m] are relative to the apex; volumes [m^3] to subtract are negative.
    """
    volume = volumes.sum()
    sums = corners.sum(axis=1)
    center = volumes @ sums / (4.0 * volume)
    # integral of x x^T over a tetrahedron with one corner at the origin: V/20 (sum_i c_i c_i^T + s s^T)
    moment = np.einsum("t,tij,tik->jk", volumes, corners, corners) + np.einsum("t,tj,tk->jk", volumes, sums, sums)
    second_moment = moment / 20.0 - volume * np.outer(center, center)
    return MassProperties(volume, apex + center, np.trace(second_moment) * np.eye(3) - second_moment)

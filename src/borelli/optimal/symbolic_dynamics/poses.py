"""Poses of bodies, points and the center of mass of a tree as CasADi expressions.

A pose is stated relative to any body inboard of it: a muscle that crosses two joints then depends on their coordinates
only, which keeps Jacobians sparse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from borelli.errors import ModelError, unknown_name
from borelli.model.model import GROUND, Model
from borelli.model.transforms import orientation_matrix
from borelli.optimal.symbolic_dynamics.newton_euler import LinkMotion
from borelli.optimal.symbolic_dynamics.vectors import (
    IDENTITY,
    Matrix,
    Vector,
    add,
    multiply,
    numbers,
    product,
    scale,
    subtract,
)


@dataclass(frozen=True, slots=True)
class Pose:
    """Position [m] of a body frame's origin and rotation from body axes, in the frame of another body."""

    position: Vector
    rotation: Matrix
    joint_center: Vector
    """[m] of the inboard joint, in the same frame."""


@dataclass(slots=True)
class Poses:
    """Poses of a model's bodies, each computed when first used."""

    model: Model
    links: tuple[LinkMotion, ...]
    _known: dict[tuple[int, int], Pose] = field(default_factory=dict)

    def index(self, body: str) -> int:
        """Return the index of a body; -1: the ground."""
        names = [one.name for one in self.model.bodies]
        if body == GROUND:
            return -1
        if body not in names:
            raise ModelError(f"{unknown_name('body', body, [*names, GROUND])}.")
        return names.index(body)

    def path(self, body: int) -> list[int]:
        """Return a body and all bodies inboard of it, the ground (-1) last."""
        result = [body]
        while result[-1] >= 0:
            inboard = self._inboard(result[-1])
            result.append(-1 if inboard is None else inboard.link.parent)
        return result

    def common(self, bodies: list[int]) -> int:
        """Return the outermost body that is inboard of all, or one of them."""
        paths = [self.path(body) for body in bodies]
        return next(body for body in paths[0] if all(body in path for path in paths))

    def pose(self, body: int, reference: int = -1) -> Pose:
        """Return the pose of a body in the frame of a body inboard of it, or of the ground."""
        key = (body, reference)
        if key not in self._known:
            self._known[key] = self._compute(body, reference)
        return self._known[key]

    def point(self, body: int, position: Vector, reference: int = -1) -> Vector:
        """Return the position [m] of a point of a body in the frame of a body inboard of it, or of the ground."""
        pose = self.pose(body, reference)
        return add(pose.position, multiply(pose.rotation, position))

    def center_of_mass(self) -> Vector:
        """Return the position [m] of the model's center of mass in the world."""
        total: Vector = [0.0, 0.0, 0.0]
        for i, body in enumerate(self.model.bodies):
            if not body.kinematic and body.mass:
                total = add(total, scale(body.mass, self.point(i, list(body.center_of_mass))))
        return scale(1.0 / self.model.mass, total)

    def _inboard(self, body: int) -> LinkMotion | None:
        return next((one for one in self.links if one.link.child == body), None)

    def _compute(self, body: int, reference: int) -> Pose:
        if body == reference:
            return Pose([0.0, 0.0, 0.0], IDENTITY, [0.0, 0.0, 0.0])
        one = self._inboard(body)
        if one is None:  # a body without joint stays where it is
            frame = self.model.bodies[body].frame
            position = [float(x) for x in frame.position]
            return Pose(position, numbers(orientation_matrix(frame.orientation)), position)
        link, parent = one.link, self.pose(one.link.parent, reference)
        center = add(parent.position, multiply(parent.rotation, numbers(link.parent_position)))
        rotation = product(parent.rotation, numbers(link.parent_rotation))
        offset: Vector = [0.0, 0.0, 0.0]
        for part, moved in zip(link.translations, one.translations, strict=True):
            offset = add(offset, scale(moved.value, numbers(part.axis)))
        center = add(center, multiply(rotation, offset))
        for turn in one.turns:
            rotation = turn.applied_to(rotation)
        rotation = product(rotation, [list(column) for column in zip(*numbers(link.child_rotation), strict=True)])
        origin = subtract(center, multiply(rotation, numbers(link.child_position)))
        return Pose(origin, rotation, center)

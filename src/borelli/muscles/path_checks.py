"""Warnings about muscle paths that a model allows and that give wrong or discontinuous lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from borelli.model.kinematics import coupled_coordinates, point_positions
from borelli.model.model import Model, Muscle, PathPoint, WrapObject
from borelli.model.transforms import orientation_matrix

MIN_SEGMENT = 1e-6
"""Distance [m] between two points of a path below which they count as one."""


@dataclass(frozen=True, slots=True)
class PathWarning:
    """Problem of one muscle's path."""

    muscle: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"Muscle {self.muscle!r}: {self.text}"


def check_paths(model: Model, pose: ArrayLike | None = None) -> tuple[PathWarning, ...]:
    """Return warnings about the muscle paths of a model in one pose, by default its own.

    Codes: `point_inside_wrap`, `repeated_point`, `all_conditional`, `inactive_wrap`, `repeated_wrap`.
    """
    rest = [c.default for c in model.coordinates] if pose is None else pose
    row = coupled_coordinates(model, np.atleast_2d(np.asarray(rest, dtype=float)))
    objects = {wrap.name: wrap for wrap in model.wrap_objects}
    warnings = []
    for muscle in model.muscles:
        points = point_positions(model, row, [p.body for p in muscle.path], [p.position for p in muscle.path])[0]
        for code, text in (*_point_problems(muscle, points), *_wrap_problems(model, row, muscle, points, objects)):
            warnings.append(PathWarning(muscle.name, code, text))
    return tuple(warnings)


def _name(point: PathPoint, index: int) -> str:
    return repr(point.name) if point.name else str(index)


def _point_problems(muscle: Muscle, points: np.ndarray) -> list[tuple[str, str]]:
    found = []
    if sum(point.only_within is None for point in muscle.path) < 2:
        text = "Fewer than two points of the path are always active, so it can vanish. Add unconditional end points."
        found.append(("all_conditional", text))
    gap = np.linalg.norm(np.diff(points, axis=0), axis=1)
    for i in np.flatnonzero(gap < MIN_SEGMENT):
        both = f"Points {_name(muscle.path[i], int(i))} and {_name(muscle.path[i + 1], int(i) + 1)}"
        found.append(("repeated_point", f"{both} are at the same position. Remove one of them."))
    return found


def _wrap_problems(
    model: Model, row: np.ndarray, muscle: Muscle, points: np.ndarray, objects: dict[str, WrapObject]
) -> list[tuple[str, str]]:
    found, seen = [], set()
    for wrap in muscle.wraps:
        surface = objects[wrap.wrap_object]
        if surface.name in seen:
            found.append(("repeated_wrap", f"The path wraps over {surface.name!r} twice. Remove one of the wraps."))
        seen.add(surface.name)
        if not surface.active:
            found.append(
                ("inactive_wrap", f"its wrap object {surface.name!r} is not active. Remove it, or activate it.")
            )
            continue
        last = wrap.last if wrap.last >= 0 else len(muscle.path) - 1
        origin = point_positions(model, row, [surface.body], [surface.frame.position])[0, 0]
        axes = [tuple(column) for column in orientation_matrix(surface.frame.orientation).T]
        tips = np.array(surface.frame.position) + np.array(axes)
        rotation = point_positions(model, row, [surface.body] * 3, tips)[0] - origin
        for i in range(wrap.first, last + 1):
            depth = _depth(surface, rotation @ (points[i] - origin))
            if depth > MIN_SEGMENT:
                text = (
                    f"Point {_name(muscle.path[i], i)} is {1000.0 * depth:.2f} mm inside wrap object {surface.name!r}, "
                    "so segments that end there do not wrap and the length can jump. Move the point or the surface."
                )
                found.append(("point_inside_wrap", text))
    return found


def _depth(surface: WrapObject, point: np.ndarray) -> float:
    """Return how deep a point is inside a surface [m], along its radius."""
    size = surface.size
    if surface.kind == "sphere":
        return float(size[0] - np.linalg.norm(point))
    if surface.kind == "cylinder":
        return float(size[0] - np.hypot(point[0], point[1]))
    if surface.kind == "torus":
        return float(size[0] - np.hypot(np.hypot(point[0], point[1]) - size[1], point[2]))
    scaled = float(np.linalg.norm(point / np.array(size)))
    return (1.0 - scaled) * float(np.linalg.norm(point)) / scaled if scaled > 0.0 else min(size)

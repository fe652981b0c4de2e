"""Our muscles as MJCF's: a spatial tendon through sites and round geoms, pulled by a muscle actuator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from borelli.files.xml import Element, make_element
from borelli.model.formats.mjcf.defaults import MUSCLE_DEFAULTS, MUSCLE_PARAMETERS
from borelli.model.kinematics import point_positions
from borelli.model.model import Frame, Model, Muscle, PathPoint, Vector, WrapObject
from borelli.model.transforms import compose, vector

RANGE = (0.75, 1.05)
"""MuJoCo's default range of fibre lengths, in optimal ones."""
SIDE_DISTANCE = 1.5
"""Where a side is marked, in radii of the surface: well outside it."""


def numbers(*values: float) -> str:
    """Numbers as an attribute, with all their digits."""
    return " ".join(repr(float(value)) for value in values)


@dataclass(slots=True)
class Sites:
    """The sites of a file by name; a point that a marker marks needs no site of its own."""

    places: dict[str, tuple[str, Vector]]
    added: dict[str, list[tuple[str, Vector]]] = field(default_factory=dict)
    """New sites by body."""

    def at(self, body: str, position: Vector, wanted: str) -> str:
        """The name of a site there, made if need be."""
        name, number = wanted, 1
        while name in self.places and self.places[name] != (body, position):
            number += 1
            name = f"{wanted}_{number}"
        if name not in self.places:
            self.places[name] = (body, position)
            self.added.setdefault(body, []).append((name, position))
        return name


@dataclass(slots=True)
class MuscleParts:
    """What muscles add to a file."""

    tendons: list[Element] = field(default_factory=list)
    actuators: list[Element] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """What MJCF cannot be told, counted."""

    def lose(self, what: str) -> None:
        """Counts something that is not written."""
        self.lost[what] = self.lost.get(what, 0) + 1


def muscle_parts(model: Model, sites: Sites) -> MuscleParts:
    """Tendons and actuators of the model's muscles."""
    parts = MuscleParts()
    wraps = {wrap.name: wrap for wrap in model.wrap_objects if wrap.kind in ("sphere", "cylinder")}
    for muscle in model.muscles:
        tendon = f"{muscle.name}_tendon"
        parts.tendons.append(make_element("spatial", *_path(muscle, model, wraps, sites, parts), name=tendon))
        parts.actuators.append(_actuator(muscle, tendon))
        if muscle.pennation_angle:
            parts.lose("pennation angles")
    return parts


def _path(
    muscle: Muscle, model: Model, wraps: Mapping[str, WrapObject], sites: Sites, parts: MuscleParts
) -> list[Element]:
    """The sites of a muscle's path with the geoms between them."""
    between: dict[int, Element] = {}
    for wrap in muscle.wraps:
        if wrap.wrap_object not in wraps or not wraps[wrap.wrap_object].active:
            parts.lose("wraps over ellipsoids, tori or surfaces that are off")
            continue
        surface = wraps[wrap.wrap_object]
        last = len(muscle.path) - 1 if wrap.last < 0 else wrap.last
        segment = wrap.first if last - wrap.first <= 1 else _nearest_segment(model, muscle, surface, wrap.first, last)
        segment = min(segment, len(muscle.path) - 2)
        if segment in between:
            parts.lose("second wraps between the same two points")
            continue
        side = wrap.side_point or _side_point(surface)
        named = {} if side is None else {"sidesite": sites.at(side.body, side.position, side.name)}
        between[segment] = make_element("geom", geom=surface.name, **named)
    path: list[Element] = []
    for i, point in enumerate(muscle.path):
        if point.motion:
            parts.lose("motions of path points (they stay where the default pose has them)")
        if point.only_within is not None:
            parts.lose("conditions of path points (they always hold)")
        site = sites.at(point.body, point.position, point.name or f"{muscle.name}-P{i + 1}")
        if not path or path[-1].attributes != {"site": site}:  # MuJoCo refuses a point that follows itself
            path.append(make_element("site", site=site))
        if i in between:
            path.append(between[i])
    return path


def _nearest_segment(model: Model, muscle: Muscle, surface: WrapObject, first: int, last: int) -> int:
    """The part of the path, from one point to the next, that passes nearest to a surface in the default pose."""
    points = muscle.path[first : last + 1]
    bodies = [*(point.body for point in points), surface.body]
    local = [*(point.position for point in points), surface.frame.position]
    *places, center = point_positions(model, [c.default for c in model.coordinates], bodies, local)[0]
    distances = []
    for a, b in pairwise(places):
        along = b - a
        share = np.clip((center - a) @ along / max(float(along @ along), 1e-30), 0.0, 1.0)
        distances.append(float(np.linalg.norm(a + share * along - center)))
    return first + int(np.argmin(distances))


def _side_point(surface: WrapObject) -> PathPoint | None:
    """A point on the half of a surface on which a muscle may lie; None: on all of it."""
    if surface.side == "all":
        return None
    sign = 1.0 if surface.side[0] == "+" else -1.0
    way = sign * SIDE_DISTANCE * surface.size[0] * np.eye(3)["xyz".index(surface.side[1])]
    place = compose(surface.frame, Frame(vector(way))).position
    return PathPoint(surface.body, place, f"{surface.name}_side")


def _actuator(muscle: Muscle, tendon: str) -> Element:
    """The muscle's numbers as MuJoCo has them."""
    stated = {
        name: muscle.parameter(name, float(d)) for name, d in zip(MUSCLE_PARAMETERS, MUSCLE_DEFAULTS[2:], strict=True)
    }
    compiled = stated["force"] <= 0.0 and muscle.max_isometric_force == stated["scale"]  # left to MuJoCo's compiler
    stated["force"] = -1.0 if compiled else muscle.max_isometric_force
    stated["vmax"] = muscle.max_contraction_velocity
    spans = muscle.parameter("range0", RANGE[0]), muscle.parameter("range1", RANGE[1])
    lengths = tuple(muscle.tendon_slack_length + span * muscle.optimal_fiber_length for span in spans)
    given = muscle.parameter("lengthrange0", 0.0), muscle.parameter("lengthrange1", 0.0)
    if abs(given[1] - given[0] - (lengths[1] - lengths[0])) <= 1e-12 * lengths[1]:
        lengths = given  # a tendon shorter than nothing, as files have it, cannot be told by our numbers
    return make_element(
        "muscle",
        name=muscle.name,
        tendon=tendon,
        ctrllimited="true",
        ctrlrange="0 1",
        range=numbers(*spans),
        lengthrange=numbers(*lengths),
        timeconst=numbers(muscle.activation_time, muscle.deactivation_time),
        **{name: numbers(value) for name, value in stated.items()},
    )

"""Muscles of a model as spatial tendons of MJCF, through sites and around geoms, with muscle actuators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from borelli.files.xml import Element, make_element
from borelli.model.formats.mjcf.defaults import MUSCLE_DEFAULTS, MUSCLE_PARAMETERS
from borelli.model.kinematics import point_positions
from borelli.model.model import Frame, Model, Muscle, PathPoint, Vector, WrapObject
from borelli.model.transforms import compose, vector

FIBER_RANGE = (0.75, 1.05)
"""MuJoCo's default range of fiber lengths, in optimal fiber lengths."""
SIDE_DISTANCE = 1.5
"""Distance of a side point from the surface's center, in its radii: well outside it."""


def numbers(*values: float) -> str:
    """Return numbers as an attribute, with all their digits."""
    return " ".join(repr(float(value)) for value in values)


@dataclass(slots=True)
class Sites:
    """Sites of a file by name; a point at a marker needs no site of its own."""

    points: dict[str, tuple[str, Vector]]
    added: dict[str, list[tuple[str, Vector]]] = field(default_factory=dict)
    """New sites by body."""

    def at(self, body: str, position: Vector, base_name: str) -> str:
        """Return the name of a site at this point, which is added if necessary."""
        name, number = base_name, 1
        while name in self.points and self.points[name] != (body, position):
            number += 1
            name = f"{base_name}_{number}"
        if name not in self.points:
            self.points[name] = (body, position)
            self.added.setdefault(body, []).append((name, position))
        return name


@dataclass(slots=True)
class MuscleParts:
    """Elements of muscles."""

    tendons: list[Element] = field(default_factory=list)
    actuators: list[Element] = field(default_factory=list)
    unwritten: Counter[str] = field(default_factory=Counter)
    """Number of properties that MJCF cannot represent."""


def muscle_parts(model: Model, sites: Sites) -> MuscleParts:
    """Return tendons and actuators of the model's muscles."""
    parts = MuscleParts()
    wraps = {wrap.name: wrap for wrap in model.wrap_objects if wrap.kind in ("sphere", "cylinder")}
    for muscle in model.muscles:
        tendon = f"{muscle.name}_tendon"
        parts.tendons.append(make_element("spatial", *_path(muscle, model, wraps, sites, parts), name=tendon))
        parts.actuators.append(_actuator(muscle, tendon))
        if muscle.pennation_angle:
            parts.unwritten["pennation angles"] += 1
    if model.ligaments:
        parts.unwritten["ligaments"] = len(model.ligaments)
    return parts


def _path(
    muscle: Muscle, model: Model, wraps: Mapping[str, WrapObject], sites: Sites, parts: MuscleParts
) -> list[Element]:
    between: dict[int, Element] = {}
    for wrap in muscle.wraps:
        if wrap.wrap_object not in wraps or not wraps[wrap.wrap_object].active:
            parts.unwritten["wraps over ellipsoids, tori or inactive surfaces"] += 1
            continue
        surface = wraps[wrap.wrap_object]
        last = len(muscle.path) - 1 if wrap.last < 0 else wrap.last
        segment = wrap.first if last - wrap.first <= 1 else _nearest_segment(model, muscle, surface, wrap.first, last)
        segment = min(segment, len(muscle.path) - 2)
        if segment in between:
            parts.unwritten["second wraps between the same two points"] += 1
            continue
        side = wrap.side_point or _side_point(surface)
        named = {} if side is None else {"sidesite": sites.at(side.body, side.position, side.name)}
        between[segment] = make_element("geom", geom=surface.name, **named)
    path: list[Element] = []
    divisors = {pulley.first: pulley.divisor for pulley in muscle.pulleys}
    for i, point in enumerate(muscle.path):
        if i in divisors:
            path.append(make_element("pulley", divisor=numbers(divisors[i])))
        if point.motion:
            parts.unwritten["motions of path points (written at their default positions)"] += 1
        if point.only_within is not None:
            parts.unwritten["conditions of path points (always active)"] += 1
        site = sites.at(point.body, point.position, point.name or f"{muscle.name}-P{i + 1}")
        if not path or path[-1].attributes != {"site": site}:  # MuJoCo does not allow a repeated site
            path.append(make_element("site", site=site))
        if i in between:
            path.append(between[i])
    return path


def _nearest_segment(model: Model, muscle: Muscle, surface: WrapObject, first: int, last: int) -> int:
    """Return the index of the path segment that is nearest to a surface in the default pose."""
    points = muscle.path[first : last + 1]
    bodies = [*(point.body for point in points), surface.body]
    local = [*(point.position for point in points), surface.frame.position]
    *points, center = point_positions(model, [c.default for c in model.coordinates], bodies, local)[0]
    distances = []
    for a, b in pairwise(points):
        along = b - a
        fraction = np.clip((center - a) @ along / max(float(along @ along), 1e-30), 0.0, 1.0)
        distances.append(float(np.linalg.norm(a + fraction * along - center)))
    return first + int(np.argmin(distances))


def _side_point(surface: WrapObject) -> PathPoint | None:
    """Return a point on the half of a surface on which a muscle may lie; None: on all of it."""
    if surface.side == "all":
        return None
    sign = 1.0 if surface.side[0] == "+" else -1.0
    offset = sign * SIDE_DISTANCE * surface.size[0] * np.eye(3)["xyz".index(surface.side[1])]
    position = compose(surface.frame, Frame(vector(offset))).position
    return PathPoint(surface.body, position, f"{surface.name}_side")


def _actuator(muscle: Muscle, tendon: str) -> Element:
    stated = {
        name: muscle.parameter(name, float(d)) for name, d in zip(MUSCLE_PARAMETERS, MUSCLE_DEFAULTS[2:], strict=True)
    }
    compiled = stated["force"] <= 0.0 and muscle.max_isometric_force == stated["scale"]  # computed by MuJoCo's compiler
    stated["force"] = -1.0 if compiled else muscle.max_isometric_force
    stated["vmax"] = muscle.max_contraction_velocity
    fiber_range = muscle.parameter("range0", FIBER_RANGE[0]), muscle.parameter("range1", FIBER_RANGE[1])
    lengths = tuple(muscle.tendon_slack_length + bound * muscle.optimal_fiber_length for bound in fiber_range)
    stated_lengths = muscle.parameter("lengthrange0", 0.0), muscle.parameter("lengthrange1", 0.0)
    if abs(stated_lengths[1] - stated_lengths[0] - (lengths[1] - lengths[0])) <= 1e-12 * lengths[1]:
        lengths = stated_lengths  # negative tendon lengths of files are only in these parameters
    width = muscle.parameter("tausmooth", 0.0)
    smoothing = {"tausmooth": width} if width else {}
    return make_element(
        "muscle",
        name=muscle.name,
        tendon=tendon,
        ctrllimited="true",
        ctrlrange="0 1",
        range=numbers(*fiber_range),
        lengthrange=numbers(*lengths),
        timeconst=numbers(muscle.activation_time, muscle.deactivation_time),
        **{name: numbers(value) for name, value in (stated | smoothing).items()},
    )

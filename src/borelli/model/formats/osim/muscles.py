"""Muscles and ligaments of an .osim file: paths, wrap objects and parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, pi

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.osim.frames import Frames, compose_offset, frame_from_angles, transform_point
from borelli.model.formats.osim.functions import function_in
from borelli.model.formats.osim.joints import JointReader
from borelli.model.formats.osim.properties import Item
from borelli.model.formats.parsing import LossNote, Namer
from borelli.model.functions import Function, constant, simm_spline
from borelli.model.model import (
    WRAP_METHODS,
    WRAP_SIDES,
    CoordinateRange,
    Frame,
    Ligament,
    Muscle,
    PathPoint,
    PathWrap,
    TransformAxis,
    WrapObject,
)
from borelli.model.transforms import AXES, orientation_matrix, vector

FIELDS = {  # property of OpenSim: field of `Muscle`, and its value where a file leaves it out
    "max_isometric_force": ("max_isometric_force", 1000.0),
    "optimal_fiber_length": ("optimal_fiber_length", 0.1),
    "tendon_slack_length": ("tendon_slack_length", 0.2),
    "pennation_angle_at_optimal": ("pennation_angle", 0.0),
    "max_contraction_velocity": ("max_contraction_velocity", 10.0),
    "activation_time_constant": ("activation_time", 0.01),
    "deactivation_time_constant": ("deactivation_time", 0.04),
    "default_activation": ("default_activation", 0.05),
}
CLASS_DEFAULTS = {  # that differ from those of `FIELDS`
    "Thelen2003Muscle": {"activation_time": 0.015, "deactivation_time": 0.05},
    "DeGrooteFregly2016Muscle": {"activation_time": 0.015, "deactivation_time": 0.06, "default_activation": 0.5},
}
LIGAMENTS = ("Ligament", "Blankevoort1991Ligament")
"""Classes of ligaments."""
DEFAULT_FORCE_LENGTH = (
    (-5.0, 0.998, 0.999, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.601, 1.602, 5.0),
    (0.0, 0.0, 0.0, 0.0, 0.035, 0.12, 0.26, 0.55, 1.17, 2.0, 2.0, 2.0, 2.0),
)
"""Points of the spline of a Ligament that states none (OpenSim 4.6)."""
IGNORED = ("GeometryPath", "path", "Appearance", "VisibleObject", "display", "groups", "components", "isDisabled")


@dataclass(slots=True)
class MuscleReader:
    """Reader of wrap objects, then muscles."""

    frames: Frames
    joints: JointReader
    notes: list[str]
    wrap_objects: dict[str, WrapObject] = field(default_factory=dict)
    muscles: list[Muscle] = field(default_factory=list)
    ligaments: list[Ligament] = field(default_factory=list)
    _names: Namer = field(default_factory=Namer)
    _ligament_names: Namer = field(default_factory=Namer)
    _wrap_names: Namer = field(default_factory=Namer)
    _unread: set[tuple[str, str]] = field(default_factory=set)
    """Class and name of properties that are not numbers."""

    def read_wrap_objects(self) -> None:
        """Read the wrap objects of every body; where names repeat, muscles use the first, as in OpenSim."""
        for path, holder in self.frames.wrap_sets:
            body, frame = self.frames.locate(holder, path, path)
            for item in holder.listed("WrapObjectSet"):
                size = _wrap_size(item)
                if size is None or not all(s > 0.0 for s in size[1]):
                    reason = "its class is unknown" if size is None else "its size is not positive"
                    self.notes.append(LossNote(f"{item.title} on {body!r} is not read: {reason}."))
                    continue
                name = self._wrap_names.unique(item.name or f"{body}_wrap")
                if name != item.name:
                    self.notes.append(
                        f"{item.title} on {body!r} is renamed {name!r}: its name is empty or already used."
                    )
                own = frame_from_angles(item.vector("translation"), item.vector("xyz_body_rotation"))
                pose, side, active = compose_offset(frame, own), _side(item), item.flag("active", True)
                self.wrap_objects[name] = WrapObject(name, size[0], body, size[1], pose, side, active)

    def add(self, item: Item) -> None:
        """Read one muscle; one that cannot be used is noted."""
        name = self._unique(self._names, item)
        path = self._path(item)
        if path is None:
            return
        stated = {"pennation_angle": item.number("pennation_angle", 0.0)}  # older name of the property
        defaults = stated | CLASS_DEFAULTS.get(item.kind, {})
        values = {name: item.number(tag, defaults.get(name, usual)) for tag, (name, usual) in FIELDS.items()}
        positive = ("max_isometric_force", "optimal_fiber_length", "max_contraction_velocity")
        invalid = [key for key, v in values.items() if v < 0.0 or (v == 0.0 and key in positive)]
        if invalid or values["pennation_angle"] >= pi / 2.0:
            key = invalid[0] if invalid else "pennation_angle"
            why = f"{key} is {values[key]:g}, which is out of range"
            self.notes.append(LossNote(f"{item.title} is not read: {why}."))
            return
        points, wraps = path
        parameters = self._parameters(item)
        muscle = Muscle(name, points, kind=item.kind, wraps=wraps, parameters=parameters, pulleys=(), **values)
        self.muscles.append(muscle)

    def add_ligament(self, item: Item) -> None:
        """Read one ligament; one that cannot be used is noted."""
        item.element.was_read = True
        name = self._unique(self._ligament_names, item)
        path = self._path(item)
        if path is None:
            return
        ordinary = item.kind == "Ligament"
        length = item.number("resting_length" if ordinary else "slack_length", 0.0)
        scale = item.number("pcsa_force" if ordinary else "linear_stiffness", 0.0 if ordinary else 1.0)
        if not length > 0.0 or scale < 0.0:
            why = f"its resting length is {length:g} m and its force scale {scale:g} N"
            self.notes.append(LossNote(f"{item.title} is not read: {why}."))
            return
        function = self._force_length(item) if ordinary else _blankevoort(item.number("transition_strain", 0.06))
        if not ordinary and item.number("damping_coefficient", 0.003) != 0.0:
            self.notes.append(LossNote(f"{item.title}: The damping of the ligament is not read."))
        if item.flag("isDisabled") or not item.flag("appliesForce", True):
            self.notes.append(f"{item.title} is disabled in the file; its force scale is set to zero.")
            scale = 0.0
        self.ligaments.append(Ligament(name, path[0], length, scale, function, path[1]))

    def _force_length(self, item: Item) -> Function:
        """Return the force over normalized length: in an element of its name, or directly (4.x)."""
        holder = item.child("force_length_curve") or item
        for child in holder.children():
            child.element.was_read = True
        return function_in(holder) or simm_spline(*DEFAULT_FORCE_LENGTH)

    def _unique(self, names: Namer, item: Item) -> str:
        name = names.unique(item.name or item.kind)
        if name != item.name:
            self.notes.append(f"{item.title} is renamed {name!r}: its name is empty or already used.")
        return name

    def _path(self, item: Item) -> tuple[tuple[PathPoint, ...], tuple[PathWrap, ...]] | None:
        """Return points and wraps of a path; None, with a note, if it has fewer than two points."""
        path = item.child("GeometryPath") or (item.child("path") or item).child("GeometryPath")
        points = () if path is None else tuple(self._point(p, item) for p in path.listed("PathPointSet"))
        if path is None or len(points) < 2:
            why = f"its path has {len(points)} points, and two are required"
            self.notes.append(LossNote(f"{item.title} is not read: {why}."))
            return None
        return points, tuple(w for p in path.listed("PathWrapSet") if (w := self._wrap(p, item, len(points))))

    def _point(self, item: Item, muscle: Item) -> PathPoint:
        path = f"/forceset/{muscle.name}/geometrypath/{item.name}"
        body, frame = self.frames.locate(item, path, item.socket("parent_frame", "body"))
        motion = self._motion(item, frame) if item.kind == "MovingPathPoint" else ()
        span = None
        if item.kind == "ConditionalPathPoint":
            low, high = item.pair("range", (0.0, 0.0))
            stated = item.socket("coordinate", "coordinate")
            span = CoordinateRange(self.joints.coordinate(item, stated), low, high)
        return PathPoint(body, transform_point(frame, item.vector("location")), item.name, span, motion)

    def _motion(self, item: Item, frame: Frame) -> tuple[TransformAxis, ...]:
        """Return translations of a moving point along the axes of its frame, and the frame's own position."""
        rotation = orientation_matrix(frame.orientation)
        parts = []
        for k, letter in enumerate("xyz"):
            holder = item.child(f"{letter}_location")
            function = (None if holder is None else function_in(holder)) or constant(0.0)
            stated = item.socket(f"{letter}_coordinate", f"{letter}_coordinate")
            name = self.joints.coordinate(item, stated) if stated else None
            parts.append(TransformAxis(vector(rotation[:, k]), function, name))
        for k, offset in enumerate(frame.position):
            if offset != 0.0:
                parts.append(TransformAxis(AXES[k], constant(offset)))
        return tuple(parts)

    def _wrap(self, item: Item, muscle: Item, points: int) -> PathWrap | None:
        name = item.text("wrap_object")
        if name not in self.wrap_objects:
            why = "the wrap object is not in the file"
            self.notes.append(LossNote(f"{muscle.title}: The wrap over {name!r} is not read: {why}."))
            return None
        method = item.text("method").lower() or "hybrid"
        first, last = (int(n) if abs(n) < 1e9 else -1 for n in item.pair("range", (-1.0, -1.0)))
        first, last = max(first - 1, 0), last - 1 if last >= 1 else -1
        if (
            method == "tendon"
            or method not in WRAP_METHODS
            or last >= points
            or (last if last >= 0 else points - 1) < first
        ):
            why = "its method or range is invalid"
            self.notes.append(LossNote(f"{muscle.title}: The wrap over {name!r} is not read: {why}."))
            return None
        return PathWrap(name, first, last, method)

    def _parameters(self, item: Item) -> tuple[tuple[str, float], ...]:
        """Return the other numbers and booleans of the muscle; those of curves as `Curve.name`."""
        values_by_name: dict[str, float] = {}
        if item.flag("isDisabled"):
            values_by_name["appliesForce"] = 0.0
        for child in item.children():
            if child.kind in FIELDS or child.kind in IGNORED:
                continue
            prefix = f"{child.kind}." if child.element.children else ""
            for leaf in child.children() if prefix else (child,):
                value = _value(leaf.element)
                child.element.was_read = True  # or noted below
                if not leaf.element.text and not leaf.element.children:
                    continue  # an optional property that is not set
                if value is not None:
                    values_by_name[f"{prefix}{leaf.kind}"] = value
                elif (item.kind, child.kind) not in self._unread:
                    self._unread.add((item.kind, child.kind))
                    self.notes.append(LossNote(f"{item.kind}: <{prefix}{leaf.kind}> is not numeric and was not read."))
        return tuple(values_by_name.items())


def _blankevoort(transition: float) -> Function:
    """Return the force over normalized length: quadratic up to a strain, then linear (Blankevoort et al. 1991)."""
    bend = max(transition, 1e-9)
    pieces = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.5 / bend), (0.5 * bend, 1.0, 0.0))
    return Function((0.0, 1.0, 1.0 + bend, 2.0 + bend), pieces)


def _wrap_size(item: Item) -> tuple[str, tuple[float, ...]] | None:
    match item.kind:
        case "WrapSphere":
            return "sphere", (item.number("radius", 0.0),)
        case "WrapCylinder":
            return "cylinder", (item.number("radius", 0.0), item.number("length", 0.0) / 2.0)
        case "WrapEllipsoid":
            return "ellipsoid", item.vector("dimensions")
        case "WrapTorus":
            return "torus", (item.number("inner_radius", 0.0), item.number("outer_radius", 0.0))
    return None


def _side(item: Item) -> str:
    stated = item.text("quadrant").lower() or "all"
    side = f"+{stated}" if stated in ("x", "y", "z") else stated
    if side not in WRAP_SIDES:
        raise item.error(unknown_name("quadrant", stated, WRAP_SIDES))
    return side


def _value(element: Element) -> float | None:
    if element.children:
        return None
    text = {"true": "1", "false": "0"}.get(element.text.lower(), element.text)
    try:
        return value if isfinite(value := float(text)) else None
    except ValueError:
        return None

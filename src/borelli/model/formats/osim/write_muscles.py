"""Muscles and what they wrap over, as OpenSim writes them."""

from __future__ import annotations

from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.frames import angles_of
from borelli.model.formats.osim.functions import function_element
from borelli.model.formats.osim.joints import UNLIMITED
from borelli.model.formats.osim.muscles import FIELDS
from borelli.model.formats.osim.write_common import Names, Notes, flag, objects, value, words
from borelli.model.functions import Function, constant
from borelli.model.model import Muscle, PathPoint, PathWrap, TransformAxis, WrapObject

FULL = ("Thelen2003Muscle", "Millard2012EquilibriumMuscle", "DeGrooteFregly2016Muscle")
"""Classes that have every property of `FIELDS`."""
KINDS = (*FULL, "Millard2012AccelerationMuscle", "RigidTendonMuscle")
OTHERWISE = "Millard2012EquilibriumMuscle"
ONLY_FULL = ("activation_time_constant", "deactivation_time_constant", "default_activation")
TRUTHS = ("appliesForce", "ignore_passive_fiber_force")
AXES = {(1.0, 0.0, 0.0): 0, (0.0, 1.0, 0.0): 1, (0.0, 0.0, 1.0): 2}
WRAP_TAGS = {"sphere": "WrapSphere", "cylinder": "WrapCylinder", "ellipsoid": "WrapEllipsoid", "torus": "WrapTorus"}


def muscle_element(muscle: Muscle, names: Names, notes: Notes) -> Element:
    """A muscle with its path and parameters."""
    kind = muscle.kind if muscle.kind in KINDS else OTHERWISE
    if kind != muscle.kind:
        said = f"muscles of {muscle.kind or 'no'} kind are written as {kind}, without their own parameters"
        notes.setdefault(said, []).append(muscle.name)
    points = [
        _point(point, f"{names.of('muscle', muscle.name)}-P{i + 1}", muscle, names, notes)
        for i, point in enumerate(muscle.path)
    ]
    wraps = [_wrap(wrap, i, muscle, names, notes) for i, wrap in enumerate(muscle.wraps)]
    return make_element(
        kind,
        make_element("GeometryPath", objects("PathPointSet", points), objects("PathWrapSet", wraps), name="geometrypath"),
        *(value(tag, getattr(muscle, f)) for tag, f in FIELDS.items() if kind in FULL or tag not in ONLY_FULL),
        *(_parameters(muscle) if kind == muscle.kind else ()),
        name=names.of("muscle", muscle.name),
    )


def wrap_element(wrap: WrapObject, names: Names) -> Element:
    """An object that muscles wrap over."""
    match wrap.kind:
        case "sphere":
            sizes = [value("radius", wrap.size[0])]
        case "cylinder":
            sizes = [value("radius", wrap.size[0]), value("length", 2.0 * wrap.size[1])]
        case "torus":
            sizes = [value("inner_radius", wrap.size[0]), value("outer_radius", wrap.size[1])]
        case _:
            sizes = [value("dimensions", *wrap.size)]
    return make_element(
        WRAP_TAGS[wrap.kind],
        flag("active", wrap.active),
        value("xyz_body_rotation", *angles_of(wrap.frame)),
        value("translation", *wrap.frame.position),
        words("quadrant", wrap.side.lstrip("+")),
        *sizes,
        name=names.of("wrap object", wrap.name),
    )


def _parameters(muscle: Muscle) -> list[Element]:
    """The file's own parameters; those of curves go into elements of their own."""
    found: list[Element] = []
    curves: dict[str, Element] = {}
    for key, number in muscle.parameters:
        curve, _, tag = key.rpartition(".")
        truth = tag in TRUTHS or tag.startswith("ignore_")
        element = flag(tag, bool(number)) if truth else value(tag, number)
        if curve and curve not in curves:
            curves[curve] = make_element(curve)
            found.append(curves[curve])
        (curves[curve].children if curve else found).append(element)
    return found


def _point(point: PathPoint, default: str, muscle: Muscle, names: Names, notes: Notes) -> Element:
    name = point.name or default
    frame = words("socket_parent_frame", names.body_path(point.body))
    functions = _components(point.motion) if point.motion else None
    if functions is not None and point.only_within is None:
        where = f"muscle {muscle.name!r}: point {name!r}"
        sockets = [
            words(f"socket_{letter}_coordinate", names.coordinate_path(on))
            for letter, (_, on) in zip("xyz", functions, strict=True)
        ]
        places = [
            make_element(f"{letter}_location", function_element(function, where))
            for letter, (function, _) in zip("xyz", functions, strict=True)
        ]
        return make_element("MovingPathPoint", frame, *sockets, *places, name=name)
    if point.motion:
        said = "points that move as OpenSim cannot say are written where they are at rest"
        notes.setdefault(said, []).append(f"{name} of {muscle.name}")
    location = value("location", *point.position)
    if point.only_within is None:
        return make_element("PathPoint", frame, location, name=name)
    span = point.only_within
    return make_element(
        "ConditionalPathPoint",
        frame,
        location,
        words("socket_coordinate", names.coordinate_path(span.coordinate)),
        value("range", max(span.lower, -UNLIMITED), min(span.upper, UNLIMITED)),
        name=name,
    )


def _components(motion: tuple[TransformAxis, ...]) -> list[tuple[Function, str]] | None:
    """Functions of the x, y and z places of a moving point.

    None if its shifts are not along x, y and z, or with more than one coordinate: OpenSim wants the same for all.
    """
    offsets = [0.0, 0.0, 0.0]
    moving: list[tuple[Function, str] | None] = [None, None, None]
    driver = next((part.coordinate for part in motion if part.coordinate is not None), None)
    for part in motion:
        axis = AXES.get(part.axis)
        if axis is None or driver is None:
            return None
        if part.coordinate is None:
            offsets[axis] += part.function(0.0)
        elif moving[axis] is not None or part.coordinate != driver:
            return None
        else:
            moving[axis] = part.function, part.coordinate
    found = []
    for offset, one in zip(offsets, moving, strict=True):
        function, on = one or (constant(0.0), driver or "")
        found.append((function if offset == 0.0 else _raised(function, offset), on))
    return found


def _raised(function: Function, offset: float) -> Function:
    return Function(function.breaks, tuple((piece[0] + offset, *piece[1:]) for piece in function.coefficients))


def _wrap(wrap: PathWrap, number: int, muscle: Muscle, names: Names, notes: Notes) -> Element:
    if wrap.side_point is not None:
        said = "the sides on which muscles pass their wrap objects are left out"
        notes.setdefault(said, []).append(f"{muscle.name} on {wrap.wrap_object}")
    first = wrap.first + 1 if wrap.first or wrap.last >= 0 else -1
    return make_element(
        "PathWrap",
        words("wrap_object", names.of("wrap object", wrap.wrap_object)),
        words("method", wrap.method),
        words("range", f"{first} {wrap.last + 1 if wrap.last >= 0 else -1}"),
        name="pathwrap" if number == 0 else f"pathwrap_{number}",
    )

"""Sections `compiler`, `option` and `default` of an MJCF file, and attributes as typed values.

A default class begins as a copy of its parent class and then changes the attributes that it states; an element takes
missing attributes from its own class, or else from the `childclass` of its body, or else from `main`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, pi, sqrt

import numpy as np

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.parsing import parse_numbers
from borelli.model.model import Frame, Quaternion, Vector
from borelli.model.transforms import AXES, Array, axis_angle, orientation_from_matrix, orientation_matrix, vector

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "plugin",
    "dcmotor",
)  # fmt: skip
ACTUATOR = "actuator"
"""Tag of the defaults of all actuators, stated as general ones."""
TENDONS = ("spatial", "fixed")
MUSCLE_PARAMETERS = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")
"""Parameters in a muscle's gainprm after the two numbers of its range."""
MUSCLE_DEFAULTS = ("0.75", "1.05", "-1", "200", "0.5", "1.6", "1.5", "1.3", "1.2")
EQUALITIES = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")
UNIT = (1.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Values:
    """Attributes of an element, completed from its default class."""

    element: Element
    attributes: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.attributes

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute as text."""
        return self.attributes.get(name, default)

    def choice(self, name: str, default: str, known: tuple[str, ...]) -> str:
        """Return an attribute that is one of the known words."""
        word = self.text(name, default)
        if word not in known:
            raise self.element.error(f"{self.element.tag.capitalize()}: {unknown_name(name, word, known)}")
        return word

    def flag(self, name: str, default: bool) -> bool:
        """Return an attribute that is true or false."""
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def numbers(self, name: str, least: int = 1, most: float = inf) -> tuple[float, ...] | None:
        """Return the numbers of an attribute, between `least` and `most` of them; None if it is missing."""
        if name not in self.attributes:
            return None
        words = self.attributes[name].split()
        values = parse_numbers(words, len(words))
        if values is None:
            raise self.element.error(f"{self._title(name)} is {_short(' '.join(words))!r}. Give finite numbers.")
        if not least <= len(values) <= most:
            required = f"{least}" if least == most else f"{least} or more" if most == inf else f"{least} to {int(most)}"
            raise self.element.error(f"{self._title(name)} has {len(values)} numbers. Give {required}.")
        return tuple(values)

    def number(self, name: str, default: float) -> float:
        """Return the number of an attribute."""
        values = self.numbers(name, 1, 1)
        return default if values is None else values[0]

    def vector(self, name: str, default: Vector = (0.0, 0.0, 0.0)) -> Vector:
        """Return the three numbers of an attribute."""
        values = self.numbers(name, 3, 3)
        return default if values is None else vector(values)

    def _title(self, name: str) -> str:
        named = self.element.attributes.get("name")
        return f"{self.element.tag}{f' {_short(named)!r}' if named else ''}: {name}"


@dataclass(slots=True)
class Settings:
    """Compiler options, gravity and default classes."""

    degrees: bool = True
    euler_order: str = "xyz"
    automatic_limits: bool = True
    inertia_from_geom: str = "auto"
    inertia_groups: tuple[float, float] = (0.0, 5.0)
    balance_inertia: bool = False
    min_mass: float = 0.0
    min_inertia: float = 0.0
    total_mass: float = -1.0
    mesh_folder: str = ""
    texture_folder: str = ""
    strip_path: bool = False
    gravity: Vector = (0.0, 0.0, -9.81)
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    main: str = "main"
    missing_files: list[str] = field(default_factory=list)
    unused: list[tuple[str, str]] = field(default_factory=list)
    """Kind and name of elements that the reader left out for a reason that the kind states."""
    notes: list[str] = field(default_factory=list)

    @property
    def to_radians(self) -> float:
        """Factor from the file's angles to radians."""
        return pi / 180.0 if self.degrees else 1.0

    def values(self, element: Element, childclass: str | None = None, kind: str | None = None) -> Values:
        """Return the element's attributes completed by its class, or else by the `childclass` of its body.

        The defaults are those of the tag `kind`, or else of its own tag.
        """
        return Values(element, _merged(self._defaults(element, childclass, kind or element.tag), element.attributes))

    def actuator(self, element: Element) -> Values:
        """Return an actuator of any kind, stated as a general one."""
        defaults = self._defaults(element, None, ACTUATOR)
        return Values(element, general_actuator(element.tag, element.attributes, defaults))

    def leave_out(self, element: Element, kind: str) -> None:
        """Record an element that is not read; the kind states why."""
        element.was_read = True  # listed here, and not once more among the elements that nothing read
        self.unused.append((kind, element.attributes.get("name", "")))

    def frame(self, values: Values) -> Frame:
        """Return the pose of an element."""
        return Frame(values.vector("pos"), self.orientation(values))

    def orientation(self, values: Values) -> Quaternion:
        """Return the orientation of an element, in any of MJCF's notations."""
        if (q := values.numbers("quat", 4, 4)) is not None:
            length = sqrt(sum(c * c for c in q))
            w, x, y, z = UNIT if length < 1e-14 else (c / length for c in q)
            return w, x, y, z
        if (a := values.numbers("axisangle", 4, 4)) is not None:
            return checked_axis_angle(a[:3], a[3] * self.to_radians, values)
        if (angles := values.numbers("euler", 3, 3)) is not None:
            return self._euler(angles)
        if (axes := values.numbers("xyaxes", 6, 6)) is not None:
            return _of_axes(np.array(axes[:3]), np.array(axes[3:]), values)
        if (direction := values.numbers("zaxis", 3, 3)) is not None:
            return rotation_from_z(direction, values)
        return UNIT

    def _defaults(self, element: Element, childclass: str | None, kind: str) -> Mapping[str, str]:
        name = element.attributes.get("class", childclass or self.main)
        if name not in self.classes:
            lost = f" It may be in {' or '.join(map(repr, self.missing_files))}, which is missing."
            raise element.error(f"{unknown_name('class', name, self.classes)}{lost if self.missing_files else ''}")
        return self.classes[name].get(kind, {})

    def _euler(self, angles: tuple[float, ...]) -> Quaternion:
        rotation = np.eye(3)
        for letter, angle in zip(self.euler_order, angles, strict=True):
            axis = AXES["xyz".index(letter.lower())]
            step = orientation_matrix(axis_angle(axis, angle * self.to_radians))
            rotation = rotation @ step if letter.islower() else step @ rotation  # lower case: about rotated axes
        return orientation_from_matrix(rotation)


def read_settings(root: Element, missing_files: list[str]) -> Settings:
    """Return the settings of a file whose includes are expanded."""
    settings = Settings(missing_files=missing_files)
    for section in root.all("compiler"):
        section.was_read = True
        _read_compiler(settings, section)
    for section in root.all("option"):
        section.was_read = True
        settings.gravity = Values(section, section.attributes).vector("gravity", settings.gravity)
    for section in root.all("default"):
        for element in section.walk():  # a default without an element to complete changes nothing
            element.was_read = True
        _read_defaults(settings, section, None)
    return settings


def checked_axis_angle(axis: tuple[float, ...], angle: float, values: Values) -> Quaternion:
    """Return the rotation by an angle [rad] about an axis of any length."""
    length = sqrt(sum(c * c for c in axis))
    if length < 1e-14:
        raise values.element.error(f"{values.element.tag}: The axis {axis} has no length. Give it a direction.")
    return axis_angle(np.array(axis) / length, angle)


def rotation_from_z(direction: tuple[float, ...], values: Values) -> Quaternion:
    """Return the smallest rotation from z to a direction."""
    length = sqrt(sum(c * c for c in direction))
    if length < 1e-14:
        raise values.element.error(f"{values.element.tag}: The z axis {direction} has no length. Give it a direction.")
    x, y, z = (c / length for c in direction)
    across = sqrt(x * x + y * y)
    if across < 1e-10:
        return UNIT if z > 0.0 else (0.0, 1.0, 0.0, 0.0)
    return axis_angle(np.array([-y / across, x / across, 0.0]), float(np.arctan2(across, z)))


def _read_compiler(settings: Settings, section: Element) -> None:
    values = Values(section, section.attributes)
    if values.text("coordinate", "local") != "local":
        raise section.error(
            "Compiler: coordinate 'global' was removed from MuJoCo 2.3.4. Convert the file with an older version."
        )
    units = ("degree", "radian")
    settings.degrees = values.choice("angle", units[not settings.degrees], units) == "degree"
    order = values.text("eulerseq", settings.euler_order)
    if len(order) != 3 or not set(order) <= set("xyzXYZ"):
        raise section.error(f"Compiler: eulerseq is {_short(order)!r}. It must be three of x y z X Y Z.")
    settings.euler_order = order
    settings.automatic_limits = values.flag("autolimits", settings.automatic_limits)
    settings.inertia_from_geom = values.choice("inertiafromgeom", settings.inertia_from_geom, ("true", "false", "auto"))
    groups = values.numbers("inertiagrouprange", 2, 2)
    settings.inertia_groups = settings.inertia_groups if groups is None else (groups[0], groups[1])
    settings.balance_inertia = values.flag("balanceinertia", settings.balance_inertia)
    settings.min_mass = values.number("boundmass", settings.min_mass)
    settings.min_inertia = values.number("boundinertia", settings.min_inertia)
    settings.total_mass = values.number("settotalmass", settings.total_mass)
    settings.mesh_folder = values.text("meshdir", values.text("assetdir", settings.mesh_folder))
    settings.texture_folder = values.text("texturedir", values.text("assetdir", settings.texture_folder))
    settings.strip_path = values.flag("strippath", settings.strip_path)
    for name in ("fusestatic", "alignfree", "discardvisual"):
        if values.text(name) == "true":
            settings.notes.append(f"Compiler: {name} is ignored: bodies and shapes stay as stated in the file.")


def _read_defaults(settings: Settings, section: Element, parent: str | None) -> None:
    """Read one class and those inside it; a class begins as a copy of its parent."""
    name = section.attributes.get("class", "")
    if parent is None:
        if name and name != settings.main and settings.main == "main":  # the outermost class can have another name
            settings.classes[name] = settings.classes.pop("main")
            settings.main = name
        name = settings.main
    elif not name:
        raise section.error("Default: A nested class has no name. Give it the attribute class.")
    elif name in settings.classes:
        raise section.error(f"Default: The class {_short(name)!r} is defined twice. Rename one.")
    else:
        settings.classes[name] = {tag: dict(values) for tag, values in settings.classes[parent].items()}
    own = settings.classes[name]
    for element in section.children:
        if element.tag in ACTUATORS:
            own[ACTUATOR] = general_actuator(element.tag, element.attributes, own.get(ACTUATOR, {}))
        for tag in _tags(element.tag):
            own[tag] = _merged(own.get(tag, {}), element.attributes)
    for inner in section.all("default"):
        _read_defaults(settings, inner, name)


def _tags(tag: str) -> Iterator[str]:
    if tag == "tendon":
        yield from TENDONS
    elif tag == "equality":
        yield from (f"equality {kind}" for kind in EQUALITIES)
    elif tag != "default" and tag not in ACTUATORS:
        yield tag


def general_actuator(tag: str, own: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of an actuator of any kind as those of a general one, completed by its class."""
    merged = {**base, **own}
    if tag == "general":
        return merged
    merged |= {"gaintype": "fixed", "biastype": "none"}
    if tag == "muscle":
        was_muscle = base.get("gaintype") == "muscle"
        gain = list(MUSCLE_DEFAULTS)
        if was_muscle:
            stated = base.get("gainprm", "").split(None, 9)[:9]
            gain[: len(stated)] = stated
        if "range" in own:
            gain[:2] = (own["range"].split(None, 2)[:2] + gain[:2])[:2]
        for i, name in enumerate(MUSCLE_PARAMETERS, 2):
            gain[i] = own.get(name, gain[i])
        merged |= {"gaintype": "muscle", "biastype": "muscle", "dyntype": "muscle", "gainprm": " ".join(gain)}
        dynamics = base.get("dynprm", "0.01 0.04") if was_muscle else "0.01 0.04"
        usual = dynamics.split(None, 3)[:3] + ["0.01", "0.04", "0"][len(dynamics.split(None, 3)[:3]) :]
        stated = own.get("timeconst", "").split(None, 2)[:2]
        merged["dynprm"] = " ".join([*stated, *usual[len(stated) : 2], own.get("tausmooth", usual[2])])
        merged.pop("range", None)
    return merged


def _merged(defaults: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return attributes completed by defaults; an orientation of the element replaces any default orientation."""
    if any(name in own for name in ORIENTATIONS):
        defaults = {name: value for name, value in defaults.items() if name not in ORIENTATIONS}
    return {**defaults, **own}


def _of_axes(x: Array, y: Array, values: Values) -> Quaternion:
    """Return the frame with the given x and y; y is made perpendicular to x."""
    problem = f"{values.element.tag}: The axes {tuple(x)} and {tuple(y)} of xyaxes do not span a plane. Correct them."
    if np.linalg.norm(x) < 1e-14:
        raise values.element.error(problem)
    x = x / np.linalg.norm(x)
    y = y - (x @ y) * x
    if np.linalg.norm(y) < 1e-14:
        raise values.element.error(problem)
    y = y / np.linalg.norm(y)
    return orientation_from_matrix(np.column_stack([x, y, np.cross(x, y)]))


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."

"""What the sections `compiler`, `option` and `default` of an MJCF file say, and how its numbers are written.

A default class begins as a copy of the class it stands in and then changes what its elements name; an element takes
what it does not say itself from its own class, else from the `childclass` of the body around it, else from `main`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import cos, inf, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.model import Frame, Quaternion, Vector
from borelli.model.transforms import orientation_matrix, orientation_from_matrix, vector

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "plugin",
    "dcmotor",
)  # fmt: skip
ACTUATOR = "actuator"
"""Under this tag stand the defaults of all actuators, stated as general ones."""
TENDONS = ("spatial", "fixed")
MUSCLE_PARAMETERS = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")
"""What stands in a muscle's gainprm after the two numbers of its range."""
MUSCLE_DEFAULTS = ("0.75", "1.05", "-1", "200", "0.5", "1.6", "1.5", "1.3", "1.2")
EQUALITIES = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")
MAX_NUMBER = 1e30
"""Larger ones cannot be meant, and their cubes could not be computed with."""
UNIT = (1.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Values:
    """An element's attributes, completed from its default class, read as what they mean."""

    element: Element
    attributes: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.attributes

    def text(self, name: str, default: str = "") -> str:
        """An attribute as text."""
        return self.attributes.get(name, default)

    def choice(self, name: str, default: str, known: tuple[str, ...]) -> str:
        """An attribute that is one of some words."""
        word = self.text(name, default)
        if word not in known:
            raise self.element.error(f"{self.element.tag}: {unknown_name(name, word, known)}")
        return word

    def truth(self, name: str, default: bool) -> bool:
        """An attribute that is true or false."""
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def numbers(self, name: str, least: int = 1, most: float = inf) -> tuple[float, ...] | None:
        """The numbers of an attribute, between `least` and `most` of them; None if it is not there."""
        if name not in self.attributes:
            return None
        words = self.attributes[name].split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            values = ()
        if len(values) != len(words) or not all(abs(value) < MAX_NUMBER for value in values):
            raise self.element.error(f"{self._place(name)} must hold finite numbers, got {_short(' '.join(words))!r}")
        if not least <= len(values) <= most:
            wanted = f"{least}" if least == most else f"{least} or more" if most == inf else f"{least} to {int(most)}"
            raise self.element.error(f"{self._place(name)} must hold {wanted} numbers, got {len(values)}")
        return values

    def number(self, name: str, default: float) -> float:
        """The one number of an attribute."""
        values = self.numbers(name, 1, 1)
        return default if values is None else values[0]

    def vector(self, name: str, default: Vector = (0.0, 0.0, 0.0)) -> Vector:
        """The three numbers of an attribute."""
        values = self.numbers(name, 3, 3)
        return default if values is None else vector(values)

    def _place(self, name: str) -> str:
        named = self.element.attributes.get("name")
        return f"{self.element.tag}{f' {_short(named)!r}' if named else ''}: {name}"


@dataclass(slots=True)
class Settings:
    """The compiler's options, gravity and the default classes."""

    degrees: bool = True
    euler_order: str = "xyz"
    automatic_limits: bool = True
    inertia_from_geom: str = "auto"
    inertia_groups: tuple[float, float] = (0.0, 5.0)
    balance_inertia: bool = False
    least_mass: float = 0.0
    least_inertia: float = 0.0
    total_mass: float = -1.0
    mesh_folder: str = ""
    strip_path: bool = False
    gravity: Vector = (0.0, 0.0, -9.81)
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    main: str = "main"
    missing_files: list[str] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)
    """Elements that were not read, by what they are."""
    notes: list[str] = field(default_factory=list)

    @property
    def to_radians(self) -> float:
        """What an angle of the file is multiplied with."""
        return pi / 180.0 if self.degrees else 1.0

    def values(self, element: Element, around: str | None = None, kind: str | None = None) -> Values:
        """The element's attributes completed by its class.

        Args:
            element: the element.
            around: the `childclass` that holds where it stands.
            kind: the tag under which defaults for it stand; its own tag unless given.
        """
        return Values(element, _merged(self._defaults(element, around, kind or element.tag), element.attributes))

    def actuator(self, element: Element) -> Values:
        """An actuator of any kind, stated as a general one."""
        defaults = self._defaults(element, None, ACTUATOR)
        return Values(element, general_actuator(element.tag, element.attributes, defaults))

    def frame(self, values: Values) -> Frame:
        """Where an element says it stands."""
        return Frame(values.vector("pos"), self.orientation(values))

    def orientation(self, values: Values) -> Quaternion:
        """The orientation an element states in any of MJCF's ways."""
        if (q := values.numbers("quat", 4, 4)) is not None:
            length = sqrt(sum(c * c for c in q))
            return UNIT if length < 1e-14 else _quaternion(np.array(q) / length)
        if (a := values.numbers("axisangle", 4, 4)) is not None:
            return about(a[:3], a[3] * self.to_radians, values)
        if (angles := values.numbers("euler", 3, 3)) is not None:
            return self._euler(angles)
        if (axes := values.numbers("xyaxes", 6, 6)) is not None:
            return _of_axes(np.array(axes[:3]), np.array(axes[3:]), values)
        if (z := values.numbers("zaxis", 3, 3)) is not None:
            return z_to(z, values)
        return UNIT

    def _defaults(self, element: Element, around: str | None, kind: str) -> Mapping[str, str]:
        """What an element's class says of elements of a kind."""
        name = element.attributes.get("class", around or self.main)
        if name not in self.classes:
            lost = f"; it may be in {' or '.join(map(repr, self.missing_files))}, which is missing"
            raise element.error(f"{unknown_name('class', name, self.classes)}{lost if self.missing_files else ''}")
        return self.classes[name].get(kind, {})

    def leave_out(self, what: str) -> None:
        """Counts something of the file that is not read."""
        self.unused[what] = self.unused.get(what, 0) + 1

    def _euler(self, angles: tuple[float, ...]) -> Quaternion:
        turn = np.eye(3)
        for letter, angle in zip(self.euler_order, angles, strict=True):
            axis = np.eye(3)["xyz".index(letter.lower())]
            part = orientation_matrix(_axis_angle(axis, angle * self.to_radians))
            turn = turn @ part if letter.islower() else part @ turn  # small letters: about axes that turn along
        return orientation_from_matrix(turn)


def read_settings(root: Element, missing_files: list[str]) -> Settings:
    """The settings of a file whose includes are in place."""
    settings = Settings(missing_files=missing_files)
    for section in root.all("compiler"):
        _read_compiler(settings, section)
    for section in root.all("option"):
        settings.gravity = Values(section, section.attributes).vector("gravity", settings.gravity)
    for section in root.all("default"):
        _read_defaults(settings, section, None)
    return settings


def about(axis: tuple[float, ...], angle: float, values: Values) -> Quaternion:
    """The turn by an angle [rad] about an axis of any length."""
    length = sqrt(sum(c * c for c in axis))
    if length < 1e-14:
        raise values.element.error(f"{values.element.tag}: the axis {axis} is no direction; give one of some length")
    return _axis_angle(np.array(axis) / length, angle)


def z_to(direction: tuple[float, ...], values: Values) -> Quaternion:
    """The least turn that takes z to a direction."""
    length = sqrt(sum(c * c for c in direction))
    if length < 1e-14:
        raise values.element.error(f"{values.element.tag}: {direction} is no direction for z; give one of some length")
    x, y, z = (c / length for c in direction)
    across = sqrt(x * x + y * y)
    if across < 1e-10:
        return UNIT if z > 0.0 else (0.0, 1.0, 0.0, 0.0)
    return _axis_angle(np.array([-y / across, x / across, 0.0]), float(np.arctan2(across, z)))


def _read_compiler(settings: Settings, section: Element) -> None:
    values = Values(section, section.attributes)
    if values.text("coordinate", "local") != "local":
        raise section.error(
            "compiler: coordinate is 'global', which MuJoCo gave up in 2.3.4; convert the file with an older one"
        )
    settings.degrees = (
        values.choice("angle", "degree" if settings.degrees else "radian", ("degree", "radian")) == "degree"
    )
    order = values.text("eulerseq", settings.euler_order)
    if len(order) != 3 or not set(order) <= set("xyzXYZ"):
        raise section.error(f"compiler: eulerseq is {_short(order)!r}, but must be three of x y z X Y Z")
    settings.euler_order = order
    settings.automatic_limits = values.truth("autolimits", settings.automatic_limits)
    settings.inertia_from_geom = values.choice("inertiafromgeom", settings.inertia_from_geom, ("true", "false", "auto"))
    groups = values.numbers("inertiagrouprange", 2, 2)
    settings.inertia_groups = settings.inertia_groups if groups is None else (groups[0], groups[1])
    settings.balance_inertia = values.truth("balanceinertia", settings.balance_inertia)
    settings.least_mass = values.number("boundmass", settings.least_mass)
    settings.least_inertia = values.number("boundinertia", settings.least_inertia)
    settings.total_mass = values.number("settotalmass", settings.total_mass)
    settings.mesh_folder = values.text("meshdir", values.text("assetdir", settings.mesh_folder))
    settings.strip_path = values.truth("strippath", settings.strip_path)
    for name in ("fusestatic", "alignfree", "discardvisual"):
        if values.text(name) == "true":
            settings.notes.append(
                f"compiler: {name} is not followed: all bodies and shapes stay as the file states them"
            )


def _read_defaults(settings: Settings, section: Element, parent: str | None) -> None:
    """One class and those inside it; the copy of the parent is taken when the class begins."""
    name = section.attributes.get("class", "")
    if parent is None:
        if name and name != settings.main and settings.main == "main":  # the outermost class may have another name
            settings.classes[name] = settings.classes.pop("main")
            settings.main = name
        name = settings.main
    elif not name:
        raise section.error("default: a class inside another needs a name; give it the attribute class")
    elif name in settings.classes:
        raise section.error(f"default: the class {_short(name)!r} is defined twice; rename one")
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
    """The tags of elements that defaults under this tag serve."""
    if tag == "tendon":
        yield from TENDONS
    elif tag == "equality":
        yield from (f"equality {kind}" for kind in EQUALITIES)
    elif tag != "default" and tag not in ACTUATORS:
        yield tag


def general_actuator(tag: str, own: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """The attributes of an actuator of any kind as those of a general one, on top of what its class says."""
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
        merged["dynprm"] = own.get("timeconst", dynamics)
        merged.pop("range", None)
    return merged


def _merged(defaults: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Attributes with an element's own before the defaults; an orientation of its own replaces any other way."""
    if any(name in own for name in ORIENTATIONS):
        defaults = {name: value for name, value in defaults.items() if name not in ORIENTATIONS}
    return {**defaults, **own}


def _axis_angle(axis: NDArray[np.float64], angle: float) -> Quaternion:
    x, y, z = sin(0.5 * angle) * axis
    return cos(0.5 * angle), float(x), float(y), float(z)


def _quaternion(values: NDArray[np.float64]) -> Quaternion:
    w, x, y, z = (float(v) for v in values)
    return w, x, y, z


def _of_axes(x: NDArray[np.float64], y: NDArray[np.float64], values: Values) -> Quaternion:
    """The frame whose x and y are given; y is made square to x."""
    problem = f"{values.element.tag}: the axes {tuple(x)} and {tuple(y)} of xyaxes do not span a plane"
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

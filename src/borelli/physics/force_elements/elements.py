"""Force elements: springs between two points, bushings, and forces that are functions of time and state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_floats, as_number
from borelli.model.model import GROUND, Frame, Model, Vector

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spring:
    """Spring and damper between a point of one body and a point of another: equal and opposite forces along the line.

    The tension is stiffness (length - rest_length) + damping times the rate of the length, or that of a table.
    """

    name: str
    body: str
    """Name of a body, or "ground"."""
    to: str
    """The other body, or "ground"."""
    point: Vector = (0.0, 0.0, 0.0)
    """In the frame of `body` [m]."""
    to_point: Vector = (0.0, 0.0, 0.0)
    """In the frame of `to` [m]."""
    rest_length: float = 0.0
    """[m]"""
    stiffness: float = 0.0
    """[N/m]"""
    damping: float = 0.0
    """[N s/m]"""
    force_length: tuple[tuple[float, float], ...] = ()
    """Pairs of length [m] and tension [N], linear in between and beyond; instead of stiffness and rest_length."""
    slack: bool = False
    """The element only pulls, as a ligament or a rope."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Bushing:
    """Elastic connection of two frames: springs and dampers along and about the axes of the first.

    The rotation is the rotation vector from the first frame to the second; the moment is the derivative of
    the elastic energy, half the sum of stiffness times the squares of its components.
    """

    name: str
    body: str
    to: str
    frame: Frame = Frame()
    """On `body`; the springs act along its axes."""
    to_frame: Frame = Frame()
    """On `to`."""
    stiffness: Vector = (0.0, 0.0, 0.0)
    """[N/m]"""
    damping: Vector = (0.0, 0.0, 0.0)
    """[N s/m]"""
    rotational_stiffness: Vector = (0.0, 0.0, 0.0)
    """[N m/rad]"""
    rotational_damping: Vector = (0.0, 0.0, 0.0)
    """[N m s/rad]"""


@dataclass(frozen=True, slots=True)
class ForceTable:
    """Force and torque on a body over time, linear between the times of a table and zero outside of them."""

    body: str
    time: tuple[float, ...]
    """[s], ascending."""
    force: tuple[Vector, ...] = ()
    """[N], world axes, one for each time."""
    torque: tuple[Vector, ...] = ()
    """[N m], world axes."""
    point: Vector | None = None
    """Point of application in the body frame [m]. Default: the center of mass."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class BodyState:
    """Motion of a body at the start of a step, world axes."""

    time: float
    """[s]"""
    position: Floats
    """(3,) of the point of application [m]."""
    rotation: Floats
    """(3, 3) body frame to world."""
    velocity: Floats
    """(3,) of the point of application [m/s]."""
    angular_velocity: Floats
    """(3,) [rad/s]"""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class ForceFunction:
    """Force on a body as a function of time and of the body's motion.

    The function takes a `BodyState` and returns force [N] (3,), or force and torque [N m] (6,), world axes. It is
    called once a step.
    """

    body: str
    function: Callable[[BodyState], Sequence[float] | Floats]
    point: Vector | None = None
    """Point of application in the body frame [m]. Default: the center of mass."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class DriveSchedule:
    """Target, gains and offset of a coordinate's drive over time, linear between the times of a table.

    Quantities without values stay those of the drive. Before the first and after the last time the end values apply.
    """

    coordinate: str
    time: tuple[float, ...]
    """[s], ascending."""
    target: tuple[float, ...] = ()
    """[rad or m]; the velocity of the target is its slope."""
    stiffness: tuple[float, ...] = ()
    """[N m/rad or N/m]"""
    damping: tuple[float, ...] = ()
    """[N m s/rad or N s/m]"""
    offset: tuple[float, ...] = ()
    """[N m or N]"""

    __repr__ = fields_repr


ForceElement = Spring | Bushing | ForceTable | ForceFunction


def check_elements(model: Model, elements: Sequence[ForceElement]) -> None:
    """Raise an error if an element is not valid for a model.

    Raises:
        ModelError: A body is unknown, or an element connects a body with itself.
        SettingsError: A value is not finite or has the wrong sign, or a table is not ascending; two names are the same.
    """
    bodies = [body.name for body in model.bodies]
    named = [element.name for element in elements if isinstance(element, Spring | Bushing)]
    for name in named:
        if named.count(name) > 1:
            raise SettingsError(f"force element {name!r}: Two elements have this name. Rename one.")
    for element in elements:
        where = describe(element)
        ends = [element.body, element.to] if isinstance(element, Spring | Bushing) else [element.body]
        allowed = [*bodies, GROUND] if isinstance(element, Spring | Bushing) else bodies
        for end in ends:
            if end not in allowed:
                raise ModelError(f"{where}: {unknown_name('body', end, allowed)}")
        if len(set(ends)) < len(ends):
            raise ModelError(f"{where}: It connects body {ends[0]!r} with itself. Name two bodies.")
        if isinstance(element, Spring):
            _check_spring(where, element)
        elif isinstance(element, Bushing):
            for field in ("stiffness", "damping", "rotational_stiffness", "rotational_damping"):
                if not (as_floats(f"{where}: {field}", getattr(element, field), (3,)) >= 0.0).all():
                    raise SettingsError(f"{where}: {field} is {getattr(element, field)}. Pass numbers of 0 or larger.")
        elif isinstance(element, ForceTable):
            check_times(where, element.time, {"force": element.force, "torque": element.torque})
            for field in ("force", "torque"):
                if getattr(element, field):
                    as_floats(f"{where}: {field}", getattr(element, field), (len(element.time), 3))


def describe(element: ForceElement | DriveSchedule) -> str:
    """Return words that identify an element in messages."""
    if isinstance(element, Spring | Bushing):
        return f"{type(element).__name__.lower()} {element.name!r}"
    if isinstance(element, DriveSchedule):
        return f"drive schedule of {element.coordinate!r}"
    return f"force on {element.body!r}"


def _check_spring(where: str, spring: Spring) -> None:
    for field in ("rest_length", "stiffness", "damping"):
        value = as_number(f"{where}: {field}", getattr(spring, field))
        if value < 0.0:
            raise SettingsError(f"{where}: {field} is {value:g}. Pass 0 or a larger number.")
    for field in ("point", "to_point"):
        as_floats(f"{where}: {field}", getattr(spring, field), (3,))
    if spring.force_length:
        if spring.stiffness or spring.rest_length:
            raise SettingsError(f"{where}: It has a force_length and a stiffness or rest_length. Pass only one.")
        table = as_floats(f"{where}: force_length", spring.force_length, (None, 2))
        if len(table) < 2 or not (np.diff(table[:, 0]) > 0.0).all():
            raise SettingsError(f"{where}: force_length has no two ascending lengths. Pass pairs (length, tension).")


def check_times(where: str, time: Sequence[float], columns: dict[str, Sequence[object]]) -> None:
    """Raise SettingsError if times are not ascending or the columns of a table do not have their length."""
    if len(time) < 2 or not all(isfinite(t) for t in time) or not (np.diff(np.array(time, float)) > 0.0).all():
        raise SettingsError(f"{where}: Times {tuple(time)} are not ascending. Pass two or more ascending times [s].")
    if not any(columns.values()):
        raise SettingsError(f"{where}: It has no values. Pass one of {', '.join(columns)}.")
    for name, values in columns.items():
        if values and len(values) != len(time):
            raise SettingsError(f"{where}: {len(values)} values of {name} for {len(time)} times. Pass equal numbers.")

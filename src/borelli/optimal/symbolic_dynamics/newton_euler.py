"""Inverse dynamics of a tree as CasADi expressions: recursive Newton-Euler algorithm in body axes.

Luh, Walker and Paul (1980), for joints of up to three translations and three rotations, each a function of one
coordinate. With w the angular velocity of a frame, p a point fixed in it and t a displacement within it, all in the
axes of the frame, the accelerations of points are

    a + A p,   A = [dw/dt]x + [w]x [w]x                 of a fixed point
    a + A t + 2 w x t' + t''                            of a displaced one

and a rotation about the axis u by the angle f gives, in the rotated axes, w + u f' and dw/dt + w x u f' + u f''.
Gravity is an acceleration -g of the ground. Every body is referred to the center of its inboard joint: A serves its
center of mass and all its outboard joints. Forces are collected from the tips to the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from borelli.model.kinematics import Link, LinkAxis, tree_links
from borelli.model.model import Model
from borelli.optimal.symbolic_dynamics.coordinates import CoordinateMotion
from borelli.optimal.symbolic_dynamics.piecewise import evaluate_piecewise
from borelli.optimal.symbolic_dynamics.vectors import (
    IDENTITY,
    Expression,
    Matrix,
    Rotation,
    Vector,
    add,
    cross,
    dot,
    multiply,
    multiply_transposed,
    numbers,
    scale,
    subtract,
    times,
)

ZERO: Vector = [0.0, 0.0, 0.0]


@dataclass(frozen=True, slots=True)
class AxisMotion:
    """Amount, rate and acceleration of a translation or rotation, and its slope by its coordinate."""

    value: Expression
    slope: Expression
    rate: Expression
    acceleration: Expression


@dataclass(frozen=True, slots=True)
class LinkMotion:
    """Joint of the tree with its motion."""

    link: Link
    translations: tuple[AxisMotion, ...]
    rotations: tuple[AxisMotion, ...]
    turns: tuple[Rotation, ...]


@dataclass(frozen=True, slots=True)
class BodyMotion:
    """Motion of a body in its own axes, of its point at the center of the inboard joint."""

    angular_velocity: Vector
    acceleration: Vector
    """Of the joint center, minus gravity [m/s^2]."""
    angular_acceleration: Vector
    gradient: Matrix
    """A: accelerations of other points per distance from the joint center [1/s^2]."""


def axis_motion(part: LinkAxis, motion: CoordinateMotion) -> AxisMotion:
    """Return the motion of one axis of a joint."""
    if part.column < 0:
        value = 0.0 if part.function is None else evaluate_piecewise(part.function, 0.0)[0]
        return AxisMotion(value, 0.0, 0.0, 0.0)
    x, rate, acceleration = (values[part.column] for values in (motion.value, motion.rate, motion.acceleration))
    if part.function is None:
        return AxisMotion(x, 1.0, rate, acceleration)
    value, slope, curvature = evaluate_piecewise(part.function, x)
    change = times(slope, acceleration) + times(curvature, times(rate, rate))
    return AxisMotion(value, slope, times(slope, rate), change)


def link_motions(model: Model, motion: CoordinateMotion) -> tuple[LinkMotion, ...]:
    """Return the joints of a model with their motions, parents first."""
    result = []
    for link in tree_links(model):
        translations = tuple(axis_motion(part, motion) for part in link.translations)
        rotations = tuple(axis_motion(part, motion) for part in link.rotations)
        pairs = zip(link.rotations, rotations, strict=True)
        turns = tuple(Rotation(numbers(part.axis), one.value) for part, one in pairs)
        result.append(LinkMotion(link, translations, rotations, turns))
    return tuple(result)


def body_motions(model: Model, links: tuple[LinkMotion, ...]) -> dict[int, BodyMotion]:
    """Return the motion of every body with a joint; -1 is the ground."""
    ground = BodyMotion(ZERO, [-g for g in model.gravity], ZERO, [ZERO, ZERO, ZERO])
    motions, center = {-1: ground}, {-1: ZERO}
    for one in links:
        link = one.link
        parent = motions[link.parent]
        offset = subtract(numbers(link.parent_position), center[link.parent])
        into = numbers(link.parent_rotation)
        w = _into(into, parent.angular_velocity)
        dw = _into(into, parent.angular_acceleration)
        a = _into(into, add(parent.acceleration, multiply(parent.gradient, offset)))
        if one.translations:
            t, rate, change = (_displacement(one, name) for name in ("value", "rate", "acceleration"))
            a = add(a, multiply(_gradient(w, dw), t))
            a = add(a, add(scale(2.0, cross(w, rate)), change))
        for part, moved, turn in zip(link.rotations, one.rotations, one.turns, strict=True):
            axis = numbers(part.axis)
            w, dw, a = turn.into(w), turn.into(dw), turn.into(a)
            step = scale(moved.rate, axis)
            dw = add(add(dw, cross(w, step)), scale(moved.acceleration, axis))
            w = add(w, step)
        out = numbers(link.child_rotation)
        w, dw, a = _out(out, w), _out(out, dw), _out(out, a)
        motions[link.child] = BodyMotion(w, a, dw, _gradient(w, dw))
        center[link.child] = numbers(link.child_position)
    return motions


def inverse_dynamics(
    model: Model,
    links: tuple[LinkMotion, ...],
    motions: Mapping[int, BodyMotion],
    wrenches: Mapping[int, tuple[Vector, Vector]] | None = None,
) -> list[Expression]:
    """Return the generalized force of every coordinate, couplings not considered [N m or N].

    Args:
        model: Model.
        links: Joints with their motions.
        motions: Motions of the bodies.
        wrenches: External force [N] on a body, and moment [N m] about the center of its inboard joint, in its axes.
    """
    force, moment = {}, {}
    for one in links:
        body = one.link.child
        force[body], moment[body] = _inertial_wrench(model, body, motions[body], numbers(one.link.child_position))
        if wrenches and body in wrenches:
            applied, couple = wrenches[body]
            force[body], moment[body] = subtract(force[body], applied), subtract(moment[body], couple)
    result: list[Expression] = [0.0] * len(model.coordinates)
    center = {one.link.child: numbers(one.link.child_position) for one in links}
    for one in reversed(links):
        link = one.link
        out = numbers(link.child_rotation)
        f, n = _into(out, force[link.child]), _into(out, moment[link.child])
        for part, moved, turn in reversed(list(zip(link.rotations, one.rotations, one.turns, strict=True))):
            if part.column >= 0:
                own = times(moved.slope, dot(numbers(part.axis), n))
                result[part.column] = result[part.column] + own
            f, n = turn.out_of(f), turn.out_of(n)
        for part, moved in zip(link.translations, one.translations, strict=True):
            if part.column >= 0:
                own = times(moved.slope, dot(numbers(part.axis), f))
                result[part.column] = result[part.column] + own
        if link.parent < 0:
            continue
        if one.translations:
            n = add(n, cross(_displacement(one, "value"), f))
        into = numbers(link.parent_rotation)
        f, n = _out(into, f), _out(into, n)
        n = add(n, cross(subtract(numbers(link.parent_position), center[link.parent]), f))
        force[link.parent], moment[link.parent] = add(force[link.parent], f), add(moment[link.parent], n)
    return result


def _inertial_wrench(model: Model, index: int, motion: BodyMotion, center: Vector) -> tuple[Vector, Vector]:
    """Return the force m a and the moment I dw/dt + w x I w + r x m a about the joint center."""
    body = model.bodies[index]
    if body.mass == 0.0 and not any(map(any, body.inertia)):
        return ZERO, ZERO
    arm = subtract(list(body.center_of_mass), center)
    force = scale(body.mass, add(motion.acceleration, multiply(motion.gradient, arm)))
    w, inertia = motion.angular_velocity, body.inertia
    moment = add(multiply(inertia, motion.angular_acceleration), cross(w, multiply(inertia, w)))
    return force, add(moment, cross(arm, force))


def _gradient(w: Vector, dw: Vector) -> Matrix:
    """Return [dw]x + [w]x [w]x."""
    xx, yy, zz = (times(c, c) for c in w)
    xy, yz, zx = times(w[0], w[1]), times(w[1], w[2]), times(w[2], w[0])
    return [
        [-(yy + zz), xy - dw[2], zx + dw[1]],
        [xy + dw[2], -(xx + zz), yz - dw[0]],
        [zx - dw[1], yz + dw[0], -(xx + yy)],
    ]


def _displacement(one: LinkMotion, name: str) -> Vector:
    """Return the sum of the axes of translation times their values, rates or accelerations."""
    total = ZERO
    for part, moved in zip(one.link.translations, one.translations, strict=True):
        total = add(total, scale(getattr(moved, name), numbers(part.axis)))
    return total


def _into(frame: Matrix, a: Vector) -> Vector:
    """Return the components in a constant frame of a vector given outside."""
    return a if frame == IDENTITY else multiply_transposed(frame, a)


def _out(frame: Matrix, a: Vector) -> Vector:
    """Return the components outside of a vector given in a constant frame."""
    return a if frame == IDENTITY else multiply(frame, a)

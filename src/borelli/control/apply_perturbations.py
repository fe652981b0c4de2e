"""Perturbations put to work: loads and obstacles become bodies, pushes forces, moving ground a plate on a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, pi

import numpy as np

from borelli.control.perturbations import (
    Array,
    CarriedLoad,
    Heading,
    MoveGround,
    Obstacle,
    Perturbation,
    Push,
    WeakenedJoint,
    heading,
    root_of,
)
from borelli.errors import ModelError, SettingsError, list_names, unknown_name
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import poses, with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape
from borelli.model.transforms import orientation_matrix, vector
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.prescribed_motion import PrescribedMotion, prescribe_motion
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.state import drive_arrays

LOAD_DENSITY = 4000.0
"""[kg/m^3] of a load, that says how large it is drawn: between stone and iron."""
PLATE = "moving ground"
PLATE_HALF = (2.0, 2.0, 0.05)
"""[m]"""


@dataclass(frozen=True)
class Perturbed:
    """A model with what was added to it, and what acts on it in time."""

    model: Model
    forces: tuple[AppliedForce, ...] = ()
    paths: tuple[PrescribedMotion, ...] = ()
    weakened: tuple[WeakenedJoint, ...] = ()
    outside: tuple[str, ...] = ()
    """Loads that the controller does not know of."""

    def share_left(self, coordinate: str, time: float) -> float:
        """Of the strength of a coordinate at a time [s]."""
        share = 1.0
        for weak in self.weakened:
            if weak.start <= time < weak.end and coordinate in weak.coordinates(self.model):
                share *= weak.share
        return share

    def before_step(self, drives: Sequence[Drive]) -> Callable[[Simulation], None] | None:
        """What moves bodies on paths and scales drives before each step of `simulate`; None: there is nothing to do.

        Raises:
            SettingsError: a weakened coordinate has no drive.
        """
        driven = [drive.coordinate for drive in drives]
        for weak in self.weakened:
            if not set(weak.coordinates(self.model)) & set(driven):
                known = list_names(driven) or "none"
                raise SettingsError(f"weaken: {weak.name!r} has no drive that could lose strength; driven: {known}")
        if not (self.weakened or self.paths):
            return None
        last = [1.0] * len(driven)

        def before_step(simulation: Simulation) -> None:
            time = simulation.index * simulation.compiled.step
            prescribe_motion(self.model, self.paths, simulation.compiled.step)(simulation.state, time)
            shares = [self.share_left(name, time) for name in driven]
            if shares != last:
                last[:] = shares
                scaled = [_scaled(drive, share) for drive, share in zip(drives, shares, strict=True)]
                now = drive_arrays(simulation.compiled, scaled)
                for array, values in zip(simulation.inputs.drives, now, strict=True):
                    array[:] = values

        return before_step


def perturbed(
    model: Model,
    perturbations: Sequence[Perturbation],
    heads: Heading,
    *,
    start: Array | None = None,
    middle: Sequence[float] = (0.0, 0.0, 0.0),
) -> Perturbed:
    """The model under perturbations.

    Args:
        model: What is perturbed.
        perturbations: What is done to it.
        heads: Where it heads.
        start: Coordinates that it starts with [rad or m], in which loads hang straight down; None: the defaults.
        middle: Place about which ground that moves is laid out [m].

    Raises:
        SettingsError: a body, coordinate or joint that is not there; moving ground where there is none.
    """
    result = Perturbed(model)
    pose = np.array([c.default for c in model.coordinates]) if start is None else start
    moves = [p for p in perturbations if isinstance(p, MoveGround)]
    for p in perturbations:
        if isinstance(p, Push):
            result = replace(result, forces=(*result.forces, _force(model, p, heads)))
        elif isinstance(p, CarriedLoad):
            outside = (*result.outside, p.name) if p.outside else result.outside
            result = replace(result, model=_loaded(result.model, p, _rotation(model, pose, p.body)), outside=outside)
        elif isinstance(p, WeakenedJoint):
            p.coordinates(model)
            result = replace(result, weakened=(*result.weakened, p))
        elif isinstance(p, Obstacle):
            body, path = _obstacle(result.model, p)
            result = replace(result, model=_with(result.model, body), paths=(*result.paths, path))
    return _on_moving_ground(result, moves, heads, np.array(middle)) if moves else result


def heading_at(model: Model, coordinates: Array) -> Array:
    """Where a pose of the model heads: see `heading`."""
    index = [body.name for body in model.bodies].index(root_of(model))
    return heading(model, poses(model, coordinates)[1][0, index])


def _scaled(drive: Drive, share: float) -> Drive:
    return replace(
        drive, stiffness=share * drive.stiffness, damping=share * drive.damping, offset=share * drive.offset,
        max_force=share * drive.max_force if drive.max_force < inf else inf,
    )  # fmt: skip


def _check_body(model: Model, what: str, body: str) -> None:
    if body == GROUND or body not in [b.name for b in model.bodies]:
        raise SettingsError(f"{what}: {unknown_name('body', body, [b.name for b in model.bodies])}")


def _force(model: Model, push: Push, heads: Heading) -> AppliedForce:
    _check_body(model, "push", push.body)
    force = vector(np.array(push.force) @ heads(push.start))
    return AppliedForce(push.body, force, point=push.point, start=push.start, end=push.start + push.duration)


def _rotation(model: Model, pose: Array, name: str) -> Array:
    """Of a body in a pose."""
    _check_body(model, "carry", name)
    if not model.coordinates:
        return orientation_matrix(model.body(name).frame.orientation)
    return np.asarray(poses(model, pose)[1][0, [body.name for body in model.bodies].index(name)])


def _loaded(model: Model, carry: CarriedLoad, rotation: Array) -> Model:
    """The model with a ball for the load, on a body that starts with that rotation."""
    body = model.body(carry.body)
    radius = (3.0 * carry.mass / (4.0 * pi * LOAD_DENSITY)) ** (1.0 / 3.0)
    ball = body_from_shapes(carry.name, (Shape("sphere", (radius,), collides=False),), mass=carry.mass)
    place = Frame(carry.point or body.center_of_mass)
    joint = Joint(carry.name, "fixed", body.name, ball.name, place)
    if carry.hanging:
        down = np.array(model.gravity) / max(float(np.linalg.norm(model.gravity)), 1e-300)
        below = 2.0 * radius * rotation.T @ down
        angles = tuple(Coordinate(f"{carry.name} {axis}") for axis in "xyz")
        joint = Joint(carry.name, "ball", body.name, ball.name, place, Frame(vector(-below)), coordinates=angles)
    return with_default_frames(_with(model, ball, joint))


def _obstacle(model: Model, obstacle: Obstacle) -> tuple[Body, PrescribedMotion]:
    name, number = obstacle.name, 1
    while name in [b.name for b in model.bodies]:
        number += 1
        name = f"{obstacle.name} {number}"

    def frame(time: float) -> Frame | None:
        if not obstacle.start <= time < obstacle.end:
            return None
        way = (time - obstacle.start) * np.array(obstacle.velocity)
        return replace(obstacle.frame, position=vector(np.array(obstacle.frame.position) + way))

    body = replace(body_from_shapes(name, (obstacle.shape,)), frame=obstacle.frame, kinematic=True)
    return body, PrescribedMotion(name, frame)


def _on_moving_ground(result: Perturbed, moves: Sequence[MoveGround], heads: Heading, middle: Array) -> Perturbed:
    """The ground as a plate (its planes as slabs, other shapes as they are) on a path."""
    model = result.model
    if not model.ground:
        raise SettingsError("moving ground: the model stands on none; give it a ground, or leave the move out")
    shapes = tuple(_slab(shape, middle) if shape.kind == "plane" else shape for shape in model.ground)
    plate = replace(body_from_shapes(PLATE, shapes), kinematic=True)
    ways = [(move, np.array(move.by) @ heads(move.start)) for move in moves]

    def frame(time: float) -> Frame:
        return Frame(vector(sum((move.share(time) * way for move, way in ways), np.zeros(3))))

    moved = _with(replace(model, ground=()), plate)
    return replace(result, model=moved, paths=(*result.paths, PrescribedMotion(PLATE, frame)))


def _slab(plane: Shape, middle: Array) -> Shape:
    """A box whose upper side is the plane, near a place."""
    normal = orientation_matrix(plane.frame.orientation)[:, 2]
    at = np.array(plane.frame.position)
    foot = middle - ((middle - at) @ normal) * normal - PLATE_HALF[2] * normal
    return replace(plane, kind="box", size=PLATE_HALF, frame=replace(plane.frame, position=vector(foot)))


def _with(model: Model, body: Body, joint: Joint | None = None) -> Model:
    if body.name in [b.name for b in model.bodies]:
        raise ModelError(f"model {model.name!r} has a body {body.name!r} already; carry one load on a body")
    joints = model.joints if joint is None else (*model.joints, joint)
    return replace(model, bodies=(*model.bodies, body), joints=joints)

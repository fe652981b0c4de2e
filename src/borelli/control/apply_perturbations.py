"""Application of perturbations: loads and obstacles become bodies, pushes forces, moving ground a kinematic plate."""

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
    heading_axes,
    heading_body,
)
from borelli.errors import ModelError, SettingsError, list_names, unknown_name
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import poses, with_default_frames
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape
from borelli.model.transforms import orientation_matrix, vector
from borelli.physics.arrays.shapes import GROUND_BODY
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.prescribed_motion import PrescribedMotion, prescribe_motion
from borelli.physics.run_soft_steps import Simulation
from borelli.physics.state import drive_arrays
from borelli.recording.recording import Note

LOAD_DENSITY = 4000.0
"""Density of a load [kg/m^3], which sets its drawn size: between stone and iron."""
PLATE_HALF = (2.0, 2.0, 0.05)
"""Half sides of the plate [m]."""


@dataclass(frozen=True)
class PerturbedModel:
    """A model with added bodies, and the perturbations that act on it in time."""

    model: Model
    forces: tuple[AppliedForce, ...] = ()
    paths: tuple[PrescribedMotion, ...] = ()
    weakened: tuple[WeakenedJoint, ...] = ()
    outside: tuple[str, ...] = ()
    """Loads that are unknown to the controller."""

    def remaining_strength(self, coordinate: str, time: float) -> float:
        """Return the fraction of a coordinate's strength that is left at a time [s]."""
        fraction = 1.0
        for weak in self.weakened:
            if weak.start <= time < weak.end and coordinate in weak.coordinates(self.model):
                fraction *= weak.fraction
        return fraction

    def before_step(self, drives: Sequence[Drive]) -> Callable[[Simulation], None] | None:
        """Return a callback that moves kinematic bodies and scales drives before each step; None if not needed.

        Raises:
            SettingsError: A weakened coordinate has no drive.
        """
        driven = [drive.coordinate for drive in drives]
        for weak in self.weakened:
            if not set(weak.coordinates(self.model)) & set(driven):
                known = list_names(driven) or "none"
                raise SettingsError(
                    f"weaken: {weak.name!r} has no drive to weaken. Add a drive, or choose a driven coordinate: {known}"
                )
        if not (self.weakened or self.paths):
            return None
        last = [1.0] * len(driven)

        def before_step(simulation: Simulation) -> None:
            time = simulation.index * simulation.compiled.step
            prescribe_motion(self.model, self.paths, simulation.compiled.step)(simulation.state, time)
            fractions = [self.remaining_strength(name, time) for name in driven]
            if fractions != last:
                last[:] = fractions
                scaled = [_scale_drive(drive, fraction) for drive, fraction in zip(drives, fractions, strict=True)]
                now = drive_arrays(simulation.compiled, scaled)
                for array, values in zip(simulation.inputs.drives, now, strict=True):
                    array[:] = values

        return before_step


def apply_perturbations(
    model: Model,
    perturbations: Sequence[Perturbation],
    heading: Heading,
    *,
    initial_coordinates: Array | None = None,
    ground_center: Sequence[float] = (0.0, 0.0, 0.0),
) -> PerturbedModel:
    """Return the model with added bodies, forces, paths of kinematic bodies and weakened joints.

    Loads hang straight down in the initial pose [rad or m], by default the model's; moving ground is centered about
    `ground_center` [m].

    Raises:
        SettingsError: A body, coordinate or joint is unknown, or there is no ground to move.
    """
    result = PerturbedModel(model)
    pose = np.array([c.default for c in model.coordinates]) if initial_coordinates is None else initial_coordinates
    moves = [p for p in perturbations if isinstance(p, MoveGround)]
    for p in perturbations:
        if isinstance(p, Push):
            result = replace(result, forces=(*result.forces, _force(model, p, heading)))
        elif isinstance(p, CarriedLoad):
            outside = (*result.outside, p.name) if p.outside else result.outside
            rotation = _body_rotation(model, pose, p.body)
            result = replace(result, model=_add_load(result.model, p, rotation), outside=outside)
        elif isinstance(p, WeakenedJoint):
            p.coordinates(model)
            result = replace(result, weakened=(*result.weakened, p))
        elif isinstance(p, Obstacle):
            body, path = _obstacle(result.model, p)
            result = replace(result, model=_add_body(result.model, body), paths=(*result.paths, path))
    return _add_moving_ground(result, moves, heading, np.array(ground_center)) if moves else result


def heading_of_pose(model: Model, coordinates: Array) -> Array:
    """Return the heading axes (3, 3) of a pose of the model; see `heading_axes`."""
    index = [body.name for body in model.bodies].index(heading_body(model))
    return heading_axes(model, poses(model, coordinates)[1][0, index])


def _scale_drive(drive: Drive, fraction: float) -> Drive:
    return replace(
        drive, stiffness=fraction * drive.stiffness, damping=fraction * drive.damping, offset=fraction * drive.offset,
        max_force=fraction * drive.max_force if drive.max_force < inf else inf,
    )  # fmt: skip


def _check_body(model: Model, where: str, body: str) -> None:
    if body == GROUND or body not in [b.name for b in model.bodies]:
        raise SettingsError(f"{where}: {unknown_name('body', body, [b.name for b in model.bodies])}")


def _force(model: Model, push: Push, heading: Heading) -> AppliedForce:
    _check_body(model, "push", push.body)
    force = vector(np.array(push.force) @ heading(push.start))
    return AppliedForce(push.body, force, point=push.point, start=push.start, end=push.start + push.duration)


def _body_rotation(model: Model, pose: Array, name: str) -> Array:
    _check_body(model, "carry", name)
    if not model.coordinates:
        return orientation_matrix(model.body(name).frame.orientation)
    return np.asarray(poses(model, pose)[1][0, [body.name for body in model.bodies].index(name)])


def _add_load(model: Model, carry: CarriedLoad, rotation: Array) -> Model:
    """Attach a sphere for the load to a body of that initial rotation."""
    body = model.body(carry.body)
    radius = (3.0 * carry.mass / (4.0 * pi * LOAD_DENSITY)) ** (1.0 / 3.0)
    ball = body_from_shapes(carry.name, (Shape("sphere", (radius,), collides=False),), mass=carry.mass)
    attachment = Frame(carry.point or body.center_of_mass)
    joint = Joint(carry.name, "fixed", body.name, ball.name, attachment)
    if carry.hanging:
        down = np.array(model.gravity) / max(float(np.linalg.norm(model.gravity)), 1e-300)
        below = 2.0 * radius * rotation.T @ down
        angles = tuple(Coordinate(f"{carry.name} {axis}") for axis in "xyz")
        joint = Joint(carry.name, "ball", body.name, ball.name, attachment, Frame(vector(-below)), coordinates=angles)
    return with_default_frames(_add_body(model, ball, joint))


def _obstacle(model: Model, obstacle: Obstacle) -> tuple[Body, PrescribedMotion]:
    name, number = obstacle.name, 1
    while name in [b.name for b in model.bodies]:
        number += 1
        name = f"{obstacle.name} {number}"

    def frame(time: float) -> Frame | None:
        if not obstacle.start <= time < obstacle.end:
            return None
        displacement = (time - obstacle.start) * np.array(obstacle.velocity)
        return replace(obstacle.frame, position=vector(np.array(obstacle.frame.position) + displacement))

    body = replace(body_from_shapes(name, (obstacle.shape,)), frame=obstacle.frame, kinematic=True)
    return body, PrescribedMotion(name, frame)


def _add_moving_ground(
    result: PerturbedModel, moves: Sequence[MoveGround], heading: Heading, center: Array
) -> PerturbedModel:
    """Replace the ground by a moving plate: planes become slabs, other shapes stay."""
    model = result.model
    if not model.ground:
        raise SettingsError("move-ground: The model has no ground. Add a ground, or remove this perturbation.")
    shapes = tuple(_slab(shape, center) if shape.kind == "plane" else shape for shape in model.ground)
    plate = replace(body_from_shapes(GROUND_BODY, shapes), kinematic=True)
    displacements = [(move, np.array(move.displacement) @ heading(move.start)) for move in moves]

    def frame(time: float) -> Frame:
        return Frame(vector(sum((move.fraction(time) * by for move, by in displacements), np.zeros(3))))

    moved = _add_body(replace(model, ground=()), plate)
    return replace(result, model=moved, paths=(*result.paths, PrescribedMotion(GROUND_BODY, frame)))


def _slab(plane: Shape, center: Array) -> Shape:
    """Return a box whose upper side is the plane, near a point."""
    normal = orientation_matrix(plane.frame.orientation)[:, 2]
    at = np.array(plane.frame.position)
    foot = center - ((center - at) @ normal) * normal - PLATE_HALF[2] * normal
    return replace(plane, kind="box", size=PLATE_HALF, frame=replace(plane.frame, position=vector(foot)))


def _add_body(model: Model, body: Body, joint: Joint | None = None) -> Model:
    if body.name in [b.name for b in model.bodies]:
        raise ModelError(f"Model {model.name!r} already has a body {body.name!r}. Attach only one load to a body.")
    joints = model.joints if joint is None else (*model.joints, joint)
    return replace(model, bodies=(*model.bodies, body), joints=joints)


def late_notes(perturbations: Sequence[Perturbation], duration: float) -> list[Note]:
    """Return notes on perturbations that begin after the end of the motion, or end after it."""
    notes = []
    for one in perturbations:
        name = f"{type(one).__name__} {getattr(one, 'body', getattr(one, 'name', ''))!r}"
        start = float(getattr(one, "start", 0.0))
        end = start + float(getattr(one, "duration", 0.0))
        if start >= duration:
            text = f"{name} begins at {start:g} s, after the end of the motion ({duration:.2f} s), and has no effect."
        elif end > duration:
            text = f"{name} ends at {end:g} s, after the end of the motion ({duration:.2f} s), and is cut short."
        else:
            continue
        notes.append(Note(text, "problem", "choose an earlier time", code="perturbation_time"))
    return notes

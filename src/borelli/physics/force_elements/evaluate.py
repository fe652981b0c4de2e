"""Forces of elements in a simulation, by step, and over its record.

The force of a step is that at its start; with the velocities of the step this is the semi-implicit Euler method. It is
stable up to h = 2 / omega for a spring and h = 2 m / d for a damper; `check_stiffness` bounds both for free bodies, the
lightest that a spring can meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import Model
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.force_elements.arrays import add_element_wrenches, make_element_arrays
from borelli.physics.force_elements.elements import (
    BodyState,
    Bushing,
    DriveSchedule,
    ForceElement,
    ForceFunction,
    ForceTable,
    Spring,
    check_elements,
    check_times,
    describe,
)
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.state import Inputs, State

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

MAX_STIFFNESS_RATIO = 1.0
"""Largest h^2 k / m of a spring on free bodies (stable: 4), and of h d / m of a damper (stable: 2)."""


class Elements:
    """Force elements of a model: their wrenches on the bodies at a time and a state."""

    def __init__(self, model: Model, elements: Sequence[ForceElement]) -> None:
        """Check the elements and make their arrays.

        Raises:
            ModelError: A body is unknown.
            SettingsError: A value is not valid.
        """
        check_elements(model, elements)
        self.model, self.elements = model, tuple(elements)
        self._arrays = make_element_arrays(model, elements)
        self._shared = SharedTuple(self._arrays)
        self._index = {body.name: i for i, body in enumerate(model.bodies)}
        self._bodies = len(model.bodies)
        self.springs = [element for element in elements if isinstance(element, Spring)]
        self.bushings = [element for element in elements if isinstance(element, Bushing)]
        self._others = [element for element in elements if not isinstance(element, Spring | Bushing)]

    def wrenches(self, time: float, position: Floats, rotation: Floats, twist: Floats) -> Floats:
        """Return force [N] and moment [N m] (bodies, 6) at the centers of mass, world axes.

        Args:
            time: [s].
            position: (bodies, 3) centers of mass [m].
            rotation: (bodies, 3, 3) body frames to world.
            twist: (bodies, 6) velocity of the center of mass [m/s], angular velocity [rad/s].
        """
        wrench, _, _ = self._passive(position[None], rotation[None], twist[None])
        for element in self._others:
            b = self._index[element.body]
            arm = np.zeros(3)
            if element.point is not None:
                arm = rotation[b] @ (np.array(element.point) - self.model.bodies[b].center_of_mass)
            if isinstance(element, ForceTable):
                value = _from_table(element, time)
            else:
                value = _from_function(element, time, position[b] + arm, rotation[b], twist[b], arm)
            wrench[0, b, :3] += value[:3]
            wrench[0, b, 3:] += value[3:] + np.cross(arm, value[:3])
        return np.asarray(wrench[0])

    def _passive(self, position: Floats, rotation: Floats, twist: Floats) -> tuple[Floats, Floats, Floats]:
        """Return wrenches, and lengths, forces and energies of springs and bushings, in many frames."""
        frames = len(position)
        wrench = np.zeros((frames, self._bodies, 6))
        springs, bushings = np.zeros((frames, len(self.springs), 3)), np.zeros((frames, len(self.bushings), 7))
        given = tuple(np.ascontiguousarray(array, float) for array in (position, rotation, twist))
        add_element_wrenches(*(self._shared, *given, wrench, springs, bushings))
        return wrench, springs, bushings

    def add_to(self, data: xarray.Dataset, pose: Floats, twist: Floats) -> xarray.Dataset:
        """Return the dataset of a run with lengths, forces and energy of springs and bushings."""
        _, springs, bushings = self._passive(pose[..., :3], rotation_matrix(pose[..., 3:]), twist)
        if self.springs:
            dims = ("time", "spring")
            data = data.assign_coords(spring=[element.name for element in self.springs]).assign(
                spring_length=(dims, springs[..., 0], {"units": "m", "frame": "between the two points"}),
                spring_tension=(dims, springs[..., 1], {"units": "N", "frame": "positive: pulls"}),
            )
        if self.bushings:
            dims3 = ("time", "bushing", "axis")
            frame = {"frame": "frame on the first body; on the second body"}
            data = data.assign_coords(bushing=[element.name for element in self.bushings]).assign(
                bushing_force=(dims3, bushings[..., :3], {"units": "N", **frame}),
                bushing_moment=(dims3, bushings[..., 3:6], {"units": "N m", **frame}),
            )
        if self.springs or self.bushings:
            energy = springs[..., 2].sum(axis=1) + bushings[..., 6].sum(axis=1)
            data = data.assign(elastic_energy=(("time",), energy, {"units": "J", "frame": "springs and bushings"}))
        return data


def element_wrenches(
    model: Model, elements: Sequence[ForceElement], position: Floats, rotation: Floats, twist: Floats
) -> Floats:
    """Return the wrenches (bodies, 6) of elements in one state at time 0, as `Elements.wrenches`."""
    return Elements(model, elements).wrenches(0.0, position, rotation, twist)


def placeholder_forces(model: Model, elements: Sequence[ForceElement]) -> tuple[AppliedForce, ...]:
    """Return one applied force per body, whose values `ElementInputs` writes before every step."""
    return tuple(AppliedForce(body.name) for body in model.bodies if not body.kinematic) if elements else ()


class ElementInputs:
    """Elements and drive schedules that write to the inputs of a simulation before every step."""

    def __init__(
        self,
        elements: Elements,
        inputs: Inputs,
        step: float,
        drives: Sequence[Drive] = (),
        schedules: Sequence[DriveSchedule] = (),
    ) -> None:
        """Prepare; the last applied forces of the inputs are those of `placeholder_forces`."""
        check_stiffness(elements.model, elements.springs, elements.bushings, step)
        check_schedules(elements.model, drives, schedules)
        self._elements, self._inputs, self._step = elements, inputs, step
        count = len(placeholder_forces(elements.model, elements.elements))
        self._own = slice(len(inputs.applied_forces.body) - count, len(inputs.applied_forces.body))
        drive_of = {drive.coordinate: drive for drive in drives}
        index = {c.name: i for i, c in enumerate(elements.model.coordinates)}
        self._schedules = [(one, index[one.coordinate], drive_of[one.coordinate]) for one in schedules]

    def write(self, state: State) -> None:
        """Write the forces and drives of the step that starts now."""
        time = float(state.clock[0]) * self._step
        if self._own.stop > self._own.start:
            wrench = self._elements.wrenches(time, state.position, rotation_matrix(state.quaternion), state.twist)
            applied = self._inputs.applied_forces
            own = wrench[applied.body[self._own]]
            applied.force[self._own], applied.torque[self._own] = own[:, :3], own[:, 3:]
        drives, h = self._inputs.drives, self._step
        for schedule, i, drive in self._schedules:
            if schedule.target:
                now, later = (float(np.interp(t, schedule.time, schedule.target)) for t in (time, time + h))
                drives.target[i], drives.velocity[i] = now, (later - now) / h
            if schedule.offset:
                drives.rest[i] = h * float(np.interp(time, schedule.time, schedule.offset))
            if schedule.stiffness or schedule.damping:
                stiffness, damping = (
                    float(np.interp(time, schedule.time, values)) if values else constant
                    for values, constant in ((schedule.stiffness, drive.stiffness), (schedule.damping, drive.damping))
                )
                spring = h * stiffness + damping
                drives.alpha[i] = h * stiffness / spring if spring > 0.0 else 0.0
                drives.beta[i] = 1.0 / (h * spring) if spring > 0.0 else np.inf


def check_schedules(model: Model, drives: Sequence[Drive], schedules: Sequence[DriveSchedule]) -> None:
    """Raise SettingsError if a schedule has no drive, or its values are not valid."""
    driven = {drive.coordinate: drive for drive in drives}
    for schedule in schedules:
        where = describe(schedule)
        if schedule.coordinate not in driven:
            raise SettingsError(f"{where}: This coordinate has no drive. Add a drive for it.")
        names = ("target", "stiffness", "damping", "offset")
        check_times(where, schedule.time, {name: getattr(schedule, name) for name in names})
        for name in names:
            values = np.array(getattr(schedule, name), float)
            if not np.isfinite(values).all() or (name in ("stiffness", "damping") and (values < 0.0).any()):
                raise SettingsError(f"{where}: {name} has values that are negative or not finite. Correct them.")
        if driven[schedule.coordinate].stiffness == np.inf and (schedule.stiffness or schedule.damping):
            raise SettingsError(f"{where}: Its drive has infinite stiffness. Give the drive a finite one.")
    named = [schedule.coordinate for schedule in schedules]
    for name in named:
        if named.count(name) > 1:
            raise SettingsError(f"drive schedule of {name!r}: There are two. Remove one.")


def check_stiffness(model: Model, springs: Sequence[Spring], bushings: Sequence[Bushing], step: float) -> None:
    """Raise SettingsError if a spring or damper is too stiff for the step, as if its bodies were free."""
    bodies = {body.name: body for body in model.bodies if not body.kinematic}

    def mobility(name: str, point: Sequence[float]) -> tuple[float, float]:
        """Return the largest velocity per unit impulse at a point, and angular velocity per unit angular impulse."""
        if name not in bodies:
            return 0.0, 0.0
        body = bodies[name]
        inverse = 1.0 / float(np.linalg.eigvalsh(np.array(body.inertia))[0])
        arm = np.array(point, float) - body.center_of_mass
        return 1.0 / body.mass + float(arm @ arm) * inverse, inverse

    elements: tuple[Spring | Bushing, ...] = (*springs, *bushings)
    for element in elements:
        if isinstance(element, Spring):
            linear = mobility(element.body, element.point)[0] + mobility(element.to, element.to_point)[0]
            table = np.array(element.force_length, float).reshape(-1, 2)
            slopes = np.diff(table[:, 1]) / np.diff(table[:, 0])
            stiffness = max(element.stiffness, float(np.abs(slopes).max(initial=0.0)))
            pairs = [(step**2 * stiffness * linear, "stiffness"), (step * element.damping * linear, "damping")]
        else:
            one, two = mobility(element.body, element.frame.position), mobility(element.to, element.to_frame.position)
            linear, angular = one[0] + two[0], one[1] + two[1]
            pairs = [
                (step**2 * max(element.stiffness) * linear, "stiffness"),
                (step * max(element.damping) * linear, "damping"),
                (step**2 * max(element.rotational_stiffness) * angular, "rotational_stiffness"),
                (step * max(element.rotational_damping) * angular, "rotational_damping"),
            ]
        for ratio, what in pairs:
            if ratio > MAX_STIFFNESS_RATIO:
                power = 1.0 if "damping" in what else 0.5
                raise SettingsError(
                    f"{describe(element)}: {what} is too large for the step of {step:g} s on bodies this light "
                    f"(ratio {ratio:.3g}, allowed: {MAX_STIFFNESS_RATIO:g}). Use a step of "
                    f"{0.99 * step / ratio**power:.2g} s or less, or a soft joint of the model."
                )


def _from_table(element: ForceTable, time: float) -> Floats:
    value = np.zeros(6)
    if element.time[0] <= time <= element.time[-1]:
        for start, rows in ((0, element.force), (3, element.torque)):
            if rows:
                table = np.array(rows, float)
                value[start : start + 3] = [np.interp(time, element.time, table[:, n]) for n in range(3)]
    return value


def _from_function(
    element: ForceFunction, time: float, point: Floats, rotation: Floats, twist: Floats, arm: Floats
) -> Floats:
    body = BodyState(time, point, rotation.copy(), twist[:3] + np.cross(twist[3:], arm), twist[3:].copy())
    given = np.asarray(element.function(body), float).ravel()
    if given.shape not in ((3,), (6,)) or not np.isfinite(given).all():
        raise SettingsError(
            f"force on {element.body!r}: The function returned {given} at {time:g} s. Return a finite force (3 "
            "numbers), or force and torque (6)."
        )
    return np.concatenate([given, np.zeros(6 - len(given))])

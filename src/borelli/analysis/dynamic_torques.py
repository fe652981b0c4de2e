"""Stepped inverse dynamics of a whole motion: torques, ground forces, residuals, work, all read from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.derivatives import Derivatives, derivatives
from borelli.analysis.loads import FEET, Loads, foot_bodies, plate_loads
from borelli.analysis.marching import Marcher, Trace
from borelli.analysis.motion import AXES, Motion, to_model_axes
from borelli.analysis.newton import (
    Moved,
    carried_wrenches,
    coordinate_forces,
    cross,
    inertial_wrenches,
    move,
    reactions,
    weight_wrenches,
)
from borelli.analysis.pose import root_coordinates
from borelli.analysis.stepped import Stepper, drive_forces, prepare, residual_wrench
from borelli.analysis.stepped_ground import carried_by, stand_on_soles
from borelli.analysis.stepped_work import row_work
from borelli.analysis.support import tell_support
from borelli.analysis.torques import Torques
from borelli.analysis.trading import trade_residual
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import coupled, coupled_forces
from borelli.physics.control import Residual
from borelli.physics.measure import coordinates_of, rotations_of
from borelli.physics.tables import Compiled
from borelli.recording.recording import LAB, Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

SOURCES = ("contacts", "plates")


@dataclass(frozen=True)
class SteppedTorques(Torques):
    """Torques with all that is needed to step them again.

    Attributes:
        stepper: The model as it was stepped, with its drives, residuals and pushes.
        trace: What every step left: poses, impulses and work of every row.
    """

    stepper: Stepper | None = None
    trace: Trace | None = None

    @property
    def deviation_rms(self) -> float:
        """Root mean square deviation of turning coordinates from the motion asked for [rad]."""
        turning = self.data["coordinate_units"].values == "rad"
        return float(np.sqrt(np.mean(self.data["deviation"].values[:, turning] ** 2)))


def stepped_torques(
    motion: Motion,
    *,
    forces: str | Recording | Loads | None = None,
    filter: str = "default",
    cutoff: float | None = None,
    residual: Sequence[Residual] | float | None = None,
    limit: Mapping[str, float] | float = inf,
    tolerance: Mapping[str, float] | float = 0.0,
    trade: tuple[float, float] | None = None,
    ground: float | None = 0.0,
    feet: Mapping[str, str] | None = None,
) -> SteppedTorques:
    """The torques with which the model makes a motion in our own simulation, one step a frame.

    Args:
        motion: Of a model with masses.
        forces: What the ground supplies: None: nothing; "contacts": what the model's feet do on its ground in the
            simulation; "plates": what the plates of the motion's recording measured; or a recording or loads.
        filter: Of the coordinates: "default", "opensim" or "none", as in `derivatives`.
        cutoff: Of the filter [Hz].
        residual: Largest force and torque that hold the root body on its path although nature supplies none
            [N, N m]; or rows of one's own choice: body, lab axis, limit. By default unlimited; with contacts a spring
            of 2000 N m/rad about each axis that gives 100 N m at most, and no force.
        limit: Largest torque or force of a drive [N m or N], for all or by coordinate.
        tolerance: Deviation [rad or m] of a coordinate within which its drive does nothing, for all or by coordinate.
        trade: Deviation that is allowed to lower the residual beforehand: of the root's place [m] and of the trunk's
            angles [rad]; for measured forces. See `trade_residual`.
        ground: Height of level ground [m] that contacts stand on, soles made to fit it (`stand_on_soles`); None: the
            model's own shapes on its own ground.
        feet: Bodies of the "right" and "left" foot, where their names do not tell.

    Raises:
        SettingsError: unknown source of forces, or there is none.
        DivergedError: a step has no solution.
    """
    contacts, loads = forces == "contacts", _loads(motion, forces, feet)
    traded: tuple[Note, ...] = ()
    asked = motion
    if trade is not None:
        if contacts:
            raise SettingsError("trade lowers the residual of measured forces; contacts have their own: see residual=")
        found = trade_residual(motion, loads, shift=trade[0], turn=trade[1], filter=filter, cutoff=cutoff)
        asked, filter, traded = found.motion, "none", found.notes
    curves = derivatives(asked, filter=filter, cutoff=cutoff)
    notes = [*traded, *curves.notes, *(() if loads is None else loads.notes)]
    if contacts:
        model = curves.model
        if ground is not None:
            model = stand_on_soles(model, curves.coordinates, curves.rate, ground, feet)
            notes.append(Note("soles were laid flat on the ground where the feet stand still", "guess", "ground=None"))
        curves = replace(curves, model=model)
    stepper = prepare(curves, loads, contacts, residual, limit, tolerance)
    trace = Marcher(stepper.compiled).march(stepper.start(), stepper.inputs(), stepper.course(), stepper.frames)
    settings = {
        "method": "stepped", **curves.settings, "step_s": stepper.compiled.step,
        "residuals": [f"{r.body} {'force' if r.axis < 3 else 'torque'} {'xyz'[r.axis % 3]} <= {r.limit:g}"
                      for r in stepper.residuals],
    }  # fmt: skip
    source = "contacts" if contacts else ("none" if loads is None else "plates")
    data = to_dataset(curves, stepper, trace, source, foot_bodies(motion.model, feet) if contacts or loads else None)
    data.attrs["rate_hz"] = motion.rate
    if loads is not None and loads.source == "plates":
        notes += tell_support(data, asked, _needed(curves), loads, curves.settings["cutoff_hz"])
    if contacts:
        sides = foot_bodies(motion.model, feet)
        force, point, moment = (
            np.asarray(data[f"foot_{name}"].values) for name in ("force", "center_of_pressure", "free_moment")
        )
        on = tuple(sides[side] for side in FEET)
        loads = Loads(FEET, on, curves.time, force, point, moment, "contacts")
    return SteppedTorques(asked, data, settings, tuple(notes), None, loads, stepper, trace)


def _loads(motion: Motion, forces: str | Recording | Loads | None, feet: Mapping[str, str] | None) -> Loads | None:
    if forces is None or isinstance(forces, Loads) or forces == "contacts":
        return forces if isinstance(forces, Loads) else None
    if isinstance(forces, Recording):
        return plate_loads(motion.model, forces, feet)
    if forces not in SOURCES:
        raise SettingsError(unknown_name("source of forces", str(forces), SOURCES))
    if motion.recording is None:
        raise SettingsError("the motion has no recording, so there are no plates: give forces a recording or loads")
    return plate_loads(motion.model, motion.recording, feet)


def _needed(curves: Derivatives) -> Array:
    """(frames,) m (g + a) upward [N]: what must carry the body."""
    moved = move(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    force = (inertial_wrenches(moved) + weight_wrenches(moved))[:, 3:].sum(axis=0)
    return np.asarray((force.T @ to_model_axes(curves.model))[:, 2])


def to_dataset(
    curves: Derivatives, stepper: Stepper, trace: Trace, source: str, feet: Mapping[str, str] | None
) -> Dataset:
    """What the steps show, by frame, in lab axes."""
    import xarray as xr

    model, compiled = curves.model, stepper.compiled
    turn = to_model_axes(model)
    asked = stepper.coordinates[1:-1]
    # coupled coordinates are where those they follow put them
    made = coupled(model, coordinates_of(compiled, trace.pose[:-1], trace.twist[:-1])[0])
    turning = np.array([c.rotational for c in model.coordinates])
    deviation = made - asked
    deviation[:, turning] = (deviation[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
    torque = drive_forces(compiled, trace)
    residual = residual_wrench(stepper, trace)
    outside = outside_wrenches(stepper, trace)
    moved = move(model, asked + deviation, curves.speeds, curves.accelerations)
    inertial, weight = inertia_of(compiled, trace), weight_wrenches(moved)
    ground = -about_origin(trace, outside).transpose(1, 2, 0)
    carried = carried_wrenches(moved, np.stack([inertial, weight, ground]))
    by_gravity, by_ground = coordinate_forces(moved, carried[1:])
    if model.couplings:
        by_gravity, by_ground = (coupled_forces(model, asked, part) for part in (by_gravity, by_ground))
    torque += residual_shares(stepper, moved, residual)
    known = np.isin([c.name for c in model.coordinates], [d.coordinate for d in stepper.drives])
    known |= np.isin([c.name for c in model.coordinates], root_coordinates(model))
    by_gravity, by_ground = by_gravity * known, by_ground * known
    force, moment = reactions(moved, carried.sum(axis=0))
    joints = {joint.child: joint.name for joint in model.joints if not joint.closes_loop}
    work = row_work(stepper, trace, outside)
    by_coordinate, by_axis, by_time, lab = ("time", "coordinate"), ("time", "axis"), ("time",), {"frame": LAB}
    rate = "rad or m, per second"
    variables: dict[str, Any] = {
        "coordinates": (by_coordinate, asked + deviation, {"units": "rad or m: see coordinate_units"}),
        "deviation": (by_coordinate, deviation, {"units": "rad or m: see coordinate_units"}),
        "speeds": (by_coordinate, curves.speeds, {"units": rate}),
        "accelerations": (by_coordinate, curves.accelerations, {"units": f"{rate} squared"}),
        "torque": (by_coordinate, torque, {"units": "N m or N"}),
        "torque_inertial": (by_coordinate, torque - by_gravity - by_ground, {"units": "N m or N"}),
        "torque_gravity": (by_coordinate, by_gravity, {"units": "N m or N"}),
        "torque_ground": (by_coordinate, by_ground, {"units": "N m or N"}),
        "residual_force": (by_axis, residual[:, :3] @ turn, {"units": "N"} | lab),
        "residual_torque": (by_axis, residual[:, 3:] @ turn, {"units": "N m"} | lab),
        "reaction_force": (("time", "joint", "axis"), force.transpose(2, 0, 1) @ turn, {"units": "N"} | lab),
        "reaction_moment": (("time", "joint", "axis"), moment.transpose(2, 0, 1) @ turn, {"units": "N m"} | lab),
        "row_power": (by_coordinate, work.drive, {"units": "W", "of": "a ball's along the child's axes"}),
        "ground_power": (by_time, work.ground, {"units": "W"}),
        "residual_power": (by_time, work.residual, {"units": "W"}),
        "numerical_power": (by_time, work.numerical, {"units": "W"}),
        "mechanical_energy": (by_time, work.energy, {"units": "J"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", curves.time, {"units": "s"}),
        "coordinate": [c.name for c in model.coordinates],
        "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
        "joint": [joints[model.bodies[link.child].name] for link in moved.links],
        "axis": list(AXES),
    }
    if feet is not None:
        coords["foot"] = list(FEET)
        found = foot_loads(stepper, trace, outside, feet, turn)
        for name, (values, units) in zip(
            ("foot_force", "foot_center_of_pressure", "foot_free_moment"), found, strict=True
        ):
            variables[name] = (("time", "foot", "axis"), values, {"units": units} | lab)
    attrs = {
        "method": "stepped", "contact_source": source, "root": stepper.root, "mass_kg": float(model.mass),
        "numerical_percent": work.numerical_percent,
    }  # fmt: skip
    return xr.Dataset(variables, coords, attrs)


def residual_shares(stepper: Stepper, moved: Moved, residual: Array) -> Array:
    """(frames, coordinates) generalized forces of the residual (frames, 6), at the root's coordinates."""
    wrench = np.zeros((len(moved.position), 6, len(residual)))
    if stepper.root:
        root = stepper.compiled.body_index[stepper.root]
        force = residual[:, :3].T
        wrench[root, :3], wrench[root, 3:] = residual[:, 3:].T + cross(moved.position[root], force), force
    return coordinate_forces(moved, wrench)


def outside_wrenches(stepper: Stepper, trace: Trace) -> Array:
    """(steps, bodies, 6) force and moment about the centre of mass from contacts and pushes, model axes."""
    wrench = trace.contact[:, :, :6] / stepper.compiled.step
    if stepper.push is not None:
        rotation = rotations_of(trace.pose[:-1, :, 3:])
        for i, name in enumerate(stepper.pushed):
            body, push = stepper.compiled.body_index[name], stepper.push[:, i]
            arm = np.einsum("fij,fj->fi", rotation[:, body], push[:, 6:])
            wrench[:, body, :3] += push[:, :3]
            wrench[:, body, 3:] += push[:, 3:6] + np.cross(arm, push[:, :3])
    return wrench


def about_origin(trace: Trace, wrench: Array) -> Array:
    """(steps, bodies, 6) moment about the world's origin and force, of forces and moments about centres of mass."""
    force, moment = wrench[..., :3], wrench[..., 3:]
    return np.concatenate([moment + np.cross(trace.pose[:-1, :, :3], force), force], axis=-1)


def inertia_of(compiled: Compiled, trace: Trace) -> Array:
    """(bodies, 6, steps) moment about the world's origin and force that made the velocities change so."""
    bodies, h = compiled.tables.bodies, compiled.step
    change = np.diff(trace.twist, axis=0) / h
    spin = 0.5 * (trace.twist[1:, :, 3:] + trace.twist[:-1, :, 3:])
    rotation = rotations_of(trace.pose[:-1, :, 3:])

    def times_inertia(vector: Array) -> Array:
        local = np.einsum("fbji,fbj->fbi", rotation, vector)
        return np.asarray(np.einsum("fbij,fbj->fbi", rotation, np.einsum("bij,fbj->fbi", bodies.inertia, local)))

    force = bodies.mass[:, None] * change[..., :3]
    moment = times_inertia(change[..., 3:]) + np.cross(spin, times_inertia(spin))
    return about_origin(trace, np.concatenate([force, moment], axis=-1)).transpose(1, 2, 0)


def foot_loads(
    stepper: Stepper, trace: Trace, outside: Array, feet: Mapping[str, str], turn: Array
) -> tuple[tuple[Array, str], ...]:
    """Force, centre of pressure and free moment (frames, feet, 3) of each foot with what hangs on it, lab axes.

    The centre of pressure is where the normal impulses of contacts act in the mean, or where a measured force acts.
    """
    model, index = stepper.compiled.model, stepper.compiled.body_index
    origin = about_origin(trace, outside)
    force, center, free = (np.zeros((len(outside), len(FEET), 3)) for _ in range(3))
    center[:] = np.nan
    for f, side in enumerate(FEET):
        body = feet[side]
        own = [index[body], *(index[name] for name in carried_by(model, body))]
        wrench = origin[:, own].sum(axis=1)
        force[:, f] = wrench[:, 3:] @ turn
        if stepper.push is not None:
            push = stepper.push[:, stepper.pushed.index(body)]
            rotation = rotations_of(trace.pose[:-1, index[body], 3:])
            point = trace.pose[:-1, index[body], :3] + np.einsum("fij,fj->fi", rotation, push[:, 6:])
            loaded = np.linalg.norm(push[:, :3], axis=1) > 0.0
        else:
            normal = trace.contact[:, own, 9].sum(axis=1)
            loaded = normal > 0.0
            point = trace.contact[:, own, 6:9].sum(axis=1) / np.where(loaded, normal, 1.0)[:, None]
        center[loaded, f] = point[loaded] @ turn
        moment = wrench[:, :3] - np.cross(point, wrench[:, 3:])
        free[loaded, f] = moment[loaded] @ turn
    return (force, "N"), (center, "m"), (free, "N m")

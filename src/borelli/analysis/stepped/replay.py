"""Replay of a motion, or of torques, in the simulation.

*Kinematic* sets the poses of the motion. *Open* loop applies the torques without feedback: errors of rounding, friction
and contact grow, and the body drifts and finally falls. *Closed* loop adds springs to the target angles. The tracking
error of each is reported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.motion import Motion, coordinate_labels, make_motion, to_model_axes
from borelli.analysis.stepped.rollout import AS_GIVEN, EACH_BODY, WITH_ROOT, Rollout, StepRecord, make_step_record
from borelli.analysis.stepped.stepped_torques import SteppedTorques
from borelli.analysis.stepped.stepper import Stepper, coordinate_errors, drive_axis_forces, drive_forces
from borelli.errors import DivergedError, SettingsError, unknown_name
from borelli.model.kinematics import coupled_coordinates, root_coordinates
from borelli.numerics.quaternions import rotation_matrix
from borelli.numerics.vectors import Array
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.inputs import Drive

if TYPE_CHECKING:
    from xarray import Dataset

LOOPS = ("kinematic", "open", "closed")
STIFFNESS, DAMPING = 1000.0, 20.0
"""Springs of a closed loop [N m/rad, N m s/rad]."""
PASSES_PER_STEP = 3
"""Solves per step of an open-loop replay, so that gyroscopic terms are evaluated midway."""


@dataclass(frozen=True)
class Replay:
    """A replayed motion."""

    motion: Motion
    data: Dataset
    """By time: `coordinate_error` [rad or m], `root_tracking_error` [m], `feedback` [N m or N]."""
    loop: str
    """"kinematic", "open" or "closed"."""

    @property
    def rms_error(self) -> float:
        """RMS tracking error of rotational coordinates over all frames [rad]."""
        rotational = self.data["coordinate_units"].values == "rad"
        return float(np.sqrt(np.nanmean(self.data["coordinate_error"].values[:, rotational] ** 2)))


def replay(
    torques: SteppedTorques, *, loop: str = "open", stiffness: float = STIFFNESS, damping: float = DAMPING
) -> Replay:
    """Replay torques in the simulation they were computed in, in one of the `LOOPS`.

    Contacts act as they occur; measured forces and residuals are applied as recorded, at the present feet and root.
    Stiffness [N m/rad or N/m] and damping [N m s/rad or N s/m] are those of the springs of a closed loop.
    """
    if loop not in LOOPS:
        raise SettingsError(unknown_name("loop", loop, LOOPS))
    stepper, record = torques.stepper, torques.record
    if stepper is None or record is None:
        raise SettingsError("replay: These torques have no step record. Compute them with stepped_torques.")
    if loop == "kinematic":
        return _make_replay(torques, stepper, stepper.poses[1:-1], np.zeros_like(stepper.coordinates[1:-1]), loop)
    applied = drive_forces(stepper.compiled, record)
    values = coordinates_and_velocities(stepper.compiled, record.pose[:-1], record.twist[:-1])[0]
    drive_force = drive_axis_forces(stepper.compiled, values, applied)
    gains = {"stiffness": stiffness, "damping": damping} if loop == "closed" else {}
    root_named = root_coordinates(stepper.compiled.model)
    drives = tuple(
        Drive(d.coordinate, max_force=d.max_force, **({} if d.coordinate in root_named else gains))
        for d in stepper.drives
    )
    again, target_frame = _without_residuals(stepper, record, drives), EACH_BODY
    if loop == "closed":
        target_frame = WITH_ROOT if stepper.root else AS_GIVEN
    root = again.compiled.body_index.get(again.root, 0)
    feedback, replayed = np.zeros_like(drive_force), make_step_record(again.compiled, again.frames)
    passes = PASSES_PER_STEP if loop == "open" else 1
    step_inputs = again.step_inputs(drive_force, record.pose[:-1])
    # a body that tumbles ever faster ends the replay: later frames are NaN
    with suppress(DivergedError):
        Rollout(again.compiled).run(
            again.initial_state(), again.inputs(), step_inputs, again.frames, passes=passes, target_frame=target_frame,
            root=root, record=replayed,
        )  # fmt: skip
    poses = replayed.pose[:-1]
    poses[~poses[:, 0, 3:].any(axis=-1)] = np.nan
    if loop == "closed":
        driven = again.compiled.tables.joints.drive_row >= 0
        feedback = (drive_forces(again.compiled, replayed) - applied) * driven
    return _make_replay(torques, stepper, poses, feedback, loop)


def _without_residuals(stepper: Stepper, record: StepRecord, drives: tuple[Drive, ...]) -> Stepper:
    """Replace the residual rows of a stepper by applied forces."""
    tables, h = stepper.compiled.tables.residuals, stepper.compiled.step
    bodies = sorted(set(map(int, tables.body)))
    force = np.zeros((stepper.frames, len(bodies), 9))
    for row, body, axis in zip(tables.row, tables.body, tables.axis, strict=True):
        force[:, bodies.index(int(body)), axis] += record.impulse[:, row] / h
    names = tuple(stepper.compiled.model.bodies[b].name for b in bodies)
    old = stepper.applied_force if stepper.applied_force is not None else np.zeros((stepper.frames, 0, 9))
    model, settings = stepper.compiled.model, stepper.compiled.settings
    compiled = compile_model(model, step=h, settings=settings, drives=drives, balls_as_one=True)
    return replace(
        stepper, compiled=compiled, drives=drives, residuals=(), applied_force=np.concatenate([old, force], axis=1),
        loaded_bodies=(*stepper.loaded_bodies, *names),
    )  # fmt: skip


def _make_replay(torques: SteppedTorques, stepper: Stepper, poses: Array, feedback: Array, loop: str) -> Replay:
    import xarray as xr

    model, each = stepper.compiled.model, slice(None, None, stepper.substeps)
    poses, feedback = poses[each], feedback[each]
    values = coupled_coordinates(
        model, coordinates_and_velocities(stepper.compiled, poses, np.zeros((*poses.shape[:2], 6)))[0]
    )
    target = stepper.coordinates[1:-1][each]
    error = coordinate_errors(model, values, target)
    at = stepper.compiled.body_index.get(stepper.root, 0)
    local = stepper.compiled.center_of_mass[at]
    root, path = (p[:, at, :3] - rotation_matrix(p[:, at, 3:]) @ local for p in (poses, stepper.poses[1:-1][each]))
    away = (root - path) @ to_model_axes(model)
    time = torques.data["time"].values
    by_coordinate = ("time", "coordinate")
    data = xr.Dataset(
        {
            "coordinate_error": (by_coordinate, error, {"units": "rad or m: see coordinate_units"}),
            "feedback": (by_coordinate, feedback, {"units": "N m or N"}),
            "root_tracking_error": ("time", np.linalg.norm(away, axis=1), {"units": "m"}),
            "root_drop": ("time", -away[:, 2], {"units": "m"}),
        },
        {"time": ("time", time, {"units": "s"}), **coordinate_labels(model)},
        {"loop": loop},
    )
    motion = make_motion(
        torques.motion.model, target + error, time, torques.motion.rate, settings={"method": f"{loop} replay"}
    )
    return Replay(motion, data, loop)

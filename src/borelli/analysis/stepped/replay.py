"""Forward passes: the motion that poses, or torques, make when they are played back.

*Kinematic* puts the bodies where the motion says. *Open* applies the saved torques and looks at nothing: what rounding,
friction and contact add grows, and the body drifts and in the end falls. *Closed* adds springs to the angles asked for.
How far each strays is reported, not hidden.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion, make_motion, to_model_axes
from borelli.analysis.stepped.rollout import AS_GIVEN, EACH_BODY, WITH_ROOT, Rollout, Trace, make_step_record
from borelli.analysis.stepped.stepped_torques import SteppedTorques
from borelli.analysis.stepped.stepper import Stepper, drive_forces, drive_axis_forces
from borelli.errors import DivergedError, SettingsError, unknown_name
from borelli.model.kinematics import coupled_coordinates
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities, rotation_matrices
from borelli.physics.inputs import Drive

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

LOOPS = ("kinematic", "open", "closed")
STIFFNESS, DAMPING = 1000.0, 20.0
"""[N m/rad, N m s/rad] of the springs of a closed loop."""
PASSES = 3
"""Times each step of a replay is made, so that gyroscopic terms are midway wherever the body has gone."""
FALLEN = 0.25
"""[m] the root is lower than it should be, when the body counts as fallen."""


@dataclass(frozen=True)
class Replay:
    """A motion played back.

    Attributes:
        motion: What came of it.
        data: By time: `deviation` of every coordinate [rad or m], `root_deviation` [m], `feedback` [N m or N].
        loop: "kinematic", "open" or "closed".
    """

    motion: Motion
    data: Dataset
    loop: str

    @property
    def deviation_rms(self) -> float:
        """Of turning coordinates [rad], root mean square over all frames."""
        turning = self.data["coordinate_units"].values == "rad"
        return float(np.sqrt(np.nanmean(self.data["deviation"].values[:, turning] ** 2)))

    @property
    def root_deviation(self) -> float:
        """Largest distance of the root from its path [m]."""
        return float(np.nanmax(self.data["root_deviation"].values))

    def time_within(self, angle: float) -> float:
        """How long [s] from the start all turning coordinates stay within an angle [rad] of the motion."""
        turning = self.data["coordinate_units"].values == "rad"
        worst = np.abs(self.data["deviation"].values[:, turning]).max(axis=1)
        astray = np.flatnonzero(~(worst <= angle))
        time = self.data["time"].values
        return float(time[astray[0]] - time[0]) if len(astray) else float(time[-1] - time[0])

    @property
    def fallen(self) -> float | None:
        """The time [s] at which the root is 0.25 m lower than asked for; None: it never is."""
        low = np.flatnonzero(self.data["root_drop"].values > FALLEN)
        return float(self.data["time"].values[low[0]]) if len(low) else None


def replay(
    torques: SteppedTorques,
    *,
    loop: str = "open",
    stiffness: float = STIFFNESS,
    damping: float = DAMPING,
) -> Replay:
    """The motion that torques make in the simulation they were found in.

    Contacts act as they come; measured forces and residuals are applied as they were, where feet and root now are.

    Args:
        torques: From `stepped_torques`.
        loop: "kinematic", "open" or "closed".
        stiffness: Of the springs to the angles asked for, in a closed loop [N m/rad or N/m].
        damping: Of their dampers [N m s/rad or N s/m].
    """
    if loop not in LOOPS:
        raise SettingsError(unknown_name("loop", loop, LOOPS))
    stepper, trace = torques.stepper, torques.trace
    if stepper is None or trace is None:
        raise SettingsError("these torques were not stepped, so they cannot be replayed: use stepped_torques")
    if loop == "kinematic":
        return _told(torques, stepper, stepper.poses[1:-1], np.zeros_like(stepper.coordinates[1:-1]), loop)
    applied = drive_forces(stepper.compiled, trace)
    rest = drive_axis_forces(
        stepper.compiled,
        coordinates_and_velocities(stepper.compiled, trace.pose[:-1], trace.twist[:-1])[0],
        applied,
    )
    gains = {"stiffness": stiffness, "damping": damping} if loop == "closed" else {}
    root_named = root_coordinates(stepper.compiled.model)
    drives = tuple(
        Drive(d.coordinate, max_force=d.max_force, **({} if d.coordinate in root_named else gains))
        for d in stepper.drives
    )
    again, lead = _without_residuals(stepper, trace, drives), EACH_BODY
    if loop == "closed":
        lead = WITH_ROOT if stepper.root else AS_GIVEN
    root = again.compiled.body_index.get(again.root, 0)
    feedback, made = np.zeros_like(rest), make_step_record(again.compiled, again.frames)
    passes = PASSES if loop == "open" else 1
    course = again.course(rest, trace.pose[:-1])
    # a body that tumbles ever faster ends the replay: what came before is told, the rest is not a number
    with suppress(DivergedError):
        Rollout(again.compiled).march(
            again.start(), again.inputs(), course, again.frames, passes=passes, lead=lead, root=root, trace=made
        )
    poses = made.pose[:-1]
    poses[~poses[:, 0, 3:].any(axis=-1)] = np.nan
    if loop == "closed":
        driven = again.compiled.tables.joints.drive_row >= 0
        feedback = (drive_forces(again.compiled, made) - applied) * driven
    return _told(torques, stepper, poses, feedback, loop)


def _without_residuals(stepper: Stepper, trace: Trace, drives: tuple[Drive, ...]) -> Stepper:
    """The stepper with the forces of its residual rows as pushes in their place."""
    tables, h = stepper.compiled.tables.residuals, stepper.compiled.step
    bodies = sorted(set(map(int, tables.body)))
    push = np.zeros((stepper.frames, len(bodies), 9))
    for row, body, axis in zip(tables.row, tables.body, tables.axis, strict=True):
        push[:, bodies.index(int(body)), axis] += trace.impulse[:, row] / h
    names = tuple(stepper.compiled.model.bodies[b].name for b in bodies)
    old = stepper.push if stepper.push is not None else np.zeros((stepper.frames, 0, 9))
    compiled = compile_model(stepper.compiled.model, step=h, settings=stepper.compiled.settings, drives=drives)
    return replace(
        stepper, compiled=compiled, drives=drives, residuals=(), push=np.concatenate([old, push], axis=1),
        pushed=(*stepper.pushed, *names),
    )  # fmt: skip


def _told(torques: SteppedTorques, stepper: Stepper, poses: Array, feedback: Array, loop: str) -> Replay:
    import xarray as xr

    model, each = stepper.compiled.model, slice(None, None, stepper.substeps)
    poses, feedback = poses[each], feedback[each]
    made = coupled_coordinates(model, coordinates_and_velocities(stepper.compiled, poses, np.zeros((*poses.shape[:2], 6)))[0])
    asked = stepper.coordinates[1:-1][each]
    turning = np.array([c.rotational for c in model.coordinates])
    deviation = made - asked
    deviation[:, turning] = (deviation[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
    at = stepper.compiled.body_index.get(stepper.root, 0)
    local = stepper.compiled.center_of_mass[at]
    where, path = (p[:, at, :3] - rotation_matrices(p[:, at, 3:]) @ local for p in (poses, stepper.poses[1:-1][each]))
    away = (where - path) @ to_model_axes(model)
    time = torques.data["time"].values
    by_coordinate = ("time", "coordinate")
    data = xr.Dataset(
        {
            "deviation": (by_coordinate, deviation, {"units": "rad or m: see coordinate_units"}),
            "feedback": (by_coordinate, feedback, {"units": "N m or N"}),
            "root_deviation": ("time", np.linalg.norm(away, axis=1), {"units": "m"}),
            "root_drop": ("time", -away[:, 2], {"units": "m"}),
        },
        {
            "time": ("time", time, {"units": "s"}),
            "coordinate": [c.name for c in model.coordinates],
            "coordinate_units": ("coordinate", ["rad" if t else "m" for t in turning]),
        },
        {"loop": loop},
    )
    motion = make_motion(
        torques.motion.model, asked + deviation, time, torques.motion.rate, settings={"method": f"{loop} replay"}
    )
    return Replay(motion, data, loop)

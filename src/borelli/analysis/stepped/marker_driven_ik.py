"""The dynamic pose (seed 004): the body is dragged by its markers through physics steps, one or several a frame.

Each marker is a point that moves as recorded; a soft row holds its place on the body to it, in position and velocity.
A marker acts while it is seen in this frame and the next and moves slower than 10 m/s. Weak drives of limited force
draw to the rest pose, stops hold, the ground carries if asked to. Between markers that say nothing the body goes on by
its inertia; the price is a lag, which `find_lag` measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import (
    MIN_VISIBLE_MARKERS,
    MARKER_STIFFNESS,
    MAX_ITERATIONS,
    IkProblem,
    find_initial_pose,
    motion_from_coordinates,
)
from borelli.analysis.motion import Motion
from borelli.analysis.stepped.rollout import Rollout, make_step_inputs
from borelli.analysis.stepped.soles_and_ground import with_ground_at
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.analysis.tree_kernels.newton_ik import solve_ik_frames
from borelli.errors import SettingsError
from borelli.model.model import Model, Softness
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.inputs import Drive
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import State, make_inputs, make_state
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]

__all__ = ["Drag", "SteppedTorques", "marker_driven_ik", "find_lag", "stepped_torques"]

MARKER_SOFTNESS = Softness(erp=0.2, cfm=1e-4)
"""Of a marker of 1000 N/m at one step a frame, in ODE's numbers (seed 004, pose)."""
REST_TORQUE = 10.0
"""[N m or N] with which a drive draws to the rest pose at most."""
MARKER_DRIVEN_OPTIONS = ("substeps", "ground", "softness", "rest_torque")
"""What `inverse_kinematics` hands on."""
LONGEST_LAG = 0.1
"""[s] that is looked for."""


@dataclass(frozen=True)
class Drag:
    """A body ready to be dragged."""

    compiled: CompiledModel
    drives: tuple[Drive, ...]
    betas: Array
    """(markers,) slope of a marker's rows where its weight is 1 N/m [N/m s/kg]."""

    def read(self, pose: Array, twist: Array, near: Array) -> Array:
        """Coordinates (frames, coordinates) of poses, full turns counted from those near the first."""
        joints = self.compiled.tables.joints._replace(default=near)
        tables = self.compiled.tables._replace(joints=joints)
        return coordinates_and_velocities(self.compiled._replace(tables=tables), pose, twist)[0]


def marker_driven_ik(
    problem: IkProblem,
    recording: Recording,
    *,
    substeps: int = 1,
    ground: bool | float = False,
    softness: Softness = MARKER_SOFTNESS,
    rest_torque: float = REST_TORQUE,
) -> Motion:
    """The motion of the body dragged by its markers.

    Args:
        problem: The model, its markers and where they were seen.
        recording: What it comes from.
        substeps: Physics steps a frame.
        ground: Whether it stands on level ground; a number is that ground's height [m], True is 0.
        softness: Of a marker of 1000 N/m; others are softer or stiffer as their weights say.
        rest_torque: Largest torque [N m] or force [N] of a drive to the rest pose.
    """
    if not 1 <= substeps <= 1000:
        raise SettingsError(f"substeps is {substeps}; allowed: 1 to 1000")
    seen = problem.weight > 0.0
    enough = np.flatnonzero(seen.sum(axis=1) >= MIN_VISIBLE_MARKERS)
    if not len(enough):
        raise SettingsError(f"no frame shows {MIN_VISIBLE_MARKERS} of the markers of model {problem.model.name!r}")
    first, frames = int(enough[0]), len(seen)
    steps = (frames - 1 - first) * substeps
    ready = prepare_drag(problem, 1.0 / (recording.rate * substeps), ground, softness, rest_torque)
    compiled = ready.compiled
    q0 = find_initial_pose(problem, first)
    start = start_dragged(problem, ready, q0, first, recording.rate)
    marker = np.where(seen[..., None], problem.target, np.nan)[first:]
    targets = None
    if len(problem.rest) > 1:
        targets = np.tile([c.default for c in compiled.model.coordinates], (steps, 1))
        targets[:, problem.tree.free] = np.repeat(problem.rest[first + 1 :], substeps, axis=0)
    inputs = make_inputs(compiled, drives=ready.drives, marker=marker, drive_target=targets, substeps=substeps)
    soft = ready.betas / np.where(seen, problem.weight, np.inf).min(axis=0)
    compiled.tables.marker_springs.beta[:] = np.where(np.isfinite(soft), soft, ready.betas)
    varying = None
    if any(np.ptp(problem.weight[seen[:, m], m]) > 0.0 for m in range(seen.shape[1]) if seen[:, m].any()):
        weight = np.where(problem.weight > 0.0, problem.weight, MARKER_STIFFNESS)[first + 1 :]
        varying = np.repeat(ready.betas / weight, substeps, axis=0)
    trace = Rollout(compiled).march(start, inputs, make_step_inputs(compiled, soft=varying), steps)
    q = np.full((frames, len(compiled.model.coordinates)), np.nan)
    q[first:] = ready.read(trace.pose[::substeps], trace.twist[::substeps], q0)
    notes = [Note(f"the body was dragged by its markers, {substeps} steps a frame: it lags behind them", "changed",
                  'method="framewise"')]  # fmt: skip
    if first:
        notes.append(Note(f"the first {first} frames show too few markers: they have no pose", "problem", "crop"))
    return motion_from_coordinates(problem, q, recording, "marker_driven", tuple(notes))


def prepare_drag(problem: IkProblem, step: float, ground: bool | float, softness: Softness, rest_torque: float) -> Drag:
    """The model with the markers as anchors, drives to the rest pose, its stops, and ground where asked for."""
    model = _held(problem)
    # True is a number too: it stands for height 0
    on_ground = ground is not False
    model = with_ground_at(model, 0.0 if ground is True else float(ground)) if on_ground else replace(model, ground=())
    alpha, beta = softness.at_step(step)
    # stiffness of the springs to the rest pose in proportion to the markers'
    scale = alpha / (step**2 * beta) / MARKER_STIFFNESS if beta > 0.0 else 1.0
    names = [c.name for c in model.coordinates]
    drives = []
    for v, i in enumerate(problem.tree.free):
        stiffness = scale * float(problem.rest_springs.stiffness[v])
        if stiffness > 0.0:
            damping = step * stiffness * (1.0 - alpha) / alpha
            drives.append(
                Drive(names[i], float(problem.rest[0, v]), stiffness=stiffness, damping=damping, max_force=rest_torque)
            )
    compiled = compile_model(model, step=step, drives=drives, marker_springs=softness, settings=SolverSettings())
    return Drag(compiled, tuple(drives), np.full(len(model.markers), beta * MARKER_STIFFNESS))


def start_dragged(problem: IkProblem, ready: Drag, q0: Array, frame: int, rate: float) -> State:
    """The state at a frame's pose, moving as the next frame's converged pose says."""
    speed = np.zeros_like(q0)
    if frame + 1 < len(problem.target) and (problem.weight[frame + 1] > 0.0).sum() >= MIN_VISIBLE_MARKERS:
        q1 = q0[None].copy()
        rest = problem.rest[min(frame + 1, len(problem.rest) - 1)][None].copy()
        part = slice(frame + 1, frame + 2)
        solve_ik_frames(
            problem.search, rest, np.ascontiguousarray(problem.target[part]),
            np.ascontiguousarray(problem.weight[part]), q1, MAX_ITERATIONS, False, np.zeros(1), np.zeros(1, np.int64),
        )  # fmt: skip
        speed = (q1[0] - q0) * rate
    state = make_state(ready.compiled)
    poses_from_coordinates(ready.compiled.tables.joints, q0, speed, state.position, state.quaternion, state.twist)
    state.coordinate[:] = q0
    return state


def _held(problem: IkProblem) -> Model:
    """The model that wears the problem's markers and whose fixed coordinates are locked at their rest."""
    model = problem.model
    coupled = {coupling.coordinate for coupling in model.couplings}
    free = {model.coordinates[i].name for i in problem.tree.free}
    fixed = {c.name for c in model.coordinates} - free - coupled
    if fixed:
        joints = tuple(
            replace(j, coordinates=tuple(replace(c, locked=c.name in fixed or c.locked) for c in j.coordinates))
            for j in model.joints
        )
        model = replace(model, joints=joints)
    return replace(model, markers=problem.markers)


def find_lag(motion: Motion, reference: Motion, coordinates: Sequence[str] | None = None) -> float:
    """How far a motion lags behind another [s]: the delay at which their coordinates differ least."""
    names = [str(name) for name in motion.data["coordinate"].values]
    turning = motion.data["coordinate_units"].values == "rad"
    chosen = [n in coordinates if coordinates else bool(t) for n, t in zip(names, turning, strict=True)]
    a, b = motion.coordinates[:, chosen], reference.coordinates[:, chosen]
    most = min(int(LONGEST_LAG * motion.rate), len(a) // 3)
    misfit = []
    for shift in range(-most, most + 1):
        late = a[most + shift : len(a) - most + shift] - b[most : len(b) - most]
        misfit.append(np.nanmean((late - np.nanmean(late, axis=0)) ** 2))
    best = int(np.argmin(misfit))
    found = float(best - most)
    if 0 < best < len(misfit) - 1:
        # the vertex of the parabola through the least and its neighbours
        before, least, after = misfit[best - 1 : best + 2]
        bend = before - 2.0 * least + after
        found += 0.0 if isclose(bend, 0.0) else 0.5 * float(before - after) / float(bend)
    return found / motion.rate

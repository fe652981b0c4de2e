"""Marker-driven inverse kinematics (Liu, Cooper and Ballard): a forward simulation pulled by the markers.

Each marker is a point that moves as recorded; a marker spring (soft row) pulls its point on the body to it, in position
and velocity. A marker acts while it is visible in this frame and the next and moves slower than 10 m/s. Weak drives of
limited force pull to the rest pose; joint limits and, optionally, ground contact act. Between markers the body moves by
its inertia; poses lag behind the markers, which `find_lag` measures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose

import numpy as np

from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    MIN_VISIBLE_MARKERS,
    IkProblem,
    find_initial_pose,
    motion_from_coordinates,
    solve_poses,
)
from borelli.analysis.motion import Motion
from borelli.analysis.stepped.rollout import Rollout, make_step_inputs
from borelli.analysis.stepped.soles_and_ground import add_ground
from borelli.errors import SettingsError
from borelli.model.model import Model, Softness
from borelli.numerics.vectors import Array
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.inputs import Drive
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import State, make_inputs, make_state
from borelli.recording.recording import Note, Recording

MARKER_SOFTNESS = Softness(erp=0.2, cfm=1e-4)
"""Softness of a marker spring of 1000 N/m at one step per frame, in ODE's numbers (Liu, Cooper and Ballard)."""
MAX_REST_TORQUE = 10.0
"""Largest torque or force of a drive to the rest pose [N m or N]."""
MARKER_DRIVEN_OPTIONS = ("substeps", "ground", "softness", "rest_torque")
"""Options that `inverse_kinematics` passes on."""
MAX_LAG = 0.1
"""Largest lag that `find_lag` searches [s]."""


@dataclass(frozen=True)
class MarkerDrivenModel:
    """A compiled model with marker springs."""

    compiled: CompiledModel
    drives: tuple[Drive, ...]
    betas: Array
    """(markers,) slope of a marker's rows for a weight of 1 N/m [N/m s/kg]."""

    def coordinates(self, pose: Array, twist: Array, near: Array) -> Array:
        """Return the coordinates (frames, coordinates) of poses; revolutions count from `near`."""
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
    rest_torque: float = MAX_REST_TORQUE,
) -> Motion:
    """Compute a motion by a simulation that is pulled by the markers.

    `ground` enables contact with level ground at a height [m], True at 0. `softness` is that of a marker spring of 1000
    N/m; others scale with their weights. `rest_torque` limits the drives to the rest pose [N m or N].
    """
    if not 1 <= substeps <= 1000:
        raise SettingsError(f"substeps: The value is {substeps}. Pass 1 to 1000.")
    visible = problem.weight > 0.0
    enough = np.flatnonzero(visible.sum(axis=1) >= MIN_VISIBLE_MARKERS)
    if not len(enough):
        raise SettingsError(
            f"No frame shows {MIN_VISIBLE_MARKERS} markers of model {problem.model.name!r}. Check the marker names."
        )
    first, frames = int(enough[0]), len(visible)
    steps = (frames - 1 - first) * substeps
    driven = prepare_model(problem, 1.0 / (recording.rate * substeps), ground, softness, rest_torque)
    compiled = driven.compiled
    q0 = find_initial_pose(problem, first)
    state = initial_state(problem, driven, q0, first, recording.rate)
    marker = np.where(visible[..., None], problem.target, np.nan)[first:]
    targets = None
    if len(problem.rest) > 1:
        targets = np.tile([c.default for c in compiled.model.coordinates], (steps, 1))
        targets[:, problem.tree.free] = np.repeat(problem.rest[first + 1 :], substeps, axis=0)
    inputs = make_inputs(compiled, drives=driven.drives, marker=marker, drive_target=targets, substeps=substeps)
    beta = driven.betas / np.where(visible, problem.weight, np.inf).min(axis=0)
    compiled.tables.marker_springs.beta[:] = np.where(np.isfinite(beta), beta, driven.betas)
    varying = None
    if any(np.ptp(problem.weight[visible[:, m], m]) > 0.0 for m in range(visible.shape[1]) if visible[:, m].any()):
        weight = np.where(problem.weight > 0.0, problem.weight, MARKER_STIFFNESS)[first + 1 :]
        varying = np.repeat(driven.betas / weight, substeps, axis=0)
    record = Rollout(compiled).run(state, inputs, make_step_inputs(compiled, marker_beta=varying), steps)
    q = np.full((frames, len(compiled.model.coordinates)), np.nan)
    q[first:] = driven.coordinates(record.pose[::substeps], record.twist[::substeps], q0)
    per_frame = "1 step" if substeps == 1 else f"{substeps} steps"
    text = f"Poses come from a marker-driven simulation ({per_frame} per frame) and lag behind the markers."
    notes = [Note(text, "changed", 'method="framewise"', code="marker_driven")]
    if first:
        text = f"The first {first} frames have too few visible markers and no pose."
        notes.append(Note(text, "problem", "crop", code="missing_poses"))
    return motion_from_coordinates(problem, q, recording, "marker_driven", tuple(notes))


def prepare_model(
    problem: IkProblem, step: float, ground: bool | float, softness: Softness, rest_torque: float
) -> MarkerDrivenModel:
    """Compile the model with marker springs, drives to the rest pose, joint limits, and optionally ground."""
    model = _with_markers(problem)
    # True is a number too: it stands for height 0
    on_ground = ground is not False
    model = add_ground(model, 0.0 if ground is True else float(ground)) if on_ground else replace(model, ground=())
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
    compiled = compile_model(
        model, step=step, drives=drives, marker_springs=softness, settings=SolverSettings(), balls_as_one=True
    )
    return MarkerDrivenModel(compiled, tuple(drives), np.full(len(model.markers), beta * MARKER_STIFFNESS))


def initial_state(problem: IkProblem, driven: MarkerDrivenModel, q0: Array, frame: int, rate: float) -> State:
    """Return the state at a frame's pose, with the velocity to the next frame's converged pose."""
    velocity = np.zeros_like(q0)
    if frame + 1 < len(problem.target) and (problem.weight[frame + 1] > 0.0).sum() >= MIN_VISIBLE_MARKERS:
        q1 = q0[None].copy()
        solve_poses(problem, np.array([frame + 1]), q1, chained=False)
        velocity = (q1[0] - q0) * rate
    state = make_state(driven.compiled)
    poses_from_coordinates(driven.compiled.tables.joints, q0, velocity, state.position, state.quaternion, state.twist)
    state.coordinate[:] = q0
    return state


def _with_markers(problem: IkProblem) -> Model:
    """Return the model with the problem's markers, fixed coordinates locked at their rest values."""
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


def find_lag(motion: Motion, reference: Motion) -> float:
    """Return the lag of a motion behind another [s]: the delay at which their angles differ least."""
    chosen = motion.data["coordinate_units"].values == "rad"
    a, b = motion.coordinates[:, chosen], reference.coordinates[:, chosen]
    max_shift = min(int(MAX_LAG * motion.rate), len(a) // 3)
    misfit = []
    for shift in range(-max_shift, max_shift + 1):
        late = a[max_shift + shift : len(a) - max_shift + shift] - b[max_shift : len(b) - max_shift]
        misfit.append(np.nanmean((late - np.nanmean(late, axis=0)) ** 2))
    best = int(np.argmin(misfit))
    lag = float(best - max_shift)
    if 0 < best < len(misfit) - 1:
        # vertex of the parabola through the minimum and its neighbors
        before, minimum, after = misfit[best - 1 : best + 2]
        curvature = before - 2.0 * minimum + after
        lag += 0.0 if isclose(curvature, 0.0) else 0.5 * float(before - after) / float(curvature)
    return lag / motion.rate

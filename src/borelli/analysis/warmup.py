"""Warm-up: compiles the kernels of an analysis by analyzing a body that hardly moves.

Those of the smoother run along all variables at once, so they are compiled with vector instructions.
"""

from __future__ import annotations

import numpy as np

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.snap_penalty import square_of_differences
from borelli.analysis.load_sharing.share_loads import share_loads
from borelli.analysis.tree_kernels import smoothing_kernels as kernels
from borelli.kernels.compile_cache import CompileTask
from borelli.model.kinematics import marker_positions
from borelli.people.human import human
from borelli.recording.recording import Recording, make_dataset

FRAMES = 16


def warm_up() -> None:
    """Run fit, inverse kinematics and inverse dynamics once."""
    body = human(markers="cmu41")
    sway = 0.02 * np.sin(np.arange(FRAMES)[:, None] * np.linspace(0.1, 0.3, len(body.coordinates)))
    rest = np.array([c.default for c in body.coordinates])
    markers = marker_positions(body, rest + sway)
    names = [marker.name for marker in body.markers]
    recording = Recording(make_dataset({"marker_position": markers}, {"marker": names}, rate=100.0), "sample")
    fitted = fit_model(body, recording, frames=4, held_out=2).model
    inverse_dynamics(inverse_kinematics(fitted, recording, method="smoothed"), forces="predicted")


def warm_up_load_sharing() -> None:
    """Share one torque."""
    share_loads(np.full((2, 1, 1), 0.05), np.full((2, 1), 10.0), np.full((2, 1), 1000.0))


def compile_smoother() -> None:
    """Apply the kernels of the smoother to one joint of three variables that does not move."""
    still, one = np.broadcast_to(np.eye(3), (1, FRAMES, 3, 3)).copy(), np.ones(3)
    x, snap, jacobian = np.zeros((FRAMES, 3)), np.zeros((FRAMES - 4, 3)), np.zeros((1, FRAMES - 4, 5, 3, 3))
    variables, first, column = np.arange(3)[None], np.zeros(4, np.int64), np.zeros(0, np.int64)
    square = np.ones((3, 3))
    kernels.rotate_joints(still[0, :1], x.T[None].copy(), x.T[None].copy(), still, still.copy())
    kernels.compute_rotational_snap(still, still, snap[None], jacobian)
    kernels.apply_snap(jacobian, variables, x, snap)
    kernels.add_snap_force(jacobian, variables, snap, x)
    kernels.trace_determined(first, column, still[0], one, square, square.copy(), np.zeros(FRAMES))
    kernels.factor_matrix(np.eye(3))
    kernels.solve_matrix(np.eye(3), one)
    lower = np.zeros((FRAMES, 4, 3))
    kernels.factor_series(square_of_differences(FRAMES), 1.0, one, 0.0, lower, x)
    kernels.solve_series(lower, x, 0, np.zeros((FRAMES, 3)))


TASKS = (
    CompileTask("smoother", compile_smoother, 7, vectorize_loops=True),
    CompileTask("analysis", warm_up, 9, needs=("smoother",)),
    CompileTask("load sharing", warm_up_load_sharing, 10, group="muscles"),
)

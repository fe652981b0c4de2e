"""Compilation of the kernels of images, by rendering a small one."""

from __future__ import annotations

import numpy as np

from borelli.kernels.compile_cache import CompileTask
from borelli.physics.warmup import compile_coordinates
from borelli.view.drawing import Drawing
from borelli.view.render import Actors, camera_for, render


def compile_pictures() -> None:
    """Compile the renderer, and the coordinates that a simulation dataset needs."""
    compile_coordinates()
    corner = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    triangle = np.array([[0, 1, 2]])
    actors = Actors(corner, np.tile([0.0, -1.0, 0.0], (3, 1)), triangle, np.ones((3, 3)))
    nothing = np.zeros((0, 3))
    empty = Drawing(
        nothing, nothing, np.zeros((0, 3), np.int64), np.zeros(0, np.int64), nothing,
        np.zeros((0, 4, 3)), np.zeros((0, 2)), np.zeros((0, 2, 3)),
    )  # fmt: skip
    render(empty, actors, camera_for(corner, 1.0), 8, 8)


TASKS = (CompileTask("pictures", compile_pictures, 12),)

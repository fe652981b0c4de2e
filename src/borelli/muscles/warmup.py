"""Warm-up: compiles the kernels of muscles with one muscle of a pendulum."""

from __future__ import annotations

import numpy as np

from borelli.kernels.compile_cache import CompileTask
from borelli.model.model import Body, Coordinate, Joint, Model, Muscle, PathPoint, PathWrap, WrapObject
from borelli.muscles.hill import elastic_tendon_force, make_muscle_arrays, rigid_tendon_force, simulate_muscles
from borelli.muscles.paths import muscle_paths

FRAMES = 3


def _pendulum() -> Model:
    path = (PathPoint("ground", (0.1, 0.0, 0.0)), PathPoint("bob", (0.0, 0.0, -0.3)))
    muscle = Muscle("muscle", path, 100.0, 0.1, 0.2, kind="Thelen2003Muscle", wraps=(PathWrap("cylinder"),))
    hinge = Joint("hinge", "hinge", "ground", "bob", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("angle"),))
    cylinder = WrapObject("cylinder", "cylinder", "ground", (0.02, 0.1))
    return Model("pendulum", (Body("bob", 1.0),), (hinge,), muscles=(muscle,), wrap_objects=(cylinder,))


def warm_up_paths() -> None:
    """Compute paths once."""
    muscle_paths(_pendulum(), np.zeros((FRAMES, 1)), np.zeros((FRAMES, 1)))


def warm_up_forces() -> None:
    """Compute muscle forces once."""
    arrays = make_muscle_arrays(_pendulum())
    length, zero, half = np.full((FRAMES, 1), 0.32), np.zeros((FRAMES, 1)), np.full((FRAMES, 1), 0.5)
    rigid_tendon_force(arrays, length, zero)
    elastic_tendon_force(arrays, length, zero, half)
    simulate_muscles(arrays, 0.01 * np.arange(FRAMES), length, half)


TASKS = (
    CompileTask("muscle paths", warm_up_paths, 5, group="muscles"),
    CompileTask("muscle forces", warm_up_forces, 11, group="muscles"),
)

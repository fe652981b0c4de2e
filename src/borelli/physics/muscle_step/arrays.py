"""Arrays of muscles and ligaments for steps: tables, work arrays and the record of a run.

A *path* is that of a muscle or, after all muscles, of a ligament.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError
from borelli.files.memory import check_memory
from borelli.model.model import Ligament, Model, Muscle
from borelli.model.model_cache import cached_per_model
from borelli.muscles.hill_kernels.arrays import HillArrays
from borelli.muscles.muscle_arrays import kernel_arrays, make_muscle_arrays
from borelli.muscles.path_arrays import PathArrays, PathWork, make_path_arrays, make_path_work
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.tree.kinematic_tree import function_pieces

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_FIBER_STEP = 1.0 / 240.0
"""Longest step [s] of activation and fiber; longer steps of the bodies are divided. Any step is stable."""


class LigamentArrays(NamedTuple):
    """Force-length functions of ligaments."""

    resting_length: Floats
    """[m]"""
    force_scale: Floats
    """[N]"""
    first_piece: Integers
    start: Floats
    end: Floats
    coefficient: Floats


class MuscleTables(NamedTuple):
    """Muscles and ligaments of a model, and the excitations of a run."""

    paths: PathArrays
    hill: HillArrays
    ligaments: LigamentArrays
    center_of_mass: Floats
    """(n, 3) in body frames [m]."""
    excitation: Floats
    """(steps or 1, muscles, 2) at the start and the end of each step since time 0, linear between; one row is that of
    all steps."""
    geometry: Integers
    """(1,) index into `borelli.muscles.paths.GEOMETRIES`."""
    substeps: Integers
    """(1,) steps of activation and fiber in a step of the bodies."""


class MuscleWork(NamedTuple):
    """Muscles and ligaments at the poses of the state. May be discarded: the next step fills it with the same bits."""

    paths: PathWork
    origin: Floats
    """(n, 3) origins of body frames, world [m]."""
    rotation: Floats
    coordinate: Floats
    speed: Floats
    length: Floats
    """(paths,) [m]"""
    velocity: Floats
    """(paths,) lengthening speeds [m/s]."""
    tension: Floats
    """(paths,) [N]"""
    excitation: Floats
    """(muscles,) at the end of the last step."""
    muscle: Floats
    """(muscles, 3) as `State.muscle`, at the poses of the state."""
    fiber_velocity: Floats
    """(muscles,) [m/s]"""
    status: Integers
    """(muscles,) of the equilibrium of fiber and tendon."""
    path_found: Integers
    """(paths,) 0: the path over a surface was not found and is a plane section."""
    coordinate_force: Floats
    """(q,) forces of moving path points on the coordinates that move them [N m or N]."""
    wrench: Floats
    """(n, 6) as `Inputs.body_wrench`."""
    clock: Integers
    """(1,) number of steps made when this was filled; -1: never. With the next four, what it was filled from."""
    position: Floats
    quaternion: Floats
    twist: Floats
    initial_muscle: Floats


class MuscleRecord(NamedTuple):
    """Record of muscles and ligaments at the ends of steps, one entry per recorded step."""

    excitation: Floats
    """(frames, muscles)"""
    muscle: Floats
    """(frames, muscles, 3)"""
    fiber_velocity: Floats
    status: Integers
    length: Floats
    """(frames, paths)"""
    velocity: Floats
    tension: Floats
    path_found: Integers


def _path_only(ligament: Ligament) -> Muscle:
    """Return a muscle with the path of a ligament."""
    return Muscle(ligament.name, ligament.path, 0.0, 1.0, 0.0, wraps=ligament.wraps)


def _ligament_arrays(model: Model) -> LigamentArrays:
    ligaments = model.ligaments
    return LigamentArrays(
        np.array([one.resting_length for one in ligaments], float),
        np.array([one.force_scale for one in ligaments], float),
        *function_pieces([one.force_length for one in ligaments]),
    )


@cached_per_model
def _path_arrays(model: Model) -> PathArrays:
    """Return the paths of muscles, then of ligaments."""
    paths = (*model.muscles, *map(_path_only, model.ligaments))
    for path in paths:
        if len(path.path) < 2:
            raise ModelError(f"Muscle or ligament {path.name!r}: The path has {len(path.path)} points. Give two.")
    return make_path_arrays(replace(model, muscles=paths))


def make_muscle_tables(compiled: CompiledModel, excitation: Floats) -> MuscleTables:
    """Return the tables of a model's muscles and ligaments; `excitation` is as in `MuscleTables`.

    Raises:
        ModelError: The model has no muscles, or a muscle cannot be simulated.
    """
    model = compiled.model
    check_muscles(model)
    return MuscleTables(
        _path_arrays(model),
        kernel_arrays(make_muscle_arrays(model)),
        _ligament_arrays(model),
        compiled.center_of_mass,
        excitation,
        np.zeros(1, np.int64),
        np.array([np.ceil(compiled.step / MAX_FIBER_STEP * (1.0 - 1e-9))], np.int64),
    )


def check_muscles(model: Model) -> None:
    """Raise ModelError if a model has neither muscles nor ligaments."""
    if not model.muscles and not model.ligaments:
        raise ModelError(f"Model {model.name!r} has no muscles to excite. Remove the excitations, or add muscles.")


def make_muscle_work(compiled: CompiledModel, tables: MuscleTables) -> MuscleWork:
    """Return work arrays of muscles, not yet filled."""
    bodies, coordinates = len(compiled.model.bodies), len(compiled.model.coordinates)
    muscles, paths = len(tables.hill.damping), len(tables.paths.first_point) - 1
    return MuscleWork(
        paths=make_path_work(tables.paths),
        origin=np.zeros((bodies, 3)),
        rotation=np.zeros((bodies, 3, 3)),
        coordinate=np.zeros(coordinates),
        speed=np.zeros(coordinates),
        length=np.zeros(paths),
        velocity=np.zeros(paths),
        tension=np.zeros(paths),
        excitation=np.zeros(muscles),
        muscle=np.zeros((muscles, 3)),
        fiber_velocity=np.zeros(muscles),
        status=np.zeros(muscles, np.int64),
        path_found=np.zeros(paths, np.int64),
        coordinate_force=np.zeros(coordinates),
        wrench=np.zeros((bodies, 6)),
        clock=np.full(1, -1, np.int64),
        position=np.zeros((bodies, 3)),
        quaternion=np.zeros((bodies, 4)),
        twist=np.zeros((bodies, 6)),
        initial_muscle=np.zeros((muscles, 3)),
    )


def make_muscle_record(model: Model, frames: int) -> MuscleRecord:
    """Return an empty record of `frames` steps.

    Raises:
        SettingsError: It needs more memory than is available.
    """
    muscles = len(model.muscles)
    paths = muscles + len(model.ligaments)
    check_memory(
        8.0 * frames * (6 * muscles + 4 * paths), f"duration: A record of {frames} frames of {paths} muscles",
        "Record fewer frames (record_every), simulate for a shorter duration or use a longer step.",
    )  # fmt: skip
    return MuscleRecord(
        excitation=np.zeros((frames, muscles)),
        muscle=np.zeros((frames, muscles, 3)),
        fiber_velocity=np.zeros((frames, muscles)),
        status=np.zeros((frames, muscles), np.int64),
        length=np.zeros((frames, paths)),
        velocity=np.zeros((frames, paths)),
        tension=np.zeros((frames, paths)),
        path_found=np.ones((frames, paths), np.int64),
    )

"""State of a running simulation: start, read, set, copy, save and continue.

simulation = bo.dynamics.start_simulation(model, step=1 / 240)
first = bo.dynamics.advance_simulation(simulation, 0.5)       # a dataset
saved = copy.copy(simulation)                                 # independent, same bits
bo.dynamics.write_state(simulation, "half.npz")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from borelli.errors import FileFormatError, SettingsError
from borelli.files.atomic import atomic_path
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Model
from borelli.physics import diagnostics
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import count_steps, initial_state, to_dataset
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import State, check_state, make_inputs

if TYPE_CHECKING:
    import xarray

MAX_STATE_BYTES = 1_000_000_000
"""Largest state file that is read [bytes]."""


def start_simulation(
    model: Model,
    *,
    step: float = 1 / 240,
    coordinates: Mapping[str, float] | None = None,
    velocities: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
    drives: Sequence[Drive] = (),
    forces: Sequence[AppliedForce] = (),
    settings: SolverSettings | None = None,
) -> Simulation:
    """Return a simulation by soft steps that can be advanced, read, set, copied and saved.

    Args:
        model: Model to simulate.
        step: Time step [s].
        coordinates: Initial values of coordinates [rad or m]. Default: the defaults of the model.
        velocities: Initial velocities of coordinates [rad/s or m/s]. Default: 0.
        twists: Initial velocity [m/s] and angular velocity [rad/s] of bodies, world axes.
        drives: Joint drives.
        forces: Applied forces.
        settings: Settings of the solver.

    Returns:
        The simulation. `copy.copy` and pickle make independent ones that continue with the same bits.
    """
    ensure_compiled()
    compiled = compile_model(model, step=step, settings=settings, drives=drives)
    state = initial_state(compiled, coordinates=coordinates, velocities=velocities, twists=twists)
    return Simulation(compiled, state, make_inputs(compiled, drives=drives, forces=forces))


def advance_simulation(simulation: Simulation, duration: float, *, record_every: int = 1) -> xarray.Dataset:
    """Continue a simulation for `duration` seconds and return a dataset as of `simulate`, the present state first.

    Args:
        simulation: Simulation of soft steps; it is changed.
        duration: Time to simulate [s].
        record_every: Steps from one recorded state to the next.

    Returns:
        A dataset as of `simulate`.
    """
    compiled, state = simulation.compiled, simulation.state
    steps = count_steps(duration, compiled.step)
    frames = (simulation.index + steps) // record_every - simulation.index // record_every
    record = make_record(compiled, frames + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    start = compiled.step * float(state.clock[0])
    simulation.advance(steps, record, record_every=record_every, frame=1)
    return to_dataset(compiled, record, start + compiled.step * record_every * np.arange(frames + 1, dtype=np.float64))


def simulation_state(simulation: Simulation) -> xarray.Dataset:
    """Return the present state of a simulation: time, coordinates, velocities and the motion of bodies.

    Args:
        simulation: Simulation at any time.
    """
    compiled, state = simulation.compiled, simulation.state
    record = make_record(compiled, 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    record.twist[0] = state.twist
    data = to_dataset(compiled, record, np.array([compiled.step * float(state.clock[0])]))
    names = (
        "body_position", "body_orientation", "body_com_velocity", "body_angular_velocity", "coordinate_value",
        "coordinate_velocity",
    )  # fmt: skip
    return data[list(names)].isel(time=0)


def set_simulation_state(
    simulation: Simulation,
    *,
    coordinates: Mapping[str, float] | None = None,
    velocities: Mapping[str, float] | None = None,
    twists: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Set coordinates and velocities of a simulation; those that are not named keep their present values.

    The time continues; warm starts of the solver are reset, so the next step depends on the new state alone.

    Args:
        simulation: Simulation; it is changed.
        coordinates: Coordinates [rad or m] by name.
        velocities: Their rates [rad/s or m/s] by name.
        twists: Velocity [m/s] and angular velocity [rad/s], six numbers, of free bodies by name.

    Raises:
        ModelError: A coordinate or body is unknown.
        SettingsError: A value is not finite.
    """
    compiled, state = simulation.compiled, simulation.state
    pose = np.concatenate([state.position, state.quaternion], axis=1)
    now, speed = diagnostics.coordinates_and_velocities(compiled, pose[None], state.twist[None])
    present = dict(zip(compiled.coordinate_index, map(float, now[0]), strict=True))
    moving = dict(zip(compiled.coordinate_index, map(float, speed[0]), strict=True))
    fresh = initial_state(
        compiled,
        coordinates=present | dict(coordinates or {}),
        velocities=moving | dict(velocities or {}),
        twists=twists,
    )
    jointed = {joint.child for joint in compiled.model.joints if not joint.closes_loop}
    named = set(twists or {})
    for body, b in compiled.body_index.items():
        if body not in jointed:  # bodies without a joint keep their pose
            fresh.position[b], fresh.quaternion[b] = state.position[b], state.quaternion[b]
            if body not in named:
                fresh.twist[b] = state.twist[b]
    fresh.clock[:], fresh.muscle[:], fresh.wrap_start[:] = state.clock, state.muscle, state.wrap_start
    state.restore(fresh)


def write_state(simulation: Simulation, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the state of a simulation, all that is needed to continue with the same bits; the write is atomic.

    Args:
        simulation: Simulation at any time.
        path: File to write.
        overwrite: Whether an existing file is replaced.
    """
    named: dict[str, Any] = dict(simulation.state._asdict())
    with atomic_path(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        np.savez(file, format=np.array("borelli-state"), index=np.array(simulation.index), **named)


def restore_state(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """Set a simulation to a state that `write_state` wrote; model, step and drives must be the same.

    Args:
        simulation: Simulation of the same model; it is changed.
        path: File that `write_state` wrote.

    Raises:
        FileFormatError: The file is not a state.
        SettingsError: The state is that of another model.
    """
    if Path(path).stat().st_size > MAX_STATE_BYTES:
        raise FileFormatError(path, f"The file is larger than {MAX_STATE_BYTES:.0e} bytes, so it is not a state.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, KeyError, OSError, SyntaxError, BadZipFile) as error:
        raise FileFormatError(path, f"The file is not a state of a simulation ({error}).") from None
    if str(arrays.pop("format", "")) != "borelli-state":
        raise FileFormatError(path, "The file is not a state of a simulation. Write one with `write_state`.")
    index = int(arrays.pop("index", np.array(0)))
    if set(arrays) != set(State._fields):
        raise FileFormatError(path, "Arrays of the state are missing. Write the state again.")
    saved = State(**arrays)
    try:
        check_state(simulation.compiled, saved)
    except SettingsError as error:
        raise SettingsError(
            f"{path}: {error} Use the model, step and drives that the state was written with."
        ) from None
    simulation.state.restore(saved)
    simulation.index = index

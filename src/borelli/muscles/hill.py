"""Forces of Hill-type muscles from path lengths: rigid tendon, elastic tendon in equilibrium, forward simulation.

All arrays are (frames, muscles). Forces are along the tendon [N] unless they are called fiber forces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.muscles.excitations import Excitations, interval_values
from borelli.muscles.hill_kernels import status as codes
from borelli.muscles.hill_kernels.arrays import Floats
from borelli.muscles.muscle_arrays import MuscleArrays, kernel_arrays, make_muscle_arrays, muscle_warnings

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = [
    "STATUS", "ElasticTendon", "MuscleArrays", "RigidTendon", "elastic_tendon_force", "evaluate_curve",
    "fiber_velocity", "make_muscle_arrays", "muscle_warnings", "rigid_tendon_force", "simulate_muscles",
    "status_warnings",
]  # fmt: skip

STATUS = {
    codes.CONVERGED: "converged",
    codes.SLACK: "slack",
    codes.BELOW_MIN_FIBER_LENGTH: "below minimum fiber length",
    codes.VELOCITY_OUT_OF_RANGE: "fiber velocity out of range",
    codes.NOT_CONVERGED: "not converged",
    codes.INVALID_INPUT: "invalid input",
}
"""Meaning of the status of a muscle in a frame."""
CURVES = ("active", "passive", "tendon", "velocity", "inverse_velocity")
"""Force curves by name, in the order of the kernel's numbers."""
MAX_STEP = 1.0 / 240.0
"""[s] default step of `simulate_muscles`; the method is stable at any step and of order 2."""


class RigidTendon(NamedTuple):
    """Muscles with rigid tendons, (frames, muscles)."""

    active_force: Floats
    """[N] along the tendon at full activation: Fmax fl fv cos(phi), as OpenSim's static optimization uses it."""
    passive_force: Floats
    """[N] along the tendon."""
    damping_force: Floats
    """[N] along the tendon; negative while shortening."""
    fiber_length: Floats
    """[m]"""
    fiber_velocity: Floats
    """[m/s]"""
    pennation_cosine: Floats
    status: NDArray[np.int64]
    """Keys of `STATUS`."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


class ElasticTendon(NamedTuple):
    """Muscles in equilibrium with their tendons, (frames, muscles)."""

    force: Floats
    """[N] of the tendon."""
    fiber_length: Floats
    """[m]"""
    fiber_velocity: Floats
    """[m/s]"""
    residual: Floats
    """[N] fiber minus tendon force; only where the fiber is at its minimum length is it more than rounding."""
    status: NDArray[np.int64]
    """Keys of `STATUS`."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


def _frames(arrays: MuscleArrays, **values: ArrayLike) -> list[Floats]:
    """Return values as contiguous (frames, muscles), all of one shape."""
    count = len(arrays.names)
    rows = []
    for name, value in values.items():
        array = np.asarray(value, float)
        if array.ndim != 2 or array.shape[1] != count:
            raise SettingsError(f"{name}: The shape is {array.shape}. Give (frames, {count}), one column per muscle.")
        rows.append(array)
    if len({len(row) for row in rows}) > 1:
        shapes = ", ".join(f"{name} {row.shape[0]}" for name, row in zip(values, rows, strict=True))
        raise SettingsError(f"The numbers of frames differ ({shapes}). Give arrays of one length.")
    return [np.ascontiguousarray(row) for row in rows]


def evaluate_curve(
    arrays: MuscleArrays, curve: str, x: ArrayLike, activation: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return value and slope of a force curve of every muscle.

    Args:
        arrays: muscles.
        curve: "active", "passive" (of normalized fiber length), "tendon" (of tendon length over slack length),
            "velocity" (of normalized velocity, negative: shortening) or "inverse_velocity" (of the force multiplier).
        x: (points, muscles).
        activation: (points, muscles), for Thelen's force-velocity curve. Default: 1.
    """
    from borelli.muscles.hill_kernels.curves import fill_curve

    if curve not in CURVES:
        raise SettingsError(f"{unknown_name('force curve', curve, CURVES)}.")
    points, a = _frames(arrays, x=x, activation=np.ones(np.shape(x)) if activation is None else activation)
    value, slope = np.zeros_like(points), np.zeros_like(points)
    fill_curve(CURVES.index(curve), arrays.curve_kind, arrays.curve, points, a, value, slope)
    return value, slope


def rigid_tendon_force(arrays: MuscleArrays, length: ArrayLike, velocity: ArrayLike) -> RigidTendon:
    """Compute forces of muscles whose tendons keep their slack length.

    Fibers shorter than their minimum length are evaluated there, as in OpenSim; where the path is shorter than the
    tendon, all forces are zero. Both have their status.

    Args:
        arrays: muscles.
        length: path lengths (frames, muscles) [m].
        velocity: path lengthening velocities (frames, muscles) [m/s].

    Returns:
        Active, passive and damping forces along the tendon, fiber lengths and velocities, (frames, muscles).
    """
    from borelli.muscles.hill_kernels.musculotendon import fill_rigid_tendon

    path, speed = _frames(arrays, length=length, velocity=velocity)
    result = RigidTendon._make([*(np.zeros_like(path) for _ in range(6)), np.zeros(path.shape, np.int64)])
    fill_rigid_tendon(kernel_arrays(arrays), path, speed, *result)
    return result


def elastic_tendon_force(
    arrays: MuscleArrays, length: ArrayLike, velocity: ArrayLike, activation: ArrayLike
) -> ElasticTendon:
    """Compute forces of muscles in equilibrium with elastic tendons, frame by frame.

    The fiber velocity is that of the path times cos(phi): the tendon's own velocity is neglected. `simulate_muscles`
    includes it. Muscles with rigid tendons are computed as such.

    Args:
        arrays: muscles.
        length: path lengths (frames, muscles) [m].
        velocity: path lengthening velocities (frames, muscles) [m/s]; zeros give the static equilibrium.
        activation: (frames, muscles), 0 to 1.

    Returns:
        Tendon forces, fiber lengths and velocities, and the status, (frames, muscles).
    """
    from borelli.muscles.hill_kernels.musculotendon import fill_elastic_tendon

    path, speed, a = _frames(arrays, length=length, velocity=velocity, activation=activation)
    _check_fraction("activation", arrays, a)
    result = ElasticTendon._make([*(np.zeros_like(path) for _ in range(4)), np.zeros(path.shape, np.int64)])
    fill_elastic_tendon(kernel_arrays(arrays), path, speed, a, *result)
    return result


def fiber_velocity(
    arrays: MuscleArrays, length: ArrayLike, fiber_length: ArrayLike, activation: ArrayLike
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the fiber velocity [m/s] at which fiber and tendon balance, and the status, (frames, muscles).

    Args:
        arrays: Muscles of a model, of `make_muscle_arrays`.
        length: Lengths of the paths (frames, muscles) [m].
        fiber_length: Lengths of the fibers (frames, muscles) [m].
        activation: Activations (frames, muscles), 0 to 1.

    Raises:
        SettingsError: if a tendon is rigid: the path then determines the velocity.
    """
    from borelli.muscles.hill_kernels.musculotendon import fill_fiber_velocity

    rigid = [name for name, is_rigid in zip(arrays.names, arrays.rigid_tendon, strict=True) if is_rigid]
    if rigid:
        raise SettingsError(f"Muscles {list_names(rigid, 5)} have rigid tendons. Use rigid_tendon_force.")
    path, fiber, a = _frames(arrays, length=length, fiber_length=fiber_length, activation=activation)
    velocity, status = np.zeros_like(path), np.zeros(path.shape, np.int64)
    fill_fiber_velocity(kernel_arrays(arrays), a, fiber, path, velocity, status)
    return velocity, status


def simulate_muscles(
    arrays: MuscleArrays,
    time: ArrayLike,
    length: ArrayLike | Callable[[Floats], ArrayLike],
    excitation: ArrayLike | Callable[[Floats], ArrayLike] | Excitations,
    *,
    activation: ArrayLike | None = None,
    fiber_length: ArrayLike | None = None,
    max_step: float = MAX_STEP,
) -> Dataset:
    """Simulate activation and fiber length along given path lengths and excitations.

    Args:
        arrays: muscles.
        time: frames [s], increasing.
        length: path lengths (frames, muscles) [m], or a function of times that returns them; linear between frames.
        excitation: as `length`, or a table, whose own times are then added to the steps.
        activation: initial activations (muscles). Default: those of the model.
        fiber_length: initial fiber lengths (muscles) [m] of elastic tendons. Default: in equilibrium at rest.
        max_step: largest step [s]; implicit, so it limits accuracy and not stability.

    Returns:
        Dataset with dimensions time and muscle: `muscle_excitation`, `muscle_activation`, `muscle_length`,
        `fiber_length`, `fiber_velocity`, `muscle_force` (of the tendon), `active_fiber_force`, `passive_fiber_force`
        and `muscle_status`.
    """
    from borelli.muscles.hill_kernels.fiber_steps import simulate_fibers

    frames = np.asarray(time, float)
    if frames.ndim != 1 or len(frames) < 2 or not np.all(np.diff(frames) > 0.0):
        raise SettingsError(f"time: Its shape is {frames.shape}. Give at least two increasing times [s].")
    if not max_step > 0.0:
        raise SettingsError(f"max_step: It is {max_step:g} s. Give a positive step.")
    grid = excitation.merged_times(frames) if isinstance(excitation, Excitations) else frames
    (path,) = _frames(arrays, length=length(grid) if callable(length) else _at(frames, np.asarray(length), grid))
    start, end = interval_values(arrays.names, grid, excitation)
    _frames(arrays, length=path, excitation=end)
    if not (np.isfinite(path).all() and np.isfinite(start).all() and np.isfinite(end).all()):
        raise SettingsError("length, excitation: They contain NaN or infinity. Fill the gaps first.")
    count = len(arrays.names)
    state = np.full((len(grid), count, 3), np.nan)
    initial = arrays.default_activation if activation is None else np.asarray(activation, float)
    state[0, :, 0] = np.clip(initial, arrays.min_activation, arrays.max_activation)
    if fiber_length is not None:
        state[0, :, 1] = np.maximum(np.asarray(fiber_length, float), arrays.min_fiber_length)
    force, active, passive = (np.zeros(path.shape) for _ in range(3))
    status = np.zeros(path.shape, np.int64)
    substeps = np.ones(len(grid), np.int64)
    substeps[1:] = np.ceil(np.diff(grid) / max_step * (1.0 - 1e-9))
    simulate_fibers(kernel_arrays(arrays), grid, path, start, end, substeps, state, force, active, passive, status)
    kept = np.searchsorted(grid, frames)
    return _dataset(arrays, frames, *(values[kept] for values in (end, state, path, force, active, passive, status)))


def _at(frames: Floats, values: Floats, grid: Floats) -> Floats:
    """Return (frames, muscles) values at other times, by linear interpolation."""
    if values.ndim != 2 or len(values) != len(frames):
        raise SettingsError(f"length: Its shape is {values.shape}. Give one row for each of {len(frames)} times.")
    if grid is frames:
        return values
    return np.column_stack([np.interp(grid, frames, column) for column in values.T])


def _dataset(arrays: MuscleArrays, time: Floats, *results: Any) -> Dataset:
    """Return the simulated series as a labeled dataset."""
    import xarray as xr

    excitation, state, path, force, active, passive, status = results
    variables = {
        "muscle_excitation": (excitation, "1"),
        "muscle_activation": (state[:, :, 0], "1"),
        "muscle_length": (path, "m"),
        "fiber_length": (state[:, :, 1], "m"),
        "fiber_velocity": (state[:, :, 2], "m/s"),
        "muscle_force": (force, "N"),
        "active_fiber_force": (active, "N"),
        "passive_fiber_force": (passive, "N"),
    }
    data = {name: (("time", "muscle"), values, {"units": units}) for name, (values, units) in variables.items()}
    meanings = "; ".join(f"{code}: {text}" for code, text in STATUS.items())
    data["muscle_status"] = (("time", "muscle"), status, {"units": "1", "meaning": meanings})
    return xr.Dataset(data, {"time": ("time", time, {"units": "s"}), "muscle": list(arrays.names)})


def status_warnings(arrays: MuscleArrays, status: NDArray[np.int64]) -> list[str]:
    """Return a warning for every status but "converged", with the muscles it concerns and the fraction of frames.

    Args:
        arrays: Muscles of a model, of `make_muscle_arrays`.
        status: Status (frames, muscles), as of `fiber_velocity`.
    """
    warnings = []
    for code, meaning in STATUS.items():
        fraction = (status == code).mean(axis=0)
        names = [f"{n} ({f:.0%})" for n, f in zip(arrays.names, fraction, strict=True) if f > 0.0]
        if code != codes.CONVERGED and names:
            warnings.append(f"Muscle state {meaning!r} (fraction of frames): {list_names(names, 8)}.")
    return warnings


def _check_fraction(what: str, arrays: MuscleArrays, values: Floats) -> None:
    """Raise SettingsError where values are outside 0 to 1."""
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        frame, muscle = np.argwhere(outside)[0]
        found = f"{values[frame, muscle]:g} of muscle {arrays.names[muscle]!r} in frame {frame}"
        raise SettingsError(f"{what}: The {found} is outside 0 to 1. Clip or normalize the values.")

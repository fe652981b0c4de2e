"""Activation dynamics of muscles: rates and steps from excitations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError
from borelli.muscles.excitations import Excitations, interval_values
from borelli.muscles.hill_kernels.arrays import Floats
from borelli.muscles.muscle_arrays import MuscleArrays, kernel_arrays

__all__ = ["activation_rate", "simulate_activation"]


def activation_rate(arrays: MuscleArrays, activation: ArrayLike, excitation: ArrayLike) -> tuple[Floats, Floats]:
    """Return da/dt [1/s] and its derivative with respect to the activation [1/s], (frames, muscles).

    Args:
        arrays: Muscles of a model, of `make_muscle_arrays`.
        activation: Activations (frames, muscles), 0 to 1.
        excitation: Excitations (frames, muscles), 0 to 1.
    """
    from borelli.muscles.hill_kernels.activation import fill_activation_rate

    a, u = (np.ascontiguousarray(values, float) for values in np.broadcast_arrays(activation, excitation))
    if a.ndim != 2 or a.shape[1] != len(arrays.names):
        raise SettingsError(f"activation: The shape is {a.shape}. Give (frames, {len(arrays.names)}).")
    rate, slope = np.zeros_like(a), np.zeros_like(a)
    fill_activation_rate(kernel_arrays(arrays), a, u, rate, slope)
    return rate, slope


def simulate_activation(
    arrays: MuscleArrays,
    time: ArrayLike,
    excitation: ArrayLike | Callable[[Floats], ArrayLike] | Excitations,
    activation: ArrayLike | None = None,
) -> Floats:
    """Return activations (frames, muscles) that follow from excitations; exact for constant ones of Park and Winters.

    Args:
        arrays: muscles.
        time: frames [s].
        excitation: (frames, muscles), a function of times, or a table.
        activation: initial activations (muscles). Default: those of the model.
    """
    from borelli.muscles.hill_kernels.activation import fill_activation_steps

    frames = np.asarray(time, float)
    grid = excitation.merged_times(frames) if isinstance(excitation, Excitations) else frames
    start, end = interval_values(arrays.names, grid, excitation)
    result = np.zeros_like(end)
    initial = arrays.default_activation if activation is None else np.asarray(activation, float)
    result[0] = np.clip(initial, arrays.min_activation, arrays.max_activation)
    fill_activation_steps(kernel_arrays(arrays), grid, start, end, result)
    return result[np.searchsorted(grid, frames)]

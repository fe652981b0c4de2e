"""Excitations of a run as a table: values of every muscle at the start and the end of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.memory import check_memory
from borelli.model.model import Model
from borelli.muscles.excitations import Excitations
from borelli.physics.muscle_step.arrays import check_muscles

Floats = NDArray[np.float64]

Excitation = float | ArrayLike | Callable[[Floats], ArrayLike]
"""A constant, values at the ends of all steps (steps + 1), or a function of times [s] that returns them."""
ExcitationInput = Excitations | Mapping[str, Excitation] | float
"""A table, an excitation per muscle by name (0 for others), or one constant for all muscles."""
TIME_ROUNDING = 1e-6
"""Fraction of a step by which a jump may miss the end of a step to be counted as at it."""


def make_excitation_table(model: Model, excitations: ExcitationInput, *, step: float, steps: int) -> Floats:
    """Return excitations (steps or 1, muscles, 2) at the start and the end of each step, as `MuscleTables` has them.

    Raises:
        ModelError: The model has neither muscles nor ligaments.
        SettingsError: A muscle is unknown, or a value is NaN or outside 0 to 1.
    """
    check_muscles(model)
    names = [muscle.name for muscle in model.muscles]
    table: Mapping[str, Excitation] | Excitations
    if isinstance(excitations, Excitations | Mapping):
        table = excitations
    else:
        table = dict.fromkeys(names, _checked("excitations", excitations, np.zeros(1))[0])
    for name in table.names if isinstance(table, Excitations) else table:
        if name not in names:
            raise SettingsError(f"excitations: {unknown_name('muscle', name, names)}")
    constant = isinstance(table, Mapping) and all(not callable(v) and np.ndim(v) == 0 for v in table.values())
    rows = 1 if constant else steps
    check_memory(
        16.0 * rows * len(names), f"excitations: {rows} steps of {len(names)} muscles", "Use fewer or longer steps."
    )
    result = np.zeros((rows, len(names), 2))
    time = step * np.arange(rows + 1, dtype=np.float64)
    if isinstance(table, Excitations):
        columns = [names.index(name) for name in table.names]
        early, late = (TIME_ROUNDING * step,) * 2 if table.interpolation == "constant" else (0.0, 0.0)
        result[:, columns, 0] = table(time[:-1] + late)
        result[:, columns, 1] = table(time[1:] - early)
        return result
    for name, values in table.items():
        column = _checked(f"excitations of {name!r}", values(time) if callable(values) else values, time)
        result[:, names.index(name), 0], result[:, names.index(name), 1] = column[:-1], column[1:]
    return result


def _checked(where: str, values: ArrayLike, time: Floats) -> Floats:
    """Return values at times; raise SettingsError if there are too few or many, or one is outside 0 to 1."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise SettingsError(f"{where}: Found {values!r}. Pass numbers, arrays or functions of time.") from None
    if array.shape not in ((), (1,), time.shape):
        raise SettingsError(
            f"{where}: The shape is {array.shape}. Pass one number, or {len(time)}: the values at the ends of steps."
        )
    array = np.broadcast_to(array, time.shape)
    outside = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if len(outside):
        found = f"The value {array[outside[0]]:g} at {time[outside[0]]:g} s"
        raise SettingsError(f"{where}: {found} is outside 0 to 1. Clip or normalize the values.")
    return array

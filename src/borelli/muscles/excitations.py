"""Excitations of muscles as functions of time: tables that are linear or constant between their times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.muscles.hill_kernels.arrays import Floats

INTERPOLATIONS = ("linear", "constant")


@dataclass(frozen=True, slots=True, eq=False)
class Excitations:
    """Table of excitations over time."""

    names: tuple[str, ...]
    """Muscles, one per column."""
    time: Floats
    """(rows) [s], increasing."""
    value: Floats
    """(rows, muscles), 0 to 1."""
    interpolation: str = "linear"
    """"linear" between rows, or "constant" from each row to the next; constant before the first and after the last."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        time, value = np.array(self.time, float), np.array(self.value, float)
        if value.shape != (len(time), len(self.names)) or not np.all(np.diff(time) > 0.0):
            found = f"{len(time)} times, {len(self.names)} muscles and values of shape {value.shape}"
            raise SettingsError(f"Excitations: Found {found}. Give increasing times and (times, muscles) values.")
        if self.interpolation not in INTERPOLATIONS:
            raise SettingsError(f"{unknown_name('interpolation', self.interpolation, INTERPOLATIONS)}.")
        outside = np.argwhere(~((value >= 0.0) & (value <= 1.0)))
        if len(outside):
            row, column = outside[0]
            found = f"{value[row, column]:g} of muscle {self.names[column]!r} at {time[row]:g} s"
            raise SettingsError(f"Excitations: The value {found} is outside 0 to 1. Clip or normalize the values.")
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "value", value)

    def __call__(self, time: ArrayLike) -> Floats:
        """Return the excitations (times, muscles); at a step of a constant table, those after it."""
        return self._values(np.asarray(time, float), "right")

    def merged_times(self, frames: Floats) -> Floats:
        """Return the frames together with the table's own times between them."""
        inside = self.time[(self.time > frames[0]) & (self.time < frames[-1])]
        return np.union1d(frames, inside)

    def select(self, names: Sequence[str]) -> Excitations:
        """Return the table with columns in the order of these muscles.

        Raises:
            SettingsError: if the table has no column of a muscle.
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            found = f"Muscles {list_names(missing, 5)} have no column (columns: {list_names(self.names, 5)})"
            raise SettingsError(f"Excitations: {found}. Add them, or make arrays of the other muscles only.")
        columns = [self.names.index(name) for name in names]
        return Excitations(tuple(names), self.time, self.value[:, columns], self.interpolation)

    def _values(self, time: Floats, side: str) -> Floats:
        if self.interpolation == "linear":
            return np.column_stack([np.interp(time, self.time, column) for column in self.value.T])
        row = np.searchsorted(self.time, time, "right" if side == "right" else "left") - 1
        return self.value[np.clip(row, 0, len(self.time) - 1)]


def interval_values(
    names: Sequence[str], grid: Floats, excitation: ArrayLike | Callable[[Floats], ArrayLike] | Excitations
) -> tuple[Floats, Floats]:
    """Return excitations at the start and the end of the interval before each time of the grid, (times, muscles)."""
    if isinstance(excitation, Excitations):
        table = excitation.select(names)
        start, end = table._values(grid, "right"), table._values(grid, "left")
    else:
        given = excitation(grid) if callable(excitation) else excitation
        start = end = np.asarray(given, float)
        if end.shape != (len(grid), len(names)):
            raise SettingsError(f"excitation: The shape is {end.shape}. Give ({len(grid)}, {len(names)}).")
    return np.ascontiguousarray(np.vstack([start[:1], start[:-1]])), np.ascontiguousarray(end)

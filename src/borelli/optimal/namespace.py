"""Namespaces of expressions: the variables of a system by name, as users write them in costs and constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from borelli.errors import SettingsError, unknown_name


class Namespace:
    """Values by name: `s.force` or `s["force"]`. An unknown name is an error that lists the known ones."""

    def __init__(
        self,
        where: str,
        values: Mapping[str, Any],
        late: Callable[[], Mapping[str, Any]] | None = None,
        late_names: Iterable[str] = (),
    ) -> None:
        """Collect values; `late` computes those of `late_names` on first use."""
        self._where = where
        self._values = dict(values)
        self._late = late
        self._late_names = tuple(late_names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            if name not in self._late_names or self._late is None:
                known = [*self._values, *self._late_names]
                raise SettingsError(f"{self._where}: {unknown_name('name', name, known)}.")
            self._values.update(self._late())
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle look for special methods
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return [*self._values, *self._late_names]

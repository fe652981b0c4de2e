"""What follows from a model alone is found once for each model, and kept as long as the model lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar
from weakref import finalize

from borelli.model.model import Model

T = TypeVar("T")


def cached_per_model(find: Callable[..., T]) -> Callable[..., T]:
    """The function, asked once for each model and further arguments; nobody may change what it returns.

    A model never changes, so what it leads to does not. It is told by what it is, not by what it holds: comparing two
    of them would take as long as most answers.
    """
    kept: dict[int, dict[Hashable, T]] = {}

    @wraps(find)
    def known(model: Model, *args: Hashable) -> T:
        if id(model) not in kept:
            kept.setdefault(id(model), {})
            end: Any = finalize(model, kept.pop, id(model), None)
            end.atexit = False
        found = kept[id(model)]
        if args not in found:
            found[args] = find(model, *args)
        return found[args]

    return known

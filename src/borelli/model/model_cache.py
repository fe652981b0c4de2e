"""Results that depend on a model only, cached while the model exists."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar
from weakref import finalize

from borelli.model.model import Model

T = TypeVar("T")


def cached_per_model(function: Callable[..., T]) -> Callable[..., T]:
    """Return the function with its results cached per model and further arguments.

    Callers must not change the results. Models are immutable and compared by identity: comparing their content would
    take longer than most results.
    """
    results: dict[int, dict[Hashable, T]] = {}

    @wraps(function)
    def cached(model: Model, *args: Hashable) -> T:
        if id(model) not in results:
            results.setdefault(id(model), {})
            end: Any = finalize(model, results.pop, id(model), None)
            end.atexit = False
        own = results[id(model)]
        if args not in own:
            own[args] = function(model, *args)
        return own[args]

    return cached

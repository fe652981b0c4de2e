"""The one place that decides how kernels are compiled and where the machine code is kept.

Machine code is kept in a directory named after a hash of every source that a kernel's module is made from
(`source_hash`). Set `BORELLI_JIT=0` to run the kernels as plain Python (slow; for debugging and coverage).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.source_hash import source_hash

F = TypeVar("F", bound=Callable[..., Any])

JIT_ON = os.environ.get("BORELLI_JIT", "1") != "0"


def cache_root() -> Path:
    """Return where machine code is kept: `BORELLI_CACHE`, else the user's cache directory."""
    named = os.environ.get("BORELLI_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "borelli"


def cache_directory(module: str) -> Path:
    """Return the directory of the machine code that belongs to the present sources of a module."""
    return cache_root() / f"{module.removeprefix('borelli.')}-{source_hash(module)}"


if JIT_ON:
    import numba

    # kernels allocate nothing, so numba need not count references to the arrays in their tuples: that halves the
    # cost of calls and of compiling them
    COMMON: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    UNWRAPPED = COMMON | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def _cached(function: F, options: dict[str, Any]) -> F:
        # numba reads the setting while decorating; a user's own kernels keep theirs
        users = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_directory(function.__module__))
        try:
            compiled: F = numba.njit(function, cache=True, **options)
        finally:
            numba.config.CACHE_DIR = users
        return compiled

    def kernel(function: F) -> F:
        """Compile a function that Python calls: cached, no bounds checks, no fastmath, no allocation."""
        return _cached(function, COMMON)

    def kernel_function(function: F) -> F:
        """Compile a function that only kernels call."""
        return _cached(function, UNWRAPPED)

    def inline_into_caller(function: F) -> F:
        """Write a function into its only caller before that is compiled: saves optimising the same code twice."""
        compiled: F = numba.njit(function, inline="always", **UNWRAPPED)
        return compiled

    def inline(function: F) -> F:
        """Compile a small function that is written into the kernel that calls it."""
        compiled: F = numba.njit(function, forceinline=True, **UNWRAPPED)
        return compiled

    def by_pointer(function: Any) -> Any:
        """The part, called by its address: its caller is compiled without it, where numba would optimise it anew.

        The call takes the table that `pointer_table` made before the part's own arguments. Where the part is in that table,
        and for what types, `register_pointers` was told.
        """

        def call(typing: Any, table: Any, *arguments: Any) -> Any:
            slot, types = _FAR[function]
            if types != arguments:
                raise numba.TypingError(f"{function.__name__} is called with {arguments}; its address is for {types}")
            function.compile(types)
            returns = function.overloads[types].signature.return_type

            def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                array = context.make_array(table)(context, builder, given[0])
                place = builder.gep(array.data, [context.get_constant(numba.types.intp, slot)])
                convention = context.call_conv
                pointer_type = convention.get_function_type(returns, types).as_pointer()
                pointer = builder.inttoptr(builder.load(place), pointer_type)
                values = [builder.extract_value(given[1], i) for i in range(len(types))]
                status, result = convention.call_function(builder, pointer, returns, types, values)
                with builder.if_then(status.is_error, likely=False):
                    convention.return_status_propagate(builder, status)
                return result

            return returns(table, numba.types.BaseTuple.from_types(arguments)), emit

        return numba.extending.intrinsic(call)

    _FAR: dict[Any, tuple[int, tuple[Any, ...]]] = {}

    def register_pointers(parts: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Tell the places in the table of parts, from `first` on, and the types of their arguments by samples."""
        for slot, (function, sample) in enumerate(parts.items(), first):
            _FAR[function] = (slot, tuple(numba.typeof(argument) for argument in sample))

    def compile_pointer(function: Any) -> None:
        """Compile a registered part, or load it."""
        function.compile(_FAR[function][1])

    def pointer_table(parts: Iterable[Any]) -> NDArray[np.int64]:
        """The table of addresses of registered parts, compiled or loaded."""
        found = [(function, *_FAR[function]) for function in parts]
        table = np.zeros(1 + max(slot for _, slot, _ in found), np.int64)
        for function, slot, types in found:
            compile_pointer(function)
            compiled = function.overloads[types]
            table[slot] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return table

else:

    def kernel(function: F) -> F:
        """Leave the function as it is (JIT switched off)."""
        return function

    kernel_function = inline_into_caller = inline = kernel

    def by_pointer(function: Any) -> Any:
        """A call that needs no table."""
        return lambda table, *arguments: function(*arguments)

    def register_pointers(parts: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Nothing is compiled."""

    def compile_pointer(function: Any) -> None:
        """Nothing is compiled."""

    def pointer_table(parts: Iterable[Any]) -> NDArray[np.int64]:
        """Nothing is compiled."""
        return np.zeros(0, np.int64)

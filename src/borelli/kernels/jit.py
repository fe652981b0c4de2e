"""Compilation of kernels by numba; `machine_code` stores the result.

Set `BORELLI_JIT=0` to run the kernels as plain Python (slow; for debugging and coverage).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.machine_code import MachineCodeCache

F = TypeVar("F", bound=Callable[..., Any])

JIT_ON = os.environ.get("BORELLI_JIT", "1") != "0"


def _takes_pointers(function: Any) -> bool:
    """Return True if the first parameter of a function is the table of function pointers."""
    parameters = inspect.signature(getattr(function, "py_func", function)).parameters
    return next(iter(parameters), "") == "pointers"


if JIT_ON:
    import numba

    # kernels allocate nothing, so numba need not count references to the arrays in their tuples: that halves the
    # cost of calls and of compiling them
    COMMON: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    UNWRAPPED = COMMON | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def _cached(function: F, options: dict[str, Any]) -> F:
        compiled: F = numba.njit(function, **options)
        compiled._cache = MachineCodeCache(function)  # type: ignore[attr-defined]
        return compiled

    def _compiled_once(compiled: Any) -> Any:
        """Let all constants of a type share one compiled signature.

        numba would compile one for each constant, also for those that a counter has only before type inference ends.
        """
        call_template = compiled.get_call_template

        def without_constants(arguments: Any, keywords: Any) -> Any:
            return call_template(tuple(map(numba.types.unliteral, arguments)), keywords)

        compiled.get_call_template = without_constants
        return compiled

    def kernel(function: F) -> F:
        """Compile a function that Python calls: cached, no bounds checks, no fastmath, no allocation."""
        return _cached(function, COMMON)

    def kernel_function(function: F) -> F:
        """Compile a function that only kernels call."""
        return cast(F, _compiled_once(_cached(function, UNWRAPPED)))

    def inline_into_caller(function: F) -> F:
        """Insert a function into its only caller before that is compiled: saves optimizing the same code twice."""
        compiled: F = numba.njit(function, inline="always", **UNWRAPPED)
        return compiled

    def inline(function: F) -> F:
        """Compile a small function that LLVM inlines into the kernel that calls it."""
        return cast(F, _compiled_once(_cached(function, UNWRAPPED | {"forceinline": True})))

    def by_pointer(function: Any) -> Any:
        """Return a function that calls a kernel function by its address.

        The caller is compiled without the callee, which numba would optimize once more with each caller. The first
        argument of the call is the table from `pointer_table`; a callee whose first parameter is `pointers` gets it.
        `register_pointers` sets the position of the callee in the table and the types of its arguments.
        """
        passes_table = _takes_pointers(function)

        def call(typing: Any, table: Any, *arguments: Any) -> Any:
            slot, types = _REGISTERED[function]
            passed = (table, *arguments) if passes_table else arguments
            if types != passed:
                raise numba.TypingError(f"{function.__name__} is called with {passed}; its pointer is for {types}")
            function.compile(types)
            returns = function.overloads[types].signature.return_type

            def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                array = context.make_array(table)(context, builder, given[0])
                entry = builder.gep(array.data, [context.get_constant(numba.types.intp, slot)])
                convention = context.call_conv
                pointer_type = convention.get_function_type(returns, types).as_pointer()
                pointer = builder.inttoptr(builder.load(entry), pointer_type)
                values = [builder.extract_value(given[1], i) for i in range(len(arguments))]
                if passes_table:
                    values.insert(0, given[0])
                status, result = convention.call_function(builder, pointer, returns, types, values)
                with builder.if_then(status.is_error, likely=False):
                    convention.return_status_propagate(builder, status)
                return result

            return returns(table, numba.types.BaseTuple.from_types(arguments)), emit

        return numba.extending.intrinsic(call)

    _REGISTERED: dict[Any, tuple[int, tuple[Any, ...]]] = {}

    def register_pointers(samples: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Set the positions of kernel functions in the table, from `first` on, and their types by sample arguments."""
        for slot, (function, sample) in enumerate(samples.items(), first):
            _REGISTERED[function] = (slot, tuple(numba.typeof(argument) for argument in sample))

    def compile_pointer(function: Any) -> None:
        """Compile a registered kernel function, or load it from the cache."""
        function.compile(_REGISTERED[function][1])

    def pointer_table(functions: Iterable[Any]) -> NDArray[np.int64]:
        """Return the addresses of registered kernel functions, compiled or loaded from the cache."""
        listed = [(function, *_REGISTERED[function]) for function in functions]
        table = np.zeros(1 + max(slot for _, slot, _ in listed), np.int64)
        for function, slot, types in listed:
            compile_pointer(function)
            compiled = function.overloads[types]
            table[slot] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return table

else:

    def kernel(function: F) -> F:
        """Return the function itself: the JIT is switched off."""
        return function

    kernel_function = inline_into_caller = inline = kernel

    def by_pointer(function: Any) -> Any:
        """Return a function that makes a plain call."""
        if _takes_pointers(function):
            return function
        return lambda pointers, *arguments: function(*arguments)

    def register_pointers(samples: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Do nothing: the JIT is switched off."""

    def compile_pointer(function: Any) -> None:
        """Do nothing: the JIT is switched off."""

    def pointer_table(functions: Iterable[Any]) -> NDArray[np.int64]:
        """Return an empty table: the JIT is switched off."""
        return np.zeros(0, np.int64)

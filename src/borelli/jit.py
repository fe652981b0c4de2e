"""The one place that decides how kernels are compiled and where the machine code is kept.

numba's own cache looks only at the file of the function it compiles, so an edit in a module that the function calls
would go unseen. Machine code is therefore kept in a directory named after a hash of every kernel source of its room.
Set `BORELLI_JIT=0` to run the kernels as plain Python (slow; for debugging and coverage).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

JIT_ON = os.environ.get("BORELLI_JIT", "1") != "0"
PACKAGE = Path(__file__).parent


ROOMS = ("physics", "physics/impulse", "reduced", "view")
"""Packages that hold kernels. One within another calls the outer one's kernels; no other calls those of another, so an
edit in one leaves the others' machine code good."""


def kernel_sources(room: str) -> list[Path]:
    """Every module that kernels of a room are made from, in a fixed order."""
    folders = [PACKAGE / outer for outer in ROOMS if f"{room}/".startswith(f"{outer}/")]
    modules = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.name != "warmup.py"]
    return [PACKAGE / "jit.py", PACKAGE / "rotations.py", PACKAGE / "sharing.py", *modules]


def room_of(module: str) -> str:
    """The innermost room that a module is in; that of steps for those of the ground."""
    inside = "/".join(module.split(".")[1:])
    return max((room for room in ROOMS if inside.startswith(f"{room}/")), key=len, default=ROOMS[0])


@cache
def source_hash(room: str) -> str:
    """A hash that changes when any kernel source of the room changes."""
    digest = hashlib.sha256()
    for path in kernel_sources(room):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Where machine code is kept: `BORELLI_CACHE`, else the user's cache directory."""
    named = os.environ.get("BORELLI_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "borelli"


def cache_directory(room: str = "physics") -> Path:
    """The directory of the machine code that belongs to the present sources of a room."""
    return cache_root() / f"{room.replace('/', '-')}-{source_hash(room)}"


if JIT_ON:
    import numba

    # kernels allocate nothing, so numba need not count references to the arrays in their tuples: that halves the
    # cost of calls and of compiling them
    COMMON: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    UNWRAPPED = COMMON | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def _cached(function: F, options: dict[str, Any]) -> F:
        numba.config.CACHE_DIR = str(cache_directory(room_of(function.__module__)))  # read while decorating
        compiled: F = numba.njit(function, cache=True, **options)
        return compiled

    def kernel(function: F) -> F:
        """Compile a function that Python calls: cached, no bounds checks, no fastmath, no allocation."""
        return _cached(function, COMMON)

    def part(function: F) -> F:
        """Compile a function that only kernels call."""
        return _cached(function, UNWRAPPED)

    def stage(function: F) -> F:
        """Write a function into its only caller before that is compiled: saves optimising the same code twice."""
        compiled: F = numba.njit(function, inline="always", **UNWRAPPED)
        return compiled

    def leaf(function: F) -> F:
        """Compile a small function that is written into the kernel that calls it."""
        compiled: F = numba.njit(function, forceinline=True, **UNWRAPPED)
        return compiled

    def far(function: Any) -> Any:
        """The part, called by its address: its caller is compiled without it, where numba would optimise it anew.

        The call takes the table that `find_far` made before the part's own arguments. Where the part is in that table,
        and for what types, `register_far` was told.
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

    def register_far(parts: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Tell the places in the table of parts, from `first` on, and the types of their arguments by samples."""
        for slot, (function, sample) in enumerate(parts.items(), first):
            _FAR[function] = (slot, tuple(numba.typeof(argument) for argument in sample))

    def compile_far(function: Any) -> None:
        """Compile a registered part, or load it."""
        function.compile(_FAR[function][1])

    def find_far(parts: Iterable[Any]) -> NDArray[np.int64]:
        """The table of addresses of registered parts, compiled or loaded."""
        found = [(function, *_FAR[function]) for function in parts]
        table = np.zeros(1 + max(slot for _, slot, _ in found), np.int64)
        for function, slot, types in found:
            compile_far(function)
            compiled = function.overloads[types]
            table[slot] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return table

else:

    def kernel(function: F) -> F:
        """Leave the function as it is (JIT switched off)."""
        return function

    part = stage = leaf = kernel

    def far(function: Any) -> Any:
        """A call that needs no table."""
        return lambda table, *arguments: function(*arguments)

    def register_far(parts: Mapping[Any, tuple[Any, ...]], first: int = 0) -> None:
        """Nothing is compiled."""

    def compile_far(function: Any) -> None:
        """Nothing is compiled."""

    def find_far(parts: Iterable[Any]) -> NDArray[np.int64]:
        """Nothing is compiled."""
        return np.zeros(0, np.int64)

"""Named tuples of arrays that kernels get as one address instead of array by array.

The tables, state and work arrays of a model are more than a hundred arrays. A kernel that takes them as arguments
spends seconds of compilation on unpacking them, and so does every call that passes them on. A shared tuple is one
argument; `load_shared` in a kernel returns the tuple, of which only the used arrays are loaded. Arrays of a shared
tuple must not be replaced, only written to; `SharedTuples` detects a new tuple and shares it.

A shared tuple contains raw addresses, valid for its own arrays in its own process only. Copies and pickles therefore
contain the tuple alone and compute their own addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import JIT_ON

if JIT_ON:
    import numba
    from numba import _dispatcher
    from numba.core import cgutils, types
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import (
        NativeValue,
        infer_getattr,
        intrinsic,
        lower_getattr_generic,
        models,
        register_model,
        typeof_impl,
        unbox,
    )

    class SharedTuple:
        """A named tuple of arrays and of such tuples, with a list of their addresses that kernels read."""

        def __init__(self, value: Any) -> None:
            self.value = value
            self._words: NDArray[np.int64] = np.array(_words(value), np.int64)
            self.address = self._words.ctypes.data
            self.type = _type_of(value)

        def __reduce__(self) -> tuple[Any, ...]:
            return SharedTuple, (self.value,)

    class SharedType(types.Type):
        """The numba type of a shared tuple, determined by the type of the tuple."""

        def __init__(self, inside: Any) -> None:
            self.inside = inside
            super().__init__(name=f"shared({inside})")

    _TYPES: dict[bytes, SharedType] = {}

    def _type_of(value: Any) -> SharedType:
        # inferring the type takes longer than the rest of sharing, so types are cached
        fingerprint = _dispatcher.compute_fingerprint(value)
        if fingerprint not in _TYPES:
            _TYPES[fingerprint] = SharedType(numba.typeof(value))
        return _TYPES[fingerprint]

    register_model(SharedType)(models.OpaqueModel)

    @typeof_impl.register(SharedTuple)
    def _typeof(value: SharedTuple, context: Any) -> SharedType:
        return value.type

    @unbox(SharedType)
    def _unbox(kind: SharedType, object_: Any, c: Any) -> NativeValue:
        address = c.pyapi.object_getattr_string(object_, "address")
        pointer = c.pyapi.long_as_voidptr(address)
        c.pyapi.decref(address)
        return NativeValue(pointer, is_error=c.pyapi.c_api_error())

    def _words(value: Any) -> list[int]:
        """Return address, size, shape and strides of each array, in order."""
        if isinstance(value, np.ndarray):
            return [value.ctypes.data, value.size, *value.shape, *value.strides]
        return [word for inner in value for word in _words(inner)]

    def _load(context: Any, builder: Any, words: Any, kind: Any, offset: int) -> tuple[Any, int]:
        """Return the value that starts at an offset in the words, and the offset after it."""
        if isinstance(kind, types.BaseTuple):
            inner = []
            for one in kind.types:
                value, offset = _load(context, builder, words, one, offset)
                inner.append(value)
            return context.make_tuple(builder, kind, inner), offset
        if not isinstance(kind, types.Array):
            raise numba.TypingError(f"A shared tuple may contain arrays only, not {kind}.")

        def word(i: int) -> Any:
            return builder.load(builder.gep(words, [context.get_constant(types.intp, offset + i)]))

        array = context.make_array(kind)(context, builder)
        array.data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
        array.nitems = word(1)
        array.itemsize = context.get_constant(types.intp, np.dtype(str(kind.dtype)).itemsize)
        extents = [word(2 + i) for i in range(2 * kind.ndim)]
        array.shape = cgutils.pack_array(builder, extents[: kind.ndim], extents[0].type)
        array.strides = cgutils.pack_array(builder, extents[kind.ndim :], extents[0].type)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue(), offset + 2 + 2 * kind.ndim

    @intrinsic
    def load_shared(typing: Any, *shared: Any) -> Any:
        """Return the tuple of a shared tuple, or a tuple of those of several; a plain tuple is returned as it is.

        A kernel function gets a shared tuple and loads it: numba passes a plain one array by array over the stack.
        """
        for kind in shared:
            if not isinstance(kind, SharedType | types.BaseTuple):
                raise numba.TypingError(f"load_shared takes shared tuples only, not {kind}.")
        inside = [kind.inside if isinstance(kind, SharedType) else kind for kind in shared]
        returns = inside[0] if len(shared) == 1 else types.Tuple(inside)

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            values = []
            for i, kind in enumerate(inside):
                value = builder.extract_value(given[0], i)
                if isinstance(shared[i], SharedType):
                    value = _load(context, builder, _words_at(context, builder, value), kind, 0)[0]
                values.append(value)
            return values[0] if len(values) == 1 else context.make_tuple(builder, returns, values)

        return returns(types.BaseTuple.from_types(shared)), emit

    @infer_getattr
    class _SharedAttributes(AttributeTemplate):
        key = SharedType

        def generic_resolve(self, kind: SharedType, name: str) -> Any:
            """Return the type of a field: an array, or a shared tuple within this one."""
            fields = getattr(kind.inside, "fields", ())
            if name in fields:
                inside = kind.inside.types[fields.index(name)]
                return SharedType(inside) if isinstance(inside, types.BaseTuple) else inside
            return None

    @lower_getattr_generic(SharedType)
    def _field(context: Any, builder: Any, kind: SharedType, value: Any, name: str) -> Any:
        number = kind.inside.fields.index(name)
        offset = sum(map(_length, kind.inside.types[:number]))
        words = _words_at(context, builder, value)
        inside = kind.inside.types[number]
        if not isinstance(inside, types.BaseTuple):
            return _load(context, builder, words, inside, offset)[0]
        return builder.bitcast(builder.gep(words, [context.get_constant(types.intp, offset)]), value.type)

    def _length(kind: Any) -> int:
        """Return the number of words of an array or tuple."""
        return sum(map(_length, kind.types)) if isinstance(kind, types.BaseTuple) else 2 + 2 * kind.ndim

    def _words_at(context: Any, builder: Any, pointer: Any) -> Any:
        return builder.bitcast(pointer, context.get_value_type(types.intp).as_pointer())

else:

    def SharedTuple(value: Any) -> Any:  # type: ignore[no-redef]
        """Return the tuple itself: Python needs no address."""
        return value

    def load_shared(*shared: Any) -> Any:
        """Return the tuple of a shared tuple, or a tuple of those of several."""
        return shared[0] if len(shared) == 1 else shared


class SharedTuples:
    """Shared tuples by name, each reused as long as its tuple is the same object."""

    def __init__(self) -> None:
        self._shared: dict[str, tuple[Any, Any]] = {}

    def __call__(self, name: str, value: Any, check: Callable[[Any], None] | None = None) -> Any:
        """Return the shared tuple of a tuple; `check` raises an error if kernels cannot take it."""
        known = self._shared.get(name)
        if known is None or known[0] is not value:
            if check is not None:
                check(value)
            known = self._shared[name] = (value, SharedTuple(value))
        return known[1]

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy shares the tuples of its own owner
        return SharedTuples, ()


Owner = TypeVar("Owner", bound="ArrayOwner")


class ArrayOwner:
    """Base of classes that let kernels write to their arrays: every copy, also a shallow one, has its own arrays."""

    def __copy__(self: Owner) -> Owner:
        return deepcopy(self)

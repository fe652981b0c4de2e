"""Named tuples of arrays that kernels find in memory, by one address, instead of being handed array by array.

The tables, state and work of a model are more than a hundred arrays. A kernel that takes them as arguments spends
seconds of compiling on taking them apart, and so does every call that hands them on. Shared, they are one argument;
`read` in a kernel gives the tuple, of which only what is used is loaded. What was shared must not be replaced, only
written to: `SharedTuples` notices and shares anew.
"""

from __future__ import annotations

from typing import Any

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
        """A named tuple of arrays and of such tuples, written down where kernels can read it."""

        def __init__(self, value: Any) -> None:
            self.value = value
            self._room: NDArray[np.int64] = np.array(_words(value), np.int64)
            self.address = self._room.ctypes.data
            self.type = _type_of(value)

    class SharedType(types.Type):
        """The type of a shared tuple: that of the tuple decides."""

        def __init__(self, inside: Any) -> None:
            self.inside = inside
            super().__init__(name=f"shared({inside})")

    _TYPES: dict[bytes, SharedType] = {}

    def _type_of(value: Any) -> SharedType:
        """The type; finding it takes longer than all else that sharing is, so those known are kept."""
        mark = _dispatcher.compute_fingerprint(value)
        known = _TYPES.get(mark)
        if known is None:
            known = _TYPES[mark] = SharedType(numba.typeof(value))
        return known

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
        """Of each array, in order: its address, its size, its shape and its strides."""
        if isinstance(value, np.ndarray):
            return [value.ctypes.data, value.size, *value.shape, *value.strides]
        return [word for inner in value for word in _words(inner)]

    def _load(context: Any, builder: Any, words: Any, kind: Any, place: int) -> tuple[Any, int]:
        """The value that starts at a place among the words, and the place after it."""
        if isinstance(kind, types.BaseTuple):
            inner = []
            for one in kind.types:
                value, place = _load(context, builder, words, one, place)
                inner.append(value)
            return context.make_tuple(builder, kind, inner), place
        if not isinstance(kind, types.Array):
            raise numba.TypingError(f"only arrays are shared, got {kind}")

        def word(i: int) -> Any:
            return builder.load(builder.gep(words, [context.get_constant(types.intp, place + i)]))

        array = context.make_array(kind)(context, builder)
        array.data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
        array.nitems = word(1)
        array.itemsize = context.get_constant(types.intp, np.dtype(str(kind.dtype)).itemsize)
        extents = [word(2 + i) for i in range(2 * kind.ndim)]
        array.shape = cgutils.pack_array(builder, extents[: kind.ndim], extents[0].type)
        array.strides = cgutils.pack_array(builder, extents[kind.ndim :], extents[0].type)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue(), place + 2 + 2 * kind.ndim

    @intrinsic
    def load_shared(typing: Any, *shared: Any) -> Any:
        """The tuple that was shared, or those of several."""
        for kind in shared:
            if not isinstance(kind, SharedType):
                raise numba.TypingError(f"only what is shared is read, got {kind}")
        inside = [kind.inside for kind in shared]
        returns = inside[0] if len(shared) == 1 else types.Tuple(inside)

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            found = []
            for i, kind in enumerate(inside):
                words = _words_at(context, builder, builder.extract_value(given[0], i))
                found.append(_load(context, builder, words, kind, 0)[0])
            return found[0] if len(found) == 1 else context.make_tuple(builder, returns, found)

        return returns(types.BaseTuple.from_types(shared)), emit

    @infer_getattr
    class _SharedAttributes(AttributeTemplate):
        key = SharedType

        def generic_resolve(self, kind: SharedType, name: str) -> Any:
            """What a field of the tuple is: an array, or a tuple that is shared with it."""
            fields = getattr(kind.inside, "fields", ())
            if name in fields:
                inside = kind.inside.types[fields.index(name)]
                return SharedType(inside) if isinstance(inside, types.BaseTuple) else inside
            return None

    @lower_getattr_generic(SharedType)
    def _field(context: Any, builder: Any, kind: SharedType, value: Any, name: str) -> Any:
        number = kind.inside.fields.index(name)
        place = sum(map(_length, kind.inside.types[:number]))
        words = _words_at(context, builder, value)
        inside = kind.inside.types[number]
        if not isinstance(inside, types.BaseTuple):
            return _load(context, builder, words, inside, place)[0]
        return builder.bitcast(builder.gep(words, [context.get_constant(types.intp, place)]), value.type)

    def _length(kind: Any) -> int:
        """Words that an array or tuple takes."""
        return sum(map(_length, kind.types)) if isinstance(kind, types.BaseTuple) else 2 + 2 * kind.ndim

    def _words_at(context: Any, builder: Any, pointer: Any) -> Any:
        return builder.bitcast(pointer, context.get_value_type(types.intp).as_pointer())

else:

    def SharedTuple(value: Any) -> Any:  # type: ignore[no-redef]
        """The tuple itself: Python hands over what it is."""
        return value

    def load_shared(*shared: Any) -> Any:
        """The tuple that was shared, or those of several."""
        return shared[0] if len(shared) == 1 else shared


class SharedTuples:
    """Shared tuples by name, kept as long as they are the same tuples."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Any]] = {}

    def __call__(self, name: str, value: Any) -> Any:
        """The tuple, shared."""
        known = self._known.get(name)
        if known is None or known[0] is not value:
            known = self._known[name] = (value, SharedTuple(value))
        return known[1]

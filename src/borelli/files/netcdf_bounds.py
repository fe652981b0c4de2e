"""Bounds on the structure of HDF5 files, checked before anything is loaded.

HDF5 itself trusts the sizes and links stated by a file. Files of borelli have one level of groups; their arrays are
numbers and strings, stored in the file itself without compression.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from borelli.errors import FileFormatError

if TYPE_CHECKING:
    import h5py

EXTRA_BYTES = 16_000_000
"""Memory [bytes] that arrays may take beyond four times the size of their file: strings take more there."""
MAX_ARRAYS = 1000
"""Groups, variables and coordinates of one file; the uncertainty of an analysis has about 250."""
MAX_ATTRIBUTES = 100
"""Attributes of one group or array; a recording has about ten."""
MAX_STRINGS = 64
"""Strings in one attribute, each of which may be as long as the file."""
MAX_DIMENSIONS = 8
"""Dimensions of one array."""
MAX_NAME = 300
"""Characters of a name."""
STRING_MEMORY = 64
"""Memory [bytes] of a string besides its characters, which take 5 bytes each: once as they are, once as an array."""
STRING_REFERENCE = np.dtype([("length", "<u4"), ("address", "V12")])
"""Element of a string array in the file: a length and an address in a heap."""
HEAP = b"GCOL\x01"
"""First bytes of a heap of strings (global heap collection), before three of padding and its size."""
WINDOW = 64 * 1024**2
"""Bytes of a file that are searched for heaps at a time."""
HEAP_HEADER = 16
"""Bytes before the objects of a heap, and before the content of each object."""
HEAP_OBJECT = struct.Struct("<H6xQ")
"""Index and length of an object."""
REMEDY = "Copy the file again, or create it again."


def check_structure(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the root attributes and the groups of a file; raise `FileFormatError` if its structure is not bounded."""
    import h5py

    budget = _Budget(path, path.stat().st_size)
    _check_string_heaps(budget)
    with h5py.File(path, "r") as file:
        _check_attributes(file, budget)
        groups = []
        for name, item in _items(file, budget):
            if isinstance(item, h5py.Group):
                groups.append(name)
                _check_attributes(item, budget)
                for inner_name, inner in _items(item, budget):
                    _check_array(f"{name}/{inner_name}", inner, budget)
            else:
                _check_array(name, item, budget)
        attributes = {name: file.attrs[name] for name in file.attrs}
    return attributes, tuple(groups)


@dataclass
class _Budget:
    """Memory and number of arrays found so far."""

    path: Path
    size: int
    memory: int = 0
    arrays: int = 0

    @property
    def limit(self) -> int:
        return 4 * self.size + EXTRA_BYTES

    def add(self, name: str, memory: int) -> None:
        """Add the memory [bytes] of an array or attribute."""
        self.memory += memory
        if self.memory > self.limit:
            what = f"The file is damaged: it has {self.size} bytes, but its arrays up to {name!r} would take"
            self.refuse(f"{what} {self.memory} bytes (maximum {self.limit}).")

    def refuse(self, problem: str) -> NoReturn:
        """Raise `FileFormatError`."""
        raise FileFormatError(self.path, f"{problem} {REMEDY}")


def _check_string_heaps(budget: _Budget) -> None:
    """Refuse strings whose sizes exceed their heap: HDF5 2.0 loops forever over sizes that are zero or overflow."""
    with budget.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for first in range(0, len(content), WINDOW):
            end = min(first + WINDOW + len(HEAP) - 1, len(content))
            start = content.find(HEAP, first, end)
            while start >= 0:
                if not _is_sound_heap(content, start):
                    budget.refuse("The file is damaged: its strings have wrong lengths.")
                start = content.find(HEAP, start + 1, end)  # heaps may be hidden in the strings of others
            if hasattr(content, "madvise"):  # the window need not stay in memory
                content.madvise(mmap.MADV_DONTNEED, first, min(WINDOW, len(content) - first))


def _is_sound_heap(content: mmap.mmap, start: int) -> bool:
    """Return whether the objects of a heap lie inside it, and it in the file."""
    size = int.from_bytes(content[start + 8 : start + HEAP_HEADER], "little")
    if not HEAP_HEADER <= size <= len(content) - start:
        # numbers can begin like a heap, but by chance not with three bytes of padding too; HDF5 reads no such heap
        return content[start + len(HEAP) : start + 8] != bytes(3)
    place, end, sound = start + HEAP_HEADER, start + size, True
    while sound and place + HEAP_HEADER <= end:
        index, length = HEAP_OBJECT.unpack_from(content, place)
        # the object of index 0 is free space, whose length includes its header
        place += HEAP_HEADER + -(-length // 8) * 8 if index else length
        sound = place <= end and (index > 0 or length >= HEAP_HEADER)
    return sound


def _items(group: h5py.Group, budget: _Budget) -> Iterator[tuple[str, Any]]:
    """Yield the names and objects of a group; refuse links and too many objects."""
    import h5py

    budget.arrays += len(group)
    if budget.arrays > MAX_ARRAYS:
        budget.refuse(f"The file has {budget.arrays} variables and groups (maximum {MAX_ARRAYS}).")
    for name in group:
        if len(name) > MAX_NAME:
            budget.refuse(f"A name has {len(name)} characters (maximum {MAX_NAME}).")
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            budget.refuse(f"{name!r} is a link to another location, which is not followed.")
        yield name, group[name]


def _check_attributes(item: h5py.HLObject, budget: _Budget) -> None:
    """Refuse attributes that are too many or too large, and types that netCDF does not have."""
    from h5py import h5a, h5t

    count = h5a.get_num_attrs(item.id)
    if count > MAX_ATTRIBUTES:
        budget.refuse(f"{item.name!r} has {count} attributes (maximum {MAX_ATTRIBUTES}).")
    for index in range(count):
        attribute = h5a.open(item.id, index=index)
        kind, elements = attribute.get_type(), math.prod(attribute.shape)
        where = f"The attribute {attribute.name.decode('utf-8', 'replace')[:MAX_NAME]!r} of {item.name!r}"
        references = isinstance(kind, h5t.TypeVlenID) and kind.get_super().get_class() == h5t.REFERENCE
        strings = isinstance(kind, h5t.TypeStringID) and kind.is_variable_str()
        table = isinstance(kind, h5t.TypeCompoundID) and attribute.name == b"REFERENCE_LIST"
        if not (references or strings or table or isinstance(kind, h5t.TypeStringID | h5t.TypeAtomicID)):
            budget.refuse(f"{where} is neither a number nor a string.")
        if (strings or references) and elements > MAX_STRINGS:
            budget.refuse(f"{where} has {elements} elements (maximum {MAX_STRINGS}).")
        budget.add(attribute.name.decode("utf-8", "replace")[:MAX_NAME], elements * kind.get_size())


def _check_array(name: str, array: Any, budget: _Budget) -> None:
    """Refuse an array that takes too much memory, has other types than borelli writes, or is not in this file."""
    import h5py

    if not isinstance(array, h5py.Dataset) or array.shape is None:
        budget.refuse(f"{name!r} is not an array of values.")
    if array.is_virtual or array.external:
        budget.refuse(f"The values of {name!r} are in another file, which is not followed.")
    if array.id.get_create_plist().get_nfilters():
        budget.refuse(f"The values of {name!r} are compressed or filtered, expected plain values.")
    string = h5py.check_string_dtype(array.dtype)
    if array.dtype.kind not in "fiubSO" or array.dtype.itemsize > max(8, budget.size) or array.dtype == np.float16:
        budget.refuse(f"{name!r} contains {array.dtype}, expected numbers or strings.")
    if array.ndim > MAX_DIMENSIONS or (array.dtype.kind == "O" and string is None):
        budget.refuse(f"{name!r} has shape {array.shape}, expected numbers or a list of strings.")
    _check_attributes(array, budget)
    chunk = math.prod(array.chunks) * array.dtype.itemsize if array.chunks else 0
    budget.add(name, math.prod(array.shape) * array.dtype.itemsize + chunk)
    if array.dtype.kind == "O":
        budget.add(name, math.prod(array.shape) * (STRING_MEMORY + 5 * _longest_string(array, budget)))


def _longest_string(array: h5py.Dataset, budget: _Budget) -> int:
    """Return the length [bytes] of the longest string, without reading it: all elements may be the same string."""
    if array.chunks:
        found = (array.id.get_chunk_info(i) for i in range(array.id.get_num_chunks()))
        blocks = [(chunk.byte_offset, chunk.size) for chunk in found]
    else:
        blocks = [(array.id.get_offset() or 0, array.id.get_storage_size())]
    longest = 0
    with budget.path.open("rb") as file:
        for offset, size in blocks:
            file.seek(offset)
            content = file.read(min(size, budget.size))
            whole = len(content) - len(content) % STRING_REFERENCE.itemsize
            lengths = np.frombuffer(content[:whole], STRING_REFERENCE)["length"]
            longest = max(longest, int(lengths.max(initial=0)))
    return longest

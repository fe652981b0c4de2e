"""Shared tuples: kernels read and write the arrays of Python's tuples; copies have arrays of their own."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from borelli.kernels.jit import JIT_ON, kernel
from borelli.kernels.shared_tuples import ArrayOwner, SharedTuple, SharedTuples, load_shared


class Inner(NamedTuple):
    marks: np.ndarray
    lengths: np.ndarray


class Outer(NamedTuple):
    first: np.ndarray
    inner: Inner
    table: np.ndarray


@kernel
def total(shared, factors):
    """Sum all elements with weights by position, so that a wrong address shows; write the last of `table`."""
    outer = load_shared(shared)
    result = 0.0
    for i in range(len(outer.first)):
        result += factors[0] * outer.first[i]
    for i in range(outer.inner.marks.shape[0]):
        for j in range(outer.inner.marks.shape[1]):
            result += factors[1] * (i + 2 * j) * outer.inner.marks[i, j]
    for i in range(outer.inner.lengths.size):
        result += factors[2] * outer.inner.lengths[i]
    outer.table[1, 0, 2] = 7.0
    return result


@kernel
def first_lengths(shared):
    """Read fields of a shared tuple, and of a shared tuple within it."""
    marks, lengths = shared.inner.marks, load_shared(shared.inner).lengths
    return marks[0, 0], lengths[0], shared.inner.lengths[1]


@pytest.fixture
def outer():
    # `first` and `marks` have strides of their own
    first = np.arange(10.0)[::2]
    marks = np.asfortranarray(np.arange(1, 7).reshape(2, 3))
    return Outer(first, Inner(marks, np.array([0.5, 0.25])), np.zeros((2, 1, 3)))


def test_kernels_read_and_write_shared_arrays(outer):
    factors = np.array([1.0, 100.0, 10000.0])
    position = np.add.outer(np.arange(2), 2 * np.arange(3))
    expected = outer.first.sum() + 100 * (position * outer.inner.marks).sum() + 10000 * 0.75
    assert total(SharedTuple(outer), factors) == expected
    assert outer.table[1, 0, 2] == 7.0
    assert total(outer, factors) == expected  # a plain tuple is taken as it is


def test_fields_of_shared_tuples(outer):
    assert first_lengths(SharedTuple(outer)) == (1, 0.5, 0.25)


@pytest.mark.skipif(not JIT_ON, reason="Python hands over the tuple itself")
def test_replaced_tuple_is_shared_again(outer):
    shared = SharedTuples()
    before = shared("outer", outer)
    assert shared("outer", outer) is before
    other = outer._replace(first=np.ones(3))
    assert shared("outer", other) is not before
    assert total(shared("outer", other), np.array([1.0, 0.0, 0.0])) == 3.0


@pytest.mark.skipif(not JIT_ON, reason="Python reads anything")
def test_only_tuples_are_loaded(outer):
    with pytest.raises(Exception, match="load_shared takes shared tuples only"):
        total(outer.first, np.ones(3))


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@pytest.mark.skipif(not JIT_ON, reason="Python passes the tuple itself")
@pytest.mark.parametrize("how", COPIES)
def test_copies_have_addresses_of_their_own(outer, how):
    original = SharedTuple(outer)
    other = COPIES[how](original)
    assert other.address != original.address
    other.value.inner.lengths[:] = [3.0, 4.0]
    assert first_lengths(other) == (1, 3.0, 4.0)
    assert first_lengths(original) == (1, 0.5, 0.25)


@pytest.mark.skipif(not JIT_ON, reason="Python passes the tuple itself")
def test_shallow_copy_has_the_same_arrays_and_its_own_addresses(outer):
    original = SharedTuple(outer)
    other = copy.copy(original)
    assert other.value is outer and other.address != original.address
    assert first_lengths(other) == (1, 0.5, 0.25)


@pytest.mark.parametrize("how", [*COPIES, "copy"])
def test_copies_of_a_collection_are_empty(outer, how):
    shared = SharedTuples()
    shared("outer", outer)
    other = copy.copy(shared) if how == "copy" else COPIES[how](shared)
    assert other._shared == {} and len(shared._shared) == 1


class Owner(ArrayOwner):
    def __init__(self, outer):
        self.outer, self.shared = outer, SharedTuples()


@pytest.mark.parametrize("how", [*COPIES, "copy"])
def test_copies_of_an_owner_have_arrays_of_their_own(outer, how):
    owner = Owner(outer)
    assert first_lengths(owner.shared("outer", owner.outer)) == (1, 0.5, 0.25)
    other = copy.copy(owner) if how == "copy" else COPIES[how](owner)
    outer.inner.lengths[:] = 7.0
    assert first_lengths(other.shared("outer", other.outer)) == (1, 0.5, 0.25)
    assert first_lengths(owner.shared("outer", owner.outer)) == (1, 7.0, 7.0)

"""Tuples that kernels read from memory are those that Python holds."""

from typing import NamedTuple

import numpy as np
import pytest

from borelli.kernels.jit import JIT_ON, kernel
from borelli.kernels.shared_tuples import SharedTuple, SharedTuples, load_shared


class Inner(NamedTuple):
    marks: np.ndarray
    lengths: np.ndarray


class Outer(NamedTuple):
    first: np.ndarray
    inner: Inner
    table: np.ndarray


@kernel
def total(shared, factors):
    """Every number by its place, so that one read from elsewhere shows; the last of `table` is written."""
    outer = load_shared(shared)
    found = 0.0
    for i in range(len(outer.first)):
        found += factors[0] * outer.first[i]
    for i in range(outer.inner.marks.shape[0]):
        for j in range(outer.inner.marks.shape[1]):
            found += factors[1] * (i + 2 * j) * outer.inner.marks[i, j]
    for i in range(outer.inner.lengths.size):
        found += factors[2] * outer.inner.lengths[i]
    outer.table[1, 0, 2] = 7.0
    return found


@kernel
def first_lengths(shared):
    """By fields of what is shared, and of what is shared within it."""
    marks, lengths = shared.inner.marks, load_shared(shared.inner).lengths
    return marks[0, 0], lengths[0], shared.inner.lengths[1]


@pytest.fixture
def outer():
    # every second of `first`, and columns of `marks` before its rows: strides count
    first = np.arange(10.0)[::2]
    marks = np.asfortranarray(np.arange(1, 7).reshape(2, 3))
    return Outer(first, Inner(marks, np.array([0.5, 0.25])), np.zeros((2, 1, 3)))


def test_kernels_read_what_is_shared_and_write_to_it(outer):
    factors = np.array([1.0, 100.0, 10000.0])
    place = np.add.outer(np.arange(2), 2 * np.arange(3))
    expected = outer.first.sum() + 100 * (place * outer.inner.marks).sum() + 10000 * 0.75
    assert total(SharedTuple(outer), factors) == expected
    assert outer.table[1, 0, 2] == 7.0


def test_fields_of_what_is_shared(outer):
    assert first_lengths(SharedTuple(outer)) == (1, 0.5, 0.25)


@pytest.mark.skipif(not JIT_ON, reason="Python hands over the tuple itself")
def test_a_tuple_that_was_replaced_is_shared_anew(outer):
    shares = SharedTuples()
    before = shares("outer", outer)
    assert shares("outer", outer) is before
    other = outer._replace(first=np.ones(3))
    assert shares("outer", other) is not before
    assert total(shares("outer", other), np.array([1.0, 0.0, 0.0])) == 3.0


@pytest.mark.skipif(not JIT_ON, reason="Python reads anything")
def test_only_what_is_shared_is_read(outer):
    with pytest.raises(Exception, match="only what is shared is read"):
        total(outer, np.ones(3))

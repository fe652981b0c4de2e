"""Excitations as functions of time."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.muscles.excitations import Excitations, interval_values

TIME, VALUE = [0.0, 0.1, 0.3], [[0.0, 1.0], [0.4, 0.5], [0.2, 0.0]]


def test_linear_and_constant_tables():
    linear, constant = (Excitations(("a", "b"), TIME, VALUE, kind) for kind in ("linear", "constant"))
    np.testing.assert_allclose(linear([-1.0, 0.05, 0.2, 9.0]), [[0.0, 1.0], [0.2, 0.75], [0.3, 0.25], [0.2, 0.0]])
    np.testing.assert_allclose(constant([-1.0, 0.05, 0.1, 9.0]), [[0.0, 1.0], [0.0, 1.0], [0.4, 0.5], [0.2, 0.0]])


def test_steps_have_two_sides():
    constant = Excitations(("a", "b"), TIME, VALUE, "constant")
    start, end = interval_values(["b"], np.array([0.0, 0.1, 0.3]), constant)
    assert start[1:, 0].tolist() == [1.0, 0.5]
    assert end[1:, 0].tolist() == [1.0, 0.5]


def test_tables_add_their_times():
    table = Excitations(("a", "b"), TIME, VALUE)
    assert table.merged_times(np.array([0.0, 0.2, 0.4])).tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("time", "value", "kind", "text"),
    [
        (TIME, [[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], "linear", "'b'"),
        (TIME, [[0.0, np.nan], [0.0, 0.0], [0.0, 0.0]], "linear", "'b'"),
        ([0.0, 0.0, 1.0], VALUE, "linear", "increasing"),
        (TIME, VALUE, "cubic", "constant"),
        (TIME, VALUE[:2], "linear", "shape"),
    ],
)
def test_bad_tables_are_refused(time, value, kind, text):
    with pytest.raises(SettingsError, match=text):
        Excitations(("a", "b"), time, value, kind)

"""Excitations as functions of time."""

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.muscles.excitation_files import read_excitations, write_excitations
from borelli.muscles.excitations import Excitations, interval_values
from tests.shared_data import shared

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


@pytest.mark.parametrize("suffix", (".sto", ".mot", ".csv"))
def test_files_return_the_table(suffix, tmp_path):
    """Nodes at unequal times, as of an optimization, and exact values."""
    rng = np.random.default_rng(0)
    table = Excitations(("soleus_r", "tib_ant_r"), np.sort(rng.uniform(0.0, 2.0, 30)), rng.uniform(0.0, 1.0, (30, 2)))
    path = tmp_path / f"excitations{suffix}"
    write_excitations(table, path)
    back = read_excitations(path, ["tib_ant_r", "soleus_r"])
    np.testing.assert_allclose(back.time, table.time, atol=1e-9)
    np.testing.assert_allclose(back.value, table.value[:, ::-1], atol=1e-9)


def test_columns_named_by_paths_and_missing_ones(tmp_path):
    path = tmp_path / "states.sto"
    rows = "".join(f"{0.01 * i}\t{0.1}\t{0.05 * i}\n" for i in range(12))
    head = "states\nversion=1\nnRows=12\nnColumns=3\ninDegrees=no\nendheader\n"
    path.write_text(head + "time\t/forceset/soleus_r/fiber_length\t/forceset/soleus_r/activation\n" + rows)
    np.testing.assert_allclose(read_excitations(path, ["soleus_r"]).value[:, 0], 0.05 * np.arange(12))
    with pytest.raises(FileFormatError, match="gastroc_r"):
        read_excitations(path, ["gastroc_r"])


@pytest.mark.data
def test_controls_of_cmc():
    path = shared("opensim/gait10dof18musc/reference/CMC_controls.sto")
    table = read_excitations(path, ["soleus_l", "hamstrings_r"])
    assert table.time[0] == pytest.approx(0.03) and table.value[0].tolist() == [0.02, 0.02]

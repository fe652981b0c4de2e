"""Tables of activations, excitations and forces: round trips, and OpenSim's own files."""

import subprocess

import numpy as np
import pytest
import xarray as xr

from borelli.errors import FileFormatError, SettingsError
from borelli.export.muscle_tables import QUANTITIES, read_muscle_table, write_muscle_table

from ..shared_data import shared


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    coords = {"time": 0.5 + np.arange(20) / 100.0, "muscle": ["soleus_r", "glut_med1_l", "tib_ant_r"]}
    return xr.Dataset({name: (("time", "muscle"), rng.random((20, 3))) for name in QUANTITIES}, coords)


@pytest.mark.parametrize("suffix", ["sto", "csv"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_round_trip(data, tmp_path, suffix, quantity):
    path = tmp_path / f"table.{suffix}"
    write_muscle_table(data, path, quantity)
    found = read_muscle_table(path, quantity=quantity)
    assert found.name == quantity and found["muscle"].values.tolist() == data["muscle"].values.tolist()
    np.testing.assert_allclose(found["time"], data["time"], atol=1e-9)
    np.testing.assert_allclose(found, data[quantity], rtol=1e-9)
    chosen = read_muscle_table(path, ["tib_ant_r", "soleus_r"], quantity)
    np.testing.assert_allclose(chosen, data[quantity].sel(muscle=["tib_ant_r", "soleus_r"]), rtol=1e-9)
    with pytest.raises(SettingsError, match="exists"):
        write_muscle_table(data, path, quantity)
    write_muscle_table(data, path, quantity, overwrite=True)


def test_paths_of_opensim_are_names_of_muscles(tmp_path):
    path = tmp_path / "states.sto"
    columns = ["/forceset/soleus_r/activation", "/forceset/tib_ant_r", "vas_int_r.excitation"]
    head = [
        "controls",
        "version=1",
        "nRows=2",
        "nColumns=4",
        "inDegrees=no",
        "endheader",
        "\t".join(["time", *columns]),
    ]
    path.write_text("\n".join([*head, "0\t0.1\t0.2\t0.3", "0.01\t0.4\t0.5\t0.6"]) + "\n")
    assert read_muscle_table(path)["muscle"].values.tolist() == ["soleus_r", "tib_ant_r", "vas_int_r"]


def test_wrong_names_are_refused(data, tmp_path):
    write_muscle_table(data, tmp_path / "table.sto")
    with pytest.raises(FileFormatError, match="soleus_r"):
        read_muscle_table(tmp_path / "table.sto", ["soleus"])
    with pytest.raises(SettingsError, match="suffix"):
        write_muscle_table(data, tmp_path / "table.txt")
    with pytest.raises(SettingsError, match="muscle_excitation"):
        write_muscle_table(data, tmp_path / "other.sto", "excitation")
    with pytest.raises(SettingsError, match="does not have it"):
        write_muscle_table(data.drop_vars("muscle_force"), tmp_path / "other.sto", "muscle_force")


@pytest.mark.data
def test_files_of_opensim_are_read():
    path = shared("opensim/gait2392/reference/StaticOptimization_activation.sto")
    found = read_muscle_table(path, ["soleus_r", "med_gas_l"], "muscle_activation")
    rows = [line.split("\t") for line in path.read_text().split("endheader")[1].strip().split("\n")]
    column = rows[0].index("soleus_r")
    np.testing.assert_allclose(found.sel(muscle="soleus_r"), [float(row[column]) for row in rows[1:]])
    controls = read_muscle_table(shared("opensim/gait10dof18musc/reference/CMC_controls.sto"))
    assert "soleus_r" in controls["muscle"].values and controls["time"][0] == 0.03


@pytest.mark.crosscheck
def test_opensim_reads_written_tables(data, tmp_path, opensim_python):
    write_muscle_table(data, tmp_path / "table.sto", "muscle_excitation")
    code = "import opensim, sys; t = opensim.TimeSeriesTable(sys.argv[1]); print(t.getNumRows(), *t.getColumnLabels())"
    ran = subprocess.run(
        [opensim_python, "-c", code, str(tmp_path / "table.sto")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip().splitlines()[-1] == "20 soleus_r glut_med1_l tib_ant_r"

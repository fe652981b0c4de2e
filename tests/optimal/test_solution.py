"""Solutions as datasets, files and plots; CasADi that is not installed."""

import subprocess
import sys

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.files.netcdf_writer import write_netcdf
from borelli.optimal import read_solution, solve

from .example_problems import METHODS, car, squared_force
from .swing import swing_up


@pytest.fixture(scope="module")
def swung():
    return solve(swing_up(11))


def test_common_schema(swung):
    data = swung.dataset
    assert data["coordinate"].values.tolist() == ["angle"]
    np.testing.assert_array_equal(data["coordinate_value"].values[:, 0], swung.value("angle"))
    np.testing.assert_array_equal(data["coordinate_velocity"].values[:, 0], swung.value("angle_speed"))
    np.testing.assert_array_equal(data["torque"].values[:, 0], swung.value("angle_torque"))
    assert data["torque"].attrs["units"] == "N m"
    assert all("units" in data[name].attrs for name in data.data_vars)
    acceleration = data["torque"].values - 9.81 * np.sin(data["coordinate_value"].values)
    np.testing.assert_allclose(data["coordinate_acceleration"].values, acceleration, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_reported_rates_are_derivatives(method):
    data = solve(car(11), method=method).dataset
    time = data["time"].values
    np.testing.assert_allclose(data["state_rate"].sel(state="v"), 1.5 * (1.0 - time), atol=1e-6)
    np.testing.assert_allclose(data["state_rate"].sel(state="x"), 1.5 * (time - time**2 / 2.0), atol=1e-6)
    np.testing.assert_allclose(data["control_rate"].values, -1.5, atol=1e-5)


def test_files_round_trip(swung, tmp_path):
    path = tmp_path / "swing.nc"
    swung.save(path)
    again = read_solution(path)
    assert again.certificate == swung.certificate
    assert again.objective == swung.objective
    assert again.costs == swung.costs
    np.testing.assert_array_equal(again.dataset["state_value"].values, swung.dataset["state_value"].values)
    warm = solve(swing_up(11), warm_start=again)
    assert warm.iterations < swung.iterations
    with pytest.raises(SettingsError, match="The file exists"):
        swung.save(path)


def test_other_files_are_refused(tmp_path, walk):
    path = tmp_path / "walk.nc"
    walk.recording.to_netcdf(path)
    with pytest.raises(FileFormatError, match="does not contain a solution"):
        read_solution(path)


def test_solutions_of_an_earlier_version_are_refused(tmp_path, swung):
    path = tmp_path / "swing.nc"
    old = {"format": "borelli optimal control solution 1", "certificate": swung.certificate.to_json()}
    write_netcdf(path, {"/": swung.dataset.assign_attrs(old)})
    with pytest.raises(FileFormatError, match="format version 1, which is no longer read"):
        read_solution(path)
    path.write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        read_solution(path)


def test_unknown_names(swung):
    with pytest.raises(SettingsError, match=r"Unknown name 'angel'.*did you mean 'angle'"):
        swung.value("angel")
    with pytest.raises(SettingsError, match="Unknown phase"):
        swung.phase("fall")


def test_plot(swung, tmp_path):
    figure = swung.plot(tmp_path / "swing.png")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert [label.split("\n")[0] for label in labels] == ["state", "control", "state defect"]
    drawn = {line.get_label(): line.get_ydata() for axes in figure.axes[:2] for line in axes.get_lines()}
    np.testing.assert_array_equal(drawn["angle_torque"], swung.value("angle_torque"))
    assert (tmp_path / "swing.png").stat().st_size > 10_000


def test_repr_states_the_verdict(swung):
    assert "solved. Objective" in repr(solve(car(3, cost=squared_force)))
    assert repr(swung).startswith("Solution of 'swing' by radau: ")


def test_casadi_is_loaded_only_by_optimal_control():
    code = "import borelli, sys; borelli.optimal; assert 'casadi' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_casadi_is_one_sentence():
    code = (
        "import sys; sys.modules['casadi'] = None\n"
        "from borelli.errors import SettingsError\n"
        "import borelli.optimal\n"
        "try:\n    borelli.optimal.solve\n"
        "except SettingsError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == 'Optimal control needs CasADi. Install it with `pip install "borelli[optimal]"`.'

"""Commands on the files of `borelli muscles`, and on energy with muscles."""

import json

import pytest
from typer.testing import CliRunner

from borelli.cli import app
from borelli.export.stage_files import read_stage

from ..hostile.stage_seeds import energy, stage_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("muscles.nc", "metabolic.nc"):
        (tmp_path / name).write_bytes(stage_files()[name])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line):
    return CliRunner().invoke(app, line.split())


def test_info_names_the_stage_and_its_muscles(folder):
    done = run("info --json muscles.nc")
    values = json.loads(done.output)
    assert (done.exit_code, values["stage"], values["muscles"]) == (0, "muscle forces", 2)
    activation = energy(muscles=True).muscles.data["muscle_activation"]
    assert values["largest activation"] == float(activation.max())


def test_energy_keeps_the_muscles_of_its_input(folder):
    power = energy(muscles=True).summary["metabolic_power_w"]
    for name in ("muscles", "metabolic"):
        assert run(f"energy {name}.nc -o {name}_out.nc").exit_code == 0
        assert read_stage(folder / f"{name}_out.nc").summary["metabolic_power_w"] == pytest.approx(power, rel=1e-12)


def test_a_report_of_muscle_forces_names_what_it_needs(folder):
    done = run("report muscles.nc -o out.html")
    assert done.exit_code != 0
    assert "muscles.nc: The file contains muscle forces, but energy is required" in str(done.exception)

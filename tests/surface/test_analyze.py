"""The commands of an analysis, through files."""

import json
import os
import subprocess
import sys

from borelli.synthetic.recordings import synthetic_recording


def run(*arguments, folder):
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "borelli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_stages_follow_one_another_through_files(tmp_path):
    """`fit`, `pose`, `torques`, `energy`, `report`: each takes what the one before gave."""
    synthetic_recording("reach").recording.to_netcdf(tmp_path / "reach.nc")
    figures = {}
    for command in (
        ["fit", "reach.nc", "-o", "model.toml", "--json"],
        ["pose", "model.toml", "reach.nc", "-o", "motion.nc", "--json"],
        ["torques", "motion.nc", "-o", "torques.nc", "--json"],
        ["energy", "torques.nc", "-o", "energy.nc", "--json"],
    ):
        done = run(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        figures[command[0]] = json.loads(done.stdout)
    assert figures["fit"]["held_out_rms_mm"] < 2.0 and figures["pose"]["marker_rms_mm"] < 2.0
    assert figures["torques"]["ground_forces"] == "plates"
    assert figures["energy"]["energy_balance_error_percent"] < 0.1
    done = run("report", "energy.nc", "-o", "report.html", folder=tmp_path)
    assert done.returncode == 0 and (tmp_path / "report.html").stat().st_size > 100_000
    told = json.loads(run("info", "energy.nc", "--json", folder=tmp_path).stdout)
    assert told["kind"] == "stage" and told["stage"] == "energy" and told["contact_source"] == "plates"
    assert json.loads(run("info", "motion.nc", "--json", folder=tmp_path).stdout)["stage"] == "motion"


def test_analyze_prints_figures_and_takes_up_again(tmp_path):
    synthetic_recording("reach").recording.to_netcdf(tmp_path / "reach.nc")
    first = run("analyze", "reach.nc", "-o", "out", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "marker error, rms" in first.stdout and "report.html" in first.stdout
    again = json.loads(run("analyze", "reach.nc", "-o", "out", "--json", folder=tmp_path).stdout)
    assert again["loaded"] == ["fit", "pose", "torques", "energy"]
    assert again["cost_of_transport_j_per_kg_m"] is None  # who reaches does not travel


def test_stages_refuse_what_they_cannot_use(tmp_path):
    (tmp_path / "x.nc").write_bytes(b"nothing")
    for command, word in (
        (["torques", "x.nc", "-o", "y.nc"], "holds no motion"),
        (["energy", "x.nc", "-o", "y.txt"], "end the name with .nc"),
        (["report", "x.nc", "-o", "y.nc"], "end the name with .html"),
        (["analyze", "no.c3d"], "no.c3d"),
        (["analyze", "no.c3d", "--monte-carlo", "9", "--noise", "-1"], "noise is -1 mm"),
    ):
        done = run(*command, folder=tmp_path)
        assert done.returncode == 1 and done.stderr.startswith("borelli: ") and word in done.stderr
        assert "Traceback" not in done.stderr

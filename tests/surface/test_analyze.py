"""Commands of an analysis."""

import json
import os
import subprocess
import sys

from borelli.synthetic.recordings import synthetic_recording


def run(*arguments, folder):
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "borelli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_stage_commands_continue_from_each_others_files(tmp_path):
    synthetic_recording("reach").recording.to_netcdf(tmp_path / "reach.nc")
    results = {}
    for command in (
        ["fit", "reach.nc", "-o", "model.toml", "--json"],
        ["ik", "model.toml", "reach.nc", "-o", "motion.nc", "--json"],
        ["id", "motion.nc", "-o", "torques.nc", "--json"],
        ["energy", "torques.nc", "-o", "energy.nc", "--json"],
    ):
        done = run(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        results[command[0]] = json.loads(done.stdout)
    assert results["fit"]["held_out_rms_mm"] < 2.0 and results["ik"]["marker_rms_mm"] < 2.0
    assert results["id"]["grf_source"] == "plates"
    assert results["energy"]["energy_balance_error_percent"] < 0.1
    done = run("report", "energy.nc", "-o", "report.html", folder=tmp_path)
    assert done.returncode == 0 and (tmp_path / "report.html").stat().st_size > 100_000
    info = json.loads(run("info", "energy.nc", "--json", folder=tmp_path).stdout)
    assert info["kind"] == "stage" and info["stage"] == "energy" and info["grf_source"] == "plates"
    assert json.loads(run("info", "motion.nc", "--json", folder=tmp_path).stdout)["stage"] == "motion"


def test_analyze_prints_a_summary_and_reuses_stages(tmp_path):
    synthetic_recording("reach").recording.to_netcdf(tmp_path / "reach.nc")
    first = run("analyze", "reach.nc", "-o", "out", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "marker error, RMS" in first.stdout and "report.html" in first.stdout
    again = json.loads(run("analyze", "reach.nc", "-o", "out", "--json", folder=tmp_path).stdout)
    assert again["reused_stages"] == ["fit", "ik", "id", "energy"]
    assert again["cost_of_transport_j_per_kg_m"] is None  # a reaching movement has no distance


def test_stage_commands_reject_wrong_files(tmp_path):
    (tmp_path / "x.nc").write_bytes(b"nothing")
    for command, word in (
        (["id", "x.nc", "-o", "y.nc"], "not in netCDF 4 format"),
        (["energy", "x.nc", "-o", "y.txt"], "ends in .nc"),
        (["report", "x.nc", "-o", "y.nc"], "ends in .html"),
        (["analyze", "no.c3d"], "no.c3d"),
        (["analyze", "no.c3d", "--monte-carlo", "9", "--marker-noise", "-1"], "-1 mm is out of range"),
    ):
        done = run(*command, folder=tmp_path)
        assert done.returncode == 1 and done.stderr.startswith("borelli: ") and word in done.stderr
        assert "Traceback" not in done.stderr

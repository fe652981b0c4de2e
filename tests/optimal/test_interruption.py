"""Solutions that are killed, cancelled or run out of time."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.optimal import solve

from .example_problems import car, fastest
from .swing import swing_up

ROOT = Path(__file__).parents[2]
SCRIPT = textwrap.dedent("""
    import sys, time
    from borelli.optimal import solve
    from borelli.optimal.nlp_solvers import checkpoint
    from tests.optimal.example_problems import fastest
    checkpoint.MIN_INTERVAL = 0.0
    solve(fastest(21), coarse=[(5, 1), (11, 1)], checkpoint=sys.argv[1], progress=lambda iterate: time.sleep(0.05))
""")


def run_until_killed(path, delay):
    """Solve in a process of its own, and kill it so long [s] after its first checkpoint."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], env=environment)
    try:
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(delay)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_solution_resumes_to_the_same_optimum(tmp_path, seed):
    problem, coarse = fastest(21), [(5, 1), (11, 1)]
    path = tmp_path / "car.npz"
    run_until_killed(path, np.random.default_rng(seed).uniform(0.0, 2.0))
    assert path.exists()
    resumed = solve(problem, coarse=coarse, checkpoint=path)
    whole = solve(problem, coarse=coarse)
    assert resumed.solved, resumed.certificate
    assert resumed.objective == pytest.approx(whole.objective, abs=1e-7)
    assert not list(tmp_path.glob(".borelli-*"))


def test_a_checkpoint_stores_the_mesh_of_a_refinement(tmp_path):
    path = tmp_path / "swing.npz"
    first = solve(swing_up(5), refine=4, checkpoint=path)
    again = solve(swing_up(5), refine=4, checkpoint=path)
    assert first.solved and again.solved, again.certificate
    assert again.iterations < first.iterations
    assert again.objective == pytest.approx(first.objective, rel=1e-8)
    assert len(again.dataset["time"]) == len(first.dataset["time"])


def test_checkpoints_of_other_problems_and_damaged_ones_are_refused(tmp_path):
    path = tmp_path / "car.npz"
    solve(car(3), checkpoint=path)
    with pytest.raises(SettingsError, match="another problem, method or mesh"):
        solve(car(4), checkpoint=path)
    with pytest.raises(SettingsError, match="another problem, method or mesh"):
        solve(car(3), method="hermite-simpson", checkpoint=path)
    content = path.read_bytes()
    for damaged in (b"", b"nothing", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="not a checkpoint"):
            solve(car(3), checkpoint=path)


@pytest.mark.parametrize("method", ["radau", "single-shooting"])
def test_control_c_ends_at_the_next_iteration(method):
    seen = []

    def interrupt(iterate):
        seen.append(iterate)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    solution = solve(fastest(21), method=method, progress=interrupt)
    assert not solution.solved
    assert "cancelled" in solution.certificate.verdict
    assert len(seen) == 3
    assert signal.getsignal(signal.SIGINT) is handler


def test_control_c_ends_all_starts():
    solution = solve(fastest(21), starts=3, progress=lambda iterate: os.kill(os.getpid(), signal.SIGINT))
    assert "cancelled" in solution.certificate.verdict
    assert len(solution.dataset["start_objective"]) == 1


@pytest.mark.parametrize("method", ["radau", "single-shooting"])
def test_time_limit(method):
    begin = time.monotonic()
    solution = solve(fastest(21), method=method, time_limit=0.5, progress=lambda iterate: time.sleep(0.2))
    assert time.monotonic() - begin < 10.0
    assert not solution.solved
    assert "time limit" in solution.certificate.verdict


@pytest.mark.parametrize("method", ["radau", "single-shooting"])
def test_iteration_limit(method):
    solution = solve(fastest(21), method=method, max_iterations=2)
    assert not solution.solved
    assert "iteration limit" in solution.certificate.verdict


def test_errors_in_a_progress_function_are_raised():
    def fail(iterate):
        raise RuntimeError("mine")

    for method in ("radau", "single-shooting"):
        with pytest.raises(RuntimeError, match="mine"):
            solve(fastest(5), method=method, progress=fail)


def test_progress_shows_objective_and_violation(capfd):
    iterates = []
    solve(fastest(11), progress=iterates.append)
    assert iterates[-1].violation < 1e-6 < iterates[0].violation
    assert iterates[-1].objective == pytest.approx(2.0, abs=0.02)
    solve(fastest(5), progress=True)
    assert "\n\n" not in capfd.readouterr().out


def test_workers_change_nothing():
    one, two = (solve(swing_up(7), starts=4, workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.dataset["start_objective"].values, two.dataset["start_objective"].values)
    np.testing.assert_array_equal(one.dataset["state_value"].values, two.dataset["state_value"].values)
    assert one.certificate == two.certificate


def test_coarse_meshes_by_phase_and_warm_starts_save_iterations():
    problem = swing_up(21)
    cold = solve(problem)
    chain = solve(problem, coarse=[{"swing": (6, 1)}, (11, 1)])
    assert chain.solved, chain.certificate
    warm = solve(problem, warm_start=cold)
    assert warm.iterations < cold.iterations
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7)

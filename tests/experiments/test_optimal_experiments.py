"""Experiments in optimal control: short runs through the catalog, and laws of their parts."""

import numpy as np
import pytest

from borelli.experiments.catalog import EXPERIMENTS, run_experiment
from borelli.experiments.optimal.car import car_problem, least_cost_with_drag, least_time
from borelli.experiments.optimal.resimulation import angle_error, simulate_phase
from borelli.experiments.optimal.worm_model import ARCH, LENGTH, LINKS, angle_names, link_ends, worm_model
from borelli.experiments.optimal.worm_race import STRETCH_TIME, Stretch, race_motion
from borelli.model.kinematics import point_positions
from borelli.optimal import CertificateLimits, solve
from borelli.optimal.planar_jumper.jump_problems import muscle_jump
from borelli.optimal.planar_jumper.torque_jump import torque_jump


@pytest.mark.parametrize("name", ["car", "inchworm-race", "jump-torque"])
def test_short_run_writes_its_files_and_passes(name, tmp_path):
    outcome = run_experiment(name, tmp_path, quick=True)
    assert outcome.passed, [claim for claim in outcome.claims if not claim.passed]
    assert {path.name for path in outcome.files} == {f"{name}{ending}" for ending in EXPERIMENTS[name].endings}
    assert all(path.stat().st_size for path in outcome.files)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jump-muscle", "jump-phases", "old-person"])
def test_short_run_of_a_long_experiment_passes(name, tmp_path):
    outcome = run_experiment(name, tmp_path, quick=True)
    assert outcome.passed, [claim for claim in outcome.claims if not claim.passed]


def test_least_cost_with_drag_is_that_of_many_nodes():
    found = solve(car_problem(41, drag=1.0)).objective
    assert found == pytest.approx(least_cost_with_drag(), rel=1e-6)
    assert found > least_cost_with_drag()


def test_least_time_tends_to_two_seconds():
    # bang-bang: 1 m with 1 N on 1 kg, T = 2 sqrt(d m / f)
    assert least_time(1001) == pytest.approx(2.0, abs=1e-5)
    assert least_time(3) == pytest.approx(np.sqrt(6.0))


def test_race_is_continuous_and_goes_one_stride_per_cycle():
    time = np.linspace(0.0, STRETCH_TIME, 50)
    stretch = Stretch(time, (1.0 - (time / STRETCH_TIME)[:, None]) * ARCH)
    moments = np.linspace(0.0, 4.0 * STRETCH_TIME, 2001)
    motion = race_motion([stretch], moments)
    model = worm_model(clamped=False)
    rows = np.column_stack([motion[c.name] for c in model.coordinates])
    head = point_positions(model, rows, [f"worm_1_link_{LINKS}"], [[LENGTH, 0.0, 0.0]])[:, 0]
    assert np.abs(np.diff(head, axis=0)).max() < 0.01  # no jumps between the halves of a stride
    assert head[-1, 0] - head[0, 0] == pytest.approx(2.0 * stretch.stride, abs=1e-3)
    # while gathering, the head stays where it is
    gathering = (moments > STRETCH_TIME) & (moments < 2.0 * STRETCH_TIME)
    np.testing.assert_allclose(head[gathering, :2] - [LINKS * LENGTH, 0.0], 0.0, atol=1e-9)
    assert link_ends(ARCH[None])[0, -1, 1] == pytest.approx(0.0, abs=1e-12)
    assert len(angle_names()) == LINKS


def test_torque_jump_on_a_coarse_mesh_is_optimal_and_obeys_the_ground():
    solution = solve(torque_jump(6, 11), tolerance=1e-6)
    checks = {check.name: check for check in solution.certificate.checks}
    assert all(checks[name].passed for name in ("feasibility", "stationarity", "complementarity"))
    assert solution.value("foot_pitch", "toe").max() <= 1e-6
    assert solution.value("foot_pitch_reaction", "heel")[1:].max() <= 1e-3  # the start is no collocation point
    # the velocity of the center of mass is the time integral of the ground's force less the weight
    time = solution.dataset["time"].values
    force = solution.value("toe_y_reaction") - 72.6 * 9.80665
    impulse = float(np.sum(np.diff(time) * (force[1:] + force[:-1]) / 2.0))
    rise = float(solution.value("center_of_mass_velocity_y")[-1])
    assert impulse / 72.6 == pytest.approx(rise, rel=0.03)  # trapezoids on a coarse mesh


@pytest.mark.slow
def test_muscle_jump_survives_its_own_excitations():
    problem = muscle_jump(nodes=11)
    solution = solve(problem, order=4, tolerance=1e-6, limits=CertificateLimits(defect=1e-2))
    run = simulate_phase(solution, problem.phases[0].system, "push")
    assert angle_error(run) < 1e-2  # rad; the mesh has half of the experiment's nodes

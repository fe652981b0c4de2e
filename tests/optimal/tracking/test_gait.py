"""Tracking of recorded walking, and Moco's squat to stand."""

import pytest

import borelli as bo
from borelli.commands.load_motion import motion_from_coordinates
from borelli.optimal import Phase, Problem, solve, solve_inverse, tree_system, what_if
from borelli.pipeline.opensim_recipe import external_loads

from ...shared_data import shared

TORQUES = {"hip_flexion_r": 150.0, "knee_angle_r": 300.0, "ankle_angle_r": 150.0}
"""[N m] Optimal forces of the example."""


@pytest.mark.data
def test_squat_to_stand_has_the_cost_of_moco():
    """OpenSim Moco 4.6 finds 0.229299 on 25 intervals (its example exampleSquatToStand, prediction by torques)."""
    model = bo.read_model(shared("opensim/moco_examples/squat_to_stand/squatToStand_3dof9musc.osim"))
    ranges = {"hip_flexion_r": (-2.0, 0.5), "knee_angle_r": (-2.0, 0.0), "ankle_angle_r": (-0.5, 0.7)}
    system = tree_system(model, actuators=TORQUES, ranges=ranges)
    rest = {f"{name}_speed": 0.0 for name in TORQUES}
    phase = Phase(
        "stand", system, 1.0, nodes=26, start=rest | {n: low for n, (low, _) in ranges.items()},
        end=rest | dict.fromkeys(TORQUES, 0.0),
        cost=lambda s: sum((s[f"{n}_torque"] / size) ** 2 for n, size in TORQUES.items()),
    )  # fmt: skip
    solution = solve(Problem("squat to stand", [phase]))
    assert solution.certificate.check("one-step defect").passed
    assert solution.objective == pytest.approx(0.229299, rel=0.01)


def walking_torques():
    """Return the torques of OpenSim's recorded walk of gait10dof18musc."""
    folder = shared("opensim/gait10dof18musc")
    model = bo.read_model(folder / "subject01.osim")
    motion = motion_from_coordinates(bo.read_recording(folder / "reference/subject01_walk_IK.mot"), model)
    loads = external_loads(
        folder / "setup/subject01_walk_grf.xml", shared("opensim/subject01_walk/subject01_walk1_grf.mot")
    )
    return bo.inverse_dynamics(motion, forces=loads, cutoff=6)


@pytest.mark.data
def test_muscles_of_recorded_walking():
    """The calf muscles push off: their activation peaks late in stance, soleus after gastrocnemius's rise."""
    found = solve_inverse(walking_torques(), start=0.6, end=1.6)
    assert found.solved, found.solution.certificate
    assert found.summary()["max_reserve_nm"] < 5.0
    time = found.solution.dataset["time"].values + 0.6
    assert 1.1 < time[found.solution.value("gastroc_r_activation").argmax()] < 1.4  # toe-off of the right foot: 1.4 s


@pytest.mark.slow
@pytest.mark.data
def test_weak_soleus_as_published():
    """The weak muscle and others are more active, and effort rises (van der Krogt, Delp and Schwartz 2012)."""
    result = what_if(walking_torques(), ["soleus 50%"], start=0.6, end=1.6)
    assert result.solved
    figures = result.compare()
    for name in ("mean_soleus_r_activation", "mean_gastroc_r_activation", "cost_effort"):
        assert figures[name][1] > 1.05 * figures[name][0], name

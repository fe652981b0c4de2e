"""Prediction of walking: names, contacts and symmetry of the problem, and the gait itself."""

import numpy as np
import pytest

import borelli as bo
from borelli.errors import ModelError, SettingsError
from borelli.optimal import predict_walk
from borelli.optimal.walking.walking_problem import (
    foot_contacts,
    mirrored,
    scissor_guess,
    walking_model,
    walking_problem,
    walking_system,
)

from ...view.test_results import predicted_walk
from ..symbolic_dynamics.trees import GAIT10, stored
from ..tracking.test_documentation import python_blocks


def test_mirrored_names():
    pairs = {
        "hip_flexion_r": "hip_flexion_l",
        "soleus_l_activation": "soleus_r_activation",
        "pelvis_tilt": "pelvis_tilt",
    }
    for name, other in {**pairs, "knee_angle_r_speed": "knee_angle_l_speed", "clear": "clear"}.items():
        assert mirrored(name) == other


def test_spatial_models_and_speeds_are_refused():
    with pytest.raises(ModelError, match="planar"):
        walking_model(bo.human())
    with pytest.raises(SettingsError, match="walking speed"):
        predict_walk(bo.human(), speed=0.0)


@pytest.mark.data
def test_problem_of_a_step():
    model = stored(GAIT10)
    walker = walking_model(model)
    assert (walker.tilt, walker.forward, walker.up) == ("pelvis_tilt", "pelvis_tx", "pelvis_ty")
    contacts = foot_contacts(model, 1e5, 4e-3)
    assert [c.name for c in contacts] == ["right_heel", "right_ball", "left_heel", "left_ball"]
    assert contacts[1].position[0] - contacts[0].position[0] == pytest.approx(0.172, abs=0.01)  # heel to ball
    system = walking_system(walker, contacts, None)
    problem = walking_problem(walker, system, speed=1.2, nodes=6, guess=scissor_guess(walker, 1.2))
    phase = problem.phases[0]
    assert "pelvis_tx" not in phase.periodic_pairs and len(phase.periodic_pairs) == 19
    assert all(mirrored(end) == start for end, start in phase.periodic_pairs.items())


@pytest.mark.slow
@pytest.mark.data
def test_gait_at_one_point_two_meters_per_second():
    """Normal gait: knee flexion of 50 to 70 degrees in swing, about 3.1 J/kg/m (Waters and Mulroy 1999)."""
    names = {"model": stored(GAIT10)}
    exec(compile(python_blocks()[1], "optimal-tracking.md", "exec"), names)
    walk = names["walk"]
    defects = walk.solution.dataset["state_defect"]
    angles = [v for v in defects["state"].values if not v.endswith(("_speed", "_activation"))]
    assert np.nanmax(np.abs(defects.sel(state=angles).values)) < 1e-4
    assert 0.4 < walk.step_time < 0.7
    assert 45.0 < -np.degrees(walk.joint_range("knee_angle_r")[0]) < 75.0
    assert 2.5 < walk.metabolic_cost() < 4.5
    motion = walk.motion()
    forward = motion.coordinates[:, [c.name for c in motion.model.coordinates].index("pelvis_tx")]
    time = motion.data["time"].values
    assert (forward[-1] - forward[0]) / (time[-1] - time[0]) == pytest.approx(1.2, rel=0.03)


def test_each_step_advances_and_exchanges_sides():
    walk = predicted_walk(certificate=None)
    motion = walk.motion(strides=2)
    time, names = motion.data["time"].values, [c.name for c in motion.model.coordinates]
    value = {name: motion.coordinates[:, names.index(name)] for name in ("root_x", "hip_flexion_r", "hip_flexion_l")}
    step = int(np.searchsorted(time, walk.step_time - 1e-9))
    assert time[step] == pytest.approx(walk.step_time, abs=1e-12)
    assert np.abs(value["root_x"][step:] - value["root_x"][:-step] - walk.speed * walk.step_time).max() < 1e-9
    assert np.abs(value["hip_flexion_r"][step:] - value["hip_flexion_l"][:-step]).max() < 1e-9

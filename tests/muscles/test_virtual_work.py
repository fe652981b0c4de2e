"""Moment arms are the negative derivatives of lengths, for every muscle of every stored model."""

import numpy as np
import pytest

from borelli.model.model import Model
from borelli.muscles.paths import muscle_paths
from borelli.tree.kinematic_tree import make_tree

from .sample_models import OSIM_MODELS, random_rows, stored

pytestmark = pytest.mark.data

VIRTUAL_WORK = 1e-7
"""[m] largest |R + dl/dq|."""
STEP = 1e-5
"""[rad or m] of the differences of fourth order: truncation and rounding are below 1e-10 m."""
OTHERS = (
    "muscle_models/osim/Pose2Sim_muscles_flex_318.osim",
    "muscle_models/osim/cyclistFullBodyMuscle_520.osim",
    "muscle_models/osim/PushUpToesOnGroundWithMuscles.osim",
    "muscle_models/mjcf/myo_sim/arm/myoarm.xml",
    "muscle_models/mjcf/myo_sim/body/myobody.xml",
    "muscle_models/mjcf/musclemimic_models/body/myofullbody.xml",
)


def check(model: Model, count: int) -> tuple[int, int]:
    """Assert virtual work where no path changes its state within the differences; return entries checked and all."""
    rows = random_rows(model, count, seed=3)
    paths = muscle_paths(model, rows)
    ends = np.cumsum([0, *(len(muscle.wraps) for muscle in model.muscles)])
    checked = total = 0
    for c in make_tree(model).free:
        lengths, steady = [], paths.wrap_state < 3
        for k in (-2, -1, 1, 2):
            moved = rows.copy()
            moved[:, c] += k * STEP
            near = muscle_paths(model, moved)
            lengths.append(near.length)
            steady &= ((near.wrap_state > 0) == (paths.wrap_state > 0)) & (near.wrap_state < 3)
        slope = (8 * (lengths[2] - lengths[1]) - (lengths[3] - lengths[0])) / (12 * STEP)
        error = np.abs(paths.moment_arm[:, :, c] + slope)
        for m, muscle in enumerate(model.muscles):
            use = steady[:, ends[m] : ends[m + 1]].all(axis=1)
            checked, total = checked + use.sum(), total + len(use)
            assert error[use, m].max(initial=0.0) < VIRTUAL_WORK, (muscle.name, model.coordinates[c].name)
    return checked, total


@pytest.mark.parametrize("name", OSIM_MODELS)
def test_virtual_work(name):
    checked, total = check(stored(name), 2)
    assert checked > 0.99 * total


@pytest.mark.slow
@pytest.mark.parametrize("name", (*OSIM_MODELS, *OTHERS))
def test_virtual_work_in_many_poses(name):
    checked, total = check(stored(name), 30)
    assert checked > 0.98 * total

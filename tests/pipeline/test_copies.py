"""Results can be pickled and copied, and go on with the same bits: for other processes, caches and notebooks."""

import copy
import pickle

import numpy as np
import pytest

from borelli.analysis.fit.anatomical_ties import HipFromVirtualCenter, Tie
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.recording.cleaning.filtering import crop

COPIES = {"pickle": lambda result: pickle.loads(pickle.dumps(result)), "deepcopy": copy.deepcopy}


@pytest.fixture(params=COPIES)
def duplicate(request):
    return COPIES[request.param]


def test_a_copied_fit_poses_with_the_same_bits(analyzed, walk, duplicate):
    again = duplicate(analyzed.fit)
    assert again.model == analyzed.fit.model and again.data.identical(analyzed.fit.data)
    part = crop(walk.recording, end=0.3)
    first, second = (inverse_kinematics(fit.model, part).data for fit in (analyzed.fit, again))
    assert first["coordinate_value"].values.tobytes() == second["coordinate_value"].values.tobytes()
    assert first.identical(second)


def test_ties_of_a_copied_fit_deviate_with_the_same_bits(analyzed, duplicate):
    parameters = analyzed.fit.parameters
    assert len({type(tie.deviation) for tie in parameters.ties}) > 2
    again = duplicate(parameters)
    p = np.random.default_rng(0).normal(size=3 * (1 + max(tie.points.max() for tie in parameters.ties)))
    for one, other in zip(parameters.ties, again.ties, strict=True):
        assert [part.tobytes() for part in one.evaluate(p)] == [part.tobytes() for part in other.evaluate(p)]


def test_a_tie_to_a_virtual_center_can_be_copied(duplicate):
    points = np.array([[0.0, -0.1, -0.1], [0.1, -0.12, 0.0], [0.1, 0.12, 0.0], [-0.1, 0.0, 0.02]])
    tie = Tie("hip_r", "virtual center", np.arange(4), HipFromVirtualCenter(np.array([-0.05, -0.09, -0.1])), np.ones(3))
    assert [part.tobytes() for part in duplicate(tie).evaluate(points.ravel())] == [
        part.tobytes() for part in tie.evaluate(points.ravel())
    ]


def test_a_copied_analysis_has_the_same_bits(analyzed, duplicate):
    again = duplicate(analyzed)
    assert again.energy.data.identical(analyzed.energy.data)
    assert again.energy.torques.motion.data.identical(analyzed.energy.torques.motion.data)
    assert again.summary == analyzed.summary and repr(again) == repr(analyzed)

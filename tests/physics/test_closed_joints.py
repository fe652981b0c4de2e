"""Joints of the soft step: hard ones stay closed, soft ones yield as stated, and open ones are reported."""

from dataclasses import replace

import numpy as np
import pytest

import borelli as bo
from borelli.model.mechanisms import Z_TO_X, chain
from borelli.model.model import Frame, Shape, Softness

from .passive_systems import run, run_tree, simulation_of


def capsules(links):
    return chain(links, Shape("capsule", (0.02, 0.05), Frame(orientation=Z_TO_X)), 0.1, kind="hinge")


@pytest.mark.parametrize(("links", "rate"), [(20, 240), (20, 60), (10, 30)])
def test_chains_stay_closed(links, rate):
    """20 links opened by 34 mm at 1/240 s and by 311 mm at 1/60 s when a step corrected a fifth of their gaps."""
    result = run(simulation_of(capsules(links), 1 / rate, 3 * rate, soft=True), 3 * rate)
    assert result.gap < 1e-4 and (result.status == 0).all()
    assert result.gain <= 0.0


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_random_trees_stay_closed(seed):
    result = run_tree(seed, 0.5, soft=True)
    assert result.gap < 1e-4 and (result.status == 0).all()
    assert result.gain < 1e-6


@pytest.mark.slow
def test_campaign_of_random_trees():
    failures = []
    for seed in range(200):
        result = run_tree(seed, 20.0, soft=True)
        if not (result.gain <= 1e-12 and result.gap < 1e-4 and (result.status == 0).all()):
            failures.append((seed, result.gain, result.gap, int((result.status > 0).sum())))
    assert not failures


def test_closing_leaves_impulses_and_momentum_alone():
    """A hanging chain at rest carries its weight at the top, and gaps of a free one move no center of mass."""
    model = capsules(3)
    model = replace(model, joints=tuple(replace(j, parent_frame=j.parent_frame) for j in model.joints))
    data = bo.simulate(model, duration=0.5, initial_coordinates={"joint_1": -np.pi / 2})
    assert float(data["joint_gap"].max()) < 1e-4


def test_soft_joints_yield_by_their_stiffness():
    """A weight of m g on a joint of k [N/m] opens it by m g / k; it is not closed."""
    model = capsules(1)
    soft = replace(model.joints[0], softness=Softness(stiffness=1000.0, damping=20.0))
    model = replace(model, joints=(soft,))
    data = bo.simulate(model, duration=4.0, initial_coordinates={"joint_1": -np.pi / 2})
    weight = model.bodies[0].mass * 9.81
    assert float(data["joint_gap"][-1]) == pytest.approx(weight / 1000.0, rel=1e-3)
    assert "opened" not in data.attrs["notes"]


def test_open_joints_are_a_warning():
    """Two pins that no pose of a rod reaches: its status and a note say so."""
    model = capsules(1)
    first = model.joints[0]
    far = replace(
        first, name="second", coordinates=(replace(first.coordinates[0], name="second"),), closes_loop=True,
        parent_frame=Frame((0.15, 0.0, first.parent_frame.position[2])), child_frame=Frame((0.05, 0.0, 0.0)),
    )  # fmt: skip
    data = bo.simulate(replace(model, joints=(first, far)), duration=0.05)
    assert int(data["solver_status"][-1]) & 16
    assert "Joints were left open" in data.attrs["notes"]

"""Joints of the soft step: hard ones stay closed, soft ones yield as stated, and open ones are reported."""

from dataclasses import replace

import numpy as np
import pytest

import borelli as bo
from borelli.model.mechanisms import Z_TO_X, chain
from borelli.model.model import Frame, Shape, Softness
from borelli.physics.inputs import Drive
from borelli.physics.joint_closing import JOINTS_LEFT_OPEN
from borelli.scenes.gallery import human_drop
from borelli.scenes.scene import run_scene

from .nets import net_model
from .passive_systems import ring, run, run_passive, run_tree, simulation_of


def capsules(links):
    return chain(links, Shape("capsule", (0.02, 0.05), Frame(orientation=Z_TO_X)), 0.1, kind="hinge")


@pytest.mark.parametrize(("links", "rate"), [(20, 240), (20, 60), (10, 30)])
def test_chains_stay_closed(links, rate):
    """20 links opened by 34 mm at 1/240 s and by 311 mm at 1/60 s when a step corrected a fifth of their gaps."""
    result = run(simulation_of(capsules(links), 1 / rate, 3 * rate, soft=True), 3 * rate)
    assert result.gap < 1e-4 and (result.status == 0).all()
    assert result.gain <= 0.0 and result.drift < 1e-7


@pytest.mark.parametrize("seed", [0, 1, 4, 7, 10])
def test_random_trees_stay_closed(seed):
    """Seed 10: 32 links of 0.02 m and more at 1/30 s, some of which rotate by 20 rad in a step."""
    result = run_tree(seed, 0.5, soft=True)
    assert result.gap < 1e-4 and (result.status == 0).all()
    assert result.gain <= 0.0
    if seed % 2:
        assert np.abs(result.linear - result.linear[0]).max() < 1e-12 * np.abs(result.linear).max()
        assert np.abs(result.angular - result.angular[0]).max() < 1e-11 * np.abs(result.angular).max()


@pytest.mark.parametrize("pinned", [True, False])
def test_redundant_loops_stay_closed(pinned):
    """Parallel hinges in a ring have three rows too many."""
    model = ring(6, pinned=pinned)
    simulation = simulation_of(model, 1 / 240, 241, soft=True)
    for i, body in enumerate(model.bodies):
        simulation.state.position[i], simulation.state.quaternion[i] = body.frame.position, body.frame.orientation
    simulation.state.twist[:] = np.random.default_rng(4).normal(size=(6, 6))
    run(simulation, 1)
    result = run(simulation, 240)
    assert result.gain <= 0.0 and result.gap < 1e-4 and (result.status == 0).all()


def test_nets_gain_no_energy():
    """A hanging net of bars draws taut: its status says where it cannot be closed."""
    result = run(simulation_of(net_model(5), 1 / 240, 240, soft=True), 240)
    assert result.gain <= 0.0 and result.gap < 1e-3
    assert set(np.unique(result.status)) <= {0, JOINTS_LEFT_OPEN}


@pytest.mark.parametrize("max_force", [np.inf, 0.02])
def test_driven_chains_stay_closed(max_force):
    """Springs of every other joint pull to another pose, at unlimited and at saturated torques."""
    model = capsules(10)
    names = [c.name for c in model.coordinates][1::2]
    drives = [Drive(name, 0.5, stiffness=0.5, damping=0.01, max_force=max_force) for name in names]
    data = bo.simulate(model, duration=2.0, step=1 / 240, drives=drives)
    assert float(data["joint_gap"].max()) < 1e-4 and (data["solver_status"] == 0).all()


def test_a_falling_human_stays_closed():
    """Limits and contacts act while joints are closed: joints gape no more, feet sink no deeper and limits hold."""
    data = run_scene(replace(human_drop(), duration=1.5))
    assert float(data["joint_gap"].max()) < 1e-4
    assert (data["solver_status"].values & JOINTS_LEFT_OPEN == 0).all()
    energy = (data["kinetic_energy"] + data["potential_energy"]).values
    assert energy.max() - energy[0] < 1e-3 * energy[0]


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True, reason="three trees gain 1e-5 of the swing at most, one has a status, one net stays open"
)
def test_campaign_of_passive_systems():
    """200 trees, rings and nets, 20 s each: never above the energy at the start; taut nets may be left open."""
    failures = []
    for seed in range(200):
        result, kind = run_passive(seed, 20.0, soft=True)
        closed = result.gap < 1e-4 and (result.status == 0).all()
        if result.gain > 0.0 or not (closed or (kind == "net" and result.gap < 1e-2)):
            failures.append((seed, kind, result.gain, result.gap, int((result.status > 0).sum())))
    assert not failures


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
